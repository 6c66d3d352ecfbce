//! The packets of a capture, repeated endlessly.

use core::array::from_fn;

use capture::{Capture, Tunnels};

use super::{BURST, Packet};
use crate::packet_counts::PacketCounts;

/// Packets in memory.
pub struct Recorded {
    packets: Vec<Packet>,
    /// Time from the first packet of a round to that of the next.
    round_ns: u64,
}

impl Recorded {
    /// Maximum number of packets: some 250 MB of memory.
    pub const MOST: usize = 1 << 22;

    /// Reads the packets with a flow; `None` if there are none.
    pub fn read(capture: &mut Capture, counts: &mut PacketCounts) -> Option<Self> {
        let mut packets: Vec<Packet> = Vec::new();
        let (mut begin, mut time_ns) = (None, 0);
        while packets.len() < Self::MOST {
            let Some(frame) = capture.next_frame() else { break };
            let parsed = capture::packets(&frame, Tunnels::Outer);
            for packet in parsed.filter_map(|packet| counts.count(&packet, frame.link).copied()) {
                let begin = *begin.get_or_insert(packet.time_ns);
                // Clocks of captures sometimes run backwards.
                time_ns = packet.time_ns.saturating_sub(begin).max(time_ns);
                packets.push(Packet { key: packet.key, bytes: packet.bytes, time_ns });
            }
        }
        // The next round follows after the mean gap between packets.
        let gap_ns = (time_ns / packets.len().max(1) as u64).max(1000);
        (!packets.is_empty()).then(|| Self { packets, round_ns: time_ns.saturating_add(gap_ns) })
    }

    pub fn packet_count(&self) -> usize {
        self.packets.len()
    }

    pub fn time_of(&self, index: u64) -> u64 {
        let (round, at) = self.place(index);
        self.packet(round, at).time_ns
    }

    pub fn burst(&self, first: u64) -> [Packet; BURST] {
        let (mut round, mut at) = self.place(first);
        from_fn(|_| {
            let packet = self.packet(round, at);
            at += 1;
            if at == self.packets.len() {
                (round, at) = (round + 1, 0);
            }
            packet
        })
    }

    fn place(&self, index: u64) -> (u64, usize) {
        let len = self.packets.len() as u64;
        (index / len, (index % len) as usize)
    }

    fn packet(&self, round: u64, at: usize) -> Packet {
        let mut packet = self.packets[at];
        // A capture may span centuries.
        packet.time_ns = packet.time_ns.saturating_add(round.saturating_mul(self.round_ns));
        packet
    }
}
