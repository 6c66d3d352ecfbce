//! Switching paths: an input queue, a forwarding function, an output queue; bounded queues.

use alloc::collections::VecDeque;
use core::ops::Deref;
use core::time::Duration;

use super::ScheduleError;
use super::thread::{Occupancy, Turn};
use crate::timestamp::nanos;

/// The weight of a turn in the moving average of costs is 2⁻³.
const GAIN_SHIFT: u32 = 3;

/// Fractional bits of the average cost in nanoseconds: without them the average would not converge.
const FRACTION: u32 = 8;

/// The path of a flow through the router: an input queue, a forwarding function, an output queue.
///
/// The function is an argument of [`run`](Self::run), so that paths of different functions fit into
/// one array, indexed by the [index](super::share::Thread::index) of their thread.
/// Packets are classified before they are enqueued: `I` is the input of the function, and `O` its
/// output.
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::schedule::share::{Order, ProportionalShare};
/// use flowtable::papers::schedule::{Budget, Policy, Scheduler, SwitchingPath, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let shares = ProportionalShare::new(1, 100, Order::Wf2qPlus)?;
/// let mut scheduler = Scheduler::new(shares, us(1), Policy::Budget(Budget::packets(2)))?;
/// let mut path: SwitchingPath<u32> = SwitchingPath::new(4, 4, us(3))?;
/// let thread = scheduler.add(ThreadConfig { buffers: 2, ..ThreadConfig::new(100, path.cost()) })?;
/// for ttl in [64, 1, 64] {
///     path.input.push(ttl).unwrap();
///     scheduler.set_occupancy(thread, path.occupancy(), Timestamp::ZERO)?;
/// }
/// // Two packets of 3 µs each, one of which is dropped here.
/// let turn = scheduler.next(Timestamp::ZERO).unwrap();
/// let packets = path.run(&turn, |ttl| (ttl > 1).then(|| ttl - 1), |packets| us(3) * packets);
/// scheduler.finish(turn, us(6), path.occupancy(), Timestamp::from_micros(7))?;
/// assert_eq!((packets, path.output.pop(), path.output.pop()), (2, Some(63), None));
/// assert_eq!(path.input.len(), 1);
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SwitchingPath<I, O = I> {
    /// Packets to forward.
    pub input: BoundedQueue<I>,
    /// Packets to send.
    pub output: BoundedQueue<O>,
    /// The average cost of a packet, in 2⁻⁸ nanoseconds.
    cost: u64,
}

impl<I, O> SwitchingPath<I, O> {
    /// Creates a path with the capacities of its queues, and an estimated cost per packet.
    ///
    /// # Errors
    ///
    /// If a capacity is zero or too large, the cost is zero, or the allocation fails.
    pub fn new(input: usize, output: usize, cost: Duration) -> Result<Self, ScheduleError> {
        if cost.is_zero() {
            return Err(ScheduleError::NoCost);
        }
        let (input, output) = (BoundedQueue::new(input)?, BoundedQueue::new(output)?);
        Ok(Self { input, output, cost: with_fraction(nanos(cost).into()) })
    }

