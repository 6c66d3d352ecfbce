//! Figure 5: collisions of names in a table, by kind of index.

use std::error::Error;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::DefaultHashBuilder;
use flowtable::papers::source_index::analysis::expected_collisions;
use model::papers::source_hash_1995::SEED;
use model::papers::source_hash_1995::fids::{Flow, Set};
use model::papers::source_hash_1995::indices::{Kind, SLOTS, colliding, collisions, three_sigma};

use super::captures::{ALL, Named};
use crate::causes::{Cause, Evidence};
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
                judge_half_full(report, &flows[..count.min(SLOTS / 2)]);
                judge_bytes(report, &flows[..256]);
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

/// Compares set A: names of 16 subnets, as the paper has 16 interfaces, each of which numbers them
/// from 0. Which subnets the paper had is not stated.
fn judge(report: &mut Report, names: usize, counted: [usize; Kind::ALL.len()]) {
    const PLACE: &str = "figure 5";
    let (by_chance, sigma) = (expected(names), three_sigma(expected(names)));
    let of = |kind| of(counted, kind);
    for (kind, paper) in
        [(Kind::Source, "as few as CRC"), (Kind::CrcPair, "as few as the source index")]
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

/// Compares the fold to a byte, in a table of its 256 places.
fn judge_bytes(report: &mut Report, flows: &[Flow]) {
    let (taken, names) = (colliding(flows, Kind::Xor8) as f64, flows.len() as u64);
    let by_chance = expected_collisions(names, 256);
    let what = "names of 16 subnets, XOR-8 in 256 places: collisions";
    let ours = format!("{taken} of {names}, by chance {by_chance:.0}");
    let sigma = three_sigma(by_chance);
    let rule = format!("at most {sigma:.0} more than by chance: three sigma");
    let paper = "a reasonably random value";
    let holds = taken <= by_chance + sigma;
    let finding = Finding::check("section 3.4", what, paper, ours, &rule, holds);
    report.record(finding.at_full_scale());
}

/// Compares a table with twice as many places as flows with what the paper expects of it.
fn judge_half_full(report: &mut Report, flows: &[Flow]) {
    let taken = 100.0 * colliding(flows, Kind::Source) as f64 / flows.len() as f64;
    let what = "a place for every half flow, source index: flows that find it taken, %";
    let (paper, rule) = ("a rare occurrence", "5 % or less");
    let ours = format!("{taken:.1} %");
    let finding = Finding::check("section 2", what, paper, ours, rule, taken <= 5.0);
    report.record(finding.because(Cause::HalfFull).at_full_scale());
}

/// Draws set A, with 16 subnets as the paper has interfaces, and set B, in which two halves of the
/// name are correlated.
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
    let what = "five-tuples of captures, CRC-8 pair: collisions";
    let all = match Named::all() {
        Ok(all) => all,
        Err(why) => {
            report.record(Finding::not_measured("figure 5", what, &why));
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
        if capture == ALL {
            let (by_chance, by_crc) = (expected(names.len()), of(counted, Kind::CrcPair));
            let ours = format!("{by_crc} of {}, by chance {by_chance:.0}", names.len());
            let rule = format!("within {:.0} of chance: three sigma", three_sigma(by_chance));
            let holds = (by_crc - by_chance).abs() <= three_sigma(by_chance);
            let paper = "as few as the source index";
            let finding = Finding::check("figure 5", what, paper, ours, &rule, holds);
            report.record(finding.because(Cause::LinearCrc));
        }
    }
    let title = "Five-tuples of captures, one way, in places that others have, of 65,536 places";
    report.table("captures", title, table)
}

/// Counts collisions of the pair of CRCs where one part of the name counts, and where two do.
pub(crate) fn explain_linear_crc(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let names = if quick { 2000 } else { 20_000 };
    let mut table = Table::new(&["names", "at random", "CRC-8 pair", "source index"]);
    for (name, set) in [("16 subnets (set A)", Set::A), ("two parts count (set B)", Set::B)] {
        let flows = set.flows(names, SEED);
        let counted = [Kind::CrcPair, Kind::Source].map(|kind| colliding(&flows, kind));
        table.row(&[&name, &format!("{:.0}", expected(names)), &counted[0], &counted[1]]);
    }
    Ok(vec![("Names in places that others have", table)])
}
