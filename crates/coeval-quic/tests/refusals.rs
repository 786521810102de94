//! What must not become a link, and what each refusal tells the user; joining by invite.
mod common;
use bytes::Bytes;
use coeval_quic::*;
use common::*;
use std::net::UdpSocket;
use std::time::Duration;

fn refused(outcome: Result<Dialed, DialError>) -> Refusal {
    match outcome {
        Err(DialError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn joiner(session: u128) -> Peer {
    Peer::start(config("joiner"), Session::joiner(session_id(session)))
}

fn try_join(peer: &Peer, invite: Invite) -> Result<Dialed, DialError> {
    peer.io.dial(Target::Invite(invite)).wait(WAIT)
}

#[test]
fn invite_gives_the_session_and_any_member_can_admit() {
    let host = Peer::member("host");
    let guest = joiner(1);
    let text = host.invite(1).to_string();
    let dialed = try_join(&guest, text.parse().unwrap()).unwrap();
    assert_eq!(dialed.info, host.session.info());
    assert_eq!(guest.session.session_key(), host.session.session_key());
    let admitted = host.session.state.lock().admitted.clone();
    assert_eq!((admitted[0].0.node, admitted[0].1), (guest.node, Some(InviteId(1))));
    // The guest is a member now: it invites another, and both it and the host can be dialed as members.
    let second = joiner(1);
    try_join(&second, guest.invite(2)).unwrap();
    second.link_to(&host);
    assert_eq!(host.session.state.lock().admitted[1].1, None, "a member needs no invite");
    // Used again by a member, the invite only says where to dial.
    assert!(try_join(&second, host.invite(3)).unwrap().info.is_none());
}

#[test]
fn wrong_key_at_the_address_is_told_apart_from_no_answer() {
    let host = Peer::member("host");
    let mut invite = host.invite(1);
    invite.host_key = Identity::generate().unwrap().peer();
    let error = try_join(&joiner(1), invite).unwrap_err();
    assert!(
        matches!(&error, DialError::WrongKey { address, .. } if *address == host.io.local_addr()),
        "{error}"
    );
    assert!(host.seen().up.is_empty());
    let mut nobody = host.invite(2);
    nobody.addresses = vec![UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()];
    let mut hasty = config("hasty");
    hasty.dial_timeout = Duration::from_millis(300);
    let guest = Peer::start(hasty, Session::joiner(session_id(1)));
    let error = try_join(&guest, nobody.clone()).unwrap_err();
    assert!(matches!(&error, DialError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&nobody.addresses[0].to_string()), "{error}");
    let mut empty = host.invite(3);
    empty.addresses.clear();
    assert_eq!(try_join(&guest, empty).unwrap_err(), DialError::NoAddress);
}

#[test]
fn second_address_is_tried_when_the_first_is_silent() {
    let host = Peer::member("host");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut invite = host.invite(1);
    invite.addresses.insert(0, silent.local_addr().unwrap());
    try_join(&joiner(1), invite).unwrap();
}

#[test]
fn bad_proofs_are_refused_and_give_nothing_away() {
    let host = Peer::member("host");
    let mut invite = host.invite(1);
    invite.secret.0[5] ^= 1;
    let guest = joiner(1);
    let refusal = refused(try_join(&guest, invite));
    assert_eq!(refusal.code, RefusalCode::BadProof);
    assert!(guest.session.session_key().is_none());
    let stranger = Peer::start(config("stranger"), Session::member(session_id(1), Secret([8; 32])));
    assert_eq!(refused(stranger.io.dial(host.target()).wait(WAIT)).code, RefusalCode::BadProof);
    until("both are counted", || host.io.stats().refused_links == 2);
    assert!(host.seen().up.is_empty() && host.session.state.lock().admitted.is_empty());
}

#[test]
fn host_that_does_not_know_the_secret_is_refused_by_the_joiner() {
    // An impostor with the right key file but no session: it accepts any invite id with a secret of its own.
    let host = Peer::member("host");
    let invite = host.invite(1);
    host.session.state.lock().invites.insert(InviteId(1), Ok(Secret([0; 32])));
    assert_eq!(refused(try_join(&joiner(1), invite)).code, RefusalCode::BadProof);
}

#[test]
fn session_states_of_an_invite_reach_the_dialer_in_words() {
    let host = Peer::member("host");
    let guest = joiner(1);
    let expired = host.invite(1);
    let refusal = Refusal::new(RefusalCode::InviteExpired, "the invite expired 60 s ago; ask for a new one");
    host.session.state.lock().invites.insert(InviteId(1), Err(refusal.clone()));
    assert_eq!(refused(try_join(&guest, expired)), refusal);
    let revoked = host.invite(2);
    let refusal = Refusal::standard(RefusalCode::InviteRevoked);
    host.session.state.lock().invites.insert(InviteId(2), Err(refusal.clone()));
    assert_eq!(refused(try_join(&guest, revoked)), refusal);
    let unknown = host.invite(3);
    host.session.state.lock().invites.remove(&InviteId(3));
    assert_eq!(refused(try_join(&guest, unknown)).code, RefusalCode::InviteUnknown);
    let counted = host.invite(4);
    host.session.state.lock().uses_left = Some(1);
    try_join(&guest, counted.clone()).unwrap();
    assert_eq!(refused(try_join(&joiner(1), counted)).code, RefusalCode::InviteUsedUp);
}

#[test]
fn other_session_is_named_on_both_ways() {
    let host = Peer::member("host");
    // The joiner wants another session than the invite's: it does not even dial.
    let refusal = refused(try_join(&joiner(2), host.invite(1)));
    assert_eq!(refusal.code, RefusalCode::OtherSession);
    // The invite's session is not the one found at its address.
    let mut invite = host.invite(2);
    invite.session = session_id(2);
    let refusal = refused(try_join(&joiner(2), invite));
    assert_eq!(refusal.code, RefusalCode::OtherSession);
    let (ours, theirs) = (session_id(1).0.to_string(), session_id(2).0.to_string());
    assert!(refusal.text.contains(&ours) && refusal.text.contains(&theirs), "{refusal}");
}

#[test]
fn other_version_is_told_with_both_numbers() {
    let host = Peer::member("host");
    let mut newer = config("newer");
    newer.protocol = 9;
    let guest = Peer::start(newer, Session::joiner(session_id(1)));
    let refusal = refused(try_join(&guest, host.invite(1)));
    assert_eq!(refusal.code, RefusalCode::Version);
    assert!(refusal.text.contains("version 2, the other 9"), "{refusal}");
}

#[test]
fn observers_can_be_refused() {
    let host = Peer::member("host");
    host.session.state.lock().no_observers = true;
    let mut config = config("observer");
    config.observer = true;
    let guest = Peer::start(config, Session::joiner(session_id(1)));
    assert_eq!(refused(try_join(&guest, host.invite(1))).code, RefusalCode::ObserverNotAllowed);
    host.session.state.lock().no_observers = false;
    try_join(&guest, host.invite(2)).unwrap();
    host.until("it is up", |seen| seen.up.len() == 1);
    assert!(host.seen().up[0].1.observer);
}

#[test]
fn non_members_neither_dial_nor_admit() {
    let (a, b) = (joiner(1), joiner(1));
    assert_eq!(a.io.dial(b.target()).wait(WAIT).unwrap_err(), DialError::NoCredential);
    let mut invite = b.invite(1);
    invite.secret = Secret([1; 32]);
    assert_eq!(refused(try_join(&a, invite)).code, RefusalCode::NotReady);
}

#[test]
fn dialing_oneself_says_so_and_a_full_peer_says_so() {
    let host = Peer::member("host");
    assert_eq!(refused(host.io.dial(host.target()).wait(WAIT)).code, RefusalCode::Itself);
    let mut narrow = config("narrow");
    narrow.max_links = 1;
    let narrow = Peer::start(narrow, Session::member(session_id(1), Secret([7; 32])));
    host.link_to(&narrow);
    let late = Peer::member("late");
    narrow.until("the first link", |seen| seen.up.len() == 1);
    assert_eq!(refused(late.io.dial(narrow.target()).wait(WAIT)).code, RefusalCode::Full);
}

#[test]
fn garbage_on_the_port_is_ignored_and_counted() {
    let (a, b) = (Peer::member("a"), Peer::member("b"));
    a.link_to(&b);
    let vandal = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut rng = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(11);
    for round in 0..400usize {
        let mut garbage = vec![0u8; 1 + round * 3 % 1_300];
        rand::RngCore::fill_bytes(&mut rng, &mut garbage);
        vandal.send_to(&garbage, b.io.local_addr()).unwrap();
        if round % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // A plain-text request, too: somebody will point a browser at it.
    vandal.send_to(b"GET / HTTP/1.1\r\n\r\n", b.io.local_addr()).unwrap();
    until("most of it is counted", || b.io.stats().foreign_datagrams > 300);
    a.send(numbered(100, 1_000));
    b.until("the link works", |seen| seen.messages.len() == 100);
    assert_eq!(b.seen().up.len(), 1);
    assert!(b.seen().down.is_empty());
    assert_eq!(a.io.stats().foreign_datagrams, 0, "traffic of links is not foreign");
}

#[test]
fn port_in_use_and_foreign_addresses_are_clear_errors() {
    let host = Peer::member("host");
    let start = |listen: std::net::SocketAddr| {
        let mut config = config("second");
        config.listen = listen;
        let seen = Default::default();
        let machine = Silent(seen);
        spawn(config, machine, Session::joiner(session_id(1)), |_| {}).map(|_| ()).unwrap_err()
    };
    let error = start(host.io.local_addr());
    assert!(matches!(error, BindError::InUse { address } if address == host.io.local_addr()), "{error}");
    assert!(error.to_string().contains("choose another port"), "{error}");
    let error = start("203.0.113.7:4000".parse().unwrap());
    assert!(matches!(error, BindError::NotHere { .. }), "{error}");
}

/// A machine that does nothing.
struct Silent(std::sync::Arc<parking_lot::Mutex<Seen>>);

impl coeval_sync::Machine for Silent {
    fn handle(
        &mut self,
        _: coeval_sync::Input,
        _: coeval_sync::Now,
        _: &mut dyn rand::RngCore,
    ) -> Vec<coeval_sync::Effect> {
        self.0.lock().wakes += 1;
        Vec::new()
    }

    fn next_timer(&self) -> Option<coeval_time::MonoTime> {
        None
    }
}

#[test]
fn all_interfaces_give_addresses_that_can_be_dialed() {
    let mut everywhere = config("everywhere");
    everywhere.listen = "[::]:0".parse().unwrap();
    let host = Peer::start(everywhere, Session::member(session_id(1), Secret([7; 32])));
    let addresses = host.io.listen_addresses();
    assert!(!addresses.is_empty() && addresses.iter().all(|a| !a.ip().is_unspecified() && a.port() != 0));
    try_join(&joiner(1), host.invite(1)).unwrap();
}

#[test]
fn refused_dialers_do_not_keep_a_good_peer_out() {
    // Refusals leave nothing behind that would keep a good peer out.
    let host = Peer::member("host");
    let stranger = Peer::start(config("stranger"), Session::member(session_id(1), Secret([8; 32])));
    let dials: Vec<_> = (0..20).map(|_| stranger.io.dial(host.target())).collect();
    for dial in dials {
        assert_eq!(refused(dial.wait(WAIT)).code, RefusalCode::BadProof);
    }
    let friend = Peer::member("friend");
    friend.link_to(&host);
    friend.send(vec![Bytes::from_static(b"hello")]);
    host.until("the message", |seen| seen.messages == ["hello"]);
}
