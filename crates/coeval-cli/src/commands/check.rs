//! `coeval check` and `coeval schema`: sim configs, without a session.
use crate::args::CheckArgs;
use crate::errors::{Exit, Failure, Outcome};
use crate::output::{Output, sim_json};
use crate::session;
use coeval_systems::config::json_schema;
use serde_json::json;

/// Reads a config, and says what is in it.
pub(crate) fn check(args: &CheckArgs, output: Output) -> Outcome {
    let config = session::config(&args.config)?;
    output.either(
        || {
            json!({
                "file": args.config.display().to_string(),
                "id": config.id.to_string(),
                "name": config.name,
                "start": sim_json(config.start),
                "rate": config.rate,
                "entities": config.entities.iter().map(|e| json!({ "name": e.name, "id": e.id.to_string() })).collect::<Vec<_>>(),
                "systems": config.systems.iter().map(|s| json!({ "name": s.name, "kind": s.kind, "rate_hz": s.rate_hz })).collect::<Vec<_>>(),
            })
        },
        || {
            format!(
                "{}: {:?} is good: {} entities, {} systems, starts at {} with rate {}",
                args.config.display(),
                config.name,
                config.entities.len(),
                config.systems.len(),
                config.start,
                config.rate
            )
        },
    )
}

/// Prints the schema.
pub(crate) fn schema(output: Output) -> Outcome {
    let text = serde_json::to_string_pretty(&json_schema())
        .map_err(|e| Failure::new(Exit::Failure, format!("the schema cannot be written: {e}")))?;
    output.line(text)
}
