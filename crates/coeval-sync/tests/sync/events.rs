//! Events: exactly once, in order, at everyone present, whatever happens to the links.
use crate::world::{MS, SEC, World, fixed};
use coeval_sync::{Config, Event, EventError, EventId, Input, Notice, Reply, Target};
use coeval_time::WallDuration;
use coeval_value::Value;
use rand::Rng;
use std::collections::BTreeMap;

/// What a program got from each other: the numbers in the order they came.
fn got(world: &World, n: usize, from: usize) -> Vec<u64> {
    let from = world.programs[from].id;
    let events = world.programs[n].notices.iter().filter_map(|notice| match notice {
        Notice::Event(event) if event.id.from == from => Some(&event.value),
        _ => None,
    });
    events.map(|value| if let Value::UInt(v) = value { *v } else { panic!("not a number") }).collect()
}

#[test]
fn events_arrive_once_and_in_order_though_links_are_reset() {
    for seed in 0..60 {
        // A ring of four, where another way is found, and a line of three, where one must wait.
        let count = 3 + seed as usize % 2;
        let mut world = World::new(seed, count, fixed());
        let edges: Vec<(usize, usize)> = (0..2 * count - 4).map(|a| (a, (a + 1) % count)).collect();
        for &(a, b) in &edges {
            world.connect(a, b);
        }
        world.run(2 * SEC);
        let mut sent: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
        for number in 0..150 {
            let a = world.rng.random_range(0..count);
            let b = world.rng.random_range(0..count);
            let (target, to) = if world.rng.random_range(0..3) == 0 {
                (Target::All, (0..count).collect())
            } else {
                (Target::Peer(world.programs[b].id), vec![b])
            };
            assert!(world.send(a, "tick", target, number), "seed {seed}");
            for to in to {
                sent.entry((a, to)).or_default().push(number);
            }
            let pause = world.rng.random_range(0..30 * MS);
            world.run(pause);
            if world.rng.random_range(0..12) == 0 {
                let kind = world.rng.random_range(15..=16);
                world.drops.push((a, b, kind));
            }
            if world.rng.random_range(0..12) == 0 {
                let (a, b) = edges[world.rng.random_range(0..edges.len())];
                for wire in world.wires_between(a, b) {
                    world.reset(wire);
                }
                let away = world.rng.random_range(60 * MS..600 * MS);
                world.run(away);
                if world.wires_between(a, b).is_empty() {
                    world.connect(a, b);
                }
            }
        }
        world.drops.clear();
        world.run(20 * SEC);
        for ((from, to), numbers) in sent {
            assert_eq!(got(&world, to, from), numbers, "seed {seed}: from {from} to {to}");
        }
    }
}

#[test]
fn full_queue_sends_nothing_to_anyone() {
    let mut world = World::new(1, 3, Config { event_queue: 10, ..fixed() });
    world.connect(0, 1);
    world.connect(0, 2);
    world.run(2 * SEC);
    world.programs[2].reading = false;
    let sent = (0..30).take_while(|n| world.send(0, "tick", Target::All, *n)).count() as u64;
    assert_eq!(sent, 10);
    world.run(SEC);
    let event = |target| Event {
        topic: "t".into(),
        target,
        value: Value::Nil,
        sim: Default::default(),
        command: false,
    };
    let slow = world.programs[2].id;
    let refused = world.programs[0].engine.send_event(event(Target::All));
    assert_eq!(refused, Err(EventError::Busy { to: slow, waiting: 10 }));
    assert_eq!(got(&world, 1, 0), (0..10).collect::<Vec<_>>(), "nothing half-sent");
    // The one that reads can still be reached, and the slow one when it reads again.
    assert!(world.send(0, "tick", Target::Peer(world.programs[1].id), 98));
    world.resume(2);
    world.run(SEC);
    assert!(world.send(0, "tick", Target::All, 99));
    world.run(SEC);
    assert_eq!(got(&world, 2, 0), (0..10).chain([99]).collect::<Vec<_>>());
    assert_eq!(got(&world, 1, 0), (0..10).chain([98, 99]).collect::<Vec<_>>());
}

