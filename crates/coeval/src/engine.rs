//! The machine that the I/O thread runs: nothing until the session's facts are known, the replication engine then.
use crate::gate::{self, Gate};
use crate::hub::Hub;
use crate::journal::{Desk, Holding};
use crate::notices::PeerEvent;
use crate::offline::Offline;
use coeval_merge::{Entered, Replica, World};
use coeval_quic::MonoClock;
use coeval_store::Store;
use coeval_sync::{Config, Effect, Input, LinkPeer, Machine, Notice, Now, Sync};
use coeval_time::{Clock, MonoTime, Observed, PingSample, SessionWall, WallDuration, WallRole};
use coeval_value::NodeId;
use parking_lot::Mutex;
use rand::RngCore;
use std::sync::Arc;

/// Samples of session wall time that a joiner takes outright before it settles.
pub(crate) const JOIN_SAMPLES: u64 = 8;

/// How well a joiner must know session wall time before it settles: well within the lead that writes are admitted with.
const JOIN_UNCERTAINTY: WallDuration = WallDuration::from_millis(500);

/// How long a node may be unreachable before it is lost. A silent link is given up after 10 s, so a program that is
/// gone without a word is lost 12 s, which is 2.4 heartbeats of 5 s (IEEE 1278.1), after it was last heard; 13 s at most,
/// where it had answered late before.
const LOST_AFTER_LINK: WallDuration = WallDuration::from_secs(2);

/// The engine, and what it tells the rest of the peer.
pub(crate) struct Engine {
    sync: Option<Sync<Store>>,
    me: LinkPeer,
    /// Who this peer is, for its other threads.
    node: Arc<Mutex<NodeId>>,
    /// Whether the addresses in `me` are those bound: others dial them, so nothing is said of this node before.
    reachable: bool,
    gate: Arc<Gate>,
    hub: Arc<Hub>,
    wall: Arc<SessionWall>,
    clock: Option<Arc<Clock>>,
    /// Drained position up to which the gate has learned the session's entries.
    learned: u64,
    /// Whether this peer joined, so that it adopts the session's time before it settles.
    joining: bool,
    /// Whether it came with a world of its own: then it takes time from whom it dialed, known to it or not.
    returning: bool,
    journal: Option<Desk>,
    offline: Offline,
}

impl Engine {
    pub(crate) fn new(
        me: LinkPeer,
        node: Arc<Mutex<NodeId>>,
        gate: Arc<Gate>,
        hub: Arc<Hub>,
        wall: Arc<SessionWall>,
        joining: bool,
    ) -> Self {
        let (sync, clock, journal) = (None, None, None);
        let (reachable, learned, returning) = (false, 0, false);
        let offline = Offline::new(me.node.incarnation, &[]);
        Self {
            sync,
            me,
            node,
            reachable,
            gate,
            hub,
            wall,
            clock,
            learned,
            joining,
            returning,
            journal,
            offline,
        }
    }

    /// Gives it a journal to keep; `returning` if one was there.
    #[must_use]
    pub(crate) fn with_journal(mut self, journal: Option<Desk>, returning: bool) -> Self {
        let earlier = journal.as_ref().map(Desk::earlier).unwrap_or_default();
        self.offline = Offline::new(self.me.node.incarnation, earlier);
        (self.journal, self.returning) = (journal, returning);
        self
    }

    /// Tells where this peer's socket is bound.
    pub(crate) fn bound_at(&mut self, address: std::net::SocketAddr) {
        if let Some(journal) = &mut self.journal {
            journal.bound_at(address);
        }
    }

    /// How the journal stands to what was written up to a position; `None` without one.
    pub(crate) fn journal_holding(&mut self, target: u64) -> Option<Holding> {
        let name = self.journal.as_ref()?.name();
        let status = self.with_sync(|sync| sync.log_status());
        let holds = status.as_ref().is_some_and(|status| status.durable >= Some(target));
        let failing = status.map_or(Some(format!("{name} was not begun")), |status| status.failing);
        Some(Holding { name, holds, failing })
    }

