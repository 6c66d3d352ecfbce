//! Phases of flows, which the paper leaves open.

use flowtable::papers::schedule::simulator::Flow;
use model::papers::scheduling_2001::simulation::{COSTS, flows, packets, run, slice, throttle, us};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::SEED;
use super::settings::{efficiency, limits, slices, throttles};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, median};

/// Compares the highest efficiencies in the text, of limits, slices and the throttle, for flows
/// with random phases.
fn judge(report: &mut Report, quick: bool) {
    for (place, what, policy, paper) in [
        ("figure 10", "8 packets, c13 = 30 µs", packets(8), 84.0),
        ("figure 13", "500 µs, c13 = 30 µs", slice(500), 84.0),
        (
            "figure 16",
            "T = 10 %, G = 30 µs, c13 = 30 µs (calculated: 1 / (1 + T))",
            throttle((10, 30)),
            90.91,
        ),
    ] {
        let what = format!("E, %, if flows begin at random moments, {what}");
        let seeds = 0..if quick { 3 } else { 31 };
        let of = |seed| efficiency(&run(&with_random_phases(30, seed), policy));
        let finding = Finding::number(place, what, paper, median(seeds.map(of).collect()));
        // The printed numbers are for flows in step.
        report.record(finding.rounded().calculated());
    }
}

fn with_random_phases(cost_13: u64, seed: u64) -> Vec<Flow> {
    let mut rng = StdRng::seed_from_u64(SEED + seed);
    let with_phase = |flow: Flow| {
        let period = 1_000_000 / u64::from(flow.packets_per_second);
        flow.with_phase(us(rng.random_range(0..period)))
    };
    flows(cost_13).into_iter().map(with_phase).collect()
}

/// Runs all settings with flows in phase, and with random phases.
pub(crate) fn phases(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&[
        "setting",
        "c13, us",
        "E at once, %",
        "E at random, %",
        "least",
        "most",
        "above 66 %",
        "13 drops, at once",
        "at random",
    ]);
    let one = |number: f64| format!("{number:.1}");
    for (name, _, policy) in limits().into_iter().chain(slices()).chain(throttles()) {
        for cost in COSTS {
            let together = run(&flows(cost), policy);
            let seeds = 0..if quick { 3 } else { 31 };
            let apart: Vec<_> =
                seeds.map(|seed| run(&with_random_phases(cost, seed), policy)).collect();
            let all: Vec<f64> = apart.iter().map(efficiency).collect();
            let above = all.iter().filter(|efficiency| **efficiency > 66.0).count();
            let above = format!("{above} of {}", all.len());
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let most = all.iter().copied().fold(0.0, f64::max);
            let dropped = apart.iter().map(|outcome| outcome.flows[12].dropped as f64).collect();
            table.row(&[
                &name,
                &cost,
                &one(efficiency(&together)),
                &one(median(all)),
                &one(least),
                &one(most),
                &above,
                &together.flows[12].dropped,
                &median(dropped),
            ]);
        }
    }
    let title = "Phases of arrival: all flows at once (the paper's results), and at random";
    report.table("phases", title, table)?;
    judge(report, quick);
    report.remark(
        "Limits and slices live on arrivals in lockstep. At random mostly each flow that keeps \
            its share is served packet by packet, and nothing is gained by a longer turn. The \
            throttle does not depend on it."
            .into(),
    );
    Ok(())
}
