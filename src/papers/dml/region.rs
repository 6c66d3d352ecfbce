//! Regions: byte ranges of a packet, and the operations on them.

use core::fmt;
use core::ops::{BitOr, Range};

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
