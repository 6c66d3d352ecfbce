//! What routers do.

use core::hash::BuildHasher;

use super::instruction::{Instruction, Operation, Relation, child_bits};
use super::packet::{EspPacket, Location};
use crate::ephemeral::{Binding, EphemeralStore};
use crate::probes::Observer;
use crate::timestamp::Timestamp;

/// Where a packet is executed, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The place within the router.
    pub location: Location,
    /// The name of the router, by which the next one knows it as its child: drawn at random, or an address. It is not
    /// that of another router or end system next to the same one.
    pub identity: u64,
}

/// What to do with a packet that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether the packet goes on"]
pub enum Action {
    /// It goes on, as it is now.
    Forward,
    /// It has done what it was for.
    Drop,
}

/// The instruction cannot be executed. The bindings are as they were.
struct Abort;

/// Executes a packet at a site: changes bindings of the store and the packet as its instruction says.
///
/// A packet that is for other locations is forwarded as it is, and so is one that has met with an error. One
/// that cannot be executed here is forwarded with its error bit set, and has changed nothing: the store is full, or a
/// binding that must be there is not, or a counter that must be above zero is not.
///
/// O(1 + c), where c are the entries that look-ups examine: see [`EphemeralStore`].
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::{self, Instruction, Location, Locations, Operation, EspPacket, Site, Action};
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::time::Duration;
///
/// let mut store: EphemeralStore = EphemeralStore::new(100, Duration::from_secs(10))?;
/// let site = Site { location: Location::Centre, identity: 77 };
/// let mut run = |seconds, instruction| {
///     let mut packet = EspPacket::new(Locations::CENTRE, 1, instruction);
///     (esp::execute(&mut store, &mut packet, site, Timestamp::from_secs(seconds)), packet.instruction, packet.error)
/// };
///
/// // Two receivers say that they are there, and the first of them is heard by the next router.
/// let here = Instruction::Count { tag: 1, threshold: 1 };
/// assert_eq!([run(0, here).0, run(0, here).0], [Action::Forward, Action::Drop]);
/// // Then they say what they have, and the last one goes on with the sum.
/// let has = |value| Instruction::Collect { count: 1, result: 2, operation: Operation::Sum, value };
/// assert_eq!(run(1, has(30)).0, Action::Drop);
/// assert_eq!(run(1, has(12)), (Action::Forward, has(42), false));
/// // A lifetime after it was counted, nothing is known of it.
/// assert_eq!(run(10, has(5)), (Action::Forward, has(5), true));
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

/// The same, telling the observer what it touches: see [`Words`](crate::probes::Words).
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::{self, Instruction, Location, Locations, EspPacket, Site};
/// use flowtable::probes::Words;
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::time::Duration;
///
/// let mut store: EphemeralStore = EphemeralStore::new(100, Duration::from_secs(10))?;
/// let site = Site { location: Location::Centre, identity: 77 };
/// let mut packet = EspPacket::new(Locations::CENTRE, 1, Instruction::Count { tag: 1, threshold: 9 });
/// let mut words = [Words::default(); 2];
/// for words in &mut words {
///     _ = esp::execute_observed(&mut store, &mut packet, site, Timestamp::ZERO, words);
/// }
/// // Five to make a binding or to examine it, two to read its counter, two to write it.
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
    let mut state = State { store, now, observer };
    state.run(packet, site.identity).unwrap_or_else(|Abort| {
        packet.error = true;
        Action::Forward
    })
}

/// The bindings at one moment.
struct State<'a, S, O> {
    store: &'a mut EphemeralStore<u64, u64, S>,
    now: Timestamp,
    observer: &'a mut O,
}

