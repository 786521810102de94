//! What the words of a command line mean: times, lengths of time, addresses of parameters, patterns.
use coeval::{Key, Path, SimDuration, SimTime};
use std::fmt;
use std::str::FromStr;

/// Units of sim time and their nanoseconds. A year is the Julian one of 365.25 days.
const UNITS: &[(&str, i128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("y", 31_557_600_000_000_000),
];

/// Digits of a number that are read: more than any length of time in the range needs.
const MAX_DIGITS: usize = 24;

/// A signed length of sim time: `-100y`, `5 min`, `+3600 s`, `1h 30min`.
///
/// Decimal fractions are exact: `0.1 s` is 100,000,000 ns. What is finer than a nanosecond is refused.
pub(crate) fn duration(text: &str) -> Result<SimDuration, String> {
    let whole = text.trim();
    let (negative, mut rest) = match whole.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, whole.strip_prefix('+').unwrap_or(whole)),
    };
    rest = rest.trim_start();
    if rest.is_empty() {
        return Err(not_a_duration(text));
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (part, tail) = component(rest).map_err(|why| format!("{}{why}", not_a_duration(text)))?;
        nanos = nanos.checked_add(part).ok_or_else(|| format!("{text:?} is longer than sim time reaches"))?;
        rest = tail.trim_start();
    }
    let signed = if negative { -nanos } else { nanos };
    let duration = SimDuration::from_nanos(signed);
    if duration.as_nanos() == signed {
        Ok(duration)
    } else {
        Err(format!("{text:?} is longer than sim time reaches"))
    }
}

fn not_a_duration(text: &str) -> String {
    format!(
        "{text:?} is not a length of time: write a number and a unit like -100y, 5 min, +3600 s (ns, us, ms, s, min, h, d, y)"
    )
}

/// The first number and unit of `text` in nanoseconds, and what follows.
fn component(text: &str) -> Result<(i128, &str), &'static str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').ok_or("")?;
    let (number, rest) = (&text[..end], text[end..].trim_start());
    let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit).ok_or("")?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
    let decimals = fraction.chars().filter(char::is_ascii_digit).count() as u32;
    if digits.is_empty() || digits.contains('.') || digits.len() > MAX_DIGITS {
        return Err("");
    }
    let mantissa: i128 = digits.parse().map_err(|_| "")?;
    let scaled = mantissa.checked_mul(*size).ok_or("; it is too long")?;
    let divisor = 10_i128.pow(decimals);
    if scaled % divisor == 0 { Ok((scaled / divisor, rest)) } else { Err("; it is finer than a nanosecond") }
}

/// A point of sim time: a date with its scale, or a signed length from now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// An instant.
    At(SimTime),
    /// This far from the context's sim time.
    By(SimDuration),
}

impl When {
    /// The instant, seen from `now`.
    pub(crate) fn from(self, now: SimTime) -> SimTime {
        match self {
            Self::At(sim) => sim,
            Self::By(by) => now.saturating_add(by),
        }
    }
}

impl FromStr for When {
    type Err = String;

    /// A date never looks like a length: `-0044-03-15 TAI` has no unit after its first number.
    fn from_str(text: &str) -> Result<Self, String> {
        let signed = text.trim_start().starts_with(['+', '-']);
        match duration(text) {
            Ok(by) if signed => Ok(Self::By(by)),
            Ok(_) => Err(format!("{text:?} could mean either way: write +{0} or -{0}", text.trim())),
            Err(length) => text.parse::<SimTime>().map(Self::At).map_err(|date| {
                let dated = text.contains(':') || text.matches('-').count() > 1;
                if signed && !dated {
                    length
                } else {
                    format!("{date}, or a length from now like -100y or +5 min")
                }
            }),
        }
    }
}

/// A length of wall time in seconds, for time-outs: `5`, `0.5`, at most a day.
pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let bad = || format!("{text:?} is not a number of seconds from 0 to 86400");
    let number = text.trim();
    let number = number.strip_suffix('s').unwrap_or(number).trim_end();
    let seconds: f64 = number.parse().map_err(|_| bad())?;
    if (0.0..=86_400.0).contains(&seconds) {
        Ok(std::time::Duration::from_secs_f64(seconds))
    } else {
        Err(bad())
    }
}

/// A timescale: any finite number.
pub(crate) fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.trim().parse().map_err(|_| format!("{text:?} is not a number"))?;
    if scale.is_finite() {
        Ok(scale)
    } else {
        Err(format!(
            "{text} is not a timescale: it must be a finite number; zero and negative ones are allowed"
        ))
    }
}

