//! The configuration of inputs, paths and outputs.

use crate::papers::schedule::budget::Budget;
use crate::papers::schedule::estimator::QueueEstimator;
use crate::papers::schedule::link::LinkScheduler;
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
    /// as any other. Under a throttle, declare the size of the card
    /// ([`with_unshared_buffers`](ThreadConfig::with_unshared_buffers)).
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
/// let input = Input::new(thread).with_polling(Polling::Estimated(estimator)).with_only_path(0);
/// assert_ne!(input, Input::new(thread));
/// # Ok::<(), flowtable::papers::schedule::EstimatorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    pub(super) thread: ThreadConfig,
    pub(super) polling: Polling,
    pub(super) only_path: Option<usize>,
}

impl Input {
    /// Creates the configuration of an input port with this thread, which polls all the time.
    ///
    /// The timeout of a thread that polls is the time between polls; the timeout of other threads
    /// has no effect.
    #[must_use]
    pub const fn new(thread: ThreadConfig) -> Self {
        Self { thread, polling: Polling::Always, only_path: None }
    }

    /// Sets when the thread has turns.
    #[must_use]
    pub const fn with_polling(self, polling: Polling) -> Self {
        Self { polling, ..self }
    }

    /// Declares that all packets of the port have this path: its thread has turns only if the
    /// input queue of that path has room.
    ///
    /// Paper: Qie et al., section 3.1: the output queue of a thread must not be full.
    #[must_use]
    pub const fn with_only_path(self, path: usize) -> Self {
        Self { only_path: Some(path), ..self }
    }
}

/// The configuration of a path.
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::pipeline::Path;
/// use flowtable::papers::schedule::{Budget, ThreadConfig};
///
/// let thread = ThreadConfig::new(10, Duration::from_micros(2));
/// // To the first output, with half of its link, and with turns of single packets.
/// let path = Path::new(thread, 128).with_output(0, 50).with_budget(Budget::packets(1));
/// assert_ne!(path, Path::new(thread, 128));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    pub(super) thread: ThreadConfig,
    pub(super) capacity: usize,
    pub(super) budget: Budget,
    pub(super) output: Option<(usize, u32)>,
}

impl Path {
    /// Creates the configuration of a path with this thread and this capacity of both queues, which
    /// leads nowhere: its function consumes all packets. The capacities replace the capacities of
    /// [`with_buffers`](ThreadConfig::with_buffers).
    #[must_use]
    pub const fn new(thread: ThreadConfig, capacity: usize) -> Self {
        Self { thread, capacity, budget: Budget::UNTIL_EMPTY, output: None }
    }

    /// Sets the output of the path, and its share of the link.
    #[must_use]
    pub const fn with_output(self, output: usize, share: u32) -> Self {
        Self { output: Some((output, share)), ..self }
    }

    /// Sets a limit of turns, in addition to the limit of the policy.
    #[must_use]
    pub const fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }
}

/// The configuration of an output port: its thread, and the scheduler of its link.
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::pipeline::{Output, Path, Pipeline};
/// use flowtable::papers::schedule::{Budget, LinkScheduler, Policy, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let mut pipeline: Pipeline<u32> =
///     Pipeline::new(2, 100, us(1), Policy::Budget(Budget::packets(16)))?;
/// // Two queues at most, with shares of 100.
/// let output = Output::new(ThreadConfig::new(10, us(1)), LinkScheduler::new(2, 100)?);
/// let link = pipeline.add_output(output)?;
/// pipeline.add_path(Path::new(ThreadConfig::new(10, us(1)), 64).with_output(link, 100))?;
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Output {
    pub(super) thread: ThreadConfig,
    pub(super) link: LinkScheduler,
}

impl Output {
    /// Creates the configuration of an output port, with a link scheduler that has no queues yet.
    ///
    /// Its threshold is capped at half of the slots of the smallest output queue of its paths. If
    /// the link has a ring of fewer slots, under a throttle, declare its size
    /// ([`with_unshared_buffers`](ThreadConfig::with_unshared_buffers)).
    #[must_use]
    pub const fn new(thread: ThreadConfig, link: LinkScheduler) -> Self {
        Self { thread, link }
    }
}
