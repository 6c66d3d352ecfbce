//! The header of a received packet, and its regions: byte ranges of the packet, and the operations
//! on them.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::ops::{BitOr, Range};

/// The version of the format.
pub(super) const VERSION: u8 = 1;

/// The length of the header in front of the regions.
pub(super) const PREFIX: usize = 4;

/// A parsed data manipulation header, whose regions are within the packet after it.
///
/// It borrows the bytes it was parsed from, and copies none.
///
/// | method | cost |
/// |---|---|
/// | `parse`, `find`, iteration | O(regions) |
///
/// Paper: Chandranmenon and Varghese, section 5.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{DmlHeader, Kind, ParseError};
///
/// let frame = b"\x01\x01\x08\x00\0\x05\0\0\0\0\0\x02\0\0\0\x04..data";
/// let (header, packet) = DmlHeader::parse(frame)?;
/// assert_eq!((header.ethertype, packet), (0x0800, &b"..data"[..]));
/// let data = header.find(Kind::DATA).and_then(|region| region.slice(packet));
/// assert_eq!(data, Some(&b"data"[..]));
///
/// let error = DmlHeader::parse(&frame[..21]).unwrap_err();
/// assert!(matches!(error, ParseError::OutOfPacket { packet: 5, .. }));
/// # Ok::<(), ParseError>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct DmlHeader<'a> {
    /// The EtherType of the packet: 0x0800 for IPv4.
    pub ethertype: u16,
    /// A multiple of [`Region::ENCODED`] bytes. Each region ends within the packet, and at 2^32 - 1
    /// at most.
    regions: &'a [u8],
}

impl<'a> DmlHeader<'a> {
    /// Parses the header at the start of `frame`, which begins after the data-link header. Returns
    /// the header and the packet after it.
    ///
    /// # Errors
    ///
    /// If the bytes end within the header, the version is unknown, or a region ends beyond the
    /// packet.
    pub fn parse(frame: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let given = frame.len();
        let Some((&[version, count, upper, lower], rest)) = frame.split_first_chunk::<PREFIX>()
        else {
            return Err(ParseError::Truncated { needed: PREFIX, given });
        };
        if version != VERSION {
            return Err(ParseError::Version(version));
        }
        let length = usize::from(count) * Region::ENCODED;
        let Some((regions, packet)) = rest.split_at_checked(length) else {
            return Err(ParseError::Truncated { needed: PREFIX + length, given });
        };
        let header = Self { ethertype: u16::from_be_bytes([upper, lower]), regions };
        let reach = (packet.len() as u64).min(u64::from(u32::MAX));
        match header.regions().find(|region| region.end() > reach) {
            Some(region) => Err(ParseError::OutOfPacket { region, packet: packet.len() }),
            None => Ok((header, packet)),
        }
    }

    /// Iterates over all regions, in the order of the header. The sender chooses the order.
    #[inline]
    #[must_use]
    pub fn regions(
        &self,
    ) -> impl DoubleEndedIterator<Item = Region> + ExactSizeIterator + Clone + use<'a> {
        let regions = self.regions.chunks_exact(Region::ENCODED);
        regions.map(|bytes| Region::decoded(*bytes.first_chunk().expect("chunks are exact")))
    }

    /// Returns the first region of a kind.
    #[inline]
    #[must_use]
    pub fn find(&self, kind: Kind) -> Option<Region> {
        self.regions().find(|region| region.kind == kind)
    }
}

impl fmt::Debug for DmlHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmlHeader")
            .field("ethertype", &self.ethertype)
            .field("regions", &self.regions().collect::<Vec<Region>>())
            .finish()
    }
}

/// The kind of a region: a number, of which some have names.
///
/// Other numbers are preserved, for applications that define them.
///
/// Paper: Chandranmenon and Varghese, section 5.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::Kind;
///
/// assert_eq!(Kind(0x8001).to_string(), "kind 32769");
/// assert_eq!((Kind::CHECKSUM.0, Kind::CHECKSUM.to_string().as_str()), (1, "checksum"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u16);

