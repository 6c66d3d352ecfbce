//! The store: its parts, and expiry.

use core::fmt;
use core::time::Duration;

use super::StoreError;
use super::index::{Index, Location};
use super::lifetime::Lifetime;
use super::ring::{Ring, Span, Times};
use super::vacancies::Vacancies;
use crate::clock::Clock;
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};
use crate::timestamp::Timestamp;

/// The number of oldest entries that are checked one by one before a binary search.
const LINEAR_SCAN: usize = 4;

/// Expired bindings that each creation reclaims. With one, a backlog would never shrink.
pub(super) const RECLAIMED_PER_CREATION: usize = 2;

/// A bounded table of bindings of tags to values, each of which lives for one lifetime.
///
/// Lookups, reads and writes never extend the life of a binding. When all bindings are live, no
/// other is created until the oldest one expires.
///
/// Time is an argument. A timestamp before the last creation, removal, attempt of one, or cleaning
/// counts as the time of that call. If such a call has a wrong time far in the future, all bindings
/// expire; the second call whose time is earlier by more than a lifetime sets the clock back, so
/// time goes on from there. After a clock was set back by less, or if lookups are all that is
/// called, tell the store: [`set_clock`](Self::set_clock).
///
/// Tags are hashed by `S`, which is keyed by default: an attacker cannot choose tags of one group.
/// To keep their tags secret from each other is up to the users, who draw 64 bits at random.
///
/// The [module](super) has the design and its invariants.
///
/// | method | cost |
/// |---|---|
/// | `find`, `get`, `get_mut` | a group of the index, and its slot if the tag is present |
/// | `find_or_create`, `get_or_insert_with` | the same, and the next slot; two expired bindings are reclaimed |
/// | `remove` | as `find` |
/// | `read`, `write` | O(1): the slot of the binding, without a search |
/// | `get_batch`, `get_batch_with`, `get_or_insert_batch` | as many tags, the cache misses of 32 overlapped |
/// | `clean`; `sweep` | O(budget), and a binary search; O(expired bindings) |
/// | `live` | O(log n), after removals O(capacity) |
/// | `iter`, `retain`, `extract_if`, `clear`, `clone`, `new` | O(capacity) |
/// | `len`, `capacity`, `lifetime`, `allocation_size`, `set_clock` | O(1) |
///
/// Methods that are given hashes cost the same without hashing.
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
///     match sent.get_or_insert_with(source, Timestamp::from_secs(seconds), || 0) {
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
#[doc(alias("nonce", "rate limit", "syn cache", "syn flood", "time to live"))]
pub struct EphemeralStore<T = u64, V = u64, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    pub(super) hasher: S,
    pub(super) index: Index<A>,
    /// The bindings that are live at `now`, and expired ones that are not reclaimed yet.
    pub(super) ring: Ring<Entry<T, V>, A>,
    pub(super) lifetime: Lifetime,
    /// The tick of the last creation or cleaning.
    pub(super) clock: Clock,
    /// The tick from which on the next sweep is due.
    pub(super) next_sweep: u64,
    /// The slots of removed bindings that new ones may take.
    pub(super) vacancies: Vacancies,
}

/// A tag and its value. The ring adds a link and an expiry time.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Entry<T, V> {
    pub(super) tag: T,
    pub(super) value: V,
}

impl<T, V> Entry<T, V> {
    const TAG_WORDS: u32 = size_of::<T>().div_ceil(4) as u32;
    pub(super) const VALUE_WORDS: u32 = size_of::<V>().div_ceil(4) as u32;
    /// The word that leads here, the tag, the link and the expiry. The paper counts the link of
    /// each entry, and again as the word that leads to the next; here it is the location in the
    /// index.
    pub(super) const EXAMINED_WORDS: u32 = 3 + Self::TAG_WORDS;
    /// The tag, the link and the expiry, and the number in the index.
    pub(super) const CREATED_WORDS: u32 = 3 + Self::TAG_WORDS;
}

/// A handle to a binding, which locates it without a search. Handles are never reused.
///
/// It is valid for the store that returned it, until the binding expires or is removed: see
/// [`read`](EphemeralStore::read).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding {
    pub(super) sequence: u64,
    /// Distinguishes the bindings that have had one slot with the same sequence number.
    pub(super) expiry: u32,
}

impl<T, V> EphemeralStore<T, V> {
    /// Creates a store for `capacity` bindings, rounded up to a power of two, which live for
    /// `lifetime`. It has a randomly keyed hasher. O(capacity).
    ///
    /// A user who creates bindings at a steady rate needs capacity for one lifetime of creations.
    /// All memory is allocated here.
    ///
    /// # Errors
    ///
    /// If either argument is zero, the capacity exceeds 2²⁸, or the allocation fails.
    pub fn new(capacity: usize, lifetime: Duration) -> Result<Self, StoreError> {
        Self::new_in(capacity, lifetime, Global)
    }
}

