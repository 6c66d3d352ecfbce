//! Rounds of lookups in one thread while another one updates the table.

use std::hint::{black_box, spin_loop};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use super::feed::{Feed, Table, Update};
use super::subjects::{Apart, LeftRight, Lookups, Ours, SharedTable};
use crate::args::Plan;
use crate::results::{Column, Outcome, Report, Results};
use crate::routes::family::Family;
use crate::subject::{BURST, ours, peer, rotation};

/// Updates per second: more than in the worst minutes of the Internet.
const RATE: u32 = 10_000;

/// Lookups per piece. The median of the pieces' times counts, so that an interruption affects only
/// some of them.
const PIECE: usize = 1 << 12;

/// Lookups that are not timed.
const WARM_UP: usize = 1 << 16;

const COLUMNS: [(&str, &str); 7] = [
    ("single", "ns"),
    ("burst", "ns"),
    ("burst, 99.9 %, us", "us"),
    ("worst burst, us", "us"),
    ("update", "ns"),
    ("update, 99.9 %, us", "us"),
    ("worst update, us", "us"),
];

/// The nanoseconds of each 32 lookups and of each call with updates, and the number of calls that
/// were due.
struct Times {
    reads: Vec<u32>,
    updates: Vec<u32>,
    due: usize,
}

/// The benchmark of one way of sharing.
trait SharedRoutesBenchmark<A> {
    fn run(&self, lookups: Lookups, addresses: &[A], feed: &Feed<A>) -> Times;
}

struct Loops<S> {
    shared: S,
    /// The number of updates per call; `None` without a writer.
    per_call: Option<usize>,
    /// The next update of the replay.
    next: AtomicUsize,
}

fn shared<A: Family, S: SharedTable<A> + 'static>(
    per_call: Option<usize>,
    feed: &Feed<A>,
) -> Box<dyn SharedRoutesBenchmark<A>> {
    Box::new(Loops { shared: S::new(feed.table()), per_call, next: AtomicUsize::new(0) })
}

pub(crate) fn rounds<A: Family>(plan: &Plan, report: &mut Report, n: usize) -> Outcome {
    let mut feed = Feed::<A>::new(n)?;
    let (rounds, count) = if plan.quick { (3, 1 << 20) } else { (9, 1 << 23) };
    let subjects = [
        ours("concurrent_routes", "ConcurrentRoutes", shared::<_, Ours<A>>(Some(1), &feed)),
        peer("the same, 32 in a call", shared::<_, Ours<A>>(Some(32), &feed)),
        peer("the same, no writer", shared::<_, Ours<A>>(None, &feed)),
        peer("RouteTable, no writer", shared::<_, Table<A>>(None, &feed)),
        peer("RouteTable, updates of another", shared::<_, Apart<A>>(Some(1), &feed)),
        peer("RwLock", shared::<_, RwLock<Table<A>>>(Some(1), &feed)),
        peer("ArcSwap", shared::<_, ArcSwap<Table<A>>>(Some(1), &feed)),
        peer("left-right", shared::<_, LeftRight<A>>(Some(1), &feed)),
    ];
    let title = format!(
        "{} {} routes of {}: a reader, and a writer with {RATE} updates a second; {BURST} \
         lookups per pin, ns for each; medians of {rounds} rounds",
        feed.len(),
        A::NAME,
        feed.origin,
    );
    let columns = COLUMNS.map(|(bench, unit)| Column { bench, unit, n: feed.len() });
    let mut results = Results::new(title, A::KEY, columns.to_vec());
    results.add_rows(&subjects);
    for round in 0..rounds {
        let addresses = feed.addresses(count);
        for row in rotation(round, subjects.len()) {
            let benchmark = &subjects[row].benchmark;
            let single = benchmark.run(Lookups::Single, &addresses, &feed);
            let burst = benchmark.run(Lookups::Burst, &addresses, &feed);
            record(&mut results, row, single, burst, round + 1 == rounds);
        }
    }
    report.show(&results)
}

