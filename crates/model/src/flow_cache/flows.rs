//! A reference model of the flow cache: an unordered vector of flows, scanned by each operation.
//!
//! Where the cache has a choice, the model checks that the chosen flow is an allowed one.

use core::fmt::Debug;
use core::time::Duration;

use flowtable::flow_cache::{
    AdmissionError, Class, CloseRule, EndReason, Handle, Protocol, RemovedFlow, Renewal, Report,
    Tenant, Timeouts,
};
use flowtable::key::flow::FlowName;
use flowtable::{Direction, TcpFlags, Timestamp};

pub use super::packet::PacketInfo;

/// Nanoseconds since the caller's origin. Negative when the clock was set to less than the age of
/// a flow.
pub type Nanos = i128;

pub fn nanos(time: Timestamp) -> Nanos {
    time.as_nanos().into()
}

/// The timestamp that the cache reports for this time.
pub fn timestamp(nanos: Nanos) -> Timestamp {
    Timestamp::from_nanos(nanos.clamp(0, u64::MAX.into()) as u64)
}

fn span(time: Duration) -> Nanos {
    time.as_nanos() as Nanos
}

/// The configuration of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub flows: usize,
    pub timeouts: Timeouts,
    pub tick: Duration,
    pub rule: CloseRule,
    pub renewal: Renewal,
    /// Enter, leave, idle.
    pub emergency: Option<(usize, usize, Duration)>,
    pub victims: Victims,
}

/// Which flows a policy may evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// One of the lowest class present, or an established one if there are few new ones.
    Lowest,
    Any,
    /// Any, even when there is room.
    AnyEarly,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow<K> {
    pub handle: Handle,
    /// The primary key and the aliases with their ids, as packets of the initiator have them.
    pub names: Vec<(u8, K)>,
    /// Packets since the last report.
    pub value: u64,
    pub class: Class,
    pub protocol: Protocol,
    pub tenant: Tenant,
    /// The sequence number of the SYN that was its first packet.
    sequence: Option<u32>,
    pub pinned: bool,
    /// Its own idle timeout.
    pub timeout: Option<Duration>,
    /// Whether its class was set by the caller.
    is_given: bool,
    pub first_seen: Nanos,
    pub last_seen: Nanos,
    /// The time of the last report, or of the first packet.
    pub since: Nanos,
    /// The time of the first packet since the last report.
    first_unreported: Option<Nanos>,
    /// The time of its last packet or of the last change of its class or pin.
    changed: Nanos,
    /// The packets of each side of a flow that is not TCP.
    packets: [u64; 2],
    /// The acknowledgements of TCP so far: by the responder or not, with a SYN or not.
    acks: Vec<(bool, bool)>,
    /// Whether the initiator has sent a FIN, and whether the responder has.
    closed: [bool; 2],
}

/// The result of `FlowCache::observe`.
#[derive(Debug)]
pub struct Observation<K> {
    pub handle: Handle,
    pub direction: Direction,
    pub alias: u8,
    pub class: Class,
    pub fresh: bool,
    pub value: u64,
    pub removed: Option<RemovedFlow<K, u64>>,
}

/// The counters of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub observed: u64,
    pub created: u64,
    pub refused: u64,
    pub reported: u64,
    pub emergencies: u64,
    /// By reason, then class.
    pub removed: [[u64; 4]; 5],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowsModel<K> {
    pub setting: Setting,
    pub now: Nanos,
    pub flows: Vec<Flow<K>>,
    pub dead: Vec<Handle>,
    pub shares: Vec<(Tenant, usize)>,
    pub emergency: bool,
    /// Whether requests of memory may fail.
    pub lacks_memory: bool,
    /// When the last emergency began.
    emergency_since: Nanos,
    pub counts: Counts,
}

