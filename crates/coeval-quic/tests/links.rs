//! Links between drivers on the loopback: order, flow, ends, partitions, panics.
mod common;
use bytes::Bytes;
use coeval_quic::*;
use coeval_sync::{CloseReason, Effect};
use common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn session() -> Arc<Session> {
    Session::member(session_id(1), Secret([7; 32]))
}

#[test]
fn two_peers_exchange_messages_and_datagrams() {
    let echo = Peer::start_with(config("echo"), session(), |machine| machine.echo = true);
    let peer = Peer::member("caller");
    let dialed = peer.link_to(&echo);
    assert_eq!(dialed.peer.node, echo.node);
    assert_eq!(dialed.peer.name, "echo");
    assert_eq!(dialed.peer.addresses, [echo.io.local_addr().to_string()]);
    assert!(dialed.info.is_none(), "a member is given nothing new");
    let sizes = [0, 1, 100, 5_000, 300_000, 3_000_000];
    let messages: Vec<Bytes> = sizes.iter().map(|size| Bytes::from(vec![*size as u8; *size])).collect();
    peer.send(messages.clone());
    peer.until("all echoes", |seen| seen.messages.len() == sizes.len());
    assert_eq!(peer.seen().messages, messages);
    peer.until("flow control", |seen| seen.sent == sizes.iter().sum::<usize>());
    let link = dialed.link;
    peer.io
        .call(move |_, _, _| vec![Effect::Datagram { link, bytes: Bytes::from_static(b"dgram") }])
        .unwrap();
    peer.until("a datagram's echo", |seen| seen.datagrams == ["dgram"]);
    let huge = Bytes::from(vec![0; 100_000]);
    peer.io.call(move |_, _, _| vec![Effect::Datagram { link, bytes: huge }]).unwrap();
    until("the oversized datagram is counted", || peer.io.stats().dropped_datagrams == 1);
    let (_, caller, dialed) = echo.seen().up[0].clone();
    assert_eq!((caller.node, caller.name.as_str(), dialed), (peer.node, "caller", false));
}

#[test]
fn ten_thousand_messages_stay_in_order_over_a_lossy_link() {
    let lossy = |name, seed| {
        let mut config = config(name);
        config.conditioner = LinkConditioner::new(seed);
        config.conditioner.set("delay=2ms,jitter=1ms,loss=5%,duplicate=1%".parse().unwrap());
        Peer::start(config, session())
    };
    let (from, to) = (lossy("from", 1), lossy("to", 2));
    from.link_to(&to);
    let messages = numbered(10_000, 64);
    from.send(messages.clone());
    to.until("all messages", |seen| seen.messages.len() >= messages.len());
    assert_eq!(to.seen().messages, messages);
    let counts = from.io.conditioner().counts();
    assert!(counts.lost > 0 && counts.offered > counts.lost, "the link was bad indeed: {counts:?}");
    // Changed while running: the network is perfect from here on.
    from.io.conditioner().set(Conditioner::default());
    let offered = from.io.conditioner().counts().offered;
    from.send(numbered(100, 64));
    to.until("the rest", |seen| seen.messages.len() == messages.len() + 100);
    assert_eq!(from.io.conditioner().counts().offered, offered);
}

#[test]
fn bulk_passes_and_queues_stay_within_flow_control() {
    let (from, to) = (Peer::member("from"), Peer::member("to"));
    from.link_to(&to);
    from.send(numbered(2_000, 16_384));
    to.until("32 MB", |seen| seen.messages.len() == 2_000);
    assert_eq!(to.seen().messages, numbered(2_000, 16_384));
}

#[test]
fn silent_peer_goes_down_within_the_idle_timeout_and_can_return() {
    let impatient = |name| {
        let mut config = config(name);
        config.idle_timeout = Duration::from_millis(600);
        config.keep_alive = Duration::from_millis(150);
        Peer::start(config, session())
    };
    let (a, b) = (impatient("a"), impatient("b"));
    a.link_to(&b);
    b.until("the link", |seen| seen.up.len() == 1);
    // Keep-alives hold an idle link.
    std::thread::sleep(Duration::from_millis(1_000));
    assert!(a.seen().down.is_empty() && b.seen().down.is_empty());
    a.io.conditioner().partition(b.io.local_addr(), true);
    a.until("a sees the partition", |seen| seen.down.len() == 1);
    b.until("b sees the partition", |seen| seen.down.len() == 1);
    assert!(a.seen().down[0].1.contains("no answer"), "{:?}", a.seen().down);
    assert!(a.io.conditioner().counts().partitioned > 0);
    assert_eq!(b.io.stats().links, 0);
    a.io.conditioner().partition(b.io.local_addr(), false);
    let again = b.link_to(&a);
    assert!(!b.seen().down.iter().any(|(link, _)| *link == again.link), "a link's name is never reused");
}

