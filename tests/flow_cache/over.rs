//! Flows that are over: expired ones that no call has ended, refused attempts, retired keys.

use core::time::Duration;

use flowtable::eviction::Lru;
use flowtable::flow_cache::{
    AliasError, Class, Config, EndReason, Event, Packet, Protocol, Renewal, SetTimeoutError,
    Timeouts,
};
use flowtable::{Direction, FlowCache, FourTuple, TcpFlags, Timestamp};

type Key = FourTuple<u32>;
type Cache = FlowCache<Key, u32>;

const SYN: Packet = Packet::tcp(TcpFlags::SYN);
const ACK: Packet = Packet::tcp(TcpFlags::ACK);
const FIN: Packet = Packet::tcp(TcpFlags(0x11));
const REFUSAL: Packet = Packet::tcp(TcpFlags(0x14));

fn key(number: u32) -> Key {
    FourTuple { src: number, dst: 1 << 31 | number, sport: 40_000, dport: 443 }
}

fn cache(timeouts: Timeouts) -> Cache {
    FlowCache::new(Config::new(100).expect("some").with_timeouts(timeouts))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

#[test]
fn an_expired_flow_is_not_found_whether_or_not_it_was_ended() {
    for (second, is_found) in [(59, true), (60, false), (3600, false)] {
        let mut cache = cache(Timeouts::METER);
        let handle = cache.observe(&key(1), Packet::UDP, at(0)).expect("there is room").handle();
        cache.add_alias(handle, Direction::Forward, &key(2)).expect("it is new");
        let version = cache.version();
        // Only the time passes.
        cache.advance(at(second), 0, |_| ());
        assert_eq!([1, 2].map(|it| cache.find(&key(it)).is_some()), [is_found; 2]);
        assert_eq!(
            (cache.get(handle).is_some(), cache.get_mut(handle).is_some()),
            (is_found, is_found)
        );
        assert_eq!(cache.resident(handle).is_some(), is_found);
        let now = cache.now();
        if !is_found {
            assert_eq!(cache.version(), version, "nothing has changed it");
            assert!(!cache.set_pinned(handle, true) && !cache.set_class(handle, Class::New));
            let timeout = cache.set_timeout(handle, Duration::from_secs(9000));
            assert_eq!(timeout, Err(SetTimeoutError::NoFlow));
            assert_eq!(cache.remove_key(handle, &key(2)), Err(AliasError::NoFlow));
            let seen = cache.observe_at(handle, Direction::Forward, Packet::UDP, now);
            assert!(seen.is_none());
        }
        let seen = cache.try_observe_with(&key(2), Packet::UDP, now, || Err("no flow"));
        assert_eq!(seen.is_ok(), is_found);
        cache.validate().expect("invariant");
        assert_eq!((cache.len(), cache.iter().count()), (1, 1), "it is in memory");
        assert_eq!(cache.remove(handle).map(|flow| flow.reason), Some(EndReason::Forced));
    }
}

#[test]
fn a_packet_ends_an_expired_flow_and_begins_another_one() {
    for class in [Class::Established, Class::Closing] {
        let mut cache = cache(Timeouts::METER);
        let first = cache.observe(&key(1), ACK, at(0)).expect("there is room").handle();
        *cache.get_mut(first).expect("it is live") = 7;
        cache.set_class(first, class);
        let mut seen = cache.observe(&key(1).reversed(), ACK, at(65)).expect("there is room");
        assert!(seen.fresh && *seen.flow == 0);
        let removed = seen.take_removed().expect("the flow was over");
        let reason = if class == Class::Closing { EndReason::Ended } else { EndReason::Idle };
        assert_eq!((removed.handle, removed.value, removed.reason), (first, 7, reason));
        assert_eq!((removed.class, removed.last_seen), (class, at(0)));
        // In a burst, too; and the flow is not ended twice.
        let burst = [(&key(1), ACK, at(66)), (&key(1), ACK, at(200)), (&key(1), ACK, at(200))];
        let mut fresh = vec![];
        cache.observe_batch(burst, |_, seen| {
            let seen = seen.expect("there is room");
            fresh.push((seen.fresh, seen.removed().map(|flow| flow.reason)));
        });
        assert_eq!(fresh, [(false, None), (true, Some(EndReason::Idle)), (false, None)]);
        assert_eq!(cache.advance(at(200), 100, |_| ()).ended, 0);
        cache.validate().expect("invariant");
    }
}

#[test]
fn many_flows_end_although_the_budget_is_small() {
    let mut cache: Cache =
        FlowCache::new(Config::new(10_000).expect("some").with_timeouts(Timeouts::METER));
    for number in 0..10_000 {
        cache.observe(&key(number), Packet::UDP, at(0)).expect("there is room");
    }
    let mut ended = 0;
    let progress =
        cache.advance(at(61), 32, |event| ended += u32::from(matches!(event, Event::Ended(_))));
    assert!(!progress.is_done && ended == 32);
    for number in 0..10_000 {
        let seen = cache.observe(&key(number), Packet::UDP, at(61)).expect("there is room");
        assert!(seen.fresh);
        ended += u32::from(seen.removed().is_some());
    }
    assert_eq!((ended, cache.len()), (10_000, 10_000));
}

#[test]
fn each_timeout_is_exact() {
    let idle = |protocol, class| Timeouts::CONNTRACK.idle(protocol, class).expect("it is finite");
    for protocol in Protocol::ALL {
        for class in Class::ALL {
            let (mut cache, nanosecond) = (cache(Timeouts::CONNTRACK), Duration::from_nanos(1));
            let packet = Packet::new(protocol, TcpFlags::ACK);
            let handle = cache.observe(&key(1), packet, at(5)).expect("there is room").handle();
            cache.set_class(handle, class);
            let end = at(5) + idle(protocol, class);
            cache.advance(end - nanosecond, 0, |_| ());
            assert!(cache.get(handle).is_some(), "{protocol:?} {class}");
            cache.advance(end, 0, |_| ());
            assert!(cache.get(handle).is_none(), "{protocol:?} {class}");
        }
    }
    // A flow's own timeout may be shorter or longer.
    let mut cache = cache(Timeouts::METER);
    let [short, long] = [1, 2].map(|number| {
        cache.observe(&key(number), Packet::UDP, at(0)).expect("there is room").handle()
    });
    cache.set_class(short, Class::Established);
    cache.set_timeout(short, Duration::from_secs(1)).expect("it is live");
    cache.set_timeout(long, Duration::from_secs(100)).expect("it is live");
    assert!(cache.observe(&key(1), Packet::UDP, at(1)).expect("there is room").fresh);
    assert!(!cache.observe(&key(2), Packet::UDP, at(99)).expect("there is room").fresh);
}

#[test]
fn flows_without_timeouts_never_expire() {
    let mut cache = FlowCache::<Key, u32, Lru>::with_policy(
        Config::new(10).expect("some").with_timeouts(Timeouts::OFF),
        Lru::new(),
    );
    cache.observe(&key(1), ACK, at(0)).expect("there is room");
    let mut now = at(0);
    for _ in 0..400 {
        now = now + Duration::from_secs(364 * 24 * 3600);
        assert!(!cache.observe(&key(1), ACK, now).expect("there is room").fresh);
    }
}

#[test]
fn the_initiator_alone_may_renew_a_flow() {
    for (renewal, ends) in [(Renewal::BothSides, [false; 2]), (Renewal::Initiator, [true, false])] {
        let config = Config::new(10).expect("some").with_renewal(renewal);
        for (initiator_sends, ends) in [false, true].into_iter().zip(ends) {
            let mut cache: Cache = FlowCache::new(config.clone());
            cache.observe(&key(1), Packet::UDP, at(0)).expect("there is room");
            let mut fresh = false;
            for second in (20..2000).step_by(20) {
                let inside = initiator_sends && second % 40 == 0;
                let key = if inside { key(1) } else { key(1).reversed() };
                fresh |= cache.observe(&key, Packet::UDP, at(second)).expect("there is room").fresh;
                cache.validate().expect("invariant");
            }
            assert_eq!(fresh, ends, "{renewal:?} {initiator_sends}");
        }
    }
}

/// The segment is sent again by the timer of RFC 6298, which begins with a second and doubles.
#[test]
fn a_segment_that_was_lost_five_times_belongs_to_its_closed_connection() {
    for wait in [1, 3, 7, 15, 31] {
        let mut cache = cache(Timeouts::METER);
        let opens =
            [(key(1), SYN), (key(1).reversed(), Packet::tcp(TcpFlags(0x12))), (key(1), ACK)];
        let closes = [(key(1), FIN), (key(1).reversed(), FIN), (key(1), ACK)];
        for (key, packet) in opens.into_iter().chain(closes) {
            cache.observe(&key, packet, at(1)).expect("there is room");
        }
        cache.advance(at(1 + wait), 100, |_| ());
        let seen = cache.observe(&key(1).reversed(), FIN, at(1 + wait)).expect("there is room");
        assert_eq!((seen.fresh, seen.direction), (false, Direction::Reverse), "{wait}");
    }
}

#[test]
fn refused_attempts_with_one_sequence_number_are_one_flow() {
    let mut cache = cache(Timeouts::METER);
    let mut attempts = |sequences: &[u32], second| {
        let mut fresh = vec![];
        for sequence in sequences {
            let syn = SYN.with_sequence(*sequence);
            let seen = cache.observe(&key(1), syn, at(second)).expect("there is room");
            fresh.push(seen.fresh);
            assert_eq!(seen.class, Class::New, "it may be answered yet");
            let refusal = cache.observe(&key(1).reversed(), REFUSAL, at(second));
            assert_eq!(refusal.map(|seen| seen.class), Ok(Class::Closing));
        }
        fresh
    };
    assert_eq!(attempts(&[7, 7, 7], 0), [true, false, false]);
    assert_eq!(attempts(&[8, 8, 7, 7], 1), [true, false, true, false]);
    assert_eq!(attempts(&[0, 0, u32::MAX, u32::MAX], 2), [true, false, true, false]);
    // Without a number each is another connection, and so is an attempt after the flow.
    let again = cache.observe(&key(1), SYN, at(2)).expect("there is room").fresh;
    assert!(again);
    cache.observe(&key(1).reversed(), REFUSAL, at(2)).expect("it is live");
    let late = cache.observe(&key(1), SYN.with_sequence(7), at(40)).expect("there is room");
    assert!(late.fresh);
    cache.validate().expect("invariant");
}

#[test]
fn a_flow_in_a_slot_has_no_number_of_the_flow_before() {
    let mut cache: Cache =
        FlowCache::new(Config::new(1).expect("some").with_timeouts(Timeouts::OFF));
    cache.observe(&key(1), SYN.with_sequence(7), at(0)).expect("there is room");
    cache.observe(&key(2), ACK, at(0)).expect("one can leave");
    cache.observe(&key(2), REFUSAL, at(0)).expect("it is live");
    let seen = cache.observe(&key(2), SYN.with_sequence(7), at(0)).expect("there is room");
    assert!(seen.fresh && seen.removed().is_some());
}

#[test]
fn the_oldest_alias_becomes_the_primary_key() {
    let mut cache = cache(Timeouts::OFF);
    let handle = cache.observe(&key(1), ACK, at(0)).expect("there is room").handle();
    assert_eq!(cache.remove_key(handle, &key(1)), Err(AliasError::PrimaryKey));
    // As packets of the responder carry the second one.
    for (number, direction) in [(2, Direction::Reverse), (3, Direction::Forward)] {
        cache.add_alias(handle, direction, &key(number)).expect("it is new");
    }
    assert_eq!(cache.remove_key(handle, &key(1).reversed()), Ok(()));
    cache.validate().expect("invariant");
    assert!(cache.find(&key(1)).is_none());
    let found = |cache: &Cache, key| cache.find(&key).map(|it| (it.handle, it.direction, it.alias));
    assert_eq!(found(&cache, key(2)), Some((handle, Direction::Reverse, 0)));
    assert_eq!(found(&cache, key(3)), Some((handle, Direction::Forward, 2)));
    let flow = cache.resident(handle).expect("it is live");
    assert_eq!((flow.key(), flow.keys().count()), (key(2).reversed(), 2));
    // Another connection may have the retired key, and the number is free.
    let other = cache.observe(&key(1), ACK, at(0)).expect("there is room").handle();
    assert_ne!(other, handle);
    assert_eq!(cache.add_alias(handle, Direction::Forward, &key(4)), Ok(1));
    assert_eq!(cache.remove_key(handle, &key(2)), Ok(()));
    assert_eq!(found(&cache, key(3)), Some((handle, Direction::Forward, 0)));
    assert_eq!(cache.remove_key(handle, &key(3)), Ok(()));
    assert_eq!(cache.remove_key(handle, &key(4)), Err(AliasError::PrimaryKey));
    cache.validate().expect("invariant");
    assert_eq!(cache.remove(handle).map(|flow| flow.key), Some(key(4)));
    assert_eq!(cache.metrics().aliases, 0);
}
