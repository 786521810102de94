//! The judge condemns what it is there to condemn, and nothing else.
use super::*;
use crate::soak::record::{JOURNAL, Op, Outcome};
use coeval::{Incarnation, Stamp};

const A: Life = 10;
const B: Life = 20;
const C: Life = 30;

fn stamp(hlc: u64) -> Stamp {
    Stamp::new(hlc, Incarnation(A))
}

fn life(seat: usize, spawned: u64, via: Option<Life>, survives: bool, records: Vec<Record>) -> LifeLog {
    let lines = (spawned + 1..).zip(records).collect();
    LifeLog { seat, generation: 1, spawned, via, survives, lines, ..LifeLog::default() }
}

fn set(value: &str) -> Op {
    Op::Set { entity: "e".into(), path: "r".into(), value: value.into() }
}

/// What A does: writes these, one stamp each, and is acknowledged by B; A dies.
fn author(ops: Vec<Op>, by: Vec<Life>) -> LifeLog {
    let outcomes = (1..=ops.len() as u64).map(|hlc| Outcome::Done(Some(stamp(hlc)))).collect();
    let records = vec![
        Record::Opened { life: A },
        Record::Try { round: 1, ops },
        Record::Did { round: 1, outcomes },
        Record::Acked { round: 1, by },
    ];
    life(0, 100, None, false, records)
}

fn shows(cells: &[(&str, &str, &str, u64)]) -> Final {
    let mut state = Final::default();
    for (entity, path, value, hlc) in cells {
        let leaves = state.entities.entry((*entity).to_owned()).or_default();
        leaves.insert((*path).to_owned(), ((*value).to_owned(), stamp(*hlc)));
    }
    state
}

fn verdict(lives: Vec<LifeLog>, end: Final) -> Summary {
    let mut summary = Summary::default();
    judge(&Evidence { lives, finals: vec![end] }, &mut summary);
    summary
}

fn witness(survives: bool) -> LifeLog {
    life(1, 50, None, survives, vec![Record::Opened { life: B }])
}

#[test]
fn a_write_acknowledged_by_one_that_lives_on_must_be_there() {
    let lives = vec![witness(true), author(vec![set("x")], vec![B])];
    assert!(verdict(lives.clone(), shows(&[("e", "r", "x", 1)])).passed());
    let lost = verdict(lives, Final::default());
    assert_eq!((lost.lost, lost.writes_judged), (1, 1), "{lost}");
}

#[test]
fn a_write_nobody_who_lives_on_held_may_be_gone() {
    let lives = vec![witness(false), author(vec![set("x")], vec![B])];
    let summary = verdict(lives, Final::default());
    assert_eq!((summary.lost, summary.writes_judged, summary.writes_acknowledged), (0, 0, 1), "{summary}");
}

/// C joins by the invite of B after B has acknowledged, or before, or when B was killed and another answered in its place.
#[test]
fn who_joins_a_holder_holds() {
    for (spawned, seen, lost) in [(200, 300, 1), (102, 300, 0), (200, 200, 0)] {
        let joiner = life(2, spawned, Some(B), true, vec![Record::Opened { life: C }]);
        let mut inviter = witness(false);
        inviter.lines.push((seen, Record::Beat { rss_kib: 1 }));
        let lives = vec![inviter, author(vec![set("x")], vec![B]), joiner];
        assert_eq!(verdict(lives, Final::default()).lost, lost, "joined at {spawned}, B seen at {seen}");
    }
}

#[test]
fn what_is_older_than_a_write_does_not_supersede_it() {
    let lives = vec![witness(true), author(vec![set("x"), set("y")], vec![B])];
    assert!(verdict(lives.clone(), shows(&[("e", "r", "y", 2)])).passed());
    let stale = verdict(lives, shows(&[("e", "r", "x", 1)]));
    assert_eq!(stale.lost, 1, "{stale}");
}

