//! The handle to the I/O thread, and the thread itself.
//!
//! The thread owns the machine and a single-threaded runtime of its own, which is built, driven and dropped there: no
//! runtime of the caller is needed, used or disturbed.
use crate::admission::Admission;
use crate::clock::{DriverClock, FOREVER, deadline};
use crate::config::{Config, MAX_UDP_PAYLOAD};
use crate::dial::{Dialing, Target};
use crate::handshake::Site;
use crate::pump::{Call, Control, DROP_GRACE, EVENTS, Pump};
use crate::socket::{self, ConditionedSocket, QUIC_VERSION};
use crate::{Bell, LinkConditioner, tls};
use coeval_sync::{Effect, Machine, Now};
use parking_lot::{Condvar, Mutex};
use quinn::{AsyncUdpSocket, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime};
use quinn_proto::HashedConnectionIdGenerator;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::ThreadId;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Why the driver could not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody listens there.
    #[error("{address} is in use by another program; choose another port, or 0 to let the system choose")]
    InUse {
        /// Which address.
        address: SocketAddr,
    },
    /// No interface has the address.
    #[error("{address} is not an address of this machine; choose one of its addresses, or 0.0.0.0 for all")]
    NotHere {
        /// Which address.
        address: SocketAddr,
    },
    /// The operating system refused.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// Which address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The key cannot be used for TLS.
    #[error("cannot set up TLS with this identity: {0}")]
    Tls(String),
}

/// The I/O thread is gone; writes go nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the I/O thread has stopped: {0}")]
pub struct Stopped(pub String);

/// What the driver did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoStats {
    /// Datagrams on the port that belong to no connection of this peer: garbage, and packets for a predecessor.
    pub foreign_datagrams: u64,
    /// Incoming connections that became no link.
    pub refused_links: u64,
    /// Outgoing datagrams dropped because they were too large or the link was going down.
    pub dropped_datagrams: u64,
    /// Messages received.
    pub messages_in: u64,
    /// Links up now.
    pub links: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) foreign: Arc<AtomicU64>,
    pub(crate) refused_links: AtomicU64,
    pub(crate) dropped_datagrams: AtomicU64,
    pub(crate) messages_in: AtomicU64,
}

/// How the thread ended.
#[derive(Clone, Debug)]
struct End {
    reason: String,
    panicked: bool,
}

impl End {
    fn shut_down() -> Self {
        Self { reason: "it was shut down".into(), panicked: false }
    }
}

/// Remembers that the thread ended, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopNote(Arc<(Mutex<Option<End>>, Condvar)>);

impl StopNote {
    pub(crate) fn stopped(&self) -> Stopped {
        self.check().err().unwrap_or_else(|| Stopped("it is shutting down".into()))
    }

    fn check(&self) -> Result<(), Stopped> {
        self.end().map_or(Ok(()), |end| Err(Stopped(end.reason)))
    }

    fn end(&self) -> Option<End> {
        self.0.0.lock().clone()
    }

    fn set(&self, end: End) {
        *self.0.0.lock() = Some(end);
        self.0.1.notify_all();
    }

    /// Notes that the loop ended as it was told to.
    pub(crate) fn set_shut_down(&self) {
        self.set(End::shut_down());
    }

    /// Waits for the end, at most `timeout`.
    fn wait(&self, timeout: Duration) {
        let mut end = self.0.0.lock();
        self.0.1.wait_while_for(&mut end, |end| end.is_none(), timeout.min(FOREVER));
    }
}

/// The handle to a running driver. Dropping it stops the driver: what is queued has half a second to leave.
pub struct Io<M> {
    control: UnboundedSender<Control<M>>,
    bell: Bell,
    pub(crate) stop: StopNote,
    thread: ThreadId,
    site: Arc<Site>,
    counters: Arc<Counters>,
    local: SocketAddr,
}

/// Starts the driver: binds the port here (so that errors show here), then runs `machine` on a thread of its own.
///
/// `after` is called on that thread after each call into the machine, to collect what it has to tell.
pub fn spawn<M, A>(
    config: Config,
    machine: M,
    admission: Arc<dyn Admission>,
    after: A,
) -> Result<Io<M>, BindError>
where
    M: Machine + 'static,
    A: FnMut(&mut M) + Send + 'static,
{
    let address = config.listen;
    let failed = |source| BindError::Io { address, source };
    let udp = socket::bind(address)?;
    let local = udp.local_addr().map_err(failed)?;
    let (runtime, clock) = (Arc::new(TokioRuntime), DriverClock::system());
    let (mut io, parts) = prepare(config, machine, admission, after, Place { local, runtime, clock })?;
    let note = io.stop.clone();
    let (ready, started) = channel();
    let thread = std::thread::Builder::new()
        .name("coeval-io".into())
        .spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| drive(parts, udp, &ready)));
            note.set(match ended {
                Ok(()) => End::shut_down(),
                Err(panic) => {
                    let reason = format!("it panicked: {}", panic_text(panic.as_ref()));
                    tracing::error!("the I/O thread has stopped: {reason}");
                    End { reason, panicked: true }
                }
            });
        })
        .map_err(failed)?;
    io.thread = thread.thread().id();
    match started.recv() {
        Ok(Ok(())) => Ok(io),
        Ok(Err(source)) => Err(failed(source)),
        Err(_) => Err(failed(io::Error::other(io.stop.stopped()))),
    }
}

