//! Entities, names, orphans, limits, watches, snapshots, entries.
mod common;

use coeval_merge::{Change, Drained, EntryBody, Refusal, Replica, SlotKey};
use coeval_store::{ChangeKind, LookupError, PathFilter, StoreEvent, WatchFilter, WriteError};
use coeval_time::{EditKind, Incarnation, WallTime};
use coeval_value::{EntityId, Value};
use common::{Peer, SEC, START, deliver, entity, path, settle, sim};
use std::time::Duration;

fn everything() -> WatchFilter {
    WatchFilter { entity: None, paths: PathFilter::All }
}

fn key(id: EntityId, text: &str) -> SlotKey {
    SlotKey { entity: id, path: Some(path(text)) }
}

#[test]
fn a_known_duplicate_name_is_refused() {
    let peer = Peer::new(2);
    peer.store.create_entity(peer.ctx(), entity(1), Some("probe")).expect("create");
    let refused = peer.store.create_entity(peer.ctx(), entity(2), Some("probe")).expect_err("taken");
    assert_eq!(refused, WriteError::NameTaken { name: "probe".into(), bearers: vec![entity(1)] });
    assert!(!peer.store.exists(entity(2)));
    // Free again once its bearer is gone, or renamed.
    peer.store.set(peer.ctx(), entity(1), &path("name"), "other").expect("rename");
    peer.store.create_entity(peer.ctx(), entity(2), Some("probe")).expect("free");
    peer.store.delete_entity(peer.ctx(), entity(2)).expect("delete");
    assert_eq!(peer.store.entity_named("probe"), Err(LookupError::NoSuchName("probe".into())));
    assert_eq!(peer.store.entity_named("other"), Ok(entity(1)));
}

#[test]
fn a_name_clash_is_told_once_and_look_ups_list_the_ids() {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.store.create_entity(a.ctx(), entity(1), Some("probe")).expect("create");
    b.store.create_entity(b.ctx(), entity(2), Some("probe")).expect("create");
    settle(&[&a, &b]);
    let ids = vec![entity(1), entity(2)];
    for peer in [&a, &b] {
        assert_eq!(
            peer.store.poll_events(),
            [StoreEvent::NameClash { name: "probe".into(), ids: ids.clone() }]
        );
        let error = peer.store.entity_named("probe").expect_err("ambiguous");
        assert!(ids.iter().all(|id| error.to_string().contains(&id.0.to_string())), "{error}");
    }
    let name = b.store.param::<String>(entity(2), &path("name")).expect("param");
    name.set(b.ctx(), "second".into()).expect("rename");
    settle(&[&a, &b]);
    assert_eq!(a.store.entity_named("probe"), Ok(entity(1)));
    assert_eq!(a.store.entity_named("second"), Ok(entity(2)));
    assert!(a.store.poll_events().is_empty() && b.store.poll_events().is_empty());
}

#[test]
fn values_that_overtake_the_creation_appear_with_it() {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.store.create_entity_with(a.ctx(), entity(1), Some("probe"), [(path("a/b"), 1.into())]).expect("create");
    let mut drained = a.store.drain();
    let life: Vec<Change> = drained.changes.drain(..1).collect();
    let watch = b.store.watch(everything());
    deliver(&a.store, &drained, &b.store);
    b.store.drain();
    assert!(b.store.get(b.ctx(), entity(1), &path("a/b")).is_err() && !b.store.exists(entity(1)));
    assert!(b.store.set(b.ctx(), entity(1), &path("c"), 1).is_err());
    assert!(b.store.counters().orphans >= 2);
    assert!(b.store.snapshot().entity(entity(1)).is_none());
    assert_eq!(b.store.digest(), Peer::new(4).drained_digest());
    assert!(watch.poll().changes.iter().all(|(key, _)| key.entity != entity(1)));
    deliver(&a.store, &Drained { changes: life, ..Drained::default() }, &b.store);
    b.store.drain();
    assert_eq!(b.store.get(b.ctx(), entity(1), &path("a/b")), Ok(1.into()));
    assert_eq!(b.store.entity_named("probe"), Ok(entity(1)));
    assert_eq!(b.store.counters().orphans, 0);
    assert_eq!(a.store.digest(), b.store.digest());
    let told = watch.poll().changes;
    assert!(told.contains(&(key(entity(1), "a/b"), ChangeKind::Created)), "{told:?}");
}

