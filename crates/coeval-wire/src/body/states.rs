//! Bodies of states: what changed, by the sender's slot numbers.
//!
//! After its slot, a state has a byte of flags. The two lowest bits say what it is:
//!
//! | | 0: life | 1: node without leaf | 2: node with leaf |
//! |---|---|---|---|
//! | bit 2 | creation follows | floor follows | floor follows |
//! | bit 3 | deletion follows | kind follows | kind follows |
//! | bit 4 | | | the writer's time ran backward |
//! | bit 5 | | | discontinuous |
//! | bit 6 | | | epoch as before |
//! | bit 7 | | | writer as before |
//!
//! A leaf is its stamp, epoch, sim time and value; then come the stamps that the flags announce.
use super::bytes::{Reader, open, put_signed, put_signed128};
use super::table::{Reading, Writing};
use super::value::{get_checked, put_checked};
use super::{BodyError, BodyLimits, guarded};
use coeval_merge::{Life, NodeState, SlotId, SlotState};
use coeval_time::hybrid::STAMP_LIMIT;
use coeval_time::{Direction, SimTime, Stamp};
use coeval_value::{Leaf, SampleMeta};

/// What a body of states says it holds.
const CONTENT: u8 = b'S';

const LIFE: u8 = 0;
const NODE: u8 = 1;
const LEAF: u8 = 2;
const FORM: u8 = 0b11;
const FIRST: u8 = 1 << 2;
const SECOND: u8 = 1 << 3;
const BACKWARD: u8 = 1 << 4;
const DISCONTINUOUS: u8 = 1 << 5;
const SAME_EPOCH: u8 = 1 << 6;
const SAME_WRITER: u8 = 1 << 7;

/// Least bytes of a state: slot and flags.
const LEAST: usize = 2;

/// Appends a body of states, in the order given; ascending slots are the shortest.
///
/// Refuses state that is not in normal form, stamps at the end of their range, values beyond
/// [`Limits::MAX`](coeval_value::Limits::MAX), and bodies beyond [`MAX_BODY`](super::MAX_BODY).
pub fn encode_states(states: &[(SlotId, &SlotState)], out: &mut Vec<u8>) -> Result<(), BodyError> {
    guarded(out, |out| {
        open(out, CONTENT, states.len());
        let mut to = Encoder::default();
        states.iter().try_for_each(|(slot, state)| {
            put_slot(out, &mut to.next_slot, *slot);
            to.state(out, state)
        })
    })
}

/// Reads a body of states.
pub fn decode_states(bytes: &[u8], limits: &BodyLimits) -> Result<Vec<(SlotId, SlotState)>, BodyError> {
    let mut from = Reader::open(bytes, CONTENT)?;
    let count = from.count("states", limits.items, LEAST)?;
    let mut states = Vec::with_capacity(count);
    let mut decoder = Decoder::default();
    for _ in 0..count {
        let slot = get_slot(&mut from, &mut decoder.next_slot)?;
        states.push((slot, decoder.state(&mut from, limits)?));
    }
    from.finish()?;
    Ok(states)
}

/// Writes a slot as the difference from `next`, the one expected.
pub(super) fn put_slot(out: &mut Vec<u8>, next: &mut i64, slot: SlotId) {
    put_signed(out, i64::from(slot.0) - *next);
    *next = i64::from(slot.0) + 1;
}

pub(super) fn get_slot(from: &mut Reader<'_>, next: &mut i64) -> Result<SlotId, BodyError> {
    let moved = from.signed()?;
    let slot = next.checked_add(moved).and_then(|slot| u32::try_from(slot).ok());
    let slot = slot.ok_or_else(|| from.range("slot"))?;
    *next = i64::from(slot) + 1;
    Ok(SlotId(slot))
}

/// Sim time as the previous leaf had it, moved by as much as the stamps moved: exact at rate 1.
#[derive(Default)]
struct Predictor {
    sim: i128,
    hlc: u64,
}

impl Predictor {
    fn predict(&self, hlc: u64) -> i128 {
        // Sim times have 94 bits, stamps 64: no sum of them leaves 128.
        self.sim + i128::from(hlc) - i128::from(self.hlc)
    }

    fn learn(&mut self, hlc: u64, sim: i128) {
        (self.sim, self.hlc) = (sim, hlc);
    }
}

#[derive(Default)]
struct Encoder {
    table: Writing,
    sim: Predictor,
    next_slot: i64,
}

impl Encoder {
    fn state(&mut self, out: &mut Vec<u8>, state: &SlotState) -> Result<(), BodyError> {
        match state {
            SlotState::Life(Life { created, deleted }) => {
                out.push(LIFE | announced(*created, *deleted));
                self.stamps(out, *created, *deleted)
            }
            SlotState::Node(node) => {
                check_normal(node, out.len())?;
                let announced = announced(node.floor, node.kind);
                match &node.leaf {
                    None => out.push(NODE | announced),
                    Some(leaf) => {
                        out.push(LEAF | announced | self.leaf_flags(leaf));
                        self.leaf(out, leaf)?;
                    }
                }
                self.stamps(out, node.floor, node.kind)
            }
        }
    }

