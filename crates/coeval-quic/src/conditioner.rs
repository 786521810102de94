//! The link conditioner: makes this peer's outgoing network bad on purpose, so that users can try bad networks.
//!
//! It works on UDP datagrams below QUIC, on the sending side, so delays and losses of both directions add up when both
//! peers condition. Settings change while links run.
use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A bottleneck queues this much before it drops from the tail.
const MAX_BACKLOG: Duration = Duration::from_millis(250);

/// How bad the outgoing network is. The default is a perfect one.
///
/// Text form: `delay=50ms,jitter=10ms,loss=5%,duplicate=1%,rate=1mbit`, in any order, each optional; `none` is the
/// default. Times in `us`, `ms`, `s`; rates in `bit`, `kbit`, `mbit`, `gbit` per second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Conditioner {
    /// Added to each datagram's way.
    pub delay: Duration,
    /// Up to this much more or less than `delay`, evenly distributed; reorders datagrams.
    pub jitter: Duration,
    /// Share of datagrams lost, 0 to 1.
    pub loss: f64,
    /// Share of datagrams sent twice, 0 to 1.
    pub duplicate: f64,
    /// Bits per second that pass; a quarter of a second of them queues, more is dropped.
    pub bandwidth: Option<u64>,
}

/// Why a conditioner's text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionerError {
    /// A part is not `name=value` with a known name.
    #[error(
        "`{0}` is not a link condition; use delay=TIME, jitter=TIME, loss=N%, duplicate=N%, rate=N(k|m|g)bit"
    )]
    Unknown(String),
    /// A value cannot be read.
    #[error("`{name}={value}` is not {wanted}")]
    Value {
        /// Which setting.
        name: String,
        /// What was given.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
}

impl Conditioner {
    /// Whether anything is conditioned at all.
    pub fn is_active(&self) -> bool {
        *self != Self::default()
    }
}

impl FromStr for Conditioner {
    type Err = ConditionerError;

    fn from_str(text: &str) -> Result<Self, ConditionerError> {
        let mut conditioner = Self::default();
        if text.trim() == "none" {
            return Ok(conditioner);
        }
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| ConditionerError::Unknown(part.into()))?;
            let (name, value) = (name.trim(), value.trim());
            let bad = |wanted| ConditionerError::Value { name: name.into(), value: value.into(), wanted };
            match name {
                "delay" => conditioner.delay = time(value).ok_or_else(|| bad(TIME))?,
                "jitter" => conditioner.jitter = time(value).ok_or_else(|| bad(TIME))?,
                "loss" => conditioner.loss = share(value).ok_or_else(|| bad(SHARE))?,
                "duplicate" => conditioner.duplicate = share(value).ok_or_else(|| bad(SHARE))?,
                "rate" => conditioner.bandwidth = Some(rate(value).ok_or_else(|| bad(RATE))?),
                _ => return Err(ConditionerError::Unknown(part.into())),
            }
        }
        Ok(conditioner)
    }
}

impl fmt::Display for Conditioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut time = |name, value: Duration| {
            if !value.is_zero() {
                parts.push(format!("{name}={}us", value.as_micros()));
            }
        };
        time("delay", self.delay);
        time("jitter", self.jitter);
        for (name, value) in [("loss", self.loss), ("duplicate", self.duplicate)] {
            if value != 0.0 {
                parts.push(format!("{name}={}%", value * 100.0));
            }
        }
        parts.extend(self.bandwidth.map(|bits| format!("rate={bits}bit")));
        if parts.is_empty() { f.write_str("none") } else { f.write_str(&parts.join(",")) }
    }
}

const TIME: &str = "a time of at most a minute, like 50ms or 1.5s";
const SHARE: &str = "a share from 0% to 100%";
const RATE: &str = "a rate above zero, like 500kbit or 1mbit";

fn time(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let seconds = number
        * match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            _ => return None,
        };
    (seconds <= 60.0).then(|| Duration::from_secs_f64(seconds))
}

fn share(text: &str) -> Option<f64> {
    let (number, unit) = split_unit(text)?;
    (unit == "%" && number <= 100.0).then_some(number / 100.0)
}

fn rate(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let bits = number
        * match unit {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return None,
        };
    (1.0..=1e12).contains(&bits).then_some(bits as u64)
}

/// A finite number that is not negative, and the unit after it.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..at].parse().ok()?;
    Some((number, &text[at..]))
}

