//! Writes: who held them, whether they had to survive, and whether they did.
use super::{Evidence, LifeLog, tell};
use crate::soak::PAIR;
use crate::soak::record::{JOURNAL, Life, Op, Outcome, Record};
use crate::soak::report::Summary;
use crate::soak::worker::Final;
use coeval::Stamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A write, as its author wrote it down.
struct Attempt<'a> {
    op: &'a Op,
    author: String,
    /// Its stamp, where that is known.
    stamp: Option<Stamp>,
    /// The last stamp of its author that is known before it: its own is above.
    floor: Stamp,
    /// Whether another peer acknowledged it.
    acknowledged: bool,
    /// Whether it must be in the final state.
    survives: bool,
}

impl Attempt<'_> {
    /// Whether a stamp is enough to supersede it, or is its own.
    fn is_reached_by(&self, stamp: Stamp) -> bool {
        self.stamp.map_or(stamp > self.floor, |own| stamp >= own)
    }

    /// Whether it may have a stamp at or above another write's.
    fn may_reach(&self, other: &Attempt<'_>) -> bool {
        self.stamp.is_none_or(|own| other.is_reached_by(own))
    }
}

type Key = (String, String);

/// What was written to where, and how that ended.
struct Case<'a> {
    end: Final,
    /// Entities by name.
    names: HashMap<String, String>,
    attempts: Vec<Attempt<'a>>,
    removals: HashMap<Key, Vec<usize>>,
    deletions: HashSet<&'a str>,
}

pub(super) fn judge(evidence: &Evidence, summary: &mut Summary) {
    let Some(end) = evidence.finals.first().cloned() else { return };
    let attempts = gather(evidence, summary);
    let names =
        end.entities.iter().filter_map(|(id, leaves)| Some((leaves.get("name")?.0.clone(), id.clone())));
    let names = names.collect();
    let mut case = Case { end, names, attempts, removals: HashMap::new(), deletions: HashSet::new() };
    case.index();
    for attempt in case.attempts.iter().filter(|attempt| attempt.survives) {
        summary.writes_judged += 1;
        match case.what_is_wrong(attempt) {
            Some(what) if matches!(attempt.op, Op::Delete { .. }) => {
                summary.resurrected += 1;
                tell(summary, summary.resurrected, || what);
            }
            Some(what) => {
                summary.lost += 1;
                tell(summary, summary.lost, || what);
            }
            None => {}
        }
    }
    summary.writes_acknowledged += case.attempts.iter().filter(|attempt| attempt.acknowledged).count() as u64;
    case.look_for_phantoms(summary);
}

/// All writes, and whether they had to survive.
fn gather<'a>(evidence: &'a Evidence, summary: &mut Summary) -> Vec<Attempt<'a>> {
    let mut stamps = BTreeSet::new();
    let mut attempts = Vec::new();
    for log in &evidence.lives {
        let Some((life, _)) = log.opened() else { continue };
        let held = Holders::new(evidence, log, life);
        let mut floor = Stamp::NONE;
        let mut pending: Option<(u64, &[Op])> = None;
        for (at, record) in &log.lines {
            match record {
                Record::Try { round, ops } => pending = Some((*round, ops)),
                Record::Did { round, outcomes } => {
                    let Some((_, ops)) = pending.take().filter(|(tried, _)| tried == round) else { continue };
                    let (survives, acknowledged) = held.of(*round, *at);
                    for (op, outcome) in ops.iter().zip(outcomes) {
                        let Outcome::Done(stamp) = *outcome else { continue };
                        let author = log.label();
                        attempts.push(Attempt { op, author, stamp, floor, acknowledged, survives });
                        summary.writes += 1;
                        let Some(stamp) = stamp else { continue };
                        if stamp <= floor || stamp.writer.0 != life || !stamps.insert(stamp) {
                            summary.stamps_reused += 1;
                            tell(summary, summary.stamps_reused, || {
                                format!("{} gave out {stamp:?} after {floor:?}", log.label())
                            });
                        }
                        floor = floor.max(stamp);
                    }
                }
                _ => {}
            }
        }
        // Killed in the middle: each of these may have happened.
        for op in pending.iter().flat_map(|(_, ops)| *ops) {
            let author = log.label();
            attempts.push(Attempt { op, author, stamp: None, floor, acknowledged: false, survives: false });
        }
    }
    attempts
}

/// Who held the writes of one life.
struct Holders<'a> {
    evidence: &'a Evidence,
    log: &'a LifeLog,
    author: Life,
    /// When each peer was last seen alive.
    last_seen: BTreeMap<Life, u64>,
    /// Of each acknowledging peer, the rounds it acknowledged and when, both rising.
    acks: BTreeMap<Life, Vec<(u64, u64)>>,
}

impl<'a> Holders<'a> {
    fn new(evidence: &'a Evidence, log: &'a LifeLog, author: Life) -> Self {
        let mut acks: BTreeMap<Life, Vec<(u64, u64)>> = BTreeMap::new();
        for (at, record) in &log.lines {
            if let Record::Acked { round, by } = record {
                by.iter().for_each(|life| acks.entry(*life).or_default().push((*round, *at)));
            }
        }
        let seen = evidence.lives.iter().filter_map(|log| Some((log.opened()?.0, log.last_seen())));
        Self { evidence, log, author, last_seen: seen.collect(), acks }
    }

