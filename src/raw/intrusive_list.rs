//! Intrusive doubly linked lists over slots: a slot is in at most one list.
//!
//! ```text
//!     list 0   ┌─▸ head 0 ◂──▸ slot 4 ◂──▸ slot 1 ◂─┐        links   0 │ 1 │ 2 │ 3 │ 4 │
//!              └────────────────────────────────────┘                – │ · │ · │ – │ · │
//!     list 1   ┌─▸ head 1 ◂──▸ slot 2 ◂─┐                    heads   0 │ 1 │ 2 │
//!              └────────────────────────┘                            · │ · │ · │
//!     list 2   ┌─▸ head 2 ◂─┐
//!              └────────────┘
//! ```
//!
//! A list is a circular chain of links through its head. So a slot is removed without its list
//! being known, and no link is a special case. A link refers to nodes: slots by their index, heads
//! by theirs with bit 31 set. Links are stored apart from the entries: a structure stores its
//! entries where it likes and passes their slots.
//!
//! Invariants: `next` and `prev` are inverse to each other over all linked nodes; each cycle
//! contains exactly one head; the `next` of an unlinked slot is none.
//!
//! Cost: 8 bytes for each slot up to the greatest one ever linked, and for each list. Every
//! operation is O(1) and touches the links of the slot, of both neighbours and of the head: up to
//! three cache misses with many slots. Links never move: see [`ChunkedVec`].

use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::{fmt, iter, mem};

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec;

use crate::raw::chunked_vec::{ChunkedVec, DEFAULT_BITS};
use crate::raw::slab::OptIndex;

/// Set in the node of a head, clear in the node of a slot.
const HEAD: u32 = 1 << 31;

/// The neighbours of a node. A node is a slot, or the index of a list with [`HEAD`] set.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// None if the node is a slot in no list.
    next: OptIndex,
    /// Meaningless if `next` is none.
    prev: u32,
}

impl Link {
    /// The link of a slot in no list.
    const UNLINKED: Self = Self { next: OptIndex::NONE, prev: 0 };

    /// The link of the head of an empty list.
    const fn empty(list: usize) -> Self {
        let head = HEAD | list as u32;
        Self { next: OptIndex::some(head), prev: head }
    }

    /// The next slot of the list, unless this is the link of the last one.
    #[inline]
    fn next_slot(self) -> Option<u32> {
        self.next.get().filter(|node| node & HEAD == 0)
    }

    /// The previous slot of the list, unless this is the link of the first one.
    fn prev_slot(self) -> Option<u32> {
        Some(self.prev).filter(|node| node & HEAD == 0)
    }
}

/// A set of lists over the same slots.
#[derive(Clone)]
pub(crate) struct IntrusiveLists<A: Allocator + Clone = Global> {
    heads: Vec<Link, A>,
    /// By slot.
    links: ChunkedVec<Link, DEFAULT_BITS, A>,
}

impl IntrusiveLists {
    /// Creates empty lists with the indices `0..lists`.
    ///
    /// # Panics
    ///
    /// If `lists` is 2^31 or more.
    pub(crate) fn new(lists: usize) -> Self {
        Self::try_new_in(lists, Global)
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<Link>()))
    }
}

impl<A: Allocator + Clone> IntrusiveLists<A> {
    /// Bytes allocated for the links of a slot, at most.
    pub(crate) const BYTES_PER_SLOT: usize = <ChunkedVec<Link>>::BYTES_PER_ELEMENT;

    /// Creates no lists of at most `limit` slots, whose memory will be from `memory`, without
    /// allocating.
    pub(crate) fn new_in(limit: usize, memory: A) -> Self {
        let heads = Vec::new_in(memory.clone());
        Self { heads, links: ChunkedVec::new_in(limit, memory) }
    }

