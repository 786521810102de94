//! The cell: the newest sample of one parameter, and what is needed to write and read it without the entity.
//!
//! Status bits say whether the sample counts. They change under the cell's writer lock only, so a writer that holds
//! the lock and finds the cell [`LIVE`] may publish a newer sample without asking anyone: being the newest leaf of a
//! visible path without children, it stays visible. Everything else goes through the entity's mutex and the tree,
//! which push visibility down into the cells.
//!
//! A value too wide for its cell moves to a successor; who holds the old cell follows.
use crate::history::{History, KEPT};
use crate::hub::Hub;
use crate::layout::{ABANDONED, Buffer, HEADER, HEAP, Header, MAX_WIDTH};
use arc_swap::ArcSwapOption;
use coeval_cell::{CellWriter, RingCell};
use coeval_time::Stamp;
use coeval_value::words::{MAX_INLINE_WORDS, Words, decode_words};
use coeval_value::{Leaf, Value};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A leaf was written here and not dropped since.
pub(crate) const LEAF: u32 = 1;
/// The tree shows that leaf.
pub(crate) const SHOWN: u32 = 2;
/// Nothing is below this path, so a newer leaf changes nothing else.
pub(crate) const EXCLUSIVE: u32 = 4;
/// The entity lives.
pub(crate) const ALIVE: u32 = 8;
/// The tree shows a map here.
pub(crate) const MAP: u32 = 16;
/// The entity was deleted. For ever.
pub(crate) const DELETED: u32 = 32;
/// The parameter moved to a wider cell.
pub(crate) const FORWARDED: u32 = 64;
/// Writes must go through the entity, whatever else is set: an entity's name, whose bearers are indexed.
pub(crate) const INDEXED: u32 = 128;

/// What a read needs.
pub(crate) const READABLE: u32 = LEAF | SHOWN | ALIVE;
/// What a write needs that asks nobody.
pub(crate) const LIVE: u32 = LEAF | SHOWN | ALIVE | EXCLUSIVE;

/// Slots of the ring: the newest sample and its last predecessors.
pub(crate) const SLOTS: usize = 4;
/// A replaced value on the heap is kept for a while if it is no larger.
const MAX_PREVIOUS_BYTES: usize = 4096;
const NO_EPOCH: u32 = u32::MAX;

/// A value on the heap, with the header of its own write.
pub(crate) struct HeapSample {
    pub(crate) header: Header,
    pub(crate) value: Value,
    /// The one before it, unless it was large: for contexts a little older than the newest write.
    previous: Option<(Header, Value)>,
}

