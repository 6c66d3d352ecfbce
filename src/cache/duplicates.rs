//! A filter for duplicate calls of remote procedures.

use alloc::borrow::ToOwned;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use equivalent::Equivalent;

use super::CacheError;
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;
use crate::memory::Global;
use crate::table::expiring::Expiring;
use crate::table::lines::fold;
use crate::table::records::Record;
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
/// | `clean` | O(1) for each sender that it removes |
/// | `new`, `with_hasher` | O(capacity) |
/// | `len`, `allocation_size` | O(1) |
///
/// So it is as long as few hashes are equal: they are keyed. An accepted packet takes 1.1 to 1.4
/// times as long as in an LRU list without expiry. Of its 166 instructions, 41 are the search of
/// [`EphemeralStore::get`](crate::EphemeralStore::get); 43 follow the clock and read whether the
/// oldest sender has expired, as for a duplicate; 82 move the sender to the end of the list.
///
/// Paper: Birrell and Nelson 1984, section 3; the table of Chandranmenon and Varghese, section 3.
/// Theirs are chained; this one has the index of [`BoundedCache`](super::BoundedCache).
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
    hasher: S,
    /// The last accepted sequence number of each sender.
    senders: Expiring<K, u64, Global>,
    lifetime: Duration,
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
        let senders = Expiring::new_in(capacity, nanos(lifetime), Global)?;
        Ok(Self { hasher, senders, lifetime })
    }

    /// Returns the number of senders, expired ones that are not removed yet included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.senders.records().len()
    }

    /// Returns whether there are no senders.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the maximum number of senders.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.senders.records().capacity()
    }

    /// Returns the time after which the state of a sender expires.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Returns the number of bytes allocated.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.senders.records().allocation_size()
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
        self.senders.set_clock(now);
    }

    /// Removes up to `budget` expired senders, and returns their number. O(budget).
    ///
    /// [`accept`](Self::accept) removes some with each packet; this is for times without packets.
    pub fn clean(&mut self, now: Timestamp, budget: usize) -> usize {
        self.senders.advance(now);
        self.senders.reclaim(budget)
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
    /// an earlier call counts as the latest time so far. A time that is earlier by more than a
    /// lifetime is suspect; the next one, if it is later than the suspect one, sets the clock back,
    /// as does [`set_clock`](Self::set_clock).
    ///
    /// If packets carry a constant random index of their sender, as in section 3 of Chandranmenon
    /// and Varghese, that may be the hash of each sender: a [`Prehashed`](crate::Prehashed). A
    /// lookup compares all senders that share an index: only for senders that choose theirs at
    /// random, not for hostile ones.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{CallVerdict, DuplicateFilter};
    /// use flowtable::{Prehashed, Timestamp, hash::source_index::SourceIndex};
    /// use std::time::Duration;
    ///
    /// let mut filter = DuplicateFilter::new(1000, Duration::from_secs(60))?;
    /// let index = SourceIndex::new(0x2a51);
    /// let mut call = |sequence| {
    ///     let sender = Prehashed { hash: index.get().into(), key: &"a process" };
    ///     filter.accept(sender, sequence, Timestamp::ZERO)
    /// };
    /// assert_eq!([call(1), call(1)], [CallVerdict::Accept, CallVerdict::Duplicate]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn accept<Q>(&mut self, sender: Q, sequence: u64, now: Timestamp) -> CallVerdict
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
    {
        let (hash, sender) = (fold(sender.hash_with(&self.hasher)), sender.key());
        let time = self.senders.advance(now);
        let is_it = |record: &Record<_, K, u64>| sender.equivalent(&record.key);
        let accepted = match self.senders.find_mut(hash, is_it) {
            None => self.senders.push(hash, || (sender.to_owned(), sequence)).is_some(),
            Some((slot, last)) if last.meta.is_after(time) => {
                let is_new = sequence > last.value;
                if is_new {
                    last.value = sequence;
                    self.senders.renew(slot);
                }
                self.senders.reclaim(EXPIRED_PER_PACKET);
                return if is_new { CallVerdict::Accept } else { CallVerdict::Duplicate };
            }
            Some(_) => self.accept_again(hash, sender, sequence),
        };
        if accepted { CallVerdict::Accept } else { CallVerdict::Full }
    }

    /// Accepts a packet of a sender that has expired, and may be one of those that it removes.
    /// Returns whether there is room.
    #[inline(never)]
    fn accept_again<Q>(&mut self, hash: u32, sender: &Q, sequence: u64) -> bool
    where
        Q: Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.senders.reclaim(EXPIRED_PER_PACKET);
        match self.senders.find_mut(hash, |record| sender.equivalent(&record.key)) {
            None => self.senders.push_new(hash, (sender.to_owned(), sequence)).is_some(),
            Some((slot, last)) => {
                last.value = sequence;
                self.senders.renew(slot);
                true
            }
        }
    }
}
