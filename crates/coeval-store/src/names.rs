//! Entity names: labels, not identities. Who bears which name, and which names are borne twice.
use coeval_value::EntityId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Names {
    bearers: BTreeMap<Arc<str>, BTreeSet<EntityId>>,
    /// Names whose clash was reported; forgotten when the clash ends, so that a new one is news again.
    clashing: BTreeSet<Arc<str>>,
}

impl Names {
    /// The entities that bear `name`, in id order.
    pub(crate) fn bearers(&self, name: &str) -> Vec<EntityId> {
        self.bearers.get(name).into_iter().flatten().copied().collect()
    }

    /// Records that `entity`'s name went from `old` to `new`. Says so when that makes a name clash, once per clash.
    pub(crate) fn rename(
        &mut self,
        entity: EntityId,
        old: Option<&Arc<str>>,
        new: Option<&Arc<str>>,
    ) -> Option<(Arc<str>, Vec<EntityId>)> {
        if let Some(old) = old {
            self.drop_bearer(entity, old);
        }
        let new = new?;
        let bearers = self.bearers.entry(new.clone()).or_default();
        bearers.insert(entity);
        let clash = bearers.len() > 1 && self.clashing.insert(new.clone());
        clash.then(|| (new.clone(), self.bearers(new)))
    }

    fn drop_bearer(&mut self, entity: EntityId, name: &Arc<str>) {
        let Some(bearers) = self.bearers.get_mut(name) else { return };
        bearers.remove(&entity);
        if bearers.len() < 2 {
            self.clashing.remove(name);
        }
        if bearers.is_empty() {
            self.bearers.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_clash_is_told_once_and_again_only_after_it_ended() {
        let (a, b, c) = (1u128, 2, 3);
        let [a, b, c] = [a, b, c].map(|n| EntityId(Uuid::from_u128(n)));
        let name: Arc<str> = "probe".into();
        let mut names = Names::default();
        assert_eq!(names.rename(a, None, Some(&name)), None);
        assert_eq!(names.rename(b, None, Some(&name)), Some((name.clone(), vec![a, b])));
        assert_eq!(names.rename(c, None, Some(&name)), None);
        assert_eq!(names.bearers("probe"), vec![a, b, c]);
        names.rename(b, Some(&name), None);
        names.rename(c, Some(&name), None);
        assert_eq!(names.bearers("probe"), vec![a]);
        assert!(names.rename(b, None, Some(&name)).is_some());
        names.rename(a, Some(&name), None);
        names.rename(b, Some(&name), None);
        assert!(names.bearers("probe").is_empty());
    }
}
