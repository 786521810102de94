//! What the driver is told at its start: addresses, names, limits, time-outs.
use crate::{Bell, Identity, LinkConditioner};
use coeval_time::Incarnation;
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The version of the link protocol spoken here.
pub const PROTOCOL: u16 = 2;

/// With GSO the kernel takes at most 64 KiB per call and quinn fills ten segments: a larger one silently falls back
/// to single sends.
pub(crate) const MAX_UDP_PAYLOAD: u16 = 6_400;
/// Bytes of the lane that may wait in QUIC's own buffers; small enough that what waits there is not stale for long.
const SEND_WINDOW: u64 = 2 << 20;
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const DATAGRAM_SEND_BUFFER: usize = 256 << 10;
const DATAGRAM_RECEIVE_BUFFER: usize = 1 << 20;

/// How fast a link sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Congestion {
    /// Loss means congestion (RFC 9438). Fair on shared networks; slow where loss is random.
    #[default]
    Cubic,
    /// Estimates bandwidth and round trip; keeps its rate under random loss (radio links).
    Bbr,
}

/// How to run the driver.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who this installation is.
    pub identity: Identity,
    /// Which opening of it.
    pub incarnation: Incarnation,
    /// The name shown to others (a label, at most 255 bytes).
    pub name: String,
    /// Whether this peer only reads.
    pub observer: bool,
    /// Where to listen; port 0 lets the system choose. `[::]` listens on IPv4 too.
    pub listen: SocketAddr,
    /// Addresses to tell others instead of those found (behind a forwarded port, say).
    pub advertise: Vec<SocketAddr>,
    /// The protocol version spoken; anything but [`PROTOCOL`] is for tests of refusals.
    pub protocol: u16,
    /// A peer from which nothing came is given up after this, at most a tenth later, however late it once answered.
    pub idle_timeout: Duration,
    /// An idle link says that it lives this often.
    pub keep_alive: Duration,
    /// The proofs of a new link must be exchanged within this.
    pub handshake_timeout: Duration,
    /// Dialing gives up after this.
    pub dial_timeout: Duration,
    /// The longest message of the reliable lane, bytes; a longer one closes the link.
    pub max_message: usize,
    /// Bytes of messages that may wait for one link; more closes it (the machine should have conflated).
    pub max_queue: usize,
    /// The most links at once.
    pub max_links: usize,
    /// After a flush the pump gathers further changes for this long before it flushes or parks.
    pub gather: Duration,
    /// The congestion controller.
    pub congestion: Congestion,
    /// Delay, loss and the like, for trying bad networks; inactive by default. Clones control the same link.
    pub conditioner: LinkConditioner,
    /// The bell that writers ring.
    pub bell: Bell,
    /// Seeds the generator handed to the machine and that of QUIC, for runs that repeat; `None`: from the system.
    pub seed: Option<u64>,
}

impl Config {
    /// The defaults for `identity`: all IPv4 interfaces, a port chosen by the system, a random incarnation.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            // Zero and one are reserved.
            incarnation: Incarnation(rand::random::<u64>().max(2)),
            name: String::new(),
            observer: false,
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            advertise: Vec::new(),
            protocol: PROTOCOL,
            idle_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(2),
            handshake_timeout: Duration::from_secs(5),
            dial_timeout: Duration::from_secs(10),
            max_message: 16 << 20,
            max_queue: 256 << 20,
            max_links: 1_024,
            gather: Duration::from_micros(50),
            congestion: Congestion::Cubic,
            conditioner: LinkConditioner::new(0),
            bell: Bell::new(),
            seed: None,
        }
    }

    pub(crate) fn transport(&self) -> Arc<TransportConfig> {
        let idle = VarInt::try_from(self.idle_timeout.as_millis() as u64).unwrap_or(VarInt::MAX);
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(MAX_UDP_PAYLOAD);
        let mut transport = TransportConfig::default();
        transport
            .max_idle_timeout(Some(IdleTimeout::from(idle)))
            .keep_alive_interval(Some(self.keep_alive))
            // One stream is the lane, opened by the dialer; nothing else is allowed.
            .max_concurrent_bidi_streams(VarInt::from_u32(1))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .send_window(SEND_WINDOW)
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
            .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
            .datagram_send_buffer_size(DATAGRAM_SEND_BUFFER)
            .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BUFFER))
            .initial_rtt(Duration::from_millis(100))
            .mtu_discovery_config(Some(mtu));
        match self.congestion {
            Congestion::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
            Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        };
        Arc::new(transport)
    }
}
