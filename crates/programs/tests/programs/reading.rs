//! The reader of captures: files in files, old formats, packets without times, and the work of a
//! search after a damage.

use std::task::Poll;

use capture::data::{
    BIG, ETHERNET, Endian, LITTLE, MICROSECONDS, MODIFIED, NANOSECONDS, enhanced, interface, pcap,
    section, simple, udp,
};
use capture::{Capture, Damage, DamageKind, End};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Returns the time and the source port of each packet, and the number of damages.
fn read(bytes: &[u8]) -> (Vec<(u64, u16)>, u64) {
    let mut capture = Capture::memory(bytes.to_vec()).unwrap_or_else(|error| panic!("{error}"));
    let mut packets = vec![];
    while let Some(frame) = capture.next_frame() {
        let port = frame.data.get(34..36).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
        packets.push((frame.time_ns, port));
    }
    (packets, capture.damages().count())
}

pub(crate) fn ports(bytes: &[u8]) -> Vec<u16> {
    read(bytes).0.into_iter().map(|(_, port)| port).collect()
}

/// A pcap with packets of these source ports, a second apart.
pub(crate) fn file(endian: Endian, magic: u32, seconds: u32, ports: &[u16]) -> Vec<u8> {
    let frames: Vec<_> = ports.iter().map(|port| udp(*port, 53, 8)).collect();
    let records: Vec<_> =
        (seconds..).zip(&frames).map(|(second, frame)| (second, 5, &frame[..])).collect();
    pcap(endian, magic, ETHERNET, &records)
}

fn sections(endian: Endian, ports: &[u16]) -> Vec<u8> {
    let packets = ports.iter().map(|port| enhanced(endian, 0, 7_000_000, &udp(*port, 53, 8)));
    [section(endian), interface(endian, None, None)]
        .into_iter()
        .chain(packets)
        .collect::<Vec<_>>()
        .concat()
}

/// Captures of all formats.
fn files(ports: &[u16]) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = [LITTLE, BIG].map(|endian| sections(endian, ports)).into();
    for magic in [MICROSECONDS, NANOSECONDS, MODIFIED] {
        files.extend([LITTLE, BIG].map(|endian| file(endian, magic, 1_000_000, ports)));
    }
    files
}

#[test]
fn a_file_header_begins_another_file() {
    for first in files(&[1, 2]) {
        for second in files(&[3, 4]) {
            let (packets, damages) = read(&[&first[..], &second].concat());
            let ports: Vec<u16> = packets.iter().map(|packet| packet.1).collect();
            assert_eq!((&ports[..], damages), (&[1, 2, 3, 4][..], 0), "{first:x?} {second:x?}");
        }
    }
}

/// A capturing program was killed while it wrote, and another one has the same pipe.
#[test]
fn a_file_behind_a_cut_one_is_found() {
    for first in files(&[1, 2, 3]) {
        let second = file(BIG, NANOSECONDS, 5, &[4, 5, 6, 7, 8, 9]);
        let last = first.len() - 50;
        for end in last - 10..first.len() {
            let ports = ports(&[&first[..end], &second].concat());
            assert!(ports.ends_with(&[4, 5, 6, 7, 8, 9]), "{end}: {ports:?} {first:x?}");
            assert!(ports.starts_with(&[1, 2]), "{end}: {ports:?}");
        }
    }
}

/// Pcapng: the other file is shorter than the rest of the block that was cut.
#[test]
fn a_short_file_behind_a_cut_block_is_found() {
    for endian in [LITTLE, BIG] {
        let first = [sections(endian, &[1]), enhanced(endian, 0, 9, &udp(2, 53, 1000))].concat();
        for second in files(&[3]) {
            for end in first.len() - 900..first.len() - 800 {
                let bytes = [&first[..end], &second].concat();
                assert_eq!(ports(&bytes), [1, 3], "{end}: {second:x?}");
            }
        }
    }
}

