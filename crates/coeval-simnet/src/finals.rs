//! What must hold when a mesh has come to rest.
mod explain;
mod lattice;

use crate::check::{Check, Violation};
use crate::ledger::{Ledger, difference, digest_of, shown};
use crate::mesh::{Mesh, unacknowledged};
use crate::net::Site;
use crate::program::{GENESIS, Program, SESSION, SentEvent};
use crate::timepiece::START;
use coeval_merge::{Entry, EntryBody, Replica, digest::of_entry};
use coeval_sync::EventNotice;
use coeval_time::{Clock, Incarnation, Stamp, WallDuration, WallTime};
use coeval_value::{NodeId, SIM_ENTITY};
use std::collections::{BTreeMap, BTreeSet};

/// Wall instants at which clocks are compared.
const INSTANTS: u64 = 200;

/// Checks all that must hold at rest, by sound code whatever fault is in.
pub fn check(mesh: &Mesh) -> Vec<Violation> {
    coeval_faults::without(|| judge(mesh))
}

fn judge(mesh: &Mesh) -> Vec<Violation> {
    let sites = mesh.live();
    let programs: Vec<&Program> = sites.iter().filter_map(|site| mesh.program(*site)).collect();
    let mut found: Vec<Violation> = programs.iter().flat_map(|program| program.violations.clone()).collect();
    found.extend(mesh.violations.iter().cloned());
    let Some(first) = programs.first() else { return found };
    let surviving = surviving(mesh, &programs, first);
    replicas(mesh, &programs, &surviving, &mut found);
    found.extend(lattice::check(&mesh.flown, mesh.operations));
    entries(mesh, &programs, &mut found);
    events(mesh, &programs, &mut found);
    programs.iter().for_each(|program| flushed(program, &programs, &mut found));
    found
}

/// Everything is acknowledged, and nothing was refused but what overtook its entity's creation in too great a number.
fn flushed(program: &Program, programs: &[&Program], found: &mut Vec<Violation>) {
    let node = Some(program.node());
    let refused: u64 = program.sync.peers().iter().map(|row| row.stats.refused + row.stats.undefined).sum();
    // A link to a node that fell stays up until the idle time-out.
    let living: BTreeSet<NodeId> = programs.iter().map(|other| other.node()).collect();
    for of in unacknowledged(program, &living) {
        let detail = format!("{} has not acknowledged everything", of.short());
        found.push(Violation { check: Check::FlushReturns, node, detail });
    }
    if refused > program.store.counters().orphans_refused {
        let detail = format!("{refused} fragments were refused or undefined");
        found.push(Violation { check: Check::NothingIsRefused, node, detail });
    }
}

/// The batches that count: of living authors, acknowledged by the living, or seen to be there.
fn surviving(mesh: &Mesh, programs: &[&Program], first: &Program) -> Ledger {
    let living: BTreeSet<NodeId> = programs.iter().map(|program| program.node()).collect();
    let authors: BTreeSet<Incarnation> = living.iter().map(|node| node.incarnation).collect();
    let fallen = mesh.fallen.iter().flat_map(|fallen| &fallen.acked);
    let acked: BTreeSet<Stamp> =
        fallen.filter(|(_, by)| !by.is_disjoint(&living)).map(|(stamp, _)| *stamp).collect();
    // A journal brings back what it had, wherever its program is now.
    let back = |site: Site| mesh.program(site).is_some();
    let kept: BTreeSet<Stamp> =
        mesh.fallen.iter().filter(|one| back(one.site)).flat_map(|one| one.durable.clone()).collect();
    let entities = mesh.ledger.created().into_iter().chain([SIM_ENTITY]);
    let slots = entities.flat_map(|entity| first.store.summary(entity));
    let there: BTreeSet<Stamp> = slots.flat_map(|slot| [slot.first, slot.floor, slot.kind]).collect();
    mesh.ledger.only(|stamp| {
        authors.contains(&stamp.writer)
            || acked.contains(&stamp)
            || kept.contains(&stamp)
            || there.contains(&stamp)
    })
}

