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

use super::RouteTable;
use super::levels::{FIRST, LAST, Levels};
use super::pool::Exhausted;
use super::release::{Slots, Visit};
use super::store::Store;
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

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Begins or continues to make levels, if they pay.
    #[inline]
    pub(super) fn make_levels_if_missing(&mut self) {
        let shortcuts = &self.shortcuts;
        let pays = shortcuts.making.is_some() || shortcuts.counts.long >= MAKE_AT;
        if shortcuts.levels.is_none() && pays {
            self.make_levels();
        }
    }

    /// Visits some more nodes for levels that are not complete, or begins with that.
    #[cold]
    #[inline(never)]
    pub(super) fn make_levels(&mut self) {
        let Some(making) = &mut self.shortcuts.making else {
            match self.shortcuts.wait.checked_sub(1) {
                Some(wait) => self.shortcuts.wait = wait,
                None => {
                    let begun = self.begin_levels();
                    self.shortcuts.keep_levels_if(begun);
                }
            }
            return;
        };
        for _ in 0..NODES_AT_ONCE {
            let Some(next) = self.store.successor(&mut making.cursor) else {
                self.shortcuts.levels = self.shortcuts.making.take().map(|making| making.levels);
                return;
            };
            if let Err(error) = making.visit(&self.store, &next) {
                return self.shortcuts.keep_levels_if(Err(error));
            }
        }
    }

    fn begin_levels(&mut self) -> Result<(), Exhausted> {
        let levels = Levels::with_capacity_in(0, self.allocator().clone())?;
        self.shortcuts.making = Some(Making { levels, cursor: self.cursor()? });
        Ok(())
    }
}

impl<M: Allocator + Clone> Making<M> {
    /// Sets the entry of a node, if it has one.
    fn visit<V>(
        &mut self,
        store: &Store<V, M>,
        &Visit { id, pos, word }: &Visit,
    ) -> Result<(), Exhausted> {
        match pos {
            ..FIRST => Ok(()),
            // A path has no routes.
            FIRST..LAST => self.levels.set(store.entry_of(id, word, pos)),
            // Also of each node below the last level: a path may have led past that level since
            // the nodes above it were visited.
            LAST.. => self.levels.set(store.last_entry(word)),
        }
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        self.levels.allocation_size() + Vec::capacity(&self.cursor)
    }
}
