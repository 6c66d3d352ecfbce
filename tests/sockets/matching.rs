//! Matching of packets: the best match, all matches, batches, and addresses invalid on a wire.

use core::net::SocketAddr;

use flowtable::sockets::{Local, Match, Name, Reuse, SocketError, SocketTable, Specificity};
use flowtable::{FlowKey, write_to};

use crate::{
    EPHEMERAL, TCP, UDP, datagram, end, flow, found, ip, packet, segment, tcp, udp,
    with_few_and_many,
};

#[test]
fn the_best_match_wins_and_after_its_removal_the_next_best() {
    with_few_and_many(|sockets| {
        let all = |address| Local::all_ports(ip(address), TCP);
        let mut names = vec![];
        // From the worst to the best.
        let places = [
            (all("::"), "all ports of any address", Specificity::Everything),
            (all("0.0.0.0"), "all ports of any IPv4 address", Specificity::Everything),
            (all("192.0.2.1"), "all ports of the address", Specificity::Address),
            (tcp("[::]:80"), "the port of any address", Specificity::Port),
            (tcp("0.0.0.0:80"), "the port of any IPv4 address", Specificity::Port),
            (tcp("192.0.2.1:80"), "the port of the address", Specificity::AddressAndPort),
        ];
        for (local, socket, _) in places {
            names.push(sockets.bind(local, Reuse::Address, socket).unwrap());
        }
        let arrived = segment("198.51.100.7:40000", "192.0.2.1:80");
        let (here, there) = (end("192.0.2.1:80"), end("198.51.100.7:40000"));
        let connection = sockets.connect(here, there, TCP, "the connection").unwrap();
        assert_eq!(found(sockets, arrived), Some(("the connection", Specificity::Connection)));
        sockets.remove(&connection).unwrap();
        for ((_, socket, by), name) in places.into_iter().zip(names).rev() {
            assert_eq!(found(sockets, arrived), Some((socket, by)));
            assert_eq!(sockets.remove(&name), Ok(socket));
        }
        assert_eq!(found(sockets, arrived), None);
    });
    assert!(Specificity::Everything < Specificity::Address);
    assert!(Specificity::Address < Specificity::Port);
    assert!(Specificity::Port < Specificity::AddressAndPort);
    assert!(Specificity::AddressAndPort < Specificity::Connection);
}

#[test]
fn in_ipv6_the_best_match_wins_as_well() {
    with_few_and_many(|sockets| {
        let all = |address| Local::all_ports(ip(address), TCP);
        let arrived = segment("[2001:db8::7]:40000", "[2001:db8::1]:80");
        for (local, by) in [
            (all("::"), Specificity::Everything),
            (all("::").v6_only(), Specificity::Everything),
            (all("2001:db8::1"), Specificity::Address),
            (tcp("[::]:80"), Specificity::Port),
            (tcp("[::]:80").v6_only(), Specificity::Port),
            (tcp("[2001:db8::1]:80"), Specificity::AddressAndPort),
        ] {
            let name = sockets.bind(local, Reuse::Address, "the best so far").unwrap();
            assert_eq!(found(sockets, arrived), Some(("the best so far", by)));
            *sockets.get_mut(&name).unwrap() = "beaten";
        }
        // A socket for IPv4 does not accept IPv6.
        sockets.bind(tcp("0.0.0.0:80"), Reuse::Address, "IPv4").unwrap();
        assert_eq!(found(sockets, arrived), Some(("beaten", Specificity::AddressAndPort)));
    });
}

#[test]
fn a_proxy_on_all_ports_gets_packets_without_another_match() {
    with_few_and_many(|sockets| {
        let proxy = Local::all_ports(ip("::"), TCP);
        assert_eq!((proxy.port(), proxy.protocol()), (None, TCP));
        sockets.bind(tcp("0.0.0.0:80"), Reuse::No, "server").unwrap();
        // A socket on all ports conflicts with no socket on one port.
        let name = sockets.bind(proxy, Reuse::No, "proxy").unwrap();
        let late = sockets.bind(tcp("192.0.2.1:22"), Reuse::No, "late").unwrap();
        let to = |to| segment("198.51.100.7:40000", to);
        assert_eq!(found(sockets, to("192.0.2.1:80")), Some(("server", Specificity::Port)));
        assert_eq!(found(sockets, to("192.0.2.1:22")), Some(("late", Specificity::AddressAndPort)));
        for port in [0, 1, 81, 65_535] {
            let to = SocketAddr::new(ip("192.0.2.1"), port);
            let arrived = packet(end("198.51.100.7:40000"), to, TCP);
            assert_eq!(found(sockets, arrived), Some(("proxy", Specificity::Everything)));
        }
        let v6 = segment("[2001:db8::7]:40000", "[2001:db8::1]:80");
        assert_eq!(found(sockets, v6), Some(("proxy", Specificity::Everything)));
        assert_eq!(found(sockets, datagram("198.51.100.7:40000", "192.0.2.1:81")), None);
        // One bound to an address is more specific; both need to allow reuse.
        let other = Local::all_ports(ip("192.0.2.1"), TCP);
        assert_eq!(sockets.bind(other, Reuse::Port, "").unwrap_err().reason, SocketError::InUse);
        sockets.remove(&name).unwrap();
        assert_eq!(found(sockets, v6), None);
        sockets.bind(proxy, Reuse::Address, "proxy").unwrap();
        sockets.bind(other, Reuse::Address, "of the address").unwrap();
        assert_eq!(
            found(sockets, to("192.0.2.1:81")),
            Some(("of the address", Specificity::Address))
        );
        sockets.remove(&late).unwrap();
        assert_eq!(
            found(sockets, to("192.0.2.1:22")),
            Some(("of the address", Specificity::Address))
        );
        assert_eq!(found(sockets, to("192.0.2.2:22")), Some(("proxy", Specificity::Everything)));
    });
}

