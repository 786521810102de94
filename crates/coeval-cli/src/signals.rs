//! Ctrl-C and termination: asks the command to end in order.
use crate::errors::{Exit, Failure, Outcome};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Tells when the process is to end.
#[derive(Debug)]
pub(crate) struct Signals {
    asked: Receiver<()>,
}

impl Signals {
    /// Listens from now on for Ctrl-C, SIGTERM and SIGHUP.
    pub(crate) fn listen() -> Outcome<Self> {
        let (ask, asked) = mpsc::channel();
        let handler = move || {
            // Whoever listened may be gone: then the process is on its way out already.
            let _ = ask.send(());
        };
        ctrlc::set_handler(handler).map_err(|e| Failure::new(Exit::Network, format!("signals: {e}")))?;
        Ok(Self { asked })
    }

    /// Waits until asked to end, for at most `time`; whether it was asked.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        self.asked.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}
