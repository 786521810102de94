//! What goes to standard output: lines and tables for people, JSON for programs.
use crate::errors::Outcome;
use coeval::{CivilScale, SimTime, Stamp};
use serde_json::{Value as Json, json};
use std::io::{IsTerminal, Write};

/// Longest cell of a table on a terminal, in characters.
const CELL: usize = 60;

/// Standard output, in the form asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    terminal: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, terminal: std::io::stdout().is_terminal() }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Writes a line for people.
    pub(crate) fn line(self, text: impl AsRef<str>) -> Outcome {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Writes one JSON value on a line.
    pub(crate) fn json(self, value: &Json) -> Outcome {
        self.line(value.to_string())
    }

    /// Writes `value` or `text`, whichever is asked for.
    pub(crate) fn either(self, value: impl FnOnce() -> Json, text: impl FnOnce() -> String) -> Outcome {
        if self.json { self.json(&value()) } else { self.line(text()) }
    }

    /// Writes rows beneath a heading, in columns. Nothing but the heading when there are none.
    pub(crate) fn table<const N: usize>(self, heading: [&str; N], rows: &[[String; N]]) -> Outcome {
        let shown: Vec<[String; N]> =
            rows.iter().map(|row| row.clone().map(|cell| self.cell(cell))).collect();
        let mut width = heading.map(|cell| cell.chars().count());
        for row in &shown {
            for (width, cell) in width.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: [&str; N]| {
            let padded: Vec<_> =
                cells.iter().zip(width).map(|(cell, width)| format!("{cell:<width$}")).collect();
            padded.join("  ").trim_end().to_owned()
        };
        let mut text = line(heading);
        for row in &shown {
            text += "\n";
            text += &line(std::array::from_fn(|column| row[column].as_str()));
        }
        self.line(text)
    }

    fn cell(self, text: String) -> String {
        if !self.terminal || text.chars().count() <= CELL {
            return text;
        }
        text.chars().take(CELL - 1).chain(['…']).collect()
    }
}

/// A sim time in UTC, with a flag where the leap-second table does not reach.
pub(crate) fn utc(sim: SimTime) -> String {
    sim.to_civil(CivilScale::Utc).to_string()
}

/// A sim time in both scales and as numbers.
pub(crate) fn sim_json(sim: SimTime) -> Json {
    let (secs, nanos) = sim.secs_nanos();
    json!({ "tai": sim.to_string(), "utc": utc(sim), "secs": secs, "nanos": nanos })
}

/// A stamp as its two numbers.
pub(crate) fn stamp_json(stamp: Stamp) -> Json {
    json!({ "hlc": stamp.hlc, "writer": format!("{:016x}", stamp.writer.0) })
}

/// A span of seconds in two or three digits.
pub(crate) fn span(seconds: f64) -> String {
    let (size, unit) = match seconds.abs() {
        s if s < 1e-3 => (1e-6, "µs"),
        s if s < 1.0 => (1e-3, "ms"),
        s if s < 120.0 => (1.0, "s"),
        s if s < 7_200.0 => (60.0, "min"),
        s if s < 172_800.0 => (3_600.0, "h"),
        s if s < 63_115_200.0 => (86_400.0, "d"),
        _ => (31_557_600.0, "y"),
    };
    let amount = seconds / size;
    if amount.abs() < 10.0 { format!("{amount:.1} {unit}") } else { format!("{amount:.0} {unit}") }
}

/// A number of bytes in two or three digits.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_choose_their_unit() {
        for (seconds, text) in [
            (0.0, "0.0 µs"),
            (0.0123, "12 ms"),
            (5.25, "5.2 s"),
            (-90.0, "-90 s"),
            (600.0, "10 min"),
            (86_400.0, "24 h"),
            (3_155_760_000.0, "100 y"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn times_name_their_scale() {
        let sim: SimTime = "2016-12-31T23:59:60.5Z".parse().expect("a date");
        assert_eq!(utc(sim), "2016-12-31T23:59:60.500000000 UTC");
        assert_eq!(sim_json(sim)["tai"], "2017-01-01T00:00:36.500000000 TAI");
    }
}
