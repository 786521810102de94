//! The tasks of one link: writing the lane, reading it, reading datagrams; and how links end.
use crate::clock::FOREVER;
use crate::handshake::{Linked, Site, printable};
use crate::lane::{Deframer, Framer};
use crate::pump::Event;
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_sync::CloseReason;
use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use std::time::Duration;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// How long the last messages may take to arrive before the connection is closed over them.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a link that was closed here may take to deliver what is queued, from a peer that reads on.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often a link is looked at in the time that a silent peer is given.
const LOOKS: u32 = 10;
/// Why a link to a silent peer ends, in words.
const SILENT: &str = "no answer (timed out)";
/// Bytes asked of the stream at once.
const READ: usize = 256 << 10;

/// What goes to the writing task.
pub(crate) enum Out {
    /// A message.
    Message(Bytes),
    /// Nothing follows: deliver what is queued, then close.
    Close(Close),
}

/// How a connection is closed: a number for programs, words for people.
#[derive(Clone, Debug)]
pub(crate) struct Close {
    code: u32,
    text: String,
}

impl Close {
    pub(crate) fn left() -> Self {
        Self::from(&CloseReason::Left)
    }

    pub(crate) fn refused(text: &str) -> Self {
        Self { code: 4, text: text.into() }
    }

    pub(crate) fn protocol(text: String) -> Self {
        Self::from(&CloseReason::Protocol(text))
    }

    fn silent() -> Self {
        Self { code: 5, text: SILENT.into() }
    }
}

impl From<&CloseReason> for Close {
    fn from(reason: &CloseReason) -> Self {
        let code = match reason {
            CloseReason::Left => 0,
            CloseReason::Duplicate => 1,
            CloseReason::Protocol(_) => 2,
            CloseReason::Version { .. } => 3,
            CloseReason::Renamed => 4,
        };
        Self { code, text: reason.to_string() }
    }
}

/// Closes at once.
pub(crate) fn close(connection: &Connection, close: Close) {
    connection.close(VarInt::from_u32(close.code), close.text.as_bytes());
}

/// Why a connection ended, in words.
pub(crate) fn describe(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => "closed by the peer".into(),
        ConnectionError::ApplicationClosed(close) => {
            printable(String::from_utf8_lossy(&close.reason).into_owned())
        }
        ConnectionError::TimedOut => SILENT.into(),
        ConnectionError::Reset => "the peer has restarted".into(),
        ConnectionError::LocallyClosed => "closed here".into(),
        other => other.to_string(),
    }
}

/// The pump's end of a link.
pub(crate) struct Outlet {
    pub(crate) out: UnboundedSender<Out>,
    pub(crate) connection: Connection,
    /// Ends, with nothing, when the writing task does.
    pub(crate) written: oneshot::Receiver<()>,
}

/// Starts the tasks of a link. They end when its connection does.
pub(crate) fn start(link: LinkTag, linked: Linked, site: &Site, events: &Sender<Event>) -> Outlet {
    let Linked { connection, send, recv, .. } = linked;
    let (out, queue) = unbounded_channel();
    let (writing, written) = oneshot::channel();
    let writer = write(link, connection.clone(), send, queue, events.clone());
    site.spawn(async move {
        writer.await;
        drop(writing);
    });
    let limits = (site.config.max_message, site.config.idle_timeout);
    site.spawn(read(link, connection.clone(), recv, events.clone(), limits));
    site.spawn(read_datagrams(link, connection.clone(), events.clone()));
    Outlet { out, connection, written }
}

/// Ends a link: what is queued is delivered first, unless the peer does not take it. A peer that reads nothing, and
/// lives otherwise, would hold its connection and the queue for ever.
pub(crate) async fn see_off(outlet: Outlet, why: Close) {
    let Outlet { out, connection, written } = outlet;
    let _ = out.send(Out::Close(why.clone()));
    if tokio::time::timeout(FAREWELL, written).await.is_err() {
        close(&connection, why);
    }
}

