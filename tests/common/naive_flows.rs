//! Flows in a row: the naive twin of the flow cache. Each question goes through all of them.
//!
//! Where the cache may choose, it tells what it chose, and the twin says whether that was allowed.
#![allow(dead_code, reason = "not every test asks everything")]

use core::fmt::Debug;
use core::time::Duration;

use flowtable::{
    Class, CloseRule, Departed, Direction, EndReason, FlowName, Handle, Packet, Protocol, Refused,
    Report, TcpFlags, Tenant, Timeouts, Timestamp,
};

/// Nanoseconds, before the caller's origin too: a clock may be set to less than flows are old.
pub(crate) type Moment = i128;

pub(crate) fn moment(time: Timestamp) -> Moment {
    time.as_nanos().into()
}

/// What the caller is told.
pub(crate) fn timestamp(moment: Moment) -> Timestamp {
    Timestamp::from_nanos(moment.clamp(0, u64::MAX.into()) as u64)
}

fn nanos(time: Duration) -> Moment {
    time.as_nanos() as Moment
}

/// What the tests say of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) protocol: Protocol,
    pub(crate) flags: TcpFlags,
    pub(crate) tenant: Tenant,
}

impl Seen {
    pub(crate) fn packet(self) -> Packet {
        Packet::new(self.protocol, self.flags).from_tenant(self.tenant)
    }

    fn has(self, flag: TcpFlags) -> bool {
        self.protocol == Protocol::Tcp && self.flags.contains(flag)
    }

    fn opens(self) -> bool {
        self.has(TcpFlags::SYN) && !self.has(TcpFlags::ACK) && !self.has(TcpFlags::RST)
    }
}

/// What the cache is told before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) flows: usize,
    pub(crate) timeouts: Timeouts,
    pub(crate) tick: Duration,
    pub(crate) rule: CloseRule,
    /// Enter, leave, idle.
    pub(crate) emergency: Option<(usize, usize, Duration)>,
    pub(crate) leaves: Leaves,
}

/// What a policy promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Of the lowest class there is, or for want of newcomers an established one.
    Lowest,
    Any,
    /// Any, although there is room.
    AnyEarly,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow<K> {
    pub(crate) handle: Handle,
    /// By number, the first one first, as packets of the initiator carry them.
    pub(crate) names: Vec<(u8, K)>,
    /// Packets since the last report.
    pub(crate) value: u64,
    pub(crate) class: Class,
    pub(crate) protocol: Protocol,
    pub(crate) tenant: Tenant,
    pub(crate) pinned: bool,
    /// Whether its class was given, and not what its packets had made of it.
    is_given: bool,
    pub(crate) first_seen: Moment,
    pub(crate) last_seen: Moment,
    /// The last report, or the beginning.
    pub(crate) since: Moment,
    /// The first packet of which has not been told.
    news: Option<Moment>,
    /// Its last packet, or when it was given another class or pinned or not.
    changed: Moment,
    /// Whether the responder has sent a packet.
    replied: bool,
    /// Whether the initiator has sent a FIN, and whether the responder has.
    closed: [bool; 2],
}

/// What the cache answered to a packet.
#[derive(Debug)]
pub(crate) struct Answer<K> {
    pub(crate) handle: Handle,
    pub(crate) direction: Direction,
    pub(crate) name: u8,
    pub(crate) class: Class,
    pub(crate) fresh: bool,
    pub(crate) value: u64,
    pub(crate) departed: Option<Departed<K, u64>>,
}

/// Everything that the cache counts, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) observed: u64,
    pub(crate) created: u64,
    pub(crate) refused: u64,
    pub(crate) reported: u64,
    pub(crate) emergencies: u64,
    /// By reason, then class.
    pub(crate) departed: [[u64; 4]; 5],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Naive<K> {
    pub(crate) setting: Setting,
    pub(crate) now: Moment,
    pub(crate) flows: Vec<Flow<K>>,
    pub(crate) dead: Vec<Handle>,
    pub(crate) shares: Vec<(Tenant, usize)>,
    pub(crate) emergency: bool,
    /// When the last emergency began.
    crowded_since: Moment,
    pub(crate) counts: Counts,
}

