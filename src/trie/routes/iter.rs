//! The iterator over an [`LcRouteTable`](crate::trie::routes::LcRouteTable).

use core::fmt;
use core::iter::FusedIterator;
use core::slice;

use super::{Aliases, Slen};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::trie::{Trie, Walk};

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
            let leaf = self.trie.next_leaf(&mut self.walk)?;
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
