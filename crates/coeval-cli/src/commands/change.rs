//! `coeval set` and `coeval rm`: changes, reported when the other peers have them.
use crate::args::{RmArgs, SetArgs};
use crate::errors::{Exit, Failure, Outcome};
use crate::output::{Output, stamp_json};
use crate::session::{self, Session};
use crate::text;
use coeval::{Batch, Entity, EntityId, Value};
use serde_json::json;

/// Sets one parameter, or several of an entity, in one batch.
pub(crate) fn set(args: &SetArgs, output: Output) -> Outcome {
    check_value(args)?;
    let session = Session::join(&args.membership, "set")?;
    let value = args.value.as_deref().map(|text| session.value(text)).transpose()?;
    let mut batch = session.peer.batch(session.peer.context());
    let (entity, created) = entity_for(&session, &mut batch, args)?;
    fill(&mut batch, entity, args, value.as_ref()).map_err(|e| e.at(&args.path))?;
    let stamp = batch.commit().map_err(|e| Failure::from(e).at(&args.path))?;
    session.acknowledged().map_err(|e| e.at(&args.path))?;
    let names = |id| session.name_of(id);
    output.either(
        || {
            json!({
                "path": args.path.to_string(),
                "id": entity.to_string(),
                "created": created,
                "value": value.as_ref().map(text::json),
                "stamp": stamp_json(stamp),
            })
        },
        || match &value {
            Some(value) => format!("{} = {}", args.path, text::toml(value, &names)),
            None => format!("{} created", args.path),
        },
    )?;
    session.leave();
    Ok(())
}

/// Refuses, before joining, what is no value wherever it goes.
fn check_value(args: &SetArgs) -> Outcome {
    let Some(text) = &args.value else {
        return match &args.path.path {
            Some(_) => {
                Err(Failure::usage(format!("{}: a value is missing: `coeval set PATH VALUE`", args.path)))
            }
            None => Ok(()),
        };
    };
    // References are looked up in the session, later.
    let value = coeval_systems::config::value_from_toml(text, &|_| Ok(EntityId::default()));
    let value = value.map_err(|e| Failure::usage(e).at(&args.path))?;
    match (&args.path.path, value) {
        (None, Value::Map(map)) if map.is_empty() && !args.create => {
            Err(Failure::usage(format!("{}: an empty table sets nothing", args.path)))
        }
        (Some(_), _) | (None, Value::Map(_)) => Ok(()),
        (None, _) => Err(Failure::usage(format!(
            "{0}: an entity has no value of its own: name a parameter ({0}/KEY), or give a table {{ KEY = VALUE, … }}",
            args.path
        ))),
    }
}

/// The entity to write to, created in the batch if it is to be; whether it is.
fn entity_for(session: &Session, batch: &mut Batch, args: &SetArgs) -> Outcome<(EntityId, bool)> {
    let name = &args.path.entity;
    match session.entity(name) {
        Ok(entity) if args.value.is_none() => {
            Err(Failure::usage(format!("{name}: this entity exists already: {}", entity.id())))
        }
        Ok(entity) => Ok((entity.id(), false)),
        Err(failure) if failure.exit() != Exit::NotFound => Err(failure),
        // An id names one entity for ever: it is given by creation, not chosen.
        Err(failure) if name.parse::<EntityId>().is_ok() => Err(failure),
        Err(_) if args.create => Ok((batch.create(name)?, true)),
        Err(failure) => Err(Failure::new(failure.exit(), format!("{failure}, and --create makes one"))),
    }
}

fn fill(batch: &mut Batch, entity: EntityId, args: &SetArgs, value: Option<&Value>) -> Outcome {
    match (&args.path.path, value) {
        (Some(path), Some(value)) => batch.set(entity, path, value.clone())?,
        (None, Some(Value::Map(map))) => {
            for (key, value) in map.iter() {
                batch.set(entity, session::single(key.clone()), value.clone())?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Deletes an entity, or removes a parameter.
pub(crate) fn rm(args: &RmArgs, output: Output) -> Outcome {
    let session = Session::join(&args.membership, "rm")?;
    let entity = session.entity(&args.path.entity)?;
    remove(&session, &entity, args).map_err(|e| e.at(&args.path))?;
    session.acknowledged().map_err(|e| e.at(&args.path))?;
    let what = if args.path.path.is_some() { "removed" } else { "deleted" };
    output.either(
        || json!({ "path": args.path.to_string(), "id": entity.id().to_string(), "done": what }),
        || format!("{} {what}", args.path),
    )?;
    session.leave();
    Ok(())
}

fn remove(session: &Session, entity: &Entity, args: &RmArgs) -> Outcome {
    match &args.path.path {
        None => entity.delete()?,
        Some(path) => {
            let context = session.peer.context();
            // Removing what is not there changes nothing: whoever asks for it has mistyped.
            entity.get(context, path)?;
            entity.remove(context, path)?;
        }
    }
    Ok(())
}
