//! A concurrent hash set: a [`ConcurrentMap`] without values.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::error::Refusal;
use super::map::{ConcurrentMap, Iter, TryInsert};
use super::pinned::{Guard, Pinned, Protect};
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;

/// A concurrent hash set with wait-free readers: a [`ConcurrentMap`] without values, with its
/// [guarantees](super::map#guarantees) and costs.
///
/// # Example
///
/// ```
/// use std::net::Ipv4Addr;
///
/// let blocked = flowtable::ConcurrentSet::new();
/// blocked.pin().insert(Ipv4Addr::new(192, 0, 2, 7))?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(blocked.pin().contains(&Ipv4Addr::new(192, 0, 2, 7))));
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("DashSet", "HashSet"))]
pub struct ConcurrentSet<K, S = DefaultHashBuilder> {
    map: ConcurrentMap<K, (), S>,
}

impl<K> ConcurrentSet<K> {
    /// Creates an empty set.
    ///
    /// # Example
    ///
    /// ```
    /// assert!(flowtable::ConcurrentSet::<u32>::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }
}

impl<K, S> ConcurrentSet<K, S> {
    /// Creates an empty set with a hasher.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentSet, DefaultHashBuilder};
    ///
    /// let set: ConcurrentSet<u32> = ConcurrentSet::with_hasher(DefaultHashBuilder::with_seed(7));
    /// assert!(set.is_empty());
    /// ```
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self { map: ConcurrentMap::with_hasher(hasher) }
    }

    /// Returns the map from keys to nothing. It has methods that the set lacks, for the limit on
    /// garbage, the hasher and the size.
    ///
    /// # Example
    ///
    /// ```
    /// let set = flowtable::ConcurrentSet::from([1]);
    /// assert!(set.as_map().pin().get(&1).is_some() && set.as_map().allocation_size() > 0);
    /// ```
    #[must_use]
    pub const fn as_map(&self) -> &ConcurrentMap<K, (), S> {
        &self.map
    }

    /// Returns the number of keys: see [`ConcurrentMap::len`].
    ///
    /// # Example
    ///
    /// ```
    /// assert_eq!(flowtable::ConcurrentSet::from([1, 2, 1]).len(), 2);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

impl<K: Eq + Hash + Send + 'static, S: BuildHasher> ConcurrentSet<K, S> {
    /// Pins the set: returns a view with the methods of a set. See [`ConcurrentMap::pin`].
    ///
    /// # Example
    ///
    /// ```
    /// assert!(flowtable::ConcurrentSet::from([1]).pin().contains(&1));
    /// ```
    #[inline]
    pub fn pin(&self) -> Pinned<'_, Self> {
        Pinned::new(self)
    }

    /// Returns a view with the methods of a set, under a guard of the thread that other structures
    /// share: see [`concurrent::pin`](super::pin). Costs nothing.
    ///
    /// # Example
    ///
    /// ```
    /// let set = flowtable::ConcurrentSet::from(["a"]);
    /// let guard = flowtable::concurrent::pin();
    /// assert_eq!(set.pinned(&guard).get("a"), Some(&"a"));
    /// ```
    #[inline]
    pub const fn pinned<'g>(&'g self, guard: &'g Guard) -> Pinned<'g, Self, &'g Guard> {
        Pinned::of(self, guard)
    }

    /// Checks all invariants. O(slots): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    #[doc(hidden)]
    pub fn validate(&mut self) -> Result<(), InvariantError> {
        self.map.validate()
    }
}

