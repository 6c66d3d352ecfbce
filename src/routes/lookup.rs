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
use super::direct::{Direct, Slot};
use super::levels::{Candidates, Found, has_levels};
use super::node::{Branch, Form, Node, Path};
use super::search::RouteMatch;
use super::store::{Nodes, ROOT};
use super::stride::{PrefixIndex, STRIDE, first_slot, node_pos, slot_of};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::raw::bit_ops::BitOps;
use crate::raw::prefetch::{BURST, prefetch};

/// The last node on the path that has a match, and its position.
#[derive(Clone, Copy)]
struct Best<'n> {
    branch: &'n Branch,
    pos: u32,
}

impl<M: Allocator + Clone> Nodes<M> {
    /// Returns the longest match of an address without a complete slot.
    #[inline(never)]
    fn longest<A: Address>(&self, address: &A) -> RouteMatch {
        if self.is_empty() {
            return RouteMatch::NONE;
        }
        match BitOps::detected() {
            Some(ops) => self.longest_by(ops, address),
            None => self.longest_by(BitOps::PORTABLE, address),
        }
    }

    /// [`longest`](Self::longest), if there are nodes.
    #[inline(always)]
    fn longest_by<A: Address, const FAST: bool>(
        &self,
        ops: BitOps<FAST>,
        address: &A,
    ) -> RouteMatch {
        let Some(Best { branch, pos }) = self.descend(ops, address) else {
            return RouteMatch::NONE;
        };
        branch.longest_by(ops, slot_of(address, pos), pos)
    }

    /// Returns the longest match of a prefix, which may not exist.
    pub(super) fn longest_of_prefix<A: Address>(&self, prefix: &Prefix<A>) -> RouteMatch {
        let (address, end) = (prefix.address(), node_pos(prefix.len()));
        let (mut id, mut pos, mut best) = (ROOT, 0, RouteMatch::NONE);
        while !self.is_empty() {
            let branch = match self.get(id).form() {
                Form::Branch(branch) => branch,
                Form::Path(path) => {
                    let agrees = path.common_strides(address.window(pos)) == path.strides;
                    if !agrees || pos + path.len() > end {
                        break;
                    }
                    (id, pos) = (path.child, pos + path.len());
                    continue;
                }
            };
            let is_last = pos == end;
            let found = match is_last {
                true => branch.longest_of(PrefixIndex::of(prefix, pos)),
                false => branch.longest(slot_of(&address, pos)),
            };
            if let Some(found) = found {
                best = found.at(pos);
            }
            let child = if is_last { None } else { branch.child(slot_of(&address, pos)) };
            let Some(child) = child else { break };
            (id, pos) = (child, pos + STRIDE);
        }
        best
    }

    /// Returns the node of an index in a slot or a node.
    #[inline(always)]
    fn node(&self, id: u32) -> &Node {
        // SAFETY: indices in slots and nodes are of units in blocks of children (S1), of the root
        // or of the empty node (S3), which exist since there have been routes.
        unsafe { self.get_unchecked(id) }
    }

    /// Descends from the root as far as there are children.
    #[inline(always)]
    fn descend<A: Address, const FAST: bool>(
        &self,
        ops: BitOps<FAST>,
        address: &A,
    ) -> Option<Best<'_>> {
        let (mut node, mut pos, mut best) = (self.node(ROOT), 0, None);
        loop {
            // The address is read again only when this word of it is used up.
            let mut window = address.window(pos);
            for _ in 0..Path::LONGEST {
                let branch = match node.form() {
                    Form::Branch(branch) => branch,
                    Form::Path(path) => {
                        if path.common_strides(address.window(pos)) < path.strides {
                            return best;
                        }
                        (node, pos) = (self.node(path.child), pos + path.len());
                        break;
                    }
                };
                let slot = first_slot(window);
                if branch.covers(slot) {
                    best = Some(Best { branch, pos });
                }
                let Some(child) = branch.child_by(ops, slot) else { return best };
                (node, pos) = (self.node(child), pos + STRIDE);
                window <<= STRIDE;
            }
        }
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the longest match, which may not exist.
    #[inline(always)]
    pub(super) fn longest(&self, address: &A) -> RouteMatch {
        let Some(direct) = &self.shortcuts.direct else { return self.store.nodes.longest(address) };
        let word = address.window(0);
        let slot = direct.slot(word);
        let is_enough = if has_levels::<A>() { slot.is_computed() } else { slot.is_complete() };
        if !is_enough {
            return self.store.nodes.longest(address);
        }
        let Some(ops) = direct.ops() else {
            return self.longest_portable(direct, slot, address, word);
        };
        let candidates = self.candidates(slot, word);
        self.longest_by_slot::<true, true>(ops, direct, slot, candidates, address, word)
    }

