//! A packet comes: the way of a hit, which is short, and that of a miss.

use core::hash::{BuildHasher, Hash, Hasher};

use equivalent::Equivalent;

use super::FlowCache;
use super::accounting::Ledger;
use super::clock::Clock;
use super::config::Config;
use super::event::{Observed, Refused};
use super::state::{Class, Packet};
use super::store::{Flow, Handle, Hit, Life, Place};
use crate::eviction::Eviction;
use crate::key::flow::{Direction, FlowName};
use crate::probes::Probes;
use crate::timestamp::Timestamp;

/// How many packets are looked up together: as many misses as a machine has under way, and some more.
const BURST: usize = 32;

/// Packets that are fewer are looked up one by one.
const SMALL: usize = 16;

/// What a packet's key has become.
struct Carried<K> {
    hash: u64,
    /// Normalised.
    name: K,
    direction: Direction,
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Sees a packet: finds the flow that `key` is a name of, or makes one. O(1).
    ///
    /// A flow that is made has the key for its first name, the packet's sender for its initiator (but for
    /// a SYN with an ACK, which is an answer), and the default value. If there is no room, another one
    /// leaves for it. `now` counts as the latest time so far, if it is earlier than that.
    ///
    /// # Errors
    ///
    /// If there is no room for a new flow, and none may leave. The packet is counted; no flow is changed.
    /// (Where memory itself cannot be had, one may have left in vain: `advance` tells.)
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

    /// The same with a value for a flow that is made. It is made before anyone leaves.
    ///
    /// # Errors
    ///
    /// As [`observe`](Self::observe).
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
        self.clock.pass(now);
        let carried = self.carry(key);
        match self.find_steady(&carried, packet) {
            Some(hit) => {
                self.ledger.quick_hits += 1;
                self.version += 1;
                let moment = Moment::of(&self.config, &self.clock, self.version);
                let flow = self.store.flow_mut(hit.slot);
                Ok(note(flow, hit, carried.direction, moment, &mut self.ledger))
            }
            None => self.observe_any(key, carried, packet, new),
        }
    }

    /// The flow of a packet that changes nothing but times, as most do, found at the first look.
    #[inline]
    fn find_steady(&self, carried: &Carried<K>, packet: Packet) -> Option<Hit> {
        if !packet.is_plain() {
            return None;
        }
        let hit = self.index.get_first_hashed(carried.hash, &carried.name)?.first_name()?;
        let course = &self.store.flows.get(hit.slot)?.life.course;
        course.is_steady(self.config.close_rule).then_some(hit)
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
        let place = self.index.get_observed_hashed(carried.hash, &carried.name, &mut probes);
        let hit = place.and_then(|place| self.store.follow(*place));
        let flow = hit.and_then(|hit| Some((hit, &self.store.flows.get(hit.slot)?.life)));
        let is_over = flow.is_some_and(|(_, life)| is_reuse(life, packet));
        self.ledger.metrics.look_up(probes, flow.is_some() && !is_over);
        match flow {
            Some((hit, _)) if !is_over => {
                self.version += 1;
                let moment = Moment::of(&self.config, &self.clock, self.version);
                let flow = self.store.flow_mut(hit.slot);
                Ok(pass(flow, hit, (packet, carried.direction), moment, &mut self.ledger))
            }
            over => {
                let over = over.map(|(hit, _)| hit.slot);
                self.begin(key, carried, over, packet, new())
            }
        }
    }

    /// Sees a burst of packets of the same moment: their cache misses overlap. `each` gets what
    /// [`observe`](Self::observe) returns for each, with its number, in order. Bursts of 32 are best, and
    /// fewer than 16 are seen one by one.
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
    /// cache.observe_batch(&burst, Timestamp::ZERO, |number, seen| {
    ///     let seen = seen.expect("there is room");
    ///     *seen.flow += 1;
    ///     if seen.fresh {
    ///         made.push(number);
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
        self.clock.pass(now);
        // Bursts of about the same size: none is much shorter than the others.
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
        let (carried, places) = self.find_burst(packets);
        let found = carried.into_iter().zip(places);
        for (number, ((key, packet), (carried, place))) in packets.iter().zip(found).enumerate() {
            let hit = place.and_then(|place| self.store.follow(place));
            let flow = hit.and_then(|hit| Some((hit, self.store.flows.get_mut(hit.slot)?)));
            match flow {
                // A packet before it in the burst may have ended the flow: another one has a greater id.
                Some((hit, flow)) if flow.life.id <= last_id && !is_reuse(&flow.life, *packet) => {
                    self.version += 1;
                    self.ledger.quick_hits += 1;
                    let moment = Moment::of(&self.config, &self.clock, self.version);
                    let packet = (*packet, carried.direction);
                    each(number, Ok(pass(flow, hit, packet, moment, &mut self.ledger)));
                }
                _ => each(number, self.observe_any(key, carried, *packet, V::default)),
            }
        }
    }

    /// What the packets of a burst carry, and what the index has of them before it. The flows are asked for.
    fn find_burst(&self, packets: &[(K, Packet)]) -> ([Carried<K>; BURST], [Option<Place>; BURST]) {
        // A short burst is filled up with its last packet.
        let last = packets.len() - 1;
        let carried: [Carried<K>; BURST] =
            core::array::from_fn(|number| self.carry(&packets[number.min(last)].0));
        let hashes = carried.each_ref().map(|carried| carried.hash);
        let mut places = [None; BURST];
        self.index.get_batch_hashed(&hashes, &carried, &mut places);
        let places = places.map(Option::<&Place>::copied);
        places.iter().flatten().for_each(|place| self.store.prefetch(*place));
        (carried, places)
    }

    #[inline]
    fn carry(&self, key: &K) -> Carried<K> {
        let (name, direction) = key.normalized();
        Carried { hash: self.index.hash_of(&name), name, direction }
    }

    /// Where a key leads, found without a packet.
    pub(super) fn lead(&self, key: &K) -> Option<(Hit, Direction)> {
        let Carried { hash, name, direction } = self.carry(key);
        let hit = self.store.follow(*self.index.get_hashed(hash, &name)?)?;
        // Keys that break their law may lead to where no flow is.
        self.store.flows.get(hit.slot).map(|_| (hit, direction))
    }

    /// The first packet of a flow, which may have the name of one that is over.
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
        let (slot, departed) = self.create(name, first, (packet, direction), over, value)?;
        let Flow { life, value, .. } = self.store.flow_mut(slot);
        let (handle, class) = (Handle { id: life.id, slot }, life.course.class);
        Ok(Observed { flow: value, handle, direction, name: 0, class, fresh: true, departed })
    }
}

