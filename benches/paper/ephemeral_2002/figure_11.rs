//! Figure 11: entries examined by a find, and its latency, by load factor. Entries are those of a
//! model of the paper's chains, times those of the store, which has none.

use bench_common::figure::{Figure, Line, Panel, Scale};
use model::papers::ephemeral_2002::chains::{Chains, ENTRIES, Examined, Filled, HEADS, NOW, SEED};
use model::papers::ephemeral_2002::tables::WORD;

use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

const PLACE: &str = "figure 11";

/// Finds per timed batch.
const FINDS: usize = 65_536;

/// A curve of the chains with one number of heads.
type Curve = (String, Vec<Examined>);

/// Nanoseconds of a find in the store at one load factor, for present and for absent tags.
type Finds = [f64; 2];

pub(crate) fn figure_11(report: &mut Report, quick: bool) -> Outcome {
    let steps = if quick { 2 } else { 10 };
    let parts: Vec<f64> = (0..=steps).map(|step| f64::from(step) / f64::from(steps)).collect();
    let columns = [
        "heads for an entry",
        "full",
        "entries examined",
        "1 + f / 2h",
        "by absent tags",
        "f / h",
        "longest chain",
        "SRAM µs",
    ];
    let (mut table, mut curves) = (Table::new(&columns), vec![]);
    for heads in HEADS {
        let mut chains = Chains::new(heads, SEED);
        let mut points = vec![];
        for part in &parts {
            chains.fill_to_part(*part);
            let examined = chains.examined();
            table.row(&[
                &heads,
                part,
                &format!("{:.3}", examined.present),
                &format!("{:.3}", 1.0 + part / (2.0 * heads)),
                &format!("{:.3}", examined.absent),
                &format!("{:.3}", part / heads),
                &examined.longest,
                &two(latency(examined.present)),
            ]);
            points.push(examined);
        }
        curves.push((format!("{heads} heads for an entry"), points));
    }
    let title = "A find in the chains of 65,536 entries, the fuller they are (figure 11)";
    report.table("figure_11", title, table)?;
    let finds = finds(report, &parts, quick)?;
    draw(report, &parts, &curves, &finds)?;
    curves.iter().zip(HEADS).for_each(|((_, points), heads)| judge(report, points, heads));
    Ok(())
}

/// Times finds in the store.
fn finds(
    report: &mut Report,
    parts: &[f64],
    quick: bool,
) -> Result<Vec<Finds>, Box<dyn std::error::Error>> {
    let (mut table, mut filled) =
        (Table::new(&["full", "ns", "ns, absent"]), Filled::new(ENTRIES, SEED));
    let finds: Vec<Finds> = parts.iter().map(|part| find(&mut filled, *part, quick)).collect();
    for (part, [present, absent]) in parts.iter().zip(&finds) {
        table.row(&[part, &format!("{present:.1}"), &format!("{absent:.1}")]);
    }
    report.table("figure_11_here", "A find in EphemeralStore, the fuller it is", table)?;
    Ok(finds)
}

/// Compares the slope of each curve, and the latencies that the text gives for the first and the
/// last.
fn judge(report: &mut Report, points: &[Examined], heads: f64) {
    let [Some(empty), Some(full)] = [points.first(), points.last()] else { return };
    let rise = full.present - empty.present;
    let what = format!(
        "{heads} heads for an entry: more entries examined when full, by the equation f / 2h"
    );
    // The paper draws the curve, but prints neither the equation nor its values.
    let finding = Finding::number(PLACE, what, 1.0 / (2.0 * heads), rise).within_units(0.02);
    report.record(finding.calculated());
    let [first, last] = [empty, full].map(|point| latency(point.present));
    let ours = format!("{} to {} µs", two(first), two(last));
    if heads == 0.5 {
        let what = "half as many heads as entries: latency of a find, by words of 0.1 µs";
        let (paper, rule, holds) = ("below 3 µs when full", "below 3 µs", last < 3.0);
        report.record(Finding::check(PLACE, what, paper, ours, rule, holds).calculated());
    } else if heads == 2.0 {
        let what = "two heads for an entry: latency of a find, by words of 0.1 µs";
        let (rule, holds) = ("rises by 10 % at most", last < 1.1 * first);
        let finding = Finding::check(PLACE, what, "constant", ours, rule, holds);
        report.record(finding.because(Cause::WordsAndTime));
    }
}

/// Returns the microseconds in the SRAM of the paper.
fn latency(entries: f64) -> f64 {
    5.0 * entries * WORD
}

fn find(filled: &mut Filled, part: f64, quick: bool) -> Finds {
    filled.fill_to_part(part);
    let (present, absent) = (filled.present(FINDS), filled.absent(FINDS));
    let store = &filled.store;
    let found = |tags: &[u64]| tags.iter().filter(|tag| store.get(*tag, NOW).is_some()).count();
    let mut subjects: [Subject<'_>; 2] =
        [Box::new(|| found(&present) as u64), Box::new(|| found(&absent) as u64)];
    let times = Times::measure(&mut subjects, FINDS, if quick { 1 } else { 21 });
    [0, 1].map(|number| times.of(number))
}

fn draw(report: &mut Report, parts: &[f64], curves: &[Curve], finds: &[Finds]) -> Outcome {
    let lines = |value: &dyn Fn(&Examined) -> f64| -> Vec<Line<'_>> {
        let of = |points: &[Examined]| {
            parts.iter().zip(points).map(|(part, point)| (100.0 * part, value(point))).collect()
        };
        curves.iter().map(|(name, points)| Line { name, points: of(points) }).collect()
    };
    let here = parts.iter().zip(finds).map(|(part, [present, _])| (100.0 * part, *present));
    let slowest = finds.iter().map(|[present, _]| *present).fold(1.0, f64::max);
    let mut modelled = lines(&|point| latency(point.present));
    modelled.push(Line { name: "published: 0.5 heads, below this", points: vec![(100.0, 3.0)] });
    let panels = vec![
        Panel { y_label: "entries examined", y: 0.0..2.5, lines: lines(&|point| point.present) },
        Panel { y_label: "µs in SRAM, modelled", y: 0.0..3.5, lines: modelled },
        Panel {
            y_label: "ns here",
            y: 0.0..1.25 * slowest,
            lines: vec![Line { name: "EphemeralStore, without chains", points: here.collect() }],
        },
    ];
    let figure = Figure {
        title: "A find of a tag that is there, in 65,536 entries",
        x_label: "percent of the store that is occupied",
        x_scale: Scale::Linear,
        panels,
    };
    report.figure("figure_11", &figure)
}
