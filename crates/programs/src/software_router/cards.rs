//! Network cards: a ring into which packets arrive, and one from which a link takes them.

use core::time::Duration;
use std::collections::VecDeque;

use flowtable::schedule::{BoundedQueue, QueueEstimator};

/// Where packets arrive. Nobody is told: somebody has to look.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Numbers of packets.
    pub ring: BoundedQueue<u32>,
    /// None if polls are so small that they say nothing.
    estimator: Option<QueueEstimator>,
    /// When to look again; `None` if its thread knows already, or has its turn.
    pub poll_at_ns: Option<u64>,
}

impl Receiver {
    /// Places in a ring.
    pub(crate) const RING: u32 = 64;

    /// With polls of so many packets, and sleeps that are not longer than this.
    pub(crate) fn new(poll: u32, longest_sleep: Duration) -> Self {
        let ring = BoundedQueue::new(Self::RING as usize).expect("there are places");
        let estimator = QueueEstimator::new(poll, longest_sleep).ok();
        Self { ring, estimator, poll_at_ns: Some(0) }
    }

    /// A poll has read so many packets: when is the next one?
    pub(crate) fn polled(&mut self, packets: u32, now_ns: u64) {
        let sleep = self.estimator.as_mut().map_or(Duration::ZERO, |it| it.polled(packets));
        self.poll_at_ns = Some(now_ns + sleep.as_nanos() as u64);
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.poll_at_ns.is_some_and(|poll_at_ns| poll_at_ns <= now_ns)
    }
}

/// Where packets leave.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// When the link will have taken each packet of the ring.
    departures_ns: VecDeque<u64>,
    /// The path that was selected last.
    pub selected: usize,
}

impl Sender {
    /// Places in a ring.
    pub(crate) const RING: u32 = 64;
    /// Preamble, checksum and the gap between frames.
    const FRAME_OVERHEAD: u64 = 24;

    /// Free places.
    pub(crate) fn free(&self) -> u32 {
        Self::RING - self.departures_ns.len() as u32
    }

    /// Forgets what the link has taken.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while self.next_departure_ns().is_some_and(|departure| departure <= now_ns) {
            self.departures_ns.pop_front();
        }
    }

    /// When there will be another free place.
    pub(crate) fn next_departure_ns(&self) -> Option<u64> {
        self.departures_ns.front().copied()
    }

    /// A frame of so many bytes is in the ring, of which the link takes a thousand in this time.
    pub(crate) fn send(&mut self, length: u64, kilobyte_ns: u64, now_ns: u64) {
        let begun = self.departures_ns.back().copied().unwrap_or(0).max(now_ns);
        self.departures_ns.push_back(begun + (length + Self::FRAME_OVERHEAD) * kilobyte_ns / 1000);
    }
}
