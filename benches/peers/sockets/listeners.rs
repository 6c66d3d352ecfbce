//! Packets for listeners, and for connections of a host with listeners.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use flowtable::sockets::{Local, Reuse};
use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, TrashMap};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::TCP;
use super::tables::{Array, ByHand, ListenerAddress, Scan, Sockets};
use crate::keys::{Key, random_keys};
use crate::maps::subject::Map;
use crate::results::{Column, Results};
use crate::subject::{Agreement, Subject, Timed, ours, peer, rotation};

/// Listeners that fit the inline table, half of them at the server's address, half at any.
const FEW: u16 = 8;

/// More listeners than fit the inline table.
const MANY: u16 = 32;

/// Connections up to which arrays are measured.
const LARGE: usize = 1000;

const ARRAYS: &str = "two arrays";
pub(super) const SCAN: &str = "scan, as in smoltcp";

/// Packets per round.
const PACKETS: usize = 1 << 16;

/// Columns, and the number of listeners.
const BENCHES: [(&str, u16); 4] = [
    ("hit, 8 listeners", FEW),
    ("SYN, 8 listeners", FEW),
    ("SYN, 32 listeners", MANY),
    ("SYN, no listener", FEW),
];

/// The benchmark of a table with listeners.
trait Host {
    fn run(&self, packets: &[FlowKey]) -> Timed;
}

impl Host for Sockets {
    fn run(&self, packets: &[FlowKey]) -> Timed {
        timed(packets, |packet| self.get(packet))
    }
}

impl<M: Map<FlowKey>> Host for ByHand<M> {
    fn run(&self, packets: &[FlowKey]) -> Timed {
        timed(packets, |packet| self.lookup(packet))
    }
}

/// Connections are asked before listeners.
impl Host for Scan {
    fn run(&self, packets: &[FlowKey]) -> Timed {
        timed(packets, |packet| self.lookup(packet))
    }
}

#[inline(never)]
fn timed<'a>(packets: &[FlowKey], lookup: impl Fn(&FlowKey) -> Option<&'a u64>) -> Timed {
    let start = Instant::now();
    let sum =
        packets.iter().filter_map(lookup).fold(0, |sum: u64, &socket| sum.wrapping_add(socket));
    Timed::new(start.elapsed(), packets.len(), sum)
}

/// Measures lookups with this number of connections.
pub(crate) fn measured(connections: usize, is_quick: bool) -> Results {
    let rounds = if is_quick { 5 } else { 25 };
    let keys = random_keys::<FlowKey>(connections, 1);
    let benches = BENCHES.iter().filter(|(bench, _)| connections > 0 || !bench.starts_with("hit"));
    let columns = benches.clone().map(|&(bench, _)| Column { bench, unit: "ns", n: connections });
    let title = format!(
        "{connections} connections and some listeners: ns for a packet, medians of {rounds} rounds"
    );
    let mut results = Results::new(title, FlowKey::NAME, columns.collect());
    let mut rng = StdRng::seed_from_u64(5);
    for (column, &(bench, listeners)) in benches.enumerate() {
        let hosts = hosts(&keys, listeners);
        if column == 0 {
            results.add_rows(&hosts);
        }
        for round in 0..rounds {
            let packets = packets(bench, &keys, listeners, &mut rng);
            let mut agreement = Agreement::default();
            for row in rotation(round, hosts.len()) {
                let host = &hosts[row];
                // An array is no alternative for large numbers.
                if [ARRAYS, SCAN].contains(&host.name) && connections > LARGE {
                    continue;
                }
                host.benchmark.run(&packets);
                let timed = host.benchmark.run(&packets);
                agreement.check(timed.sum, host.name);
                results.record(row, column, timed.ns);
            }
        }
    }
    results
}

/// The subjects, with equal sockets.
fn hosts(keys: &[FlowKey], listeners: u16) -> [Subject<dyn Host>; 4] {
    let hasher = DefaultHashBuilder::new();
    let mut sockets = Sockets::new(hasher.clone());
    let mut array = ByHand { connections: Array::default(), listeners: Vec::new() };
    let map = TrashMap::<FlowKey, u64>::with_hasher(hasher);
    let mut map = ByHand { connections: map, listeners: Vec::new() };
    let mut scan = Scan::default();
    let is_small = keys.len() <= LARGE;
    for (socket, &key) in (0..).zip(keys) {
        sockets.insert(key, socket);
        map.connections.insert(key, socket);
        if is_small {
            array.connections.insert(key, socket);
            scan.insert(key, socket);
        }
    }
    for port in 0..listeners {
        let address = if port % 2 == 0 { SERVER } else { Ipv4Addr::UNSPECIFIED };
        let (socket, port) = (1_000_000 + u64::from(port), FIRST_PORT + port);
        let local = Local::new(SocketAddr::new(address.into(), port), TCP);
        sockets.0.bind(local, Reuse::No, socket).expect("the port is free");
        let address = (!address.is_unspecified()).then(|| address.into());
        let local = ListenerAddress { address, port, protocol: TCP };
        array.listeners.push((local, socket));
        map.listeners.push((local, socket));
        scan.listen(local, socket);
    }
    [
        ours("sockets", "SocketTable", Box::new(sockets)),
        peer(ARRAYS, Box::new(array)),
        peer("TrashMap, array", Box::new(map)),
        peer(SCAN, Box::new(scan)),
    ]
}

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const FIRST_PORT: u16 = 8000;

fn packets(bench: &str, keys: &[FlowKey], listeners: u16, rng: &mut StdRng) -> Vec<FlowKey> {
    let ports = if bench == "SYN, no listener" { 1..2 } else { FIRST_PORT..FIRST_PORT + listeners };
    let mut packet = || {
        if bench.starts_with("hit") {
            return keys[rng.random_range(0..keys.len())];
        }
        FlowKey::V4(FiveTuple {
            src: rng.random::<u32>().into(),
            dst: SERVER,
            sport: rng.random_range(32_768..61_000),
            dport: rng.random_range(ports.clone()),
            protocol: TCP,
        })
    };
    (0..PACKETS).map(|_| packet()).collect()
}
