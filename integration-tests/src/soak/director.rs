//! Starts the processes, does to them what was planned, makes everything well again, and has the run judged.
use super::faults::{self, Fault, Planned};
use super::judge::{Evidence, LifeLog, judge};
use super::record;
use super::report::Summary;
use super::seat::{Said, Seat, State};
use super::worker::{Assignment, Final, Request, Status};
use crate::proxy::{Proxy, Weather};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Blocks of 512 bytes on a small disk: the world fits, its changes soon do not any more.
const SMALL_DISK: u32 = 400;
const TICK: Duration = Duration::from_millis(20);
/// How long the processes may take to come up in fair weather.
const START: Duration = Duration::from_secs(60);
/// Within this after the faults have ended, all must be equal.
pub const BOUND: Duration = Duration::from_secs(90);
/// How long an answer to a request may take; a process that is asked to finish waits for others itself.
const ANSWER: Duration = Duration::from_secs(90);
/// What a process may hold in memory at the end.
const MEMORY_MIB: u64 = 200;
/// A join that failed is tried again after this.
const AGAIN: Duration = Duration::from_millis(500);
/// A process that is not ready by then hangs.
const HANGS: Duration = Duration::from_secs(60);

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides what is written, sent, and broken.
    pub seed: u64,
    /// Processes at once, 3 to 32.
    pub peers: usize,
    /// How long faults go on.
    pub length: Duration,
    /// Histories and logs go here.
    pub folder: PathBuf,
    /// The program that runs a [worker](super::worker) when its first argument is `worker`.
    pub exe: PathBuf,
}

struct Director {
    options: Options,
    proxy: Proxy,
    seats: Vec<Seat>,
    said: (Sender<Said>, Receiver<Said>),
    lives: Vec<LifeLog>,
    /// Faults that go on: which, since when, until when.
    active: Vec<(Fault, Instant, Instant)>,
    summary: Summary,
    /// When the process of each seat was started.
    started: Vec<Instant>,
    /// Why processes could not open their peer, and how often.
    refusals: BTreeMap<String, u64>,
}

/// Runs from start to judgment.
///
/// # Errors
/// When the machine does not give what is needed: sockets, files, processes. What the peers do wrong is in the summary.
pub fn run(options: Options) -> io::Result<Summary> {
    let mut director = Director::new(options)?;
    if director.gather()? {
        director.torture()?;
        let finals = director.heal()?;
        director.dismiss();
        director.conclude(finals);
    }
    Ok(director.summary)
}

impl Director {
    fn new(options: Options) -> io::Result<Self> {
        std::fs::create_dir_all(&options.folder)?;
        // Ports that were free a moment ago; one that is taken again meanwhile makes an opening fail, which is retried.
        let sockets: io::Result<Vec<_>> =
            (0..options.peers).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect();
        let listens: Vec<SocketAddr> =
            sockets?.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>()?;
        let proxy = Proxy::start(&listens, options.seed)?;
        let seat = |(seat, &listen): (usize, &SocketAddr)| {
            Seat::new(Assignment {
                seat,
                generation: 0,
                seed: options.seed,
                listen,
                front: proxy.front(seat),
                invite: None,
                identity: options.folder.join(format!("{seat}.key")),
                history: PathBuf::new(),
                journal: None,
            })
        };
        let seats: Vec<Seat> = listens.iter().enumerate().map(seat).collect();
        let summary = Summary {
            seed: options.seed,
            peers: options.peers,
            seconds: options.length.as_secs_f64(),
            ..Summary::default()
        };
        let started = vec![Instant::now(); options.peers];
        Ok(Self {
            options,
            proxy,
            seats,
            said: channel(),
            lives: Vec::new(),
            active: Vec::new(),
            summary,
            started,
            refusals: BTreeMap::new(),
        })
    }

    fn violation(&mut self, what: String) {
        self.summary.violations.push(what);
    }

    fn count(&mut self, fault: &str) {
        *self.summary.faults.entry(fault.to_owned()).or_default() += 1;
    }

