//! The stages of the router: what is done in a turn.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::schedule::Turn;

use super::costs::written;
use super::router::{Frame, Router};
use super::{Datagram, Function, Job, Plan, Port, Way};

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

    /// Takes a packet from a ring and puts it into its path.
    pub(crate) fn read(&mut self, port: Port) -> bool {
        let Some(number) = self.receivers[port as usize].ring.pop() else { return false };
        let packet = &self.traffic.packets[number as usize].packet;
        match self.classifier.way(packet) {
            Ok(way) => {
                self.tallies[way.number()].arrived += 1;
                // The queue counts what it has no place for.
                _ = self.paths[way.number()].enqueue(packet.clone());
                self.tell(Job::Forward(way));
            }
            Err(_) => self.outcome.without += 1,
        }
        true
    }

    pub(crate) fn forward(&mut self, way: Way, turn: &Turn) {
        let (path, tally) = (&mut self.paths[way.number()], &mut self.tallies[way.number()]);
        if self.plan == Plan::Interrupts && path.output().remaining_capacity() == 0 {
            // Nobody has asked whether there is room.
            tally.output_drops += u64::from(path.dequeue().is_some());
        }
        let (workshop, now) = (&mut self.workshop, Timestamp::from_nanos(self.now_ns));
        let forward = |mut packet: Datagram| match workshop.forward(way.function, &mut packet, now)
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
        self.tell(Job::Write(way.port));
    }

    pub(crate) fn write(&mut self, port: Port, turn: &Turn, sink: &mut impl FnMut(Frame)) {
        let mut packets = 0;
        while self.senders[port as usize].room() > 0 {
            let Some((way, packet)) = self.select(port) else { break };
            let bytes = written(&packet, port);
            let sender = &mut self.senders[port as usize];
            let length = u64::from(packet.length) + (bytes.len() - packet.bytes.len()) as u64;
            self.now_ns += self.costs.output;
            sender.send(length, self.costs.kilobyte, self.now_ns);
            sink(Frame { number: packet.number, port, bytes });
            self.tallies[way.number()].sent += 1;
            self.tell(Job::Forward(way));
            packets += 1;
            self.arrive();
            if !turn.allows_more(packets, Duration::from_nanos(self.costs.output) * packets) {
                break;
            }
        }
    }

    /// The next packet for a port: paths take turns.
    fn select(&mut self, port: Port) -> Option<(Way, Datagram)> {
        let count = Function::ALL.len();
        let last = self.senders[port as usize].selected;
        (1..=count).find_map(|step| {
            let selected = (last + step) % count;
            let way = Way { function: Function::ALL[selected], port };
            let packet = self.paths[way.number()].dequeue()?;
            self.senders[port as usize].selected = selected;
            Some((way, packet))
        })
    }
}
