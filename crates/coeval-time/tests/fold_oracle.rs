//! The fold against an oracle: the same rules in unbounded rational arithmetic, written without a thought for speed.
mod support;

use coeval_time::{Direction, Edit, EditId, EditKind, Epoch, Fold, Genesis, SimDuration, SimTime, WallTime};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{FromPrimitive, Signed, ToPrimitive, Zero};
use proptest::prelude::*;
use std::collections::BTreeSet;
use support::{S, id, wall};

/// The nearest integer, the even one of two.
fn half_even(exact: &BigRational) -> i128 {
    let floor = exact.floor().to_integer();
    let above = exact - BigRational::from_integer(floor.clone());
    let half = BigRational::new(1.into(), 2.into());
    let odd = !(floor.clone() % BigInt::from(2)).is_zero();
    let up = above > half || (above == half && odd);
    let rounded = floor + BigInt::from(u8::from(up));
    let end = BigInt::from(i128::MAX / 4);
    if rounded.abs() > end {
        if rounded.is_positive() { i128::MAX / 4 } else { i128::MIN / 4 }
    } else {
        rounded.to_i128().expect("within")
    }
}

fn clamp(sim: i128) -> i128 {
    SimTime::from_nanos(sim).as_nanos()
}

/// The state of the oracle: a line, and what waits.
struct Oracle {
    from: u64,
    wall: u64,
    sim: i128,
    line_rate: f64,
    scale: f64,
    paused: bool,
    stopped: bool,
    waiting: Vec<(EditId, i128)>,
    epoch: Epoch,
    direction: Direction,
}

impl Oracle {
    fn value(&self, wall: u64) -> i128 {
        let rate = BigRational::from_f64(self.line_rate).expect("finite");
        let elapsed = BigInt::from(wall) - BigInt::from(self.wall);
        clamp(self.sim + half_even(&(rate * BigRational::from_integer(elapsed))))
    }

    /// Whether a stop fires up to `wall`: if so time stands on it from some instant before.
    fn reach(&mut self, wall: u64) {
        if self.line_rate == 0.0 {
            return;
        }
        let (begin, end, up) = (self.value(self.from), self.value(wall), self.line_rate > 0.0);
        let mut hit: Vec<_> =
            self.waiting.iter().copied().filter(|s| s.1 >= begin.min(end) && s.1 <= begin.max(end)).collect();
        hit.sort_by_key(|stop| (stop.1, stop.0));
        let Some((id, at)) = (if up { hit.first() } else { hit.last() }).copied() else { return };
        self.waiting.retain(|stop| stop.0 != id);
        (self.stopped, self.sim, self.wall, self.line_rate) = (true, at, wall, 0.0);
        self.from = wall;
    }

    fn apply(&mut self, edit: &Edit) {
        let at = edit.at.as_nanos();
        let now = self.value(at);
        let mut sim = now;
        match edit.kind {
            EditKind::Scale(scale) => self.scale = scale,
            EditKind::Pause => self.paused = true,
            EditKind::Resume => (self.paused, self.stopped) = (false, false),
            EditKind::JumpTo(to) => sim = to.as_nanos(),
            EditKind::JumpBy(by) => sim = clamp(now + by.as_nanos()),
            EditKind::StopAt(stop) if stop.as_nanos() == now => self.stopped = true,
            EditKind::StopAt(stop) => self.waiting.push((edit.id, stop.as_nanos())),
            EditKind::Cancel(target) => self.waiting.retain(|stop| stop.0 != target),
        }
        if matches!(edit.kind, EditKind::JumpTo(_) | EditKind::JumpBy(_)) {
            self.epoch = Epoch { at: edit.at, jump: edit.id };
        }
        let rate = if self.paused || self.stopped { 0.0 } else { self.scale };
        if rate != self.line_rate || sim != now {
            (self.wall, self.sim, self.line_rate) = (at, sim, rate);
        }
        if rate != 0.0 {
            self.direction = if rate > 0.0 { Direction::Forward } else { Direction::Backward };
        }
        self.from = at;
    }
}

type Shown = (i128, bool, bool, usize, Epoch, Direction);

fn oracle(genesis: &Genesis, edits: &[Edit], wall: WallTime) -> Shown {
    let mut order = edits.to_vec();
    order.sort_by_key(|edit| (edit.at, edit.id));
    let mut gone = BTreeSet::new();
    for cancel in &order {
        if let EditKind::Cancel(target) = cancel.kind
            && !gone.contains(&cancel.id)
        {
            gone.extend(
                order.iter().filter(|edit| edit.id == target && edit.at > cancel.at).map(|edit| edit.id),
            );
        }
    }
    let mut state = Oracle {
        from: genesis.wall.as_nanos(),
        wall: genesis.wall.as_nanos(),
        sim: genesis.sim.as_nanos(),
        line_rate: genesis.scale,
        scale: genesis.scale,
        paused: false,
        stopped: false,
        waiting: Vec::new(),
        epoch: Epoch::GENESIS,
        direction: if genesis.scale < 0.0 { Direction::Backward } else { Direction::Forward },
    };
    for edit in order.iter().filter(|edit| edit.at <= wall) {
        state.reach(edit.at.as_nanos());
        if !gone.contains(&edit.id) {
            state.apply(edit);
        }
    }
    state.reach(wall.as_nanos());
    (
        state.value(wall.as_nanos()),
        state.paused,
        state.stopped,
        state.waiting.len(),
        state.epoch,
        state.direction,
    )
}

fn shown(fold: &Fold, wall: WallTime) -> Shown {
    let segment = fold.segment_at(wall);
    let waiting = fold.waiting_at(wall).len();
    (fold.sim_at(wall).as_nanos(), segment.paused, segment.stopped, waiting, segment.epoch, segment.direction)
}

