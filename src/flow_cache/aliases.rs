//! Further names of a flow: what its packets are called behind a translation, or a connection's IDs.

use core::hash::BuildHasher;

use super::FlowCache;
use super::event::{FlowMatch, NameError};
use super::store::{Handle, NO_NAME, Name, Place};
use crate::eviction::Eviction;
use crate::key::flow::FlowName;

/// As many further names as a flow may have.
const MOST: usize = 255;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// The flow that `key` is a name of. Changes nothing: the flow does not live longer by it. O(1).
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
    /// let found = cache.find(&key.reversed()).expect("it is there");
    /// assert_eq!((found.handle, found.direction), (handle, Direction::Reverse));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find(&self, key: &K) -> Option<FlowMatch> {
        let (hit, carried) = self.lead(key)?;
        let (handle, direction) = (self.store.handle(hit.slot), hit.direction(carried));
        Some(FlowMatch { handle, direction, name: hit.name })
    }

    /// Gives a flow another name: `key`, as packets of the initiator's direction carry it. Returns its
    /// number, from 1 on. O(names of the flow).
    ///
    /// Packets in both directions are found by it, and it goes with the flow.
    ///
    /// # Errors
    ///
    /// If the flow is gone, the name leads to a flow already, the flow has 255, or there is no memory.
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
    /// // What it is called outside of the translation.
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
        self.put_name(slot, key, number)?;
        self.touch(slot);
        Ok(number)
    }

    /// Gives a flow a name that leads nowhere.
    pub(super) fn put_name(&mut self, slot: u32, key: &K, number: u8) -> Result<(), NameError> {
        let at = self.store.names.next_index();
        if !self.has_memory_for(self.store.names.growth(), 2) || at >= Place::MOST {
            return Err(NameError::Memory);
        }
        let (name, initiator) = key.normalized();
        let key = key.clone();
        let place = Place::name(at, initiator);
        self.index.try_insert(name, place).map_err(|_| NameError::Memory)?;
        self.store.add_name(slot, Name { key, slot, next: NO_NAME, number });
        Ok(())
    }

    /// The least number that no further name of the flow has.
    fn free_number(&self, slot: u32) -> Option<u8> {
        let mut taken = [false; MOST + 1];
        taken[0] = true;
        let names = self.store.further_names(slot);
        names.for_each(|(_, name)| taken[usize::from(name.number)] = true);
        taken.iter().position(|taken| !taken).map(|number| number as u8)
    }

    /// Takes a further name of a flow away. O(names of the flow).
    ///
    /// # Errors
    ///
    /// If the flow is gone, or `key` is its first name or none of its names.
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
    /// assert!(cache.remove_name(handle, &7).is_err(), "it goes with the flow");
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove_name(&mut self, handle: Handle, key: &K) -> Result<(), NameError> {
        let slot = self.store.slot_of(handle).ok_or(NameError::NoFlow)?;
        let found = self.find(key).filter(|found| found.handle == handle);
        if found.ok_or(NameError::NotItsName)?.name == 0 {
            return Err(NameError::First);
        }
        let name = key.normalized().0;
        let mut names = self.store.further_names(slot);
        let own = names.find(|(_, own)| own.key.normalized().0 == name);
        let (at, own) = own.ok_or(NameError::NotItsName)?;
        let initiator = own.key.normalized().1;
        self.unname(name, Place::name(at, initiator));
        self.store.drop_name(slot, at);
        self.touch(slot);
        Ok(())
    }
}
