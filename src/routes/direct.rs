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
//! moved. Routes of up to six bits are not in the slots, so a default route costs none.
//!
//! A lookup selects the slot by a mask instead of a branch: which of the 64 parts of the address
//! space have tables is unpredictable for addresses that are spread over all of it.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem;
use core::ops::RangeInclusive;
use core::ptr::{self, NonNull};

use super::key::Key;
use super::node::Node;
use super::pool::Exhausted;
use super::search::{Changed, NodeRoutes, RouteBits, RouteMatch, search};
use super::store::{NO_NODE, Nodes};
use super::stride::{PrefixIndex, SLOTS, STRIDE, first_slot};
use crate::key::bits::Address;
use crate::memory::{Allocator, Box};
use crate::raw::bit_ops::BitOps;

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
    /// The bit operations by instructions, if the CPU has them.
    ops: Option<BitOps<true>>,
    memory: M,
}

impl<M: Allocator + Clone> Direct<M> {
    pub(super) fn new(nodes: &Nodes<M>) -> Self {
        let mut direct = Self {
            tables: [const { SlotTable::one(&Slot::NO_ROUTES) }; SLOTS as usize],
            short: [RouteMatch::NONE; SLOTS as usize],
            ops: BitOps::detected(),
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

    /// Returns the bit operations by instructions, if the CPU has them.
    #[inline(always)]
    pub(super) const fn ops(&self) -> Option<BitOps<true>> {
        self.ops
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

    /// Updates the slots and tables that depend on the routes of `key` in a node, after the
    /// change of a route. `is_found` if there is no other node than before.
    #[inline(always)]
    pub(super) fn update<A: Address>(
        &mut self,
        nodes: &Nodes<M>,
        key: &Key<A>,
        node: u32,
        changed: Changed,
        is_found: bool,
    ) {
        let (word, len) = (key.word(), key.len());
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
            let index = key.index();
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
        let root = nodes.root().branch();
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
        let (node, pos) = (nodes.get(node).branch(), 2 * STRIDE);
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
        for (slot, child) in
            nodes.node_at_12(word).into_iter().flat_map(|node| node.branch().children())
        {
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
    let found = at_6.and_then(|node| node.branch().longest(second));
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
        node.branch().for_each_route(|index, value| {
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
        entry.copy_node(nodes, at_12.and_then(|node| node.branch().child(slot)));
        entry.inherited = inherited;
    }
}

/// The position of the nodes whose routes are in the slots.
pub(super) const TABLE_END: u32 = 3 * STRIDE;

/// The longest routes for 18 given bits and any six after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct Slot {
    /// Routes of 19 to 23 bits, by prefix index, and one of two flags.
    inner: u64,
    /// Routes of 24 bits, by slot.
    outer: u64,
    /// One more than the `values` of the node, for the flag.
    values: u32,
    /// The node, if it exists.
    pub(super) node: u32,
    pub(super) inherited: RouteMatch,
}

/// The flag of a slot that is all that there is for its 18 bits.
const COMPLETE: u64 = 1;

/// The flag of a computed slot with a node or a path below it.
const DEEPER: u64 = 2;

impl Slot {
    /// A slot that has not been computed: all zeros.
    pub(super) const EMPTY: Self =
        Self { inner: 0, outer: 0, values: 0, node: NO_NODE, inherited: RouteMatch::ZERO };

    /// The slot of addresses without routes of more than six bits.
    pub(super) const NO_ROUTES: Self =
        Self { inner: COMPLETE, values: 1, inherited: RouteMatch::NONE, ..Self::EMPTY };

    /// Returns the slot of all addresses with the same first six bits that have no table, given the
    /// number of their routes of more than six bits.
    pub(super) const fn without_table(routes: u32) -> &'static Self {
        if routes == 0 { &Self::NO_ROUTES } else { &Self::EMPTY }
    }

    /// Copies the routes of the node at [`TABLE_END`].
    #[inline]
    pub(super) fn copy_node<M: Allocator + Clone>(&mut self, nodes: &Nodes<M>, id: Option<u32>) {
        let node = id.map_or(&Node::EMPTY, |id| nodes.get(id));
        let RouteBits { inner, outer, values } = node.routes();
        self.inner = inner | if node.only_child().is_some() { DEEPER } else { COMPLETE };
        self.outer = outer;
        // The flag precedes all routes.
        self.values = values + 1;
        self.node = id.unwrap_or(NO_NODE);
    }

    /// Returns the node and its routes, if the slot has been computed and the node has routes.
    #[inline]
    pub(super) fn node(&self) -> Option<NodeRoutes> {
        let inner = self.inner & !(COMPLETE | DEEPER);
        let bits = RouteBits { inner, outer: self.outer, values: self.values.wrapping_sub(1) };
        if bits.is_empty() { None } else { Some(NodeRoutes { id: self.node, bits }) }
    }

    /// Sets the routes of the node.
    #[inline]
    pub(super) fn set_routes(&mut self, bits: RouteBits) {
        self.inner = bits.inner | self.inner & (COMPLETE | DEEPER);
        (self.outer, self.values) = (bits.outer, bits.values + 1);
    }

    /// Returns whether the slot has the longest route of all its addresses.
    #[inline(always)]
    pub(super) const fn is_complete(&self) -> bool {
        self.inner & COMPLETE != 0
    }

    /// Returns whether the slot has been computed.
    #[inline(always)]
    pub(super) const fn is_computed(&self) -> bool {
        self.inner & (COMPLETE | DEEPER) != 0
    }

    /// Returns whether there is anything below the node, if the slot has been computed.
    pub(super) const fn is_above_nodes(&self) -> bool {
        self.inner & DEEPER != 0
    }

    /// Returns the longest match of 7 to 24 bits, which may not exist; its length only if `LEN`.
    /// The slot has been computed.
    #[inline(always)]
    pub(super) fn longest<const FAST: bool, const LEN: bool>(
        &self,
        ops: BitOps<FAST>,
        word: u64,
    ) -> RouteMatch {
        let bits = RouteBits { inner: self.inner, outer: self.outer, values: self.values };
        let slot = first_slot(word << TABLE_END);
        // One flag is set.
        search::<FAST, LEN, TABLE_END>(ops, bits, 1, 0, slot, Some(self.inherited))
    }
}

/// Slots of a table.
pub(super) const WIDTH: usize = 1 << (2 * STRIDE);

/// The owner frees it.
///
/// # Invariant
///
/// If `mask` is 0, `slots` is a static slot, else an allocation of [`WIDTH`] slots that belongs to
/// this.
#[derive(Debug)]
pub(super) struct SlotTable {
    slots: NonNull<Slot>,
    mask: usize,
}

// SAFETY: the slots are plain data, and belong to this or are static.
unsafe impl Send for SlotTable {}

// SAFETY: shared references only read the slots.
unsafe impl Sync for SlotTable {}

impl SlotTable {
    const LAYOUT: Layout = Layout::new::<[Slot; WIDTH]>();

    /// Bytes of a table.
    pub(super) const BYTES: usize = Self::LAYOUT.size();

    /// One slot for all addresses.
    pub(super) const fn one(slot: &'static Slot) -> Self {
        // SAFETY: a reference is not null.
        let slots = unsafe { NonNull::new_unchecked(ptr::from_ref(slot).cast_mut()) };
        Self { slots, mask: 0 }
    }

    /// Allocates a table of empty slots, if there is memory. The pages of a large allocation of
    /// zeros are not touched here.
    pub(super) fn try_new_in(memory: &impl Allocator) -> Option<Self> {
        let slots = memory.allocate_zeroed(Self::LAYOUT).ok()?.cast();
        Some(Self { slots, mask: WIDTH - 1 })
    }

    /// Returns the slot of an address with these first bits.
    #[inline(always)]
    pub(super) fn slot(&self, word: u64) -> &Slot {
        // SAFETY: without a table the index is 0, else it is below the width of a table.
        let slot = unsafe { self.slots.add((word >> (64 - TABLE_END)) as usize & self.mask) };
        // SAFETY: slots are initialised; zeros are valid slots, `Slot::EMPTY`.
        unsafe { slot.as_ref() }
    }

    /// Frees the table, if there is one.
    ///
    /// # Safety
    ///
    /// It was allocated from `memory`.
    pub(super) unsafe fn free(self, memory: &impl Allocator) {
        if self.mask != 0 {
            // SAFETY: allocated with this layout; it belongs to this, which is not used any more.
            unsafe { memory.deallocate(self.slots.cast(), Self::LAYOUT) };
        }
    }

    /// Returns the slots of the table, if there is one.
    pub(super) fn slots(&self) -> Option<&[Slot; WIDTH]> {
        // SAFETY: with a mask there are as many slots, which are initialised.
        (self.mask != 0).then(|| unsafe { self.slots.cast().as_ref() })
    }

    /// Returns the slots of the table, if there is one.
    pub(super) fn slots_mut(&mut self) -> Option<&mut [Slot; WIDTH]> {
        // SAFETY: as in `slots`, and they belong to this.
        (self.mask != 0).then(|| unsafe { self.slots.cast().as_mut() })
    }
}

/// Returns the slot of these bits in its table.
#[inline(always)]
pub(super) fn slot_in_table(word: u64) -> usize {
    (word >> (64 - TABLE_END)) as usize % WIDTH
}
