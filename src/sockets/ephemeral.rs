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

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::SocketError;

/// The number of cursors, which destinations share. The RFC suggests ten; more cursors leak less
/// about other destinations.
const CURSORS: usize = 256;

/// The offsets of destinations in their range of ports.
#[derive(Clone, Debug)]
pub(super) struct Cursors(Vec<u32>);

impl Cursors {
    /// Creates the table. It allocates on first use.
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the next free port for the destination with this hash, and advances its cursor.
    ///
    /// The range has passed [`check`]. `random` returns the initial value of each cursor.
    pub(super) fn next(
        &mut self,
        hash: u64,
        ports: &RangeInclusive<u16>,
        random: impl Fn(usize) -> u64,
        is_free: impl Fn(u16) -> bool,
    ) -> Result<u16, SocketError> {
        if self.0.is_empty() {
            self.0.try_reserve_exact(CURSORS).map_err(|_| SocketError::NoMemory)?;
            self.0.extend((0..CURSORS).map(|index| u32::from(random(index) as u16)));
        }
        let start = *ports.start();
        let span = u64::from(ports.end() - start) + 1;
        // Fold in lower bits, as a hash may have only 32.
        let cursor = &mut self.0[(hash >> 56 ^ hash >> 24) as usize % CURSORS];
        let first = u64::from(hash as u32) + u64::from(*cursor);
        for step in 0..span {
            let port = start + ((first + step) % span) as u16;
            if is_free(port) {
                // The order of ports breaks where the cursor wraps, once in four billion ports.
                *cursor = cursor.wrapping_add(step as u32 + 1);
                return Ok(port);
            }
        }
        Err(SocketError::NoPort)
    }
}

/// Checks that a range has ports, and all of them are valid.
pub(super) fn check(ports: &RangeInclusive<u16>) -> Result<(), SocketError> {
    if ports.is_empty() || *ports.start() == 0 { Err(SocketError::BadRange) } else { Ok(()) }
}
