//! Longest-prefix match of one address or of a burst of addresses.
//!
//! ```text
//!     slot of a direct table ─→ value                    one address: two dependent cache misses
//!             └─ incomplete ─→ root ─→ node ─→ … ─→ value
//!
//!     burst of 32     slots   s0 s1 s2 …                 prefetches of all slots,
//!                     values  v0 v1 v2 …                 and of all values
//! ```
//!
//! Without a direct table, and below it, the descent of the trie records only the last node with a
//! match; the index of the value is computed once, at the end.
#![allow(unsafe_code)]

use super::RouteTable;
use super::direct::Direct;
use super::levels::{Candidates, Found, has_levels};
use super::node::{Node, Path};
use super::search::RouteMatch;
use super::slot::Slot;
use super::store::{NO_NODE, Nodes, ROOT};
use super::stride::{STRIDE, first_slot, slot_of};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::raw::prefetch::{BURST, prefetch};
use crate::raw::results::results_for;

/// Returns the longest match in a node at `pos` that has one.
#[inline]
fn match_in(node: &Node, slot: u32, pos: u32) -> RouteMatch {
    let route = node.longest_covering(slot);
    RouteMatch::new(route.value, pos + route.level)
}

/// The last node on the path that has a match, and its position; [`NO_NODE`] if there is none.
#[derive(Clone, Copy)]
struct Best {
    id: u32,
    pos: u32,
}

impl Best {
    const NONE: Self = Self { id: NO_NODE, pos: 0 };
}

impl<M: Allocator + Clone> Nodes<M> {
    /// Returns the longest match of an address without a complete slot.
    #[inline(never)]
    fn longest<A: Address>(&self, address: &A) -> RouteMatch {
        if self.is_empty() {
            return RouteMatch::NONE;
        }
        self.match_at(self.descend(ROOT, 0, address), address)
    }

    /// Returns the node of an index in a slot or a node.
    #[inline(always)]
    fn node(&self, id: u32) -> &Node {
        // SAFETY: indices in slots and nodes are of units in blocks of children (S1), of the root
        // or of the empty node (S3), which exist since there have been routes.
        unsafe { self.get_unchecked(id) }
    }

    /// Descends from a node as far as there are children.
    #[inline(always)]
    fn descend<A: Address>(&self, mut id: u32, mut pos: u32, address: &A) -> Best {
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
    fn match_at<A: Address>(&self, best: Best, address: &A) -> RouteMatch {
        let (node, slot) = (self.node(best.id), slot_of(address, best.pos));
        // Checked again, since an inconsistent address type could return other bits this time.
        if node.covers(slot) { match_in(node, slot, best.pos) } else { RouteMatch::NONE }
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the longest match, which may not exist.
    #[inline(always)]
    pub(super) fn longest(&self, address: &A) -> RouteMatch {
        let Some(direct) = &self.shortcuts.direct else { return self.store.nodes.longest(address) };
        let word = address.window(0);
        let slot = direct.slot(word);
        if !has_levels::<A>() && !slot.is_complete() {
            return self.store.nodes.longest(address);
        }
        if !direct.is_fast() {
            return self.longest_without_instructions(direct, slot, address, word);
        }
        let candidates = self.candidates(slot, word);
        // SAFETY: the CPU has the instructions.
        unsafe { self.longest_by_slot::<true, true>(direct, slot, candidates, address, word) }
    }

    /// [`longest`](Self::longest) on a CPU without the instructions of `bit_ops`.
    #[inline(never)]
    fn longest_without_instructions(
        &self,
        direct: &Direct<M>,
        slot: &Slot,
        address: &A,
        word: u64,
    ) -> RouteMatch {
        let candidates = self.candidates(slot, word);
        // SAFETY: this copy needs no instructions.
        unsafe { self.longest_by_slot::<false, true>(direct, slot, candidates, address, word) }
    }

    /// Returns the entries that a lookup reads after the slot.
    #[inline(always)]
    fn candidates(&self, slot: &Slot, word: u64) -> Candidates<'_> {
        match &self.shortcuts.levels {
            Some(levels) if has_levels::<A>() && !slot.is_complete() => levels.candidates(word),
            _ => Candidates::NONE,
        }
    }

    /// Returns the longest match of an address with these first bits, its slot and candidates; its
    /// length only if `LEN`.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn longest_by_slot<const FAST: bool, const LEN: bool>(
        &self,
        direct: &Direct<M>,
        slot: &Slot,
        candidates: Candidates<'_>,
        address: &A,
        word: u64,
    ) -> RouteMatch {
        if !slot.is_complete() {
            let levels = self.shortcuts.levels.as_ref();
            let Some(levels) = levels.filter(|_| has_levels::<A>() && slot.is_computed()) else {
                return self.store.nodes.longest(address);
            };
            // SAFETY: by the contract of this function.
            match unsafe { levels.longest::<FAST, LEN>(word, candidates) } {
                Found::Route(found) => return found,
                Found::Deeper => return self.store.nodes.longest(address),
                Found::None => {}
            }
        }
        // SAFETY: as above.
        unsafe { slot.longest::<FAST, LEN>(word) }.or(direct.short(word))
    }

