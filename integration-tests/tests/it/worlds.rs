//! Checkpoints: saved, damaged, restored, while peers are there and while they are not.
use crate::common::{cut, host, mesh};
use coeval::{Checkpoint, Conditioner, ErrorKind, Path, Peer, PeerEvent, PeerNotices};
use coeval_integration_tests::{NEVER, converge, eventually, keep};
use std::time::Duration;

/// The next restore that a peer is told of: which world, and the parameters that fell.
fn told(notices: &PeerNotices) -> (u64, Vec<Option<Path>>) {
    loop {
        let told = notices.wait(NEVER).expect("told in time");
        if let PeerEvent::WorldRestored { world, fallen, .. } = told {
            return (world, fallen.into_iter().map(|(_, path)| path).collect());
        }
    }
}

fn path(text: &str) -> Option<Path> {
    Some(Path::parse(text).unwrap())
}

/// Save at T1, run to T2, restore while one peer is cut off: all end with what was at T1, the clock at T1 and paused; the
/// one that returns brings nothing back and learns which of its writes fell.
#[test]
fn a_restore_takes_everyone_back_and_who_was_cut_off_too() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    let base = a.create_entity("base").unwrap();
    base.set(a.context(), "x", 1_i64).unwrap();
    a.clock().set_scale(4.0).unwrap();
    converge(&[a, b, c]);
    let saved = a.checkpoint();
    let there = c.entity("base").unwrap();
    let handle = there.param::<i64>("x").unwrap();
    let notices = [a.notices(), b.notices(), c.notices()];
    base.set(a.context(), "x", 2_i64).unwrap();
    converge(&[a, b, c]);
    c.set_conditioner(cut());
    handle.set(c.context(), 3).unwrap();
    there.set(c.context(), "mine", 4_i64).unwrap();
    let generation = b.context().generation;
    assert_eq!(b.restore(&saved).unwrap(), 1);
    eventually("a follows", || a.world() == 1);
    keep("c hears nothing", Duration::from_millis(300), || c.world() == 0);
    c.set_conditioner(Conditioner::default());
    eventually("c follows", || c.world() == 1);
    converge(&[a, b, c]);
    for peer in [a, b, c] {
        assert_eq!(peer.checkpoint().digest(), saved.digest());
        let state = peer.clock().state();
        assert_eq!((state.sim, state.segment.scale, state.segment.paused), (saved.sim(), 4.0, true));
    }
    assert!(b.context().generation > generation);
    assert_eq!(told(&notices[0]), (1, vec![path("x")]));
    assert_eq!(told(&notices[1]), (1, vec![]));
    assert_eq!(told(&notices[2]), (1, vec![path("x"), path("mine")]));
    // Handles held across it go on, and the session with them: also for those who join later.
    assert_eq!(handle.get(c.context()).unwrap(), 1);
    handle.set(c.context(), 9).unwrap();
    a.clock().resume().unwrap();
    converge(&[a, b, c]);
    assert_eq!(base.get_as::<i64>(a.context(), "x").unwrap(), 9);
    let late = Peer::join(b.invite().unwrap()).peer_name("late").open().unwrap();
    converge(&[a, b, c, &late]);
    assert_eq!((late.world(), late.clock().state().segment.paused), (1, false));
    assert_eq!(late.entity("base").unwrap().get_as::<i64>(late.context(), "x").unwrap(), 9);
}

#[test]
fn checkpoint_files_that_are_damaged_cut_or_of_another_session_are_refused_in_words() {
    let (a, other) = (host("a"), host("other"));
    let base = a.create_entity("base").unwrap();
    base.set(a.context(), "x", 1_i64).unwrap();
    let file = std::env::temp_dir().join(format!("coeval-checkpoint-{}", rand::random::<u64>()));
    a.checkpoint().save(&file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let loaded = Checkpoint::load(&file).unwrap();
    assert_eq!(loaded.digest(), a.checkpoint().digest());
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = Checkpoint::load(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    assert!(refused(&bytes[..bytes.len() - 1]).contains("cut off"));
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(refused(&damaged).contains("damaged"));
    assert!(refused(b"something else").contains("not a checkpoint"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(Checkpoint::load(&file).unwrap_err().kind(), ErrorKind::NotFound);
    let foreign = other.restore(&loaded).unwrap_err();
    assert!(foreign.kind() == ErrorKind::Invalid && foreign.to_string().contains("session"), "{foreign}");
    assert_eq!((other.world(), a.restore(&loaded).unwrap()), (0, 1));
    assert_eq!(base.get_as::<i64>(a.context(), "x").unwrap(), 1);
}
