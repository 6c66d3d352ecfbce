//! Worker threads that look flows up, and a control thread that writes.
//!
//! ```text
//!     Traffic ─► Feed ─► worker ─┬─► ConcurrentMap: counts in the flow, where the flow is
//!                  │     worker ─┤        ▲
//!                  │     worker ─┘        │ inserts, removes
//!                  │       └─ not found ─►│
//!                  │          (a queue)  Control
//!                  └─ the packets' time ──┘
//! ```
//!
//! A worker holds no lock and writes only counters inside the flow: an entry is never replaced. Any
//! worker may get any packet, since the map is shared.
//!
//! Workers may count in a removed flow until the bursts that have found it are over. So its sums
//! are final when it is dropped, not before: they are added up there.

mod control;
mod feed;
mod flow;
mod generated;
mod latency;
mod options;
mod outcome;
mod recorded;
mod report;
mod worker;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use flowtable::{ConcurrentMap, FlowKey};

pub use control::Control;
pub use feed::{Feed, Traffic};
pub use flow::{Ended, FlowState, Sums};
pub use generated::Generated;
pub use latency::Latency;
pub use options::Options;
pub use outcome::Outcome;
pub use recorded::Recorded;
pub use report::Report;

/// The map that all threads share.
pub type Flows = ConcurrentMap<FlowKey, FlowState>;

/// Packets per burst, as a network card delivers them.
pub const BURST: usize = 32;

/// Capacity of the queue to the control thread. Packets beyond are dropped.
const QUEUE: usize = 4096;

/// The fields of a packet that this program needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub key: FlowKey,
    pub bytes: u64,
    /// Nanoseconds since the traffic began.
    pub time_ns: u64,
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub workers: usize,
    /// Wall clock time of the run.
    pub duration: Duration,
    /// Time without a packet after which a flow ends, by the packets' time.
    pub timeout: Duration,
}

/// Sets a flag when dropped, so that workers stop even if the control thread panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the workers; the calling thread is the control thread.
///
/// # Errors
///
/// If the operating system does not start as many threads.
pub fn run(traffic: &Traffic, plan: Plan) -> io::Result<Outcome> {
    let (flows, ended) = (Flows::new(), Arc::new(Ended::default()));
    let feed = Feed::new(traffic);
    let mut control = Control::new(&flows, &ended, plan.timeout);
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let workers = thread::scope(|scope| -> io::Result<Vec<_>> {
        let (sender, receiver) = sync_channel(QUEUE);
        let stop_on_drop = SetOnDrop(&stop);
        let started: io::Result<Vec<_>> = (0..plan.workers)
            .map(|_| {
                let (flows, feed, stop, sender) = (&flows, &feed, &stop, sender.clone());
                let work = move || worker::work(flows, feed, &sender, stop);
                thread::Builder::new().spawn_scoped(scope, work)
            })
            .collect();
        // The threads that were started end with `stop_on_drop`.
        let started = started?;
        // The queue closes when the last worker ends.
        drop(sender);
        control.serve(&receiver, &feed, plan.duration);
        drop(stop_on_drop);
        control.finish(receiver, &feed);
        let joined = started.into_iter().map(thread::ScopedJoinHandle::join);
        Ok(joined.map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic))).collect())
    })?;
    let elapsed = start.elapsed();
    let taken = feed.taken();
    let (left, allocated, garbage) = (flows.len(), flows.allocation_size(), flows.garbage());
    let written = control.end();
    drop(flows);
    let ended = ended.sums();
    Ok(Outcome { workers, written, elapsed, taken, left, allocated, garbage, ended })
}