impl<T, V, A: Allocator + Clone> EphemeralStore<T, V, DefaultHashBuilder, A> {
    /// Creates a store as [`new`](EphemeralStore::new), whose memory is from `memory`.
    ///
    /// # Errors
    ///
    /// As [`new`](EphemeralStore::new).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut open: EphemeralStore<u32, &str, _, _> =
    ///     EphemeralStore::new_in(100, Duration::from_secs(60), &arena)?;
    /// open.find_or_create(7, Timestamp::ZERO, || "SYN")?;
    /// assert!(open.allocator().allocated_bytes() >= open.allocation_size());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn new_in(capacity: usize, lifetime: Duration, memory: A) -> Result<Self, StoreError> {
        Self::with_parts_in(capacity, lifetime, DefaultHashBuilder::new(), memory)
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
    /// assert_eq!((store.capacity(), store.lifetime()), (1024, lifetime));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn with_parts(capacity: usize, lifetime: Duration, hasher: S) -> Result<Self, StoreError> {
        Self::with_parts_in(capacity, lifetime, hasher, Global)
    }
}

impl<T, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Creates a store as [`with_parts`](EphemeralStore::with_parts), whose memory is from
    /// `memory`: three blocks, which are allocated here.
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
    /// assert!(seen.find_or_create(1, Timestamp::ZERO, || ())?.is_new);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn with_parts_in(
        capacity: usize,
        lifetime: Duration,
        hasher: S,
        memory: A,
    ) -> Result<Self, StoreError> {
        let lifetime = Lifetime::new(lifetime)?;
        let ring = Ring::new_in(capacity, memory.clone())?;
        let index = Index::new_in(ring.capacity(), memory)?;
        let (clock, vacancies) = (Clock::new(lifetime.ticks.into()), Vacancies::NONE);
        Ok(Self { hasher, index, ring, lifetime, clock, next_sweep: 0, vacancies })
    }

    /// Returns the allocator that the store was created with.
    #[must_use]
    pub const fn allocator(&self) -> &A {
        self.index.allocator()
    }

    /// Returns the maximum number of bindings.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Returns the lifetime of a binding.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.lifetime.period
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.ring.allocation_size() + self.index.allocation_size()
    }

    /// Returns the number of bindings that occupy a slot: the live ones, and the expired ones that
    /// are not reclaimed yet. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.bodies()
    }

    /// Returns whether no binding occupies a slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of live bindings. O(log n), or O(capacity) if bindings have been removed
    /// within the last lifetime.
    #[must_use]
    pub fn live(&self, now: Timestamp) -> usize {
        if self.ring.has_vacancies() || !self.is_in_order() {
            return self.iter(now).count();
        }
        self.ring.live() - self.expired_after(self.elapsed(now))
    }

    /// Iterates over the tags and values of the live bindings, oldest first; one that has taken
    /// the place of a removed one comes at its place. O(log n) to begin, O(1) for each.
    pub fn iter(&self, now: Timestamp) -> impl DoubleEndedIterator<Item = (&T, &V)> {
        let elapsed = self.elapsed(now);
        let positions = self.expired_after(elapsed)..self.ring.live();
        let live = positions.filter_map(move |position| self.live_entry(position, elapsed));
        live.map(|entry| (&entry.tag, &entry.value))
    }

    /// Returns the entry at a position, if there is one that is live `elapsed` ticks after the last
    /// creation or cleaning.
    fn live_entry(&self, position: usize, elapsed: u64) -> Option<&Entry<T, V>> {
        let is_live = self.remaining(self.ring.times(position)?) > elapsed;
        self.ring.get(position).filter(|_| is_live)
    }

    /// Reclaims at most `budget` expired bindings. Returns their number.
    #[inline]
    pub(super) fn reclaim(&mut self, budget: usize) -> usize {
        let Self { ring, index, .. } = self;
        ring.reclaim(budget, |link, soon| unlink(index, link, soon))
    }

    /// Makes room for a creation `elapsed` ticks after the last one, and advances the time of the
    /// store, if that is simple: at most one binding has just expired, no slot is vacant, and no
    /// period of [`Vacancies`] begins. Otherwise it changes nothing and returns false.
    #[inline(always)]
    pub(super) fn advance_simply(&mut self, elapsed: u64) -> bool {
        let now = self.clock.now() + elapsed;
        if !self.ring.is_plain() || self.vacancies.is_period_over(now) {
            return false;
        }
        let span = self.span_after(elapsed);
        let if_due = |times: Option<Times>| times.filter(|times| !times.is_within(span));
        let Some(times) = if_due(self.ring.times(0)) else {
            if self.ring.is_full() {
                return false;
            }
            self.clock.advance(elapsed);
            return true;
        };
        let location = Location::from_link(times.link);
        if if_due(self.ring.times(1)).is_some() || !location.is_home() {
            return false;
        }
        self.clock.advance(elapsed);
        self.index.free_slot(location);
        // It may be the link of a vacant slot: then another group is prefetched.
        self.index.prefetch_location(Location::from_link(self.ring.link_soon()));
        self.ring.pop();
        true
    }

    /// Returns the ticks since the last creation or cleaning.
    #[inline]
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        self.clock.elapsed(self.lifetime.ticks_at(now))
    }

    /// Returns the ticks by which a creation or cleaning is to advance the time of the store.
    #[inline(always)]
    pub(super) fn follow(&mut self, now: Timestamp) -> u64 {
        self.clock.follow(self.lifetime.ticks_at(now))
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
    /// store.find_or_create(7, Timestamp::from_secs(3600), || 1)?;
    /// // The clock is set back by an hour.
    /// store.set_clock(Timestamp::from_secs(0));
    /// assert_eq!(store.get(&7, Timestamp::from_secs(9)), Some(&1));
    /// assert_eq!(store.get(&7, Timestamp::from_secs(10)), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_clock(&mut self, now: Timestamp) {
        self.clock.set(self.lifetime.ticks_at(now));
    }

    /// Returns whether the live entries of the ring are in the order of their expiry.
    #[inline]
    pub(super) fn is_in_order(&self) -> bool {
        self.vacancies.is_in_order(self.ring.oldest())
    }

    /// Returns the ticks in which bindings expire that are live now.
    #[inline(always)]
    pub(super) fn span_at(&self, now: Timestamp) -> Span {
        self.span_after(self.elapsed(now))
    }

    /// Returns the ticks in which bindings expire that are live `elapsed` ticks after the last
    /// creation or cleaning.
    #[inline(always)]
    pub(super) fn span_after(&self, elapsed: u64) -> Span {
        let doubled_start = (self.clock.now().wrapping_add(elapsed) as u32).wrapping_add(1) << 1;
        // None lives longer.
        let ticks = u64::from(self.lifetime.ticks).saturating_sub(elapsed) as u32;
        Span { doubled_start, ticks }
    }

    /// Returns the low half of twice the tick of the last creation or cleaning.
    #[inline(always)]
    pub(super) const fn doubled_now(&self) -> u32 {
        (self.clock.now() as u32) << 1
    }

    /// Returns the remaining ticks of a live entry, as of the last creation or cleaning; 0 if it
    /// has expired and waits for an older one.
    #[inline]
    pub(super) fn remaining(&self, times: Times) -> u64 {
        self.until_expiry(times).max(0) as u64
    }

    /// Returns the ticks until a live entry expires, or since it has expired. The low half of its
    /// expiry suffices: see [`lifetime`](super::lifetime).
    #[inline]
    pub(super) fn until_expiry(&self, times: Times) -> i64 {
        i64::from(times.until_expiry(self.doubled_now()))
    }

    /// Returns whether the entry at a position expires within `elapsed` ticks after the last
    /// creation or cleaning.
    #[inline]
    fn expires_within(&self, position: usize, elapsed: i64) -> bool {
        self.ring.times(position).is_some_and(|times| self.until_expiry(times) <= elapsed)
    }

    /// Returns how many of the oldest live entries have expired `elapsed` ticks after the last
    /// creation or cleaning. If they are not in the order of their expiry, expired ones may follow,
    /// and some that have just expired may not be counted.
    #[inline]
    fn expired_after(&self, elapsed: u64) -> usize {
        // None lives longer.
        let most = elapsed.min(self.lifetime.ticks.into()) as i64;
        // Mostly none, or a few.
        let few = (0..LINEAR_SCAN).find(|&position| !self.expires_within(position, most));
        few.unwrap_or_else(|| self.expired_after_slow(elapsed))
    }

    #[cold]
    fn expired_after_slow(&self, elapsed: u64) -> usize {
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let disorder = self.vacancies.disorder(self.ring.oldest(), self.lifetime.ticks);
        // Entries before one that has expired by that much have expired, too.
        let elapsed = elapsed.saturating_sub(disorder);
        let (mut low, mut high) = (LINEAR_SCAN, self.ring.live());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.expires_within(middle, elapsed) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Advances the time of the store, and expires bindings.
    #[inline]
    pub(super) fn advance_to(&mut self, now: Timestamp) {
        let elapsed = self.follow(now);
        self.advance_by(elapsed);
    }

    #[inline]
    pub(super) fn advance_by(&mut self, elapsed: u64) {
        self.ring.expire(self.expired_after(elapsed));
        self.clock.advance(elapsed);
        self.vacancies.advance(self.clock.now(), self.lifetime.ticks, self.ring.next());
    }
}

/// Removes the binding with a link from the index, and prefetches the group of the binding with the
/// link `soon`.
#[inline(always)]
fn unlink<A: Allocator>(index: &mut Index<A>, link: u32, soon: u32) {
    index.remove(Location::from_link(link));
    // It may be the link of a vacant slot: then another group is prefetched.
    index.prefetch_location(Location::from_link(soon));
}

impl<T: Clone, V: Clone, S: Clone, A: Allocator + Clone> Clone for EphemeralStore<T, V, S, A> {
    /// Clones the bindings that were live at the last creation or cleaning.
    fn clone(&self) -> Self {
        let (hasher, ring, mut index) =
            (self.hasher.clone(), self.ring.clone(), self.index.clone());
        // The ring is without them.
        let expired = self.ring.links(false);
        expired.for_each(|(_, link)| index.remove(Location::from_link(link)));
        Self { hasher, index, ring, ..*self }
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