trait DrainedDigest {
    fn drained_digest(&self) -> coeval_merge::Digest;
}

impl DrainedDigest for Peer {
    fn drained_digest(&self) -> coeval_merge::Digest {
        self.store.drain();
        self.store.digest()
    }
}

#[test]
fn orphans_are_bounded() {
    let a = Peer::new(2);
    let b = Peer::with(3, |config| config.limits.orphans = 10);
    a.create(entity(1));
    a.store.drain();
    (0..100).for_each(|n| _ = a.store.set(a.ctx(), entity(1), &path(&format!("p{n}")), n).expect("write"));
    let states: Vec<_> =
        a.store.drain().changes.into_iter().map(|c| (a.store.key(c.slot).expect("own"), c.state)).collect();
    let states: Vec<_> =
        states.into_iter().map(|(key, state)| (b.store.resolve(&key).expect("slot"), state)).collect();
    let applied = b.store.apply(coeval_merge::LinkTag(2), &states, Vec::new());
    assert!(applied.refused.iter().all(|(_, why)| *why == Refusal::Limit));
    assert!(applied.changed <= 10 && applied.refused.len() >= 90, "{applied:?}");
    assert_eq!(b.store.counters().orphans_refused, applied.refused.len() as u64);
}

#[test]
fn at_the_limit_of_tombstones_creation_is_refused_and_deletion_is_not() {
    let peer = Peer::with(2, |config| config.limits.tombstones = 2);
    (1..=4).for_each(|n| _ = peer.create(entity(n)));
    (1..=2).for_each(|n| _ = peer.store.delete_entity(peer.ctx(), entity(n)).expect("delete"));
    let refused = peer.store.create_entity(peer.ctx(), entity(5), None).expect_err("full");
    assert!(refused.to_string().contains("deleted entities"), "{refused}");
    peer.store.delete_entity(peer.ctx(), entity(3)).expect("delete");
    assert!(peer.store.exists(entity(4)) && !peer.store.exists(entity(3)));
}

#[test]
fn limits_refuse_whole_batches() {
    let peer = Peer::with(2, |config| {
        (config.limits.paths_per_entity, config.limits.value.total, config.limits.entities) = (4, 200, 3);
    });
    peer.create(entity(1));
    let mut batch = peer.store.batch(peer.ctx());
    (0..6).for_each(|n| _ = batch.set(entity(1), &path(&format!("p{n}")), n).expect("small"));
    assert!(matches!(batch.commit(), Err(WriteError::Limit { what: "paths", .. })));
    assert!(peer.store.get(peer.ctx(), entity(1), &path("p0")).is_err());
    let large = Value::Bytes(vec![0; 500].into());
    let error = peer.store.set(peer.ctx(), entity(1), &path("p"), large).expect_err("large");
    assert!(matches!(error, WriteError::Value { .. }) && error.to_string().contains("\"p\""), "{error}");
    peer.create(entity(2));
    assert!(matches!(peer.store.create_entity(peer.ctx(), entity(3), None), Err(WriteError::Limit { .. })));
    assert_eq!(
        peer.store.set(peer.ctx(), entity(7), &path("p"), 1),
        Err(WriteError::UnknownEntity(entity(7)))
    );
}

