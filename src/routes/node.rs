//! A node of the trie: bitmaps of its routes and children, and the indices of their blocks.
//!
//! ```text
//!               inner ◂── │ ──▸ outer
//!     values  ▕ 37  9  5  2▕ 64 70 71▕      prefix indices of the routes
//!                           └─ node.values
//!     nodes   ▕ 3  9 17▕                    slots of the children
//!              └─ node.children
//! ```
//!
//! The index of a route or a child is the number of ones before its bit. Inner routes lie to the
//! left of `values`, outer ones to the right: so one count is enough for either, without the number
//! of the other ones.
#![allow(unsafe_code)]

use super::pool::Unit;
use super::search::{RouteBits, RouteMatch, search};
use super::stride::{COVERS, PrefixIndex, SLOTS, STRIDE, first_slot};
use crate::raw::bit_ops::{BitOps, count_ones, each_one, rank};

/// The bit of the route of level 0, which only the root has.
const TOP_BIT: u64 = 1 << 1;

/// A node with routes and children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct Branch {
    /// Routes of levels 0 to 5: bit `n` for prefix index `n`. Level 0 is in the root only.
    inner: u64,
    /// Routes of level 6: bit `n` for slot `n`.
    outer: u64,
    /// Children: bit `n` for slot `n`.
    branches: u64,
    /// Index of the value of the first outer route.
    values: u32,
    /// Index of the first child.
    children: u32,
}

/// A node, half a cache line: a [`Branch`], or a compressed [`Path`] in the fields of a branch.
///
/// ```text
///     branch    inner  │ outer │ branches │ values │ children
///     path        1    │ bits  │ strides  │   0    │ child
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Node(Branch);

/// The form of a node.
pub(super) enum Form<'n> {
    Path(Path),
    Branch(&'n Branch),
}

// SAFETY: zeros are `Node::EMPTY`.
unsafe impl Unit for Node {
    // So that a copy of a node is found to be stale if the node has moved.
    const IS_CLEARED: bool = true;
}

/// A compressed path: strides in which all prefixes below agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The bits of the strides, left-aligned; the others are zero.
    pub(super) bits: u64,
    /// Number of strides: 2 to [`Path::LONGEST`] in a path node.
    pub(super) strides: u32,
    /// The node at the end.
    pub(super) child: u32,
}

impl Path {
    /// The strides that fit into a word.
    pub(super) const LONGEST: u32 = u64::BITS / STRIDE;

    /// Returns the number of bits.
    pub(super) const fn len(self) -> u32 {
        self.strides * STRIDE
    }

    /// Returns the number of leading strides that `window` has in common with the path.
    pub(super) fn common_strides(self, window: u64) -> u32 {
        ((self.bits ^ window).leading_zeros() / STRIDE).min(self.strides)
    }

    /// Returns the first strides of the path, with another child.
    pub(super) fn first(self, strides: u32, child: u32) -> Self {
        let bits = self.bits & !(u64::MAX >> (strides * STRIDE));
        Self { bits, strides, child }
    }

    /// Returns the path without its first strides.
    pub(super) fn skip(self, strides: u32) -> Self {
        let bits = self.bits << (strides * STRIDE);
        Self { bits, strides: self.strides - strides, child: self.child }
    }

    /// Returns the concatenation of two paths, if it fits into one.
    pub(super) fn merged(self, next: Self) -> Option<Self> {
        let strides = self.strides + next.strides;
        let bits = self.bits | next.bits >> self.len();
        (strides <= Self::LONGEST).then_some(Self { bits, strides, child: next.child })
    }
}

/// A matching route of a node: the index of its value, and its length relative to the node's
/// prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeMatch {
    pub(super) value: u32,
    pub(super) level: u32,
}

impl NodeMatch {
    /// Returns the match in a table, given the position of the node.
    pub(super) const fn at(self, pos: u32) -> RouteMatch {
        RouteMatch::new(self.value, pos + self.level)
    }
}

impl Node {
    /// A node without routes and children.
    pub(super) const EMPTY: Self = Self(Branch::EMPTY);

    /// Creates a node for these strides: a path, or a branch with a single child if it is one
    /// stride. Single strides are too frequent for a lookup to predict the kind of the next node.
    pub(super) fn chain(Path { bits, strides, child }: Path) -> Self {
        let (inner, outer, branches) = match strides {
            1 => (0, 0, 1 << first_slot(bits)),
            _ => (1, bits, strides.into()),
        };
        Self(Branch { inner, outer, branches, values: 0, children: child })
    }

    /// Creates a branch with these routes and children, without its blocks.
    pub(super) fn with(routes: impl Iterator<Item = PrefixIndex>, branches: u64) -> Self {
        let mut branch = Branch { branches, ..Branch::EMPTY };
        for index in routes {
            match index.slot() {
                Some(slot) => branch.outer |= 1 << slot,
                None => branch.inner |= 1 << index.get(),
            }
        }
        Self(branch)
    }

