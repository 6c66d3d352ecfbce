//! Construction, insertions, removals and lookups of `RouteTable`.

use core::marker::PhantomData;
use core::{fmt, mem};

use super::change::FROM_ROOT;
use super::key::Key;
use super::pool::Exhausted;
use super::search::{NodeRoutes, Position};
use super::store::{NoMemory, Store, exhausted};
use super::stride::PrefixIndex;
use super::update::Shortcuts;
use super::{Inserted, IntoIter, Iter, IterMut, RouteTable};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;

impl<A: Address, V> RouteTable<A, V> {
    /// Creates an empty table, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { store: Store::new(), shortcuts: Shortcuts::EMPTY, len: 0, addresses: PhantomData }
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Creates an empty table whose memory is from `memory`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut ports = RouteTable::<u16, char, _>::new_in(&arena);
    /// ports.try_insert(Prefix::new(0, 6)?, 'a').unwrap();
    /// assert_eq!(ports.lookup(&80), Some((Prefix::new(0, 6)?, &'a')));
    /// assert!(ports.allocator().allocated_bytes() >= ports.allocation_size());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn new_in(memory: M) -> Self {
        let (store, shortcuts) = (Store::new_in(memory), Shortcuts::EMPTY);
        Self { store, shortcuts, len: 0, addresses: PhantomData }
    }

    /// Returns the allocator that the table was created with.
    #[must_use]
    pub fn allocator(&self) -> &M {
        self.store.memory()
    }

    /// Returns the number of routes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table has no routes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a route. Returns the previous value of the prefix.
    ///
    /// Aborts like other collections if there is no memory: see [`try_insert`](Self::try_insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut ports = RouteTable::<u16, char>::new();
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'a'), None); // 0 to 1023
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'b'), Some('a'));
    /// assert_eq!(ports.lookup(&1023).unwrap().1, &'b');
    /// assert_eq!(ports.lookup(&1024), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        self.try_insert(prefix, value).unwrap_or_else(|_| exhausted())
    }

    /// Inserts a route, if there is memory. Returns the previous value of the prefix.
    ///
    /// # Errors
    ///
    /// If there is no memory for a new route, or if there are nearly 2^32 nodes or values. The
    /// routes remain as they were, and the error has the value.
    ///
    /// It is no error if there is no memory for direct tables and levels, which only make lookups
    /// faster. Lookups take longer then, which [`shape`](Self::shape) shows. The next insertion
    /// below the first six bits of a direct table makes that again;
    /// [`shrink_to_fit`](Self::shrink_to_fit) makes all of them.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut ports = RouteTable::<u16, char>::new();
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?, 'a').unwrap(), None);
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?, 'b').unwrap(), Some('a'));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn try_insert(&mut self, prefix: Prefix<A>, value: V) -> Result<Option<V>, NoMemory<V>> {
        let inserted = self.insert_at(&Key::from(&prefix), value);
        inserted.map(|(_, _, old)| old)
    }

    /// Inserts the route of `key`. Returns its node, its index in the node, and the
    /// previous value.
    pub(super) fn insert_at(
        &mut self,
        key: &Key<A>,
        value: V,
    ) -> Result<(u32, PrefixIndex, Option<V>), NoMemory<V>> {
        // Before anything changes, since an address may panic.
        let index = key.index();
        let by_copy = self.node_by_copy(key);
        let Ok(node) = by_copy.map_or_else(|| self.make_node(key), Ok) else {
            self.undo_path(key);
            return Err(NoMemory { refused: value });
        };
        let old = match self.insert_in_node(key, index, node, value)? {
            Inserted::Replaced(old) => Some(old),
            Inserted::New(changed) => {
                let (nodes, is_found) = (&self.store.nodes, by_copy.is_some());
                self.shortcuts.after_insert(nodes, self.len, key, node.id, changed, is_found);
                None
            }
        };
        Ok((node.id, index, old))
    }

    /// Inserts the route of `key` into its node, which has these routes, but does not
    /// update the shortcuts. `index` is the index of the route.
    #[inline]
    pub(super) fn insert_in_node(
        &mut self,
        key: &Key<A>,
        index: PrefixIndex,
        NodeRoutes { id, bits }: NodeRoutes,
        value: V,
    ) -> Result<Inserted<V>, NoMemory<V>> {
        let position = bits.position(index);
        if position.exists {
            return Ok(Inserted::Replaced(mem::replace(self.store.value_at(&position), value)));
        }
        match self.store.insert_route(NodeRoutes { id, bits }, &position, value) {
            Ok(changed) => {
                self.len += 1;
                Ok(Inserted::New(changed))
            }
            Err(refused) => {
                self.undo_path(key);
                Err(NoMemory { refused })
            }
        }
    }

    /// Returns the node for the routes of `key` and its routes; creates it if necessary.
    pub(super) fn make_node(&mut self, key: &Key<A>) -> Result<NodeRoutes, Exhausted> {
        let id = self.store.nodes.ensure_path(self.shortcuts.start(key), key)?;
        Ok(NodeRoutes { id, bits: self.store.nodes.get(id).bits() })
    }

    /// Removes nodes without routes that an insertion has left that failed.
    #[cold]
    pub(super) fn undo_path(&mut self, key: &Key<A>) {
        if self.len == 0 {
            self.clear();
        } else {
            self.store.nodes.remove_path(FROM_ROOT, key);
            self.shortcuts.after_undo(&self.store.nodes, key);
        }
    }

    /// Removes a route. Returns its value, if it existed.
    ///
    /// Memory is released when the last route is removed, and in chunks of 32 KiB that no route
    /// uses any more. If most routes have been removed, [`shrink_to_fit`](Self::shrink_to_fit)
    /// moves the others next to each other.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.remove(&long), Some('a'));
    /// assert_eq!(routes.remove(&long), None);
    /// assert_eq!(routes.lookup(&0x49), Some((short, &'b')));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let key = Key::from(prefix);
        let NodeRoutes { id, bits } = self.find_node(&key)?;
        let position = bits.position(key.index());
        let node = NodeRoutes { id, bits };
        position.exists.then(|| self.remove_from(&key, node, &position))
    }

    /// Removes the route of `key` from the node with these routes. Returns its value.
    #[inline]
    pub(super) fn remove_from(
        &mut self,
        key: &Key<A>,
        NodeRoutes { id, bits }: NodeRoutes,
        position: &Position,
    ) -> V {
        let (value, changed) = self.store.remove_route(NodeRoutes { id, bits }, position);
        self.len -= 1;
        if self.len == 0 {
            self.clear();
            return value;
        }
        self.shortcuts.after_remove(&self.store.nodes, self.len, key, id, changed);
        if changed.bits.is_empty() && self.store.nodes.is_redundant(id) {
            let changed = self.store.nodes.remove_path(self.shortcuts.start(key), key);
            self.shortcuts.after_remove_path(&self.store.nodes, key, changed);
        }
        value
    }

    /// Returns the value of the route of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.get(&long), Some(&'a'));
    /// assert_eq!(routes.get(&Prefix::new(0x48, 4)?), None); // covered, but not a route
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        let key = Key::from(prefix);
        let node = self.find_node(&key)?.id;
        self.store.value(node, key.index())
    }

    /// Returns a mutable reference to the value of the route of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// *routes.get_mut(&long).unwrap() = 'c';
    /// assert_eq!(routes.lookup(&0x49), Some((long, &'c')));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn get_mut(&mut self, prefix: &Prefix<A>) -> Option<&mut V> {
        let key = Key::from(prefix);
        let bits = self.find_node(&key)?.bits;
        let position = bits.position(key.index());
        position.exists.then(|| self.store.value_at(&position))
    }

    /// Returns whether there is a route of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.contains(&long) && !routes.contains(&Prefix::host(0x48)));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn contains(&self, prefix: &Prefix<A>) -> bool {
        self.get(prefix).is_some()
    }

    /// Returns the longest route that contains `address`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.lookup(&0x49), Some((long, &'a')));
    /// assert_eq!(routes.lookup(&0x50), Some((short, &'b')));
    /// assert_eq!(routes.lookup(&0x80), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline] // Not a call: fewer lookups would overlap.
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        Some(self.route(address, self.longest(address).exists()?))
    }

    /// Returns the longest route that contains `address`, with a mutable reference to its value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// *routes.lookup_mut(&0x50).unwrap().1 = 'c';
    /// assert_eq!(routes.get(&short), Some(&'c'));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_mut(&mut self, address: &A) -> Option<(Prefix<A>, &mut V)> {
        let found = self.longest(address).exists()?;
        Some(self.route_mut(address, found))
    }

    /// Calls `found` with the index of each address and the longest route that contains it.
    ///
    /// This takes a fraction of the time of single lookups: the cache misses of 32 addresses
    /// overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = RouteTable::from([(Prefix::new(0x0A00_0000_u32, 8)?, "ten")]);
    /// let mut via = [None; 2];
    /// routes.lookup_batch(&[0x0A01_0203, 0x0B00_0000], |i, route| via[i] = route.map(|it| *it.1));
    /// assert_eq!(via, [Some("ten"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch<'t>(
        &'t self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<(Prefix<A>, &'t V)>),
    ) {
        self.bursts::<true>(addresses, |nth, address, route| {
            found(nth, route.map(|(route, value)| (Prefix::of(address, route.len()), value)));
        });
    }

    /// Calls `found` with the index of each address and the value of the longest route that
    /// contains it.
    ///
    /// This takes less time than [`lookup_batch`](Self::lookup_batch), which computes the prefixes,
    /// too.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = RouteTable::from([(Prefix::new(0x0A00_0000_u32, 8)?, "ten")]);
    /// let mut via = [None; 2];
    /// routes.lookup_batch_values(&[0x0A01_0203, 0x0B00_0000], |i, value| via[i] = value);
    /// assert_eq!(via, [Some(&"ten"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch_values<'t>(
        &'t self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<&'t V>),
    ) {
        self.bursts::<false>(addresses, |nth, _, route| found(nth, route.map(|(_, value)| value)));
    }

    /// Returns the longest route that covers `prefix`, which may be of `prefix` itself. Takes the
    /// path to it, once.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.lookup_prefix(&long), Some((long, &'a')));
    /// assert_eq!(routes.lookup_prefix(&Prefix::new(0x48, 4)?), Some((short, &'b')));
    /// assert_eq!(routes.lookup_prefix(&Prefix::new(0x40, 1)?), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("get_lpm", "best match"))]
    #[must_use]
    pub fn lookup_prefix(&self, prefix: &Prefix<A>) -> Option<(Prefix<A>, &V)> {
        let found = self.store.nodes.longest_of_prefix(prefix).exists()?;
        Some(self.route(&prefix.address(), found))
    }

    /// Like [`lookup_prefix`](Self::lookup_prefix), with a mutable reference.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut routes = RouteTable::from([(Prefix::new(0x40_u8, 2)?, 0)]);
    /// let (route, count) = routes.lookup_prefix_mut(&Prefix::new(0x48, 5)?).expect("it covers");
    /// *count += 1;
    /// assert_eq!((route.len(), routes.get(&route)), (2, Some(&1)));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("get_lpm_mut"))]
    #[must_use]
    pub fn lookup_prefix_mut(&mut self, prefix: &Prefix<A>) -> Option<(Prefix<A>, &mut V)> {
        let found = self.store.nodes.longest_of_prefix(prefix).exists()?;
        Some(self.route_mut(&prefix.address(), found))
    }
}

