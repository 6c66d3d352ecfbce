//! Images of a cache: its flows with their ages, to be saved and restored over a restart.
//!
//! ```text
//!     cache ── pages ──▸ Image ── serde ──▸ bytes ── serde ──▸ Image ── restore ──▸ cache
//! ```
//!
//! An image has ages, not times: the clock of the next run may have another origin. Restored flows
//! continue as if the restart had taken no time; a caller that measures its duration sets the clock
//! to the time before the restart, and advances the cache by it.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;
use core::{iter, mem};

use super::events::AliasError;
use super::scan::Resident;
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::connection::ConnectionState;
use crate::flow_cache::packet::lookup::Arrival;
use crate::flow_cache::packet::record::{Alias, Cold, Flow, Marks};
use crate::flow_cache::packet::state::{EndReason, Tenant};
use crate::flow_cache::store::slots::KeyId;
use crate::flow_cache::time::timeouts;
use crate::key::flow::FlowName;
use crate::memory::Allocator;
use crate::timestamp::Timestamp;
use crate::trash::TrashMap;

/// The version of the serialized format.
const FORMAT: u32 = 3;

/// The greatest age of a flow: the range of the cache's clock before its origin.
const OLDEST: u64 = 1 << 61;

/// An image of the flows of a cache, the most recently active flow first.
///
/// It is collected from [pages](FlowCache::page), all at once or in steps; flows that are created
/// or removed between the steps may be in it or not. With the feature `serde` it can be serialized.
///
/// Sequence numbers of first packets are not part of it.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Cursor, Image, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
/// *cache.observe(&7, Packet::UDP, Timestamp::from_secs(5))?.flow = 70;
/// let image: Image<_, _> = cache.page(&mut Cursor::new(), usize::MAX).collect();
///
/// // Another run, with another clock.
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
/// assert_eq!(cache.restore(image, Timestamp::from_secs(1000))?, 1);
/// let found = cache.find(&7).expect("the flow was restored");
/// assert_eq!(cache.get(found.handle), Some(&70));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Image<K, V> {
    format: u32,
    flows: Vec<(SavedFlow<K>, V)>,
}

/// A saved flow, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct SavedFlow<K> {
    key: K,
    /// The newest first.
    aliases: Vec<SavedAlias<K>>,
    connection: ConnectionState,
    tenant: Tenant,
    timeout: Option<u64>,
    is_pinned: bool,
    has_unreported: bool,
    /// Nanoseconds, like the following ages.
    silent: u64,
    unreported: u64,
    age: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct SavedAlias<K> {
    key: K,
    number: u8,
}

impl<K: FlowName> SavedFlow<K> {
    /// The saved form of a flow.
    pub(super) fn of<V, A: Allocator + Clone>(flow: &Resident<'_, K, V, A>) -> Self {
        let (marks, now) = (flow.flow.marks, flow.clock.now());
        let age = |time: u64| (now - time).min(OLDEST);
        let saved = |alias: &Alias<K>| SavedAlias { key: alias.key(), number: alias.number };
        Self {
            key: flow.key(),
            aliases: flow.aliases.clone().map(|(_, alias)| saved(alias)).collect(),
            connection: marks.connection(),
            tenant: flow.tenant(),
            timeout: flow.timeout,
            is_pinned: marks.is_pinned(),
            has_unreported: marks.has(Marks::UNREPORTED),
            silent: age(flow.flow.last_seen),
            unreported: age(flow.cold.reported),
            age: age(flow.cold.first_seen),
        }
    }
}

/// An empty image.
impl<K, V> Default for Image<K, V> {
    fn default() -> Self {
        Self { format: FORMAT, flows: Vec::new() }
    }
}

impl<K, V> Image<K, V> {
    /// Returns the number of flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns whether the image has no flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Drops all but the `count` most recently active flows, for a cache of less capacity.
    /// O(flows).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Cursor, Image, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut large: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     large.observe(&id, Packet::UDP, Timestamp::from_secs(id))?;
    /// }
    /// let mut image: Image<_, _> = large.page(&mut Cursor::new(), usize::MAX).collect();
    /// image.truncate(3);
    /// let mut small: FlowCache<u64, ()> = FlowCache::new(Config::new(3)?);
    /// assert_eq!(small.restore(image, Timestamp::ZERO)?, 3);
    /// assert!(small.find(&9).is_some() && small.find(&6).is_none());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn truncate(&mut self, count: usize) {
        self.flows.truncate(count);
    }

    fn sort(&mut self) {
        self.flows.sort_by_key(|(flow, _)| flow.silent);
    }
}

impl<'a, K, V, A> FromIterator<Resident<'a, K, V, A>> for Image<K, V>
where
    K: FlowName,
    V: Clone,
    A: Allocator + Clone,
{
    fn from_iter<I: IntoIterator<Item = Resident<'a, K, V, A>>>(flows: I) -> Self {
        let mut image = Self::default();
        image.extend(flows);
        image
    }
}

