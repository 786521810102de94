//! What coeval costs, beside a floor measured in the same run: `coeval-bench CASE [--json]`.
//!
//! | file | what it holds |
//! |---|---|
//! | `local.rs` | `read` and `write`: handles in one process, beside a bare seqlock |
//! | `journal.rs` | `journal`: a lone peer and its journal, beside a bare append |
//! | `replicate.rs` | `replicate`: a closed loop between two processes over QUIC |
//! | `seqlock.rs` | the floor |
//! | `measure.rs` | interleaved rounds and their medians |
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its results")]
mod journal;
mod local;
mod measure;
mod replicate;
mod seqlock;

use clap::{Parser, ValueEnum};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "What coeval costs, beside a floor measured in the same run")]
struct Args {
    /// What to measure.
    case: Case,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
    /// The invite of the process that measures; for the second process it starts.
    #[arg(long, hide = true)]
    invite: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    /// Reads of a motion at a context through a handle.
    Read,
    /// Writes of a motion through a handle.
    Write,
    /// Updates between two processes.
    Replicate,
    /// Updates of a lone peer to its journal.
    Journal,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One figure: name, value, and what it is.
type Figure = (&'static str, f64, &'static str);

fn run(args: &Args) -> Result<Vec<Figure>, Failure> {
    match (args.case, &args.invite) {
        (Case::Read, _) => local::read(),
        (Case::Write, _) => local::write(),
        (Case::Journal, _) => journal::measure(),
        (Case::Replicate, None) => replicate::measure(),
        (Case::Replicate, Some(invite)) => replicate::second(invite).map(|()| Vec::new()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(figures) if args.json => {
            let object = figures.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).into()));
            println!("{}", serde_json::Value::Object(object.collect()));
            ExitCode::SUCCESS
        }
        Ok(figures) => {
            for (name, value, what) in figures {
                println!("{name:<28}{value:>14.1}  {what}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("coeval-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
