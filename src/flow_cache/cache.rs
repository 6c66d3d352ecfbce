//! Caches: construction, flows by handle, counts, and checks of all invariants.

use alloc::format;
use core::fmt::Debug;
use core::hash::BuildHasher;

use super::FlowCache;
use super::config::Config;
use super::packet::connection::ConnectionState;
use super::packet::record::{Flow, Marks};
use super::packet::state::{Class, EndReason};
use super::report::events::RemovedFlow;
use super::report::metrics::Metrics;
use super::report::scan::Resident;
use super::store::accounting::Accounting;
use super::store::index::Index;
use super::store::slots::{KeyId, Store};
use super::store::{Handle, Version};
use super::time::clock::Clock;
use super::time::timeouts::NEVER;
use crate::eviction::{ByClass, Eviction};
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::FlowName;
use crate::memory::{Allocator, Global};
use crate::timestamp::Timestamp;

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

impl<K: FlowName, V, A: Allocator + Clone> FlowCache<K, V, ByClass<A>, DefaultHashBuilder, A> {
    /// Creates an empty cache that evicts by class, whose memory is from `memory`. O(1): memory is
    /// allocated as flows are created.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::flow_cache::{AdmissionError, Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let arena = Bump::new();
    /// let mut cache: FlowCache<u64, u64, _, _, _> = FlowCache::new_in(Config::new(50)?, &arena);
    /// for connection in 0..100 {
    ///     *cache.observe(&connection, Packet::UDP, Timestamp::ZERO)?.flow += 1;
    /// }
    /// assert_eq!((cache.len(), cache.allocator().allocated_bytes() > 50 * 70), (50, true));
    /// // Without memory for one flow, each packet without one is refused.
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// let mut none: FlowCache<u64, u64, _, _, _> = FlowCache::new_in(Config::new(50)?, &arena);
    /// let error = none.observe(&7, Packet::UDP, Timestamp::ZERO).unwrap_err();
    /// assert_eq!((error.reason, none.len()), (AdmissionError::Memory, 0));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new_in(config: Config, memory: A) -> Self {
        let (policy, hasher) = (ByClass::new_in(memory.clone()), DefaultHashBuilder::new());
        Self::with_policy_and_hasher_in(config, policy, hasher, memory)
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Creates an empty cache that allocates from `memory`, otherwise as
    /// [`with_policy_and_hasher`](FlowCache::with_policy_and_hasher). The policy has its own
    /// allocator, which may be the same.
    ///
    /// A new flow for which the allocator has no memory evicts a flow, or is
    /// [refused](super::AdmissionError::Memory) if there is none to evict. Memory is for 1024 flows
    /// at a time, or for all of the configured ones if these are fewer: so for a small area the
    /// [configured number](Config::new) is one that fits, or there is no memory for the first flow.
    /// A flow takes about 85 bytes and its value, and the first one 4 KiB more.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::SecondChance;
    /// use flowtable::flow_cache::Config;
    /// use flowtable::{DefaultHashBuilder, FlowCache, FlowKey};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let (config, hasher) = (Config::new(10_000)?, DefaultHashBuilder::with_seed(7));
    /// let policy = SecondChance::new_in(&arena);
    /// let cache: FlowCache<FlowKey, u64, _, _, _> =
    ///     FlowCache::with_policy_and_hasher_in(config, policy, hasher, &arena);
    /// assert_eq!(cache.allocation_size(), 0);
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_policy_and_hasher_in(config: Config, policy: P, hasher: S, memory: A) -> Self {
        let clock = Clock::new(config.least_renewed());
        let tick = clock.now() / config.tick;
        let steady = ConnectionState::steady_mask(config.close_rule);
        Self {
            index: Index::new_in(hasher, memory.clone()),
            store: Store::new_in(config.flows, steady, memory.clone()),
            accounting: Accounting::new_in(policy, tick, &config, Store::<K, V, A>::RECORD, memory),
            clock,
            version: 1,
            is_emergency: false,
            config,
        }
    }