impl<A: Address, V> Default for RouteTable<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for RouteTable<A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Returns a compact copy of the table.
impl<A: Address, V: Clone, M: Allocator + Clone> Clone for RouteTable<A, V, M> {
    fn clone(&self) -> Self {
        let store = self.store.clone();
        let shortcuts = self.shortcuts.computed(&store.nodes, self.len);
        Self { store, shortcuts, len: self.len, addresses: PhantomData }
    }
}

impl<A: Address, V: PartialEq, M: Allocator + Clone> PartialEq for RouteTable<A, V, M> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<A: Address, V: Eq, M: Allocator + Clone> Eq for RouteTable<A, V, M> {}

impl<A: Address, V, M: Allocator + Clone> Extend<(Prefix<A>, V)> for RouteTable<A, V, M> {
    fn extend<I: IntoIterator<Item = (Prefix<A>, V)>>(&mut self, routes: I) {
        routes.into_iter().for_each(|(prefix, value)| drop(self.insert(prefix, value)));
    }
}

/// Sorts the routes first, in memory of their own, and creates each node once, with all its routes.
/// So this takes half to two thirds of the time of insertions in random order. Routes of more than
/// 64 bits are inserted one by one.
impl<A: Address, V> FromIterator<(Prefix<A>, V)> for RouteTable<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        Self::built(routes.into_iter().map(Some).collect())
    }
}

impl<A: Address, V, const N: usize> From<[(Prefix<A>, V); N]> for RouteTable<A, V> {
    fn from(routes: [(Prefix<A>, V); N]) -> Self {
        routes.into_iter().collect()
    }
}

impl<A: Address, V, M: Allocator + Clone> IntoIterator for RouteTable<A, V, M> {
    type Item = (Prefix<A>, V);
    type IntoIter = IntoIter<A, V, M>;

    fn into_iter(mut self) -> IntoIter<A, V, M> {
        IntoIter::of(&mut self.store, self.len)
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> IntoIterator for &'t RouteTable<A, V, M> {
    type Item = (Prefix<A>, &'t V);
    type IntoIter = Iter<'t, A, V, M>;

    fn into_iter(self) -> Iter<'t, A, V, M> {
        self.iter()
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> IntoIterator for &'t mut RouteTable<A, V, M> {
    type Item = (Prefix<A>, &'t mut V);
    type IntoIter = IterMut<'t, A, V, M>;

    fn into_iter(self) -> IterMut<'t, A, V, M> {
        self.iter_mut()
    }
}
