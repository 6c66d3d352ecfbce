//! Table 3 and the idle ports: input threads that poll, with and without the estimator.
//!
//! There is one busy port, possibly idle ones, and one forwarding thread, which consumes packets.

use std::error::Error;
use std::time::Duration;

use flowtable::papers::schedule::pipeline::{Input, Path, Pipeline, Polling};
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};

use super::testbed::{BATCH, Costs, LINE_RATE, QUEUE, READ, SWITCH, Testbed, estimator};
use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// The sum of all shares.
const WHOLE: u32 = 1000;

/// Parameters of a simulation.
struct Setup {
    /// Packets per second at the busy port.
    offered: u64,
    forwarding: Duration,
    /// The share of each input thread, and of the forwarding thread.
    shares: [u32; 2],
    idle_ports: usize,
    estimates: bool,
    /// The cost of an empty poll.
    empty: Duration,
    /// Whether input waits until its output queue has room, as section 3.1 demands. Otherwise the
    /// queue drops.
    needs_room: bool,
    /// Whether the switch to an empty port is charged to its thread.
    charges_polls: bool,
    duration: Duration,
}

impl Setup {
    /// Runs the simulation. Returns the forwarded packets per second, in thousands.
    fn run(self) -> Result<f64, Box<dyn Error>> {
        let policy = Policy::Budget(Budget::packets(BATCH));
        let shares = ProportionalShare::new(self.idle_ports + 2, WHOLE, Order::Wf2qPlus)?;
        let mut pipeline = Pipeline::new(shares, SWITCH, policy)?;
        let [input, forwarding] = self.shares;
        let thread = ThreadConfig::new(forwarding, self.forwarding);
        let path = pipeline.add_path(Path { thread, capacity: QUEUE, output: None })?;
        for port in 0..=self.idle_ports {
            let polling = match self.estimates {
                true => Polling::Estimated(estimator()?),
                false => Polling::Always,
            };
            let thread = ThreadConfig::new(input, READ);
            // Idle ports have queues of their own, which are empty.
            let only_path = (self.needs_room && port == 0).then_some(path);
            pipeline.add_input(Input { thread, polling, only_path })?;
        }
        let costs = Costs {
            empty: self.empty,
            charges_polls: self.charges_polls,
            consumes: true,
            ..Costs::new(&[self.forwarding], SWITCH)
        };
        let testbed = Testbed::new(costs, self.idle_ports + 1)?;
        let mut testbed = testbed.with_flow(self.offered, 0, path);
        Ok(testbed.run(&mut pipeline, self.duration)?[path])
    }
}

/// The rate of arrivals at which the paper states table 3.
const OFFERED: u64 = 140_000;

/// A row of table 3. Section 3.3: without the estimator input "drops packets that demux to a full
/// queue".
fn row_of_table_3(forwarding: Duration, shares: [u32; 2], estimates: bool, quick: bool) -> Setup {
    let duration = Duration::from_millis(if quick { 50 } else { 500 });
    let (offered, empty) = (OFFERED, Duration::from_micros(1));
    let (idle_ports, needs_room, charges_polls) = (0, estimates, false);
    Setup {
        offered,
        forwarding,
        shares,
        idle_ports,
        estimates,
        empty,
        needs_room,
        charges_polls,
        duration,
    }
}

/// The remark about the printed 101 Kpps.
const BALANCED: &str = "It is 1000 / (8 + 1.6 + 0.3): here less than 0.3 µs for a packet are \
    neither input nor forwarding.";

/// Table 3: balanced and unbalanced shares of input and forwarding.
pub(crate) fn shares(report: &mut Report, quick: bool) -> Outcome {
    let header = ["forwarding, us", "shares", "estimator", "paper", "model", "simulated"];
    let mut table = Table::new(&header);
    for (cost, paper) in [(8, [101, 101, 101]), (16, [56, 56, 56]), (24, [38, 35, 38])] {
        let forwarding = Duration::from_micros(cost);
        let balanced = (1.6 / (1.6 + cost as f64) * 1000.0) as u32;
        let setups = [
            ("balanced", [balanced, 1000 - balanced], false),
            ("1:10", [90, 900], false),
            ("1:10", [90, 900], true),
        ];
        for ((name, shares, estimates), paper) in setups.into_iter().zip(paper) {
            let model = model(cost as f64, shares, estimates);
            let estimator = if estimates { "yes" } else { "no" };
            let setup = row_of_table_3(forwarding, shares, estimates, quick);
            let simulated = setup.run()?;
            table.row(&[&cost, &name, &estimator, &paper, &two(model), &two(simulated)]);
            // Where all columns print one number, they are one claim.
            if name == "balanced" || cost == 24 {
                let with = if estimates { "with" } else { "without" };
                let what = format!("{cost} µs, shares {name}, {with} estimator: Kpps of 140");
                let finding = Finding::number("table 3", what, f64::from(paper), simulated);
                let finding = if paper < 100 { finding.rounded() } else { finding.counted() };
                let finding = match name {
                    "balanced" => finding.because(Cause::SwitchTime).noting(BALANCED),
                    _ => finding.because(Cause::EmptyPolls),
                };
                report.record(finding.at_full_scale());
            }
        }
    }
    let title = "Table 3: Kpps of 140, by the shares of input and forwarding";
    report.table("table_3", title, table)
}