#[test]
fn killed_peer_is_noticed_and_its_successor_accepted() {
    let mut first = config("victim");
    first.idle_timeout = Duration::from_millis(800);
    first.keep_alive = Duration::from_millis(200);
    let mut second = first.clone();
    second.incarnation = coeval_time::Incarnation(first.incarnation.0 ^ 2);
    second.bell = Bell::new();
    let watcher = Peer::member("watcher");
    let victim = Peer::start_with(first, session(), |machine| machine.panic_on_message = true);
    second.listen = victim.io.local_addr();
    watcher.link_to(&victim);
    watcher.send(vec![Bytes::from_static(b"die")]);
    watcher.until("the victim's death is noticed", |seen| seen.down.len() == 1);
    let successor = Peer::start(second, session());
    assert_eq!(watcher.link_to(&successor).peer.node, successor.node);
    assert_ne!(successor.node, victim.node);
    // The machine's own dial asks for the dead incarnation: it is told, and has a link all the same.
    let (node, addresses) = (victim.node, vec![successor.io.local_addr().to_string()]);
    let bystander = Peer::member("bystander");
    bystander.io.call(move |_, _, _| vec![Effect::Dial { node, addresses }]).unwrap();
    bystander.until("the answer", |seen| seen.dial_failed.len() == 1 && seen.up.len() == 1);
    assert!(bystander.seen().dial_failed[0].1.contains("restarted"));
}

#[test]
fn panic_in_the_machine_becomes_stopped_with_its_message() {
    let peer = Peer::member("peer");
    let panicking = peer.io.ask(|_, _, _| -> ((), Vec<Effect>) { panic!("the machine broke") });
    let error = panicking.unwrap_err();
    assert!(error.to_string().contains("the machine broke"), "{error}");
    assert_eq!(peer.io.check().unwrap_err(), error);
    assert_eq!(peer.io.call(|_, _, _| Vec::new()).unwrap_err(), error);
    let dial = peer.io.dial(peer.target()).wait(WAIT).unwrap_err();
    assert_eq!(dial, DialError::Stopped(error.clone()));
    peer.io.wake();
    assert_eq!(peer.io.shutdown(WAIT).unwrap_err(), error);
}

#[test]
fn two_peers_dialing_each_other_at_once_keep_the_same_one_link() {
    for _ in 0..5 {
        let start =
            |name| Peer::start_with(config(name), session(), |machine| machine.one_link_per_node = true);
        let (a, b) = (start("a"), start("b"));
        let (from_a, from_b) = (a.io.dial(b.target()), b.io.dial(a.target()));
        from_a.wait(WAIT).unwrap();
        from_b.wait(WAIT).unwrap();
        until("one link on both sides", || a.links().len() == 1 && b.links().len() == 1);
        until("two links came up", || a.seen().up.len() == 2 && b.seen().up.len() == 2);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((a.links().len(), b.links().len()), (1, 1));
        a.send(numbered(10, 10));
        b.until("it works", |seen| seen.messages.len() == 10);
        let dialed = |peer: &Peer| peer.seen().up.iter().find(|up| up.0 == peer.links()[0]).unwrap().2;
        assert_ne!(dialed(&a), dialed(&b), "it is the same link");
    }
}

#[test]
fn repeated_dial_of_a_linked_node_makes_no_second_link() {
    let (a, b) = (Peer::member("a"), Peer::member("b"));
    let (node, addresses) = (b.node, vec![b.io.local_addr().to_string()]);
    for _ in 0..3 {
        let (node, addresses) = (node, addresses.clone());
        a.io.call(move |_, _, _| vec![Effect::Dial { node, addresses }]).unwrap();
    }
    a.until("the link", |seen| seen.up.len() == 1);
    a.io.call(move |_, _, _| vec![Effect::Dial { node, addresses }]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(a.seen().up.len(), 1);
    assert!(a.seen().dial_failed.is_empty());
    let nowhere = vec!["not an address".to_owned()];
    let ghost = coeval_value::NodeId { peer: b.node.peer, incarnation: coeval_time::Incarnation(99) };
    a.io.call(move |_, _, _| vec![Effect::Dial { node: ghost, addresses: nowhere }]).unwrap();
    a.until("the failure", |seen| seen.dial_failed.len() == 1);
    assert!(a.seen().dial_failed[0].1.contains("not an address"));
}

#[test]
fn drop_inside_a_runtime_does_not_panic_and_tells_the_others() {
    let other = Peer::member("other");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let peer = Peer::member("peer");
        peer.link_to(&other);
        drop(peer);
    });
    other.until("the end", |seen| seen.down.len() == 1);
    assert_eq!(other.seen().down[0].1, "the peer left");
}

