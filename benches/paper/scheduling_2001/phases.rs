//! Phases of flows, which the paper leaves open.

use flowtable::papers::schedule::simulator::Flow;
use model::papers::scheduling_2001::simulation::{COSTS, flows, run, us};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::SEED;
use super::settings::{efficiency, limits, slices, throttles};
use crate::report::{Outcome, Report, Table, median};

fn with_random_phases(cost_13: u64, seed: u64) -> Vec<Flow> {
    let mut rng = StdRng::seed_from_u64(SEED + seed);
    let with_phase = |flow: Flow| {
        let period = 1_000_000 / u64::from(flow.packets_per_second);
        Flow { phase: us(rng.random_range(0..period)), ..flow }
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
    report.remark(
        "Limits and slices live on arrivals in lockstep. At random mostly each flow that keeps \
            its share is served packet by packet, and nothing is gained by a longer turn. The \
            throttle does not depend on it."
            .into(),
    );
    Ok(())
}
