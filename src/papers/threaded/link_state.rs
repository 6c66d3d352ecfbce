//! Link-state routing with labels sent to neighbours.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

use super::error::{InsertError, LabelError, NoLabel, RouterError};
use super::label::{Label, Labels};
use super::table::{Hop, Port, Table};
use super::topology::{RouterId, RouterLink, RouterState, shortest_paths};
use crate::invariant::{InvariantError, ensure};
use crate::timestamp::Timestamp;

/// The least sequence number that a router does not supersede if received for its own state: an
/// unreachable number of changes.
const SEQUENCE_LIMIT: u64 = 1 << 63;

/// A message of a link-state router to a neighbour.
///
/// Paper: Chandranmenon and Varghese, section 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<D> {
    /// The state of any router, which the receiver floods to its other neighbours.
    State(RouterState<D>),
    /// The label of the sender's row for a destination, which is not propagated.
    Label {
        /// The destination.
        destination: D,
        /// The label that packets must carry, [`Label::NONE`] if the row was freed.
        label: Label,
    },
}

/// A link-state router, with a database of the whole area and the labels of its neighbours.
///
/// ```text
///     all routers                       neighbours              table
///     R: links, destinations ┐
///     A: links, destinations ┼─▸ Dijkstra ─▸ D: over port 2 ─┐
///     B: links, destinations ┘                               ├─▸ D's row: port 2, label j
///                                       port 2: D ─▸ j  ─────┘
/// ```
///
/// Each router originates a state with its link costs and its attached destinations, and all
/// routers propagate it (*flooding*); so all databases are equal, and each router computes the
/// shortest paths by itself. It also sends its neighbours its label for each destination. A row
/// follows from both. Until the neighbour's label arrives, packets are sent to it with
/// [`Label::NONE`] and are looked up.
///
/// Ties are broken deterministically: of equal paths by the lowest port, of equal routers with a
/// destination by the lowest identifier.
///
/// **Messages caused by labels.** One for each destination to each neighbour, when the row is
/// allocated or freed. Changes of paths do not change labels.
///
/// **Assumptions.** Messages over one link arrive in order and are not lost while it is up. Nothing
/// is signed: forged states of other routers are accepted. There is no ageing: a router that left
/// remains in the database, unreachable, until it is [removed](Self::remove_router).
///
/// **Sequence numbers.** A router supersedes a received state of its own by a greater sequence
/// number, but rejects numbers from 2^63: else a forged 2^64 - 2 would force it to 2^64 - 1, the
/// last one. So it has almost 2^63 numbers left. Other routers accept such a forgery until they
/// remove the router.
///
/// | method | cost |
/// |---|---|
/// | [`on_message`](Self::on_message), a state | O(log routers + links of the router) |
/// | [`on_message`](Self::on_message), a label | O(log destinations) |
/// | [`flush`](Self::flush) | the messages, and after a change the paths: |
/// | … paths | O(links log links + destinations log destinations) |
/// | [`cost`](Self::cost), [`state`](Self::state) | O(log destinations), O(log routers) |
/// | [`resynchronise`](Self::resynchronise) | O(log links) |
/// | memory | the database, rows of a [`Table`], and each neighbour's labels |
///
/// Paper: Chandranmenon and Varghese, section 4.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::threaded::{Hop, Labels, LinkState};
///
/// let now = Timestamp::ZERO;
/// let labels = Labels { capacity: 10, hold_down: Duration::ZERO, start: 0 };
/// let (mut near, mut far) = (LinkState::new(1, labels, 10)?, LinkState::new(2, labels, 10)?);
/// near.link_up(7, 2, 5)?;
/// far.link_up(3, 1, 5)?;
/// far.attach("D")?;
///
/// // Exchange messages until both are synchronised.
/// for _ in 0..3 {
///     near.flush(now, |_port, message| far.on_message(3, message).unwrap())?;
///     far.flush(now, |_port, message| near.on_message(7, message).unwrap())?;
/// }
/// assert_eq!(near.cost(&"D"), Some(5));
/// let label = near.table().label(&"D").unwrap();
/// let Ok(Hop::Forward { port: 7, label }) = near.table().forward(label) else { panic!() };
/// assert_eq!(far.table().forward(label), Ok(Hop::Deliver));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinkState<D> {
    table: Table<D>,
    links: BTreeMap<Port, Link<D>>,
    /// The destinations attached to this router.
    attached: BTreeSet<D>,
    /// The states of all routers, including this one. Links are sorted.
    database: BTreeMap<RouterId, RouterState<D>>,
    /// The paths to destinations: one for each row, and those for which no row was available. An
    /// invalid path is removed at once and its row is closed; the row is freed when paths are
    /// computed.
    paths: BTreeMap<D, Path>,
    own: RouterId,
    /// The maximum number of routers in the database.
    routers: usize,
    /// The changes since the last `flush`.
    pending: Pending<D>,
}

