//! The lives of flows, case by case: handshakes, ends, reuse, directions, reasons and timeouts.

use core::net::Ipv4Addr;
use core::time::Duration;

use Class::{Closing, Established, New, Unreplied};
use Direction::{Forward, Reverse};
use flowtable::flow_cache::{
    Class, CloseRule, Config, EndReason, Event, Handle, Observed, Packet, Protocol, RemovedFlow,
    Timeouts,
};
use flowtable::{Direction, FiveTuple, FlowCache, FlowKey, TcpFlags, Timestamp};
use model::flow_cache::keys::{ACK, FIN_ACK, NumberedKey, RST, SYN, SYN_ACK};

type Key = FiveTuple<Ipv4Addr>;

const RST_ACK: TcpFlags = TcpFlags(0x14);
const PSH_ACK: TcpFlags = TcpFlags(0x18);

fn cache_with(timeouts: Timeouts, rule: CloseRule) -> FlowCache<Key, u32> {
    let config = Config::new(100).expect("some").with_timeouts(timeouts);
    FlowCache::new(config.with_close_rule(rule))
}

fn cache() -> FlowCache<Key, u32> {
    cache_with(Timeouts::METER, CloseRule::BothSides)
}

/// The key of a packet that goes this way through the flow.
fn key(direction: Direction) -> Key {
    let key = Key::make(1);
    if direction == Forward { key } else { key.reversed() }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

/// Segments of one flow, which way they go, and the class that each makes of it.
#[track_caller]
fn goes(cache: &mut FlowCache<Key, u32>, segments: &[(Direction, TcpFlags, Class)]) -> Handle {
    let mut handles = vec![];
    for &(direction, flags, class) in segments {
        let now = cache.now();
        let Observed { handle, direction: found, class: is, .. } =
            cache.observe(&key(direction), Packet::tcp(flags), now).expect("there is room");
        assert_eq!((found, is), (direction, class), "{flags} of {segments:?}");
        handles.push(handle);
    }
    assert!(handles.iter().all(|handle| *handle == handles[0]), "it is one flow: {segments:?}");
    cache.validate().expect("invariant");
    handles[0]
}

/// All that ends, with budget enough.
fn ends(cache: &mut FlowCache<Key, u32>, now: Timestamp) -> Vec<RemovedFlow<Key, u32>> {
    let mut ended = vec![];
    let progress = cache.advance(now, 1000, |event| {
        if let Event::Ended(removed) = event {
            ended.push(removed);
        }
    });
    assert!(progress.is_done);
    ended
}

/// A flow that is silent leaves after so many seconds, for this reason.
#[track_caller]
fn leaves_after(cache: &mut FlowCache<Key, u32>, seconds: u64, reason: EndReason) {
    let before = cache.now();
    let early = before + Duration::from_secs(seconds) - Duration::from_millis(1);
    assert_eq!(ends(cache, early).len(), 0, "before {seconds} s");
    let ended = ends(cache, before + Duration::from_secs(seconds) + Duration::from_millis(10));
    assert_eq!(ended.iter().map(|left| left.reason).collect::<Vec<_>>(), [reason]);
}

#[test]
fn a_connection_from_handshake_to_linger() {
    let mut cache = cache();
    let handle = goes(
        &mut cache,
        &[
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Forward, ACK, Established),
            (Forward, PSH_ACK, Established),
            (Reverse, PSH_ACK, Established),
            (Forward, FIN_ACK, Established),
            (Reverse, ACK, Established),
            (Reverse, FIN_ACK, Closing),
            (Forward, ACK, Closing),
        ],
    );
    assert_eq!((cache.len(), cache.metrics().created), (1, 1), "the last ACK begins no flow");
    assert_eq!(cache.resident(handle).expect("it lingers").class(), Closing);
    leaves_after(&mut cache, 5, EndReason::Ended);
}

#[test]
fn a_syn_is_sent_again() {
    let mut cache = cache();
    goes(&mut cache, &[(Forward, SYN, New), (Forward, SYN, New), (Forward, SYN, New)]);
    leaves_after(&mut cache, 60, EndReason::Idle);
    // The answer too.
    goes(
        &mut cache,
        &[
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Forward, ACK, Established),
            // Late, and no other connection.
            (Forward, SYN, Established),
            (Reverse, SYN_ACK, Established),
        ],
    );
}

