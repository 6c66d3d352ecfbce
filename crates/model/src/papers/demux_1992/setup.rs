//! Connections that are set up concurrently: the other experiment of the paper.
//!
//! ```text
//!     client   SYN      ACK  data      data      data      data      data
//!                 ╲    ╱   ╲     ╲    ╱    ╲    ╱    ╲    ╱    ╲    ╱    ╲
//!     server       SYN-ACK             ack       ack       ack       ack       ack
//!              0       1    2   3       4   5     6   7     8   9    10  11    12
//! ```
//!
//! Each connection has these 13 packets. The interleaving of connections is random and uniform.

use flowtable::demux::Arrival;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// Packets per connection.
pub const PACKETS: u8 = 13;

/// A packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Connection index, below the number of connections.
    pub connection: u32,
    /// Position among the 13 packets.
    pub number: u8,
}

impl Segment {
    /// Returns whether this is the first packet of its connection, which has no PCB yet.
    pub fn is_syn(self) -> bool {
        self.number == 0
    }

    /// Returns whether the server receives this packet. The paper also charges a lookup for packets
    /// that the client receives.
    pub fn is_for_server(self) -> bool {
        matches!(self.number, 0 | 2 | 3 | 5 | 7 | 9 | 11)
    }

    pub fn arrival(self) -> Arrival {
        match self.number {
            0 | 3 | 5 | 7 | 9 | 11 => Arrival::Data,
            _ => Arrival::Ack,
        }
    }
}

/// Returns all packets of `connections` connections, in random order.
pub fn segments(connections: u32, seed: u64) -> Vec<Segment> {
    let mut turns: Vec<u32> = (0..PACKETS).flat_map(|_| 0..connections).collect();
    turns.shuffle(&mut StdRng::seed_from_u64(seed));
    let mut sent = vec![0; connections as usize];
    let next = |connection: u32| {
        let number = sent[connection as usize];
        sent[connection as usize] += 1;
        Segment { connection, number }
    };
    turns.into_iter().map(next).collect()
}
