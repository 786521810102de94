//! Civil dates: sim time to and from calendar dates, in TAI and in UTC, with the scale always named.
//!
//! Text is ISO 8601 / RFC 3339: `2016-12-31T23:59:60.5Z`, `2028-04-25T05:30:00 TAI`. The scale is part of the text and
//! never guessed: a date in the wrong one is 37 s off, nine kilometers of a jet's flight.
//!
//! The calendar is the proleptic Gregorian one with a year 0 (astronomical numbering), over the whole range of
//! [`SimTime`]. Day arithmetic follows H. Hinnant, *chrono-Compatible Low-Level Date Algorithms* (2013): years begin in
//! March, and the calendar repeats every 146,097 days.
use crate::leap::{self, LeapCoverage};
use crate::sim::NANOS_PER_SEC;
use crate::{SimTime, WallTime};
use std::{fmt, str::FromStr};

const SECS_PER_DAY: i64 = 86_400;
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, where the eras are counted from, to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;
/// The years that text and fields may name. Beyond the range of sim time, and far within that of `i64`.
const YEAR_LIMIT: i64 = 300_000_000_000;
const BEYOND: &str = " (beyond the leap-second table)";
const BEFORE: &str = " (before the leap-second table)";

/// The time scale of a civil date.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CivilScale {
    /// International Atomic Time: uniform, no leap seconds.
    Tai,
    /// Coordinated Universal Time: TAI less the leap seconds.
    Utc,
}

impl fmt::Display for CivilScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tai => "TAI",
            Self::Utc => "UTC",
        })
    }
}

/// A calendar date and time of day, in a stated scale.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Civil {
    /// Year, proleptic Gregorian; the year before 1 is 0.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59; 60 in a UTC leap second.
    pub second: u8,
    /// Nanosecond, 0 to 999,999,999.
    pub nanos: u32,
    /// The scale these fields are in.
    pub scale: CivilScale,
    /// Whether the leap-second table covers the date. Always `Covered` in TAI.
    pub coverage: LeapCoverage,
}

/// Why a civil date is not an instant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CivilError {
    /// The text names no scale.
    #[error("`{text}` names no time scale: append `Z` for UTC, or ` TAI`")]
    NoScale {
        /// What was read.
        text: String,
    },
    /// The text carries an offset from UTC.
    #[error("`{text}` carries a zone offset: write the time in UTC with `Z`, or in TAI with ` TAI`")]
    ZoneOffset {
        /// What was read.
        text: String,
    },
    /// The text is not a date.
    #[error("`{text}` is not a date like 2028-04-25T05:30:00.5 TAI or 2028-04-25T05:29:23.5Z: {wrong}")]
    Syntax {
        /// What was read.
        text: String,
        /// Which part is wrong.
        wrong: &'static str,
    },
    /// A field is out of its range.
    #[error("{field} {value} is out of range: {expected}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What it holds.
        value: i64,
        /// What it may hold.
        expected: &'static str,
    },
    /// Second 60 where no leap second is known.
    #[error("{date} {scale} has no second 60: no leap second is known there")]
    NoLeapSecond {
        /// The date, `year-month-day`.
        date: String,
        /// The scale named.
        scale: CivilScale,
    },
}

/// Days since 1970-01-01 of a date.
fn days_from_date(year: i64, month: u8, day: u8) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + i64::from(day) - 1;
    era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - DAYS_TO_1970
}

/// The date `days` days after 1970-01-01.
fn date_from_days(days: i64) -> (i64, u8, u8) {
    let shifted = days + DAYS_TO_1970;
    let (era, day_of_era) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month as u8, day as u8)
}

fn days_in_month(year: i64, month: u8) -> u8 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Fields of `secs` seconds since 1970 in a scale without leap seconds.
fn fields(secs: i64, nanos: u32, scale: CivilScale, coverage: LeapCoverage) -> Civil {
    let (year, month, day) = date_from_days(secs.div_euclid(SECS_PER_DAY));
    let of_day = secs.rem_euclid(SECS_PER_DAY);
    Civil {
        year,
        month,
        day,
        hour: (of_day / 3_600) as u8,
        minute: (of_day / 60 % 60) as u8,
        second: (of_day % 60) as u8,
        nanos,
        scale,
        coverage,
    }
}

