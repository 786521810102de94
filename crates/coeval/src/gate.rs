//! Who may link to this session: invites, members and the session key, kept as write-once entries of the session.
//!
//! | topic | value | written by |
//! |---|---|---|
//! | `invite` | `{ id, secret, expires, uses, observer }` | whoever makes an invite |
//! | `invite/revoked` | the invite's id | whoever revokes it |
//! | `invite/used` | the invite's id | the peer that admitted a joiner by it |
//! | `member` | `{ peer, incarnation, name }` | each peer when it is in; its stamp is its time of admission |
//!
//! Threat model: every member knows the session key and every open invite, and vouches for what it relays.
use coeval_merge::{Entry, EntryBody};
use coeval_quic::{Admission, InviteId, Refusal, RefusalCode, Secret, SessionInfo};
use coeval_store::Store;
use coeval_sync::{LinkPeer, Now};
use coeval_time::{EditId, Incarnation, SessionId, SessionWall, Stamp};
use coeval_value::{Key, NodeId, PeerId, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

const INVITE: &str = "invite";
const REVOKED: &str = "invite/revoked";
const USED: &str = "invite/used";
const MEMBER: &str = "member";

/// What an invite allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    pub(crate) id: InviteId,
    pub(crate) secret: Secret,
    /// Seconds of session wall time since the Unix epoch.
    pub(crate) expires: u64,
    /// How many joiners may use it.
    pub(crate) uses: u64,
    pub(crate) observer: bool,
}

/// One opening of a peer in this session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    /// When it was admitted: the least is the reference of session wall time.
    pub(crate) admitted: Stamp,
}

/// The session's facts that entries tell.
#[derive(Debug, Default)]
struct Facts {
    invites: BTreeMap<u64, Terms>,
    revoked: BTreeSet<u64>,
    /// Each use by its entry: one that is learned of twice counts once.
    used: BTreeMap<u64, BTreeSet<EditId>>,
    /// Uses granted here whose entry is not written yet.
    granted: BTreeMap<u64, u64>,
    members: BTreeMap<Incarnation, Member>,
}

impl Facts {
    fn uses(&self, invite: InviteId) -> u64 {
        let written = self.used.get(&invite.0).map_or(0, BTreeSet::len) as u64;
        written + self.granted.get(&invite.0).copied().unwrap_or(0)
    }
}

/// Builds the replica and the engine, once the session's facts are known.
pub(crate) type Build = Box<dyn FnOnce(&SessionInfo) -> Result<Arc<Store>, String> + Send>;

/// The gate of one peer.
pub(crate) struct Gate {
    wanted: Mutex<SessionId>,
    key: Mutex<Option<Secret>>,
    info: Mutex<Option<SessionInfo>>,
    facts: Mutex<Facts>,
    store: OnceLock<Arc<Store>>,
    build: Mutex<Option<Build>>,
    wall: Arc<SessionWall>,
}

impl Gate {
    pub(crate) fn new(wanted: SessionId, wall: Arc<SessionWall>, build: Build) -> Self {
        Self {
            wanted: Mutex::new(wanted),
            key: Mutex::new(None),
            info: Mutex::new(None),
            facts: Mutex::default(),
            store: OnceLock::new(),
            build: Mutex::new(Some(build)),
            wall,
        }
    }

    /// Opens a session of one's own.
    pub(crate) fn found(&self, info: &SessionInfo, key: Secret) -> Result<(), String> {
        let Some(build) = self.build.lock().take() else { return Ok(()) };
        let store = build(info)?;
        *self.wanted.lock() = info.session;
        *self.info.lock() = Some(info.clone());
        *self.key.lock() = Some(key);
        self.store.get_or_init(|| store);
        Ok(())
    }

    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.store.get()
    }

    pub(crate) fn session_info(&self) -> Option<SessionInfo> {
        self.info.lock().clone()
    }

    /// Takes note of an entry that became part of the session.
    pub(crate) fn learn(&self, entry: &Entry) {
        let EntryBody::Record { topic, value } = &entry.body else { return };
        let stamp = entry.id.stamp;
        let mut facts = self.facts.lock();
        match (&**topic, value) {
            (INVITE, value) => {
                if let Some(terms) = read_terms(value) {
                    facts.invites.insert(terms.id.0, terms);
                }
            }
            (REVOKED, Value::UInt(id)) => {
                facts.revoked.insert(*id);
            }
            (USED, Value::UInt(id)) => {
                facts.used.entry(*id).or_default().insert(entry.id);
            }
            (MEMBER, value) => {
                if let Some(member) = read_member(value, stamp) {
                    facts.members.insert(member.node.incarnation, member);
                }
            }
            _ => {}
        }
    }

    /// All who ever were members, in order of admission.
    pub(crate) fn members(&self) -> Vec<Member> {
        let mut members: Vec<_> = self.facts.lock().members.values().cloned().collect();
        members.sort_by_key(|member| (member.admitted, member.node));
        members
    }

    /// The name of the peer that writes as `writer`.
    pub(crate) fn name_of(&self, writer: Incarnation) -> Option<String> {
        self.facts.lock().members.get(&writer).map(|member| member.name.clone())
    }

    /// Takes one use of an invite for `peer`; whether it is to be counted.
    ///
    /// Several handshakes run at once, so what they all found in order is decided here again, under one lock.
    fn grant(&self, peer: &LinkPeer, invite: InviteId) -> Result<bool, Refusal> {
        let mut facts = self.facts.lock();
        let Some(terms) = facts.invites.get(&invite.0).copied() else { return Ok(false) };
        if terms.observer && !peer.observer {
            return Err(Refusal::new(
                RefusalCode::ObserverNotAllowed,
                "this invite is for observers: join as one, or ask for an invite to contribute",
            ));
        }
        // A member that comes back by its invite uses it no second time.
        if facts.members.contains_key(&peer.node.incarnation) {
            return Ok(false);
        }
        if facts.uses(invite) >= terms.uses {
            return Err(Refusal::standard(RefusalCode::InviteUsedUp));
        }
        *facts.granted.entry(invite.0).or_default() += 1;
        Ok(true)
    }

    /// Whether an invite of this id is known.
    pub(crate) fn knows_invite(&self, id: InviteId) -> bool {
        self.facts.lock().invites.contains_key(&id.0)
    }
}