    /// Starts a process on a seat; by whose invite it joins.
    fn start(&mut self, index: usize, inviter: Option<usize>) -> io::Result<()> {
        let via = inviter.and_then(|index| self.seats[index].life);
        let invite = inviter.and_then(|index| self.seats[index].invite.clone());
        let seat = &mut self.seats[index];
        let assignment = &mut seat.assignment;
        assignment.generation += 1;
        let generation = assignment.generation;
        assignment.seed = self.options.seed ^ (index as u64) << 32 ^ u64::from(generation) << 48;
        assignment.invite = invite;
        assignment.history = self.options.folder.join(format!("{index}.{generation}.history"));
        // The last of those that keep a journal has a small disk, and a new one for each process.
        let keeps = index % 3 == 1;
        let limit = (keeps && index > 1 && index + 3 >= self.options.peers).then_some(SMALL_DISK);
        let disk = if limit.is_some() { format!("{index}.{generation}") } else { index.to_string() };
        assignment.journal = keeps.then(|| self.options.folder.join(format!("{disk}.journal")));
        let history = assignment.history.clone();
        // Every third writes its log to a disk that is full.
        let full = index % 3 == 2;
        let journal = keeps && limit.is_none();
        let log = if full {
            File::options().write(true).open("/dev/full")?
        } else {
            File::create(self.options.folder.join(format!("{index}.{generation}.log")))?
        };
        let spawned = record::now();
        seat.start(&self.options.exe, log, limit, &self.said.0)?;
        self.started[index] = Instant::now();
        self.lives.push(LifeLog {
            seat: index,
            generation,
            spawned,
            via,
            history,
            journal,
            ..LifeLog::default()
        });
        if full {
            self.count("full_disk_under_log");
        }
        if limit.is_some() {
            self.count("full_disk_under_journal");
        }
        Ok(())
    }

    /// Brings all up. Whether they came.
    fn gather(&mut self) -> io::Result<bool> {
        let deadline = Instant::now() + START;
        self.start(0, None)?;
        while self.seats.iter().any(|seat| seat.state != State::Up) {
            if Instant::now() > deadline || !self.summary.passed() {
                let states: Vec<_> = self.seats.iter().map(|seat| seat.state).collect();
                self.violation(format!(
                    "the processes did not come up in fair weather: {states:?}, {:?}",
                    self.refusals
                ));
                return Ok(false);
            }
            self.tick(Instant::now())?;
        }
        Ok(true)
    }

    /// Hears what was said, starts who is due, sees who ended.
    fn tick(&mut self, now: Instant) -> io::Result<()> {
        std::thread::sleep(TICK);
        while let Ok(said) = self.said.1.try_recv() {
            self.hear(&said);
        }
        for index in 0..self.seats.len() {
            if let Some(status) = self.seats[index].ended() {
                self.ended(index, status);
            }
            let starting = self.seats[index].state == State::Starting;
            if starting && self.started[index].elapsed() > HANGS {
                self.violation(format!("the process at {} was not ready after {HANGS:?}", self.label(index)));
                self.seats[index].kill(now);
            }
            if matches!(self.seats[index].state, State::Down(until) if until <= now)
                && let Some(inviter) = self.inviter(index)
            {
                self.start(index, Some(inviter))?;
            }
        }
        Ok(())
    }

    fn label(&self, index: usize) -> String {
        format!("{index}.{}", self.seats[index].assignment.generation)
    }

    /// Who is at work and can invite; another one each time.
    fn inviter(&self, index: usize) -> Option<usize> {
        let count = self.seats.len();
        let turn = index + self.lives.len();
        (0..count).map(|step| (turn + step) % count).find(|at| self.seats[*at].state == State::Up)
    }

    fn hear(&mut self, (index, generation, line): &Said) {
        let seat = &mut self.seats[*index];
        if seat.assignment.generation != *generation || seat.state != State::Starting {
            return;
        }
        if let Some(life) = line["ready"]["life"].as_u64() {
            seat.life = Some(life);
            seat.invite = line["ready"]["invite"].as_str().map(str::to_owned);
            seat.state = State::Up;
        } else if let Some(why) = line["failed"].as_str() {
            self.summary.joins_failed += 1;
            *self.refusals.entry(why.to_owned()).or_default() += 1;
            seat.kill(Instant::now() + AGAIN);
        }
    }

