//! The flow cache with arbitrary packets, names and times: every invariant is checked after every
//! step, and each flow that leaves is reported once.
#![no_main]

mod flow_cache {
    pub(crate) mod expected;
    pub(crate) mod script;
}

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use flow_cache::expected::{Expected, Seen, Traversal, assert_exact, flows_by_tenant, seen};
use flow_cache::script::{Input, Key, Op, Policy, Sent, Setup, When, tenant};
use flowtable::eviction::{ByClass, Eviction, Lru, Passive, PassiveGc, Random, SecondChance};
use flowtable::flow_cache::{
    AdmissionError, AliasError, Class, Cursor, EndReason, Event, Handle, Image, ImageError,
    Metrics, Packet, RemovedFlow, Renewal, Report, Resident, Tenant,
};
use flowtable::{DefaultHashBuilder, Direction, FiveTuple, FlowCache, FourTuple, Timestamp};
use libfuzzer_sys::fuzz_target;

/// The range of timestamps does not overflow in fewer calls.
const MANY: u32 = 400;

fuzz_target!(|input: Input| match input.five {
    true => with_policy::<FiveTuple<Ipv4Addr>>(input),
    false => with_policy::<FourTuple<Ipv6Addr>>(input),
});

fn with_policy<K: Key>(input: Input) {
    let seed = input.setup.seed.into();
    match input.policy {
        Policy::ByClass => run::<K, _>(input, ByClass::new()),
        Policy::Lru => run::<K, _>(input, Lru::new()),
        Policy::SecondChance => run::<K, _>(input, SecondChance::new()),
        Policy::Random => run::<K, _>(input, Random::with_seed(seed)),
        Policy::Passive(threshold, goal) => {
            let gc = PassiveGc::new(1 + usize::from(threshold % 24), 1 + usize::from(goal % 8));
            run::<K, _>(input, Passive::new(gc.expect("both are above 0")));
        }
    }
}

fn run<K: Key, P: Eviction + Clone>(input: Input, policy: P) {
    let mut run = Run::<K, P>::new(input.setup, policy);
    for (when, op) in input.steps {
        let (before, time) = (flows_by_tenant(&run.cache), run.cache.now());
        let now = when.from(time);
        run.step(op, now);
        run.check();
        run.check_shares(before);
        assert!(run.cache.now() >= time || matches!(op, Op::SetClock(_) | Op::Restart));
    }
    run.drain(usize::MAX);
    assert!(run.live.is_empty());
    run.check();
}

type Cache<K, P> = FlowCache<K, u64, P>;

struct Run<K, P> {
    cache: Cache<K, P>,
    setup: Setup,
    policy: P,
    /// By id, including flows that left without a report yet.
    live: BTreeMap<u64, Expected<K>>,
    dead: Vec<Handle>,
    last_id: u64,
    shares: [Option<usize>; 4],
    /// The number of calls with a timestamp.
    times: u32,
    packets: u64,
    traversal: Traversal,
    image: Image<K, u64>,
}

fn new_cache<K: Key, P: Eviction>(setup: Setup, policy: P) -> Cache<K, P> {
    let hasher = DefaultHashBuilder::with_seed(setup.seed.into());
    let mut cache = FlowCache::with_policy_and_hasher(setup.config(), policy, hasher);
    if let Some((of, share)) = setup.share {
        // There may be no memory for it.
        _ = cache.try_set_share(tenant(of), Some(usize::from(share % 8)));
    }
    cache
}

impl<K: Key, P: Eviction + Clone> Run<K, P> {
    fn new(setup: Setup, policy: P) -> Self {
        let mut run = Self {
            cache: new_cache(setup, policy.clone()),
            setup,
            policy,
            live: BTreeMap::new(),
            dead: vec![],
            last_id: 0,
            shares: [None; 4],
            times: 0,
            packets: 0,
            traversal: Traversal::default(),
            image: Image::default(),
        };
        let is_set = |of: &(u8, u8)| run.cache.tenant_flows(tenant(of.0)).is_some();
        if let Some((of, share)) = setup.share.filter(is_set) {
            run.shares[usize::from(of % 4)] = Some(usize::from(share % 8));
        }
        run
    }

