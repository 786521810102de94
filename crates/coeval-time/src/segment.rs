//! Segments: the stretches of session wall time on which the clock's state is one and the same.
use crate::rate::{Line, Rate};
use crate::{Direction, EditId, Epoch, Genesis, SimTime, WallTime};
use std::sync::Arc;

/// A stretch of wall time in which the clock runs on one straight line in one state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Segment {
    /// The first wall instant of the stretch; it lasts until the next segment begins. The first segment of a clock
    /// reaches back without end.
    pub from: WallTime,
    /// What opened it: an edit, or the stop that fired. `None` for the genesis.
    pub cause: Option<EditId>,
    /// The scale set, whether or not it is in effect.
    pub scale: f64,
    /// Sim time per wall time in effect: the scale, or 0 while paused or stopped.
    pub rate: f64,
    /// Whether a pause holds.
    pub paused: bool,
    /// Whether a stop has fired and holds.
    pub stopped: bool,
    /// The sign of the last non-zero rate.
    pub direction: Direction,
    /// The newest jump in effect.
    pub epoch: Epoch,
    /// How many jumps are in effect up to here.
    pub(crate) jumps: u64,
    /// Whether it was opened by a stop that fired.
    pub(crate) fired: bool,
    /// The mapping.
    pub(crate) line: Line,
}

impl Segment {
    /// The segment a genesis starts; `None` if its scale is not finite.
    pub(crate) fn genesis(genesis: &Genesis) -> Option<Self> {
        let rate = positive_zero(genesis.scale);
        Some(Self {
            from: WallTime::MIN,
            cause: None,
            scale: rate,
            rate,
            paused: false,
            stopped: false,
            direction: if rate < 0.0 { Direction::Backward } else { Direction::Forward },
            epoch: Epoch::GENESIS,
            jumps: 0,
            fired: false,
            line: Line { wall: genesis.wall, sim: genesis.sim, rate: Rate::of(rate)? },
        })
    }

    /// The segment a world starts that was restored from a checkpoint: standing at `genesis.sim`, paused, in `epoch`.
    pub(crate) fn restored(genesis: &Genesis, epoch: Epoch) -> Option<Self> {
        let mut segment = Self::genesis(genesis)?;
        (segment.paused, segment.epoch) = (true, epoch);
        segment.settle(genesis.wall, genesis.sim);
        Some(segment)
    }

    /// Sim time at `wall`, by this segment's line: exact, rounded once, saturating at the ends of the range.
    pub fn sim_at(&self, wall: WallTime) -> SimTime {
        self.line.at(wall)
    }

    /// Makes the rate follow from scale, pause and stop, and starts a new line at `wall` if that or `sim` changes the
    /// mapping. Otherwise the old line goes on: a segment that leaves the mapping alone must not round it once more.
    pub(crate) fn settle(&mut self, wall: WallTime, sim: SimTime) {
        let rate = if self.paused || self.stopped { 0.0 } else { self.scale };
        if rate != self.rate || sim != self.line.at(wall) {
            let exact = Rate::of(rate).expect("scales are checked to be finite before they are folded");
            self.line = Line { wall, sim, rate: exact };
            self.rate = rate;
        }
        if rate != 0.0 {
            self.direction = if rate < 0.0 { Direction::Backward } else { Direction::Forward };
        }
    }
}

/// The rate with -0.0 turned to 0.0, so that there is one way to stand still.
pub(crate) fn positive_zero(rate: f64) -> f64 {
    if rate == 0.0 { 0.0 } else { rate }
}

/// A stop that has not fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingStop {
    /// The edit that asked for it.
    pub id: EditId,
    /// Where sim time is to stop.
    pub at: SimTime,
}

/// Where in the fold a segment was opened: wall instant, and the last edit folded at that instant that opened one.
pub(crate) type FoldKey = (WallTime, Option<EditId>);

/// A segment with what the fold needs to go on from it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) key: FoldKey,
    pub(crate) segment: Segment,
    pub(crate) waiting: Arc<[WaitingStop]>,
}

const CHUNK: usize = 128;

/// The nodes of a clock in order, in shared chunks: publishing a new version copies one chunk and the pointers to
/// the others, however long the session has been. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// All but the last are full.
    chunks: Vec<Arc<Vec<Node>>>,
}

impl Timeline {
    pub(crate) fn new(first: Node) -> Self {
        Self { chunks: vec![Arc::new(vec![first])] }
    }

    pub(crate) fn len(&self) -> usize {
        (self.chunks.len() - 1) * CHUNK + self.chunks.last().map_or(0, |chunk| chunk.len())
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Node> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    pub(crate) fn last(&self) -> &Node {
        self.chunks.last().and_then(|chunk| chunk.last()).expect("a timeline holds its genesis")
    }

    pub(crate) fn push(&mut self, node: Node) {
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => Arc::make_mut(chunk).push(node),
            None => self.chunks.push(Arc::new(vec![node])),
        }
    }

    /// Drops the nodes from `index` on; the first one always stays.
    pub(crate) fn truncate(&mut self, index: usize) {
        let keep = index.max(1);
        if keep >= self.len() {
            return;
        }
        self.chunks.truncate(keep.div_ceil(CHUNK));
        if let Some(chunk) = self.chunks.last_mut() {
            Arc::make_mut(chunk).truncate(keep - (keep - 1) / CHUNK * CHUNK);
        }
    }

    /// The number of leading nodes for which `holds`; it must hold for a prefix.
    pub(crate) fn partition_point(&self, holds: impl Fn(&Node) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(&holds) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The index of the node in effect at `wall`: the last one that begins at or before it.
    pub(crate) fn index_at(&self, wall: WallTime) -> usize {
        self.partition_point(|node| node.segment.from <= wall).saturating_sub(1)
    }

    /// The node in effect at `wall`.
    pub(crate) fn at(&self, wall: WallTime) -> &Node {
        self.get(self.index_at(wall)).unwrap_or_else(|| self.last())
    }

    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = &Node> {
        (index..self.len()).filter_map(|index| self.get(index))
    }
}
