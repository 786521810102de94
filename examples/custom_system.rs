//! A system of one's own: pendulums that a config declares and tags, swung by one thread each.
#![allow(clippy::print_stdout, reason = "a program for people")]
use coeval::{Param, Peer, Ramp, Value};
use coeval_systems::{Runner, Scope, SimConfig, Step, System, SystemError};
use std::time::Duration;

/// Longest step of the integration, s: what the clock moves in one update is cut into such.
const LONGEST_STEP_S: f64 = 0.005;
/// Most steps in one update: at extreme timescales the swing falls behind, and the update still ends.
const MOST_STEPS: f64 = 2_000.0;

/// A pendulum without friction. Its angle is a [`Ramp`]: between updates readers extrapolate it by its rate.
struct Pendulum {
    gravity: f64,
    length_m: f64,
    angle: Option<Param<Ramp>>,
    now: Ramp,
}

impl Pendulum {
    /// Energy per mass, J/kg, about the lowest point.
    fn energy(&self) -> f64 {
        let speed = self.length_m * self.now.rate;
        0.5 * speed * speed + self.gravity * self.length_m * (1.0 - self.now.value.cos())
    }

    /// Semi-implicit Euler, which keeps the energy of a swing bounded in both directions of time.
    fn swing(&mut self, seconds: f64) {
        let steps = (seconds.abs() / LONGEST_STEP_S).ceil().clamp(1.0, MOST_STEPS);
        let dt = seconds / steps;
        for _ in 0..steps as u32 {
            self.now.rate -= self.gravity / self.length_m * self.now.value.sin() * dt;
            self.now.value += self.now.rate * dt;
        }
    }
}

impl System for Pendulum {
    fn init(&mut self, scope: &Scope) -> Result<(), SystemError> {
        let (entity, context) = (scope.entity()?, scope.peer.context());
        self.length_m = entity.get_as(context, "length_m")?;
        if self.length_m <= 0.0 {
            return Err("length_m must be above 0".into());
        }
        let angle = entity.param::<Ramp>("angle_rad")?;
        self.now = angle.get(context)?;
        self.angle = Some(angle);
        Ok(())
    }

    fn update(&mut self, _: &Scope, step: Step) -> Result<(), SystemError> {
        // `dt` is sim time: it is zero while paused and across jumps, and negative when time runs backward.
        self.swing(step.dt.as_secs_f64());
        if let Some(angle) = &self.angle {
            angle.set(step.context, self.now)?;
        }
        Ok(())
    }

    fn end(&mut self, scope: &Scope) -> Result<(), SystemError> {
        scope.entity()?.set(scope.peer.context(), "energy", self.energy())?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/custom_system.toml");
    let config = SimConfig::load(file)?;
    let peer = Peer::host(&config.name)
        .start(config.start)
        .rate(config.rate)
        .initial(config.initial(), config.digest())
        .open()?;
    let runner = Runner::new().register("pendulum", |system| {
        let gravity = match &system.settings {
            Value::Map(settings) => settings.get("gravity").cloned(),
            _ => None,
        };
        let gravity = if let Some(Value::Float(g)) = gravity { g } else { 9.81 };
        Pendulum { gravity, length_m: 1.0, angle: None, now: Ramp::default() }
    });
    let running = runner.start(&peer, &config)?;
    println!("{} pendulums swing at {} times wall time", running.instances(), config.rate);
    let angles = ["short", "long"].map(|name| peer.entity(name).and_then(|e| e.param::<Ramp>("angle_rad")));
    let [short, long] = angles;
    let (short, long) = (short?, long?);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(200));
        let context = peer.context();
        let seconds = context.sim.seconds_since(config.start);
        let (a, b) = (short.get(context)?.value, long.get(context)?.value);
        println!("at {seconds:6.3} s of sim time: short {a:+.3} rad, long {b:+.3} rad");
    }
    for end in running.stop(Duration::from_secs(2))? {
        let name = end.entity.unwrap_or_default();
        if let Some(failure) = end.failure {
            return Err(failure.into());
        }
        let energy = peer.entity(&name)?.get_as::<f64>(peer.context(), "energy")?;
        println!("{name}: {} updates, energy {energy:.3} J/kg", end.updates);
    }
    Ok(())
}
