//! A bounded table of flows: packets create flows, timeouts and evictions end them, and each end is
//! reported.
//!
//! ```text
//!                     key, packet, now                               now, budget
//!                            │                                            │ advance
//!                            ▼ observe                                    ▼
//!     keys       ┌──────────────────────┐     slots            ┌──────────────────────┐
//!     of both    │ index                │  ┌─▸ flow │ flow │ … │ wheel                │
//!     directions │ lines of 12 slots    ├──┘   cold │ cold │ … │ slots by deadline    │
//!                └──────────────────────┘  ┌─▸ alias│ alias│ … └──────────────────────┘
//!                  aliases ────────────────┘        ▲
//!                                                   │ victim
//!                                        ┌──────────┴───────────┐
//!                                        │ eviction policy,     │
//!                                        │ shares of tenants    │
//!                                        └──────────────────────┘
//! ```
//!
//! - **One lookup per packet**: [`observe`](FlowCache::observe) finds the flow by the normalised
//!   key of both directions and returns the direction of the packet relative to the initiator, or
//!   creates the flow. [`observe_batch`](FlowCache::observe_batch) processes a burst, whose cache
//!   misses overlap. [`observe_existing`](FlowCache::observe_existing),
//!   [`observe_at`](FlowCache::observe_at) and
//!   [`try_observe_with`](FlowCache::try_observe_with) are for callers that decide which packets
//!   create flows; all of them take the hash of a network card, too.
//! - **Aliases**: an [alias](FlowCache::add_name), such as a translated tuple or another connection
//!   ID, refers to the same flow, and is removed with it.
//! - **State**: packets move a flow from class to class ([`state`]); each class has its timeout. A
//!   packet only writes the time into the flow; [`advance`](FlowCache::advance) ends idle flows and
//!   reports long-lived ones, a bounded number of flows per call.
//! - **Eviction**: in a full cache, a new flow evicts another one, which a policy selects in O(1):
//!   see [`crate::eviction`]. The default evicts closing flows first, then half-open, then
//!   unreplied ones, and established ones when there are hardly any others: see [`ByClass`].
//!   [Pinned](FlowCache::set_pinned) flows are not evicted; a tenant at its
//!   [share](FlowCache::set_share) evicts a flow of its own.
//! - **Nothing is lost silently**: a removed flow is returned, with its value and the reason.
//!   [`metrics`](FlowCache::metrics) counts all events.
//! - **Families**: a flow [expects](FlowCache::expect) others, as those of FTP and SIP do, which
//!   may [end with it](Expected::ending_with_parent).
//! - **Routes**: a decision that a flow has is checked by one load: see [`crate::routes::stamped`].
//! - **Cores**: one cache for each, by the hash of the network card: see [`cores`].
//! - **Handles**: a [`Handle`] finds a flow without its key, for its lifetime, and never another.
//!
//! # Time
//!
//! The cache reads no clock. Its time is the latest one that it was given: it stands still while
//! packets arrive with earlier times. A single step is limited to one year, so that one wrong time
//! does not use up the range of 438 years. After the caller's clock was set, call
//! [`set_clock`](FlowCache::set_clock): all flows keep their ages. Without that call, flows after
//! an erroneous jump forward are not expired until the caller's time has caught up; they are still
//! evicted.
//!
//! # Hostile packets
//!
//! Keys are hashed with a seed. Floods, answered or not, evict no [assured](state) flows while
//! these fill less than seven eighths of the cache. A flood of complete handshakes makes
//! established flows and evicts those first that were idle for longest; a
//! [share](FlowCache::set_share) bounds the flows of a tenant. The costliest packet creates a flow:
//! a removal, an insertion, and some links; the first one with a [`Tenant`] also allocates 4 bytes
//! for each place that has been used. Sequence numbers are not checked.
//!
//! # Cost
//!
//! A hit of an established flow reads and writes two cache lines that depend on each other: the
//! index line and the flow, with an IPv4 name and a value of 32 bytes. All else, such as the wheel,
//! the policy and the rest of the record, is for the creation, the reports and the end of a flow.
//! Such a packet takes about 150 instructions if its flow is the first candidate in its index line,
//! and is decided by one test of the flow's state. Packets of handshakes, and of flows that are not
//! the first candidate, take about twice as many. A name whose index line was full is in another
//! line, until a packet finds that there is a free slot. In a full cache, the lines of the next
//! victims are prefetched.
//!
//! A flow needs 7 to 13 bytes in the index, 18 of state, its name and value, 32 bytes more that
//! packets do not need, 11 bytes in the wheel, and half a byte in the policy: 115 to 120 bytes for
//! five-tuples of IPv4 with values of 32 bytes, at any fill above a tenth of a million flows. An
//! alias needs the memory of an index entry, of a name, and 20 bytes. Growth copies nothing but the
//! index, which grows in steps of bounded work, and lists of chunks (8 bytes for 1024 flows or
//! more). Memory of removed flows is reused for new ones and released by
//! [`clear`](FlowCache::clear).
//!
//! The wheel examines an idle flow once for a timeout below 64 [ticks](Config::with_tick), twice
//! below 4096, three times below 262,144; and an active flow about once per timeout.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH* (2006), section 4: a flow cache with passive and active garbage
//! collection. From there: eviction of the least valuable of four, a hundred at once
//! ([`Passive`](crate::eviction::Passive) spreads the work over insertions), and removal of closed
//! connections ([`CloseRule::FirstAck`]). The rest is as in flow meters and connection tracking.

