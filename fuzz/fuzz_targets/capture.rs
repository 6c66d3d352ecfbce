//! The capture reader with arbitrary bytes: it does not panic, its work is linear in the bytes, and
//! it agrees with a small parser of its own about captures that are not damaged.
#![no_main]

use std::net::IpAddr;

use capture::{Capture, End, Frame, Packet, Packets, Ports, Tunnels, packets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(records) = simple_pcap(bytes) {
        compare(bytes, &records);
    }
    read_file(bytes.to_vec());
    // The last bytes many times: what costs too much for each of them is seen.
    let (head, tail) = bytes.split_at(bytes.len() - bytes.len().min(16));
    if !tail.is_empty() && head.len() > 24 {
        let mut long = head.to_vec();
        long.extend(tail.iter().cycle().take(REPEATED));
        read_file(long);
    }
    if let Some((link, data)) = bytes.split_first_chunk() {
        let link = u16::from_be_bytes(*link);
        read_frame(Frame { time_ns: 0, link, wire_len: data.len() as u32, data });
    }
});

/// The length of a tail of repeated bytes.
const REPEATED: usize = 1 << 16;

/// The decompressed bytes that are read.
const MOST: u64 = 1 << 24;

fn read_file(bytes: Vec<u8>) {
    let size = bytes.len() as u64;
    let Ok(mut capture) = Capture::memory(bytes) else { return };
    let mut frames = 0;
    while let Some(frame) = capture.next_frame() {
        frames += 1;
        read_frame(frame);
        assert!(capture.end().is_none());
        if capture.offset() > MOST {
            return;
        }
    }
    // A few units for each byte, and the first buffer.
    let bound = 20 * (capture.offset() + size) + (1 << 19);
    assert!(capture.work() <= bound, "{} units of work of {bound}", capture.work());
    assert!(capture.end().is_some() && capture.next_frame().is_none());
    assert!(capture.whole_packets() <= frames);
}

/// A record of a pcap: nanoseconds, length on the wire, and bytes.
type Record<'a> = (u64, u32, &'a [u8]);

/// Parses a whole pcap of the usual formats, whose records are not damaged: none is cut, too long,
/// or empty in all fields. Written from the format's description, and not from the reader.
fn simple_pcap(bytes: &[u8]) -> Option<Vec<Record<'_>>> {
    let (is_big, unit) = match bytes.get(..4)? {
        b"\xa1\xb2\xc3\xd4" => (true, 1000),
        b"\xd4\xc3\xb2\xa1" => (false, 1000),
        b"\xa1\xb2\x3c\x4d" => (true, 1),
        b"\x4d\x3c\xb2\xa1" => (false, 1),
        _ => return None,
    };
    let word = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        let number = four.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        Some(if is_big { number } else { number.swap_bytes() })
    };
    word(20)?;
    // Old versions have other records, and a file may be inside another one.
    let is_magic = |four: &[u8]| {
        matches!(four, b"\xa1\xb2\xc3\xd4" | b"\xd4\xc3\xb2\xa1" | b"\xa1\xb2\x3c\x4d")
            || matches!(four, b"\x4d\x3c\xb2\xa1" | b"\xa1\xb2\xcd\x34" | b"\x34\xcd\xb2\xa1")
            || matches!(four, [0x1c, 0, 1, 0xab..=0xac] | [0xab..=0xac, 1, 0, 0x1c])
            || four == b"\x0a\x0d\x0d\x0a"
    };
    let is_old = ![[0, 2, 0, 4], [2, 0, 4, 0]].contains(&bytes[4..8].try_into().ok()?);
    if is_old || bytes[24..].windows(4).any(is_magic) {
        return None;
    }
    let mut records = Vec::new();
    let mut at = 24;
    while at < bytes.len() {
        let [seconds, fraction, captured, wire] =
            [word(at)?, word(at + 4)?, word(at + 8)?, word(at + 12)?];
        let is_zero = [seconds, fraction, captured, wire] == [0; 4];
        let end = at + 16 + usize::try_from(captured).ok()?;
        // Behind an unusual one, the record before it may be found to have a damaged length.
        let is_usual = captured > 0
            && (captured..=1 << 24).contains(&wire)
            && u64::from(fraction) * unit < 1_000_000_000;
        if is_zero || !is_usual || captured > 262_144 || end > bytes.len() {
            return None;
        }
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
        records.push((time, wire, &bytes[at + 16..end]));
        at = end;
    }
    Some(records)
}

