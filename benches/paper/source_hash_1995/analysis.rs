//! Calculated gains: figure 2, and the gain of a faster lookup next to other work.

use bench_common::figure::{Figure, Line, Panel, Scale};
use model::papers::source_hash_1995::transfers::{
    BY_HAND, FIGURE_2, all, improvement, packets_for_a_circuit, through_a_cache,
};

use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

const MECHANISMS: [&str; 4] = ["datagrams", "virtual circuit", "source hashing", "threaded"];

/// Figure 2: by hand, by the equations of the crate, and packet by packet through a cache.
pub(crate) fn figure_2(report: &mut Report) -> Outcome {
    let mut header = vec!["packets".to_string()];
    header.extend(MECHANISMS.iter().flat_map(|name| [format!("{name}, by hand"), "here".into()]));
    header.push("through a cache".into());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    for (packets, by_hand) in BY_HAND {
        let mut cells = vec![packets.to_string()];
        for (by_hand, here) in by_hand.into_iter().zip(all(&FIGURE_2, packets)) {
            cells.extend([two(by_hand), two(here)]);
        }
        cells.push(two(through_a_cache(&FIGURE_2, packets)?));
        let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
        table.row(&cells);
    }
    let title = "Milliseconds for a transfer: R = 60 ms, L = 0.2 ms, s = 0.02 ms (figure 2)";
    report.table("figure_2", title, table)?;
    judge(report)?;
    let line = |(number, name)| Line {
        name,
        points: (0..=50)
            .map(|n| 20 * n)
            .map(|n| (f64::from(n), all(&FIGURE_2, n.max(1))[number]))
            .collect(),
    };
    let mut lines: Vec<Line<'_>> = MECHANISMS.into_iter().enumerate().map(line).collect();
    let crossing = vec![(333.0, all(&FIGURE_2, 333)[0])];
    lines.push(Line { name: "published: a circuit is worth it from here", points: crossing });
    let figure = Figure {
        title: "Time for a transfer: R = 60 ms, L = 200 µs, s = 20 µs",
        x_label: "packets",
        x_scale: Scale::Linear,
        panels: vec![Panel { y_label: "milliseconds", y: 0.0..250.0, lines }],
    };
    report.figure("figure_2", &figure)
}

/// Compares the equations of the figure with the crate, and with counted lookups.
fn judge(report: &mut Report) -> Outcome {
    const PLACE: &str = "figure 2";
    let mut most = [0.0_f64; 2];
    for (packets, by_hand) in BY_HAND {
        let here = all(&FIGURE_2, packets);
        let off = by_hand.iter().zip(here).map(|(by_hand, here)| (by_hand - here).abs());
        most[0] = off.fold(most[0], f64::max);
        most[1] = most[1].max((by_hand[2] - through_a_cache(&FIGURE_2, packets)?).abs());
    }
    let rule = "within 0.01 ms";
    for (what, most) in [
        ("24 values of the four curves, calculated by hand", most[0]),
        ("source hashing, with lookups counted in a cache", most[1]),
    ] {
        let ours = format!("off by {most:.4} ms at most");
        let finding = Finding::check(PLACE, what, "the equations", ours, rule, most <= 0.01);
        report.record(finding.calculated());
    }
    let what = "packets from which on a circuit is worth its set-up (calculated: R / (L - s))";
    let finding = Finding::number(PLACE, what, 333.0, packets_for_a_circuit(&FIGURE_2));
    report.record(finding.counted().calculated());
    Ok(())
}

/// The arithmetic of the paper: a hash of 30 instructions against an index of 2, plus other
/// instructions.
pub(crate) fn gain_of_an_index(report: &mut Report) -> Outcome {
    let mut table = Table::new(&["other instructions C", "(30 + C) / (2 + C)", "paper"]);
    for rest in [0.0, 10.0, 30.0, 60.0, 100.0, 1000.0] {
        if rest == 30.0 {
            let what = "a hash of 30 instructions : an index of 2, beside 30 others";
            let finding = Finding::number("section 3.4", what, 2.0, improvement(30.0, 2.0, rest));
            report.record(finding.about().calculated());
        }
        let paper = if rest == 30.0 { "\"a factor of 2\"" } else { "-" };
        table.row(&[&rest, &format!("{:.3}", improvement(30.0, 2.0, rest)), &paper]);
    }
    report.table(
        "improvement",
        "What an index instead of a hash is good for, beside all other work",
        table,
    )
}
