//! The store: what it is made of, and how bindings leave it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::StoreError;
use super::heads::{Head, Heads};
use super::lifetime::Lifetime;
use super::ring::Ring;
use crate::hash::DefaultHashBuilder;
use crate::probes::Observer;
use crate::timestamp::Timestamp;

/// Expired bindings that are looked at one by one before the last one is searched for.
const LOOKED_AT: usize = 4;

/// Bindings of tags to values, each of which lives for one lifetime from when it was made.
///
/// Look-ups, reading and writing never make a binding live longer. When as many are alive as there is room for,
/// nothing is created until the oldest one expires.
///
/// Time is an argument, and one that goes back is taken for that of the last creation, tried or done, or cleaning. So
/// after a creation far in the future time stands still until then, or until [`clear`](Self::clear).
/// Tags are hashed by `S`, which is keyed unless said otherwise: strangers cannot choose tags of one chain. That
/// they cannot choose each other's tags is up to them: they draw 64 bits at random.
///
/// See the [module](super) for how it works and what it costs. What does not say otherwise is O(1).
///
/// # Example
///
/// Who has sent more than three requests within ten seconds has to wait until the first of them is ten seconds ago.
///
/// ```
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::net::Ipv4Addr;
/// use std::time::Duration;
///
/// let mut sent: EphemeralStore<Ipv4Addr, u32> = EphemeralStore::new(1000, Duration::from_secs(10))?;
/// let mut may_send = |source, seconds| match sent.get_or_insert_with(source, Timestamp::from_secs(seconds), || 0) {
///     Ok(count) => {
///         *count += 1;
///         *count <= 3
///     }
///     // A thousand others have: a flood cannot make it grow, nor wipe out who is counted already.
///     Err(_) => false,
/// };
/// let source = Ipv4Addr::LOCALHOST;
/// assert_eq!([0, 1, 2, 3, 9, 10].map(|at| may_send(source, at)), [true, true, true, false, false, true]);
/// # Ok::<(), flowtable::ephemeral::StoreError>(())
/// ```
#[derive(Clone)]
pub struct EphemeralStore<T = u64, V = u64, S = DefaultHashBuilder> {
    pub(super) hasher: S,
    /// There is a power of two of them.
    pub(super) heads: Box<[Head]>,
    /// Who lives at `now`, and the dead who are not reclaimed yet.
    pub(super) ring: Ring<Entry<T, V>>,
    pub(super) lifetime: Lifetime,
    /// Ticks of the last creation or cleaning: the latest that was ever said to one.
    pub(super) now: u64,
    /// When the next sweep is due.
    next_sweep: Timestamp,
}

/// As the paper has it: for tags and values of 64 bits 24 bytes. What look-ups read comes first, to be in one line.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Entry<T, V> {
    pub(super) tag: T,
    /// The low half of the number of the next older one of the chain, if that is still there.
    pub(super) link: u32,
    /// The low half of the tick from which on it is dead.
    pub(super) expiry: u32,
    pub(super) value: V,
}

impl<T, V> Entry<T, V> {
    const TAG_WORDS: u32 = size_of::<T>().div_ceil(4) as u32;
    const VALUE_WORDS: u32 = size_of::<V>().div_ceil(4) as u32;
    /// The word that leads here, the tag, the link and the expiry. The paper counts the link of each entry, and
    /// again as the word that leads to the next.
    pub(super) const EXAMINED_WORDS: u32 = 3 + Self::TAG_WORDS;
    /// The tag, the link and the expiry, and the head.
    pub(super) const CREATED_WORDS: u32 = 3 + Self::TAG_WORDS;
}

/// A binding by its number: where it is found again without a search. It names no other one, ever.
///
/// It is good for the store that gave it. There it leads to nothing when the binding has expired: see
/// [`read`](EphemeralStore::read).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding(pub(super) u64);

impl<T, V> EphemeralStore<T, V> {
    /// A store with room for so many bindings, rounded up to a power of two, which live for so long. It has two
    /// heads for each, and hashes with a key of its own. O(capacity).
    ///
    /// Whoever creates bindings at a rate needs room for as many as he creates in a lifetime. All memory is allocated
    /// here.
    ///
    /// # Errors
    ///
    /// If either is zero, if there are more bindings than 2³¹, or if the memory cannot be had.
    pub fn new(capacity: usize, lifetime: Duration) -> Result<Self, StoreError> {
        Self::with_parts(capacity, lifetime, Heads::default(), DefaultHashBuilder::new())
    }
}

