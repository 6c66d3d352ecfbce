//! scc's `HashIndex`: locks of buckets for writers, none for readers, who have a guard.

use flowtable::DefaultHashBuilder;
use scc::Guard;
use scc::hash_index::Entry;

use super::Key;
use super::contestant::{Shared, View};

type Index = scc::HashIndex<Key, u64, DefaultHashBuilder>;

pub(crate) struct Guarded<'a> {
    map: &'a Index,
    /// There is one, except while it is renewed.
    guard: Option<Guard>,
}

impl Shared for Index {
    type View<'a> = Guarded<'a>;

    fn view(&self) -> Guarded<'_> {
        Guarded { map: self, guard: Some(Guard::new()) }
    }

    fn settle() {
        settle();
    }
}

impl View for Guarded<'_> {
    /// A guard beside another one would not be a later one.
    #[inline]
    fn repin(&mut self) {
        self.guard = None;
        self.guard = Some(Guard::new());
    }

    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        self.map.peek(key, self.guard.as_ref()?).copied()
    }

    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        match self.map.entry_sync(key) {
            Entry::Occupied(mut entry) => entry.update(value),
            Entry::Vacant(entry) => drop(entry.insert_entry(value)),
        }
    }
}

/// All maps of scc have their garbage in one place, where it waits for guards that end.
pub(crate) fn settle() {
    for _ in 0..64 {
        Guard::new().accelerate();
    }
}
