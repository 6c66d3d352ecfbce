//! An indexed binary heap: a priority queue with removal and update by id.
//!
//! ```text
//!     entries    │ 3:b │ 5:a │ 4:d │     least key first; among equal keys the highest id first
//!     positions    a: 1, b: 0, c: none, d: 2
//! ```
//!
//! The position of each id is stored, so an entry can be removed or get another key in O(log n).
//! Ids are below the capacity. All memory is allocated by the constructor.

use alloc::vec::Vec;

use crate::raw::slab::OptIndex;

/// A priority queue of ids with keys, least key first; among equal keys the highest id first.
#[derive(Clone, Debug)]
pub(crate) struct IndexedHeap<K> {
    /// The heap: no entry precedes its parent, which is at half its position.
    entries: Vec<(K, u32)>,
    /// The position of each id in `entries`.
    positions: Vec<OptIndex>,
}

impl<K: Copy + Ord> IndexedHeap<K> {
    /// Creates a heap for ids below the capacity, which is below 2^32 - 1. `None` if the allocation
    /// fails.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        let (mut entries, mut positions) = (Vec::new(), Vec::new());
        entries.try_reserve_exact(capacity).ok()?;
        positions.try_reserve_exact(capacity).ok()?;
        positions.resize(capacity, OptIndex::NONE);
        Some(Self { entries, positions })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the first entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Returns the key of an id.
    pub(crate) fn key(&self, id: u32) -> Option<K> {
        self.position(id).map(|position| self.entries[position].0)
    }

    /// Inserts an id, or changes its key.
    pub(crate) fn set(&mut self, id: u32, key: K) {
        let position = self.position(id).unwrap_or_else(|| {
            self.entries.push((key, id));
            self.entries.len() - 1
        });
        self.entries[position].0 = key;
        self.sift(position, id);
    }

    /// Removes and returns the first entry.
    pub(crate) fn pop(&mut self) -> Option<(K, u32)> {
        let first = self.first()?;
        self.remove(first.1);
        Some(first)
    }

    /// Removes an id. Returns whether it was present.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let Some(position) = self.position(id) else { return false };
        self.entries.swap_remove(position);
        self.positions[id as usize] = OptIndex::NONE;
        if let Some(&(_, moved)) = self.entries.get(position) {
            self.sift(position, moved);
        }
        true
    }

    /// Returns the number of allocated bytes.
    pub(crate) fn allocation_size(&self) -> usize {
        self.entries.capacity() * size_of::<(K, u32)>()
            + self.positions.capacity() * size_of::<OptIndex>()
    }

    /// Returns whether the entries and positions are consistent. O(n).
    pub(crate) fn is_valid(&self) -> bool {
        let present = self.positions.iter().filter(|position| position.is_some()).count();
        let is_ordered = (0..self.len()).all(|position| {
            let id = self.entries[position].1;
            self.position(id) == Some(position)
                && (position == 0 || !self.precedes(position, (position - 1) / 2))
        });
        is_ordered && present == self.len()
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        let position = self.positions.get(id as usize)?.get()?;
        Some(position as usize)
    }

    #[inline]
    fn precedes(&self, position: usize, other: usize) -> bool {
        let ((key, id), (other_key, other_id)) = (self.entries[position], self.entries[other]);
        key < other_key || (key == other_key && id > other_id)
    }

    /// Sifts the entry of `id` up or down from a position to restore the heap order.
    fn sift(&mut self, mut position: usize, id: u32) {
        while position > 0 && self.precedes(position, (position - 1) / 2) {
            self.swap(position, (position - 1) / 2);
            position = (position - 1) / 2;
        }
        loop {
            let mut least = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if child < self.entries.len() && self.precedes(child, least) {
                    least = child;
                }
            }
            if least == position {
                break;
            }
            self.swap(position, least);
            position = least;
        }
        self.positions[id as usize] = OptIndex::some(position as u32);
    }

    /// Swaps the sifted entry with the entry at `other`, and stores the position of the latter.
    #[inline]
    fn swap(&mut self, sifted: usize, other: usize) {
        self.entries.swap(sifted, other);
        let id = self.entries[sifted].1;
        self.positions[id as usize] = OptIndex::some(sifted as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_by_key_and_then_by_descending_id() {
        let mut heap = IndexedHeap::new(100).unwrap();
        let mut model = alloc::collections::BTreeMap::new();
        let mut random = 1_u64;
        for step in 0..if cfg!(miri) { 200 } else { 20_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (id, key) = ((random >> 33) as u32 % 100, random >> 60);
            match step % 5 {
                0..3 => {
                    heap.set(id, key);
                    model.insert(id, key);
                }
                3 => assert_eq!(heap.remove(id), model.remove(&id).is_some()),
                _ => {
                    let first = model.iter().map(|(id, key)| (*key, *id));
                    let first = first.min_by_key(|(key, id)| (*key, u32::MAX - id));
                    first.map(|(_, id)| model.remove(&id));
                    assert_eq!(heap.pop(), first);
                }
            }
            assert!(heap.is_valid());
            assert_eq!((heap.key(id), heap.len()), (model.get(&id).copied(), model.len()));
        }
    }

    #[test]
    fn ids_beyond_the_capacity_are_absent() {
        let mut heap: IndexedHeap<u8> = IndexedHeap::new(2).unwrap();
        assert_eq!((heap.key(2), heap.remove(u32::MAX)), (None, false));
        assert!(heap.is_empty() && heap.pop().is_none());
    }
}
