//! The example `flow_cache`, end to end: captures in, rows of flows out.
//!
//! If the captures of the project's data folder are available (`FLOWTABLE_DATA` names it), its rows
//! must be those of other tools. All other tests use captures composed here, whose flows are known.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capture::data::{BIG, ETHERNET, IP_AT, LITTLE, MICROSECONDS, MODIFIED, NANOSECONDS, Record};
use capture::data::{
    NO_CAPTURES, announce, captures, flows, folder, gzip, seeds, small, tcp6, truth, udp,
};
use capture::data::{block, enhanced, interface, obsolete, pcap, pcap_of_cut, section, simple};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::run::{Run, example};

/// Writes a file in the build folder, named after the test.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("the build folder can be written");
    path
}

/// Returns the rows of [`small`], for a unit of the fractions of a second in nanoseconds.
fn small_rows(unit_ns: u64) -> [String; 2] {
    let at = |seconds: u64, fraction| seconds * 1_000_000_000 + fraction * unit_ns;
    [
        format!("192.0.2.1,198.51.100.2,17,1000,53,2,66,{},{}", at(10, 5), at(20, 7)),
        format!("2001:db8::1,2001:db8::2,6,40000,443,1,60,{0},{0}", at(30, 999)),
    ]
}

#[test]
fn pcaps_of_all_magics_have_the_same_flows() {
    for endian in [LITTLE, BIG] {
        for (magic, unit_ns) in [(MICROSECONDS, 1000), (NANOSECONDS, 1), (MODIFIED, 1000)] {
            assert_eq!(Run::rows_of(&small(endian, magic)), small_rows(unit_ns), "{magic:x}");
        }
    }
}

#[test]
fn gzip_is_known_by_its_magic_and_pipes_by_a_dash() {
    let plain = small(LITTLE, MICROSECONDS);
    let members = [gzip(&plain[..50]), gzip(&plain[50..])].concat();
    for bytes in [&plain, &gzip(&plain), &members] {
        let path = file("gzip_is_known_by_its_magic", bytes);
        let run = Run::with(&[path.as_os_str(), "--csv".as_ref(), "-".as_ref()]);
        assert_eq!((run.code, run.rows()), (Some(0), small_rows(1000).into()), "{run:?}");
        for piece in [1, 7, usize::MAX] {
            let run = Run::piped(bytes, piece, &["--csv", "-"]);
            assert_eq!((run.code, run.rows()), (Some(0), small_rows(1000).into()), "{run:?}");
        }
    }
}

#[test]
fn pcapng_has_sections_interfaces_and_clocks() {
    let frames: Vec<Vec<u8>> = (1..=8).map(|port| udp(port, 53, 0)).collect();
    let mut bytes = Vec::new();
    for (endian, frames) in [(LITTLE, &frames[..4]), (BIG, &frames[4..])] {
        bytes.extend(section(endian));
        bytes.extend(interface(endian, None, None));
        bytes.extend(interface(endian, Some(9), Some(100)));
        bytes.extend(enhanced(endian, 0, 5_000_003, &frames[0]));
        bytes.extend(block(endian, 0x4000_0001, b"a block of an unknown type"));
        bytes.extend(enhanced(endian, 1, 5_000_003, &frames[1]));
        bytes.extend(simple(endian, &frames[2]));
        // Described late; a second has 2^20 ticks, and the epoch of the clock is 1969.
        bytes.extend(interface(endian, Some(0x80 | 20), Some(-1)));
        bytes.extend(obsolete(endian, 2, 3 << 19, &frames[3]));
    }
    // The simple packet has the time of the packet before it.
    let times = [5_000_003_000_u64, 100_005_000_003, 100_005_000_003, 500_000_000];
    let rows: Vec<String> = (1..=8)
        .map(|port| {
            let time = times[(port - 1) % 4];
            format!("192.0.2.1,198.51.100.2,17,{port},53,1,28,{time},{time}")
        })
        .collect();
    assert_eq!(Run::rows_of(&bytes), rows);
    assert_eq!(Run::rows_of(&gzip(&bytes)), rows);
}

