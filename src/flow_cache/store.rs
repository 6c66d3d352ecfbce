//! What the cache knows of each flow, at stable slots.
//!
//! ```text
//!     slot             0              1           2            3
//!     flows   │ life, v, k │ life, v, k │   –   │ life, v, k │     what a packet writes is in front
//!     names          │ k → 1, next – │ …                           further names of a flow, in a list
//! ```
//!
//! A [`Handle`] is a slot and the number of its flow. Numbers are never used twice, so a handle of a flow
//! that is gone finds nothing, for ever.

use super::config::Emergency;
use super::state::{Class, Course, NEVER, Tenant, Timeouts};
use crate::key::flow::Direction;
use crate::raw::slab::ChunkedSlab;

/// What is known when a slot is named without asking whether it is taken.
const FLOW: &str = "what leads to a slot goes with its flow";

/// No further name.
pub(super) const NO_NAME: u32 = u32::MAX;

/// Which flow, for as long as it lives: 16 bytes to keep anywhere.
///
/// It does not keep the flow alive. When the flow is gone it finds nothing, and never another flow.
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
/// // The second flow has the place of the first one, and is not found by its handle.
/// assert_eq!((cache.get(first), cache.get(second)), (None, Some(&0)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    pub(super) id: u64,
    pub(super) slot: u32,
}

impl Handle {
    /// The number of the flow: flows are numbered from 1 on as they come. The `flowId` of IPFIX.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.id
    }
}

/// A moment in the life of a cache, by what has changed in it: see
/// [`Cursor::changed_since`](super::Cursor::changed_since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Version(pub(super) u64);

/// All of a flow but its names and value. Times are those of the cache.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) id: u64,
    pub(super) last_seen: u64,
    pub(super) first_seen: u64,
    /// When it was reported last, or had nothing to report, or the first packet.
    pub(super) reported: u64,
    /// When it changed last.
    pub(super) version: u64,
    /// The first of its further names.
    pub(super) names: u32,
    pub(super) tenant: Tenant,
    pub(super) course: Course,
    /// Since an eviction policy looked at it.
    pub(super) is_used: bool,
    /// Whether it has had a packet since it was reported.
    pub(super) has_news: bool,
    pub(super) is_pinned: bool,
}

impl Life {
    /// When something is to be done about it, if no packet comes.
    pub(super) fn deadline(&self, timeouts: &Timeouts) -> u64 {
        self.idle_deadline(timeouts).min(self.active_deadline(timeouts))
    }

    /// From when on it leaves in an emergency, if it may.
    pub(super) fn relief(&self, emergency: Emergency) -> Option<u64> {
        let may_leave = self.course.class != Class::Established && !self.is_pinned;
        may_leave.then(|| after(self.last_seen, emergency.idle))
    }

    pub(super) fn idle_deadline(&self, timeouts: &Timeouts) -> u64 {
        after(self.last_seen, timeouts.idle_nanos(self.course.protocol, self.course.class))
    }

    pub(super) fn active_deadline(&self, timeouts: &Timeouts) -> u64 {
        after(self.reported, timeouts.active_nanos())
    }
}

/// So long after a time, which is at the end of time at the latest; but never is never.
const fn after(time: u64, period: u64) -> u64 {
    match time.saturating_add(period) {
        NEVER if period != NEVER => NEVER - 1,
        time => time,
    }
}

/// A life, what the user keeps, and the key in the direction of the initiator. In this order: a packet
/// needs the first two.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Flow<K, V> {
    pub(super) life: Life,
    pub(super) value: V,
    pub(super) key: K,
}

/// A further name of a flow.
#[derive(Clone, Debug)]
pub(super) struct Name<K> {
    /// In the direction of the initiator.
    pub(super) key: K,
    pub(super) slot: u32,
    /// The next name of the flow.
    pub(super) next: u32,
    pub(super) number: u8,
}

/// What the index says of a key: a slot, or one of the further names; and which direction of the key is
/// the initiator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    const FURTHER: u32 = 1 << 31;
    const REVERSE: u32 = 1 << 30;

    /// Slots and names there may be.
    pub(super) const MOST: u32 = 1 << 30;

    /// The key is the first name of the flow in this slot.
    pub(super) fn slot(slot: u32, initiator: Direction) -> Self {
        Self(slot | if initiator == Direction::Reverse { Self::REVERSE } else { 0 })
    }

    /// The key is a further name.
    pub(super) fn name(name: u32, initiator: Direction) -> Self {
        Self(Self::slot(name, initiator).0 | Self::FURTHER)
    }

    /// Where it leads if the key is a first name.
    #[inline]
    pub(super) const fn first_name(self) -> Option<Hit> {
        let (slot, initiator) = (self.number(), self.initiator());
        if self.is_further() { None } else { Some(Hit { slot, name: 0, initiator }) }
    }

    const fn is_further(self) -> bool {
        self.0 & Self::FURTHER != 0
    }

    const fn number(self) -> u32 {
        self.0 & (Self::MOST - 1)
    }

    const fn initiator(self) -> Direction {
        if self.0 & Self::REVERSE == 0 { Direction::Forward } else { Direction::Reverse }
    }
}