/// What the conditioner did so far, datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Conditioned {
    /// Offered for sending while conditioned.
    pub offered: u64,
    /// Lost at random.
    pub lost: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Dropped because the bottleneck's queue was full.
    pub overflowed: u64,
    /// Dropped, either way, by a partition.
    pub partitioned: u64,
}

/// The switchboard of one socket's conditioner. Clones control the same socket.
#[derive(Clone, Debug)]
pub struct LinkConditioner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Whether the state must be looked at: an unconditioned socket pays one load.
    active: AtomicBool,
    partitioned: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    settings: Conditioner,
    blocked: BTreeSet<SocketAddr>,
    rng: ChaCha8Rng,
    /// When the bottleneck has passed on all it holds.
    free_at: Option<Instant>,
    counts: Conditioned,
}

impl LinkConditioner {
    /// A perfect network; `seed` decides which datagrams will be lost.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Shared {
            active: AtomicBool::new(false),
            partitioned: AtomicU64::new(0),
            state: Mutex::new(State {
                settings: Conditioner::default(),
                blocked: BTreeSet::new(),
                rng: ChaCha8Rng::seed_from_u64(seed),
                free_at: None,
                counts: Conditioned::default(),
            }),
        }))
    }

    /// Changes the settings, from the next datagram on.
    pub fn set(&self, settings: Conditioner) {
        let mut state = self.0.state.lock();
        state.settings = settings;
        state.free_at = None;
        self.refresh(&state);
    }

    /// The settings in effect.
    pub fn get(&self) -> Conditioner {
        self.0.state.lock().settings
    }

    /// Cuts (or mends) the way to and from one remote address.
    pub fn partition(&self, remote: SocketAddr, cut: bool) {
        let mut state = self.0.state.lock();
        let remote = canonical(remote);
        if cut {
            state.blocked.insert(remote);
        } else {
            state.blocked.remove(&remote);
        }
        self.refresh(&state);
    }

    /// What it did so far.
    pub fn counts(&self) -> Conditioned {
        let partitioned = self.0.partitioned.load(Ordering::Relaxed);
        Conditioned { partitioned, ..self.0.state.lock().counts }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.0.active.load(Ordering::Acquire)
    }

    /// Whether a partition lies between here and `remote`; counts it.
    pub(crate) fn cuts(&self, remote: SocketAddr) -> bool {
        let cut = self.is_active() && self.0.state.lock().blocked.contains(&canonical(remote));
        if cut {
            self.0.partitioned.fetch_add(1, Ordering::Relaxed);
        }
        cut
    }

    /// When copies of a datagram of `bytes` bytes offered at `now` are due: none, one or two.
    pub(crate) fn plan(&self, bytes: usize, now: Instant) -> [Option<Instant>; 2] {
        self.0.state.lock().plan(bytes, now)
    }

    fn refresh(&self, state: &State) {
        let active = state.settings.is_active() || !state.blocked.is_empty();
        self.0.active.store(active, Ordering::Release);
    }
}

impl State {
    fn plan(&mut self, bytes: usize, now: Instant) -> [Option<Instant>; 2] {
        self.counts.offered += 1;
        // A lost datagram still took its share of the bottleneck: it is lost behind it.
        let Some(passed) = self.bottleneck(bytes, now) else {
            self.counts.overflowed += 1;
            return [None; 2];
        };
        if self.rng.random_bool(self.settings.loss) {
            self.counts.lost += 1;
            return [None; 2];
        }
        let first = passed + self.flight();
        if !self.rng.random_bool(self.settings.duplicate) {
            return [Some(first), None];
        }
        self.counts.duplicated += 1;
        [Some(first), Some(passed + self.flight())]
    }

    /// When the bottleneck has let the datagram through; `None` when its queue is full.
    fn bottleneck(&mut self, bytes: usize, now: Instant) -> Option<Instant> {
        let Some(bandwidth) = self.settings.bandwidth else { return Some(now) };
        let start = self.free_at.map_or(now, |free| free.max(now));
        if start > now + MAX_BACKLOG {
            return None;
        }
        let passed = start + Duration::from_secs_f64(bytes as f64 * 8.0 / bandwidth as f64);
        self.free_at = Some(passed);
        Some(passed)
    }

    fn flight(&mut self) -> Duration {
        let Conditioner { delay, jitter, .. } = self.settings;
        if jitter.is_zero() {
            return delay;
        }
        let spread = jitter.mul_f64(2.0 * self.rng.random::<f64>());
        (delay + spread).saturating_sub(jitter)
    }
}