/// Adds flows. O(n log n) in all flows of the image, so pages should not be too small.
impl<'a, K, V, A> Extend<Resident<'a, K, V, A>> for Image<K, V>
where
    K: FlowName,
    V: Clone,
    A: Allocator + Clone,
{
    fn extend<I: IntoIterator<Item = Resident<'a, K, V, A>>>(&mut self, flows: I) {
        let saved = |flow: Resident<'_, K, V, A>| (SavedFlow::of(&flow), flow.value().clone());
        self.flows.extend(flows.into_iter().map(saved));
        self.sort();
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Inserts the flows of an image, each as old at `now` as it was in the image, and returns
    /// their number. O(flows of the image): for startup.
    ///
    /// The flows have new handles, and count as
    /// [changed](crate::flow_cache::Cursor::changed_since). Keys are
    /// hashed by the hasher of the cache: [given hashes](crate::Prehashed) find them if it
    /// computes those.
    ///
    /// # Errors
    ///
    /// If the image is of another format, has more flows than the cache has capacity for, has a key
    /// twice or one that is in the cache, exceeds the share of a tenant, or has invalid ages or
    /// timeouts. The flows of the cache are unchanged, and the error has the image.
    pub fn restore(
        &mut self,
        mut image: Image<K, V>,
        now: Timestamp,
    ) -> Result<usize, RefusedImage<K, V>> {
        let (flows, mut restored) = (image.len(), Vec::new());
        let checked = self.check_image(&image).and_then(|()| {
            let no_memory = |_| ImageError::TooMany { flows, capacity: 0 };
            restored.try_reserve_exact(flows).map_err(no_memory)
        });
        if let Err(reason) = checked {
            return Err(RefusedImage { refused: image, reason });
        }
        self.clock.advance(now);
        let (metrics, is_emergency) = (self.accounting.metrics, self.is_emergency);
        // The most recently active flow is inserted last, and so is the last to be evicted.
        while let Some((saved, value)) = image.flows.pop() {
            match self.restore_flow(&saved, value) {
                Ok(slot) => restored.push(slot),
                Err(value) => {
                    let reason = ImageError::TooMany { flows, capacity: restored.len() };
                    image.flows.push((saved, value));
                    image.flows.extend(restored.into_iter().rev().map(|slot| self.undo(slot)));
                    (self.accounting.metrics, self.is_emergency) = (metrics, is_emergency);
                    return Err(RefusedImage { refused: image, reason });
                }
            }
        }
        self.accounting.metrics.restored += flows as u64;
        Ok(flows)
    }

    /// Restores a flow, and returns its slot; or returns its value if there is no memory for it.
    fn restore_flow(&mut self, saved: &SavedFlow<K>, value: V) -> Result<u32, V> {
        let mut arrival = self.arrive(&saved.key);
        let growth = self.growth(saved.tenant) + self.index.lines.growth(0);
        if !self.has_memory_for(growth) {
            return Err(value);
        }
        self.prepare_insertion(&mut arrival);
        let Arrival { key, hash, direction: initiator } = arrival;
        if self.reserve_flow(hash, saved.tenant).is_err() {
            return Err(value);
        }
        let slot = self.store.flows.next_index();
        self.index.insert_reserved(hash, KeyId::slot(slot));
        self.next_version();
        let mut marks = Marks::new(saved.connection, initiator);
        marks.set(Marks::UNREPORTED, saved.has_unreported);
        marks.set(Marks::PINNED, saved.is_pinned);
        let (now, version) = (self.clock.now(), self.version);
        let flow = Flow { key, marks, last_seen: now - saved.silent, version, value };
        let (first_seen, reported) = (now - saved.age, now - saved.unreported);
        let cold = Cold { first_seen, reported, hash, ..Cold::FREE };
        self.insert_flow(flow, cold, saved.tenant);
        match self.restore_extras(slot, saved) {
            Ok(()) => Ok(slot),
            Err(_) => Err(self.remove_restored(slot)),
        }
    }

    /// Restores the timeout and the aliases of a flow, or returns an error if there is no memory
    /// for them.
    fn restore_extras(&mut self, slot: u32, saved: &SavedFlow<K>) -> Result<(), AliasError> {
        self.insert_timeout(slot, saved.timeout).map_err(|_| AliasError::Memory)?;
        if let Some(state) = self.store.state(slot).filter(|state| state.timeout.is_some()) {
            self.accounting.arm(slot, state, &self.config, self.clock.now());
        }
        let mut aliases = saved.aliases.iter().rev();
        aliases.try_for_each(|SavedAlias { key, number }| {
            self.insert_alias(slot, self.arrive(key), *number)
        })
    }

    /// Removes a flow that has just been restored, and returns its value.
    fn remove_restored(&mut self, slot: u32) -> V {
        self.remove_slot(slot, EndReason::Forced).expect("a restored flow is in its slot").value
    }

    /// Removes a flow that has just been restored, and returns it as it was saved.
    fn undo(&mut self, slot: u32) -> (SavedFlow<K>, V) {
        let flow = self.resident_at(slot).expect("a restored flow is in its slot");
        (SavedFlow::of(&flow), self.remove_restored(slot))
    }

    fn check_image(&self, image: &Image<K, V>) -> Result<(), ImageError> {
        if image.format != FORMAT {
            return Err(ImageError::Format(image.format));
        }
        let capacity = self.config.flows - self.store.len();
        if image.len() > capacity {
            return Err(ImageError::TooMany { flows: image.len(), capacity });
        }
        self.check_shares(image)?;
        // Allocated by the program's allocator, as the image is: the cache's allocator serves its
        // flows.
        let mut keys = TrashMap::new();
        for (flow, (saved, _)) in image.flows.iter().enumerate() {
            if saved.silent.max(saved.unreported) > saved.age || saved.age > OLDEST {
                return Err(ImageError::Ages { flow });
            }
            if saved.timeout.is_some_and(|nanos| !timeouts::is_valid(nanos)) {
                return Err(ImageError::Timeout { flow });
            }
            let mut numbers = [false; 256];
            numbers[0] = true;
            let is_used = |number: u8| mem::replace(&mut numbers[usize::from(number)], true);
            if saved.aliases.iter().map(|alias| alias.number).any(is_used) {
                return Err(ImageError::Keys { flow });
            }
            let further = saved.aliases.iter().map(|alias| &alias.key);
            for key in iter::once(&saved.key).chain(further) {
                let no_memory = |_| ImageError::TooMany { flows: image.len(), capacity: flow };
                let before = keys.try_insert(key.normalized().0, ()).map_err(no_memory)?;
                if before.is_some() || self.resolve(&self.arrive(key)).is_some() {
                    return Err(ImageError::Keys { flow });
                }
            }
        }
        Ok(())
    }

    fn check_shares(&self, image: &Image<K, V>) -> Result<(), ImageError> {
        let mut flows = TrashMap::new();
        for (flow, (saved, _)) in image.flows.iter().enumerate() {
            let Some((has, share)) = self.accounting.tenants.usage(saved.tenant) else { continue };
            let tenant = saved.tenant.0;
            let count = flows.get(&tenant).map_or(1, |count: &usize| count + 1);
            let no_memory = |_| ImageError::TooMany { flows: image.len(), capacity: flow };
            flows.try_insert(tenant, count).map_err(no_memory)?;
            if count > share.saturating_sub(has) {
                return Err(ImageError::Share(saved.tenant));
            }
        }
        Ok(())
    }
}

