//! A chained table with bounded chains, as the route cache of Linux had until 2012.
//!
//! ```text
//!     heads      0 │ 2      1 │ –      2 │ 0      3 │ –           buckets: a power of two
//!     slots      0 │ f, next – │   1 │ a, next – │   2 │ b, next 1 │
//!     chains     ▸ 0: b, a         ▸ 2: f
//! ```
//!
//! An insertion into a chain of the maximum length, its *elasticity*, evicts the least recently
//! used entry of the chain; in a full table the victim is that of the policy.

use flowtable::Timestamp;
use flowtable::eviction::{EntryStats, Eviction};

const NONE: u32 = u32::MAX;

/// An entry, in a chain or in the list of free slots.
#[derive(Clone, Copy)]
struct Entry<V> {
    hash: u64,
    key: u128,
    value: V,
    next: u32,
    last_use: u64,
    /// Whether it was used since the policy examined it.
    used: bool,
}

/// The table. It does not grow.
pub(crate) struct BoundedChains<V, P> {
    heads: Vec<u32>,
    slots: Vec<Entry<V>>,
    free: u32,
    len: usize,
    capacity: usize,
    elasticity: usize,
    /// A clock for `last_use`.
    uses: u64,
    policy: P,
}

impl<V: Copy, P: Eviction> BoundedChains<V, P> {
    pub(crate) fn new(capacity: usize, buckets: usize, elasticity: usize, policy: P) -> Self {
        let heads = vec![NONE; buckets.next_power_of_two()];
        let slots = Vec::with_capacity(capacity);
        Self { heads, slots, free: NONE, len: 0, capacity, elasticity, uses: 0, policy }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn allocation_size(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Entry<V>>();
        size_of_val(&*self.heads) + slots + self.policy.allocation_size()
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let mut next = self.heads[self.bucket(hash)];
        std::iter::from_fn(move || {
            let slot = next;
            next = self.slots.get(slot as usize)?.next;
            Some(slot)
        })
    }

    fn find(&self, hash: u64, key: u128) -> Option<u32> {
        self.chain(hash).find(|slot| self.slots[*slot as usize].key == key)
    }

    /// Returns the value of a key, and records a use.
    pub(crate) fn get_mut(&mut self, hash: u64, key: u128) -> Option<&mut V> {
        let slot = self.find(hash, key)?;
        self.uses += 1;
        self.policy.touch(slot);
        let entry = &mut self.slots[slot as usize];
        (entry.used, entry.last_use) = (true, self.uses);
        Some(&mut entry.value)
    }

    /// Returns the entry to evict for one with this hash.
    fn victim(&mut self, hash: u64) -> Option<u32> {
        if self.chain(hash).count() >= self.elasticity {
            return self.chain(hash).min_by_key(|slot| self.slots[*slot as usize].last_use);
        }
        if self.len < self.capacity {
            return None;
        }
        let Self { policy, slots, .. } = self;
        policy.victim(|slot| {
            let entry = &mut slots[slot as usize];
            let used = std::mem::take(&mut entry.used);
            EntryStats { used, last_use: Timestamp::from_nanos(entry.last_use) }
        })
    }

    /// Inserts an absent key at the head of its chain.
    pub(crate) fn insert(&mut self, hash: u64, key: u128, value: V) {
        if let Some(slot) = self.victim(hash) {
            self.free_slot(slot);
        }
        self.uses += 1;
        let (bucket, last_use) = (self.bucket(hash), self.uses);
        let next = self.heads[bucket];
        let entry = Entry { hash, key, value, next, last_use, used: false };
        let slot = match self.free {
            NONE => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
            slot => {
                self.free = self.slots[slot as usize].next;
                self.slots[slot as usize] = entry;
                slot
            }
        };
        self.heads[bucket] = slot;
        self.policy.insert(slot, 0);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, hash: u64, key: u128) {
        if let Some(slot) = self.find(hash, key) {
            self.free_slot(slot);
        }
    }

    fn free_slot(&mut self, slot: u32) {
        let Entry { hash, next, .. } = self.slots[slot as usize];
        let bucket = self.bucket(hash);
        match self.chain(hash).take_while(|other| *other != slot).last() {
            Some(before) => self.slots[before as usize].next = next,
            None => self.heads[bucket] = next,
        }
        self.policy.remove(slot);
        self.slots[slot as usize].next = self.free;
        self.free = slot;
        self.len -= 1;
    }
}
