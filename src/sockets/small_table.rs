//! Up to 32 connections: an array, and the tags of all its keys, compared at once.
//!
//! ```text
//!     tags     │ a │ b │ c │ … │        two groups of 16 bytes, zero if the slot is free
//!     slots    │ key a, socket │ key b, socket │ key c, socket │ …
//! ```
//!
//! The tag of a key depends on its addresses and its ports. The hash of the tags has no seed: 32
//! connections chosen to have equal tags are all compared.
//!
//! With 16 connections, a hit takes 44 instructions and a miss 30; a plain scan of the keys took
//! 150 to 198. Up to two connections, and in misses up to four, a plain
//! array is faster than the tags.
//!
//! - **F1** `tags` has the tag of the key of each slot, and zeros for free slots.

use alloc::format;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::invariant::{InvariantError, ensure};
use crate::key::flow::{FiveTuple, FlowKey, ports};
use crate::memory::{Allocator, Global, Vec};
use crate::table::tags::{FREE, GROUP, Group, tag};

/// The capacity of the array. For more connections, a map is as fast.
pub(super) const MAX_FEW: usize = 2 * GROUP;

/// The length at which maps are replaced by an array. Lower than [`MAX_FEW`], so that a few
/// insertions and removals move nothing.
pub(super) const SHRINK_AT: usize = MAX_FEW / 2;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A connection and its socket.
#[derive(Clone, Debug)]
pub(super) struct Slot<T> {
    pub(super) key: FlowKey,
    /// Whether sockets with reuse can be bound to its port.
    pub(super) allows_reuse: bool,
    pub(super) socket: T,
}

/// Up to 32 connections.
#[derive(Clone)]
pub(super) struct FewConnections<T, A: Allocator = Global> {
    tags: [u8; MAX_FEW],
    slots: Vec<Slot<T>, A>,
}

impl<T, A: Allocator> FewConnections<T, A> {
    pub(super) const fn new_in(memory: A) -> Self {
        Self { tags: [FREE; MAX_FEW], slots: Vec::new_in(memory) }
    }

    pub(super) fn allocator(&self) -> &A {
        self.slots.allocator()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn slots(&self) -> &[Slot<T>] {
        &self.slots
    }

    /// Returns all slots, whose keys must stay the same.
    pub(super) fn slots_mut(&mut self) -> &mut [Slot<T>] {
        &mut self.slots
    }

    #[inline]
    pub(super) fn get(&self, key: &FlowKey) -> Option<&T> {
        self.find(key, |_, slot| &slot.socket)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        self.position(key).map(|slot| &mut self.slots[slot].socket)
    }

    /// Reserves memory for more connections. Returns false if the array or the memory is too small.
    pub(super) fn reserve(&mut self, additional: usize) -> bool {
        self.len() + additional <= MAX_FEW && self.slots.try_reserve(additional).is_ok()
    }

    /// Inserts a connection that is absent. Memory for it is [reserved](Self::reserve).
    pub(super) fn push(&mut self, slot: Slot<T>) {
        self.tags[self.len()] = tag_of(&slot.key);
        self.slots.push(slot);
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, key: &FlowKey) -> Option<T> {
        self.position(key).map(|slot| self.remove_at(slot).socket)
    }

    /// Removes the connection of a slot; the last one moves there.
    fn remove_at(&mut self, slot: usize) -> Slot<T> {
        let last = self.len() - 1;
        self.tags[slot] = self.tags[last];
        self.tags[last] = FREE;
        self.slots.swap_remove(slot)
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
            let Slot { key, socket, .. } = &mut self.slots[*left];
            if picks(*key, socket) {
                // The one that takes its place was not picked.
                let Slot { key, socket, .. } = self.remove_at(*left);
                return Some((key, socket));
            }
        }
        None
    }

    /// Removes the last connection.
    pub(super) fn pop(&mut self) -> Option<Slot<T>> {
        let last = self.len().checked_sub(1)?;
        Some(self.remove_at(last))
    }

    fn position(&self, key: &FlowKey) -> Option<usize> {
        self.find(key, |at, _| at)
    }

    /// Finds the slot of a key. Returns what `found` returns for it.
    #[inline]
    fn find<'a, R>(&'a self, key: &FlowKey, found: impl Fn(usize, &'a Slot<T>) -> R) -> Option<R> {
        // Two searches, each with keys of one IP version.
        match key {
            FlowKey::V4(key) => {
                let words = words_v4(key);
                let is_it = |other: &FlowKey| match other {
                    FlowKey::V4(other) => words_v4(other) == words,
                    FlowKey::V6(_) => false,
                };
                self.search(hash_v4(words), is_it, found)
            }
            FlowKey::V6(key) => {
                let is_it = |other: &FlowKey| matches!(other, FlowKey::V6(other) if other == key);
                self.search(hash_v6(key), is_it, found)
            }
        }
    }

