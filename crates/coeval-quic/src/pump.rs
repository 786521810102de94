//! The loop on the I/O thread: inputs into the machine, effects out of it.
use crate::admission::SessionInfo;
use crate::bell::Bell;
use crate::clock::deadline;
use crate::conditioner;
use crate::dial::{self, DialError, Dialed, Target};
use crate::driver::Counters;
use crate::handshake::{Linked, Site};
use crate::link::{self, Close, Out, Outlet};
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_sync::{Effect, Input, LinkPeer, Machine, Now};
use coeval_value::NodeId;
use quinn::{Endpoint, Incoming};
use rand::RngCore;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender as Reply;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver};
use tokio::time::Instant;

/// Inputs that may wait for the machine; beyond this the reading tasks wait, and QUIC's flow control holds the senders.
pub(crate) const EVENTS: usize = 1_024;
/// Inputs taken in a row before timers and calls get their turn.
const BURST: usize = 64;
/// Flushes in a row after which the pump gathers by sleeping instead of polling.
const SUSTAINED: u32 = 64;
/// How long it then sleeps (the runtime's timers tick in milliseconds).
const SUSTAINED_GATHER: Duration = Duration::from_millis(1);
/// Link handshakes under way at once; with more than half of them, addresses must be validated first.
const HANDSHAKES: usize = 64;
/// How long an `Io` that was dropped without `shutdown` goes on delivering.
pub(crate) const DROP_GRACE: Duration = Duration::from_millis(500);

/// A call into the machine.
pub(crate) type Call<M> = Box<dyn FnOnce(&mut M, Now, &mut dyn RngCore) -> Vec<Effect> + Send>;
/// Where the outcome of a dial goes.
pub(crate) type DialReply = Reply<Result<Dialed, DialError>>;

/// What the handle asks of the loop.
pub(crate) enum Control<M> {
    Call(Call<M>),
    Dial(Target, DialReply),
    Shutdown(Instant),
}

/// What the tasks tell the loop.
pub(crate) enum Event {
    Message { link: LinkTag, bytes: Bytes },
    Datagram { link: LinkTag, bytes: Bytes },
    Sent { link: LinkTag, bytes: usize },
    Down { link: LinkTag, reason: String },
    Up { linked: Box<Linked>, dialed: Option<Wanted> },
    DialFailed { wanted: Wanted, error: DialError },
}

/// Who wanted a dial: the handle or the machine.
pub(crate) enum Wanted {
    Handle(DialReply),
    Machine(NodeId),
}

/// The loop's state.
pub(crate) struct Pump<M> {
    pub(crate) machine: M,
    pub(crate) rng: Box<dyn RngCore + Send>,
    pub(crate) after: Box<dyn FnMut(&mut M) + Send>,
    pub(crate) site: Arc<Site>,
    pub(crate) endpoint: Endpoint,
    pub(crate) counters: Arc<Counters>,
    pub(crate) calls: UnboundedReceiver<Control<M>>,
    pub(crate) events: Receiver<Event>,
    pub(crate) sender: Sender<Event>,
    pub(crate) links: BTreeMap<LinkTag, Link>,
    pub(crate) next_link: u64,
    pub(crate) dialing: BTreeSet<NodeId>,
    pub(crate) bell: Bell,
    pub(crate) armed: Option<Armed>,
    pub(crate) turns: u32,
}

/// A live link.
pub(crate) struct Link {
    outlet: Outlet,
    node: NodeId,
    /// Message bytes queued and not yet accepted by QUIC.
    queued: usize,
}

/// The pump after a flush: it gathers until `until`.
#[derive(Clone, Copy)]
pub(crate) struct Armed {
    until: Instant,
    flushes: u32,
}

/// What the loop does next.
enum Turn<M> {
    /// The handle asks for something; `None`: it is gone.
    Control(Option<Control<M>>),
    Event(Event),
    /// The bell was rung.
    Rung,
    /// The gathering is over.
    Gathered,
    /// The machine's timer is due.
    Timer,
}

