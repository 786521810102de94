//! Every type of value, written in TOML, reads back as itself.
use crate::HEAD;
use coeval::{
    CivilScale, EntityId, Key, Matrix, Motion, MotionModel, Quat, Ramp, SimDuration, SimTime, Value,
};
use coeval_systems::SimConfig;
use coeval_systems::config::{MODELS, TYPES, value_from_toml};
use std::collections::BTreeSet;

fn earth() -> EntityId {
    EntityId::v7(5, [1; 10])
}

fn read(text: &str) -> Result<Value, String> {
    value_from_toml(text, &|name| {
        if name == "earth" { Ok(earth()) } else { Err(format!("no entity {name:?}")) }
    })
}

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

fn motion(text: &str) -> Motion {
    match read(&format!("{{ type = \"motion\", {text} }}")) {
        Ok(Value::Motion(motion)) => *motion,
        other => panic!("{text}: {other:?}"),
    }
}

/// TAI was 37 s ahead of UTC when the table of leap seconds ended: a start in TAI, shown in UTC, is as much earlier, and
/// says that the table does not reach that far.
#[test]
fn a_start_in_tai_is_no_start_in_utc() {
    let start = |text: &str| {
        let source = HEAD.replace("2028-04-25T05:30:00 TAI", text);
        SimConfig::parse("good.toml", &source).expect("a good config").start
    };
    let tai = start("2028-04-25T05:30:00 TAI");
    let shown = tai.to_civil(CivilScale::Utc).to_string();
    assert_eq!(shown, "2028-04-25T05:29:23.000000000 UTC (beyond the leap-second table)");
    let utc = start("2028-04-25T05:30:00Z");
    assert_eq!(utc.since(tai), SimDuration::from_secs(37));
    assert_eq!(start("2016-12-31T23:59:60.5Z"), start("2017-01-01T00:00:36.5 TAI"));
}

#[test]
fn every_type_reads_back() {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let map = Value::map([(key("type"), Value::from("probe")), (key("a b"), Value::Int(-4))]);
    let cases = [
        ("{ type = \"nil\" }".to_owned(), Value::Nil),
        ("true".into(), Value::Bool(true)),
        ("-9223372036854775808".into(), Value::Int(i64::MIN)),
        ("9_223_372_036_854_775_807".into(), Value::Int(i64::MAX)),
        ("0x7FFF_FFFF_FFFF_FFFF".into(), Value::Int(i64::MAX)),
        ("{ type = \"uint\", value = 18446744073709551615 }".into(), Value::UInt(u64::MAX)),
        ("{ type = \"uint\", value = 0xFFFFFFFFFFFFFFFF }".into(), Value::UInt(u64::MAX)),
        ("-0.0".into(), Value::Float(-0.0)),
        ("inf".into(), Value::Float(f64::INFINITY)),
        ("-inf".into(), Value::Float(f64::NEG_INFINITY)),
        ("5e-324".into(), Value::Float(f64::from_bits(1))),
        ("{ type = \"float32\", value = 0.1 }".into(), Value::Float32(0.1)),
        ("{ type = \"float32\", value = -inf }".into(), Value::Float32(f32::NEG_INFINITY)),
        ("\"a\\nb ü\"".into(), Value::from("a\nb ü")),
        ("{ type = \"bytes\", base64 = \"AP8=\" }".into(), Value::Bytes([0, 255].into())),
        (format!("{{ type = \"uuid\", value = \"{id}\" }}"), Value::Uuid(id.parse().expect("a UUID"))),
        ("{ type = \"ref\", entity = \"earth\" }".into(), Value::Entity(earth())),
        (
            "{ type = \"time\", value = \"1970-01-01T00:00:01.000000002 TAI\" }".into(),
            Value::Time(SimTime::from_secs_nanos(1, 2)),
        ),
        (
            "{ type = \"time\", value = \"2016-12-31T23:59:60.5Z\" }".into(),
            Value::Time(SimTime::from_secs_nanos(1_483_228_836, 500_000_000)),
        ),
        ("{ type = \"duration\", value = -2.5 }".into(), Value::Duration(SimDuration::from_millis(-2_500))),
        (
            "{ type = \"duration\", value = \"90 min\" }".into(),
            Value::Duration(SimDuration::from_secs(5_400)),
        ),
        (
            "{ type = \"duration\", value = 9007199254740993 }".into(),
            Value::Duration(SimDuration::from_secs(9_007_199_254_740_993)),
        ),
        ("[1.0, -2.0]".into(), Value::Vec2([1.0, -2.0])),
        ("[1.0, 2.0, inf]".into(), Value::Vec3([1.0, 2.0, f64::INFINITY])),
        ("[1.0, 2.0, 3.0, 4.0]".into(), Value::Vec4([1.0, 2.0, 3.0, 4.0])),
        (
            "{ type = \"quat\", x = 0.6, y = 0, z = 0, w = 0.8 }".into(),
            Value::Quat(Quat { x: 0.6, y: 0.0, z: 0.0, w: 0.8 }),
        ),
        ("{ type = \"ramp\", value = 1.0, rate = -2 }".into(), Value::Ramp(Ramp { value: 1.0, rate: -2.0 })),
        (
            "{ type = \"matrix\", rows = [[1, 2, 3], [4, 5, 6.5]] }".into(),
            Value::Matrix(
                Matrix { rows: 2, columns: 3, elements: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.5] }.into(),
            ),
        ),
        ("{ type = \"ints\", values = [1, -2] }".into(), Value::Ints([1, -2].into())),
        (
            "{ type = \"uints\", values = [1, 18446744073709551615] }".into(),
            Value::UInts([1, u64::MAX].into()),
        ),
        ("{ type = \"floats\", values = [1, 2.5] }".into(), Value::Floats([1.0, 2.5].into())),
        ("{ type = \"floats32\", values = [] }".into(), Value::Floats32([].into())),
        ("{ type = \"list\", values = [1.0, 2.0] }".into(), Value::list([1.0, 2.0])),
        ("[1, 2.0, 3.0]".into(), Value::List([Value::Int(1), Value::Float(2.0), Value::Float(3.0)].into())),
        ("[1, 2]".into(), Value::list([1_i64, 2])),
        ("[1.0]".into(), Value::list([1.0])),
        ("[[1.0, 2.0], \"x\"]".into(), Value::List([Value::Vec2([1.0, 2.0]), Value::from("x")].into())),
        ("{ type = \"map\", value = { type = \"probe\", \"a b\" = -4 } }".into(), map),
        ("{ mode = { x = 1 } }".into(), Value::map([(key("mode"), Value::map([(key("x"), 1_i64)]))])),
        (
            "{ type = \"motion\", position = [1, 2, 3] }".into(),
            Value::Motion(Box::new(Motion::at([1.0, 2.0, 3.0]))),
        ),
    ];
    let mut kinds = BTreeSet::new();
    for (text, value) in cases {
        assert_eq!(read(&text), Ok(value.clone()), "{text}");
        kinds.insert(value.type_name());
    }
    assert_eq!(kinds.len(), 25, "every type of value is tried: {kinds:?}");
    assert!(matches!(read("nan"), Ok(Value::Float(v)) if v.is_nan()));
    assert!(matches!(read("-nan"), Ok(Value::Float(v)) if v.is_nan() && v.is_sign_negative()));
}

