//! Figures 6 to 8: three flows through input, forwarding and output threads, by the length of a
//! turn.
//!
//! ```text
//!     card A ─▸ I ─▸ ▒▒ ─▸ F + x ─▸ ▒▒ ─▸ O ─▸ link 1     A: best effort, 50 Kpps, x µs more each
//!     card C ─▸ I ─▸ ▒▒ ─▸ F ─────▸ ┘                     B, C: reserved, 90 Kpps each
//!     card B ─▸ I ─▸ ▒▒ ─▸ F ─────▸ ▒▒ ─▸ O ─▸ link 2
//! ```
//!
//! The testbed is not available; its costs are known. This is a pipeline of the threads and queues
//! of the crate with those costs. Input threads sleep by the estimator of the crate. All turns are
//! limited to 16 packets; the figures vary the turns of forwarding threads.

use std::error::Error;
use std::time::Duration;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::Timestamp;
use flowtable::schedule::{
    BoundedQueue, Budget, Occupancy, Policy, QueueEstimator, Scheduler, Thread, ThreadConfig,
    longest_sleep,
};

use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Buffers of a card, and of each queue in the router.
const CARD: usize = 64;
const QUEUE: usize = 128;
const LINE_RATE: u64 = 148_800;
const BATCH: u32 = 16;
/// The cost of a switch, rounded, by the last row of table 2.
const SWITCH: Duration = Duration::from_micros(1);
const RATES: [u64; 3] = [50_000, 90_000, 90_000];
const NAMES: [&str; 3] = ["A", "B", "C"];

/// A thread with its input and output queues; `None` is the link.
struct Stage {
    thread: Thread,
    cost: Duration,
    input: usize,
    output: Option<usize>,
    /// Limit of a turn in addition to the batch size.
    budget: Budget,
    /// The estimator of an input thread, and the time of its next poll.
    port: Option<(QueueEstimator, Timestamp)>,
}

/// Queues 0 to 2 are cards, 3 to 5 lead to forwarding, 6 and 7 to links. A packet is the index of
/// its flow.
struct Router {
    scheduler: Scheduler,
    stages: Vec<Stage>,
    queues: Vec<BoundedQueue<usize>>,
    arrived: [u64; 3],
    sent: [u64; 3],
    now: Timestamp,
}

impl Router {
    /// Creates the pipeline. Shares are the reserved processing times, in thousandths.
    fn new(extra: Duration, budget: Budget) -> Result<Self, Box<dyn Error>> {
        let mut scheduler =
            Scheduler::new(8, 1000, SWITCH, Policy::Budget(Budget::packets(BATCH)))?;
        let nanos = Duration::from_nanos;
        let stages = [
            (80, nanos(1_600), 0, Some(3)),
            (144, nanos(1_600), 1, Some(4)),
            (144, nanos(1_600), 2, Some(5)),
            (15, nanos(300) + extra, 3, Some(6)),
            (27, nanos(300), 4, Some(7)),
            (27, nanos(300), 5, Some(6)),
            (196, nanos(1_400), 6, None),
            (126, nanos(1_400), 7, None),
        ];
        let add = |(share, cost, input, output)| {
            let thread = scheduler.add(ThreadConfig::new(share, cost))?;
            let estimator = QueueEstimator::new(BATCH, longest_sleep(CARD as u32, LINE_RATE))?;
            let port = (input < 3).then_some((estimator, Timestamp::ZERO));
            let is_forwarding = (3..6).contains(&input);
            let budget = if is_forwarding { budget } else { Budget::UNTIL_EMPTY };
            Ok(Stage { thread, cost, input, output, budget, port })
        };
        let stages = stages.into_iter().map(add).collect::<Result<_, Box<dyn Error>>>()?;
        let queue = |index| BoundedQueue::new(if index < 3 { CARD } else { QUEUE });
        let queues = (0..8).map(queue).collect::<Result<_, _>>()?;
        let (arrived, sent) = ([0; 3], [0; 3]);
        Ok(Self { scheduler, stages, queues, arrived, sent, now: Timestamp::ZERO })
    }