/// Whether so few are newcomers that one that is established may leave for the next.
fn lacks_newcomers(classes: &[Class]) -> bool {
    let of = |class| classes.iter().filter(|other| **other == class).count();
    of(Class::Closing) == 0 && 8 * (of(Class::New) + of(Class::Unreplied)) < classes.len()
}

/// The class of a flow whose first packet this is.
fn first_class(seen: Seen) -> Class {
    match (seen.has(TcpFlags::RST), seen.has(TcpFlags::SYN)) {
        (true, _) => Class::Closing,
        (false, true) => Class::New,
        (false, false) => Class::Unreplied,
    }
}

impl<K: FlowName + Debug> Flow<K> {
    fn new(handle: Handle, key: K, seen: Seen, now: Moment) -> Self {
        Self {
            handle,
            names: vec![(0, key)],
            value: 0,
            class: first_class(seen),
            protocol: seen.protocol,
            tenant: seen.tenant,
            pinned: false,
            is_given: false,
            first_seen: now,
            last_seen: now,
            since: now,
            news: Some(now),
            changed: now,
            replied: false,
            closed: [false; 2],
        }
    }

    /// What a packet of this side makes of it: the first line that holds.
    fn live(&mut self, seen: Seen, side: Direction, rule: CloseRule) {
        let is_tcp = self.protocol == Protocol::Tcp && seen.protocol == Protocol::Tcp;
        let [rst, syn, fin, ack] = [TcpFlags::RST, TcpFlags::SYN, TcpFlags::FIN, TcpFlags::ACK]
            .map(|flag| is_tcp && seen.has(flag));
        let closed = &mut self.closed[side as usize];
        let acks_behind_its_fin = *closed && ack && !fin && !syn;
        *closed = match (rst, syn, fin) {
            (false, true, _) => false,
            (false, false, true) => true,
            _ => *closed,
        };
        self.replied |= side == Direction::Reverse;
        let ends = match rule {
            CloseRule::BothSides => is_tcp && self.closed == [true; 2],
            CloseRule::FirstAck => acks_behind_its_fin,
        };
        let lines = [
            (None, rst || ends, Class::Closing),
            (Some(Class::New), ack && !syn && self.replied, Class::Established),
            (Some(Class::Unreplied), side == Direction::Reverse, Class::Established),
        ];
        let line = lines
            .into_iter()
            .find(|&(class, holds, _)| holds && class.is_none_or(|class| class == self.class));
        self.class = line.map_or(self.class, |(_, _, behind)| behind);
    }

    fn idle(&self, now: Moment) -> Moment {
        now - self.last_seen
    }

    /// When it is due to leave.
    fn end(&self, timeouts: &Timeouts) -> Option<Moment> {
        timeouts.idle(self.protocol, self.class).map(|idle| self.last_seen + nanos(idle))
    }

    /// When it has been reported, at the latest: the timeout may have begun before its packets.
    fn report(&self, timeouts: &Timeouts) -> Option<Moment> {
        Some(self.news? + nanos(timeouts.active()?))
    }

    /// Whether it leaves in an emergency if it is silent.
    fn is_loose(&self) -> bool {
        self.class != Class::Established && !self.pinned
    }

    fn assert_departed(&self, departed: &Departed<K, u64>) {
        assert_eq!(departed.handle, self.handle);
        assert!(departed.key == self.names[0].1, "{:?} left as {:?}", self.names[0], departed.key);
        assert_eq!(
            (departed.value, departed.class, departed.protocol, departed.tenant),
            (self.value, self.class, self.protocol, self.tenant)
        );
        assert_eq!(
            (departed.first_seen, departed.last_seen),
            (timestamp(self.first_seen), timestamp(self.last_seen))
        );
    }
}

