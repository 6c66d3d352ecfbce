//! A node: which routes and children it has, and where they lie.
//!
//! ```text
//!     values                  ┌─ node.values
//!                ▕ 37  9  5  2▕ 64 70 71▕           spots of the routes: `inner` leftwards, `outer` rightwards
//!     nodes                                  ▕ 3  9 17▕   slots of the children
//!                                             └─ node.children
//! ```
//!
//! A route or a child is found by counting the ones below its bit. Inner routes lie to the left of
//! `values`, outer ones to the right of it: so one count is enough for either, without asking first how
//! many there are of the other.

use core::iter;

use super::pool::Blank;
use super::stride::{COVERS, STRIDE, Spot, first_slot};

/// Half a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct Node {
    /// Routes of levels 0 to 5: bit `n` for spot `n`. Level 0 is in the root only. Bit 0 is set in a
    /// [`Path`].
    inner: u64,
    /// Routes of level 6: bit `n` for slot `n`.
    outer: u64,
    /// Children: bit `n` for slot `n`.
    branches: u64,
    /// Of the values: the first of the outer routes.
    values: u32,
    /// Of the nodes: the first child.
    children: u32,
}

/// No routes, no children.
impl Blank for Node {
    const BLANK: Self = Self { inner: 0, outer: 0, branches: 0, values: 0, children: 0 };
    // As many as a slot of a direct table can name.
    const MOST: u64 = 1 << 27;
}

/// Some strides in which all that is below agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The bits in which all agree, as the first ones of a word; the others are zero.
    pub(super) bits: u64,
    /// How many strides: 2 to [`Path::LONGEST`] in a node that is a path.
    pub(super) strides: u32,
    /// The node at its end.
    pub(super) child: u32,
}

impl Path {
    /// As many strides as there are in a word.
    pub(super) const LONGEST: u32 = u64::BITS / STRIDE;

    /// How many bits.
    pub(super) const fn len(self) -> u32 {
        self.strides * STRIDE
    }

    /// The strides in which `window` agrees with it.
    pub(super) fn agreement(self, window: u64) -> u32 {
        ((self.bits ^ window).leading_zeros() / STRIDE).min(self.strides)
    }

    /// Its first strides, with another child.
    pub(super) fn first(self, strides: u32, child: u32) -> Self {
        let bits = self.bits & !(u64::MAX >> (strides * STRIDE));
        Self { bits, strides, child }
    }

    /// What is behind its first strides.
    pub(super) fn behind(self, strides: u32) -> Self {
        let bits = self.bits << (strides * STRIDE);
        Self { bits, strides: self.strides - strides, child: self.child }
    }

    /// Both in a row, if a path can be that long.
    pub(super) fn joined(self, next: Self) -> Option<Self> {
        let strides = self.strides + next.strides;
        let bits = self.bits | next.bits >> self.len();
        (strides <= Self::LONGEST).then_some(Self { bits, strides, child: next.child })
    }
}

/// A route of a node: where its value is, and by how many bits it is longer than the node's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) value: u32,
    pub(super) level: u32,
}

impl Node {
    /// A node for these strides: a path, or one with a single child if it is one stride only. That is
    /// met too often for a look-up to foresee which kind of node comes.
    pub(super) fn passage(path: Path) -> Self {
        if path.strides == 1 {
            return Self {
                branches: 1 << first_slot(path.bits),
                children: path.child,
                ..Self::BLANK
            };
        }
        Self {
            inner: 1,
            outer: path.bits,
            branches: path.strides as u64,
            values: 0,
            children: path.child,
        }
    }

    #[inline]
    pub(super) const fn is_path(&self) -> bool {
        self.inner & 1 != 0
    }

    #[inline]
    pub(super) const fn as_path(&self) -> Option<Path> {
        if !self.is_path() {
            return None;
        }
        Some(Path { bits: self.outer, strides: self.branches as u32, child: self.children })
    }

    /// The strides of a node that leads to one child and to nothing else.
    pub(super) fn as_passage(&self) -> Option<Path> {
        let is_single = self.inner | self.outer == 0 && self.branches.is_power_of_two();
        if !is_single {
            return self.as_path();
        }
        let bits = u64::from(self.branches.trailing_zeros()) << (64 - STRIDE);
        Some(Path { bits, strides: 1, child: self.children })
    }

    /// The longest route that covers `slot`. Not of a path.
    #[inline]
    pub(super) fn longest(&self, slot: u32) -> Option<Match> {
        self.covers(slot).then(|| self.longest_of(slot))
    }

    /// Whether a route covers `slot`. Not of a path.
    #[inline]
    pub(super) const fn covers(&self, slot: u32) -> bool {
        self.outer >> slot & 1 | self.inner & COVERS[slot as usize] != 0
    }

