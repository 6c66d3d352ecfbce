//! The payload of MPLS: IP by a valid header, otherwise Ethernet with or without control word.

use capture::data::{IP_AT, tcp6};
use capture::{NotIp, Reject};

use super::{DATAGRAM, ETHERNET, datagram, one, text};

/// Returns a frame with this payload below one label.
fn labelled(payload: &[u8]) -> Vec<u8> {
    [b"ddddddssssss\x88\x47\x00\x01\x01\x40", payload].concat()
}

const CONTROL_WORDS: [&[u8]; 3] = [b"", b"\x00\x00\x00\x00", b"\x00\x00\x12\x34"];

/// The first bytes of hosts' addresses: those that look like IP headers, like a control word, and
/// all others.
#[test]
fn pseudo_wires_are_known_for_all_addresses() {
    for first in 0..=u8::MAX {
        for second in [0x00, 0x45, 0xff] {
            for control_word in CONTROL_WORDS {
                let ethernet = [first, second, 0, 36, 5, 6, 2, 2, 2, 2, 2, 2, 8, 0];
                let frame = labelled(&[control_word, &ethernet, &datagram()].concat());
                assert_eq!(text(&one(ETHERNET, &frame)), DATAGRAM, "{first:x} {control_word:x?}");
                let tagged = [&ethernet[..12], &[0x81, 0, 0, 5, 8, 0]].concat();
                let frame = labelled(&[control_word, &tagged, &datagram()].concat());
                assert_eq!(text(&one(ETHERNET, &frame)), DATAGRAM, "{first:x} {control_word:x?}");
            }
        }
    }
}

#[test]
fn other_frames_in_pseudo_wires_have_their_reason() {
    for first in [0x00, 0x02, 0x45, 0x60, 0xaa] {
        for control_word in CONTROL_WORDS {
            let arp = [&[first, 0, 0, 36, 5, 6, 2, 2, 2, 2, 2, 2, 8, 6][..], &[0; 46]].concat();
            let frame = labelled(&[control_word, &arp].concat());
            let expected = Err(Reject::NotIp(NotIp::EtherType(0x0806)));
            assert_eq!(one(ETHERNET, &frame), expected, "{first:x} {control_word:x?}");
            let bridge = b"\x01\x80\xc2\x00\x00\x00ssssss\x00\x07\x42\x42\x03bpdu";
            let frame = labelled(&[control_word, bridge].concat());
            assert_eq!(one(ETHERNET, &frame), Err(Reject::NotIp(NotIp::Sap(0x42))));
        }
    }
}

#[test]
fn ip_below_labels_has_a_valid_header() {
    assert_eq!(text(&one(ETHERNET, &labelled(&datagram()))), DATAGRAM);
    // With the padding of a short frame, and with options.
    let padded = [&datagram()[..], &[0; 10]].concat();
    assert_eq!(text(&one(ETHERNET, &labelled(&padded))), DATAGRAM);
    let v6 = tcp6(1, 2)[IP_AT..].to_vec();
    let expected = "[2001:db8::1]:1 > [2001:db8::2]:2 proto 6 60";
    assert_eq!(text(&one(ETHERNET, &labelled(&v6))), expected);
    assert_eq!(text(&one(ETHERNET, &labelled(&[&v6[..], &[0; 4]].concat()))), expected);
    // A checksum that is left to the network card.
    let mut offloaded = datagram();
    offloaded[10..12].fill(0);
    assert_eq!(text(&one(ETHERNET, &labelled(&offloaded))), DATAGRAM);
    for (at, change) in [(0, 0x01), (3, 0x10), (8, 0x10), (10, 0x80), (16, 0x01)] {
        let mut wrong = datagram();
        wrong[at] ^= change;
        let expected = Err(Reject::NotIp(NotIp::Labelled));
        assert_eq!(one(ETHERNET, &labelled(&wrong)), expected, "byte {at}");
    }
    // Channels of operation and maintenance begin with 1.
    let channel = labelled(&[0x10, 0, 0, 0x21, 1, 2, 3, 4]);
    assert_eq!(one(ETHERNET, &channel), Err(Reject::NotIp(NotIp::Labelled)));
}
