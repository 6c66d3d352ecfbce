//! Tunnels: the outermost packet, the one in the first tunnel, or the innermost.

use capture::data::{IP_AT, tcp6, udp};
use capture::{Frame, Packet, Ports, Tunnels, packets};

use super::{DATAGRAM, ETHERNET, RAW, all, datagram, text};

/// Ethernet with a VLAN tag before IPv4.
const INNER: &[u8] = b"DDDDDDSSSSSS\x81\x00\x00\x14\x08\x00";

const ADDRESSES: &[u8; 12] = b"DDDDDDSSSSSS";

/// Returns an IPv4 packet of this protocol between the ends of a tunnel.
fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = udp(0, 0, 0)[IP_AT..IP_AT + 20].to_vec();
    ip[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    ip[9] = protocol;
    ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    ip.extend(payload);
    ip
}

/// Returns an IPv6 packet with this next header.
fn ip6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = tcp6(0, 0)[IP_AT..IP_AT + 40].to_vec();
    ip[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    ip[6] = next;
    ip.extend(payload);
    ip
}

/// Returns a UDP datagram to a port, in IPv4.
fn to_port(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [50_000, port, length, 0].map(u16::to_be_bytes).concat();
    ip(17, &[&header, payload].concat())
}

/// Returns an authentication header before this protocol, with a check value of 12 bytes.
fn authentication(next: u8) -> [u8; 24] {
    let mut header = [0x5a; 24];
    header[..4].copy_from_slice(&[next, 4, 0, 0]);
    header
}

/// Returns a datagram in a data frame of 802.11 with this frame control.
fn wireless(control: u8, flags: u8) -> Vec<u8> {
    let front = [control, flags].into_iter().chain(*b"aa111111222222333333ss\x00\x00");
    front.chain(*b"\xaa\xaa\x03\x00\x00\x00\x08\x00").chain(datagram()).collect()
}

const AH: u8 = 51;
const IP_IN_IP: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHER_IP: u8 = 97;
const L2TP: u8 = 115;
const MPLS: u8 = 137;

