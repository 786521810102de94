//! A UDP proxy between the peers of a session, which makes each way between two of them as bad as it is told.
//!
//! Each peer listens at an address of its own, known beforehand, and tells others to dial its *front* here. What comes to
//! a front is known by the address it comes from, and goes on from a socket kept for that pair, as behind a NAT: so the
//! answers find their way back, and each of the ways between two peers has a weather of its own.
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;

/// The largest datagram there is.
const LARGEST: usize = 65_536;
/// Datagrams that are held back at once; more are lost, as in a router.
const HELD: usize = 32_768;
/// A datagram that is to be overtaken is held back for up to this much longer.
const OVERTAKEN: Duration = Duration::from_millis(30);

/// What happens to datagrams on one way. The default is nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Weather {
    /// Added to each datagram's way.
    pub delay: Duration,
    /// Up to this much more, evenly distributed.
    pub jitter: Duration,
    /// Share of datagrams lost, 0 to 1.
    pub loss: f64,
    /// Share of datagrams that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// Share of datagrams held back so that later ones overtake them, 0 to 1.
    pub reorder: f64,
    /// Nothing passes.
    pub cut: bool,
}

impl Weather {
    /// What comes of both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            delay: self.delay + other.delay,
            jitter: self.jitter + other.jitter,
            loss: self.loss.max(other.loss),
            duplicate: self.duplicate.max(other.duplicate),
            reorder: self.reorder.max(other.reorder),
            cut: self.cut || other.cut,
        }
    }
}

/// Datagrams by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Went on, late or not.
    pub passed: u64,
    /// Were lost by chance.
    pub lost: u64,
    /// Were lost because the way was cut.
    pub cut: u64,
    /// Went on twice.
    pub duplicated: u64,
    /// Were held back to be overtaken.
    pub reordered: u64,
    /// Came from an address that is no peer's.
    pub strange: u64,
}

#[derive(Default)]
struct Counters {
    passed: AtomicU64,
    lost: AtomicU64,
    cut: AtomicU64,
    duplicated: AtomicU64,
    reordered: AtomicU64,
    strange: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The weather of all ways, and chance.
struct Sky {
    peers: usize,
    ways: Mutex<Vec<Weather>>,
    rng: Mutex<ChaCha8Rng>,
    counters: Counters,
    held: AtomicUsize,
}

/// Nothing is left half done under these locks, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sky {
    /// After how long a datagram goes on: never, once, or twice.
    fn plan(&self, from: usize, to: usize) -> [Option<Duration>; 2] {
        let weather = lock(&self.ways)[from * self.peers + to];
        let mut rng = lock(&self.rng);
        if weather.cut {
            count(&self.counters.cut);
            return [None, None];
        }
        if rng.random_bool(weather.loss) {
            count(&self.counters.lost);
            return [None, None];
        }
        let mut after = || weather.delay + weather.jitter.mul_f64(rng.random());
        let (mut first, second) = (after(), after());
        if rng.random_bool(weather.reorder) {
            count(&self.counters.reordered);
            first += OVERTAKEN.mul_f64(rng.random());
        }
        let twice = rng.random_bool(weather.duplicate);
        if twice {
            count(&self.counters.duplicated);
        }
        count(&self.counters.passed);
        [Some(first), twice.then_some(second)]
    }
}

/// A running proxy; ends when dropped.
pub struct Proxy {
    fronts: Vec<SocketAddr>,
    sky: Arc<Sky>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Stands before the peers that listen (or will) at `peers`; `seed` decides which datagrams suffer.
    ///
    /// # Errors
    /// When sockets or the thread cannot be had.
    pub fn start(peers: &[SocketAddr], seed: u64) -> io::Result<Self> {
        let sky = Arc::new(Sky {
            peers: peers.len(),
            ways: Mutex::new(vec![Weather::default(); peers.len() * peers.len()]),
            rng: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            counters: Counters::default(),
            held: AtomicUsize::new(0),
        });
        let bound: io::Result<Vec<_>> = peers.iter().map(|_| bind()).collect();
        let bound = bound?;
        let fronts = bound.iter().map(std::net::UdpSocket::local_addr).collect::<io::Result<_>>()?;
        let (stop, stopped) = oneshot::channel();
        let (peers, shared) = (peers.to_vec(), Arc::clone(&sky));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("proxy".into()).spawn(move || {
            runtime.block_on(async {
                match run(&shared, &peers, bound) {
                    // An error means that the proxy was dropped.
                    Ok(()) => drop(stopped.await),
                    Err(error) => panic!("the proxy has no sockets: {error}"),
                }
            });
        })?;
        Ok(Self { fronts, sky, stop: Some(stop), thread: Some(thread) })
    }

    /// Where others are to dial the peer `index`.
    pub fn front(&self, index: usize) -> SocketAddr {
        self.fronts[index]
    }

    /// Sets the weather on the way from one peer to another.
    pub fn set(&self, from: usize, to: usize, weather: Weather) {
        lock(&self.sky.ways)[from * self.sky.peers + to] = weather;
    }

