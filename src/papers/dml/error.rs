//! Errors of parsing, building and receiving.

use core::error::Error;
use core::fmt;

use super::Region;

/// The error of parsing a data manipulation header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated {
        /// The length of the header, or of its prefix if that is incomplete.
        needed: usize,
        /// The number of bytes given.
        given: usize,
    },
    /// The version is unknown.
    Version(u8),
    /// A region ends beyond the packet.
    OutOfPacket {
        /// The first such region.
        region: Region,
        /// The length of the packet.
        packet: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, given } => {
                write!(f, "the header has at least {needed} bytes, but {given} are given")
            }
            Self::Version(version) => write!(f, "version {version} is unknown"),
            Self::OutOfPacket { region, packet } => {
                write!(f, "{region} ends beyond the packet of {packet} bytes")
            }
        }
    }
}

impl Error for ParseError {}

/// The error of adding a region or a header. The builder is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// There are [`MAX_REGIONS`](super::MAX_REGIONS) regions already.
    TooMany,
    /// A region, or the headers alone, would end beyond byte 2^32 - 1 of the packet.
    TooFar,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "a header has at most 255 regions",
            Self::TooFar => "a packet ends at byte 2^32 - 1 at most",
        })
    }
}

impl Error for BuildError {}

/// The error of writing to a buffer that is too small. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// The number of bytes to write.
    pub needed: usize,
    /// The length of the buffer.
    pub capacity: usize,
}

impl fmt::Display for BufferTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes do not fit into {}", self.needed, self.capacity)
    }
}

impl Error for BufferTooSmall {}

/// The error of receiving a packet. Nothing was written.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{DmlBuilder, DmlHeader, Kind, ReceiveError, Receiver, Region};
///
/// let mut dml = DmlBuilder::new(0x0800);
/// dml.add(Region::new(Kind::DATA, 0, 10))?;
/// dml.add(Region::new(Kind::DATA, 5, 10))?;
/// let mut frame = [0; 64];
/// dml.write_to(&mut frame)?;
/// let (header, packet) = DmlHeader::parse(&frame)?;
/// let mut receiver = Receiver::new();
/// let error = receiver.receive(&header, packet, &mut [0; 64]).unwrap_err();
/// assert_eq!(error, ReceiveError::DataOverlaps { at: 5 });
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The packet is shorter than the one the header was parsed with: this region ends beyond it.
    OutOfPacket(Region),
    /// Regions of application data overlap.
    DataOverlaps {
        /// The first byte in two of them.
        at: u32,
    },
    /// The application data does not fit into the destination.
    BufferTooSmall(BufferTooSmall),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfPacket(region) => write!(f, "{region} ends beyond the packet"),
            Self::DataOverlaps { at } => {
                write!(f, "byte {at} is in two regions of application data")
            }
            Self::BufferTooSmall(error) => error.fmt(f),
        }
    }
}

impl Error for ReceiveError {}

impl From<BufferTooSmall> for ReceiveError {
    fn from(error: BufferTooSmall) -> Self {
        Self::BufferTooSmall(error)
    }
}
