//! A table of routes that are collected: each node is created once, with all its routes.
//!
//! ```text
//!     sorted routes    0a/8   0a40/10   0a40/16   0a4080/24   0b/8   …      item ranges:
//!                      └───────────────── node at 6 ─────────────┘          those that begin with
//!                             └──────── node at 12 ────────┘                the bits of a node
//! ```
//!
//! Insertions in any order descend the trie for each route, and move the values and the children of
//! a node each time it outgrows its block. If routes are sorted, the routes of a node and the
//! routes of each child are consecutive: so the blocks of a node are allocated once, in their final
//! size.
//!
//! The bits of an address are read once, when the routes are sorted. So an inconsistent address
//! type cannot affect the structure of the nodes. Routes of more than 64 bits are inserted
//! afterwards.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use super::RouteTable;
use super::change::PATHS_FROM;
use super::levels::{FIRST, has_levels};
use super::node::{Node, Path};
use super::pool::Exhausted;
use super::store::{ROOT, Store, exhausted};
use super::stride::{PrefixIndex, STRIDE, first_slot, node_pos};
use super::update::{RouteCounts, Shortcuts};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::raw::prefetch::prefetch;

/// Bits that one pass sorts by: it writes to as many pages in turns as there are digits.
const DIGIT: u32 = 8;

/// The bits that are sorted by radix. Most prefixes of the Internet differ in them.
const RADIX_BITS: u32 = 48;

/// Routes whose values are prefetched while nodes are created.
const AHEAD: usize = 16;

/// A route to be built.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    /// The bits of the prefix; the others are zero.
    bits: u64,
    /// The number of bits: at most 64.
    len: u32,
    /// The index of the route.
    at: u32,
}

impl Item {
    fn new(bits: u64, len: u32, at: u32) -> Self {
        Self { bits: bits & !u64::MAX.checked_shr(len).unwrap_or(0), len, at }
    }
}

/// Sorts by all fields. Most bits are sorted by radix, in passes of some ten instructions; a
/// comparison sort of a million routes has twenty levels.
fn sort(items: &mut Vec<Item>) {
    // A pass has a step for each value of a digit, too.
    if items.len() < 1 << DIGIT {
        return items.sort_unstable();
    }
    let mut sorted = items.clone();
    let used = items.iter().fold(0, |used, item| used | item.bits);
    for shift in (u64::BITS - RADIX_BITS..u64::BITS).step_by(DIGIT as usize) {
        let digit = |bits: u64| (bits >> shift) as usize % (1 << DIGIT);
        if digit(used) == 0 {
            continue;
        }
        let mut ends = [0; 1 << DIGIT];
        items.iter().for_each(|item| ends[digit(item.bits)] += 1);
        let mut next = 0;
        for end in &mut ends {
            next += mem::replace(end, next);
        }
        for item in &*items {
            let next = &mut ends[digit(item.bits)];
            sorted[*next] = *item;
            *next += 1;
        }
        mem::swap(items, &mut sorted);
    }
    let radix = |item: &Item| item.bits >> (u64::BITS - RADIX_BITS);
    items.chunk_by_mut(|one, next| radix(one) == radix(next)).for_each(<[Item]>::sort_unstable);
}

/// Some consecutive items, which have the first `pos` bits in common and more than `pos` bits each,
/// and the node for them, which is still empty.
struct Group {
    items: Range<usize>,
    pos: u32,
    id: u32,
}

/// Returns the number of strides from `pos` on before the first route, and before the first fork,
/// of the items of a group.
fn common_strides(items: &[Item], pos: u32) -> u32 {
    // The shortest route above a fork covers the fork, so it is the first one in order.
    let (first, last) = (&items[0], &items[items.len() - 1]);
    let agreeing = ((first.bits ^ last.bits) << pos).leading_zeros();
    agreeing.min(node_pos(first.len) - pos) / STRIDE
}

