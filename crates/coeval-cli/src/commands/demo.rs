//! `coeval demo`: plays it, and says what was seen.
use crate::args::DemoArgs;
use crate::demo::{self, Summary, View};
use crate::errors::{Exit, Failure, Outcome};
use crate::output::{Output, bytes};

/// Plays the demo, or one of its processes.
pub(crate) fn run(args: &DemoArgs, output: Output) -> Outcome {
    let failed = |e: Box<dyn std::error::Error + Send + Sync>| Failure::new(Exit::Failure, e).at("the demo");
    if let Some(role) = args.role {
        return demo::run(role, std::env::var("COEVAL_INVITE").ok().as_deref())
            .map_err(|e| failed(e).at(role.name()));
    }
    let summary = demo::direct(args.seconds, View::new(output.is_json())).map_err(failed)?;
    if output.is_json() {
        output.json(&serde_json::to_value(&summary).map_err(|e| failed(e.into()))?)?;
    } else {
        report(&summary, output)?;
    }
    if summary.holds() {
        return Ok(());
    }
    Err(Failure::new(Exit::Failure, format!("the demo did not hold: {}", reasons(&summary).join("; "))))
}

/// What the demo promises and did not keep.
fn reasons(summary: &Summary) -> Vec<String> {
    let promises = [
        (summary.converged, "the replicas' digests differ".to_owned()),
        (
            summary.sim_time_disagreement_ns == 0,
            format!("the sim times differ by {} ns", summary.sim_time_disagreement_ns),
        ),
        (summary.checks > 0, "no read was checked".to_owned()),
        (
            summary.max_position_error_m <= summary.allowed_position_error_m,
            format!(
                "a position was off by {:.3} m, allowed {:.3} m",
                summary.max_position_error_m, summary.allowed_position_error_m
            ),
        ),
        (
            summary.held_a_century_away > 0
                && summary.followed_a_century_away > 0
                && summary.astray_a_century_away == 0,
            format!(
                "a century away {} flight reads were held, {} orbit reads followed, {} did neither",
                summary.held_a_century_away, summary.followed_a_century_away, summary.astray_a_century_away
            ),
        ),
        (
            summary.settled_error_over_threshold <= 1.0,
            format!(
                "with nothing on its way a read was off by {:.2} thresholds",
                summary.settled_error_over_threshold
            ),
        ),
        (summary.sight_agrees, "range and elevation of the satellite differ between processes".to_owned()),
        (
            summary.held_a_century_away > 0 && summary.followed_a_century_away > 0,
            "nothing was read a century away".to_owned(),
        ),
        (
            summary.astray_a_century_away == 0,
            format!(
                "{} reads a century away were neither held nor on their orbit",
                summary.astray_a_century_away
            ),
        ),
    ];
    promises.into_iter().filter(|(kept, _)| !kept).map(|(_, reason)| reason).collect()
}

fn report(summary: &Summary, output: Output) -> Outcome {
    output.line(format!(
        "\n{} processes, {} entities, {:.1} s; {} reads checked against the truth\n",
        summary.processes, summary.entities, summary.seconds, summary.checks
    ))?;
    let yes = |kept: bool| if kept { "yes" } else { "NO" }.to_owned();
    let sight = match (summary.sight_range_m, summary.sight_elevation_deg) {
        (Some(range), Some(elevation)) => format!("{:.3} km, {elevation:.4}°", range / 1e3),
        _ => "-".to_owned(),
    };
    output.table(
        ["WHAT", "SEEN", "HOLDS"],
        &[
            ["replicas equal at the end".to_owned(), yes(summary.converged), yes(summary.converged)],
            [
                "sim times of the processes differ by".to_owned(),
                format!("{} ns", summary.sim_time_disagreement_ns),
                yes(summary.sim_time_disagreement_ns == 0),
            ],
            [
                "session clock off the machine's by".to_owned(),
                format!("{:.0} µs", summary.clock_offset_error_us),
                "-".to_owned(),
            ],
            [
                "worst position error, of what is allowed".to_owned(),
                format!("{:.3} of {:.3} m", summary.max_position_error_m, summary.allowed_position_error_m),
                yes(summary.checks > 0 && summary.max_position_error_m <= summary.allowed_position_error_m),
            ],
            [
                "with nothing on its way, of the threshold".to_owned(),
                format!("{:.2}", summary.settled_error_over_threshold),
                yes(summary.settled_error_over_threshold <= 1.0),
            ],
            [
                "a century away: held, on orbit, astray".to_owned(),
                format!(
                    "{}, {}, {}",
                    summary.held_a_century_away,
                    summary.followed_a_century_away,
                    summary.astray_a_century_away
                ),
                yes(summary.held_a_century_away > 0
                    && summary.followed_a_century_away > 0
                    && summary.astray_a_century_away == 0),
            ],
            ["a satellite's range, elevation agree".to_owned(), sight, yes(summary.sight_agrees)],
        ],
    )?;
    output.line("")?;
    traffic(summary, output)
}

/// Updates that were needed, beside those that would have been.
fn traffic(summary: &Summary, output: Output) -> Outcome {
    let row = |what: &str, sent: u64, unfiltered: u64| {
        let share = if unfiltered == 0 { 0.0 } else { 100.0 * sent as f64 / unfiltered as f64 };
        [
            what.to_owned(),
            sent.to_string(),
            bytes(sent * demo::DIS_BYTES),
            unfiltered.to_string(),
            bytes(unfiltered * demo::DIS_BYTES),
            format!("{share:.1} %"),
        ]
    };
    let (flights, satellites) = (summary.flights_only, summary.satellites_only);
    output.table(
        ["TRAFFIC", "UPDATES", "AS DIS", "AT 30 Hz", "AS DIS", "SENT/30 Hz"],
        &[
            row("flights", flights.updates_sent, flights.updates_unfiltered_30hz),
            row("satellites", satellites.updates_sent, satellites.updates_unfiltered_30hz),
            row("together", summary.updates_sent, summary.updates_unfiltered_30hz),
        ],
    )?;
    output
        .line(format!("(UPDATES are dead reckoned; a DIS entity state message is {} bytes)", demo::DIS_BYTES))
}
