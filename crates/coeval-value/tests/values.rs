//! What must hold of every value: equality by bits, round trips through words, serde and text, limits.
mod strategies;

use coeval_value::{
    EntityId, Key, Leaf, LimitError, Limits, MAX_INLINE_WORDS, Matrix, Motion, Parameter, Path, Quat,
    TypeMismatch, Value, decode_words, encode_words, kind,
};
use proptest::prelude::*;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use strategies::*;

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The words of a typed read agree with the read through the value, error or not.
fn words_agree<T: Parameter + Into<Value>>(value: &Value, kind: u8, words: &[u64]) {
    let direct = T::read_words(kind, words).expect("words of a value").map(Into::into);
    let through: Result<Value, TypeMismatch> = T::from_value(value).map(Into::into);
    assert_eq!(direct, through, "{} from {value}", T::TYPE_NAME);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn words_bring_back_every_bit(value in any_value()) {
        let mut words = [0; MAX_INLINE_WORDS];
        match encode_words(&value, &mut words) {
            Some((kind, count)) => {
                prop_assert_eq!(kind, value.kind());
                prop_assert_eq!(decode_words(kind, &words[..count]), Some(value.clone()));
                if count > 0 {
                    prop_assert_eq!(decode_words(kind, &words[..count - 1]), None);
                }
                let again = Value::from_value(&value).unwrap();
                let mut rewritten = [0; MAX_INLINE_WORDS];
                prop_assert_eq!(again.write_words(&mut rewritten), Some((kind, count)));
                prop_assert_eq!(&words[..count], &rewritten[..count]);
            }
            None => prop_assert!((kind::TEXT..=kind::BYTES).contains(&value.kind())
                || (kind::MATRIX..=kind::MAP).contains(&value.kind())),
        }
    }

    #[test]
    fn typed_words_read_as_the_value_reads(value in any_inline()) {
        let mut words = [0; MAX_INLINE_WORDS];
        let (kind, count) = encode_words(&value, &mut words).unwrap();
        let words = &words[..count];
        words_agree::<bool>(&value, kind, words);
        words_agree::<i64>(&value, kind, words);
        words_agree::<u64>(&value, kind, words);
        words_agree::<f64>(&value, kind, words);
        words_agree::<f32>(&value, kind, words);
        words_agree::<u8>(&value, kind, words);
        words_agree::<i32>(&value, kind, words);
        words_agree::<[f64; 2]>(&value, kind, words);
        words_agree::<[f64; 3]>(&value, kind, words);
        words_agree::<[f64; 4]>(&value, kind, words);
        words_agree::<Quat>(&value, kind, words);
        words_agree::<Motion>(&value, kind, words);
        words_agree::<EntityId>(&value, kind, words);
        words_agree::<mint::Vector3<f64>>(&value, kind, words);
        words_agree::<String>(&value, kind, words);
        words_agree::<()>(&value, kind, words);
    }

    #[test]
    fn arbitrary_words_never_panic(kind in 0u8..30, words in prop::collection::vec(any::<u64>(), 0..25)) {
        if let Some(value) = decode_words(kind, &words) {
            let mut again = [0; MAX_INLINE_WORDS];
            let (_, count) = encode_words(&value, &mut again).unwrap();
            prop_assert_eq!(&again[..count], &words[..count]);
        }
    }

    #[test]
    fn message_pack_brings_back_every_bit(leaf in any_leaf()) {
        let bytes = rmp_serde::to_vec(&leaf).unwrap();
        prop_assert_eq!(rmp_serde::from_slice::<Leaf>(&bytes).unwrap(), leaf.clone());
        let named = rmp_serde::to_vec_named(&leaf.value).unwrap();
        prop_assert_eq!(rmp_serde::from_slice::<Value>(&named).unwrap(), leaf.value);
    }

    #[test]
    fn arbitrary_message_pack_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = rmp_serde::from_slice::<Value>(&bytes);
        let _ = rmp_serde::from_slice::<Leaf>(&bytes);
        let _ = rmp_serde::from_slice::<Path>(&bytes);
    }

    #[test]
    fn cut_message_pack_is_an_error(value in any_value(), cut in any::<prop::sample::Index>()) {
        let bytes = rmp_serde::to_vec(&value).unwrap();
        prop_assert!(rmp_serde::from_slice::<Value>(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn equal_values_hash_alike_and_a_clone_is_equal(a in any_value(), b in any_value()) {
        prop_assert_eq!(&a, &a.clone());
        prop_assert_eq!(hash(&a), hash(&a.clone()));
        if a == b {
            prop_assert_eq!(hash(&a), hash(&b));
        }
        prop_assert!(a.deep_size() >= size_of::<Value>());
        prop_assert_eq!(a.check(&Limits::MAX), Ok(()));
        prop_assert!(!a.to_string().is_empty());
    }

    #[test]
    fn paths_print_and_parse_back(path in any_path()) {
        prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path.clone()));
        let bytes = rmp_serde::to_vec(&path).unwrap();
        prop_assert_eq!(rmp_serde::from_slice::<Path>(&bytes).unwrap(), path.clone());
        prop_assert_eq!(serde_json::from_str::<Path>(&serde_json::to_string(&path).unwrap()).unwrap(), path);
    }

    #[test]
    fn a_path_sorts_directly_before_its_descendants(mut paths in prop::collection::vec(any_path(), 0..20)) {
        let parents: Vec<Path> = paths.iter().flat_map(|p| p.ancestors().collect::<Vec<_>>()).collect();
        paths.extend(parents);
        paths.sort();
        for (i, ancestor) in paths.iter().enumerate() {
            let inside: Vec<bool> = paths[i..].iter().map(|p| ancestor.contains(p)).collect();
            prop_assert!(inside.is_sorted_by(|a, b| a >= b), "{ancestor} is not followed by all it contains");
        }
    }
}

