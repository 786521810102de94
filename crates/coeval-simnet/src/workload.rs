//! What the threads of the programs do: seeded operations of every kind, on few hot and many cold parameters.
use crate::ledger::Act;
use crate::mesh::{LARGE, Mesh};
use crate::net::Site;
use crate::witness::Twins;
use coeval_merge::{EntryBody, Op};
use coeval_sync::Target;
use coeval_time::{EditKind, SimDuration, SimTime, WallDuration};
use coeval_value::{EntityId, Key, Matrix, Motion, MotionModel, NodeId, Path, Quat, Ramp, SIM_ENTITY, Value};
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Keys of hot parameters, down to three levels: everyone writes them.
const HOT: [&str; 2] = ["a", "b"];
/// How many cold keys there are.
const COLD: u32 = 40;
/// Entities that come or go in one storm.
const STORM: usize = 12;
/// Values of one stream.
const STREAMED: u64 = 8;
/// Scales that people set.
const SCALES: [f64; 9] = [1.0, 2.0, 0.5, -1.0, 0.0, 1e6, 1.0 / 3.0, -1e3, 1e-9];

/// The state of the workload.
pub struct Workload {
    entities: Vec<EntityId>,
    twins: Twins,
    /// Whether anyone jumps, stops and schedules; else scale and pause only.
    pub wild_clock: bool,
}

impl Workload {
    /// A workload over fresh entities.
    pub fn new(rng: &mut ChaCha8Rng) -> Self {
        let mut fresh = || EntityId::v7(1_700_000_000_000, rng.random());
        let (a, b) = (fresh(), fresh());
        let path = |text| Path::parse(text).expect("a path");
        let twins = Twins(vec![(a, path("twin/x")), (b, path("twin/y")), (a, path("twin/z"))]);
        Self { entities: vec![a, b, fresh()], twins, wild_clock: true }
    }

    /// The paths that are only ever written together.
    pub fn twins(&self) -> Twins {
        self.twins.clone()
    }

    /// The first entities are made, at `site`.
    pub fn begin(&mut self, mesh: &mut Mesh, site: Site) {
        let acts = self.entities.iter().map(|&entity| (Op::Create { entity }, false)).collect();
        _ = mesh.write(site, acts, None);
        self.twin(mesh, site);
    }

    /// One operation at one site.
    pub fn step(&mut self, mesh: &mut Mesh, site: Site) {
        match mesh.rng.random_range(0..100) {
            0..8 => self.create(mesh, site),
            8..11 => self.delete(mesh, site),
            11..16 => self.clock(mesh, site),
            16..17 => {
                let value = Value::UInt(mesh.operations);
                mesh.add_record(site, "fact", value);
            }
            17..25 => self.event(mesh, site),
            25..33 => self.twin(mesh, site),
            33..36 => {
                let (entity, path) = (self.entity(&mut mesh.rng), path(&mut mesh.rng));
                mesh.hold(site, entity, &path);
            }
            36..38 => self.at_once(mesh),
            38..47 => self.by_handle(mesh, site),
            47 => self.storm(mesh, site),
            48 => self.stream(mesh, site),
            49 => self.large(mesh, site),
            50..62 => {
                let count = mesh.rng.random_range(2..6);
                let acts = (0..count).map(|_| self.act(&mut mesh.rng)).collect();
                _ = mesh.write(site, acts, None);
            }
            _ => {
                let act = self.act(&mut mesh.rng);
                _ = mesh.write(site, vec![act], None);
            }
        }
    }

    /// A write of one value to a parameter of its own, of an entity that is always there, for measuring traffic.
    pub fn steady(&self, mesh: &mut Mesh, site: Site) {
        let path = Path::parse(&format!("steady/{site}")).expect("a path");
        let value = Value::UInt(mesh.operations);
        let op = Op::Set { entity: SIM_ENTITY, path, value };
        _ = mesh.write(site, vec![(op, false)], None);
    }

    fn entity(&self, rng: &mut ChaCha8Rng) -> EntityId {
        match rng.random_range(0..10) {
            0 => SIM_ENTITY,
            1..6 => self.entities[2],
            _ => *self.entities.choose(rng).unwrap_or(&SIM_ENTITY),
        }
    }