    #[inline]
    pub(super) const fn is_path(&self) -> bool {
        self.0.inner & 1 != 0
    }

    #[inline]
    pub(super) const fn form(&self) -> Form<'_> {
        match self.as_path() {
            Some(path) => Form::Path(path),
            None => Form::Branch(&self.0),
        }
    }

    #[inline]
    pub(super) const fn as_path(&self) -> Option<Path> {
        if !self.is_path() {
            return None;
        }
        let Branch { outer, branches, children, .. } = self.0;
        Some(Path { bits: outer, strides: branches as u32, child: children })
    }

    /// Returns the branch; the node is no path.
    #[inline]
    pub(super) fn branch(&self) -> &Branch {
        debug_assert!(!self.is_path());
        &self.0
    }

    /// Returns the strides of a chain node: one that has one child and no routes.
    pub(super) fn as_chain(&self) -> Option<Path> {
        let Branch { inner, outer, branches, children, .. } = self.0;
        if inner | outer != 0 || !branches.is_power_of_two() {
            return self.as_path();
        }
        let bits = u64::from(branches.trailing_zeros()) << (64 - STRIDE);
        Some(Path { bits, strides: 1, child: children })
    }

    /// Returns whether it has neither routes nor children.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.inner | self.0.outer | self.0.branches == 0
    }

    /// Returns the first child of a branch, or the child of a path.
    pub(super) const fn only_child(&self) -> Option<u32> {
        // The strides of a path are not zero.
        if self.0.branches != 0 { Some(self.0.children) } else { None }
    }

    /// Returns the routes. A path has none.
    pub(super) const fn routes(&self) -> RouteBits {
        if self.is_path() { RouteBits::NONE } else { self.bits() }
    }

    /// Returns the bitmaps of the routes of a branch; of a path, bitmaps that no branch has.
    #[inline]
    pub(super) const fn bits(&self) -> RouteBits {
        self.0.bits()
    }

    /// Sets the routes.
    #[inline]
    pub(super) fn set_routes(&mut self, bits: RouteBits) {
        (self.0.inner, self.0.outer, self.0.values) = (bits.inner, bits.outer, bits.values);
    }

    /// Returns a copy of the node with other blocks of values and of children.
    pub(super) fn relocated(&self, values: u32, children: u32) -> Self {
        let values = values + count_ones(self.routes().inner);
        Self(Branch { values, children, ..self.0 })
    }

    /// Detaches the first child of a branch, if there is one.
    pub(super) fn take_child(&mut self) -> Option<u32> {
        let Branch { branches, children: first, .. } = *self.branch();
        (branches != 0).then(|| {
            self.flip_child(branches.trailing_zeros(), first + 1);
            first
        })
    }

    /// Adds or removes the child of a slot of a branch; `block` is the block of children after it.
    pub(super) fn flip_child(&mut self, slot: u32, block: u32) {
        self.0.branches ^= 1 << slot;
        self.0.children = block;
    }
}

impl Branch {
    /// A branch without routes and children.
    pub(super) const EMPTY: Self = Self { inner: 0, outer: 0, branches: 0, values: 0, children: 0 };

    /// Returns the longest route that covers `slot`.
    #[inline]
    pub(super) fn longest(&self, slot: u32) -> Option<NodeMatch> {
        self.covers(slot).then(|| self.longest_covering(slot))
    }

    /// Returns whether a route covers `slot`.
    #[inline]
    pub(super) const fn covers(&self, slot: u32) -> bool {
        self.outer >> slot & 1 | self.inner & COVERS[slot as usize] != 0
    }

    /// Returns the longest route that covers `slot`, which must exist. Branch-free, since the level
    /// of the route is unpredictable.
    #[inline]
    fn longest_covering(&self, slot: u32) -> NodeMatch {
        // All ones if there is an outer route.
        let outer = (self.outer >> slot & 1).wrapping_neg();
        let either = |one: u64, other: u64| one & outer | other & !outer;
        let routes = either(self.outer, self.inner);
        let inner = PrefixIndex::longest_in(self.inner & COVERS[slot as usize] | 1 << 1);
        let index = PrefixIndex::new(either(
            PrefixIndex::covering(slot, STRIDE).get().into(),
            inner.get().into(),
        ));
        // Inner routes lie to the left of `values`: !n is -1 - n.
        let offset = rank(routes, index.get() % u64::BITS) ^ !outer as u32;
        NodeMatch { value: self.values.wrapping_add(offset), level: index.level() }
    }

    /// Iterates over the prefix indices of the inner routes.
    fn inner_routes(&self) -> impl Iterator<Item = PrefixIndex> {
        each_one(self.inner).map(|index| PrefixIndex::new(index.into()))
    }

    /// Returns the longest of the shorter routes that cover a prefix.
    pub(super) fn longest_above(&self, index: PrefixIndex) -> Option<NodeMatch> {
        // A prefix has a lower index than the prefixes that it covers.
        let lower = 1_u64.checked_shl(index.get()).unwrap_or(0).wrapping_sub(1);
        let above = self.inner & COVERS[index.first_slot() as usize] & lower;
        (above != 0).then(|| {
            let longest = PrefixIndex::longest_in(above);
            NodeMatch { value: self.value(longest), level: longest.level() }
        })
    }

