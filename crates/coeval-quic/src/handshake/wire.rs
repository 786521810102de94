//! Frames and messages of the link handshake, and the bounds of all that is read.
use super::{Failure, lost};
use crate::admission::{Refusal, RefusalCode};
use bytes::Bytes;
use coeval_sync::LinkPeer;
use coeval_time::{Incarnation, WallTime};
use coeval_value::{NodeId, PeerId};
use quinn::{RecvStream, SendStream};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) const MAGIC: [u8; 4] = *b"coev";
pub(super) const HEADER: usize = 4 + 2 + 1 + 4;
pub(super) const HELLO: u8 = 1;
pub(super) const WELCOME: u8 = 2;
pub(super) const REFUSED: u8 = 3;
pub(super) const READY: u8 = 4;
/// Limits of frame bodies and of what is in them, bytes.
pub(super) const MAX_HELLO: usize = 8 << 10;
pub(super) const MAX_DATA: usize = 64 << 10;
pub(super) const MAX_REPLY: usize = MAX_HELLO + MAX_DATA;
pub(super) const MAX_NAME: usize = 255;
pub(super) const MAX_ADDRESSES: usize = 16;
pub(super) const MAX_ADDRESS: usize = 64;
pub(super) const MAX_TEXT: usize = 1_000;

#[derive(Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) session: Uuid,
    pub(super) about: About,
    pub(super) invite: Option<u64>,
    /// As bytes: an array of numbers would differ in length from proof to proof.
    pub(super) proof: Bytes,
}

#[derive(Serialize, Deserialize)]
pub(super) struct About {
    pub(super) incarnation: u64,
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
    pub(super) observer: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) about: About,
    pub(super) proof: Bytes,
    pub(super) grant: Option<Grant>,
}

/// What only a joiner by invite gets.
#[derive(Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) key: [u8; 32],
    pub(super) wall: WallTime,
    /// Whole seconds and nanoseconds of sim time.
    pub(super) sim: (i64, u32),
    pub(super) scale: f64,
    pub(super) config_digest: Option<[u8; 16]>,
    pub(super) data: Bytes,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) code: u16,
    pub(super) text: String,
}

pub(super) struct Frame {
    pub(super) version: u16,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// Writes one frame.
pub(super) async fn write<T: Serialize>(
    send: &mut SendStream,
    version: u16,
    kind: u8,
    body: &T,
) -> Result<(), Failure> {
    let body = rmp_serde::to_vec_named(body).map_err(|why| Failure::Lost(why.to_string()))?;
    let mut frame = Vec::with_capacity(HEADER + body.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&version.to_be_bytes());
    frame.push(kind);
    frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
    frame.extend_from_slice(&body);
    send.write_all(&frame).await.map_err(lost)
}

/// Reads one frame; its length is checked before its bytes are awaited.
pub(super) async fn read(recv: &mut RecvStream, limit: usize) -> Result<Frame, Failure> {
    let mut header = [0; HEADER];
    recv.read_exact(&mut header).await.map_err(lost)?;
    let length = u32::from_be_bytes([header[7], header[8], header[9], header[10]]) as usize;
    if header[..4] != MAGIC || length > limit {
        return Err(malformed());
    }
    let mut body = vec![0; length];
    recv.read_exact(&mut body).await.map_err(lost)?;
    Ok(Frame { version: u16::from_be_bytes([header[4], header[5]]), kind: header[6], body })
}

pub(super) fn parse<'a, T: Deserialize<'a>>(frame: &'a Frame, kind: u8) -> Result<T, Failure> {
    if frame.kind != kind {
        return Err(malformed());
    }
    rmp_serde::from_slice(&frame.body).map_err(|_| malformed())
}

pub(super) fn parse_refusal(body: &[u8]) -> Refusal {
    match rmp_serde::from_slice::<Refused>(body) {
        Ok(refused) => Refusal::new(RefusalCode::from_number(refused.code), printable(refused.text)),
        Err(_) => Refusal::standard(RefusalCode::Malformed),
    }
}

pub(super) fn link_peer(peer: PeerId, about: About) -> Result<LinkPeer, Failure> {
    let About { incarnation, name, addresses, observer } = about;
    let fits = name.len() <= MAX_NAME
        && addresses.len() <= MAX_ADDRESSES
        && addresses.iter().all(|address| address.len() <= MAX_ADDRESS);
    // Incarnations zero and one are reserved.
    if !fits || incarnation < 2 {
        return Err(malformed());
    }
    let node = NodeId { peer, incarnation: Incarnation(incarnation) };
    Ok(LinkPeer { node, name, addresses, observer })
}

pub(super) fn malformed() -> Failure {
    Failure::Denied(Refusal::standard(RefusalCode::Malformed))
}

/// Text of another program, fit for a terminal.
pub(crate) fn printable(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

pub(super) fn truncate(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_handshake_body_makes_the_decoder_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for kind in [HELLO, WELCOME] {
                let frame = Frame { version: 1, kind, body: body.clone() };
                let _ = parse::<Hello>(&frame, HELLO);
                let _ = parse::<Welcome>(&frame, WELCOME);
            }
            let _ = parse_refusal(&body);
        }
    }

    fn hello_body(addresses: usize, nested: usize) -> Vec<u8> {
        #[derive(Serialize)]
        struct NewerHello {
            session: Uuid,
            about: About,
            invite: Option<u64>,
            proof: [u8; 32],
            from_the_future: Vec<u8>,
        }
        let about = About {
            incarnation: 5,
            name: "n".into(),
            addresses: vec!["127.0.0.1:1".into(); addresses],
            observer: false,
        };
        let newer = NewerHello {
            session: Uuid::from_u128(3),
            about,
            invite: None,
            proof: [1; 32],
            from_the_future: vec![0; nested],
        };
        rmp_serde::to_vec_named(&newer).unwrap()
    }

    #[test]
    fn fields_of_a_later_version_are_skipped() {
        let frame = Frame { version: 1, kind: HELLO, body: hello_body(2, 40) };
        let hello: Hello = parse(&frame, HELLO).unwrap();
        assert_eq!(hello.session, Uuid::from_u128(3));
        let peer = link_peer(PeerId([1; 32]), hello.about).unwrap();
        assert_eq!(peer.addresses.len(), 2);
    }

    #[test]
    fn deep_nesting_and_too_many_addresses_are_refused() {
        let frame = Frame { version: 1, kind: HELLO, body: hello_body(17, 0) };
        let hello: Hello = parse(&frame, HELLO).unwrap();
        assert!(link_peer(PeerId([1; 32]), hello.about).is_err());
        let deep = Frame { version: 1, kind: HELLO, body: vec![0x91; MAX_HELLO] };
        assert!(parse::<Hello>(&deep, HELLO).is_err());
    }

    #[test]
    fn text_of_others_cannot_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\n".into()), "a[2Jb");
        let mut text = "ä".repeat(10);
        truncate(&mut text, 5);
        assert_eq!(text, "ää");
    }
}
