//! Events: each exactly once, in order, to all who are there and to nobody else.
use crate::common::{bad_net, cut, join, mesh};
use coeval::{Conditioner, ErrorKind, EventStream, Outcome, Peer, Target};
use coeval_integration_tests::{converge, eventually};
use std::time::{Duration, Instant};

fn numbers(stream: &EventStream) -> Vec<i64> {
    std::iter::from_fn(|| stream.poll()).map(|event| i64::try_from(&event.value).unwrap()).collect()
}

fn send(peer: &Peer, number: i64) {
    // Busy is an answer, not a loss: nothing was sent.
    eventually("room for an event", || match peer.events().send("count", Target::All, number) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            false
        }
    });
}

#[test]
fn events_pass_loss_and_a_partition_once_and_in_order() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    let streams = [b.events().subscribe("count"), c.events().subscribe("*")];
    let not_ours = b.events().subscribe("other*");
    a.set_conditioner(bad_net(20, 0.05));
    for number in 0..200 {
        send(a, number);
    }
    a.set_conditioner(cut());
    for number in 200..300 {
        send(a, number);
    }
    std::thread::sleep(Duration::from_secs(1));
    a.set_conditioner(Conditioner::default());
    for number in 300..400 {
        send(a, number);
    }
    let late = join(b, "late");
    let nothing = late.events().subscribe("*");
    a.events().delivered(Duration::from_secs(30)).unwrap();
    let all: Vec<i64> = (0..400).collect();
    for stream in &streams {
        let mut got = numbers(stream);
        eventually("all events", || {
            got.extend(numbers(stream));
            got.len() >= all.len()
        });
        assert_eq!(got, all);
        assert_eq!(stream.dropped(), 0);
    }
    converge(&[a, b, c, &late]);
    assert!(not_ours.poll().is_none());
    // The last hundred may be sent while it joins; what was sent before is never replayed.
    assert!(numbers(&nothing).iter().all(|number| *number >= 300), "a joiner was told of the past");
}

#[test]
fn a_command_gets_its_answer() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let orders = b.events().subscribe("deploy");
    let answering = b.clone();
    let server = std::thread::spawn(move || {
        for outcome in [Outcome::Done, Outcome::Refused("the hinge is stuck".into())] {
            let event = orders.wait(Duration::from_secs(30)).expect("a command arrives");
            assert!(event.command);
            answering.events().answer(&event, outcome).unwrap();
        }
    });
    let ask = |timeout| a.events().command("deploy", b.node(), 1_i64, timeout);
    assert_eq!(ask(Duration::from_secs(30)).unwrap(), Outcome::Done);
    assert_eq!(ask(Duration::from_secs(30)).unwrap(), Outcome::Refused("the hinge is stuck".into()));
    server.join().unwrap();
    assert_eq!(ask(Duration::from_millis(100)).unwrap_err().kind(), ErrorKind::Timeout);
    let nobody = coeval::NodeId { incarnation: coeval::Incarnation(77), ..b.node() };
    let error = a.events().command("deploy", nobody, 1_i64, Duration::from_secs(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

/// Who waits for an answer is told when its own peer stops, not at the end of the time-out.
#[test]
fn a_command_does_not_outwait_its_peer() {
    let peers = mesh(["a", "b"]);
    let [a, b] = peers;
    let (events, to) = (a.events(), b.node());
    let waiting = std::thread::spawn(move || {
        let started = Instant::now();
        let error = events.command("deploy", to, 1_i64, Duration::from_secs(600)).unwrap_err();
        (error.kind(), started.elapsed())
    });
    std::thread::sleep(Duration::from_millis(200));
    a.leave(Duration::from_secs(5)).unwrap();
    eventually("the command ends", || waiting.is_finished());
    let (kind, took) = waiting.join().unwrap();
    assert_eq!(kind, ErrorKind::Stopped);
    assert!(took < Duration::from_secs(60));
}

/// Nor the one that it waits for.
#[test]
fn a_command_does_not_outwait_who_should_answer() {
    let [a, b] = mesh(["a", "b"]);
    let (events, to) = (a.events(), b.node());
    let waiting = std::thread::spawn(move || events.command("deploy", to, 1_i64, Duration::from_secs(600)));
    let heard = b.events().subscribe("deploy");
    // It may have come before the subscription.
    heard.wait(Duration::from_millis(500));
    b.leave(Duration::from_secs(5)).unwrap();
    eventually("the command ends", || waiting.is_finished());
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn too_many_events_are_refused_not_lost() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let stream = b.events().subscribe("*");
    a.set_conditioner(cut());
    let mut sent = Vec::new();
    let refusal = (0..100_000_i64).find_map(|number| {
        let result = a.events().send("count", Target::All, number);
        sent.extend(result.is_ok().then_some(number));
        result.err()
    });
    assert_eq!(refusal.expect("a bound").kind(), ErrorKind::Busy);
    a.set_conditioner(Conditioner::default());
    a.events().delivered(Duration::from_secs(30)).unwrap();
    let mut got = Vec::new();
    eventually("what was taken", || {
        got.extend(numbers(&stream));
        got.len() >= sent.len()
    });
    assert_eq!(got, sent);
}

#[test]
fn an_event_for_an_entity_names_it_everywhere() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let entity = a.create_entity("launcher").unwrap();
    let target = Target::Entity(entity.id());
    let streams = [a.events().subscribe("*"), b.events().subscribe("*")];
    a.events().send("fire", target, 3_i64).unwrap();
    for stream in streams {
        let event = stream.wait(Duration::from_secs(30)).expect("it arrives");
        assert_eq!((event.target, &*event.topic, event.from), (target, "fire", a.node()));
        assert!(stream.poll().is_none());
    }
}
