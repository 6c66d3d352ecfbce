//! Looking up the longest match, for one address or for a burst of them.
//!
//! ```text
//!     direct table ─→ node ─→ (node …) ─→ value          one: each step waits for the one before
//!
//!     burst of 32     slots   s0 s1 s2 …                 all slots are asked for,
//!                     nodes   n0 n1 n2 …                 then all nodes, level by level, those that
//!                                n1    …                 end falling out,
//!                     values  v0 v1 v2 …                 then all values
//! ```
//!
//! On the way down only the last node is remembered that has a match; where its value lies is counted at
//! the end, once.
#![allow(unsafe_code)]

use core::{iter, mem};

use super::RouteTable;
use super::direct::{BEHIND, Found, Slot};
use super::node::{Node, Path};
use super::store::{NOWHERE, ROOT};
use super::stride::{STRIDE, first_slot, slot_of};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::raw::popcount::use_popcnt;
use crate::raw::prefetch::prefetch;

/// Addresses that go through the levels together. About ten cache misses overlap; more addresses than
/// that fill the gaps between them.
const BURST: usize = u32::BITS as usize;

/// The longest match in a node at `pos` that has one.
#[inline]
fn found(node: &Node, slot: u32, pos: u32) -> Found {
    let route = node.longest_of(slot);
    Found { value: route.value, len: pos + route.level }
}

/// The last node on the way that has a match, and its position; [`NOWHERE`] if there is none.
#[derive(Clone, Copy)]
struct Best {
    id: u32,
    pos: u32,
}

impl Best {
    const NONE: Self = Self { id: NOWHERE, pos: 0 };

    /// This one, or the other one if there is none.
    fn or(self, other: Self) -> Self {
        if self.id == NOWHERE { other } else { self }
    }
}

/// Addresses of a burst for which a slot and a node are not the end.
struct Deep {
    /// The next node of each, the bits of the address from there on, and the last node with a match.
    ids: [u32; BURST],
    windows: [u64; BURST],
    bests: [Best; BURST],
    /// Which addresses these are, and which of them have a next node.
    all: u32,
    going: u32,
}

impl Deep {
    const NONE: Self = Self {
        ids: [NOWHERE; BURST],
        windows: [0; BURST],
        bests: [Best::NONE; BURST],
        all: 0,
        going: 0,
    };
}

/// The places of the ones in a word: below [`BURST`].
#[inline(always)]
fn ones(mut word: u32) -> impl Iterator<Item = usize> {
    iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize % BURST);
        word &= word.wrapping_sub(1);
        place
    })
}

impl<A: Address, V> RouteTable<A, V> {
    /// The longest match.
    #[inline(always)]
    pub(super) fn longest(&self, address: &A) -> Option<Found> {
        if self.store.nodes.is_empty() {
            return None;
        }
        let slot = self.direct.as_ref().and_then(|direct| direct.slot(address));
        let Some(slot) = slot else {
            return self.matched(self.descend(ROOT, 0, address), address);
        };
        // Below the tables of IPv4 there is one node to look at, but for a few addresses.
        let (node, at) = (self.node(slot.node()), slot_of(address, BEHIND));
        if node.ends(at) {
            return self.nearest(node, at, BEHIND, slot, address);
        }
        let best = self.descend(slot.node(), BEHIND, address);
        self.matched(best, address).or_else(|| slot.route()).or_else(|| self.short(address))
    }

    /// The match behind a slot whose node leads no further: of the node, or else of the slot, which is
    /// chosen without a branch, since it cannot be foreseen.
    #[inline(always)]
    fn nearest(&self, node: &Node, at: u32, pos: u32, slot: Slot, address: &A) -> Option<Found> {
        let (inner, outer) = (found(node, at, pos), slot.found());
        let (value, len) = match node.covers(at) {
            true => (inner.value, inner.len),
            false => (outer.value, outer.len),
        };
        if len == 0 {
            return self.short(address);
        }
        Some(Found { value, len })
    }

    #[inline(always)]
    fn node(&self, id: u32) -> &Node {
        // SAFETY: what slots and nodes lead to is in the runs of children (S1), or the root or the
        // blank node (S3), since there have been routes.
        unsafe { self.store.nodes.get_unchecked(id) }
    }

    /// Goes down from a node as far as there are children.
    fn descend(&self, id: u32, pos: u32, address: &A) -> Best {
        if use_popcnt() {
            // SAFETY: the processor has the instruction.
            return unsafe { self.walk_counting(id, pos, address) };
        }
        self.walk(id, pos, address)
    }

    /// [`walk`](Self::walk), compiled to count bits in one instruction.
    ///
    /// # Safety
    ///
    /// The processor has the instruction.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "popcnt"))]
    unsafe fn walk_counting(&self, id: u32, pos: u32, address: &A) -> Best {
        self.walk(id, pos, address)
    }

