//! Models of every atomic of this crate, checked by loom over the interleavings and the values the memory model allows.
//!
//! ```text
//! RUSTFLAGS="--cfg coeval_loom" cargo test -p coeval-cell --release --test loom
//! ```
//!
//! Each model names the mutations of the code that it was seen to catch. To keep it that way: the thread that loom runs
//! first (the one of the model itself) writes, and whoever only looks is spawned. loom remembers one last access of an
//! atomic; if a look came first, the writer's own look at the same atomic would hide it from the writer's store, and
//! loom would never try the two the other way round. Some mutations stay in the code, to be put in by the tests at the
//! end: each must make a model fail.
#![cfg(coeval_loom)]

use coeval_cell::{DirtyBits, Doorbell, Ratchet, RingCell};
use coeval_faults::{Fault, with};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread::{self, JoinHandle};

/// Runs `f` on a thread of its own, with its own hold on what is shared.
fn spawn<S: Send + Sync + 'static, R: 'static>(
    shared: &Arc<S>,
    f: impl FnOnce(&S) -> R + 'static,
) -> JoinHandle<R> {
    let shared = shared.clone();
    thread::spawn(move || f(&shared))
}

/// One writer and a reader: the first samples, each seen with its own words.
///
/// Caught: `Relaxed` for the store of "published", for the store of "begun" (the reader takes the number of the sample
/// before from it), for the first look at the head.
#[test]
fn ring_number_brings_its_words() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(1, 2));
        let reader = spawn(&cell, |cell| {
            let mut out = [0];
            let number = cell.read(&mut out);
            assert_eq!(number.unwrap_or(0), out[0]);
        });
        let mut writer = cell.lock();
        writer.publish(&[1]);
        writer.publish(&[2]);
        reader.join().unwrap();
    });
}

/// Two writers and a reader: every sample read is one writer's, and the numbers count.
///
/// Caught: no lock among the writers.
#[test]
fn ring_writers_take_turns() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(2, 2));
        let reader = spawn(&cell, |cell| {
            let mut out = [0; 2];
            let number = cell.read(&mut out);
            assert!(out[0] == out[1] && number.is_some() == (out[0] != 0), "{number:?}: {out:?}");
        });
        let other = spawn(&cell, |cell| cell.lock().publish(&[7, 7]));
        cell.lock().publish(&[8, 8]);
        other.join().unwrap();
        reader.join().unwrap();
        let mut out = [0; 2];
        assert_eq!(cell.read(&mut out), Some(2));
        assert!(out == [7, 7] || out == [8, 8], "{out:?}");
        assert!(cell.read_number(1, &mut out));
    });
}

/// A reader that a writer laps: the next sample but one overwrites the slot while it reads.
///
/// Caught: no release fence, no acquire fence, "begun" left out of the check, `<=` for `<` in it.
#[test]
fn ring_lapped_reader_notices() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(2, 2));
        cell.lock().publish(&[1, 1]);
        let reader = spawn(&cell, |cell| {
            let mut out = [0; 2];
            let number = cell.read(&mut out).expect("one was published before");
            assert_eq!(out, [number; 2]);
        });
        for number in 2..=3 {
            cell.lock().publish(&[number, number]);
        }
        reader.join().unwrap();
    });
}

/// An older sample is handed out whole or not at all; one that cannot have been overtaken is handed out.
///
/// Caught: the same as above.
#[test]
fn ring_older_sample_is_whole_or_refused() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(2, 3));
        for number in 1..=2 {
            cell.lock().publish(&[number, number]);
        }
        let reader = spawn(&cell, |cell| {
            let mut out = [0; 2];
            if cell.read_number(1, &mut out) {
                assert_eq!(out, [1; 2]);
            }
            assert!(cell.read_number(2, &mut out), "4 is begun at most, and 2 lives until 5");
            assert_eq!(out, [2; 2]);
        });
        for number in 3..=4 {
            cell.lock().publish(&[number, number]);
        }
        reader.join().unwrap();
    });
}

/// A sample asked for by number is not handed out before it is published, and then with its words.
///
/// Caught: `Relaxed` for the look at the head in `read_number`.
#[test]
fn ring_sample_asked_for_early_is_whole_or_refused() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(1, 2));
        let reader = spawn(&cell, |cell| {
            let mut out = [0];
            assert!(!cell.read_number(1, &mut out) || out == [1], "{out:?}");
        });
        cell.lock().publish(&[1]);
        reader.join().unwrap();
    });
}

/// Who sees the status sees what was published before it, and the other way round.
///
/// Caught: `Relaxed` for the store or for the load of the status.
#[test]
fn ring_status_and_samples_come_in_order() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(1, 2));
        let reader = spawn(&cell, |cell| {
            let status = cell.status();
            let number = cell.read(&mut [0]).unwrap_or(0);
            assert!(number >= u64::from(status));
            assert!(number < 2 || cell.status() == 1);
        });
        let mut writer = cell.lock();
        writer.publish(&[1]);
        writer.set_status(1);
        writer.publish(&[2]);
        drop(writer);
        reader.join().unwrap();
    });
}

