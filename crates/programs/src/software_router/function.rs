//! What a router does with a packet: four functions, one more work than the other.
//!
//! ```text
//!     Fast       TTL - 1, checksum by its change
//!     General    the whole header is checked, a route is looked up, TTL - 1, checksum of all
//!     Proxy      Fast; the web server's name becomes the proxy's, in both checksums by the change
//!     Active     Fast; a CRC of all that was captured; the same once more is dropped
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use flowtable::hash::Crc32;
use flowtable::{EphemeralStore, FlowKey, Timestamp};

use super::rewrite::{hop, hop_and_sum, rename};
use super::{Datagram, Routes};

/// What a packet is treated with.
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

    /// For plain packets of this flow; all others are [`General`](Self::General).
    pub fn of(key: &FlowKey) -> Self {
        match key.protocol() {
            TCP if WEB.contains(&key.dport()) || WEB.contains(&key.sport()) => Self::Proxy,
            UDP if key.dport() == DNS || key.sport() == DNS => Self::Active,
            ICMP | ICMPV6 => Self::Active,
            _ => Self::Fast,
        }
    }

    /// Where its packets go.
    pub fn destination(self, key: &FlowKey) -> IpAddr {
        if self == Self::Proxy && is_to_server(key) { proxy(key) } else { key.dst() }
    }
}

pub(crate) fn is_to_server(key: &FlowKey) -> bool {
    WEB.contains(&key.dport())
}

/// The address of the proxy for this version of IP.
pub(crate) fn proxy(key: &FlowKey) -> IpAddr {
    match key {
        FlowKey::V4(_) => PROXY_V4.into(),
        FlowKey::V6(_) => PROXY_V6.into(),
    }
}

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The header is wrong.
    Malformed,
    /// Nothing leads to the destination.
    NoRoute,
    /// It has lived long enough.
    Expired,
    /// It has come before.
    Repeated,
}

/// What the functions work with.
#[derive(Debug)]
pub struct Forwarder {
    pub routes: Routes,
    /// How often a message has come, from its first time on for a lifetime.
    seen: EphemeralStore,
}

impl Default for Forwarder {
    fn default() -> Self {
        let seen = EphemeralStore::new(Self::MESSAGES, Self::LIFETIME);
        Self { routes: Routes::default(), seen: seen.expect("a few megabytes are there") }
    }
}

impl Forwarder {
    /// Messages of one lifetime that are remembered; more are forwarded without.
    const MESSAGES: usize = 1 << 16;
    const LIFETIME: Duration = Duration::from_secs(10);
    /// A message is let through so often in a lifetime.
    const MAX_REPEATS: u64 = 1;

    /// Makes of a packet what is to be sent.
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
        if let Ok(times) = self.seen.get_or_insert_with(tag, now, || 0) {
            *times += 1;
            if *times > Self::MAX_REPEATS {
                return Err(Refusal::Repeated);
            }
        }
        hop(packet)
    }
}

/// Whether a packet can come from there.
fn is_sender(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_multicast() || v4.is_broadcast() || v4.is_loopback()),
        IpAddr::V6(v6) => !(v6.is_multicast() || v6.is_loopback()),
    }
}

/// Whether options follow one another to the end.
fn are_options(mut rest: &[u8]) -> bool {
    loop {
        match rest {
            [] | [0, ..] => return true,
            [1, behind @ ..] => rest = behind,
            [_, length, ..] if *length >= 2 && usize::from(*length) <= rest.len() => {
                rest = &rest[usize::from(*length)..];
            }
            _ => return false,
        }
    }
}
