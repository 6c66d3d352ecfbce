//! Test captures, composed byte by byte, and access to the project's data folder.

use core::fmt;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use etherparse::PacketBuilder;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

pub use super::links::LINKS;

/// Encoders of integers in a byte order.
#[derive(Clone, Copy)]
pub struct Endian {
    pub u16: fn(u16) -> [u8; 2],
    pub u32: fn(u32) -> [u8; 4],
    pub u64: fn(u64) -> [u8; 8],
}

pub const LITTLE: Endian =
    Endian { u16: u16::to_le_bytes, u32: u32::to_le_bytes, u64: u64::to_le_bytes };
pub const BIG: Endian =
    Endian { u16: u16::to_be_bytes, u32: u32::to_be_bytes, u64: u64::to_be_bytes };

impl Endian {
    pub fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| (self.u32)(word)).collect()
    }
}

pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;
pub const MODIFIED: u32 = 0xa1b2_cd34;
pub const ETHERNET: u32 = 1;

/// A record: seconds, fraction, and the bytes of a frame.
pub type Record<'a> = (u32, u32, &'a [u8]);

pub fn pcap(endian: Endian, magic: u32, link: u32, records: &[Record<'_>]) -> Vec<u8> {
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

/// Returns a pcap of one little-endian record, whose frame had this length on the wire.
pub fn pcap_of_cut(link: u32, record: Record<'_>, wire_len: usize) -> Vec<u8> {
    const WIRE_LEN_AT: usize = 24 + 12;
    let mut out = pcap(LITTLE, NANOSECONDS, link, &[record]);
    out[WIRE_LEN_AT..WIRE_LEN_AT + 4].copy_from_slice(&(wire_len as u32).to_le_bytes());
    out
}

/// Returns a block of a pcapng.
pub fn block(endian: Endian, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len().next_multiple_of(4);
    let mut out = endian.words(&[kind, length as u32 + 12]);
    out.extend(body);
    out.resize(8 + length, 0);
    out.extend((endian.u32)(length as u32 + 12));
    out
}

pub fn section(endian: Endian) -> Vec<u8> {
    block(endian, 0x0a0d_0d0a, &[endian.words(&[0x1a2b_3c4d]), vec![0; 12]].concat())
}

/// Returns an interface description block: Ethernet, with the resolution and offset of its clock as
/// options.
pub fn interface(endian: Endian, resolution: Option<u8>, offset_s: Option<i64>) -> Vec<u8> {
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
        body.extend((endian.u64)(offset_s as u64));
    }
    body.extend(option(0, 0));
    block(endian, 1, &body)
}

pub fn enhanced(endian: Endian, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let head = [interface, (ticks >> 32) as u32, ticks as u32, length, length];
    block(endian, 6, &[endian.words(&head), frame.to_vec()].concat())
}

pub fn simple(endian: Endian, frame: &[u8]) -> Vec<u8> {
    block(endian, 3, &[endian.words(&[frame.len() as u32]), frame.to_vec()].concat())
}

pub fn obsolete(endian: Endian, interface: u16, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let mut body = [(endian.u16)(interface), (endian.u16)(0xffff)].concat();
    body.extend(endian.words(&[(ticks >> 32) as u32, ticks as u32, length, length]));
    body.extend(frame);
    block(endian, 2, &body)
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writing to a vector succeeds");
    encoder.finish().expect("writing to a vector succeeds")
}

/// Returns these bytes compressed by xz with a preset: 9 needs 64 MiB to decompress them.
pub fn xz(bytes: &[u8], preset: u32) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), preset);
    encoder.write_all(bytes).expect("writing to a vector succeeds");
    encoder.finish().expect("writing to a vector succeeds")
}

/// Returns these bytes as a frame of zstd that needs a window of this logarithm.
pub fn zstd_of_window(bytes: &[u8], window: u8) -> Vec<u8> {
    // One block that is not compressed, the last one.
    let block = (bytes.len() as u32) << 3 | 1;
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, (window - 10) << 3][..], &block.to_le_bytes()[..3], bytes]
        .concat()
}