    /// Creates empty lists with the indices `0..lists`, whose memory is from `memory`.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(crate) fn try_new_in(lists: usize, memory: A) -> Result<Self, AllocError> {
        let mut new = Self::new_in(usize::MAX, memory);
        new.heads.try_reserve_exact(lists).map_err(|_| AllocError)?;
        (0..lists).for_each(|_| _ = new.add_list());
        Ok(new)
    }

    /// Allocates memory for more lists, and for the links of all slots below `slots`, so
    /// that adding and [covering](Self::cover) them does not allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve(&mut self, lists: usize, slots: u32) -> Result<(), AllocError> {
        self.heads.try_reserve(lists).map_err(|_| AllocError)?;
        slots.checked_sub(1).map_or(Ok(()), |last| self.links.try_reserve(last))
    }

    /// Adds an empty list and returns its index.
    ///
    /// # Panics
    ///
    /// If there are 2^31 - 1 lists already.
    pub(crate) fn add_list(&mut self) -> usize {
        let list = self.heads.len();
        assert!(list < HEAD as usize - 1, "{list} lists");
        self.heads.push(Link::empty(list));
        list
    }

    /// Appends `slot` to `list`, and removes it from its previous list. O(1), amortised over dense
    /// slots.
    ///
    /// # Panics
    ///
    /// If there is no such list, or if the slot has bit 31 set.
    #[inline]
    pub(crate) fn push_back(&mut self, list: usize, slot: u32) {
        if slot < self.links.len() {
            self.remove(slot);
        } else {
            self.cover(slot);
        }
        let last = mem::replace(&mut self.heads[list].prev, slot);
        self.link_mut(last).next = OptIndex::some(slot);
        self.links[slot] = Link { next: OptIndex::some(HEAD | list as u32), prev: last };
    }

    /// Allocates the links of all slots up to `slot`.
    ///
    /// # Panics
    ///
    /// If the slot has bit 31 set.
    #[inline]
    pub(crate) fn cover(&mut self, slot: u32) {
        assert!(slot & HEAD == 0, "slot {slot}: must be less than 2^31");
        self.links.cover(slot, Link::UNLINKED);
    }

    /// Removes `slot` from its list, if it is in one.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot) else { return };
        let Link { next, prev } = mem::replace(link, Link::UNLINKED);
        if let Some(node) = next.get() {
            self.link_mut(node).prev = prev;
            self.link_mut(prev).next = next;
        }
    }

    /// Moves `slot` to the end of `list`, if it is in this or another list.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    #[inline]
    pub(crate) fn move_to_back(&mut self, list: usize, slot: u32) {
        // A frequently used slot is often the last one already, and then nothing is written.
        if self.heads[list].prev != slot && self.contains(slot) {
            self.push_back(list, slot);
        }
    }

    /// Whether `slot` is in a list.
    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.links.get(slot).is_some_and(|link| link.next.is_some())
    }

    /// Returns the first slot of `list`.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    #[inline]
    pub(crate) fn front(&self, list: usize) -> Option<u32> {
        self.heads[list].next_slot()
    }

    /// Iterates over the slots of `list`, from the first to the last.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = u32> {
        iter::successors(self.front(list), |&slot| self.links[slot].next_slot())
    }

    /// Iterates over the slots of `list`, from the last to the first.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    pub(crate) fn iter_back(&self, list: usize) -> impl Iterator<Item = u32> {
        let last = self.heads[list].prev_slot();
        iter::successors(last, |&slot| self.links[slot].prev_slot())
    }

    /// Returns the bytes allocated.
    #[inline]
    pub(crate) fn allocation_size(&self) -> usize {
        self.links.allocation_size() + self.heads.capacity() * size_of::<Link>()
    }

    /// Returns a mutable reference to the link of a node.
    #[inline]
    fn link_mut(&mut self, node: u32) -> &mut Link {
        match node & HEAD {
            0 => &mut self.links[node],
            _ => &mut self.heads[(node ^ HEAD) as usize],
        }
    }
}

