//! What a writer gets when readers keep too much garbage.

use core::fmt;

/// More garbage would be kept than the limit allows: readers hold on to what has been retired.
///
/// Nothing has changed. A thread that gets this and holds a pin itself should
/// repin it and try again.
///
/// # Example
///
/// ```
/// let map = flowtable::ConcurrentMap::new().with_garbage_limit(4096, 0);
/// let reader = map.pin();
/// // Of what this reader might see nothing is given back while it lasts.
/// let error = (0..).find_map(|value| map.pin().insert("key", value).err()).unwrap();
/// assert_eq!((error.refused.0, error.limit), ("key", 4096));
/// assert_eq!(reader.get("key"), Some(&(error.refused.1 - 1)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WouldExceed<T> {
    /// What was not put in.
    pub refused: T,
    /// Bytes that have been retired, and not given back yet.
    pub retired: usize,
    /// As many as there may be.
    pub limit: usize,
}

impl<T> WouldExceed<T> {
    /// The same about something else.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> WouldExceed<U> {
        let Self { refused, retired, limit } = self;
        WouldExceed { refused: map(refused), retired, limit }
    }
}

impl<T> fmt::Display for WouldExceed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retired, limit, .. } = self;
        write!(f, "readers hold on to {retired} bytes of garbage, and the limit is {limit}")
    }
}

/// Without what was refused, so that a result can be unwrapped whatever that is.
impl<T> fmt::Debug for WouldExceed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retired, limit, .. } = self;
        let mut fields = f.debug_struct("WouldExceed");
        fields.field("retired", retired).field("limit", limit).finish_non_exhaustive()
    }
}

impl<T> core::error::Error for WouldExceed<T> {}
