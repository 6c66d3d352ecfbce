//! The data manipulation header: the cost of locating data, and the gain of one pass over several.

use std::error::Error;
use std::hint::black_box;

use flowtable::papers::dml::{Checksum, DmlBuilder, DmlHeader, Kind, Receiver, Region};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

const SEED: u64 = 1995;

/// Measures layers. The paper has no measurements: it quotes 10 to 25 instructions for the header
/// of a layer, and gains of 50 % and of 10 to 20 % by integrated layers.
pub(crate) fn layers(report: &mut Report, quick: bool) -> Outcome {
    headers(report, quick)?;
    copies(report, quick)?;
    passes(report, quick)
}

/// Table 2: the data that layers mark, in the paper's words, have the names of [`Kind`].
pub(crate) fn kinds(report: &mut Report) {
    let names = (1..).map(|number| Kind(number).to_string());
    let names: Vec<_> = names.take_while(|name| !name.starts_with("kind ")).collect();
    let ours = names.join(", ");
    let paper = "checksum, key, decrypt, destination, data, dispatch";
    let what = "data that layers mark, by the names of Kind";
    let finding = Finding::check("table 2", what, paper, &*ours, "the same", ours == paper);
    report.record(finding.calculated());
}

/// The data that the layers of a packet access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work<'a> {
    /// Checksummed: the IP header and the TCP segment.
    ip: &'a [u8],
    segment: &'a [u8],
    key: &'a [u8],
    encrypted: &'a [u8],
    procedure: &'a [u8],
    data: &'a [u8],
}

/// Measures four headers of variable length: IPv4 and TCP with options, a record layer with a
/// connection ID, an RPC with credentials.
fn headers(report: &mut Report, quick: bool) -> Outcome {
    let mut random = StdRng::seed_from_u64(SEED);
    let frames: Vec<(Vec<u8>, usize)> =
        (0..512).map(|_| frame(&mut random, 64)).collect::<Result<_, _>>()?;
    let packets: Vec<&[u8]> = frames.iter().map(|(frame, header)| &frame[*header..]).collect();
    for ((frame, _), packet) in frames.iter().zip(&packets) {
        let (by_hand, by_dml) = (by_hand(packet), by_dml(frame));
        assert!(by_hand.is_some() && by_hand == by_dml, "both find the same");
    }
    let repeat = if quick { 1 } else { 100 };
    let mut subjects: [Subject<'_>; 3] = [
        Box::new(|| each(repeat, &packets, |p| by_hand(p))),
        Box::new(|| each(repeat, &frames, |(f, _)| by_dml(f))),
        Box::new(|| each(repeat, &frames, |(f, _)| data_only(f))),
    ];
    let count = repeat as usize * frames.len();
    let times = Times::measure(&mut subjects, count, rounds(quick));
    let mut table = Table::new(&["to find out what to touch", "ns for a packet", "of by hand"]);
    let names =
        ["each layer's header by hand", "DML, all six regions", "DML, application data only"];
    for (number, name) in names.iter().enumerate() {
        table.row(&[name, &two(times.of(number)), &two(times.times_as_fast(0, number))]);
    }
    report.table("dml_headers", "Four nested headers of variable length", table)
}

/// Runs `work` on all items `repeat` times. Returns the number of calls.
fn each<'i, T, R>(repeat: u32, items: &'i [T], mut work: impl FnMut(&'i T) -> R) -> u64 {
    for _ in 0..repeat {
        for item in items {
            black_box(work(black_box(item)));
        }
    }
    u64::from(repeat) * items.len() as u64
}

const fn rounds(quick: bool) -> usize {
    if quick { 3 } else { 25 }
}

