//! Errors of labels, tables and routers.

use core::error::Error;
use core::fmt;

/// The error of a stale label: its row was freed, has another owner, has no route, or never
/// existed. [Look the destination up](super::Table::forward_to).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the label is stale")
    }
}

impl Error for Stale {}

/// The error of an invalid number of rows.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::threaded::{Label, LabelError, Labels, Table};
///
/// let error = |capacity| {
///     let labels = Labels { capacity, hold_down: Duration::ZERO, start: 0 };
///     Table::<u8>::new(labels).err()
/// };
/// assert_eq!([error(0), error(Label::ROWS)], [Some(LabelError::NoRows), None]);
/// assert_eq!(error(Label::ROWS + 1), Some(LabelError::TooManyRows));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// The capacity is zero.
    NoRows,
    /// The capacity exceeds 2^23 rows, the range of an index.
    TooManyRows,
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRows => "the capacity must be at least one row",
            Self::TooManyRows => "the capacity exceeds 2^23 rows, the range of a label",
        })
    }
}

impl Error for LabelError {}

/// The error if no label is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoLabel {
    /// All rows are live.
    Full,
    /// All free rows are held down.
    HeldDown,
    /// The allocation of memory failed.
    NoMemory,
}

impl fmt::Display for NoLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all rows are in use",
            Self::HeldDown => "the free rows are held down",
            Self::NoMemory => "the memory allocation failed",
        })
    }
}

impl Error for NoLabel {}

/// The error of [`Table::insert`](super::Table::insert).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// The destination has a row already.
    InUse,
    /// No row is available.
    NoLabel(NoLabel),
}

impl From<NoLabel> for InsertError {
    fn from(error: NoLabel) -> Self {
        Self::NoLabel(error)
    }
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("the destination has a row already"),
            Self::NoLabel(error) => error.fmt(f),
        }
    }
}

impl Error for InsertError {}

/// The error of a router that rejects a neighbour's message or a change of its links. Nothing has
/// changed.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::threaded::{DistanceVector, Labels, RouterError};
///
/// let labels = Labels { capacity: 10, hold_down: Duration::ZERO, start: 0 };
/// let mut router: DistanceVector<&str> = DistanceVector::new(labels, 64)?;
/// router.link_up(1, 3)?;
/// assert_eq!(router.link_up(2, 64), Err(RouterError::LinkCost)); // infinity
/// assert_eq!(router.resynchronise(2), Err(RouterError::NoLink));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouterError {
    /// The port has no link.
    NoLink,
    /// The port has a link to another neighbour.
    LinkIsUp,
    /// The cost of a link is zero, which would allow free cycles, or infinity.
    LinkCost,
    /// A cost exceeds infinity.
    Cost,
    /// The number of labels is invalid.
    Labels(LabelError),
    /// No row is available for the destination.
    NoLabel(NoLabel),
    /// The destination is attached already, or is not attached.
    Attached,
    /// The router is not the designated router of the medium.
    NotDesignated,
    /// The database has the maximum number of routers.
    TooManyRouters,
    /// A router has more links or destinations than the limit.
    TooLong,
    /// The sequence number is so great that the router it is about could not supersede it.
    Sequence,
}

impl From<LabelError> for RouterError {
    fn from(error: LabelError) -> Self {
        Self::Labels(error)
    }
}

impl From<NoLabel> for RouterError {
    fn from(error: NoLabel) -> Self {
        Self::NoLabel(error)
    }
}

impl fmt::Display for RouterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLink => f.write_str("the port has no link"),
            Self::LinkIsUp => f.write_str("the port has a link to another neighbour"),
            Self::LinkCost => f.write_str("a link cost must be at least 1 and less than infinity"),
            Self::Cost => f.write_str("the cost is greater than infinity"),
            Self::Labels(error) => error.fmt(f),
            Self::NoLabel(error) => error.fmt(f),
            Self::Attached => f.write_str("the destination is attached already, or is not"),
            Self::NotDesignated => f.write_str("the router is not designated"),
            Self::TooManyRouters => f.write_str("there are too many routers"),
            Self::TooLong => f.write_str("a router has too many links or destinations"),
            Self::Sequence => f.write_str("the sequence number is too great to be superseded"),
        }
    }
}

impl Error for RouterError {}
