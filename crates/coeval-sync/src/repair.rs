//! Digests: finding and mending what differs between two replicas, whatever the cause.
//!
//! Once a period each side tells its root digest. Equal digests end the matter. On a difference the lesser node starts
//! a round: the digests of 256 buckets, answered by the digests of the entities of differing buckets, answered by the
//! stamps of the slots of differing entities. The answerer sends what it is ahead in and asks for what it is behind in.
//! While changes are under way digests differ without harm, so a slot is sent only if the same difference is still there
//! in the next round; after a link came up without a usable cursor the round is *urgent* and everything is sent at once.
//!
//! On a slow link several rounds are under way at once. Each compares what its own first step found to differ, and each
//! has its own beginning: what came later than that was not compared as a whole.
use crate::Sync;
use crate::codec;
use crate::link::Mode;
use coeval_faults::{Fault, active};
use coeval_merge::{Digest, LinkTag, Replica, SlotId, SlotKey, SlotSummary, replica::bucket_of};
use coeval_time::{EditId, MonoTime, Stamp, WallDuration};
use coeval_value::{EntityId, SIM_ENTITY};
use coeval_wire::Frame;
use coeval_wire::frame::{Buckets, Entities, EntryIds, Repaired, Root, Summary, Want};
use std::collections::{BTreeMap, BTreeSet};

/// Entities told of in one frame.
const ENTITIES_PAGE: usize = 1024;
/// Slots told of in one frame.
const SUMMARY_PAGE: usize = 1024;
/// Entry ids told of in one frame.
const ENTRIES_PAGE: usize = 4096;
/// Numbers and ids asked for in one frame.
const WANT_PAGE: usize = 4096;
/// Most slots of a peer's summary that are kept until their entity is complete.
const MAX_PENDING: usize = 1 << 20;
/// Most rounds of either side under way on a link; the oldest is given up for the next.
const MAX_ROUNDS: usize = 64;
/// An urgent round that has not ended by then is started again.
const URGENT_PATIENCE: WallDuration = WallDuration::from_secs(3);

/// What differed in the last round: of each slot the stamps of the side that is ahead, and for how many rounds.
type Suspects = BTreeMap<(Side, u32), ([Stamp; 3], u32)>;

/// Which side is ahead; its slot number is meant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    Here,
    There,
}

/// Repair on one link.
#[derive(Default)]
pub(crate) struct Repair {
    round: u64,
    /// Of each round under way that this side started: the drained position here when it began.
    began: BTreeMap<u64, u64>,
    /// The same of the last round that either side started.
    latest: u64,
    /// The urgent round under way, which this side started, and when.
    started: Option<(u64, MonoTime)>,
    /// The urgent round under way, which the peer started.
    answering: Option<u64>,
    /// The rounds under way that the peer started.
    answers: BTreeMap<u64, Answer>,
    suspects: Suspects,
}

/// A round that the peer started.
#[derive(Default)]
struct Answer {
    urgent: bool,
    /// The drained position here when the round came.
    began: u64,
    /// The peer's slots whose entity is not complete yet.
    pending: BTreeMap<EntityId, BTreeMap<SlotKey, (u32, [Stamp; 3])>>,
    pending_count: usize,
    /// What differs.
    found: Suspects,
}

impl Repair {
    /// Whether an urgent round is under way that this side started.
    pub(crate) fn is_urgent(&self) -> bool {
        self.started.is_some()
    }

    /// How many slots of the peer's are kept.
    fn pending_count(&self) -> usize {
        self.answers.values().map(|answer| answer.pending_count).sum()
    }
}

/// Whether `a` holds something that `b` does not.
fn ahead(life: bool, a: [Stamp; 3], b: [Stamp; 3]) -> bool {
    // Creation and deletion keep their least stamps, all else the greatest.
    let newer = |(a, b): (&Stamp, &Stamp)| if life { !a.is_none() && (b.is_none() || a < b) } else { a > b };
    a.iter().zip(&b).any(newer)
}

