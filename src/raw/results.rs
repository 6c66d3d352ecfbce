//! The slices that bursts of lookups write their results to.

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
