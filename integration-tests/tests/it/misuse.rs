//! Bad input, wrong order, wrong session: an error that says so, never harm.
use crate::common::{host, join, mesh};
use coeval::{ErrorKind, Invite, InviteOptions, Motion, Peer, PeerEvent, PublishOptions, SessionId};
use coeval_integration_tests::{converge, eventually};
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(10);

fn refusal(invite: Invite) -> coeval::Error {
    Peer::join(invite).timeout(SHORT).open().expect_err("it must be refused")
}

#[test]
fn a_cut_off_or_mistyped_invite_is_told_from_a_good_one() {
    let text = host("a").invite().unwrap().to_string();
    assert!(text.parse::<Invite>().is_ok());
    for cut in [0, 1, text.len() / 2, text.len() - 1] {
        let error = text[..cut].parse::<Invite>().unwrap_err().to_string();
        assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
    }
    let mut typo = text.into_bytes();
    let middle = typo.len() / 2;
    typo[middle] = if typo[middle] == b'A' { b'B' } else { b'A' };
    assert!(String::from_utf8(typo).unwrap().parse::<Invite>().is_err());
}

#[test]
fn an_invite_admits_only_on_its_terms() {
    let a = host("a");
    let expired =
        a.invite_with(InviteOptions { expires_in: Duration::ZERO, ..InviteOptions::default() }).unwrap();
    let error = refusal(expired);
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("expired"), "{error}");

    let revoked = a.invite().unwrap();
    a.revoke(revoked.id).unwrap();
    assert_eq!(refusal(revoked.clone()).kind(), ErrorKind::Refused);
    assert_eq!(a.revoke(coeval::InviteId(1)).unwrap_err().kind(), ErrorKind::NotFound);

    let other = Invite { session: SessionId(coeval::EntityId::v7(0, [1; 10]).0), ..a.invite().unwrap() };
    assert_eq!(refusal(other).kind(), ErrorKind::Refused);

    let ever =
        a.invite_with(InviteOptions { expires_in: Duration::MAX, ..InviteOptions::default() }).unwrap();
    join_by(ever);
    assert!(a.stopped().is_none());
}

fn join_by(invite: Invite) -> Peer {
    Peer::join(invite).timeout(Duration::from_secs(30)).open().unwrap()
}

/// Each use counts once: an invite for three admits three.
#[test]
fn an_invite_admits_as_many_as_it_says() {
    let a = host("a");
    let invite = a.invite_with(InviteOptions { uses: 3, ..InviteOptions::default() }).unwrap();
    let joined: Vec<_> = (0..3).map(|_| join_by(invite.clone())).collect();
    assert_eq!(refusal(invite).kind(), ErrorKind::Refused);
    assert_eq!(joined.len(), 3);
}

/// Those who come at the same moment share the uses too.
#[test]
fn an_invite_for_one_admits_one_of_two_at_once() {
    let a = host("a");
    for _ in 0..5 {
        let invite = a.invite_with(InviteOptions { uses: 1, ..InviteOptions::default() }).unwrap();
        let tries: Vec<_> = (0..3)
            .map(|_| {
                let invite = invite.clone();
                std::thread::spawn(move || Peer::join(invite).timeout(SHORT).open().is_ok())
            })
            .collect();
        let admitted = tries.into_iter().map(|t| t.join().unwrap()).filter(|ok| *ok).count();
        assert_eq!(admitted, 1);
    }
}

