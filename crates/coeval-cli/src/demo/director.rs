//! Starts the demo's three processes, plays the script, kills the host, and sums up.
use super::judge::Evidence;
use super::report::{Concluded, FLIGHTS, Line, Moment, ORBITS, Order, VIEWER};
use super::role::Role;
use super::view::View;
use super::world::World;
use serde::Serialize;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A century of sim time, s.
const CENTURY_S: i64 = 36_525 * 86_400;
/// A DIS entity state message, bytes.
pub(crate) const DIS_BYTES: u64 = 144;
/// Updates per second and entity without dead reckoning.
const UNFILTERED_HZ: f64 = 30.0;

/// The script: at this share of the run, this process does this.
const SCRIPT: &[(f64, usize, Cue)] = &[
    (0.20, VIEWER, Cue::Order(Order::Scale { to: 1000.0 })),
    (0.33, ORBITS, Cue::Order(Order::Scale { to: -1.0 })),
    (0.47, VIEWER, Cue::Order(Order::Pause)),
    (0.53, FLIGHTS, Cue::Order(Order::Resume)),
    (0.55, FLIGHTS, Cue::Order(Order::Scale { to: 1.0 })),
    (0.60, VIEWER, Cue::Order(Order::Jump { seconds: -CENTURY_S })),
    (0.70, ORBITS, Cue::Order(Order::Jump { seconds: CENTURY_S })),
    (0.80, FLIGHTS, Cue::Kill),
    (0.93, ORBITS, Cue::Order(Order::StopWriting)),
    (0.93, VIEWER, Cue::Order(Order::StopWriting)),
];

#[derive(Clone, Debug)]
enum Cue {
    Order(Order),
    Kill,
}

/// What the demo found, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) processes: usize,
    pub(crate) entities: usize,
    /// Whether the remaining replicas' digests are equal after the writers stopped.
    pub(crate) converged: bool,
    pub(crate) sim_time_disagreement_ns: i128,
    /// Largest over the joiners; one of them has an OS clock that is nine minutes wrong.
    pub(crate) clock_offset_error_us: f64,
    pub(crate) max_position_error_m: f64,
    pub(crate) allowed_position_error_m: f64,
    /// The worst share of its threshold that a read was off while nothing was on its way.
    pub(crate) settled_error_over_threshold: f64,
    pub(crate) max_evaluation_error_m: f64,
    pub(crate) checks: u64,
    /// After the jump: reads of flights that were held, of satellites that followed their orbits, and neither.
    pub(crate) held_a_century_away: u64,
    pub(crate) followed_a_century_away: u64,
    pub(crate) astray_a_century_away: u64,
    pub(crate) sight_agrees: bool,
    pub(crate) sight_range_m: Option<f64>,
    pub(crate) sight_elevation_deg: Option<f64>,
    pub(crate) updates_sent: u64,
    pub(crate) updates_unfiltered_30hz: u64,
    pub(crate) dis_bytes_with_dead_reckoning: u64,
    pub(crate) dis_bytes_without: u64,
    pub(crate) flights_only: Traffic,
    pub(crate) satellites_only: Traffic,
    pub(crate) updates_received: u64,
    pub(crate) seconds: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Traffic {
    pub(crate) updates_sent: u64,
    pub(crate) updates_unfiltered_30hz: u64,
}

impl Summary {
    /// Whether everything the demo promises held.
    pub(crate) fn holds(&self) -> bool {
        self.converged
            && self.sim_time_disagreement_ns == 0
            && self.checks > 0
            && self.max_position_error_m <= self.allowed_position_error_m
            && self.settled_error_over_threshold <= 1.0
            && self.sight_agrees
            && self.held_a_century_away > 0
            && self.followed_a_century_away > 0
            && self.astray_a_century_away == 0
    }
}

