//! The live view: three panes side by side on a terminal, a line a second elsewhere, nothing with `--json`.
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const TITLES: [&str; 3] = ["host: flights", "joiner: orbits", "joiner: viewer, OS clock 9 min wrong"];
const WIDTH: usize = 58;
const HEIGHT: usize = 11;
/// Lines for captions, and where the cursor stays.
const BELOW: usize = 5;

/// Where the demo shows itself.
#[derive(Debug)]
pub(crate) struct View {
    mode: Mode,
    panes: [Vec<String>; 3],
    captions: Vec<String>,
    killed: [bool; 3],
    drawn: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Silent,
    Lines,
    Panes,
}

impl View {
    /// A view on standard output; `silent` shows nothing.
    pub(crate) fn new(silent: bool) -> Self {
        let mode = match (silent, std::io::stdout().is_terminal()) {
            (true, _) => Mode::Silent,
            (false, true) => Mode::Panes,
            (false, false) => Mode::Lines,
        };
        Self { mode, panes: Default::default(), captions: Vec::new(), killed: [false; 3], drawn: None }
    }

    /// Shows what happened.
    pub(crate) fn caption(&mut self, text: &str) {
        self.captions.push(text.to_owned());
        if self.mode == Mode::Lines {
            say(&format!("-- {text}\n"));
        }
        self.drawn = None;
        self.draw();
    }

    /// Marks a process that was killed: its pane stays as it was last.
    pub(crate) fn killed(&mut self, process: usize) {
        self.killed[process] = true;
    }

    /// Shows a process's newest lines.
    pub(crate) fn pane(&mut self, process: usize, lines: Vec<String>) {
        self.panes[process] = lines;
        self.draw();
    }

    /// Leaves the last picture in place.
    pub(crate) fn finish(&mut self) {
        self.drawn = None;
        self.draw();
    }

    fn draw(&mut self) {
        let pause = match self.mode {
            Mode::Silent => return,
            Mode::Panes => Duration::from_millis(100),
            Mode::Lines => Duration::from_secs(1),
        };
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < pause) {
            return;
        }
        self.drawn = Some(Instant::now());
        if self.mode == Mode::Lines {
            let viewer = &self.panes[2];
            say(&format!("{}\n", viewer.iter().take(3).cloned().collect::<Vec<_>>().join("  ")));
            return;
        }
        let (columns, rows) = terminal_size::terminal_size()
            .map_or((80, 24), |(columns, rows)| (usize::from(columns.0), usize::from(rows.0)));
        say(&self.picture(columns, rows));
    }

    /// The picture for a terminal of this size: panes side by side where they fit, else one above the other.
    fn picture(&self, columns: usize, rows: usize) -> String {
        let title = |pane: usize| {
            format!("{}{}", TITLES[pane], if self.killed[pane] { " (killed, as last seen)" } else { "" })
        };
        let cell = |pane: usize, line: usize| self.panes[pane].get(line).map_or("", String::as_str);
        let mut lines = Vec::new();
        if columns >= 3 * WIDTH + 6 {
            let row = |cells: [&str; 3]| cells.map(|cell| format!("{cell:<WIDTH$.WIDTH$}")).join(" │ ");
            lines.push(row([&title(0), &title(1), &title(2)]));
            lines.push("─".repeat(3 * WIDTH + 6));
            lines.extend((0..HEIGHT).map(|line| row([cell(0, line), cell(1, line), cell(2, line)])));
        } else {
            let height = (rows.saturating_sub(BELOW) / 3).clamp(2, HEIGHT + 1);
            for pane in 0..3 {
                lines.push(format!("── {}", title(pane)));
                lines.extend((1..height).map(|line| cell(pane, line - 1).to_owned()));
            }
        }
        lines.extend(self.captions.iter().rev().take(BELOW - 1).rev().map(|caption| format!("  {caption}")));
        // Each line is cleared behind its text, not the screen before it: nothing flickers.
        let shown = lines.iter().map(|line| format!("{line:.columns$}\x1b[K\n"));
        format!("\x1b[H{}\x1b[J", shown.collect::<String>())
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that closed its end misses nothing it wants.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_fits_terminals_of_any_size() {
        let mut view = View::new(true);
        view.panes = std::array::from_fn(|_| vec!["x".repeat(70); HEIGHT]);
        view.captions = vec!["something happened".to_owned(); 9];
        view.killed(0);
        for (columns, rows) in [(40, 12), (80, 24), (80, 50), (120, 40), (180, 50), (250, 24)] {
            let picture = view.picture(columns, rows);
            let lines: Vec<_> =
                picture.trim_start_matches("\x1b[H").trim_end_matches("\x1b[J").lines().collect();
            assert!(lines.len() < rows, "{} lines on {rows} rows", lines.len());
            for line in lines {
                let width = line.trim_end_matches("\x1b[K").chars().count();
                assert!(width <= columns, "{width} on {columns} columns: {line}");
            }
            assert!(picture.contains("host: flights (killed"), "{columns}: {picture}");
        }
    }
}