    /// What became of the datagrams so far.
    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.sky.counters;
        Traffic {
            passed: read(&counters.passed),
            lost: read(&counters.lost),
            cut: read(&counters.cut),
            duplicated: read(&counters.duplicated),
            reordered: read(&counters.reordered),
            strange: read(&counters.strange),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails only when the thread is gone.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bind() -> io::Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Starts a task for each socket. Must run inside the runtime.
fn run(sky: &Arc<Sky>, peers: &[SocketAddr], bound: Vec<std::net::UdpSocket>) -> io::Result<()> {
    for (to, front) in bound.into_iter().enumerate() {
        let front = Arc::new(UdpSocket::from_std(front)?);
        let mut onward = BTreeMap::new();
        for (from, &address) in peers.iter().enumerate().filter(|(from, _)| *from != to) {
            let socket = Arc::new(UdpSocket::from_std(bind()?)?);
            tokio::spawn(back(
                Arc::clone(sky),
                (to, from),
                (Arc::clone(&socket), peers[to]),
                Exit { socket: Arc::clone(&front), to: address },
            ));
            onward.insert(address, (from, Exit { socket, to: peers[to] }));
        }
        tokio::spawn(forth(Arc::clone(sky), to, front, onward));
    }
    Ok(())
}

/// Where datagrams of one way leave the proxy.
#[derive(Clone)]
struct Exit {
    socket: Arc<UdpSocket>,
    to: SocketAddr,
}

/// Carries what comes to the front of the peer `to`.
async fn forth(sky: Arc<Sky>, to: usize, front: Arc<UdpSocket>, onward: BTreeMap<SocketAddr, (usize, Exit)>) {
    let mut buffer = vec![0; LARGEST];
    loop {
        // An error tells that an earlier datagram found nobody: a peer that was killed.
        let Ok((length, source)) = front.recv_from(&mut buffer).await else { continue };
        match onward.get(&source) {
            Some((from, exit)) => carry(&sky, (*from, to), exit, &buffer[..length]),
            None => count(&sky.counters.strange),
        }
    }
}

/// Carries what the peer `way.0`, which is at `entry.1`, answers to the peer `way.1`.
async fn back(sky: Arc<Sky>, way: (usize, usize), entry: (Arc<UdpSocket>, SocketAddr), exit: Exit) {
    let mut buffer = vec![0; LARGEST];
    let (socket, peer) = entry;
    loop {
        let Ok((length, source)) = socket.recv_from(&mut buffer).await else { continue };
        if source == peer {
            carry(&sky, way, &exit, &buffer[..length]);
        } else {
            count(&sky.counters.strange);
        }
    }
}

fn carry(sky: &Arc<Sky>, (from, to): (usize, usize), exit: &Exit, datagram: &[u8]) {
    for after in sky.plan(from, to).into_iter().flatten() {
        if after.is_zero() {
            // A full buffer loses it, as UDP may.
            let _ = exit.socket.try_send_to(datagram, exit.to);
        } else if sky.held.fetch_add(1, Ordering::Relaxed) < HELD {
            let (sky, exit, datagram) = (Arc::clone(sky), exit.clone(), datagram.to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                let _ = exit.socket.try_send_to(&datagram, exit.to);
                sky.held.fetch_sub(1, Ordering::Relaxed);
            });
        } else {
            sky.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// Two sockets and a proxy between them; what a weather of one way lets through, of `sent` datagrams.
    fn received(weather: Weather, sent: u32) -> Vec<u32> {
        let [a, b] = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket"));
        let addresses = [&a, &b].map(|socket| socket.local_addr().expect("an address"));
        let proxy = Proxy::start(&addresses, 7).expect("a proxy");
        proxy.set(0, 1, weather);
        b.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        for number in 0..sent {
            a.send_to(&number.to_be_bytes(), proxy.front(1)).expect("sent");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut got = Vec::new();
        let mut buffer = [0; 4];
        while let Ok((4, source)) = b.recv_from(&mut buffer) {
            got.push(u32::from_be_bytes(buffer));
            // The other way is fair.
            b.send_to(&buffer, source).expect("answered");
        }
        a.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        let answered = std::iter::from_fn(|| a.recv_from(&mut buffer).ok()).count();
        assert_eq!(answered, got.len());
        got
    }

    #[test]
    fn fair_weather_passes_everything_both_ways() {
        assert_eq!(received(Weather::default(), 100), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_is_of_one_way() {
        assert!(received(Weather { cut: true, ..Weather::default() }, 10).is_empty());
    }

    #[test]
    fn datagrams_are_lost_doubled_and_overtaken() {
        let lost = received(Weather { loss: 0.5, ..Weather::default() }, 100);
        assert!((20..80).contains(&lost.len()), "{lost:?}");
        let doubled = received(Weather { duplicate: 0.5, ..Weather::default() }, 100);
        assert!((120..180).contains(&doubled.len()), "{doubled:?}");
        let jitter = Duration::from_millis(20);
        let overtaken = received(Weather { jitter, reorder: 0.5, ..Weather::default() }, 100);
        assert!(overtaken.len() == 100 && !overtaken.is_sorted(), "{overtaken:?}");
    }
}
