//! Handles in one process, beside a bare seqlock of the same size, in the same order, with the same arithmetic.
use crate::measure::medians;
use crate::seqlock::{Seqlock, WORDS};
use crate::{Failure, Figure};
use coeval::{Motion, Param, Peer, Quat};
use std::hint::black_box;

/// Cells: few enough to stay in the cache.
const CELLS: usize = 1_000;
const CALLS: usize = 100_000;

struct Bench {
    peer: Peer,
    motions: Vec<Param<Motion>>,
    floor: Vec<Seqlock>,
}

/// A motion with position, velocity and attitude: 80 bytes.
fn motion() -> (Motion, [f64; WORDS]) {
    let values: [f64; WORDS] = std::array::from_fn(|_| rand::random());
    let [px, py, pz, vx, vy, vz, x, y, z, w] = values;
    let norm = (x * x + y * y + z * z + w * w).sqrt();
    let attitude = Quat { x: x / norm, y: y / norm, z: z / norm, w: w / norm };
    (Motion::at([px, py, pz]).velocity([vx, vy, vz]).orientation(attitude), values)
}

fn bench() -> Result<Bench, Failure> {
    let peer = Peer::host("bench").open()?;
    let mut motions = Vec::new();
    let mut floor = Vec::new();
    for _ in 0..CELLS {
        let (value, values) = motion();
        let param = peer.create_unnamed()?.param::<Motion>("motion")?;
        param.set(peer.context(), value)?;
        motions.push(param);
        let cell = Seqlock::default();
        cell.write(&values);
        floor.push(cell);
    }
    Ok(Bench { peer, motions, floor })
}

/// Nanoseconds of a read at a context, extrapolated.
pub(crate) fn read() -> Result<Vec<Figure>, Failure> {
    let Bench { peer, motions, floor } = bench()?;
    let context = peer.context();
    let mut failed = 0_u64;
    let mut handle = |i: usize| match motions[i % CELLS].get(context) {
        Ok(value) => {
            black_box(value);
        }
        Err(_) => failed += 1,
    };
    let dt = black_box(0.25);
    let mut bare = |i: usize| {
        let mut values = floor[i % CELLS].read();
        for k in 0..3 {
            values[k] += values[k + 3] * dt;
        }
        black_box(values);
    };
    let mut take = |_| {
        black_box(peer.context());
    };
    let [handle_ns, floor_ns, context_ns] = medians(CALLS, [&mut handle, &mut bare, &mut take]);
    if failed > 0 {
        return Err(format!("{failed} reads failed").into());
    }
    Ok(vec![
        ("handle_ns", handle_ns, "read of a motion at a context through a handle"),
        ("floor_ns", floor_ns, "a bare seqlock of the same size, same arithmetic"),
        ("handle_over_floor", handle_ns / floor_ns, "ratio"),
        ("context_ns", context_ns, "taking a context: one OS clock read"),
    ])
}

/// Nanoseconds of a write, with nobody linked.
pub(crate) fn write() -> Result<Vec<Figure>, Failure> {
    let Bench { peer, motions, floor } = bench()?;
    let context = peer.context();
    let (value, values) = motion();
    let mut failed = 0_u64;
    let mut handle = |i: usize| failed += u64::from(motions[i % CELLS].set(context, value).is_err());
    let mut bare = |i: usize| floor[i % CELLS].write(black_box(&values));
    let [handle_ns, floor_ns] = medians(CALLS, [&mut handle, &mut bare]);
    if failed > 0 {
        return Err(format!("{failed} writes failed").into());
    }
    Ok(vec![
        ("handle_ns_0_links", handle_ns, "write of a motion through a handle: stamp, history, dirty bit"),
        ("floor_ns", floor_ns, "a bare seqlock of the same size"),
        ("handle_over_floor", handle_ns / floor_ns, "ratio"),
    ])
}
