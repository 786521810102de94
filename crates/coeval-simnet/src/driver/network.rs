//! A UDP network made up from a seed: delay, jitter, loss, duplication, bandwidth, one-way cuts, and address translation.
use crate::net::Site;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};
use xxhash_rust::xxh3::Xxh3;

/// Bytes that a socket holds for a program that does not read.
const RECEIVE_BUFFER: usize = 1 << 20;
/// How much a network card holds before the socket says that it would block.
const CARD_BACKLOG: Duration = Duration::from_millis(20);
/// The port of every program.
const PORT: u16 = 7_000;

/// How good the network is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weather {
    /// How long a datagram travels.
    pub delay: Duration,
    /// Up to this much longer.
    pub jitter: Duration,
    /// Share of datagrams that are lost.
    pub loss: f64,
    /// Share of datagrams that arrive twice.
    pub duplicate: f64,
    /// Bits per second that leave a site.
    pub bandwidth: Option<u64>,
    /// Longest datagram that passes, bytes.
    pub mtu: usize,
}

impl Weather {
    /// What faults end with.
    pub const FAIR: Self = Self {
        delay: Duration::from_millis(5),
        jitter: Duration::from_millis(2),
        loss: 0.0,
        duplicate: 0.0,
        bandwidth: None,
        mtu: 1_500,
    };
}

/// What became of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// It was put into the buffer of a socket.
    Delivered,
    /// Lost by chance.
    Lost,
    /// Sent twice.
    Duplicated,
    /// Lost to a cut.
    Cut,
    /// Longer than the path takes.
    TooLong,
    /// Nobody is there.
    Nobody,
    /// It came from outside, unasked.
    Unasked,
    /// The buffer of its socket was full.
    Overflowed,
    /// The card was busy: the socket said that it would block.
    Blocked,
}

/// Where a program's socket is.
#[derive(Debug, Default)]
struct Host {
    /// Which opening of the socket is live; `None`: nobody listens.
    bound: Option<u64>,
    openings: u64,
    /// Whether its address is translated: it can dial and not be dialed.
    translated: bool,
    /// The port that others see, when translated.
    seen_port: u16,
    /// Whom it has sent to from this port.
    asked: BTreeSet<SocketAddr>,
    buffer: VecDeque<(SocketAddr, Vec<u8>)>,
    buffered: usize,
    reader: Option<Waker>,
    free_at: Option<Instant>,
}

struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

struct State {
    rng: ChaCha8Rng,
    weather: Weather,
    hosts: Vec<Host>,
    cut: BTreeSet<(Site, Site)>,
    count: u64,
    flights: BTreeMap<(Instant, u64), Flight>,
    fates: BTreeMap<Fate, u64>,
    origin: Instant,
    trace: Xxh3,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

/// The network. Clones are the same one.
#[derive(Clone)]
pub struct Network(Arc<Shared>);

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network(..)")
    }
}

impl Network {
    /// A network of `sites`, of which those of `translated` cannot be dialed. Call it in the runtime of the simulation.
    pub fn new(seed: u64, sites: usize, translated: &BTreeSet<Site>) -> Self {
        let host = |site| Host { translated: translated.contains(&site), seen_port: PORT, ..Host::default() };
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                rng: ChaCha8Rng::seed_from_u64(seed),
                weather: Weather::FAIR,
                hosts: (0..sites).map(host).collect(),
                cut: BTreeSet::new(),
                count: 0,
                flights: BTreeMap::new(),
                fates: BTreeMap::new(),
                origin: Instant::now(),
                trace: Xxh3::new(),
            }),
            changed: Notify::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("one thread")
    }

    /// Where a program at a site listens.
    pub fn address(site: Site) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, site as u8 + 1], PORT))
    }

    /// Binds the port of a site; whether it was free.
    pub fn bind(&self, site: Site) -> Option<Arc<dyn AsyncUdpSocket>> {
        let mut state = self.state();
        let host = &mut state.hosts[site];
        if host.bound.is_some() {
            return None;
        }
        host.openings += 1;
        host.bound = Some(host.openings);
        Some(Arc::new(Socket { network: self.clone(), site, opening: host.openings }))
    }

    /// What the operating system does when a process dies.
    pub fn close(&self, site: Site) {
        self.state().hosts[site].close();
    }

    /// Whether a site's address is translated.
    pub fn is_translated(&self, site: Site) -> bool {
        self.state().hosts[site].translated
    }

    /// A translated site is seen at another port from now on.
    pub fn translate_anew(&self, site: Site) {
        let host = &mut self.state().hosts[site];
        if host.translated {
            host.seen_port += 1;
            host.asked.clear();
        }
    }

    /// Changes the weather.
    pub fn set_weather(&self, weather: Weather) {
        self.state().weather = weather;
    }

    /// Cuts, or mends, the way from one site to another.
    pub fn cut(&self, from: Site, to: Site, cut: bool) {
        let mut state = self.state();
        _ = if cut { state.cut.insert((from, to)) } else { state.cut.remove(&(from, to)) };
    }

    /// Mends all ways.
    pub fn mend(&self) {
        self.state().cut.clear();
    }

    /// What became of the datagrams so far.
    pub fn fates(&self) -> BTreeMap<Fate, u64> {
        self.state().fates.clone()
    }

    /// Adds to the trace what happened now.
    pub fn note(&self, what: &[u64]) {
        let mut state = self.state();
        let at = state.origin.elapsed().as_nanos() as u64;
        for word in [at].iter().chain(what) {
            state.trace.update(&word.to_le_bytes());
        }
    }

    /// The hash of all that happened so far.
    pub fn trace(&self) -> u64 {
        self.state().trace.digest()
    }

    /// Delivers what is due, for ever.
    pub async fn deliver(self) {
        loop {
            let next = self.state().deliver(Instant::now());
            match next {
                Some(due) => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(due) => {}
                    () = self.0.changed.notified() => {}
                },
                None => self.0.changed.notified().await,
            }
        }
    }
}

