//! Handle reads and writes of inline types allocate nothing.
mod common;

use coeval_value::Motion;
use common::{Peer, SEC, entity, path};

#[test]
fn handle_reads_and_writes_allocate_nothing() {
    let peer = Peer::new(2);
    let id = entity(1);
    peer.create(id);
    let number = peer.store.param::<f64>(id, &path("mass")).expect("param");
    let motion = peer.store.param::<Motion>(id, &path("motion")).expect("param");
    let moving = Motion { position: Some([1.0; 3]), velocity: Some([2.0; 3]), ..Motion::default() };
    let round = || {
        peer.pass(SEC / 1000);
        number.set(peer.ctx(), 3.5).expect("write");
        motion.set(peer.ctx(), moving).expect("write");
        peer.pass(SEC / 1000);
        assert_eq!(number.get(peer.ctx()), Ok(3.5));
        assert!(motion.read(peer.ctx()).is_ok());
        // Into the past as well: between samples.
        assert!(motion.read(peer.ctx().at(common::sim(0.0015))).is_ok());
    };
    // The first write makes the value, the second its history.
    (0..3).for_each(|_| round());
    let counted = allocation_counter::measure(|| (0..1000).for_each(|_| round()));
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