/// An entity, or one of its parameters: `ENTITY` or `ENTITY/KEY/…`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    /// Its name or its id.
    pub(crate) entity: String,
    /// The parameter; `None` for the entity itself.
    pub(crate) path: Option<Path>,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = split(text);
        let entity = unescape(parts.next().unwrap_or_default())?;
        if entity.is_empty() {
            return Err(format!("{text:?} names no entity: write ENTITY or ENTITY/KEY/…"));
        }
        let rest: Vec<_> = parts.collect();
        if rest.is_empty() {
            return Ok(Self { entity, path: None });
        }
        let keys = rest
            .iter()
            .map(|key| unescape(key).and_then(|key| Key::new(&key).map_err(|e| format!("{text:?}: {e}"))));
        let path = Path::new(keys.collect::<Result<Vec<_>, _>>()?).map_err(|e| format!("{text:?}: {e}"))?;
        Ok(Self { entity, path: Some(path) })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        address(f, &self.entity, self.path.as_ref())
    }
}

/// Writes `ENTITY/KEY/…`, escaped so that it reads back.
pub(crate) fn address(f: &mut impl fmt::Write, entity: &str, path: Option<&Path>) -> fmt::Result {
    for c in entity.chars() {
        // A control character in a name must not steer the reader's terminal.
        if c.is_control() {
            write!(f, "{}", c.escape_unicode())?;
            continue;
        }
        if matches!(c, '/' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    path.map_or(Ok(()), |path| write!(f, "/{path}"))
}

/// Splits at slashes that are not escaped.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let here = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        here
    })
}

fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('/' | '\\')) => plain.push(c),
                Some('u') => plain.push(code_point(&mut chars).ok_or_else(|| {
                    format!("{text:?}: after \\u comes the number of a character in braces, like \\u{{a}}")
                })?),
                _ => return Err(format!("{text:?}: after a backslash comes a slash or a backslash")),
            },
            c => plain.push(c),
        }
    }
    Ok(plain)
}

/// Reads `{a}`: the number of a character, in hexadecimal digits.
fn code_point(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let (digits, rest) = chars.as_str().strip_prefix('{')?.split_once('}')?;
    *chars = rest.chars();
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
}

/// Which entities and parameters are meant: `ENTITY/KEY/…`, where `*` in the entity stands for any text, a key `*` for
/// any one key, and a key `**` for any number of keys. What lies beneath a match is meant too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    text: String,
    entity: String,
    keys: Vec<String>,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = split(text);
        let entity = unescape(parts.next().unwrap_or_default())?;
        let keys = parts.map(unescape).collect::<Result<Vec<_>, _>>()?;
        if entity.is_empty() || keys.iter().any(String::is_empty) {
            return Err(format!(
                "{text:?} has an empty part: write ENTITY/KEY/… with * for any, like */motion"
            ));
        }
        Ok(Self { text: text.to_owned(), entity, keys })
    }
}

impl Pattern {
    /// Whether the entity called `name` with the id `id` is meant.
    pub(crate) fn entity(&self, name: Option<&str>, id: &str) -> bool {
        name.is_some_and(|name| glob(&self.entity, name)) || glob(&self.entity, id)
    }

    /// Whether the parameter at `path` of a meant entity is meant.
    pub(crate) fn path(&self, path: &Path) -> bool {
        let keys: Vec<&str> = path.keys().iter().map(Key::as_str).collect();
        beneath(&self.keys, &keys)
    }

    /// Whether entities are meant, not parameters of them.
    pub(crate) fn whole_entities(&self) -> bool {
        self.keys.is_empty()
    }

    /// The pattern for a watch, which matches parameters exactly.
    pub(crate) fn for_watch(&self) -> String {
        if self.keys.is_empty() || self.text.ends_with("/**") {
            self.text.clone()
        } else {
            format!("{}/**", self.text)
        }
    }
}

/// Whether `keys` match the pattern, or lie beneath a match.
fn beneath(pattern: &[String], keys: &[&str]) -> bool {
    match (pattern.split_first(), keys.split_first()) {
        (None, _) => true,
        (Some((first, more)), _) if first == "**" => {
            beneath(more, keys) || keys.split_first().is_some_and(|(_, keys)| beneath(pattern, keys))
        }
        (Some(_), None) => false,
        (Some((first, more)), Some((key, keys))) => (first == "*" || first == key) && beneath(more, keys),
    }
}

