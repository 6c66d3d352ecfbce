//! Longest-prefix match of one address or of a burst of addresses.
//!
//! ```text
//!     direct table ─→ node ─→ (node …) ─→ value     one address: dependent cache misses
//!
//!     burst of 32     slots   s0 s1 s2 …            prefetches of all slots,
//!                     nodes   n0 n1 n2 …            of the nodes, level by level, of the
//!                                n1    …            addresses that are still active,
//!                     values  v0 v1 v2 …            and of all values
//! ```
//!
//! The descent records only the last node with a match; the index of the value is computed once, at
//! the end.
#![allow(unsafe_code)]

use core::{iter, mem};

use super::RouteTable;
use super::direct::{RouteMatch, Slot, TABLE_END};
use super::node::{Node, Path};
use super::store::{NO_NODE, ROOT};
use super::stride::{STRIDE, first_slot, slot_of};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::raw::popcount::use_popcnt;
use crate::raw::prefetch::prefetch;

/// Addresses in a burst. A CPU overlaps about ten cache misses; more addresses than that keep these
/// busy.
const BURST: usize = u32::BITS as usize;

/// Returns the longest match in a node at `pos` that has one.
#[inline]
fn match_in(node: &Node, slot: u32, pos: u32) -> RouteMatch {
    let route = node.longest_covering(slot);
    RouteMatch { value: route.value, len: pos + route.level }
}

/// The last node on the path that has a match, and its position; [`NO_NODE`] if there is none.
#[derive(Clone, Copy)]
struct Best {
    id: u32,
    pos: u32,
}

impl Best {
    const NONE: Self = Self { id: NO_NODE, pos: 0 };

    /// Returns this node, or `other` if there is none.
    fn or(self, other: Self) -> Self {
        if self.id == NO_NODE { other } else { self }
    }
}

/// Descents of the addresses of a burst that need more than a slot and a node.
struct Descents {
    /// For each address: the next node, the address bits from there on, and the last node with a
    /// match.
    ids: [u32; BURST],
    windows: [u64; BURST],
    bests: [Best; BURST],
    /// The addresses, and those that have a next node, as bitmaps.
    members: u32,
    active: u32,
}

impl Descents {
    const NONE: Self = Self {
        ids: [NO_NODE; BURST],
        windows: [0; BURST],
        bests: [Best::NONE; BURST],
        members: 0,
        active: 0,
    };
}

/// Iterates over the positions of the ones in a word: below [`BURST`].
#[inline(always)]
fn ones(mut word: u32) -> impl Iterator<Item = usize> {
    iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize % BURST);
        word &= word.wrapping_sub(1);
        place
    })
}

impl<A: Address, V> RouteTable<A, V> {
    /// Returns the longest match.
    #[inline(always)]
    pub(super) fn longest(&self, address: &A) -> Option<RouteMatch> {
        if self.store.nodes.is_empty() {
            return None;
        }
        let slot = self.direct.as_ref().and_then(|direct| direct.slot(address));
        let Some(slot) = slot else {
            return self.match_at(self.descend(ROOT, 0, address), address);
        };
        // Below the tables of IPv4, nearly all addresses need one node.
        let (node, at) = (self.node(slot.node()), slot_of(address, TABLE_END));
        if node.ends(at) {
            return self.best_match(node, at, TABLE_END, slot, address);
        }
        let best = self.descend(slot.node(), TABLE_END, address);
        self.match_at(best, address).or_else(|| slot.route()).or_else(|| self.root_match(address))
    }

    /// Returns the match for a slot whose node has no child there: the one of the node, or else
    /// that of the slot, selected without a branch, since it is unpredictable.
    #[inline(always)]
    fn best_match(
        &self,
        node: &Node,
        at: u32,
        pos: u32,
        slot: Slot,
        address: &A,
    ) -> Option<RouteMatch> {
        let (inner, outer) = (match_in(node, at, pos), slot.found());
        let (value, len) = match node.covers(at) {
            true => (inner.value, inner.len),
            false => (outer.value, outer.len),
        };
        if len == 0 {
            return self.root_match(address);
        }
        Some(RouteMatch { value, len })
    }