#[test]
fn who_answers_has_been_called() {
    let mut cache = cache();
    let handle = goes(&mut cache, &[(Reverse, SYN_ACK, New), (Forward, ACK, Established)]);
    assert_eq!(*cache.resident(handle).expect("it lives").key(), key(Forward));
    assert_eq!(cache.find(&key(Forward)).expect("it lives").direction, Forward);
    assert_eq!(cache.remove(handle).expect("it lives").key, key(Forward));
}

#[test]
fn the_first_packet_says_who_began() {
    for packet in [Packet::tcp(SYN), Packet::tcp(ACK), Packet::UDP, Packet::ICMP, Packet::OTHER] {
        for first in [key(Forward), key(Reverse)] {
            let mut cache = cache();
            let observed = cache.observe(&first, packet, at(1)).expect("there is room");
            assert_eq!((observed.direction, observed.name, observed.fresh), (Forward, 0, true));
            let answer = cache.observe(&first.reversed(), packet, at(2)).expect("it is there");
            assert_eq!((answer.direction, answer.name, answer.fresh), (Reverse, 0, false));
            let removed = cache.drain().next().expect("there is one");
            assert_eq!((removed.key, removed.reason), (first, EndReason::Forced));
        }
    }
}

#[test]
fn a_flood_of_syns_establishes_nothing() {
    let mut cache = cache();
    // The host answers, and who did not ask resets.
    goes(&mut cache, &[(Forward, SYN, New), (Reverse, SYN_ACK, New), (Forward, RST, Closing)]);
    leaves_after(&mut cache, 5, EndReason::Ended);
    goes(&mut cache, &[(Forward, SYN, New), (Reverse, RST_ACK, Closing)]);
    leaves_after(&mut cache, 5, EndReason::Ended);
}

#[test]
fn open_on_one_side() {
    let half = [
        (Forward, SYN, New),
        (Reverse, SYN_ACK, New),
        (Forward, ACK, Established),
        (Forward, FIN_ACK, Established),
        (Reverse, PSH_ACK, Established),
    ];
    let mut cache = cache();
    goes(&mut cache, &half);
    goes(&mut cache, &[(Forward, ACK, Established), (Reverse, PSH_ACK, Established)]);
    leaves_after(&mut cache, 60, EndReason::Idle);
    // The paper's rule takes the acknowledgement for the end.
    let mut cache = cache_with(Timeouts::METER, CloseRule::FirstAck);
    goes(&mut cache, &half);
    goes(&mut cache, &[(Forward, ACK, Closing), (Reverse, PSH_ACK, Closing)]);
    leaves_after(&mut cache, 5, EndReason::Ended);
}

#[test]
fn closed_by_the_rule_of_the_paper() {
    let mut cache = cache_with(Timeouts::METER, CloseRule::FirstAck);
    goes(
        &mut cache,
        &[
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Forward, ACK, Established),
            (Forward, FIN_ACK, Established),
            (Reverse, FIN_ACK, Established),
            (Forward, ACK, Closing),
        ],
    );
    goes(&mut cache, &[(Forward, RST, Closing)]);
    leaves_after(&mut cache, 5, EndReason::Ended);
}

#[test]
fn a_reset_closes_whatever_was() {
    for before in [
        &[][..],
        &[(Forward, SYN, New)],
        &[(Forward, ACK, Unreplied)],
        &[(Forward, ACK, Unreplied), (Reverse, ACK, Established)],
        &[(Forward, FIN_ACK, Unreplied)],
    ] {
        for reset in [RST, RST_ACK] {
            let mut cache = cache();
            let mut segments = before.to_vec();
            segments.push((Forward, reset, Closing));
            goes(&mut cache, &segments);
            leaves_after(&mut cache, 5, EndReason::Ended);
        }
    }
}

#[test]
fn what_is_closing_lingers_from_its_last_packet_on() {
    let mut cache = cache();
    goes(&mut cache, &[(Forward, ACK, Unreplied), (Forward, RST, Closing)]);
    for second in 1..20 {
        assert!(ends(&mut cache, at(3 * second)).is_empty());
        goes(&mut cache, &[(Reverse, ACK, Closing)]);
    }
    leaves_after(&mut cache, 5, EndReason::Ended);
}