#[test]
fn a_protocol_without_ports_is_bound_at_all_of_them() {
    let mut sockets = SocketTable::new(10);
    sockets.bind(Local::all_ports(ip("0.0.0.0"), 1), Reuse::No, "ping").unwrap();
    let echo = FlowKey::new(ip("198.51.100.7"), ip("192.0.2.1"), 0, 0, 1).unwrap();
    assert_eq!(found(&sockets, echo), Some(("ping", Specificity::Everything)));
}

#[test]
fn packets_between_mapped_addresses_find_nothing() {
    with_few_and_many(|sockets| {
        sockets.bind(tcp("[::]:80"), Reuse::Address, "dual stack").unwrap();
        sockets.bind(tcp("[::]:80").v6_only(), Reuse::Address, "IPv6").unwrap();
        sockets.bind(tcp("192.0.2.1:80"), Reuse::Address, "IPv4").unwrap();
        sockets.bind(Local::all_ports(ip("::"), TCP), Reuse::No, "proxy").unwrap();
        sockets.connect(end("192.0.2.1:80"), end("198.51.100.7:4000"), TCP, "connection").unwrap();
        let plain = segment("198.51.100.7:4000", "192.0.2.1:80");
        assert_eq!(found(sockets, plain), Some(("connection", Specificity::Connection)));
        for (from, to) in [
            ("[::ffff:198.51.100.7]:4000", "[::ffff:192.0.2.1]:80"),
            ("[::ffff:198.51.100.7]:4001", "[::ffff:192.0.2.1]:80"),
            ("[::ffff:198.51.100.7]:4000", "[2001:db8::1]:80"),
            ("[2001:db8::7]:4000", "[::ffff:192.0.2.1]:80"),
            ("[::ffff:0.0.0.0]:4000", "[2001:db8::1]:81"),
        ] {
            assert_eq!(found(sockets, segment(from, to)), None);
            assert!(sockets.lookup_mut(&segment(from, to)).is_none());
            assert!(sockets.get(&Name::Connected(segment(from, to))).is_none());
        }
        // These addresses are close to the mapped range, but outside of it.
        for from in ["[::198.51.100.7]:4000", "[64:ff9b::198.51.100.7]:4000", "[::fffe:1:1]:4000"] {
            let found = found(sockets, segment(from, "[2001:db8::1]:80"));
            assert_eq!(found, Some(("IPv6", Specificity::Port)));
        }
    });
}

#[test]
fn a_mapped_address_of_a_socket_is_the_ipv4_address() {
    assert_eq!(tcp("[::ffff:192.0.2.1]:80"), tcp("192.0.2.1:80"));
    assert_eq!(tcp("[::ffff:0.0.0.0]:80"), tcp("0.0.0.0:80"));
    assert_eq!(
        Local::all_ports(ip("::ffff:192.0.2.1"), UDP),
        Local::all_ports(ip("192.0.2.1"), UDP)
    );
    with_few_and_many(|sockets| {
        sockets.bind(tcp("[::ffff:192.0.2.1]:80"), Reuse::No, "IPv4").unwrap();
        let arrived = segment("198.51.100.7:4000", "192.0.2.1:80");
        assert_eq!(found(sockets, arrived), Some(("IPv4", Specificity::AddressAndPort)));
        assert_eq!(
            sockets.bind(tcp("192.0.2.1:80"), Reuse::No, "").unwrap_err().reason,
            SocketError::InUse
        );
        let (here, there) = (end("[::ffff:192.0.2.1]:80"), end("[::ffff:198.51.100.7]:4000"));
        let name = sockets.connect(here, there, TCP, "connection").unwrap();
        assert_eq!(name, Name::Connected(arrived));
        assert_eq!(found(sockets, arrived), Some(("connection", Specificity::Connection)));
        // One mapped address counts as IPv4, so the versions match.
        sockets.connect(here, end("198.51.100.7:4001"), TCP, "half").unwrap();
        let name = sockets
            .connect_ephemeral(here.ip(), end("[::ffff:198.51.100.7]:80"), TCP, EPHEMERAL, "client")
            .unwrap();
        assert!(matches!(name, Name::Connected(FlowKey::V4(_))));
    });
}

