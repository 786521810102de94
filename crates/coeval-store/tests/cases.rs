//! Faults that other systems had, each as a test named after what went wrong.
mod common;

use coeval_merge::{LinkTag, Own, Replica};
use coeval_motion::{Policy, Quality};
use coeval_store::{ReadError, Store, WriteError};
use coeval_time::{Direction, EditKind, Incarnation, Stamp, WallTime};
use coeval_value::{EntityId, Key, Motion, MotionModel, Ramp, SIM_ENTITY, Value};
use common::{Peer, SEC, START, config, deliver, entity, epoch, path, settle, sim};
use std::sync::mpsc;

const ID: u128 = 9;

fn id() -> EntityId {
    entity(ID)
}

/// Two peers that both know one entity.
fn pair() -> (Peer, Peer) {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.create(id());
    settle(&[&a, &b]);
    (a, b)
}

/// What is shown at `text`, whatever its age.
fn shown(peer: &Peer, text: &str) -> Option<Value> {
    let ctx = peer.store.clock().context(WallTime::from_nanos(START + 100_000 * SEC));
    peer.store.get(ctx, id(), &path(text)).ok()
}

fn set(peer: &Peer, text: &str, value: impl Into<Value>) -> Stamp {
    peer.store.set(peer.ctx(), id(), &path(text), value).expect("write")
}

#[test]
fn a_clock_that_ran_ahead_holds_no_key() {
    let (a, b) = pair();
    a.at(599 * SEC);
    set(&a, "k", 1);
    a.send(&b);
    // The clock is put right; then the same peer writes.
    a.at(SEC);
    set(&a, "k", 2);
    settle(&[&a, &b]);
    assert_eq!((shown(&a, "k"), shown(&b, "k")), (Some(Value::Int(2)), Some(Value::Int(2))));
    // Or another one that has seen it.
    b.at(2 * SEC);
    set(&b, "k", 3);
    settle(&[&a, &b]);
    assert_eq!((shown(&a, "k"), shown(&b, "k")), (Some(Value::Int(3)), Some(Value::Int(3))));
}

#[test]
fn late_put_under_a_newer_clear_stays_hidden() {
    let peers = [2, 3, 4].map(Peer::new);
    let [a, b, c] = &peers;
    a.create(id());
    settle(&[a, b, c]);
    set(a.at(1), "a/k", 1);
    let first = a.store.drain();
    set(b.at(2), "a/k", 2);
    let late = b.store.drain();
    c.at(3).store.remove(c.ctx(), id(), &path("a")).expect("remove");
    let clear = c.store.drain();
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let all = [(a, &first), (b, &late), (c, &clear)];
    for order in orders {
        let reader = Peer::new(9);
        reader.create(id());
        for n in order {
            deliver(&all[n].0.store, all[n].1, &reader.store);
        }
        assert_eq!(shown(&reader, "a"), None, "{order:?}");
    }
}

#[test]
fn an_entity_deleted_while_flying_never_comes_back() {
    let (flyer, other) = pair();
    let motion = flyer.store.param::<f64>(id(), &path("x")).expect("param");
    let seen = other.store.param::<f64>(id(), &path("x")).expect("param");
    let mut sent = Vec::new();
    for frame in 0..120u64 {
        flyer.at(frame * SEC / 60);
        motion.set(flyer.ctx(), frame as f64).expect("not heard yet");
        sent.push(flyer.store.drain());
        deliver(&flyer.store, sent.last().expect("one"), &other.store);
        if frame == 10 {
            other.store.delete_entity(other.ctx(), id()).expect("delete");
        }
        let exists = other.store.exists(id());
        assert_eq!(exists, frame < 10, "frame {frame}");
    }
    assert!(matches!(seen.get(other.ctx()), Err(ReadError::Deleted { .. })));
    assert!(other.store.counters().after_deletion > 100);
    other.send(&flyer);
    let refused = motion.set(flyer.ctx(), 1.0);
    assert_eq!(refused, Err(WriteError::Deleted(id())));
    assert!(refused.unwrap_err().to_string().contains("was deleted: make a new entity"));
    assert!(matches!(motion.get(flyer.ctx()), Err(ReadError::Deleted { .. })));
    sent.iter().for_each(|drained| _ = deliver(&flyer.store, drained, &other.store));
    settle(&[&flyer, &other]);
    assert!(!flyer.store.exists(id()) && !other.store.exists(id()));
    assert_eq!(flyer.store.create_entity(flyer.ctx(), id(), None), Err(WriteError::Deleted(id())));
    assert_eq!(flyer.store.digest(), other.store.digest());
}

