//! The ways of a map to an entry: by the fast one, by the others, to change the table.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::error::TryReserveError;
use super::rekey;
use super::segment::Glance;
use super::table::{Position, Room, Table};
use crate::probes::Observer;

impl<K: Eq + Hash, V, S: BuildHasher> TrashMap<K, V, S> {
    /// The entry of `key`. The fast way: most entries are in their home, and the first with their tag.
    #[inline]
    pub(super) fn find<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&(K, V)> {
        self.find_observed(hash, key, &mut ())
    }

    /// The entry of `key` if it is in its home and the first with its tag.
    #[inline]
    pub(super) fn find_first<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&(K, V)> {
        match self.table.glance(hash) {
            Glance::Perhaps(_, entry) if key.equivalent(&entry.0) => Some(entry),
            _ => None,
        }
    }

    /// The entry of `key`, counting.
    #[inline]
    pub(super) fn find_observed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&(K, V)> {
        if self.rekeyed.is_some() {
            return self.search_on(hash, key, observer);
        }
        match self.table.glance(hash) {
            Glance::Perhaps(_, entry) if key.equivalent(&entry.0) => {
                observer.node();
                observer.entry();
                Some(entry)
            }
            Glance::Absent => {
                observer.node();
                None
            }
            _ => self.search_on(hash, key, observer),
        }
    }

    /// The way of the others, kept apart so that the fast one stays short.
    #[cold]
    #[inline(never)]
    pub(super) fn search_on<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&(K, V)> {
        self.search(hash, key, observer)
    }

    /// The entry of `key`, in all its buckets and both tables.
    pub(super) fn search<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&(K, V)> {
        let is = |(own, _): &(K, V)| key.equivalent(own);
        let Some(rekeyed) = &self.rekeyed else { return self.table.find(hash, is, observer) };
        let found = self.table.find(rekeyed.secret.hash_one(key), is, observer);
        found.or_else(|| {
            let former = rekeyed.former.as_ref()?;
            let hash = rekey::hash(&self.hasher, former.secret.as_ref(), key);
            former.table.find(hash, is, observer)
        })
    }

    /// The value of `key`, in all its buckets and both tables, to change.
    #[cold]
    #[inline(never)]
    pub(super) fn search_mut<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<&mut V> {
        match self.try_locate(hash, key) {
            Ok((_, at)) => self.table.get_mut(at?).map(|(_, value)| value),
            // There is no memory to bring it over.
            Err(_) => self.former_mut(key).map(|(_, value)| value),
        }
    }

    /// The hash of `key` in the table, and where its entry is in it. Takes a hash of the hasher.
    #[inline]
    pub(super) fn locate<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> (u64, Option<Position>) {
        self.try_locate(hash, key).unwrap_or_else(|error| error.raise())
    }

    /// The same; an error if the entry has to be brought over and there is no memory for it.
    // An insertion and a removal are short enough to overlap with the next one, but not with two calls.
    #[inline(always)]
    pub(super) fn try_locate<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        mut hash: u64,
        key: &Q,
    ) -> Result<(u64, Option<Position>), TryReserveError> {
        if self.rekeyed.is_some() || self.table.is_flooded() {
            self.watch(key)?;
            hash = self.own_hash(key);
        }
        Ok((hash, self.table.locate(hash, |(own, _)| key.equivalent(own))))
    }

    /// Makes room for an entry of this hash, which is not there.
    #[inline]
    pub(super) fn room_for(&mut self, hash: u64) -> Result<Room<(K, V)>, TryReserveError> {
        let Self { table, hasher, rekeyed } = self;
        let hasher = rekey::own_hasher(hasher, rekeyed);
        table.make_room(hash, &hasher)
    }

    /// Takes out the entry of `key`.
    #[inline]
    pub(super) fn remove_by<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<(K, V)> {
        match self.try_locate(hash, key) {
            Ok((_, at)) => self.take(at?),
            // There is no memory to bring it over.
            Err(_) => self.take_former(key),
        }
    }

    /// Takes out the entry at a position.
    #[inline]
    pub(super) fn take(&mut self, at: Position) -> Option<(K, V)> {
        let Self { table, hasher, rekeyed } = self;
        let hasher = rekey::own_hasher(hasher, rekeyed);
        let entry = table.take(at)?;
        table.fill_hole(at, &hasher);
        table.tidy(1, &hasher);
        Some(entry)
    }

    /// Makes room for `additional` entries more, until others leave.
    pub(super) fn make_room(&mut self, additional: usize) -> Result<(), TryReserveError> {
        let former = self.former_table().map_or(0, Table::len);
        let additional = additional.checked_add(former).ok_or(TryReserveError::OVERFLOW)?;
        let Self { table, hasher, rekeyed } = self;
        let hasher = rekey::own_hasher(hasher, rekeyed);
        table.reserve(additional, &hasher)
    }
}
