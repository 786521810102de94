//! Worlds: restoring a checkpoint, and following those who did.
//!
//! Every side of a link says in its hello which world it is in, and says hello again when it has gone to another. Frames
//! of a link arrive in order, so what follows a hello is of that world, and a side sends content only after it has heard
//! a hello of its own world. Who hears of a newer world than its own *fetches* it: over one link, kept aside until the
//! mark, then entered all at once; the other links wait meanwhile. Then it says hello to everyone, and each pair compares
//! digests as if newly linked. What comes of an older world is inert: its records are taken, all else is counted and
//! told to the sender.
use crate::Sync;
use crate::codec;
use crate::link::{Held, Link, Mode, NOWHERE};
use crate::notice::Notice;
use crate::pump::Unit;
use crate::receive::{Units, empty_ack};
use crate::repair::Repair;
use coeval_merge::{Content, Entry, EntryBody, LinkTag, Refusal, Replica, SlotId, SlotState, World};
use coeval_time::StampError;
use coeval_value::EntityId;
use coeval_wire::Frame;
use coeval_wire::frame::{Ack, Fetch, Hello, Mark};
use std::cmp::Ordering;

/// Why a checkpoint was not restored; nothing changed.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum RestoreError {
    /// Observers write nothing.
    #[error("this peer observes: it reads, and restores nothing")]
    Observer,
    /// The checkpoint does not fit.
    #[error("entity {entity} of the checkpoint does not fit into this replica ({refusal}): raise its limits")]
    Refused {
        /// The entity.
        entity: EntityId,
        /// Why.
        refusal: Refusal,
    },
    /// The hybrid clock is at its end.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// A scale that is not finite, or more worlds than can be counted.
    #[error("no world can begin there: scale {scale}, after world {number}")]
    Unsound {
        /// The scale of the checkpoint.
        scale: f64,
        /// The number of the world that it would come after.
        number: u64,
    },
}

/// The world that is being fetched, and from whom.
#[derive(Clone, Copy)]
pub(crate) struct Fetching {
    link: LinkTag,
    world: World,
}

/// What this node does about other worlds.
#[derive(Default)]
pub(crate) struct Following {
    pub(crate) fetching: Option<Fetching>,
    /// Whether a hello of a newer world waits.
    behind: bool,
}

fn is_record(entry: &Entry) -> bool {
    matches!(entry.body, EntryBody::Record { .. })
}

impl Link {
    /// One of the two sides goes to another world: all that is under way belongs to the one before. Returns what does
    /// not.
    fn part(&mut self) -> Vec<Entry> {
        let mut records = std::mem::take(&mut self.inc.entries);
        records.retain(is_record);
        self.inc.states.clear();
        self.inc.asked.clear();
        (self.inc.staged_bytes, self.inc.reached) = (0, 0);
        self.inc.complete = false;
        self.out.mode = Mode::Greeting;
        self.out.dirty.clear();
        self.out.held = Held::default();
        self.out.entries.clear();
        self.out.after.clear();
        (self.out.caught_up, self.out.completes, self.out.past) = (false, false, None);
        self.repair = Repair::default();
        records
    }
}

impl<R: Replica> Sync<R> {
    /// Goes to a new world whose content is `content`, and takes the session along: everyone who hears of it follows.
    /// Of several made at once the greatest wins.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing changed.
    pub fn restore(&mut self, content: Content) -> Result<World, RestoreError> {
        if self.me.observer {
            return Err(RestoreError::Observer);
        }
        self.pump();
        let (here, sim, scale) = (self.replica.world(), content.sim, content.scale);
        let number = here.number.checked_add(1).filter(|_| scale.is_finite());
        let number = number.ok_or(RestoreError::Unsound { scale, number: here.number })?;
        let mut slots = Vec::with_capacity(content.states.len());
        for (key, _) in &content.states {
            let refused = |refusal| RestoreError::Refused { entity: key.entity, refusal };
            slots.push(self.replica.resolve(key).map_err(refused)?);
        }
        let stamp = self.replica.issue(self.session_wall())?;
        let world = World { number, stamp, sim, scale };
        let content = content.moved(Content::CURRENT, world.epoch());
        self.parking.forget_world();
        let states = slots.into_iter().zip(content.states).map(|(slot, (_, state))| (slot, state));
        self.go(world, states.collect(), Vec::new());
        self.greet_anew();
        Ok(world)
    }