/// Records a round. The updates beside both kinds of lookups count.
fn record(results: &mut Results, row: usize, single: Times, mut burst: Times, is_last: bool) {
    results.record(row, 0, piece(&single.reads));
    results.record(row, 1, piece(&burst.reads));
    results.record(row, 2, quantile(&mut burst.reads, 0.999) / 1e3);
    results.record(row, 3, quantile(&mut burst.reads, 1.0) / 1e3);
    let mut updates = [single.updates, burst.updates].concat();
    if updates.is_empty() {
        return;
    }
    results.record(row, 4, quantile(&mut updates, 0.5));
    results.record(row, 5, quantile(&mut updates, 0.999) / 1e3);
    results.record(row, 6, quantile(&mut updates, 1.0) / 1e3);
    if is_last {
        let (made, due) = (updates.len(), single.due + burst.due);
        results.remark(row, format!("{made} of {due} calls were made"));
    }
}

/// Returns the nanoseconds of a lookup: the median of the pieces.
fn piece(reads: &[u32]) -> f64 {
    let pieces = reads.chunks_exact(PIECE / BURST);
    let mut sums: Vec<u32> = pieces.map(|piece| piece.iter().sum()).collect();
    quantile(&mut sums, 0.5) / PIECE as f64
}

fn quantile(times: &mut [u32], quantile: f64) -> f64 {
    let at = ((times.len() - 1) as f64 * quantile) as usize;
    (*times.select_nth_unstable(at).1).into()
}

impl<A: Family, S: SharedTable<A>> SharedRoutesBenchmark<A> for Loops<S> {
    fn run(&self, lookups: Lookups, addresses: &[A], feed: &Feed<A>) -> Times {
        let mut reads = vec![1; addresses.len() / BURST];
        let (is_started, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let writer = self.per_call.map(|per_call| {
                scope.spawn({
                    let (started, done) = (&is_started, &is_done);
                    move || write(&self.shared, per_call, || self.next(feed), started, done)
                })
            });
            let reader = self.shared.reader();
            run_lookups(&self.shared, &reader, lookups, &addresses[..WARM_UP], &mut reads);
            is_started.store(true, Ordering::Relaxed);
            run_lookups(&self.shared, &reader, lookups, addresses, &mut reads);
            is_done.store(true, Ordering::Relaxed);
            drop(reader);
            let written = writer.map(|writer| writer.join().expect("the writer does not panic"));
            let (updates, due) = written.unwrap_or_default();
            Times { reads, updates, due }
        })
    }
}

impl<S> Loops<S> {
    fn next<A: Family>(&self, feed: &Feed<A>) -> Update<A> {
        feed.update(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

#[inline(never)]
fn run_lookups<A, S: SharedTable<A>>(
    shared: &S,
    reader: &S::Reader,
    lookups: Lookups,
    addresses: &[A],
    ns: &mut [u32],
) {
    let mut last = Instant::now();
    for (addresses, ns) in black_box(addresses).chunks_exact(BURST).zip(ns) {
        black_box(shared.read(reader, lookups, addresses));
        let now = Instant::now();
        *ns = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
    }
}

/// Makes updates when they are due, or at once when they are late, until the reader is done.
/// Returns the times of the calls, and the number of calls that were due.
fn write<A, S: SharedTable<A>>(
    shared: &S,
    per_call: usize,
    next: impl Fn() -> Update<A>,
    is_started: &AtomicBool,
    is_done: &AtomicBool,
) -> (Vec<u32>, usize) {
    let mut times = Vec::with_capacity(1 << 20);
    while !is_started.load(Ordering::Relaxed) {
        spin_loop();
    }
    let (start, each) = (Instant::now(), Duration::from_secs(1) / RATE * per_call as u32);
    loop {
        let due = each * times.len() as u32;
        // It sleeps, as a daemon does: a writer that spins was not seen to slow the reader on
        // another core, but would if both are threads of one core.
        thread::sleep(due.saturating_sub(start.elapsed()));
        if is_done.load(Ordering::Relaxed) {
            break;
        }
        let updates: Vec<_> = (0..per_call).map(|_| next()).collect();
        let before = Instant::now();
        shared.update(&updates);
        times.push(before.elapsed().as_nanos().try_into().unwrap_or(u32::MAX));
    }
    let due = start.elapsed().as_nanos() / each.as_nanos();
    (times, due as usize)
}