/// A flow that a key has led to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) slot: u32,
    /// Which of its names the key is.
    pub(super) name: u8,
    /// Which direction of that name is the initiator's.
    pub(super) initiator: Direction,
}

impl Hit {
    /// The direction of the flow in which a packet goes that carries the name in this direction.
    #[inline]
    pub(super) fn direction(self, carried: Direction) -> Direction {
        if carried == self.initiator { Direction::Forward } else { Direction::Reverse }
    }
}

/// The flows.
#[derive(Clone, Debug)]
pub(super) struct Store<K, V> {
    pub(super) flows: ChunkedSlab<Flow<K, V>>,
    pub(super) names: ChunkedSlab<Name<K>>,
    /// Flows that there have been.
    last_id: u64,
}

impl<K, V> Store<K, V> {
    pub(super) const fn new() -> Self {
        Self { flows: ChunkedSlab::new(), names: ChunkedSlab::new(), last_id: 0 }
    }

    /// The greatest number that a flow has had.
    pub(super) const fn last_id(&self) -> u64 {
        self.last_id
    }

    pub(super) const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Where a place of the index leads. If keys break their law, there may be no name, or no flow.
    #[inline]
    pub(super) fn follow(&self, place: Place) -> Option<Hit> {
        place.first_name().or_else(|| {
            let Name { slot, number, .. } = *self.names.get(place.number())?;
            Some(Hit { slot, name: number, initiator: place.initiator() })
        })
    }

    /// Asks for all that a packet of the flow at this place needs.
    #[inline]
    pub(super) fn prefetch(&self, place: Place) {
        if let Some(hit) = self.follow(place) {
            self.flows.prefetch(hit.slot);
        }
    }

    /// The flow of a slot that has one.
    #[inline]
    pub(super) fn flow(&self, slot: u32) -> &Flow<K, V> {
        self.flows.get(slot).expect(FLOW)
    }

    /// The flow of a slot that has one, to change.
    #[inline]
    pub(super) fn flow_mut(&mut self, slot: u32) -> &mut Flow<K, V> {
        self.flows.get_mut(slot).expect(FLOW)
    }

    /// Puts in a flow, at the next free slot, and numbers it.
    pub(super) fn insert(&mut self, mut flow: Flow<K, V>) -> u32 {
        self.last_id += 1;
        flow.life.id = self.last_id;
        self.flows.insert(flow)
    }

    /// Gives a flow another name.
    pub(super) fn add_name(&mut self, slot: u32, name: Name<K>) {
        let next = self.flow(slot).life.names;
        let first = self.names.insert(Name { next, ..name });
        self.flow_mut(slot).life.names = first;
    }

    /// Takes away a further name, by its number in the slab of names. Nothing is half done if it panics
    /// when it is dropped.
    pub(super) fn drop_name(&mut self, slot: u32, at: u32) {
        // A flow that departs loses the first one each time: then there is nothing to look for.
        let is_first = self.flow(slot).life.names == at;
        let before = if is_first {
            None
        } else {
            self.further_names(slot).find(|(_, name)| name.next == at).map(|(before, _)| before)
        };
        let Some(name) = self.names.try_remove(at) else { return };
        match before.and_then(|before| self.names.get_mut(before)) {
            Some(before) => before.next = name.next,
            None => self.flow_mut(slot).life.names = name.next,
        }
    }

    /// Gives back the memory of a store without flows.
    pub(super) fn shrink(&mut self) {
        if self.len() == 0 {
            *self = Self { last_id: self.last_id, ..Self::new() };
        }
    }

    /// The slot of a handle whose flow lives.
    #[inline]
    pub(super) fn slot_of(&self, handle: Handle) -> Option<u32> {
        (self.flows.get(handle.slot)?.life.id == handle.id).then_some(handle.slot)
    }

    pub(super) fn handle(&self, slot: u32) -> Handle {
        Handle { id: self.flow(slot).life.id, slot }
    }

    /// The further names of a flow, the newest first, with their numbers in the slab of names.
    pub(super) fn further_names(&self, slot: u32) -> FurtherNames<'_, K> {
        let next = self.flows.get(slot).map_or(NO_NAME, |flow| flow.life.names);
        FurtherNames { names: &self.names, next }
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.flows.allocation_size() + self.names.allocation_size()
    }
}

/// See [`Store::further_names`].
#[derive(Debug)]
pub(super) struct FurtherNames<'a, K> {
    names: &'a ChunkedSlab<Name<K>>,
    next: u32,
}

impl<K> Clone for FurtherNames<'_, K> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, K> Iterator for FurtherNames<'a, K> {
    type Item = (u32, &'a Name<K>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        let name = self.names.get(at)?;
        self.next = name.next;
        Some((at, name))
    }
}