    /// See [`descend`](Self::descend).
    #[inline(always)]
    fn walk(&self, mut id: u32, mut pos: u32, address: &A) -> Best {
        let mut best = Best::NONE;
        loop {
            // A word of the address, and no look at the address again before it is used up.
            let mut window = address.window(pos);
            for _ in 0..Path::LONGEST {
                let node = self.node(id);
                if let Some(path) = node.as_path() {
                    if path.agreement(address.window(pos)) < path.strides {
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

    /// The match in the best node.
    #[inline(always)]
    fn matched(&self, best: Best, address: &A) -> Option<Found> {
        let (node, slot) = (self.node(best.id), slot_of(address, best.pos));
        // Asked again, since the address could say something else this time.
        node.covers(slot).then(|| found(node, slot, best.pos))
    }

    /// The match among the routes of up to six bits, which are in no direct table.
    #[inline(always)]
    fn short(&self, address: &A) -> Option<Found> {
        let route = self.store.nodes.get(ROOT).longest(slot_of(address, 0))?;
        Some(Found { value: route.value, len: route.level })
    }

    /// What has been found, as it is handed out.
    #[inline]
    pub(super) fn route(&self, address: &A, found: Found) -> (Prefix<A>, &V) {
        // SAFETY: what `longest` finds is what a node says of a route that it has, or what a slot says,
        // which is made from the nodes anew whenever they change.
        let value = unsafe { self.store.values.get(found.value) };
        (Prefix::of(address, found.len), value)
    }

    /// What has been found, its value to change.
    pub(super) fn route_mut(&mut self, address: &A, found: Found) -> (Prefix<A>, &mut V) {
        // SAFETY: as for `route`.
        let value = unsafe { self.store.values.get_mut(found.value) };
        (Prefix::of(address, found.len), value)
    }

    /// The longest match of each of up to [`BURST`] addresses.
    #[inline]
    pub(super) fn longest_of_burst(&self, addresses: &[A], routes: &mut [Option<Found>; BURST]) {
        if self.store.nodes.is_empty() {
            return;
        }
        if use_popcnt() {
            // SAFETY: the processor has the instruction.
            unsafe { self.burst_counting(addresses, routes) };
        } else {
            self.burst(addresses, routes);
        }
    }

    /// [`burst`](Self::burst), compiled to count bits in one instruction.
    ///
    /// # Safety
    ///
    /// The processor has the instruction.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "popcnt"))]
    unsafe fn burst_counting(&self, addresses: &[A], routes: &mut [Option<Found>; BURST]) {
        self.burst(addresses, routes);
    }

    #[inline(always)]
    fn burst(&self, addresses: &[A], routes: &mut [Option<Found>; BURST]) {
        let slots = self.slots(addresses);
        let mut deep = Deep::NONE;
        for (nth, (address, &slot)) in addresses.iter().zip(&slots).enumerate() {
            let pos = if slot == Slot::NONE { 0 } else { BEHIND };
            let (node, window) = (self.node(slot.node()), address.window(pos));
            let at = first_slot(window);
            if node.ends(at) {
                routes[nth] = self.arrived(self.nearest(node, at, pos, slot, address));
            } else if pos == 0 {
                routes[nth] = self.longest_alone(address);
            } else {
                (deep.ids[nth], deep.windows[nth]) = (slot.node(), window);
                self.step(&mut deep, nth, pos, address);
                deep.all |= 1 << nth;
            }
        }
        if deep.all != 0 {
            self.level_by_level(&mut deep, addresses);
            for nth in ones(deep.all) {
                let route = self.matched(deep.bests[nth], &addresses[nth]);
                let route = route.or_else(|| slots[nth].route());
                routes[nth] = self.arrived(route.or_else(|| self.short(&addresses[nth])));
            }
        }
    }

    /// Goes on until no address has a further node.
    #[inline(always)]
    fn level_by_level(&self, deep: &mut Deep, addresses: &[A]) {
        let mut pos = BEHIND + STRIDE;
        while deep.going != 0 {
            let going = mem::take(&mut deep.going);
            if (pos - BEHIND) % (Path::LONGEST * STRIDE) == 0 {
                ones(going).for_each(|nth| deep.windows[nth] = addresses[nth].window(pos));
            }
            ones(going).for_each(|nth| self.step(deep, nth, pos, &addresses[nth]));
            pos += STRIDE;
        }
    }

    /// Looks at the node of an address at `pos`, and asks the cache for the next one.
    #[inline(always)]
    fn step(&self, deep: &mut Deep, nth: usize, pos: u32, address: &A) {
        let (id, slot) = (deep.ids[nth], first_slot(deep.windows[nth]));
        let node = self.node(id);
        // Paths are few: who comes to one goes on alone.
        if node.is_path() {
            deep.bests[nth] = self.descend(id, pos, address).or(deep.bests[nth]);
            return;
        }
        if node.covers(slot) {
            deep.bests[nth] = Best { id, pos };
        }
        if node.has_child(slot) {
            let child = node.child_of(slot);
            self.prefetch(child);
            deep.ids[nth] = child;
            deep.windows[nth] <<= STRIDE;
            deep.going |= 1 << nth;
        }
    }

    /// An address that has no direct table, in a burst.
    #[inline(never)]
    fn longest_alone(&self, address: &A) -> Option<Found> {
        self.longest(address)
    }

    /// The slots of addresses, whose nodes the cache is asked for.
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

    /// What has been found, whose value the cache is asked for.
    #[inline(always)]
    fn arrived(&self, route: Option<Found>) -> Option<Found> {
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
