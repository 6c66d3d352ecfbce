//! Execution of packets at a router.

use core::hash::BuildHasher;

use super::instruction::{Instruction, Operation, Relation, child_bits};
use super::packet::{EspPacket, Location};
use crate::ephemeral::EphemeralStore;
use crate::probes::Observer;
use crate::timestamp::Timestamp;

/// Words of 32 bits of a value.
const VALUE_WORDS: u32 = 2;

/// The location and the router that execute a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The location within the router.
    pub location: Location,
    /// The identity of the router, under which the next router records it as a child: a random
    /// value or an address. Unique among the neighbours of a router.
    pub identity: u64,
}

/// The action for a packet after its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the packet is to be forwarded or dropped"]
pub enum Action {
    /// Forward the packet in its present form.
    Forward,
    /// Drop the packet: its work is complete.
    Drop,
}

/// The instruction cannot be executed. The bindings are unchanged.
struct Abort;

/// Executes the instruction of a packet at a site, on the bindings of the store and on the packet.
///
/// A packet for other locations, or with its error bit set, is forwarded unchanged. A packet that
/// cannot be executed is forwarded with its error bit set, and the bindings are unchanged: if the
/// store is full, a required binding is missing, or a counter that must be above zero is not.
///
/// O(1 + c), where c is the number of entries that lookups examine: see [`EphemeralStore`].
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::{self, Action, EspPacket, Instruction, Operation};
/// use flowtable::papers::esp::{Location, Locations, Site};
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::time::Duration;
///
/// let mut store: EphemeralStore = EphemeralStore::new(100, Duration::from_secs(10))?;
/// let site = Site { location: Location::Centre, identity: 77 };
/// let mut run = |seconds, instruction| {
///     let mut packet = EspPacket::new(Locations::CENTRE, 1, instruction);
///     let now = Timestamp::from_secs(seconds);
///     let action = esp::execute(&mut store, &mut packet, site, now);
///     (action, packet.instruction, packet.error)
/// };
///
/// // The router counts two receivers, and forwards the packet of the first.
/// let count = Instruction::Count { tag: 1, threshold: 1 };
/// assert_eq!([run(0, count).0, run(0, count).0], [Action::Forward, Action::Drop]);
/// // It adds up their values, and forwards the last packet with the sum.
/// let operation = Operation::Sum;
/// let collect = |value| Instruction::Collect { count: 1, result: 2, operation, value };
/// assert_eq!(run(1, collect(30)).0, Action::Drop);
/// assert_eq!(run(1, collect(12)), (Action::Forward, collect(42), false));
/// // The counter expires one lifetime after its creation.
/// assert_eq!(run(10, collect(5)), (Action::Forward, collect(5), true));
/// # Ok::<(), flowtable::ephemeral::StoreError>(())
/// ```
pub fn execute<S: BuildHasher>(
    store: &mut EphemeralStore<u64, u64, S>,
    packet: &mut EspPacket,
    site: Site,
    now: Timestamp,
) -> Action {
    execute_observed(store, packet, site, now, &mut ())
}

/// Executes the instruction of a packet at a site, and reports the accesses to the observer: see
/// [`Words`](crate::probes::Words).
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::{self, EspPacket, Instruction, Location, Locations, Site};
/// use flowtable::probes::Words;
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::time::Duration;
///
/// let mut store: EphemeralStore = EphemeralStore::new(100, Duration::from_secs(10))?;
/// let site = Site { location: Location::Centre, identity: 77 };
/// let instruction = Instruction::Count { tag: 1, threshold: 9 };
/// let mut packet = EspPacket::new(Locations::CENTRE, 1, instruction);
/// let mut words = [Words::default(); 2];
/// for words in &mut words {
///     _ = esp::execute_observed(&mut store, &mut packet, site, Timestamp::ZERO, words);
/// }
/// // Five to create or to examine a binding, two to read its counter, two to write it.
/// assert_eq!(words.map(|words| words.0), [9, 9]);
/// # Ok::<(), flowtable::ephemeral::StoreError>(())
/// ```
pub fn execute_observed<S: BuildHasher>(
    store: &mut EphemeralStore<u64, u64, S>,
    packet: &mut EspPacket,
    site: Site,
    now: Timestamp,
    observer: &mut impl Observer,
) -> Action {
    if packet.error || !packet.locations.contains(site.location) {
        return Action::Forward;
    }
    // Time passes first: a binding that has been read does not expire before it is written.
    store.clean(now, 0);
    let mut bindings = Bindings { store, now, observer };
    bindings.run(packet, site.identity).unwrap_or_else(|Abort| {
        packet.error = true;
        Action::Forward
    })
}

/// The bindings of a store at one timestamp.
struct Bindings<'a, S, O> {
    store: &'a mut EphemeralStore<u64, u64, S>,
    now: Timestamp,
    observer: &'a mut O,
}

