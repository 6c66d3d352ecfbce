//! Messages of ICMP: their keys, and the fields that are shown.

use capture::data::{IP_AT, tcp6, udp};
use capture::{Icmp, Packet, Ports};
use flowtable::FlowKey;

use super::{RAW, one};

/// Returns the packet of a message between two hosts, of IPv4 or IPv6.
fn message(is_v6: bool, is_back: bool, body: &[u8]) -> Packet {
    let mut ip = match is_v6 {
        false => udp(0, 0, 0)[IP_AT..IP_AT + 20].to_vec(),
        true => tcp6(0, 0)[IP_AT..IP_AT + 40].to_vec(),
    };
    match is_v6 {
        false => (ip[3], ip[9]) = (20 + body.len() as u8, 1),
        true => (ip[5], ip[6]) = (body.len() as u8, 58),
    }
    if is_back {
        let (addresses, length) = if is_v6 { (8, 16) } else { (12, 4) };
        ip[addresses..addresses + 2 * length].rotate_left(length);
    }
    ip.extend(body);
    one(RAW, &ip).expect("it is IP")
}

#[test]
fn messages_have_the_keys_of_the_library() {
    let query = |kind, identifier| [kind, 0, 9, 9, 0, identifier, 0, 1];
    for (is_v6, request, reply, error) in [(false, 8, 0, [3, 3]), (true, 128, 129, [1, 4])] {
        let ping = message(is_v6, false, &query(request, 7));
        let pong = message(is_v6, true, &query(reply, 7));
        assert_eq!(pong.key, ping.key.reversed());
        let key = FlowKey::icmp(ping.key.src(), ping.key.dst(), request, 0, 7);
        assert_eq!(Some(ping.key), key);
        assert_eq!(ping.icmp, Some(Icmp { kind: request, code: 0, identifier: 7 }));
        assert_eq!(ping.icmp.map(Icmp::type_code), Some(u16::from(request) << 8));
        assert_eq!((ping.ports, ping.flags), (Ports::None, None));
        let other = message(is_v6, false, &query(request, 8));
        assert_ne!(other.key, ping.key);
        let error = message(is_v6, false, &[error[0], error[1], 9, 9, 0, 7, 0, 0, 0x45]);
        assert_eq!((error.key.sport(), error.key.dport() >> 8), (0, error.icmp.map_or(0, kind)));
        assert_ne!(error.key.normalized().0, ping.key.normalized().0);
    }
    // The answer of a neighbour is no answer to an echo request.
    let solicitation = message(true, false, &[135, 0, 9, 9, 0, 0, 0, 0]);
    let echo = message(true, false, &query(128, 0));
    assert_ne!(solicitation.key, echo.key);
}

fn kind(icmp: Icmp) -> u16 {
    icmp.kind.into()
}

#[test]
fn the_type_is_within_the_packet() {
    for length in 0..8 {
        let packet = message(false, false, &[8, 0, 9, 9, 0, 7, 0, 1][..length]);
        let expected = match length {
            0..2 => (None, 0, 0),
            2..6 => (Some(Icmp { kind: 8, code: 0, identifier: 0 }), 0, 8 << 8),
            _ => (Some(Icmp { kind: 8, code: 0, identifier: 7 }), 7, 8 << 8),
        };
        let key = packet.key;
        assert_eq!((packet.icmp, key.sport(), key.dport()), expected, "{length}");
        // A ping without its identifier counts as cut; an error has no identifier.
        assert_eq!(packet.ports == Ports::Cut, length < 6, "{length}");
        let error = message(false, false, &[3, 3, 9, 9, 0, 0, 0, 0][..length]);
        assert_eq!(error.ports == Ports::Cut, length < 2, "{length}");
    }
    // Padding is no message.
    let mut ip = udp(0, 0, 0)[IP_AT..IP_AT + 20].to_vec();
    (ip[3], ip[9]) = (20, 1);
    ip.extend([8, 0, 9, 9, 0, 7, 0, 1]);
    let packet = one(RAW, &ip).expect("it is IP");
    assert_eq!((packet.icmp, packet.key.dport()), (None, 0));
    // Later fragments have no type.
    (ip[3], ip[7]) = (28, 1);
    let packet = one(RAW, &ip).expect("it is IP");
    assert_eq!((packet.icmp, packet.ports), (None, Ports::LaterFragment));
}

/// ICMP of the other version of IP is a protocol without a header that is known.
#[test]
fn each_version_of_ip_has_its_own_icmp() {
    let mut ip = udp(0x0800, 7, 8)[IP_AT..].to_vec();
    ip[9] = 58;
    assert_eq!(one(RAW, &ip).map(|packet| (packet.icmp, packet.key.dport())), Ok((None, 0)));
    let mut ip = tcp6(0x8000, 7)[IP_AT..].to_vec();
    ip[6] = 1;
    assert_eq!(one(RAW, &ip).map(|packet| (packet.icmp, packet.key.dport())), Ok((None, 0)));
}
