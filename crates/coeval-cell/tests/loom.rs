//! Models of every atomic of this crate, checked by loom over all interleavings and all values the memory model allows.
//!
//! ```text
//! RUSTFLAGS="--cfg coeval_loom" cargo test -p coeval-cell --release --test loom
//! ```
#![cfg(coeval_loom)]

use coeval_cell::{DirtyBits, Doorbell, Ratchet, RingCell};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

/// Two writers and a reader: every sample read is whole, numbers match contents and never go back.
#[test]
fn ring_reader_sees_whole_samples() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(2, 2));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let cell = cell.clone();
                thread::spawn(move || {
                    let mut writer = cell.lock();
                    let number = writer.read(&mut []).unwrap_or(0) + 1;
                    writer.publish(&[number, number]);
                })
            })
            .collect();
        let mut out = [0; 2];
        let number = cell.read(&mut out).unwrap_or(0);
        assert_eq!(out, [number; 2]);
        writers.into_iter().for_each(|w| w.join().unwrap());
        assert_eq!((cell.read(&mut out), out), (Some(2), [2; 2]));
    });
}

/// A reader that writers lap: it is inside the slot while the next sample but one overwrites it.
#[test]
fn ring_lapped_reader_notices() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(2, 2));
        cell.lock().publish(&[1, 1]);
        let writer = {
            let cell = cell.clone();
            thread::spawn(move || {
                for number in 2..=3 {
                    cell.lock().publish(&[number, number]);
                }
            })
        };
        let mut out = [0; 2];
        let number = cell.read(&mut out).expect("one was published before");
        assert_eq!(out, [number; 2]);
        writer.join().unwrap();
    });
}

/// An older sample is handed out whole or not at all; one that cannot have been overtaken is handed out.
#[test]
fn ring_older_sample_is_whole_or_refused() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(2, 3));
        for number in 1..=2 {
            cell.lock().publish(&[number, number]);
        }
        let writer = {
            let cell = cell.clone();
            thread::spawn(move || {
                for number in 3..=4 {
                    cell.lock().publish(&[number, number]);
                }
            })
        };
        let mut out = [0; 2];
        if cell.read_number(1, &mut out) {
            assert_eq!(out, [1; 2]);
        }
        assert!(cell.read_number(2, &mut out), "4 is begun at most, and 2 lives until 5");
        assert_eq!(out, [2; 2]);
        writer.join().unwrap();
    });
}

/// Status and samples: who sees the status sees what was published before it, and the other way round.
#[test]
fn ring_status_and_samples_come_in_order() {
    loom::model(|| {
        let cell = Arc::new(RingCell::new(1, 2));
        let writer = {
            let cell = cell.clone();
            thread::spawn(move || {
                let mut writer = cell.lock();
                writer.publish(&[1]);
                writer.set_status(1);
                writer.publish(&[2]);
            })
        };
        let status = cell.status();
        let number = cell.read(&mut [0]).unwrap_or(0);
        assert!(number >= u64::from(status));
        assert!(number < 2 || cell.status() == 1);
        writer.join().unwrap();
    });
}

/// Three marks, two of them in one word, against a drain: each comes out exactly once, with its value.
#[test]
fn dirty_marks_are_never_lost_and_bring_their_values() {
    loom::model(|| {
        let bits = Arc::new(DirtyBits::new());
        let cells: Arc<Vec<AtomicU64>> = Arc::new((0..2).map(|_| AtomicU64::new(0)).collect());
        let writers: Vec<_> = (0..2)
            .map(|who| {
                let (bits, cells) = (bits.clone(), cells.clone());
                thread::spawn(move || {
                    cells[who].store(1, Ordering::Relaxed);
                    bits.mark(who as u32);
                })
            })
            .collect();
        let mut seen = [0; 2];
        let mut take = |index: u32| {
            assert_eq!(cells[index as usize].load(Ordering::Relaxed), 1, "a mark came before its value");
            seen[index as usize] += 1;
        };
        bits.drain(&mut take);
        writers.into_iter().for_each(|w| w.join().unwrap());
        bits.drain(&mut take);
        assert_eq!(seen, [1, 1]);
    });
}

/// A cell rewritten while it is drained: the last value is always seen by this drain or by the next.
#[test]
fn dirty_last_value_is_seen() {
    loom::model(|| {
        let bits = Arc::new(DirtyBits::new());
        let cell = Arc::new(AtomicU64::new(0));
        bits.mark(0);
        let writer = {
            let (bits, cell) = (bits.clone(), cell.clone());
            thread::spawn(move || {
                for value in 1..=2 {
                    cell.store(value, Ordering::Relaxed);
                    bits.mark(0);
                }
            })
        };
        let mut seen = 0;
        for _ in 0..2 {
            bits.drain(|_| seen = cell.load(Ordering::Relaxed));
        }
        writer.join().unwrap();
        bits.drain(|_| seen = cell.load(Ordering::Relaxed));
        assert_eq!(seen, 2);
    });
}

