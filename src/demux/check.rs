//! Checking the invariants: which one is broken.

use core::fmt;

/// An invariant of a [`Demux`](super::Demux) or a [`SocketTable`](super::SocketTable) that does not hold.
/// It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// The chains do not have each PCB once.
    Chains {
        /// PCBs that there are.
        pcbs: usize,
        /// PCBs that the chains lead to.
        chained: usize,
    },
    /// A chain has a PCB whose name belongs into another.
    Stray,
    /// A remembered PCB is gone, or in another chain.
    Remembered,
    /// A name is there twice.
    Twice,
    /// There are sockets in the array and in the map, or too many in the array.
    Crowd {
        /// Sockets in the array.
        few: usize,
        /// Sockets in the map.
        mapped: usize,
    },
    /// What is counted by address and port is not what is there.
    Counts,
    /// Sockets are bound together that may not be.
    Conflict,
    /// A map inside is broken.
    Map(crate::trash::Broken),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chains { pcbs, chained } => write!(f, "chains have {chained} of {pcbs} PCBs"),
            Self::Stray => f.write_str("a PCB is in the chain of another hash"),
            Self::Remembered => f.write_str("a remembered PCB is not in its chain"),
            Self::Twice => f.write_str("a name is there twice"),
            Self::Crowd { few, mapped } => {
                write!(f, "{few} sockets are in the array and {mapped} in the map")
            }
            Self::Counts => f.write_str("counts are not of what is there"),
            Self::Conflict => f.write_str("sockets are bound that are in conflict"),
            Self::Map(broken) => broken.fmt(f),
        }
    }
}

impl core::error::Error for Broken {}

impl From<crate::trash::Broken> for Broken {
    fn from(broken: crate::trash::Broken) -> Self {
        Self::Map(broken)
    }
}
