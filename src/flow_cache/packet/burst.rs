//! Processing of packets in bursts.
//!
//! ```text
//!     stage 1   normalise and hash each key      prefetch its index line
//!     stage 2   compare the tags of each line    prefetch the record of the first match
//!     stage 3   each packet in order, as one by one
//! ```
#![allow(unsafe_code)]

use core::hash::BuildHasher;
use core::mem::MaybeUninit;

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
use crate::raw::burst::BurstVec;
use crate::raw::prefetch::BURST;
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
        let (mut burst, mut first) = (BurstVec::new(), 0);
        loop {
            let places = self.prefetch_burst(&mut packets, &mut burst);
            // The time of the last packet, and the cache time that follows from it.
            let (mut time, mut next) = (None, self.clock.now());
            for (index, place) in (first..).zip(places) {
                if time != Some(place.time) {
                    (time, next) = (Some(place.time), self.clock.next(place.time));
                }
                // SAFETY: stage 2 has written it.
                let slot = unsafe { place.slot.assume_init() };
                self.begin_packet();
                let seen = self.record_steady(slot, &place.arrival, place.packet, next);
                if let Some(seen) = seen {
                    each(index, Ok(self.observed(seen)));
                } else {
                    let Place { arrival, packet, .. } = place;
                    let new = || new(index);
                    let seen = self.observe_any(slot, arrival.clone(), *packet, next, new);
                    next = self.clock.now();
                    each(index, seen.map(|seen| self.observed(seen)));
                }
            }
            // Most callers pass one burst: they pay for no empty one.
            if places.len() < BURST || packets.size_hint().1 == Some(0) {
                return;
            }
            first += BURST;
        }
    }

    /// Takes the next packets of a burst through stages 1 and 2.
    #[inline]
    fn prefetch_burst<'b, Q: Query<K, Key = K>>(
        &self,
        packets: &mut impl Iterator<Item = (Q, Packet, Timestamp)>,
        burst: &'b mut BurstVec<Place<K>>,
    ) -> &'b [Place<K>] {
        let mut lines = [const { MaybeUninit::uninit() }; BURST];
        let places = lines.iter_mut().zip(packets).map(|(line, (key, packet, time))| {
            let arrival = self.arrive(key);
            line.write(self.index.lines.home_line(arrival.hash)).prefetch();
            Place { arrival, packet, time, slot: MaybeUninit::uninit() }
        });
        let places = burst.fill(places);
        for (place, line) in places.iter_mut().zip(&lines) {
            // SAFETY: each packet of the burst has its line.
            let line = unsafe { line.assume_init() };
            let number = line.candidate(place.arrival.hash);
            place.slot.write(number.unwrap_or(STALE));
            if let Some(number) = number {
                self.store.prefetch(KeyId::from_bits(number));
            }
        }
        places
    }
}

/// A packet of a burst.
struct Place<K> {
    arrival: Arrival<K>,
    packet: Packet,
    time: Timestamp,
    /// The first candidate of the home line, after stage 2.
    slot: MaybeUninit<u32>,
}