/// Whether so few flows are new that an established one may be evicted.
fn lacks_new(classes: &[Class]) -> bool {
    let of = |class| classes.iter().filter(|other| **other == class).count();
    of(Class::Closing) == 0 && 8 * (of(Class::New) + of(Class::Unreplied)) < classes.len()
}

/// Whether the last acknowledgement assures a connection: an ACK after a SYN with an ACK of the
/// other side, the last such one, or, without one, after ACKs of both sides.
fn is_assured(acks: &[(bool, bool)]) -> bool {
    let Some((&(side, false), before)) = acks.split_last() else { return false };
    match before.iter().rev().find(|(_, syn)| *syn) {
        Some(_) => before.contains(&(!side, true)),
        None => {
            let first = before.first().is_some_and(|first| first.0 == side);
            let other = before.iter().position(|other| other.0 != side);
            let after = other.is_some_and(|at| before[..at].iter().any(|own| own.0 == side));
            first && after
        }
    }
}

impl<K: FlowName + Debug> Flow<K> {
    fn new(handle: Handle, key: K, seen: PacketInfo, now: Nanos) -> Self {
        Self {
            handle,
            names: vec![(0, key)],
            value: 0,
            class: seen.first_class(),
            protocol: seen.protocol,
            tenant: seen.tenant,
            sequence: seen.sequence.filter(|_| seen.opens()),
            pinned: false,
            timeout: None,
            is_given: false,
            first_seen: now,
            last_seen: now,
            since: now,
            first_unreported: Some(now),
            changed: now,
            packets: [0; 2],
            acks: vec![],
            closed: [false; 2],
        }
    }

    /// Updates the state of the connection: the first matching transition.
    fn update(&mut self, seen: PacketInfo, side: Direction, rule: CloseRule, now: Nanos) {
        let is_reverse = side == Direction::Reverse;
        if self.protocol != Protocol::Tcp {
            // If the first packets are of the responder, they count as one.
            let is_first = self.packets == [0, 1] && is_reverse;
            self.packets[side as usize] += u64::from(!is_first);
            let is_replied = self.packets.iter().all(|packets| *packets > 0);
            if is_replied && [Class::Unreplied, Class::New].contains(&self.class) {
                // The defaults: six packets, or two seconds. The packet may not renew the flow.
                let packets: u64 = self.packets.iter().sum();
                let is_assured = packets >= 6 || now - self.first_seen >= 2_000_000_000;
                self.class = if is_assured { Class::Established } else { Class::New };
            }
            return;
        }
        if seen.protocol != Protocol::Tcp {
            return;
        }
        let [rst, syn, fin, ack] =
            [TcpFlags::RST, TcpFlags::SYN, TcpFlags::FIN, TcpFlags::ACK].map(|flag| seen.has(flag));
        // A SYN reaches a closing flow only if its class was set, or sockets are not reused.
        if self.class == Class::Closing && syn && !ack && !rst {
            (self.class, self.closed) = (Class::New, [false; 2]);
            self.acks.clear();
        }
        let closed = &mut self.closed[side as usize];
        let acks_after_its_fin = *closed && ack && !fin && !syn;
        *closed = match (rst, syn, fin) {
            (false, true, _) => false,
            (false, false, true) => true,
            _ => *closed,
        };
        let ends = match rule {
            CloseRule::BothSides => self.closed == [true; 2],
            CloseRule::FirstAck => acks_after_its_fin,
        };
        if rst || ends {
            self.class = Class::Closing;
        } else if ack {
            let can_rise = [Class::New, Class::Unreplied].contains(&self.class);
            if syn || can_rise {
                self.acks.push((is_reverse, syn));
            }
            if can_rise && is_assured(&self.acks) {
                self.class = Class::Established;
            }
        }
    }

    fn idle(&self, now: Nanos) -> Nanos {
        now - self.last_seen
    }

