//! The list of routes with the same address, longest prefix first.

use alloc::vec;
use alloc::vec::Vec;

/// Routes of one address, sorted by the length of their suffix.
#[derive(Clone, Debug)]
pub(crate) struct Aliases<V> {
    /// Suffix lengths increase strictly, so prefixes become shorter. Never empty in a trie.
    routes: Vec<(u32, V)>,
}

impl<V> Aliases<V> {
    /// Creates a list of one route.
    pub(super) fn new(suffix: u32, value: V) -> Self {
        Self { routes: vec![(suffix, value)] }
    }

    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    /// The suffix of the shortest prefix; 0 if there are no routes.
    pub(super) fn longest_suffix(&self) -> u32 {
        self.routes.last().map_or(0, |&(suffix, _)| suffix)
    }

    pub(super) fn get(&self, suffix: u32) -> Option<&V> {
        self.position(suffix).ok().map(|index| &self.routes[index].1)
    }

    pub(super) fn get_mut(&mut self, suffix: u32) -> Option<&mut V> {
        self.position(suffix).ok().map(|index| &mut self.routes[index].1)
    }

    /// Suffix lengths and values, shortest prefix first.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut V)> {
        self.routes.iter_mut().rev().map(|(suffix, value)| (*suffix, value))
    }

    /// Returns the longest prefix whose suffix has at least `suffix` bits.
    pub(super) fn first_from(&self, suffix: u32) -> Option<(u32, &V)> {
        let (Ok(index) | Err(index)) = self.position(suffix);
        self.routes.get(index).map(|(suffix, value)| (*suffix, value))
    }

    pub(super) fn insert(&mut self, suffix: u32, value: V) -> Option<V> {
        match self.position(suffix) {
            Ok(index) => Some(core::mem::replace(&mut self.routes[index].1, value)),
            Err(index) => {
                // Most addresses have one or two routes; `Vec` would reserve four.
                self.routes.reserve_exact(1);
                self.routes.insert(index, (suffix, value));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, suffix: u32) -> Option<V> {
        self.position(suffix).ok().map(|index| self.routes.remove(index).1)
    }

    /// Suffix lengths and values, longest prefix first.
    pub(super) fn as_slice(&self) -> &[(u32, V)] {
        &self.routes
    }

    /// Bytes allocated.
    pub(super) fn allocation_size(&self) -> usize {
        self.routes.capacity() * size_of::<(u32, V)>()
    }

    /// Whether the list is sorted and not empty.
    pub(super) fn is_sorted(&self) -> bool {
        !self.routes.is_empty() && self.routes.is_sorted_by(|(a, _), (b, _)| a < b)
    }

    /// Returns the index of the route with this suffix, or the index at which to insert it.
    fn position(&self, suffix: u32) -> Result<usize, usize> {
        self.routes.binary_search_by_key(&suffix, |&(suffix, _)| suffix)
    }
}
