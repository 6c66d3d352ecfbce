//! The stages of a pipeline.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Device, Input, LinkShare, Output, Path, Polling};
use crate::invariant::{InvariantError, ensure};
use crate::papers::schedule::ScheduleError;
use crate::papers::schedule::estimator::QueueEstimator;
use crate::papers::schedule::path::SwitchingPath;
use crate::papers::schedule::scheduler::Scheduler;
use crate::papers::schedule::share::{ProportionalShare, Thread};
use crate::papers::schedule::thread::ThreadConfig;
use crate::papers::schedule::thread::{Policy, Turn};
use crate::timestamp::Timestamp;

/// The stage of a thread, with its index among the stages of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Input(usize),
    Path(usize),
    Output(usize),
}

#[derive(Clone, Debug)]
pub(super) struct InputStage {
    pub(super) thread: Thread,
    pub(super) estimator: Option<QueueEstimator>,
    pub(super) is_notified: bool,
    pub(super) only_path: Option<usize>,
    /// The packets that the next poll is expected to read.
    pub(super) expected: u32,
}

#[derive(Clone, Debug)]
pub(super) struct PathStage<P> {
    pub(super) thread: Thread,
    pub(super) queues: SwitchingPath<P>,
    /// The output, and the queue of its link.
    pub(super) output: Option<(usize, Thread)>,
    /// The inputs all of whose packets have this path.
    pub(super) fed_by: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct OutputStage {
    pub(super) thread: Thread,
    pub(super) link: ProportionalShare,
    /// The paths by the queues of the link.
    pub(super) paths: Vec<usize>,
    /// The packets in the output queues of all of them.
    pub(super) queued: u32,
    /// The room that the link has reported.
    pub(super) room: u32,
}

/// A pipeline of input, forwarding and output threads with the queues between them.
///
/// The caller [adds](Self::add_output) the threads, requests the [next](Self::next) turn and
/// [runs](Self::run) it on its [`Device`]. Inputs, paths and outputs have indices from 0, in the
/// order in which they are added. Outputs are added before their paths, and paths before the inputs
/// [of which they are the only path](Input::only_path). The
/// [module](crate::papers::schedule::pipeline) has the guarantees and an example.
///
/// | method | cost, for n threads |
/// |---|---|
/// | `next` | O(log n) |
/// | `enqueue` | O(log n), and that again for each input whose only path is concerned |
/// | `update` | O(log n) for each input and output |
/// | `run` | O(log n) for each packet of the turn |
/// | `set_policy` | O(n log n) |
/// | `path`, `sleep`, `scheduler` | O(1) |
///
/// Paper: Qie et al., section 2.1.
#[derive(Clone, Debug)]
pub struct Pipeline<P> {
    pub(super) scheduler: Scheduler,
    /// By the index of the thread.
    pub(super) stages: Vec<Stage>,
    pub(super) inputs: Vec<InputStage>,
    pub(super) paths: Vec<PathStage<P>>,
    pub(super) outputs: Vec<OutputStage>,
}

impl<P> Pipeline<P> {
    /// Creates an empty pipeline with the shares that its threads will have, the cost of a switch,
    /// and the policy of turns.
    ///
    /// # Errors
    ///
    /// If the shares have or had threads, or the allocation fails.
    pub fn new(
        shares: ProportionalShare,
        switch: Duration,
        policy: Policy,
    ) -> Result<Self, ScheduleError> {
        let scheduler = Scheduler::new(shares, switch, policy)?;
        let (stages, inputs, paths, outputs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { scheduler, stages, inputs, paths, outputs })
    }

    /// Adds an output port. Returns its index.
    ///
    /// # Errors
    ///
    /// If the link has or had queues, the scheduler refuses the thread, or the allocation fails.
    pub fn add_output(&mut self, output: Output) -> Result<usize, ScheduleError> {
        let Output { thread, link } = output;
        if !link.is_unused() {
            return Err(ScheduleError::SharesInUse);
        }
        let thread = ThreadConfig { is_polled: false, ..thread };
        reserve(&mut self.outputs)?;
        let thread = self.add_thread(thread, Stage::Output(self.outputs.len()))?;
        let (paths, queued, room) = (Vec::new(), 0, u32::MAX);
        self.outputs.push(OutputStage { thread, link, paths, queued, room });
        Ok(self.outputs.len() - 1)
    }

