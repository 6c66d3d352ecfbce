//! Damaged captures, and outputs that cannot be written: everything else is still written.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, NANOSECONDS, Record as Captured};
use capture::data::{block, enhanced, gzip, interface, pcap, section, udp};

use super::Record;
use crate::run::Run;

const RECORD: usize = 16 + 42;

/// Returns a capture of this many flows of one packet, a millisecond apart.
fn flows(count: u16) -> Vec<u8> {
    let frames: Vec<_> = (1..=count).map(|port| udp(port, 53, 0)).collect();
    let records: Vec<Captured<'_>> =
        (0..).zip(&frames).map(|(at, frame)| (1_700_000_000, at * 1000, &frame[..])).collect();
    pcap(LITTLE, MICROSECONDS, ETHERNET, &records)
}

/// Runs on a damaged capture with all outputs. Returns the source ports of the packets, and the
/// lines on standard error.
fn ports_and_errors(bytes: &[u8], name: &str) -> (Vec<u16>, Vec<String>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [csv, ipfix] = ["csv", "ipfix"].map(|end| folder.join(format!("{name}.{end}")));
    let names = [&csv, &ipfix].map(|path| path.to_str().expect("a name in UTF-8"));
    let outputs = ["--json", "-", "--csv", names[0], "--ipfix", names[1], "--overwrite"];
    let run = Run::piped(bytes, usize::MAX, &outputs);
    assert_eq!(run.code, Some(2), "{run:?}");
    let mut ports: Vec<u16> = Record::all(&run).iter().map(|record| record.sport).collect();
    let rows = fs::read_to_string(&csv).expect("it was written");
    assert_eq!(rows.lines().count(), ports.len() + 1, "{rows}");
    let messages = fs::metadata(&ipfix).expect("it was written").len();
    assert!(messages > 50 * ports.len() as u64, "{messages} bytes");
    // The report is printed, too.
    assert_eq!(run.count("records, "), ports.len() as u64);
    ports.sort_unstable();
    (ports, run.errors().into_iter().map(str::to_owned).collect())
}

#[test]
fn reading_continues_after_a_damaged_record() {
    let whole = flows(100);
    let header = 24 + 50 * RECORD;
    let all_but = |lost: &[u16]| (1..=100).filter(|port| !lost.contains(port)).collect::<Vec<_>>();

    // A length that is wrong in one bit: the packet itself is as it was.
    let mut bytes = whole.clone();
    bytes[header + 11] ^= 0x40;
    let (ports, errors) = ports_and_errors(&bytes, "bit");
    assert_eq!(ports, all_but(&[]));
    let length = 42 | 0x4000_0000;
    let line = format!(
        "flow_cache: capture is damaged at byte {header}: a record of {length} bytes; reading \
         continued at byte {}",
        header + RECORD
    );
    assert_eq!(errors, [&line, "flow_cache: the captures are damaged: packets are missing"]);

    // Bytes that were overwritten, inserted, removed, or never written.
    let mut overwritten = whole.clone();
    overwritten[header..header + RECORD + 20].fill(0xa5);
    assert_eq!(ports_and_errors(&overwritten, "overwritten").0, all_but(&[51, 52]));
    let inserted = [&whole[..header], &[0xa5; 1000], &whole[header..]].concat();
    assert_eq!(ports_and_errors(&inserted, "inserted").0, all_but(&[]));
    let removed = [&whole[..header + 3], &whole[header + 30..]].concat();
    assert_eq!(ports_and_errors(&removed, "removed").0, all_but(&[51]));
    // A time of its own, and a length that is not right either.
    let mut time = whole.clone();
    (time[header + 3], time[header + 8], time[header + 12]) = (0xb0, 70, 70);
    let (ports, errors) = ports_and_errors(&time, "time");
    assert_eq!(ports, all_but(&[51]));
    let text = format!("damaged at byte {header}: a record of a time that no others have; reading");
    assert!(errors[0].contains(&text), "{errors:?}");
    let mut zeros = whole.clone();
    zeros[header..header + 3 * RECORD].fill(0);
    let (ports, errors) = ports_and_errors(&zeros, "zeros");
    assert_eq!(ports, all_but(&[51, 52, 53]));
    assert!(errors[0].contains(&format!("damaged at byte {header}: a record of zeros")));
    // Nothing is behind the damage.
    let mut end = whole[..header + 300].to_vec();
    end[header..].fill(0xa5);
    let (ports, errors) = ports_and_errors(&end, "end");
    assert_eq!(ports, (1..=50).collect::<Vec<_>>());
    assert!(errors[0].ends_with("no record was found behind it"), "{errors:?}");
}

