//! `SocketTable` compared with its reference model, which applies every rule to every socket, with
//! the invariants checked after each step.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use model::cases;

use flowtable::memory::{Allocator, Global};
use flowtable::sockets::{Local, Name, Reuse, SocketTable};
use flowtable::{DefaultHashBuilder, FlowKey};
use model::hashers::{Weak, mix};
use model::limited::Limited;
use model::sockets::list::Endpoint;
use model::sockets::{CheckedSockets, PORTS, V4, V6, addresses, packets};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// One step of a test.
#[derive(Clone, Debug)]
enum Op {
    Bind(Endpoint, Reuse),
    /// This many at the same endpoint, or at consecutive ports.
    BindRun(Endpoint, Reuse, u16, bool),
    BindEphemeral(Endpoint, RangeInclusive<u16>, Reuse),
    Connect(SocketAddr, SocketAddr, u8),
    /// From this many consecutive remote ports.
    ConnectRun(SocketAddr, SocketAddr, u8, u16),
    ConnectEphemeral(IpAddr, SocketAddr, u8, RangeInclusive<u16>, u16),
    Remove(usize),
    /// This many from this one on: the oldest first, or every other one.
    RemoveRun(usize, u16, bool),
    /// By the name of a removed socket.
    RemoveGone(usize),
    /// By a name forged from two others, or from a reversed key.
    Forge(usize, usize),
    Set(usize),
    SetFound(usize),
    LookupBatch(Vec<usize>),
    /// The connection of a packet.
    Accept(usize),
    /// A socket, and the number of a packet: one for the socket if possible.
    ConnectBound(usize, usize),
    /// One more socket for the connection of a packet.
    Queue(usize),
    /// A socket at another local end.
    Rebind(usize, Endpoint, Reuse),
    Retain(u32),
    Clear,
    Clone,
}

fn address() -> impl Strategy<Value = IpAddr> {
    select(addresses())
}

/// Mostly one of few, so that both ends have sockets.
fn end() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        8 => select(vec![V4[0].into(), V4[1].into()]),
        6 => select(vec![V6[0].into(), V6[1].into()]),
        2 => address(),
    ]
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![1 => Just(0), 8 => select(PORTS[1..4].to_vec()), 2 => select(PORTS[4..].to_vec())]
}

fn protocol() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(6), 1 => Just(17)]
}

fn at() -> impl Strategy<Value = Endpoint> {
    let port = prop_oneof![4 => port().prop_map(Some), 1 => Just(None)];
    (address(), prop::bool::weighted(0.3), port, protocol()).prop_map(
        |(address, v6_only, port, protocol)| Endpoint { address, v6_only, port, protocol },
    )
}

fn reuse() -> impl Strategy<Value = Reuse> {
    select(vec![Reuse::No, Reuse::Address, Reuse::First, Reuse::Port, Reuse::Port])
}

