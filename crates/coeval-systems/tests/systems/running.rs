//! Systems run on their own threads beside a real peer: faults stay where they are, `end` is certain, steps are right.
use crate::HEAD;
use coeval::{Peer, SimDuration, SimTime};
use coeval_systems::{Ended, Runner, Running, Scope, SimConfig, StartError, Step, System, SystemError};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Long enough for anything that happens at all; no test waits it out.
const LONG: Duration = Duration::from_secs(20);

fn config(body: &str) -> SimConfig {
    SimConfig::parse("test.toml", &format!("{HEAD}{body}")).expect("a good config")
}

fn host(config: &SimConfig) -> Peer {
    let options = Peer::host(&config.name).start(config.start).rate(config.rate);
    options.initial(config.initial(), config.digest()).open().expect("a host")
}

/// What happened, in order: `PHASE SYSTEM`.
#[derive(Clone, Default)]
struct Journal {
    lines: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Journal {
    fn note(&self, phase: &str, scope: &Scope) {
        let name = scope.entity.as_ref().and_then(coeval::Entity::name).unwrap_or_default();
        self.lines.0.lock().expect("no panic under the lock").push(format!("{phase} {}{name}", scope.system));
        self.lines.1.notify_all();
    }

    fn all(&self) -> Vec<String> {
        self.lines.0.lock().expect("no panic under the lock").clone()
    }

    fn count(&self, line: &str) -> usize {
        self.all().iter().filter(|l| *l == line).count()
    }

    /// Waits until a line is there this many times.
    fn wait(&self, line: &str, times: usize) {
        let lines = self.lines.0.lock().expect("no panic under the lock");
        let few = |lines: &mut Vec<String>| lines.iter().filter(|l| *l == line).count() < times;
        let (lines, late) =
            self.lines.1.wait_timeout_while(lines, LONG, few).expect("no panic under the lock");
        assert!(!late.timed_out(), "{times} times {line:?} in {lines:?}");
    }
}

/// Does what its settings say: `panic`, `error`: the phase in which it fails.
struct Tester(Journal);

impl Tester {
    fn phase(&self, phase: &str, scope: &Scope) -> Result<(), SystemError> {
        self.0.note(phase, scope);
        let coeval::Value::Map(settings) = &scope.settings else { return Err("settings are a map".into()) };
        let fails = |how: &str| settings.get(how).is_some_and(|value| *value == coeval::Value::from(phase));
        assert!(!fails("panic"), "on purpose");
        if fails("error") { Err(format!("{phase} does not work").into()) } else { Ok(()) }
    }
}

impl System for Tester {
    fn load(&mut self, scope: &Scope) -> Result<(), SystemError> {
        self.phase("load", scope)
    }

    fn init(&mut self, scope: &Scope) -> Result<(), SystemError> {
        self.phase("init", scope)
    }

    fn update(&mut self, scope: &Scope, _: Step) -> Result<(), SystemError> {
        self.phase("update", scope)
    }

