//! Link states, with indices beside them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

use super::check::Broken;
use super::error::{InsertError, NoLabel, RouterError};
use super::label::Label;
use super::labels::Labels;
use super::router_state::{RouterId, RouterState};
use super::shortest_paths::shortest_paths;
use super::table::{Hop, Port, Table};
use crate::timestamp::Timestamp;

/// What a router does not outbid, if it is said in its name: that many changes nobody lives through.
const OUTBID: u64 = 1 << 63;

/// What a router tells a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<D> {
    /// What some router says about itself: to be told on.
    State(RouterState<D>),
    /// Its own row for a destination, [`Label::NONE`] if it has none any more. For the neighbour only.
    Label {
        /// The destination.
        destination: D,
        /// What packets for it shall carry.
        label: Label,
    },
}

/// A router that knows the whole area, and its neighbours' labels.
///
/// ```text
///     all routers                       neighbours              table
///     R: links, destinations ┐
///     A: links, destinations ┼─▸ Dijkstra ─▸ D: over port 2 ─┐
///     B: links, destinations ┘                               ├─▸ D's row: port 2, label j
///                                       port 2: D ─▸ j  ─────┘
/// ```
///
/// Each router says what its links cost and what is attached to it, and everybody tells that on (*flooding*); so all
/// know the same, and each computes the shortest paths by itself. Besides, it tells its neighbours its label for each
/// destination. A row follows from both. Until a neighbour's label is there, packets go to it with [`Label::NONE`] and
/// are looked up.
///
/// Ties are the same for all who know the same: of equal paths the one over the lowest port, of equal routers that have
/// a destination the one with the lowest number.
///
/// **What labels add to the messages.** One for each destination to each neighbour, when the row is made or freed. What
/// happens to paths does not change labels.
///
/// **What it relies on.** Messages over one link arrive in order and are not lost while it is up. Nothing is signed: a
/// router that lies about others is believed. There is no ageing: a router that left stays in the database, where
/// nothing leads to it, until it is [forgotten](Self::forget).
///
/// **Sequence numbers.** A router outbids what is said in its name, but from 2^63 on it refuses to: else somebody who
/// says 2^64 - 2 would make it say 2^64 - 1, after which it could say nothing more. So it has almost 2^63 numbers left.
/// Others believe such a lie until they are made to forget that router.
///
/// | method | cost |
/// |---|---|
/// | [`hear`](Self::hear) | O(log routers + links of the router), a label O(log destinations) |
/// | [`flush`](Self::flush) | O(links log links + destinations log destinations) after a change, and the messages |
/// | [`cost`](Self::cost), [`state`](Self::state) | O(log destinations), O(log routers) |
/// | [`repeat`](Self::repeat), [`has_news`](Self::has_news) | O(log links), O(links) |
/// | memory | the database, rows of a [`Table`], and each neighbour's labels |
///
/// Paper: Chandranmenon and Varghese, on threading indices through link state routing.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::threaded::{Hop, Labels, LinkState};
///
/// let now = Timestamp::ZERO;
/// let router = |id| LinkState::new(id, Labels::new(10, Duration::ZERO, 0).unwrap(), 10);
/// let (mut near, mut far) = (router(1), router(2));
/// near.link_up(7, 2, 5)?;
/// far.link_up(3, 1, 5)?;
/// far.attach("D")?;
///
/// // Until nobody has anything to say.
/// while near.has_news() || far.has_news() {
///     near.flush(now, |_port, message| far.hear(3, message).unwrap())?;
///     far.flush(now, |_port, message| near.hear(7, message).unwrap())?;
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
    /// What is attached here.
    attached: BTreeSet<D>,
    /// What routers say, this one included. Links are in order.
    database: BTreeMap<RouterId, RouterState<D>>,
    /// How destinations are reached: one for each row, if there was room for it. Ways that are no more leave at once,
    /// and their rows, which are closed, when other ways are computed.
    ways: BTreeMap<D, Way>,
    own: RouterId,
    routers: usize,
    /// What is not said yet.
    news: News<D>,
}

#[derive(Clone, Debug)]
struct Link<D> {
    neighbour: RouterId,
    cost: u32,
    /// Whether the neighbour has heard of everything once.
    greeted: bool,
    /// The neighbour's.
    labels: BTreeMap<D, Label>,
}

/// A cheapest path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    cost: u32,
    router: RouterId,
    /// `None` if it is attached here.
    port: Option<Port>,
}

#[derive(Clone, Debug)]
struct News<D> {
    /// The own state is not that of the database.
    own: bool,
    /// The database is not what the ways were computed from.
    paths: bool,
    /// States that came or changed, and where from.
    states: BTreeMap<RouterId, Option<Port>>,
    /// Own labels that changed, as neighbours know them.
    labels: BTreeMap<D, Label>,
}

