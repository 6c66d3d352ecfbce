//! The stages of the router: reading, forwarding and writing.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::schedule::Turn;

use super::costs::written;
use super::router::{Frame, Router};
use super::{Datagram, Function, Job, PathId, Plan, Port};

impl Router<'_> {
    pub(crate) fn poll(&mut self, port: Port, turn: &Turn) {
        let mut packets = 0;
        while self.read(port) {
            packets += 1;
            self.now_ns += self.costs.input;
            self.arrive();
            if !turn.allows_more(packets, Duration::from_nanos(self.costs.input) * packets) {
                break;
            }
        }
        if packets == 0 {
            self.outcome.empty_polls += 1;
            self.now_ns += self.costs.input;
        }
        self.receivers[port as usize].polled(packets, self.now_ns);
    }

    /// Reads a packet from a ring and enqueues it to its path.
    pub(crate) fn read(&mut self, port: Port) -> bool {
        let Some(index) = self.receivers[port as usize].ring.pop() else { return false };
        let packet = &self.traffic.packets[index as usize].packet;
        match self.classifier.classify(packet) {
            Ok(id) => {
                self.tallies[id.index()].arrived += 1;
                // The queue counts drops.
                _ = self.paths[id.index()].enqueue(packet.clone());
                self.report_occupancy(Job::Forward(id));
            }
            Err(_) => self.outcome.unclassified += 1,
        }
        true
    }

    pub(crate) fn forward(&mut self, id: PathId, turn: &Turn) {
        let (path, tally) = (&mut self.paths[id.index()], &mut self.tallies[id.index()]);
        if self.plan == Plan::Interrupts && path.output().remaining_capacity() == 0 {
            // Interrupts do not check the capacity.
            tally.output_drops += u64::from(path.dequeue().is_some());
        }
        let (forwarder, now) = (&mut self.forwarder, Timestamp::from_nanos(self.now_ns));
        let forward = |mut packet: Datagram| match forwarder.forward(id.function, &mut packet, now)
        {
            Ok(()) => Some(packet),
            Err(_) => {
                tally.refused += 1;
                None
            }
        };
        let cost = path.cost();
        let packets = path.run(turn, forward, |packets| cost * packets);
        self.now_ns += (cost * packets).as_nanos() as u64;
        self.report_occupancy(Job::Write(id.port));
    }

    pub(crate) fn write(&mut self, port: Port, turn: &Turn, sink: &mut impl FnMut(Frame)) {
        let mut packets = 0;
        while self.senders[port as usize].free() > 0 {
            let Some((id, packet)) = self.select(port) else { break };
            let bytes = written(&packet, port);
            let sender = &mut self.senders[port as usize];
            let length = u64::from(packet.length) + (bytes.len() - packet.bytes.len()) as u64;
            self.now_ns += self.costs.output;
            sender.send(length, self.costs.kilobyte, self.now_ns);
            sink(Frame { index: packet.index, port, bytes });
            self.tallies[id.index()].sent += 1;
            self.report_occupancy(Job::Forward(id));
            packets += 1;
            self.arrive();
            if !turn.allows_more(packets, Duration::from_nanos(self.costs.output) * packets) {
                break;
            }
        }
    }

    /// Selects the next packet for a port: paths take turns.
    fn select(&mut self, port: Port) -> Option<(PathId, Datagram)> {
        let count = Function::ALL.len();
        let last = self.senders[port as usize].selected;
        (1..=count).find_map(|step| {
            let selected = (last + step) % count;
            let id = PathId { function: Function::ALL[selected], port };
            let packet = self.paths[id.index()].dequeue()?;
            self.senders[port as usize].selected = selected;
            Some((id, packet))
        })
    }
}
