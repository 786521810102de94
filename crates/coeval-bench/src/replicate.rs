//! A closed loop between two processes over QUIC: half of the cells is rewritten, then acknowledged, so that no update
//! is conflated.
use crate::{Failure, Figure};
use coeval::{Invite, Motion, Peer, Quat};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CELLS: usize = 20_000;
const SPAN: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);

struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        if self.0.kill().is_ok() {
            let _ = self.0.wait();
        }
    }
}

fn motion() -> Motion {
    let [px, py, pz, vx, vy, vz, angle]: [f64; 7] = std::array::from_fn(|_| rand::random());
    let attitude = Quat { x: angle.sin(), y: 0.0, z: 0.0, w: angle.cos() };
    Motion::at([px, py, pz]).velocity([vx, vy, vz]).orientation(attitude)
}

/// Updates per second, acknowledged by a second process.
pub(crate) fn measure() -> Result<Vec<Figure>, Failure> {
    let peer = Peer::host("bench").open()?;
    let mut motions = Vec::new();
    for _ in 0..CELLS {
        let param = peer.create_unnamed()?.param::<Motion>("motion")?;
        param.set(peer.context(), motion())?;
        motions.push(param);
    }
    let child = Command::new(std::env::current_exe()?)
        .args(["replicate", "--invite", &peer.invite()?.to_string()])
        .stdin(Stdio::null())
        .spawn()?;
    let _second = Second(child);
    let deadline = Instant::now() + PATIENCE;
    while peer.flush(PATIENCE).is_err() {
        if Instant::now() > deadline {
            return Err("the second process did not join".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let traffic = || peer.peers().first().map_or((0, 0), |peer| (peer.updates_sent, peer.bytes_sent));
    let (updates_before, bytes_before) = traffic();
    let (began, mut written) = (Instant::now(), 0_u64);
    while began.elapsed() < SPAN {
        for half in motions.chunks(CELLS / 2) {
            let context = peer.context();
            for param in half {
                param.set(context, motion())?;
            }
            written += half.len() as u64;
            peer.flush(PATIENCE)?;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let (updates, bytes) = traffic();
    let (updates, bytes) = (updates - updates_before, bytes - bytes_before);
    Ok(vec![
        ("updates_per_s", written as f64 / seconds, "written, sent, applied and acknowledged"),
        ("sent_over_written", updates as f64 / written as f64, "1: nothing conflated, nothing sent twice"),
        (
            "bytes_per_motion",
            bytes as f64 / updates as f64,
            "message bytes per update, 80 of them raw; QUIC's own not counted",
        ),
    ])
}

/// The second process: a full replica that reads along until it is killed.
pub(crate) fn second(invite: &str) -> Result<(), Failure> {
    let peer = Peer::join(invite.parse::<Invite>()?).open()?;
    let watch = peer.watch("*")?;
    loop {
        watch.wait(Duration::from_secs(3600));
    }
}
