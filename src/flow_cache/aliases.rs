//! Aliases of flows: further keys, such as translated tuples or connection IDs.

use core::hash::BuildHasher;

use super::FlowCache;
use super::event::{FlowMatch, NameError};
use super::store::{Alias, Handle, Target};
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::raw::index::OptIndex;

/// The maximum number of aliases of a flow.
const MAX_ALIASES: usize = 255;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
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
    /// let handle = cache.observe(&key, Packet::UDP, Timestamp::ZERO)?.handle;
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

    /// Adds an alias to a flow: `key`, as packets in the initiator's direction carry it. Returns
    /// the number of the alias, from 1 on. O(aliases of the flow).
    ///
    /// Packets of both directions find the flow by it, and it is removed with the flow.
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
    /// let handle = cache.observe(&inside, Packet::OTHER, Timestamp::ZERO)?.handle;
    /// // The tuple outside of the address translation.
    /// let outside = FourTuple { src: 80, sport: 1024, ..inside };
    /// assert_eq!(cache.add_name(handle, &outside), Ok(1));
    /// let answer = cache.observe(&outside.reversed(), Packet::OTHER, Timestamp::ZERO)?;
    /// assert_eq!((answer.handle, answer.direction), (handle, Direction::Reverse));
    /// assert_eq!(answer.name, 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn add_name(&mut self, handle: Handle, key: &K) -> Result<u8, NameError> {
        let slot = self.store.slot_of(handle).ok_or(NameError::NoFlow)?;
        if let Some(found) = self.find(key) {
            return Err(NameError::Taken(found.handle));
        }
        let number = self.free_number(slot).ok_or(NameError::TooMany)?;
        self.insert_alias(slot, key, number)?;
        self.touch(slot);
        Ok(number)
    }

    /// Adds an alias whose key is not in the index.
    pub(super) fn insert_alias(&mut self, slot: u32, key: &K, number: u8) -> Result<(), NameError> {
        let at = self.store.aliases.next_index();
        if !self.has_memory_for(self.store.aliases.growth(), 2) || at >= Target::MAX {
            return Err(NameError::Memory);
        }
        let (name, initiator) = key.normalized();
        let key = key.clone();
        let target = Target::alias(at, initiator);
        self.index.try_insert(name, target).map_err(|_| NameError::Memory)?;
        self.store.add_alias(slot, Alias { key, slot, next: OptIndex::NONE, number });
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
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// cache.add_name(handle, &8)?;
    /// cache.remove_name(handle, &8)?;
    /// assert_eq!(cache.find(&8), None);
    /// assert!(cache.remove_name(handle, &7).is_err(), "it is the key of the flow");
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove_name(&mut self, handle: Handle, key: &K) -> Result<(), NameError> {
        let slot = self.store.slot_of(handle).ok_or(NameError::NoFlow)?;
        let found = self.find(key).filter(|found| found.handle == handle);
        if found.ok_or(NameError::NoSuchName)?.name == 0 {
            return Err(NameError::PrimaryKey);
        }
        let name = key.normalized().0;
        let mut aliases = self.store.aliases(slot);
        let own = aliases.find(|(_, own)| own.key.normalized().0 == name);
        let (at, own) = own.ok_or(NameError::NoSuchName)?;
        let initiator = own.key.normalized().1;
        self.unlink(name, Target::alias(at, initiator));
        self.store.remove_alias(slot, at);
        self.touch(slot);
        Ok(())
    }
}