    /// [`longest`](Self::longest): fallback without POPCNT, LZCNT and BMI2.
    #[inline(never)]
    fn longest_portable(
        &self,
        direct: &Direct<M>,
        slot: &Slot,
        address: &A,
        word: u64,
    ) -> RouteMatch {
        let candidates = self.candidates(slot, word);
        let ops = BitOps::PORTABLE;
        self.longest_by_slot::<false, true>(ops, direct, slot, candidates, address, word)
    }

    /// Returns the entries that a lookup reads after the slot.
    #[inline(always)]
    fn candidates(&self, slot: &Slot, word: u64) -> Candidates<'_> {
        match &self.shortcuts.levels {
            Some(levels) if has_levels::<A>() && slot.is_computed() && !slot.is_complete() => {
                levels.candidates(word)
            }
            _ => Candidates::NONE,
        }
    }

    /// Returns the longest match of an address with these first bits, its slot and candidates; its
    /// length only if `LEN`.
    #[inline(always)]
    fn longest_by_slot<const FAST: bool, const LEN: bool>(
        &self,
        ops: BitOps<FAST>,
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
            match levels.longest::<FAST, LEN>(ops, word, candidates) {
                Found::Route(found) => return found,
                Found::Deeper => return self.store.nodes.longest(address),
                Found::None => {}
            }
        }
        slot.longest::<FAST, LEN>(ops, word).or(direct.short(word))
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

    /// Looks up addresses in bursts, and calls `found` with the index of each address, the address
    /// and its match, whose length is only known if `LEN`.
    #[inline]
    pub(super) fn bursts<'t, const LEN: bool>(
        &'t self,
        addresses: &[A],
        mut found: impl FnMut(usize, &A, Option<(RouteMatch, &'t V)>),
    ) {
        for (first, addresses) in (0..).step_by(BURST).zip(addresses.chunks(BURST)) {
            let mut longest = [None; BURST];
            let longest = &mut longest[..addresses.len()];
            match self.shortcuts.direct.as_ref().map(|direct| (direct, direct.ops())) {
                Some((direct, Some(ops))) => {
                    self.burst::<true, LEN>(ops, direct, addresses, longest);
                }
                Some((direct, None)) => {
                    self.burst::<false, LEN>(BitOps::PORTABLE, direct, addresses, longest);
                }
                None => {
                    for (address, longest) in addresses.iter().zip(&mut *longest) {
                        *longest = self.with_value(self.store.nodes.longest(address));
                    }
                }
            }
            for ((nth, address), longest) in (first..).zip(addresses).zip(longest) {
                found(nth, address, *longest);
            }
        }
    }

    /// Looks up the addresses of one burst in direct tables, and prefetches the values.
    #[inline]
    fn burst<'t, const FAST: bool, const LEN: bool>(
        &'t self,
        ops: BitOps<FAST>,
        direct: &Direct<M>,
        addresses: &[A],
        longest: &mut [Option<(RouteMatch, &'t V)>],
    ) {
        let mut slots = [&Slot::EMPTY; BURST];
        for (slot, address) in slots.iter_mut().zip(addresses) {
            *slot = direct.slot(address.window(0));
            prefetch(*slot);
        }
        let mut candidates = [Candidates::NONE; BURST];
        if has_levels::<A>() {
            for ((address, slot), candidates) in addresses.iter().zip(slots).zip(&mut candidates) {
                *candidates = self.candidates(slot, address.window(0));
                candidates.each().into_iter().for_each(|entry| prefetch(entry));
            }
        }
        let copies = slots.into_iter().zip(candidates);
        for ((address, (slot, candidates)), longest) in addresses.iter().zip(copies).zip(longest) {
            let word = address.window(0);
            let found =
                self.longest_by_slot::<FAST, LEN>(ops, direct, slot, candidates, address, word);
            *longest = self.with_value(found);
            if let Some((_, value)) = *longest {
                prefetch(value);
            }
        }
    }

    /// Returns a match with its value.
    #[inline(always)]
    fn with_value(&self, found: RouteMatch) -> Option<(RouteMatch, &V)> {
        // SAFETY: as in `route`.
        found.exists().map(|found| (found, unsafe { self.store.values.get(found.value()) }))
    }
}
