//! Figure 4: packets forwarded by packets offered, with polling and with interrupts.

use std::error::Error;
use std::time::Duration;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::papers::schedule::Budget;

use super::granularity::{ASSUMED, Assumptions, run};
use super::rates::{ROWS, Turns, rate};
use super::testbed::SWITCH;
use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Kpps offered and forwarded.
type Curve = Vec<(f64, f64)>;

/// The turns by which all rows of table 2 come out.
const TURNS: Turns = Turns { packets: 9, switch: SWITCH };

/// The cost of an interrupt for which the rate peaks at the printed 48 Kpps: fitted.
const INTERRUPT: Duration = Duration::from_nanos(15_300);

/// The four curves of routers that poll: the rows of table 2.
fn polled(duration: Duration) -> Result<[Curve; 4], Box<dyn Error>> {
    let mut curves = [const { Curve::new() }; 4];
    for (curve, (_, _, processes)) in curves.iter_mut().zip(ROWS) {
        for offered in (30..=435).step_by(45) {
            let forwarded = rate(processes, TURNS, 1000 * offered, duration)?;
            curve.push((offered as f64, forwarded));
        }
    }
    Ok(curves)
}

/// The curve of a router whose three ports interrupt it.
fn interrupted(duration: Duration) -> Result<Curve, Box<dyn Error>> {
    let curve = (12..=84).step_by(6).map(|offered| {
        let rates = [1000 * offered / 3; 3];
        let assumed = Assumptions { range: None, interrupt: Some(INTERRUPT), rates, ..ASSUMED };
        let done = run(Duration::ZERO, Budget::packets(1), assumed, duration)?;
        Ok((offered as f64, done.kpps.iter().sum()))
    });
    curve.collect()
}

fn peak(curve: &Curve) -> f64 {
    curve.iter().map(|point| point.1).fold(0.0, f64::max)
}

fn end(curve: &Curve) -> f64 {
    curve.last().map_or(0.0, |point| point.1)
}

/// With polling the rate stays at its peak when more arrives, with interrupts it falls.
pub(crate) fn livelock(report: &mut Report, quick: bool) -> Outcome {
    let duration = Duration::from_millis(if quick { 20 } else { 500 });
    let (polled, interrupted) = (polled(duration)?, interrupted(duration)?);
    judge_polling(report, &polled);
    judge_interrupts(report, &interrupted);
    let mut curves: Vec<(&str, Curve)> =
        ROWS.into_iter().zip(polled).map(|((name, ..), curve)| (name, curve)).collect();
    curves.push(("interrupts", interrupted));
    let mut table = Table::new(&["router", "offered, Kpps", "forwarded, Kpps"]);
    for (name, curve) in &curves {
        for (offered, forwarded) in curve {
            table.row(&[name, offered, &two(*forwarded)]);
        }
    }
    let title = "Figure 4: routers that poll, in turns of nine packets, or are interrupted";
    report.table("figure_4", title, table)?;
    let mut lines: Vec<Line<'_>> =
        curves.into_iter().map(|(name, points)| Line { name, points }).collect();
    lines.push(Line { name: "published: 48 with interrupts", points: vec![(48.0, 48.0)] });
    let plateaus = ROWS.map(|(_, printed, _)| (435.0, printed)).into();
    lines.push(Line { name: "published: table 2", points: plateaus });
    report.figure(
        "figure_4",
        &Figure {
            title: "Offered and forwarded packets (figure 4, simulated)",
            x_label: "offered, Kpps",
            x_scale: Scale::Linear,
            panels: vec![Panel { y_label: "Kpps", y: 0.0..350.0, lines }],
        },
    )
}

fn judge_polling(report: &mut Report, curves: &[Curve; 4]) {
    let what = "polling: packets forwarded when more arrive than fit";
    let list = |of: fn(&Curve) -> f64| curves.each_ref().map(|curve| two(of(curve))).join(", ");
    let ours = format!("{} Kpps at most, {} with most arrivals", list(peak), list(end));
    let (paper, rule) = ("rises to a plateau and stays", "each 95 % of its peak or more");
    let stays = curves.iter().all(|curve| end(curve) >= 0.95 * peak(curve));
    report.record(Finding::check("figure 4", what, paper, ours, rule, stays).at_full_scale());
    let [_, _, three, _] = curves;
    let what = "polling: Kpps at the plateau";
    let finding = Finding::number("figure 4", what, 272.0, end(three)).counted();
    report.record(finding.because(Cause::SwitchTime).at_full_scale());
}

fn judge_interrupts(report: &mut Report, curve: &Curve) {
    let (most, end) = (peak(curve), end(curve));
    let what = "interrupts: packets forwarded when more arrive than fit";
    let ours = format!("{} Kpps at most, {} with most arrivals", two(most), two(end));
    let (paper, rule) = ("livelock", "5 % of the peak or less");
    let finding = Finding::check("figure 4", what, paper, ours, rule, end <= 0.05 * most);
    // The fitted cost of the interrupts is more than the processor at the highest rate.
    report.record(finding.calculated());
    let what = "interrupts: Kpps at the peak, if one takes 15.3 µs, which is fitted";
    report.record(Finding::number("figure 4", what, 48.0, most).rounded().calculated());
}
