//! The example `flow_cache`, end to end: captures in, rows of flows out.
//!
//! Where the captures of the project's data folder are at hand (`FLOWTABLE_DATA` names the folder),
//! its rows must be those of other tools. All else is checked on captures that are made here, whose
//! flows are worked out by hand.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use etherparse::PacketBuilder;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The example, which `cargo test` builds next to this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the test is a file");
    let profile = test.ancestors().nth(2).expect("it is in target/<profile>/deps");
    let example =
        profile.join("examples").join(format!("flow_cache{}", std::env::consts::EXE_SUFFIX));
    assert!(
        example.exists(),
        "{} is missing: build it with `cargo build --example flow_cache`, and `--release` for \
         `cargo test --release`",
        example.display()
    );
    example
}

/// What a run of the example left.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the example prints UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    fn with(arguments: &[&OsStr]) -> Self {
        let mut command = Command::new(example());
        command.args(arguments).stdin(Stdio::null());
        Self::new(command.output().expect("the example can be run"))
    }

    /// Runs it on these bytes through a pipe, in pieces of so many bytes.
    fn piped(capture: &[u8], piece: usize, arguments: &[&str]) -> Self {
        let mut command = Command::new(example());
        command.arg("-").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        let mut pipe = child.stdin.take().expect("it was asked for");
        let capture = capture.to_vec();
        let writer = std::thread::spawn(move || {
            for piece in capture.chunks(piece) {
                // A reader that has seen enough closes the pipe: not this test's business.
                if pipe.write_all(piece).is_err() {
                    return;
                }
            }
        });
        let output = child.wait_with_output().expect("the example ends");
        writer.join().expect("writing does not panic");
        Self::new(output)
    }

    /// The rows for a capture, sorted; the run must have gone well.
    fn rows_of(capture: &[u8]) -> Vec<String> {
        let run = Self::piped(capture, usize::MAX, &["--csv", "-"]);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
        run.rows()
    }

    /// The rows, sorted, behind the header.
    fn rows(&self) -> Vec<String> {
        let mut lines = self.stdout.lines().map(str::to_owned);
        let header = lines.next();
        assert_eq!(
            header.as_deref(),
            Some("src,dst,proto,sport,dport,packets,ip_bytes,first_ns,last_ns"),
            "{self:?}"
        );
        let mut rows: Vec<String> = lines.collect();
        rows.sort();
        rows
    }

    /// The lines of standard error that are not the report's.
    fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("flow_cache: ")).collect()
    }

    /// The number that the report has in front of these words.
    fn count(&self, words: &str) -> u64 {
        let mut lines = self.stdout.lines().chain(self.stderr.lines());
        let line = lines.find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("no line about {words:?} in {self:?}"));
        let number = line.split_whitespace().next().expect("a line with words has a first");
        number.parse().unwrap_or_else(|_| panic!("{line:?} begins with no number"))
    }

    /// Whether it ended as it may end on any input at all.
    fn is_sane(&self) -> bool {
        matches!(self.code, Some(0 | 2)) && !self.stderr.contains("panicked")
    }
}

/// Packets, bytes, first and last time of each five-tuple: records of the same one are added.
fn flows(csv: impl Read) -> BTreeMap<Vec<String>, [u64; 4]> {
    let mut reader = csv::Reader::from_reader(csv);
    let columns = reader.headers().expect("there is a header").clone();
    let at = |name| columns.iter().position(|column| column == name).expect("the column exists");
    let key = ["src", "dst", "proto", "sport", "dport"].map(at);
    let value = ["packets", "ip_bytes", "first_ns", "last_ns"].map(at);
    let mut flows = BTreeMap::new();
    for row in reader.records() {
        let row = row.expect("a row");
        let key = key.iter().map(|&at| row[at].to_owned()).collect();
        let [packets, bytes, first, last] =
            value.map(|at| row[at].parse::<u64>().expect("a number"));
        let sums = flows.entry(key).or_insert([0, 0, u64::MAX, 0]);
        *sums = [sums[0] + packets, sums[1] + bytes, sums[2].min(first), sums[3].max(last)];
    }
    flows
}

