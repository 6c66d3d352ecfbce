//! Bursts as well as they can be had from outside of hashbrown: its raw table, prefetched by hand.
//!
//! ```text
//!     pass 1   hash every key             ask for its control bytes
//!     pass 2   read the control bytes     ask for the first entry whose tag is right
//!     pass 3   look up as usual
//! ```
//!
//! The raw table was public until 0.14. Entry `i` of it ends at `data_end() - i`, and control byte `i`
//! is at `data_end() + i`; the 16 bytes behind the last one repeat the first ones. A search begins at
//! the hash modulo the number of buckets, and a control byte has the upper 7 bits of the hash.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder as Foldhash;
use hashbrown_raw::raw::RawTable;

use crate::contestant::{BURST, Map};

/// Control bytes that hashbrown looks at at once.
const GROUP: usize = 16;

pub(crate) struct Prefetched<K> {
    table: RawTable<(K, u64)>,
    hasher: Foldhash,
}

impl<K: Hash> Prefetched<K> {
    pub(crate) fn new(hasher: Foldhash) -> Self {
        Self { table: RawTable::new(), hasher }
    }

    /// Where the control bytes are that a search for `hash` reads first.
    #[inline]
    fn group(&self, hash: u64) -> *const u8 {
        let home = hash as usize & (self.table.buckets() - 1);
        self.table.data_end().as_ptr().cast::<u8>().wrapping_add(home)
    }

    /// The entry that a search for `hash` will look at first, if there is one in the first group.
    #[inline]
    fn candidate(&self, hash: u64) -> Option<*const (K, u64)> {
        let group = self.group(hash).cast::<[u8; GROUP]>();
        // SAFETY: `group` is below the number of buckets, behind the last of which are 16 bytes more.
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
    fn burst<'a>(&'a self, keys: &[K; BURST], found: &mut [Option<&'a u64>; BURST]) {
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

/// The first place of `tag`, found the way that hashbrown does it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
fn first(tags: [u8; GROUP], tag: u8) -> Option<usize> {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8};
    let (tags, tag) = (u128::from_le_bytes(tags), u128::from_le_bytes([tag; GROUP]));
    // SAFETY: all bits are valid in both types, which have one size.
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

/// Asks for the cache line of `address`. Any address will do.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, and takes any address without a fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction takes any address without a fault, and changes nothing that Rust sees.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
