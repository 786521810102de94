//! The demo's world: the sim config, the recorded flights, the integrated satellites.
use super::geometry::{Sight, Site};
use super::j2::Orbit;
use super::track::{Kinematics, Track};
use coeval::{Key, Motion, MotionModel, SimTime, Value};
use coeval_systems::SimConfig;
use std::collections::BTreeMap;

/// The config, as a user would write it.
pub(crate) const CONFIG: &str = include_str!("../../../../examples/demo/demo.toml");

const TRACKS: &[(&str, &str)] = &[
    ("airliner_tree", include_str!("../../../../examples/demo/tracks/airliner_tree.csv")),
    ("helicopter_rescue", include_str!("../../../../examples/demo/tracks/helicopter_rescue.csv")),
    ("parabolic_flight", include_str!("../../../../examples/demo/tracks/parabolic_flight.csv")),
    ("training_circuits", include_str!("../../../../examples/demo/tracks/training_circuits.csv")),
];

/// The truth of a satellite is known this long before and after the start, s.
const ORBIT_SPAN_S: (f64, f64) = (-3_600.0, 14_400.0);

/// The aircraft that looks, and the satellite that it looks at.
pub(crate) const OBSERVER: &str = "airliner_tree";
pub(crate) const OBSERVED: &str = "sat-28626";

/// What moves, and how it truly moves.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) config: SimConfig,
    tracks: BTreeMap<String, Track>,
    orbits: BTreeMap<String, Orbit>,
    sites: BTreeMap<String, Site>,
}

impl World {
    /// Reads the config and the tracks, and integrates the orbits (some 50 ms).
    pub(crate) fn load() -> Result<Self, String> {
        let config = SimConfig::parse("examples/demo/demo.toml", CONFIG).map_err(|e| e.to_string())?;
        let mut world =
            Self { config, tracks: BTreeMap::new(), orbits: BTreeMap::new(), sites: BTreeMap::new() };
        for entity in world.config.entities.clone() {
            let parameters: BTreeMap<String, Value> =
                entity.parameters.iter().map(|(path, value)| (path.to_string(), value.clone())).collect();
            if let Some(Value::Text(track)) = parameters.get("track") {
                let (_, csv) = TRACKS
                    .iter()
                    .find(|(name, _)| *name == track.as_ref())
                    .ok_or_else(|| format!("{}: no track {track:?}", entity.name))?;
                world.tracks.insert(entity.name.clone(), Track::from_csv(csv)?);
                world.sites.insert(entity.name.clone(), site(parameters.get("site"))?);
            }
            if let Some(Value::Motion(motion)) = parameters.get("motion")
                && motion.model == MotionModel::TwoBody
            {
                let state = (motion.position.unwrap_or_default(), motion.velocity.unwrap_or_default());
                let orbit = Orbit::integrate(state, ORBIT_SPAN_S.0, ORBIT_SPAN_S.1);
                world.orbits.insert(entity.name, orbit);
            }
        }
        Ok(world)
    }

    /// The names of all that moves, flights first.
    pub(crate) fn movers(&self) -> impl Iterator<Item = &String> {
        self.tracks.keys().chain(self.orbits.keys())
    }

    /// The motion that the config starts `entity` with.
    pub(crate) fn initial_motion(&self, entity: &str) -> Option<Motion> {
        self.config.entity(entity)?.parameters.iter().find_map(|(_, value)| match value {
            Value::Motion(motion) => Some(**motion),
            _ => None,
        })
    }

    /// Whether `entity` is a flight.
    pub(crate) fn is_flight(&self, entity: &str) -> bool {
        self.tracks.contains_key(entity)
    }

    /// Where `entity` truly is at `sim`; `None` where its truth is not known.
    pub(crate) fn truth(&self, entity: &str, sim: SimTime) -> Option<Kinematics> {
        let t = sim.seconds_since(self.config.start);
        match self.tracks.get(entity) {
            // A century from the start there is no recording: only near it is the flight flown there and back.
            Some(track) => (t.abs() < 86_400.0).then(|| track.at(t)),
            None => self.orbits.get(entity)?.at(t),
        }
    }

    /// Range and elevation of an inertial position from an aircraft's local one.
    pub(crate) fn sight(
        &self,
        aircraft: &str,
        local: [f64; 3],
        target: [f64; 3],
        sim: SimTime,
    ) -> Option<Sight> {
        Some(self.sites.get(aircraft)?.sight(local, target, sim.seconds_since(self.config.start)))
    }
}

fn site(value: Option<&Value>) -> Result<Site, String> {
    let number = |name: &str| match value {
        Some(Value::Map(map)) => match Key::new(name).ok().and_then(|key| map.get(&key).cloned()) {
            Some(Value::Float(number)) => Ok(number),
            _ => Err(format!("a site needs the number {name}")),
        },
        _ => Err("a flight needs a site".to_owned()),
    };
    Ok(Site {
        latitude: number("latitude_deg")?.to_radians(),
        longitude: number("longitude_deg")?.to_radians(),
        height: number("height_m")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval::SimDuration;

    #[test]
    fn every_mover_has_a_truth_at_the_start() {
        let world = World::load().expect("the demo's own world");
        assert_eq!(world.movers().count(), 24);
        for mover in world.movers() {
            let (position, velocity) = world.truth(mover, world.config.start).expect("truth at the start");
            assert!(position.iter().chain(&velocity).all(|x| x.is_finite()), "{mover}");
        }
        let century_ago = world.config.start.saturating_add(SimDuration::from_secs(-36_525 * 86_400));
        assert!(world.movers().all(|mover| world.truth(mover, century_ago).is_none()));
    }
}
