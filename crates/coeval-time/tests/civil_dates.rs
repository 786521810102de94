//! Dates: the scale is always named, leap seconds are exact, and far years are as exact as near ones.
use coeval_time::{Civil, CivilError, CivilScale, LeapCoverage, SimDuration, SimTime, WallTime};
use proptest::prelude::*;

fn parse(text: &str) -> SimTime {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn tai_date_is_not_printed_with_the_hour_of_utc() {
    let start = parse("2028-04-25T05:30:00 TAI");
    assert_eq!(start.to_string(), "2028-04-25T05:30:00.000000000 TAI");
    let utc = start.to_civil(CivilScale::Utc);
    assert_eq!(utc.coverage, LeapCoverage::BeyondTable);
    assert_eq!(utc.to_string(), "2028-04-25T05:29:23.000000000 UTC (beyond the leap-second table)");
    assert_eq!(utc.to_iso(), "2028-04-25T05:29:23.000000000Z");
    assert_eq!(parse(&utc.to_string()), start, "what is printed can be read");
}

#[test]
fn inside_of_a_leap_second_converts_both_ways() {
    let (utc, tai) = ("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:36.5 TAI");
    assert_eq!(parse(utc), parse(tai));
    let civil = parse(tai).to_civil(CivilScale::Utc);
    assert_eq!(civil.to_string(), "2016-12-31T23:59:60.500000000 UTC");
    assert_eq!(civil.coverage, LeapCoverage::Covered);
    assert_eq!(civil.to_sim(), Ok(parse(tai)));
}

#[test]
fn every_nanosecond_around_each_leap_second_is_one_utc_date() {
    for year in 1972..2017 {
        for date in [(year, 6, 30), (year, 12, 31)] {
            let day =
                Civil::new(date, (23, 59, 58), 0, CivilScale::Utc).expect("a date").to_sim().expect("a date");
            let texts: Vec<String> = (0..8)
                .map(|half| day + SimDuration::from_millis(half * 500))
                .map(|sim| {
                    let civil = sim.to_civil(CivilScale::Utc);
                    assert_eq!(civil.to_sim(), Ok(sim), "{civil}");
                    civil.to_iso()
                })
                .collect();
            assert!(texts.windows(2).all(|pair| pair[0] < pair[1]), "{texts:?}");
        }
    }
}

#[test]
fn second_60_where_there_was_none_is_refused() {
    for text in
        ["2015-12-31T23:59:60Z", "2016-12-31T22:59:60Z", "2016-12-31T23:59:60 TAI", "2030-12-31T23:59:60Z"]
    {
        assert!(matches!(text.parse::<SimTime>(), Err(CivilError::NoLeapSecond { .. })), "{text}");
    }
}

#[test]
fn date_without_a_scale_is_refused_with_what_to_add() {
    let error = "2028-04-25T05:30:00".parse::<SimTime>().expect_err("no scale");
    assert!(error.to_string().contains("append `Z` for UTC, or ` TAI`"), "{error}");
    assert!(matches!("2028-04-25T05:30:00+02:00".parse::<SimTime>(), Err(CivilError::ZoneOffset { .. })));
}

#[test]
fn text_that_is_no_date_is_refused() {
    let wrong = [
        "TAI",
        "Z",
        "2028-4-25 TAI",
        "2028-04 TAI",
        "2028-13-01 TAI",
        "2027-02-29 TAI",
        "1900-02-29Z",
        "2028-04-25T24:00:00Z",
        "2028-04-25T05:60 TAI",
        "2028-04-25T05:30:00.0000000001Z",
        "2028-04-25T05:30:00.Z",
        "28-04-25 TAI",
        "+12-01-01 TAI",
        "-\u{e9}-01-01Z",
        "+9999999999999999999-01-01 TAI",
        "+999999999999-01-01 TAI",
        "2028-04-25T-5:30:00Z",
    ];
    for text in wrong {
        assert!(text.parse::<SimTime>().is_err(), "{text}");
    }
}

#[test]
fn known_instants() {
    assert_eq!(parse("1970-01-01 TAI"), SimTime::EPOCH);
    assert_eq!(parse("1972-01-01T00:00:00Z"), parse("1972-01-01T00:00:10 TAI"));
    // J2000.0 in TAI, by its definition in TT (32.184 s ahead), is Julian date 2,451,545.
    assert_eq!(parse("2000-01-01T12:00:00 TAI").secs_nanos(), (946_728_000, 0));
    assert_eq!(parse("-4713-11-24T12:00:00 TAI").secs_nanos().0, 946_728_000 - 2_451_545 * 86_400);
    assert_eq!(parse("1965-07-01Z").to_civil(CivilScale::Utc).coverage, LeapCoverage::BeforeTable);
    assert_eq!(SimTime::MAX.to_civil(CivilScale::Tai).year, 292_277_026_596);
    assert_eq!(SimTime::MIN.to_string().parse(), Ok(SimTime::MIN));
}

#[test]
fn serialized_as_seconds_and_nanoseconds() {
    let json = |sim: SimTime| serde_json::to_string(&sim).expect("plain data");
    assert_eq!(json(SimTime::from_nanos(-500_000_000)), "[-1,500000000]");
    assert_eq!(
        serde_json::from_str::<SimTime>("[-1,500000000]").expect("valid"),
        SimTime::from_nanos(-500_000_000)
    );
    assert!(serde_json::from_str::<SimTime>("[0,1000000000]").is_err(), "one spelling of each instant");
    let length = SimDuration::from_secs_nanos(-1, 500_000_000);
    assert_eq!(
        (serde_json::to_string(&length).expect("plain data"), length.to_string()),
        ("[-1,500000000]".into(), "-0.500000000 s".into())
    );
}

#[test]
fn arithmetic_saturates_or_says_so() {
    assert_eq!(SimTime::MAX + SimDuration::from_nanos(1), SimTime::MAX);
    assert_eq!(SimTime::MIN - SimDuration::MAX, SimTime::MIN);
    assert_eq!(SimTime::MAX.checked_add(SimDuration::from_nanos(1)), None);
    assert_eq!(
        (SimTime::MAX.checked_since(SimTime::MIN), SimTime::MAX - SimTime::MIN),
        (None, SimDuration::MAX)
    );
    assert_eq!(-SimDuration::MIN, SimDuration::MAX);
}

#[test]
fn wall_time_is_a_civil_time_of_its_own_scale() {
    let wall = WallTime::from_nanos(1_483_228_799_500_000_000);
    assert_eq!(wall.to_string(), "2016-12-31T23:59:59.500000000 session wall");
    assert_eq!(WallTime::from_chrono(wall.to_chrono()), Some(wall));
    assert_eq!(WallTime::from_chrono(WallTime::MAX.to_chrono()), Some(WallTime::MAX));
    let (sim, coverage) = SimTime::from_wall_utc(wall);
    assert_eq!((sim, coverage), (parse("2016-12-31T23:59:59.5Z"), LeapCoverage::Covered));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Over ±300,000 years, to the nanosecond, in both scales: what is printed is what was meant.
    #[test]
    fn what_is_printed_is_read_back(secs in -9_500_000_000_000..9_500_000_000_000_i64, nanos in 0..1_000_000_000_u32) {
        let sim = SimTime::from_secs_nanos(secs, nanos);
        for scale in [CivilScale::Tai, CivilScale::Utc] {
            let civil = sim.to_civil(scale);
            prop_assert_eq!(civil.to_string().parse::<SimTime>(), Ok(sim));
            prop_assert_eq!(civil.to_iso().parse::<SimTime>(), Ok(sim));
        }
    }

    /// Against another calendar: that of chrono, as far as it reaches.
    #[test]
    fn calendar_is_that_of_chrono(secs in -8_000_000_000_000..8_000_000_000_000_i64) {
        use chrono::{Datelike, Timelike};
        let theirs = chrono::DateTime::from_timestamp(secs, 0).expect("in chrono's range");
        let ours = SimTime::from_secs_nanos(secs, 0).to_civil(CivilScale::Tai);
        let date = (i64::from(theirs.year()), theirs.month() as u8, theirs.day() as u8);
        prop_assert_eq!((ours.year, ours.month, ours.day), date);
        prop_assert_eq!((ours.hour, ours.minute, ours.second), (theirs.hour() as u8, theirs.minute() as u8, theirs.second() as u8));
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_an_instant_or_an_error(text in "[-+0-9TZ:. ]{0,30}(Z| TAI| UTC|)|.{0,20}Z") {
        let _: Result<SimTime, CivilError> = text.parse();
    }
}
