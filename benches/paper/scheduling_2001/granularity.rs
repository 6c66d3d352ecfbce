//! Figures 6 to 8: three flows through input, forwarding and output threads, by the length of a
//! turn.
//!
//! ```text
//!     card A ─▸ I ─▸ ▒▒ ─▸ F + x ─▸ ▒▒ ┐                A: best effort, 50 Kpps, x µs more each
//!                                      ├─▸ O ─▸ link 1
//!     card C ─▸ I ─▸ ▒▒ ─▸ F ─────▸ ▒▒ ┘
//!     card B ─▸ I ─▸ ▒▒ ─▸ F ─────▸ ▒▒ ─▸ O ─▸ link 2   B, C: reserved, 90 Kpps each
//! ```
//!
//! Links have the rate of 100 Mb/s, which A and C nearly use up: 140 of 148.8 Kpps. Input threads
//! sleep by the estimator of the crate. All turns are limited to 16 packets; the figures vary the
//! turns of forwarding threads.

use std::error::Error;
use std::time::Duration;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::papers::schedule::pipeline::{Input, LinkShare, Output, Path, Pipeline, Polling};
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};

use super::testbed::{BATCH, Costs, FORWARD, QUEUE, READ, SWITCH, Testbed, WRITE, estimator};
use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

const RATES: [u64; 3] = [50_000, 90_000, 90_000];
const NAMES: [&str; 3] = ["A", "B", "C"];

/// Assumptions about what the paper leaves open.
#[derive(Clone, Copy)]
pub(super) struct Assumptions {
    pub(super) switch: Duration,
    /// The packets per poll that the estimator aims at. `None`: input polls all the time.
    pub(super) range: Option<(u32, u32)>,
    /// Packets per second of each flow.
    pub(super) rates: [u64; 3],
    /// The cost of the interrupt by which a packet is read. `None`: input threads read.
    pub(super) interrupt: Option<Duration>,
}

pub(super) const ASSUMED: Assumptions =
    Assumptions { switch: SWITCH, range: Some((4, 12)), rates: RATES, interrupt: None };

/// Shares of input, forwarding and output are the reserved processing times, in thousandths.
const INPUT_SHARES: [u32; 3] = [80, 144, 144];
const PATH_SHARES: [u32; 3] = [15, 27, 27];
const OUTPUT_SHARES: [u32; 2] = [196, 126];
/// The output of each path, and the shares of links in Kpps.
const OUTPUTS: [usize; 3] = [0, 1, 0];
const LINK_SHARES: [u32; 3] = [50, 90, 90];

/// Runs the pipeline with turns of forwarding threads that are limited by `budget`.
pub(super) fn run(
    extra: Duration,
    budget: Budget,
    assumed: Assumptions,
    duration: Duration,
) -> Result<Throughput, Box<dyn Error>> {
    let policy = Policy::Budget(Budget::packets(BATCH));
    let shares = ProportionalShare::new(8, 1000, Order::Wf2qPlus)?;
    let mut pipeline = Pipeline::new(shares, assumed.switch, policy)?;
    for share in OUTPUT_SHARES {
        let link = ProportionalShare::new(2, LINK_SHARES.iter().sum(), Order::Wf2qPlus)?;
        pipeline.add_output(Output { thread: ThreadConfig::new(share, WRITE), link })?;
    }
    let costs = [FORWARD + extra, FORWARD, FORWARD];
    for (path, cost) in costs.into_iter().enumerate() {
        let thread = ThreadConfig { budget, ..ThreadConfig::new(PATH_SHARES[path], cost) };
        let output = Some(LinkShare { output: OUTPUTS[path], share: LINK_SHARES[path] });
        pipeline.add_path(Path { thread, capacity: QUEUE, output })?;
    }
    let costs = Costs { interrupt: assumed.interrupt, ..Costs::new(&costs, assumed.switch) };
    let mut testbed = Testbed::new(costs, 3)?.with_links(OUTPUT_SHARES.len());
    for (port, share) in INPUT_SHARES.into_iter().enumerate() {
        let polling = match assumed.range {
            Some((low, high)) => Polling::Estimated(estimator()?.with_range(low, high)?),
            None if assumed.interrupt.is_some() => Polling::Notified,
            None => Polling::Always,
        };
        let thread = ThreadConfig::new(share, READ);
        pipeline.add_input(Input { thread, polling, only_path: Some(port) })?;
        testbed = testbed.with_flow(assumed.rates[port], port, port);
    }
    let kpps = testbed.run(&mut pipeline, duration)?;
    let efficiency = pipeline.scheduler().account().efficiency().unwrap_or_default();
    Ok(Throughput { kpps: [kpps[0], kpps[1], kpps[2]], efficiency })
}

