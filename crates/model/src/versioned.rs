//! Values that identify their write and detect torn reads.

use super::hashers::mix;

/// One version of the value of a key.
///
/// It has several words, so that a read during a write would be detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    key: u64,
    version: u64,
    body: [u64; 5],
    sum: u64,
}

impl Versioned {
    pub fn new(key: u64, version: u64) -> Self {
        let body = core::array::from_fn(|at| mix(key ^ version << 20 ^ at as u64));
        Self { key, version, body, sum: sum(key, version, &body) }
    }

    /// Returns the version, and checks that the value is whole and of this key.
    #[track_caller]
    pub fn version_of(&self, key: u64) -> u64 {
        assert_eq!(self.key, key, "the value of another key");
        assert_eq!(self.sum, sum(key, self.version, &self.body), "a mixture: {self:?}");
        self.version
    }

    /// Returns the next version.
    pub fn next(&self) -> Self {
        Self::new(self.key, self.version + 1)
    }
}

impl Drop for Versioned {
    /// Invalidates the value for threads that still read it.
    fn drop(&mut self) {
        self.sum = !self.sum;
        core::hint::black_box(&mut self.body).fill(0);
    }
}

fn sum(key: u64, version: u64, body: &[u64]) -> u64 {
    body.iter().fold(mix(key) ^ version, |sum, &word| mix(sum ^ word))
}