/// All tunnels with a datagram in them: a name, the outer packet, and the VLAN of the inner frame.
fn tunnels() -> Vec<(&'static str, Vec<u8>, u16)> {
    let inner = datagram();
    let ethernet = [INNER, &inner].concat();
    let gre = |front: &[u8], content: &[u8]| ip(GRE, &[front, content].concat());
    let over = |port, front: &[u8], content: &[u8]| to_port(port, &[front, content].concat());
    vec![
        ("IP in IP", ip(IP_IN_IP, &inner), 0),
        ("4in6", ip6(IP_IN_IP, &inner), 0),
        ("4in6 with options", ip6(60, &[&[IP_IN_IP, 0, 1, 4, 0, 0, 0, 0], &inner[..]].concat()), 0),
        ("GRE", gre(b"\x00\x00\x08\x00", &inner), 0),
        ("GRE, checksum", gre(b"\x80\x00\x08\x00cc\x00\x00", &inner), 0),
        ("GRE, all fields", gre(b"\xb0\x00\x08\x00cc\x00\x00kkkkssss", &inner), 0),
        ("GRE over IPv6", ip6(GRE, &[b"\x00\x00\x08\x00", &inner[..]].concat()), 0),
        ("GRE, VLAN", gre(b"\x00\x00\x81\x00\x00\x14\x08\x00", &inner), 20),
        ("NVGRE", gre(b"\x20\x00\x65\x58kkkk", &ethernet), 20),
        ("GRE, MPLS", gre(b"\x00\x00\x88\x47\x00\x01\x01\x40", &inner), 0),
        ("GRE, WCCP 1", gre(b"\x00\x00\x88\x3e", &inner), 0),
        ("GRE, WCCP 2", gre(b"\x00\x00\x88\x3e\x00\x01\x02\x03", &inner), 0),
        ("PPTP", gre(b"\x30\x81\x88\x0b\x00\x30ccssssaaaa\xff\x03\x00\x21", &inner), 0),
        ("PPTP, compressed", gre(b"\x20\x01\x88\x0b\x00\x30cc\x21", &inner), 0),
        ("ERSPAN I", gre(b"\x00\x00\x88\xbe", &ethernet), 20),
        ("ERSPAN II", gre(b"\x10\x00\x88\xbessss\x10\x01\x00\x01\x00\x00\x00\x00", &ethernet), 20),
        (
            "ERSPAN III",
            gre(b"\x10\x00\x22\xebssss\x20\x01\x00\x01tttt\x00\x00\x00\x00", &ethernet),
            20,
        ),
        (
            "ERSPAN III, platform",
            gre(b"\x10\x00\x22\xebssss\x20\x01\x00\x01tttt\x00\x00\x00\x01pppppppp", &ethernet),
            20,
        ),
        (
            "ERSPAN III, IP",
            gre(b"\x10\x00\x22\xebssss\x20\x01\x00\x01tttt\x00\x00\x08\x00", &inner),
            0,
        ),
        ("AH and IP in IP", ip(AH, &[&authentication(IP_IN_IP)[..], &inner].concat()), 0),
        ("AH and 4in6", ip6(AH, &[&authentication(IP_IN_IP)[..], &inner].concat()), 0),
        (
            "AH and GRE",
            ip(AH, &[&authentication(GRE)[..], b"\x00\x00\x08\x00", &inner[..]].concat()),
            0,
        ),
        ("EtherIP", ip(ETHER_IP, &[b"\x30\x00", &ethernet[..]].concat()), 20),
        ("L2TPv3", ip(L2TP, &[b"\x00\x00\x00\x07", &ethernet[..]].concat()), 20),
        ("L2TPv3, cookie", ip(L2TP, &[b"\x00\x00\x00\x07cookie!!", &ethernet[..]].concat()), 20),
        ("MPLS in IP", ip(MPLS, &[b"\x00\x01\x01\x40", &inner[..]].concat()), 0),
        ("L2TP", over(1701, b"\x00\x02\x00\x01\x00\x01\xff\x03\x00\x21", &inner), 0),
        (
            "L2TP, all fields",
            over(
                1701,
                b"\x4a\x02\x00\x40\x00\x01\x00\x01\x00\x01\x00\x01\x00\x02oo\x00\x21",
                &inner,
            ),
            0,
        ),
        ("GTP-U", over(2152, b"\x30\xff\x00\x24\x00\x00\x00\x07", &inner), 0),
        (
            "GTP-U, sequence",
            over(2152, b"\x32\xff\x00\x28\x00\x00\x00\x07\x00\x01\x00\x00", &inner),
            0,
        ),
        (
            "GTP-U, extensions",
            over(
                2152,
                b"\x34\xff\x00\x34\x00\x00\x00\x07\x00\x00\x00\x85\x01\x10\x01\xc0\
                  \x02\x00\x00\x00\x00\x00\x00\x00",
                &inner,
            ),
            0,
        ),
        ("LISP", over(4341, b"\x80\x00\x00\x01\x00\x00\x00\x01", &inner), 0),
        ("GRE in UDP", over(4754, b"\x00\x00\x08\x00", &inner), 0),
        ("VXLAN", over(4789, b"\x08\x00\x00\x00\x00\x00\x2a\x00", &ethernet), 20),
        ("VXLAN, policy", over(8472, b"\x88\x00\x00\x05\x00\x00\x2a\x00", &ethernet), 20),
        ("VXLAN-GPE, Ethernet", over(4790, b"\x0c\x00\x00\x03\x00\x00\x2a\x00", &ethernet), 20),
        ("VXLAN-GPE, IP", over(4790, b"\x0c\x00\x00\x01\x00\x00\x2a\x00", &inner), 0),
        (
            "VXLAN-GPE, NSH",
            over(4790, b"\x0c\x00\x00\x04\x00\x00\x2a\x00\x0f\xc2\x02\x01\x00\x00\x0a\xff", &inner),
            0,
        ),
        ("CAPWAP", over(5247, b"\x00\x10\x00\x00\x00\x00\x00\x00", &ethernet), 20),
        ("CAPWAP, 802.11", over(5247, b"\x00\x10\x03\x00\x00\x00\x00\x00", &wireless(0x88, 1)), 0),
        (
            "CAPWAP of Cisco, 802.11",
            over(5247, b"\x00\x20\x03\x20\x00\x00\x00\x00\x04infodat", &wireless(1, 0x88)),
            0,
        ),
        ("Geneve", over(6081, b"\x00\x00\x65\x58\x00\x00\x2a\x00", &ethernet), 20),
        ("Geneve, options", over(6081, b"\x02\x00\x08\x00\x00\x00\x2a\x00oooooooo", &inner), 0),
        ("MPLS in UDP", over(6635, b"\x00\x01\x01\x40", &inner), 0),
        ("TZSP", over(37008, b"\x01\x00\x00\x01\x0a\x01\x7f\x00\x01", &ethernet), 20),
    ]
}