/// Parts of captures in packets: the header of a file alone, records that end with the packet, and
/// one that does not.
fn parts() -> Vec<Vec<u8>> {
    let mut parts = vec![];
    for inner in files(&[11, 12, 13, 14, 15]) {
        let (record, long) = (inner.len() / 6, inner.len());
        parts.extend([24, 28, long - 2 * record, long - 20, long].map(|len| inner[..len].to_vec()));
        parts.push([&[7; 33][..], &inner].concat());
    }
    parts
}

/// A packet, one that transfers a part of a capture, and others after this number of seconds.
fn with_part(part: &[u8], pause: u32) -> Vec<(u32, Vec<u8>)> {
    const START: u32 = 1_700_000_000;
    let second = [udp(2, 53, 8), part.to_vec()].concat();
    let others = (3..=60)
        .map(|port| (START + pause + u32::from(port), udp(port, 53, 11 * (port as usize % 13))));
    [(START, udp(1, 53, 8)), (START, second)].into_iter().chain(others).collect()
}

/// A pcap of these packets.
fn pcap_of(endian: Endian, packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let records: Vec<_> = packets.iter().map(|(second, frame)| (*second, 0, &frame[..])).collect();
    pcap(endian, MICROSECONDS, ETHERNET, &records)
}

#[test]
fn a_packet_with_a_part_of_a_file_is_no_file() {
    const MONTH: u32 = 30 * 24 * 3600;
    let all: Vec<u16> = (1..=60).collect();
    for part in parts() {
        for endian in [LITTLE, BIG] {
            let (packets, damages) = read(&pcap_of(endian, &with_part(&part, MONTH)));
            let ports: Vec<u16> = packets.iter().map(|packet| packet.1).collect();
            assert_eq!((&ports, damages), (&all, 0), "{part:x?}");
        }
    }
}

/// A search after a damage continues with the records of the same file: it may return those of the
/// part first, and lose the record that the last of these covers.
#[test]
fn a_part_of_a_file_after_a_damage_is_no_file() {
    let all: Vec<u16> = (1..=60).collect();
    for part in parts() {
        let packets = with_part(&part, 0);
        for endian in [LITTLE, BIG] {
            let second = 24 + 16 + packets[0].1.len();
            let third = second + 16 + packets[1].1.len();
            for (record, lost) in [(second, 3), (third, 3)] {
                let mut bytes = pcap_of(endian, &packets);
                bytes[record + 8..record + 12].fill(0x7f);
                let ports = ports(&bytes);
                assert!(ports.ends_with(&all[lost..]), "{record}: {ports:?} {part:x?}");
            }
            let head = [section(endian), interface(endian, None, None)];
            let mut blocks: Vec<_> =
                packets.iter().map(|(_, frame)| enhanced(endian, 0, 7, frame)).collect();
            let end = blocks[1].len() - 4;
            blocks[1][end..].fill(0x7f);
            let ports = ports(&[head.concat(), blocks.concat()].concat());
            assert!(ports.ends_with(&all[2..]), "{ports:?} {part:x?}");
        }
    }
}

/// A block claims more bytes than the file has, although its file goes on.
#[test]
fn a_length_beyond_the_end_is_a_damage() {
    let all: Vec<u16> = (1..=9).collect();
    for endian in [LITTLE, BIG] {
        let head = [section(endian), interface(endian, None, None)].concat();
        let mut blocks: Vec<_> =
            all.iter().map(|port| enhanced(endian, 0, 7, &udp(*port, 53, 8))).collect();
        blocks[4][4..8].copy_from_slice(&endian.words(&[1 << 20]));
        let (packets, damages) = read(&[head, blocks.concat()].concat());
        let ports: Vec<u16> = packets.iter().map(|packet| packet.1).collect();
        assert_eq!((&ports[..], damages), (&[1, 2, 3, 4, 6, 7, 8, 9][..], 1));
    }
}

