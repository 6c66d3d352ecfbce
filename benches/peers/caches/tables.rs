//! The caches and their peers: implementations of [`Cache`].

use std::hash::BuildHasher;

use flowtable::eviction::SecondChance;
use flowtable::hash::source_index::SourceIndex;
use flowtable::{BoundedCache, SourceHashCache};
use hashbrown::{HashMap, HashTable};

use super::packets::{Name, Packet};
use super::subject::Cache;

pub(crate) struct Sets<const WAYS: usize>(pub(crate) SourceHashCache<Name, u32, WAYS>);

impl<const WAYS: usize> Cache for Sets<WAYS> {
    // The lookups of hashbrown are inlined, too.
    #[inline(always)]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(packet.index, &packet.name).copied()
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        let _ = self.0.insert(packet.index, packet.name, value);
    }
    #[inline]
    fn burst(&mut self, packets: &[Packet]) -> u64 {
        let (keys, mut sum) = (packets.iter().map(|packet| (packet.index, &packet.name)), 0);
        self.0.get_batch(keys, |_, value| sum += value.map_or(0, |value| u64::from(*value)));
        sum
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.0.allocation_size())
    }
}

pub(crate) struct Bounded<S>(pub(crate) BoundedCache<Name, u32, SecondChance, S>);

impl<S: BuildHasher> Cache for Bounded<S> {
    // The lookups of hashlink are inlined, too.
    #[inline(always)]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(&packet.name).copied()
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        let _ = self.0.insert(packet.name, value);
    }
    #[inline]
    fn burst(&mut self, packets: &[Packet]) -> u64 {
        let (names, mut sum) = (packets.iter().map(|packet| &packet.name), 0);
        self.0.get_batch_mut(names, |_, value| sum += value.map_or(0, |value| u64::from(*value)));
        sum
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.0.allocation_size())
    }
}

/// A hash table, which grows where the others evict.
pub(crate) struct Hashed<S>(pub(crate) HashMap<Name, u32, S>);

impl<S: BuildHasher> Cache for Hashed<S> {
    const IS_BOUNDED: bool = false;

    #[inline]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(&packet.name).copied()
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        self.0.insert(packet.name, value);
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.0.allocation_size())
    }
}

/// A hash table with a given hash: the index times an odd number, as high and low bits are used.
pub(crate) struct Indexed(pub(crate) HashTable<(Name, u32)>);

#[inline]
fn spread(index: SourceIndex) -> u64 {
    u64::from(index.get()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

impl Cache for Indexed {
    const IS_BOUNDED: bool = false;

    #[inline]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        let entry = self.0.find(spread(packet.index), |entry| entry.0 == packet.name);
        entry.map(|entry| entry.1)
    }
    fn insert(&mut self, packet: &Packet, value: u32) {
        // Growing needs the indices, which are not stored: the capacity is reserved.
        let rehash = |_: &(Name, u32)| unreachable!("the capacity is reserved");
        self.0.insert_unique(spread(packet.index), (packet.name, value), rehash);
    }
}

/// A hash table with a list in the order of use, bounded.
pub(crate) struct Linked<S>(pub(crate) hashlink::LruCache<Name, u32, S>);

impl<S: BuildHasher> Cache for Linked<S> {
    #[inline]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(&packet.name).copied()
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        self.0.insert(packet.name, value);
    }
}

/// A hash table with a list in the order of use, of another crate.
pub(crate) struct Lru<S>(pub(crate) lru::LruCache<Name, u32, S>);

impl<S: BuildHasher> Cache for Lru<S> {
    #[inline]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(&packet.name).copied()
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        self.0.put(packet.name, value);
    }
}

/// A cache with S3-FIFO, for one thread.
pub(crate) struct Quick<S>(
    pub(crate) quick_cache::unsync::Cache<Name, u32, quick_cache::UnitWeighter, S>,
);

impl<S: BuildHasher> Cache for Quick<S> {
    #[inline]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(&packet.name).copied()
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        self.0.insert(packet.name, value);
    }
}

/// A cache for many threads, which counts uses in a log.
pub(crate) struct Moka<S>(pub(crate) moka::sync::Cache<Name, u32, S>);

impl<S: BuildHasher + Clone + Send + Sync + 'static> Cache for Moka<S> {
    #[inline]
    fn get(&mut self, packet: &Packet) -> Option<u32> {
        self.0.get(&packet.name)
    }
    #[inline]
    fn insert(&mut self, packet: &Packet, value: u32) {
        self.0.insert(packet.name, value);
    }
}