impl<S: BuildHasher, O: Observer> State<'_, S, O> {
    fn run(&mut self, packet: &mut EspPacket, identity: u64) -> Result<Action, Abort> {
        let bits = |child: &u64| child_bits(packet.computation, *child);
        match &mut packet.instruction {
            Instruction::Count { tag, threshold } => self.count(*tag, (*threshold).into()),
            Instruction::Compare { tag, relation, value } => self.compare(*tag, *relation, *value),
            Instruction::Collect { count, result, operation, value } => {
                let joined = self.collect(*count, *result, *operation, *value)?;
                Ok(answered(joined, value))
            }
            Instruction::RChild { children, child } => {
                let is_news = self.mark(*children, bits(child))?;
                Ok(answered(is_news.then_some(identity), child))
            }
            Instruction::RCollect { children, reported, result, operation, child, value } => {
                let sets = Sets { children: *children, reported: *reported };
                let joined = self.report(sets, bits(child), *result, *operation, *value)?;
                // The child changes with the value.
                _ = answered(joined.map(|_| identity), child);
                Ok(answered(joined, value))
            }
        }
    }

    fn count(&mut self, tag: u64, threshold: u64) -> Result<Action, Abort> {
        let (binding, _) = self.find_or_create(tag, 0)?;
        let count = self.read(binding)?.saturating_add(1);
        self.write(binding, count)?;
        Ok(if count <= threshold { Action::Forward } else { Action::Drop })
    }

    fn compare(&mut self, tag: u64, relation: Relation, value: u64) -> Result<Action, Abort> {
        let (binding, is_new) = self.find_or_create(tag, value)?;
        if !is_new && !relation.holds(value, self.read(binding)?) {
            return Ok(Action::Drop);
        }
        self.write(binding, value)?;
        Ok(Action::Forward)
    }

    /// The result, if this was the last one to come.
    fn collect(
        &mut self,
        count: u64,
        result: u64,
        operation: Operation,
        value: u64,
    ) -> Result<Option<u64>, Abort> {
        let count = self.find(count).ok_or(Abort)?;
        let left = self.read(count)?.checked_sub(1).ok_or(Abort)?;
        // Whatever may fail comes before the first change.
        let place = self.find_or_create(result, value)?;
        self.write(count, left)?;
        let joined = self.join(place, operation, value)?;
        Ok((left == 0).then_some(joined))
    }

    /// Whether the set has changed.
    fn mark(&mut self, set: u64, bits: u64) -> Result<bool, Abort> {
        let (binding, _) = self.find_or_create(set, 0)?;
        let marked = self.read(binding)?;
        if marked & bits == bits {
            return Ok(false);
        }
        self.write(binding, marked | bits)?;
        Ok(true)
    }

    /// The result, if all have reported now.
    fn report(
        &mut self,
        sets: Sets,
        bits: u64,
        result: u64,
        operation: Operation,
        value: u64,
    ) -> Result<Option<u64>, Abort> {
        let children = self.find(sets.children).ok_or(Abort)?;
        let children = self.read(children)?;
        if children & bits != bits {
            return Err(Abort);
        }
        let reported = self.find(sets.reported);
        let marked = reported.map_or(Ok(0), |binding| self.read(binding))?;
        if marked & bits == bits {
            return Ok(None);
        }
        // There is room for both or nothing is done: a mark without a value would lose that.
        let has_result = sets.reported == result || self.find(result).is_some();
        let created = usize::from(reported.is_none()) + usize::from(!has_result);
        if self.store.capacity() - self.store.live(self.now) < created {
            return Err(Abort);
        }
        let marked = marked | bits;
        let (binding, _) = self.find_or_create(sets.reported, marked)?;
        self.write(binding, marked)?;
        let place = self.find_or_create(result, value)?;
        let joined = self.join(place, operation, value)?;
        Ok((children & !marked == 0).then_some(joined))
    }

    /// Joins the value to that of a binding, or is all that there is if it was created for it.
    fn join(
        &mut self,
        (binding, is_new): (Binding, bool),
        operation: Operation,
        value: u64,
    ) -> Result<u64, Abort> {
        let joined = if is_new { value } else { operation.apply(self.read(binding)?, value) };
        self.write(binding, joined)?;
        Ok(joined)
    }

    fn find(&mut self, tag: u64) -> Option<Binding> {
        self.store.find_observed(&tag, self.now, self.observer)
    }

    fn find_or_create(&mut self, tag: u64, value: u64) -> Result<(Binding, bool), Abort> {
        let bound = self.store.find_or_create_observed(tag, self.now, || value, self.observer);
        bound.map(|bound| (bound.binding, bound.is_new)).map_err(|_| Abort)
    }

    fn read(&mut self, binding: Binding) -> Result<u64, Abort> {
        self.store.read_observed(binding, self.now, self.observer).copied().ok_or(Abort)
    }

    fn write(&mut self, binding: Binding, value: u64) -> Result<(), Abort> {
        let written = self.store.write_observed(binding, self.now, value, self.observer);
        written.map(|_| ()).map_err(|_| Abort)
    }
}

/// The tags of the sets of who is to report, and who has.
#[derive(Clone, Copy)]
struct Sets {
    children: u64,
    reported: u64,
}

/// Forwards with the answer in its place, if there is one.
fn answered(answer: Option<u64>, place: &mut u64) -> Action {
    let Some(answer) = answer else { return Action::Drop };
    *place = answer;
    Action::Forward
}
