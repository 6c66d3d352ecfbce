//! Expected flows, their ends with their parents, and timeouts of single flows.

use core::time::Duration;

use flowtable::flow_cache::{
    Class, Config, ConfigError, EndReason, Event, ExpectError, Expected, Handle, Image, Initiator,
    Packet, SetTimeoutError, Source, TimeoutError, Timeouts,
};
use flowtable::{Direction, FlowCache, FlowKey, FourTuple, TcpFlags, Timestamp};

type Key = FourTuple<u32>;
type Cache = FlowCache<Key, u32>;

const SYN: Packet = Packet::tcp(TcpFlags::SYN);

fn key(src: u32, dport: u16) -> Key {
    FourTuple { src, dst: 99, sport: 40_000, dport }
}

fn cache(flows: usize) -> Cache {
    FlowCache::new(Config::new(flows).expect("some"))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn observe(cache: &mut Cache, key: Key) -> Handle {
    cache.observe(&key, SYN, cache.now()).expect("there is room").handle()
}

/// The flows that a call with this budget ends.
fn ended(cache: &mut Cache, budget: usize) -> Vec<(Key, EndReason)> {
    let mut ended = vec![];
    let now = cache.now();
    cache.advance(now, budget, |event| match event {
        Event::Ended(flow) => ended.push((flow.key, flow.reason)),
        Event::Active(_) => unreachable!("there is no active timeout"),
    });
    cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
    ended
}

#[test]
fn the_source_of_an_expected_flow_may_be_any() {
    let admits = |source| {
        let mut cache = cache(10);
        let parent = observe(&mut cache, key(1, 21));
        cache.expect(parent, Expected::new(key(1, 20)).from_source(source)).expect("it is new");
        let from = |src, sport| FourTuple { src, sport, ..key(1, 20) };
        let keys = [from(1, 40_000), from(1, 5), from(2, 5), FourTuple { dst: 98, ..from(1, 5) }];
        keys.map(|key| cache.expected_by(&key).is_some())
    };
    assert_eq!(admits(Source::Exact), [true, false, false, false]);
    assert_eq!(admits(Source::AnyPort), [true, true, false, false]);
    assert_eq!(admits(Source::Any), [true, true, true, false]);
    // Of keys with zones and of both versions, too; others have no source.
    let zoned = |key: FlowKey| [(7_u16, key)].map(|key| key);
    let v6 = FlowKey::new("::1".parse().unwrap(), "::2".parse().unwrap(), 5, 6, 17).unwrap();
    let mut flows: FlowCache<(u16, FlowKey), u64> = FlowCache::new(Config::new(10).expect("some"));
    let [key] = zoned(v6);
    let parent = flows.observe(&key, Packet::UDP, at(0)).expect("there is room").handle();
    let expected = Expected::new((8, v6)).from_source(Source::Any);
    flows.expect(parent, expected).expect("it is new");
    let other = FlowKey::new("::3".parse().unwrap(), "::2".parse().unwrap(), 9, 6, 17).unwrap();
    assert_eq!([(8, other), (7, other)].map(|key| flows.expected_by(&key)), [Some(parent), None]);
}

#[test]
fn the_closest_expectation_counts_and_each_only_once() {
    let mut cache = cache(10);
    let parents = [1, 2, 3].map(|src| observe(&mut cache, key(src, 21)));
    let sources = [Source::Any, Source::AnyPort, Source::Exact];
    for (parent, source) in parents.into_iter().zip(sources) {
        cache.expect(parent, Expected::new(key(7, 20)).from_source(source)).expect("it is new");
    }
    let error = cache.expect(parents[0], Expected::new(key(7, 20)));
    assert_eq!(error, Err(ExpectError::Taken(parents[2])));
    for (sport, parent) in (40_000..).zip([parents[2], parents[1], parents[0]]) {
        let child = observe(&mut cache, FourTuple { sport, ..key(7, 20) });
        assert_eq!(cache.parent(child), Some(parent));
    }
    let last = observe(&mut cache, FourTuple { sport: 1, ..key(7, 20) });
    assert_eq!((cache.parent(last), cache.parent(parents[0])), (None, None));
    cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn an_expectation_ends_with_its_time_its_parent_or_the_parents_mind() {
    let mut cache = cache(10);
    let parent = observe(&mut cache, key(1, 21));
    let expected = || Expected::new(key(1, 20));
    cache.expect(parent, expected().within(Duration::from_secs(5))).expect("it is new");
    cache.advance(at(4), 0, |_| ());
    assert_eq!(cache.expected_by(&key(1, 20)), Some(parent));
    cache.advance(at(5), 0, |_| ());
    assert_eq!(cache.expected_by(&key(1, 20)), None);
    // Another flow may expect it now.
    let other = observe(&mut cache, key(2, 21));
    cache.expect(other, expected()).expect("it is new");
    assert_eq!(cache.expected_by(&key(1, 20)), Some(other));
    cache.expect(other, expected().within(Duration::ZERO)).expect("it is its own");
    assert_eq!(cache.expected_by(&key(1, 20)), None);
    cache.expect(other, expected().within(Duration::MAX)).expect("it is new");
    cache.remove(other);
    assert_eq!(cache.expected_by(&key(1, 20)), None);
    assert_eq!(cache.expect(other, expected()), Err(ExpectError::NoFlow));
    cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn an_expectation_is_renewed_in_place() {
    let mut cache = cache(100);
    let parent = observe(&mut cache, key(1, 21));
    for dport in 0..32 {
        cache.expect(parent, Expected::new(key(2, dport))).expect("there is room");
    }
    // The parent has no room for another one, and this one has ended already.
    cache.expect(parent, Expected::new(key(2, 5)).within(Duration::from_secs(5))).expect("own");
    cache.advance(at(6), 0, |_| ());
    assert_eq!(cache.expected_by(&key(2, 5)), None);
    let size = cache.allocation_size();
    let renewed = Expected::new(key(2, 5)).within(Duration::from_secs(5)).ending_with_parent();
    cache.expect(parent, renewed).expect("it is its own");
    assert_eq!(cache.allocation_size(), size);
    cache.advance(at(10), 0, |_| ());
    assert_eq!(cache.expected_by(&key(2, 5)), Some(parent));
    let child = observe(&mut cache, key(2, 5));
    cache.remove(parent);
    assert_eq!(ended(&mut cache, 100), [(key(2, 5), EndReason::Ended)]);
    assert!(cache.get(child).is_none());
}

#[test]
fn a_parent_expects_32_flows_at_once() {
    let mut cache = cache(100);
    let parent = observe(&mut cache, key(1, 21));
    for dport in 0..32 {
        cache.expect(parent, Expected::new(key(2, dport))).expect("there is room");
    }
    let expected = Expected::new(key(2, 100));
    assert_eq!(cache.expect(parent, expected.clone()), Err(ExpectError::TooMany));
    // The same again is no other.
    cache.expect(parent, Expected::new(key(2, 5))).expect("it is there");
    observe(&mut cache, key(2, 5));
    cache.expect(parent, expected).expect("one has begun");
    cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn children_end_with_their_parent_a_budget_at_a_time() {
    let mut cache = cache(1000);
    let parents = [1, 2].map(|src| observe(&mut cache, key(src, 21)));
    for (src, parent) in (1..).zip(parents) {
        for dport in 100..600 {
            let expected = Expected::new(key(src, dport));
            // Every fifth one may outlive its parent.
            let expected = if dport % 5 == 0 { expected } else { expected.ending_with_parent() };
            if cache.len() < 900 {
                cache.expect(parent, expected).expect("there is room");
                observe(&mut cache, key(src, dport));
            }
        }
    }
    // Children may end before their parent: the first, the last, one between.
    for dport in [101, 104, 599, 300] {
        let child = cache.find(&key(1, dport)).expect("it exists").handle;
        cache.remove(child);
        cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
    }
    let before = cache.len();
    assert!(ended(&mut cache, 10).is_empty());
    cache.remove(parents[0]);
    cache.remove(parents[1]);
    assert_eq!(cache.len(), before - 2);
    let some = ended(&mut cache, 10);
    assert!(some.len() == 10 && some.iter().all(|(_, reason)| *reason == EndReason::Ended));
    // An orphan may be removed like any other.
    let orphan = cache.find(&key(1, 401)).expect("it is not its turn").handle;
    cache.remove(orphan);
    while !ended(&mut cache, 7).is_empty() {}
    let left = |flow: flowtable::flow_cache::Resident<'_, Key, u32>| flow.key().dport % 5;
    assert!(cache.iter().map(left).eq((0..cache.len()).map(|_| 0)));
    assert_eq!(cache.len(), 100 + 79);
}

#[test]
fn a_child_that_evicts_its_parent_is_an_orphan() {
    let mut cache = cache(1);
    let parent = observe(&mut cache, key(1, 21));
    cache.expect(parent, Expected::new(key(1, 20)).ending_with_parent()).expect("it is new");
    let seen = cache.observe(&key(1, 20), SYN, at(0)).expect("one can leave");
    assert_eq!(seen.removed().map(|flow| flow.handle), Some(parent));
    let child = seen.handle();
    assert_eq!(cache.parent(child), Some(parent));
    assert_eq!(ended(&mut cache, 1), [(key(1, 20), EndReason::Ended)]);
}

#[test]
fn a_refused_child_leaves_the_expectation() {
    let mut cache = cache(10);
    let parent = observe(&mut cache, key(1, 21));
    cache.expect(parent, Expected::new(key(1, 20))).expect("it is new");
    let refused = |_: Option<Handle>| Err::<u32, _>("no");
    assert!(cache.try_observe_expected(&key(1, 20), SYN, at(0), refused).is_err());
    assert_eq!((cache.expected_by(&key(1, 20)), cache.len()), (Some(parent), 1));
    // With given hashes, too.
    let new = |parent: Option<Handle>| parent.map(|_| 7).ok_or("no");
    let seen = cache.try_observe_expected_hashed(5, &key(1, 20), SYN, at(0), new);
    assert_eq!(seen.map(|seen| *seen.flow), Ok(7));
}

#[test]
fn errors_of_icmp_find_the_flow_of_the_packet_that_they_quote() {
    let mut cache = cache(10);
    let inside = key(1, 443);
    let handle = observe(&mut cache, inside);
    let before = cache.version();
    let quoted = cache.find_quoted(&inside).expect("the flow exists");
    assert_eq!((quoted.handle, quoted.direction), (handle, Direction::Reverse));
    let quoted = cache.find_quoted(&inside.reversed()).expect("the flow exists");
    assert_eq!((quoted.direction, quoted.name), (Direction::Forward, 0));
    assert_eq!((cache.find_quoted(&key(2, 443)), cache.version()), (None, before));
}

#[test]
fn a_flow_has_its_own_timeout_until_it_closes() {
    let config = Config::new(10).expect("some").with_timeouts(Timeouts::CONNTRACK);
    let mut cache: Cache = FlowCache::new(config);
    let keys = [1, 2, 3].map(|src| key(src, 53));
    let [short, long, again] =
        keys.map(|key| cache.observe(&key, Packet::UDP, at(0)).expect("there is room").handle());
    let seconds = Duration::from_secs;
    assert_eq!(cache.set_timeout(short, seconds(2)), Ok(()));
    assert_eq!(cache.set_timeout(long, Timeouts::MAX), Ok(()));
    assert_eq!(cache.set_timeout(again, seconds(2)), Ok(()));
    assert_eq!(cache.set_timeout(again, None), Ok(()));
    let timeout = |cache: &Cache, handle| cache.resident(handle).expect("it lives").timeout();
    assert_eq!(
        [short, long, again].map(|it| timeout(&cache, it)),
        [Some(seconds(2)), Some(Timeouts::MAX), None]
    );
    let ends = |cache: &mut Cache, now| cache.advance(at(now), 10, |_| ()).ended;
    assert_eq!((ends(&mut cache, 1), ends(&mut cache, 3), ends(&mut cache, 29)), (0, 1, 0));
    assert_eq!((ends(&mut cache, 31), ends(&mut cache, 1 << 20)), (1, 0));
    assert_eq!(cache.set_timeout(short, seconds(2)), Err(SetTimeoutError::NoFlow));
    let zero = SetTimeoutError::Timeout(TimeoutError::Zero);
    assert_eq!(cache.set_timeout(long, Duration::ZERO), Err(zero));
    // It lingers like others.
    cache.set_class(long, Class::Closing);
    assert_eq!(ends(&mut cache, (1 << 20) + 31), 1);
    assert_eq!(cache.len(), 0);
    cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn an_image_has_the_timeouts_of_flows() {
    let mut cache = cache(10);
    let handle = observe(&mut cache, key(1, 53));
    let timeout = Duration::from_secs(3);
    cache.set_timeout(handle, timeout).expect("it lives");
    let image: Image<_, _> = cache.iter().collect();
    let mut other = self::cache(10);
    assert_eq!(other.restore(image, at(1000)), Ok(1));
    assert_eq!(cache, other);
    assert_eq!(other.iter().map(|flow| flow.timeout()).collect::<Vec<_>>(), [Some(timeout)]);
    assert_eq!(other.advance(at(1004), 10, |_| ()).ended, 1);
    assert_ne!(cache, other);
}

#[test]
fn extras_keep_the_memory_limit() {
    for bytes in [12 << 10, 150 << 10, 1 << 20] {
        let config = Config::new(100_000).and_then(|config| config.with_max_bytes(bytes));
        let mut cache: Cache = FlowCache::new(config.expect("it is enough"));
        let (mut timeouts, mut expected) = (0, 0);
        for src in 0..20_000 {
            let Ok(seen) = cache.observe(&key(src, 21), SYN, at(0)) else { continue };
            let handle = seen.handle();
            timeouts += u32::from(cache.set_timeout(handle, Duration::from_secs(9)).is_ok());
            for dport in 0..3 {
                let parent = Expected::new(key(src, dport)).ending_with_parent();
                expected += u32::from(cache.expect(handle, parent).is_ok());
                _ = cache.observe(&key(src, dport), SYN, at(0));
            }
            assert!(cache.allocation_size() <= bytes, "{} of {bytes}", cache.allocation_size());
        }
        assert!(bytes < 1 << 20 || timeouts > 500 && expected > 500, "{timeouts}, {expected}");
        cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
        cache.clear();
        assert!(cache.allocation_size() <= 40 << 10, "{}", cache.allocation_size());
    }
}

#[test]
fn the_caller_may_set_the_initiator() {
    let of = |packet: Packet, initiator| {
        let mut cache = cache(1);
        let seen = cache.observe(&key(1, 443), packet.with_initiator(initiator), at(0));
        let direction = seen.expect("there is room").direction;
        (direction, cache.iter().next().expect("one").key() == key(1, 443))
    };
    let answer = Packet::tcp(TcpFlags::SYN | TcpFlags::ACK);
    for packet in [SYN, answer, Packet::UDP] {
        assert_eq!(of(packet, Initiator::Sender), (Direction::Forward, true));
        assert_eq!(of(packet, Initiator::Receiver), (Direction::Reverse, false));
    }
    assert_eq!(of(answer, Initiator::ByFlags), (Direction::Reverse, false));
    assert_eq!(of(SYN, Initiator::ByFlags), (Direction::Forward, true));
    // Keys of one direction have none.
    let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(1).expect("some"));
    let packet = Packet::UDP.with_initiator(Initiator::Receiver);
    let direction = cache.observe(&7, packet, at(0)).map(|seen| seen.direction);
    assert_eq!(direction, Ok(Direction::Forward));
}

#[test]
fn tenants_are_as_many_as_subscribers() -> Result<(), ConfigError> {
    use flowtable::flow_cache::Tenant;
    let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(10)?);
    let tenants = [1, 1 << 16, 70_001, u32::MAX].map(Tenant);
    tenants.iter().for_each(|tenant| cache.set_share(*tenant, Some(2)));
    for (id, tenant) in (0..).zip(tenants.into_iter().cycle().take(16)) {
        assert!(cache.observe(&id, Packet::UDP.from_tenant(tenant), at(0)).is_ok());
    }
    assert_eq!(tenants.map(|tenant| cache.tenant_flows(tenant)), [Some(2); 4]);
    Ok(())
}