pub(super) struct Throughput {
    pub(super) kpps: [f64; 3],
    efficiency: f64,
}

/// Measures and draws figures 6 to 8.
pub(crate) fn figures(report: &mut Report, quick: bool) -> Outcome {
    let duration = Duration::from_millis(if quick { 50 } else { 1000 });
    let mut by_single_packets = vec![];
    for (number, name, budget, paper) in [
        (6, "batches of 16", Budget::packets(16), "B and C lose packets as x grows"),
        (7, "single packets", Budget::packets(1), "B and C hold; E = 66.2 %"),
        (
            8,
            "16 packets or 30 us",
            Budget { packets: 16, slice: Duration::from_micros(30) },
            "B and C hold, A has more than in figure 7; E = 81.6 %",
        ),
    ] {
        let mut table = Table::new(&["x, us", "A, Kpps", "B, Kpps", "C, Kpps", "E, %"]);
        let mut lines = NAMES.map(|name| Line { name, points: vec![] });
        let mut all = vec![];
        for extra in [0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100] {
            let extra_cost = Duration::from_micros(extra);
            let done = run(extra_cost, budget, ASSUMED, duration)?;
            let [a, b, c] = done.kpps.map(two);
            table.row(&[&extra, &a, &b, &c, &two(100.0 * done.efficiency)]);
            for (line, kpps) in lines.iter_mut().zip(done.kpps) {
                line.points.push((extra as f64, kpps));
            }
            all.push((extra, done));
        }
        let title = format!("Figure {number}, {name}. The paper: {paper}");
        report.table(&format!("figure_{number}"), &title, table)?;
        match number {
            6 => judge_batches(report, &all),
            7 => {
                judge_turns(report, "figure 7", 66.2, &all);
                by_single_packets = all;
            }
            _ => {
                judge_turns(report, "figure 8", 81.6, &all);
                judge_best_effort(report, &by_single_packets, &all);
            }
        }
        let mut lines = Vec::from(lines);
        if number > 6 {
            let points = [0.0, 50.0, 100.0].map(|extra| (extra, 90.0)).into();
            lines.push(Line { name: "published: B and C hold 90", points });
        }
        let title = format!("Turns of {name} (figure {number}, simulated)");
        let figure = Figure {
            title: &title,
            x_label: "extra cost of a packet of A, µs",
            x_scale: Scale::Linear,
            panels: vec![Panel { y_label: "Kpps", y: 0.0..100.0, lines }],
        };
        report.figure(&format!("figure_{number}"), &figure)?;
    }
    Ok(())
}

/// Returns the lower rate of B and C.
fn fewest(done: &Throughput) -> f64 {
    done.kpps[1].min(done.kpps[2])
}

/// The quantity that figures 6 to 8 show.
const OF_B_AND_C: &str = "B and C, of their 90 Kpps, as packets of A cost more";

/// Figure 6: batches of an expensive flow reduce the rates of the others.
fn judge_batches(report: &mut Report, all: &[(u64, Throughput)]) {
    let least = all.iter().map(|(_, done)| fewest(done)).fold(f64::INFINITY, f64::min);
    let first = all.iter().find(|(_, done)| fewest(done) < 85.0);
    let ours = match first {
        Some((extra, _)) => format!("down to {} Kpps; below 85 from x = {extra} µs on", two(least)),
        None => format!("{} Kpps or more", two(least)),
    };
    let (rule, holds) = ("less than 85 Kpps somewhere", first.is_some());
    let finding = Finding::check("figure 6", OF_B_AND_C, "lose packets", ours, rule, holds);
    report.record(finding.at_full_scale());
    let offered = RATES.iter().sum::<u64>() as f64 / 1000.0;
    let is_busy = |(_, done): &&(u64, Throughput)| done.kpps.iter().sum::<f64>() < 0.99 * offered;
    let from = all.iter().find(is_busy).map_or(u64::MAX, |(extra, _)| *extra);
    let what = "extra cost from which the processor is the limit";
    let (paper, rule) = ("just before 5 µs", "5 µs is the first of our steps");
    let ours = format!("from {from} µs on");
    let finding = Finding::check("figure 6", what, paper, ours, rule, from == 5);
    report.record(finding.because(Cause::SwitchTime).at_full_scale());
}

