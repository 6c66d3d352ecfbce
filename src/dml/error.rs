//! What can be wrong with a header, or with what it is asked for.

use core::error::Error;
use core::fmt;

use super::Region;

/// Why bytes are no data manipulation header of the packet behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated {
        /// Bytes that the header has, as far as it says so.
        needed: usize,
        /// Bytes that there are.
        given: usize,
    },
    /// It is of a version that is not known.
    Version(u8),
    /// A region ends behind the packet.
    OutOfPacket {
        /// The first such region.
        region: Region,
        /// Bytes of the packet.
        packet: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, given } => {
                write!(f, "the header has {needed} bytes at least, of which {given} are there")
            }
            Self::Version(version) => write!(f, "version {version} is not known"),
            Self::OutOfPacket { region, packet } => {
                write!(f, "{region} ends behind the packet of {packet} bytes")
            }
        }
    }
}

impl Error for ParseError {}

/// Why a region or a header is not added. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// There are [`MAX_REGIONS`](super::MAX_REGIONS) regions.
    TooMany,
    /// A region, or the headers alone, would end beyond byte 2^32 - 1 of the packet.
    TooFar,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "there are as many regions as a header can count",
            Self::TooFar => "a packet ends at byte 2^32 - 1",
        })
    }
}

impl Error for BuildError {}

/// A buffer is too small. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Bytes that are to be written.
    pub needed: usize,
    /// Bytes of the buffer.
    pub room: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes do not fit into {}", self.needed, self.room)
    }
}

impl Error for NoRoom {}

/// Why a packet is not received. Nothing was written.
///
/// # Example
///
/// ```
/// use flowtable::dml::{DmlBuilder, DmlHeader, Kind, ReceiveError, Receiver, Region};
///
/// let mut dml = DmlBuilder::new(0x0800);
/// dml.add(Region::new(Kind::DATA, 0, 10))?;
/// dml.add(Region::new(Kind::DATA, 5, 10))?;
/// let mut frame = [0; 64];
/// dml.write_to(&mut frame)?;
/// let (header, packet) = DmlHeader::parse(&frame)?;
/// let mut receiver = Receiver::new();
/// let refused = receiver.receive(&header, packet, &mut [0; 64]).unwrap_err();
/// assert_eq!(refused, ReceiveError::DataOverlaps { at: 5 });
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The packet is shorter than the one that the header was parsed with: this region ends behind it.
    OutOfPacket(Region),
    /// Regions of application data overlap.
    DataOverlaps {
        /// The first byte that is in two of them.
        at: u32,
    },
    /// The application data does not fit into the destination.
    NoRoom(NoRoom),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfPacket(region) => write!(f, "{region} ends behind the packet"),
            Self::DataOverlaps { at } => {
                write!(f, "byte {at} is in two regions of application data")
            }
            Self::NoRoom(error) => error.fmt(f),
        }
    }
}

impl Error for ReceiveError {}

impl From<NoRoom> for ReceiveError {
    fn from(error: NoRoom) -> Self {
        Self::NoRoom(error)
    }
}
