//! The rule for a read at an instant, over the samples that a cell holds of one parameter.
//!
//! 1. Only samples of the newest epoch present count. Those of an abandoned epoch serve while no newer exists; those
//!    written by an author that had not heard of the jump are counted, and change nothing.
//! 2. At or beyond the newest sample in its writer's direction of time: that sample, and the policy forward.
//! 3. Else the newest pair adjacent in stamp order, of one writer, that brackets the instant: interpolate. At one sim
//!    time the newer stamp is read. Nothing is interpolated into a discontinuous write.
//! 4. Else, where writers alternate or a teleport parts two samples, the newest sample that the instant is at or
//!    beyond, and the policy forward.
//! 5. Else the oldest sample, and the policy backward.
//!
//! After a jump a *local* model is no longer valid: jumps move time, not state. Until its author writes again the last
//! value holds, and the quality says by how much. A global model (an orbit) gives its value at the new date.
use crate::Evolve;
use crate::policy::{Beyond, Mode, Moment, Policy, Quality, ReadError, Reading, Side, Span};
use coeval_time::{Direction, SimDuration, SimTime, Stamp, WallDuration, WallTime};
use coeval_value::{Leaf, SampleMeta, Value};

/// What selection needs of a stored sample, whatever the store keeps it in.
pub trait Sampled {
    /// The type of the value.
    type Value: Evolve;
    /// The value.
    fn value(&self) -> &Self::Value;
    /// Which write it is.
    fn stamp(&self) -> Stamp;
    /// The writer's time.
    fn meta(&self) -> &SampleMeta;
}

/// A value with its stamp and its writer's time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample<T> {
    /// Which write it is.
    pub stamp: Stamp,
    /// The writer's time.
    pub meta: SampleMeta,
    /// The value.
    pub value: T,
}

impl<T: Evolve> Sampled for Sample<T> {
    type Value = T;

    #[inline]
    fn value(&self) -> &T {
        &self.value
    }

    #[inline]
    fn stamp(&self) -> Stamp {
        self.stamp
    }

    #[inline]
    fn meta(&self) -> &SampleMeta {
        &self.meta
    }
}

impl Sampled for Leaf {
    type Value = Value;