#[test]
fn joiner_gets_no_earlier_events_and_the_absent_none() {
    let mut world = World::new(2, 3, fixed());
    world.connect(0, 1);
    world.run(2 * SEC);
    assert!(world.send(0, "tick", Target::All, 1));
    world.run(SEC);
    let absent = world.programs[2].id;
    assert!(!world.send(0, "tick", Target::Peer(absent), 2), "it has not joined");
    world.connect(1, 2);
    world.run(2 * SEC);
    assert!(world.send(0, "tick", Target::All, 3));
    world.run(SEC);
    assert_eq!(got(&world, 2, 0), [3]);
    assert_eq!(got(&world, 1, 0), [1, 3]);
    assert_eq!(got(&world, 0, 0), [1, 3], "the sender is a node of the session too");
}

#[test]
fn command_is_answered_over_two_hops() {
    let mut world = World::new(3, 3, fixed());
    world.connect(0, 1);
    world.connect(1, 2);
    world.run(2 * SEC);
    let target = Target::Peer(world.programs[2].id);
    let event = Event {
        topic: "deploy".into(),
        target,
        value: Value::Bool(true),
        sim: Default::default(),
        command: true,
    };
    let number = world.programs[0].engine.send_event(event).expect("sent");
    world.wake(0);
    world.run(SEC);
    let id = world.programs[2]
        .notices
        .iter()
        .find_map(|notice| match notice {
            Notice::Event(event) if event.command && &*event.topic == "deploy" => Some(event.id),
            _ => None,
        })
        .expect("the command arrived");
    for reply in [Reply::Accepted, Reply::Refused { reason: "jammed".into() }, Reply::Done] {
        world.programs[2].engine.reply(id, reply).expect("answered");
    }
    world.step(2, Input::Timer);
    world.run(SEC);
    let from = world.programs[2].id;
    let replies: Vec<Reply> = world.programs[0]
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Reply { from: f, number: n, reply } if *f == from && *n == number => Some(reply.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(replies, [Reply::Accepted, Reply::Refused { reason: "jammed".into() }, Reply::Done]);
}

#[test]
fn events_for_a_lost_node_are_dropped_and_later_ones_arrive() {
    let mut world = World::new(4, 2, fixed());
    world.connect(0, 1);
    world.run(2 * SEC);
    world.cut(0, 1);
    world.run(SEC);
    assert!(world.send(0, "tick", Target::All, 1), "still present: it may come back");
    world.run(20 * SEC);
    assert_eq!(world.noticed(0, |n| matches!(n, Notice::EventsDropped { count: 1, .. })), 1);
    world.mend();
    world.connect(0, 1);
    world.run(2 * SEC);
    assert!(world.send(0, "tick", Target::All, 2));
    world.run(2 * SEC);
    assert_eq!(got(&world, 1, 0), [2]);
}

/// Sends a command from program 0 to program 1 and lets it arrive.
fn command(world: &mut World, topic: &str) -> EventId {
    let target = Target::Peer(world.programs[1].id);
    let event =
        Event { topic: topic.into(), target, value: Value::Nil, sim: Default::default(), command: true };
    let number = world.programs[0].engine.send_event(event).expect("sent");
    world.wake(0);
    world.run(SEC);
    let id = EventId { from: world.programs[0].id, number };
    assert_eq!(world.noticed(1, |n| matches!(n, Notice::Event(event) if event.id == id)), 1, "it arrived");
    id
}

/// How the commands of program 0 were answered, in the order the answers came.
fn answers(world: &World) -> Vec<(u64, Reply)> {
    let notices = world.programs[0].notices.iter();
    let replies = notices.filter_map(|notice| match notice {
        Notice::Reply { number, reply, .. } => Some((*number, reply.clone())),
        _ => None,
    });
    replies.collect()
}

#[test]
fn replies_outlive_the_loss_of_the_sender_and_events_between_them_do_not() {
    for seed in 0..20 {
        let mut world = World::new(seed, 2, fixed());
        world.connect(0, 1);
        world.run(2 * SEC);
        let (one, two, three) =
            (command(&mut world, "one"), command(&mut world, "two"), command(&mut world, "three"));
        let to = Target::Peer(world.programs[0].id);
        world.programs[1].engine.reply(one, Reply::Accepted).expect("present");
        world.wake(1);
        // When the link breaks, this reply or its acknowledgement is on its way, or both have arrived.
        world.run(seed * 5 * MS);
        world.cut(0, 1);
        assert!(world.send(1, "tick", to, 1), "seed {seed}: it may come back");
        world.programs[1].engine.reply(one, Reply::Done).expect("present");
        world.run(SEC);
        assert!(world.send(1, "tick", to, 2));
        world.programs[1].engine.reply(two, Reply::Done).expect("present");
        world.run(20 * SEC);
        assert_eq!(world.noticed(1, |n| matches!(n, Notice::EventsDropped { count: 2, .. })), 1);
        assert_eq!(world.programs[1].engine.events_waiting(), 0, "nothing is expected of who is lost");
        assert!(!world.send(1, "tick", to, 3), "it is not in the session");
        world.programs[1].engine.reply(three, Reply::Done).expect("lost, but not forgotten");
        world.mend();
        world.connect(0, 1);
        world.run(2 * SEC);
        assert!(world.send(1, "tick", to, 4));
        world.run(4 * SEC);
        let want = [
            (one.number, Reply::Accepted),
            (one.number, Reply::Done),
            (two.number, Reply::Done),
            (three.number, Reply::Done),
        ];
        assert_eq!(answers(&world), want, "seed {seed}");
        assert_eq!(got(&world, 0, 1), [4], "seed {seed}");
        assert_eq!(world.programs[1].engine.events_waiting(), 0);
    }
}

#[test]
fn replies_to_who_left_or_opened_again_or_is_forgotten_are_not_kept() {
    for gone in ["left", "opened again", "forgotten"] {
        let forget_after = WallDuration::from_secs(60);
        let mut world = World::new(5, 2, Config { forget_after, ..fixed() });
        world.connect(0, 1);
        world.run(2 * SEC);
        let id = command(&mut world, "deploy");
        if gone == "left" {
            world.programs[0].engine.leave();
            world.wake(0);
            world.run(SEC);
        } else {
            world.cut(0, 1);
            world.run(20 * SEC);
            world.programs[1].engine.reply(id, Reply::Accepted).expect("lost, but not forgotten");
            world.mend();
            match gone {
                "forgotten" => world.run(60 * SEC),
                _ => {
                    world.open(0, 900, false);
                    world.connect(0, 1);
                    world.run(2 * SEC);
                }
            }
            // Forgetting has no deadline of its own.
            world.step(1, Input::Timer);
            assert_eq!(
                world.noticed(1, |n| matches!(n, Notice::EventsDropped { count: 1, .. })),
                1,
                "{gone}"
            );
        }
        let refused = world.programs[1].engine.reply(id, Reply::Done);
        assert_eq!(refused, Err(EventError::Absent(id.from)), "{gone}");
    }
}

/// An event may come by a shorter way than what tells of its sender. It waits: a reply must find its way.
#[test]
fn an_event_of_a_sender_not_heard_of_yet_waits_until_it_can_be_answered() {
    use coeval_wire::Frame;
    use coeval_wire::frame::{Event as EventFrame, LinkState, Payload, WireTarget};
    let mut world = World::new(5, 2, fixed());
    world.connect(0, 1);
    world.run(300 * MS);
    let (sender, to) = (crate::world::node(7, 700), world.programs[1].id);
    let mut value = Vec::new();
    coeval_wire::body::encode_value(&Value::Nil, &mut value).expect("a value");
    let payload = Payload::Event {
        number: 1,
        topic: "question".to_owned(),
        target: WireTarget::Node,
        sim: (0, 0),
        command: true,
        value: value.into(),
    };
    let event = Frame::from(EventFrame { from: sender, to, seq: 1, first: 1, hops: 9, payload });
    let asked = |world: &World| world.noticed(1, |notice| matches!(notice, Notice::Event(_)));
    world.inject(1, &event.encode().expect("a frame"), false);
    world.run(50 * MS);
    assert_eq!(asked(&world), 0);
    let between = world.programs[0].id;
    for (node, links) in [(sender, vec![between]), (between, vec![to, sender])] {
        let (name, addresses) = ("a node".to_owned(), Vec::new());
        let state = LinkState { node, version: 99, name, addresses, observer: false, left: false, links };
        world.inject(1, &Frame::from(state).encode().expect("a frame"), false);
    }
    world.inject(1, &event.encode().expect("a frame"), false);
    world.run(50 * MS);
    assert_eq!(asked(&world), 1, "sent again, it arrives");
    let id = EventId { from: sender, number: 1 };
    assert_eq!(world.programs[1].engine.reply(id, Reply::Done), Ok(()));
}
