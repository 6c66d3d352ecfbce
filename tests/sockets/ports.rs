//! Ephemeral ports.

use core::cell::{Cell, RefCell};
use core::hash::{BuildHasher, Hash};
use core::net::SocketAddr;
use core::ops::RangeInclusive;
use std::collections::BTreeSet;
use std::rc::Rc;

use flowtable::sockets::{
    Local, Name, RejectedSocket, Reuse, SocketError, SocketTable, Specificity,
};
use flowtable::{DefaultHashBuilder, Prehashed};

use crate::{EPHEMERAL, REUSES, TCP, UDP, end, found, ip, packet, tcp, udp, with_few_and_many};

/// The port of a socket.
fn port(name: Name) -> u16 {
    match name {
        Name::Connected(key) | Name::Queued { key, .. } => key.dport(),
        Name::Bound { local, .. } => local.port().expect("it has one"),
    }
}

#[test]
fn connections_from_ephemeral_ports_have_distinct_ports() {
    let mut sockets = SocketTable::new(10_000);
    let there = end("198.51.100.7:443");
    let mut ports = BTreeSet::new();
    for _ in 0..1000 {
        let name = sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, EPHEMERAL, 5).unwrap();
        assert!(EPHEMERAL.contains(&port(name)));
        assert!(ports.insert(port(name)), "ports are distinct");
        let answer = packet(there, SocketAddr::new(ip("192.0.2.1"), port(name)), TCP);
        assert_eq!(name, Name::Connected(answer));
        assert_eq!(found(&sockets, answer), Some((5, Specificity::Connection)));
    }
    sockets.validate().unwrap();
}

#[test]
fn a_range_can_be_exhausted_and_released_ports_are_reused() {
    for ports in [50_000..=50_000, 50_000..=50_002, 60_000..=60_999, 65_530..=65_535, 1..=u16::MAX]
    {
        let count = ports.len();
        let mut sockets = SocketTable::new(usize::MAX);
        let there = end("198.51.100.7:443");
        let connect = |sockets: &mut SocketTable<u32>| {
            sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, ports.clone(), 1)
        };
        let names: Vec<Name> = (0..count).map(|_| connect(&mut sockets).unwrap()).collect();
        let used: BTreeSet<u16> = names.iter().map(|name| port(*name)).collect();
        assert!(used.iter().copied().eq(ports.clone()));
        for _ in 0..2 {
            assert_eq!(
                connect(&mut sockets),
                Err(RejectedSocket { refused: 1, reason: SocketError::NoPort })
            );
        }
        // One removal releases one port.
        for at in [0, count / 2, count - 1] {
            sockets.remove(&names[at]).unwrap();
            assert_eq!(connect(&mut sockets), Ok(names[at]));
            assert_eq!(connect(&mut sockets).unwrap_err().reason, SocketError::NoPort);
        }
        // All ports are free for another remote or local address and for another protocol.
        for (here, there, protocol) in [
            ("192.0.2.1", "198.51.100.8:443", TCP),
            ("192.0.2.1", "198.51.100.7:444", TCP),
            ("192.0.2.2", "198.51.100.7:443", TCP),
            ("192.0.2.1", "198.51.100.7:443", UDP),
        ] {
            sockets.connect_ephemeral(ip(here), end(there), protocol, ports.clone(), 1).unwrap();
        }
    }
}

/// The ephemeral ports of Linux.
const LINUX: RangeInclusive<u16> = 32_768..=60_999;

/// Lines of 512 ports that a search among these examines: 56, and one of them twice.
const LINES: usize = 57;

/// A hasher that counts how often it is used.
#[derive(Clone, Default)]
struct Counting(Rc<Cell<usize>>, DefaultHashBuilder);

impl BuildHasher for Counting {
    type Hasher = <DefaultHashBuilder as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.set(self.0.get() + 1);
        self.1.build_hasher()
    }
}