/// Rates of every size: round ones, any from 1e-12 to 1e12, subnormal and near the ends of `f64`, zero; both signs.
fn rate() -> impl Strategy<Value = f64> {
    let size = prop_oneof![
        4 => prop::sample::select(vec![1.0, 0.1, 2.5, 1.5, 0.5, 3.0, 0.0]),
        4 => (-12.0..12.0_f64).prop_map(|power| 10_f64.powf(power)),
        1 => prop::sample::select(vec![5e-324, 2.2e-308, 1e-30, 1e30, f64::MAX, f64::MIN_POSITIVE]),
    ];
    (size, any::<bool>()).prop_map(|(size, negative)| if negative { -size } else { size })
}

/// Genesis times: now, and up to 9,000 years away.
fn genesis_sim() -> impl Strategy<Value = i128> {
    prop_oneof![Just(0), -9_000..9_000_i128].prop_map(|years| years * 31_556_952 * i128::from(S))
}

/// An edit as plain numbers: when, which kind, a rate, a small and a large number, whom to cancel.
fn plan(reach: i64) -> impl Strategy<Value = Vec<(i64, u8, f64, i64, usize)>> {
    prop::collection::vec((0..reach, 0..7_u8, rate(), -2 * reach..2 * reach, 0..8_usize), 0..9)
}

fn edits(start: i128, plan: &[(i64, u8, f64, i64, usize)]) -> Vec<Edit> {
    let stamp = |n: usize, at: i64| id(wall(at), n as u64, 0);
    let near = |nanos: i64| SimTime::from_nanos(start + i128::from(nanos));
    let kind = |kind: u8, rate: f64, number: i64, target: usize| match kind {
        0 => EditKind::Scale(rate),
        1 => EditKind::Pause,
        2 => EditKind::Resume,
        3 => EditKind::JumpTo(near(number)),
        4 => EditKind::JumpBy(SimDuration::from_nanos(number.into())),
        5 => EditKind::StopAt(near(number)),
        _ => EditKind::Cancel(stamp(target, plan.get(target).map_or(0, |edit| edit.0))),
    };
    let numbered = plan.iter().enumerate();
    numbered
        .map(|(n, &(at, k, r, number, target))| Edit {
            id: stamp(n, at),
            at: wall(at),
            kind: kind(k, r, number, target),
        })
        .collect()
}

fn agrees(
    scale: f64,
    start: i128,
    plan: &[(i64, u8, f64, i64, usize)],
    order: &[usize],
    reach: i64,
) -> Result<(), TestCaseError> {
    let genesis = Genesis { wall: wall(0), sim: SimTime::from_nanos(start), scale };
    let edits = edits(start, plan);
    let mut fold = Fold::new(genesis).expect("finite");
    let mut arrival: Vec<usize> = (0..edits.len()).collect();
    arrival.sort_by_key(|n| order.get(*n).copied());
    for n in arrival {
        prop_assert_eq!(fold.insert(&edits[n]), Ok(true));
        prop_assert_eq!(fold.insert(&edits[n]), Ok(false));
    }
    // At the edits, right beside them, and evenly over the whole and beyond it.
    let at_edits = plan.iter().flat_map(|edit| [edit.0 - 1, edit.0, edit.0 + 1]);
    for at in at_edits.chain((-1..12).map(|n| n * (reach / 8).max(1))) {
        prop_assert_eq!(
            shown(&fold, wall(at)),
            oracle(&genesis, &edits, wall(at)),
            "at {} of {:?}",
            at,
            &edits
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nanoseconds apart, where every rounding shows and edits meet at one instant.
    #[test]
    fn fold_is_the_oracle_nanosecond_by_nanosecond(
        scale in rate(), plan in plan(40), order in prop::collection::vec(any::<usize>(), 9),
    ) {
        agrees(scale, 0, &plan, &order, 40)?;
    }

    /// Hours apart, up to 9,000 years from the epoch.
    #[test]
    fn fold_is_the_oracle_over_hours_and_millennia(
        scale in rate(), start in genesis_sim(), plan in plan(10_000 * S), order in prop::collection::vec(any::<usize>(), 9),
    ) {
        agrees(scale, start, &plan, &order, 10_000 * S)?;
    }

    /// What a thread asks for before it sleeps: no earlier instant shows the time, and the one given does or passed it.
    #[test]
    fn next_wall_instant_is_the_first(scale in rate(), plan in plan(60), target in -60..60_i64, after in 0..60_i64) {
        let clock = support::clock(SimTime::EPOCH, scale);
        support::insert_all(&clock, &edits(0, &plan));
        let target = SimTime::from_nanos(target.into());
        let side = |at| clock.sim_at(wall(at)).cmp(&target);
        let first = (after..400).find(|at| side(*at).is_eq() || side(*at) != side(after));
        let found = clock.wall_at(target, wall(after)).filter(|found| *found < wall(400));
        prop_assert_eq!(found, first.map(wall));
    }
}

#[test]
fn hundred_thousand_edits_in_order_are_folded_once_each() {
    let clock = support::clock(SimTime::EPOCH, 1.0);
    for n in 0..100_000_i64 {
        let kind = if n % 2 == 0 { EditKind::Scale(2.0) } else { EditKind::Scale(1.0) };
        clock.insert(&support::edit(n * 1_000, 1, n as u32, kind), wall(n * 1_000)).expect("valid");
    }
    assert_eq!(clock.context(wall(100_000_000)).sim, SimTime::from_nanos(150_000_000));
}
