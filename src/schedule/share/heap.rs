//! A binary heap that knows where its entries are.
//!
//! ```text
//!     entries    │ 3:b │ 5:a │ 4:d │        the least key is first; of equal keys that with the higher id
//!     places       a: 1, b: 0, c: none, d: 2
//! ```
//!
//! So an entry can be taken out or get another key in O(log n), by its id. Ids are below the capacity. All memory is
//! allocated at the beginning.

use alloc::vec::Vec;

/// The place of an id that is not in the heap.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct IndexedHeap<K> {
    /// No entry is before its parent, that at half its place.
    entries: Vec<(K, u32)>,
    /// By id.
    places: Vec<u32>,
}

impl<K: Copy + Ord> IndexedHeap<K> {
    /// For ids below the capacity, which is below 2^32 - 1. `None` without memory.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        let (mut entries, mut places) = (Vec::new(), Vec::new());
        entries.try_reserve_exact(capacity).ok()?;
        places.try_reserve_exact(capacity).ok()?;
        places.resize(capacity, NOWHERE);
        Some(Self { entries, places })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// The key of an id.
    pub(crate) fn key(&self, id: u32) -> Option<K> {
        self.place(id).map(|place| self.entries[place].0)
    }

    /// Puts in an id, or gives it another key.
    pub(crate) fn set(&mut self, id: u32, key: K) {
        let place = self.place(id).unwrap_or_else(|| {
            self.entries.push((key, id));
            self.entries.len() - 1
        });
        self.entries[place].0 = key;
        self.settle(place, id);
    }

    /// Takes out the first entry.
    pub(crate) fn pop(&mut self) -> Option<(K, u32)> {
        let first = self.first()?;
        self.remove(first.1);
        Some(first)
    }

    /// Takes out an id, and says whether it was there.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let Some(place) = self.place(id) else { return false };
        self.entries.swap_remove(place);
        self.places[id as usize] = NOWHERE;
        if let Some(&(_, moved)) = self.entries.get(place) {
            self.settle(place, moved);
        }
        true
    }

    /// Bytes allocated.
    pub(crate) fn allocation_size(&self) -> usize {
        self.entries.capacity() * size_of::<(K, u32)>() + self.places.capacity() * size_of::<u32>()
    }

    /// Whether all is in order. O(n).
    pub(crate) fn is_valid(&self) -> bool {
        let known = self.places.iter().filter(|place| **place != NOWHERE).count();
        let found = (0..self.len()).all(|place| {
            self.places.get(self.entries[place].1 as usize) == Some(&(place as u32))
                && (place == 0 || !self.is_before(place, (place - 1) / 2))
        });
        found && known == self.len()
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        let place = self.places.get(id as usize).copied().unwrap_or(NOWHERE);
        (place != NOWHERE).then_some(place as usize)
    }

    #[inline]
    fn is_before(&self, place: usize, other: usize) -> bool {
        let ((key, id), (other_key, other_id)) = (self.entries[place], self.entries[other]);
        key < other_key || (key == other_key && id > other_id)
    }

    /// Moves the entry at a place, whose id this is, up or down to where it belongs.
    fn settle(&mut self, mut place: usize, id: u32) {
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.entries.len() && self.is_before(child, least) {
                    least = child;
                }
            }
            if least == place {
                break;
            }
            self.swap(place, least);
            place = least;
        }
        self.places[id as usize] = place as u32;
    }

    /// Swaps the entry that settles with another one, and notes the place of that.
    #[inline]
    fn swap(&mut self, settling: usize, other: usize) {
        self.entries.swap(settling, other);
        self.places[self.entries[settling].1 as usize] = settling as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_key_is_first_and_of_equals_the_higher_id() {
        let mut heap = IndexedHeap::new(100).unwrap();
        let mut twin = alloc::collections::BTreeMap::new();
        let mut random = 1_u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (id, key) = ((random >> 33) as u32 % 100, random >> 60);
            match step % 5 {
                0..3 => {
                    heap.set(id, key);
                    twin.insert(id, key);
                }
                3 => assert_eq!(heap.remove(id), twin.remove(&id).is_some()),
                _ => {
                    let first = twin.iter().map(|(id, key)| (*key, *id));
                    let first = first.min_by_key(|(key, id)| (*key, u32::MAX - id));
                    first.map(|(_, id)| twin.remove(&id));
                    assert_eq!(heap.pop(), first);
                }
            }
            assert!(heap.is_valid());
            assert_eq!((heap.key(id), heap.len()), (twin.get(&id).copied(), twin.len()));
        }
    }

    #[test]
    fn ids_beyond_the_capacity_are_nowhere() {
        let mut heap: IndexedHeap<u8> = IndexedHeap::new(2).unwrap();
        assert_eq!((heap.key(2), heap.remove(u32::MAX)), (None, false));
        assert!(heap.is_empty() && heap.pop().is_none());
    }
}