impl<D: Ord + Clone> LinkState<D> {
    /// The router `own`, without neighbours, in an area of so many routers at most.
    #[must_use]
    pub fn new(own: RouterId, labels: Labels, routers: usize) -> Self {
        let nothing =
            RouterState { router: own, sequence: 0, links: Vec::new(), destinations: Vec::new() };
        Self {
            table: Table::new(labels),
            links: BTreeMap::new(),
            attached: BTreeSet::new(),
            database: BTreeMap::from([(own, nothing)]),
            ways: BTreeMap::new(),
            own,
            routers,
            news: News {
                own: true,
                paths: false,
                states: BTreeMap::new(),
                labels: BTreeMap::new(),
            },
        }
    }

    /// The rows: what packets are forwarded with.
    #[must_use]
    pub const fn table(&self) -> &Table<D> {
        &self.table
    }

    /// What a destination costs as of the last [`flush`](Self::flush), unless there is no way to it, or that was over
    /// a link that is down since.
    #[must_use]
    pub fn cost(&self, destination: &D) -> Option<u32> {
        Some(self.ways.get(destination)?.cost)
    }

    /// What a router says about itself, as far as is known.
    #[must_use]
    pub fn state(&self, router: RouterId) -> Option<&RouterState<D>> {
        self.database.get(&router)
    }

    /// Whether there is something to compute, or to tell neighbours.
    #[must_use]
    pub fn has_news(&self) -> bool {
        let News { own, paths, states, labels } = &self.news;
        *own || *paths
            || !(states.is_empty() && labels.is_empty())
            || self.links.values().any(|link| !link.greeted)
    }

    /// There is a neighbour at `port`, and it costs so much to send there. It will be told everything.
    ///
    /// # Errors
    ///
    /// If there is one, the cost is 0 or 2^32 - 1, or there are as many links as routers may be. Nothing has changed.
    pub fn link_up(
        &mut self,
        port: Port,
        neighbour: RouterId,
        cost: u32,
    ) -> Result<(), RouterError> {
        check_link_cost(cost)?;
        if self.links.contains_key(&port) {
            return Err(RouterError::LinkIsUp);
        }
        if self.links.len() >= self.routers {
            return Err(RouterError::TooLong);
        }
        let labels = BTreeMap::new();
        self.links.insert(port, Link { neighbour, cost, greeted: false, labels });
        self.news.own = true;
        Ok(())
    }

    /// It costs so much now.
    ///
    /// # Errors
    ///
    /// If there is no such link, or the cost is 0 or 2^32 - 1. Nothing has changed.
    pub fn link_cost(&mut self, port: Port, cost: u32) -> Result<(), RouterError> {
        check_link_cost(cost)?;
        self.links.get_mut(&port).ok_or(RouterError::NoLink)?.cost = cost;
        self.news.own = true;
        Ok(())
    }

