//! Keys made of numbers, kinds of packets, and flows of each class.

use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::eviction::Eviction;
use flowtable::flow_cache::{Class, Handle, Initiator, Packet, Protocol, Tenant};
use flowtable::key::flow::FlowName;
use flowtable::{FiveTuple, FlowCache, FlowKey, FourTuple, TcpFlags};

use super::flows::PacketInfo;

/// A key made of a number. The flow of number 0 goes from a socket to itself.
pub trait NumberedKey: FlowName + Debug {
    fn make(number: u32) -> Self;
}

impl NumberedKey for FiveTuple<Ipv4Addr> {
    fn make(number: u32) -> Self {
        let src = Ipv4Addr::from_bits(0x0a00_0001 + number);
        let (dst, sport) = match number {
            0 => (src, 443),
            _ => (Ipv4Addr::new(9 + (number % 3) as u8, 0, 0, 0), 40_000 + number as u16),
        };
        Self { src, dst, sport, dport: 443, protocol: 6 }
    }
}

impl NumberedKey for FourTuple<Ipv6Addr> {
    fn make(number: u32) -> Self {
        let FiveTuple { src, dst, sport, dport, .. } = FiveTuple::make(number);
        Self { src: src.to_ipv6_mapped(), dst: dst.to_ipv6_mapped(), sport, dport }
    }
}

impl NumberedKey for FlowKey {
    fn make(number: u32) -> Self {
        Self::V4(FiveTuple::make(number))
    }
}

/// A zone and a name in it.
impl NumberedKey for (u16, FlowKey) {
    fn make(number: u32) -> Self {
        (number as u16 % 3, FlowKey::make(number / 3))
    }
}

/// Names of one direction only.
impl NumberedKey for u64 {
    fn make(number: u32) -> Self {
        number.into()
    }
}

impl NumberedKey for [u8; 20] {
    fn make(number: u32) -> Self {
        core::array::from_fn(|at| number.to_le_bytes()[at % 4])
    }
}

pub const SYN: TcpFlags = TcpFlags::SYN;
pub const SYN_ACK: TcpFlags = TcpFlags(0x12);
pub const ACK: TcpFlags = TcpFlags::ACK;
pub const FIN_ACK: TcpFlags = TcpFlags(0x11);
pub const RST: TcpFlags = TcpFlags::RST;

pub fn tcp(flags: TcpFlags) -> PacketInfo {
    let (tenant, initiator) = (Tenant::default(), Initiator::ByFlags);
    PacketInfo { protocol: Protocol::Tcp, flags, tenant, initiator, sequence: None }
}

pub fn udp() -> PacketInfo {
    PacketInfo { protocol: Protocol::Udp, ..tcp(TcpFlags(0)) }
}

/// The key of a connection to the host of this number.
pub fn key(number: u32) -> FlowKey {
    let dst = (0x0b00_0000 + number).to_be_bytes().into();
    FlowKey::new([10, 0, 0, 1].into(), dst, 40_000, 443, 6)
        .expect("both addresses are of one version")
}

/// Inserts a flow of this class under the key of this number, without an eviction.
pub fn add<V: Default, P: Eviction>(
    cache: &mut FlowCache<FlowKey, V, P>,
    number: u32,
    class: Class,
) -> Handle {
    let now = cache.now();
    let (first, others) = match class {
        Class::Closing => (RST, &[][..]),
        Class::New => (SYN, &[SYN_ACK][..]),
        Class::Unreplied => (ACK, &[][..]),
        Class::Established => (ACK, &[ACK, ACK][..]),
    };
    let observed = cache.observe(&key(number), Packet::tcp(first), now).expect("there is room");
    assert!(observed.removed().is_none());
    let handle = observed.handle();
    // In turns, beginning with the responder.
    for (key, flags) in [key(number).reversed(), key(number)].iter().zip(others) {
        cache.observe(key, Packet::tcp(*flags), now).expect("the flow is present");
    }
    assert_eq!(cache.resident(handle).map(|flow| flow.class()), Some(class));
    handle
}
