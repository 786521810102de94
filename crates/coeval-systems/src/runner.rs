//! Runs a config's systems: one thread per instance, each at its own rate.
use crate::config::{SimConfig, SystemConfig};
use crate::system::{Scope, Step, System, SystemError};
use coeval::{Context, Entity, Peer, SIM_ENTITY, SimDuration};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Factory = Box<dyn Fn(&SystemConfig) -> Box<dyn System> + Send + Sync>;

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

/// Running systems; stops them when dropped.
pub struct Running {
    stop: Vec<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    ended: Receiver<Ended>,
    instances: Vec<(String, Option<String>)>,
}

impl Runner {
    /// A runner that knows no system yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `kind` known: `make` builds one instance.
    #[must_use]
    pub fn register<S, F>(mut self, kind: &str, make: F) -> Self
    where
        S: System + 'static,
        F: Fn(&SystemConfig) -> S + Send + Sync + 'static,
    {
        self.kinds.insert(kind.to_owned(), Box::new(move |config| Box::new(make(config))));
        self
    }

    /// Starts an instance for every entity that a known system's tags name. Systems of kinds that are not registered
    /// are left to other programs.
    pub fn start(&self, peer: &Peer, config: &SimConfig) -> Result<Running, StartError> {
        let mut scopes = Vec::new();
        for system in &config.systems {
            let Some(factory) = self.kinds.get(&system.kind) else {
                tracing::info!(system = system.name, kind = system.kind, "not run here: the kind is not registered");
                continue;
            };
            for entity in applied_to(peer, config, system)? {
                scopes.push((factory(system), system, entity));
            }
        }
        let (report, ended) = mpsc::channel();
        let mut running = Running { stop: Vec::new(), threads: Vec::new(), ended, instances: Vec::new() };
        for (behavior, system, entity) in scopes {
            let entity_name = entity.as_ref().map(|(name, _)| name.clone());
            let scope = Scope {
                peer: peer.clone(),
                entity: entity.map(|(_, entity)| entity),
                system: system.name.clone(),
                settings: system.settings.clone(),
            };
            let (stop, stopped) = mpsc::channel();
            let instance = Instance {
                behavior,
                scope,
                entity_name: entity_name.clone(),
                period: Duration::from_secs_f64(1.0 / system.rate_hz),
                stopped,
            };
            let report = report.clone();
            let thread = std::thread::Builder::new()
                .name(format!("coeval-{}", system.name))
                .spawn(move || {
                    // The receiver may be gone when the runner was dropped; nobody is left to tell then.
                    let _ = report.send(instance.live());
                })
                .map_err(|source| StartError::Thread { system: system.name.clone(), source })?;
            running.stop.push(stop);
            running.threads.push(thread);
            running.instances.push((system.name.clone(), entity_name));
        }
        Ok(running)
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
        self.instances.len()
    }

    /// An instance that has ended since the last call, if any.
    pub fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.try_recv().ok()
    }

    /// Stops all instances and waits up to `timeout` for their `end`. The error names those that did not end.
    pub fn stop(mut self, timeout: Duration) -> Result<Vec<Ended>, StopError> {
        self.stop.clear();
        let deadline = Instant::now() + timeout;
        let mut waiting = std::mem::take(&mut self.instances);
        let mut ended = Vec::new();
        while !waiting.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(end) = self.ended.recv_timeout(left) else { break };
            waiting.retain(|(system, entity)| (system, entity) != (&end.system, &end.entity));
            ended.push(end);
        }
        if waiting.is_empty() {
            for thread in self.threads.drain(..) {
                // Panics are caught inside; a thread that reported is about to finish.
                let _ = thread.join();
            }
            return Ok(ended);
        }
        Err(StopError { timeout, hanging: waiting.into_iter().map(|(system, entity)| label(&system, entity.as_deref())).collect() })
    }
}

/// Instances that did not end in time; they are left behind.
#[derive(Debug, thiserror::Error)]
#[error("still running {timeout:?} after being told to stop: {}", hanging.join(", "))]
pub struct StopError {
    /// How long was waited.
    pub timeout: Duration,
    /// Their names.
    pub hanging: Vec<String>,
}

fn label(system: &str, entity: Option<&str>) -> String {
    entity.map_or_else(|| system.to_owned(), |entity| format!("{system} on {entity}"))
}

struct Instance {
    behavior: Box<dyn System>,
    scope: Scope,
    entity_name: Option<String>,
    period: Duration,
    stopped: Receiver<()>,
}

impl Instance {
    fn live(mut self) -> Ended {
        let mut updates = 0;
        let mut failure = self.phase("load", |behavior, scope| behavior.load(scope));
        if failure.is_none() {
            failure = self.phase("init", |behavior, scope| behavior.init(scope));
            if failure.is_none() {
                failure = self.run(&mut updates);
                let ending = self.phase("end", |behavior, scope| behavior.end(scope));
                failure = failure.or(ending);
            }
        }
        Ended { system: self.scope.system, entity: self.entity_name, updates, failure }
    }

    fn run(&mut self, updates: &mut u64) -> Option<String> {
        let mut due = Instant::now();
        let mut before: Option<Context> = None;
        let mut skipped = 0;
        loop {
            let context = self.scope.peer.context();
            let dt = before.map_or(SimDuration::ZERO, |before| sim_step(before, context));
            let step = Step { context, dt, skipped };
            let failure = self.phase("update", |behavior, scope| behavior.update(scope, step));
            if failure.is_some() {
                return failure;
            }
            *updates += 1;
            before = Some(context);
            due += self.period;
            let late = Instant::now().saturating_duration_since(due);
            // What was missed is skipped, not caught up, so that a slow system cannot spiral.
            skipped = (late.as_secs_f64() / self.period.as_secs_f64()) as u64;
            due += self.period.saturating_mul(u32::try_from(skipped).unwrap_or(u32::MAX));
            match self.stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return None,
            }
        }
    }

    /// Runs one phase; an error or a panic is logged with the instance's name and context time.
    fn phase(
        &mut self,
        phase: &str,
        act: impl FnOnce(&mut dyn System, &Scope) -> Result<(), SystemError>,
    ) -> Option<String> {
        let outcome = catch_unwind(AssertUnwindSafe(|| act(self.behavior.as_mut(), &self.scope)));
        let what = match outcome {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("panicked: {}", panic_text(panic.as_ref())),
        };
        let name = label(&self.scope.system, self.entity_name.as_deref());
        let sim = self.scope.peer.context().sim;
        tracing::error!(system = name, phase, %sim, "{what}");
        Some(format!("{name}: {phase} at {sim}: {what}"))
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

