//! Many lists over the same slots, each slot in one of them at most.
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
//! A list is a ring of links through a head of its own, so a slot is taken out without knowing its
//! list, and nothing has an end to look out for. Links are slot numbers, and the numbers of heads
//! with bit 31 set. They lie apart from what they link: a structure has its entries where it likes
//! and gives their numbers.
//!
//! What holds: `next` and `prev` are each other's inverse, in heads and links; a ring goes through
//! one head; a slot in no list has [`NONE`] for `next`.
//!
//! Price: 8 bytes for each slot up to the greatest one ever put in, and for each list. Everything
//! is O(1) and touches the links of the slot, of both neighbours and the head: three cache misses if
//! there are many slots. Links never move: see [`ChunkedVec`].

use alloc::vec::Vec;
use core::{fmt, iter, mem};

use crate::raw::chunked_vec::ChunkedVec;

/// Set in the number of a head.
const HEAD: u32 = 1 << 31;

/// Where a slot leads that is in no list. No head has the number: there are fewer lists.
const NONE: u32 = u32::MAX;

/// The neighbours of a slot or head: slots, or heads with [`HEAD`] set.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    prev: u32,
}

impl Link {
    /// Of a slot in no list.
    const LOOSE: Self = Self { next: NONE, prev: NONE };

    /// Of the head of an empty list.
    const fn empty(list: usize) -> Self {
        let head = HEAD | list as u32;
        Self { next: head, prev: head }
    }
}

/// IntrusiveLists of slots, by number.
#[derive(Clone)]
pub(crate) struct IntrusiveLists {
    heads: Vec<Link>,
    /// By slot.
    links: ChunkedVec<Link>,
}

impl IntrusiveLists {
    /// Bytes that the links of 1024 slots more allocate.
    pub(crate) const GROWTH: usize = ChunkedVec::<Link>::GROWTH;

    /// Empty lists with the numbers `0..lists`.
    ///
    /// # Panics
    ///
    /// If they are 2^31 or more.
    pub(crate) fn new(lists: usize) -> Self {
        assert!(lists < HEAD as usize, "{lists} lists");
        Self { heads: (0..lists).map(Link::empty).collect(), links: ChunkedVec::new() }
    }

    /// An empty list more; returns its number.
    ///
    /// # Panics
    ///
    /// If there are 2^31 - 1 already.
    pub(crate) fn add_list(&mut self) -> usize {
        let list = self.heads.len();
        assert!(list < HEAD as usize - 1, "{list} lists");
        self.heads.push(Link::empty(list));
        list
    }

    /// Puts `slot` at the end of `list`, out of the list in which it was. Amortised over slots
    /// without gaps, it is O(1).
    ///
    /// # Panics
    ///
    /// If there is no such list, or if the slot has bit 31.
    #[inline]
    pub(crate) fn push_back(&mut self, list: usize, slot: u32) {
        if slot < self.links.len() {
            self.remove(slot);
        } else {
            self.cover(slot);
        }
        let last = mem::replace(&mut self.heads[list].prev, slot);
        self.link_mut(last).next = slot;
        self.links[slot] = Link { next: HEAD | list as u32, prev: last };
    }

    /// Allocates the links up to that of `slot`.
    ///
    /// # Panics
    ///
    /// If the slot has bit 31.
    #[inline]
    pub(crate) fn cover(&mut self, slot: u32) {
        assert!(slot & HEAD == 0, "slot {slot}: must be less than 2^31");
        self.links.cover(slot, Link::LOOSE);
    }

