//! Direct tables: the nodes at bit 18 of a dense part of the trie, in one step.
//!
//! ```text
//!     bit     0      6             18      24
//!     ┌───────┬─────────────┬───────┬─────────
//!     │ table │    slot     │ stride│ …
//!     └───────┴─────────────┴───────┴─────────
//!     slot    ▕ inner │ outer │ values │ inherited ▏   32 bytes
//!                                │          └ the longest route of 7 to 18 bits
//!                                └ the routes of 19 to 24 bits, as in the node
//! ```
//!
//! This is level compression where it pays: the node at bit 6 and its children at bit 12 are read
//! as one node of 2^12 slots. A slot is a copy of the routes of the node at bit 18, and has the
//! longest route above it. So a lookup reads two dependent cache lines: a slot and a value. The
//! nodes remain: updates change them, and the slots are computed from them.
//!
//! Bit 0 of `inner` is set if the slot is complete: there is nothing below the node at bit 18. Bit
//! 1 is set if there is. An index of a value counts the ones up to its bit, including the bit of
//! the flag; `values` compensates for the flag.
//!
//! A table of 128 KiB is made when there are [`MAKE_AT`] routes below its six bits, and released
//! when there are fewer than [`DROP_BELOW`]. That takes up to 32 µs with the routes of the
//! Internet, the longest of all updates: most of its slots are empty, or read one node each. To
//! release one takes 10 µs. If there is no memory for a table, the next insertion below its six
//! bits tries again.
//!
//! # Cost
//!
//! A route of 19 bits or more costs one slot; one of 13 to 18 bits up to 64 slots; one of 7 to 12
//! bits the inherited routes of up to 4096 slots: those whose route has changed, or whose value has
//! moved. Routes of up to six bits are not in the slots, so a default
//! route costs none.
#![allow(unsafe_code)]

use core::mem;
use core::ops::RangeInclusive;

use super::key::Key;
use super::node::Node;
use super::pool::Exhausted;
use super::route_bits::Changed;
use super::search::RouteMatch;
use super::slot::{Slot, SlotTable, TABLE_END, WIDTH, slot_in_table};
use super::store::{NO_NODE, Nodes};
use super::stride::{PrefixIndex, SLOTS, STRIDE, first_slot};
use crate::key::bits::Address;
use crate::memory::{Allocator, Box};
use crate::raw::bit_ops::detect;

/// Number of routes at which a table is allocated: it then costs 32 bytes for each of them. Fewer
/// in fuzzing, whose tables are small.
const MAKE_AT: u32 = if cfg!(fuzzing) { 48 } else { 4096 };

/// Number of routes below which a table is released. A quarter of [`MAKE_AT`], so that a table is
/// not allocated and released in turns.
const DROP_BELOW: u32 = MAKE_AT / 4;

/// Numbers of routes of more than six bits, by the first six bits.
pub(super) type RoutesByFirst = [u32; SLOTS as usize];

/// The direct tables, by the first six bits of an address.
///
/// # Invariant
///
/// The tables are allocated from `memory`.
#[derive(Debug)]
pub(super) struct Direct<M: Allocator + Clone> {
    tables: [SlotTable; SLOTS as usize],
    /// The longest route of up to six bits.
    short: [RouteMatch; SLOTS as usize],
    /// Whether the CPU has the instructions of `bit_ops`.
    is_fast: bool,
    memory: M,
}

impl<M: Allocator + Clone> Direct<M> {
    pub(super) fn new(nodes: &Nodes<M>) -> Self {
        let mut direct = Self {
            tables: [const { SlotTable::one(&Slot::NO_ROUTES) }; SLOTS as usize],
            short: [RouteMatch::NONE; SLOTS as usize],
            is_fast: detect(),
            memory: nodes.memory().clone(),
        };
        direct.update_short(nodes);
        direct
    }