    #[inline]
    fn search<'a, R>(
        &'a self,
        hash: u64,
        is_it: impl Fn(&FlowKey) -> bool,
        found: impl Fn(usize, &'a Slot<T>) -> R,
    ) -> Option<R> {
        let matches = |at: usize| self.group(at).matches_hash(hash).bits() << at;
        let mut candidates = matches(0);
        if self.len() > GROUP {
            candidates |= matches(GROUP);
        }
        while candidates != 0 {
            let at = candidates.trailing_zeros() as usize;
            if let Some(slot) = self.slots.get(at).filter(|slot| is_it(&slot.key)) {
                return Some(found(at, slot));
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// The group of tags that begins at a slot.
    #[inline]
    fn group(&self, at: usize) -> Group {
        let word = |at: usize| self.tags[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        Group::of_words([word(at), word(at + 8)])
    }

    /// Checks F1, and that there are at most [`MAX_FEW`] connections, all different.
    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        ensure(self.len() <= MAX_FEW, || format!("an array has {} connections", self.len()))?;
        let are_free = self.tags[self.len()..].iter().all(|tag| *tag == FREE);
        ensure(are_free, || "F1: a free slot has a tag")?;
        for (slot, Slot { key, .. }) in self.slots.iter().enumerate() {
            ensure(self.tags[slot] == tag_of(key), || "F1: a slot has another tag")?;
            let others = &self.slots[slot + 1..];
            let is_unique = others.iter().all(|other| other.key != *key);
            ensure(is_unique, || "an array has a connection twice")?;
        }
        Ok(())
    }
}

/// The tag of a key.
fn tag_of(key: &FlowKey) -> u8 {
    tag(match key {
        FlowKey::V4(key) => hash_v4(words_v4(key)),
        FlowKey::V6(key) => hash_v6(key),
    })
}

/// The addresses, the ports and the protocol, in the order in which each word is one load.
#[inline(always)]
fn words_v4(key: &FiveTuple<Ipv4Addr>) -> (u64, u32, u8) {
    let [src, dst] = [key.src, key.dst].map(|address| u32::from_le_bytes(address.octets()));
    (u64::from(dst) << 32 | u64::from(src), ports(key), key.protocol)
}

/// A hash, whose highest byte is the tag.
#[inline(always)]
fn hash_v4((addresses, ports, _): (u64, u32, u8)) -> u64 {
    (addresses ^ u64::from(ports) << 32).wrapping_mul(MULTIPLIER)
}

/// See [`hash_v4`].
#[inline(always)]
fn hash_v6(key: &FiveTuple<Ipv6Addr>) -> u64 {
    let [src, dst] = [key.src, key.dst].map(|address| {
        let address = u128::from_le_bytes(address.octets());
        (address >> 64) as u64 ^ address as u64
    });
    // Rotated, as addresses of hosts differ in their last bytes.
    (src ^ dst.rotate_left(20) ^ u64::from(ports(key)) << 32).wrapping_mul(MULTIPLIER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(client: u32, port: u16) -> FlowKey {
        let (src, dst) = (Ipv4Addr::from_bits(client), Ipv4Addr::new(198, 51, 100, 1));
        FiveTuple { src, dst, sport: port, dport: 443, protocol: 6 }.into()
    }

    fn key_v6(client: u16, host: u16, port: u16) -> FlowKey {
        let [src, dst] =
            [client, host].map(|last| Ipv6Addr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        FiveTuple { src, dst, sport: port, dport: 443, protocol: 6 }.into()
    }

    #[test]
    fn tags_of_other_clients_hosts_and_ports_differ_mostly() {
        let tags = |key: &dyn Fn(u16) -> FlowKey| -> alloc::vec::Vec<u8> {
            (0..64).map(|n| tag_of(&key(n))).collect()
        };
        for tags in [
            tags(&|n| key(0xc000_0200 + u32::from(n), 40_000)),
            tags(&|n| key(0xc000_0200, 40_000 + n)),
            tags(&|n| key(0xc000_0200 + u32::from(n), 40_000).reversed()),
            tags(&|n| key_v6(n, 1, 40_000)),
            tags(&|n| key_v6(1, n, 40_000)),
            tags(&|n| key_v6(1, 1, 40_000 + n)),
        ] {
            let pairs = (0..64).flat_map(|one| (0..one).map(move |other| (one, other)));
            let equal = pairs.filter(|&(one, other)| tags[one] == tags[other]).count();
            // 2016 pairs, and 255 tags.
            assert!(equal < 48 && !tags.contains(&FREE), "{equal}");
        }
    }

    #[test]
    fn every_slot_is_found_and_removed() {
        for removed in (0..MAX_FEW).step_by(if cfg!(miri) { 7 } else { 1 }) {
            let keys: [FlowKey; MAX_FEW] = core::array::from_fn(|n| key(n as u32, 1));
            let mut few = FewConnections::new_in(Global);
            assert!(few.reserve(MAX_FEW));
            for (socket, &key) in keys.iter().enumerate() {
                few.push(Slot { key, allows_reuse: false, socket });
            }
            assert!((0..MAX_FEW).all(|n| few.get(&keys[n]) == Some(&n)) && !few.reserve(1));
            assert_eq!(few.remove(&keys[removed]), Some(removed));
            for (n, key) in keys.iter().enumerate() {
                assert_eq!(few.get(key), (n != removed).then_some(&n));
            }
            assert_eq!((few.validate(), few.remove(&keys[removed])), (Ok(()), None));
        }
    }
}
