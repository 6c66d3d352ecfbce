//! Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*,
//! SIGMETRICS 2001.
//!
//! The testbed is not available: its measurements are calculated from its costs, or simulated with
//! the scheduler, the queues and the estimator of the crate. The simulation of the paper is
//! repeated. All of that is in integers or from seeds, and does not depend on the machine; the last
//! table does.

mod analysis;
mod costs;
mod granularity;
mod phases;
mod polling;
mod simulation;
mod verdicts;

use crate::finding::Finding;
use crate::report::{About, Outcome, Report};

/// Seed of all random numbers.
const SEED: u64 = 2001;

pub(crate) const ABOUT: About = About {
    name: "scheduling_2001",
    title: "Scheduling computations on a software-based router",
    authors: "Qie, Bavier, Peterson and Karlin",
    published: "SIGMETRICS 2001",
    claims: "A router that computes for its packets must share its processor by flow. Processes \
        along a path need shares that fit each other, input must not poll empty queues, and a \
        throttle, by which flows wait for as many packets as a switch is worth, bounds what \
        switches cost without losing packets of flows that keep to their share.",
    ours: "The module schedule has the scheduler, the estimator of queues, the throttle and the \
        paper's simulator.",
    caution: "The testbed is gone. What it measured is calculated from its published costs, or \
        simulated with them.",
    places: &[
        "figures 1 to 3",
        "table 1",
        "table 2",
        "figure 4",
        "figure 5",
        "table 3",
        "text, idle ports",
        "figure 6",
        "figure 7",
        "figure 8",
        "figure 9",
        "table 4",
        "table 5",
        "formula 1",
        "figure 10",
        "figure 11",
        "figure 12",
        "figure 13",
        "figure 14",
        "figure 15",
        "figure 16",
        "figure 17",
        "figure 18",
    ],
};

pub(crate) fn run(report: &mut Report, quick: bool) -> Outcome {
    analysis::costs(report)?;
    analysis::rates(report)?;
    analysis::overload(report)?;
    polling::shares(report, quick)?;
    polling::idle_ports(report, quick)?;
    granularity::figures(report, quick)?;
    simulation::figures(report)?;
    phases::phases(report, quick)?;
    costs::costs(report, quick)?;
    report.record(Finding::no_data("figures 1 to 3", "what they show"));
    let why = "It compares polling with interrupts, of which a crate has none.";
    report.record(Finding::not_measured(
        "figure 4",
        "a peak at 48 Kpps and livelock, with interrupts",
        why,
    ));
    report.record(Finding::no_data("figure 9", "what it shows"));
    report.record(Finding::no_data("table 4", "what it shows"));
    Ok(())
}