    fn value(&self) -> &Value {
        &self.value
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn meta(&self) -> &SampleMeta {
        &self.meta
    }
}

/// Reads `samples`, in stamp order with the newest last, at `moment`. See [`read_with`].
///
/// # Errors
/// [`ReadError`].
pub fn read<S: Sampled>(
    samples: &[S],
    moment: &Moment,
    policy: &Policy,
) -> Result<Reading<S::Value>, ReadError> {
    read_with(samples, moment, policy, |_| None)
}

/// Reads `samples`, in stamp order with the newest last, at `moment`, by the rule of this module.
///
/// `sim_at` gives the sim time that the clock had at a wall instant. It is asked only when the forward span of wall
/// time is over and the value holds: it then holds where the model stood at the span's end, rather than falling back
/// to where the sample was written (which is what `None` gives).
///
/// # Errors
/// [`ReadError::Empty`] without samples; the other two only where the policy says [`Beyond::Missing`].
pub fn read_with<S: Sampled>(
    samples: &[S],
    moment: &Moment,
    policy: &Policy,
    sim_at: impl Fn(WallTime) -> Option<SimTime>,
) -> Result<Reading<S::Value>, ReadError> {
    let epoch = samples.iter().map(|s| s.meta().epoch).max().ok_or(ReadError::Empty)?;
    let current = |&i: &usize| samples[i].meta().epoch == epoch;
    let oldest = (0..samples.len()).find(current).ok_or(ReadError::Empty)?;
    let newest = (oldest..samples.len()).rfind(current).ok_or(ReadError::Empty)?;
    let stale = (oldest..samples.len()).filter(|i| !current(i)).count() as u32;
    let choice = choose(samples, oldest, newest, moment.sim);
    let mut reading = match choice {
        Choice::Pair(earlier, later) => pair(&samples[earlier], &samples[later], moment.sim),
        Choice::Backward(_) if epoch != moment.epoch => {
            beyond(&samples[newest], moment, moment.wall, &policy.backward, Way::Past, &sim_at)?
        }
        Choice::Forward(i, until) => {
            let until = until.map_or(moment.wall, |next| samples[next].stamp().wall().min(moment.wall));
            beyond(&samples[i], moment, until, &policy.forward, Way::Future, &sim_at)?
        }
        Choice::Backward(i) => {
            beyond(&samples[i], moment, moment.wall, &policy.backward, Way::Past, &sim_at)?
        }
    };
    reading.index = match choice {
        Choice::Pair(i, _) | Choice::Forward(i, _) => i,
        Choice::Backward(_) if epoch != moment.epoch => newest,
        Choice::Backward(i) => i,
    };
    reading.stale = stale;
    Ok(reading)
}

/// The hot case: a register read at or beyond its own sample, within its epoch. No search, no allocation for `Copy`
/// types. `None` when it is not that case, or the span is over: use [`read`].
///
/// The caller vouches that this sample is the newest written and that no newer epoch is present in the cell.
#[inline]
pub fn read_newest<T: Evolve>(
    value: &T,
    stamp: Stamp,
    meta: &SampleMeta,
    moment: &Moment,
    policy: &Policy,
) -> Option<Reading<T>> {
    let by = moment.sim.since(meta.sim);
    if meta.epoch != moment.epoch || !reached(meta.direction, by) {
        return None;
    }
    let side = &policy.forward;
    let (value, quality) = if by == SimDuration::ZERO {
        (value.clone(), Quality::Exact)
    } else if value.is_global() || in_span(side.span, stamp, by, moment, moment.wall) {
        evaluated(value, by, side.mode)
    } else {
        return None;
    };
    Some(Reading { value, quality, index: 0, stamp, sim: meta.sim, stale: 0 })
}

#[derive(Clone, Copy)]
enum Choice {
    /// Interpolate from the earlier written to the later.
    Pair(usize, usize),
    /// This sample forward, until (the write of) the next one.
    Forward(usize, Option<usize>),
    /// This sample backward.
    Backward(usize),
}

#[derive(Clone, Copy)]
enum Way {
    Past,
    Future,
}

/// Whether an instant `by` from a sample is at or beyond it in its writer's direction.
#[inline]
fn reached(direction: Direction, by: SimDuration) -> bool {
    match direction {
        Direction::Forward => by >= SimDuration::ZERO,
        Direction::Backward => by <= SimDuration::ZERO,
    }
}

fn choose<S: Sampled>(samples: &[S], oldest: usize, newest: usize, sim: SimTime) -> Choice {
    let epoch = samples[newest].meta().epoch;
    let at_or_beyond = |i: usize| reached(samples[i].meta().direction, sim.since(samples[i].meta().sim));
    if at_or_beyond(newest) {
        return Choice::Forward(newest, None);
    }
    let (mut later, mut open) = (newest, None);
    for i in (oldest..newest).rev().filter(|&i| samples[i].meta().epoch == epoch) {
        if samples[later].meta().sim == sim {
            return Choice::Forward(later, None);
        }
        if joined(&samples[i], &samples[later], sim) {
            return Choice::Pair(i, later);
        }
        if open.is_none() && at_or_beyond(i) {
            open = Some(Choice::Forward(i, Some(later)));
        }
        later = i;
    }
    if samples[oldest].meta().sim == sim {
        return Choice::Forward(oldest, None);
    }
    open.unwrap_or(Choice::Backward(oldest))
}

/// Whether two samples adjacent in stamp order may be interpolated at `sim`, strictly between them.
fn joined<S: Sampled>(earlier: &S, later: &S, sim: SimTime) -> bool {
    let (from, to) = (earlier.meta().sim, later.meta().sim);
    earlier.stamp().writer == later.stamp().writer
        && !later.meta().discontinuous
        && ((from < sim && sim < to) || (to < sim && sim < from))
}

fn pair<S: Sampled>(earlier: &S, later: &S, sim: SimTime) -> Reading<S::Value> {
    let from = earlier.meta().sim;
    let (span, since) = (later.meta().sim.since(from), sim.since(from));
    let joined = earlier.value().between(later.value(), span.as_secs_f64(), since.as_secs_f64());
    let (value, quality) = match joined {
        Some(value) => (value, Quality::Interpolated),
        None => (earlier.value().clone(), Quality::Held { by: since }),
    };
    Reading { value, quality, index: 0, stamp: earlier.stamp(), sim: from, stale: 0 }
}

/// One sample and the policy of one side, its age counted until the wall instant `until`.
fn beyond<S: Sampled>(
    sample: &S,
    moment: &Moment,
    until: WallTime,
    side: &Side,
    way: Way,
    sim_at: &impl Fn(WallTime) -> Option<SimTime>,
) -> Result<Reading<S::Value>, ReadError> {
    let (value, meta) = (sample.value(), sample.meta());
    let by = moment.sim.since(meta.sim);
    let valid = meta.epoch == moment.epoch && in_span(side.span, sample.stamp(), by, moment, until);
    let (value, quality) = if by == SimDuration::ZERO {
        (value.clone(), Quality::Exact)
    } else if value.is_global() || valid {
        evaluated(value, by, side.mode)
    } else if side.then == Beyond::Hold {
        let end = span_end(sample, moment, side, sim_at).filter(|_| matches!(way, Way::Future));
        held_at(value, meta, by, end)
    } else {
        return Err(match way {
            Way::Past => ReadError::TooFarPast { by },
            Way::Future => ReadError::TooFarFuture { by },
        });
    };
    Ok(Reading { value, quality, index: 0, stamp: sample.stamp(), sim: meta.sim, stale: 0 })
}

#[inline]
fn evaluated<T: Evolve>(value: &T, by: SimDuration, mode: Mode) -> (T, Quality) {
    let evolved = if mode == Mode::Model { value.evolve(by.as_secs_f64()) } else { None };
    match evolved {
        Some(value) => (value, Quality::Extrapolated { by }),
        None => (value.clone(), Quality::Held { by }),
    }
}

/// The instant, from the sample, at which a local model's trusted span ended; `None` where it holds as written.
fn span_end<S: Sampled>(
    sample: &S,
    moment: &Moment,
    side: &Side,
    sim_at: &impl Fn(WallTime) -> Option<SimTime>,
) -> Option<SimDuration> {
    let meta = sample.meta();
    if meta.epoch != moment.epoch || side.mode == Mode::Hold {
        return None;
    }
    let by = moment.sim.since(meta.sim);
    let end = match side.span {
        Span::Samples | Span::Unlimited => return None,
        Span::Sim(span) => SimDuration::from_nanos(span.as_nanos().abs() * by.as_nanos().signum()),
        Span::Wall(span) => sim_at(born(sample.stamp(), moment).saturating_add(span))?.since(meta.sim),
    };
    // Never beyond the instant asked: a clock that turned round meanwhile ended its span elsewhere.
    let within = reached(meta.direction, end) && end.as_nanos().abs() <= by.as_nanos().abs();
    within.then_some(end)
}

fn held_at<T: Evolve>(
    value: &T,
    meta: &SampleMeta,
    by: SimDuration,
    end: Option<SimDuration>,
) -> (T, Quality) {
    let moved =
        end.filter(|e| reached(meta.direction, *e)).and_then(|e| Some((value.evolve(e.as_secs_f64())?, e)));
    match moved {
        Some((value, end)) => {
            let by = SimDuration::from_nanos(by.as_nanos() - end.as_nanos());
            (value, Quality::Held { by })
        }
        None => (value.clone(), Quality::Held { by }),
    }
}

/// The wall instant from which a sample's age counts.
#[inline]
fn born(stamp: Stamp, moment: &Moment) -> WallTime {
    stamp.wall().max(moment.started)
}

#[inline]
fn in_span(span: Span, stamp: Stamp, by: SimDuration, moment: &Moment, until: WallTime) -> bool {
    match span {
        Span::Samples => false,
        Span::Unlimited => true,
        Span::Sim(span) => by.as_nanos().abs() <= span.as_nanos().abs(),
        Span::Wall(span) => {
            until.since(born(stamp, moment)) <= span
                && (moment.live || asked_age(by, moment) <= span.as_secs_f64())
        }
    }
}

/// Wall seconds that a moved context's distance from the sample amounts to. See [`Moment::live`].
fn asked_age(by: SimDuration, moment: &Moment) -> f64 {
    let rate = if moment.rate == 0.0 { 1.0 } else { moment.rate.abs() };
    by.as_secs_f64().abs() / rate
}

/// The age of a sample at `moment`, wall time.
pub fn wall_age(stamp: Stamp, moment: &Moment) -> WallDuration {
    moment.wall.since(born(stamp, moment))
}
