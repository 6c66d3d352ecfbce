//! Levels that are made in steps, while routes are inserted and removed.
//!
//! ```text
//!     nodes     ▕▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│░░░░░░░░░░░░░░░░░░░▏  in the order of their prefixes
//!     entries    all of these      ↑ those of updates
//!                                cursor
//! ```
//!
//! Each update visits a few nodes and inserts their entries; besides, it sets the entries of the
//! nodes that it changes, as in complete levels. So an entry is right from when it is inserted, and
//! all those before the cursor exist. No lookup reads the levels before they are complete.
//!
//! This is how a table gets its levels, and gets them again after they were released because there
//! was no memory for one of their segments.

use super::levels::{FIRST, LAST, Levels};
use super::pool::Exhausted;
use super::release::{Slots, Visit};
use super::store::Nodes;
use crate::key::bits::Address;
use crate::memory::{Allocator, Vec};

/// Number of routes of more than [`FIRST`] bits from which on levels are made. Fewer in fuzzing,
/// whose tables are small.
pub(super) const MAKE_AT: usize = if cfg!(fuzzing) { 8 } else { 128 };

/// Nodes that one update visits: some microseconds.
const NODES_AT_ONCE: usize = 8;

/// Levels that are not complete.
pub(super) struct Making<M: Allocator + Clone> {
    pub(super) levels: Levels<M>,
    /// The slots of the node that was visited last.
    cursor: Slots<M>,
}

impl<M: Allocator + Clone> Making<M> {
    /// Returns levels without entries, before the first node.
    pub(super) fn begin<A: Address>(nodes: &Nodes<M>) -> Result<Self, Exhausted> {
        let levels = Levels::with_capacity_in(0, nodes.memory().clone())?;
        Ok(Self { levels, cursor: nodes.cursor::<A>()? })
    }

    /// Visits some more nodes. Returns whether the levels are complete.
    pub(super) fn proceed(&mut self, nodes: &Nodes<M>) -> Result<bool, Exhausted> {
        for _ in 0..NODES_AT_ONCE {
            let Some(next) = nodes.successor(&mut self.cursor) else { return Ok(true) };
            self.visit(nodes, &next)?;
        }
        Ok(false)
    }

    /// Sets the entry of a node, if it has one.
    fn visit(
        &mut self,
        nodes: &Nodes<M>,
        &Visit { id, pos, word }: &Visit,
    ) -> Result<(), Exhausted> {
        match pos {
            ..FIRST => Ok(()),
            // A path has no routes.
            FIRST..LAST => self.levels.set(nodes.entry_of(id, word, pos)),
            // Also of each node below the last level: a path may have led past that level since
            // the nodes above it were visited.
            LAST.. => self.levels.set(nodes.last_entry(word)),
        }
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        self.levels.allocation_size() + Vec::capacity(&self.cursor)
    }
}
