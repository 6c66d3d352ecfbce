//! Tables 4 and 5: instructions and time of an index and of a lookup with it.
//!
//! The program runs itself under callgrind with n operations of one kind, and with 2n. The
//! difference, less that of an empty loop, is the count of n operations. Manually:
//!
//! ```text
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!         target/release/deps/paper-… --count lookup 'source index' 1000
//! ```
//!
//! Instructions are those of this processor. Those of the paper had four bytes each, and three
//! operands.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::hash::{
    Crc8Pair, Crc16, Crc32, Fletcher16, XorFold8, XorFold16, hash_bytes,
};
use flowtable::papers::threaded::{self, Hop, Label, Labels};
use flowtable::{DefaultHashBuilder, Timestamp};
use model::papers::source_hash_1995::SEED;
use model::papers::source_hash_1995::fids::{Fid, Flow, Set};
use model::papers::source_hash_1995::filters::{programs, watched};
use model::papers::source_hash_1995::indices::{Kind, SLOTS};
use model::papers::source_hash_1995::router::{Cache, in_trie, radix_tree};
use model::papers::source_hash_1995::traffic::Traffic;

use super::packet_filter;
use super::{dml, forwarding};
use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, median, two};
use crate::rounds::Subject;

/// Number of flows looked up.
const FLOWS: usize = 16;
/// Packets per round of the experiments under callgrind.
const PACKETS: usize = 512;

/// The empty loop.
const NOTHING: &str = "nothing";
const INDEX: &str = "index";
const LOOKUP: &str = "lookup";
const FORWARDING: &str = "forwarding";
const FILTER: &str = "filter";
const THREADED: &str = "threaded index";
/// A hop without checks of bounds and generation, as in the paper.
const UNCHECKED: &str = "row without checks";
/// The pair of CRCs without a table.
const BIT_BY_BIT: &str = "CRC-8 pair, bit by bit";
const REGIONS: &str = "regions";
/// The ways to find the regions of a packet with four headers.
const WAYS: [&str; 2] = ["by hand", "by DML header"];

/// Runs the operations of `--count WHAT KIND TIMES`, if that is on the command line.
pub(crate) fn counted_run() -> Option<Outcome> {
    let words = env::args_os().filter_map(|word| word.into_string().ok());
    let mut words = words.skip_while(|word| word != "--count").skip(1);
    let (what, kind, times) = (words.next()?, words.next()?, words.next()?);
    Some(times.parse().map_err(Into::into).and_then(|times| run(&what, &kind, times)))
}

/// Runs `times` operations, or rounds with as many packets.
fn run(what: &str, kind: &str, times: usize) -> Outcome {
    let position = |names: &[&str]| names.iter().position(|name| *name == kind);
    let rounds = |subject: &mut Subject<'_>| {
        for _ in 0..times / PACKETS {
            black_box(subject());
        }
    };
    let unknown = || format!("there is no {what} by {kind}");
    match what {
        NOTHING => _ = nothing(times),
        LOOKUP if kind == THREADED => _ = threaded(times)?,
        LOOKUP if kind == UNCHECKED => _ = unchecked(times),
        INDEX if kind == BIT_BY_BIT => _ = repeat(times, &mut flows(), |flow| crc_pair(flow)),
        REGIONS => dml::find_regions(kind == WAYS[1], times)?,
        INDEX | LOOKUP => {
            let kind = Kind::ALL.into_iter().find(|each| each.name() == kind);
            _ = by_kind(kind.ok_or_else(unknown)?, what == LOOKUP, times);
        }
        FORWARDING => {
            let (traffic, radix) = (Traffic::new(16, PACKETS, SEED), radix_tree());
            let number = position(&forwarding::NAMES).ok_or_else(unknown)?;
            rounds(&mut forwarding::subjects(&traffic, &in_trie(&radix))[number]);
        }
        FILTER => {
            let traffic = Traffic::new(16, PACKETS, SEED);
            let programs = programs(&watched(&traffic))?;
            let number = position(&packet_filter::NAMES).ok_or_else(unknown)?;
            rounds(&mut packet_filter::subjects(&traffic, &programs)[number]);
        }
        _ => return Err(unknown().into()),
    }
    Ok(())
}

