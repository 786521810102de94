//! What the shared clock must never do again: one test per fault, and the examples that define the fold.
mod support;

use coeval_time::EditKind::{Cancel, JumpBy, JumpTo, Pause, Resume, Scale, StopAt};
use coeval_time::{
    ChangeCause, Clock, DraftError, Edit, EditError, Epoch, Genesis, HybridClock, Incarnation, Inserted,
    SessionId, SimTime, Stamp, WallTime,
};
use support::{S, clock, clock_with, edit, id, insert_all, read, sim, span, wall};

#[test]
fn clock_read_twice_never_stands_on_a_stair() {
    let clock = clock(sim(0), 1.0);
    let readings: Vec<SimTime> = (0..100_000).map(|n| clock.context(wall(n * 10_000)).sim).collect();
    assert!(readings.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(readings[99_999], sim(99_999 * 10_000));
}

#[test]
fn seek_while_paused_stays_paused() {
    let clock = clock_with(&[edit(10 * S, 1, 0, Pause), edit(11 * S, 2, 0, JumpTo(sim(4 * S)))]);
    assert_eq!(read(&clock, &[12]), [sim(4 * S)]);
    let state = clock.state(wall(12 * S));
    assert!(state.segment.paused && !state.segment.stopped && state.segment.rate == 0.0);
}

#[test]
fn joiner_brings_no_default() {
    let session = clock(sim(0), 2.0);
    insert_all(&session, &[edit(5 * S, 1, 0, Scale(2.0))]);
    for _ in 0..100 {
        // A joiner makes its clock from the session's genesis and edits; its own configured rate has no way in.
        let joiner = Clock::new(session.session(), *session.genesis()).expect("the genesis is valid");
        for logged in session.edits() {
            joiner.insert(&logged.edit, wall(60 * S)).expect("valid in the session, valid here");
        }
        assert_eq!(joiner.context(wall(60 * S)).sim, session.context(wall(60 * S)).sim);
        assert_eq!((joiner.context(wall(60 * S)).rate, joiner.edits().len()), (2.0, 1));
    }
}

#[test]
fn there_and_back_is_the_identical_instant() {
    for years in [0_i64, 1_000, -1_000, 9_000, -9_000] {
        let start = SimTime::from_nanos(i128::from(years) * 31_556_952 * i128::from(S) + 7);
        for rate in [1.0, 1.5, 0.1, 1e6] {
            let clock = clock(start, 1.0);
            insert_all(&clock, &[edit(0, 1, 0, Scale(-rate)), edit(10 * S, 2, 0, Scale(rate))]);
            assert_eq!(clock.context(wall(20 * S)).sim, start, "rate {rate} at {years} years");
        }
    }
}

#[test]
fn rounding_is_the_same_in_both_directions() {
    let clock = clock_with(&[edit(0, 1, 0, Scale(-1.5)), edit(1, 2, 0, Scale(1.5))]);
    assert_eq!(clock.context(wall(2)).sim, sim(1_000 * S));
}

#[test]
fn stop_means_stop_whatever_the_rate_becomes() {
    let clock = clock(sim(1_000 * S), 1.0);
    let draft = clock.draft_run_until(sim(1_010 * S), wall(0)).expect("it is ahead");
    for (index, kind) in (0..).zip(draft) {
        insert_all(&clock, &[edit(0, 1, index, kind)]);
    }
    insert_all(&clock, &[edit(2 * S, 2, 0, Scale(7.0))]);
    assert_eq!(read(&clock, &[2, 3, 4, 50]), [1_002, 1_009, 1_010, 1_010].map(|s| sim(s * S)));
    assert!(clock.state(wall(50 * S)).segment.stopped);
    // A step of one second from there: it runs, and stops exactly again.
    let step = clock.draft_step(span(S), wall(60 * S)).expect("forward, as the scale");
    for (index, kind) in (0..).zip(step) {
        insert_all(&clock, &[edit(60 * S, 3, index, kind)]);
    }
    assert_eq!(clock.context(wall(60 * S)).sim, sim(1_010 * S));
    assert_eq!(clock.context(wall(60 * S + S / 14)).sim, sim(1_010 * S + S / 14 * 7));
    assert_eq!(clock.context(wall(99 * S)).sim, sim(1_011 * S));
    let changes = clock.changes_since(0, wall(99 * S));
    assert!(
        changes.changes.iter().all(|change| !change.is_discontinuity()),
        "a stop is no step: {changes:?}"
    );
}

#[test]
fn step_written_stop_first_works_too() {
    let edits = [
        edit(0, 1, 0, StopAt(sim(1_010 * S))),
        edit(2 * S, 2, 0, Scale(7.0)),
        edit(60 * S, 3, 0, StopAt(sim(1_011 * S))),
        edit(60 * S, 3, 1, Resume),
    ];
    assert_eq!(read(&clock_with(&edits), &[60, 99]), [sim(1_010 * S), sim(1_011 * S)]);
}

#[test]
fn jump_over_a_stop_does_not_fire_it() {
    let clock = clock_with(&[edit(0, 1, 0, StopAt(sim(1_010 * S))), edit(S, 2, 0, JumpTo(sim(2_000 * S)))]);
    assert_eq!(read(&clock, &[11]), [sim(2_010 * S)]);
    assert_eq!(clock.state(wall(11 * S)).waiting.len(), 1);
    insert_all(&clock, &[edit(12 * S, 3, 0, Scale(-100.0))]);
    assert_eq!(read(&clock, &[100]), [sim(1_010 * S)], "coming back it does");
}

#[test]
fn run_until_what_lies_behind_is_refused() {
    let clock = clock(sim(0), 1.0);
    assert!(matches!(clock.draft_run_until(sim(-S), wall(0)), Err(DraftError::Behind { .. })));
    insert_all(&clock, &[edit(S, 1, 0, Scale(0.0))]);
    assert!(matches!(clock.draft_step(span(S), wall(S)), Err(DraftError::StandingStill { .. })));
}

#[test]
fn withdrawn_stop_and_withdrawn_pause_do_nothing() {
    let (stop, pause) = (edit(0, 1, 0, StopAt(sim(1_010 * S))), edit(30 * S, 3, 0, Pause));
    let cancels = [edit(5 * S, 2, 0, Cancel(stop.id)), edit(9 * S, 4, 0, Cancel(pause.id))];
    let clock = clock_with(&[stop, cancels[0], pause, cancels[1]]);
    assert_eq!(read(&clock, &[40]), [sim(1_040 * S)]);
    assert_eq!(clock.edits().iter().filter(|logged| logged.withdrawn).count(), 1);
}

#[test]
fn cancel_that_is_itself_withdrawn_withdraws_nothing() {
    let pause = edit(30 * S, 1, 0, Pause);
    let cancel = edit(20 * S, 2, 0, Cancel(pause.id));
    let cancel_cancel = edit(10 * S, 3, 0, Cancel(cancel.id));
    for order in
        [[pause, cancel, cancel_cancel], [cancel_cancel, cancel, pause], [cancel, pause, cancel_cancel]]
    {
        assert_eq!(read(&clock_with(&order), &[40]), [sim(1_030 * S)]);
    }
    assert_eq!(read(&clock_with(&[cancel, pause]), &[40]), [sim(1_040 * S)]);
}

#[test]
fn withdrawn_jump_makes_no_epoch() {
    let (kept, gone) = (edit(10 * S, 1, 0, JumpBy(span(S))), edit(20 * S, 2, 0, JumpBy(span(S))));
    let clock = clock_with(&[kept, gone]);
    let withdraw = edit(15 * S, 3, 0, Cancel(gone.id));
    assert_eq!(clock.context(wall(30 * S)).epoch, Epoch { at: gone.at, jump: gone.id });
    clock.insert(&withdraw, wall(30 * S)).expect("valid");
    assert_eq!(clock.context(wall(30 * S)).epoch, Epoch { at: kept.at, jump: kept.id });
    assert_eq!(clock.context(wall(5 * S)).epoch, Epoch::GENESIS);
}

#[test]
fn pause_and_rate_made_at_once_both_hold() {
    let edits = [edit(5 * S, 1, 0, Pause), edit(5 * S, 2, 0, Scale(3.0)), edit(6 * S, 3, 0, Resume)];
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0_usize]] {
        let clock = clock(sim(1_000 * S), 1.0);
        for n in order {
            clock.insert(&edits[n], wall(6 * S)).expect("valid");
        }
        assert_eq!(read(&clock, &[7]), [sim(1_008 * S)]);
    }
}