impl<V, M: Allocator + Clone> Store<V, M> {
    /// Creates the nodes of sorted routes with different prefixes in an empty store. `value`
    /// returns the value of a route, given its index.
    fn build(
        &mut self,
        items: &[Item],
        value: &mut impl FnMut(u32) -> V,
        prefetch_value: impl Fn(u32),
    ) -> Result<(), Exhausted> {
        self.nodes.make_root()?;
        let mut open = vec![Group { items: 0..items.len(), pos: 0, id: ROOT }];
        let mut routes = Vec::new();
        while let Some(Group { items: range, pos, id }) = open.pop() {
            let group = &items[range.clone()];
            let strides = if pos < PATHS_FROM { 0 } else { common_strides(group, pos) };
            if strides > 0 {
                let child = self.nodes.alloc_one(Node::EMPTY)?;
                let path = Path { bits: group[0].bits << pos, strides, child };
                *self.nodes.get_mut(id) = Node::chain(path.first(strides, child));
                open.push(Group { items: range, pos: pos + strides * STRIDE, id: child });
                continue;
            }
            routes.clear();
            let (above, mut branches) = (open.len(), 0_u64);
            for (nth, item) in range.zip(group) {
                let slot = first_slot(item.bits << pos);
                if item.len <= pos + STRIDE {
                    if let Some(ahead) = items.get(nth + AHEAD) {
                        prefetch_value(ahead.at);
                    }
                    routes.push((PrefixIndex::covering(slot, item.len - pos), item.at));
                } else if branches >> slot & 1 == 0 {
                    branches |= 1 << slot;
                    // The index is that in the block of children, until that is allocated.
                    let id = (open.len() - above) as u32;
                    open.push(Group { items: nth..nth + 1, pos: pos + STRIDE, id });
                } else if let Some(last) = open.last_mut() {
                    // The routes of a node precede those below them.
                    last.items.end = nth + 1;
                }
            }
            let children = self.fill(id, &routes, branches, value)?;
            open[above..].iter_mut().for_each(|child| child.id += children);
            // The first ones are next: so memory is read and written in order.
            open[above..].reverse();
        }
        Ok(())
    }
}

impl<A: Address, V> RouteTable<A, V> {
    /// Creates a table of these routes. The shortcuts are computed at the end.
    pub(super) fn built(mut routes: Vec<Option<(Prefix<A>, V)>>) -> Self {
        let beyond = routes.split_off(routes.len().min(u32::MAX as usize));
        let item = |(at, route): (u32, &Option<(Prefix<A>, V)>)| {
            let (prefix, _) = route.as_ref()?;
            let len = Some(prefix.len()).filter(|&len| len <= u64::BITS)?;
            Some(Item::new(prefix.address().window(0), len, at))
        };
        let mut items = Vec::with_capacity(routes.len());
        items.extend((0..).zip(&routes).filter_map(item));
        sort(&mut items);
        // The last value of equal prefixes remains.
        items.dedup_by(|next, last| {
            let is_equal = (next.bits, next.len) == (last.bits, last.len);
            if is_equal {
                routes[last.at as usize] = None;
                last.at = next.at;
            }
            is_equal
        });
        let mut table = Self::new();
        table.len = items.len();
        if !items.is_empty() {
            let pointer = routes.as_ptr();
            let mut value = |at: u32| routes[at as usize].take().expect("it is taken once").1;
            let built = table.store.build(&items, &mut value, |at| {
                prefetch(pointer.wrapping_add(at as usize));
            });
            built.unwrap_or_else(|Exhausted| exhausted());
        }
        let mut counts = RouteCounts::NONE;
        for item in items.iter().filter(|item| item.len > STRIDE) {
            counts.by_first[first_slot(item.bits) as usize] += 1;
            counts.long += usize::from(has_levels::<A>() && item.len > FIRST);
        }
        drop(items);
        table.shortcuts = Shortcuts::without(counts).computed(&table.store.nodes, table.len);
        table.extend(routes.into_iter().chain(beyond).flatten());
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_in_order() {
        let count = if cfg!(miri) { 100 } else { 1000_u64 };
        let bits = (0..count).map(|nth| nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0xFF01 << 40);
        let items = (0..).zip(bits).map(|(at, bits)| Item::new(bits, 20 + at % 30, 1000 - at));
        let mut items: Vec<Item> = items.collect();
        let mut expected = items.clone();
        expected.sort_unstable();
        sort(&mut items);
        assert!(items == expected);
        sort(&mut Vec::new());
    }
}