/// As the key itself: the index may have to hash it on its own.
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

/// When a packet comes.
#[derive(Clone, Copy)]
struct Moment<'a> {
    config: &'a Config,
    now: u64,
    version: u64,
}

impl<'a> Moment<'a> {
    #[inline]
    fn of(config: &'a Config, clock: &Clock, version: u64) -> Self {
        Self { config, now: clock.now(), version }
    }
}

/// Whether a packet opens a connection between sockets whose last one is over.
#[inline]
fn is_reuse(life: &Life, packet: Packet) -> bool {
    packet.is_opening() && life.course.class == Class::Closing
}

/// A packet of a flow that is there.
#[inline]
fn pass<'a, K, V, P: Eviction>(
    flow: &'a mut Flow<K, V>,
    hit: Hit,
    (packet, carried): (Packet, Direction),
    moment: Moment<'_>,
    ledger: &mut Ledger<P>,
) -> Observed<'a, K, V> {
    let Moment { config, now, .. } = moment;
    if !packet.is_plain() || !flow.life.course.is_steady(config.close_rule) {
        let before = flow.life.course.class;
        flow.life.course.see(packet, hit.direction(carried), config.close_rule);
        if flow.life.course.class != before {
            flow.life.last_seen = now;
            ledger.reclass(hit.slot, &flow.life, before, (config, now));
        }
    }
    note(flow, hit, carried, moment, ledger)
}

/// Notes in a flow that it has had a packet.
#[inline]
fn note<'a, K, V, P: Eviction>(
    flow: &'a mut Flow<K, V>,
    hit: Hit,
    carried: Direction,
    moment: Moment<'_>,
    ledger: &mut Ledger<P>,
) -> Observed<'a, K, V> {
    let (direction, Hit { slot, name, .. }) = (hit.direction(carried), hit);
    let Flow { life, value, .. } = flow;
    life.last_seen = moment.now;
    life.version = moment.version;
    life.is_used = true;
    life.has_news = true;
    ledger.policy.touch(slot);
    let (handle, class) = (Handle { id: life.id, slot }, life.course.class);
    Observed { flow: value, handle, direction, name, class, fresh: false, departed: None }
}
