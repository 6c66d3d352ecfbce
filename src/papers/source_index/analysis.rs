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

/// Returns the speed-up of processing a packet if its lookup takes `short` instead of `long` and
/// all other work `rest`.
///
/// The example of the paper: 30 instructions for a hash, 2 for a source index, 30 for the rest.
///
/// ```
/// use flowtable::papers::source_index::analysis::improvement;
///
/// assert_eq!(improvement(30.0, 2.0, 30.0), 1.875);
/// ```
#[must_use]
pub fn improvement(long: f64, short: f64, rest: f64) -> f64 {
    (long + rest) / (short + rest)
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
/// use flowtable::papers::source_index::analysis::Transfer;
///
/// let milliseconds = Transfer { round_trip: 60.0, long: 0.2, short: 0.02, hops: 1 };
/// let hundred = [
///     milliseconds.datagrams(100),
///     milliseconds.virtual_circuit(100),
///     milliseconds.source_hashing(100),
///     milliseconds.threaded(100),
/// ];
/// assert_eq!(hundred.map(|time| (100.0 * time).round() / 100.0), [50.0, 92.0, 32.18, 32.0]);
/// // Beyond this number of packets a virtual circuit is faster than datagrams.
/// assert_eq!(milliseconds.packets_for_a_circuit().floor(), 333.0);
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
    /// Returns the time to the arrival of the last packet, if each takes a full lookup.
    #[must_use]
    pub fn datagrams(&self, packets: u32) -> f64 {
        self.arrival(self.long, self.long, packets)
    }

    /// Returns the time to the arrival of the last packet over a virtual circuit, including its
    /// set-up.
    #[must_use]
    pub fn virtual_circuit(&self, packets: u32) -> f64 {
        self.round_trip + self.arrival(self.short, self.short, packets)
    }

    /// Returns the time to the arrival of the last packet, if only the first one takes a full
    /// lookup: the flow is not evicted.
    #[must_use]
    pub fn source_hashing(&self, packets: u32) -> f64 {
        self.arrival(self.long, self.short, packets)
    }

    /// Returns the time to the arrival of the last packet, if each has the index of the next hop.
    #[must_use]
    pub fn threaded(&self, packets: u32) -> f64 {
        self.arrival(self.short, self.short, packets)
    }

    /// Returns the number of packets for which datagrams and a virtual circuit take equal times,
    /// over one hop: R / (L - s).
    #[must_use]
    pub fn packets_for_a_circuit(&self) -> f64 {
        self.round_trip / (self.long - self.short)
    }

    /// Returns the time to the arrival of the last packet, if a hop takes `first` for the first
    /// packet and `next` for each of the others.
    fn arrival(&self, first: f64, next: f64, packets: u32) -> f64 {
        let others = f64::from(packets.saturating_sub(1));
        f64::from(self.hops) * first + others * next + self.round_trip / 2.0
    }
}
