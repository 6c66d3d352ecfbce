//! The configuration of inputs, paths and outputs.

use crate::papers::schedule::estimator::QueueEstimator;
use crate::papers::schedule::share::ProportionalShare;
use crate::papers::schedule::thread::ThreadConfig;

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
    /// The number of packets in the card is known, as
    /// [`update_input`](super::Pipeline::update_input) notifies: the thread waits for its threshold
    /// as any other. Under a throttle, set the
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
