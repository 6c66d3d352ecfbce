//! Longest-prefix match under a pin.
//!
//! The longest route of a block is found as pointers to its value and length, without a branch:
//!
//! ```text
//!     routes of level 6 of the block  ─┐
//!     others of the block that cover  ─┼→ pointer to the value, pointer to the length
//!     the inherited one, or none      ─┘
//! ```
//!
//! The search in the bitmaps is the search of a [`RouteTable`](crate::RouteTable), [`Covering`];
//! a block has its values beside the bitmaps, so the result are pointers instead of the index of a
//! value.
#![allow(unsafe_code)]

use super::ConcurrentRoutes;
use super::block::Block;
use super::slots::END;
use crate::concurrent::pinned::{Guard, Pinned, Protect};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::raw::bit_ops::{BitOps, select, select_ptrs, select_ptrs_by_sign};
use crate::raw::prefetch::{BURST, prefetch};
use crate::routes::search::Covering;
use crate::routes::stride::{COVERS, STRIDE, first_slot};

/// Steps of a descent that a burst takes together: to bit 42, at which most routes of IPv6 are.
const STEPS: usize = 4;

/// A descent from the block of a slot, which records the last block with a match.
struct Descent<'p, V> {
    block: Block<'p, V>,
    pos: u32,
    /// The bits of the address from `pos` on, as far as the next step needs them.
    rest: u64,
    best: Block<'p, V>,
    /// The position of the recorded block, and in the lower half the slot of the address there.
    best_at: u64,
}

impl<V> Clone for Descent<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Descent<'_, V> {}

impl<'p, V> Descent<'p, V> {
    /// Begins at the block of an address with these first bits.
    #[inline(always)]
    fn new(block: Block<'p, V>, word: u64) -> Self {
        let rest = word << END;
        let best_at = u64::from(END) << 32 | u64::from(first_slot(rest));
        Self { block, pos: END, rest, best: block, best_at }
    }

    /// Returns the slot of the next step, and where it is.
    #[inline(always)]
    const fn at(&self) -> (u32, u64) {
        let slot = first_slot(self.rest);
        (slot, (self.pos as u64) << 32 | slot as u64)
    }

    /// Records the block if it has a match, and proceeds to the child for an address, if it exists,
    /// without reading that.
    #[inline(always)]
    fn step<A: Address, const FAST: bool>(&mut self, address: &A, ops: BitOps<FAST>) -> bool {
        let (slot, at) = self.at();
        if self.block.covers(slot) != 0 {
            (self.best, self.best_at) = (self.block, at);
        }
        if self.pos + STRIDE >= A::BITS {
            return false;
        }
        let Some(child) = self.block.child_by(slot, ops) else { return false };
        (self.block, self.pos) = (child, self.pos + STRIDE);
        self.rest <<= STRIDE;
        if A::BITS > 64 && self.pos > 64 - STRIDE {
            self.rest = address.window(self.pos);
        }
        true
    }

    /// [`step`](Self::step) without a branch: to `none` if the child does not exist.
    /// No more than [`STEPS`] steps were made before.
    #[inline(always)]
    fn step_or<const FAST: bool>(&mut self, ops: BitOps<FAST>, none: &Block<'p, V>) {
        let (slot, at) = self.at();
        let covers = self.block.covers(slot);
        self.best = Block::select(covers, self.block, self.best);
        self.best_at = select(covers, at, self.best_at);
        self.block = self.block.child_or(slot, ops, none);
        self.pos += STRIDE;
        self.rest <<= STRIDE;
    }

    /// Returns the length, only if `LEN`, and the value of the longest match.
    #[inline(always)]
    fn finish<A: Address, const FAST: bool, const LEN: bool>(
        mut self,
        address: &A,
        ops: BitOps<FAST>,
    ) -> Option<(u32, &'p V)> {
        while self.step(address, ops) {}
        let (pos, slot) = ((self.best_at >> 32) as u32, self.best_at as u32);
        self.best.longest::<FAST, LEN, true>(slot, pos, ops)
    }
}

