//! Expected flows, which end with their parents; timeouts of single flows; first packets.

use core::time::Duration;

use flowtable::flow_cache::{
    Class, Config, ConfigError, ExpectError, Expectations, Expected, Handle, Image, Initiator,
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

#[test]
fn the_source_of_an_expected_flow_may_be_any() {
    let parent = observe(&mut cache(10), key(1, 21));
    let admits = |source| {
        let mut table = Expectations::new(10);
        let expected = Expected::new(key(1, 20)).from_source(source);
        table.expect(parent, expected, at(0)).expect("it is new");
        let from = |src, sport| FourTuple { src, sport, ..key(1, 20) };
        let keys = [from(1, 40_000), from(1, 5), from(2, 5), FourTuple { dst: 98, ..from(1, 5) }];
        keys.map(|key| table.find(&key, at(1)).is_some())
    };
    assert_eq!(admits(Source::Exact), [true, false, false, false]);
    assert_eq!(admits(Source::AnyPort), [true, true, false, false]);
    assert_eq!(admits(Source::Any), [true, true, true, false]);
    // Of keys with zones and of both versions, too; others have no source.
    let v6 = FlowKey::new("::1".parse().unwrap(), "::2".parse().unwrap(), 5, 6, 17).unwrap();
    let mut table = Expectations::new(10);
    let expected = Expected::new((8_u16, v6)).from_source(Source::Any);
    table.expect(parent, expected, at(0)).expect("it is new");
    let other = FlowKey::new("::3".parse().unwrap(), "::2".parse().unwrap(), 9, 6, 17).unwrap();
    let found = [(8, other), (7, other)].map(|key| table.find(&key, at(0)).map(|it| it.parent));
    assert_eq!(found, [Some(parent), None]);
}

#[test]
fn the_closest_expectation_counts_and_each_only_once() {
    let mut cache = cache(10);
    let parents = [1, 2, 3].map(|src| observe(&mut cache, key(src, 21)));
    let mut table = Expectations::new(3);
    let sources = [Source::Any, Source::AnyPort, Source::Exact];
    for (parent, source) in parents.into_iter().zip(sources) {
        let expected = Expected::new(key(7, 20)).from_source(source);
        table.expect(parent, expected, at(0)).expect("it is new");
    }
    let error = table.expect(parents[0], Expected::new(key(7, 20)), at(0));
    assert_eq!(error, Err(ExpectError::Taken(parents[2])));
    assert_eq!(table.expect(parents[0], Expected::new(key(9, 9)), at(0)), Err(ExpectError::Full));
    for (sport, parent) in (40_000..).zip([parents[2], parents[1], parents[0]]) {
        let key = FourTuple { sport, ..key(7, 20) };
        let child = observe(&mut cache, key);
        let related = table.begin(&key, child, at(1)).expect("it is expected");
        assert_eq!((related.parent, related.ends_with_parent), (parent, false));
    }
    let last = FourTuple { sport: 1, ..key(7, 20) };
    assert!(table.find(&last, at(1)).is_none() && table.is_empty());
    assert!(parents.into_iter().all(|parent| table.end(parent).is_empty()));
}

#[test]
fn an_expectation_ends_with_its_time_or_its_parent() {
    let mut cache = cache(10);
    let [parent, other] = [1, 2].map(|src| observe(&mut cache, key(src, 21)));
    let mut table = Expectations::new(1);
    let expected = || Expected::new(key(1, 20)).within(Duration::from_secs(5));
    table.expect(parent, expected(), at(0)).expect("it is new");
    let finds = |table: &Expectations<Key>, now| table.find(&key(1, 20), now).map(|it| it.parent);
    assert_eq!([4, 5].map(|second| finds(&table, at(second))), [Some(parent), None]);
    // Its parent may renew it, and another flow may expect it after its time.
    table.expect(parent, expected(), at(4)).expect("it is its own");
    assert_eq!([8, 9].map(|second| finds(&table, at(second))), [Some(parent), None]);
    assert_eq!(table.expect(other, expected(), at(8)), Err(ExpectError::Taken(parent)));
    table.expect(other, expected(), at(9)).expect("its time has passed");
    // The end of the first parent is none of the second one's.
    assert!(table.end(parent).is_empty());
    assert_eq!((finds(&table, at(10)), table.len()), (Some(other), 1));
    assert!(table.end(other).is_empty());
    assert_eq!((finds(&table, at(10)), table.len()), (None, 0));
    // What is overdue makes room.
    table.expect(parent, expected(), at(20)).expect("there is room");
    assert_eq!(table.expect(other, Expected::new(key(1, 2)), at(24)), Err(ExpectError::Full));
    table.expect(other, Expected::new(key(1, 2)), at(25)).expect("the other one is overdue");
}

#[test]
fn a_flow_that_was_expected_at_a_wrong_time_is_not_found_and_makes_room() {
    let parent = observe(&mut cache(10), key(1, 21));
    let mut table = Expectations::new(1);
    table.expect(parent, Expected::new(key(1, 20)), at(4_294_967_295)).expect("it is new");
    assert_eq!(table.find(&key(1, 20), at(1000)), None);
    table.expect(parent, Expected::new(key(1, 22)), at(1000)).expect("there is room");
    // The clock is set back by a minute.
    assert!(table.find(&key(1, 22), at(940)).is_some());
}

#[test]
fn children_end_with_their_parent() {
    let mut cache = cache(1000);
    let parents = [1, 2].map(|src| observe(&mut cache, key(src, 21)));
    let mut table = Expectations::new(1000);
    let mut lasting = 0;
    for (src, parent) in (1..).zip(parents) {
        for dport in 100..500 {
            let expected = Expected::new(key(src, dport));
            // Every fifth one may outlive its parent.
            let expected = if dport % 5 == 0 { expected } else { expected.ending_with_parent() };
            lasting += usize::from(dport % 5 == 0);
            table.expect(parent, expected, at(0)).expect("there is room");
            let child = observe(&mut cache, key(src, dport));
            let related = table.begin(&key(src, dport), child, at(0)).expect("it is expected");
            assert_eq!((related.parent, related.ends_with_parent), (parent, dport % 5 > 0));
        }
    }
    // Children may end before their parent: the first, the last, one between.
    for dport in [101, 104, 499, 300] {
        let child = cache.find(&key(1, dport)).expect("it exists").handle;
        lasting -= usize::from(dport % 5 == 0);
        cache.remove(child);
        assert!(table.end(child).is_empty());
    }
    for (parent, children) in parents.into_iter().zip([320 - 3, 320]) {
        cache.remove(parent);
        let ended = table.end(parent);
        assert_eq!(ended.len(), children);
        for child in ended {
            assert!(cache.remove(child).is_some_and(|flow| flow.key.dport % 5 > 0));
            assert!(table.end(child).is_empty());
        }
        assert!(table.end(parent).is_empty(), "once");
    }
    assert_eq!((cache.len(), table.len()), (lasting, 0));
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
    assert_eq!((quoted.direction, quoted.alias), (Direction::Forward, 0));
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
fn timeouts_and_sequence_numbers_keep_the_memory_limit() {
    for bytes in [12 << 10, 150 << 10, 1 << 20] {
        let config = Config::new(100_000).and_then(|config| config.with_max_bytes(bytes));
        let mut cache: Cache = FlowCache::new(config.expect("it is enough"));
        let mut timeouts = 0;
        for src in 0..20_000 {
            let syn = SYN.with_sequence(src);
            let Ok(seen) = cache.observe(&key(src, 21), syn, at(0)) else { continue };
            let handle = seen.handle();
            timeouts += u32::from(cache.set_timeout(handle, Duration::from_secs(9)).is_ok());
            assert!(cache.allocation_size() <= bytes, "{} of {bytes}", cache.allocation_size());
        }
        assert!(bytes < 1 << 20 || timeouts > 500, "{timeouts}");
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