/// The address without the IPv4-in-IPv6 form that dual-stack sockets show.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_form_reads_what_users_write() {
        let parsed: Conditioner =
            "delay=50ms, loss=5%,jitter=10ms,rate=1mbit,duplicate=0.5%".parse().unwrap();
        let expected = Conditioner {
            delay: Duration::from_millis(50),
            jitter: Duration::from_millis(10),
            loss: 0.05,
            duplicate: 0.005,
            bandwidth: Some(1_000_000),
        };
        assert_eq!(parsed, expected);
        assert_eq!("none".parse::<Conditioner>().unwrap(), Conditioner::default());
        assert_eq!("".parse::<Conditioner>().unwrap(), Conditioner::default());
    }

    #[test]
    fn bad_text_is_named() {
        for (text, part) in [
            ("delay=50", "delay=50"),
            ("delay=-5ms", "delay=-5ms"),
            ("loss=101%", "loss=101%"),
            ("loss=NaN%", "loss=NaN%"),
            ("loss=0.05", "loss=0.05"),
            ("rate=0kbit", "rate=0kbit"),
            ("speed=3", "speed=3"),
            ("delay", "delay"),
            ("delay=99999s", "minute"),
            ("delay=ms", "delay=ms"),
        ] {
            let error = text.parse::<Conditioner>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn text_form_round_trips(
            delay in 0u64..60_000_000, jitter in 0u64..60_000_000, loss in 0u32..=100, duplicate in 0u32..=100,
            bandwidth in proptest::option::of(1u64..1_000_000_000_000),
        ) {
            let conditioner = Conditioner {
                delay: Duration::from_micros(delay),
                jitter: Duration::from_micros(jitter),
                loss: f64::from(loss) / 100.0,
                duplicate: f64::from(duplicate) / 100.0,
                bandwidth,
            };
            let back: Conditioner = conditioner.to_string().parse().unwrap();
            prop_assert!((back.loss - conditioner.loss).abs() < 1e-12);
            prop_assert!((back.duplicate - conditioner.duplicate).abs() < 1e-12);
            let near = |a: Duration, b: Duration| a.abs_diff(b) < Duration::from_micros(1);
            prop_assert!(near(back.delay, conditioner.delay) && near(back.jitter, conditioner.jitter));
            prop_assert_eq!(back.bandwidth, conditioner.bandwidth);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}|(delay|loss|rate|jitter)=\\PC{0,12}") {
            let _ = text.parse::<Conditioner>();
        }
    }

    #[test]
    fn shares_and_delays_are_as_set() {
        let link = LinkConditioner::new(7);
        link.set("delay=50ms,jitter=10ms,loss=10%,duplicate=20%".parse().unwrap());
        let now = Instant::now();
        let mut sent = 0;
        for _ in 0..10_000 {
            for due in link.plan(100, now).into_iter().flatten() {
                sent += 1;
                let flight = due - now;
                assert!(
                    flight >= Duration::from_millis(40) && flight <= Duration::from_millis(60),
                    "{flight:?}"
                );
            }
        }
        let counts = link.counts();
        assert_eq!(counts.offered, 10_000);
        assert!((800..1_200).contains(&counts.lost), "{counts:?}");
        assert!((1_500..2_100).contains(&counts.duplicated), "{counts:?}");
        assert_eq!(sent, counts.offered - counts.lost + counts.duplicated);
    }

    #[test]
    fn bottleneck_spaces_datagrams_and_drops_from_the_tail() {
        let link = LinkConditioner::new(7);
        link.set("rate=1mbit".parse().unwrap());
        let now = Instant::now();
        // 1,250 bytes are 10 ms at 1 Mbit/s: 26 fit into the backlog of 250 ms and the one being sent.
        let due: Vec<_> = (0..100).filter_map(|_| link.plan(1_250, now)[0]).collect();
        assert_eq!(due.len(), 26);
        for (i, due) in due.iter().enumerate() {
            let expected = Duration::from_millis(10 * (i as u64 + 1));
            assert!((*due - now).abs_diff(expected) < Duration::from_micros(10));
        }
        assert_eq!(link.counts().overflowed, 74);
        assert!(link.plan(1_250, now + Duration::from_secs(1))[0].is_some(), "the queue has drained");
    }

    #[test]
    fn same_seed_loses_the_same_datagrams() {
        let run = |seed| {
            let link = LinkConditioner::new(seed);
            link.set("loss=50%".parse().unwrap());
            let now = Instant::now();
            (0..64).map(|_| link.plan(1, now)[0].is_some()).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
