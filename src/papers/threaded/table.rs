//! The forwarding table of a router, indexed by label.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;

use super::error::{InsertError, LabelError, NoLabel, Stale};
use super::label::{Label, Labels};
use crate::invariant::{InvariantError, ensure};
use crate::timestamp::Timestamp;

/// The index of a neighbour at a router: one per point-to-point link, one per other router on a
/// shared medium.
pub type Port = u16;

/// The forwarding decision for a packet.
///
/// Paper: Chandranmenon and Varghese, section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Write the label into the packet, and send it.
    Forward {
        /// The output port.
        port: Port,
        /// The label for the next router. [`Label::NONE`] if that has not sent one.
        label: Label,
    },
    /// Deliver the packet: the destination is attached here.
    Deliver,
}

/// The part of a row that forwarding reads: eight bytes, so a cache line holds eight rows.
///
/// Aligned, so a row never spans two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct Row {
    /// The label at the next router, or [`Row::DELIVER`].
    next: u32,
    port: Port,
    /// The tag of the row's own label if there is a route from here, or [`Row::CLOSED`].
    tag: u16,
}

const _: () = assert!(size_of::<Row>() == 8);

impl Row {
    /// Not a tag, which has nine bits.
    const CLOSED: u16 = u16::MAX;

    /// Neither a threaded label nor none, so it can encode [`Hop::Deliver`].
    const DELIVER: u32 = 1;

    const EMPTY: Self = Self { next: 0, port: 0, tag: Self::CLOSED };

    /// Creates the row of label `own` for this hop.
    const fn new(own: Label, hop: Option<Hop>) -> Self {
        let tag = own.tag();
        match hop {
            None => Self::EMPTY,
            Some(Hop::Deliver) => Self { next: Self::DELIVER, port: 0, tag },
            Some(Hop::Forward { port, label }) => {
                Self { next: label.threaded_or_none().0, port, tag }
            }
        }
    }

    #[inline]
    fn hop(self) -> Hop {
        match self.next {
            Self::DELIVER => Hop::Deliver,
            next => Hop::Forward { port: self.port, label: Label::from(next) },
        }
    }
}

/// A forwarding table with one row per destination, indexed by label.
///
/// ```text
///     packet's label │1│ 9 │ 2 │              rows               owners
///                       │    │         0   │ 8│ port 1 │ … │    A, …
///                       │    │         1   │ closed         │    ─
///                       │    └───────▸ 2   │ 9│ port 3 │ 7:41 │ D         D ─▸ row 2
///                       └─ equal? ──────────┘
/// ```
///
/// Forwarding a packet with a label reads one row of eight bytes, and compares nine bits, no
/// destination. The destinations of the rows are stored elsewhere, for packets without a label.
///
/// **Instructions.** A loop that reads the labels of packets, forwards them, writes the next labels
/// and counts the packets of each port took 20 instructions per packet (x86-64, rustc 1.95, counted
/// by callgrind). 5 are the loop and the count. Of the 15 others 6 read the label, read the row and
/// write the next label, which are the paper's; 3 compare the tag, 2 the number of rows, 2 test for
/// delivery, and 2 prepare the result for delivery or a stale label. Where
/// [`forward`](Self::forward) is not inlined, and the hop is returned in a register, it took up to
/// 37; a hit in a [`SourceHashCache`](crate::cache::SourceHashCache) took 27 to 34. So the paper's
/// order, 8 before 20, holds in time, which the benchmarks measure, as one cache line is read and
/// none is written; do not rely on it in instructions.
///
/// Invariants: a row forwards packets for its owner only; a row without an owner or a route is
/// closed.
///
/// | method | cost |
/// |---|---|
/// | [`forward`](Self::forward) | O(1): one row |
/// | [`forward_to`](Self::forward_to), [`label`](Self::label), [`set`](Self::set) | O(log rows) |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | O(log rows) |
/// | [`destination`](Self::destination), [`len`](Self::len); [`iter`](Self::iter) | O(1); O(rows) |
/// | memory | 8 bytes per row, and its destination twice: by row and in a tree; 16 if it is free |
///
/// Paper: Chandranmenon and Varghese, section 4. The generations of rows are ours.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::threaded::{Hop, Label, Labels, Stale, Table};
///
/// let now = Timestamp::ZERO;
/// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 0 };
/// let mut table = Table::new(labels)?;
/// // The next router is at port 3; its row for D is 41.
/// let onward = Hop::Forward { port: 3, label: Label::new(41, 7).unwrap() };
/// let label = table.insert("D", Some(onward), now)?;
///
/// assert_eq!(table.forward(label), Ok(onward));
/// // Without a label, forward by the destination.
/// assert_eq!(table.forward(Label::NONE), Err(Stale));
/// assert_eq!(table.forward_to(&"D"), Some(onward));
///
/// // The row gets another owner. Packets with the old label are not misdelivered.
/// table.remove(&"D", now);
/// let other = table.insert("E", Some(Hop::Deliver), now)?;
/// assert_eq!(other.index(), label.index());
/// assert_eq!(table.forward(label), Err(Stale));
/// assert_eq!(table.forward(other), Ok(Hop::Deliver));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table<D> {
    /// The rows, as many as were ever in use or held down at once. Indices of packets are
    /// bounds-checked.
    rows: Vec<Row>,
    /// The owner of each row.
    owners: Vec<Owner<D>>,
    /// The live label of each destination.
    destinations: BTreeMap<D, Label>,
    /// The rows without owner, the one that was freed first in front: as the hold-down is equal for
    /// all rows, only that one is checked.
    free: VecDeque<FreeRow>,
    labels: Labels,
}

