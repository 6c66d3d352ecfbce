//! Sets of prefixes of both address families.

use core::fmt;
use core::iter::Map;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{PrefixSet, Routes};
use crate::key::any_prefix::AnyPrefix;

/// A set of prefixes of IPv4 and IPv6: [`Routes`] without values, as a [`PrefixSet`] is a table
/// without values.
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
pub struct AnyPrefixSet(Routes<()>);

impl AnyPrefixSet {
    /// Creates an empty set, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Routes::new())
    }

    /// Returns the number of prefixes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the prefixes of IPv4.
    #[must_use]
    pub const fn v4(&self) -> &PrefixSet<Ipv4Addr> {
        PrefixSet::of(self.0.v4())
    }

    /// Returns a mutable reference to the prefixes of IPv4.
    pub const fn v4_mut(&mut self) -> &mut PrefixSet<Ipv4Addr> {
        PrefixSet::of_mut(self.0.v4_mut())
    }

    /// Returns the prefixes of IPv6.
    #[must_use]
    pub const fn v6(&self) -> &PrefixSet<Ipv6Addr> {
        PrefixSet::of(self.0.v6())
    }

    /// Returns a mutable reference to the prefixes of IPv6.
    pub const fn v6_mut(&mut self) -> &mut PrefixSet<Ipv6Addr> {
        PrefixSet::of_mut(self.0.v6_mut())
    }

    /// Inserts a prefix. Returns whether it is new.
    pub fn insert(&mut self, prefix: AnyPrefix) -> bool {
        self.0.insert(prefix, ()).is_none()
    }

    /// Removes a prefix. Returns whether the set had it.
    pub fn remove(&mut self, prefix: &AnyPrefix) -> bool {
        self.0.remove(prefix).is_some()
    }

    /// Returns whether the set has exactly this prefix.
    #[must_use]
    pub fn contains(&self, prefix: &AnyPrefix) -> bool {
        self.0.get(prefix).is_some()
    }

    /// Returns whether a prefix of the set contains `address`.
    #[must_use]
    pub fn contains_address(&self, address: IpAddr) -> bool {
        self.lookup(address).is_some()
    }

    /// Returns the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<AnyPrefix> {
        self.0.lookup(address).map(|(prefix, ())| prefix)
    }

    /// Returns an iterator over the prefixes in order: IPv4 before IPv6.
    pub fn iter(&self) -> impl Iterator<Item = AnyPrefix> {
        self.0.iter().map(|(prefix, ())| prefix)
    }

    /// Retains the prefixes for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(AnyPrefix) -> bool) {
        self.0.retain(|prefix, ()| keep(prefix));
    }

    /// Removes all prefixes and releases the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Formats the prefixes in order, as a set.
impl fmt::Debug for AnyPrefixSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Returns a route without its value.
fn prefix_of((prefix, ()): (AnyPrefix, ())) -> AnyPrefix {
    prefix
}

/// The prefixes in order: IPv4 before IPv6.
impl IntoIterator for AnyPrefixSet {
    type Item = AnyPrefix;
    type IntoIter = Map<<Routes<()> as IntoIterator>::IntoIter, fn((AnyPrefix, ())) -> AnyPrefix>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(prefix_of)
    }
}

impl Extend<AnyPrefix> for AnyPrefixSet {
    fn extend<I: IntoIterator<Item = AnyPrefix>>(&mut self, prefixes: I) {
        self.0.extend(prefixes.into_iter().map(|prefix| (prefix, ())));
    }
}

impl FromIterator<AnyPrefix> for AnyPrefixSet {
    fn from_iter<I: IntoIterator<Item = AnyPrefix>>(prefixes: I) -> Self {
        Self(prefixes.into_iter().map(|prefix| (prefix, ())).collect())
    }
}
