//! How bytes travel: a reliable, ordered lane and datagrams on each link.
use super::happening::{Happening, What};
use super::{Conditions, FaultKind, IDLE_TIMEOUT, Net, Site};
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_sync::Machine;
use rand::Rng;
use std::collections::VecDeque;

/// A way that takes longer than this delays, ns.
const QUICK: u64 = 1_000_000;

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) site: Site,
    pub(super) other: LinkTag,
    pub(super) other_site: Site,
    /// When the lane's last queued byte has left, and when its last message arrives.
    pub(super) busy_until: u64,
    pub(super) arrives: u64,
    /// When the last datagram arrives.
    pub(super) datagram_arrives: u64,
    /// Bytes of the lane that left and were not read yet.
    pub(super) unread: usize,
}

impl End {
    pub(super) const fn new(site: Site, other: LinkTag, other_site: Site, arrives: u64) -> Self {
        Self { site, other, other_site, busy_until: 0, arrives, datagram_arrives: 0, unread: 0 }
    }
}

impl<M: Machine> Net<M> {
    /// A lane message. A cut holds it and all that follow; both ends notice after the idle time-out.
    pub(super) fn send(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(end) = self.ends.get(&link).copied() else { return };
        self.bytes += bytes.len() as u64;
        if self.is_cut(end.site, end.other_site) || self.held.contains_key(&link) {
            self.faults.count(FaultKind::Partitioned);
            let since = self.now;
            let (since, held) = self.held.entry(link).or_insert_with(|| (since, Vec::new()));
            held.push(bytes);
            if held.len() == 1 {
                let (at, since) = (*since + IDLE_TIMEOUT.as_nanos().unsigned_abs(), *since);
                self.schedule(at, end.site, What::Link { tag: link, what: Happening::Idle { since } });
            }
            return;
        }
        self.transmit(link, bytes);
    }

    /// Sends on what no cut holds up any more.
    pub(super) fn release(&mut self) {
        for (link, (since, messages)) in std::mem::take(&mut self.held) {
            let Some(end) = self.ends.get(&link).copied() else { continue };
            if self.is_cut(end.site, end.other_site) {
                self.held.insert(link, (since, messages));
            } else {
                messages.into_iter().for_each(|bytes| self.transmit(link, bytes));
            }
        }
    }

    /// Onto the lane, or behind what waits for the receiver to read.
    fn transmit(&mut self, link: LinkTag, bytes: Bytes) {
        if self.blocked.contains_key(&link) || !self.takes(link, bytes.len()) {
            self.faults.count(FaultKind::Blocked);
            self.blocked.entry(link).or_default().push_back(bytes);
        } else {
            self.depart(link, bytes);
        }
    }

    /// Bandwidth first, then delay; each loss costs a retransmission, and what follows waits.
    fn depart(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(end) = self.ends.get(&link).copied() else { return };
        let size = bytes.len();
        let Conditions { delay, jitter, loss, bandwidth, .. } = self.conditions(end.site, end.other_site);
        let starts = self.now.max(end.busy_until);
        let leaves = starts + (size as u64 + 40) * 1_000_000_000 / bandwidth;
        let mut arrives = leaves + self.one_way(end.site, end.other_site);
        while self.rng.random_bool(loss) {
            self.faults.count(FaultKind::Lost);
            arrives += 2 * delay + jitter + 5_000_000;
        }
        for (kind, happened) in [
            (FaultKind::Throttled, starts > self.now),
            (FaultKind::Delayed, delay > QUICK),
            (FaultKind::Jittered, arrives > leaves + delay),
        ] {
            if happened {
                self.faults.count(kind);
            }
        }
        let arrives = arrives.max(end.arrives + 1);
        if let Some(end) = self.ends.get_mut(&link) {
            (end.busy_until, end.arrives) = (leaves, arrives);
        }
        self.schedule(leaves, end.site, What::Link { tag: link, what: Happening::Sent { bytes: size } });
        if self.losing.remove(&(end.site, end.other_site)) {
            return self.faults.count(FaultKind::MessageLost);
        }
        if let Some(end) = self.ends.get_mut(&link) {
            end.unread += size;
        }
        let what = Happening::Message { bytes };
        self.schedule(arrives, end.other_site, What::Link { tag: end.other, what });
    }

    /// The receiver has read: what was blocked goes on.
    pub(super) fn credit(&mut self, tag: LinkTag, bytes: usize) {
        if let Some(end) = self.ends.get_mut(&tag) {
            end.unread = end.unread.saturating_sub(bytes);
        }
        while let Some(next) = self.blocked.get(&tag).and_then(|queue| queue.front()).map(Bytes::len) {
            if !self.takes(tag, next) {
                return;
            }
            let bytes = self.blocked.get_mut(&tag).and_then(VecDeque::pop_front);
            bytes.into_iter().for_each(|bytes| self.depart(tag, bytes));
        }
        self.blocked.remove(&tag);
    }

    /// Whether the receiver's window has room.
    fn takes(&self, tag: LinkTag, bytes: usize) -> bool {
        self.ends.get(&tag).is_some_and(|end| {
            let window = self.conditions(end.site, end.other_site).receive_window;
            end.unread == 0 || end.unread + bytes <= window
        })
    }

    /// A datagram now, or never.
    pub(super) fn datagram(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(end) = self.ends.get(&link).copied() else { return };
        self.bytes += bytes.len() as u64;
        let Conditions { loss, duplicate, .. } = self.conditions(end.site, end.other_site);
        let lost = self.rng.random_bool(loss);
        if lost || self.is_cut(end.site, end.other_site) {
            return self.faults.count(FaultKind::DatagramLost);
        }
        let twice = self.rng.random_bool(duplicate);
        if twice {
            self.faults.count(FaultKind::Duplicated);
        }
        for _ in 0..1 + usize::from(twice) {
            let arrives = self.now + self.one_way(end.site, end.other_site);
            if arrives < self.ends.get(&link).map_or(0, |end| end.datagram_arrives) {
                self.faults.count(FaultKind::Reordered);
            }
            if let Some(end) = self.ends.get_mut(&link) {
                end.datagram_arrives = end.datagram_arrives.max(arrives);
            }
            let what = Happening::Datagram { bytes: bytes.clone() };
            self.schedule(arrives, end.other_site, What::Link { tag: end.other, what });
        }
    }
}