fn range() -> impl Strategy<Value = RangeInclusive<u16>> {
    #[allow(clippy::reversed_empty_ranges, reason = "an empty range is a test case")]
    let bad = vec![0..=2, 0..=0, 0..=u16::MAX, 3..=2, u16::MAX..=1];
    prop_oneof![
        2 => Just(1..=2),
        2 => Just(80..=80),
        4 => Just(5001..=5008),
        1 => Just(1..=u16::MAX),
        1 => Just(65_534..=65_535),
        1 => select(bad),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let socket = || (end(), port()).prop_map(|(address, port)| SocketAddr::new(address, port));
    let nth = || 0..1000_usize;
    prop_oneof![
        12 => (at(), reuse()).prop_map(|(at, reuse)| Op::Bind(at, reuse)),
        4 => (at(), reuse(), 1..24_u16, any::<bool>())
            .prop_map(|(at, reuse, count, spread)| Op::BindRun(at, reuse, count, spread)),
        4 => (at(), range(), reuse())
            .prop_map(|(at, ports, reuse)| Op::BindEphemeral(at, ports, reuse)),
        10 => (socket(), socket(), protocol())
            .prop_map(|(local, remote, protocol)| Op::Connect(local, remote, protocol)),
        4 => (socket(), socket(), protocol(), 1..40_u16).prop_map(
            |(local, remote, protocol, count)| Op::ConnectRun(local, remote, protocol, count)
        ),
        5 => (end(), socket(), protocol(), range(), 1..10_u16).prop_map(
            |(local, remote, protocol, ports, count)| {
                Op::ConnectEphemeral(local, remote, protocol, ports, count)
            }
        ),
        8 => nth().prop_map(Op::Remove),
        4 => (nth(), 1..24_u16, any::<bool>())
            .prop_map(|(nth, count, every_other)| Op::RemoveRun(nth, count, every_other)),
        2 => nth().prop_map(Op::RemoveGone),
        2 => (nth(), nth()).prop_map(|(one, other)| Op::Forge(one, other)),
        2 => nth().prop_map(Op::Set),
        4 => (0..10_000_usize).prop_map(Op::SetFound),
        2 => vec(0..10_000_usize, 0..80).prop_map(Op::LookupBatch),
        4 => (0..10_000_usize).prop_map(Op::Accept),
        6 => (nth(), 0..10_000_usize).prop_map(|(nth, packet)| Op::ConnectBound(nth, packet)),
        3 => (0..10_000_usize).prop_map(Op::Queue),
        3 => (nth(), at(), reuse()).prop_map(|(nth, at, reuse)| Op::Rebind(nth, at, reuse)),
        1 => (0..3_u32).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => Just(Op::Clone),
    ]
}

struct Run<S, A: Allocator + Clone = Global> {
    pair: CheckedSockets<S, A>,
    packets: Vec<FlowKey>,
    steps: u64,
}

impl<S: BuildHasher + Clone, A: Allocator + Clone> Run<S, A> {
    fn packet(&self, number: usize) -> FlowKey {
        self.packets[number % self.packets.len()]
    }

    /// Turns a socket into a connection by one of the packets that it gets, or by any.
    fn connect_bound(&mut self, nth: usize, number: usize) {
        let Some(name) = self.pair.nth(nth) else { return };
        let packets = (0..200).map(|more| self.packet(number + 7 * more));
        let is_its = |packet: &FlowKey| match name {
            Name::Connected(key) => key == *packet,
            Name::Queued { key, .. } => key == *packet,
            Name::Bound { local, .. } => {
                local.takes(packet.dst()) && local.port().is_none_or(|port| port == packet.dport())
            }
        };
        let mut its = packets.filter(is_its);
        let packet = its.next().unwrap_or_else(|| self.packet(number));
        self.pair.connect_bound(&name, &packet);
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::SetFound(number) => self.pair.set_found(&self.packet(*number)),
            Op::LookupBatch(numbers) => {
                let packets = numbers.iter().map(|number| self.packet(*number));
                self.pair.lookup_batch(&packets.collect::<Vec<FlowKey>>());
            }
            Op::Accept(number) => self.pair.accept(&self.packet(*number)),
            Op::ConnectBound(nth, number) => self.connect_bound(*nth, *number),
            Op::Queue(number) => self.pair.queue(&self.packet(*number)),
            op => apply(&mut self.pair, op),
        }
        // A different sample of the packets after each step.
        self.steps += 1;
        let numbers = (0..40).map(|at| mix(self.steps << 8 | at) as usize % self.packets.len());
        self.pair.compare(numbers.map(|number| &self.packets[number]));
    }

    /// Removes all sockets.
    fn finish(self) {
        let Self { mut pair, packets, .. } = self;
        pair.compare(&packets);
        pair.lookup_batch(&packets);
        while let Some(name) = pair.nth(0) {
            pair.remove(&name);
        }
        pair.compare(&packets[..100]);
    }
}