#[test]
fn the_last_free_ports_are_found_in_a_bounded_number_of_lookups() {
    let range = LINUX;
    let hasher = Counting(Rc::default(), DefaultHashBuilder::with_seed(3));
    let mut sockets = SocketTable::with_hasher(usize::MAX, hasher.clone());
    let there = end("198.51.100.7:443");
    let connect = |sockets: &mut SocketTable<(), Counting>| {
        sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, range.clone(), ()).map(port)
    };
    let bind = |sockets: &mut SocketTable<(), Counting>| {
        sockets.bind_ephemeral(udp("0.0.0.0:0"), range.clone(), Reuse::No, ()).map(port)
    };
    let counted = |count: &mut dyn FnMut()| {
        let before = hasher.0.get();
        count();
        hasher.0.get() - before
    };
    // A line of 512 ports is one lookup in each set, and a step of growth hashes 1000 entries.
    for _ in range.clone() {
        let most = counted(&mut || _ = connect(&mut sockets).unwrap());
        assert!(most < 4000, "{most} hashes of a connection");
        let most = counted(&mut || _ = bind(&mut sockets).unwrap());
        assert!(most < 6000, "{most} hashes of a bound socket");
    }
    let none =
        counted(&mut || assert_eq!(connect(&mut sockets).unwrap_err().reason, SocketError::NoPort));
    assert!(none < 4000, "{none} hashes until no port was found");
    let udp_socket = sockets.iter().map(|(name, ())| name).find(|name| port(*name) == 40_000);
    sockets.remove(&udp_socket.expect("all ports are bound")).unwrap();
    assert_eq!(bind(&mut sockets), Ok(40_000));
    sockets.validate().unwrap();
}

/// A hasher that records the hashes of keys.
#[derive(Clone, Default)]
struct Recording(Rc<RefCell<Vec<u64>>>, DefaultHashBuilder);

impl BuildHasher for Recording {
    type Hasher = <DefaultHashBuilder as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.1.build_hasher()
    }

    fn hash_one<T: Hash>(&self, key: T) -> u64 {
        let hash = self.1.hash_one(key);
        self.0.borrow_mut().push(hash);
        hash
    }
}

#[test]
fn a_connection_is_hashed_once() {
    let hasher = Recording(Rc::default(), DefaultHashBuilder::with_seed(3));
    let mut sockets = SocketTable::with_hasher(usize::MAX, hasher.clone());
    let (here, there) = (ip("192.0.2.1"), end("198.51.100.7:443"));
    let mut connected = vec![];
    for socket in 0..200 {
        hasher.0.take();
        let name = sockets.connect_ephemeral(here, there, TCP, EPHEMERAL, socket).unwrap();
        let Name::Connected(key) = name else { panic!("{name:?} is a connection") };
        let hash = hasher.1.hash_one(key);
        let times = hasher.0.take().into_iter().filter(|own| *own == hash).count();
        // A table that grows may hash it again.
        assert!(times <= 1 + usize::from(socket % 16 == 0), "socket {socket}: {times} times");
        connected.push(name);
    }
    // A hash that is given is not computed.
    for (socket, name) in connected.into_iter().enumerate() {
        let Name::Connected(key) = name else { unreachable!("all are connections") };
        sockets.remove(&name).unwrap();
        let packet = Prehashed { hash: hasher.1.hash_one(key), key: &key };
        hasher.0.take();
        assert_eq!(sockets.accept(packet, socket), Ok(name));
        assert!(!hasher.0.take().contains(&packet.hash), "socket {socket}");
        assert_eq!(*sockets.lookup(packet).unwrap().socket, socket);
    }
    sockets.validate().unwrap();
}

#[test]
fn ports_that_were_not_selected_by_the_table_are_known_without_a_lookup_each() {
    let hasher = Counting(Rc::default(), DefaultHashBuilder::with_seed(3));
    let mut sockets = SocketTable::with_hasher(usize::MAX, hasher.clone());
    let (here, there) = (ip("192.0.2.1"), end("198.51.100.7:443"));
    for port in LINUX {
        sockets.connect(SocketAddr::new(here, port), there, TCP, ()).unwrap();
    }
    let before = hasher.0.get();
    let error = sockets.connect_ephemeral(here, there, TCP, LINUX, ()).unwrap_err();
    assert_eq!(error.reason, SocketError::NoPort);
    // One set of ports in use, a hash of the destination, and cursors.
    assert!(hasher.0.get() - before <= LINES + 1 + 256, "{} hashes", hasher.0.get() - before);
    // The table learns of lower ports when a range has them.
    let lower = 1024..=29_255;
    for port in lower.clone() {
        sockets.connect(SocketAddr::new(here, port), there, TCP, ()).unwrap();
    }
    for is_known in [false, true] {
        let before = hasher.0.get();
        sockets.connect_ephemeral(here, there, TCP, lower.clone(), ()).unwrap_err();
        assert_eq!(hasher.0.get() - before <= LINES + 1, is_known);
        sockets.validate().unwrap();
    }
}