    /// Returns the allocator that the cache was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.store.allocator()
    }

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
    /// let _: &Passive = cache.policy();
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

    /// Returns the version of the cache, for [`changed_since`](super::Cursor::changed_since), which
    /// has an example.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.version)
    }

    /// The version for a change that is not a quick hit.
    #[inline]
    pub(crate) const fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.accounting.slow_changes += 1;
        self.version
    }

    /// The number of quick hits.
    pub(crate) const fn quick_hits(&self) -> u64 {
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
    /// assert_eq!((metrics.hits, metrics.misses, metrics.created), (1, 3, 3));
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
        let slot = self.slot_of(handle)?;
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
        let slot = self.slot_of(handle)?;
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
        self.resident_at(self.slot_of(handle)?)
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
    /// use flowtable::flow_cache::{AdmissionError, Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(1)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// assert!(cache.set_pinned(handle, true));
    /// let error = cache.observe(&8, Packet::UDP, Timestamp::ZERO).unwrap_err();
    /// assert_eq!(error.reason, AdmissionError::Full);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_pinned(&mut self, handle: Handle, pinned: bool) -> bool {
        let Some(slot) = self.slot_of(handle) else { return false };
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
                self.arm(slot);
                self.accounting.make_evictable(slot, state);
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
        let Some(slot) = self.slot_of(handle) else { return false };
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
    pub(crate) fn touch(&mut self, slot: u32) {
        self.store.flow_mut(slot).version = self.next_version();
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Checks all invariants. O(n): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(3)?);
    /// for id in 0..10 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::from_secs(id))?;
    ///     assert_eq!(cache.validate(), Ok(()));
    /// }
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let within_index = |error| InvariantError::new(format!("index: {error}"));
        self.index.validate(&self.store).map_err(within_index)?;
        self.accounting.wheel.validate().map_err(|error| error.within(format_args!("wheel")))?;
        let (flows, aliases) = (self.store.flows.len(), self.store.rest.aliases.len());
        same("keys of the index", self.index.len(), flows + aliases)?;
        ensure(flows <= self.config.flows, || format!("{flows} flows of {}", self.config.flows))?;
        self.store.validate()?;
        let slots = 0..self.store.flows.slot_count();
        let slots = slots.filter(|slot| self.store.flows.get(*slot).is_some());
        let (mut linked, mut pinned, mut classes, mut own_timeouts) = (0, 0, [0; 4], 0);
        let mut accounted = 0;
        for slot in slots {
            let checked = self.check_flow(slot);
            linked += checked.map_err(|error| error.within(format_args!("slot {slot}")))?;
            let marks = self.store.flow(slot).marks;
            let has_own = marks.has(Marks::TIMEOUT);
            own_timeouts += usize::from(has_own);
            same("mark of a timeout", has_own, self.store.rest.timeouts.contains_key(&slot))?;
            pinned += usize::from(marks.is_pinned());
            classes[marks.class() as usize] += 1;
            let tenant = self.store.tenant(slot);
            accounted += usize::from(self.accounting.tenants.usage(tenant).is_some());
        }
        self.accounting.tenants.validate(accounted, |slot| self.store.tenant(slot))?;
        same("timeouts of flows", self.store.rest.timeouts.len(), own_timeouts)?;
        same("aliases", linked, aliases)?;
        same("pinned flows", self.accounting.metrics.pinned, pinned)?;
        for class in Class::ALL {
            let counted = self.accounting.metrics.flows_of(class);
            same("flows of a class", counted, classes[class as usize])?;
        }
        Ok(())
    }

    /// Checks a flow, and returns the number of its aliases.
    fn check_flow(&self, slot: u32) -> Result<usize, InvariantError> {
        let (Flow { version, .. }, cold) = (self.store.flow(slot), self.store.cold(slot));
        let state = self.store.state(slot).expect("the slot has a flow");
        let mut count = 0;
        let primary = Some(KeyId::slot(slot));
        for id in core::iter::successors(primary, |id| self.store.next_key(*id)) {
            let key = self.store.key_of(id).expect("the id of a key");
            same("id of a key", self.find_id(&self.arrive(key)), Some(id))?;
        }
        for (_, alias) in self.store.aliases(slot) {
            same("slot of an alias", alias.slot, slot)?;
            count += 1;
        }
        let idle = state.idle_deadline(&self.config.timeouts);
        let is_fresh = self.clock.is_fresh(state.last_seen, self.clock.now());
        ensure(!is_fresh || idle > self.clock.now(), || "a fresh flow has expired")?;
        let deadline = state.deadline(&self.config.timeouts);
        let armed = self.accounting.wheel.armed(slot);
        let due = deadline.div_ceil(self.config.tick).max(self.accounting.wheel.tick());
        let is_armed = deadline == NEVER || armed <= due;
        ensure(is_armed, || "the wheel is armed too late")?;
        let times = [cold.first_seen, state.last_seen, self.clock.now()];
        let is_sorted = times.is_sorted() && state.reported >= cold.first_seen;
        ensure(is_sorted, || format!("times {times:?}, reported {}", state.reported))?;
        ensure(*version <= self.version, || "the version is in the future")?;
        Ok(count)
    }
}

fn same<T: PartialEq + Debug>(what: &str, one: T, other: T) -> Result<(), InvariantError> {
    ensure(one == other, || format!("{what}: {one:?} and {other:?}"))
}