    /// When it expires.
    fn end(&self, timeouts: &Timeouts) -> Option<Nanos> {
        let own = self.timeout.filter(|_| self.class != Class::Closing);
        let idle = own.or(timeouts.idle(self.protocol, self.class));
        idle.map(|idle| self.last_seen + span(idle))
    }

    /// When it is reported at the latest: the timeout may have begun before its packets.
    fn report(&self, timeouts: &Timeouts) -> Option<Nanos> {
        Some(self.first_unreported? + span(timeouts.active()?))
    }

    /// Whether it expires early in an emergency.
    fn expires_early(&self) -> bool {
        self.class != Class::Established && !self.pinned
    }

    fn assert_departed(&self, removed: &RemovedFlow<K, u64>) {
        assert_eq!(removed.handle, self.handle);
        assert!(removed.key == self.names[0].1, "{:?} left as {:?}", self.names[0], removed.key);
        assert_eq!(
            (removed.value, removed.class, removed.protocol, removed.tenant),
            (self.value, self.class, self.protocol, self.tenant)
        );
        assert_eq!(
            (removed.first_seen, removed.last_seen),
            (timestamp(self.first_seen), timestamp(self.last_seen))
        );
    }
}

impl<K: FlowName + Debug> FlowsModel<K> {
    pub fn new(setting: Setting) -> Self {
        Self {
            setting,
            now: 0,
            flows: vec![],
            dead: vec![],
            shares: vec![],
            emergency: false,
            lacks_memory: false,
            emergency_since: 0,
            counts: Counts::default(),
        }
    }

    /// The index of the flow with this key, the direction, and the id of the alias.
    pub fn find(&self, key: &K) -> Option<(usize, Direction, u8)> {
        self.flows.iter().enumerate().find_map(|(at, flow)| {
            flow.names.iter().find_map(|(number, name)| {
                let direction = match (name == key, name.reversed() == *key) {
                    (true, _) => Direction::Forward,
                    (false, true) => Direction::Reverse,
                    (false, false) => return None,
                };
                Some((at, direction, *number))
            })
        })
    }

    pub fn at(&self, handle: Handle) -> Option<usize> {
        self.flows.iter().position(|flow| flow.handle == handle)
    }

    pub fn flow(&mut self, handle: Handle) -> &mut Flow<K> {
        let at = self.at(handle).unwrap_or_else(|| panic!("{handle:?} is not alive"));
        &mut self.flows[at]
    }

    pub fn set_pinned(&mut self, handle: Handle, pinned: bool) {
        let now = self.now;
        let flow = self.flow(handle);
        (flow.pinned, flow.changed) = (pinned, now);
    }

    pub fn set_class(&mut self, handle: Handle, class: Class) {
        let now = self.now;
        let flow = self.flow(handle);
        (flow.class, flow.changed, flow.is_given) = (class, now, true);
    }

    pub fn set_timeout(&mut self, handle: Handle, timeout: Option<Duration>) {
        let now = self.now;
        let flow = self.flow(handle);
        (flow.timeout, flow.changed) = (timeout, now);
    }

    /// Whether the idle timeout of a flow has passed.
    pub fn has_expired(&self, flow: &Flow<K>) -> bool {
        flow.end(&self.setting.timeouts).is_some_and(|end| end <= self.now)
    }

    /// The index of the flow with this handle, unless it has expired.
    pub fn live(&self, handle: Handle) -> Option<usize> {
        self.at(handle).filter(|at| !self.has_expired(&self.flows[*at]))
    }

    pub fn flows_of(&self, class: Class) -> usize {
        self.flows.iter().filter(|flow| flow.class == class).count()
    }

    fn share(&self, tenant: Tenant) -> Option<usize> {
        self.shares.iter().find(|(other, _)| *other == tenant).map(|(_, share)| *share)
    }

    /// Whether the tenant has used up its share.
    fn is_over(&self, tenant: Tenant) -> bool {
        let count = self.flows.iter().filter(|flow| flow.tenant == tenant).count();
        tenant != Tenant::default() && self.share(tenant).is_some_and(|share| count >= share)
    }

