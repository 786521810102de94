//! Writes of all kinds, in rounds; each is written down before and after.
use super::Desk;
use crate::soak::record::{Op, Outcome, Record};
use crate::soak::{PAIR, REGISTERS};
use coeval::{Batch, EntityId, ErrorKind, Param, Result, SimDuration, Stamp};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two rounds.
const PAUSE: Duration = Duration::from_millis(40);
/// Entities in the pool above which more are deleted than made.
const CROWD: usize = 60;

struct Writer<'a> {
    desk: &'a Desk,
    rng: ChaCha8Rng,
    counter: Param<i64>,
    /// Makes values unique, and counts.
    last: u64,
}

/// Writes until it is to be quiet.
pub(super) fn run(desk: &Desk) {
    let counter = match desk.own.param::<i64>("count") {
        Ok(counter) => counter,
        Err(error) => return desk.violation(format!("no handle to the own counter: {error}")),
    };
    let rng = ChaCha8Rng::seed_from_u64(desk.assignment.seed);
    let mut writer = Writer { desk, rng, counter, last: 0 };
    let mut round = 0;
    while !desk.is_quiet() {
        round += 1;
        let (ops, batches): (Vec<Op>, Vec<Batch>) =
            (0..writer.rng.random_range(1..=6)).map(|_| writer.choose()).unzip();
        desk.history.add(&Record::Try { round, ops: ops.clone() });
        let outcomes = ops.iter().zip(batches).map(|(op, batch)| writer.outcome(op, batch)).collect();
        desk.history.add(&Record::Did { round, outcomes });
        desk.round.store(round, Ordering::Release);
        std::thread::sleep(PAUSE.mul_f64(writer.rng.random_range(0.5..1.5)));
    }
}

impl Writer<'_> {
    fn unique(&mut self) -> String {
        self.last += 1;
        let assignment = &self.desk.assignment;
        format!("{}.{}.{}", assignment.seat, assignment.generation, self.last)
    }

    fn register(&mut self) -> (String, String) {
        let path = REGISTERS[self.rng.random_range(0..REGISTERS.len())];
        (super::super::SHARED[0].to_owned(), path.to_owned())
    }

    fn of_pool(&mut self) -> Option<String> {
        let pool = self.desk.pool.lock().unwrap_or_else(PoisonError::into_inner);
        (!pool.is_empty()).then(|| pool[self.rng.random_range(0..pool.len())].to_string())
    }

    fn crowded(&self) -> bool {
        self.desk.pool.lock().unwrap_or_else(PoisonError::into_inner).len() > CROWD
    }

    /// What to do next, and a batch to do it in: the id of an entity is made by the batch that creates it.
    fn choose(&mut self) -> (Op, Batch) {
        let peer = &self.desk.peer;
        let mut batch = peer.batch(peer.context());
        let value = self.unique();
        let op = match self.rng.random_range(0..1_000) {
            0..300 => {
                let entity = self.desk.own.id().to_string();
                let value = i64::try_from(self.last).unwrap_or(i64::MAX);
                Op::Count { entity, path: "count".into(), value }
            }
            300..560 => {
                let (entity, path) = self.register();
                Op::Set { entity, path, value }
            }
            560..590 => {
                let (entity, path) = self.register();
                Op::Remove { entity, path }
            }
            590..740 => Op::Pair { value },
            740..850 if !self.crowded() => {
                let entity = batch.create_unnamed();
                Op::Create { entity: entity.to_string(), with: vec![("n".into(), value)] }
            }
            740..900 => match self.of_pool() {
                Some(entity) => Op::Delete { entity },
                None => Op::Pair { value },
            },
            900..995 => match self.of_pool() {
                Some(entity) => Op::Set { entity, path: "n".into(), value },
                None => Op::Pair { value },
            },
            _ => Op::Clock,
        };
        (op, batch)
    }

    fn outcome(&mut self, op: &Op, batch: Batch) -> Outcome {
        match self.write(op, batch) {
            Ok(stamp) => Outcome::Done(stamp),
            Err(error) => {
                let gone = matches!(error.kind(), ErrorKind::Deleted | ErrorKind::NotFound);
                if !gone && !self.desk.is_ending() {
                    self.desk.violation(format!("{op:?} was refused: {error}"));
                }
                Outcome::Refused(error.to_string())
            }
        }
    }

    /// Writes; gives the stamp where the call tells it.
    fn write(&mut self, op: &Op, mut batch: Batch) -> Result<Option<Stamp>> {
        let peer = &self.desk.peer;
        let context = peer.context();
        match op {
            Op::Count { value, .. } => {
                self.counter.set(context, *value)?;
                self.desk.count.store(*value as u64, Ordering::Release);
                return Ok(None);
            }
            Op::Set { entity, path, value } => {
                let id = self.find(entity)?;
                if self.rng.random_bool(0.5) {
                    peer.entity_by_id(id)?.set(context, path.as_str(), value.as_str())?;
                    return Ok(None);
                }
                batch.set(id, path.as_str(), value.as_str())?;
            }
            Op::Remove { entity, path } => batch.remove(self.find(entity)?, path.as_str())?,
            Op::Pair { value } => {
                for (entity, path) in PAIR {
                    batch.set(peer.entity(entity)?.id(), *path, value.as_str())?;
                }
            }
            Op::Create { entity, with } => {
                for (path, value) in with {
                    batch.set(self.find(entity)?, path.as_str(), value.as_str())?;
                }
            }
            Op::Delete { entity } => {
                let id = self.find(entity)?;
                if self.rng.random_bool(0.5) {
                    peer.entity_by_id(id)?.delete()?;
                    return Ok(None);
                }
                batch.delete(id);
            }
            Op::Clock => return self.edit_clock().map(Some),
        }
        batch.commit().map(Some)
    }

    /// An entity, by id or by name.
    fn find(&self, entity: &str) -> Result<EntityId> {
        match entity.parse() {
            Ok(id) => Ok(id),
            Err(_) => self.desk.peer.entity(entity).map(|entity| entity.id()),
        }
    }

    fn edit_clock(&mut self) -> Result<Stamp> {
        let clock = self.desk.peer.clock();
        let edit = match self.rng.random_range(0..4) {
            0 => clock.set_scale([0.5, 1.0, -2.0, 10.0][self.rng.random_range(0..4)]),
            1 => clock.pause(),
            2 => clock.resume(),
            _ => clock.jump_by(SimDuration::from_millis(self.rng.random_range(-60_000..60_000))),
        };
        edit.map(|id| id.stamp)
    }
}