    /// Enters a world; what was under way belongs to the one before.
    fn go(&mut self, world: World, states: Vec<(SlotId, SlotState)>, entries: Vec<Entry>) {
        let Some(entered) = self.replica.enter(world, states, entries) else { return };
        self.cursors.clear();
        self.passing.clear();
        self.parked_entries.retain(|(_, entry)| is_record(entry));
        self.following.fetching = None;
        for tag in self.tags() {
            self.part(tag);
        }
        // A file of the log is of one world.
        self.restart_log();
        self.notices.push_back(Notice::World { world, entered });
        self.applied = true;
    }

    fn part(&mut self, tag: LinkTag) {
        let records = self.links.get_mut(&tag).map(Link::part).unwrap_or_default();
        self.apply(tag, Units::new(), records);
    }

    /// Says hello again on every link where it was said before.
    fn greet_anew(&mut self) {
        for tag in self.tags() {
            if self.links.get(&tag).is_some_and(|link| link.greeting.is_some()) {
                self.greet(tag);
            }
        }
    }

    /// Notes the world that a peer's hello tells, its first one or a later one.
    pub(crate) fn hear_world(&mut self, tag: LinkTag, hello: &Hello) -> Result<(), String> {
        let Some(world) = hello.world.world() else {
            return Err("a hello of no world that can be".to_owned());
        };
        let Some(link) = self.links.get_mut(&tag) else { return Ok(()) };
        let before = link.inc.world.replace(world);
        link.inc.greeted = true;
        match before {
            Some(before) if world <= before => Err("a second hello".to_owned()),
            Some(_) => {
                if self.following.fetching.is_some_and(|fetching| fetching.link == tag) {
                    self.following.fetching = None;
                }
                self.part(tag);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes a hello once this side has said its own: greets a peer of the same world.
    pub(crate) fn take_hello(&mut self, tag: LinkTag, hello: &Hello) -> Result<(), String> {
        let Some(world) = self.links.get(&tag).and_then(|link| link.inc.world) else { return Ok(()) };
        match world.cmp(&self.replica.world()) {
            Ordering::Equal => self.on_hello(tag, hello)?,
            // It follows once it has this side's hello.
            Ordering::Less => {}
            Ordering::Greater => {
                if let Some(link) = self.links.get_mut(&tag) {
                    link.held = Some(hello.clone());
                }
                self.following.behind = true;
            }
        }
        Ok(())
    }

    /// Whether both ends of a link are in one world.
    pub(crate) fn shares_world(&self, tag: LinkTag) -> bool {
        self.links.get(&tag).is_some_and(|link| link.inc.world == Some(self.replica.world()))
    }

    /// Whether a newer world comes over this link.
    pub(crate) fn fetches_from(&self, tag: LinkTag) -> bool {
        self.following.fetching.is_some_and(|fetching| fetching.link == tag)
    }

    /// Fetches the newest world that was heard of, if there is a newer one than this.
    ///
    /// One whose stamp is further ahead of session time than a write may be has to wait, as such a write has.
    pub(crate) fn follow(&mut self) {
        if !self.following.behind {
            return;
        }
        let here = self.replica.world();
        let newer = |link: &Link| link.held.as_ref().and(link.inc.world).filter(|world| *world > here);
        self.following.behind = self.links.values().any(|link| newer(link).is_some());
        let limit = self.session_wall().saturating_add(self.config.lead);
        // Observers pass nothing on.
        let sources = self.links.iter().filter(|(_, link)| !link.peer.observer && link.greeting.is_some());
        let worlds = sources.filter_map(|(tag, link)| Some((newer(link)?, *tag)));
        let Some((world, link)) = worlds.filter(|(world, _)| world.stamp.wall() <= limit).max() else {
            return;
        };
        let under_way = |old: &Fetching| old.world >= world && self.links.contains_key(&old.link);
        if self.following.fetching.is_some_and(|old| under_way(&old)) {
            return;
        }
        if let Some(old) = self.following.fetching.take() {
            self.part(old.link);
        }
        self.following.fetching = Some(Fetching { link, world });
        self.send(link, &Fetch { world: world.into() }.into());
    }

    /// Sends everything to a peer that follows.
    pub(crate) fn on_fetch(&mut self, tag: LinkTag, fetch: &Fetch) {
        let here = self.replica.world();
        let follows = |link: &Link| link.inc.world.is_some_and(|world| world < here);
        if fetch.world.world() == Some(here) && !self.me.observer && self.links.get(&tag).is_some_and(follows)
        {
            self.start(tag, Mode::Snapshot(SlotId(0)), 0, true);
            self.applied = true;
        }
    }

    /// Takes a frame of content of another world than this: a part of the one that is fetched, or inert.
    pub(crate) fn other_world(&mut self, tag: LinkTag, frame: &Frame) -> Result<(), String> {
        let fetched = self.fetches_from(tag);
        match frame {
            Frame::Delta(delta) if fetched => self.on_delta(tag, delta),
            Frame::Entries(entries) if fetched => self.on_entries(tag, &entries.entries),
            Frame::Mark(mark) if fetched && mark.caught_up => {
                self.arrive(tag, mark);
                Ok(())
            }
            Frame::Delta(delta) => {
                let count = codec::decode_states(&delta.states)?.len() as u64;
                self.stats(tag).inert += count;
                if let Some(link) = self.links.get_mut(&tag) {
                    link.inc.inert = link.inc.inert.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
                }
                Ok(())
            }
            Frame::Entries(entries) => {
                let mut entries = codec::decode_entries(&entries.entries)?;
                entries.retain(is_record);
                self.apply(tag, Units::new(), entries);
                Ok(())
            }
            Frame::Mark(mark) => {
                let inert = self.links.get_mut(&tag).map_or(0, |link| std::mem::take(&mut link.inc.inert));
                self.send(tag, &Ack { position: mark.position, inert, ..empty_ack() }.into());
                Ok(())
            }
            // What compares worlds has nothing to compare.
            _ => Ok(()),
        }
    }

    /// All of the fetched world is here: enters it.
    fn arrive(&mut self, tag: LinkTag, mark: &Mark) {
        let Some(Fetching { world, .. }) = self.following.fetching.take() else { return };
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.inc.staged_bytes = 0;
        let (units, entries) = (std::mem::take(&mut link.inc.states), std::mem::take(&mut link.inc.entries));
        let mut states: Vec<(SlotId, SlotState)> = units.into_values().flatten().collect();
        let whole = states.len();
        states.retain(|(slot, _)| *slot != NOWHERE);
        let refused = u32::try_from(whole - states.len()).unwrap_or(u32::MAX);
        self.pump();
        self.parking.forget_world();
        let split = self.park(tag, states, entries);
        let parked = std::mem::take(&mut self.parked_entries);
        self.go(world, split.states, split.entries);
        if !split.parked.is_empty() {
            self.passing.push(Unit { link: tag, root: None, states: split.parked, overtook: false });
        }
        self.parked_entries.extend(parked);
        self.stats(tag).refused += u64::from(refused);
        let ack = Ack { position: mark.position, refused, parked: split.outside, ..empty_ack() };
        self.send(tag, &ack.into());
        self.reached(tag, mark.position);
        self.complete(tag);
        self.greet_anew();
    }
}
