//! The command `coeval`: host a session, join it, look at it, change it, and the demo.
//!
//! | file | what it holds |
//! |---|---|
//! | `args.rs` | the command line and its `--help` |
//! | `parse.rs` | times, lengths of time, addresses and patterns in it |
//! | `session.rs` | getting into a session, finding what is named in it, leaving it |
//! | `commands/` | one file for each command |
//! | `text.rs` | values as TOML and JSON |
//! | `output.rs` | standard output: lines, tables, JSON |
//! | `errors.rs` | one line and one exit code for each failure |
//! | `log.rs` | logging to standard error and daily files |
//! | `signals.rs` | Ctrl-C |
//! | `demo/` | the demo's processes |
mod args;
mod commands;
mod demo;
mod errors;
mod log;
mod output;
mod parse;
mod session;
mod signals;
mod text;

use args::{Cli, Command, JournalCommand};
use clap::Parser;
use clap::error::ErrorKind;
use errors::{Exit, Failure, Outcome};
use output::Output;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.print().map_err(Failure::from),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Err(Failure::usage("what to do? See `coeval --help`"))
            }
            _ => Err(errors::command_line(&error)),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure.exit() != Exit::Ok {
                // Nobody is left to tell when standard error is gone, too.
                let _ = writeln!(std::io::stderr(), "coeval: {failure}");
            }
            ExitCode::from(failure.exit() as u8)
        }
    }
}

fn run(cli: Cli) -> Outcome {
    let _logging = log::start(&cli.global)?;
    let output = Output::new(cli.global.json);
    match cli.command {
        Command::Host(args) => commands::stay::host(&args, output),
        Command::Join(args) => commands::stay::join(&args, output),
        Command::Rehost(args) => commands::stay::rehost(&args, output),
        Command::Journal(args) => match args.command {
            JournalCommand::Check { path } => commands::journal::check(&path, output),
        },
        Command::Ls(args) => commands::ls::run(&args, output),
        Command::Get(args) => commands::get::run(&args, output),
        Command::Set(args) => commands::change::set(&args, output),
        Command::Rm(args) => commands::change::rm(&args, output),
        Command::Watch(args) => commands::watch::run(&args, output),
        Command::Send(args) => commands::send::run(&args, output),
        Command::Clock(args) => commands::clock::run(&args, output),
        Command::Peers(args) => commands::peers::run(&args, output),
        Command::Check(args) => commands::check::check(&args, output),
        Command::Schema => commands::check::schema(output),
        Command::Demo(args) => commands::demo::run(&args, output),
    }
}
