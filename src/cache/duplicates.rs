//! A filter for duplicate calls of remote procedures.

use alloc::borrow::ToOwned;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use equivalent::Equivalent;

use super::CacheError;
use super::bounded::BoundedCache;
use crate::clock::Clock;
use crate::eviction::Lru;
use crate::hash::source_index::SourceIndex;
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;
use crate::table::lines::fold;
use crate::timestamp::{Timestamp, nanos};

/// The maximum number of expired senders that are removed with each packet.
const EXPIRED_PER_PACKET: usize = 2;

/// The verdict of a [`DuplicateFilter`] on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it decides whether to accept the packet"]
pub enum CallVerdict {
    /// A new call: its sequence number is above the last one of its sender, or the filter has no
    /// state of the sender.
    Accept,
    /// A duplicate of an accepted call, or an older call.
    Duplicate,
    /// A call of a sender without state, and the filter is full, or has no memory for senders with
    /// equal hashes: if it is accepted, its duplicates cannot be detected.
    Full,
}

/// A filter for duplicate calls of remote procedures, by the last sequence number of each sender.
///
/// A packet is accepted if its sequence number is above the last one that was accepted from its
/// sender. The state of a sender expires a `lifetime` after its last accepted packet, and then any
/// sequence number is accepted. So each call is accepted once, provided that none of its copies
/// arrives a lifetime or more after the first one: the lifetime must cover the time for which a
/// caller retransmits, and the maximum delay of a packet. A lifetime of zero accepts everything.
///
/// No state is evicted before it expires, as duplicates would be accepted: a full filter refuses
/// packets of new senders with [`CallVerdict::Full`], and keeps serving the others. Each packet
/// removes up to two expired senders, so there are no pauses for cleaning.
///
/// | method | cost |
/// |---|---|
/// | `accept` | O(1): the cache lines of the index, of the sender and of the oldest sender |
/// | `accept_indexed` | as `accept`, without computing a hash |
/// | `clean` | O(1) for each sender that it removes, as in a packet |
/// | `new`, `with_hasher` | O(capacity) |
/// | `len`, `allocation_size` | O(1) |
///
/// So it is as long as few hashes are equal: they are keyed.
///
/// Paper: Birrell and Nelson 1984, section 3; the table of Chandranmenon and Varghese, section 3.
/// Theirs are chained; this one has the index of [`BoundedCache`].
///
/// # Example
///
/// ```
/// use flowtable::cache::{CallVerdict, DuplicateFilter};
/// use flowtable::Timestamp;
/// use std::time::Duration;
///
/// let mut filter = DuplicateFilter::new(1000, Duration::from_secs(60))?;
/// let mut call = |sequence, seconds| {
///     filter.accept(&"a process", sequence, Timestamp::from_secs(seconds))
/// };
/// assert_eq!([call(1, 0), call(2, 1), call(1, 2), call(2, 2)], {
///     use CallVerdict::{Accept, Duplicate};
///     [Accept, Accept, Duplicate, Duplicate]
/// });
/// // The process has restarted. By now no packet from before the restart is in transit.
/// assert_eq!(call(1, 61), CallVerdict::Accept);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[doc(alias("replay", "rpc"))]
#[derive(Clone, Debug)]
pub struct DuplicateFilter<K, S = DefaultHashBuilder> {
    /// Senders in the order of their last accepted packets.
    senders: BoundedCache<K, LastCall, Lru, S>,
    lifetime: Duration,
    /// In nanoseconds.
    clock: Clock,
}

/// The last accepted call of a sender.
#[derive(Clone, Copy, Debug)]
struct LastCall {
    sequence: u64,
    /// A time of the clock.
    accepted: u64,
}

impl<K> DuplicateFilter<K> {
    /// Creates a filter for up to `capacity` senders, whose state expires after `lifetime`.
    /// O(capacity).
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    pub fn new(capacity: usize, lifetime: Duration) -> Result<Self, CacheError> {
        Self::with_hasher(capacity, lifetime, DefaultHashBuilder::new())
    }
}

