//! Maps that threads share.

use super::Key;
use crate::subject::BURST;

/// A map that threads share.
pub(crate) trait SharedMap: Send + Sync + 'static {
    /// A thread's access to the map.
    type View<'a>: View;

    fn view(&self) -> Self::View<'_>;

    /// Returns the number of entries, if the map has a method for it.
    #[inline]
    fn count(&self) -> Option<usize> {
        None
    }

    /// Frees retired memory of maps that were dropped.
    fn reclaim() {}
}

/// A thread's access to a map: a reference, a guard or a handle.
pub(crate) trait View {
    /// Renews the guard: once in [`BURST`] operations.
    #[inline]
    fn repin(&mut self) {}

    fn get(&self, key: &Key) -> Option<u64>;

    /// Inserts an entry, or replaces its value.
    fn insert(&mut self, key: Key, value: u64);

    /// Calls `retain` with a function of the value. Returns whether the map has such a method.
    #[inline]
    fn retain_if(&self, _keep: impl FnMut(u64) -> bool) -> bool {
        false
    }

    /// The sum of [`low_half`] of a batch's values; one lookup at a time, unless the map has a
    /// batched lookup.
    #[inline]
    fn burst(&self, keys: &[Key; BURST]) -> u64 {
        keys.iter().filter_map(|key| self.get(key)).map(low_half).sum()
    }
}

/// The half of a value that updates do not change: see [`Traffic`](super::traffic::Traffic).
#[inline]
pub(crate) fn low_half(value: u64) -> u64 {
    value & 0xffff_ffff
}
