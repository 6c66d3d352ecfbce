//! Headers of packets: what precedes IP, the lengths in IP headers, ICMP, and tunnels.
//!
//! The reader of headers is called directly here. `flow_cache.rs` and `cases` have whole captures.

mod icmp;
mod lengths;
mod links;
mod not_ip;
mod options;
mod pseudo_wires;
mod stacks;
mod tunnels;
mod wireless;

use capture::data::{IP_AT, udp};
use capture::{Frame, Packet, Reject, Tunnels, packets};

/// The link type of raw IP.
const RAW: u16 = 101;
const ETHERNET: u16 = 1;

/// Returns the packets of a frame of which all was captured.
fn all(link: u16, data: &[u8], tunnels: Tunnels) -> Vec<Result<Packet, Reject>> {
    let frame = Frame { time_ns: 1, link, wire_len: data.len() as u32, data };
    packets(&frame, tunnels).collect()
}

/// Returns the only packet of a frame.
fn one(link: u16, data: &[u8]) -> Result<Packet, Reject> {
    let mut packets = all(link, data, Tunnels::Outer);
    assert_eq!(packets.len(), 1);
    packets.remove(0)
}

/// Returns the packet of a frame, as `source:port > destination:port proto number` and its length.
fn text(packet: &Result<Packet, Reject>) -> String {
    match packet {
        Ok(packet) => format!("{} {}", packet.key, packet.bytes),
        Err(reject) => reject.to_string(),
    }
}

/// Returns a datagram of 36 bytes without a link layer.
fn datagram() -> Vec<u8> {
    udp(1000, 53, 8)[IP_AT..].to_vec()
}

/// The text of [`datagram`].
const DATAGRAM: &str = "192.0.2.1:1000 > 198.51.100.2:53 proto 17 36";