async fn write(
    link: LinkTag,
    connection: Connection,
    mut send: SendStream,
    mut queue: UnboundedReceiver<Out>,
    events: Sender<Event>,
) {
    let mut framer = Framer::default();
    let last = loop {
        let mut last = None;
        match queue.recv().await {
            Some(Out::Message(message)) => framer.push(message),
            Some(Out::Close(close)) => break close,
            None => break Close::left(),
        }
        while last.is_none() && !framer.is_full() {
            match queue.try_recv() {
                Ok(Out::Message(message)) => framer.push(message),
                Ok(Out::Close(close)) => last = Some(close),
                Err(_) => break,
            }
        }
        let (mut chunks, bytes) = framer.take();
        if send.write_all_chunks(&mut chunks).await.is_err() {
            // A lane is never stopped alone: the connection is gone, or must go. The reading task tells why.
            return close(&connection, Close::protocol("the reliable lane was stopped".into()));
        }
        if events.send(Event::Sent { link, bytes }).await.is_err() {
            return;
        }
        if let Some(last) = last {
            break last;
        }
    };
    if send.finish().is_ok() {
        let _ = tokio::time::timeout(LAST_WORDS, send.stopped()).await;
    }
    close(&connection, last);
}

async fn read(
    link: LinkTag,
    connection: Connection,
    mut recv: RecvStream,
    events: Sender<Event>,
    (max_message, patience): (usize, Duration),
) {
    let fault = tokio::select! {
        biased;
        fault = read_messages(link, &mut recv, &events, max_message) => fault.map(Close::protocol),
        () = silence(&connection, patience) => Some(Close::silent()),
    };
    let reason = match fault {
        Some(why) => {
            let text = why.text.clone();
            close(&connection, why);
            text
        }
        // The other side ended its lane, or the connection is gone: it says why when it closes.
        None => match tokio::time::timeout(2 * LAST_WORDS, connection.closed()).await {
            Ok(error) => describe(&error),
            Err(_) => {
                close(&connection, Close::left());
                CloseReason::Left.to_string()
            }
        },
    };
    let _ = events.send(Event::Down { link, reason }).await;
}

/// Ends when nothing came from the peer for about `patience`, at most a tenth longer.
///
/// QUIC waits for three times as long as an answer may take, where that is longer (RFC 9000, section 10.1); and one answer
/// that came seconds late, because the process was stopped, makes that minutes. So long it may send nothing, either: it
/// waits for the answers first. Looks are counted, and no clock is read: what came while this process itself was stopped
/// is not missed.
async fn silence(connection: &Connection, patience: Duration) {
    let (mut heard, mut looks) = (frames_heard(connection), 0);
    while looks < LOOKS {
        tokio::time::sleep(patience.min(FOREVER) / LOOKS).await;
        let before = std::mem::replace(&mut heard, frames_heard(connection));
        looks = if heard == before { looks + 1 } else { 0 };
    }
}

/// Frames that came from the peer, of the kinds that one who lives sends: these answer, or are, what keeps a link alive.
fn frames_heard(connection: &Connection) -> u64 {
    let frames = connection.stats().frame_rx;
    frames.acks.wrapping_add(frames.ping).wrapping_add(frames.stream).wrapping_add(frames.datagram)
}

/// Reads until the lane ends; gives the fault if it ended by one.
async fn read_messages(
    link: LinkTag,
    recv: &mut RecvStream,
    events: &Sender<Event>,
    max_message: usize,
) -> Option<String> {
    let mut deframer = Deframer::new(max_message);
    while let Ok(chunk) = recv.read_chunk(READ, true).await {
        let Some(chunk) = chunk else {
            return deframer.is_cut().then(|| "the lane ended inside a message".into());
        };
        let mut bytes = chunk.bytes;
        loop {
            match deframer.next(&mut bytes) {
                Ok(Some(bytes)) => events.send(Event::Message { link, bytes }).await.ok()?,
                Ok(None) => break,
                Err(fault) => return Some(fault.to_string()),
            }
        }
    }
    None
}

async fn read_datagrams(link: LinkTag, connection: Connection, events: Sender<Event>) {
    while let Ok(bytes) = connection.read_datagram().await {
        if events.send(Event::Datagram { link, bytes }).await.is_err() {
            return;
        }
    }
}
