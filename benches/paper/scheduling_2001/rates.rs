//! Table 2 and figure 5: a saturated router, by its number of processes, and by its input.

use std::error::Error;
use std::time::Duration;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::papers::schedule::pipeline::{Input, LinkShare, Output, Path, Pipeline, Polling};
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};

use super::granularity::efficiency_by_switch;
use super::testbed::{BATCH, Costs, FORWARD, QUEUE, READ, SWITCH, Testbed, WRITE};
use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// How many threads process a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Processes {
    One,
    /// One reads, the other forwards and writes.
    Two,
    Three,
    /// The turns of the forwarding thread have one packet.
    ThreeAndSinglePackets,
}

/// The rows of table 2, and the printed Kpps.
pub(super) const ROWS: [(&str, f64, Processes); 4] = [
    ("one process", 294.0, Processes::One),
    ("two processes", 286.0, Processes::Two),
    ("three processes", 272.0, Processes::Three),
    ("three, forwarding by single packets", 227.0, Processes::ThreeAndSinglePackets),
];

/// The printed turns: "on the order of 10 packets" (section 2.2) and "a context
/// switch costs 2 µs" (section 4).
const PRINTED: Turns = Turns { packets: 10, switch: Duration::from_nanos(2000) };

/// The packets of a turn, and the cost of the switch to it.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    pub(super) packets: u32,
    pub(super) switch: Duration,
}

/// More packets per second than any router of table 2 forwards.
const SATURATED: u64 = 400_000;

/// Returns the thousands of packets per second of a router at which this many arrive.
pub(super) fn rate(
    processes: Processes,
    turns: Turns,
    offered: u64,
    duration: Duration,
) -> Result<f64, Box<dyn Error>> {
    let Turns { packets, switch } = turns;
    let policy = Policy::Budget(Budget::packets(packets));
    let shares = ProportionalShare::new(3, 33, Order::Wf2qPlus)?;
    let mut pipeline = Pipeline::new(shares, switch, policy)?;
    let mut costs = Costs::new(&[FORWARD], switch);
    let (thread, only_path) = match processes {
        Processes::One => {
            costs.is_one_process = true;
            (ThreadConfig::new(33, READ + FORWARD + WRITE), None)
        }
        Processes::Two => {
            costs = Costs { consumes: true, ..Costs::new(&[FORWARD + WRITE], switch) };
            let thread = ThreadConfig::new(17, FORWARD + WRITE);
            let path = pipeline.add_path(Path { thread, capacity: QUEUE, output: None })?;
            (ThreadConfig::new(16, READ), Some(path))
        }
        Processes::Three | Processes::ThreeAndSinglePackets => {
            let most = if processes == Processes::Three { packets } else { 1 };
            let link = ProportionalShare::new(1, 1, Order::Wf2qPlus)?;
            let output = Output { thread: ThreadConfig::new(14, WRITE), link };
            let output = pipeline.add_output(output)?;
            let budget = Budget::packets(most);
            let thread = ThreadConfig { budget, ..ThreadConfig::new(3, FORWARD) };
            let output = Some(LinkShare { output, share: 1 });
            let path = pipeline.add_path(Path { thread, capacity: QUEUE, output })?;
            (ThreadConfig::new(16, READ), Some(path))
        }
    };
    pipeline.add_input(Input { thread, polling: Polling::Always, only_path })?;
    let mut testbed = Testbed::new(costs, 1)?.with_flow(offered, 0, 0);
    // The first packets fill the queues.
    testbed.run(&mut pipeline, Duration::from_millis(5))?;
    Ok(testbed.run(&mut pipeline, duration)?[0])
}

/// Returns the rates of all rows of table 2.
fn rates(turns: Turns, duration: Duration) -> Result<[f64; 4], Box<dyn Error>> {
    let mut rates = [0.0; 4];
    for (here, (_, _, processes)) in rates.iter_mut().zip(ROWS) {
        *here = rate(processes, turns, SATURATED, duration)?;
    }
    Ok(rates)
}

