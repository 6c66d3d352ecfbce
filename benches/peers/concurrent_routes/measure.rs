//! Rounds of reading while somebody writes.

use std::hint::{black_box, spin_loop};
use std::net::Ipv4Addr;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use super::contestants::{LeftRight, Ours, Shared};
use super::feed::{Feed, Table, Update};
use crate::args::Plan;
use crate::board::{Board, Column, Outcome, Report};
use crate::contestant::BURST;
use crate::entrant::{in_turn, ours, peer};

/// Updates of a second: more than the routes of the Internet have in their worst minutes.
const RATE: u32 = 10_000;

/// Look-ups whose time is one figure, of which the median is taken: so if the machine does something else
/// in the meantime, that is in some of them only.
const PIECE: usize = 1 << 12;

/// Look-ups that do not count.
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

/// How a reader looks up 32 addresses under one pin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Single,
    Burst,
}

/// Nanoseconds of each 32 look-ups and of each update; how many updates were due, and how many of those
/// that were made were not visible in the end.
struct Times {
    reads: Vec<u32>,
    updates: Vec<u32>,
    due: usize,
    pending: usize,
}

/// A way of sharing whose type is not known to who makes it work.
trait Work {
    fn run(&self, how: How, addresses: &[Ipv4Addr], feed: &Feed) -> Times;
}

struct Loops<S> {
    shared: S,
    /// Updates that are made in one call; without a writer there is no such number.
    together: Option<usize>,
    /// Where in the replay the writer is.
    at: AtomicUsize,
}

fn work<S: Shared + 'static>(together: Option<usize>, feed: &Feed) -> Box<dyn Work> {
    Box::new(Loops { shared: S::new(feed.table()), together, at: AtomicUsize::new(0) })
}

pub(crate) fn rounds(plan: &Plan, report: &mut Report, n: usize) -> Outcome {
    let mut feed = Feed::new(n)?;
    let (rounds, count) = if plan.quick { (3, 1 << 20) } else { (9, 1 << 23) };
    let contestants = [
        ours("concurrent_routes", "ConcurrentRoutes", work::<Ours>(Some(1), &feed)),
        peer("the same, 32 in a call", work::<Ours>(Some(32), &feed)),
        peer("the same, no writer", work::<Ours>(None, &feed)),
        peer("RouteTable, no writer", work::<Table>(None, &feed)),
        peer("RwLock", work::<RwLock<Table>>(Some(1), &feed)),
        peer("ArcSwap", work::<ArcSwap<Table>>(Some(1), &feed)),
        peer("left-right", work::<LeftRight>(Some(1), &feed)),
    ];
    let title = format!(
        "{} IPv4 routes of {}: a reader, and a writer with {RATE} updates a second; {BURST} look-ups for \
         a pin, ns for each; medians of {rounds} rounds",
        feed.len(),
        feed.origin,
    );
    let columns = COLUMNS.map(|(bench, unit)| Column { bench, unit, n: feed.len() });
    let mut board = Board::new(title, "v4", columns.to_vec());
    board.add_rows(&contestants);
    for round in 0..rounds {
        let addresses = feed.addresses(count);
        for row in in_turn(round, contestants.len()) {
            let single = contestants[row].run(How::Single, &addresses, &feed);
            let burst = contestants[row].run(How::Burst, &addresses, &feed);
            note(&mut board, row, single, burst, round + 1 == rounds);
        }
    }
    report.show(&board)
}

/// The updates of both count.
fn note(board: &mut Board, row: usize, single: Times, mut burst: Times, is_last: bool) {
    board.note(row, 0, piece(&single.reads));
    board.note(row, 1, piece(&burst.reads));
    board.note(row, 2, quantile(&mut burst.reads, 0.999) / 1e3);
    board.note(row, 3, quantile(&mut burst.reads, 1.0) / 1e3);
    let mut updates = [single.updates, burst.updates].concat();
    if updates.is_empty() {
        return;
    }
    board.note(row, 4, quantile(&mut updates, 0.5));
    board.note(row, 5, quantile(&mut updates, 0.999) / 1e3);
    board.note(row, 6, quantile(&mut updates, 1.0) / 1e3);
    if is_last {
        let (made, due) = (updates.len(), single.due + burst.due);
        let pending = burst.pending;
        board.remark(
            row,
            format!("{made} of {due} calls were made, {pending} updates were pending"),
        );
    }
}