    /// Whether a round that was written by `at` must survive, and whether another peer acknowledged it.
    fn of(&self, round: u64, at: u64) -> (bool, bool) {
        let mut since = BTreeMap::from([(self.author, at)]);
        for (life, acks) in &self.acks {
            let first = acks.partition_point(|(acked, _)| *acked < round);
            if let Some((_, at)) = acks.get(first) {
                since.entry(*life).or_insert(*at);
            }
        }
        let acknowledged = since.len() > 1;
        let mut survives = false;
        // In the order they were started, so that who invited comes before who was invited.
        for log in &self.evidence.lives {
            let Some((life, opened)) = log.opened() else { continue };
            // After a kill, whoever sits on the inviter's seat next answers in its place, by the same key.
            let inviter = log.via.filter(|via| self.last_seen.get(via).is_some_and(|seen| *seen > opened));
            let inviter = inviter.and_then(|via| since.get(&via));
            let heir = log.journal && self.log.journal && log.seat == self.log.seat;
            let journal = since.get(&JOURNAL).filter(|_| heir);
            if inviter.into_iter().chain(journal).any(|held| *held < log.spawned) {
                since.entry(life).or_insert(opened);
            }
            survives |= log.survives && since.contains_key(&life);
        }
        (survives, acknowledged)
    }
}

impl Case<'_> {
    fn index(&mut self) {
        for (index, attempt) in self.attempts.iter().enumerate() {
            match attempt.op {
                Op::Remove { entity, path } => {
                    self.removals.entry((entity.clone(), path.clone())).or_default().push(index);
                }
                Op::Delete { entity } => {
                    self.deletions.insert(entity);
                }
                _ => {}
            }
        }
    }

    fn leaves(&self, entity: &str) -> Option<&BTreeMap<String, (String, Stamp)>> {
        let id = self.names.get(entity).map_or(entity, String::as_str);
        self.end.entities.get(id)
    }

    fn leaf(&self, entity: &str, path: &str) -> Option<&(String, Stamp)> {
        self.leaves(entity)?.get(path)
    }

    /// What is wrong with the final state, if this write must be in it.
    fn what_is_wrong(&self, attempt: &Attempt<'_>) -> Option<String> {
        let fine = match attempt.op {
            Op::Count { entity, path, value } => {
                let shown = self.leaf(entity, path).and_then(|(text, _)| text.parse::<i64>().ok());
                shown.is_some_and(|shown| shown >= *value)
            }
            Op::Set { entity, path, value } => self.has(attempt, entity, path, value),
            Op::Remove { entity, path } => {
                self.leaf(entity, path).is_none_or(|(_, stamp)| attempt.is_reached_by(*stamp))
            }
            Op::Pair { value } => PAIR.iter().all(|(entity, path)| self.has(attempt, entity, path, value)),
            Op::Create { entity, with } => {
                with.iter().all(|(path, value)| self.has(attempt, entity, path, value))
            }
            Op::Delete { entity } => self.leaves(entity).is_none(),
            Op::Clock => attempt.stamp.is_some_and(|stamp| self.end.edits.contains(&stamp)),
        };
        (!fine).then(|| {
            let shown = match attempt.op {
                Op::Count { entity, path, .. }
                | Op::Set { entity, path, .. }
                | Op::Remove { entity, path } => {
                    format!("{:?}", self.leaf(entity, path))
                }
                Op::Create { entity, .. } | Op::Delete { entity } => format!("{:?}", self.leaves(entity)),
                Op::Pair { .. } => {
                    let cells: Vec<_> = PAIR.iter().map(|(entity, path)| self.leaf(entity, path)).collect();
                    format!("{cells:?}")
                }
                Op::Clock => "no such edit".into(),
            };
            let Attempt { op, author, stamp, floor, .. } = attempt;
            format!(
                "{op:?} of {author}, stamp {stamp:?} above {floor:?}, had to survive; in the end: {shown}"
            )
        })
    }

    /// Whether a parameter shows this write or what may have come after it.
    fn has(&self, attempt: &Attempt<'_>, entity: &str, path: &str, value: &str) -> bool {
        if self.deletions.contains(entity) && self.leaves(entity).is_none() {
            return true;
        }
        match self.leaf(entity, path) {
            Some((shown, stamp)) if attempt.stamp == Some(*stamp) => shown == value,
            Some((shown, stamp)) => shown == value || attempt.is_reached_by(*stamp),
            None => {
                let removals = self.removals.get(&(entity.to_owned(), path.to_owned()));
                removals.into_iter().flatten().any(|index| self.attempts[*index].may_reach(attempt))
            }
        }
    }

    /// Everything shown was written by somebody.
    fn look_for_phantoms(&self, summary: &mut Summary) {
        let mut written: HashSet<(&str, &str, String)> = HashSet::new();
        for attempt in &self.attempts {
            match attempt.op {
                Op::Count { entity, path, value } => {
                    written.insert((entity, path, value.to_string()));
                }
                Op::Set { entity, path, value } => {
                    written.insert((entity, path, value.clone()));
                }
                Op::Pair { value } => PAIR.iter().for_each(|(entity, path)| {
                    written.insert((entity, path, value.clone()));
                }),
                Op::Create { entity, with } => with.iter().for_each(|(path, value)| {
                    written.insert((entity, path, value.clone()));
                }),
                Op::Remove { .. } | Op::Delete { .. } | Op::Clock => {}
            }
        }
        let names: HashMap<&str, &str> =
            self.names.iter().map(|(name, id)| (id.as_str(), name.as_str())).collect();
        for (id, leaves) in &self.end.entities {
            let name = names.get(id.as_str()).copied();
            for (path, (value, stamp)) in leaves.iter().filter(|(path, _)| *path != "name") {
                let known = [Some(id.as_str()), name].into_iter().flatten();
                if !known.into_iter().any(|entity| written.contains(&(entity, path, value.clone()))) {
                    summary
                        .violations
                        .push(format!("{id}/{path} shows {value:?} of {stamp:?}: nobody wrote that"));
                }
            }
        }
    }
}
