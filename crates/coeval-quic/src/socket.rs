//! The UDP socket under QUIC: binding, the conditioner's delay line, and the count of foreign datagrams.
use crate::conditioner::{LinkConditioner, canonical};
use crate::driver::BindError;
use parking_lot::Mutex;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionId, ConnectionIdGenerator, UdpPoller};
use quinn_proto::HashedConnectionIdGenerator;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Large enough that a burst of datagrams survives until the I/O thread runs; the system may grant less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Datagrams in the delay line; more is dropped (a gigabit at a quarter of a second fits).
const MAX_DELAYED: usize = 1 << 16;
/// QUIC version 1 (RFC 9000), the only one spoken.
pub(crate) const QUIC_VERSION: u32 = 1;

/// Binds the port, with buffers for bursts.
pub(crate) fn bind(address: SocketAddr) -> Result<UdpSocket, BindError> {
    let attempt = || -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_nonblocking(true)?;
        for (what, result) in [
            ("receive", socket.set_recv_buffer_size(SOCKET_BUFFER)),
            ("send", socket.set_send_buffer_size(SOCKET_BUFFER)),
        ] {
            if let Err(why) = result {
                tracing::debug!("the {what} buffer of the socket keeps its size: {why}");
            }
        }
        socket.bind(&address.into())?;
        Ok(socket.into())
    };
    attempt().map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => BindError::InUse { address },
        ErrorKind::AddrNotAvailable => BindError::NotHere { address },
        _ => BindError::Io { address, source },
    })
}

/// The addresses a socket bound to `local` can be reached at, the most useful first.
pub(crate) fn reachable(local: SocketAddr) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    // Connecting a UDP socket sends nothing; it asks the routing table which interface leads outside. The targets are
    // addresses reserved for documentation.
    let route = |from: IpAddr, to: &str| -> Option<IpAddr> {
        let probe = UdpSocket::bind((from, 0)).ok()?;
        probe.connect(to).ok()?;
        Some(probe.local_addr().ok()?.ip())
    };
    let mut found =
        vec![route(Ipv4Addr::UNSPECIFIED.into(), "192.0.2.1:9"), Some(Ipv4Addr::LOCALHOST.into())];
    if local.is_ipv6() {
        found.insert(1, route(Ipv6Addr::UNSPECIFIED.into(), "[2001:db8::1]:9"));
        found.push(Some(Ipv6Addr::LOCALHOST.into()));
    }
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for ip in found.into_iter().flatten().filter(|ip| !ip.is_unspecified()) {
        let address = SocketAddr::new(ip, local.port());
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The socket QUIC sees.
pub(crate) struct ConditionedSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    conditioner: LinkConditioner,
    line: Arc<DelayLine>,
    ids: HashedConnectionIdGenerator,
    foreign: Arc<AtomicU64>,
}

impl ConditionedSocket {
    /// `id_key` is that of the endpoint's connection ids; `foreign` counts datagrams of no connection.
    pub(crate) fn new(
        inner: Arc<dyn AsyncUdpSocket>,
        conditioner: LinkConditioner,
        id_key: u64,
        foreign: Arc<AtomicU64>,
    ) -> Self {
        let ids = HashedConnectionIdGenerator::from_key(id_key);
        Self { inner, conditioner, line: Arc::default(), ids, foreign }
    }

    /// Sends what is due until the socket is gone: to be spawned once.
    pub(crate) fn deliver(&self) -> impl Future<Output = ()> + Send + use<> {
        deliver(self.line.clone(), self.inner.clone())
    }

    fn delay(&self, transmit: &Transmit<'_>) {
        let now = Instant::now();
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for contents in transmit.contents.chunks(segment) {
            for due in self.conditioner.plan(contents.len(), now.into_std()).into_iter().flatten() {
                self.line.push(due.into(), Delayed::new(transmit, contents));
            }
        }
    }

