//! A disk in memory that fails as disks do: for tests, and for whole meshes under virtual time.
use crate::disk::{Disk, Source, Tail};
use parking_lot::Mutex;
use rand::RngCore;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that reach the disk together, or not at all.
const SECTOR: usize = 512;

/// A disk in memory. Clones are the same disk.
///
/// What was appended is seen by whoever reads, as through the cache of an operating system; what was synced survives
/// [`crash`](Self::crash).
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, SimFile>,
    next: u64,
    capacity: Option<usize>,
    failing_syncs: bool,
    reads: u64,
}

#[derive(Clone, Debug, Default)]
struct SimFile {
    id: u64,
    bytes: Vec<u8>,
    synced: usize,
}

impl SimDisk {
    /// An empty disk without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes fit from now on; `None`: any number. What is there stays.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.state.lock().capacity = bytes;
    }

    /// Whether syncs fail from now on.
    pub fn fail_syncs(&self, fail: bool) {
        self.state.lock().failing_syncs = fail;
    }

    /// Bytes in all files.
    pub fn used(&self) -> usize {
        self.state.lock().used()
    }

    /// The bytes of a file, as a reader would see them.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.state.lock().files.get(path).map(|file| file.bytes.clone())
    }

    /// Puts a file there, synced.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let synced = bytes.len();
        self.state.lock().files.insert(path.to_owned(), SimFile { id: 0, bytes, synced });
    }

    /// The machine ends and starts again. Of what was not synced, each sector is there, is zeros, or is beyond the end.
    pub fn crash(&self, rng: &mut dyn RngCore) {
        let mut state = self.state.lock();
        for file in state.files.values_mut() {
            let loose = file.bytes.len() - file.synced;
            let lost = (rng.next_u64() % (loose as u64 + 1)) as usize;
            file.bytes.truncate(file.bytes.len() - lost);
            let mut from = file.synced;
            while from < file.bytes.len() {
                let to = (from - from % SECTOR + SECTOR).min(file.bytes.len());
                if rng.next_u64().is_multiple_of(4) {
                    file.bytes[from..to].fill(0);
                }
                from = to;
            }
            file.synced = file.bytes.len();
            // Who had it open is gone.
            file.id = u64::MAX;
        }
    }
}

impl State {
    fn used(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }

    fn open(&mut self, id: u64) -> Option<&mut SimFile> {
        self.files.values_mut().find(|file| file.id == id)
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such file on the simulated disk")
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Tail>> {
        let mut state = self.state.lock();
        state.next += 1;
        let id = state.next;
        state.files.insert(path.to_owned(), SimFile { id, ..SimFile::default() });
        Ok(Box::new(SimTail { disk: self.clone(), id }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        let bytes = self.bytes(path).ok_or_else(gone)?;
        Ok(Box::new(SimSource { disk: self.clone(), bytes }))
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.files.remove(from).ok_or_else(gone)?;
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state.lock().files.remove(path).map(|_| ()).ok_or_else(gone)
    }
}

struct SimTail {
    disk: SimDisk,
    id: u64,
}

impl Tail for SimTail {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let room = state.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(state.used()));
        let file = state.open(self.id).ok_or_else(gone)?;
        file.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if room < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if state.failing_syncs {
            return Err(io::Error::other("the simulated disk does not answer"));
        }
        let file = state.open(self.id).ok_or_else(gone)?;
        file.synced = file.bytes.len();
        Ok(())
    }
}

struct SimSource {
    disk: SimDisk,
    bytes: Vec<u8>,
}

impl Source for SimSource {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.state.lock();
        state.reads += 1;
        let rest = self.bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        // Every third read is a short one.
        let most = if state.reads.is_multiple_of(3) { into.len().min(7) } else { into.len() };
        let count = rest.len().min(most);
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