/// A record claims a possible length that is not its own: it covers others, some or all. The
/// damage states this length.
#[test]
fn records_that_another_one_covers_are_read() {
    let all: Vec<u16> = (1..=60).collect();
    for endian in [LITTLE, BIG] {
        let whole = file(endian, MICROSECONDS, 1_700_000_000, &all);
        let record = (whole.len() - 24) / all.len();
        for length in [100, 1000, 2000, 3000, 5000, 60_000, 200_000] {
            for place in 0..all.len() {
                let mut bytes = whole.clone();
                let damaged = 24 + place * record;
                bytes[damaged + 8..damaged + 16].copy_from_slice(&endian.words(&[length, length]));
                let (read, damages, is_cut) = read_with_damages(bytes);
                assert_eq!(read, all, "{length} at {place}");
                // What covers no record is cut.
                let is_last = place == all.len() - 1;
                assert_eq!(is_cut, is_last, "{length} at {place}");
                let (offset, kind) = (damaged as u64, DamageKind::Length(u64::from(length)));
                let damage = Damage { offset, kind, resumed: Some(offset + record as u64) };
                assert_eq!(damages, Vec::from_iter((!is_last).then_some(damage)), "{place}");
            }
        }
    }
}

/// A claimed length ends where bytes of a packet look like a record of another time and a possible
/// length; or in the packet itself. The time of the damaged record may be wrong, too.
#[test]
fn what_looks_like_a_record_behind_a_damaged_length_is_none() {
    let all: Vec<u16> = (1..=40).collect();
    let decoy = LITTLE.words(&[9, 0, 1300, 1300]);
    let frames = all.iter().map(|port| [udp(*port, 53, 8), decoy.repeat(5)].concat());
    let frames: Vec<_> = (1_700_000_000..).zip(frames).collect();
    let records: Vec<_> = frames.iter().map(|(second, frame)| (*second, 5, &frame[..])).collect();
    let whole = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    let (record, place) = ((whole.len() - 24) / all.len(), 7);
    let damaged = 24 + place * record;
    for seconds in [1_700_000_007, 3_000_000_000] {
        // A length that ends with a record is not seen to be wrong.
        for length in (0..2000).filter(|length| (*length as usize + 16) % record != 0) {
            let mut bytes = whole.clone();
            let header = LITTLE.words(&[seconds, 5, length, length]);
            bytes[damaged..damaged + 16].copy_from_slice(&header);
            let (mut read, damages, _) = read_with_damages(bytes);
            // The damaged one is read if its time is right.
            let mut expected = all.clone();
            for ports in [&mut read, &mut expected] {
                ports.retain(|port| usize::from(*port) != place + 1 && *port != 0);
            }
            assert_eq!((read, damages.len()), (expected, 1), "{length} at {seconds}");
        }
    }
}

/// Also if all fractions, or all lengths on the wire, are unusual, and wherever the file is cut.
#[test]
fn records_after_a_gap_of_weeks_are_read() {
    let all: Vec<u16> = (1..=20).collect();
    let frames: Vec<_> = all.iter().map(|port| udp(*port, 53, 8)).collect();
    for (fraction, less) in [(5, 0), (2_000_000_000, 0), (5, 4)] {
        let seconds = (0..).map(|nth| 1_700_000_000 + nth + nth / 17 * 3_000_000);
        let records: Vec<_> =
            seconds.zip(&frames).map(|(second, frame)| (second, fraction, &frame[..])).collect();
        let mut whole = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
        let record = (whole.len() - 24) / all.len();
        for at in (24..whole.len()).step_by(record) {
            let wire = LITTLE.words(&[frames[0].len() as u32 - less]);
            whole[at + 12..at + 16].copy_from_slice(&wire);
        }
        for end in 24 + 16 * record..=whole.len() {
            let read = ports(&whole[..end]);
            let complete = (end - 24) / record;
            assert!(read.starts_with(&all[..complete]), "{fraction} {less} {complete}: {read:?}");
        }
    }
}