impl Admission for Gate {
    fn session(&self) -> SessionId {
        *self.wanted.lock()
    }

    fn session_key(&self) -> Option<Secret> {
        *self.key.lock()
    }

    fn info(&self) -> Option<SessionInfo> {
        self.session_info()
    }

    fn verify_invite(&self, invite: InviteId, now: Now) -> Result<Secret, Refusal> {
        let facts = self.facts.lock();
        let terms =
            facts.invites.get(&invite.0).ok_or_else(|| Refusal::standard(RefusalCode::InviteUnknown))?;
        if facts.revoked.contains(&invite.0) {
            return Err(Refusal::standard(RefusalCode::InviteRevoked));
        }
        if facts.uses(invite) >= terms.uses {
            return Err(Refusal::standard(RefusalCode::InviteUsedUp));
        }
        if self.wall.at(now.mono).as_nanos() / 1_000_000_000 >= terms.expires {
            return Err(Refusal::standard(RefusalCode::InviteExpired));
        }
        Ok(terms.secret)
    }

    fn admit(&self, peer: &LinkPeer, via: Option<InviteId>, _now: Now) -> Result<(), Refusal> {
        let Some(invite) = via else { return Ok(()) };
        if !self.grant(peer, invite)? {
            return Ok(());
        }
        if let Some(store) = self.store.get() {
            match store.add_record(USED, Value::UInt(invite.0)) {
                Ok(entry) => self.learn(&entry),
                Err(error) => tracing::warn!(%error, "the use of an invite was not counted"),
            }
        }
        if let Some(granted) = self.facts.lock().granted.get_mut(&invite.0) {
            *granted -= 1;
        }
        Ok(())
    }

    fn welcomed(&self, info: &SessionInfo, key: Secret) -> Result<(), Refusal> {
        if self.store.get().is_some() {
            return Ok(());
        }
        self.found(info, key).map_err(|why| Refusal::new(RefusalCode::NotReady, why))
    }
}

/// The record that makes an invite known.
pub(crate) fn invite_record(terms: &Terms) -> (&'static str, Value) {
    (
        INVITE,
        map([
            ("id", Value::UInt(terms.id.0)),
            ("secret", Value::Bytes(terms.secret.0.as_slice().into())),
            ("expires", Value::UInt(terms.expires)),
            ("uses", Value::UInt(terms.uses)),
            ("observer", Value::Bool(terms.observer)),
        ]),
    )
}

/// The record that revokes an invite.
pub(crate) fn revoke_record(id: InviteId) -> (&'static str, Value) {
    (REVOKED, Value::UInt(id.0))
}

/// The record that makes this peer known as a member.
pub(crate) fn member_record(node: NodeId, name: &str) -> (&'static str, Value) {
    (
        MEMBER,
        map([
            ("peer", Value::Bytes(node.peer.0.as_slice().into())),
            ("incarnation", Value::UInt(node.incarnation.0)),
            ("name", Value::Text(name.into())),
        ]),
    )
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let entries = fields.into_iter().filter_map(|(name, value)| Some((Key::new(name).ok()?, value)));
    Value::Map(Arc::new(entries.collect()))
}

fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(map) = value else { return None };
    map.get(&Key::new(name).ok()?)
}

fn unsigned(value: &Value, name: &str) -> Option<u64> {
    match field(value, name)? {
        Value::UInt(number) => Some(*number),
        _ => None,
    }
}

fn bytes32(value: &Value, name: &str) -> Option<[u8; 32]> {
    match field(value, name)? {
        Value::Bytes(bytes) => bytes[..].try_into().ok(),
        _ => None,
    }
}

fn read_terms(value: &Value) -> Option<Terms> {
    Some(Terms {
        id: InviteId(unsigned(value, "id")?),
        secret: Secret(bytes32(value, "secret")?),
        expires: unsigned(value, "expires")?,
        uses: unsigned(value, "uses")?,
        observer: matches!(field(value, "observer"), Some(Value::Bool(true))),
    })
}

fn read_member(value: &Value, admitted: Stamp) -> Option<Member> {
    let Some(Value::Text(name)) = field(value, "name") else { return None };
    let node = NodeId {
        peer: PeerId(bytes32(value, "peer")?),
        incarnation: Incarnation(unsigned(value, "incarnation")?),
    };
    Some(Member { node, name: name.to_string(), admitted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_entries_tell_is_read_back() {
        let terms = Terms { id: InviteId(7), secret: Secret([9; 32]), expires: 100, uses: 3, observer: true };
        let (_, value) = invite_record(&terms);
        assert_eq!(read_terms(&value), Some(terms));
        let node = NodeId { peer: PeerId([3; 32]), incarnation: Incarnation(5) };
        let (_, value) = member_record(node, "ada");
        let admitted = Stamp::new(8, Incarnation(5));
        assert_eq!(read_member(&value, admitted), Some(Member { node, name: "ada".into(), admitted }));
        assert_eq!(read_terms(&Value::Nil), None);
    }
}
