//! Labels: the 32-bit field of a packet, and the configuration of the labels of a router.

use core::fmt;
use core::time::Duration;

use crate::hash::source_index::SourceIndex;

/// A label of a packet: a row of the *next* router's table, and the generation of the row.
///
/// ```text
///      31  30            23  22                                         0
///     │ T │   generation    │                  index                     │  T = 1: threaded
///     │ T │                       random                                 │  T = 0: a source index
/// ```
///
/// A label has a meaning at the router that allocated it; for all others it is an opaque value to
/// write into packets. The first bit distinguishes a threaded index from a random one, so one
/// header field serves both: packets that leave the area of threaded indices continue with source
/// hashing. See [`Border`](super::Border).
///
/// Paper: Chandranmenon and Varghese, section 4.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::SourceIndex;
/// use flowtable::papers::threaded::Label;
///
/// let label = Label::new(1_234_567, 42).unwrap();
/// assert_eq!((label.is_threaded(), label.index()), (true, 1_234_567));
/// // The field of a packet.
/// assert_eq!(Label::from(u32::from(label)), label);
/// // Indices have 23 bits.
/// assert_eq!(Label::new(1 << 23, 0), None);
/// // A random index has 31 bits.
/// let random = Label::random(SourceIndex::new(0xffff_ffff));
/// assert_eq!((random.is_threaded(), u32::from(random)), (false, 0x7fff_ffff));
/// assert_eq!(random.source_index(), SourceIndex::new(0x7fff_ffff));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub(super) u32);

impl Label {
    /// No label, for a next router that has not sent one. That router looks the destination up.
    pub const NONE: Self = Self(0);

    /// The number of bits of an index.
    pub const INDEX_BITS: u32 = 23;

    /// The number of distinct indices: 8,388,608.
    pub const ROWS: u32 = 1 << Self::INDEX_BITS;

    /// The bit that marks a threaded index.
    const THREADED: u32 = 1 << 31;

    /// Creates the label of a row. `None` if the index exceeds 23 bits.
    #[inline]
    #[must_use]
    pub const fn new(index: u32, generation: u8) -> Option<Self> {
        if index >= Self::ROWS { None } else { Some(Self::of(index, generation)) }
    }

    /// Creates the label of an existing row.
    #[inline]
    pub(super) const fn of(index: u32, generation: u8) -> Self {
        Self(Self::THREADED | (generation as u32) << Self::INDEX_BITS | index)
    }

    /// Creates a label with the lower 31 bits of a random index.
    #[inline]
    #[must_use]
    pub const fn random(index: SourceIndex) -> Self {
        Self(index.get() & !Self::THREADED)
    }

    /// Returns all bits as an index for source hashing.
    #[inline]
    #[must_use]
    pub const fn source_index(self) -> SourceIndex {
        SourceIndex::new(self.0)
    }

    /// Returns whether the label is of a row. If not, it is a random index, or
    /// [`NONE`](Self::NONE).
    #[inline]
    #[must_use]
    pub const fn is_threaded(self) -> bool {
        self.0 & Self::THREADED != 0
    }

    /// Returns the index of the row. Meaningless unless the label [is threaded](Self::is_threaded).
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 & (Self::ROWS - 1)
    }

    /// Returns the generation of the row, modulo 256. Meaningless unless the label [is
    /// threaded](Self::is_threaded).
    #[inline]
    pub(super) const fn generation(self) -> u8 {
        (self.0 >> Self::INDEX_BITS) as u8
    }

    /// Returns the nine bits above the index: the threaded bit and the generation.
    #[inline]
    pub(super) const fn tag(self) -> u16 {
        (self.0 >> Self::INDEX_BITS) as u16
    }

    /// Returns the label if it is threaded, or none: a random index is not a row of the next
    /// router.
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

/// The labels of a router: how many there are, and when they are reused.
///
/// Paper: Chandranmenon and Varghese, section 4. The hold-down is ours.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::threaded::{Hop, InsertError, Labels, NoLabel, Table};
///
/// // Two rows, and a hold-down of five seconds.
/// let hold_down = Duration::from_secs(5);
/// let mut table = Table::new(Labels { capacity: 2, hold_down, start: 0 })?;
/// let mut insert = |name, now| table.insert(name, Some(Hop::Deliver), Timestamp::from_secs(now));
/// let first = insert("A", 0)?;
/// insert("B", 0)?;
/// assert_eq!(insert("C", 0), Err(InsertError::NoLabel(NoLabel::Full)));
///
/// table.remove(&"A", Timestamp::from_secs(10));
/// let mut insert = |name, now| table.insert(name, Some(Hop::Deliver), Timestamp::from_secs(now));
/// assert_eq!(insert("C", 14), Err(InsertError::NoLabel(NoLabel::HeldDown)));
/// // The row is reused, with another generation.
/// let third = insert("C", 15)?;
/// assert!(third.index() == first.index() && third != first);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The maximum number of live labels: 1 to [`Label::ROWS`].
    pub capacity: u32,
    /// The time from the removal of a destination to the reuse of its row. If an insertion has a
    /// time before the removal, the clock was wrong or was set back: it begins again at that time.
    pub hold_down: Duration,
    /// The generation of the first owner of each row.
    ///
    /// A router that restarts has lost the generations, so its first generation must differ from
    /// the last time: by 64 more if it can store that much, or with a random one, and then one in
    /// 256 rows may accept a stale label. To exclude that, wait for the maximum life of a label
    /// before the first insertion, as TCP does before it allocates sequence numbers (RFC 9293,
    /// section 3.4.3).
    pub start: u8,
}
