//! Sockets: lookups among a few connections and among many, opening and closing.

use std::hint::black_box;
use std::net::Ipv4Addr;

use flowtable::sockets::{Name, SocketTable};
use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey};

use super::COUNT;

/// Connections of a small host.
const FEW: u64 = 8;

/// The connection of a client with a number.
fn packet(number: u64) -> FlowKey {
    let src = Ipv4Addr::from_bits((number as u32 + 1).wrapping_mul(0x9e37_79b9));
    let dst = Ipv4Addr::new(198, 51, 100, 1);
    FiveTuple { src, dst, sport: 40_000, dport: 443, protocol: 6 }.into()
}

fn packets(numbers: impl Iterator<Item = u64>) -> Vec<FlowKey> {
    numbers.map(packet).collect()
}

fn table<T: Copy>(connections: u64, socket: T) -> SocketTable<T> {
    let mut sockets = SocketTable::with_hasher(usize::MAX, DefaultHashBuilder::with_seed(1));
    for number in 0..connections {
        sockets.accept(&packet(number), socket).expect("a new connection");
    }
    sockets
}

#[inline(always)]
fn sum(sockets: &SocketTable<u64>, packets: &[FlowKey], none: u64) -> u64 {
    let sockets = packets.iter().map(|packet| sockets.lookup(packet));
    sockets.map(|found| found.map_or(none, |found| *found.socket)).sum()
}

#[inline(never)]
fn count_socket_hit(sockets: &SocketTable<u64>, packets: &[FlowKey]) -> u64 {
    sum(sockets, packets, 4)
}

#[inline(never)]
fn count_socket_few_hit(sockets: &SocketTable<u64>, packets: &[FlowKey]) -> u64 {
    sum(sockets, packets, 3)
}

#[inline(never)]
fn count_socket_few_miss(sockets: &SocketTable<u64>, packets: &[FlowKey]) -> u64 {
    sum(sockets, packets, 2)
}

/// Closes a connection and opens another one.
#[inline(always)]
fn churn<T: Copy>(sockets: &mut SocketTable<T>, old: &[FlowKey], new: &[FlowKey], socket: T) {
    for (old, new) in old.iter().zip(new) {
        sockets.remove(&Name::Connected(*old)).expect("it is open");
        sockets.accept(new, socket).expect("it is closed");
    }
}

#[inline(never)]
fn count_socket_churn(sockets: &mut SocketTable<u64>, old: &[FlowKey], new: &[FlowKey]) {
    churn(sockets, old, new, 1);
}

// Sockets of another type: functions that are called from one place are inlined there.
#[inline(never)]
fn count_socket_few_churn(sockets: &mut SocketTable<u32>, old: &[FlowKey], new: &[FlowKey]) {
    churn(sockets, old, new, 1);
}

pub(crate) fn count() {
    let few = table(FEW, 1);
    let hits = packets((0..COUNT).map(|number| number % FEW));
    assert_eq!(black_box(count_socket_few_hit(&few, &hits)), COUNT);
    let (old, new) = (packets(0..COUNT), packets(COUNT..2 * COUNT));
    assert_eq!(black_box(count_socket_few_miss(&few, &new)), 2 * COUNT);
    let mut few = table(FEW, 1);
    count_socket_few_churn(&mut few, &old, &packets(FEW..COUNT + FEW));
    assert_eq!(few.len() as u64, FEW);
    let mut many = table(COUNT, 1);
    assert_eq!(black_box(count_socket_hit(&many, &old)), COUNT);
    count_socket_churn(&mut many, &old, &new);
    assert_eq!(many.len() as u64, COUNT);
}