impl<'t, K: Eq + Hash + Send + 'static, S: BuildHasher, G: Borrow<Guard>>
    Pinned<'t, ConcurrentSet<K, S>, G>
{
    /// Returns the view of the map.
    #[inline]
    fn map<'p, 'r>(&'p self) -> Pinned<'r, ConcurrentMap<K, (), S>, &'r Guard>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.map.pinned(self.guard.protect())
    }

    /// Returns whether the set contains `key`. Wait-free.
    ///
    /// # Example
    ///
    /// ```
    /// assert!(!flowtable::ConcurrentSet::from(["a"]).pin().contains("b"));
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<'p, Q: Query<K>>(&'p self, key: Q) -> bool
    where
        G: Protect<'p, 'p>,
    {
        self.map().contains_key(key)
    }

    /// Calls `each` with the index of each key, and whether the set contains the key, in order. The
    /// cache misses of 32 keys overlap: see `get_batch` of a [`ConcurrentMap`].
    ///
    /// # Example
    ///
    /// ```
    /// let blocked = flowtable::ConcurrentSet::from([5, 7]);
    /// let mut passed = vec![];
    /// blocked.pin().contains_batch(&[5, 6, 7, 8], |packet, is_blocked| {
    ///     if !is_blocked {
    ///         passed.push(packet);
    ///     }
    /// });
    /// assert_eq!(passed, [1, 3]);
    /// ```
    #[inline]
    pub fn contains_batch<'p, I>(&'p self, keys: I, mut each: impl FnMut(usize, bool))
    where
        I: IntoIterator<Item: Query<K>, IntoIter: Clone>,
        G: Protect<'p, 'p>,
    {
        self.map().get_batch(keys, |index, found| each(index, found.is_some()));
    }

    /// Returns the stored key that is equal to `key`. Wait-free.
    ///
    /// # Example
    ///
    /// ```
    /// assert_eq!(flowtable::ConcurrentSet::from(["a"]).pin().get("a"), Some(&"a"));
    /// ```
    #[inline]
    #[must_use]
    pub fn get<'p, 'r, Q: Query<K>>(&'p self, key: Q) -> Option<&'r K>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.map().get_key_value(key).map(|(key, ())| key)
    }

    /// Inserts a key, unless an equal one is present. Returns whether it was inserted.
    ///
    /// # Errors
    ///
    /// If it is absent and cannot be inserted: see [`Refused`](super::Refused).
    ///
    /// # Example
    ///
    /// ```
    /// let set = flowtable::ConcurrentSet::new();
    /// assert_eq!((set.pin().insert("a")?, set.pin().insert("a")?), (true, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert<'p>(&'p self, key: K) -> Result<bool, Refusal<K>>
    where
        G: Protect<'p, 'p>,
    {
        match self.map().try_insert(key, ()) {
            Ok(inserted) => Ok(matches!(inserted, TryInsert::Inserted(()))),
            Err(error) => Err(error.map(|(key, ())| key)),
        }
    }

    /// Removes `key`, and returns the stored one.
    ///
    /// # Example
    ///
    /// ```
    /// let set = flowtable::ConcurrentSet::from(["a"]);
    /// let pin = set.pin();
    /// assert_eq!((pin.remove("a"), pin.remove("a")), (Some(&"a"), None));
    /// ```
    pub fn remove<'p, 'r, Q: Query<K>>(&'p self, key: Q) -> Option<&'r K>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.map().remove_entry(key).map(|(key, ())| key)
    }

    /// Iterates over all keys, in no order: see the map's.
    ///
    /// # Example
    ///
    /// ```
    /// assert_eq!(flowtable::ConcurrentSet::from([1, 2]).pin().iter().sum::<u32>(), 3);
    /// ```
    pub fn iter<'p, 'r>(&'p self) -> SetIter<'r, K, S>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        SetIter(self.map().iter())
    }

    /// Removes the keys for which `keep` returns false.
    ///
    /// # Example
    ///
    /// ```
    /// let set: flowtable::ConcurrentSet<u32> = (0..100).collect();
    /// set.pin().retain(|key| key % 10 == 0);
    /// assert_eq!(set.len(), 10);
    /// ```
    pub fn retain<'p>(&'p self, mut keep: impl FnMut(&K) -> bool)
    where
        G: Protect<'p, 'p>,
    {
        self.map().retain(|key, ()| keep(key));
    }

    /// Removes all keys.
    ///
    /// # Example
    ///
    /// ```
    /// let set = flowtable::ConcurrentSet::from([1]);
    /// set.pin().clear();
    /// assert!(set.is_empty());
    /// ```
    pub fn clear<'p>(&'p self)
    where
        G: Protect<'p, 'p>,
    {
        self.map().clear();
    }
}

/// An iterator over all keys of a set.
pub struct SetIter<'p, K, S>(Iter<'p, K, (), S>);

impl<'p, K, S> Iterator for SetIter<'p, K, S> {
    type Item = &'p K;

    fn next(&mut self) -> Option<&'p K> {
        self.0.next().map(|(key, ())| key)
    }
}

impl<K, S> core::iter::FusedIterator for SetIter<'_, K, S> {}

impl<K: fmt::Debug, S> fmt::Debug for SetIter<'_, K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetIter").finish_non_exhaustive()
    }
}

impl<'p, K, S, G> IntoIterator for &'p Pinned<'_, ConcurrentSet<K, S>, G>
where
    K: Eq + Hash + Send + 'static,
    S: BuildHasher,
    G: Protect<'p, 'p>,
{
    type Item = &'p K;
    type IntoIter = SetIter<'p, K, S>;

    fn into_iter(self) -> SetIter<'p, K, S> {
        self.iter()
    }
}

/// Returns the set of the keys of a map without values: for a set with a capacity or a limit on
/// garbage.
///
/// ```
/// use flowtable::{ConcurrentMap, ConcurrentSet};
///
/// let set: ConcurrentSet<u32> = ConcurrentMap::with_capacity(1000).into();
/// assert!(set.is_empty());
/// ```
impl<K, S> From<ConcurrentMap<K, (), S>> for ConcurrentSet<K, S> {
    fn from(map: ConcurrentMap<K, (), S>) -> Self {
        Self { map }
    }
}

impl<K, S: Default> Default for ConcurrentSet<K, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K: Eq + Hash + Send + 'static, S: BuildHasher> Extend<K> for ConcurrentSet<K, S> {
    /// Inserts all keys.
    ///
    /// # Panics
    ///
    /// If an insertion is refused.
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&self.map).extend(keys.into_iter().map(|key| (key, ())));
    }
}

impl<K: Eq + Hash + Send + 'static, S: BuildHasher + Default> FromIterator<K>
    for ConcurrentSet<K, S>
{
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::default();
        set.extend(keys);
        set
    }
}

impl<K: Eq + Hash + Send + 'static, const N: usize> From<[K; N]> for ConcurrentSet<K> {
    fn from(keys: [K; N]) -> Self {
        Self::from_iter(keys)
    }
}

impl<K: Eq + Hash + Send + fmt::Debug + 'static, S: BuildHasher> fmt::Debug
    for ConcurrentSet<K, S>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.pin()).finish()
    }
}
