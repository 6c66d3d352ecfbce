//! Labels of multicast groups on a shared medium, allocated by its designated router.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::error::{LabelError, NoLabel, RouterError, Stale};
use super::label::Label;
use super::topology::RouterId;
use crate::invariant::{InvariantError, ensure};

/// The state of a row of a medium, which the designated router broadcasts.
///
/// Paper: Chandranmenon and Varghese, section 4.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding<G> {
    /// The row and its generation. If the row is free, the label that it has next.
    pub label: Label,
    /// The group that has the row. `None` if it is free.
    pub group: Option<G>,
}

/// The labels of multicast groups on a shared medium: the part of one of its routers.
///
/// A packet to one neighbour carries the label of that neighbour's row. A multicast has many
/// receivers, which would need one label each: so the rows of a medium are common to its routers,
/// and one of them, the *designated router*, allocates them for all.
///
/// ```text
///                 bind(G)
///     router 2, designated ──  (row 1, generation 0, G)  ──┬──────────────┬─────────────▸ medium
///     row 0 │ F                                            ▾              ▾
///         1 │ G                                     router 5         router 9
///                                                   row 0 │ F        row 0 │ F
///                                                       1 │ G            1 │ G
/// ```
///
/// A router indexes a list of its own by the common [row](Self::row): the ports to which it sends
/// copies. It forwards a multicast without a search, as any packet with a label.
///
/// **Another designated router.** All routers have all rows and generations. If the designated
/// router is down, [another one](Self::designated) continues, first broadcasts all
/// [bindings](Self::bindings), for routers which missed the last one of its predecessor, and
/// existing labels stay valid.
///
/// **Assumptions.** Broadcasts of a router arrive in order, and each is received by all routers, or
/// by some if their sender goes down. All routers are notified of the same designated router, which
/// has the bindings. A router that comes up is given them first. If all routers of a medium
/// restart, they wait for the maximum life of a label.
///
/// Invariants: a row has at most one group, and a group one row; a label is reused after 256
/// allocations of its row at the earliest.
///
/// | method | cost |
/// |---|---|
/// | [`row`](Self::row) | O(1) |
/// | [`label`](Self::label) | O(log groups) |
/// | [`bind`](Self::bind), [`unbind`](Self::unbind), [`on_binding`](Self::on_binding) | O(rows) |
/// | memory | a group and a generation for each row, the group again in a tree |
///
/// Paper: Chandranmenon and Varghese, section 4.1: the designated router of a medium allocates the
/// indices of multicasts. The generations and the change of the designated router are ours.
///
/// # Example
///
/// ```
/// use flowtable::papers::threaded::{Medium, RouterError};
///
/// // Router 2 is designated.
/// let [mut two, mut one] = [2, 1].map(|own| Medium::new(own, 2, 100).unwrap());
/// let binding = two.bind("G")?;
/// one.on_binding(2, binding.clone())?;
/// // Both find G in row 0.
/// assert_eq!([one.row(binding.label), two.row(binding.label)], [Ok(0), Ok(0)]);
/// assert_eq!(one.bind("H"), Err(RouterError::NotDesignated));
///
/// // Router 2 is down, and router 1 continues with its labels.
/// one.designated = 1;
/// assert_eq!(one.bind("H")?.label.index(), 1);
/// assert_eq!(one.label(&"G"), Some(binding.label));
/// // It broadcasts all rows once, and those that change from then on: the row of G is free.
/// assert_eq!(one.bindings().map(|row| row.group).collect::<Vec<_>>(), [Some("G"), Some("H")]);
/// assert_eq!(one.unbind(&"G")?.map(|row| row.group), Some(None));
/// # Ok::<(), RouterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Medium<G> {
    own: RouterId,
    /// The designated router, which the routing protocol of the medium elects.
    pub designated: RouterId,
    rows: Vec<Row<G>>,
    /// The free rows, the one that was freed first in front.
    free: VecDeque<u32>,
    labels: BTreeMap<G, Label>,
    capacity: u32,
}

#[derive(Clone, Debug)]
struct Row<G> {
    /// The generation of the present or next group.
    generation: u8,
    group: Option<G>,
}

impl<G> Medium<G> {
    /// Creates the part of the router `own`, without groups, on a medium with this designated
    /// router and with `capacity` rows at most. All routers must have the same capacity.
    ///
    /// # Errors
    ///
    /// If `capacity` is zero, or more than [`Label::ROWS`].
    pub fn new(own: RouterId, designated: RouterId, capacity: u32) -> Result<Self, LabelError> {
        let (rows, free, labels) = (Vec::new(), VecDeque::new(), BTreeMap::new());
        match capacity {
            0 => Err(LabelError::NoRows),
            1..=Label::ROWS => Ok(Self { own, designated, rows, free, labels, capacity }),
            _ => Err(LabelError::TooManyRows),
        }
    }

