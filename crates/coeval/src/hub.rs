//! What the I/O thread tells the threads of the program: who is there, which events came, how far others are.
use crate::OfflineWrites;
use crate::events::{Arrival, Outcome, Subscription};
use crate::inbox::Inbox;
use crate::notices::PeerEvent;
use coeval_store::StoreEvent;
use coeval_sync::Notice;
use coeval_time::WallDuration;
use coeval_value::NodeId;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// The meeting point. One mutex, taken by the I/O thread only when something happened.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    state: Mutex<State>,
    changed: Condvar,
    /// Set once the I/O thread is gone. Looked at by every write, so it costs a load, not a lock.
    stopped: OnceLock<String>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Nodes whose state at the time of linking is all here.
    pub(crate) caught_up: BTreeSet<NodeId>,
    /// Nodes that are in the session and reached.
    pub(crate) present: BTreeSet<NodeId>,
    /// Samples of session wall time taken in so far.
    pub(crate) clock_samples: u64,
    /// Of each node, its session wall time less ours and the bound on that, by the last exchange of timestamps.
    pub(crate) clocks: BTreeMap<NodeId, (WallDuration, WallDuration)>,
    /// What became of writes that nobody had acknowledged, as told last.
    pub(crate) offline_writes: Option<OfflineWrites>,
    /// Open subscriptions to events.
    pub(crate) subscriptions: Vec<Weak<Subscription>>,
    /// Open subscriptions to notices.
    pub(crate) notices: Vec<Weak<Inbox<PeerEvent>>>,
    /// Answers to commands, by (who, number).
    pub(crate) outcomes: BTreeMap<(NodeId, u64), Outcome>,
    /// Commands that are waited for.
    pub(crate) expected: BTreeSet<(NodeId, u64)>,
}

impl Hub {
    /// Changes the state and wakes whoever waits for it.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state.lock());
        self.changed.notify_all();
        result
    }

    /// Notes that the I/O thread is gone or going. Returns whether this was the first to say so.
    pub(crate) fn stop(&self, reason: &str) -> bool {
        let first = self.stopped.set(reason.to_owned()).is_ok();
        // Taking the mutex makes sure that nobody is between looking and waiting.
        let state = self.state.lock();
        state.subscriptions.iter().filter_map(Weak::upgrade).for_each(|subscription| subscription.close());
        state.notices.iter().filter_map(Weak::upgrade).for_each(|inbox| inbox.close());
        drop(state);
        self.changed.notify_all();
        first
    }

    /// Why the I/O thread is gone; `None` while it runs.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// Looks at the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    /// Waits until `ready` gives something, or `None` at `deadline`.
    pub(crate) fn wait_until<T>(
        &self,
        deadline: Instant,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(result) = ready(&mut state) {
                return Some(result);
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return ready(&mut state);
            }
        }
    }

    /// Takes in what the replication engine noticed, save samples of the clock.
    pub(crate) fn notice(&self, notice: Notice) {
        match notice {
            Notice::LinkUp { node, .. } => tracing::debug!(?node, "link up"),
            Notice::LinkDown { node, reason, .. } => {
                tracing::info!(?node, reason, "link down");
                self.update(|state| state.caught_up.remove(&node));
            }
            Notice::PeerUp { node, name, observer } => {
                tracing::info!(name, ?node, "peer is here");
                self.update(|state| state.present.insert(node));
                self.tell(&PeerEvent::PeerJoined { node, name, observer });
            }
            Notice::PeerLost { node, left } => {
                tracing::info!(?node, left, "peer is gone");
                self.update(|state| {
                    state.clocks.remove(&node);
                    // Nobody answers these any more: whoever waits sees that they are expected no longer.
                    state.expected.retain(|(to, _)| *to != node);
                    state.present.remove(&node)
                });
                self.tell(&PeerEvent::PeerLeft { node, said_so: left });
            }
            Notice::CaughtUp { node } => {
                self.update(|state| state.caught_up.insert(node));
            }
            Notice::Event(event) => self.deliver(&Arrival::from(event)),
            Notice::Reply { from, number, reply } => self.update(|state| {
                if state.expected.contains(&(from, number)) {
                    state.outcomes.insert((from, number), Outcome::from(reply));
                }
            }),
            Notice::EventsDropped { to, count } => {
                tracing::warn!(?to, count, "events not delivered: the peer was lost first");
            }
            Notice::ParkedThere { node, count, ahead } => {
                tracing::warn!(
                    ?node,
                    count,
                    ahead_ns = ahead,
                    "writes wait at a peer: their stamps are ahead of session time"
                );
            }
            Notice::LogFailed { reason } => {
                tracing::error!("{reason}; what is written now would not survive this program's end");
                self.tell(&PeerEvent::JournalFailed { reason });
            }
            Notice::LogRestored => {
                tracing::info!("the journal holds everything again");
                self.tell(&PeerEvent::JournalRestored);
            }
            Notice::Renamed { stamp, before, node } => {
                tracing::error!(
                    ?stamp,
                    ?before,
                    ?node,
                    "another program runs under this peer's name: it has a new one"
                );
                self.tell(&PeerEvent::Forked { stamp, before, node });
            }
            Notice::Error { node, message } => tracing::warn!(?node, "{message}"),
            // Told by the engine, which knows who wrote under which incarnation.
            Notice::World { .. } | Notice::PingSample { .. } => {}
        }
    }

    /// Takes in what the replica has to tell.
    pub(crate) fn store_event(&self, event: StoreEvent) {
        match &event {
            StoreEvent::NameClash { name, ids } => {
                tracing::warn!(?name, ?ids, "several entities bear one name: rename or delete all but one");
            }
        }
        self.tell(&event.into());
    }

    /// Tells whoever subscribed to notices.
    pub(crate) fn tell(&self, event: &PeerEvent) {
        self.update(|state| {
            state.notices.retain(|inbox| inbox.upgrade().map(|inbox| inbox.push(event.clone())).is_some());
        });
    }

    /// Opens a subscription to events; one that is opened too late gets none.
    pub(crate) fn subscribe(&self, subscription: &Arc<Subscription>) {
        self.update(|state| state.subscriptions.push(Arc::downgrade(subscription)));
        if self.stopped().is_some() {
            subscription.close();
        }
    }

    /// Opens a subscription to notices; one that is opened too late gets none.
    pub(crate) fn listen(&self, inbox: &Arc<Inbox<PeerEvent>>) {
        self.update(|state| state.notices.push(Arc::downgrade(inbox)));
        if self.stopped().is_some() {
            inbox.close();
        }
    }

    fn deliver(&self, arrival: &Arrival) {
        self.update(|state| {
            state.subscriptions.retain(|subscription| match subscription.upgrade() {
                Some(subscription) => {
                    subscription.offer(arrival);
                    true
                }
                None => false,
            });
        });
    }
}
