//! Invariants that do not hold: the error of the hidden `validate` methods.
//!
//! Every structure has a `validate` method that checks all of its invariants, for tests and fuzz
//! targets. It never fails for users whose keys honour the contracts of `Hash` and `Eq`.

use alloc::string::String;
use core::error::Error;
use core::fmt;

/// An invariant that does not hold, and where: a bug in this crate, or keys that break the contract of
/// `Hash` and `Eq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantError(String);

impl InvariantError {
    pub(crate) fn new(broken: impl Into<String>) -> Self {
        Self(broken.into())
    }

    /// The error of a part, named by the structure that contains it.
    pub(crate) fn within(self, part: fmt::Arguments<'_>) -> Self {
        Self(alloc::format!("{part}: {}", self.0))
    }
}

impl fmt::Display for InvariantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvariantError {}

/// Fails with `broken` unless the invariant holds.
pub(crate) fn ensure<S: Into<String>>(
    holds: bool,
    broken: impl FnOnce() -> S,
) -> Result<(), InvariantError> {
    if holds { Ok(()) } else { Err(InvariantError::new(broken())) }
}