    fn occupancy(&self, stage: &Stage) -> Occupancy {
        let room = stage.output.map_or(usize::MAX, |queue| self.queues[queue].remaining_capacity());
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let queued = match &stage.port {
            // A port that is awake may be polled even if it is empty.
            Some((_, wakes)) if *wakes <= self.now => self.queues[stage.input].len().max(1),
            Some(_) => 0,
            None => self.queues[stage.input].len(),
        };
        Occupancy { queued: queued as u32, free: room }
    }

    /// Adds the packets that have arrived to the queues of the cards.
    fn arrive(&mut self) {
        for (flow, rate) in RATES.into_iter().enumerate() {
            let due = self.now.as_nanos() * rate / 1_000_000_000;
            for _ in self.arrived[flow]..due {
                let _dropped = self.queues[flow].push(flow);
            }
            self.arrived[flow] = due;
        }
    }

    fn report_occupancies(&mut self) -> Outcome {
        for index in 0..self.stages.len() {
            let (thread, occupancy) =
                (self.stages[index].thread, self.occupancy(&self.stages[index]));
            self.scheduler.set_occupancy(thread, occupancy, self.now)?;
        }
        Ok(())
    }

    fn run(mut self, duration: Duration) -> Result<Throughput, Box<dyn Error>> {
        while self.now < Timestamp::from(duration) {
            self.arrive();
            self.report_occupancies()?;
            let Some(turn) = self.scheduler.next(self.now) else {
                self.now = self.now + Duration::from_nanos(100);
                continue;
            };
            self.now = self.now + SWITCH;
            let index = turn.thread().index();
            let Stage { cost, input, output, budget, .. } = self.stages[index];
            let (mut packets, mut spent) = (0, Duration::ZERO);
            while turn.allows_more(packets, spent)
                && budget.allows_more(packets, spent)
                && output.is_none_or(|output| self.queues[output].remaining_capacity() > 0)
            {
                let Some(flow) = self.queues[input].pop() else { break };
                match output {
                    Some(output) => drop(self.queues[output].push(flow)),
                    None => self.sent[flow] += 1,
                }
                (packets, spent) = (packets + 1, spent + cost);
                self.now = self.now + cost;
                self.arrive();
            }
            if let Some((estimator, wakes)) = &mut self.stages[index].port {
                *wakes = self.now + estimator.polled(packets);
            }
            let occupancy = self.occupancy(&self.stages[index]);
            self.scheduler.finish(turn, spent, occupancy, self.now)?;
        }
        let kpps = self.sent.map(|sent| sent as f64 / duration.as_secs_f64() / 1000.0);
        let efficiency = self.scheduler.account().efficiency().unwrap_or_default();
        Ok(Throughput { kpps, efficiency })
    }
}

struct Throughput {
    kpps: [f64; 3],
    efficiency: f64,
}

/// Measures and draws figures 6 to 8.
pub(crate) fn figures(report: &mut Report, quick: bool) -> Outcome {
    let duration = Duration::from_millis(if quick { 50 } else { 1000 });
    for (number, name, budget, paper) in [
        (6, "batches of 16", Budget::packets(16), "B and C lose packets as x grows"),
        (7, "single packets", Budget::packets(1), "B and C hold; E = 66.2 %"),
        (
            8,
            "16 packets or 30 us",
            Budget::both(16, Duration::from_micros(30)),
            "B and C hold, A has more than in figure 7; E = 81.6 %",
        ),
    ] {
        let mut table = Table::new(&["x, us", "A, Kpps", "B, Kpps", "C, Kpps", "E, %"]);
        let mut lines = NAMES.map(|name| Line { name, points: vec![] });
        let mut all = vec![];
        for extra in [0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100] {
            let done = Router::new(Duration::from_micros(extra), budget)?.run(duration)?;
            let [a, b, c] = done.kpps.map(two);
            table.row(&[&extra, &a, &b, &c, &two(100.0 * done.efficiency)]);
            for (line, kpps) in lines.iter_mut().zip(done.kpps) {
                line.points.push((extra as f64, kpps));
            }
            all.push((extra, done));
        }
        let title = format!("Figure {number}, {name}. The paper: {paper}");
        report.table(&format!("figure_{number}"), &title, table)?;
        match number {
            6 => judge_batches(report, &all),
            7 => judge_turns(report, "figure 7", 66.2, &all),
            _ => judge_turns(report, "figure 8", 81.6, &all),
        }
        let title = format!("Turns of {name} (figure {number}, simulated)");
        let figure = Figure {
            title: &title,
            x_label: "extra cost of a packet of A, µs",
            x_scale: Scale::Linear,
            panels: vec![Panel { y_label: "Kpps", y: 0.0..100.0, lines: lines.into() }],
        };
        report.figure(&format!("figure_{number}"), &figure)?;
    }
    Ok(())
}