/// Returns these bytes in each format of compression that is read, with its name.
pub fn compressed(bytes: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    const WHY: &str = "writing to a vector succeeds";
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(bytes).expect(WHY);
    let mut lz4 = lz4::EncoderBuilder::new().build(Vec::new()).expect(WHY);
    lz4.write_all(bytes).expect(WHY);
    [
        ("gzip", gzip(bytes)),
        ("bzip2", bzip2.finish().expect(WHY)),
        ("zstd", zstd::encode_all(bytes, 1).expect(WHY)),
        ("xz", xz(bytes, 1)),
        ("lz4", lz4.finish().0),
    ]
}

/// Returns an Ethernet frame with a UDP datagram in IPv4, of 28 + `len` bytes.
pub fn udp(sport: u16, dport: u16, len: usize) -> Vec<u8> {
    let packet = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 1], [198, 51, 100, 2], 64)
        .udp(sport, dport);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, &vec![0; len]).expect("writing to a vector succeeds");
    bytes
}

/// Returns an Ethernet frame with a TCP segment in IPv6 without payload, of 60 bytes.
pub fn tcp6(sport: u16, dport: u16) -> Vec<u8> {
    let (src, dst) = ("2001:db8::1", "2001:db8::2");
    let octets = |text: &str| text.parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let packet = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6(octets(src), octets(dst), 64)
        .tcp(sport, dport, 1, 1);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, &[]).expect("writing to a vector succeeds");
    bytes
}

/// Returns an Ethernet frame with a TCP segment without payload between two fixed sockets, of 40
/// bytes. `flags` are letters: S, A, F, R; with a `+`, the sequence number is 70,001.
pub fn segment(from_client: bool, flags: &str) -> Vec<u8> {
    segment_of(40_000, from_client, flags)
}

/// Returns a frame as [`segment`] does, with the client's port.
pub fn segment_of(port: u16, from_client: bool, flags: &str) -> Vec<u8> {
    let (client, server) = (([192, 0, 2, 1], port), ([198, 51, 100, 2], 443));
    let ((src, sport), (dst, dport)) =
        if from_client { (client, server) } else { (server, client) };
    let sequence = if flags.contains('+') { 70_001 } else { 1 };
    let mut header = etherparse::TcpHeader::new(sport, dport, sequence, 1);
    (header.syn, header.ack) = (flags.contains('S'), flags.contains('A'));
    (header.fin, header.rst) = (flags.contains('F'), flags.contains('R'));
    let packet = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(src, dst, 64).tcp_header(header);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, &[]).expect("writing to a vector succeeds");
    bytes
}

/// Length of the Ethernet header of these frames.
pub const IP_AT: usize = 14;

/// Returns a capture of three packets of two flows, the second of which is out of order.
pub fn small(endian: Endian, magic: u32) -> Vec<u8> {
    let (early, late, other) = (udp(1000, 53, 4), udp(1000, 53, 6), tcp6(40_000, 443));
    pcap(endian, magic, ETHERNET, &[(20, 7, &late), (10, 5, &early), (30, 999, &other)])
}

/// Packets, bytes, first and last time of each five-tuple.
pub type Flows = BTreeMap<Vec<String>, [u64; 4]>;

/// Reads flows from rows of CSV: rows with the same key are added up.
pub fn flows(csv: impl Read) -> Flows {
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

/// Returns small captures of all kinds, as seeds of mutations.
pub fn seeds() -> Vec<Vec<u8>> {
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
    if let Some(folder) = folder() {
        let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.len() < 4096);
        seeds.extend(captures(&folder).iter().filter(|path| small(path)).flat_map(fs::read));
    }
    seeds
}

/// Returns the data folder, which may be absent, and whether `FLOWTABLE_DATA` names it; otherwise
/// it is `../shared/data` relative to the root of the repository.
fn data() -> (PathBuf, bool) {
    let named = std::env::var_os("FLOWTABLE_DATA").map(PathBuf::from);
    let is_named = named.is_some();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    (named.unwrap_or_else(|| root.join("../shared/data")), is_named)
}

