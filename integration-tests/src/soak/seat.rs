//! A place at the table: one process after the other sits there.
use super::record::Life;
use super::worker::{Assignment, Request};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::Instant;

/// What a process said: its seat, its generation, the line.
pub(super) type Said = (usize, u32, Value);

/// How the process of a seat is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// There is none; another is started at this instant or later.
    Down(Instant),
    /// Started, not ready yet.
    Starting,
    /// At work.
    Up,
    /// Stopped by a signal.
    Frozen,
}

/// A seat and who sits there now.
pub(super) struct Seat {
    pub(super) assignment: Assignment,
    pub(super) state: State,
    /// Known once ready.
    pub(super) life: Option<Life>,
    /// An invite by whoever sits here.
    pub(super) invite: Option<String>,
    child: Option<(Child, ChildStdin)>,
}

impl Seat {
    pub(super) fn new(assignment: Assignment) -> Self {
        Self { assignment, state: State::Down(Instant::now()), life: None, invite: None, child: None }
    }

    /// Starts a process on this seat: `exe worker ASSIGNMENT`. With a `limit`, its files may have so many blocks of 512
    /// bytes: beyond, writing fails as on a full disk. Its history comes over standard output then.
    pub(super) fn start(
        &mut self,
        exe: &Path,
        log: File,
        limit: Option<u32>,
        said: &Sender<Said>,
    ) -> io::Result<()> {
        let mut command = Command::new(if limit.is_some() { Path::new("sh") } else { exe });
        let mut assignment = self.assignment.clone();
        let history = assignment.history.clone();
        if let Some(blocks) = limit {
            assignment.history = PathBuf::from("/dev/stdout");
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            command.args(["-c", &script]).arg(exe);
        }
        let assignment = serde_json::to_string(&assignment)?;
        let mut child = command
            .args(["worker", &assignment])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        self.child = Some((child, stdin));
        (self.state, self.life, self.invite) = (State::Starting, None, None);
        let (seat, generation, said) = (self.assignment.seat, self.assignment.generation, said.clone());
        let mut kept = limit.map(|_| File::options().create(true).append(true).open(history)).transpose()?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Records are arrays, answers are objects.
                if let Some(file) = kept.as_mut().filter(|_| line.starts_with('[')) {
                    // What is not kept is missed by the judge.
                    let _ = writeln!(file, "{line}");
                    continue;
                }
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if said.send((seat, generation, line)).is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Asks something; the answer is said in time. A process that is gone does not hear it, which is seen elsewhere.
    pub(super) fn ask(&mut self, request: &Request) {
        if let (Some((_, stdin)), Ok(line)) = (&mut self.child, serde_json::to_string(request)) {
            let _ = writeln!(stdin, "{line}");
        }
    }

    /// Sends a signal, by its name without `SIG`.
    pub(super) fn signal(&self, name: &str) -> io::Result<()> {
        let Some((child, _)) = &self.child else { return Ok(()) };
        let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("SIG{name} was not sent"))) }
    }

    /// Kills the process, and waits until it is gone. Another may be started from `until` on.
    pub(super) fn kill(&mut self, until: Instant) {
        if let Some((mut child, _)) = self.child.take() {
            // Fails only when it has ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        (self.state, self.invite) = (State::Down(until), None);
    }

    /// How the process ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let (child, _) = self.child.as_mut()?;
        let status = child.try_wait().ok().flatten()?;
        self.child = None;
        Some(status)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.kill(Instant::now());
    }
}
