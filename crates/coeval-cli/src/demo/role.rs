//! One process of the demo: a peer that authors part of the world, reads all of it, and tells the director.
use super::movers::Mover;
use super::report::{Concluded, Line, Moment, Order, Read, Seen, Way};
use super::world::{OBSERVED, OBSERVER, World};
use coeval::{
    CivilScale, Conditioner, Invite, Motion, Param, Peer, Quality, SimDuration, WallDuration, WallTime,
};
use coeval_systems::{Runner, Running};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The link conditions of the demo.
pub(crate) const CONDITIONS: &str = "delay=50ms,loss=5%";
/// How wrong the viewer's OS clock reads.
const WRONG_BY: WallDuration = WallDuration::from_secs(9 * 60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const PANE_EVERY: u32 = 4;

/// Which process this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Hosts, and flies the recorded flights.
    Flights,
    /// Joins, and moves the satellites.
    Orbits,
    /// Joins with an OS clock that is nine minutes wrong, and looks.
    Viewer,
}

impl Role {
    /// Its name in the session.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flights => "flights",
            Self::Orbits => "orbits",
            Self::Viewer => "viewer",
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the process until it is told to leave.
pub(crate) fn run(role: Role, invite: Option<&str>) -> Result<(), Failure> {
    let (tell, told) = mpsc::channel();
    let printer = std::thread::spawn(move || print_lines(&told));
    let world = Arc::new(World::load()?);
    let peer = open(role, invite, &world)?;
    let own_invite = peer.invite()?.to_string();
    tell.send(Line::Ready { invite: Some(own_invite) })?;
    let systems = runner(role, &world, &tell).start(&peer, &world.config)?;
    let mut process = Process::new(role, peer, world, tell, systems)?;
    process.live(&orders())?;
    drop(process);
    // The printer ends when every sender of lines is gone.
    printer.join().map_err(|_| "the printer failed")?;
    Ok(())
}

fn open(role: Role, invite: Option<&str>, world: &World) -> Result<Peer, Failure> {
    let conditions: Conditioner = CONDITIONS.parse()?;
    let (initial, digest) = (world.config.initial(), world.config.digest());
    Ok(match (role, invite) {
        (Role::Flights, _) => Peer::host(&world.config.name)
            .peer_name(role.name())
            .start(world.config.start)
            .rate(world.config.rate)
            .initial(initial, digest)
            .conditioner(conditions)
            .open()?,
        (_, Some(invite)) => {
            let offset = if role == Role::Viewer { WRONG_BY } else { WallDuration::ZERO };
            Peer::join(invite.parse::<Invite>()?)
                .peer_name(role.name())
                .initial(initial, digest)
                .conditioner(conditions)
                .os_clock_offset(offset)
                .open()?
        }
        (_, None) => return Err("a joiner needs an invite".into()),
    })
}

fn runner(role: Role, world: &Arc<World>, tell: &Sender<Line>) -> Runner {
    let (world, tell) = (Arc::clone(world), tell.clone());
    match role {
        Role::Flights => {
            Runner::new().register("flight-replay", move |_| Mover::flight(Arc::clone(&world), tell.clone()))
        }
        Role::Orbits => Runner::new()
            .register("satellite-j2", move |_| Mover::satellite(Arc::clone(&world), tell.clone())),
        Role::Viewer => Runner::new(),
    }
}

fn print_lines(told: &Receiver<Line>) {
    let mut out = std::io::stdout().lock();
    for line in told {
        let Ok(text) = serde_json::to_string(&line) else { continue };
        // A director that is gone needs no lines.
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn orders() -> Receiver<Order> {
    let (give, orders) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str(&line) else { continue };
            if give.send(order).is_err() {
                return;
            }
        }
    });
    orders
}

struct Process {
    role: Role,
    peer: Peer,
    world: Arc<World>,
    tell: Sender<Line>,
    systems: Option<Running>,
    motions: BTreeMap<String, Param<Motion>>,
}

