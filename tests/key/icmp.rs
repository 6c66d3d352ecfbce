//! Keys of ICMP messages: queries with their answers, all else by type and code.

use core::net::IpAddr;
use std::collections::BTreeSet;

use flowtable::FlowKey;
use flowtable::flow_cache::{Config, Packet};
use flowtable::{Direction, FlowCache, Timestamp};

/// Two hosts of an IP version, its protocol number of ICMP, and its queries with their answers.
struct Family {
    hosts: [&'static str; 2],
    protocol: u8,
    exchanges: &'static [(u8, u8)],
}

const FAMILIES: [Family; 2] = [
    Family {
        hosts: ["192.0.2.1", "198.51.100.2"],
        protocol: 1,
        exchanges: &[(8, 0), (13, 14), (15, 16), (17, 18), (37, 38), (42, 43)],
    },
    Family {
        hosts: ["2001:db8::1", "2001:db8::2"],
        protocol: 58,
        exchanges: &[(128, 129), (139, 140), (144, 145), (146, 147), (160, 161)],
    },
];

impl Family {
    fn hosts(&self) -> [IpAddr; 2] {
        self.hosts.map(|host| host.parse().expect("an address"))
    }
}

#[test]
fn a_query_and_its_answer_are_one_flow_for_each_identifier() {
    for family in &FAMILIES {
        let [host, server] = family.hosts();
        for &(query, answer) in family.exchanges {
            let mut keys = BTreeSet::new();
            for identifier in [0, 1, 2, 0x1234, u16::MAX] {
                let there = FlowKey::icmp(host, server, query, 0, identifier).expect("one version");
                // Scanners send other codes, and get answers of code 0.
                for (code, back_code) in [(0, 0), (9, 0), (0, 4)] {
                    let same = FlowKey::icmp(host, server, query, code, identifier);
                    assert_eq!(same, Some(there));
                    let back = FlowKey::icmp(server, host, answer, back_code, identifier);
                    assert_eq!(back, Some(there.reversed()), "{query} {answer} {identifier}");
                }
                assert_eq!((there.src(), there.dst()), (host, server));
                assert_eq!(there.protocol(), family.protocol);
                assert_eq!((there.sport(), there.dport()), (identifier, u16::from(query) * 256));
                assert!(keys.insert(there.normalized().0), "{query} {identifier}");
            }
        }
    }
}

#[test]
fn other_messages_are_flows_of_their_type_and_code() {
    for family in &FAMILIES {
        let [host, server] = family.hosts();
        let mut keys = BTreeSet::new();
        for kind in 0..=u8::MAX {
            let has_identifier = |&(query, answer): &(u8, u8)| kind == query || kind == answer;
            if family.exchanges.iter().any(has_identifier) {
                continue;
            }
            for code in [0, 1, 3, u8::MAX] {
                let key = FlowKey::icmp(host, server, kind, code, 5).expect("one version");
                assert_eq!(FlowKey::icmp(host, server, kind, code, 6), Some(key));
                let ports = (0, u16::from(kind) * 256 + u16::from(code));
                assert_eq!((key.sport(), key.dport()), ports);
                // An error in the other direction is another flow, unless nothing is known of it.
                let back = FlowKey::icmp(server, host, kind, code, 5).expect("one version");
                assert_eq!(back.normalized().0 == key.normalized().0, ports.1 == 0);
                assert!(keys.insert(key.normalized().0), "{kind} {code}");
            }
        }
    }
}

#[test]
fn both_addresses_are_of_one_version() {
    let [v4, v6] = FAMILIES.map(|family| family.hosts()[0]);
    assert_eq!(FlowKey::icmp(v4, v6, 8, 0, 1), None);
    assert_eq!(FlowKey::icmp(v6, v4, 128, 0, 1), None);
}

/// The messages of one pair of hosts: pings of two identifiers, one of them answered, and two
/// errors; the error that quotes a ping finds its flow.
#[test]
fn a_cache_keeps_queries_and_errors_apart() {
    let [host, server] = FAMILIES[0].hosts();
    let config = Config::new(16).expect("a small capacity");
    let mut cache: FlowCache<FlowKey, u32> = FlowCache::new(config);
    let mut observe = |key: Option<FlowKey>| {
        let key = key.expect("one version");
        let seen = cache.observe(&key, Packet::ICMP, Timestamp::ZERO).expect("there is room");
        *seen.flow += 1;
        (seen.handle(), seen.direction)
    };
    let first = observe(FlowKey::icmp(host, server, 8, 0, 1));
    let second = observe(FlowKey::icmp(host, server, 8, 0, 2));
    let unreachable = observe(FlowKey::icmp(host, server, 3, 3, 0));
    let exceeded = observe(FlowKey::icmp(host, server, 11, 0, 0));
    let answer = observe(FlowKey::icmp(server, host, 0, 0, 1));
    assert_eq!(answer, (first.0, first.1.opposite()));
    let flows = BTreeSet::from([first.0, second.0, unreachable.0, exceeded.0]);
    assert_eq!((flows.len(), cache.len()), (4, 4));
    let quoted = FlowKey::icmp(host, server, 8, 0, 2).expect("one version");
    let error = cache.find_quoted(&quoted).expect("the flow exists");
    assert_eq!((error.handle, error.direction), (second.0, Direction::Reverse));
}