#[test]
fn one_tunnel_is_entered_if_wanted() {
    for (name, outer, vlan) in tunnels() {
        let of = |tunnels| all(RAW, &outer, tunnels)[0].expect("it is IP");
        let around = of(Tunnels::Outer);
        assert_eq!((around.bytes, around.depth), (outer.len() as u64, 0), "{name}");
        assert_ne!(text(&Ok(around)), DATAGRAM, "{name}");
        for tunnels in [Tunnels::One, Tunnels::All] {
            let inside = of(tunnels);
            assert_eq!((text(&Ok(inside)).as_str(), inside.depth), (DATAGRAM, 1), "{name}");
            assert_eq!((inside.vlans.outer, inside.is_overlong), (vlan, false), "{name}");
        }
        // A cut tunnel has the inner packet, one without ports, or the outer one.
        for length in 0..outer.len() {
            let wire_len = outer.len() as u32;
            let frame = Frame { time_ns: 1, link: RAW, wire_len, data: &outer[..length] };
            let Ok(packet) = packets(&frame, Tunnels::All).next().expect("there is one") else {
                continue;
            };
            let is_cut = (packet.key.sport(), packet.key.dport()) == (0, 0);
            let is_inner = text(&Ok(packet)) == DATAGRAM || is_cut;
            assert!(packet.depth == 0 || is_inner, "{name} {length}: {packet:?}");
        }
    }
}

#[test]
fn ipv6_in_tunnels() {
    let inner = tcp6(1, 2)[IP_AT..].to_vec();
    let expected = "[2001:db8::1]:1 > [2001:db8::2]:2 proto 6 60";
    for (name, outer) in [
        ("6in4", ip(IPV6, &inner)),
        ("6in6", ip6(IPV6, &inner)),
        ("GRE", ip(GRE, &[b"\x00\x00\x86\xdd", &inner[..]].concat())),
        ("Teredo", to_port(3544, &inner)),
        ("Teredo, origin", to_port(3544, &[b"\x00\x00ppaaaa", &inner[..]].concat())),
        (
            "Teredo, authentication and origin",
            to_port(3544, &[b"\x00\x01\x01\x02iaannnnnnnnc\x00\x00ppaaaa", &inner[..]].concat()),
        ),
        ("GTP-U", to_port(2152, &[b"\x30\xff\x00\x3c\x00\x00\x00\x07", &inner[..]].concat())),
    ] {
        assert_eq!(text(&all(RAW, &outer, Tunnels::One)[0]), expected, "{name}");
    }
}

#[test]
fn all_tunnels_or_one_are_entered() {
    for (name, outer, _) in tunnels() {
        let ether_type = if outer[0] >> 4 == 6 { b"\x86\xdd" } else { b"\x08\x00" };
        let front = [b"\x08\0\0\0\0\0\x2a\0", &ADDRESSES[..], ether_type].concat();
        let twice = to_port(4789, &[front, outer.clone()].concat());
        let of = |tunnels| all(RAW, &twice, tunnels)[0].expect("it is IP");
        let [outermost, middle, innermost] = [Tunnels::Outer, Tunnels::One, Tunnels::All].map(of);
        assert_eq!(outermost.key.dport(), 4789, "{name}");
        assert_eq!((middle.bytes, middle.depth), (outer.len() as u64, 1), "{name}");
        assert_eq!((text(&Ok(innermost)).as_str(), innermost.depth), (DATAGRAM, 2), "{name}");
    }
    // Tunnels in tunnels are entered to a depth that packets do not have.
    let nested = |depth| (0..depth).fold(datagram(), |inner, _| ip(IP_IN_IP, &inner));
    let packet = all(RAW, &nested(10), Tunnels::All)[0].expect("it is IP");
    assert_eq!((text(&Ok(packet)).as_str(), packet.depth), (DATAGRAM, 10));
    let packet = all(RAW, &nested(1000), Tunnels::All)[0].expect("it is IP");
    assert_eq!((packet.key.protocol(), packet.depth), (IP_IN_IP, 16));
}

