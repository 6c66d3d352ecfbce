//! What the map does against floods: another hash with a secret of its own, and a move to it.
//!
//! Nothing of this is on the way of a look-up but one test of a pointer. Before an insertion or
//! removal goes to work it calls [`watch`](TrashMap::watch), which
//!
//! 1. begins a rekeying, if the table says that it is flooded: the table becomes the *former* one;
//! 2. moves what is in a few buckets of the former table to the table, until it is empty;
//! 3. brings the entry over that the operation is about, so that it finds it where it looks.
//!
//! An entry is moved when room has been made for it: no code of the user's runs while it is in
//! neither table, and memory that cannot be had leaves it where it is.

use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::error::TryReserveError;
use super::shell::{empty_box, fill};
use super::table::{Emptied, Position, Table};
use crate::hash::DefaultHashBuilder;

/// Buckets of the former table that are looked into with each operation. With two or more, it is
/// empty long before the table has grown as large.
const BUCKETS: usize = 4;

/// What there is after a flood.
#[derive(Clone)]
pub(super) struct Rekeyed<K, V> {
    /// Hashes all keys of the table.
    pub(super) secret: DefaultHashBuilder,
    /// The table from before, until it is empty.
    pub(super) former: Option<Former<K, V>>,
    /// How many secrets there have been.
    pub(super) count: usize,
    /// With fewer entries, no other secret is drawn: keys that no secret helps against would have us
    /// move all the time.
    again_at: usize,
}

/// A table under a hash that somebody knows.
pub(super) struct Former<K, V> {
    pub(super) table: Table<(K, V)>,
    /// The secret before; none if it was the hasher's hash.
    pub(super) secret: Option<DefaultHashBuilder>,
    emptied: Emptied,
}

impl<K: Clone, V: Clone> Clone for Former<K, V> {
    fn clone(&self) -> Self {
        let table = self.table.try_clone().unwrap_or_else(|error| error.raise());
        Self { table, secret: self.secret.clone(), emptied: self.emptied }
    }
}

/// A secret that is as hard to guess as the hash of a key, and as what [`DefaultHashBuilder::new`] draws, which without
/// an operating system is not hard. The hasher is asked for keys only: it may refuse all else.
fn secret(hash_of_a_key: u64) -> DefaultHashBuilder {
    let drawn = DefaultHashBuilder::new();
    DefaultHashBuilder::with_seeds(
        [0, 1, 2, 3].map(|word: u64| drawn.hash_one((word, hash_of_a_key))),
    )
}

/// The hash of `key`: that of the secret, if there is one.
#[inline]
pub(super) fn hash<Q: Hash + ?Sized>(
    hasher: &impl BuildHasher,
    secret: Option<&DefaultHashBuilder>,
    key: &Q,
) -> u64 {
    match secret {
        None => hasher.hash_one(key),
        Some(secret) => secret.hash_one(key),
    }
}

/// The hashes of entries in the table.
#[inline]
pub(super) fn own_hasher<K: Hash, V>(
    hasher: &impl BuildHasher,
    rekeyed: &Option<Box<Rekeyed<K, V>>>,
) -> impl Fn(&(K, V)) -> u64 {
    let secret = rekeyed.as_ref().map(|rekeyed| &rekeyed.secret);
    move |(key, _)| hash(hasher, secret, key)
}

impl<K, V, S> TrashMap<K, V, S> {
    /// The table from before, if it is not empty yet.
    pub(super) fn former_table(&self) -> Option<&Table<(K, V)>> {
        self.rekeyed.as_ref()?.former.as_ref().map(|former| &former.table)
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> TrashMap<K, V, S> {
    /// The hash of `key` in the table.
    pub(super) fn own_hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        hash(&self.hasher, self.rekeyed.as_ref().map(|rekeyed| &rekeyed.secret), key)
    }

    /// Sees to a flood, and that `key` is in the table if it is in the map.
    ///
    /// # Errors
    ///
    /// If there is no memory to bring its entry over.
    #[cold]
    #[inline(never)]
    pub(super) fn watch<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        key: &Q,
    ) -> Result<(), TryReserveError> {
        if self.table.is_flooded() {
            self.rekey(key);
        }
        self.locate_former(key).map_or(Ok(()), |at| self.bring(at))?;
        // Without memory, the move goes on another time.
        let _ = self.move_some(BUCKETS);
        Ok(())
    }