    #[inline(always)]
    fn node(&self, id: u32) -> &Node {
        // SAFETY: indices in slots and nodes are of units in blocks of children (S1), of the root
        // or of the empty node (S3), which exist since there have been routes.
        unsafe { self.store.nodes.get_unchecked(id) }
    }

    /// Descends from a node as far as there are children.
    fn descend(&self, id: u32, pos: u32, address: &A) -> Best {
        if use_popcnt() {
            // SAFETY: the CPU has the instruction.
            return unsafe { self.descend_popcnt(id, pos, address) };
        }
        self.descend_inline(id, pos, address)
    }

    /// [`descend_inline`](Self::descend_inline), compiled with the population count instruction.
    ///
    /// # Safety
    ///
    /// The CPU has the instruction.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "popcnt"))]
    unsafe fn descend_popcnt(&self, id: u32, pos: u32, address: &A) -> Best {
        self.descend_inline(id, pos, address)
    }

    /// Implements [`descend`](Self::descend).
    #[inline(always)]
    fn descend_inline(&self, mut id: u32, mut pos: u32, address: &A) -> Best {
        let mut best = Best::NONE;
        loop {
            // The address is read again only when this word of it is used up.
            let mut window = address.window(pos);
            for _ in 0..Path::LONGEST {
                let node = self.node(id);
                if let Some(path) = node.as_path() {
                    if path.common_strides(address.window(pos)) < path.strides {
                        return best;
                    }
                    (id, pos) = (path.child, pos + path.len());
                    break;
                }
                let slot = first_slot(window);
                if node.covers(slot) {
                    best = Best { id, pos };
                }
                let Some(child) = node.child(slot) else { return best };
                (id, pos) = (child, pos + STRIDE);
                window <<= STRIDE;
            }
        }
    }

    /// Returns the match in the node that the descent has recorded.
    #[inline(always)]
    fn match_at(&self, best: Best, address: &A) -> Option<RouteMatch> {
        let (node, slot) = (self.node(best.id), slot_of(address, best.pos));
        // Checked again, since an inconsistent address type could return other bits this time.
        node.covers(slot).then(|| match_in(node, slot, best.pos))
    }

    /// Returns the match of up to six bits, which is in no direct table.
    #[inline(always)]
    fn root_match(&self, address: &A) -> Option<RouteMatch> {
        let route = self.store.nodes.get(ROOT).longest(slot_of(address, 0))?;
        Some(RouteMatch { value: route.value, len: route.level })
    }

    /// Returns the prefix and value of a match.
    #[inline]
    pub(super) fn route(&self, address: &A, found: RouteMatch) -> (Prefix<A>, &V) {
        // SAFETY: the index is from a node that has the route, or from a slot, and slots are
        // recomputed whenever the nodes change.
        let value = unsafe { self.store.values.get(found.value) };
        (Prefix::of(address, found.len), value)
    }

    /// Returns the prefix of a match and a mutable reference to its value.
    pub(super) fn route_mut(&mut self, address: &A, found: RouteMatch) -> (Prefix<A>, &mut V) {
        // SAFETY: as for `route`.
        let value = unsafe { self.store.values.get_mut(found.value) };
        (Prefix::of(address, found.len), value)
    }

    /// Finds the longest match of each of up to [`BURST`] addresses.
    #[inline]
    pub(super) fn longest_of_burst(
        &self,
        addresses: &[A],
        routes: &mut [Option<RouteMatch>; BURST],
    ) {
        if self.store.nodes.is_empty() {
            return;
        }
        if use_popcnt() {
            // SAFETY: the CPU has the instruction.
            unsafe { self.burst_popcnt(addresses, routes) };
        } else {
            self.burst(addresses, routes);
        }
    }

    /// [`burst`](Self::burst), compiled with the population count instruction.
    ///
    /// # Safety
    ///
    /// The CPU has the instruction.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "popcnt"))]
    unsafe fn burst_popcnt(&self, addresses: &[A], routes: &mut [Option<RouteMatch>; BURST]) {
        self.burst(addresses, routes);
    }