#[test]
fn a_cut_capture_keeps_all_before_the_cut() {
    const RECORD: usize = 16 + 42;
    let frame = udp(1000, 53, 0);
    let whole = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &frame), (2, 0, &frame)]);
    assert_eq!(whole.len(), 24 + 2 * RECORD);
    for length in 24..=whole.len() {
        let run = Run::piped(&whole[..length], usize::MAX, &[]);
        let (complete, rest) = ((length - 24) / RECORD, (length - 24) % RECORD);
        // The rest of a truncated packet counts as a packet.
        let packets = complete + usize::from(rest >= 16);
        assert_eq!((run.code, run.count("packets, ")), (Some(0), packets as u64), "{length}");
        let cut = format!(
            "flow_cache: capture is cut after packet {complete}: the file ends inside a record"
        );
        assert_eq!(run.errors(), if rest == 0 { vec![] } else { vec![cut.as_str()] }, "{length}");
    }
}

#[test]
fn a_cut_gzip_keeps_all_before_the_cut() {
    let mut random = StdRng::seed_from_u64(1);
    let frames: Vec<Vec<u8>> = (0..2000).map(|_| udp(random.random(), 53, 30)).collect();
    let records: Vec<Record<'_>> = frames.iter().map(|frame| (1, 0, &frame[..])).collect();
    let bytes = gzip(&pcap(LITTLE, MICROSECONDS, ETHERNET, &records));
    let run = Run::piped(&bytes[..bytes.len() / 2], usize::MAX, &[]);
    let packets = run.count("packets, ");
    assert!(run.code == Some(0) && (500..1500).contains(&packets), "{run:?}");
    assert!(run.errors()[0].contains("capture is cut after packet "), "{run:?}");
}

/// A record that claims gigabytes, and one longer than the window, need little memory.
#[test]
#[cfg(target_os = "linux")]
fn lengths_that_are_claimed_take_no_memory() {
    let frame = udp(1000, 53, 0);
    let mut claimed = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &frame)]);
    claimed[32..36].copy_from_slice(&u32::to_le_bytes(u32::MAX));
    let huge = [frame.clone(), vec![0; 100 << 20]].concat();
    let huge = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &huge), (2, 0, &frame)]);
    let claimed_block = [section(LITTLE), LITTLE.words(&[6, u32::MAX - 3, 0])].concat();
    for (bytes, packets, code) in [(claimed, 1, 2), (huge, 2, 0), (claimed_block, 0, 2)] {
        let path = file("lengths_that_are_claimed", &bytes);
        let run = in_little_memory(&path);
        assert_eq!((run.code, run.count("packets, ")), (Some(code), packets), "{run:?}");
        assert_eq!(run.errors().len() as i32, code, "{run:?}");
        fs::remove_file(path).expect("it was written");
    }
}

/// Runs on a capture in 100 MB of address space.
#[cfg(target_os = "linux")]
fn in_little_memory(capture: &Path) -> Run {
    let limited = "ulimit -v 100000; exec \"$0\" \"$1\"";
    let output = Command::new("sh").arg("-c").arg(limited).arg(example()).arg(capture).output();
    Run::new(output.expect("there is a shell"))
}

/// Blocks of 16 MiB of empty options, which would take several times as much as parsed lists.
#[test]
#[cfg(target_os = "linux")]
fn options_of_blocks_take_no_memory() {
    const LONGEST: usize = 1 << 24;
    let frame = udp(1000, 53, 0);
    // Empty comments: an end of options would end the list.
    let with_options = |mut block: Vec<u8>, longest: usize| {
        let body_end = block.len() - 4;
        block.truncate(body_end);
        let comment = u32::to_le_bytes(1);
        block.extend(comment.repeat((longest - body_end - 4) / comment.len()));
        let length = u32::to_le_bytes(block.len() as u32 + 4);
        block[4..8].copy_from_slice(&length);
        block.extend(length);
        block
    };
    let sections = with_options(section(LITTLE), LONGEST);
    let described = with_options(interface(LITTLE, None, None), 1 << 16);
    let too_long = with_options(interface(LITTLE, None, None), LONGEST);
    let packets = with_options(enhanced(LITTLE, 0, 1, &frame), LONGEST);
    let statistics = with_options(block(LITTLE, 5, &[0; 12]), LONGEST);
    let of_second = enhanced(LITTLE, 1, 1, &frame);
    let of_third = enhanced(LITTLE, 2, 1, &frame);
    // The description that is too long still has an ID: 1.
    let last = interface(LITTLE, None, None);
    let mut bytes = [sections, described, too_long, last].concat();
    bytes.extend([&packets[..], &statistics, &of_second, &of_third].concat());
    let bomb = [section(LITTLE), interface(LITTLE, None, None), packets.repeat(20)].concat();
    for (bytes, packets, skipped) in [(bytes, 2, Some(2)), (bomb, 20, None)] {
        let path = file("options_of_blocks.gz", &gzip(&bytes));
        let run = in_little_memory(&path);
        let code = if skipped.is_some() { 2 } else { 0 };
        assert_eq!((run.code, run.count("packets, ")), (Some(code), packets), "{run:?}");
        let has_skipped = run.stdout.contains("damaged places");
        assert_eq!(has_skipped.then(|| run.count("damaged places")), skipped, "{run:?}");
        fs::remove_file(path).expect("it was written");
    }
}