fn apply<S, A>(pair: &mut CheckedSockets<S, A>, op: &Op)
where
    S: BuildHasher + Clone,
    A: Allocator + Clone,
{
    match op.clone() {
        Op::Bind(at, reuse) => pair.bind(at, reuse),
        Op::BindRun(at, reuse, count, spread) => {
            for more in 0..count {
                let port = at.port.map(|port| if spread { port.wrapping_add(more) } else { port });
                pair.bind(Endpoint { port, ..at }, reuse);
            }
        }
        Op::BindEphemeral(at, ports, reuse) => pair.bind_ephemeral(at, ports, reuse),
        Op::Connect(local, remote, protocol) => pair.connect(local, remote, protocol),
        Op::ConnectRun(local, mut remote, protocol, count) => {
            for _ in 0..count {
                pair.connect(local, remote, protocol);
                remote.set_port(remote.port().wrapping_add(1));
            }
        }
        Op::ConnectEphemeral(local, remote, protocol, ports, count) => {
            for _ in 0..count {
                pair.connect_ephemeral(local, remote, protocol, ports.clone());
            }
        }
        Op::Remove(number) => pair.nth(number).iter().for_each(|name| pair.remove(name)),
        Op::RemoveRun(number, count, every_other) => {
            for more in 0..usize::from(count) {
                let at = if every_other { number + more } else { number };
                pair.nth(at).iter().for_each(|name| pair.remove(name));
            }
        }
        Op::RemoveGone(number) => {
            pair.nth_removed(number).iter().for_each(|name| pair.remove(name));
        }
        Op::Forge(one, other) => {
            let Some(forged) = pair.forged(one, other) else { return };
            pair.set(&forged);
            pair.remove(&forged);
        }
        Op::Set(number) => pair.nth(number).iter().for_each(|name| pair.set(name)),
        Op::Clear => pair.clear(),
        Op::Clone => pair.clone_ours(),
        Op::Retain(number) => pair.retain(number),
        Op::Rebind(number, to, reuse) => {
            pair.nth(number).iter().for_each(|name| pair.rebind(name, to, reuse));
        }
        Op::SetFound(_)
        | Op::LookupBatch(_)
        | Op::Accept(_)
        | Op::ConnectBound(..)
        | Op::Queue(_) => unreachable!("handled by the caller"),
    }
}

fn run<S: BuildHasher + Clone>(limit: usize, hasher: S, ops: &[Op]) {
    let mut run = Run { pair: CheckedSockets::new(limit, hasher), packets: packets(), steps: 0 };
    ops.iter().for_each(|op| run.step(op));
    run.finish();
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..100)
}

/// Full after few steps, around the size of the array, and unlimited.
fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![1 => 0..6_usize, 2 => 30..36_usize, 2 => 40..80_usize, 3 => Just(usize::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1)))]

    #[test]
    fn under_any_hash(ops in ops(), limit in limit(), hasher in select(&Weak::ALL)) {
        run(limit, hasher, &ops);
    }

    #[test]
    fn under_a_keyed_hash(ops in ops(), limit in limit(), seed in any::<u64>()) {
        run(limit, DefaultHashBuilder::with_seed(seed), &ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1)))]

    /// Where memory is short, a socket is refused and the table stays as it was. Only a clone ends
    /// the program.
    #[test]
    fn with_requests_that_fail(
        ops in ops(), limit in limit(), hasher in select(&Weak::ALL), period in 1..6_usize,
    ) {
        let memory = Limited::default();
        let pair = CheckedSockets::new_in(limit, hasher, &memory);
        let mut run = Run { pair, packets: packets(), steps: 0 };
        for op in &ops {
            memory.fail_each(if matches!(op, Op::Clone) { 0 } else { period });
            run.step(op);
        }
        // Removal needs no memory.
        memory.fail_each(1);
        run.finish();
        prop_assert_eq!(memory.bytes(), 0);
    }
}

#[test]
fn a_table_reports_the_memory_that_it_has() {
    let memory = Limited::default();
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut sockets = SocketTable::with_hasher_in(usize::MAX, hasher, &memory);
    assert_eq!((sockets.allocation_size(), memory.bytes()), (0, 0));
    let [local, remote] = ["192.0.2.1", "198.51.100.1"].map(|ip| ip.parse().unwrap());
    for port in 1..if cfg!(miri) { 40 } else { 4000 } {
        sockets.bind(Local::new((local, port).into(), 17), Reuse::No, port).unwrap();
        let there = (remote, port).into();
        sockets.connect_ephemeral(local, there, 6, 5000..=5010, port).unwrap();
        assert_eq!(sockets.allocation_size(), memory.bytes());
    }
    let clone = sockets.clone();
    assert_eq!(sockets.allocation_size() + clone.allocation_size(), memory.bytes());
    drop(clone);
    sockets.retain(|_, _| false);
    assert_eq!(sockets.allocation_size(), memory.bytes());
}
