//! Figure 4, right: a packet filter with 16 readers, without a cache, and with caches by three
//! kinds of index.

use std::hint::black_box;

use flowtable::hash::source_index::SourceIndex;
use model::papers::source_hash_1995::SEED;
use model::papers::source_hash_1995::bpf::Program;
use model::papers::source_hash_1995::fids::Fid;
use model::papers::source_hash_1995::filters::{
    Readers, programs, readers, readers_cached, watched,
};
use model::papers::source_hash_1995::indices::SLOTS;
use model::papers::source_hash_1995::router::{Cache, by_crc, by_source, by_xor};
use model::papers::source_hash_1995::traffic::Traffic;

use super::forwarding::hits_of_kinds;
use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

/// Measures 16 readers without and with a cache.
pub(crate) fn packet_filter(report: &mut Report, quick: bool) -> Outcome {
    let rounds = if quick { 5 } else { 301 };
    let mut table = Table::new(&[
        "flows",
        "series",
        "ns for a packet",
        "times as fast",
        "time saved %",
        "target",
        "paper",
        "hits %",
    ]);
    for traffic in [Traffic::few(quick), Traffic::many(quick)] {
        let packets = traffic.order.len();
        let programs = programs(&watched(&traffic))?;
        let copies: u32 = traffic
            .order
            .iter()
            .map(|&flow| readers(&traffic.frames[flow], &programs).count_ones())
            .sum();
        report.remark(format!(
            "{} readers; {} of them accept a packet on average, of {} flows.",
            programs.len(),
            two(f64::from(copies) / packets as f64),
            traffic.frames.len()
        ));
        let hits = hits_of_kinds(&traffic);
        let times = Times::measure(&mut subjects(&traffic, &programs), packets, rounds);
        judge(report, traffic.frames.len(), times.times_as_fast(3, 0));
        for (number, name) in NAMES.iter().enumerate() {
            let flows = traffic.frames.len();
            let faster = times.times_as_fast(number, 0);
            let (target, paper, hits) = match number {
                0 => ("-", "-", "-".into()),
                _ => ("6", "6 to 7", two(hits[number - 1])),
            };
            let saved = two(100.0 * (1.0 - 1.0 / faster));
            table.row(&[
                &flows,
                name,
                &two(times.of(number)),
                &two(faster),
                &saved,
                &target,
                &paper,
                &hits,
            ]);
        }
    }
    report.table("packet_filter", "A packet filter with 16 readers (figure 4)", table)
}

/// Compares the cache by source index with the execution of all programs.
fn judge(report: &mut Report, flows: usize, faster: f64) {
    const PLACE: &str = "figure 4";
    let ours = format!("{} times as fast", two(faster));
    let what = format!("packet filter, {flows} flows, source index: gain");
    let (paper, holds) = ("6 to 7 times as fast", (5.5..=7.5).contains(&faster));
    let finding = Finding::check(PLACE, what, paper, ours, "5.5 to 7.5", holds);
    report.record(finding.because(Cause::FilterFlows).on_this_machine().at_full_scale());
}

/// Measures the gain of the source index by the number of flows.
pub(crate) fn explain_filter_flows(quick: bool) -> Result<Evidence, Box<dyn std::error::Error>> {
    let header = ["flows", "hits %", "no cache, ns", "source index, ns", "times as fast"];
    let mut table = Table::new(&header);
    table.row(&[&"printed: not stated", &"-", &"-", &"-", &"6 to 7"]);
    let each: &[usize] = if quick { &[64, 1024] } else { &[64, 128, 256, 512, 1024] };
    for &each in each {
        let traffic = Traffic::new(each, if quick { 2_000 } else { 20_000 }, SEED);
        let (programs, packets) = (programs(&watched(&traffic))?, traffic.order.len());
        let mut all = [
            subject(&traffic, |frame| readers(frame, &programs)),
            cached(&traffic, &programs, by_source),
        ];
        let times = Times::measure(&mut all, packets, if quick { 3 } else { 51 });
        let cells = [two(times.of(0)), two(times.of(1)), two(times.times_as_fast(1, 0))];
        let [plain, cached, faster] = &cells;
        let hits = two(hits_of_kinds(&traffic)[2]);
        table.row(&[&traffic.frames.len(), &hits, plain, cached, faster]);
    }
    Ok(vec![("A packet filter with 16 readers, by the number of flows", table)])
}

pub(crate) const NAMES: [&str; 4] =
    ["no cache", "cache by XOR-16", "cache by CRC-8 pair", "cache by source index"];

/// Returns all series over the same packets, in the order of [`NAMES`].
pub(crate) fn subjects<'a>(traffic: &'a Traffic, programs: &'a [Program]) -> Vec<Subject<'a>> {
    vec![
        subject(traffic, move |frame| readers(frame, programs)),
        cached(traffic, programs, by_xor),
        cached(traffic, programs, by_crc),
        cached(traffic, programs, by_source),
    ]
}

fn cached<'a>(
    traffic: &'a Traffic,
    programs: &'a [Program],
    index: impl Fn(&Fid, SourceIndex) -> SourceIndex + Copy + 'a,
) -> Subject<'a> {
    let mut cache: Cache<Readers> = Cache::new(SLOTS).expect("there is memory");
    subject(traffic, move |frame| readers_cached(frame, &mut cache, index, programs))
}

/// Filters all packets.
fn subject<'a>(traffic: &'a Traffic, mut filter: impl FnMut(&[u8]) -> Readers + 'a) -> Subject<'a> {
    Box::new(move || {
        let frames = traffic.order.iter().map(|&flow| &traffic.frames[flow]);
        frames.map(|frame| u64::from(filter(black_box(frame)))).sum()
    })
}
