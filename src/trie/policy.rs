//! Resize policy: the decision *whether* to resize a node. `resize.rs` does it.
//!
//! A node is doubled if the doubled node would be filled well, and halved if it is filled badly.
//! Doubling gives each full child two used slots and every other child one, so of the 2^(bits+1)
//! slots of the doubled node, `used + full` are used at once. (A full child whose keys all lie on
//! one side of the new bit fills one slot only. It still counts as two: a check would cost a cache
//! line per child.)
//!
//! Halving must not undo doubling. After a halving, `used + full` is the former `used`, which was
//! less than `halve` percent of *twice* the slots: no reason to double as long as
//! `halve < inflate`, which [`Thresholds::new`] requires. After a doubling, `used + full` slots are
//! used, and never less than `used`, which is half of that: no reason to halve whatever the keys
//! are if `halve <= inflate / 2`, and rarely otherwise. Linux observes this for its nodes, and for
//! the root since 2008.

use core::error::Error;
use core::fmt;

/// The fill levels at which a node is doubled and halved, in percent of its slots.
///
/// The sources of Linux have them; the TRASH paper states no numbers.
///
/// # Example
///
/// ```
/// use flowtable::trie::Thresholds;
///
/// assert!(Thresholds::new(50, 25).is_ok());
/// let error = Thresholds::new(101, 25).unwrap_err();
/// assert_eq!(error.to_string(), "inflate threshold of 101 %: must be 1 to 100");
/// assert!(Thresholds::new(25, 25).is_err()); // would oscillate between doubling and halving
/// ```
///
/// Level compression as the papers define it, of complete levels only, is 100 % to inflate. The 15
/// strings of figure 1 of Nilsson and Karlsson, *IP-address lookup using LC-tries*, 1999:
///
/// ```text
///     binary     ┌──────────┬─────┬────┬──────────┬────┬─────┬────┬────┐    3 complete levels
///                000       001   010  011        100  101   110  111
///               0   1             ·   0   1       ·  ┌──┬──┬──┐   ·  skip 0100
///             0000 0001   00101  010 0110 0111   100 00 01 10 11 110  0   1
///                                                   0  1
/// ```
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::trie::{Thresholds, Tuning};
///
/// let complete = Thresholds::new(100, 99)?;
/// let mut trie =
///     LcTrieMap::with_tuning(Tuning { node: complete, root: complete, ..Tuning::default() });
/// for string in [
///     "0000", "0001", "00101", "010", "0110", "0111", "100", "101000", "101001", "10101", "10110",
///     "10111", "110", "11101000", "11101001",
/// ] {
///     let bits = u8::from_str_radix(string, 2).unwrap();
///     trie.insert(bits << (8 - string.len()), string);
/// }
/// let shape = trie.shape();
/// // The root has 8 slots; 5 nodes are below it, one of 4 slots.
/// assert_eq!((shape.root_bits, shape.nodes()), (3, 6));
/// assert_eq!(shape.nodes_by_bits, [0, 4, 1, 1]);
/// assert_eq!(shape.leaves_by_depth, [0, 4, 9, 2]);
/// # Ok::<(), flowtable::trie::TuningError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Thresholds {
    inflate: u8,
    halve: u8,
}

impl Thresholds {
    /// Creates thresholds: a node is doubled when the doubled node would be filled to `inflate`
    /// percent or more, and halved when it is filled to less than `halve` percent.
    ///
    /// # Errors
    ///
    /// If a threshold is 0 or above 100, or `halve` is not below `inflate`.
    pub const fn new(inflate: u8, halve: u8) -> Result<Self, TuningError> {
        if inflate == 0 || inflate > 100 {
            return Err(TuningError::Inflate(inflate));
        }
        if halve == 0 || halve > 100 {
            return Err(TuningError::Halve(halve));
        }
        if halve >= inflate {
            return Err(TuningError::Order { inflate, halve });
        }
        Ok(Self { inflate, halve })
    }

    /// Whether to double a node of 2^bits slots, `used` of them filled and `full` of these with
    /// nodes that skip no bits.
    pub(crate) fn should_inflate(self, bits: u32, used: u32, full: u32) -> bool {
        let filled = u64::from(used) + u64::from(full);
        full > 0 && 100 * filled >= u64::from(self.inflate) << (bits + 1)
    }

    /// Whether to halve a node of 2^bits slots, `used` of them filled.
    pub(crate) fn should_halve(self, bits: u32, used: u32) -> bool {
        bits > 1 && 100 * u64::from(used) < u64::from(self.halve) << bits
    }
}

/// The parameters by which a level-compressed trie doubles and halves its nodes.
///
/// The root has separate thresholds, because a wide root saves a level for all keys: the lower its
/// thresholds, the shallower the trie, and the more slots it has per key.
///
/// | | node | root | slots per key at a million random keys | average depth |
/// |---|---|---|--:|--:|
/// | [`LINUX`](Self::LINUX), the default | 50 / 25 | 30 / 15 | 2.5 | 1.42 |
/// | [`TRASH_2006`](Self::TRASH_2006) | 50 / 25 | 25 / 15, at most 19 bits | 1.7 | 2.13 |
///
/// The sources of Linux have them; the TRASH paper states no numbers.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::trie::{Thresholds, Tuning};
///
/// let wide = Tuning { root: Thresholds::new(15, 8)?, ..Tuning::default() };
/// let map: LcTrieMap<u64, ()> = LcTrieMap::with_tuning(wide);
/// assert_eq!(map.tuning(), wide);
/// # Ok::<(), flowtable::trie::TuningError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tuning {
    /// Thresholds of all nodes but the root.
    pub node: Thresholds,
    /// Thresholds of the root.
    pub root: Thresholds,
    /// log2 of the maximum number of slots of the root: the paper limits it to 19 to conserve
    /// memory. Values above [`Tuning::MAX_BITS`] mean [`Tuning::MAX_BITS`].
    pub root_bits: u32,
    /// The node at which rebalancing starts after an insertion has created a node.
    pub rebalance_from: RebalanceFrom,
}

