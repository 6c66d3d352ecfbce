//! Protocols other than IP: their numbers and names, and whether IP may be in them.

use capture::{NotIp, Reject, WifiKind};

use super::{ETHERNET, one};

#[test]
fn protocols_are_counted_by_their_numbers() {
    let ethernet = |rest: &[u8]| (ETHERNET, [b"ddddddssssss", rest, &[0; 60]].concat());
    let wifi = |control, flags| (105, [&[control, flags][..], &[0; 60]].concat());
    for ((link, frame), expected, text, is_known) in [
        (ethernet(b"\x08\x06"), NotIp::EtherType(0x0806), "ARP (EtherType 0x0806)", true),
        (ethernet(b"\x88\xb5"), NotIp::EtherType(0x88b5), "EtherType 0x88b5", false),
        (
            ethernet(b"\x81\x00\x00\x05\x88\xcc"),
            NotIp::EtherType(0x88cc),
            "LLDP (EtherType 0x88cc)",
            true,
        ),
        (
            ethernet(b"\x88\xe5\x2c\x00\x00\x00\x00\x01"),
            NotIp::EtherType(0x88e5),
            "MACsec (EtherType 0x88e5)",
            true,
        ),
        (ethernet(b"\x88\x99\x01"), NotIp::EtherType(0x8899), "RRCP (EtherType 0x8899)", true),
        (ethernet(b"\x00\x26\x42\x42\x03"), NotIp::Sap(0x42), "spanning tree (DSAP 0x42)", true),
        (ethernet(b"\x00\x26\x98\x98\x03"), NotIp::Sap(0x98), "DSAP 0x98", false),
        (ethernet(b"\x00\x26\xfe\xfe\x03\x83"), NotIp::Nlpid(0x83), "IS-IS (NLPID 0x83)", true),
        (
            ethernet(b"\x00\x26\xaa\xaa\x03\x00\x00\x0c\x20\x00"),
            NotIp::Snap(0x0c),
            "Cisco (SNAP 0x00000c)",
            true,
        ),
        (
            ethernet(b"\x00\x26\xaa\xaa\x03\x12\x34\x56\x08\x00"),
            NotIp::Snap(0x12_3456),
            "SNAP 0x123456",
            false,
        ),
        (
            ethernet(b"\x88\x64\x11\x00\x00\x01\x00\x1e\xc0\x21"),
            NotIp::Ppp(0xc021),
            "PPP control (PPP 0xc021)",
            true,
        ),
        (
            ethernet(b"\x88\x64\x11\x00\x00\x01\x00\x1e\x00\xfd"),
            NotIp::Ppp(0x00fd),
            "PPP 0x00fd",
            false,
        ),
        (
            ethernet(b"\x89\x4f\x0f\xc2\x02\x06\x00\x00"),
            NotIp::ServicePayload(6),
            "NSH payload 6",
            false,
        ),
        (
            ethernet(b"\x88\x47\x00\x01\x01\x40\x10\x00"),
            NotIp::Labelled,
            "MPLS of another payload",
            false,
        ),
        ((0, vec![7, 0, 0, 0]), NotIp::Family(7), "address family 7", false),
        ((197, vec![0x7f; 40]), NotIp::Record(0x7f), "ERF type 127", false),
        (wifi(0x80, 0), NotIp::Wifi(WifiKind::Management), "management (802.11)", true),
        (wifi(0xd4, 0), NotIp::Wifi(WifiKind::Control), "control (802.11)", true),
        (wifi(0x48, 0), NotIp::Wifi(WifiKind::Empty), "empty (802.11)", true),
        (wifi(0xc8, 0), NotIp::Wifi(WifiKind::Empty), "empty (802.11)", true),
        (wifi(0x08, 0x41), NotIp::Wifi(WifiKind::Encrypted), "encrypted (802.11)", true),
        (wifi(0x0c, 0), NotIp::Wifi(WifiKind::Extension), "802.11", false),
    ] {
        assert_eq!(one(link, &frame), Err(Reject::NotIp(expected)), "{frame:x?}");
        assert_eq!((expected.to_string().as_str(), expected.is_known()), (text, is_known));
        let reject = Reject::NotIp(expected);
        assert_eq!((reject.is_unknown(), reject.is_malformed()), (!is_known, false));
    }
    assert_eq!(one(147, &[0; 60]), Err(Reject::UnknownLink(147)));
    assert!(Reject::UnknownLink(147).is_unknown() && !Reject::UnknownLink(147).is_malformed());
}
