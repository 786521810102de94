//! Interleaved rounds, so that what disturbs one subject disturbs the others; medians, so that a disturbance is no result.
use std::time::Instant;

const ROUNDS: usize = 21;

/// Nanoseconds per call of each subject, median of [`ROUNDS`] rounds of `calls` calls each.
pub(crate) fn medians<const N: usize>(calls: usize, mut subjects: [&mut dyn FnMut(usize); N]) -> [f64; N] {
    let mut times = [(); N].map(|()| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for (subject, times) in subjects.iter_mut().zip(&mut times) {
            let began = Instant::now();
            (0..calls).for_each(&mut **subject);
            times.push(began.elapsed().as_nanos() as f64 / calls as f64);
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}
