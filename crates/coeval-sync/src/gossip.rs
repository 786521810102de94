//! Link states: telling everyone who is linked to whom, and learning it from them.
use crate::Sync;
use crate::io::LinkPeer;
use crate::members::Presence;
use crate::notice::Notice;
use coeval_merge::{LinkTag, Replica};
use coeval_value::NodeId;
use coeval_wire::Frame;
use coeval_wire::frame::LinkState;

/// What a node says about itself before it has any link.
pub(crate) fn first_word(me: &LinkPeer) -> LinkState {
    LinkState {
        node: me.node,
        version: 1,
        name: me.name.clone(),
        addresses: me.addresses.clone(),
        observer: me.observer,
        left: false,
        links: Vec::new(),
    }
}

impl<R: Replica> Sync<R> {
    /// Tells everyone which links there are now.
    pub(crate) fn relink(&mut self) {
        let mut nodes: Vec<NodeId> = self.links.values().map(|link| link.peer.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if let Some(state) = self.members.revise(|state| state.links = nodes) {
            self.flood(&state, None);
        }
        self.refresh_members();
    }

    pub(crate) fn flood(&mut self, state: &LinkState, except: Option<LinkTag>) {
        let frame = Frame::from(state.clone());
        let Ok(bytes) = frame.encode() else { return };
        for tag in self.tags() {
            if Some(tag) != except {
                self.send_bytes(tag, bytes.clone());
            }
        }
    }

    /// Sends all that is known of the nodes that can be reached.
    pub(crate) fn send_members(&mut self, link: LinkTag) {
        let states: Vec<LinkState> = self.members.reachable().cloned().collect();
        for state in states {
            if state.node == self.me.node || !self.me.observer {
                self.send(link, &state.into());
            }
        }
    }

    /// Works out who is new and who is lost, and tells the owner.
    pub(crate) fn refresh_members(&mut self) {
        for presence in self.members.refresh(self.now, self.config.lost_after, self.config.forget_after) {
            match presence {
                Presence::Up(node) => {
                    let Some(row) = self.members.get(node) else { continue };
                    let (name, observer) = (row.state.name.clone(), row.state.observer);
                    let addresses = row.state.addresses.clone();
                    self.members.supersede(node, &addresses);
                    self.notices.push_back(Notice::PeerUp { node, name, observer });
                }
                Presence::Lost { node, left } => {
                    self.notices.push_back(Notice::PeerLost { node, left });
                    self.drop_events(node);
                }
            }
        }
        self.drop_unawaited();
        self.reroute_events();
        self.replan = true;
    }

    /// Takes what a node says about itself and passes news on.
    pub(crate) fn on_link_state(&mut self, link: LinkTag, state: LinkState) {
        if state.node == self.me.node {
            // An echo of this node from before it lost count: go on above it.
            if let Some(mine) = self.members.revise(|mine| mine.version = mine.version.max(state.version)) {
                self.flood(&mine, None);
            }
        } else if self.members.learn(state.clone(), self.now) {
            if !self.me.observer {
                self.flood(&state, Some(link));
            }
            self.refresh_members();
        }
    }
}
