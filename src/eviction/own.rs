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
    const READS_STATS: bool = false;

    /// Changes the rank of the entry at `slot` from `before` to `rank`.
    #[inline]
    fn rerank_from(&mut self, slot: u32, before: u8, rank: u8) {
        _ = (slot, before, rank);
    }

    /// Replaces the entry at `slot`, which is evicted and had the rank `before`.
    #[inline]
    fn replace_from(&mut self, slot: u32, before: u8, rank: u8) {
        _ = (slot, before, rank);
    }

    /// Selects the entry that is evicted next, unless it was used. `None` without entries.
    fn candidate(&mut self) -> Option<u32>;

    /// Selects the entry that is evicted next, given the first candidate and its statistics: it was
    /// used. `None` without entries.
    fn victim_after(
        &mut self,
        first: (u32, EntryStats),
        stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        _ = stats;
        Some(first.0)
    }
}

/// Selects the entry to evict next, like [`Eviction::victim`](super::Eviction::victim).
#[inline(always)]
pub(super) fn victim<P: OwnPolicy>(
    policy: &mut P,
    mut stats: impl FnMut(u32) -> EntryStats,
) -> Option<u32> {
    let slot = policy.candidate()?;
    match stats(slot) {
        entry if entry.used => policy.victim_after((slot, entry), stats),
        _ => Some(slot),
    }
}

/// No policy: the type that stands for policies of callers.
#[derive(Debug)]
pub(super) enum Foreign {}

impl OwnPolicy for Foreign {
    fn candidate(&mut self) -> Option<u32> {
        match *self {}
    }
}