    fn ended(&mut self, index: usize, status: std::process::ExitStatus) {
        let seat = &mut self.seats[index];
        let before = std::mem::replace(&mut seat.state, State::Down(Instant::now() + AGAIN));
        // One that could not join says so and ends in order.
        if before == State::Starting && status.success() {
            self.summary.joins_failed += 1;
        } else {
            self.violation(format!("the process at {} ended by itself: {status}", self.label(index)));
        }
    }

    /// Injects the planned faults.
    fn torture(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        let mut planned: Vec<Planned> =
            faults::plan(self.options.seed, self.seats.len(), self.options.length);
        planned.reverse();
        while begin.elapsed() < self.options.length {
            let now = Instant::now();
            let mut postponed = Vec::new();
            while planned.last().is_some_and(|next| begin + next.at <= now) {
                if let Some(next) = planned.pop()
                    && !self.inject(next, now)?
                {
                    postponed.push(next);
                }
            }
            planned.extend(postponed);
            self.expire(now)?;
            self.set_weather(now);
            self.tick(now)?;
        }
        Ok(())
    }

    /// How many may be taken away and still leave enough to carry on.
    fn can_spare(&self) -> bool {
        let up = self.seats.iter().filter(|seat| seat.state == State::Up).count();
        up > (self.seats.len() / 2).max(2)
    }

    /// Whether it could be done now: whom it is for may be down, or be one of the last.
    fn inject(&mut self, planned: Planned, now: Instant) -> io::Result<bool> {
        let until = now + planned.lasts;
        match planned.fault {
            Fault::Kill(seat) | Fault::Stop(seat) | Fault::Stall(seat)
                if self.seats[seat].state != State::Up || !self.can_spare() =>
            {
                return Ok(false);
            }
            Fault::Kill(seat) => self.seats[seat].kill(until),
            Fault::Stop(seat) | Fault::Stall(seat) => {
                self.seats[seat].signal("STOP")?;
                self.seats[seat].state = State::Frozen;
            }
            _ => {}
        }
        self.active.push((planned.fault, now, until));
        self.count(planned.fault.name());
        if planned.fault == Fault::Kill(0) && self.seats[0].assignment.generation == 1 {
            self.count("host_killed");
        }
        Ok(true)
    }

    /// Ends the faults whose time is over.
    fn expire(&mut self, now: Instant) -> io::Result<()> {
        let (over, active): (Vec<_>, Vec<_>) = self.active.drain(..).partition(|(_, _, until)| *until <= now);
        self.active = active;
        for (fault, ..) in over {
            if let Fault::Stop(seat) | Fault::Stall(seat) = fault {
                self.seats[seat].signal("CONT")?;
                self.seats[seat].state = State::Up;
            }
        }
        Ok(())
    }

    fn set_weather(&self, now: Instant) {
        let active: Vec<_> = self.active.iter().map(|(fault, since, _)| (*fault, now - *since)).collect();
        for from in 0..self.seats.len() {
            for to in (0..self.seats.len()).filter(|to| *to != from) {
                self.proxy.set(from, to, faults::weather(from, to, &active));
            }
        }
    }

    /// Ends all faults, brings all back, and waits until they are equal. Their final states.
    fn heal(&mut self) -> io::Result<Vec<Final>> {
        let healed = Instant::now();
        self.expire(healed + HANGS)?;
        for from in 0..self.seats.len() {
            (0..self.seats.len()).for_each(|to| self.proxy.set(from, to, Weather::default()));
        }
        for seat in &mut self.seats {
            if matches!(seat.state, State::Down(_)) {
                seat.state = State::Down(healed);
            }
        }
        while self.seats.iter().any(|seat| seat.state != State::Up) && healed.elapsed() < BOUND {
            self.tick(Instant::now())?;
        }
        self.ask_all(&Request::Quiet, "quiet");
        self.converge(healed);
        for (index, answer) in self.ask_all(&Request::Finish, "finished") {
            if let Some(missing) = answer["finished"].as_str() {
                self.violation(format!("{} could not finish: {missing}", self.label(index)));
            }
        }
        self.converge(healed);
        self.collect()
    }

