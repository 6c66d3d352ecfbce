//! Connection states, case by case: handshakes, ends, reuse, directions, reasons and timeouts.

use core::net::Ipv4Addr;
use core::time::Duration;

use Class::{Closing, Established, New, Unreplied};
use Direction::{Forward, Reverse};
use flowtable::flow_cache::{
    Assurance, Class, CloseRule, Config, EndReason, Event, Handle, Packet, Protocol, RemovedFlow,
    Timeouts,
};
use flowtable::{Direction, FiveTuple, FlowCache, FlowKey, TcpFlags, Timestamp};
use model::flow_cache::keys::{ACK, FIN_ACK, NumberedKey, RST, SYN, SYN_ACK};

type Key = FiveTuple<Ipv4Addr>;

const RST_ACK: TcpFlags = TcpFlags(0x14);
const PSH_ACK: TcpFlags = TcpFlags(0x18);

/// Seconds for which a closed connection lingers.
const LINGER: u64 = 64;

fn cache_with(timeouts: Timeouts, rule: CloseRule) -> FlowCache<Key, u64> {
    let config = Config::new(100).expect("some").with_timeouts(timeouts);
    FlowCache::new(config.with_close_rule(rule))
}

fn cache() -> FlowCache<Key, u64> {
    cache_with(Timeouts::METER, CloseRule::BothSides)
}

