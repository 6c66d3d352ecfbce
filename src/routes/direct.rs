//! Direct tables: the upper levels of a dense part of the trie in one step.
//!
//! ```text
//!     bit     0      6             18
//!     ┌───────┬─────────────┬─────────────
//!     │ table │    slot     │  node, …
//!     └───────┴─────────────┴─────────────
//!     slot    │ the longest route of 7 to 18 bits │ the node at 18 │
//! ```
//!
//! This is level compression where it pays: the node at bit 6 and its children at bit 12 are read
//! as one node of 2^12 slots. A slot has the longest of their routes and the next node. The nodes
//! remain: updates change them, and the slots are computed from them.
//!
//! A table of 32 KiB is allocated when there are [`MAKE_AT`] routes below its six bits and released
//! when there are fewer than [`DROP_BELOW`]: it costs 8 bytes a route at allocation, 32 at release.
//! The Internet's routes have 52 tables, those of IPv6 three.
//!
//! # Cost
//!
//! A route of 13 to 18 bits, or a new or removed child of a node at bit 12, costs 64 slots; a route
//! of 7 to 12 bits, or a new table, costs 4096 slots. Routes of up to 6 bits are not in the slots,
//! so a default route costs none.

use alloc::boxed::Box;
use alloc::vec;

use super::node::{Node, NodeMatch};
use super::pool::Empty;
use super::store::{NO_NODE, ROOT, Store};
use super::stride::{SLOTS, STRIDE, slot_of};
use crate::key::bits::Address;

/// Number of routes at which a table is allocated: it then costs 8 bytes for each of them, about as
/// much as the routes themselves.
const MAKE_AT: u32 = 4096;

/// Number of routes below which a table is released. A quarter of [`MAKE_AT`], so that a table is
/// not allocated and released in turns.
const DROP_BELOW: u32 = 1024;

/// Slots of a table.
const WIDTH: usize = 1 << (2 * STRIDE);

/// The position of the nodes after a table.
pub(super) const TABLE_END: u32 = 3 * STRIDE;

/// The contents of a slot: node at 18 (27 bits), length of the route (5), index of its value (32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// The slot of an address without a table. No slot of a table has the root as its node.
    pub(super) const NONE: Self = Self((ROOT as u64) << 37);

    fn new(node: u32, route: Option<RouteMatch>) -> Self {
        let RouteMatch { value, len } = route.unwrap_or(RouteMatch { value: 0, len: 0 });
        Self(u64::from(node) << 37 | u64::from(len) << 32 | u64::from(value))
    }

    /// Returns the node at [`TABLE_END`], which may be [`NO_NODE`].
    #[inline]
    pub(super) const fn node(self) -> u32 {
        (self.0 >> 37) as u32
    }

    /// Returns the longest match of 7 to 18 bits; of length 0 if there is none.
    #[inline]
    pub(super) const fn found(self) -> RouteMatch {
        RouteMatch { value: self.0 as u32, len: (self.0 >> 32) as u32 & 31 }
    }

    /// Returns the longest match of 7 to 18 bits.
    #[inline]
    pub(super) fn route(self) -> Option<RouteMatch> {
        Some(self.found()).filter(|route| route.len > 0)
    }
}

/// A matching route: the index of its value, and its length.
#[derive(Clone, Copy)]
pub(super) struct RouteMatch {
    pub(super) value: u32,
    pub(super) len: u32,
}

/// The slots of all addresses with the same first six bits.
type Table = Box<[Slot; WIDTH]>;

/// The direct tables, and the numbers of routes of more than six bits, by the first six bits.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    tables: [Option<Table>; SLOTS as usize],
    routes: [u32; SLOTS as usize],
}

impl Direct {
    pub(super) fn new() -> Self {
        Self { tables: [const { None }; SLOTS as usize], routes: [0; SLOTS as usize] }
    }

    /// Returns the slot of an address, if it has a table.
    #[inline]
    pub(super) fn slot(&self, address: &impl Address) -> Option<Slot> {
        let slot = (address.window(STRIDE) >> (64 - 2 * STRIDE)) as usize;
        Some(self.tables[slot_of(address, 0) as usize].as_ref()?[slot % WIDTH])
    }

