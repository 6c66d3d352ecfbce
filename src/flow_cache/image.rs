//! A cache through a restart: its flows with their ages, to be written down and read again.
//!
//! ```text
//!     cache ── pages ──▸ Image ── serde ──▸ bytes ── serde ──▸ Image ── restore ──▸ cache
//! ```
//!
//! Ages, not times: the clock of the next run may count from elsewhere. What is restored goes on as if
//! the restart had taken no time; who knows how long it took has the clock set to before it, and
//! advanced.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;
use core::{iter, mem};

use super::FlowCache;
use super::event::NameError;
use super::scan::Resident;
use super::state::{Course, EndReason, Tenant};
use super::store::{Flow, Life, NO_NAME, Name, Place};
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::timestamp::Timestamp;
use crate::trash::TrashMap;

/// What is written; another number is another format.
const FORMAT: u32 = 1;

/// No flow is older than what the clock of a cache has before its origin.
const OLDEST: u64 = 1 << 61;

/// The flows of a cache at some time, the one that was seen last first.
///
/// It is collected from [pages](FlowCache::page), all at once or some at a time; flows that come
/// or go in between may be in it or not. With the feature `serde` it can be written in any format.
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
/// // Another run, another clock.
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
/// assert_eq!(cache.restore(image, Timestamp::from_secs(1000))?, 1);
/// let found = cache.find(&7).expect("it was restored");
/// assert_eq!(cache.get(found.handle), Some(&70));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Image<K, V> {
    format: u32,
    flows: Vec<Saved<K, V>>,
}

/// A flow. Ages are nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Saved<K, V> {
    key: K,
    value: V,
    names: Vec<SavedName<K>>,
    course: Course,
    tenant: Tenant,
    is_pinned: bool,
    has_news: bool,
    silent: u64,
    unreported: u64,
    age: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct SavedName<K> {
    key: K,
    number: u8,
}

impl<K: Clone, V: Clone> Saved<K, V> {
    fn of(flow: &Resident<'_, K, V>) -> Self {
        let (life, now) = (&flow.flow.life, flow.clock.now());
        let age = |time: u64| (now - time).min(OLDEST);
        let saved = |name: &Name<K>| SavedName { key: name.key.clone(), number: name.number };
        Self {
            key: flow.key().clone(),
            value: flow.value().clone(),
            names: flow.further_names.clone().map(|(_, name)| saved(name)).collect(),
            course: life.course,
            tenant: life.tenant,
            is_pinned: life.is_pinned,
            has_news: life.has_news,
            silent: age(life.last_seen),
            unreported: age(life.reported),
            age: age(life.first_seen),
        }
    }
}

/// No flows.
impl<K, V> Default for Image<K, V> {
    fn default() -> Self {
        Self { format: FORMAT, flows: Vec::new() }
    }
}

impl<K, V> Image<K, V> {
    /// Number of flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Drops all but the `count` flows that were seen last: for a cache that has room for fewer. O(flows).
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
        self.flows.sort_by_key(|flow| flow.silent);
    }
}

impl<'a, K: Clone, V: Clone> FromIterator<Resident<'a, K, V>> for Image<K, V> {
    fn from_iter<I: IntoIterator<Item = Resident<'a, K, V>>>(flows: I) -> Self {
        let mut image = Self::default();
        image.extend(flows);
        image
    }
}

/// Takes in more flows. O(n log n) in all of them, so pages should not be too small.
impl<'a, K: Clone, V: Clone> Extend<Resident<'a, K, V>> for Image<K, V> {
    fn extend<I: IntoIterator<Item = Resident<'a, K, V>>>(&mut self, flows: I) {
        self.flows.extend(flows.into_iter().map(|flow| Saved::of(&flow)));
        self.sort();
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Takes in the flows of an image, each as old at `now` as it was in the image. Returns how many
    /// they are. O(flows of the image): for the beginning, not for when packets wait.
    ///
    /// The flows have new handles, and count as [changed](super::Cursor::changed_since).
    ///
    /// # Errors
    ///
    /// If the image is of another format, has more flows than there is room for, names a flow twice
    /// or names one of the cache, gives a tenant more than its share, or ages that cannot be. The cache
    /// is as it was.
    pub fn restore(&mut self, image: Image<K, V>, now: Timestamp) -> Result<usize, ImageError> {
        self.check_image(&image)?;
        self.clock.pass(now);
        let (flows, last_id) = (image.len(), self.store.last_id());
        let (metrics, is_emergency) = (self.ledger.metrics, self.is_emergency);
        // The one seen last comes last, as it did.
        for (room, saved) in image.flows.into_iter().rev().enumerate() {
            if self.restore_flow(saved).is_err() {
                // As if nothing had been.
                for slot in 0..self.store.flows.slot_count() {
                    if self.store.flows.get(slot).is_some_and(|flow| flow.life.id > last_id) {
                        self.depart(slot, EndReason::Forced);
                    }
                }
                (self.ledger.metrics, self.is_emergency) = (metrics, is_emergency);
                return Err(ImageError::TooMany { flows, room });
            }
        }
        self.ledger.metrics.restored += flows as u64;
        Ok(flows)
    }