mod accounting;
mod admission;
mod aliases;
mod bulk;
mod burst;
mod check;
mod chunk_lists;
mod clock;
mod config;
mod connection;
pub mod cores;
mod event;
mod expiry;
mod extras;
mod family;
mod handle;
mod image;
mod in_memory;
mod index;
mod lookup;
mod memory;
mod metrics;
mod observe;
mod observed;
mod packet;
mod record;
mod scan;
#[cfg(feature = "serde")]
mod serial;
mod shares;
pub mod state;
mod store;
mod tenants;
mod timeout;
mod timeouts;
mod waiting;
mod wheel;

use core::fmt;
use core::hash::BuildHasher;

use crate::eviction::{ByClass, Eviction};
use crate::hash::DefaultHashBuilder;
use crate::key::flow::FlowName;
use crate::memory::{Allocator, Global};
use crate::timestamp::Timestamp;
use accounting::Accounting;
use clock::Clock;
use index::Index;
use record::Marks;
use store::Store;

pub use bulk::Residents;
pub use config::{Config, ConfigError, Emergency};
pub use cores::Steering;
pub use event::{
    Event, FlowMatch, NameError, ObserveError, Progress, Refused, RemovedFlow, Report,
};
pub use extras::Source;
pub use family::{ExpectError, Expected};
pub use handle::{Handle, Version};
pub use image::{Image, ImageError};
pub use metrics::Metrics;
pub use observed::Observed;
pub use scan::{Cursor, Resident};
pub use state::{
    Assurance, Class, CloseRule, EndReason, FinWatch, Initiator, Packet, Protocol, Tenant,
};
pub use timeout::SetTimeoutError;
pub use timeouts::{TimeoutError, Timeouts};

