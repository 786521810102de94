//! Session wall time and stamps: never backward, right within what is stated, whatever the OS clock says.
use coeval_time::hybrid::STAMP_LIMIT;
use coeval_time::session_wall::{AdoptError, MAX_SLEW_PPM, PUBLISH_AHEAD};
use coeval_time::{
    ADMITTED_LEAD, HybridClock, Incarnation, MonoTime, Observed, PingSample, SessionWall, Stamp,
    WallDuration, WallRole, WallTime, is_ahead,
};
use proptest::prelude::*;
use std::thread;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const T0: u64 = 1_780_000_000 * S;

fn mono(nanos: u64) -> MonoTime {
    MonoTime::from_nanos(nanos)
}

/// A ping answered by a peer whose session wall time is `T0 + offset + mono`.
fn ping(sent: u64, there: u64, stay: u64, back: u64, offset: i64) -> PingSample {
    let remote = |at: u64| WallTime::from_nanos((T0 + at).checked_add_signed(offset).expect("in range"));
    let (t2, t3) = (remote(sent + there), remote(sent + there + stay));
    PingSample { t1: mono(sent), t2, t3, t4: mono(sent + there + stay + back) }
}

fn follower() -> SessionWall {
    SessionWall::new(mono(0), WallTime::from_nanos(T0), WallRole::Follower)
}

fn error_ns(session: &SessionWall, at: u64, offset: i64) -> i64 {
    session
        .at(mono(at))
        .since(WallTime::from_nanos((T0 + at).checked_add_signed(offset).expect("in range")))
        .as_nanos()
}

#[test]
fn joiner_with_a_wrong_os_clock_adopts_the_sessions_time_before_it_writes() {
    for offset in [540 * S as i64, -540 * (S as i64)] {
        let session = follower();
        session.adopt(1, ping(S, 20 * MS, MS, 60 * MS, offset), mono(S + 81 * MS)).expect("not in use yet");
        session
            .adopt(1, ping(2 * S, 21 * MS, MS, 20 * MS, offset), mono(2 * S + 42 * MS))
            .expect("not in use yet");
        assert_eq!(error_ns(&session, 3 * S, offset), (MS / 2) as i64, "half of what the two ways differ by");
        let estimate = session.estimate(mono(2 * S + 42 * MS));
        assert_eq!(estimate.uncertainty, Some(WallDuration::from_nanos(20_500_000)));
        assert_eq!(estimate.rtt, Some(WallDuration::from_millis(41)));
        assert_eq!(estimate.offset_to_os.as_nanos(), offset + (MS / 2) as i64);
        session.settle();
        let late = session.adopt(1, ping(4 * S, MS, 0, MS, 0), mono(4 * S + 2 * MS));
        assert_eq!(late, Err(AdoptError::InUse));
    }
}

#[test]
fn small_error_is_slewed_and_a_large_one_ahead_is_stepped_over() {
    let session = follower();
    let now = S + 2 * MS;
    let small = session.observe(1, ping(S, MS, 0, MS, 5 * MS as i64), mono(now));
    let (start, gone) = (now + 50 * MS, now + 50 * MS + 5 * MS * 1_000_000 / MAX_SLEW_PPM);
    assert_eq!(small, Ok(Observed::Slewing { correction: WallDuration::from_millis(5), until: mono(gone) }));
    assert_eq!(error_ns(&session, start, 5 * MS as i64), -(5 * MS as i64), "published before it begins");
    assert_eq!(error_ns(&session, gone, 5 * MS as i64), 0);
    assert_eq!(error_ns(&session, gone + 100 * S, 5 * MS as i64), 0);

    let now = gone + S;
    let offset = 3 * S as i64;
    let step =
        session.observe(1, ping(now - MS, MS / 2, 0, MS / 2, offset), mono(now)).expect("a good sample");
    let Observed::Stepped { at, before, after } = step else { panic!("{step:?}") };
    assert_eq!(after.since(before).as_nanos(), offset - 5 * MS as i64);
    assert_eq!(
        (session.at(mono(at.as_nanos() - 1)).as_nanos() + 1, session.at(at)),
        (before.as_nanos(), after)
    );
    assert_eq!(error_ns(&session, now + S, offset), 0);
}