/// The claimed length ends near the end of the last record, which it covers, or behind it.
#[test]
fn a_damaged_length_may_end_near_the_end() {
    let all: Vec<u16> = (1..=60).collect();
    for endian in [LITTLE, BIG] {
        let whole = file(endian, MICROSECONDS, 1_700_000_000, &all);
        let record = (whole.len() - 24) / all.len();
        let damaged = whole.len() - 2 * record;
        // What ends with the source is taken for whole.
        for end in (2 * record - 15..2 * record + 40).filter(|end| *end != 2 * record) {
            let (mut bytes, length) = (whole.clone(), end - 16);
            let lengths = endian.words(&[length as u32; 2]);
            bytes[damaged + 8..damaged + 16].copy_from_slice(&lengths);
            let (read, damages, is_cut) = read_with_damages(bytes);
            assert_eq!((&read, damages.len(), is_cut), (&all, 1, false), "{length}");
        }
    }
}

/// The source ends inside the header of a record behind a packet with a whole file.
#[test]
fn a_part_of_a_file_before_a_cut_header_is_no_file() {
    let recent = [LITTLE, BIG].map(|endian| file(endian, MICROSECONDS, 1_700_000_000, &[1, 2, 3]));
    for part in parts().into_iter().chain(recent) {
        let packets = with_part(&part, 0);
        for endian in [LITTLE, BIG] {
            let bytes = pcap_of(endian, &packets[..2]);
            for rest in 1..16 {
                let third = &pcap_of(endian, &packets[2..3])[24..24 + rest];
                let (read, damages, is_cut) = read_with_damages([&bytes[..], third].concat());
                assert_eq!((read, damages, is_cut), (vec![1, 2], vec![], true), "{rest} {part:x?}");
            }
        }
    }
}

/// Returns the source port of each packet, the damages, and whether the capture ends in a record.
fn read_with_damages(bytes: Vec<u8>) -> (Vec<u16>, Vec<Damage>, bool) {
    let ports = ports(&bytes);
    let mut capture = Capture::memory(bytes).expect("it is a capture");
    while capture.next_frame().is_some() {}
    let is_cut = matches!(capture.end(), Some(End::Cut));
    (ports, capture.damages().first().to_vec(), is_cut)
}

#[test]
fn lengths_of_old_versions_are_exchanged() {
    for endian in [LITTLE, BIG] {
        for (version, is_exchanged) in
            [([2, 2], true), ([2, 3], true), ([2, 3], false), ([2, 4], false), ([543, 0], true)]
        {
            let mut bytes = file(endian, MICROSECONDS, 9, &[1, 2, 3]);
            bytes[4..8].copy_from_slice(&version.map(endian.u16).concat());
            let record = (bytes.len() - 24) / 3;
            for at in [24, 24 + record, 24 + 2 * record] {
                // The packet is longer on the wire than in the file.
                let (captured, wire) = ((endian.u32)(record as u32 - 16), (endian.u32)(1500));
                let lengths = if is_exchanged { [wire, captured] } else { [captured, wire] };
                bytes[at + 8..at + 16].copy_from_slice(&lengths.concat());
            }
            let (packets, damages) = read(&bytes);
            assert_eq!((packets.len(), damages), (3, 0), "{version:?} {is_exchanged}");
        }
    }
}

#[test]
fn files_of_ixia_have_a_longer_header() {
    for endian in [LITTLE, BIG] {
        for (magic, time_ns) in [(0x1c00_01ac, 9_000_000_005), (0x1c00_01ab, 9_000_005_000)] {
            let mut bytes = file(endian, magic, 9, &[1, 2]);
            bytes.splice(24..24, [0, 0, 1, 0]);
            assert_eq!(read(&bytes).0[0], (time_ns, 1));
        }
    }
}

