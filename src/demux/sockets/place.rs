//! Where a socket is bound, in three words: what the maps hash and compare.
//!
//! A [`Local`] is written byte by byte. To read it back in words means to wait for all of these bytes, which took
//! more than half of the time of a look-up.

use core::hash::{Hash, Hasher};
use core::net::IpAddr;

use super::Local;
use super::local::Scope;
use crate::flow::FlowKey;

/// A [`Local`], in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Kind of scope, protocol and port.
    what: u64,
    /// Upper half of the address, and the lower one.
    address: [u64; 2],
}

/// Kinds of scopes: any address, that of a version, one of it.
const ANY: u64 = 0;
const ANY_V4: u64 = 1;
const V4: u64 = 2;
const ANY_V6: u64 = 3;
const V6: u64 = 4;

impl Place {
    pub(super) fn new(local: &Local) -> Self {
        let (kind, address) = match local.scope {
            Scope::Address(IpAddr::V4(address)) => (V4, address.to_bits().into()),
            Scope::Address(IpAddr::V6(address)) => (V6, address.to_bits()),
            Scope::AnyV4 => (ANY_V4, 0),
            Scope::AnyV6 => (ANY_V6, 0),
            Scope::Any => (ANY, 0),
        };
        Self::of(kind, address, local.port, local.protocol)
    }

    #[inline]
    fn of(kind: u64, address: u128, port: Option<u16>, protocol: u8) -> Self {
        let port = port.map_or(1 << 16, u64::from);
        let what = kind << 32 | u64::from(protocol) << 24 | port;
        Self { what, address: [(address >> 64) as u64, address as u64] }
    }

    /// Where a packet finds sockets, at its port or at all: its address, any of its version, any at all.
    #[inline]
    pub(super) fn of_packet(packet: &FlowKey, all_ports: bool) -> [Self; 3] {
        let (one, any, address) = match packet {
            FlowKey::V4(key) => (V4, ANY_V4, key.dst.to_bits().into()),
            FlowKey::V6(key) => (V6, ANY_V6, key.dst.to_bits()),
        };
        let port = (!all_ports).then(|| packet.dport());
        [(one, address), (any, 0), (ANY, 0)]
            .map(|(kind, address)| Self::of(kind, address, port, packet.protocol()))
    }
}

impl Hash for Place {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.what);
        self.address.iter().for_each(|&half| state.write_u64(half));
    }
}