fn replicas(mesh: &Mesh, programs: &[&Program], surviving: &Ledger, found: &mut Vec<Violation>) {
    let want = surviving.replay();
    let plain = surviving.plain();
    for program in programs {
        let (node, snapshot) = (Some(program.node()), program.store.snapshot());
        let mut wrong = |check, detail| found.push(Violation { check, node, detail });
        let got: BTreeMap<_, _> = snapshot.entities().map(|(id, view)| (id, shown(view))).collect();
        let ids: BTreeSet<_> = want.keys().chain(got.keys()).collect();
        let differ: Vec<_> = ids.into_iter().filter(|id| want.get(id) != got.get(id)).collect();
        for id in differ.iter().take(2) {
            let detail = format!("{id} shows\n  {:?}\nthe replay shows\n  {:?}", got.get(id), want.get(id));
            let check = explain::difference(got.get(id), want.get(id), surviving.deletes(**id));
            wrong(check, detail);
        }
        let entries =
            snapshot.entries().iter().fold(digest_of(&plain), |sum, entry| sum.plus(of_entry(entry)));
        let mut equal = differ.is_empty();
        for (what, digest) in [("kept", program.store.digest()), ("summed up", snapshot.digest())] {
            if digest != entries {
                equal = false;
                let ids = want.keys().copied().chain(surviving.created()).collect();
                let differs = difference(&*program.store, &plain, &ids);
                let detail = format!("the digest {what} is not that of a plain replica: {differs:?}");
                wrong(Check::DigestsAreRight, detail);
            }
        }
        if !equal {
            blame(mesh, programs, program, surviving, found);
        }
    }
}

/// Which further promises are broken where a replica does not show what it should.
fn blame(mesh: &Mesh, programs: &[&Program], program: &Program, due: &Ledger, found: &mut Vec<Violation>) {
    let node = program.node();
    let holds = |stamp: &Stamp| {
        let entities = due.created().into_iter().chain([SIM_ENTITY]);
        let mut slots = entities.flat_map(|entity| program.store.summary(entity));
        slots.any(|slot| [slot.first, slot.floor, slot.kind].contains(stamp))
    };
    let authors: BTreeSet<Incarnation> = programs.iter().map(|other| other.node().incarnation).collect();
    let plain = due.plain();
    let shows: BTreeSet<Stamp> = due
        .created()
        .into_iter()
        .chain([SIM_ENTITY])
        .flat_map(|entity| plain.summary(entity))
        .flat_map(|slot| [slot.first, slot.floor, slot.kind])
        .collect();
    let lost: Vec<Stamp> =
        due.0.keys().copied().filter(|stamp| shows.contains(stamp) && !holds(stamp)).collect();
    let given_up = programs.iter().any(|other| other.gave_up.contains(&node));
    let parked = lost.iter().any(|stamp| mesh.parked.contains(stamp));
    for (check, broken) in [
        (Check::AcknowledgedSurvives, lost.iter().any(|stamp| !authors.contains(&stamp.writer))),
        (Check::ParkedComesDue, parked),
        (Check::JoinersEndEqual, program.late),
        (Check::AbsentEndEqual, given_up),
    ] {
        if broken {
            let detail = format!("{} batches that should be there are not: {:?}", lost.len(), lost.first());
            found.push(Violation { check, node: Some(node), detail });
        }
    }
}