    /// Gives the journal what is for it, and the engine what the journal answers.
    fn keep(&mut self, effects: &mut Vec<Effect>, now: Now, rng: &mut dyn RngCore) {
        let Some(journal) = &self.journal else { return };
        loop {
            journal.take(effects);
            let answers = journal.answers();
            let Some(sync) = self.sync.as_mut().filter(|_| !answers.is_empty()) else { return };
            for answer in answers {
                effects.extend(sync.handle(answer, now, rng));
            }
        }
    }

    /// The replication engine; `None` before the session is known.
    fn sync(&mut self) -> Option<&mut Sync<Store>> {
        if self.sync.is_none() && self.reachable {
            let store = Arc::clone(self.gate.store()?);
            let wall = Arc::clone(&self.wall);
            self.clock = Some(Arc::clone(store.clock()));
            let session_wall = Box::new(move |mono: MonoTime| wall.at(mono));
            let first_samples = if self.joining { JOIN_SAMPLES } else { 0 };
            let config = Config { first_samples, lost_after: LOST_AFTER_LINK, ..Config::default() };
            let mut sync = Sync::new(store, self.me.clone(), session_wall, config);
            let me = self.me.node.incarnation;
            if self.journal.as_mut().is_some_and(|journal| journal.begin(&self.gate, me, &self.hub)) {
                sync.open_log();
            }
            self.sync = Some(sync);
        }
        self.sync.as_mut()
    }

    /// Tells where others can dial this peer: known once the socket is bound.
    pub(crate) fn reachable_at(
        &mut self,
        addresses: Vec<String>,
        now: Now,
        rng: &mut dyn RngCore,
    ) -> Vec<Effect> {
        self.me.addresses = addresses;
        self.reachable = true;
        // What was written before rang a bell that nobody answered.
        self.handle(Input::Wake, now, rng)
    }

    /// Sends what was written so far, then says to everyone that this peer leaves.
    pub(crate) fn leave(&mut self, now: Now, rng: &mut dyn RngCore) -> Vec<Effect> {
        let mut effects = self.handle(Input::Wake, now, rng);
        if let Some(sync) = self.sync() {
            sync.leave();
        }
        effects.extend(self.handle(Input::Wake, now, rng));
        // The driver closes the links when it shuts down, and waits until what is queued has gone.
        effects.retain(|effect| !matches!(effect, Effect::Close { .. }));
        effects
    }

    /// Calls `act` with the replication engine. Only called on opened peers, whose engine is there.
    pub(crate) fn with_sync<T>(&mut self, act: impl FnOnce(&mut Sync<Store>) -> T) -> T {
        act(self.sync().expect("an opened peer knows its session"))
    }

    /// Takes in what the engine noticed since the last call.
    pub(crate) fn notices(&mut self) {
        self.learn();
        if let Some(sync) = &self.sync {
            self.offline.acked(sync.acked_by_any());
        }
        while let Some(notice) = self.sync.as_mut().and_then(Sync::poll_notice) {
            match notice {
                Notice::PingSample { node, sample } => self.sample(node, sample),
                Notice::World { world, entered } => {
                    // What fell with the world that was left is told with the new one.
                    self.offline.forget();
                    self.tell_world(world, entered);
                }
                notice => {
                    self.note_author(&notice);
                    self.note_name(&notice);
                    self.note_absence(&notice);
                    self.hub.notice(notice);
                }
            }
        }
        for event in self.gate.store().map(|store| store.poll_events()).unwrap_or_default() {
            self.hub.store_event(event);
        }
        if let Some(clock) = &self.clock {
            clock.advance(self.wall.at(MonoClock::now()));
        }
    }

    fn tell_world(&self, world: World, entered: Entered) {
        let members = self.gate.members();
        let by = members.iter().find(|member| member.node.incarnation == world.author());
        let by = by
            .map(|member| member.node)
            .or_else(|| (world.author() == self.me.node.incarnation).then_some(self.me.node));
        tracing::info!(number = world.number, ?by, "the session went back to a checkpoint");
        let fallen = entered.fallen.into_iter().map(|key| (key.entity, key.path)).collect();
        let (left, sim, more) = (entered.left.number, world.sim, entered.more);
        let own = !entered.left.stamp.is_none() && entered.left.author() == self.me.node.incarnation;
        self.hub.tell(&PeerEvent::WorldRestored {
            world: world.number,
            by,
            sim,
            instead_of_own: own && left == world.number,
            fallen,
            more,
        });
    }

