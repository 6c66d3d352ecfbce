//! Switching paths: a queue, a function, a queue.

use core::time::Duration;

use super::ScheduleError;
use super::budget::Turn;
use super::queue::BoundedQueue;
use super::thread::Occupancy;
use crate::timestamp::nanos;

/// A turn weighs 2⁻³ in the average of costs.
const GAIN_SHIFT: u32 = 3;

/// Bits of a fraction of a nanosecond in which costs are kept: without them an average would stop short.
const FRACTION: u32 = 8;

/// The way of a flow through the router: an input queue, a forwarding function, an output queue.
///
/// The function is given to [`run`](Self::run), so that paths of different functions fit into one array, by the
/// [number](crate::schedule::share::Thread::index) of their thread. What comes in is classified before: `I` is what the
/// function needs. `O` is what it makes of it.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::schedule::{Budget, Policy, Scheduler, SwitchingPath, ThreadConfig};
///
/// let us = Duration::from_micros;
/// let mut scheduler = Scheduler::new(1, 100, us(1), Policy::Budget(Budget::packets(2)))?;
/// let mut path: SwitchingPath<u32> = SwitchingPath::new(4, 4, us(3))?;
/// let thread = scheduler.add(ThreadConfig::new(100, path.cost()).with_buffers(4, 4))?;
/// for ttl in [64, 1, 64] {
///     path.arrive(ttl).unwrap();
///     scheduler.tell(thread, path.occupancy(), Timestamp::ZERO)?;
/// }
/// // Two packets, one of which dies here. Both take 3 µs.
/// let turn = scheduler.next(Timestamp::ZERO).unwrap();
/// let packets = path.run(&turn, |ttl| (ttl > 1).then(|| ttl - 1), |packets| us(3) * packets);
/// scheduler.finish(turn, us(6), path.occupancy(), Timestamp::from_micros(7))?;
/// assert_eq!((packets, path.take(), path.take(), path.input().len()), (2, Some(63), None, 1));
/// # Ok::<(), flowtable::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SwitchingPath<I, O = I> {
    input: BoundedQueue<I>,
    output: BoundedQueue<O>,
    /// Nanoseconds for a packet, in 2⁻⁸.
    cost: u64,
}

impl<I, O> SwitchingPath<I, O> {
    /// With queues of so many places, and packets that cost so much, as far as is known.
    ///
    /// # Errors
    ///
    /// If a queue has no places, or too many, or packets cost nothing, or there is no memory for them.
    pub fn new(input: usize, output: usize, cost: Duration) -> Result<Self, ScheduleError> {
        if cost.is_zero() {
            return Err(ScheduleError::NoCost);
        }
        let (input, output) = (BoundedQueue::new(input)?, BoundedQueue::new(output)?);
        Ok(Self { input, output, cost: with_fraction(nanos(cost).into()) })
    }

    /// A packet has come, and was classified as one for this path.
    ///
    /// # Errors
    ///
    /// Gives it back if the input queue is full, which counts it as dropped.
    pub fn arrive(&mut self, packet: I) -> Result<(), I> {
        self.input.push(packet)
    }

    /// The next packet to send.
    pub fn take(&mut self) -> Option<O> {
        self.output.pop()
    }

    /// How full the queues are.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        Occupancy { queued: self.input.len() as u32, room: self.output.room() as u32 }
    }

    /// What a packet costs, as far as is known.
    #[must_use]
    pub fn cost(&self) -> Duration {
        let rounded = self.cost.saturating_add(1 << (FRACTION - 1)) >> FRACTION;
        Duration::from_nanos(rounded.max(1))
    }

    /// The input queue.
    #[must_use]
    pub const fn input(&self) -> &BoundedQueue<I> {
        &self.input
    }

    /// The output queue.
    #[must_use]
    pub const fn output(&self) -> &BoundedQueue<O> {
        &self.output
    }

    /// Forwards packets until the turn has no more in it, the input queue is empty or the output queue is full. Returns
    /// how many. O(packets).
    ///
    /// `forward` makes of a packet what is to be sent, or nothing. `spent` says how long the turn has taken after so
    /// many packets; it is asked after each.
    pub fn run(
        &mut self,
        turn: &Turn,
        mut forward: impl FnMut(I) -> Option<O>,
        mut spent: impl FnMut(u32) -> Duration,
    ) -> u32 {
        let mut packets = 0;
        while self.output.room() > 0 {
            let Some(packet) = self.input.pop() else { break };
            if let Some(packet) = forward(packet) {
                let pushed = self.output.push(packet);
                debug_assert!(pushed.is_ok(), "there was room");
            }
            packets += 1;
            if !turn.goes_on(packets, spent(packets)) {
                break;
            }
        }
        packets
    }

    /// A turn took so long for so many packets. Returns what a packet costs on average, where a turn weighs 1/8: that
    /// is for [`Scheduler::set_cost`](super::Scheduler::set_cost).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::schedule::SwitchingPath;
    ///
    /// let us = Duration::from_micros;
    /// let mut path: SwitchingPath<()> = SwitchingPath::new(4, 8, us(8))?;
    /// assert_eq!(path.measured(2, us(32)), us(9)); // 16 µs each
    /// assert_eq!((path.input().capacity(), path.output().capacity()), (4, 8));
    /// # Ok::<(), flowtable::schedule::ScheduleError>(())
    /// ```
    pub fn measured(&mut self, packets: u32, processing: Duration) -> Duration {
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
