//! A peer alone with its journal: all cells are rewritten, then flushed; beside a bare append of as many bytes, synced as
//! often, to a file in the same folder. Rounds are interleaved, so that what disturbs the disk disturbs both.
use crate::{Failure, Figure};
use coeval::{JournalOptions, Motion, Param, Peer, SyncPolicy};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const CELLS: usize = 20_000;
const ROUNDS: usize = 15;
const PATIENCE: Duration = Duration::from_secs(60);
/// As the journal hands bytes to the system.
const GATHER: usize = 256 << 10;

/// The folder of a measurement, which goes with it.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Nanoseconds and bytes per update that was flushed to the journal, and of the bare append.
pub(crate) fn measure() -> Result<Vec<Figure>, Failure> {
    let folder =
        Folder(std::env::current_dir()?.join(format!(".coeval-bench-{:016x}", rand::random::<u64>())));
    std::fs::create_dir(&folder.0)?;
    let path = folder.0.join("journal");
    let options = JournalOptions::new(&path).sync(SyncPolicy::default());
    let peer = Peer::host("bench").journal(options).open()?;
    let mut motions = Vec::new();
    for _ in 0..CELLS {
        motions.push(peer.create_unnamed()?.param::<Motion>("motion")?);
    }
    round(&peer, &motions, 0)?;
    let before = size(&path)?;
    round(&peer, &motions, 1)?;
    let bytes = size(&path)?.saturating_sub(before);
    let mut bare = OpenOptions::new().append(true).create_new(true).open(folder.0.join("bare"))?;
    let (mut journaled, mut appended) = (Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        journaled.push(round(&peer, &motions, n)?);
        appended.push(append(&mut bare, bytes)?);
    }
    let per_update = |times: Vec<Duration>| median(times).as_nanos() as f64 / CELLS as f64;
    let (journaled, appended) = (per_update(journaled), per_update(appended));
    Ok(vec![
        ("journal_ns_per_update", journaled, "written by a thread, encoded, appended, synced, told"),
        ("bare_append_ns_per_update", appended, "as many bytes appended and synced, nothing else"),
        ("journal_over_bare", journaled / appended, "the two, as a ratio"),
        ("bytes_per_update", bytes as f64 / CELLS as f64, "48 of them raw"),
    ])
}

/// Rewrites all cells and waits until the journal has them.
fn round(peer: &Peer, motions: &[Param<Motion>], n: usize) -> Result<Duration, Failure> {
    let began = Instant::now();
    let context = peer.context();
    for (index, param) in motions.iter().enumerate() {
        let at = [index as f64, n as f64, rand::random()];
        param.set(context, Motion::at(at).velocity([rand::random(), rand::random(), rand::random()]))?;
    }
    peer.flush(PATIENCE)?;
    Ok(began.elapsed())
}

fn append(file: &mut File, bytes: u64) -> Result<Duration, Failure> {
    let block = vec![0x5a; GATHER];
    let began = Instant::now();
    let mut left = usize::try_from(bytes)?;
    while left > 0 {
        let now = left.min(block.len());
        file.write_all(&block[..now])?;
        left -= now;
    }
    file.sync_data()?;
    Ok(began.elapsed())
}

fn size(path: &Path) -> Result<u64, Failure> {
    Ok(std::fs::metadata(path)?.len())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