/// The node at which rebalancing starts after an insertion has created a node of two children.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::trie::{RebalanceFrom, Tuning};
///
/// let tuning = Tuning { rebalance_from: RebalanceFrom::Parent, ..Tuning::TRASH_2006 };
/// let mut map = LcTrieMap::with_tuning(tuning);
/// map.extend((0..1000_u32).map(|key| (key, ())));
/// assert_eq!((map.len(), map.tuning().rebalance_from), (1000, RebalanceFrom::Parent));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RebalanceFrom {
    /// The new node: if its old child is full, the new node can be doubled at once.
    NewNode,
    /// The parent of the new node, as in Linux until 2008. The new node is not resized before the
    /// next insertion below it, which makes a crowded trie deeper: 2.13 instead of 2.08 for a
    /// million random keys under a root of 19 bits.
    Parent,
}

impl Tuning {
    /// The maximum of log2 of the slots of any node: 2^30 slots, whatever the tuning.
    pub const MAX_BITS: u32 = 30;

    /// The parameters of Linux at the time of the TRASH paper, by its sources. The paper states the
    /// 19 bits of the root (section 4.10) and no thresholds.
    pub const TRASH_2006: Self = Self {
        node: percent(50, 25),
        root: percent(25, 15),
        root_bits: 19,
        rebalance_from: RebalanceFrom::Parent,
    };

    /// The parameters of Linux today: 50 / 25 for nodes, 30 / 15 for the root, without a maximum.
    pub const LINUX: Self = Self {
        node: percent(50, 25),
        root: percent(30, 15),
        root_bits: Self::MAX_BITS,
        rebalance_from: RebalanceFrom::NewNode,
    };
}

/// The default is [`Tuning::LINUX`].
impl Default for Tuning {
    fn default() -> Self {
        Self::LINUX
    }
}

const fn percent(inflate: u8, halve: u8) -> Thresholds {
    match Thresholds::new(inflate, halve) {
        Ok(thresholds) => thresholds,
        Err(_) => panic!("constants of this file are in range"),
    }
}

/// An error for thresholds that are out of range or out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuningError {
    /// The inflate threshold is not within 1 to 100 percent.
    Inflate(u8),
    /// The halve threshold is not within 1 to 100 percent.
    Halve(u8),
    /// The halve threshold is not below the inflate threshold.
    Order {
        /// The inflate threshold in percent.
        inflate: u8,
        /// The halve threshold in percent.
        halve: u8,
    },
}

impl fmt::Display for TuningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inflate(value) => write!(f, "inflate threshold of {value} %: must be 1 to 100"),
            Self::Halve(value) => write!(f, "halve threshold of {value} %: must be 1 to 100"),
            Self::Order { inflate, halve } => {
                write!(f, "halve threshold of {halve} %: must be below the {inflate} % to inflate")
            }
        }
    }
}

impl Error for TuningError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflates_when_the_doubled_node_would_be_filled_well() {
        let half = percent(50, 25);
        for (bits, used, full, doubles) in [
            (1, 2, 0, false), // no gain: no child would be dissolved
            (1, 2, 1, true),  // 3 of 4
            (1, 1, 1, true),  // 2 of 4
            (2, 2, 1, false), // 3 of 8
            (2, 3, 1, true),  // 4 of 8
            (30, 1 << 30, 1 << 30, true),
            (30, 1 << 29, (1 << 29) - 1, false),
        ] {
            assert_eq!(half.should_inflate(bits, used, full), doubles, "{bits} {used} {full}");
        }
    }

    #[test]
    fn halves_when_too_few_slots_are_filled() {
        let quarter = percent(50, 25);
        for (bits, used, halves) in [
            (1, 0, false), // one bit is the minimum
            (2, 1, false), // 1 of 4
            (2, 0, true),
            (3, 2, false), // 2 of 8
            (3, 1, true),
            (30, 1 << 28, false),
            (30, (1 << 28) - 1, true),
        ] {
            assert_eq!(quarter.should_halve(bits, used), halves, "{bits} {used}");
        }
    }

    /// Checks the argument of the module documentation for all thresholds and all small nodes.
    #[test]
    #[cfg_attr(miri, ignore = "millions of cases of plain arithmetic")]
    fn doubling_and_halving_never_oscillate() {
        for (inflate, halve) in (1..=100).flat_map(|i| (1..i).map(move |h| (i, h))) {
            let thresholds = percent(inflate, halve);
            for (bits, used) in (1..=6).flat_map(|b| (2..=1_u32 << b).map(move |u| (b, u))) {
                let halved = thresholds.should_halve(bits, used);
                assert!(!(halved && thresholds.should_inflate(bits - 1, used - 1, 1)));
                for full in 1..=used {
                    let doubled = thresholds.should_inflate(bits, used, full);
                    assert!(!(doubled && thresholds.should_halve(bits + 1, used + full)));
                    let never_halves = 2 * halve <= inflate;
                    assert!(!(doubled && never_halves && thresholds.should_halve(bits + 1, used)));
                }
            }
        }
    }
}
