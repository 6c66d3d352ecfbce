//! The forwarding functions of the router, at increasing cost.
//!
//! ```text
//!     Fast       TTL - 1, incremental checksum
//!     General    header check, route lookup, TTL - 1, checksum of the whole header
//!     Proxy      Fast; address translation to the proxy, with incremental checksums
//!     Active     Fast; a CRC of the captured bytes; repeated packets are dropped
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use flowtable::papers::hash::Crc32;
use flowtable::{EphemeralStore, FlowKey, Timestamp};

use super::rewrite::{hop, hop_and_sum, rename};
use super::{Datagram, Routes};

/// A forwarding function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Fast,
    General,
    Proxy,
    Active,
}

const WEB: [u16; 3] = [80, 443, 8080];
const DNS: u16 = 53;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// The proxy's end of connections.
const PROXY_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PROXY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
pub(crate) const PROXY_PORT: u16 = 3128;

impl Function {
    pub const ALL: [Self; 4] = [Self::Fast, Self::General, Self::Proxy, Self::Active];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "IP, fast",
            Self::General => "IP, general",
            Self::Proxy => "proxy",
            Self::Active => "active",
        }
    }

    /// Returns the function for plain packets of this flow; all others use
    /// [`General`](Self::General).
    pub fn of(key: &FlowKey) -> Self {
        match key.protocol() {
            TCP if WEB.contains(&key.dport()) || WEB.contains(&key.sport()) => Self::Proxy,
            UDP if key.dport() == DNS || key.sport() == DNS => Self::Active,
            ICMP | ICMPV6 => Self::Active,
            _ => Self::Fast,
        }
    }

    /// Returns the destination of packets of this flow.
    pub fn destination(self, key: &FlowKey) -> IpAddr {
        if self == Self::Proxy && is_to_server(key) { proxy(key) } else { key.dst() }
    }
}

pub(crate) fn is_to_server(key: &FlowKey) -> bool {
    WEB.contains(&key.dport())
}

/// Returns the address of the proxy for this version of IP.
pub(crate) fn proxy(key: &FlowKey) -> IpAddr {
    match key {
        FlowKey::V4(_) => PROXY_V4.into(),
        FlowKey::V6(_) => PROXY_V6.into(),
    }
}

/// The reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The header is malformed.
    Malformed,
    /// There is no route to the destination.
    NoRoute,
    /// The TTL has expired.
    Expired,
    /// The packet is a repetition.
    Repeated,
}

/// The state of the forwarding functions.
#[derive(Debug)]
pub struct Forwarder {
    pub routes: Routes,
    /// Number of occurrences of a message within a lifetime from its first one.
    seen: EphemeralStore,
}

impl Default for Forwarder {
    fn default() -> Self {
        let seen = EphemeralStore::new(Self::MESSAGES, Self::LIFETIME);
        Self { routes: Routes::default(), seen: seen.expect("a few megabytes are there") }
    }
}

impl Forwarder {
    /// Maximum number of messages per lifetime; more are forwarded unchecked.
    const MESSAGES: usize = 1 << 16;
    const LIFETIME: Duration = Duration::from_secs(10);
    /// Maximum number of forwarded occurrences of a message per lifetime.
    const MAX_REPEATS: u64 = 1;

    /// Rewrites a packet for sending.
    pub fn forward(
        &mut self,
        function: Function,
        packet: &mut Datagram,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        match function {
            Function::Fast => hop(packet),
            Function::General => self.general(packet),
            Function::Proxy => hop(packet).map(|()| rename(packet)),
            Function::Active => self.active(packet, now),
        }
    }

    fn general(&self, packet: &mut Datagram) -> Result<(), Refusal> {
        self.routes.lookup(packet.destination()).ok_or(Refusal::NoRoute)?;
        let has_right_options =
            !packet.is_v4() || are_options(&packet.bytes[20..packet.header_length()]);
        if !is_sender(packet.key.src()) || !has_right_options {
            return Err(Refusal::Malformed);
        }
        hop_and_sum(packet)
    }

    fn active(&mut self, packet: &mut Datagram, now: Timestamp) -> Result<(), Refusal> {
        let [first, _] = packet.addresses();
        let (names, message) = (Crc32::of(&packet.bytes[first..]), Crc32::of(packet.transport()));
        let tag = u64::from(names) << 32 | u64::from(message);
        if let Ok(times) = self.seen.get_or_insert_with(&tag, now, || 0) {
            *times += 1;
            if *times > Self::MAX_REPEATS {
                return Err(Refusal::Repeated);
            }
        }
        hop(packet)
    }
}

/// Returns whether an address is a valid source.
fn is_sender(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_multicast() || v4.is_broadcast() || v4.is_loopback()),
        IpAddr::V6(v6) => !(v6.is_multicast() || v6.is_loopback()),
    }
}

/// Returns whether options are well formed up to the end.
fn are_options(mut rest: &[u8]) -> bool {
    loop {
        match rest {
            [] | [0, ..] => return true,
            [1, next @ ..] => rest = next,
            [_, length, ..] if *length >= 2 && usize::from(*length) <= rest.len() => {
                rest = &rest[usize::from(*length)..];
            }
            _ => return false,
        }
    }
}
