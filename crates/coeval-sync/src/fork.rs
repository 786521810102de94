//! Another program under the same name: a machine was cloned, and both copies run.
//!
//! Two that write under one incarnation can give one stamp to two writes, and links cannot tell them apart. Whoever finds a
//! stamp of its own that it never issued takes a new name: it closes its links and comes back as a newcomer that holds
//! the world already. The copy goes on under the old name, or finds the same out.
use crate::Sync;
use crate::events::Events;
use crate::gossip::first_word;
use crate::io::{CloseReason, Effect};
use crate::notice::Notice;
use coeval_merge::Replica;
use coeval_time::{Incarnation, Stamp};
use coeval_value::NodeId;

impl<R: Replica> Sync<R> {
    /// Takes a new name if what was applied shows that another program bears this one.
    pub(crate) fn rename_if_forked(&mut self) {
        // A stamp that came under a name before this one is no news any more.
        let Some(stamp) = self.replica.take_fork().filter(|stamp| stamp.writer == self.me.node.incarnation)
        else {
            return;
        };
        // Should a copy of the machine, whose generator is a copy too, draw the same name at the same time, both find that
        // out as they found this out, and draw again.
        let incarnation = Incarnation(self.entropy.max(2));
        if incarnation == self.me.node.incarnation || self.left {
            return;
        }
        self.rename(stamp, incarnation);
    }

    fn rename(&mut self, stamp: Stamp, incarnation: Incarnation) {
        let before = self.me.node;
        // What was written so far goes out under the old name.
        self.pump();
        self.replica.renew(incarnation);
        for tag in self.tags() {
            self.close(tag, CloseReason::Renamed);
        }
        self.me.node = NodeId { incarnation, ..before };
        let present: Vec<NodeId> = self.members.present().collect();
        self.members.rename(first_word(&self.me));
        // Which of them have arrived is not known, and under another name they would arrive twice.
        for to in present {
            self.drop_events(to);
        }
        self.events = Events::default();
        self.out.push(Effect::Rename { node: self.me.node });
        self.notices.push_back(Notice::Renamed { stamp, before, node: self.me.node });
        self.refresh_members();
    }
}