    /// The longest route that covers `slot`, if there is one. Without branches, as it cannot be
    /// foreseen at which level a route is.
    #[inline]
    pub(super) fn longest_of(&self, slot: u32) -> Match {
        // All ones if there is an outer route.
        let outer = (self.outer >> slot & 1).wrapping_neg();
        let either = |one: u64, other: u64| one & outer | other & !outer;
        let routes = either(self.outer, self.inner);
        let inner = Spot::last_of(self.inner & COVERS[slot as usize] | 1 << 1);
        let spot = Spot::numbered(either(
            Spot::above(slot, STRIDE).number().into(),
            inner.number().into(),
        ));
        // To the left of `values` for inner routes: !n is -1 - n.
        let place = below(routes, spot.number() % u64::BITS) ^ !outer as u32;
        Match { value: self.values.wrapping_add(place), level: spot.level() }
    }

    /// The spots of the inner routes.
    fn inner_spots(&self) -> impl Iterator<Item = Spot> {
        let rests = iter::successors(Some(self.inner), |rest| Some(rest & rest.checked_sub(1)?));
        rests.take_while(|&rest| rest != 0).map(|rest| Spot::numbered(rest.trailing_zeros().into()))
    }

    /// The slots where a route begins, or that have a child. Not of a path.
    pub(super) fn beginnings(&self) -> u64 {
        let begin = |slots, spot: Spot| slots | 1 << spot.first_slot();
        self.inner_spots().fold(self.outer | self.branches, begin)
    }

    /// Whether it has a route or a child at or below a spot. Not of a path.
    pub(super) fn has_below(&self, top: Spot) -> bool {
        (self.outer | self.branches) & top.slots() != 0
            || self.inner_spots().any(|spot| top.covers(spot))
    }

    /// Whether it has the route of a spot.
    #[inline]
    pub(super) const fn has(&self, spot: Spot) -> bool {
        match spot.slot() {
            Some(slot) => self.outer >> slot & 1 != 0,
            None => self.inner >> spot.number() & 1 != 0,
        }
    }

    /// Where the value of a route is that it has.
    #[inline]
    pub(super) fn value(&self, spot: Spot) -> u32 {
        match spot.slot() {
            Some(slot) => self.values + below(self.outer, slot),
            None => self.values - 1 - below(self.inner, spot.number()),
        }
    }

    /// The child in a slot.
    #[inline]
    pub(super) fn child(&self, slot: u32) -> Option<u32> {
        self.has_child(slot).then(|| self.child_of(slot))
    }

    /// Whether there is a child in a slot.
    #[inline]
    pub(super) const fn has_child(&self, slot: u32) -> bool {
        self.branches >> slot & 1 != 0
    }

    /// The child in a slot that has one.
    #[inline]
    pub(super) fn child_of(&self, slot: u32) -> u32 {
        self.children.wrapping_add(below(self.branches, slot))
    }

    /// Whether there is nothing to look at behind it: it is not a path, and has no child in a slot.
    #[inline]
    pub(super) const fn ends(&self, slot: u32) -> bool {
        (self.inner | self.branches >> slot) & 1 == 0
    }

    /// The slots that have children.
    pub(super) const fn branches(&self) -> u64 {
        self.branches
    }

    /// The run of the values: its first one, and how many there are. Not of a path.
    pub(super) fn values_run(&self) -> (u32, u32) {
        let inner = self.inner.count_ones();
        (self.values - inner, inner + self.outer.count_ones())
    }

    /// The run of the children: the first one, and how many there are. Not of a path.
    pub(super) const fn children_run(&self) -> (u32, u32) {
        (self.children, self.branches.count_ones())
    }

    /// Whether it has neither routes nor children.
    pub(super) const fn is_empty(&self) -> bool {
        self.inner | self.outer | self.branches == 0
    }

    /// The one child of a path, or of a node that has no other.
    pub(super) const fn only_child(&self) -> Option<u32> {
        if self.is_path() || self.branches != 0 { Some(self.children) } else { None }
    }

    /// Where in the run of the values the one of a spot is, or would be.
    pub(super) fn place(&self, spot: Spot) -> u32 {
        let inner = self.inner.count_ones();
        match spot.slot() {
            Some(slot) => inner + below(self.outer, slot),
            // The spots go down from left to right.
            None => inner - below(self.inner, spot.number()) - u32::from(self.has(spot)),
        }
    }

    /// The same node with its runs elsewhere: those of the values and of the children.
    pub(super) const fn moved(&self, values: u32, children: u32) -> Self {
        let values = values + if self.is_path() { 0 } else { self.inner.count_ones() };
        Self { values, children, ..*self }
    }

    /// Adds the route of a spot, or takes it away; the run of the values then is at `run`.
    pub(super) fn flip_route(&mut self, spot: Spot, run: u32) {
        match spot.slot() {
            Some(slot) => self.outer ^= 1 << slot,
            None => self.inner ^= 1 << spot.number(),
        }
        self.values = run + self.inner.count_ones();
    }

    /// Adds the child of a slot, or takes it away; the run of the children then is at `run`.
    pub(super) fn flip_child(&mut self, slot: u32, run: u32) {
        self.branches ^= 1 << slot;
        self.children = run;
    }
}

/// How many ones there are below a bit.
#[inline]
fn below(word: u64, bit: u32) -> u32 {
    (word & ((1 << bit) - 1)).count_ones()
}
