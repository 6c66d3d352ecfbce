//! The allocator of rows: a free list with generations and hold-down.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::error::{LabelError, NoLabel, Stale};
use super::label::Label;
use crate::invariant::{InvariantError, ensure};
use crate::raw::index::OptIndex;
use crate::timestamp::Timestamp;

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
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::threaded::{Labels, NoLabel};
///
/// // Two rows, and a hold-down of five seconds.
/// let mut labels = Labels::new(2, Duration::from_secs(5), 0)?;
/// let first = labels.allocate(Timestamp::ZERO)?;
/// let second = labels.allocate(Timestamp::ZERO)?;
/// assert_eq!(labels.allocate(Timestamp::ZERO), Err(NoLabel::Full));
///
/// labels.free(first, Timestamp::from_secs(10)).unwrap();
/// assert_eq!(labels.allocate(Timestamp::from_secs(14)), Err(NoLabel::HeldDown));
/// let third = labels.allocate(Timestamp::from_secs(15))?;
/// // The row is reused, with another generation.
/// assert_eq!(third.index(), first.index());
/// assert!(labels.is_live(third) && labels.is_live(second) && !labels.is_live(first));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Labels {
    rows: Vec<RowState>,
    /// The head of the free list: the row that was freed first.
    first: OptIndex,
    /// The tail of the free list: the row that was freed last.
    last: OptIndex,
    live: u32,
    capacity: u32,
    hold_down: Duration,
    start: u8,
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

impl Labels {
    /// Creates an allocator of `capacity` labels, which reuses a row no earlier than `hold_down`
    /// after it was freed.
    ///
    /// The first owner of each row has the generation `start`. A router that restarts has lost the
    /// generations, so its first generation must differ from the last time: by 64 more if it can
    /// store that much, or with a random one, and then one in 256 rows may accept a stale label. To
    /// exclude that, wait for the maximum life of a label before the first allocation, as TCP does
    /// before it allocates sequence numbers (RFC 9293, section 3.4.3).
    ///
    /// # Errors
    ///
    /// If `capacity` is zero, or more than [`Label::ROWS`].
    pub const fn new(capacity: u32, hold_down: Duration, start: u8) -> Result<Self, LabelError> {
        match capacity {
            0 => Err(LabelError::NoRows),
            1..=Label::ROWS => Ok(Self {
                rows: Vec::new(),
                first: OptIndex::NONE,
                last: OptIndex::NONE,
                live: 0,
                capacity,
                hold_down,
                start,
            }),
            _ => Err(LabelError::TooManyRows),
        }
    }

    /// Returns the allocator in its initial state.
    pub(super) fn reset(self) -> Self {
        Self { rows: Vec::new(), first: OptIndex::NONE, last: OptIndex::NONE, live: 0, ..self }
    }

    /// Allocates a label: of the row that has been free for the longest time, or of an additional
    /// row.
    ///
    /// # Errors
    ///
    /// If all rows are live, or the free ones are held down, or the allocation of memory fails.
    /// Nothing has changed.
    pub fn allocate(&mut self, now: Timestamp) -> Result<Label, NoLabel> {
        if let Some(label) = self.reuse(now) {
            return Ok(label);
        }
        if self.rows.len() as u32 == self.capacity {
            return Err(if self.first.is_none() { NoLabel::Full } else { NoLabel::HeldDown });
        }
        self.rows.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        let (generation, next) = (self.start, OptIndex::NONE);
        self.rows.push(RowState { freed: Timestamp::ZERO, next, generation, live: true });
        self.live += 1;
        Ok(Label::of(self.rows.len() as u32 - 1, generation))
    }

    /// Allocates the head of the free list, unless it is held down: the other rows were freed
    /// later.
    fn reuse(&mut self, now: Timestamp) -> Option<Label> {
        let index = self.first.get()?;
        let row = self.rows.get_mut(index as usize)?;
        if now.since(row.freed) < self.hold_down {
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
    pub fn free(&mut self, label: Label, now: Timestamp) -> Result<(), Stale> {
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
    #[must_use]
    pub fn is_live(&self, label: Label) -> bool {
        label.is_threaded()
            && self
                .rows
                .get(label.index() as usize)
                .is_some_and(|row| row.live && row.generation == label.generation())
    }

    /// Returns the number of live labels.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live as usize
    }

    /// Returns whether no label is live.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the maximum number of live labels.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::threaded::Labels;
    ///
    /// let mut labels = Labels::new(1000, Duration::ZERO, 0)?;
    /// let label = labels.allocate(Timestamp::ZERO)?;
    /// assert_eq!((labels.len(), labels.capacity()), (1, 1000));
    /// labels.free(label, Timestamp::ZERO)?;
    /// assert!(labels.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Checks the invariants of the allocator, for tests. O(rows).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::threaded::Labels;
    ///
    /// let mut labels = Labels::new(10, core::time::Duration::ZERO, 0)?;
    /// labels.allocate(flowtable::Timestamp::ZERO)?;
    /// assert_eq!(labels.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
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
        ensure(self.rows.len() <= self.capacity as usize, || "the rows exceed the capacity")
    }
}
