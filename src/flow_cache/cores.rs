//! Flow caches of several cores: each has its own, and no lock.
//!
//! ```text
//!                       the card's hash of the packet, symmetric
//!     packet ──▸ queue ─────────────────────────────────────────▸ worker 0: FlowCache
//!                  │                                              worker 1: FlowCache
//!                  └─ redirected: keys that hash elsewhere ─────▸ worker 2: FlowCache
//! ```
//!
//! A network card with a symmetric key
//! ([`Toeplitz::SYMMETRIC`](crate::hash::source_index::Toeplitz::SYMMETRIC)) puts both directions
//! of a flow into one queue, so a flow has one worker, which shares nothing with the others. Any
//! number of workers exports the records that one cache exports, if all packets have times of one
//! clock that does not go back: each cache has a latest time of its own. Each cache has a part of
//! the capacity, and evicts when its part is full. The queues model a card with 128 entries in its
//! indirection table, so at most 128 workers receive packets, and the shares of a hundred differ
//! by a factor of two.
//!
//! An address translation breaks the symmetry: answers come by another tuple, the alias, which may
//! be of another queue. Two remedies:
//!
//! 1. *Choose the port*: of a free port, the alias is of the own queue with a probability of one in
//!    as many as there are workers. So a few attempts find one, and nothing is redirected.
//! 2. *Redirect*: the worker of the flow announces the alias to the one of its queue, whose
//!    [`Steering`] maps such packets to the worker of the flow. When the flow ends, the alias is
//!    removed from it: keep the aliases in the value of the flow, as the event of its end has the
//!    key only. The worker of the flow processes redirected packets without steering them again.
//!
//! # Example
//!
//! A dispatcher in software in front of N workers; a card does the same.
//!
//! ```
//! use flowtable::flow_cache::{Config, Event, Packet, Steering};
//! use flowtable::hash::source_index::Toeplitz;
//! use flowtable::{FlowCache, FourTuple, Timestamp};
//! use std::num::NonZero;
//! use std::sync::mpsc;
//! use std::thread;
//!
//! type Key = FourTuple<u32>;
//!
//! /// The keys and packets of all flows, in order.
//! fn records(packets: &[(Key, Timestamp)], workers: NonZero<usize>) -> Vec<(Key, u64)> {
//!     let steering = Steering::new(workers, |key: &Key| Toeplitz::SYMMETRIC.hash(key));
//!     let mut records = thread::scope(|scope| {
//!         let (queues, threads): (Vec<_>, Vec<_>) = (0..workers.get())
//!             .map(|_| {
//!                 let (queue, packets) = mpsc::channel();
//!                 (queue, scope.spawn(move || worker(packets)))
//!             })
//!             .unzip();
//!         for (key, time) in packets {
//!             queues[steering.worker(key)].send((*key, *time)).expect("it is running");
//!         }
//!         drop(queues);
//!         let records = threads.into_iter().map(|thread| thread.join().expect("no panic"));
//!         records.flatten().collect::<Vec<_>>()
//!     });
//!     records.sort();
//!     records
//! }
//!
//! fn worker(packets: mpsc::Receiver<(Key, Timestamp)>) -> Vec<(Key, u64)> {
//!     let mut cache: FlowCache<Key, u64> = FlowCache::new(Config::new(10_000).expect("some"));
//!     let mut records = vec![];
//!     for (key, now) in packets {
//!         cache.advance(now, usize::MAX, |event| match event {
//!             Event::Ended(flow) => records.push((flow.key, flow.value)),
//!             Event::Active(_) => unreachable!("there is no active timeout"),
//!         });
//!         *cache.observe(&key, Packet::UDP, now).expect("no flow is pinned").flow += 1;
//!     }
//!     records.extend(cache.drain().map(|flow| (flow.key, flow.value)));
//!     records
//! }
//!
//! let key = |number: u32| FourTuple { src: number % 50, dst: 99, sport: 5353, dport: 53 };
//! let packets: Vec<_> = (0..1000)
//!     .map(|number| {
//!         let key = key(number);
//!         let key = if number % 3 == 0 { key.reversed() } else { key };
//!         (key, Timestamp::from_secs(number.into()))
//!     })
//!     .collect();
//! let one = records(&packets, NonZero::new(1).unwrap());
//! assert_eq!(records(&packets, NonZero::new(3).unwrap()), one);
//! ```

