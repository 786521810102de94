//! `coeval get`: one parameter and how good it is, or a whole entity as TOML.
use super::ls::author;
use crate::args::GetArgs;
use crate::errors::{Failure, Outcome};
use crate::output::{Output, sim_json, span, stamp_json};
use crate::parse::Address;
use crate::session::Session;
use crate::text;
use coeval::{Context, Entity, ErrorKind, Evolve, ParamInfo, Parameter, Path, Quality, Reading, Value};
use coeval::{EntityId, Matrix, Motion, Quat, Ramp, SimDuration, SimTime};
use serde_json::{Value as Json, json};

/// Reads what the address names.
pub(crate) fn run(args: &GetArgs, output: Output) -> Outcome {
    check_type(args)?;
    let session = Session::join(&args.membership, "get")?;
    let now = session.peer.context();
    let context = args.at.map_or(now, |when| now.at(when.from(now.sim)));
    let entity = session.entity(&args.path.entity)?;
    let place = |failure: Failure| failure.at(&args.path);
    match &args.path.path {
        None => whole(&session, &entity, context, args, output),
        Some(path) => one(&session, &entity, path, context, args, output),
    }
    .map_err(place)?;
    session.leave();
    Ok(())
}

fn whole(session: &Session, entity: &Entity, context: Context, args: &GetArgs, output: Output) -> Outcome {
    let map = entity.map(context)?;
    let (names, name) = (|id| session.name_of(id), entity.name());
    output.either(
        || {
            json!({
                "entity": name,
                "id": entity.id().to_string(),
                "at": sim_json(context.sim),
                "value": text::json(&map),
                "toml": document(&map, &names),
            })
        },
        || {
            let heading = format!("# {}, entity {}, at {}\n", args.path, entity.id(), context.sim);
            (heading + &document(&map, &names)).trim_end().to_owned()
        },
    )
}

fn document(value: &Value, names: text::Names<'_>) -> String {
    match value {
        Value::Map(map) => text::toml_document(map, names),
        other => text::toml(other, names),
    }
}

fn one(
    session: &Session,
    entity: &Entity,
    path: &Path,
    context: Context,
    args: &GetArgs,
    output: Output,
) -> Outcome {
    let names = |id| session.name_of(id);
    if let Some(name) = &args.as_type {
        let value = read_as(entity, path, context, name)?;
        return output.either(|| text::json(&value), || text::toml(&value, &names));
    }
    let reading = match entity.param::<Value>(path)?.read(context) {
        Ok(reading) => reading,
        // Anything reads as a value, save a map of parameters.
        Err(error) if error.kind() == ErrorKind::WrongType => {
            let map = entity.get(context, path)?;
            return output.either(
                || json!({ "path": args.path.to_string(), "type": "map", "value": text::json(&map), "toml": text::toml(&map, &names) }),
                || document(&map, &names).trim_end().to_owned(),
            );
        }
        Err(error) => return Err(error.into()),
    };
    // The same write, as the list of parameters knows it: who, and how long ago.
    let info =
        entity.parameters()?.into_iter().find(|info| info.path == *path && info.stamp == reading.stamp);
    output.either(
        || reading_json(&args.path, entity, context, &reading, info.as_ref(), &names),
        || {
            let written = info
                .as_ref()
                .map(|info| format!(", by {} {} ago", author(info), span(info.age.as_secs_f64())));
            let lost = if reading.lost_since.is_some() { ", author lost" } else { "" };
            format!(
                "{}  # {}{}{lost}",
                text::toml(&reading.value, &names),
                quality(reading.quality),
                written.unwrap_or_default()
            )
        },
    )
}

fn reading_json(
    address: &Address,
    entity: &Entity,
    context: Context,
    reading: &Reading<Value>,
    info: Option<&ParamInfo>,
    names: text::Names<'_>,
) -> Json {
    json!({
        "path": address.to_string(),
        "entity": entity.name(),
        "id": entity.id().to_string(),
        "type": reading.value.type_name(),
        "value": text::json(&reading.value),
        "toml": text::toml(&reading.value, names),
        "quality": quality_json(reading.quality),
        "at": sim_json(context.sim),
        "sample": sim_json(reading.sim),
        "stamp": stamp_json(reading.stamp),
        "author": info.and_then(|info| info.author.clone()),
        "age_s": info.map(|info| info.age.as_secs_f64()),
        "alive": info.map(|info| info.alive),
    })
}

/// How a value came about, in a few words.
fn quality(quality: Quality) -> String {
    match quality {
        Quality::Exact => "exact".to_owned(),
        Quality::Interpolated => "interpolated".to_owned(),
        Quality::Extrapolated { by } => format!("extrapolated by {}", span(by.as_secs_f64())),
        Quality::Held { by } if by < SimDuration::ZERO => {
            format!("held from {} later", span(-by.as_secs_f64()))
        }
        Quality::Held { by } => format!("held for {}", span(by.as_secs_f64())),
    }
}

fn quality_json(quality: Quality) -> Json {
    match quality {
        Quality::Exact => json!({ "kind": "exact" }),
        Quality::Interpolated => json!({ "kind": "interpolated" }),
        Quality::Extrapolated { by } => json!({ "kind": "extrapolated", "by_s": by.as_secs_f64() }),
        Quality::Held { by } => json!({ "kind": "held", "by_s": by.as_secs_f64() }),
    }
}

type Reader = fn(&Entity, &Path, Context) -> coeval::Result<Value>;

/// The types that `--as` knows.
const READERS: &[(&str, Reader)] = &[
    ("bool", typed::<bool>),
    ("int", typed::<i64>),
    ("uint", typed::<u64>),
    ("float", typed::<f64>),
    ("float32", typed::<f32>),
    ("text", typed::<String>),
    ("ref", typed::<EntityId>),
    ("time", typed::<SimTime>),
    ("duration", typed::<SimDuration>),
    ("vec2", typed::<[f64; 2]>),
    ("vec3", typed::<[f64; 3]>),
    ("vec4", typed::<[f64; 4]>),
    ("quat", typed::<Quat>),
    ("ramp", typed::<Ramp>),
    ("matrix", typed::<Matrix>),
    ("motion", typed::<Motion>),
];

fn typed<T: Parameter + Evolve>(entity: &Entity, path: &Path, context: Context) -> coeval::Result<Value> {
    entity.get_as::<T>(context, path).map(Parameter::into_value)
}

/// Refuses a type that `--as` does not know, and `--as` for an entity, before joining.
fn check_type(args: &GetArgs) -> Outcome {
    let Some(name) = &args.as_type else { return Ok(()) };
    if args.path.path.is_none() {
        return Err(Failure::usage(format!(
            "--as {name}: {} is an entity: name one of its parameters",
            args.path
        )));
    }
    reader(name).map(|_| ())
}

fn reader(name: &str) -> Outcome<Reader> {
    let found = READERS.iter().find(|(known, _)| *known == name).map(|(_, reader)| *reader);
    found.ok_or_else(|| {
        let known: Vec<_> = READERS.iter().map(|(known, _)| *known).collect();
        Failure::usage(format!("--as {name}: no such type; there are {}", known.join(", ")))
    })
}

fn read_as(entity: &Entity, path: &Path, context: Context, name: &str) -> Outcome<Value> {
    Ok(reader(name)?(entity, path, context)?)
}
