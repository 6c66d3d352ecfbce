//! An optional index in four bytes.

use core::iter;

/// The index of a slot, or none: an `Option<u32>` in four bytes, in which `u32::MAX` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptIndex(u32);

impl OptIndex {
    /// No index.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Wraps `index`, which must be less than `u32::MAX`.
    #[inline]
    pub(crate) const fn some(index: u32) -> Self {
        debug_assert!(index != u32::MAX);
        Self(index)
    }

    /// Returns the index, if there is one.
    #[inline]
    pub(crate) const fn get(self) -> Option<u32> {
        if self.is_none() { None } else { Some(self.0) }
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        !self.is_none()
    }

    /// Iterates over the indices of a singly linked list that begins with this one; `next` returns
    /// the link of an entry.
    #[inline]
    pub(crate) fn list(self, next: impl Fn(u32) -> Self) -> impl Iterator<Item = u32> {
        iter::successors(self.get(), move |&index| next(index).get())
    }
}

impl From<Option<u32>> for OptIndex {
    #[inline]
    fn from(index: Option<u32>) -> Self {
        index.map_or(Self::NONE, Self::some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_contains_no_index() {
        assert_eq!((OptIndex::NONE.get(), OptIndex::some(0).get()), (None, Some(0)));
        assert!(OptIndex::NONE.is_none() && OptIndex::some(u32::MAX - 1).is_some());
        assert_eq!(OptIndex::from(None), OptIndex::NONE);
        assert_eq!(OptIndex::from(Some(3)), OptIndex::some(3));
    }

    #[test]
    fn a_list_ends_at_none() {
        let links = [OptIndex::some(2), OptIndex::NONE, OptIndex::some(1)];
        let list = |first: OptIndex| first.list(|index| links[index as usize]);
        assert!(list(OptIndex::some(0)).eq([0, 2, 1]));
        assert_eq!(list(OptIndex::NONE).count(), 0);
    }
}
