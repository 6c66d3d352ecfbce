//! The reference model of route tables: an unordered vector, scanned by each operation.

use core::ops::Bound;

use flowtable::Prefix;
use flowtable::key::bits::Address;

/// Routes in no order, at most one of each prefix.
#[derive(Clone, Debug)]
pub struct RouteList<A, V> {
    routes: Vec<(Prefix<A>, V)>,
}

impl<A: Address, V> Default for RouteList<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address, V> RouteList<A, V> {
    pub fn new() -> Self {
        Self { routes: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.routes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&mut self) {
        self.routes.clear();
    }

    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        let before = self.remove(&prefix);
        self.routes.push((prefix, value));
        before
    }

    pub fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let at = self.routes.iter().position(|(other, _)| other == prefix)?;
        Some(self.routes.swap_remove(at).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(Prefix<A>, &mut V) -> bool) {
        self.routes.retain_mut(|(prefix, value)| keep(*prefix, value));
    }

    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        self.routes.iter().find(|(other, _)| other == prefix).map(|(_, value)| value)
    }

    /// The longest match.
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.matches(address).pop()
    }

    /// All routes that contain the address, the shortest first.
    pub fn matches(&self, address: &A) -> Vec<(Prefix<A>, &V)> {
        self.all(&|prefix| contains(&prefix, address))
    }

    /// All routes that cover the prefix, itself included, the shortest first.
    pub fn covering(&self, prefix: &Prefix<A>) -> Vec<(Prefix<A>, &V)> {
        self.all(&|route| covers(&route, prefix))
    }

    /// All routes from a bound on, in order.
    pub fn iter_from(&self, bound: Bound<Prefix<A>>) -> Vec<(Prefix<A>, &V)> {
        let order = |prefix: &Prefix<A>| (prefix.address(), prefix.len());
        self.all(&|route| match &bound {
            Bound::Included(from) => order(&route) >= order(from),
            Bound::Excluded(from) => order(&route) > order(from),
            Bound::Unbounded => true,
        })
    }

    /// All routes that the prefix covers, itself included, in order.
    pub fn covered(&self, prefix: &Prefix<A>) -> Vec<(Prefix<A>, &V)> {
        self.all(&|route| covers(prefix, &route))
    }

    /// Whether a route covers the prefix or is covered by it.
    pub fn overlaps(&self, prefix: &Prefix<A>) -> bool {
        self.routes.iter().any(|(route, _)| covers(route, prefix) || covers(prefix, route))
    }

    /// All routes: by address, and of one address the shorter prefix first.
    pub fn iter(&self) -> Vec<(Prefix<A>, &V)> {
        self.all(&|_| true)
    }

    /// The selected routes in order. Of those that contain one address the shorter come first.
    fn all(&self, are: &dyn Fn(Prefix<A>) -> bool) -> Vec<(Prefix<A>, &V)> {
        let found = self.routes.iter().filter(|(prefix, _)| are(*prefix));
        let mut found: Vec<_> = found.map(|(prefix, value)| (*prefix, value)).collect();
        found.sort_unstable_by_key(|(prefix, _)| (prefix.address(), prefix.len()));
        found
    }
}

/// Bit by bit, independently of the tested code.
fn contains<A: Address>(prefix: &Prefix<A>, address: &A) -> bool {
    (0..prefix.len()).all(|bit| prefix.address().slice(bit, 1) == address.slice(bit, 1))
}

fn covers<A: Address>(prefix: &Prefix<A>, other: &Prefix<A>) -> bool {
    prefix.len() <= other.len() && contains(prefix, &other.address())
}
