//! The rows of a router: what to do with a packet that carries a label.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::check::Broken;
use super::error::{InsertError, NoLabel, Stale};
use super::label::Label;
use super::labels::Labels;
use crate::timestamp::Timestamp;

/// A neighbour, as the router counts them: a link between two, or on a shared medium one of those who listen there.
pub type Port = u16;

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Write the label into it, and send it.
    Forward {
        /// Where it goes out.
        port: Port,
        /// What the next router shall find in it. [`Label::NONE`] if that has not said its label.
        label: Label,
    },
    /// It is there.
    Deliver,
}

/// The part of a row that forwarding reads: eight bytes, so eight rows are a cache line.
///
/// Never misaligned, so never in two lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct Row {
    /// The label at the next router, or [`Row::DELIVER`].
    next: u32,
    port: Port,
    /// The tag of the row's own label if packets can go on from here, or [`Row::CLOSED`].
    tag: u16,
}

const _: () = assert!(size_of::<Row>() == 8);

impl Row {
    /// No tag: those have nine bits.
    const CLOSED: u16 = u16::MAX;

    /// No threaded label, and not none: so it is free to mean that the packet is there.
    const DELIVER: u32 = 1;

    const EMPTY: Self = Self { next: 0, port: 0, tag: Self::CLOSED };

    /// The row of `own` that does this.
    const fn new(own: Label, hop: Option<Hop>) -> Self {
        let tag = own.tag();
        match hop {
            None => Self::EMPTY,
            Some(Hop::Deliver) => Self { next: Self::DELIVER, port: 0, tag },
            Some(Hop::Forward { port, label }) => {
                Self { next: label.threaded_or_none().get(), port, tag }
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

/// A row for each destination, found by its label: the table that packets are forwarded with.
///
/// ```text
///     packet's label │1│ 9 │ 2 │              rows               owners
///                       │    │         0   │ 8│ port 1 │ … │    A, …
///                       │    │         1   │ closed         │    ─
///                       │    └───────▸ 2   │ 9│ port 3 │ 7:41 │ D         D ─▸ row 2
///                       └─ the same? ───────┘
/// ```
///
/// A packet that comes with a label meets one row of eight bytes. Nine bits are compared, no destination is. What rows
/// are about is kept elsewhere, and read by those who have no label.
///
/// **Instructions.** A loop that reads the labels of packets, forwards them, writes the next labels back and counts the
/// packets of each port took 20 for a packet (x86-64, rustc 1.95, counted by callgrind). 5 are the loop and the count.
/// Of the 15 others 6 take the label out, read the row and write the next label, which are the paper's; 3 compare the
/// tag, 2 the number of rows, 2 ask whether the packet is there, and 2 get ready to say that it is, or is lost. Where
/// [`forward`](Self::forward) is not inlined, and the hop is handed over in a register, it was up to 37; a hit in a
/// [`SourceHashCache`](crate::cache::SourceHashCache) was 27 to 34. So the paper's order, 8 before 20, holds in time,
/// which the benchmarks measure, as one line of memory is read and nothing is written; in instructions it is not to be
/// relied on.
///
/// Invariants: a row forwards packets for its owner only; a row without an owner or a way to it is closed.
///
/// | method | cost |
/// |---|---|
/// | [`forward`](Self::forward) | O(1): one row |
/// | [`forward_to`](Self::forward_to), [`label`](Self::label), [`set`](Self::set) | O(log rows) |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | O(log rows) |
/// | [`destination`](Self::destination), [`len`](Self::len); [`iter`](Self::iter) | O(1); O(rows) |
/// | memory | 8 bytes for a row, 16 in [`Labels`], the destination with it, and once more in a tree with the label |
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::threaded::{Hop, Label, Labels, Stale, Table};
///
/// let now = Timestamp::ZERO;
/// let mut table = Table::new(Labels::new(1000, Duration::ZERO, 0)?);
/// // The next router is behind port 3; its row for D is 41.
/// let onward = Hop::Forward { port: 3, label: Label::new(41, 7).unwrap() };
/// let label = table.insert("D", Some(onward), now)?;
///
/// assert_eq!(table.forward(label), Ok(onward));
/// // Without a label, by the destination.
/// assert_eq!(table.forward(Label::NONE), Err(Stale));
/// assert_eq!(table.forward_to(&"D"), Some(onward));
///
/// // The row becomes another's. Who carries the old label is not led astray.
/// table.remove(&"D", now);
/// let other = table.insert("E", Some(Hop::Deliver), now)?;
/// assert_eq!(other.index(), label.index());
/// assert_eq!(table.forward(label), Err(Stale));
/// assert_eq!(table.forward(other), Ok(Hop::Deliver));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table<D> {
    /// As many as labels were ever given at once. Whatever an index says, there is a row or there is not.
    rows: Vec<Row>,
    /// Whose they are.
    owners: Vec<Option<D>>,
    /// Where they are: the labels that are live.
    destinations: BTreeMap<D, Label>,
    labels: Labels,
}

impl<D> Table<D> {
    /// No rows. Labels that were given before are forgotten.
    #[must_use]
    pub fn new(labels: Labels) -> Self {
        let (rows, owners) = (Vec::new(), Vec::new());
        Self { rows, owners, destinations: BTreeMap::new(), labels: labels.unused() }
    }

    /// What to do with a packet that carries this label: no destination is compared.
    ///
    /// For packets from those who were told their labels. What strangers write into a packet is no label: see
    /// [`Border::forward_from_outside`](super::Border::forward_from_outside).
    ///
    /// # Errors
    ///
    /// If the label is stale, or was never threaded. The packet is to be [looked up](Self::forward_to).
    #[inline]
    pub fn forward(&self, label: Label) -> Result<Hop, Stale> {
        match self.rows.get(label.index() as usize) {
            Some(row) if row.tag == label.tag() => Ok(row.hop()),
            _ => Err(Stale),
        }
    }

    /// Whose row a label is of, unless it is stale: to ask whether tags do their work, not to forward packets.
    #[must_use]
    pub fn destination(&self, label: Label) -> Option<&D> {
        let live = self.labels.is_live(label);
        self.owners.get(label.index() as usize).filter(|_| live)?.as_ref()
    }

    /// All destinations with their labels, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&D, Label)> {
        self.destinations.iter().map(|(destination, &label)| (destination, label))
    }

    /// Number of destinations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty()
    }

    /// Number of destinations that there can be.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.labels.capacity()
    }
}

