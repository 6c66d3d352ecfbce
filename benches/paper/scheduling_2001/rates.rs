//! Table 2 and figure 5: a saturated router, by its number of processes, and by its input.

use std::error::Error;
use std::time::Duration;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::papers::schedule::pipeline::{Input, Output, Path, Pipeline};
use flowtable::papers::schedule::{Budget, LinkScheduler, Policy, ThreadConfig};

use super::testbed::{BATCH, Costs, FORWARD, QUEUE, READ, Testbed, WRITE};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// How many threads process a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Processes {
    One,
    /// One reads, the other forwards and writes.
    Two,
    /// The turns of the forwarding thread have this many packets.
    Three(u32),
}

/// Returns the thousands of packets per second of a saturated router.
fn rate(processes: Processes, switch: Duration, duration: Duration) -> Result<f64, Box<dyn Error>> {
    let policy = Policy::Budget(Budget::packets(BATCH));
    let mut pipeline = Pipeline::new(3, 33, switch, policy)?;
    let mut costs = Costs::new(&[FORWARD], switch);
    let input = match processes {
        Processes::One => {
            costs.is_one_process = true;
            Input::new(ThreadConfig::new(33, READ + FORWARD + WRITE))
        }
        Processes::Two => {
            costs = Costs { consumes: true, ..Costs::new(&[FORWARD + WRITE], switch) };
            let path = Path::new(ThreadConfig::new(17, FORWARD + WRITE), QUEUE);
            let path = pipeline.add_path(path)?;
            Input::new(ThreadConfig::new(16, READ)).with_only_path(path)
        }
        Processes::Three(most) => {
            let link = LinkScheduler::new(1, 1)?;
            let output = Output::new(ThreadConfig::new(14, WRITE), link);
            let output = pipeline.add_output(output)?;
            let path = Path::new(ThreadConfig::new(3, FORWARD), QUEUE).with_output(output, 1);
            let path = pipeline.add_path(path.with_budget(Budget::packets(most)))?;
            Input::new(ThreadConfig::new(16, READ)).with_only_path(path)
        }
    };
    pipeline.add_input(input)?;
    let mut testbed = Testbed::new(costs, 1)?.with_flow(400_000, 0, 0);
    // The first packets fill the queues.
    testbed.run(&mut pipeline, Duration::from_millis(5))?;
    Ok(testbed.run(&mut pipeline, duration)?[0])
}

/// Table 2: a switch per process, amortised over a batch of 16.
pub(crate) fn processes(report: &mut Report, quick: bool) -> Outcome {
    let duration = Duration::from_millis(if quick { 20 } else { 500 });
    let header = ["processes", "paper, Kpps", "switch of 2 us", "off, %", "switch of 0.94 us"];
    let mut table = Table::new(&header);
    let mut rates = vec![];
    for (name, paper, processes) in [
        ("one, batches of 16", 294.0, Processes::One),
        ("two, batches of 16", 286.0, Processes::Two),
        ("three, batches of 16", 272.0, Processes::Three(BATCH)),
        ("three, forwarding by single packets", 227.0, Processes::Three(1)),
    ] {
        let of = |nanos| rate(processes, Duration::from_nanos(nanos), duration);
        let (here, shorter) = (of(2000)?, of(940)?);
        let what = format!("{name}: Kpps, if a switch takes 2 µs");
        let finding = Finding::number("table 2", what, paper, here).within(2.0);
        report.record(finding.because(crate::causes::Cause::SwitchTime).at_full_scale());
        let off = 100.0 * (here / paper - 1.0);
        table.row(&[&name, &paper, &two(here), &two(off), &two(shorter)]);
        rates.push(here);
    }
    let lost = |from: usize, to: usize| 100.0 * (1.0 - rates[to] / rates[from]);
    let ours = [lost(0, 1), lost(1, 2)];
    let what = "what a further process costs, if a switch takes 2 µs";
    let holds = ours.iter().all(|lost| (3.0..=4.5).contains(lost));
    let ours = format!("{} and {} %", two(ours[0]), two(ours[1]));
    let finding = Finding::check("table 2", what, "3 to 4 %", ours, "3 to 4.5 %", holds);
    report.record(finding.at_full_scale());
    let what = "what single packets cost in forwarding, if a switch takes 2 µs, %";
    let finding = Finding::number("table 2", what, 16.0, lost(2, 3)).within(10.0);
    report.record(finding.because(crate::causes::Cause::SwitchTime).at_full_scale());
    report.table("table_2", "Table 2: a saturated pipeline, by its processes", table)?;
    report.remark(
        "By the last row a switch took less than the 2 us that fit the first three.".into(),
    );
    Ok(())
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
    let switch = Duration::from_nanos(940);
    let duration = Duration::from_millis(if quick { 10 } else { 200 });
    let per_packet = Duration::from_secs(1) / INPUT_SHARE as u32;
    let function = per_packet - READ - WRITE - switch * 3 / BATCH;
    let share = |part: Duration| (part.as_nanos() * 1000 / per_packet.as_nanos()) as u32;
    let policy = Policy::Budget(Budget::packets(BATCH));
    let mut pipeline = Pipeline::new(4, 1000, switch, policy)?;
    let link = LinkScheduler::new(2, 2)?;
    let output = Output::new(ThreadConfig::new(share(WRITE), WRITE), link);
    let output = pipeline.add_output(output)?;
    for _ in 0..2 {
        let thread = ThreadConfig::new(share(function) / 2, function);
        pipeline.add_path(Path::new(thread, QUEUE).with_output(output, 1))?;
    }
    pipeline.add_input(Input::new(ThreadConfig::new(share(READ), READ)))?;
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
    judge_overload(report, qos, lost);
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

fn judge_overload(report: &mut Report, reserved: f64, lost: f64) {
    let what = format!("Kpps that QoS is below its {reserved} at the peak");
    let finding = Finding::number("figure 5", what, 10.0, lost).within(20.0);
    report.record(finding.at_full_scale());
    let ours = format!("{} below", two(lost));
    let what = "an input process that cannot tell flows apart";
    let rule = "QoS is below what it reserved";
    let paper = "breaks the reservation";
    let finding = Finding::check("figure 5", what, paper, ours, rule, lost > 1.0);
    // It follows from the number.
    report.record(finding.calculated());
}
