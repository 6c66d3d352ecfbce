//! Time in 32 bits, without an end.
//!
//! A lifetime has up to 32 bits of ticks, and a tick is a power of two of nanoseconds: one, up to four seconds of
//! lifetime. Of the tick at which a binding dies half is kept, the lower 32 bits. That is enough, as a binding that
//! lived when the last one was made was made within a lifetime of that.

use core::time::Duration;

use super::StoreError;
use crate::timestamp::{Timestamp, nanos};

/// How long bindings live.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    pub(super) period: Duration,
    pub(super) ticks: u32,
    /// A tick is two to the power of this nanoseconds.
    shift: u32,
}

impl Lifetime {
    pub(super) fn new(period: Duration) -> Result<Self, StoreError> {
        let nanos = nanos(period);
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(u32::BITS);
        match (nanos >> shift) as u32 {
            0 => Err(StoreError::NoLifetime),
            ticks => Ok(Self { period, ticks, shift }),
        }
    }

    /// Rounded down, as the lifetime is: so nothing lives longer.
    #[inline]
    pub(super) const fn ticks_at(self, time: Timestamp) -> u64 {
        time.as_nanos() >> self.shift
    }
}
