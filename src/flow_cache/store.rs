//! What the cache knows of each flow, at stable slots.
//!
//! ```text
//!     slot       0      1      2      3
//!     lives   │ life │ life │ free │ life │     a line each: all that a packet writes
//!     flows   │ k, v │ k, v │  –   │ k, v │     the key of the initiator, and the user's value
//!     names            │ k → 1, next – │ …      further names of a flow, in a list
//! ```
//!
//! A [`Handle`] is a slot and the number of its flow. Numbers are never used twice, so a handle of a flow
//! that is gone finds nothing, for ever.

use crate::chunks::Chunks;
use crate::flow::Direction;
use crate::life::{Course, Tenant, Timeouts};
use crate::prefetch::prefetch_value;
use crate::slots::Slots;

/// No further name.
pub(super) const NO_NAME: u32 = u32::MAX;

/// Which flow, for as long as it lives: 16 bytes to keep anywhere.
///
/// It does not keep the flow alive. When the flow is gone it finds nothing, and never another flow.
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
#[repr(align(64))]
pub(super) struct Life {
    /// 0 is nobody.
    pub(super) id: u64,
    pub(super) last_seen: u64,
    pub(super) first_seen: u64,
    /// When it was reported last, or the first packet.
    pub(super) reported: u64,
    /// When it changed last.
    pub(super) version: u64,
    /// The first of its further names.
    pub(super) names: u32,
    pub(super) tenant: Tenant,
    pub(super) course: Course,
    /// Since an eviction policy looked at it.
    pub(super) is_used: bool,
    pub(super) is_pinned: bool,
    /// Which direction of the normalised key is the initiator's.
    pub(super) initiator: Direction,
}

impl Life {
    /// When something is to be done about it, if no packet comes.
    pub(super) fn deadline(&self, timeouts: &Timeouts) -> u64 {
        self.idle_deadline(timeouts).min(self.active_deadline(timeouts))
    }

    pub(super) fn idle_deadline(&self, timeouts: &Timeouts) -> u64 {
        let idle = timeouts.idle_nanos(self.course.protocol, self.course.class);
        self.last_seen.saturating_add(idle)
    }

    pub(super) fn active_deadline(&self, timeouts: &Timeouts) -> u64 {
        self.reported.saturating_add(timeouts.active_nanos())
    }
}

/// A key in the direction of the initiator, and what the user keeps.
#[derive(Clone, Debug)]
pub(super) struct Flow<K, V> {
    pub(super) key: K,
    pub(super) value: V,
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
    pub(super) initiator: Direction,
}

