//! Keys of flows, by number, packets, and flows of any class.
#![allow(dead_code, reason = "not every test has all")]

use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::{
    Class, Eviction, FiveTuple, FlowCache, FlowKey, FlowName, FourTuple, Handle, Packet, Protocol,
    TcpFlags, Tenant,
};

use super::naive_flows::Seen;

/// A key that can be made of a number; the flow of number 0 goes from a socket to itself.
pub(crate) trait Keyed: FlowName + Debug {
    fn make(number: u32) -> Self;
}

impl Keyed for FiveTuple<Ipv4Addr> {
    fn make(number: u32) -> Self {
        let src = Ipv4Addr::from_bits(0x0a00_0001 + number);
        let (dst, sport) = match number {
            0 => (src, 443),
            _ => (Ipv4Addr::new(9 + (number % 3) as u8, 0, 0, 0), 40_000 + number as u16),
        };
        Self { src, dst, sport, dport: 443, protocol: 6 }
    }
}

impl Keyed for FourTuple<Ipv6Addr> {
    fn make(number: u32) -> Self {
        let FiveTuple { src, dst, sport, dport, .. } = FiveTuple::make(number);
        Self { src: src.to_ipv6_mapped(), dst: dst.to_ipv6_mapped(), sport, dport }
    }
}

impl Keyed for FlowKey {
    fn make(number: u32) -> Self {
        Self::V4(FiveTuple::make(number))
    }
}

/// A zone, and a name in it.
impl Keyed for (u16, FlowKey) {
    fn make(number: u32) -> Self {
        (number as u16 % 3, FlowKey::make(number / 3))
    }
}

/// Names of one direction only.
impl Keyed for u64 {
    fn make(number: u32) -> Self {
        number.into()
    }
}

impl Keyed for [u8; 20] {
    fn make(number: u32) -> Self {
        core::array::from_fn(|at| number.to_le_bytes()[at % 4])
    }
}

pub(crate) const SYN: TcpFlags = TcpFlags::SYN;
pub(crate) const SYN_ACK: TcpFlags = TcpFlags(0x12);
pub(crate) const ACK: TcpFlags = TcpFlags::ACK;
pub(crate) const FIN_ACK: TcpFlags = TcpFlags(0x11);
pub(crate) const RST: TcpFlags = TcpFlags::RST;

pub(crate) fn tcp(flags: TcpFlags) -> Seen {
    Seen { protocol: Protocol::Tcp, flags, tenant: Tenant::default() }
}

pub(crate) fn udp() -> Seen {
    Seen { protocol: Protocol::Udp, flags: TcpFlags(0), tenant: Tenant::default() }
}

/// A connection of one host to the host of this number.
pub(crate) fn key(number: u32) -> FlowKey {
    let dst = (0x0b00_0000 + number).to_be_bytes().into();
    FlowKey::new([10, 0, 0, 1].into(), dst, 40_000, 443, 6).expect("both are of one version")
}

/// A flow of this class under the key of this number; none may leave for it.
pub(crate) fn add<V: Default, P: Eviction>(
    cache: &mut FlowCache<FlowKey, V, P>,
    number: u32,
    class: Class,
) -> Handle {
    let now = cache.now();
    let (first, answer) = match class {
        Class::Closing => (RST, None),
        Class::New => (SYN, Some(SYN_ACK)),
        Class::Unreplied => (ACK, None),
        Class::Established => (ACK, Some(ACK)),
    };
    let observed = cache.observe(&key(number), Packet::tcp(first), now).expect("there is room");
    assert!(observed.departed.is_none());
    let handle = observed.handle;
    if let Some(answer) = answer {
        cache.observe(&key(number).reversed(), Packet::tcp(answer), now).expect("it is there");
    }
    assert_eq!(cache.resident(handle).map(|flow| flow.class()), Some(class));
    handle
}
