//! Checking the invariants: which one is broken.

use core::fmt;

/// An invariant of this module that does not hold. It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// Not each row is live or in the free list, once.
    FreeList,
    /// A destination leads to a row that is not its own, or a row is nobody's and forwards.
    Rows,
    /// A row is not what follows from the costs that are known.
    Route,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FreeList => "a row is not live or free, once",
            Self::Rows => "a destination and its row do not agree",
            Self::Route => "a row does not follow from the known costs",
        })
    }
}

impl core::error::Error for Broken {}
