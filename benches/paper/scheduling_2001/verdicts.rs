//! Comparisons of figures 10 to 18 with the simulation of the crate.

use flowtable::papers::schedule::simulator::Outcome as Simulated;
use flowtable::papers::schedule::{Overhead, Policy, Throttle};
use model::papers::scheduling_2001::simulation::{
    COSTS, SWITCH, THROTTLES, WHOLE, capped, flows, packets, run, slice, throttle, us,
};

use super::settings::{FLOW_6, FLOW_13, efficiency};
use crate::causes::Cause;
use crate::finding::{Finding, short};
use crate::report::Report;

/// Indices of settings and costs.
const FEWEST: usize = 0;
const EIGHT: usize = 1;
const SLICE_500: usize = 3;
const COST_3: usize = 0;
const COST_30: usize = 2;

type Outcomes = [[Simulated; 3]];

fn dropped(outcome: &Simulated) -> u64 {
    outcome.flows[FLOW_13].dropped
}

fn queue_of_6(outcome: &Simulated) -> u32 {
    outcome.flows[FLOW_6].longest_queue
}

/// Returns whether a value rises with each setting, at each cost.
fn rises(outcomes: &Outcomes, of: impl Fn(&Simulated) -> f64) -> bool {
    let rises =
        |cost: usize| outcomes.iter().map(|costs| of(&costs[cost])).is_sorted_by(|a, b| a < b);
    (0..COSTS.len()).all(rises)
}

/// Returns the largest difference between the three costs at one setting.
fn spread(outcomes: &Outcomes, of: impl Fn(&Simulated) -> f64) -> f64 {
    let apart = |costs: &[Simulated; 3]| {
        let all = || costs.iter().map(&of);
        all().fold(0.0, f64::max) - all().fold(f64::INFINITY, f64::min)
    };
    outcomes.iter().map(apart).fold(0.0, f64::max)
}

/// Formats the values of all settings, by the cost of flow 13.
fn series(outcomes: &Outcomes, decimals: usize, of: impl Fn(&Simulated) -> f64) -> String {
    let of_cost = |cost: usize| one_series(outcomes.iter().map(|costs| of(&costs[cost])), decimals);
    [0, 1, 2].map(of_cost).join("; ")
}

fn one_series(numbers: impl Iterator<Item = f64>, decimals: usize) -> String {
    numbers.map(|number| format!("{number:.decimals$}")).collect::<Vec<_>>().join(" ")
}

/// Figures 10 to 12, and the text about them.
pub(crate) fn by_limit(report: &mut Report, outcomes: &Outcomes) {
    let ours = format!("{} %", series(outcomes, 1, efficiency));
    let what = "E by the packet limit, c13 = 3, 10, 30 µs";
    let fans_out = spread(outcomes, efficiency) > 10.0;
    let (rule, holds) = (
        "rises with each step, and the costs are more than 10 points apart",
        rises(outcomes, efficiency) && fans_out,
    );
    report.record(Finding::check(
        "figure 10",
        what,
        "rises, and fans out by cost",
        ours,
        rule,
        holds,
    ));
    let what = "E with 8 packets, c13 = 30 µs, %";
    let finding = Finding::number("figure 10", what, 84.0, efficiency(&outcomes[EIGHT][COST_30]));
    report.record(finding.rounded().because(Cause::TurnDetails));

    let falls = rises(outcomes, |outcome| -(dropped(outcome) as f64));
    let ours = series(outcomes, 0, |outcome| dropped(outcome) as f64);
    let what = "packets of flow 13 that are dropped, c13 = 3, 10, 30 µs";
    report.record(Finding::check(
        "figure 11",
        what,
        "fall with the limit",
        ours,
        "falls with each step, at each cost",
        falls,
    ));

    queue_by_limit(report, outcomes);
}

/// Figure 12: the queue of flow 6.
fn queue_by_limit(report: &mut Report, outcomes: &Outcomes) {
    for (cost, paper) in [(COST_3, "drops"), (1, "drops nothing"), (COST_30, "drops nothing")] {
        let drops = outcomes[FEWEST][cost].flows[FLOW_6].dropped;
        let what = format!("flow 6 with single packets, c13 = {} µs", COSTS[cost]);
        let holds = (drops > 0) == (paper == "drops");
        report.record(Finding::check(
            "figure 12",
            what,
            paper,
            format!("drops {drops}"),
            "the same",
            holds,
        ));
    }
    let what = "longest queue of flow 6 with 8 packets, c13 = 30 µs";
    let finding =
        Finding::number("figure 12", what, 8.0, queue_of_6(&outcomes[EIGHT][COST_30]).into());
    report.record(finding.within_units(1.0).because(Cause::TurnDetails));
    let mut with = flows(30);
    with[FLOW_6].buffers = 32;
    let drops = [32, 64].map(|limit| run(&with, packets(limit)).flows[FLOW_6].dropped);
    let ours = format!("drops {} and {}", drops[0], drops[1]);
    let what = "flow 6 with 32 buffers, limits of 32 and 64 packets, c13 = 30 µs";
    let holds = drops.iter().all(|drops| *drops > 0);
    report.record(Finding::check("figure 12", what, "drops", ours, "drops with both", holds));
}

