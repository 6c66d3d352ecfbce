//! Figure 11: entries examined by a find, and its latency, by load factor.

use bench_common::figure::{Figure, Line, Panel, Scale};
use model::papers::ephemeral_2002::chains::{ENTRIES, Examined, Filled, HEADS, NOW, SEED, absent};
use model::papers::ephemeral_2002::tables::WORD;

use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

/// Finds per timed batch.
const FINDS: usize = 65_536;

/// Measurements of a store at one load factor.
struct Point {
    examined: Examined,
    /// Nanoseconds for present and for absent tags.
    times: [f64; 2],
}

pub(crate) fn figure_11(report: &mut Report, quick: bool) -> Outcome {
    let steps = if quick { 2 } else { 10 };
    let parts: Vec<f64> = (0..=steps).map(|step| f64::from(step) / f64::from(steps)).collect();
    let columns = [
        "heads for an entry",
        "full",
        "entries examined",
        "1 + f / 2h",
        "by absent tags",
        "expected",
        "paper: f / h",
        "longest chain",
        "SRAM µs",
        "ns",
        "ns, absent",
    ];
    let (mut table, mut curves) = (Table::new(&columns), vec![]);
    for (heads, ratio) in HEADS {
        let mut filled = Filled::new(ENTRIES, heads, SEED);
        let points: Vec<Point> =
            parts.iter().map(|part| point(&mut filled, *part, quick)).collect();
        for (part, Point { examined, times: [there, not_there] }) in parts.iter().zip(&points) {
            table.row(&[
                &ratio,
                part,
                &format!("{:.3}", examined.present),
                &format!("{:.3}", 1.0 + part / (2.0 * ratio)),
                &format!("{:.3}", examined.absent),
                &format!("{:.3}", absent(part / ratio)),
                &format!("{:.3}", part / ratio),
                &examined.longest,
                &two(latency(examined.present)),
                &format!("{there:.1}"),
                &format!("{not_there:.1}"),
            ]);
        }
        curves.push((format!("{ratio} heads for an entry"), points));
    }
    report.table(
        "figure_11",
        "A find in 65,536 entries, the fuller they are (figure 11)",
        table,
    )?;
    draw(report, &parts, &curves)?;
    curves.iter().zip(HEADS).for_each(|((_, points), (_, ratio))| judge(report, points, ratio));
    Ok(())
}

/// Compares the slope of each curve, and the latencies that the text gives for the first and the
/// last.
fn judge(report: &mut Report, points: &[Point], ratio: f64) {
    const PLACE: &str = "figure 11";
    let [Some(empty), Some(full)] = [points.first(), points.last()] else { return };
    let rise = full.examined.present - empty.examined.present;
    let what = format!(
        "{ratio} heads for an entry: more entries examined when full, by the equation f / 2h"
    );
    // The paper draws the curve, but prints neither the equation nor its values.
    let finding = Finding::number(PLACE, what, 1.0 / (2.0 * ratio), rise).within_units(0.02);
    report.record(finding.calculated());
    let modelled = [empty, full].map(|point| latency(point.examined.present));
    let [first, last] = [empty, full].map(|point| point.times[0]);
    if ratio == 0.5 {
        let ours = format!("{} to {} µs", two(modelled[0]), two(modelled[1]));
        let what = "half as many heads as entries: latency of a find, by words of 0.1 µs";
        let (paper, rule, holds) = ("below 3 µs when full", "below 3 µs", modelled[1] < 3.0);
        report.record(Finding::check(PLACE, what, paper, ours, rule, holds).calculated());
        let ours = format!("{first:.1} to {last:.1} ns");
        let what = "half as many heads as entries: measured latency of a find";
        let holds = last < 3000.0;
        let finding = Finding::check(PLACE, what, "below 3 µs when full", ours, rule, holds);
        report.record(finding.at_full_scale());
    } else if ratio == 2.0 {
        let ours = format!("{first:.1} to {last:.1} ns");
        let what = "two heads for an entry: measured latency of a find";
        let holds = last < 1.1 * first;
        let finding = Finding::check(PLACE, what, "constant", ours, "rises by 10 % at most", holds);
        report.record(finding.because(Cause::WordsAndTime).at_full_scale());
    }
}

/// Returns the microseconds in the SRAM of the paper.
fn latency(entries: f64) -> f64 {
    5.0 * entries * WORD
}

fn point(filled: &mut Filled, part: f64, quick: bool) -> Point {
    filled.fill_to_part(part);
    let examined = filled.examined();
    let (present, absent) = (filled.present(FINDS), filled.absent(FINDS));
    let store = &filled.store;
    let found = |tags: &[u64]| tags.iter().filter(|tag| store.find(*tag, NOW).is_some()).count();
    let mut subjects: [Subject<'_>; 2] =
        [Box::new(|| found(&present) as u64), Box::new(|| found(&absent) as u64)];
    let times = Times::measure(&mut subjects, FINDS, if quick { 1 } else { 21 });
    Point { examined, times: [0, 1].map(|number| times.of(number)) }
}

fn draw(report: &mut Report, parts: &[f64], curves: &[(String, Vec<Point>)]) -> Outcome {
    let panel = |y_label, most, value: &dyn Fn(&Point) -> f64| {
        let line = |(name, points): &'_ (String, Vec<Point>)| {
            let values = parts.iter().zip(points).map(|(part, point)| (100.0 * part, value(point)));
            (name.clone(), values.collect())
        };
        let lines: Vec<(String, Vec<(f64, f64)>)> = curves.iter().map(line).collect();
        (y_label, most, lines)
    };
    let slowest = curves.iter().flat_map(|(_, points)| points).map(|point| point.times[0]);
    let slowest = slowest.fold(1.0, f64::max);
    let panels = [
        panel("entries examined", 2.5, &|point| point.examined.present),
        panel("µs in SRAM, modelled", 3.5, &|point| latency(point.examined.present)),
        panel("ns here", 1.25 * slowest, &|point| point.times[0]),
    ];
    let panels = panels.iter().map(|(y_label, most, lines)| {
        let line = |(name, points): &'_ (String, Vec<(f64, f64)>)| (name.clone(), points.clone());
        (*y_label, *most, lines.iter().map(line).collect::<Vec<_>>())
    });
    let panels: Vec<_> = panels.collect();
    let panels = panels.iter().map(|(y_label, most, lines)| Panel {
        y_label,
        y: 0.0..*most,
        lines: lines.iter().map(|(name, points)| Line { name, points: points.clone() }).collect(),
    });
    let mut panels: Vec<Panel<'_>> = panels.collect();
    if let Some(modelled) = panels.get_mut(1) {
        let bound = Line { name: "published: 0.5 heads, below this", points: vec![(100.0, 3.0)] };
        modelled.lines.push(bound);
    }
    let figure = Figure {
        title: "A find of a tag that is there, in 65,536 entries",
        x_label: "percent of the store that is occupied",
        x_scale: Scale::Linear,
        panels,
    };
    report.figure("figure_11", &figure)
}
