//! Proofs of a shared secret, tied to one connection, one direction and both keys.
use super::Failure;
use crate::InviteId;
use crate::admission::{Refusal, RefusalCode, Secret};
use bytes::Bytes;
use coeval_time::SessionId;
use coeval_value::{NodeId, PeerId};
use quinn::Connection;
use ring::hmac;

#[derive(Clone, Copy)]
pub(super) enum Role {
    Dialer,
    Acceptor,
}

impl Role {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Dialer => b"dialer",
            Self::Acceptor => b"acceptor",
        }
    }
}

/// What a proof is tied to.
pub(super) struct Tie<'a> {
    pub(super) connection: &'a Connection,
    pub(super) secret: Secret,
    pub(super) session: SessionId,
    pub(super) via: Option<InviteId>,
}

impl Tie<'_> {
    pub(super) fn prove(&self, role: Role, prover: NodeId, verifier: PeerId) -> Result<Bytes, Failure> {
        let message = self.message(role, prover, verifier)?;
        Ok(Bytes::copy_from_slice(hmac::sign(&self.key(), &message).as_ref()))
    }

    pub(super) fn verify(
        &self,
        role: Role,
        prover: NodeId,
        verifier: PeerId,
        proof: &[u8],
    ) -> Result<(), Failure> {
        let message = self.message(role, prover, verifier)?;
        hmac::verify(&self.key(), &message, proof)
            .map_err(|_| Failure::Denied(Refusal::standard(RefusalCode::BadProof)))
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.secret.0)
    }

    fn message(&self, role: Role, prover: NodeId, verifier: PeerId) -> Result<Vec<u8>, Failure> {
        let mut exported = [0; 32];
        self.connection
            .export_keying_material(&mut exported, b"EXPORTER-coeval-link", role.label())
            .map_err(|_| Failure::Lost("TLS exports no keying material".into()))?;
        let mut message = exported.to_vec();
        message.extend_from_slice(role.label());
        message.extend_from_slice(self.session.0.as_bytes());
        message.extend_from_slice(&prover.peer.0);
        message.extend_from_slice(&prover.incarnation.0.to_be_bytes());
        message.extend_from_slice(&verifier.0);
        message.push(u8::from(self.via.is_some()));
        message.extend_from_slice(&self.via.map_or(0, |id| id.0).to_be_bytes());
        Ok(message)
    }
}