#[test]
fn a_watch_announces_an_entity_once_and_conflates() {
    let (a, b) = (Peer::new(2), Peer::new(3));
    b.create(entity(1));
    b.store.set(b.ctx(), entity(1), &path("x"), 1).expect("write");
    b.store.drain();
    let watch = b.store.watch(everything());
    let entities = b.store.watch(WatchFilter { entity: None, paths: PathFilter::Entities });
    let only = b.store.watch(WatchFilter { entity: Some(entity(2)), paths: PathFilter::Below(path("pose")) });
    use ChangeKind::{Changed, Created, Removed};
    let told = watch.poll().changes;
    assert!(
        told.contains(&(SlotKey { entity: entity(1), path: None }, Created))
            && told.contains(&(key(entity(1), "x"), Created))
    );
    a.create(entity(2));
    a.store.set(a.ctx(), entity(2), &path("pose/x"), 1).expect("write");
    a.send(&b);
    // The same creation, with an older stamp, by another way.
    (1..20).for_each(|n| _ = b.store.set(b.ctx(), entity(1), &path("x"), n).expect("write"));
    assert!(watch.poll().changes.is_empty(), "fed at drains only");
    b.store.drain();
    let told = watch.poll().changes;
    assert_eq!(told.iter().filter(|(key, _)| key.path.is_none()).count(), 1);
    assert!(told.contains(&(key(entity(1), "x"), Changed)));
    let ids: Vec<_> = entities.poll().changes.into_iter().map(|(key, kind)| (key.entity, kind)).collect();
    assert!(ids.contains(&(entity(2), Created)));
    assert_eq!(only.poll().changes, [(key(entity(2), "pose"), Created), (key(entity(2), "pose/x"), Created)]);
    a.store.remove(a.ctx(), entity(2), &path("pose")).expect("remove");
    a.send(&b);
    b.store.drain();
    assert_eq!(only.poll().changes, [(key(entity(2), "pose"), Removed), (key(entity(2), "pose/x"), Removed)]);
    a.store.delete_entity(a.ctx(), entity(2)).expect("delete");
    a.send(&b);
    b.store.drain();
    assert_eq!(entities.poll().changes, [(SlotKey { entity: entity(2), path: None }, Removed)]);
}

#[test]
fn waiting_on_a_watch_ends_with_the_drain_that_feeds_it() {
    let peer = Peer::new(2);
    peer.create(entity(1));
    peer.store.drain();
    let watch = peer.store.watch(everything());
    watch.poll();
    assert!(watch.wait(Duration::from_millis(1)).changes.is_empty());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| watch.wait(Duration::from_secs(20)));
        peer.store.set(peer.ctx(), entity(1), &path("x"), 1).expect("write");
        peer.store.drain();
        assert_eq!(waiter.join().expect("waiter").changes, [(key(entity(1), "x"), ChangeKind::Created)]);
    });
}

#[test]
fn a_snapshot_stays_and_compares() {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.create(entity(1));
    a.store.set(a.ctx(), entity(1), &path("x"), 1).expect("write");
    settle(&[&a, &b]);
    let before = a.store.snapshot();
    assert_eq!(before, b.store.snapshot());
    assert_eq!((before.digest(), before.position()), (a.store.digest(), a.store.position()));
    a.store.set(a.ctx(), entity(1), &path("x"), 2).expect("write");
    assert_ne!(before, a.store.snapshot());
    assert_eq!(before.leaf(entity(1), &path("x")).map(|leaf| leaf.value.clone()), Some(1.into()));
    assert_eq!(before.entities().count(), 2);
}

#[test]
fn clock_edits_and_records_reach_every_store_once() {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.pass(SEC);
    b.pass(SEC);
    let edits = a.store.edit_clock(&[EditKind::Scale(4.0), EditKind::Pause], None).expect("edit");
    a.store.add_record("member", "a".into()).expect("record");
    assert!(a.store.edit_clock(&[EditKind::Scale(f64::NAN)], None).is_err());
    let drained = a.store.drain();
    assert_eq!(drained.entries.len(), 3);
    deliver(&a.store, &drained, &b.store);
    assert_eq!(deliver(&a.store, &drained, &b.store), 0);
    let later = WallTime::from_nanos(START + 9 * SEC);
    for peer in [&a, &b] {
        assert_eq!(peer.store.clock().context(later).sim, sim(1.0));
        assert!(peer.store.clock().knows(edits[0].id));
    }
    b.store.drain();
    assert_eq!(a.store.digest(), b.store.digest());
    assert_eq!(a.store.entry_ids(), b.store.entry_ids());
    assert_eq!(b.store.entries_since(0).len(), 3);
    assert_eq!(b.store.entries_since(b.store.position()).len(), 0);
    let records =
        b.store.entries().into_iter().filter(|entry| matches!(entry.body, EntryBody::Record { .. }));
    assert_eq!(records.count(), 1);
}

