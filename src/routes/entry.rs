//! Entries: in-place access to the route of a prefix, which may or may not exist.

use core::fmt;

use super::RouteTable;
use super::key::Key;
use super::search::NodeRoutes;
use super::store::{NoMemory, exhausted};
use super::stride::PrefixIndex;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};

/// The route of a prefix, which may or may not exist. Created by [`RouteTable::entry`].
///
/// # Example
///
/// ```
/// use flowtable::{Prefix, RouteTable, routes::Entry};
///
/// let mut counts = RouteTable::<u8, u32>::new();
/// let prefix = Prefix::new(0x40, 2)?;
/// for _ in 0..3 {
///     *counts.entry(prefix).or_insert(0) += 1;
/// }
/// counts.entry(prefix).and_modify(|count| *count *= 2).or_default();
/// assert_eq!(counts.get(&prefix), Some(&6));
/// assert_eq!(*counts.entry(Prefix::host(1)).or_insert_with(|| 7), 7);
/// assert_eq!(counts.entry(prefix).prefix(), prefix);
///
/// match counts.entry(prefix) {
///     Entry::Occupied(mut entry) => {
///         *entry.get_mut() += 1;
///         assert_eq!((entry.insert(8), entry.prefix()), (7, prefix));
///         assert_eq!((*entry.get(), entry.remove()), (8, 8));
///     }
///     Entry::Vacant(_) => unreachable!(),
/// }
/// match counts.entry(prefix) {
///     Entry::Occupied(_) => unreachable!(),
///     Entry::Vacant(entry) => assert_eq!((entry.prefix(), *entry.insert(9)), (prefix, 9)),
/// }
/// if let Entry::Occupied(entry) = counts.entry(prefix) {
///     *entry.into_mut() = 10;
/// }
/// assert_eq!(counts.get(&prefix), Some(&10));
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
pub enum Entry<'t, A, V, M: Allocator + Clone = Global> {
    /// The route exists.
    Occupied(OccupiedEntry<'t, A, V, M>),
    /// The route does not exist.
    Vacant(VacantEntry<'t, A, V, M>),
}

/// A route that exists. Part of [`Entry`].
pub struct OccupiedEntry<'t, A, V, M: Allocator + Clone = Global> {
    table: &'t mut RouteTable<A, V, M>,
    prefix: Prefix<A>,
    /// The bits of the prefix as they were when the node was found.
    key: Key<A>,
    node: u32,
    index: PrefixIndex,
}

/// A prefix without a route. Part of [`Entry`].
pub struct VacantEntry<'t, A, V, M: Allocator + Clone = Global> {
    table: &'t mut RouteTable<A, V, M>,
    prefix: Prefix<A>,
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the entry of a prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut peers = RouteTable::<u8, Vec<&str>>::new();
    /// peers.entry(Prefix::new(0x40, 2)?).or_default().push("a");
    /// peers.entry(Prefix::new(0x40, 2)?).or_default().push("b");
    /// assert_eq!(peers.lookup(&0x41).unwrap().1, &["a", "b"]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn entry(&mut self, prefix: Prefix<A>) -> Entry<'_, A, V, M> {
        let key = Key::from(&prefix);
        let index = key.index();
        let node = self.find_node(&key);
        match node.filter(|node| node.bits.position(index).exists) {
            Some(NodeRoutes { id: node, .. }) => {
                Entry::Occupied(OccupiedEntry { table: self, prefix, key, node, index })
            }
            None => Entry::Vacant(VacantEntry { table: self, prefix }),
        }
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> Entry<'t, A, V, M> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> Prefix<A> {
        match self {
            Self::Occupied(entry) => entry.prefix,
            Self::Vacant(entry) => entry.prefix,
        }
    }

    /// Calls `f` with the value of the route, if it exists.
    #[must_use]
    pub fn and_modify(mut self, f: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            f(entry.get_mut());
        }
        self
    }

    /// Inserts a route with this value if there is none. Returns its value.
    ///
    /// This, [`or_insert_with`](Self::or_insert_with) and [`or_default`](Self::or_default) abort
    /// like other collections if there is no memory: see [`VacantEntry::try_insert`].
    pub fn or_insert(self, value: V) -> &'t mut V {
        self.or_insert_with(|| value)
    }

    /// Inserts a route with the value that `make` returns if there is none. Returns its value.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'t mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(make()),
        }
    }

    /// Inserts a route with the default value if there is none. Returns its value.
    pub fn or_default(self) -> &'t mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> OccupiedEntry<'t, A, V, M> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> Prefix<A> {
        self.prefix
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> &V {
        self.table.store.value(self.node, self.index).expect("the route exists")
    }

    /// Returns a mutable reference to the value.
    pub fn get_mut(&mut self) -> &mut V {
        self.table.store.value_mut(self.node, self.index).expect("the route exists")
    }

    /// Returns a mutable reference to the value that lives as long as the borrow of the table.
    #[must_use]
    pub fn into_mut(self) -> &'t mut V {
        self.table.store.value_mut(self.node, self.index).expect("the route exists")
    }

    /// Replaces the value. Returns the old one.
    pub fn insert(&mut self, value: V) -> V {
        core::mem::replace(self.get_mut(), value)
    }

    /// Removes the route. Returns its value.
    pub fn remove(self) -> V {
        let bits = self.table.store.nodes.get(self.node).bits();
        let (node, position) = (NodeRoutes { id: self.node, bits }, bits.position(self.index));
        self.table.remove_from(&self.key, node, &position)
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> VacantEntry<'t, A, V, M> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> Prefix<A> {
        self.prefix
    }

    /// Inserts the route. Returns a mutable reference to its value.
    ///
    /// Aborts like other collections if there is no memory: see [`try_insert`](Self::try_insert).
    pub fn insert(self, value: V) -> &'t mut V {
        self.try_insert(value).unwrap_or_else(|_| exhausted())
    }

    /// Inserts the route, if there is memory. Returns a mutable reference to its value.
    ///
    /// # Errors
    ///
    /// As for [`RouteTable::try_insert`]: the error has the value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, routes::Entry};
    ///
    /// let mut ports = RouteTable::<u16, char>::new();
    /// if let Entry::Vacant(entry) = ports.entry(Prefix::new(0, 6)?) {
    ///     assert_eq!(entry.try_insert('a'), Ok(&mut 'a'));
    /// }
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn try_insert(self, value: V) -> Result<&'t mut V, NoMemory<V>> {
        let key = Key::from(&self.prefix);
        let (node, index, _) = self.table.insert_at(&key, value)?;
        Ok(self.table.store.value_mut(node, index).expect("the route exists"))
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for Entry<'_, A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => entry.fmt(f),
            Self::Vacant(entry) => entry.fmt(f),
        }
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for OccupiedEntry<'_, A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entry = f.debug_struct("OccupiedEntry");
        entry.field("prefix", &self.prefix).field("value", self.get()).finish_non_exhaustive()
    }
}

impl<A: fmt::Debug, V, M: Allocator + Clone> fmt::Debug for VacantEntry<'_, A, V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VacantEntry").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
