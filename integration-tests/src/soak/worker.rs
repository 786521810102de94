//! A peer under torture: writes, reads, sends and receives as fast as it was told to, and keeps a history of it.
//!
//! Started by the director with one argument, an [`Assignment`] as JSON. It answers on standard output, one JSON object
//! for each line: `ready` once it is open, `failed` if it does not get that far, then one answer for each line of input,
//! which is a [`Request`].
mod acker;
mod messenger;
mod reader;
mod writer;

use super::record::{History, Record};
use coeval::{
    ErrorKind, Identity, Invite, NodeId, Peer, PeerState, SimTime, Stamp, Value, WallDuration, WallTime,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Before it is asked again who has a link.
const PAUSE: Duration = Duration::from_millis(50);

/// What a process is to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Which seat at the table: its name.
    pub seat: usize,
    /// How often the seat was taken before.
    pub generation: u32,
    /// Decides what it does.
    pub seed: u64,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where others dial it.
    pub front: SocketAddr,
    /// The session to join; none: it hosts one.
    pub invite: Option<String>,
    /// Its key pair is kept here from one life to the next.
    pub identity: PathBuf,
    /// Where its history goes. A process that cannot write files gives it to standard output, beside its answers.
    pub history: PathBuf,
    /// Where it keeps a journal, if it does.
    pub journal: Option<PathBuf>,
}

/// What the director asks of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// To write and send nothing any more.
    Quiet,
    /// To wait until all peers have all it wrote and sent.
    Finish,
    /// How it stands: a [`Status`].
    Status,
    /// To write its [`Final`] state to a file.
    Dump(PathBuf),
    /// To leave the session and end.
    Leave,
}

/// How a process stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// The digest of its replica.
    pub digest: String,
    /// A hash over all edits of the clock, and over the sim time at some instants.
    pub clock: u64,
    /// How many peers it has a link with.
    pub linked: usize,
    /// Whether this process writes no more.
    pub quiet: bool,
    /// Resident memory, KiB.
    pub rss_kib: u64,
}

/// The whole state of a replica.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Final {
    /// Of each entity, its parameters: value as text, and stamp.
    pub entities: BTreeMap<String, BTreeMap<String, (String, Stamp)>>,
    /// The stamps of all edits of the clock, in order.
    pub edits: Vec<Stamp>,
}

/// What the threads of a process share.
struct Desk {
    peer: Peer,
    assignment: Assignment,
    history: History,
    /// Set when nothing more is to be written or sent.
    quiet: AtomicBool,
    /// Set when the process ends.
    ending: AtomicBool,
    /// The last round that was written.
    round: AtomicU64,
    /// The last round that was written when a value was last written to the own counter, and that value.
    count: AtomicU64,
    /// Entities that anybody may write to and delete.
    pool: Mutex<Vec<coeval::EntityId>>,
    own: coeval::Entity,
}

impl Desk {
    fn life(&self) -> u64 {
        self.peer.node().incarnation.0
    }

    fn violation(&self, what: String) {
        self.history.add(&Record::Violation { what });
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }
}

/// The text that histories know a value by.
fn text(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.to_string(),
        other => other.to_string(),
    }
}

/// Runs a process to its end.
///
/// # Errors
/// When the peer cannot be opened, or standard input or output fails.
pub fn run(assignment: &str) -> Result<(), Box<dyn Error>> {
    // The log goes to standard error, which may be a full disk. To tell of that the subscriber would print to standard
    // error, and panic there: on whichever thread logs, the one of the peer's I/O included.
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    log.log_internal_errors(false).init();
    let assignment: Assignment = serde_json::from_str(assignment)?;
    let desk = match open(assignment) {
        Ok(desk) => Arc::new(desk),
        Err(error) => return tell(&serde_json::json!({ "failed": error.to_string() })),
    };
    let events = desk.peer.events().subscribe("*");
    desk.history.add(&Record::Opened { life: desk.life() });
    let invite = desk.peer.invite()?.to_string();
    tell(&serde_json::json!({ "ready": { "life": desk.life(), "invite": invite } }))?;
    std::thread::scope(|scope| {
        let desk = &desk;
        scope.spawn(move || writer::run(desk));
        scope.spawn(move || acker::run(desk));
        scope.spawn(move || reader::run(desk));
        scope.spawn(move || messenger::send(desk));
        scope.spawn(move || messenger::receive(desk, &events));
        scope.spawn(move || beat(desk));
        let obeyed = obey(desk);
        desk.quiet.store(true, Ordering::Relaxed);
        desk.ending.store(true, Ordering::Relaxed);
        // What was received is taken up to the last event; then the threads see that it is over. When all leave at once
        // some find nobody to flush to: what had to arrive was seen to before.
        let _ = desk.peer.clone().leave(Duration::from_secs(2));
        obeyed
    })
}

fn tell(answer: &serde_json::Value) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}

