//! Judges what the joiners read against the authors' truth, after the run.
//!
//! A read at sim time t is compared with the truth at the same t. It may be off by the threshold; or, while the sample
//! it rests on was already superseded at its author but the newer one was still on its way (or while a change of the
//! clock was), by as much as the superseded sample was off during that latency. The judge computes that bound itself,
//! from the published samples and the truth, so a reader that evaluates a sample wrongly or late is found out.
use super::movers::{FLIGHT_THRESHOLD_M, SATELLITE_THRESHOLD_M};
use super::report::{ORBITS, Read, Seen, Sent, Way};
use super::world::World;
use coeval::{Motion, extrapolate};
use std::collections::BTreeMap;

/// The judge and the library round the same prediction differently: by less than this, m, over the demo's distances.
const ROUNDING_M: f64 = 1e-6;
/// After an author noticed a change of the clock, it compares its truth anew within this, ns.
const NOTICE_NS: u64 = 100_000_000;

/// All that the processes told.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// By entity, in stamp order.
    pub(crate) sent: BTreeMap<String, BTreeMap<u64, Sent>>,
    /// By process.
    pub(crate) seen: Vec<(usize, Seen)>,
    /// (process, entity, stamp) to the wall instant of arrival.
    pub(crate) arrived: BTreeMap<(usize, String, u64), u64>,
    /// When the clock was changed.
    pub(crate) edits: Vec<u64>,
    /// By process, when it noticed that the clock was changed.
    pub(crate) heard: BTreeMap<usize, Vec<u64>>,
    /// When the host was killed: its flights have no truth from then on.
    pub(crate) killed: Option<u64>,
}

/// How far reads were off, where the ratio to what is allowed is worst.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) checks: u64,
    pub(crate) max_error_m: f64,
    pub(crate) allowed_m: f64,
    /// Largest difference between what was read and what the judge computes from the same sample, m.
    pub(crate) max_evaluation_error_m: f64,
    /// The worst share of its threshold that a read was off while nothing was on its way.
    pub(crate) settled_error_over_threshold: f64,
    /// A century away: reads of flights that were held, reads of satellites that followed their orbits, and all others.
    pub(crate) held: u64,
    pub(crate) followed: u64,
    pub(crate) astray: u64,
}

impl Verdict {
    /// Counts how a read came about where there is no truth, a century from the start.
    fn far_away(&mut self, world: &World, seen: &Seen, read: &Read) {
        if world.truth(&read.entity, seen.sim.sim()).is_some() {
            return;
        }
        match (world.is_flight(&read.entity), read.way) {
            (true, Way::Held) => self.held += 1,
            (false, Way::Predicted) => self.followed += 1,
            _ => self.astray += 1,
        }
    }
}

impl Evidence {
    /// Checks every read that has a truth.
    pub(crate) fn judge(&self, world: &World) -> Verdict {
        let mut verdict = Verdict::default();
        let reads = self.by_sample(world);
        for (process, seen) in &self.seen {
            for read in &seen.motions {
                verdict.far_away(world, seen, read);
                let Some(case) = self.case(world, *process, seen, read) else { continue };
                let during = reads.get(&(*process, read.entity.as_str(), read.stamp)).copied().unwrap_or(0.0);
                let allowed =
                    ROUNDING_M + if case.in_flight { during.max(case.threshold) } else { case.threshold };
                verdict.checks += 1;
                if !case.in_flight {
                    let share = case.error / case.threshold;
                    verdict.settled_error_over_threshold = verdict.settled_error_over_threshold.max(share);
                }
                verdict.max_evaluation_error_m = verdict.max_evaluation_error_m.max(case.evaluation);
                if verdict.checks == 1 || case.error * verdict.allowed_m > verdict.max_error_m * allowed {
                    (verdict.max_error_m, verdict.allowed_m) = (case.error, allowed);
                }
            }
        }
        verdict
    }

    /// The largest error that each superseded sample reached at each process, by the judge's own evaluation.
    fn by_sample(&self, world: &World) -> BTreeMap<(usize, &str, u64), f64> {
        let mut worst = BTreeMap::new();
        for (process, seen) in &self.seen {
            for read in &seen.motions {
                let Some(case) = self.case(world, *process, seen, read) else { continue };
                if case.in_flight {
                    let entry = worst.entry((*process, read.entity.as_str(), read.stamp)).or_insert(0.0_f64);
                    *entry = entry.max(case.predicted_error);
                }
            }
        }
        worst
    }

    /// When every process that was alive had noticed the change made at `at`, and looked at its truth since.
    fn heard_by_all(&self, at: u64) -> u64 {
        let first = |heard: &Vec<u64>| heard.iter().find(|wall| **wall >= at).copied();
        self.heard.values().filter_map(first).max().map_or(u64::MAX, |wall| wall + NOTICE_NS)
    }