    /// There is no neighbour at `port` any more. Its labels are forgotten at once: packets that would go there are not
    /// sent until other paths are computed, though there be another neighbour before.
    ///
    /// # Errors
    ///
    /// If there was none.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::threaded::{Labels, LinkState, Message, RouterState};
    ///
    /// let now = Timestamp::ZERO;
    /// let mut router = LinkState::new(1, Labels::new(10, Duration::ZERO, 0)?, 10);
    /// for (port, neighbour) in [(7, 2), (8, 3)] {
    ///     router.link_up(port, neighbour, 5)?;
    ///     let links = vec![(1, 5)];
    ///     let state = RouterState { router: neighbour, sequence: 1, links, destinations: vec!["D"] };
    ///     router.hear(port, Message::State(state))?;
    /// }
    /// router.link_cost(7, 9)?;
    /// router.flush(now, |_, _| ())?;
    /// assert_eq!(router.cost(&"D"), Some(5)); // over port 8
    /// router.link_down(8)?;
    /// router.flush(now, |_, _| ())?;
    /// assert_eq!(router.cost(&"D"), Some(9));
    /// // Router 3 will not come back.
    /// router.forget(3);
    /// assert!(router.state(3).is_none() && router.state(2).is_some());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn link_down(&mut self, port: Port) -> Result<(), RouterError> {
        self.links.remove(&port).ok_or(RouterError::NoLink)?;
        let Self { ways, table, .. } = self;
        // Without a way no label that comes opens the row again.
        ways.retain(|destination, way| {
            let leads_elsewhere = way.port != Some(port);
            if !leads_elsewhere {
                table.set(destination, None);
            }
            leads_elsewhere
        });
        self.news.own = true;
        Ok(())
    }

    /// The neighbour at `port` has forgotten, or refused, what it was told: it will be told everything again, and which
    /// labels have gone since the last [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// If there is none.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::threaded::{Labels, LinkState};
    ///
    /// let now = Timestamp::ZERO;
    /// let mut router = LinkState::new(1, Labels::new(10, Duration::ZERO, 0)?, 10);
    /// router.link_up(7, 2, 5)?;
    /// router.attach("D")?;
    /// let mut said = vec![];
    /// router.flush(now, |_, message| said.push(message))?;
    /// router.repeat(7)?; // it had no room
    /// let mut again = vec![];
    /// router.flush(now, |_, message| again.push(message))?;
    /// assert!(!said.is_empty() && said == again);
    /// router.detach(&"D")?;
    /// assert!(router.has_news());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn repeat(&mut self, port: Port) -> Result<(), RouterError> {
        self.links.get_mut(&port).ok_or(RouterError::NoLink)?.greeted = false;
        Ok(())
    }

    /// The destination is here.
    ///
    /// # Errors
    ///
    /// If it was, or there are as many as there may be rows. Nothing has changed.
    pub fn attach(&mut self, destination: D) -> Result<(), RouterError> {
        if self.attached.contains(&destination) {
            return Err(RouterError::Attached);
        }
        if self.attached.len() >= self.table.capacity() {
            return Err(NoLabel::Full.into());
        }
        self.attached.insert(destination);
        self.news.own = true;
        Ok(())
    }

    /// The destination is not here any more: packets for it are not delivered, and not sent until paths are computed.
    ///
    /// # Errors
    ///
    /// If it was not.
    pub fn detach(&mut self, destination: &D) -> Result<(), RouterError> {
        if !self.attached.remove(destination) {
            return Err(RouterError::Attached);
        }
        self.table.set(destination, None);
        self.ways.remove(destination);
        self.news.own = true;
        Ok(())
    }

    /// A router has left for good: its place in the database is free. O(log routers).
    pub fn forget(&mut self, router: RouterId) {
        if router != self.own && self.database.remove(&router).is_some() {
            self.news.states.remove(&router);
            self.news.paths = true;
        }
    }

    /// The neighbour at `port` says this.
    ///
    /// # Errors
    ///
    /// If there is no such neighbour, or what it says cannot be: see [`RouterError`]. Nothing has changed.
    pub fn hear(&mut self, port: Port, message: Message<D>) -> Result<(), RouterError> {
        if !self.links.contains_key(&port) {
            return Err(RouterError::NoLink);
        }
        match message {
            Message::State(state) => self.hear_state(port, state),
            Message::Label { destination, label } => self.hear_label(port, destination, label),
        }
    }

    fn hear_state(&mut self, port: Port, mut state: RouterState<D>) -> Result<(), RouterError> {
        if state.sequence == u64::MAX {
            return Err(RouterError::Sequence);
        }
        if state.links.len() > self.routers || state.destinations.len() > self.table.capacity() {
            return Err(RouterError::TooLong);
        }
        state.links.iter().try_for_each(|&(_, cost)| check_link_cost(cost))?;
        state.links.sort_unstable();
        let room = self.database.len() < self.routers;
        match self.database.get_mut(&state.router) {
            // A router that restarts hears what it said in its former life, and must outbid that.
            Some(own) if state.router == self.own => {
                if state > *own {
                    if state.sequence >= OUTBID {
                        return Err(RouterError::Sequence);
                    }
                    own.sequence = state.sequence;
                    self.news.own = true;
                }
                return Ok(());
            }
            Some(known) if *known >= state => return Ok(()),
            None if !room => return Err(RouterError::TooManyRouters),
            _ => {}
        }
        self.news.states.insert(state.router, Some(port));
        self.news.paths = true;
        self.database.insert(state.router, state);
        Ok(())
    }

    fn hear_label(&mut self, port: Port, of: D, label: Label) -> Result<(), RouterError> {
        let link = self.links.get_mut(&port).ok_or(RouterError::NoLink)?;
        let (label, capacity) = (label.threaded_or_none(), self.table.capacity());
        if label != Label::NONE && link.labels.len() >= capacity && !link.labels.contains_key(&of) {
            return Err(NoLabel::Full.into());
        }
        if self.ways.get(&of).is_some_and(|way| way.port == Some(port)) {
            self.table.set(&of, Some(Hop::Forward { port, label }));
        }
        match label {
            Label::NONE => link.labels.remove(&of),
            label => link.labels.insert(of, label),
        };
        Ok(())
    }

    /// Computes what changed, and tells neighbours what they have not heard.
    ///
    /// How often this is called is the caller's choice: after each message, or some time later, for less work.
    ///
    /// # Errors
    ///
    /// If there are no rows for some destinations; all others have theirs. They are tried again the next time.
    pub fn flush(
        &mut self,
        now: Timestamp,
        mut send: impl FnMut(Port, Message<D>),
    ) -> Result<(), NoLabel> {
        if mem::take(&mut self.news.own) {
            self.say();
        }
        let computed = if self.news.paths { self.compute(now) } else { Ok(()) };
        self.news.paths = computed.is_err();
        let states = mem::take(&mut self.news.states);
        let labels = mem::take(&mut self.news.labels);
        for (&port, link) in &mut self.links {
            if mem::replace(&mut link.greeted, true) {
                let to_tell = states.iter().filter(|&(_, from)| *from != Some(port));
                let states = to_tell.filter_map(|(router, _)| self.database.get(router));
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
                // Who asked for this has heard of labels that are gone now.
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

    /// Puts the own state into the database, to be told.
    fn say(&mut self) {
        let links = self.links.values().map(|link| (link.neighbour, link.cost));
        let mut links: Vec<(RouterId, u32)> = links.collect();
        links.sort_unstable();
        let destinations = self.attached.iter().cloned().collect();
        let before = self.database.get(&self.own).map_or(0, |state| state.sequence);
        let sequence = before.saturating_add(1);
        let state = RouterState { router: self.own, sequence, links, destinations };
        self.database.insert(self.own, state);
        self.news.states.insert(self.own, None);
        self.news.paths = true;
    }

    /// Makes the rows follow from the database and the neighbours' labels.
    fn compute(&mut self, now: Timestamp) -> Result<(), NoLabel> {
        self.ways = self.cheapest();
        let gone: Vec<D> = self.table.iter().map(|(destination, _)| destination.clone()).collect();
        for destination in gone.iter().filter(|&destination| !self.ways.contains_key(destination)) {
            let label = self.table.remove(destination, now).unwrap_or_default();
            self.news.labels.entry(destination.clone()).or_insert(label);
        }
        let mut computed = Ok(());
        for (destination, &way) in &self.ways {
            let hop = self.hop(destination, way);
            if self.table.set(destination, Some(hop)).is_some() {
                continue;
            }
            match self.table.insert(destination.clone(), Some(hop), now) {
                Ok(_) => {
                    self.news.labels.entry(destination.clone()).or_insert(Label::NONE);
                }
                Err(InsertError::NoLabel(why)) => computed = Err(why),
                Err(InsertError::InUse) => {}
            }
        }
        computed
    }

    /// The ways to all destinations of all routers.
    fn cheapest(&self) -> BTreeMap<D, Way> {
        let links = self.links.iter().map(|(&port, link)| (port, link.neighbour, link.cost));
        let reached = shortest_paths(self.own, links, &self.database);
        let here = Way { cost: 0, router: self.own, port: None };
        let mut ways: BTreeMap<D, Way> =
            self.attached.iter().map(|destination| (destination.clone(), here)).collect();
        for (&router, to) in &reached {
            let way = Way { cost: to.cost, router, port: Some(to.port) };
            for destination in self.database.get(&router).iter().flat_map(|at| &at.destinations) {
                let best = ways.entry(destination.clone()).or_insert(way);
                *best = way.min(*best);
            }
        }
        ways
    }

    /// What a way means for packets.
    fn hop(&self, destination: &D, way: Way) -> Hop {
        let Some(port) = way.port else { return Hop::Deliver };
        let labels = self.links.get(&port).map(|link| &link.labels);
        let label = labels.and_then(|labels| labels.get(destination)).copied();
        Hop::Forward { port, label: label.unwrap_or_default() }
    }

    /// Checks every invariant, for tests. O(all of [`flush`](Self::flush)).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::threaded::{Labels, LinkState};
    ///
    /// let mut router = LinkState::new(1, Labels::new(10, Duration::ZERO, 0)?, 10);
    /// router.attach("D")?;
    /// assert_eq!(router.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        self.table.validate()?;
        let sorted = self.database.values().all(|state| state.links.is_sorted());
        let follows = self.news.own
            || self.news.paths
            || self.ways == self.cheapest()
                && self.ways.len() == self.table.len()
                && self.ways.iter().all(|(destination, &way)| {
                    self.table.forward_to(destination) == Some(self.hop(destination, way))
                });
        if sorted && follows { Ok(()) } else { Err(Broken::Route) }
    }
}

/// A link costs something, or packets could circle for free.
fn check_link_cost(cost: u32) -> Result<(), RouterError> {
    if cost == 0 || cost == u32::MAX { Err(RouterError::LinkCost) } else { Ok(()) }
}
