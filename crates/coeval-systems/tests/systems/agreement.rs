//! Programs that read the same config agree, and editors are told the same as the parser checks.
use crate::{DEMO, HEAD};
use coeval::EntityId;
use coeval_systems::SimConfig;
use coeval_systems::config::json_schema;

fn parse(source: &str) -> SimConfig {
    SimConfig::parse("good.toml", source).expect("a good config")
}

#[test]
fn independent_parses_agree_on_ids_and_digest() {
    let (one, two) = (parse(DEMO), parse(DEMO));
    assert_eq!(one.entities.len(), 25);
    assert_eq!(one.systems.len(), 2);
    assert_eq!(one.digest(), two.digest());
    for (a, b) in one.entities.iter().zip(&two.entities) {
        assert_eq!((a.id, &a.name, &a.tags, &a.parameters), (b.id, &b.name, &b.tags, &b.parameters));
        assert_eq!(a.id, EntityId::declared(one.id, &a.name));
    }
    assert_eq!(format!("{:?}", one.initial()), format!("{:?}", two.initial()));
    let flights = one.entities_of(&one.systems[1]).map(|e| e.name.as_str());
    assert_eq!(
        flights.collect::<Vec<_>>(),
        ["airliner_tree", "helicopter_rescue", "parabolic_flight", "training_circuits"]
    );
}

#[test]
fn order_and_comments_do_not_count_but_every_content_does() {
    let base = "[entities.a]\ntags = [\"x\", \"y\"]\nparameters = { m = 1.0 }\n[entities.b]\n";
    let digest = |source: &str| parse(source).digest();
    let same = "[entities.b] # second\n[entities.a]\nparameters.m = 1.0\ntags = [\"y\", \"x\"]\n";
    let of_base = digest(&format!("{HEAD}{base}"));
    assert_eq!(of_base, digest(&format!("{HEAD}{same}")));
    let others = [
        HEAD.replace("8d0c", "8d0d") + base,
        HEAD.replace("05:30", "05:31") + base,
        HEAD.to_owned() + "rate = 2.0\n" + base,
        format!("{HEAD}{}", base.replace("1.0", "-1.0")),
        format!("{HEAD}{}", base.replace("1.0", "1")),
        format!("{HEAD}{}", base.replace("m = ", "n = ")),
        format!("{HEAD}{}", base.replace("\"x\", ", "")),
        format!("{HEAD}{base}[entities.c]\n"),
    ];
    let zero = |sign: &str| digest(&format!("{HEAD}{}", base.replace("1.0", &format!("{sign}0.0"))));
    assert_ne!(zero(""), zero("-"), "values count by their bits");
    let all: std::collections::BTreeSet<_> =
        others.iter().map(|source| digest(source)).chain([of_base]).collect();
    assert_eq!(all.len(), others.len() + 1);
    let system = "[systems.s]\nkind = \"k\"\nrate = 1\n";
    assert_eq!(
        of_base,
        digest(&format!("{HEAD}{base}{system}")),
        "what runs where is each program's own affair"
    );
}

#[test]
fn the_schema_file_is_the_schema() {
    let schema = serde_json::to_string_pretty(&json_schema()).expect("JSON") + "\n";
    let file = include_str!("../../sim-config.schema.json");
    assert!(
        file == schema,
        "sim-config.schema.json is not what the parser checks: run\n  \
         cargo run -q -p coeval-cli -- schema > crates/coeval-systems/sim-config.schema.json"
    );
}
