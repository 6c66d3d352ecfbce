//! Decisions about writes, and their results.

/// The decision of the closure of `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<V> {
    /// Leaves the map unchanged.
    Keep,
    /// Inserts the key with this value, or replaces its value.
    Insert(V),
    /// Removes the key.
    Remove,
}

/// The result of `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed<'p, V> {
    /// Unchanged: the value of the key, if it has one.
    Kept(Option<&'p V>),
    /// The key was inserted with this value.
    Inserted(&'p V),
    /// The value was replaced.
    Updated {
        /// The former value.
        old: &'p V,
        /// The new value.
        new: &'p V,
    },
    /// The key was removed; this was its value.
    Removed(&'p V),
}

/// The result of `try_insert` and of `try_insert_with`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryInsert<'p, V, T> {
    /// The key was inserted with this value.
    Inserted(&'p V),
    /// The key was present, and nothing has changed.
    Occupied {
        /// The present value.
        current: &'p V,
        /// The input that was not inserted.
        refused: T,
    },
}

impl<'p, V, T> TryInsert<'p, V, T> {
    /// Returns the value that the map has now.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().try_insert("a", 2).unwrap().value(), &1);
    /// ```
    #[must_use]
    pub fn value(&self) -> &'p V {
        match self {
            Self::Inserted(value) | Self::Occupied { current: value, .. } => value,
        }
    }
}
