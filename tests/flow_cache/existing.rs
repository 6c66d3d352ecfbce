//! Packets that must not create a flow, or only with the caller's consent; given hashes.

use std::error::Error;
use std::fmt;
use std::rc::Rc;

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{
    AdmissionError, AliasError, Class, Config, EndReason, ObserveError, Observed, Packet,
    RefusedFlow, Timeouts,
};
use flowtable::hash::{Rss, source_index::Toeplitz};
use flowtable::{Direction, FlowCache, FourTuple, Prehashed, TcpFlags, Timestamp};
use model::hashers::Weak;

type Key = FourTuple<u32>;
type Cache = FlowCache<Key, u32>;

const SYN: Packet = Packet::tcp(TcpFlags::SYN);
const ACK: Packet = Packet::tcp(TcpFlags::ACK);
const RST: Packet = Packet::tcp(TcpFlags::RST);

fn key(number: u32) -> Key {
    FourTuple { src: number, dst: 1 << 31 | number, sport: 40_000, dport: 443 }
}

fn cache(flows: usize) -> Cache {
    FlowCache::new(Config::new(flows).expect("some").with_timeouts(Timeouts::OFF))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

#[test]
fn a_packet_without_a_flow_makes_none_and_evicts_none() {
    let mut cache = cache(1);
    cache.observe(&key(1), SYN, at(0)).expect("there is room");
    let before = cache.metrics();
    for key in [key(2), key(2).reversed()] {
        assert!(cache.try_observe_with(&key, ACK, at(1), || Err(())).is_err());
        let seen = cache.try_observe_with(&key, ACK, at(1), || Err("no port"));
        assert_eq!(seen.map(|seen| seen.handle()), Err(ObserveError::New("no port")));
    }
    let after = cache.metrics();
    assert_eq!((after.flows, after.created, after.removed_for(EndReason::Resources)), (1, 1, 0));
    assert_eq!((after.misses, after.hits, after.refused), (before.misses + 4, before.hits, 0));
    let seen =
        cache.try_observe_with(&key(1).reversed(), ACK, at(2), || Err(())).expect("it exists");
    assert_eq!((seen.direction, seen.fresh), (Direction::Reverse, false));
    assert!(seen.removed().is_none());
    cache.validate().expect("invariant");
}

#[test]
fn a_value_is_made_before_another_flow_is_evicted() {
    let mut cache = cache(1);
    let first = cache.observe(&key(1), SYN, at(0)).expect("there is room").handle();
    let mut seen =
        cache.try_observe_with(&key(2), SYN, at(1), || Ok::<_, ()>(7)).expect("one can leave");
    assert_eq!((*seen.flow, seen.fresh), (7, true));
    let removed = seen.take_removed().expect("the cache was full");
    assert_eq!((removed.handle, seen.removed()), (first, None));
    let handle = seen.handle();
    assert!(cache.set_pinned(handle, true));
    let seen = cache.try_observe_with(&key(3), SYN, at(1), || Ok::<_, ()>(8));
    let refused = RefusedFlow { refused: 8, reason: AdmissionError::Full };
    assert_eq!(seen.map(|_| ()), Err(ObserveError::Refused(refused)));
}

/// The message has the reason, so a program that prints the chain of causes prints it once.
#[test]
fn the_message_of_an_error_contains_its_reason() {
    let refused = RefusedFlow { refused: (), reason: AdmissionError::Full };
    let error = ObserveError::<(), fmt::Error>::Refused(refused);
    assert_eq!(error.to_string(), AdmissionError::Full.to_string());
    assert!(error.source().is_none());
    let error = ObserveError::<(), _>::New(fmt::Error);
    assert_eq!(error.to_string(), format!("no value for a new flow: {}", fmt::Error));
    assert!(error.source().is_none());
}

#[test]
fn a_removed_value_is_dropped_with_the_next_packet() {
    let mut cache: FlowCache<u64, Rc<()>> = FlowCache::new(Config::new(1).expect("some"));
    let value = Rc::new(());
    cache.observe_with(&1, ACK, at(0), || value.clone()).expect("there is room");
    // So that the packets after it are quick hits.
    let handle = cache.observe_with(&2, ACK, at(1), Default::default).expect("one leaves").handle();
    assert!(cache.set_class(handle, Class::Established));
    assert_eq!(Rc::strong_count(&value), 2, "no packet since then");
    let seen = cache.observe(&2, ACK, at(2)).expect("it exists");
    assert!(seen.removed().is_none());
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn quick_hits_hide_a_removed_flow_that_needs_no_drop() {
    let mut cache = cache(1);
    cache.observe(&key(1), SYN, at(0)).expect("there is room");
    let handle = cache.observe(&key(2), SYN, at(1)).expect("one can leave").handle();
    assert!(cache.set_class(handle, Class::Established));
    *cache.get_mut(handle).expect("it exists") += 1;
    let mut seen = cache.observe(&key(2), ACK, at(2)).expect("it exists");
    assert!(seen.removed().is_none() && seen.take_removed().is_none());
    let burst = [(key(2), ACK), (key(3), SYN), (key(3), ACK), (key(4), SYN)];
    let mut removed = vec![];
    let burst = burst.iter().map(|(key, packet)| (key, *packet, at(3)));
    cache.observe_batch(burst, |_, seen| {
        removed.push(seen.expect("one can leave").removed().map(|flow| flow.key));
    });
    assert_eq!(removed, [None, Some(key(2)), None, Some(key(3))]);
}

#[test]
fn a_closing_flow_is_not_that_of_another_connection() {
    let mut cache = cache(10);
    let handle = cache.observe(&key(1), SYN, at(0)).expect("there is room").handle();
    cache.observe(&key(1), RST, at(1)).expect("it exists");
    assert!(cache.try_observe_with(&key(1), SYN, at(2), || Err(())).is_err());
    assert!(cache.observe_at(handle, Direction::Forward, SYN, at(2)).is_none());
    let seen = cache.observe_at(handle, Direction::Reverse, ACK, at(2)).expect("it exists");
    assert_eq!((seen.class, seen.direction), (Class::Closing, Direction::Reverse));
    let mut seen = cache.observe(&key(1), SYN, at(3)).expect("there is room");
    assert_eq!(seen.take_removed().map(|flow| flow.handle), Some(handle));
    assert!(cache.observe_at(handle, Direction::Forward, ACK, at(3)).is_none());
}

#[test]
fn a_handle_stands_for_a_lookup() {
    let (mut by_key, mut by_handle) = (cache(100), cache(100));
    for number in 0..100 {
        // Either socket is the smaller one.
        let key = if number % 2 == 0 { key(number) } else { key(number).reversed() };
        let handle = by_key.observe(&key, SYN, at(0)).expect("there is room").handle();
        assert_eq!(by_handle.observe(&key, SYN, at(0)).expect("there is room").handle(), handle);
        for (second, direction) in (1..).zip([Direction::Reverse, Direction::Forward]) {
            let carried = match direction {
                Direction::Forward => key,
                Direction::Reverse => key.reversed(),
            };
            let one = by_key.observe(&carried, ACK, at(second)).expect("it exists");
            let other = by_handle.observe_at(handle, direction, ACK, at(second));
            let other = other.expect("it exists");
            assert_eq!((one.direction, one.class), (other.direction, other.class));
            assert_eq!((one.handle(), one.alias), (other.handle(), other.alias));
        }
    }
    by_handle.validate().expect("invariant");
}

#[test]
fn given_hashes_find_what_they_made_also_when_they_are_equal() {
    for equal in [false, true] {
        let config = Config::new(4000).expect("some").with_timeouts(Timeouts::OFF);
        // The hasher of the cache is not used.
        let mut cache: FlowCache<Key, u32, ByClass, Weak> =
            FlowCache::with_policy_and_hasher(config, ByClass::new(), Weak::Constant);
        let hash =
            |number: u32| if equal { 7 } else { u64::from(number).wrapping_mul(0x9e37_79b9) };
        for number in 0..3000 {
            let (hash, key) = (hash(number), key(number));
            let seen =
                cache.observe(Prehashed { hash, key: &key }, SYN, at(0)).expect("there is room");
            let (fresh, handle) = (seen.fresh, seen.handle());
            assert!(fresh);
            if number % 10 == 0 {
                let alias = FourTuple { sport: 1, ..key };
                let name =
                    cache.add_alias(handle, Direction::Forward, Prehashed { hash, key: &alias });
                assert_eq!(name, Ok(1));
                let found =
                    cache.find(Prehashed { hash, key: &alias.reversed() }).expect("it was added");
                assert_eq!((found.handle, found.direction), (handle, Direction::Reverse));
                let error =
                    cache.find_quoted(Prehashed { hash, key: &alias }).expect("it was added");
                assert_eq!((error.handle, error.direction), (handle, Direction::Reverse));
            }
            if number % 20 == 0 {
                let alias = FourTuple { sport: 1, ..key };
                assert_eq!(cache.remove_key(handle, &alias.reversed()), Ok(()));
                assert_eq!(cache.find(Prehashed { hash, key: &alias }), None);
                assert_eq!(cache.remove_key(handle, &alias), Err(AliasError::NoSuchKey));
                assert_eq!(cache.remove_key(handle, &key), Err(AliasError::PrimaryKey));
            }
        }
        assert_eq!(cache.metrics().reseeds > 0, equal);
        let keys: Vec<_> = (0..3000).map(|number| (hash(number), key(number).reversed())).collect();
        let packets = keys.iter().map(|(hash, key)| (Prehashed { hash: *hash, key }, ACK, at(1)));
        let mut found = 0;
        cache.observe_batch(packets, |_, seen| {
            found += u32::from(!seen.expect("there is room").fresh);
        });
        assert_eq!(found, 3000);
        let none = || Err("none");
        let mut finds = |hash, key| {
            cache.try_observe_with(Prehashed { hash, key: &key }, ACK, at(2), none).is_ok()
        };
        assert!((0..3000).all(|number| finds(hash(number), key(number))));
        assert!(!finds(hash(9999), key(9999)));
        let new = Prehashed { hash: hash(9999), key: &key(9999) };
        assert!(cache.observe_with(new, ACK, at(2), || 3).is_ok());
    }
}

/// A hasher that computes the hashes of the card makes all methods usable.
#[test]
fn a_cache_of_one_queue_takes_the_hashes_of_its_card() {
    let cache = || {
        let config = Config::new(100).expect("some").with_timeouts(Timeouts::OFF);
        let rss = Rss::new(Toeplitz::SYMMETRIC);
        FlowCache::<Key, u32, ByClass, Rss>::with_policy_and_hasher(config, ByClass::new(), rss)
    };
    let hash = |key: &Key| Rss::table_hash(Toeplitz::SYMMETRIC.hash(key));
    fn prehashed(key: &Key) -> Prehashed<&Key> {
        Prehashed { hash: Rss::table_hash(Toeplitz::SYMMETRIC.hash(key)), key }
    }
    let mut first = cache();
    for number in 0..100 {
        let key = key(number);
        let seen = first.observe(prehashed(&key), SYN, at(0)).expect("there is room");
        let handle = seen.handle();
        let alias = FourTuple { sport: 1, ..key };
        let name = first.add_alias(handle, Direction::Forward, prehashed(&alias));
        assert_eq!(name, Ok(1));
        let reversed = Prehashed { hash: hash(&key), key: &key.reversed() };
        assert_eq!(first.find(&key.reversed()), first.find(reversed));
        assert!(!first.observe(&alias, ACK, at(1)).expect("it exists").fresh);
    }
    let mut second = cache();
    assert_eq!(second.restore(first.iter().collect(), at(1)), Ok(100));
    assert!(first == second);
    assert!((0..100).map(key).all(|key| second.find(prehashed(&key)).is_some()));
}

#[test]
fn a_batch_gives_the_index_of_the_packet_that_makes_a_flow() {
    let mut cache = cache(100);
    let packets: Vec<_> = (0..80).map(|number| (key(number / 2), ACK)).collect();
    let mut values = vec![];
    let packets = packets.iter().map(|(key, packet)| (key, *packet, at(0)));
    let new = |index| Ok::<_, ()>(index as u32);
    cache.try_observe_batch(packets, new, |index, seen| {
        let seen = seen.expect("there is room");
        assert_eq!(seen.fresh, index % 2 == 0);
        values.push(*seen.flow);
    });
    assert!(values.into_iter().eq((0..80).map(|index| index / 2 * 2)));
}

/// Bursts whose new flows may be refused do what the packets do one by one.
#[test]
fn a_batch_may_refuse_flows() {
    let (mut one, mut batch) = (cache(30), cache(30));
    for (number, second) in (0..200_u32).zip(1..) {
        let packets: Vec<_> = (0..50).map(|at| (key((7 * number + at * at) % 60), ACK)).collect();
        let new = |index: usize| match index % 3 {
            0 => Err(index),
            _ => Ok(number),
        };
        let result = |seen: Result<Observed<'_, _, u32>, _>| match seen {
            Ok(seen) => Ok((*seen.flow, seen.fresh, seen.removed().map(|flow| flow.key))),
            Err(ObserveError::New(index)) => Err(index),
            Err(ObserveError::Refused(refused)) => panic!("{refused}"),
        };
        let mut seen = vec![];
        let sent = packets.iter().map(|(key, packet)| (key, *packet, at(second)));
        batch.try_observe_batch(sent, new, |_, it| seen.push(result(it)));
        assert!(seen.iter().any(Result::is_err) && seen.iter().any(Result::is_ok));
        for (index, (key, packet)) in packets.iter().enumerate() {
            let it = one.try_observe_with(key, *packet, at(second), || new(index));
            assert_eq!(result(it), seen[index]);
        }
        let counts = |cache: &Cache| {
            let all = cache.metrics();
            (all.flows, all.hits, all.misses, all.created, all.refused, all.removed)
        };
        assert_eq!(counts(&one), counts(&batch));
    }
}
