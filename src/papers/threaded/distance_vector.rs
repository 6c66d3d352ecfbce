//! Distance-vector routing with labels in advertisements.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use super::error::{InsertError, RouterError};
use super::label::{Label, Labels};
use super::table::{Hop, Port, Table};
use crate::invariant::{InvariantError, ensure};
use crate::timestamp::Timestamp;

/// An advertisement of a destination, sent by a router to a neighbour.
///
/// Paper: Chandranmenon and Varghese, section 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement<D> {
    /// The destination.
    pub destination: D,
    /// The cost from the sender to the destination. Infinity if there is no route.
    pub cost: u32,
    /// The label of the sender's row for the destination, which packets sent to it must carry.
    /// [`Label::NONE`] from a router without threaded indices.
    pub label: Label,
}

/// A distance-vector router: Bellman-Ford, with threaded indices in its advertisements.
///
/// ```text
///                        (D, 5, i)                     D's row at R:   cost 7, port of B, label j
///            ┌── 3 ──  A  ─ ─ ─ ─ ┐
///     R  ────┤                     D                   3 + 5 = 8 over A
///            └── 1 ──  B  ─ ─ ─ ─ ┘                    1 + 6 = 7 over B: less
///                        (D, 6, j)
/// ```
///
/// A neighbour advertises a destination, its cost from there, and the label of its own row. The
/// router chooses the neighbour with the least sum of link and advertised cost, the lowest port
/// among equals, and stores its port and label in a row. It advertises the new cost and the label
/// of that row to its other neighbours.
///
/// **Messages caused by labels.** A router's own label for a destination is constant while the
/// destination is known, whatever its neighbours do. So a changed label concerns the routers that
/// send there, and none beyond: it changes a row and is not propagated. There is one message that
/// plain Bellman-Ford would not send: if a destination is removed and returns at equal cost between
/// two calls of [`flush`](Self::flush), it has another row, and its label is advertised.
///
/// **Failures.** The advertisements of all neighbours are stored, so another route is chosen at
/// once. A router advertises infinity to the neighbour that it sends through (*split horizon with
/// poisoned reverse*, RFC 2453): two synchronised routers do not send packets back and forth. If
/// both choose each other at once, as when a third fails, they do until their advertisements have
/// crossed. Three may do so for longer, and count up to infinity, so that should be no greater than
/// the longest route needs.
///
/// **Assumptions.** Advertisements over one link arrive in order and are not lost while it is up,
/// as over TCP. When a link comes up, both ends are notified, and advertise everything; when it
/// goes down, everything received over it is discarded. A rejected advertisement is not stored:
/// request it again with [`resynchronise`](Self::resynchronise) at the neighbour.
///
/// | method | cost |
/// |---|---|
/// | [`on_advertisement`](Self::on_advertisement) | O(log destinations + neighbours) |
/// | [`attach`](Self::attach), [`detach`](Self::detach) | O(log destinations + neighbours) |
/// | [`resynchronise`](Self::resynchronise) | O(log neighbours) |
/// | [`cost`](Self::cost) | O(log destinations) |
/// | [`link_up`](Self::link_up) | O(destinations (log destinations + neighbours)) |
/// | [`link_down`](Self::link_down) | O(destinations (log destinations + neighbours)) |
/// | memory | rows of a [`Table`], 12 bytes for each advertisement of a neighbour |
///
/// Paper: Chandranmenon and Varghese, section 4 and figure 7.
///
/// # Example
///
/// The example of the paper:
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::papers::threaded::{Advertisement, DistanceVector, Hop, Label, Labels};
///
/// let now = Timestamp::ZERO;
/// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 0 };
/// let mut router = DistanceVector::new(labels, 64)?;
/// let (a, b) = (1, 2);
/// router.link_up(a, 3)?;
/// router.link_up(b, 1)?;
///
/// let (i, j) = (Label::new(17, 0).unwrap(), Label::new(4, 0).unwrap());
/// router.on_advertisement(a, Advertisement { destination: "D", cost: 5, label: i }, now)?;
/// assert_eq!(router.cost(&"D"), Some(8));
/// router.on_advertisement(b, Advertisement { destination: "D", cost: 6, label: j }, now)?;
/// assert_eq!(router.cost(&"D"), Some(7));
///
/// // Packets with the router's label are sent to B, with B's label.
/// let label = router.table().label(&"D").unwrap();
/// assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: b, label: j }));
///
/// // The route is advertised to A. For B, the next hop, its cost is infinity as before.
/// let mut sent = vec![];
/// router.flush(|port, advertisement| sent.push((port, advertisement)));
/// assert_eq!(sent, [(a, Advertisement { destination: "D", cost: 7, label })]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistanceVector<D> {
    table: Table<D>,
    links: BTreeMap<Port, Link>,
    routes: BTreeMap<D, Route>,
    /// Destinations that changed since the last `flush`, with their state as of then. At most the
    /// present rows and the rows at that time.
    pending: BTreeMap<D, Advertised>,
    infinity: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    cost: u32,
    /// Whether all destinations have been advertised to the neighbour.
    synchronised: bool,
}

