//! What the handles of a peer share: peers, entities, parameters, the clock, events.
use crate::engine::Engine;
use crate::gate::Gate;
use crate::hub::Hub;
use crate::{Error, ErrorKind, Result, inbox};
use coeval_quic::{Io, MonoClock};
use coeval_store::{ReadError, Store};
use coeval_sync::{EventId, Input, Machine, Reply, Target};
use coeval_time::{Clock, Context, SessionWall, SimTime, WallTime};
use coeval_value::{EntityId, NodeId, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// What all handles of a peer share; outlives the I/O thread.
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) wall: Arc<SessionWall>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) io: Io<Engine>,
    pub(crate) node: Arc<Mutex<NodeId>>,
    pub(crate) name: String,
    /// Whether this peer only reads.
    pub(crate) observer: bool,
}

impl Shared {
    /// Who this peer is: another incarnation after a clone of it was found.
    pub(crate) fn node(&self) -> NodeId {
        *self.node.lock()
    }

    pub(crate) fn now(&self) -> WallTime {
        self.wall.at(MonoClock::now())
    }

    pub(crate) fn context(&self) -> Context {
        self.clock.context(self.now())
    }

    /// Writes fail at an observer, and once the I/O thread is gone: nobody would hear of them.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_running()?;
        if self.observer {
            return Err(Error::new(ErrorKind::Refused, "this peer observes: it reads, and writes nothing"));
        }
        Ok(())
    }

    /// What needs the I/O thread fails once that is gone.
    pub(crate) fn check_running(&self) -> Result<()> {
        match self.hub.stopped() {
            None => Ok(()),
            Some(reason) => {
                Err(Error::new(ErrorKind::Stopped, format!("{reason}; reads still work, writes do not")))
            }
        }
    }

    /// What is read or published at a context of another session would be of another time.
    pub(crate) fn check_context(&self, context: Context) -> Result<()> {
        if context.session == self.clock.session() { Ok(()) } else { Err(ReadError::ForeignContext.into()) }
    }

    pub(crate) fn stop(&self, reason: &str, timeout: Duration) {
        if self.hub.stop(reason) {
            // Fails only when the I/O thread is gone, and then there is nobody to tell.
            let _ = self.io.call(Engine::leave);
            if let Err(error) = self.io.shutdown(inbox::bounded(timeout)) {
                tracing::warn!(%error, "the I/O thread did not stop in order");
            }
        }
    }

    pub(crate) fn send_event(
        &self,
        topic: &str,
        target: Target,
        value: Value,
        sim: SimTime,
        command: bool,
    ) -> Result<u64> {
        self.check_running()?;
        let event = coeval_sync::Event { topic: topic.into(), target, value, sim, command };
        let hub = Arc::clone(&self.hub);
        let sent = self.io.ask(move |engine, now, rng| {
            let sent = engine.with_sync(|sync| sync.send_event(event));
            if let (Ok(number), true, Target::Peer(to)) = (&sent, command, target) {
                // Expected before the answer can arrive: both happen on this thread.
                hub.update(|state| state.expected.insert((to, *number)));
            }
            (sent, engine.handle(Input::Wake, now, rng))
        })?;
        Ok(sent?)
    }

    pub(crate) fn reply(&self, to: EventId, reply: Reply) -> Result<()> {
        self.check_running()?;
        let replied = self.io.ask(move |engine, now, rng| {
            let replied = engine.with_sync(|sync| sync.reply(to, reply));
            (replied, engine.handle(Input::Wake, now, rng))
        })?;
        Ok(replied?)
    }

    /// The name of an entity, if it has one.
    pub(crate) fn name_of(&self, id: EntityId) -> Option<String> {
        self.store.name(id).map(|name| name.to_string())
    }

    /// Adds a session record that this peer acts by at once.
    pub(crate) fn add_record(&self, (topic, value): (&str, Value)) -> Result<()> {
        let entry = self.store.add_record(topic, value)?;
        self.gate.learn(&entry);
        Ok(())
    }
}
