//! Clients of a server, and their segments.

use std::net::Ipv4Addr;

use flowtable::FourTuple;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Segments of a train.
const TRAIN: usize = 4;

/// A client's connection, as its segments identify it.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) name: FourTuple<Ipv4Addr>,
    /// The index of its PCB, for packets that carry a connection ID.
    pub(crate) id: u32,
}

/// The order of segments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Random,
    Dependent,
    Trains,
}

/// Draws the segments of a round.
pub(crate) struct Segments {
    /// The clients in the order of connection, which is random.
    pub(crate) clients: Vec<Client>,
    rng: StdRng,
}

impl Segments {
    /// Draws clients with random addresses and ephemeral ports.
    pub(crate) fn new(clients: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let client = |id| {
            let (src, sport) = (rng.random::<u32>().into(), rng.random_range(32_768..61_000));
            let (dst, dport) = (Ipv4Addr::new(198, 51, 100, 1), 443);
            Client { name: FourTuple { src, dst, sport, dport }, id }
        };
        Self { clients: (0..clients as u32).map(client).collect(), rng: StdRng::seed_from_u64(2) }
    }

    /// Returns all clients in a new random order.
    pub(crate) fn shuffled(&mut self) -> Vec<Client> {
        let mut shuffled = self.clients.clone();
        shuffled.shuffle(&mut self.rng);
        shuffled
    }

    /// Draws the clients of the next segments.
    pub(crate) fn draw(&mut self, order: Order, count: usize) -> Vec<Client> {
        let Self { clients, rng } = self;
        let length = if order == Order::Trains { TRAIN } else { 1 };
        let mut segments = Vec::with_capacity(count + TRAIN);
        while segments.len() < count {
            let client = clients[rng.random_range(0..clients.len())];
            segments.extend(std::iter::repeat_n(client, length));
        }
        segments.truncate(count);
        segments
    }
}