    fn act(&self, rng: &mut ChaCha8Rng) -> Act {
        let (entity, path) = (self.entity(rng), path(rng));
        match rng.random_range(0..20) {
            0..4 => (Op::Remove { entity, path }, false),
            4..6 => {
                let map = Arc::new(random_map(rng, 1));
                (Op::Replace { entity, path, map }, false)
            }
            6..8 => (Op::Set { entity, path, value: random_value(rng, 1) }, true),
            _ => (Op::Set { entity, path, value: random_value(rng, 1) }, false),
        }
    }

    fn create(&mut self, mesh: &mut Mesh, site: Site) {
        let entity = EntityId::v7(1_700_000_000_000, mesh.rng.random());
        let mut acts = vec![(Op::Create { entity }, false)];
        if mesh.rng.random_bool(0.5) {
            let value = Value::from(format!("entity {}", mesh.rng.random_range(0..5)).as_str());
            acts.push((Op::Set { entity, path: key_path("name"), value }, false));
            acts.push((
                Op::Set { entity, path: path(&mut mesh.rng), value: random_value(&mut mesh.rng, 1) },
                false,
            ));
        }
        if mesh.write(site, acts, None).is_ok() {
            self.entities.push(entity);
        }
    }

    /// Many entities come, or go, at once: each by itself, or all in one batch.
    fn storm(&mut self, mesh: &mut Mesh, site: Site) {
        let together = mesh.rng.random_bool(0.5);
        let ops: Vec<Op> = if mesh.rng.random_bool(0.6) {
            let fresh: Vec<EntityId> =
                (0..STORM).map(|_| EntityId::v7(1_700_000_000_000, mesh.rng.random())).collect();
            self.entities.extend(&fresh);
            fresh.into_iter().map(|entity| Op::Create { entity }).collect()
        } else {
            let made = self.entities[3..].choose_multiple(&mut mesh.rng, STORM);
            made.map(|&entity| Op::Delete { entity }).collect()
        };
        let acts: Vec<Act> = ops.into_iter().map(|op| (op, false)).collect();
        if together {
            _ = mesh.write(site, acts, None);
        } else {
            acts.into_iter().for_each(|act| _ = mesh.write(site, vec![act], None));
        }
    }

    /// A stream into an entity that somebody may be deleting just now.
    fn stream(&mut self, mesh: &mut Mesh, site: Site) {
        let Some(&entity) = self.entities[3..].choose(&mut mesh.rng) else { return };
        let key = key_path("a");
        mesh.hold(site, entity, &key);
        let held = mesh.program(site).map_or(0, |program| program.handles.len());
        let is = |n: &usize| mesh.program(site).is_some_and(|p| p.handles[*n].entity() == entity);
        let handle = (0..held)
            .rev()
            .find(is)
            .filter(|n| mesh.program(site).is_some_and(|program| *program.handles[*n].path() == key));
        for n in 0..STREAMED {
            let value = Value::UInt(mesh.operations + n);
            let op = Op::Set { entity, path: key.clone(), value };
            _ = mesh.write(site, vec![(op, false)], handle);
            mesh.run_for(WallDuration::from_millis(16));
        }
    }

    /// One large value, or many small ones at many entities, in one batch.
    fn large(&mut self, mesh: &mut Mesh, site: Site) {
        if mesh.rng.random_bool(0.5) {
            let bytes = mesh.rng.random_range(1 << 10..LARGE);
            let value = Value::Bytes((0..bytes).map(|_| mesh.rng.random::<u8>()).collect());
            let op = Op::Set { entity: self.entities[2], path: key_path("large"), value };
            _ = mesh.write(site, vec![(op, false)], None);
            return;
        }
        let entities = self.entities[2..].to_vec();
        let act = |entity: EntityId| {
            let (path, value) = (path(&mut mesh.rng), random_value(&mut mesh.rng, 1));
            (Op::Set { entity, path, value }, false)
        };
        let acts = entities.into_iter().map(act).collect();
        _ = mesh.write(site, acts, None);
    }

    fn delete(&mut self, mesh: &mut Mesh, site: Site) {
        let Some(&entity) = self.entities[3..].choose(&mut mesh.rng) else { return };
        _ = mesh.write(site, vec![(Op::Delete { entity }, false)], None);
    }

