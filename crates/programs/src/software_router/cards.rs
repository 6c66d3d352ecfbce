//! Network cards: rings of received packets, and rings from which a link takes packets.

use std::collections::VecDeque;

use super::Datagram;

/// Capacity of a ring.
pub(crate) const RING: u32 = 64;

/// Returns the bytes that an IP packet takes on a link: with its Ethernet header, preamble,
/// checksum and the gap between frames.
pub(crate) fn link_bytes(packet: &Datagram) -> u64 {
    u64::from(packet.length) + 14 + 24
}

/// The sending side of a card.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Times at which the link has taken each packet of the ring.
    departures_ns: VecDeque<u64>,
}

impl Sender {
    /// Returns the free capacity of the ring.
    pub(crate) fn free(&self) -> u32 {
        RING - self.departures_ns.len() as u32
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

    /// Adds a frame to the ring that takes `length` bytes of the link, which takes a thousand in
    /// `kilobyte_ns`.
    pub(crate) fn send(&mut self, length: u64, kilobyte_ns: u64, now_ns: u64) {
        let begun = self.departures_ns.back().copied().unwrap_or(0).max(now_ns);
        self.departures_ns.push_back(begun + length * kilobyte_ns / 1000);
    }
}