    /// Returns the longest route that covers a prefix, itself included.
    pub(super) fn longest_of(&self, index: PrefixIndex) -> Option<NodeMatch> {
        match self.has(index) {
            true => Some(NodeMatch { value: self.value(index), level: index.level() }),
            false => self.longest_above(index),
        }
    }

    /// Calls a function for each route, with the index of its value: the shorter ones first.
    pub(super) fn for_each_route(&self, mut each: impl FnMut(PrefixIndex, u32)) {
        for (nth, index) in (1..).zip(self.inner_routes()) {
            each(index, self.values - nth);
        }
        let mut rest = self.outer;
        for value in self.values.. {
            if rest == 0 {
                return;
            }
            each(PrefixIndex::covering(rest.trailing_zeros(), STRIDE), value);
            rest &= rest - 1;
        }
    }

    /// Returns the slots at which a route begins or that have a child.
    pub(super) fn starts(&self) -> u64 {
        let begin = |slots, index: PrefixIndex| slots | 1 << index.first_slot();
        self.inner_routes().fold(self.outer | self.branches, begin)
    }

    /// Returns whether it has a route or a child that `top` covers.
    pub(super) fn has_covered(&self, top: PrefixIndex) -> bool {
        (self.outer | self.branches) & top.slots() != 0
            || self.inner_routes().any(|index| top.covers(index))
    }

    /// Returns whether it has the route with this prefix index.
    #[inline]
    pub(super) const fn has(&self, index: PrefixIndex) -> bool {
        match index.slot() {
            Some(slot) => self.outer >> slot & 1 != 0,
            None => self.inner >> index.get() & 1 != 0,
        }
    }

    /// Returns the index of the value of a route, which must exist.
    #[inline]
    pub(super) fn value(&self, index: PrefixIndex) -> u32 {
        match index.slot() {
            Some(slot) => self.values + rank(self.outer, slot),
            None => self.values - 1 - rank(self.inner, index.get()),
        }
    }

    /// Returns the child in a slot.
    #[inline]
    pub(super) fn child(&self, slot: u32) -> Option<u32> {
        self.has_child(slot).then(|| self.child_of(slot))
    }

    /// Returns the child in a slot.
    #[inline(always)]
    pub(super) fn child_by<const FAST: bool>(&self, ops: BitOps<FAST>, slot: u32) -> Option<u32> {
        // The bit of the slot is the top one.
        let up_to = ops.shift_left(self.branches, u64::from(slot ^ (SLOTS - 1)));
        let count = ops.ones(up_to) as u32;
        ((up_to as i64) < 0).then(|| self.children.wrapping_add(count).wrapping_sub(1))
    }

    /// Returns the longest route that covers `slot`, if there is one. The node is at `pos`.
    #[inline(always)]
    pub(super) fn longest_by<const FAST: bool>(
        &self,
        ops: BitOps<FAST>,
        slot: u32,
        pos: u32,
    ) -> RouteMatch {
        if self.outer >> slot & 1 | self.inner & COVERS[slot as usize] & !TOP_BIT == 0 {
            // Checked again, since an inconsistent address type may return other bits than before.
            let has_top = self.inner & TOP_BIT != 0;
            return if has_top { RouteMatch::new(self.values - 1, pos) } else { RouteMatch::NONE };
        }
        search::<FAST, true, 0>(ops, self.bits(), 0, pos, slot, None)
    }

    /// Returns whether there is a child in a slot.
    #[inline]
    pub(super) const fn has_child(&self, slot: u32) -> bool {
        self.branches >> slot & 1 != 0
    }

    /// Returns the child in a slot, which must exist.
    #[inline]
    pub(super) fn child_of(&self, slot: u32) -> u32 {
        self.children.wrapping_add(rank(self.branches, slot))
    }

    /// Returns the bitmap of slots with children.
    pub(super) const fn branches(&self) -> u64 {
        self.branches
    }

    /// Iterates over the children: the slot and the index of each.
    pub(super) fn children(&self) -> impl Iterator<Item = (u32, u32)> {
        each_one(self.branches).zip(self.children..)
    }

    /// Returns the block of the values: its index and length.
    pub(super) fn values_block(&self) -> (u32, u32) {
        let inner = count_ones(self.inner);
        (self.values - inner, inner + count_ones(self.outer))
    }

    /// Returns the block of the children: its index and length.
    pub(super) fn children_block(&self) -> (u32, u32) {
        (self.children, count_ones(self.branches))
    }

    /// Returns the bitmaps of the routes, and the index of the value of the first outer one.
    #[inline]
    pub(super) const fn bits(&self) -> RouteBits {
        RouteBits { inner: self.inner, outer: self.outer, values: self.values }
    }
}
