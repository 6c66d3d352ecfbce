//! The readers' part of a shard: its index and its store.
//!
//! - **I1** An id in a bucket is that of an entry of the shard's store. A removed entry is retired
//!   after its id is cleared from the bucket: a reader that has loaded the id under a pin may use
//!   the entry while the pin lasts.
#![allow(unsafe_code)]

use crossbeam_epoch::Guard;

use super::bucket::{Bucket, Entries, Header};
use super::directory::Root;
use super::segment::{Segment, SlotId};
use super::store::Store;
use crate::raw::tags::tags;

/// The index and the store of a shard: two to a cache line, as they hardly ever change.
#[repr(align(32))]
pub(super) struct Index<T> {
    pub(super) root: Root,
    pub(super) store: Store<T>,
}

/// The result of probing the home bucket for a hash.
pub(super) enum Probe<'p, T> {
    /// A candidate, which is the right entry in all but one of fifty cases.
    Candidate(Entry<'p, T>),
    /// No entry has this hash.
    Absent,
    /// An entry with this hash may be in a later bucket.
    Overflowed,
}

impl<T> Clone for Probe<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Probe<'_, T> {}

/// An entry under a pin. While the pin lasts, its id is not reused.
pub(super) struct Entry<'p, T> {
    pub(super) id: u32,
    entry: &'p T,
}

impl<T> Clone for Entry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<'_, T> {}

impl<'p, T> Entry<'p, T> {
    #[inline]
    pub(super) fn get(self) -> &'p T {
        self.entry
    }
}

impl<T> Index<T> {
    pub(super) fn new() -> Self {
        Self { root: Root::new(), store: Store::new() }
    }

    /// Returns the entry with an id.
    ///
    /// # Safety
    ///
    /// The id was loaded from a bucket of this shard under this pin, or inserted under it.
    #[inline]
    pub(super) unsafe fn entry<'p>(&'p self, id: u32, _pin: &'p Guard) -> Entry<'p, T> {
        // SAFETY: by the contract; the pin lasts for 'p.
        Entry { id, entry: unsafe { self.store.get(id) } }
    }

    /// Returns the entry with this hash for which `is` returns true.
    #[inline]
    pub(super) fn find<'p>(
        &'p self,
        hash: u64,
        mixed: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<Entry<'p, T>> {
        let segment = self.root.segment(mixed, pin);
        segment.find(hash, mixed, |id| {
            // SAFETY: the number is in a bucket (I1).
            let entry = unsafe { self.entry(id, pin) };
            is(entry.get()).then_some(entry)
        })
    }

    /// Returns the entry with this hash for which `is` returns true, with its slot and segment.
    pub(super) fn locate<'p>(
        &'p self,
        hash: u64,
        mixed: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<(Segment<'p>, SlotId, Entry<'p, T>)> {
        let segment = self.root.segment(mixed, pin);
        // SAFETY: the number is in a bucket (I1).
        let entry = |id| unsafe { self.entry(id, pin) };
        let slot_id = segment.locate(hash, mixed, |id| is(entry(id).get()))?;
        Some((segment, slot_id, entry(slot_id.id)))
    }

    /// Returns the bucket in which a search for this mixed hash begins.
    #[inline]
    pub(super) fn home<'p>(&'p self, mixed: u64, pin: &'p Guard) -> &'p Bucket {
        self.root.segment(mixed, pin).home_bucket(mixed)
    }

    /// Probes a home bucket of this shard for a hash; prefetches the candidate.
    #[inline]
    pub(super) fn probe<'p>(
        &'p self,
        home: &'p Bucket,
        hash: u64,
        mixed: u64,
        pin: &'p Guard,
    ) -> Probe<'p, T> {
        let home = home.header();
        let Some((_, id)) = home.matches(tags(hash, mixed)).next() else {
            return if home.overflow() == 0 { Probe::Absent } else { Probe::Overflowed };
        };
        // SAFETY: the number is in a bucket (I1).
        unsafe { self.store.prefetch(id) };
        // SAFETY: as above.
        Probe::Candidate(unsafe { self.entry(id, pin) })
    }

    /// Iterates over the entries of a bucket of this shard.
    pub(super) fn entries<'p>(&'p self, bucket: Header<'p>, pin: &'p Guard) -> InBucket<'p, T> {
        InBucket { ids: bucket.full(), index: self, pin }
    }
}

/// An iterator over the entries of a bucket.
pub(super) struct InBucket<'p, T> {
    ids: Entries<'p>,
    index: &'p Index<T>,
    pin: &'p Guard,
}

impl<'p, T> Iterator for InBucket<'p, T> {
    type Item = Entry<'p, T>;

    fn next(&mut self) -> Option<Entry<'p, T>> {
        let (_, id) = self.ids.next()?;
        // SAFETY: the number is in a bucket (I1).
        Some(unsafe { self.index.entry(id, self.pin) })
    }
}
