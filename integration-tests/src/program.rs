//! A peer in a process of its own.
use crate::wait::eventually;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take before the program counts as hung.
const ANSWER: Duration = Duration::from_secs(30);

/// A running program; killed when dropped.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<Value>,
    /// An invite to its session, as text.
    pub invite: String,
    /// `IP:PORT` that it listens at.
    pub address: String,
}

impl Program {
    /// Starts `exe` with `arguments` (see the program's own documentation), waits until it has opened its peer.
    pub fn start(exe: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(exe)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("a pipe was asked for");
        let stdout = child.stdout.take().expect("a pipe was asked for");
        let (lines, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "garbled": line }));
                if lines.send(answer).is_err() {
                    return;
                }
            }
        });
        let mut program = Self { child, stdin, answers, invite: String::new(), address: String::new() };
        let ready = program.answer();
        let text =
            |key: &str| ready[key].as_str().unwrap_or_else(|| panic!("not opened: {ready}")).to_owned();
        (program.invite, program.address) = (text("invite"), text("address"));
        program
    }

    /// Gives a command and waits for the answer; panics on an error.
    pub fn ask(&mut self, command: Value) -> Value {
        let answer = self.try_ask(&command);
        assert!(answer.get("error").is_none(), "{command} gave {answer}");
        answer
    }

    /// Gives a command and waits for the answer, which may be an error.
    pub fn try_ask(&mut self, command: &Value) -> Value {
        writeln!(self.stdin, "{command}").expect("the program reads commands");
        self.answer()
    }

    fn answer(&mut self) -> Value {
        self.answers.recv_timeout(ANSWER).expect("the program answers")
    }

    /// The digest of its replica.
    pub fn digest(&mut self) -> String {
        self.ask(json!({ "do": "digest" }))["digest"].as_str().expect("a digest").to_owned()
    }

    /// What `path` of `entity` holds; null while it holds nothing.
    pub fn get(&mut self, entity: &str, path: &str) -> Value {
        self.try_ask(&json!({ "do": "get", "entity": entity, "path": path }))["value"].take()
    }

    /// Writes `value` at `path` of `entity`.
    pub fn set(&mut self, entity: &str, path: &str, value: impl Into<Value>) {
        self.ask(json!({ "do": "set", "entity": entity, "path": path, "value": value.into() }));
    }

    /// The states of the other peers, by name.
    pub fn peers(&mut self) -> Vec<(String, String)> {
        let answer = self.ask(json!({ "do": "peers" }));
        let rows = answer["peers"].as_array().expect("a list");
        let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
        rows.iter().map(|row| (text(row, "name"), text(row, "state"))).collect()
    }

    /// Sends a signal, by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.expect("kill runs").success(), "SIG{name} was not sent");
    }

    /// Kills it without warning.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Fails only when it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until all programs hold the same world.
pub fn converge(programs: &mut [&mut Program]) {
    eventually("equal digests of programs", || {
        let digests: Vec<_> = programs.iter_mut().map(|program| program.digest()).collect();
        digests.windows(2).all(|pair| pair[0] == pair[1])
    });
}