fn stamps(summary: &SlotSummary) -> [Stamp; 3] {
    [summary.first, summary.floor, summary.kind]
}

impl<R: Replica> Sync<R> {
    /// Tells a link the root digest, when that is due and all was sent.
    pub(crate) fn digest_if_due(&mut self, tag: LinkTag) {
        let due = self.now.saturating_add(self.jitter(self.config.digest_period));
        let Some(link) = self.links.get_mut(&tag).filter(|link| link.digest_due <= self.now) else { return };
        link.digest_due = due;
        link.inc.asked.clear();
        self.pump();
        if self.links.get(&tag).is_some_and(|link| link.out.mode == Mode::Live) {
            let (digest, position) = (self.replica.digest(), self.replica.position());
            self.send(tag, &Root { digest, position, members: self.members.sum() }.into());
        }
    }

    /// Compares the peer's root digest with this one.
    pub(crate) fn on_root(&mut self, tag: LinkTag, root: &Root) {
        self.pump();
        if root.members != self.members.sum() {
            self.send_members(tag);
        }
        let digest = self.replica.digest();
        let Some(link) = self.links.get_mut(&tag) else { return };
        if link.inc.states.is_empty() && link.inc.entries.is_empty() {
            self.reached(tag, root.position);
        }
        let Some(link) = self.links.get_mut(&tag) else { return };
        if root.digest == digest {
            link.repair.suspects.clear();
            link.repair.started = None;
            // The peer holds what is held here, however the round that was to see to it ends.
            link.out.past.get_or_insert(0);
            if std::mem::take(&mut link.out.refused) {
                link.out.acked = link.out.acked.max(self.replica.position());
            }
            self.complete(tag);
            return;
        }
        let patience = |(_, at): (u64, MonoTime)| self.now.since(at) >= URGENT_PATIENCE;
        match link.repair.started {
            Some(started) if patience(started) => self.narrow(tag, true),
            Some(_) => {}
            None if self.me.node < link.peer.node && link.out.mode == Mode::Live => self.narrow(tag, false),
            None => {}
        }
    }

    /// Starts a round of repair.
    pub(crate) fn narrow(&mut self, tag: LinkTag, urgent: bool) {
        let digests = self.replica.bucket_digests();
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.repair.round += 1;
        let round = link.repair.round;
        link.repair.latest = self.replica.position();
        link.repair.began.insert(round, link.repair.latest);
        if link.repair.began.len() > MAX_ROUNDS {
            link.repair.began.pop_first();
        }
        if urgent {
            link.repair.started = Some((round, self.now));
        }
        self.stats(tag).repairs += 1;
        self.send(tag, &Buckets { round, urgent, digests }.into());
    }

    /// Step 1, at the answerer: tells the entities of differing buckets.
    pub(crate) fn on_buckets(&mut self, tag: LinkTag, theirs: &Buckets) -> Result<(), String> {
        let mine = self.replica.bucket_digests();
        if theirs.digests.len() != mine.len() {
            return Err(format!("{} buckets, {} expected", theirs.digests.len(), mine.len()));
        }
        let Some(link) = self.links.get_mut(&tag) else { return Ok(()) };
        let (round, began) = (theirs.round, self.replica.position());
        if theirs.urgent {
            link.repair.answering = Some(round);
        }
        link.repair.latest = began;
        link.repair.answers.insert(round, Answer { urgent: theirs.urgent, began, ..Answer::default() });
        if link.repair.answers.len() > MAX_ROUNDS {
            link.repair.answers.pop_first();
        }
        let differs = (0..=u8::MAX).filter(|b| mine[usize::from(*b)] != theirs.digests[usize::from(*b)]);
        let mut held: Option<Entities> = None;
        for bucket in differs {
            let all = self.replica.entity_digests(bucket);
            for frame in entity_pages(round, bucket, &all) {
                if let Some(before) = held.replace(frame) {
                    self.send(tag, &before.into());
                }
            }
        }
        let mut last = held.unwrap_or(Entities {
            round,
            bucket: None,
            after: None,
            until: None,
            digests: Vec::new(),
            last: true,
        });
        last.last = true;
        self.send(tag, &last.into());
        Ok(())
    }

