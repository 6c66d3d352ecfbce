//! A ring buffer of entries, indexed by sequence number and removed first in, first out.
//!
//! ```text
//!     sequence    40     41     42     43     44     45     46
//!     slot         0      1      2      3      4      5      6      7      sequence mod slots
//!               ╭──────┬──────┬──────┬──────┬──────┬──────┬──────┬──────╮
//!               │ expired     │ live                             │      │
//!               ╰──────┴──────┴──────┴──────┴──────┴──────┴──────┴──────╯
//!                               ▲ oldest                          ▲ next
//! ```
//!
//! An entry has a body, and a link and an expiry time, which stay when the body is removed from the
//! middle: its slot is vacant then, until another body is put there, or until it is the oldest.
//!
//! Invariant: exactly the slots of the sequence numbers from the first expired to the last live
//! entry have a body, except for those that are marked as vacant, which are `vacancies`. There are
//! at most as many entries as slots.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::mem::{MaybeUninit, needs_drop};
use core::ptr::NonNull;

use super::StoreError;
use super::index::MAX_CAPACITY;
use crate::memory::{Allocator, Array};
use crate::raw::prefetch::prefetch;

/// The first sequence number. 0 stands for no reused slot.
const FIRST_SEQUENCE: u64 = 1;

/// Entries between one that is reclaimed and the one to prefetch.
const SOON: u64 = 8;

/// Set in the expiry time of a vacant slot.
const VACANT: u32 = 1;

/// The link and the expiry time of an entry, which a vacant slot has, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The location in the index; for a vacant slot, the low half of the sequence number of
    /// another vacant one.
    pub(super) link: u32,
    /// The expiry time, and the bit [`VACANT`].
    marked_expiry: u32,
}

/// A span of up to 2^30 ticks.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The low half of twice the first tick.
    pub(super) doubled_start: u32,
    pub(super) ticks: u32,
}

impl Times {
    /// Creates the times of an entry with a body. The expiry time is even.
    #[inline]
    pub(super) const fn new(link: u32, expiry: u32) -> Self {
        debug_assert!(expiry & VACANT == 0);
        Self { link, marked_expiry: expiry }
    }

    #[inline]
    pub(super) const fn is_vacant(self) -> bool {
        self.marked_expiry & VACANT != 0
    }

    /// Twice the tick at which the binding expires, or would have expired: the low half of that.
    #[inline]
    pub(super) const fn expiry(self) -> u32 {
        self.marked_expiry & !VACANT
    }

    /// Returns whether the entry has a body and expires within a span of ticks.
    #[inline(always)]
    pub(super) const fn is_within(self, span: Span) -> bool {
        // The lowest bit, of vacant slots, becomes the highest one: they are beyond any span.
        self.marked_expiry.wrapping_sub(span.doubled_start).rotate_right(1) < span.ticks
    }

    /// Returns the ticks from now until the expiry, given twice the current tick.
    #[inline(always)]
    pub(super) const fn until_expiry(self, doubled_now: u32) -> i32 {
        self.marked_expiry.wrapping_sub(doubled_now) as i32 >> 1
    }
}

/// A slot of 24 bytes for bodies of 16, as the word counts of the paper imply. The times and the
/// tag, which a lookup reads, come first, to share a cache line.
#[repr(C)]
struct Slot<B> {
    times: Times,
    body: MaybeUninit<B>,
}

/// A live entry. Unless it is vacant, the pointer is valid until the body is removed, and may be
/// dereferenced as the ring is borrowed.
pub(super) struct Found<B> {
    /// The low half of its sequence number.
    pub(super) sequence: u32,
    pub(super) times: Times,
    pub(super) body: NonNull<B>,
}

/// A queue of entries that expire in the order of insertion, in a power of two of slots.
pub(super) struct Ring<B, A: Allocator> {
    slots: Array<Slot<B>, A>,
    /// The sequence number of the oldest live entry, or the next one if none is live.
    oldest: u64,
    live: usize,
    /// Expired entries before the oldest live one that are not reclaimed.
    expired: usize,
    /// Live and expired entries without a body.
    vacancies: usize,
}