#[test]
fn answer_to_what_was_seen_is_ordered_after_it() {
    // B's session clock is 5 ms behind A's; each has its own replica.
    let (a, b) = (clock(sim(0), 1.0), clock(sim(0), 1.0));
    let hybrid = |writer| HybridClock::new(Incarnation(writer), 0).expect("0 is in range");
    let (hybrid_a, hybrid_b) = (hybrid(9), hybrid(1));
    let make = |clock: &Clock, hybrid: &HybridClock, now: WallTime, kind| {
        let at = clock.immediate_at(now);
        let stamp = hybrid.next(now, now, Stamp::NONE).expect("in range");
        Edit { id: coeval_time::EditId { stamp, index: 0 }, at, kind }
    };
    let (now_a, now_b) = (wall(10 * S), wall(10 * S - 5_000_000));
    let deliver = |edit: &Edit, writer_is_a: bool| {
        let other = if writer_is_a { &hybrid_b } else { &hybrid_a };
        other.observe(edit.id.stamp).expect("in range");
        a.insert(edit, now_a).expect("valid");
        b.insert(edit, now_b).expect("valid");
    };
    deliver(&make(&a, &hybrid_a, now_a, Scale(4.0)), true);
    deliver(&make(&b, &hybrid_b, now_b, Scale(1.0)), false);
    assert_eq!([&a, &b].map(|clock| clock.context(wall(11 * S)).rate), [1.0, 1.0]);

    // A pauses; A's session clock turns out to be 400 ms ahead; B, which is right, resumes.
    let (now_a, now_b) = (wall(20 * S), wall(20 * S - 400_000_000));
    let pause = make(&a, &hybrid_a, now_a, Pause);
    hybrid_b.observe(pause.id.stamp).expect("in range");
    insert_both(&a, &b, &pause, now_b);
    let resume = make(&b, &hybrid_b, now_b, Resume);
    insert_both(&a, &b, &resume, now_b);
    assert_eq!([&a, &b].map(|clock| clock.context(wall(21 * S)).rate), [1.0, 1.0]);
}

