//! New flows under other configurations, and whole connections: what a packet pays for that is not
//! configured by [`flows`](super::flows).

use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use flowtable::eviction::{ByClass, Eviction, Lru};
use flowtable::flow_cache::{Config, Packet, Timeouts};
use flowtable::key::flow::FlowName;
use flowtable::{DefaultHashBuilder, FlowCache, FlowKey, TcpFlags, Timestamp};

use super::COUNT;
use super::flows::{Counters, Name, count_packet, name, packets, time};

type Cache<K, P = ByClass> = FlowCache<K, Counters, P>;

/// Each function has a length of its own, or the compiler makes one function of two.
#[inline(always)]
fn one_by_one<K: FlowName, P: Eviction>(
    cache: &mut Cache<K, P>,
    packets: &[(K, Packet)],
    second: u64,
    length: u16,
) -> u64 {
    let mut fresh = 0;
    for (at, (name, packet)) in packets.iter().enumerate() {
        let seen = cache.observe(name, *packet, time(second, at)).expect("no flow is pinned");
        fresh += u64::from(count_packet(seen, length));
    }
    fresh
}

#[inline(never)]
fn count_conntrack_new(cache: &mut Cache<Name>, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 41)
}

/// New flows in a cache that the CPU has in its L2 cache: without prefetches.
#[inline(never)]
fn count_small_new(cache: &mut Cache<Name>, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 47)
}

#[inline(never)]
fn count_v6_new(cache: &mut Cache<FlowKey>, packets: &[(FlowKey, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 42)
}

#[inline(never)]
fn count_limited(cache: &mut Cache<Name>, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 43)
}

#[inline(never)]
fn count_lru(cache: &mut Cache<Name, Lru>, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 44)
}

/// Answers to the first packets of datagrams.
#[inline(never)]
fn count_udp_answers(cache: &mut Cache<Name>, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 5, 45)
}

/// Connections of eight packets each, which evict others.
#[inline(never)]
fn count_tcp_life(cache: &mut Cache<Name>, packets: &[(Name, Packet)]) -> u64 {
    one_by_one(cache, packets, 4, 46)
}

fn cache<K: FlowName, P: Eviction>(config: Config, policy: P) -> Cache<K, P> {
    Cache::with_policy_and_hasher(config, policy, DefaultHashBuilder::with_seed(1))
}

fn config() -> Config {
    let timeouts = Timeouts::OFF.with_all_idle(Duration::from_secs(60)).expect("not zero");
    Config::new(COUNT as usize).expect("not zero").with_timeouts(timeouts)
}

/// Fills a cache with established flows: as many packets as assure them.
fn establish<K: FlowName, P: Eviction>(cache: &mut Cache<K, P>, known: &[(K, Packet)]) {
    for (name, packet) in known.iter().flat_map(|packet| [packet; 3]) {
        for name in [name.clone(), name.reversed()] {
            assert!(cache.observe(&name, *packet, time(1, 0)).is_ok());
        }
    }
}

fn v6_packets(first: u32) -> Vec<(FlowKey, Packet)> {
    let key = |number: u32| {
        let Name { src, dst, sport, dport, protocol } = name(number);
        let address = |bits| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(bits));
        let addresses = [src, dst].map(Ipv4Addr::to_bits).map(address);
        FlowKey::new(addresses[0].into(), addresses[1].into(), sport, dport, protocol)
    };
    let keys = (first..first + COUNT as u32).map(|number| key(number).expect("one family"));
    keys.map(|key| (key, Packet::UDP)).collect()
}

/// The packets of connections from the handshake to the last acknowledgement, 32 connections at a
/// time.
fn tcp_lives(first: u32) -> Vec<(Name, Packet)> {
    let (syn, ack, fin) = (TcpFlags::SYN, TcpFlags::ACK, TcpFlags::FIN);
    let life = [
        (true, syn),
        (false, syn | ack),
        (true, ack),
        (true, ack),
        (false, ack),
        (true, fin | ack),
        (false, fin | ack),
        (true, ack),
    ];
    let names: Vec<Name> =
        (first..first + COUNT as u32).map(|number| Name { protocol: 6, ..name(number) }).collect();
    let mut packets = vec![];
    for names in names.chunks(32) {
        for (is_forward, flags) in life {
            let name = |name: &Name| if is_forward { *name } else { name.reversed() };
            packets.extend(names.iter().map(|it| (name(it), Packet::tcp(flags))));
        }
    }
    packets
}

/// New flows of each kind, in caches that are full of established flows, and their answers.
pub(crate) fn count() {
    let (known, new) = (packets(0), packets(COUNT as u32));
    let conntrack = Config::new(COUNT as usize).expect("not zero");
    let mut conntrack = cache(conntrack, ByClass::new());
    establish(&mut conntrack, &known);
    assert_eq!(black_box(count_conntrack_new(&mut conntrack, &new)), COUNT);

    let few = COUNT as usize / 4;
    let small = Config::new(few).expect("not zero").with_timeouts(*config().timeouts());
    let mut small = cache(small, ByClass::new());
    establish(&mut small, &known[..few]);
    assert_eq!(black_box(count_small_new(&mut small, &new)), COUNT);

    let mut v6 = cache(config(), ByClass::new());
    establish(&mut v6, &v6_packets(0));
    assert_eq!(black_box(count_v6_new(&mut v6, &v6_packets(COUNT as u32))), COUNT);

    let mut limited = cache(config().with_max_bytes(1 << 30).expect("enough"), ByClass::new());
    establish(&mut limited, &known);
    assert_eq!(black_box(count_limited(&mut limited, &new)), COUNT);

    let mut lru = cache(config(), Lru::new());
    establish(&mut lru, &known);
    assert_eq!(black_box(count_lru(&mut lru, &new)), COUNT);

    let mut udp = cache(config(), ByClass::new());
    assert!(new.iter().all(|(name, packet)| udp.observe(name, *packet, time(5, 0)).is_ok()));
    let answers: Vec<_> = new.iter().map(|(name, packet)| (name.reversed(), *packet)).collect();
    assert_eq!(black_box(count_udp_answers(&mut udp, &answers)), 0);

    let mut tcp = cache(config(), ByClass::new());
    establish(&mut tcp, &known);
    let lives = tcp_lives(3 * COUNT as u32);
    assert!(black_box(count_tcp_life(&mut tcp, &lives)) >= COUNT);
    let now = Timestamp::from_secs(1000);
    assert_eq!(tcp.advance(now, usize::MAX, |_| ()).ended as u64, COUNT);
}