    /// Creates direct tables for the routes of nodes, as far as there is memory: those for which
    /// `is_wanted` returns true.
    pub(super) fn of(
        nodes: &Nodes<M>,
        routes: &RoutesByFirst,
        is_wanted: impl Fn(u32, u32) -> bool,
    ) -> Result<Box<Self, M>, Exhausted> {
        let direct = Box::try_new_in(Self::new(nodes), nodes.memory().clone());
        let mut direct = direct.map_err(|_| Exhausted)?;
        for (first, &routes) in (0..).zip(routes) {
            direct.set_table(first, SlotTable::one(Slot::without_table(routes)));
            if is_wanted(first, routes) {
                direct.make_table(nodes, first);
            }
        }
        Ok(direct)
    }

    /// Creates and computes the direct tables of nodes, as far as there is memory: those that
    /// pay, and those that `old` has.
    pub(super) fn computed(
        nodes: &Nodes<M>,
        routes: &RoutesByFirst,
        old: Option<&Self>,
    ) -> Result<Box<Self, M>, Exhausted> {
        let had_table = |first| old.is_some_and(|old| old.has_table(first));
        Self::of(nodes, routes, |first, routes| pays(routes) || had_table(first))
    }

    /// Replaces a table, which is freed.
    fn set_table(&mut self, first: u32, table: SlotTable) {
        let old = mem::replace(&mut self.tables[first as usize], table);
        // SAFETY: tables are allocated from this memory.
        unsafe { old.free(&self.memory) };
    }

    /// Allocates and computes a table, if there is memory.
    #[cold]
    fn make_table(&mut self, nodes: &Nodes<M>, first: u32) {
        let Some(mut table) = SlotTable::try_new_in(&self.memory) else { return };
        if let Some(slots) = table.slots_mut() {
            for (second, group) in (0..SLOTS).zip(slots.chunks_exact_mut(SLOTS as usize)) {
                compute_group(nodes, first, second, group);
            }
        }
        self.set_table(first, table);
    }

