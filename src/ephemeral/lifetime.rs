//! Expiry times in 31 bits that wrap around.
//!
//! A lifetime is up to 30 bits of ticks, and a tick is a power of two of nanoseconds: one
//! nanosecond for lifetimes up to one second. An entry stores the lower 31 bits of its expiry tick,
//! times two, as the lowest bit marks vacant slots. They suffice, as any binding among the live
//! ones of the ring expires within one lifetime after the last creation, or has expired within half
//! a lifetime before it.

use core::time::Duration;

use super::StoreError;
use crate::timestamp::{Timestamp, nanos};

/// The lifetime of bindings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    pub(super) period: Duration,
    pub(super) ticks: u32,
    /// log2 of the nanoseconds of a tick.
    shift: u32,
}

impl Lifetime {
    pub(super) fn new(period: Duration) -> Result<Self, StoreError> {
        let nanos = nanos(period);
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(u32::BITS - 2);
        match (nanos >> shift) as u32 {
            0 => Err(StoreError::NoLifetime),
            ticks => Ok(Self { period, ticks, shift }),
        }
    }

    /// Returns the tick of a timestamp. Rounds down, as the lifetime does, so no binding lives
    /// longer.
    #[inline]
    pub(super) const fn ticks_at(self, time: Timestamp) -> u64 {
        time.as_nanos() >> self.shift
    }
}