/// The key of a packet of the flow in this direction.
fn key(direction: Direction) -> Key {
    let key = Key::make(1);
    if direction == Forward { key } else { key.reversed() }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

/// Observes segments of one flow and checks their direction and the class of the flow after each.
#[track_caller]
fn check_segments(
    cache: &mut FlowCache<Key, u64>,
    segments: &[(Direction, TcpFlags, Class)],
) -> Handle {
    let mut handles = vec![];
    for &(direction, flags, class) in segments {
        let now = cache.now();
        let observed =
            cache.observe(&key(direction), Packet::tcp(flags), now).expect("there is room");
        let (found, is) = (observed.direction, observed.class);
        assert_eq!((found, is), (direction, class), "{flags} of {segments:?}");
        handles.push(observed.handle());
    }
    assert!(handles.iter().all(|handle| *handle == handles[0]), "it is one flow: {segments:?}");
    cache.validate().expect("invariant");
    handles[0]
}

/// The flows that end, with a sufficient budget.
fn ended(cache: &mut FlowCache<Key, u64>, now: Timestamp) -> Vec<RemovedFlow<Key, u64>> {
    let mut departures = vec![];
    let progress = cache.advance(now, 1000, |event| {
        if let Event::Ended(removed) = event {
            departures.push(removed);
        }
    });
    assert!(progress.is_done);
    departures
}

/// Checks that the silent flow departs after `seconds` for this reason.
#[track_caller]
fn check_departure(cache: &mut FlowCache<Key, u64>, seconds: u64, reason: EndReason) {
    let before = cache.now();
    let early = before + Duration::from_secs(seconds) - Duration::from_millis(1);
    assert_eq!(ended(cache, early).len(), 0, "before {seconds} s");
    let departures =
        ended(cache, before + Duration::from_secs(seconds) + Duration::from_millis(10));
    assert_eq!(departures.iter().map(|left| left.reason).collect::<Vec<_>>(), [reason]);
}

#[test]
fn a_connection_has_its_states_from_handshake_to_linger() {
    let mut cache = cache();
    let handle = check_segments(
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
    assert_eq!((cache.len(), cache.metrics().created), (1, 1), "the last ACK creates no flow");
    assert_eq!(cache.resident(handle).expect("it lingers").class(), Closing);
    check_departure(&mut cache, LINGER, EndReason::Ended);
}

#[test]
fn a_retransmitted_syn_changes_nothing() {
    let mut cache = cache();
    check_segments(&mut cache, &[(Forward, SYN, New), (Forward, SYN, New), (Forward, SYN, New)]);
    check_departure(&mut cache, 60, EndReason::Idle);
    // The answer is retransmitted, too.
    check_segments(
        &mut cache,
        &[
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Forward, ACK, Established),
            // Late segments belong to the same connection.
            (Forward, SYN, Established),
            (Reverse, SYN_ACK, Established),
        ],
    );
}

#[test]
fn the_sender_of_a_syn_ack_is_the_responder() {
    let mut cache = cache();
    let handle =
        check_segments(&mut cache, &[(Reverse, SYN_ACK, New), (Forward, ACK, Established)]);
    assert_eq!(cache.resident(handle).expect("it lives").key(), key(Forward));
    assert_eq!(cache.find(&key(Forward)).expect("it lives").direction, Forward);
    assert_eq!(cache.remove(handle).expect("it lives").key, key(Forward));
}

#[test]
fn the_first_packet_determines_the_forward_direction() {
    for packet in [Packet::tcp(SYN), Packet::tcp(ACK), Packet::UDP, Packet::ICMP, Packet::OTHER] {
        for first in [key(Forward), key(Reverse)] {
            let mut cache = cache();
            let observed = cache.observe(&first, packet, at(1)).expect("there is room");
            assert_eq!((observed.direction, observed.alias, observed.fresh), (Forward, 0, true));
            let answer = cache.observe(&first.reversed(), packet, at(2)).expect("it is there");
            assert_eq!((answer.direction, answer.alias, answer.fresh), (Reverse, 0, false));
            let removed = cache.drain().next().expect("there is one");
            assert_eq!((removed.key, removed.reason), (first, EndReason::Forced));
        }
    }
}

#[test]
fn a_flood_of_syns_establishes_nothing() {
    let mut cache = cache();
    // The host answers, and the owner of the forged address sends a reset.
    check_segments(
        &mut cache,
        &[(Forward, SYN, New), (Reverse, SYN_ACK, New), (Forward, RST, Closing)],
    );
    check_departure(&mut cache, LINGER, EndReason::Ended);
    check_segments(&mut cache, &[(Forward, SYN, New), (Reverse, RST_ACK, Closing)]);
    check_departure(&mut cache, LINGER, EndReason::Ended);
}

#[test]
fn a_half_closed_connection_is_established() {
    let half = [
        (Forward, SYN, New),
        (Reverse, SYN_ACK, New),
        (Forward, ACK, Established),
        (Forward, FIN_ACK, Established),
        (Reverse, PSH_ACK, Established),
    ];
    let mut cache = cache();
    check_segments(&mut cache, &half);
    check_segments(&mut cache, &[(Forward, ACK, Established), (Reverse, PSH_ACK, Established)]);
    check_departure(&mut cache, 60, EndReason::Idle);
    // By the rule of the paper, the acknowledgement closes the connection.
    let mut cache = cache_with(Timeouts::METER, CloseRule::FirstAck);
    check_segments(&mut cache, &half);
    check_segments(&mut cache, &[(Forward, ACK, Closing), (Reverse, PSH_ACK, Closing)]);
    check_departure(&mut cache, LINGER, EndReason::Ended);
}

#[test]
fn by_the_rule_of_the_paper_the_first_ack_after_a_fin_closes() {
    let mut cache = cache_with(Timeouts::METER, CloseRule::FirstAck);
    check_segments(
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
    check_segments(&mut cache, &[(Forward, RST, Closing)]);
    check_departure(&mut cache, LINGER, EndReason::Ended);
}

#[test]
fn a_reset_closes_a_flow_in_every_state() {
    for before in [
        &[][..],
        &[(Forward, SYN, New)],
        &[(Forward, ACK, Unreplied)],
        &[(Forward, ACK, Unreplied), (Reverse, ACK, Unreplied), (Forward, ACK, Established)],
        &[(Forward, FIN_ACK, Unreplied)],
    ] {
        for reset in [RST, RST_ACK] {
            let mut cache = cache();
            let mut segments = before.to_vec();
            segments.push((Forward, reset, Closing));
            check_segments(&mut cache, &segments);
            check_departure(&mut cache, LINGER, EndReason::Ended);
        }
    }
}

#[test]
fn a_closing_flow_lingers_after_its_last_packet() {
    let mut cache = cache();
    check_segments(&mut cache, &[(Forward, ACK, Unreplied), (Forward, RST, Closing)]);
    for second in 1..20 {
        assert!(ended(&mut cache, at(3 * second)).is_empty());
        check_segments(&mut cache, &[(Reverse, ACK, Closing)]);
    }
    check_departure(&mut cache, LINGER, EndReason::Ended);
}

#[test]
fn a_tuple_may_be_reused_while_its_flow_lingers() {
    for again in [Forward, Reverse] {
        let mut cache = cache();
        let old = check_segments(&mut cache, &[(Forward, SYN, New), (Reverse, RST, Closing)]);
        *cache.get_mut(old).expect("it lingers") = 7;
        let mut observed =
            cache.observe(&key(again), Packet::tcp(SYN), at(1)).expect("there is room");
        // The sender of the SYN is the initiator.
        assert_eq!((observed.direction, observed.class, *observed.flow), (Forward, New, 0));
        assert!(observed.fresh);
        let new = observed.handle();
        let removed = observed.take_removed().expect("the tuple belonged to another flow");
        assert_eq!(
            (removed.handle, removed.reason, removed.class),
            (old, EndReason::Ended, Closing)
        );
        assert_eq!((removed.key, removed.value, removed.last_seen), (key(Forward), 7, at(0)));
        assert!(cache.get(old).is_none() && new.id() > old.id());
        assert_eq!((cache.len(), cache.resident(new).expect("it is new").key()), (1, key(again)));
        check_departure(&mut cache, 60, EndReason::Idle);
    }
}

#[test]
fn an_alias_may_be_reused_while_its_flow_lingers() {
    let mut cache = cache();
    let old = check_segments(&mut cache, &[(Forward, SYN, New)]);
    let translated = Key::make(2);
    assert_eq!(cache.add_alias(old, Direction::Forward, &translated), Ok(1));
    let reset =
        cache.observe(&translated.reversed(), Packet::tcp(RST), at(0)).expect("it is there");
    assert_eq!((reset.handle(), reset.direction, reset.alias), (old, Reverse, 1));
    let mut observed = cache.observe(&translated, Packet::tcp(SYN), at(1)).expect("there is room");
    assert_eq!((observed.fresh, observed.alias), (true, 0));
    assert_eq!(observed.take_removed().expect("the old flow had the alias").handle, old);
    let new = cache.find(&translated).expect("it is new");
    assert_eq!(
        (new.alias, cache.find(&key(Forward)).is_none()),
        (0, true),
        "all keys of the old flow are unlinked"
    );
    cache.validate().expect("invariant");
}

#[test]
fn an_alias_is_removed_by_its_key_in_either_direction() {
    let mut cache = cache();
    let one = check_segments(&mut cache, &[(Forward, ACK, Unreplied)]);
    let other = cache.observe(&Key::make(2), Packet::UDP, at(0)).expect("there is room").handle();
    let (gone, next) = (Key::make(7), Key::make(8));
    for (given, taken) in [(gone, gone.reversed()), (gone.reversed(), gone), (gone, gone)] {
        assert_eq!(cache.add_alias(one, Direction::Forward, &given), Ok(1));
        assert_eq!(cache.remove_key(one, &taken), Ok(()));
        // The next alias reuses the slot, and the removed alias is not found.
        assert_eq!(cache.add_alias(other, Direction::Forward, &next), Ok(1));
        assert_eq!((cache.find(&gone), cache.find(&gone.reversed())), (None, None));
        assert_eq!(cache.remove_key(other, &next), Ok(()));
        cache.validate().expect("invariant");
    }
}

#[test]
fn a_syn_does_not_restart_an_open_connection() {
    let mut cache = cache();
    // On a half-closed connection, the SYN is an old one, or a probe.
    check_segments(
        &mut cache,
        &[
            (Forward, ACK, Unreplied),
            (Reverse, ACK, Unreplied),
            (Forward, FIN_ACK, Established),
            (Reverse, SYN, Established),
            (Forward, SYN, Established),
        ],
    );
    // A SYN-ACK creates no flow either.
    check_segments(&mut cache, &[(Forward, RST, Closing), (Reverse, SYN_ACK, Closing)]);
}

#[test]
fn a_simultaneous_open_is_one_connection() {
    let mut cache = cache();
    check_segments(
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
    check_segments(
        &mut cache,
        &[
            (Forward, SYN, New),
            (Reverse, SYN, New),
            (Forward, ACK, New),
            (Reverse, ACK, New),
            (Forward, ACK, Established),
        ],
    );
}

#[test]
fn a_flow_from_a_socket_to_itself_has_one_direction() {
    let own = Key::make(0);
    assert_eq!(own, own.reversed());
    let mut cache = cache();
    let mut handles = vec![];
    for flags in [SYN, SYN_ACK, ACK, PSH_ACK, FIN_ACK] {
        let observed = cache.observe(&own, Packet::tcp(flags), at(0)).expect("there is room");
        assert_eq!((observed.direction, observed.alias), (Forward, 0), "{flags}");
        handles.push(observed.handle());
    }
    assert!(handles.iter().all(|handle| *handle == handles[0]));
    assert_eq!((cache.len(), cache.find(&own).expect("it is there").handle), (1, handles[0]));
    check_departure(&mut cache, 60, EndReason::Idle);
    let observed = cache.observe(&own, Packet::tcp(SYN_ACK), cache.now()).expect("there is room");
    assert_eq!((observed.direction, observed.class), (Forward, New));
    assert_eq!(cache.observe(&own, Packet::tcp(RST), at(0)).expect("it is there").class, Closing);
    check_departure(&mut cache, LINGER, EndReason::Ended);
    assert!(cache.is_empty());
}

#[test]
fn a_connection_met_half_way_is_established_by_acknowledgements_of_both_sides() {
    for first in [ACK, PSH_ACK, FIN_ACK, TcpFlags(0), TcpFlags(0x28), TcpFlags(0xc0)] {
        let mut cache = cache();
        check_segments(&mut cache, &[(Forward, first, Unreplied), (Forward, ACK, Unreplied)]);
        check_segments(&mut cache, &[(Reverse, ACK, Unreplied), (Reverse, ACK, Unreplied)]);
        check_segments(&mut cache, &[(Forward, PSH_ACK, Established)]);
    }
    let mut cache = cache();
    check_segments(&mut cache, &[(Forward, FIN_ACK, Unreplied), (Reverse, FIN_ACK, Closing)]);
}

/// The answers of a server to an attacker assure nothing.
#[test]
fn a_connection_is_not_assured_by_one_packet_each_way() {
    for flood in [
        &[(Forward, SYN, New), (Reverse, SYN_ACK, New)][..],
        // The answerer itself, and late or repeated answers.
        &[
            (Forward, SYN, New),
            (Reverse, SYN_ACK, New),
            (Reverse, SYN_ACK, New),
            (Reverse, ACK, New),
        ],
        &[(Forward, SYN, New), (Reverse, ACK, New), (Reverse, ACK, New)],
        &[(Forward, SYN, New), (Reverse, RST_ACK, Closing)],
        &[(Forward, ACK, Unreplied), (Forward, ACK, Unreplied), (Forward, FIN_ACK, Unreplied)],
        &[(Forward, ACK, Unreplied), (Reverse, RST, Closing), (Forward, ACK, Closing)],
        &[(Forward, ACK, Unreplied), (Reverse, SYN_ACK, Unreplied), (Reverse, ACK, Unreplied)],
        &[(Forward, TcpFlags(0), Unreplied), (Reverse, TcpFlags(0), Unreplied)],
    ] {
        check_segments(&mut cache(), flood);
    }
    // A handshake of either side is: the connection again, on the sockets of a closed flow.
    let config = Config::new(10).expect("valid").with_socket_reuse(false);
    for (opener, answerer) in [(Forward, Reverse), (Reverse, Forward)] {
        let mut cache = FlowCache::new(config.clone());
        let handle = check_segments(&mut cache, &[(Forward, SYN, New), (Reverse, RST, Closing)]);
        let again = [
            (opener, SYN, New),
            (answerer, SYN_ACK, New),
            (answerer, ACK, New),
            (opener, ACK, Established),
            (opener, FIN_ACK, Established),
            (answerer, FIN_ACK, Closing),
        ];
        assert_eq!(check_segments(&mut cache, &again), handle);
    }
}

#[test]
fn other_protocols_are_established_by_replies_and_some_life() {
    for packet in [Packet::UDP, Packet::ICMP, Packet::OTHER] {
        // The sixth packet, or the first one after two seconds.
        let packets = [Forward, Forward, Reverse, Forward, Reverse, Reverse];
        let classes = [Unreplied, Unreplied, New, New, New, Established];
        let mut cache = cache();
        for (direction, class) in packets.into_iter().zip(classes) {
            let observed = cache.observe(&key(direction), packet, at(0)).expect("there is room");
            assert_eq!((observed.class, observed.direction), (class, direction));
        }
        check_departure(&mut cache, 60, EndReason::Idle);
        let mut cache = self::cache();
        for (second, direction, class) in
            [(0, Forward, Unreplied), (1, Reverse, New), (2, Forward, Established)]
        {
            let observed = cache.observe(&key(direction), packet, at(second));
            assert_eq!(observed.expect("there is room").class, class);
        }
        // Any number of packets of one side is no exchange.
        let mut cache = self::cache();
        for second in 0..20 {
            let observed = cache.observe(&key(Forward), packet, at(second));
            assert_eq!(observed.expect("there is room").class, Unreplied);
        }
        let observed = cache.observe(&key(Reverse), packet, at(20)).expect("there is room");
        assert_eq!(observed.class, Established);
    }
    let greatest = Assurance::new(u8::MAX, Duration::MAX);
    assert_eq!(greatest, Assurance::new(7, Duration::from_nanos(u64::MAX)));
    // TCP flags have no meaning in such packets.
    let all = Packet::new(Protocol::Udp, TcpFlags(0xff));
    assert_eq!(cache().observe(&key(Forward), all, at(0)).expect("there is room").class, Unreplied);
}

#[test]
fn protocols_have_their_numbers() {
    for number in 0..=255_u8 {
        let expected = match number {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            1 | 58 => Protocol::Icmp,
            132 => Protocol::Sctp,
            47 => Protocol::Gre,
            50 | 51 => Protocol::Ipsec,
            _ => Protocol::Other,
        };
        assert_eq!(Protocol::from(number), expected);
    }
}

/// A cache with a flow of this protocol and class.
fn with_one(timeouts: Timeouts, protocol: Protocol, class: Class) -> FlowCache<Key, u64> {
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let packet = Packet::new(protocol, ACK);
    let handle = cache.observe(&key(Forward), packet, at(0)).expect("there is room").handle();
    assert!(cache.set_class(handle, class));
    assert_eq!(cache.resident(handle).expect("it is there").class(), class);
    cache
}

#[test]
fn each_protocol_and_class_has_a_timeout_of_its_own() {
    let pairs =
        || Protocol::ALL.into_iter().flat_map(|protocol| Class::ALL.map(|class| (protocol, class)));
    let mut timeouts = Timeouts::OFF;
    for ((protocol, class), seconds) in pairs().zip(3..) {
        timeouts =
            timeouts.with_idle(protocol, class, Duration::from_secs(seconds)).expect("short");
    }
    for ((protocol, class), seconds) in pairs().zip(3..) {
        assert_eq!(timeouts.idle(protocol, class), Some(Duration::from_secs(seconds)));
        let reason = if class == Closing { EndReason::Ended } else { EndReason::Idle };
        check_departure(&mut with_one(timeouts, protocol, class), seconds, reason);
        // No timeout.
        let without = timeouts.with_idle(protocol, class, None).expect("no timeout is valid");
        let mut cache = with_one(without, protocol, class);
        let progress = cache.advance(at(1 << 33), 10, |event| panic!("{event:?}"));
        assert_eq!((progress.is_done, progress.next, cache.len()), (true, None, 1));
    }
}

#[test]
fn a_change_of_class_changes_the_deadline() {
    let timeouts = Timeouts::OFF;
    let seconds = |timeouts: Timeouts, class, seconds| {
        timeouts.with_idle(Protocol::Tcp, class, Duration::from_secs(seconds)).expect("it is short")
    };
    let timeouts = seconds(seconds(timeouts, Established, 1000), Closing, 3);
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let opens = [(Forward, SYN, New), (Reverse, SYN_ACK, New), (Forward, ACK, Established)];
    check_segments(&mut cache, &opens);
    assert!(ended(&mut cache, at(500)).is_empty());
    let handle = check_segments(&mut cache, &[(Forward, RST, Closing)]);
    check_departure(&mut cache, 3, EndReason::Ended);
    assert!(!cache.set_class(handle, Established), "the flow has removed");
    // A flow that would have ended stays.
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let handle = check_segments(&mut cache, &[(Forward, RST, Closing)]);
    assert!(ended(&mut cache, at(2)).is_empty() && cache.set_class(handle, Established));
    assert!(ended(&mut cache, at(999)).is_empty());
    assert_eq!(ended(&mut cache, at(1001)).len(), 1);
    // From no timeout to one that has passed.
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    let handle = check_segments(&mut cache, &[(Forward, SYN, New)]);
    assert!(ended(&mut cache, at(100)).is_empty() && cache.set_class(handle, Closing));
    assert_eq!(ended(&mut cache, at(101)).len(), 1);
}

#[test]
fn pinned_flows_expire_too() {
    let mut cache = cache();
    let handle = check_segments(&mut cache, &[(Forward, ACK, Unreplied)]);
    assert!(cache.set_pinned(handle, true));
    assert!(cache.resident(handle).expect("it is there").is_pinned());
    check_departure(&mut cache, 60, EndReason::Idle);
    assert!(!cache.set_pinned(handle, true) && cache.is_empty());
    assert_eq!(cache.metrics().pinned, 0);
}

#[test]
fn end_reasons_have_the_codes_of_ipfix() {
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
fn departures_are_counted_by_reason_and_class() {
    let mut cache: FlowCache<FlowKey, u64> = FlowCache::new(Config::new(2).expect("two"));
    for number in 1..4 {
        let key = FlowKey::make(number);
        let observed = cache.observe(&key, Packet::UDP, at(0)).expect("there is room");
        assert_eq!(observed.removed().is_some(), number == 3);
    }
    let handle = cache.find(&FlowKey::make(3)).expect("the last flow is present").handle;
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
    assert_eq!(
        (
            metrics.removed_for(EndReason::Resources),
            metrics.removed_for(EndReason::Idle) + metrics.removed_for(EndReason::Ended),
            metrics.flows
        ),
        (1, 2, 0)
    );
}

#[test]
fn timeouts_of_zero_or_beyond_the_timer_wheel_are_refused() {
    let long = Duration::from_nanos(1 << 63);
    let pair = (Protocol::Udp, Established);
    for wrong in [Duration::ZERO, long, Duration::MAX] {
        assert!(Timeouts::METER.with_idle(pair.0, pair.1, wrong).is_err(), "{wrong:?}");
        assert!(Timeouts::METER.with_all_idle(wrong).is_err(), "{wrong:?}");
        assert!(Timeouts::METER.with_active(wrong).is_err(), "{wrong:?}");
    }
    let longest = long - Duration::from_nanos(1);
    let timeouts = Timeouts::OFF.with_all_idle(longest).expect("the longest timeout is valid");
    let mut cache = cache_with(timeouts, CloseRule::BothSides);
    check_segments(&mut cache, &[(Forward, ACK, Unreplied)]);
    // A step of time is at most a year.
    for day in (0..longest.as_secs() / 86_400).step_by(300) {
        assert!(ended(&mut cache, at(86_400 * day)).is_empty());
    }
    assert!(ended(&mut cache, Timestamp::ZERO + longest - Duration::from_secs(1)).is_empty());
    assert_eq!(ended(&mut cache, Timestamp::ZERO + longest + Duration::from_millis(10)).len(), 1);
}
