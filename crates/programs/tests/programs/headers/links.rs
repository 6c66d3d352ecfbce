//! Link types, and headers between them and IP.

use capture::data::{IP_AT, LINKS, tcp6, udp};
use capture::{Frame, Packet, Reject, Tunnels, Vlans, packets};

use super::{DATAGRAM, ETHERNET, all, datagram, one, text};

#[test]
fn ip_is_found_after_every_link_layer() {
    let packet = datagram();
    for (link, front) in LINKS {
        let mut frame = [front, &packet].concat();
        // The length of the only subframe of an aggregate.
        if let Some(at) = subframe_length_at(link, front) {
            frame[at] = packet.len() as u8 + 8;
        }
        assert_eq!(text(&one(link as u16, &frame)), DATAGRAM, "{link} {front:x?}");
        // A cut frame has this packet, or none.
        for length in 0..frame.len() {
            let cut = Frame {
                time_ns: 1,
                link: link as u16,
                wire_len: frame.len() as u32,
                data: &frame[..length],
            };
            let Ok(packet) = Packet::of(&cut) else { continue };
            let is_cut = packet.key.sport() == 0 && packet.key.dport() == 0;
            assert!(is_cut || text(&Ok(packet)) == DATAGRAM, "{link} {front:x?} {length}");
        }
    }
    let packet = tcp6(1, 2)[IP_AT..].to_vec();
    for (link, front) in [(0, &[30, 0, 0, 0][..]), (9, &[0, 0x57]), (101, &[]), (229, &[])] {
        let frame = [front, &packet].concat();
        let expected = "[2001:db8::1]:1 > [2001:db8::2]:2 proto 6 60";
        assert_eq!(text(&one(link, &frame)), expected, "{link} {front:x?}");
    }
}

/// Returns the offset of the low byte of a subframe's length, if the headers end in a subframe.
fn subframe_length_at(link: u32, front: &[u8]) -> Option<usize> {
    const QOS_DATA: u8 = 0x88;
    const IS_AGGREGATE: u8 = 0x80;
    let is_aggregate = link == 105
        && front[0] == QOS_DATA
        && front.get(24).is_some_and(|&qos| qos == IS_AGGREGATE);
    is_aggregate.then_some(26 + 13)
}

/// Headers that announce one another are followed without recursion, up to a number: a crafted
/// frame exhausts neither the stack nor the time of its reader.
#[test]
fn nested_link_layers_are_bounded() {
    const DEPTH: usize = 20_000;
    let taps = b"\x00\x00\x08\x00\xc0\x00\x00\x00".repeat(DEPTH);
    let wires =
        b"\x00\x00\x01\x40\x00\x00\x00\x00DDDDDDSSSSSS\x88\x64\x11\x00\x00\x01\x00\x1e\x02\x81";
    let wires = [b"ddddddssssss\x88\x47".as_slice(), &wires.repeat(DEPTH)].concat();
    let tags = [b"ddddddssssss".as_slice(), &b"\x81\x00\x00\x05".repeat(DEPTH)].concat();
    let labels = [b"ddddddssssss\x88\x47".as_slice(), &b"\x00\x01\x00\x40".repeat(DEPTH)].concat();
    for (link, data) in [(192, taps), (1, wires), (1, tags), (1, labels)] {
        assert_eq!(one(link, &data), Err(Reject::TooManyHeaders), "link type {link}");
    }
    // Those that packets have are fewer.
    let tags = b"\x81\x00\x00\x05".repeat(20);
    let frame = [b"ddddddssssss".as_slice(), &tags, b"\x08\x00", &datagram()].concat();
    assert_eq!(text(&one(ETHERNET, &frame)), DATAGRAM);
}

