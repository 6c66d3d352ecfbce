//! CPU scheduling of the threads of a software router.
//!
//! After its lookup a packet needs the CPU. Each flow, or each class of flows, has a *path*: an
//! input queue, a forwarding function, an output queue. A thread runs each path, each input port
//! and each output port. This module decides which thread runs next, when its work is worth a
//! switch, and for how long.
//!
//! ```text
//!     input port           paths                               output port
//!     ┌──────────┐        ┌ ▒▒▒▒ ─▸ function ─▸ ▒▒ ┐          ┌───────┐
//!     │ read     │ ──────▸├ ▒▒   ─▸ function ─▸ ▒▒ ├────────▸ │ write │      ▒ waiting packets,
//!     │ classify │        └ ▒▒▒  ─▸ function ─▸ ▒  ┘          └───────┘        in bounded queues
//!     └──────────┘
//!
//!     a thread:   set_occupancy       next: B packets and B slots     next: turn       finish
//!           ┌ Idle ─────────▸ Eligible ────────────────────▸ Active ────────────▸ Running ┐
//!           │                 ▲        or the timeout D expired                           │
//!           └─────────────────┴───────────────────────────────────────────────────────────┘
//!                     until its budget is used: k packets, or a timeslice G, or no work is left
//! ```
//!
//! | | |
//! |---|---|
//! | [`Scheduler`] | states, thresholds, timeouts, the choice of the next thread |
//! | [`Budget`], [`Policy`] | the limits of a turn: packets, or time |
//! | [`Throttle`] | the batching throttle: how much work is worth a switch |
//! | [`Adaptive`] | the throttle for a demand; admission of flows |
//! | [`Reservation`] | packets, cycles and buffers from a reserved bit rate |
//! | [`QueueEstimator`] | the polling interval of an input port |
//! | [`SwitchingPath`], [`BoundedQueue`] | the queues |
//! | [`pipeline`] | input, forwarding and output threads with the queues between them |
//! | [`simulator`] | simulated flows, to evaluate a policy |
//!
//! [`share`] has the shares of threads, and of queues of a link.
//!
//! # Guarantees
//!
//! 1. Shares are shares of processing. Switches are charged to no thread.
//! 2. A turn is at least one packet, and ends with the first packet after which its budget is used:
//!    a thread runs for at most a timeslice and one packet.
//! 3. Under a [`Throttle`] with the right cost of a switch, no thread gets a turn with fewer
//!    packets, or fewer free output slots, than its threshold, unless it is privileged and its
//!    timeout has expired. So with strict thresholds and without timeouts switching takes at most
//!    the allowed overhead.
//! 4. A privileged thread becomes active after its timeout. Then it competes like all others: if it
//!    has used at most its share, its turn comes after the processing that its run takes at its
//!    share, plus one longest turn of another thread, plus the switches between.
//! 5. An active thread gets its turn eventually, whatever the others do: a turn of zero measured
//!    time is charged as one packet. Two threads with a queue between them never wait for each
//!    other, if they were [configured with its size](ThreadConfig::buffers) and thresholds are
//!    not strict.
//! 6. A full queue rejects: it returns the packet, and counts it.
//!
//! # Livelock
//!
//! A router that gives priority to reading packets has no time left to forward them. Here input
//! threads are ordinary threads: with a share, and with a [`QueueEstimator`] so that idle ports
//! cost nothing. The estimator determines the timeout of the thread
//! ([`is_polled`](ThreadConfig::is_polled)), and under a throttle aims at its threshold.
//! Packets beyond the share are lost in the network card, before they have cost anything.
//!
//! # Cost
//!
//! O(log n) for each call, and 276 bytes per thread, all of it allocated by the constructor. Time
//! is an argument.
//!
//! # Example
//!
//! A router that classifies by a [`TrashMap`](crate::TrashMap): web traffic has a path of its own.
//!
//! ```
//! use core::time::Duration;
//! use flowtable::papers::schedule::share::{Order, ProportionalShare};
//! use flowtable::papers::schedule::{Budget, Policy, Scheduler, SwitchingPath, ThreadConfig};
//! use flowtable::{Timestamp, TrashMap};
//!
//! let us = Duration::from_micros;
//! let policy = Policy::Budget(Budget { packets: 16, slice: us(30) });
//! let shares = ProportionalShare::new(2, 100, Order::Wf2qPlus)?;
//! let mut scheduler = Scheduler::new(shares, us(1), policy)?;
//! let mut paths: [SwitchingPath<u16>; 2] =
//!     [SwitchingPath::new(8, 8, us(1))?, SwitchingPath::new(8, 8, us(5))?];
//! let mut threads = vec![];
//! for (path, share) in paths.iter().zip([30, 50]) {
//!     let config = ThreadConfig { buffers: 4, ..ThreadConfig::new(share, path.cost()) };
//!     threads.push(scheduler.add(config)?);
//! }
//! let classes: TrashMap<u16, _> = [(80, threads[1]), (443, threads[1])].into_iter().collect();
//!
//! let mut now = Timestamp::ZERO;
//! for port in [53, 80, 123, 443] {
//!     let thread = *classes.get(&port).unwrap_or(&threads[0]);
//!     paths[thread.index()].input.push(port).expect("the queue is not full");
//!     scheduler.set_occupancy(thread, paths[thread.index()].occupancy(), now)?;
//! }
//! let mut sent = vec![];
//! while let Some(turn) = scheduler.next(now) {
//!     let path = &mut paths[turn.thread.index()];
//!     let cost = path.cost();
//!     let packets = path.run(&turn, Some, |packets| cost * packets);
//!     now = now + us(1) + cost * packets;
//!     scheduler.finish(turn, cost * packets, path.occupancy(), now)?;
//!     sent.extend(std::iter::from_fn(|| path.output.pop()));
//! }
//! assert_eq!(sent, [53, 123, 80, 443]);
//! assert_eq!(scheduler.account().efficiency(), Some(12.0 / 14.0));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Paper: Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*,
//! SIGMETRICS 2001, sections 2 to 4. Differences: thresholds are capped at half of the slots of the
//! queues (the paper's are not, and starve a thread with fewer, or two threads with a queue between
//! them); the constants of the estimator are ours.

