//! Events and commands, numbered; what was sent, what arrived, and whether it was acknowledged.
use super::Desk;
use crate::soak::record::{Life, Record};
use coeval::{Event, EventStream, NodeId, Outcome, PeerEvent, PeerNotices, Target, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// Time between two events.
const PAUSE: Duration = Duration::from_millis(80);
/// How long an acknowledgement, or an answer, is waited for.
const PATIENCE: Duration = Duration::from_millis(400);

struct Sender<'a> {
    desk: &'a Desk,
    rng: ChaCha8Rng,
    notices: PeerNotices,
    /// Who is present for sure: it was told of as joined, or an event to it alone was accepted, and it has not left since.
    /// A peer that is listed may have a link on which nothing came yet.
    present: BTreeSet<NodeId>,
    number: u64,
}

/// Sends until it is to be quiet, then waits for the last acknowledgements.
pub(super) fn send(desk: &Desk) {
    let rng = ChaCha8Rng::seed_from_u64(!desk.assignment.seed);
    let notices = desk.peer.notices();
    let mut sender = Sender { desk, rng, notices, present: BTreeSet::new(), number: 0 };
    let mut acknowledged = 0;
    while !desk.is_ending() {
        sender.look();
        if !desk.is_quiet() {
            sender.send_one();
        }
        if sender.number > acknowledged && sender.number.is_multiple_of(4) | desk.is_quiet() {
            let delivered = desk.peer.events().delivered(PATIENCE).is_ok();
            sender.look();
            if delivered {
                acknowledged = sender.number;
                desk.history.add(&Record::Delivered { upto: acknowledged });
            }
        }
        std::thread::sleep(PAUSE.mul_f64(sender.rng.random_range(0.5..1.5)));
    }
}

impl Sender<'_> {
    /// Who is there, and who is not any more.
    fn look(&mut self) {
        while let Some(notice) = self.notices.poll() {
            match notice {
                PeerEvent::PeerJoined { node, .. } => {
                    self.present.insert(node);
                }
                PeerEvent::PeerLeft { node, .. } => {
                    self.present.remove(&node);
                    self.desk.history.add(&Record::Lost { life: node.incarnation.0 });
                }
                PeerEvent::JournalFailed { reason } => {
                    self.desk.history.add(&Record::JournalFailed { reason });
                }
                _ => {}
            }
        }
    }

    fn send_one(&mut self) {
        let listed: Vec<NodeId> = self.desk.peer.peers().into_iter().map(|peer| peer.node).collect();
        let choice = self.rng.random_range(0..10);
        let one = (choice < 4 && !listed.is_empty()).then(|| listed[self.rng.random_range(0..listed.len())]);
        let command = one.is_some() && choice == 0;
        self.number += 1;
        let number = self.number;
        let lives: Vec<Life> = self.present.iter().map(|node| node.incarnation.0).collect();
        let to = one.map(|node| node.incarnation.0);
        self.desk.history.add(&Record::Sending { number, to, command, present: lives });
        let target = match one {
            Some(node) => Target::Peer(node),
            None if choice == 9 => Target::Entity(self.desk.own.id()),
            None => Target::All,
        };
        let sent = match one.filter(|_| command) {
            Some(node) => self.command(node, number),
            None => self.desk.peer.events().send("event", target, number),
        };
        match (sent, one) {
            (Ok(()), Some(node)) => _ = self.present.insert(node),
            (Ok(()), None) => {}
            (Err(error), _) => self.desk.history.add(&Record::Unsent { number, why: error.to_string() }),
        }
    }

    /// A command that is not answered in time was sent all the same.
    fn command(&self, to: NodeId, number: u64) -> coeval::Result<()> {
        let answer = self.desk.peer.events().command("command", to, number, PATIENCE);
        match answer {
            Ok(Outcome::Done) => self.desk.history.add(&Record::Answered { number }),
            Ok(other) => self.desk.violation(format!("command {number} was answered by {other:?}, not Done")),
            Err(error) if error.kind() == coeval::ErrorKind::Timeout => {}
            // The peer may have been lost before or after it was sent.
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Takes events until the peer has stopped and none is left.
pub(super) fn receive(desk: &Desk, events: &EventStream) {
    while desk.peer.stopped().is_none() || !desk.is_ending() {
        while let Some(event) = events.wait(Duration::from_millis(500)) {
            take(desk, &event);
        }
    }
    if events.dropped() > 0 {
        desk.violation(format!("{} events were dropped from the subscription", events.dropped()));
    }
}

fn take(desk: &Desk, event: &Event) {
    let Value::UInt(number) = event.value else {
        return desk.violation(format!("an event came with {:?}, which nobody sends", event.value));
    };
    desk.history.add(&Record::Got { from: event.from.incarnation.0, number });
    if event.command {
        // Its sender may be gone by now; then nobody waits.
        let _ = desk.peer.events().answer(event, Outcome::Done);
    }
}