/// A bounded table of flows with keys `K`, values `V`, an eviction policy `P` and a hasher `S`.
///
/// The [module](self) has the states of a flow, the rules of eviction, and the memory of a flow.
///
/// | method | cost |
/// |---|---|
/// | `observe`, `observe_with`, `try_observe_with`, `observe_existing` of a flow | two cache lines, one after the other |
/// | of a new flow | an index line and a record; in a full cache also those of the evicted flow |
/// | `observe_at`, `get`, `get_mut`, `resident`, `remove`, `set_pinned`, `set_timeout`, `parent` | O(1): the record, without a search |
/// | `observe_batch`, `observe_batch_with` | as many packets, the cache misses of 32 overlapped |
/// | `find`, `find_quoted`, `expected_by` | O(1) |
/// | `add_name`, `remove_name`; `expect` | O(aliases of the flow); O(flows that it expects, up to 32) |
/// | `advance`, `page`, `retain_step` | O(budget) |
/// | `iter`, `extract_if`, `drain`, `clear`, `clone`, `==`, `restore` | O(slots), O(flows of the image) |
/// | `set_share` | O(1); the first share of a tenant O(slots) |
/// | `len`, `metrics`, `allocation_size`, `version`, `tenant_flows` | O(1) |
///
/// Methods that are given hashes cost the same without hashing.
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
#[doc(alias("conntrack", "connection tracking", "flow table", "ipfix", "nat", "netflow"))]
#[derive(Clone)]
pub struct FlowCache<K, V, P = ByClass, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    config: Config,
    /// The names of flows and aliases.
    index: Index<S, A>,
    store: Store<K, V, A>,
    accounting: Accounting<P, A>,
    clock: Clock,
    /// One more than the number of changes: a flow that never changed has changed since version 0.
    version: u64,
    is_emergency: bool,
}

impl<K: FlowName, V> FlowCache<K, V> {
    /// Creates an empty cache that evicts by class.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with_policy(config, ByClass::new())
    }
}

impl<K: FlowName, V, P: Eviction> FlowCache<K, V, P> {
    /// Creates an empty cache with another eviction policy.
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
    /// assert_eq!(third.removed().map(|flow| flow.key), Some(2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_policy(config: Config, policy: P) -> Self {
        Self::with_policy_and_hasher(config, policy, DefaultHashBuilder::new())
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Creates an empty cache with another eviction policy and hasher. O(1): memory is allocated as
    /// flows are created.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::SecondChance;
    /// use flowtable::flow_cache::Config;
    /// use flowtable::{DefaultHashBuilder, FlowCache, FlowKey};
    ///
    /// let config = Config::new(10_000)?.with_max_bytes(4 << 20)?;
    /// let hasher = DefaultHashBuilder::with_seeds([3, 1, 4, 1]); // without an operating system
    /// let cache: FlowCache<FlowKey, u64, _, _> =
    ///     FlowCache::with_policy_and_hasher(config, SecondChance::new(), hasher);
    /// assert_eq!((cache.capacity(), cache.config().max_bytes()), (10_000, 4 << 20));
    /// assert!(cache.allocation_size() <= cache.config().max_bytes());
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_policy_and_hasher(config: Config, policy: P, hasher: S) -> Self {
        Self::with_policy_and_hasher_in(config, policy, hasher, Global)
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Returns the configuration of the cache.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the eviction policy.
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
        &self.accounting.policy
    }