    fn step(&mut self, op: Op, now: Timestamp) {
        self.times += 1;
        match op {
            Op::Observe(sent) => self.observe(sent, now),
            Op::Burst(sent, count, times) => {
                self.observe_batch(sent, count, [now, times.from(now)])
            }
            Op::Advance(budget) => self.advance(now, budget.into()),
            Op::Age(years, budget) => {
                for _ in 0..years {
                    self.times += 1;
                    self.advance(When(5, 366).from(self.cache.now()), budget.into());
                }
            }
            Op::SetShare(of, share) => {
                let share = share.map(|share| usize::from(share % 8));
                if self.cache.try_set_share(tenant(of), share).is_ok() {
                    self.shares[usize::from(of % 4)] = share;
                }
            }
            Op::SetClock(when) => {
                let time = when.from(now);
                self.cache.set_clock(time);
                assert_eq!(self.cache.now(), time);
            }
            Op::Page(budget) => self.page(budget.into()),
            Op::PageChanged => self.page_changed(now),
            Op::Save(count) => {
                self.image = self.cache.page(&mut Cursor::new(), usize::MAX).collect();
                self.image.truncate(count.into());
            }
            Op::Restore => self.restore(now),
            Op::Restart => self.restart(now),
            Op::Clear => {
                self.cache.clear();
                self.dead.extend(self.live.values().map(|expected_flow| expected_flow.handle));
                self.live.clear();
            }
            Op::Drain(count) => self.drain(count.into()),
            Op::Clone => self.cache = self.cache.clone(),
            op => self.change(op),
        }
    }

    /// Applies an operation on one flow, which may be absent.
    fn change(&mut self, op: Op) {
        let (Op::AddAlias(nth, byte)
        | Op::AddNames(nth, byte)
        | Op::RemoveKey(nth, byte)
        | Op::SetClass(nth, byte)
        | Op::Add(nth, byte)) = op
        else {
            return self.change_all(op);
        };
        let Some(handle) = self.handle(nth) else { return };
        let is_live = self.cache.resident(handle).is_some();
        match op {
            Op::AddAlias(..) => self.add_alias(handle, &K::of(byte)),
            Op::AddNames(..) => {
                let first = 1000 * (1 + u16::from(nth % 16));
                (0..=byte.into()).for_each(|more| self.add_alias(handle, &K::make(first + more)));
            }
            Op::RemoveKey(..) => self.remove_key(handle, &K::of(byte)),
            Op::SetClass(..) => {
                let class = Class::ALL[usize::from(byte % 4)];
                assert_eq!(self.cache.set_class(handle, class), is_live);
                let is = self.cache.resident(handle).map(|flow| flow.class());
                assert_eq!(is, is_live.then_some(class));
            }
            _ => {
                let value = self.cache.get_mut(handle);
                assert_eq!(value.is_some(), is_live);
                if let Some(value) = value {
                    *value += u64::from(byte);
                    self.expected_flow(handle).value += u64::from(byte);
                }
            }
        }
    }

    fn change_all(&mut self, op: Op) {
        let (Op::Remove(nth) | Op::Pin(nth, _)) = op else { return };
        let Some(handle) = self.handle(nth) else { return };
        let is_live = self.cache.resident(handle).is_some();
        if let Op::Pin(_, pinned) = op {
            assert_eq!(self.cache.set_pinned(handle, pinned), is_live);
            if is_live {
                self.expected_flow(handle).pinned = pinned;
            }
            return;
        }
        // One that has expired, too.
        let is_there = self.live.contains_key(&handle.id());
        let removed = self.cache.remove(handle);
        assert_eq!(removed.as_ref().map(|flow| flow.handle), is_there.then_some(handle));
        if let Some(removed) = removed {
            assert_eq!(removed.reason, EndReason::Forced);
            self.record_removed(&removed);
        }
    }

    /// The handle of a live flow, or of a dead one.
    fn handle(&self, nth: u8) -> Option<Handle> {
        let nth_of = |count: usize| usize::from(nth / 2).checked_rem(count);
        if nth.is_multiple_of(2) {
            self.live
                .values()
                .nth(nth_of(self.live.len())?)
                .map(|expected_flow| expected_flow.handle)
        } else {
            self.dead.iter().rev().nth(nth_of(self.dead.len())?).copied()
        }
    }

    fn expected_flow(&mut self, handle: Handle) -> &mut Expected<K> {
        self.live.get_mut(&handle.id()).expect("the flow is live")
    }

