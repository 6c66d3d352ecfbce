//! Rewriting of packets.

use core::net::IpAddr;

use super::checksum;
use super::function::{PROXY_PORT, is_to_server, proxy};
use super::{Datagram, Refusal};

/// Decrements the TTL, and updates the checksum incrementally.
pub(crate) fn hop(packet: &mut Datagram) -> Result<(), Refusal> {
    // IPv4 has TTL and protocol in one word; IPv6 has no checksum.
    let old = [packet.bytes[8], packet.bytes[9]];
    age(packet)?;
    let new = [packet.bytes[8], packet.bytes[9]];
    if packet.is_v4() {
        change_checksum(packet, 10, &old, &new);
    }
    Ok(())
}

/// Decrements the TTL, and recomputes the checksum of the header.
pub(crate) fn hop_and_sum(packet: &mut Datagram) -> Result<(), Refusal> {
    age(packet)?;
    if packet.is_v4() {
        let length = packet.header_length();
        packet.bytes[10..12].fill(0);
        let checksum = checksum::of(&packet.bytes[..length]);
        packet.bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(())
}

fn age(packet: &mut Datagram) -> Result<(), Refusal> {
    let at = if packet.is_v4() { 8 } else { 7 };
    if packet.bytes[at] <= 1 {
        return Err(Refusal::Expired);
    }
    packet.bytes[at] -= 1;
    Ok(())
}

/// Replaces address and port of the web server by those of the proxy.
pub(crate) fn rename(packet: &mut Datagram) {
    let side = usize::from(is_to_server(&packet.key));
    let (header, address) = (packet.header_length(), packet.addresses()[side]);
    let new = match proxy(&packet.key) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let old = packet.bytes[address..address + new.len()].to_vec();
    packet.bytes[address..address + new.len()].copy_from_slice(&new);
    if packet.is_v4() {
        change_checksum(packet, 10, &old, &new);
    }
    // TCP's checksum covers the addresses, too.
    change_checksum(packet, header + 16, &old, &new);
    let port = header + 2 * side;
    let (old, new) = ([packet.bytes[port], packet.bytes[port + 1]], PROXY_PORT.to_be_bytes());
    packet.bytes[port..port + 2].copy_from_slice(&new);
    change_checksum(packet, header + 16, &old, &new);
}

/// Updates the checksum at an offset incrementally.
fn change_checksum(packet: &mut Datagram, at: usize, old: &[u8], new: &[u8]) {
    let checksum = u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]]);
    let checksum = checksum::after(checksum, old, new);
    packet.bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}
