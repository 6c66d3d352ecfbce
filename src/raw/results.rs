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

/// Returns a closure for a burst that writes each result to its index in a slice.
///
/// # Panics
///
/// The closure does, if the slice is shorter than the burst.
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
///
/// let map = TrashMap::from([(80_u16, 1), (443, 2)]);
/// let mut found = [None; 32];
/// map.get_batch(&[443, 53], flowtable::write_to(&mut found));
/// assert_eq!(found[..2], [Some(&2), None]);
/// ```
#[inline]
pub fn write_to<T>(results: &mut [T]) -> impl FnMut(usize, T) {
    |index, result| results[index] = result
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
