//! Aliases of flows: further keys, such as translated tuples or connection IDs.

use core::hash::BuildHasher;

use super::FlowCache;
use super::event::{FlowMatch, NameError};
use super::handle::Handle;
use super::record::Alias;
use super::store::Target;
use crate::eviction::Eviction;
use crate::key::flow::{Direction, FlowName};
use crate::memory::Allocator;
use crate::raw::index::OptIndex;
use crate::table::lines::fold;

/// The maximum number of aliases of a flow.
const MAX_ALIASES: usize = 255;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Returns the flow of `key`, which may be an alias. Does not extend the timeout. O(1).
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
    pub fn find(&self, key: &K) -> Option<FlowMatch> {
        let (hit, carried) = self.resolve(key)?;
        let (handle, direction) = (self.store.handle(hit.slot), hit.direction(carried));
        Some(FlowMatch { handle, direction, name: hit.name })
    }

    /// Returns the flow of `key`, given the hash of its normalised form: see
    /// [`observe_hashed`](Self::observe_hashed), which has an example. O(1).
    #[must_use]
    pub fn find_hashed(&self, hash: u64, key: &K) -> Option<FlowMatch> {
        let (hit, carried) = self.resolve_hashed(hash, key)?;
        let (handle, direction) = (self.store.handle(hit.slot), hit.direction(carried));
        Some(FlowMatch { handle, direction, name: hit.name })
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
    /// If the flow has ended or has 255 aliases, if the key refers to a flow already, or if memory
    /// allocation fails.
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
    /// assert_eq!(cache.add_name(handle, direction, &outside), Ok(1));
    /// let answer = cache.observe(&outside.reversed(), Packet::OTHER, Timestamp::ZERO)?;
    /// assert_eq!((answer.handle(), answer.direction), (handle, Direction::Reverse));
    /// assert_eq!(answer.name, 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn add_name(
        &mut self,
        handle: Handle,
        direction: Direction,
        key: &K,
    ) -> Result<u8, NameError> {
        let name = alias_of(key, direction);
        self.add_alias(handle, self.index.first_hash(&name.0), name)
    }

    /// Adds an alias to a flow like [`add_name`](Self::add_name), given the hash of its normalised
    /// key: see [`observe_hashed`](Self::observe_hashed).
    ///
    /// # Errors
    ///
    /// As for [`add_name`](Self::add_name).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe_hashed(1007, &7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// assert_eq!(cache.add_name_hashed(handle, Direction::Forward, 1008, &8), Ok(1));
    /// assert_eq!(cache.find_hashed(1008, &8).map(|found| found.handle), Some(handle));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn add_name_hashed(
        &mut self,
        handle: Handle,
        direction: Direction,
        hash: u64,
        key: &K,
    ) -> Result<u8, NameError> {
        self.add_alias(handle, fold(hash), alias_of(key, direction))
    }

    fn add_alias(
        &mut self,
        handle: Handle,
        first: u32,
        (name, initiator): (K, Direction),
    ) -> Result<u8, NameError> {
        let slot = self.store.slot_of(handle).ok_or(NameError::NoFlow)?;
        if let Some(hit) = self.find_target(first, &name).and_then(|it| self.store.follow(it)) {
            return Err(NameError::Taken(self.store.handle(hit.slot)));
        }
        let number = self.free_number(slot).ok_or(NameError::TooMany)?;
        self.insert_alias(slot, first, (name, initiator), number)?;
        self.touch(slot);
        Ok(number)
    }

    /// Adds an alias whose name is not in the index.
    pub(super) fn insert_alias(
        &mut self,
        slot: u32,
        first: u32,
        (name, initiator): (K, Direction),
        number: u8,
    ) -> Result<(), NameError> {
        let at = self.store.rest.aliases.next_index();
        let growth = self.store.rest.aliases.growth() + self.index.growth(0);
        if !self.has_memory_for(growth) || at >= Target::MAX {
            return Err(NameError::Memory);
        }
        let is_reserved = self.store.rest.aliases.try_reserve_one();
        is_reserved.map_err(|_| NameError::Memory)?;
        let hash = self.index_hash(first, &name);
        let is_inserted = self.index.insert(hash, Target::alias(at), &self.store);
        is_inserted.map_err(|_| NameError::Memory)?;
        let next = OptIndex::NONE;
        self.store.add_alias(slot, Alias { name, hash, initiator, slot, next, number });
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

    /// Removes an alias of a flow. O(aliases of the flow).
    ///
    /// # Errors
    ///
    /// If the flow has ended, or `key` is the key of the flow or none of its aliases.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// cache.add_name(handle, Direction::Forward, &8)?;
    /// cache.remove_name(handle, &8)?;
    /// assert_eq!(cache.find(&8), None);
    /// assert!(cache.remove_name(handle, &7).is_err(), "it is the key of the flow");
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove_name(&mut self, handle: Handle, key: &K) -> Result<(), NameError> {
        let slot = self.store.slot_of(handle).ok_or(NameError::NoFlow)?;
        let name = key.normalized().0;
        if self.store.flow(slot).name == name {
            return Err(NameError::PrimaryKey);
        }
        let own = self.store.aliases(slot).find(|(_, own)| own.name == name);
        let (at, own) = own.ok_or(NameError::NoSuchName)?;
        self.index.remove(own.hash, Target::alias(at));
        self.store.remove_alias(slot, at);
        self.touch(slot);
        Ok(())
    }
}

/// The normalised name of a key that packets carry in a direction relative to the initiator, and
/// the direction of the name that is the initiator's. Keys that are their own reverse have one
/// direction only.
fn alias_of<K: FlowName>(key: &K, direction: Direction) -> (K, Direction) {
    let (name, carried) = key.normalized();
    match direction {
        Direction::Reverse if key.reversed() != *key => (name, carried.opposite()),
        _ => (name, carried),
    }
}
