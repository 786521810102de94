//! Runs the real command in real processes, for the tests of this directory.
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Longest that anything may take: far more than it does, so that a busy machine fails nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed when the test ends, however it ends.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts the command and follows its standard output.
    pub(crate) fn start(invite: Option<&str>, arguments: &[&str]) -> Self {
        Self::start_logging_to(Stdio::inherit(), invite, arguments)
    }

    /// As [`start`](Self::start), with standard error going to `log`.
    pub(crate) fn start_logging_to(log: Stdio, invite: Option<&str>, arguments: &[&str]) -> Self {
        let mut child = command(invite, arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the command starts");
        let output = child.stdout.take().expect("its output is piped");
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line of its standard output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line of output in time")
    }

    /// The next line of its standard output, if there is one already.
    pub(crate) fn poll_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Kills it with SIGKILL: no good-bye.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end as Ctrl-C does, and waits for its exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
        assert!(asked.success(), "the process can be signaled");
        self.wait()
    }

    /// Waits for its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < give_up, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A process whose reader goes before it ends.
pub(crate) struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        // It may be gone already; there is nobody to tell.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Reader {
    /// Starts the command.
    pub(crate) fn start(invite: &str, arguments: &[&str]) -> Self {
        let mut command = command(Some(invite), arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("the command starts"))
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn go(&mut self) {
        drop(self.0.stdout.take());
    }

    /// Whether it has not ended yet.
    pub(crate) fn runs(&mut self) -> bool {
        self.0.try_wait().expect("it can be waited for").is_none()
    }

    /// Its exit code, and what it said on standard error.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut error = self.0.stderr.take().expect("its standard error is piped");
        error.read_to_string(&mut said).expect("UTF-8");
        (self.0.wait().expect("it ends").code(), said)
    }
}

/// The command, in an environment that says nothing else to it.
fn command(invite: Option<&str>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coeval"));
    // A busy machine may be slow; tests of time-outs give their own.
    command.args(arguments).env_remove("COEVAL_INVITE").env_remove("COEVAL_LOG").env("COEVAL_TIMEOUT", "40");
    if let Some(invite) = invite {
        command.env("COEVAL_INVITE", invite);
    }
    command
}

/// What a command said and how it ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Asserts that it did what it was asked; its output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "standard error: {}", self.err);
        self.out
    }

    /// Asserts that it failed with `code` and one line that has all of `words`, and printed nothing else.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "standard error: {}", self.err);
        assert_eq!(self.err.lines().count(), 1, "one line, not: {}", self.err);
        assert!(self.err.starts_with("coeval: "), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing in: {}", self.err);
        }
        assert_eq!(self.out, "", "nothing on standard output");
    }
}

/// Runs the command to its end.
pub(crate) fn coeval(invite: Option<&str>, arguments: &[&str]) -> Ran {
    let Output { status, stdout, stderr } =
        command(invite, arguments).stdin(Stdio::null()).output().expect("the command runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// The JSON that a command prints.
#[track_caller]
pub(crate) fn json(invite: &str, arguments: &[&str]) -> Json {
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    let out = coeval(Some(invite), &arguments).ok();
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// Hosts a session, and its invite.
pub(crate) fn host(arguments: &[&str]) -> (Running, String) {
    let mut all = vec!["host"];
    all.extend(arguments);
    let host = Running::start(None, &all);
    let invite = host.line();
    assert!(invite.starts_with("coeval1_"), "the invite stands alone on its line: {invite}");
    (host, invite)
}

/// Joins a session for good, and an invite of its own.
pub(crate) fn join(invite: &str, arguments: &[&str]) -> (Running, String) {
    let mut all = vec!["join"];
    all.extend(arguments);
    let peer = Running::start(Some(invite), &all);
    let own = peer.line();
    assert!(own.starts_with("coeval1_"), "{own}");
    (peer, own)
}

/// Asks until the answer is as wanted: replicas converge, but not by a certain instant.
#[track_caller]
pub(crate) fn eventually(invite: &str, arguments: &[&str], wanted: impl Fn(&Json) -> bool) -> Json {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let answer = json(invite, arguments);
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < give_up, "{arguments:?} stays at {answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A UDP port of this machine that nobody uses at the moment.
pub(crate) fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("its number").port()
}

/// A file with this text in a directory that goes when the test ends.
pub(crate) fn file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a temporary file");
    path
}

/// A sim config with what is given beneath a good header.
pub(crate) fn config(rest: &str) -> String {
    format!(
        "[config]\nid = \"0f6a1c1e-6f0e-4b5e-9d0e-2d5f0c1f7a11\"\nname = \"test\"\n\
         [genesis]\nstart = \"2028-04-25T05:30:00 TAI\"\n{rest}"
    )
}