    /// Takes `slot` out of the list in which it is, if it is in one.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot) else { return };
        let Link { next, prev } = mem::replace(link, Link::LOOSE);
        if next != NONE {
            self.link_mut(next).prev = prev;
            self.link_mut(prev).next = next;
        }
    }

    /// Puts `slot` at the end of `list`, if it is in this one or another; else nothing happens.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    #[inline]
    pub(crate) fn move_to_back(&mut self, list: usize, slot: u32) {
        // What is used most is often there already, and then nothing is written.
        if self.heads[list].prev != slot && self.contains(slot) {
            self.push_back(list, slot);
        }
    }

    /// Whether `slot` is in a list.
    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.links.get(slot).is_some_and(|link| link.next != NONE)
    }

    /// The first slot of `list`.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    #[inline]
    pub(crate) fn front(&self, list: usize) -> Option<u32> {
        let next = self.heads[list].next;
        (next & HEAD == 0).then_some(next)
    }

    /// Whether `list` has no slots.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    #[inline]
    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.front(list).is_none()
    }

    /// The slots of `list`, the first one first.
    ///
    /// # Panics
    ///
    /// If there is no such list.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = u32> {
        iter::successors(self.front(list), |&slot| {
            let next = self.links[slot].next;
            (next & HEAD == 0).then_some(next)
        })
    }

    /// Empties all lists and gives back the memory of the links.
    pub(crate) fn clear(&mut self) {
        self.links.clear();
        for (list, head) in self.heads.iter_mut().enumerate() {
            *head = Link::empty(list);
        }
    }

    /// Bytes allocated.
    #[inline]
    pub(crate) fn allocation_size(&self) -> usize {
        self.links.allocation_size() + self.heads.capacity() * size_of::<Link>()
    }

    /// The link of a slot or head.
    #[inline]
    fn link_mut(&mut self, at: u32) -> &mut Link {
        match at & HEAD {
            0 => &mut self.links[at],
            _ => &mut self.heads[(at ^ HEAD) as usize],
        }
    }
}

impl fmt::Debug for IntrusiveLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = |list| self.iter(list).collect::<Vec<u32>>();
        f.debug_list().entries((0..self.heads.len()).map(slots)).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::{format, vec};

    use super::*;

    /// `next` and `prev` are each other's inverse, and the lists have these slots.
    #[track_caller]
    fn check(lists: &mut IntrusiveLists, expected: &[VecDeque<u32>]) {
        for (list, slots) in expected.iter().enumerate() {
            assert!(lists.iter(list).eq(slots.iter().copied()), "{lists:?} {expected:?}");
            assert_eq!(lists.front(list), slots.front().copied());
            assert_eq!(lists.is_empty(list), slots.is_empty());
        }
        let heads = (0..lists.heads.len() as u32).map(|head| HEAD | head);
        let linked = (0..lists.links.len()).filter(|&slot| lists.contains(slot));
        for at in heads.chain(linked).collect::<Vec<u32>>() {
            let Link { next, prev } = *lists.link_mut(at);
            assert_eq!((lists.link_mut(next).prev, lists.link_mut(prev).next), (at, at));
        }
        let linked = (0..lists.links.len()).filter(|&slot| lists.contains(slot)).count();
        assert_eq!(linked, expected.iter().map(VecDeque::len).sum::<usize>());
    }

    #[test]
    fn slots_are_in_one_list_at_most() {
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
    fn slots_in_no_list_are_no_matter() {
        let mut lists = IntrusiveLists::new(1);
        lists.push_back(0, 3);
        for slot in [0, 2, 4, 2000, HEAD, HEAD | 1, NONE] {
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
    fn lists_are_added_and_all_are_emptied() {
        let mut lists = IntrusiveLists::new(0);
        assert_eq!((lists.add_list(), lists.add_list()), (0, 1));
        assert_eq!(lists.allocation_size(), lists.heads.capacity() * 8);
        lists.push_back(1, 5);
        assert!(lists.allocation_size() >= 8 * 1024);
        lists.clear();
        check(&mut lists, &[[].into(), [].into()]);
        assert_eq!(lists.allocation_size(), lists.heads.capacity() * 8);
        lists.push_back(1, 0);
        check(&mut lists, &[[].into(), [0].into()]);
    }

    #[test]
    #[should_panic(expected = "slot 2147483648: must be less than 2^31")]
    fn bit_31_is_no_slots() {
        IntrusiveLists::new(1).push_back(0, HEAD);
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no unsafe code in it, and it is long")]
    fn random_steps_are_those_of_queues() {
        let mut lists = IntrusiveLists::new(3);
        let mut queues = vec![VecDeque::new(); 3];
        let mut random = 1_u64;
        for _ in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [step, list, slot] = [60, 50, 40].map(|bits| random >> bits);
            let (list, slot) = (list as usize % 3, slot as u32 % 12);
            let is_in = queues.iter().any(|queue| queue.contains(&slot));
            assert_eq!(lists.contains(slot), is_in);
            queues.iter_mut().for_each(|queue| queue.retain(|&other| other != slot));
            match step % 4 {
                0 | 1 => lists.push_back(list, slot),
                2 => lists.move_to_back(list, slot),
                _ => lists.remove(slot),
            }
            if step % 4 < 2 || step % 4 == 2 && is_in {
                queues[list].push_back(slot);
            }
            check(&mut lists, &queues);
        }
    }
}
