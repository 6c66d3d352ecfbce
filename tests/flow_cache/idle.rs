//! Expiry and active reports: never early, never twice, and within a tick of their deadline unless
//! the budget is too small. The reference model is a sorted set of deadlines.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap};

use flowtable::flow_cache::{
    Class, Config, EndReason, Event, Handle, Progress, Protocol, RemovedFlow, Report, Timeouts,
};
use flowtable::{DefaultHashBuilder, FlowCache, FlowKey, Timestamp};
use model::flow_cache::flows::PacketInfo;
use model::flow_cache::keys::{ACK, FIN_ACK, RST, SYN, SYN_ACK, tcp, udp};
use model::scaled;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const TICK: Duration = Duration::from_millis(10);

/// The reference model of a flow.
#[derive(Clone, Copy)]
struct Known {
    end: Option<Timestamp>,
    /// The deadline of the next report, if there are packets to report.
    report: Option<Timestamp>,
    /// The time of the last report.
    since: Timestamp,
    last_seen: Timestamp,
    /// Packets since the last report, and the time of the first of them.
    packets: u64,
    first: Timestamp,
}

/// A cache, and the deadlines of all flows in order.
struct Timed {
    cache: FlowCache<FlowKey, u64>,
    timeouts: Timeouts,
    known: HashMap<Handle, Known, DefaultHashBuilder>,
    ends: BTreeSet<(Timestamp, Handle)>,
    reports: BTreeSet<(Timestamp, Handle)>,
    now: Timestamp,
    /// Packets observed, and packets reported.
    packets: [u64; 2],
    examined: usize,
    events: usize,
}

impl Timed {
    fn new(flows: usize, timeouts: Timeouts) -> Self {
        let config = Config::new(flows).expect("a few").with_timeouts(timeouts);
        Self {
            cache: FlowCache::new(config.with_tick(TICK).expect("a short one")),
            timeouts,
            known: HashMap::default(),
            ends: BTreeSet::new(),
            reports: BTreeSet::new(),
            now: Timestamp::ZERO,
            packets: [0; 2],
            examined: 0,
            events: 0,
        }
    }

    fn observe(&mut self, key: &FlowKey, seen: PacketInfo) -> Handle {
        let mut observed =
            self.cache.observe(key, seen.packet(), self.now).expect("no flow is pinned");
        *observed.flow += 1;
        let (handle, class) = (observed.handle(), observed.class);
        let removed = observed.take_removed();
        self.packets[0] += 1;
        if let Some(removed) = removed {
            self.forget(&removed);
        }
        let (now, end) = (self.now, self.timeouts.idle(seen.protocol, class));
        let begins =
            Known { end: None, report: None, since: now, last_seen: now, packets: 0, first: now };
        let before = *self.known.get(&handle).unwrap_or(&begins);
        let first = if before.packets == 0 { now } else { before.first };
        let known = Known {
            end: end.map(|idle| now + idle),
            report: self.timeouts.active().map(|active| first + active),
            last_seen: now,
            packets: before.packets + 1,
            first,
            ..before
        };
        self.update(handle, known);
        handle
    }

    fn update(&mut self, handle: Handle, known: Known) {
        self.unlist(handle);
        self.ends.extend(known.end.map(|end| (end, handle)));
        self.reports.extend(known.report.map(|report| (report, handle)));
        self.known.insert(handle, known);
    }

    fn unlist(&mut self, handle: Handle) {
        if let Some(known) = self.known.get(&handle) {
            known.end.map(|end| self.ends.remove(&(end, handle)));
            known.report.map(|report| self.reports.remove(&(report, handle)));
        }
    }

    fn forget(&mut self, removed: &RemovedFlow<FlowKey, u64>) {
        self.unlist(removed.handle);
        let known = self.known.remove(&removed.handle).expect("a flow departs once");
        assert_eq!((removed.value, removed.last_seen), (known.packets, known.last_seen));
        self.packets[1] += known.packets;
    }

    fn ended(&mut self, removed: &RemovedFlow<FlowKey, u64>) {
        let known = &self.known[&removed.handle];
        assert!(known.end.is_some_and(|end| end <= self.now), "early: {removed:?}");
        let closing = removed.class == Class::Closing;
        assert_eq!(removed.reason, if closing { EndReason::Ended } else { EndReason::Idle });
        self.forget(removed);
    }