/// Table 2: a switch per process, amortised over a batch.
pub(crate) fn processes(report: &mut Report, quick: bool) -> Outcome {
    let rates = rates(PRINTED, Duration::from_millis(if quick { 20 } else { 500 }))?;
    for ((name, paper, _), here) in ROWS.into_iter().zip(rates) {
        let what = format!("{name}: Kpps, by the printed 2 µs and 10 packets of a turn");
        let finding = Finding::number("table 2", what, paper, here).counted();
        report.record(finding.because(Cause::SwitchTime).at_full_scale());
    }
    let [one, _, three, _] = rates;
    let what = "three processes beside one: Kpps less, %, by the same printed numbers";
    let finding = Finding::number("section 2.2", what, 7.0, 100.0 * (1.0 - three / one)).rounded();
    report.record(finding.because(Cause::SwitchTime).at_full_scale());
    report.table("table_2", "Table 2: Kpps of a saturated pipeline", by_turns(&[(PRINTED, rates)]))
}

/// The printed rates of table 2, and rates by the packets of a turn and the cost of a switch.
fn by_turns(rows: &[(Turns, [f64; 4])]) -> Table {
    let mut header = vec!["packets of a turn, switch"];
    header.extend(ROWS.map(|(name, ..)| name));
    let mut table = Table::new(&header);
    let [one, two_, three, single] = ROWS.map(|(_, printed, _)| printed);
    table.row(&[&"printed", &one, &two_, &three, &single]);
    for (Turns { packets, switch }, rates) in rows {
        let name = format!("{packets}, {} µs", switch.as_nanos() as f64 / 1000.0);
        let [one, two_, three, single] = rates.map(two);
        table.row(&[&name, &one, &two_, &three, &single]);
    }
    table
}

/// Varies the turns of table 2, and the turns and the estimator of figures 7 and 8.
pub(crate) fn explain_switch_time(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let duration = Duration::from_millis(if quick { 20 } else { 500 });
    let mut rows = vec![];
    for (packets, nanos) in [(10, 2000), (16, 2000), (16, 940), (10, 940), (9, 920), (8, 900)] {
        let turns = Turns { packets, switch: Duration::from_nanos(nanos) };
        rows.push((turns, rates(turns, duration)?));
    }
    let mut evidence = vec![("Table 2, Kpps", by_turns(&rows))];
    evidence.extend(efficiency_by_switch(quick)?);
    Ok(evidence)
}

/// The packets per second that the share of input is for, and that QoS reserves.
const INPUT_SHARE: u64 = 98_000;
const QOS: u64 = 49_000;

/// Best-effort packets per second, at a second of figure 5.
fn best_effort(second: u64) -> u64 {
    (39_000 + 2_000 * second.saturating_sub(40)).min(84_000)
}

/// A second of figure 5: Kpps.
struct Second {
    second: u64,
    sent: f64,
    qos: f64,
    rest: f64,
}

/// Simulates figure 5: both flows arrive at one card. The cost of functions is such that the
/// shares for 98 Kpps are the whole processor.
fn simulate_overload(quick: bool) -> Result<Vec<Second>, Box<dyn Error>> {
    let switch = SWITCH;
    let duration = Duration::from_millis(if quick { 10 } else { 200 });
    let per_packet = Duration::from_secs(1) / INPUT_SHARE as u32;
    let function = per_packet - READ - WRITE - switch * 3 / BATCH;
    let share = |part: Duration| (part.as_nanos() * 1000 / per_packet.as_nanos()) as u32;
    let policy = Policy::Budget(Budget::packets(BATCH));
    let shares = ProportionalShare::new(4, 1000, Order::Wf2qPlus)?;
    let mut pipeline = Pipeline::new(shares, switch, policy)?;
    let link = ProportionalShare::new(2, 2, Order::Wf2qPlus)?;
    let output = Output { thread: ThreadConfig::new(share(WRITE), WRITE), link };
    let output = pipeline.add_output(output)?;
    for _ in 0..2 {
        let thread = ThreadConfig::new(share(function) / 2, function);
        let output = Some(LinkShare { output, share: 1 });
        pipeline.add_path(Path { thread, capacity: QUEUE, output })?;
    }
    let thread = ThreadConfig::new(share(READ), READ);
    pipeline.add_input(Input { thread, polling: Polling::Always, only_path: None })?;
    let testbed = Testbed::new(Costs::new(&[function; 2], switch), 1)?;
    let mut testbed = testbed.with_flow(QOS, 0, 0).with_flow(best_effort(0), 0, 1);
    let mut seconds = vec![];
    for second in 0..=80 {
        testbed.set_rate(1, best_effort(second));
        let kpps = testbed.run(&mut pipeline, duration)?;
        let sent = (QOS + best_effort(second)) as f64 / 1000.0;
        seconds.push(Second { second, sent, qos: kpps[0], rest: kpps[1] });
    }
    Ok(seconds)
}