    /// Follows what this peer wrote while it was alone.
    fn note_absence(&mut self, notice: &Notice) {
        let (Some(store), Some(sync)) = (self.gate.store(), &self.sync) else { return };
        match notice {
            Notice::LinkUp { .. } => self.offline.linked(store, sync.node().incarnation),
            Notice::LinkDown { .. } if sync.is_alone() => self.offline.is_alone(),
            Notice::CaughtUp { .. } => {
                let gate = &self.gate;
                if let Some(report) = self.offline.caught_up(store, |writer| gate.name_of(writer)) {
                    self.hub.update(|state| state.offline_writes = Some(report.clone()));
                    self.hub.tell(&PeerEvent::OfflineWrites(report));
                }
            }
            _ => {}
        }
    }

    /// Readings of what a lost author wrote say since when it is lost.
    fn note_author(&self, notice: &Notice) {
        let Some(store) = self.gate.store() else { return };
        match notice {
            Notice::PeerUp { node, .. } => store.note_author(node.incarnation, None),
            Notice::PeerLost { node, .. } => {
                store.note_author(node.incarnation, Some(self.wall.at(MonoClock::now())));
            }
            _ => {}
        }
    }

    /// After a clone of this peer was found it is another member.
    fn note_name(&mut self, notice: &Notice) {
        let Notice::Renamed { node, .. } = *notice else { return };
        (self.me.node, *self.node.lock()) = (node, node);
        if let (Some(store), false) = (self.gate.store(), self.me.observer) {
            let (topic, value) = gate::member_record(node, &self.me.name);
            match store.add_record(topic, value) {
                Ok(entry) => self.gate.learn(&entry),
                Err(error) => tracing::warn!(%error, "the new name of this peer was not made known"),
            }
        }
    }

    fn learn(&mut self) {
        let Some(store) = self.gate.store() else { return };
        let position = store.position();
        if position == self.learned {
            return;
        }
        for entry in store.entries_since(self.learned) {
            self.gate.learn(&entry);
        }
        self.learned = position;
    }
}

impl Engine {
    /// Drains what was written so far, so that it is on its way; the position that covers it.
    pub(crate) fn flush_target(&mut self, now: Now, rng: &mut dyn RngCore) -> (u64, Vec<Effect>) {
        let effects = self.handle(Input::Wake, now, rng);
        if let Some(journal) = &self.journal {
            journal.sync();
        }
        (self.with_sync(|sync| sync.flush_target()), effects)
    }

    /// One exchange of timestamps with a peer: session wall time follows the reference.
    ///
    /// The reference is the present member that was admitted first. If there is no link to it, the linked member that
    /// was admitted first stands in.
    fn sample(&mut self, node: NodeId, sample: PingSample) {
        self.note_clock(node, sample);
        let members = self.gate.members();
        let mine = members.iter().position(|member| member.node == self.me.node);
        let linked = |member: &crate::gate::Member| {
            member.node == self.me.node
                || self.sync.as_ref().is_some_and(|sync| sync.link_to(member.node).is_some())
        };
        let reference = members.iter().position(linked);
        let now = MonoClock::now();
        let key = node.incarnation.0;
        if self.joining {
            // A peer becomes a member once it has settled: one that joins at the same time has no time to give.
            let settled =
                self.returning || members.is_empty() || members.iter().any(|member| member.node == node);
            if !settled {
                return;
            }
            if let Err(error) = self.wall.adopt(key, sample, now) {
                tracing::debug!(%error, "sample of session wall time not taken");
                return;
            }
            if self.wall.estimate(now).uncertainty.is_none_or(|bound| bound > JOIN_UNCERTAINTY) {
                // Taken from a peer that stood still, say. Settling on it would take hours to slew back.
                return;
            }
        } else if mine.is_some() && mine == reference {
            self.wall.set_role(WallRole::Reference);
        } else if reference.is_some_and(|index| members[index].node == node) {
            self.wall.set_role(WallRole::Follower);
            self.correct(key, sample, now);
        }
        self.hub.update(|state| state.clock_samples += 1);
    }