#[test]
fn a_summary_narrows_a_difference_to_slots() {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.create(entity(1));
    a.store.set(a.ctx(), entity(1), &path("a/x"), 1).expect("write");
    a.store.set(a.ctx(), entity(1), &path("y"), 1).expect("write");
    settle(&[&a, &b]);
    let stamps = |peer: &Peer| -> Vec<_> {
        let all = peer.store.summary(entity(1)).into_iter();
        all.map(|slot| (slot.key, slot.first, slot.floor, slot.kind)).collect()
    };
    assert_eq!(stamps(&a), stamps(&b));
    a.store.set(a.ctx(), entity(1), &path("y"), 2).expect("write");
    let (ours, theirs) = (stamps(&a), stamps(&b));
    let differing: Vec<_> =
        ours.iter().filter(|slot| !theirs.contains(slot)).map(|slot| slot.0.clone()).collect();
    assert_eq!(differing, [key(entity(1), "y")]);
}

#[test]
fn a_stamp_of_its_own_that_it_never_issued_shows_a_fork() {
    let (original, clone) = (Peer::new(2), Peer::new(2));
    let relay = Peer::new(3);
    original.create(entity(1));
    original.store.set(original.ctx(), entity(1), &path("a/b"), 1).expect("write");
    original.send(&relay);
    relay.send(&original);
    assert_eq!(original.store.take_fork(), None, "its own stamps came back");
    // The original is busy: the clone's stamp is older than its last one.
    clone.create(entity(2));
    let stamp = clone.store.set(clone.ctx(), entity(2), &path("x"), 1).expect("write");
    original.at(SEC).store.set(original.ctx(), entity(1), &path("a/b"), 2).expect("write");
    clone.send(&original);
    assert!(original.store.take_fork().is_some_and(|seen| seen <= stamp && seen.writer == stamp.writer));
    assert_eq!(original.store.take_fork(), None, "told once");
    original.store.renew(Incarnation(9));
    let after = original.store.set(original.ctx(), entity(1), &path("a/b"), 3).expect("write");
    assert_eq!((after.writer, original.store.incarnation()), (Incarnation(9), Incarnation(9)));
    clone.at(2 * SEC).store.set(clone.ctx(), entity(2), &path("x"), 2).expect("write");
    clone.send(&original);
    assert_eq!(original.store.take_fork(), None, "the clone is another writer now");
    assert_eq!(original.store.get(clone.ctx(), entity(2), &path("x")), Ok(2.into()));
}

/// What its own leaves were before they were cleared or overwritten comes back late: no fork.
#[test]
fn own_stamps_that_come_back_late_are_no_fork() {
    let (one, two) = (Peer::new(2), Peer::new(3));
    one.create(entity(1));
    for (p, value) in [("a/b", 1), ("k", 1), ("c/d", 1)] {
        one.store.set(one.ctx(), entity(1), &path(p), value).expect("write");
    }
    one.send(&two);
    one.at(SEC);
    one.store.remove(one.ctx(), entity(1), &path("a")).expect("remove");
    one.store.set(one.ctx(), entity(1), &path("c"), 5).expect("write");
    one.store.remove(one.ctx(), entity(1), &path("k")).expect("remove");
    two.send(&one);
    one.store.delete_entity(one.ctx(), entity(1)).expect("delete");
    two.send(&one);
    assert_eq!(one.store.take_fork(), None);
}
