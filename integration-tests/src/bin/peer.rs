//! A peer that does what it is told: one JSON command per line of input, one JSON answer per line of output.
//!
//! `peer host [OPTION…]` opens a session, `peer join INVITE [OPTION…]` joins one, `peer rehost JOURNAL [OPTION…]` opens
//! one again. Options: `name=TEXT`, `net=CONDITIONS` (as `delay=50ms,loss=5%`), `offset_ms=N` (of the OS clock),
//! `journal=PATH`. The first line of output tells the
//! invite and the address. At the end of input the program leaves.
use coeval::{EventStream, Invite, Peer, SimDuration, SimTime, Target, Value, WallDuration, WallTime};
use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};
use std::thread::JoinHandle;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Program {
    peer: Peer,
    events: EventStream,
    streaming: Option<JoinHandle<Json>>,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let peer = match open(&arguments) {
        Ok(peer) => peer,
        Err(error) => return tell(&json!({ "error": error.to_string() })),
    };
    let address = peer.listen_addresses().first().map(ToString::to_string);
    tell(&json!({ "invite": peer.invite()?.to_string(), "address": address }))?;
    let events = peer.events().subscribe("*");
    let mut program = Program { peer, events, streaming: None };
    for line in std::io::stdin().lock().lines() {
        let command: Json = serde_json::from_str(&line?)?;
        if command["do"] == "leave" {
            let left = program.peer.leave(Duration::from_secs(5));
            return tell(&left.map_or_else(|error| complaint(&error), |()| json!({})));
        }
        tell(&program.act(&command).unwrap_or_else(|error| complaint(&*error)))?;
    }
    Ok(())
}

fn complaint(error: &(dyn std::error::Error + 'static)) -> Json {
    let kind = error.downcast_ref::<coeval::Error>().map(|error| format!("{:?}", error.kind()));
    json!({ "error": error.to_string(), "kind": kind })
}

fn tell(answer: &Json) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}

fn open(arguments: &[String]) -> Outcome<Peer> {
    let option = |name: &str| arguments.iter().find_map(|text| text.strip_prefix(name)?.strip_prefix('='));
    let name = option("name").unwrap_or("peer");
    let offset = WallDuration::from_millis(option("offset_ms").unwrap_or("0").parse()?);
    let net = option("net").unwrap_or("none").parse()?;
    match arguments.first().map(String::as_str) {
        Some("host") => {
            let mut host = Peer::host("test").peer_name(name).os_clock_offset(offset).conditioner(net);
            if let Some(path) = option("journal") {
                host = host.journal(path);
            }
            Ok(host.open()?)
        }
        Some("join") => {
            let invite: Invite = arguments.get(1).ok_or("join needs an invite")?.parse()?;
            let mut join = Peer::join(invite).peer_name(name).os_clock_offset(offset).conditioner(net);
            if let Some(path) = option("journal") {
                join = join.journal(path);
            }
            Ok(join.open()?)
        }
        Some("rehost") => {
            let path = arguments.get(1).ok_or("rehost needs a journal")?.as_str();
            Ok(Peer::rehost(path).peer_name(name).os_clock_offset(offset).conditioner(net).open()?)
        }
        _ => Err("say host, join or rehost".into()),
    }
}

