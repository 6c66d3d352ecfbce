//! Lengths in IP headers: nothing behind them is read, and they claim no more than the frame has.

use capture::data::{IP_AT, segment, tcp6, udp};
use capture::{Frame, Packet, Ports, Reject};
use flowtable::TcpFlags;

use super::{ETHERNET, RAW, one};

/// Returns the packet of raw IP of which the first bytes were captured.
fn of(ip: &[u8], wire_len: usize) -> Result<Packet, Reject> {
    Packet::of(&Frame { time_ns: 1, link: RAW, wire_len: wire_len as u32, data: ip })
}

/// Returns an IPv4 packet with this protocol, and a total length that ends behind `claimed` bytes
/// of its payload.
fn v4(protocol: u8, claimed: usize, payload: &[u8]) -> Vec<u8> {
    let mut ip = udp(0, 0, 0)[IP_AT..IP_AT + 20].to_vec();
    ip[2..4].copy_from_slice(&(20 + claimed as u16).to_be_bytes());
    ip[9] = protocol;
    ip.extend(payload);
    ip
}

/// Returns an IPv6 packet likewise.
fn v6(next: u8, claimed: usize, payload: &[u8]) -> Vec<u8> {
    let mut ip = tcp6(0, 0)[IP_AT..IP_AT + 40].to_vec();
    ip[4..6].copy_from_slice(&(claimed as u16).to_be_bytes());
    ip[6] = next;
    ip.extend(payload);
    ip
}

/// A header of TCP with RST and ACK, which is one of UDP, too.
const RESET: [u8; 20] = [4, 87, 8, 174, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x14, 0, 0, 0, 0, 0, 0];

#[test]
fn nothing_behind_the_length_is_read() {
    for (protocol, needed) in [(17, 4), (6, 4), (132, 4), (33, 4), (136, 4)] {
        for claimed in 0..20 {
            for (header, ip) in
                [(20, v4(protocol, claimed, &RESET)), (40, v6(protocol, claimed.max(1), &RESET))]
            {
                let claimed = if header == 40 { claimed.max(1) } else { claimed };
                let packet = of(&ip, ip.len()).expect("it is IP");
                assert_eq!(packet.bytes, (header + claimed) as u64);
                let ports = (packet.key.sport(), packet.key.dport(), packet.ports);
                let expected = match claimed >= needed {
                    true => (1111, 2222, Ports::Read),
                    false => (0, 0, Ports::Cut),
                };
                assert_eq!(ports, expected, "{protocol} {claimed}");
                // A header of TCP has 20 bytes: no host accepts less.
                assert_eq!((packet.flags, packet.numbers), (None, None), "{protocol} {claimed}");
            }
        }
    }
    let ip = v4(6, 20, &RESET);
    let reset = Some(TcpFlags::RST | TcpFlags::ACK);
    assert_eq!(of(&ip, ip.len()).map(|packet| packet.flags), Ok(reset));
}

#[test]
fn flags_are_those_of_complete_headers() {
    let flags = |ip: &[u8]| of(ip, ip.len()).expect("it is IP").flags;
    // The header has options behind the length, or is too short for one.
    for offset in [0x00, 0x40, 0x60, 0xf0] {
        let mut header = RESET;
        header[12] = offset;
        assert_eq!(flags(&v4(6, 20, &header)), None, "{offset:x}");
    }
    // The beginning of a header in a first fragment; the rest is in the next one.
    for (claimed, expected) in [(8, None), (16, Some(TcpFlags(0x14)))] {
        let mut fragment = v4(6, claimed, &RESET);
        fragment[6] = 0x20;
        assert_eq!(flags(&fragment), expected, "{claimed}");
        let extension = [6, 0, 0, 1, 0, 0, 0, 9];
        let fragment = v6(44, 8 + claimed, &[&extension[..], &RESET].concat());
        assert_eq!(flags(&fragment), expected, "{claimed}");
    }
    // A truncated capture of a whole packet has the flags, if it has their byte.
    let ip = v4(6, 20, &RESET);
    assert_eq!(of(&ip[..34], 40).map(|packet| packet.flags.is_some()), Ok(true));
    assert_eq!(of(&ip[..33], 40).map(|packet| packet.flags.is_some()), Ok(false));
}

#[test]
fn padding_of_ethernet_is_not_read() {
    let mut frame = segment(true, "S");
    // A total length of 20: the segment is padding.
    frame[IP_AT + 3] = 20;
    frame.resize(60, 0xff);
    let packet = one(ETHERNET, &frame).expect("it is IP");
    assert_eq!((packet.bytes, packet.ports, packet.flags), (20, Ports::Cut, None));
}

#[test]
fn extension_headers_end_at_the_length() {
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    let chain = [&options[..], &RESET].concat();
    for claimed in 1..=12 {
        let packet = of(&v6(60, claimed, &chain), 68).expect("it is IP");
        let expected = match claimed {
            0..8 => (60, 0, 0),
            8..12 => (17, 0, 0),
            _ => (17, 1111, 2222),
        };
        let key = packet.key;
        assert_eq!((key.protocol(), key.sport(), key.dport()), expected, "{claimed}");
    }
}

