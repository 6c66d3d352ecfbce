//! The routes that cover a prefix, under the lock of the writers.
#![allow(unsafe_code)]

use super::block::Block;
use super::edit::{Editor, short_prefix};
use super::slots::END;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::stride::{PrefixIndex, STRIDE, node_pos, slot_of};

/// A route, and the one that covers it.
pub(in crate::concurrent) struct CoveringValues<'p, V> {
    /// The value of the prefix itself.
    pub(in crate::concurrent) own: Option<&'p V>,
    /// The value of the longest shorter prefix that covers it.
    pub(in crate::concurrent) upper: Option<&'p V>,
}

impl<'p, V> Block<'p, V> {
    /// Returns the value of the longest prefix that covers an index, and is not longer.
    fn longest_to(self, index: u32) -> Option<&'p V> {
        let indices = core::iter::successors(Some(index), |index| Some(index / 2));
        let mut indices = indices.take_while(|&index| index > 0).map(u64::from);
        indices.find_map(|index| self.get(PrefixIndex::new(index)))
    }
}

impl<V> Editor<'_, V> {
    /// Returns the routes that cover a prefix.
    pub(super) fn covering<A: Address>(&self, prefix: &Prefix<A>) -> CoveringValues<'_, V> {
        let (address, len) = (prefix.address(), prefix.len());
        let word = address.window(0);
        if len <= END {
            return self.covering_short(word, len);
        }
        let mut block = self.block(word);
        let mut upper = block.inherited_value();
        for pos in (END..node_pos(len)).step_by(STRIDE as usize) {
            let slot = slot_of(&address, pos);
            upper = block.longest_to(PrefixIndex::covering(slot, STRIDE).get()).or(upper);
            let Some(child) = block.child(slot) else { return CoveringValues { own: None, upper } };
            block = child;
        }
        let index = PrefixIndex::of(prefix, node_pos(len));
        let upper = block.longest_to(index.get() / 2).or(upper);
        CoveringValues { own: block.get(index), upper }
    }

    fn covering_short(&self, word: u64, len: u32) -> CoveringValues<'_, V> {
        let (mut own, mut upper) = (None, None);
        for (prefix, shared) in self.state.short.covering(&short_prefix(word, len)) {
            // SAFETY: by the contract of `new`.
            let value = unsafe { shared.block() }.inherited_value();
            *(if prefix.len() == len { &mut own } else { &mut upper }) = value;
        }
        CoveringValues { own, upper }
    }
}
