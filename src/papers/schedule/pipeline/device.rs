//! The device of a pipeline: cards, functions, links and a clock.

use core::time::Duration;

use crate::timestamp::Timestamp;

/// The result of reading a card.
///
/// Paper: Qie et al., section 2.1: READ and CLASSIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<P> {
    /// The card has no packet.
    Empty,
    /// A packet was read that has no path, and was discarded.
    Discarded,
    /// A packet, classified.
    Packet {
        /// The index of its path.
        path: usize,
        /// The packet.
        packet: P,
    },
}

/// The cards, functions, links and the clock of a [`Pipeline`](super::Pipeline).
///
/// Inputs, paths and outputs are given by index, in the order in which they were added. A simulated
/// clock advances in `read`, `forward`, `write` and `empty_poll` by their costs.
///
/// Paper: Qie et al., section 2.1.
pub trait Device {
    /// A packet.
    type Packet;

    /// Returns the time.
    fn now(&self) -> Timestamp;

    /// Reads the next packet of a card, and classifies it.
    fn read(&mut self, input: usize) -> Reading<Self::Packet>;

    /// Processes a packet. `None` if the packet is refused, or consumed.
    ///
    /// A path without an output consumes all packets: one that is returned is discarded, and not
    /// counted.
    fn forward(&mut self, path: usize, packet: Self::Packet) -> Option<Self::Packet>;

    /// Writes a packet of a path to a link, which has [room](Self::room).
    fn write(&mut self, output: usize, path: usize, packet: Self::Packet);

    /// Returns the length of a packet, in the units of the shares of links: the bytes that it takes
    /// on the link, or its time there. With a constant, links are shared by packets. It must not
    /// panic.
    fn length(&self, packet: &Self::Packet) -> u64;

    /// Called after a poll that has found no packet. Returns the time to charge the thread in
    /// addition to the time that has passed: zero, or the time of the switch, which no packet
    /// needed. The time is charged to the share of the thread, and not to the account.
    fn empty_poll(&mut self, input: usize) -> Duration {
        let _ = input;
        Duration::ZERO
    }

    /// Returns the number of packets of a card, for inputs which are
    /// [notified](super::Polling::Notified).
    fn waiting(&self, input: usize) -> u32 {
        let _ = input;
        0
    }

    /// Returns the number of packets for which a link has room. Unlimited by default.
    fn room(&self, output: usize) -> u32 {
        let _ = output;
        u32::MAX
    }
}