#[test]
fn a_removal_accounts_for_what_is_older_only() {
    let remove = Op::Remove { entity: "e".into(), path: "r".into() };
    let lives = vec![witness(true), author(vec![set("x"), remove.clone()], vec![B])];
    assert!(verdict(lives, Final::default()).passed());
    let lives = vec![witness(true), author(vec![remove, set("x")], vec![B])];
    assert_eq!(verdict(lives, Final::default()).lost, 1);
}

#[test]
fn a_deleted_entity_that_shows_is_resurrected() {
    let create = Op::Create { entity: "e".into(), with: vec![("r".into(), "x".into())] };
    let lives = vec![witness(true), author(vec![create, Op::Delete { entity: "e".into() }], vec![B])];
    assert!(verdict(lives.clone(), Final::default()).passed());
    assert_eq!(verdict(lives, shows(&[("e", "r", "x", 1)])).resurrected, 1);
}

#[test]
fn values_nobody_wrote_and_stamps_given_out_twice_are_told() {
    let lives = vec![witness(true), author(vec![set("x")], vec![B])];
    let phantom = verdict(lives.clone(), shows(&[("e", "r", "z", 9)]));
    assert!(phantom.violations[0].contains("nobody wrote"), "{phantom}");
    let mut twice = lives;
    twice[1].lines.push((900, Record::Try { round: 2, ops: vec![set("y")] }));
    twice[1].lines.push((901, Record::Did { round: 2, outcomes: vec![Outcome::Done(Some(stamp(1)))] }));
    assert_eq!(verdict(twice, shows(&[("e", "r", "x", 1)])).stamps_reused, 1);
}

fn sender() -> LifeLog {
    let sending = |number| Record::Sending { number, to: None, command: false, present: vec![B] };
    let records = vec![Record::Opened { life: A }, sending(1), sending(2), Record::Delivered { upto: 2 }];
    life(0, 100, None, true, records)
}

fn receiver(numbers: &[u64], survives: bool) -> LifeLog {
    let got = numbers.iter().map(|number| Record::Got { from: A, number: *number });
    life(1, 50, None, survives, std::iter::once(Record::Opened { life: B }).chain(got).collect())
}

#[test]
fn acknowledged_events_are_looked_for_in_the_logs() {
    let judged = |numbers: &[u64], survives| {
        let summary = verdict(vec![receiver(numbers, survives), sender()], Final::default());
        (summary.lost, summary.duplicated, summary.deliveries_judged)
    };
    assert_eq!(judged(&[1, 2], true), (0, 0, 2));
    assert_eq!(judged(&[1], true), (1, 0, 2), "the last is missing");
    assert_eq!(judged(&[2], false), (1, 0, 1), "one is missing before the last that a killed peer logged");
    assert_eq!(judged(&[1], false), (0, 0, 0), "what a killed peer had not logged yet is not known");
    assert_eq!(judged(&[1, 2, 2], true), (0, 1, 2), "twice");
    assert_eq!(judged(&[2, 1], true), (0, 1, 2), "out of order");
}

#[test]
fn events_to_a_peer_that_was_lost_meanwhile_may_be_gone() {
    let mut sender = sender();
    sender.lines.insert(3, (103, Record::Lost { life: B }));
    let summary = verdict(vec![receiver(&[], true), sender], Final::default());
    assert_eq!((summary.lost, summary.deliveries_judged), (0, 0), "{summary}");
}

/// What its own journal acknowledged is held by who goes on with that journal, and by nobody else.
#[test]
fn who_goes_on_with_a_journal_holds_what_was_in_it() {
    for (seat, lost) in [(0, 1), (1, 0)] {
        let mut dead = author(vec![set("x")], vec![JOURNAL]);
        dead.journal = true;
        let mut heir = life(seat, 200, None, true, vec![Record::Opened { life: C }]);
        heir.journal = true;
        assert_eq!(verdict(vec![dead, heir], Final::default()).lost, lost, "on seat {seat}");
    }
}