#[test]
fn large_error_behind_is_slewed_never_stepped() {
    let session = follower();
    let offset = -3 * S as i64;
    let observed = session.observe(1, ping(S, MS, 0, MS, offset), mono(S + 2 * MS)).expect("a good sample");
    assert!(matches!(observed, Observed::Slewing { correction, .. } if correction.as_nanos() == offset));
    assert_eq!(error_ns(&session, S + 52 * MS + 1_000 * S, offset), 3 * S as i64 - 500 * MS as i64);
}

#[test]
fn sample_that_says_less_than_its_own_error_does_not_leap() {
    let session = follower();
    // 2 s on one way, nothing on the other: it seems that the session is a second ahead, give or take a second.
    let observed = session.observe(1, ping(S, 2 * S, 0, 0, 0), mono(3 * S)).expect("slow, but a sample");
    assert!(matches!(observed, Observed::Slewing { .. }), "{observed:?}");
}

#[test]
fn reference_follows_nobody_and_a_successor_goes_on_with_its_estimate() {
    let session = SessionWall::new(mono(0), WallTime::from_nanos(T0), WallRole::Reference);
    assert_eq!(session.observe(1, ping(S, MS, 0, MS, S as i64), mono(S + 2 * MS)), Ok(Observed::Kept));
    assert_eq!(error_ns(&session, 9 * S, 0), 0);
    assert_eq!(session.estimate(mono(9 * S)).uncertainty, Some(WallDuration::ZERO));
    let successor = follower();
    successor.observe(1, ping(S, MS, 0, MS, S as i64), mono(S + 2 * MS)).expect("a good sample");
    let before = successor.at(mono(20 * S));
    successor.set_role(WallRole::Reference);
    successor.forget(1);
    assert_eq!(successor.at(mono(20 * S)), before);
}