#[test]
fn the_model_of_a_motion_is_that_of_the_builders() {
    let v = [1.0, 2.0, 3.0];
    let at = Motion::at(v);
    let (p, x) = ("position = [1, 2, 3]", "[1, 2, 3]");
    let cases = [
        (p.to_owned(), at),
        (format!("{p}, velocity = {x}"), at.velocity(v)),
        (format!("{p}, acceleration = {x}"), at.acceleration(v)),
        (format!("{p}, velocity = {x}, acceleration = {x}"), at.velocity(v).acceleration(v)),
        (format!("{p}, angular_velocity = {x}"), at.angular_velocity(v)),
        (format!("{p}, angular_acceleration = {x}"), at.angular_acceleration(v)),
        (format!("{p}, angular_velocity = {x}, acceleration = {x}"), at.angular_velocity(v).acceleration(v)),
        (
            format!("{p}, velocity = {x}, mu = 5, frame = \"earth\""),
            Motion::orbit(v, v, 5.0).relative_to(earth()),
        ),
        (format!("{p}, velocity = {x}, model = \"fpb\""), at.velocity(v).body_axes()),
        (format!("{p}, velocity = {x}, mu = 5, model = \"fpw\""), Motion { mu: Some(5.0), ..at.velocity(v) }),
        (format!("{p}, orientation = {{ x = 0, y = 0, z = 0, w = 1 }}"), at.orientation(Quat::IDENTITY)),
        (format!("{p}, velocity = {x}, model = \"static\""), at.velocity(v).model(MotionModel::Static)),
    ];
    for (text, expected) in cases {
        assert_eq!(motion(&text), expected, "{text}");
    }
    for (name, model) in MODELS.iter().filter(|(_, model)| *model != MotionModel::TwoBody) {
        assert_eq!(motion(&format!("{p}, model = \"{name}\"")).model, *model);
    }
    let sloppy =
        motion("orientation = { x = 0, y = 0.7071, z = 0, w = 0.7071 }").orientation.expect("it was given");
    assert!((sloppy.y - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-15 && sloppy.y == sloppy.w, "{sloppy:?}");
}

#[test]
fn faults_of_single_values_are_one_line() {
    let long = format!("{}\n", "x".repeat(10_000));
    for text in ["", "x", "[1", "{ a = 1", "1 2", "\n", "{ type = \"ref\", entity = \"a\\nb\" }", &long] {
        let error = read(text).expect_err(text);
        assert!(!error.is_empty() && error.len() < 400 && !error.chars().any(char::is_control), "{error:?}");
    }
    assert_eq!(
        read("{ type = \"ints\", values = [1, 2.5] }"),
        Err("values[1]: expected an integer, found float".into())
    );
}

#[test]
fn every_type_is_documented() {
    let page = include_str!("../../src/config/mod.rs");
    for (name, ..) in TYPES {
        assert!(page.contains(&format!("`{name}`")), "{name} is missing in the format's documentation");
    }
}
