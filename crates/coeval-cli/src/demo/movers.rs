//! The demo's systems: recorded flights and integrated satellites, published by dead reckoning.
use super::report::{Line, Moment, Sent};
use super::world::World;
use coeval::{Context, Motion, PublishOptions, Published, Publisher};
use coeval_systems::{Scope, Step, System, SystemError};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A flight's position may be off by this much before it is sent again, m.
pub(crate) const FLIGHT_THRESHOLD_M: f64 = 1.0;
/// The same for a satellite, m.
pub(crate) const SATELLITE_THRESHOLD_M: f64 = 10.0;

/// What makes a motion out of position and velocity.
type Shape = fn([f64; 3], [f64; 3], &Motion) -> Motion;

/// Publishes one entity's truth.
pub(crate) struct Mover {
    world: Arc<World>,
    tell: Sender<Line>,
    threshold_m: f64,
    shape: Shape,
    name: String,
    initial: Motion,
    publisher: Option<Publisher>,
    /// When the truth was last compared with what readers predict, session wall time.
    looked: u64,
}

impl Mover {
    /// A flight: constant velocity between updates.
    pub(crate) fn flight(world: Arc<World>, tell: Sender<Line>) -> Self {
        let shape: Shape = |position, velocity, _| Motion::at(position).velocity(velocity);
        Self::new(world, tell, FLIGHT_THRESHOLD_M, shape)
    }

    /// A satellite: a two-body orbit between updates, while its truth feels the Earth's oblateness.
    pub(crate) fn satellite(world: Arc<World>, tell: Sender<Line>) -> Self {
        let shape: Shape = |position, velocity, initial| Motion {
            position: Some(position),
            velocity: Some(velocity),
            ..*initial
        };
        Self::new(world, tell, SATELLITE_THRESHOLD_M, shape)
    }

    fn new(world: Arc<World>, tell: Sender<Line>, threshold_m: f64, shape: Shape) -> Self {
        let (name, initial) = (String::new(), Motion::default());
        Self { world, tell, threshold_m, shape, name, initial, publisher: None, looked: 0 }
    }

    fn report(&self, context: Context, motion: &Motion, stamp: u64) {
        let line = Line::Sent(Sent {
            entity: self.name.clone(),
            stamp,
            good_at: self.looked,
            sim: Moment::of(context.sim),
            position: motion.position.unwrap_or_default(),
            velocity: motion.velocity.unwrap_or_default(),
        });
        // Nobody listens any more once the process is on its way out.
        let _ = self.tell.send(line);
    }
}

impl System for Mover {
    fn init(&mut self, scope: &Scope) -> Result<(), SystemError> {
        let entity = scope.entity()?;
        self.name = entity.name().ok_or("a mover needs a name")?;
        if let Ok(initial) = entity.get_as::<Motion>(scope.peer.context(), "motion") {
            self.initial = initial;
        }
        let options = PublishOptions { threshold_m: self.threshold_m, ..PublishOptions::default() };
        self.publisher = Some(entity.publisher("motion", options)?);
        Ok(())
    }

    fn update(&mut self, _scope: &Scope, step: Step) -> Result<(), SystemError> {
        // Far from the start there is no truth to publish: readers hold flights and follow orbits.
        let Some((position, velocity)) = self.world.truth(&self.name, step.context.sim) else {
            return Ok(());
        };
        let motion = (self.shape)(position, velocity, &self.initial);
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        if let Published::Sent { stamp, .. } = publisher.update(step.context, motion)? {
            self.report(step.context, &motion, stamp.hlc);
        }
        self.looked = step.context.wall.as_nanos();
        Ok(())
    }
}
