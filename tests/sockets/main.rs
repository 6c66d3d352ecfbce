//! `SocketTable` as a host uses it: servers, clients, groups, ports and errors. Random sequences of
//! operations are in `model.rs`.

mod groups;
mod hashes;
mod matching;
mod misuse;
mod model;
mod names;
mod ports;

use core::fmt::Debug;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use flowtable::sockets::{
    Local, Name, RejectedSocket, Reuse, SocketError, SocketTable, Specificity,
};
use flowtable::{FlowKey, write_to};

const TCP: u8 = 6;
const UDP: u8 = 17;
const EPHEMERAL: RangeInclusive<u16> = 49_152..=65_535;
const REUSES: [Reuse; 4] = [Reuse::No, Reuse::Address, Reuse::First, Reuse::Port];

fn ip(address: &str) -> IpAddr {
    address.parse().expect("an address")
}

fn end(socket: &str) -> SocketAddr {
    socket.parse().expect("an address and a port")
}

fn tcp(socket: &str) -> Local {
    Local::new(end(socket), TCP)
}

fn udp(socket: &str) -> Local {
    Local::new(end(socket), UDP)
}

fn packet(from: SocketAddr, to: SocketAddr, protocol: u8) -> FlowKey {
    FlowKey::new(from.ip(), to.ip(), from.port(), to.port(), protocol)
        .expect("both addresses are of one version")
}

fn segment(from: &str, to: &str) -> FlowKey {
    packet(end(from), end(to), TCP)
}

fn datagram(from: &str, to: &str) -> FlowKey {
    packet(end(from), end(to), UDP)
}

/// The socket selected for a packet, and the specificity of the match.
fn found<T: Copy + Debug + PartialEq>(
    sockets: &SocketTable<T>,
    packet: FlowKey,
) -> Option<(T, Specificity)> {
    let found = sockets.lookup(&packet).map(|found| (*found.socket, found.by));
    let mut batch = [None];
    sockets.lookup_batch(&[packet], write_to(&mut batch));
    assert_eq!(batch.map(|found| found.map(|found| (*found.socket, found.by))), [found]);
    found
}

/// Inserts unrelated sockets, more than an array holds.
fn insert_unrelated(sockets: &mut SocketTable<&'static str>) {
    for number in 0..40 {
        let (here, there) = (end("192.0.2.200:9999"), end("198.51.100.200:1"));
        let there = SocketAddr::new(there.ip(), 1 + number);
        sockets.connect(here, there, 99, "unrelated").unwrap();
        let at = Local::new(SocketAddr::new(ip("192.0.2.200"), 1 + number), 99);
        sockets.bind(at, Reuse::No, "unrelated").unwrap();
    }
}

