//! A pipeline of threads: input, forwarding and output of a router on one CPU.
//!
//! ```text
//!     card    input thread         paths                           output thread     link
//!             READ, CLASSIFY,                                      SELECT, DEQUEUE,
//!             ENQUEUE          ┌ ▒▒▒▒ ─▸ forwarding thread ─▸ ▒▒ ┐ WRITE
//!     ░░░░ ─▸ poll ───────────▸├ ▒▒   ─▸ forwarding thread ─▸ ▒▒ ├─▸ link scheduler ─▸ ░░
//!             sleeps D         └ ▒▒▒  ─▸ forwarding thread ─▸ ▒  ┘
//!
//!     loop    turn = pipeline.next(now)     the thread, by shares, thresholds and timeouts
//!             pipeline.run(turn, device)    reads, forwards or writes packets until its budget is
//!                                           used; measures it, and updates all occupancies
//! ```
//!
//! The [`Pipeline`] owns the queues and the scheduler. The [`Device`] of the caller has the cards,
//! functions, links and the clock, which may be simulated.
//!
//! # Guarantees
//!
//! 1. Each packet that was read is discarded by the device, dropped by a full input queue, refused
//!    or consumed by its function, written, or still in a queue. On a path without an output its
//!    function consumes all packets. Packets of a path stay in order.
//! 2. A forwarding thread has a turn only if its output queue has room: a packet that was forwarded
//!    is not dropped.
//! 3. The path of a packet is not known before it is read, so a full input queue drops. If all
//!    packets of a card [have one path](Input::only_path), its thread has a turn only if that
//!    path has room, and excess packets stay in the card.
//! 4. Ports that poll: see [`Polling`].
//!
//! # Cost
//!
//! O(log threads + log paths) for each packet and each turn, and O(log threads) for each packet and
//! each input of which its path is the only one. Queues are allocated when a path is added, and
//! nothing after that.
//!
//! # Example
//!
//! A card, two functions, and a link that they share in halves. The clock is simulated.
//!
//! ```
//! use core::time::Duration;
//! use flowtable::Timestamp;
//! use flowtable::papers::schedule::pipeline::{
//!     Device, Input, LinkShare, Output, Path, Pipeline, Polling, Reading,
//! };
//! use flowtable::papers::schedule::share::{Order, ProportionalShare};
//! use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};
//!
//! struct Router {
//!     now: Timestamp,
//!     card: Vec<u16>,
//!     sent: Vec<u16>,
//! }
//!
//! impl Device for Router {
//!     type Packet = u16;
//!
//!     fn now(&self) -> Timestamp {
//!         self.now
//!     }
//!
//!     fn read(&mut self, _card: usize) -> Reading<u16> {
//!         let Some(port) = self.card.pop() else { return Reading::Empty };
//!         self.now = self.now + Duration::from_micros(2);
//!         Reading::Packet { path: usize::from(port == 80), packet: port }
//!     }
//!
//!     fn forward(&mut self, path: usize, packet: u16) -> Option<u16> {
//!         self.now = self.now + Duration::from_micros([1, 10][path]);
//!         Some(packet)
//!     }
//!
//!     fn write(&mut self, _link: usize, _path: usize, packet: u16) {
//!         self.now = self.now + Duration::from_micros(1);
//!         self.sent.push(packet);
//!     }
//!
//!     fn length(&self, _packet: &u16) -> u64 {
//!         1 // the link is shared by packets
//!     }
//! }
//!
//! let us = Duration::from_micros;
//! let policy = Policy::Budget(Budget::packets(16));
//! let shares = ProportionalShare::new(4, 100, Order::Wf2qPlus)?;
//! let mut pipeline: Pipeline<u16> = Pipeline::new(shares, us(1), policy)?;
//! let link = ProportionalShare::new(2, 100, Order::Wf2qPlus)?;
//! let thread = ThreadConfig::new(10, us(1));
//! let output = pipeline.add_output(Output { thread, link })?;
//! for (share, cost) in [(20, us(1)), (50, us(10))] {
//!     let (thread, output) = (ThreadConfig::new(share, cost), LinkShare { output, share: 50 });
//!     pipeline.add_path(Path { thread, capacity: 64, output: Some(output) })?;
//! }
//! let thread = ThreadConfig::new(20, us(2));
//! let card =
//!     pipeline.add_input(Input { thread, polling: Polling::Always, only_path: None })?;
//!
//! let mut router = Router { now: Timestamp::ZERO, card: vec![53, 80, 53, 80], sent: vec![] };
//! while router.sent.len() < 4 {
//!     let turn = pipeline.next(router.now).expect("the card is polled all the time");
//!     router.now = router.now + us(1); // the switch
//!     pipeline.run(turn, &mut router)?;
//! }
//! router.sent.sort();
//! assert_eq!(router.sent, [53, 53, 80, 80]);
//! assert_eq!((pipeline.path(1).input.longest, pipeline.sleep(card)), (2, us(0)));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Paper: Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*,
//! SIGMETRICS 2001, sections 2.1 and 3. Differences: a path may lead nowhere, for packets that the
//! router consumes.

mod stages;
mod turns;

use core::time::Duration;

use crate::papers::schedule::estimator::QueueEstimator;
use crate::papers::schedule::share::ProportionalShare;
use crate::papers::schedule::thread::ThreadConfig;
use crate::timestamp::Timestamp;

pub use stages::Pipeline;

/// The result of reading a card.
///
/// Paper: Qie et al., section 2.1: READ and CLASSIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<P> {
    /// The card has no packet.
    Empty,
    /// A packet was read that has no path, and was discarded.
    Discarded,
    /// A packet, classified.
    Packet {
        /// The index of its path.
        path: usize,
        /// The packet.
        packet: P,
    },
}