impl Host {
    fn close(&mut self) {
        self.bound = None;
        self.buffer.clear();
        self.buffered = 0;
        self.reader = None;
        self.free_at = None;
    }

    /// The address that others see.
    fn seen(&self, site: Site) -> SocketAddr {
        if self.translated {
            SocketAddr::from(([192, 0, 2, site as u8 + 1], self.seen_port))
        } else {
            Network::address(site)
        }
    }
}

impl State {
    fn site_at(&self, address: SocketAddr) -> Option<Site> {
        (0..self.hosts.len()).find(|site| self.hosts[*site].seen(*site) == address)
    }

    fn fate(&mut self, site: Site, to: SocketAddr, bytes: usize, fate: Fate) {
        *self.fates.entry(fate).or_default() += 1;
        let at = self.origin.elapsed().as_nanos() as u64;
        let to = self.site_at(to).map_or(u64::MAX, |to| to as u64);
        for word in [at, site as u64, to, bytes as u64, fate as u64] {
            self.trace.update(&word.to_le_bytes());
        }
    }

    /// One datagram leaves a site.
    fn leave(&mut self, site: Site, to: SocketAddr, bytes: &[u8], now: Instant) {
        let Weather { delay, jitter, loss, duplicate, bandwidth, mtu } = self.weather;
        let host = &mut self.hosts[site];
        let from = host.seen(site);
        host.asked.insert(to);
        let start = host.free_at.map_or(now, |free| free.max(now));
        let took = bandwidth.map_or(0.0, |bits| bytes.len() as f64 * 8.0 / bits as f64);
        let left = start + Duration::from_secs_f64(took);
        host.free_at = Some(left);
        let cut = self.site_at(to).is_some_and(|to| self.cut.contains(&(site, to)));
        if bytes.len() > mtu {
            return self.fate(site, to, bytes.len(), Fate::TooLong);
        }
        if cut {
            return self.fate(site, to, bytes.len(), Fate::Cut);
        }
        if self.rng.random_bool(loss) {
            return self.fate(site, to, bytes.len(), Fate::Lost);
        }
        let twice = self.rng.random_bool(duplicate);
        if twice {
            self.fate(site, to, bytes.len(), Fate::Duplicated);
        }
        for _ in 0..=usize::from(twice) {
            let due = left + delay + jitter.mul_f64(self.rng.random());
            self.count += 1;
            self.flights.insert((due, self.count), Flight { from, to, bytes: bytes.to_vec() });
        }
    }

    /// Delivers what is due; when the next will be.
    fn deliver(&mut self, now: Instant) -> Option<Instant> {
        while let Some(next) = self.flights.first_entry() {
            if next.key().0 > now {
                return Some(next.key().0);
            }
            let Flight { from, to, bytes } = next.remove();
            let length = bytes.len();
            let Some(site) = self.site_at(to).filter(|site| self.hosts[*site].bound.is_some()) else {
                self.fate(usize::MAX, to, length, Fate::Nobody);
                continue;
            };
            let host = &mut self.hosts[site];
            let fate = if host.translated && !host.asked.contains(&from) {
                Fate::Unasked
            } else if host.buffered + length > RECEIVE_BUFFER {
                Fate::Overflowed
            } else {
                host.buffered += length;
                host.buffer.push_back((from, bytes));
                host.reader.take().into_iter().for_each(Waker::wake);
                Fate::Delivered
            };
            self.fate(usize::MAX, to, length, fate);
        }
        None
    }
}

/// A program's socket.
#[derive(Debug)]
struct Socket {
    network: Network,
    site: Site,
    opening: u64,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let host = &mut self.network.state().hosts[self.site];
        if host.bound == Some(self.opening) {
            host.close();
        }
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Poller { network: self.network.clone(), site: self.site, sleep: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut state = self.network.state();
        let (now, host) = (Instant::now(), &state.hosts[self.site]);
        if host.bound != Some(self.opening) {
            return Ok(());
        }
        if host.free_at.is_some_and(|free| free > now + CARD_BACKLOG) {
            state.fate(self.site, transmit.destination, transmit.contents.len(), Fate::Blocked);
            return Err(ErrorKind::WouldBlock.into());
        }
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for bytes in transmit.contents.chunks(segment) {
            state.leave(self.site, transmit.destination, bytes, now);
        }
        drop(state);
        self.network.0.changed.notify_one();
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.network.state();
        let host = &mut state.hosts[self.site];
        let mut count = 0;
        while host.bound == Some(self.opening) && count < bufs.len().min(meta.len()) {
            let Some((addr, bytes)) = host.buffer.pop_front() else { break };
            host.buffered -= bytes.len();
            let len = bytes.len().min(bufs[count].len());
            bufs[count][..len].copy_from_slice(&bytes[..len]);
            meta[count] = RecvMeta { addr, len, stride: len, ecn: None, dst_ip: None };
            count += 1;
        }
        if count == 0 {
            host.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(Network::address(self.site))
    }

    fn max_transmit_segments(&self) -> usize {
        10
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// Tells when the card has room.
#[derive(Debug)]
struct Poller {
    network: Network,
    site: Site,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl UdpPoller for Poller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
            }
            let free = self.network.state().hosts[self.site].free_at;
            let room = free.and_then(|free| free.checked_sub(CARD_BACKLOG));
            match room.filter(|room| *room > Instant::now()) {
                Some(room) => self.sleep = Some(Box::pin(tokio::time::sleep_until(room))),
                None => {
                    self.sleep = None;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}