#[test]
fn reading_continues_after_a_damaged_block() {
    let frames: Vec<_> = (1..=9).map(|port| udp(port, 53, 0)).collect();
    let packets: Vec<_> = frames.iter().map(|frame| enhanced(LITTLE, 0, 1, frame)).collect();
    let head = [section(LITTLE), interface(LITTLE, None, None)].concat();
    let with = |middle: &[u8]| {
        [&head, &packets[..4].concat()[..], middle, &packets[4..].concat()].concat()
    };
    let at = head.len() + packets[..4].concat().len();
    let mut lying = packets[8].clone();
    lying[20..24].copy_from_slice(&u32::to_le_bytes(1 << 30));
    let mut trailer = packets[8].clone();
    let last = trailer.len() - 4;
    trailer[last] ^= 4;
    let mut too_long = packets[8].clone();
    too_long[7] = 0x7f;
    for (name, damaged, words) in [
        ("lying", lying, "a malformed block; reading continued"),
        ("of another", enhanced(LITTLE, 7, 1, &frames[8]), "a packet of an undescribed interface"),
        ("too short", vec![6, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0], "a record of 8 bytes"),
        ("trailer", trailer, "a malformed block"),
        ("too long", too_long, "a record of 2130706"),
        ("garbage", vec![0xa5; 1001], "bytes"),
    ] {
        let (ports, errors) = ports_and_errors(&with(&damaged), name);
        assert_eq!(ports, (1..=9).collect::<Vec<_>>(), "{name}");
        let line = &errors[0];
        assert!(line.contains(&format!("damaged at byte {at}: ")), "{name}: {errors:?}");
        assert!(line.contains(words) && errors.len() == 2, "{name}: {errors:?}");
    }
    // A block of an unknown type is none of them, whatever it has.
    let fine = with(&block(LITTLE, 0x0bad, &[0xa5; 64]));
    assert_eq!(Run::rows_of(&fine).len(), 9);
}

#[test]
fn what_precedes_the_damage_of_a_gzip_is_reported() {
    let mut bytes = gzip(&flows(2000));
    // The checksum of the bytes precedes their count.
    let sum = bytes.len() - 8;
    bytes[sum] ^= 1;
    let (ports, errors) = ports_and_errors(&bytes, "checksum");
    assert_eq!(ports.len(), 2000);
    assert!(errors[0].starts_with("flow_cache: capture cannot be read after packet 2000: "));
    let mut bytes = gzip(&flows(2000));
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100].fill(0xff);
    let (ports, _) = ports_and_errors(&bytes, "middle");
    assert!((500..2000).contains(&ports.len()), "{}", ports.len());
}

/// A record of the maximum length that a snap length allows is not damaged.
#[test]
fn unusual_records_are_not_damaged() {
    let frame = [udp(1, 2, 0), vec![0; 262_144 - 42]].concat();
    let empty: &[u8] = &[];
    let records = [(5, 0, &frame[..]), (5, 1, empty), (0, 1, empty), (6, 0, &frame)];
    let run = Run::piped(&pcap(LITTLE, NANOSECONDS, ETHERNET, &records), usize::MAX, &[]);
    assert_eq!((run.code, run.count("packets, ")), (Some(0), 4), "{run:?}");
    assert_eq!(run.errors(), <[&str; 0]>::default());
}