#[test]
fn tunnels_without_ip_count_by_their_own_headers() {
    let arp = [&b"DDDDDDSSSSSS\x08\x06"[..], &[0; 46]].concat();
    for (name, outer) in [
        ("an address resolution", to_port(4789, &[b"\x08\0\0\0\0\0\x2a\0", &arp[..]].concat())),
        ("no network", to_port(4789, &[b"\0\0\0\0\0\0\x2a\0", INNER, &datagram()].concat())),
        ("signalling of GTP", to_port(2152, &[b"\x32\x01\x00\x04", &[0; 8][..]].concat())),
        ("control of L2TP", to_port(1701, b"\xc8\x02\x00\x0c\x00\x01\x00\x01\x00\x00\x00\x00")),
        ("control of L2TPv3", ip(L2TP, &[&[0; 4], INNER, &datagram()].concat())),
        ("a keepalive", ip(GRE, &[0; 4])),
        ("source routes", ip(GRE, &[b"\x40\x00\x08\x00rrrrrrrr", &datagram()[..]].concat())),
        ("another version", ip(GRE, &[b"\x00\x02\x08\x00", &datagram()[..]].concat())),
        ("encrypted CAPWAP", to_port(5247, &[b"\x01\0\0\0", &datagram()[..]].concat())),
        (
            "a later fragment of CAPWAP",
            to_port(5247, &[b"\x00\x10\x00\x80\0\0\0\x08", INNER, &datagram()].concat()),
        ),
        ("nothing", ip(IP_IN_IP, &[])),
        ("garbage", ip(IP_IN_IP, &[0x5a; 40])),
        ("an IPv6 packet that is IPv4", ip(IPV6, &datagram())),
    ] {
        let of = |tunnels| all(RAW, &outer, tunnels)[0].expect("it is IP");
        assert_eq!(of(Tunnels::All), of(Tunnels::Outer), "{name}");
    }
}

/// The first fragment has the headers, and the part of the bytes that it holds; later ones have
/// nothing but the outer header.
#[test]
fn authentication_headers_are_passed() {
    let udp = &datagram()[20..];
    let header = authentication(17);
    for (outer, length) in [
        (ip(AH, &[&header[..], udp].concat()), 20 + 24 + 16),
        (ip(AH, &[&authentication(AH)[..], &header, udp].concat()), 20 + 48 + 16),
    ] {
        let packet = all(RAW, &outer, Tunnels::Outer)[0].expect("it is IP");
        assert_eq!((packet.key.protocol(), packet.bytes), (17, length));
        assert_eq!((packet.key.sport(), packet.key.dport()), (1000, 53));
    }
    // A cut header leaves the last known protocol, and no ports.
    let packet = all(RAW, &ip(AH, &header[..12]), Tunnels::Outer)[0].expect("it is IP");
    assert_eq!((packet.key.protocol(), packet.ports), (17, Ports::Cut));
    let packet = all(RAW, &ip(AH, &[17]), Tunnels::Outer)[0].expect("it is IP");
    assert_eq!((packet.key.protocol(), packet.ports), (AH, Ports::None));
}

#[test]
fn fragments_in_tunnels_have_no_ports() {
    for (flags, ports) in [([0x20, 0], Ports::Read), ([0, 2], Ports::LaterFragment)] {
        let mut inner = datagram();
        inner[6..8].copy_from_slice(&flags);
        let outer = ip(GRE, &[b"\x00\x00\x08\x00", &inner[..]].concat());
        let packet = all(RAW, &outer, Tunnels::All)[0].expect("it is IP");
        assert_eq!((packet.ports, packet.depth, packet.bytes), (ports, 1, 36));
        let sport = if ports == Ports::Read { 1000 } else { 0 };
        assert_eq!(packet.key.sport(), sport);
    }
}

#[test]
fn fragments_of_tunnels() {
    let inner = udp(1000, 53, 1400)[IP_AT..].to_vec();
    let whole = ip(IP_IN_IP, &inner);
    let mut first = whole[..20 + 800].to_vec();
    (first[2], first[3], first[6]) = (3, 0x34, 0x20);
    let packet = all(RAW, &first, Tunnels::All)[0].expect("it is IP");
    assert_eq!((packet.key.dport(), packet.bytes, packet.is_overlong), (53, 800, false));
    let mut later = first;
    later[7] = 100;
    let packet = all(RAW, &later, Tunnels::All)[0].expect("it is IP");
    assert_eq!((packet.key.protocol(), packet.bytes, packet.depth), (IP_IN_IP, 820, 0));
}

/// The tunnel's length bounds the inner packet.
#[test]
fn a_packet_claims_no_more_than_its_tunnel_has() {
    let mut inner = datagram();
    inner[2] = 0x10;
    let frame = [b"ddddddssssss\x08\x00", &ip(IP_IN_IP, &inner)[..], &[0; 100]].concat();
    let packet: Packet = all(ETHERNET, &frame, Tunnels::One)[0].expect("it is IP");
    assert_eq!((packet.bytes, packet.is_overlong), (36, true));
}
