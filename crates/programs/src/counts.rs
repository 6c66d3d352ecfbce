//! Quantiles of counts by size.

/// Returns the smallest index that this share of all counts does not exceed; 0 without counts.
pub fn quantile(counts: &[u64], share: f64) -> usize {
    let mut left = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
    let reaches = |count: &u64| {
        left = left.saturating_sub(*count);
        left == 0
    };
    counts.iter().position(reaches).unwrap_or(0)
}