#[test]
fn two_fields_by_two_writers_both_survive() {
    let (a, b) = pair();
    set(&a, "pose/rotation", 1);
    set(&b, "pose/position", 2);
    settle(&[&a, &b]);
    for peer in [&a, &b] {
        assert_eq!(
            (shown(peer, "pose/rotation"), shown(peer, "pose/position")),
            (Some(1.into()), Some(2.into()))
        );
    }
}

#[test]
fn what_comes_to_rest_is_read_exactly() {
    let (a, b) = pair();
    for t in 0..2u64 {
        a.at(t * SEC);
        set(&a, "x", t as f64);
        a.send(&b);
    }
    b.at(6 * SEC);
    let x = b.store.param::<f64>(id(), &path("x")).expect("param").with_policy(Policy::HOLD);
    assert_eq!(x.get(b.ctx()), Ok(1.0));
    assert_eq!(x.read(b.ctx()).expect("held").quality, Quality::Held { by: sim(5.0).since(sim(0.0)) });
}

#[test]
fn the_origin_of_extrapolation_is_the_writers() {
    let (a, b) = pair();
    a.at(10 * SEC);
    let moving = Motion {
        model: MotionModel::Fpw,
        position: Some([0.0; 3]),
        velocity: Some([100.0, 0.0, 0.0]),
        ..Motion::default()
    };
    set(&a, "motion", moving);
    a.send(&b);
    b.at(10 * SEC + SEC / 5);
    let read = b.store.param::<Motion>(id(), &path("motion")).expect("param").read(b.ctx()).expect("there");
    let x = read.value.position.expect("position")[0];
    assert!((x - 20.0).abs() < 1e-9, "{x}");
    assert_eq!(read.author(), Incarnation(2));
}

#[test]
fn program_order_counts_inside_a_batch() {
    let (a, b) = pair();
    set(&a, "a/old", 1);
    let ctx = a.ctx();
    let mut batch = a.store.batch(ctx);
    batch.set(id(), &path("a/b"), 30).and_then(|b| b.remove(id(), &path("a"))).expect("batch");
    batch.set(id(), &path("k"), 1).and_then(|b| b.set(id(), &path("k"), 2)).expect("batch");
    batch.set(id(), &path("m"), 1).and_then(|b| b.set(id(), &path("m/b"), 2)).expect("batch");
    batch.commit().expect("commit");
    settle(&[&a, &b]);
    for peer in [&a, &b] {
        assert_eq!((shown(peer, "a"), shown(peer, "k")), (None, Some(2.into())));
        assert_eq!(shown(peer, "m"), Some(Value::map([(Key::new("b").expect("key"), 2)])));
    }
}

#[test]
fn a_map_stays_a_map_when_its_last_child_goes() {
    let (a, b) = pair();
    set(&a, "a", 5);
    a.send(&b);
    set(&a, "a/b", 1);
    a.store.remove(a.ctx(), id(), &path("a/b")).expect("remove");
    // The child's value never gets to `b`.
    settle(&[&a, &b]);
    let empty = Some(Value::map::<Value>([]));
    assert_eq!((shown(&a, "a"), shown(&b, "a")), (empty.clone(), empty));
    assert_eq!(a.store.digest(), b.store.digest());
}

#[test]
fn hidden_is_equal_to_never_received() {
    let (a, b) = pair();
    set(&a, "a/k", 1);
    let never = a.store.drain();
    assert_eq!(never.changes.len(), 1);
    a.store.remove(a.ctx(), id(), &path("a")).expect("remove");
    let clear = a.store.drain();
    deliver(&a.store, &clear, &b.store);
    b.store.drain();
    assert_eq!(a.store.digest(), b.store.digest());
    assert_eq!(a.store.bucket_digests(), b.store.bucket_digests());
    // Now it comes after all: nothing changes.
    assert_eq!(deliver(&a.store, &never, &b.store), 0);
    b.store.drain();
    assert_eq!(a.store.digest(), b.store.digest());
}