impl<S: BuildHasher, O: Observer> Bindings<'_, S, O> {
    fn run(&mut self, packet: &mut EspPacket, identity: u64) -> Result<Action, Abort> {
        let bits = |child: &u64| child_bits(packet.computation, *child);
        match &mut packet.instruction {
            Instruction::Count { tag, threshold } => self.count(*tag, (*threshold).into()),
            Instruction::Compare { tag, relation, value } => self.compare(*tag, *relation, *value),
            Instruction::Collect { count, result, operation, value } => {
                let combined = self.collect(*count, *result, *operation, *value)?;
                Ok(forward_with(combined, value))
            }
            Instruction::RChild { children, child } => {
                let is_new = self.mark(*children, bits(child))?;
                Ok(forward_with(is_new.then_some(identity), child))
            }
            Instruction::RCollect { children, reported, result, operation, child, value } => {
                let sets = Sets { children: *children, reported: *reported };
                let combined = self.report(sets, bits(child), *result, *operation, *value)?;
                // The child is replaced along with the value.
                _ = forward_with(combined.map(|_| identity), child);
                Ok(forward_with(combined, value))
            }
        }
    }

    fn count(&mut self, tag: u64, threshold: u64) -> Result<Action, Abort> {
        let count = self.update(tag, 0, |count, _| Some(count.saturating_add(1)))?;
        Ok(if count <= threshold { Action::Forward } else { Action::Drop })
    }

    fn compare(&mut self, tag: u64, relation: Relation, value: u64) -> Result<Action, Abort> {
        let mut holds = true;
        self.update(tag, value, |bound, is_new| {
            holds = is_new || relation.holds(value, bound);
            holds.then_some(value)
        })?;
        Ok(if holds { Action::Forward } else { Action::Drop })
    }

    /// Returns the result if this value was the last one.
    fn collect(
        &mut self,
        count: u64,
        result: u64,
        operation: Operation,
        value: u64,
    ) -> Result<Option<u64>, Abort> {
        let left = self.read(count).ok_or(Abort)?.checked_sub(1).ok_or(Abort)?;
        // If the result is the count, the value is combined with what is left of it.
        let is_count = count == result;
        let combined = self.update(result, value, |before, is_new| {
            let before = if is_count { left } else { before };
            Some(if is_new { value } else { operation.apply(before, value) })
        })?;
        if !is_count {
            self.observer.words(VALUE_WORDS);
            // The paper has kept a pointer to the binding: the second lookup does not count.
            if let Some(stored) = self.store.get_mut(&count, self.now) {
                *stored = left;
            }
        }
        Ok((left == 0).then_some(combined))
    }

    /// Marks bits in a set. Returns whether the set has changed.
    fn mark(&mut self, set: u64, bits: u64) -> Result<bool, Abort> {
        let mut is_changed = false;
        self.update(set, 0, |marked, _| {
            is_changed = marked & bits != bits;
            is_changed.then_some(marked | bits)
        })?;
        Ok(is_changed)
    }

    /// Returns the result if all children have reported now.
    fn report(
        &mut self,
        sets: Sets,
        bits: u64,
        result: u64,
        operation: Operation,
        value: u64,
    ) -> Result<Option<u64>, Abort> {
        let children = self.read(sets.children).ok_or(Abort)?;
        if children & bits != bits {
            return Err(Abort);
        }
        let reported = self.read(sets.reported);
        if reported.is_some_and(|marked| marked & bits == bits) {
            return Ok(None);
        }
        // Check the capacity for both bindings first: a mark without its value would lose the
        // value.
        let has_result = sets.reported == result || self.read(result).is_some();
        let created = usize::from(reported.is_none()) + usize::from(!has_result);
        if self.store.capacity() - self.store.live(self.now) < created {
            return Err(Abort);
        }
        let marked = reported.unwrap_or(0) | bits;
        self.update(sets.reported, marked, |_, _| Some(marked))?;
        let combined = self.update(result, value, |before, is_new| {
            Some(if is_new { value } else { operation.apply(before, value) })
        })?;
        Ok((children & !marked == 0).then_some(combined))
    }

    /// Returns the value of a tag, if it is bound.
    fn read(&mut self, tag: u64) -> Option<u64> {
        let value = self.store.get_observed(&tag, self.now, self.observer).copied()?;
        self.observer.words(VALUE_WORDS);
        Some(value)
    }

    /// Binds a tag, to `initial` if it is not bound, and replaces its value by the one that
    /// `change` returns, if any, for its value and whether it is new. Returns its value.
    fn update(
        &mut self,
        tag: u64,
        initial: u64,
        change: impl FnOnce(u64, bool) -> Option<u64>,
    ) -> Result<u64, Abort> {
        let mut is_new = false;
        let make = || {
            is_new = true;
            initial
        };
        let Self { store, now, observer } = self;
        let value = store.get_or_insert_with_observed(&tag, *now, make, *observer);
        let value = value.map_err(|_| Abort)?;
        // A value that was just written to the packet's need not be read.
        if !is_new || initial == 0 {
            observer.words(VALUE_WORDS);
        }
        if let Some(changed) = change(*value, is_new) {
            observer.words(VALUE_WORDS);
            *value = changed;
        }
        Ok(*value)
    }
}

/// The tags of the sets of children that must report, and of those that have reported.
#[derive(Clone, Copy)]
struct Sets {
    children: u64,
    reported: u64,
}

/// Stores a result in an operand and forwards the packet, or drops it if there is no result.
fn forward_with(result: Option<u64>, operand: &mut u64) -> Action {
    let Some(result) = result else { return Action::Drop };
    *operand = result;
    Action::Forward
}
