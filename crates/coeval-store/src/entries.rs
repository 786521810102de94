//! The write-once entries of the `SimEntity`: a set that only grows.
use coeval_merge::{Entry, EntryBody, Origin};
use coeval_time::EditId;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Entries {
    all: BTreeMap<EditId, Entry>,
    /// Not drained yet.
    pending: Vec<(Origin, Entry)>,
    /// Drained: the position of the drain, in drain order.
    drained: Vec<(u64, EditId)>,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, id: EditId) -> Option<&Entry> {
        self.all.get(&id)
    }

    /// In id order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.all.values()
    }

    /// Adds an entry; `false` if its id is known.
    pub(crate) fn add(&mut self, origin: Origin, entry: Entry) -> bool {
        if self.all.contains_key(&entry.id) {
            return false;
        }
        self.all.insert(entry.id, entry.clone());
        self.pending.push((origin, entry));
        true
    }

    pub(crate) fn any_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn drain(&mut self, position: u64) -> Vec<(Origin, Entry)> {
        let taken = std::mem::take(&mut self.pending);
        self.drained.extend(taken.iter().map(|(_, entry)| (position, entry.id)));
        taken
    }

    /// Forgets the clock edits, which belong to a world. Returns those that were drained.
    pub(crate) fn forget_edits(&mut self) -> Vec<Entry> {
        let is_edit = |entry: &Entry| matches!(entry.body, EntryBody::Clock(_));
        self.pending.retain(|(_, entry)| !is_edit(entry));
        let all = &self.all;
        let drained = self.drained.iter().filter_map(|(_, id)| all.get(id));
        let gone: Vec<Entry> = drained.filter(|entry| is_edit(entry)).cloned().collect();
        self.all.retain(|_, entry| !is_edit(entry));
        let all = &self.all;
        self.drained.retain(|(_, id)| all.contains_key(id));
        gone
    }

    pub(crate) fn since(&self, position: u64) -> Vec<Entry> {
        let from = self.drained.partition_point(|(at, _)| *at <= position);
        self.drained[from..].iter().filter_map(|(_, id)| self.all.get(id).cloned()).collect()
    }
}