#[test]
fn edit_scheduled_in_an_hour_does_not_delay_an_immediate_one() {
    let clock = clock(sim(0), 1.0);
    let scheduled = Edit { id: id(wall(0), 1, 0), at: wall(3_600 * S), kind: Pause };
    assert_eq!(clock.insert(&scheduled, wall(0)), Ok(Inserted::Scheduled { at: scheduled.at }));
    assert_eq!(clock.immediate_at(wall(S)), wall(S));
}

#[test]
fn scheduled_rate_switches_without_a_step_and_a_scheduled_jump_with_one() {
    let clock = clock(sim(0), 1.0);
    let rate = Edit { id: id(wall(0), 1, 0), at: wall(10 * S), kind: Scale(3.0) };
    let jump = Edit { id: id(wall(0), 2, 0), at: wall(20 * S), kind: JumpTo(sim(-S)) };
    insert_all_now(&clock, &[rate, jump]);
    assert_eq!(clock.context(wall(10 * S)).generation, clock.context(wall(0)).generation);
    assert_eq!(clock.context(wall(20 * S - 1)).sim, sim(40 * S - 3));
    let (before, after) = (clock.context(wall(20 * S - 1)), clock.context(wall(20 * S)));
    assert_eq!((after.sim, after.generation), (sim(-S), before.generation + 1));
    let changes = clock.changes_since(0, wall(15 * S));
    assert_eq!(changes.changes.len(), 1);
    assert_eq!((changes.changes[0].cause, changes.changes[0].step()), (ChangeCause::Edit(rate.id), span(0)));
    let later = clock.changes_since(changes.next, wall(25 * S));
    assert_eq!(later.changes.iter().map(|change| change.step()).collect::<Vec<_>>(), [span(-41 * S)]);
    assert_eq!(later.generation, after.generation);
}