    /// Returns the occupancy of the queues.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        Occupancy { queued: self.input.len() as u32, free: self.output.free() }
    }

    /// Returns the average cost of a packet, or the initial estimate.
    #[must_use]
    pub fn cost(&self) -> Duration {
        let rounded = self.cost.saturating_add(1 << (FRACTION - 1)) >> FRACTION;
        Duration::from_nanos(rounded.max(1))
    }

    /// Forwards packets until the budget of the turn is used, the input queue is empty or the
    /// output queue is full. Returns their number. O(packets).
    ///
    /// `forward` returns the packet to send, if any. `spent` returns the time of the turn after a
    /// number of packets; it is called after each.
    pub fn run(
        &mut self,
        turn: &Turn,
        mut forward: impl FnMut(I) -> Option<O>,
        mut spent: impl FnMut(u32) -> Duration,
    ) -> u32 {
        let mut packets = 0;
        while self.forward(&mut forward) {
            packets += 1;
            if !turn.budget.allows_more(packets, spent(packets)) {
                break;
            }
        }
        packets
    }

    /// Forwards a packet. Returns false if there is none, or no room for it.
    pub(super) fn forward(&mut self, forward: impl FnOnce(I) -> Option<O>) -> bool {
        if self.output.free() == 0 {
            return false;
        }
        let Some(packet) = self.input.pop() else { return false };
        if let Some(packet) = forward(packet) {
            let pushed = self.output.push(packet);
            debug_assert!(pushed.is_ok(), "the queue was not full");
        }
        true
    }

    /// Updates the average cost with the measured time of a turn, which has a weight of 1/8.
    /// Returns the average, for [`Scheduler::set_cost`](super::Scheduler::set_cost).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::SwitchingPath;
    ///
    /// let us = Duration::from_micros;
    /// let mut path: SwitchingPath<()> = SwitchingPath::new(4, 8, us(8))?;
    /// assert_eq!(path.update_cost(2, us(32)), us(9)); // 16 µs each
    /// assert_eq!((path.input.capacity(), path.output.capacity()), (4, 8));
    /// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
    /// ```
    pub fn update_cost(&mut self, packets: u32, processing: Duration) -> Duration {
        let nanos = u128::from(nanos(processing)) << FRACTION;
        if let Some(cost) = nanos.checked_div(packets.into()) {
            let old = self.cost - (self.cost >> GAIN_SHIFT);
            self.cost = old.saturating_add((cost >> GAIN_SHIFT) as u64);
        }
        self.cost()
    }
}

fn with_fraction(nanos: u128) -> u64 {
    u64::try_from(nanos << FRACTION).unwrap_or(u64::MAX)
}

/// A bounded first-in-first-out queue of packets. Counts rejected packets and the maximum length.
/// Its packets are read as a [`VecDeque`].
///
/// | method | cost |
/// |---|---|
/// | `new` | O(capacity): the only allocation |
/// | all others | O(1) |
///
/// Paper: Qie et al., section 2.1.
///
/// # Example
///
/// ```
/// use flowtable::papers::schedule::BoundedQueue;
///
/// let mut queue = BoundedQueue::new(2)?;
/// assert_eq!([queue.push('a'), queue.push('b'), queue.push('c')], [Ok(()), Ok(()), Err('c')]);
/// assert_eq!((queue.pop(), queue.front(), queue.len()), (Some('a'), Some(&'b'), 1));
/// assert_eq!((queue.dropped, queue.longest), (1, 2));
/// # Ok::<(), flowtable::papers::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BoundedQueue<P> {
    packets: VecDeque<P>,
    capacity: usize,
    /// The number of rejected packets.
    pub dropped: u64,
    /// The maximum length that the queue has reached.
    pub longest: usize,
}

impl<P> BoundedQueue<P> {
    /// Creates a queue for `capacity` packets, and allocates its memory.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, or 2^32 - 1 or more, or the allocation fails.
    pub fn new(capacity: usize) -> Result<Self, ScheduleError> {
        if capacity == 0 || capacity >= u32::MAX as usize {
            return Err(ScheduleError::Buffers);
        }
        let mut packets = VecDeque::new();
        packets.try_reserve_exact(capacity).map_err(|_| ScheduleError::NoMemory)?;
        Ok(Self { packets, capacity, dropped: 0, longest: 0 })
    }

    /// Appends a packet.
    ///
    /// # Errors
    ///
    /// Returns the packet if the queue is full, and counts it as dropped.
    pub fn push(&mut self, packet: P) -> Result<(), P> {
        if self.free() == 0 {
            self.dropped += 1;
            return Err(packet);
        }
        self.packets.push_back(packet);
        self.longest = self.longest.max(self.len());
        Ok(())
    }

    /// Removes and returns the first packet.
    pub fn pop(&mut self) -> Option<P> {
        self.packets.pop_front()
    }

    /// Returns the maximum number of packets.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of free slots.
    pub(super) fn free(&self) -> u32 {
        (self.capacity - self.len()) as u32
    }
}

/// The packets in the queue.
impl<P> Deref for BoundedQueue<P> {
    type Target = VecDeque<P>;

    fn deref(&self) -> &VecDeque<P> {
        &self.packets
    }
}
