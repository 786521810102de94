//! Events: each that was acknowledged is in the logs of those it was for, once and in order.
use super::{Evidence, tell};
use crate::soak::record::{Life, Record};
use crate::soak::report::Summary;
use std::collections::{BTreeMap, BTreeSet};

/// What arrived at one peer, by sender.
struct Received {
    label: String,
    survives: bool,
    /// Since when it was subscribed.
    since: u64,
    numbers: BTreeMap<Life, BTreeSet<u64>>,
}

/// An event on its way.
struct Pending {
    number: u64,
    at: u64,
    to: Vec<Life>,
}

pub(super) fn judge(evidence: &Evidence, summary: &mut Summary) {
    let received = receive(evidence, summary);
    for log in &evidence.lives {
        let Some((sender, _)) = log.opened() else { continue };
        let mut pending: Vec<Pending> = Vec::new();
        let mut commands = BTreeMap::new();
        for (at, record) in &log.lines {
            match record {
                Record::Sending { number, to, command, present } => {
                    summary.events += 1;
                    let receivers = to.map_or_else(|| present.clone(), |one| vec![one]);
                    pending.push(Pending { number: *number, at: *at, to: receivers });
                    commands.extend(to.filter(|_| *command).map(|to| (*number, to)));
                }
                Record::Unsent { number, .. } => pending.retain(|event| event.number != *number),
                Record::Lost { life } => {
                    pending.iter_mut().for_each(|event| event.to.retain(|to| to != life))
                }
                Record::Delivered { upto } => {
                    let (done, rest) = pending.into_iter().partition(|event| event.number <= *upto);
                    pending = rest;
                    let done: Vec<Pending> = done;
                    summary.events_acknowledged += done.len() as u64;
                    done.iter().for_each(|event| look_for(event, sender, &log.label(), &received, summary));
                }
                Record::Answered { number } => {
                    summary.commands_answered += 1;
                    let by = commands.get(number).and_then(|life| received.get(life));
                    let has = |by: &Received| by.numbers.get(&sender).is_some_and(|had| had.contains(number));
                    if !by.is_some_and(has) {
                        summary.lost += 1;
                        tell(summary, summary.lost, || {
                            format!(
                                "command {number} of {} was answered by one that never had it",
                                log.label()
                            )
                        });
                    }
                }
                _ => {}
            }
        }
    }
}

/// What each peer received; tells of what came twice or late.
fn receive(evidence: &Evidence, summary: &mut Summary) -> BTreeMap<Life, Received> {
    let sent = sent(evidence);
    let mut received = BTreeMap::new();
    for log in &evidence.lives {
        let Some((life, since)) = log.opened() else { continue };
        let mut numbers: BTreeMap<Life, BTreeSet<u64>> = BTreeMap::new();
        for (_, record) in &log.lines {
            let Record::Got { from, number } = record else { continue };
            if !sent.contains(&(*from, *number)) {
                summary.violations.push(format!("{} got event {number} of {from:x}: not sent", log.label()));
            }
            let had = numbers.entry(*from).or_default();
            let last = had.last().copied();
            if last.is_some_and(|last| last >= *number) {
                summary.duplicated += 1;
                tell(summary, summary.duplicated, || {
                    format!("{} got event {number} of {from:x} after {last:?}", log.label())
                });
            }
            had.insert(*number);
        }
        received.insert(life, Received { label: log.label(), survives: log.survives, since, numbers });
    }
    received
}

fn sent(evidence: &Evidence) -> BTreeSet<(Life, u64)> {
    let mut sent = BTreeSet::new();
    for log in &evidence.lives {
        let Some((life, _)) = log.opened() else { continue };
        let numbers = log.lines.iter().filter_map(|(_, record)| match record {
            Record::Sending { number, .. } => Some((life, *number)),
            _ => None,
        });
        sent.extend(numbers);
    }
    sent
}

/// Looks for an event that was acknowledged as delivered in the logs of those it was for.
fn look_for(
    event: &Pending,
    sender: Life,
    label: &str,
    received: &BTreeMap<Life, Received>,
    summary: &mut Summary,
) {
    for log in event.to.iter().filter_map(|to| received.get(to)) {
        let had = log.numbers.get(&sender);
        // One that was killed may have had it on its way to the log, unless the log goes on.
        let goes_on = had.and_then(BTreeSet::last).is_some_and(|last| *last > event.number);
        if log.since >= event.at || !(log.survives || goes_on) {
            continue;
        }
        summary.deliveries_judged += 1;
        if !had.is_some_and(|had| had.contains(&event.number)) {
            summary.lost += 1;
            tell(summary, summary.lost, || {
                format!("event {} of {label} was acknowledged, and {} never had it", event.number, log.label)
            });
        }
    }
}
