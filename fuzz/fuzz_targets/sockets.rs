//! `SocketTable` compared with a reference model, every invariant checked every few steps,
//! under good and weak hashers.
#![no_main]

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use flowtable::FlowKey;
use flowtable::sockets::Reuse;
use libfuzzer_sys::fuzz_target;
use model::hashers::Weak;
use model::sockets::list::Endpoint;
use model::sockets::{CheckedSockets, PORTS, addresses, packets};

/// The maximum number of steps and of sockets, and the steps from one comparison to the next: a
/// thousand inputs a second find more than longer ones that are compared after each step.
const MANY: usize = 8;
const LIMIT: usize = 40;
const EVERY: usize = 4;

#[derive(Arbitrary, Debug)]
struct Input {
    limit: u8,
    hasher: u8,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    /// This many, at one port or at consecutive ones.
    Bind(Place, Sharing, Run),
    BindEphemeral(Place, Sharing, Ports),
    /// This many, from consecutive remote ports.
    Connect(End, End, Proto, Run),
    ConnectEphemeral(End, End, Proto, Ports, Run),
    /// This many from this one on: the oldest first, or every other one.
    Remove(u8, Run),
    RemoveGone(u8),
    /// By a name forged from two others, or from a reversed key.
    Forge(u8, u8),
    Set(u8),
    SetFound(Packet),
    LookupBatch([Packet; 3], u8),
    Accept(Packet),
    ConnectBound(u8, Packet),
    Queue(Packet),
    Rebind(u8, Place, Sharing),
    Retain(u8),
    Clear,
    Clone,
}

/// The upper bits are a count of up to 16, the lowest bit is a flag.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Run(u8);

impl Run {
    fn count(self) -> u16 {
        1 + u16::from(self.0 >> 1) % 16
    }

    fn is_spread(self) -> bool {
        self.0 & 1 == 1
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Sharing {
    No,
    Address,
    First,
    Port,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Proto(bool);

impl Proto {
    fn number(self) -> u8 {
        if self.0 { 17 } else { 6 }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Place {
    end: End,
    v6_only: bool,
    all_ports: bool,
    protocol: Proto,
}

/// An address and a port.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct End {
    address: u8,
    port: u8,
}

impl End {
    fn ip(self) -> IpAddr {
        let all = addresses();
        all[usize::from(self.address) % all.len()]
    }

    fn socket(self) -> SocketAddr {
        SocketAddr::new(self.ip(), PORTS[usize::from(self.port) % PORTS.len()])
    }
}

impl Place {
    fn at(self) -> Endpoint {
        let (address, port) = (self.end.ip(), self.end.socket().port());
        let port = (!self.all_ports).then_some(port);
        Endpoint { address, v6_only: self.v6_only, port, protocol: self.protocol.number() }
    }
}

impl Sharing {
    fn reuse(self) -> Reuse {
        match self {
            Self::No => Reuse::No,
            Self::Address => Reuse::Address,
            Self::First => Reuse::First,
            Self::Port => Reuse::Port,
        }
    }
}

/// A range of ports, mostly a short one.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Ports {
    first: u8,
    more: u8,
}

impl Ports {
    fn range(self) -> RangeInclusive<u16> {
        let first = [1, 80, 5001, 65_530, 0][usize::from(self.first) % 5];
        match self.more {
            // Empty, unless it begins at 0.
            255 => first..=first.saturating_sub(1),
            254 => first..=u16::MAX,
            more => first..=first.saturating_add(u16::from(more) % 12),
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Packet(u16);

impl Packet {
    fn of(self, packets: &[FlowKey]) -> FlowKey {
        packets[usize::from(self.0) % packets.len()]
    }
}

fuzz_target!(|input: Input| {
    static PACKETS: LazyLock<Vec<FlowKey>> = LazyLock::new(packets);
    let packets = &*PACKETS;
    // All pairs of sockets are compared, so there are few.
    let limit = usize::from(input.limit).min(LIMIT);
    let mut checked = CheckedSockets::new(limit, Weak::from_byte(input.hasher));
    for (at, op) in input.ops.into_iter().take(MANY).enumerate() {
        match op {
            Op::SetFound(packet) => checked.set_found(&packet.of(packets)),
            Op::LookupBatch(some, count) => {
                let some = some.map(|packet| packet.of(packets));
                let burst = some.into_iter().cycle().take(count.into());
                checked.lookup_batch(&burst.collect::<Vec<FlowKey>>());
            }
            Op::Accept(packet) => checked.accept(&packet.of(packets)),
            Op::ConnectBound(number, packet) => {
                let name = checked.nth(number.into());
                name.iter().for_each(|name| checked.connect_bound(name, &packet.of(packets)));
            }
            Op::Queue(packet) => checked.queue(&packet.of(packets)),
            op => step(&mut checked, op),
        }
        if at % EVERY == EVERY - 1 {
            // One of 127 packets, from another start each time.
            checked.compare(packets.iter().skip(at % 127).step_by(127));
        }
    }
    checked.compare(packets.iter().skip(usize::from(input.hasher) % 127).step_by(127));
});

fn step(checked: &mut CheckedSockets<Weak>, op: Op) {
    match op {
        Op::Bind(place, sharing, run) => {
            let at = place.at();
            for more in 0..run.count() {
                let spread = if run.is_spread() { more } else { 0 };
                let port = at.port.map(|port| port.wrapping_add(spread));
                checked.bind(Endpoint { port, ..at }, sharing.reuse());
            }
        }
        Op::BindEphemeral(place, sharing, ports) => {
            checked.bind_ephemeral(place.at(), ports.range(), sharing.reuse());
        }
        Op::Connect(local, remote, protocol, run) => {
            let mut remote = remote.socket();
            for _ in 0..run.count() {
                checked.connect(local.socket(), remote, protocol.number());
                remote.set_port(remote.port().wrapping_add(1));
            }
        }
        Op::ConnectEphemeral(local, remote, protocol, ports, run) => {
            for _ in 0..run.count() {
                let (local, remote) = (local.ip(), remote.socket());
                checked.connect_ephemeral(local, remote, protocol.number(), ports.range());
            }
        }
        Op::Remove(number, run) => {
            for more in 0..run.count() {
                let number = u16::from(number) + if run.is_spread() { more } else { 0 };
                checked.nth(number.into()).iter().for_each(|name| checked.remove(name));
            }
        }
        Op::RemoveGone(number) => {
            checked.nth_removed(number.into()).iter().for_each(|name| checked.remove(name));
        }
        Op::Forge(one, other) => {
            let Some(forged) = checked.forged(one.into(), other.into()) else { return };
            checked.set(&forged);
            checked.remove(&forged);
        }
        Op::Set(number) => checked.nth(number.into()).iter().for_each(|name| checked.set(name)),
        Op::Clear => checked.clear(),
        Op::Clone => checked.clone_ours(),
        Op::Retain(number) => checked.retain(number.into()),
        Op::Rebind(number, to, sharing) => {
            let name = checked.nth(number.into());
            name.iter().for_each(|name| checked.rebind(name, to.at(), sharing.reuse()));
        }
        Op::SetFound(_)
        | Op::LookupBatch(..)
        | Op::Accept(_)
        | Op::ConnectBound(..)
        | Op::Queue(_) => unreachable!("handled by the caller"),
    }
}