/// A full disk silences one output, and the line names it.
#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_silences_no_other() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let json = folder.join("silences_no_other.json");
    let _ = fs::remove_file(&json);
    let alone = Run::with(&["--json", "-"].map(OsStr::new));
    for (option, other) in [("--csv", "--ipfix"), ("--ipfix", "--csv")] {
        let arguments = [option, "/dev/full", other, "/dev/full", "--json"].map(OsStr::new);
        let run = Run::with(&[&arguments[..], &[json.as_os_str()]].concat());
        assert_eq!(run.code, Some(1), "{run:?}");
        // At once, and at the end.
        assert_eq!(run.errors().len(), 4, "{run:?}");
        for option in [option, other] {
            let words = format!("flow_cache: {option} /dev/full cannot be written: ");
            let lines = run.errors().into_iter().filter(|line| line.starts_with(&words));
            let ends: Vec<&str> = lines.filter_map(|line| line.rsplit(' ').next()).collect();
            assert_eq!(ends, ["second", "lost"], "{run:?}");
        }
        assert_eq!(fs::read_to_string(&json).ok().as_ref(), Some(&alone.stdout));
        let _ = fs::remove_file(&json);
    }
}

/// Captures are merged by time, whatever their order.
#[test]
fn several_captures_are_one_input() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let frames: Vec<_> = (1..=3).map(|port| udp(port, 53, 0)).collect();
    let capture = |times: &[(u32, usize)]| {
        let records: Vec<_> =
            times.iter().map(|(second, frame)| (*second, 0, &frames[*frame][..])).collect();
        pcap(LITTLE, MICROSECONDS, ETHERNET, &records)
    };
    // The second and the third overlap.
    let captures = [
        capture(&[(100, 0), (110, 0), (120, 1)]),
        capture(&[(10, 0), (30, 0), (50, 0)]),
        gzip(&capture(&[(20, 0), (40, 0), (60, 0), (70, 2)])),
    ];
    let paths: Vec<_> = (0..)
        .zip(&captures)
        .map(|(number, bytes)| {
            let path = folder.join(format!("one_of_several.{number}"));
            fs::write(&path, bytes).expect("the build folder can be written");
            path
        })
        .collect();
    let mut arguments: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
    arguments.extend(["--json", "-", "--idle", "11"].map(OsStr::new));
    let run = Run::with(&arguments);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    let records = Record::all(&run);
    let summaries: Vec<_> = records.iter().map(|record| (record.sport, record.packets())).collect();
    assert_eq!(summaries, [(1, [6, 0]), (3, [1, 0]), (1, [2, 0]), (2, [1, 0])]);
    // As many at one time as files may not be open.
    let many: Vec<_> =
        (0..300).map(|number| folder.join(format!("one of many.{number}"))).collect();
    for (path, bytes) in many.iter().zip(captures.iter().cycle()) {
        fs::write(path, bytes).expect("the build folder can be written");
    }
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 100 && exec \"$@\"", "sh"]).arg(crate::run::example());
    let output = command.args(&many).output().expect("there is a shell");
    let run = Run::new(output);
    assert_eq!((run.code, run.count("packets, ")), (Some(0), 1000), "{run:?}");
    // A damaged one is named; the others are read to their ends.
    fs::write(&paths[2], &captures[2][..captures[2].len() - 4]).expect("it can be written");
    let run = Run::with(&arguments);
    assert_eq!(run.code, Some(0), "{run:?}");
    let name = paths[2].display().to_string();
    assert!(run.errors().len() == 1 && run.errors()[0].contains(&name), "{run:?}");
    // None of them is overwritten.
    arguments.extend([OsStr::new("--csv"), paths[1].as_os_str()]);
    Run::with(&arguments).assert_refused("is the capture");
}

/// Ethernet as another link type: its addresses are read as protocols and lengths.
#[test]
fn a_wrong_link_type_is_asked_about() {
    let mut frame = [b"\x00\x1b\x21\0\0\x01ssssss\x08\x00", &udp(1, 2, 0)[14..]].concat();
    // Where the data of cooked mode begin: no flags of fragments.
    frame[20] = 0;
    let arp = [b"ddddddssssss\x08\x06".as_slice(), &[0; 46]].concat();
    let capture = |link, frame: &[u8]| {
        let records: Vec<_> = (0..30).map(|second| (second, 0, frame)).collect();
        Run::piped(&pcap(LITTLE, MICROSECONDS, link, &records), usize::MAX, &[])
    };
    for link in [6, 240, 276] {
        let run = capture(link, &frame);
        let words = format!("flow_cache: no IP in 30 packets: is link type {link} right?");
        assert_eq!((run.code, run.errors()), (Some(2), vec![words.as_str()]), "{run:?}");
    }
    for frame in [&frame, &arp] {
        let run = capture(ETHERNET, frame);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    }
}
