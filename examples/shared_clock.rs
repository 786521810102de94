//! Two peers, one clock: either edits it, and both compute the same sim time, to the nanosecond.
#![allow(clippy::print_stdout, reason = "a program for people")]
use coeval::{CivilScale, Peer, Result, SimDuration, SimTime, WallDuration};
use std::time::Duration;

/// What both peers make of one wall instant, a moment later.
fn show(what: &str, ada: &Peer, bob: &Peer) -> bool {
    std::thread::sleep(Duration::from_millis(50));
    let wall = ada.wall_in(WallDuration::ZERO);
    let (a, b) = (ada.clock().sim_at(wall), bob.clock().sim_at(wall));
    let date = |sim: SimTime| sim.to_civil(CivilScale::Tai).to_iso();
    println!("{what:19} rate {:+5}: ada {}, bob {}", ada.context().rate, date(a), date(b));
    a == b
}

fn main() -> Result<()> {
    let start: SimTime = "2028-04-25T05:30:00 TAI".parse().expect("a date with its scale");
    let ada = Peer::host("clock").peer_name("ada").start(start).open()?;
    let bob = Peer::join(ada.invite()?).peer_name("bob").open()?;
    let patience = Duration::from_secs(2);
    let mut agree = show("at the start", &ada, &bob);

    ada.clock().set_scale(60.0)?;
    ada.flush(patience)?; // until bob has it
    agree &= show("ada: 60 times", &ada, &bob);

    bob.clock().pause()?;
    bob.flush(patience)?;
    agree &= show("bob: pause", &ada, &bob);

    ada.clock().jump_by(SimDuration::from_secs(-100 * 365 * 86_400))?;
    ada.flush(patience)?;
    agree &= show("ada: a century back", &ada, &bob);

    bob.clock().set_scale(-1.0)?; // pause and scale are separate: still paused
    bob.clock().resume()?;
    bob.flush(patience)?;
    agree &= show("bob: backward", &ada, &bob);

    // An edit for a wall instant to come: both switch then, without a step.
    let soon = ada.wall_in(WallDuration::from_millis(50));
    ada.clock().at(soon).set_scale(2.0)?;
    ada.flush(patience)?;
    std::thread::sleep(Duration::from_millis(100));
    agree &= show("ada: 2, scheduled", &ada, &bob);

    println!("{} edits, the same sim time at both peers each time: {agree}", ada.clock().log().len());
    Ok(())
}
