//! Reading a log back into a replica.
use crate::codec;
use coeval_merge::{Entry, LinkTag, Replica, SlotId, SlotState, World};
use coeval_time::Stamp;
use coeval_wire::Frame;
use std::collections::HashMap;

/// The link that what a log holds is said to have come by; no driver uses it.
pub const LOG_LINK: LinkTag = LinkTag(u64::MAX);

/// Takes the messages of one file of a log, in order, and applies them to a replica, mark by mark.
///
/// What comes after the last mark is never applied. The replica must be the one that is given each time.
#[derive(Default)]
pub struct Replay {
    /// The file's numbers; `None`: this replica refused the slot. Looked up, never iterated.
    numbers: HashMap<u32, Option<SlotId>, foldhash::fast::FixedState>,
    states: Vec<(SlotId, SlotState)>,
    entries: Vec<Entry>,
    refused: u64,
    /// The world that the states up to the first mark are the content of.
    world: Option<World>,
}

impl Replay {
    /// Before the first message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// What is wrong with it, in words; nothing of it, and nothing since the last mark, was applied.
    pub fn message<R: Replica>(&mut self, replica: &R, bytes: &[u8]) -> Result<(), String> {
        match Frame::decode(bytes).map_err(|error| error.to_string())? {
            Frame::Define(define) => {
                for (number, key) in codec::decode_keys(&define.keys)? {
                    self.numbers.insert(number.0, replica.resolve(&key).ok());
                }
            }
            Frame::Delta(delta) => {
                for (number, state) in codec::decode_states(&delta.states)? {
                    match self.numbers.get(&number.0) {
                        Some(Some(slot)) => self.states.push((*slot, state)),
                        Some(None) => self.refused += 1,
                        None => return Err(format!("slot {} was never defined", number.0)),
                    }
                }
            }
            Frame::Entries(entries) => self.entries.extend(codec::decode_entries(&entries.entries)?),
            Frame::Mark(_) => self.apply(replica),
            Frame::Fetch(fetch) => {
                let world = fetch.world.world().ok_or("a log of no world that can be")?;
                self.world = Some(world);
            }
            other => return Err(format!("a {} frame in a log", other.name())),
        }
        Ok(())
    }

    /// Fragments that the replica refused so far: its limits are lower than those it was written under.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The newest stamp in a message ([`Stamp::NONE`] for one without).
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn newest_in(bytes: &[u8]) -> Result<Stamp, String> {
        let newest = match Frame::decode(bytes).map_err(|error| error.to_string())? {
            Frame::Delta(delta) => {
                codec::decode_states(&delta.states)?.iter().map(|(_, state)| state.newest()).max()
            }
            Frame::Entries(entries) => {
                codec::decode_entries(&entries.entries)?.iter().map(|entry| entry.id.stamp).max()
            }
            Frame::Fetch(fetch) => Some(fetch.world.stamp),
            _ => None,
        };
        Ok(newest.unwrap_or(Stamp::NONE))
    }

    fn apply<R: Replica>(&mut self, replica: &R) {
        let (states, entries) = (std::mem::take(&mut self.states), std::mem::take(&mut self.entries));
        let stamps = states.iter().map(|(_, state)| state.newest());
        let newest = stamps.chain(entries.iter().map(|entry| entry.id.stamp)).max();
        if let Some(newest) = newest.filter(|stamp| !stamp.is_none()) {
            replica.register(newest);
        }
        if let Some(world) = self.world.take() {
            replica.enter(world, states, entries);
            return;
        }
        let applied = replica.apply(LOG_LINK, &states, entries);
        self.refused += applied.refused.len() as u64;
    }
}
