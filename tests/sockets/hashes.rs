//! Hashes: no operation hashes a key twice, and none hashes a packet that has its hash.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::rc::Rc;

use flowtable::sockets::{Name, Reuse, SocketTable};
use flowtable::{FlowKey, Prehashed};

use crate::{TCP, end, segment, tcp};

/// The bytes of the keys that were hashed.
type Keys = Rc<RefCell<Vec<Vec<u8>>>>;

/// A hasher that records its keys.
#[derive(Clone, Default)]
struct Recorder(Keys);

struct Recording {
    key: Vec<u8>,
    keys: Keys,
}

impl BuildHasher for Recorder {
    type Hasher = Recording;

    fn build_hasher(&self) -> Recording {
        Recording { key: vec![], keys: self.0.clone() }
    }
}

impl Hasher for Recording {
    fn write(&mut self, bytes: &[u8]) {
        self.key.extend(bytes);
    }

    fn finish(&self) -> u64 {
        self.keys.borrow_mut().push(self.key.clone());
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.key);
        hasher.finish()
    }
}

struct Recorded {
    sockets: SocketTable<u32, Recorder>,
    keys: Keys,
    /// How often each operation ran, and how often it hashed a key twice.
    runs: BTreeMap<&'static str, (u32, u32)>,
}

impl Recorded {
    /// A table with this number of connections, and with enough bound and queued sockets that the
    /// maps do not grow soon, which hashes all of their keys.
    fn new(connections: u16) -> Self {
        let recorder = Recorder::default();
        let keys = recorder.0.clone();
        let mut sockets = SocketTable::with_hasher(1000, recorder);
        for number in 0..connections {
            let (host, port) = (number % 10, 40_000 + number);
            let here = if host < 5 { "192.0.2.1:22" } else { "[2001:db8::1]:22" };
            let there = if host < 5 { "198.51.100.7" } else { "[2001:db8::7]" };
            sockets.connect(end(here), end(&format!("{there}:{port}")), TCP, 0).unwrap();
        }
        for number in 1..=140 {
            let here = format!("192.0.2.{number}:{}", 5000 + number);
            for socket in 0..2 {
                sockets.bind(tcp(&here), Reuse::Port, socket).unwrap();
                sockets.queue(&segment("198.51.100.9:1", &here), socket).unwrap();
            }
        }
        Self { sockets, keys, runs: BTreeMap::new() }
    }

    /// Runs an operation that should hash no key twice.
    fn once<R>(
        &mut self,
        what: &'static str,
        operation: impl FnOnce(&mut SocketTable<u32, Recorder>) -> R,
    ) -> R {
        self.keys.borrow_mut().clear();
        let result = operation(&mut self.sockets);
        let keys = self.keys.borrow();
        let distinct: HashSet<&Vec<u8>> = keys.iter().collect();
        let (runs, repeated) = self.runs.entry(what).or_default();
        *runs += 1;
        if distinct.len() < keys.len() {
            *repeated += 1;
            println!("{what}: {keys:x?}");
        }
        result
    }

    /// Checks the operations. Maps also hash keys when they grow, and when a removal moves entries
    /// back, so a few of the runs may hash a key twice.
    fn check(&self) {
        for (what, (runs, repeated)) in &self.runs {
            assert!(repeated * 4 <= *runs, "{what} hashes a key twice: {repeated} of {runs}");
        }
        self.sockets.validate().unwrap();
    }

    /// Checks that an operation does not hash a packet.
    fn never<R>(
        &mut self,
        what: &'static str,
        packet: FlowKey,
        operation: impl FnOnce(&mut SocketTable<u32, Recorder>, Prehashed<&FlowKey>) -> R,
    ) -> R {
        let hash = self.sockets.hash_of(&packet);
        let bytes = self.keys.borrow().last().cloned().expect("it was hashed");
        let result =
            self.once(what, |sockets| operation(sockets, Prehashed { hash, key: &packet }));
        assert!(!self.keys.borrow().contains(&bytes), "{what} hashes the packet");
        result
    }
}