/// Returns the row of an IPv6 packet with this first protocol number and payload, without the
/// addresses.
fn v6_row(next: u8, payload: &[u8]) -> String {
    let mut ip = tcp6(1, 2)[IP_AT..IP_AT + 40].to_vec();
    ip[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    ip[6] = next;
    ip.extend(payload);
    let rows = Run::rows_of(&pcap(LITTLE, NANOSECONDS, 101, &[(0, 1, &ip)]));
    rows[0].strip_prefix("2001:db8::1,2001:db8::2,").expect("the addresses").to_owned()
}

#[test]
fn extension_headers_of_ipv6_are_walked() {
    let ports = [0, 7, 0, 9];
    let padding = [1, 4, 0, 0, 0, 0];
    let option = |next: u8| [&[next, 0][..], &padding].concat();
    // Hop-by-hop, routing, destination options, mobility, HIP, shim6, then UDP.
    let chain: Vec<u8> = [43, 60, 135, 139, 140, 17].into_iter().flat_map(option).collect();
    assert_eq!(v6_row(0, &[&chain[..], &ports].concat()), "17,7,9,1,92,1,1");
    // An authentication header counts in other units; a long one in more than one.
    assert_eq!(v6_row(51, &[&[17, 1][..], &[0; 10], &ports].concat()), "17,7,9,1,56,1,1");
    assert_eq!(v6_row(60, &[&[132, 1][..], &[0; 14], &ports].concat()), "132,7,9,1,60,1,1");
    // Fragments: the first with the ports, a later one without.
    assert_eq!(v6_row(44, &[&[17, 0, 0, 1, 0, 0, 0, 5][..], &ports].concat()), "17,7,9,1,52,1,1");
    assert_eq!(v6_row(44, &[&[17, 0, 0, 9, 0, 0, 0, 5][..], &ports].concat()), "17,0,0,1,52,1,1");
    // Cut: in the chain, and in a header.
    assert_eq!(v6_row(0, &option(60)), "60,0,0,1,48,1,1");
    assert_eq!(v6_row(0, &[60, 9, 1, 4, 0, 0, 0, 0]), "60,0,0,1,48,1,1");
    assert_eq!(v6_row(0, &[60, 0, 1]), "0,0,0,1,43,1,1");
    assert_eq!(v6_row(136, &ports), "136,7,9,1,44,1,1");
    // No ports: no next header, encrypted, ICMP.
    for protocol in [59, 50, 58] {
        assert_eq!(v6_row(protocol, &[0, 7, 0, 9]), format!("{protocol},0,0,1,44,1,1"));
    }
}

/// The offset of the first record's length on the wire in a pcap.
const WIRE_LEN_AT: usize = 24 + 12;

/// Returns the row of an IPv4 packet without the addresses, after some changes of its bytes.
fn v4_row(length: usize, changes: &[(usize, u8)]) -> String {
    let mut ip = udp(7, 9, 20)[IP_AT..].to_vec();
    for (at, byte) in changes {
        ip[*at] = *byte;
    }
    let wire_len = ip.len();
    ip.truncate(length);
    let rows = Run::rows_of(&pcap_of_cut(101, (0, 1, &ip), wire_len));
    rows[0].strip_prefix("192.0.2.1,198.51.100.2,").expect("the addresses").to_owned()
}

#[test]
fn fields_of_ipv4_count_as_the_header_has_them() {
    assert_eq!(v4_row(48, &[]), "17,7,9,1,48,1,1");
    // Options move the ports; where options or ports are cut, they are 0.
    assert_eq!(v4_row(48, &[(0, 0x46), (25, 8), (26, 0), (27, 9)]), "17,8,9,1,48,1,1");
    assert_eq!(v4_row(22, &[(0, 0x48)]), "17,0,0,1,48,1,1");
    assert_eq!(v4_row(23, &[]), "17,0,0,1,48,1,1");
    // A later fragment has none; a first one has.
    assert_eq!(v4_row(48, &[(6, 0x20), (7, 0)]), "17,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(6, 0x00), (7, 1)]), "17,0,0,1,48,1,1");
    // SCTP and DCCP have ports, ICMP has none; a length of 0 is that of the frame.
    assert_eq!(v4_row(48, &[(9, 132)]), "132,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(9, 33)]), "33,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(9, 1)]), "1,0,0,1,48,1,1");
    assert_eq!(v4_row(48, &[(2, 0), (3, 0)]), "17,7,9,1,48,1,1");
    // A length that the frame cannot hold is that of the frame.
    assert_eq!(v4_row(48, &[(2, 9)]), "17,7,9,1,48,1,1");
}

