//! Processing of packets, one by one.

use core::convert::Infallible;
use core::hash::BuildHasher;

use super::result::Observed;
use super::state::Packet;
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::report::events::{ObserveError, RefusedFlow};
use crate::flow_cache::store::Handle;
use crate::hash::Query;
use crate::key::flow::{Direction, FlowName};
use crate::memory::Allocator;
use crate::timestamp::Timestamp;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Processes a packet: finds the flow of `key`, which may be an alias, or creates the flow.
    /// O(1).
    ///
    /// A new flow has this key and the default value. Its initiator is the sender of the packet, or
    /// the receiver of a SYN with an ACK, which is an answer: [`direction`](Observed::direction) is
    /// reverse then. In a full cache a new flow evicts a flow. If `now` is earlier than the time
    /// of the cache, the latter counts. If the idle timeout of the flow has passed at that time,
    /// the flow ends, is [returned](Observed::removed) with that reason, and gives its place to a
    /// new flow.
    ///
    /// With a [`Prehashed`](crate::Prehashed) key, the hash may be any function of the normalised
    /// key, as long as all calls use the same function: the hash of a network card, if it is
    /// symmetric, or a hash that a dispatcher has computed. The hasher of the cache hashes keys
    /// without a hash, and all keys in [`restore`](Self::restore) and `==`. A cache is used either
    /// with given hashes or with its hasher, unless the hasher computes the given hashes, as
    /// [`Rss`](crate::hash::Rss) computes the hash of a card.
    ///
    /// # Errors
    ///
    /// If a new flow exceeds a limit, or memory allocation fails, and no flow can be evicted. The
    /// packet is counted; no flow is changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Class, Config, Packet};
    /// use flowtable::{Direction, FlowCache, FourTuple, TcpFlags, Timestamp};
    ///
    /// let mut cache: FlowCache<FourTuple<u32>, u64> = FlowCache::new(Config::new(100)?);
    /// let key = FourTuple { src: 10, dst: 20, sport: 40_000, dport: 443 };
    /// let opens = cache.observe(&key, Packet::tcp(TcpFlags::SYN), Timestamp::from_millis(1))?;
    /// assert!(opens.fresh);
    /// *opens.flow += 1;
    /// let answer = Packet::tcp(TcpFlags::SYN | TcpFlags::ACK);
    /// let answers = cache.observe(&key.reversed(), answer, Timestamp::from_millis(2))?;
    /// assert_eq!((answers.direction, *answers.flow), (Direction::Reverse, 1));
    /// assert_eq!(answers.class, Class::New);
    /// let last = cache.observe(&key, Packet::tcp(TcpFlags::ACK), Timestamp::from_millis(3))?;
    /// assert_eq!(last.class, Class::Established);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn observe(
        &mut self,
        key: impl Query<K, Key = K>,
        packet: Packet,
        now: Timestamp,
    ) -> Result<Observed<'_, K, V, A>, RefusedFlow<V>>
    where
        V: Default,
    {
        self.observe_with(key, packet, now, V::default)
    }

    /// Processes a packet like [`observe`](Self::observe), with the value for a new flow, which is
    /// computed before another flow is evicted.
    ///
    /// # Errors
    ///
    /// As for [`observe`](Self::observe).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, String> = FlowCache::new(Config::new(100)?);
    /// for _ in 0..2 {
    ///     let seen = cache.observe_with(&7, Packet::UDP, Timestamp::ZERO, || "new".to_owned())?;
    ///     assert_eq!(seen.flow, "new");
    /// }
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn observe_with(
        &mut self,
        key: impl Query<K, Key = K>,
        packet: Packet,
        now: Timestamp,
        new: impl FnOnce() -> V,
    ) -> Result<Observed<'_, K, V, A>, RefusedFlow<V>> {
        refused(self.try_observe_with(key, packet, now, || Ok(new())))
    }

    /// Processes a packet like [`observe_with`](Self::observe_with), with a value for a new flow
    /// that may be refused: for those who have to allocate something else for it, such as a port.
    ///
    /// If `new` returns an error, there is no flow, no other flow is evicted, and nothing is
    /// counted but the packet. So `|| Err(…)` is for packets that must not create a flow, such as
    /// those from outside of an address translation.
    ///
    /// # Errors
    ///
    /// The error of `new`, or as for [`observe`](Self::observe).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, ObserveError, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u16> = FlowCache::new(Config::new(100)?);
    /// let mut ports = vec![1024];
    /// let mut observe = |id| {
    ///     let port = || ports.pop().ok_or("no port");
    ///     let seen = cache.try_observe_with(&id, Packet::UDP, Timestamp::ZERO, port);
    ///     seen.map(|seen| *seen.flow)
    /// };
    /// assert_eq!((observe(7), observe(7)), (Ok(1024), Ok(1024)));
    /// assert_eq!(observe(8), Err(ObserveError::New("no port")));
    /// assert_eq!(cache.len(), 1);
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[inline(always)]
    pub fn try_observe_with<E>(
        &mut self,
        key: impl Query<K, Key = K>,
        packet: Packet,
        now: Timestamp,
        new: impl FnOnce() -> Result<V, E>,
    ) -> Result<Observed<'_, K, V, A>, ObserveError<V, E>> {
        self.begin_packet();
        let next = self.clock.next(now);
        let arrival = self.arrive(key);
        self.observe_arrival(arrival, packet, next, new)
    }

    /// Processes a packet of a flow that is known by its handle, without a lookup: `direction` is
    /// the direction of the packet relative to the initiator. Returns `None` if the flow has ended,
    /// or if the packet is a SYN between the sockets of a closing flow. The result has the number
    /// of the primary key as its [`alias`](Observed::alias), also for a packet with an alias. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Class, Config, Packet};
    /// use flowtable::{Direction, FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// let now = Timestamp::from_secs(2);
    /// let seen = cache.observe_at(handle, Direction::Reverse, Packet::UDP, now);
    /// assert_eq!(seen.map(|seen| seen.class), Some(Class::Established));
    /// cache.remove(handle);
    /// assert!(cache.observe_at(handle, Direction::Reverse, Packet::UDP, now).is_none());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn observe_at(
        &mut self,
        handle: Handle,
        direction: Direction,
        packet: Packet,
        now: Timestamp,
    ) -> Option<Observed<'_, K, V, A>> {
        self.clock.advance(now);
        self.store.forget_removed();
        let slot = self.store.slot_of(handle)?;
        self.observe_slot(slot, direction, packet)
    }
}

/// The result of a packet whose new flow has a value in any case.
#[inline]
pub(crate) fn refused<T, V>(
    observed: Result<T, ObserveError<V, Infallible>>,
) -> Result<T, RefusedFlow<V>> {
    observed.map_err(|error| match error {
        ObserveError::Refused(refused) => refused,
        ObserveError::New(never) => match never {},
    })
}
