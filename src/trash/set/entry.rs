//! The place of one value in a [`TrashSet`](super::TrashSet), filled or not.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use crate::memory::{Allocator, Global};
use crate::trash as map;

/// The entry of one value, occupied or vacant: see [`TrashSet::entry`](super::TrashSet::entry). Its
/// methods do not search again.
///
/// # Example
///
/// ```
/// use flowtable::trash::set::Entry;
///
/// let mut seen = flowtable::TrashSet::new();
/// seen.entry("a").or_insert();
/// assert_eq!(seen.entry("b").insert().get(), &"b");
/// assert_eq!(seen.entry("c").get(), &"c");
/// assert_eq!(seen.len(), 2);
/// let Entry::Vacant(entry) = seen.entry("d") else { panic!("there is no d") };
/// assert_eq!(entry.into_value(), "d");
/// ```
pub enum Entry<'a, T, S, A: Allocator + Clone = Global> {
    /// The value is in the set.
    Occupied(OccupiedEntry<'a, T, S, A>),
    /// The value is not in the set.
    Vacant(VacantEntry<'a, T, S, A>),
}

/// The entry of a value that is in the set.
pub struct OccupiedEntry<'a, T, S, A: Allocator + Clone = Global>(
    pub(super) map::OccupiedEntry<'a, T, (), S, A>,
);

/// The entry of a value that is not in the set.
pub struct VacantEntry<'a, T, S, A: Allocator + Clone = Global>(
    pub(super) map::VacantEntry<'a, T, (), S, A>,
);

impl<'a, T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> Entry<'a, T, S, A> {
    /// Returns a reference to the value: of the set if it is there, else the given one.
    #[must_use]
    pub fn get(&self) -> &T {
        match self {
            Self::Occupied(entry) => entry.get(),
            Self::Vacant(entry) => entry.get(),
        }
    }

    /// Inserts the value if it is not in the set, and returns the occupied entry.
    pub fn insert(self) -> OccupiedEntry<'a, T, S, A> {
        match self {
            Self::Occupied(entry) => entry,
            Self::Vacant(entry) => entry.insert(),
        }
    }

    /// Inserts the value if it is not in the set.
    pub fn or_insert(self) {
        self.insert();
    }
}

impl<T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> OccupiedEntry<'_, T, S, A> {
    /// Returns a reference to the value in the set.
    #[must_use]
    pub fn get(&self) -> &T {
        self.0.key()
    }

    /// Removes the value from the set, and returns it.
    pub fn remove(self) -> T {
        self.0.remove_entry().0
    }
}

impl<'a, T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> VacantEntry<'a, T, S, A> {
    /// Returns a reference to the value that the entry was created with.
    #[must_use]
    pub fn get(&self) -> &T {
        self.0.key()
    }

    /// Returns the value that the entry was created with.
    #[must_use]
    pub fn into_value(self) -> T {
        self.0.into_key()
    }

    /// Inserts the value, and returns the entry, which is occupied then.
    pub fn insert(self) -> OccupiedEntry<'a, T, S, A> {
        OccupiedEntry(self.0.insert_entry(()))
    }
}

impl<T: Eq + Hash + fmt::Debug, S: BuildHasher, A: Allocator + Clone> fmt::Debug
    for Entry<'_, T, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => f.debug_tuple("Occupied").field(entry).finish(),
            Self::Vacant(entry) => f.debug_tuple("Vacant").field(entry).finish(),
        }
    }
}

impl<T: Eq + Hash + fmt::Debug, S: BuildHasher, A: Allocator + Clone> fmt::Debug
    for OccupiedEntry<'_, T, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OccupiedEntry").field("value", self.get()).finish_non_exhaustive()
    }
}

impl<T: Eq + Hash + fmt::Debug, S: BuildHasher, A: Allocator + Clone> fmt::Debug
    for VacantEntry<'_, T, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VacantEntry").field(self.get()).finish()
    }
}