    fn twin(&mut self, mesh: &mut Mesh, site: Site) {
        let value = Value::UInt(mesh.operations);
        let set = |(entity, path): &(EntityId, Path)| {
            (Op::Set { entity: *entity, path: path.clone(), value: value.clone() }, false)
        };
        let acts = self.twins.0.iter().map(set).collect();
        _ = mesh.write(site, acts, None);
    }

    /// Several sites write one parameter in one instant: where their clocks agree, at one reading of the hybrid clock.
    fn at_once(&mut self, mesh: &mut Mesh) {
        let (entity, path) = (self.entity(&mut mesh.rng), path(&mut mesh.rng));
        for site in mesh.writers() {
            let value = random_value(&mut mesh.rng, 0);
            let op = Op::Set { entity, path: path.clone(), value };
            if mesh.rng.random_bool(0.7) {
                _ = mesh.write(site, vec![(op, false)], None);
            }
        }
    }

    fn by_handle(&mut self, mesh: &mut Mesh, site: Site) {
        let held = mesh.program(site).map_or(0, |program| program.handles.len());
        if held == 0 {
            return;
        }
        let which = mesh.rng.random_range(0..held);
        let Some(handle) = mesh.program(site).map(|program| program.handles[which].clone()) else { return };
        let (value, teleport) = (random_value(&mut mesh.rng, 1), mesh.rng.random_bool(0.2));
        let op = Op::Set { entity: handle.entity(), path: handle.path().clone(), value };
        _ = mesh.write(site, vec![(op, teleport)], Some(which));
    }

    fn event(&mut self, mesh: &mut Mesh, site: Site) {
        let present: Vec<NodeId> =
            mesh.program(site).map(|program| program.present.iter().copied().collect()).unwrap_or_default();
        let value = Value::UInt(mesh.operations);
        match (mesh.rng.random_range(0..3), present.choose(&mut mesh.rng)) {
            (0, Some(&node)) => {
                let command = mesh.rng.random_bool(0.5);
                mesh.send_event(site, Target::Peer(node), value, command);
            }
            (1, _) => mesh.send_event(site, Target::Entity(self.entities[0]), value, false),
            _ => mesh.send_event(site, Target::All, value, false),
        }
    }

    fn clock(&mut self, mesh: &mut Mesh, site: Site) {
        let Some(program) = mesh.program(site) else { return };
        let store = Arc::clone(&program.store);
        let edits: Vec<_> =
            store.entries().into_iter().filter(|e| matches!(e.body, EntryBody::Clock(_))).collect();
        let rng = &mut mesh.rng;
        let scale = EditKind::Scale(*SCALES.choose(rng).unwrap_or(&1.0));
        if !self.wild_clock {
            let kind = [scale, EditKind::Pause, EditKind::Resume][rng.random_range(0..3)];
            return mesh.edit_clock(site, &[kind], None);
        }
        let sim = store.context().sim;
        let by = SimDuration::from_nanos(rng.random_range(-20_000_000_000..20_000_000_000));
        let mut kinds = vec![match rng.random_range(0..10) {
            0..3 => scale,
            3 => EditKind::Pause,
            4 | 5 => EditKind::Resume,
            6 => EditKind::JumpTo(SimTime::from_nanos(i128::from(rng.random::<i64>()))),
            7 => EditKind::JumpBy(by),
            8 => EditKind::StopAt(sim.saturating_add(by)),
            _ => match edits.choose(rng) {
                Some(edit) => EditKind::Cancel(edit.id),
                None => EditKind::Resume,
            },
        }];
        if rng.random_bool(0.2) {
            kinds.push(EditKind::Resume);
        }
        let later = WallDuration::from_millis(rng.random_range(0..3000));
        let at = rng.random_bool(0.3).then(|| store.now().saturating_add(later));
        mesh.edit_clock(site, &kinds, at);
    }
}

fn key_path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

/// A path of one to three keys: hot more often than cold.
fn path(rng: &mut ChaCha8Rng) -> Path {
    if rng.random_bool(0.4) {
        return key_path(&format!("k{}", rng.random_range(0..COLD)));
    }
    let depth = rng.random_range(1..=3);
    let keys: Vec<&str> = (0..depth).map(|_| *HOT.choose(rng).unwrap_or(&"a")).collect();
    key_path(&keys.join("/"))
}

