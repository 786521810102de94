//! How links come and go: dials, closes, time-outs.
use super::happening::{Happening, What};
use super::lane::End;
use super::{FaultKind, IDLE_TIMEOUT, Net, Site};
use coeval_merge::LinkTag;
use coeval_sync::{CloseReason, Effect, Input, Machine};
use coeval_value::NodeId;
use rand::Rng;

impl<M: Machine> Net<M> {
    /// Asks `from` to dial `to`.
    pub fn dial(&mut self, from: Site, to: Site) {
        let Some(node) = self.places[to].peer.as_ref().map(|peer| peer.node) else { return };
        self.effect(from, Effect::Dial { node, addresses: vec![to.to_string()] });
    }

    /// Takes the links between two sites away: both ends hear of it, what is under way is lost.
    pub fn tear_down(&mut self, a: Site, b: Site) {
        let between =
            |end: &End| (end.site, end.other_site) == (a, b) || (end.other_site, end.site) == (a, b);
        let tags: Vec<(LinkTag, Site)> =
            self.ends.iter().filter(|(_, end)| between(end)).map(|(tag, end)| (*tag, end.site)).collect();
        for (tag, site) in &tags {
            let reason = "the link was taken away".to_owned();
            self.schedule(self.now, *site, What::Link { tag: *tag, what: Happening::Down { reason } });
        }
        if !tags.is_empty() {
            self.faults.count(FaultKind::TornDown);
        }
    }

    /// Both ends of a link notice that it is dead.
    pub(super) fn time_out(&mut self, tag: LinkTag, end: End) {
        for (tag, site) in [(end.other, end.other_site), (tag, end.site)] {
            let reason = "nothing heard within the idle time-out".to_owned();
            self.schedule(self.now, site, What::Link { tag, what: Happening::Down { reason } });
        }
    }

    pub(super) fn remove(&mut self, tag: LinkTag) -> Option<End> {
        self.held.remove(&tag);
        self.blocked.remove(&tag);
        self.ends.remove(&tag)
    }

    /// Closes a link from one end. A peer that leaves lets its last messages through; any other close overtakes what is
    /// under way, or not. Through a cut nothing is heard of it.
    pub(super) fn close(&mut self, link: LinkTag, reason: &CloseReason) {
        let Some(end) = self.remove(link) else { return };
        let mut arrives = self.now + self.one_way(end.site, end.other_site);
        if *reason == CloseReason::Left || self.rng.random_bool(0.5) {
            arrives = arrives.max(end.arrives + 1);
        }
        if self.is_cut(end.site, end.other_site) {
            arrives += IDLE_TIMEOUT.as_nanos().unsigned_abs();
        }
        let what = Happening::Down { reason: reason.to_string() };
        self.schedule(arrives, end.other_site, What::Link { tag: end.other, what });
    }

    /// The other ends of a dead machine's links notice after the idle time-out.
    pub(super) fn abandon(&mut self, site: Site) {
        let tags: Vec<_> =
            self.ends.iter().filter(|(_, end)| end.site == site).map(|(tag, _)| *tag).collect();
        let at = self.now + IDLE_TIMEOUT.as_nanos().unsigned_abs();
        for tag in tags {
            if let Some(end) = self.remove(tag) {
                let reason = "the peer stopped answering".to_owned();
                let what = Happening::Down { reason };
                self.schedule(at, end.other_site, What::Link { tag: end.other, what });
            }
        }
    }

    pub(super) fn dialed(&mut self, from: Site, node: NodeId, addresses: &[String]) {
        let to = addresses.iter().find_map(|address| address.parse::<Site>().ok()).filter(|to| {
            let place = self.places.get(*to);
            *to != from
                && place.is_some_and(|place| {
                    let answers = place.machine.is_some() && place.paused.is_none();
                    answers && place.peer.as_ref().is_some_and(|peer| peer.node == node)
                })
                && !self.is_cut(from, *to)
                && !self.is_cut(*to, from)
        });
        let Some(to) = to else {
            self.faults.count(FaultKind::DialFailed);
            self.input(from, Input::DialFailed { node, reason: "no answer".into() });
            return;
        };
        let (ours, theirs) = (LinkTag(self.next_tag), LinkTag(self.next_tag + 1));
        self.next_tag += 2;
        // The two ends learn of the link one after the other, in either order; nothing arrives before.
        let up = [self.now + self.one_way(from, to) / 2, self.now + self.one_way(to, from) / 2];
        self.ends.insert(ours, End::new(from, theirs, to, up[1]));
        self.ends.insert(theirs, End::new(to, ours, from, up[0]));
        for (at, tag, site, other, dialed) in
            [(up[0], ours, from, to, true), (up[1], theirs, to, from, false)]
        {
            if let Some(peer) = self.places[other].peer.clone() {
                self.schedule(at, site, What::Link { tag, what: Happening::Up { peer, dialed } });
            }
        }
    }
}