impl<D: Ord + Clone> Table<D> {
    /// What to do with a packet for this destination, whatever it carries: the full look-up.
    ///
    /// `None` if there is no way to it.
    #[must_use]
    pub fn forward_to(&self, destination: &D) -> Option<Hop> {
        self.forward(self.label(destination)?).ok()
    }

    /// The label that neighbours and hosts shall put into packets for a destination.
    #[must_use]
    pub fn label(&self, destination: &D) -> Option<Label> {
        self.destinations.get(destination).copied()
    }

    /// Gives a destination a row, and its label. `None` if it is known, and there is no way to it.
    ///
    /// # Errors
    ///
    /// If it has one, or there is none to be given. Nothing has changed.
    pub fn insert(
        &mut self,
        destination: D,
        hop: Option<Hop>,
        now: Timestamp,
    ) -> Result<Label, InsertError> {
        if self.destinations.contains_key(&destination) {
            return Err(InsertError::InUse);
        }
        // Before a label is given: a row more is the most that can come.
        self.rows.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        self.owners.try_reserve(1).map_err(|_| NoLabel::NoMemory)?;
        let label = self.labels.give(now)?;
        let place = label.index() as usize;
        if place == self.rows.len() {
            self.rows.push(Row::EMPTY);
            self.owners.push(None);
        }
        self.rows[place] = Row::new(label, hop);
        self.owners[place] = Some(destination.clone());
        self.destinations.insert(destination, label);
        Ok(label)
    }

    /// Changes what is done with packets for a destination. Its label stays. Returns that, if there is such a row.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::threaded::{Hop, Label, Labels, Table};
    ///
    /// let mut table = Table::new(Labels::new(1000, Duration::ZERO, 0)?);
    /// let over = |port| Hop::Forward { port, label: Label::NONE };
    /// let label = table.insert("D", Some(over(3)), Timestamp::ZERO)?;
    /// // Another way is shorter by now. Those who send here go on with the label that they have.
    /// assert_eq!(table.set(&"D", Some(over(4))), Some(label));
    /// assert_eq!(table.forward(label), Ok(over(4)));
    /// assert_eq!((table.destination(label), table.len(), table.capacity()), (Some(&"D"), 1, 1000));
    /// assert!(table.iter().eq([(&"D", label)]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set(&mut self, destination: &D, hop: Option<Hop>) -> Option<Label> {
        let label = self.label(destination)?;
        self.rows[label.index() as usize] = Row::new(label, hop);
        Some(label)
    }

    /// Frees the row of a destination. Its label, which is returned, is stale from now on.
    pub fn remove(&mut self, destination: &D, now: Timestamp) -> Option<Label> {
        let label = self.destinations.remove(destination)?;
        let place = label.index() as usize;
        self.rows[place] = Row::EMPTY;
        self.owners[place] = None;
        let live = self.labels.take_back(label, now);
        debug_assert_eq!(live, Ok(()), "labels of destinations are live");
        Some(label)
    }

    /// Checks every invariant, for tests. O(rows log rows).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::threaded::{Hop, Labels, Table};
    ///
    /// let mut table = Table::new(Labels::new(10, Duration::ZERO, 0)?);
    /// table.insert("D", Some(Hop::Deliver), flowtable::Timestamp::ZERO)?;
    /// assert_eq!(table.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        self.labels.validate()?;
        let owned = self.iter().all(|(destination, label)| {
            let row = self.rows.get(label.index() as usize);
            self.destination(label) == Some(destination)
                && row.is_some_and(|row| [label.tag(), Row::CLOSED].contains(&row.tag))
        });
        let orphan = |(row, owner): (&Row, &Option<D>)| owner.is_none() && row.tag != Row::CLOSED;
        let orphans = self.rows.iter().zip(&self.owners).any(orphan);
        let owners = self.owners.iter().flatten().count();
        let counts =
            [owners, self.labels.len()] == [self.len(); 2] && self.rows.len() == self.owners.len();
        if owned && !orphans && counts { Ok(()) } else { Err(Broken::Rows) }
    }
}