    /// Records a new flow.
    fn record_new(&mut self, handle: Handle, key: &K, pinned: bool, value: u64) {
        assert!(handle.id() > self.last_id, "{handle:?} after {}", self.last_id);
        self.last_id = handle.id();
        let name = key.normalized().0;
        self.live.insert(handle.id(), Expected { handle, name, value, pinned });
    }

    /// Records that a live flow has left.
    fn record_removed(&mut self, removed: &RemovedFlow<K, u64>) {
        let expected_flow = self.live.remove(&removed.handle.id());
        let expected_flow = expected_flow.unwrap_or_else(|| panic!("{removed:?} was not live"));
        assert_eq!((expected_flow.handle, expected_flow.value), (removed.handle, removed.value));
        assert_eq!(expected_flow.name, removed.key.normalized().0);
        assert!(
            !expected_flow.pinned || removed.reason != EndReason::Resources,
            "{removed:?} was pinned"
        );
        assert!(removed.first_seen <= removed.last_seen);
        self.dead.push(removed.handle);
    }

    fn observe(&mut self, sent: Sent, now: Timestamp) {
        let (key, packet) = (K::of(sent.key), sent.packet());
        let seen = self.cache.observe(&key, packet, now).map(seen).map_err(|error| error.reason);
        if let Ok(seen) = &seen {
            let found = self.cache.find(&key).map(|found| found.handle);
            let is_found = found == Some(seen.handle);
            let config = self.cache.config();
            assert!(is_found || self.times > MANY || config.renewal() == Renewal::Initiator);
        }
        if seen.as_ref().is_err_and(|refused| *refused == AdmissionError::Full) {
            let metrics = self.cache.metrics();
            assert_eq!((metrics.flows, metrics.pinned), (metrics.capacity, metrics.capacity));
        }
        self.record_packet(&key, packet, seen);
    }

    /// Packets of two times in turns.
    fn observe_batch(&mut self, sent: [Sent; 4], count: u8, times: [Timestamp; 2]) {
        let packet = |number: u8| {
            let sent = sent[usize::from(number % 4)];
            (K::of(sent.key.wrapping_add(number / 4 * 2)), sent.packet())
        };
        let packets: Vec<(K, Packet)> = (0..=count % 40).map(packet).collect();
        let mut results = vec![];
        let burst =
            (0..).zip(&packets).map(|(at, (key, packet))| (key, *packet, times[at / 5 % 2]));
        self.cache.observe_batch(burst, |at, observed| {
            assert_eq!(at, results.len(), "each once, in order");
            results.push(observed.map(seen).map_err(|error| error.reason));
        });
        assert_eq!(results.len(), packets.len());
        for ((key, packet), seen) in packets.iter().zip(results) {
            self.record_packet(key, *packet, seen);
        }
    }

    fn record_packet(&mut self, key: &K, packet: Packet, seen: Result<Seen<K>, AdmissionError>) {
        self.packets += 1;
        match seen {
            Ok(Seen { handle, fresh, value, removed }) => {
                assert!(fresh || removed.is_none());
                removed.iter().for_each(|removed| self.record_removed(removed));
                if fresh {
                    self.record_new(handle, key, false, 0);
                }
                let expected_flow = self.expected_flow(handle);
                expected_flow.value += 1;
                assert_eq!((expected_flow.handle, expected_flow.value), (handle, value));
            }
            Err(AdmissionError::Memory) => assert!(self.setup.max_bytes().is_some()),
            Err(AdmissionError::Tenant) => {
                assert!(self.shares[packet.tenant().0 as usize].is_some());
            }
            Err(refused) => assert_eq!(refused, AdmissionError::Full),
        }
    }

    fn advance(&mut self, now: Timestamp, budget: usize) {
        let (mut ended, mut reports) = (vec![], vec![]);
        let progress = self.cache.advance(now, budget, |event| match event {
            Event::Ended(removed) => ended.push(removed),
            Event::Active(Report { handle, value, since, .. }) => {
                reports.push((handle, std::mem::take(value), since));
            }
        });
        let now = self.cache.now();
        assert!(progress.examined <= budget, "{progress:?} of {budget}");
        assert_eq!((progress.ended, progress.reported), (ended.len(), reports.len()));
        for (handle, value, since) in reports {
            assert_eq!(std::mem::take(&mut self.expected_flow(handle).value), value);
            let active = self.cache.config().timeouts().active().expect("it was reported");
            assert!(self.has_passed(since, now, active), "{since:?} to {now:?}");
        }
        for removed in ended {
            self.assert_due(&removed, now);
            self.record_removed(&removed);
        }
        assert_eq!(self.live.len(), self.cache.len(), "all are reported");
        if progress.is_done {
            self.assert_done(now);
            let is_ahead = progress.next.is_none_or(|next| next > now);
            assert!(is_ahead || self.is_saturated(now), "{progress:?} at {now:?}");
        }
    }