#[test]
fn who_reads_and_then_writes_wins() {
    let (ahead, behind) = pair();
    ahead.at(SEC + 400_000_000);
    behind.at(SEC);
    let theirs = set(&ahead, "k", 1);
    ahead.send(&behind);
    assert_eq!(shown(&behind, "k"), Some(1.into()));
    let ours = set(&behind, "k", 2);
    assert!(ours > theirs);
    settle(&[&ahead, &behind]);
    assert_eq!((shown(&ahead, "k"), shown(&behind, "k")), (Some(2.into()), Some(2.into())));
}

#[test]
fn turning_round_follows_the_newest_branch() {
    let (a, b) = pair();
    let samples = [(0.0, 0.0, 1), (10.0, 10.0, 1), (10.0, 20.0, -1), (5.0, 10.0, -1)];
    for (t, x, way) in samples {
        let mut ctx = a.pass(1_000_000).sim(t);
        if way < 0 {
            (ctx.direction, ctx.rate) = (Direction::Backward, -1.0);
        }
        a.store.set(ctx, id(), &path("x"), Ramp { value: x, rate: 2.0 }).expect("write");
        a.send(&b);
    }
    for peer in [&a, &b] {
        peer.at(SEC);
        let x = peer.store.param::<Ramp>(id(), &path("x")).expect("param");
        let mut ctx = peer.sim(4.9);
        (ctx.direction, ctx.rate) = (Direction::Backward, -1.0);
        assert!((x.get(ctx).expect("read").value - 9.8).abs() < 1e-9);
        assert_eq!(x.get(coeval_time::Context { sim: sim(5.0), ..ctx }).expect("read").value, 10.0);
        // Between the two samples of the newest branch, not on the old one.
        let between = x.read(coeval_time::Context { sim: sim(7.0), ..ctx }).expect("read");
        assert_eq!(between.quality, Quality::Interpolated);
        assert!((between.value.value - 14.0).abs() < 1e-9, "{between:?}");
    }
}

#[test]
fn an_abandoned_branch_changes_nothing_and_is_counted() {
    let (a, b) = pair();
    let x = path("x");
    let write = |peer: &Peer, t: f64, value: f64, rate: f64, jumped: bool| {
        let mut ctx = peer.pass(1_000_000).sim(t);
        if jumped {
            ctx.epoch = epoch(5);
        }
        peer.store.set(ctx, id(), &x, Ramp { value, rate }).expect("write");
        settle(&[&a, &b]);
    };
    let read = |peer: &Peer, t: f64| {
        let ctx = coeval_time::Context { epoch: epoch(5), ..peer.sim(t) };
        peer.store.param::<Ramp>(id(), &x).expect("param").read(ctx).expect("read")
    };
    write(&a, 100.0, 100.0, 1.0, false);
    write(&a, 101.0, 101.0, 1.0, false);
    write(&a, 50.0, 0.0, 0.0, true);
    for stale in 0..3u32 {
        for peer in [&a, &b] {
            for t in [60.0, 80.0, 100.5] {
                let reading = read(peer, t);
                assert_eq!(reading.value.value, 0.0, "at {t}");
            }
            assert_eq!(peer.store.counters().abandoned_branch, u64::from(stale));
            assert_eq!(read(peer, 60.0).stale, stale);
        }
        write(&b, 101.2 + f64::from(stale), 101.2, 1.0, false);
    }
    write(&a, 61.0, 7.0, 0.0, true);
    assert_eq!((read(&a, 61.0).value.value, read(&b, 61.0).value.value), (7.0, 7.0));
    assert_eq!(read(&b, 80.0).quality, Quality::Extrapolated { by: sim(19.0).since(sim(0.0)) });
}

