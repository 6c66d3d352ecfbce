//! Counts of a size by the size.

/// The index that this share of all that was counted does not exceed; 0 if nothing was.
pub fn quantile(counts: &[u64], share: f64) -> usize {
    let mut left = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
    let reaches = |count: &u64| {
        left = left.saturating_sub(*count);
        left == 0
    };
    counts.iter().position(reaches).unwrap_or(0)
}
