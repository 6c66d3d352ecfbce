//! The results table of the paper: a denial of service, in which every second packet starts a flow,
//! and the opposite extreme, a single flow.

use std::error::Error;

use flowtable::DefaultHashBuilder;
use flowtable::eviction::{ByClass, Passive, PassiveGc};
use flowtable::key::bits::BitString;
use flowtable::trie::TrieShape;
use model::papers::trash_2006::traffic::{
    Flow, Order, Packet, Rings, dst_src, new_flow, src_dst, trash, wide,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::cache::{Chained, State, Swiss, Trash};
use super::flow_cache::Flows;
use super::forwarder::{Forwarder, Measurement, Subject, measure_rounds};
use super::speeds::cause_of_speed;
use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// A row of the table: published depth, leaves, and thousands of packets per second, with the
/// subject.
struct Row {
    name: &'static str,
    depth: &'static str,
    leaves: &'static str,
    kpps: Option<f64>,
    subject: Box<dyn Subject>,
}

const ONE_FLOW: &str = "section 4.9, one flow";

/// Fillings from empty. The minimum separates pauses of a cache from those of the machine.
const FILLINGS: usize = 3;

/// A trie without active collection.
fn passive<K: BitString + 'static>(
    gc: PassiveGc,
    key: impl Fn(&Flow) -> K + 'static,
) -> Box<dyn Subject> {
    Box::new(Forwarder::new(Trash::new(gc, key)))
}

/// A trie with active collection.
fn active<K: BitString + 'static>(
    gc: PassiveGc,
    key: impl Fn(&Flow) -> K + 'static,
) -> Box<dyn Subject> {
    Box::new(Forwarder::with_active_gc(Trash::new(gc, key)))
}

fn hasher() -> DefaultHashBuilder {
    DefaultHashBuilder::with_seed(2006)
}

/// The caches of the paper.
fn of_the_paper(gc: PassiveGc) -> Vec<Row> {
    let (h160, a160, h352, a384) = (hasher(), hasher(), hasher(), hasher());
    let row = |name, depth, leaves, kpps, subject| Row { name, depth, leaves, kpps, subject };
    vec![
        row(
            "chained hash, 131 072 buckets",
            "-",
            "-",
            Some(308.0),
            Box::new(Forwarder::new(Chained::new(gc, hasher()))),
        ),
        row("plain src,dst", "2.78 / 6", "99905", Some(221.0), passive(gc, src_dst)),
        row("plain dst,src", "1.29 / 4", "99997", Some(317.0), passive(gc, dst_src)),
        row("TRASH 160", "1.30 / 4", "99952", Some(317.0), passive(gc, move |f| trash(f, &h160))),
        row(
            "TRASH 160 + AGC",
            "1.33 / 3",
            "5983",
            Some(319.0),
            active(gc, move |f| trash(f, &a160)),
        ),
        row(
            "TRASH 352",
            "1.30 / 4",
            "99950",
            Some(271.0),
            passive(gc, move |f| wide::<40>(f, &h352)),
        ),
        row(
            "TRASH 384 + AGC",
            "1.33 / 4",
            "5915",
            Some(321.0),
            active(gc, move |f| wide::<44>(f, &a384)),
        ),
    ]
}

/// The caches of today.
fn of_today(gc: PassiveGc) -> Vec<Row> {
    let row = |name, subject| Row { name, depth: "-", leaves: "-", kpps: None, subject };
    vec![
        row("hashbrown", Box::new(Forwarder::new(Swiss::new(gc, hasher())))),
        row("hashbrown + AGC", Box::new(Forwarder::with_active_gc(Swiss::new(gc, hasher())))),
        row(
            "FlowCache, passive",
            Box::new(Forwarder::new(Flows::new(gc, Passive::new(gc), hasher()))),
        ),
        row(
            "FlowCache, passive + AGC",
            Box::new(Forwarder::new(Flows::with_active_gc(gc, Passive::new(gc), hasher()))),
        ),
        row(
            "FlowCache, by class",
            Box::new(Forwarder::new(Flows::new(gc, ByClass::new(), hasher()))),
        ),
    ]
}