    /// Advances the clock. A jump of more than a year counts as a setting of the clock.
    pub fn tick_clock(&mut self, now: Timestamp) {
        let year = span(Duration::from_secs(366 * 24 * 3600));
        let now = nanos(now);
        if now - self.now > year {
            self.shift(now - self.now - year);
        }
        self.now = self.now.max(now);
    }

    /// Checks the result of `FlowCache::observe`.
    pub fn observe(
        &mut self,
        key: &K,
        seen: PacketInfo,
        now: Timestamp,
        answer: Result<Observation<K>, AdmissionError>,
    ) {
        self.tick_clock(now);
        self.counts.observed += 1;
        let found = self.find(key);
        let is_continued = answer.as_ref().is_ok_and(|answer| !answer.fresh);
        if let Some((at, ..)) = found.filter(|_| self.lacks_memory && !is_continued) {
            // There may have been no memory for it: then any SYN reuses the sockets.
            self.flows[at].sequence = None;
        }
        let over = found.map(|(at, ..)| at).filter(|&at| self.is_finished(&self.flows[at], seen));
        match (found, over) {
            (Some(found), None) => {
                let answer = answer.unwrap_or_else(|why| panic!("{key:?} is present: {why}"));
                self.continued(found, seen, answer);
            }
            (_, Some(at)) => {
                let mut answer = match answer {
                    Err(refused) if self.lacks_memory => return self.refused(seen.tenant, refused),
                    answer => answer.unwrap_or_else(|why| panic!("{key:?} makes room: {why}")),
                };
                let removed = answer.removed.take().expect("its key is reused");
                let is_closing = self.flows[at].class == Class::Closing;
                let reason = if is_closing { EndReason::Ended } else { EndReason::Idle };
                assert_eq!((removed.handle, removed.reason), (self.flows[at].handle, reason));
                // A tenant at its share takes over the flow, with the tenant of the flow.
                let is_over = self.is_over(seen.tenant);
                let tenant = if is_over { removed.tenant } else { seen.tenant };
                self.remove(&removed);
                self.created(key, PacketInfo { tenant, ..seen }, &answer);
            }
            (None, None) => match answer {
                Err(refused) => self.refused(seen.tenant, refused),
                Ok(answer) => {
                    self.evicted_for(seen.tenant, answer.removed.as_ref());
                    self.created(key, seen, &answer);
                }
            },
        }
    }

    fn continued(
        &mut self,
        (at, direction, name): (usize, Direction, u8),
        seen: PacketInfo,
        answer: Observation<K>,
    ) {
        let Setting { rule, renewal, .. } = self.setting;
        let now = self.now;
        let flow = &mut self.flows[at];
        flow.changed = now;
        if renewal == Renewal::BothSides || direction == Direction::Forward {
            flow.last_seen = now;
        }
        flow.first_unreported.get_or_insert(now);
        flow.value += 1;
        // A class that was set may contradict the packets: the cache may use either.
        let given = flow.class;
        flow.update(seen, direction, rule, now);
        if flow.is_given && answer.class == given {
            flow.class = answer.class;
        }
        assert!(answer.removed.is_none(), "no eviction for a packet of a present flow");
        assert_eq!(
            (answer.handle, answer.direction, answer.alias, answer.class),
            (flow.handle, direction, name, flow.class)
        );
        assert_eq!((answer.value, answer.fresh), (flow.value, false));
    }

    /// Whether a flow takes no more packets: it has expired, or the packet reuses its sockets.
    fn is_finished(&self, flow: &Flow<K>, seen: PacketInfo) -> bool {
        let is_repeated = seen.sequence.is_some() && seen.sequence == flow.sequence;
        let is_reused = seen.opens() && flow.class == Class::Closing && !is_repeated;
        self.has_expired(flow) || is_reused
    }