/// The error of [`FlowCache::restore`]: the image that was not restored, and why.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Cursor, Image, ImageError, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut large: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
/// for id in 0..10 {
///     large.observe(&id, Packet::UDP, Timestamp::ZERO)?;
/// }
/// let image: Image<_, _> = large.page(&mut Cursor::new(), usize::MAX).collect();
/// let mut small: FlowCache<u64, ()> = FlowCache::new(Config::new(3)?);
/// let error = small.restore(image, Timestamp::ZERO).unwrap_err();
/// assert_eq!(error.reason, ImageError::TooMany { flows: 10, capacity: 3 });
/// let mut image = error.refused;
/// image.truncate(3);
/// assert_eq!(small.restore(image, Timestamp::ZERO)?, 3);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RefusedImage<K, V> {
    /// The image, returned.
    pub refused: Image<K, V>,
    /// The reason.
    pub reason: ImageError,
}

/// Without the image, so that `unwrap` and `?` need no `Debug` of keys and values.
impl<K, V> fmt::Debug for RefusedImage<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedImage").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Display for RefusedImage<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<K, V> Error for RefusedImage<K, V> {}

/// The reason why a cache does not restore an image: see [`RefusedImage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// The image has this format, which this version of the crate does not support.
    Format(u32),
    /// The image has more flows than the cache has capacity or memory for: see [`Image::truncate`].
    TooMany {
        /// Flows of the image.
        flows: usize,
        /// Flows for which the cache has capacity.
        capacity: usize,
    },
    /// The flows of this tenant exceed its share.
    Share(Tenant),
    /// A flow has a key or an alias number that is not unique.
    Keys {
        /// Index of the flow in the image.
        flow: usize,
    },
    /// A flow has an invalid timeout.
    Timeout {
        /// Index of the flow in the image.
        flow: usize,
    },
    /// A flow has invalid ages.
    Ages {
        /// Index of the flow in the image.
        flow: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(f, "image of format {format}: must be {FORMAT}"),
            Self::TooMany { flows, capacity } => {
                write!(f, "image of {flows} flows: the capacity suffices for {capacity}")
            }
            Self::Share(tenant) => {
                write!(f, "image with more flows of tenant {} than its share", tenant.0)
            }
            Self::Keys { flow } => write!(f, "flow {flow} of the image has a key of another"),
            Self::Timeout { flow } => write!(f, "flow {flow} of the image has an invalid timeout"),
            Self::Ages { flow } => write!(f, "flow {flow} of the image has invalid ages"),
        }
    }
}

impl Error for ImageError {}