    /// Returns whether the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) const fn is_fast(&self) -> bool {
        self.is_fast
    }

    /// Returns the slot of an address with these first bits; [`Slot::EMPTY`] without a table, if
    /// there are routes.
    #[inline(always)]
    pub(super) fn slot(&self, word: u64) -> &Slot {
        self.tables[first_slot(word) as usize].slot(word)
    }

    /// Returns the longest match of up to six bits, which may not exist.
    #[inline(always)]
    pub(super) fn short(&self, word: u64) -> RouteMatch {
        self.short[first_slot(word) as usize]
    }

    /// Makes the table if it pays and there is memory, after the insertion of one of that many
    /// routes of more than six bits.
    pub(super) fn add_route(&mut self, nodes: &Nodes<M>, first: u32, routes: u32) {
        if !self.has_table(first) {
            self.set_table(first, SlotTable::one(&Slot::EMPTY));
            if pays(routes) {
                self.make_table(nodes, first);
            }
        }
    }

    /// Releases the table if it no longer pays, after the removal of a route of more than six bits,
    /// of which that many are left.
    pub(super) fn remove_route(&mut self, first: u32, routes: u32) {
        if routes < DROP_BELOW {
            self.set_table(first, SlotTable::one(Slot::without_table(routes)));
        }
    }

    /// Updates the slots and tables that depend on the routes of `len` bits in a node, after the
    /// change of a route. `is_found` if there is no other node than before.
    #[inline(always)]
    pub(super) fn update<A: Address>(
        &mut self,
        nodes: &Nodes<M>,
        (key, len): (&Key<A>, u32),
        node: u32,
        changed: Changed,
        is_found: bool,
    ) {
        let word = key.word();
        if is_found && (TABLE_END + 1..=TABLE_END + STRIDE).contains(&len) {
            if let Some(slot) = self.slot_mut(word) {
                slot.set_routes(changed.bits);
            }
        } else if len > TABLE_END {
            let is_in_slot = |slot: &mut Slot| len <= TABLE_END + STRIDE || !slot.is_above_nodes();
            if !is_found && self.slot_mut(word).is_some_and(is_in_slot) {
                self.update_deeper(nodes, word);
            }
        } else if len > 2 * STRIDE {
            let index = key.index(2 * STRIDE, len);
            self.update_routes(nodes, word, (node, index), changed.moved_from);
        } else if len > STRIDE {
            self.update_inherited(nodes, first_slot(word));
        } else {
            self.update_short(nodes);
        }
    }

    /// Recomputes the routes of up to six bits.
    #[inline(never)]
    fn update_short(&mut self, nodes: &Nodes<M>) {
        let root = nodes.root();
        for (slot, short) in (0..).zip(&mut self.short) {
            *short = root.longest(slot).map_or(RouteMatch::NONE, |found| found.at(0));
        }
    }

    /// Recomputes the routes of 7 to 12 bits in a table.
    #[inline(never)]
    fn update_inherited(&mut self, nodes: &Nodes<M>, first: u32) {
        let Some(table) = self.tables[first as usize].slots_mut() else { return };
        let at_6 = nodes.child_of(nodes.root(), first);
        let groups = table.chunks_exact_mut(SLOTS as usize);
        for (second, group) in (0..SLOTS).zip(groups) {
            let inherited = inherited_of_group(at_6, second);
            let inherit = group.iter_mut().filter(|slot| slot.inherited.len() <= 2 * STRIDE);
            // Most groups have the same route as before: one slot is read.
            for slot in inherit.take_while(|slot| slot.inherited != inherited) {
                slot.inherited = inherited;
            }
        }
    }

    /// Recomputes the routes of 13 to 18 bits in the slots that begin with the same twelve bits,
    /// after a change of one with this index in their node, whose values from this offset on have
    /// moved.
    #[inline(never)]
    fn update_routes(
        &mut self,
        nodes: &Nodes<M>,
        word: u64,
        (node, changed): (u32, PrefixIndex),
        moved_from: u32,
    ) {
        let (first, second) = (first_slot(word), first_slot(word << STRIDE));
        let Some(table) = self.tables[first as usize].slots_mut() else { return };
        let group = &mut table[(second * SLOTS) as usize..][..SLOTS as usize];
        // Replaces the routes of these lengths in the slots of an index.
        let mut replace = |index: PrefixIndex, lens: RangeInclusive<u32>, by: RouteMatch| {
            let slots = &mut group[index.first_slot() as usize..][..index.count() as usize];
            slots.iter_mut().filter(|slot| lens.contains(&slot.inherited.len())).for_each(|slot| {
                slot.inherited = by;
            });
        };
        let (node, pos) = (nodes.get(node), 2 * STRIDE);
        if !node.has(changed) {
            let shorter = node.longest_above(changed).map_or_else(
                || inherited_of_group(nodes.child_of(nodes.root(), first), second),
                |found| found.at(pos),
            );
            let len = pos + changed.level();
            replace(changed, len..=len, shorter);
        }
        // A new route is one of those whose values have moved.
        let moved = node.values_block().0 + moved_from;
        node.for_each_route(|index, value| {
            let len = pos + index.level();
            if value >= moved {
                replace(index, 0..=len, RouteMatch::new(value, len));
            }
        });
    }

    /// Recomputes the slot of these bits after a change below the node at bit 18, or of that
    /// node itself, if it has no routes any more.
    pub(super) fn update_deeper(&mut self, nodes: &Nodes<M>, word: u64) {
        let Some(slot) = self.slot_mut(word) else { return };
        let old = mem::replace(&mut slot.node, NO_NODE);
        slot.copy_node(nodes, nodes.node_at_18(word));
        if slot.node != old {
            // A node that was added or removed has moved its siblings.
            self.update_nodes(nodes, word);
        }
    }

    /// Sets the nodes of the slots that begin with the same twelve bits.
    pub(super) fn update_nodes(&mut self, nodes: &Nodes<M>, word: u64) {
        let Some(table) = self.tables[first_slot(word) as usize].slots_mut() else { return };
        let group = &mut table[slot_in_table(word) & !(SLOTS as usize - 1)..][..SLOTS as usize];
        // The other slots have no nodes.
        for (slot, child) in nodes.node_at_12(word).into_iter().flat_map(Node::children) {
            group[slot as usize].node = child;
        }
    }

    /// Returns the slot of these bits, if there is a table.
    #[inline]
    fn slot_mut(&mut self, word: u64) -> Option<&mut Slot> {
        let table = self.tables[first_slot(word) as usize].slots_mut()?;
        Some(&mut table[slot_in_table(word)])
    }

    /// Returns the allocated bytes of the tables alone.
    pub(super) fn allocation_size(&self) -> usize {
        self.tables() * SlotTable::BYTES
    }

    /// Returns the number of tables.
    pub(super) fn tables(&self) -> usize {
        self.tables.iter().filter_map(SlotTable::slots).count()
    }

    /// Returns whether there is a table for this value of the first six bits.
    pub(super) fn has_table(&self, first: u32) -> bool {
        self.tables[first as usize].slots().is_some()
    }

    /// Returns whether the slots agree with the nodes.
    pub(super) fn is_consistent(&self, nodes: &Nodes<M>, routes: &RoutesByFirst) -> bool {
        let expected = Self::new(nodes);
        let is_table_consistent = |first: u32, table: &[Slot; WIDTH]| {
            let groups = (0..SLOTS).zip(table.chunks(SLOTS as usize));
            groups.into_iter().all(|(second, group)| {
                let mut expected = [Slot::EMPTY; SLOTS as usize];
                compute_group(nodes, first, second, &mut expected);
                group == expected
            })
        };
        let tables = || (0..).zip(&self.tables);
        self.short == expected.short
            && tables().zip(routes).all(|((first, table), &routes)| match table.slots() {
                Some(table) => routes >= DROP_BELOW && is_table_consistent(first, table),
                // Also of many routes, if there was no memory.
                None => table.slot(0) == Slot::without_table(routes),
            })
    }
}

