//! Records that expire a lifetime after they were written, in the order of their expiry.
//!
//! ```text
//!     records     0 │ c │   1 │ a │   2 │ – │   3 │ b │        in slots, found by hash
//!     order       first ─▸ 1 ◂─▸ 3 ◂─▸ 0 ◂─▸ 1 …          by two links in each record, a circle
//! ```
//!
//! All live equally long, so a record that is written now expires last, and the first one expires
//! next: reclaiming expired records is O(1) for each, without a search. Until a record is
//! reclaimed, lookups compare its expiry time.
//!
//! A new record takes the slot of the first one, if that has expired. It follows the last one in
//! the circle already: no link is written, only `first`. So without removals the slots of a full
//! structure are in the order of expiry, too: the line of a record that expires soon is prefetched
//! by the number of its slot. After a lifetime without creations each new record removes two
//! expired ones, so the slots come in steps of two from then on: the step is that between the first
//! two records.
//!
//! Invariants: the list has each record once, in the order of expiry; `before` and `after` are
//! inverse to each other.

use core::num::NonZeroU64;
use core::{iter, mem};

use super::error::CapacityError;
use super::records::{Record, Records};
use crate::clock::{Clock, MAX_LIFETIME};
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;
use crate::raw::slab::OptIndex;
use crate::timestamp::Timestamp;

/// Records from one that is reclaimed to the one whose line is prefetched.
const SOON: u32 = 8;

/// The expiry time of a record, and its neighbours in the order of expiry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    /// A time of the clock.
    time: NonZeroU64,
    before: u32,
    after: u32,
}

impl Expiry {
    /// Returns whether it is after a time of the clock.
    #[inline]
    pub(crate) const fn is_after(&self, time: u64) -> bool {
        self.time.get() > time
    }
}

/// The live records: the slot of the first one to expire, and their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    first: Option<u32>,
    pub(crate) count: usize,
}

/// Records by hash, in the order of their expiry.
#[derive(Clone, Debug)]
pub(crate) struct Expiring<K, V, A: Allocator + Clone> {
    records: Records<Expiry, K, V, A>,
    first: OptIndex,
    clock: Clock,
}

impl<K, V, A: Allocator + Clone> Expiring<K, V, A> {
    /// Memory for a capacity, as of [`Records::new_in`], of records that live for `lifetime`
    /// nanoseconds: one of more than 146 years counts as [`MAX_LIFETIME`].
    ///
    /// # Errors
    ///
    /// As of [`Records::new_in`].
    pub(crate) fn new_in(capacity: usize, lifetime: u64, memory: A) -> Result<Self, CapacityError> {
        let records = Records::new_in(capacity, memory)?;
        Ok(Self { records, first: OptIndex::NONE, clock: Clock::new(lifetime.min(MAX_LIFETIME)) })
    }

    #[inline]
    pub(crate) const fn records(&self) -> &Records<Expiry, K, V, A> {
        &self.records
    }

    /// Returns the time of the clock at a time of the caller; the last one for all that are later.
    #[inline]
    pub(crate) const fn time_at(&self, now: Timestamp) -> u64 {
        self.clock.now().saturating_add(self.clock.elapsed(now.as_nanos()))
    }

    /// Returns the time of the clock.
    #[inline]
    pub(crate) const fn time(&self) -> u64 {
        self.clock.now()
    }

    /// Advances the clock to a time of the caller, and returns its time.
    #[inline]
    pub(crate) fn advance(&mut self, now: Timestamp) -> u64 {
        let elapsed = self.clock.follow(now.as_nanos());
        if self.clock.advance(elapsed) {
            self.restart_clock();
        }
        self.clock.now()
    }

    /// Restarts the clock, and reduces all expiry times by as much: those of expired records to 1,
    /// at which they are expired, too. O(n), and rare: see [`Clock::advance`].
    #[cold]
    #[inline(never)]
    fn restart_clock(&mut self) {
        let by = self.clock.restart();
        for record in self.records.iter_mut() {
            let time = record.meta.time.get().saturating_sub(by);
            record.meta.time = NonZeroU64::new(time).unwrap_or(NonZeroU64::MIN);
        }
    }

    /// Follows a change of the caller's clock.
    pub(crate) const fn set_clock(&mut self, now: Timestamp) {
        self.clock.set(now.as_nanos());
    }