#[test]
fn a_jump_moves_time_not_state() {
    let (a, b) = pair();
    let local = Motion {
        model: MotionModel::Fpw,
        position: Some([1.0, 2.0, 3.0]),
        velocity: Some([250.0, 0.0, 0.0]),
        ..Motion::default()
    };
    let radius = 6_778_137.0_f64;
    let mu = 3.986_004_418e14;
    let orbit = Motion {
        model: MotionModel::TwoBody,
        position: Some([radius, 0.0, 0.0]),
        velocity: Some([0.0, (mu / radius).sqrt(), 0.0]),
        mu: Some(mu),
        ..Motion::default()
    };
    set(&a, "aircraft", local);
    set(&a, "satellite", orbit);
    a.pass(SEC);
    let century = 100.0 * 365.25 * 86_400.0;
    a.store.edit_clock(&[EditKind::JumpTo(sim(-century))], None).expect("jump");
    b.pass(SEC);
    settle(&[&a, &b]);
    for peer in [&a, &b] {
        let ctx = peer.ctx();
        assert_eq!(ctx.sim, sim(-century));
        let aircraft =
            peer.store.param::<Motion>(id(), &path("aircraft")).expect("param").read(ctx).expect("held");
        assert_eq!(aircraft.value.position, Some([1.0, 2.0, 3.0]));
        assert!(matches!(aircraft.quality, Quality::Held { by } if (by.as_secs_f64() + century).abs() < 2.0));
        let satellite =
            peer.store.param::<Motion>(id(), &path("satellite")).expect("param").read(ctx).expect("orbit");
        let at = satellite.value.position.expect("position");
        let angle = (mu / radius.powi(3)).sqrt() * -century;
        let want = [radius * angle.cos(), radius * angle.sin(), 0.0];
        // A century of phase costs digits; the point is that it is on the orbit, at that date.
        let miss = (0..3).map(|i| (at[i] - want[i]).powi(2)).sum::<f64>().sqrt();
        assert!(miss < 100.0, "{miss} m");
        assert!(matches!(satellite.quality, Quality::Extrapolated { .. }));
    }
    assert_eq!(a.store.digest(), b.store.digest());
}

#[test]
fn a_writer_stopped_in_the_middle_blocks_no_reader() {
    let (enter, entered) = mpsc::sync_channel::<()>(0);
    let (go, resume) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new((false, enter, resume));
    let gate = std::sync::Arc::new(gate);
    let inner = std::sync::Arc::clone(&gate);
    // The session clock is read inside the cell's lock: there the writer stops.
    let store = Store::new(config(2, move || {
        let gate = inner.lock().expect("gate");
        if gate.0 {
            gate.1.send(()).expect("test waits");
            gate.2.recv().expect("test goes on");
        }
        WallTime::from_nanos(START)
    }))
    .expect("store");
    let ctx = store.context();
    store.create_entity(ctx, id(), None).expect("create");
    store.set(ctx, id(), &path("x"), 1.0).expect("write");
    let x = store.param::<f64>(id(), &path("x")).expect("param");
    gate.lock().expect("gate").0 = true;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| x.set(ctx, 2.0));
        entered.recv().expect("writer is in the middle");
        for _ in 0..1000 {
            assert_eq!(x.get(ctx), Ok(1.0));
            assert_eq!(store.get(ctx, id(), &path("x")), Ok(Value::Float(1.0)));
        }
        assert!(!writer.is_finished());
        go.send(()).expect("writer waits");
        writer.join().expect("writer").expect("write");
    });
    assert_eq!(x.get(ctx), Ok(2.0));
}

#[test]
fn a_handle_lives_through_absence_types_and_widths() {
    let (a, b) = pair();
    let x = b.store.param::<f64>(id(), &path("deep/x")).expect("absent is fine");
    let any = b.store.param::<Value>(id(), &path("deep/x")).expect("param");
    let missing = |read| matches!(read, Err(ReadError::Missing { .. }));
    assert!(missing(x.get(b.ctx())));
    set(&a, "deep/x", 1.5);
    settle(&[&a, &b]);
    assert_eq!(x.get(b.ctx()), Ok(1.5));
    a.store.remove(a.ctx(), id(), &path("deep")).expect("remove");
    settle(&[&a, &b]);
    assert!(missing(x.get(b.ctx())));
    let wide: Vec<Value> = vec![
        "text".into(),
        Value::from([1.0, 2.0, 3.0, 4.0]),
        Value::from(Motion {
            position: Some([1.0; 3]),
            orientation: Some(Default::default()),
            ..Motion::default()
        }),
        Value::Floats([1.0, 2.0].into()),
        Value::Bool(true),
    ];
    for value in wide {
        set(&a, "deep/x", value.clone());
        settle(&[&a, &b]);
        assert_eq!(any.get(b.ctx()), Ok(value.clone()));
        let error = x.get(b.ctx()).expect_err("wrong type");
        assert!(matches!(error, ReadError::Type { .. }), "{error}");
        assert!(error.to_string().contains("deep/x") && error.to_string().contains("f64"), "{error}");
    }
    set(&a, "deep/x/y", 1);
    settle(&[&a, &b]);
    assert!(x.get(b.ctx()).is_err());
    set(&a, "deep/x", 4.0);
    settle(&[&a, &b]);
    assert_eq!(x.get(b.ctx()), Ok(4.0));
    let at = x.set(b.ctx(), 5.0).expect("write");
    assert_eq!(x.read(b.ctx()).expect("own write").stamp, at);
    a.store.delete_entity(a.ctx(), id()).expect("delete");
    settle(&[&a, &b]);
    assert!(matches!(x.get(b.ctx()), Err(ReadError::Deleted { .. })));
    assert_eq!(x.set(b.ctx(), 1.0), Err(WriteError::Deleted(id())));
    assert!(b.store.param::<f64>(id(), &path("deep/x")).is_err());
}

