//! Real processes under torture: `soak [--peers N] [--seconds S] [--seed N] [--folder PATH] [--json]`.
//!
//! Prints a table, and with `--json` one JSON object as its last line. Fails when anything was seen that must not be; then
//! it names the folder with all histories and logs. `soak worker ASSIGNMENT` is one of the processes.
use coeval_integration_tests::soak::{self, Options, director};
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, assignment] = arguments.as_slice()
        && mode == "worker"
    {
        return soak::worker::run(assignment).map(|()| ExitCode::SUCCESS);
    }
    let json = arguments.iter().any(|text| text == "--json");
    let options = options(&arguments)?;
    let folder = options.folder.clone();
    let summary = soak::run(options)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{summary}")?;
    if summary.passed() {
        director::clean(&folder)?;
    } else {
        writeln!(out, "histories and logs: {}", folder.display())?;
    }
    if json {
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(if summary.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(arguments: &[String]) -> Result<Options, Box<dyn Error>> {
    let (mut seed, mut peers, mut seconds, mut folder) = (1, 8, 120, None);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--json" => {}
            "--seed" => seed = value()?.parse()?,
            "--peers" => peers = value()?.parse()?,
            "--seconds" => seconds = value()?.parse()?,
            "--folder" => folder = Some(PathBuf::from(value()?)),
            other => return Err(format!("no such option: {other}").into()),
        }
    }
    if !(3..=32).contains(&peers) {
        return Err("3 to 32 peers".into());
    }
    Ok(Options {
        seed,
        peers,
        length: Duration::from_secs(seconds),
        folder: folder.unwrap_or_else(|| director::default_folder(seed)),
        exe: std::env::current_exe()?,
    })
}
