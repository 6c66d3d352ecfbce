//! A packet comes: the way of a hit, which is short, and that of a miss.

use core::hash::{BuildHasher, Hash, Hasher};

use equivalent::Equivalent;

use super::FlowCache;
use super::event::{Observed, Refused};
use super::store::{Flow, Handle, Hit};
use crate::evict::Eviction;
use crate::flow::{Direction, FlowName};
use crate::life::{Class, Packet};
use crate::observe::Probes;
use crate::timestamp::Timestamp;

/// How many packets are looked up together: as many misses as a machine has under way, and some more.
const BURST: usize = 32;

/// How many flows that may have to leave are fetched ahead of a burst.
const VICTIMS: usize = 16;

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
    /// If there is no room for a new flow, and none may leave. The packet is counted; nothing else is
    /// changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Class, Config, Direction, FlowCache, FourTuple, Packet, TcpFlags, Timestamp};
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

    /// The same with a value for a flow that is made.
    ///
    /// # Errors
    ///
    /// As [`observe`](Self::observe).
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
        let mut probes = Probes::default();
        let place = self.index.get_observed_hashed(carried.hash, &carried.name, &mut probes);
        let hit = place.and_then(|place| self.store.follow(*place));
        self.ledger.metrics.look_up(probes, hit.is_some());
        match hit {
            Some(hit) if !self.is_reuse(hit, packet) => {
                Ok(self.pass(hit, carried.direction, packet))
            }
            _ => self.begin(key, carried, hit, packet, new()),
        }
    }

    /// Sees a burst of packets: their misses overlap. `each` gets what [`observe`](Self::observe)
    /// returns for each, with its number, in order.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Config, FlowCache, Packet, Timestamp};
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
    /// # Ok::<(), flowtable::ConfigError>(())
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
        for (burst, packets) in packets.chunks(BURST).enumerate() {
            self.observe_burst(packets, |number, seen| each(burst * BURST + number, seen));
        }
    }

    fn observe_burst(
        &mut self,
        packets: &[(K, Packet)],
        mut each: impl FnMut(usize, Result<Observed<'_, K, V>, Refused>),
    ) where
        V: Default,
    {
        let misses = self.ledger.metrics.misses;
        let found = self.find_burst(packets);
        for (number, ((key, packet), found)) in packets.iter().zip(found).enumerate() {
            each(
                number,
                match found {
                    // A packet before it in the burst may have ended the flow.
                    Some((handle, hit, direction))
                        if self.store.slot_of(handle).is_some() && !self.is_reuse(hit, *packet) =>
                    {
                        self.ledger.metrics.hits += 1;
                        Ok(self.pass(hit, direction, *packet))
                    }
                    _ => self.observe_with(key, *packet, Timestamp::ZERO, V::default),
                },
            );
        }
        self.recent_misses = (self.ledger.metrics.misses - misses) as usize;
    }

    /// The flows of a burst that are there before it, and which direction their packets carry.
    ///
    /// All stages ask for memory that the next one needs: first what the index has of the packets
    /// and of flows that will leave for them, then the flows.
    fn find_burst(&mut self, packets: &[(K, Packet)]) -> [Option<(Handle, Hit, Direction)>; BURST] {
        let (victims, count) = self.prefetch_victims();
        let wanted: [Wanted<K>; BURST] = core::array::from_fn(|number| {
            Wanted(packets.get(number).map(|(key, _)| self.carry(key)))
        });
        let victims = &victims[..count];
        let leaving = self.prefetch_names(victims);
        let hashes = wanted.each_ref().map(|wanted| wanted.0.as_ref().map_or(0, |key| key.hash));
        let mut places = [None; BURST];
        let count = packets.len().min(BURST);
        self.index.get_batch_hashed(&hashes[..count], &wanted[..count], &mut places[..count]);
        places.iter().flatten().for_each(|place| self.store.prefetch(**place));
        leaving[..victims.len()].iter().for_each(|hash| self.index.prefetch_entry(*hash));
        core::array::from_fn(|number| {
            let hit = self.store.follow(*places[number]?)?;
            Some((self.store.handle(hit.slot), hit, wanted[number].0.as_ref()?.direction))
        })
    }

    /// Asks for the flows that may have to leave in this burst, if about as many come as in the last.
    fn prefetch_victims(&self) -> ([u32; VICTIMS], usize) {
        let mut slots = [0; VICTIMS];
        if self.store.len() < self.config.flows {
            return (slots, 0);
        }
        // As many again get a second chance.
        let count = VICTIMS.min(2 * self.recent_misses);
        let count = self.ledger.policy.upcoming(&mut slots[..count]);
        slots[..count].iter().for_each(|slot| self.store.flows.prefetch(*slot));
        (slots, count)
    }

    /// Asks for where the index has these flows. Returns the hashes of their names.
    fn prefetch_names(&self, slots: &[u32]) -> [u64; VICTIMS] {
        let mut hashes = [0; VICTIMS];
        for (hash, slot) in hashes.iter_mut().zip(slots) {
            if let Some(flow) = self.store.flows.get(*slot) {
                *hash = self.carry(&flow.key).hash;
                self.index.prefetch_bucket(*hash);
            }
        }
        hashes
    }

    #[inline]
    fn carry(&self, key: &K) -> Carried<K> {
        let (name, direction) = key.normalized();
        Carried { hash: self.index.hash_of(&name), name, direction }
    }

    /// Where a key leads, found without a packet.
    pub(super) fn lead(&self, key: &K) -> Option<(Hit, Direction)> {
        let Carried { hash, name, direction } = self.carry(key);
        let place = self.index.get_hashed(hash, &name)?;
        Some((self.store.follow(*place)?, direction))
    }

    /// Whether a packet opens a connection between sockets whose last one is over.
    #[inline]
    fn is_reuse(&self, hit: Hit, packet: Packet) -> bool {
        packet.is_opening() && self.store.flow(hit.slot).life.course.class == Class::Closing
    }

    /// A packet of a flow that is there.
    #[inline]
    fn pass(&mut self, hit: Hit, carried: Direction, packet: Packet) -> Observed<'_, K, V> {
        let Hit { slot, name, initiator } = hit;
        let direction = if carried == initiator { Direction::Forward } else { Direction::Reverse };
        self.version += 1;
        let Flow { life, value, .. } = self.store.flow_mut(slot);
        life.last_seen = self.clock.now();
        life.version = self.version;
        life.is_used = true;
        let (before, handle) = (life.course.class, Handle { id: life.id, slot });
        life.course.see(packet, direction, self.config.close_rule);
        let class = life.course.class;
        self.ledger.policy.touch(slot);
        if class != before {
            self.ledger.reclass(slot, life, before, (&self.config, self.clock.now()));
        }
        Observed { flow: value, handle, direction, name, class, fresh: false, departed: None }
    }

    /// The first packet of a flow, which may have the name of one that is over.
    #[cold]
    #[inline(never)]
    fn begin(
        &mut self,
        key: &K,
        carried: Carried<K>,
        reused: Option<Hit>,
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
        let (slot, departed) = self.create(name, first, (packet, direction), reused, value)?;
        let Flow { life, value, .. } = self.store.flow_mut(slot);
        let (handle, class) = (Handle { id: life.id, slot }, life.course.class);
        Ok(Observed { flow: value, handle, direction, name: 0, class, fresh: true, departed })
    }
}

/// A key among those of a burst, or none.
struct Wanted<K>(Option<Carried<K>>);

impl<K: Hash> Hash for Wanted<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As the key itself: the index may have to hash it on its own.
        if let Some(key) = &self.0 {
            key.name.hash(state);
        }
    }
}

impl<K: Eq> Equivalent<K> for Wanted<K> {
    fn equivalent(&self, key: &K) -> bool {
        self.0.as_ref().is_some_and(|wanted| wanted.name == *key)
    }
}