fn rows(gc: PassiveGc) -> Vec<Row> {
    of_the_paper(gc).into_iter().chain(of_today(gc)).collect()
}

/// Measures two rings of 4096 flows of two packets: half of all packets start a flow.
pub(crate) fn denial_of_service(report: &mut Report, quick: bool) -> Outcome {
    let (gc, rounds, round) = match quick {
        true => (PassiveGc::new(20_000, 100)?, 3, 50_000),
        false => (PassiveGc::TRASH_2006, 15, 200_000),
    };
    let mut packets = Rings::rdos(Rings::ADJACENT);
    // Twice the packets needed to fill a cache.
    let filling: Vec<Packet> = packets.by_ref().take(4 * gc.threshold()).collect();
    let fillings: Vec<Vec<u64>> =
        (0..FILLINGS).map(|_| fill(&mut split(rows(gc)).1, &filling)).collect();
    let (names, mut subjects) = split(rows(gc));
    fill(&mut subjects, &filling);
    let slowest: Vec<u64> = (0..names.len())
        .map(|i| fillings.iter().map(|slowest| slowest[i]).min().unwrap_or(0))
        .collect();
    let measurements = measure_rounds(&mut subjects, &mut packets, rounds, round);
    let states: Vec<State> = subjects.iter().map(|subject| subject.state()).collect();
    names.iter().zip(&states).for_each(|(name, state)| judge_shape(report, name, state));
    names.iter().zip(&measurements).skip(1).for_each(|(name, measurement)| {
        judge_speed(report, "section 4, results", name, names[0].3, measurement, &measurements[0]);
    });
    let rows = names.iter().zip(&states).zip(&measurements);
    let all: Vec<_> = rows.map(|((name, state), speed)| (*name, state, speed)).collect();
    judge_headlines(report, &all);
    speeds(report, &names, &measurements, &states)?;
    latencies(report, &names, &measurements, &slowest)
}

/// Fills caches from empty. Returns the slowest insertion of each, in nanoseconds.
fn fill(subjects: &mut [Box<dyn Subject>], packets: &[Packet]) -> Vec<u64> {
    let slowest = |subject: &mut Box<dyn Subject>| {
        let mut insertions = Vec::with_capacity(packets.len());
        subject.forward_timing_insertions(packets, &mut insertions);
        insertions.into_iter().max().unwrap_or(0)
    };
    subjects.iter_mut().map(slowest).collect()
}

