//! Caches in memory of the caller.

use core::hash::BuildHasher;

use super::FlowCache;
use super::accounting::Accounting;
use super::clock::Clock;
use super::config::Config;
use super::connection::ConnectionState;
use super::index::Index;
use super::store::Store;
use crate::eviction::{ByClass, Eviction};
use crate::hash::DefaultHashBuilder;
use crate::key::flow::FlowName;
use crate::memory::Allocator;

impl<K: FlowName, V, A: Allocator + Clone> FlowCache<K, V, ByClass<A>, DefaultHashBuilder, A> {
    /// Creates an empty cache that evicts by class, whose memory is from `memory`. O(1): memory is
    /// allocated as flows are created.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::flow_cache::{Config, Packet, Refused};
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
    /// assert_eq!((error.why, none.len()), (Refused::Memory, 0));
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
    /// [refused](super::Refused::Memory) if there is none to evict. Memory is for 1024 flows at a
    /// time, or for all of the configured ones if these are fewer: so for a small area the
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
            accounting: Accounting::new_in(policy, tick, &config, memory),
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
}