impl Program {
    fn act(&mut self, command: &Json) -> Outcome<Json> {
        let text = |key: &str| command[key].as_str().ok_or_else(|| format!("no {key} in {command}"));
        let peer = &self.peer;
        match text("do")? {
            "create" => {
                peer.create_entity(text("name")?)?;
            }
            "set" => peer.entity(text("entity")?)?.set(
                peer.context(),
                text("path")?,
                value_of(&command["value"])?,
            )?,
            "get" => {
                let value = peer.entity(text("entity")?)?.get(peer.context(), text("path")?)?;
                return Ok(json!({ "value": json_of(&value) }));
            }
            "delete" => peer.entity(text("entity")?)?.delete()?,
            "clock" => return self.clock(text("edit")?, command["value"].as_f64().unwrap_or(0.0)),
            "sim_at" => {
                let wall = WallTime::from_nanos(text("wall")?.parse()?);
                return Ok(json!({ "sim": peer.clock().sim_at(wall).as_nanos().to_string() }));
            }
            "event" => peer.events().send(text("topic")?, Target::All, value_of(&command["value"])?)?,
            "events" => {
                let events: Vec<_> =
                    std::iter::from_fn(|| self.events.poll()).map(|e| json_of(&e.value)).collect();
                return Ok(json!({ "events": events }));
            }
            "flush" => peer.flush(Duration::from_secs(20))?,
            "digest" => return Ok(json!({ "digest": format!("{:?}", peer.digest()) })),
            "peers" => {
                let peers = peer.peers();
                let row = |p: &coeval::PeerInfo| json!({ "name": p.name, "state": format!("{:?}", p.state) });
                return Ok(json!({ "peers": peers.iter().map(row).collect::<Vec<_>>() }));
            }
            "invite" => return Ok(json!({ "invite": peer.invite()?.to_string() })),
            "stream" => self.stream(command)?,
            "streamed" => {
                let thread = self.streaming.take().ok_or("nothing is streamed")?;
                return Ok(thread.join().unwrap_or_else(|_| json!({ "error": "the stream panicked" })));
            }
            other => return Err(format!("no such command: {other}").into()),
        }
        Ok(json!({}))
    }

    fn clock(&self, edit: &str, value: f64) -> Outcome<Json> {
        let clock = self.peer.clock();
        let seconds = || SimDuration::from_secs_f64(value).ok_or("not a duration");
        match edit {
            "scale" => clock.set_scale(value)?,
            "pause" => clock.pause()?,
            "resume" => clock.resume()?,
            "jump_by" => clock.jump_by(seconds()?)?,
            "jump_to" => clock.jump_to(SimTime::from_nanos(0).saturating_add(seconds()?))?,
            "read" => {
                let (state, now) = (clock.state(), self.peer.wall().now.as_nanos());
                let (rate, edits) = (self.peer.context().rate, clock.log().len());
                return Ok(
                    json!({ "scale": state.segment.scale, "rate": rate, "edits": edits, "wall": now.to_string() }),
                );
            }
            other => return Err(format!("no such edit: {other}").into()),
        };
        Ok(json!({}))
    }

    /// Writes 0, 1, 2, … at `k0`, `k1`, … (`keys` of them, in turn) at `hz` for `ms`, or until a write is refused.
    fn stream(&mut self, command: &Json) -> Outcome<()> {
        let entity = self.peer.entity(command["entity"].as_str().ok_or("no entity")?)?;
        let number = |key: &str, default: u64| command[key].as_u64().unwrap_or(default).max(1);
        let (keys, hz, ms) = (number("keys", 1), number("hz", 60), number("ms", 1_000));
        let peer = self.peer.clone();
        self.streaming = Some(std::thread::spawn(move || {
            let total = hz * ms / 1_000;
            for n in 0..total {
                let written = entity.set(peer.context(), format!("k{}", n % keys).as_str(), n);
                if let Err(error) = written {
                    return json!({ "writes": n, "refused": format!("{:?}", error.kind()) });
                }
                std::thread::sleep(Duration::from_nanos(1_000_000_000 / hz));
            }
            json!({ "writes": total })
        }));
        Ok(())
    }
}

fn value_of(json: &Json) -> Outcome<Value> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(it) => Value::Bool(*it),
        Json::String(it) => it.as_str().into(),
        Json::Number(it) => match (it.as_i64(), it.as_f64()) {
            (Some(whole), _) => Value::Int(whole),
            (_, Some(number)) => Value::Float(number),
            _ => return Err("no such number".into()),
        },
        other => return Err(format!("no value: {other}").into()),
    })
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(it) => json!(it),
        Value::Int(it) => json!(it),
        Value::UInt(it) => json!(it),
        Value::Float(it) => json!(it),
        Value::Text(it) => json!(&**it),
        other => json!(other.to_string()),
    }
}
