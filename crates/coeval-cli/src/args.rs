//! The command line: commands, options, and the examples that `--help` shows.
use crate::demo::Role;
use crate::parse::{self, Address, Pattern, When};
use clap::{Args, Parser, Subcommand};
use coeval::{Conditioner, SimTime};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Many independent programs, one simulated world, one time: host a session, join it, look at it, change it.
#[derive(Debug, Parser)]
#[command(name = "coeval", bin_name = "coeval", version, after_help = TOP_HELP, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const TOP_HELP: &str = "\
Examples:
  coeval demo                                  flights and orbits, shared over a bad link
  coeval host world.toml --invite-file invite  host a session
  export COEVAL_INVITE=$(cat invite)           all commands below read it
  coeval ls                                    what is there
  coeval set probe/mass 5.0 --create           change something
  coeval watch probe                           see it change
  coeval clock jump -100y                      go somewhere else in time

Exit codes:
  0  done
  1  failed for another reason (also: the demo did not hold)
  2  bad input: the command line, a value, a config, a type
  3  not found: no such entity, parameter or peer
  4  not in time: no answer, or not acknowledged by a peer
  5  refused: the invite is damaged, expired, of another session or version, or the session said no
  6  network or system: port in use, nobody there, file not writable

Each error is one line on standard error; nothing is applied by halves. Times name their scale, TAI or UTC.";

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Write JSON: one object or array, or one object a line for commands that go on.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log more to standard error: -v what happens, -vv details, -vvv everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = "Logging")]
    pub(crate) verbose: u8,
    /// Log levels by target, like `warn,coeval_sync=debug`.
    #[arg(long, value_name = "SPEC", env = "COEVAL_LOG", global = true, help_heading = "Logging")]
    pub(crate) log: Option<String>,
    /// Log to daily files in this directory, too; the last 14 are kept.
    #[arg(long, value_name = "DIR", global = true, help_heading = "Logging")]
    pub(crate) log_file: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Host a new session and stay in it until Ctrl-C; prints the invite.
    Host(HostArgs),
    /// Join a session and stay in it until Ctrl-C; prints an invite of its own.
    Join(JoinArgs),
    /// Host a session again from its journal, and stay in it until Ctrl-C; invites made before still work.
    Rehost(RehostArgs),
    /// Look at a journal.
    Journal(JournalArgs),
    /// List parameters: type, value, age, author, and whether the author lives.
    Ls(LsArgs),
    /// Print a parameter with how good it is, or all of an entity as TOML.
    Get(GetArgs),
    /// Set a parameter; returns when the other peers have it.
    Set(SetArgs),
    /// Delete an entity for ever, or remove a parameter.
    Rm(RmArgs),
    /// Print what is created, changed and removed, until Ctrl-C.
    Watch(WatchArgs),
    /// Send an event or a command.
    Send(SendArgs),
    /// Show or change the session's clock.
    Clock(ClockArgs),
    /// List the peers of the session.
    Peers(PeersArgs),
    /// Check a sim config without hosting it.
    Check(CheckArgs),
    /// Print the JSON schema of sim configs, for editors.
    #[command(
        after_help = "Examples:\n  coeval schema > sim-config.schema.json   and in a config: #:schema sim-config.schema.json"
    )]
    Schema,
    /// Show what coeval does: three processes share flights and orbits over a bad link.
    Demo(DemoArgs),
}

/// How a command gets into a session.
#[derive(Clone, Debug, Args)]
pub(crate) struct Membership {
    /// The invite that `host` or `join` printed.
    #[arg(long, global = true, value_name = "INVITE", env = "COEVAL_INVITE", hide_env_values = true)]
    pub(crate) invite: Option<String>,
    /// Seconds to wait for the session, and for the other peers to have what was changed.
    #[arg(long, global = true, value_name = "SECONDS", env = "COEVAL_TIMEOUT", default_value = "5", value_parser = parse::seconds)]
    pub(crate) timeout: Duration,
    /// A key file that identifies this installation; made if it is not there. Without it, a fresh identity each time.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
}

