//! The transfers of figure 2: by hand, by the equations of the crate, and packet by packet through
//! a cache.

use flowtable::cache::{CacheError, SourceHashCache};
use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::source_index::analysis::{Mechanism, Transfer};

/// The parameters of figure 2, in milliseconds.
pub const FIGURE_2: Transfer = Transfer { round_trip: 60.0, long: 0.2, short: 0.02, hops: 1 };

/// The equations of the paper, evaluated by hand: packets, then datagrams, circuit, source hashing,
/// threaded.
pub const BY_HAND: [(u32, [f64; 4]); 6] = [
    (1, [30.20, 90.02, 30.20, 30.02]),
    (10, [32.00, 90.20, 30.38, 30.20]),
    (100, [50.00, 92.00, 32.18, 32.00]),
    (333, [96.60, 96.66, 36.84, 36.66]),
    (334, [96.80, 96.68, 36.86, 36.68]),
    (1000, [230.00, 110.00, 50.18, 50.00]),
];

/// The equations of the crate, in the same order.
pub fn all(transfer: &Transfer, packets: u32) -> [f64; 4] {
    let mechanisms = [
        Mechanism::Datagrams,
        Mechanism::VirtualCircuit,
        Mechanism::SourceHashing,
        Mechanism::ThreadedIndices,
    ];
    mechanisms.map(|mechanism| transfer.arrival(mechanism, packets))
}

/// The number of packets for which datagrams and a virtual circuit take equal times over one hop:
/// R / (L - s).
pub fn packets_for_a_circuit(transfer: &Transfer) -> f64 {
    transfer.round_trip / (transfer.long - transfer.short)
}

/// The speed-up of a packet whose lookup takes `short` instead of `long`, next to other work.
pub fn improvement(long: f64, short: f64, rest: f64) -> f64 {
    (long + rest) / (short + rest)
}

/// The time of a transfer through a real cache, in which misses are long and hits short.
pub fn through_a_cache(transfer: &Transfer, packets: u32) -> Result<f64, CacheError> {
    let mut cache: SourceHashCache<u32, ()> = SourceHashCache::new(1)?;
    let index = SourceIndex::new(1995);
    let mut time = transfer.round_trip / 2.0;
    for _ in 0..packets {
        let is_hit = cache.get(index, &7).is_some();
        time += if is_hit { transfer.short } else { transfer.long };
        let _ = cache.insert(index, 7, ());
    }
    Ok(time)
}