    /// As [`Records::find_mut`].
    #[inline]
    pub(crate) fn find_mut(
        &mut self,
        hash: u32,
        is_it: impl FnMut(&Record<Expiry, K, V>) -> bool,
    ) -> Option<(u32, &mut Record<Expiry, K, V>)> {
        self.records.find_mut(hash, is_it)
    }

    /// Returns a mutable reference to the record in an occupied slot.
    #[inline]
    pub(crate) fn record_mut(&mut self, slot: u32) -> &mut Record<Expiry, K, V> {
        self.records.record_mut(slot)
    }

    /// Adds a record with the latest expiry, in place of the first one if that has expired, and
    /// returns its value. Also removes the second one, if that has expired, too: expired records
    /// become fewer. Returns none if there is no room, or no memory for hashes that are not random,
    /// as of [`Records::insert`].
    #[inline]
    pub(crate) fn push(&mut self, hash: u32, make: impl FnOnce() -> (K, V)) -> Option<&mut V> {
        match self.first.get() {
            Some(first) if !self.is_live(first, self.clock.now()) => {
                self.push_instead(first, hash, make)
            }
            _ if !self.records.is_full() => self.push_new(hash, make()),
            _ => None,
        }
    }

    /// Writes a record in place of the first one. It is the last one then, as the list is a circle.
    #[inline]
    fn push_instead(
        &mut self,
        first: u32,
        hash: u32,
        make: impl FnOnce() -> (K, V),
    ) -> Option<&mut V> {
        let next = self.records.record(first).meta.after;
        if !self.is_live(next, self.clock.now()) {
            self.remove_second(next);
        }
        // In slots one after the other, or in every second one after the expired ones were removed
        // two by two, also backwards.
        let step = next.wrapping_sub(first);
        self.records.prefetch_line_of(first.wrapping_add(step.wrapping_mul(SOON)));
        let record = self.records.rehash(first, hash)?;
        let (key, value) = make();
        record.meta.time = self.clock.expiry();
        self.first = OptIndex::some(record.meta.after);
        // Dropped after all is written: a drop may panic.
        let _expired = (mem::replace(&mut record.key, key), mem::replace(&mut record.value, value));
        Some(&mut record.value)
    }

    /// Adds a record in a slot of its own. There must be room. Returns none as
    /// [`push`](Self::push).
    #[inline(never)]
    pub(crate) fn push_new(&mut self, hash: u32, (key, value): (K, V)) -> Option<&mut V> {
        let expiry = Expiry { time: self.clock.expiry(), before: 0, after: 0 };
        let slot = self.records.insert(hash, expiry, key, value).ok()?;
        self.link(slot);
        Some(&mut self.records.record_mut(slot).value)
    }

    /// Removes the record after the first one, unless there is one only.
    #[inline(never)]
    fn remove_second(&mut self, second: u32) {
        if self.first != OptIndex::some(second) {
            self.records.prefetch_line_of(second.wrapping_add(SOON));
            drop(self.remove(second));
        }
    }

    #[inline(never)]
    fn remove_expired(&mut self, slot: u32) {
        drop(self.remove(slot));
    }

    /// Gives the record in an occupied slot the latest expiry. The first one becomes the last one
    /// where it is, as the list is a circle.
    pub(crate) fn renew(&mut self, slot: u32) {
        let expiry = self.clock.expiry();
        let meta = &mut self.records.record_mut(slot).meta;
        meta.time = expiry;
        let meta = *meta;
        if self.first == OptIndex::some(slot) {
            self.first = OptIndex::some(meta.after);
        } else if self.first != OptIndex::some(meta.after) {
            self.unlink(slot, meta);
            self.link(slot);
        }
    }