impl<M: Allocator + Clone> Drop for Direct<M> {
    fn drop(&mut self) {
        (0..SLOTS).for_each(|first| self.set_table(first, SlotTable::one(&Slot::EMPTY)));
    }
}

/// Returns whether that many routes pay for a table.
const fn pays(routes: u32) -> bool {
    routes >= MAKE_AT
}

/// Returns the longest route of 7 to 12 bits for the slots of a group.
fn inherited_of_group(at_6: Option<&Node>, second: u32) -> RouteMatch {
    let found = at_6.and_then(|node| node.longest(second));
    found.map_or(RouteMatch::NONE, |found| found.at(STRIDE))
}

/// Returns the longest route of 7 to 18 bits for each slot of a group.
fn inherited_by_slots(
    at_6: Option<&Node>,
    at_12: Option<&Node>,
    second: u32,
) -> [RouteMatch; SLOTS as usize] {
    let mut inherited = [inherited_of_group(at_6, second); SLOTS as usize];
    if let Some(node) = at_12 {
        // Longer ones follow shorter ones.
        node.for_each_route(|index, value| {
            let (from, count) = (index.first_slot() as usize, SLOTS as usize >> index.level());
            let found = RouteMatch::new(value, 2 * STRIDE + index.level());
            inherited[from..from + count].fill(found);
        });
    }
    inherited
}

/// Computes the slots that begin with these twelve bits from the nodes.
fn compute_group<M: Allocator + Clone>(
    nodes: &Nodes<M>,
    first: u32,
    second: u32,
    group: &mut [Slot],
) {
    let at_6 = nodes.child_of(nodes.root(), first);
    let at_12 = at_6.and_then(|node| nodes.child_of(node, second));
    let inherited = inherited_by_slots(at_6, at_12, second);
    if at_12.is_none() {
        let mut slot = Slot::NO_ROUTES;
        slot.inherited = inherited[0];
        return group.fill(slot);
    }
    for (slot, (entry, inherited)) in (0..).zip(group.iter_mut().zip(inherited)) {
        entry.copy_node(nodes, at_12.and_then(|node| node.child(slot)));
        entry.inherited = inherited;
    }
}