    /// Step 2, at the starter: tells the stamps of differing entities.
    pub(crate) fn on_entities(&mut self, tag: LinkTag, theirs: &Entities) -> Result<(), String> {
        let mut differing = BTreeSet::new();
        if let Some(bucket) = theirs.bucket {
            if theirs.digests.iter().any(|(entity, _)| bucket_of(*entity) != bucket) {
                return Err("an entity in the wrong bucket".to_owned());
            }
            let within =
                |e: EntityId| theirs.after.is_none_or(|a| e > a) && theirs.until.is_none_or(|u| e <= u);
            let mine = self.replica.entity_digests(bucket);
            let mine: BTreeMap<EntityId, Digest> = mine.into_iter().filter(|(e, _)| within(*e)).collect();
            let told: BTreeMap<EntityId, Digest> = theirs.digests.iter().copied().collect();
            differing.extend(told.iter().filter(|(e, d)| mine.get(*e) != Some(*d)).map(|(e, _)| *e));
            differing.extend(mine.keys().filter(|e| !told.contains_key(*e)));
        }
        if differing.contains(&SIM_ENTITY) {
            for frame in entry_pages(&self.replica.entry_ids()) {
                self.send(tag, &frame.into());
            }
        }
        self.send_summary(tag, theirs.round, &differing, theirs.last)
    }

    fn send_summary(
        &mut self,
        tag: LinkTag,
        round: u64,
        entities: &BTreeSet<EntityId>,
        last: bool,
    ) -> Result<(), String> {
        let mut slots: Vec<SlotSummary> = Vec::new();
        let mut ended = Vec::new();
        for entity in entities {
            for slot in self.replica.summary(*entity) {
                slots.push(slot);
                if slots.len() >= SUMMARY_PAGE {
                    let frame = summary_frame(round, std::mem::take(&mut ended), &slots, false)?;
                    self.summary_defines(tag, &slots);
                    slots.clear();
                    self.send(tag, &frame);
                }
            }
            ended.push(*entity);
        }
        if last || !ended.is_empty() {
            let frame = summary_frame(round, ended, &slots, last)?;
            self.summary_defines(tag, &slots);
            self.send(tag, &frame);
        }
        Ok(())
    }

    fn summary_defines(&mut self, tag: LinkTag, slots: &[SlotSummary]) {
        if let Some(link) = self.links.get_mut(&tag) {
            slots.iter().for_each(|slot| link.out.defined.insert(slot.slot));
        }
    }

    /// Step 3, at the answerer: finds out who is ahead in what.
    pub(crate) fn on_summary(&mut self, tag: LinkTag, theirs: &Summary) -> Result<(), String> {
        let keys = self.on_define(tag, &theirs.keys)?;
        if keys.len() != theirs.stamps.len() {
            return Err(format!("{} slots and {} stamps in a summary", keys.len(), theirs.stamps.len()));
        }
        let Some(link) = self.links.get_mut(&tag) else { return Ok(()) };
        let kept = link.repair.pending_count() + keys.len();
        // A round that is not known was given up here, for later ones.
        let Some(answer) = link.repair.answers.get_mut(&theirs.round) else { return Ok(()) };
        if kept > MAX_PENDING {
            return Err(format!("a summary of more than {MAX_PENDING} slots"));
        }
        for ((number, key), stamps) in keys.into_iter().zip(&theirs.stamps) {
            let told = answer.pending.entry(key.entity).or_default();
            answer.pending_count += usize::from(told.insert(key, (number.0, *stamps)).is_none());
        }
        for entity in &theirs.entities {
            let told = answer.pending.remove(entity).unwrap_or_default();
            answer.pending_count -= told.len();
            compare(self.replica.summary(*entity), told, &mut answer.found);
        }
        if theirs.last {
            self.answer(tag, theirs.round);
        }
        Ok(())
    }