impl<B, A: Allocator> Ring<B, A> {
    /// Creates a ring with this capacity, rounded up to a power of two.
    pub(super) fn new_in(capacity: usize, memory: A) -> Result<Self, StoreError> {
        if capacity == 0 {
            return Err(StoreError::NoCapacity);
        }
        let count = capacity.checked_next_power_of_two().filter(|&count| count <= MAX_CAPACITY);
        let count = count.ok_or(StoreError::TooLarge)?;
        let times = Times::new(0, 0);
        let slot = |_| Slot { times, body: MaybeUninit::uninit() };
        let slots = Array::new_in(count, memory, slot)?;
        Ok(Self { slots, oldest: FIRST_SEQUENCE, live: 0, expired: 0, vacancies: 0 })
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of allocated bytes.
    pub(super) const fn allocation_size(&self) -> usize {
        self.slots.allocation_size()
    }

    /// Returns the number of live entries, with or without a body.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Returns the number of live and expired entries.
    #[inline(always)]
    const fn occupied(&self) -> usize {
        self.live + self.expired
    }

    /// Returns the sequence number of the oldest entry that is not reclaimed, or the next one.
    #[inline]
    const fn first(&self) -> u64 {
        self.oldest - self.expired as u64
    }

    /// Returns the number of bodies of live and expired entries.
    pub(super) fn bodies(&self) -> usize {
        self.occupied() - self.vacancies
    }

    /// Returns whether any live or expired entry has no body.
    #[inline]
    pub(super) fn has_vacancies(&self) -> bool {
        self.vacancies > 0
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.occupied() == self.slots.len()
    }

    /// Returns the sequence number of the oldest live entry.
    #[inline]
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Returns the position among the live entries of the one whose sequence number has this low
    /// half. The result is at least [`live`](Self::live) if there is none.
    #[inline]
    pub(super) fn position_of(&self, sequence: u32) -> usize {
        sequence.wrapping_sub(self.oldest as u32) as usize
    }

    /// Returns the slot of a sequence number. Sequence numbers modulo 2^32 suffice.
    #[inline(always)]
    fn slot(&self, sequence: u64) -> &Slot<B> {
        self.slots.get(sequence as usize)
    }

    #[inline(always)]
    fn slot_mut(&mut self, sequence: u64) -> &mut Slot<B> {
        self.slots.get_mut(sequence as usize)
    }

    /// Returns the sequence number at a position of the live entries; 0 is the oldest.
    #[inline(always)]
    fn sequence_at(&self, position: usize) -> Option<u64> {
        (position < self.live).then(|| self.oldest + position as u64)
    }

    /// Returns the link and the expiry time of the live entry at a position, with or without a
    /// body.
    #[inline]
    pub(super) fn times(&self, position: usize) -> Option<Times> {
        Some(self.slot(self.sequence_at(position)?).times)
    }

    /// Sets the link of the live entry at a position.
    pub(super) fn set_link(&mut self, position: usize, link: u32) {
        if let Some(sequence) = self.sequence_at(position) {
            self.slot_mut(sequence).times.link = link;
        }
    }

    /// Returns the body of the live entry at a position, if it has one.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&B> {
        let slot = self.slot(self.sequence_at(position)?);
        // SAFETY: the entry is live and not vacant, so it has a body.
        (!slot.times.is_vacant()).then(|| unsafe { slot.body.assume_init_ref() })
    }

    /// Returns a mutable reference to the body of the live entry at a position, if it has one.
    #[inline]
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut B> {
        let slot = self.slot_mut(self.sequence_at(position)?);
        // SAFETY: the entry is live and not vacant, so it has a body.
        (!slot.times.is_vacant()).then(|| unsafe { slot.body.assume_init_mut() })
    }

