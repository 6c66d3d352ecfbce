//! Operations on two sets: iterators, and operators.

use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;
use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Sub, SubAssign};

use super::TrashSet;
use crate::memory::Allocator;
use crate::trash::EntryRef;

impl<T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> TrashSet<T, S, A> {
    /// Returns an iterator over the values that are in this set and not in `other`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashSet;
    ///
    /// let (a, b) = (TrashSet::from([1, 2, 3]), TrashSet::from([3, 4]));
    /// let sorted = |mut values: Vec<i32>| {
    ///     values.sort();
    ///     values
    /// };
    /// assert_eq!(sorted(a.difference(&b).copied().collect()), [1, 2]);
    /// assert_eq!(sorted(a.intersection(&b).copied().collect()), [3]);
    /// assert_eq!(sorted(a.union(&b).copied().collect()), [1, 2, 3, 4]);
    /// assert_eq!(sorted(a.symmetric_difference(&b).copied().collect()), [1, 2, 4]);
    /// assert_eq!((&a | &b, &a & &b), (TrashSet::from([1, 2, 3, 4]), TrashSet::from([3])));
    /// assert_eq!((&a - &b, &a ^ &b), (TrashSet::from([1, 2]), TrashSet::from([1, 2, 4])));
    ///
    /// let one = TrashSet::from([1]);
    /// assert!(one.is_subset(&a) && a.is_superset(&one) && one.is_disjoint(&b));
    /// ```
    pub fn difference<'a>(&'a self, other: &'a Self) -> impl FusedIterator<Item = &'a T> + Clone {
        self.iter().filter(|value| !other.contains(*value))
    }

    /// Returns an iterator over the values that are in both sets. It goes through the smaller one.
    pub fn intersection<'a>(&'a self, other: &'a Self) -> impl FusedIterator<Item = &'a T> + Clone {
        let (smaller, larger) = self.by_size(other);
        smaller.iter().filter(|value| larger.contains(*value))
    }

    /// Returns an iterator over the values that are in one of both sets at least.
    pub fn union<'a>(&'a self, other: &'a Self) -> impl FusedIterator<Item = &'a T> + Clone {
        let (smaller, larger) = self.by_size(other);
        larger.iter().chain(smaller.difference(larger))
    }

    /// Returns an iterator over the values that are in one of both sets only.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl FusedIterator<Item = &'a T> + Clone {
        self.difference(other).chain(other.difference(self))
    }

    /// Both sets, the smaller one first.
    fn by_size<'a>(&'a self, other: &'a Self) -> (&'a Self, &'a Self) {
        if self.len() <= other.len() { (self, other) } else { (other, self) }
    }

    /// Whether no value is in both sets.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.intersection(other).next().is_none()
    }

    /// Whether `other` has all values of this set.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.len() <= other.len() && self.iter().all(|value| other.contains(value))
    }

    /// Whether this set has all values of `other`.
    #[must_use]
    pub fn is_superset(&self, other: &Self) -> bool {
        other.is_subset(self)
    }
}

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