/// The cards, functions, links and the clock of a [`Pipeline`].
///
/// Inputs, paths and outputs are given by index, in the order in which they were added. A simulated
/// clock advances in `read`, `forward`, `write` and `empty_poll` by their costs.
///
/// Paper: Qie et al., section 2.1.
pub trait Device {
    /// A packet.
    type Packet;

    /// Returns the time.
    fn now(&self) -> Timestamp;

    /// Reads the next packet of a card, and classifies it.
    fn read(&mut self, input: usize) -> Reading<Self::Packet>;

    /// Processes a packet. `None` if the packet is refused, or consumed.
    ///
    /// A path without an output consumes all packets: one that is returned is discarded, and not
    /// counted.
    fn forward(&mut self, path: usize, packet: Self::Packet) -> Option<Self::Packet>;

    /// Writes a packet of a path to a link, which has [room](Self::room).
    fn write(&mut self, output: usize, path: usize, packet: Self::Packet);

    /// Returns the length of a packet, in the units of the shares of links: the bytes that it takes
    /// on the link, or its time there. With a constant, links are shared by packets. It must not
    /// panic.
    fn length(&self, packet: &Self::Packet) -> u64;

    /// Called after a poll that has found no packet. Returns the time to charge the thread in
    /// addition to the time that has passed: zero, or the time of the switch, which no packet
    /// needed. The time is charged to the share of the thread, and not to the account.
    fn empty_poll(&mut self, input: usize) -> Duration {
        let _ = input;
        Duration::ZERO
    }

    /// Returns the number of packets of a card, for inputs which are
    /// [notified](Polling::Notified).
    fn waiting(&self, input: usize) -> u32 {
        let _ = input;
        0
    }

    /// Returns the number of packets for which a link has room. Unlimited by default.
    fn room(&self, output: usize) -> u32 {
        let _ = output;
        u32::MAX
    }
}

/// When an input thread has turns.
///
/// Paper: Qie et al., sections 3.2 and 4.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polling {
    /// The thread polls whenever its share allows. Empty polls use up its share.
    #[default]
    Always,
    /// The thread sleeps between polls for a time that the estimator determines: the timeout `D_i`
    /// of the thread. Under a [`Throttle`](crate::papers::schedule::Throttle) the estimator aims at
    /// the threshold `B_i` of the thread, or more.
    Estimated(QueueEstimator),
    /// The number of packets in the card is known, as [`Pipeline::update`] notifies: the thread
    /// waits for its threshold as any other. Under a throttle, set the
    /// [`buffers`](ThreadConfig::buffers) of the thread to the size of the card.
    Notified,
}

/// The configuration of an input port.
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::pipeline::{Input, Polling};
/// use flowtable::papers::schedule::{QueueEstimator, ThreadConfig, longest_sleep};
///
/// let thread = ThreadConfig::new(10, Duration::from_micros(2));
/// let estimator = QueueEstimator::new(16, longest_sleep(64, 148_800))?;
/// let polling = Polling::Estimated(estimator);
/// let input = Input { thread, polling, only_path: Some(0) };
/// assert_ne!(input, Input { polling: Polling::Always, ..input });
/// # Ok::<(), flowtable::papers::schedule::EstimatorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The thread. Its timeout has effect only if the port is [`Notified`](Polling::Notified): the
    /// polling sets the time between polls of other ports.
    pub thread: ThreadConfig,
    /// When the thread has turns.
    pub polling: Polling,
    /// The path of all packets of the port, if they have one path: the thread has turns only if
    /// the input queue of that path has room.
    ///
    /// Paper: Qie et al., section 3.1: the output queue of a thread must not be full.
    pub only_path: Option<usize>,
}

/// The configuration of a path.
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::pipeline::{LinkShare, Path};
/// use flowtable::papers::schedule::{Budget, ThreadConfig};
///
/// // To the first output, with half of its link, and with turns of single packets.
/// let thread = ThreadConfig::new(10, Duration::from_micros(2));
/// let thread = ThreadConfig { budget: Budget::packets(1), ..thread };
/// let output = Some(LinkShare { output: 0, share: 50 });
/// let path = Path { thread, capacity: 128, output };
/// assert_ne!(path, Path { output: None, ..path });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The thread. The capacity replaces its [`buffers`](ThreadConfig::buffers).
    pub thread: ThreadConfig,
    /// The capacity of both queues.
    pub capacity: usize,
    /// The output, if the function does not consume all packets.
    pub output: Option<LinkShare>,
}

/// The output of a path, and its share of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkShare {
    /// The index of the output.
    pub output: usize,
    /// The share of the whole of the link.
    pub share: u32,
}

/// The configuration of an output port: its thread, and the scheduler of its link.
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::pipeline::{LinkShare, Output, Path, Pipeline};
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
/// use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let shares = ProportionalShare::new(2, 100, Order::Wf2qPlus)?;
/// let policy = Policy::Budget(Budget::packets(16));
/// let mut pipeline: Pipeline<u32> = Pipeline::new(shares, us(1), policy)?;
/// // Two queues at most, with shares of 100.
/// let link = ProportionalShare::new(2, 100, Order::Wf2qPlus)?;
/// let thread = ThreadConfig::new(10, us(1));
/// let output = pipeline.add_output(Output { thread, link })?;
/// let output = Some(LinkShare { output, share: 100 });
/// pipeline.add_path(Path { thread, capacity: 64, output })?;
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Output {
    /// The thread. Its threshold is capped at half of the slots of the smallest output queue of its
    /// paths. If the link has a ring of fewer slots, under a throttle, set its
    /// [`buffers`](ThreadConfig::buffers).
    pub thread: ThreadConfig,
    /// The shares of the paths in the bytes of the link: unused ones.
    pub link: ProportionalShare,
}
