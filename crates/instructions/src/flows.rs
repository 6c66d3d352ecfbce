//! Packets of a meter: hits one by one and in bursts, new flows in a full cache, and handshakes.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Duration;

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{Class, Config, Observed, Packet, Timeouts};
use flowtable::{DefaultHashBuilder, Direction, FiveTuple, FlowCache, TcpFlags, Timestamp};

use super::COUNT;

pub(crate) type Name = FiveTuple<Ipv4Addr>;
type Cache = FlowCache<Name, Counters>;

/// Packets and bytes of both directions: 32 bytes.
#[derive(Default)]
pub(crate) struct Counters {
    packets: [u64; 2],
    bytes: [u64; 2],
}

#[inline]
pub(crate) fn count_packet<K>(mut seen: Observed<'_, K, Counters>, length: u16) -> bool {
    let direction = seen.direction as usize;
    seen.flow.packets[direction] += 1;
    seen.flow.bytes[direction] += u64::from(length);
    seen.fresh || seen.take_removed().is_some_and(|removed| removed.value.packets[0] == 0)
}

/// The time of a packet of a second: time never goes backwards, as that is a special case.
pub(crate) fn time(second: u64, packet: usize) -> Timestamp {
    Timestamp::from_secs(second) + Duration::from_nanos(packet as u64)
}

#[inline(always)]
fn one_by_one(cache: &mut Cache, packets: &[(Name, Packet)], second: u64, length: u16) -> u64 {
    let mut fresh = 0;
    for (at, (name, packet)) in packets.iter().enumerate() {
        let seen = cache.observe(name, *packet, time(second, at)).expect("no flow is pinned");
        fresh += u64::from(count_packet(seen, length));
    }
    fresh
}

#[inline(never)]
fn count_flow_hit(cache: &mut Cache, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 2, 64)
}

#[inline(never)]
fn count_flow_burst(cache: &mut Cache, packets: &[(Name, Packet, Timestamp)]) -> u64 {
    let mut fresh = 0;
    for packets in packets.chunks(32) {
        let packets = packets.iter().map(|(name, packet, time)| (name, *packet, *time));
        cache.observe_batch(packets, |_, seen| {
            let seen = seen.expect("no flow is pinned");
            fresh += u64::from(count_packet(seen, 64));
        });
    }
    fresh
}

/// Another length, or the compiler makes one function of this and [`count_flow_hit`].
#[inline(never)]
fn count_flow_new(cache: &mut Cache, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 40)
}

/// The answer and the last packet of a handshake are counted together.
#[inline(never)]
fn count_flow_handshake(cache: &mut Cache, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 5, 60)
}

pub(crate) fn name(number: u32) -> Name {
    let src = number.wrapping_mul(0x9e37_79b9).into();
    let dst = (!number).wrapping_mul(0x85eb_ca6b).into();
    Name { src, dst, sport: number as u16, dport: 53, protocol: 17 }
}

pub(crate) fn packets(first: u32) -> Vec<(Name, Packet)> {
    (first..first + COUNT as u32).map(|number| (name(number), Packet::UDP)).collect()
}

/// Handshakes of new connections, the first packets of which are not counted.
fn count_handshakes(cache: &mut Cache) {
    let names =
        (2 * COUNT as u32..3 * COUNT as u32).map(|number| Name { protocol: 6, ..name(number) });
    let names: Vec<_> = names.collect();
    let (answer, last) = (Packet::tcp(TcpFlags::SYN | TcpFlags::ACK), Packet::tcp(TcpFlags::ACK));
    for name in &names {
        let seen = cache.observe(name, Packet::tcp(TcpFlags::SYN), time(5, 0));
        assert!(seen.is_ok_and(|seen| seen.fresh));
    }
    let rest = names.iter().flat_map(|name| [(name.reversed(), answer), (*name, last)]);
    assert_eq!(count_flow_handshake(cache, &rest.collect::<Vec<_>>()), 0);
    assert_eq!(cache.metrics().by_class[Class::Established as usize], COUNT as usize);
}

/// All packets of a meter that is full of established flows, and then of new ones.
pub(crate) fn count() {
    let timeouts = Timeouts::OFF.with_all_idle(Duration::from_secs(60)).expect("not zero");
    let config = Config::new(COUNT as usize).expect("not zero").with_timeouts(timeouts);
    let hasher = DefaultHashBuilder::with_seed(1);
    let new_cache =
        || Cache::with_policy_and_hasher(config.clone(), ByClass::new(), hasher.clone());
    let mut cache = new_cache();
    let (known, new) = (packets(0), packets(COUNT as u32));
    // As many packets as assure a flow.
    for (name, packet) in known.iter().flat_map(|packet| [packet; 3]) {
        for name in [*name, name.reversed()] {
            assert!(cache.observe(&name, *packet, time(1, 0)).is_ok());
        }
    }
    let established = black_box(count_flow_hit(&mut cache, &known));
    // The packets of a burst have one time.
    let burst =
        known.iter().enumerate().map(|(at, (name, packet))| (*name, *packet, time(3, at & !31)));
    assert_eq!(established + count_flow_burst(&mut cache, &burst.collect::<Vec<_>>()), 0);
    let seen = [Direction::Forward, Direction::Reverse].map(|direction| direction as usize);
    assert_eq!(seen, [0, 1]);
    // An eighth of the flows at most is new, and the others are used: the rest are evicted.
    assert_eq!(count_flow_new(&mut cache, &new), COUNT);
    count_handshakes(&mut new_cache());
}
