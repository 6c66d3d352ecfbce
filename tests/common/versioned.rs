//! Values that tell which write they come from, and whether they are whole.
#![allow(dead_code, reason = "not every test needs all")]

use super::weak::mix;

/// One version of the value of a key. Several words, so that one that is read while it is written
/// would be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Versioned {
    key: u64,
    version: u64,
    body: [u64; 5],
    sum: u64,
}

impl Versioned {
    pub(crate) fn new(key: u64, version: u64) -> Self {
        let body = core::array::from_fn(|at| mix(key ^ version << 20 ^ at as u64));
        Self { key, version, body, sum: sum(key, version, &body) }
    }

    /// The version of a whole value of this very key.
    #[track_caller]
    pub(crate) fn version_of(&self, key: u64) -> u64 {
        assert_eq!(self.key, key, "the value of another key");
        assert_eq!(self.sum, sum(key, self.version, &self.body), "a mixture: {self:?}");
        self.version
    }

    /// What comes next.
    pub(crate) fn next(&self) -> Self {
        Self::new(self.key, self.version + 1)
    }
}

impl Drop for Versioned {
    /// Whoever still reads it sees no whole value.
    fn drop(&mut self) {
        self.sum = !self.sum;
        core::hint::black_box(&mut self.body).fill(0);
    }
}

fn sum(key: u64, version: u64, body: &[u64]) -> u64 {
    body.iter().fold(mix(key) ^ version, |sum, &word| mix(sum ^ word))
}
