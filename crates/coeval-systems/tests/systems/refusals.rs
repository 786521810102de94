//! Every bad config is refused with one line that names the file, the line, the full key, and what to do.
use crate::HEAD;
use coeval_systems::SimConfig;

/// The line that `source` is refused with.
fn refused(source: &str) -> String {
    match SimConfig::parse("bad.toml", source) {
        Ok(config) => format!("accepted: {config:?}"),
        Err(error) => error.to_string(),
    }
}

/// Each body, after a good head of five lines, is refused with the line beside it.
fn refuse_all(cases: &[(&str, &str)]) {
    refuse_sources(cases.iter().map(|(body, expected)| (format!("{HEAD}{body}"), *expected)).collect());
}

fn refuse_sources(cases: Vec<(String, &str)>) {
    let mut wrong = Vec::new();
    for (source, expected) in cases {
        let found = refused(&source);
        assert!(!found.chars().any(char::is_control), "more than one line: {found:?}");
        if found != expected {
            wrong.push(format!("{source}\n  {found}\nexpected\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn wrong_keys() {
    refuse_all(&[
        ("[entitys.a]", "bad.toml:6: entitys: no such key here; expected config, genesis, entities, systems"),
        (
            "[entities.a]\ntag = [\"x\"]",
            "bad.toml:7: entities.a.tag: no such key here; expected tags, parameters",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"ramp\", value = 1.0, speed = 2.0 }",
            "bad.toml:7: entities.a.parameters.m.speed: no such key here; expected value, rate",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 1\nhertz = 2",
            "bad.toml:9: systems.s.hertz: no such key here; expected kind, tags, rate, settings",
        ),
        (
            "[entities.a.parameters]\nname = \"b\"",
            "bad.toml:7: entities.a.parameters.name: is set by coeval from the entity's own name and tags: choose another key",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"motion\", orientation = { x = 0, y = 0, z = 0, w = 1, v = 0 } }",
            "bad.toml:7: entities.a.parameters.m.orientation.v: no such key here; expected x, y, z, w",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"nil\", value = 0 }",
            "bad.toml:7: entities.a.parameters.m.value: no such key here; expected no key",
        ),
    ]);
}

#[test]
fn wrong_types() {
    refuse_all(&[
        ("[entities]\na = 5", "bad.toml:7: entities.a: expected a table, found integer"),
        ("[[entities]]\nname = \"a\"", "bad.toml:6: entities: expected a table, found array"),
        ("[entities.a]\ntags = \"x\"", "bad.toml:7: entities.a.tags: expected an array, found string"),
        (
            "[entities.a]\ntags = [\n  \"x\",\n  7,\n]",
            "bad.toml:9: entities.a.tags[1]: expected text in quotes, found integer",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"mass\", value = 1 }",
            "bad.toml:7: entities.a.parameters.m.type: \"mass\" is not a type; the types are nil, uint, float32, uuid, ref, time, duration, quat, ramp, matrix, bytes, ints, uints, floats, floats32, list, map, motion",
        ),
        (
            "[entities.a.parameters]\nm = { type = 5 }",
            "bad.toml:7: entities.a.parameters.m.type: must be the name of a type, as text (a map with a key `type` is { type = \"map\", value = {…} })",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"uint\", value = -1 }",
            "bad.toml:7: entities.a.parameters.m.value: -1 is not an unsigned 64-bit number: it runs from 0 to 18446744073709551615",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"uint\", value = 1.0 }",
            "bad.toml:7: entities.a.parameters.m.value: expected an integer, found float",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"uint\" }",
            "bad.toml:7: entities.a.parameters.m.value: missing: this type needs it",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"floats\", values = [1.0,\n 2.0,\n \"x\"] }",
            "bad.toml:9: entities.a.parameters.m.values[2]: expected a number, found string",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"matrix\", rows = [[1.0, 2.0], [3.0]] }",
            "bad.toml:7: entities.a.parameters.m.rows: a matrix needs rows of one length",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"bytes\", base64 = \"?\" }",
            "bad.toml:7: entities.a.parameters.m.base64: not base64: invalid length at 0",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"uuid\", value = \"x\" }",
            "bad.toml:7: entities.a.parameters.m.value: not a UUID (invalid character: found `x` at 0): write xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"motion\", model = \"warp\" }",
            "bad.toml:7: entities.a.parameters.m.model: \"warp\" is not a motion model; the models are static, fpw, rpw, rvw, fvw, fpb, rpb, rvb, fvb, two-body",
        ),
        (
            "[entities.a.parameters]\nm = { type = \"motion\", position = [1.0, 2.0] }",
            "bad.toml:7: entities.a.parameters.m.position: expected 3 components, found 2",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 1\nsettings = 5",
            "bad.toml:9: systems.s.settings: expected a table, found integer",
        ),
        (
            "[systems.s]\nkind = 3\nrate = 1",
            "bad.toml:7: systems.s.kind: expected text in quotes, found integer",
        ),
        ("[systems.s]\nrate = 1", "bad.toml:6: systems.s.kind: missing: every system has it"),
        ("[systems.s]\nkind = \"k\"", "bad.toml:6: systems.s.rate: missing: every system has it"),
    ]);
}

#[test]
fn wrong_units_and_numbers() {
    refuse_all(&[
        (
            "[entities.a.parameters.m]\ntype = \"motion\"\nposition = [\"1 km\", \"2 kg\", \"3 m\"]",
            "bad.toml:8: entities.a.parameters.m.position[1]: \"kg\" is not a unit of this quantity (m, km, cm, mm, ft, nmi)",
        ),
        (
            "[entities.a.parameters.m]\ntype = \"motion\"\nvelocity = [0, 0, \"3 km\"]",
            "bad.toml:8: entities.a.parameters.m.velocity[2]: \"km\" is not a unit of this quantity (m/s, km/s, km/h, kn)",
        ),
        (
            "[entities.a.parameters.m]\ntype = \"motion\"\nvelocity = [0, 0, \"fast\"]",
            "bad.toml:8: entities.a.parameters.m.velocity[2]: \"fast\" is not a quantity: write a number, a space and a unit (m/s, km/s, km/h, kn)",
        ),
        (
            "[entities.a.parameters.m]\ntype = \"motion\"\nvelocity = [0, nan, 0]",
            "bad.toml:8: entities.a.parameters.m.velocity[1]: NaN is not a finite number",
        ),
        (
            "[entities.a.parameters.m]\ntype = \"motion\"\nmu = \"1e300 km3/s2\"",
            "bad.toml:8: entities.a.parameters.m.mu: inf is not a finite number",
        ),
        (
            "[entities.a.parameters]\nx = 9223372036854775808",
            "bad.toml:7: entities.a.parameters.x: 9223372036854775808 is above 9223372036854775807: use { type = \"uint\", value = … }",
        ),
        (
            "[entities.a.parameters]\nx = 0xFFFFFFFFFFFFFFFFF",
            "bad.toml:7: entities.a.parameters.x: 0xFFFFFFFFFFFFFFFFF does not fit 64 bits",
        ),
        (
            "[entities.a.parameters]\nx = 1e999",
            "bad.toml:7: entities.a.parameters.x: 1e999 does not fit a 64-bit float",
        ),
        (
            "[entities.a.parameters]\nx = [0.0, 1e999]",
            "bad.toml:7: entities.a.parameters.x[1]: 1e999 does not fit a 64-bit float",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"float32\", value = 1e39 }",
            "bad.toml:7: entities.a.parameters.x.value: 1e39 does not fit a 32-bit float",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"float32\", value = 16777217 }",
            "bad.toml:7: entities.a.parameters.x.value: 16777217 is not exact as a 32-bit float",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"ramp\", value = 9007199254740993, rate = 0 }",
            "bad.toml:7: entities.a.parameters.x.value: 9007199254740993 is not exact as a float: write it with a decimal point to have it rounded",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"quat\", x = 0, y = 0, z = 0, w = 2 }",
            "bad.toml:7: entities.a.parameters.x: a rotation has norm 1, this one 2",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"quat\", x = 0, y = nan, z = 0, w = 1 }",
            "bad.toml:7: entities.a.parameters.x: a rotation has norm 1, this one NaN",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"duration\", value = \"5 m\" }",
            "bad.toml:7: entities.a.parameters.x.value: \"m\" is not a unit of this quantity (s, ms, us, ns, min, h, d)",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"duration\", value = inf }",
            "bad.toml:7: entities.a.parameters.x.value: inf is not a finite number",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 0",
            "bad.toml:8: systems.s.rate: 0.0 Hz: a system's rate is above 0, from 1e-8 to 1e6 Hz",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = -1",
            "bad.toml:8: systems.s.rate: -1.0 Hz: a system's rate is above 0, from 1e-8 to 1e6 Hz",
        ),
        ("[systems.s]\nkind = \"k\"\nrate = nan", "bad.toml:8: systems.s.rate: NaN is not a finite number"),
        (
            "[systems.s]\nkind = \"k\"\nrate = \"5 s\"",
            "bad.toml:8: systems.s.rate: \"s\" is not a unit of this quantity (Hz, kHz, 1/h, 1/d)",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 1e-300",
            "bad.toml:8: systems.s.rate: 1e-300 Hz: a system's rate is above 0, from 1e-8 to 1e6 Hz",
        ),
    ]);
}

#[test]
fn wrong_orbits() {
    let orbit = |rest: &str| format!("[entities.a.parameters.m]\ntype = \"motion\"\n{rest}");
    let cases = [
        (
            orbit("mu = 4e14"),
            "bad.toml:7: entities.a.parameters.m.position: missing: a two-body motion needs it (mu makes a motion two-body)",
        ),
        (
            orbit("mu = -4e14\nposition = [1, 0, 0]\nvelocity = [0, 1, 0]"),
            "bad.toml:8: entities.a.parameters.m.mu: a two-body motion has a mu above 0",
        ),
        (
            orbit("mu = 4e14\nposition = [0, 0, 0]\nvelocity = [0, 1, 0]"),
            "bad.toml:9: entities.a.parameters.m.position: at the center of the attracting body, where no orbit is",
        ),
        (
            orbit("model = \"two-body\"\nposition = [1, 0, 0]\nvelocity = [0, 1, 0]"),
            "bad.toml:7: entities.a.parameters.m.mu: missing: a two-body motion needs it, m3/s2",
        ),
    ];
    refuse_all(&cases.each_ref().map(|(body, expected)| (body.as_str(), *expected)));
}

#[test]
fn wrong_times() {
    refuse_all(&[
        (
            "[entities.a.parameters]\nx = 2028-04-25T05:30:00Z",
            "bad.toml:7: entities.a.parameters.x: a bare date has no time scale: write { type = \"time\", value = \"… TAI\" }",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"time\", value = 2028-04-25 }",
            "bad.toml:7: entities.a.parameters.x.value: a date is a text with its scale (TAI, or Z for UTC): write \"2028-04-25 TAI\"",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"time\", value = \"2028-04-25T05:30:00\" }",
            "bad.toml:7: entities.a.parameters.x.value: `2028-04-25T05:30:00` names no time scale: append `Z` for UTC, or ` TAI`",
        ),
        (
            "[entities.a.parameters]\nx = { type = \"time\", value = \"line\\nbreak\" }",
            "bad.toml:7: entities.a.parameters.x.value: `line\\nbreak` names no time scale: append `Z` for UTC, or ` TAI`",
        ),
    ]);
}

#[test]
fn duplicates() {
    refuse_all(&[
        (
            "[entities.a]\n[entities.b]\n[entities.a]",
            "bad.toml:8: entities.a: duplicate key: it stands above already; keep one, or rename this",
        ),
        (
            "[entities.a]\ntags = [\"x\"]\ntags = [\"y\"]",
            "bad.toml:8: entities.a.tags: duplicate key: it stands above already; keep one, or rename this",
        ),
        (
            "[entities]\na = {}\n\"a\" = {}",
            "bad.toml:8: entities.a: duplicate key: it stands above already; keep one, or rename this",
        ),
        (
            "[entities.a]\ntags = [\"x\", \"y\", \"x\"]",
            "bad.toml:7: entities.a.tags: the tag \"x\" is there twice",
        ),
        (
            "[genesis]\nrate = 2.0",
            "bad.toml:6: genesis: duplicate key: it stands above already; keep one, or rename this",
        ),
    ]);
}

#[test]
fn references_to_nothing_and_in_circles() {
    let motion = |name: &str, frame: &str| {
        format!("[entities.{name}.parameters.motion]\ntype = \"motion\"\nframe = \"{frame}\"\n")
    };
    let circle = motion("a", "b") + &motion("b", "c") + &motion("c", "a");
    let itself = motion("a", "a");
    let list = "[entities.a.parameters]\nl = [1, { type = \"motion\",\n frame = \"b\" }]\n".to_owned()
        + &motion("b", "a");
    let second = "[entities.a.parameters]\nm = { type = \"motion\", frame = \"b\" }\nn = { type = \"motion\", frame = \"c\" }\n[entities.c]\n".to_owned() + &motion("b", "a");
    refuse_all(&[
        (
            &motion("a", "b"),
            "bad.toml:8: entities.a.parameters.motion.frame: no entity \"b\" in this file, and it is not an id",
        ),
        (
            "[entities.a.parameters]\nr = { type = \"ref\", entity = \"b\" }",
            "bad.toml:7: entities.a.parameters.r.entity: no entity \"b\" in this file, and it is not an id",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 1\nsettings = { r = { type = \"ref\", entity = \"b\" } }",
            "bad.toml:9: systems.s.settings.r.entity: no entity \"b\" in this file, and it is not an id",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 1\ntags = [\n  \"flight\"\n]",
            "bad.toml:10: systems.s.tags[0]: no entity has the tag \"flight\"",
        ),
        (
            "[systems.s]\nkind = \"k\"\nrate = 1\ntags = []",
            "bad.toml:9: systems.s.tags: no tag: name some, or leave `tags` out for one instance without an entity",
        ),
        (
            &circle,
            "bad.toml:8: entities.a.parameters.motion.frame: cyclic: this entity is, through others, relative to itself; take one frame out of the circle",
        ),
        (
            &itself,
            "bad.toml:8: entities.a.parameters.motion.frame: cyclic: this entity is relative to itself; take one frame out of the circle",
        ),
        (
            &list,
            "bad.toml:8: entities.a.parameters.l[1].frame: cyclic: this entity is, through others, relative to itself; take one frame out of the circle",
        ),
        (
            &second,
            "bad.toml:7: entities.a.parameters.m.frame: cyclic: this entity is, through others, relative to itself; take one frame out of the circle",
        ),
    ]);
}

#[test]
fn a_frame_leading_into_a_circle_is_not_blamed() {
    let motion = |name: &str, frame: &str| {
        format!("[entities.{name}.parameters.motion]\ntype = \"motion\"\nframe = \"{frame}\"\n")
    };
    let body = motion("x", "a") + &motion("a", "b") + &motion("b", "a");
    assert!(
        refused(&format!("{HEAD}{body}"))
            .starts_with("bad.toml:11: entities.a.parameters.motion.frame: cyclic")
    );
    let chain = motion("x", "a") + &motion("y", "a") + &motion("a", "b") + "[entities.b]\n";
    assert!(SimConfig::parse("good.toml", &format!("{HEAD}{chain}")).is_ok());
}

#[test]
fn names_that_cannot_be_shown() {
    let long = format!("[entities.{}]", "x".repeat(256));
    let key = format!("bad.toml:6: entities.{}: 256 bytes long: at most 255", "x".repeat(256));
    refuse_all(&[
        ("[entities.\"\"]", "bad.toml:6: entities.\"\": empty: write at least one character"),
        (
            "[entities.\"a\\nb\"]",
            "bad.toml:6: entities.\"a\\nb\": holds the control character '\\n': leave it out",
        ),
        (
            "[entities.a]\ntags = [\"\"]",
            "bad.toml:7: entities.a.tags[0]: empty: write at least one character",
        ),
        (
            "[entities.a.parameters]\n\"\" = 1",
            "bad.toml:7: entities.a.parameters.\"\": empty key in path \"\": write at least one character between slashes",
        ),
        (
            "[systems.\"\"]\nkind = \"k\"\nrate = 1",
            "bad.toml:6: systems.\"\": empty: write at least one character",
        ),
        (
            "[systems.s]\nkind = \"\"\nrate = 1",
            "bad.toml:7: systems.s.kind: empty: write at least one character",
        ),
        (&long, &key),
    ]);
}

#[test]
fn nesting_is_bounded() {
    let lists = format!("[entities.a.parameters]\nx = {}1{}", "[".repeat(16), "]".repeat(16));
    let hundred = format!("[entities.a.parameters]\nx = {}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let dotted = format!("[entities.a.parameters]\nx{} = 1", ".y".repeat(16));
    let tables = format!("[entities.a.parameters.x{}]", ".y".repeat(5_000));
    for source in [lists, hundred, dotted, tables] {
        let found = refused(&format!("{HEAD}{source}"));
        assert!(found.starts_with("bad.toml:") && found.len() < 200_000, "{found}");
    }
    let fits = format!("[entities.a.parameters]\nx = {}1{}", "[".repeat(15), "]".repeat(15));
    assert!(SimConfig::parse("good.toml", &format!("{HEAD}{fits}")).is_ok());
}

#[test]
fn heads() {
    let genesis = |lines: &str| HEAD.replace("start = \"2028-04-25T05:30:00 TAI\"", lines);
    let with_id = |id: &str| HEAD.replace("8d0c5a52-6a3e-4a52-9a53-3c5e0d6e7b10", id);
    refuse_sources(vec![
        (String::new(), "bad.toml:1: config: missing: add a table [config]"),
        (
            HEAD.lines().take(3).map(|line| format!("{line}\n")).collect(),
            "bad.toml:1: genesis: missing: add a table [genesis]",
        ),
        (
            "\n[config]\nname = \"n\"\n[genesis]\nstart = \"2028-04-25 TAI\"\n".to_owned(),
            "bad.toml:2: config.id: missing: every config has it",
        ),
        (
            with_id("1"),
            "bad.toml:2: config.id: not a UUID (invalid length: found 1): make one once and keep it",
        ),
        (
            with_id("00000000-0000-0000-0000-000000000000"),
            "bad.toml:2: config.id: all zeros identify nothing: make a UUID once and keep it",
        ),
        (HEAD.replace("\"n\"", "\"\""), "bad.toml:3: config.name: empty: write at least one character"),
        (genesis(""), "bad.toml:4: genesis.start: missing: every config has it"),
        (
            genesis("start = 2028-04-25T05:30:00Z"),
            "bad.toml:5: genesis.start: a date is a text with its scale (TAI, or Z for UTC): write \"2028-04-25T05:30:00Z\"",
        ),
        (
            genesis("start = \"2028-04-25T05:30:00\""),
            "bad.toml:5: genesis.start: `2028-04-25T05:30:00` names no time scale: append `Z` for UTC, or ` TAI`",
        ),
        (
            genesis("start = \"2028-02-30 TAI\""),
            "bad.toml:5: genesis.start: day 30 is out of range: 1 to the length of the month",
        ),
        (
            genesis("start = \"2028-04-25 TAI\"\nrate = inf"),
            "bad.toml:6: genesis.rate: inf is not a finite number",
        ),
        (
            genesis("start = \"2028-04-25 TAI\"\nrate = \"2 Hz\""),
            "bad.toml:6: genesis.rate: \"Hz\" is not a unit of this quantity: it has none, write a plain number",
        ),
    ]);
}

#[test]
fn what_is_no_toml() {
    refuse_all(&[
        ("[entities.a]\ntags = [\"x\"", "bad.toml:7: entities.a.tags: unclosed array, expected `]`"),
        (
            "[entities.a.parameters]\n\n\nx = yes",
            "bad.toml:9: entities.a.parameters.x: string values must be quoted, expected literal string",
        ),
        (
            "[entities.a.parameters]\nx = \"open",
            "bad.toml:7: entities.a.parameters.x: invalid basic string, expected `\"`",
        ),
        ("[entities.a", "bad.toml:6: unclosed table, expected `]`"),
        ("nonsense", "bad.toml:6: key with no value, expected `=`"),
    ]);
}

#[test]
fn a_mark_of_byte_order_and_windows_line_ends_do_not_shift_lines() {
    let body = "[entities.a]\ntag = [\"x\"]\n";
    let plain = refused(&format!("{HEAD}{body}"));
    assert!(plain.starts_with("bad.toml:7: entities.a.tag: "), "{plain}");
    let windows = format!("\u{feff}{HEAD}{body}").replace('\n', "\r\n");
    assert_eq!(refused(&windows), plain);
    let good = format!("\u{feff}{HEAD}[entities.a]\n").replace('\n', "\r\n");
    assert_eq!(SimConfig::parse("good.toml", &good).map(|c| c.entities.len()), Ok(1));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let error = SimConfig::load(folder.join("not there.toml")).expect_err("it is not there");
    assert!(error.line == 1 && error.message.starts_with("cannot be read: "), "{error}");
    assert!(SimConfig::load(folder).is_err());
    let latin = folder.join("latin.toml");
    std::fs::write(&latin, b"# one\n# two\nname = \"caf\xe9\"\n").expect("a temporary folder");
    let error = SimConfig::load(&latin).expect_err("it is not UTF-8");
    assert_eq!(error.to_string(), format!("{}:3: not UTF-8 text: save the file as UTF-8", latin.display()));
}
