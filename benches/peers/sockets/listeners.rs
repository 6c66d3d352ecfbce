//! Packets for listeners, and for connections beside listeners.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use flowtable::demux::{Local, Reuse};
use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, TrashMap};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::TCP;
use super::tables::{Array, ByHand, Place, Sockets};
use crate::board::{Board, Column};
use crate::contestant::Map;
use crate::entrant::{Agreed, Enters, Entrant, in_turn, ours, peer};
use crate::keys::{Key, random_keys};

/// Half of them at the server's address, half at any.
const FEW: u16 = 8;

/// More listeners than the table keeps in an array.
const SOME: u16 = 32;

/// What is asked in a round.
const PACKETS: usize = 1 << 16;

/// A column: the packets, and how many listeners there are.
const BENCHES: [(&str, u16); 4] = [
    ("hit, 8 listeners", FEW),
    ("SYN, 8 listeners", FEW),
    ("SYN, 32 listeners", SOME),
    ("SYN, no listener", FEW),
];

/// A table with listeners, whose type is not known to who makes it work.
trait Host {
    /// The sum of the sockets found, and nanoseconds for each packet.
    fn run(&self, packets: &[FlowKey]) -> (u64, f64);
}

impl<H: Host + 'static> Enters<dyn Host> for H {
    fn enter(self) -> Box<dyn Host> {
        Box::new(self)
    }
}

impl Host for Sockets {
    fn run(&self, packets: &[FlowKey]) -> (u64, f64) {
        timed(packets, |packet| self.get(packet))
    }
}

impl<M: Map<FlowKey>> Host for ByHand<M> {
    fn run(&self, packets: &[FlowKey]) -> (u64, f64) {
        timed(packets, |packet| self.lookup(packet))
    }
}

#[inline(never)]
fn timed<'a>(packets: &[FlowKey], lookup: impl Fn(&FlowKey) -> Option<&'a u64>) -> (u64, f64) {
    let start = Instant::now();
    let sum =
        packets.iter().filter_map(lookup).fold(0, |sum: u64, &socket| sum.wrapping_add(socket));
    (black_box(sum), start.elapsed().as_nanos() as f64 / packets.len() as f64)
}

/// With so many connections.
pub(crate) fn measured(connections: usize, is_quick: bool) -> Board {
    let rounds = if is_quick { 5 } else { 25 };
    let keys = random_keys::<FlowKey>(connections, 1);
    let benches = BENCHES.iter().filter(|(bench, _)| connections > 0 || !bench.starts_with("hit"));
    let columns = benches.clone().map(|&(bench, _)| Column { bench, unit: "ns", n: connections });
    let title = format!(
        "{connections} connections and some listeners: ns for a packet, medians of {rounds} rounds"
    );
    let mut board = Board::new(title, FlowKey::NAME, columns.collect());
    let mut rng = StdRng::seed_from_u64(5);
    for (column, &(bench, listeners)) in benches.enumerate() {
        let hosts = hosts(&keys, listeners);
        if column == 0 {
            board.add_rows(&hosts);
        }
        for round in 0..rounds {
            let packets = packets(bench, &keys, listeners, &mut rng);
            let mut agreed = Agreed::default();
            for row in in_turn(round, hosts.len()) {
                // An array of so many is nothing that anybody has.
                if row == 1 && connections > 1000 {
                    continue;
                }
                hosts[row].run(&packets);
                let (sum, ns) = hosts[row].run(&packets);
                agreed.on(sum, hosts[row].name);
                board.note(row, column, ns);
            }
        }
    }
    board
}

/// The same sockets for everybody, in the order of the rows.
fn hosts(keys: &[FlowKey], listeners: u16) -> [Entrant<dyn Host>; 3] {
    let hasher = DefaultHashBuilder::new();
    let mut sockets = Sockets::new(hasher.clone());
    let mut array = ByHand { connections: Array::default(), listeners: Vec::new() };
    let map = TrashMap::<FlowKey, u64>::with_hasher(hasher);
    let mut map = ByHand { connections: map, listeners: Vec::new() };
    for port in 0..listeners {
        let address = if port % 2 == 0 { SERVER } else { Ipv4Addr::UNSPECIFIED };
        let (number, port) = (1_000_000 + u64::from(port), FIRST_PORT + port);
        let local = Local::new(SocketAddr::new(address.into(), port), TCP);
        sockets.0.bind(local, Reuse::No, number).expect("the port is free");
        let address = (!address.is_unspecified()).then(|| address.into());
        let place = Place { address, port, protocol: TCP };
        array.listeners.push((place, number));
        map.listeners.push((place, number));
    }
    for (number, &key) in (0..).zip(keys) {
        sockets.insert(key, number);
        map.connections.insert(key, number);
        if keys.len() <= 1000 {
            array.connections.insert(key, number);
        }
    }
    [
        ours("sockets", "SocketTable", sockets),
        peer("two arrays", array),
        peer("TrashMap, array", map),
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