/// Returns flows with distinct slots for every kind of index, even that with 256 slots.
fn flows() -> Vec<Flow> {
    let mut places = HashSet::new();
    let mut flows = Set::D.flows(100, SEED);
    flows.retain(|flow| places.len() < FLOWS && places.insert(hash_bytes::<XorFold8>(&flow.fid.0)));
    flows
}

/// Returns the seconds of `times` indices of a kind, or of lookups with them.
fn by_kind(kind: Kind, looks_up: bool, times: usize) -> f64 {
    let keyed = DefaultHashBuilder::with_seed(SEED);
    match kind {
        Kind::Source => each(looks_up, times, |flow| flow.index.get()),
        Kind::CrcPair => each(looks_up, times, |flow| hash_bytes::<Crc8Pair>(&flow.fid.0) as u32),
        Kind::Xor16 => each(looks_up, times, |flow| hash_bytes::<XorFold16>(&flow.fid.0) as u32),
        Kind::Xor8 => each(looks_up, times, |flow| hash_bytes::<XorFold8>(&flow.fid.0) as u32),
        Kind::Crc16 => each(looks_up, times, |flow| hash_bytes::<Crc16>(&flow.fid.0) as u32),
        Kind::Crc32 => each(looks_up, times, |flow| hash_bytes::<Crc32>(&flow.fid.0) as u32),
        Kind::Fletcher => {
            each(looks_up, times, |flow| hash_bytes::<Fletcher16>(&flow.fid.0) as u32)
        }
        Kind::Keyed => each(looks_up, times, |flow| hash_one(&keyed, flow.fid)),
    }
}

fn hash_one(keyed: &DefaultHashBuilder, fid: Fid) -> u32 {
    std::hash::BuildHasher::hash_one(keyed, fid) as u32
}

/// Computes indices, masked to a slot as a lookup does, or looks up flows with them.
fn each(looks_up: bool, times: usize, index: impl Fn(&Flow) -> u32) -> f64 {
    let mut flows = flows();
    if !looks_up {
        return repeat(times, &mut flows, |flow| index(flow) & (SLOTS as u32 - 1));
    }
    let mut cache: Cache<u32> = Cache::new(SLOTS).expect("there is memory");
    for flow in &flows {
        let _ = cache.insert(SourceIndex::new(index(flow)), flow.fid, 1);
    }
    let seconds = repeat(times, &mut flows, |flow| {
        cache.get(SourceIndex::new(index(flow)), &flow.fid).copied().unwrap_or(0)
    });
    assert_eq!(cache.statistics().misses, 0, "flows have places of their own");
    seconds
}

/// Forwards packets by threaded index: the row has the port, and the next index, which is written
/// into the packet.
fn threaded(times: usize) -> Result<f64, Box<dyn Error>> {
    let now = Timestamp::ZERO;
    let labels = Labels { capacity: FLOWS as u32, hold_down: Duration::ZERO, start: 0 };
    let mut table = threaded::Table::new(labels)?;
    let mut packets = vec![];
    for destination in 0..FLOWS as u16 {
        let label = table.insert(destination, None, now)?;
        // The next table has its rows in the same order.
        table.set(&destination, Some(Hop::Forward { port: destination, label }));
        packets.push(label.into());
    }
    Ok(repeat(times, &mut packets, |packet: &mut u32| match table.forward(Label::from(*packet)) {
        Ok(Hop::Forward { port, label }) => {
            *packet = label.into();
            port.into()
        }
        _ => 0,
    }))
}

/// Forwards by rows without generations, whose number is a power of two.
fn unchecked(times: usize) -> f64 {
    let rows: [(u32, u32); FLOWS] = std::array::from_fn(|row| (row as u32, (row as u32 + 1) % 16));
    let rows = black_box(rows);
    let mut packets: [u32; FLOWS] = std::array::from_fn(|row| row as u32);
    repeat(times, &mut packets, |packet| {
        let (port, label) = rows[*packet as usize % FLOWS];
        *packet = label;
        port
    })
}