#[test]
fn a_tuple_is_used_again_while_it_lingers() {
    for again in [Forward, Reverse] {
        let mut cache = cache();
        let old = goes(&mut cache, &[(Forward, SYN, New), (Reverse, RST, Closing)]);
        *cache.get_mut(old).expect("it lingers") = 7;
        let observed = cache.observe(&key(again), Packet::tcp(SYN), at(1)).expect("there is room");
        // Whoever sends the SYN has begun it.
        assert_eq!((observed.direction, observed.class, *observed.flow), (Forward, New, 0));
        assert!(observed.fresh);
        let new = observed.handle;
        let removed = observed.removed.expect("the tuple was another flow's");
        assert_eq!(
            (removed.handle, removed.reason, removed.class),
            (old, EndReason::Ended, Closing)
        );
        assert_eq!((removed.key, removed.value, removed.last_seen), (key(Forward), 7, at(0)));
        assert!(cache.get(old).is_none() && new.id() > old.id());
        assert_eq!((cache.len(), cache.resident(new).expect("it is new").key()), (1, &key(again)));
        leaves_after(&mut cache, 60, EndReason::Idle);
    }
}

#[test]
fn another_name_is_used_again_while_its_flow_lingers() {
    let mut cache = cache();
    let old = goes(&mut cache, &[(Forward, SYN, New)]);
    let translated = Key::make(2);
    assert_eq!(cache.add_name(old, &translated), Ok(1));
    let reset =
        cache.observe(&translated.reversed(), Packet::tcp(RST), at(0)).expect("it is there");
    assert_eq!((reset.handle, reset.direction, reset.name), (old, Reverse, 1));
    let observed = cache.observe(&translated, Packet::tcp(SYN), at(1)).expect("there is room");
    assert_eq!((observed.fresh, observed.name), (true, 0));
    assert_eq!(observed.removed.expect("it had the name").handle, old);
    let new = cache.find(&translated).expect("it is new");
    assert_eq!(
        (new.name, cache.find(&key(Forward)).is_none()),
        (0, true),
        "all names left with it"
    );
    cache.validate().expect("invariant");
}

#[test]
fn another_name_is_taken_away_in_either_direction() {
    let mut cache = cache();
    let one = goes(&mut cache, &[(Forward, ACK, Unreplied)]);
    let other = cache.observe(&Key::make(2), Packet::UDP, at(0)).expect("there is room").handle;
    let (gone, next) = (Key::make(7), Key::make(8));
    for (given, taken) in [(gone, gone.reversed()), (gone.reversed(), gone), (gone, gone)] {
        assert_eq!(cache.add_name(one, &given), Ok(1));
        assert_eq!(cache.remove_name(one, &taken), Ok(()));
        // The next name has the place of that one, and its packets find nobody.
        assert_eq!(cache.add_name(other, &next), Ok(1));
        assert_eq!((cache.find(&gone), cache.find(&gone.reversed())), (None, None));
        assert_eq!(cache.remove_name(other, &next), Ok(()));
        cache.validate().expect("invariant");
    }
}

#[test]
fn an_open_connection_is_not_begun_anew() {
    let mut cache = cache();
    // Half open, half closed: the SYN is an old one, or one to find out.
    goes(
        &mut cache,
        &[
            (Forward, ACK, Unreplied),
            (Reverse, ACK, Established),
            (Forward, FIN_ACK, Established),
            (Reverse, SYN, Established),
            (Forward, SYN, Established),
        ],
    );
    // An answer begins nothing either.
    goes(&mut cache, &[(Forward, RST, Closing), (Reverse, SYN_ACK, Closing)]);
}

#[test]
fn both_sides_open_at_once() {
    let mut cache = cache();
    goes(
        &mut cache,
        &[
            (Forward, SYN, New),
            (Reverse, SYN, New),
            (Forward, SYN_ACK, New),
            (Reverse, SYN_ACK, New),
            (Reverse, ACK, Established),
        ],
    );
    let mut cache = self::cache();
    goes(&mut cache, &[(Forward, SYN, New), (Reverse, SYN, New), (Forward, ACK, Established)]);
}

