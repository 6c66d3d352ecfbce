//! The entry of a key that has a value.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::mem;

use super::TrashMap;
use crate::memory::{Allocator, Global};
use crate::table::Position;

/// The entry of a key that has a value.
///
/// # Example
///
/// ```
/// use flowtable::{TrashMap, trash::Entry};
///
/// // Two packets are left of each; with the last one the flow goes.
/// let mut left = TrashMap::from([("a", 2), ("b", 2)]);
/// for name in ["a", "b", "a"] {
///     let Entry::Occupied(mut flow) = left.entry(name) else { panic!("it has gone") };
///     *flow.get_mut() -= 1;
///     if *flow.get() == 0 {
///         assert_eq!(flow.remove_entry(), ("a", 0));
///     }
/// }
/// let Entry::Occupied(mut flow) = left.entry("b") else { panic!("it has gone") };
/// assert_eq!(flow.insert(5), 1);
/// *flow.into_mut() += 1;
/// assert_eq!(left, TrashMap::from([("b", 6)]));
/// ```
pub struct OccupiedEntry<'a, K, V, S, A: Allocator + Clone = Global> {
    pub(super) map: &'a mut TrashMap<K, V, S, A>,
    /// Of an entry of the map's table, which does not change but through this.
    pub(super) at: Position,
}

/// Why an occupied entry has an entry.
pub(super) const OCCUPIED: &str = "the map cannot change while its entry is looked at";

impl<'a, K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> OccupiedEntry<'a, K, V, S, A> {
    /// The key in the map.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.map.current().get(self.at).expect(OCCUPIED).0
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.map.current().get(self.at).expect(OCCUPIED).1
    }

    /// Returns a mutable reference to the value.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.map.current_table_mut().get_mut(self.at).expect(OCCUPIED).1
    }

    /// Converts the entry into a mutable reference to its value, for the lifetime of the map's
    /// borrow.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        self.into_entry().1
    }

    /// Converts the entry into references to its key and value, for the lifetime of the map's
    /// borrow.
    ///
    /// # Example
    ///
    /// ```
    /// let mut names = flowtable::TrashMap::from([(String::from("a"), 1)]);
    /// let (name, value) = names.entry_ref("a").or_insert_entry(5).into_entry();
    /// *value += 1;
    /// assert_eq!((name.as_str(), value), ("a", &mut 2));
    /// ```
    #[must_use]
    pub fn into_entry(self) -> (&'a K, &'a mut V) {
        let (key, value) = self.map.current_table_mut().get_mut(self.at).expect(OCCUPIED);
        (key, value)
    }

    /// Gives the key another value and returns the one that it had.
    pub fn insert(&mut self, value: V) -> V {
        mem::replace(self.get_mut(), value)
    }

    /// Removes the key and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the key and returns it with its value.
    pub fn remove_entry(self) -> (K, V) {
        self.map.take(self.at).expect(OCCUPIED)
    }

    /// Replaces the key by an equal one, and returns the replaced key.
    ///
    /// # Panics
    ///
    /// If the keys are not equal.
    ///
    /// # Example
    ///
    /// ```
    /// use std::rc::Rc;
    /// use flowtable::TrashMap;
    ///
    /// let shared: Rc<str> = "a".into();
    /// let mut names: TrashMap<Rc<str>, u32> = TrashMap::from([("a".into(), 1)]);
    /// let mut entry = names.entry(shared.clone()).or_insert_entry(0);
    /// entry.replace_key(shared.clone());
    /// assert!(Rc::ptr_eq(entry.key(), &shared));
    /// assert!(Rc::ptr_eq(&entry.replace_key_unchecked("a".into()), &shared)); // it is equal
    /// ```
    pub fn replace_key(&mut self, key: K) -> K {
        assert!(*self.key() == key, "the keys are not equal");
        self.replace_key_unchecked(key)
    }

    /// Replaces the key by one that the caller has compared: see
    /// [`replace_key`](Self::replace_key). A key that is not equal may not be found afterwards.
    pub fn replace_key_unchecked(&mut self, key: K) -> K {
        let entry = self.map.current_table_mut().get_mut(self.at).expect(OCCUPIED);
        mem::replace(&mut entry.0, key)
    }
}

impl<K: Eq + Hash + fmt::Debug, V: fmt::Debug, S: BuildHasher, A: Allocator + Clone> fmt::Debug
    for OccupiedEntry<'_, K, V, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("OccupiedEntry");
        fields.field("key", self.key()).field("value", self.get()).finish_non_exhaustive()
    }
}
