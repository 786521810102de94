//! Numbers, texts, quantities and instants of a sim config: read exactly, or refused.
use super::error::Wrong;
use super::units::Dimension;
use coeval_time::{SimDuration, SimTime};
use toml::Spanned;
use toml::de::DeValue;

pub(crate) type Node<'a, 'i> = &'a Spanned<DeValue<'i>>;

pub(crate) fn text<'a>(node: &'a Spanned<DeValue<'_>>) -> Result<&'a str, Wrong> {
    let found = || format!("expected text in quotes, found {}", node.get_ref().type_str()).into();
    node.get_ref().as_str().ok_or_else(found)
}

/// A label: 1 to 255 bytes, without control characters, so that it can be shown and be a key.
pub(crate) fn label(node: Node<'_, '_>) -> Result<String, Wrong> {
    let label = text(node)?;
    check_label(label)?;
    Ok(label.to_owned())
}

pub(crate) fn check_label(label: &str) -> Result<(), String> {
    if label.is_empty() {
        return Err("empty: write at least one character".into());
    }
    if label.len() > coeval_value::path::MAX_KEY_BYTES {
        return Err(format!("{} bytes long: at most {}", label.len(), coeval_value::path::MAX_KEY_BYTES));
    }
    match label.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("holds the control character {c:?}: leave it out")),
        None => Ok(()),
    }
}

/// The number as its author wrote it, and as digits with their radix.
fn digits(node: Node<'_, '_>) -> Result<(String, String, u32), Wrong> {
    let found = || format!("expected an integer, found {}", node.get_ref().type_str());
    let number = node.get_ref().as_integer().ok_or_else(found)?;
    Ok((number.to_string(), number.as_str().to_owned(), number.radix()))
}

pub(crate) fn integer(node: Node<'_, '_>) -> Result<i64, Wrong> {
    let (written, digits, radix) = digits(node)?;
    i64::from_str_radix(&digits, radix).map_err(|_| match u64::from_str_radix(&digits, radix) {
        Ok(_) => {
            format!("{written} is above 9223372036854775807: use {{ type = \"uint\", value = … }}").into()
        }
        Err(_) => format!("{written} does not fit 64 bits").into(),
    })
}

pub(crate) fn unsigned(node: Node<'_, '_>) -> Result<u64, Wrong> {
    let (written, digits, radix) = digits(node)?;
    u64::from_str_radix(&digits, radix).map_err(|_| {
        format!("{written} is not an unsigned 64-bit number: it runs from 0 to 18446744073709551615").into()
    })
}

/// A number without a unit: a float (any, also `nan` and `inf`), or an integer that a float holds exactly.
pub(crate) fn plain_number(node: Node<'_, '_>) -> Result<f64, Wrong> {
    match node.get_ref() {
        DeValue::Float(number) => {
            let text = number.as_str();
            let float: f64 = text.parse().map_err(|_| format!("{text} is not a number"))?;
            // A number too large must not turn into an infinity that nobody wrote.
            let written = float.is_finite() || text.contains("inf") || text.contains("nan");
            if written { Ok(float) } else { Err(format!("{text} does not fit a 64-bit float").into()) }
        }
        DeValue::Integer(_) => {
            let whole = integer(node)?;
            let float = whole as f64;
            if float as i128 == i128::from(whole) {
                Ok(float)
            } else {
                Err(format!(
                    "{whole} is not exact as a float: write it with a decimal point to have it rounded"
                )
                .into())
            }
        }
        other => Err(format!("expected a number, found {}", other.type_str()).into()),
    }
}

/// A single-precision number: floats are rounded to it, integers must be exact.
pub(crate) fn single(node: Node<'_, '_>) -> Result<f32, Wrong> {
    let number = plain_number(node)?;
    let single = number as f32;
    if number.is_finite() && single.is_infinite() {
        return Err(format!("{number:?} does not fit a 32-bit float").into());
    }
    if node.get_ref().is_integer() && f64::from(single) != number {
        return Err(format!("{number} is not exact as a 32-bit float").into());
    }
    Ok(single)
}

/// A finite number in SI, or a text with a unit of `dimension`.
pub(crate) fn quantity(node: Node<'_, '_>, dimension: Dimension) -> Result<f64, Wrong> {
    let number = match node.get_ref().as_str() {
        Some(text) => dimension.parse(text)?,
        None => plain_number(node)?,
    };
    if number.is_finite() { Ok(number) } else { Err(format!("{number} is not a finite number").into()) }
}

pub(crate) fn instant(node: Node<'_, '_>) -> Result<SimTime, Wrong> {
    if let DeValue::Datetime(date) = node.get_ref() {
        let scale = if date.offset.is_some() { "" } else { " TAI" };
        return Err(
            format!("a date is a text with its scale (TAI, or Z for UTC): write \"{date}{scale}\"").into()
        );
    }
    text(node)?.parse::<SimTime>().map_err(|e| e.to_string().into())
}

/// Seconds or a quantity of time; whole seconds are exact, others are rounded to the nanosecond.
pub(crate) fn duration(node: Node<'_, '_>) -> Result<SimDuration, Wrong> {
    if node.get_ref().is_integer() {
        return Ok(SimDuration::from_secs(integer(node)?));
    }
    let seconds = quantity(node, Dimension::Time)?;
    SimDuration::from_secs_f64(seconds).ok_or_else(|| format!("{seconds:?} s is out of range").into())
}

pub(crate) fn each<T>(
    node: Node<'_, '_>,
    read: impl Fn(Node<'_, '_>) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    let found = || format!("expected an array, found {}", node.get_ref().type_str());
    let items = node.get_ref().as_array().ok_or_else(found)?;
    let item =
        |(i, item): (usize, &Spanned<DeValue<'_>>)| read(item).map_err(|w| w.in_item(i, item.span().start));
    items.iter().enumerate().map(item).collect()
}

pub(crate) fn vector3(node: Node<'_, '_>, dimension: Dimension) -> Result<[f64; 3], Wrong> {
    let parts = each(node, |part| quantity(part, dimension))?;
    <[f64; 3]>::try_from(parts)
        .map_err(|parts| format!("expected 3 components, found {}", parts.len()).into())
}
