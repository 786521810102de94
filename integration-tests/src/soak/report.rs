//! What a run comes to: numbers for programs, a table for people.
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The outcome of a run. It passed if there are no violations.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// What it was drawn from.
    pub seed: u64,
    /// Processes at once.
    pub peers: usize,
    /// How long faults went on, seconds.
    pub seconds: f64,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Datagrams by what became of them.
    pub datagrams: BTreeMap<String, u64>,
    /// Processes that were started.
    pub processes: usize,
    /// Joins that failed under faults, and were tried again.
    pub joins_failed: u64,
    /// What those that could said about why they did not join.
    pub joins_refused: BTreeMap<String, u64>,
    /// Writes that were made.
    pub writes: u64,
    /// Writes that another peer acknowledged.
    pub writes_acknowledged: u64,
    /// Times a journal failed for want of room.
    pub journals_failed: u64,
    /// Times an author's own journal acknowledged its writes.
    pub journal_flushes: u64,
    /// Writes that had to survive, and were looked for.
    pub writes_judged: u64,
    /// Events and commands sent.
    pub events: u64,
    /// Events acknowledged as delivered.
    pub events_acknowledged: u64,
    /// Deliveries that had to be in a log, and were looked for.
    pub deliveries_judged: u64,
    /// Commands that were answered.
    pub commands_answered: u64,
    /// Writes and events that had to survive and did not.
    pub lost: u64,
    /// Entities that came back after their deletion.
    pub resurrected: u64,
    /// Events that arrived twice, or after a later one.
    pub duplicated: u64,
    /// Stamps that were given out twice or did not rise.
    pub stamps_reused: u64,
    /// Seconds from the end of the faults until all were equal; none if they never were.
    pub converged_in: Option<f64>,
    /// The most resident memory of those who lived on, MiB.
    pub rss_mib: u64,
    /// Everything that must not be, in words.
    pub violations: Vec<String>,
}

impl Summary {
    /// Whether nothing was wrong.
    pub fn passed(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |counts: &BTreeMap<String, u64>| {
            counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "seed                   {}", self.seed)?;
        writeln!(
            f,
            "processes              {} at once, {} in all, for {:.0} s",
            self.peers, self.processes, self.seconds
        )?;
        writeln!(f, "faults                 {}", counts(&self.faults))?;
        writeln!(f, "datagrams              {}", counts(&self.datagrams))?;
        writeln!(f, "joins failed           {}", self.joins_failed)?;
        for (why, count) in &self.joins_refused {
            writeln!(f, "                       {count} x {why}")?;
        }
        writeln!(
            f,
            "writes                 {}, acknowledged {}, had to survive {}",
            self.writes, self.writes_acknowledged, self.writes_judged
        )?;
        writeln!(
            f,
            "journals               flushed {} times, without room {} times",
            self.journal_flushes, self.journals_failed
        )?;
        writeln!(
            f,
            "events                 {}, acknowledged {}, deliveries looked for {}, commands answered {}",
            self.events, self.events_acknowledged, self.deliveries_judged, self.commands_answered
        )?;
        writeln!(f, "lost                   {}", self.lost)?;
        writeln!(f, "resurrected            {}", self.resurrected)?;
        writeln!(f, "duplicated             {}", self.duplicated)?;
        writeln!(f, "stamps reused          {}", self.stamps_reused)?;
        match self.converged_in {
            Some(seconds) => writeln!(f, "equal after            {seconds:.1} s")?,
            None => writeln!(f, "equal after            never")?,
        }
        writeln!(f, "most memory            {} MiB", self.rss_mib)?;
        for violation in &self.violations {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        f.write_str(if self.passed() { "passed" } else { "FAILED" })
    }
}
