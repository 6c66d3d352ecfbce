//! *Whether* to resize a node. How is in `resize.rs`.
//!
//! A node is doubled when the doubled node would be filled well enough, and halved when it is
//! filled badly. Doubling gives each full child two filled slots and every other child one, so of
//! the 2^(bits+1) slots of the doubled node, `used + full` are filled at once.
//!
//! Halving must not undo doubling. After a doubling at least `inflate` percent of the slots are
//! filled; after a halving `used + full` is what `used` was, less than `halve` percent of *twice*
//! the slots. So a trie cannot swing between the two as long as `halve < inflate`, and that is
//! what [`Thresholds::new`] demands.

use core::error::Error;
use core::fmt;

/// The two fill levels that a node is kept between, in percent of its slots.
///
/// # Example
///
/// ```
/// use flowtable::Thresholds;
///
/// assert!(Thresholds::new(50, 25).is_ok());
/// let error = Thresholds::new(101, 25).unwrap_err();
/// assert_eq!(error.to_string(), "inflate threshold of 101 %: must be 1 to 100");
/// assert!(Thresholds::new(25, 25).is_err()); // would swing between doubling and halving
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    inflate: u8,
    halve: u8,
}

impl Thresholds {
    /// Doubles a node when the doubled node is filled to `inflate` percent or more, halves it when
    /// it is filled to less than `halve` percent.
    ///
    /// # Errors
    ///
    /// If one of them is 0 or above 100, or `halve` is not below `inflate`.
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

    /// Fill of the doubled node, in percent, from which a node is doubled.
    #[must_use]
    pub const fn inflate(self) -> u8 {
        self.inflate
    }

    /// Fill in percent below which a node is halved.
    #[must_use]
    pub const fn halve(self) -> u8 {
        self.halve
    }

    /// For a node of 2^bits slots, `used` of them filled and `full` of these with nodes that skip
    /// nothing.
    pub(crate) fn should_inflate(self, bits: u32, used: u32, full: u32) -> bool {
        let filled = u64::from(used) + u64::from(full);
        full > 0 && 100 * filled >= u64::from(self.inflate) << (bits + 1)
    }

    /// For a node of 2^bits slots, `used` of them filled.
    pub(crate) fn should_halve(self, bits: u32, used: u32) -> bool {
        bits > 1 && 100 * u64::from(used) < u64::from(self.halve) << bits
    }
}

/// When the nodes of a level-compressed trie are doubled and halved.
///
/// The root has thresholds of its own, because a wide root saves a level for all keys at once: the
/// lower its thresholds, the shallower the trie and the more slots it has per key.
///
/// | | node | root | slots per key at a million random keys | average depth |
/// |---|---|---|--:|--:|
/// | [`default`](Self::default) | 50 / 25 | 30 / 15 | 2.5 | 1.42 |
/// | [`TRASH_2006`](Self::TRASH_2006) | 50 / 25 | 25 / 15, at most 19 bits | 1.7 | 2.13 |
///
/// # Example
///
/// ```
/// use flowtable::{LcTrieMap, Thresholds, Tuning};
///
/// let wide = Tuning { root: Thresholds::new(15, 8)?, ..Tuning::default() };
/// let map: LcTrieMap<u64, ()> = LcTrieMap::with_tuning(wide);
/// assert_eq!(map.tuning(), wide);
/// # Ok::<(), flowtable::TuningError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// For every node but the root.
    pub node: Thresholds,
    /// For the root.
    pub root: Thresholds,
    /// The root has at most 2^`root_bits` slots: the paper's kernel had no contiguous memory for
    /// more than 2^19. [`Tuning::MAX_BITS`] is the most that counts.
    pub root_bits: u32,
    /// Where rebalancing starts when an insertion has made a node.
    pub rebalance_from: RebalanceFrom,
}

/// Where rebalancing starts when an insertion has made a node of two children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebalanceFrom {
    /// At the node itself: if its old child is full, it can be doubled at once.
    NewNode,
    /// At its parent, as Linux did until 2008. The node waits for the next insertion below it,
    /// which makes a crowded trie deeper: 2.13 instead of 2.08 for a million random keys under a
    /// root of 19 bits.
    Parent,
}

impl Tuning {
    /// No node gets more bits than this, 2^30 slots, whatever the tuning asks for.
    pub const MAX_BITS: u32 = 30;

    /// What the kernel of the TRASH paper used.
    pub const TRASH_2006: Self = Self {
        node: percent(50, 25),
        root: percent(25, 15),
        root_bits: 19,
        rebalance_from: RebalanceFrom::Parent,
    };
}

/// What Linux uses today: 50 / 25 for nodes, 30 / 15 for the root, which may grow freely.
impl Default for Tuning {
    fn default() -> Self {
        Self {
            node: percent(50, 25),
            root: percent(30, 15),
            root_bits: Self::MAX_BITS,
            rebalance_from: RebalanceFrom::NewNode,
        }
    }
}

const fn percent(inflate: u8, halve: u8) -> Thresholds {
    match Thresholds::new(inflate, halve) {
        Ok(thresholds) => thresholds,
        Err(_) => panic!("constants of this file are in range"),
    }
}

/// Why thresholds were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
