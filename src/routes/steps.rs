//! The nodes above the current one of a walk.

use super::store::ROOT;
use super::stride::{STRIDE, node_pos};
use crate::memory::{Allocator, Vec};

/// The nodes above any other, in a trie of addresses of up to 128 bits.
const INLINE: usize = (node_pos(128) / STRIDE) as usize;

/// A node with more slots to visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) slots: u64,
    pub(super) id: u32,
    pub(super) pos: u32,
}

/// A stack of nodes, without memory of its own unless there are more than addresses of 128 bits
/// have.
#[derive(Clone, Debug)]
pub(super) struct Steps<M: Allocator + Clone> {
    inline: [Step; INLINE],
    /// The number of those inline.
    len: usize,
    /// Those after them.
    rest: Vec<Step, M>,
}

impl<M: Allocator + Clone> Steps<M> {
    pub(super) fn new_in(memory: M) -> Self {
        let empty = Step { slots: 0, id: ROOT, pos: 0 };
        Self { inline: [empty; INLINE], len: 0, rest: Vec::new_in(memory) }
    }

    /// Allocates what addresses of that many bits need.
    pub(super) fn reserve(&mut self, bits: u32) {
        self.rest.reserve_exact(((node_pos(bits) / STRIDE) as usize).saturating_sub(INLINE));
    }

    pub(super) fn push(&mut self, step: Step) {
        match self.inline.get_mut(self.len) {
            Some(place) => {
                *place = step;
                self.len += 1;
            }
            None => self.rest.push(step),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Step> {
        self.rest.pop().or_else(|| {
            self.len = self.len.checked_sub(1)?;
            Some(self.inline[self.len])
        })
    }
}