impl<'p, V> Block<'p, V> {
    /// Returns the length, only if `LEN`, and the value of the longest match, given the block of
    /// the slot of an address.
    #[inline(always)]
    fn find<A: Address, const FAST: bool, const LEN: bool>(
        self,
        address: &A,
        ops: BitOps<FAST>,
    ) -> Option<(u32, &'p V)> {
        let word = address.window(0);
        let slot = first_slot(word << END);
        if A::BITS > 32 {
            return Descent::new(self, word).finish::<A, FAST, LEN>(address, ops);
        }
        if self.has_children() {
            return self.find_below::<A, FAST, LEN>(address, ops);
        }
        self.longest::<FAST, LEN, false>(slot, END, ops)
    }

    /// [`find`](Self::find) in a block with children: few of IPv4.
    #[inline(never)]
    fn find_below<A: Address, const FAST: bool, const LEN: bool>(
        self,
        address: &A,
        ops: BitOps<FAST>,
    ) -> Option<(u32, &'p V)> {
        Descent::new(self, address.window(0)).finish::<A, FAST, LEN>(address, ops)
    }
}

impl<A: Address, V> ConcurrentRoutes<A, V> {
    #[inline(always)]
    fn block<'r>(&'r self, address: &A, _guard: &'r Guard) -> Block<'r, V> {
        // SAFETY: the pin lasts for 'r.
        unsafe { self.slots.block(address.window(0)) }
    }

    /// Returns the longest route that contains an address, and its value.
    #[inline(always)]
    pub(super) fn longest<'r>(
        &'r self,
        address: &A,
        guard: &'r Guard,
    ) -> Option<(Prefix<A>, &'r V)> {
        let block = self.block(address, guard);
        let found = match self.fast {
            Some(fast) => block.find::<A, true, true>(address, fast),
            None => Self::find_portable(block, address),
        };
        found.map(|(len, value)| (Prefix::of(address, len), value))
    }

    /// [`Block::find`]: fallback without POPCNT, LZCNT and BMI2.
    #[inline(never)]
    fn find_portable<'p>(block: Block<'p, V>, address: &A) -> Option<(u32, &'p V)> {
        block.find::<A, false, true>(address, BitOps::PORTABLE)
    }

    /// Looks up addresses in bursts, and calls `found` with the index of each address, the address
    /// and its match, whose length is only known if `LEN`.
    #[inline]
    pub(super) fn bursts<'r, const LEN: bool>(
        &'r self,
        addresses: &[A],
        guard: &'r Guard,
        mut found: impl FnMut(usize, &A, Option<(u32, &'r V)>),
    ) {
        for (first, addresses) in (0..).step_by(BURST).zip(addresses.chunks(BURST)) {
            let mut longest = [None; BURST];
            let longest = &mut longest[..addresses.len()];
            match self.fast {
                Some(fast) => self.burst::<true, LEN>(addresses, guard, longest, fast),
                None => self.burst::<false, LEN>(addresses, guard, longest, BitOps::PORTABLE),
            }
            for ((nth, address), longest) in (first..).zip(addresses).zip(longest) {
                found(nth, address, *longest);
            }
        }
    }

    /// Looks up the addresses of one burst, and prefetches the values.
    #[inline]
    fn burst<'r, const FAST: bool, const LEN: bool>(
        &'r self,
        addresses: &[A],
        guard: &'r Guard,
        longest: &mut [Option<(u32, &'r V)>],
        ops: BitOps<FAST>,
    ) {
        addresses.iter().for_each(|address| self.slots.prefetch(address.window(0)));
        let prefetch_value = |found: Option<(u32, &'r V)>| {
            if let Some((_, value)) = found {
                prefetch(value);
            }
            found
        };
        let mut blocks = [Block::empty(); BURST];
        for (block, address) in blocks.iter_mut().zip(addresses) {
            *block = self.block(address, guard);
            block.prefetch();
        }
        if A::BITS <= 32 {
            for ((block, address), longest) in blocks.iter().zip(addresses).zip(longest) {
                *longest = prefetch_value(block.find::<A, FAST, LEN>(address, ops));
            }
            return;
        }
        let mut descents = [Descent::new(Block::empty(), 0); BURST];
        for ((descent, block), address) in descents.iter_mut().zip(blocks).zip(addresses) {
            *descent = Descent::new(block, address.window(0));
        }
        let none = Block::empty();
        for _ in 0..STEPS {
            for (descent, _) in descents.iter_mut().zip(addresses) {
                descent.step_or(ops, &none);
                descent.block.prefetch();
            }
        }
        for ((descent, address), longest) in descents.iter_mut().zip(addresses).zip(longest) {
            descent.step_or(ops, &none);
            *longest = prefetch_value(descent.finish::<A, FAST, LEN>(address, ops));
        }
    }
}

impl<'t, A: Address, V, G> Pinned<'t, ConcurrentRoutes<A, V>, G> {
    /// Returns the longest route that contains an address, and its value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let pinned = routes.pin();
    /// assert_eq!(pinned.lookup(&0x41), Some((Prefix::new(0x40, 2)?, &'a')));
    /// assert_eq!(pinned.lookup(&0x80), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn lookup<'p, 'r>(&'p self, address: &A) -> Option<(Prefix<A>, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.longest(address, self.guard.protect())
    }

    /// Calls `found` with the index of each address, and the longest route that contains it with
    /// its value. The results are the same as from [`lookup`](Self::lookup), but the cache misses
    /// of 32 addresses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x41, 0x80], |i, route| found[i] = route);
    /// assert_eq!(found, [Some((Prefix::new(0x40, 2)?, &'a')), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch<'p, 'r>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<(Prefix<A>, &'r V)>),
    ) where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.bursts::<true>(addresses, self.guard.protect(), |nth, address, route| {
            found(nth, route.map(|(len, value)| (Prefix::of(address, len), value)));
        });
    }

    /// Calls `found` with the index of each address and the value of the longest route that
    /// contains it, like [`lookup_batch`](Self::lookup_batch) without the prefixes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch_values(&[0x41, 0x80], |i, value| found[i] = value);
    /// assert_eq!(found, [Some(&'a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch_values<'p, 'r>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<&'r V>),
    ) where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.bursts::<false>(addresses, self.guard.protect(), |nth, _, route| {
            found(nth, route.map(|(_, value)| value));
        });
    }
}

