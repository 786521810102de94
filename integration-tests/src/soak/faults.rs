//! What is done to the processes, drawn from a seed.
use crate::proxy::Weather;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Shortest and longest time between two faults.
const GAP: [f64; 2] = [0.25, 0.9];
/// Long runs are up to this much calmer, by their seed: what breaks while all seem well differs from what breaks in a storm.
const CALM: f64 = 4.0;
/// A way that flaps is open and cut for this long in turn.
const FLAP: Duration = Duration::from_millis(300);
/// In how long a run faults last their full time. In shorter ones they are shorter.
const FULL: Duration = Duration::from_secs(120);

/// A fault. Peers are named by their seats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// `kill -9`; the seat is taken anew when the fault ends.
    Kill(usize),
    /// SIGSTOP, and SIGCONT when the fault ends.
    Stop(usize),
    /// As `Stop`, for longer than the others wait.
    Stall(usize),
    /// Nothing comes through from the first to the second.
    OneWay(usize, usize),
    /// Nothing comes through between the two.
    Cut(usize, usize),
    /// Cut and open in turn.
    Flap(usize, usize),
    /// Nothing comes through to this one: a reader that takes nothing.
    Deaf(usize),
    /// Nothing comes through to or from this one.
    Isolate(usize),
    /// Nothing comes through between those whose bit is set and the others.
    Split(u64),
    /// Delay, loss, repetition and disorder between all.
    Storm,
}

/// A fault with its time, counted from when all processes were up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// What.
    pub fault: Fault,
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
}

/// How many kinds of faults there are.
const KINDS: usize = 10;

impl Fault {
    /// What counts are kept under.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill",
            Self::Stop(_) => "stop",
            Self::Stall(_) => "stall",
            Self::OneWay(..) => "one_way_cut",
            Self::Cut(..) => "two_way_cut",
            Self::Flap(..) => "flap",
            Self::Deaf(_) => "stalled_reader",
            Self::Isolate(_) => "isolation",
            Self::Split(_) => "split",
            Self::Storm => "storm",
        }
    }

    /// Shortest and longest duration in seconds, in a long run. A link is given up after 10 s, a peer after 12.
    fn seconds(self) -> [f64; 2] {
        match self {
            Self::Kill(_) => [0.2, 5.0],
            Self::Stop(_) => [0.1, 4.0],
            Self::Stall(_) | Self::Deaf(_) => [8.0, 16.0],
            Self::OneWay(..) | Self::Cut(..) | Self::Isolate(_) | Self::Split(_) => [0.5, 14.0],
            Self::Flap(..) | Self::Storm => [2.0, 8.0],
        }
    }

    fn draw(kind: usize, peers: usize, rng: &mut ChaCha8Rng) -> Self {
        let one = rng.random_range(0..peers);
        let other = (one + rng.random_range(1..peers)) % peers;
        match kind {
            0 => Self::Kill(one),
            1 => Self::Stop(one),
            2 => Self::Stall(one),
            3 => Self::OneWay(one, other),
            4 => Self::Cut(one, other),
            5 => Self::Flap(one, other),
            6 => Self::Deaf(one),
            7 => Self::Isolate(one),
            8 => Self::Split(rng.random_range(1..(1 << peers) - 1)),
            _ => Self::Storm,
        }
    }

    /// What it does to the way between two seats, `since` it began.
    fn weather(self, from: usize, to: usize, since: Duration) -> Weather {
        let between = |a, b| (from, to) == (a, b) || (from, to) == (b, a);
        let cut = match self {
            Self::OneWay(a, b) => (from, to) == (a, b),
            Self::Cut(a, b) => between(a, b),
            Self::Flap(a, b) => between(a, b) && (since.as_millis() / FLAP.as_millis()).is_multiple_of(2),
            Self::Deaf(seat) => to == seat,
            Self::Isolate(seat) => from == seat || to == seat,
            Self::Split(side) => (side >> from & 1) != (side >> to & 1),
            Self::Storm => {
                let ms = Duration::from_millis;
                return Weather {
                    delay: ms(40),
                    jitter: ms(80),
                    loss: 0.2,
                    duplicate: 0.1,
                    reorder: 0.2,
                    cut: false,
                };
            }
            Self::Kill(_) | Self::Stop(_) | Self::Stall(_) => false,
        };
        Weather { cut, ..Weather::default() }
    }
}

/// The faults of a run: each kind comes once before any comes again at will, and the host is killed among the first.
pub fn plan(seed: u64, peers: usize, length: Duration) -> Vec<Planned> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut kinds: Vec<usize> = (0..KINDS).collect();
    kinds.shuffle(&mut rng);
    let calm = if length >= FULL { rng.random_range(1.0..CALM) } else { 1.0 };
    let short = (length.as_secs_f64() / FULL.as_secs_f64()).clamp(0.1, 1.0);
    let mut planned = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at += Duration::from_secs_f64(rng.random_range(GAP[0]..GAP[1]) * calm);
        if at >= length {
            return planned;
        }
        let fault = match planned.len() {
            KINDS => Fault::Kill(0),
            count => {
                let kind = kinds.get(count).copied().unwrap_or_else(|| rng.random_range(0..KINDS));
                Fault::draw(kind, peers, &mut rng)
            }
        };
        let [least, most] = fault.seconds();
        let lasts = Duration::from_secs_f64(rng.random_range(least..most) * short.sqrt());
        planned.push(Planned { fault, at, lasts });
    }
}

/// The weather on a way while these faults go on, each with how long it has.
pub fn weather(from: usize, to: usize, faults: &[(Fault, Duration)]) -> Weather {
    // Never fair while the run lasts: some delay, and a little of everything.
    let base = Weather {
        delay: Duration::from_millis(((from * 7 + to * 3) % 8) as u64),
        jitter: Duration::from_millis(4),
        loss: 0.01,
        duplicate: 0.005,
        reorder: 0.01,
        cut: false,
    };
    faults.iter().fold(base, |sum, (fault, since)| sum.and(fault.weather(from, to, *since)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_is_a_plan_with_every_kind_in_it() {
        let length = Duration::from_secs(120);
        let planned = plan(3, 8, length);
        assert_eq!(planned, plan(3, 8, length));
        assert_ne!(planned, plan(4, 8, length));
        let kinds: BTreeSet<_> = planned.iter().map(|one| one.fault.name()).collect();
        assert_eq!(kinds.len(), KINDS);
        assert!(planned.iter().any(|one| one.fault == Fault::Kill(0)));
        assert!(planned.is_sorted_by_key(|one| one.at));
    }

    #[test]
    fn a_split_cuts_between_the_sides_only() {
        let cut = |from, to| weather(from, to, &[(Fault::Split(0b011), Duration::ZERO)]).cut;
        assert!(cut(0, 2) && cut(2, 1) && !cut(0, 1) && !cut(3, 2));
    }
}