/// For packets of both versions, in an array of connections and in maps. The check inserts at most
/// 32, since a move from the array to the maps hashes all of them.
fn of_all_kinds(mut check: impl FnMut(Recorded, [&'static str; 3])) {
    for connections in [0, 200] {
        check(Recorded::new(connections), ["203.0.113.80", "0.0.0.0", "198.51.100.3"]);
        check(Recorded::new(connections), ["[2001:db8::80]", "[::]", "[2001:db8::3]"]);
    }
}

#[test]
fn a_lookup_hashes_no_key_twice() {
    of_all_kinds(|mut all, [here, any, there]| {
        for (address, port) in [(here, 80), (any, 80), (here, 81), (any, 82)] {
            for socket in 0..3 {
                all.sockets.bind(tcp(&format!("{address}:{port}")), Reuse::Port, socket).unwrap();
            }
        }
        for port in 80..=83 {
            let packet = segment(&format!("{there}:40000"), &format!("{here}:{port}"));
            let found = all.once("lookup", |all| all.lookup(&packet).map(|found| *found.socket));
            assert_eq!(found.is_some(), port < 83);
            let mutable =
                all.once("lookup_mut", |all| all.lookup_mut(&packet).map(|found| *found.socket));
            assert_eq!(found, mutable);
            all.once("lookup_batch", |all| {
                all.lookup_batch([&packet], |_, socket| {
                    assert_eq!(found, socket.map(|found| *found.socket));
                });
            });
            let matches = all.once("matches", |all| all.matches(&packet).count());
            assert_eq!(matches, [6, 3, 3, 0][port - 80]);
            all.never("lookup", packet, |all, packet| _ = all.lookup(packet));
            all.never("lookup_mut", packet, |all, packet| _ = all.lookup_mut(packet));
            all.never("lookup_batch", packet, |all, packet| all.lookup_batch([packet], |_, _| ()));
            all.never("matches", packet, |all, packet| _ = all.matches(packet).count());
        }
        all.check();
    });
}

#[test]
fn a_change_of_connections_hashes_no_key_twice() {
    of_all_kinds(|mut all, [here, any, there]| {
        all.sockets.bind(tcp(&format!("{any}:80")), Reuse::Port, 0).unwrap();
        let packet = |port| segment(&format!("{there}:{port}"), &format!("{here}:80"));
        for port in 1..5 {
            let accepted = all.once("accept", |all| all.accept(&packet(port), 5).unwrap());
            all.once("accept again", |all| all.accept(&packet(port), 6).unwrap_err());
            let queued = all.once("queue", |all| all.queue(&packet(port), 6).unwrap());
            all.once("queue again", |all| all.queue(&packet(port), 7).unwrap());
            all.once("get", |all| assert_eq!(all.get(&queued), Some(&6)));
            all.once("get_mut", |all| assert_eq!(all.get_mut(&accepted), Some(&mut 5)));
            all.once("remove", |all| all.remove(&queued).unwrap());
            if port % 2 == 0 {
                all.once("remove", |all| all.remove(&accepted).unwrap());
            }
            let (here, there) = (end(&format!("{here}:80")), end(&format!("{there}:{port}")));
            let other = (there.ip(), port + 1000).into();
            all.once("connect", |all| all.connect(here, other, TCP, 8).unwrap());
            all.never("accept", packet(port + 2000), |all, packet| all.accept(packet, 9).unwrap());
        }
        all.check();
    });
}

#[test]
fn a_change_of_bound_sockets_hashes_no_key_twice() {
    of_all_kinds(|mut all, [here, any, there]| {
        for port in 80..92 {
            let address = here;
            let [here, any] = [here, any].map(|address| tcp(&format!("{address}:{port}")));
            let bound = [here, any, here, any]
                .map(|local| all.once("bind", |all| all.bind(local, Reuse::Port, 0).unwrap()));
            all.once("bind in conflict", |all| all.bind(here, Reuse::No, 0).unwrap_err());
            all.once("get", |all| assert_eq!(all.get(&bound[0]), Some(&0)));
            let to = tcp(&format!("198.51.100.1:{}", port + 1000));
            all.once("rebind", |all| all.rebind(&bound[0], to, Reuse::No).unwrap());
            let packet = segment(&format!("{there}:7"), &format!("{address}:{port}"));
            let connected =
                all.once("connect_bound", |all| all.connect_bound(&bound[2], &packet).unwrap());
            assert_eq!(connected, Name::Connected(packet));
            all.never("connect_bound again", packet, |all, packet| {
                all.connect_bound(&bound[1], packet).unwrap_err()
            });
            all.once("remove", |all| all.remove(&bound[3]).unwrap());
        }
        all.check();
    });
}

/// A socket that is queued by a wrong hash is in the queue of its connection, as any other.
#[test]
fn a_wrong_hash_of_a_queued_socket_changes_nothing() {
    let packet = segment("198.51.100.1:7", "192.0.2.1:80");
    let mut all: SocketTable<u32> = SocketTable::new(10);
    let first = all.accept(&packet, 0).unwrap();
    for _ in 0..3 {
        let query = Prehashed { hash: all.hash_of(&packet) ^ u64::MAX, key: &packet };
        let names = [1, 2].map(|socket| all.queue(query, socket).unwrap());
        all.validate().unwrap();
        assert_eq!(names.map(|name| all.remove(&name).unwrap()), [1, 2]);
        _ = all.queue(query, 3).unwrap();
        all.retain(|_, socket| *socket == 0);
        all.validate().unwrap();
    }
    assert_eq!(all.remove(&first).unwrap(), 0);
    assert!(all.is_empty());
}
