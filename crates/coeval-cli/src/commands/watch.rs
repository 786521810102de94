//! `coeval watch`: what is created, changed and removed, as it happens.
use crate::args::WatchArgs;
use crate::errors::{Exit, Failure, Outcome};
use crate::output::{Output, sim_json, stamp_json};
use crate::parse;
use crate::session::Session;
use crate::signals::Signals;
use crate::text;
use coeval::{ChangeKind, Path, Reading, Value, WatchEvent};
use serde_json::json;
use std::time::{Duration, Instant};

/// Longest wait for changes before looking whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints changes until told to end, or until there were enough.
pub(crate) fn run(args: &WatchArgs, output: Output) -> Outcome {
    let session = Session::join(&args.membership, "watch")?;
    let signals = Signals::listen()?;
    let watch = session.peer.watch(&args.pattern.for_watch())?;
    // A watch begins with what is there; `coeval ls` is for that.
    watch.poll();
    let deadline = args.for_time.map(|time| Instant::now() + time);
    let wanted = args.count.unwrap_or(u64::MAX);
    let mut seen = 0;
    while seen < wanted && !signals.wait(Duration::ZERO) {
        let left = deadline.map_or(LOOK_EVERY, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        for event in watch.wait(left.min(LOOK_EVERY)) {
            if seen == wanted {
                break;
            }
            print(&session, &event, output)?;
            seen += 1;
        }
    }
    session.leave();
    match args.count {
        Some(wanted) if seen < wanted => {
            Err(Failure::new(Exit::Timeout, format!("{seen} of {wanted} changes seen before the end")))
        }
        _ => Ok(()),
    }
}

fn print(session: &Session, event: &WatchEvent, output: Output) -> Outcome {
    let what = match event.kind {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Removed => "removed",
    };
    let entity = event.name.clone().unwrap_or_else(|| event.entity.to_string());
    let mut address = String::new();
    // Writing to a string cannot fail.
    let _ = parse::address(&mut address, &entity, event.path.as_ref());
    let reading = event
        .path
        .as_ref()
        .filter(|_| event.kind != ChangeKind::Removed)
        .and_then(|path| read(session, event, path));
    let names = |id| session.name_of(id);
    output.either(
        || {
            json!({
                "kind": what,
                "path": address,
                "entity": event.name,
                "id": event.entity.to_string(),
                "key": event.path.as_ref().map(ToString::to_string),
                "type": reading.as_ref().map(|reading| reading.value.type_name()),
                "value": reading.as_ref().map(|reading| text::json(&reading.value)),
                "toml": reading.as_ref().map(|reading| text::toml(&reading.value, &names)),
                "sim": reading.as_ref().map(|reading| sim_json(reading.sim)),
                "stamp": reading.as_ref().map(|reading| stamp_json(reading.stamp)),
            })
        },
        || match &reading {
            Some(reading) => {
                format!("{what} {address} = {}  # {}", text::toml(&reading.value, &names), reading.sim)
            }
            None => format!("{what} {address}"),
        },
    )
}

/// The newest write of a parameter, as it was written. It may be gone again already.
fn read(session: &Session, event: &WatchEvent, path: &Path) -> Option<Reading<Value>> {
    let parameter = session.peer.entity_by_id(event.entity).ok()?.param::<Value>(path).ok()?;
    let context = session.peer.context();
    let now = parameter.read(context).ok()?;
    parameter.read(context.at(now.sim)).ok()
}