#[test]
fn the_past_is_interpolated_between_samples() {
    let (a, b) = pair();
    for frame in 0..=50u64 {
        a.at(frame * SEC / 50);
        set(&a, "x", Value::Float(frame as f64 * 0.02));
        a.send(&b);
    }
    b.at(SEC);
    for peer in [&a, &b] {
        let x = peer.store.param::<f64>(id(), &path("x")).expect("param");
        for back in [0.01, 0.05, 0.111, 0.24] {
            let read = x.read(b.ctx().at(sim(1.0 - back))).expect("past");
            assert!((read.value - (1.0 - back)).abs() < 1e-9, "{back}: {read:?}");
            assert_eq!(read.quality, Quality::Interpolated, "{back}");
        }
        let old = x.read(b.ctx().at(sim(-5.0))).expect("held");
        assert!(matches!(old.quality, Quality::Held { .. }), "{old:?}");
    }
    // A teleport is not.
    a.pass(SEC / 10).store.teleport(a.ctx(), id(), &path("x"), 100.0).expect("teleport");
    let x = a.store.param::<f64>(id(), &path("x")).expect("param");
    assert_eq!(x.get(a.ctx().at(sim(1.09))), Ok(1.0));
}

#[test]
fn an_older_context_reads_what_was_written_in_it() {
    let (a, _) = pair();
    let values: [[Value; 3]; 3] = [
        [1.into(), 2.into(), 3.into()],
        ["one".into(), "two".into(), "three".into()],
        ["one".into(), "two".into(), 3.into()],
    ];
    for (n, [first, second, third]) in values.into_iter().enumerate() {
        let key = format!("x{n}");
        set(a.pass(1000), &key, first);
        let older = a.pass(1000).ctx();
        a.store.set(older, id(), &path(&key), second.clone()).expect("write");
        // Another thread, a moment later.
        set(a.pass(1000), &key, third.clone());
        assert_eq!(a.store.get(older, id(), &path(&key)), Ok(second));
        assert_eq!(a.store.get(a.ctx(), id(), &path(&key)), Ok(third));
    }
}

#[test]
fn history_reaches_back_equally_far_at_every_rate() {
    for hertz in [10, 50, 1_000, 20_000] {
        let (a, _) = pair();
        let x = a.store.param::<f64>(id(), &path("x")).expect("param");
        for n in 0..=hertz {
            let ctx = a.at(n * SEC / hertz).ctx();
            x.set(ctx, n as f64 / hertz as f64).expect("write");
        }
        for back in [0.001, 0.1, 0.2, 0.24] {
            let read = x.read(a.ctx().at(sim(1.0 - back))).expect("past");
            assert!((read.value - (1.0 - back)).abs() < 1e-9, "{hertz} Hz, {back}: {read:?}");
            assert!(
                matches!(read.quality, Quality::Interpolated | Quality::Exact),
                "{hertz} Hz, {back}: {read:?}"
            );
        }
    }
}

#[test]
fn a_removed_value_lends_no_samples_to_the_next() {
    let (a, _) = pair();
    for t in 0..3u64 {
        a.at(t * SEC);
        set(&a, "x", t as f64);
    }
    a.store.remove(a.ctx(), id(), &path("x")).expect("remove");
    a.at(4 * SEC);
    set(&a, "x", 40.0);
    let x = a.store.param::<f64>(id(), &path("x")).expect("param");
    assert_eq!(x.get(a.ctx().at(sim(3.0))), Ok(40.0));
}