/// Compares the frames of the reader with these records, and those of Ethernet and IPv4 without
/// options with their keys.
fn compare(bytes: &[u8], records: &[Record<'_>]) {
    let mut capture = Capture::memory(bytes.to_vec()).expect("it has a header");
    for record in records {
        let frame = capture.next_frame().expect("the record is whole");
        assert_eq!((frame.time_ns, frame.wire_len, frame.data), *record);
        let data = record.2;
        let is_plain = frame.link == 1 && data.len() >= 38 && data[12..15] == [8, 0, 0x45];
        let is_fragment = is_plain && (data[20] & 0x1f, data[21]) != (0, 0);
        if !is_plain || is_fragment || ![6, 17].contains(&data[23]) {
            continue;
        }
        let claimed = u64::from(u16::from_be_bytes([data[16], data[17]]));
        let room = u64::from(record.1).max(data.len() as u64) - 14;
        let Ok(packet) = Packet::of(&frame) else {
            assert!((1..20).contains(&claimed), "it is IPv4");
            continue;
        };
        let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&data[at..at + 4]).expect("4"));
        let port = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
        assert_eq!((packet.key.src(), packet.key.dst()), (address(26), address(30)));
        let length = if claimed == 0 { room } else { claimed.min(room) };
        // The ports are within the packet.
        let ports = if length < 24 { (0, 0) } else { (port(34), port(36)) };
        assert_eq!((packet.key.sport(), packet.key.dport()), ports);
        assert_eq!(packet.key.protocol(), data[23]);
        assert_eq!((packet.bytes, packet.is_overlong), (length, claimed > room));
    }
    assert!(capture.next_frame().is_none() && matches!(capture.end(), Some(End::Whole)));
    assert_eq!((capture.whole_packets(), capture.damages().count()), (records.len() as u64, 0));
}

/// Reads the packets of a frame with all tunnels, with one, and without.
fn read_frame(frame: Frame<'_>) {
    let room = u64::from(frame.wire_len).max(frame.data.len() as u64);
    let mut number = 0;
    let of = |tunnels| packets(&frame, tunnels);
    let all = of(Tunnels::Outer).zip(of(Tunnels::One)).zip(of(Tunnels::All));
    for ((outer, one), inner) in all {
        number += 1;
        if number == 1 {
            assert_eq!(Packet::of(&frame), outer);
        }
        let (Ok(outer), Ok(one), Ok(inner)) = (outer, one, inner) else {
            // The content of a tunnel is not needed.
            assert_eq!((outer, outer), (one, inner));
            continue;
        };
        assert!((outer.depth, one.depth.min(1)) == (0, one.depth) && one.depth <= inner.depth);
        assert!(one.depth > 0 || [one, inner] == [outer; 2]);
        for packet in [outer, one, inner] {
            assert_eq!(packet.time_ns, frame.time_ns);
            assert_eq!(packet.key.reversed().reversed(), packet.key);
            // A log of netfilter has a part of a packet, whose length is in its header.
            assert!(packet.bytes <= room || frame.link == NETFILTER_LOG || is_tapped(frame.link));
            assert!(packet.ports == Ports::Read || packet.flags.is_none());
            assert!(packet.flags.is_some() == packet.numbers.is_some());
            assert!(packet.icmp.is_some() || packet.quoted(&frame).is_none());
            assert_eq!(packet.macs(&frame).is_some(), packet.ethernet.is_some());
            assert!(packet.ethernet.is_none_or(|header| header + 14 <= packet.offset));
        }
    }
    // The path of plain frames returns the packet that the general one does.
    for plain in [Packets::plain_v4, Packets::plain_v6] {
        if let Some(plain) = plain(&of(Tunnels::Outer)) {
            assert!(of(Tunnels::Outer).eq([Ok(plain)]));
        }
        assert_eq!((plain(&of(Tunnels::One)), plain(&of(Tunnels::All))), (None, None));
    }
    // Subframes of an aggregate have headers of 14 bytes, and are aligned.
    assert!(number >= 1 && number <= 1 + frame.data.len() / 16);
}

const NETFILTER_LOG: u16 = 239;

/// Returns whether frames of this link type have one of any other link type in them.
fn is_tapped(link: u16) -> bool {
    [192, 258].contains(&link)
}
