//! Turns for the threads of a software router.
//!
//! After the look-up a packet needs the processor. Each flow, or all flows that are treated alike, has a *path*: a
//! queue, a function that forwards its packets, a queue. A thread works for each path, for each input port and for
//! each output port. This module says which thread has its turn, when it is worth a switch, and for how long.
//!
//! ```text
//!     input port           paths                               output port
//!     ┌──────────┐        ┌ ▒▒▒▒ ─▸ function ─▸ ▒▒ ┐          ┌───────┐
//!     │ read     │ ──────▸├ ▒▒   ─▸ function ─▸ ▒▒ ├────────▸ │ write │        ▒ packets that wait, in queues
//!     │ classify │        └ ▒▒▒  ─▸ function ─▸ ▒  ┘          └───────┘          with so many places
//!     └──────────┘
//!
//!     a thread:       tell             next: B packets and B places,      next: its turn        finish
//!           ┌ Idle ─────────▸ Eligible ───────────────────────────▸ Active ─────────────▸ Running ┐
//!           │                 ▲        or the timeout D is over                                   │
//!           └─────────────────┴───────────────────────────────────────────────────────────────────┘
//!                             until its budget is used: k packets, or a timeslice G, or nothing is left
//! ```
//!
//! | | |
//! |---|---|
//! | [`Scheduler`] | states, thresholds, timeouts, whose turn it is |
//! | [`Budget`], [`Policy`] | what a turn is: so many packets, or so much time |
//! | [`Throttle`] | how much work has to wait to be worth a switch |
//! | [`Adaptive`] | which throttle a demand wants; whether a newcomer fits |
//! | [`QueueEstimator`] | how long an input port may sleep |
//! | [`SwitchingPath`], [`BoundedQueue`] | the queues |
//! | [`simulator`] | flows, to try a policy on |
//!
//! Shares are those of [`share`](crate::schedule::share).
//!
//! # What holds
//!
//! 1. Shares are those of processing. Switches are charged to nobody.
//! 2. A turn is at least one packet, and ends with the first packet after which its budget is used: a thread keeps the
//!    processor for a timeslice and one packet at most.
//! 3. Under a [`Throttle`] that knows what a switch costs no thread has a turn with fewer packets, or places for what
//!    comes of them, than its threshold says, unless it is privileged and has waited for its timeout. So
//!    with strict thresholds and without timeouts switching takes no more than the overhead that is allowed.
//! 4. A privileged thread becomes active after its timeout. Then it is as good as all others: if it has not used more
//!    than its share, its turn comes after as much processing as its run takes at its share, and one longest turn of
//!    another thread; and the switches between.
//! 5. A thread that is active has its turn sometime, whatever the others do: a turn that seems to take no time is
//!    charged as one packet. Two threads with a queue between them never wait for each other, if they were
//!    [told of it](ThreadConfig::with_buffers) and thresholds are not strict.
//! 6. What is full says so: queues give the packet back, and count it.
//!
//! # Livelock
//!
//! A router that reads packets before anything else reads packets that it then has no time to forward. Here input
//! threads are threads like others: with a share, and with a [`QueueEstimator`] so that idle ports cost nothing. What
//! comes beyond the share is lost in the card, where it has cost nothing yet.
//!
//! # Price
//!
//! O(log n) for each call, 236 bytes for a thread, all of it allocated at the beginning. Time is what the caller says.
//!
//! # Example
//!
//! A router that classifies by a [`TrashMap`](crate::TrashMap): web traffic has a path of its own.
//!
//! ```
//! use core::time::Duration;
//! use flowtable::schedule::{Budget, Policy, Scheduler, SwitchingPath, ThreadConfig};
//! use flowtable::{Timestamp, TrashMap};
//!
//! let us = Duration::from_micros;
//! let policy = Policy::Budget(Budget::both(16, us(30)));
//! let mut scheduler = Scheduler::new(2, 100, us(1), policy)?;
//! let mut paths: [SwitchingPath<u16>; 2] =
//!     [SwitchingPath::new(8, 8, us(1))?, SwitchingPath::new(8, 8, us(5))?];
//! let mut threads = vec![];
//! for (path, share) in paths.iter().zip([30, 50]) {
//!     threads.push(scheduler.add(ThreadConfig::new(share, path.cost()).with_buffers(8, 8))?);
//! }
//! let classes: TrashMap<u16, _> = [(80, threads[1]), (443, threads[1])].into_iter().collect();
//!
//! let mut now = Timestamp::ZERO;
//! for port in [53, 80, 123, 443] {
//!     let thread = *classes.get(&port).unwrap_or(&threads[0]);
//!     paths[thread.index()].arrive(port).expect("there is room");
//!     scheduler.tell(thread, paths[thread.index()].occupancy(), now)?;
//! }
//! let mut sent = vec![];
//! while let Some(turn) = scheduler.next(now) {
//!     let path = &mut paths[turn.thread().index()];
//!     let cost = path.cost();
//!     let packets = path.run(&turn, Some, |packets| cost * packets);
//!     now = now + us(1) + cost * packets;
//!     scheduler.finish(turn, cost * packets, path.occupancy(), now)?;
//!     sent.extend(std::iter::from_fn(|| path.take()));
//! }
//! assert_eq!(sent, [53, 123, 80, 443]);
//! assert_eq!(scheduler.account().efficiency(), Some(12.0 / 14.0));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Paper: Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*, SIGMETRICS 2001. We
//! differ: thresholds are capped at half of the places of the queues (the paper's are not, and starve a thread with
//! fewer, or two threads with a queue between them); the numbers of the estimator, and the choice of T and G from a demand,
//! are ours.

use core::error::Error;
use core::fmt;

use crate::schedule::share::ShareError;

mod adaptive;
mod budget;
mod estimator;
mod path;
mod queue;
mod scheduler;
pub mod share;
pub mod simulator;
mod thread;
mod throttle;

pub use crate::schedule::share::Thread;
pub use adaptive::{Adaptive, Demand, Inadmissible};
pub use budget::{Budget, Policy, Turn};
pub use estimator::{EstimatorError, QueueEstimator, longest_sleep};
pub use path::SwitchingPath;
pub use queue::BoundedQueue;
pub use scheduler::{Account, ForeignTurn, Scheduler};
pub use thread::{Occupancy, State, ThreadConfig};
pub use throttle::{Overhead, Throttle, ThrottleError};

/// Why something is not done. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Shares, or the threads that have them.
    Share(ShareError),
    /// A queue without places, or with more than can be counted.
    Buffers,
    /// Packets that cost nothing.
    NoCost,
    /// The memory cannot be had.
    NoMemory,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(error) => error.fmt(f),
            Self::Buffers => f.write_str("a queue needs one place at least, and 2^32 - 2 at most"),
            Self::NoCost => f.write_str("packets have to cost something"),
            Self::NoMemory => f.write_str("the memory cannot be had"),
        }
    }
}

impl Error for ScheduleError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Share(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ShareError> for ScheduleError {
    fn from(error: ShareError) -> Self {
        Self::Share(error)
    }
}
