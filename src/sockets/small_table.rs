//! A small table of connections: an array, and a tag for each slot.
//!
//! ```text
//!     slots     │ 0: key a, socket │ 1: key b, socket │ 2: key c, socket │ …
//!
//!     tags      even   │ a │ c │   │   │   │   │   │   │     byte i: slot 2i
//!               odd    │ b │   │   │   │   │   │   │   │     byte i: slot 2i + 1
//!
//!     matches   nibble s of one word: slot s may have the key
//! ```
//!
//! Comparing keys one by one mispredicts the branch at the equal one. Here all tags are compared at
//! once, without a branch: two words of eight are 16 slots, and a tag filters 127 of 128 other
//! keys. The hash of the tags has no seed: 16 connections chosen to have equal tags are all
//! compared.
//!
//! - **F1** The byte of a slot is the tag of its connection, and zero if the slot is free.

use alloc::format;
use core::mem;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::invariant::{InvariantError, ensure};
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::{Allocator, Global, Vec};
use crate::raw::tags;

/// The capacity of a small table: the slots of two words of tags. For more, a map is as fast.
pub(super) const MAX_SMALL: usize = 16;

/// The length at which a map is replaced by a small table. Lower than [`MAX_SMALL`], so that a few
/// insertions and removals move nothing.
pub(super) const SHRINK_AT: usize = MAX_SMALL / 2;

/// Bits per slot in a word of matches.
const NIBBLE: usize = 4;

/// Up to 16 connections.
#[derive(Clone)]
pub(super) struct SmallTable<T, A: Allocator = Global> {
    /// The tags of even slots, and those of odd ones.
    tags: [u64; 2],
    slots: Vec<(FlowKey, T), A>,
}

impl<T, A: Allocator> SmallTable<T, A> {
    pub(super) const fn new_in(memory: A) -> Self {
        Self { tags: [0; 2], slots: Vec::new_in(memory) }
    }

