//! The own timeout of a flow.

use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;
use core::time::Duration;

use super::timeouts::{self, TimeoutError};
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::record::Marks;
use crate::flow_cache::store::handle::Handle;
use crate::flow_cache::store::tenants::map_growth;
use crate::key::flow::FlowName;
use crate::memory::Allocator;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Sets the idle timeout of one flow; `None` restores the timeout of its protocol and class.
    /// O(1).
    ///
    /// For single flows with other needs than their protocol: an answered DNS query, a registration
    /// of SIP. Where many flows have the same, a [protocol](crate::flow_cache::Protocol) of their
    /// own needs no
    /// memory. A closed connection lingers as long as others. The flow counts as changed.
    ///
    /// Flows with a timeout of their own need about 30 bytes more.
    ///
    /// # Errors
    ///
    /// If the flow has ended, if the timeout is zero or longer than
    /// [`Timeouts::MAX`](crate::flow_cache::Timeouts::MAX), or if memory
    /// allocation fails or the memory limit is reached. The cache is unchanged.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let registration = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// cache.observe(&8, Packet::UDP, Timestamp::ZERO)?;
    /// cache.set_timeout(registration, Duration::from_secs(3600))?;
    /// let mut ended = vec![];
    /// for now in [1800, 3601].map(Timestamp::from_secs) {
    ///     ended.push(cache.advance(now, 100, |_| ()).ended);
    /// }
    /// assert_eq!(ended, [1, 1]); // the other one after 30 seconds
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_timeout(
        &mut self,
        handle: Handle,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<(), SetTimeoutError> {
        let timeout = match timeout.into() {
            None => None,
            timeout => Some(timeouts::nanos(timeout).map_err(SetTimeoutError::Timeout)?),
        };
        let slot = self.slot_of(handle).ok_or(SetTimeoutError::NoFlow)?;
        self.insert_timeout(slot, timeout).map_err(|NoMemory| SetTimeoutError::Memory)?;
        self.touch(slot);
        self.arm(slot);
        Ok(())
    }

    /// Sets the own timeout of the flow in a slot, without arming its timer.
    pub(crate) fn insert_timeout(
        &mut self,
        slot: u32,
        timeout: Option<u64>,
    ) -> Result<(), NoMemory> {
        let has_own = self.store.flow(slot).marks.has(Marks::TIMEOUT);
        let Some(nanos) = timeout else {
            if has_own {
                self.remove_timeout(slot);
            }
            return Ok(());
        };
        let timeouts = &self.store.rest.timeouts;
        if !has_own && !self.has_memory_for(map_growth::<u32, u64>(timeouts.allocation_size())) {
            return Err(NoMemory);
        }
        self.store.rest.timeouts.try_insert(slot, nanos).map_err(|_| NoMemory)?;
        self.store.flow_mut(slot).marks.set(Marks::TIMEOUT, true);
        self.clock.add_timeout(nanos);
        Ok(())
    }

    /// Removes the own timeout of the flow in a slot.
    pub(crate) fn remove_timeout(&mut self, slot: u32) {
        self.store.rest.timeouts.remove(&slot);
        self.store.flow_mut(slot).marks.set(Marks::TIMEOUT, false);
    }
}

/// Memory allocation failed, or the memory limit of the cache is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory;

/// An error of [`FlowCache::set_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetTimeoutError {
    /// The flow has ended.
    NoFlow,
    /// The timeout is invalid.
    Timeout(TimeoutError),
    /// Memory allocation failed, or the memory limit of the cache is reached.
    Memory,
}

impl fmt::Display for SetTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFlow => f.write_str("the flow has ended"),
            Self::Timeout(error) => error.fmt(f),
            Self::Memory => f.write_str("the memory for a timeout of the flow is not available"),
        }
    }
}

impl Error for SetTimeoutError {}
