//! The driver without a thread, a socket and a clock of its own: for simulations, which run many drivers on one thread
//! under paused time.
//!
//! It is the same loop, the same tasks and the same QUIC as behind [`spawn`](crate::spawn); a program that is not a
//! simulation has no use for it. What decides how a run goes comes from the simulation: the network ([`Place::socket`]),
//! time (the runtime's, paused or not), randomness ([`Config::seed`], [`identity`]). What TLS and QUIC draw from the
//! operating system (ephemeral keys, connection ids) changes the bytes of datagrams and neither their sizes nor their
//! times.
use crate::admission::Admission;
use crate::clock::DriverClock;
use crate::config::Config;
use crate::driver::{self, BindError, Io};
use crate::identity::Identity;
use coeval_sync::Machine;
use quinn::{AsyncUdpSocket, Runtime};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where a simulated driver runs.
#[derive(Clone)]
pub struct Place {
    /// Its network.
    pub socket: Arc<dyn AsyncUdpSocket>,
    /// Spawns its tasks, those of QUIC included, and tells QUIC the time. Must be at home in the tokio runtime that
    /// [`start`] is called in: the driver's own timers are that runtime's.
    pub runtime: Arc<dyn Runtime>,
    /// The instant at which the driver's clock, and its machine's, shows zero.
    pub origin: tokio::time::Instant,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Like [`spawn`](crate::spawn), in the calling tokio runtime: the driver runs while the future that this gives is
/// polled, and is done when it ends. It is killed, as a process is, when that future and all tasks of
/// [`Place::runtime`] are dropped.
///
/// The handle must not wait on the thread that polls: [`Io::ask`] gives an error there, and [`Io::shutdown`] returns
/// at once. Paused time does not pass while a program is busy, so [`Config::gather`] is zero here.
///
/// # Errors
/// When the identity cannot be used for TLS, or the socket has no address.
pub fn start<M, A>(
    config: Config,
    machine: M,
    admission: Arc<dyn Admission>,
    after: A,
    place: Place,
) -> Result<(Io<M>, impl Future<Output = ()> + Send + use<M, A>), BindError>
where
    M: Machine + 'static,
    A: FnMut(&mut M) + Send + 'static,
{
    let config = Config { gather: Duration::ZERO, ..config };
    let address = config.listen;
    let failed = |source| BindError::Io { address, source };
    let Place { socket, runtime, origin } = place;
    let local = socket.local_addr().map_err(failed)?;
    let place = driver::Place { local, runtime, clock: DriverClock::counting_from(origin) };
    let (io, parts) = driver::prepare(config, machine, admission, after, place)?;
    let mut pump = driver::pump(parts, socket).map_err(failed)?;
    let note = io.stop.clone();
    let run = async move {
        pump.run().await;
        drop(pump);
        note.set_shut_down();
    };
    Ok((io, run))
}

/// The identity of a private key (an Ed25519 seed, RFC 8032): the same in every run.
///
/// # Panics
/// Never: any 32 bytes are a key.
#[must_use]
pub fn identity(seed: [u8; 32]) -> Identity {
    Identity::from_seed(seed).expect("any 32 bytes are a key")
}