impl<A: Allocator + Clone> fmt::Debug for IntrusiveLists<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = |list| self.iter(list).collect::<alloc::vec::Vec<u32>>();
        f.debug_list().entries((0..self.heads.len()).map(slots)).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::{format, vec};

    use super::*;

    /// Checks the invariants, and that the lists contain the expected slots.
    #[track_caller]
    fn check(lists: &mut IntrusiveLists, expected: &[VecDeque<u32>]) {
        for (list, slots) in expected.iter().enumerate() {
            assert!(lists.iter(list).eq(slots.iter().copied()), "{lists:?} {expected:?}");
            assert_eq!(lists.front(list), slots.front().copied());
            assert!(lists.iter_back(list).eq(slots.iter().rev().copied()));
        }
        let heads = (0..lists.heads.len() as u32).map(|head| HEAD | head);
        let linked = (0..lists.links.len()).filter(|&slot| lists.contains(slot));
        for node in heads.chain(linked).collect::<Vec<u32>>() {
            let Link { next, prev } = *lists.link_mut(node);
            assert_eq!(lists.link_mut(next.get().unwrap()).prev, node);
            assert_eq!(lists.link_mut(prev).next, OptIndex::some(node));
        }
        let linked = (0..lists.links.len()).filter(|&slot| lists.contains(slot)).count();
        assert_eq!(linked, expected.iter().map(VecDeque::len).sum::<usize>());
    }

    #[test]
    fn a_slot_is_in_at_most_one_list() {
        let mut lists = IntrusiveLists::new(2);
        for slot in [4, 1, 2] {
            lists.push_back(0, slot);
        }
        lists.push_back(1, 1);
        check(&mut lists, &[[4, 2].into(), [1].into()]);
        lists.move_to_back(0, 4);
        lists.move_to_back(0, 4);
        check(&mut lists, &[[2, 4].into(), [1].into()]);
        lists.move_to_back(1, 2);
        check(&mut lists, &[[4].into(), [1, 2].into()]);
        assert_eq!(format!("{lists:?}"), "[[4], [1, 2]]");
    }

    #[test]
    fn operations_on_unlinked_slots_do_nothing() {
        let mut lists = IntrusiveLists::new(1);
        lists.push_back(0, 3);
        for slot in [0, 2, 4, 2000, HEAD, HEAD | 1, u32::MAX] {
            assert!(!lists.contains(slot), "{slot}");
            lists.remove(slot);
            lists.move_to_back(0, slot);
        }
        check(&mut lists, &[[3].into()]);
        lists.remove(3);
        lists.remove(3);
        check(&mut lists, &[[].into()]);
    }

    #[test]
    fn lists_are_added() {
        let mut lists = IntrusiveLists::new(0);
        assert_eq!((lists.add_list(), lists.add_list()), (0, 1));
        assert_eq!(lists.allocation_size(), lists.heads.capacity() * 8);
        lists.push_back(1, 5);
        assert!(lists.allocation_size() >= 8 * 1024);
        check(&mut lists, &[[].into(), [5].into()]);
    }

    #[test]
    #[should_panic(expected = "slot 2147483648: must be less than 2^31")]
    fn a_slot_with_bit_31_is_refused() {
        IntrusiveLists::new(1).push_back(0, HEAD);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without unsafe code")]
    fn random_operations_match_a_reference_model() {
        let mut lists = IntrusiveLists::new(3);
        let mut model = vec![VecDeque::new(); 3];
        let mut random = 1_u64;
        for _ in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [step, list, slot] = [60, 50, 40].map(|shift| random >> shift);
            let (list, slot) = (list as usize % 3, slot as u32 % 12);
            let is_linked = model.iter().any(|queue| queue.contains(&slot));
            assert_eq!(lists.contains(slot), is_linked);
            model.iter_mut().for_each(|queue| queue.retain(|&other| other != slot));
            match step % 4 {
                0 | 1 => lists.push_back(list, slot),
                2 => lists.move_to_back(list, slot),
                _ => lists.remove(slot),
            }
            if step % 4 < 2 || step % 4 == 2 && is_linked {
                model[list].push_back(slot);
            }
            check(&mut lists, &model);
        }
    }
}