    #[inline(always)]
    fn burst(&self, addresses: &[A], routes: &mut [Option<RouteMatch>; BURST]) {
        let slots = self.slots(addresses);
        let mut descents = Descents::NONE;
        for (nth, (address, &slot)) in addresses.iter().zip(&slots).enumerate() {
            let pos = if slot == Slot::NONE { 0 } else { TABLE_END };
            let (node, window) = (self.node(slot.node()), address.window(pos));
            let at = first_slot(window);
            if node.ends(at) {
                routes[nth] = self.prefetch_value(self.best_match(node, at, pos, slot, address));
            } else if pos == 0 {
                routes[nth] = self.lookup_slow(address);
            } else {
                (descents.ids[nth], descents.windows[nth]) = (slot.node(), window);
                self.step(&mut descents, nth, pos, address);
                descents.members |= 1 << nth;
            }
        }
        if descents.members != 0 {
            self.level_by_level(&mut descents, addresses);
            for nth in ones(descents.members) {
                let route = self.match_at(descents.bests[nth], &addresses[nth]);
                let route = route.or_else(|| slots[nth].route());
                routes[nth] =
                    self.prefetch_value(route.or_else(|| self.root_match(&addresses[nth])));
            }
        }
    }

    /// Continues the descents until no address has a next node.
    #[inline(always)]
    fn level_by_level(&self, descents: &mut Descents, addresses: &[A]) {
        let mut pos = TABLE_END + STRIDE;
        while descents.active != 0 {
            let active = mem::take(&mut descents.active);
            if (pos - TABLE_END) % (Path::LONGEST * STRIDE) == 0 {
                ones(active).for_each(|nth| descents.windows[nth] = addresses[nth].window(pos));
            }
            ones(active).for_each(|nth| self.step(descents, nth, pos, &addresses[nth]));
            pos += STRIDE;
        }
    }

    /// Processes the node of an address at `pos`, and prefetches the next one.
    #[inline(always)]
    fn step(&self, descents: &mut Descents, nth: usize, pos: u32, address: &A) {
        let (id, slot) = (descents.ids[nth], first_slot(descents.windows[nth]));
        let node = self.node(id);
        // Paths are rare: an address at a path continues alone.
        if node.is_path() {
            descents.bests[nth] = self.descend(id, pos, address).or(descents.bests[nth]);
            return;
        }
        if node.covers(slot) {
            descents.bests[nth] = Best { id, pos };
        }
        if node.has_child(slot) {
            let child = node.child_of(slot);
            self.prefetch(child);
            descents.ids[nth] = child;
            descents.windows[nth] <<= STRIDE;
            descents.active |= 1 << nth;
        }
    }

    /// Finds the longest match of an address of a burst that has no direct table.
    #[inline(never)]
    fn lookup_slow(&self, address: &A) -> Option<RouteMatch> {
        self.longest(address)
    }

    /// Returns the slots of addresses, and prefetches their nodes.
    #[inline(always)]
    fn slots(&self, addresses: &[A]) -> [Slot; BURST] {
        let mut slots = [Slot::NONE; BURST];
        if let Some(direct) = &self.direct {
            for (slot, address) in slots.iter_mut().zip(addresses) {
                *slot = direct.slot(address).unwrap_or(Slot::NONE);
                self.prefetch(slot.node());
            }
        }
        slots
    }

    #[inline(always)]
    fn prefetch(&self, id: u32) {
        prefetch(self.node(id));
    }

    /// Prefetches the value of a match.
    #[inline(always)]
    fn prefetch_value(&self, route: Option<RouteMatch>) -> Option<RouteMatch> {
        // SAFETY: as in `route`.
        route.inspect(|route| unsafe { self.store.values.prefetch(route.value) })
    }

    /// See [`RouteTable::lookup_batch`].
    pub(super) fn batch<'t>(&'t self, addresses: &[A], found: &mut [Option<(Prefix<A>, &'t V)>]) {
        for (addresses, found) in addresses.chunks(BURST).zip(found.chunks_mut(BURST)) {
            let mut routes = [None; BURST];
            self.longest_of_burst(addresses, &mut routes);
            for ((address, route), found) in addresses.iter().zip(&routes).zip(found) {
                *found = route.map(|route| self.route(address, route));
            }
        }
    }
}