/// Computes the pair of CRCs of a flow by shifts.
fn crc_pair(flow: &Flow) -> u32 {
    let (upper, lower) = flow.fid.0.split_at(flow.fid.0.len() / 2);
    let of = |half: &[u8]| {
        half.iter().fold(0_u8, |sum, byte| {
            (0..8).fold(sum ^ byte, |sum, _| (sum << 1) ^ if sum & 0x80 != 0 { 7 } else { 0 })
        })
    };
    u32::from(of(upper)) << 8 | u32::from(of(lower))
}

fn nothing(times: usize) -> f64 {
    repeat(times, &mut flows(), |_| 0)
}

/// Runs about `times` dependent operations over all packets. Returns the seconds.
#[inline(never)]
fn repeat<P>(times: usize, packets: &mut [P], mut operation: impl FnMut(&mut P) -> u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..times / packets.len() {
        for packet in packets.iter_mut() {
            black_box(operation(black_box(packet)));
        }
    }
    begun.elapsed().as_secs_f64()
}

/// Counts the instructions of one operation by callgrind. `None` if it does not run, or fails.
fn instructions(what: &str, kind: &str, times: usize) -> Option<f64> {
    let executed = |times: usize| -> Option<f64> {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        valgrind.arg(env::current_exe().ok()?).args(["--count", what, kind, &times.to_string()]);
        let output = valgrind.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stderr);
        let (_, count) = text.lines().find_map(|line| line.split_once("Collected : "))?;
        count.trim().parse().ok()
    };
    let (once, twice) = (executed(times)?, executed(2 * times)?);
    Some((twice - once) / times as f64)
}

/// Returns the nanoseconds of an operation, less those of the loop. Rounds are short, so that most
/// are not interrupted.
fn nanoseconds(quick: bool, seconds: impl Fn(usize) -> f64) -> String {
    const TIMES: usize = 500 * FLOWS;
    let rounds = if quick { 3 } else { 201 };
    let round = |_| 1e9 * (seconds(TIMES) - nothing(TIMES)) / TIMES as f64;
    two(median((0..rounds).map(round).collect()))
}

/// Counts of the paper: for an index, and for a lookup with it.
const fn paper(kind: Kind) -> Option<(u32, u32)> {
    match kind {
        Kind::Source => Some((2, 20)),
        Kind::Xor16 => Some((15, 33)),
        // The second is not in the paper: 18 more.
        Kind::CrcPair => Some((100, 118)),
        _ => None,
    }
}

/// Tables 4 and 5, then instructions per packet in the experiments.
pub(crate) fn tables(report: &mut Report, quick: bool) -> Outcome {
    const TIMES: usize = 2 * PACKETS;
    let Some(nothing) = instructions(NOTHING, "at all", TIMES) else {
        regions(report, |_| None);
        report.remark("Skipped: instructions are not counted: valgrind does not run here.".into());
        return times(report, quick, |_, _| None);
    };
    let few = [Kind::Source.name(), THREADED];
    times(report, quick, |what, kind| {
        let is_counted = !quick || few.contains(&kind);
        let count = is_counted.then(|| instructions(what, kind, TIMES)).flatten();
        count.map(|count| count - nothing)
    })?;
    regions(report, |way| (!quick).then(|| instructions(REGIONS, way, TIMES)).flatten());
    if quick { Ok(()) } else { experiments(report, TIMES) }
}

/// Both tables, given the counts.
fn times(report: &mut Report, quick: bool, counted: impl Fn(&str, &str) -> Option<f64>) -> Outcome {
    let mut counts = vec![];
    let mut table = Table::new(&[
        "",
        "index, instructions",
        "paper",
        "ns",
        "with the lookup, instructions",
        "paper",
        "ns",
    ]);
    for kind in Kind::ALL {
        let (index, look_up) = paper(kind).map_or(("-".into(), "-".into()), |(index, look_up)| {
            (index.to_string(), look_up.to_string())
        });
        let [of_index, of_look_up] = [counted(INDEX, kind.name()), counted(LOOKUP, kind.name())];
        judge(report, kind, of_index, of_look_up);
        counts.push((kind, of_index));
        table.row(&[
            &kind.name(),
            &or_dash(of_index),
            &index,
            &nanoseconds(quick, |times| by_kind(kind, false, times)),
            &or_dash(of_look_up),
            &look_up,
            &nanoseconds(quick, |times| by_kind(kind, true, times)),
        ]);
    }
    judge_order(report, &counts);
    threaded(FLOWS)?;
    let hop = counted(LOOKUP, THREADED);
    judge_hop(report, hop, counted(LOOKUP, Kind::Source.name()));
    let time = nanoseconds(quick, |times| threaded(times).unwrap_or(f64::NAN));
    table.row(&[&THREADED, &"-", &"-", &"-", &or_dash(hop), &8, &time]);
    let title = "An index for a name of 12 bytes, and a lookup with it (tables 4 and 5)";
    report.table("instructions", title, table)
}