    fn reported(&mut self, report: &mut Report<'_, FlowKey, u64>) {
        let known = self.known[&report.handle];
        let active = self.timeouts.active().expect("reports are configured");
        assert!(known.packets > 0 && report.since + active <= self.now, "early: {report:?}");
        // A report without packets may have been skipped since the last report.
        assert!((known.since..=known.first).contains(&report.since), "{report:?}");
        assert_eq!(*report.value, known.packets);
        self.packets[1] += core::mem::take(report.value);
        let known = Known { report: None, since: self.now, packets: 0, ..known };
        self.update(report.handle, known);
    }

    fn advance(&mut self, budget: usize) -> Progress {
        let mut events = vec![];
        // The closure borrows `self`, so the cache is replaced meanwhile.
        let mut cache =
            core::mem::replace(&mut self.cache, FlowCache::new(Config::new(1).unwrap()));
        let progress = cache.advance(self.now, budget, |event| {
            events.push(());
            match event {
                Event::Ended(removed) => self.ended(&removed),
                Event::Active(mut report) => self.reported(&mut report),
            }
        });
        self.cache = cache;
        assert_eq!(progress.ended + progress.reported, events.len());
        assert!(progress.is_done || progress.examined == budget, "the budget is not exhausted");
        self.examined += progress.examined;
        self.events += events.len();
        if progress.is_done {
            self.assert_done(&progress);
        }
        progress
    }

    /// Checks that no deadline passed more than a tick ago, and that `next` is early enough.
    fn assert_done(&self, progress: &Progress) {
        let first = [self.ends.first(), self.reports.first()].into_iter().flatten();
        let due = first.map(|(due, _)| *due).min();
        assert!(due.is_none_or(|due| self.now < due + TICK), "{due:?} at {:?}", self.now);
        assert!(progress.next.is_none_or(|next| next > self.now), "{progress:?}");
        if let Some(due) = due {
            assert!(progress.next.is_some_and(|next| next <= due + TICK), "{progress:?}, {due:?}");
        }
    }

    /// Calls `advance` with this budget until all is done; returns the number of calls.
    fn catch_up(&mut self, budget: usize) -> usize {
        (1..1_000_000).find(|_| self.advance(budget).is_done).expect("it ends")
    }

    /// Checks that all packets are reported, or still to be reported.
    fn assert_sums(&self) {
        let unreported: u64 = self.known.values().map(|known| known.packets).sum();
        assert_eq!(self.packets[0], self.packets[1] + unreported);
        assert_eq!(self.known.len(), self.cache.len());
        self.cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
    }
}

fn key(number: u32) -> FlowKey {
    let protocol = if number % 4 == 3 { 17 } else { 6 };
    let (src, dst) = ([10, 0, 0, 1].into(), (0x0b00_0000 + number).to_be_bytes().into());
    FlowKey::new(src, dst, 40_000, 443, protocol).expect("both are of one version")
}