/// A sample older than the newest.
pub(crate) enum Older<'a> {
    /// The value's words.
    Words(&'a [u64]),
    /// A value on the heap.
    Heap(&'a Value),
}

/// The value of a write.
pub(crate) enum Payload<'a> {
    /// Kind and words.
    Inline(u8, &'a [u64]),
    /// Anything else.
    Heap(Value),
}

/// The newest sample, as a reader finds it.
pub(crate) enum Newest {
    /// Nothing readable; the status says why.
    Absent(u32),
    /// Header; the value's words are in the buffer behind it.
    Inline(Header),
    /// A value on the heap.
    Heap(Arc<HeapSample>),
}

pub(crate) struct Cell {
    ring: RingCell,
    heap: ArcSwapOption<HeapSample>,
    history: OnceLock<Box<History>>,
    forward: OnceLock<Arc<Cell>>,
    /// What a local publisher knows better than the register; see `truth.rs`.
    pub(crate) truth: OnceLock<Box<RingCell>>,
    /// The newest epoch of any sample since the last removal.
    branch: AtomicU32,
    /// Samples of the ring before this number belong to a value that was removed since.
    first: AtomicU64,
    /// The heap holds a value that is not the newest any more.
    heap_lags: AtomicBool,
    /// The slot's number.
    pub(crate) slot: u32,
}

impl HeapSample {
    fn value_of(&self, stamp: Stamp) -> Option<&Value> {
        if self.header.stamp == stamp {
            return Some(&self.value);
        }
        self.previous.as_ref().filter(|(header, _)| header.stamp == stamp).map(|(_, value)| value)
    }
}

/// The narrowest cell width that holds `words` words of value. Few widths, so that a growing value moves rarely.
fn width_for(words: usize) -> usize {
    let tier = [2, 4, 8, 16].into_iter().find(|&tier| words <= tier);
    HEADER + tier.unwrap_or(MAX_INLINE_WORDS)
}

impl Cell {
    /// An empty cell with room for `words` words of value.
    pub(crate) fn new(slot: u32, words: usize, status: u32) -> Self {
        let ring = RingCell::new(width_for(words), SLOTS);
        ring.lock().set_status(status);
        Self {
            ring,
            heap: ArcSwapOption::empty(),
            history: OnceLock::new(),
            forward: OnceLock::new(),
            truth: OnceLock::new(),
            branch: AtomicU32::new(NO_EPOCH),
            first: AtomicU64::new(1),
            heap_lags: AtomicBool::new(false),
            slot,
        }
    }

    /// The cell where the parameter is now.
    #[inline]
    pub(crate) fn tip(self: &Arc<Self>) -> &Arc<Self> {
        let mut cell = self;
        while let Some(next) = cell.forward.get() {
            cell = next;
        }
        cell
    }

    pub(crate) fn status(&self) -> u32 {
        self.ring.status()
    }

    pub(crate) fn lock(&self) -> CellWriter<'_> {
        self.ring.lock()
    }

    /// Whether a value of `words` words fits.
    pub(crate) fn fits(&self, words: usize) -> bool {
        HEADER + words <= self.ring.width()
    }

    /// The newest sample. Never blocks; allocates nothing.
    #[inline]
    pub(crate) fn newest(&self, sample: &mut Buffer) -> Newest {
        loop {
            let status = self.ring.status();
            if status & READABLE != READABLE {
                return Newest::Absent(status);
            }
            if let Some(newest) = self.sample(sample) {
                return newest;
            }
        }
    }

    /// The newest sample whatever the status says; `None` if the heap moved on meanwhile (look again).
    #[inline]
    fn sample(&self, sample: &mut Buffer) -> Option<Newest> {
        if self.ring.read(sample).is_none() {
            return Some(Newest::Absent(0));
        }
        let header = Header::get(sample);
        if header.kind != HEAP {
            return Some(Newest::Inline(header));
        }
        let heap = self.heap.load_full()?;
        if heap.header.stamp != header.stamp {
            // The heap is ahead of the ring: fine if nothing was published in between, or a reader that saw the newer
            // one would see an older one next.
            let mut again = [0; 2];
            self.ring.read(&mut again);
            if again != sample[..2] {
                return None;
            }
        }
        Some(Newest::Heap(heap))
    }

    /// The leaf's stamp; [`Stamp::NONE`] without a leaf. Shown or not.
    pub(crate) fn stamp(&self) -> Stamp {
        if self.status() & LEAF == 0 {
            return Stamp::NONE;
        }
        let mut header = [0; HEADER];
        match self.ring.read(&mut header) {
            Some(_) => Header::get(&header).stamp,
            None => Stamp::NONE,
        }
    }

    /// The leaf, shown or not.
    pub(crate) fn leaf(&self, hub: &Hub) -> Option<Leaf> {
        let mut sample: Buffer = [0; _];
        loop {
            if self.status() & LEAF == 0 {
                return None;
            }
            let (header, value) = match self.sample(&mut sample) {
                None => continue,
                Some(Newest::Absent(_)) => return None,
                Some(Newest::Inline(header)) => (header, decode_words(header.kind, header.value(&sample))?),
                Some(Newest::Heap(heap)) => (heap.header, heap.value.clone()),
            };
            return Some(Leaf { stamp: header.stamp, meta: header.meta(&hub.epochs), value });
        }
    }

    /// The leaf, if it is shown.
    pub(crate) fn shown(&self, hub: &Hub) -> Option<Leaf> {
        (self.status() & READABLE == READABLE).then(|| self.leaf(hub)).flatten()
    }

    /// Publishes a sample that fits. The caller holds the writer lock and has checked that the stamp is newer.
    #[inline]
    pub(crate) fn publish(
        &self,
        writer: &mut CellWriter<'_>,
        header: Header,
        payload: Payload<'_>,
        hub: &Hub,
    ) {
        let had_leaf = writer.status() & LEAF != 0;
        let had_heap = had_leaf && self.remember(writer, &header, hub) == Some(HEAP);
        self.place(writer, header, payload, had_heap, hub);
    }

    /// Publishes a sample that fits, of another world: what was here before is no predecessor of it, and readers go from
    /// one to the other with no gap. The caller holds the writer lock.
    pub(crate) fn renew(&self, writer: &mut CellWriter<'_>, header: Header, payload: Payload<'_>, hub: &Hub) {
        self.forget_older();
        let had_heap = self.heap.load().is_some();
        self.place(writer, header, payload, had_heap, hub);
    }

    /// Forgets what came before the sample that is published next.
    pub(crate) fn forget_older(&self) {
        self.first.store(self.ring.published() + 1, Ordering::Release);
        self.branch.store(NO_EPOCH, Ordering::Relaxed);
        if let Some(history) = self.history.get() {
            history.forget();
        }
    }

    /// `had_heap`: the sample published before lies on the heap.
    #[inline]
    fn place(
        &self,
        writer: &mut CellWriter<'_>,
        mut header: Header,
        payload: Payload<'_>,
        had_heap: bool,
        hub: &Hub,
    ) {
        let branch = self.branch.load(Ordering::Relaxed);
        if branch != header.epoch {
            if branch != NO_EPOCH && hub.epochs.older(header.epoch, branch) {
                header.flags |= ABANDONED;
                hub.counters.abandoned_branch();
            } else {
                self.branch.store(header.epoch, Ordering::Relaxed);
            }
        }
        let mut sample: Buffer = [0; _];
        match payload {
            Payload::Inline(kind, words) => {
                (header.kind, header.words) = (kind, words.len() as u8);
                header.put(&mut sample);
                sample[HEADER..HEADER + words.len()].copy_from_slice(words);
                writer.publish(&sample[..HEADER + words.len()]);
                // A value on the heap stays for one write more, as its predecessors in the ring do.
                if had_heap {
                    self.heap_lags.store(true, Ordering::Relaxed);
                } else if self.heap_lags.load(Ordering::Relaxed) {
                    self.heap_lags.store(false, Ordering::Relaxed);
                    self.heap.store(None);
                }
            }
            Payload::Heap(value) => {
                (header.kind, header.words) = (HEAP, 0);
                header.put(&mut sample);
                let before = self.heap.load_full();
                let small = before.filter(|before| before.value.deep_size() <= MAX_PREVIOUS_BYTES);
                let previous = small.map(|before| (before.header, before.value.clone()));
                // The heap first: who reads the new header must find the value.
                self.heap.store(Some(Arc::new(HeapSample { header, value, previous })));
                self.heap_lags.store(false, Ordering::Relaxed);
                writer.publish(&sample[..HEADER]);
            }
        }
        if writer.status() & LEAF == 0 {
            writer.set_status(writer.status() | LEAF);
        }
    }

    /// Moves the newest sample to the history, if it is worth it, before `next` replaces it. Returns its kind.
    #[inline]
    fn remember(&self, writer: &CellWriter<'_>, next: &Header, hub: &Hub) -> Option<u8> {
        let mut previous: Buffer = [0; _];
        writer.read(&mut previous[..HEADER])?;
        let header = Header::get(&previous);
        if header.kind == HEAP {
            return Some(HEAP);
        }
        let width = self.ring.width();
        let history = self.history.get_or_init(|| Box::new(History::new(width)));
        // Spans are cut into one interval less than there are samples.
        let spacing = hub.limits.history_span.as_nanos().max(0).cast_unsigned() / (KEPT as u64 - 1);
        if history.wants(&header, next, spacing) {
            writer.read(&mut previous[..width]);
            history.keep(&previous[..width]);
        }
        Some(header.kind)
    }

    /// Calls `f` with the samples that are left from before `newest`: those spaced by time, then the last few. Some
    /// come twice.
    pub(crate) fn for_each_before(&self, newest: &Header, mut f: impl FnMut(Header, Older<'_>)) {
        if let Some(history) = self.history.get() {
            history.for_each_before(newest, |header, sample| f(header, Older::Words(header.value(sample))));
        }
        let heap = self.heap.load();
        let last = self.ring.published();
        let first = last.saturating_sub(SLOTS as u64 - 1).max(self.first.load(Ordering::Acquire));
        let mut sample: Buffer = [0; _];
        for number in first..=last {
            if !self.ring.read_number(number, &mut sample) {
                continue;
            }
            let header = Header::get(&sample);
            if header.stamp >= newest.stamp {
                continue;
            }
            if header.kind != HEAP {
                f(header, Older::Words(header.value(&sample)));
            } else if let Some(value) = heap.as_ref().and_then(|heap| heap.value_of(header.stamp)) {
                f(header, Older::Heap(value));
            }
        }
    }

    /// Drops the leaf. The caller holds the writer lock.
    pub(crate) fn drop_leaf(&self, writer: &mut CellWriter<'_>) {
        writer.set_status(writer.status() & !LEAF);
        self.heap_lags.store(false, Ordering::Relaxed);
        self.heap.store(None);
        self.forget_older();
    }

    /// Moves the parameter to a new cell with room for `words` words: `fill` publishes there before anyone can see it.
    pub(crate) fn outgrow(
        &self,
        writer: &mut CellWriter<'_>,
        words: usize,
        fill: impl FnOnce(&Cell, &mut CellWriter<'_>),
    ) -> Arc<Cell> {
        let next = Arc::new(Self::new(self.slot, words, writer.status()));
        fill(&next, &mut next.ring.lock());
        let placed = self.forward.set(Arc::clone(&next)).is_ok();
        debug_assert!(placed, "only the entity's mutex moves a parameter");
        writer.set_status(FORWARDED);
        self.heap.store(None);
        next
    }
}

/// A value split into what the cell stores: words, or the value itself.
pub(crate) fn payload<'a>(value: Value, words: &'a mut Words) -> Payload<'a> {
    match coeval_value::words::encode_words(&value, words) {
        Some((kind, count)) => Payload::Inline(kind, &words[..count]),
        None => Payload::Heap(value),
    }
}

const _: () = assert!(MAX_WIDTH < HEAP as usize, "the words of a value are counted in one byte");

impl Payload<'_> {
    /// Words of value in the cell.
    pub(crate) fn words(&self) -> usize {
        match self {
            Payload::Inline(_, words) => words.len(),
            Payload::Heap(_) => 0,
        }
    }
}