impl Kind {
    /// Bytes covered by an Internet checksum, its field included. Regions of nested layers overlap.
    pub const CHECKSUM: Self = Self(1);
    /// Bytes that identify the decryption key.
    pub const KEY: Self = Self(2);
    /// Bytes to decrypt.
    pub const DECRYPT: Self = Self(3);
    /// Bytes that identify the memory of the receiver for application data.
    pub const DESTINATION: Self = Self(4);
    /// Application data. [`Receiver::receive`](super::Receiver::receive) rejects such regions if
    /// they overlap.
    pub const DATA: Self = Self(5);
    /// Bytes that identify the message handler or process of the packet; see [`DispatchFlags`].
    pub const DISPATCH: Self = Self(6);
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::CHECKSUM => "checksum",
            Self::KEY => "key",
            Self::DECRYPT => "decrypt",
            Self::DESTINATION => "destination",
            Self::DATA => "data",
            Self::DISPATCH => "dispatch",
            Self(number) => return write!(f, "kind {number}"),
        })
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}

/// The flags of a [`Kind::DISPATCH`] region: the kind of destination, and whether to interrupt.
///
/// They are requests of the sender. Other bits have no meaning, and are preserved.
///
/// Paper: Chandranmenon and Varghese, section 5.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{DispatchFlags, Kind, Region};
///
/// let flags = DispatchFlags::PROCESS | DispatchFlags::LATER;
/// let dispatch = Region { flags: flags.0, ..Region::new(Kind::DISPATCH, 8, 4) };
/// assert_ne!(dispatch.flags & DispatchFlags::LATER.0, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DispatchFlags(pub u16);

impl DispatchFlags {
    /// The region identifies a process; otherwise, a message handler.
    pub const PROCESS: Self = Self(0x0001);
    /// No interrupt: the receiver polls for the packet.
    pub const SILENT: Self = Self(0x0002);
    /// The interrupt may be delayed and coalesced with the interrupt of later packets.
    pub const LATER: Self = Self(0x0004);
}

impl BitOr for DispatchFlags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A range of bytes of a packet, and its kind.
///
/// Paper: Chandranmenon and Varghese, section 5.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::{Kind, Region};
///
/// let region = Region::new(Kind::DATA, 4, 3);
/// assert_eq!((region.end(), region.slice(b"header")), (7, None));
/// assert_eq!(region.slice(b"and data"), Some(&b"dat"[..]));
/// assert_eq!(region.to_string(), "data of 3 bytes at 4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The kind of the region.
    pub kind: Kind,
    /// Flags whose meaning depends on the kind: [`DispatchFlags`] for dispatch. For other kinds,
    /// they are free for applications.
    pub flags: u16,
    /// The first byte, relative to the first byte after the data manipulation header, or, within a
    /// layer, to the first byte of the layer's packet.
    pub offset: u32,
    /// The number of bytes.
    pub length: u32,
}

impl Region {
    /// The length of a region on the wire.
    pub(super) const ENCODED: usize = 12;

    /// Creates a region without flags.
    #[inline]
    #[must_use]
    pub const fn new(kind: Kind, offset: u32, length: u32) -> Self {
        Self { kind, flags: 0, offset, length }
    }

    /// Returns the offset of the first byte after the region. It fits into 33 bits.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset as u64 + self.length as u64
    }

    /// Returns the bytes of the region, unless it ends beyond the packet.
    #[inline]
    #[must_use]
    pub fn slice<'p>(&self, packet: &'p [u8]) -> Option<&'p [u8]> {
        packet.get(self.range()?)
    }

    /// The range of the region, if it fits into `usize`.
    #[inline]
    fn range(&self) -> Option<Range<usize>> {
        Some(usize::try_from(self.offset).ok()?..usize::try_from(self.end()).ok()?)
    }

    /// Encodes the region for the wire.
    #[inline]
    pub(super) fn encoded(&self) -> [u8; Self::ENCODED] {
        let [[k, i], [f, l]] = [self.kind.0.to_be_bytes(), self.flags.to_be_bytes()];
        let [[a, b, c, d], [m, n, o, p]] = [self.offset.to_be_bytes(), self.length.to_be_bytes()];
        [k, i, f, l, a, b, c, d, m, n, o, p]
    }

    /// Decodes a region from the wire.
    #[inline]
    pub(super) const fn decoded(bytes: [u8; Self::ENCODED]) -> Self {
        let [k, i, f, l, a, b, c, d, m, n, o, p] = bytes;
        Self {
            kind: Kind(u16::from_be_bytes([k, i])),
            flags: u16::from_be_bytes([f, l]),
            offset: u32::from_be_bytes([a, b, c, d]),
            length: u32::from_be_bytes([m, n, o, p]),
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes at {}", self.kind, self.length, self.offset)
    }
}

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
