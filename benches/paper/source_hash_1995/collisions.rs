//! Figure 5: collisions of names in a table, by kind of index.

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::DefaultHashBuilder;
use flowtable::papers::source_index::analysis::expected_collisions;
use model::papers::source_hash_1995::SEED;
use model::papers::source_hash_1995::fids::Set;
use model::papers::source_hash_1995::indices::{Kind, SLOTS, colliding, collisions, three_sigma};

use super::captures::Named;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table};

/// Numbers of names in a table.
const COUNTS: [usize; 7] = [100, 1000, 5000, 10_000, 20_000, 40_000, SLOTS];

fn expected(names: usize) -> f64 {
    expected_collisions(names as u64, SLOTS as u64)
}

fn header<'a>(first: &[&'a str]) -> Vec<&'a str> {
    let columns = first.iter().copied().chain(["names", "at random", "3 sigma"]);
    columns.chain(Kind::ALL.map(Kind::name)).collect()
}

/// Adds a row of collisions after its first cells.
fn row(table: &mut Table, first: &[&str], names: usize, counted: [usize; Kind::ALL.len()]) {
    let mut cells: Vec<String> = first.iter().map(ToString::to_string).collect();
    let expected = expected(names);
    cells.extend([
        names.to_string(),
        format!("{expected:.1}"),
        format!("{:.0}", three_sigma(expected)),
    ]);
    cells.extend(counted.map(|count| count.to_string()));
    let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
    table.row(&cells);
}

/// Counts collisions in all sets, with all kinds of index.
pub(crate) fn of_sets(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&header(&["set"]));
    let most = if quick { 10_000 } else { SLOTS };
    let mut too_many = vec![];
    for set in Set::ALL {
        let flows = set.flows(most, SEED);
        for count in COUNTS.into_iter().filter(|&count| count <= most) {
            let counted = Kind::ALL.map(|kind| colliding(&flows[..count], kind));
            row(&mut table, &[&format!("{set:?}")], count, counted);
            if (set, count) == (Set::A, most.min(40_000)) {
                judge(report, count, counted);
            }
            let by_crc = of(counted, Kind::CrcPair) - expected(count);
            if set == Set::B && by_crc > three_sigma(expected(count)) {
                too_many.push(count.to_string());
            }
        }
    }
    report.table(
        "figure_5",
        "Names in places that others have, of 65,536 places (figure 5)",
        table,
    )?;
    report.remark(format!(
        "Where hosts and numbers count together (set B), the pair of CRCs collides more often \
            than chance, by more than three sigma, with these numbers of names: {}. An index \
            from the source does not depend on names.",
        if too_many.is_empty() { "none of these".into() } else { too_many.join(", ") }
    ));
    draw(report, most)
}

/// Returns the count for one kind of index.
fn of(counted: [usize; Kind::ALL.len()], kind: Kind) -> f64 {
    let place = Kind::ALL.iter().position(|each| *each == kind);
    place.map_or(f64::NAN, |place| counted[place] as f64)
}

/// Compares set A, that of the paper: names of 16 subnets, each of which numbers them from 0.
fn judge(report: &mut Report, names: usize, counted: [usize; Kind::ALL.len()]) {
    const PLACE: &str = "figure 5";
    let (by_chance, sigma) = (expected(names), three_sigma(expected(names)));
    let of = |kind| of(counted, kind);
    for (kind, paper) in
        [(Kind::Source, "as few as any"), (Kind::CrcPair, "as few as the source index")]
    {
        let what = format!("names of 16 subnets, {}: collisions", kind.name());
        let ours = format!("{} of {names}, by chance {by_chance:.0}", of(kind));
        let rule = format!("within {sigma:.0} of chance: three sigma");
        let holds = (of(kind) - by_chance).abs() <= sigma;
        report.record(Finding::check(PLACE, what, paper, ours, &rule, holds).at_full_scale());
    }
    let what = "names of 16 subnets, XOR-16: collisions";
    let ours = format!("{} of {names}, by chance {by_chance:.0}", of(Kind::Xor16));
    let holds = of(Kind::Xor16) > 2.0 * by_chance;
    let rule = "more than twice as many as by chance";
    let finding = Finding::check(PLACE, what, "visibly more", ours, rule, holds);
    report.record(finding.at_full_scale());
    let why = "The host file that the paper took its addresses from is lost.";
    report.record(Finding::not_measured(PLACE, "the heights of the three curves", why));
}

/// Draws set A, that of the paper, and set B, in which two halves of the name are correlated.
fn draw(report: &mut Report, most: usize) -> Outcome {
    let steps: Vec<usize> = (1..=32).map(|step| step * SLOTS / 32).filter(|&n| n <= most).collect();
    let kinds = [Kind::Xor16, Kind::CrcPair, Kind::Source];
    let panel = |set: Set, y_label| {
        let flows = set.flows(most, SEED);
        let mut lines: Vec<Line<'_>> = vec![];
        for kind in kinds {
            let point = |&n: &usize| (n as f64, colliding(&flows[..n], kind) as f64);
            lines.push(Line { name: kind.name(), points: steps.iter().map(point).collect() });
        }
        let points = steps.iter().map(|&n| (n as f64, expected(n))).collect();
        lines.push(Line { name: "at random", points });
        Panel { y_label, y: 0.0..70_000.0, lines }
    };
    let figure = Figure {
        title: "Names in places that others have, of 65,536 places (published heights are lost)",
        x_label: "names",
        x_scale: Scale::Linear,
        panels: vec![panel(Set::A, "set A: 16 subnets"), panel(Set::B, "set B: hosts that count")],
    };
    report.figure("figure_5", &figure)
}

/// Counts collisions of the flows in captures.
pub(crate) fn of_captures(report: &mut Report) -> Outcome {
    let all = match Named::all() {
        Ok(all) => all,
        Err(why) => {
            report.remark(format!("Skipped: collisions in captures: {why}."));
            return Ok(());
        }
    };
    let keyed = DefaultHashBuilder::with_seed(SEED);
    let mut table = Table::new(&header(&["capture"]));
    for Named { capture, names } in &all {
        let counted = Kind::ALL.map(|kind| {
            collisions(names.iter().map(|(name, source)| kind.index(name, *source, &keyed)))
        });
        row(&mut table, &[capture], names.len(), counted);
    }
    let title = "Five-tuples of captures, one way, in places that others have, of 65,536 places";
    report.table("captures", title, table)
}