/// Returns the lower rate of B and C.
fn fewest(done: &Throughput) -> f64 {
    done.kpps[1].min(done.kpps[2])
}

/// The quantity that figures 6 to 8 show.
const OF_B_AND_C: &str = "B and C, of their 90 Kpps, as packets of A cost more";

/// Figure 6: batches of an expensive flow reduce the rates of the others.
fn judge_batches(report: &mut Report, all: &[(u64, Throughput)]) {
    let least = all.iter().map(|(_, done)| fewest(done)).fold(f64::INFINITY, f64::min);
    let first = all.iter().find(|(_, done)| fewest(done) < 85.0);
    let ours = match first {
        Some((extra, _)) => format!("down to {} Kpps; below 85 from x = {extra} µs on", two(least)),
        None => format!("{} Kpps or more", two(least)),
    };
    let (rule, holds) = ("less than 85 Kpps somewhere", first.is_some());
    let finding = Finding::check("figure 6", OF_B_AND_C, "lose packets", ours, rule, holds);
    report.record(finding.at_full_scale());
}

/// Figures 7 and 8: shorter turns keep reservations and cost efficiency.
fn judge_turns(report: &mut Report, place: &'static str, paper: f64, all: &[(u64, Throughput)]) {
    let least = all.iter().map(|(_, done)| fewest(done)).fold(f64::INFINITY, f64::min);
    let lost = all.iter().filter(|(_, done)| fewest(done) < 89.0);
    let lost: Vec<String> = lost.map(|(extra, _)| extra.to_string()).collect();
    let ours = match lost.as_slice() {
        [] => format!("{} Kpps or more", two(least)),
        _ => format!("down to {} Kpps; below 89 at x = {} µs", two(least), lost.join(", ")),
    };
    let rule = "89 Kpps or more, at each x";
    let finding = Finding::check(place, OF_B_AND_C, "hold them", ours, rule, lost.is_empty());
    let why = "At x = 0 nearly all of A's 50 Kpps are forwarded, one packet in a turn, and the \
        switches take what B and C have reserved.";
    let is_at_0_only = place == "figure 7" && lost == ["0"];
    let finding = if is_at_0_only { finding.because(why) } else { finding };
    report.record(finding.at_full_scale());
    let busy = all.iter().filter(|(extra, _)| *extra >= 5).map(|(_, done)| 100.0 * done.efficiency);
    let mean = busy.clone().sum::<f64>() / busy.count().max(1) as f64;
    let what = "E, %, mean over extra costs from 5 µs on, where the processor is busy";
    // The ratio of processing to switching is proportional to the inverse of the switch cost.
    let odds = |percent: f64| percent / (100.0 - percent);
    let switch = SWITCH.as_secs_f64() * 1e6 * odds(mean) / odds(paper);
    let why = format!(
        "A switch of 1 µs is assumed; table 2 implies 0.94 by its last row and 2 by the others. \
            The paper's number would follow from {switch:.1} µs here: one and the same must do \
            for figures 7 and 8."
    );
    let finding = Finding::number(place, what, paper, mean).within(5.0);
    report.record(finding.because(&why).at_full_scale());
}
