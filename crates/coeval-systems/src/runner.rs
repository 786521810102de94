//! Runs a config's systems: one thread per instance, each at its own rate.
//!
//! All instances load, then all that could are initialized, then each updates at its own rate until it fails or the
//! runner stops, then it ends.
use crate::config::{SimConfig, SystemConfig};
use crate::pace::{Pace, Stage, Together};
use crate::system::{Scope, Step, System, SystemError};
use coeval::{Context, Entity, Peer, SIM_ENTITY, SimDuration};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Factory = Arc<dyn Fn(&SystemConfig) -> Box<dyn System> + Send + Sync>;

/// How long dropping [`Running`] waits for the instances to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// The systems a program can run, by the kind that configs name.
#[derive(Default)]
pub struct Runner {
    kinds: BTreeMap<String, Factory>,
}

/// Why a config's systems were not started; none of them runs.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An entity of the config is not in the session.
    #[error("system {system:?}: entity {entity:?} is not in this session: was it hosted with this config?")]
    MissingEntity {
        /// The system.
        system: String,
        /// The entity's name in the config.
        entity: String,
    },
    /// The `SimEntity` takes no systems.
    #[error("system {system:?}: the SimEntity takes no systems")]
    SimEntity {
        /// The system.
        system: String,
    },
    /// The rate is not a number above 0.
    #[error("system {system:?}: a rate of {rate_hz} Hz: give a finite one above 0")]
    Rate {
        /// The system.
        system: String,
        /// The rate.
        rate_hz: f64,
    },
    /// A thread could not be started.
    #[error("system {system:?}: no thread: {source}")]
    Thread {
        /// The system.
        system: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// How one instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The system's name in the config.
    pub system: String,
    /// The entity's name, if it had one.
    pub entity: Option<String>,
    /// Updates made.
    pub updates: u64,
    /// What ended it early, with the phase and the context time; `None` if it was stopped.
    pub failure: Option<String>,
}

/// Running systems. Dropping it tells them to stop and waits up to a second for their `end`;
/// [`stop`](Self::stop) says how it went.
pub struct Running {
    together: Arc<Together>,
    threads: Vec<JoinHandle<()>>,
    ended: Receiver<(usize, Ended)>,
    names: Vec<String>,
    /// Those whose end was not told of yet.
    running: BTreeSet<usize>,
}

impl Runner {
    /// A runner that knows no system yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `kind` known: `make` builds one instance, on that instance's thread, as the first part of its `load`.
    #[must_use]
    pub fn register<S, F>(mut self, kind: &str, make: F) -> Self
    where
        S: System + 'static,
        F: Fn(&SystemConfig) -> S + Send + Sync + 'static,
    {
        self.kinds.insert(kind.to_owned(), Arc::new(move |config| Box::new(make(config))));
        self
    }

    /// Starts an instance for every entity that a known system's tags name. Systems of kinds that are not registered
    /// are left to other programs.
    pub fn start(&self, peer: &Peer, config: &SimConfig) -> Result<Running, StartError> {
        let planned = self.plan(peer, config)?;
        let together = Arc::new(Together::new(planned.len()));
        let (report, ended) = mpsc::channel();
        let mut running = Running {
            together: Arc::clone(&together),
            threads: Vec::new(),
            ended,
            names: Vec::new(),
            running: BTreeSet::new(),
        };
        for (index, (make, place, config)) in planned.into_iter().enumerate() {
            let (system, name) = (config.name.clone(), label(&config.name, place.entity_name.as_deref()));
            let together = Arc::clone(&together);
            let instance = Instance { behavior: None, make, place, config, name: name.clone(), together };
            let report = report.clone();
            // An operating system's thread name holds no zero byte, which a config made by hand may have.
            let thread = std::thread::Builder::new().name(format!("coeval-{}", system.replace('\0', "")));
            let thread = thread.spawn(move || {
                let end = instance.live();
                // The receiver may be gone when the runner was dropped; nobody is left to tell then.
                let _ = report.send((index, end));
            });
            // On an error the instances started so far are told to stop before any gets beyond `load`.
            running.threads.push(thread.map_err(|source| StartError::Thread { system, source })?);
            running.names.push(name);
            running.running.insert(index);
        }
        Ok(running)
    }

