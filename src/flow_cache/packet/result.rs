//! The flow of an observed packet.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use super::record::{Flow, Marks};
use super::state::Class;
use crate::flow_cache::report::events::RemovedFlow;
use crate::flow_cache::store::Handle;
use crate::flow_cache::store::slots::{Match, Rest};
use crate::key::flow::Direction;
use crate::memory::{Allocator, Global};

/// The flow of an observed packet.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::{Direction, FlowCache, FlowKey, Timestamp};
///
/// let mut cache: FlowCache<FlowKey, u32> = FlowCache::new(Config::new(100)?);
/// let query = FlowKey::new("192.0.2.7".parse()?, "192.0.2.1".parse()?, 5353, 53, 17).unwrap();
/// let seen = cache.observe(&query, Packet::UDP, Timestamp::ZERO)?;
/// assert!(seen.fresh && seen.removed().is_none());
/// let handle = seen.handle();
/// let seen = cache.observe(&query.reversed(), Packet::UDP, Timestamp::from_millis(20))?;
/// assert_eq!((seen.fresh, seen.direction, seen.alias), (false, Direction::Reverse, 0));
/// assert_eq!(seen.handle(), handle);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[non_exhaustive]
pub struct Observed<'a, K, V, A: Allocator + Clone = Global> {
    /// The value of the flow.
    pub flow: &'a mut V,
    /// The direction of the packet; the initiator sends forward.
    pub direction: Direction,
    /// The number of the key that the packet carries: 0 is the primary key, others are aliases.
    pub alias: u8,
    /// The class of the flow after this packet.
    pub class: Class,
    /// Whether this packet created the flow. Its sender is the initiator then, unless the packet is
    /// a SYN with an ACK, or the caller has set another
    /// [`Initiator`](crate::flow_cache::Initiator): so the
    /// direction of a first packet may be reverse.
    pub fresh: bool,
    /// Whether a flow was removed for the packet: without a load, for most packets.
    has_removed: bool,
    slot: u32,
    rest: &'a mut Rest<K, V, A>,
}

/// A packet that was recorded in its flow, in two registers. The value is behind a pointer, as the
/// borrow checker takes a reference that is returned from a loop for one that lives on when the
/// loop goes on.
///
/// ```text
///     bits   │ … │ removed │ fresh │ direction │ class 2 │ alias 8 │ slot 32 │
/// ```
pub(crate) struct Seen<V> {
    value: NonNull<V>,
    bits: u64,
}

impl<V> Seen<V> {
    const ALIAS: u32 = 32;
    const CLASS: u32 = 40;
    const DIRECTION: u32 = 42;
    const FRESH: u32 = 43;
    const REMOVED: u32 = 44;

    /// A packet of the flow with this value, which is in a class after it.
    #[inline]
    pub(crate) fn new(value: &mut V, found: Match, class: Class) -> Self {
        let bits = u64::from(found.slot)
            | u64::from(found.alias) << Self::ALIAS
            | (class as u64) << Self::CLASS
            | (found.direction as u64) << Self::DIRECTION;
        Self { value: NonNull::from(value), bits }
    }

    /// Records a packet in its flow, which has these marks, this time of the last packet and this
    /// version after it.
    #[inline(always)]
    pub(crate) fn record<K>(
        flow: &mut Flow<K, V>,
        found: Match,
        marks: Marks,
        last_seen: u64,
        version: u64,
    ) -> Self {
        flow.marks = marks.with_hit();
        flow.last_seen = last_seen;
        flow.version = version;
        Self::new(&mut flow.value, found, marks.class())
    }

    /// The packet as the first one of its flow.
    #[inline]
    pub(crate) fn fresh(self) -> Self {
        Self { bits: self.bits | 1 << Self::FRESH, ..self }
    }

    /// The packet, with a flow that was removed for it.
    #[inline]
    pub(crate) fn with_removed(self) -> Self {
        Self { bits: self.bits | 1 << Self::REMOVED, ..self }
    }

    /// The packet as it is after other accesses to the flow.
    pub(crate) fn renewed<K>(self, flow: &mut Flow<K, V>) -> Self {
        Self { value: NonNull::from(&mut flow.value), ..self }
    }

    /// The slot of the flow.
    pub(crate) const fn slot(&self) -> u32 {
        self.bits as u32
    }

    /// The result for the packet.
    ///
    /// # Safety
    ///
    /// The value is where it was, and borrowed as `rest` is, of which it is no part.
    #[inline]
    pub(crate) unsafe fn observed<K, A>(mut self, rest: &mut Rest<K, V, A>) -> Observed<'_, K, V, A>
    where
        A: Allocator + Clone,
    {
        let has = |bit| self.bits >> bit & 1 != 0;
        Observed {
            direction: Direction::of(has(Self::DIRECTION)),
            alias: (self.bits >> Self::ALIAS) as u8,
            class: Class::of(self.bits >> Self::CLASS),
            fresh: has(Self::FRESH),
            has_removed: has(Self::REMOVED),
            slot: self.slot(),
            // SAFETY: as the caller promises.
            flow: unsafe { self.value.as_mut() },
            rest,
        }
    }
}

impl<K, V, A: Allocator + Clone> Observed<'_, K, V, A> {
    /// Returns the handle of the flow, which finds it without a key. O(1).
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { id: self.rest.cold[self.slot].id, slot: self.slot }
    }

    /// Returns the flow that was evicted for a new one, or that had the sockets before. O(1).
    ///
    /// It stays in the cache until it is [taken](Self::take_removed), or until the next packet.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(1)?);
    /// *cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.flow = 70;
    /// let seen = cache.observe(&8, Packet::UDP, Timestamp::ZERO)?;
    /// assert_eq!(seen.removed().map(|flow| (flow.key, flow.value)), Some((7, 70)));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn removed(&self) -> Option<&RemovedFlow<K, V>> {
        if self.has_removed { self.rest.removed.as_ref() } else { None }
    }

    /// Returns the flow that was evicted for a new one, or that had the sockets before, unless it
    /// was taken before. O(1).
    #[inline]
    #[must_use]
    pub fn take_removed(&mut self) -> Option<RemovedFlow<K, V>> {
        if self.has_removed { self.rest.removed.take() } else { None }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, A: Allocator + Clone> fmt::Debug for Observed<'_, K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed")
            .field("flow", &self.flow)
            .field("handle", &self.handle())
            .field("direction", &self.direction)
            .field("alias", &self.alias)
            .field("class", &self.class)
            .field("fresh", &self.fresh)
            .field("removed", &self.removed())
            .finish()
    }
}
