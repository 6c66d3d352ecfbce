//! The return of memory in steps, after most routes have been removed.
//!
//! ```text
//!     chunks   ▕▓ ░▓▕░▓  ▕▓░ ▓▕ ░ ▓▕▓  ░▕░▓  ▕░ ▓ ▕▓ ░▕      one eighth of the units in use
//!              └─ kept ──┘└──── released when empty ────┘
//!                  ▲               │
//!                  └───────────────┘ blocks of the nodes, in the order of their prefixes
//! ```
//!
//! When less than a quarter of a pool is in use, its first chunks, of twice the size that is in
//! use, are kept. The blocks of all others move there: each update visits a few nodes in the order
//! of their prefixes, and moves their blocks of values and of children. Nothing is allocated in the
//! other chunks meanwhile, so they are empty after all nodes have been visited; then each update
//! releases one. So the memory is proportional to the routes, or small, and no update waits for it.
//!
//! The cursor is the path of the last visited node, as slots. Updates may add and remove nodes
//! before and behind it: a node that is added has its blocks in the first chunks.
//!
//! If there is no place in the first chunks, the others are used again, and the return begins again
//! when a quarter of the rest has been removed.

use super::RouteTable;
use super::pool::{Exhausted, Released};
use super::store::{Nodes, ROOT};
use super::stride::{STRIDE, first_slot};
use crate::key::bits::Address;
use crate::memory::{Allocator, Vec};

/// Nodes that one update visits: less than ten microseconds, with tables of 4096 slots.
const NODES_AT_ONCE: usize = 4;

/// The path of a node from the root: the slots, of six bits each.
pub(super) type Slots<M> = Vec<u8, M>;

/// A node, and its prefix.
pub(super) struct Visit {
    pub(super) id: u32,
    pub(super) pos: u32,
    /// The first bits of the prefix.
    pub(super) word: u64,
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Continues to release memory that the routes do not need any more, or begins to.
    #[inline]
    pub(super) fn release_step(&mut self) {
        if self.store.is_sparse() || self.store.cursor.is_some() {
            self.release_some();
        }
    }

    #[cold]
    #[inline(never)]
    fn release_some(&mut self) {
        let Some(mut slots) = self.store.cursor.take().or_else(|| self.begin_release()) else {
            return;
        };
        for _ in 0..NODES_AT_ONCE {
            let Some(next) = self.store.nodes.successor(&mut slots) else {
                match self.store.release_chunks() {
                    [Released::Done, Released::Done] => return,
                    // Nodes were merged, one that had been visited with one that had not.
                    states if states.contains(&Released::Blocked) => self.visit_root(&mut slots),
                    _ => {}
                }
                break;
            };
            self.visit(&next);
        }
        // Else there was no place, or no memory.
        if self.store.is_releasing() {
            self.store.cursor = Some(slots);
        }
    }

    /// Begins the release, if there is memory for the cursor. Returns that.
    fn begin_release(&mut self) -> Option<Slots<M>> {
        let mut slots = self.store.nodes.cursor::<A>().ok()?;
        self.store.begin_release();
        self.visit_root(&mut slots);
        Some(slots)
    }

    /// Visits the root, and sets the cursor to it.
    fn visit_root(&mut self, slots: &mut Slots<M>) {
        slots.clear();
        self.visit(&Visit { id: ROOT, pos: 0, word: 0 });
    }

    /// Moves the blocks of a node to the first chunks.
    fn visit(&mut self, visit: &Visit) {
        let (values, children) = self.store.relocate(visit.id);
        if values || children {
            self.shortcuts.after_move(&self.store.nodes, visit, values);
        }
    }
}

impl<M: Allocator + Clone> Nodes<M> {
    /// Returns a cursor before all nodes but the root, with memory for the path of any node.
    pub(super) fn cursor<A: Address>(&self) -> Result<Slots<M>, Exhausted> {
        let mut slots = Slots::new_in(self.memory().clone());
        slots.try_reserve_exact((A::BITS / STRIDE + 1) as usize).map_err(|_| Exhausted)?;
        Ok(slots)
    }

    /// Returns the first node whose path follows these slots, and changes them to its path.
    pub(super) fn successor(&self, slots: &mut Slots<M>) -> Option<Visit> {
        let (mut id, mut depth) = (ROOT, 0);
        // The last node on the way with a later child: its depth, that slot, and the child.
        let mut later = None;
        loop {
            let node = self.get(id);
            if let Some(path) = node.as_path() {
                let strides = path.strides as usize;
                let digit = |at: usize| first_slot(path.bits << (STRIDE * at as u32)) as u8;
                let rest = &slots[depth..];
                let order = (0..strides).map(digit).cmp(rest.iter().copied().take(strides));
                if order.is_eq() {
                    (id, depth) = (path.child, depth + strides);
                    continue;
                }
                if order.is_lt() {
                    break;
                }
                slots.truncate(depth);
                slots.extend((0..strides).map(digit));
                return Some(Visit::of(path.child, slots));
            }
            let after = slots.get(depth).map_or(0, |slot| u32::from(*slot) + 1);
            let branches = node.branches();
            let following = branches.checked_shr(after).unwrap_or(0);
            if following != 0 {
                let slot = after + following.trailing_zeros();
                later = Some((depth, slot, node.child_of(slot)));
            }
            let Some(child) = slots.get(depth).and_then(|slot| node.child((*slot).into())) else {
                break;
            };
            (id, depth) = (child, depth + 1);
        }
        let (depth, slot, child) = later?;
        slots.truncate(depth);
        slots.push(slot as u8);
        Some(Visit::of(child, slots))
    }
}

impl Visit {
    fn of(id: u32, slots: &[u8]) -> Self {
        let digits = slots.iter().zip(0..).take_while(|(_, nth)| nth * STRIDE < u64::BITS);
        let left_aligned = |slot: u8| u64::from(slot) << (u64::BITS - STRIDE);
        let word = digits.fold(0, |word, (slot, nth)| word | left_aligned(*slot) >> (nth * STRIDE));
        Self { id, pos: slots.len() as u32 * STRIDE, word }
    }
}
