//! Figures 10 to 18: the simulation of the paper, by packet limits, timeslices and throttles.

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::papers::schedule::Policy;
use flowtable::papers::schedule::simulator::Outcome as Simulated;
use model::papers::scheduling_2001::simulation::{COSTS, flows, run};

use super::settings::{FLOW_6, FLOW_13, efficiency, limits, slices, throttles};
use super::verdicts::{by_limit, by_slice, by_throttle};
use crate::report::{Outcome, Report, Table};

/// A parameter of the scheduler, and its three figures.
struct Knob<'a> {
    /// The number of the first figure.
    figure: u32,
    name: &'a str,
    x_label: &'a str,
    x_scale: Scale,
    /// The label, the x coordinate and the policy of each setting.
    settings: Vec<(String, f64, Policy)>,
    /// The statement in the text, by setting and cost.
    paper: fn(usize, usize) -> &'static str,
    /// Flows whose queues the figure shows, as indices.
    queues: &'a [usize],
    /// Compares the figures.
    judge: fn(&mut Report, &[[Simulated; 3]]),
}

/// Names of the curves, by the cost of flow 13.
const NAMES: [&str; 3] = ["c13 = 3 us", "c13 = 10 us", "c13 = 30 us"];

pub(crate) fn figures(report: &mut Report) -> Outcome {
    let all = [
        Knob {
            figure: 10,
            name: "by_limit",
            x_label: "packets in a turn",
            x_scale: Scale::Logarithmic,
            settings: limits(),
            paper: |setting, cost| match (setting, cost) {
                (0, 0) => "flow 6 drops",
                (0, _) => "flow 6 drops nothing",
                (1, 2) => "E 84 %, queue 8",
                _ => "-",
            },
            queues: &[FLOW_6],
            judge: by_limit,
        },
        Knob {
            figure: 13,
            name: "by_slice",
            x_label: "timeslice, µs",
            x_scale: Scale::Logarithmic,
            settings: slices(),
            paper: |setting, cost| match (setting, cost) {
                (3, 2) => "E 84 %, queue nearly 3 x 8",
                _ => "-",
            },
            queues: &[FLOW_6],
            judge: by_slice,
        },
        Knob {
            figure: 16,
            name: "by_throttle",
            x_label: "timeslice G, µs, with T = 3 µs / G",
            x_scale: Scale::Logarithmic,
            settings: throttles(),
            paper: |setting, cost| match (setting, cost) {
                (2 | 3, 0) => "no drops",
                (4, 0) => "drops again",
                _ => "-",
            },
            queues: &[2, 5, 8],
            judge: by_throttle,
        },
    ];
    all.iter().try_for_each(|knob| figures_of(report, knob))
}

fn figures_of(report: &mut Report, knob: &Knob<'_>) -> Outcome {
    let outcomes: Vec<[Simulated; 3]> = knob
        .settings
        .iter()
        .map(|(_, _, policy)| COSTS.map(|cost| run(&flows(cost), *policy)))
        .collect();
    let mut table = Table::new(&[
        "setting",
        "c13, us",
        "paper's text",
        "E, %",
        "13 drops",
        "queues 3, 6, 9",
        "others drop",
        "idle, %",
    ]);
    for (setting, of_setting) in outcomes.iter().enumerate() {
        for (cost, outcome) in of_setting.iter().enumerate() {
            let queues = [2, 5, 8].map(|flow| outcome.flows[flow].longest_queue);
            let others: u64 = outcome.flows[..FLOW_13].iter().map(|flow| flow.dropped).sum();
            table.row(&[
                &knob.settings[setting].0,
                &COSTS[cost],
                &(knob.paper)(setting, cost),
                &format!("{:.1}", efficiency(outcome)),
                &outcome.flows[FLOW_13].dropped,
                &format!("{queues:?}"),
                &others,
                &format!("{:.0}", outcome.idle.as_secs_f64() * 1000.0),
            ]);
        }
    }
    let title = format!("Figures {} to {}", knob.figure, knob.figure + 2);
    report.table(knob.name, &title, table)?;
    (knob.judge)(report, &outcomes);
    plots(report, knob, &outcomes)
}

/// The points of a figure that the text states, in its first panel.
fn published(figure: u32) -> Vec<(f64, f64)> {
    match figure {
        10 => vec![(8.0, 84.0)],
        12 => vec![(1.0, 128.0), (8.0, 8.0)],
        13 => vec![(500.0, 84.0)],
        15 => vec![(500.0, 24.0)],
        17 => vec![(30.0, 0.0), (60.0, 0.0)],
        18 => vec![(150.0, 128.0)],
        _ => vec![],
    }
}

fn plots(report: &mut Report, knob: &Knob<'_>, outcomes: &[[Simulated; 3]]) -> Outcome {
    let line = |name, cost: usize, of: &dyn Fn(&Simulated) -> f64| Line {
        name,
        points: knob
            .settings
            .iter()
            .zip(outcomes)
            .map(|((_, x, _), outcome)| (*x, of(&outcome[cost])))
            .collect(),
    };
    let by_cost = |of: &dyn Fn(&Simulated) -> f64| -> Vec<Line<'_>> {
        NAMES.iter().enumerate().map(|(cost, name)| line(name, cost, of)).collect()
    };
    let mut draw = |number: u32, title: &str, mut panels: Vec<Panel<'_>>| {
        let points = published(number);
        if let Some(panel) = panels.first_mut().filter(|_| !points.is_empty()) {
            panel.lines.push(Line { name: "published in the text", points });
        }
        let title = format!("{title} (figure {number})");
        let (x_label, x_scale) = (knob.x_label, knob.x_scale);
        let name = format!("figure_{number}");
        report.figure(&name, &Figure { title: &title, x_label, x_scale, panels })
    };
    let panel = |y_label, most, lines| vec![Panel { y_label, y: 0.0..most, lines }];
    draw(knob.figure, "Efficiency index", panel("E, %", 100.0, by_cost(&efficiency)))?;
    let dropped = |outcome: &Simulated| outcome.flows[FLOW_13].dropped as f64;
    let drops = panel("packets of 10 000", 10_000.0, by_cost(&dropped));
    draw(knob.figure + 1, "Packets of flow 13 that were dropped", drops)?;
    let labels = knob.queues.iter().map(|flow| format!("flow {}, packets", flow + 1));
    let labels: Vec<String> = labels.collect();
    let queue = |(flow, y_label): (&usize, &'_ String)| {
        let longest = |outcome: &Simulated| f64::from(outcome.flows[*flow].longest_queue);
        let mut lines = by_cost(&longest);
        lines.push(line("buffers", 0, &|_| 128.0));
        (y_label.clone(), lines)
    };
    let queues: Vec<_> = knob.queues.iter().zip(&labels).map(queue).collect();
    let panels = queues.into_iter().zip(&labels);
    let panels = panels.map(|((_, lines), label)| Panel { y_label: label, y: 0.0..140.0, lines });
    draw(knob.figure + 2, "Longest queue", panels.collect())
}