/// Builds a packet with its data manipulation header, and returns the length of that header. Upper
/// layers come first.
fn frame(random: &mut StdRng, data: usize) -> Result<(Vec<u8>, usize), Box<dyn Error>> {
    let mut dml = DmlBuilder::new(0x0800);
    let mut packet: Vec<u8> = (0..data).map(|_| random.random()).collect();
    dml.add(Region::new(Kind::DATA, 0, data as u32))?;

    // The call number, credentials with their length, the procedure.
    let credentials = 4 * random.random_range(0..8_u8);
    let mut rpc = vec![0, 0, 0, 1, 0, 0, 0, credentials];
    rpc.resize(rpc.len() + usize::from(credentials) + 4, 0x77);
    let procedure = rpc.len() as u32 - 4;
    prepend(&mut dml, &mut packet, &rpc)?;
    dml.add(Region::new(Kind::DISPATCH, procedure, 4))?;

    // The type, a connection ID with its length, an epoch, the length of the encrypted part.
    let id = random.random_range(0..=20_u8);
    let encrypted = packet.len();
    let mut record = vec![23, id];
    record.resize(record.len() + usize::from(id) + 2, 0x55);
    let key = record.len() as u32 - 2;
    record.extend((encrypted as u16).to_be_bytes());
    prepend(&mut dml, &mut packet, &record)?;
    dml.add(Region::new(Kind::KEY, 2, key))?;
    dml.add(Region::new(Kind::DECRYPT, record.len() as u32, encrypted as u32))?;

    let words = random.random_range(5..=15_u8);
    let mut tcp = vec![1; 4 * usize::from(words)];
    tcp[12] = words << 4;
    tcp[16..18].fill(0);
    prepend(&mut dml, &mut packet, &tcp)?;
    dml.add(Region::new(Kind::CHECKSUM, 0, packet.len() as u32))?;
    // No pseudo header, so that the segment can be verified by itself.
    let field = Checksum::of(&packet).field();
    packet[16..18].copy_from_slice(&field);

    let words = random.random_range(5..=15_u8);
    let mut ip = vec![1; 4 * usize::from(words)];
    (ip[0], ip[9]) = (0x40 | words, 6);
    let total = (ip.len() + packet.len()) as u16;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[10..12].fill(0);
    let field = Checksum::of(&ip).field();
    ip[10..12].copy_from_slice(&field);
    prepend(&mut dml, &mut packet, &ip)?;
    dml.add(Region::new(Kind::CHECKSUM, 0, ip.len() as u32))?;

    let mut frame = vec![0; dml.encoded_len()];
    let header = dml.write_to(&mut frame)?;
    frame.extend(packet);
    Ok((frame, header))
}

fn prepend(dml: &mut DmlBuilder, packet: &mut Vec<u8>, header: &[u8]) -> Outcome {
    dml.push_header(header.len() as u32)?;
    packet.splice(0..0, header.iter().copied());
    Ok(())
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let [upper, lower] = *bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes([upper, lower]).into())
}

/// Parses all headers in turn, each of which determines the start of the next one.
fn by_hand(packet: &[u8]) -> Option<Work<'_>> {
    let first = *packet.first()?;
    let ip = packet.get(..4 * usize::from(first & 15)).filter(|ip| ip.len() >= 20)?;
    if first >> 4 != 4 || ip[9] != 6 {
        return None;
    }
    let segment = packet.get(ip.len()..word(packet, 2)?)?;

    let tcp = 4 * usize::from(segment.get(12)? >> 4);
    let record = segment.get(tcp..).filter(|_| tcp >= 20)?;

    let key = record.get(2..)?.get(..usize::from(*record.get(1)?) + 2)?;
    let length = word(record, 2 + key.len())?;
    let encrypted = record.get(4 + key.len()..)?.get(..length)?;

    let credentials = u32::from_be_bytes(*encrypted.get(4..)?.first_chunk()?);
    let credentials = usize::try_from(credentials.checked_next_multiple_of(4)?).ok()?;
    let call = encrypted.get(8..)?.get(credentials..)?;
    let (procedure, data) = call.split_at_checked(4)?;
    Some(Work { ip, segment, key, encrypted, procedure, data })
}

