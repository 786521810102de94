//! A peer: one opened place in a session, with a full replica of the world.
use crate::clock::SimClock;
use crate::entered::Entered;
use crate::entity::Entity;
use crate::events::Events;
use crate::gate::{self, Terms};
use crate::inbox::{self, Inbox};
use crate::info::{PeerInfo, WallReading};
use crate::journal::{Holding, JournalOptions};
use crate::notices::{NOTICE_QUEUE, PeerNotices};
use crate::options::{HostOptions, InviteOptions, JoinOptions, RehostOptions};
use crate::shared::Shared;
use crate::{Batch, Error, ErrorKind, OfflineWrites, Result, Watch};
use coeval_merge::{Digest, Replica};
use coeval_quic::{Conditioner, Invite, InviteId, MonoClock, SessionInfo};
use coeval_store::{Counters, Reading, Snapshot};
use coeval_sync::{Input, Machine, PeerState, PeerStatus};
use coeval_time::{Context, SessionId, WallDuration, WallTime};
use coeval_value::{EntityId, NodeId, Path, SIM_ENTITY, Value};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A place in a session. Cheap to clone; the session is left when the last clone is dropped.
///
/// Reads and writes happen at memory speed on the calling thread. The few calls that wait are named in the documentation
/// of the [crate](crate#threads).
#[derive(Clone)]
pub struct Peer {
    shared: Arc<Shared>,
    /// Dropped last: ends the I/O thread.
    owner: Arc<Owner>,
}

struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.stop("the peer has left the session", Duration::from_millis(500));
    }
}

impl Peer {
    pub(crate) fn new(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        Self { owner: Arc::new(Owner { shared: Arc::clone(&shared) }), shared }
    }

    /// Options to open a new session called `name`.
    pub fn host(name: impl Into<String>) -> HostOptions {
        HostOptions::new(name.into())
    }

    /// Options to join the session of `invite`.
    pub fn join(invite: Invite) -> JoinOptions {
        JoinOptions::new(invite)
    }

    /// Options to open a session again from its journal: the same session with the same key and identity, so that invites
    /// made before still work, and with all that the journal holds. Whoever kept a journal of the session can do so.
    ///
    /// Sim time goes on from the session's start as if it had never stopped: pause the clock first, or jump back, if that
    /// is not wanted.
    pub fn rehost(journal: impl Into<JournalOptions>) -> RehostOptions {
        RehostOptions::new(journal.into())
    }

    /// Reads the clock once: the time that this thread reads and writes at.
    pub fn context(&self) -> Context {
        self.shared.context()
    }

    /// Enters `context` on this thread, until what is returned is dropped: [`current`](crate::current) gives it to code
    /// that is not handed one. Contexts nest; the clock is not read.
    pub fn enter(&self, context: Context) -> Entered {
        Entered::new(context)
    }

    /// The sim clock.
    pub fn clock(&self) -> SimClock {
        SimClock::new(Arc::clone(&self.shared))
    }

    /// Events and commands.
    pub fn events(&self) -> Events {
        Events::new(Arc::clone(&self.shared))
    }

    /// Subscribes to what happens from now on to the session and the replica as a whole.
    pub fn notices(&self) -> PeerNotices {
        let inbox = Arc::new(Inbox::new(NOTICE_QUEUE));
        self.shared.hub.listen(&inbox);
        PeerNotices(inbox)
    }

    /// What became of what this peer wrote while it was alone, or before it came back from its journal: as told when it
    /// caught up last. `None` if it never was. [`PeerEvent::OfflineWrites`](crate::PeerEvent::OfflineWrites) tells the
    /// same when it happens.
    pub fn offline_writes(&self) -> Option<OfflineWrites> {
        self.shared.hub.look(|state| state.offline_writes.clone())
    }

    /// Which session, from what it started.
    pub fn session(&self) -> SessionInfo {
        self.shared.gate.session_info().unwrap_or_else(|| SessionInfo {
            session: SessionId::default(),
            genesis: *self.shared.clock.genesis(),
            config_digest: None,
            data: bytes::Bytes::new(),
        })
    }

    /// The session's name, as its first host gave it.
    pub fn session_name(&self) -> String {
        String::from_utf8_lossy(&self.session().data).into_owned()
    }

    /// Why this peer takes part no more; `None` while it does.
    pub fn stopped(&self) -> Option<&str> {
        self.shared.hub.stopped()
    }

    /// Who this peer is. The incarnation changes when a clone of this peer was found
    /// ([`PeerEvent::Forked`](crate::PeerEvent::Forked)).
    pub fn node(&self) -> NodeId {
        self.shared.node()
    }

