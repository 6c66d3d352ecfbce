//! Times of which there are too many to keep.
//!
//! ```text
//!     bucket   0 … 63     64 … 95          96 … 127         …
//!     ns       0 … 63     64, 66 … 126     128, 132 … 252   …     five bits below the highest one
//! ```

/// Buckets for each power of two.
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
    pub(crate) fn note(&mut self, ns: u32) {
        self.counts[bucket(ns)] += 1;
        self.longest = self.longest.max(ns);
    }

    pub(crate) fn longest(&self) -> u32 {
        self.longest
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that a `part` of all do not exceed, at most a 32nd too short.
    pub(crate) fn percentile(&self, part: f64) -> u64 {
        let mut rest = (self.count() as f64 * part) as u64;
        let mut bucket = 0;
        while bucket + 1 < self.counts.len() && self.counts[bucket] <= rest {
            rest -= self.counts[bucket];
            bucket += 1;
        }
        least(bucket)
    }
}

impl Extend<u32> for Histogram {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, times: I) {
        times.into_iter().for_each(|ns| self.note(ns));
    }
}

#[inline]
fn bucket(ns: u32) -> usize {
    let shift = (ns | STEPS).ilog2() - STEPS.ilog2();
    (shift * STEPS + (ns >> shift)) as usize
}

/// The shortest time of a bucket.
fn least(bucket: usize) -> u64 {
    let steps = STEPS as usize;
    let shift = (bucket / steps).saturating_sub(1);
    ((bucket - shift * steps) as u64) << shift
}