/// Figures 13 to 15, and the text about them.
pub(crate) fn by_slice(report: &mut Report, outcomes: &Outcomes) {
    let ours = format!(
        "{} %, {} points apart",
        series(outcomes, 1, efficiency),
        short(spread(outcomes, efficiency))
    );
    let what = "E by the timeslice, c13 = 3, 10, 30 µs";
    let is_close = spread(outcomes, efficiency) < 10.0;
    let (rule, holds) = (
        "rises with each step, and the costs are within 10 points",
        rises(outcomes, efficiency) && is_close,
    );
    let paper = "rises, and is nearly the same for all";
    let finding = Finding::check("figure 13", what, paper, ours, rule, holds);
    report.record(finding.because(Cause::TurnDetails));
    let what = "E with 500 µs, c13 = 30 µs, %";
    let at_500 = &outcomes[SLICE_500][COST_30];
    let finding = Finding::number("figure 13", what, 84.0, efficiency(at_500)).rounded();
    report.record(finding.because(Cause::TurnDetails));

    let drops = |outcome: &Simulated| dropped(outcome) as f64;
    let falls = rises(outcomes, |outcome| -drops(outcome));
    let (ours, rule) = (series(outcomes, 0, drops), "falls with each step, at each cost");
    let what = "packets of flow 13 that are dropped, c13 = 3, 10, 30 µs";
    let finding = Finding::check("figure 14", what, "fall with the slice", ours, rule, falls);
    report.record(finding.because(Cause::TurnDetails));

    let what = "longest queue of flow 6, c13 = 30 µs: 500 µs beside 8 packets, times";
    let by_packets = queue_of_6(&run(&flows(30), packets(8)));
    let ratio = f64::from(queue_of_6(at_500)) / f64::from(by_packets);
    let finding = Finding::number("figure 15", what, 3.0, ratio).about();
    report.record(finding.because(Cause::TurnDetails));
    let longest = COSTS.map(|cost| run(&flows(cost), slice(500)).flows[FLOW_6].longest_run);
    let longest = longest.into_iter().max().unwrap_or_default();
    let part = 100.0 * longest.as_secs_f64() / us(500).as_secs_f64();
    let (ours, rule) = (format!("{} %", short(part)), "16 % or less");
    let what = "part of a slice of 500 µs that flow 6 uses";
    report.record(Finding::check(
        "figure 15",
        what,
        "never more than 16 %",
        ours,
        rule,
        part <= 16.0,
    ));
}

fn listed(numbers: &[f64]) -> String {
    numbers.iter().map(|number| short(*number)).collect::<Vec<_>>().join(", ")
}