/// Where a driver runs.
pub(crate) struct Place {
    /// The address of its socket.
    pub(crate) local: SocketAddr,
    /// What its tasks run on.
    pub(crate) runtime: Arc<dyn Runtime>,
    /// What its machine is told the time by.
    pub(crate) clock: DriverClock,
}

/// The handle, and what the loop is made from.
pub(crate) fn prepare<M, A>(
    config: Config,
    machine: M,
    admission: Arc<dyn Admission>,
    after: A,
    place: Place,
) -> Result<(Io<M>, Parts<M>), BindError>
where
    A: FnMut(&mut M) + Send + 'static,
{
    let Place { local, runtime, clock } = place;
    let server = server_config(&config)?;
    let addresses = match config.advertise.as_slice() {
        [] => socket::reachable(local),
        given => given.to_vec(),
    };
    let addresses = addresses.into_iter().map(socket::display).collect();
    let bell = config.bell.clone();
    let (open_links, incarnation) = (AtomicUsize::new(0), AtomicU64::new(config.incarnation.0));
    let site = Arc::new(Site { config, admission, addresses, open_links, incarnation, runtime, clock });
    let (control, calls) = unbounded_channel();
    let counters = Arc::new(Counters::default());
    let parts = Parts {
        machine,
        after: Box::new(after),
        calls,
        server,
        site: Arc::clone(&site),
        counters: Arc::clone(&counters),
    };
    let (stop, thread) = (StopNote::default(), std::thread::current().id());
    Ok((Io { control, bell, stop, thread, site, counters, local }, parts))
}

impl<M: Machine + 'static> Io<M> {
    /// Queues a call into the machine; its effects are carried out. Returns at once.
    pub fn call<F>(&self, call: F) -> Result<(), Stopped>
    where
        F: FnOnce(&mut M, Now, &mut dyn RngCore) -> Vec<Effect> + Send + 'static,
    {
        self.control(Control::Call(Box::new(call)))
    }

    /// Calls into the machine, waits, and gives what the call returned beside its effects.
    ///
    /// On the I/O thread itself (in `after`, say) it cannot wait and gives an error.
    pub fn ask<R, F>(&self, call: F) -> Result<R, Stopped>
    where
        R: Send + 'static,
        F: FnOnce(&mut M, Now, &mut dyn RngCore) -> (R, Vec<Effect>) + Send + 'static,
    {
        if std::thread::current().id() == self.thread {
            return Err(Stopped("it cannot wait for itself; call from another thread".into()));
        }
        let (reply, answer) = channel();
        let call: Call<M> = Box::new(move |machine, now, rng| {
            let (result, effects) = call(machine, now, rng);
            // A caller cannot stop waiting, so somebody is there.
            let _ = reply.send(result);
            effects
        });
        self.control(Control::Call(call))?;
        answer.recv().map_err(|_| self.reason())
    }

    /// Rings the [`Bell`]: there are local changes. From any thread, at any rate; call it after the change is marked.
    pub fn wake(&self) {
        self.bell.ring();
    }

    /// The bell that [`wake`](Self::wake) rings.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Starts making a link.
    pub fn dial(&self, target: Target) -> Dialing {
        let (reply, outcome) = channel();
        // When the thread is gone the reply is dropped with the request, and the outcome says so.
        let _ = self.control(Control::Dial(target, reply));
        Dialing { outcome, stopped: self.stop.clone() }
    }

    /// The bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Addresses others can dial, the most useful first: what an invite should carry.
    pub fn listen_addresses(&self) -> Vec<SocketAddr> {
        self.site.addresses.iter().filter_map(|address| address.parse().ok()).collect()
    }

    /// The switchboard of the link conditioner.
    pub fn conditioner(&self) -> &LinkConditioner {
        &self.site.config.conditioner
    }

    /// What the driver did so far.
    pub fn stats(&self) -> IoStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoStats {
            foreign_datagrams: load(&self.counters.foreign),
            refused_links: load(&self.counters.refused_links),
            dropped_datagrams: load(&self.counters.dropped_datagrams),
            messages_in: load(&self.counters.messages_in),
            links: self.site.open_links.load(Ordering::Relaxed),
        }
    }

    /// Errors when the I/O thread is gone.
    pub fn check(&self) -> Result<(), Stopped> {
        self.stop.check()
    }

    /// Closes all links, after what is queued has arrived, and stops the thread; waits at most about `timeout`.
    ///
    /// Errors when the thread had panicked before, or is still busy at the end.
    pub fn shutdown(&self, timeout: Duration) -> Result<(), Stopped> {
        self.stop.check()?;
        self.stop_by(timeout);
        match self.stop.end() {
            Some(end) if end.panicked => Err(Stopped(end.reason)),
            Some(_) => Ok(()),
            None => Err(Stopped(format!("it was still busy after {timeout:?}"))),
        }
    }
}