/// How a peer that stays is opened.
#[derive(Clone, Debug, Args)]
pub(crate) struct Presence {
    /// Where to listen; the default is this machine only (for `rehost`: where it listened). 0.0.0.0:PORT lets others in.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// An address to put in invites instead of those found.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) advertise: Vec<SocketAddr>,
    /// Make what this peer sends suffer: delay, jitter, loss, duplicate, rate.
    #[arg(long, value_name = "CONDITIONS", value_parser = conditions)]
    pub(crate) condition: Option<Conditioner>,
    /// A key file that identifies this installation; made if it is not there. Without it, a fresh identity each time.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// The name that others see.
    #[arg(long, value_name = "NAME")]
    pub(crate) peer_name: Option<String>,
    /// Write the invite to a file that only its owner can read, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) invite_file: Option<PathBuf>,
    /// Seconds for which the printed invite is valid.
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    pub(crate) invite_expires: u64,
    /// How many peers may join by the printed invite; without it, any number.
    #[arg(long, value_name = "COUNT")]
    pub(crate) invite_uses: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The invite is the only line on standard output. Whoever has it can join: treat it like a password.

Examples:
  coeval host world.toml
  coeval host --name sandbox --start '2028-04-25T05:30:00 TAI' --rate 10
  coeval host world.toml --listen 0.0.0.0:4433 --identity ~/.coeval-key --invite-file invite
  coeval host world.toml --journal world.journal   and after its end: coeval rehost world.journal
  coeval host world.toml --condition delay=50ms,loss=5%   as over a bad link")]
pub(crate) struct HostArgs {
    /// The sim config to start from.
    #[arg(value_name = "CONFIG", required_unless_present = "name")]
    pub(crate) config: Option<PathBuf>,
    /// The session's name; without a config, the session starts empty.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
    /// Sim time at the start, with its scale: `2028-04-25T05:30:00 TAI`.
    #[arg(long, value_name = "TIME", value_parser = date)]
    pub(crate) start: Option<SimTime>,
    /// Keep a journal in this file: `coeval rehost` hosts the session again from it. It holds secrets.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Sim seconds per wall second at the start.
    #[arg(long, value_name = "N", value_parser = parse::scale, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    #[command(flatten)]
    pub(crate) presence: Presence,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The peer holds a full replica; others can join through it, also when the host is gone.

Examples:
  coeval join $(cat invite)
  coeval join --config world.toml --peer-name relay    the invite comes from COEVAL_INVITE")]
pub(crate) struct JoinArgs {
    /// The invite that `host` or `join` printed.
    #[arg(value_name = "INVITE", env = "COEVAL_INVITE", hide_env_values = true)]
    pub(crate) invite: Option<String>,
    /// Keep a journal in this file, and bring along what it holds of this session. It holds secrets.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// The sim config; used only if it is the session's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Seconds to wait for the session.
    #[arg(long, value_name = "SECONDS", env = "COEVAL_TIMEOUT", default_value = "15", value_parser = parse::seconds)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) presence: Presence,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The session goes on as it was written: same id, same key, same peer, a new opening of it. Sim time has gone on too.

Examples:
  coeval rehost world.journal
  coeval rehost world.journal --salvage   keep what comes before damage")]
pub(crate) struct RehostArgs {
    /// The journal that `host` or `join` kept.
    #[arg(value_name = "FILE")]
    pub(crate) journal: PathBuf,
    /// Take what comes before the damage from a damaged journal; the rest is lost.
    #[arg(long)]
    pub(crate) salvage: bool,
    #[command(flatten)]
    pub(crate) presence: Presence,
}

#[derive(Debug, Args)]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    pub(crate) command: JournalCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Say what a journal holds; fail if it is damaged.
    Check {
        /// The journal; it may be in use.
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
A pattern is ENTITY/KEY/…: * in an entity is any text, a key * any one key, a key ** any number of keys.
What is beneath a match is listed too.

Examples:
  coeval ls
  coeval ls 'sat-*/motion'
  coeval ls --json | jq '.[] | select(.alive | not)'")]
pub(crate) struct LsArgs {
    /// What to list.
    #[arg(default_value = "*")]
    pub(crate) pattern: Pattern,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A parameter prints as its TOML value and, behind a #, how good the value is at that time.

Examples:
  coeval get probe                   all parameters, as TOML
  coeval get probe/motion            where it is now
  coeval get probe/motion --at +1h   where it will be in an hour of sim time
  coeval get probe/mass --as float   an error if it is no number")]
pub(crate) struct GetArgs {
    /// ENTITY or ENTITY/KEY/…; the entity by name or id.
    pub(crate) path: Address,
    /// The sim time to read at: a date with its scale, or a length from now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Option<When>,
    /// Read as this type: numbers convert exactly or not at all.
    #[arg(long = "as", value_name = "TYPE")]
    pub(crate) as_type: Option<String>,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A value is TOML: 5, 5.0, true, '\"text\"', '[1.0, 2.0, 3.0]', '{ type = \"motion\", position = [\"400 km\", 0, 0] }'.
An integer is not a float: write 5.0 where programs read a float. A table replaces what is beneath the path.

Examples:
  coeval set probe/mass 5.0
  coeval set probe/label '\"first\"' --create                  the entity too, if it is not there
  coeval set probe '{ mass = 5.0, label = \"first\" }'         several at once, seen together
  coeval set probe/start '{ type = \"time\", value = \"2028-04-25T05:30:00 TAI\" }'")]
pub(crate) struct SetArgs {
    /// ENTITY/KEY/…, or an ENTITY with a table of parameters.
    pub(crate) path: Address,
    /// The TOML value; may be left out to create an entity without parameters.
    #[arg(allow_hyphen_values = true, required_unless_present = "create")]
    pub(crate) value: Option<String>,
    /// Create the entity if there is none of that name.
    #[arg(long)]
    pub(crate) create: bool,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Deletion is permanent: no write, however late, brings an entity back. Making it again gives it a new id.

Examples:
  coeval rm probe/label    a parameter and what is beneath it
  coeval rm probe          the entity")]
pub(crate) struct RmArgs {
    /// ENTITY or ENTITY/KEY/…
    pub(crate) path: Address,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Several changes of one parameter between two lines are one. Patterns are those of `coeval ls`.

Examples:
  coeval watch
  coeval watch 'sat-*/motion' --for 10
  coeval watch probe/mass --count 1 --json    wait for one change")]
pub(crate) struct WatchArgs {
    /// What to watch.
    #[arg(default_value = "*")]
    pub(crate) pattern: Pattern,
    /// End after this many changes.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// End after this many seconds; with --count, the exit code is 4 if there were fewer changes.
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse::seconds)]
    pub(crate) for_time: Option<Duration>,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An event reaches each peer that is present once, in order, and is never replayed to those who join later.

Examples:
  coeval send fire '{ munition = \"A\" }'
  coeval send lights '\"on\"' --to probe               whoever minds the entity
  coeval send deploy '\"array\"' --to orbits --command  waits for the answer
  coeval send ping 1 --to peer:viewer                 when an entity has that name too")]
pub(crate) struct SendArgs {
    /// What it is about.
    pub(crate) topic: String,
    /// The TOML value.
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: String,
    /// `all`, a peer or an entity, by name or id; `peer:NAME` and `entity:NAME` say which.
    #[arg(long, value_name = "TARGET", default_value = "all")]
    pub(crate) to: String,
    /// Wait for the peer's answer: accepted, done, or refused with a reason.
    #[arg(long)]
    pub(crate) command: bool,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Everyone's edits are equal; a change returns when the other peers have it.

Examples:
  coeval clock                    what time it is
  coeval clock scale 1000         faster; -1 is backward, 0 stands
  coeval clock pause
  coeval clock jump -100y         units: ns, us, ms, s, min, h, d, y (365.25 d)
  coeval clock jump '2028-04-25T05:30:00 TAI'
  coeval clock stop-at +1h        stop when sim time is there
  coeval clock log                who changed it, when, how")]
pub(crate) struct ClockArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<ClockVerb>,
    #[command(flatten)]
    pub(crate) membership: Membership,
}

/// What to do with the clock.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ClockVerb {
    /// Sim time, rate, what holds it, and session wall time (the default).
    #[command(after_help = "Examples:\n  coeval clock show --json")]
    Show,
    /// Set the sim seconds per wall second: any finite number.
    #[command(after_help = "Examples:\n  coeval clock scale 1000\n  coeval clock scale -1    backward")]
    Scale {
        /// The number.
        #[arg(value_name = "N", value_parser = parse::scale, allow_hyphen_values = true)]
        scale: f64,
    },
    /// Hold sim time, whatever the scale.
    #[command(after_help = "Examples:\n  coeval clock pause")]
    Pause,
    /// End a pause or a stop.
    #[command(after_help = "Examples:\n  coeval clock resume")]
    Resume,
    /// Move sim time to a date, or by a length like -100y.
    #[command(
        after_help = "Examples:\n  coeval clock jump -100y\n  coeval clock jump '2016-12-31T23:59:60.5Z'"
    )]
    Jump {
        /// A date with its scale, or a signed length.
        #[arg(value_name = "TIME|±LENGTH", allow_hyphen_values = true)]
        to: When,
    },
    /// Stop exactly at a sim time, once, when the clock gets there.
    #[command(
        after_help = "Examples:\n  coeval clock stop-at +1h\n  coeval clock stop-at '2028-04-25T06:00:00 TAI'"
    )]
    StopAt {
        /// A date with its scale, or a signed length from now.
        #[arg(value_name = "TIME|±LENGTH", allow_hyphen_values = true)]
        at: When,
    },
    /// All changes so far: when, what, by whom, from and to what.
    #[command(after_help = "Examples:\n  coeval clock log")]
    Log,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Figures are this command's own, measured since it joined a moment ago.

Examples:
  coeval peers
  coeval peers --json | jq '.peers[].name'")]
pub(crate) struct PeersArgs {
    #[command(flatten)]
    pub(crate) membership: Membership,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  coeval check world.toml")]
pub(crate) struct CheckArgs {
    /// The sim config.
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The rate goes to 1,000 and to -1, pauses, jumps back a century and returns; the host is killed, the others go on.
Exit code 0 only if everything held that the summary shows.

Examples:
  coeval demo
  coeval demo --seconds 10 --json | tail -1")]
pub(crate) struct DemoArgs {
    /// Wall seconds to run.
    #[arg(long, default_value_t = 15.0, value_parser = demo_seconds)]
    pub(crate) seconds: f64,
    /// Which of the demo's processes this is.
    #[arg(long, hide = true)]
    pub(crate) role: Option<Role>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an address: write IP:PORT like 127.0.0.1:4433 or [::]:4433"))
}

fn conditions(text: &str) -> Result<Conditioner, String> {
    text.parse::<Conditioner>().map_err(|e| e.to_string())
}

fn date(text: &str) -> Result<SimTime, String> {
    text.parse::<SimTime>().map_err(|e| e.to_string())
}

fn demo_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if (3.0..=3_600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("the demo runs from 3 to 3600 s".to_owned())
    }
}
