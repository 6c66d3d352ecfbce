//! Operators on two sets: new sets, and changes of the first set.

use core::hash::{BuildHasher, Hash};
use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Sub, SubAssign};

use super::TrashSet;
use crate::memory::Allocator;
use crate::trash::EntryRef;

impl<T: Eq + Hash + Clone, S: BuildHasher + Default> BitOr for &TrashSet<T, S> {
    type Output = TrashSet<T, S>;

    /// Returns the union.
    fn bitor(self, other: Self) -> TrashSet<T, S> {
        self.union(other).cloned().collect()
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher + Default> BitAnd for &TrashSet<T, S> {
    type Output = TrashSet<T, S>;

    /// Returns the intersection.
    fn bitand(self, other: Self) -> TrashSet<T, S> {
        self.intersection(other).cloned().collect()
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher + Default> BitXor for &TrashSet<T, S> {
    type Output = TrashSet<T, S>;

    /// Returns the symmetric difference.
    fn bitxor(self, other: Self) -> TrashSet<T, S> {
        self.symmetric_difference(other).cloned().collect()
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher + Default> Sub for &TrashSet<T, S> {
    type Output = TrashSet<T, S>;

    /// Returns the difference.
    fn sub(self, other: Self) -> TrashSet<T, S> {
        self.difference(other).cloned().collect()
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher, A: Allocator + Clone> BitOrAssign<&Self>
    for TrashSet<T, S, A>
{
    /// Inserts the values of `other`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashSet;
    ///
    /// let mut set = TrashSet::from([1, 2]);
    /// set |= &TrashSet::from([3]);
    /// set -= &TrashSet::from([1, 7]);
    /// set ^= &TrashSet::from([3, 4]);
    /// assert_eq!(set, TrashSet::from([2, 4]));
    /// set &= &TrashSet::from([4, 5]);
    /// assert_eq!(set, TrashSet::from([4]));
    /// ```
    fn bitor_assign(&mut self, other: &Self) {
        for value in other {
            self.map.entry_ref(value).or_default();
        }
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher, A: Allocator + Clone> BitAndAssign<&Self>
    for TrashSet<T, S, A>
{
    /// Removes the values that are not in `other`.
    fn bitand_assign(&mut self, other: &Self) {
        self.retain(|value| other.contains(value));
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher, A: Allocator + Clone> BitXorAssign<&Self>
    for TrashSet<T, S, A>
{
    /// Removes the values that both sets have, and inserts the values that only `other` has.
    fn bitxor_assign(&mut self, other: &Self) {
        for value in other {
            match self.map.entry_ref(value) {
                EntryRef::Occupied(entry) => entry.remove(),
                EntryRef::Vacant(entry) => *entry.insert(()),
            }
        }
    }
}

impl<T: Eq + Hash + Clone, S: BuildHasher, A: Allocator + Clone> SubAssign<&Self>
    for TrashSet<T, S, A>
{
    /// Removes the values that are in `other`. It goes through the smaller one of both sets.
    fn sub_assign(&mut self, other: &Self) {
        if self.len() <= other.len() {
            self.retain(|value| !other.contains(value));
            return;
        }
        for value in other {
            self.remove(value);
        }
    }
}