/// A file in the build folder, named after the test that made it.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("the build folder can be written");
    path
}

/// How numbers are written.
#[derive(Clone, Copy)]
struct Endian {
    u16: fn(u16) -> [u8; 2],
    u32: fn(u32) -> [u8; 4],
    u64: fn(u64) -> [u8; 8],
}

const LITTLE: Endian =
    Endian { u16: u16::to_le_bytes, u32: u32::to_le_bytes, u64: u64::to_le_bytes };
const BIG: Endian = Endian { u16: u16::to_be_bytes, u32: u32::to_be_bytes, u64: u64::to_be_bytes };

impl Endian {
    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| (self.u32)(word)).collect()
    }
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;
const ETHERNET: u32 = 1;

/// Seconds, fraction, and the bytes of a frame.
type Record<'a> = (u32, u32, &'a [u8]);

fn pcap(endian: Endian, magic: u32, link: u32, records: &[Record<'_>]) -> Vec<u8> {
    let mut out = Vec::from((endian.u32)(magic));
    out.extend((endian.u16)(2));
    out.extend((endian.u16)(4));
    out.extend(endian.words(&[0, 0, 262_144, link]));
    for (seconds, fraction, frame) in records {
        let length = frame.len() as u32;
        out.extend(endian.words(&[*seconds, *fraction, length, length]));
        if magic == MODIFIED {
            out.extend([0xee; 8]);
        }
        out.extend(*frame);
    }
    out
}

/// A block of a pcapng.
fn block(endian: Endian, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len().next_multiple_of(4);
    let mut out = endian.words(&[kind, length as u32 + 12]);
    out.extend(body);
    out.resize(8 + length, 0);
    out.extend((endian.u32)(length as u32 + 12));
    out
}

fn section(endian: Endian) -> Vec<u8> {
    block(endian, 0x0a0d_0d0a, &[endian.words(&[0x1a2b_3c4d]), vec![0; 12]].concat())
}

/// An Ethernet interface whose clock has this resolution and offset, as the options say them.
fn interface(endian: Endian, resolution: Option<u8>, offset_s: Option<i64>) -> Vec<u8> {
    let mut body = Vec::from((endian.u16)(ETHERNET as u16));
    body.extend((endian.u16)(0));
    body.extend((endian.u32)(0));
    let option = |code, length| [(endian.u16)(code), (endian.u16)(length)].concat();
    if let Some(resolution) = resolution {
        body.extend(option(9, 1));
        body.extend([resolution, 0, 0, 0]);
    }
    if let Some(offset_s) = offset_s {
        body.extend(option(14, 8));
        body.extend((endian.u64)(offset_s.cast_unsigned()));
    }
    body.extend(option(0, 0));
    block(endian, 1, &body)
}

fn enhanced(endian: Endian, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let head = [interface, (ticks >> 32) as u32, ticks as u32, length, length];
    block(endian, 6, &[endian.words(&head), frame.to_vec()].concat())
}

fn simple(endian: Endian, frame: &[u8]) -> Vec<u8> {
    block(endian, 3, &[endian.words(&[frame.len() as u32]), frame.to_vec()].concat())
}

fn obsolete(endian: Endian, interface: u16, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let mut body = [(endian.u16)(interface), (endian.u16)(0xffff)].concat();
    body.extend(endian.words(&[(ticks >> 32) as u32, ticks as u32, length, length]));
    body.extend(frame);
    block(endian, 2, &body)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// A UDP datagram in IPv4, of 28 + `len` bytes, behind Ethernet.
fn udp(sport: u16, dport: u16, len: usize) -> Vec<u8> {
    let packet = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 1], [198, 51, 100, 2], 64)
        .udp(sport, dport);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, &vec![0; len]).expect("a vector takes all");
    bytes
}

/// A TCP segment in IPv6 without payload, of 60 bytes, behind Ethernet.
fn tcp6(sport: u16, dport: u16) -> Vec<u8> {
    let (src, dst) = ("2001:db8::1", "2001:db8::2");
    let octets = |text: &str| text.parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let packet = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6(octets(src), octets(dst), 64)
        .tcp(sport, dport, 1, 1);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, &[]).expect("a vector takes all");
    bytes
}