/// Padding that the lengths of a block do not count: it is there, or not.
#[test]
fn blocks_without_padding_are_read() {
    for endian in [LITTLE, BIG] {
        let whole = enhanced(endian, 0, 7_000_000, &udp(1, 53, 1));
        // A packet of 43 bytes has one byte of padding.
        let length = (endian.u32)(whole.len() as u32 - 1);
        let mut uncounted = whole.clone();
        let end = whole.len() - 4;
        uncounted[4..8].copy_from_slice(&length);
        uncounted[end..].copy_from_slice(&length);
        let mut absent = uncounted.clone();
        absent.remove(end - 1);
        for block in [whole, uncounted, absent] {
            let bytes = [sections(endian, &[7]), block.clone(), block, sections(endian, &[8])];
            assert_eq!(
                read(&bytes.concat()),
                (
                    vec![
                        (7_000_000_000, 7),
                        (7_000_000_000, 1),
                        (7_000_000_000, 1),
                        (7_000_000_000, 8)
                    ],
                    0
                )
            );
        }
    }
}

#[test]
fn a_packet_without_a_time_has_that_of_another() {
    let [one, two, three] = [1, 2, 3].map(|port| udp(port, 53, 0));
    let head = [section(BIG), interface(BIG, None, None)].concat();
    let (early, late) = (enhanced(BIG, 0, 5_000_000, &one), enhanced(BIG, 0, 6_000_000, &three));
    let untimed = simple(BIG, &two);
    let times = |blocks: &[&[u8]]| -> Vec<u64> {
        let bytes = [&head[..], &blocks.concat()].concat();
        read(&bytes).0.into_iter().map(|packet| packet.0 / 1_000_000_000).collect()
    };
    assert_eq!(times(&[&early, &untimed, &late]), [5, 5, 6]);
    assert_eq!(times(&[&untimed, &untimed, &late]), [6, 6, 6]);
    assert_eq!(times(&[&untimed, &untimed]), [0, 0]);
}

/// One wrong time before a damage, or wrong times only: the search does not reject what follows.
#[test]
fn wrong_times_before_a_damage_do_not_matter() {
    let all: Vec<u16> = (1..=50).collect();
    for (from, to) in [(0, 1), (24, 25), (0, 25), (10, 25), (20, 30)] {
        let mut bytes = file(LITTLE, MICROSECONDS, 1_700_000_000, &all);
        let record = (bytes.len() - 24) / all.len();
        for at in from..to {
            let at = 24 + at * record;
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(4_000_000_000));
        }
        let damaged = 24 + 25 * record;
        bytes[damaged + 8..damaged + 12].fill(0x7f);
        let (packets, damages) = read(&bytes);
        assert!(packets.len() >= 49 && damages == 1, "{from} to {to}: {}", packets.len());
    }
}

