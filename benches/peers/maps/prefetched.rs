//! A batched lookup on top of hashbrown's raw table, with prefetching.
//!
//! ```text
//!     pass 1   hash every key             prefetch its control bytes
//!     pass 2   read the control bytes     prefetch the first entry with a matching tag
//!     pass 3   look up each key
//! ```
//!
//! The raw table was public until 0.14. Entry `i` of it ends at `data_end() - i`, and control byte
//! `i` is at `data_end() + i`; the 16 bytes after the last one repeat the first ones. A probe
//! sequence starts at the hash modulo the number of buckets; a control byte holds the upper 7 bits
//! of the hash.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder as Foldhash;
use hashbrown_raw::raw::RawTable;

use super::subject::Map;
use crate::subject::BURST;

/// Control bytes that hashbrown compares at once.
const GROUP: usize = 16;

pub(crate) struct Prefetched<K> {
    table: RawTable<(K, u64)>,
    hasher: Foldhash,
}

impl<K: Hash> Prefetched<K> {
    pub(crate) fn new(hasher: Foldhash) -> Self {
        Self { table: RawTable::new(), hasher }
    }

    /// The first group of control bytes in the probe sequence of `hash`.
    #[inline]
    fn group(&self, hash: u64) -> *const u8 {
        let home = hash as usize & (self.table.buckets() - 1);
        self.table.data_end().as_ptr().cast::<u8>().wrapping_add(home)
    }

    /// The first entry of the first group whose tag matches `hash`.
    #[inline]
    fn candidate(&self, hash: u64) -> Option<*const (K, u64)> {
        let group = self.group(hash).cast::<[u8; GROUP]>();
        // SAFETY: `group` starts at a control byte of a bucket, and 16 more follow the last of
        // these.
        let tags = unsafe { group.read() };
        let at = first(tags, (hash >> 57) as u8)?;
        let index = (hash as usize).wrapping_add(at) & (self.table.buckets() - 1);
        Some(self.table.data_end().as_ptr().wrapping_sub(index + 1))
    }
}

impl<K: Hash + Eq> Map<K> for Prefetched<K> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        let hash = self.hasher.hash_one(key);
        self.table.get(hash, |(own, _)| own == key).map(|(_, value)| value)
    }

    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        let Self { table, hasher } = self;
        let hash = hasher.hash_one(&key);
        match table.get_mut(hash, |(own, _)| *own == key) {
            Some(entry) => entry.1 = value,
            None => drop(table.insert(hash, (key, value), |(own, _)| hasher.hash_one(own))),
        }
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        let hash = self.hasher.hash_one(key);
        self.table.remove_entry(hash, |(own, _)| own == key).map(|(_, value)| value)
    }

    #[inline]
    fn get_batch<'a>(&'a self, keys: &[K; BURST], found: &mut [Option<&'a u64>; BURST]) {
        let mut hashes = [0; BURST];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = self.hasher.hash_one(key);
            prefetch(self.group(*hash));
        }
        for entry in hashes.iter().filter_map(|&hash| self.candidate(hash)) {
            prefetch(entry);
            prefetch(entry.cast::<u8>().wrapping_add(size_of::<(K, u64)>() - 1));
        }
        for ((key, hash), found) in keys.iter().zip(hashes).zip(found) {
            *found = self.table.get(hash, |(own, _)| own == key).map(|(_, value)| value);
        }
    }
}

/// The first index of `tag`, found in the way of hashbrown.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
fn first(tags: [u8; GROUP], tag: u8) -> Option<usize> {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8};
    let (tags, tag) = (u128::from_le_bytes(tags), u128::from_le_bytes([tag; GROUP]));
    // SAFETY: both types have 16 bytes, and any bits are valid in both.
    let tags: __m128i = unsafe { std::mem::transmute(tags) };
    // SAFETY: as above.
    let tag: __m128i = unsafe { std::mem::transmute(tag) };
    // SAFETY: the instruction is part of SSE2.
    let equal = unsafe { _mm_cmpeq_epi8(tags, tag) };
    // SAFETY: as above.
    let mask = unsafe { _mm_movemask_epi8(equal) };
    (mask != 0).then_some(mask.trailing_zeros() as usize)
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline]
fn first(tags: [u8; GROUP], tag: u8) -> Option<usize> {
    tags.iter().position(|&other| other == tag)
}

/// Prefetches the cache line of `address`, which may be any address.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, and does not fault at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction does not fault at any address, and changes neither memory nor
    // registers.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
