//! Bounded packet queues.

use alloc::collections::VecDeque;

use super::ScheduleError;

/// A bounded first-in-first-out queue of packets. Counts rejected packets and the maximum length.
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
/// assert_eq!((queue.pop(), queue.remaining_capacity()), (Some('a'), 1));
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
        if self.remaining_capacity() == 0 {
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

    /// Returns the first packet.
    pub(super) fn front(&self) -> Option<&P> {
        self.packets.front()
    }

    /// Returns the number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the maximum number of packets.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of free slots.
    #[must_use]
    pub fn remaining_capacity(&self) -> usize {
        self.capacity - self.len()
    }
}