impl<T, V, S> EphemeralStore<T, V, S> {
    /// The same with as many heads and this hasher. It takes the low bits of hashes to choose a head, and the upper five
    /// to tell tags of one chain apart.
    ///
    /// # Errors
    ///
    /// Those of [`new`](EphemeralStore::new).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::ephemeral::Heads;
    /// use flowtable::{DefaultHashBuilder, EphemeralStore};
    /// use std::time::Duration;
    ///
    /// // A secret of one's own, where there is no operating system to give one.
    /// let hasher = DefaultHashBuilder::with_seeds([3, 1, 4, 1]);
    /// let small: EphemeralStore = EphemeralStore::with_parts(1000, Duration::from_secs(10), Heads::Half, hasher)?;
    /// let large: EphemeralStore = EphemeralStore::new(1000, Duration::from_secs(10))?;
    /// assert_eq!((small.capacity(), small.lifetime()), (1024, large.lifetime()));
    /// assert!(small.allocation_size() < large.allocation_size());
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn with_parts(
        capacity: usize,
        lifetime: Duration,
        heads: Heads,
        hasher: S,
    ) -> Result<Self, StoreError> {
        let lifetime = Lifetime::new(lifetime)?;
        let ring = Ring::new(capacity)?;
        let count = heads.count(ring.capacity()).ok_or(StoreError::TooLarge)?;
        let mut heads = Vec::new();
        heads.try_reserve_exact(count).map_err(|_| StoreError::NoMemory)?;
        heads.resize(count, Head::EMPTY);
        let heads = heads.into_boxed_slice();
        Ok(Self { hasher, heads, ring, lifetime, now: 0, next_sweep: Timestamp::ZERO })
    }

