//! What can go wrong with labels, rows and what neighbours say.

use core::error::Error;
use core::fmt;

/// A label that is of no row any more: its row was freed, is another's, cannot be reached, or never was.
/// The packet is to be [looked up](super::Table::forward_to) by its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the label is stale")
    }
}

impl Error for Stale {}

/// A number of rows that cannot be.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::threaded::{Label, LabelError, Labels};
///
/// let labels = |rows| Labels::new(rows, Duration::ZERO, 0).map(|labels| labels.capacity());
/// assert_eq!(labels(0), Err(LabelError::NoRows));
/// assert_eq!(labels(Label::ROWS), Ok(1 << 23));
/// assert_eq!(labels(Label::ROWS + 1), Err(LabelError::TooManyRows));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// There must be a row.
    NoRows,
    /// More than 2^23: a label has no more bits.
    TooManyRows,
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRows => "there must be a row",
            Self::TooManyRows => "a label cannot tell more than 2^23 rows apart",
        })
    }
}

impl Error for LabelError {}

/// Why there is no label to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoLabel {
    /// All rows are live.
    Full,
    /// The rows that are not live were freed a moment ago.
    HeldDown,
    /// The memory cannot be had.
    NoMemory,
}

impl fmt::Display for NoLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all rows are taken",
            Self::HeldDown => "the free rows are held down",
            Self::NoMemory => "the memory cannot be had",
        })
    }
}

impl Error for NoLabel {}

/// Why a [`Table`](super::Table) does not take a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// It has a row.
    InUse,
    /// There is no row for it.
    NoLabel(NoLabel),
}

impl From<NoLabel> for InsertError {
    fn from(why: NoLabel) -> Self {
        Self::NoLabel(why)
    }
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("the destination has a row"),
            Self::NoLabel(why) => why.fmt(f),
        }
    }
}

impl Error for InsertError {}

/// Why a router does not believe what a neighbour says, or what it is told about its links. Nothing has changed.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::threaded::{DistanceVector, Labels, RouterError};
///
/// let mut router: DistanceVector<&str> = DistanceVector::new(Labels::new(10, Duration::ZERO, 0)?, 64)?;
/// router.link_up(1, 3)?;
/// assert_eq!(router.link_up(1, 3), Err(RouterError::LinkIsUp));
/// assert_eq!(router.link_up(2, 64), Err(RouterError::LinkCost)); // infinity
/// assert_eq!(router.repeat(2), Err(RouterError::NoLink));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouterError {
    /// There is no link on that port, or it is down.
    NoLink,
    /// There is a link on that port.
    LinkIsUp,
    /// Links cost something, or packets could circle for free, and less than infinity.
    LinkCost,
    /// A cost that is greater than infinity.
    Cost,
    /// There is no row for one destination more.
    NoLabel(NoLabel),
    /// The destination is attached, or is not.
    Attached,
    /// There are as many routers in the database as there may be.
    TooManyRouters,
    /// A router has as many links or destinations as nobody has.
    TooLong,
    /// No number is greater than that, or too few are: the router that it is about could not contradict it for good.
    Sequence,
}

impl From<NoLabel> for RouterError {
    fn from(why: NoLabel) -> Self {
        Self::NoLabel(why)
    }
}

impl fmt::Display for RouterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLink => f.write_str("there is no link on that port"),
            Self::LinkIsUp => f.write_str("the link on that port is up"),
            Self::LinkCost => f.write_str("a link costs at least 1, and less than infinity"),
            Self::Cost => f.write_str("the cost is greater than infinity"),
            Self::NoLabel(why) => why.fmt(f),
            Self::Attached => f.write_str("the destination is attached already, or is not"),
            Self::TooManyRouters => f.write_str("there are too many routers"),
            Self::TooLong => f.write_str("a router has too many links or destinations"),
            Self::Sequence => f.write_str("the sequence number is too great to be contradicted"),
        }
    }
}

impl Error for RouterError {}
