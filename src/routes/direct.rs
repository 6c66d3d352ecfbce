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
//! This is level compression where it pays: the node at bit 6 and those at bit 12 below it are read as
//! one node of 2^12 slots. A slot says which of their routes is the longest, and which node follows. The
//! nodes stay: they are what is changed, and the slots are made from them.
//!
//! A table of 32 KiB is made when there are [`MAKE_AT`] routes below its six bits and given back when
//! there are fewer than [`DROP_BELOW`]: 8 bytes a route when it comes, 32 when it goes. The Internet's
//! routes have 52 of them, those of IPv6 three.
//!
//! # Price
//!
//! A route of 13 to 18 bits, and a child that comes or goes at bit 12, costs 64 slots; a route of 7 to 12
//! bits, or making a table, costs 4096 slots. Routes of up to 6 bits are not in the slots, so a default
//! route costs none.

use alloc::boxed::Box;
use alloc::vec;

use super::node::{Match, Node};
use super::pool::Blank;
use super::store::{NOWHERE, ROOT, Store};
use super::stride::{SLOTS, STRIDE, slot_of};
use crate::key::bits::Address;

/// Routes from which on a table is made: it then costs 8 bytes for each of them, about what they take
/// themselves.
const MAKE_AT: u32 = 4096;

/// Routes below which a table is given back. Four times fewer, so that no table is made and dropped in
/// turns.
const DROP_BELOW: u32 = 1024;

/// Slots of a table.
const WIDTH: usize = 1 << (2 * STRIDE);

/// The position behind a table.
pub(super) const BEHIND: u32 = 3 * STRIDE;

/// What the nodes at bits 6 and 12 say: node at 18 (27 bits), length of the route (5), its value (32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// Of an address that has no table. The root is in no slot.
    pub(super) const NONE: Self = Self((ROOT as u64) << 37);

    fn new(node: u32, route: Option<Found>) -> Self {
        let Found { value, len } = route.unwrap_or(Found { value: 0, len: 0 });
        Self(u64::from(node) << 37 | u64::from(len) << 32 | u64::from(value))
    }

    /// The node at [`BEHIND`], which may be the blank one.
    #[inline]
    pub(super) const fn node(self) -> u32 {
        (self.0 >> 37) as u32
    }

    /// The longest of the routes of 7 to 18 bits; of no bits if there is none.
    #[inline]
    pub(super) const fn found(self) -> Found {
        Found { value: self.0 as u32, len: (self.0 >> 32) as u32 & 31 }
    }

    /// The longest of the routes of 7 to 18 bits.
    #[inline]
    pub(super) fn route(self) -> Option<Found> {
        Some(self.found()).filter(|route| route.len > 0)
    }
}

/// A route that matches: where its value is, and its length.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) value: u32,
    pub(super) len: u32,
}

/// The slots of all addresses with the same first six bits.
type Table = Box<[Slot; WIDTH]>;

/// For each value of the first six bits: a table, if it pays, and the routes that are longer.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    tables: [Option<Table>; SLOTS as usize],
    routes: [u32; SLOTS as usize],
}

impl Direct {
    pub(super) fn new() -> Self {
        Self { tables: [const { None }; SLOTS as usize], routes: [0; SLOTS as usize] }
    }

    /// The slot of an address, if it has a table.
    #[inline]
    pub(super) fn slot(&self, address: &impl Address) -> Option<Slot> {
        let slot = (address.window(STRIDE) >> (64 - 2 * STRIDE)) as usize;
        Some(self.tables[slot_of(address, 0) as usize].as_ref()?[slot % WIDTH])
    }

    /// Counts a route of more than six bits that begins with these; makes a table if it is time.
    pub(super) fn count<V>(&mut self, store: &Store<V>, first: u32) {
        self.routes[first as usize] += 1;
        if self.routes[first as usize] >= MAKE_AT && self.tables[first as usize].is_none() {
            let slots = vec![Slot::default(); WIDTH].into_boxed_slice();
            self.tables[first as usize] = slots.try_into().ok();
            self.refresh(store, first);
        }
    }

    /// Counts a route out; drops the table if it is time.
    pub(super) fn discount(&mut self, first: u32) {
        // Not below, in case an address has changed its mind about its first bits.
        self.routes[first as usize] = self.routes[first as usize].saturating_sub(1);
        if self.routes[first as usize] < DROP_BELOW {
            self.tables[first as usize] = None;
        }
    }

    /// Makes all slots of all tables anew.
    pub(super) fn refresh_all<V>(&mut self, store: &Store<V>) {
        (0..SLOTS).for_each(|first| self.refresh(store, first));
    }

    /// Makes all slots of a table anew.
    pub(super) fn refresh<V>(&mut self, store: &Store<V>, first: u32) {
        if !self.has_table(first) {
            return;
        }
        (0..SLOTS).for_each(|second| self.refresh_group(store, first, second));
    }

    /// Makes the slots anew that begin with these twelve bits.
    pub(super) fn refresh_group<V>(&mut self, store: &Store<V>, first: u32, second: u32) {
        let Some(table) = &mut self.tables[first as usize] else { return };
        let group = &mut table[(second * SLOTS) as usize..][..SLOTS as usize];
        group.copy_from_slice(&group_of(store, first, second));
    }

    /// Bytes that are allocated, for the tables alone.
    pub(super) fn allocation_size(&self) -> usize {
        self.tables() * size_of::<[Slot; WIDTH]>()
    }

    /// How many tables there are.
    pub(super) fn tables(&self) -> usize {
        self.tables.iter().flatten().count()
    }

    /// Whether there is a table for this value of the first six bits.
    pub(super) fn has_table(&self, first: u32) -> bool {
        self.tables[first as usize].is_some()
    }

    /// Whether the counters and slots are what the store says, given the number of routes below each
    /// value of the first six bits.
    pub(super) fn is_right<V>(&self, store: &Store<V>, routes: &[u32; SLOTS as usize]) -> bool {
        let slots_are_right = |(first, table): (u32, &Table)| {
            (0..SLOTS)
                .zip(table.chunks(SLOTS as usize))
                .all(|(second, group)| group == group_of(store, first, second))
        };
        let tables = (0..).zip(&self.tables);
        self.routes == *routes
            && tables
                .filter_map(|(first, table)| Some((first, table.as_ref()?)))
                .all(slots_are_right)
            && self.tables.iter().zip(routes).all(|(table, &routes)| match table {
                Some(_) => routes >= DROP_BELOW,
                None => routes < MAKE_AT,
            })
    }
}

/// What the slots that begin with these twelve bits have to be.
fn group_of<V>(store: &Store<V>, first: u32, second: u32) -> [Slot; SLOTS as usize] {
    let node_at = |child: Option<u32>| child.map_or(Node::BLANK, |id| *store.nodes.get(id));
    let at_6 = node_at(store.nodes.get(ROOT).child(first));
    let at_12 = node_at(at_6.child(second));
    let found = |pos: u32, route: Match| Found { value: route.value, len: pos + route.level };
    let short = at_6.longest(second).map(|route| found(STRIDE, route));
    let mut slots = [Slot::new(NOWHERE, short); SLOTS as usize];
    if at_12 != Node::BLANK {
        for (slot, entry) in (0..).zip(&mut slots) {
            let long = at_12.longest(slot).map(|route| found(2 * STRIDE, route));
            *entry = Slot::new(at_12.child(slot).unwrap_or(NOWHERE), long.or(short));
        }
    }
    slots
}
