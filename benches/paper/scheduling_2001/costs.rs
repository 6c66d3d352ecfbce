//! The cost of a scheduling decision on this machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

use flowtable::Timestamp;
use flowtable::papers::schedule::share::{Order, ProportionalShare};
use flowtable::papers::schedule::{
    Budget, Occupancy, Policy, QueueEstimator, Scheduler, ThreadConfig, longest_sleep,
};
use model::papers::scheduling_2001::simulation::capped;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::SEED;
use crate::report::{Outcome, Report, Table, median, two};

const ROUNDS: usize = 15;

/// Nanoseconds per step, as a median over the rounds.
fn measure(steps: u64, mut step: impl FnMut(u64)) -> f64 {
    let round = |_| {
        let begun = Instant::now();
        (0..steps).for_each(&mut step);
        begun.elapsed().as_nanos() as f64 / steps as f64
    };
    // The first round warms up.
    median((0..=ROUNDS).map(round).skip(1).collect())
}

/// Random run lengths in nanoseconds.
fn runs() -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(SEED);
    (0..1024).map(|_| rng.random_range(1_000..60_000)).collect()
}

pub(crate) fn costs(report: &mut Report, quick: bool) -> Outcome {
    let steps = if quick { 2_000 } else { 200_000 };
    let mut table = Table::new(&["what", "threads", "ns"]);
    for threads in [16, 256, 4096] {
        table.row(&[
            &"ProportionalShare: pick, charge",
            &threads,
            &two(of_shares(threads, steps)?),
        ]);
    }
    for threads in [16, 256, 4096] {
        let name = "Scheduler: set_occupancy, next, finish";
        table.row(&[&name, &threads, &two(of_scheduler(threads, steps)?)]);
    }
    let mut estimator = QueueEstimator::new(16, longest_sleep(64, 148_800))?;
    let polls = runs();
    let polled = measure(steps, |step| {
        black_box(estimator.polled(polls[step as usize % 1024] as u32 % 17));
    });
    table.row(&[&"QueueEstimator: polled", &"-", &two(polled)]);
    let throttle = capped((10, 30));
    let threshold = measure(steps, |step| {
        let cost = Duration::from_nanos(polls[step as usize % 1024]);
        black_box(throttle.threshold(cost, 128));
    });
    table.row(&[&"Throttle: threshold", &"-", &two(threshold)]);
    report.table("costs", "What decisions cost here; the paper has no numbers", table)
}

/// Measures the shares while all threads have work.
fn of_shares(threads: u32, steps: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let mut shares = ProportionalShare::new(threads as usize, 100 * threads, Order::Wf2qPlus)?;
    let mut rng = StdRng::seed_from_u64(SEED);
    let runs = runs();
    for _ in 0..threads {
        let thread = shares.add(rng.random_range(1..=100))?;
        shares.set_work(thread, Some(runs[thread.index() % 1024]))?;
    }
    Ok(measure(steps, |step| {
        let run = runs[step as usize % 1024];
        let thread = shares.pick().expect("all have work");
        shares.charge(thread, run, Some(run)).expect("it runs");
    }))
}

/// Measures a packet arrival and a turn per step.
fn of_scheduler(threads: u32, steps: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let policy = Policy::Budget(Budget::packets(16));
    let shares = ProportionalShare::new(threads as usize, 100 * threads, Order::Wf2qPlus)?;
    let mut scheduler = Scheduler::new(shares, Duration::from_micros(3), policy)?;
    let mut rng = StdRng::seed_from_u64(SEED);
    let runs = runs();
    let mut all = vec![];
    for _ in 0..threads {
        let cost = Duration::from_nanos(rng.random_range(300..30_000));
        let thread = scheduler.add(ThreadConfig::new(rng.random_range(1..=100), cost))?;
        scheduler.set_occupancy(thread, Occupancy::queued(8), Timestamp::ZERO)?;
        all.push(thread);
    }
    Ok(measure(steps, |step| {
        let run = runs[step as usize % 1024];
        let now = Timestamp::from_nanos(step * 1000);
        let waiting = 1 + run as u32 % 32;
        let thread = all[(run.wrapping_mul(step) % u64::from(threads)) as usize];
        scheduler.set_occupancy(thread, Occupancy::queued(waiting), now).expect("it is there");
        let turn = scheduler.next(now).expect("all have work");
        let spent = Duration::from_nanos(run);
        scheduler.finish(turn, spent, Occupancy::queued(waiting), now).expect("it is there");
    }))
}
