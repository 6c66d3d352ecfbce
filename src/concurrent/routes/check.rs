//! Invariants of concurrent routes.
#![allow(unsafe_code)]

use alloc::format;
use alloc::vec::Vec;

use super::ConcurrentRoutes;
use super::arena::{NONE, Unit};
use super::block::{Path, route_units};
use super::fib::{Fib, REGIONS, WIDE_END, WIDTH, Word};
use super::writer::{Writer, header_of, node_at};
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::nodes::NodeRef;
use crate::routes::{Key, STRIDE, first_slot};

impl<A: Address, V: Copy + PartialEq> ConcurrentRoutes<A, V> {
    /// Checks all invariants, for tests. O(words + nodes).
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), 'a')]);
    /// assert_eq!(routes.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let state = self.writer.lock();
        if state.is_dirty {
            return Ok(());
        }
        ensure(self.len() == state.writer.table.len(), || "the number of routes")?;
        state.writer.table.validate()?;
        state.writer.validate(self.fib())
    }
}

impl<A: Address, V: Copy + PartialEq> Writer<A, V> {
    fn validate(&self, fib: &Fib<V>) -> Result<(), InvariantError> {
        let mut units = 0;
        let is_own = |prefix: &Prefix<A>| {
            let region = first_slot(Key::from(prefix).word()) as usize;
            prefix.len() <= STRIDE || fib.wide(region).is_some() && prefix.len() <= WIDE_END
        };
        for (prefix, value) in self.table.iter().filter(|(prefix, _)| is_own(prefix)) {
            let id = self.routes.get(&prefix).copied().unwrap_or(NONE);
            ensure(id != NONE, || "a route without its block")?;
            let (route, copy) = fib.route(id);
            let expected = header_of(&Key::from(&prefix), prefix.len());
            ensure(route == expected && copy == value, || "the block of a route")?;
            units += u64::from(route_units::<V>());
        }
        let own = self.table.iter().filter(|(prefix, _)| is_own(prefix)).count();
        ensure(own == self.routes.len(), || "the number of routes with blocks")?;
        for region in 0..REGIONS {
            let bits = (region as u64) << (u64::BITS - STRIDE);
            units += match fib.wide(region) {
                None => self.check_word(fib, fib.regions[region].narrow.load(), bits, STRIDE)?,
                Some(wide) => {
                    let step = 1 << (u64::BITS - WIDE_END);
                    (0..WIDTH as u64).zip(wide).try_fold(0, |units, (nth, cell)| {
                        let word = cell.load();
                        let word = self.check_word(fib, word, bits + nth * step, WIDE_END)?;
                        Ok(units + word)
                    })?
                }
            };
        }
        ensure(units == self.space.used(), || {
            format!("{} units of {} bytes, not {units}", self.space.used(), size_of::<Unit>())
        })
    }

    /// Checks the word of addresses with these first bits, and returns the units of its nodes.
    fn check_word(
        &self,
        fib: &Fib<V>,
        word: Word,
        bits: u64,
        pos: u32,
    ) -> Result<u64, InvariantError> {
        let slot = A::from_windows(|at| bits.checked_shl(at).unwrap_or(0));
        let routes: Vec<_> = self.routes.matches(&slot).collect();
        let longest = routes.into_iter().rfind(|(prefix, _)| prefix.len() <= pos);
        let expected = longest.map_or(NONE, |(_, &id)| id);
        let len = longest.map_or(0, |(prefix, _)| prefix.len());
        ensure((word.route, word.len) == (expected, len), || {
            format!("the route of the word at {bits:#x}")
        })?;
        match node_at(&self.table, bits, pos) {
            Some(node) => {
                let mut comparison = Comparison { fib, units: 0 };
                let top = comparison.enter(word.node)?;
                comparison.check(top, node)?;
                Ok(comparison.units)
            }
            _ => {
                ensure(word.node == NONE, || "a word with a node that does not exist")?;
                Ok(0)
            }
        }
    }
}

/// A position in the blocks of a word: a block, and the strides that have been passed of a path.
#[derive(Clone, Copy)]
struct At {
    id: u32,
    skipped: u32,
}

/// The comparison of the blocks of a word with the nodes of the table. A path of either may be
/// several nodes of the other.
struct Comparison<'f, V> {
    fib: &'f Fib<V>,
    /// The units of all blocks.
    units: u64,
}

impl<V: Copy + PartialEq> Comparison<'_, V> {
    /// Begins with a block, and counts its units.
    fn enter(&mut self, id: u32) -> Result<At, InvariantError> {
        ensure(id != NONE, || "a node without a block")?;
        // SAFETY: a node or a path, which is in use.
        self.units += u64::from(unsafe { self.fib.block(id).units() });
        Ok(At { id, skipped: 0 })
    }

    /// Returns the rest of a path, if it is one.
    fn rest(&self, at: At) -> Option<Path> {
        let block = self.fib.block(at.id);
        // SAFETY: a node or a path, which is in use.
        let is_path = unsafe { block.header() }.is_path();
        // SAFETY: as above.
        is_path.then(|| unsafe { block.path() }.skip(at.skipped))
    }

    /// Returns the bitmaps of the routes and the children.
    fn bits(&self, at: At) -> (u64, u64, u64) {
        if let Some(rest) = self.rest(at) {
            return (0, 0, 1 << first_slot(rest.bits));
        }
        // SAFETY: a node, which is in use.
        let header = unsafe { self.fib.block(at.id).header() };
        (header.inner, header.outer, header.branches)
    }

    /// Returns the child in a slot, which exists.
    fn child(&mut self, at: At, slot: u32) -> Result<At, InvariantError> {
        match self.rest(at) {
            Some(rest) if rest.strides > 1 => Ok(At { skipped: at.skipped + 1, ..at }),
            Some(rest) => self.enter(rest.child),
            // SAFETY: it is a node, which has the child.
            None => self.enter(unsafe { self.fib.block(at.id).child(slot) }),
        }
    }

    /// Checks that blocks agree with a node and all below it.
    fn check(&mut self, mut at: At, node: NodeRef<'_, V>) -> Result<(), InvariantError> {
        if let Some((bits, strides, end)) = node.path() {
            for nth in 0..strides {
                let slot = first_slot(bits << (nth * STRIDE));
                ensure(self.bits(at) == (0, 0, 1 << slot), || "the bits of a path")?;
                at = self.child(at, slot)?;
            }
            return self.check(at, end);
        }
        let (inner, outer) = node.bits();
        ensure(self.bits(at) == (inner, outer, node.branches()), || "the bitmaps of a node")?;
        for (index, value) in (0..).zip(node.values()) {
            // SAFETY: it is a node with as many routes, as a path has none.
            let copy = unsafe { self.fib.block(at.id).value(index) };
            ensure(copy == value, || "the values of a node")?;
        }
        for (slot, child) in (0..u64::BITS).filter_map(|slot| Some((slot, node.child(slot)?))) {
            let below = self.child(at, slot)?;
            self.check(below, child)?;
        }
        Ok(())
    }
}
