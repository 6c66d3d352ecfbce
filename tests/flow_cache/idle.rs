//! When flows end and are reported: never early, never twice, and within a tick of their time, unless
//! the budget was too small; judged by sorted deadlines.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap};

use flowtable::flow_cache::{
    Class, Config, EndReason, Event, Handle, Observed, Progress, Protocol, RemovedFlow, Report,
    Timeouts,
};
use flowtable::{DefaultHashBuilder, FlowCache, FlowKey, Timestamp};
use model::flow_cache::flows::PacketInfo;
use model::flow_cache::keys::{ACK, FIN_ACK, RST, SYN, SYN_ACK, tcp, udp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const TICK: Duration = Duration::from_millis(10);

/// What is known of a flow.
#[derive(Clone, Copy)]
struct Known {
    end: Option<Timestamp>,
    /// When it has been reported, at the latest; nothing is if there are no packets to report.
    report: Option<Timestamp>,
    /// The last report.
    since: Timestamp,
    last_seen: Timestamp,
    /// Packets since the last report, and when the first of them came.
    packets: u64,
    news: Timestamp,
}

/// A cache, and all deadlines in order.
struct Timed {
    cache: FlowCache<FlowKey, u64>,
    timeouts: Timeouts,
    known: HashMap<Handle, Known, DefaultHashBuilder>,
    ends: BTreeSet<(Timestamp, Handle)>,
    reports: BTreeSet<(Timestamp, Handle)>,
    now: Timestamp,
    /// Packets seen, and those of which has been told.
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
        let Observed { flow, handle, class, removed, .. } =
            self.cache.observe(key, seen.packet(), self.now).expect("nobody is pinned");
        *flow += 1;
        self.packets[0] += 1;
        if let Some(removed) = removed {
            self.forget(&removed);
        }
        let (now, end) = (self.now, self.timeouts.idle(seen.protocol, class));
        let begins =
            Known { end: None, report: None, since: now, last_seen: now, packets: 0, news: now };
        let before = *self.known.get(&handle).unwrap_or(&begins);
        let news = if before.packets == 0 { now } else { before.news };
        let known = Known {
            end: end.map(|idle| now + idle),
            report: self.timeouts.active().map(|active| news + active),
            last_seen: now,
            packets: before.packets + 1,
            news,
            ..before
        };
        self.learn(handle, known);
        handle
    }

    fn learn(&mut self, handle: Handle, known: Known) {
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
        let known = self.known.remove(&removed.handle).expect("a flow is removed once");
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
        let active = self.timeouts.active().expect("reports are asked for");
        assert!(known.packets > 0 && report.since + active <= self.now, "early: {report:?}");
        // It may have been looked at since the last report, and had nothing to report.
        assert!((known.since..=known.news).contains(&report.since), "{report:?}");
        assert_eq!(*report.value, known.packets);
        self.packets[1] += core::mem::take(report.value);
        let known = Known { report: None, since: self.now, packets: 0, ..known };
        self.learn(report.handle, known);
    }

    fn advance(&mut self, budget: usize) -> Progress {
        let mut events = vec![];
        // The cache is borrowed: what comes is looked at behind it.
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
        assert!(progress.is_done || progress.examined == budget, "it could have done more");
        self.examined += progress.examined;
        self.events += events.len();
        if progress.is_done {
            self.assert_done(&progress);
        }
        progress
    }

    /// What was due a tick ago has come, and whoever comes back at `next` is in time.
    fn assert_done(&self, progress: &Progress) {
        let first = [self.ends.first(), self.reports.first()].into_iter().flatten();
        let due = first.map(|(due, _)| *due).min();
        assert!(due.is_none_or(|due| self.now < due + TICK), "{due:?} at {:?}", self.now);
        assert!(progress.next.is_none_or(|next| next > self.now), "{progress:?}");
        if let Some(due) = due {
            assert!(progress.next.is_some_and(|next| next <= due + TICK), "{progress:?}, {due:?}");
        }
    }

    /// Until all is done, with budgets of this size; how many it took.
    fn catch_up(&mut self, budget: usize) -> usize {
        (1..1_000_000).find(|_| self.advance(budget).is_done).expect("it ends")
    }

    /// All packets are in reports, or still there to be reported.
    fn assert_sums(&self) {
        let there: u64 = self.known.values().map(|known| known.packets).sum();
        assert_eq!(self.packets[0], self.packets[1] + there);
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

/// One of several paces of time.
fn pace(rng: &mut StdRng) -> Duration {
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
        timed.now = timed.now + pace(&mut rng);
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

/// Idle times that come to pass within a test.
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

const MANY: u32 = 250_000;

#[test]
fn in_time_with_a_budget_for_all() {
    churn(&mut Timed::new(3000, short()), 2 * MANY, 2000, |_| 100_000);
}

#[test]
fn as_soon_as_small_budgets_allow() {
    churn(&mut Timed::new(1000, short()), MANY, 2000, |rng| rng.random_range(0..4));
}

#[test]
fn in_time_with_the_timeouts_of_connection_tracking() {
    churn(&mut Timed::new(500, Timeouts::CONNTRACK), MANY, 800, |_| 100_000);
}

/// Nobody sends, and time is asked for only when the cache said so.
#[test]
fn in_time_without_packets() {
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
fn a_lag_is_made_up_for() {
    let mut timed = Timed::new(1000, short());
    (0..1000).for_each(|number| _ = timed.observe(&key(number), udp()));
    timed.now = timed.now + Duration::from_secs(3600);
    // One by one, and nothing is looked at in vain for long.
    let calls = timed.catch_up(1);
    assert!(timed.cache.is_empty() && calls <= 3000, "{calls} calls");
}

#[test]
fn a_flow_with_packets_is_looked_at_rarely() {
    let timeouts = Timeouts::OFF.with_all_idle(Duration::from_secs(10)).expect("it is short");
    let mut timed = Timed::new(100, timeouts);
    for _ in 0..10_000 {
        (0..100).for_each(|number| _ = timed.observe(&key(number), tcp(ACK)));
        timed.now = timed.now + Duration::from_millis(100);
        assert!(timed.advance(100_000).is_done);
    }
    assert_eq!((timed.cache.len(), timed.events), (100, 0));
    // A hundred times ten seconds have gone by.
    assert!(timed.examined <= 3 * 100 * 100, "{} looks", timed.examined);
}

/// Of more than a year at once a year passes: a wrong time may come as often as it likes.
#[test]
fn years_go_by() {
    let config = Config::new(100).expect("some").with_timeouts(short());
    let mut cache: FlowCache<FlowKey, ()> = FlowCache::new(config);
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
        // And on as if nothing had been.
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
fn time_may_stand_still_or_run_backwards() {
    let mut cache: FlowCache<FlowKey, ()> =
        FlowCache::new(Config::new(10).unwrap().with_timeouts(Timeouts::METER));
    let at = Timestamp::from_secs(1000);
    let handle = cache.observe(&key(3), udp().packet(), at).unwrap().handle;
    for earlier in [999, 500, 0] {
        let earlier = Timestamp::from_secs(earlier);
        assert_eq!(cache.observe(&key(3), udp().packet(), earlier).unwrap().handle, handle);
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
fn ages_are_kept_when_the_clock_is_set() {
    for set in [0, 10, 1_000_000, 10_000_000_000_000] {
        let mut cache: FlowCache<FlowKey, ()> =
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
fn active_flows_are_reported_each_period_and_the_deltas_add_up() {
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