/// What the index says of a key: a slot, or with the upper bit one of the further names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    const FURTHER: u32 = 1 << 31;

    /// The key is the first name of the flow in this slot.
    pub(super) const fn slot(slot: u32) -> Self {
        Self(slot)
    }

    /// The key is a further name.
    pub(super) const fn name(name: u32) -> Self {
        Self(name | Self::FURTHER)
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

/// The flows.
#[derive(Clone, Debug)]
pub(super) struct Store<K, V> {
    pub(super) lives: Chunks<Life>,
    pub(super) flows: Slots<Flow<K, V>>,
    pub(super) names: Slots<Name<K>>,
    /// Flows that there have been.
    last_id: u64,
}

impl<K, V> Store<K, V> {
    pub(super) const fn new() -> Self {
        Self { lives: Chunks::new(), flows: Slots::new(), names: Slots::new(), last_id: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Where a place of the index leads. Nowhere, if keys break their law.
    #[inline]
    pub(super) fn follow(&self, place: Place) -> Option<Hit> {
        if place.0 & Place::FURTHER == 0 {
            let life = self.lives.get(place.0).filter(|life| life.id != 0)?;
            return Some(Hit { slot: place.0, name: 0, initiator: life.initiator });
        }
        let name = self.names.get(place.0 ^ Place::FURTHER)?;
        Some(Hit { slot: name.slot, name: name.number, initiator: name.initiator })
    }

    /// Asks for all that a packet of the flow at this place needs.
    #[inline]
    pub(super) fn prefetch(&self, place: Place) {
        let name = || self.names.get(place.0 ^ Place::FURTHER).map_or(0, |name| name.slot);
        let slot = if place.0 & Place::FURTHER == 0 { place.0 } else { name() };
        if let Some(life) = self.lives.get(slot) {
            prefetch_value(life);
        }
        self.flows.prefetch(slot);
    }

    /// The flow of a slot, where there is a life.
    #[inline]
    pub(super) fn flow_mut(&mut self, slot: u32) -> &mut Flow<K, V> {
        self.flows.get_mut(slot).expect("there is a flow where there is a life")
    }

    /// Puts in a flow, at the next free slot. The life gets a number of its own.
    pub(super) fn insert(&mut self, flow: Flow<K, V>, life: Life) -> Handle {
        self.last_id += 1;
        let life = Life { id: self.last_id, ..life };
        let slot = self.flows.insert(flow);
        match self.lives.get_mut(slot) {
            Some(place) => *place = life,
            None => _ = self.lives.push(life),
        }
        Handle { id: self.last_id, slot }
    }

    /// Takes out the flow of a slot, but for its further names.
    pub(super) fn take(&mut self, slot: u32) -> Option<(Flow<K, V>, Life)> {
        let flow = self.flows.take(slot)?;
        let life = self.lives.get_mut(slot)?;
        let taken = life.clone();
        life.id = 0;
        Some((flow, taken))
    }

    /// Gives a flow another name.
    pub(super) fn add_name(&mut self, slot: u32, name: Name<K>) {
        let next = self.lives[slot].names;
        self.lives[slot].names = self.names.insert(Name { next, ..name });
    }

    /// Takes away the newest of a flow's further names.
    pub(super) fn drop_first_name(&mut self, slot: u32) {
        let life = &mut self.lives[slot];
        life.names = self.names.take(life.names).map_or(NO_NAME, |name| name.next);
    }

    /// Takes away a further name, by its number in the slab of names.
    pub(super) fn drop_name(&mut self, slot: u32, name: u32) {
        if self.lives[slot].names == name {
            return self.drop_first_name(slot);
        }
        let next = self.names.take(name).map_or(NO_NAME, |name| name.next);
        let mut at = self.lives[slot].names;
        while let Some(before) = self.names.get_mut(at) {
            if before.next == name {
                before.next = next;
                return;
            }
            at = before.next;
        }
    }

    /// Gives back the memory of a store without flows.
    pub(super) fn shrink(&mut self) {
        if self.len() == 0 {
            *self = Self { last_id: self.last_id, ..Self::new() };
        }
    }

    /// Bytes that the next flow allocates.
    pub(super) fn growth(&self) -> usize {
        if self.flows.is_full() { self.lives.growth() + self.flows.growth() } else { 0 }
    }

    /// Those of them that are for the list of chunks, twice.
    pub(super) fn outer_growth(&self) -> usize {
        self.lives.growth().saturating_sub(Chunks::<Life>::GROWTH)
    }

    /// The slot of a handle whose flow lives.
    #[inline]
    pub(super) fn slot_of(&self, handle: Handle) -> Option<u32> {
        let life = self.lives.get(handle.slot)?;
        // No handle has the number 0.
        (life.id == handle.id).then_some(handle.slot)
    }

    pub(super) fn handle(&self, slot: u32) -> Handle {
        Handle { id: self.lives[slot].id, slot }
    }

    /// The further names of a flow, the newest first.
    pub(super) fn further_names(&self, first: u32) -> FurtherNames<'_, K> {
        FurtherNames { names: &self.names, next: first }
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.lives.allocation_size() + self.flows.allocation_size() + self.names.allocation_size()
    }
}

/// Further names of a flow, with their numbers in the slab of names.
#[derive(Debug)]
pub(super) struct FurtherNames<'a, K> {
    names: &'a Slots<Name<K>>,
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