    fn end(&mut self, scope: &Scope) -> Result<(), SystemError> {
        self.phase("end", scope)
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        assert!(self.0.count("update fragile") == 0, "fragile when dropped");
    }
}

fn start(body: &str) -> (Peer, Journal, Running) {
    let config = config(body);
    let (peer, journal) = (host(&config), Journal::default());
    let notes = journal.clone();
    let runner = Runner::new().register("tester", move |_| Tester(notes.clone()));
    let running = runner.start(&peer, &config).expect("it starts");
    (peer, journal, running)
}

fn system(name: &str, settings: &str) -> String {
    format!("[systems.{name}]\nkind = \"tester\"\nrate = 500\nsettings = {{ {settings} }}\n")
}

fn by_name(ended: Vec<Ended>) -> BTreeMap<String, Ended> {
    ended.into_iter().map(|end| (end.system.clone(), end)).collect()
}

#[test]
fn a_panic_in_one_leaves_the_others_going_and_both_end() {
    let (_peer, journal, mut running) = start(&(system("bad", "panic = \"update\"") + &system("good", "")));
    journal.wait("end bad", 1);
    let so_far = journal.count("update good");
    journal.wait("update good", so_far + 3);
    let bad = loop {
        if let Some(end) = running.poll_ended() {
            break end;
        }
        std::thread::yield_now();
    };
    let failure = bad.failure.expect("it panicked");
    assert_eq!((bad.system.as_str(), bad.updates), ("bad", 0));
    assert!(failure.starts_with("bad: update at 2028-04-25T05:30:"), "{failure}");
    assert!(failure.ends_with("panicked: on purpose"), "{failure}");
    // What was told of is not waited for again.
    let ended = running.stop(LONG).expect("all end");
    assert_eq!(ended.len(), 1);
    assert!(ended[0].system == "good" && ended[0].failure.is_none() && ended[0].updates >= 3);
    assert_eq!((journal.count("end bad"), journal.count("end good")), (1, 1));
}

#[test]
fn who_fails_before_it_is_initialized_has_no_end_and_holds_nobody_up() {
    let systems = [
        system("a", "error = \"load\""),
        system("b", "panic = \"load\""),
        system("c", "error = \"init\""),
        system("d", "panic = \"init\""),
        system("e", "error = \"end\""),
    ];
    let (_peer, journal, running) = start(&systems.concat());
    journal.wait("update e", 3);
    let ended = by_name(running.stop(LONG).expect("all end"));
    let failure = |name: &str| ended[name].failure.clone().unwrap_or_default();
    assert!(
        failure("a").contains(": load at 2028") && failure("a").ends_with("load does not work"),
        "{}",
        failure("a")
    );
    assert!(failure("b").ends_with("panicked: on purpose"), "{}", failure("b"));
    assert!(failure("c").ends_with("init does not work") && failure("d").starts_with("d: init at "));
    assert!(failure("e").ends_with("end does not work") && ended["e"].updates >= 3);
    for name in ["a", "b", "c", "d"] {
        assert_eq!(ended[name].updates, 0);
        assert_eq!(journal.count(&format!("end {name}")), 0, "{name} was not initialized");
    }
    assert_eq!((journal.count("init a"), journal.count("init b"), journal.count("end e")), (0, 0, 1));
}

#[test]
fn all_load_before_any_is_initialized_and_all_are_before_any_updates() {
    let (_peer, journal, running) = start(&(system("a", "") + &system("b", "") + &system("c", "")));
    journal.wait("update a", 2);
    running.stop(LONG).expect("all end");
    let lines = journal.all();
    let phases: Vec<&str> = lines.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(phases[..6], ["load", "load", "load", "init", "init", "init"], "{lines:?}");
    assert_eq!(phases[phases.len() - 3..], ["end", "end", "end"], "{lines:?}");
}

#[test]
fn a_panic_in_making_or_dropping_one_is_its_own_affair() {
    let config = config(&(system("good", "") + &system("unborn", "") + &system("fragile", "")));
    let (peer, journal) = (host(&config), Journal::default());
    let notes = journal.clone();
    let runner = Runner::new().register("tester", move |system| {
        assert_ne!(system.name, "unborn", "cannot be made");
        Tester(if system.name == "fragile" {
            notes.clone()
        } else {
            Journal { lines: Arc::clone(&notes.lines) }
        })
    });
    let running = runner.start(&peer, &config).expect("it starts");
    journal.wait("update good", 2);
    journal.wait("update fragile", 1);
    let ended = by_name(running.stop(LONG).expect("all end"));
    let unborn = ended["unborn"].failure.as_deref().unwrap_or_default();
    assert!(unborn.starts_with("unborn: load at ") && unborn.contains("cannot be made"), "{unborn}");
    let fragile = ended["fragile"].failure.as_deref().unwrap_or_default();
    assert!(fragile.contains("drop at ") && fragile.ends_with("fragile when dropped"), "{fragile}");
}

#[test]
fn tags_apply_a_system_to_each_entity_once() {
    let body = "[entities.p]\ntags = [\"x\", \"y\"]\n[entities.q]\ntags = [\"y\"]\n[entities.r]\n\
                [systems.s]\nkind = \"tester\"\nrate = 500\ntags = [\"x\", \"y\"]\n[systems.elsewhere]\nkind = \"other\"\nrate = 1\n";
    let (_peer, journal, running) = start(body);
    assert_eq!(running.instances(), 2);
    journal.wait("update sp", 1);
    journal.wait("update sq", 1);
    let ended = running.stop(LONG).expect("all end");
    let mut entities: Vec<_> = ended.into_iter().map(|end| end.entity).collect();
    entities.sort();
    assert_eq!(entities, [Some("p".to_owned()), Some("q".to_owned())]);
}

#[test]
fn who_hangs_is_named() {
    struct Hanging(Journal, Receiver<()>);
    impl System for Hanging {
        fn update(&mut self, scope: &Scope, _: Step) -> Result<(), SystemError> {
            self.0.note("update", scope);
            Ok(())
        }
        fn end(&mut self, _: &Scope) -> Result<(), SystemError> {
            // Until the test lets go.
            let _ = self.1.recv();
            Ok(())
        }
    }
    let config =
        config("[entities.p]\ntags = [\"x\"]\n[systems.h]\nkind = \"hanging\"\nrate = 100\ntags = [\"x\"]\n");
    let (peer, journal) = (host(&config), Journal::default());
    let notes = journal.clone();
    let (release, held) = mpsc::channel();
    let held = Mutex::new(Some(held));
    let runner = Runner::new().register("hanging", move |_| {
        Hanging(notes.clone(), held.lock().expect("not poisoned").take().expect("one instance"))
    });
    let running = runner.start(&peer, &config).expect("it starts");
    journal.wait("update hp", 1);
    let error = running.stop(Duration::from_millis(50)).expect_err("it hangs");
    assert_eq!(error.hanging, ["h on p"]);
    assert_eq!(error.to_string(), "still running 50ms after being told to stop: h on p");
    drop(release);
}

#[test]
fn dropping_the_runner_ends_its_systems() {
    let (_peer, journal, running) = start(&system("a", ""));
    journal.wait("update a", 1);
    drop(running);
    journal.wait("end a", 1);
}

#[test]
fn what_cannot_start_starts_nothing() {
    let mut config =
        config(&("[entities.p]\ntags = [\"x\"]\n".to_owned() + &system("s", "") + "tags = [\"x\"]\n"));
    let empty = Peer::host("empty").open().expect("a host");
    let journal = Journal::default();
    let notes = journal.clone();
    let runner = Runner::new().register("tester", move |_| Tester(notes.clone()));
    let missing = runner.start(&empty, &config).err().expect("the entity is not there").to_string();
    assert_eq!(missing, "system \"s\": entity \"p\" is not in this session: was it hosted with this config?");
    let peer = host(&config);
    config.entities[0].id = coeval::SIM_ENTITY;
    assert!(matches!(runner.start(&peer, &config), Err(StartError::SimEntity { .. })));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        config.systems[0].rate_hz = rate;
        assert!(matches!(runner.start(&peer, &config), Err(StartError::Rate { .. })), "{rate}");
    }
    assert_eq!(journal.all(), [""; 0]);
}

