//! Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*,
//! SIGMETRICS 2001.
//!
//! The testbed is not available: its measurements are simulated, by the pipeline of the crate with
//! its costs. The simulation of the paper is repeated. All of that is in integers or from seeds,
//! and does not depend on the machine; the last table does.

mod analysis;
mod costs;
mod data_dependent;
mod granularity;
mod livelock;
mod phases;
mod polling;
mod rates;
mod settings;
mod simulation;
mod testbed;
mod turns;
mod verdicts;

pub(crate) use polling::explain_empty_polls;
pub(crate) use rates::{explain_input_share, explain_switch_time};
pub(crate) use turns::explain_turn_details;

use std::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{Occupancy, Overhead, Policy, Scheduler, ThreadConfig, Throttle};

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
    ours: "The module schedule has the scheduler, the estimator of queues, the throttle, a \
        pipeline of input, forwarding and output threads, and the paper's simulator.",
    outcome: "The throttle does what the paper states, to the packet. The rates of table 2 \
        contradict its switch and its turns; figures 7, 8 and 10 to 15 depend on details that it \
        leaves open.",
    modules: &["papers::schedule", "papers::schedule::share"],
    caution: "The testbed is gone. What it measured is simulated, with its published costs.",
};

pub(crate) fn run(report: &mut Report, quick: bool) -> Outcome {
    analysis::costs(report)?;
    rates::processes(report, quick)?;
    rates::overload(report, quick)?;
    polling::shares(report, quick)?;
    polling::idle_ports(report, quick)?;
    livelock::livelock(report, quick)?;
    granularity::figures(report, quick)?;
    simulation::figures(report)?;
    phases::phases(report, quick)?;
    data_dependent::data_dependent(report)?;
    costs::costs(report, quick)?;
    report.record(Finding::no_data("figures 1 to 3", "what they show"));
    states(report)?;
    let why = "It names the symbols; each is a parameter of the module schedule.";
    report.record(Finding::not_measured("table 4", "notation", why));
    Ok(())
}

/// Figure 9: the states of a thread with a throttle, from its first packet to the end of its turn.
fn states(report: &mut Report) -> Outcome {
    let us = Duration::from_micros;
    let overhead = Overhead::from_ppm(100_000).ok_or("10 % is an overhead")?;
    let throttle = Throttle::new(us(3), overhead, us(30))?;
    let shares = ProportionalShare::new(2, 100, Order::Wf2qPlus)?;
    let mut scheduler = Scheduler::new(shares, us(3), Policy::Throttle(throttle))?;
    let now = Timestamp::ZERO;
    let [thread, other] = [0, 1].map(|_| scheduler.add(ThreadConfig::new(50, us(3))));
    let (other, thread) = (other?, thread?);
    let mut seen = vec![scheduler.state(thread)];
    scheduler.set_occupancy(thread, Occupancy::queued(1), now)?;
    seen.push(scheduler.state(thread));
    // Both have enough for a turn. Of equals the later one goes first.
    scheduler.set_occupancy(other, Occupancy::queued(16), now)?;
    scheduler.set_occupancy(thread, Occupancy::queued(16), now)?;
    for _ in [other, thread] {
        let turn = scheduler.next(now).ok_or("a thread is active")?;
        seen.push(scheduler.state(thread));
        scheduler.finish(turn, us(48), Occupancy::queued(0), now + us(51))?;
    }
    seen.push(scheduler.state(thread));
    let seen: Vec<String> =
        seen.into_iter().flatten().map(|state| format!("{state:?}").to_lowercase()).collect();
    let ours = seen.join(", ");
    let paper = "idle, eligible, active, running, idle";
    let what = "states of a thread from its first packet to the end of its turn";
    report.record(Finding::check("figure 9", what, paper, &*ours, "the same", ours == paper));
    Ok(())
}
