//! A bounded table of flows that have a life: made by packets, ended by silence, and told about.
//!
//! ```text
//!                     key, packet, now                               now, budget
//!                            │                                            │ advance
//!                            ▼ observe                                    ▼
//!     names      ┌──────────────────────┐     slots            ┌──────────────────────┐
//!     of both    │ index                │  ┌─▸ life │ life │ … │ wheel                │
//!     directions │ TrashMap: name → slot├──┘   flow │ flow │ … │ slots by deadline    │
//!                └──────────────────────┘  ┌─▸ name │ name │ …  └──────────────────────┘
//!                  further names ──────────┘        ▲
//!                                                   │ who leaves?
//!                                        ┌──────────┴───────────┐
//!                                        │ eviction policy,     │
//!                                        │ shares of tenants    │
//!                                        └──────────────────────┘
//! ```
//!
//! - **One look-up for a packet**: [`observe`](FlowCache::observe) finds the flow under the normalised
//!   name of both directions, says in which direction the packet goes seen from who began, or makes the
//!   flow. [`observe_batch`](FlowCache::observe_batch) does it for a burst, whose misses overlap.
//! - **Several names, one entry**: a [further name](FlowCache::add_name), such as a translated tuple
//!   or another connection ID, leads to the same flow, and goes with it.
//! - **A life**: packets move a flow from class to class ([`crate::flow_cache::state`]); each has its timeout. A packet
//!   only writes the time into the flow; [`advance`](FlowCache::advance) ends what was silent too long and
//!   reports what has lived long, a bounded number of flows with each call.
//! - **Full**: a new flow has another evicted, found in O(1) by a policy: see [`crate::eviction`]. The default
//!   gives up closing flows first, then half-open, then unreplied ones, and established ones when there are
//!   hardly any others: see [`ByClass`]. A flow that is [pinned](FlowCache::set_pinned) stays; a tenant that has its
//!   [share](FlowCache::set_share) loses its own.
//! - **Nothing is lost silently**: who leaves is handed over, with its value and the reason.
//!   [`metrics`](FlowCache::metrics) counts everything.
//! - **A [`Handle`]** finds a flow without its name, for as long as it lives, and never another.
//!
//! # Time
//!
//! There is no clock inside. The cache's time is the latest that it was given: it stands still when packets
//! come late, and goes on from there; and no more than a year passes at once, so that one wrong time does not
//! use up the 438 that there are. A clock that has been set is told with
//! [`set_clock`](FlowCache::set_clock), and all flows keep their ages; without that, flows after a jump
//! ahead by mistake are not ended until the caller's time has caught up, though still evicted.
//!
//! # Hostile packets
//!
//! Names are hashed with a seed. Floods of new flows displace flows that were never answered; while
//! established ones fill less than seven eighths of the cache, they take none of them. What costs most is a flow that is made: a removal, an insertion,
//! and some links. Sequence numbers are not checked: see [`crate::flow_cache::state`].
//!
//! # Price
//!
//! A hit touches the index as a look-up there does, and the two or three lines of the flow, which are
//! fetched together. A miss in a full cache touches some twenty; those of the next victims are fetched ahead.
//!
//! Each flow takes what its name takes in the index ([`crate::trash`]: about twice the size of name and
//! number), 56 bytes for its life, its key and value, 16 in the wheel, and 8 to 20 in the policy: 165 for
//! five-tuples of IPv4 with values of 32 bytes. A further name takes as much as the first in the index, and
//! itself. Nothing is copied when it grows, but by the index, which does so in steps, and lists of chunks (24
//! bytes for 1024 flows). Memory of flows is kept for flows to come until [`clear`](FlowCache::clear).
//!
//! The wheel looks at a silent flow once for a timeout of less than 64 [ticks](Config::with_tick), twice for
//! one of less than 4096, three times for one of less than 262,144; at a busy one about once in each timeout.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH* (2006): the flow cache with passive and active garbage collection is its
//! section 4. What they had: eviction of the least valuable of four, at once for a hundred
//! ([`Passive`](crate::eviction::Passive) does it spread over insertions), and removal of closed connections
//! ([`CloseRule::FirstAck`](crate::flow_cache::CloseRule::FirstAck)). What is here besides is what flow meters and
//! connection tracking do.

mod accounting;
mod admission;
mod aliases;
mod check;
mod clock;
mod config;
mod event;
mod expiry;
mod image;
mod memory;
mod metrics;
mod observe;
mod scan;
pub mod state;
mod store;
mod tenants;
mod wheel;