    /// Sees to it that all these keys are in the table if they are in the map, so that none moves while
    /// they are located.
    pub(super) fn bring_over<Q: Hash + Equivalent<K> + ?Sized>(&mut self, keys: &[(u64, &Q)]) {
        while self.rekeyed.is_some() || self.table.is_flooded() {
            let rekeys = self.rekeys();
            for (_, key) in keys {
                self.watch(*key).unwrap_or_else(|error| error.raise());
            }
            // Another rekeying needs twice as many entries, so this ends.
            if self.rekeys() == rekeys {
                return;
            }
        }
    }

    /// Draws a secret, unless a move is under way or the last secret is not old enough. Any key will do.
    fn rekey<Q: Hash + ?Sized>(&mut self, key: &Q) {
        self.table.forget_flood();
        if self.former_table().is_some() {
            return;
        }
        let again_at = self.rekeyed.as_ref().map_or(0, |rekeyed| rekeyed.again_at);
        if self.table.len() < again_at {
            return;
        }
        let secret = secret(self.hasher.hash_one(key));
        // Without memory it begins another time; the table will say that it is flooded again.
        let mut table = Table::new();
        let (Ok(shell), Ok(())) = (empty_box(), table.reserve(1, &|_| 0)) else {
            return;
        };
        table.keep(self.table.kept());
        let again_at = 2 * self.table.len();
        let former = core::mem::replace(&mut self.table, table);
        let count = self.rekeys() + 1;
        let before = self.rekeyed.take().map(|rekeyed| rekeyed.secret);
        let former = Former { table: former, secret: before, emptied: Emptied::default() };
        self.rekeyed = Some(fill(shell, Rekeyed { secret, former: Some(former), count, again_at }));
    }

    /// Where the entry of `key` is in the former table.
    fn locate_former<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Position> {
        let former = self.rekeyed.as_ref()?.former.as_ref()?;
        let hash = hash(&self.hasher, former.secret.as_ref(), key);
        former.table.locate(hash, |(own, _)| key.equivalent(own))
    }

    /// The former table, to be changed.
    fn former_table_mut(&mut self) -> Option<&mut Table<(K, V)>> {
        self.rekeyed.as_mut()?.former.as_mut().map(|former| &mut former.table)
    }

    /// The entry of `key` in the former table.
    pub(super) fn former_mut<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        key: &Q,
    ) -> Option<&mut (K, V)> {
        let at = self.locate_former(key)?;
        self.former_table_mut()?.get_mut(at)
    }

    /// Takes the entry of `key` out of the former table.
    pub(super) fn take_former<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        key: &Q,
    ) -> Option<(K, V)> {
        let at = self.locate_former(key)?;
        self.former_table_mut()?.take(at)
    }

    /// Moves one entry of the former table to the table.
    fn bring(&mut self, at: Position) -> Result<(), TryReserveError> {
        let Self { table, rekeyed, .. } = self;
        let Some(Rekeyed { secret, former: Some(former), .. }) = rekeyed.as_deref_mut() else {
            return Ok(());
        };
        let Some((key, _)) = former.table.get(at) else { return Ok(()) };
        let room = table.make_room(secret.hash_one(key), &|(key, _)| secret.hash_one(key))?;
        if let Some(entry) = former.table.take(at) {
            table.put(room, entry);
        }
        Ok(())
    }

    /// Moves what is in so many buckets of the former table.
    fn move_some(&mut self, mut buckets: usize) -> Result<(), TryReserveError> {
        while let Some(Rekeyed { former: Some(former), .. }) = self.rekeyed.as_deref_mut() {
            let next = former.table.next_to_empty(&mut former.emptied, &mut buckets);
            match next {
                Some(at) => self.bring(at)?,
                None if buckets == 0 => return Ok(()),
                None => break,
            }
        }
        if let Some(rekeyed) = &mut self.rekeyed {
            rekeyed.former = None;
        }
        Ok(())
    }

    /// Moves all that is in the former table, as far as there is memory.
    pub(super) fn settle(&mut self) {
        let _ = self.move_some(usize::MAX);
    }
}
