//! papaya: a lock-free table with guards.

use flowtable::DefaultHashBuilder;
use papaya::{Guard, HashMap, LocalGuard};

use super::Key;
use super::shared_map::{SharedMap, View};

type Papaya = HashMap<Key, u64, DefaultHashBuilder>;

pub(crate) struct Guarded<'a> {
    map: &'a Papaya,
    guard: LocalGuard<'a>,
}

impl SharedMap for Papaya {
    type View<'a> = Guarded<'a>;

    fn view(&self) -> Guarded<'_> {
        Guarded { map: self, guard: self.guard() }
    }

    #[inline]
    fn count(&self) -> Option<usize> {
        Some(self.len())
    }
}

impl View for Guarded<'_> {
    #[inline]
    fn repin(&mut self) {
        self.guard.refresh();
    }

    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        self.map.get(key, &self.guard).copied()
    }

    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        self.map.insert(key, value, &self.guard);
    }

    #[inline]
    fn retain_if(&self, mut keep: impl FnMut(u64) -> bool) -> bool {
        self.map.retain(|_, value| keep(*value), &self.guard);
        true
    }
}