    fn created(&mut self, key: &K, seen: PacketInfo, answer: &Observation<K>) {
        let name = if seen.is_to_initiator() { key.reversed() } else { key.clone() };
        let direction = if name == *key { Direction::Forward } else { Direction::Reverse };
        let mut flow = Flow::new(answer.handle, name, seen, self.now);
        let class = flow.class;
        flow.update(seen, direction, self.setting.rule, self.now);
        // A single packet is of one side only.
        flow.class = class;
        flow.value = 1;
        assert_eq!(
            (answer.direction, answer.alias, answer.class, answer.value, answer.fresh),
            (direction, 0, flow.class, 1, true)
        );
        let alive = self.flows.iter().map(|flow| flow.handle);
        let mut before = alive.chain(self.dead.iter().copied());
        assert!(before.all(|other| other.id() < flow.handle.id()), "ids of flows increase");
        self.flows.push(flow);
        self.counts.created += 1;
        self.update_emergency();
        assert!(self.flows.len() <= self.setting.flows, "more flows than the capacity");
    }

    /// Checks that the flow evicted for a new one of this tenant was an allowed one.
    fn evicted_for(&mut self, tenant: Tenant, removed: Option<&RemovedFlow<K, u64>>) {
        let is_over = self.is_over(tenant);
        let must = is_over || self.flows.len() == self.setting.flows;
        let Some(removed) = removed else { return assert!(!must, "no flow was evicted") };
        let is_early = self.lacks_memory || self.setting.victims == Victims::AnyEarly;
        assert!(must || is_early, "there was room");
        assert_eq!(removed.reason, EndReason::Resources);
        assert!(!is_over || removed.tenant == tenant, "evicted for {tenant:?}");
        let allowed = self.flows.iter().filter(|flow| !is_over || flow.tenant == tenant);
        let allowed: Vec<Class> =
            allowed.filter(|flow| !flow.pinned).map(|flow| flow.class).collect();
        if is_over || self.setting.victims == Victims::Lowest {
            let lacks_new = lacks_new(&allowed);
            let is_lowest = allowed.iter().all(|class| removed.class <= *class);
            assert!(
                is_lowest || lacks_new && removed.class == Class::Established,
                "{removed:?} of {allowed:?}"
            );
        }
        let victim = self.flow(removed.handle);
        assert!(!victim.pinned, "{victim:?} is pinned");
        self.remove(removed);
    }

    fn refused(&mut self, tenant: Tenant, refused: AdmissionError) {
        self.counts.refused += 1;
        if self.lacks_memory && refused == AdmissionError::Memory {
            return;
        }
        let is_over = self.is_over(tenant);
        let mut candidates = self.flows.iter().filter(|flow| !is_over || flow.tenant == tenant);
        assert!(is_over || self.flows.len() == self.setting.flows, "{refused}: there was room");
        assert!(candidates.all(|flow| flow.pinned), "{refused}: a flow could have been evicted");
        assert_eq!(refused, if is_over { AdmissionError::Tenant } else { AdmissionError::Full });
    }

    /// Removes a flow that the cache has removed for any reason.
    pub fn remove(&mut self, removed: &RemovedFlow<K, u64>) {
        let at = self.at(removed.handle).expect("a flow is removed once");
        self.flows.swap_remove(at).assert_departed(removed);
        self.dead.push(removed.handle);
        self.counts.removed[removed.reason as usize][removed.class as usize] += 1;
        self.update_emergency();
    }