impl<K: FlowName + Debug> Naive<K> {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            setting,
            now: 0,
            flows: vec![],
            dead: vec![],
            shares: vec![],
            emergency: false,
            crowded_since: 0,
            counts: Counts::default(),
        }
    }

    /// The flow of this key, its direction, and the number of the name.
    pub(crate) fn find(&self, key: &K) -> Option<(usize, Direction, u8)> {
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

    pub(crate) fn at(&self, handle: Handle) -> Option<usize> {
        self.flows.iter().position(|flow| flow.handle == handle)
    }

    pub(crate) fn flow(&mut self, handle: Handle) -> &mut Flow<K> {
        let at = self.at(handle).unwrap_or_else(|| panic!("{handle:?} is not alive"));
        &mut self.flows[at]
    }

    pub(crate) fn set_pinned(&mut self, handle: Handle, pinned: bool) {
        let now = self.now;
        let flow = self.flow(handle);
        (flow.pinned, flow.changed) = (pinned, now);
    }

    pub(crate) fn set_class(&mut self, handle: Handle, class: Class) {
        let now = self.now;
        let flow = self.flow(handle);
        (flow.class, flow.changed, flow.is_given) = (class, now, true);
    }

    pub(crate) fn flows_of(&self, class: Class) -> usize {
        self.flows.iter().filter(|flow| flow.class == class).count()
    }

    fn share(&self, tenant: Tenant) -> Option<usize> {
        self.shares.iter().find(|(other, _)| *other == tenant).map(|(_, share)| *share)
    }

    /// Whether a flow of this tenant must wait until another of them leaves.
    fn is_over(&self, tenant: Tenant) -> bool {
        let count = self.flows.iter().filter(|flow| flow.tenant == tenant).count();
        tenant != Tenant::default() && self.share(tenant).is_some_and(|share| count >= share)
    }

    /// Time passes; of more than a year at once it is as if the clock had been set.
    pub(crate) fn tick_clock(&mut self, now: Timestamp) {
        let year = nanos(Duration::from_secs(366 * 24 * 3600));
        let now = moment(now);
        if now - self.now > year {
            self.move_by(now - self.now - year);
        }
        self.now = self.now.max(now);
    }

    /// A packet came, and the cache answered.
    pub(crate) fn observe(
        &mut self,
        key: &K,
        seen: Seen,
        now: Timestamp,
        answer: Result<Answer<K>, Refused>,
    ) {
        self.tick_clock(now);
        self.counts.observed += 1;
        let found = self.find(key);
        let reused = found
            .map(|(at, ..)| at)
            .filter(|&at| seen.opens() && self.flows[at].class == Class::Closing);
        match (found, reused) {
            (Some(found), None) => {
                let answer = answer.unwrap_or_else(|why| panic!("{key:?} is there: {why}"));
                self.goes_on(found, seen, answer);
            }
            (_, Some(at)) => {
                let mut answer = answer.unwrap_or_else(|why| panic!("{key:?} makes room: {why}"));
                let departed = answer.departed.take().expect("its tuple is reused");
                assert_eq!(
                    (departed.handle, departed.reason),
                    (self.flows[at].handle, EndReason::Ended)
                );
                self.depart(&departed);
                // The room is still its tenant's.
                self.begins(key, Seen { tenant: departed.tenant, ..seen }, &answer);
            }
            (None, None) => match answer {
                Err(refused) => self.refused(seen.tenant, refused),
                Ok(answer) => {
                    self.makes_room(seen.tenant, answer.departed.as_ref());
                    self.begins(key, seen, &answer);
                }
            },
        }
    }

    fn goes_on(
        &mut self,
        (at, direction, name): (usize, Direction, u8),
        seen: Seen,
        answer: Answer<K>,
    ) {
        let (now, rule) = (self.now, self.setting.rule);
        let flow = &mut self.flows[at];
        (flow.last_seen, flow.changed) = (now, now);
        flow.news.get_or_insert(now);
        flow.value += 1;
        // A given class may be at odds with what packets have said: the cache may believe either.
        let given = flow.class;
        let has_reply = flow.replied && given == Class::Unreplied;
        flow.live(seen, direction, rule);
        if flow.is_given
            && (answer.class == given || has_reply && answer.class == Class::Established)
        {
            flow.class = answer.class;
        }
        assert!(answer.departed.is_none(), "nobody leaves for a packet of a flow that is there");
        assert_eq!(
            (
                answer.handle,
                answer.direction,
                answer.name,
                answer.class,
                answer.value,
                answer.fresh
            ),
            (flow.handle, direction, name, flow.class, flow.value, false)
        );
    }

    fn begins(&mut self, key: &K, seen: Seen, answer: &Answer<K>) {
        // Who answers has been called.
        let called = seen.has(TcpFlags::SYN | TcpFlags::ACK);
        let name = if called { key.reversed() } else { key.clone() };
        let direction = if name == *key { Direction::Forward } else { Direction::Reverse };
        let mut flow = Flow::new(answer.handle, name, seen, self.now);
        let class = flow.class;
        flow.live(seen, direction, self.setting.rule);
        // One packet is not two sides.
        flow.class = class;
        flow.value = 1;
        assert_eq!(
            (answer.direction, answer.name, answer.class, answer.value, answer.fresh),
            (direction, 0, flow.class, 1, true)
        );
        let alive = self.flows.iter().map(|flow| flow.handle);
        let mut before = alive.chain(self.dead.iter().copied());
        assert!(before.all(|other| other.id() < flow.handle.id()), "numbers of flows go up");
        self.flows.push(flow);
        self.counts.created += 1;
        self.watch();
        assert!(self.flows.len() <= self.setting.flows, "more than there is room for");
    }

    /// Who left for a new flow of this tenant was the right one.
    fn makes_room(&mut self, tenant: Tenant, departed: Option<&Departed<K, u64>>) {
        let is_over = self.is_over(tenant);
        let must = is_over || self.flows.len() == self.setting.flows;
        let Some(departed) = departed else { return assert!(!must, "nobody left") };
        assert!(must || self.setting.leaves == Leaves::AnyEarly, "there was room");
        assert_eq!(departed.reason, EndReason::Resources);
        assert!(!is_over || departed.tenant == tenant, "{tenant:?} takes from its own");
        let allowed = self.flows.iter().filter(|flow| !is_over || flow.tenant == tenant);
        let allowed: Vec<Class> =
            allowed.filter(|flow| !flow.pinned).map(|flow| flow.class).collect();
        if is_over || self.setting.leaves == Leaves::Lowest {
            let lacks_newcomers = lacks_newcomers(&allowed);
            let is_lowest = allowed.iter().all(|class| departed.class <= *class);
            assert!(
                is_lowest || lacks_newcomers && departed.class == Class::Established,
                "{departed:?} of {allowed:?}"
            );
        }
        let victim = self.flow(departed.handle);
        assert!(!victim.pinned, "{victim:?} is pinned");
        self.depart(departed);
    }

    fn refused(&mut self, tenant: Tenant, refused: Refused) {
        let is_over = self.is_over(tenant);
        let mut asked = self.flows.iter().filter(|flow| !is_over || flow.tenant == tenant);
        assert!(is_over || self.flows.len() == self.setting.flows, "{refused}: there was room");
        assert!(asked.all(|flow| flow.pinned), "{refused}: one could have left");
        assert_eq!(refused, if is_over { Refused::Tenant } else { Refused::Full });
        self.counts.refused += 1;
    }

    /// A flow has left, for whatever reason.
    pub(crate) fn depart(&mut self, departed: &Departed<K, u64>) {
        let at = self.at(departed.handle).expect("nobody leaves twice");
        self.flows.swap_remove(at).assert_departed(departed);
        self.dead.push(departed.handle);
        self.counts.departed[departed.reason as usize][departed.class as usize] += 1;
        self.watch();
    }

    /// A flow has left because of its time.
    pub(crate) fn expires(&mut self, departed: &Departed<K, u64>) {
        let (now, timeouts) = (self.now, self.setting.timeouts);
        let emergency = self.setting.emergency.filter(|_| self.emergency);
        let flow = self.flow(departed.handle);
        let is_due = flow.end(&timeouts).is_some_and(|end| end <= now);
        match departed.reason {
            EndReason::Idle => assert!(is_due && flow.class != Class::Closing, "{flow:?}"),
            EndReason::Ended => assert!(is_due && flow.class == Class::Closing, "{flow:?}"),
            EndReason::Resources => {
                let (.., idle) = emergency.expect("there is an emergency");
                assert!(flow.is_loose(), "{flow:?}");
                assert!(flow.idle(now) >= nanos(idle), "{flow:?}");
            }
            reason => panic!("time is no reason for {reason:?}"),
        }
        self.depart(departed);
    }

    /// An event has told what came since the last one, and has taken it.
    pub(crate) fn reported(&mut self, report: &Report<'_, K, u64>) {
        let (now, timeouts) = (self.now, self.setting.timeouts);
        let flow = self.flow(report.handle);
        let active = timeouts.active().expect("reports are asked for");
        let news = flow.news.unwrap_or_else(|| panic!("nothing is new of {flow:?}"));
        // The caller knows no time before its origin.
        let is_known = report.since > Timestamp::ZERO;
        let since = if is_known { moment(report.since) } else { flow.since };
        assert!(since + nanos(active) <= now, "{flow:?} is not due: {report:?}");
        // Since it was looked at and had nothing new, or since what was told last.
        let since = timestamp(flow.since)..=timestamp(news);
        assert!(since.contains(&report.since), "{flow:?}: {report:?}");
        assert!(*report.key == flow.names[0].1, "{flow:?}: {:?}", report.key);
        assert_eq!(
            (*report.value, report.class, report.protocol, report.tenant),
            (flow.value, flow.class, flow.protocol, flow.tenant)
        );
        assert_eq!(
            [report.first_seen, report.last_seen],
            [flow.first_seen, flow.last_seen].map(timestamp)
        );
        (flow.since, flow.news, flow.value) = (now, None, 0);
        self.counts.reported += 1;
    }

    /// When something is done about a flow if no packet comes: it ends or is reported, or leaves as
    /// things are. Who was silent before the emergency may stay for as long as who was not.
    fn due(&self, flow: &Flow<K>) -> Option<Moment> {
        let timeouts = &self.setting.timeouts;
        let emergency = self.setting.emergency.filter(|_| self.emergency && flow.is_loose());
        let relief = emergency.map(|(.., idle)| flow.changed.max(self.crowded_since) + nanos(idle));
        [flow.end(timeouts), flow.report(timeouts), relief].into_iter().flatten().min()
    }

    /// Nothing may be there still that was due a tick ago.
    pub(crate) fn assert_done(&self) {
        for flow in &self.flows {
            let due = self.due(flow);
            assert!(
                due.is_none_or(|due| self.now < due + nanos(self.setting.tick)),
                "{flow:?} was due at {due:?}"
            );
        }
    }

    /// When something is due, if it ever is.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.flows.iter().filter_map(|flow| self.due(flow)).min()
    }

    /// The clock of the caller was set: all that has been was as long ago as before.
    pub(crate) fn set_clock(&mut self, now: Timestamp) {
        self.move_by(moment(now) - self.now);
    }

    fn move_by(&mut self, moved: Moment) {
        for flow in &mut self.flows {
            let Flow { first_seen, last_seen, since, changed, news, .. } = flow;
            let times = [first_seen, last_seen, since, changed].into_iter().chain(news);
            times.for_each(|time| *time += moved);
        }
        self.crowded_since += moved;
        self.now += moved;
    }

    fn watch(&mut self) {
        let Some((enter, leave, _)) = self.setting.emergency else { return };
        if !self.emergency && self.flows.len() >= enter {
            (self.emergency, self.crowded_since) = (true, self.now);
            self.counts.emergencies += 1;
        } else if self.flows.len() < leave {
            self.emergency = false;
        }
    }
}
