//! The store: its parts, and what concerns all bindings.

use core::fmt;
use core::time::Duration;

use super::StoreError;
use crate::hash::DefaultHashBuilder;
use crate::invariant::InvariantError;
use crate::memory::{Allocator, Global};
use crate::table::expiring::Expiring;
use crate::timestamp::{Timestamp, nanos};

/// A bounded table of bindings of tags to values, each of which lives for one lifetime.
///
/// Accesses never extend the life of a binding. When all bindings are live, no other is created
/// until the oldest one expires or one is removed.
///
/// Time is an argument. A timestamp before the last creation, removal, attempt of one, or cleaning
/// counts as the time of that call. If such a call has a wrong time far in the future, all bindings
/// expire. A time that is earlier by more than a lifetime is suspect; the next one, if it is later
/// than the suspect one, sets the clock back, so time goes on from there. A store whose callers
/// have two clocks, in turns, follows both in calls that create, remove or clean. After a clock was
/// set back by less, or if lookups are all that is called, tell the store:
/// [`set_clock`](Self::set_clock).
///
/// Tags are hashed by `S`, which is keyed by default: an attacker cannot choose tags of one line.
/// To keep their tags secret from each other is up to the users, who draw 64 bits at random.
///
/// The [module](super) has the design and its invariants.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `remove` | a line of the index, and the binding if the tag is present |
/// | `get_or_insert_with` | the same; a creation reclaims up to two expired bindings |
/// | `get_batch`, `get_or_insert_batch` | as many tags, the cache misses of 32 overlapped |
/// | `clean`; `live` | O(budget); O(expired bindings) |
/// | `iter`, `retain`, `extract_if` | O(bindings) |
/// | `clear`, `clone`, `new` | O(capacity) |
/// | `len`, `capacity`, `lifetime`, `allocation_size`, `set_clock` | O(1) |
///
/// # Example
///
/// A rate limit: a source may send three requests within ten seconds of its first one.
///
/// ```
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::net::Ipv4Addr;
/// use std::time::Duration;
///
/// let mut sent: EphemeralStore<Ipv4Addr, u32> =
///     EphemeralStore::new(1000, Duration::from_secs(10))?;
/// let mut may_send = |source, seconds| {
///     match sent.get_or_insert_with(&source, Timestamp::from_secs(seconds), || 0) {
///         Ok(count) => {
///             *count += 1;
///             *count <= 3
///         }
///         // A thousand other sources are counted: a flood cannot evict them.
///         Err(_) => false,
///     }
/// };
/// let source = Ipv4Addr::LOCALHOST;
/// let allowed = [0, 1, 2, 3, 9, 10].map(|at| may_send(source, at));
/// assert_eq!(allowed, [true, true, true, false, false, true]);
/// # Ok::<(), flowtable::ephemeral::StoreError>(())
/// ```
#[derive(Clone)]
#[doc(alias("nonce", "rate limit", "syn cache", "syn flood", "time to live"))]
pub struct EphemeralStore<T = u64, V = u64, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    pub(super) hasher: S,
    pub(super) bindings: Expiring<T, V, A>,
    lifetime: Duration,
}

impl<T, V> EphemeralStore<T, V> {
    /// Creates a store for `capacity` bindings, which live for `lifetime`: one of more than 146
    /// years counts as 146 years. It has a randomly keyed hasher. O(capacity).
    ///
    /// A user who creates bindings at a steady rate needs capacity for one lifetime of creations.
    /// All memory is allocated here.
    ///
    /// # Errors
    ///
    /// If either argument is zero, the capacity is 2^30 or more, or the allocation fails.
    pub fn new(capacity: usize, lifetime: Duration) -> Result<Self, StoreError> {
        Self::with_parts(capacity, lifetime, DefaultHashBuilder::new())
    }
}

impl<T, V, S> EphemeralStore<T, V, S> {
    /// Creates a store with a given hasher.
    ///
    /// # Errors
    ///
    /// As [`new`](EphemeralStore::new).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, EphemeralStore};
    /// use std::time::Duration;
    ///
    /// // Explicit seeds, where no operating system provides them.
    /// let hasher = DefaultHashBuilder::with_seeds([3, 1, 4, 1]);
    /// let lifetime = Duration::from_secs(10);
    /// let store: EphemeralStore = EphemeralStore::with_parts(1000, lifetime, hasher)?;
    /// assert_eq!((store.capacity(), store.lifetime()), (1000, lifetime));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn with_parts(capacity: usize, lifetime: Duration, hasher: S) -> Result<Self, StoreError> {
        Self::with_parts_in(capacity, lifetime, hasher, Global)
    }
}