#[test]
fn packets_without_a_flow_are_counted_by_reason() {
    let whole = udp(7, 9, 20);
    let changed = |at: usize, byte: u8| {
        let mut frame = whole.clone();
        frame[at] = byte;
        frame
    };
    let frames = [
        whole.clone(),
        whole[..10].to_vec(),
        whole[..IP_AT + 19].to_vec(),
        changed(IP_AT, 0x65),
        changed(IP_AT, 0x44),
        changed(13, 0x06),
        whole[..IP_AT + 21].to_vec(),
        changed(IP_AT + 7, 1),
        changed(IP_AT + 3, 19),
        changed(IP_AT + 2, 0xff),
    ];
    let records: Vec<Record<'_>> = frames.iter().map(|frame| (1, 0, &frame[..])).collect();
    let capture = |link: u32| {
        let mut bytes = pcap(LITTLE, MICROSECONDS, link, &records);
        let mut at = WIRE_LEN_AT;
        for frame in &frames {
            bytes[at..at + 4].copy_from_slice(&(whole.len() as u32).to_le_bytes());
            at += 16 + frame.len();
        }
        bytes
    };
    let run = Run::piped(&capture(ETHERNET), usize::MAX, &[]);
    for (words, count) in [
        ("packets, ", 10),
        ("IP packets, ", 4),
        ("later fragments", 1),
        ("cut before their ports", 1),
        ("non-IP packets", 1),
        ("ARP (EtherType 0x0806)", 1),
        ("malformed packets", 6),
        ("cut before the IP header", 1),
        ("cut in the IP header", 1),
        ("of a wrong IP version", 1),
        ("with an IPv4 header below 20 bytes", 1),
        ("with a total length below the IPv4 header", 1),
        ("longer than their frames", 1),
    ] {
        assert_eq!(run.count(words), count, "{words}: {run:?}");
    }
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = Run::piped(&capture(147), usize::MAX, &[]);
    assert_eq!((run.code, run.count("of an unknown link type")), (Some(2), 10));
    assert_eq!(run.count("packets of link type 147"), 10);
    assert_eq!(run.errors(), ["flow_cache: link types that are not supported: 147"]);
}

#[test]
fn without_arguments_it_meters_generated_traffic() {
    let run = Run::with(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.starts_with("generated traffic"), "{run:?}");
    for words in
        ["hit rate", "largest records", "flows of 1000000", "established", "packets per second"]
    {
        assert!(run.stdout.contains(words), "{words}: {run:?}");
    }
    let packets = run.count("packets, ");
    assert!((20_000..100_000).contains(&packets), "{packets}");
    let accounted =
        run.count("IP packets, ") + run.count("non-IP packets") + run.count("malformed packets");
    assert_eq!(packets, accounted);
    assert!(run.count("later fragments") > 0 && run.count("malformed packets") > 0, "{run:?}");
    let top = |count: &str| {
        let run = Run::with(&["--top".as_ref(), count.as_ref()]);
        run.stdout.lines().filter(|line| line.contains(" > ")).count()
    };
    assert_eq!((top("0"), top("3"), top("10"), top("1000000")), (0, 3, 10, 2598));
}

