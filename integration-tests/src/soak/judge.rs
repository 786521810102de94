//! Compares the histories with the final state. The rules are those of the [module above](super).
mod events;
mod writes;

use super::record::{JOURNAL, Life, Line, Record};
use super::report::Summary;
use super::worker::Final;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Violations of one kind are told up to this many; all are counted.
const TOLD: u64 = 10;

/// What is known of one process.
#[derive(Clone, Debug, Default)]
pub struct LifeLog {
    /// Where it sat.
    pub seat: usize,
    /// How many sat there before, and it.
    pub generation: u32,
    /// When it was started, nanoseconds of this machine's clock since the Unix epoch.
    pub spawned: u64,
    /// By whose invite it joined.
    pub via: Option<Life>,
    /// Whether it kept a journal that the next process on its seat went on with.
    pub journal: bool,
    /// Where its history is.
    pub history: PathBuf,
    /// Its history.
    pub lines: Vec<Line>,
    /// Whether it lived on to the end.
    pub survives: bool,
}

impl LifeLog {
    /// Who it was and since when it was open, if it got that far.
    fn opened(&self) -> Option<(Life, u64)> {
        self.lines.iter().find_map(|(at, record)| match record {
            Record::Opened { life } => Some((*life, *at)),
            _ => None,
        })
    }

    /// When it was last seen alive: the last line of its history.
    fn last_seen(&self) -> u64 {
        self.lines.last().map_or(0, |(at, _)| *at)
    }

    fn label(&self) -> String {
        format!("{}.{}", self.seat, self.generation)
    }
}

/// All that is known of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// All processes, in the order they were started.
    pub lives: Vec<LifeLog>,
    /// The final states of those who lived on.
    pub finals: Vec<Final>,
}

/// Adds what the evidence shows to the summary.
pub fn judge(evidence: &Evidence, summary: &mut Summary) {
    let mut openings: BTreeMap<Life, String> = BTreeMap::new();
    for log in &evidence.lives {
        for (_, record) in &log.lines {
            match record {
                Record::Violation { what } => {
                    summary.resurrected += u64::from(what.starts_with("resurrected"));
                    summary.violations.push(format!("{} saw: {what}", log.label()));
                }
                Record::JournalFailed { .. } => summary.journals_failed += 1,
                Record::Acked { by, .. } if by.contains(&JOURNAL) => summary.journal_flushes += 1,
                _ => {}
            }
        }
        if let Some((life, _)) = log.opened()
            && let Some(other) = openings.insert(life, log.label())
        {
            summary.violations.push(format!("{} and {other} are one incarnation", log.label()));
        }
    }
    if evidence.finals.windows(2).any(|pair| pair[0] != pair[1]) {
        summary.violations.push("digests are equal, and the final states are not".into());
    }
    writes::judge(evidence, summary);
    events::judge(evidence, summary);
}

/// Tells of a violation of a kind of which there were `count` so far.
fn tell(summary: &mut Summary, count: u64, what: impl FnOnce() -> String) {
    if count <= TOLD {
        summary.violations.push(what());
    }
}

#[cfg(test)]
mod tests;