fn insert_all_now(clock: &Clock, edits: &[Edit]) {
    for edit in edits {
        clock.insert(edit, wall(0)).expect("valid");
    }
}

#[test]
fn late_edit_reports_the_step_it_causes() {
    let clock = clock(sim(0), 1.0);
    let late = edit(10 * S, 1, 0, Scale(4.0));
    let before = clock.context(wall(10 * S + 50_000_000));
    let Ok(Inserted::InEffect(change)) = clock.insert(&late, wall(10 * S + 50_000_000)) else {
        panic!("in effect")
    };
    assert_eq!((change.step(), change.cause), (span(150_000_000), ChangeCause::LateEdit(late.id)));
    assert_eq!((change.before.rate, change.after.rate), (1.0, 4.0));
    let after = clock.context(before.wall);
    assert_eq!((after.sim, after.generation), (change.after.sim, before.generation + 1));
    assert_eq!(clock.insert(&late, wall(11 * S)), Ok(Inserted::Known), "once is enough");
    assert_eq!(clock.context(wall(11 * S)).generation, after.generation);
}

#[test]
fn session_step_is_a_discontinuity() {
    let clock = clock(sim(0), 2.0);
    let change = clock.session_stepped(wall(10 * S), wall(13 * S));
    assert_eq!((change.step(), change.cause), (span(6 * S), ChangeCause::SessionStep));
    assert_eq!(clock.context(wall(13 * S)).generation, 1);
    assert_eq!(clock.changes_since(0, wall(14 * S)).changes, [change]);
}

#[test]
fn not_a_number_is_refused_as_a_scale() {
    for scale in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let clock = clock(sim(0), 1.0);
        let refused = clock.insert(&edit(0, 1, 0, Scale(scale)), wall(0));
        assert!(matches!(refused, Err(EditError::ScaleNotFinite { .. })));
        assert!(clock.edits().is_empty());
        assert!(Clock::new(SessionId::default(), Genesis { wall: wall(0), sim: sim(0), scale }).is_err());
    }
}

#[test]
fn edit_far_from_its_own_stamp_is_refused_whenever_it_arrives() {
    let clock = clock(sim(0), 1.0);
    let day = 24 * 3_600 * S;
    let at = |nanos| Edit { id: id(wall(0), 1, 0), at: wall(nanos), kind: Pause };
    for now in [0, day, 30 * day] {
        assert!(matches!(clock.insert(&at(day + 1), wall(now)), Err(EditError::TooFarAhead { .. })));
        assert!(matches!(clock.insert(&at(-60 * S - 1), wall(now)), Err(EditError::TooFarBack { .. })));
    }
    assert!(clock.insert(&at(day), wall(40 * day)).is_ok());
    assert!(matches!(clock.insert(&at(5), wall(40 * day)), Err(EditError::Conflict { .. })));
}

#[test]
fn edits_that_change_nothing_leave_no_trace_of_rounding() {
    let plain = clock(sim(0), 0.1);
    let busy = clock(sim(0), 0.1);
    for n in 0..1_000_u32 {
        let kind = if n % 2 == 0 { Resume } else { Scale(0.1) };
        insert_all(&busy, &[edit(i64::from(n) * 7 + 5, 1, n, kind)]);
    }
    assert!((0..20_000).all(|n| plain.context(wall(n)).sim == busy.context(wall(n)).sim));
    assert_eq!(busy.segments(wall(0)).len(), 1);
}