impl<M: Machine> Pump<M> {
    /// Runs until it is told to stop, then closes all links.
    pub(crate) async fn run(&mut self) {
        self.site.spawn(accept(
            self.endpoint.clone(),
            self.site.clone(),
            self.sender.clone(),
            self.counters.clone(),
        ));
        // The machine may have set a timer, and the replica may have been written to, before this loop began.
        self.flush();
        let deadline = loop {
            match self.turn().await {
                Turn::Control(Some(Control::Shutdown(deadline))) => break deadline,
                Turn::Control(Some(Control::Call(call))) => self.call(call),
                Turn::Control(Some(Control::Dial(target, reply))) => self.dial(target, Wanted::Handle(reply)),
                Turn::Control(None) => break deadline(DROP_GRACE),
                Turn::Event(event) => self.burst(event),
                Turn::Rung => self.flush(),
                Turn::Gathered => self.gathered(),
                Turn::Timer => self.feed(Input::Timer),
            }
        };
        self.close_all(deadline).await;
    }

    /// Waits for something to do. Where it looks first moves on with each turn: no source of work starves another,
    /// and the same inputs are always taken in the same order.
    async fn turn(&mut self) -> Turn<M> {
        let (armed, bell) = (self.armed, self.bell.clone());
        let timer = self.machine.next_timer().map(|at| self.site.clock.instant(at));
        let (mut rung, mut gathered, mut due) =
            (pin!(bell.rung()), pin!(gather(armed)), pin!(sleep_until(timer)));
        self.turns = self.turns.wrapping_add(1);
        let (first, calls, events) = (self.turns, &mut self.calls, &mut self.events);
        poll_fn(|cx| {
            for source in 0..4 {
                let turn = match first.wrapping_add(source) % 4 {
                    0 => calls.poll_recv(cx).map(Turn::Control),
                    1 => match events.poll_recv(cx) {
                        Poll::Ready(Some(event)) => Poll::Ready(Turn::Event(event)),
                        // The loop itself holds a sender.
                        Poll::Ready(None) | Poll::Pending => Poll::Pending,
                    },
                    2 if armed.is_none() => rung.as_mut().poll(cx).map(|()| Turn::Rung),
                    2 => gathered.as_mut().poll(cx).map(|()| Turn::Gathered),
                    _ => due.as_mut().poll(cx).map(|()| Turn::Timer),
                };
                if turn.is_ready() {
                    return turn;
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Tells the machine of local changes, and gathers further ones for a while.
    fn flush(&mut self) {
        self.bell.take();
        self.feed(Input::Wake);
        let flushes = self.armed.map_or(0, |armed| armed.flushes.saturating_add(1));
        let window = if flushes >= SUSTAINED { SUSTAINED_GATHER } else { self.site.config.gather };
        self.armed = Some(Armed { until: deadline(window), flushes });
    }

    fn gathered(&mut self) {
        if self.bell.park() {
            self.armed = None;
        } else {
            self.flush();
        }
    }

    fn call(&mut self, call: Call<M>) {
        let effects = call(&mut self.machine, self.site.now(), &mut self.rng);
        let mut inputs = VecDeque::new();
        self.apply_all(effects, &mut inputs);
        self.drain(inputs);
    }

    fn burst(&mut self, first: Event) {
        self.event(first);
        for _ in 1..BURST {
            match self.events.try_recv() {
                Ok(event) => self.event(event),
                Err(_) => break,
            }
        }
    }

    fn event(&mut self, event: Event) {
        // What arrives from a link that was closed here is not for the machine any more.
        match event {
            Event::Message { link, bytes } if self.links.contains_key(&link) => {
                self.counters.messages_in.fetch_add(1, Ordering::Relaxed);
                self.feed(Input::Message { link, bytes });
            }
            Event::Datagram { link, bytes } if self.links.contains_key(&link) => {
                self.feed(Input::Datagram { link, bytes });
            }
            Event::Sent { link, bytes } => {
                if let Some(outlet) = self.links.get_mut(&link) {
                    outlet.queued = outlet.queued.saturating_sub(bytes);
                    self.feed(Input::Sent { link, bytes });
                }
            }
            Event::Down { link, reason } => {
                if self.forget(link).is_some() {
                    self.feed(Input::LinkDown { link, reason });
                }
            }
            Event::Up { linked, dialed } => self.up(*linked, dialed),
            Event::DialFailed { wanted, error } => self.dial_failed(wanted, error),
            Event::Message { .. } | Event::Datagram { .. } => {}
        }
    }

    fn feed(&mut self, input: Input) {
        self.drain(VecDeque::from([input]));
    }

    fn drain(&mut self, mut inputs: VecDeque<Input>) {
        while let Some(input) = inputs.pop_front() {
            let effects = self.machine.handle(input, self.site.now(), &mut self.rng);
            self.apply_all(effects, &mut inputs);
        }
        (self.after)(&mut self.machine);
    }

    fn apply_all(&mut self, effects: Vec<Effect>, inputs: &mut VecDeque<Input>) {
        for effect in effects {
            match effect {
                Effect::Send { link, bytes } => self.send(link, bytes, inputs),
                Effect::Datagram { link, bytes } => self.send_datagram(link, bytes),
                Effect::Close { link, reason } => {
                    self.close(link, Close::from(&reason), reason.to_string(), inputs)
                }
                Effect::Dial { node, addresses } => self.dial_node(node, &addresses, inputs),
                // Whoever opened the log takes these out before they get here.
                Effect::Log { .. } => {
                    tracing::error!("a message for the log reached the network: it is lost")
                }
                Effect::Rename { node } => {
                    self.site.incarnation.store(node.incarnation.0, Ordering::Relaxed);
                }
            }
        }
    }

    fn send(&mut self, link: LinkTag, bytes: Bytes, inputs: &mut VecDeque<Input>) {
        let limit = self.site.config.max_queue;
        let Some(open) = self.links.get_mut(&link) else { return };
        open.queued += bytes.len();
        if open.queued > limit {
            let text = format!("more than {limit} bytes wait for this peer: it reads too slowly");
            tracing::warn!("{link:?}: {text}");
            return self.close(link, Close::protocol(text.clone()), text, inputs);
        }
        // The writing task ends only with the connection, whose end is on its way as an event.
        let _ = open.outlet.out.send(Out::Message(bytes));
    }

    fn send_datagram(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(open) = self.links.get(&link) else { return };
        if open.outlet.connection.send_datagram(bytes).is_err() {
            self.counters.dropped_datagrams.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn close(&mut self, link: LinkTag, close: Close, reason: String, inputs: &mut VecDeque<Input>) {
        if let Some(open) = self.forget(link) {
            self.site.spawn(link::see_off(open.outlet, close));
            inputs.push_back(Input::LinkDown { link, reason: format!("closed here: {reason}") });
        }
    }

    fn forget(&mut self, link: LinkTag) -> Option<Link> {
        let open = self.links.remove(&link)?;
        self.site.open_links.store(self.links.len(), Ordering::Relaxed);
        Some(open)
    }

    fn up(&mut self, mut linked: Linked, dialed: Option<Wanted>) {
        self.next_link += 1;
        let link = LinkTag(self.next_link);
        let peer = linked.peer.clone();
        let info = linked.info.take();
        tracing::debug!("{link:?} to {} ({}) is up", peer.name, linked.connection.remote_address());
        let outlet = link::start(link, linked, &self.site, &self.sender);
        self.links.insert(link, Link { outlet, node: peer.node, queued: 0 });
        self.site.open_links.store(self.links.len(), Ordering::Relaxed);
        self.feed(Input::LinkUp { link, peer: peer.clone(), dialed: dialed.is_some() });
        if let Some(wanted) = dialed {
            self.dialed(wanted, link, peer, info);
        }
    }

    fn dialed(&mut self, wanted: Wanted, link: LinkTag, peer: LinkPeer, info: Option<SessionInfo>) {
        match wanted {
            // A caller that no longer waits is no fault.
            Wanted::Handle(reply) => drop(reply.send(Ok(Dialed { link, peer, info }))),
            Wanted::Machine(node) => {
                self.dialing.remove(&node);
                if node != peer.node {
                    let reason = "another incarnation of the peer answered: it has restarted".to_owned();
                    self.feed(Input::DialFailed { node, reason });
                }
            }
        }
    }

    fn dial_failed(&mut self, wanted: Wanted, error: DialError) {
        match wanted {
            Wanted::Handle(reply) => drop(reply.send(Err(error))),
            Wanted::Machine(node) => {
                self.dialing.remove(&node);
                self.feed(Input::DialFailed { node, reason: error.to_string() });
            }
        }
    }

    fn dial_node(&mut self, node: NodeId, addresses: &[String], inputs: &mut VecDeque<Input>) {
        // One dial per node at a time; a node with a link needs none.
        if self.links.values().any(|link| link.node == node) || !self.dialing.insert(node) {
            return;
        }
        let parsed: Vec<SocketAddr> = addresses.iter().filter_map(|text| text.parse().ok()).collect();
        if parsed.is_empty() {
            self.dialing.remove(&node);
            let reason = format!("none of its addresses can be dialed: {addresses:?}");
            inputs.push_back(Input::DialFailed { node, reason });
            return;
        }
        self.dial(Target::Member { addresses: parsed, key: Some(node.peer) }, Wanted::Machine(node));
    }

    fn dial(&self, target: Target, wanted: Wanted) {
        let (endpoint, site, sender) = (self.endpoint.clone(), self.site.clone(), self.sender.clone());
        self.site.spawn(async move {
            let event = match dial::dial(endpoint, site, target).await {
                Ok(linked) => Event::Up { linked: Box::new(linked), dialed: Some(wanted) },
                Err(error) => Event::DialFailed { wanted, error },
            };
            let _ = sender.send(event).await;
        });
    }

    async fn close_all(&mut self, deadline: Instant) {
        let mut writers = Vec::new();
        self.site.open_links.store(0, Ordering::Relaxed);
        for (link, open) in std::mem::take(&mut self.links) {
            let _ = open.outlet.out.send(Out::Close(Close::left()));
            writers.push(open.outlet.written);
            self.feed(Input::LinkDown { link, reason: "this peer leaves".into() });
        }
        let finish = async {
            for writer in writers {
                // The writers report what was accepted: somebody must listen, or they would wait for ever.
                tokio::pin!(writer);
                loop {
                    tokio::select! {
                        biased;
                        _ = &mut writer => break,
                        Some(_) = self.events.recv() => {}
                    }
                }
            }
            self.endpoint.close(0u32.into(), b"the peer left");
            self.endpoint.wait_idle().await;
        };
        if tokio::time::timeout_at(deadline, finish).await.is_err() {
            self.endpoint.close(0u32.into(), b"the peer left");
            // One turn of the runtime, so that the closing datagrams leave.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Waits until the gathering is over: polling the network for a short window, sleeping under a sustained load.
async fn gather(armed: Option<Armed>) {
    let Some(armed) = armed else { return };
    // The end is fixed when the gathering begins: this future is made anew after each event of the links, which must
    // not put the next flush off.
    if armed.flushes >= SUSTAINED {
        return tokio::time::sleep_until(armed.until).await;
    }
    while Instant::now() < armed.until {
        tokio::task::yield_now().await;
    }
}

async fn sleep_until(timer: Option<Instant>) {
    match timer {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Takes in connections and runs their handshakes beside each other, a bounded number at once.
async fn accept(endpoint: Endpoint, site: Arc<Site>, sender: Sender<Event>, counters: Arc<Counters>) {
    let slots = Arc::new(Semaphore::new(HANDSHAKES));
    while let Some(incoming) = endpoint.accept().await {
        if slots.available_permits() < HANDSHAKES / 2 && !incoming.remote_address_validated() {
            // Under load an address must prove that it receives, before it costs anything.
            let _ = incoming.retry();
            continue;
        }
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (here, sender, counters) = (site.clone(), sender.clone(), counters.clone());
        site.spawn(async move {
            let _slot = slot;
            admit(incoming, &here, &sender, &counters).await;
        });
    }
}

async fn admit(incoming: Incoming, site: &Site, sender: &Sender<Event>, counters: &Counters) {
    let from = conditioner::canonical(incoming.remote_address());
    let limit = site.config.handshake_timeout;
    let connected = async { incoming.accept()?.await };
    let outcome = match tokio::time::timeout(limit, connected).await {
        Ok(Ok(connection)) => site.accept(connection).await.map_err(|why| why.to_string()),
        Ok(Err(why)) => Err(link::describe(&why)),
        Err(_) => Err("the TLS handshake took too long".into()),
    };
    match outcome {
        Ok(linked) => {
            let _ = sender.send(Event::Up { linked: Box::new(linked), dialed: None }).await;
        }
        Err(why) => {
            counters.refused_links.fetch_add(1, Ordering::Relaxed);
            tracing::info!("no link with {from}: {why}");
        }
    }
}
