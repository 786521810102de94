//! The tasks of one simulated process: they can be stopped as by a signal, killed without a word, and counted.
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use std::collections::BTreeMap;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Polls at one instant of virtual time after which a process counts as spinning.
const SPINNING: u64 = 2_000_000;

/// What of a process stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Halt {
    /// Nothing.
    #[default]
    No,
    /// The driver's loop, so that nobody takes what the links read. QUIC goes on.
    Loop,
    /// All of it.
    Process,
}

#[derive(Debug, Default)]
struct State {
    handles: Vec<AbortHandle>,
    /// Where each that lives was spawned.
    live: BTreeMap<u64, &'static Location<'static>>,
    spawned: u64,
    panics: usize,
    halt: Halt,
    waiting: Vec<Waker>,
    polls: u64,
    polled: Option<Instant>,
}

/// The tasks of one process.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Mutex<State>>);

impl Tasks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("one thread")
    }

    /// How many tasks there are, without the driver's loop.
    pub fn live(&self) -> usize {
        self.state().live.len()
    }

    /// How many of those that live were spawned in a source file.
    pub fn count(&self, file: &str) -> usize {
        self.state().live.values().filter(|at| at.file().ends_with(file)).count()
    }

    /// Where those that live were spawned, for people who look for a leak.
    pub fn origins(&self) -> Vec<String> {
        let name = |at: &Location<'_>| {
            let file = at.file().rsplit('/').next().unwrap_or_default();
            format!("{file}:{}", at.line())
        };
        self.state().live.values().map(|at| name(at)).collect()
    }

    /// How many tasks panicked.
    pub fn panics(&self) -> usize {
        self.state().panics
    }

    /// Lets them stand still, or go on.
    pub fn halt(&self, halt: Halt) {
        let mut state = self.state();
        state.halt = halt;
        state.waiting.drain(..).for_each(Waker::wake);
    }

    /// What stands still.
    pub fn halted(&self) -> Halt {
        self.state().halt
    }

    /// Kills all of them; none runs again.
    pub fn kill(&self) {
        let handles = std::mem::take(&mut self.state().handles);
        handles.iter().for_each(AbortHandle::abort);
    }

    /// Runs the driver's loop.
    pub fn run_loop(&self, future: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
        let task = tokio::spawn(Gate { tasks: self.clone(), future: Box::pin(future), number: None });
        self.state().handles.push(task.abort_handle());
        task
    }
}

impl Runtime for Tasks {
    fn new_timer(&self, at: std::time::Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    #[track_caller]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut state = self.state();
        state.spawned += 1;
        let number = state.spawned;
        state.live.insert(number, Location::caller());
        let task = tokio::spawn(Gate { tasks: self.clone(), future, number: Some(number) });
        state.handles.retain(|handle| !handle.is_finished());
        state.handles.push(task.abort_handle());
    }

    fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn now(&self) -> std::time::Instant {
        TokioRuntime.now()
    }
}

/// A task that is polled while its process runs.
struct Gate {
    tasks: Tasks,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Its number; `None`: the driver's loop.
    number: Option<u64>,
}

impl Gate {
    fn may_run(&self, cx: &Context<'_>) -> bool {
        let mut state = self.tasks.state();
        if state.halt == Halt::Process || (self.number.is_none() && state.halt == Halt::Loop) {
            state.waiting.push(cx.waker().clone());
            return false;
        }
        let now = Some(Instant::now());
        let stands = state.polled == now;
        state.polls = if stands { state.polls + 1 } else { 0 };
        state.polled = now;
        let spins = state.polls > SPINNING;
        drop(state);
        assert!(!spins, "the process spins: it was polled {SPINNING} times and time did not pass");
        true
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.may_run(cx) { self.future.as_mut().poll(cx) } else { Poll::Pending }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut state = self.tasks.state();
        if let Some(number) = self.number {
            state.live.remove(&number);
        }
        state.panics += usize::from(std::thread::panicking());
    }
}