    /// Returns the live entry whose sequence number has this low half, if there is one. It may be
    /// vacant.
    #[inline(always)]
    pub(super) fn find(&self, sequence: u32) -> Option<Found<B>> {
        if self.position_of(sequence) >= self.live {
            return None;
        }
        let slot = self.slots.pointer(sequence as usize).as_ptr();
        // SAFETY: slots are initialised, and borrowed as `self` is.
        let times = unsafe { (*slot).times };
        // SAFETY: the pointer is to a slot.
        let body = unsafe { &raw mut (*slot).body };
        // SAFETY: a field of a slot has an address.
        let body = unsafe { NonNull::new_unchecked(body) }.cast();
        Some(Found { sequence, times, body })
    }

    /// Prefetches the slot of a sequence number.
    #[inline]
    pub(super) fn prefetch(&self, sequence: u32) {
        let slot: *const Slot<B> = self.slots.pointer(sequence as usize).as_ptr();
        prefetch(slot);
        // Some slots are in two cache lines.
        prefetch(slot.wrapping_byte_add(size_of::<Slot<B>>() - 1));
    }

    /// Returns whether all entries are live and have bodies.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.expired | self.vacancies == 0
    }

    /// Drops the body of the oldest live entry of a ring that [is plain](Self::is_plain), if it has
    /// any.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        if self.live == 0 || !self.is_plain() {
            return;
        }
        let sequence = self.oldest;
        // Uncounted before the drop, which may panic.
        self.live -= 1;
        self.oldest += 1;
        // SAFETY: the entry was live and is not vacant, so it had a body; it is uncounted now.
        unsafe { self.slot_mut(sequence).body.assume_init_drop() };
    }

    /// Returns the link of the slot of an entry that is reclaimed soon after the oldest live one.
    #[inline(always)]
    pub(super) fn link_soon(&self) -> u32 {
        self.slot(self.oldest + SOON).times.link
    }

    /// Marks the `count` oldest live entries as expired, or all if there are fewer.
    #[inline(always)]
    pub(super) fn expire(&mut self, count: usize) {
        let count = count.min(self.live);
        self.live -= count;
        self.expired += count;
        self.oldest += count as u64;
    }

    /// Drops the bodies of up to `budget` expired entries, oldest first, after a call of `unlink`
    /// with the link of each, and the link of an entry that is due soon. Returns their number.
    #[inline]
    pub(super) fn reclaim(&mut self, budget: usize, mut unlink: impl FnMut(u32, u32)) -> usize {
        let mut dropped = 0;
        for _ in 0..budget {
            if self.expired == 0 {
                break;
            }
            let sequence = self.first();
            let times = self.slot(sequence).times;
            // Uncounted before the drop, which may panic.
            self.expired -= 1;
            if times.is_vacant() {
                self.vacancies -= 1;
            } else {
                dropped += 1;
                unlink(times.link, self.slot(sequence + SOON).times.link);
                // SAFETY: the entry was counted as expired and is not vacant, so it has a body; it
                // is uncounted now.
                unsafe { self.slot_mut(sequence).body.assume_init_drop() };
            }
        }
        dropped
    }

    /// Returns the next sequence number.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.oldest + self.live as u64
    }

    /// Appends a live entry to a ring that is not full.
    ///
    /// # Panics
    ///
    /// If it is full.
    #[inline(always)]
    pub(super) fn append(&mut self, times: Times, body: B) -> &mut B {
        assert!(!self.is_full(), "the caller has tested it");
        let sequence = self.next();
        self.live += 1;
        let slot = self.slot_mut(sequence);
        slot.times = times;
        slot.body.write(body)
    }

    /// Takes the body out of the live entry at a position, if it has one. The slot is vacant then.
    pub(super) fn take(&mut self, position: usize) -> Option<B> {
        let slot = self.slot_mut(self.sequence_at(position)?);
        if slot.times.is_vacant() {
            return None;
        }
        slot.times.marked_expiry |= VACANT;
        // SAFETY: the entry was live and not vacant, so it had a body; it is vacant now.
        let body = unsafe { slot.body.assume_init_read() };
        self.vacancies += 1;
        Some(body)
    }

    /// Puts a body into the vacant slot of the live entry at a position.
    pub(super) fn fill(&mut self, position: usize, times: Times, body: B) -> Option<&mut B> {
        let sequence = self.sequence_at(position)?;
        if !self.slot(sequence).times.is_vacant() {
            return None;
        }
        self.vacancies -= 1;
        let slot = self.slot_mut(sequence);
        slot.times = times;
        Some(slot.body.write(body))
    }

    /// Iterates over the sequence numbers and the links of the expired entries with a body, and of
    /// the live ones if `with_live`.
    pub(super) fn links(&self, with_live: bool) -> impl Iterator<Item = (u64, u32)> {
        let end = if with_live { self.next() } else { self.oldest };
        let entries = self.first()..end;
        let times = entries.map(|sequence| (sequence, self.slot(sequence).times));
        let with_body = times.filter(|(_, times)| !times.is_vacant());
        with_body.map(|(sequence, times)| (sequence, times.link))
    }

    /// Checks that `vacancies` are counted, for tests. O(slots).
    pub(super) fn are_vacancies_counted(&self) -> bool {
        let entries = (self.first()..self.next()).filter(|at| self.slot(*at).times.is_vacant());
        entries.count() == self.vacancies
    }
}

