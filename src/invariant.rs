//! Invariant violations: the error of the hidden `validate` methods.
//!
//! Every structure has a `validate` method that checks all of its invariants, for tests and fuzz
//! targets. It succeeds for all keys that honour the contracts of `Hash` and `Eq`.

use alloc::string::String;
use core::error::Error;
use core::fmt;

/// A violated invariant: a bug in this crate, or keys that violate the contract of `Hash` and `Eq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantError(String);

impl InvariantError {
    /// Creates an error with a message that describes the violation.
    pub(crate) fn new(violation: impl Into<String>) -> Self {
        Self(violation.into())
    }

    /// Prefixes the message with the part of a structure in which the invariant is violated.
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

/// Returns an error with the message of `violation` unless `holds`.
pub(crate) fn ensure<S: Into<String>>(
    holds: bool,
    violation: impl FnOnce() -> S,
) -> Result<(), InvariantError> {
    if holds { Ok(()) } else { Err(InvariantError::new(violation())) }
}