/// Figures 16 to 18, the text about them, and formula 1.
pub(crate) fn by_throttle(report: &mut Report, outcomes: &Outcomes) {
    let bounds = THROTTLES.map(|(percent, _)| 100.0 / (1.0 + f64::from(percent) / 100.0));
    let counted: Vec<f64> = outcomes.iter().map(|all| efficiency(&all[COST_3])).collect();
    let is_near = |(bound, counted): (&f64, &f64)| (counted - bound).abs() <= 0.05 * bound;
    let holds = bounds.iter().zip(&counted).all(is_near);
    let what = "E by T = 30, 20, 10, 5 and 2 %, c13 = 3 µs, % (calculated: 1 / (1 + T))";
    let [paper, ours] = [&bounds[..], &counted].map(listed);
    let finding = Finding::check("figure 16", what, &paper, ours, "each within 5 %", holds);
    report.record(finding.calculated());
    let what = "E by the throttle, c13 = 3, 10, 30 µs: points apart at most";
    let apart = spread(outcomes, efficiency);
    let (paper, rule) = ("the curves overlap", "within 5 points");
    let finding = Finding::check("figure 16", what, paper, short(apart), rule, apart <= 5.0);
    report.record(finding.because(Cause::TurnDetails));
    let equal = [("30 µs", 2, slice(30)), ("150 µs", 4, slice(150))];
    for (name, setting, policy) in equal {
        let [ours, plain] = [&outcomes[setting][COST_3], &run(&flows(3), policy)].map(efficiency);
        let measured = format!("{} and {} %", short(ours), short(plain));
        let what = format!("E in slices of {name}, with the throttle and without");
        report.record(Finding::check(
            "figure 16",
            what,
            "higher with it",
            measured,
            "higher",
            ours > plain,
        ));
    }
    let drops: Vec<u64> = outcomes.iter().map(|costs| dropped(&costs[COST_3])).collect();
    for (setting, name) in [(2, "T = 10 %, G = 30 µs"), (3, "T = 5 %, G = 60 µs")] {
        let what = format!("packets of flow 13 that are dropped, {name}, c13 = 3 µs");
        report.record(Finding::number("figure 17", what, 0.0, drops[setting] as f64));
        let all = outcomes[setting][COST_3].flows.iter();
        let others: u64 = all.map(|flow| flow.dropped).sum::<u64>() - drops[setting];
        let what = format!("packets of the other flows that are dropped, {name}");
        report.record(Finding::number("section 4.3", what, 0.0, others as f64));
    }
    let what = "the same, T = 2 %, G = 150 µs";
    let ours = format!("{} are dropped", drops[4]);
    report.record(Finding::check(
        "figure 17",
        what,
        "drops again",
        ours,
        "some are dropped",
        drops[4] > 0,
    ));
    queues(report, &outcomes[4][COST_3]);
    let least = THROTTLES.map(|(percent, _)| {
        let overhead = Overhead::from_ppm(10_000 * percent);
        let is_enough = |slice: &u64| {
            overhead.is_some_and(|overhead| Throttle::new(SWITCH, overhead, us(*slice)).is_ok())
        };
        (1..=1000).find(is_enough).unwrap_or_default() as f64
    });
    let what = "least timeslices that the throttle takes for T = 30, 20, 10, 5 and 2 %, µs";
    let paper = THROTTLES.map(|(_, micros)| micros as f64);
    let (printed, ours) = (listed(&paper), listed(&least));
    let finding = Finding::check("formula 1", what, &printed, ours, "equal", paper == least);
    report.record(finding.calculated());
    let shares: u32 = flows(3).iter().map(|flow| flow.share).sum();
    let shares = f64::from(100 * shares) / f64::from(WHOLE);
    let finding = Finding::number("section 4.3", "sum of all shares, %", 62.5, shares);
    report.record(finding.calculated());
    let why = "It lists the flows of the simulation, which are the same here.";
    report.record(Finding::not_measured("table 5", "rates, costs, timeouts and shares", why));
}

/// Figure 18, the strictest throttle: the flows that lose packets, and remedies.
fn queues(report: &mut Report, strict: &Simulated) {
    let [third, sixth, ninth] = [2, 5, 8].map(|flow| strict.flows[flow].longest_queue);
    let ours = format!("{third}, {sixth} and {ninth}");
    let what = "longest queues of flows 3, 6 and 9, T = 2 %; flow 9 has a timeout of 500 µs";
    // Flow 3 loses packets by its threshold alone: see the next line.
    let holds = ninth < sixth.min(third);
    report.record(Finding::check(
        "figure 18",
        what,
        "flow 9 waits least",
        ours,
        "the last is the least",
        holds,
    ));
    let drops =
        |policy: Policy, change: &dyn Fn(&mut [flowtable::papers::schedule::simulator::Flow])| {
            let mut flows = flows(3);
            change(&mut flows);
            run(&flows, policy).flows[2].dropped
        };
    let policy = throttle((2, 150));
    let plain = drops(policy, &|_| ());
    let threshold = capped((2, 150)).with_strict_thresholds().threshold(us(1), u32::MAX);
    let what = "threshold of flows 1 to 3, T = 2 %, packets: more than their 128 buffers";
    let finding = Finding::number("figure 18", what, 150.0, threshold.into());
    report.record(finding.calculated());
    let more = drops(policy, &|flows| flows[2].buffers = 256);
    report.record(Finding::number(
        "figure 18",
        "packets that flow 3 loses with 256 buffers",
        0.0,
        more as f64,
    ));
    let sooner = drops(policy, &|flows| flows[2].timeout = Some(us(500)));
    report.record(Finding::number(
        "figure 18",
        "packets that flow 3 loses with a timeout of 500 µs",
        0.0,
        sooner as f64,
    ));
    let others = drops(Policy::Throttle(capped((2, 150))), &|_| ());
    report.remark(format!(
        "With thresholds that are capped at the buffers, as the crate has them, flow 3 loses \
            {others} packets instead of {plain}."
    ));
}