    /// An error if there is no memory, or not by the cache's limit.
    fn restore_flow(&mut self, saved: Saved<K, V>) -> Result<(), NameError> {
        if !self.has_memory_for(self.growth(), 2) {
            return Err(NameError::Memory);
        }
        let now = self.clock.now();
        let slot = self.store.flows.next_index();
        let (name, initiator) = saved.key.normalized();
        let place = Place::slot(slot, initiator);
        self.index.try_insert(name, place).map_err(|_| NameError::Memory)?;
        self.version += 1;
        let life = Life {
            id: 0,
            last_seen: now - saved.silent,
            first_seen: now - saved.age,
            reported: now - saved.unreported,
            version: self.version,
            names: NO_NAME,
            tenant: saved.tenant,
            course: saved.course,
            is_used: false,
            has_news: saved.has_news,
            is_pinned: saved.is_pinned,
        };
        self.settle(Flow { life, value: saved.value, key: saved.key });
        let mut names = saved.names.into_iter().rev();
        names.try_for_each(|SavedName { key, number }| self.put_name(slot, &key, number))
    }

    fn check_image(&self, image: &Image<K, V>) -> Result<(), ImageError> {
        if image.format != FORMAT {
            return Err(ImageError::Format(image.format));
        }
        let room = self.config.flows - self.store.len();
        if image.len() > room {
            return Err(ImageError::TooMany { flows: image.len(), room });
        }
        self.check_shares(image)?;
        let mut names = TrashMap::new();
        for (flow, saved) in image.flows.iter().enumerate() {
            if saved.silent.max(saved.unreported) > saved.age || saved.age > OLDEST {
                return Err(ImageError::Ages { flow });
            }
            let mut numbers = [false; 256];
            numbers[0] = true;
            let is_used = |number: u8| mem::replace(&mut numbers[usize::from(number)], true);
            if saved.names.iter().map(|name| name.number).any(is_used) {
                return Err(ImageError::Names { flow });
            }
            let further = saved.names.iter().map(|name| &name.key);
            for key in iter::once(&saved.key).chain(further) {
                if self.lead(key).is_some() || names.insert(key.normalized().0, ()).is_some() {
                    return Err(ImageError::Names { flow });
                }
            }
        }
        Ok(())
    }

    fn check_shares(&self, image: &Image<K, V>) -> Result<(), ImageError> {
        let mut flows = TrashMap::<u16, usize>::new();
        for saved in &image.flows {
            let count = flows.entry(saved.tenant.0).or_default();
            *count += 1;
            let (has, share) =
                self.ledger.tenants.standing(saved.tenant).unwrap_or((0, usize::MAX));
            if *count > share.saturating_sub(has) {
                return Err(ImageError::Share(saved.tenant));
            }
        }
        Ok(())
    }
}

/// Why an [`Image`] was refused.
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
/// let refused = small.restore(image, Timestamp::ZERO);
/// assert_eq!(refused, Err(ImageError::TooMany { flows: 10, room: 3 }));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// It has this format, and not that of this version of the crate.
    Format(u32),
    /// It has so many flows, and there is room, or memory, for fewer: [truncate](Image::truncate) it.
    TooMany {
        /// Flows of the image.
        flows: usize,
        /// Flows that there is room for.
        room: usize,
    },
    /// A tenant would have more than its share.
    Share(Tenant),
    /// A flow, counted from 0 on, has a name or number that another has, too.
    Names {
        /// Which flow of the image.
        flow: usize,
    },
    /// A flow, counted from 0 on, has ages that cannot be.
    Ages {
        /// Which flow of the image.
        flow: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(f, "image of format {format}: must be {FORMAT}"),
            Self::TooMany { flows, room } => {
                write!(f, "image of {flows} flows: there is room for {room}")
            }
            Self::Share(tenant) => {
                write!(f, "image with more flows of tenant {} than its share", tenant.0)
            }
            Self::Names { flow } => write!(f, "flow {flow} of the image has a name of another"),
            Self::Ages { flow } => write!(f, "flow {flow} of the image has ages that cannot be"),
        }
    }
}

impl Error for ImageError {}