    /// Sends what this side is ahead in and asks for what it is behind in.
    fn answer(&mut self, tag: LinkTag, round: u64) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        let Some(Answer { urgent, began, mut found, .. }) = link.repair.answers.remove(&round) else {
            return;
        };
        let mut due: BTreeSet<(Side, u32)> = BTreeSet::new();
        for (cell, (stamps, rounds)) in &mut found {
            let before = link.repair.suspects.get(cell).filter(|(then, _)| then == stamps);
            *rounds = before.map_or(0, |(_, rounds)| rounds + 1);
            // What was sent and still differs is parked or refused there: less and less often.
            if urgent || rounds.is_power_of_two() {
                due.insert(*cell);
            }
        }
        // All that differs, or a batch of which a part was noticed a round earlier would be torn.
        let all = !due.is_empty() && !active(Fault::TornByRepair);
        let (mut give, mut want) = (Vec::new(), Vec::new());
        for (side, number) in found.keys().filter(|cell| all || due.contains(cell)) {
            match side {
                Side::Here => give.push(SlotId(*number)),
                Side::There => want.push(*number),
            }
        }
        link.repair.suspects = found;
        link.out.completes |= urgent;
        self.with_later(&mut give, began);
        let Some(link) = self.links.get_mut(&tag) else { return };
        let count = give.len() as u64;
        link.out.note(give);
        let mut chunks = want.chunks(WANT_PAGE).peekable();
        let mut frames = Vec::new();
        while let Some(slots) = chunks.next() {
            let ends = chunks.peek().is_none().then_some(round);
            frames.push(Want { slots: slots.to_vec(), entries: Vec::new(), ends });
        }
        if frames.is_empty() {
            frames.push(Want { slots: Vec::new(), entries: Vec::new(), ends: Some(round) });
        }
        link.out.after.extend(frames.into_iter().map(Frame::from));
        self.stats(tag).repaired += count;
    }

    /// Compares entries: sends those the peer lacks and asks for those missing here.
    pub(crate) fn on_entry_ids(&mut self, tag: LinkTag, theirs: &EntryIds) {
        let within =
            |id: &EditId| theirs.after.is_none_or(|a| *id > a) && theirs.until.is_none_or(|u| *id <= u);
        let mine: BTreeSet<EditId> = self.replica.entry_ids().into_iter().filter(within).collect();
        let told: BTreeSet<EditId> = theirs.ids.iter().copied().collect();
        let want: Vec<EditId> = told.difference(&mine).copied().collect();
        let Some(link) = self.links.get_mut(&tag) else { return };
        let before = link.out.entries.len();
        link.out.entries.extend(mine.difference(&told));
        let count = link.out.entries.len() - before;
        link.out.fall_behind();
        self.stats(tag).repaired += count as u64;
        if !want.is_empty() {
            self.send(tag, &Want { slots: Vec::new(), entries: want, ends: None }.into());
        }
    }

    /// Adds what was drained since position `began` to what is about to be sent: it came too late to be compared in this
    /// round, and what was compared may share a batch with it.
    fn with_later(&self, slots: &mut Vec<SlotId>, began: u64) {
        if !slots.is_empty() && self.replica.position() != began && !active(Fault::TornByRepair) {
            slots.extend(self.slots_since(began));
        }
    }

    /// Sends what the peer asks for; at the end of a round, says so.
    pub(crate) fn on_want(&mut self, tag: LinkTag, want: &Want) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        let mut slots: Vec<SlotId> =
            want.slots.iter().map(|n| SlotId(*n)).filter(|slot| self.replica.key(*slot).is_some()).collect();
        slots.iter().for_each(|slot| link.out.defined.remove(*slot));
        // Rounds end in the order they began: this frame belongs to the first, or to none.
        let began = link.repair.began.first_key_value().map_or(link.repair.latest, |(_, began)| *began);
        self.with_later(&mut slots, began);
        let Some(link) = self.links.get_mut(&tag) else { return };
        let count = slots.len() + want.entries.len();
        link.out.note(slots);
        link.out.entries.extend(want.entries.iter().filter(|id| self.replica.entry(**id).is_some()));
        if let Some(round) = want.ends {
            link.repair.began.retain(|begun, _| *begun > round);
            link.out.after.push(Repaired { round }.into());
            if link.repair.started.take_if(|(started, _)| *started == round).is_some() {
                link.out.completes = true;
                self.complete(tag);
            }
        }
        self.stats(tag).repaired += count as u64;
    }

    /// The starter has sent all that was wanted.
    pub(crate) fn on_repaired(&mut self, tag: LinkTag, round: u64) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        if link.repair.answering.take_if(|answering| *answering == round).is_some() {
            self.complete(tag);
        }
    }
}