#[test]
fn end_of_the_range_saturates_and_says_so() {
    let clock = clock(SimTime::MAX, 1e300);
    assert_eq!(clock.context(wall(S)).sim, SimTime::MAX);
    assert!(clock.state(wall(S)).saturated);
    insert_all(&clock, &[edit(S, 1, 0, JumpTo(sim(0))), edit(S, 2, 0, Scale(-1.0))]);
    assert_eq!(clock.context(wall(2 * S)).sim, sim(-S));
    assert!(!clock.state(wall(2 * S)).saturated);
}

#[test]
fn log_tells_who_when_from_what_to_what() {
    let clock = clock_with(&[edit(10 * S, 1, 0, Scale(2.0)), edit(20 * S, 2, 0, JumpTo(sim(0)))]);
    let log = clock.edits();
    assert_eq!(
        (log[0].before.rate, log[0].after.rate, log[0].edit.id.stamp.writer),
        (1.0, 2.0, Incarnation(101))
    );
    assert_eq!((log[1].before.sim, log[1].after.sim), (sim(1_030 * S), sim(0)));
}

#[test]
fn next_wall_instant_of_a_sim_time_is_found_through_edits() {
    let clock = clock(sim(0), 1.0);
    let fall = Edit { id: id(wall(0), 1, 0), at: wall(10 * S), kind: Scale(-2.0) };
    let jump = Edit { id: id(wall(0), 2, 0), at: wall(30 * S), kind: JumpTo(sim(1_000 * S)) };
    insert_all_now(&clock, &[fall, jump]);
    assert_eq!(clock.wall_at(sim(5 * S), wall(0)), Some(wall(5 * S)));
    assert_eq!(clock.wall_at(sim(5 * S), wall(6 * S)), Some(wall(12 * S + S / 2)));
    assert_eq!(clock.wall_at(sim(500 * S), wall(0)), Some(wall(30 * S)), "a jump passes it");
    assert_eq!(clock.wall_at(sim(1_001 * S), wall(0)), None);
}

fn insert_both(a: &Clock, b: &Clock, edit: &Edit, now: WallTime) {
    for clock in [a, b] {
        clock.insert(edit, now).expect("valid");
    }
}

#[test]
fn a_restored_world_stands_at_its_time_whatever_was_edited_before() {
    let clock = clock(sim(0), 1.0);
    insert_all_now(&clock, &[edit(5 * S, 1, 0, Scale(4.0)), edit(6 * S, 1, 0, JumpTo(sim(99 * S)))]);
    let epoch = coeval_time::Epoch { at: wall(10 * S), jump: id(wall(10 * S), 7, 0) };
    let before = clock.context(wall(10 * S));
    let genesis = coeval_time::Genesis { wall: wall(10 * S), sim: sim(3 * S), scale: -2.0 };
    let change = clock.restart(genesis, epoch, wall(10 * S)).expect("a finite scale");
    assert!(change.is_discontinuity() && change.cause == ChangeCause::Restored(epoch.jump.stamp));
    assert_eq!((change.before.sim, change.after.sim), (before.sim, sim(3 * S)));
    // Also for peers whose session time is a little behind.
    for at in [8 * S, 10 * S, 500 * S] {
        let now = clock.context(wall(at));
        assert_eq!((now.sim, now.rate, now.epoch), (sim(3 * S), 0.0, epoch));
        assert_eq!(now.generation, before.generation + 1);
    }
    assert!(clock.edits().is_empty() && clock.state(wall(20 * S)).segment.paused);
    insert_all_now(&clock, &[edit(20 * S, 1, 1, Resume)]);
    assert_eq!(clock.sim_at(wall(21 * S)), sim(S));
}