/// Length of the Ethernet header of these frames.
const IP_AT: usize = 14;

/// Three packets of two flows, the second of which has come too late.
fn small(endian: Endian, magic: u32) -> Vec<u8> {
    let (early, late, other) = (udp(1000, 53, 4), udp(1000, 53, 6), tcp6(40_000, 443));
    pcap(endian, magic, ETHERNET, &[(20, 7, &late), (10, 5, &early), (30, 999, &other)])
}

/// The rows of [`small`], whose fractions of a second have units of so many nanoseconds.
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
    let times = [5_000_003_000_u64, 100_005_000_003, 0, 500_000_000];
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
fn damaged_blocks_of_pcapng_are_skipped_and_counted() {
    let frame = udp(1, 53, 0);
    let mut lying = enhanced(LITTLE, 0, 1, &frame);
    lying[20..24].copy_from_slice(&u32::to_le_bytes(1 << 30));
    let blocks = [
        section(LITTLE),
        interface(LITTLE, None, None),
        lying,
        enhanced(LITTLE, 7, 1, &frame),
        enhanced(LITTLE, 0, 1, &frame),
    ];
    let run = Run::piped(&blocks.concat(), usize::MAX, &[]);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]));
    assert_eq!((run.count("packets, "), run.count("blocks skipped")), (1, 2));
    // A block that is shorter than its own head says nothing about where the next one is.
    let run =
        Run::piped(&[blocks.concat(), vec![6, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0]].concat(), 64, &[]);
    assert_eq!((run.code, run.count("packets, ")), (Some(0), 1));
    assert_eq!(
        run.errors(),
        ["flow_cache: capture is cut after packet 1: a block cannot be 8 bytes long"]
    );
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
        // What is left of a packet is taken as a packet that was captured short.
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

/// A record that claims gigabytes, and one that has more than is ever held, in little memory.
#[test]
#[cfg(target_os = "linux")]
fn lengths_that_are_claimed_take_no_memory() {
    let frame = udp(1000, 53, 0);
    let mut claimed = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &frame)]);
    claimed[32..36].copy_from_slice(&u32::to_le_bytes(u32::MAX));
    let huge = [frame.clone(), vec![0; 100 << 20]].concat();
    let huge = pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 0, &huge), (2, 0, &frame)]);
    let claimed_block = [section(LITTLE), LITTLE.words(&[6, u32::MAX - 3, 0])].concat();
    for (bytes, packets, is_cut) in [(claimed, 1, true), (huge, 2, false), (claimed_block, 0, true)]
    {
        let path = file("lengths_that_are_claimed", &bytes);
        let limited = format!("ulimit -v 100000; exec '{}' \"$0\"", example().display());
        let output = Command::new("sh").arg("-c").arg(limited).arg(&path).output();
        let run = Run::new(output.expect("there is a shell"));
        assert_eq!((run.code, run.count("packets, ")), (Some(0), packets), "{run:?}");
        assert_eq!(run.errors().len(), usize::from(is_cut), "{run:?}");
        fs::remove_file(path).expect("it was written");
    }
}

