//! The traffic of the router.

use capture::{Capture, Packet};

use crate::packet_counts::PacketCounts;

use super::{Classifier, Datagram, Function, PathId, Port, Routes};

/// The IP packets of a capture, in the order of their times.
#[derive(Debug)]
pub struct Traffic {
    pub packets: Vec<Arrival>,
    /// Frames without a readable IP packet.
    pub others: u64,
    /// Number of packets by function.
    pub by_function: [u64; Function::ALL.len()],
    /// Packets without a path: malformed header, or no route.
    pub unclassified: u64,
    pub flows: usize,
}

/// A packet that arrives.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Nanoseconds since the first one.
    pub time_ns: u64,
    /// The port that leads to its source.
    pub port: Port,
    pub packet: Datagram,
}

impl Traffic {
    /// Maximum number of packets: 200 MB if they are long. Each may be of a flow of its own.
    pub const MOST: usize = Classifier::FLOWS;

    /// Reads a capture; `None` if there are no IP packets.
    pub fn read(capture: &mut Capture, counts: &mut PacketCounts) -> Option<Self> {
        let (mut read, mut others) = (vec![], 0);
        while read.len() < Self::MOST {
            let Some(frame) = capture.next_frame() else { break };
            let packet = counts.count(&Packet::of(&frame), frame.link).copied();
            match packet.and_then(|packet| Datagram::of(&frame, &packet, 0)) {
                Some(packet) => read.push((frame.time_ns, packet)),
                None => others += 1,
            }
        }
        // Captures of several cards are not always in order of time.
        read.sort_by_key(|(time_ns, _)| *time_ns);
        let first_ns = read.first()?.0;
        let routes = Routes::default();
        let arrival = |(index, (time_ns, packet)): (u32, (u64, Datagram))| Arrival {
            time_ns: time_ns - first_ns,
            port: routes.lookup(packet.key.src()).unwrap_or(Port::Outside),
            packet: Datagram { index, ..packet },
        };
        let packets: Vec<Arrival> = (0..).zip(read).map(arrival).collect();
        let (mut classifier, mut by_function, mut unclassified) =
            (Classifier::default(), [0; 4], 0);
        for arrival in &packets {
            match classifier.classify(&arrival.packet) {
                Ok(PathId { function, .. }) => by_function[function as usize] += 1,
                Err(_) => unclassified += 1,
            }
        }
        Some(Self { packets, others, by_function, unclassified, flows: classifier.flows() })
    }

    /// Returns the duration of the traffic at this rate, in nanoseconds.
    pub fn duration_ns(&self, packets_per_second: u64) -> u64 {
        (self.packets.len() as u64 * 1_000_000_000).div_ceil(packets_per_second)
    }

    /// Returns the arrival time of a packet if all arrive within `duration_ns`: its own time,
    /// scaled.
    pub fn time_ns(&self, index: usize, duration_ns: u64) -> Option<u64> {
        let span = self.packets.last()?.time_ns;
        let own = u128::from(self.packets.get(index)?.time_ns) * u128::from(duration_ns);
        Some((own / (u128::from(span) + 1)) as u64)
    }
}
