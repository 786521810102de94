//! Known faults of systems of this kind, each tried on a mesh of real stores.
use coeval_merge::{Op, Replica};
use coeval_simnet::check::Violation;
use coeval_simnet::finals;
use coeval_simnet::mesh::{Mesh, Plan, Topology};
use coeval_simnet::net::{Conditions, Site};
use coeval_simnet::timepiece::Skew;
use coeval_simnet::witness::Twins;
use coeval_store::WriteError;
use coeval_sync::PeerStatus;
use coeval_time::WallDuration;
use coeval_value::{EntityId, Path, SIM_ENTITY, Value};
use uuid::Uuid;

const DELAY: WallDuration = WallDuration::from_millis(20);

fn ms(millis: i64) -> WallDuration {
    WallDuration::from_millis(millis)
}

fn path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

fn entity(n: u128) -> EntityId {
    EntityId(Uuid::from_u128(n << 64 | n))
}

/// A mesh at rest, its clocks as wrong as `skews` say, its links 20 ms long.
fn mesh(seed: u64, topology: Topology, skews: Vec<Skew>) -> Mesh {
    let conditions = Conditions { delay: DELAY.as_nanos().unsigned_abs(), ..Conditions::default() };
    let count = skews.len();
    let plan = Plan { skews, conditions, ..Plan::new(topology, count) };
    let mut mesh = Mesh::new(seed, plan, Twins::default());
    (0..count).for_each(|site| mesh.open(site));
    rest(&mut mesh);
    mesh
}

fn rest(mesh: &mut Mesh) {
    assert_eq!(mesh.settle(WallDuration::from_secs(90)), None);
    mesh.run_for(WallDuration::from_secs(3));
}

