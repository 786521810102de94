//! The leap-second table: what UTC is behind TAI by, in whole seconds, and how far that is known.
//!
//! The figures are those that `hifitime` ships (from the IERS list). Only the table is taken: `hifitime` compares its
//! UTC dates with TAI instants, which is off by the leap seconds themselves in the half minute around each of them, and
//! its `Epoch` ends at ±32,768 centuries; the arithmetic here is exact integers over the whole range of sim time.
use hifitime::leap_seconds::LatestLeapSeconds;
use std::sync::OnceLock;

/// Seconds from 1900-01-01, which the table counts from, to 1970-01-01.
const SECS_1900_TO_1970: i64 = 2_208_988_800;

/// UTC seconds since 1970 (leap seconds not counted) up to which the table is known to be complete: 2026-06-28, when
/// the IERS list that announces the first half of 2026 expires. Later dates use the last known offset, flagged.
const KNOWN_UNTIL_UTC: i64 = 1_782_604_800;

/// Whether the leap-second table covers a UTC date.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeapCoverage {
    /// The offset between UTC and TAI is known.
    Covered,
    /// Before 1972, when whole leap seconds began: the offset of 1972 (10 s) is used throughout.
    BeforeTable,
    /// After the last announcement: leap seconds may yet be inserted, and the last known offset is used.
    BeyondTable,
}

/// One row: from this UTC second (since 1970, leap seconds not counted) TAI is `offset` seconds ahead of UTC.
#[derive(Clone, Copy)]
struct Row {
    utc: i64,
    offset: i64,
}

fn table() -> &'static [Row] {
    static TABLE: OnceLock<Vec<Row>> = OnceLock::new();
    TABLE.get_or_init(|| {
        LatestLeapSeconds::default()
            .filter(|row| row.announced_by_iers)
            .map(|row| Row {
                utc: row.timestamp_tai_s as i64 - SECS_1900_TO_1970,
                offset: row.delta_at as i64,
            })
            .collect()
    })
}

/// What a TAI second is in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UtcSecond {
    /// UTC seconds since 1970, leap seconds not counted. In a leap second: of the second before it.
    pub(crate) utc: i64,
    /// Whether this is an inserted second, 23:59:60.
    pub(crate) leap: bool,
    /// Whether the table knows.
    pub(crate) coverage: LeapCoverage,
}

fn coverage(utc: i64) -> LeapCoverage {
    match table().first() {
        Some(first) if utc < first.utc => LeapCoverage::BeforeTable,
        _ if utc >= KNOWN_UNTIL_UTC => LeapCoverage::BeyondTable,
        _ => LeapCoverage::Covered,
    }
}

/// Splits TAI seconds since 1970 into UTC.
pub(crate) fn utc_of_tai(tai: i64) -> UtcSecond {
    let rows = table();
    // Row i holds in TAI from `utc + offset`; the inserted second is the one just before that.
    let after = rows.partition_point(|row| row.utc + row.offset <= tai);
    let offset = rows[after.saturating_sub(1)].offset;
    let leap = after > 0 && rows.get(after).is_some_and(|next| tai == next.utc + next.offset - 1);
    let utc = tai.saturating_sub(offset) - i64::from(leap);
    UtcSecond { utc, leap, coverage: coverage(utc) }
}

/// TAI seconds since 1970 of a UTC second (since 1970, leap seconds not counted) and what the table knows about it.
pub(crate) fn tai_of_utc(utc: i64) -> (i64, LeapCoverage) {
    let rows = table();
    let after = rows.partition_point(|row| row.utc <= utc);
    (utc.saturating_add(rows[after.saturating_sub(1)].offset), coverage(utc))
}

/// Whether a leap second follows the UTC second `utc`.
pub(crate) fn leap_follows(utc: i64) -> bool {
    // The first row begins the scale; it inserts nothing.
    table().iter().skip(1).any(|row| row.utc - 1 == utc)
}
