//! Sets of prefixes of both address families.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::PrefixSet;
use crate::key::any_prefix::AnyPrefix;

/// A set of prefixes of IPv4 and IPv6: a [`PrefixSet`] of each.
///
/// [`v4`](Self::v4) and [`v6`](Self::v6) have all other methods.
///
/// # Example
///
/// ```
/// use flowtable::{AnyPrefix, routes::AnyPrefixSet};
///
/// let [ten, lab]: [AnyPrefix; 2] = ["10.0.0.0/8".parse()?, "2001:db8::/32".parse()?];
/// let mut private = AnyPrefixSet::new();
/// assert!(private.insert(ten) && private.insert(lab) && !private.insert(lab));
/// assert!(private.contains(&lab) && private.contains_address("10.1.2.3".parse().unwrap()));
/// assert_eq!(private.lookup("2001:db8::1".parse().unwrap()), Some(lab));
/// assert!(private.iter().eq([ten, lab]) && private.clone().into_iter().eq([ten, lab]));
///
/// private.v4_mut().insert("192.168.0.0/16".parse()?);
/// private.retain(|prefix| prefix.len() != 16);
/// assert_eq!((private.len(), private.v4().len(), private.v6_mut().len()), (2, 1, 1));
/// assert!(private.remove(&ten) && private.v6().iter().count() == 1);
/// private.clear();
/// assert!(private.is_empty());
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AnyPrefixSet {
    v4: PrefixSet<Ipv4Addr>,
    v6: PrefixSet<Ipv6Addr>,
}

impl AnyPrefixSet {
    /// Creates an empty set, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { v4: PrefixSet::new(), v6: PrefixSet::new() }
    }

    /// Returns the number of prefixes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the prefixes of IPv4.
    #[must_use]
    pub const fn v4(&self) -> &PrefixSet<Ipv4Addr> {
        &self.v4
    }

    /// Returns a mutable reference to the prefixes of IPv4.
    pub const fn v4_mut(&mut self) -> &mut PrefixSet<Ipv4Addr> {
        &mut self.v4
    }

    /// Returns the prefixes of IPv6.
    #[must_use]
    pub const fn v6(&self) -> &PrefixSet<Ipv6Addr> {
        &self.v6
    }

    /// Returns a mutable reference to the prefixes of IPv6.
    pub const fn v6_mut(&mut self) -> &mut PrefixSet<Ipv6Addr> {
        &mut self.v6
    }

    /// Inserts a prefix. Returns whether it is new.
    pub fn insert(&mut self, prefix: AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.insert(prefix),
            AnyPrefix::V6(prefix) => self.v6.insert(prefix),
        }
    }

    /// Removes a prefix. Returns whether the set had it.
    pub fn remove(&mut self, prefix: &AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.remove(prefix),
            AnyPrefix::V6(prefix) => self.v6.remove(prefix),
        }
    }

    /// Returns whether the set has exactly this prefix.
    #[must_use]
    pub fn contains(&self, prefix: &AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.contains(prefix),
            AnyPrefix::V6(prefix) => self.v6.contains(prefix),
        }
    }

    /// Returns whether a prefix of the set contains `address`.
    #[must_use]
    pub fn contains_address(&self, address: IpAddr) -> bool {
        self.lookup(address).is_some()
    }

    /// Returns the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<AnyPrefix> {
        match address {
            IpAddr::V4(address) => self.v4.lookup(&address).map(AnyPrefix::V4),
            IpAddr::V6(address) => self.v6.lookup(&address).map(AnyPrefix::V6),
        }
    }

    /// Returns an iterator over the prefixes in order: IPv4 before IPv6.
    pub fn iter(&self) -> impl Iterator<Item = AnyPrefix> {
        self.v4.iter().map(AnyPrefix::V4).chain(self.v6.iter().map(AnyPrefix::V6))
    }

    /// Retains the prefixes for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(AnyPrefix) -> bool) {
        self.v4.retain(|prefix| keep(prefix.into()));
        self.v6.retain(|prefix| keep(prefix.into()));
    }

    /// Removes all prefixes and releases the memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Formats the prefixes in order, as a set.
impl fmt::Debug for AnyPrefixSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The prefixes in order: IPv4 before IPv6.
impl IntoIterator for AnyPrefixSet {
    type Item = AnyPrefix;
    type IntoIter = alloc::vec::IntoIter<AnyPrefix>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<alloc::vec::Vec<_>>().into_iter()
    }
}

impl Extend<AnyPrefix> for AnyPrefixSet {
    fn extend<I: IntoIterator<Item = AnyPrefix>>(&mut self, prefixes: I) {
        prefixes.into_iter().for_each(|prefix| _ = self.insert(prefix));
    }
}

impl FromIterator<AnyPrefix> for AnyPrefixSet {
    fn from_iter<I: IntoIterator<Item = AnyPrefix>>(prefixes: I) -> Self {
        let mut set = Self::new();
        set.extend(prefixes);
        set
    }
}
