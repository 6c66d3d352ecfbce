//! Frames for the router, and checks of the frames that it sends, by another parser.

use std::net::IpAddr;

use etherparse::{
    IpNumber, Ipv4Header, Ipv6Header, NetSlice, PacketBuilder, SlicedPacket, TransportSlice,
};
use programs::software_router::{Datagram, Frame};

/// Returns an echo request of IPv4 with this sequence number.
pub(crate) fn ping(number: u16, ttl: u8) -> Vec<u8> {
    let headers = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 7], [198, 51, 100, 1], ttl)
        .icmpv4_echo_request(1, number);
    let mut bytes = vec![];
    headers.write(&mut bytes, b"are you there?").expect("a vector takes all");
    bytes
}

/// Returns a TCP segment in IPv4.
pub(crate) fn tcp(src: [u8; 4], dst: [u8; 4], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let headers = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(src, dst, 64)
        .tcp(ports[0], ports[1], 1000, 500);
    let mut bytes = vec![];
    headers.write(&mut bytes, payload).expect("a vector takes all");
    bytes
}

/// Returns a TCP segment in IPv6.
pub(crate) fn tcp6(src: &str, dst: &str, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [src, dst] = [src, dst].map(|address| address.parse::<std::net::Ipv6Addr>().unwrap());
    let headers = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6(src.octets(), dst.octets(), 9)
        .tcp(ports[0], ports[1], 1000, 500);
    let mut bytes = vec![];
    headers.write(&mut bytes, payload).expect("a vector takes all");
    bytes
}

/// Checks a frame, and compares it with the original packet.
pub(crate) fn assert_right(frame: &Frame, was: &Datagram) {
    let ip = &frame.bytes[14..];
    assert_eq!((ip.len(), &frame.bytes[..5]), (was.bytes.len(), &[2, 0, 0, 0, 1][..]));
    let (before, after, header) = if was.is_v4() {
        let (after, _) = Ipv4Header::from_slice(ip).expect("a header");
        let (before, _) = Ipv4Header::from_slice(&was.bytes).expect("a header");
        assert_eq!(after.header_checksum, after.calc_header_checksum());
        assert_eq!(after.time_to_live, before.time_to_live - 1);
        let same = Ipv4Header { time_to_live: before.time_to_live, ..after.clone() };
        let same = Ipv4Header { header_checksum: before.header_checksum, ..same };
        let same = Ipv4Header { source: before.source, destination: before.destination, ..same };
        assert_eq!(same, before);
        let names = |header: &Ipv4Header| [header.source, header.destination].map(IpAddr::from);
        (names(&before), names(&after), after.header_len())
    } else {
        let (after, _) = Ipv6Header::from_slice(ip).expect("a header");
        let (before, _) = Ipv6Header::from_slice(&was.bytes).expect("a header");
        assert_eq!(after.hop_limit, before.hop_limit - 1);
        let names = |header: &Ipv6Header| [header.source, header.destination].map(IpAddr::from);
        (names(&before), names(&after), 40)
    };
    let ports = [was.key.sport(), was.key.dport()];
    let is_web = |port: u16| [80, 443, 8080].contains(&port);
    if was.key.protocol() != IpNumber::TCP.0 || !ports.into_iter().any(is_web) {
        assert_eq!((before, &ip[header..]), (after, &was.bytes[header..]));
        return;
    }
    // The address and port of the web server are the proxy's; otherwise only the checksum has
    // changed.
    let side = usize::from(is_web(ports[1]));
    let proxy: IpAddr = if was.is_v4() { "198.18.0.1" } else { "2001:db8:3::1" }.parse().unwrap();
    assert_eq!((after[side], after[1 - side]), (proxy, before[1 - side]));
    let port_at = header + 2 * side;
    assert_eq!(ip[port_at..port_at + 2], 3128_u16.to_be_bytes());
    let changed = [port_at, port_at + 1, header + 16, header + 17];
    for (at, pair) in ip.iter().zip(&was.bytes).enumerate().skip(header) {
        assert!(changed.contains(&at) || pair.0 == pair.1, "byte {at}");
    }
}

/// Returns the checksum of a TCP segment, and the right one; `None` if the segment is truncated, or
/// of another protocol.
pub(crate) fn tcp_checksums(ethernet: &[u8]) -> Option<[u16; 2]> {
    let sliced = SlicedPacket::from_ethernet(ethernet).ok()?;
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
    let right = match sliced.net? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            tcp.to_header().calc_checksum_ipv4_raw(
                header.source(),
                header.destination(),
                tcp.payload(),
            )
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            tcp.to_header().calc_checksum_ipv6_raw(
                header.source(),
                header.destination(),
                tcp.payload(),
            )
        }
        NetSlice::Arp(_) => return None,
    };
    Some([tcp.checksum(), right.ok()?])
}
