//! Invariants of concurrent routes.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::ConcurrentRoutes;
use super::block::Block;
use super::edit::State;
use super::list::each_slot;
use super::slots::{Group, Slots, load};
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::Address;
use crate::routes::stride::{SLOTS, STRIDE, first_slot};

/// The contents of the blocks below slots.
struct Sum {
    bytes: usize,
    /// Routes of more than six bits, by the first six bits.
    counts: [usize; SLOTS as usize],
}

impl<A: Address, V> ConcurrentRoutes<A, V> {
    /// Checks all invariants, for tests. O(routes and slots).
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let routes = flowtable::ConcurrentRoutes::<u8, char>::new();
    /// assert_eq!(routes.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let state = self.state.lock();
        state.short.validate()?;
        state.pool.validate()?;
        let mut sum = Sum { bytes: 0, counts: [0; SLOTS as usize] };
        for (prefix, shared) in &state.short {
            // SAFETY: the lock is held.
            let block: Block<'_, V> = unsafe { shared.block() };
            sum.bytes += block.bytes();
            sum.counts[(prefix.address() >> 26) as usize] += usize::from(prefix.len() > STRIDE);
            ensure(block.inherited() == Some(prefix.len()), || "the length of a shared block")?;
        }
        let mut result = Ok(());
        let check = |word, block: Block<'_, V>| {
            result = result.clone().and_then(|()| check_slot(&state, word, block, &mut sum));
        };
        // SAFETY: the lock is held.
        unsafe { each_slot(&self.slots, check) };
        result?;
        for part in Slots::<V>::parts() {
            let is_group = self.slots.group(part).is_some();
            sum.bytes += if is_group { Group::BYTES } else { 0 };
            ensure(is_group || sum.counts[part] == 0, || "a part with routes has a group")?;
            if !is_group {
                // SAFETY: the lock is held.
                let block = unsafe { load::<V>(self.slots.part(part)) };
                check_inherited(&state, (part as u64) << (64 - STRIDE), block)?;
                ensure(!block.is_own(), || "a part without a group has a shared block")?;
            }
        }
        let short = state.short.iter().filter(|(prefix, _)| prefix.len() <= STRIDE).count();
        ensure(sum.counts == state.counts, || "the numbers of routes of the parts")?;
        ensure(sum.bytes == state.bytes, || "the number of bytes")?;
        ensure(short + sum.counts.iter().sum::<usize>() == state.len, || "the number of routes")?;
        ensure(state.len == self.len(), || "the number of routes for readers")
    }
}

/// Checks the block of a slot and those below it.
fn check_slot<V>(
    state: &State<V>,
    word: u64,
    root: Block<'_, V>,
    sum: &mut Sum,
) -> Result<(), InvariantError> {
    check_inherited(state, word, root)?;
    let mut open = Vec::from_iter(root.is_own().then_some(root));
    while let Some(block) = open.pop() {
        let is_valid = block.is_own() && (block == root || block.inherited().is_none());
        ensure(is_valid, || "a block below a slot")?;
        sum.bytes += block.bytes();
        sum.counts[first_slot(word) as usize] += block.routes().count();
        open.extend(block.children().map(|(_, child)| child));
    }
    Ok(())
}

/// Checks the inherited route of a slot.
fn check_inherited<V>(
    state: &State<V>,
    word: u64,
    block: Block<'_, V>,
) -> Result<(), InvariantError> {
    let longest = state.short.lookup(&((word >> 32) as u32));
    // SAFETY: the caller holds the lock.
    let shared = longest.map_or(Block::empty(), |(_, shared)| unsafe { shared.block() });
    let is_inherited = block.inherited_word() == shared.inherited_word();
    ensure(is_inherited, || "the inherited route of a slot")?;
    ensure(block.is_own() || block == shared, || "the shared block of a slot")
}
