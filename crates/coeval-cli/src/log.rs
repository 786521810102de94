//! Where the log goes: standard error, and daily files. Never standard output.
use crate::args::Global;
use crate::errors::{Exit, Failure, Outcome};
use std::path::Path;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Daily files that are kept.
const FILES: usize = 14;

/// Keeps the log file written until dropped at the end of `main`.
#[derive(Debug)]
pub(crate) struct Logging(
    #[expect(dead_code, reason = "held for its drop, which writes out the rest")] Option<WorkerGuard>,
);

/// Starts logging as the options say: warnings by default.
pub(crate) fn start(options: &Global) -> Outcome<Logging> {
    let console = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_filter(filter(options, options.verbose)?);
    let (file, guard) = match &options.log_file {
        None => (None, None),
        Some(directory) => {
            let appender = appender(directory)?;
            let (writer, guard) = tracing_appender::non_blocking(appender);
            // A file is for looking back: it tells what happened even when the console is quiet.
            let layer = tracing_subscriber::fmt::layer()
                .with_writer(writer)
                .with_ansi(false)
                .with_filter(filter(options, options.verbose.max(1))?);
            (Some(layer), Some(guard))
        }
    };
    tracing_subscriber::registry()
        .with(console)
        .with(file)
        .try_init()
        .map_err(|e| Failure::new(Exit::Failure, format!("logging: {e}")))?;
    Ok(Logging(guard))
}

/// The files in `directory`, which is made if it is not there.
fn appender(directory: &Path) -> Outcome<RollingFileAppender> {
    let failed = |error: &dyn std::fmt::Display| {
        let place = directory.display();
        Failure::new(
            Exit::Network,
            format!("log files in {place}: {error}: name a directory that can be written"),
        )
    };
    std::fs::create_dir_all(directory).map_err(|e| failed(&e))?;
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("coeval")
        .filename_suffix("log")
        .max_log_files(FILES)
        .build(directory)
        .map_err(|e| failed(&e))
}

/// The levels by target that the options ask for.
fn filter(options: &Global, verbose: u8) -> Outcome<EnvFilter> {
    let spec = options.log.as_deref().unwrap_or(match verbose {
        0 => "warn",
        // Targets match by their beginning, so `coeval` is all crates of the house; others talk of every packet.
        1 => "warn,coeval=info",
        2 => "info,coeval=debug",
        _ => "trace",
    });
    EnvFilter::builder().parse(spec).map_err(|e| {
        Failure::usage(format!("--log {spec:?}: {e}: write TARGET=LEVEL, like warn,coeval_sync=debug"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(log: Option<&str>) -> Global {
        Global { json: false, verbose: 0, log: log.map(str::to_owned), log_file: None }
    }

    #[test]
    fn levels_by_target_are_understood_and_nonsense_is_refused() {
        let fine = filter(&options(Some("warn,coeval_sync=debug")), 0).expect("a spec");
        assert!(fine.to_string().contains("coeval_sync=debug"));
        let refused = filter(&options(Some("coeval=loud")), 0).expect_err("no such level");
        assert_eq!(refused.exit(), Exit::Usage);
        assert!(refused.to_string().contains("coeval=loud"));
    }

    #[test]
    fn more_v_says_more() {
        for (verbose, word) in [(0, "warn"), (1, "coeval=info"), (2, "coeval=debug"), (3, "trace")] {
            let levels = filter(&options(None), verbose).expect("a spec").to_string();
            assert!(levels.contains(word), "{verbose}: {levels}");
        }
    }
}