/// What each link type puts in front of an IPv4 packet, by its number.
const LINKS: [(u32, &[u8]); 34] = [
    (0, &[2, 0, 0, 0]),
    (0, &[0, 0, 0, 2]),
    (1, b"ddddddssssss\x08\x00"),
    (1, b"ddddddssssss\x81\x00\x00\x05\x08\x00"),
    (1, b"ddddddssssss\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00"),
    (1, b"ddddddssssss\x91\x00\x00\x05\x92\x00\x00\x06\x08\x00"),
    (1, b"ddddddssssss\x88\x47\x00\x01\x00\x40\x00\x01\x11\x40"),
    (1, b"ddddddssssss\x88\x47\x00\x01\x01\x40\x00\x00\x00\x00DDDDDDSSSSSS\x08\x00"),
    (1, b"ddddddssssss\x81\x00\x00\x05\x88\x48\x00\x01\x11\x40"),
    (1, b"ddddddssssss\x88\x64\x11\x00\x00\x01\x00\x1e\x00\x21"),
    (1, b"ddddddssssss\x88\x64\x11\x00\x00\x01\x00\x1d\x21"),
    (1, b"ddddddssssss\x88\xe7\x00\x00\x00\x01DDDDDDSSSSSS\x08\x00"),
    (1, b"ddddddssssss\x00\x26\xaa\xaa\x03\x00\x00\x00\x08\x00"),
    (9, &[0xff, 3, 0, 0x21]),
    (9, &[0x21]),
    (12, &[]),
    (14, &[]),
    (50, &[0xff, 3, 0, 0x21]),
    (50, &[0x0f, 0, 8, 0]),
    (51, &[0x11, 0, 0, 1, 0, 30, 0, 0x21]),
    (101, &[]),
    (104, &[0x0f, 0, 8, 0]),
    (105, b"\x08\x01aa111111222222333333ss\xaa\xaa\x03\x00\x00\x00\x08\x00"),
    (105, b"\x88\x03aa111111222222333333ss444444qq\xaa\xaa\x03\x00\x00\x00\x08\x00"),
    (108, &[0, 0, 0, 2]),
    (113, b"\x00\x00\x00\x01\x00\x06ssssss\x00\x00\x08\x00"),
    (117, &[61, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (127, b"\x00\x00\x08\x00\x00\x00\x00\x00\x08\x02aa111111222222333333ss\xaa\xaa\x03\x00\x00\x00\x08\x00"),
    (166, &[1, 3, 0, 0x21]),
    (192, b"\x00\x00\x08\x00\x01\x00\x00\x00ddddddssssss\x08\x00"),
    (204, &[0, 0xff, 3, 0, 0x21]),
    (228, &[]),
    (239, &[2, 0, 0, 0, 5, 0, 1, 0, 7, 0, 0, 0, 34, 0, 9, 0]),
    (276, b"\x08\x00\x00\x00\x00\x00\x00\x02\x00\x01\x00\x06ssssssss"),
];

#[test]
fn ip_is_found_behind_every_link_layer() {
    let packet = udp(1000, 53, 2)[IP_AT..].to_vec();
    for (link, front) in LINKS {
        let frame = [front, &packet].concat();
        let capture = pcap(LITTLE, NANOSECONDS, link, &[(0, 1, &frame)]);
        let rows = Run::rows_of(&capture);
        assert_eq!(rows, ["192.0.2.1,198.51.100.2,17,1000,53,1,30,1,1"], "{link} {front:x?}");
    }
    let packet = tcp6(1, 2)[IP_AT..].to_vec();
    for (link, front) in [(0, &[30, 0, 0, 0][..]), (9, &[0, 0x57]), (101, &[]), (229, &[])] {
        let frame = [front, &packet].concat();
        let rows = Run::rows_of(&pcap(BIG, NANOSECONDS, link, &[(0, 1, &frame)]));
        assert_eq!(rows, ["2001:db8::1,2001:db8::2,6,1,2,1,60,1,1"], "{link} {front:x?}");
    }
}

/// An IPv6 packet with this first protocol number and payload, and how its row begins.
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
    // No ports: no next header, encrypted, ICMP, UDP-Lite.
    for protocol in [59, 50, 58, 136] {
        assert_eq!(v6_row(protocol, &[0, 7, 0, 9]), format!("{protocol},0,0,1,44,1,1"));
    }
}

/// The row of an IPv4 packet behind the addresses, after some bytes of it were changed.
fn v4_row(length: usize, changes: &[(usize, u8)]) -> String {
    let mut ip = udp(7, 9, 20)[IP_AT..].to_vec();
    for (at, byte) in changes {
        ip[*at] = *byte;
    }
    ip.truncate(length);
    let rows = Run::rows_of(&pcap(LITTLE, NANOSECONDS, 101, &[(0, 1, &ip)]));
    rows[0].strip_prefix("192.0.2.1,198.51.100.2,").expect("the addresses").to_owned()
}

#[test]
fn fields_of_ipv4_count_as_the_header_has_them() {
    assert_eq!(v4_row(48, &[]), "17,7,9,1,48,1,1");
    // Options move the ports; where options or ports are cut, they are 0.
    assert_eq!(
        v4_row(48, &[(0, 0x46), (20, 0), (27, 9), (25, 8)]),
        "17,2056,9,1,48,1,1".replace("2056", "28")
    );
    assert_eq!(v4_row(22, &[(0, 0x4f)]), "17,0,0,1,48,1,1");
    assert_eq!(v4_row(23, &[]), "17,0,0,1,48,1,1");
    // A later fragment has none; a first one has.
    assert_eq!(v4_row(48, &[(6, 0x20), (7, 0)]), "17,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(6, 0x00), (7, 1)]), "17,0,0,1,48,1,1");
    // SCTP and DCCP have ports, ICMP has none; a length of 0 is that of the frame.
    assert_eq!(v4_row(48, &[(9, 132)]), "132,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(9, 33)]), "33,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(9, 1)]), "1,0,0,1,48,1,1");
    assert_eq!(v4_row(48, &[(2, 0), (3, 0)]), "17,7,9,1,48,1,1");
    assert_eq!(v4_row(48, &[(2, 0), (3, 5)]), "17,7,9,1,5,1,1");
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
    ];
    let records: Vec<Record<'_>> = frames.iter().map(|frame| (1, 0, &frame[..])).collect();
    let run = Run::piped(&pcap(LITTLE, MICROSECONDS, ETHERNET, &records), usize::MAX, &[]);
    for (words, count) in [
        ("packets, ", 8),
        ("IP packets, ", 3),
        ("later fragments", 1),
        ("cut in front of their ports", 1),
        ("non-IP packets", 1),
        ("malformed packets", 4),
        ("cut in front of the IP header", 1),
        ("cut in the IP header", 1),
        ("of a wrong IP version", 1),
        ("with an IPv4 header below 20 bytes", 1),
    ] {
        assert_eq!(run.count(words), count, "{words}: {run:?}");
    }
    let run = Run::piped(&pcap(LITTLE, MICROSECONDS, 147, &records), usize::MAX, &[]);
    assert_eq!((run.code, run.count("of an unknown link type")), (Some(0), 8));
}

