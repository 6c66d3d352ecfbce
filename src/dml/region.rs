//! Regions: what is to be done with which bytes of a packet.

use core::fmt;
use core::ops::{BitOr, Range};

/// What a region is for: a number, of which some have a name.
///
/// Numbers without one are kept: who knows them may use them.
///
/// # Example
///
/// ```
/// use flowtable::dml::Kind;
///
/// let trailer = Kind::new(0x8001);
/// assert_eq!((trailer.get(), trailer.to_string().as_str()), (0x8001, "kind 32769"));
/// assert_eq!((Kind::CHECKSUM.get(), Kind::CHECKSUM.to_string().as_str()), (1, "checksum"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u16);

impl Kind {
    /// Bytes of which the Internet checksum is, the checksum's own field among them. Those of nested layers overlap.
    pub const CHECKSUM: Self = Self(1);
    /// Bytes that say with which key to decrypt.
    pub const KEY: Self = Self(2);
    /// Bytes to decrypt.
    pub const DECRYPT: Self = Self(3);
    /// Bytes that say into which memory of the receiver application data goes.
    pub const DESTINATION: Self = Self(4);
    /// Application data. [`Receiver::receive`](super::Receiver::receive) refuses such regions if they overlap.
    pub const DATA: Self = Self(5);
    /// Bytes that say which message handler or process the packet is for; see [`DispatchFlags`].
    pub const DISPATCH: Self = Self(6);

    /// The kind of this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
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

/// The flags of a [`Kind::DISPATCH`] region: for whom the packet is, and whether to interrupt.
///
/// They are the sender's wishes. Other bits mean nothing, and are kept.
///
/// # Example
///
/// ```
/// use flowtable::dml::{DispatchFlags, Kind, Region};
///
/// let flags = DispatchFlags::PROCESS | DispatchFlags::LATER;
/// let dispatch = Region::new(Kind::DISPATCH, 8, 4).with_flags(flags.0);
/// assert!(DispatchFlags(dispatch.flags).contains(DispatchFlags::LATER));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DispatchFlags(pub u16);

impl DispatchFlags {
    /// The region names a process; otherwise, a message handler.
    pub const PROCESS: Self = Self(0x0001);
    /// No interrupt: the receiver will look for the packet by itself.
    pub const SILENT: Self = Self(0x0002);
    /// The interrupt may wait, to be one for several packets.
    pub const LATER: Self = Self(0x0004);

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for DispatchFlags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Some bytes of a packet, and what they are for.
///
/// # Example
///
/// ```
/// use flowtable::dml::{Kind, Region};
///
/// let region = Region::new(Kind::DATA, 4, 3);
/// assert_eq!((region.end(), region.slice(b"header")), (7, None));
/// assert_eq!(region.slice(b"and data"), Some(&b"dat"[..]));
/// assert_eq!(region.to_string(), "data of 3 bytes at 4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// What it is for.
    pub kind: Kind,
    /// What its kind makes of them: [`DispatchFlags`] if it is that. For other kinds they are free.
    pub flags: u16,
    /// Its first byte: from the first byte behind the data manipulation header, or in a layer's own packet from the
    /// first byte of that.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

impl Region {
    /// Bytes on the wire.
    pub(super) const ENCODED: usize = 12;

    /// A region without flags.
    #[inline]
    #[must_use]
    pub const fn new(kind: Kind, offset: u32, length: u32) -> Self {
        Self { kind, flags: 0, offset, length }
    }

    /// The same with these flags.
    #[inline]
    #[must_use]
    pub const fn with_flags(self, flags: u16) -> Self {
        Self { flags, ..self }
    }

    /// The byte behind it. 33 bits are enough for any region.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset as u64 + self.length as u64
    }

    /// Its bytes, unless it ends behind the packet.
    #[inline]
    #[must_use]
    pub fn slice<'p>(&self, packet: &'p [u8]) -> Option<&'p [u8]> {
        packet.get(self.range()?)
    }

    /// Its bytes to be changed, to decrypt them say, unless it ends behind the packet.
    #[inline]
    #[must_use]
    pub fn slice_mut<'p>(&self, packet: &'p mut [u8]) -> Option<&'p mut [u8]> {
        packet.get_mut(self.range()?)
    }

    /// Nothing if the machine cannot address it.
    #[inline]
    fn range(&self) -> Option<Range<usize>> {
        Some(usize::try_from(self.offset).ok()?..usize::try_from(self.end()).ok()?)
    }

    /// What is on the wire.
    #[inline]
    pub(super) fn encoded(&self) -> [u8; Self::ENCODED] {
        let [[k, i], [f, l]] = [self.kind.0.to_be_bytes(), self.flags.to_be_bytes()];
        let [[a, b, c, d], [m, n, o, p]] = [self.offset.to_be_bytes(), self.length.to_be_bytes()];
        [k, i, f, l, a, b, c, d, m, n, o, p]
    }

    /// What is on the wire, read.
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
