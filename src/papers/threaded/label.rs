//! Labels: the 32-bit field of a packet, and the allocator of the rows of a router.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::error::{LabelError, NoLabel, Stale};
use crate::hash::source_index::SourceIndex;
use crate::invariant::{InvariantError, ensure};
use crate::raw::slab::OptIndex;
use crate::timestamp::Timestamp;

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
    /// The time from the removal of a destination to the reuse of its row.
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

/// An allocator of labels: the rows of a router, with generations and hold-down.
///
/// ```text
///     row          0      1      2      3      4
///     generation   7      9      8      7      7
///                 live   free   live   free   live      free list:  3 → 1 → none
///                         ▴                                         ▴
///                         └ freed last                              └ freed first: allocated next
/// ```
///
/// Freeing a row increments its generation at once, so its old label is stale from then on. The row
/// is appended to the free list; as the hold-down is equal for all rows, only the head of the list
/// is checked.
///
/// Invariants: each row is live or in the free list, once; no label is allocated twice within 256
/// allocations of its row.
///
/// | method | cost |
/// |---|---|
/// | [`allocate`](Self::allocate) | O(1), amortised for the growth of a vector |
/// | [`free`](Self::free), [`is_live`](Self::is_live) | O(1) |
/// | memory | 16 bytes per row: for the most rows that were ever live or held down at once |
///
/// Paper: Chandranmenon and Varghese, section 4. The hold-down is ours.
#[derive(Clone, Debug)]
pub(super) struct LabelAllocator {
    rows: Vec<RowState>,
    /// The head of the free list: the row that was freed first.
    first: OptIndex,
    /// The tail of the free list: the row that was freed last.
    last: OptIndex,
    live: u32,
    config: Labels,
}

/// The allocation state of a row.
#[derive(Clone, Copy, Debug)]
struct RowState {
    /// When the row was freed.
    freed: Timestamp,
    /// The next row of the free list.
    next: OptIndex,
    /// The generation of the present or next owner.
    generation: u8,
    live: bool,
}

const _: () = assert!(size_of::<RowState>() == 16);

impl LabelAllocator {
    /// Creates an allocator without rows.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, or more than [`Label::ROWS`].
    pub(super) const fn new(config: Labels) -> Result<Self, LabelError> {
        let (first, last) = (OptIndex::NONE, OptIndex::NONE);
        match config.capacity {
            0 => Err(LabelError::NoRows),
            1..=Label::ROWS => Ok(Self { rows: Vec::new(), first, last, live: 0, config }),
            _ => Err(LabelError::TooManyRows),
        }
    }

    /// Allocates a label: of the row that has been free for the longest time, or of an additional
    /// row.
    ///
    /// # Errors
    ///
    /// If all rows are live, or the free ones are held down, or the allocation of memory fails.
    /// Nothing has changed.
    pub(super) fn allocate(&mut self, now: Timestamp) -> Result<Label, NoLabel> {
        if let Some(label) = self.reuse(now) {
            return Ok(label);
        }
        if self.rows.len() as u32 == self.config.capacity {
            return Err(if self.first.is_none() { NoLabel::Full } else { NoLabel::HeldDown });
        }
        self.rows.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        let (generation, next) = (self.config.start, OptIndex::NONE);
        self.rows.push(RowState { freed: Timestamp::ZERO, next, generation, live: true });
        self.live += 1;
        Ok(Label::of(self.rows.len() as u32 - 1, generation))
    }

    /// Allocates the head of the free list, unless it is held down: the other rows were freed
    /// later.
    fn reuse(&mut self, now: Timestamp) -> Option<Label> {
        let index = self.first.get()?;
        let row = self.rows.get_mut(index as usize)?;
        if now.since(row.freed) < self.config.hold_down {
            // After a time that was wrong, or a clock that was set back, a hold-down from now on.
            row.freed = row.freed.min(now);
            return None;
        }
        row.live = true;
        self.first = row.next;
        if self.first.is_none() {
            self.last = OptIndex::NONE;
        }
        self.live += 1;
        Some(Label::of(index, row.generation))
    }

