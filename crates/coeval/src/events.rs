//! Events and commands: what must not be conflated.
//!
//! An event reaches each peer that is present when it is sent exactly once, in order per sender, and is never replayed
//! to those who join later. A command is an event with a reply.
use crate::inbox::{Inbox, deadline};
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
use coeval_sync::{EventId, EventNotice, Reply, Target};
use coeval_time::SimTime;
use coeval_value::{NodeId, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events that a subscription keeps until they are taken; beyond, the oldest is dropped and counted.
pub const SUBSCRIPTION_QUEUE: usize = 65_536;

/// Sends and receives events.
#[derive(Clone)]
pub struct Events {
    shared: Arc<Shared>,
}

/// An event, as it arrived.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is about.
    pub topic: Arc<str>,
    /// Whom it was sent to.
    pub target: Target,
    /// Its value.
    pub value: Value,
    /// The sim time it is for.
    pub sim: SimTime,
    /// Who sent it.
    pub from: NodeId,
    /// Whether the sender waits for an answer; see [`Events::answer`].
    pub command: bool,
    id: EventId,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It will be done.
    Accepted,
    /// It will not be done, for this reason.
    Refused(String),
    /// It is done.
    Done,
}

/// An event on its way to subscriptions.
#[derive(Clone, Debug)]
pub(crate) struct Arrival(Event);

impl From<EventNotice> for Arrival {
    fn from(notice: EventNotice) -> Self {
        let EventNotice { id, topic, target, value, sim, command } = notice;
        Self(Event { topic, target, value, sim, from: id.from, command, id })
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Accepted => Self::Accepted,
            Reply::Refused { reason } => Self::Refused(reason),
            Reply::Done => Self::Done,
        }
    }
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Accepted => Self::Accepted,
            Outcome::Refused(reason) => Self::Refused { reason },
            Outcome::Done => Self::Done,
        }
    }
}

impl Events {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Sends an event for the sim time now.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] when too many events wait for one of the peers: nothing was sent to anyone.
    pub fn send(&self, topic: &str, target: Target, value: impl Into<Value>) -> Result<()> {
        let sim = self.shared.context().sim;
        self.shared.send_event(topic, target, value.into(), sim, false).map(|_| ())
    }

    /// Sends a command to one peer and waits up to `timeout` for the answer.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the peer is not there, or is lost before it answers (whether it has done what it
    /// was told is not known then); [`ErrorKind::Timeout`]; [`ErrorKind::Busy`] as for [`send`](Self::send).
    pub fn command(
        &self,
        topic: &str,
        to: NodeId,
        value: impl Into<Value>,
        timeout: Duration,
    ) -> Result<Outcome> {
        let deadline = deadline(timeout);
        let sim = self.shared.context().sim;
        let number = self.shared.send_event(topic, Target::Peer(to), value.into(), sim, true)?;
        let hub = &self.shared.hub;
        let answered = hub.wait_until(deadline, |state| {
            let outcome = state.outcomes.remove(&(to, number));
            let lost = !state.expected.contains(&(to, number));
            (outcome.is_some() || lost || hub.stopped().is_some()).then_some(outcome)
        });
        // At once: an answer that comes now is expected no more and must not be kept.
        let late = hub.update(|state| {
            state.expected.remove(&(to, number));
            state.outcomes.remove(&(to, number))
        });
        let answered_nothing = answered.is_some();
        let outcome = answered.flatten().or(late);
        if outcome.is_none() {
            self.shared.check_running()?;
            if answered_nothing {
                let message = format!("the peer left or was lost and did not answer the command {topic:?}");
                return Err(Error::new(ErrorKind::NotFound, message));
            }
        }
        outcome.ok_or_else(|| {
            Error::new(ErrorKind::Timeout, format!("no answer to the command {topic:?} within {timeout:?}"))
        })
    }

    /// Waits up to `timeout` until all events sent from here have arrived at every peer they were for (or that peer
    /// was lost).
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] says how many are still on their way.
    pub fn delivered(&self, timeout: Duration) -> Result<()> {
        let deadline = deadline(timeout);
        loop {
            let asked = self
                .shared
                .io
                .ask(|engine, _, _| (engine.with_sync(|sync| sync.events_waiting()), Vec::new()));
            match asked? {
                0 => return Ok(()),
                waiting if Instant::now() >= deadline => {
                    let message = format!(
                        "{waiting} events not acknowledged within {timeout:?}: look at the peers' links"
                    );
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Answers a command.
    pub fn answer(&self, event: &Event, outcome: Outcome) -> Result<()> {
        self.shared.reply(event.id, outcome.into())
    }

    /// Subscribes to the events that arrive from now on whose topic matches: `*` stands for any text.
    pub fn subscribe(&self, topics: &str) -> EventStream {
        let subscription =
            Arc::new(Subscription { pattern: topics.to_owned(), inbox: Inbox::new(SUBSCRIPTION_QUEUE) });
        self.shared.hub.subscribe(&subscription);
        EventStream(subscription)
    }
}

/// Events in the order they arrived; ends the subscription when dropped.
pub struct EventStream(Arc<Subscription>);

impl EventStream {
    /// The next event that is there.
    pub fn poll(&self) -> Option<Event> {
        self.0.inbox.poll()
    }

    /// Waits up to `timeout` for the next event; `None` at once when the peer has stopped and none is left.
    pub fn wait(&self, timeout: Duration) -> Option<Event> {
        self.0.inbox.wait(timeout)
    }

    /// How many events were dropped because nobody took them.
    pub fn dropped(&self) -> u64 {
        self.0.inbox.dropped()
    }
}

#[derive(Debug)]
pub(crate) struct Subscription {
    pattern: String,
    inbox: Inbox<Event>,
}

impl Subscription {
    pub(crate) fn close(&self) {
        self.inbox.close();
    }

    pub(crate) fn offer(&self, arrival: &Arrival) {
        if crate::glob::matches(&self.pattern, &arrival.0.topic) {
            self.inbox.push(arrival.0.clone());
        }
    }
}