/// Two marks in one word against a drain: each comes out exactly once, with its value. The room is made meanwhile.
///
/// Caught: `Relaxed` for the read-modify-write of the mark, for the swap of the word, and for the bit that says that the
/// room is there; a drain that loads and stores instead of swapping.
#[test]
fn dirty_marks_are_never_lost_and_bring_their_values() {
    // Three threads that make room: minutes without a bound. Two or three preemptions show what there is to show.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new((DirtyBits::new(), [AtomicU64::new(0), AtomicU64::new(0)]));
        fn publish((bits, cells): &(DirtyBits, [AtomicU64; 2]), index: usize) {
            cells[index].store(1, Ordering::Relaxed);
            bits.mark(index as u32);
        }
        fn take((bits, cells): &(DirtyBits, [AtomicU64; 2])) -> [u32; 2] {
            let mut seen = [0; 2];
            bits.drain(|index| {
                assert_eq!(cells[index as usize].load(Ordering::Relaxed), 1, "a mark came before its value");
                seen[index as usize] += 1;
            });
            seen
        }
        let consumer = spawn(&shared, take);
        let other = spawn(&shared, |shared| publish(shared, 1));
        publish(&shared, 0);
        other.join().unwrap();
        let (first, last) = (consumer.join().unwrap(), take(&shared));
        assert_eq!([first[0] + last[0], first[1] + last[1]], [1, 1]);
    });
}

/// A cell rewritten while it is drained: the last value is seen by this drain or by the next.
///
/// Caught: `Relaxed` for the read-modify-write of the mark, and for the swap of the word; a look before the mark
/// that skips it; a drain that loads and stores instead of swapping. With `Relaxed` for the look at the summary, also a
/// mark that does not acquire and a swap that does not release: that look then skips what it must not. (With the look
/// at `SeqCst`, as it is, loom lets it see no older value than the swap, so neither shows.)
#[test]
fn dirty_last_value_is_seen() {
    loom::model(|| {
        let shared = Arc::new((DirtyBits::new(), AtomicU64::new(0)));
        shared.0.mark(0);
        let consumer = spawn(&shared, |(bits, cell)| {
            let mut seen = 0;
            bits.drain(|_| seen = cell.load(Ordering::Relaxed));
            bits.drain(|_| seen = cell.load(Ordering::Relaxed));
            seen
        });
        let (bits, cell) = &*shared;
        for value in 1..=2 {
            cell.store(value, Ordering::Relaxed);
            bits.mark(0);
        }
        let mut seen = consumer.join().unwrap();
        bits.drain(|_| seen = cell.load(Ordering::Relaxed));
        assert_eq!(seen, 2);
    });
}

/// After a mark returned, a drain that comes later takes it, even if another marker of the word was stopped half-way.
///
/// Caught: a summary bit set only by the mark that finds its word empty.
#[test]
fn dirty_mark_does_not_depend_on_other_markers() {
    loom::model(|| {
        let bits = Arc::new(DirtyBits::new());
        bits.mark(0);
        bits.drain(|_| {});
        let other = spawn(&bits, |bits| bits.mark(1));
        bits.mark(2);
        let mut taken = false;
        bits.drain(|index| taken |= index == 2);
        assert!(taken, "the mark waits for somebody else");
        other.join().unwrap();
    });
}

/// The consumer goes to sleep while a writer marks: the mark is drained or the writer wakes it.
///
/// Caught: no sequential point in `ring`, no fence in `begin_idle`.
#[test]
fn doorbell_loses_no_wake() {
    for room_is_there in [false, true] {
        loom::model(move || {
            let shared = Arc::new((DirtyBits::new(), Doorbell::new()));
            if room_is_there {
                shared.0.mark(0);
                shared.0.drain(|_| {});
            }
            let consumer = spawn(&shared, |(bits, bell)| {
                bell.begin_idle();
                let mut drained = false;
                bits.drain(|_| drained = true);
                drained
            });
            shared.0.mark(0);
            let woke = shared.1.ring();
            assert!(consumer.join().unwrap() || woke, "a mark is left, and nobody wakes the consumer");
            assert_eq!(woke, shared.1.armed());
        });
    }
}

/// The same when the summary bit was set by somebody else, and the writer left it alone.
///
/// Caught: a drain that loads and stores instead of swapping.
#[test]
fn doorbell_loses_no_wake_behind_another_marker() {
    loom::model(|| {
        let shared = Arc::new((DirtyBits::new(), Doorbell::new()));
        shared.0.mark(0);
        let consumer = spawn(&shared, |(bits, bell)| {
            let mut drained = false;
            bits.drain(|index| drained |= index == 1);
            bell.begin_idle();
            bits.drain(|index| drained |= index == 1);
            drained
        });
        shared.0.mark(1);
        let woke = shared.1.ring();
        assert!(consumer.join().unwrap() || woke, "a mark is left, and nobody wakes the consumer");
    });
}

