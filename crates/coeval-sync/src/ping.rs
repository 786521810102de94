//! Pings: the four timestamps that wall offsets are estimated from, and the round-trip time of a link.
use crate::Sync;
use crate::io::Effect;
use crate::notice::Notice;
use coeval_merge::{LinkTag, Replica};
use coeval_time::{MonoTime, PingSample, WallDuration};
use coeval_wire::frame::{Ping, Pong};
use std::collections::BTreeMap;

/// Pings sent at the fast pace.
const FAST: u64 = 8;
/// Most pings that wait for an answer; older ones count as lost.
const WAITING: usize = 16;

/// The pings of a link.
pub(crate) struct Pinging {
    pub(crate) due: MonoTime,
    sent: u64,
    waiting: BTreeMap<u64, MonoTime>,
    /// Smoothed round-trip time, nanoseconds.
    smoothed: Option<u64>,
}

impl Pinging {
    pub(crate) fn new(now: MonoTime) -> Self {
        Self { due: now, sent: 0, waiting: BTreeMap::new(), smoothed: None }
    }

    /// The smoothed round-trip time.
    pub(crate) fn rtt(&self) -> Option<WallDuration> {
        self.smoothed.map(|nanos| WallDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)))
    }
}

impl<R: Replica> Sync<R> {
    /// Sends a ping on a link where one is due.
    pub(crate) fn ping_if_due(&mut self, tag: LinkTag) {
        let slow = self.jitter(self.config.ping_slow);
        let Some(link) = self.links.get_mut(&tag).filter(|link| link.ping.due <= self.now) else { return };
        let ping = &mut link.ping;
        ping.sent += 1;
        ping.due = self.now.saturating_add(if ping.sent < FAST { self.config.ping_fast } else { slow });
        ping.waiting.insert(ping.sent, self.now);
        if ping.waiting.len() > WAITING {
            ping.waiting.pop_first();
        }
        let id = ping.sent;
        self.datagram(tag, Ping { id }.into());
    }

    /// Answers a ping.
    pub(crate) fn on_ping(&mut self, tag: LinkTag, ping: Ping) {
        let wall = self.session_wall();
        self.datagram(tag, Pong { id: ping.id, received: wall, sent: wall }.into());
    }

    /// Takes the answer to a ping; a repeated or made-up one is ignored.
    pub(crate) fn on_pong(&mut self, tag: LinkTag, pong: Pong) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        let Some(t1) = link.ping.waiting.remove(&pong.id) else { return };
        let sample = self.now.as_nanos().saturating_sub(t1.as_nanos());
        // Weight 1/8 for the newest sample, as in RFC 6298.
        link.ping.smoothed = Some(link.ping.smoothed.map_or(sample, |old| old - old / 8 + sample / 8));
        let node = link.peer.node;
        let sample = PingSample { t1, t2: pong.received, t3: pong.sent, t4: self.now };
        self.samples += 1;
        self.notices.push_back(Notice::PingSample { node, sample });
    }

    fn datagram(&mut self, link: LinkTag, frame: coeval_wire::Frame) {
        match frame.encode() {
            Ok(bytes) => self.out.push(Effect::Datagram { link, bytes }),
            Err(error) => self.complain(link, error.to_string()),
        }
    }
}