/// Runs a test on a table of few sockets (an array) and on one of many (a map).
fn with_few_and_many(test: fn(&mut SocketTable<&'static str>)) {
    for is_large in [false, true] {
        let mut sockets = SocketTable::new(1000);
        if is_large {
            insert_unrelated(&mut sockets);
        }
        test(&mut sockets);
        sockets.validate().unwrap();
    }
}

#[test]
fn a_web_server_accepts() {
    with_few_and_many(|sockets| {
        let listener = sockets.bind(tcp("0.0.0.0:80"), Reuse::No, "listener").unwrap();
        for number in 1..=3 {
            let client = SocketAddr::new(ip("198.51.100.7"), 40_000 + number);
            let here = end("192.0.2.1:80");
            let first = packet(client, here, TCP);
            assert_eq!(found(sockets, first), Some(("listener", Specificity::Port)));
            let name = sockets.connect(here, client, TCP, "connection").unwrap();
            assert_eq!(name, Name::Connected(first));
            assert_eq!(found(sockets, first), Some(("connection", Specificity::Connection)));
        }
        let [one, none] = ["198.51.100.7:40001", "198.51.100.8:40001"]
            .map(|client| segment(client, "192.0.2.1:80"));
        assert_eq!(found(sockets, none), Some(("listener", Specificity::Port)));
        // The same endpoints with another protocol and the reverse direction are other keys.
        assert_eq!(found(sockets, datagram("198.51.100.7:40001", "192.0.2.1:80")), None);
        assert_eq!(found(sockets, one.reversed()), None);
        // Removing the listener leaves the connections.
        assert_eq!(sockets.remove(&listener), Ok("listener"));
        assert_eq!(found(sockets, one), Some(("connection", Specificity::Connection)));
        assert_eq!(found(sockets, none), None);
        assert_eq!(sockets.remove(&Name::Connected(one)), Ok("connection"));
        assert_eq!(found(sockets, one), None);
    });
}

#[test]
fn a_dual_stack_socket_accepts_both_versions_and_conflicts_with_both() {
    with_few_and_many(|sockets| {
        let dual = sockets.bind(tcp("[::]:80"), Reuse::No, "dual stack").unwrap();
        let v4 = segment("198.51.100.7:40000", "192.0.2.1:80");
        let v6 = segment("[2001:db8::7]:40000", "[2001:db8::1]:80");
        assert_eq!(found(sockets, v4), Some(("dual stack", Specificity::Port)));
        assert_eq!(found(sockets, v6), Some(("dual stack", Specificity::Port)));
        let both = ["0.0.0.0:80", "192.0.2.1:80", "[2001:db8::1]:80", "[::]:80"];
        for local in both.map(tcp).into_iter().chain([tcp("[::]:80").v6_only()]) {
            for reuse in REUSES {
                let refused = sockets.bind(local, reuse, "late").unwrap_err();
                assert_eq!(refused, RejectedSocket { refused: "late", reason: SocketError::InUse });
            }
        }
        // Another port and another protocol are free.
        sockets.bind(tcp("[::]:81"), Reuse::No, "other").unwrap();
        sockets.bind(udp("0.0.0.0:80"), Reuse::No, "other").unwrap();
        sockets.remove(&dual).unwrap();
        assert_eq!((found(sockets, v4), found(sockets, v6)), (None, None));
        sockets.bind(tcp("0.0.0.0:80"), Reuse::No, "IPv4").unwrap();
        let refused = sockets.bind(tcp("[::]:80"), Reuse::No, "dual stack").unwrap_err();
        assert_eq!(refused.reason, SocketError::InUse);
    });
}

#[test]
fn an_ipv6_only_socket_does_not_conflict_with_ipv4() {
    with_few_and_many(|sockets| {
        sockets.bind(tcp("[::]:80").v6_only(), Reuse::No, "IPv6").unwrap();
        let v4 = segment("198.51.100.7:40000", "192.0.2.1:80");
        let v6 = segment("[2001:db8::7]:40000", "[2001:db8::1]:80");
        assert_eq!(
            (found(sockets, v4), found(sockets, v6)),
            (None, Some(("IPv6", Specificity::Port)))
        );
        sockets.bind(tcp("0.0.0.0:80"), Reuse::No, "IPv4").unwrap();
        assert_eq!(found(sockets, v4), Some(("IPv4", Specificity::Port)));
        assert_eq!(found(sockets, v6), Some(("IPv6", Specificity::Port)));
        for local in [tcp("[::]:80"), tcp("[::1]:80"), tcp("127.0.0.1:80")] {
            assert_eq!(
                sockets.bind(local, Reuse::Port, "").unwrap_err().reason,
                SocketError::InUse
            );
        }
    });
    // `v6_only` affects the unspecified IPv6 address only.
    for local in ["192.0.2.1:80", "0.0.0.0:80", "[2001:db8::1]:80", "[::ffff:0.0.0.0]:80"].map(tcp)
    {
        assert_eq!(local.v6_only(), local);
    }
    assert_ne!(tcp("[::]:80").v6_only(), tcp("[::]:80"));
    assert_eq!(tcp("[::]:80").v6_only().v6_only(), tcp("[::]:80").v6_only());
}

#[test]
fn with_reuse_on_both_sockets_the_more_specific_one_is_selected() {
    for (first, second) in REUSES.into_iter().flat_map(|one| REUSES.map(|other| (one, other))) {
        let agree = first != Reuse::No && second != Reuse::No;
        for (one, other) in [("0.0.0.0:53", "192.0.2.1:53"), ("192.0.2.1:53", "[::]:53")] {
            let mut sockets = SocketTable::new(10);
            sockets.bind(udp(one), first, one).unwrap();
            let result = sockets.bind(udp(other), second, other);
            assert_eq!(result.is_ok(), agree, "{one} {first:?}, {other} {second:?}");
            let got = found(&sockets, datagram("198.51.100.7:5353", "192.0.2.1:53")).unwrap();
            assert!(got.1 == Specificity::AddressAndPort || !agree);
        }
        // Different addresses do not conflict.
        let mut sockets = SocketTable::new(10);
        for one in ["192.0.2.1:53", "192.0.2.2:53", "[2001:db8::1]:53"] {
            sockets.bind(udp(one), first, one).unwrap();
        }
        // At the same address datagram sockets need any reuse, listeners more than an address.
        let result = sockets.bind(udp("192.0.2.1:53"), second, "again");
        assert_eq!(result.is_ok(), agree);
        sockets.bind(tcp("192.0.2.1:53"), first, "first").unwrap();
        let result = sockets.bind(tcp("192.0.2.1:53"), second, "again");
        let is_group = |reuse| matches!(reuse, Reuse::First | Reuse::Port);
        assert_eq!(result.is_ok(), is_group(first) && is_group(second));
    }
}

#[test]
fn a_server_restarts_while_its_old_connections_remain() {
    for connections in [1, 40] {
        let mut sockets = SocketTable::new(1000);
        let listener = sockets.bind(tcp("0.0.0.0:80"), Reuse::Address, 0).unwrap();
        for number in 1..=connections {
            let client = SocketAddr::new(ip("198.51.100.7"), 40_000 + number);
            sockets.connect(end("192.0.2.1:80"), client, TCP, number.into()).unwrap();
        }
        sockets.remove(&listener).unwrap();
        let refused = |sockets: &mut SocketTable<u32>, local| {
            let refused = sockets.bind(local, Reuse::No, 99).unwrap_err();
            assert_eq!(refused, RejectedSocket { refused: 99, reason: SocketError::InUse });
        };
        refused(&mut sockets, tcp("0.0.0.0:80"));
        refused(&mut sockets, tcp("[::]:80"));
        refused(&mut sockets, tcp("192.0.2.1:80"));
        // Endpoints without a connection are free.
        for free in ["192.0.2.2:80", "192.0.2.1:40001", "0.0.0.0:81", "[2001:db8::1]:80"] {
            let name = sockets.bind(tcp(free), Reuse::No, 0).unwrap();
            sockets.remove(&name).unwrap();
        }
        for free in [udp("0.0.0.0:80"), tcp("[::]:80").v6_only(), Local::all_ports(ip("::"), TCP)] {
            let name = sockets.bind(free, Reuse::No, 0).unwrap();
            sockets.remove(&name).unwrap();
        }
        for reuse in [Reuse::Address, Reuse::Port] {
            let name = sockets.bind(tcp("0.0.0.0:80"), reuse, 0).unwrap();
            let fresh = segment("198.51.100.8:40000", "192.0.2.1:80");
            assert_eq!(found(&sockets, fresh), Some((0, Specificity::Port)));
            let old = segment("198.51.100.7:40001", "192.0.2.1:80");
            assert_eq!(found(&sockets, old), Some((1, Specificity::Connection)));
            sockets.remove(&name).unwrap();
        }
        // When the last connection has been removed, no reuse is needed.
        let names: Vec<Name> = sockets.iter().map(|(name, _)| name).collect();
        for name in names {
            refused(&mut sockets, tcp("[::]:80"));
            sockets.remove(&name).unwrap();
        }
        sockets.bind(tcp("[::]:80"), Reuse::No, 0).unwrap();
        sockets.validate().unwrap();
    }
}

#[test]
fn connections_without_reuse_keep_their_port() {
    for others in [0, 40] {
        let mut sockets = SocketTable::new(1000);
        let there = |number| SocketAddr::new(ip("198.51.100.9"), number);
        for number in 1..=others {
            sockets.connect(end("192.0.2.9:9"), there(number), UDP, 0).unwrap();
        }
        let peer = datagram("198.51.100.7:9000", "10.0.0.1:7000");
        let thief = |sockets: &mut SocketTable<u32>, local| {
            REUSES.map(|reuse| sockets.bind(local, reuse, 9).map_err(|error| error.reason))
        };
        // A socket that is bound and then connected has the reuse with which it was bound.
        let bound = sockets.bind(udp("10.0.0.1:7000"), Reuse::No, 1).unwrap();
        let connected = sockets.connect_bound(&bound, &peer).unwrap();
        for local in ["10.0.0.1:7000", "0.0.0.0:7000", "[::]:7000"].map(udp) {
            assert_eq!(thief(&mut sockets, local), [Err(SocketError::InUse); 4]);
        }
        sockets.validate().unwrap();
        sockets.remove(&connected).unwrap();
        let bound = sockets.bind(udp("10.0.0.1:7000"), Reuse::Address, 1).unwrap();
        sockets.connect_bound(&bound, &peer).unwrap();
        let [no, address, first, port] = thief(&mut sockets, udp("10.0.0.1:7000"));
        assert_eq!(no, Err(SocketError::InUse));
        assert!(address.is_ok() && first.is_ok() && port.is_ok());
        // So has a socket that connects without having been bound, and an accepted one that of
        // its listener.
        sockets.connect(end("10.0.0.2:7000"), end("198.51.100.7:9000"), TCP, 1).unwrap();
        assert_eq!(thief(&mut sockets, tcp("10.0.0.2:7000")), [Err(SocketError::InUse); 4]);
        for reuse in REUSES {
            let mut sockets = SocketTable::new(10);
            let listener = sockets.bind(tcp("0.0.0.0:80"), reuse, 1).unwrap();
            sockets.accept(&segment("198.51.100.7:4000", "192.0.2.1:80"), 2).unwrap();
            sockets.remove(&listener).unwrap();
            let restarted = sockets.bind(tcp("0.0.0.0:80"), Reuse::Address, 1);
            assert_eq!(restarted.is_ok(), reuse != Reuse::No, "{reuse:?}");
        }
        sockets.validate().unwrap();
    }
}

#[test]
fn multicast_receivers_share_a_port_by_address_reuse() {
    with_few_and_many(|sockets| {
        // mDNS and SSDP: each gets the datagram.
        for port in [5353, 1900] {
            let any = Local::new(SocketAddr::new(ip("0.0.0.0"), port), UDP);
            for socket in ["a", "b", "c"] {
                sockets.bind(any, Reuse::Address, socket).unwrap();
            }
            assert_eq!(sockets.bind(any, Reuse::No, "d").unwrap_err().reason, SocketError::InUse);
            for to in ["224.0.0.251", "255.255.255.255", "192.0.2.1"] {
                let query = packet(end("192.0.2.7:5353"), SocketAddr::new(ip(to), port), UDP);
                assert!(sockets.matches(&query).map(|found| *found.socket).eq(["a", "b", "c"]));
                assert_eq!(found(sockets, query), Some(("a", Specificity::Port)));
            }
        }
        // Listeners of TCP cannot.
        sockets.bind(tcp("0.0.0.0:5353"), Reuse::Address, "a").unwrap();
        let second = sockets.bind(tcp("0.0.0.0:5353"), Reuse::Address, "b");
        assert_eq!(second.unwrap_err().reason, SocketError::InUse);
    });
}

#[test]
fn a_broadcast_finds_sockets_at_single_addresses() {
    with_few_and_many(|sockets| {
        let offer = datagram("192.0.2.254:67", "255.255.255.255:68");
        for (local, socket) in [
            ("192.0.2.1:68", "one"),
            ("192.0.2.2:68", "other"),
            ("0.0.0.0:68", "any"),
            ("[2001:db8::1]:68", "IPv6"),
            ("192.0.2.1:69", "another port"),
        ] {
            sockets.bind(udp(local), Reuse::Address, socket).unwrap();
        }
        let of = |packet| -> Vec<_> {
            sockets.broadcast_matches(packet).map(|found| *found.socket).collect()
        };
        let all = of(&offer);
        assert_eq!((all.len(), all[0]), (3, "any"));
        assert!(all.contains(&"one") && all.contains(&"other"));
        assert_eq!(of(&datagram("192.0.2.254:67", "192.0.2.1:69")), ["another port"]);
    });
}

#[test]
fn sockets_wait_behind_a_connection() {
    with_few_and_many(|sockets| {
        let segment = segment("198.51.100.7:4000", "192.0.2.1:80");
        let names = [
            sockets.accept(&segment, "first").unwrap(),
            sockets.queue(&segment, "second").unwrap(),
            sockets.queue(&segment, "third").unwrap(),
        ];
        let all = sockets.matches(&segment).map(|found| *found.socket);
        assert!(all.eq(["first", "second", "third"]));
        for (name, socket) in names.iter().zip(["first", "second", "third"]) {
            assert_eq!(found(sockets, segment), Some((socket, Specificity::Connection)));
            assert_eq!(sockets.get(name), Some(&socket));
            assert_eq!(sockets.accept(&segment, "").unwrap_err().reason, SocketError::InUse);
            let bound = sockets.bind(tcp("192.0.2.1:80"), Reuse::Address, "");
            assert_eq!(bound.unwrap_err().reason, SocketError::InUse);
            sockets.validate().unwrap();
            assert_eq!(sockets.remove(name), Ok(socket));
        }
        assert_eq!(found(sockets, segment), None);
        // Without a connection, too.
        let name = sockets.queue(&segment, "alone").unwrap();
        assert_eq!(found(sockets, segment), Some(("alone", Specificity::Connection)));
        assert_eq!(sockets.remove(&name), Ok("alone"));
        sockets.accept(&segment, "again").unwrap();
    });
}

#[test]
fn a_bound_socket_moves_to_another_address() {
    with_few_and_many(|sockets| {
        let len = sockets.len();
        let old = sockets.bind(udp("192.0.2.1:53"), Reuse::No, "resolver").unwrap();
        sockets.bind(udp("192.0.2.3:53"), Reuse::No, "other").unwrap();
        for taken in ["192.0.2.3:53", "0.0.0.0:53", "[::]:53"].map(udp) {
            assert_eq!(sockets.rebind(&old, taken, Reuse::Port), Err(SocketError::InUse));
            assert_eq!(sockets.get(&old), Some(&"resolver"));
        }
        assert_eq!(sockets.rebind(&old, udp("0.0.0.0:0"), Reuse::No), Err(SocketError::PortZero));
        // It does not conflict with itself.
        let same = sockets.rebind(&old, udp("192.0.2.1:53"), Reuse::Address).unwrap();
        assert_eq!(same, old);
        let other = sockets.iter().find(|(_, socket)| **socket == "other").unwrap().0;
        sockets.remove(&other).unwrap();
        let mut name = same;
        for to in ["0.0.0.0:53", "192.0.2.2:53", "[::]:54"].map(udp) {
            let moved = sockets.rebind(&name, to, Reuse::No).unwrap();
            assert_eq!((sockets.get(&name), sockets.get(&moved)), (None, Some(&"resolver")));
            assert_eq!(sockets.rebind(&name, to, Reuse::No), Err(SocketError::NotFound));
            sockets.validate().unwrap();
            name = moved;
        }
        assert_eq!(sockets.len(), len + 1);
        sockets.bind(udp("192.0.2.1:53"), Reuse::No, "next").unwrap();
    });
}

#[test]
fn a_connected_socket_of_udp_takes_its_own_from_the_bound_one() {
    with_few_and_many(|sockets| {
        sockets.bind(udp("192.0.2.1:53"), Reuse::No, "server").unwrap();
        sockets.connect(end("192.0.2.1:53"), end("198.51.100.7:5353"), UDP, "to 7").unwrap();
        let from = |from| datagram(from, "192.0.2.1:53");
        assert_eq!(
            found(sockets, from("198.51.100.7:5353")),
            Some(("to 7", Specificity::Connection))
        );
        for other in ["198.51.100.7:5354", "198.51.100.8:5353"] {
            assert_eq!(found(sockets, from(other)), Some(("server", Specificity::AddressAndPort)));
        }
        // A duplicate connection is refused.
        let again = sockets.connect(end("192.0.2.1:53"), end("198.51.100.7:5353"), UDP, "again");
        assert_eq!(
            again.unwrap_err(),
            RejectedSocket { refused: "again", reason: SocketError::InUse }
        );
        sockets.connect(end("192.0.2.1:53"), end("198.51.100.7:5353"), TCP, "over TCP").unwrap();
    });
}

fn flow(number: u32) -> FlowKey {
    let from = SocketAddr::new(
        (0xc633_6400 + number % 256).to_be_bytes().into(),
        1024 + (number / 256) as u16,
    );
    packet(from, end("192.0.2.1:443"), TCP)
}

#[test]
fn forty_thousand_sockets() {
    let mut sockets = SocketTable::new(41_000);
    let here = end("192.0.2.1:443");
    let client = |number: u32| {
        let address: IpAddr = (0x0a00_0000 + number / 7).to_be_bytes().into();
        SocketAddr::new(address, 1024 + (number % 7) as u16)
    };
    for port in 0..200 {
        let here = SocketAddr::new(here.ip(), 1 + port);
        sockets.bind(Local::new(here, TCP), Reuse::Address, u32::from(port)).unwrap();
    }
    for number in 0..40_000 {
        let here = if number % 2 == 0 { here } else { end("192.0.2.2:80") };
        sockets.connect(here, client(number), TCP, number).unwrap();
    }
    assert_eq!(sockets.len(), 40_200);
    sockets.validate().unwrap();
    let packets: Vec<FlowKey> = (0..40_000)
        .map(|number| {
            packet(client(number), if number % 2 == 0 { here } else { end("192.0.2.2:80") }, TCP)
        })
        .collect();
    let mut found = vec![None; packets.len()];
    sockets.lookup_batch(&packets, write_to(&mut found));
    for (number, found) in (0..).zip(found) {
        assert_eq!(
            found.map(|found| (*found.socket, found.by)),
            Some((number, Specificity::Connection))
        );
    }
    assert_eq!(sockets.iter().count(), 40_200);
    let clone = sockets.clone();
    for (number, packet) in (0..).zip(&packets) {
        assert_eq!(sockets.remove(&Name::Connected(*packet)), Ok(number));
    }
    assert_eq!((sockets.len(), clone.len()), (200, 40_200));
    assert!(packets.iter().all(|packet| sockets.lookup(packet).is_none()));
    sockets.validate().unwrap();
}
