//! Routers that execute packets, links that lose and duplicate them, and time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use flowtable::ephemeral::esp::{Action, EspPacket, Location, Site, execute};
use flowtable::ephemeral::{EphemeralStore, Heads, StoreError};
use flowtable::{DefaultHashBuilder, Timestamp};
use rand::Rng;
use rand::rngs::StdRng;

use super::tree::Tree;

/// How bad links are: out of a thousand packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    pub lost: u32,
    pub duplicated: u32,
}

/// What became of packets of ephemeral state processing.
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
    /// Those of them that could not be executed somewhere.
    pub errors: u64,
}

impl Traffic {
    /// All of them are somewhere.
    pub fn adds_up(&self) -> bool {
        self.sent + self.duplicated == self.dropped + self.lost + self.arrived
    }
}

/// What a link delivers.
#[derive(Clone, Debug)]
enum Message {
    /// The source's query.
    Query,
    /// A receiver's answer, on its way up.
    Answer(Vec<u8>),
}

pub struct Network {
    pub tree: Tree,
    links: Links,
    stores: Vec<EphemeralStore>,
    /// What is under way, by when it arrives, and where.
    in_flight: BTreeMap<(u64, u64), (usize, Message)>,
    sequence: u64,
    /// Microseconds.
    now: u64,
    pub traffic: Traffic,
    /// Bindings that a router had at once, at most.
    pub most_bindings: usize,
    pub rng: StdRng,
}

impl Network {
    /// As long as the paper's.
    pub const LIFETIME: Duration = Duration::from_secs(10);
    /// Bindings of each router.
    const CAPACITY: usize = 1000;
    /// Between 1 and so many ms over a link.
    const MAX_DELAY: u64 = 5_000;
    /// Receivers answer within this time.
    const SPREAD: u64 = 100_000;
    /// From the last packet of an exchange to the first of the next.
    const PAUSE: u64 = 100_000;

    pub fn new(tree: Tree, links: Links, mut rng: StdRng) -> Result<Self, StoreError> {
        let mut store = |_| {
            let hasher = DefaultHashBuilder::with_seed(rng.random());
            EphemeralStore::with_parts(Self::CAPACITY, Self::LIFETIME, Heads::Double, hasher)
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

    /// One exchange: a query is multicast, each receiver that gets it answers with so many copies
    /// of a packet, if it has something to say. What arrives at the source, when all packets are
    /// somewhere.
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
        packet.write_to(&mut bytes).expect("it is as long");
        self.traffic.sent += 1;
        let delay = self.rng.random_range(0..Self::SPREAD);
        let router = self.tree.parent(receiver).expect("receivers are below routers");
        self.transmit(router, Message::Answer(bytes), delay);
    }

    /// What a router does with a packet on its way up. If it goes on to the source, that gets it.
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
        packet.write_to(&mut bytes).expect("it is as long as it was");
        self.transmit(above, Message::Answer(bytes), 0);
        None
    }

    /// Over the link to a node, after some time.
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

    /// Bindings of all routers.
    pub fn bindings(&self) -> usize {
        self.stores.iter().map(|store| store.live(Timestamp::from_micros(self.now))).sum()
    }

    /// What became of packets since it was asked last.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Lets a lifetime pass in which nothing happens.
    pub fn idle(&mut self) {
        self.now += Self::LIFETIME.as_micros() as u64;
    }
}

/// How a node is known to those next to it. No two have the same.
pub fn identity(node: usize) -> u64 {
    node as u64 + 1
}
