//! Routes in a row: the naive twin of the routing tables. Each question goes through all of them.
#![allow(dead_code, reason = "not every test asks everything")]

use flowtable::{Address, Prefix};

/// Routes in no order. One of each prefix.
#[derive(Clone, Debug)]
pub(crate) struct LinearRoutes<A, V> {
    routes: Vec<(Prefix<A>, V)>,
}

impl<A: Address, V> LinearRoutes<A, V> {
    pub(crate) fn new() -> Self {
        Self { routes: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.routes.clear();
    }

    pub(crate) fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        let before = self.remove(&prefix);
        self.routes.push((prefix, value));
        before
    }

    pub(crate) fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let at = self.routes.iter().position(|(other, _)| other == prefix)?;
        Some(self.routes.swap_remove(at).1)
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Prefix<A>, &mut V) -> bool) {
        self.routes.retain_mut(|(prefix, value)| keep(*prefix, value));
    }

    pub(crate) fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        self.routes.iter().find(|(other, _)| other == prefix).map(|(_, value)| value)
    }

    /// The longest match.
    pub(crate) fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.matches(address).pop()
    }

    /// All routes that contain the address, the shortest first.
    pub(crate) fn matches(&self, address: &A) -> Vec<(Prefix<A>, &V)> {
        self.all(|prefix| contains(&prefix, address))
    }

    /// All routes that cover the prefix, itself included, the shortest first.
    pub(crate) fn covering(&self, prefix: &Prefix<A>) -> Vec<(Prefix<A>, &V)> {
        self.all(|route| covers(&route, prefix))
    }

    /// All routes that the prefix covers, itself included, in order.
    pub(crate) fn covered(&self, prefix: &Prefix<A>) -> Vec<(Prefix<A>, &V)> {
        self.all(|route| covers(prefix, &route))
    }

    /// Whether a route covers the prefix or is covered by it.
    pub(crate) fn overlaps(&self, prefix: &Prefix<A>) -> bool {
        self.routes.iter().any(|(route, _)| covers(route, prefix) || covers(prefix, route))
    }

    /// All routes: by address, and of one address the shorter prefix first.
    pub(crate) fn iter(&self) -> Vec<(Prefix<A>, &V)> {
        self.all(|_| true)
    }

    /// The routes that are so, in order. Those that contain one address are the shorter first.
    fn all(&self, are: impl Fn(Prefix<A>) -> bool) -> Vec<(Prefix<A>, &V)> {
        let found = self.routes.iter().filter(|(prefix, _)| are(*prefix));
        let mut found: Vec<_> = found.map(|(prefix, value)| (*prefix, value)).collect();
        found.sort_by_key(|(prefix, _)| (prefix.address(), prefix.len()));
        found
    }
}

/// Bit by bit, so that nothing is taken from what is tested.
fn contains<A: Address>(prefix: &Prefix<A>, address: &A) -> bool {
    (0..prefix.len()).all(|bit| prefix.address().slice(bit, 1) == address.slice(bit, 1))
}

fn covers<A: Address>(prefix: &Prefix<A>, other: &Prefix<A>) -> bool {
    prefix.len() <= other.len() && contains(prefix, &other.address())
}
