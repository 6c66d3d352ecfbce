//! Storage of flows and aliases in stable slots.
//!
//! ```text
//!     slot             0              1           2            3
//!     flows   │ state, v, k │ state, v, k │  –  │ state, v, k │   what a packet writes is in front
//!     aliases       │ k → 1, next – │ …                           aliases of a flow, in a list
//! ```
//!
//! A [`Handle`] is a slot and the ID of its flow. IDs are never reused, so the handle of a flow
//! that has ended never finds another one.

use super::config::Emergency;
use super::state::{Class, ConnectionState, NEVER, Tenant, Timeouts};
use crate::key::flow::Direction;
use crate::raw::index::OptIndex;
use crate::raw::slab::ChunkedSlab;

/// The panic message for an empty slot.
const FLOW: &str = "the slot has a flow";

/// A stable reference to a flow, of 16 bytes, without its key.
///
/// It does not keep the flow alive. After the end of the flow it finds nothing, and never another.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(1)?);
/// let first = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
/// let second = cache.observe(&8, Packet::UDP, Timestamp::ZERO)?.handle;
/// assert_eq!((first.id(), second.id()), (1, 2));
/// // The second flow reuses the slot of the first one, and is not found by its handle.
/// assert_eq!((cache.get(first), cache.get(second)), (None, Some(&0)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    pub(super) id: u64,
    pub(super) slot: u32,
}

impl Handle {
    /// Returns the ID of the flow, the `flowId` of IPFIX. IDs count from 1 in order of creation.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.id
    }
}

/// A version of a cache, which each change increments: see
/// [`Cursor::changed_since`](super::Cursor::changed_since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Version(pub(super) u64);

/// The state of a flow. Times are those of the cache.
#[derive(Clone, Debug)]
pub(super) struct FlowState {
    pub(super) id: u64,
    pub(super) last_seen: u64,
    pub(super) first_seen: u64,
    /// The time of the last report, or of the last active timeout, or of the first packet.
    pub(super) reported: u64,
    /// The version of the last change.
    pub(super) version: u64,
    /// The head of the list of aliases.
    pub(super) aliases: OptIndex,
    pub(super) tenant: Tenant,
    pub(super) connection: ConnectionState,
    /// Whether a packet arrived since the eviction policy last examined the flow.
    pub(super) is_used: bool,
    /// Whether a packet arrived since the last report.
    pub(super) has_unreported: bool,
    pub(super) is_pinned: bool,
}

impl FlowState {
    /// Returns the time at which the flow is due, if no packet arrives.
    pub(super) fn deadline(&self, timeouts: &Timeouts) -> u64 {
        self.idle_deadline(timeouts).min(self.active_deadline(timeouts))
    }

    /// Returns the time from which on an emergency ends the flow, if it may.
    pub(super) fn emergency_deadline(&self, emergency: Emergency) -> Option<u64> {
        let may_leave = self.connection.class != Class::Established && !self.is_pinned;
        may_leave.then(|| after(self.last_seen, emergency.idle))
    }

    pub(super) fn idle_deadline(&self, timeouts: &Timeouts) -> u64 {
        after(self.last_seen, timeouts.idle_nanos(self.connection.protocol, self.connection.class))
    }

    pub(super) fn active_deadline(&self, timeouts: &Timeouts) -> u64 {
        after(self.reported, timeouts.active_nanos())
    }
}

/// Returns the time `period` after `time`, saturating below [`NEVER`]; but never stays never.
const fn after(time: u64, period: u64) -> u64 {
    match time.saturating_add(period) {
        NEVER if period != NEVER => NEVER - 1,
        time => time,
    }
}

/// A flow: state, value, and the key in the direction of the initiator. In this order: a packet
/// needs the first two.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Flow<K, V> {
    pub(super) state: FlowState,
    pub(super) value: V,
    pub(super) key: K,
}

/// An alias of a flow.
#[derive(Clone, Debug)]
pub(super) struct Alias<K> {
    /// The key in the direction of the initiator.
    pub(super) key: K,
    pub(super) slot: u32,
    /// The next alias of the flow.
    pub(super) next: OptIndex,
    pub(super) number: u8,
}

/// The target of a key in the index: the slot of a flow or of an alias, and the direction of the
/// key that is the initiator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target(u32);

impl Target {
    const ALIAS: u32 = 1 << 31;
    const REVERSE: u32 = 1 << 30;

    /// The maximum number of slots, and of aliases.
    pub(super) const MAX: u32 = 1 << 30;

    /// Creates the target of the key of the flow in this slot.
    pub(super) fn slot(slot: u32, initiator: Direction) -> Self {
        Self(slot | if initiator == Direction::Reverse { Self::REVERSE } else { 0 })
    }

    /// Creates the target of an alias.
    pub(super) fn alias(alias: u32, initiator: Direction) -> Self {
        Self(Self::slot(alias, initiator).0 | Self::ALIAS)
    }

    /// Returns the flow if the key is that of a flow, and not an alias.
    #[inline]
    pub(super) const fn primary(self) -> Option<Hit> {
        let (slot, initiator) = (self.number(), self.initiator());
        if self.is_alias() { None } else { Some(Hit { slot, name: 0, initiator }) }
    }

    const fn is_alias(self) -> bool {
        self.0 & Self::ALIAS != 0
    }

