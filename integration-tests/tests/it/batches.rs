//! Batches: seen whole or not at all, also from afar.
use crate::common::mesh;
use coeval::Path;
use coeval_integration_tests::{NEVER, converge, eventually};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUNDS: i64 = 2_000;

#[test]
fn a_batch_is_never_seen_torn() {
    let peers = mesh(["writer", "reader"]);
    let [writer, reader] = &peers;
    let pair = writer.create_entity("pair").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ROUNDS {
                let mut batch = writer.batch(writer.context());
                batch.set(pair.id(), "left", n).unwrap();
                batch.set(pair.id(), "right/deep", -n).unwrap();
                batch.commit().unwrap();
                if n % 50 == 0 {
                    // Else most rounds are conflated to one.
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| snapshots_are_whole(reader, &done));
        scope.spawn(|| rounds_of_a_watch_are_whole(reader, &done));
    });
    converge(&[writer, reader]);
    let there = reader.entity("pair").unwrap();
    assert_eq!(there.get_as::<i64>(reader.context(), "left").unwrap(), ROUNDS - 1);
    assert_eq!(there.get_as::<i64>(reader.context(), "right/deep").unwrap(), 1 - ROUNDS);
}

/// In each snapshot of the remote peer both parameters are of one batch.
fn snapshots_are_whole(reader: &coeval::Peer, done: &AtomicBool) {
    let (left, right) = (Path::parse("left").unwrap(), Path::parse("right/deep").unwrap());
    let mut seen = std::collections::BTreeSet::new();
    while !done.load(Ordering::Acquire) {
        let Ok(entity) = reader.entity("pair") else { continue };
        let snapshot = reader.snapshot();
        let stamp = |path| snapshot.leaf(entity.id(), path).map(|leaf| leaf.stamp);
        assert_eq!(stamp(&left), stamp(&right), "a snapshot shows half a batch");
        seen.extend(stamp(&left));
        std::thread::sleep(Duration::from_micros(500));
    }
    assert!(seen.len() > 3, "only {} batches were seen: nothing was tried", seen.len());
}

/// Each round of a watch tells of both parameters or of none.
fn rounds_of_a_watch_are_whole(reader: &coeval::Peer, done: &AtomicBool) {
    let watch = reader.watch("pair/**").unwrap();
    let mut rounds = 0;
    while !done.load(Ordering::Acquire) {
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for event in watch.wait(Duration::from_millis(20)) {
            *told.entry(event.path.unwrap().to_string()).or_default() += 1;
        }
        told.remove("name");
        // The map that holds one of them is a slot of its own.
        told.remove("right");
        let keys: Vec<_> = told.keys().map(String::as_str).collect();
        assert!(keys.is_empty() || keys == ["left", "right/deep"], "half a batch was told of: {keys:?}");
        rounds += usize::from(!keys.is_empty());
    }
    assert!(rounds > 3, "only {rounds} rounds: nothing was tried");
}

/// The end of an entity is told to those who watch it by its name.
#[test]
fn a_watch_by_name_tells_of_the_deletion() {
    let peers = mesh(["writer", "reader"]);
    let [writer, reader] = &peers;
    let planes = reader.watch("plane*").unwrap();
    let others = reader.watch("ship*").unwrap();
    let plane = writer.create_entity("plane7").unwrap();
    let told = |kind| {
        eventually(&format!("{kind:?} is told"), || {
            planes
                .wait(Duration::from_millis(100))
                .iter()
                .any(|event| event.entity == plane.id() && event.path.is_none() && event.kind == kind)
        });
    };
    told(coeval::ChangeKind::Created);
    plane.delete().unwrap();
    told(coeval::ChangeKind::Removed);
    assert!(others.poll().is_empty(), "nobody made a ship");
}

/// A task that awaits a watch is woken by what matches, and by nothing else.
#[test]
fn a_watch_is_awaited_on_any_runtime() {
    let peers = mesh(["writer", "reader"]);
    let [writer, reader] = &peers;
    let planes = reader.watch("plane*").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let soon = runtime.block_on(async {
        writer.create_entity("ship1").unwrap();
        tokio::time::timeout(Duration::from_millis(300), planes.changed()).await
    });
    assert!(soon.is_err(), "a ship is no plane");
    let plane = runtime.block_on(async {
        let write = async { writer.create_entity("plane1").unwrap().id() };
        let (plane, told) = tokio::join!(write, tokio::time::timeout(NEVER, planes.changed()));
        assert_eq!(told.unwrap()[0].entity, plane);
        plane
    });
    writer.entity_by_id(plane).unwrap().delete().unwrap();
    let removed = runtime.block_on(async {
        loop {
            let events = tokio::time::timeout(NEVER, planes.changed()).await.unwrap();
            if let Some(event) = events.into_iter().find(|event| event.kind == coeval::ChangeKind::Removed) {
                return event.entity;
            }
        }
    });
    assert_eq!(removed, plane);
}

/// Two entities of one name in one batch are as refused as in two.
#[test]
fn a_batch_makes_no_two_entities_of_one_name() {
    let peer = crate::common::host("alone");
    let mut batch = peer.batch(peer.context());
    batch.create("twin").unwrap();
    assert_eq!(batch.create("twin").unwrap_err().kind(), coeval::ErrorKind::Exists);
    batch.commit().unwrap();
    peer.entity("twin").unwrap();
}