/// Writes nanoseconds since 1970 as a date without a scale; the caller names it.
pub(crate) fn fmt_nanos(f: &mut fmt::Formatter<'_>, nanos: i128) -> fmt::Result {
    let secs = nanos.div_euclid(NANOS_PER_SEC) as i64;
    let of_second = nanos.rem_euclid(NANOS_PER_SEC) as u32;
    fields(secs, of_second, CivilScale::Tai, LeapCoverage::Covered).fmt_fields(f)
}

impl Civil {
    /// A date and time of day in `scale`, checked.
    ///
    /// # Errors
    /// [`CivilError::Field`] names a field out of its range; [`CivilError::NoLeapSecond`] a second 60 that was never
    /// inserted.
    pub fn new(
        (year, month, day): (i64, u8, u8),
        (hour, minute, second): (u8, u8, u8),
        nanos: u32,
        scale: CivilScale,
    ) -> Result<Self, CivilError> {
        let coverage = LeapCoverage::Covered;
        let mut civil = Self { year, month, day, hour, minute, second, nanos, scale, coverage };
        civil.check()?;
        if scale == CivilScale::Utc {
            civil.coverage = leap::tai_of_utc(civil.plain_secs()).1;
        }
        Ok(civil)
    }

    /// The instant these fields name.
    ///
    /// # Errors
    /// As [`new`](Self::new): the fields are public, so they are checked again. Instants beyond the ends of sim time
    /// (2.9e11 years away) saturate.
    pub fn to_sim(&self) -> Result<SimTime, CivilError> {
        self.check()?;
        let secs = self.plain_secs();
        let tai = match self.scale {
            CivilScale::Tai => secs,
            CivilScale::Utc => leap::tai_of_utc(secs).0,
        };
        Ok(SimTime::from_secs_nanos(tai.saturating_add(i64::from(self.second == 60)), self.nanos))
    }

    /// The text without the flag: ISO 8601 with the scale, `Z` for UTC (which makes it RFC 3339 for years 0 to 9999).
    pub fn to_iso(&self) -> String {
        struct Fields<'a>(&'a Civil);
        impl fmt::Display for Fields<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt_fields(f)
            }
        }
        let suffix = if self.scale == CivilScale::Utc { "Z" } else { " TAI" };
        format!("{}{suffix}", Fields(self))
    }

    /// Seconds since 1970 as if there were no leap seconds; second 60 counts as 59.
    fn plain_secs(&self) -> i64 {
        let of_day =
            i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second.min(59));
        let days = days_from_date(self.year, self.month, self.day);
        // The first day of sim time begins before `i64` seconds do, so the sum is formed in more and then saturates.
        let secs = i128::from(days) * i128::from(SECS_PER_DAY) + i128::from(of_day);
        secs.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    fn check(&self) -> Result<(), CivilError> {
        let field = |field, value: i64, ok: bool, expected| {
            if ok { Ok(()) } else { Err(CivilError::Field { field, value, expected }) }
        };
        let year_ok = (-YEAR_LIMIT..=YEAR_LIMIT).contains(&self.year);
        field("year", self.year, year_ok, "at most 300,000,000,000 either way")?;
        field("month", self.month.into(), (1..=12).contains(&self.month), "1 to 12")?;
        let day_ok = (1..=days_in_month(self.year, self.month)).contains(&self.day);
        field("day", self.day.into(), day_ok, "1 to the length of the month")?;
        field("hour", self.hour.into(), self.hour < 24, "0 to 23")?;
        field("minute", self.minute.into(), self.minute < 60, "0 to 59")?;
        field("second", self.second.into(), self.second <= 60, "0 to 59, or 60 in a UTC leap second")?;
        field("nanosecond", self.nanos.into(), self.nanos < 1_000_000_000, "0 to 999,999,999")?;
        let leap_ok = self.scale == CivilScale::Utc && leap::leap_follows(self.plain_secs());
        if self.second == 60 && !(leap_ok && self.hour == 23 && self.minute == 59) {
            let date = format!("{}-{:02}-{:02}", self.year, self.month, self.day);
            return Err(CivilError::NoLeapSecond { date, scale: self.scale });
        }
        Ok(())
    }

    fn fmt_fields(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // ISO 8601 asks for a sign where a year has other than four digits.
        match self.year {
            0..=9_999 => write!(f, "{:04}", self.year)?,
            _ => write!(f, "{:+05}", self.year)?,
        }
        let Self { month, day, hour, minute, second, nanos, .. } = self;
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}")
    }
}