/// Of two writers that find the consumer asleep, one wakes it.
///
/// Caught: a store instead of the swap.
#[test]
fn doorbell_wakes_once() {
    loom::model(|| {
        let bell = Arc::new(Doorbell::new());
        bell.begin_idle();
        let other = spawn(&bell, |bell| bell.ring());
        let wakes = [bell.ring(), other.join().unwrap()];
        assert!(wakes[0] != wakes[1] && bell.armed(), "{wakes:?}");
    });
}

/// Work that is not a mark: seen by the consumer's last look, or the writer wakes it.
///
/// Caught: no fence in `begin_idle`, or none in `ring_for_any` and `ring`.
#[test]
fn doorbell_for_any_work_loses_no_wake() {
    loom::model(|| {
        let shared = Arc::new((AtomicBool::new(false), Doorbell::new()));
        let consumer = spawn(&shared, |(work, bell)| {
            bell.begin_idle();
            work.load(Ordering::Relaxed)
        });
        shared.0.store(true, Ordering::Relaxed);
        let woke = shared.1.ring_for_any();
        assert!(consumer.join().unwrap() || woke, "work is there, and nobody wakes the consumer");
    });
}

/// Ticks of threads that know nothing of each other are unique.
///
/// Caught: a load and a store instead of the exchange.
#[test]
fn ratchet_ticks_are_unique() {
    loom::model(|| {
        let ratchet = Arc::new(Ratchet::new(0));
        let others = [0, 2].map(|floor| spawn(&ratchet, move |ratchet| ratchet.tick(floor)));
        let mut ticks = vec![ratchet.tick(0)];
        ticks.extend(others.into_iter().map(|t| t.join().unwrap()));
        assert_eq!(ratchet.get(), *ticks.iter().max().unwrap());
        ticks.sort_unstable();
        assert!(ticks.is_sorted_by(|a, b| a < b), "{ticks:?}");
    });
}

/// A tick made after reading what another thread received or stamped is above it; a raise undoes no tick.
///
/// Caught: a load and a store instead of the exchange, a store instead of the maximum.
#[test]
fn ratchet_ticks_are_above_what_was_read() {
    loom::model(|| {
        let shared = Arc::new((Ratchet::new(0), AtomicU64::new(0)));
        let reader = spawn(&shared, |(ratchet, readable)| {
            let first = ratchet.tick(0);
            let read = readable.load(Ordering::Acquire);
            let second = ratchet.tick(0);
            assert!(second > read, "written after reading {read}, and would lose against it");
            assert!(second > first);
            [first, second]
        });
        let (ratchet, readable) = &*shared;
        ratchet.raise(2);
        readable.store(2, Ordering::Release);
        let tick = ratchet.tick(0);
        readable.store(tick, Ordering::Release);
        let others = reader.join().unwrap();
        assert!(tick > 2 && !others.contains(&tick), "{tick} and {others:?}");
        assert_eq!(ratchet.get(), tick.max(others[1]));
    });
}

/// Puts a fault in and runs a model; the test passes when the model fails, with the words of its own assertion.
macro_rules! caught {
    ($($test:ident: $fault:ident by $model:ident saying $words:literal;)*) => {
        $(
            #[test]
            #[should_panic(expected = $words)]
            fn $test() {
                with(Fault::$fault, $model);
            }
        )*

        /// The simulator lists the faults of the atomics as found by these tests.
        #[test]
        fn every_fault_of_the_atomics_has_a_model_that_catches_it() {
            let of_atomics = Fault::ALL.iter().copied().filter(|fault| fault.is_of_atomics());
            let caught = [$((Fault::$fault, stringify!($test)),)*];
            for fault in of_atomics {
                let test = format!("mutant_{}", fault.name().replace([' ', ','], "_").replace("__", "_"));
                assert!(caught.contains(&(fault, &test)), "{fault:?} needs a test called {test}");
            }
        }
    };
}

caught! {
    mutant_dirty_bit_skipped_on_a_plain_load: DirtyBitSkipped by dirty_last_value_is_seen saying "left == right";
    mutant_dirty_bits_read_then_cleared: DirtyBitsCleared by dirty_last_value_is_seen saying "left: 1";
    mutant_ring_cell_published_before_its_slot_is_written: RingPublishedEarly by ring_number_brings_its_words saying "left: 1";
    mutant_ring_cell_written_without_a_fence: RingFenceMissing by ring_lapped_reader_notices saying "left: [";
    mutant_doorbell_set_without_a_fence: BellFenceMissing by doorbell_loses_no_wake saying "nobody wakes";
    mutant_hybrid_clock_set_instead_of_raised: ClockSetNotRaised by ratchet_ticks_are_above_what_was_read saying "2 and [";
}
