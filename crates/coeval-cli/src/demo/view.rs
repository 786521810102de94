//! The live view: three panes side by side on a terminal, a line a second elsewhere, nothing with `--json`.
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const TITLES: [&str; 3] = ["host: flights", "joiner: orbits", "joiner: viewer, OS clock 9 min wrong"];
const WIDTH: usize = 60;
const HEIGHT: usize = 12;

/// Where the demo shows itself.
#[derive(Debug)]
pub(crate) struct View {
    mode: Mode,
    panes: [Vec<String>; 3],
    captions: Vec<String>,
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
        Self { mode, panes: Default::default(), captions: Vec::new(), drawn: None }
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
        let mut screen = String::from("\x1b[2J\x1b[H");
        let row = |cells: [&str; 3]| cells.map(|cell| format!("{cell:<WIDTH$.WIDTH$}")).join(" │ ") + "\n";
        screen += &row(TITLES);
        screen += &format!("{}\n", "─".repeat(3 * WIDTH + 6));
        for line in 0..HEIGHT {
            let cell = |pane: usize| self.panes[pane].get(line).map_or("", String::as_str);
            screen += &row([cell(0), cell(1), cell(2)]);
        }
        for caption in self.captions.iter().rev().take(4).rev() {
            screen += &format!("  {caption}\n");
        }
        say(&screen);
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that closed its end misses nothing it wants.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
