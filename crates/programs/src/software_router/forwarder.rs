//! The forwarder: executes the forwarding functions.

use core::net::IpAddr;
use core::time::Duration;

use flowtable::papers::hash::{Crc32, hash_bytes};
use flowtable::{EphemeralStore, Timestamp};

use super::rewrite::{hop, hop_and_sum, rename};
use super::{Datagram, Function, Refusal, Routes};

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
        let (names, message) =
            (hash_bytes::<Crc32>(&packet.bytes[first..]), hash_bytes::<Crc32>(packet.transport()));
        let tag = names << 32 | message;
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
