//! `coeval send`: events, and commands that wait for their answer.
use crate::args::SendArgs;
use crate::errors::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::session::Session;
use coeval::{EntityId, NodeId, Outcome as Answer, PeerInfo, Target};
use serde_json::json;
use std::time::{Duration, Instant};

/// How often the table of peers is read while one is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A newcomer hears of the other peers within this time.
const INTRODUCTIONS: Duration = Duration::from_millis(1_000);

/// Sends the event.
pub(crate) fn run(args: &SendArgs, output: Output) -> Outcome {
    coeval_systems::config::value_from_toml(&args.value, &|_| Ok(EntityId::default()))
        .map_err(Failure::usage)?;
    if args.topic.is_empty() {
        return Err(Failure::usage("the topic is empty: name what the event is about"));
    }
    let session = Session::join(&args.membership, "send")?;
    let value = session.value(&args.value)?;
    let target = target(&session, &args.to)?;
    let answer = match (args.command, target) {
        (true, Target::Peer(node)) => Some(
            session
                .peer
                .events()
                .command(&args.topic, node, value, session.timeout)
                .map_err(|e| Failure::from(e).at(&args.topic))?,
        ),
        (true, _) => {
            return Err(Failure::usage(format!(
                "--command: {:?} is no peer: a command is for one peer (`coeval peers`)",
                args.to
            )));
        }
        (false, target) => {
            session
                .peer
                .events()
                .send(&args.topic, target, value)
                .map_err(|e| Failure::from(e).at(&args.topic))?;
            session.peer.events().delivered(session.timeout).map_err(|e| Failure::from(e).at(&args.topic))?;
            None
        }
    };
    if let Some(Answer::Refused(reason)) = &answer {
        return Err(Failure::new(Exit::Refused, format!("{}: {} refused: {reason}", args.topic, args.to)));
    }
    let word = match answer {
        None => "sent",
        Some(Answer::Accepted) => "accepted",
        Some(_) => "done",
    };
    output.either(
        || json!({ "topic": args.topic, "to": args.to, "outcome": word }),
        || format!("{} {word}", args.topic),
    )?;
    session.leave();
    Ok(())
}

/// Whom the event is for.
fn target(session: &Session, to: &str) -> Outcome<Target> {
    if to == "all" {
        introductions(session, |_| None::<()>);
        return Ok(Target::All);
    }
    if let Some(name) = to.strip_prefix("entity:") {
        introductions(session, |_| None::<()>);
        return Ok(Target::Entity(session.entity(name)?.id()));
    }
    if let Some(name) = to.strip_prefix("peer:") {
        return peer(session, name)?.ok_or_else(|| Failure::new(Exit::NotFound, no_such(name, "peer")));
    }
    match (session.entity(to), peer(session, to)?) {
        (Ok(_), Some(_)) => {
            Err(Failure::usage(format!("{to:?} is a peer and an entity: write peer:{to} or entity:{to}")))
        }
        (Ok(entity), None) => Ok(Target::Entity(entity.id())),
        (Err(_), Some(target)) => Ok(target),
        (Err(failure), None) if failure.exit() == Exit::NotFound => {
            Err(Failure::new(Exit::NotFound, no_such(to, "peer and no entity")))
        }
        (Err(failure), None) => Err(failure),
    }
}

fn no_such(name: &str, what: &str) -> String {
    format!("no {what} {name:?} in this session: `coeval peers` and `coeval ls` list what there is")
}

/// The one peer of this name, or with this node id.
fn peer(session: &Session, name: &str) -> Outcome<Option<Target>> {
    let node = name.parse::<NodeId>().ok();
    let found = introductions(session, |peers| {
        let named: Vec<_> = peers
            .iter()
            .filter(|peer| peer.name == name || Some(peer.node) == node)
            .map(|peer| peer.node)
            .collect();
        (!named.is_empty()).then_some(named)
    });
    match found.as_deref() {
        None => Ok(None),
        Some([node]) => Ok(Some(Target::Peer(*node))),
        Some(nodes) => {
            let ids: Vec<_> = nodes.iter().map(ToString::to_string).collect();
            Err(Failure::usage(format!(
                "{} peers are called {name:?}: use a node id: {}",
                nodes.len(),
                ids.join(", ")
            )))
        }
    }
}

/// Waits until the table of peers holds what is looked for, or until it must be whole.
fn introductions<T>(session: &Session, mut find: impl FnMut(&[PeerInfo]) -> Option<T>) -> Option<T> {
    let until = Instant::now() + INTRODUCTIONS.min(session.timeout);
    loop {
        if let Some(found) = find(&session.peer.peers()) {
            return Some(found);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