    fn leaf_flags(&self, leaf: &Leaf) -> u8 {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        flag(leaf.meta.direction == Direction::Backward, BACKWARD)
            | flag(leaf.meta.discontinuous, DISCONTINUOUS)
            | flag(self.table.same_epoch(leaf.meta.epoch), SAME_EPOCH)
            | flag(self.table.same_writer(leaf.stamp.writer), SAME_WRITER)
    }

    fn leaf(&mut self, out: &mut Vec<u8>, leaf: &Leaf) -> Result<(), BodyError> {
        let Stamp { hlc, writer } = check_stamp(leaf.stamp, out.len())?;
        self.table.hlc(out, hlc);
        if !self.table.same_writer(writer) {
            self.table.writer(out, writer);
        }
        if !self.table.same_epoch(leaf.meta.epoch) {
            self.table.epoch(out, leaf.meta.epoch);
        }
        let sim = leaf.meta.sim.as_nanos();
        put_signed128(out, sim - self.sim.predict(hlc));
        self.sim.learn(hlc, sim);
        put_checked(out, &leaf.value)
    }

    fn stamps(&mut self, out: &mut Vec<u8>, first: Stamp, second: Stamp) -> Result<(), BodyError> {
        for stamp in [first, second].into_iter().filter(|stamp| !stamp.is_none()) {
            let stamp = check_stamp(stamp, out.len())?;
            self.table.stamp(out, stamp);
        }
        Ok(())
    }
}

/// The flags of the stamps that follow.
fn announced(first: Stamp, second: Stamp) -> u8 {
    let flag = |stamp: Stamp, flag: u8| if stamp.is_none() { 0 } else { flag };
    flag(first, FIRST) | flag(second, SECOND)
}

#[derive(Default)]
struct Decoder {
    table: Reading,
    sim: Predictor,
    next_slot: i64,
}

impl Decoder {
    fn state(&mut self, from: &mut Reader<'_>, limits: &BodyLimits) -> Result<SlotState, BodyError> {
        let flags = from.byte()?;
        let known = if flags & FORM == LEAF { u8::MAX } else { FORM | FIRST | SECOND };
        if flags & FORM == FORM || flags & !known != 0 {
            return Err(from.unknown("flags of a state", flags));
        }
        if flags & FORM == LIFE {
            let created = self.stamp(from, flags & FIRST != 0)?;
            let deleted = self.stamp(from, flags & SECOND != 0)?;
            return Ok(SlotState::Life(Life { created, deleted }));
        }
        let leaf = if flags & FORM == LEAF { Some(self.leaf(from, flags, limits)?) } else { None };
        let floor = self.stamp(from, flags & FIRST != 0)?;
        let kind = self.stamp(from, flags & SECOND != 0)?;
        let node = NodeState { leaf, floor, kind };
        check_normal(&node, from.at())?;
        Ok(SlotState::Node(node))
    }

    fn leaf(&mut self, from: &mut Reader<'_>, flags: u8, limits: &BodyLimits) -> Result<Leaf, BodyError> {
        let hlc = self.table.hlc(from)?;
        let same = flags & SAME_WRITER != 0;
        let writer = if same { self.table.last_writer(from)? } else { self.table.other_writer(from)? };
        let stamp = check_stamp(Stamp { hlc, writer }, from.at())?;
        let same = flags & SAME_EPOCH != 0;
        let epoch = if same { self.table.last_epoch() } else { self.table.other_epoch(from)? };
        let nanos = self.sim.predict(hlc).checked_add(from.signed128()?);
        let sim = nanos.map(SimTime::from_nanos).filter(|sim| Some(sim.as_nanos()) == nanos);
        let sim = sim.ok_or_else(|| from.range("sim time"))?;
        self.sim.learn(hlc, sim.as_nanos());
        let direction = if flags & BACKWARD != 0 { Direction::Backward } else { Direction::Forward };
        let meta = SampleMeta { sim, epoch, direction, discontinuous: flags & DISCONTINUOUS != 0 };
        Ok(Leaf { stamp, meta, value: get_checked(from, &limits.value)? })
    }

    fn stamp(&mut self, from: &mut Reader<'_>, follows: bool) -> Result<Stamp, BodyError> {
        if !follows {
            return Ok(Stamp::NONE);
        }
        let stamp = self.table.stamp(from)?;
        if stamp.is_none() {
            return Err(from.not_canonical("stamp that is none"));
        }
        check_stamp(stamp, from.at())
    }
}

/// Refuses stamps that leave no room for the next one.
fn check_stamp(stamp: Stamp, at: usize) -> Result<Stamp, BodyError> {
    if stamp.hlc >= STAMP_LIMIT { Err(BodyError::Range { what: "stamp", at }) } else { Ok(stamp) }
}

/// Refuses what no batch in normal form leads to.
fn check_normal(node: &NodeState, at: usize) -> Result<(), BodyError> {
    let why = "a leaf that is a map, has no stamp, or has the stamp of its node's kind or floor";
    if node.is_normal() { Ok(()) } else { Err(BodyError::NotNormal { why, at }) }
}