type Counted = SocketTable<(), Counting>;

/// Takes a port of a table.
type Take<'a> = &'a dyn Fn(&mut Counted, u16);

/// Opens a socket at an ephemeral port.
type Open<'a> = &'a dyn Fn(&mut Counted) -> Result<Name, RejectedSocket<()>>;

/// Takes the ports of [`LINUX`] in these ways in turn, so that each word of ports has some in each
/// of as many sets; but for those that are free. Returns how many lookups a search and an insertion
/// need at most.
fn lookups(takes: &[Take<'_>], is_free: impl Fn(u16) -> bool, open: Open<'_>) -> usize {
    let hasher = Counting(Rc::default(), DefaultHashBuilder::with_seed(3));
    let mut sockets = SocketTable::with_hasher(usize::MAX, hasher.clone());
    for port in LINUX.filter(|port| !is_free(*port)) {
        takes[usize::from(port) % takes.len()](&mut sockets, port);
    }
    sockets.validate().unwrap();
    let mut most = 0;
    for call in 0..300 {
        let before = (hasher.0.get(), sockets.allocation_size());
        let opened = open(&mut sockets);
        // The first call initialises the cursors, and the growth of a map hashes its entries.
        if call > 0 && sockets.allocation_size() == before.1 {
            most = most.max(hasher.0.get() - before.0);
        }
        match opened {
            Ok(name) => {
                assert!(is_free(port(name)));
                sockets.remove(&name).unwrap();
            }
            Err(error) => assert_eq!(error.reason, SocketError::NoPort),
        }
    }
    most
}

/// Checks the number of lookups of searches in which as many sets are in the way.
fn check_lookups(takes: &[Take<'_>], open: Open<'_>) {
    // A hash selects the first port.
    let search = 1 + takes.len() * LINES;
    let all_taken = lookups(takes, |_| false, open);
    assert!((search - takes.len()..=search).contains(&all_taken), "{all_taken}, {search}");
    // One in a hundred is free; or the last hundredth, where the search of one call begins.
    for is_free in [|port| port % 100 == 1, |port| port > 60_999 - 282] {
        let few_free = lookups(takes, is_free, open);
        assert!(few_free <= search + 12, "{few_free}, {search}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow, and without memory accesses to check")]
fn a_search_takes_one_lookup_for_512_ports_in_each_set() {
    let bind = |sockets: &mut Counted, local: Local, port| {
        let local = Local::new(SocketAddr::new(local.address(), port), UDP);
        sockets.bind(local, Reuse::No, ()).unwrap();
    };
    let connect = |sockets: &mut Counted, local, remote, port| {
        sockets.connect(SocketAddr::new(ip(local), port), end(remote), UDP, ()).unwrap();
    };
    let any = |sockets: &mut Counted, port| bind(sockets, udp("[::]:0"), port);
    let v6_only = |sockets: &mut Counted, port| {
        let local = Local::new(SocketAddr::new(ip("::"), port), UDP).v6_only();
        sockets.bind(local, Reuse::No, ()).unwrap();
    };
    let v4: [Take<'_>; 3] = [
        &|sockets, port| bind(sockets, udp("0.0.0.0:0"), port),
        &|sockets, port| bind(sockets, udp("192.0.2.1:0"), port),
        &|sockets, port| connect(sockets, "192.0.2.1", "198.51.100.7:53", port),
    ];
    let v6: [Take<'_>; 3] = [
        &v6_only,
        &|sockets, port| bind(sockets, udp("[2001:db8::1]:0"), port),
        &|sockets, port| connect(sockets, "2001:db8::1", "[2001:db8::7]:53", port),
    ];
    let binds = |local: Local| {
        move |sockets: &mut Counted| sockets.bind_ephemeral(local, LINUX, Reuse::No, ())
    };
    let [v4_takes, v6_takes] =
        [v4, v6].map(|[one, two, three]| [&any as Take<'_>, one, two, three]);
    check_lookups(&[&any, v4[0], v4[1], v4[2], v6[0], v6[1], v6[2]], &binds(udp("[::]:0")));
    check_lookups(&v4_takes, &binds(udp("0.0.0.0:0")));
    check_lookups(&v4_takes, &binds(udp("192.0.2.1:0")));
    check_lookups(&v6_takes, &binds(udp("[::]:0").v6_only()));
    check_lookups(&v6_takes, &binds(udp("[2001:db8::1]:0")));
    check_lookups(&v4_takes, &|sockets| {
        sockets.connect_ephemeral(ip("192.0.2.1"), end("198.51.100.7:53"), UDP, LINUX, ())
    });
    check_lookups(&v6_takes, &|sockets| {
        sockets.connect_ephemeral(ip("2001:db8::1"), end("[2001:db8::7]:53"), UDP, LINUX, ())
    });
}

#[test]
fn a_port_of_many_connections_is_in_use_until_the_last_one_is_closed() {
    let mut sockets = SocketTable::new(usize::MAX);
    // Two ports whose counts are in one place, at two addresses.
    let locals = ["192.0.2.1:80", "192.0.2.1:84", "192.0.2.2:80"].map(end);
    let mut open = [const { Vec::new() }; 3];
    for (step, client) in (1..=400).map(|port| (port, end(&format!("198.51.100.7:{port}")))) {
        let at = step % 3;
        open[at].push(sockets.connect(locals[at], client, TCP, ()).unwrap());
        // The connections of the first are closed and opened again and again.
        if step % 5 == 0 {
            open[0].drain(..).for_each(|name| sockets.remove(&name).unwrap());
        }
        sockets.validate().unwrap();
        for (local, open) in locals.iter().zip(&open) {
            match sockets.bind(Local::new(*local, TCP), Reuse::No, ()) {
                Ok(bound) => {
                    assert!(open.is_empty());
                    sockets.remove(&bound).unwrap();
                }
                Err(error) => assert!(error.reason == SocketError::InUse && !open.is_empty()),
            }
        }
    }
    for (local, open) in locals.iter().zip(open) {
        open.iter().for_each(|name| sockets.remove(name).unwrap());
        sockets.validate().unwrap();
        assert!(sockets.bind(Local::new(*local, TCP), Reuse::No, ()).is_ok());
    }
}

#[test]
fn many_listeners_cost_as_many_hashes_as_one() {
    for address in ["0.0.0.0", "192.0.2.1", "::"] {
        let costs = [1, 32, 1000].map(|count| {
            let hasher = Counting(Rc::default(), DefaultHashBuilder::with_seed(3));
            let mut sockets = SocketTable::with_hasher(usize::MAX, hasher.clone());
            for port in 1..=count {
                let local = Local::new(SocketAddr::new(ip(address), port), TCP);
                sockets.bind(local, Reuse::No, ()).unwrap();
            }
            let syn = packet(end("198.51.100.7:40000"), end("192.0.2.1:1"), TCP);
            let before = hasher.0.get();
            assert!(sockets.lookup(&syn).is_some());
            hasher.0.get() - before
        });
        assert_eq!(costs, [1; 3], "{address}");
    }
}

/// The ports of `count` new connections to a destination.
fn ports_to(sockets: &mut SocketTable<u32>, there: SocketAddr, count: usize) -> Vec<u16> {
    let mut one = || {
        let name = sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, EPHEMERAL, 0);
        port(name.expect("the range is large enough"))
    };
    (0..count).map(|_| one()).collect()
}

/// The distance from one port to another, modulo the range.
fn distance(from: u16, to: u16) -> usize {
    let (first, count) = (usize::from(*EPHEMERAL.start()), EPHEMERAL.len());
    (usize::from(to) - first + count - (usize::from(from) - first)) % count
}

#[test]
fn ports_to_a_destination_are_consecutive() {
    for seed in 0..20 {
        let mut sockets = SocketTable::with_hasher(usize::MAX, DefaultHashBuilder::with_seed(seed));
        let ports = ports_to(&mut sockets, end("198.51.100.7:443"), 300);
        assert!(ports.windows(2).all(|pair| distance(pair[0], pair[1]) == 1));
        // Released ports do not change the order: the one released last is reused last.
        sockets.clear();
        let next = ports_to(&mut sockets, end("198.51.100.7:443"), 1)[0];
        assert_eq!(distance(ports[299], next), 1);
        // A port in use is skipped.
        let taken = *EPHEMERAL.start() + ((next - EPHEMERAL.start()) + 1) % EPHEMERAL.len() as u16;
        sockets.bind(Local::new(SocketAddr::new(ip("::"), taken), TCP), Reuse::Port, 0).unwrap();
        assert_eq!(distance(next, ports_to(&mut sockets, end("198.51.100.7:443"), 1)[0]), 2);
    }
}

#[test]
fn ports_remain_cyclic_over_many_allocations() {
    let ports = 50_000..=50_002;
    let mut sockets = SocketTable::with_hasher(10, DefaultHashBuilder::with_seed(5));
    let there = end("198.51.100.7:443");
    let mut next = || {
        let name =
            sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, ports.clone(), 0).unwrap();
        sockets.remove(&name).unwrap();
        port(name)
    };
    let mut last = next();
    for count in 0..200_000 {
        let port = next();
        assert_eq!(port, if last == 50_002 { 50_000 } else { last + 1 }, "number {count}");
        last = port;
    }
}

#[test]
fn other_destinations_advance_a_port_counter_only_if_they_share_it() {
    let (mut moved, all) = (0, 400);
    let mut sockets = SocketTable::with_hasher(usize::MAX, DefaultHashBuilder::with_seed(11));
    let there = end("198.51.100.7:443");
    let mut last = ports_to(&mut sockets, there, 1)[0];
    for number in 0..all {
        let other = SocketAddr::new(ip("203.0.113.1"), 1 + number);
        ports_to(&mut sockets, other, 3);
        let next = ports_to(&mut sockets, there, 1)[0];
        assert!([1, 4].contains(&distance(last, next)));
        moved += usize::from(distance(last, next) == 4);
        last = next;
    }
    // RFC 6056 gives ten counters as an example.
    assert!(moved < usize::from(all) / 10, "{moved} of {all} share its counter");
}

#[test]
fn the_first_port_depends_on_the_seed() {
    let destination = |port: u16| SocketAddr::new(ip("198.51.100.7"), port);
    let firsts = |seed| -> Vec<u16> {
        let hasher = DefaultHashBuilder::with_seed(seed);
        (1..=50)
            .map(|number| {
                let mut sockets = SocketTable::with_hasher(10, hasher.clone());
                ports_to(&mut sockets, destination(number), 1)[0]
            })
            .collect()
    };
    let (one, other) = (firsts(1), firsts(2));
    assert_eq!(one, firsts(1), "the same seed, the same ports");
    let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
    assert!(same <= 1, "{same} of 50 are the same under another seed");
    // They are distributed over the whole range.
    let distinct: BTreeSet<u16> = one.iter().copied().collect();
    assert!(distinct.len() >= 48);
    let sixteenths: BTreeSet<u16> =
        one.iter().map(|port| (port - EPHEMERAL.start()) / 1024).collect();
    assert!(sixteenths.len() >= 10, "{sixteenths:?}");
}

#[test]
fn ephemeral_ports_avoid_bound_sockets() {
    with_few_and_many(|sockets| {
        let ports = 50_001..=50_006;
        let there = end("198.51.100.7:443");
        // Each of these occupies its port of 192.0.2.1, with any reuse.
        sockets.bind(tcp("192.0.2.1:50001"), Reuse::Port, "").unwrap();
        sockets.bind(tcp("0.0.0.0:50002"), Reuse::Address, "").unwrap();
        sockets.bind(tcp("[::]:50003"), Reuse::No, "").unwrap();
        // These do not.
        sockets.bind(tcp("192.0.2.2:50004"), Reuse::No, "").unwrap();
        sockets.bind(tcp("[::]:50005").v6_only(), Reuse::No, "").unwrap();
        sockets.bind(udp("192.0.2.1:50006"), Reuse::No, "").unwrap();
        sockets.bind(Local::all_ports(ip("192.0.2.1"), TCP), Reuse::No, "").unwrap();
        let mut got = BTreeSet::new();
        for _ in 0..3 {
            let name = sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, ports.clone(), "");
            got.insert(port(name.unwrap()));
        }
        assert!(got.into_iter().eq(50_004..=50_006));
        let refused = sockets.connect_ephemeral(ip("192.0.2.1"), there, TCP, ports, "given");
        assert_eq!(refused, Err(RejectedSocket { refused: "given", reason: SocketError::NoPort }));
    });
}

#[test]
fn an_ephemeral_bind_selects_a_port_without_other_sockets() {
    with_few_and_many(|sockets| {
        let ports = 50_001..=50_008;
        sockets.bind(udp("192.0.2.1:50001"), Reuse::Port, "").unwrap();
        sockets.bind(udp("0.0.0.0:50002"), Reuse::Port, "").unwrap();
        sockets.bind(udp("[::]:50003"), Reuse::Port, "").unwrap();
        sockets.bind(udp("[2001:db8::1]:50004"), Reuse::Port, "").unwrap();
        sockets.connect(end("192.0.2.2:50005"), end("198.51.100.7:53"), UDP, "").unwrap();
        sockets.connect(end("[2001:db8::1]:50006"), end("[2001:db8::7]:53"), UDP, "").unwrap();
        sockets.bind(tcp("[::]:50007"), Reuse::No, "").unwrap();
        sockets.bind(Local::all_ports(ip("::"), UDP), Reuse::No, "").unwrap();
        let mut free = |local: Local, reuse| {
            let mut names = vec![];
            let refused = loop {
                match sockets.bind_ephemeral(local, ports.clone(), reuse, "given") {
                    Ok(name) => names.push(name),
                    Err(refused) => break refused,
                }
            };
            assert_eq!(refused, RejectedSocket { refused: "given", reason: SocketError::NoPort });
            names.iter().for_each(|name| _ = sockets.remove(name).unwrap());
            names.into_iter().map(port).map(|port| port - 50_000).collect::<BTreeSet<u16>>()
        };
        // The port given in `local` is ignored, and so are sockets on all ports.
        let all = Local::all_ports(ip("0.0.0.0"), UDP);
        for reuse in REUSES {
            assert!(free(udp("[::]:1"), reuse).into_iter().eq(7..=8));
            assert!(free(udp("[::]:50001").v6_only(), reuse).into_iter().eq([1, 2, 5, 7, 8]));
            assert!(free(udp("0.0.0.0:0"), reuse).into_iter().eq([4, 6, 7, 8]));
            assert!(free(all, reuse).into_iter().eq([4, 6, 7, 8]));
            assert!(free(udp("192.0.2.1:0"), reuse).into_iter().eq(4..=8));
            assert!(free(udp("192.0.2.2:0"), reuse).into_iter().eq([1, 4, 6, 7, 8]));
            assert!(free(udp("192.0.2.3:0"), reuse).into_iter().eq([1, 4, 5, 6, 7, 8]));
            assert!(free(udp("[2001:db8::1]:0"), reuse).into_iter().eq([1, 2, 5, 7, 8]));
        }
    });
}

#[test]
fn an_ephemeral_port_may_be_shared_afterwards() {
    let mut sockets = SocketTable::new(10);
    let name = sockets.bind_ephemeral(udp("0.0.0.0:0"), 50_001..=50_001, Reuse::Port, 1).unwrap();
    let Name::Bound { local, .. } = name else { panic!("{name:?} is not bound") };
    assert_eq!(local, udp("0.0.0.0:50001"));
    sockets.bind(local, Reuse::Port, 2).unwrap();
    assert_eq!(sockets.bind(local, Reuse::No, 3).unwrap_err().refused, 3);
}

#[test]
fn bound_ephemeral_ports_are_not_consecutive() {
    let mut sockets = SocketTable::with_hasher(100, DefaultHashBuilder::with_seed(1));
    let any = Local::new("0.0.0.0:0".parse().unwrap(), UDP);
    let mut bind = || port(sockets.bind_ephemeral(any, EPHEMERAL, Reuse::No, 0).unwrap());
    let ports: Vec<u16> = (0..64).map(|_| bind()).collect();
    let near = ports.windows(2).filter(|pair| distance(pair[0], pair[1]) < 16).count();
    assert!(near < 4, "{ports:?}");
}