/// Figure 5: the rate of the QoS flow in Kpps while best-effort traffic exceeds the share of input.
pub(crate) fn overload(report: &mut Report, quick: bool) -> Outcome {
    let seconds = simulate_overload(quick)?;
    let qos = QOS as f64 / 1000.0;
    // As a fluid, the input thread reads its share, and both flows lose the same part.
    let fluid = |sent: f64| qos * (INPUT_SHARE as f64 / 1000.0 / sent).min(1.0);
    let header = ["seconds", "sent", "QoS sent", "QoS forwarded", "best effort", "QoS, as a fluid"];
    let mut table = Table::new(&header);
    for one in seconds.iter().step_by(5) {
        let (of_qos, rest, fluid) = (two(one.qos), two(one.rest), two(fluid(one.sent)));
        table.row(&[&one.second, &one.sent, &qos, &of_qos, &rest, &fluid]);
    }
    let title = "Figure 5: input has a share for 98 Kpps, and cannot tell flows apart";
    report.table("figure_5", title, table)?;
    let lost = qos - seconds.last().map_or(qos, |last| last.qos);
    judge_overload(report, qos, lost, seconds.last().map_or(0.0, |last| last.rest));
    let line = |name, of: &dyn Fn(&Second) -> f64| Line {
        name,
        points: seconds.iter().map(|one| (one.second as f64, of(one))).collect(),
    };
    let lines = vec![
        line("best effort, sent", &|one| one.sent - qos),
        line("best effort, forwarded", &|one| one.rest),
        line("QoS, forwarded", &|one| one.qos),
        line("QoS, reserved", &|_| qos),
        Line { name: "published: 10 Kpps below", points: vec![(80.0, qos - 10.0)] },
    ];
    let figure = Figure {
        title: "Overload of an input process (figure 5, simulated)",
        x_label: "seconds",
        x_scale: Scale::Linear,
        panels: vec![Panel { y_label: "Kpps", y: 0.0..100.0, lines }],
    };
    report.figure("figure_5", &figure)
}

fn judge_overload(report: &mut Report, reserved: f64, lost: f64, best_effort: f64) {
    let what = format!("Kpps that QoS is below its {reserved} at the peak");
    let finding = Finding::number("figure 5", what, 10.0, lost).about();
    report.record(finding.because(Cause::InputShare).at_full_scale());
    let what = "best effort at the peak, Kpps";
    let finding = Finding::number("figure 5", what, 49.0, best_effort).about();
    report.record(finding.because(Cause::InputShare).at_full_scale());
    let ours = format!("{} below", two(lost));
    let what = "an input process that cannot tell flows apart";
    let rule = "QoS is below what it reserved";
    let paper = "QoS falls below its reservation";
    let finding = Finding::check("figure 5", what, paper, ours, rule, lost > 1.0);
    // It follows from the number.
    report.record(finding.calculated());
}

/// Sets the printed numbers of figure 5 beside inputs that read more than their share.
pub(crate) fn explain_input_share(_quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let mut table = Table::new(&["input reads, Kpps", "QoS below 49", "best effort"]);
    table.row(&[&"printed: about 98", &"about 10", &"about 49"]);
    for read in [98.0, 102.0, 106.0] {
        let [qos, rest] = [49.0, 84.0].map(|sent| sent * read / (49.0 + 84.0));
        table.row(&[&read, &two(49.0 - qos), &two(rest)]);
    }
    Ok(vec![("133 Kpps arrive; both flows lose the same part", table)])
}
