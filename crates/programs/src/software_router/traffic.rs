//! What arrives at the router, and when.

use capture::Capture;

use super::{Classifier, Costs, Datagram, Function, Port, Routes, PathId};

/// The IP packets of a capture, in the order of their times.
#[derive(Debug)]
pub struct Traffic {
    pub packets: Vec<Arrival>,
    /// Frames without an IP packet that can be read.
    pub others: usize,
    /// Packets of each function, by its number.
    pub by_function: [u64; Function::ALL.len()],
    /// Packets whose header is wrong, or to which nothing leads.
    pub unclassified: u64,
    pub flows: usize,
}

/// A packet that arrives.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Nanoseconds since the first one.
    pub time_ns: u64,
    /// The one that leads to its source.
    pub port: Port,
    pub packet: Datagram,
}

impl Traffic {
    /// As many packets are taken at most: 200 MB if they are long.
    pub const MOST: usize = 1 << 17;

    /// `None` if there are no IP packets.
    pub fn read(capture: &mut Capture) -> Option<Self> {
        let (mut read, mut others) = (vec![], 0);
        while read.len() < Self::MOST {
            let Some(frame) = capture.next_frame() else { break };
            match Datagram::of(&frame, 0) {
                Some(packet) => read.push((frame.time_ns, packet)),
                None => others += 1,
            }
        }
        // Captures of several cards are not always in order.
        read.sort_by_key(|(time_ns, _)| *time_ns);
        let first_ns = read.first()?.0;
        let routes = Routes::default();
        let arrival = |(number, (time_ns, packet)): (u32, (u64, Datagram))| Arrival {
            time_ns: time_ns - first_ns,
            port: routes.lookup(packet.key.src()).unwrap_or(Port::Outside),
            packet: Datagram { number, ..packet },
        };
        let packets: Vec<Arrival> = (0..).zip(read).map(arrival).collect();
        let (mut classifier, mut by_function, mut unclassified) = (Classifier::default(), [0; 4], 0);
        for arrival in &packets {
            match classifier.classify(&arrival.packet) {
                Ok(PathId { function, .. }) => by_function[function as usize] += 1,
                Err(_) => unclassified += 1,
            }
        }
        Some(Self { packets, others, by_function, unclassified, flows: classifier.flows() })
    }

    /// Packets in a second that a router could forward which never switches.
    pub fn capacity(&self, costs: &Costs) -> u64 {
        let functions = costs.functions.iter().zip(self.by_function);
        let forwarded: u64 = self.by_function.iter().sum();
        let busy_ns = costs.input * self.packets.len() as u64
            + functions.map(|(cost, packets)| cost * packets).sum::<u64>()
            + costs.output * forwarded;
        (1_000_000_000 * self.packets.len() as u128 / u128::from(busy_ns.max(1))).max(1) as u64
    }

    /// How long it arrives at this rate, in nanoseconds.
    pub fn duration_ns(&self, packets_per_second: u64) -> u64 {
        (self.packets.len() as u64 * 1_000_000_000).div_ceil(packets_per_second)
    }

    /// When a packet arrives if all do in this time: its own time, stretched.
    pub fn time_ns(&self, index: usize, duration_ns: u64) -> Option<u64> {
        let span = self.packets.last()?.time_ns;
        let own = u128::from(self.packets.get(index)?.time_ns) * u128::from(duration_ns);
        Some((own / (u128::from(span) + 1)) as u64)
    }
}