    /// Returns the number of flows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns whether the cache has no flows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the maximum number of flows.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.config.flows
    }

    /// Returns the allocated bytes, without those owned by keys and values. O(1).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.index.allocation_size()
            + self.store.allocation_size()
            + self.accounting.allocation_size()
    }

    /// Returns the time of the cache: the latest time that it was given.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.caller(self.clock.now())
    }

    /// Sets the time after a change of the caller's clock. Flows keep their ages. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::from_secs(5000))?.handle();
    /// cache.advance(Timestamp::from_secs(5010), 10, |_| ());
    /// cache.set_clock(Timestamp::from_secs(100));
    /// let flow = cache.resident(handle).expect("the flow exists");
    /// assert_eq!(cache.now().since(flow.last_seen()), Duration::from_secs(10));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_clock(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    /// Returns the flow that was removed for the last packet observed, unless it was
    /// [taken](Observed::take_removed). O(1).
    #[must_use]
    pub const fn last_removed(&self) -> Option<&RemovedFlow<K, V>> {
        // Quick hits leave it here.
        let is_last = self.accounting.removed_at == self.quick_hits();
        if is_last { self.store.rest.removed.as_ref() } else { None }
    }

    /// Returns the version of the cache, for [`Cursor::changed_since`], which has an example.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.version)
    }

    /// The version for a change that is not a quick hit.
    #[inline]
    pub(in crate::flow_cache) const fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.accounting.slow_changes += 1;
        self.version
    }

    /// The number of quick hits.
    const fn quick_hits(&self) -> u64 {
        self.version - self.accounting.slow_changes
    }

    /// Returns the counters of the cache, and gauges of its present state. O(1).
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
            aliases: self.store.rest.aliases.len(),
            bytes: self.allocation_size(),
            emergency: self.is_emergency,
            reseeds: self.index.reseeds(),
            ..self.accounting.metrics
        };
        let quick = self.quick_hits();
        metrics.hits += quick;
        metrics.probes[1] += quick;
        metrics.depths[1] += quick;
        metrics
    }

    /// Returns the value of a flow, or `None` if the flow has ended. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
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

    /// Returns a mutable reference to the value of a flow, or `None` if the flow has ended. The
    /// flow counts as changed; its timeout is not extended. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// *cache.get_mut(handle).expect("the flow exists") += 1;
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

    /// Returns a view of a flow, or `None` if the flow has ended. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// let flow = cache.resident(handle).expect("the flow exists");
    /// assert_eq!((flow.key(), flow.class()), (7, flowtable::flow_cache::Class::Unreplied));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resident(&self, handle: Handle) -> Option<Resident<'_, K, V, A>> {
        self.resident_at(self.store.slot_of(handle)?)
    }

    /// Ends a flow and returns it, or `None` if it has ended already. O(1), with aliases
    /// O(aliases).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, EndReason, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, char> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe_with(&7, Packet::UDP, Timestamp::ZERO, || 'x')?.handle();
    /// let flow = cache.remove(handle).expect("the flow exists");
    /// assert_eq!((flow.key, flow.value, flow.reason), (7, 'x', EndReason::Forced));
    /// assert!(cache.remove(handle).is_none() && cache.get(handle).is_none());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove(&mut self, handle: Handle) -> Option<RemovedFlow<K, V>> {
        self.remove_slot(self.store.slot_of(handle)?, EndReason::Forced)
    }

    /// Pins a flow, so that it is never evicted, or unpins it. Pinned flows still expire. Returns
    /// whether the flow exists.
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
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// assert!(cache.set_pinned(handle, true));
    /// assert_eq!(cache.observe(&8, Packet::UDP, Timestamp::ZERO).unwrap_err(), Refused::Full);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_pinned(&mut self, handle: Handle, pinned: bool) -> bool {
        let Some(slot) = self.store.slot_of(handle) else { return false };
        self.touch(slot);
        let marks = &mut self.store.flow_mut(slot).marks;
        let was_pinned = marks.is_pinned();
        marks.set(Marks::PINNED, pinned);
        let Some(state) = self.store.state(slot) else { return false };
        match (was_pinned, pinned) {
            (false, true) => {
                self.accounting.metrics.pinned += 1;
                self.accounting.make_unevictable(slot, state);
            }
            (true, false) => {
                self.accounting.metrics.pinned -= 1;
                self.accounting.make_evictable(slot, state);
                self.arm(slot);
            }
            _ => {}
        }
        true
    }

    /// Changes the class of a flow, as its packets would: for protocols whose packets this crate
    /// does not parse. Returns whether the flow exists. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// // For example after a CONNECTION_CLOSE of QUIC.
    /// assert!(cache.set_class(handle, flowtable::flow_cache::Class::Closing));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_class(&mut self, handle: Handle, class: Class) -> bool {
        let Some(slot) = self.store.slot_of(handle) else { return false };
        self.touch(slot);
        let marks = &mut self.store.flow_mut(slot).marks;
        let mut connection = marks.connection();
        let before = core::mem::replace(&mut connection.class, class);
        marks.set_connection(connection);
        let marks = *marks;
        if before != class {
            self.on_class_change(slot, before, marks);
        }
        true
    }

    /// Marks a flow as changed.
    fn touch(&mut self, slot: u32) {
        self.store.flow_mut(slot).version = self.next_version();
    }
}

impl<K, V, P, S, A: Allocator + Clone> fmt::Debug for FlowCache<K, V, P, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowCache")
            .field("config", &self.config)
            .field("len", &self.store.len())
            .finish_non_exhaustive()
    }
}
