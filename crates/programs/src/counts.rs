//! Counts: their quantiles by size, and the forms of their nouns.

/// Returns the smallest index that this share of all counts does not exceed; 0 without counts.
pub fn quantile(counts: &[u64], share: f64) -> usize {
    let mut left = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
    let reaches = |count: &u64| {
        left = left.saturating_sub(*count);
        left == 0
    };
    counts.iter().position(reaches).unwrap_or(0)
}

/// Returns the form of a noun or verb for this count.
pub const fn form(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}