impl<K, S> DuplicateFilter<K, S> {
    /// Creates a filter with the given hash. O(capacity).
    ///
    /// Senders with equal hashes take time and memory, as none may be evicted before it expires.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, Timestamp, cache::DuplicateFilter};
    /// use std::time::Duration;
    ///
    /// let hasher = DefaultHashBuilder::with_seeds([3, 1, 4, 1]);
    /// let mut filter = DuplicateFilter::with_hasher(1000, Duration::from_secs(60), hasher)?;
    /// for sender in 0..10 {
    ///     _ = filter.accept(&sender, 1, Timestamp::from_secs(sender));
    /// }
    /// // No packets arrive for a while. Four senders have expired.
    /// let now = Timestamp::from_secs(3) + filter.lifetime();
    /// assert_eq!((filter.clean(now, 3), filter.clean(now, 3), filter.len()), (3, 1, 6));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn with_hasher(capacity: usize, lifetime: Duration, hasher: S) -> Result<Self, CacheError> {
        let senders = BoundedCache::with_parts(capacity, Lru::new(), hasher)?.without_eviction();
        // Of longer lifetimes, no clock has the range.
        let clock = Clock::new(nanos(lifetime).min(u64::MAX / 4));
        Ok(Self { senders, lifetime, clock })
    }

    /// Returns the number of senders, expired ones that are not removed yet included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.senders.len()
    }

    /// Returns whether there are no senders.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    /// Returns the maximum number of senders.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.senders.capacity()
    }

    /// Returns the time after which the state of a sender expires.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Returns the number of bytes allocated.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.senders.allocation_size()
    }

    /// Follows a change of the caller's clock: `now` is the present time, and the state of senders
    /// expires as late as it would have.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{CallVerdict, DuplicateFilter};
    /// use flowtable::Timestamp;
    /// use std::time::Duration;
    ///
    /// let mut filter = DuplicateFilter::new(1000, Duration::from_secs(60))?;
    /// _ = filter.accept(&"a process", 1, Timestamp::from_secs(3600));
    /// filter.set_clock(Timestamp::ZERO);
    /// let mut call = |seconds| filter.accept(&"a process", 1, Timestamp::from_secs(seconds));
    /// assert_eq!([call(59), call(60)], [CallVerdict::Duplicate, CallVerdict::Accept]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn set_clock(&mut self, now: Timestamp) {
        self.clock.set(now.as_nanos());
    }

    /// Removes up to `budget` expired senders, and returns their number. O(budget).
    ///
    /// [`accept`](Self::accept) removes some with each packet; this is for times without packets.
    pub fn clean(&mut self, now: Timestamp, budget: usize) -> usize {
        let elapsed = self.clock.follow(now.as_nanos());
        self.clock.advance(elapsed);
        let (now, lifetime) = (self.clock.now(), nanos(self.lifetime));
        let mut removed = 0;
        while removed < budget {
            let Some(oldest) = self.senders.victim() else { break };
            if now - self.senders.entries().entry(oldest).value.accepted < lifetime {
                break;
            }
            drop(self.senders.remove_at(oldest));
            removed += 1;
        }
        removed
    }

    /// Checks the invariants, for tests. O(capacity).
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Timestamp, cache::DuplicateFilter};
    /// use std::time::Duration;
    ///
    /// let mut filter = DuplicateFilter::new(10, Duration::from_secs(60))?;
    /// _ = filter.accept(&"a process", 1, Timestamp::ZERO);
    /// assert_eq!(filter.validate(), Ok(()));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.senders.validate()
    }
}

impl<K: Eq + Hash, S: BuildHasher> DuplicateFilter<K, S> {
    /// Returns the verdict on a packet with this sequence number, and records it if it is accepted.
    ///
    /// The sequence numbers of a sender increase and do not wrap around. A `now` before the time of
    /// an earlier call counts as the latest time so far; but the second `now` that is earlier by
    /// more than a lifetime sets the clock back, as does [`set_clock`](Self::set_clock).
    pub fn accept<Q>(&mut self, sender: Q, sequence: u64, now: Timestamp) -> CallVerdict
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
    {
        let hash = fold(sender.hash_with(self.senders.hasher()));
        self.accept_by(hash, sender.key(), sequence, now)
    }

    /// Returns the verdict on a packet that carries a constant random index of its sender, as in
    /// section 3 of Chandranmenon and Varghese: no hash is computed. See
    /// [`accept`](Self::accept).
    ///
    /// All packets of a filter must carry an index, and all packets of a sender the same index: a
    /// lookup finds the state of a sender by the sender and the index. A lookup compares all
    /// senders that share an index: only for senders that choose theirs at random, not for hostile
    /// ones.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{CallVerdict, DuplicateFilter};
    /// use flowtable::{Timestamp, hash::source_index::SourceIndex};
    /// use std::time::Duration;
    ///
    /// let mut filter = DuplicateFilter::new(1000, Duration::from_secs(60))?;
    /// let index = SourceIndex::new(0x2a51);
    /// let mut call = |sequence| {
    ///     filter.accept_indexed(index, &"a process", sequence, Timestamp::ZERO)
    /// };
    /// assert_eq!([call(1), call(1)], [CallVerdict::Accept, CallVerdict::Duplicate]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn accept_indexed<Q>(
        &mut self,
        index: SourceIndex,
        sender: &Q,
        sequence: u64,
        now: Timestamp,
    ) -> CallVerdict
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.accept_by(fold(index.get().into()), sender, sequence, now)
    }

    fn accept_by<Q>(&mut self, hash: u32, sender: &Q, sequence: u64, now: Timestamp) -> CallVerdict
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.clean(now, EXPIRED_PER_PACKET);
        let accepted = self.clock.now();
        let is_it = |stored: &K| sender.equivalent(stored);
        let Some(slot) = self.senders.entries().find(hash, is_it) else {
            if self.len() >= self.capacity() {
                return CallVerdict::Full;
            }
            let last = LastCall { sequence, accepted };
            let (slot, _) = self.senders.insert_new(hash, sender.to_owned(), last);
            return if slot.is_some() { CallVerdict::Accept } else { CallVerdict::Full };
        };
        let last = self.senders.entries().entry(slot).value;
        let is_expired = accepted - last.accepted >= nanos(self.lifetime);
        if !is_expired && sequence <= last.sequence {
            return CallVerdict::Duplicate;
        }
        *self.senders.record_use(slot) = LastCall { sequence, accepted };
        CallVerdict::Accept
    }
}
