//! A walk over a large cache in small steps, while packets come and flows go.
//!
//! Flows do not move while they live, so a cursor is a slot number: what is behind it was shown, what
//! is before it will be. A flow that is there from the beginning of a walk to its end is shown
//! exactly once, whatever grows in between. One that comes or goes meanwhile may be shown or not.

use core::fmt;
use core::hash::BuildHasher;
use core::iter;

use super::FlowCache;
use super::clock::Clock;
use super::state::{Class, Protocol, Tenant};
use super::store::{Flow, FurtherNames, Handle, Version};
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::timestamp::Timestamp;

/// How far a walk over a cache has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    slot: u32,
    since: Version,
    is_done: bool,
}

impl Cursor {
    /// A walk over all flows.
    #[must_use]
    pub const fn new() -> Self {
        Self { slot: 0, since: Version(0), is_done: false }
    }

    /// A walk over the flows that have changed since the cache had this version: those that got a packet,
    /// were changed, or came. Flows that went since then are told by what they left to: see
    /// [`Departed`](super::Departed).
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
    /// let changed = cache.page(&mut cursor, 100).map(|flow| *flow.key());
    /// assert_eq!(changed.collect::<Vec<_>>(), [3]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn changed_since(since: Version) -> Self {
        Self { slot: 0, since, is_done: false }
    }

    /// Whether the walk is over.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.is_done
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// The flows that the next `budget` slots have. O(budget).
    ///
    /// The cursor goes on even if the iterator is not used up.
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
    ///     // Packets may come here.
    /// }
    /// assert_eq!(seen, 10);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn page(
        &self,
        cursor: &mut Cursor,
        budget: usize,
    ) -> impl Iterator<Item = Resident<'_, K, V>> {
        let from = cursor.slot;
        let count = self.store.flows.slot_count();
        let to = u32::try_from(budget).map_or(count, |budget| from.saturating_add(budget));
        let to = to.min(count);
        cursor.slot = to;
        cursor.is_done |= to == count;
        let since = cursor.since;
        (from..to)
            .filter_map(|slot| self.resident_at(slot))
            .filter(move |flow| flow.version() > since)
    }

    /// The flow of a slot.
    pub(super) fn resident_at(&self, slot: u32) -> Option<Resident<'_, K, V>> {
        let flow = self.store.flows.get(slot)?;
        Some(Resident {
            handle: Handle { id: flow.life.id, slot },
            flow,
            further_names: self.store.further_names(slot),
            clock: &self.clock,
        })
    }
}

/// A flow to look at.
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
/// let handle = cache.observe(&7, packet, Timestamp::from_secs(6))?.handle;
/// let flow = cache.resident(handle).expect("it is there");
/// assert_eq!((*flow.key(), *flow.value(), flow.class()), (7, 70, Class::Unreplied));
/// assert_eq!((flow.protocol(), flow.tenant(), flow.is_pinned()), (Protocol::Udp, Tenant(7), false));
/// assert_eq!((flow.first_seen(), flow.last_seen()), (Timestamp::from_secs(5), Timestamp::from_secs(6)));
/// assert!(flow.names().eq([&7]) && flow.handle() == handle);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Resident<'a, K, V> {
    handle: Handle,
    pub(super) flow: &'a Flow<K, V>,
    pub(super) further_names: FurtherNames<'a, K>,
    pub(super) clock: &'a Clock,
}

impl<'a, K, V> Resident<'a, K, V> {
    /// To find it again.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Its first name, in the direction of who began.
    #[must_use]
    pub const fn key(&self) -> &'a K {
        &self.flow.key
    }

    /// What the user keeps of it.
    #[must_use]
    pub const fn value(&self) -> &'a V {
        &self.flow.value
    }

    /// Its names, in the direction of who began: the first one first, the others from the newest on. O(names).
    pub fn names(&self) -> impl Iterator<Item = &'a K> {
        iter::once(&self.flow.key).chain(self.further_names.clone().map(|(_, name)| &name.key))
    }

    /// Its class.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.flow.life.course.class
    }

    /// The protocol of its first packet.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.flow.life.course.protocol
    }

    /// The tenant of its first packet.
    #[must_use]
    pub const fn tenant(&self) -> Tenant {
        self.flow.life.tenant
    }

    /// Whether it may not be evicted.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        self.flow.life.is_pinned
    }

    /// The time of the cache at its first packet.
    #[must_use]
    pub fn first_seen(&self) -> Timestamp {
        self.clock.caller(self.flow.life.first_seen)
    }

    /// The time of the cache at its last packet.
    #[must_use]
    pub fn last_seen(&self) -> Timestamp {
        self.clock.caller(self.flow.life.last_seen)
    }

    /// When it changed last.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.flow.life.version)
    }
}

impl<K, V> Clone for Resident<'_, K, V> {
    fn clone(&self) -> Self {
        Self { further_names: self.further_names.clone(), ..*self }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Resident<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resident")
            .field("key", self.key())
            .field("value", self.value())
            .field("class", &self.class())
            .field("last_seen", &self.last_seen())
            .finish_non_exhaustive()
    }
}