    /// This peer's name, a label.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Where others can dial this peer.
    pub fn listen_addresses(&self) -> Vec<SocketAddr> {
        self.shared.io.listen_addresses()
    }

    /// Session wall time, and how well it is known.
    pub fn wall(&self) -> WallReading {
        let mono = MonoClock::now();
        let estimate = self.shared.wall.estimate(mono);
        WallReading {
            now: self.shared.wall.at(mono),
            offset_to_os: estimate.offset_to_os,
            uncertainty: estimate.uncertainty,
        }
    }

    /// Makes an entity called `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] when a live entity of that name is known. Two peers that create the same name at once both
    /// succeed; looking it up by name is an error from then on that lists both.
    pub fn create_entity(&self, name: &str) -> Result<Entity> {
        self.shared.check_writable()?;
        let id = self.fresh_id();
        self.shared.store.create_entity(self.context(), id, Some(name))?;
        Ok(self.handle(id))
    }

    /// Makes an entity without a name.
    pub fn create_unnamed(&self) -> Result<Entity> {
        self.shared.check_writable()?;
        let id = self.fresh_id();
        self.shared.store.create_entity(self.context(), id, None)?;
        Ok(self.handle(id))
    }

    /// The live entity called `name`.
    pub fn entity(&self, name: &str) -> Result<Entity> {
        let id = self.shared.store.entity_named(name)?;
        Ok(self.handle(id))
    }

    /// The entity with this id.
    pub fn entity_by_id(&self, id: EntityId) -> Result<Entity> {
        if self.shared.store.exists(id) {
            return Ok(self.handle(id));
        }
        Err(Error::new(ErrorKind::NotFound, format!("no entity {id}: it was not created, or it was deleted")))
    }

    /// The `SimEntity`: exists in every session, cannot be deleted, takes no systems.
    pub fn sim_entity(&self) -> Entity {
        self.handle(SIM_ENTITY)
    }

    /// All live entities, in id order.
    pub fn entities(&self) -> Vec<Entity> {
        self.shared.store.entities().into_iter().map(|id| self.handle(id)).collect()
    }

    /// A batch: several writes that every reader sees all of or none of.
    pub fn batch(&self, context: Context) -> Batch {
        Batch::new(Arc::clone(&self.shared), context)
    }

    /// Watches what matches `pattern`, a glob `ENTITY/KEY/…`.
    pub fn watch(&self, pattern: &str) -> Result<Watch> {
        Watch::new(Arc::clone(&self.shared), pattern)
    }

    /// Many parameters at one context, each with its quality or its own error, in the order asked for.
    pub fn read_many<'a>(
        &self,
        context: Context,
        parameters: impl IntoIterator<Item = (EntityId, &'a Path)>,
    ) -> Vec<Result<Reading<Value>>> {
        let readings = self.shared.store.read_many(context, parameters);
        readings.into_iter().map(|reading| reading.map_err(Error::from)).collect()
    }