/// Reads all regions of the header. The checksum of TCP precedes that of IP, as its layer ran
/// first.
fn by_dml(frame: &[u8]) -> Option<Work<'_>> {
    let (header, packet) = DmlHeader::parse(frame).ok()?;
    let mut work = Work::default();
    for region in header.regions() {
        let bytes = region.slice(packet)?;
        match region.kind {
            Kind::CHECKSUM if work.segment.is_empty() => work.segment = bytes,
            Kind::CHECKSUM => work.ip = bytes,
            Kind::KEY => work.key = bytes,
            Kind::DECRYPT => work.encrypted = bytes,
            Kind::DISPATCH => work.procedure = bytes,
            Kind::DATA => work.data = bytes,
            _ => {}
        }
    }
    Some(work)
}

fn data_only(frame: &[u8]) -> Option<&[u8]> {
    let (header, packet) = DmlHeader::parse(frame).ok()?;
    header.find(Kind::DATA)?.slice(packet)
}

/// A source of bytes that are in no cache, or in the L1 cache if it is short.
struct Source {
    bytes: Vec<u8>,
    at: usize,
}

impl Source {
    fn new(length: usize) -> Self {
        Self { bytes: (0..length).map(|i| (i ^ i >> 8) as u8).collect(), at: 0 }
    }

    /// Returns the next `length` bytes, far from the previous ones.
    fn next(&mut self, length: usize) -> &[u8] {
        let places = self.bytes.len() / length;
        self.at = (self.at + 7919) % places;
        &self.bytes[self.at * length..][..length]
    }
}