#[test]
fn a_socket_that_talks_to_itself() {
    let own = Key::make(0);
    assert_eq!(own, own.reversed());
    let mut cache = cache();
    let mut handles = vec![];
    for flags in [SYN, SYN_ACK, ACK, PSH_ACK, FIN_ACK] {
        let observed = cache.observe(&own, Packet::tcp(flags), at(0)).expect("there is room");
        assert_eq!((observed.direction, observed.name), (Forward, 0), "{flags}");
        handles.push(observed.handle);
    }
    assert!(handles.iter().all(|handle| *handle == handles[0]));
    assert_eq!((cache.len(), cache.find(&own).expect("it is there").handle), (1, handles[0]));
    leaves_after(&mut cache, 60, EndReason::Idle);
    let observed = cache.observe(&own, Packet::tcp(SYN_ACK), cache.now()).expect("there is room");
    assert_eq!((observed.direction, observed.class), (Forward, New));
    assert_eq!(cache.observe(&own, Packet::tcp(RST), at(0)).expect("it is there").class, Closing);
    leaves_after(&mut cache, 5, EndReason::Ended);
    assert!(cache.is_empty());
}

#[test]
fn connections_whose_beginning_was_not_seen() {
    for first in [ACK, PSH_ACK, FIN_ACK, TcpFlags(0), TcpFlags(0x28), TcpFlags(0xc0)] {
        let mut cache = cache();
        goes(&mut cache, &[(Forward, first, Unreplied), (Forward, ACK, Unreplied)]);
        goes(&mut cache, &[(Reverse, ACK, Established)]);
    }
    let mut cache = cache();
    goes(&mut cache, &[(Forward, FIN_ACK, Unreplied), (Reverse, FIN_ACK, Closing)]);
}

#[test]
fn other_protocols_are_replied_or_not() {
    for packet in [Packet::UDP, Packet::ICMP, Packet::OTHER] {
        let mut cache = cache();
        for (direction, class) in
            [(Forward, Unreplied), (Forward, Unreplied), (Reverse, Established)]
        {
            let observed = cache.observe(&key(direction), packet, at(0)).expect("there is room");
            assert_eq!((observed.class, observed.direction), (class, direction));
        }
        leaves_after(&mut cache, 60, EndReason::Idle);
    }
    // What flags there may be in such a packet, they say nothing.
    let all = Packet::new(Protocol::Udp, TcpFlags(0xff));
    assert_eq!(cache().observe(&key(Forward), all, at(0)).expect("there is room").class, Unreplied);
}

#[test]
fn protocols_by_number() {
    for number in 0..=255_u8 {
        let expected = match number {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            1 | 58 => Protocol::Icmp,
            _ => Protocol::Other,
        };
        assert_eq!(Protocol::from(number), expected);
    }
}

/// A cache with a flow of this protocol and class.
fn with_one(timeouts: Timeouts, protocol: Protocol, class: Class) -> FlowCache<Key, u32> {
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let packet = Packet::new(protocol, ACK);
    let handle = cache.observe(&key(Forward), packet, at(0)).expect("there is room").handle;
    assert!(cache.set_class(handle, class));
    assert_eq!(cache.resident(handle).expect("it is there").class(), class);
    cache
}

#[test]
fn each_protocol_and_class_has_a_timeout_of_its_own() {
    let pairs = || {
        let protocols = [Protocol::Tcp, Protocol::Udp, Protocol::Icmp, Protocol::Other];
        protocols.into_iter().flat_map(|protocol| Class::ALL.map(|class| (protocol, class)))
    };
    let mut timeouts = Timeouts::OFF;
    for ((protocol, class), seconds) in pairs().zip(3..) {
        timeouts =
            timeouts.with_idle(protocol, class, Duration::from_secs(seconds)).expect("short");
    }
    for ((protocol, class), seconds) in pairs().zip(3..) {
        assert_eq!(timeouts.idle(protocol, class), Some(Duration::from_secs(seconds)));
        let reason = if class == Closing { EndReason::Ended } else { EndReason::Idle };
        leaves_after(&mut with_one(timeouts, protocol, class), seconds, reason);
        // None at all.
        let without = timeouts.with_idle(protocol, class, None).expect("none is right");
        let mut cache = with_one(without, protocol, class);
        let progress = cache.advance(at(1 << 33), 10, |event| panic!("{event:?}"));
        assert_eq!((progress.is_done, progress.next, cache.len()), (true, None, 1));
    }
}

