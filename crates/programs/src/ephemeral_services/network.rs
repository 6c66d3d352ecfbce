//! Routers that execute packets, links that lose and duplicate them, and time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use flowtable::ephemeral::{EphemeralStore, StoreError};
use flowtable::papers::esp::{Action, EspPacket, Location, Site, execute};
use flowtable::{DefaultHashBuilder, Timestamp};
use rand::Rng;
use rand::rngs::StdRng;

use super::tree::Tree;

/// Error rates of links, per thousand packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    pub lost: u32,
    pub duplicated: u32,
}

/// Counts of packets of ephemeral state processing, by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// By receivers.
    pub sent: u64,
    /// By routers.
    pub forwarded: u64,
    pub dropped: u64,
    /// By links.
    pub lost: u64,
    pub duplicated: u64,
    /// At the source.
    pub arrived: u64,
    /// Packets at the source whose execution failed at a router.
    pub errors: u64,
}

impl Traffic {
    /// Returns whether all packets are accounted for.
    pub fn adds_up(&self) -> bool {
        self.sent + self.duplicated == self.dropped + self.lost + self.arrived
    }
}

/// A message that a link delivers.
#[derive(Clone, Debug)]
enum Message {
    /// The source's query.
    Query,
    /// A receiver's answer, which travels to the source.
    Answer(Vec<u8>),
}

pub struct Network {
    pub tree: Tree,
    links: Links,
    stores: Vec<EphemeralStore>,
    /// Messages in flight, by arrival time and sequence number, with their destination.
    in_flight: BTreeMap<(u64, u64), (usize, Message)>,
    sequence: u64,
    /// Microseconds.
    now: u64,
    pub traffic: Traffic,
    /// Maximum number of bindings of a router.
    pub most_bindings: usize,
    pub rng: StdRng,
}

impl Network {
    /// The lifetime of the paper.
    pub const LIFETIME: Duration = Duration::from_secs(10);
    /// Bindings of each router.
    const CAPACITY: usize = 1000;
    /// Maximum delay of a link in microseconds; the minimum is 1 ms.
    const MAX_DELAY: u64 = 5_000;
    /// Receivers answer within this time.
    const SPREAD: u64 = 100_000;
    /// Time from the last packet of an exchange to the first of the next.
    const PAUSE: u64 = 100_000;

    pub fn new(tree: Tree, links: Links, mut rng: StdRng) -> Result<Self, StoreError> {
        let mut store = |_| {
            let hasher = DefaultHashBuilder::with_seed(rng.random());
            EphemeralStore::with_parts(Self::CAPACITY, Self::LIFETIME, hasher)
        };
        let stores = (0..tree.routers).map(&mut store).collect::<Result<_, _>>()?;
        Ok(Self {
            tree,
            links,
            stores,
            in_flight: BTreeMap::new(),
            sequence: 0,
            now: 0,
            traffic: Traffic::default(),
            most_bindings: 0,
            rng,
        })
    }

    /// Runs one exchange: multicasts a query; each receiver that gets it sends `copies` copies of
    /// its answer, if it has one. Returns the packets that arrive at the source.
    pub fn exchange(
        &mut self,
        copies: u32,
        answer: impl Fn(usize, &Tree) -> Option<EspPacket>,
    ) -> Vec<EspPacket> {
        self.now += Self::PAUSE;
        let (mut queried, mut arrived) = (BTreeSet::new(), vec![]);
        self.in_flight.insert((self.now, 0), (0, Message::Query));
        while let Some(((now, _), (node, message))) = self.in_flight.pop_first() {
            self.now = now;
            match message {
                Message::Query if !self.tree.is_receiver(node) => {
                    for child in self.tree.children(node).to_vec() {
                        self.transmit(child, Message::Query, 0);
                    }
                }
                // A duplicate of the query is not answered.
                Message::Query => {
                    let packet = queried.insert(node).then(|| answer(node, &self.tree)).flatten();
                    if let Some(packet) = packet {
                        (0..copies).for_each(|_| self.answer(node, &packet));
                    }
                }
                Message::Answer(bytes) => arrived.extend(self.route(node, &bytes)),
            }
        }
        arrived
    }

    fn answer(&mut self, receiver: usize, packet: &EspPacket) {
        let mut bytes = vec![0; packet.encoded_len()];
        packet.write_to(&mut bytes).expect("the buffer has the encoded length");
        self.traffic.sent += 1;
        let delay = self.rng.random_range(0..Self::SPREAD);
        let router = self.tree.parent(receiver).expect("receivers are below routers");
        self.transmit(router, Message::Answer(bytes), delay);
    }

    /// Executes a packet at a router and forwards it. Returns the packet if it arrives at the
    /// source.
    fn route(&mut self, router: usize, bytes: &[u8]) -> Option<EspPacket> {
        let (mut packet, _) = EspPacket::parse(bytes).expect("links do not damage anything");
        let site = Site { location: Location::Centre, identity: identity(router) };
        let now = Timestamp::from_micros(self.now);
        let verdict = execute(&mut self.stores[router], &mut packet, site, now);
        self.most_bindings = self.most_bindings.max(self.stores[router].live(now));
        if verdict == Action::Drop {
            self.traffic.dropped += 1;
            return None;
        }
        self.traffic.forwarded += 1;
        let Some(above) = self.tree.parent(router) else {
            self.traffic.arrived += 1;
            self.traffic.errors += u64::from(packet.error);
            return Some(packet);
        };
        let mut bytes = bytes.to_vec();
        packet.write_to(&mut bytes).expect("the length is unchanged");
        self.transmit(above, Message::Answer(bytes), 0);
        None
    }

    /// Sends a message over the link to a node, after a delay.
    fn transmit(&mut self, to: usize, message: Message, delay: u64) {
        let happens = |rng: &mut StdRng, thousandth| rng.random_range(0..1000) < thousandth;
        let is_lost = happens(&mut self.rng, self.links.lost);
        let is_duplicated = !is_lost && happens(&mut self.rng, self.links.duplicated);
        if let Message::Answer(_) = message {
            self.traffic.lost += u64::from(is_lost);
            self.traffic.duplicated += u64::from(is_duplicated);
        }
        let copies = [!is_lost, is_duplicated].into_iter().filter(|arrives| *arrives).count();
        for _ in 0..copies {
            self.sequence += 1;
            let arrives = self.now + delay + self.rng.random_range(1000..=Self::MAX_DELAY);
            self.in_flight.insert((arrives, self.sequence), (to, message.clone()));
        }
    }

    /// Returns the number of bindings of all routers.
    pub fn bindings(&self) -> usize {
        self.stores.iter().map(|store| store.live(Timestamp::from_micros(self.now))).sum()
    }

    /// Returns the counts of packets since the last call.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Advances the time by a lifetime without traffic.
    pub fn idle(&mut self) {
        self.now += Self::LIFETIME.as_micros() as u64;
    }
}

/// Returns the identifier of a node for its neighbours, unique in the network.
pub fn identity(node: usize) -> u64 {
    node as u64 + 1
}
