//! Calculations from the costs of the testbed: tables 1 and 2, figure 5.

use bench_common::figure::{Figure, Line, Panel, Scale};

use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Microseconds per packet: input and classification, the fast path, output.
pub(crate) const INPUT: f64 = 1.6;
pub(crate) const FORWARDING: f64 = 0.3;
pub(crate) const OUTPUT: f64 = 1.4;

/// Table 1: the costs of functions, and the rates that follow.
pub(crate) fn costs(report: &mut Report) -> Outcome {
    let mut table = Table::new(&["function", "paper, us", "with input and output, Kpps at most"]);
    for (name, cost) in [
        ("IP, fast path", FORWARDING),
        ("IP, general", 3.0),
        ("transparent proxy", 10.7),
        ("classical proxy", 12.8),
        ("active protocol", 37.3),
    ] {
        table.row(&[&name, &cost, &two(1000.0 / (INPUT + cost + OUTPUT))]);
    }
    let why =
        "It lists what functions cost on the testbed: what the other tables are calculated from.";
    report.record(Finding::not_measured("table 1", "costs of functions", why));
    report.table("table_1", "Table 1: costs of forwarding functions, and what follows", table)
}

/// Table 2: a switch per process, amortised over a batch of 16.
pub(crate) fn rates(report: &mut Report) -> Outcome {
    let packet = INPUT + FORWARDING + OUTPUT;
    let of = |switches: f64, switch: f64| 1000.0 / (packet + switches * switch);
    let header = ["processes", "paper, Kpps", "switch of 2 us", "off, %", "switch of 0.94 us"];
    let mut table = Table::new(&header);
    for (name, paper, switches) in [
        ("one, batches of 16", 294.0, 1.0 / 16.0),
        ("two, batches of 16", 286.0, 2.0 / 16.0),
        ("three, batches of 16", 272.0, 3.0 / 16.0),
        ("three, forwarding by single packets", 227.0, 2.0 / 16.0 + 1.0),
    ] {
        let here = of(switches, 2.0);
        let what = format!("{name}: Kpps, if a switch takes 2 µs");
        let finding = Finding::number("table 2", what, paper, here).within(2.0);
        report.record(finding.calculated());
        let off = 100.0 * (here / paper - 1.0);
        table.row(&[&name, &paper, &two(here), &two(off), &two(of(switches, 0.94))]);
    }
    let lost = |from: f64, to: f64| 100.0 * (1.0 - to / from);
    let [one, two_of_them, three, single] =
        [1.0 / 16.0, 2.0 / 16.0, 3.0 / 16.0, 1.0 + 2.0 / 16.0].map(|switches| of(switches, 2.0));
    let ours = format!("{} and {} %", two(lost(one, two_of_them)), two(lost(two_of_them, three)));
    let (what, rule) = ("what a further process costs, if a switch takes 2 µs", "3 to 4 %");
    let finding = Finding::check("table 2", what, "3 to 4 %", ours, rule, true);
    report.record(finding.calculated());
    let what = "what single packets cost in forwarding, if a switch takes 2 µs, %";
    let finding = Finding::number("table 2", what, 16.0, lost(three, single)).within(10.0);
    report.record(finding.calculated());
    report.table("table_2", "Table 2: the most packets, by the model 3.3 us + switches", table)?;
    report.remark(
        "By the last row a switch took less than the 2 us that fit the first three.".into(),
    );
    Ok(())
}

/// Figure 5: the rate of the QoS flow in Kpps while best-effort traffic exceeds the share of input.
pub(crate) fn overload(report: &mut Report) -> Outcome {
    const INPUT_SHARE: f64 = 98.0;
    const QOS: f64 = 49.0;
    let best_effort = |seconds: f64| (39.0 + 2.0 * (seconds - 40.0).max(0.0)).min(84.0);
    let read = |seconds: f64| (INPUT_SHARE / (QOS + best_effort(seconds))).min(1.0);
    let mut table = Table::new(&["seconds", "sent", "QoS sent", "QoS forwarded", "best effort"]);
    let seconds = (0..=80).map(f64::from);
    for second in seconds.clone().step_by(5) {
        let (best_effort, read) = (best_effort(second), read(second));
        let (qos, rest) = (two(QOS * read), two(best_effort * read));
        table.row(&[&second, &(QOS + best_effort), &QOS, &qos, &rest]);
    }
    let title = "Figure 5, as a fluid: input has a share for 98 Kpps, and cannot tell flows apart";
    report.table("figure_5", title, table)?;
    judge_overload(report, QOS, QOS * (1.0 - read(80.0)));
    let line = |name, of: &dyn Fn(f64) -> f64| Line {
        name,
        points: seconds.clone().map(|second| (second, of(second))).collect(),
    };
    let lines = vec![
        line("best effort, sent", &best_effort),
        line("best effort, forwarded", &|at| best_effort(at) * read(at)),
        line("QoS, forwarded", &|at| QOS * read(at)),
        line("QoS, reserved", &|_| QOS),
        Line { name: "published: 10 Kpps below", points: vec![(80.0, QOS - 10.0)] },
    ];
    let figure = Figure {
        title: "Overload of an input process (figure 5, model)",
        x_label: "seconds",
        x_scale: Scale::Linear,
        panels: vec![Panel { y_label: "Kpps", y: 0.0..100.0, lines }],
    };
    report.figure("figure_5", &figure)
}

fn judge_overload(report: &mut Report, reserved: f64, lost: f64) {
    let what = format!("Kpps that QoS is below its {reserved} at the peak");
    let finding = Finding::number("figure 5", what, 10.0, lost).within(20.0);
    report.record(finding.calculated());
    let ours = format!("{} below", two(lost));
    let what = "an input process that cannot tell flows apart";
    let rule = "QoS is below what it reserved";
    let paper = "breaks the reservation";
    let finding = Finding::check("figure 5", what, paper, ours, rule, lost > 1.0);
    report.record(finding.calculated());
}
