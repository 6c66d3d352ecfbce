//! What source hashing is good for, on paper.
//!
//! Two questions: how many names meet in a place of a table ([`expected_collisions`]), and what a transfer
//! gains when only its first packet, or none, takes the long way ([`Transfer`]).
//!
//! Paper: Chandranmenon and Varghese, sections 2 and 6, and its Figures 2 and 5.

/// Names that come to a place that another one has, of `names` over so many places at random: n - m (1 - (1 - 1/m)^n).
///
/// This is what Figure 5 counts; no hash can do better on average without knowing the names. 0 for
/// no places. The variance is smaller than this number, so three times its root is a safe bound.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::analysis::expected_collisions;
///
/// let tenths = |names| (10.0 * expected_collisions(names, 65_536)).round() / 10.0;
/// assert_eq!([1000, 10_000, 65_536].map(tenths), [7.6, 725.5, 24_109.2]);
/// ```
#[must_use]
pub fn expected_collisions(names: u64, places: u64) -> f64 {
    if places == 0 {
        return 0.0;
    }
    // Two lots of names that take a and b places meet in a b / m of them. So from half of the names to all, and one
    // more if it is missing; the formula itself would take the difference of two numbers that are nearly equal.
    let (mut count, mut collisions) = (0.0, 0.0);
    for bit in (0..u64::BITS - names.leading_zeros()).rev() {
        let taken: f64 = count - collisions;
        collisions = 2.0 * collisions + taken * taken / places as f64;
        count *= 2.0;
        if names >> bit & 1 == 1 {
            collisions += (count - collisions) / places as f64;
            count += 1.0;
        }
    }
    collisions
}

/// How much faster a packet is done with, if its look-up takes `short` instead of `long` and everything else `rest`.
///
/// The paper's example: 30 instructions for a hash, 2 for a source index, 30 for the rest.
///
/// ```
/// use flowtable::hash::source_index::analysis::improvement;
///
/// assert_eq!(improvement(30.0, 2.0, 30.0), 1.875);
/// ```
#[must_use]
pub fn improvement(long: f64, short: f64, rest: f64) -> f64 {
    (long + rest) / (short + rest)
}

/// A transfer of some packets over some hops, without loss: the model of Figure 2. Times are in any one unit.
///
/// ```text
///     datagrams          every packet takes the long way      L L L L L …
///     virtual circuit    a round trip, then the short one     R       s s s s s …
///     source hashing     the first packet takes the long way  L s s s s …
///     threaded indices   none does                            s s s s s …
/// ```
///
/// Hops work at the same time, each on another packet. The last packet has half a round trip to go.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::analysis::Transfer;
///
/// let milliseconds = Transfer { round_trip: 60.0, long: 0.2, short: 0.02, hops: 1 };
/// let hundred = [
///     milliseconds.datagrams(100),
///     milliseconds.virtual_circuit(100),
///     milliseconds.source_hashing(100),
///     milliseconds.threaded(100),
/// ];
/// assert_eq!(hundred.map(|time| (100.0 * time).round() / 100.0), [50.0, 92.0, 32.18, 32.0]);
/// // A virtual circuit is only worth its set-up for more packets than this.
/// assert_eq!(milliseconds.packets_for_a_circuit().floor(), 333.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// There and back, without look-ups.
    pub round_trip: f64,
    /// A look-up by the whole name.
    pub long: f64,
    /// A look-up by index.
    pub short: f64,
    /// Hops that look up.
    pub hops: u32,
}

impl Transfer {
    /// Until the last of so many packets has arrived, if each is looked up by its name.
    #[must_use]
    pub fn datagrams(&self, packets: u32) -> f64 {
        self.arrival(self.long, self.long, packets)
    }

    /// If a circuit is set up first.
    #[must_use]
    pub fn virtual_circuit(&self, packets: u32) -> f64 {
        self.round_trip + self.arrival(self.short, self.short, packets)
    }

    /// If the first packet is looked up by its name, and no other flow has its place.
    #[must_use]
    pub fn source_hashing(&self, packets: u32) -> f64 {
        self.arrival(self.long, self.short, packets)
    }

    /// If every packet has the index of the next hop.
    #[must_use]
    pub fn threaded(&self, packets: u32) -> f64 {
        self.arrival(self.short, self.short, packets)
    }

    /// So many packets take as long as datagrams as through a circuit, over one hop: R / (L - s).
    #[must_use]
    pub fn packets_for_a_circuit(&self) -> f64 {
        self.round_trip / (self.long - self.short)
    }

    /// If each hop takes `first` for the first packet and `next` for each of the others.
    fn arrival(&self, first: f64, next: f64, packets: u32) -> f64 {
        let behind = f64::from(packets.saturating_sub(1));
        f64::from(self.hops) * first + behind * next + self.round_trip / 2.0
    }
}