    /// Frees the row of a label, which is stale from now on.
    ///
    /// # Errors
    ///
    /// If the label is stale already. Nothing has changed.
    pub(super) fn free(&mut self, label: Label, now: Timestamp) -> Result<(), Stale> {
        if !self.is_live(label) {
            return Err(Stale);
        }
        let index = label.index();
        let row = &mut self.rows[index as usize];
        row.live = false;
        row.generation = row.generation.wrapping_add(1);
        row.freed = now;
        row.next = OptIndex::NONE;
        match self.last.get() {
            Some(last) => self.rows[last as usize].next = OptIndex::some(index),
            None => self.first = OptIndex::some(index),
        }
        self.last = OptIndex::some(index);
        self.live -= 1;
        Ok(())
    }

    /// Returns whether a label is allocated. Exact for labels that are fewer than 256 allocations
    /// of their row old.
    pub(super) fn is_live(&self, label: Label) -> bool {
        label.is_threaded()
            && self
                .rows
                .get(label.index() as usize)
                .is_some_and(|row| row.live && row.generation == label.generation())
    }

    /// Returns the number of live labels.
    pub(super) const fn len(&self) -> usize {
        self.live as usize
    }

    /// Returns the maximum number of live labels.
    pub(super) const fn capacity(&self) -> usize {
        self.config.capacity as usize
    }

    /// Checks the invariants of the allocator, for tests. O(rows).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        let live = self.rows.iter().filter(|row| row.live).count();
        let (mut free, mut at, mut last) = (0, self.first, OptIndex::NONE);
        while let Some(index) = at.get().filter(|_| free <= self.rows.len()) {
            let row = self.rows.get(index as usize).filter(|row| !row.live);
            let broken = || InvariantError::new(format!("row {index} of the free list is live"));
            (last, at) = (at, row.ok_or_else(broken)?.next);
            free += 1;
        }
        ensure(at.is_none(), || "the free list has a cycle")?;
        ensure(last == self.last, || "the tail of the free list is wrong")?;
        ensure(live + free == self.rows.len(), || "a row is neither live nor in the free list")?;
        ensure(live == self.live as usize, || "the number of live rows is wrong")?;
        ensure(self.rows.len() <= self.config.capacity as usize, || "the rows exceed the capacity")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_reused_in_fifo_order_after_the_hold_down() {
        const ZERO: Timestamp = Timestamp::ZERO;
        let at = Timestamp::from_secs;
        let config = Labels { capacity: 3, hold_down: Duration::from_secs(10), start: 250 };
        let mut labels = LabelAllocator::new(config).unwrap();
        let given: Vec<Label> = (0..3).map(|_| labels.allocate(ZERO).unwrap()).collect();
        assert_eq!(given.iter().map(|label| label.index()).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(given.iter().all(|label| label.generation() == 250));
        assert_eq!(labels.allocate(at(99)), Err(NoLabel::Full));

        for (row, time) in [(2, 100), (0, 101), (1, 102)] {
            assert_eq!(labels.free(given[row], at(time)), Ok(()));
            assert_eq!(labels.free(given[row], at(time)), Err(Stale), "a label is freed once");
            labels.validate().unwrap();
        }
        assert_eq!(labels.len(), 0);
        assert_eq!(labels.allocate(at(109)), Err(NoLabel::HeldDown));
        assert_eq!(labels.allocate(at(110)), Ok(Label::of(2, 251)));
        assert_eq!(labels.allocate(at(110)), Err(NoLabel::HeldDown));
        // A clock that goes back extends the hold-down.
        assert_eq!(labels.allocate(ZERO), Err(NoLabel::HeldDown));
        assert_eq!(labels.allocate(at(112)), Ok(Label::of(0, 251)));
        assert_eq!(labels.allocate(at(112)), Ok(Label::of(1, 251)));
        assert_eq!((labels.allocate(at(112)), labels.len()), (Err(NoLabel::Full), 3));
        for label in [Label::NONE, Label::from(2), Label::of(3, 250), given[0]] {
            assert!(!labels.is_live(label), "{label:?}");
            assert_eq!(labels.free(label, at(113)), Err(Stale));
        }
        labels.validate().unwrap();
    }
}