/// The example's own traffic as rows, with more arguments.
fn generated(arguments: &[&str]) -> Run {
    let mut all: Vec<&OsStr> = vec!["--csv".as_ref(), "-".as_ref()];
    all.extend(arguments.iter().map(OsStr::new));
    let run = Run::with(&all);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    run
}

#[test]
fn records_that_leave_early_add_up_to_the_exact_flows() {
    let exact = generated(&[]);
    let flows_exact = flows(exact.stdout.as_bytes());
    assert_eq!(flows_exact.len(), exact.rows().len(), "one row per flow");
    assert_eq!(exact.count("flow records"), flows_exact.len() as u64);
    for arguments in [
        &["--threshold", "1", "--goal", "1"][..],
        &["--threshold", "100"],
        &["--threshold", "1000", "--goal", "7"],
        &["--fin"],
        &["--fin", "--threshold", "50", "--goal", "10"],
    ] {
        let run = generated(arguments);
        assert_eq!(flows(run.stdout.as_bytes()), flows_exact, "{arguments:?}");
        let (rows, evicted, ended) = (
            run.rows().len() as u64,
            run.count("as garbage"),
            run.count("end of their connection"),
        );
        assert_eq!(run.count("cache at the end") + evicted + ended, rows, "{arguments:?}");
        assert_eq!(evicted > 0, arguments.contains(&"--threshold"), "{arguments:?}");
        assert_eq!(ended > 0, arguments.contains(&"--fin"), "{arguments:?}");
    }
    let above = generated(&["--threshold", &(flows_exact.len() + 1).to_string()]);
    assert_eq!(above.rows(), exact.rows());
}