/// Whether `text` matches `pattern`, in which `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const YEAR_NS: i128 = 31_557_600_000_000_000;

    #[test]
    fn lengths_of_time_are_exact() {
        for (text, nanos) in [
            ("-100y", -100 * YEAR_NS),
            ("5 min", 300_000_000_000),
            ("+3600 s", 3_600_000_000_000),
            ("0.1 s", 100_000_000),
            ("1h 30min", 5_400_000_000_000),
            ("1h30min", 5_400_000_000_000),
            ("- 2 d", -172_800_000_000_000),
            ("0.000000001s", 1),
            ("9000y", 9_000 * YEAR_NS),
            ("1_000 ms", 1_000_000_000),
            (".5s", 500_000_000),
        ] {
            assert_eq!(duration(text).map(SimDuration::as_nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_says_so() {
        for text in [
            "", "-", "5", "s", "5 parsec", "1.2.3 s", "0.1 ns", "--5s", "5 s s", "nan s", "1e3 s",
            "5 s -3 s", ".",
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("length of time"), "{text}: {error}");
        }
        assert!(duration("999999999999999y").unwrap_err().contains("longer than"));
    }

    #[test]
    fn dates_and_lengths_are_told_apart() {
        let at = |text: &str| text.parse::<SimTime>().map(When::At).expect("a date");
        for text in [
            "2028-04-25T05:30:00 TAI",
            "2016-12-31T23:59:60.5Z",
            "-0044-03-15T00:00:00 TAI",
            "+12345-01-01 TAI",
        ] {
            assert_eq!(text.parse(), Ok(at(text)), "{text}");
        }
        assert_eq!("-100y".parse(), Ok(When::By(SimDuration::from_nanos(-100 * YEAR_NS))));
        assert_eq!("+0 s".parse(), Ok(When::By(SimDuration::ZERO)));
        assert!("5 min".parse::<When>().unwrap_err().contains("+5 min or -5 min"));
        assert!(
            "2028-04-25T05:30:00".parse::<When>().unwrap_err().contains("TAI"),
            "the scale is never guessed"
        );
        assert!("-5 parsec".parse::<When>().unwrap_err().contains("unit"));
        assert!("tomorrow".parse::<When>().is_err());
    }

    #[test]
    fn a_length_counts_from_now() {
        let now = SimTime::from_secs_nanos(100, 0);
        assert_eq!("-40s".parse::<When>().expect("a length").from(now), SimTime::from_secs_nanos(60, 0));
    }

    #[test]
    fn a_nan_scale_is_refused() {
        for text in ["nan", "NaN", "inf", "-inf", "1e999", "fast", ""] {
            assert!(scale(text).is_err(), "{text}");
        }
        assert_eq!((scale("-1"), scale("0"), scale("1e6")), (Ok(-1.0), Ok(0.0), Ok(1e6)));
    }

    #[test]
    fn addresses_split_at_the_first_slash() {
        let address: Address = "probe/pose/position".parse().expect("an address");
        assert_eq!(address.entity, "probe");
        assert_eq!(address.path, Some(Path::parse("pose/position").expect("a path")));
        assert_eq!("probe".parse::<Address>().expect("an address").path, None);
        let odd: Address = r"a\/b/c\\d".parse().expect("an address");
        assert_eq!((odd.entity.as_str(), odd.to_string().as_str()), ("a/b", r"a\/b/c\\d"));
        for text in ["", "/k", "probe/", "probe//k", r"pro\be", r"probe/k\"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_cannot_steer_the_terminal_and_still_reads_back() {
        let odd = Address { entity: "a\nb\u{1b}[31m".to_owned(), path: None };
        assert_eq!(odd.to_string(), r"a\u{a}b\u{1b}[31m");
        assert_eq!(odd.to_string().parse(), Ok(odd));
        for text in [r"a\u", r"a\u{", r"a\u{}", r"a\u{110000}", r"a\u{zz}"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_mean_what_they_match_and_what_is_beneath() {
        let means = |pattern: &str, path: &str| {
            pattern.parse::<Pattern>().expect("a pattern").path(&Path::parse(path).expect("a path"))
        };
        assert!(
            means("*", "a/b") && means("*/a", "a/b") && means("*/*/b", "a/b/c") && means("x/**/c", "a/b/c")
        );
        assert!(!means("*/b", "a/b") && !means("*/a/b/c", "a/b") && !means("*/**/d", "a/b/c"));
        let sats: Pattern = "sat-*/motion".parse().expect("a pattern");
        assert!(
            sats.entity(Some("sat-00005"), "id")
                && !sats.entity(Some("a-sat-1"), "id")
                && sats.entity(None, "sat-9")
        );
        assert_eq!(sats.for_watch(), "sat-*/motion/**");
        assert_eq!("*".parse::<Pattern>().expect("a pattern").for_watch(), "*");
        assert!("a//b".parse::<Pattern>().is_err() && "".parse::<Pattern>().is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,30}|[-+]?[0-9._]{0,40} ?(ns|s|min|h|d|y)?[0-9 ]{0,4}") {
            let _ = (duration(&text), text.parse::<When>(), text.parse::<Address>(), text.parse::<Pattern>());
            let _ = (scale(&text), seconds(&text));
        }

        #[test]
        fn addresses_read_back(entity in "\\PC{1,12}", keys in proptest::collection::vec("\\PC{1,8}", 0..4)) {
            let path = (!keys.is_empty()).then(|| Path::new(keys.iter().map(|k| Key::new(k).unwrap())).unwrap());
            let address = Address { entity, path };
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }

        #[test]
        fn lengths_in_nanoseconds_read_back(nanos in -(1_i128 << 66)..(1_i128 << 66)) {
            prop_assert_eq!(duration(&format!("{nanos:+} ns")).map(SimDuration::as_nanos), Ok(nanos));
        }
    }
}
