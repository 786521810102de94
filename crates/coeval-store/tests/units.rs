//! What goes out and comes in together: what of a change was written here, and batches that are refused.
mod common;

use coeval_merge::{Fate, LinkTag, Refusal, Replica, SlotId, SlotState};
use coeval_time::Stamp;
use coeval_value::{EntityId, Value};
use common::{Peer, SEC, entity, path, settle};

fn id() -> EntityId {
    entity(9)
}

/// Two peers that both know one entity.
fn pair() -> (Peer, Peer) {
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.create(id());
    settle(&[&a, &b]);
    (a, b)
}

fn set(peer: &Peer, text: &str, value: impl Into<Value>) -> Stamp {
    peer.store.set(peer.ctx(), id(), &path(text), value).expect("write")
}

/// What `a` drains, as fragments for `b`.
fn fragments(a: &Peer, b: &Peer) -> Vec<(SlotId, SlotState)> {
    let changes = a.store.drain().changes.into_iter();
    let keyed = changes.map(|change| (a.store.key(change.slot).expect("own slot"), change.state));
    keyed.map(|(key, state)| (b.store.resolve(&key).expect("room"), state)).collect()
}

#[test]
fn a_batch_overtaken_before_it_was_sent_is_known_to_be() {
    // By a write to the same path, in the fast way and in the slow one; by a write below; by the entity's deletion.
    let overtake: [&dyn Fn(&Peer); 4] = [
        &|a| _ = set(a, "x", 9),
        &|a| _ = a.store.remove(a.ctx(), id(), &path("x")).expect("remove"),
        &|a| _ = set(a, "x/below", 9),
        &|a| _ = a.store.delete_entity(a.ctx(), id()).expect("delete"),
    ];
    for overtake in overtake {
        let (a, b) = pair();
        set(&a, "x", 1);
        a.send(&b);
        b.store.drain();
        set(&b, "x", 2);
        a.at(9 * SEC);
        overtake(&a);
        let states = fragments(&a, &b);
        let applied = b.store.apply(LinkTag(2), &states, Vec::new());
        assert!(applied.fates.contains(&Fate::Overtook), "{applied:?}");
        b.store.drain();
        let applied = b.store.apply(LinkTag(2), &states, Vec::new());
        assert!(applied.fates.iter().all(|fate| *fate == Fate::Superseded), "{applied:?}");
    }
}

#[test]
fn a_batch_of_which_a_part_is_refused_is_refused_whole() {
    let (a, _) = pair();
    let b = Peer::with(3, |config| config.limits.orphans = 1);
    a.store.drain();
    let other = entity(77);
    a.create(other);
    // `b` does not know the first entity.
    let states = fragments(&a, &b);
    assert!(b.store.apply(LinkTag(2), &states, Vec::new()).refused.is_empty());
    let mut batch = a.store.batch(a.ctx());
    for (entity, at) in [(other, "p"), (id(), "x"), (id(), "y")] {
        batch.set(entity, &path(at), 1).expect("set");
    }
    batch.commit().expect("commit");
    a.store.set(a.ctx(), other, &path("z"), 1).expect("write");
    let states = fragments(&a, &b);
    let applied = b.store.apply(LinkTag(2), &states, Vec::new());
    let refused: Vec<Refusal> = applied.refused.iter().map(|(_, why)| *why).collect();
    assert_eq!(refused.len(), 3, "{applied:?}");
    assert!(refused.contains(&Refusal::Mate) && refused.contains(&Refusal::Limit));
    assert_eq!(applied.changed, 1, "what another write did is not refused with them: {applied:?}");
    assert_eq!(b.store.counters().orphans, 0);
}

#[test]
fn a_handle_on_an_entity_yet_to_come_is_no_orphan() {
    let b = Peer::with(3, |config| config.limits.orphans = 0);
    let x = b.store.param::<f64>(id(), &path("x")).expect("param");
    assert_eq!(b.store.counters().orphans, 0);
    let a = Peer::new(2);
    a.create(id());
    set(&a, "x", 4.0);
    a.send(&b);
    assert_eq!(x.get(b.ctx()), Ok(4.0));
}

#[test]
fn an_entity_comes_whole_however_near_its_limit() {
    let limit = |config: &mut coeval_store::StoreConfig| config.limits.paths_per_entity = 120;
    let (a, b) = (Peer::with(2, limit), Peer::with(3, limit));
    a.create(id());
    // 64 paths of one key; 8 maps, each with 3 below it.
    (0..64).for_each(|n| _ = set(&a, &format!("k{n}"), n));
    (0..24).for_each(|n| _ = set(&a, &format!("m{}/x{n}", n / 3), n));
    let states = fragments(&a, &b);
    let applied = b.store.apply(LinkTag(2), &states, Vec::new());
    assert_eq!(applied.refused, Vec::new());
    assert_eq!(a.store.digest(), {
        b.store.drain();
        b.store.digest()
    });
}
