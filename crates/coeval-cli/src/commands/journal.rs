//! `coeval journal check`: what a journal holds, and whether it is whole.
use crate::errors::{Exit, Failure, Outcome};
use crate::output::Output;
use coeval::JournalReport;
use serde_json::json;
use std::path::Path;

/// Looks through a journal; fails when it is damaged.
pub(crate) fn check(path: &Path, output: Output) -> Outcome {
    let report = coeval::journal::inspect(path)?;
    output.either(
        || {
            json!({
                "file": path.display().to_string(),
                "session": report.session.0.to_string(),
                "name": report.session_name,
                "peer": report.peer_name,
                "listen": report.listen,
                "openings": report.writers.len(),
                "bytes": report.bytes,
                "kept": report.kept,
                "marks": report.marks,
                "torn": report.torn,
                "closed": report.closed,
                "damaged_at": report.damaged_at,
            })
        },
        || describe(path, &report),
    )?;
    match report.damaged_at {
        None => Ok(()),
        Some(at) => Err(Failure::new(
            Exit::Failure,
            format!(
                "{} is damaged at byte {at}: restore it from a backup, or `coeval rehost --salvage` keeps the {} bytes before",
                path.display(),
                report.kept
            ),
        )),
    }
}

fn describe(path: &Path, report: &JournalReport) -> String {
    let state = match (report.damaged_at, report.closed, report.torn) {
        (Some(at), ..) => format!("damaged at byte {at}"),
        (None, true, _) => "whole, closed in order".to_owned(),
        (None, false, 0) => "whole, not closed in order".to_owned(),
        (None, false, torn) => format!("whole but for {torn} bytes at its end, which were never safe"),
    };
    format!(
        "{}: session {:?} ({}), kept by {:?} at {}, openings: {}\n{} bytes, {} marks: {state}",
        path.display(),
        report.session_name,
        report.session.0,
        report.peer_name,
        report.listen,
        report.writers.len(),
        report.bytes,
        report.marks
    )
}
