//! Entries of tables of both address families.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::Entry;
use crate::key::any_prefix::AnyPrefix;
use crate::memory::{Allocator, Global};

/// The route of a prefix of either family, which may or may not exist. Created by
/// [`Routes::entry`](super::Routes::entry).
///
/// # Example
///
/// ```
/// use flowtable::routes::{AnyEntry, Entry, Routes};
/// use flowtable::AnyPrefix;
///
/// let lab: AnyPrefix = "2001:db8::/32".parse()?;
/// let mut counts = Routes::<u32>::new();
/// for _ in 0..3 {
///     *counts.entry(lab).or_insert(0) += 1;
/// }
/// counts.entry(lab).and_modify(|count| *count *= 2).or_default();
/// assert_eq!(*counts.entry("10.0.0.0/8".parse()?).or_insert_with(|| 7), 7);
/// assert_eq!(counts.get(&lab), Some(&6));
/// assert_eq!(counts.entry(lab).prefix(), lab);
///
/// // All other methods are those of the entry of one family.
/// if let AnyEntry::V6(Entry::Occupied(entry)) = counts.entry(lab) {
///     assert_eq!(entry.remove(), 6);
/// }
/// assert!(!counts.contains(&lab));
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
pub enum AnyEntry<'t, V, M: Allocator + Clone = Global> {
    /// A route of IPv4.
    V4(Entry<'t, Ipv4Addr, V, M>),
    /// A route of IPv6.
    V6(Entry<'t, Ipv6Addr, V, M>),
}

impl<'t, V, M: Allocator + Clone> AnyEntry<'t, V, M> {
    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> AnyPrefix {
        match self {
            Self::V4(entry) => entry.prefix().into(),
            Self::V6(entry) => entry.prefix().into(),
        }
    }

    /// Calls `f` with the value of the route, if it exists.
    #[must_use]
    pub fn and_modify(self, f: impl FnOnce(&mut V)) -> Self {
        match self {
            Self::V4(entry) => Self::V4(entry.and_modify(f)),
            Self::V6(entry) => Self::V6(entry.and_modify(f)),
        }
    }

    /// Inserts a route with this value if there is none. Returns its value.
    ///
    /// This, [`or_insert_with`](Self::or_insert_with) and [`or_default`](Self::or_default) abort
    /// like other collections if there is no memory: see
    /// [`VacantEntry::try_insert`](super::VacantEntry::try_insert).
    pub fn or_insert(self, value: V) -> &'t mut V {
        self.or_insert_with(|| value)
    }

    /// Inserts a route with the value that `make` returns if there is none. Returns its value.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'t mut V {
        match self {
            Self::V4(entry) => entry.or_insert_with(make),
            Self::V6(entry) => entry.or_insert_with(make),
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

impl<V: fmt::Debug, M: Allocator + Clone> fmt::Debug for AnyEntry<'_, V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(entry) => f.debug_tuple("V4").field(entry).finish(),
            Self::V6(entry) => f.debug_tuple("V6").field(entry).finish(),
        }
    }
}
