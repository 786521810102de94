//! `coeval host`, `coeval join` and `coeval rehost`: peers that stay until Ctrl-C.
use crate::args::{HostArgs, JoinArgs, Presence, RehostArgs};
use crate::errors::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::session;
use crate::signals::Signals;
use coeval::{JournalOptions, Peer};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// How often the status line is written.
const STATUS_EVERY: Duration = Duration::from_millis(500);
/// Longest that leaving takes.
const FAREWELL: Duration = Duration::from_secs(2);

/// Applies the options that they have in common to any's builder.
macro_rules! present {
    ($options:expr, $presence:expr, $default_name:expr) => {{
        let presence: &Presence = $presence;
        let mut options = $options;
        if let Some(address) = presence.listen {
            options = options.listen(address);
        }
        if let Some(name) = presence.peer_name.as_deref().or($default_name) {
            options = options.peer_name(name);
        }
        for address in &presence.advertise {
            options = options.advertise(*address);
        }
        if let Some(conditions) = presence.condition {
            options = options.conditioner(conditions);
        }
        if let Some(file) = &presence.identity {
            options = options.identity(session::identity(file)?);
        }
        options
    }};
}

/// Hosts a session until told to end.
pub(crate) fn host(args: &HostArgs, output: Output) -> Outcome {
    let config = args.config.as_deref().map(session::config).transpose()?;
    let name =
        args.name.clone().or_else(|| config.as_ref().map(|config| config.name.clone())).unwrap_or_default();
    let mut options = present!(Peer::host(name), &args.presence, Some("host"));
    if let Some(config) = &config {
        options = options.start(config.start).rate(config.rate).initial(config.initial(), config.digest());
    }
    if let Some(start) = args.start {
        options = options.start(start);
    }
    if let Some(rate) = args.rate {
        options = options.rate(rate);
    }
    if let Some(file) = &args.journal {
        options = options.journal(file);
    }
    let place = args.presence.listen.map_or_else(|| "hosting".to_owned(), |at| format!("hosting on {at}"));
    let peer = options.open().map_err(|e| Failure::from(e).at(place))?;
    stay(peer, &args.presence, output)
}

/// Joins a session and stays until told to end.
pub(crate) fn join(args: &JoinArgs, output: Output) -> Outcome {
    let config = args.config.as_deref().map(session::config).transpose()?;
    let invite = session::invite(args.invite.as_deref(), "give INVITE or set COEVAL_INVITE")?;
    let mut options = present!(Peer::join(invite), &args.presence, Some("joiner")).timeout(args.timeout);
    if let Some(config) = &config {
        options = options.initial(config.initial(), config.digest());
    }
    if let Some(file) = &args.journal {
        options = options.journal(file);
    }
    let peer = options.open().map_err(|e| Failure::from(e).at("joining the session"))?;
    stay(peer, &args.presence, output)
}

/// Hosts a session again until told to end.
pub(crate) fn rehost(args: &RehostArgs, output: Output) -> Outcome {
    let mut journal = JournalOptions::new(&args.journal);
    if args.salvage {
        journal = journal.salvage();
    }
    let options = present!(Peer::rehost(journal), &args.presence, None::<&str>);
    let peer = options.open().map_err(|e| Failure::from(e).at("hosting again"))?;
    stay(peer, &args.presence, output)
}

/// Prints an invite and stays in the session until told to end.
fn stay(peer: Peer, presence: &Presence, output: Output) -> Outcome {
    let signals = Signals::listen()?;
    let invite = session::offer(&peer, presence)?;
    output.either(
        || {
            json!({
                "invite": invite.to_string(),
                "session": peer.session().session.0.to_string(),
                "name": peer.session_name(),
                "node": peer.node().to_string(),
                "addresses": peer.listen_addresses().iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        },
        || invite.to_string(),
    )?;
    let mut status = Status::new();
    let ended = loop {
        if signals.wait(STATUS_EVERY) {
            break Ok(());
        }
        status.show(&peer);
        if let Some(reason) = peer.stopped() {
            break Err(Failure::new(Exit::Failure, reason));
        }
    };
    status.clear();
    if let Err(error) = peer.leave(FAREWELL) {
        tracing::info!(%error, "leaving");
    }
    ended
}

/// A number of things, in words.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A line about the session on a terminal; nothing elsewhere.
struct Status {
    terminal: bool,
}

impl Status {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, peer: &Peer) {
        if !self.terminal {
            return;
        }
        let context = peer.context();
        // The SimEntity is always there.
        let (peers, entities) =
            (count(peer.peers().len(), "other peer"), peer.entities().len().saturating_sub(1));
        self.write(&format!(
            "\r\x1b[K{}  {}  rate {}  {peers}, entities: {entities}  (Ctrl-C leaves)",
            peer.session_name(),
            context.sim,
            context.rate
        ));
    }

    fn clear(&mut self) {
        if self.terminal {
            self.write("\r\x1b[K");
        }
    }

    /// A terminal that is gone needs no status.
    fn write(&mut self, text: &str) {
        let mut out = std::io::stderr().lock();
        self.terminal = out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok();
    }
}