fn packet(rng: &mut StdRng, key: &FlowKey) -> PacketInfo {
    if key.protocol() == 17 {
        return udp();
    }
    let flags = [SYN, SYN_ACK, ACK, ACK, ACK, ACK, FIN_ACK, FIN_ACK, RST];
    tcp(flags[rng.random_range(0..flags.len())])
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A random time between two operations.
fn random_delay(rng: &mut StdRng) -> Duration {
    match rng.random_range(0..100_000) {
        0 => nanos(rng.random_range(0..30_000_000_000_000_000)),
        1..10 => nanos(rng.random_range(0..100_000_000_000)),
        10..1000 => nanos(rng.random_range(0..20_000_000)),
        1000..50_000 => nanos(rng.random_range(0..2_000_000)),
        _ => Duration::ZERO,
    }
}

fn churn(timed: &mut Timed, operations: u32, keys: u32, budget: impl Fn(&mut StdRng) -> usize) {
    let mut rng = StdRng::seed_from_u64(5);
    for at in 0..operations {
        timed.now = timed.now + random_delay(&mut rng);
        match rng.random_range(0..100) {
            0..80 => {
                let key = key(rng.random_range(0..keys));
                let key = if rng.random() { key } else { key.reversed() };
                let seen = packet(&mut rng, &key);
                timed.observe(&key, seen);
            }
            80..82 => {
                let found = timed.cache.find(&key(rng.random_range(0..keys)));
                let removed = found.and_then(|found| timed.cache.remove(found.handle));
                removed.iter().for_each(|removed| timed.forget(removed));
            }
            _ => _ = timed.advance(budget(&mut rng)),
        }
        if at % 50_000 == 0 {
            timed.assert_sums();
        }
    }
    timed.catch_up(100);
    timed.assert_sums();
    assert!(timed.events > operations as usize / 1000, "{} events", timed.events);
}

/// Timeouts short enough to expire within a test.
fn short() -> Timeouts {
    let mut timeouts = Timeouts::METER;
    for (class, millis) in Class::ALL.into_iter().zip([15, 300, 1000, 4000]) {
        for (protocol, more) in [(Protocol::Tcp, 1), (Protocol::Udp, 3)] {
            let idle = Duration::from_millis(millis * more);
            timeouts = timeouts.with_idle(protocol, class, idle).expect("it is short");
        }
    }
    timeouts.with_active(Duration::from_millis(2500)).expect("it is short")
}

const MANY: u32 = scaled(250_000, 15_000, 250_000);

#[test]
fn flows_expire_in_time_with_a_sufficient_budget() {
    churn(&mut Timed::new(3000, short()), 2 * MANY, 2000, |_| 100_000);
}

#[test]
fn flows_expire_late_with_small_budgets_but_none_is_lost() {
    churn(&mut Timed::new(1000, short()), MANY, 2000, |rng| rng.random_range(0..4));
}

#[test]
fn flows_expire_in_time_with_the_timeouts_of_connection_tracking() {
    churn(&mut Timed::new(500, Timeouts::CONNTRACK), scaled(MANY, 4 * MANY, MANY), 800, |_| {
        100_000
    });
}

/// Without packets, `advance` is called only at the times that it returns.
#[test]
fn flows_expire_in_time_without_packets() {
    let mut timed = Timed::new(5000, short());
    let mut rng = StdRng::seed_from_u64(6);
    for number in 0..4000 {
        timed.now = timed.now + nanos(rng.random_range(0..1_000_000));
        let key = key(number);
        let seen = packet(&mut rng, &key);
        timed.observe(&key, seen);
    }
    let mut progress = timed.advance(100_000);
    let mut calls = 0;
    while let Some(next) = progress.next {
        timed.now = next;
        progress = timed.advance(100_000);
        calls += 1;
    }
    assert!(timed.cache.is_empty());
    assert!(calls < 3000, "{calls} calls in some {:?}", timed.now);
    timed.assert_sums();
}

#[test]
fn an_expiry_backlog_is_worked_off() {
    let mut timed = Timed::new(1000, short());
    (0..1000).for_each(|number| _ = timed.observe(&key(number), udp()));
    timed.now = timed.now + Duration::from_secs(3600);
    // One by one, with at most three flows examined for each that ends.
    let calls = timed.catch_up(1);
    assert!(timed.cache.is_empty() && calls <= 3000, "{calls} calls");
}

#[test]
fn a_busy_flow_is_rarely_examined() {
    let timeouts = Timeouts::OFF.with_all_idle(Duration::from_secs(10)).expect("it is short");
    let mut timed = Timed::new(100, timeouts);
    for _ in 0..10_000 {
        (0..100).for_each(|number| _ = timed.observe(&key(number), tcp(ACK)));
        timed.now = timed.now + Duration::from_millis(100);
        assert!(timed.advance(100_000).is_done);
    }
    assert_eq!((timed.cache.len(), timed.events), (100, 0));
    // A hundred timeouts of ten seconds have passed.
    assert!(timed.examined <= 3 * 100 * 100, "{} examined", timed.examined);
}

/// A step of more than a year counts as one year: wrong timestamps may be frequent.
#[test]
fn a_step_of_time_is_limited_to_a_year() {
    let config = Config::new(100).expect("some").with_timeouts(short());
    let mut cache: FlowCache<FlowKey, u64> = FlowCache::new(config);
    let year = Duration::from_secs(366 * 86_400);
    let mut now = Timestamp::ZERO;
    for years in [1, 10, 400, 1, 1, 500, 500] {
        for number in 0..100 {
            cache.observe(&key(number), udp().packet(), now).expect("there is room");
        }
        now = now + year * years;
        let calls = (1..1000).find(|_| {
            let progress = cache.advance(now, 50, |event| {
                let Event::Ended(removed) = event else { panic!("{event:?}") };
                let silent = now.since(removed.last_seen);
                assert!((year - TICK..=year).contains(&silent), "{silent:?}");
            });
            progress.is_done
        });
        assert_eq!((cache.now(), cache.is_empty()), (now, true));
        assert!(calls.is_some_and(|calls| calls < 100), "{calls:?} calls after {years} years");
        // The cache works as before.
        cache.observe(&key(1), udp().packet(), now).expect("there is room");
        assert_eq!(cache.advance(now, 10, |_| ()).ended, 0);
        if now == Timestamp::MAX {
            now = Timestamp::from_secs(1000);
            cache.set_clock(now);
        }
        now = now + Duration::from_secs(60);
        assert_eq!(cache.advance(now, 10, |_| ()).ended, 1);
    }
}

#[test]
fn time_may_stand_still_or_decrease() {
    let mut cache: FlowCache<FlowKey, u64> =
        FlowCache::new(Config::new(10).unwrap().with_timeouts(Timeouts::METER));
    let at = Timestamp::from_secs(1000);
    let handle = cache.observe(&key(3), udp().packet(), at).unwrap().handle();
    for earlier in [999, 500, 0] {
        let earlier = Timestamp::from_secs(earlier);
        assert_eq!(cache.observe(&key(3), udp().packet(), earlier).unwrap().handle(), handle);
        assert_eq!(cache.resident(handle).unwrap().last_seen(), at);
        let progress = cache.advance(earlier, 10, |_| panic!("nothing is due"));
        assert!(progress.is_done && cache.now() == at);
    }
    for _ in 0..100 {
        assert!(cache.advance(at, 10, |_| panic!("nothing is due")).is_done);
    }
    assert_eq!(cache.advance(at + Duration::from_secs(60) + TICK, 10, |_| ()).ended, 1);
}

#[test]
fn setting_the_clock_preserves_ages() {
    for set in [0, 10, 1_000_000, 10_000_000_000_000] {
        let mut cache: FlowCache<FlowKey, u64> =
            FlowCache::new(Config::new(10).unwrap().with_timeouts(Timeouts::METER));
        let at = Timestamp::from_secs(100_000);
        cache.observe(&key(3), udp().packet(), at).unwrap();
        cache.advance(at + Duration::from_secs(40), 10, |_| panic!("nothing is due"));
        let set = Timestamp::from_millis(set);
        cache.set_clock(set);
        assert_eq!(cache.now(), set);
        let early = set + Duration::from_secs(20) - Duration::from_millis(1);
        assert!(cache.advance(early, 10, |_| panic!("early")).is_done, "{set:?}");
        let mut ended = 0;
        let late = set + Duration::from_secs(20) + TICK;
        cache.advance(late, 10, |event| {
            let Event::Ended(removed) = event else { panic!("{event:?}") };
            assert_eq!(removed.reason, EndReason::Idle);
            ended += 1;
        });
        assert_eq!(ended, 1, "{set:?}");
    }
}

#[test]
fn active_flows_are_reported_periodically_and_deltas_add_up() {
    let timeouts = Timeouts::METER.with_active(Duration::from_secs(5)).expect("it is short");
    let mut timed = Timed::new(10, timeouts);
    let handle = timed.observe(&key(1), tcp(ACK));
    for _ in 0..1000 {
        timed.now = timed.now + Duration::from_millis(100);
        assert_eq!(timed.observe(&key(1), tcp(ACK)), handle);
        timed.advance(10);
    }
    let reports = timed.cache.metrics().reported;
    assert!((18..=20).contains(&reports), "{reports} in 100 s");
    assert_eq!(timed.events as u64, reports);
    timed.assert_sums();
}