/// Measures a copy that sums against a sum followed by a copy, in the cache and in memory.
fn copies(report: &mut Report, quick: bool) -> Outcome {
    let header = ["bytes", "from", "copy, ns", "sum, then copy", "copy that sums", "times as fast"];
    let mut table = Table::new(&header);
    let memory = if quick { 1 << 22 } else { 1 << 28 };
    for length in [64, 1500, 9000, 65_536] {
        for (from, bytes) in [("cache", length), ("memory", memory)] {
            let count = if quick { 100 } else { (1 << 22) / length };
            let run = |work: fn(&[u8], &mut [u8]) -> Checksum| {
                let (mut source, mut to) = (Source::new(bytes), vec![0; length]);
                move || {
                    let once = |()| work(black_box(source.next(length)), black_box(&mut to));
                    std::iter::repeat_n((), count).map(once).map(black_box).count() as u64
                }
            };
            let mut subjects: [Subject<'_>; 3] =
                [Box::new(run(copy)), Box::new(run(sum_and_copy)), Box::new(run(copy_that_sums))];
            let times = Times::measure(&mut subjects, count, rounds(quick));
            let [copy, two_passes, one_pass] = [0, 1, 2].map(|number| two(times.of(number)));
            let faster = two(times.times_as_fast(2, 1));
            table.row(&[&length, &from, &copy, &two_passes, &one_pass, &faster]);
        }
    }
    report.table("dml_copies", "A copy that sums, against a sum and a copy", table)
}

fn copy(from: &[u8], to: &mut [u8]) -> Checksum {
    to.copy_from_slice(from);
    Checksum::default()
}

fn sum_and_copy(from: &[u8], to: &mut [u8]) -> Checksum {
    let sum = Checksum::of(from);
    to.copy_from_slice(from);
    sum
}

fn copy_that_sums(from: &[u8], to: &mut [u8]) -> Checksum {
    Checksum::copying(from, to).expect("it is as long")
}

/// Measures the work of a TCP packet in one pass and in three: IP checksum, TCP checksum, copy.
fn passes(report: &mut Report, quick: bool) -> Outcome {
    let header = ["data, bytes", "three passes, ns", "Receiver", "times as fast"];
    let mut table = Table::new(&header);
    for length in [64, 1400, 8900, 65_000] {
        let mut random = StdRng::seed_from_u64(SEED);
        let frames: Vec<(Vec<u8>, usize)> =
            (0..16).map(|_| frame(&mut random, length)).collect::<Result<_, _>>()?;
        let [mut a, mut b] = [0; 2].map(|_| vec![0_u8; length]);
        let mut receiver = Receiver::new();
        let repeat = if quick { 10 } else { 1 + (1 << 18) / length as u32 };
        let mut subjects: [Subject<'_>; 2] = [
            Box::new(|| each(repeat, &frames, |(f, n)| three_passes(&f[*n..], &mut a))),
            Box::new(|| each(repeat, &frames, |(f, _)| one_pass(&mut receiver, f, &mut b))),
        ];
        let count = repeat as usize * frames.len();
        let times = Times::measure(&mut subjects, count, rounds(quick));
        let faster = times.times_as_fast(1, 0);
        judge(report, length, faster);
        let [three, one] = [0, 1].map(|number| two(times.of(number)));
        table.row(&[&length, &three, &one, &two(faster)]);
    }
    report.table("dml_passes", "Headers found, sums of IP and TCP verified, data copied", table)
}

/// Measures what the header costs beside data of any length.
pub(crate) fn explain_short_packets(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["data, bytes", "header only, ns", "three passes", "Receiver", "gain, %"];
    let mut table = Table::new(&header);
    for length in [4, 64, 1400, 8900, 65_000] {
        let mut random = StdRng::seed_from_u64(SEED);
        let frames: Vec<(Vec<u8>, usize)> =
            (0..16).map(|_| frame(&mut random, length)).collect::<Result<_, _>>()?;
        let [mut a, mut b] = [0; 2].map(|_| vec![0_u8; length]);
        let mut receiver = Receiver::new();
        let repeat = if quick { 10 } else { 1 + (1 << 18) / length as u32 };
        let mut subjects: [Subject<'_>; 3] = [
            Box::new(|| each(repeat, &frames, |(f, _)| by_dml(f))),
            Box::new(|| each(repeat, &frames, |(f, n)| three_passes(&f[*n..], &mut a))),
            Box::new(|| each(repeat, &frames, |(f, _)| one_pass(&mut receiver, f, &mut b))),
        ];
        let count = repeat as usize * frames.len();
        let times = Times::measure(&mut subjects, count, rounds(quick));
        let [head, three, one] = [0, 1, 2].map(|number| two(times.of(number)));
        let gain = format!("{:+.0}", 100.0 * (times.times_as_fast(2, 1) - 1.0));
        table.row(&[&length, &head, &three, &one, &gain]);
    }
    Ok(vec![("One pass against three, by the length of the data", table)])
}

/// Runs `times` searches for all six regions, by hand or by the header, for counting.
pub(crate) fn find_regions(by_header: bool, times: usize) -> Outcome {
    let mut random = StdRng::seed_from_u64(SEED);
    let frames: Vec<(Vec<u8>, usize)> =
        (0..16).map(|_| frame(&mut random, 64)).collect::<Result<_, _>>()?;
    let rounds = (times / frames.len()) as u32;
    _ = match by_header {
        true => each(rounds, &frames, |(frame, _)| by_dml(frame)),
        false => each(rounds, &frames, |(frame, header)| by_hand(&frame[*header..])),
    };
    Ok(())
}

/// Compares with the gains that the paper quotes.
fn judge(report: &mut Report, length: usize, faster: f64) {
    let gain = 100.0 * (faster - 1.0);
    let what = format!("{length} bytes of data: one pass instead of three");
    let ours = format!("{gain:+.0} %");
    let finding = Finding::check(
        "section 5.1",
        what,
        "+10 to +50 %, quoted",
        ours,
        "a gain of 10 % or more",
        gain >= 10.0,
    );
    report.record(finding.because(Cause::ShortPackets).on_this_machine().at_full_scale());
}

fn three_passes(packet: &[u8], to: &mut [u8]) {
    let work = by_hand(packet).expect("it was made so");
    assert!(Checksum::of(work.ip).verifies() && Checksum::of(work.segment).verifies());
    to.copy_from_slice(work.data);
    black_box(to);
}

fn one_pass(receiver: &mut Receiver, frame: &[u8], to: &mut [u8]) {
    let (header, packet) = DmlHeader::parse(frame).expect("it was made so");
    let received = receiver.receive(&header, packet, to).expect("it was made so");
    assert!(received.checksums.iter().all(|sum| sum.checksum.verifies()));
    assert_eq!(received.copied, to.len());
    black_box(to);
}