#[test]
fn nan_payloads_and_negative_zero_survive_and_differ() {
    let quiet = f64::from_bits(0x7ff8_0000_0000_0001);
    let other = f64::from_bits(0x7ff8_0000_0000_0002);
    assert_ne!(Value::Float(quiet), Value::Float(other));
    assert_eq!(Value::Float(quiet), Value::Float(quiet));
    assert_ne!(Value::Float(0.0), Value::Float(-0.0));
    assert_ne!(Value::from(Motion::at([0.0; 3])), Value::from(Motion::at([0.0, -0.0, 0.0])));
    assert_ne!(Value::from(vec![0.0f32]), Value::from(vec![-0.0f32]));
    assert_ne!(Value::Int(1), Value::UInt(1));
    assert_ne!(Value::Vec2([0.0; 2]), Value::Ramp(coeval_value::Ramp::default()));
}

#[test]
fn values_print_for_people() {
    let show = |v: Value| v.to_string();
    assert_eq!(show(12.5.into()), "12.5");
    assert_eq!(show(1.0.into()), "1.0");
    assert_eq!(show(f64::NAN.into()), "nan");
    assert_eq!(show("a \"b\"\n".into()), r#""a \"b\"\n""#);
    assert_eq!(show([1.0, 2.0, 3.0].into()), "[1.0, 2.0, 3.0]");
    assert_eq!(show([[1.0, 2.0], [3.0, 4.0]].into()), "[[1.0, 2.0], [3.0, 4.0]]");
    assert_eq!(show(Value::map([(Key::new("a b").unwrap(), 1u8)])), r#"{ "a b" = 1 }"#);
    let motion = Motion::at([0.0; 3]).velocity([10.0, 0.0, 0.0]);
    assert_eq!(show(motion.into()), "position [0.0, 0.0, 0.0] m, velocity [10.0, 0.0, 0.0] m/s, model Fpw");
}

#[test]
fn json_names_the_type() {
    let value = Value::list([Value::from(12.5), Value::from("x"), Value::from(Motion::at([1.0; 3]))]);
    let text = serde_json::to_string(&value).unwrap();
    assert!(text.starts_with(r#"{"list":[{"float":12.5},{"text":"x"},{"motion":{"#), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    assert!(serde_json::from_str::<Value>(r#"{"flaot":12.5}"#).unwrap_err().to_string().contains("flaot"));
    assert!(serde_json::from_str::<Value>(r#"{"int":1,"uint":1}"#).is_err());
}

#[test]
fn what_nests_too_deep_is_refused_by_decoder_and_limits() {
    let nest = |depth: usize| (1..depth).fold(Value::Nil, |v, _| Value::list([v]));
    let admitted = rmp_serde::to_vec(&nest(16)).unwrap();
    assert_eq!(rmp_serde::from_slice::<Value>(&admitted).unwrap(), nest(16));
    assert_eq!(nest(16).check(&Limits::default()), Ok(()));
    let refused = rmp_serde::to_vec(&nest(17)).unwrap();
    assert!(rmp_serde::from_slice::<Value>(&refused).is_err());
    assert_eq!(nest(17).check(&Limits::MAX), Err(LimitError::Depth { limit: 16 }));
}

#[test]
fn limits_name_what_is_too_large() {
    let limits = Limits { depth: 3, text_bytes: 4, bytes: 4, elements: 2, total: 1_000 };
    let what = |v: Value| match v.check(&limits) {
        Err(LimitError::Size { what, found, .. }) => Some((what, found)),
        other => panic!("{other:?}"),
    };
    assert_eq!(what("12345".into()), Some(("bytes of text", 5)));
    assert_eq!(what(vec![0u8; 5].into()), Some(("bytes", 5)));
    assert_eq!(what(Value::list([vec![1i64, 2, 3]])), Some(("array elements", 3)));
    assert_eq!(what(Value::list([1u8, 2, 3])), Some(("list elements", 3)));
    assert_eq!(what(vec![0u8; 2_000].into()).map(|w| w.0), Some("total bytes"));
    let wrong = Matrix { rows: 2, columns: 2, elements: vec![0.0] };
    assert_eq!(Value::from(wrong).check(&limits), Err(LimitError::Shape));
}

#[test]
fn a_matrix_of_the_wrong_shape_is_refused() {
    assert!(Matrix::new(2, 3, vec![0.0; 6]).is_ok());
    assert!(Matrix::new(2, 3, vec![0.0; 5]).is_err());
    assert!(serde_json::from_str::<Matrix>(r#"{"rows":1,"columns":2,"elements":[1.0]}"#).is_err());
    let m = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let value = Value::from(m);
    assert_eq!(<[[f64; 3]; 2]>::from_value(&value), Ok(m));
    assert!(<[[f64; 2]; 3]>::from_value(&value).is_err());
    let Value::Matrix(matrix) = &value else { panic!("{value}") };
    assert_eq!((matrix.get(1, 0), matrix.get(0, 3)), (Some(4.0), None));
}

#[test]
fn a_map_is_no_leaf() {
    let leaf = Leaf { stamp: Default::default(), meta: Default::default(), value: Value::map::<Value>([]) };
    let bytes = rmp_serde::to_vec(&leaf).unwrap();
    assert!(rmp_serde::from_slice::<Leaf>(&bytes).unwrap_err().to_string().contains("map"));
}

#[test]
fn a_claimed_length_allocates_nothing() {
    // An array of 2^32 - 1 floats, in five bytes.
    for kind in [kind::FLOATS, kind::LIST, kind::BYTES] {
        assert!(rmp_serde::from_slice::<Value>(&[0x92, kind, 0xdd, 0xff, 0xff, 0xff, 0xff]).is_err());
    }
}

#[test]
fn kinds_are_numbered_and_named_one_to_one() {
    assert_eq!(kind::ALL.len(), 25);
    assert!(kind::ALL.iter().all(|k| kind::name(*k).and_then(kind::by_name) == Some(*k)));
}

#[test]
fn bounds_of_keys_and_paths() {
    assert!(Key::new(&"k".repeat(255)).is_ok());
    assert!(Key::new(&"k".repeat(256)).is_err());
    assert!(["", "/", "a//b", "a/", "/a", "a\\b"].iter().all(|text| text.parse::<Path>().is_err()));
    assert!(["k"; 16].join("/").parse::<Path>().is_ok());
    assert!(["k"; 17].join("/").parse::<Path>().is_err());
    let many = rmp_serde::to_vec(&vec!["k"; 17]).unwrap();
    assert!(rmp_serde::from_slice::<Path>(&many).is_err());
}