#[test]
fn a_total_length_below_the_header_is_malformed() {
    for length in 1..20 {
        let mut ip = v4(17, 0, &RESET);
        ip[3] = length;
        assert_eq!(of(&ip, ip.len()), Err(Reject::ShortLength), "{length}");
    }
    let mut ip = v4(17, 20, &RESET);
    ip[0] = 0x46;
    ip[3] = 23;
    assert_eq!(of(&ip, ip.len()), Err(Reject::ShortLength));
    assert!(Reject::ShortLength.is_malformed() && !Reject::ShortLength.is_unknown());
}

#[test]
fn a_length_beyond_the_frame_counts_what_the_frame_can_hold() {
    for claimed in [20, 21, 1000, 65_515] {
        let ip = v4(17, claimed, &RESET);
        let packet = of(&ip, 40).expect("it is IP");
        assert_eq!((packet.bytes, packet.is_overlong), (40, claimed > 20), "{claimed}");
        // The frame was longer than the capture.
        let packet = of(&ip[..30], 1020).expect("it is IP");
        let expected = (20 + claimed.min(1000) as u64, claimed > 1000);
        assert_eq!((packet.bytes, packet.is_overlong), expected, "{claimed}");
        // A length on the wire that is below that of the captured bytes does not count.
        let packet = of(&ip, 0).expect("it is IP");
        assert_eq!((packet.bytes, packet.is_overlong), (40, claimed > 20), "{claimed}");

        let packet = of(&v6(17, claimed, &RESET), 60).expect("it is IP");
        assert_eq!((packet.bytes, packet.is_overlong), (60, claimed > 20), "{claimed}");
    }
}

/// The number of bytes of a segment before the network card has split it.
const OFFLOADED: usize = 70_000;

#[test]
fn a_length_of_0_is_that_of_the_frame() {
    let mut ip = v4(6, 20, &RESET);
    ip[2..4].fill(0);
    let packet = of(&ip, OFFLOADED).expect("it is IP");
    let payload = packet.numbers.map(|numbers| numbers.payload);
    assert_eq!((packet.bytes, packet.is_overlong), (OFFLOADED as u64, false));
    assert_eq!(payload, Some(OFFLOADED as u64 - 40));

    for next in [6, 17] {
        let packet = of(&v6(next, 0, &RESET), OFFLOADED).expect("it is IP");
        assert_eq!((packet.bytes, packet.key.dport()), (OFFLOADED as u64, 2222));
    }
    let packet = of(&v6(6, 0, &RESET), 2000).expect("it is IP");
    assert_eq!(packet.bytes, 2000, "LSO splits smaller segments, too");
    // An empty packet, in a frame of the minimum size.
    for (next, wire_len) in [(59, 60), (6, 40), (6, 46)] {
        let packet = of(&v6(next, 0, &RESET[..6]), wire_len).expect("it is IP");
        assert_eq!((packet.bytes, packet.key.dport()), (40, 0), "{next} {wire_len}");
    }
}

/// Returns a packet with a jumbo payload option of this length, after other options.
fn jumbogram(before: &[u8], length: u32) -> Vec<u8> {
    let options = [before, &[0xc2, 4], &length.to_be_bytes()].concat();
    let units = (options.len() + 2).div_ceil(8);
    let mut header = [&[6, units as u8 - 1], &options[..]].concat();
    header.resize(8 * units, 0);
    v6(0, 0, &[&header[..], &RESET].concat())
}

#[test]
fn jumbograms_have_their_length_in_an_option() {
    for before in [&[][..], &[0, 0], &[1, 0], &[1, 2, 0, 0, 0, 5, 2, 9, 9]] {
        let ip = jumbogram(before, 69_960);
        let packet = of(&ip, OFFLOADED).expect("it is IP");
        assert_eq!((packet.bytes, packet.is_overlong, packet.key.dport()), (70_000, false, 2222));
        let payload = packet.numbers.map(|numbers| numbers.payload);
        assert_eq!(payload, Some((70_000 - ip.len()) as u64));
        // Padding is not part of it, and it claims no more than the frame has.
        assert_eq!(of(&ip, OFFLOADED + 4).map(|packet| packet.bytes), Ok(70_000));
        let packet = of(&ip, OFFLOADED - 1).expect("it is IP");
        assert_eq!((packet.bytes, packet.is_overlong), (69_999, true));
    }
    // A length that the header could have, or a payload length beside the option, is no jumbogram.
    let ip = jumbogram(&[], 1000);
    assert_eq!(of(&ip, OFFLOADED).map(|packet| packet.bytes), Ok(OFFLOADED as u64));
    let mut ip = jumbogram(&[], 69_960);
    ip[5] = 28;
    assert_eq!(of(&ip, OFFLOADED).map(|packet| packet.bytes), Ok(68));
    // Options that end nowhere.
    for cut in 40..48 {
        let ip = &jumbogram(&[1, 200], 69_960)[..cut];
        assert_eq!(of(ip, OFFLOADED).map(|packet| packet.bytes), Ok(OFFLOADED as u64));
    }
}
