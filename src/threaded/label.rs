//! What a packet carries: 32 bits.

use core::fmt;

use crate::hash::source_index::SourceIndex;

/// The index that a packet carries: the row of the *next* router's table, and which of the row's owners is meant.
///
/// ```text
///      31  30            23  22                                         0
///     │ T │   generation    │                  index                     │      T = 1: threaded
///     │ T │                       random                                 │      T = 0: a source index
/// ```
///
/// Only the router whose row it is understands a label: for all others it is a number to write into packets. The
/// first bit tells a threaded index from a random one, so one field of a header serves both; who leaves the area where
/// indices are threaded goes on with source hashing. See [`Border`](super::Border).
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::SourceIndex;
/// use flowtable::threaded::Label;
///
/// let label = Label::new(1_234_567, 42).unwrap();
/// assert_eq!((label.is_threaded(), label.index(), label.generation()), (true, 1_234_567, 42));
/// // As it is in a packet.
/// assert_eq!(Label::from(u32::from(label)), label);
/// // Past 23 bits there is no row.
/// assert_eq!(Label::new(1 << 23, 0), None);
/// // A random index has 31 bits.
/// let random = Label::random(SourceIndex::new(0xffff_ffff));
/// assert_eq!((random.is_threaded(), random.get()), (false, 0x7fff_ffff));
/// assert_eq!(random.source_index(), SourceIndex::new(0x7fff_ffff));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

impl Label {
    /// No label: what a packet has whose next router has not said its own. That router then looks the destination up.
    pub const NONE: Self = Self(0);

    /// Bits of an index.
    pub const INDEX_BITS: u32 = 23;

    /// Rows that indices can tell apart: 8,388,608.
    pub const ROWS: u32 = 1 << Self::INDEX_BITS;

    /// The bit that says it is threaded.
    const THREADED: u32 = 1 << 31;

    /// The label of a row, or `None` if there can be no such row.
    #[inline]
    #[must_use]
    pub const fn new(index: u32, generation: u8) -> Option<Self> {
        if index >= Self::ROWS { None } else { Some(Self::of(index, generation)) }
    }

    /// The label of a row that there is.
    #[inline]
    pub(super) const fn of(index: u32, generation: u8) -> Self {
        Self(Self::THREADED | (generation as u32) << Self::INDEX_BITS | index)
    }

    /// No threaded index, but these 31 bits of a random one.
    #[inline]
    #[must_use]
    pub const fn random(index: SourceIndex) -> Self {
        Self(index.get() & !Self::THREADED)
    }

    /// Its bits as they are: where to look in a table that goes by random indices.
    #[inline]
    #[must_use]
    pub const fn source_index(self) -> SourceIndex {
        SourceIndex::new(self.0)
    }

    /// As it is in a packet.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether it is a row's. If not, it is a random index, or [`NONE`](Self::NONE).
    #[inline]
    #[must_use]
    pub const fn is_threaded(self) -> bool {
        self.0 & Self::THREADED != 0
    }

    /// The row. Means nothing unless it [is threaded](Self::is_threaded).
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 & (Self::ROWS - 1)
    }

    /// Which owner of the row, modulo 256. Means nothing unless it [is threaded](Self::is_threaded).
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u8 {
        (self.0 >> Self::INDEX_BITS) as u8
    }

    /// All that is above the index: whether it is threaded, and the generation. Nine bits.
    #[inline]
    pub(super) const fn tag(self) -> u16 {
        (self.0 >> Self::INDEX_BITS) as u16
    }

    /// This label, or none if it is no row's: random indices are none of the next router's rows.
    #[inline]
    pub(super) const fn threaded_or_none(self) -> Self {
        if self.is_threaded() { self } else { Self::NONE }
    }
}

impl From<u32> for Label {
    #[inline]
    fn from(field: u32) -> Self {
        Self(field)
    }
}

impl From<Label> for u32 {
    #[inline]
    fn from(label: Label) -> Self {
        label.0
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_threaded() {
            true => write!(f, "Label({}, generation {})", self.index(), self.generation()),
            false if *self == Self::NONE => f.write_str("Label(none)"),
            false => write!(f, "Label(random {:#x})", self.0),
        }
    }
}