    /// Whether timestamps may have saturated, so that all deadlines have passed.
    fn is_saturated(&self, now: Timestamp) -> bool {
        now == Timestamp::MAX || self.times > MANY
    }

    /// Whether a period may have passed. Times before the caller's origin are unknown.
    fn has_passed(&self, since: Timestamp, now: Timestamp, period: Duration) -> bool {
        since == Timestamp::ZERO || self.is_saturated(now) || now.since(since) >= period
    }

    /// Checks that a flow has not expired early.
    fn assert_due(&self, removed: &RemovedFlow<K, u64>, now: Timestamp) {
        let RemovedFlow { reason, class, protocol, last_seen, .. } = *removed;
        if reason == EndReason::Resources {
            return;
        }
        let is_closing = class == Class::Closing;
        assert_eq!(reason, if is_closing { EndReason::Ended } else { EndReason::Idle });
        let idle =
            self.cache.config().timeouts().idle(protocol, class).expect("the flow has expired");
        assert!(self.has_passed(last_seen, now, idle), "{removed:?} at {now:?}");
    }

    /// Checks that no flow remains a tick after its deadline.
    fn assert_done(&self, now: Timestamp) {
        let config = self.cache.config();
        for flow in self.cache.page(&mut Cursor::new(), usize::MAX) {
            let idle = config.timeouts().idle(flow.protocol(), flow.class());
            let idle_for = now.since(flow.last_seen());
            assert!(idle.is_none_or(|idle| idle_for < idle + config.tick()), "{flow:?} at {now:?}");
        }
    }

    fn add_alias(&mut self, handle: Handle, key: &K) {
        let (found, is_live) = (self.cache.find(key), self.cache.get(handle).is_some());
        match self.cache.add_alias(handle, Direction::Forward, key) {
            Ok(number) => {
                let now = self.cache.find(key).expect("the alias was added");
                assert_eq!((found, is_live, now.handle, now.alias), (None, true, handle, number));
            }
            Err(AliasError::NoFlow) => assert!(!is_live),
            Err(AliasError::Taken(other)) => {
                // It may have expired.
                assert!(found.is_none_or(|found| found.handle == other));
            }
            Err(AliasError::TooMany) => {
                let flow = self.cache.resident(handle).expect("the flow is live");
                assert_eq!(flow.keys().count(), 256);
            }
            Err(error) => assert!(error == AliasError::Memory && self.setup.bytes.is_some()),
        }
    }

    fn remove_key(&mut self, handle: Handle, key: &K) {
        let found = self.cache.find(key).filter(|found| found.handle == handle);
        let expected = match (self.cache.get(handle), found.map(|found| found.alias)) {
            (None, _) => Err(AliasError::NoFlow),
            (_, None) => Err(AliasError::NoSuchKey),
            (_, Some(0)) if self.is_only_key(handle) => Err(AliasError::PrimaryKey),
            _ => Ok(()),
        };
        let result = self.cache.remove_key(handle, key);
        if result == Err(AliasError::Memory) {
            return assert!(self.setup.bytes.is_some() && found.is_some_and(|it| it.alias == 0));
        }
        assert_eq!(result, expected);
        assert!(expected.is_err() || self.cache.find(key).is_none());
        if let Some(flow) = self.cache.resident(handle) {
            let name = flow.key().normalized().0;
            self.expected_flow(handle).name = name;
        }
    }

    fn is_only_key(&self, handle: Handle) -> bool {
        self.cache.resident(handle).is_some_and(|flow| flow.keys().count() == 1)
    }