fn random_map(rng: &mut ChaCha8Rng, depth: u32) -> BTreeMap<Key, Value> {
    let keys: Vec<&str> = HOT.iter().copied().filter(|_| rng.random_bool(0.6)).collect();
    let entry = |key: &str, rng: &mut ChaCha8Rng| (Key::new(key).expect("a key"), random_value(rng, depth));
    keys.into_iter().map(|key| entry(key, rng)).collect()
}

fn float(rng: &mut ChaCha8Rng) -> f64 {
    match rng.random_range(0..12) {
        0 => -0.0,
        // A payload that must survive.
        1 => f64::from_bits(0x7ff8_0000_dead_beef),
        2 => f64::NEG_INFINITY,
        3 => 5e-324,
        _ => rng.random_range(-1e9..1e9),
    }
}

fn floats<const N: usize>(rng: &mut ChaCha8Rng) -> [f64; N] {
    std::array::from_fn(|_| float(rng))
}

/// A value of any type; lists and maps down to `depth`.
pub fn random_value(rng: &mut ChaCha8Rng, depth: u32) -> Value {
    let kinds = if depth == 0 { 23 } else { 25 };
    let n = rng.random_range(0..6usize);
    match rng.random_range(0..kinds) {
        0 => Value::Nil,
        1 => Value::Bool(rng.random()),
        2 => Value::Int(rng.random()),
        3 => Value::UInt(rng.random()),
        4 => Value::Float(float(rng)),
        5 => Value::Float32(f32::from_bits(rng.next_u32())),
        6 => Value::from(format!("text {}", rng.random_range(0..1000)).as_str()),
        7 => Value::Bytes((0..n * 7).map(|_| rng.random::<u8>()).collect()),
        8 => Value::Uuid(Uuid::from_u128(rng.random())),
        9 => Value::Entity(EntityId::v7(rng.random_range(0..1 << 48), rng.random())),
        10 => Value::Time(SimTime::from_nanos(i128::from(rng.random::<i64>()) * 1_000_003)),
        11 => Value::Duration(SimDuration::from_nanos(i128::from(rng.random::<i64>()))),
        12 => Value::Vec2(floats(rng)),
        13 => Value::Vec3(floats(rng)),
        14 => Value::Vec4(floats(rng)),
        15 => Value::Quat(Quat::from_array(floats(rng))),
        16 => Value::Ramp(Ramp { value: float(rng), rate: float(rng) }),
        17 => matrix(rng),
        18 => Value::Ints((0..n).map(|_| rng.random::<i64>()).collect()),
        19 => Value::UInts((0..n).map(|_| rng.random::<u64>()).collect()),
        20 => Value::Floats((0..n).map(|_| float(rng)).collect()),
        21 => Value::Floats32((0..n).map(|_| f32::from_bits(rng.next_u32())).collect()),
        22 => Value::Motion(Box::new(motion(rng))),
        23 => Value::List((0..n).map(|_| random_value(rng, depth - 1)).collect()),
        _ => Value::Map(Arc::new(random_map(rng, depth - 1))),
    }
}

fn matrix(rng: &mut ChaCha8Rng) -> Value {
    let (rows, columns) = (rng.random_range(0..4u16), rng.random_range(0..4u16));
    let elements = (0..rows * columns).map(|_| float(rng)).collect();
    Value::Matrix(Arc::new(Matrix { rows, columns, elements }))
}

fn motion(rng: &mut ChaCha8Rng) -> Motion {
    let models = [MotionModel::Static, MotionModel::Fpw, MotionModel::Rvb, MotionModel::TwoBody];
    let mut some = || rng.random_bool(0.5).then(|| floats::<3>(rng));
    let (position, velocity, acceleration) = (some(), some(), some());
    let (angular_velocity, angular_acceleration) = (some(), some());
    Motion {
        model: *models.choose(rng).unwrap_or(&MotionModel::Static),
        position,
        velocity,
        acceleration,
        orientation: rng.random_bool(0.5).then(|| Quat::from_array(floats(rng))),
        angular_velocity,
        angular_acceleration,
        mu: rng.random_bool(0.3).then_some(3.986e14),
        frame: rng.random_bool(0.3).then(|| EntityId::v7(7, rng.random())),
    }
}