#[cfg(test)]
impl<B, A: Allocator> Ring<B, A> {
    /// Sets the next sequence number of an empty ring.
    pub(super) fn set_next_sequence(&mut self, sequence: u64) {
        assert_eq!((self.live, self.expired), (0, 0));
        self.oldest = sequence;
    }

    /// Sets the expiry time of the live entry at a position.
    pub(super) fn set_expiry(&mut self, position: usize, expiry: u32) {
        let sequence = self.sequence_at(position).expect("it is live");
        self.slot_mut(sequence).times.marked_expiry = expiry;
    }
}

impl<B: Clone, A: Allocator + Clone> Clone for Ring<B, A> {
    /// Clones the live entries with their sequence numbers. Expired entries are not cloned.
    fn clone(&self) -> Self {
        let memory = self.slots.allocator().clone();
        let mut clone = Self::new_in(self.capacity(), memory).unwrap_or_else(|_| {
            let layout = Layout::array::<Slot<B>>(self.capacity());
            handle_alloc_error(layout.unwrap_or(Layout::new::<Slot<B>>()));
        });
        clone.oldest = self.oldest;
        for position in 0..self.live {
            let times = self.slot(self.oldest + position as u64).times;
            match self.get(position) {
                Some(body) => _ = clone.append(times, body.clone()),
                None => clone.push_vacant(times),
            }
        }
        clone
    }
}

impl<B, A: Allocator> Ring<B, A> {
    /// Appends a live entry without a body to a ring that is not full.
    fn push_vacant(&mut self, times: Times) {
        let sequence = self.next();
        self.slot_mut(sequence).times = times;
        self.vacancies += 1;
        self.live += 1;
    }
}

impl<B, A: Allocator> Drop for Ring<B, A> {
    fn drop(&mut self) {
        /// Drops the remaining entries after the drop of one has panicked.
        struct Rest<'a, B, A: Allocator>(&'a mut Ring<B, A>);

