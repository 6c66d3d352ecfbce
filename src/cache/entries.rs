//! The entries of a `BoundedCache`: records with the time of their last use.

use core::mem;
use core::num::NonZeroU64;

use super::CacheError;
use crate::eviction::EntryStats;
use crate::invariant::InvariantError;
use crate::memory::Allocator;
use crate::table::records::{Record, Records};
use crate::timestamp::Timestamp;

/// The value of [`Entries::uses`] at the last use of an entry, times two, and a bit that is set if
/// it was used since a policy examined it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastUse(NonZeroU64);

impl LastUse {
    #[inline]
    fn new(uses: u64, is_used: bool) -> Self {
        // 2^63 uses take centuries.
        Self(NonZeroU64::new(uses << 1 | u64::from(is_used)).unwrap_or(NonZeroU64::MAX))
    }

    const fn time(self) -> u64 {
        self.0.get() >> 1
    }
}

/// Entries by hash, in slots that do not change.
#[derive(Clone, Debug)]
pub(super) struct Entries<K, V, A: Allocator + Clone> {
    records: Records<LastUse, K, V, A>,
    /// The number of insertions and uses of entries: a clock for `LastUse`.
    uses: u64,
}

impl<K, V, A: Allocator + Clone> Entries<K, V, A> {
    pub(super) fn new_in(capacity: usize, memory: A) -> Result<Self, CacheError> {
        Ok(Self { records: Records::new_in(capacity, memory)?, uses: 0 })
    }

    #[inline]
    pub(super) const fn records(&self) -> &Records<LastUse, K, V, A> {
        &self.records
    }

    #[inline]
    pub(super) const fn records_mut(&mut self) -> &mut Records<LastUse, K, V, A> {
        &mut self.records
    }

    /// Returns the slot of the entry of a key.
    #[inline]
    pub(super) fn find(&self, hash: u32, eq: impl Fn(&K) -> bool) -> Option<u32> {
        self.records.find(hash, move |record| eq(&record.key)).map(|(slot, _)| slot)
    }

    /// Records a use of the entry with this hash for whose key `eq` returns true, and returns its
    /// slot and a mutable reference to its value.
    #[inline]
    pub(super) fn use_entry(
        &mut self,
        hash: u32,
        eq: impl Fn(&K) -> bool,
    ) -> Option<(u32, &mut V)> {
        let Self { records, uses } = self;
        let (slot, record) = records.find_mut(hash, move |record| eq(&record.key))?;
        Some((slot, record_use(record, uses)))
    }

    /// Records a use of an entry, and returns a mutable reference to its value.
    #[inline]
    pub(super) fn record_use(&mut self, slot: u32) -> &mut V {
        record_use(self.records.record_mut(slot), &mut self.uses)
    }

    /// Returns the use of an entry to a policy, and clears its mark of use.
    pub(super) fn examine(&mut self, slot: u32) -> EntryStats {
        let last_use = &mut self.records.record_mut(slot).meta;
        let (uses, is_used) = (last_use.time(), last_use.0.get() & 1 == 1);
        *last_use = LastUse::new(uses, false);
        EntryStats { used: is_used, last_use: Timestamp::from_nanos(uses) }
    }

    /// Returns the least recently used of the entries with this hash, if there are at least
    /// `limit`.
    pub(super) fn victim_of_hash(&self, hash: u32, limit: usize) -> Option<u32> {
        let (mut count, mut oldest) = (0, None);
        self.records.for_each_with_hash(hash, |slot, record| {
            count += 1;
            let last_use = record.meta.time();
            if oldest.is_none_or(|(before, _)| last_use < before) {
                oldest = Some((last_use, slot));
            }
        });
        oldest.filter(|_| count >= limit).map(|(_, slot)| slot)
    }

    /// Inserts an entry, and returns its slot. The cache must not be full.
    ///
    /// # Errors
    ///
    /// As [`Records::insert`].
    pub(super) fn insert(&mut self, hash: u32, key: K, value: V) -> Result<u32, (K, V)> {
        self.uses += 1;
        self.records.insert(hash, LastUse::new(self.uses, false), key, value)
    }

    /// Writes an entry in place of the one at a slot, which is returned.
    ///
    /// # Errors
    ///
    /// As [`Records::insert`]. The entry at the slot stays then.
    pub(super) fn replace(
        &mut self,
        slot: u32,
        hash: u32,
        key: K,
        value: V,
    ) -> Result<(K, V), (K, V)> {
        let Some(record) = self.records.rehash(slot, hash) else { return Err((key, value)) };
        self.uses += 1;
        record.meta = LastUse::new(self.uses, false);
        Ok((mem::replace(&mut record.key, key), mem::replace(&mut record.value, value)))
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.records.validate()
    }
}

/// Records a use, which is counted in `uses`, and returns a mutable reference to the value.
#[inline]
fn record_use<'a, K, V>(record: &'a mut Record<LastUse, K, V>, uses: &mut u64) -> &'a mut V {
    *uses += 1;
    record.meta = LastUse::new(*uses, true);
    &mut record.value
}
