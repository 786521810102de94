//! The handshake against programs that do not keep to it, over a raw QUIC connection.
use super::wire;
use crate::tls::{self, Pin};
use crate::{Admission, Config, Identity, InviteId, Io, Refusal, Secret, SessionInfo, spawn};
use coeval_sync::{Effect, Input, LinkPeer, Machine, Now};
use coeval_time::{MonoTime, SessionId};
use quinn::{Connection, ConnectionError, Endpoint};
use rand::RngCore;
use std::sync::Arc;
use std::time::Duration;

/// Must never see a link.
struct Untouched;

impl Machine for Untouched {
    fn handle(&mut self, input: Input, _: Now, _: &mut dyn RngCore) -> Vec<Effect> {
        assert!(matches!(input, Input::Wake), "nothing of this may reach the machine: {input:?}");
        Vec::new()
    }

    fn next_timer(&self) -> Option<MonoTime> {
        None
    }
}

struct Member;

impl Admission for Member {
    fn session(&self) -> SessionId {
        SessionId(uuid::Uuid::from_u128(1))
    }

    fn session_key(&self) -> Option<Secret> {
        Some(Secret([7; 32]))
    }

    fn info(&self) -> Option<SessionInfo> {
        None
    }

    fn verify_invite(&self, _: InviteId, _: Now) -> Result<Secret, Refusal> {
        Ok(Secret([7; 32]))
    }

    fn admit(&self, _: &LinkPeer, _: Option<InviteId>, _: Now) -> Result<(), Refusal> {
        Ok(())
    }

    fn welcomed(&self, _: &SessionInfo, _: Secret) -> Result<(), Refusal> {
        Ok(())
    }
}

fn host() -> Io<Untouched> {
    let mut config = Config::new(Identity::generate().unwrap());
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.handshake_timeout = Duration::from_millis(300);
    spawn(config, Untouched, Arc::new(Member), |_| {}).unwrap()
}

/// Runs `dialer` on a connection whose TLS is right and that is otherwise raw.
fn raw<F, Fut, R>(host: &Io<Untouched>, dialer: F) -> R
where
    F: FnOnce(Connection) -> Fut,
    Fut: Future<Output = R>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let tls = tls::client(&Identity::generate().unwrap(), Pin::default()).unwrap();
        let config = quinn::ClientConfig::new(Arc::new(tls));
        let connection = endpoint.connect_with(config, host.local_addr(), "coeval").unwrap().await.unwrap();
        tokio::time::timeout(Duration::from_secs(5), dialer(connection)).await.expect("the host gave no end")
    })
}

fn closing_words(error: &ConnectionError) -> String {
    crate::link::describe(error)
}

#[test]
fn dialer_that_says_nothing_is_closed_within_the_handshake_timeout() {
    let host = host();
    let error = raw(&host, |connection| async move { connection.closed().await });
    assert!(closing_words(&error).contains("took too long"), "{error}");
    // One that opens the stream and stops in the middle of a frame is no different.
    let error = raw(&host, |connection| async move {
        let (mut send, _recv) = connection.open_bi().await.unwrap();
        send.write_all(b"coev").await.unwrap();
        connection.closed().await
    });
    assert!(closing_words(&error).contains("took too long"), "{error}");
    assert_eq!(host.stats().links, 0);
}

#[test]
fn unreadable_hello_is_answered_with_a_refusal() {
    let host = host();
    let mut huge = b"coev\0\x02\x01".to_vec();
    huge.extend_from_slice(&u32::MAX.to_be_bytes());
    let wrong_kind = b"coev\0\x02\x02\0\0\0\x01\x80".to_vec();
    let bad_body = b"coev\0\x02\x01\0\0\0\x03abc".to_vec();
    for hello in [huge, wrong_kind, bad_body, b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
        let refusal = raw(&host, |connection| async move {
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&hello).await.unwrap();
            let reply = wire::read(&mut recv, wire::MAX_REPLY).await.unwrap();
            assert_eq!(reply.kind, wire::REFUSED);
            wire::parse_refusal(&reply.body)
        });
        assert_eq!(refusal.code, crate::RefusalCode::Malformed);
    }
    assert_eq!(host.stats().links, 0);
    host.check().unwrap();
}

#[test]
fn second_stream_is_not_allowed_beside_the_lane() {
    let host = host();
    raw(&host, |connection| async move {
        let (mut send, _recv) = connection.open_bi().await.unwrap();
        send.write_all(b"c").await.unwrap();
        let second = tokio::time::timeout(Duration::from_millis(100), connection.open_bi()).await;
        assert!(second.is_err(), "the host grants one stream");
        let uni = tokio::time::timeout(Duration::from_millis(50), connection.open_uni()).await;
        assert!(uni.is_err(), "and none in one direction");
    });
}
