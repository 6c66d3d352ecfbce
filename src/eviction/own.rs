//! The operations of tables with the crate's own policies, in addition to
//! [`Eviction`](super::Eviction).
//!
//! ```text
//!     any policy           victim ──▸ a slot: occupied? evictable?
//!     one of this crate    candidate ──▸ an entry, evicted if it was not used
//!                             └──▸ victim_after ──▸ an entry
//! ```
//!
//! A policy of a caller may return any slot, may evict before the table is full, and has ranks from
//! its own records only. Policies of this crate do not, so a table evicts with fewer checks.

use super::EntryStats;

/// A policy of this crate. It is due only when the table is full, and its victims are entries that
/// were inserted and not removed.
#[expect(unnameable_types, reason = "the trait is sealed: callers implement `Eviction` only")]
pub trait OwnPolicy {
    /// Whether an entry that was used gets a second chance: a table reads the statistics of a
    /// [candidate](Self::candidate), and evicts it if it was not used.
    const READS_STATS: bool;

    /// Changes the rank of the entry at `slot` from `before` to `rank`.
    fn rerank_from(&mut self, slot: u32, before: u8, rank: u8);

    /// Replaces the entry at `slot`, which is evicted and had the rank `before`.
    fn replace_from(&mut self, slot: u32, before: u8, rank: u8);

    /// Selects the entry that is evicted next, unless it was used. `None` without entries.
    fn candidate(&mut self) -> Option<u32>;

    /// Selects the entry that is evicted next, given the first candidate and its statistics: it was
    /// used. `None` without entries.
    fn victim_after(
        &mut self,
        first: (u32, EntryStats),
        stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32>;

    /// Calls `each` with the numbers from 0 on of the next candidates, up to `most`, and with their
    /// slots. The prediction may be incomplete.
    fn for_upcoming(&mut self, most: usize, each: impl FnMut(usize, u32));
}

/// No policy: the type that stands for policies of callers.
#[derive(Debug)]
pub(super) enum Foreign {}

impl OwnPolicy for Foreign {
    const READS_STATS: bool = false;

    fn rerank_from(&mut self, _slot: u32, _before: u8, _rank: u8) {
        match *self {}
    }

    fn replace_from(&mut self, _slot: u32, _before: u8, _rank: u8) {
        match *self {}
    }

    fn candidate(&mut self) -> Option<u32> {
        match *self {}
    }

    fn victim_after(
        &mut self,
        _first: (u32, EntryStats),
        _stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        match *self {}
    }

    fn for_upcoming(&mut self, _most: usize, _each: impl FnMut(usize, u32)) {
        match *self {}
    }
}