#[test]
fn another_class_may_end_sooner_or_later() {
    let timeouts = Timeouts::OFF;
    let seconds = |timeouts: Timeouts, class, seconds| {
        timeouts.with_idle(Protocol::Tcp, class, Duration::from_secs(seconds)).expect("it is short")
    };
    let timeouts = seconds(seconds(timeouts, Established, 1000), Closing, 3);
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    goes(&mut cache, &[(Forward, ACK, Unreplied), (Reverse, ACK, Established)]);
    assert!(ends(&mut cache, at(500)).is_empty());
    let handle = goes(&mut cache, &[(Forward, RST, Closing)]);
    leaves_after(&mut cache, 3, EndReason::Ended);
    assert!(!cache.set_class(handle, Established), "it is gone");
    // The other way round: what would have ended stays.
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let handle = goes(&mut cache, &[(Forward, RST, Closing)]);
    assert!(ends(&mut cache, at(2)).is_empty() && cache.set_class(handle, Established));
    assert!(ends(&mut cache, at(999)).is_empty());
    assert_eq!(ends(&mut cache, at(1001)).len(), 1);
    // From no timeout at all to one that is over.
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let handle = goes(&mut cache, &[(Forward, SYN, New)]);
    assert!(ends(&mut cache, at(100)).is_empty() && cache.set_class(handle, Closing));
    assert_eq!(ends(&mut cache, at(101)).len(), 1);
}

#[test]
fn pinned_flows_expire_too() {
    let mut cache = cache();
    let handle = goes(&mut cache, &[(Forward, ACK, Unreplied)]);
    assert!(cache.set_pinned(handle, true));
    assert!(cache.resident(handle).expect("it is there").is_pinned());
    leaves_after(&mut cache, 60, EndReason::Idle);
    assert!(!cache.set_pinned(handle, true) && cache.is_empty());
    assert_eq!(cache.metrics().pinned, 0);
}

#[test]
fn reasons_have_the_codes_of_ipfix() {
    assert_eq!(EndReason::ALL.map(EndReason::code), [1, 2, 3, 4, 5]);
    let [idle, active, ended, forced, resources] = EndReason::ALL;
    assert_eq!(
        [idle, active, ended, forced, resources],
        [
            EndReason::Idle,
            EndReason::Active,
            EndReason::Ended,
            EndReason::Forced,
            EndReason::Resources
        ]
    );
}

#[test]
fn each_reason_is_counted_by_class() {
    let mut cache: FlowCache<FlowKey, ()> = FlowCache::new(Config::new(2).expect("two"));
    for number in 1..4 {
        let key = FlowKey::make(number);
        let observed = cache.observe(&key, Packet::UDP, at(0)).expect("there is room");
        assert_eq!(observed.removed.is_some(), number == 3);
    }
    let handle = cache.find(&FlowKey::make(3)).expect("it came last").handle;
    cache.remove(handle).expect("it is there");
    cache.observe(&FlowKey::make(4), Packet::tcp(RST), at(0)).expect("there is room");
    cache.advance(at(1000), 100, |_| ());
    let metrics = cache.metrics();
    for (reason, class) in [
        (EndReason::Resources, Unreplied),
        (EndReason::Forced, Unreplied),
        (EndReason::Idle, Unreplied),
        (EndReason::Ended, Closing),
    ] {
        assert_eq!(metrics.removed(reason, class), 1, "{reason:?}");
    }
    assert_eq!((metrics.evicted(), metrics.expired(), metrics.flows), (1, 2, 0));
}

#[test]
fn timeouts_of_zero_or_beyond_the_wheel_are_refused() {
    let long = Duration::from_nanos(1 << 63);
    let pair = (Protocol::Udp, Established);
    for wrong in [Duration::ZERO, long, Duration::MAX] {
        assert!(Timeouts::METER.with_idle(pair.0, pair.1, wrong).is_err(), "{wrong:?}");
        assert!(Timeouts::METER.with_all_idle(wrong).is_err(), "{wrong:?}");
        assert!(Timeouts::METER.with_active(wrong).is_err(), "{wrong:?}");
    }
    let longest = long - Duration::from_nanos(1);
    let timeouts = Timeouts::OFF.with_all_idle(longest).expect("it is the longest");
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    goes(&mut cache, &[(Forward, ACK, Unreplied)]);
    // A year at most passes at once.
    for day in (0..longest.as_secs() / 86_400).step_by(300) {
        assert!(ends(&mut cache, at(86_400 * day)).is_empty());
    }
    assert!(ends(&mut cache, Timestamp::ZERO + longest - Duration::from_secs(1)).is_empty());
    assert_eq!(ends(&mut cache, Timestamp::ZERO + longest + Duration::from_millis(10)).len(), 1);
}
