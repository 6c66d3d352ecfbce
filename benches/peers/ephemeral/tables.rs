//! The store and its peers: implementations of [`Bindings`].

use std::collections::VecDeque;
use std::hash::BuildHasher;

use flowtable::{EphemeralStore, Timestamp};
use hashbrown::HashMap;
use hashlink::LinkedHashMap;

use super::packets::Packet;
use super::subject::Bindings;

const WITHIN: &str = "the live bindings are within the capacity";

pub(crate) struct Store<S>(pub(crate) EphemeralStore<u64, u64, S>);

impl<S: BuildHasher> Bindings for Store<S> {
    #[inline]
    fn count(&mut self, tag: u64, now: u64) -> u64 {
        let value =
            self.0.get_or_insert_with(&tag, Timestamp::from_nanos(now), || 0).expect(WITHIN);
        *value += 1;
        *value
    }
    #[inline]
    fn burst(&mut self, packets: &[Packet], now: u64) -> u64 {
        let (now, mut sum) = (Timestamp::from_nanos(now), 0);
        self.0.get_or_insert_batch(
            packets.iter().map(|packet| &packet.tag),
            now,
            |_| 0,
            |_, value| {
                let value = value.expect(WITHIN);
                *value += 1;
                sum += *value;
            },
        );
        sum
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.0.allocation_size())
    }
}

/// A hash table, and a queue of tags in the order of expiry.
pub(crate) struct Queued<S> {
    values: HashMap<u64, u64, S>,
    expiries: VecDeque<(u64, u64)>,
    capacity: usize,
    lifetime: u64,
}

impl<S> Queued<S> {
    pub(crate) fn new(capacity: usize, lifetime: usize, hasher: S) -> Self {
        let values = HashMap::with_capacity_and_hasher(capacity, hasher);
        let expiries = VecDeque::with_capacity(capacity);
        Self { values, expiries, capacity, lifetime: lifetime as u64 }
    }
}

impl<S: BuildHasher> Bindings for Queued<S> {
    #[inline]
    fn count(&mut self, tag: u64, now: u64) -> u64 {
        while let Some((expiry, oldest)) = self.expiries.front() {
            if *expiry > now {
                break;
            }
            self.values.remove(oldest);
            self.expiries.pop_front();
        }
        let value = self.values.entry(tag).or_insert_with(|| {
            assert!(self.expiries.len() < self.capacity, "{WITHIN}");
            self.expiries.push_back((now + self.lifetime, tag));
            0
        });
        *value += 1;
        *value
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.values.allocation_size() + self.expiries.capacity() * size_of::<(u64, u64)>())
    }
}

/// A hash table whose entries are in a list in the order of insertion.
pub(crate) struct Linked<S> {
    /// Values and times of expiry.
    values: LinkedHashMap<u64, (u64, u64), S>,
    capacity: usize,
    lifetime: u64,
}

impl<S: BuildHasher> Linked<S> {
    pub(crate) fn new(capacity: usize, lifetime: usize, hasher: S) -> Self {
        let values = LinkedHashMap::with_capacity_and_hasher(capacity, hasher);
        Self { values, capacity, lifetime: lifetime as u64 }
    }
}

impl<S: BuildHasher> Bindings for Linked<S> {
    #[inline]
    fn count(&mut self, tag: u64, now: u64) -> u64 {
        while self.values.front().is_some_and(|(_, (_, expiry))| *expiry <= now) {
            self.values.pop_front();
        }
        // Not `entry`, which would move the entry to the end of the list.
        if let Some((value, _)) = self.values.get_mut(&tag) {
            *value += 1;
            return *value;
        }
        assert!(self.values.len() < self.capacity, "{WITHIN}");
        self.values.insert(tag, (1, now + self.lifetime));
        1
    }
}