    /// Counts a new route of more than six bits, given its first six; allocates the table if it
    /// pays.
    pub(super) fn add_route<V>(&mut self, store: &Store<V>, first: u32) {
        self.routes[first as usize] += 1;
        if self.routes[first as usize] >= MAKE_AT && self.tables[first as usize].is_none() {
            let slots = vec![Slot::default(); WIDTH].into_boxed_slice();
            self.tables[first as usize] = slots.try_into().ok();
            self.rebuild(store, first);
        }
    }

    /// Counts a removed route; releases the table if it no longer pays.
    pub(super) fn remove_route(&mut self, first: u32) {
        // Saturates, in case an inconsistent address type returns other first bits than before.
        self.routes[first as usize] = self.routes[first as usize].saturating_sub(1);
        if self.routes[first as usize] < DROP_BELOW {
            self.tables[first as usize] = None;
        }
    }

    /// Recomputes all slots of all tables.
    pub(super) fn rebuild_all<V>(&mut self, store: &Store<V>) {
        (0..SLOTS).for_each(|first| self.rebuild(store, first));
    }

    /// Recomputes all slots of a table.
    pub(super) fn rebuild<V>(&mut self, store: &Store<V>, first: u32) {
        if !self.has_table(first) {
            return;
        }
        (0..SLOTS).for_each(|second| self.rebuild_group(store, first, second));
    }

    /// Recomputes the slots that begin with these twelve bits.
    pub(super) fn rebuild_group<V>(&mut self, store: &Store<V>, first: u32, second: u32) {
        let Some(table) = &mut self.tables[first as usize] else { return };
        let group = &mut table[(second * SLOTS) as usize..][..SLOTS as usize];
        group.copy_from_slice(&computed_group(store, first, second));
    }

    /// Returns the allocated bytes of the tables alone.
    pub(super) fn allocation_size(&self) -> usize {
        self.tables() * size_of::<[Slot; WIDTH]>()
    }

    /// Returns the number of tables.
    pub(super) fn tables(&self) -> usize {
        self.tables.iter().flatten().count()
    }

    /// Returns whether there is a table for this value of the first six bits.
    pub(super) fn has_table(&self, first: u32) -> bool {
        self.tables[first as usize].is_some()
    }

    /// Returns whether counters and slots agree with the nodes, given the number of routes by the
    /// first six bits.
    pub(super) fn is_consistent<V>(
        &self,
        store: &Store<V>,
        routes: &[u32; SLOTS as usize],
    ) -> bool {
        let slots_are_consistent = |(first, table): (u32, &Table)| {
            (0..SLOTS)
                .zip(table.chunks(SLOTS as usize))
                .all(|(second, group)| group == computed_group(store, first, second))
        };
        let tables = (0..).zip(&self.tables);
        self.routes == *routes
            && tables
                .filter_map(|(first, table)| Some((first, table.as_ref()?)))
                .all(slots_are_consistent)
            && self.tables.iter().zip(routes).all(|(table, &routes)| match table {
                Some(_) => routes >= DROP_BELOW,
                None => routes < MAKE_AT,
            })
    }
}

/// Computes the slots that begin with these twelve bits from the nodes.
fn computed_group<V>(store: &Store<V>, first: u32, second: u32) -> [Slot; SLOTS as usize] {
    let node_at = |child: Option<u32>| child.map_or(Node::EMPTY, |id| *store.nodes.get(id));
    let at_6 = node_at(store.nodes.get(ROOT).child(first));
    let at_12 = node_at(at_6.child(second));
    let found =
        |pos: u32, route: NodeMatch| RouteMatch { value: route.value, len: pos + route.level };
    let short = at_6.longest(second).map(|route| found(STRIDE, route));
    let mut slots = [Slot::new(NO_NODE, short); SLOTS as usize];
    if at_12 != Node::EMPTY {
        for (slot, entry) in (0..).zip(&mut slots) {
            let long = at_12.longest(slot).map(|route| found(2 * STRIDE, route));
            *entry = Slot::new(at_12.child(slot).unwrap_or(NO_NODE), long.or(short));
        }
    }
    slots
}
