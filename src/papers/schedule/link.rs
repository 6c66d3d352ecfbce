//! Link schedulers: which queue of an output port sends next.

use super::share::{Order, ProportionalShare, ShareError, Thread};

/// A link scheduler: divides the bytes of a link among queues by their shares.
///
/// ```text
///     path 0  ▒▒▒ ┐              SELECT the queue, DEQUEUE its first packet, WRITE it
///     path 1  ▒   ├─▸ select ─▸ output thread ─▸ link
///     path 2  ▒▒  ┘
/// ```
///
/// The caller owns the queues. Without it an output thread would take turns by packets, and a path
/// of long packets would get more of the link than one of short ones. Shares of queues without
/// packets are divided among the others, and not saved. The lengths of first packets are known, so
/// the order is WF²Q+ by default; lengths are bytes, or the time on the link.
///
/// | method | cost |
/// |---|---|
/// | `set_backlogged`, `sent` | O(log queues) |
/// | `select` | O(log queues), with WF²Q+ amortised over the packets |
/// | `add`, `is_backlogged`, `shares` | O(1) |
/// | `new`, `with_order` | O(queues), 140 bytes for each; other methods allocate nothing |
///
/// Paper: Qie et al., section 2.1: link scheduling is part of SELECT, and its algorithm is left
/// open. [`share`](super::share) has the bounds.
///
/// # Example
///
/// ```
/// use std::collections::VecDeque;
/// use flowtable::papers::schedule::LinkScheduler;
///
/// let mut link = LinkScheduler::new(2, 100)?;
/// // Short packets, and long ones, with equal shares.
/// let mut queues = [VecDeque::from([100; 64]), VecDeque::from([1500; 64])];
/// let ids = [link.add(50)?, link.add(50)?];
/// for (id, queue) in ids.iter().zip(&queues) {
///     link.set_backlogged(*id, queue[0])?;
/// }
/// let mut bytes = [0; 2];
/// for _ in 0..64 {
///     let id = link.select().unwrap();
///     let queue = &mut queues[id.index()];
///     let length = queue.pop_front().unwrap();
///     bytes[id.index()] += length;
///     link.sent(id, length, queue.front().copied())?;
/// }
/// assert_eq!(bytes, [6000, 6000]);
/// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinkScheduler {
    shares: ProportionalShare,
}

impl LinkScheduler {
    /// Creates a scheduler with the maximum number of queues, and the `whole` that shares are parts
    /// of. O(queues).
    ///
    /// # Errors
    ///
    /// If either is zero, there are 2^32 - 1 queues or more, or the allocation fails.
    pub fn new(queues: usize, whole: u32) -> Result<Self, ShareError> {
        Self::with_order(queues, whole, Order::default())
    }

    /// Creates a scheduler by this order.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::schedule::LinkScheduler;
    /// use flowtable::papers::schedule::share::Order;
    ///
    /// let mut link = LinkScheduler::with_order(8, 100, Order::StartTime)?;
    /// let queue = link.add(50)?;
    /// assert_eq!((link.shares().order(), link.shares().unclaimed()), (Order::StartTime, 50));
    /// assert!(!link.is_backlogged(queue) && link.select().is_none());
    /// # Ok::<(), flowtable::papers::schedule::share::ShareError>(())
    /// ```
    pub fn with_order(queues: usize, whole: u32, order: Order) -> Result<Self, ShareError> {
        Ok(Self { shares: ProportionalShare::with_order(queues, whole, order)? })
    }

    /// Adds a queue with this share of the link. It is empty. O(1).
    ///
    /// # Errors
    ///
    /// If the share is zero or exceeds the unclaimed part, or the number of queues is at its
    /// maximum.
    pub fn add(&mut self, share: u32) -> Result<Thread, ShareError> {
        self.shares.add(share)
    }

    /// Records that a queue has packets, the first of which has this length. No effect if that was
    /// recorded before. O(log queues).
    ///
    /// # Errors
    ///
    /// If the queue does not exist.
    pub fn set_backlogged(&mut self, queue: Thread, length: u64) -> Result<(), ShareError> {
        match self.shares.activate(queue, length) {
            Err(ShareError::NotIdle) => Ok(()),
            other => other,
        }
    }

    /// Returns whether a queue has packets.
    #[must_use]
    pub fn is_backlogged(&self, queue: Thread) -> bool {
        self.shares.is_active(queue)
    }

    /// Selects the queue that sends next, which is not selected again until it has
    /// [sent](Self::sent). `None` if no other queue has packets. O(log queues) on average.
    pub fn select(&mut self) -> Option<Thread> {
        self.shares.pick()
    }

    /// Records that a selected queue has sent a packet of this length, and the length of its next
    /// packet, if it has one. O(log queues).
    ///
    /// # Errors
    ///
    /// If the queue does not exist, or was not selected.
    pub fn sent(
        &mut self,
        queue: Thread,
        length: u64,
        next: Option<u64>,
    ) -> Result<(), ShareError> {
        self.shares.charge(queue, length, next)
    }

    /// Returns the shares of the queues.
    #[must_use]
    pub const fn shares(&self) -> &ProportionalShare {
        &self.shares
    }
}