    /// Checks that a flow which lives throughout a traversal is shown once.
    fn page(&mut self, budget: usize) {
        if self.traversal.cursor.is_done() {
            let first = self.live.keys().copied().collect();
            self.traversal = Traversal { first, ..Traversal::default() };
        }
        let Self { live, cache, traversal: Traversal { cursor, first, shown }, .. } = self;
        for flow in cache.page(cursor, budget) {
            let id = flow.handle().id();
            assert!(shown.insert(id), "{flow:?} is shown twice");
            assert!(live.contains_key(&id), "{flow:?} is not live");
        }
        if cursor.is_done() {
            let is_live = |id| {
                let expected_flow: Option<&Expected<K>> = live.get(id);
                expected_flow.is_some_and(|expected_flow| cache.get(expected_flow.handle).is_some())
            };
            assert!(!first.iter().any(|id| !shown.contains(id) && is_live(id)));
        }
    }

    /// Checks that only the flow of a packet has changed.
    fn page_changed(&mut self, now: Timestamp) {
        let version = self.cache.version();
        let Some(handle) = self.live.values().next_back().map(|expected_flow| expected_flow.handle)
        else {
            return;
        };
        let Some(key) = self.cache.resident(handle).map(|flow| flow.key()) else { return };
        let seen =
            self.cache.observe(&key, Packet::OTHER, now).map(seen).map_err(|error| error.reason);
        self.record_packet(&key, Packet::OTHER, seen);
        let mut cursor = Cursor::changed_since(version);
        let changed = self.cache.page(&mut cursor, usize::MAX).map(|flow| flow.handle());
        let changed: Vec<_> = changed.collect();
        // If it had expired, another one has its place.
        let other = self.live.values().next_back().map(|expected_flow| expected_flow.handle);
        assert!(changed == [handle] || changed.len() == 1 && changed.first().copied() == other);
    }

    /// Restores the last image into the cache, or checks that a refusal changes nothing.
    fn restore(&mut self, now: Timestamp) {
        let (before, count) = (self.cache.metrics(), self.image.len());
        match self.cache.restore(self.image.clone(), now) {
            Ok(restored) => {
                assert_eq!((restored, self.cache.len()), (count, before.flows + count));
                self.record_restored();
            }
            Err(error) => {
                assert_eq!(error.refused, self.image);
                self.assert_refusal(error.reason, before.flows + count);
                let mut after = self.cache.metrics();
                (after.bytes, after.reseeds) = (before.bytes, before.reseeds);
                assert_eq!(after, before, "nothing changes: {error}");
            }
        }
    }