use core::fmt;
use core::hash::BuildHasher;

use crate::eviction::{ByClass, Eviction};
use crate::hash::DefaultHashBuilder;
use crate::key::flow::FlowName;
use crate::timestamp::Timestamp;
use crate::trash::TrashMap;
use accounting::Ledger;
use clock::Clock;
use store::{Place, Store};

pub use config::{Config, ConfigError, Emergency};
pub use event::{Departed, Event, FlowMatch, NameError, Observed, Progress, Refused, Report};
pub use image::{Image, ImageError};
pub use metrics::Metrics;
pub use scan::{Cursor, Resident};
pub use state::{
    Class, CloseRule, EndReason, FinWatch, Packet, Protocol, Tenant, TimeoutError, Timeouts,
};
pub use store::{Handle, Version};

/// A bounded table of flows under names `K`, with a value `V` each, an eviction policy `P` and a hasher
/// `S`. See the [module](self).
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Event, Packet, Timeouts};
/// use flowtable::{FlowCache, FlowKey, Timestamp};
///
/// #[derive(Default)]
/// struct Counts {
///     packets: u64,
/// }
///
/// let config = Config::new(1_000_000)?.with_timeouts(Timeouts::METER);
/// let mut cache: FlowCache<FlowKey, Counts> = FlowCache::new(config);
/// let key = FlowKey::new("10.0.0.1".parse()?, "10.0.0.2".parse()?, 5353, 53, 17).unwrap();
/// for (key, seconds) in [(key, 10), (key.reversed(), 11)] {
///     let seen = cache.observe(&key, Packet::UDP, Timestamp::from_secs(seconds))?;
///     seen.flow.packets += 1;
/// }
/// let mut report = vec![];
/// cache.advance(Timestamp::from_secs(80), 100, |event| {
///     if let Event::Ended(flow) = event {
///         report.push((flow.key, flow.value.packets, flow.reason.code()));
///     }
/// });
/// assert_eq!(report, [(key, 2, 1)]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FlowCache<K, V, P = ByClass, S = DefaultHashBuilder> {
    config: Config,
    /// Normalised names.
    index: TrashMap<K, Place, S>,
    store: Store<K, V>,
    ledger: Ledger<P>,
    clock: Clock,
    /// Changes that there have been, and one more: a flow that never changed has changed since 0.
    version: u64,
    is_emergency: bool,
    /// Has left, and is not told yet: there was no memory for the flow that it left for.
    pending: Option<Departed<K, V>>,
}

impl<K: FlowName, V> FlowCache<K, V> {
    /// An empty cache that evicts by class.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with_policy(config, ByClass::new())
    }
}

impl<K: FlowName, V, P: Eviction> FlowCache<K, V, P> {
    /// An empty cache with another eviction policy.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    /// use flowtable::eviction::Lru;
    ///
    /// let mut cache: FlowCache<u64, (), _> = FlowCache::with_policy(Config::new(2)?, Lru::new());
    /// for id in [1, 2, 1] {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// let third = cache.observe(&3, Packet::UDP, Timestamp::ZERO)?;
    /// assert_eq!(third.departed.map(|flow| flow.key), Some(2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_policy(config: Config, policy: P) -> Self {
        Self::with_policy_and_hasher(config, policy, DefaultHashBuilder::new())
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// An empty cache with another eviction policy and hasher. O(1): memory is taken as flows come.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::SecondChance;
    /// use flowtable::flow_cache::Config;
    /// use flowtable::{DefaultHashBuilder, FlowCache, FlowKey};
    ///
    /// let config = Config::new(10_000)?.with_max_bytes(4 << 20)?;
    /// let secret = DefaultHashBuilder::with_seeds([3, 1, 4, 1]); // where no operating system has one
    /// let cache: FlowCache<FlowKey, u64, _, _> = FlowCache::with_policy_and_hasher(config, SecondChance::new(), secret);
    /// assert_eq!((cache.capacity(), cache.config().max_bytes()), (10_000, 4 << 20));
    /// assert!(cache.allocation_size() <= cache.config().max_bytes());
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_policy_and_hasher(config: Config, policy: P, hasher: S) -> Self {
        let clock = Clock::new();
        Self {
            index: TrashMap::with_hasher(hasher),
            store: Store::new(),
            ledger: Ledger::new(policy, clock.now() / config.tick),
            clock,
            version: 1,
            is_emergency: false,
            pending: None,
            config,
        }
    }

