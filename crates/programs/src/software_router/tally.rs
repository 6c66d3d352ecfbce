//! Counts of packets and of time.

use core::iter::Sum;
use core::ops::Add;

use flowtable::papers::schedule::Account;

use super::{Function, Plan};

/// Counts of the packets of one or more paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTally {
    /// Packets that were classified for the path.
    pub arrived: u64,
    /// Packets dropped since the input queue was full.
    pub input_drops: u64,
    /// Packets that the function refused.
    pub refused: u64,
    /// Frames sent.
    pub sent: u64,
    /// Packets in both queues at the end.
    pub queued: u64,
    /// Maximum lengths of the queues.
    pub longest_input: usize,
    pub longest_output: usize,
}

impl PathTally {
    pub fn adds_up(&self) -> bool {
        let lost = self.input_drops + self.refused;
        self.arrived == self.sent + lost + self.queued
    }
}

impl Add for PathTally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            arrived: self.arrived + other.arrived,
            input_drops: self.input_drops + other.input_drops,
            refused: self.refused + other.refused,
            sent: self.sent + other.sent,
            queued: self.queued + other.queued,
            longest_input: self.longest_input.max(other.longest_input),
            longest_output: self.longest_output.max(other.longest_output),
        }
    }
}

impl Sum for PathTally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

/// Results of a run of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub plan: Plan,
    /// Nanoseconds in which packets arrived; the last turn ends later.
    pub duration_ns: u64,
    pub offered: u64,
    /// Packets dropped since the ring of a card was full.
    pub card_drops: u64,
    /// Packets in these rings at the end.
    pub unread: u64,
    /// Packets without a path: malformed header, or no route.
    pub unclassified: u64,
    /// By function.
    pub functions: [PathTally; Function::ALL.len()],
    /// Time of turns and interrupts.
    pub account: Account,
    /// Turns of input that found no packet.
    pub empty_polls: u64,
}

impl Outcome {
    /// Creates empty results.
    pub fn new(plan: Plan, duration_ns: u64) -> Self {
        let (functions, account) = Default::default();
        let (offered, card_drops, unread, unclassified, empty_polls) = (0, 0, 0, 0, 0);
        Self {
            plan,
            duration_ns,
            offered,
            card_drops,
            unread,
            unclassified,
            functions,
            account,
            empty_polls,
        }
    }

    pub fn total(&self) -> PathTally {
        self.functions.into_iter().sum()
    }

    /// Returns whether each packet is accounted for exactly once.
    pub fn adds_up(&self) -> bool {
        let read = self.unclassified + self.total().arrived;
        self.offered == self.card_drops + self.unread + read
            && self.functions.iter().all(PathTally::adds_up)
    }

    /// Returns the rate of `packets` packets per second.
    pub fn rate(&self, packets: u64) -> f64 {
        packets as f64 * 1e9 / self.duration_ns.max(1) as f64
    }

    /// Returns the efficiency index.
    pub fn efficiency(&self) -> f64 {
        self.account.efficiency().unwrap_or(1.0)
    }
}