    pub(super) fn allocator(&self) -> &A {
        self.slots.allocator()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.slots.capacity() * size_of::<(FlowKey, T)>()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn slots(&self) -> &[(FlowKey, T)] {
        &self.slots
    }

    /// Returns all slots, whose keys must stay the same.
    pub(super) fn slots_mut(&mut self) -> &mut [(FlowKey, T)] {
        &mut self.slots
    }

    #[inline]
    pub(super) fn get(&self, key: &FlowKey) -> Option<&T> {
        self.find(key).map(|slot| &self.slots[slot].1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        self.find(key).map(|slot| &mut self.slots[slot].1)
    }

    /// Reserves memory for more connections. Returns false if the table or the memory is too small.
    pub(super) fn reserve(&mut self, additional: usize) -> bool {
        self.len() + additional <= MAX_SMALL && self.slots.try_reserve(additional).is_ok()
    }

    /// Inserts a connection that is absent. Memory for it is [reserved](Self::reserve).
    pub(super) fn push(&mut self, key: FlowKey, socket: T) {
        self.set_tag(self.len(), &key);
        self.slots.push((key, socket));
    }

    /// Removes a connection; the last one moves into its slot.
    pub(super) fn remove(&mut self, key: &FlowKey) -> Option<T> {
        let slot = self.find(key)?;
        let (last, socket) = self.pop()?;
        if slot == self.len() {
            return Some(socket);
        }
        self.clear_tag(slot);
        self.set_tag(slot, &last);
        Some(mem::replace(&mut self.slots[slot], (last, socket)).1)
    }

    /// Removes the connections for which `keep` returns false.
    pub(super) fn retain(&mut self, keep: &mut impl FnMut(FlowKey, &mut T) -> bool) {
        let mut left = self.len();
        while self.extract_next(&mut left, |key, socket| !keep(key, socket)).is_some() {}
    }

    /// Removes and returns the next connection for which `picks` returns true: the last one of the
    /// first `left` ones.
    pub(super) fn extract_next(
        &mut self,
        left: &mut usize,
        mut picks: impl FnMut(FlowKey, &mut T) -> bool,
    ) -> Option<(FlowKey, T)> {
        while *left > 0 {
            *left -= 1;
            let (key, socket) = &mut self.slots[*left];
            let key = *key;
            if picks(key, socket) {
                // The one that takes its place was not picked.
                return self.remove(&key).map(|socket| (key, socket));
            }
        }
        None
    }

    /// Removes the last connection.
    pub(super) fn pop(&mut self) -> Option<(FlowKey, T)> {
        let last = self.slots.pop()?;
        self.clear_tag(self.len());
        Some(last)
    }

    /// Sets the tag of a free slot.
    fn set_tag(&mut self, slot: usize, key: &FlowKey) {
        let word = &mut self.tags[slot % 2];
        *word = tags::with(*word, slot / 2, tags(key));
    }

    /// Marks a slot as free.
    fn clear_tag(&mut self, slot: usize) {
        let word = &mut self.tags[slot % 2];
        *word = tags::without(*word, slot / 2);
    }

    #[inline]
    fn find(&self, key: &FlowKey) -> Option<usize> {
        // Two searches, each of which compares keys of one IP version.
        match key {
            FlowKey::V4(key) => {
                let eq = |other: &_| matches!(other, FlowKey::V4(other) if other == key);
                self.search(tags_v4(key), eq)
            }
            FlowKey::V6(key) => {
                let eq = |other: &_| matches!(other, FlowKey::V6(other) if other == key);
                self.search(tags_v6(key), eq)
            }
        }
    }

    #[inline]
    fn search(&self, tags: u64, eq: impl Fn(&FlowKey) -> bool) -> Option<usize> {
        // A single key needs no filter.
        if let [(only, _)] = &self.slots[..] {
            return eq(only).then_some(0);
        }
        let mut matches = self.matches(tags);
        while matches != 0 {
            let slot = matches.trailing_zeros() as usize / NIBBLE;
            if self.slots.get(slot).is_some_and(|(other, _)| eq(other)) {
                return Some(slot);
            }
            matches &= matches - 1;
        }
        None
    }

    /// The slots whose tags match: bit 3 of the nibble of each.
    #[inline]
    fn matches(&self, tags: u64) -> u64 {
        // Bit 7 of byte i is bit 3 of nibble 2i + 1, an odd slot; even slots move down a nibble.
        let [even, odd] = self.tags.map(|word| tags::matches(word, tags).bits());
        even >> NIBBLE | odd
    }

    /// Checks F1, and that there are at most [`MAX_SMALL`] connections, all different.
    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        ensure(self.len() <= MAX_SMALL, || format!("a small table has {} slots", self.len()))?;
        let mut expected: SmallTable<()> = SmallTable::new_in(Global);
        for (slot, (key, _)) in self.slots.iter().enumerate() {
            expected.set_tag(slot, key);
            let others = &self.slots[slot + 1..];
            let is_unique = others.iter().all(|(other, _)| other != key);
            ensure(is_unique, || "a small table has a connection twice")?;
        }
        ensure(self.tags == expected.tags, || "F1: a slot has the tag of another connection")
    }
}

/// The tags of a connection, one for each slot.
fn tags(key: &FlowKey) -> u64 {
    match key {
        FlowKey::V4(key) => tags_v4(key),
        FlowKey::V6(key) => tags_v6(key),
    }
}

#[inline]
fn tags_v4(key: &FiveTuple<Ipv4Addr>) -> u64 {
    let ends = u64::from(key.src.to_bits()) << 32 ^ u64::from(key.dst.to_bits());
    tags_of(ends, key.sport, key.dport, key.protocol)
}

#[inline]
fn tags_v6(key: &FiveTuple<Ipv6Addr>) -> u64 {
    let ends = key.src.to_bits() ^ key.dst.to_bits().rotate_left(32);
    tags_of((ends >> 64) as u64 ^ ends as u64, key.sport, key.dport, key.protocol)
}

/// The tags of a connection, which depend on all of its fields.
#[inline]
fn tags_of(ends: u64, sport: u16, dport: u16, protocol: u8) -> u64 {
    let ports = u64::from(sport) << 24 | u64::from(dport) << 8 | u64::from(protocol);
    // Each byte of the XOR depends on all bits of both factors, by one half or the other.
    let ends = u128::from(ends ^ 0x243f_6a88_85a3_08d3);
    let product = ends * u128::from(ports ^ 0xa409_3822_299f_31d0);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of false matches among all other connections of a full table.
    fn false_matches(keys: impl Iterator<Item = FlowKey> + Clone) -> f64 {
        let (mut table, mut count) = (SmallTable::new_in(Global), 0);
        keys.clone().for_each(|key| table.push(key, ()));
        for (slot, key) in keys.enumerate() {
            let matches = table.matches(tags(&key));
            assert_ne!(matches & 8 << (NIBBLE * slot), 0, "the nibble of its slot");
            count += matches.count_ones() - 1;
        }
        f64::from(count) / (MAX_SMALL * (MAX_SMALL - 1)) as f64
    }

    fn key(client: u32, port: u16) -> FlowKey {
        let (src, dst) = (Ipv4Addr::from_bits(client), Ipv4Addr::new(198, 51, 100, 1));
        FiveTuple { src, dst, sport: port, dport: 443, protocol: 6 }.into()
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without memory accesses to check")]
    fn tags_differ_whatever_field_of_a_connection_differs() {
        let shares = |first: u32| {
            let near = (0..MAX_SMALL as u32).map(move |n| key(first + n, 40_000));
            let ports = (0..MAX_SMALL as u16).map(move |n| key(first, 40_000 + n));
            let far = (0..MAX_SMALL as u32).map(move |n| key(first ^ n << 24, 40_000));
            [false_matches(near), false_matches(ports), false_matches(far)]
        };
        let mut means = [0.0; 3];
        for set in 0..100 {
            let shares = shares(0xc000_0200 + 0x1_0000 * set);
            means.iter_mut().zip(shares).for_each(|(mean, share)| *mean += share / 100.0);
        }
        // One in 128, and the borrows of the subtraction.
        assert!(means.iter().all(|&mean| mean < 0.02), "{means:?}");
    }

    #[test]
    fn every_slot_is_found_and_removed() {
        for removed in (0..MAX_SMALL).step_by(if cfg!(miri) { 7 } else { 1 }) {
            let keys: [FlowKey; MAX_SMALL] = core::array::from_fn(|n| key(n as u32, 1));
            let mut table = SmallTable::new_in(Global);
            assert!(table.reserve(MAX_SMALL));
            keys.iter().enumerate().for_each(|(n, &key)| table.push(key, n));
            assert!((0..MAX_SMALL).all(|n| table.get(&keys[n]) == Some(&n)) && !table.reserve(1));
            assert_eq!(table.remove(&keys[removed]), Some(removed));
            for (n, key) in keys.iter().enumerate() {
                assert_eq!(table.get(key), (n != removed).then_some(&n));
            }
            assert_eq!((table.validate(), table.remove(&keys[removed])), (Ok(()), None));
        }
    }
}