    /// Whether no connection of this endpoint, nor a new one, can be meant by a datagram.
    fn is_foreign(&self, datagram: &[u8]) -> bool {
        const LONG: u8 = 0x80;
        const FIXED: u8 = 0x40;
        let Some(&first) = datagram.first() else { return true };
        if first & FIXED == 0 {
            return true;
        }
        if first & LONG != 0 {
            let version = datagram.get(1..5).map(|v| u32::from_be_bytes([v[0], v[1], v[2], v[3]]));
            return version != Some(QUIC_VERSION);
        }
        match datagram.get(1..=self.ids.cid_len()) {
            Some(id) => self.ids.validate(&ConnectionId::new(id)).is_err(),
            None => true,
        }
    }

    fn inspect(&self, buffer: &[u8], meta: &mut RecvMeta) {
        if self.conditioner.cuts(meta.addr) {
            // An empty datagram is skipped by QUIC.
            meta.len = 0;
            return;
        }
        let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
        let foreign = datagrams.filter(|datagram| self.is_foreign(datagram)).count();
        if foreign > 0 {
            self.foreign.fetch_add(foreign as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for ConditionedSocket {
    fn drop(&mut self) {
        // What is on its way still leaves; then the delivering task ends.
        self.line.close();
    }
}

impl std::fmt::Debug for ConditionedSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConditionedSocket").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for ConditionedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if !self.conditioner.is_active() {
            return self.inner.try_send(transmit);
        }
        if !self.conditioner.cuts(transmit.destination) {
            self.delay(transmit);
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (buffer, meta) in bufs.iter().zip(meta.iter_mut()).take(count) {
            self.inspect(buffer, meta);
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        // Each segment has its own fate while conditioned.
        if self.conditioner.is_active() { 1 } else { self.inner.max_transmit_segments() }
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// A datagram on its way.
struct Delayed {
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    source: Option<IpAddr>,
    contents: Vec<u8>,
}

impl Delayed {
    fn new(transmit: &Transmit<'_>, contents: &[u8]) -> Self {
        Self {
            destination: transmit.destination,
            ecn: transmit.ecn,
            source: transmit.src_ip,
            contents: contents.to_vec(),
        }
    }

    fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.destination,
            ecn: self.ecn,
            contents: &self.contents,
            segment_size: None,
            src_ip: self.source,
        }
    }
}

/// Datagrams by the instant they are due, then in the order they were sent; and how many there were.
#[derive(Default)]
struct Queue {
    count: u64,
    datagrams: BTreeMap<(Instant, u64), Delayed>,
    /// The socket is gone: nothing follows.
    closed: bool,
}

/// Where delayed datagrams wait.
#[derive(Default)]
struct DelayLine {
    queue: Mutex<Queue>,
    changed: Notify,
}

impl DelayLine {
    fn push(&self, due: Instant, datagram: Delayed) {
        let mut queue = self.queue.lock();
        if queue.datagrams.len() >= MAX_DELAYED {
            return;
        }
        queue.count += 1;
        let key = (due, queue.count);
        queue.datagrams.insert(key, datagram);
        let is_first = queue.datagrams.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(queue);
        if is_first {
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.queue.lock().closed = true;
        self.changed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.queue.lock().closed
    }

    /// The next datagram if it is due, else when it will be.
    fn pop(&self, now: Instant) -> Result<Delayed, Option<Instant>> {
        match self.queue.lock().datagrams.first_entry() {
            Some(entry) if entry.key().0 <= now => Ok(entry.remove()),
            Some(entry) => Err(Some(entry.key().0)),
            None => Err(None),
        }
    }
}

async fn deliver(line: Arc<DelayLine>, socket: Arc<dyn AsyncUdpSocket>) {
    let mut poller = socket.clone().create_io_poller();
    loop {
        match line.pop(Instant::now()) {
            Ok(datagram) => loop {
                match socket.try_send(&datagram.transmit()) {
                    Err(why) if why.kind() == ErrorKind::WouldBlock => {
                        if std::future::poll_fn(|cx| poller.as_mut().poll_writable(cx)).await.is_err() {
                            break;
                        }
                    }
                    // UDP may lose anything; QUIC sends again.
                    Ok(()) | Err(_) => break,
                }
            },
            Err(Some(due)) => {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(due) => {}
                    () = line.changed.notified() => {}
                }
            }
            Err(None) if line.is_closed() => return,
            Err(None) => line.changed.notified().await,
        }
    }
}

/// An address as people write it.
pub(crate) fn display(address: SocketAddr) -> String {
    canonical(address).to_string()
}
