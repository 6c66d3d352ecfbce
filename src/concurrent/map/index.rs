//! What readers see of a shard: the way from a hash to an entry.
//!
//! - **I1** A number in a bucket is that of an entry of the shard's store. An entry that is taken out is
//!   retired when its number is not in the bucket any more: who has seen it there under a pin may use it as
//!   long as the pin lasts.
#![allow(unsafe_code)]

use crossbeam_epoch::Guard;

use super::bucket::{Bucket, Entries, Look};
use super::directory::Root;
use super::segment::{Segment, Spot};
use super::store::Store;
use crate::raw::tags::tags;

/// Two to a line: they hardly ever change.
#[repr(align(32))]
pub(super) struct Index<T> {
    pub(super) root: Root,
    pub(super) store: Store<T>,
}

/// What a home says of a hash.
pub(super) enum Glance<'p, T> {
    /// There is an entry that is the right one, but for one in fifty.
    Perhaps(Entry<'p, T>),
    /// There is none.
    Absent,
    /// If there is one, it is behind another bucket.
    Elsewhere,
}

impl<T> Clone for Glance<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Glance<'_, T> {}

/// An entry under a pin. As long as that lasts, nobody else gets its number.
pub(super) struct Entry<'p, T> {
    pub(super) number: u32,
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

    /// The entry of a number.
    ///
    /// # Safety
    ///
    /// It has been seen in a bucket of this shard under this pin, or put in under it.
    #[inline]
    pub(super) unsafe fn entry<'p>(&'p self, number: u32, _pin: &'p Guard) -> Entry<'p, T> {
        // SAFETY: as asked for; the pin lasts for 'p.
        Entry { number, entry: unsafe { self.store.get(number) } }
    }

    /// The entry of this hash for which `is` says so.
    #[inline]
    pub(super) fn find<'p>(
        &'p self,
        hash: u64,
        path: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<Entry<'p, T>> {
        let segment = self.root.segment(path, pin);
        segment.find(hash, path, |number| {
            // SAFETY: the number is in a bucket (I1).
            let entry = unsafe { self.entry(number, pin) };
            is(entry.get()).then_some(entry)
        })
    }

    /// Where the entry of this hash is for which `is` says so, and the entry.
    pub(super) fn locate<'p>(
        &'p self,
        hash: u64,
        path: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<(Segment<'p>, Spot, Entry<'p, T>)> {
        let segment = self.root.segment(path, pin);
        // SAFETY: the number is in a bucket (I1).
        let entry = |number| unsafe { self.entry(number, pin) };
        let spot = segment.locate(hash, path, |number| is(entry(number).get()))?;
        Some((segment, spot, entry(spot.number)))
    }

    /// The bucket in which the search of a path begins.
    #[inline]
    pub(super) fn home<'p>(&'p self, path: u64, pin: &'p Guard) -> &'p Bucket {
        self.root.segment(path, pin).home_bucket(path)
    }

    /// What a home of this shard says of a hash; an entry is asked for.
    #[inline]
    pub(super) fn glance<'p>(
        &'p self,
        home: &'p Bucket,
        hash: u64,
        path: u64,
        pin: &'p Guard,
    ) -> Glance<'p, T> {
        let home = home.look();
        let Some((_, number)) = home.matches(tags(hash, path)).next() else {
            return if home.passed() == 0 { Glance::Absent } else { Glance::Elsewhere };
        };
        // SAFETY: the number is in a bucket (I1).
        unsafe { self.store.prefetch(number) };
        // SAFETY: the same.
        Glance::Perhaps(unsafe { self.entry(number, pin) })
    }

    /// The entries of a bucket of this shard.
    pub(super) fn entries<'p>(&'p self, bucket: Look<'p>, pin: &'p Guard) -> InBucket<'p, T> {
        InBucket { numbers: bucket.full(), index: self, pin }
    }
}

/// The entries of a bucket.
pub(super) struct InBucket<'p, T> {
    numbers: Entries<'p>,
    index: &'p Index<T>,
    pin: &'p Guard,
}

impl<'p, T> Iterator for InBucket<'p, T> {
    type Item = Entry<'p, T>;

    fn next(&mut self) -> Option<Entry<'p, T>> {
        let (_, number) = self.numbers.next()?;
        // SAFETY: the number is in a bucket (I1).
        Some(unsafe { self.index.entry(number, self.pin) })
    }
}
