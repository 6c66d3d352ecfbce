//! `FlowCache` as the paper's cache: passive collection by its policy, active collection by its rule.
//!
//! A look-up that finds nothing takes the flow in, so one call does what is two for the others.

use std::time::Duration;

use flowtable::{
    Class, CloseRule, Config, DefaultHashBuilder, Eviction, FlowCache, Packet as Seen, PassiveGc,
    Protocol, TcpFlags, Timeouts, Timestamp,
};
use model::papers::trash_2006::traffic::{Flow, Packet};

use super::cache::{Cache, State, Tick};

/// Ticks between two looks for flows that have ended.
const BURST: Tick = 32;

/// Flows to look at, at most, each time.
const BUDGET: usize = 64;

/// The paper's policy or another one, with no timeouts; and the end of flows, if it is asked for.
pub(crate) struct Flows<P> {
    cache: FlowCache<Flow, (), P>,
    active_gc: bool,
}

impl<P: Eviction> Flows<P> {
    /// With as much room as a collection of this kind lets be used.
    pub(crate) fn new(gc: PassiveGc, policy: P, hasher: DefaultHashBuilder) -> Self {
        Self::with_config(gc, policy, hasher, |config| config, false)
    }

    /// The last packet of a flow ends it.
    ///
    /// The paper's flows are of UDP, and its generator marks the last packets. Here they are of TCP:
    /// all packets but the last one carry a FIN, and so the last one is the first ACK behind it.
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

    /// Whether the flow of a packet was there. It is now.
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

    fn see(&mut self, packet: &Packet, now: Tick) -> bool {
        self.observe(packet, now)
    }

    /// The packet itself has said so.
    fn end(&mut self, _: &Packet) {}

    fn state(&self) -> State {
        State { entries: self.cache.len(), bytes: self.cache.allocation_size(), shape: None }
    }
}
