//! A histogram of examined PCBs.

use crate::counts::quantile;

/// Counts of lookups by examined PCBs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Number of lookups, indexed by examined PCBs.
    lookups: Vec<u64>,
    /// Lookups that found their PCB in the first one examined.
    pub hits: u64,
}

impl Examined {
    pub fn add(&mut self, examined: u32, is_found: bool) {
        let at = examined as usize;
        if at >= self.lookups.len() {
            self.lookups.resize(at + 1, 0);
        }
        self.lookups[at] += 1;
        self.hits += u64::from(is_found && examined == 1);
    }

    pub fn lookups(&self) -> u64 {
        self.lookups.iter().sum()
    }

    /// Returns the mean; 0 without lookups.
    pub fn mean(&self) -> f64 {
        let weighted = (0_u64..).zip(&self.lookups).map(|(examined, lookups)| examined * lookups);
        weighted.sum::<u64>() as f64 / self.lookups().max(1) as f64
    }

    /// Returns the number of PCBs that this share of lookups does not exceed.
    pub fn quantile(&self, share: f64) -> usize {
        quantile(&self.lookups, share)
    }

    pub fn most(&self) -> usize {
        self.lookups.len().saturating_sub(1)
    }

    /// Returns the share of hits of all lookups.
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.lookups().max(1) as f64
    }
}
