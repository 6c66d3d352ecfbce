//! Full caches: which flows are evicted, which never are, and which packets are refused.

use core::time::Duration;
use std::collections::HashSet;

use flowtable::eviction::{ByClass, Eviction, Lru, Passive, PassiveGc, Random, SecondChance};
use flowtable::flow_cache::{
    AdmissionError, Class, Config, ConfigError, Cursor, Emergency, EndReason, Handle, Packet,
    Tenant, Timeouts,
};
use flowtable::{FlowCache, FlowKey, TcpFlags, Timestamp};
use model::flow_cache::keys::{ACK, FIN_ACK, NumberedKey, RST, SYN, SYN_ACK, add, key};
use model::scaled;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn config(flows: usize) -> Config {
    Config::new(flows).expect("there is room for one").with_timeouts(Timeouts::OFF)
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

/// The values of `memory.rs`, so that a cache with each policy is compiled once.
type Cache<P, K = FlowKey> = FlowCache<K, [u64; 5], P>;

/// The flow that is evicted for a new one. The new one becomes established, so it is not evicted
/// next.
fn evicted_for<P: Eviction>(cache: &mut Cache<P>, number: u32) -> (Handle, Class) {
    let now = cache.now();
    let mut observed = cache.observe(&key(number), Packet::tcp(ACK), now).expect("one can leave");
    let handle = observed.handle();
    let removed = observed.take_removed().expect("the cache was full");
    assert_eq!(removed.reason, EndReason::Resources);
    cache.observe(&key(number).reversed(), Packet::tcp(ACK), now).expect("it is there");
    assert!(cache.set_class(handle, Class::Established) && cache.get(removed.handle).is_none());
    cache.validate().expect("invariant");
    (removed.handle, removed.class)
}

#[test]
fn classes_are_evicted_in_order() {
    let mut cache: Cache<ByClass> = FlowCache::new(config(40));
    let mut order = vec![];
    for number in 0..40 {
        // The highest class first, so that the order of insertion has no effect.
        let class = Class::ALL[3 - number as usize % 4];
        order.push((class, add(&mut cache, number, class)));
    }
    order.sort();
    let mut left = HashSet::new();
    for (number, (class, _)) in (100..).zip(&order[..30]) {
        let (handle, of) = evicted_for(&mut cache, number);
        assert_eq!(of, *class, "the {number}th");
        assert!(left.insert(handle));
    }
    assert!(order[..30].iter().all(|(_, handle)| left.contains(handle)));
    assert_eq!((cache.len(), cache.metrics().removed_for(EndReason::Resources)), (40, 30));
}

#[test]
fn eviction_uses_the_current_class() {
    let mut cache: Cache<ByClass> = FlowCache::new(config(4));
    let [a, b, c, d] = [0, 1, 2, 3].map(|number| add(&mut cache, number, Class::Unreplied));
    assert!(cache.set_class(c, Class::Closing) && cache.set_class(b, Class::Established));
    let reset = cache.observe(&key(3), Packet::tcp(RST), seconds(0)).expect("it is there");
    assert_eq!(reset.class, Class::Closing);
    let mut first = [evicted_for(&mut cache, 10).0, evicted_for(&mut cache, 11).0];
    first.sort();
    assert_eq!(first, [c, d], "the closing flows");
    assert_eq!(evicted_for(&mut cache, 12), (a, Class::Unreplied));
    assert!(cache.get(b).is_some());
}

#[test]
fn a_used_flow_has_a_second_chance() {
    let mut cache: Cache<ByClass> = FlowCache::new(config(6));
    let handles: Vec<Handle> =
        (0..6).map(|number| add(&mut cache, number, Class::Unreplied)).collect();
    // All flows but two send again.
    for number in [0, 1, 3, 5] {
        cache.observe(&key(number), Packet::tcp(ACK), seconds(1)).expect("it is there");
    }
    let mut left = [evicted_for(&mut cache, 10).0, evicted_for(&mut cache, 11).0];
    left.sort();
    assert_eq!(left, [handles[2], handles[4]]);
}

#[test]
fn pinned_flows_are_never_evicted_and_a_refusal_changes_nothing() {
    let mut cache: Cache<ByClass> = FlowCache::new(config(4));
    let handles = Class::ALL.map(|class| add(&mut cache, class as u32, class));
    let [closing, new, ..] = handles;
    assert!(cache.set_pinned(closing, true));
    assert_eq!(evicted_for(&mut cache, 10), (new, Class::New));
    let present = (0..11).filter_map(|number| cache.find(&key(number)));
    for handle in present.map(|found| found.handle).collect::<Vec<_>>() {
        assert!(cache.set_pinned(handle, true));
    }
    let before = (cache.metrics(), cache.version(), state(&cache));
    for number in 20..50 {
        let error = cache.observe(&key(number), Packet::tcp(SYN), seconds(0)).unwrap_err();
        assert_eq!(error.reason, AdmissionError::Full);
        cache.validate().expect("invariant");
    }
    assert_eq!((cache.version(), state(&cache)), (before.1, before.2));
    let metrics = cache.metrics();
    assert_eq!((metrics.refused, metrics.created), (30, before.0.created));
    assert_eq!(
        (metrics.pinned, metrics.removed_for(EndReason::Resources), metrics.flows),
        (4, before.0.removed_for(EndReason::Resources), 4)
    );
    // The next flow is admitted as soon as one may be evicted.
    assert!(cache.set_pinned(closing, false));
    assert_eq!(evicted_for(&mut cache, 60), (closing, Class::Closing));
}

/// The observable state of the flows.
fn state(cache: &Cache<ByClass>) -> Vec<String> {
    let mut cursor = Cursor::new();
    let flows = cache.page(&mut cursor, usize::MAX).map(|flow| {
        let (first, last) = (flow.first_seen(), flow.last_seen());
        let what = (flow.class(), flow.protocol(), flow.tenant(), flow.is_pinned(), flow.version());
        let names: Vec<FlowKey> = flow.keys().collect();
        format!("{:?} {names:?} {:?} {what:?} {first:?} {last:?}", flow.handle(), flow.value())
    });
    flows.collect()
}

/// New connections of ten times the capacity; one packet of ten belongs to an established flow.
#[test]
fn a_flood_of_syns_evicts_no_established_flow() {
    const FLOWS: usize = 4096;
    let mut cache: Cache<ByClass> = FlowCache::new(config(FLOWS));
    let mut rng = StdRng::seed_from_u64(3);
    let established: Vec<Handle> =
        (0..FLOWS as u32 / 2).map(|number| add(&mut cache, number, Class::Established)).collect();
    let mut next = 1_000_000;
    let flood = 10 * FLOWS * 10 / 9;
    for packet in 0..flood as u64 {
        let now = Timestamp::from_micros(packet);
        if packet % 10 == 0 {
            let number = rng.random_range(0..established.len());
            let observed = cache.observe(&key(number as u32), Packet::tcp(ACK), now);
            assert_eq!(observed.expect("it is there").handle(), established[number]);
            continue;
        }
        next += 1;
        let observed = cache.observe(&key(next), Packet::tcp(SYN), now).expect("there is room");
        let removed = observed.removed().map(|removed| removed.class);
        assert!(removed.is_none_or(|class| class == Class::New));
        // Some hosts answer the forged addresses.
        if packet % 3 == 0 {
            let answer = cache.observe(&key(next).reversed(), Packet::tcp(SYN_ACK), now);
            assert_eq!(answer.expect("it is there").class, Class::New);
        }
    }
    assert!(established.iter().all(|handle| cache.get(*handle).is_some()));
    assert_eq!(cache.len(), FLOWS);
    cache.validate().expect("invariant");
    let metrics = cache.metrics();
    assert_eq!(metrics.removed(EndReason::Resources, Class::Established), 0);
    assert_eq!(metrics.created - metrics.removed_for(EndReason::Resources), FLOWS as u64);
}

/// A connection becomes established during a flood if its handshake takes fewer packets of the
/// flood than the capacity.
#[test]
fn connections_become_established_during_a_flood() {
    let mut cache: Cache<ByClass> = FlowCache::new(config(100));
    let mut next = 1_000_000;
    let mut flood = |cache: &mut Cache<ByClass>| {
        for _ in 0..20 {
            next += 1;
            cache.observe(&key(next), Packet::tcp(SYN), seconds(0)).expect("there is room");
        }
    };
    for number in 0..50 {
        let handshake = [(false, SYN), (true, SYN_ACK), (false, ACK)];
        let mut handles = vec![];
        for (reverse, flags) in handshake {
            flood(&mut cache);
            let key = if reverse { key(number).reversed() } else { key(number) };
            let observed = cache.observe(&key, Packet::tcp(flags), seconds(0)).expect("room");
            handles.push((observed.handle(), observed.class));
        }
        assert_eq!(handles[2], (handles[0].0, Class::Established), "{number}");
    }
    assert_eq!(cache.metrics().flows_of(Class::Established), 50);
}

/// A cache of 800 flows, `count` of which are established and idle.
fn established(count: u32) -> (Cache<ByClass>, Vec<Handle>) {
    let mut cache: Cache<ByClass> = FlowCache::new(config(800));
    let handles = (0..count).map(|number| add(&mut cache, number, Class::Established)).collect();
    (cache, handles)
}

/// Adds new flows of one packet each.
fn flood(cache: &mut Cache<ByClass>, count: u32, flags: TcpFlags) {
    let first = 1_000_000 + cache.metrics().created as u32;
    for number in first..first + count {
        cache.observe(&key(number), Packet::tcp(flags), seconds(0)).expect("one can leave");
    }
}

fn count_alive(cache: &Cache<ByClass>, handles: &[Handle]) -> usize {
    handles.iter().filter(|handle| cache.get(**handle).is_some()).count()
}

/// New flows are not evicted for the next ones before their handshake ends, and busy flows stay.
#[test]
fn connections_become_established_among_idle_established_flows() {
    let (mut cache, handles) = established(800);
    // The first new flows clear the use bits from the packets that established the old ones.
    flood(&mut cache, 200, SYN);
    let is_alive = |number: &u32| cache.get(handles[*number as usize]).is_some();
    let busy: Vec<u32> = (0..800).step_by(16).filter(is_alive).collect();
    assert!(busy.len() > 40, "{} of 50", busy.len());
    for wave in 0..20 {
        let numbers = 2000 + 20 * wave..2020 + 20 * wave;
        let mut waved: Vec<(Handle, Class)> = vec![];
        for (reverse, flags) in [(false, SYN), (true, SYN_ACK), (false, ACK)] {
            let seen = numbers.clone().map(|number| {
                let key = if reverse { key(number).reversed() } else { key(number) };
                let observed = cache.observe(&key, Packet::tcp(flags), seconds(0)).expect("room");
                (observed.handle(), observed.class)
            });
            waved.extend(seen);
        }
        for (at, (handle, class)) in waved[40..].iter().enumerate() {
            assert_eq!((*handle, *class), (waved[at].0, Class::Established), "wave {wave}");
        }
        for number in &busy {
            let observed = cache.observe(&key(*number), Packet::tcp(ACK), seconds(0));
            assert_eq!(observed.expect("it is there").handle(), handles[*number as usize]);
        }
    }
    assert!(count_alive(&cache, &handles) < 500, "idle flows are evicted");
    assert!(cache.metrics().flows_of(Class::Established) >= 700);
    cache.validate().expect("invariant");
}

/// Up to seven eighths of the capacity, established flows are not evicted, even if they are idle.
#[test]
fn a_flood_evicts_no_established_flow_of_seven_eighths() {
    for count in [1, 500, 699, 700, 720, 800] {
        for flags in [SYN, ACK, RST] {
            let (mut cache, handles) = established(count);
            flood(&mut cache, 8000, flags);
            // Closing flows are evicted first.
            let most = if flags == RST { 799 } else { 700 };
            let left = count_alive(&cache, &handles);
            assert_eq!(left, most.min(count as usize), "{count} and {flags}");
            assert_eq!(cache.metrics().flows_of(Class::Established), left);
            assert_eq!(cache.len(), 800);
        }
    }
}

#[test]
fn a_tenant_over_its_share_evicts_its_own_flows() {
    let mut cache: Cache<ByClass> = FlowCache::new(config(100));
    let (greedy, modest) = (Tenant(7), Tenant(8));
    cache.set_share(greedy, Some(10));
    let from = |tenant| Packet::tcp(SYN).from_tenant(tenant);
    for number in 0..20 {
        cache.observe(&key(number), from(modest), seconds(0)).expect("there is room");
        cache.observe(&key(100 + number), Packet::tcp(SYN), seconds(0)).expect("there is room");
    }
    let mut classes = vec![];
    for number in 200..400 {
        let mut observed = cache.observe(&key(number), from(greedy), seconds(1)).expect("room");
        let (handle, removed) = (observed.handle(), observed.take_removed());
        assert_eq!(removed.is_some(), number >= 210);
        if number < 204 {
            cache.set_class(handle, Class::Established);
        }
        classes.extend(removed.map(|removed| (removed.tenant, removed.class, removed.reason)));
    }
    assert!(classes.iter().all(|left| *left == (greedy, Class::New, EndReason::Resources)));
    assert_eq!(cache.len(), 50);
    let left = cache.drain().filter(|removed| removed.tenant == greedy);
    assert_eq!(left.filter(|removed| removed.class == Class::Established).count(), 4);
}

#[test]
fn a_flow_in_the_place_of_an_expired_one_belongs_to_the_tenant_of_its_packet() {
    let (before, after) = (Tenant(1), Tenant(2));
    let from = |tenant| Packet::UDP.from_tenant(tenant);
    // The share of the second tenant, and the flows of both afterwards.
    for (share, flows) in [(2, (0, 2)), (1, (1, 1))] {
        let config = Config::new(100).expect("there is room for one");
        let mut cache: Cache<Lru> = FlowCache::with_policy(config, Lru::new());
        cache.set_share(before, Some(1));
        cache.set_share(after, Some(share));
        cache.observe(&key(1), from(before), seconds(0)).expect("room");
        cache.observe(&key(2), from(after), seconds(10_000)).expect("room");
        let observed = cache.observe(&key(1), from(after), seconds(10_000)).expect("its place");
        let removed = observed.removed().map(|removed| (removed.tenant, removed.reason));
        assert_eq!(removed, Some((before, EndReason::Idle)));
        assert_eq!((cache.tenant_flows(before), cache.tenant_flows(after)), {
            (Some(flows.0), Some(flows.1))
        });
        cache.validate().expect("invariant");
    }
}

#[test]
fn a_share_may_be_raised_lowered_and_removed() {
    let mut cache: Cache<Lru> = FlowCache::with_policy(config(100), Lru::new());
    let tenant = Tenant(9);
    let mut next = 0;
    let mut add = |cache: &mut Cache<Lru>| {
        next += 1;
        let observed = cache.observe(&key(next), Packet::UDP.from_tenant(tenant), seconds(0));
        let added = observed.map(|observed| (observed.handle(), observed.removed().is_some()));
        added.map_err(|error| error.reason)
    };
    cache.set_share(tenant, Some(0));
    assert_eq!(add(&mut cache), Err(AdmissionError::Tenant));
    cache.set_share(tenant, Some(2));
    let first = add(&mut cache).expect("the first").0;
    let second = add(&mut cache).expect("the second").0;
    assert!(cache.set_pinned(first, true));
    assert!(add(&mut cache).expect("the second is evicted").1 && cache.get(second).is_none());
    assert!(cache.set_pinned(cache.find(&key(next_of(&cache))).expect("the last").handle, true));
    assert_eq!(add(&mut cache), Err(AdmissionError::Tenant));
    assert_eq!(cache.len(), 2);
    cache.set_share(tenant, Some(4));
    assert!((0..2).all(|_| add(&mut cache).is_ok_and(|(_, left)| !left)));
    cache.set_share(tenant, None);
    assert!((0..30).all(|_| add(&mut cache).is_ok_and(|(_, left)| !left)));
    // Flows above a lowered share stay until another one is added, and then do not grow.
    cache.set_share(tenant, Some(1));
    assert_eq!(cache.len(), 34);
    assert!((0..50).all(|_| add(&mut cache).is_ok_and(|(_, left)| left)));
    assert!(cache.len() <= 34);
    cache.validate().expect("invariant");
}

/// The number of the key of the newest flow.
fn next_of(cache: &Cache<Lru>) -> u32 {
    let there = |number: &u32| cache.find(&key(*number)).map(|found| found.handle);
    (0..100).filter(|number| there(number).is_some()).max_by_key(there).expect("there is one")
}

#[test]
fn invalid_thresholds_and_limits_are_refused() {
    assert!(matches!(Config::new(0), Err(ConfigError::Flows(0))));
    assert!(Config::new(1 << 31).is_err() && Config::new(usize::MAX).is_err());
    let second = Duration::from_secs(1);
    for (enter, leave) in [(10, 11), (0, 0), (0, 1)] {
        assert!(Emergency::new(enter, leave, second).is_err(), "{enter}, {leave}");
    }
    let late = Emergency::new(11, 5, second).expect("it ends below");
    assert!(config(10).with_emergency(late).is_err());
    assert!(config(11).with_emergency(late).is_ok());
    for tick in [Duration::ZERO, Duration::from_secs(3601), Duration::MAX] {
        assert!(config(1).with_tick(tick).is_err(), "{tick:?}");
    }
    for bytes in [0, 1, Config::MIN_BYTES - 1] {
        assert_eq!(config(1).with_max_bytes(bytes), Err(ConfigError::Bytes(bytes)));
    }
    assert!(config(1).with_max_bytes(Config::MIN_BYTES).is_ok());
}

/// Random traffic on a cache with this policy, which never exceeds its capacity.
fn churn<K: NumberedKey, P: Eviction>(flows: usize, policy: P, packets: u32) {
    let mut cache: Cache<P, K> = FlowCache::with_policy(config(flows), policy);
    let mut rng = StdRng::seed_from_u64(4);
    let flags = [SYN, SYN_ACK, ACK, ACK, FIN_ACK, RST];
    let mut left = 0;
    for packet in 0..packets {
        let key = K::make(rng.random_range(0..3 * flows as u32 + 2));
        let key = if rng.random() { key } else { key.reversed() };
        let seen = Packet::tcp(flags[rng.random_range(0..flags.len())]);
        let now = Timestamp::from_micros(packet.into());
        let observed = cache.observe(&key, seen, now).expect("no flow is pinned");
        let handle = observed.handle();
        left += usize::from(observed.removed().is_some());
        assert!(cache.len() <= flows && cache.get(handle).is_some());
        assert_eq!(cache.find(&key).map(|found| found.handle), Some(handle));
        if packet % 97 == 0 {
            cache.validate().expect("invariant");
            let gone = cache.remove(handle).expect("it is there");
            assert_eq!(gone.reason, EndReason::Forced);
        }
    }
    assert!(left > packets as usize / 10, "{left} have left");
    assert_eq!(cache.capacity(), flows);
}

#[test]
fn no_policy_exceeds_the_capacity() {
    for flows in [1, 2, 3, 50, 1025] {
        let packets =
            if flows > 1000 { scaled(40_000, 4000, 40_000) } else { scaled(20_000, 1000, 20_000) };
        churn::<FlowKey, _>(flows, ByClass::new(), packets);
        churn::<FlowKey, _>(flows, Lru::new(), packets);
        churn::<u64, _>(flows, SecondChance::new(), packets);
        churn::<FlowKey, _>(flows, Random::with_seed(1), packets);
        for (threshold, goal) in [(flows, 1), (flows.div_ceil(2), 10), (1, 1), (usize::MAX, 1)] {
            let gc = PassiveGc::new(threshold, goal).expect("both are above 0");
            churn::<FlowKey, _>(flows, Passive::new(gc), packets / 2);
        }
    }
}

#[test]
fn lru_evicts_exactly_the_least_recently_used_flow() {
    let mut cache: Cache<Lru> = FlowCache::with_policy(config(50), Lru::new());
    let mut order: Vec<u32> = vec![];
    let mut rng = StdRng::seed_from_u64(5);
    for _ in 0..5000 {
        let number = rng.random_range(0..120);
        let mut observed = cache.observe(&key(number), Packet::UDP, seconds(0)).expect("room");
        order.retain(|other| *other != number);
        if let Some(removed) = observed.take_removed() {
            assert_eq!(removed.key, key(order.remove(0)));
        }
        order.push(number);
    }
}

/// A policy without a victim, or with one that may be absent.
#[derive(Default)]
struct Useless(Option<u32>);

impl Eviction for Useless {
    fn insert(&mut self, _slot: u32, _rank: u8) {}

    fn remove(&mut self, _slot: u32) {}

    fn is_due(&mut self, _len: usize) -> bool {
        true
    }

    fn victim(
        &mut self,
        mut look: impl FnMut(u32) -> flowtable::eviction::EntryStats,
    ) -> Option<u32> {
        // Including slots that never existed.
        (0..5).chain([u32::MAX, 1 << 31]).for_each(|slot| _ = look(slot));
        self.0
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

#[test]
fn an_inconsistent_policy_violates_no_invariant() {
    for victim in [None, Some(0), Some(3), Some(4), Some(1 << 31), Some(u32::MAX)] {
        let mut cache: Cache<Useless> = FlowCache::with_policy(config(4), Useless(victim));
        for number in 0..100 {
            let result = cache.observe(&key(number), Packet::UDP, seconds(0));
            assert!(result.is_ok_and(|seen| seen.fresh) || victim.is_none_or(|slot| slot > 3));
            cache.validate().expect("invariant");
            assert!(cache.len() <= 4);
        }
        let handle = cache.find(&key(0)).or(cache.find(&key(1))).map(|found| found.handle);
        handle.iter().for_each(|handle| _ = cache.set_pinned(*handle, true));
        for number in 100..110 {
            _ = cache.observe(&key(number), Packet::UDP, seconds(0));
        }
        assert!(handle.is_none_or(|handle| cache.get(handle).is_some()), "pinned flows stay");
        let there = cache.len();
        assert_eq!(cache.drain().count(), there);
    }
}
