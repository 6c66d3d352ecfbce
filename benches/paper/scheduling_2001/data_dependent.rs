//! Costs that depend on the data of packets: section 4.3 leaves them for future work.
//!
//! The scheduler has the mean of a flow. What varies is the length of turns, and what a threshold
//! of packets is worth.

use std::time::Duration;

use flowtable::papers::schedule::share::Order;
use flowtable::papers::schedule::simulator::{Flow, Outcome as Simulated};
use flowtable::papers::schedule::{Policy, ScheduleError};
use model::papers::scheduling_2001::simulation::{flows, packets, simulation, slice, throttle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::SEED;
use super::settings::{FLOW_6, FLOW_13, efficiency};
use crate::report::{Outcome, Report, Table, two};

/// How costs vary around the mean.
#[derive(Clone, Copy)]
enum Costs {
    Constant,
    /// Evenly, from nothing to twice the mean.
    Even,
    /// One packet in twenty costs ten times the mean, all others about half.
    Rare,
}

impl Costs {
    const ALL: [(&'static str, Self); 3] = [
        ("constant", Self::Constant),
        ("0 to 2 times the mean", Self::Even),
        ("10 times the mean, one in 20", Self::Rare),
    ];

    fn draw(self, mean: Duration, rng: &mut StdRng) -> Duration {
        match self {
            Self::Constant => mean,
            Self::Even => mean.mul_f64(rng.random_range(0.0..2.0)),
            Self::Rare if rng.random_range(0..20) == 0 => mean * 10,
            // The mean of all: 1 / 20 * 10 + 19 / 20 * 10 / 19.
            Self::Rare => mean * 10 / 19,
        }
        .max(Duration::from_nanos(1))
    }
}

fn run(costs: Costs, flows: &[Flow], policy: Policy) -> Result<Simulated, ScheduleError> {
    // The cost of a packet does not depend on the order of turns.
    simulation(Order::default(), flows, policy).run_with(|flow, packet| {
        let mut rng = StdRng::seed_from_u64(SEED ^ ((flow as u64 + 1) << 32) ^ packet);
        costs.draw(flows[flow].cost, &mut rng)
    })
}

/// Simulates the flows of the paper with costs that vary.
pub(crate) fn data_dependent(report: &mut Report) -> Outcome {
    let header =
        ["policy", "costs", "E, %", "13 drops", "all others drop", "queue of 6", "longest run, us"];
    let mut table = Table::new(&header);
    let flows = flows(3);
    let (mut throttled, mut constant) = ([(0.0, 0); Costs::ALL.len()], 0.0);
    for (name, policy) in [
        ("8 packets", packets(8)),
        ("64 packets", packets(64)),
        ("150 us", slice(150)),
        ("T = 10 %, G = 30 us", throttle((10, 30))),
        ("T = 5 %, G = 60 us", throttle((5, 60))),
    ] {
        for (at, (variation, costs)) in Costs::ALL.into_iter().enumerate() {
            let outcome = run(costs, &flows, policy)?;
            let percent = efficiency(&outcome);
            if at == 0 {
                constant = percent;
            }
            if matches!(policy, Policy::Throttle(_)) {
                let (change, lost) = &mut throttled[at];
                *change = f64::max(*change, (percent - constant).abs());
                *lost += outcome.flows.iter().map(|flow| flow.dropped).sum::<u64>();
            }
            let dropped = |range: std::ops::Range<usize>| {
                outcome.flows[range].iter().map(|flow| flow.dropped).sum::<u64>()
            };
            let longest = outcome.flows.iter().map(|flow| flow.longest_run).max();
            let longest = longest.unwrap_or_default().as_micros();
            table.row(&[
                &name,
                &variation,
                &format!("{percent:.1}"),
                &outcome.flows[FLOW_13].dropped,
                &dropped(0..FLOW_13),
                &outcome.flows[FLOW_6].longest_queue,
                &longest,
            ]);
        }
    }
    let title = "Costs that depend on the data, c13 = 3 us (the authors' future work)";
    report.table("data_dependent", title, table)?;
    let [(_, lost), (even, lost_even), (rare, lost_rare)] = throttled;
    report.remark(format!(
        "The scheduler has the mean cost of a flow, and a threshold of packets is worth a switch \
            on average: under the throttles E changes by {} points at most if costs are even, and \
            by {} if few packets are expensive. They lose {lost} packets of constant cost, \
            {lost_even} and {lost_rare}.",
        two(even),
        two(rare)
    ));
    Ok(())
}