/// The published part of a row.
type Name = (&'static str, &'static str, &'static str, Option<f64>);

fn split(rows: Vec<Row>) -> (Vec<Name>, Vec<Box<dyn Subject>>) {
    rows.into_iter().map(|row| ((row.name, row.depth, row.leaves, row.kpps), row.subject)).unzip()
}

/// Formats the average and the maximum depth of a trie.
fn depths(state: &State) -> (String, String) {
    let shape = state.shape.as_ref();
    shape.map_or(("-".into(), "-".into()), |shape| {
        (format!("{:.3}", shape.average_depth()), shape.max_depth().to_string())
    })
}

/// Compares depth and entries with the paper.
fn judge_shape(report: &mut Report, (name, depth, leaves, _): &Name, state: &State) {
    const PLACE: &str = "section 4, results";
    if let (Some((average, max)), Some(shape)) = (depth.split_once(" / "), &state.shape) {
        let number = |text: &str| text.parse().unwrap_or(f64::NAN);
        let cause = match *name {
            "plain src,dst" => Cause::UnevenLeaves,
            name if name.ends_with("AGC") => Cause::ThreePackets,
            _ => Cause::LeastDepth,
        };
        let what = format!("{name}: average depth");
        let finding = Finding::number(PLACE, what, number(average), shape.average_depth());
        report.record(finding.counted().because(cause).at_full_scale());
        let what = format!("{name}: maximum depth");
        let finding = Finding::number(PLACE, what, number(max), shape.max_depth() as f64);
        report.record(finding.because(Cause::MaxDepth).at_full_scale());
    }
    if let Ok(paper) = leaves.parse() {
        let what = format!("{name}: entries");
        let finding = Finding::number(PLACE, what, paper, state.entries as f64).counted();
        let is_a_setting = !name.ends_with("AGC");
        let finding = finding.because(Cause::ThreePackets).at_full_scale();
        report.record(if is_a_setting { finding.calculated() } else { finding });
    }
}

/// Compares the statements of the abstract and of section 4 about the plain trie and TRASH.
fn judge_headlines(report: &mut Report, all: &[(Name, &State, &Measurement)]) {
    let find = |name: &str| all.iter().find(|(names, ..)| names.0 == name);
    let [Some(plain), Some(trash)] = ["plain src,dst", "TRASH 160"].map(find) else { return };
    let ratio = trash.2.times_as_fast(plain.2);
    let what = "TRASH 160 beside plain src,dst: throughput";
    let ours = format!("{} times", two(ratio));
    let (paper, rule) = ("more than 40 % more", "1.4 times or more");
    let finding = Finding::check("section 4.3", what, paper, ours, rule, ratio >= 1.4);
    report.record(finding.because(Cause::CacheSpeeds).on_this_machine().at_full_scale());
    judge_key_order_and_agc(report, all);
    let depth = |(_, state, _): &(Name, &State, &Measurement)| {
        state.shape.as_ref().map_or(f64::NAN, TrieShape::average_depth)
    };
    let tries = || all.iter().filter(|(name, ..)| name.0.starts_with("TRASH"));
    let average = tries().map(depth).fold(0.0, f64::max);
    let what = "average depth of all tries with a header";
    let ours = format!("{} at most", two(average));
    let finding = Finding::check("abstract", what, "below 1.5", ours, "below 1.5", average < 1.5);
    report.record(finding.because(Cause::ThreePackets).at_full_scale());
    let shapes = tries().filter_map(|(_, state, _)| state.shape.as_ref());
    let most = shapes.map(TrieShape::max_depth).max().unwrap_or(0);
    let what = "maximum depth of all tries with a header";
    let ours = most.to_string();
    let finding = Finding::check("abstract", what, "below 5", ours, "below 5", most < 5);
    report.record(finding.because(Cause::MaxDepth).at_full_scale());
}

/// Compares the statements of sections 4.2, 4.6 and 4.7 about two tries each.
fn judge_key_order_and_agc(report: &mut Report, all: &[(Name, &State, &Measurement)]) {
    let ratio = |name: &str, other: &str| {
        let find = |name: &str| all.iter().find(|(names, ..)| names.0 == name).map(|row| row.2);
        find(name).zip(find(other)).map_or(f64::NAN, |(this, other)| this.times_as_fast(other))
    };
    let of_order = ratio("plain dst,src", "plain src,dst");
    let of_agc = ratio("TRASH 160 + AGC", "TRASH 160");
    let of_length = ratio("TRASH 384 + AGC", "TRASH 160 + AGC");
    for (place, what, paper, rule, ratio, holds, cause) in [
        (
            "section 4.2, key order",
            "plain dst,src beside src,dst: throughput",
            "more than 40 % more",
            "1.4 times or more",
            of_order,
            of_order >= 1.4,
            Cause::CacheSpeeds,
        ),
        (
            "section 4.6",
            "active collection: throughput",
            "increases somewhat",
            "1 to 1.25 times",
            of_agc,
            (1.0..=1.25).contains(&of_agc),
            // The sign is the printed one.
            if of_agc > 1.0 { Cause::OtherWork } else { Cause::CacheSpeeds },
        ),
        (
            "section 4.7",
            "TRASH 384 + AGC beside TRASH 160 + AGC: throughput",
            "321 beside 319 Kpps",
            "within 10 % of the printed ratio, which is 1.01",
            of_length,
            (of_length / (321.0 / 319.0) - 1.0).abs() <= 0.1,
            Cause::OtherWork,
        ),
    ] {
        let ours = format!("{} times", two(ratio));
        let finding = Finding::check(place, what, paper, ours, rule, holds);
        report.record(finding.because(cause).on_this_machine().at_full_scale());
    }
}

/// Compares packets per second, as a multiple of the chained hash.
fn judge_speed(
    report: &mut Report,
    place: &'static str,
    (name, .., kpps): &Name,
    of_first: Option<f64>,
    measurement: &Measurement,
    first: &Measurement,
) {
    let Some(paper) =
        kpps.zip(of_first).map(|(kpps, first)| (100.0 * kpps / first).round() / 100.0)
    else {
        return;
    };
    let what = format!("{name}: speed, as a multiple of the chained hash's");
    let ours = measurement.times_as_fast(first);
    let finding = Finding::number(place, what, paper, ours).timed();
    report.record(finding.because(cause_of_speed(paper, ours)).at_full_scale());
}

fn or_dash(number: Option<f64>) -> String {
    number.map_or("-".into(), two)
}

fn speeds(
    report: &mut Report,
    names: &[Name],
    measurements: &[Measurement],
    states: &[State],
) -> Outcome {
    let mut table = Table::new(&[
        "cache",
        "hits %",
        "entries",
        "paper's",
        "root bits",
        "avg depth",
        "max",
        "paper's depth",
        "bytes per key",
        "ns per packet",
        "Mpps",
        "speed to chained",
        "paper's speed",
    ]);
    let first = &measurements[0];
    let kpps_of_first = names[0].3;
    for ((&(name, depth, leaves, kpps), measurement), state) in
        names.iter().zip(measurements).zip(states)
    {
        let (average, max) = depths(state);
        let bits = state.shape.as_ref().map_or("-".into(), |shape| shape.root_bits.to_string());
        table.row(&[
            &name,
            &format!("{:.1}", 100.0 * measurement.hit_rate),
            &state.entries,
            &leaves,
            &bits,
            &average,
            &max,
            &depth,
            &(state.bytes / state.entries.max(1)),
            &format!("{:.0}", measurement.ns_per_packet),
            &two(1000.0 / measurement.ns_per_packet),
            &two(measurement.times_as_fast(first)),
            &or_dash(kpps.zip(kpps_of_first).map(|(kpps, first)| kpps / first)),
        ]);
    }
    report.table("rdos", "Denial of service: half of the packets start a flow", table)
}

fn latencies(
    report: &mut Report,
    names: &[Name],
    measurements: &[Measurement],
    slowest: &[u64],
) -> Outcome {
    let header =
        ["cache", "p50 ns", "p99", "p99.9", "p99.99", "slowest", "slowest while filling, us"];
    let mut table = Table::new(&header);
    for ((name, measurement), slowest) in names.iter().zip(measurements).zip(slowest) {
        let [p50, p99, p999, p9999, max] = measurement.insertion;
        table.row(&[&name.0, &p50, &p99, &p999, &p9999, &max, &(slowest / 1000)]);
    }
    let title = "Its insertions, collections included (one in 100 collects; medians of rounds, \
        least of the slowest)";
    report.table("rdos_insertions", title, table)
}

/// Active collection by the length of flows: the cache contains the live flows.
///
/// A flow is live if some of its packets have been sent, but not all. The generator picks slots at
/// random, so a slot is equally often in each of its `length` states, in one of which its flow has
/// ended. Half of the slots are live for two packets. The generator of the kernel compares
/// `count > length` and sends one packet more than requested: then two thirds are live.
pub(crate) fn explain_three_packets(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let packets = if quick { 50_000 } else { 1_000_000 };
    let header = ["packets per flow", "flows alive", "entries", "avg depth", "max"];
    let mut table = Table::new(&header);
    table.row(&[&"printed: 2", &"-", &"5983", &"1.33", &"3"]);
    for length in [2, 3] {
        let hasher = DefaultHashBuilder::with_seed(2006);
        let mut cache = active(PassiveGc::TRASH_2006, move |flow| trash(flow, &hasher));
        let rings = Rings::new(4096, length, Order::Random, Rings::ADJACENT);
        cache.forward(&rings.take(packets).collect::<Vec<_>>());
        let state = cache.state();
        let (average, max) = depths(&state);
        let alive = 8192 * (length - 1) / length;
        table.row(&[&length, &alive, &state.entries, &average, &max]);
    }
    Ok(vec![("2 x 4096 flows that are removed at their end", table)])
}

/// Measures one flow per interface: the cost of a lookup in the CPU cache.
pub(crate) fn single_flow(report: &mut Report, quick: bool) -> Outcome {
    let (rounds, round) = if quick { (3, 100_000) } else { (15, 1_000_000) };
    let gc = PassiveGc::TRASH_2006;
    let hasher = || DefaultHashBuilder::with_seed(2006);
    let (h160, h384) = (hasher(), hasher());
    let mut subjects: Vec<Box<dyn Subject>> = vec![
        Box::new(Forwarder::new(Chained::new(gc, hasher()))),
        passive(gc, move |flow| trash(flow, &h160)),
        passive(gc, move |flow| wide::<44>(flow, &h384)),
        Box::new(Forwarder::new(Swiss::new(gc, hasher()))),
        Box::new(Forwarder::new(Flows::new(gc, Passive::new(gc), hasher()))),
    ];
    let paper = [
        ("chained hash", "-", Some(1308.0)),
        ("TRASH 160", "1.00 / 1", Some(1218.0)),
        ("TRASH 384", "1.00 / 1", Some(1193.0)),
        ("hashbrown", "-", None),
        ("FlowCache", "-", None),
    ];
    let mut rng = StdRng::seed_from_u64(2006);
    let two_packets =
        Rings::ADJACENT.map(|net| Packet { flow: new_flow(net, &mut rng), last: false });
    let mut packets = two_packets.into_iter().cycle();
    let measurements = measure_rounds(&mut subjects, &mut packets, rounds, round);
    let header = [
        "cache",
        "entries",
        "avg depth",
        "max",
        "paper's depth",
        "ns per lookup",
        "speed to chained",
        "paper's speed",
    ];
    let mut table = Table::new(&header);
    let rows = paper.iter().zip(measurements.iter().zip(&subjects)).skip(1);
    rows.for_each(|((name, depth, kpps), (measurement, subject))| {
        let name = (*name, *depth, "-", *kpps);
        judge_speed(report, ONE_FLOW, &name, paper[0].2, measurement, &measurements[0]);
        judge_depth_of_one(report, name.0, &subject.state());
    });
    let [short, long] = [1, 2].map(|at| measurements[at].ns_per_packet);
    let what = "TRASH 384 beside TRASH 160: time of a lookup";
    let ours = format!("{:+.0} %, {:+.1} ns", 100.0 * (long / short - 1.0), long - short);
    let finding = Finding::check(
        "section 4.9, one flow",
        what,
        "increases only marginally",
        ours,
        "by 10 % at most",
        long <= 1.1 * short,
    );
    let why = "The printed rates are 17 ns apart, of 821.";
    report.record(finding.because(Cause::OtherWork).noting(why).on_this_machine().at_full_scale());
    for (((name, depth, kpps), measurement), subject) in
        paper.iter().zip(&measurements).zip(&subjects)
    {
        let state = subject.state();
        let (average, max) = depths(&state);
        table.row(&[
            name,
            &state.entries,
            &average,
            &max,
            depth,
            &two(measurement.ns_per_packet),
            &two(measurement.times_as_fast(&measurements[0])),
            &or_dash(kpps.map(|kpps| kpps / 1308.0)),
        ]);
    }
    report.table("single_flow", "One flow per interface", table)
}

/// Compares the depth of a trie with one flow, which is its leaf.
fn judge_depth_of_one(report: &mut Report, name: &str, state: &State) {
    if let Some(shape) = &state.shape {
        let what = format!("{name}: average depth");
        // A trie of one or two leaves cannot be deeper.
        let finding = Finding::number(ONE_FLOW, what, 1.0, shape.average_depth());
        report.record(finding.calculated());
    }
}
