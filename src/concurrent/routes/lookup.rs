//! Longest-prefix match under a pin.
#![allow(unsafe_code)]

use super::ConcurrentRoutes;
use super::block::Block;
use super::slots::END;
use crate::concurrent::guard::Guard;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::raw::bit_ops::select;
use crate::raw::prefetch::{BURST, prefetch};
use crate::routes::stride::{STRIDE, first_slot};

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
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn step<A: Address, const FAST: bool>(&mut self, address: &A) -> bool {
        let (slot, at) = self.at();
        if self.block.covers(slot) != 0 {
            (self.best, self.best_at) = (self.block, at);
        }
        if self.pos + STRIDE >= A::BITS {
            return false;
        }
        // SAFETY: by the contract of this function.
        let Some(child) = (unsafe { self.block.child_by::<FAST>(slot) }) else { return false };
        (self.block, self.pos) = (child, self.pos + STRIDE);
        self.rest <<= STRIDE;
        if A::BITS > 64 && self.pos > 64 - STRIDE {
            self.rest = address.window(self.pos);
        }
        true
    }

    /// [`step`](Self::step) without a branch: to `none` if the child does not exist.
    ///
    /// # Safety
    ///
    /// As there; and no more than [`STEPS`] steps were made before.
    #[inline(always)]
    unsafe fn step_or<const FAST: bool>(&mut self, none: &Block<'p, V>) {
        let (slot, at) = self.at();
        let covers = self.block.covers(slot);
        self.best = Block::select(covers, self.block, self.best);
        self.best_at = select(covers, at, self.best_at);
        // SAFETY: by the contract of this function.
        self.block = unsafe { self.block.child_or::<FAST>(slot, none) };
        self.pos += STRIDE;
        self.rest <<= STRIDE;
    }

    /// Returns the length, only if `LEN`, and the value of the longest match.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn finish<A: Address, const FAST: bool, const LEN: bool>(
        mut self,
        address: &A,
    ) -> Option<(u32, &'p V)> {
        // SAFETY: by the contract of this function.
        while unsafe { self.step::<A, FAST>(address) } {}
        let (pos, slot) = ((self.best_at >> 32) as u32, self.best_at as u32);
        // SAFETY: by the contract of this function.
        unsafe { self.best.longest::<FAST, LEN, true>(slot, pos) }
    }
}

impl<'p, V> Block<'p, V> {
    /// Returns the length, only if `LEN`, and the value of the longest match, given the block of
    /// the slot of an address.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn find<A: Address, const FAST: bool, const LEN: bool>(
        self,
        address: &A,
    ) -> Option<(u32, &'p V)> {
        let word = address.window(0);
        let slot = first_slot(word << END);
        if A::BITS > 32 {
            // SAFETY: by the contract of this function.
            return unsafe { Descent::new(self, word).finish::<A, FAST, LEN>(address) };
        }
        if self.has_children() {
            // SAFETY: as above.
            return unsafe { self.find_below::<A, FAST, LEN>(address) };
        }
        // SAFETY: as above.
        unsafe { self.longest::<FAST, LEN, false>(slot, END) }
    }

    /// [`find`](Self::find) in a block with children: few of IPv4.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(never)]
    unsafe fn find_below<A: Address, const FAST: bool, const LEN: bool>(
        self,
        address: &A,
    ) -> Option<(u32, &'p V)> {
        // SAFETY: by the contract of this function.
        unsafe { Descent::new(self, address.window(0)).finish::<A, FAST, LEN>(address) }
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
        let found = if self.is_fast {
            // SAFETY: the CPU has the instructions.
            unsafe { block.find::<A, true, true>(address) }
        } else {
            Self::find_portable(block, address)
        };
        found.map(|(len, value)| (Prefix::of(address, len), value))
    }

    /// [`Block::find`]: fallback without POPCNT, LZCNT and BMI2.
    #[inline(never)]
    fn find_portable<'p>(block: Block<'p, V>, address: &A) -> Option<(u32, &'p V)> {
        // SAFETY: this copy needs no instructions.
        unsafe { block.find::<A, false, true>(address) }
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
            if self.is_fast {
                // SAFETY: the CPU has the instructions.
                unsafe { self.burst::<true, LEN>(addresses, guard, longest) };
            } else {
                // SAFETY: this copy needs no instructions.
                unsafe { self.burst::<false, LEN>(addresses, guard, longest) };
            }
            for ((nth, address), longest) in (first..).zip(addresses).zip(longest) {
                found(nth, address, *longest);
            }
        }
    }

    /// Looks up the addresses of one burst, and prefetches the values.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline]
    unsafe fn burst<'r, const FAST: bool, const LEN: bool>(
        &'r self,
        addresses: &[A],
        guard: &'r Guard,
        longest: &mut [Option<(u32, &'r V)>],
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
                // SAFETY: by the contract of this function.
                *longest = prefetch_value(unsafe { block.find::<A, FAST, LEN>(address) });
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
                // SAFETY: by the contract of this function.
                unsafe { descent.step_or::<FAST>(&none) };
                descent.block.prefetch();
            }
        }
        for ((descent, address), longest) in descents.iter_mut().zip(addresses).zip(longest) {
            // SAFETY: by the contract of this function; and so for the call below.
            unsafe { descent.step_or::<FAST>(&none) };
            // SAFETY: as above.
            *longest = prefetch_value(unsafe { descent.finish::<A, FAST, LEN>(address) });
        }
    }
}
