//! `coeval ls`: what is there, who wrote it, how long ago, and whether its author lives.
use crate::args::LsArgs;
use crate::errors::Outcome;
use crate::output::{Output, span, stamp_json};
use crate::parse::{self, Pattern};
use crate::session::Session;
use crate::text;
use coeval::{Entity, EntityId, ParamInfo, SIM_ENTITY, Stamp};
use serde_json::{Value as Json, json};

/// A parameter, or an entity without any.
struct Row {
    entity: EntityId,
    name: Option<String>,
    parameter: Option<ParamInfo>,
}

/// Lists what the pattern means.
pub(crate) fn run(args: &LsArgs, output: Output) -> Outcome {
    let session = Session::join(&args.membership, "ls")?;
    let mut rows = Vec::new();
    for entity in session.peer.entities() {
        collect(&entity, &args.pattern, &mut rows);
    }
    // By name, as people look; entities of one name by id.
    rows.sort_by(|a, b| (&a.name, a.entity).cmp(&(&b.name, b.entity)));
    let names = |id| session.name_of(id);
    if output.is_json() {
        output.json(&rows.iter().map(|row| row.json(&names)).collect())?;
    } else {
        let cells: Vec<_> = rows.iter().map(|row| row.cells(&names)).collect();
        output.table(["PATH", "TYPE", "VALUE", "AGE", "AUTHOR", "ALIVE"], &cells)?;
    }
    session.leave();
    Ok(())
}

fn collect(entity: &Entity, pattern: &Pattern, rows: &mut Vec<Row>) {
    let (id, name) = (entity.id(), entity.name());
    if !pattern.entity(name.as_deref(), &id.to_string()) {
        return;
    }
    // An entity that was deleted a moment ago has no parameters to list.
    let Ok(parameters) = entity.parameters() else { return };
    if parameters.is_empty() && pattern.whole_entities() && id != SIM_ENTITY {
        rows.push(Row { entity: id, name, parameter: None });
        return;
    }
    for parameter in parameters.into_iter().filter(|parameter| pattern.path(&parameter.path)) {
        rows.push(Row { entity: id, name: name.clone(), parameter: Some(parameter) });
    }
}

impl Row {
    fn address(&self) -> String {
        let entity = self.name.clone().unwrap_or_else(|| self.entity.to_string());
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = parse::address(&mut text, &entity, self.parameter.as_ref().map(|parameter| &parameter.path));
        text
    }

    fn cells(&self, names: text::Names<'_>) -> [String; 6] {
        let dash = || "-".to_owned();
        let Some(parameter) = &self.parameter else {
            return [self.address(), "entity".to_owned(), dash(), dash(), dash(), dash()];
        };
        [
            self.address(),
            parameter.value.type_name().to_owned(),
            text::toml(&parameter.value, names),
            span(parameter.age.as_secs_f64()),
            author(parameter),
            if parameter.alive { "yes" } else { "no" }.to_owned(),
        ]
    }

    fn json(&self, names: text::Names<'_>) -> Json {
        let mut row = json!({ "path": self.address(), "entity": self.name, "id": self.entity.to_string() });
        if let Some(parameter) = &self.parameter {
            row["key"] = json!(parameter.path.to_string());
            row["type"] = json!(parameter.value.type_name());
            row["value"] = text::json(&parameter.value);
            row["toml"] = json!(text::toml(&parameter.value, names));
            row["age_s"] = json!(parameter.age.as_secs_f64());
            row["author"] = json!(parameter.author);
            row["alive"] = json!(parameter.alive);
            row["stamp"] = stamp_json(parameter.stamp);
        }
        row
    }
}

/// Who wrote a parameter: a name, the config, or the number of one whose name is not known.
pub(crate) fn author(parameter: &ParamInfo) -> String {
    match &parameter.author {
        _ if parameter.stamp == Stamp::GENESIS => "(config)".to_owned(),
        Some(name) => name.clone(),
        None => format!("{:016x}", parameter.stamp.writer.0),
    }
}
