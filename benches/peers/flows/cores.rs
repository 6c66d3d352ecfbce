//! Two workers, each on a core and with a cache of its own, beside one worker with one cache.
//!
//! The symmetric hash of a network card chooses the worker of a packet, see
//! [`flowtable::flow_cache::cores`], before the time is taken, as a card does. The caches of the
//! two have half of the flows each, and a tenth more room, since hashes do not divide exactly. The
//! time is from the common start to the end of the last worker.

use std::hint::spin_loop;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use flowtable::DefaultHashBuilder;
use flowtable::flow_cache::Steering;
use flowtable::hash::source_index::Toeplitz;

use super::ours::Ours;
use super::subject::{Delivery, meter};
use super::traffic::{Packets, Popularity, Senders};
use super::{KEY, Name, gap};
use crate::results::{Column, Results};
use crate::subject::rotation;

const WORKERS: [usize; 2] = [2, 1];

const DELIVERIES: [Delivery; 2] = [Delivery::Single, Delivery::Burst];

/// The share of senders in the capacity, in percent, as in the other rounds.
const SENDING: usize = 60;

/// The packets of a run: before the time is taken, and one round for each delivery.
struct Run {
    before: [Packets; 2],
    rounds: [Packets; 2],
}

pub(crate) fn cores(capacity: usize, quick: bool) -> Results {
    let (runs, round) = if quick { (1, 1 << 16) } else { (5, 1 << 21) };
    let title = format!(
        "{capacity} flows: ns for a packet of all workers together; medians of {runs} runs"
    );
    let columns =
        ["workers", "workers, burst"].map(|bench| Column { bench, unit: "ns", n: capacity });
    let mut results = Results::new(title, KEY, columns.into());
    results.add_row("FlowCache, two workers", Some("flow_cache+workers"));
    results.add_row("FlowCache, one worker", None);

    let mut senders = Senders::new(capacity * SENDING / 100, Popularity::Uniform, gap(capacity));
    let before = [senders.each(), senders.mixed(5 * capacity)];
    let run = Run { before, rounds: [senders.mixed(round), senders.mixed(round)] };
    let steered = WORKERS.map(|workers| run.steered(workers));
    for number in 0..runs {
        for row in rotation(number, WORKERS.len()) {
            for (column, time) in timed(&steered[row], capacity).into_iter().enumerate() {
                results.record(row, column, time.as_nanos() as f64 / round as f64);
            }
        }
    }
    results
}

impl Run {
    /// Divides all packets among workers.
    fn steered(&self, workers: usize) -> Vec<Self> {
        let workers = NonZero::new(workers).expect("there is a worker");
        let steering = Steering::new(workers, |name: &Name| Toeplitz::SYMMETRIC.hash(name));
        let of_worker = |worker, packets: &Packets| {
            packets.part(workers.get(), |name| steering.worker(name) == worker)
        };
        (0..workers.get())
            .map(|worker| Self {
                before: self.before.each_ref().map(|packets| of_worker(worker, packets)),
                rounds: self.rounds.each_ref().map(|packets| of_worker(worker, packets)),
            })
            .collect()
    }
}

/// Runs all workers at the same time. Returns the time of each round.
fn timed(runs: &[Run], capacity: usize) -> [Duration; 2] {
    let capacity = if runs.len() == 1 { capacity } else { capacity * 11 / 10 / runs.len() };
    let ready = &[AtomicUsize::new(0), AtomicUsize::new(0)];
    let times = thread::scope(|scope| {
        let worker = |run| scope.spawn(move || work(run, capacity, (ready, runs.len())));
        let workers: Vec<_> = runs.iter().map(worker).collect();
        let times = workers.into_iter().map(|worker| worker.join().expect("it does not panic"));
        times.collect::<Vec<_>>()
    });
    [0, 1].map(|round| {
        let (starts, ends) = (times.iter().map(|times| times[round].0), times.iter());
        let end = ends.map(|times| times[round].1).max().expect("there is a worker");
        end.duration_since(starts.min().expect("there is a worker"))
    })
}

/// Returns the beginning and the end of each round.
fn work(
    run: &Run,
    capacity: usize,
    (ready, workers): (&[AtomicUsize; 2], usize),
) -> [(Instant, Instant); 2] {
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut meter = meter(move |capacity| Ours::<Name, _>::by_class(capacity, hasher.clone()));
    meter.open(capacity);
    for packets in &run.before {
        meter.process(Delivery::Single, packets);
    }
    [0, 1].map(|round| {
        // A barrier that spins: a sleeping thread would start late.
        ready[round].fetch_add(1, SeqCst);
        while ready[round].load(SeqCst) < workers {
            spin_loop();
        }
        let start = Instant::now();
        meter.process(DELIVERIES[round], &run.rounds[round]);
        (start, Instant::now())
    })
}