/// Returns the folder of captures and ground truth, if it exists: `FLOWTABLE_DATA`, or
/// `../shared/data` relative to the root of the repository.
///
/// # Panics
///
/// If `FLOWTABLE_DATA` is set and has no captures.
pub fn folder() -> Option<PathBuf> {
    let (folder, is_named) = data();
    let is_there = folder.join("captures").is_dir();
    assert!(is_there || !is_named, "FLOWTABLE_DATA: no captures in {}", folder.display());
    is_there.then_some(folder)
}

/// Returns the folder of inputs of bug reports, if the data folder has them. Otherwise announces
/// that the test is skipped.
///
/// # Panics
///
/// If `FLOWTABLE_DATA` is set and has no cases.
pub fn cases(test: &str) -> Option<PathBuf> {
    let (folder, is_named) = data();
    let cases = folder.join("cases");
    if cases.is_dir() {
        return Some(cases);
    }
    assert!(!is_named, "FLOWTABLE_DATA: no {}", cases.display());
    let missing = "no cases here; set FLOWTABLE_DATA to the folder of cases/";
    announce(test, format_args!("SKIPPED: {missing}"));
    None
}

/// Returns the routes of the Internet, one prefix per line, if the data folder has them. Otherwise
/// announces that the test is skipped.
///
/// # Panics
///
/// If `FLOWTABLE_DATA` is set and has no routes.
pub fn routes(test: &str) -> Option<String> {
    let (folder, is_named) = data();
    let path = folder.join("routes/prefixes.txt.gz");
    if !path.is_file() {
        assert!(!is_named, "FLOWTABLE_DATA: no {}", path.display());
        let missing = "no routes here; set FLOWTABLE_DATA to the folder of routes/prefixes.txt.gz";
        announce(test, format_args!("SKIPPED: {missing}"));
        return None;
    }
    let (mut text, file) = (String::new(), File::open(&path).expect("the routes can be read"));
    MultiGzDecoder::new(file).read_to_string(&mut text).expect("the routes are text");
    Some(text)
}

/// The reason for skipping tests on the data folder.
pub const NO_CAPTURES: &str = "no captures here; set FLOWTABLE_DATA to their folder";

/// Writes a line about a test to standard error, which the harness does not capture.
pub fn announce(test: &str, line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{test}: {line}");
}

pub fn captures(data: &Path) -> Vec<PathBuf> {
    let folders = ["captures", "mix", "oltp"].map(|folder| data.join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut captures: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    captures.retain(|path| path.extension().is_some_and(|extension| extension != "csv"));
    captures.sort();
    captures
}

/// Returns whether Python is available for the script of the data folder.
pub fn has_python() -> bool {
    let output = Command::new("python3").arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Opens the results of another tool for a capture: a file of the data folder with this suffix, if
/// it exists.
pub fn truth_file(data: &Path, capture: &Path, suffix: &str) -> Option<impl Read> {
    let is_compressed = capture.extension() == Some("gz".as_ref());
    let stem = if is_compressed { capture.file_stem() } else { capture.file_name() };
    let mut name = stem.map(OsStr::to_owned).unwrap_or_else(OsString::new);
    name.push(suffix);
    match File::open(data.join("truth").join(name)) {
        Ok(file) => Some(MultiGzDecoder::new(file)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{}", capture.display());
            None
        }
    }
}

/// Returns the flows of a capture according to tshark, or else to the Python script of the data
/// folder; `None` without either.
pub fn truth(data: &Path, capture: &Path) -> Option<Flows> {
    if let Some(file) = truth_file(data, capture, ".tshark-uni.csv.gz") {
        return Some(flows(file));
    }
    if !has_python() {
        return None;
    }
    let script = data.join("tools/flowstat.py");
    let output = Command::new("python3").arg(script).arg("--flows").arg(capture).output();
    let output = output.expect("it could be run before");
    assert!(output.status.success(), "{}: {output:?}", capture.display());
    Some(flows(&output.stdout[..]))
}
