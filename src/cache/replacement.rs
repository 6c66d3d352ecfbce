//! Replacement policies within a set.

/// The rule for the victim in a full set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Replacement {
    /// The oldest entry without a hit since its insertion or its last second chance. Only the first
    /// of these hits writes a mark, so most hits write nothing.
    #[default]
    SecondChance,
    /// The least recently used entry, exactly. Each hit writes the order of the set.
    LeastRecentlyUsed,
    /// The oldest entry (FIFO). Hits write nothing.
    Oldest,
}
