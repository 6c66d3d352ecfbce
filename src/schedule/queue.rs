//! Queues that are full at some point.

use alloc::collections::VecDeque;

use super::ScheduleError;

/// Packets in order, not more than there is room for. Counts what it had to refuse, and how long it was. O(1) each.
///
/// # Example
///
/// ```
/// use flowtable::schedule::BoundedQueue;
///
/// let mut queue = BoundedQueue::new(2)?;
/// assert_eq!([queue.push('a'), queue.push('b'), queue.push('c')], [Ok(()), Ok(()), Err('c')]);
/// assert_eq!((queue.pop(), queue.room()), (Some('a'), 1));
/// assert_eq!((queue.dropped(), queue.longest()), (1, 2));
/// # Ok::<(), flowtable::schedule::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BoundedQueue<P> {
    packets: VecDeque<P>,
    capacity: usize,
    dropped: u64,
    longest: usize,
}

impl<P> BoundedQueue<P> {
    /// With room for so many packets, which is allocated now.
    ///
    /// # Errors
    ///
    /// If that is none, 2^32 - 1 or more, or there is no memory for them.
    pub fn new(capacity: usize) -> Result<Self, ScheduleError> {
        if capacity == 0 || capacity >= u32::MAX as usize {
            return Err(ScheduleError::Buffers);
        }
        let mut packets = VecDeque::new();
        packets.try_reserve_exact(capacity).map_err(|_| ScheduleError::NoMemory)?;
        Ok(Self { packets, capacity, dropped: 0, longest: 0 })
    }

    /// Puts a packet at the end.
    ///
    /// # Errors
    ///
    /// Gives the packet back if there is no room, and counts it as dropped.
    pub fn push(&mut self, packet: P) -> Result<(), P> {
        if self.room() == 0 {
            self.dropped += 1;
            return Err(packet);
        }
        self.packets.push_back(packet);
        self.longest = self.longest.max(self.len());
        Ok(())
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<P> {
        self.packets.pop_front()
    }

    /// Packets in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The most packets that it can have.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many more packets it can take.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.len()
    }

    /// Packets that were refused.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The most packets that it ever had.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.longest
    }
}