/// An observer reads all and writes nothing.
#[test]
fn an_observer_never_writes() {
    let a = host("a");
    let invite = a.invite_with(InviteOptions { observer: true, ..InviteOptions::default() }).unwrap();
    assert_eq!(refusal(invite.clone()).kind(), ErrorKind::Refused);
    let base = a.create_entity("base").unwrap();
    base.set(a.context(), "x", 1_i64).unwrap();
    let watcher = Peer::join(invite).observer().open().unwrap();
    let seen = watcher.entity("base").unwrap();
    assert_eq!(seen.get_as::<i64>(watcher.context(), "x").unwrap(), 1);
    let kind = |result: coeval::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(seen.set(watcher.context(), "x", 2_i64)), ErrorKind::Refused);
    assert_eq!(kind(seen.delete()), ErrorKind::Refused);
    assert_eq!(kind(watcher.clock().pause().map(|_| ())), ErrorKind::Refused);
    assert_eq!(kind(watcher.create_entity("mine").map(|_| ())), ErrorKind::Refused);
    assert_eq!(kind(watcher.invite().map(|_| ())), ErrorKind::Refused);
    let mut batch = watcher.batch(watcher.context());
    batch.set(seen.id(), "x", 3_i64).unwrap();
    assert_eq!(kind(batch.commit().map(|_| ())), ErrorKind::Refused);
    let param = seen.param::<i64>("x").unwrap();
    assert_eq!(kind(param.set(watcher.context(), 4)), ErrorKind::Refused);
    base.set(a.context(), "x", 5_i64).unwrap();
    eventually("it goes on reading", || param.get(watcher.context()).is_ok_and(|x| x == 5));
    // Its replica is the session's: nothing of its own is in it.
    converge(&[&a, &watcher]);
}

#[test]
fn a_port_in_use_is_told() {
    let a = host("a");
    let error = Peer::host("b").listen(a.listen_addresses()[0]).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network, "{error}");
    assert!(error.to_string().contains(&a.listen_addresses()[0].to_string()), "{error}");
}