#[derive(Clone, Debug)]
struct Link<D> {
    neighbour: RouterId,
    cost: u32,
    /// Whether all states and labels have been sent to the neighbour.
    synchronised: bool,
    /// The labels of the neighbour.
    labels: BTreeMap<D, Label>,
}

/// A shortest path to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    cost: u32,
    /// The router to which the destination is attached.
    router: RouterId,
    /// The port of the first hop, `None` if the destination is attached here.
    port: Option<Port>,
}

#[derive(Clone, Debug)]
struct Pending<D> {
    /// Whether the own state differs from its copy in the database.
    own_state: bool,
    /// Whether the database has changed since the paths were computed.
    paths: bool,
    /// States to be flooded, and the ports on which they were received.
    states: BTreeMap<RouterId, Option<Port>>,
    /// Own labels that changed, with their last advertised values.
    labels: BTreeMap<D, Label>,
}

impl<D: Ord + Clone> LinkState<D> {
    /// Creates a router with the identifier `own` and without neighbours, in an area of at most
    /// `routers` routers.
    ///
    /// # Errors
    ///
    /// If the number of labels is invalid.
    pub fn new(own: RouterId, labels: Labels, routers: usize) -> Result<Self, LabelError> {
        let initial =
            RouterState { router: own, sequence: 0, links: Vec::new(), destinations: Vec::new() };
        Ok(Self {
            table: Table::new(labels)?,
            links: BTreeMap::new(),
            attached: BTreeSet::new(),
            database: BTreeMap::from([(own, initial)]),
            paths: BTreeMap::new(),
            own,
            routers,
            pending: Pending {
                own_state: true,
                paths: false,
                states: BTreeMap::new(),
                labels: BTreeMap::new(),
            },
        })
    }

    /// Returns the forwarding table.
    #[must_use]
    pub const fn table(&self) -> &Table<D> {
        &self.table
    }

    /// Returns the cost of the path to a destination, as of the last [`flush`](Self::flush). `None`
    /// if there is no path, or its first link is down now.
    #[must_use]
    pub fn cost(&self, destination: &D) -> Option<u32> {
        Some(self.paths.get(destination)?.cost)
    }

    /// Returns the state of a router in the database.
    #[must_use]
    pub fn state(&self, router: RouterId) -> Option<&RouterState<D>> {
        self.database.get(&router)
    }

    /// Adds a neighbour at `port` with this link cost, or changes the cost of its link. The next
    /// [`flush`](Self::flush) sends all states and labels to a new neighbour.
    ///
    /// # Errors
    ///
    /// If the port has another neighbour, the cost is 0 or 2^32 - 1, or the number of links is at
    /// the maximum number of routers. Nothing has changed.
    pub fn link_up(
        &mut self,
        port: Port,
        neighbour: RouterId,
        cost: u32,
    ) -> Result<(), RouterError> {
        check_link_cost(cost)?;
        let is_full = self.links.len() >= self.routers;
        match self.links.get_mut(&port) {
            Some(link) if link.neighbour == neighbour => link.cost = cost,
            Some(_) => return Err(RouterError::LinkIsUp),
            None if is_full => return Err(RouterError::TooLong),
            None => {
                let labels = BTreeMap::new();
                self.links.insert(port, Link { neighbour, cost, synchronised: false, labels });
            }
        }
        self.pending.own_state = true;
        Ok(())
    }