        impl<B, A: Allocator> Drop for Rest<'_, B, A> {
            fn drop(&mut self) {
                self.0.reclaim(usize::MAX, |_, _| ());
            }
        }

        if !needs_drop::<B>() {
            return;
        }
        self.expire(self.live);
        let rest = Rest(self);
        rest.0.reclaim(usize::MAX, |_, _| ());
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;

    use super::*;

    use crate::memory::Global;

    const TIMES: Times = Times::new(0, 0);

    fn ring<B>(capacity: usize) -> Ring<B, Global> {
        Ring::new_in(capacity, Global).unwrap()
    }

    #[test]
    fn entries_are_dropped_once() {
        let counted = Rc::new(());
        let mut ring = ring(3);
        for _ in 0..4 {
            assert!(!ring.is_full());
            ring.append(TIMES, Rc::clone(&counted));
        }
        assert!(ring.is_full());
        ring.expire(3);
        assert!(ring.is_full(), "expired entries occupy their slots");
        assert_eq!((ring.reclaim(2, |_, _| ()), ring.live(), ring.first()), (2, 1, 3));
        assert_eq!(Rc::strong_count(&counted), 3);
        ring.append(TIMES, Rc::clone(&counted));
        let clone = ring.clone();
        assert_eq!((clone.live(), clone.expired, Rc::strong_count(&counted)), (2, 0, 6));
        drop(clone);
        drop(ring);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn entries_are_found_by_sequence_number() {
        let mut ring = ring(4);
        for next in 1..40_u64 {
            assert_eq!(ring.next(), next);
            if ring.is_full() {
                ring.expire(1);
                ring.reclaim(1, |_, _| ());
            }
            ring.append(TIMES, next);
            for position in 0..ring.live() {
                let sequence = ring.oldest() + position as u64;
                assert_eq!(ring.get(position), Some(&sequence));
                assert_eq!(ring.position_of(sequence as u32), position);
            }
            assert_eq!(ring.get(ring.live()), None);
            assert_eq!(ring.get_mut(usize::MAX), None);
            assert!(ring.position_of((ring.oldest() as u32).wrapping_sub(1)) >= ring.live());
        }
    }

    #[test]
    fn bodies_are_removed_from_the_middle() {
        let counted = Rc::new(());
        let mut ring = ring(8);
        (0..8).for_each(|_| _ = ring.append(TIMES, Rc::clone(&counted)));
        for position in [2, 5, 6] {
            assert!(ring.take(position).is_some() && ring.take(position).is_none());
            assert!(ring.get(position).is_none() && ring.times(position).is_some());
        }
        assert_eq!((ring.bodies(), Rc::strong_count(&counted)), (5, 6));
        assert!(ring.is_full(), "vacant slots are occupied");
        let times = Times::new(7, 8);
        assert!(ring.fill(5, times, Rc::clone(&counted)).is_some());
        assert!(ring.fill(5, times, Rc::clone(&counted)).is_none(), "it is not vacant");
        assert_eq!(ring.times(5).map(|times| (times.link, times.expiry())), Some((7, 8)));
        let clone = ring.clone();
        assert!(clone.are_vacancies_counted() && ring.are_vacancies_counted());
        assert_eq!((clone.bodies(), clone.vacancies), (6, 2));
        drop(clone);
        // Entries 0, 1 and 3 have a body, entry 2 has none.
        ring.expire(4);
        assert_eq!((ring.reclaim(4, |_, _| ()), ring.vacancies, ring.bodies()), (3, 1, 3));
        assert!(ring.are_vacancies_counted());
        (0..4).for_each(|_| _ = ring.append(TIMES, Rc::clone(&counted)));
        assert_eq!((ring.bodies(), Rc::strong_count(&counted)), (7, 8));
        drop(ring);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_panic_in_drop_does_not_leak_the_other_entries() {
        struct Bomb {
            _counted: Rc<()>,
            panics: bool,
        }

        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.panics {
                    std::panic::resume_unwind(alloc::boxed::Box::new(()));
                }
            }
        }

        let counted = Rc::new(());
        let bomb = |panics| Bomb { _counted: Rc::clone(&counted), panics };
        let mut ring = ring(8);
        (0..8).for_each(|index| _ = ring.append(TIMES, bomb(index == 3)));
        ring.expire(5);
        let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(ring)));
        assert_eq!((dropped.is_err(), Rc::strong_count(&counted)), (true, 1));
    }

    #[test]
    fn entries_may_be_zero_sized() {
        let mut ring = ring(2);
        assert_eq!((*ring.append(TIMES, ()), *ring.append(TIMES, ())), ((), ()));
        assert!(ring.is_full());
        assert_eq!(ring.get(1), Some(&()));
    }
}