#[test]
fn only_what_was_written_here_goes_out_from_here() {
    let (a, b) = pair();
    set(&a, "x", 1);
    a.send(&b);
    let seen = b.store.drain();
    assert_eq!(seen.changes.len(), 1);
    assert!(matches!(seen.changes[0].own, Own::Nothing));
    set(&a, "x", 2);
    a.send(&b);
    set(&b, "x", 3);
    assert!(matches!(b.store.drain().changes[0].own, Own::All));
    assert!(b.store.drain().changes.is_empty());
    assert_eq!(b.store.drain().position, b.store.position());
}

#[test]
fn the_pump_is_woken_by_the_first_change_after_each_drain() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let rung = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&rung);
    let peer = Peer::with(2, |config| {
        config.wake = Box::new(move || _ = counter.fetch_add(1, Ordering::SeqCst));
    });
    for round in 1..5 {
        if round == 1 {
            peer.create(id());
        }
        (0..10).for_each(|n| _ = set(&peer, "x", n));
        assert_eq!(rung.load(Ordering::SeqCst), round);
        peer.store.drain();
    }
    peer.store.add_record("note", Value::Nil).expect("record");
    assert_eq!(rung.load(Ordering::SeqCst), 5);
}

#[test]
fn the_sim_entity_is_there_and_stays() {
    let peer = Peer::new(2);
    assert!(peer.store.exists(SIM_ENTITY));
    assert!(peer.store.delete_entity(peer.ctx(), SIM_ENTITY).is_err());
    peer.store.set(peer.ctx(), SIM_ENTITY, &path("title"), "test").expect("write");
    let slot = peer.store.resolve(&coeval_merge::SlotKey { entity: SIM_ENTITY, path: None }).expect("slot");
    let life = coeval_merge::Life { created: Stamp::NONE, deleted: Stamp::new(START, Incarnation(9)) };
    let applied = peer.store.apply(LinkTag(1), &[(slot, life.into())], Vec::new());
    assert_eq!(applied.refused, vec![(slot, coeval_merge::Refusal::Protected)]);
    assert!(peer.store.exists(SIM_ENTITY));
}

#[test]
fn a_context_of_another_session_is_refused() {
    let (a, _) = pair();
    let x = a.store.param::<f64>(id(), &path("x")).expect("param");
    let mut ctx = a.ctx();
    ctx.session = coeval_time::SessionId(uuid::Uuid::from_u128(1));
    assert_eq!(x.set(ctx, 1.0), Err(WriteError::ForeignContext));
    assert_eq!(x.get(ctx), Err(ReadError::ForeignContext));
    assert_eq!(a.store.get(ctx, id(), &path("x")), Err(ReadError::ForeignContext));
    assert_eq!(a.store.set(ctx, id(), &path("x"), 1.0), Err(WriteError::ForeignContext));
}

#[test]
fn a_lost_author_shows_in_readings() {
    let (a, b) = pair();
    set(&a, "x", 1.0);
    a.send(&b);
    let x = b.store.param::<f64>(id(), &path("x")).expect("param");
    assert_eq!(x.read(b.ctx()).expect("read").lost_since, None);
    let since = WallTime::from_nanos(START + 7);
    b.store.note_author(Incarnation(2), Some(since));
    assert_eq!(x.read(b.ctx()).expect("read").lost_since, Some(since));
    assert_eq!(x.get(b.ctx()), Ok(1.0));
    b.store.note_author(Incarnation(2), None);
    assert_eq!(x.read(b.ctx()).expect("read").lost_since, None);
}

#[test]
fn a_fast_write_that_makes_an_ancestors_kind_redundant_changes_the_digest_with_it() {
    let (a, b) = pair();
    set(&a, "a/b", 1);
    set(&a, "a/c", 1);
    a.store.remove(a.ctx(), id(), &path("a/c")).expect("remove");
    settle(&[&a, &b]);
    // Newer than the removed sibling: from here on it alone says that `a` is a map.
    set(&a, "a/b", 2);
    settle(&[&a, &b]);
    for peer in [&a, &b] {
        assert_eq!(peer.store.digest(), peer.store.snapshot().digest());
    }
    assert_eq!(a.store.digest(), b.store.digest());
}