/// Entries are the same everywhere, those of the living all there; the clocks show what they fold to.
fn entries(mesh: &Mesh, programs: &[&Program], found: &mut Vec<Violation>) {
    let Some(first) = programs.first() else { return };
    let entries = first.store.entries();
    let stamps: BTreeSet<Stamp> = entries.iter().map(|entry| entry.id.stamp).collect();
    let living: BTreeSet<NodeId> = programs.iter().map(|program| program.node()).collect();
    let acked = |stamp: &Stamp| {
        let mut by = mesh.fallen.iter().filter_map(|fallen| fallen.acked.get(stamp));
        by.any(|by| !by.is_disjoint(&living))
    };
    for stamp in mesh.entries.keys().filter(|stamp| !stamps.contains(stamp)) {
        if living.iter().any(|node| node.incarnation == stamp.writer) || acked(stamp) {
            let detail = format!("the entry of {stamp:?} is lost");
            found.push(Violation { check: Check::AcknowledgedSurvives, node: None, detail });
        }
    }
    let clock = Clock::new(SESSION, GENESIS).expect("a finite scale");
    let now = START.saturating_add(WallDuration::from_nanos(mesh.net.now().as_nanos().cast_signed()));
    for edit in entries.iter().rev().filter_map(edit_of) {
        if let Err(error) = clock.insert(&edit, now) {
            let detail = format!("{edit:?} was let in: {error}");
            found.push(Violation { check: Check::ClocksAgree, node: None, detail });
        }
    }
    // The same edits, the newest last, then the other way round, fold to the same.
    let other = Clock::new(SESSION, GENESIS).expect("a finite scale");
    let folded = entries.iter().filter_map(edit_of).all(|edit| other.insert(&edit, now).is_ok());
    let span = now.since(START).as_nanos().unsigned_abs() + 30_000_000_000;
    for instant in 0..INSTANTS {
        let wall = WallTime::from_nanos(START.as_nanos() + span / INSTANTS * instant + instant);
        if !folded || clock.sim_at(wall) != other.sim_at(wall) {
            let detail = format!("at {wall} the edits fold to another sim time in another order");
            found.push(Violation { check: Check::ClocksAgree, node: None, detail });
            break;
        }
    }
    for program in programs {
        for instant in 0..INSTANTS {
            let wall = WallTime::from_nanos(START.as_nanos() + span / INSTANTS * instant + instant);
            let (got, want) = (program.store.clock().sim_at(wall), clock.sim_at(wall));
            if got != want {
                let detail = format!("at {wall} sim time is {got}, the edits fold to {want}");
                found.push(Violation { check: Check::ClocksAgree, node: Some(program.node()), detail });
                break;
            }
        }
    }
}

fn edit_of(entry: &Entry) -> Option<coeval_time::Edit> {
    match entry.body {
        EntryBody::Clock(edit) => Some(edit),
        EntryBody::Record { .. } => None,
    }
}

/// Events arrive in order, once, and only at those who were there; what is due has arrived.
fn events(mesh: &Mesh, programs: &[&Program], found: &mut Vec<Violation>) {
    let here = programs.iter().map(|p| (p.node(), &p.sent, &p.received));
    let fallen = mesh.fallen.iter().map(|f| (f.node, &f.sent, &f.received));
    let all: Vec<(NodeId, &Vec<SentEvent>, &Vec<EventNotice>)> = here.chain(fallen).collect();
    let sent: BTreeMap<(NodeId, u64), &SentEvent> = all
        .iter()
        .flat_map(|(node, sent, _)| sent.iter().map(|event| ((*node, event.number), event)))
        .collect();
    for (node, _, received) in &all {
        let mut last: BTreeMap<NodeId, u64> = BTreeMap::new();
        for event in *received {
            let number = last.insert(event.id.from, event.id.number).unwrap_or_default();
            let known = sent.get(&(event.id.from, event.id.number));
            let meant = event.id.from == *node || known.is_some_and(|sent| sent.to.contains(node));
            let wrong = match known {
                _ if event.id.number <= number => "after a later one, or twice",
                None => "though nobody sent it",
                Some(sent) if sent.value != event.value => "with another value",
                Some(_) if !meant => "though it was not here when it was sent",
                Some(_) => continue,
            };
            let detail = format!("event {} of {} arrived {wrong}", event.id.number, event.id.from.short());
            found.push(Violation { check: Check::EventsArriveOnce, node: Some(*node), detail });
        }
    }
    for program in programs {
        let once: BTreeSet<_> = program.replies.iter().collect();
        let commands = program.sent.iter().filter(|event| event.command);
        let expected = commands.flat_map(|event| event.due.iter().map(|node| (*node, event.number)));
        let missing =
            expected.filter(|reply| programs.iter().any(|p| p.node() == reply.0) && !once.contains(reply));
        if once.len() != program.replies.len() || missing.count() > 0 {
            let detail = format!("replies to commands: {:?}", program.replies);
            found.push(Violation { check: Check::EventsArriveOnce, node: Some(program.node()), detail });
        }
    }
}