    /// Bindings that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// How long a binding lives.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.lifetime.period
    }

    /// Bytes allocated.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.capacity() * size_of::<Entry<T, V>>() + size_of_val(&*self.heads)
    }

    /// Bindings that take room: the living, and the expired that are not reclaimed yet. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.living() + self.ring.dead()
    }

    /// Whether there are none that take room.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bindings that are alive. O(log n).
    #[must_use]
    pub fn live(&self, now: Timestamp) -> usize {
        self.ring.living() - self.dead_at(self.elapsed(now))
    }

    /// Tags and values of those that are alive, oldest first. O(log n) to begin, O(1) for each.
    pub fn iter(&self, now: Timestamp) -> impl DoubleEndedIterator<Item = (&T, &V)> {
        let dead = self.dead_at(self.elapsed(now));
        self.ring.iter_from(dead).map(|entry| (&entry.tag, &entry.value))
    }

    /// The value of a binding; nothing if it has expired. O(1): no search.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let at = Timestamp::from_secs;
    /// let binding = store.find_or_create(7, at(0), || 1)?.binding;
    /// assert_eq!(store.write(binding, at(1), 2), Ok(1));
    /// assert_eq!(store.read(binding, at(9)), Some(&2));
    /// assert_eq!(store.read(binding, at(10)), None);
    /// assert_eq!(store.write(binding, at(10), 3), Err(3));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read(&self, binding: Binding, now: Timestamp) -> Option<&V> {
        self.read_observed(binding, now, &mut ())
    }

    /// The same, telling the observer what it touches: the words of the value.
    #[must_use]
    pub fn read_observed(
        &self,
        binding: Binding,
        now: Timestamp,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        let entry = self.ring.get(self.order_of(binding, now)?)?;
        observer.words(Entry::<T, V>::VALUE_WORDS);
        Some(&entry.value)
    }

    /// Gives a binding another value, which does not make it live longer.
    ///
    /// # Errors
    ///
    /// It has expired. The value is given back.
    pub fn write(&mut self, binding: Binding, now: Timestamp, value: V) -> Result<V, V> {
        self.write_observed(binding, now, value, &mut ())
    }

    /// The same, telling the observer what it touches: the words of the value.
    ///
    /// # Errors
    ///
    /// It has expired. The value is given back.
    pub fn write_observed(
        &mut self,
        binding: Binding,
        now: Timestamp,
        value: V,
        observer: &mut impl Observer,
    ) -> Result<V, V> {
        let order = self.order_of(binding, now);
        let Some(entry) = order.and_then(|order| self.ring.get_mut(order)) else {
            return Err(value);
        };
        observer.words(Entry::<T, V>::VALUE_WORDS);
        Ok(core::mem::replace(&mut entry.value, value))
    }

    /// How many of the ring's living came before a binding, if it is alive.
    fn order_of(&self, binding: Binding, now: Timestamp) -> Option<usize> {
        let order = usize::try_from(binding.0.checked_sub(self.ring.oldest())?).ok()?;
        let entry = self.ring.get(order)?;
        (self.elapsed(now) < self.left(entry)).then_some(order)
    }

    /// Reclaims what has expired, at most so many. How many it were.
    ///
    /// Creation does it as well. This is for a store in which nothing is created for long, and whose values hold
    /// something that should be given back. O(`budget`), and O(log n) to see which have expired.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..5 {
    ///     store.find_or_create(tag, Timestamp::from_secs(tag), || 0)?;
    /// }
    /// let now = Timestamp::from_secs(12);
    /// assert_eq!((store.len(), store.live(now)), (5, 2));
    /// assert_eq!((store.clean(now, 2), store.clean(now, 2), store.len()), (2, 1, 2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn clean(&mut self, now: Timestamp, budget: usize) -> usize {
        self.pass_to(now);
        self.ring.reclaim(budget)
    }

    /// What the paper's cleaner does: once in a tenth of a lifetime, reclaims all that has expired. How many it were.
    ///
    /// Called more often it does nothing. It takes as long as there are expired ones: [`clean`](Self::clean) bounds that.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..5 {
    ///     store.find_or_create(tag, Timestamp::from_secs(tag), || 10 * tag)?;
    /// }
    /// let now = Timestamp::from_secs(12);
    /// assert!(store.iter(now).eq([(&3, &30), (&4, &40)]));
    /// assert_eq!((store.sweep(now), store.sweep(now)), (3, 0));
    /// store.clear();
    /// assert_eq!((store.len(), store.iter(now).count()), (0, 0));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn sweep(&mut self, now: Timestamp) -> usize {
        if now < self.next_sweep {
            return 0;
        }
        self.next_sweep = now + self.lifetime.period / 10;
        self.clean(now, usize::MAX)
    }

    /// Reclaims all bindings, the living as well, and forgets what time it was: times may begin anew. O(n) where values
    /// have something to drop.
    pub fn clear(&mut self) {
        self.ring.expire(self.ring.living());
        (self.now, self.next_sweep) = (0, Timestamp::ZERO);
        self.ring.reclaim(usize::MAX);
    }

    /// Ticks since the last creation or cleaning.
    #[inline]
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        self.lifetime.ticks_at(now).saturating_sub(self.now)
    }

    /// Ticks that are left as of the last creation or cleaning, of one that lived then: it was made within a
    /// lifetime of it, so half of its expiry says all.
    #[inline]
    pub(super) fn left(&self, entry: &Entry<T, V>) -> u64 {
        u64::from(entry.expiry.wrapping_sub(self.now as u32))
    }

    /// Whether the one that so many came before will be dead so many ticks after the last creation or cleaning.
    #[inline]
    fn is_dead(&self, order: usize, elapsed: u64) -> bool {
        self.ring.get(order).is_some_and(|entry| self.left(entry) <= elapsed)
    }

    /// How many of the ring's living will be dead so many ticks after the last creation or cleaning.
    #[inline]
    fn dead_at(&self, elapsed: u64) -> usize {
        // Mostly it is none, or a few.
        let few = (0..LOOKED_AT).find(|&order| !self.is_dead(order, elapsed));
        few.unwrap_or_else(|| self.many_dead_at(elapsed))
    }

    #[cold]
    fn many_dead_at(&self, elapsed: u64) -> usize {
        let (mut dead, mut living) = (LOOKED_AT, self.ring.living());
        while dead < living {
            let middle = dead + (living - dead) / 2;
            match self.is_dead(middle, elapsed) {
                true => dead = middle + 1,
                false => living = middle,
            }
        }
        dead
    }

    /// Lets time pass.
    #[inline]
    pub(super) fn pass_to(&mut self, now: Timestamp) {
        let elapsed = self.elapsed(now);
        self.ring.expire(self.dead_at(elapsed));
        self.now += elapsed;
    }
}

impl<T: fmt::Debug, V: fmt::Debug, S> fmt::Debug for EphemeralStore<T, V, S> {
    /// Those that lived at the last creation or cleaning: there is nobody to say what time it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter(Timestamp::ZERO)).finish()
    }
}