#[test]
fn a_multicast_packet_has_several_matches_the_best_first() {
    with_few_and_many(|sockets| {
        let mdns = datagram("192.0.2.7:5353", "224.0.0.251:5353");
        assert_eq!(sockets.matches(&mdns).count(), 0);
        let connected = (end("224.0.0.251:5353"), end("192.0.2.7:5353"));
        sockets.bind(Local::all_ports(ip("::"), UDP), Reuse::No, "monitor").unwrap();
        sockets.bind(udp("[::]:5353"), Reuse::Address, "dual stack").unwrap();
        sockets.bind(udp("0.0.0.0:5353"), Reuse::Address, "any").unwrap();
        sockets.connect(connected.0, connected.1, UDP, "connected").unwrap();
        for _ in 0..2 {
            sockets.bind(udp("224.0.0.251:5353"), Reuse::Port, "group").unwrap();
        }
        for other in ["224.0.0.252:5353", "224.0.0.251:5354"] {
            sockets.bind(udp(other), Reuse::Port, "other").unwrap();
        }
        sockets.bind(udp("[::]:5353").v6_only(), Reuse::Port, "other").unwrap();
        let matches = sockets.matches(&mdns).map(|found| (*found.socket, found.by));
        assert!(matches.eq([
            ("connected", Specificity::Connection),
            ("group", Specificity::AddressAndPort),
            ("group", Specificity::AddressAndPort),
            ("any", Specificity::Port),
            ("dual stack", Specificity::Port),
            ("monitor", Specificity::Everything),
        ]));
        let mapped = datagram("[2001:db8::7]:5353", "[::ffff:224.0.0.251]:5353");
        assert_eq!(sockets.matches(&mapped).count(), 0);
    });
}

#[test]
fn sockets_are_mutable_by_packet_and_by_name() {
    let mut sockets = SocketTable::new(100);
    let name = sockets.bind(tcp("0.0.0.0:443"), Reuse::Port, 0).unwrap();
    (1..4).for_each(|_| _ = sockets.bind(tcp("0.0.0.0:443"), Reuse::Port, 0).unwrap());
    for number in 0..100 {
        let found = sockets.lookup_mut(&flow(number)).unwrap();
        assert_eq!(found.by, Specificity::Port);
        *found.socket += 1;
    }
    assert_eq!(sockets.iter().map(|(_, count)| *count).sum::<u32>(), 100);
    assert!(sockets.iter().all(|(_, count)| *count > 0));
    *sockets.get_mut(&name).unwrap() = 1000;
    assert_eq!(sockets.remove(&name), Ok(1000));
}

#[test]
fn a_batch_lookup_equals_single_lookups() {
    let mut sockets = SocketTable::new(1000);
    for round in 0..3_u16 {
        for number in 0..round * 100 {
            let (v4, v6) = (end("192.0.2.1:443"), end("[2001:db8::1]:443"));
            let port = 1000 * round + number;
            for (here, there) in [(v4, "198.51.100.7"), (v6, "2001:db8::7")] {
                let there = SocketAddr::new(ip(there), port);
                sockets.connect(here, there, TCP, port.into()).unwrap();
            }
        }
        let local =
            [tcp("[::]:443"), tcp("192.0.2.1:443"), tcp("192.0.2.2:443")][usize::from(round)];
        sockets.bind(local, Reuse::Address, 9000 + u32::from(round)).unwrap();
        let to = |from: &str, port, to: &str| packet(SocketAddr::new(ip(from), port), end(to), TCP);
        let packets: Vec<FlowKey> = (1000..2300)
            .flat_map(|port| {
                [
                    to("198.51.100.7", port, "192.0.2.1:443"),
                    to("2001:db8::7", port, "[2001:db8::1]:443"),
                    to("2001:db8::7", port, "[::ffff:192.0.2.1]:443"),
                    to("198.51.100.7", port, "192.0.2.1:80"),
                ]
            })
            .collect();
        for length in [0, 1, 2, 31, 32, 33, 64, 65, packets.len()] {
            let expected: Vec<Option<Match<&u32>>> =
                packets[..length].iter().map(|packet| sockets.lookup(packet)).collect();
            let mut found = vec![expected.first().copied().flatten(); length];
            sockets.lookup_batch(&packets[..length], write_to(&mut found));
            assert_eq!(found, expected);
        }
    }
}