/// Bytes that look like the beginnings of records or blocks everywhere, after a damage.
fn decoys() -> Vec<(&'static str, Vec<u8>)> {
    const SIZE: usize = 1 << 21;
    let frame = udp(1, 53, 0);
    let le = |words: &[u32]| LITTLE.words(words);
    let repeat = |words: &[u32], size: usize| le(words).repeat(size / (4 * words.len()));
    let blocks = [sections(LITTLE, &[1]), le(&[6, 5])].concat();
    let records =
        [file(LITTLE, MICROSECONDS, 9, &[1]), le(&[9, u32::MAX, u32::MAX, u32::MAX])].concat();
    // A record whose packet is full of headers of files.
    let mut nested = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(9, 0, &frame)]);
    let header = nested[..24].to_vec();
    let inner = [&header[..], &le(&[9, 0, 200_000, 200_000])].concat().repeat(6000);
    nested.extend(le(&[9, 0, inner.len() as u32, inner.len() as u32]));
    nested.extend(inner);
    nested.extend(repeat(&[u32::MAX], SIZE));
    // Their bytes 2 to 17 are headers of records of 128 bytes, if the fraction is 0.
    let covers = [0x000a_0a0a, 0].map(|fraction| {
        let records = repeat(&[9, fraction, 8 << 20, 8 << 20], 8 << 20);
        [&header[..16], &le(&[8 << 20]), &header[20..], &records, &repeat(&[u32::MAX], 8 << 20)]
            .concat()
    });
    let [covers, covers_shorter] = covers;
    vec![
        ("records of 8 MiB that cover each other", covers),
        ("a block that is cut", cut_block()),
        ("records of 8 MiB that cover shorter ones", covers_shorter),
        ("records that cover each other", covering(&header, 262_000, 262_000)),
        ("records that cover shorter ones", covering(&header, 262_000, 80)),
        ("blocks of 16 MiB", [&blocks[..], &repeat(&[6, 1 << 24, 0], SIZE + (1 << 24))].concat()),
        ("blocks of 1 MiB", [&blocks[..], &repeat(&[6, 1 << 20, 0], SIZE)].concat()),
        ("unpadded blocks", [&blocks[..], &repeat(&[5, (1 << 18) + 1], SIZE)].concat()),
        ("records of 256 KiB", [&records[..], &repeat(&[9, 0, 262_111, 262_111], SIZE)].concat()),
        ("chains of records", [&records[..], &repeat(&[70_000_000, 16, 16, 16], SIZE)].concat()),
        ("sections", [&blocks[..], &section(LITTLE)[..27].repeat(SIZE / 27)].concat()),
        ("headers of files", [&records[..], &header.repeat(SIZE / 24)].concat()),
        ("headers of files in a record", nested),
        ("garbage", [&records[..], &repeat(&[0xa5a5_a5a5], SIZE)].concat()),
    ]
}

/// Records of one length that cover records of another, which go on behind the former. An
/// impossible header follows each of the former.
fn covering(header: &[u8], outer: usize, inner: usize) -> Vec<u8> {
    const SIZE: usize = 16 << 20;
    let of = |length: usize| LITTLE.words(&[9, 0, length as u32, length as u32]);
    let mut bytes = of(inner).repeat(SIZE / 16);
    for at in (0..SIZE - 16).step_by(outer + 32) {
        bytes[at..at + 16].copy_from_slice(&of(outer));
        let behind = at + outer + 16;
        if let Some(behind) = bytes.get_mut(behind..behind + 16) {
            behind.fill(0xff);
        }
    }
    [header, &bytes].concat()
}

/// A block that claims more than the source has, full of beginnings of blocks, each behind which
/// many others begin.
fn cut_block() -> Vec<u8> {
    const SIZE: usize = 12 << 20;
    let le = |words: &[u32]| LITTLE.words(words);
    let blocks = le(&[5, 12, 12]).repeat(20).into_iter().chain(le(&[5, (1 << 21) + 8, 7]));
    let blocks: Vec<u8> = blocks.collect();
    let first = [sections(LITTLE, &[1]), le(&[6, 1 << 24])].concat();
    [first, blocks.repeat(SIZE / blocks.len()), vec![0xff; 1 << 21]].concat()
}

#[test]
fn the_work_of_a_search_is_linear() {
    for (name, bytes) in decoys() {
        let size = bytes.len() as u64;
        let mut capture = Capture::memory(bytes).expect("it is a capture");
        let (mut frames, mut last, mut returned) = (0, 0, 0);
        loop {
            let polled = capture.poll_frame().map(|frame| {
                returned += frame.map_or(0, |frame| frame.data.len() as u64);
                frame.is_some()
            });
            // No call is long, but for one that reads a whole block.
            let work = capture.work();
            assert!(work - last <= 4 << 24, "{name}: {} at once", work - last);
            last = work;
            match polled {
                Poll::Ready(false) => break,
                Poll::Ready(true) => frames += 1,
                Poll::Pending => {}
            }
        }
        assert!(capture.work() <= 10 * size + (1 << 20), "{name}: {} of {size}", capture.work());
        assert!(returned <= 2 * size, "{name}: {returned} bytes in frames of {size}");
        assert!(frames > 0 && matches!(capture.end(), Some(End::Whole | End::Cut)), "{name}");
    }
}

