//! The README's ten lines: a host, a guest, one moving thing, one sim time.
#![allow(clippy::print_stdout, reason = "a program for people")]
use coeval::{Motion, Peer, Result};

fn main() -> Result<()> {
    let host = Peer::host("demo").open()?; // own I/O thread; no runtime needed
    let probe = host.create_entity("probe")?;
    probe.set(host.context(), "motion", Motion::at([0.0; 3]).velocity([10.0, 0.0, 0.0]))?; // m, m/s
    host.clock().set_scale(4.0)?; // every peer recomputes its sim time
    let guest = Peer::join(host.invite()?).open()?; // usually another program; returns caught up
    let motion = guest.entity("probe")?.param::<Motion>("motion")?; // a handle: resolve once
    println!("{}", motion.read(guest.context())?); // where it is *now*, and how good that is
    Ok(())
}
