//! The routes that begin at one address: a short list, the longest prefix first.

use alloc::vec;
use alloc::vec::Vec;

/// Routes of one address by the length of their suffix.
#[derive(Clone, Debug)]
pub(crate) struct Aliases<V> {
    /// Suffixes rise strictly, and so prefixes become shorter. Never empty in a trie.
    routes: Vec<(u32, V)>,
}

impl<V> Aliases<V> {
    pub(super) fn one(suffix: u32, value: V) -> Self {
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
        self.place(suffix).ok().map(|at| &self.routes[at].1)
    }

    /// The longest prefix whose suffix has so many bits at least.
    pub(super) fn first_from(&self, suffix: u32) -> Option<(u32, &V)> {
        let (Ok(at) | Err(at)) = self.place(suffix);
        self.routes.get(at).map(|(suffix, value)| (*suffix, value))
    }

    pub(super) fn insert(&mut self, suffix: u32, value: V) -> Option<V> {
        match self.place(suffix) {
            Ok(at) => Some(core::mem::replace(&mut self.routes[at].1, value)),
            Err(at) => {
                // Most addresses have one or two routes, and a vector makes room for four.
                self.routes.reserve_exact(1);
                self.routes.insert(at, (suffix, value));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, suffix: u32) -> Option<V> {
        self.place(suffix).ok().map(|at| self.routes.remove(at).1)
    }

    /// Suffixes and values, the longest prefix first.
    pub(super) fn as_slice(&self) -> &[(u32, V)] {
        &self.routes
    }

    /// Bytes allocated.
    pub(super) fn allocation_size(&self) -> usize {
        self.routes.capacity() * size_of::<(u32, V)>()
    }

    /// Whether there are routes, and they are in order.
    pub(super) fn is_in_order(&self) -> bool {
        !self.routes.is_empty() && self.routes.is_sorted_by(|(a, _), (b, _)| a < b)
    }

    /// Where the route of a suffix is, or where it would go.
    fn place(&self, suffix: u32) -> Result<usize, usize> {
        self.routes.binary_search_by_key(&suffix, |&(suffix, _)| suffix)
    }
}
