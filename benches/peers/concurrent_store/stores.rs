//! The store and its peers: implementations of [`SharedStore`].

use std::collections::VecDeque;

use dashmap::DashMap;
use flowtable::concurrent::ConcurrentStore;
use flowtable::{DefaultHashBuilder, Timestamp};

use super::subject::SharedStore;

impl SharedStore for ConcurrentStore<u64, u64, DefaultHashBuilder> {
    type Worker = ();

    fn worker(&self, _: usize) {}

    #[inline]
    fn count(&self, _: &mut (), tag: u64, now: u64) -> u64 {
        let add = |value: &mut u64, _| {
            *value += 1;
            *value
        };
        let counted = self.get_or_insert_with(tag, Timestamp::from_nanos(now), || 0, add);
        counted.expect("the live bindings are within the capacity")
    }
}

/// The tags that a thread has created, in the order of expiry.
pub(crate) struct Queue {
    expiries: VecDeque<(u64, u64)>,
    lifetime: u64,
}

impl Queue {
    fn new(lifetime: usize) -> Self {
        Self { expiries: VecDeque::with_capacity(lifetime + 1), lifetime: lifetime as u64 }
    }

    /// Calls `remove` with each tag that has expired.
    #[inline]
    fn expire(&mut self, now: u64, remove: impl Fn(u64)) {
        while let Some((expiry, oldest)) = self.expiries.front() {
            if *expiry > now {
                break;
            }
            remove(*oldest);
            self.expiries.pop_front();
        }
    }

    #[inline]
    fn push(&mut self, tag: u64, now: u64) {
        self.expiries.push_back((now + self.lifetime, tag));
    }
}

impl SharedStore for DashMap<u64, u64, DefaultHashBuilder> {
    type Worker = Queue;

    fn worker(&self, lifetime: usize) -> Queue {
        Queue::new(lifetime)
    }

    #[inline]
    fn count(&self, queue: &mut Queue, tag: u64, now: u64) -> u64 {
        queue.expire(now, |oldest| _ = self.remove(&oldest));
        let mut value = self.entry(tag).or_insert_with(|| {
            queue.push(tag, now);
            0
        });
        *value += 1;
        *value
    }
}

impl SharedStore for scc::HashMap<u64, u64, DefaultHashBuilder> {
    type Worker = Queue;

    fn worker(&self, lifetime: usize) -> Queue {
        Queue::new(lifetime)
    }

    #[inline]
    fn count(&self, queue: &mut Queue, tag: u64, now: u64) -> u64 {
        queue.expire(now, |oldest| _ = self.remove_sync(&oldest));
        let mut value = self.entry_sync(tag).or_insert_with(|| {
            queue.push(tag, now);
            0
        });
        *value += 1;
        *value
    }
}