fn open(assignment: Assignment) -> Result<Desk, Box<dyn Error>> {
    let history = History::open(&assignment.history)?;
    let identity = Identity::load_or_create(&assignment.identity)?;
    let name = format!("{}.{}", assignment.seat, assignment.generation);
    let peer = match &assignment.invite {
        None => Peer::host("soak")
            .peer_name(&name)
            .identity(identity)
            .listen(assignment.listen)
            .advertise(assignment.front)
            .open()?,
        Some(invite) => {
            let mut join = Peer::join(invite.parse::<Invite>()?)
                .peer_name(&name)
                .identity(identity)
                .listen(assignment.listen)
                .advertise(assignment.front)
                .timeout(Duration::from_secs(20));
            if let Some(journal) = &assignment.journal {
                join = join.journal(journal.as_path());
            }
            join.open()?
        }
    };
    if assignment.invite.is_none() {
        for name in super::SHARED {
            peer.create_entity(name)?;
        }
    }
    let own = peer.create_entity(&format!("own {name}"))?;
    Ok(Desk {
        peer,
        assignment,
        history,
        quiet: AtomicBool::new(false),
        ending: AtomicBool::new(false),
        round: AtomicU64::new(0),
        count: AtomicU64::new(0),
        pool: Mutex::default(),
        own,
    })
}

/// Does what the director asks, until it asks to leave or is gone.
fn obey(desk: &Desk) -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?)? {
            Request::Quiet => {
                desk.quiet.store(true, Ordering::Relaxed);
                serde_json::json!({ "quiet": true })
            }
            Request::Finish => serde_json::json!({ "finished": finish(desk) }),
            Request::Status => serde_json::json!({ "status": status(desk) }),
            Request::Dump(path) => {
                dump(&desk.peer, &path)?;
                serde_json::json!({ "dumped": true })
            }
            Request::Leave => return Ok(()),
        };
        tell(&answer)?;
    }
    Ok(())
}

/// Waits until everyone has everything; none if so, else what is missing.
fn finish(desk: &Desk) -> Option<String> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let flushed = desk.peer.flush(PATIENCE);
    // The others have it all the same; that the journal cannot be written was said.
    let flushed = match flushed {
        Err(error) if error.kind() == ErrorKind::Journal => flush_to_linked(&desk.peer, PATIENCE),
        other => other,
    };
    let delivered = desk.peer.events().delivered(PATIENCE);
    flushed.and(delivered).err().map(|error| error.to_string())
}

/// Waits for those who have a link. Who they are is asked anew: one that died stays among them until its link falls.
fn flush_to_linked(peer: &Peer, patience: Duration) -> coeval::Result<()> {
    const SLICE: Duration = Duration::from_secs(1);
    let end = Instant::now() + patience;
    loop {
        let linked = |state| !matches!(state, PeerState::Unreachable | PeerState::Reachable);
        let nodes: Vec<NodeId> =
            peer.peers().into_iter().filter(|other| linked(other.state)).map(|other| other.node).collect();
        match peer.flush_to(&nodes, SLICE) {
            Err(_) if Instant::now() < end => {}
            done => return done,
        }
        std::thread::sleep(PAUSE);
    }
}

fn status(desk: &Desk) -> Status {
    let peers = desk.peer.peers();
    Status {
        digest: format!("{:?}", desk.peer.digest()),
        clock: clock_hash(&desk.peer),
        linked: peers.iter().filter(|peer| peer.state == PeerState::Linked).count(),
        quiet: desk.is_quiet(),
        rss_kib: resident_kib(),
    }
}

/// Equal on two peers that know the same edits and make the same sim time of them.
fn clock_hash(peer: &Peer) -> u64 {
    let clock = peer.clock();
    let mut hash = DefaultHasher::new();
    for edit in clock.log() {
        format!("{:?}", edit.logged).hash(&mut hash);
    }
    let start: WallTime = peer.session().genesis.wall;
    for step in 0..64 {
        let sim: SimTime = clock.sim_at(start.saturating_add(WallDuration::from_millis(step * 7_919)));
        sim.as_nanos().hash(&mut hash);
    }
    hash.finish()
}

fn dump(peer: &Peer, path: &Path) -> Result<(), Box<dyn Error>> {
    let snapshot = peer.snapshot();
    let mut state = Final::default();
    for (id, view) in snapshot.entities() {
        let leaves = view.parameters.iter().filter_map(|(path, _)| Some((path, view.leaf(path)?)));
        let leaves = leaves.map(|(path, leaf)| (path.to_string(), (text(&leaf.value), leaf.stamp)));
        state.entities.insert(id.to_string(), leaves.collect());
    }
    state.edits = peer.clock().log().iter().map(|edit| edit.logged.edit.id.stamp).collect();
    Ok(std::fs::write(path, serde_json::to_vec(&state)?)?)
}

fn beat(desk: &Desk) {
    while !desk.is_ending() {
        desk.history.add(&Record::Beat { rss_kib: resident_kib() });
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Resident memory of this process, KiB; zero where the system does not say.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
