//! Differences from the papers and their reasons: numbered causes, each with the run that shows it.
//!
//! ```text
//!     Finding ──because──▸ Cause ──▸ Explanation ──run──▸ tables
//!                                                         --explain NAME prints them
//! ```

use std::error::Error;

use crate::table::Table;

/// A cause of differences. The variants are in the order of the explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    OtherWork,
    CacheSpeeds,
    UnevenLeaves,
    ThreePackets,
    MaxDepth,
    LeastDepth,
    UsersWait,
    OwnPacket,
    HalfFull,
    LinearCrc,
    Instructions,
    FilterFlows,
    ShortPackets,
    EmptyPolls,
    SwitchTime,
    InputShare,
    TurnDetails,
    WordsAndTime,
    Unknown,
}

impl Cause {
    /// The number on the page, from 1.
    pub(crate) fn number(self) -> usize {
        self as usize + 1
    }
}

/// How far a cause is established.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// A run with the cause changed yields the published number, or nearly so.
    Shown,
    /// It follows from numbers of the paper; there is nothing to run.
    Inferred,
    /// Variants were tried, and none yields the published numbers.
    Open,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Inferred => "inferred",
            Self::Open => "open",
        }
    }
}

/// A titled table.
pub(crate) type Evidence = Vec<(&'static str, Table)>;

/// Runs the experiment of a cause; on a small scale if the flag is set.
type Experiment = fn(bool) -> Result<Evidence, Box<dyn Error>>;

/// The text about a cause, and its experiment.
pub(crate) struct Explanation {
    /// The name for `--explain`.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) status: Status,
    /// Two sentences at most.
    pub(crate) text: &'static str,
    /// The rest, on the page of details.
    pub(crate) more: &'static str,
    pub(crate) run: Experiment,
}