#[test]
fn without_arguments_it_meters_traffic_of_its_own() {
    let run = Run::with(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.starts_with("generated traffic"), "{run:?}");
    for words in ["hit rate", "largest flows", "root of ", "keys by depth:", "packets per second"] {
        assert!(run.stdout.contains(words), "{words}: {run:?}");
    }
    let packets = run.count("packets, ");
    assert!((20_000..100_000).contains(&packets), "{packets}");
    let accounted =
        run.count("IP packets, ") + run.count("non-IP") + run.count("malformed packets");
    assert_eq!(packets, accounted);
    assert!(run.count("later fragments") > 0 && run.count("malformed packets") > 0, "{run:?}");
    let top = |count: &str| {
        let run = Run::with(&["--top".as_ref(), count.as_ref()]);
        run.stdout.lines().filter(|line| line.contains(" > ")).count()
    };
    assert_eq!((top("0"), top("3"), top("10"), top("4000000")), (0, 3, 10, 4918));
}

#[test]
fn rows_go_to_a_file_and_never_over_the_capture() {
    let capture = file("rows_go_to_a_file.pcap", &small(LITTLE, MICROSECONDS));
    let csv = file("rows_go_to_a_file.csv", b"old");
    let run = Run::with(&[capture.as_os_str(), "--csv".as_ref(), csv.as_os_str()]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(flows(File::open(&csv).expect("it was written")).len(), 2);
    // A mistyped name of a capture costs no file.
    let before = fs::read(&csv).expect("it was written");
    let run = Run::with(&["no such capture".as_ref(), "--csv".as_ref(), csv.as_os_str()]);
    assert_eq!((run.code, fs::read(&csv).ok()), (Some(2), Some(before)));
    let run = Run::with(&[capture.as_os_str(), "--csv".as_ref(), capture.as_os_str()]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(fs::read(capture).expect("it is there"), small(LITTLE, MICROSECONDS));
}

#[test]
fn a_capture_without_packets_is_a_capture() {
    for bytes in [pcap(BIG, MICROSECONDS, ETHERNET, &[]), section(LITTLE)] {
        let run = Run::piped(&bytes, usize::MAX, &["--csv", "-"]);
        assert_eq!((run.code, run.rows(), run.errors()), (Some(0), vec![], vec![]));
    }
}

/// What is wrong is said in one line that contains `words`, with exit code 2 and no output.
fn is_refused(run: &Run, words: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert_eq!((run.stderr.lines().count(), run.errors().len()), (1, 1), "{run:?}");
    assert!(run.stderr.contains(words), "{words}: {run:?}");
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
        is_refused(&Run::piped(bytes, usize::MAX, &[]), words);
        let path = file("what_is_no_capture", bytes);
        is_refused(&Run::with(&[path.as_os_str()]), words);
    }
    is_refused(&Run::with(&["no such file".as_ref()]), "no such file cannot be read");
    is_refused(&Run::with(&[env!("CARGO_TARGET_TMPDIR").as_ref()]), "cannot be read");
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    for (arguments, words) in [
        (&["--threshold", "0"][..], "threshold of 0"),
        (&["--goal", "0"], "goal of 0"),
        (&["--threshold", "many"], "--threshold many"),
        (&["--threshold", "-1"], "-1"),
        (&["--top", "99999999999999999999999"], "--top 99999999999999999999999"),
        (&["--top"], "--top"),
        (&["--color"], "--color"),
        (&["--fin=no"], "--fin"),
        (&["a", "b"], "b"),
        (&["--csv", "no such folder/rows.csv"], "no such folder/rows.csv"),
    ] {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        is_refused(&Run::with(&arguments), words);
    }
    let help = Run::with(&["--help".as_ref()]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("--threshold N"), "{help:?}");
}

#[test]
fn a_reader_may_stop_reading() {
    for arguments in [&["--csv", "-"][..], &["--top", "5000"]] {
        let mut command = Command::new(example());
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example can be run");
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().expect("it was asked for");
        stdout.read_exact(&mut first).expect("it prints more than this");
        drop(stdout);
        let run = Run::new(child.wait_with_output().expect("it ends"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    }
}

/// Captures of all kinds, small enough to be changed many times.
fn seeds() -> Vec<Vec<u8>> {
    let frame = udp(1, 53, 3);
    let mut mixed = Vec::new();
    for endian in [LITTLE, BIG] {
        mixed.extend(section(endian));
        mixed.extend(interface(endian, Some(9), Some(1)));
        mixed.extend(enhanced(endian, 0, 5, &frame));
        mixed.extend(simple(endian, &tcp6(1, 2)));
        mixed.extend(obsolete(endian, 0, 7, &frame));
    }
    let packet = &frame[IP_AT..];
    let linked = LINKS.map(|(link, front)| {
        pcap(LITTLE, NANOSECONDS, link, &[(1, 2, &[front, packet].concat()), (3, 4, packet)])
    });
    let mut seeds =
        vec![small(BIG, MODIFIED), gzip(&small(LITTLE, MICROSECONDS)), mixed.clone(), gzip(&mixed)];
    seeds.extend(linked);
    if let Some(data) = data() {
        let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.len() < 4096);
        seeds.extend(captures(&data).iter().filter(|path| small(path)).flat_map(fs::read));
    }
    seeds
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
            &["--csv", "-", "--threshold", "2", "--goal", "1", "--fin"],
        );
        assert!(run.is_sane(), "round {round}: {run:?} from {bytes:x?}");
    }
}

