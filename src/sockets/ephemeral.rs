//! Ephemeral ports: the selection algorithms of RFC 6056.
//!
//! ```text
//!     hash of (local, remote, secret)  ─┬─▸ the port of the range where this destination begins
//!                                       └─▸ the index of its cursor: the offset from that port
//! ```
//!
//! The ports for one destination are consecutive, so a released port is reused last. Other hosts
//! learn little from them: the first port of a destination is secret, and its cursor is shared with
//! one in 256 other destinations only. This is algorithm 4 of the RFC, double-hash port selection.
//! An observer at many destinations of a host can still find out which of them share a cursor (Kol,
//! Klein and Gilad 2023).
//!
//! A bound socket has no destination. So the hash includes an id that differs for each of them, and
//! the first free port from there on is used.
//!
//! The ports in use are searched by blocks of 512: a search among the 28,232 ports from 32,768 on
//! examines 56 blocks, and one of them twice.

use core::ops::RangeInclusive;

use super::SocketError;
use super::blocks::{BLOCK, Block};
use crate::memory::{Allocator, Vec};

/// The number of cursors, which destinations share. The RFC suggests ten; more cursors leak less
/// about other destinations.
const CURSORS: usize = 256;

/// The offsets of destinations in their range of ports.
#[derive(Clone)]
pub(super) struct Cursors<A: Allocator>(Vec<u32, A>);

impl<A: Allocator> Cursors<A> {
    /// Creates the table. It allocates on first use.
    pub(super) const fn new_in(memory: A) -> Self {
        Self(Vec::new_in(memory))
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }

    /// Returns the next free port for the destination with this hash, and advances its cursor.
    ///
    /// The range has passed [`check`]. `random` returns the initial value of each cursor. `taken`
    /// returns the ports in use in the block of a port; `is_free` returns whether a port outside of
    /// that set is free, and is called last for the port that is returned. A search calls `taken`
    /// at most once for each block, and once more for the block of the first port.
    pub(super) fn next<C>(
        &mut self,
        hash: u64,
        ports: &RangeInclusive<u16>,
        random: impl Fn(usize) -> u64,
        used: &mut C,
        taken: impl Fn(&C, u16) -> Block,
        mut is_free: impl FnMut(&mut C, u16) -> bool,
    ) -> Result<u16, SocketError> {
        // None yet, or some, if the hasher has panicked.
        let missing = self.0.len()..CURSORS;
        if !missing.is_empty() {
            self.0.try_reserve_exact(missing.len()).map_err(|_| SocketError::NoMemory)?;
            self.0.extend(missing.map(|index| u32::from(random(index) as u16)));
        }
        let (start, end) = (*ports.start(), *ports.end());
        let span = u64::from(end - start) + 1;
        // Fold in lower bits, as a hash may have only 32.
        let cursor = &mut self.0[(hash >> 56 ^ hash >> 24) as usize % CURSORS];
        let first = start + ((u64::from(hash as u32) + u64::from(*cursor)) % span) as u16;
        // From the first port to the end, then from the start to the first.
        let wrapped = start..=first.saturating_sub(1).max(start);
        for range in [first..=end, wrapped] {
            if let Some(port) = next_free(range, used, &taken, &mut is_free) {
                let step = (u64::from(port) + span - u64::from(first)) % span;
                // The order of ports breaks where the cursor wraps, once in four billion ports.
                *cursor = cursor.wrapping_add(step as u32 + 1);
                return Ok(port);
            }
        }
        Err(SocketError::NoPort)
    }
}

/// Returns the first free port of a range, by its blocks.
fn next_free<C>(
    ports: RangeInclusive<u16>,
    used: &mut C,
    taken: &impl Fn(&C, u16) -> Block,
    is_free: &mut impl FnMut(&mut C, u16) -> bool,
) -> Option<u16> {
    let (first, last) = ports.into_inner();
    (first / BLOCK..=last / BLOCK).find_map(|block| {
        let start = first.max(block * BLOCK);
        let end = last.min(block * BLOCK + (BLOCK - 1));
        taken(used, start).find_absent(start..=end, |port| is_free(used, port))
    })
}

/// Checks that a range has ports, and all of them are valid.
pub(super) fn check(ports: &RangeInclusive<u16>) -> Result<(), SocketError> {
    if ports.is_empty() || *ports.start() == 0 { Err(SocketError::BadRange) } else { Ok(()) }
}
