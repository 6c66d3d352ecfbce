//! Scans of bytes in the window that one record covers: each byte is passed once, and the scan is
//! interrupted like all work.

use core::ops::Range;
use std::io;

use super::nested::PROOF;
use super::window::Window;

/// The position of scans, which only advances.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scan {
    /// The offset in the source of the first byte that no scan has passed.
    offset: u64,
}

impl Scan {
    /// The bytes of one step.
    const PIECE: usize = 1 << 16;

    /// Returns the first candidate in this range of the bytes from `back` bytes before the window
    /// on. It is returned again until it is [rejected](Self::reject).
    pub(crate) fn find(
        &mut self,
        window: &mut Window,
        back: usize,
        range: Range<usize>,
        is_candidate: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Option<usize>> {
        let origin = window.offset() - back as u64;
        loop {
            let from = range.start.max(self.offset.saturating_sub(origin) as usize);
            let to = range.end.min(from + Self::PIECE);
            if from >= to {
                return Ok(None);
            }
            let bytes = window.from(back);
            let found = (from..to).find(|at| is_candidate(&bytes[*at..]));
            let passed = found.unwrap_or(to);
            self.offset = origin + passed as u64;
            window.spend(passed - from)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Passes the candidate, whose test examined headers.
    pub(crate) fn reject(&mut self, window: &mut Window) -> io::Result<()> {
        self.offset += 1;
        window.spend(PROOF)
    }
}
