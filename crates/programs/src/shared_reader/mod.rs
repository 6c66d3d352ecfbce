//! Workers that look flows up, and one control thread that writes.
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
//! A worker holds no lock and writes nothing but counters, and those are inside the flow: an entry
//! is never replaced. Any worker may get any packet, since that is what a shared map is for.
//!
//! A flow that the control thread removes may be counted in until the bursts that have found it are
//! over. So its sums are final when it is dropped, not before: there they are added up.

mod control;
mod feed;
mod flow;
mod latency;
mod generated;
mod options;
mod outcome;
mod recorded;
mod report;
mod worker;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use flowtable::{ConcurrentMap, FlowKey};

pub use control::Control;
pub use feed::{Feed, Traffic};
pub use flow::{Ended, FlowState, Sums};
pub use latency::Latency;
pub use generated::Generated;
pub use options::Options;
pub use outcome::Outcome;
pub use recorded::Recorded;
pub use report::Report;

/// What all threads share.
pub type Flows = ConcurrentMap<FlowKey, FlowState>;

/// Packets that a worker takes at a time: as many as a network card hands over.
pub const BURST: usize = 32;

/// Packets that wait for the control thread at most. Those above are dropped.
const QUEUE: usize = 4096;

/// A packet, as far as this example looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub key: FlowKey,
    pub bytes: u64,
    /// Nanoseconds since the traffic began.
    pub time_ns: u64,
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub workers: usize,
    /// For so long, by the clock on the wall.
    pub duration: Duration,
    /// A flow ends when no packet has come for so long, by the packets' time.
    pub timeout: Duration,
}

/// Sets a flag however its scope is left: a control thread that panics must not leave workers that
/// run forever.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the workers, and is their control thread.
pub fn run(traffic: &Traffic, plan: Plan) -> Outcome {
    let (flows, ended) = (Flows::new(), Arc::new(Ended::default()));
    let feed = Feed::new(traffic);
    let mut control = Control::new(&flows, &ended, plan.timeout);
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let workers = thread::scope(|scope| {
        let (sender, receiver) = sync_channel(QUEUE);
        let stop_on_drop = SetOnDrop(&stop);
        let started: Vec<_> = (0..plan.workers)
            .map(|_| {
                let (flows, feed, stop, sender) = (&flows, &feed, &stop, sender.clone());
                scope.spawn(move || worker::work(flows, feed, &sender, stop))
            })
            .collect();
        // The queue ends when the last worker does.
        drop(sender);
        control.serve(&receiver, &feed, plan.duration);
        drop(stop_on_drop);
        control.finish(receiver, &feed);
        let joined = started.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let elapsed = start.elapsed();
    let taken = feed.taken();
    let (left, allocated, garbage) = (flows.len(), flows.allocation_size(), flows.garbage());
    let written = control.end();
    drop(flows);
    Outcome { workers, written, elapsed, taken, left, allocated, garbage, ended: ended.sums() }
}