    /// An immutable view of the world, cheap to hold.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.store.snapshot()
    }

    /// What this replica kept out of the world or did not show, and why. What peers sent is counted by peer, in
    /// [`peers`](Self::peers).
    pub fn counters(&self) -> Counters {
        self.shared.store.counters()
    }

    /// Digest of the replica: equal on two peers exactly when their worlds are, once what was written has arrived.
    ///
    /// Speaks of all that this thread has written: it waits for the I/O thread to take that up. Once that thread is gone,
    /// of what it took up last.
    pub fn digest(&self) -> Digest {
        // Fails only when the I/O thread is gone, and then nothing is taken up any more.
        let _ = self.shared.io.ask(|engine, now, rng| ((), engine.handle(Input::Wake, now, rng)));
        self.shared.store.digest()
    }

    /// The other peers, in node order. Those that left, and those that were given up, are not among them: one that died
    /// without a word, 12 s after it was last heard, 13 s at most.
    pub fn peers(&self) -> Vec<PeerInfo> {
        let told = self.shared.io.ask(|engine, _, _| (engine.with_sync(|sync| sync.peers()), Vec::new()));
        let (clocks, present) = self.shared.hub.look(|state| (state.clocks.clone(), state.present.clone()));
        let here =
            |status: &PeerStatus| status.state != PeerState::Unreachable || present.contains(&status.node);
        let describe = |status: PeerStatus| {
            let clock = clocks.get(&status.node).copied();
            let (clock_offset, clock_uncertainty) =
                (clock.map(|(offset, _)| offset), clock.map(|(_, bound)| bound));
            PeerInfo { clock_offset, clock_uncertainty, ..status.into() }
        };
        told.map(|peers| peers.into_iter().filter(here).map(describe).collect()).unwrap_or_default()
    }

    /// An invite for contributors: valid for a day, for any number of joiners.
    pub fn invite(&self) -> Result<Invite> {
        self.invite_with(InviteOptions::default())
    }

    /// An invite on the terms given.
    pub fn invite_with(&self, options: InviteOptions) -> Result<Invite> {
        self.shared.check_writable()?;
        let info = self.session();
        let expires =
            (self.shared.now().as_nanos() / 1_000_000_000).saturating_add(options.expires_in.as_secs());
        let terms = Terms {
            id: InviteId(rand::random()),
            secret: coeval_quic::Secret::generate(),
            expires,
            uses: options.uses,
            observer: options.observer,
        };
        self.shared.add_record(gate::invite_record(&terms))?;
        Ok(Invite {
            version: coeval_quic::invite::VERSION,
            session: info.session,
            addresses: self.listen_addresses(),
            host_key: self.shared.node().peer,
            id: terms.id,
            secret: terms.secret,
            expires: terms.expires,
            config_digest: info.config_digest,
        })
    }

    /// Withdraws an invite: from when a peer hears of it, it admits nobody by it any more.
    pub fn revoke(&self, invite: InviteId) -> Result<()> {
        self.shared.check_writable()?;
        if !self.shared.gate.knows_invite(invite) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no invite {:016x} is known here", invite.0),
            ));
        }
        self.shared.add_record(gate::revoke_record(invite))
    }

    /// Waits until all connected peers, and the journal if there is one, have everything written here so far, for at most
    /// `timeout`. With a journal, a peer that is alone can flush: what it wrote survives its end.
    ///
    /// # Errors
    /// [`ErrorKind::NoPeers`] when nobody is connected and there is no journal; [`ErrorKind::Journal`] when the journal
    /// cannot be written (the peers, if there are any, have everything); [`ErrorKind::Timeout`] names the peers that have not;
    /// [`ErrorKind::Refused`] those that refused something, until they hold it all the same.
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        self.flush_where(None, timeout)
    }

    /// As [`flush`](Self::flush), for the peers named only. One of them that has no link of its own to this peer counts
    /// as not having it: it is waited for.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn flush_to(&self, nodes: &[NodeId], timeout: Duration) -> Result<()> {
        self.flush_where(Some(nodes), timeout)
    }

    fn flush_where(&self, named: Option<&[NodeId]>, timeout: Duration) -> Result<()> {
        self.shared.check_running()?;
        let deadline = inbox::deadline(timeout);
        let target = self.shared.io.ask(|engine, now, rng| engine.flush_target(now, rng))?;
        loop {
            let ask = self.shared.io.ask(move |engine, _, _| {
                let holding = engine.journal_holding(target);
                let (flushed, peers) = engine.with_sync(|sync| (sync.flushed(target), sync.peers()));
                ((flushed, peers, holding), Vec::new())
            });
            let (flushed, peers, holding) = ask?;
            // The journal is one that must have it, unless others were named.
            let journal = holding.filter(|_| named.is_none());
            if flushed.is_empty() && journal.is_none() {
                return Err(Error::new(
                    ErrorKind::NoPeers,
                    "no other peer is connected: nobody has what was written",
                ));
            }
            let refusing: BTreeSet<NodeId> =
                peers.iter().filter(|peer| peer.refusing).map(|peer| peer.node).collect();
            // Who refuses is not waited for, but told of.
            let lacks = |node: &&NodeId| flushed.get(*node) != Some(&true) && !refusing.contains(*node);
            let waiting: Vec<NodeId> = match named {
                None => flushed.keys().filter(lacks).copied().collect(),
                Some(nodes) => {
                    nodes.iter().filter(lacks).copied().filter(|node| *node != self.node()).collect()
                }
            };
            let unkept = journal.filter(|journal| !journal.holds);
            match unkept {
                None if waiting.is_empty() => return self.check_refusals(named, refusing),
                Some(Holding { failing: Some(why), .. }) if waiting.is_empty() => {
                    let message = format!("what was written is not in the journal: {why}");
                    return Err(Error::new(ErrorKind::Journal, message));
                }
                unkept if Instant::now() >= deadline => {
                    let names = self.names(waiting).into_iter().chain(unkept.map(|journal| journal.name));
                    let names = names.collect::<Vec<_>>().join(", ");
                    let message = format!("not acknowledged within {timeout:?} by {names}");
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Fails when one of the named (or all) peers refuses something.
    fn check_refusals(&self, named: Option<&[NodeId]>, refusing: BTreeSet<NodeId>) -> Result<()> {
        let asked = |node: &NodeId| named.is_none_or(|nodes| nodes.contains(node));
        let refusing: Vec<NodeId> = refusing.into_iter().filter(asked).collect();
        if refusing.is_empty() {
            return Ok(());
        }
        let names = self.names(refusing).join(", ");
        let message =
            format!("refused by {names}: a limit of the replica there is reached; raise it, or write less");
        Err(Error::new(ErrorKind::Refused, message))
    }

    /// Waits until the journal, if there is one, holds what was written: peers may lack it.
    pub(crate) fn await_journal(&self, timeout: Duration) -> Result<()> {
        let deadline = inbox::deadline(timeout);
        let target = self.shared.io.ask(|engine, now, rng| engine.flush_target(now, rng))?;
        loop {
            match self.shared.io.ask(move |engine, _, _| (engine.journal_holding(target), Vec::new()))? {
                None | Some(Holding { holds: true, .. }) => return Ok(()),
                Some(Holding { failing: Some(why), .. }) => return Err(Error::new(ErrorKind::Journal, why)),
                Some(Holding { name, .. }) if Instant::now() >= deadline => {
                    return Err(Error::new(
                        ErrorKind::Timeout,
                        format!("{name} was not written within {timeout:?}"),
                    ));
                }
                Some(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn names(&self, nodes: Vec<NodeId>) -> Vec<String> {
        let name =
            |node: NodeId| self.shared.gate.name_of(node.incarnation).unwrap_or_else(|| node.to_string());
        nodes.into_iter().map(name).collect()
    }

    /// Leaves the session: what was written goes out first, within `timeout`. Other clones of this peer stop working.
    pub fn leave(self, timeout: Duration) -> Result<()> {
        let flushed = match self.flush(timeout) {
            Err(error) if error.kind() == ErrorKind::NoPeers => Ok(()),
            other => other,
        };
        self.shared.stop("the peer has left the session", timeout);
        flushed
    }

    /// Makes what this peer sends suffer from now on, or no more (the default conditions): for trying bad networks while
    /// a session runs. A loss of 1 cuts it off.
    pub fn set_conditioner(&self, conditions: Conditioner) {
        self.shared.io.conditioner().set(conditions);
    }

    /// Session wall time `by` from now, for edits that are to take effect everywhere at one instant.
    pub fn wall_in(&self, by: WallDuration) -> WallTime {
        self.shared.now().saturating_add(by)
    }

    /// What all handles of this peer share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn handle(&self, id: EntityId) -> Entity {
        Entity::new(Arc::clone(&self.shared), id)
    }

    fn fresh_id(&self) -> EntityId {
        EntityId::v7(self.shared.now().as_nanos() / 1_000_000, rand::random())
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer")
            .field("name", &self.shared.name)
            .field("node", &self.shared.node())
            .field("clones", &Arc::strong_count(&self.owner))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody would hear of what is written then; what is here can still be read.
    #[test]
    fn after_a_panic_of_the_io_thread_reads_work_and_writes_say_stopped() {
        let peer = Peer::host("a").open().unwrap();
        let base = peer.create_entity("base").unwrap();
        let param = base.param::<i64>("x").unwrap();
        param.set(peer.context(), 1).unwrap();
        let (early, early_notices) = (peer.events().subscribe("*"), peer.notices());
        let called = peer.shared.io.call(|_, _, _| panic!("a test breaks the I/O thread"));
        called.unwrap();
        peer.shared.hub.wait_until(Instant::now() + Duration::from_secs(30), |_| peer.stopped().map(drop));
        assert!(peer.stopped().unwrap().contains("panicked"), "{:?}", peer.stopped());
        assert_eq!(param.set(peer.context(), 2).unwrap_err().kind(), ErrorKind::Stopped);
        assert_eq!(peer.flush(Duration::MAX).unwrap_err().kind(), ErrorKind::Stopped);
        assert_eq!(
            peer.events().send("t", crate::Target::All, 1_i64).unwrap_err().kind(),
            ErrorKind::Stopped
        );
        assert_eq!(param.get(peer.context()).unwrap(), 1);
        // Nothing comes any more, and whoever waits, or begins to, is not kept waiting.
        assert!(early.wait(Duration::MAX).is_none() && early_notices.wait(Duration::MAX).is_none());
        assert!(peer.events().subscribe("*").wait(Duration::MAX).is_none());
        assert!(peer.notices().wait(Duration::MAX).is_none());
    }
}
