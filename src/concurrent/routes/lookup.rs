//! Longest-prefix match under a pin.
#![allow(unsafe_code)]

use core::borrow::Borrow;

use super::block::Block;
use super::pinned::PinnedRoutes;
use super::slots::END;
use crate::concurrent::guard::Guard;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::raw::prefetch::{BURST, prefetch};
use crate::routes::search::RouteMatch;
use crate::routes::stride::{STRIDE, first_slot, slot_of};

/// Steps of a descent that a burst takes together: to bit 48, where most routes of IPv6 have ended.
const STEPS: usize = 5;

/// A descent from the block of a slot, which records the last block with a match.
struct Descent<'p, V> {
    block: Block<'p, V>,
    pos: u32,
    best: Block<'p, V>,
    best_pos: u32,
}

impl<V> Clone for Descent<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Descent<'_, V> {}

/// Returns the slot of an address with these first bits in a block at `pos`.
#[inline(always)]
fn slot_at<A: Address>(address: &A, word: u64, pos: u32) -> u32 {
    if A::BITS <= 64 || pos <= 64 - STRIDE {
        first_slot(word.wrapping_shl(pos))
    } else {
        slot_of(address, pos)
    }
}

impl<'p, V> Descent<'p, V> {
    #[inline(always)]
    const fn new(block: Block<'p, V>) -> Self {
        Self { block, pos: END, best: block, best_pos: END }
    }

    /// Proceeds to the child for an address, if it exists.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn step<A: Address, const FAST: bool>(&mut self, address: &A, word: u64) -> bool {
        if self.pos + STRIDE >= A::BITS {
            return false;
        }
        // SAFETY: by the contract of this function.
        let child = unsafe { self.block.child_by::<FAST>(slot_at(address, word, self.pos)) };
        let Some(child) = child else { return false };
        (self.block, self.pos) = (child, self.pos + STRIDE);
        if child.covers(slot_at(address, word, self.pos)) {
            (self.best, self.best_pos) = (child, self.pos);
        }
        true
    }

    /// Returns the longest match with its block.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn finish<A: Address, const FAST: bool, const LEN: bool>(
        mut self,
        address: &A,
        word: u64,
    ) -> Option<(RouteMatch, &'p V)> {
        // SAFETY: by the contract of this function.
        while unsafe { self.step::<A, FAST>(address, word) } {}
        let slot = slot_at(address, word, self.best_pos);
        // SAFETY: by the contract of this function.
        let found = unsafe { self.best.longest::<FAST, LEN>(slot, self.best_pos) };
        let found = found.exists()?;
        // SAFETY: the block has found it.
        Some((found, unsafe { self.best.value(found.value()) }))
    }
}

impl<A: Address, V, G: Borrow<Guard>> PinnedRoutes<'_, A, V, G> {
    #[inline(always)]
    fn descent(&self, word: u64) -> Descent<'_, V> {
        // SAFETY: the pin is held as long as `self` is borrowed.
        Descent::new(unsafe { self.routes.slots.block(word) })
    }

    /// See [`PinnedRoutes::lookup`].
    #[inline(always)]
    pub(super) fn longest(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        let word = address.window(0);
        let descent = self.descent(word);
        let found = if self.routes.is_fast {
            // SAFETY: the CPU has the instructions.
            unsafe { descent.finish::<A, true, true>(address, word) }
        } else {
            // SAFETY: this copy needs no instructions.
            unsafe { descent.finish::<A, false, true>(address, word) }
        };
        found.map(|(found, value)| (Prefix::of(address, found.len()), value))
    }

    /// Looks up addresses in bursts, and writes to `found` what `result` returns for each address
    /// and its match, whose length is only known if `LEN`.
    #[inline(always)]
    pub(super) fn bursts<'p, const LEN: bool, R>(
        &'p self,
        addresses: &[A],
        found: &mut [R],
        result: impl Fn(&A, Option<(RouteMatch, &'p V)>) -> R,
    ) {
        for (addresses, found) in addresses.chunks(BURST).zip(found.chunks_mut(BURST)) {
            if self.routes.is_fast {
                // SAFETY: the CPU has the instructions.
                unsafe { self.burst::<true, LEN, _>(addresses, found, &result) };
            } else {
                // SAFETY: this copy needs no instructions.
                unsafe { self.burst::<false, LEN, _>(addresses, found, &result) };
            }
        }
    }

    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn burst<'p, const FAST: bool, const LEN: bool, R>(
        &'p self,
        addresses: &[A],
        found: &mut [R],
        result: impl Fn(&A, Option<(RouteMatch, &'p V)>) -> R,
    ) {
        addresses.iter().for_each(|address| self.routes.slots.prefetch(address.window(0)));
        let mut descents = [Descent::new(Block::EMPTY); BURST];
        for (descent, address) in descents.iter_mut().zip(addresses) {
            *descent = self.descent(address.window(0));
            descent.block.prefetch();
        }
        // The other addresses have few children below their slots.
        for _ in 0..if A::BITS > 32 { STEPS } else { 0 } {
            let mut is_done = true;
            for (descent, address) in descents.iter_mut().zip(addresses) {
                // SAFETY: by the contract of this function.
                if unsafe { descent.step::<A, FAST>(address, address.window(0)) } {
                    descent.block.prefetch();
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        for ((descent, address), found) in descents.iter().zip(addresses).zip(found) {
            // SAFETY: by the contract of this function.
            let longest = unsafe { descent.finish::<A, FAST, LEN>(address, address.window(0)) };
            if let Some((_, value)) = longest {
                prefetch(value);
            }
            *found = result(address, longest);
        }
    }
}