    /// Records the unknown flows, which come from an image.
    fn record_restored(&mut self) {
        let flows: Vec<_> = self.cache.page(&mut Cursor::new(), usize::MAX).collect();
        let unknown = flows.into_iter().filter(|flow| !self.live.contains_key(&flow.handle().id()));
        let parts = |flow: Resident<'_, K, u64>| {
            (flow.handle(), flow.key(), flow.is_pinned(), *flow.value())
        };
        let mut restored: Vec<_> = unknown.map(parts).collect();
        restored.sort_by_key(|(handle, ..)| handle.id());
        for (handle, key, pinned, value) in restored {
            self.record_new(handle, &key, pinned, value);
        }
    }

    fn assert_refusal(&self, error: ImageError, flows: usize) {
        match error {
            ImageError::TooMany { .. } => {
                assert!(flows > self.setup.capacity() || self.setup.bytes.is_some());
            }
            ImageError::Share(tenant) => assert!(self.shares[tenant.0 as usize].is_some()),
            ImageError::Keys { .. } => {
                assert!(flows > self.image.len(), "an image has no duplicate names")
            }
            error => panic!("{error}"),
        }
    }

    /// Replaces the cache by one restored from its image, with all names and ages.
    fn restart(&mut self, now: Timestamp) {
        let image: Image<K, u64> = self.cache.page(&mut Cursor::new(), usize::MAX).collect();
        let mut next = Self::new(self.setup, self.policy.clone());
        let (count, restored) = (image.len(), next.cache.restore(image, now));
        if let Err(error) = restored {
            assert!(!matches!(error.reason, ImageError::Keys { .. }));
            next.assert_refusal(error.reason, count);
            return next.check();
        }
        assert_eq!(restored, Ok(count));
        for flow in self.cache.page(&mut Cursor::new(), usize::MAX) {
            let Some(handle) = next.cache.find(&flow.key()).map(|found| found.handle) else {
                // It has expired.
                continue;
            };
            let other = next.cache.resident(handle).expect("the flow was found");
            assert!(flow.keys().eq(other.keys()));
            for name in flow.keys() {
                let found = [&self.cache, &next.cache].map(|cache| cache.find(&name));
                let [one, two] = found.map(|found| found.map(|it| (it.direction, it.alias)));
                assert!(one == two || one.is_none(), "{name:?}: {one:?}, {two:?}");
            }
            assert_eq!((flow.value(), flow.class()), (other.value(), other.class()));
            assert_eq!((flow.protocol(), flow.tenant()), (other.protocol(), other.tenant()));
            assert_eq!(flow.is_pinned(), other.is_pinned());
        }
        next.image = std::mem::take(&mut self.image);
        next.record_restored();
        *self = next;
    }

    /// Drains `count` flows; the others remain.
    fn drain(&mut self, count: usize) {
        let before = self.live.len();
        let drained: Vec<_> = self.cache.drain().take(count).collect();
        drained.iter().for_each(|removed| self.record_removed(removed));
        assert_eq!(self.live.len(), before.saturating_sub(count));
    }

    fn check(&self) {
        let Self { cache, .. } = self;
        cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
        assert!(cache.len() <= self.setup.capacity());
        let unreported = self.live.len() - cache.len();
        assert!(
            unreported <= usize::from(self.setup.bytes.is_some()),
            "{unreported} left without a report"
        );
        let bytes = cache.allocation_size();
        let max_bytes = self.setup.max_bytes().unwrap_or(usize::MAX);
        assert!(bytes <= max_bytes, "{bytes} bytes of {max_bytes}");
        for handle in self.dead.iter().rev().take(64) {
            assert!(cache.get(*handle).is_none() && cache.resident(*handle).is_none());
        }
        for flow in cache.page(&mut Cursor::new(), usize::MAX) {
            let expected_flow = self.live.get(&flow.handle().id()).expect("each flow was recorded");
            let (name, handle) = (flow.key().normalized().0, flow.handle());
            assert_eq!((expected_flow.handle, expected_flow.pinned), (handle, flow.is_pinned()));
            assert_eq!((&expected_flow.name, &expected_flow.value), (&name, flow.value()));
            // Neither is found if it has expired.
            let found = cache.resident(handle).map(|flow| flow.handle());
            for name in flow.keys().take(8) {
                assert_eq!(cache.find(&name).map(|it| it.handle), found, "{name:?}");
            }
            if !self.is_saturated(cache.now()) {
                assert_exact(cache, &flow, found.is_some());
            }
        }
        self.check_metrics(&cache.metrics());
    }

    fn check_metrics(&self, metrics: &Metrics) {
        let removed: u64 = metrics.removed.iter().flatten().sum();
        let len = self.cache.len();
        assert_eq!(metrics.created + metrics.restored, removed + len as u64, "{metrics:?}");
        assert_eq!((metrics.flows, metrics.by_class.iter().sum()), (len, len));
        assert_eq!((metrics.hits + metrics.misses), self.packets);
        assert_eq!(metrics.created + metrics.refused, metrics.misses, "{metrics:?}");
        let searches = [metrics.probes, metrics.depths].map(|counts| counts.iter().sum::<u64>());
        assert_eq!(searches, [self.packets; 2]);
        assert_eq!(metrics.bytes, self.cache.allocation_size());
        match self.setup.emergency() {
            None => assert!(!metrics.emergency && metrics.emergencies == 0),
            Some((enter, ..)) if len >= enter => assert!(metrics.emergency),
            Some((_, leave, _)) => assert!(!metrics.emergency || len >= leave),
        }
    }

    /// Checks that no tenant has gained flows beyond its share, and all counts.
    fn check_shares(&self, before: [usize; 4]) {
        for (of, (flows, before)) in
            flows_by_tenant(&self.cache).into_iter().zip(before).enumerate().skip(1)
        {
            let most = self.shares[of].unwrap_or(usize::MAX).max(before);
            assert!(flows <= most, "{flows} of tenant {of}, at most {most}");
            let counted = self.cache.tenant_flows(Tenant(of as u32));
            assert!(counted.is_none_or(|counted| counted == flows), "{counted:?} of {flows}");
            assert!(counted.is_some() || self.shares[of].is_none());
        }
    }
}