#[test]
fn disordered_samples_are_refused() {
    let session = follower();
    let good = ping(S, MS, MS, MS, 0);
    for bad in [
        PingSample { t4: mono(0), ..good },
        PingSample { t3: WallTime::MIN, ..good },
        PingSample { t3: WallTime::MAX, ..good },
    ] {
        assert!(session.observe(1, bad, mono(2 * S)).is_err(), "{bad:?}");
    }
    assert!(session.observe(1, ping(S, 6 * S, 0, 6 * S, 0), mono(13 * S)).is_err(), "too slow to tell");
    assert_eq!(session.estimate(mono(2 * S)).uncertainty, None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the samples say, no two readings go back, and the true offset stays within the stated uncertainty.
    #[test]
    fn never_backward_and_within_the_uncertainty(
        offset in -2_000_000_000..2_000_000_000_i64,
        delays in prop::collection::vec((1..40 * MS, 1..40 * MS, 10 * MS..900 * MS), 1..40),
    ) {
        let session = follower();
        let (mut sent, mut read) = (S, S);
        let mut last = session.at(mono(read));
        for (there, back, gap) in delays {
            let sample = ping(sent, there, 1_000, back, offset);
            let now = sample.t4.as_nanos();
            while read < now {
                read += 1 + read % 7_919_000;
                let reading = session.at(mono(read.min(now)));
                prop_assert!(reading >= last, "at {}", read);
                last = reading;
            }
            session.observe(read % 3, sample, mono(now)).expect("in order");
            prop_assert!(session.at(mono(now)) >= last);
            let ahead = now + PUBLISH_AHEAD.as_nanos() as u64 / 2;
            let bound = session.estimate(mono(ahead)).uncertainty.expect("there is a sample").as_nanos();
            prop_assert!(error_ns(&session, ahead, offset).abs() <= bound + 1);
            (sent, read) = (now + gap, now);
        }
    }
}

#[test]
fn readers_never_go_back_while_corrections_are_published() {
    let session = follower();
    let published = parking_lot::Mutex::new(S);
    thread::scope(|threads| {
        let read = || {
            let mut last = WallTime::MIN;
            loop {
                let now = *published.lock();
                let reading = session.at(mono(now));
                assert!(reading >= last);
                last = reading;
                if now >= 2_000 * S {
                    return;
                }
            }
        };
        let readers = [threads.spawn(read), threads.spawn(read)];
        for n in 1..2_000_u64 {
            let offset = if n % 2 == 0 { 90 * MS as i64 } else { -90 * (MS as i64) };
            session.observe(n, ping(n * S, MS, 0, MS, offset), mono(n * S + 2 * MS)).expect("a good sample");
            *published.lock() = (n + 1) * S;
        }
        assert!(readers.into_iter().all(|reader| reader.join().is_ok()), "time went back");
    });
}

fn hybrid(floor: u64) -> HybridClock {
    HybridClock::new(Incarnation(7), floor).expect("in range")
}

#[test]
fn stamp_is_above_context_present_overwritten_and_all_before() {
    let clock = hybrid(0);
    let wall = WallTime::from_nanos;
    assert_eq!(clock.next(wall(10), wall(5), Stamp::NONE).map(|stamp| stamp.hlc), Ok(11));
    assert_eq!(clock.next(wall(10), wall(20), Stamp::NONE).map(|stamp| stamp.hlc), Ok(21));
    assert_eq!(clock.next(wall(0), wall(0), Stamp::new(40, Incarnation(9))).map(|stamp| stamp.hlc), Ok(41));
    clock.observe(Stamp::new(60, Incarnation(9))).expect("in range");
    assert_eq!(
        clock.next(wall(0), wall(0), Stamp::NONE).map(|stamp| (stamp.hlc, stamp.writer)),
        Ok((61, Incarnation(7)))
    );
}

#[test]
fn restart_with_the_clock_set_back_wins_over_its_own_past() {
    let stamp = hybrid(0).next(WallTime::MIN, WallTime::from_nanos(T0), Stamp::NONE).expect("in range");
    let again = hybrid(stamp.hlc)
        .next(WallTime::MIN, WallTime::from_nanos(T0 - 3_600 * S), Stamp::NONE)
        .expect("in range");
    assert!(again > stamp);
}

#[test]
fn overflowing_stamp_is_refused_and_does_no_harm() {
    let clock = hybrid(0);
    assert!(clock.observe(Stamp::new(u64::MAX, Incarnation(9))).is_err());
    assert!(clock.next(WallTime::MAX, WallTime::MIN, Stamp::NONE).is_err());
    assert!(clock.next(WallTime::MIN, WallTime::MIN, Stamp::new(STAMP_LIMIT, Incarnation(9))).is_err());
    assert!(HybridClock::new(Incarnation(7), u64::MAX).is_err());
    assert_eq!(clock.next(WallTime::from_nanos(5), WallTime::MIN, Stamp::NONE).map(|stamp| stamp.hlc), Ok(6));
}

#[test]
fn stamps_of_all_threads_are_distinct_and_rising() {
    let clock = hybrid(0);
    let issue = || {
        (0..20_000)
            .map(|n| clock.next(WallTime::MIN, WallTime::from_nanos(n), Stamp::NONE).expect("in range"))
    };
    let mut all: Vec<Stamp> = thread::scope(|threads| {
        let issuers: Vec<_> = (0..3).map(|_| threads.spawn(|| issue().collect::<Vec<_>>())).collect();
        issuers.into_iter().flat_map(|issuer| issuer.join().expect("in range")).collect()
    });
    assert!(all.chunks(20_000).all(|thread| thread.is_sorted_by(|a, b| a < b)));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 60_000);
}

#[test]
fn fast_clock_is_parked_by_how_far_it_is_ahead() {
    let now = WallTime::from_nanos(T0);
    let stamp = |ahead: WallDuration| Stamp::new(now.saturating_add(ahead).as_nanos(), Incarnation(9));
    assert_eq!(is_ahead(stamp(ADMITTED_LEAD), now), None);
    assert_eq!(is_ahead(stamp(WallDuration::from_secs(599)), now), Some(WallDuration::from_secs(597)));
    assert_eq!(
        is_ahead(stamp(WallDuration::from_secs(599)), now.saturating_add(WallDuration::from_secs(597))),
        None
    );
}