/// Nanoseconds of a look-up: the median of the pieces.
fn piece(reads: &[u32]) -> f64 {
    let pieces = reads.chunks_exact(PIECE / BURST);
    let mut sums: Vec<u32> = pieces.map(|piece| piece.iter().sum()).collect();
    quantile(&mut sums, 0.5) / PIECE as f64
}

fn quantile(times: &mut [u32], part: f64) -> f64 {
    let at = ((times.len() - 1) as f64 * part) as usize;
    (*times.select_nth_unstable(at).1).into()
}

impl<S: Shared> Work for Loops<S> {
    fn run(&self, how: How, addresses: &[Ipv4Addr], feed: &Feed) -> Times {
        let mut reads = vec![1; addresses.len() / BURST];
        let (is_started, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let writer = self.together.map(|together| {
                scope.spawn({
                    let (started, done) = (&is_started, &is_done);
                    move || write(&self.shared, together, || self.next(feed), started, done)
                })
            });
            let reader = self.shared.reader();
            look_up(&self.shared, &reader, how, &addresses[..WARM_UP], &mut reads);
            is_started.store(true, Ordering::Relaxed);
            look_up(&self.shared, &reader, how, addresses, &mut reads);
            is_done.store(true, Ordering::Relaxed);
            drop(reader);
            let written = writer.map(|writer| writer.join().expect("the writer does not panic"));
            let (updates, due) = written.unwrap_or_default();
            Times { reads, updates, due, pending: self.shared.pending() }
        })
    }
}

impl<S> Loops<S> {
    fn next(&self, feed: &Feed) -> Update {
        feed.update(self.at.fetch_add(1, Ordering::Relaxed))
    }
}

#[inline(never)]
fn look_up<S: Shared>(
    shared: &S,
    reader: &S::Reader,
    how: How,
    addresses: &[Ipv4Addr],
    ns: &mut [u32],
) {
    let mut last = Instant::now();
    for (addresses, ns) in black_box(addresses).chunks_exact(BURST).zip(ns) {
        let sum = match how {
            How::Single => shared.read(reader, |table| singles(table, addresses)),
            How::Burst => shared.read(reader, |table| burst(table, addresses)),
        };
        black_box(sum);
        let now = Instant::now();
        *ns = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
    }
}

#[inline(always)]
fn singles(table: &Table, addresses: &[Ipv4Addr]) -> u64 {
    let found = addresses.iter().filter_map(|address| table.lookup(address));
    found.map(|(prefix, &value)| u64::from(prefix.len()) << 32 | u64::from(value)).sum()
}

#[inline(always)]
fn burst(table: &Table, addresses: &[Ipv4Addr]) -> u64 {
    let mut found = [None; BURST];
    table.lookup_batch(addresses, &mut found);
    let found = found.into_iter().flatten();
    found.map(|(prefix, &value)| u64::from(prefix.len()) << 32 | u64::from(value)).sum()
}

/// Makes updates as they come due, until the reader is done; late ones at once. The times of the calls
/// that were made, and how many were due.
fn write<S: Shared>(
    shared: &S,
    together: usize,
    next: impl Fn() -> Update,
    is_started: &AtomicBool,
    is_done: &AtomicBool,
) -> (Vec<u32>, usize) {
    let mut times = Vec::with_capacity(1 << 20);
    while !is_started.load(Ordering::Relaxed) {
        spin_loop();
    }
    let (start, each) = (Instant::now(), Duration::from_secs(1) / RATE * together as u32);
    loop {
        let due = each * times.len() as u32;
        while start.elapsed() < due && !is_done.load(Ordering::Relaxed) {
            spin_loop();
        }
        if is_done.load(Ordering::Relaxed) {
            break;
        }
        let updates: Vec<_> = (0..together).map(|_| next()).collect();
        let begin = Instant::now();
        shared.update(&updates);
        times.push(begin.elapsed().as_nanos().try_into().unwrap_or(u32::MAX));
    }
    let due = start.elapsed().as_nanos() / each.as_nanos();
    (times, due as usize)
}