impl Process {
    fn new(
        role: Role,
        peer: Peer,
        world: Arc<World>,
        tell: Sender<Line>,
        systems: Running,
    ) -> Result<Self, Failure> {
        let mut motions = BTreeMap::new();
        for name in world.movers() {
            motions.insert(name.clone(), peer.entity(name)?.param::<Motion>("motion")?);
        }
        if role != Role::Flights {
            watch_arrivals(&peer, &motions, &tell)?;
        }
        Ok(Self { role, peer, world, tell, systems: Some(systems), motions })
    }

    /// Looks at the world and obeys, until told to leave or the director is gone.
    fn live(&mut self, orders: &Receiver<Order>) -> Result<(), Failure> {
        let mut due = Instant::now();
        let mut changes = self.peer.clock().changes();
        for turn in 0_u32.. {
            due += LOOK_EVERY;
            loop {
                match orders.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(Order::Leave) | Err(mpsc::RecvTimeoutError::Disconnected) => return self.leave(),
                    Ok(order) => self.obey(order)?,
                    Err(mpsc::RecvTimeoutError::Timeout) => break,
                }
            }
            if !changes.poll().is_empty() {
                self.tell.send(Line::Heard { wall: self.peer.context().wall.as_nanos() })?;
            }
            if self.role != Role::Flights && self.systems.is_some() {
                self.tell.send(self.look())?;
            }
            if turn.is_multiple_of(PANE_EVERY) {
                self.tell.send(Line::Pane { lines: self.pane() })?;
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<(), Failure> {
        let clock = self.peer.clock();
        let what = match order {
            Order::Scale { to } => clock.set_scale(to).map(|_| format!("rate {to}"))?,
            Order::Pause => clock.pause().map(|_| "pause".to_owned())?,
            Order::Resume => clock.resume().map(|_| "resume".to_owned())?,
            Order::Jump { seconds } => clock
                .jump_by(SimDuration::from_secs(seconds))
                .map(|_| format!("jump by {:+} y", seconds / 31_557_600))?,
            Order::StopWriting => {
                if let Some(systems) = self.systems.take() {
                    systems.stop(Duration::from_secs(2))?;
                }
                return Ok(());
            }
            Order::Conclude { wall, sight_at } => {
                let concluded = self.conclude(&wall, sight_at.sim());
                return Ok(self.tell.send(Line::Concluded(concluded))?);
            }
            Order::Leave => return Ok(()),
        };
        Ok(self.tell.send(Line::Edited { what, at: self.peer.context().wall.as_nanos() })?)
    }

    fn look(&self) -> Line {
        let context = self.peer.context();
        let motions = self.motions.iter().filter_map(|(entity, motion)| {
            let reading = motion.read(context).ok()?;
            Some(Read {
                entity: entity.clone(),
                stamp: reading.stamp.hlc,
                position: reading.value.position?,
                way: match reading.quality {
                    Quality::Exact | Quality::Extrapolated { .. } => Way::Predicted,
                    Quality::Interpolated => Way::Between,
                    Quality::Held { .. } => Way::Held,
                },
            })
        });
        Line::Seen(Seen {
            wall: context.wall.as_nanos(),
            sim: Moment::of(context.sim),
            rate: context.rate,
            unsure: self.peer.wall().uncertainty.map_or(0, |bound| bound.as_nanos().unsigned_abs()),
            motions: motions.collect(),
        })
    }

    fn sight(&self, context: coeval::Context) -> Option<(f64, f64)> {
        let position = |name| self.motions.get(name)?.read(context).ok()?.value.position;
        let sight = self.world.sight(OBSERVER, position(OBSERVER)?, position(OBSERVED)?, context.sim)?;
        Some((sight.range_m, sight.elevation_rad.to_degrees()))
    }

    fn conclude(&self, wall: &[u64], sight_at: coeval::SimTime) -> Concluded {
        let clock = self.peer.clock();
        let before = true_wall();
        let session = self.peer.wall().now.as_nanos();
        let error_ns = session as f64 - (before as f64 + true_wall() as f64) / 2.0;
        Concluded {
            digest: format!("{:032x}", self.peer.digest().0),
            entities: self.peer.entities().len(),
            sims: wall.iter().map(|at| Moment::of(clock.sim_at(WallTime::from_nanos(*at)))).collect(),
            clock_offset_error_us: error_ns / 1e3,
            sight: self.sight(self.peer.context().at(sight_at)),
            received: self.peer.peers().iter().map(|peer| peer.updates_received).sum(),
        }
    }

    fn pane(&self) -> Vec<String> {
        let context = self.peer.context();
        let wall = self.peer.wall();
        let mut lines = vec![
            format!("{}", context.sim),
            // The pane has no room for what is in brackets: that the leap-second table does not reach there.
            context.sim.to_civil(CivilScale::Utc).to_string().split(" (").take(1).collect(),
            format!("rate {:>8}   {} peers", context.rate, self.peer.peers().len()),
            format!(
                "OS clock {:+.3} s, known to {:.2} ms",
                -wall.offset_to_os.as_secs_f64(),
                wall.uncertainty.unwrap_or_default().as_secs_f64() * 1e3
            ),
        ];
        for (name, motion) in
            self.motions.iter().filter(|(name, _)| self.world.is_flight(name) || *name == OBSERVED)
        {
            lines.push(match motion.read(context) {
                Ok(reading) => {
                    let [x, y, z] = reading.value.position.unwrap_or_default().map(|m| m / 1e3);
                    format!("{name:<18}{x:>9.2}{y:>9.2}{z:>9.2} km {}", short(reading.quality))
                }
                Err(error) => format!("{name:<18} {error}"),
            });
        }
        if let Some((range, elevation)) = self.sight(context) {
            lines.push(format!("{OBSERVED} from {OBSERVER}:"));
            lines.push(format!("range {:>9.3} km, elevation {elevation:>8.4}°", range / 1e3));
        }
        lines
    }

    fn leave(&mut self) -> Result<(), Failure> {
        if let Some(systems) = self.systems.take() {
            systems.stop(Duration::from_secs(2))?;
        }
        // The killed host acknowledges nothing, until its link is given up.
        if let Err(error) = self.peer.clone().leave(Duration::from_millis(500)) {
            tracing::info!(%error, "leaving");
        }
        Ok(())
    }
}

/// Where a value came from, in a few letters.
fn short(quality: Quality) -> &'static str {
    match quality {
        Quality::Exact => "exact",
        Quality::Interpolated => "between",
        Quality::Extrapolated { .. } => "predicted",
        Quality::Held { .. } => "held",
    }
}

/// Notes when each newer sample became readable here.
fn watch_arrivals(
    peer: &Peer,
    motions: &BTreeMap<String, Param<Motion>>,
    tell: &Sender<Line>,
) -> Result<(), Failure> {
    let watch = peer.watch("*/motion")?;
    let (peer, motions, tell) = (peer.clone(), motions.clone(), tell.clone());
    std::thread::spawn(move || {
        while peer.stopped().is_none() {
            let changes = watch.wait(LOOK_EVERY);
            let context = peer.context();
            for change in changes {
                let Some((entity, motion)) = change.name.and_then(|name| motions.get_key_value(&name)) else {
                    continue;
                };
                let Ok(reading) = motion.read(context) else { continue };
                let line = Line::Arrived {
                    entity: entity.clone(),
                    stamp: reading.stamp.hlc,
                    wall: context.wall.as_nanos(),
                };
                if tell.send(line).is_err() {
                    return;
                }
            }
        }
    });
    Ok(())
}

/// The machine's own clock, which all processes share.
fn true_wall() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