#[test]
fn wrong_reads_and_writes_say_what_is_wrong() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let base = a.create_entity("base").unwrap();
    base.set(a.context(), "x", "text").unwrap();
    converge(&[a, b]);
    let there = b.entity("base").unwrap();
    let param = there.param::<f64>("x").unwrap();
    let error = param.get(b.context()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType);
    for part in ["x", "text", "f64"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    base.set(a.context(), "x", 2.5).unwrap();
    converge(&[a, b]);
    assert_eq!(param.get(b.context()).unwrap(), 2.5, "a wrong type recovers");
    assert_eq!(there.get(b.context(), "none").unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(there.get(b.context(), "").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(b.entity("nobody").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(b.create_entity("base").unwrap_err().kind(), ErrorKind::Exists);
    there.delete().unwrap();
    converge(&[a, b]);
    assert_eq!(base.set(a.context(), "x", 1.0).unwrap_err().kind(), ErrorKind::Deleted);
    assert_eq!(param.get(b.context()).unwrap_err().kind(), ErrorKind::Deleted);
    assert_eq!(base.delete().map_err(|error| error.kind()).err(), Some(ErrorKind::Deleted));
    let sim = a.sim_entity().delete().unwrap_err();
    assert_eq!(sim.kind(), ErrorKind::Invalid, "{sim}");
}

/// Two that make the same name while apart both succeed; by name they are found no more, and both are listed.
#[test]
fn one_name_for_two_is_an_error_that_lists_both() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let notices = peers.each_ref().map(Peer::notices);
    b.set_conditioner(crate::common::cut());
    let (one, two) = (a.create_entity("twin").unwrap(), b.create_entity("twin").unwrap());
    b.set_conditioner(coeval::Conditioner::default());
    converge(&[a, b]);
    for peer in [a, b] {
        let error = peer.entity("twin").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ambiguous);
        for entity in [&one, &two] {
            assert!(error.to_string().contains(&entity.id().to_string()), "{error}");
        }
    }
    let mut both = vec![one.id(), two.id()];
    both.sort();
    for notices in &notices {
        let clashes: Vec<_> = std::iter::from_fn(|| notices.poll())
            .filter_map(|event| match event {
                PeerEvent::NameClash { name, ids } => Some((name.to_string(), ids)),
                _ => None,
            })
            .collect();
        assert_eq!(clashes, [("twin".to_owned(), both.clone())], "told once");
    }
}

#[test]
fn a_context_of_another_session_is_refused() {
    let (a, b) = (host("a"), host("b"));
    let base = a.create_entity("base").unwrap();
    assert_eq!(base.set(b.context(), "x", 1_i64).unwrap_err().kind(), ErrorKind::Invalid);
    let param = base.param::<i64>("x").unwrap();
    assert_eq!(param.set(b.context(), 1).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(base.get(a.context(), "x").unwrap_err().kind(), ErrorKind::Missing);
    let mut batch = a.batch(b.context());
    batch.set(base.id(), "x", 1_i64).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::Invalid);

    base.set(a.context(), "x", 1_i64).unwrap();
    base.set(a.context(), "pose/y", 2_i64).unwrap();
    let reads = [
        base.get(b.context(), "x").map(drop),
        base.get(b.context(), "pose").map(drop),
        base.get_as::<i64>(b.context(), "x").map(drop),
        base.map(b.context()).map(drop),
        param.get(b.context()).map(drop),
        param.read(b.context()).map(drop),
    ];
    for read in reads {
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(param.get(a.context()).unwrap(), 1);
    assert!(base.map(a.context()).is_ok());

    // Neither sent nor kept beside the register, also when readers' prediction would have been good enough.
    let motion = Motion::at([0.0; 3]);
    let mut publisher = base.publisher("motion", PublishOptions::default()).unwrap();
    assert_eq!(publisher.update(b.context(), motion).unwrap_err().kind(), ErrorKind::Invalid);
    publisher.update(a.context(), motion).unwrap();
    let moved = Motion::at([0.5, 0.0, 0.0]);
    assert_eq!(publisher.update(b.context(), moved).unwrap_err().kind(), ErrorKind::Invalid);
    let seen = base.get_as::<Motion>(a.context(), "motion").unwrap();
    assert_eq!(seen.position, motion.position);
}

#[test]
fn after_leaving_reads_work_and_writes_say_stopped() {
    let [a, b] = mesh(["a", "b"]);
    let base = b.create_entity("base").unwrap();
    let param = base.param::<i64>("x").unwrap();
    param.set(b.context(), 7).unwrap();
    let (clock, events, twin) = (b.clock(), b.events(), b.clone());
    b.leave(SHORT).unwrap();
    // What was written before leaving arrived.
    assert_eq!(a.entity("base").unwrap().get_as::<i64>(a.context(), "x").unwrap(), 7);
    let kind = |result: coeval::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(param.set(twin.context(), 8)), ErrorKind::Stopped);
    assert_eq!(kind(base.delete()), ErrorKind::Stopped);
    assert_eq!(kind(clock.pause().map(|_| ())), ErrorKind::Stopped);
    assert_eq!(kind(events.send("t", coeval::Target::All, 1_i64)), ErrorKind::Stopped);
    assert_eq!(kind(twin.flush(SHORT)), ErrorKind::Stopped);
    assert_eq!(kind(twin.invite().map(|_| ())), ErrorKind::Stopped);
    assert_eq!(param.get(twin.context()).unwrap(), 7);
    assert!(twin.peers().is_empty());
    eventually("it is gone, and known to have left", || a.peers().is_empty());
}

/// Dropping the last clone leaves; what was written just before it goes out.
#[test]
fn dropping_all_clones_leaves() {
    let [a, b] = mesh(["a", "b"]);
    let (clone, base) = (b.clone(), b.create_entity("base").unwrap());
    drop(b);
    assert!(clone.stopped().is_none(), "a clone lives");
    base.set(clone.context(), "x", 1_i64).unwrap();
    drop(clone);
    assert_eq!(base.set(a.context(), "x", 2_i64).unwrap_err().kind(), ErrorKind::Stopped);
    eventually("it is gone", || crate::common::direct(&a) == 0);
    let there = a.entity("base").expect("it arrived");
    assert_eq!(there.get_as::<i64>(a.context(), "x").unwrap(), 1);
}

/// A caller may have a runtime of its own, and open, use and drop peers inside it.
#[test]
fn peers_live_and_end_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let a = host("a");
        let b = join(&a, "b");
        let base = a.create_entity("base").unwrap();
        base.set(a.context(), "x", 1_i64).unwrap();
        a.flush(Duration::from_secs(30)).unwrap();
        assert_eq!(b.entity("base").unwrap().get_as::<i64>(b.context(), "x").unwrap(), 1);
        drop(a);
        b.leave(SHORT).unwrap();
    });
}

/// A join that cannot work ends by its time-out and leaves no thread behind.
#[test]
fn a_join_to_nobody_ends() {
    let gone = host("gone");
    let invite = gone.invite().unwrap();
    drop(gone);
    let error = Peer::join(invite).timeout(Duration::from_secs(1)).open().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Network | ErrorKind::Timeout), "{error}");
    assert_eq!(host("alone").flush(SHORT).unwrap_err().kind(), ErrorKind::NoPeers);
}
