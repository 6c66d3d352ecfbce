//! Processing of packets: the short path of a hit, and the long path of a miss.

use core::hash::{BuildHasher, Hash, Hasher};

use equivalent::Equivalent;

use super::FlowCache;
use super::accounting::Accounting;
use super::clock::Clock;
use super::config::Config;
use super::event::{Observed, Refused};
use super::state::{Class, Packet};
use super::store::{Flow, FlowState, Handle, Hit, Target};
use crate::eviction::Eviction;
use crate::key::flow::{Direction, FlowName};
use crate::probes::Probes;
use crate::timestamp::Timestamp;

/// Packets of a burst that are looked up together: somewhat more than a CPU has misses in flight.
const BURST: usize = 32;

/// Bursts shorter than this are looked up packet by packet.
const SMALL: usize = 16;

/// The key of a packet, normalised and hashed.
struct Carried<K> {
    hash: u64,
    /// Normalised.
    name: K,
    direction: Direction,
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Processes a packet: finds the flow of `key`, which may be an alias, or creates the flow.
    /// O(1).
    ///
    /// A new flow has this key, the sender of the packet as its initiator (or the receiver of a SYN
    /// with an ACK, which is an answer), and the default value. In a full cache it evicts another
    /// flow. If `now` is earlier than the time of the cache, the latter counts.
    ///
    /// # Errors
    ///
    /// If a new flow exceeds a limit, and no flow can be evicted. The packet is counted; no flow is
    /// changed. (If memory allocation fails, a flow may have been evicted in spite of it: `advance`
    /// reports it.)
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
    #[inline]
    pub fn observe(
        &mut self,
        key: &K,
        packet: Packet,
        now: Timestamp,
    ) -> Result<Observed<'_, K, V>, Refused>
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
    #[inline]
    pub fn observe_with(
        &mut self,
        key: &K,
        packet: Packet,
        now: Timestamp,
        new: impl FnOnce() -> V,
    ) -> Result<Observed<'_, K, V>, Refused> {
        self.clock.advance(now);
        let carried = self.carry(key);
        match self.find_steady(&carried, packet) {
            Some(hit) => {
                self.accounting.quick_hits += 1;
                self.version += 1;
                let context = Context::of(&self.config, &self.clock, self.version);
                let flow = self.store.flow_mut(hit.slot);
                Ok(record_hit(flow, hit, carried.direction, context, &mut self.accounting))
            }
            None => self.observe_any(key, carried, packet, new),
        }
    }

    /// Finds the flow of a packet that changes only times, as most do, by the first key compared.
    #[inline]
    fn find_steady(&self, carried: &Carried<K>, packet: Packet) -> Option<Hit> {
        if !packet.is_plain() {
            return None;
        }
        let hit = self.index.get_first_hashed(carried.hash, &carried.name)?.primary()?;
        let connection = &self.store.flows.get(hit.slot)?.state.connection;
        connection.is_steady(self.config.close_rule).then_some(hit)
    }

    #[inline(never)]
    fn observe_any(
        &mut self,
        key: &K,
        carried: Carried<K>,
        packet: Packet,
        new: impl FnOnce() -> V,
    ) -> Result<Observed<'_, K, V>, Refused> {
        let mut probes = Probes::default();
        let target = self.index.get_observed_hashed(carried.hash, &carried.name, &mut probes);
        let hit = target.and_then(|target| self.store.follow(*target));
        let flow = hit.and_then(|hit| Some((hit, &self.store.flows.get(hit.slot)?.state)));
        let is_over = flow.is_some_and(|(_, state)| is_reuse(state, packet));
        self.accounting.metrics.record_lookup(probes, flow.is_some() && !is_over);
        match flow {
            Some((hit, _)) if !is_over => {
                self.version += 1;
                let context = Context::of(&self.config, &self.clock, self.version);
                let flow = self.store.flow_mut(hit.slot);
                Ok(on_packet(flow, hit, (packet, carried.direction), context, &mut self.accounting))
            }
            over => {
                let over = over.map(|(hit, _)| hit.slot);
                self.begin(key, carried, over, packet, new())
            }
        }
    }

    /// Processes a burst of packets with one timestamp, whose cache misses overlap. `each` receives
    /// the index of each packet and the result that [`observe`](Self::observe) would return, in
    /// order. Bursts of 32 are best; those of fewer than 16 are processed packet by packet.
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
        mut each: impl FnMut(usize, Result<Observed<'_, K, V>, Refused>),
    ) where
        V: Default,
    {
        self.clock.advance(now);
        // Bursts of about equal size: none is much shorter than the others.
        let size = packets.len().div_ceil(packets.len().div_ceil(BURST).max(1)).max(1);
        for (burst, packets) in packets.chunks(size).enumerate() {
            let first = burst * size;
            if packets.len() < SMALL {
                for (number, (key, packet)) in packets.iter().enumerate() {
                    each(first + number, self.observe(key, *packet, now));
                }
            } else {
                self.observe_burst(packets, |number, seen| each(first + number, seen));
            }
        }
    }

    fn observe_burst(
        &mut self,
        packets: &[(K, Packet)],
        mut each: impl FnMut(usize, Result<Observed<'_, K, V>, Refused>),
    ) where
        V: Default,
    {
        let last_id = self.store.last_id();
        let (carried, targets) = self.find_burst(packets);
        let found = carried.into_iter().zip(targets);
        for (number, ((key, packet), (carried, target))) in packets.iter().zip(found).enumerate() {
            let hit = target.and_then(|target| self.store.follow(target));
            let flow = hit.and_then(|hit| Some((hit, self.store.flows.get_mut(hit.slot)?)));
            match flow {
                // An earlier packet of the burst may have ended the flow: a later flow has a
                // greater ID.
                Some((hit, flow))
                    if flow.state.id <= last_id && !is_reuse(&flow.state, *packet) =>
                {
                    self.version += 1;
                    self.accounting.quick_hits += 1;
                    let context = Context::of(&self.config, &self.clock, self.version);
                    let packet = (*packet, carried.direction);
                    each(number, Ok(on_packet(flow, hit, packet, context, &mut self.accounting)));
                }
                _ => each(number, self.observe_any(key, carried, *packet, V::default)),
            }
        }
    }

    /// Hashes the keys of a burst, and looks them up in the index. Prefetches the flows.
    fn find_burst(
        &self,
        packets: &[(K, Packet)],
    ) -> ([Carried<K>; BURST], [Option<Target>; BURST]) {
        // A short burst is padded with its last packet.
        let last = packets.len() - 1;
        let carried: [Carried<K>; BURST] =
            core::array::from_fn(|number| self.carry(&packets[number.min(last)].0));
        let hashes = carried.each_ref().map(|carried| carried.hash);
        let mut targets = [None; BURST];
        self.index.get_batch_hashed(&hashes, &carried, &mut targets);
        let targets = targets.map(Option::<&Target>::copied);
        targets.iter().flatten().for_each(|target| self.store.prefetch(*target));
        (carried, targets)
    }

    #[inline]
    fn carry(&self, key: &K) -> Carried<K> {
        let (name, direction) = key.normalized();
        Carried { hash: self.index.hash_of(&name), name, direction }
    }

    /// Resolves a key to a flow, without a packet.
    pub(super) fn resolve(&self, key: &K) -> Option<(Hit, Direction)> {
        let Carried { hash, name, direction } = self.carry(key);
        let hit = self.store.follow(*self.index.get_hashed(hash, &name)?)?;
        // Keys that violate the contract of `Hash` and `Eq` may refer to an empty slot.
        self.store.flows.get(hit.slot).map(|_| (hit, direction))
    }

    /// Processes the first packet of a flow, whose key may be that of a flow that has ended.
    #[cold]
    #[inline(never)]
    fn begin(
        &mut self,
        key: &K,
        carried: Carried<K>,
        over: Option<u32>,
        packet: Packet,
        value: V,
    ) -> Result<Observed<'_, K, V>, Refused> {
        let (mut key, mut initiator) = (key.clone(), carried.direction);
        let mut direction = Direction::Forward;
        let reversed = key.reversed();
        if packet.is_answer() && reversed != key {
            (key, initiator) = (reversed, initiator.opposite());
            direction = Direction::Reverse;
        }
        let (name, first) = ((carried.hash, carried.name), (key, initiator));
        let (slot, removed) = self.create(name, first, (packet, direction), over, value)?;
        let Flow { state, value, .. } = self.store.flow_mut(slot);
        let (handle, class) = (Handle { id: state.id, slot }, state.connection.class);
        Ok(Observed { flow: value, handle, direction, name: 0, class, fresh: true, removed })
    }
}

