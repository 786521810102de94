//! Counters of what was done to a mesh, each under its own name, to know that a run tried what it meant to try.

/// A kind of thing that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultKind {
    /// A packet of a lane took longer than the least way of any link.
    Delayed,
    /// A packet took longer than the one before it, at random.
    Jittered,
    /// A packet of a lane was lost and sent again.
    Lost,
    /// A datagram was lost.
    DatagramLost,
    /// A message of a lane was lost for good, as no honest transport does.
    MessageLost,
    /// A datagram was delivered twice.
    Duplicated,
    /// A datagram overtook an earlier one of its link.
    Reordered,
    /// A packet waited until those before it had left: the way is narrow.
    Throttled,
    /// A packet was held up by a cut.
    Partitioned,
    /// A message was held up because its receiver does not read.
    Blocked,
    /// A partition, or a single way, was cut in one direction.
    CutOneWay,
    /// A partition, or a link, was cut in both directions.
    CutTwoWay,
    /// A link that comes and goes went.
    Flapped,
    /// A link went down.
    LinkDown,
    /// A dial was not answered.
    DialFailed,
    /// A program ended without a word.
    Crashed,
    /// A program opened again after it had ended.
    Restarted,
    /// A process was stopped for a while.
    Paused,
    /// A program stopped reading its links.
    Stalled,
    /// A program said that it leaves, and left.
    Left,
    /// A program opened while others wrote.
    JoinedLate,
    /// A program opened with a wrong OS clock.
    ClockOffset,
    /// A program opened on a machine that counts too fast or too slow.
    ClockDrift,
    /// An OS clock was set while its program ran.
    ClockStepped,
    /// An OS clock stood still while its program ran.
    ClockFroze,
    /// A program opened that only reads.
    Observed,
    /// A link was taken away because the layout changed.
    TornDown,
    /// The layout changed: others relay.
    Relaid,
    /// A program ended whose journal had found no room.
    DiskFull,
    /// A machine fell, and with it what its journal had not synced.
    JournalTorn,
}

impl FaultKind {
    /// All of them with their names, in order.
    pub const ALL: [(Self, &'static str); 30] = [
        (Self::Delayed, "delayed"),
        (Self::Jittered, "jittered"),
        (Self::Lost, "lost"),
        (Self::DatagramLost, "datagrams_lost"),
        (Self::MessageLost, "messages_lost"),
        (Self::Duplicated, "duplicated"),
        (Self::Reordered, "reordered"),
        (Self::Throttled, "throttled"),
        (Self::Partitioned, "partitioned"),
        (Self::Blocked, "blocked"),
        (Self::CutOneWay, "one_way_cuts"),
        (Self::CutTwoWay, "two_way_cuts"),
        (Self::Flapped, "flaps"),
        (Self::LinkDown, "links_down"),
        (Self::DialFailed, "dials_failed"),
        (Self::Crashed, "crashes"),
        (Self::Restarted, "restarts"),
        (Self::Paused, "pauses"),
        (Self::Stalled, "stalled_readers"),
        (Self::Left, "leaves"),
        (Self::JoinedLate, "late_joins"),
        (Self::ClockOffset, "clock_offsets"),
        (Self::ClockDrift, "clock_drifts"),
        (Self::ClockStepped, "clock_steps"),
        (Self::ClockFroze, "clock_freezes"),
        (Self::Observed, "observers"),
        (Self::TornDown, "links_torn_down"),
        (Self::Relaid, "relays_moved"),
        (Self::DiskFull, "disks_full"),
        (Self::JournalTorn, "journals_torn"),
    ];
}

/// How often each kind happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u64; FaultKind::ALL.len()]);

impl Faults {
    /// Counts one.
    pub fn count(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }

    /// How often `kind` happened.
    pub fn of(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// All counters by name.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FaultKind::ALL.into_iter().map(|(kind, name)| (name, self.of(kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted_under_its_own_name() {
        let mut faults = Faults::default();
        for (n, (kind, _)) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, n);
            (0..=n).for_each(|_| faults.count(kind));
        }
        let names: std::collections::BTreeSet<_> = faults.by_name().map(|(name, _)| name).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
        assert!(faults.by_name().enumerate().all(|(n, (_, count))| count == n as u64 + 1));
    }
}