/// A caller can react to signals during a search.
#[test]
fn a_long_search_is_interrupted() {
    let (_, bytes) = decoys().pop().expect("there are some");
    let mut capture = Capture::memory(bytes).expect("it is a capture");
    assert!(capture.poll_frame().is_ready());
    assert!((0..3).any(|_| capture.poll_frame().is_pending()));
    assert!(capture.next_frame().is_none());
}

/// So it can while the bytes that a record or a block covers are examined.
#[test]
fn a_scan_of_covered_bytes_is_interrupted() {
    for (name, bytes) in decoys().into_iter().take(2) {
        let mut capture = Capture::memory(bytes).expect("it is a capture");
        let mut pauses = 0;
        while capture.end().is_none() {
            pauses += usize::from(capture.poll_frame().is_pending());
        }
        assert!(pauses >= 12, "{name}: {pauses}");
    }
}

/// Changes a few bytes at random.
fn change(bytes: &mut [u8], random: &mut StdRng) {
    for _ in 0..random.random_range(0..4) {
        let at = random.random_range(0..bytes.len());
        bytes[at] = *[0, 1, 6, 0x7f, 0xff, random.random()].choose(random).expect("six");
    }
}

/// The findings of a reader of a capture: its frames, damages, whole packets and end.
fn found(mut capture: Capture, mut read: impl FnMut(&mut Capture, &mut Vec<String>)) -> String {
    let mut frames = vec![];
    while capture.end().is_none() {
        read(&mut capture, &mut frames);
    }
    let (damages, end) = (capture.damages().count(), capture.end());
    format!("{damages} {end:?} {} {} {frames:?}", capture.whole_packets(), capture.offset())
}

/// Frames that are read together are those that are read one by one, and end at a limit.
#[test]
fn frames_can_be_read_together() {
    let (mut random, mut seeds) = (StdRng::seed_from_u64(8), capture::data::seeds());
    let ports: Vec<u16> = (0..100).collect();
    seeds.extend(files(&ports));
    seeds.push([file(LITTLE, MICROSECONDS, 7, &ports), file(BIG, NANOSECONDS, 9, &[1])].concat());
    for round in 0..2000 {
        let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
        change(&mut bytes, &mut random);
        let Ok(single) = Capture::memory(bytes.clone()) else { continue };
        let one_by_one = found(single, |capture, frames| {
            if let Some(frame) = capture.next_frame() {
                frames.push(format!("{frame:?}"));
            }
        });
        let together = Capture::memory(bytes).expect("it is a capture");
        let together = found(together, |capture, frames| {
            let limit_ns = match random.random() {
                true => u64::MAX,
                false => random.random_range(0..2_000_000_000_000_000),
            };
            let (most, mut times) = (random.random_range(1..50), vec![]);
            let count = capture.read_before(limit_ns, most, |frame| {
                times.push(frame.time_ns);
                frames.push(format!("{frame:?}"));
            });
            assert!(count == times.len() && count <= most);
            assert!(times.iter().skip(1).all(|time_ns| *time_ns < limit_ns));
        });
        assert!(together == one_by_one, "round {round}: {together} {one_by_one}");
    }
}

/// Captures with random changes, and with their last bytes repeated: no panic, and linear work.
#[test]
fn the_work_for_changed_captures_is_linear() {
    let (mut random, seeds) = (StdRng::seed_from_u64(7), capture::data::seeds());
    for round in 0..1000 {
        let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
        change(&mut bytes, &mut random);
        if round % 2 == 0 {
            let tail = bytes.split_off(bytes.len() - bytes.len().min(random.random_range(1..40)));
            bytes.extend(tail.iter().cycle().take(1 << 14));
        }
        let size = bytes.len() as u64;
        let Ok(mut capture) = Capture::memory(bytes) else { continue };
        while capture.next_frame().is_some() {}
        let bound = 20 * (capture.offset() + size) + (1 << 19);
        assert!(capture.work() <= bound, "round {round}: {} of {bound}", capture.work());
    }
}