    /// Adds a path. Returns its index.
    ///
    /// # Errors
    ///
    /// If the scheduler refuses the thread or the queues, the link refuses the share, or the
    /// allocation fails.
    ///
    /// # Panics
    ///
    /// If its output has not been added.
    pub fn add_path(&mut self, path: Path) -> Result<usize, ScheduleError> {
        let Path { thread, capacity, output } = path;
        let queues = SwitchingPath::new(capacity, capacity, thread.cost)?;
        reserve(&mut self.paths)?;
        if let Some(LinkShare { output, .. }) = output {
            reserve(&mut self.outputs[output].paths)?;
        }
        let buffers = (capacity as u32).div_ceil(2);
        let config = ThreadConfig { buffers, is_polled: false, ..thread };
        let thread = self.add_thread(config, Stage::Path(self.paths.len()))?;
        let output = match output {
            Some(LinkShare { output: at, share }) => {
                let OutputStage { link, paths, .. } = &mut self.outputs[at];
                let queue = link.add(share).inspect_err(|_| {
                    self.stages.pop();
                    let _ = self.scheduler.remove(thread);
                })?;
                paths.push(self.paths.len());
                let writes = self.outputs[at].thread;
                self.scheduler.cap_threshold(writes, buffers);
                Some((at, queue))
            }
            None => None,
        };
        self.paths.push(PathStage { thread, queues, output, fed_by: Vec::new() });
        Ok(self.paths.len() - 1)
    }

    /// Adds an input port. Returns its index. A port that polls is due at once.
    ///
    /// # Errors
    ///
    /// If the scheduler refuses the thread, or the allocation fails.
    ///
    /// # Panics
    ///
    /// If its only path has not been added.
    pub fn add_input(&mut self, input: Input) -> Result<usize, ScheduleError> {
        let Input { thread, polling, only_path } = input;
        reserve(&mut self.inputs)?;
        if let Some(path) = only_path {
            reserve(&mut self.paths[path].fed_by)?;
        }
        let is_notified = polling == Polling::Notified;
        let timeout = if is_notified { thread.timeout } else { None };
        let config = ThreadConfig { is_polled: !is_notified, timeout, ..thread };
        let at = self.inputs.len();
        let thread = self.add_thread(config, Stage::Input(at))?;
        let estimator = match polling {
            Polling::Estimated(estimator) => Some(estimator),
            Polling::Always | Polling::Notified => None,
        };
        let expected = u32::from(!is_notified);
        self.inputs.push(InputStage { thread, estimator, is_notified, only_path, expected });
        if let Some(path) = only_path {
            let slots = self.paths[path].queues.input.capacity() as u32;
            self.scheduler.cap_threshold(thread, slots.div_ceil(2));
            self.paths[path].fed_by.push(at);
        }
        self.aim(at);
        self.report(Stage::Input(at), Timestamp::ZERO);
        Ok(at)
    }

    fn add_thread(&mut self, config: ThreadConfig, stage: Stage) -> Result<Thread, ScheduleError> {
        reserve(&mut self.stages)?;
        let thread = self.scheduler.add(config)?;
        debug_assert_eq!(thread.index(), self.stages.len(), "no thread is ever removed");
        self.stages.push(stage);
        Ok(thread)
    }

    /// Sets the policy for all turns from now on. O(threads × log threads).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::pipeline::Pipeline;
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::{Budget, Policy};
    ///
    /// let policy = |packets| Policy::Budget(Budget::packets(packets));
    /// let shares = ProportionalShare::new(8, 100, Order::Wf2qPlus)?;
    /// let mut pipeline: Pipeline<u8> =
    ///     Pipeline::new(shares, Duration::from_micros(1), policy(1))?;
    /// pipeline.set_policy(policy(16));
    /// assert_eq!((pipeline.scheduler().wake_at(), pipeline.validate()), (None, Ok(())));
    /// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
    /// ```
    pub fn set_policy(&mut self, policy: Policy) {
        self.scheduler.set_policy(policy);
        (0..self.inputs.len()).for_each(|input| self.aim(input));
    }

    /// Lets the estimator of an input aim at the threshold of its thread.
    fn aim(&mut self, input: usize) {
        let InputStage { thread, estimator, .. } = &mut self.inputs[input];
        if let (Some(estimator), Some(threshold)) = (estimator, self.scheduler.threshold(*thread)) {
            estimator.set_least(threshold);
        }
    }

    /// Appends a packet to the input queue of a path, for packets that no input thread reads.
    /// O((1 + inputs of which it is the only path) × log threads).
    ///
    /// # Errors
    ///
    /// Returns the packet if the queue is full, which counts it as dropped.
    ///
    /// # Panics
    ///
    /// If there is no such path.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::schedule::pipeline::{Path, Pipeline};
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};
    ///
    /// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
    /// let shares = ProportionalShare::new(1, 100, Order::Wf2qPlus)?;
    /// let policy = Policy::Budget(Budget::packets(16));
    /// let mut pipeline = Pipeline::new(shares, us(1), policy)?;
    /// let thread = ThreadConfig::new(50, us(1));
    /// let path = pipeline.add_path(Path { thread, capacity: 2, output: None })?;
    /// assert_eq!(['a', 'b', 'c'].map(|packet| pipeline.enqueue(path, packet, now).is_ok()),
    ///            [true, true, false]);
    /// assert_eq!((pipeline.path(path).input.len(), pipeline.next(now).is_some()), (2, true));
    /// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
    /// ```
    pub fn enqueue(&mut self, path: usize, packet: P, now: Timestamp) -> Result<(), P> {
        self.paths[path].queues.input.push(packet)?;
        self.report(Stage::Path(path), now);
        self.report_feeders(path, now);
        Ok(())
    }

