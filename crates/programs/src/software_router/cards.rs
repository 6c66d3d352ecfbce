//! Network cards: a ring of received packets, and one from which a link takes packets.

use core::time::Duration;
use std::collections::VecDeque;

use flowtable::schedule::{BoundedQueue, QueueEstimator};

/// The receiving side of a card, which is polled: packets cause no notification.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Indices of packets.
    pub ring: BoundedQueue<u32>,
    /// None if polls are too small for an estimate.
    estimator: Option<QueueEstimator>,
    /// Time of the next poll; `None` if its thread is notified already, or runs.
    pub poll_at_ns: Option<u64>,
}

impl Receiver {
    /// Capacity of a ring.
    pub(crate) const RING: u32 = 64;

    /// Creates a receiver for polls of `poll` packets, and sleeps of up to `longest_sleep`.
    pub(crate) fn new(poll: u32, longest_sleep: Duration) -> Self {
        let ring = BoundedQueue::new(Self::RING as usize).expect("the capacity is positive");
        let estimator = QueueEstimator::new(poll, longest_sleep).ok();
        Self { ring, estimator, poll_at_ns: Some(0) }
    }

    /// Schedules the next poll after one that has read `packets` packets.
    pub(crate) fn polled(&mut self, packets: u32, now_ns: u64) {
        let sleep = self.estimator.as_mut().map_or(Duration::ZERO, |it| it.polled(packets));
        self.poll_at_ns = Some(now_ns + sleep.as_nanos() as u64);
    }

    /// Returns whether a poll is due.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.poll_at_ns.is_some_and(|poll_at_ns| poll_at_ns <= now_ns)
    }
}

/// The sending side of a card.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Times at which the link has taken each packet of the ring.
    departures_ns: VecDeque<u64>,
    /// The path that was selected last.
    pub selected: usize,
}

impl Sender {
    /// Capacity of a ring.
    pub(crate) const RING: u32 = 64;
    /// Preamble, checksum and the gap between frames.
    const FRAME_OVERHEAD: u64 = 24;

    /// Returns the free capacity of the ring.
    pub(crate) fn free(&self) -> u32 {
        Self::RING - self.departures_ns.len() as u32
    }

    /// Removes the packets that the link has taken.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while self.next_departure_ns().is_some_and(|departure| departure <= now_ns) {
            self.departures_ns.pop_front();
        }
    }

    /// Returns the time at which the next slot becomes free.
    pub(crate) fn next_departure_ns(&self) -> Option<u64> {
        self.departures_ns.front().copied()
    }

    /// Adds a frame of `length` bytes to the ring, of which the link takes a thousand in
    /// `kilobyte_ns`.
    pub(crate) fn send(&mut self, length: u64, kilobyte_ns: u64, now_ns: u64) {
        let begun = self.departures_ns.back().copied().unwrap_or(0).max(now_ns);
        self.departures_ns.push_back(begun + (length + Self::FRAME_OVERHEAD) * kilobyte_ns / 1000);
    }
}
