//! A histogram of times with logarithmic buckets.
//!
//! ```text
//!     bucket   0 … 63     64 … 95          96 … 127         …
//!     ns       0 … 63     64, 66 … 126     128, 132 … 252   …     five bits below the highest one
//! ```

/// Buckets per power of two.
const STEPS: u32 = 32;

pub(crate) struct Histogram {
    counts: Vec<u64>,
    longest: u32,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; bucket(u32::MAX) + 1], longest: 0 }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u32) {
        self.counts[bucket(ns)] += 1;
        self.longest = self.longest.max(ns);
    }

    pub(crate) fn longest(&self) -> u32 {
        self.longest
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns a quantile, at most a 32nd too short.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        let mut rest = (self.count() as f64 * quantile) as u64;
        let mut bucket = 0;
        while bucket + 1 < self.counts.len() && self.counts[bucket] <= rest {
            rest -= self.counts[bucket];
            bucket += 1;
        }
        shortest(bucket)
    }
}

impl Extend<u32> for Histogram {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, times: I) {
        times.into_iter().for_each(|ns| self.record(ns));
    }
}

#[inline]
fn bucket(ns: u32) -> usize {
    let shift = (ns | STEPS).ilog2() - STEPS.ilog2();
    (shift * STEPS + (ns >> shift)) as usize
}

/// The shortest time of a bucket.
fn shortest(bucket: usize) -> u64 {
    let steps = STEPS as usize;
    let shift = (bucket / steps).saturating_sub(1);
    ((bucket - shift * steps) as u64) << shift
}