#[test]
fn vlans_are_those_of_the_last_ethernet_header() {
    let vlans = |front: &[u8], tunnels| {
        let frame = [front, &datagram()].concat();
        let packet = all(ETHERNET, &frame, tunnels)[0].expect("it is IP");
        (packet.vlans, packet.vlans.to_string())
    };
    let of = |outer, inner| Vlans { outer, inner };
    for (tags, expected, text) in [
        (&b""[..], of(0, 0), ""),
        (b"\x81\x00\x00\x0a", of(10, 0), "10"),
        (b"\x88\xa8\x00\x0a\x81\x00\x00\x14", of(10, 20), "10.20"),
        (b"\x93\x00\xef\xff\x81\x00\xe0\x01", of(0xfff, 1), "4095.1"),
        (b"\x81\x00\x00\x01\x81\x00\x00\x02\x81\x00\x00\x03", of(1, 2), "1.2"),
        // A priority only, and a priority before an ID.
        (b"\x81\x00\xe0\x00", of(0, 0), ""),
        (b"\x81\x00\xe0\x00\x81\x00\x00\x07", of(7, 0), "7"),
        // The VLAN of a provider does not count for the customer's frame in it.
        (b"\x88\xa8\x00\x0a\x88\xe7\x00\x00\x00\x01DDDDDDSSSSSS\x81\x00\x00\x14", of(20, 0), "20"),
    ] {
        let front = [b"ddddddssssss", tags, b"\x08\x00"].concat();
        assert_eq!(vlans(&front, Tunnels::Outer), (expected, text.to_owned()), "{tags:x?}");
    }
    let isl = b"\x01\x00\x0c\x00\x00\x00ssssss\x00\x42\xaa\xaa\x03HHH\x00\x0b\x00\x00\x00\x00";
    let front = [&isl[..], b"DDDDDDSSSSSS\x08\x00"].concat();
    assert_eq!(vlans(&front, Tunnels::Outer).0, of(0, 0), "the inner Ethernet header has no tag");
    // Marvell's tag replaces that of a VLAN.
    let frame = [b"ddddddssssss\x60\x00\x20\x05\x08\x00".as_slice(), &datagram()].concat();
    assert_eq!(one(284, &frame).map(|packet| packet.vlans), Ok(of(5, 0)));
    let frame = [b"ddddddssssss\x40\x00\x20\x05\x08\x00".as_slice(), &datagram()].concat();
    assert_eq!(one(284, &frame).map(|packet| packet.vlans), Ok(of(0, 0)));
    assert!(of(1, 2) < of(2, 1) && of(1, 0) < of(1, 2));
}

#[test]
fn mac_addresses_are_those_of_the_last_ethernet_header() {
    let macs = |link, front: &[u8], tunnels| {
        let data = [front, &datagram()].concat();
        let frame = Frame { time_ns: 0, link, wire_len: data.len() as u32, data: &data };
        let packet = packets(&frame, tunnels).next().expect("a packet").expect("it is IP");
        packet.macs(&frame).map(|macs| format!("{} > {}", macs.source, macs.destination))
    };
    let [outer, inner] =
        ["73:73:73:73:73:73 > 64:64:64:64:64:64", "53:53:53:53:53:53 > 44:44:44:44:44:44"];
    for (link, front, expected) in [
        (1, &b"ddddddssssss\x08\x00"[..], Some(outer)),
        (1, b"ddddddssssss\x81\x00\x00\x05\x08\x00", Some(outer)),
        (1, b"ddddddssssss\x88\x47\x00\x01\x11\x40", Some(outer)),
        (1, b"ddddddssssss\x88\xe7\x00\x00\x00\x01DDDDDDSSSSSS\x08\x00", Some(inner)),
        (281, b"ddddddssssss\x00\x00\x00\x01\x08\x00", Some(outer)),
        (284, b"ddddddssssss\x60\x00\x00\x05\x08\x00", Some(outer)),
        (259, b"ppppppppddddddssssss\x08\x00", Some(outer)),
        (113, b"\x00\x00\x00\x01\x00\x06ssssss\x00\x00\x08\x00", None),
        (12, b"", None),
    ] {
        assert_eq!(macs(link, front, Tunnels::Outer).as_deref(), expected, "{front:x?}");
    }
    // EtherIP in IP.
    let mut ip = datagram()[..20].to_vec();
    ip[9] = 97;
    ip[2..4].copy_from_slice(&72_u16.to_be_bytes());
    let front = [b"ddddddssssss\x08\x00", &ip[..], b"\x30\x00DDDDDDSSSSSS\x08\x00"].concat();
    assert_eq!(macs(1, &front, Tunnels::Outer).as_deref(), Some(outer));
    assert_eq!(macs(1, &front, Tunnels::One).as_deref(), Some(inner));
}

#[test]
fn netfilter_logs_of_both_byte_orders_have_the_length_of_the_packet() {
    let whole = udp(1000, 53, 100)[IP_AT..].to_vec();
    // A copy of 60 bytes.
    let copy = &whole[..60];
    let front: [&[u8]; 2] = [
        &[2, 0, 0, 0, 6, 0, 1, 0, 7, 7, 0, 0, 64, 0, 9, 0],
        &[2, 0, 0, 0, 0, 6, 0, 1, 7, 7, 0, 0, 0, 64, 0, 9],
    ];
    for front in front {
        let packet = one(239, &[front, copy].concat()).expect("it is IP");
        assert_eq!((packet.bytes, packet.is_overlong, packet.key.dport()), (128, false, 53));
    }
    assert_eq!(one(239, &[2, 0, 0, 0, 0, 0, 0, 0]), Err(Reject::LinkCut));
}