    /// Waits until all digests and clocks are equal.
    fn converge(&mut self, healed: Instant) {
        loop {
            let answers = self.ask_all(&Request::Status, "status");
            let status = |answer: &Value| serde_json::from_value::<Status>(answer["status"].clone()).ok();
            let all: Vec<Status> = answers.iter().filter_map(|(_, answer)| status(answer)).collect();
            let equal =
                |pair: &[Status]| (&pair[0].digest, pair[0].clock) == (&pair[1].digest, pair[1].clock);
            if all.len() == self.seats.len() && all.windows(2).all(equal) {
                self.summary.converged_in.get_or_insert(healed.elapsed().as_secs_f64());
                return;
            }
            if healed.elapsed() > BOUND {
                self.summary.converged_in = None;
                return self.violation(format!("not equal {BOUND:?} after the faults have ended: {all:?}"));
            }
            std::thread::sleep(10 * TICK);
        }
    }

    /// Asks all who are at work, and waits for their answers.
    fn ask_all(&mut self, request: &Request, key: &str) -> Vec<(usize, Value)> {
        let mut waiting: BTreeMap<usize, u32> = BTreeMap::new();
        for (index, seat) in self.seats.iter_mut().enumerate().filter(|(_, seat)| seat.state == State::Up) {
            seat.ask(request);
            waiting.insert(index, seat.assignment.generation);
        }
        let deadline = Instant::now() + ANSWER;
        let mut answers = Vec::new();
        while !waiting.is_empty() && Instant::now() < deadline {
            if let Ok((index, generation, line)) = self.said.1.recv_timeout(TICK)
                && waiting.get(&index) == Some(&generation)
                && line.get(key).is_some()
            {
                waiting.remove(&index);
                answers.push((index, line));
            }
        }
        for index in waiting.into_keys() {
            self.violation(format!("{} did not answer to {request:?}", self.label(index)));
        }
        answers.sort_by_key(|(index, _)| *index);
        answers
    }

    fn collect(&mut self) -> io::Result<Vec<Final>> {
        let mut finals = Vec::new();
        for index in 0..self.seats.len() {
            let path = self.options.folder.join(format!("{index}.final"));
            self.seats[index].ask(&Request::Dump(path));
        }
        // Their answers are in order with those to the next request, so that all are written then.
        for (index, answer) in self.ask_all(&Request::Status, "status") {
            let rss = answer["status"]["rss_kib"].as_u64().unwrap_or(0) / 1_024;
            self.summary.rss_mib = self.summary.rss_mib.max(rss);
            if rss > MEMORY_MIB {
                self.violation(format!("{} holds {rss} MiB: more than {MEMORY_MIB}", self.label(index)));
            }
            let path = self.options.folder.join(format!("{index}.final"));
            finals.push(serde_json::from_slice(&std::fs::read(path)?)?);
        }
        Ok(finals)
    }

    /// Has all leave, and waits until their histories are complete.
    fn dismiss(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.ask(&Request::Leave));
        let deadline = Instant::now() + ANSWER;
        for index in 0..self.seats.len() {
            let ended = loop {
                match self.seats[index].ended() {
                    None if Instant::now() < deadline => std::thread::sleep(TICK),
                    ended => break ended,
                }
            };
            if !ended.is_some_and(|status| status.success()) {
                self.violation(format!("{} did not leave in order: {ended:?}", self.label(index)));
            }
        }
    }

    fn conclude(&mut self, finals: Vec<Final>) {
        let mut lives = std::mem::take(&mut self.lives);
        for life in &mut lives {
            life.lines = record::read(&life.history);
            // Whoever sits at the table at the end lived on.
            life.survives = self.seats[life.seat].assignment.generation == life.generation;
        }
        let traffic = self.proxy.traffic();
        self.summary.datagrams = BTreeMap::from([
            ("passed".into(), traffic.passed),
            ("lost".into(), traffic.lost),
            ("cut".into(), traffic.cut),
            ("duplicated".into(), traffic.duplicated),
            ("reordered".into(), traffic.reordered),
        ]);
        self.summary.processes = lives.len();
        self.summary.joins_refused = std::mem::take(&mut self.refusals);
        judge(&Evidence { lives, finals }, &mut self.summary);
    }
}

/// Where a run keeps its files when nobody says where.
pub fn default_folder(seed: u64) -> PathBuf {
    std::env::temp_dir().join(format!("coeval-soak-{seed}-{}", std::process::id()))
}

/// Removes the files of a run that passed.
///
/// # Errors
/// When the system does not let it.
pub fn clean(folder: &Path) -> io::Result<()> {
    std::fs::remove_dir_all(folder)
}