/// Hashes like the key: the index may rehash it.
impl<K: Hash> Hash for Carried<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl<K: Eq> Equivalent<K> for Carried<K> {
    #[inline]
    fn equivalent(&self, key: &K) -> bool {
        self.name == *key
    }
}

/// The configuration, time and version with which a packet is processed.
#[derive(Clone, Copy)]
struct Context<'a> {
    config: &'a Config,
    now: u64,
    version: u64,
}

impl<'a> Context<'a> {
    #[inline]
    fn of(config: &'a Config, clock: &Clock, version: u64) -> Self {
        Self { config, now: clock.now(), version }
    }
}

/// Returns whether a packet opens a connection between the sockets of a closing one.
#[inline]
fn is_reuse(state: &FlowState, packet: Packet) -> bool {
    packet.is_opening() && state.connection.class == Class::Closing
}

/// Processes a packet of an existing flow.
#[inline]
fn on_packet<'a, K, V, P: Eviction>(
    flow: &'a mut Flow<K, V>,
    hit: Hit,
    (packet, carried): (Packet, Direction),
    context: Context<'_>,
    accounting: &mut Accounting<P>,
) -> Observed<'a, K, V> {
    let Context { config, now, .. } = context;
    if !packet.is_plain() || !flow.state.connection.is_steady(config.close_rule) {
        let before = flow.state.connection.class;
        flow.state.connection.on_packet(packet, hit.direction(carried), config.close_rule);
        if flow.state.connection.class != before {
            flow.state.last_seen = now;
            accounting.change_class(hit.slot, &flow.state, before, (config, now));
        }
    }
    record_hit(flow, hit, carried, context, accounting)
}

/// Records a packet in its flow.
#[inline]
fn record_hit<'a, K, V, P: Eviction>(
    flow: &'a mut Flow<K, V>,
    hit: Hit,
    carried: Direction,
    context: Context<'_>,
    accounting: &mut Accounting<P>,
) -> Observed<'a, K, V> {
    let (direction, Hit { slot, name, .. }) = (hit.direction(carried), hit);
    let Flow { state, value, .. } = flow;
    state.last_seen = context.now;
    state.version = context.version;
    state.is_used = true;
    state.has_unreported = true;
    accounting.policy.touch(slot);
    let (handle, class) = (Handle { id: state.id, slot }, state.connection.class);
    Observed { flow: value, handle, direction, name, class, fresh: false, removed: None }
}
