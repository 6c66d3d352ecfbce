//! The leaves of an [`LcRouteTable`](super::LcRouteTable): lists of routes with the same address,
//! and an iterator over all routes.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;
use core::slice;

use super::Slen;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::trie::{FORWARD, Trie, Walk};

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

/// An iterator over routes by address, shorter prefixes first. See
/// [`LcRouteTable::iter`](super::LcRouteTable::iter).
///
/// # Example
///
/// ```
/// use flowtable::trie::routes::LcRouteTable;
/// use flowtable::Prefix;
///
/// let all = Prefix::default_route();
/// let routes = LcRouteTable::from([(Prefix::host(0_u8), 'h'), (all, 'a')]);
/// let mut iterator = routes.iter();
/// assert_eq!((iterator.len(), iterator.next()), (2, Some((all, &'a'))));
/// ```
pub struct Iter<'a, A, V> {
    trie: &'a Trie<A, Aliases<V>, Slen>,
    /// The leaves after the current one.
    walk: Walk,
    /// The current leaf and the rest of its routes.
    current: Option<(&'a A, slice::Iter<'a, (u32, V)>)>,
    /// The number of remaining routes.
    remaining: usize,
}

impl<'a, A: Address, V> Iter<'a, A, V> {
    pub(super) fn new(trie: &'a Trie<A, Aliases<V>, Slen>, len: usize) -> Self {
        Self { trie, walk: trie.walk(), current: None, remaining: len }
    }
}

impl<'a, A: Address, V> Iterator for Iter<'a, A, V> {
    type Item = (Prefix<A>, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((address, routes)) = &mut self.current {
                if let Some((suffix, value)) = routes.next_back() {
                    self.remaining -= 1;
                    return Some((Prefix::of(address, A::BITS - suffix), value));
                }
            }
            let leaf = self.trie.next_leaf::<FORWARD>(&mut self.walk)?;
            let (address, aliases) = self.trie.leaf(leaf);
            self.current = Some((address, aliases.as_slice().iter()));
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl<A: Address, V> ExactSizeIterator for Iter<'_, A, V> {}
impl<A: Address, V> FusedIterator for Iter<'_, A, V> {}

impl<A, V> Clone for Iter<'_, A, V> {
    fn clone(&self) -> Self {
        Self {
            trie: self.trie,
            walk: self.walk,
            current: self.current.clone(),
            remaining: self.remaining,
        }
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