/// The model: a packet costs its forwarding, 1.6 us of input and 0.3 us of other work. Empty polls
/// use up the share of input, if it exceeds the need; 7.5 % are left for other work then.
fn model(cost: f64, [input, forwarding]: [u32; 2], estimates: bool) -> f64 {
    let fits = 1000.0 / (cost + 1.6 + 0.3);
    let part = f64::from(input) / f64::from(input + forwarding);
    let needed = 1.6 / (cost + 1.6);
    if estimates || part <= needed * 1.01 { fits } else { 0.925 * (1.0 - part) * 1000.0 / cost }
}

/// Costs of an empty poll, in microseconds.
const EMPTY: [u64; 4] = [1, 2, 5, 10];

/// The share of an input process that is "large enough to receive packets at line speed" (section
/// 3.3), in thousandths, and what two such idle ports leave for forwarding.
const LINE_SPEED: [u32; 2] = [238, 286];

/// Three ports, two of which are idle.
fn with_idle_ports(empty: Duration, estimates: bool, quick: bool) -> Setup {
    let duration = Duration::from_millis(if quick { 50 } else { 2000 });
    let forwarding = Duration::from_micros(6);
    let (offered, shares, idle_ports) = (LINE_RATE, LINE_SPEED, 2);
    let (needs_room, charges_polls) = (true, false);
    Setup {
        offered,
        forwarding,
        shares,
        idle_ports,
        estimates,
        empty,
        needs_room,
        charges_polls,
        duration,
    }
}

/// Measures three ports, two of which are idle, by the cost of an empty poll. The first cost is
/// that of the comparison.
pub(crate) fn idle_ports(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&["an empty poll, us", "estimator", "paper, Kpps", "simulated"]);
    let mut of_first = [0.0; 2];
    for micros in EMPTY {
        for (name, estimates, paper) in [("no", false, 91), ("yes", true, 130)] {
            let setup = with_idle_ports(Duration::from_micros(micros), estimates, quick);
            let simulated = setup.run()?;
            if micros == EMPTY[0] {
                of_first[usize::from(estimates)] = simulated;
            }
            table.row(&[&micros, &name, &paper, &two(simulated)]);
        }
    }
    judge_idle_ports(report, of_first);
    let title = "Two idle ports beside a busy one, 6 us for a packet (131.6 at most)";
    report.table("idle_ports", title, table)
}

/// Compares the rates without and with the estimator.
fn judge_idle_ports(report: &mut Report, [without, with]: [f64; 2]) {
    const PLACE: &str = "section 3.3, idle ports";
    for (name, paper, rate) in [("without", 91.0, without), ("with", 130.0, with)] {
        let what = format!("Kpps {name} estimator, if an empty poll takes 1 µs");
        let finding = Finding::number(PLACE, what, paper, rate).counted();
        report.record(finding.because(Cause::EmptyPolls).at_full_scale());
    }
    let what = "packets lost to polling without the estimator, %";
    let finding = Finding::number(PLACE, what, 30.0, 100.0 * (1.0 - without / with)).about();
    report.record(finding.because(Cause::EmptyPolls).at_full_scale());
}

/// Varies which thread pays for the switch to an empty port, and what input may read.
pub(crate) fn explain_empty_polls(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["share of an input : forwarding", "switch of an empty poll", "without", "with"];
    let mut ports = Table::new(&header);
    ports.row(&[&"printed", &"-", &"91", &"130"]);
    for shares in [LINE_SPEED, [224, 328], [150, 550]] {
        for (name, charges_polls) in [("charged to none", false), ("charged to the port", true)] {
            let rate = |estimates| -> Result<String, Box<dyn Error>> {
                let setup = with_idle_ports(Duration::from_micros(1), estimates, quick);
                Ok(two(Setup { charges_polls, shares, ..setup }.run()?))
            };
            let shares = format!("{} : {}", shares[0], shares[1]);
            ports.row(&[&shares, &name, &rate(false)?, &rate(true)?]);
        }
    }
    let mut rows = Table::new(&["input at 1:10 and 24 us", "poll, us", "without", "with"]);
    rows.row(&[&"printed", &"-", &"35", &"38"]);
    for (name, needs_room) in [("reads into a full queue", false), ("waits for room", true)] {
        for micros in [1, 10] {
            let rate = |estimates| -> Result<String, Box<dyn Error>> {
                let cost = Duration::from_micros(24);
                let setup = row_of_table_3(cost, [90, 900], estimates, quick);
                let empty = Duration::from_micros(micros);
                Ok(two(Setup { needs_room, empty, ..setup }.run()?))
            };
            rows.row(&[&name, &micros, &rate(false)?, &rate(true)?]);
        }
    }
    Ok(vec![
        ("Two idle ports: Kpps without and with the estimator", ports),
        ("Table 3, 140 Kpps: Kpps without and with the estimator", rows),
    ])
}