/// Compares a hop by threaded index with the paper's, and with a lookup by source index.
fn judge_hop(report: &mut Report, hop: Option<f64>, source: Option<f64>) {
    let what = "a hop by threaded index: instructions";
    let finding = counted_or_missing("table 5", what, 8.0, hop);
    report.record(finding.because(Cause::Instructions));
    let what = "a hop by threaded index, beside a lookup by source index: instructions";
    let finding = match hop.zip(source) {
        Some((hop, source)) => {
            let ours = format!("{hop:.0} for {source:.0}");
            let holds = hop < source;
            Finding::check("section 4.1", what, "8 for 20", ours, "fewer", holds).at_full_scale()
        }
        None => Finding::not_measured("section 4.1", what, NOT_COUNTED),
    };
    report.record(finding.because(Cause::Instructions));
}

/// Compares what finding the data costs for each of four headers.
fn regions(report: &mut Report, counted: impl Fn(&str) -> Option<f64>) {
    let counts = WAYS.map(counted);
    let what = "instructions for each of four headers, by hand";
    let finding = match counts {
        [Some(by_hand), Some(by_header)] => {
            let of_one = by_hand / 4.0;
            let ours = format!("{of_one:.0}; {:.0} by DML header", by_header / 4.0);
            let holds = (10.0..=25.0).contains(&of_one);
            Finding::check("section 5.1", what, "10 to 25", ours, "10 to 25", holds).at_full_scale()
        }
        _ => Finding::not_measured("section 5.1", what, NOT_COUNTED),
    };
    let why = "The parser checks each length against the packet.";
    report.record(finding.because(Cause::Instructions).noting(why));
    let what = "instructions for four headers by the DML header, beside by hand";
    let finding = match counts {
        [Some(by_hand), Some(by_header)] => {
            let ours = format!("{by_header:.0} beside {by_hand:.0}");
            let (paper, holds) = ("saves a significant amount of processing", by_header < by_hand);
            Finding::check("section 5.1", what, paper, ours, "fewer", holds).at_full_scale()
        }
        _ => Finding::not_measured("section 5.1", what, NOT_COUNTED),
    };
    report.record(finding.because(Cause::ShortPackets));
}

/// Counts a hop without checks, and a CRC without a table.
pub(crate) fn explain_instructions(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    const TIMES: usize = 2 * PACKETS;
    let mut table = Table::new(&["", "printed", "instructions"]);
    let nothing = (!quick).then(|| instructions(NOTHING, "at all", TIMES)).flatten();
    for (name, what, kind, printed) in [
        ("CRC-8 pair by table", INDEX, Kind::CrcPair.name(), "100"),
        ("CRC-8 pair, bit by bit", INDEX, BIT_BY_BIT, "100"),
        ("hop, bounds and generation checked", LOOKUP, THREADED, "8"),
        ("hop without checks", LOOKUP, UNCHECKED, "8"),
        ("lookup by source index", LOOKUP, Kind::Source.name(), "20"),
    ] {
        let count = nothing.and_then(|nothing| Some(instructions(what, kind, TIMES)? - nothing));
        table.row(&[&name, &printed, &or_dash(count)]);
    }
    Ok(vec![("Instructions by variant (callgrind; a run on the full scale)", table)])
}

/// The reason why there is no count.
const NOT_COUNTED: &str = "It was not counted: that takes valgrind, and a run on the full scale.";

