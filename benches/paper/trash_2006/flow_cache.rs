//! `FlowCache` as the cache of the paper: passive collection as an eviction policy, active
//! collection as a close rule.
//!
//! A lookup that misses inserts the flow, so that one call replaces two of the other caches.

use std::time::Duration;

use flowtable::eviction::{Eviction, PassiveGc};
use flowtable::flow_cache::{Class, CloseRule, Config, Packet as Seen, Protocol, Timeouts};
use flowtable::{DefaultHashBuilder, FlowCache, TcpFlags, Timestamp};
use model::papers::trash_2006::traffic::{Flow, Packet};

use super::cache::{Cache, State, Tick};

/// Ticks between two scans for flows that have ended.
const BURST: Tick = 32;

/// Maximum number of flows per scan.
const BUDGET: usize = 64;

/// A `FlowCache` with any eviction policy, without timeouts, optionally with active collection.
pub(crate) struct Flows<P> {
    cache: FlowCache<Flow, (), P>,
    active_gc: bool,
}

impl<P: Eviction> Flows<P> {
    /// Creates a cache with the capacity that this collection leaves.
    pub(crate) fn new(gc: PassiveGc, policy: P, hasher: DefaultHashBuilder) -> Self {
        Self::with_config(gc, policy, hasher, |config| config, false)
    }

    /// Creates a cache in which the last packet of a flow ends it.
    ///
    /// The flows of the paper are UDP, and its generator marks the last packets. Here they are TCP:
    /// all packets but the last one carry a FIN, so the last one is the first ACK after it.
    pub(crate) fn with_active_gc(gc: PassiveGc, policy: P, hasher: DefaultHashBuilder) -> Self {
        let instant = Duration::from_nanos(1);
        let timeouts = Timeouts::OFF.with_idle(Protocol::Tcp, Class::Closing, instant);
        let timeouts = timeouts.expect("a nanosecond is a timeout");
        let config = |config: Config| {
            let config = config.with_timeouts(timeouts).with_close_rule(CloseRule::FirstAck);
            config.with_tick(Duration::from_nanos(BURST)).expect("some nanoseconds are a tick")
        };
        Self::with_config(gc, policy, hasher, config, true)
    }

    fn with_config(
        gc: PassiveGc,
        policy: P,
        hasher: DefaultHashBuilder,
        config: impl FnOnce(Config) -> Config,
        active_gc: bool,
    ) -> Self {
        let room = Config::new(gc.threshold() + gc.goal()).expect("a collection leaves some flows");
        let cache = FlowCache::with_policy_and_hasher(config(room), policy, hasher);
        Self { cache, active_gc }
    }

    /// Records a packet. Returns whether its flow was cached.
    #[inline]
    fn observe(&mut self, packet: &Packet, now: Tick) -> bool {
        let seen = match (self.active_gc, packet.last) {
            (false, _) => Seen::UDP,
            (true, false) => Seen::tcp(TcpFlags::FIN | TcpFlags::ACK),
            (true, true) => Seen::tcp(TcpFlags::ACK),
        };
        let time = Timestamp::from_nanos(now);
        let is_fresh = self.cache.observe(&packet.flow, seen, time).expect("none is pinned").fresh;
        if self.active_gc && now % BURST == 0 {
            self.cache.advance(time, BUDGET, |_| ());
        }
        !is_fresh
    }
}

impl<P: Eviction> Cache for Flows<P> {
    type Key = Packet;

    fn key(&self, packet: &Packet) -> Packet {
        *packet
    }

    fn touch(&mut self, packet: &Packet, now: Tick) -> bool {
        self.cache.find(&packet.flow).is_some() && self.observe(packet, now)
    }

    fn admit(&mut self, packet: Packet, now: Tick) {
        self.observe(&packet, now);
    }

    fn access(&mut self, packet: &Packet, now: Tick) -> bool {
        self.observe(packet, now)
    }

    /// The last packet has ended the flow already.
    fn end(&mut self, _: &Packet) {}

    fn state(&self) -> State {
        State { entries: self.cache.len(), bytes: self.cache.allocation_size(), shape: None }
    }
}