    /// Returns the next turn, if any thread may run: run it with [`run`](Self::run). O(log threads)
    /// on average.
    pub fn next(&mut self, now: Timestamp) -> Option<Turn> {
        self.scheduler.next(now)
    }

    /// Reports the packets of the cards whose threads are [notified](Polling::Notified), and the
    /// room of the links. Call it when packets have arrived, or a link has sent. O(log threads) for
    /// each card and link.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::schedule::pipeline::{
    ///     Device, Input, Output, Pipeline, Polling, Reading,
    /// };
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::{Budget, Policy, ThreadConfig};
    ///
    /// /// A card with three packets without a path, and a link that is busy.
    /// struct Card(u32);
    ///
    /// impl Device for Card {
    ///     type Packet = ();
    ///
    ///     fn now(&self) -> Timestamp {
    ///         Timestamp::ZERO
    ///     }
    ///
    ///     fn read(&mut self, _: usize) -> Reading<()> {
    ///         self.0 -= 1;
    ///         Reading::Discarded
    ///     }
    ///
    ///     fn forward(&mut self, _: usize, packet: ()) -> Option<()> {
    ///         Some(packet)
    ///     }
    ///
    ///     fn write(&mut self, _: usize, _: usize, _: ()) {}
    ///
    ///     fn length(&self, _: &()) -> u64 {
    ///         1
    ///     }
    ///
    ///     fn waiting(&self, _: usize) -> u32 {
    ///         self.0
    ///     }
    ///
    ///     fn room(&self, _: usize) -> u32 {
    ///         0
    ///     }
    /// }
    ///
    /// let us = Duration::from_micros;
    /// let shares = |whole| ProportionalShare::new(2, whole, Order::Wf2qPlus);
    /// let policy = Policy::Budget(Budget::packets(2));
    /// let mut pipeline = Pipeline::new(shares(100)?, us(1), policy)?;
    /// let thread = ThreadConfig::new(50, us(1));
    /// pipeline.add_output(Output { thread, link: shares(1)? })?;
    /// let polling = Polling::Notified;
    /// pipeline.add_input(Input { thread, polling, only_path: None })?;
    /// let mut device = Card(3);
    /// assert_eq!(pipeline.next(device.now()), None);
    /// pipeline.update(&device);
    /// let turn = pipeline.next(device.now()).unwrap();
    /// pipeline.run(turn, &mut device)?;
    /// assert_eq!(device.0, 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn update(&mut self, device: &impl Device<Packet = P>) {
        for input in 0..self.inputs.len() {
            if self.inputs[input].is_notified {
                self.inputs[input].expected = device.waiting(input);
                self.report(Stage::Input(input), device.now());
            }
        }
        for output in 0..self.outputs.len() {
            self.outputs[output].room = device.room(output);
            self.report(Stage::Output(output), device.now());
        }
    }

    /// Returns the queues of a path.
    ///
    /// # Panics
    ///
    /// If there is no such path.
    #[must_use]
    pub fn path(&self, path: usize) -> &SwitchingPath<P> {
        &self.paths[path].queues
    }

    /// Returns the time that an input thread sleeps between polls: zero without an estimator.
    ///
    /// # Panics
    ///
    /// If there is no such input.
    #[must_use]
    pub fn sleep(&self, input: usize) -> Duration {
        self.inputs[input].estimator.map_or(Duration::ZERO, |estimator| estimator.sleep())
    }

    /// Returns the scheduler, which has the account.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Checks the invariants of the pipeline, for tests. O(threads).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.scheduler.validate()?;
        for (at, output) in self.outputs.iter().enumerate() {
            output.link.validate()?;
            let queued = |path: &usize| self.paths[*path].queues.output.len();
            let queued: usize = output.paths.iter().map(queued).sum();
            ensure(queued == output.queued as usize, || {
                format!("output {at} counts {} packets, and has {queued}", output.queued)
            })?;
        }
        for (at, path) in self.paths.iter().enumerate() {
            let Some((output, queue)) = path.output else { continue };
            let is_backlogged = self.outputs[output].link.is_active(queue);
            ensure(is_backlogged != path.queues.output.is_empty(), || {
                format!("the backlog of path {at} in the link is inconsistent")
            })?;
        }
        Ok(())
    }
}

fn reserve<T>(vec: &mut Vec<T>) -> Result<(), ScheduleError> {
    vec.try_reserve(1).map_err(|_| ScheduleError::NoMemory)
}
