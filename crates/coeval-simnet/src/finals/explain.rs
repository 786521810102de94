//! Which promise is broken where a replica shows something else than the replay.
use crate::check::Check;
use crate::ledger::Map;
use coeval_value::Value;

/// What a difference between two views of an entity means; `None`: of an entity that is not there.
pub(super) fn difference(got: Option<&Map>, want: Option<&Map>, deleted: bool) -> Check {
    match (got, want) {
        (Some(_), None) if deleted => Check::DeletedStaysDeleted,
        (Some(got), Some(want)) => maps(got, want).unwrap_or(Check::ReplicasShowTheReplay),
        _ => Check::ReplicasShowTheReplay,
    }
}

fn maps(got: &Map, want: &Map) -> Option<Check> {
    if !got.keys().eq(want.keys()) {
        return Some(Check::ChildrenShowByTheRule);
    }
    got.values().zip(want.values()).filter(|(got, want)| got != want).find_map(|pair| match pair {
        (Value::Map(got), Value::Map(want)) => maps(got, want),
        (Value::Map(_), _) | (_, Value::Map(_)) => Some(Check::ScalarsAndMapsFlipAlike),
        (Value::Float(got), Value::Float(want)) if alike(*got, *want) => Some(Check::BitsSurvive),
        (Value::Floats(got), Value::Floats(want))
            if got.len() == want.len() && got.iter().zip(want.iter()).all(|(a, b)| alike(*a, *b)) =>
        {
            Some(Check::BitsSurvive)
        }
        _ => None,
    })
}

/// Equal as numbers, though not bit for bit.
fn alike(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval_value::Key;

    #[test]
    fn each_difference_breaks_the_promise_that_speaks_of_it() {
        let key = |text| Key::new(text).expect("a key");
        let map = |value: &Value| Map::from([(key("a"), value.clone())]);
        let inner = Value::map([(key("b"), Value::Int(1))]);
        let values = [
            Value::Int(1),
            Value::Int(2),
            Value::Float(0.0),
            Value::Float(-0.0),
            inner,
            Value::Map(std::sync::Arc::default()),
        ];
        let what = |a: usize, b: usize| difference(Some(&map(&values[a])), Some(&map(&values[b])), false);
        assert_eq!(what(0, 1), Check::ReplicasShowTheReplay);
        assert_eq!(what(2, 3), Check::BitsSurvive);
        assert_eq!(what(0, 4), Check::ScalarsAndMapsFlipAlike);
        assert_eq!(what(5, 4), Check::ChildrenShowByTheRule);
        assert_eq!(difference(Some(&Map::new()), None, true), Check::DeletedStaysDeleted);
    }
}
