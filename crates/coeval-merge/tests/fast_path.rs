//! A store may publish newer leaves over an exclusive one without telling the tree: nothing may come out different.
mod common;
use coeval_merge::{LeafStore, SlotState, Tree, Visibility};
use coeval_time::Stamp;
use coeval_value::{Leaf, Path, SampleMeta};
use common::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A leaf that the test, as the store, can reach past the tree.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<(Option<Leaf>, Visibility)>>);

impl LeafStore for Shared {
    fn stamp(&self) -> Stamp {
        self.0.borrow().0.as_ref().map_or(Stamp::NONE, |l| l.stamp)
    }
    fn leaf(&self) -> Option<Leaf> {
        self.0.borrow().0.clone()
    }
    fn write(&mut self, leaf: Leaf) -> bool {
        let newer = leaf.stamp > self.stamp();
        if newer {
            self.0.borrow_mut().0 = Some(leaf);
        }
        newer
    }
    fn clear_below(&mut self, clear: Stamp) -> Option<Stamp> {
        let mut cell = self.0.borrow_mut();
        assert_ne!(cell.1, Visibility::Leaf { exclusive: true }, "fast writers were not sent to the mutex");
        cell.0.take_if(|l| l.stamp < clear).map(|l| l.stamp)
    }
    fn set_visibility(&mut self, visibility: Visibility) {
        self.0.borrow_mut().1 = visibility;
    }
}

fn text(tree: &Tree<Shared>) -> String {
    tree.canonical().map(|(p, s)| format!("{p:?} {s:?}\n")).collect()
}

#[test]
fn a_fast_write_is_the_same_as_a_join() {
    let mut fast_writes = 0;
    for seed in 0..3_000 {
        let mut rng = ChaCha8Rng::seed_from_u64(3 << 40 | seed);
        let rounds = random_history(&mut rng, 1);
        let mut fragments: Vec<_> = rounds
            .iter()
            .flat_map(|r| batch(&r.ops).fragments(r.stamp, SampleMeta::default()))
            .filter_map(|(key, state)| match (key.path, state) {
                (Some(path), SlotState::Node(node)) => Some((path, node)),
                _ => None,
            })
            .collect();
        fragments.shuffle(&mut rng);
        let cells: RefCell<BTreeMap<Path, Shared>> = RefCell::default();
        let (mut told, mut fast) = (Tree::new(), Tree::new());
        for (path, state) in &fragments {
            told.join(path, state, &mut |_| Shared::default());
            let open = cells.borrow().get(path).cloned();
            let open = open.filter(|c| c.0.borrow().1 == Visibility::Leaf { exclusive: true });
            if let (Some(mut cell), Some(leaf), true) = (open, &state.leaf, rng.random_bool(0.8)) {
                fast_writes += u32::from(cell.write(leaf.clone()));
            } else {
                fast.join(path, state, &mut |p| cells.borrow_mut().entry(p.clone()).or_default().clone());
            }
            assert_eq!(text(&told), text(&fast), "seed {seed}: {}", story(&rounds));
            assert_eq!(told.show(None).as_ref().map(shown), fast.show(None).as_ref().map(shown));
        }
        for (path, cell) in cells.borrow().iter() {
            let seen = cell.0.borrow().1;
            assert_eq!(seen, fast.visibility(path), "{path:?} was told what the tree knows");
            assert_eq!(matches!(seen, Visibility::Leaf { .. }), !cell.stamp().is_none(), "held iff it shows");
        }
    }
    assert!(fast_writes > 200, "the fast path was taken {fast_writes} times");
}
