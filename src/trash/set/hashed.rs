//! Forms of the methods that take the hash of a value, besides those in `methods.rs`.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashSet;
use crate::memory::Allocator;
use crate::trash::TryInsertError;

impl<T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> TrashSet<T, S, A> {
    /// Calls `each` with the index of each value in the slice and whether the set has it, like
    /// [`contains_batch`](Self::contains_batch), given the hashes: see [`TrashMap::get_hashed`].
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as values.
    ///
    /// # Example
    ///
    /// ```
    /// let blocked = flowtable::TrashSet::from([7, 8]);
    /// let (values, mut passed) = ([5, 7, 9], vec![]);
    /// let hashes = values.map(|value| blocked.hash_of(&value)); // once for all sets
    /// blocked.contains_batch_hashed(&hashes, &values, |packet, is_blocked| {
    ///     if !is_blocked {
    ///         passed.push(packet);
    ///     }
    /// });
    /// assert_eq!(passed, [0, 2]);
    /// ```
    ///
    /// [`TrashMap::get_hashed`]: crate::TrashMap::get_hashed
    pub fn contains_batch_hashed<Q: Hash + Equivalent<T>>(
        &self,
        hashes: &[u64],
        values: &[Q],
        mut each: impl FnMut(usize, bool),
    ) {
        let each = |index, found: Option<&()>| each(index, found.is_some());
        self.map.get_batch_with_hashed(hashes, values, each);
    }

    /// Inserts a value, like [`try_insert`](Self::try_insert), given its hash: see
    /// [`TrashMap::get_hashed`](crate::TrashMap::get_hashed).
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the set is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut set = flowtable::TrashSet::new();
    /// let hash = set.hash_of(&7);
    /// assert_eq!(set.try_insert_hashed(hash, 7), Ok(true));
    /// assert_eq!(set.replace_hashed(hash, 7), Some(7));
    /// assert_eq!(set.get_or_insert_hashed(hash, 7), &7);
    /// assert!(set.remove_hashed(hash, &7) && !set.remove_hashed(hash, &7));
    /// ```
    pub fn try_insert_hashed(&mut self, hash: u64, value: T) -> Result<bool, TryInsertError<T>> {
        match self.map.try_insert_hashed(hash, value, ()) {
            Ok(replaced) => Ok(replaced.is_none()),
            Err(TryInsertError { refused: (refused, ()), error }) => {
                Err(TryInsertError { refused, error })
            }
        }
    }

    /// Inserts a value, and returns the equal one that it replaces, given its hash: see
    /// [`TrashMap::get_hashed`](crate::TrashMap::get_hashed).
    pub fn replace_hashed(&mut self, hash: u64, value: T) -> Option<T> {
        let (hash, at) = self.locate(hash, &value);
        if let Some((own, ())) = at.and_then(|at| self.map.current_table_mut().get_mut(at)) {
            return Some(core::mem::replace(own, value));
        }
        self.insert_absent(hash, value);
        None
    }

    /// Inserts a value if there is no equal one, given its hash, and returns a reference to the one
    /// in the set: see [`TrashMap::get_hashed`](crate::TrashMap::get_hashed).
    pub fn get_or_insert_hashed(&mut self, hash: u64, value: T) -> &T {
        let (hash, at) = self.locate(hash, &value);
        let at = at.unwrap_or_else(|| self.insert_absent(hash, value));
        self.at(at)
    }

    /// Removes a value, given its hash, and returns whether it was there: see
    /// [`TrashMap::get_hashed`](crate::TrashMap::get_hashed).
    pub fn remove_hashed<Q: Hash + Equivalent<T> + ?Sized>(
        &mut self,
        hash: u64,
        value: &Q,
    ) -> bool {
        self.take_hashed(hash, value).is_some()
    }
}