fn holds(mesh: &mut Mesh) {
    rest(mesh);
    let found: Vec<String> = finals::check(mesh).iter().map(Violation::to_string).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn create(mesh: &mut Mesh, site: Site, id: EntityId) {
    mesh.write(site, vec![(Op::Create { entity: id }, false)], None).expect("a fresh id");
}

fn set(mesh: &mut Mesh, site: Site, id: EntityId, text: &str, value: i64) -> Result<(), WriteError> {
    let op = Op::Set { entity: id, path: path(text), value: Value::Int(value) };
    mesh.write(site, vec![(op, false)], None).map(drop)
}

fn remove(mesh: &mut Mesh, site: Site, id: EntityId, text: &str) {
    mesh.write(site, vec![(Op::Remove { entity: id, path: path(text) }, false)], None).expect("known");
}

fn get(mesh: &Mesh, site: Site, id: EntityId, text: &str) -> Option<i64> {
    let snapshot = mesh.program(site)?.store.snapshot();
    match snapshot.leaf(id, &path(text))?.value {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

fn row(mesh: &Mesh, at: Site, of: Site) -> PeerStatus {
    let node = mesh.program(of).expect("open").node();
    let rows = mesh.program(at).expect("open").sync.peers();
    rows.into_iter().find(|row| row.node == node).expect("known")
}

#[test]
fn a_lone_write_reaches_neighbors_at_once_and_not_with_the_next_digest() {
    let mut mesh = mesh(1, Topology::Full, vec![Skew::default(); 3]);
    create(&mut mesh, 0, entity(1));
    mesh.run_for(ms(500));
    for n in 0..40 {
        set(&mut mesh, 0, entity(1), "k", n).expect("known");
        mesh.run_for(ms(21));
        for site in 0..3 {
            assert_eq!(get(&mesh, site, entity(1), "k"), Some(n), "site {site}");
        }
        mesh.run_for(ms(37));
    }
    holds(&mut mesh);
}

#[test]
fn a_receiver_that_restarts_empty_gets_everything_not_what_follows() {
    for seed in 0..20 {
        let mut mesh = mesh(seed, Topology::Line, vec![Skew::default(); 3]);
        for n in 1..30 {
            create(&mut mesh, (n % 3) as usize, entity(n));
            mesh.run_for(ms(7));
        }
        mesh.crash(1);
        mesh.run_for(ms(100 * seed as i64));
        mesh.open(1);
        create(&mut mesh, 2, entity(50));
        rest(&mut mesh);
        for n in (1..30).chain([50]) {
            assert!(mesh.program(1).expect("open").store.exists(entity(n)), "seed {seed}: entity {n}");
        }
        holds(&mut mesh);
    }
}

#[test]
fn a_slow_consumer_costs_one_entry_for_each_key_and_slows_nobody() {
    const KEYS: usize = 400;
    let mut mesh = mesh(3, Topology::Full, vec![Skew::default(); 3]);
    let write = |mesh: &mut Mesh, n: i64| {
        for key in 0..KEYS {
            set(mesh, 0, SIM_ENTITY, &format!("k{key}"), n).expect("known");
        }
    };
    write(&mut mesh, -1);
    rest(&mut mesh);
    mesh.net.read(2, false);
    let (window, chunk) = (mesh.plan.config.window, mesh.plan.config.chunk);
    for n in 0..200 {
        write(&mut mesh, n);
        mesh.run_for(ms(30));
        let slow = row(&mesh, 0, 2);
        assert!(slow.waiting <= KEYS + 8, "{} slots wait", slow.waiting);
        assert!(slow.in_flight <= window + 4 * chunk, "{} bytes wait in the transport", slow.in_flight);
        assert_eq!(
            get(&mesh, 1, SIM_ENTITY, &format!("k{}", KEYS - 1)),
            Some(n),
            "the other peer is up to date"
        );
    }
    assert!(row(&mesh, 0, 2).waiting > 0, "the slow consumer does lag");
    assert_ne!(get(&mesh, 2, SIM_ENTITY, "k0"), Some(199));
    mesh.net.read(2, true);
    mesh.run_for(ms(1_000));
    for key in 0..KEYS {
        assert_eq!(get(&mesh, 2, SIM_ENTITY, &format!("k{key}")), Some(199), "a second after it resumed");
    }
    holds(&mut mesh);
}

#[test]
fn an_entity_deleted_while_it_is_streamed_never_comes_back() {
    let mut mesh = mesh(4, Topology::Full, vec![Skew::default(); 3]);
    let plane = entity(1);
    create(&mut mesh, 0, plane);
    rest(&mut mesh);
    for way in [1, 2] {
        mesh.net.cut(way, 0, true);
    }
    mesh.write(1, vec![(Op::Delete { entity: plane }, false)], None).expect("alive");
    let (mut taken, mut refused) = (0, 0);
    for n in 0..180 {
        if n == 120 {
            mesh.net.heal();
        }
        match set(&mut mesh, 0, plane, "pose", n) {
            Ok(()) => taken += 1,
            Err(WriteError::Deleted(id)) if id == plane => refused += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(refused == 0 || !mesh.program(0).expect("open").store.exists(plane));
        mesh.run_for(ms(17));
        for site in [1, 2].into_iter().filter(|site| *site == 1 || n > 2) {
            assert!(
                !mesh.program(site).expect("open").store.exists(plane),
                "frame {n}: it is back at {site}"
            );
        }
    }
    assert!(taken >= 120 && refused >= 50, "{taken} writes taken before it heard, {refused} refused after");
    holds(&mut mesh);
}

#[test]
fn a_leaf_hidden_by_a_clear_is_no_difference_and_nothing_flows() {
    let mut mesh = mesh(5, Topology::Full, vec![Skew::default(); 3]);
    create(&mut mesh, 0, entity(1));
    rest(&mut mesh);
    // Site 2 never hears of the value: it is cleared before the way is open again.
    mesh.net.cut(0, 2, true);
    mesh.net.cut(1, 2, true);
    set(&mut mesh, 0, entity(1), "a/k", 1).expect("known");
    set(&mut mesh, 1, entity(1), "a/m", 2).expect("known");
    mesh.run_for(ms(100));
    remove(&mut mesh, 0, entity(1), "a");
    mesh.run_for(ms(12_000));
    mesh.net.heal();
    rest(&mut mesh);
    let digests =
        |mesh: &Mesh| (0..3).map(|s| mesh.program(s).expect("open").store.digest()).collect::<Vec<_>>();
    let before = digests(&mesh);
    assert!(before.windows(2).all(|pair| pair[0] == pair[1]));
    let totals = |mesh: &Mesh| (0..3).map(|s| mesh.program(s).expect("open").totals()).collect::<Vec<_>>();
    let counted = totals(&mesh);
    mesh.run_for(ms(20_000));
    assert_eq!(totals(&mesh), counted, "repair flows between equals");
    assert_eq!(digests(&mesh), before);
    holds(&mut mesh);
}

#[test]
fn a_clock_ten_minutes_ahead_holds_no_key() {
    let mut skews = vec![Skew { follows: true, ..Skew::default() }; 3];
    skews[1].offset = WallDuration::from_secs(599);
    skews[2].offset = WallDuration::from_secs(-599);
    let mut mesh = mesh(6, Topology::Full, skews);
    create(&mut mesh, 0, entity(1));
    mesh.run_for(ms(100));
    for (n, site) in [1usize, 2, 1, 0, 2, 0].into_iter().enumerate() {
        set(&mut mesh, site, entity(1), "k", n as i64).expect("known");
        mesh.run_for(ms(25));
        for at in 0..3 {
            assert_eq!(get(&mesh, at, entity(1), "k"), Some(n as i64), "written at {site}, read at {at}");
        }
    }
    holds(&mut mesh);
}

#[test]
fn who_writes_after_reading_wins_over_a_clock_that_is_ahead() {
    let mut skews = vec![Skew::default(); 3];
    skews[0].offset = WallDuration::from_millis(400);
    skews[2].offset = WallDuration::from_millis(-400);
    let mut mesh = mesh(7, Topology::Line, skews);
    create(&mut mesh, 1, entity(1));
    rest(&mut mesh);
    for n in 0..20 {
        set(&mut mesh, 0, entity(1), "k", 2 * n).expect("known");
        mesh.run_for(ms(45));
        assert_eq!(get(&mesh, 2, entity(1), "k"), Some(2 * n));
        set(&mut mesh, 2, entity(1), "k", 2 * n + 1).expect("known");
        mesh.run_for(ms(45));
        for site in 0..3 {
            assert_eq!(get(&mesh, site, entity(1), "k"), Some(2 * n + 1), "site {site}");
        }
    }
    holds(&mut mesh);
}

#[test]
fn two_fields_written_by_two_at_one_instant_both_survive() {
    let mut mesh = mesh(8, Topology::Star, vec![Skew::default(); 4]);
    create(&mut mesh, 0, entity(1));
    rest(&mut mesh);
    for n in 0..20 {
        set(&mut mesh, 1, entity(1), "pose/rotation", n).expect("known");
        set(&mut mesh, 2, entity(1), "pose/position", -n).expect("known");
        mesh.run_for(ms(45));
        for site in 0..4 {
            assert_eq!(get(&mesh, site, entity(1), "pose/rotation"), Some(n), "site {site}");
            assert_eq!(get(&mesh, site, entity(1), "pose/position"), Some(-n), "site {site}");
        }
    }
    holds(&mut mesh);
}

#[test]
fn what_a_peer_acknowledged_survives_its_author() {
    let mut mesh = mesh(9, Topology::Line, vec![Skew::default(); 3]);
    create(&mut mesh, 0, entity(1));
    rest(&mut mesh);
    set(&mut mesh, 0, entity(1), "k", 7).expect("known");
    mesh.run_for(ms(1));
    let author = mesh.program(0).expect("open");
    let target = author.sync.flush_target();
    assert!(author.sync.flushed(target).values().all(|done| !done), "nobody can have it yet");
    mesh.run_for(ms(41));
    let author = mesh.program(0).expect("open");
    assert!(author.sync.flushed(target).values().all(|done| *done), "a round trip later the neighbor has");
    mesh.crash(0);
    mesh.open(0);
    rest(&mut mesh);
    for site in 0..3 {
        assert_eq!(get(&mesh, site, entity(1), "k"), Some(7), "site {site}");
    }
    holds(&mut mesh);
}

#[test]
fn a_flush_does_not_return_before_the_first_repair_is_through() {
    for seed in 0..20 {
        let conditions = Conditions { delay: 50_000_000, jitter: 30_000_000, ..Conditions::default() };
        let plan = Plan { conditions, ..Plan::new(Topology::Line, 2) };
        let mut mesh = Mesh::new(seed, plan, Twins::default());
        (0..2).for_each(|site| mesh.open(site));
        // Both have a world of their own, and go on writing while they get to know each other.
        let mut wrote = Vec::new();
        for n in 0..150i64 {
            if n % 3 == 0 {
                let (site, key) = ((n / 3 % 2) as usize, format!("k{n}"));
                set(&mut mesh, site, SIM_ENTITY, &key, n).expect("known");
                mesh.run_for(ms(1));
                wrote.push((site, key, n, mesh.program(site).expect("open").sync.flush_target()));
            }
            if n == 30 {
                mesh.tend();
            }
            mesh.run_for(ms(9));
            for (site, key, value, target) in &wrote {
                let flushed = mesh.program(*site).expect("open").sync.flushed(*target);
                if flushed.values().any(|done| *done) {
                    let there = get(&mesh, 1 - *site, SIM_ENTITY, key);
                    assert_eq!(there, Some(*value), "seed {seed}, step {n}: {key} was said to be there");
                }
            }
        }
        holds(&mut mesh);
    }
}
