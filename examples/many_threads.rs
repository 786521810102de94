//! One writer and several readers at full speed, with handles: nobody waits, nobody sees half a value.
#![allow(clippy::print_stdout, reason = "a program for people")]
use coeval::{ErrorKind, Param, Peer, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const READERS: usize = 3;
const RUN: Duration = Duration::from_millis(600);

/// Writes as fast as it can, and reads each write back; how many.
fn write(peer: &Peer, pose: &Param<[f64; 3]>, until: Instant) -> Result<u64> {
    let mut count = 0_u64;
    while Instant::now() < until {
        for _ in 0..64 {
            count += 1;
            let n = count as f64;
            let context = peer.context();
            pose.set(context, [n, 2.0 * n, 3.0 * n])?;
            // A thread reads its own writes at once.
            let back = pose.get(context)?;
            assert_eq!(back, [n, 2.0 * n, 3.0 * n], "a write was not read back");
        }
    }
    Ok(count)
}

/// Reads as fast as it can until told to stop; how often, and how many different values.
fn read(peer: &Peer, pose: &Param<[f64; 3]>, stop: &AtomicBool) -> Result<(u64, u64)> {
    let (mut reads, mut fresh, mut last) = (0, 0, 0.0);
    while !stop.load(Ordering::Relaxed) {
        let [x, y, z] = match pose.get(peer.context()) {
            Ok(pose) => pose,
            // The writer has not begun.
            Err(error) if error.kind() == ErrorKind::Missing => continue,
            Err(error) => return Err(error),
        };
        // Between two samples a read is interpolated, so the parts are equal but for rounding.
        assert!(
            (y - 2.0 * x).abs() <= 1e-9 * x && (z - 3.0 * x).abs() <= 1e-9 * x,
            "half a value: {x} {y} {z}"
        );
        reads += 1;
        fresh += u64::from(x != last);
        last = x;
    }
    Ok((reads, fresh))
}

fn main() -> Result<()> {
    let peer = Peer::host("many threads").open()?;
    // Resolved once; a handle is cheap to clone and usable from any thread.
    let pose = peer.create_entity("probe")?.param::<[f64; 3]>("position")?;
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let (written, readers) = thread::scope(|scope| {
        let readers = [(); READERS].map(|()| scope.spawn(|| read(&peer, &pose, &stop)));
        let written = write(&peer, &pose, begun + RUN);
        stop.store(true, Ordering::Relaxed);
        (written, readers.map(|reader| reader.join().expect("readers do not panic")))
    });
    let (written, seconds) = (written?, begun.elapsed().as_secs_f64());
    println!(
        "writer: {written} writes, each read back at once: {:.2} million/s",
        written as f64 / seconds / 1e6
    );
    for (i, reader) in readers.into_iter().enumerate() {
        let (reads, fresh) = reader?;
        println!(
            "reader {i}: {reads} reads of {fresh} values: {:.2} million/s",
            reads as f64 / seconds / 1e6
        );
    }
    let last = pose.get(peer.context())?[0];
    println!("last value: {last}, as written: {}", last == written as f64);
    Ok(())
}