/// Where the length of outer routes is in a table of lengths.
const OUTER: usize = 65;

/// The lengths of the routes of a block at `pos`: the length of an inner route by the zeros before
/// its bit, and then the length of outer routes.
const fn lengths(pos: u32) -> [u32; OUTER + 1] {
    let mut lengths = [pos + STRIDE; OUTER + 1];
    let mut zeros = 0;
    while zeros < 63 {
        lengths[zeros] = pos + (63 - zeros).ilog2();
        zeros += 1;
    }
    lengths
}

/// The lengths in the block of a slot.
static AT_SLOT: [u32; OUTER + 1] = lengths(END);

/// The lengths in a block below, relative to its position.
static BELOW: [u32; OUTER + 1] = lengths(0);

impl<'p, V> Block<'p, V> {
    /// Returns the length, only if `LEN`, and the value of the longest route for a slot, which may
    /// be the inherited one. Without branches, but for the result.
    ///
    /// If not `DEEP`, it is the block of a slot, and has no children.
    #[inline(always)]
    fn longest<const FAST: bool, const LEN: bool, const DEEP: bool>(
        self,
        slot: u32,
        pos: u32,
        ops: BitOps<FAST>,
    ) -> Option<(u32, &'p V)> {
        debug_assert!(DEEP || !self.has_children() && pos == END);
        let bits = self.bits();
        let found = Covering::of(ops, (bits.inner, bits.outer), &COVERS, slot);
        let children = if DEEP { ops.ones(bits.branches) as usize } else { 0 };
        // Of those that do not exist, the address is of no use.
        let lengths = if DEEP { BELOW.as_ptr() } else { AT_SLOT.as_ptr() };
        let inner = (
            self.inner_value(children, found.below as usize),
            lengths.wrapping_add(found.zeros as usize),
        );
        let outer =
            (self.outer_value(found.before as usize).wrapping_sub(1), lengths.wrapping_add(OUTER));
        let inherited = self.inherited_word().cast::<V>().cast_const();
        let inherited = (inherited, Self::inherited_len(inherited));
        let either = select_ptrs(found.inner, inner, inherited);
        let (value, len) = select_ptrs_by_sign(found.outer, outer, either);
        // SAFETY: the pointer is null, or refers to the value of a route of the block, or to the
        // inherited value, whose shared block is freed no earlier than this block.
        let value: &'p V = unsafe { value.as_ref() }?;
        if !LEN {
            return Some((0, value));
        }
        // SAFETY: the length belongs to the same route, in a table or in the shared block.
        let len = unsafe { len.read() };
        let above =
            if DEEP { select(found.inner | found.outer >> 63, pos.into(), 0) as u32 } else { 0 };
        Some((above + len, value))
    }
}