/// Compares a count of instructions, if there is one.
#[track_caller]
fn counted_or_missing(
    place: &'static str,
    what: impl Into<String>,
    paper: f64,
    count: Option<f64>,
) -> Finding {
    match count {
        Some(count) => Finding::number(place, what, paper, count).about().at_full_scale(),
        None => Finding::not_measured(place, &what.into(), NOT_COUNTED),
    }
}

/// Compares a kind of index that the paper counted.
fn judge(report: &mut Report, kind: Kind, index: Option<f64>, look_up: Option<f64>) {
    let Some((of_index, of_look_up)) = paper(kind) else { return };
    let what = format!("{}: instructions for the index", kind.name());
    let finding = counted_or_missing("table 4", what, of_index.into(), index);
    report.record(finding.because(Cause::Instructions));
    if kind != Kind::CrcPair {
        let what = format!("{}: instructions with the lookup", kind.name());
        let finding = counted_or_missing("table 5", what, of_look_up.into(), look_up);
        // It is the sum of the two that are judged: the index, and the rest of section 3.4.
        report.record(if look_up.is_some() { finding.calculated() } else { finding });
    }
    if kind == Kind::Source {
        let what = "instructions to compare 12 bytes and go to the record";
        let rest = look_up.zip(index).map(|(look_up, index)| look_up - index);
        let finding = counted_or_missing("section 3.4", what, 18.0, rest);
        report.record(finding.because(Cause::Instructions));
    }
}

/// Compares the cost of an index from the source with the cost of a CRC.
fn judge_order(report: &mut Report, counts: &[(Kind, Option<f64>)]) {
    let of = |kind| counts.iter().find(|(each, _)| *each == kind).and_then(|(_, count)| *count);
    let all = [of(Kind::Source), of(Kind::CrcPair)];
    let of_crc = "instructions for the index: source beside CRC";
    let what = "instructions for the index: CRC-16 and CRC-32 beside the CRC-8 pair";
    if let [Some(wide), Some(wider), Some(pair)] = [Kind::Crc16, Kind::Crc32, Kind::CrcPair].map(of)
    {
        let ours = format!("{wide:.0} and {wider:.0} beside {pair:.0}");
        let (paper, rule) = ("not considerably smaller", "three quarters or more");
        let holds = wide.min(wider) >= 0.75 * pair;
        let finding = Finding::check("section 3.4", what, paper, ours, rule, holds);
        report.record(finding.at_full_scale());
    } else {
        report.record(Finding::not_measured("section 3.4", what, NOT_COUNTED));
    }
    if let [Some(source), Some(crc)] = all {
        let ours = format!("1 / {:.0}", crc / source);
        let (paper, rule) = ("a tenth of CRC", "a tenth or less");
        let holds = source <= crc / 10.0;
        let finding = Finding::check("section 3.4", of_crc, paper, ours, rule, holds);
        report.record(finding.at_full_scale());
    } else {
        report.record(Finding::not_measured("section 3.4", of_crc, NOT_COUNTED));
    }
}

fn or_dash(count: Option<f64>) -> String {
    count.map_or_else(|| "-".into(), two)
}

/// Counts instructions per packet in both experiments.
fn experiments(report: &mut Report, times: usize) -> Outcome {
    let mut table =
        Table::new(&["experiment", "series", "instructions for a packet", "no cache : this"]);
    for (what, names, long) in
        [(FORWARDING, &forwarding::NAMES[..], 1), (FILTER, &packet_filter::NAMES[..], 0)]
    {
        let counts: Vec<Option<f64>> =
            names.iter().map(|name| instructions(what, name, times)).collect();
        for (name, count) in names.iter().zip(&counts) {
            let ratio = count.zip(counts[long]).map(|(count, long)| two(long / count));
            let [count, ratio] =
                [count.map(two), ratio].map(|cell| cell.unwrap_or_else(|| "-".into()));
            table.row(&[&what, name, &count, &ratio]);
        }
    }
    let title = "Instructions for a packet, of 256 flows (figure 4 as it would be without memory)";
    report.table("instructions_per_packet", title, table)
}
