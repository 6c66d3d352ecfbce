//! Incremental scans of a cache, while packets create and remove flows.
//!
//! A flow never moves, so a cursor is a slot index: slots before it were visited, slots after it
//! will be. A flow that exists from the beginning of a scan to its end is visited exactly once,
//! even if the cache grows. A scan may visit or miss a flow that is created or removed during the
//! scan.

use core::fmt;
use core::hash::BuildHasher;
use core::iter;
use core::ops::Range;
use core::time::Duration;

use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::record::{Cold, Flow};
use crate::flow_cache::packet::state::{Class, Protocol, Tenant};
use crate::flow_cache::store::slots::Aliases;
use crate::flow_cache::store::{Handle, Version};
use crate::flow_cache::time::clock::Clock;
use crate::key::flow::FlowName;
use crate::memory::{Allocator, Global};
use crate::timestamp::Timestamp;

/// The position of a scan over a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    slot: u32,
    since: Version,
    is_done: bool,
}

impl Cursor {
    /// Creates a cursor for a scan over all flows.
    #[must_use]
    pub const fn new() -> Self {
        Self { slot: 0, since: Version(0), is_done: false }
    }

    /// Creates a cursor for a scan over the flows that have changed since a version of the cache:
    /// by a packet, by a method, or by their creation. Removed flows are not visited: each is
    /// returned when it is removed, as a [`RemovedFlow`](crate::flow_cache::RemovedFlow).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Cursor, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// let copied = cache.version();
    /// cache.observe(&3, Packet::UDP, Timestamp::ZERO)?;
    /// let mut cursor = Cursor::changed_since(copied);
    /// let changed = cache.page(&mut cursor, 100).map(|flow| flow.key());
    /// assert_eq!(changed.collect::<Vec<_>>(), [3]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn changed_since(since: Version) -> Self {
        Self { slot: 0, since, is_done: false }
    }

    /// Advances over the next `budget` of `count` slots. Returns them, and the version since which
    /// flows have changed.
    pub(crate) fn advance(&mut self, count: u32, budget: usize) -> (Range<u32>, Version) {
        let from = self.slot;
        let to = u32::try_from(budget).map_or(count, |budget| from.saturating_add(budget));
        let to = to.min(count);
        self.slot = to;
        self.is_done |= to == count;
        (from..to, self.since)
    }

    /// Returns whether the scan is complete.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.is_done
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Iterates over the flows in the next `budget` slots, and advances the cursor. O(budget).
    ///
    /// The cursor advances even if the iterator is not consumed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Cursor, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// let (mut cursor, mut seen) = (Cursor::new(), 0);
    /// while !cursor.is_done() {
    ///     seen += cache.page(&mut cursor, 3).count();
    ///     // Packets may be processed here.
    /// }
    /// assert_eq!(seen, 10);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn page(
        &self,
        cursor: &mut Cursor,
        budget: usize,
    ) -> impl Iterator<Item = Resident<'_, K, V, A>> {
        let (slots, since) = cursor.advance(self.store.flows.slot_count(), budget);
        slots.filter_map(|slot| self.resident_at(slot)).filter(move |flow| flow.version() > since)
    }

    /// Returns a view of the flow in a slot.
    pub(crate) fn resident_at(&self, slot: u32) -> Option<Resident<'_, K, V, A>> {
        let flow = self.store.flows.get(slot)?;
        Some(Resident {
            slot,
            flow,
            cold: self.store.cold(slot),
            tenant: self.store.tenant(slot),
            timeout: self.store.timeout(slot, flow.marks),
            aliases: self.store.aliases(slot),
            clock: &self.clock,
        })
    }
}

/// A view of a flow in the cache.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Class, Config, Packet, Protocol, Tenant};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
/// let packet = Packet::UDP.from_tenant(Tenant(7));
/// *cache.observe(&7, packet, Timestamp::from_secs(5))?.flow = 70;
/// let handle = cache.observe(&7, packet, Timestamp::from_secs(6))?.handle();
/// let flow = cache.resident(handle).expect("the flow exists");
/// assert_eq!((flow.key(), *flow.value(), flow.class()), (7, 70, Class::Unreplied));
/// assert_eq!((flow.protocol(), flow.tenant()), (Protocol::Udp, Tenant(7)));
/// assert_eq!(flow.first_seen(), Timestamp::from_secs(5));
/// assert_eq!(flow.last_seen(), Timestamp::from_secs(6));
/// assert_eq!(flow.timeout(), None); // that of its protocol and class
/// assert!(flow.keys().eq([7]) && flow.handle() == handle && !flow.is_pinned());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Resident<'a, K, V, A: Allocator + Clone = Global> {
    slot: u32,
    tenant: Tenant,
    pub(crate) timeout: Option<u64>,
    pub(crate) flow: &'a Flow<K, V>,
    pub(crate) cold: &'a Cold,
    pub(crate) aliases: Aliases<'a, K, A>,
    pub(crate) clock: &'a Clock,
}

impl<'a, K, V, A: Allocator + Clone> Resident<'a, K, V, A> {
    /// Returns the handle of the flow.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        Handle { id: self.cold.id, slot: self.slot }
    }

    /// Returns the key, in the direction of the initiator.
    #[must_use]
    pub fn key(&self) -> K
    where
        K: FlowName,
    {
        self.flow.key()
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(&self) -> &'a V {
        &self.flow.value
    }

    /// Iterates over the key and the aliases, in the direction of the initiator: the key first,
    /// then the aliases from the newest on. O(aliases).
    pub fn keys(&self) -> impl Iterator<Item = K>
    where
        K: FlowName,
    {
        iter::once(self.key()).chain(self.aliases.clone().map(|(_, alias)| alias.key()))
    }

    /// Returns the class.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.flow.marks.class()
    }

    /// Returns the protocol of the first packet.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.flow.marks.protocol()
    }

    /// Returns the tenant of the first packet.
    #[must_use]
    pub const fn tenant(&self) -> Tenant {
        self.tenant
    }

    /// Returns the flow's own idle timeout: see [`FlowCache::set_timeout`].
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_nanos)
    }

    /// Returns whether the flow is pinned.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        self.flow.marks.is_pinned()
    }

    /// Returns the time of the cache at the first packet.
    #[must_use]
    pub fn first_seen(&self) -> Timestamp {
        self.clock.caller(self.cold.first_seen)
    }

    /// Returns the time of the cache at the last packet.
    #[must_use]
    pub fn last_seen(&self) -> Timestamp {
        self.clock.caller(self.flow.last_seen)
    }

    /// Returns the version of the cache at the last change of the flow.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.flow.version)
    }
}

impl<K, V, A: Allocator + Clone> Clone for Resident<'_, K, V, A> {
    fn clone(&self) -> Self {
        Self { aliases: self.aliases.clone(), ..*self }
    }
}

impl<K, V, A> fmt::Debug for Resident<'_, K, V, A>
where
    K: FlowName + fmt::Debug,
    V: fmt::Debug,
    A: Allocator + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resident")
            .field("key", &self.key())
            .field("value", self.value())
            .field("class", &self.class())
            .field("last_seen", &self.last_seen())
            .finish_non_exhaustive()
    }
}