    /// Removes the record from an occupied slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Record<Expiry, K, V> {
        let record = self.records.remove(slot);
        self.unlink(slot, record.meta);
        record
    }

    /// Removes up to `budget` expired records. Returns their number.
    #[inline]
    pub(crate) fn reclaim(&mut self, budget: usize) -> usize {
        for reclaimed in 0..budget {
            let first = self.first.get();
            let expired = first.filter(|slot| !self.is_live(*slot, self.clock.now()));
            let Some(slot) = expired else { return reclaimed };
            self.remove_expired(slot);
        }
        budget
    }

    /// Removes all records, and resets the clock. If the drop of one panics, those after it stay.
    pub(crate) fn clear(&mut self) {
        while let Some(slot) = self.first.get() {
            drop(self.remove(slot));
        }
        self.records.reset_lines();
        self.clock = Clock::new(self.clock.lifetime());
    }

    /// Returns whether the record in an occupied slot is live at a time of the clock.
    #[inline]
    fn is_live(&self, slot: u32, time: u64) -> bool {
        self.records.record(slot).meta.is_after(time)
    }

    /// Takes a record that has these neighbours out of the list.
    fn unlink(&mut self, slot: u32, Expiry { before, after, .. }: Expiry) {
        if after == slot {
            self.first = OptIndex::NONE;
            return;
        }
        self.records.record_mut(before).meta.after = after;
        self.records.record_mut(after).meta.before = before;
        if self.first == OptIndex::some(slot) {
            self.first = OptIndex::some(after);
        }
    }

    /// Makes a record that is not in the list the last one.
    fn link(&mut self, slot: u32) {
        let (mut before, mut after) = (slot, slot);
        match self.first.get() {
            None => self.first = OptIndex::some(slot),
            Some(first) => {
                let last = mem::replace(&mut self.records.record_mut(first).meta.before, slot);
                self.records.record_mut(last).meta.after = slot;
                (before, after) = (last, first);
            }
        }
        let expiry = &mut self.records.record_mut(slot).meta;
        (expiry.before, expiry.after) = (before, after);
    }

    /// Iterates over the slots of up to `count` records from one on, in the order of their expiry.
    fn slots(&self, first: Option<u32>, count: usize) -> impl Iterator<Item = u32> {
        let next = |slot: &u32| Some(self.records.record(*slot).meta.after);
        iter::successors(first, next).take(count)
    }

    /// Returns the records that are live at a time of the clock. O(expired records).
    pub(crate) fn live(&self, time: u64) -> Live {
        let all = self.records.len();
        let mut slots = self.slots(self.first.get(), all).zip(0..all);
        match slots.find(|(slot, _)| self.is_live(*slot, time)) {
            Some((slot, expired)) => Live { first: Some(slot), count: all - expired },
            None => Live { first: None, count: 0 },
        }
    }

    /// Iterates over the slots of the records that are live at a time of the clock, in the order of
    /// their expiry. O(expired records) to begin.
    pub(crate) fn live_slots(&self, time: u64) -> impl Iterator<Item = u32> {
        let Live { first, count } = self.live(time);
        self.slots(first, count)
    }

    /// Removes the live records for which `is_removed` returns true, in the order of their expiry.
    /// Records that the iterator has not visited stay.
    pub(crate) fn extract_if(
        &mut self,
        mut is_removed: impl FnMut(&K, &mut V) -> bool,
    ) -> impl Iterator<Item = (K, V)> {
        let mut live = self.live(self.clock.now());
        iter::from_fn(move || {
            while let Some(slot) = live.first.filter(|_| live.count > 0) {
                let record = self.records.record_mut(slot);
                live = Live { first: Some(record.meta.after), count: live.count - 1 };
                if is_removed(&record.key, &mut record.value) {
                    let Record { key, value, .. } = self.remove(slot);
                    return Some((key, value));
                }
            }
            None
        })
    }

    pub(crate) fn validate(&self) -> Result<(), InvariantError> {
        self.records.validate()?;
        let Some(first) = self.first.get() else {
            return ensure(self.records.len() == 0, || "there are records, but no first one");
        };
        let (mut slot, mut latest) = (first, None);
        for at in 0..self.records.len() {
            let Some(record) = self.records.get(slot) else {
                return Err(InvariantError::new("a vacant slot is in the list"));
            };
            ensure(at == 0 || slot != first, || "records are not in the list")?;
            let expiry = record.meta;
            let is_inverse =
                self.records.get(expiry.after).is_some_and(|after| after.meta.before == slot);
            ensure(is_inverse, || "a link is not the inverse of another one")?;
            let is_later = latest.is_none_or(|it: Expiry| !it.is_after(expiry.time.get()));
            ensure(is_later, || "records are not in the order of their expiry")?;
            let is_soon = !expiry.is_after(self.clock.expiry().get());
            ensure(is_soon, || "a record expires later than a lifetime from now")?;
            (slot, latest) = (expiry.after, Some(expiry));
        }
        ensure(slot == first, || "the list is longer than the number of records")
    }
}
