//! Which rows are whose: a free list with hold-down.

use alloc::vec::Vec;
use core::time::Duration;

use super::check::Broken;
use super::error::{LabelError, NoLabel, Stale};
use super::label::Label;
use crate::timestamp::Timestamp;

/// The end of the free list.
const END: u32 = u32::MAX;

/// Gives labels to those who have none, and takes them back: the allocator of a router's rows.
///
/// ```text
///     row          0      1      2      3      4
///     generation   7      9      8      7      7
///                 live   free   live   free   live        free:  3 → 1 → end
///                         ▴                                      ▴
///                         └ freed last: given last               └ given next, if it was freed long enough ago
/// ```
///
/// A row that is freed gets the next generation at once, so its old label is stale from then on. It waits at the end of
/// a list; as all wait equally long, only the first of the list is ever looked at.
///
/// Invariants: each row is live or in the list, once; no label is given twice within 256 givings of its row.
///
/// | method | cost |
/// |---|---|
/// | [`give`](Self::give), [`take_back`](Self::take_back), [`is_live`](Self::is_live) | O(1), amortised for the growth of a vector |
/// | memory | 16 bytes for a row: for as many as were ever live or held down at once |
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::threaded::{Labels, NoLabel};
///
/// // Two rows; a row rests for five seconds.
/// let mut labels = Labels::new(2, Duration::from_secs(5), 0)?;
/// let first = labels.give(Timestamp::ZERO)?;
/// let second = labels.give(Timestamp::ZERO)?;
/// assert_eq!(labels.give(Timestamp::ZERO), Err(NoLabel::Full));
///
/// labels.take_back(first, Timestamp::from_secs(10)).unwrap();
/// assert_eq!(labels.give(Timestamp::from_secs(14)), Err(NoLabel::HeldDown));
/// let third = labels.give(Timestamp::from_secs(15))?;
/// // The row is the same, and its owner another.
/// assert_eq!(third.index(), first.index());
/// assert!(labels.is_live(third) && labels.is_live(second) && !labels.is_live(first));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Labels {
    rows: Vec<Standing>,
    /// The row that was freed first, and the one freed last.
    first: u32,
    last: u32,
    live: u32,
    capacity: u32,
    hold_down: Duration,
    start: u8,
}

/// Whether a row is somebody's.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// When it was freed.
    freed: Timestamp,
    /// The row that was freed after it, or [`END`].
    next: u32,
    /// Of the owner it has, or will have.
    generation: u8,
    live: bool,
}

const _: () = assert!(size_of::<Standing>() == 16);

impl Labels {
    /// No labels given of `capacity`, and none given again before `hold_down` has passed.
    ///
    /// The first owner of each row has the generation `start`. A router that restarts has forgotten what labels are
    /// about, so it must start elsewhere than the last time: with 64 more if it can remember that much, or anywhere at
    /// random, and then one in 256 rows may be taken for another's. Whoever will not have that waits for as long as a
    /// label may live before it gives any, as TCP does before it gives sequence numbers (RFC 9293, section 3.4.3).
    ///
    /// # Errors
    ///
    /// If `capacity` is none, or more than [`Label::ROWS`].
    pub const fn new(capacity: u32, hold_down: Duration, start: u8) -> Result<Self, LabelError> {
        match capacity {
            0 => Err(LabelError::NoRows),
            1..=Label::ROWS => Ok(Self {
                rows: Vec::new(),
                first: END,
                last: END,
                live: 0,
                capacity,
                hold_down,
                start,
            }),
            _ => Err(LabelError::TooManyRows),
        }
    }

    /// The same, and none given.
    pub(super) fn unused(self) -> Self {
        Self { rows: Vec::new(), first: END, last: END, live: 0, ..self }
    }

    /// A label that nobody has: of the row that has been free for the longest time, or of a row more.
    ///
    /// # Errors
    ///
    /// If all rows are live, or those that are not are held down, or there is no memory. Nothing has changed.
    pub fn give(&mut self, now: Timestamp) -> Result<Label, NoLabel> {
        if let Some(label) = self.rested(now) {
            return Ok(label);
        }
        if self.rows.len() as u32 == self.capacity {
            return Err(if self.first == END { NoLabel::Full } else { NoLabel::HeldDown });
        }
        self.rows.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        let generation = self.start;
        self.rows.push(Standing { freed: Timestamp::ZERO, next: END, generation, live: true });
        self.live += 1;
        Ok(Label::of(self.rows.len() as u32 - 1, generation))
    }

    /// The first of the list, if it has rested for long enough: the others were freed later.
    fn rested(&mut self, now: Timestamp) -> Option<Label> {
        let index = self.first;
        let row = self.rows.get_mut(index as usize)?;
        if now.since(row.freed) < self.hold_down {
            return None;
        }
        row.live = true;
        self.first = row.next;
        if self.first == END {
            self.last = END;
        }
        self.live += 1;
        Some(Label::of(index, row.generation))
    }

    /// Frees the row of a label, which is stale from now on.
    ///
    /// # Errors
    ///
    /// If it was stale before. Nothing has changed.
    pub fn take_back(&mut self, label: Label, now: Timestamp) -> Result<(), Stale> {
        if !self.is_live(label) {
            return Err(Stale);
        }
        let index = label.index();
        let row = &mut self.rows[index as usize];
        row.live = false;
        row.generation = row.generation.wrapping_add(1);
        row.freed = now;
        row.next = END;
        match self.rows.get_mut(self.last as usize) {
            Some(last) => last.next = index,
            None => self.first = index,
        }
        self.last = index;
        self.live -= 1;
        Ok(())
    }

    /// Whether a label was given and not taken back: always right for labels that lived less than 256 givings of a row.
    #[must_use]
    pub fn is_live(&self, label: Label) -> bool {
        label.is_threaded()
            && self
                .rows
                .get(label.index() as usize)
                .is_some_and(|row| row.live && row.generation == label.generation())
    }

    /// Labels that are live.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live as usize
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Labels that can be live at once.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::threaded::Labels;
    ///
    /// let mut labels = Labels::new(1000, Duration::ZERO, 0)?;
    /// let label = labels.give(Timestamp::ZERO)?;
    /// assert_eq!((labels.len(), labels.capacity()), (1, 1000));
    /// labels.take_back(label, Timestamp::ZERO)?;
    /// assert!(labels.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Checks every invariant, for tests. O(rows).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// let mut labels = flowtable::threaded::Labels::new(10, core::time::Duration::ZERO, 0)?;
    /// labels.give(flowtable::Timestamp::ZERO)?;
    /// assert_eq!(labels.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        let live = self.rows.iter().filter(|row| row.live).count();
        let (mut free, mut at, mut last) = (0, self.first, END);
        while at != END && free <= self.rows.len() {
            let row = self.rows.get(at as usize).filter(|row| !row.live);
            last = at;
            at = row.ok_or(Broken::FreeList)?.next;
            free += 1;
        }
        let whole = at == END && last == self.last && live + free == self.rows.len();
        let counted = live == self.live as usize && self.rows.len() <= self.capacity as usize;
        if whole && counted { Ok(()) } else { Err(Broken::FreeList) }
    }
}