/// The routes to a destination. One for each row of the table.
#[derive(Clone, Debug, Default)]
struct Route {
    attached: bool,
    /// The neighbours' advertisements, sorted by port. Costs are below infinity. Not empty, unless
    /// the destination is attached.
    candidates: Vec<Candidate>,
    best: Option<BestRoute>,
}

impl Route {
    fn is_used(&self) -> bool {
        self.attached || !self.candidates.is_empty()
    }
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    port: Port,
    cost: u32,
    label: Label,
}

const _: () = assert!(size_of::<Candidate>() == 12);

/// The chosen route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BestRoute {
    cost: u32,
    /// The port of the next hop, `None` if the destination is attached.
    via: Option<Port>,
}

/// The advertised state of a destination: the route, and the label of the own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Advertised {
    best: Option<BestRoute>,
    label: Label,
}

impl Advertised {
    /// Returns the cost and label for the neighbour at `port`: infinity for a route through itself.
    fn for_neighbour(self, port: Port, infinity: u32) -> (u32, Label) {
        match self.best {
            Some(BestRoute { cost, via }) if via != Some(port) => (cost, self.label),
            _ => (infinity, Label::NONE),
        }
    }
}

impl<D: Ord + Clone> DistanceVector<D> {
    /// Creates a router without neighbours. A cost of `infinity` means that there is no route.
    ///
    /// # Errors
    ///
    /// If `infinity` is 0 or 1, so no link cost is possible, or the number of labels is invalid.
    pub fn new(labels: Labels, infinity: u32) -> Result<Self, RouterError> {
        if infinity < 2 {
            return Err(RouterError::Cost);
        }
        let (links, routes, pending) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { table: Table::new(labels)?, links, routes, pending, infinity })
    }

    /// Returns the forwarding table.
    #[must_use]
    pub const fn table(&self) -> &Table<D> {
        &self.table
    }

    /// Returns the cost of the route to a destination, if there is one.
    #[must_use]
    pub fn cost(&self, destination: &D) -> Option<u32> {
        Some(self.routes.get(destination)?.best?.cost)
    }

    /// Adds a neighbour at `port` with this link cost, or changes the cost of its link. The next
    /// [`flush`](Self::flush) advertises all destinations to a new neighbour.
    ///
    /// # Errors
    ///
    /// If the cost is 0 or infinity. Nothing has changed.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::threaded::{Advertisement, DistanceVector, Label, Labels};
    ///
    /// let now = Timestamp::ZERO;
    /// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 0 };
    /// let mut router = DistanceVector::new(labels, 64)?;
    /// for (port, cost) in [(1, 3), (2, 1)] {
    ///     router.link_up(port, cost)?;
    ///     let label = Label::new(port.into(), 0).unwrap();
    ///     let advertisement = Advertisement { destination: "D", cost: 5, label };
    ///     router.on_advertisement(port, advertisement, now)?;
    /// }
    /// assert_eq!(router.cost(&"D"), Some(5 + 1));
    /// router.link_up(2, 10)?;
    /// assert_eq!(router.cost(&"D"), Some(5 + 3));
    /// router.link_down(1, now)?;
    /// assert_eq!(router.cost(&"D"), Some(5 + 10));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn link_up(&mut self, port: Port, cost: u32) -> Result<(), RouterError> {
        if cost == 0 || cost >= self.infinity {
            return Err(RouterError::LinkCost);
        }
        let link = Link { cost, synchronised: false };
        self.links.entry(port).or_insert(link).cost = cost;
        for destination in self.advertised_by(port) {
            self.update_route(&destination);
        }
        Ok(())
    }

    /// Removes the neighbour at `port`, and discards its advertisements.
    ///
    /// # Errors
    ///
    /// If the port has no link.
    pub fn link_down(&mut self, port: Port, now: Timestamp) -> Result<(), RouterError> {
        self.links.remove(&port).ok_or(RouterError::NoLink)?;
        for destination in self.advertised_by(port) {
            self.withdraw(port, &destination, now);
        }
        Ok(())
    }

    /// Requests that the next [`flush`](Self::flush) advertises all destinations to the neighbour
    /// at `port`, and those removed since the last one. For a neighbour that lost or rejected
    /// advertisements.
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
    /// use flowtable::papers::threaded::{DistanceVector, Labels};
    ///
    /// let now = Timestamp::ZERO;
    /// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 0 };
    /// let mut router = DistanceVector::new(labels, 64)?;
    /// router.link_up(1, 3)?;
    /// router.attach("D", now)?;
    /// let mut sent = vec![];
    /// router.flush(|_, advertisement| sent.push(advertisement.cost));
    /// router.resynchronise(1)?; // its table was full
    /// router.flush(|_, advertisement| sent.push(advertisement.cost));
    /// router.detach(&"D", now)?;
    /// router.flush(|_, advertisement| sent.push(advertisement.cost));
    /// assert_eq!(sent, [0, 0, 64]);
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
    /// If it is attached already, or no row is available. Nothing has changed.
    pub fn attach(&mut self, destination: D, now: Timestamp) -> Result<(), RouterError> {
        if self.routes.get(&destination).is_some_and(|route| route.attached) {
            return Err(RouterError::Attached);
        }
        self.route_mut(&destination, now)?.attached = true;
        self.update_route(&destination);
        Ok(())
    }

    /// Detaches a destination from this router.
    ///
    /// # Errors
    ///
    /// If it is not attached.
    pub fn detach(&mut self, destination: &D, now: Timestamp) -> Result<(), RouterError> {
        let route = self.routes.get_mut(destination).filter(|route| route.attached);
        route.ok_or(RouterError::Attached)?.attached = false;
        self.update_route(destination);
        self.remove_if_unused(destination, now);
        Ok(())
    }

    /// Processes an advertisement from the neighbour at `port`.
    ///
    /// # Errors
    ///
    /// If the port has no link, the cost is greater than infinity, or no row is available for the
    /// destination. Nothing has changed.
    pub fn on_advertisement(
        &mut self,
        port: Port,
        advertisement: Advertisement<D>,
        now: Timestamp,
    ) -> Result<(), RouterError> {
        let Advertisement { destination, cost, label } = advertisement;
        if !self.links.contains_key(&port) {
            return Err(RouterError::NoLink);
        }
        if cost > self.infinity {
            return Err(RouterError::Cost);
        }
        if cost == self.infinity {
            self.withdraw(port, &destination, now);
            return Ok(());
        }
        let candidates = &mut self.route_mut(&destination, now)?.candidates;
        let candidate = Candidate { port, cost, label: label.threaded_or_none() };
        match candidates.binary_search_by_key(&port, |candidate| candidate.port) {
            Ok(index) => candidates[index] = candidate,
            Err(index) => candidates.insert(index, candidate),
        }
        self.update_route(&destination);
        Ok(())
    }

    /// Sends the pending advertisements to the neighbours.
    ///
    /// Each neighbour gets at most one advertisement of a destination, however often it changed
    /// since the last call. The caller chooses the frequency of calls: after each advertisement, or
    /// some time later, for fewer messages.
    pub fn flush(&mut self, mut send: impl FnMut(Port, Advertisement<D>)) {
        let infinity = self.infinity;
        let advertisement = |destination: &D, (cost, label)| {
            let destination = destination.clone();
            Advertisement { destination, cost, label }
        };
        for (destination, before) in mem::take(&mut self.pending) {
            let now = self.advertised(&destination);
            for (&port, link) in &self.links {
                let new = now.for_neighbour(port, infinity);
                // The full advertisement below contains the existing routes, but not the removed
                // ones.
                let in_full = !link.synchronised && new.0 < infinity;
                if !in_full && new != before.for_neighbour(port, infinity) {
                    send(port, advertisement(&destination, new));
                }
            }
        }
        let routes = &self.routes;
        for (&port, link) in self.links.iter_mut().filter(|(_, link)| !link.synchronised) {
            for (destination, route) in routes {
                let label = self.table.label(destination).unwrap_or_default();
                let new = Advertised { best: route.best, label }.for_neighbour(port, infinity);
                if new.0 < infinity {
                    send(port, advertisement(destination, new));
                }
            }
            link.synchronised = true;
        }
    }

    /// Checks the invariants of the router, for tests. O(destinations × (log destinations +
    /// neighbours)).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::threaded::{DistanceVector, Labels};
    ///
    /// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 0 };
    /// let mut router = DistanceVector::new(labels, 64)?;
    /// router.attach("D", flowtable::Timestamp::ZERO)?;
    /// assert_eq!(router.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.table.validate()?;
        ensure(self.routes.len() == self.table.len(), || "the numbers of routes and rows differ")?;
        self.routes.iter().try_for_each(|(destination, route)| {
            let candidates = &route.candidates;
            let in_order = candidates.windows(2).all(|pair| pair[0].port < pair[1].port);
            let (best, hop) = self.best_route(route);
            ensure(route.is_used(), || "a route is neither attached nor advertised")?;
            ensure(in_order, || "the advertisements of a route are not sorted by port")?;
            ensure(self.table.label(destination).is_some(), || "a route has no row")?;
            ensure(best == route.best, || "a route is not the best one")?;
            ensure(hop == self.table.forward_to(destination), || "a row differs from its route")
        })
    }

    /// Returns the destinations that the neighbour at `port` advertises.
    fn advertised_by(&self, port: Port) -> Vec<D> {
        let is_by = |route: &Route| route.candidates.iter().any(|candidate| candidate.port == port);
        let routes = self.routes.iter().filter(|(_, route)| is_by(route));
        routes.map(|(destination, _)| destination.clone()).collect()
    }

    /// Returns a mutable reference to the route of a destination, after allocating a row if needed.
    fn route_mut(&mut self, destination: &D, now: Timestamp) -> Result<&mut Route, RouterError> {
        if !self.routes.contains_key(destination) {
            match self.table.insert(destination.clone(), None, now) {
                Ok(_) | Err(InsertError::InUse) => {}
                Err(InsertError::NoLabel(error)) => return Err(error.into()),
            }
        }
        Ok(self.routes.entry(destination.clone()).or_default())
    }

    /// Discards the advertisement of a destination by the neighbour at `port`.
    fn withdraw(&mut self, port: Port, destination: &D, now: Timestamp) {
        let Some(route) = self.routes.get_mut(destination) else { return };
        route.candidates.retain(|candidate| candidate.port != port);
        self.update_route(destination);
        self.remove_if_unused(destination, now);
    }

    /// Chooses the best route, and marks the destination as pending if the route has changed.
    fn update_route(&mut self, destination: &D) {
        let before = self.advertised(destination);
        let Some(route) = self.routes.get(destination) else { return };
        let (best, hop) = self.best_route(route);
        // The label at the next router may change without the route.
        self.table.set(destination, hop);
        if best != before.best {
            self.pending.entry(destination.clone()).or_insert(before);
            if let Some(route) = self.routes.get_mut(destination) {
                route.best = best;
            }
        }
    }

    /// Returns the best route, and its hop.
    fn best_route(&self, route: &Route) -> (Option<BestRoute>, Option<Hop>) {
        if route.attached {
            return (Some(BestRoute { cost: 0, via: None }), Some(Hop::Deliver));
        }
        let routes = route.candidates.iter().filter_map(|candidate| {
            let cost = self.links.get(&candidate.port)?.cost.saturating_add(candidate.cost);
            (cost < self.infinity).then_some((cost, candidate.port, candidate.label))
        });
        match routes.min() {
            None => (None, None),
            Some((cost, port, label)) => {
                (Some(BestRoute { cost, via: Some(port) }), Some(Hop::Forward { port, label }))
            }
        }
    }

    /// Removes a destination that is neither attached nor advertised, and frees its row. If it was
    /// never advertised to neighbours, it is not pending either.
    fn remove_if_unused(&mut self, destination: &D, now: Timestamp) {
        if self.routes.get(destination).is_none_or(Route::is_used) {
            return;
        }
        self.routes.remove(destination);
        self.table.remove(destination, now);
        if self.pending.get(destination).is_some_and(|before| before.best.is_none()) {
            self.pending.remove(destination);
        }
    }

    /// Returns the present state of a destination, as to be advertised.
    fn advertised(&self, destination: &D) -> Advertised {
        let best = self.routes.get(destination).and_then(|route| route.best);
        Advertised { best, label: self.table.label(destination).unwrap_or_default() }
    }
}
