//! The queues of a network card, by its hash.

use std::array;
use std::num::NonZero;

use flowtable::FlowKey;
use flowtable::hash::source_index::Toeplitz;

/// The workers of packets, by the last seven bits of the hash of a card with the symmetric key: as
/// [`Steering`](flowtable::flow_cache::Steering), without redirected packets.
///
/// The key repeats every 16 bits, so the hash of a packet is the hash of the sum of its words of 16
/// bits: the sum of the hashes of two bytes.
#[derive(Debug)]
pub struct Card {
    bytes: [[u8; 256]; 2],
    /// The indirection table.
    workers: [u8; Self::ENTRIES],
}

impl Card {
    /// Entries of the indirection table.
    const ENTRIES: usize = 128;

    /// Creates the card of at most 256 workers.
    pub fn new(workers: NonZero<usize>) -> Self {
        let hash = |word: u32| (Toeplitz::SYMMETRIC.hash(&word) as usize % Self::ENTRIES) as u8;
        Self {
            bytes: [0, 8].map(|shift| array::from_fn(|byte| hash((byte as u32) << shift))),
            workers: array::from_fn(|entry| (entry % workers) as u8),
        }
    }

    /// Returns the worker of a packet.
    #[inline]
    pub fn worker(&self, key: &FlowKey) -> usize {
        let ports = u32::from(key.sport() ^ key.dport());
        let words = match key {
            FlowKey::V4(tuple) => tuple.src.to_bits() ^ tuple.dst.to_bits(),
            FlowKey::V6(tuple) => {
                let both = tuple.src.to_bits() ^ tuple.dst.to_bits();
                let half = (both >> 64) as u64 ^ both as u64;
                (half >> 32) as u32 ^ half as u32
            }
        };
        let [lower, upper, ..] = (words ^ words >> 16 ^ ports).to_le_bytes();
        let entry = self.bytes[0][usize::from(lower)] ^ self.bytes[1][usize::from(upper)];
        usize::from(self.workers[usize::from(entry) % Self::ENTRIES])
    }
}
