//! Calls that came already.

use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use super::chained::ChainedCache;
use super::chains::ChainedConfig;
use super::{Broken, CacheError};
use crate::eviction::Lru;
use crate::hash::DefaultHashBuilder;
use crate::timestamp::Timestamp;

/// Expired senders that are forgotten with each packet.
const FORGOTTEN_AT_ONCE: usize = 2;

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether the packet may be taken"]
pub enum Verdict {
    /// It is new: its number is above the last one of its sender, or nothing is known of the sender.
    Accept,
    /// It is an old one, which came already or is no longer waited for.
    Duplicate,
    /// It is of a sender of whom nothing is known, and there is no room to know more: whoever takes it may take it
    /// twice.
    Full,
}

/// Tells calls of remote procedures from their duplicates: for each sender the number of its last call.
///
/// A packet is taken if its number is above the last one that was taken from its sender. A sender from whom
/// nothing was taken for a `lifetime` is forgotten, and any number of his is taken then. So each call is taken once if
/// none of its copies comes a lifetime or more after the first that came: the lifetime has to cover the time for which
/// a caller sends a call again, and the longest that a packet can be under way. A lifetime of zero takes everything.
///
/// Nobody is forgotten before, or duplicates would be taken: a filter that is full takes no packets of new
/// senders, [says so](Verdict::Full), and is as good as before for the others. Two expired senders are forgotten
/// with each packet, so nobody waits for a cleaning.
///
/// All is O(1) but for the chains of the hash, which is keyed.
///
/// Paper: Birrell and Nelson 1984, section 3; the chained table of Chandranmenon and Varghese, section 3.
///
/// # Example
///
/// ```
/// use flowtable::cache::{DuplicateFilter, Verdict};
/// use flowtable::Timestamp;
/// use std::time::Duration;
///
/// let mut filter = DuplicateFilter::new(1000, Duration::from_secs(60))?;
/// let mut say = |sequence, seconds| filter.accept("a process", sequence, Timestamp::from_secs(seconds));
/// assert_eq!([say(1, 0), say(2, 1), say(1, 2), say(2, 2)], {
///     use Verdict::{Accept, Duplicate};
///     [Accept, Accept, Duplicate, Duplicate]
/// });
/// // It has crashed, and begins again. By now no packet of its former life is left.
/// assert_eq!(say(1, 61), Verdict::Accept);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DuplicateFilter<K, S = DefaultHashBuilder> {
    /// In the order in which packets were taken from them.
    senders: ChainedCache<K, Last, Lru, S>,
    lifetime: Duration,
    now: Timestamp,
}

/// What is known of a sender.
#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u64,
    taken: Timestamp,
}

impl<K> DuplicateFilter<K> {
    /// A filter for so many senders at once, who are forgotten when nothing was taken from them for so long.
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
    /// The same with a hash of one's own. Chains are not bounded: somebody else's call must not be forgotten.
    /// O(capacity).
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
    ///     _ = filter.accept(sender, 1, Timestamp::from_secs(sender));
    /// }
    /// // No packets come for a while. Four have been silent for a minute.
    /// let now = Timestamp::from_secs(3) + filter.lifetime();
    /// assert_eq!((filter.clean(now, 3), filter.clean(now, 3), filter.len()), (3, 1, 6));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn with_hasher(capacity: usize, lifetime: Duration, hasher: S) -> Result<Self, CacheError> {
        let config = ChainedConfig::new(capacity)?.with_elasticity(usize::MAX)?;
        let senders = ChainedCache::with_parts(config, Lru::new(), hasher)?;
        Ok(Self { senders, lifetime, now: Timestamp::default() })
    }

    /// Senders that are known, those included that will be forgotten as soon as there is time.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.senders.len()
    }

    /// Whether no sender is known.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    /// The most senders that are known at once.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.senders.capacity()
    }

    /// After how much silence a sender is forgotten.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Bytes allocated.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.senders.allocation_size()
    }

    /// Forgets senders from whom nothing was taken for a lifetime, but not more than `budget`. Returns how many.
    /// O(budget).
    ///
    /// [`accept`](Self::accept) does so with each packet; this is for when none come.
    pub fn clean(&mut self, now: Timestamp, budget: usize) -> usize {
        self.now = self.now.max(now);
        let (now, lifetime) = (self.now, self.lifetime);
        let mut forgotten = 0;
        while forgotten < budget {
            let Some(first) = self.senders.victim() else { break };
            if now.since(self.senders.chains().entry(first).value.taken) < lifetime {
                break;
            }
            drop(self.senders.take(first));
            forgotten += 1;
        }
        forgotten
    }

    /// Checks the invariants. O(capacity).
    ///
    /// # Errors
    ///
    /// Which one does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Timestamp, cache::DuplicateFilter};
    /// use std::time::Duration;
    ///
    /// let mut filter = DuplicateFilter::new(10, Duration::from_secs(60))?;
    /// _ = filter.accept("a process", 1, Timestamp::ZERO);
    /// assert_eq!(filter.validate(), Ok(()));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        self.senders.validate()
    }
}

impl<K: Eq + Hash, S: BuildHasher> DuplicateFilter<K, S> {
    /// What to do with a packet that has this number. Numbers of a sender grow; they do not wrap.
    ///
    /// Time stands still when `now` is before a time that was given already.
    pub fn accept(&mut self, sender: K, sequence: u64, now: Timestamp) -> Verdict {
        self.clean(now, FORGOTTEN_AT_ONCE);
        let taken = self.now;
        let hash = self.senders.hash_of(&sender) as u32;
        let Some(slot) = self.senders.chains().find(hash, |own| sender == *own) else {
            if self.len() >= self.capacity() {
                return Verdict::Full;
            }
            drop(self.senders.insert_new(hash, sender, Last { sequence, taken }));
            return Verdict::Accept;
        };
        let last = self.senders.chains().entry(slot).value;
        let is_forgotten = taken.since(last.taken) >= self.lifetime;
        if !is_forgotten && sequence <= last.sequence {
            return Verdict::Duplicate;
        }
        *self.senders.use_of(slot) = Last { sequence, taken };
        Verdict::Accept
    }
}