    fn case(&self, world: &World, process: usize, seen: &Seen, read: &Read) -> Option<Case> {
        let flight = world.is_flight(&read.entity);
        if !flight && process == ORBITS {
            // Its author reads the truth itself.
            return None;
        }
        if flight && self.killed.is_some_and(|at| seen.wall >= at) {
            return None;
        }
        let (truth, _) = world.truth(&read.entity, seen.sim.sim())?;
        let samples = self.sent.get(&read.entity)?;
        let sample = samples.get(&read.stamp)?;
        // Interpolated reads are of the past: newer samples came after a reader was stopped between taking its context
        // and reading. A value that is held does not come from the sample alone: it is judged by the truth only.
        let predicted = match read.way {
            Way::Predicted => evaluate(world, sample, seen, flight)?,
            Way::Held => read.position,
            Way::Between => return None,
        };
        let next = samples.range(read.stamp + 1..).next();
        let superseded = next.is_some_and(|(stamp, next)| {
            let arrived = self.arrived.get(&(process, read.entity.clone(), *stamp)).copied();
            // The reader's session clock may be ahead of the author's by what it says it is unsure of.
            let since = next.good_at.saturating_sub(seen.unsure);
            (since..=arrived.unwrap_or(u64::MAX)).contains(&seen.wall)
        });
        let changing = self.edits.iter().any(|at| (*at..=self.heard_by_all(*at)).contains(&seen.wall));
        Some(Case {
            error: distance(read.position, truth),
            predicted_error: distance(predicted, truth),
            evaluation: distance(read.position, predicted),
            threshold: if flight { FLIGHT_THRESHOLD_M } else { SATELLITE_THRESHOLD_M },
            in_flight: superseded || changing,
        })
    }
}

struct Case {
    error: f64,
    predicted_error: f64,
    evaluation: f64,
    threshold: f64,
    in_flight: bool,
}

/// What the sample says at the time of the read.
fn evaluate(world: &World, sample: &Sent, seen: &Seen, flight: bool) -> Option<[f64; 3]> {
    let dt = seen.sim.sim().seconds_since(sample.sim.sim());
    if flight {
        return Some(std::array::from_fn(|k| sample.position[k] + sample.velocity[k] * dt));
    }
    let initial = world.initial_motion(&sample.entity)?;
    let motion = Motion { position: Some(sample.position), velocity: Some(sample.velocity), ..initial };
    extrapolate(&motion, dt).ok()?.position
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::report::Moment;
    use super::*;
    use coeval::SimDuration;

    const FLIGHT: &str = "airliner_tree";
    const SECOND: u64 = 1_000_000_000;

    /// One sample, read 0.1 s later, off by `off` meters; superseded or not.
    fn verdict(off: f64, superseded: bool) -> Verdict {
        let world = World::load().expect("the demo's own world");
        let start = world.config.start;
        let (position, velocity) = world.truth(FLIGHT, start).expect("truth at the start");
        let sample = |stamp| Sent {
            entity: FLIGHT.into(),
            stamp,
            good_at: stamp - SECOND / 100,
            sim: Moment::of(start),
            position,
            velocity,
        };
        let later = start.saturating_add(SimDuration::from_nanos(100_000_000));
        let mut evidence = Evidence::default();
        let samples = evidence.sent.entry(FLIGHT.into()).or_default();
        samples.insert(SECOND, sample(SECOND));
        if superseded {
            samples.insert(SECOND + SECOND / 20, sample(SECOND + SECOND / 20));
        }
        let mut read = std::array::from_fn(|k| position[k] + velocity[k] * 0.1);
        read[0] += off;
        let read = Read { entity: FLIGHT.into(), stamp: SECOND, position: read, way: Way::Predicted };
        let seen = Seen {
            wall: SECOND + SECOND / 10,
            sim: Moment::of(later),
            rate: 1.0,
            unsure: 0,
            motions: vec![read],
        };
        evidence.seen.push((2, seen));
        evidence.judge(&world)
    }

    #[test]
    fn a_faithful_read_is_within_what_is_allowed() {
        for superseded in [false, true] {
            let verdict = verdict(0.0, superseded);
            assert_eq!(verdict.checks, 1);
            assert!(verdict.max_error_m <= verdict.allowed_m, "{verdict:?}");
            assert!(verdict.max_evaluation_error_m < 1e-9, "{verdict:?}");
        }
    }

    #[test]
    fn a_reader_that_evaluates_wrongly_is_found_out_also_while_a_sample_is_on_its_way() {
        for superseded in [false, true] {
            let verdict = verdict(2.0, superseded);
            assert!(verdict.max_error_m > verdict.allowed_m, "{verdict:?}");
        }
    }
}
