//! Wireless frames: aggregates of packets, and headers of all lengths.

use capture::data::udp;
use capture::{NotIp, Reject, Tunnels, WifiKind};

use super::{all, one, text};

/// LLC and SNAP before IPv4.
const SNAP: &[u8] = b"\xaa\xaa\x03\x00\x00\x00\x08\x00";

/// Returns a data frame with this body: the header has the length that its flags require.
fn data(flags: u8, quality: Option<[u8; 2]>, padding: usize, body: &[u8]) -> Vec<u8> {
    let control = if quality.is_some() { 0x88 } else { 0x08 };
    let mut frame = [&[control, flags][..], b"aa111111222222333333ss"].concat();
    if flags & 3 == 3 {
        frame.extend(b"444444");
    }
    frame.extend(quality.unwrap_or_default().iter().take(if quality.is_some() { 2 } else { 0 }));
    if quality.is_some() && flags & 0x80 != 0 {
        frame.extend(b"HTHT");
    }
    frame.extend(vec![0; padding]);
    frame.extend(body);
    frame
}

fn datagram(port: u16) -> Vec<u8> {
    [SNAP, &udp(port, 53, 8)[14..]].concat()
}

fn expected(port: u16) -> String {
    format!("192.0.2.1:{port} > 198.51.100.2:53 proto 17 36")
}

#[test]
fn headers_have_the_length_of_their_flags() {
    for flags in [0x00, 0x01, 0x02, 0x03, 0x80, 0x81, 0x83] {
        for quality in [None, Some([0, 0]), Some([7, 0]), Some([0, 1])] {
            let frame = data(flags, quality, 0, &datagram(1000));
            assert_eq!(text(&one(105, &frame)), expected(1000), "{flags:x} {quality:?}");
            // Radiotap: without flags, with padding.
            let plain = [b"\x00\x00\x08\x00\x00\x00\x00\x00", &frame[..]].concat();
            assert_eq!(text(&one(127, &plain)), expected(1000), "{flags:x} {quality:?}");
            let header = frame.len() - datagram(1000).len();
            let padding = header.next_multiple_of(4) - header;
            let frame = data(flags, quality, padding, &datagram(1000));
            for tap in [
                &b"\x00\x00\x09\x00\x02\x00\x00\x00\x20"[..],
                b"\x00\x00\x11\x00\x03\x00\x00\x00TTTTTTTT\x20",
                b"\x00\x00\x1d\x00\x03\x00\x00\x80\x00\x00\x00\x80\x00\x00\x00\x00TTTTTTTT\x20....",
            ] {
                let padded = [tap, &frame].concat();
                assert_eq!(text(&one(127, &padded)), expected(1000), "{flags:x} {quality:?}");
            }
        }
    }
}

#[test]
fn encrypted_frames_are_read_if_they_were_decrypted() {
    for vector in [&b""[..], b"wepv", b"ccmp\x20vec"] {
        let frame = data(0x41, Some([0, 0]), 0, &[vector, &datagram(1000)].concat());
        assert_eq!(text(&one(105, &frame)), expected(1000), "{vector:x?}");
    }
    let frame = data(0x41, Some([0x80, 0]), 0, &[0x5a; 80]);
    assert_eq!(one(105, &frame), Err(Reject::NotIp(NotIp::Wifi(WifiKind::Encrypted))));
}

/// Returns the subframes of an aggregate, without padding behind the last one.
fn subframes(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![];
    for body in bodies {
        all.resize(all.len().next_multiple_of(4), 0);
        all.extend(b"DDDDDDSSSSSS");
        all.extend((body.len() as u16).to_be_bytes());
        all.extend(body);
    }
    all
}

#[test]
fn aggregates_have_several_packets() {
    let arp = [b"\xaa\xaa\x03\x00\x00\x00\x08\x06".as_slice(), &[0; 28]].concat();
    let bodies = [datagram(1), arp, datagram(2), datagram(3)];
    for check_sequence in [&b""[..], b"FCSF"] {
        for link in [105, 127] {
            let tap = if link == 127 { &b"\x00\x00\x08\x00\x00\x00\x00\x00"[..] } else { b"" };
            let body = [&subframes(&bodies)[..], check_sequence].concat();
            let frame = [tap, &data(0x01, Some([0x80, 0]), 0, &body)].concat();
            let found: Vec<String> = all(link, &frame, Tunnels::All).iter().map(text).collect();
            let arp = "ARP (EtherType 0x0806)".to_owned();
            assert_eq!(found, [expected(1), arp, expected(2), expected(3)]);
        }
    }
    // Cut inside of the third one: its packet is read as far as it goes.
    let whole = data(0x01, Some([0x80, 0]), 0, &subframes(&bodies));
    let found = all(105, &whole[..whole.len() - 60], Tunnels::Outer);
    assert_eq!(found.len(), 3, "{found:?}");
    // Lengths that lead nowhere: as many packets as there are bytes for.
    let empty = data(0x01, Some([0x80, 0]), 0, &[0; 1600]);
    assert_eq!(all(105, &empty, Tunnels::Outer).len(), 100);
    let long = data(0x01, Some([0x80, 0]), 0, &[0xff; 1600]);
    assert_eq!(all(105, &long, Tunnels::Outer).len(), 1);
}