use core::error::Error;
use core::fmt;

use crate::papers::schedule::share::ShareError;

mod estimator;
mod path;
pub mod pipeline;
mod scheduler;
pub mod share;
pub mod simulator;
mod thread;
mod throttle;

pub use crate::papers::schedule::share::Thread;
pub use estimator::{EstimatorError, QueueEstimator, longest_sleep};
pub use path::{BoundedQueue, SwitchingPath};
pub use scheduler::Scheduler;
pub use thread::{Account, Budget, Occupancy, Policy, State, ThreadConfig, Turn};
pub use throttle::{
    Adaptive, Demand, Inadmissible, Overhead, Reservation, Throttle, ThrottleError,
};

/// The error of a scheduler or a queue. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// An error of the shares or their threads.
    Share(ShareError),
    /// The capacity of a queue is zero, or too large.
    Buffers,
    /// The cost of a packet is zero.
    NoCost,
    /// The shares of a scheduler or of a link have or had threads.
    SharesInUse,
    /// The allocation failed.
    NoMemory,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(error) => error.fmt(f),
            Self::Buffers => {
                f.write_str("the capacity of a queue must be at least 1 and at most 2^32 - 2")
            }
            Self::NoCost => f.write_str("the cost of a packet must be greater than zero"),
            Self::SharesInUse => f.write_str("the shares must be unused"),
            Self::NoMemory => f.write_str("the memory allocation failed"),
        }
    }
}

impl Error for ScheduleError {}

impl From<ShareError> for ScheduleError {
    fn from(error: ShareError) -> Self {
        Self::Share(error)
    }
}