/// Captures whose flows differ from those of the other tools, and why. There are none.
const EXCEPTIONS: [(&str, &str); 0] = [];

/// The folder of captures and ground truth, if it is at hand.
fn data() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").into_os_string();
    let folder = PathBuf::from(std::env::var_os("FLOWTABLE_DATA").unwrap_or_else(beside));
    folder.join("captures").is_dir().then_some(folder)
}

fn captures(data: &Path) -> Vec<PathBuf> {
    let folders = ["captures", "mix", "oltp"].map(|folder| data.join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut captures: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    captures.retain(|path| path.extension().is_some_and(|extension| extension != "csv"));
    captures.sort();
    captures
}

/// The flows of a capture as tshark saw them, or else as the Python script of the data folder
/// does; `None` if there is neither.
fn truth(data: &Path, capture: &Path) -> Option<BTreeMap<Vec<String>, [u64; 4]>> {
    let is_compressed = capture.extension() == Some("gz".as_ref());
    let stem = if is_compressed { capture.file_stem() } else { capture.file_name() };
    let mut name = stem.map(OsStr::to_owned).unwrap_or_else(OsString::new);
    name.push(".tshark-uni.csv.gz");
    match File::open(data.join("truth").join(name)) {
        Ok(file) => return Some(flows(MultiGzDecoder::new(file))),
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{}", capture.display()),
    }
    let script = data.join("tools/flowstat.py");
    let output = Command::new("python3").arg(script).arg("--flows").arg(capture).output().ok()?;
    output.status.success().then(|| flows(&output.stdout[..]))
}

#[test]
fn flows_are_those_that_other_tools_see() {
    let Some(data) = data() else {
        return println!("skipped: no captures here; set FLOWTABLE_DATA to their folder");
    };
    let (mut equal, mut differing) = (0, vec![]);
    for capture in captures(&data) {
        let Some(truth) = truth(&data, &capture) else {
            println!("skipped: {}: no ground truth, and no python3", capture.display());
            continue;
        };
        let run = Run::with(&[capture.as_os_str(), "--csv".as_ref(), "-".as_ref()]);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{}", capture.display());
        let flows = flows(run.stdout.as_bytes());
        assert_eq!(flows.len(), run.rows().len(), "{}: one row per flow", capture.display());
        if flows == truth {
            equal += 1;
        } else {
            let name = capture.file_name().unwrap_or_default();
            differing.push(name.to_string_lossy().into_owned());
        }
    }
    println!("{equal} captures equal");
    assert_eq!(differing, EXCEPTIONS.map(|(name, _why)| name));
}
