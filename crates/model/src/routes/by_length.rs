//! The reference model for large tables: a hash table with one lookup for each prefix length.

use core::hash::Hash;
use std::collections::{BTreeMap, HashMap};

use flowtable::key::bits::Address;
use flowtable::{DefaultHashBuilder, Prefix};

#[derive(Clone)]
pub struct RoutesByLength<A, V> {
    routes: HashMap<Prefix<A>, V, DefaultHashBuilder>,
    /// The number of routes of each length that has any.
    lens: BTreeMap<u32, usize>,
}

impl<A: Address + Hash, V> Default for RoutesByLength<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address + Hash, V> RoutesByLength<A, V> {
    pub fn new() -> Self {
        let hasher = DefaultHashBuilder::with_seed(4);
        Self { routes: HashMap::with_hasher(hasher), lens: BTreeMap::new() }
    }

    pub fn len(&self) -> usize {
        self.routes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        let old = self.routes.insert(prefix, value);
        if old.is_none() {
            *self.lens.entry(prefix.len()).or_insert(0) += 1;
        }
        old
    }

    pub fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let old = self.routes.remove(prefix)?;
        let count = self.lens.get_mut(&prefix.len()).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.lens.remove(&prefix.len());
        }
        Some(old)
    }

    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        self.routes.get(prefix)
    }

    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.lens.keys().rev().find_map(|&len| {
            let prefix = Prefix::new(*address, len).expect("there is a route of this length");
            Some((prefix, self.routes.get(&prefix)?))
        })
    }

    /// All routes, in order.
    pub fn iter(&self) -> Vec<(Prefix<A>, &V)> {
        let mut routes: Vec<_> =
            self.routes.iter().map(|(prefix, value)| (*prefix, value)).collect();
        routes.sort_unstable_by_key(|(prefix, _)| *prefix);
        routes
    }

    /// All prefixes, in order.
    pub fn prefixes(&self) -> Vec<Prefix<A>> {
        self.iter().into_iter().map(|(prefix, _)| prefix).collect()
    }
}
