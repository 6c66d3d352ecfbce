//! Ports for who does not ask for one, in the order of RFC 6056.
//!
//! ```text
//!     hash of (local, remote, secret)  ─┬─▸ where in the range this destination begins
//!                                       └─▸ which cursor is its: how far it is from there
//! ```
//!
//! Ports to one destination come one after the other, so the one that was given up last is used again last. Who is
//! elsewhere sees little of them: where a destination begins is secret, and its cursor is shared with one in 256
//! others only. This is algorithm 4 of the RFC, double-hash port selection. Who talks to many destinations of a
//! host may still find out which of them share a cursor (Kol, Klein and Gilad 2023).
//!
//! A socket that is bound has no destination. So each begins elsewhere, and takes the next port that is free.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::SocketError;

/// Cursors that destinations share. The RFC gives ten as an example; with more, less is seen of others.
const CURSORS: usize = 256;

/// How far each destination is in its range.
#[derive(Clone, Debug)]
pub(super) struct Cursors(Vec<u32>);

impl Cursors {
    /// Allocates nothing before the first port is asked for.
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The next port of a range, which [`check`] has seen, for the destination of this hash that is free. What is
    /// random says where cursors begin.
    pub(super) fn next(
        &mut self,
        hash: u64,
        ports: &RangeInclusive<u16>,
        random: impl Fn(usize) -> u64,
        is_free: impl Fn(u16) -> bool,
    ) -> Result<u16, SocketError> {
        if self.0.is_empty() {
            self.0.try_reserve_exact(CURSORS).map_err(|_| SocketError::NoMemory)?;
            self.0.extend((0..CURSORS).map(|number| u32::from(random(number) as u16)));
        }
        let start = *ports.start();
        let span = u64::from(ports.end() - start) + 1;
        // A hash may have 32 bits.
        let cursor = &mut self.0[(hash >> 56 ^ hash >> 24) as usize % CURSORS];
        let first = u64::from(hash as u32) + u64::from(*cursor);
        for step in 0..span {
            let port = start + ((first + step) % span) as u16;
            if is_free(port) {
                // In one of four billion times the turn is not kept.
                *cursor = cursor.wrapping_add(step as u32 + 1);
                return Ok(port);
            }
        }
        Err(SocketError::NoPort)
    }
}

/// Whether a range has ports, and none that cannot be.
pub(super) fn check(ports: &RangeInclusive<u16>) -> Result<(), SocketError> {
    if ports.is_empty() || *ports.start() == 0 { Err(SocketError::BadRange) } else { Ok(()) }
}