/// After a mark returned, a drain that comes later takes it, even if another marker of the word was stopped half-way.
#[test]
fn dirty_mark_does_not_depend_on_other_markers() {
    loom::model(|| {
        let bits = Arc::new(DirtyBits::new());
        bits.mark(0);
        bits.drain(|_| {});
        let other = {
            let bits = bits.clone();
            thread::spawn(move || bits.mark(1))
        };
        bits.mark(2);
        let mut taken = false;
        bits.drain(|index| taken |= index == 2);
        assert!(taken, "the mark waits for somebody else");
        other.join().unwrap();
    });
}

/// The consumer goes to sleep while a writer marks: the mark is drained or the writer wakes it.
#[test]
fn doorbell_loses_no_wake() {
    loom::model(|| {
        let (bits, bell) = (Arc::new(DirtyBits::new()), Arc::new(Doorbell::new()));
        let writer = {
            let (bits, bell) = (bits.clone(), bell.clone());
            thread::spawn(move || {
                bits.mark(0);
                bell.ring()
            })
        };
        bell.begin_idle();
        let mut drained = false;
        bits.drain(|_| drained = true);
        let woke = writer.join().unwrap();
        assert_eq!(woke, bell.armed());
        assert!(drained || woke, "a mark is left, and nobody wakes the consumer");
    });
}

/// The same when the summary bit was set by somebody else, and the writer left it alone.
#[test]
fn doorbell_loses_no_wake_behind_another_marker() {
    loom::model(|| {
        let (bits, bell) = (Arc::new(DirtyBits::new()), Arc::new(Doorbell::new()));
        bits.mark(0);
        let writer = {
            let (bits, bell) = (bits.clone(), bell.clone());
            thread::spawn(move || {
                bits.mark(1);
                bell.ring()
            })
        };
        let mut drained = false;
        bits.drain(|index| drained |= index == 1);
        bell.begin_idle();
        bits.drain(|index| drained |= index == 1);
        assert!(writer.join().unwrap() || drained, "a mark is left, and nobody wakes the consumer");
    });
}

/// Of two writers that find the consumer asleep, one wakes it.
#[test]
fn doorbell_wakes_once() {
    loom::model(|| {
        let bell = Arc::new(Doorbell::new());
        bell.begin_idle();
        let other = {
            let bell = bell.clone();
            thread::spawn(move || bell.ring())
        };
        let wakes = [bell.ring(), other.join().unwrap()];
        assert!(wakes[0] != wakes[1] && bell.armed(), "{wakes:?}");
    });
}

/// The same for work that is not a mark.
#[test]
fn doorbell_for_any_work_loses_no_wake() {
    loom::model(|| {
        let (work, bell) = (Arc::new(AtomicBool::new(false)), Arc::new(Doorbell::new()));
        let writer = {
            let (work, bell) = (work.clone(), bell.clone());
            thread::spawn(move || {
                work.store(true, Ordering::Relaxed);
                bell.ring_for_any()
            })
        };
        bell.begin_idle();
        let seen = work.load(Ordering::Relaxed);
        let woke = writer.join().unwrap();
        assert!(seen || woke, "work is there, and nobody wakes the consumer");
    });
}

/// Ticks of threads that know nothing of each other are unique.
#[test]
fn ratchet_ticks_are_unique() {
    loom::model(|| {
        let ratchet = Arc::new(Ratchet::new(0));
        let others: Vec<_> = [0, 2]
            .map(|floor| {
                let ratchet = ratchet.clone();
                thread::spawn(move || ratchet.tick(floor))
            })
            .into_iter()
            .collect();
        let mut ticks = vec![ratchet.tick(0)];
        ticks.extend(others.into_iter().map(|t| t.join().unwrap()));
        assert_eq!(ratchet.get(), *ticks.iter().max().unwrap());
        ticks.sort_unstable();
        assert!(ticks.is_sorted_by(|a, b| a < b), "{ticks:?}");
    });
}

/// A tick made after reading what another thread received or stamped is above it; a raise undoes no tick.
#[test]
fn ratchet_ticks_are_above_what_was_read() {
    loom::model(|| {
        let ratchet = Arc::new(Ratchet::new(0));
        let readable = Arc::new(AtomicU64::new(0));
        let receiver = {
            let (ratchet, readable) = (ratchet.clone(), readable.clone());
            thread::spawn(move || {
                ratchet.raise(2);
                readable.store(2, Ordering::Release);
                let tick = ratchet.tick(0);
                readable.store(tick, Ordering::Release);
                tick
            })
        };
        let first = ratchet.tick(0);
        let read = readable.load(Ordering::Acquire);
        let second = ratchet.tick(0);
        assert!(second > read, "written after reading {read}, and would lose against it");
        assert!(second > first);
        let other = receiver.join().unwrap();
        assert!(other > 2 && other != first && other != second);
        assert_eq!(ratchet.get(), other.max(second));
    });
}
