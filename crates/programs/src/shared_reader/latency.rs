//! A histogram of durations.

use core::time::Duration;

use crate::counts::quantile;

/// Counts of durations, by their highest five bits: the error is at most a sixteenth upwards.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u64,
    worst_ns: u64,
}

impl Latency {
    const SUB_BITS: u32 = 4;

    pub fn add(&mut self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = Self::bucket(ns);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.worst_ns = self.worst_ns.max(ns);
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn worst_ns(&self) -> u64 {
        self.worst_ns
    }

    /// Returns the mean; 0 without durations.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }

    /// Returns a bound that this share of durations does not exceed.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let bucket = quantile(&self.counts, share);
        Self::highest_ns(bucket).min(self.worst_ns)
    }

    /// Returns the bucket of a duration: those below 2^4 ns have a bucket each, each power of two
    /// above has 2^4 of them.
    const fn bucket(ns: u64) -> usize {
        let Some(bits) = ns.checked_ilog2() else { return 0 };
        let shift = bits.saturating_sub(Self::SUB_BITS);
        ((shift as usize) << Self::SUB_BITS) + (ns >> shift) as usize
    }

    /// Returns the highest duration of a bucket.
    const fn highest_ns(bucket: usize) -> u64 {
        let shift = (bucket >> Self::SUB_BITS).saturating_sub(1) as u32;
        let first = bucket - ((shift as usize) << Self::SUB_BITS);
        ((first as u64) << shift) + ((1 << shift) - 1)
    }
}
