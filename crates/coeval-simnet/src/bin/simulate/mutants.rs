//! Puts known faults in, one at a time, and says at which seed each is found.
use crate::arguments::Arguments;
use coeval_faults::Fault;
use coeval_simnet::mutants::{Found, faults, hunt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// Where the workspace was when this program was built.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Hunts every fault; whether all were found.
pub(crate) fn hunt_all(arguments: &Arguments) -> bool {
    let started = Instant::now();
    let caught = models();
    let all: Vec<Fault> = faults().collect();
    let waiting = Mutex::new(all.iter().copied());
    let found = Mutex::new(Vec::new());
    let next = || waiting.lock().expect("no hunter panics").next();
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs() {
            scope.spawn(|| {
                while let Some(fault) = next() {
                    let seeds = arguments.from..arguments.from.saturating_add(arguments.seeds);
                    let result = hunt(fault, seeds, arguments.options());
                    found.lock().expect("no hunter panics").extend(result);
                }
            });
        }
    });
    let found = found.into_inner().expect("no hunter panics");
    let rows: Vec<Row> = Fault::ALL.iter().map(|fault| Row::of(*fault, &found, &caught)).collect();
    let complete = rows.iter().all(|row| row.found);
    if arguments.json {
        let mutants: Vec<Value> = rows.into_iter().map(|row| row.json).collect();
        println!("{}", json!({ "mutants": mutants, "wall_seconds": started.elapsed().as_secs_f64() }));
    } else {
        println!(
            "{}, {:.1} s",
            if complete { "all found" } else { "NOT ALL FOUND" },
            started.elapsed().as_secs_f64()
        );
    }
    complete
}

/// A fault and what became of it.
struct Row {
    found: bool,
    json: Value,
}

impl Row {
    fn of(fault: Fault, found: &[Found], caught: &BTreeSet<String>) -> Self {
        let name = fault.name();
        if fault.is_of_atomics() {
            let test = test_of(fault);
            let found = caught.contains(&test);
            println!("| {name} | | {} |", if found { "loom" } else { "NOT FOUND" });
            let by = if found { json!("loom") } else { Value::Null };
            return Self { found, json: json!({ "name": name, "found_by": by, "test": test }) };
        }
        let hit = found.iter().find(|hit| hit.fault == fault);
        let check = hit.map(|hit| format!("{:?}", hit.check));
        match hit {
            Some(hit) => println!(
                "| {name} | {} | `{:?}` |\n    {}",
                hit.seed,
                hit.check,
                hit.detail.replace('\n', " ")
            ),
            None => println!("| {name} | | NOT FOUND |"),
        }
        let json = json!({ "name": name, "found_at_seed": hit.map(|hit| hit.seed), "check": check });
        Self { found: hit.is_some(), json }
    }
}

/// The test of the models that is to catch a fault of the atomics.
fn test_of(fault: Fault) -> String {
    let words = fault.name().split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    format!("mutant_{}", words.collect::<Vec<_>>().join("_"))
}

/// Builds and runs the models of the atomics with faults put in; the tests that caught theirs.
fn models() -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| format!("{WORKSPACE}/target"));
    let mut command = Command::new(cargo);
    command
        .current_dir(WORKSPACE)
        .env("RUSTFLAGS", "--cfg coeval_loom")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.args(["test", "-q", "-p", "coeval-cell", "--release", "--test", "loom"]);
    // Other flags: in the folder of the workspace they would throw its build away.
    command.args(["--target-dir", &format!("{target}/loom"), "--", "mutant_", "--format", "pretty"]);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("the models of the atomics were not run, cargo does not start: {error}");
            return BTreeSet::new();
        }
    };
    if !output.status.success() {
        println!("the models of the atomics:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    // `test mutant_x - should panic ... ok`
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = text.lines().filter(|line| line.starts_with("test mutant_") && line.ends_with("... ok"));
    passed.filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned).collect()
}