    /// The instances to start: each with how it is made, and where it works.
    fn plan(
        &self,
        peer: &Peer,
        config: &SimConfig,
    ) -> Result<Vec<(Factory, Place, SystemConfig)>, StartError> {
        let mut planned = Vec::new();
        for system in &config.systems {
            let Some(factory) = self.kinds.get(&system.kind) else {
                tracing::info!(
                    system = system.name,
                    kind = system.kind,
                    "not run here: the kind is not registered"
                );
                continue;
            };
            if !(system.rate_hz > 0.0 && system.rate_hz.is_finite()) {
                return Err(StartError::Rate { system: system.name.clone(), rate_hz: system.rate_hz });
            }
            for applied in applied_to(peer, config, system)? {
                let (entity_name, entity) = applied.unzip();
                let (system_name, settings) = (system.name.clone(), system.settings.clone());
                let scope = Scope { peer: peer.clone(), entity, system: system_name, settings };
                planned.push((Arc::clone(factory), Place { scope, entity_name }, system.clone()));
            }
        }
        Ok(planned)
    }
}

type Applied = Vec<Option<(String, Entity)>>;

fn applied_to(peer: &Peer, config: &SimConfig, system: &SystemConfig) -> Result<Applied, StartError> {
    if system.tags.is_empty() {
        return Ok(vec![None]);
    }
    config
        .entities_of(system)
        .map(|declared| {
            if declared.id == SIM_ENTITY {
                return Err(StartError::SimEntity { system: system.name.clone() });
            }
            let entity = peer.entity_by_id(declared.id).map_err(|_| StartError::MissingEntity {
                system: system.name.clone(),
                entity: declared.name.clone(),
            })?;
            Ok(Some((declared.name.clone(), entity)))
        })
        .collect()
}

impl Running {
    /// How many instances were started.
    pub fn instances(&self) -> usize {
        self.names.len()
    }

    /// An instance that has ended since the last call, if any.
    pub fn poll_ended(&mut self) -> Option<Ended> {
        let (index, end) = self.ended.try_recv().ok()?;
        self.running.remove(&index);
        Some(end)
    }

    /// Stops all instances and waits up to `timeout` for their `end`. Returns how each ended that
    /// [`poll_ended`](Self::poll_ended) has not told of, in the order they ended.
    ///
    /// # Errors
    /// Names the instances that did not end in time.
    pub fn stop(mut self, timeout: Duration) -> Result<Vec<Ended>, StopError> {
        let ended = self.wind_down(timeout);
        if self.running.is_empty() {
            for thread in self.threads.drain(..) {
                // Panics are caught inside; a thread that reported is about to finish.
                let _ = thread.join();
            }
            return Ok(ended);
        }
        let hanging =
            std::mem::take(&mut self.running).iter().map(|index| self.names[*index].clone()).collect();
        Err(StopError { timeout, ended, hanging })
    }

    /// Tells all to stop, and waits for them.
    fn wind_down(&mut self, timeout: Duration) -> Vec<Ended> {
        self.together.stop();
        let begun = Instant::now();
        let mut ended = Vec::new();
        while !self.running.is_empty() {
            let Ok((index, end)) = self.ended.recv_timeout(timeout.saturating_sub(begun.elapsed())) else {
                break;
            };
            self.running.remove(&index);
            ended.push(end);
        }
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.wind_down(FAREWELL);
        for index in &self.running {
            tracing::warn!(system = self.names[*index], "did not end in time; left behind");
        }
    }
}

/// Instances that did not end in time; they are left behind.
#[derive(Debug, thiserror::Error)]
#[error("still running {timeout:?} after being told to stop: {}", hanging.join(", "))]
pub struct StopError {
    /// How long was waited.
    pub timeout: Duration,
    /// How the others ended, as [`Running::stop`] returns it.
    pub ended: Vec<Ended>,
    /// The names of those that hang: `SYSTEM`, or `SYSTEM on ENTITY`.
    pub hanging: Vec<String>,
}

