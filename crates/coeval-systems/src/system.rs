//! The life of a system: what an implementation provides.
use coeval::{Context, Entity, Peer, SimDuration, Value};
use std::fmt;

/// Why a system could not go on; shown with its name, entity and context time.
pub type SystemError = Box<dyn std::error::Error + Send + Sync>;

/// Behavior that runs on a thread of its own, once per entity it is applied to.
///
/// First every instance of a runner does `load`; then all that could do `init`; then each does `update` at its declared
/// rate until it fails or the runner stops; then `end`. An error or a panic in one instance ends that instance alone.
/// `end` runs for every instance whose `init` succeeded, also after a failed `update`, and for no other.
pub trait System: Send {
    /// Reads resources. Nothing of the world may be assumed yet.
    fn load(&mut self, scope: &Scope) -> Result<(), SystemError> {
        let _ = scope;
        Ok(())
    }

    /// Prepares the world before the first update.
    fn init(&mut self, scope: &Scope) -> Result<(), SystemError> {
        let _ = scope;
        Ok(())
    }

    /// Acts at `step.context`. Called at the declared rate of wall time, also while sim time stands still; updates that
    /// are due while one still runs are skipped and counted.
    fn update(&mut self, scope: &Scope, step: Step) -> Result<(), SystemError>;

    /// Cleans up.
    fn end(&mut self, scope: &Scope) -> Result<(), SystemError> {
        let _ = scope;
        Ok(())
    }
}

/// One update's time.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The clock's reading for this update: the time of its reads and writes.
    pub context: Context,
    /// Sim time since the previous update: negative at negative rates; zero at the first update, while paused, and
    /// across a jump, which is never a step.
    pub dt: SimDuration,
    /// Updates that were due since the previous one and were skipped because it ran late.
    pub skipped: u64,
}

/// Where a system instance works.
#[derive(Clone)]
pub struct Scope {
    /// The peer it runs in.
    pub peer: Peer,
    /// The entity it is applied to; `None` for a system without tags.
    pub entity: Option<Entity>,
    /// The system's name in the config.
    pub system: String,
    /// The settings of the config, a [`Value::Map`].
    pub settings: Value,
}

impl Scope {
    /// The entity it is applied to, or an error that says the system needs tags.
    pub fn entity(&self) -> Result<&Entity, SystemError> {
        self.entity.as_ref().ok_or_else(|| {
            format!("system {:?} works on entities: give it tags in the config", self.system).into()
        })
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("system", &self.system)
            .field("entity", &self.entity.as_ref().map(Entity::id))
            .finish_non_exhaustive()
    }
}