#[derive(Clone, Debug)]
struct Owner<D> {
    /// The generation of the present or next owner.
    generation: u8,
    destination: Option<D>,
}

#[derive(Clone, Copy, Debug)]
struct FreeRow {
    index: u32,
    freed: Timestamp,
}

impl<D> Table<D> {
    /// Creates a table without rows.
    ///
    /// # Errors
    ///
    /// If the number of labels is zero, or more than [`Label::ROWS`].
    pub fn new(labels: Labels) -> Result<Self, LabelError> {
        let (rows, owners, free) = (Vec::new(), Vec::new(), VecDeque::new());
        match labels.capacity {
            0 => Err(LabelError::NoRows),
            1..=Label::ROWS => {
                Ok(Self { rows, owners, destinations: BTreeMap::new(), free, labels })
            }
            _ => Err(LabelError::TooManyRows),
        }
    }

    /// Returns the hop of a packet with this label. Compares no destination.
    ///
    /// Only for packets from senders that got their labels from this router. The field of other
    /// packets is not a label: see
    /// [`Border::forward_from_outside`](super::Border::forward_from_outside).
    ///
    /// # Errors
    ///
    /// If the label is stale, or not threaded. Then [look the destination up](Self::forward_to).
    #[inline]
    pub fn forward(&self, label: Label) -> Result<Hop, Stale> {
        match self.rows.get(label.index() as usize) {
            Some(row) if row.tag == label.tag() => Ok(row.hop()),
            _ => Err(Stale),
        }
    }

    /// Returns the destination of a live label. For checks of the generations, not for forwarding.
    #[must_use]
    pub fn destination(&self, label: Label) -> Option<&D> {
        let is_live =
            |owner: &&Owner<D>| label.is_threaded() && owner.generation == label.generation();
        self.owners.get(label.index() as usize).filter(is_live)?.destination.as_ref()
    }

    /// Iterates over the destinations with their labels, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&D, Label)> {
        self.destinations.iter().map(|(destination, &label)| (destination, label))
    }

    /// Returns the number of destinations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Returns whether there are no destinations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty()
    }

    /// Returns the maximum number of destinations.
    pub(super) const fn capacity(&self) -> usize {
        self.labels.capacity as usize
    }
}

impl<D: Ord + Clone> Table<D> {
    /// Returns the hop of a packet for this destination, by a full lookup that ignores the label.
    ///
    /// `None` if there is no route.
    #[must_use]
    pub fn forward_to(&self, destination: &D) -> Option<Hop> {
        self.forward(self.label(destination)?).ok()
    }

    /// Returns the label that neighbours and hosts must write into packets for a destination.
    #[must_use]
    pub fn label(&self, destination: &D) -> Option<Label> {
        self.destinations.get(destination).copied()
    }

    /// Allocates a row for a destination, and returns its label. A `hop` of `None` closes the row:
    /// there is no route.
    ///
    /// # Errors
    ///
    /// If the destination has a row, or no row is available. Nothing has changed.
    pub fn insert(
        &mut self,
        destination: D,
        hop: Option<Hop>,
        now: Timestamp,
    ) -> Result<Label, InsertError> {
        if self.destinations.contains_key(&destination) {
            return Err(InsertError::InUse);
        }
        // First, since it may panic.
        let owner = destination.clone();
        let label = self.allocate(now)?;
        let index = label.index() as usize;
        self.rows[index] = Row::new(label, hop);
        self.owners[index].destination = Some(owner);
        self.destinations.insert(destination, label);
        Ok(label)
    }