    const fn number(self) -> u32 {
        self.0 & (Self::MAX - 1)
    }

    const fn initiator(self) -> Direction {
        if self.0 & Self::REVERSE == 0 { Direction::Forward } else { Direction::Reverse }
    }
}

/// A flow to which a key was resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) slot: u32,
    /// The name that matched: 0 is the key of the flow, other numbers are aliases.
    pub(super) name: u8,
    /// The direction of that key that is the initiator's.
    pub(super) initiator: Direction,
}

impl Hit {
    /// Returns the direction of a packet in the flow, given the direction of its key.
    #[inline]
    pub(super) fn direction(self, carried: Direction) -> Direction {
        if carried == self.initiator { Direction::Forward } else { Direction::Reverse }
    }
}

/// The flows and aliases.
#[derive(Clone, Debug)]
pub(super) struct Store<K, V> {
    pub(super) flows: ChunkedSlab<Flow<K, V>>,
    pub(super) aliases: ChunkedSlab<Alias<K>>,
    /// The ID of the last flow created.
    last_id: u64,
}

impl<K, V> Store<K, V> {
    pub(super) const fn new() -> Self {
        Self { flows: ChunkedSlab::new(), aliases: ChunkedSlab::new(), last_id: 0 }
    }

    /// Returns the greatest ID of a flow.
    pub(super) const fn last_id(&self) -> u64 {
        self.last_id
    }

    pub(super) const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Resolves a target of the index. Keys that violate the contract of `Hash` and `Eq` may have
    /// none.
    #[inline]
    pub(super) fn follow(&self, target: Target) -> Option<Hit> {
        target.primary().or_else(|| {
            let Alias { slot, number, .. } = *self.aliases.get(target.number())?;
            Some(Hit { slot, name: number, initiator: target.initiator() })
        })
    }

    /// Prefetches the flow of a target.
    #[inline]
    pub(super) fn prefetch(&self, target: Target) {
        if let Some(hit) = self.follow(target) {
            self.flows.prefetch(hit.slot);
        }
    }

    /// Returns the flow of an occupied slot.
    #[inline]
    pub(super) fn flow(&self, slot: u32) -> &Flow<K, V> {
        self.flows.get(slot).expect(FLOW)
    }

    /// Returns a mutable reference to the flow of an occupied slot.
    #[inline]
    pub(super) fn flow_mut(&mut self, slot: u32) -> &mut Flow<K, V> {
        self.flows.get_mut(slot).expect(FLOW)
    }

    /// Inserts a flow at the next free slot, and assigns its ID.
    pub(super) fn insert(&mut self, mut flow: Flow<K, V>) -> u32 {
        self.last_id += 1;
        flow.state.id = self.last_id;
        self.flows.insert(flow)
    }

    /// Adds an alias to the list of a flow.
    pub(super) fn add_alias(&mut self, slot: u32, alias: Alias<K>) {
        let next = self.flow(slot).state.aliases;
        let first = self.aliases.insert(Alias { next, ..alias });
        self.flow_mut(slot).state.aliases = OptIndex::some(first);
    }

    /// Removes an alias, by its index in the slab of aliases. Consistent even if dropping it
    /// panics.
    pub(super) fn remove_alias(&mut self, slot: u32, at: u32) {
        // The removal of a flow removes the head each time, without a search.
        let is_first = self.flow(slot).state.aliases == OptIndex::some(at);
        let before = if is_first {
            None
        } else {
            self.aliases(slot)
                .find(|(_, alias)| alias.next == OptIndex::some(at))
                .map(|(before, _)| before)
        };
        let Some(name) = self.aliases.try_remove(at) else { return };
        match before.and_then(|before| self.aliases.get_mut(before)) {
            Some(before) => before.next = name.next,
            None => self.flow_mut(slot).state.aliases = name.next,
        }
    }

    /// Releases the memory of a store without flows.
    pub(super) fn shrink(&mut self) {
        if self.len() == 0 {
            *self = Self { last_id: self.last_id, ..Self::new() };
        }
    }

    /// Returns the slot of a handle, if its flow exists.
    #[inline]
    pub(super) fn slot_of(&self, handle: Handle) -> Option<u32> {
        (self.flows.get(handle.slot)?.state.id == handle.id).then_some(handle.slot)
    }

    pub(super) fn handle(&self, slot: u32) -> Handle {
        Handle { id: self.flow(slot).state.id, slot }
    }

    /// Iterates over the aliases of a flow, the newest first, with their indices in the slab of
    /// aliases.
    pub(super) fn aliases(&self, slot: u32) -> Aliases<'_, K> {
        let next = self.flows.get(slot).map_or(OptIndex::NONE, |flow| flow.state.aliases);
        Aliases { aliases: &self.aliases, next }
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.flows.allocation_size() + self.aliases.allocation_size()
    }
}

/// An iterator over the aliases of a flow.
#[derive(Debug)]
pub(super) struct Aliases<'a, K> {
    aliases: &'a ChunkedSlab<Alias<K>>,
    next: OptIndex,
}

impl<K> Clone for Aliases<'_, K> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, K> Iterator for Aliases<'a, K> {
    type Item = (u32, &'a Alias<K>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next.get()?;
        let alias = self.aliases.get(at)?;
        self.next = alias.next;
        Some((at, alias))
    }
}