    /// Returns the prefix and value of a match.
    #[inline(always)]
    pub(super) fn route(&self, address: &A, found: RouteMatch) -> (Prefix<A>, &V) {
        // SAFETY: the index is from a node that has the route, or from a slot, and slots are
        // recomputed whenever the nodes change.
        let value = unsafe { self.store.values.get(found.value()) };
        (Prefix::of(address, found.len()), value)
    }

    /// Returns the prefix of a match and a mutable reference to its value.
    pub(super) fn route_mut(&mut self, address: &A, found: RouteMatch) -> (Prefix<A>, &mut V) {
        // SAFETY: as for `route`.
        let value = unsafe { self.store.values.get_mut(found.value()) };
        (Prefix::of(address, found.len()), value)
    }

    /// Looks up addresses in bursts, and writes to `found` what `result` returns for each address
    /// and its match, whose length is only known if `LEN`.
    #[inline(always)]
    fn bursts<'t, const LEN: bool, R>(
        &'t self,
        addresses: &[A],
        found: &mut [R],
        result: impl Fn(&A, Option<(RouteMatch, &'t V)>) -> R,
    ) {
        match &self.shortcuts.direct {
            Some(direct) if direct.is_fast() => {
                // SAFETY: the CPU has the instructions.
                unsafe { self.bursts_in_tables::<true, LEN, _>(direct, addresses, found, result) };
            }
            Some(direct) => {
                // SAFETY: this copy needs no instructions.
                unsafe { self.bursts_in_tables::<false, LEN, _>(direct, addresses, found, result) };
            }
            None => {
                for (address, found) in addresses.iter().zip(found) {
                    *found = result(address, self.with_value(self.store.nodes.longest(address)));
                }
            }
        }
    }

    /// [`bursts`](Self::bursts) with direct tables.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn bursts_in_tables<'t, const FAST: bool, const LEN: bool, R>(
        &'t self,
        direct: &Direct<M>,
        addresses: &[A],
        found: &mut [R],
        result: impl Fn(&A, Option<(RouteMatch, &'t V)>) -> R,
    ) {
        let finish = |address: &A, slot, candidates| {
            let word = address.window(0);
            // SAFETY: by the contract of this function.
            let longest = unsafe {
                self.longest_by_slot::<FAST, LEN>(direct, slot, candidates, address, word)
            };
            let longest = self.with_value(longest);
            if let Some((_, value)) = longest {
                prefetch(value);
            }
            result(address, longest)
        };
        for (addresses, found) in addresses.chunks(BURST).zip(found.chunks_mut(BURST)) {
            let mut slots = [&Slot::EMPTY; BURST];
            for (slot, address) in slots.iter_mut().zip(addresses) {
                *slot = direct.slot(address.window(0));
                prefetch(*slot);
            }
            let slots = addresses.iter().zip(&slots);
            if !has_levels::<A>() {
                for ((address, slot), found) in slots.zip(found) {
                    *found = finish(address, slot, Candidates::NONE);
                }
                continue;
            }
            let mut candidates = [Candidates::NONE; BURST];
            for ((address, slot), candidates) in slots.clone().zip(&mut candidates) {
                *candidates = self.candidates(slot, address.window(0));
                candidates.each().into_iter().for_each(|entry| prefetch(entry));
            }
            for (((address, slot), candidates), found) in slots.zip(&candidates).zip(found) {
                *found = finish(address, slot, *candidates);
            }
        }
    }

    /// Returns a match with its value.
    #[inline(always)]
    fn with_value(&self, found: RouteMatch) -> Option<(RouteMatch, &V)> {
        // SAFETY: as in `route`.
        found.exists().map(|found| (found, unsafe { self.store.values.get(found.value()) }))
    }

    /// Looks up a batch as [`RouteTable::lookup_batch`], and maps the found routes.
    pub(super) fn batch<'t, R>(
        &'t self,
        addresses: &[A],
        found: &mut [Option<R>],
        map: impl Fn(Prefix<A>, &'t V) -> R,
    ) {
        let found = results_for(addresses.len(), found);
        self.bursts::<true, _>(addresses, found, |address, route| {
            route.map(|(route, value)| map(Prefix::of(address, route.len()), value))
        });
    }

    /// See [`RouteTable::lookup_batch_values`].
    pub(super) fn batch_values<'t>(&'t self, addresses: &[A], found: &mut [Option<&'t V>]) {
        let found = results_for(addresses.len(), found);
        self.bursts::<false, _>(addresses, found, |_, route| route.map(|(_, value)| value));
    }
}