/// Figures 7 and 8: shorter turns keep reservations and cost efficiency.
fn judge_turns(report: &mut Report, place: &'static str, paper: f64, all: &[(u64, Throughput)]) {
    let least = all.iter().map(|(_, done)| fewest(done)).fold(f64::INFINITY, f64::min);
    let lost = all.iter().filter(|(_, done)| fewest(done) < 89.0);
    let lost: Vec<String> = lost.map(|(extra, _)| extra.to_string()).collect();
    let ours = match lost.as_slice() {
        [] => format!("{} Kpps or more", two(least)),
        _ => format!("down to {} Kpps; below 89 at x = {} µs", two(least), lost.join(", ")),
    };
    let rule = "89 Kpps or more, at each x";
    let finding = Finding::check(place, OF_B_AND_C, "hold them", ours, rule, lost.is_empty());
    let why = "At x = 0 nearly all of A's 50 Kpps are forwarded, one packet in a turn, and the \
        switches take what B and C have reserved.";
    let is_at_0_only = place == "figure 7" && lost == ["0"];
    let finding = finding.because(Cause::SwitchTime);
    let finding = if is_at_0_only { finding.noting(why) } else { finding };
    report.record(finding.at_full_scale());
    let what = "E, %, mean over extra costs from 5 µs on, where the processor is busy";
    let finding = Finding::number(place, what, paper, mean_efficiency(all)).counted();
    report.record(finding.because(Cause::SwitchTime).at_full_scale());
}

/// Figure 8: with fewer switches more is left for the best-effort flow.
fn judge_best_effort(report: &mut Report, of_7: &[(u64, Throughput)], of_8: &[(u64, Throughput)]) {
    let more = |((extra, of_7), (_, of_8)): (&(u64, Throughput), &(u64, Throughput))| {
        (*extra >= 5).then(|| of_8.kpps[0] - of_7.kpps[0])
    };
    let more: Vec<f64> = of_7.iter().zip(of_8).filter_map(more).collect();
    let least = more.iter().copied().fold(f64::INFINITY, f64::min);
    let most = more.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let what = "A, Kpps, with extra costs from 5 µs on";
    let (paper, rule) = ("more than in figure 7", "more, at each x");
    let ours = format!("{} to {} more", two(least), two(most));
    let finding = Finding::check("figure 8", what, paper, ours, rule, least > 0.0);
    report.record(finding.because(Cause::SwitchTime).at_full_scale());
}

/// Returns the mean E, in per cent, over extra costs from 5 µs on.
fn mean_efficiency(all: &[(u64, Throughput)]) -> f64 {
    let busy = all.iter().filter(|(extra, _)| *extra >= 5).map(|(_, done)| 100.0 * done.efficiency);
    busy.clone().sum::<f64>() / busy.count().max(1) as f64
}

/// Varies the cost of a switch and the range of the estimator.
pub(super) fn efficiency_by_switch(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let duration = Duration::from_millis(if quick { 20 } else { 500 });
    let extras: &[u64] = if quick { &[20] } else { &[5, 10, 20, 40, 80] };
    let mut table = Table::new(&["switch, us", "estimator's range", "figure 7", "figure 8"]);
    table.row(&[&"printed", &"-", &"66.2", &"81.6"]);
    let both = Budget { packets: 16, slice: Duration::from_micros(30) };
    for nanos in [900, 920, 940, 2000] {
        for (name, range) in
            [("4 to 12", Some((4, 12))), ("2 to 4", Some((2, 4))), ("none: polls", None)]
        {
            let assumed = Assumptions { switch: Duration::from_nanos(nanos), range, ..ASSUMED };
            let of = |budget| -> Result<String, Box<dyn Error>> {
                let mut all = vec![];
                for &extra in extras {
                    let extra_cost = Duration::from_micros(extra);
                    all.push((extra, run(extra_cost, budget, assumed, duration)?));
                }
                Ok(two(mean_efficiency(&all)))
            };
            let switch = two(nanos as f64 / 1000.0);
            table.row(&[&switch, &name, &of(Budget::packets(1))?, &of(both)?]);
        }
    }
    Ok(vec![("E, %, in figures 7 and 8", table)])
}
