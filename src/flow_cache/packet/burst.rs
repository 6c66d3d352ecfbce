//! Processing of packets in bursts.
//!
//! ```text
//!     stage 1   normalise and hash each key      prefetch its index line
//!     stage 2   compare the tags of each line    prefetch the record of the first match
//!     stage 3   each packet in order, as one by one
//! ```
#![allow(unsafe_code)]

use core::hash::BuildHasher;
use core::mem::{MaybeUninit, needs_drop};

use super::lookup::{Arrival, STALE};
use super::observation::refused;
use super::result::Observed;
use super::state::Packet;
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::report::events::{ObserveError, RefusedFlow};
use crate::flow_cache::store::slots::KeyId;
use crate::hash::Query;
use crate::key::flow::FlowName;
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::table::lines::HomeLine;
use crate::timestamp::Timestamp;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Processes a burst of packets, each with its time, whose cache misses overlap. `each`
    /// receives the index of each packet and the result that [`observe`](Self::observe) would
    /// return, in order. Bursts of 32 are best.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u64> = FlowCache::new(Config::new(100)?);
    /// let times = [10, 11, 11].map(Timestamp::from_millis);
    /// let burst = [3, 7, 3].iter().zip(times).map(|(id, time)| (id, Packet::UDP, time));
    /// let mut made = vec![];
    /// cache.observe_batch(burst, |index, seen| {
    ///     let seen = seen.expect("the cache is not full");
    ///     *seen.flow += 1;
    ///     if seen.fresh {
    ///         made.push(index);
    ///     }
    /// });
    /// assert_eq!((made, cache.len(), cache.now()), (vec![0, 1], 2, times[2]));
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[inline]
    pub fn observe_batch<Q: Query<K, Key = K>>(
        &mut self,
        packets: impl IntoIterator<Item = (Q, Packet, Timestamp)>,
        mut each: impl FnMut(usize, Result<Observed<'_, K, V, A>, RefusedFlow<V>>),
    ) where
        V: Default,
    {
        let new = |_| Ok(V::default());
        self.try_observe_batch(packets, new, |index, seen| each(index, refused(seen)));
    }

    /// Processes a burst of packets like [`observe_batch`](Self::observe_batch), with values for
    /// new flows that may be refused, as by [`try_observe_with`](Self::try_observe_with): `new`
    /// receives the index of the packet.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// cache.observe(&7, Packet::UDP, Timestamp::ZERO)?;
    /// let burst = [3, 7, 3].map(|connection| (connection, Packet::UDP));
    /// let (inside, mut found) = ([false, false, true], vec![]);
    /// let new = |index: usize| if inside[index] { Ok(0) } else { Err("from outside") };
    /// let packets = burst.iter().map(|(id, packet)| (id, *packet, Timestamp::ZERO));
    /// cache.try_observe_batch(packets, new, |_, seen| {
    ///     found.push(seen.is_ok_and(|seen| seen.fresh));
    /// });
    /// assert_eq!((found, cache.len()), (vec![false, false, true], 2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_observe_batch<Q: Query<K, Key = K>, E>(
        &mut self,
        packets: impl IntoIterator<Item = (Q, Packet, Timestamp)>,
        mut new: impl FnMut(usize) -> Result<V, E>,
        mut each: impl FnMut(usize, Result<Observed<'_, K, V, A>, ObserveError<V, E>>),
    ) {
        let mut packets = packets.into_iter();
        let mut first = 0;
        loop {
            let mut burst = Burst::new();
            let mut slots = [STALE; BURST];
            let count = self.prefetch_burst(&mut packets, &mut burst, &mut slots);
            // The time of the last packet, and the cache time that follows from it.
            let (mut time, mut next) = (None, self.clock.now());
            for (number, slot) in slots[..count].iter().enumerate() {
                // SAFETY: the first `count` places are written, and this one was not taken.
                let Place { arrival, packet, time: at } =
                    unsafe { burst.places[number].assume_init_ref() };
                if time != Some(*at) {
                    (time, next) = (Some(*at), self.clock.next(*at));
                }
                self.begin_packet();
                let (index, packet) = (first + number, *packet);
                let seen = self.record_steady(*slot, arrival, packet, next);
                if let Some(seen) = seen {
                    each(index, Ok(self.observed(seen)));
                } else {
                    // SAFETY: as above.
                    let arrival = unsafe { burst.take(number) }.arrival;
                    let seen = self.observe_any(*slot, arrival, packet, next, || new(index));
                    next = self.clock.now();
                    each(index, seen.map(|seen| self.observed(seen)));
                }
            }
            if count < BURST {
                return;
            }
            first += count;
        }
    }

    /// Takes the next packets of a burst through stages 1 and 2, and returns their number: that
    /// many places are written.
    #[inline(always)]
    fn prefetch_burst<Q: Query<K, Key = K>>(
        &self,
        packets: &mut impl Iterator<Item = (Q, Packet, Timestamp)>,
        burst: &mut Burst<K>,
        slots: &mut [u32; BURST],
    ) -> usize {
        let (mut lines, mut count) = ([HomeLine::NONE; BURST], 0);
        for (place, line) in burst.places.iter_mut().zip(&mut lines) {
            let Some((key, packet, time)) = packets.next() else { break };
            let arrival = self.arrive(key);
            *line = self.index.home_line(arrival.hash);
            line.prefetch();
            place.write(Place { arrival, packet, time });
            count += 1;
            if needs_drop::<K>() {
                burst.written[count - 1] = true;
            }
        }
        for ((place, line), slot) in burst.places[..count].iter().zip(&lines).zip(slots) {
            // SAFETY: the first `count` places are written.
            let hash = unsafe { place.assume_init_ref() }.arrival.hash;
            if let Some(number) = line.candidate(hash) {
                *slot = number;
                self.store.prefetch(KeyId::from_bits(number));
            }
        }
        count
    }
}

/// A packet of a burst.
struct Place<K> {
    arrival: Arrival<K>,
    packet: Packet,
    time: Timestamp,
}

/// The packets of a burst.
struct Burst<K> {
    places: [MaybeUninit<Place<K>>; BURST],
    /// Whether a place is written, and not taken; of keys that need a drop only.
    written: [bool; BURST],
}

impl<K> Burst<K> {
    #[inline(always)]
    const fn new() -> Self {
        Self { places: [const { MaybeUninit::uninit() }; BURST], written: [false; BURST] }
    }

    /// Takes a packet.
    ///
    /// # Safety
    ///
    /// Its place is written, and was not taken.
    #[inline(always)]
    unsafe fn take(&mut self, number: usize) -> Place<K> {
        self.written[number] = false;
        // SAFETY: as the caller promises.
        unsafe { self.places[number].assume_init_read() }
    }
}

/// Drops the keys that were not taken, also if a method of a key or a function of the caller's has
/// panicked.
impl<K> Drop for Burst<K> {
    #[inline(always)]
    fn drop(&mut self) {
        if needs_drop::<K>() {
            for (place, written) in self.places.iter_mut().zip(self.written) {
                if written {
                    // SAFETY: it is written, and was not taken.
                    unsafe { place.assume_init_drop() };
                }
            }
        }
    }
}