struct Actor {
    role: Role,
    child: Child,
    orders: Option<ChildStdin>,
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Closing its orders lets it leave by itself; whoever does not is not left behind.
        self.orders = None;
        for _ in 0..60 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// Plays the demo for `seconds` of wall time.
pub(crate) fn direct(seconds: f64, view: View) -> Result<Summary, Failure> {
    let world = World::load()?;
    let (tell, told) = mpsc::channel();
    let mut stage = Stage {
        actors: Vec::new(),
        told,
        tell,
        evidence: Evidence::default(),
        concluded: [None, None, None],
        view,
        invite: None,
    };
    stage.enter(Role::Flights)?;
    stage.enter(Role::Orbits)?;
    stage.enter(Role::Viewer)?;
    let began = Instant::now();
    stage.play(began, seconds)?;
    let conclusions = stage.conclude()?;
    stage.view.finish();
    let ran = began.elapsed().as_secs_f64();
    Ok(summarize(&world, &stage.evidence, &conclusions, seconds * 0.8, seconds * 0.93, ran))
}

struct Stage {
    actors: Vec<Actor>,
    told: Receiver<(usize, Line)>,
    tell: mpsc::Sender<(usize, Line)>,
    evidence: Evidence,
    concluded: [Option<Concluded>; 3],
    view: View,
    invite: Option<String>,
}

impl Stage {
    /// Starts a process and waits until it is in the session.
    fn enter(&mut self, role: Role) -> Result<(), Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["demo", "--role", role.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(invite) = &self.invite {
            command.env("COEVAL_INVITE", invite);
        }
        let mut child = command.spawn()?;
        let index = self.actors.len();
        let orders = child.stdin.take();
        let lines = child.stdout.take().ok_or("a process without output")?;
        self.actors.push(Actor { role, child, orders });
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str(&line)
                    && tell.send((index, line)).is_err()
                {
                    return;
                }
            }
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((from, Line::Ready { invite })) if from == index => {
                    if self.invite.is_none() {
                        self.invite = invite;
                    }
                    return Ok(());
                }
                Ok((from, line)) => self.hear(from, line),
                Err(_) => {
                    return Err(format!("the process {:?} did not come up within 20 s", role.name()).into());
                }
            }
        }
    }

    fn play(&mut self, began: Instant, seconds: f64) -> Result<(), Failure> {
        for (share, actor, cue) in SCRIPT {
            self.listen_until(began + Duration::from_secs_f64(seconds * share))?;
            match cue {
                Cue::Order(order) => self.order(*actor, order)?,
                Cue::Kill => {
                    let wall = self.evidence.seen.last().map(|(_, seen)| seen.wall);
                    self.actors[*actor].child.kill()?;
                    self.evidence.killed = wall;
                    self.view.killed(*actor);
                    self.view.caption("host killed: the others go on");
                }
            }
        }
        self.listen_until(began + Duration::from_secs_f64(seconds))
    }

    fn order(&mut self, actor: usize, order: &Order) -> Result<(), Failure> {
        let actor = &mut self.actors[actor];
        let orders = actor.orders.as_mut().ok_or("this process takes no more orders")?;
        writeln!(orders, "{}", serde_json::to_string(order)?)
            .map_err(|e| format!("the process {:?} is gone: {e}", actor.role.name()))?;
        Ok(())
    }

    fn listen_until(&mut self, deadline: Instant) -> Result<(), Failure> {
        loop {
            match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((from, line)) => self.hear(from, line),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err("all processes are gone".into()),
            }
        }
    }

    fn hear(&mut self, from: usize, line: Line) {
        match line {
            Line::Sent(sent) => {
                self.evidence.sent.entry(sent.entity.clone()).or_default().insert(sent.stamp, sent);
            }
            Line::Seen(seen) => self.evidence.seen.push((from, seen)),
            Line::Arrived { entity, stamp, wall } => {
                self.evidence.arrived.entry((from, entity, stamp)).or_insert(wall);
            }
            Line::Heard { wall } => self.evidence.heard.entry(from).or_default().push(wall),
            Line::Edited { what, at } => {
                self.evidence.edits.push(at);
                self.view.caption(&format!("{}: {what}", self.actors[from].role.name()));
            }
            Line::Pane { lines } => self.view.pane(from, lines),
            Line::Concluded(concluded) => self.concluded[from] = Some(concluded),
            Line::Trouble { what } => {
                self.view.caption(&format!("{}: {what}", self.actors[from].role.name()))
            }
            Line::Ready { .. } => {}
        }
    }

    /// Asks the survivors for their digests until they are equal, for at most 5 s.
    fn conclude(&mut self) -> Result<[Concluded; 2], Failure> {
        let Some((_, last)) = self.evidence.seen.last() else { return Err("nothing was read".into()) };
        // Beyond every sample, so that both evaluate the same newest ones.
        let sight_at = Moment(last.sim.0 + 1, last.sim.1);
        let walls: Vec<u64> =
            self.evidence.seen.iter().rev().step_by(7).map(|(_, seen)| seen.wall).take(500).collect();
        let give_up = Instant::now() + Duration::from_secs(5);
        loop {
            for actor in [ORBITS, VIEWER] {
                self.concluded[actor] = None;
                self.order(actor, &Order::Conclude { wall: walls.clone(), sight_at })?;
            }
            while self.concluded[ORBITS].is_none() || self.concluded[VIEWER].is_none() {
                let left = give_up.saturating_duration_since(Instant::now()) + Duration::from_secs(1);
                let (from, line) = self.told.recv_timeout(left).map_err(|_| "a process did not conclude")?;
                self.hear(from, line);
            }
            let (orbits, viewer) = (self.concluded[ORBITS].clone(), self.concluded[VIEWER].clone());
            if let (Some(orbits), Some(viewer)) = (orbits, viewer)
                && (orbits.digest == viewer.digest || Instant::now() > give_up)
            {
                for actor in [ORBITS, VIEWER] {
                    self.order(actor, &Order::Leave)?;
                }
                return Ok([orbits, viewer]);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn summarize(
    world: &World,
    evidence: &Evidence,
    [orbits, viewer]: &[Concluded; 2],
    flown_s: f64,
    orbited_s: f64,
    seconds: f64,
) -> Summary {
    let verdict = evidence.judge(world);
    let disagreement =
        orbits.sims.iter().zip(&viewer.sims).map(|(a, b)| a.sim().since(b.sim()).as_nanos().abs());
    let sent = |flights: bool| -> u64 {
        evidence
            .sent
            .iter()
            .filter(|(name, _)| world.is_flight(name) == flights)
            .map(|(_, s)| s.len() as u64)
            .sum()
    };
    let movers =
        |flights: bool| world.movers().filter(|name| world.is_flight(name) == flights).count() as f64;
    let traffic = |flights: bool, seconds: f64| Traffic {
        updates_sent: sent(flights),
        updates_unfiltered_30hz: (movers(flights) * seconds * UNFILTERED_HZ) as u64,
    };
    let (flights_only, satellites_only) = (traffic(true, flown_s), traffic(false, orbited_s));
    let updates_sent = flights_only.updates_sent + satellites_only.updates_sent;
    let unfiltered = flights_only.updates_unfiltered_30hz + satellites_only.updates_unfiltered_30hz;
    Summary {
        processes: 3,
        entities: viewer.entities,
        converged: orbits.digest == viewer.digest,
        sim_time_disagreement_ns: disagreement.max().unwrap_or(i128::MAX),
        clock_offset_error_us: orbits.clock_offset_error_us.abs().max(viewer.clock_offset_error_us.abs()),
        max_position_error_m: verdict.max_error_m,
        allowed_position_error_m: verdict.allowed_m,
        settled_error_over_threshold: verdict.settled_error_over_threshold,
        max_evaluation_error_m: verdict.max_evaluation_error_m,
        checks: verdict.checks,
        held_a_century_away: verdict.held,
        followed_a_century_away: verdict.followed,
        astray_a_century_away: verdict.astray,
        sight_agrees: orbits.sight.is_some() && orbits.sight == viewer.sight,
        sight_range_m: viewer.sight.map(|(range, _)| range),
        sight_elevation_deg: viewer.sight.map(|(_, elevation)| elevation),
        updates_sent,
        updates_unfiltered_30hz: unfiltered,
        dis_bytes_with_dead_reckoning: updates_sent * DIS_BYTES,
        dis_bytes_without: unfiltered * DIS_BYTES,
        flights_only,
        satellites_only,
        updates_received: orbits.received + viewer.received,
        seconds,
    }
}