/// Tells every step, and waits to be let on, so that the test edits the clock between two updates.
struct Stepper {
    steps: Sender<Step>,
    go: Receiver<()>,
}

impl System for Stepper {
    fn update(&mut self, _: &Scope, step: Step) -> Result<(), SystemError> {
        self.steps.send(step)?;
        Ok(self.go.recv()?)
    }
}

/// A run of one stepper: what it does next is asked for.
struct Steps {
    peer: Peer,
    steps: Receiver<Step>,
    go: Sender<()>,
    running: Running,
}

impl Steps {
    fn start() -> Self {
        let config = config("[systems.s]\nkind = \"stepper\"\nrate = 2000\n");
        let peer = host(&config);
        let ((tell, steps), (go, let_on)) = (mpsc::channel(), mpsc::channel());
        let ends = Mutex::new(Some((tell, let_on)));
        let runner = Runner::new().register("stepper", move |_| {
            let (steps, go) = ends.lock().expect("not poisoned").take().expect("one instance");
            Stepper { steps, go }
        });
        let running = runner.start(&peer, &config).expect("it starts");
        Self { peer, steps, go, running }
    }

    fn next(&self) -> Step {
        self.steps.recv_timeout(LONG).expect("an update")
    }

    /// Lets the update under way go on; the next one.
    fn then(&self) -> Step {
        self.go.send(()).expect("it waits");
        self.next()
    }
}

#[test]
fn steps_are_sim_time_and_a_jump_is_never_one() -> coeval::Result<()> {
    let run = Steps::start();
    let clock = run.peer.clock();
    let first = run.next();
    assert_eq!((first.dt, first.skipped), (SimDuration::ZERO, 0));
    let second = run.then();
    assert_eq!(second.dt, second.context.sim - first.context.sim);
    assert!(second.dt > SimDuration::ZERO);

    clock.jump_by(SimDuration::from_secs(86_400))?;
    let jumped = run.then();
    assert_eq!(jumped.dt, SimDuration::ZERO, "a jump is not a step");
    assert!(jumped.context.sim - second.context.sim > SimDuration::from_secs(86_000));
    let after = run.then();
    assert_eq!(after.dt, after.context.sim - jumped.context.sim);
    assert!(after.dt > SimDuration::ZERO && after.dt < SimDuration::from_secs(3_600));

    clock.jump_to(SimTime::EPOCH)?;
    assert_eq!(run.then().dt, SimDuration::ZERO, "nor is one back");

    clock.pause()?;
    run.then();
    assert_eq!(run.then().dt, SimDuration::ZERO, "a paused clock makes no step, and updates go on");
    assert_eq!(run.then().dt, SimDuration::ZERO);

    clock.set_scale(-50.0)?;
    clock.resume()?;
    let back = run.then();
    let further = run.then();
    assert!(further.dt.is_negative());
    assert_eq!(further.dt, further.context.sim - back.context.sim);
    drop(run.go);
    run.running.stop(LONG).expect("it ends");
    Ok(())
}

#[test]
fn a_late_update_is_told_what_it_skipped() {
    let begun = std::time::Instant::now();
    let run = Steps::start();
    let first = run.next();
    // At 2 kHz at least some tens of updates fall into this pause, however slow the machine is.
    std::thread::sleep(Duration::from_millis(60));
    let late = run.then();
    assert!(late.skipped >= 100, "{} skipped in {:?}", late.skipped, late.dt);
    // No more than there were in all the time since before the start.
    let slots = begun.elapsed().as_secs_f64() * 2_000.0;
    assert!(late.skipped as f64 <= slots, "{} skipped in {slots} slots", late.skipped);
    assert!(late.context.sim > first.context.sim);
    drop(run.go);
    run.running.stop(LONG).expect("it ends");
}