    /// What the cache was made with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The eviction policy, to look at.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    /// use flowtable::eviction::{Passive, PassiveGc};
    ///
    /// let policy = Passive::new(PassiveGc::TRASH_2006);
    /// let cache: FlowCache<u64, (), _> = FlowCache::with_policy(Config::new(200_000)?, policy);
    /// assert_eq!(cache.policy().gc().threshold(), 100_000);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn policy(&self) -> &P {
        &self.ledger.policy
    }

    /// Number of flows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there are no flows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most flows that there may be.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.config.flows
    }

    /// Bytes that the cache has allocated, without what keys and values own. O(1).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.index.allocation_size() + self.store.allocation_size() + self.ledger.allocation_size()
    }

    /// The latest time that the cache was given.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.caller(self.clock.now())
    }

    /// Takes note that the caller's clock was set: what was [`now`](Self::now) is this from here on, and
    /// all flows keep their ages. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::from_secs(5000))?.handle;
    /// cache.advance(Timestamp::from_secs(5010), 10, |_| ());
    /// cache.set_clock(Timestamp::from_secs(100));
    /// let flow = cache.resident(handle).expect("it is there");
    /// assert_eq!(cache.now().since(flow.last_seen()), Duration::from_secs(10));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_clock(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    /// How much has changed: to be given to [`Cursor::changed_since`], which has an example.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.version)
    }

    /// What there is, and what has happened. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Class, Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(2)?);
    /// for id in [1, 2, 2, 3] {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// let metrics = cache.metrics();
    /// assert_eq!((metrics.hits, metrics.misses, metrics.evicted()), (1, 3, 1));
    /// assert_eq!(metrics.flows_of(Class::Unreplied), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics {
            flows: self.len(),
            capacity: self.capacity(),
            names: self.store.names.len(),
            bytes: self.allocation_size(),
            emergency: self.is_emergency,
            rekeys: self.index.rekeys(),
            ..self.ledger.metrics
        };
        let quick = self.ledger.quick_hits;
        metrics.hits += quick;
        metrics.probes[1] += quick;
        metrics.depths[1] += quick;
        metrics
    }

    /// The value of a flow; `None` if it is gone. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// assert_eq!(cache.get(handle), Some(&0));
    /// cache.remove(handle);
    /// assert_eq!(cache.get(handle), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<&V> {
        let slot = self.store.slot_of(handle)?;
        Some(&self.store.flows.get(slot)?.value)
    }

    /// The value of a flow, to change; `None` if it is gone. The flow counts as changed, and does not live
    /// longer. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// *cache.get_mut(handle).expect("it is there") += 1;
    /// assert_eq!(cache.get(handle), Some(&1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut V> {
        let slot = self.store.slot_of(handle)?;
        self.touch(slot);
        Some(&mut self.store.flows.get_mut(slot)?.value)
    }

    /// A flow, to look at; `None` if it is gone. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// let flow = cache.resident(handle).expect("it is there");
    /// assert_eq!((*flow.key(), flow.class()), (7, flowtable::flow_cache::Class::Unreplied));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resident(&self, handle: Handle) -> Option<Resident<'_, K, V>> {
        self.resident_at(self.store.slot_of(handle)?)
    }

    /// Ends a flow; `None` if it is gone already. O(1), and O(names) if it has further ones.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, EndReason, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, char> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe_with(&7, Packet::UDP, Timestamp::ZERO, || 'x')?.handle;
    /// let flow = cache.remove(handle).expect("it is there");
    /// assert_eq!((flow.key, flow.value, flow.reason), (7, 'x', EndReason::Forced));
    /// assert!(cache.remove(handle).is_none() && cache.get(handle).is_none());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove(&mut self, handle: Handle) -> Option<Departed<K, V>> {
        self.depart(self.store.slot_of(handle)?, EndReason::Forced)
    }

    /// Ends all flows, in the order of their slots. Those that are not taken from the iterator stay. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..5 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// assert!(cache.drain().map(|flow| flow.key).eq(0..5));
    /// assert!(cache.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn drain(&mut self) -> impl Iterator<Item = Departed<K, V>> {
        let mut slots = 0..self.store.flows.slot_count();
        core::iter::from_fn(move || {
            let pending = self.pending.take();
            pending.or_else(|| slots.find_map(|slot| self.depart(slot, EndReason::Forced)))
        })
    }

    /// Drops all flows, untold, and gives back their memory, but for that of the policy. Handles find
    /// nothing any more. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// cache.clear();
    /// assert!(cache.is_empty() && cache.get(handle).is_none());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.drain().for_each(drop);
        // Keys that break their law may have left something there.
        self.index.clear();
        self.store.shrink();
        self.ledger.wheel.clear();
    }

    /// Has a flow never be evicted, or be evicted again. It still expires. Returns whether it is there.
    ///
    /// Pinned flows count for the capacity and for the share of their tenant. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet, Refused};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(1)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// assert!(cache.set_pinned(handle, true));
    /// assert_eq!(cache.observe(&8, Packet::UDP, Timestamp::ZERO).unwrap_err(), Refused::Full);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_pinned(&mut self, handle: Handle, pinned: bool) -> bool {
        let Some(slot) = self.store.slot_of(handle) else { return false };
        self.touch(slot);
        let life = &mut self.store.flow_mut(slot).life;
        match (core::mem::replace(&mut life.is_pinned, pinned), pinned) {
            (false, true) => {
                self.ledger.metrics.pinned += 1;
                self.ledger.shelter(slot, life);
            }
            (true, false) => {
                self.ledger.metrics.pinned -= 1;
                self.ledger.expose(slot, life);
                self.ledger.arm(slot, life, &self.config, self.clock.now());
            }
            _ => {}
        }
        true
    }

    /// Gives a flow another class, as its packets would: for protocols whose packets this crate cannot
    /// read. Returns whether it is there. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle;
    /// // A CONNECTION_CLOSE of QUIC, say.
    /// assert!(cache.set_class(handle, flowtable::flow_cache::Class::Closing));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_class(&mut self, handle: Handle, class: Class) -> bool {
        let Some(slot) = self.store.slot_of(handle) else { return false };
        self.touch(slot);
        let life = &mut self.store.flow_mut(slot).life;
        let before = core::mem::replace(&mut life.course.class, class);
        if before != class {
            self.ledger.reclass(slot, life, before, (&self.config, self.clock.now()));
        }
        true
    }

    /// Gives a tenant a share: the most flows that it may have. A flow of its own leaves for each that would
    /// be more. `None`, and tenant 0, is no limit.
    ///
    /// O(1), but for a tenant that has had no share before: its flows are counted, O(slots); so this is for
    /// the beginning, and is not asked whether there is [memory](Config::with_max_bytes). A tenant that has more already loses one for each new one until time has done the
    /// rest. Shares may add up to more than the cache has; then it may be full, and anybody's flows leave.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet, Tenant};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// cache.set_share(Tenant(7), Some(2));
    /// let packet = Packet::UDP.from_tenant(Tenant(7));
    /// for id in 0..2 {
    ///     cache.observe(&id, packet, Timestamp::ZERO)?;
    /// }
    /// cache.observe(&2, Packet::UDP, Timestamp::ZERO)?;
    /// let third = cache.observe(&3, packet, Timestamp::ZERO)?;
    /// assert_eq!(third.departed.map(|flow| flow.key), Some(0));
    /// assert_eq!((cache.tenant_flows(Tenant(7)), cache.len()), (Some(2), 3));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_share(&mut self, tenant: Tenant, flows: Option<usize>) {
        let is_new = tenant != Tenant::default()
            && self.ledger.tenants.set_share(tenant, flows.unwrap_or(usize::MAX));
        let slots = if is_new { 0..self.store.flows.slot_count() } else { 0..0 };
        for slot in slots {
            self.ledger.tenants.cover(slot);
            let life = self.store.flows.get(slot).map(|flow| &flow.life);
            if let Some(life) = life.filter(|life| life.tenant == tenant) {
                self.ledger.tenants.count_in(tenant);
                if !life.is_pinned {
                    self.ledger.tenants.enter(tenant, slot, life.course.class);
                }
            }
        }
    }

    /// The flows that a tenant has, if it has been given a share. O(1).
    #[must_use]
    pub fn tenant_flows(&self, tenant: Tenant) -> Option<usize> {
        self.ledger.tenants.standing(tenant).map(|(flows, _)| flows)
    }

    /// The flow has changed.
    fn touch(&mut self, slot: u32) {
        self.version += 1;
        self.store.flow_mut(slot).life.version = self.version;
    }
}

impl<K, V, P, S> fmt::Debug for FlowCache<K, V, P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowCache")
            .field("config", &self.config)
            .field("len", &self.store.len())
            .finish_non_exhaustive()
    }
}