fn label(system: &str, entity: Option<&str>) -> String {
    entity.map_or_else(|| system.to_owned(), |entity| format!("{system} on {entity}"))
}

/// Where an instance works, and what the entity is called in the config.
struct Place {
    scope: Scope,
    entity_name: Option<String>,
}

/// One system on one entity, on its own thread.
struct Instance {
    behavior: Option<Box<dyn System>>,
    make: Factory,
    place: Place,
    config: SystemConfig,
    name: String,
    together: Arc<Together>,
}

impl Instance {
    fn live(mut self) -> Ended {
        let mut updates = 0;
        let mut failure = self.load();
        self.together.pass(Stage::Load);
        let going = failure.is_none() && self.together.wait(Stage::Load);
        if going {
            failure = self.phase("init", None, |behavior, scope| behavior.init(scope));
        }
        self.together.pass(Stage::Init);
        if going && failure.is_none() {
            if self.together.wait(Stage::Init) {
                failure = self.run(&mut updates);
            }
            let ending = self.phase("end", None, |behavior, scope| behavior.end(scope));
            failure = failure.or(ending);
        }
        let behavior = self.behavior.take();
        let dropped = self.guarded("drop", None, move |_, _| {
            drop(behavior);
            Ok(())
        });
        let Place { scope, entity_name } = self.place;
        Ended { system: scope.system, entity: entity_name, updates, failure: failure.or(dropped) }
    }

    fn load(&mut self) -> Option<String> {
        let (make, config) = (Arc::clone(&self.make), self.config.clone());
        let made = self.guarded("load", None, move |behavior, _| {
            *behavior = Some(make(&config));
            Ok(())
        });
        made.or_else(|| self.phase("load", None, |behavior, scope| behavior.load(scope)))
    }

    /// Updates until one fails or the runner stops.
    fn run(&mut self, updates: &mut u64) -> Option<String> {
        let start = Instant::now();
        let mut pace = Pace::new(self.config.rate_hz);
        let mut before: Option<Context> = None;
        let mut skipped = 0;
        while self.together.wait_until(start, pace.due()) {
            let context = self.place.scope.peer.context();
            let dt = before.map_or(SimDuration::ZERO, |before| sim_step(before, context));
            let step = Step { context, dt, skipped };
            let failure = self.phase("update", Some(context), |behavior, scope| behavior.update(scope, step));
            if failure.is_some() {
                return failure;
            }
            *updates += 1;
            before = Some(context);
            skipped = pace.advance(start.elapsed());
        }
        None
    }

    /// Runs one phase of the behavior.
    fn phase(
        &mut self,
        phase: &str,
        context: Option<Context>,
        act: impl FnOnce(&mut dyn System, &Scope) -> Result<(), SystemError>,
    ) -> Option<String> {
        self.guarded(phase, context, |behavior, scope| match behavior {
            Some(behavior) => act(behavior.as_mut(), scope),
            None => Ok(()),
        })
    }

    /// Runs foreign code; an error or a panic is logged with the instance's name and context time.
    fn guarded(
        &mut self,
        phase: &str,
        context: Option<Context>,
        act: impl FnOnce(&mut Option<Box<dyn System>>, &Scope) -> Result<(), SystemError>,
    ) -> Option<String> {
        let scope = &self.place.scope;
        let sim = context.unwrap_or_else(|| scope.peer.context()).sim;
        // The error's own `Display` is foreign code too.
        let run = AssertUnwindSafe(|| act(&mut self.behavior, scope).map_err(|error| error.to_string()));
        let what = match catch_unwind(run) {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error,
            Err(panic) => format!("panicked: {}", panic_text(panic.as_ref())),
        };
        tracing::error!(system = self.name, phase, %sim, "{what}");
        Some(format!("{}: {phase} at {sim}: {what}", self.name))
    }
}

/// Sim time between two updates; a jump is never a step.
fn sim_step(before: Context, now: Context) -> SimDuration {
    if before.epoch == now.epoch && before.generation == now.generation {
        now.sim.since(before.sim)
    } else {
        SimDuration::ZERO
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