    /// Removes the neighbour at `port` and its labels. Rows that lead there are closed until other
    /// paths are computed, even if the port gets another neighbour before.
    ///
    /// # Errors
    ///
    /// If the port has no link.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::threaded::{Labels, LinkState, Message, RouterLink, RouterState};
    ///
    /// let now = Timestamp::ZERO;
    /// let labels = Labels { capacity: 10, hold_down: Duration::ZERO, start: 0 };
    /// let mut router = LinkState::new(1, labels, 10)?;
    /// for (port, neighbour) in [(7, 2), (8, 3)] {
    ///     router.link_up(port, neighbour, 5)?;
    ///     let links = vec![RouterLink { router: 1, cost: 5 }];
    ///     let destinations = vec!["D"];
    ///     let state = RouterState { router: neighbour, sequence: 1, links, destinations };
    ///     router.on_message(port, Message::State(state))?;
    /// }
    /// router.link_up(7, 2, 9)?;
    /// router.flush(now, |_, _| ())?;
    /// assert_eq!(router.cost(&"D"), Some(5)); // over port 8
    /// router.link_down(8)?;
    /// router.flush(now, |_, _| ())?;
    /// assert_eq!(router.cost(&"D"), Some(9));
    /// // Router 3 has left for good.
    /// router.remove_router(3);
    /// assert!(router.state(3).is_none() && router.state(2).is_some());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn link_down(&mut self, port: Port) -> Result<(), RouterError> {
        self.links.remove(&port).ok_or(RouterError::NoLink)?;
        let Self { paths, table, .. } = self;
        // Without a path, a label that arrives does not open the row again.
        paths.retain(|destination, path| {
            let is_valid = path.port != Some(port);
            if !is_valid {
                table.set(destination, None);
            }
            is_valid
        });
        self.pending.own_state = true;
        Ok(())
    }

    /// Requests that the next [`flush`](Self::flush) sends all states and labels to the neighbour
    /// at `port`, and the labels removed since the last one. For a neighbour that lost or rejected
    /// messages.
    ///
    /// # Errors
    ///
    /// If the port has no link.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::threaded::{Labels, LinkState};
    ///
    /// let now = Timestamp::ZERO;
    /// let labels = Labels { capacity: 10, hold_down: Duration::ZERO, start: 0 };
    /// let mut router = LinkState::new(1, labels, 10)?;
    /// router.link_up(7, 2, 5)?;
    /// router.attach("D")?;
    /// let mut sent = vec![];
    /// router.flush(now, |_, message| sent.push(message))?;
    /// router.resynchronise(7)?; // its table was full
    /// let mut again = vec![];
    /// router.flush(now, |_, message| again.push(message))?;
    /// assert!(!sent.is_empty() && sent == again);
    /// router.detach(&"D")?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn resynchronise(&mut self, port: Port) -> Result<(), RouterError> {
        self.links.get_mut(&port).ok_or(RouterError::NoLink)?.synchronised = false;
        Ok(())
    }

    /// Attaches a destination to this router.
    ///
    /// # Errors
    ///
    /// If it is attached already, or the attached destinations would exceed the rows of the table.
    /// Nothing has changed.
    pub fn attach(&mut self, destination: D) -> Result<(), RouterError> {
        if self.attached.contains(&destination) {
            return Err(RouterError::Attached);
        }
        if self.attached.len() >= self.table.capacity() {
            return Err(NoLabel::Full.into());
        }
        self.attached.insert(destination);
        self.pending.own_state = true;
        Ok(())
    }

    /// Detaches a destination from this router. Its row is closed until paths are computed.
    ///
    /// # Errors
    ///
    /// If it is not attached.
    pub fn detach(&mut self, destination: &D) -> Result<(), RouterError> {
        if !self.attached.remove(destination) {
            return Err(RouterError::Attached);
        }
        self.table.set(destination, None);
        self.paths.remove(destination);
        self.pending.own_state = true;
        Ok(())
    }

    /// Removes a router that has left for good from the database. O(log routers).
    pub fn remove_router(&mut self, router: RouterId) {
        if router != self.own && self.database.remove(&router).is_some() {
            self.pending.states.remove(&router);
            self.pending.paths = true;
        }
    }

    /// Processes a message from the neighbour at `port`.
    ///
    /// # Errors
    ///
    /// If the port has no link, or the message is invalid: see [`RouterError`]. Nothing has
    /// changed.
    pub fn on_message(&mut self, port: Port, message: Message<D>) -> Result<(), RouterError> {
        if !self.links.contains_key(&port) {
            return Err(RouterError::NoLink);
        }
        match message {
            Message::State(state) => self.on_state(port, state),
            Message::Label { destination, label } => self.on_label(port, destination, label),
        }
    }

    fn on_state(&mut self, port: Port, mut state: RouterState<D>) -> Result<(), RouterError> {
        if state.sequence == u64::MAX {
            return Err(RouterError::Sequence);
        }
        if state.links.len() > self.routers || state.destinations.len() > self.table.capacity() {
            return Err(RouterError::TooLong);
        }
        state.links.iter().try_for_each(|link| check_link_cost(link.cost))?;
        state.links.sort_unstable();
        let is_full = self.database.len() >= self.routers;
        match self.database.get_mut(&state.router) {
            // A router that restarts receives its old state, and must supersede it.
            Some(own) if state.router == self.own => {
                if state > *own {
                    if state.sequence >= SEQUENCE_LIMIT {
                        return Err(RouterError::Sequence);
                    }
                    own.sequence = state.sequence;
                    self.pending.own_state = true;
                }
                return Ok(());
            }
            Some(known) if *known >= state => return Ok(()),
            None if is_full => return Err(RouterError::TooManyRouters),
            _ => {}
        }
        self.pending.states.insert(state.router, Some(port));
        self.pending.paths = true;
        self.database.insert(state.router, state);
        Ok(())
    }

    fn on_label(&mut self, port: Port, dest: D, label: Label) -> Result<(), RouterError> {
        let link = self.links.get_mut(&port).ok_or(RouterError::NoLink)?;
        let label = label.threaded_or_none();
        let is_full = link.labels.len() >= self.table.capacity();
        if label != Label::NONE && is_full && !link.labels.contains_key(&dest) {
            return Err(NoLabel::Full.into());
        }
        if self.paths.get(&dest).is_some_and(|path| path.port == Some(port)) {
            self.table.set(&dest, Some(Hop::Forward { port, label }));
        }
        match label {
            Label::NONE => link.labels.remove(&dest),
            label => link.labels.insert(dest, label),
        };
        Ok(())
    }

    /// Computes the paths after changes, and sends pending states and labels to the neighbours.
    ///
    /// The caller chooses the frequency of calls: after each message, or some time later, for less
    /// work.
    ///
    /// # Errors
    ///
    /// If no rows were available for some destinations; all others have theirs. The next call
    /// retries.
    pub fn flush(
        &mut self,
        now: Timestamp,
        mut send: impl FnMut(Port, Message<D>),
    ) -> Result<(), NoLabel> {
        if mem::take(&mut self.pending.own_state) {
            self.originate_state();
        }
        let computed = if self.pending.paths { self.compute_rows(now) } else { Ok(()) };
        self.pending.paths = computed.is_err();
        let states = mem::take(&mut self.pending.states);
        let labels = mem::take(&mut self.pending.labels);
        for (&port, link) in &mut self.links {
            if mem::replace(&mut link.synchronised, true) {
                let states = states.iter().filter(|&(_, from)| *from != Some(port));
                let states = states.filter_map(|(router, _)| self.database.get(router));
                states.for_each(|state| send(port, Message::State(state.clone())));
                for (destination, &before) in &labels {
                    let label = self.table.label(destination).unwrap_or_default();
                    if label != before {
                        send(port, Message::Label { destination: destination.clone(), label });
                    }
                }
            } else {
                let states = self.database.values();
                states.for_each(|state| send(port, Message::State(state.clone())));
                // The neighbour may have labels whose rows were freed.
                for destination in labels.keys() {
                    if self.table.label(destination).is_none() {
                        let (destination, label) = (destination.clone(), Label::NONE);
                        send(port, Message::Label { destination, label });
                    }
                }
                for (destination, label) in self.table.iter() {
                    send(port, Message::Label { destination: destination.clone(), label });
                }
            }
        }
        computed
    }

    /// Stores a new own state in the database, to be flooded.
    fn originate_state(&mut self) {
        let links = self.links.values();
        let links = links.map(|link| RouterLink { router: link.neighbour, cost: link.cost });
        let mut links: Vec<RouterLink> = links.collect();
        links.sort_unstable();
        let destinations = self.attached.iter().cloned().collect();
        let before = self.database.get(&self.own).map_or(0, |state| state.sequence);
        let sequence = before.saturating_add(1);
        let state = RouterState { router: self.own, sequence, links, destinations };
        self.database.insert(self.own, state);
        self.pending.states.insert(self.own, None);
        self.pending.paths = true;
    }

    /// Computes the paths and rows from the database and the neighbours' labels.
    fn compute_rows(&mut self, now: Timestamp) -> Result<(), NoLabel> {
        self.paths = self.shortest_paths();
        let rows = self.table.iter().map(|(destination, _)| destination);
        let rows = rows.filter(|&destination| !self.paths.contains_key(destination));
        for destination in rows.cloned().collect::<Vec<D>>() {
            let label = self.table.remove(&destination, now).unwrap_or_default();
            self.pending.labels.entry(destination).or_insert(label);
        }
        let mut computed = Ok(());
        for (destination, &path) in &self.paths {
            let hop = self.hop(destination, path);
            if self.table.set(destination, Some(hop)).is_some() {
                continue;
            }
            match self.table.insert(destination.clone(), Some(hop), now) {
                Ok(_) => {
                    self.pending.labels.entry(destination.clone()).or_insert(Label::NONE);
                }
                Err(InsertError::NoLabel(error)) => computed = Err(error),
                Err(InsertError::InUse) => {}
            }
        }
        computed
    }

    /// Returns the shortest paths to all destinations of all routers.
    fn shortest_paths(&self) -> BTreeMap<D, Path> {
        let links = self.links.iter().map(|(&port, link)| (port, link.neighbour, link.cost));
        let reached = shortest_paths(self.own, links, &self.database);
        let local = Path { cost: 0, router: self.own, port: None };
        let mut paths: BTreeMap<D, Path> =
            self.attached.iter().map(|destination| (destination.clone(), local)).collect();
        for (&router, to) in &reached {
            let path = Path { cost: to.cost, router, port: Some(to.port) };
            for destination in self.database.get(&router).iter().flat_map(|at| &at.destinations) {
                let best = paths.entry(destination.clone()).or_insert(path);
                *best = path.min(*best);
            }
        }
        paths
    }

    /// Returns the hop of a path.
    fn hop(&self, destination: &D, path: Path) -> Hop {
        let Some(port) = path.port else { return Hop::Deliver };
        let labels = self.links.get(&port).map(|link| &link.labels);
        let label = labels.and_then(|labels| labels.get(destination)).copied();
        Hop::Forward { port, label: label.unwrap_or_default() }
    }

    /// Checks the invariants of the router, for tests. Costs as much as [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::threaded::{Labels, LinkState};
    ///
    /// let labels = Labels { capacity: 10, hold_down: Duration::ZERO, start: 0 };
    /// let mut router = LinkState::new(1, labels, 10)?;
    /// router.attach("D")?;
    /// assert_eq!(router.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.table.validate()?;
        let sorted = self.database.values().all(|state| state.links.is_sorted());
        ensure(sorted, || "the links of a state are not sorted")?;
        if self.pending.own_state || self.pending.paths {
            return Ok(());
        }
        ensure(self.paths == self.shortest_paths(), || "a path is not the shortest one")?;
        ensure(self.paths.len() == self.table.len(), || "the numbers of paths and rows differ")?;
        self.paths.iter().try_for_each(|(destination, &path)| {
            let hop = Some(self.hop(destination, path));
            ensure(self.table.forward_to(destination) == hop, || "a row differs from its path")
        })
    }
}

/// Checks that a link cost is not zero, which would allow free cycles, nor infinity.
fn check_link_cost(cost: u32) -> Result<(), RouterError> {
    if cost == 0 || cost == u32::MAX { Err(RouterError::LinkCost) } else { Ok(()) }
}
