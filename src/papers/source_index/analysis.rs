//! Analytical model of source hashing.
//!
//! It computes the expected number of collisions in a table ([`expected_collisions`]), and the
//! duration of a transfer in which all packets, the first one or none take the full lookup
//! ([`Transfer`]).
//!
//! Paper: Chandranmenon and Varghese, sections 3.2 and 3.4, and its Figures 2 and 5.

/// Returns the expected number of collisions of random keys in a table.
///
/// For n keys in m slots it is n - m (1 - (1 - 1/m)^n). A collision is a key in a slot that an
/// earlier one occupies, as counted in Figure 5; no hash is better on average over all sets of
/// keys. The result is 0 for 0 slots. The variance is smaller than the result, so three times its
/// square root is a safe bound of the deviation.
///
/// # Example
///
/// ```
/// use flowtable::papers::source_index::analysis::expected_collisions;
///
/// let tenths = |keys| (10.0 * expected_collisions(keys, 65_536)).round() / 10.0;
/// assert_eq!([1000, 10_000, 65_536].map(tenths), [7.6, 725.5, 24_109.2]);
/// ```
#[must_use]
pub fn expected_collisions(keys: u64, slots: u64) -> f64 {
    if slots == 0 {
        return 0.0;
    }
    // Two sets of keys that occupy a and b slots share a b / m of them. So the loop doubles the
    // number of keys, and adds one for a set bit. The closed formula would cancel: it subtracts two
    // nearly equal numbers.
    let (mut count, mut collisions) = (0.0, 0.0);
    for bit in (0..u64::BITS - keys.leading_zeros()).rev() {
        let occupied: f64 = count - collisions;
        collisions = 2.0 * collisions + occupied * occupied / slots as f64;
        count *= 2.0;
        if keys >> bit & 1 == 1 {
            collisions += (count - collisions) / slots as f64;
            count += 1.0;
        }
    }
    collisions
}

/// The mechanism by which the hops of a [`Transfer`] find the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Each packet takes a full lookup.
    Datagrams,
    /// Each packet takes a short lookup, after the set-up of a circuit.
    VirtualCircuit,
    /// The first packet takes a full lookup, the others short ones: the flow is not evicted.
    SourceHashing,
    /// Each packet has the index of the next hop.
    ThreadedIndices,
}

/// A transfer of packets over several hops without loss: the model of Figure 2. Times are in any
/// unit.
///
/// ```text
///     datagrams          full lookups (L)                           L L L L L …
///     virtual circuit    a round trip (R), then short lookups (s)   R       s s s s s …
///     source hashing     the first lookup is full                   L s s s s …
///     threaded indices   short lookups                              s s s s s …
/// ```
///
/// Hops are pipelined: they work in parallel on different packets. The propagation of the last
/// packet takes half a round trip.
///
/// # Example
///
/// ```
/// use flowtable::papers::source_index::analysis::{Mechanism, Transfer};
///
/// let milliseconds = Transfer { round_trip: 60.0, long: 0.2, short: 0.02, hops: 1 };
/// let hundred = [
///     Mechanism::Datagrams,
///     Mechanism::VirtualCircuit,
///     Mechanism::SourceHashing,
///     Mechanism::ThreadedIndices,
/// ];
/// let hundred = hundred.map(|mechanism| milliseconds.arrival(mechanism, 100));
/// assert_eq!(hundred.map(|time| (100.0 * time).round() / 100.0), [50.0, 92.0, 32.18, 32.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The round-trip time, without lookups.
    pub round_trip: f64,
    /// The time of a full lookup, by key.
    pub long: f64,
    /// The time of a short lookup, by index.
    pub short: f64,
    /// The number of hops with a lookup.
    pub hops: u32,
}

impl Transfer {
    /// Returns the time to the arrival of the last packet, with the set-up of a circuit.
    #[must_use]
    pub fn arrival(&self, mechanism: Mechanism, packets: u32) -> f64 {
        let Self { round_trip, long, short, hops } = *self;
        let [setup, first, next] = match mechanism {
            Mechanism::Datagrams => [0.0, long, long],
            Mechanism::VirtualCircuit => [round_trip, short, short],
            Mechanism::SourceHashing => [0.0, long, short],
            Mechanism::ThreadedIndices => [0.0, short, short],
        };
        let others = f64::from(packets.saturating_sub(1));
        setup + f64::from(hops) * first + others * next + round_trip / 2.0
    }
}
