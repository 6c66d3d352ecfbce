//! The device of the router: cards, functions, links and a clock.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::papers::schedule::BoundedQueue;
use flowtable::papers::schedule::pipeline::{Device, Reading};

use super::cards::{RING, Sender, link_bytes};
use super::costs::written;
use super::{Classifier, Costs, Datagram, Forwarder, PathId, PathTally, Port, Traffic};

/// A frame that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Index of the packet.
    pub index: u32,
    pub port: Port,
    pub bytes: Vec<u8>,
}

/// The device of the pipeline: real packets, and a clock to which each step adds its cost.
pub(crate) struct Cards<'a, S> {
    pub costs: &'a Costs,
    pub traffic: &'a Traffic,
    pub duration_ns: u64,
    pub now_ns: u64,
    /// Index of the next packet to arrive.
    pub next: usize,
    /// The received packets of each port, by index. The rings count drops.
    pub rings: [BoundedQueue<u32>; Port::ALL.len()],
    pub classifier: Classifier,
    pub forwarder: Forwarder,
    /// By path index.
    pub paths: Vec<PathId>,
    pub tallies: Vec<PathTally>,
    pub senders: [Sender; Port::ALL.len()],
    pub unclassified: u64,
    pub empty_polls: u64,
    /// Takes the sent frames.
    pub sink: S,
}

impl<'a, S: FnMut(Frame)> Cards<'a, S> {
    pub(crate) fn new(costs: &'a Costs, traffic: &'a Traffic, rate: u64, sink: S) -> Self {
        let ring = |_| BoundedQueue::new(RING as usize).expect("the capacity is positive");
        let (now_ns, next, unclassified, empty_polls) = (0, 0, 0, 0);
        Self {
            costs,
            traffic,
            duration_ns: traffic.duration_ns(rate),
            now_ns,
            next,
            rings: Port::ALL.map(ring),
            classifier: Classifier::default(),
            forwarder: Forwarder::default(),
            paths: PathId::all().collect(),
            tallies: vec![PathTally::default(); PathId::COUNT],
            senders: Default::default(),
            unclassified,
            empty_polls,
            sink,
        }
    }

    /// Advances the clock. Moves arrived packets into the rings, and lets the links take packets.
    pub(crate) fn pass(&mut self, nanoseconds: u64) {
        self.now_ns += nanoseconds;
        let until_ns = self.now_ns.min(self.duration_ns);
        while let Some(time_ns) = self.traffic.time_ns(self.next, self.duration_ns) {
            if time_ns > until_ns {
                break;
            }
            let port = self.traffic.packets[self.next].port;
            // The ring counts drops.
            _ = self.rings[port as usize].push(self.next as u32);
            self.next += 1;
        }
        self.senders.iter_mut().for_each(|sender| sender.advance(self.now_ns));
    }

    /// Returns the time of the next event: an arrival, or a departure.
    pub(crate) fn next_event_ns(&self) -> impl Iterator<Item = u64> {
        let departures = self.senders.iter().filter_map(Sender::next_departure_ns);
        departures.chain(self.traffic.time_ns(self.next, self.duration_ns))
    }
}

impl<S: FnMut(Frame)> Device for Cards<'_, S> {
    type Packet = Datagram;

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now_ns)
    }

    fn read(&mut self, input: usize) -> Reading<Datagram> {
        let Some(index) = self.rings[input].pop() else { return Reading::Empty };
        let traffic = self.traffic;
        let packet = &traffic.packets[index as usize].packet;
        let path = self.classifier.classify(packet);
        self.pass(self.costs.input);
        match path {
            Ok(id) => {
                self.tallies[id.index()].arrived += 1;
                Reading::Packet { path: id.index(), packet: packet.clone() }
            }
            Err(_) => {
                self.unclassified += 1;
                Reading::Discarded
            }
        }
    }

    fn empty_poll(&mut self, _: usize) -> Duration {
        self.empty_polls += 1;
        self.pass(self.costs.input);
        Duration::ZERO
    }

    fn waiting(&self, input: usize) -> u32 {
        self.rings[input].len() as u32
    }

    fn forward(&mut self, path: usize, mut packet: Datagram) -> Option<Datagram> {
        let (function, now) = (self.paths[path].function, self.now());
        let forwarded = self.forwarder.forward(function, &mut packet, now);
        self.pass(self.costs.functions[function as usize]);
        self.tallies[path].refused += u64::from(forwarded.is_err());
        forwarded.is_ok().then_some(packet)
    }

    fn write(&mut self, output: usize, path: usize, packet: Datagram) {
        let port = Port::ALL[output];
        let bytes = written(&packet, port);
        self.pass(self.costs.output);
        self.senders[output].send(link_bytes(&packet), self.costs.kilobyte, self.now_ns);
        (self.sink)(Frame { index: packet.index, port, bytes });
        self.tallies[path].sent += 1;
    }

    fn room(&self, output: usize) -> u32 {
        self.senders[output].free()
    }

    fn length(&self, packet: &Datagram) -> u64 {
        link_bytes(packet)
    }
}
