//! Aliases of flows: further keys, such as translated tuples or connection IDs.

use core::hash::BuildHasher;

use super::Handle;
use super::slots::{KeyId, Match};
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::lookup::Arrival;
use crate::flow_cache::packet::record::Alias;
use crate::flow_cache::report::events::{AliasError, FlowMatch};
use crate::hash::Query;
use crate::key::flow::{Direction, FlowName};
use crate::memory::Allocator;
use crate::raw::slab::OptIndex;

/// The maximum number of aliases of a flow.
const MAX_ALIASES: usize = 255;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Returns the flow of `key`, which may be an alias. Does not extend the timeout. O(1).
    ///
    /// A flow whose idle timeout has passed at the time of the cache is not found, whether or not
    /// [`advance`](Self::advance) has ended it. So it is for all methods that take a key or a
    /// handle, but for [`remove`](Self::remove).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, FourTuple, Timestamp};
    ///
    /// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
    /// let key = FourTuple { src: 10, dst: 20, sport: 5353, dport: 53 };
    /// let handle = cache.observe(&key, Packet::UDP, Timestamp::ZERO)?.handle();
    /// let found = cache.find(&key.reversed()).expect("the flow exists");
    /// assert_eq!((found.handle, found.direction), (handle, Direction::Reverse));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find(&self, key: impl Query<K, Key = K>) -> Option<FlowMatch> {
        let found = self.resolve(&self.arrive(key));
        let Match { slot, alias, direction } = found.filter(|it| !self.has_expired(it.slot))?;
        Some(FlowMatch { handle: self.store.handle(slot), direction, alias })
    }

    /// Returns the flow of a packet that is quoted by an error of ICMP: `quoted` is the key of the
    /// quoted packet, as the sender wrote it. The returned direction is the direction of the error,
    /// opposite to the quoted packet. O(1).
    ///
    /// An error is no packet of the flow: it neither extends the timeout nor changes the class.
    /// Where the flow has been translated, [`alias`](FlowMatch::alias) is the number of the key
    /// that the error quotes: before the error is forwarded, the quoted packet has to be rewritten
    /// to the other key.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, FourTuple, Timestamp};
    ///
    /// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
    /// let inside = FourTuple { src: 10, dst: 90, sport: 40_000, dport: 53 };
    /// let seen = cache.observe(&inside, Packet::UDP, Timestamp::ZERO)?;
    /// let (handle, direction) = (seen.handle(), seen.direction);
    /// let outside = FourTuple { src: 80, sport: 1024, ..inside };
    /// cache.add_alias(handle, direction, &outside)?;
    /// // A router cannot reach 90, and quotes the packet that it has received.
    /// let error = cache.find_quoted(&outside).expect("the flow exists");
    /// assert_eq!((error.handle, error.direction, error.alias), (handle, Direction::Reverse, 1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find_quoted(&self, quoted: impl Query<K, Key = K>) -> Option<FlowMatch> {
        let found = self.find(quoted)?;
        Some(FlowMatch { direction: found.direction.opposite(), ..found })
    }

    /// Adds an alias to a flow: `key`, as packets in this direction carry it, relative to the
    /// initiator. Returns the number of the alias, from 1 on. O(aliases of the flow).
    ///
    /// Packets of both directions find the flow by it, and it is removed with the flow. For an
    /// address translation, pass the direction of the packet that was seen, and its key as it is
    /// sent on.
    ///
    /// # Errors
    ///
    /// If the flow has ended or has 255 aliases, if the key refers to a flow already, even to one
    /// that has expired and can be [removed](Self::remove), or if memory allocation fails.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, FourTuple, Timestamp};
    ///
    /// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
    /// let inside = FourTuple { src: 10, dst: 90, sport: 40_000, dport: 443 };
    /// let seen = cache.observe(&inside, Packet::OTHER, Timestamp::ZERO)?;
    /// let (handle, direction) = (seen.handle(), seen.direction);
    /// // The tuple outside of the address translation.
    /// let outside = FourTuple { src: 80, sport: 1024, ..inside };
    /// assert_eq!(cache.add_alias(handle, direction, &outside), Ok(1));
    /// let answer = cache.observe(&outside.reversed(), Packet::OTHER, Timestamp::ZERO)?;
    /// assert_eq!((answer.handle(), answer.direction), (handle, Direction::Reverse));
    /// assert_eq!(answer.alias, 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn add_alias(
        &mut self,
        handle: Handle,
        direction: Direction,
        key: impl Query<K, Key = K>,
    ) -> Result<u8, AliasError> {
        let has_directions = key.key().reversed() != *key.key();
        let mut arrival = self.arrive(key);
        let slot = self.slot_of(handle).ok_or(AliasError::NoFlow)?;
        if let Some(found) = self.resolve(&arrival) {
            return Err(AliasError::Taken(self.store.handle(found.slot)));
        }
        let number = self.free_number(slot).ok_or(AliasError::TooMany)?;
        if direction == Direction::Reverse && has_directions {
            arrival.direction = arrival.direction.opposite();
        }
        self.insert_alias(slot, arrival, number)?;
        self.touch(slot);
        Ok(number)
    }

    /// Adds an alias whose key is not in the index, as the initiator sends it.
    pub(crate) fn insert_alias(
        &mut self,
        slot: u32,
        mut arrival: Arrival<K>,
        number: u8,
    ) -> Result<(), AliasError> {
        let at = self.store.rest.aliases.next_index();
        let growth = self.store.rest.aliases.growth() + self.index.lines.growth(0);
        if !self.has_memory_for(growth) || at >= KeyId::MAX {
            return Err(AliasError::Memory);
        }
        let is_reserved = self.store.rest.aliases.try_reserve_one();
        is_reserved.map_err(|_| AliasError::Memory)?;
        self.prepare_insertion(&mut arrival);
        let Arrival { key, hash, direction: initiator } = arrival;
        let is_inserted = self.index.insert(hash, KeyId::alias(at), &self.store);
        is_inserted.map_err(|_| AliasError::Memory)?;
        let next = OptIndex::NONE;
        self.store.add_alias(slot, Alias { key, hash, initiator, slot, next, number });
        Ok(())
    }

    /// Returns the least number that no alias of the flow has.
    fn free_number(&self, slot: u32) -> Option<u8> {
        let mut taken = [false; MAX_ALIASES + 1];
        taken[0] = true;
        let aliases = self.store.aliases(slot);
        aliases.for_each(|(_, alias)| taken[usize::from(alias.number)] = true);
        taken.iter().position(|taken| !taken).map(|number| number as u8)
    }

    /// Removes a key of a flow: an alias, or the primary key, which the oldest alias replaces.
    /// O(aliases of the flow).
    ///
    /// The new primary key has the number 0, and its former number is free. Directions stay
    /// relative to the initiator of the flow. A flow that is
    /// [removed](crate::flow_cache::RemovedFlow) has its
    /// last primary key.
    ///
    /// # Errors
    ///
    /// If the flow has ended, if `key` is none of its keys or the only one, or if memory allocation
    /// fails. The cache is unchanged.
    ///
    /// # Example
    ///
    /// A QUIC connection retires the connection ID with which it began.
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, Timestamp};
    ///
    /// let (first, second, now) = (*b"\x0f\x1a\x2b\x3c", *b"\x77\x66\x55\x44", Timestamp::ZERO);
    /// let mut cache: FlowCache<[u8; 4], u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&first, Packet::UDP, now)?.handle();
    /// assert!(cache.remove_key(handle, &first).is_err(), "it is the only key");
    /// cache.add_alias(handle, Direction::Forward, &second)?;
    /// cache.remove_key(handle, &first)?;
    /// assert_eq!(cache.find(&first), None);
    /// assert_eq!(cache.find(&second).map(|it| (it.handle, it.alias)), Some((handle, 0)));
    /// // Another connection may have the first ID now.
    /// assert!(cache.observe(&first, Packet::UDP, now)?.fresh);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove_key(&mut self, handle: Handle, key: &K) -> Result<(), AliasError> {
        let slot = self.slot_of(handle).ok_or(AliasError::NoFlow)?;
        let key = key.normalized().0;
        if self.store.flow(slot).key == key {
            return self.promote_alias(slot);
        }
        let own = self.store.aliases(slot).find(|(_, own)| own.key == key);
        let (at, own) = own.ok_or(AliasError::NoSuchKey)?;
        self.index.remove(own.hash, KeyId::alias(at));
        self.store.remove_alias(slot, at);
        self.touch(slot);
        Ok(())
    }

    /// Replaces the primary key of the flow in a slot by its oldest alias.
    fn promote_alias(&mut self, slot: u32) -> Result<(), AliasError> {
        let (at, alias) = self.store.aliases(slot).last().ok_or(AliasError::PrimaryKey)?;
        let (hash, initiator) = (alias.hash, alias.initiator);
        let before = self.store.cold(slot).hash;
        let growth = self.index.lines.growth(1);
        if !self.has_memory_for(growth) {
            return Err(AliasError::Memory);
        }
        let is_reserved = self.index.try_reserve(hash, Some(before), &self.store);
        is_reserved.map_err(|_| AliasError::Memory)?;
        self.index.remove(hash, KeyId::alias(at));
        self.index.remove(before, KeyId::slot(slot));
        self.index.insert_reserved(hash, KeyId::slot(slot));
        let alias = self.store.remove_alias(slot, at).map(|alias| alias.key);
        self.store.cold_mut(slot).hash = hash;
        let flow = self.store.flow_mut(slot);
        flow.marks = flow.marks.with_initiator(initiator);
        let former = alias.map(|key| core::mem::replace(&mut flow.key, key));
        self.touch(slot);
        // Last, as it may panic.
        drop(former);
        Ok(())
    }
}