impl<M> Io<M> {
    fn control(&self, control: Control<M>) -> Result<(), Stopped> {
        self.stop.check()?;
        self.control.send(control).map_err(|_| self.reason())
    }

    /// Why the thread is ending: the note is written a moment after its channels close.
    fn reason(&self) -> Stopped {
        self.stop.wait(DROP_GRACE);
        self.stop.stopped()
    }

    fn stop_by(&self, timeout: Duration) {
        let asked = self.control.send(Control::Shutdown(deadline(timeout))).is_ok();
        if asked && std::thread::current().id() != self.thread {
            self.stop.wait(timeout.saturating_add(DROP_GRACE));
        }
    }
}

impl<M> Drop for Io<M> {
    fn drop(&mut self) {
        self.stop_by(DROP_GRACE);
    }
}

impl<M> std::fmt::Debug for Io<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("local", &self.local).finish_non_exhaustive()
    }
}

/// What moves to the I/O thread.
pub(crate) struct Parts<M> {
    machine: M,
    after: Box<dyn FnMut(&mut M) + Send>,
    calls: UnboundedReceiver<Control<M>>,
    server: ServerConfig,
    site: Arc<Site>,
    counters: Arc<Counters>,
}

fn drive<M: Machine>(parts: Parts<M>, udp: UdpSocket, ready: &std::sync::mpsc::Sender<io::Result<()>>) {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(why) => return drop(ready.send(Err(why))),
    };
    runtime.block_on(async {
        let socket = parts.site.runtime.wrap_udp_socket(udp);
        match socket.and_then(|socket| pump(parts, socket)) {
            Ok(mut pump) => {
                let _ = ready.send(Ok(()));
                pump.run().await;
            }
            Err(why) => drop(ready.send(Err(why))),
        }
    });
}

/// Must run inside the runtime.
pub(crate) fn pump<M: Machine>(parts: Parts<M>, socket: Arc<dyn AsyncUdpSocket>) -> io::Result<Pump<M>> {
    let Parts { machine, after, calls, server, site, counters } = parts;
    let endpoint = endpoint(socket, server, &site, &counters)?;
    let (sender, events) = tokio::sync::mpsc::channel(EVENTS);
    let rng: Box<dyn RngCore + Send> = match site.config.seed {
        Some(seed) => Box::new(ChaCha12Rng::seed_from_u64(seed)),
        None => Box::new(ChaCha12Rng::from_os_rng()),
    };
    let bell = site.config.bell.clone();
    Ok(Pump {
        machine,
        rng,
        after,
        site,
        endpoint,
        counters,
        calls,
        events,
        sender,
        links: BTreeMap::new(),
        next_link: 0,
        dialing: BTreeSet::new(),
        bell,
        armed: None,
        turns: 0,
    })
}

fn endpoint(
    socket: Arc<dyn AsyncUdpSocket>,
    server: ServerConfig,
    site: &Site,
    counters: &Counters,
) -> io::Result<Endpoint> {
    let config = &site.config;
    let identity = &config.identity;
    // Derived from the identity, so that a peer restarted on its port can tell its old links that they are dead.
    let reset = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &identity.derive(b"coeval stateless reset"));
    let [a, b, c, d, e, f, g, h, ..] = identity.derive(b"coeval connection ids");
    let id_key = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let mut settings = EndpointConfig::new(Arc::new(reset));
    settings
        .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(id_key)))
        .supported_versions(vec![QUIC_VERSION])
        // With the fixed bit always set, garbage is recognized by it.
        .grease_quic_bit(false);
    settings.max_udp_payload_size(MAX_UDP_PAYLOAD).map_err(io::Error::other)?;
    if let Some(seed) = config.seed {
        let mut key = [0; 32];
        // Another stream than the machine's: neither shows what the other drew.
        ChaCha12Rng::seed_from_u64(!seed).fill_bytes(&mut key);
        settings.rng_seed(Some(key));
    }
    let socket = ConditionedSocket::new(socket, config.conditioner.clone(), id_key, counters.foreign.clone());
    site.spawn(socket.deliver());
    Endpoint::new_with_abstract_socket(settings, Some(server), Arc::new(socket), Arc::clone(&site.runtime))
}

fn server_config(config: &Config) -> Result<ServerConfig, BindError> {
    let tls = tls::server(&config.identity).map_err(|why| BindError::Tls(why.to_string()))?;
    let mut server = ServerConfig::with_crypto(Arc::new(tls));
    server.transport_config(config.transport()).max_incoming(256);
    Ok(server)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "without a message".into(),
    }
}