#[test]
fn shutdown_delivers_what_is_queued() {
    let to = Peer::member("to");
    let from = Peer::member("from");
    from.link_to(&to);
    let link = from.links()[0];
    // Past the machine's own flow control: all of it waits in the driver.
    let sends = numbered(200, 20_000).into_iter().map(move |bytes| Effect::Send { link, bytes }).collect();
    from.io.call(move |_, _, _| sends).unwrap();
    from.io.shutdown(WAIT).unwrap();
    to.until("the end", |seen| seen.down.len() == 1);
    assert_eq!(to.seen().messages.len(), 200);
    assert_eq!(from.seen.lock().down.len(), 1, "the machine saw its link end");
}

/// An instant so far away overflowed.
#[test]
fn shutdown_that_may_take_for_ever_ends_when_it_is_done() {
    let (a, b) = (Peer::member("a"), Peer::member("b"));
    a.link_to(&b);
    a.send(numbered(10, 100));
    a.io.shutdown(Duration::MAX).unwrap();
    b.until("the end", |seen| seen.down.len() == 1);
    assert_eq!(b.seen().messages.len(), 10);
}

#[test]
fn close_by_the_machine_carries_its_reason_after_the_last_message() {
    let (a, b) = (Peer::member("a"), Peer::member("b"));
    let link = a.link_to(&b).link;
    let reason = CloseReason::Protocol("a batch out of order".into());
    a.io.call(move |_, _, _| {
        vec![Effect::Send { link, bytes: Bytes::from_static(b"last words") }, Effect::Close { link, reason }]
    })
    .unwrap();
    b.until("the end", |seen| seen.down.len() == 1);
    assert_eq!(b.seen().messages, ["last words"]);
    assert_eq!(b.seen().down[0].1, "protocol error: a batch out of order");
    assert!(a.seen().down[0].1.starts_with("closed here"));
    until("no link is left", || a.io.stats().links == 0 && b.io.stats().links == 0);
}

#[test]
fn overlong_message_ends_the_link_on_both_sides() {
    let mut strict = config("strict");
    strict.max_message = 1_000;
    let (a, b) = (Peer::member("a"), Peer::start(strict, session()));
    a.link_to(&b);
    a.send(numbered(1, 1_001));
    a.until("the end here", |seen| seen.down.len() == 1);
    b.until("the end there", |seen| seen.down.len() == 1);
    assert!(a.seen().down[0].1.contains("1001 bytes"), "{:?}", a.seen().down);
    assert!(b.seen().messages.is_empty());
}

#[test]
fn reader_that_never_keeps_up_is_cut_off_not_buffered_for_ever() {
    let mut small = config("small");
    small.max_queue = 1 << 20;
    let (a, b) = (Peer::start(small, session()), Peer::member("b"));
    let link = a.link_to(&b).link;
    a.io.conditioner().partition(b.io.local_addr(), true);
    let sends = numbered(500, 20_000).into_iter().map(move |bytes| Effect::Send { link, bytes }).collect();
    a.io.call(move |_, _, _| sends).unwrap();
    a.until("the end", |seen| seen.down.len() == 1);
    assert!(a.seen().down[0].1.contains("too slowly"), "{:?}", a.seen().down);
}

#[test]
fn timers_fire_and_wakes_are_gathered_but_never_lost() {
    let peer = Peer::start_with(config("peer"), session(), |machine| machine.ticks = 5);
    peer.io
        .call(|machine, now, _| {
            machine.start_ticks(now);
            Vec::new()
        })
        .unwrap();
    peer.until("five ticks", |seen| seen.timers == 5);
    let before = peer.seen().wakes;
    let rings = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while start.elapsed() < Duration::from_millis(200) {
                    peer.io.wake();
                    rings.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let wakes = peer.seen().wakes - before;
    let rings = rings.into_inner();
    assert!(wakes >= 2 && wakes < rings / 2, "{wakes} wakes for {rings} rings");
    // Let the pump park; then each ring is answered.
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(10));
        let before = peer.seen().wakes;
        peer.io.wake();
        peer.until("the pump wakes", |seen| seen.wakes > before);
    }
}

#[test]
fn steady_traffic_does_not_put_local_changes_off() {
    let echo = || Peer::start_with(config("echo"), session(), |machine| machine.echo = true);
    let (a, b) = (echo(), echo());
    a.link_to(&b);
    // Messages that bounce for ever keep the links' events coming.
    a.send(numbered(32, 64));
    a.until("it bounces", |seen| seen.messages.len() > 200);
    let (before, start) = (a.seen().wakes, Instant::now());
    while start.elapsed() < Duration::from_millis(300) {
        a.io.wake();
        std::thread::sleep(Duration::from_micros(20));
    }
    let wakes = a.seen().wakes - before;
    assert!(wakes > 30, "{wakes} flushes in 300 ms of changes");
}
