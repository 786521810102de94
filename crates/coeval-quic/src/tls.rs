//! TLS 1.3 in which both sides are authenticated by a raw Ed25519 public key (RFC 7250): no certificates, no names.
use crate::Identity;
use coeval_value::PeerId;
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme,
};
use std::sync::Arc;

/// The protocol's name in the TLS handshake. A later, incompatible protocol takes another.
pub(crate) const ALPN: &[u8] = b"coeval/1";

/// What precedes the 32 key bytes in the DER form of an Ed25519 public key (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// What a dialer pins, and whom it met instead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pin {
    expected: Option<PeerId>,
    met: Arc<Mutex<Option<PeerId>>>,
}

impl Pin {
    pub(crate) fn new(expected: Option<PeerId>) -> Self {
        Self { expected, met: Arc::default() }
    }

    /// The key that was refused because another was expected.
    pub(crate) fn mismatch(&self) -> Option<PeerId> {
        *self.met.lock()
    }
}

/// The server side for `identity`.
pub(crate) fn server(identity: &Identity) -> Result<quinn::crypto::rustls::QuicServerConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(KeyVerifier::new(&provider, Pin::default()));
    let resolver = rustls::server::AlwaysResolvesServerRawPublicKeys::new(certified(identity)?);
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // No tickets: every link proves its keys afresh, and there is no early data to replay.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.max_early_data_size = 0;
    quinn::crypto::rustls::QuicServerConfig::try_from(config).map_err(|why| Error::General(why.to_string()))
}

/// The client side for `identity`, for one dial.
pub(crate) fn client(
    identity: &Identity,
    pin: Pin,
) -> Result<quinn::crypto::rustls::QuicClientConfig, Error> {
    let provider = provider();
    let verifier = Arc::new(KeyVerifier::new(&provider, pin));
    let resolver = rustls::client::AlwaysResolvesClientRawPublicKeys::new(certified(identity)?);
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_early_data = false;
    config.enable_sni = false;
    quinn::crypto::rustls::QuicClientConfig::try_from(config).map_err(|why| Error::General(why.to_string()))
}

/// The key the other side of `connection` proved to hold.
pub(crate) fn peer_of(connection: &quinn::Connection) -> Option<PeerId> {
    let identity = connection.peer_identity()?;
    let keys = identity.downcast_ref::<Vec<CertificateDer<'static>>>()?;
    parse_spki(keys.first()?)
}

fn provider() -> Arc<CryptoProvider> {
    // Passed explicitly: nothing is installed process-wide.
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certified(identity: &Identity) -> Result<Arc<rustls::sign::CertifiedKey>, Error> {
    let der = PrivatePkcs8KeyDer::from(identity.pkcs8().to_vec());
    let key = rustls::crypto::ring::sign::any_eddsa_type(&der)?;
    let mut spki = SPKI_PREFIX.to_vec();
    spki.extend_from_slice(&identity.peer().0);
    Ok(Arc::new(rustls::sign::CertifiedKey::new(vec![CertificateDer::from(spki)], key)))
}

fn parse_spki(der: &[u8]) -> Option<PeerId> {
    let key = der.strip_prefix(&SPKI_PREFIX)?;
    Some(PeerId(key.try_into().ok()?))
}

/// Accepts any Ed25519 key (or the pinned one) whose holder signs the handshake.
#[derive(Debug)]
struct KeyVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    pin: Pin,
}

impl KeyVerifier {
    fn new(provider: &CryptoProvider, pin: Pin) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, pin }
    }

    fn check(&self, key: &CertificateDer<'_>, rest: &[CertificateDer<'_>]) -> Result<(), Error> {
        let peer = parse_spki(key).filter(|_| rest.is_empty()).ok_or(CertificateError::BadEncoding)?;
        match self.pin.expected {
            Some(expected) if expected != peer => {
                *self.pin.met.lock() = Some(peer);
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(()),
        }
    }

    fn signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, dss, &self.algorithms)
    }
}

fn no_tls12() -> Error {
    Error::PeerIncompatible(PeerIncompatible::Tls13RequiredForQuic)
}

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, intermediates)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for KeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity, intermediates)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
