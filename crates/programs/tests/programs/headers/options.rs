//! Options of the meter: VLANs in the key, MAC addresses in records, and flows inside tunnels.

use std::fs;
use std::path::Path;

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, Record, pcap};
use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::variable_versions::ipfix::lookup::{IANAIPFixField as Element, IPFixField};
use netflow_parser::{NetflowPacket, NetflowParser};

use super::datagram;
use crate::run::Run;

/// Returns a frame of the datagram with these tags.
fn tagged(tags: &[u8]) -> Vec<u8> {
    [b"ddddddssssss", tags, b"\x08\x00", &datagram()].concat()
}

/// Returns a capture of these frames, one each second.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let records: Vec<Record<'_>> =
        (1..).zip(frames).map(|(second, frame)| (second, 0, &frame[..])).collect();
    pcap(LITTLE, MICROSECONDS, ETHERNET, &records)
}

/// Returns these fields of the records in these messages, as numbers.
fn fields<const N: usize>(ipfix: &[u8], elements: [Element; N]) -> Vec<[u64; N]> {
    let result = NetflowParser::default().parse_bytes(ipfix);
    assert!(result.error.is_none(), "{:?}", result.error);
    let sets = result.packets.into_iter().flat_map(|packet| match packet {
        NetflowPacket::IPFix(ipfix) => ipfix.flowsets,
        other => panic!("no IPFIX: {other:?}"),
    });
    let data = sets.filter_map(|set| match set.body {
        FlowSetBody::Data(data) => Some(data.fields),
        _ => None,
    });
    let number = |fields: &[(IPFixField, netflow_parser::FieldValue)], element| {
        let mut bytes = vec![];
        let found = fields.iter().find(|(field, _)| *field == IPFixField::IANA(element));
        let value = &found.unwrap_or_else(|| panic!("no {element:?}")).1;
        value.write_be_bytes(&mut bytes).expect("a vector takes all");
        bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    data.flatten().map(|fields| elements.map(|element| number(&fields, element))).collect()
}

/// Returns the path of an output file that does not exist.
fn output(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path.to_str().expect("the build folder has a name in UTF-8").to_owned()
}

#[test]
fn flows_of_vlans_are_apart_if_wanted() {
    let ten = tagged(b"\x81\x00\x00\x0a");
    let frames = [
        ten.clone(),
        tagged(b"\x81\x00\x00\x14"),
        tagged(b"\x88\xa8\x00\x0a\x81\x00\x00\x14"),
        tagged(b"\x81\x00\xe0\x00"),
        ten,
        tagged(b""),
    ];
    let capture = capture(&frames);
    let run = Run::piped(&capture, usize::MAX, &["--csv", "-"]);
    assert_eq!((run.rows().len(), run.count("flows, each")), (1, 1), "{run:?}");
    assert!(!run.stdout.contains("vlan"), "{run:?}");

    let [json, ipfix] = ["vlans.json", "vlans.ipfix"].map(output);
    for workers in ["1", "2"] {
        let run = Run::piped(
            &capture,
            usize::MAX,
            &[
                "--vlan",
                "--csv",
                "-",
                "--json",
                &json,
                "--ipfix",
                &ipfix,
                "--workers",
                workers,
                "--overwrite",
            ],
        );
        assert_eq!(run.code, Some(0), "{run:?}");
        let column = |row: &str| {
            let fields: Vec<&str> = row.split(',').collect();
            (fields[5].to_owned(), fields.last().map(|&vlan| vlan.to_owned()))
        };
        let rows: Vec<(String, Option<String>)> = run.stdout.lines().skip(1).map(column).collect();
        let expected = [("2", "10"), ("1", "20"), ("1", "10.20"), ("2", "")];
        let row = |(packets, vlan): (&str, &str)| (packets.to_owned(), Some(vlan.to_owned()));
        assert_eq!(rows, expected.map(row));
        assert!(run.stdout.lines().next().is_some_and(|line| line.ends_with(",vlan")), "{run:?}");
        let lines = fs::read_to_string(&json).expect("it was written");
        for (line, (_, vlan)) in lines.lines().zip(expected) {
            assert!(line.contains(&format!(r#","vlan":"{vlan}","#)), "{line}");
        }
        let messages = fs::read(&ipfix).expect("it was written");
        let elements = [
            Element::VlanId,
            Element::Dot1qVlanId,
            Element::Dot1qCustomerVlanId,
            Element::PacketDeltaCount,
        ];
        let expected = [[10, 10, 0, 2], [20, 20, 0, 1], [10, 10, 20, 1], [0, 0, 0, 2]];
        assert_eq!(fields(&messages, elements), expected);
    }
}

/// Each direction of a record has the addresses of its first packet; others are the same flow.
#[test]
fn records_have_mac_addresses_if_wanted() {
    let back = |ip: &[u8]| {
        let mut ip = ip.to_vec();
        ip[12..20].rotate_left(4);
        ip[20..24].rotate_left(2);
        ip
    };
    let ip = datagram();
    let frame = |addresses: &[u8; 12], ip: &[u8]| [addresses, &b"\x08\x00"[..], ip].concat();
    // A gateway answers by another address than the one that its clients use.
    let frames = [
        frame(b"GGGGGGAAAAAA", &ip),
        frame(b"AAAAAArrrrrr", &back(&ip)),
        frame(b"HHHHHHAAAAAA", &ip),
    ];
    let capture = capture(&frames);
    let [json, ipfix] = ["macs.json", "macs.ipfix"].map(output);
    let outputs = ["--csv", "-", "--json", &json, "--ipfix", &ipfix, "--overwrite"];
    let without = Run::piped(&capture, usize::MAX, &outputs);
    assert!(!without.stdout.contains("mac"), "{without:?}");
    for workers in ["1", "2"] {
        let options = [&outputs[..], &["--mac", "--workers", workers]].concat();
        let run = Run::piped(&capture, usize::MAX, &options);
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines[0].ends_with(",src_mac,dst_mac"), "{run:?}");
        let [there, back] =
            [",41:41:41:41:41:41,47:47:47:47:47:47", ",72:72:72:72:72:72,41:41:41:41:41:41"];
        assert!(
            lines.len() == 3 && lines[1].ends_with(there) && lines[2].ends_with(back),
            "{run:?}"
        );
        let line = fs::read_to_string(&json).expect("it was written");
        for (direction, macs) in [("forward", there), ("reverse", back)] {
            let (_, half) = line.split_once(&format!(r#""{direction}":{{"#)).expect("an object");
            let (_, macs) = macs.split_once(',').expect("a column");
            let (source, destination) = macs.split_once(',').expect("two columns");
            let fields = format!(r#""src_mac":"{source}","dst_mac":"{destination}""#);
            assert!(
                half.split_once('}').is_some_and(|(half, _)| half.ends_with(&fields)),
                "{line}"
            );
        }
        let messages = fs::read(&ipfix).expect("it was written");
        let [a, g, r] = [0x41, 0x47, 0x72].map(|byte| byte * 0x0101_0101_0101_u64);
        let elements = [Element::SourceMacaddress, Element::DestinationMacaddress];
        assert_eq!(fields(&messages, elements), [[a, g], [r, a]]);
    }
    // After a report, the addresses are those of the packets after it.
    let options = ["--csv", "-", "--mac", "--active", "1.5", "--linger", "off"];
    let run = Run::piped(&capture, usize::MAX, &options);
    let last = run.stdout.lines().last().expect("there are rows");
    assert!(last.ends_with(",41:41:41:41:41:41,48:48:48:48:48:48"), "{run:?}");
    // IP without an Ethernet header.
    let raw = pcap(LITTLE, MICROSECONDS, 101, &[(1, 0, &ip)]);
    let run = Run::piped(&raw, usize::MAX, &["--csv", "-", "--mac"]);
    assert!(run.stdout.ends_with(",forced,1,,\n") && run.stdout.lines().count() == 2, "{run:?}");
}

#[test]
fn flows_inside_tunnels_are_metered_if_wanted() {
    // VXLAN with GRE in it.
    let inner = datagram();
    let ip = |protocol: u8, payload: &[u8]| {
        let mut ip = inner[..20].to_vec();
        ip[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        (ip[9], ip[15]) = (protocol, protocol);
        [&ip, payload].concat()
    };
    let gre = ip(47, &[b"\x00\x00\x08\x00", &inner[..]].concat());
    let vxlan = [b"\x08\0\0\0\0\0\x2a\0ddddddssssss\x08\x00", &gre[..]].concat();
    let header = [50_000, 4789, 8 + vxlan.len() as u16, 0].map(u16::to_be_bytes).concat();
    let outer = ip(17, &[header, vxlan].concat());
    let frame = [b"ddddddssssss\x08\x00", &outer[..]].concat();
    let capture = capture(&[frame]);
    for (options, expected) in [
        (&[][..], "192.0.2.17,198.51.100.2,17,50000,4789,1,110,"),
        (&["--inside", "one"], "192.0.2.47,198.51.100.2,47,0,0,1,60,"),
        (&["--inside", "all"], "192.0.2.1,198.51.100.2,17,1000,53,1,36,"),
    ] {
        let run = Run::piped(&capture, usize::MAX, &[&["--csv", "-"], options].concat());
        let rows = run.rows();
        assert!(rows.len() == 1 && rows[0].starts_with(expected), "{options:?}: {rows:?}");
    }
    let run = Run::piped(&capture, usize::MAX, &["--inside", "two"]);
    run.assert_refused("--inside two: not one or all");
}