    /// Returns the row of a multicast with this label, by which a router indexes its outputs.
    ///
    /// # Errors
    ///
    /// If the label is stale, or not threaded: look the group up.
    #[inline]
    pub fn row(&self, label: Label) -> Result<usize, Stale> {
        let index = label.index() as usize;
        let is_bound = |row: &&Row<G>| {
            let is_live = label.is_threaded() && row.generation == label.generation();
            is_live && row.group.is_some()
        };
        self.rows.get(index).filter(is_bound).map(|_| index).ok_or(Stale)
    }

    fn check_designated(&self) -> Result<(), RouterError> {
        if self.own == self.designated { Ok(()) } else { Err(RouterError::NotDesignated) }
    }

    /// Returns the label of the row that has been free for the longest time, or of a new row.
    fn free_label(&self) -> Result<Label, NoLabel> {
        let rows = self.rows.len() as u32;
        match self.free.front() {
            Some(&index) => Ok(Label::of(index, self.rows[index as usize].generation)),
            None if rows < self.capacity => Ok(Label::of(rows, 0)),
            None => Err(NoLabel::Full),
        }
    }
}

impl<G: Ord + Clone> Medium<G> {
    /// Returns the label that all senders on the medium write into multicasts to a group.
    #[must_use]
    pub fn label(&self, group: &G) -> Option<Label> {
        self.labels.get(group).copied()
    }

    /// Returns the state of all rows, for a router that comes up, and for all after a change of the
    /// designated router.
    pub fn bindings(&self) -> impl Iterator<Item = Binding<G>> {
        (0..).zip(&self.rows).map(|(index, row)| {
            let label = Label::of(index, row.generation);
            Binding { label, group: row.group.clone() }
        })
    }

    /// Allocates a label for a group that has none. Returns the binding to broadcast.
    ///
    /// # Errors
    ///
    /// If this router is not designated, or no row is free. Nothing has changed.
    pub fn bind(&mut self, group: G) -> Result<Binding<G>, RouterError> {
        self.check_designated()?;
        let label = self.label(&group).map_or_else(|| self.free_label(), Ok)?;
        let binding = Binding { label, group: Some(group) };
        self.apply(binding.clone());
        Ok(binding)
    }

    /// Frees the row of a group. Returns the binding to broadcast, if the group has a row.
    ///
    /// # Errors
    ///
    /// If this router is not designated. Nothing has changed.
    pub fn unbind(&mut self, group: &G) -> Result<Option<Binding<G>>, RouterError> {
        self.check_designated()?;
        let Some(label) = self.label(group) else { return Ok(None) };
        let label = Label::of(label.index(), label.generation().wrapping_add(1));
        let binding = Binding { label, group: None };
        self.apply(binding.clone());
        Ok(Some(binding))
    }

    /// Processes a binding that a router has broadcast.
    ///
    /// # Errors
    ///
    /// If that router is not designated, or the row exceeds the capacity. Nothing has changed.
    pub fn on_binding(&mut self, from: RouterId, binding: Binding<G>) -> Result<(), RouterError> {
        if from != self.designated {
            return Err(RouterError::NotDesignated);
        }
        if binding.label.index() >= self.capacity {
            return Err(NoLabel::Full.into());
        }
        self.apply(binding);
        Ok(())
    }

    fn apply(&mut self, Binding { label, group }: Binding<G>) {
        let index = label.index();
        // Rows before it that were never bound are free.
        for missing in self.rows.len() as u32..=index {
            self.rows.push(Row { generation: 0, group: None });
            self.free.push_back(missing);
        }
        let previous = group.as_ref().and_then(|group| self.labels.remove(group));
        for index in previous.map(Label::index).into_iter().chain([index]) {
            if let Some(group) = self.rows[index as usize].group.take() {
                self.labels.remove(&group);
                self.free.push_back(index);
            }
        }
        self.rows[index as usize].generation = label.generation();
        if let Some(group) = group {
            self.free.retain(|&free| free != index);
            self.labels.insert(group.clone(), label);
            self.rows[index as usize].group = Some(group);
        }
    }

    /// Checks the invariants, for tests. O(rows × log groups).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::threaded::Medium;
    ///
    /// let mut medium = Medium::new(1, 1, 100).unwrap();
    /// medium.bind("G").unwrap();
    /// assert_eq!(medium.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        for Binding { label, group } in self.bindings() {
            let is_free = self.free.iter().filter(|&&row| row == label.index()).count();
            let is_right = match &group {
                Some(group) => is_free == 0 && self.label(group) == Some(label),
                None => is_free == 1,
            };
            ensure(is_right, || "a row is neither free nor the row of its group")?;
        }
        let rows = self.labels.len() + self.free.len();
        ensure(rows == self.rows.len(), || "the numbers of rows, groups and free rows differ")?;
        ensure(self.rows.len() <= self.capacity as usize, || "the rows exceed the capacity")
    }
}