    /// Checks that a flow has expired, and removes it.
    pub fn expired(&mut self, removed: &RemovedFlow<K, u64>) {
        let (now, timeouts) = (self.now, self.setting.timeouts);
        let emergency = self.setting.emergency.filter(|_| self.emergency);
        let flow = self.flow(removed.handle);
        let is_due = flow.end(&timeouts).is_some_and(|end| end <= now);
        match removed.reason {
            EndReason::Idle => assert!(is_due && flow.class != Class::Closing, "{flow:?}"),
            EndReason::Ended => {
                assert!(is_due && flow.class == Class::Closing, "{flow:?}");
            }
            EndReason::Resources => {
                let (.., idle) = emergency.expect("there is an emergency");
                assert!(flow.expires_early(), "{flow:?}");
                assert!(flow.idle(now) >= span(idle), "{flow:?}");
            }
            reason => panic!("time is no reason for {reason:?}"),
        }
        self.remove(removed);
    }

    /// Checks a report of the packets since the last one, and resets the counter.
    pub fn reported(&mut self, report: &Report<'_, K, u64>) {
        let (now, timeouts) = (self.now, self.setting.timeouts);
        let flow = self.flow(report.handle);
        let active = timeouts.active().expect("reports are enabled");
        let first_unreported =
            flow.first_unreported.unwrap_or_else(|| panic!("{flow:?} has no new packets"));
        // There are no timestamps before the origin.
        let is_known = report.since > Timestamp::ZERO;
        let since = if is_known { nanos(report.since) } else { flow.since };
        assert!(since + span(active) <= now, "{flow:?} is not due: {report:?}");
        // Since it was examined and had no new packets, or since the last report.
        let since = timestamp(flow.since)..=timestamp(first_unreported);
        assert!(since.contains(&report.since), "{flow:?}: {report:?}");
        assert!(report.key == flow.names[0].1, "{flow:?}: {:?}", report.key);
        assert_eq!(
            (*report.value, report.class, report.protocol, report.tenant),
            (flow.value, flow.class, flow.protocol, flow.tenant)
        );
        assert_eq!(
            [report.first_seen, report.last_seen],
            [flow.first_seen, flow.last_seen].map(timestamp)
        );
        (flow.since, flow.first_unreported, flow.value) = (now, None, 0);
        self.counts.reported += 1;
    }

    /// When a flow expires or is reported if no packet arrives. Flows that were idle before the
    /// emergency may remain for as long as those that were not.
    fn due(&self, flow: &Flow<K>) -> Option<Nanos> {
        let timeouts = &self.setting.timeouts;
        let emergency = self.setting.emergency.filter(|_| self.emergency && flow.expires_early());
        let relief =
            emergency.map(|(.., idle)| flow.changed.max(self.emergency_since) + span(idle));
        [flow.end(timeouts), flow.report(timeouts), relief].into_iter().flatten().min()
    }

    /// Checks that no flow remains that was due a tick ago.
    pub fn assert_done(&self) {
        for flow in &self.flows {
            let due = self.due(flow);
            let is_later = due.is_none_or(|due| self.now < due + span(self.setting.tick));
            assert!(is_later, "{flow:?} was due at {due:?}");
        }
    }

    /// When the next flow is due, if any.
    pub fn next_due(&self) -> Option<Nanos> {
        self.flows.iter().filter_map(|flow| self.due(flow)).min()
    }

    /// Sets the clock; the ages of all events remain.
    pub fn set_clock(&mut self, now: Timestamp) {
        self.shift(nanos(now) - self.now);
    }

    fn shift(&mut self, moved: Nanos) {
        for flow in &mut self.flows {
            let Flow { first_seen, last_seen, since, changed, first_unreported, .. } = flow;
            let times = [first_seen, last_seen, since, changed].into_iter().chain(first_unreported);
            times.for_each(|time| *time += moved);
        }
        self.emergency_since += moved;
        self.now += moved;
    }

    fn update_emergency(&mut self) {
        let Some((enter, leave, _)) = self.setting.emergency else { return };
        if !self.emergency && self.flows.len() >= enter {
            (self.emergency, self.emergency_since) = (true, self.now);
            self.counts.emergencies += 1;
        } else if self.flows.len() < leave {
            self.emergency = false;
        }
    }
}