    /// How a peer's session clock stands to ours, for people who look: offset and its bound as in NTP (RFC 5905,
    /// section 8).
    fn note_clock(&self, node: NodeId, sample: PingSample) {
        let out = sample.t2.since(self.wall.at(sample.t1)).as_nanos();
        let back = self.wall.at(sample.t4).since(sample.t3).as_nanos();
        let offset = WallDuration::from_nanos(out / 2 - back / 2);
        let bound = WallDuration::from_nanos((out / 2 + back / 2).abs());
        self.hub.update(|state| state.clocks.insert(node, (offset, bound)));
    }

    fn correct(&mut self, key: u64, sample: PingSample, now: MonoTime) {
        match self.wall.observe(key, sample, now) {
            Ok(Observed::Stepped { before, after, .. }) => {
                tracing::warn!(%before, %after, "session wall time stepped forward");
                if let Some(clock) = &self.clock {
                    clock.session_stepped(before, after);
                }
                self.hub.tell(&PeerEvent::ClockStepped { before, after });
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "sample of session wall time not taken"),
        }
    }

    /// The joiner's time is adopted: from here on it only follows.
    pub(crate) fn settle(&mut self) {
        self.joining = false;
        self.wall.settle();
    }
}

impl Drop for Engine {
    /// The I/O thread is gone, in order or by a panic: writes fail from here on.
    fn drop(&mut self) {
        let panicked = std::thread::panicking();
        self.hub.stop(if panicked { "the I/O thread panicked" } else { "the peer has left the session" });
    }
}

impl Machine for Engine {
    fn handle(&mut self, input: Input, now: Now, rng: &mut dyn RngCore) -> Vec<Effect> {
        let mut effects = self.sync().map(|sync| sync.handle(input, now, rng)).unwrap_or_default();
        self.keep(&mut effects, now, rng);
        effects
    }

    fn next_timer(&self) -> Option<MonoTime> {
        self.sync.as_ref().and_then(Machine::next_timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::Inbox;
    use coeval_time::{Incarnation, SessionId, WallTime};
    use coeval_value::PeerId;

    /// A program that was far behind the session hears that its clock was stepped; a small error is slewed in silence.
    #[test]
    fn a_step_of_session_wall_time_is_told_and_a_slew_is_not() {
        let now = MonoClock::now();
        let start = WallTime::from_nanos(1_700_000_000_000_000_000);
        let wall = Arc::new(SessionWall::new(now, start, WallRole::Follower));
        wall.settle();
        let gate =
            Gate::new(SessionId::default(), Arc::clone(&wall), Box::new(|_| Err("never built".into())));
        let node = NodeId { peer: PeerId([1; 32]), incarnation: Incarnation(1) };
        let me = LinkPeer { node, name: "b".into(), addresses: Vec::new(), observer: false };
        let hub = Arc::new(Hub::default());
        let inbox = Arc::new(Inbox::new(8));
        hub.listen(&inbox);
        let mut engine = Engine::new(me, Arc::new(Mutex::new(node)), Arc::new(gate), hub, wall, false);
        // Asked `at` after `now`, answered within `rtt`, by one whose clock is `ahead`.
        let mut hear = |at: WallDuration, rtt: WallDuration, ahead: WallDuration| {
            let mono = |after: WallDuration| MonoTime::from_nanos(now.as_nanos() + after.as_nanos() as u64);
            let half = WallDuration::from_nanos(rtt.as_nanos() / 2);
            let there = [at, half, ahead].into_iter().fold(start, WallTime::saturating_add);
            let back = mono(WallDuration::from_nanos(at.as_nanos() + rtt.as_nanos()));
            engine.correct(7, PingSample { t1: mono(at), t2: there, t3: there, t4: back }, back);
        };
        let ms = WallDuration::from_millis;
        hear(ms(0), ms(2), ms(5));
        assert_eq!(inbox.poll(), None);
        hear(ms(1_000), ms(1), ms(3_000));
        let Some(PeerEvent::ClockStepped { before, after }) = inbox.poll() else { panic!("not told") };
        assert!(
            (2_900_000_000..=3_000_000_000).contains(&after.since(before).as_nanos()),
            "{before} {after}"
        );
        assert_eq!(inbox.poll(), None);
    }
}
