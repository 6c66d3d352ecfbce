//! Processing of packets in bursts.
//!
//! ```text
//!     stage 1   normalise and hash each key      prefetch its index line
//!     stage 2   compare the tags of each line    prefetch the record of the first match
//!     stage 3   each packet in order, as one by one
//! ```

use core::hash::BuildHasher;

use super::FlowCache;
use super::event::{ObserveError, RefusedFlow};
use super::lookup::{Carried, STALE};
use super::observe::refused;
use super::observed::Observed;
use super::state::Packet;
use super::store::Target;
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::table::lines::HomeLine;
use crate::timestamp::Timestamp;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Processes a burst of packets with one timestamp, whose cache misses overlap. `each` receives
    /// the index of each packet and the result that [`observe`](Self::observe) would return, in
    /// order. Bursts of 32 are best.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u64> = FlowCache::new(Config::new(100)?);
    /// let burst = [3, 7, 3].map(|connection| (connection, Packet::UDP));
    /// let mut made = vec![];
    /// cache.observe_batch(&burst, Timestamp::ZERO, |index, seen| {
    ///     let seen = seen.expect("the cache is not full");
    ///     *seen.flow += 1;
    ///     if seen.fresh {
    ///         made.push(index);
    ///     }
    /// });
    /// assert_eq!((made, cache.len()), (vec![0, 1], 2));
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    pub fn observe_batch(
        &mut self,
        packets: &[(K, Packet)],
        now: Timestamp,
        each: impl FnMut(usize, Result<Observed<'_, K, V, A>, RefusedFlow<V>>),
    ) where
        V: Default,
    {
        self.observe_batch_with(packets, now, |_| V::default(), each);
    }

    /// Processes a burst of packets like [`observe_batch`](Self::observe_batch), with the values
    /// for new flows: `new` receives the index of the packet.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, String> = FlowCache::new(Config::new(100)?);
    /// let burst = [3, 7, 3].map(|connection| (connection, Packet::UDP));
    /// let mut seen = vec![];
    /// cache.observe_batch_with(&burst, Timestamp::ZERO, |index| format!("by {index}"), |_, it| {
    ///     seen.push(it.expect("the cache is not full").flow.clone());
    /// });
    /// assert_eq!(seen, ["by 0", "by 1", "by 0"]);
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    pub fn observe_batch_with(
        &mut self,
        packets: &[(K, Packet)],
        now: Timestamp,
        mut new: impl FnMut(usize) -> V,
        mut each: impl FnMut(usize, Result<Observed<'_, K, V, A>, RefusedFlow<V>>),
    ) {
        let new = |index| Ok(new(index));
        self.try_observe_batch_with(packets, now, new, |index, seen| each(index, refused(seen)));
    }

    /// Processes a burst of packets like [`observe_batch_with`](Self::observe_batch_with), given
    /// the hashes of their normalised keys: see [`observe_hashed`](Self::observe_hashed).
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as packets.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let burst = [3, 7, 3].map(|connection| (connection, Packet::UDP));
    /// let hashes = [1003, 1007, 1003];
    /// let mut fresh = 0;
    /// cache.observe_batch_with_hashed(&hashes, &burst, Timestamp::ZERO, |_| 0, |_, seen| {
    ///     fresh += u32::from(seen.expect("the cache is not full").fresh);
    /// });
    /// assert_eq!((fresh, cache.len()), (2, 2));
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    pub fn observe_batch_with_hashed(
        &mut self,
        hashes: &[u64],
        packets: &[(K, Packet)],
        now: Timestamp,
        mut new: impl FnMut(usize) -> V,
        mut each: impl FnMut(usize, Result<Observed<'_, K, V, A>, RefusedFlow<V>>),
    ) {
        let new = |index| Ok(new(index));
        self.try_observe_batch_with_hashed(hashes, packets, now, new, |index, seen| {
            each(index, refused(seen));
        });
    }

    /// Processes a burst of packets like [`observe_batch_with`](Self::observe_batch_with), with
    /// values for new flows that may be refused, as by
    /// [`try_observe_with`](Self::try_observe_with): for packets that must not create a flow, such
    /// as those from outside of an address translation.
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
    /// cache.try_observe_batch_with(&burst, Timestamp::ZERO, new, |_, seen| {
    ///     found.push(seen.is_ok_and(|seen| seen.fresh));
    /// });
    /// assert_eq!((found, cache.len()), (vec![false, false, true], 2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn try_observe_batch_with<E>(
        &mut self,
        packets: &[(K, Packet)],
        now: Timestamp,
        mut new: impl FnMut(usize) -> Result<V, E>,
        mut each: impl FnMut(usize, Result<Observed<'_, K, V, A>, ObserveError<V, E>>),
    ) {
        let carry = |cache: &Self, _, key: &K| cache.carry(key);
        self.observe_bursts(packets, now, carry, &mut new, &mut each);
    }

    /// Processes a burst of packets like
    /// [`try_observe_batch_with`](Self::try_observe_batch_with), given the hashes of their
    /// normalised keys: see [`observe_hashed`](Self::observe_hashed).
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as packets.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let burst = [3, 7].map(|connection| (connection, Packet::UDP));
    /// let none = |_| Err("no port");
    /// cache.try_observe_batch_with_hashed(&[1, 2], &burst, Timestamp::ZERO, none, |_, seen| {
    ///     assert!(seen.is_err());
    /// });
    /// assert!(cache.is_empty());
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    pub fn try_observe_batch_with_hashed<E>(
        &mut self,
        hashes: &[u64],
        packets: &[(K, Packet)],
        now: Timestamp,
        mut new: impl FnMut(usize) -> Result<V, E>,
        mut each: impl FnMut(usize, Result<Observed<'_, K, V, A>, ObserveError<V, E>>),
    ) {
        assert_eq!(packets.len(), hashes.len(), "a hash for each packet");
        let carry = |_: &Self, index: usize, key: &K| Self::carry_hashed(hashes[index], key);
        self.observe_bursts(packets, now, carry, &mut new, &mut each);
    }

    /// Takes packets through the stages. `carry` normalises and hashes the key of a packet, given
    /// its index and its key.
    #[inline(always)]
    fn observe_bursts<E>(
        &mut self,
        packets: &[(K, Packet)],
        now: Timestamp,
        carry: impl Fn(&Self, usize, &K) -> Carried<K>,
        new: &mut impl FnMut(usize) -> Result<V, E>,
        each: &mut impl FnMut(usize, Result<Observed<'_, K, V, A>, ObserveError<V, E>>),
    ) {
        let now = self.begin_packet(now);
        for (burst, packets) in packets.chunks(BURST).enumerate() {
            let first = burst * BURST;
            let mut places = [const { (None, STALE) }; BURST];
            let mut lines = [HomeLine::NONE; BURST];
            let both = places.iter_mut().zip(&mut lines).zip(packets);
            for (number, ((place, line), (key, _))) in both.enumerate() {
                let carried = carry(self, first + number, key);
                *line = self.index.home_line(carried.hash);
                line.prefetch();
                place.0 = Some(carried);
            }
            let places = &mut places[..packets.len()];
            for ((carried, slot), line) in places.iter_mut().zip(&lines) {
                let Some(carried) = carried else { break };
                if let Some(number) = line.candidate(carried.hash) {
                    *slot = number;
                    self.store.prefetch(Target::from_bits(number));
                }
            }
            let both = places.iter_mut().zip(packets);
            for (number, ((carried, slot), (_, packet))) in both.enumerate() {
                self.forget_droppable();
                let Some(known) = carried else { break };
                let index = first + number;
                if let Some(seen) = self.record_steady(*slot, known, *packet, now) {
                    each(index, Ok(self.observed(seen)));
                } else if let Some(carried) = carried.take() {
                    let seen = self.observe_any(*slot, carried, *packet, |_| new(index));
                    each(index, seen.map(|seen| self.observed(seen)));
                }
            }
        }
    }
}