#[test]
fn rows_go_to_a_file_and_never_over_the_capture() {
    let capture = file("rows_go_to_a_file.pcap", &small(LITTLE, MICROSECONDS));
    let csv = file("rows_go_to_a_file.csv", b"old");
    let to_csv = [capture.as_os_str(), "--csv".as_ref(), csv.as_os_str()];
    Run::with(&to_csv).assert_refused("exists, and has other columns: --overwrite replaces it");
    let run = Run::with(&[&to_csv[..], &["--overwrite".as_ref()]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(flows(File::open(&csv).expect("it was written")).len(), 2);
    // A mistyped name of a capture destroys no file.
    let before = fs::read(&csv).expect("it was written");
    let run = Run::with(&["no such capture".as_ref(), "--csv".as_ref(), csv.as_os_str()]);
    assert_eq!((run.code, fs::read(&csv).ok()), (Some(2), Some(before)));
    let run = Run::with(&[capture.as_os_str(), "--csv".as_ref(), capture.as_os_str()]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(fs::read(capture).expect("it is there"), small(LITTLE, MICROSECONDS));
}

#[test]
#[cfg(unix)]
fn rows_never_go_over_the_capture_by_another_name() {
    let capture = file("by_another_name.pcap", &small(LITTLE, MICROSECONDS));
    let (hard, soft) = (capture.with_extension("hard"), capture.with_extension("soft"));
    for link in [&hard, &soft] {
        let _ = fs::remove_file(link);
    }
    fs::hard_link(&capture, &hard).expect("the build folder has hard links");
    std::os::unix::fs::symlink(&capture, &soft).expect("the build folder has links");
    for csv in [&capture, &hard, &soft] {
        Run::with(&[capture.as_os_str(), "--csv".as_ref(), csv.as_os_str()])
            .assert_refused("is the");
        let mut command = Command::new(example());
        command.arg("-").arg("--csv").arg(csv);
        command.stdin(File::open(&capture).expect("it was written"));
        Run::new(command.output().expect("the example can be run"))
            .assert_refused("is the capture");
        assert_eq!(fs::read(&capture).expect("it is there"), small(LITTLE, MICROSECONDS));
    }
    // Another file is allowed, with standard input, too.
    let other = file("by_another_name.csv", b"");
    let run = Run::piped(
        &small(LITTLE, MICROSECONDS),
        usize::MAX,
        &["--csv", other.to_str().expect("the build folder has a name in UTF-8")],
    );
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(flows(File::open(&other).expect("it was written")).len(), 2);
}

#[test]
fn a_capture_without_packets_is_a_capture() {
    for bytes in [pcap(BIG, MICROSECONDS, ETHERNET, &[]), section(LITTLE)] {
        let run = Run::piped(&bytes, usize::MAX, &["--csv", "-"]);
        assert_eq!((run.code, run.rows(), run.errors()), (Some(0), vec![], vec![]));
    }
}

#[test]
fn what_is_no_capture_is_refused_in_one_line() {
    let bad_order = block(LITTLE, 0x0a0d_0d0a, &[9; 16]);
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"src,dst\nthis is text, and long enough for a header\n", "is no capture"),
        (b"\xd4\xc3\xb2\xa1", "is no capture"),
        (&[0; 100], "is no capture"),
        (&gzip(b"text"), "is no capture"),
        (&gzip(b""), "is empty"),
        (b"\x1f\x8bnot really compressed", "cannot be read"),
        (&bad_order, "is no capture"),
    ] {
        Run::piped(bytes, usize::MAX, &[]).assert_refused(words);
        let path = file("what_is_no_capture", bytes);
        Run::with(&[path.as_os_str()]).assert_refused(words);
    }
    Run::with(&["no such file".as_ref()]).assert_refused("no such file cannot be read");
    Run::with(&[env!("CARGO_TARGET_TMPDIR").as_ref()]).assert_refused("cannot be read");
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    for (arguments, words) in [
        (&["--capacity", "0"][..], "--capacity 0: not from 1 to 1073741823"),
        (&["--capacity", "many"], "--capacity many"),
        (&["--capacity", "-1"], "-1"),
        (&["--capacity", "4000000000"], "--capacity 4000000000"),
        (&["--top", "99999999999999999999999"], "--top 99999999999999999999999"),
        (&["--top"], "--top"),
        (&["--idle", "0"], "--idle 0: --idle needs a number of seconds above 0"),
        (&["--top", "x"], "--top x: not a number from 0 to 1000000"),
        (&["--max-memory", "much"], "--max-memory much: not a number of bytes"),
        (&["--csv="], "--csv needs the name of a file"),
        (&["--idle", "-0.5"], "--idle -0.5: --idle needs a number of seconds above 0"),
        (&["--active", "nan"], "--active nan: --active needs a number of seconds above 0"),
        (&["--active", "1e10"], "--active 1e10: timeout longer than"),
        (&["--linger", "1e300"], "--linger 1e300: longer than time can be"),
        (&["--linger", "never"], "seconds above 0, or off"),
        (&["--timeouts", "never"], "--timeouts never: not off, meter or conntrack"),
        (&["--color"], "--color"),
        (&["--live=no"], "--live"),
        (&["a", "b"], "a cannot be read"),
        (&["a", "-"], "standard input cannot be merged"),
        (&["--csv", "no such folder/rows.csv"], "no such folder/rows.csv"),
        (&["--json", "no such folder/lines"], "no such folder/lines"),
        (&["--ipfix", "no such folder/messages"], "no such folder/messages"),
        (&["--ipfix", "host.invalid:4739"], "host.invalid:4739"),
        (&["--ipfix", "host:"], "--ipfix host:: no port"),
        (&["--ipfix", ":4739"], "--ipfix :4739: no port"),
        (&["--ipfix", "host:0"], "--ipfix host:0: no port"),
        (&["--ipfix", "host:65536"], "--ipfix host:65536: no port"),
        (&["--ipfix", ""], "--ipfix needs a file, or HOST:PORT"),
        (&["--rotate-size", "0"], "--rotate-size 0: must be above 0"),
        (&[""], "the name of a capture is empty"),
        (&["--ipfix", "host:port"], "--ipfix host:port: no port"),
        (&["--ipfix", "127.0.0.1"], "--ipfix 127.0.0.1: no port"),
        (&["--ipfix", "::1"], "--ipfix ::1: no port"),
        (&["--ipfix", "[::1]"], "--ipfix [::1]: no port"),
        (&["--ipfix", "localhost"], "--ipfix localhost: no port"),
        (&["--threshold", "0"], "--threshold 0: not from 1 to 1073741823"),
        (&["--csv", "-", "--json", "-"], "only one of the results"),
    ] {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        Run::with(&arguments).assert_refused(words);
    }
    let help = Run::with(&["--help".as_ref()]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("--capacity N"), "{help:?}");
    assert!(help.stdout.lines().all(|line| line.chars().count() <= 80), "{help:?}");
    for version in ["--version", "-V"] {
        let run = Run::with(&[version.as_ref()]);
        assert_eq!(run.stdout, concat!("flow_cache ", env!("CARGO_PKG_VERSION"), "\n"));
    }
    let [threshold, capacity] = ["--threshold", "--capacity"]
        .map(|option| Run::with(&[option, "100", "--csv", "-"].map(OsStr::new)).stdout);
    assert!(threshold == capacity);
}

#[test]
fn a_reader_may_stop_reading() {
    for arguments in [&["--csv", "-"][..], &["--top", "5000"]] {
        let mut command = Command::new(example());
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().expect("it is piped");
        stdout.read_exact(&mut first).expect("it prints more than this");
        drop(stdout);
        let run = Run::new(child.wait_with_output().expect("it ends"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    }
}

/// Runs with standard output closed from the beginning.
fn unread(arguments: &[&OsStr]) -> Run {
    let mut command = Command::new(example());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the example can be run");
    drop(child.stdout.take());
    Run::new(child.wait_with_output().expect("it ends"))
}

#[test]
fn results_that_are_read_no_more_cut_no_others() {
    let [alone, beside] = ["alone.json", "beside.json"].map(|name| file(name, b""));
    let run = Run::with(&["--json".as_ref(), alone.as_os_str()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let closed = unread(&["--csv".as_ref(), "-".as_ref(), "--json".as_ref(), beside.as_os_str()]);
    assert_eq!((closed.code, closed.errors()), (Some(0), vec![]), "{closed:?}");
    let [alone, beside] = [alone, beside].map(|path| fs::read(path).expect("it was written"));
    assert!(!alone.is_empty() && alone == beside);
}

/// The port has no listener, since its socket is closed.
#[test]
#[cfg(target_os = "linux")]
fn losses_are_reported_even_if_the_report_is_not_read() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let name = socket.local_addr().expect("it has a name").to_string();
    drop(socket);
    let run = unread(&["--ipfix".as_ref(), name.as_ref()]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("did not receive"), "{run:?}");
}

#[test]
fn changed_captures_never_crash_it() {
    let mut random = StdRng::seed_from_u64(2006);
    let seeds = seeds();
    for round in 0..500 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..random.random_range(0..8) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = match random.random_range(0..4) {
                0 => 0,
                1 => 0xff,
                2 => bytes[at] ^ 1 << random.random_range(0..8),
                _ => random.random(),
            };
        }
        if random.random_bool(0.3) {
            bytes.truncate(random.random_range(0..=bytes.len()));
        }
        if random.random_bool(0.1) {
            bytes.extend(seeds[random.random_range(0..seeds.len())].iter());
        }
        let run = Run::piped(
            &bytes,
            usize::MAX,
            &["--csv", "-", "--capacity", "2", "--timeouts", "meter", "--active", "0.5"],
        );
        assert!(run.is_sane(), "round {round}: {run:?} from {bytes:x?}");
    }
}

/// Captures with flows that differ from those of the other tools: how many, and the reason.
const EXCEPTIONS: [(&str, usize, &str); 3] = [
    ("gopacket-le-test202.pcapng", 1, "a simple packet has no time, which the script shows as 0"),
    ("zeek-trunc-mpls-6in6-broken.pcap", 12, "below MPLS, IP is known by a valid header"),
    ("mix-public.pcap.gz", 1, "IP headers claim more than their frames can hold"),
];

/// Number of captures of the data folder with tshark's flows, and minimum number with flows of
/// tshark or the Python script.
const JUDGED_BY_TSHARK: usize = 13;
const JUDGED_BY_ALL: usize = 41;

#[test]
fn flows_are_those_that_other_tools_see() {
    const TEST: &str = "flows_are_those_that_other_tools_see";
    let Some(folder) = folder() else {
        return announce(TEST, format_args!("SKIPPED: {NO_CAPTURES}"));
    };
    let (mut equal, mut differing, mut not_judged) = (0, vec![], 0);
    for capture in captures(&folder) {
        let Some(truth) = truth(&folder, &capture) else {
            not_judged += 1;
            continue;
        };
        let run = Run::with(&[capture.as_os_str(), "--csv".as_ref(), "-".as_ref()]);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{}", capture.display());
        let flows = flows(run.stdout.as_bytes());
        let is_icmp = |protocol: &str| ["1", "58"].contains(&protocol);
        let others = flows.keys().filter(|key| !is_icmp(&key[2])).count();
        let rows = run.rows();
        let rows = rows.iter().filter(|row| !row.split(',').nth(2).is_some_and(is_icmp)).count();
        assert_eq!(others, rows, "{}: one row per flow", capture.display());
        let keys: BTreeSet<&Vec<String>> = flows.keys().chain(truth.keys()).collect();
        let others = keys.into_iter().filter(|key| flows.get(*key) != truth.get(*key)).count();
        match others {
            0 => equal += 1,
            _ => {
                let name = capture.file_name().unwrap_or_default();
                differing.push((name.to_string_lossy().into_owned(), others));
            }
        }
    }
    if not_judged > 0 {
        let skipped = format!("{not_judged} captures NOT judged, {equal} equal");
        announce(TEST, format_args!("SKIPPED: {skipped}: there is no python3"));
    }
    let exceptions = EXCEPTIONS.map(|(name, count, _why)| (name.to_owned(), count));
    assert_eq!(differing, exceptions);
    let least = if not_judged > 0 { JUDGED_BY_TSHARK } else { JUDGED_BY_ALL };
    assert!(equal >= least, "only {equal} captures equal of at least {least}");
}