impl<T, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Creates a store as [`with_parts`](EphemeralStore::with_parts), whose memory is from
    /// `memory`. All of it is allocated here, except if hashes are not random.
    ///
    /// # Errors
    ///
    /// As [`new`](EphemeralStore::new).
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::{DefaultHashBuilder, EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let arena = Bump::with_capacity(4096);
    /// let (lifetime, hasher) = (Duration::from_secs(10), DefaultHashBuilder::with_seed(7));
    /// let mut seen: EphemeralStore<u64, (), _, _> =
    ///     EphemeralStore::with_parts_in(64, lifetime, hasher, &arena)?;
    /// assert!(seen.get_or_insert_with(&1, Timestamp::ZERO, || ()).is_ok());
    /// assert!(seen.allocator().allocated_bytes() >= seen.allocation_size());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn with_parts_in(
        capacity: usize,
        lifetime: Duration,
        hasher: S,
        memory: A,
    ) -> Result<Self, StoreError> {
        if lifetime.is_zero() {
            return Err(StoreError::NoLifetime);
        }
        let bindings = Expiring::new_in(capacity, nanos(lifetime), memory)?;
        Ok(Self { hasher, bindings, lifetime })
    }

    /// Returns the allocator that the store was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.bindings.records().allocator()
    }

    /// Returns the maximum number of bindings.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.bindings.records().capacity()
    }

    /// Returns the lifetime of a binding.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.bindings.records().allocation_size()
    }

    /// Returns the number of bindings: the live ones, and the expired ones that are not reclaimed
    /// yet. O(1).
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bindings.records().len()
    }

    /// Returns whether there are no bindings, neither live nor expired ones.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of live bindings. O(expired bindings that are not reclaimed).
    #[must_use]
    pub fn live(&self, now: Timestamp) -> usize {
        self.bindings.live(self.bindings.time_at(now)).count
    }

    /// Iterates over the tags and values of the live bindings, oldest first. O(expired bindings
    /// that are not reclaimed) to begin, O(1) for each.
    pub fn iter(&self, now: Timestamp) -> impl Iterator<Item = (&T, &V)> {
        let slots = self.bindings.live_slots(self.bindings.time_at(now));
        let records = slots.map(|slot| self.bindings.records().record(slot));
        records.map(|record| (&record.key, &record.value))
    }

    /// Follows a change of the caller's clock: `now` is the present time, and bindings live on for
    /// as long as they would have. After a wrong time the store does so by itself: see
    /// [the type](Self).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// store.get_or_insert_with(&7, Timestamp::from_secs(3600), || 1)?;
    /// // The clock is set back by an hour.
    /// store.set_clock(Timestamp::from_secs(0));
    /// assert_eq!(store.get(&7, Timestamp::from_secs(9)), Some(&1));
    /// assert_eq!(store.get(&7, Timestamp::from_secs(10)), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub const fn set_clock(&mut self, now: Timestamp) {
        self.bindings.set_clock(now);
    }

    /// Reclaims at most `budget` expired bindings. Returns their number. O(`budget`).
    ///
    /// Creation reclaims as well. This is for a store without creations whose values own resources.
    /// The cleaner of the paper reclaims all, in a thread, every tenth of a lifetime.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..5 {
    ///     store.get_or_insert_with(&tag, Timestamp::from_secs(tag), || 10 * tag)?;
    /// }
    /// let now = Timestamp::from_secs(12);
    /// assert_eq!((store.len(), store.live(now)), (5, 2));
    /// assert!(store.iter(now).eq([(&3, &30), (&4, &40)]));
    /// assert_eq!((store.clean(now, 2), store.clean(now, usize::MAX), store.len()), (2, 1, 2));
    /// store.clear();
    /// assert!(store.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn clean(&mut self, now: Timestamp, budget: usize) -> usize {
        self.bindings.advance(now);
        self.bindings.reclaim(budget)
    }

    /// Removes all bindings, and resets the time: timestamps may restart at zero. O(capacity).
    ///
    /// If the drop of one panics, those after it stay.
    pub fn clear(&mut self) {
        self.bindings.clear();
    }

    /// Removes the live bindings for which `keep` returns false. O(n).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..10 {
    ///     store.get_or_insert_with(&tag, Timestamp::ZERO, || tag % 3)?;
    /// }
    /// store.retain(Timestamp::from_secs(1), |_, value| *value == 0);
    /// assert!(store.iter(Timestamp::from_secs(1)).map(|(tag, _)| *tag).eq([0, 3, 6, 9]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn retain(&mut self, now: Timestamp, mut keep: impl FnMut(&T, &mut V) -> bool) {
        self.extract_if(now, |tag, value| !keep(tag, value)).for_each(drop);
    }

    /// Returns an iterator that removes the live bindings for which `is_removed` returns true,
    /// oldest first. Bindings that it has not visited when it is dropped stay. O(n) if it is run to
    /// its end.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// // Handshakes by their port; those of port 1 are answered at once.
    /// let mut open: EphemeralStore<u32, u16> = EphemeralStore::new(10, Duration::from_secs(9))?;
    /// for peer in 0..6 {
    ///     open.get_or_insert_with(&peer, Timestamp::ZERO, || peer as u16 % 2)?;
    /// }
    /// let answered = open.extract_if(Timestamp::from_secs(1), |_, port| *port == 1);
    /// assert!(answered.map(|(peer, _)| peer).eq([1, 3, 5]));
    /// assert_eq!(open.live(Timestamp::from_secs(1)), 3);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn extract_if(
        &mut self,
        now: Timestamp,
        is_removed: impl FnMut(&T, &mut V) -> bool,
    ) -> impl Iterator<Item = (T, V)> {
        self.bindings.advance(now);
        self.bindings.extract_if(is_removed)
    }

    /// Checks the invariants of the store, for tests. O(n).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(4, Duration::from_secs(10))?;
    /// for tag in 0..10 {
    ///     store.get_or_insert_with(&tag, Timestamp::from_secs(4 * tag), || 0)?;
    ///     assert_eq!(store.validate(), Ok(()));
    /// }
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.bindings.validate()
    }
}

impl<T: fmt::Debug, V: fmt::Debug, S, A: Allocator + Clone> fmt::Debug
    for EphemeralStore<T, V, S, A>
{
    /// Formats the bindings that were live at the last creation or cleaning, as no time is passed
    /// here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter(Timestamp::ZERO)).finish()
    }
}