use core::fmt;
use core::num::NonZero;

use crate::key::flow::FlowName;
use crate::trash::TrashMap;

/// Entries of a card's indirection table, from a hash to a queue.
const INDIRECTION: u32 = 128;

/// Maps packets to workers, so that all packets of a flow have one worker: see the
/// [module](self).
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::Steering;
/// use flowtable::hash::source_index::Toeplitz;
/// use flowtable::FourTuple;
/// use std::num::NonZero;
///
/// let workers = NonZero::new(4).unwrap();
/// let mut steering = Steering::new(workers, |key: &FourTuple<u32>| Toeplitz::SYMMETRIC.hash(key));
/// let inside = FourTuple { src: 10, dst: 90, sport: 40_000, dport: 443 };
/// let own = steering.worker(&inside);
/// assert_eq!(steering.worker(&inside.reversed()), own);
///
/// // A port for the outside tuple, so that answers come to the same worker …
/// let outside = |sport| FourTuple { src: 80, sport, ..inside };
/// let port = (1024..).find(|port| steering.queue(&outside(*port)) == own).unwrap();
/// assert!(port < 1024 + 100);
/// // … or any port, and its packets are redirected.
/// let (port, other) = (1024..)
///     .map(|port| (port, steering.queue(&outside(port))))
///     .find(|(_, queue)| *queue != own)
///     .unwrap();
/// steering.redirect(&outside(port), own);
/// assert_eq!(steering.worker(&outside(port).reversed()), own);
/// steering.remove_redirect(&outside(port));
/// assert_eq!((steering.worker(&outside(port)), steering.len()), (other, 0));
/// assert!(steering.is_empty());
/// ```
#[doc(alias("rss", "sharding"))]
#[derive(Clone)]
pub struct Steering<K, F> {
    workers: NonZero<usize>,
    hash: F,
    /// The workers of keys that are not of their queue, normalised.
    elsewhere: TrashMap<K, usize>,
}

impl<K: FlowName, F: Fn(&K) -> u32> Steering<K, F> {
    /// Creates a steering for `workers` queues, given the hash of the card. If the hash differs
    /// between the directions of a flow, the steering uses the hash of the normalised key.
    #[must_use]
    pub fn new(workers: NonZero<usize>, hash: F) -> Self {
        Self { workers, hash, elsewhere: TrashMap::new() }
    }

    /// Returns the queue of a packet: by the last seven bits of the hash in turns, which is the
    /// usual indirection table of a card.
    #[must_use]
    pub fn queue(&self, key: &K) -> usize {
        let hash = (self.hash)(&key.normalized().0);
        (hash % INDIRECTION) as usize % self.workers
    }

    /// Returns the worker of a packet: the worker of its queue, unless its key was
    /// [redirected](Self::redirect). O(1).
    #[must_use]
    pub fn worker(&self, key: &K) -> usize {
        if self.elsewhere.is_empty() {
            return self.queue(key);
        }
        let redirected = self.elsewhere.get(&key.normalized().0).copied();
        redirected.unwrap_or_else(|| self.queue(key))
    }

    /// Lets packets of both directions with this key go to a worker. Needs memory only if that is
    /// not the worker of their queue. O(1).
    pub fn redirect(&mut self, key: &K, worker: usize) {
        let normalized = key.normalized().0;
        if self.queue(key) == worker {
            self.elsewhere.remove(&normalized);
        } else {
            self.elsewhere.insert(normalized, worker);
        }
    }

    /// Lets packets with this key go to the worker of their queue again. O(1).
    pub fn remove_redirect(&mut self, key: &K) {
        self.elsewhere.remove(&key.normalized().0);
    }

    /// Returns the number of keys that are redirected.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elsewhere.len()
    }

    /// Returns whether no key is redirected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elsewhere.is_empty()
    }
}

impl<K, F> fmt::Debug for Steering<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steering").field("workers", &self.workers).finish_non_exhaustive()
    }
}