/// Notes who is ahead in which slots of an entity.
fn compare(mine: Vec<SlotSummary>, mut told: BTreeMap<SlotKey, (u32, [Stamp; 3])>, found: &mut Suspects) {
    for slot in mine {
        let here = stamps(&slot);
        let there = told.remove(&slot.key);
        let life = slot.key.path.is_none();
        let theirs = there.map_or([Stamp::NONE; 3], |(_, stamps)| stamps);
        if ahead(life, here, theirs) {
            found.insert((Side::Here, slot.slot.0), (here, 0));
        }
        if let Some((number, theirs)) = there.filter(|(_, theirs)| ahead(life, *theirs, here)) {
            found.insert((Side::There, number), (theirs, 0));
        }
    }
    found.extend(told.into_values().map(|(number, theirs)| ((Side::There, number), (theirs, 0))));
}

/// The frames that tell the entities of a bucket.
fn entity_pages(round: u64, bucket: u8, all: &[(EntityId, Digest)]) -> Vec<Entities> {
    let page =
        |after, until, digests| Entities { round, bucket: Some(bucket), after, until, digests, last: false };
    let mut pages = Vec::new();
    let (mut after, mut rest) = (None, all);
    while rest.len() > ENTITIES_PAGE {
        let (now, later) = rest.split_at(ENTITIES_PAGE);
        let until = now.last().map(|(entity, _)| *entity);
        pages.push(page(after, until, now.to_vec()));
        (after, rest) = (until, later);
    }
    pages.push(page(after, None, rest.to_vec()));
    pages
}

/// The frames that tell the ids of all entries.
fn entry_pages(all: &[EditId]) -> Vec<EntryIds> {
    let mut pages = Vec::new();
    let (mut after, mut rest) = (None, all);
    while rest.len() > ENTRIES_PAGE {
        let (now, later) = rest.split_at(ENTRIES_PAGE);
        let until = now.last().copied();
        pages.push(EntryIds { after, until, ids: now.to_vec() });
        (after, rest) = (until, later);
    }
    pages.push(EntryIds { after, until: None, ids: rest.to_vec() });
    pages
}

/// One frame of a summary.
fn summary_frame(
    round: u64,
    entities: Vec<EntityId>,
    slots: &[SlotSummary],
    last: bool,
) -> Result<Frame, String> {
    let mut slots = slots.to_vec();
    slots.sort_unstable_by_key(|slot| slot.slot);
    let keys: Vec<(SlotId, SlotKey)> = slots.iter().map(|slot| (slot.slot, slot.key.clone())).collect();
    let keys = codec::encode_keys(&keys)?;
    Ok(Summary { round, entities, keys, stamps: slots.iter().map(stamps).collect(), last }.into())
}