impl fmt::Display for Civil {
    /// For example `2028-04-25T05:29:23.000000000 UTC (beyond the leap-second table)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_fields(f)?;
        write!(f, " {}", self.scale)?;
        f.write_str(match self.coverage {
            LeapCoverage::Covered => "",
            LeapCoverage::BeforeTable => BEFORE,
            LeapCoverage::BeyondTable => BEYOND,
        })
    }
}

impl SimTime {
    /// The calendar date of this instant in `scale`. In UTC, [`Civil::coverage`] says whether the leap-second table
    /// reaches that far.
    pub fn to_civil(self, scale: CivilScale) -> Civil {
        let (tai, nanos) = self.secs_nanos();
        match scale {
            CivilScale::Tai => fields(tai, nanos, scale, LeapCoverage::Covered),
            CivilScale::Utc => {
                let second = leap::utc_of_tai(tai);
                let mut civil = fields(second.utc, nanos, scale, second.coverage);
                civil.second += u8::from(second.leap);
                civil
            }
        }
    }

    /// The sim instant that has the civil UTC date which `wall` reads as, and whether the leap-second table covers it:
    /// how a session that simulates the present starts.
    pub fn from_wall_utc(wall: WallTime) -> (Self, LeapCoverage) {
        let (tai, coverage) = leap::tai_of_utc((wall.as_nanos() / 1_000_000_000) as i64);
        (Self::from_secs_nanos(tai, (wall.as_nanos() % 1_000_000_000) as u32), coverage)
    }
}

impl FromStr for SimTime {
    type Err = CivilError;

    /// Reads what [`Civil`] prints.
    fn from_str(text: &str) -> Result<Self, CivilError> {
        text.parse::<Civil>()?.to_sim()
    }
}

impl FromStr for Civil {
    type Err = CivilError;

    /// Reads ISO 8601 with a scale: `Z` or ` UTC`, or ` TAI`. The time of day may be left out (midnight), the fraction
    /// has up to nine digits, years outside 0 to 9999 carry a sign.
    fn from_str(text: &str) -> Result<Self, CivilError> {
        let whole = text.trim();
        let named = [BEYOND, BEFORE].iter().find_map(|flag| whole.strip_suffix(flag)).unwrap_or(whole);
        let scales = [("Z", CivilScale::Utc), ("UTC", CivilScale::Utc), ("TAI", CivilScale::Tai)];
        let found =
            scales.iter().find_map(|(name, scale)| Some((named.strip_suffix(name)?.trim_end(), *scale)));
        let Some((bare, scale)) = found else {
            let text = crop(text);
            let has_offset = named.split_once(['T', ' ']).is_some_and(|(_, time)| time.contains(['+', '-']));
            return Err(if has_offset {
                CivilError::ZoneOffset { text }
            } else {
                CivilError::NoScale { text }
            });
        };
        let wrong = |wrong| CivilError::Syntax { text: crop(text), wrong };
        let (date, time) = bare.split_once(['T', 't', ' ']).unwrap_or((bare, "00:00:00"));
        let date = read_date(date).ok_or_else(|| wrong("the date is year-month-day"))?;
        let (clock, nanos) =
            read_time(time).ok_or_else(|| wrong("the time is hour:minute:second.fraction"))?;
        Self::new(date, clock, nanos, scale)
    }
}

/// What an error repeats of its input: enough to recognize it, however long it is.
fn crop(text: &str) -> String {
    text.chars().take(64).collect()
}

/// A number of `width` decimal digits, no sign.
fn digits(text: &str, width: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let fits = width.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn read_date(text: &str) -> Option<(i64, u8, u8)> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = rest.split('-');
    let signed = rest.len() < text.len();
    let year = digits(parts.next()?, if signed { 4..=12 } else { 4..=4 })? * sign;
    let month = digits(parts.next()?, 2..=2)? as u8;
    let day = digits(parts.next()?, 2..=2)? as u8;
    parts.next().is_none().then_some((year, month, day))
}

type TimeOfDay = ((u8, u8, u8), u32);

fn read_time(text: &str) -> Option<TimeOfDay> {
    let (clock, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2..=2)? as u8;
    let minute = digits(parts.next()?, 2..=2)? as u8;
    let second = parts.next().map_or(Some(0), |second| digits(second, 2..=2))? as u8;
    let scale = 10_u32.pow(9_u32.checked_sub(fraction.len() as u32)?);
    let nanos = digits(fraction, 1..=9)? as u32 * scale;
    parts.next().is_none().then_some(((hour, minute, second), nanos))
}
