//! `coeval clock`: the session's clock, shown and changed.
use crate::args::{ClockArgs, ClockVerb};
use crate::errors::{Failure, Outcome};
use crate::output::{Output, sim_json, stamp_json, utc};
use crate::session::Session;
use coeval::{Direction, EditKind, LoggedEdit, SimDuration};
use serde_json::{Value as Json, json};

/// Does what the verb says.
pub(crate) fn run(args: &ClockArgs, output: Output) -> Outcome {
    let session = Session::join(&args.membership, "clock")?;
    let clock = session.peer.clock();
    let now = clock.context().sim;
    let edited = match &args.verb {
        None | Some(ClockVerb::Show) => return finish(session, show, output),
        Some(ClockVerb::Log) => return finish(session, log, output),
        Some(ClockVerb::Scale { scale }) => clock.set_scale(*scale),
        Some(ClockVerb::Pause) => clock.pause(),
        Some(ClockVerb::Resume) => clock.resume(),
        Some(ClockVerb::Jump { to: crate::parse::When::At(sim) }) => clock.jump_to(*sim),
        Some(ClockVerb::Jump { to: crate::parse::When::By(by) }) => clock.jump_by(*by),
        Some(ClockVerb::StopAt { at }) => clock.stop_at(at.from(now)),
    };
    edited.map_err(|e| Failure::from(e).at("the clock"))?;
    session.acknowledged().map_err(|e| e.at("the clock"))?;
    finish(session, show, output)
}

fn finish(session: Session, act: fn(&Session, Output) -> Outcome, output: Output) -> Outcome {
    act(&session, output)?;
    session.leave();
    Ok(())
}

fn show(session: &Session, output: Output) -> Outcome {
    let clock = session.peer.clock();
    let (context, state) = (clock.context(), clock.state());
    let segment = &state.segment;
    output.either(
        || {
            json!({
                "sim": sim_json(state.sim),
                "scale": segment.scale,
                "rate": segment.rate,
                "paused": segment.paused,
                "stopped": segment.stopped,
                "backward": segment.direction == Direction::Backward,
                "saturated": state.saturated,
                "waiting_stops": state.waiting.iter().map(|stop| sim_json(stop.at)).collect::<Vec<_>>(),
                "wall_ns": context.wall.as_nanos(),
                "wall": context.wall.to_string(),
            })
        },
        || {
            let holds = match (segment.paused, segment.stopped) {
                (true, _) => format!("paused, scale {}", rate(segment.scale)),
                (false, true) => format!("stopped, scale {}", rate(segment.scale)),
                (false, false) => format!("rate {}", rate(segment.rate)),
            };
            let mut lines = vec![format!("{}, {holds}", state.sim), utc(state.sim)];
            lines.extend(state.waiting.iter().map(|stop| format!("stops at {}", stop.at)));
            if state.saturated {
                lines.push("at the end of the range of sim time".to_owned());
            }
            lines.push(context.wall.to_string());
            lines.join("\n")
        },
    )
}

fn log(session: &Session, output: Output) -> Outcome {
    let log = session.peer.clock().log();
    if output.is_json() {
        return output.json(&log.iter().map(edit_json).collect());
    }
    let rows: Vec<_> = log
        .iter()
        .map(|entry| {
            let logged = &entry.logged;
            let step = if logged.after.sim == logged.before.sim {
                "-".to_owned()
            } else {
                logged.after.sim.to_string()
            };
            let withdrawn = if logged.withdrawn { " (withdrawn)" } else { "" };
            [
                logged.edit.at.to_string(),
                what(&logged.edit.kind) + withdrawn,
                entry.author.clone().unwrap_or_else(|| format!("{:016x}", logged.edit.id.stamp.writer.0)),
                logged.before.sim.to_string(),
                step,
                format!("{} to {}", rate(logged.before.rate), rate(logged.after.rate)),
            ]
        })
        .collect();
    output.table(["WALL", "EDIT", "AUTHOR", "SIM TIME", "STEP TO", "RATE"], &rows)
}

fn edit_json(entry: &LoggedEdit) -> Json {
    let logged = &entry.logged;
    let point = |point: &coeval::ClockPoint| json!({ "sim": sim_json(point.sim), "rate": point.rate });
    json!({
        "at_ns": logged.edit.at.as_nanos(),
        "edit": what(&logged.edit.kind),
        "author": entry.author,
        "stamp": stamp_json(logged.edit.id.stamp),
        "index": logged.edit.id.index,
        "withdrawn": logged.withdrawn,
        "before": point(&logged.before),
        "after": point(&logged.after),
    })
}

fn what(kind: &EditKind) -> String {
    match kind {
        EditKind::Scale(scale) => format!("scale {}", rate(*scale)),
        EditKind::Pause => "pause".to_owned(),
        EditKind::Resume => "resume".to_owned(),
        EditKind::JumpTo(sim) => format!("jump to {sim}"),
        EditKind::JumpBy(by) => format!("jump by {}", length(*by)),
        EditKind::StopAt(sim) => format!("stop at {sim}"),
        EditKind::Cancel(edit) => format!("cancel the edit of {}", edit.stamp.wall()),
    }
}

/// A rate as people write it: with an exponent where it would be a row of zeros.
fn rate(rate: f64) -> String {
    if rate == 0.0 || (1e-6..1e15).contains(&rate.abs()) { format!("{rate}") } else { format!("{rate:e}") }
}

/// A length of sim time in the largest unit that keeps it whole, as `clock jump` reads it.
fn length(by: SimDuration) -> String {
    const UNITS: [(i128, &str); 6] = [
        (31_557_600_000_000_000, "y"),
        (86_400_000_000_000, "d"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let nanos = by.as_nanos();
    let fits = UNITS.iter().find(|(size, _)| nanos != 0 && nanos % size == 0);
    fits.map_or_else(|| "0 s".to_owned(), |(size, unit)| format!("{:+} {unit}", nanos / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_or_tiny_rate_is_no_row_of_zeros() {
        for (number, text) in [(1e300, "1e300"), (5e-324, "5e-324"), (-1.0, "-1"), (0.0, "0"), (0.25, "0.25")]
        {
            assert_eq!(rate(number), text);
        }
    }

    #[test]
    fn a_jump_is_told_in_the_unit_that_it_was_given_in() {
        for text in ["-100 y", "+1 d", "+3600 s", "-5 ms", "+1 ns"] {
            let by = crate::parse::duration(text).expect("a length of time");
            assert_eq!(length(by), text);
        }
        assert_eq!(length(SimDuration::ZERO), "0 s");
    }
}