    /// Allocates the label of the row that has been free for the longest time, or of an additional
    /// row.
    fn allocate(&mut self, now: Timestamp) -> Result<Label, NoLabel> {
        if let Some(&FreeRow { index, freed }) = self.free.front() {
            if now.since(freed) >= self.labels.hold_down {
                self.free.pop_front();
                return Ok(Label::of(index, self.owners[index as usize].generation));
            }
            if now < freed {
                // After a time that was wrong, or a clock that was set back, a hold-down from now
                // on for all.
                self.free.iter_mut().for_each(|row| row.freed = row.freed.min(now));
            }
        }
        let rows = self.rows.len();
        if rows == self.capacity() {
            return Err(if self.free.is_empty() { NoLabel::Full } else { NoLabel::HeldDown });
        }
        self.rows.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        self.owners.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        // So removals allocate nothing.
        self.free.try_reserve(rows + 1 - self.free.len()).map_err(|_| NoLabel::NoMemory)?;
        self.rows.push(Row::EMPTY);
        self.owners.push(Owner { generation: self.labels.start, destination: None });
        Ok(Label::of(rows as u32, self.labels.start))
    }

    /// Sets the hop of a destination. Its label does not change, and is returned if there is a row.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::threaded::{Hop, Label, Labels, Table};
    ///
    /// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 0 };
    /// let mut table = Table::new(labels)?;
    /// let over = |port| Hop::Forward { port, label: Label::NONE };
    /// let label = table.insert("D", Some(over(3)), Timestamp::ZERO)?;
    /// // Another route is shorter now. Senders continue to use their label.
    /// assert_eq!(table.set(&"D", Some(over(4))), Some(label));
    /// assert_eq!(table.forward(label), Ok(over(4)));
    /// assert_eq!(table.destination(label), Some(&"D"));
    /// assert_eq!(table.len(), 1);
    /// assert!(table.iter().eq([(&"D", label)]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set(&mut self, destination: &D, hop: Option<Hop>) -> Option<Label> {
        let label = self.label(destination)?;
        self.rows[label.index() as usize] = Row::new(label, hop);
        Some(label)
    }

    /// Frees the row of a destination. Returns its label, which is stale from now on.
    pub fn remove(&mut self, destination: &D, now: Timestamp) -> Option<Label> {
        let label = self.destinations.remove(destination)?;
        let index = label.index() as usize;
        self.rows[index] = Row::EMPTY;
        // At once: the old label is stale from now on.
        let generation = self.owners[index].generation.wrapping_add(1);
        self.owners[index] = Owner { generation, destination: None };
        self.free.push_back(FreeRow { index: label.index(), freed: now });
        Some(label)
    }

    /// Checks the invariants of the table, for tests. O(rows log rows).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::threaded::{Hop, Labels, Table};
    ///
    /// let labels = Labels { capacity: 10, hold_down: Duration::ZERO, start: 0 };
    /// let mut table = Table::new(labels)?;
    /// table.insert("D", Some(Hop::Deliver), flowtable::Timestamp::ZERO)?;
    /// assert_eq!(table.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        for (destination, label) in self.iter() {
            let index = label.index();
            let row = self.rows.get(index as usize);
            let is_owner = self.destination(label) == Some(destination)
                && row.is_some_and(|row| [label.tag(), Row::CLOSED].contains(&row.tag));
            ensure(is_owner, || format!("row {index} does not belong to its destination"))?;
        }
        let mut free: Vec<u32> = self.free.iter().map(|row| row.index).collect();
        free.sort_unstable();
        for index in &free {
            let row = self.rows.get(*index as usize);
            ensure(row.is_some_and(|row| row.tag == Row::CLOSED), || {
                format!("row {index} forwards without an owner")
            })?;
        }
        let owners = (0..).zip(&self.owners);
        let without_owner = owners.filter(|(_, owner)| owner.destination.is_none());
        ensure(
            without_owner.map(|(index, _)| index).eq(free.iter().copied()),
            || "a row has neither an owner nor a place in the free list, or both",
        )?;
        let rows = self.len() + free.len();
        let counts = [rows, self.owners.len()] == [self.rows.len(); 2] && rows <= self.capacity();
        ensure(counts, || "the numbers of rows and owners differ, or exceed the capacity")
    }
}
