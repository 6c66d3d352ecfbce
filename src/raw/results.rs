//! The slices that bursts of lookups write their results to.

/// Returns the part of a slice that is for the results of `count` keys, and sets the rest to
/// `None`: so a slice for the longest burst serves for all.
///
/// # Panics
///
/// If the slice has fewer than `count` places.
#[inline]
pub(crate) fn results_for<T>(count: usize, found: &mut [Option<T>]) -> &mut [Option<T>] {
    assert!(count <= found.len(), "the slice of results is shorter than that of keys");
    let (found, rest) = found.split_at_mut(count);
    rest.fill_with(|| None);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_none() {
        let mut found = [Some(1), Some(2), Some(3)];
        assert_eq!(results_for(1, &mut found), [Some(1)]);
        assert_eq!(found, [Some(1), None, None]);
        assert_eq!(results_for(3, &mut found).len(), 3);
    }

    #[test]
    #[should_panic = "shorter"]
    fn a_slice_that_is_shorter_is_refused() {
        results_for(3, &mut [Some(1); 2]);
    }
}
