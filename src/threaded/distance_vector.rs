//! Distance vectors that carry indices.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use super::check::Broken;
use super::error::{InsertError, RouterError};
use super::label::Label;
use super::labels::Labels;
use super::table::{Hop, Port, Table};
use crate::timestamp::Timestamp;

/// What a router tells a neighbour about a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advert<D> {
    /// The destination.
    pub destination: D,
    /// What it costs from there on. Infinity if there is no way.
    pub cost: u32,
    /// The row that the router has for it: packets that come its way shall carry this.
    /// [`Label::NONE`] from a router that does not thread.
    pub label: Label,
}

/// A router that knows destinations by what its neighbours say: Bellman-Ford, with indices threaded through it.
///
/// ```text
///                        (D, 5, i)                     D's row at R:   cost 7, port of B, label j
///            ┌── 3 ──  A  ─ ─ ─ ─ ┐
///     R  ────┤                     D                   3 + 5 = 8 over A
///            └── 1 ──  B  ─ ─ ─ ─ ┘                    1 + 6 = 7 over B: less
///                        (D, 6, j)
/// ```
///
/// A neighbour advertises a destination, what it costs from there and the label of its own row for it. The router takes
/// the neighbour with the least cost of link and advert together, the lowest port among equals, and makes a row of
/// it: port and label. It tells its other neighbours the new cost and the label of that row.
///
/// **What labels add to the messages.** A router's own label for a destination stays as long as the destination is
/// known, whatever its neighbours do. So a label that changes is news for those who send there, and for nobody
/// behind them: it changes a row and is not told on. There is one message that plain Bellman-Ford would not send: if a
/// destination is forgotten and comes back at the same cost between two calls of [`flush`](Self::flush), it has
/// another row, and neighbours are told its label.
///
/// **Bad news.** What every neighbour said is kept, so another way is taken at once. A router says infinity to the
/// neighbour that it sends through (*split horizon with poisoned reverse*, RFC 2453): two routers that have heard each
/// other do not send packets back and forth. If both turn to each other at once, as when a third dies, they do until
/// their adverts have crossed. Three may go on for longer, and count up until a cost is infinity, so that should be no
/// greater than the longest way needs.
///
/// **What it relies on.** Adverts over one link arrive in order and are not lost while it is up, as over TCP. When a
/// link comes up, both ends are told, and say everything; when it goes down, everything that was heard over it is
/// forgotten. An advert that was refused is not remembered: the neighbour can be asked to [repeat](Self::repeat).
///
/// | method | cost |
/// |---|---|
/// | [`hear`](Self::hear), [`attach`](Self::attach), [`detach`](Self::detach) | O(log destinations + neighbours) |
/// | [`link_up`](Self::link_up), [`repeat`](Self::repeat) | O(log neighbours) |
/// | [`cost`](Self::cost), [`has_news`](Self::has_news) | O(log destinations), O(neighbours) |
/// | [`link_cost`](Self::link_cost), [`link_down`](Self::link_down) | O(destinations (log destinations + neighbours)) |
/// | memory | rows of a [`Table`], 12 bytes for each neighbour that advertises a destination |
///
/// Paper: Chandranmenon and Varghese, on threading indices through Bellman-Ford.
///
/// # Example
///
/// The paper's:
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
/// use flowtable::threaded::{Advert, DistanceVector, Hop, Label, Labels};
///
/// let now = Timestamp::ZERO;
/// let mut router = DistanceVector::new(Labels::new(1000, Duration::ZERO, 0)?, 64)?;
/// let (a, b) = (1, 2);
/// router.link_up(a, 3)?;
/// router.link_up(b, 1)?;
///
/// let (i, j) = (Label::new(17, 0).unwrap(), Label::new(4, 0).unwrap());
/// router.hear(a, Advert { destination: "D", cost: 5, label: i }, now)?;
/// assert_eq!(router.cost(&"D"), Some(8));
/// router.hear(b, Advert { destination: "D", cost: 6, label: j }, now)?;
/// assert_eq!(router.cost(&"D"), Some(7));
///
/// // Packets that carry the router's label go to B, and carry B's.
/// let label = router.table().label(&"D").unwrap();
/// assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: b, label: j }));
///
/// // A hears of it. B does not, as packets go there: it is told infinity, which it knew.
/// let mut told = vec![];
/// router.flush(|port, advert| told.push((port, advert)));
/// assert_eq!(told, [(a, Advert { destination: "D", cost: 7, label })]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistanceVector<D> {
    table: Table<D>,
    links: BTreeMap<Port, Link>,
    routes: BTreeMap<D, Route>,
    /// Destinations that neighbours may have to hear about, and what they were told the last time. No more than
    /// rows there are, and rows there were then.
    changed: BTreeMap<D, Told>,
    infinity: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    cost: u32,
    /// Whether the neighbour has heard of everything once.
    greeted: bool,
}

/// A destination. There is one for each row of the table.
#[derive(Clone, Debug, Default)]
struct Route {
    attached: bool,
    /// What neighbours say, by port. Costs are below infinity. Not empty, unless it is attached.
    candidates: Vec<Candidate>,
    best: Option<Best>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    port: Port,
    cost: u32,
    label: Label,
}

const _: () = assert!(size_of::<Candidate>() == 12);

/// The way that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Best {
    cost: u32,
    /// `None` if it is attached.
    via: Option<Port>,
}

/// What neighbours are told: the way, and the label of the own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    best: Option<Best>,
    label: Label,
}

impl Told {
    /// The neighbour at `port`, who is not told of ways through itself.
    fn to(self, port: Port, infinity: u32) -> (u32, Label) {
        match self.best {
            Some(Best { cost, via }) if via != Some(port) => (cost, self.label),
            _ => (infinity, Label::NONE),
        }
    }
}

impl<D: Ord + Clone> DistanceVector<D> {
    /// A router without neighbours. What costs `infinity` cannot be reached.
    ///
    /// # Errors
    ///
    /// If infinity is 0 or 1: no link costs less.
    pub fn new(labels: Labels, infinity: u32) -> Result<Self, RouterError> {
        if infinity < 2 {
            return Err(RouterError::Cost);
        }
        let (links, routes, changed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { table: Table::new(labels), links, routes, changed, infinity })
    }

    /// The rows: what packets are forwarded with.
    #[must_use]
    pub const fn table(&self) -> &Table<D> {
        &self.table
    }

    /// What a destination costs, unless there is no way to it.
    #[must_use]
    pub fn cost(&self, destination: &D) -> Option<u32> {
        Some(self.routes.get(destination)?.best?.cost)
    }

    /// Whether neighbours are to be told something: [`flush`](Self::flush) would not be silent, perhaps.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.changed.is_empty() || self.links.values().any(|link| !link.greeted)
    }

    /// There is a neighbour at `port`, and it costs so much to send there. It will be told everything.
    ///
    /// # Errors
    ///
    /// If there is one, or the cost is 0 or infinity. Nothing has changed.
    pub fn link_up(&mut self, port: Port, cost: u32) -> Result<(), RouterError> {
        self.check_link_cost(cost)?;
        if self.links.contains_key(&port) {
            return Err(RouterError::LinkIsUp);
        }
        self.links.insert(port, Link { cost, greeted: false });
        Ok(())
    }

    /// It costs so much now.
    ///
    /// # Errors
    ///
    /// If there is no such link, or the cost is 0 or infinity. Nothing has changed.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::threaded::{Advert, DistanceVector, Label, Labels};
    ///
    /// let now = Timestamp::ZERO;
    /// let mut router = DistanceVector::new(Labels::new(1000, Duration::ZERO, 0)?, 64)?;
    /// for (port, cost) in [(1, 3), (2, 1)] {
    ///     router.link_up(port, cost)?;
    ///     let label = Label::new(port.into(), 0).unwrap();
    ///     router.hear(port, Advert { destination: "D", cost: 5, label }, now)?;
    /// }
    /// assert_eq!(router.cost(&"D"), Some(5 + 1));
    /// router.link_cost(2, 10)?;
    /// assert_eq!(router.cost(&"D"), Some(5 + 3));
    /// router.link_down(1, now)?;
    /// assert_eq!(router.cost(&"D"), Some(5 + 10));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn link_cost(&mut self, port: Port, cost: u32) -> Result<(), RouterError> {
        self.check_link_cost(cost)?;
        self.links.get_mut(&port).ok_or(RouterError::NoLink)?.cost = cost;
        for destination in self.heard_from(port) {
            self.settle(&destination);
        }
        Ok(())
    }

    /// There is no neighbour at `port` any more, and nothing of what it said is true.
    ///
    /// # Errors
    ///
    /// If there was none.
    pub fn link_down(&mut self, port: Port, now: Timestamp) -> Result<(), RouterError> {
        self.links.remove(&port).ok_or(RouterError::NoLink)?;
        for destination in self.heard_from(port) {
            self.withdraw(port, &destination, now);
        }
        Ok(())
    }

    /// The neighbour at `port` has forgotten, or refused, what it was told: it will be told everything again, and what
    /// has gone since the last [`flush`](Self::flush).
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
    /// use flowtable::threaded::{DistanceVector, Labels};
    ///
    /// let now = Timestamp::ZERO;
    /// let mut router = DistanceVector::new(Labels::new(1000, Duration::ZERO, 0)?, 64)?;
    /// router.link_up(1, 3)?;
    /// router.attach("D", now)?;
    /// let mut told = vec![];
    /// router.flush(|_, advert| told.push((advert.destination, advert.cost)));
    /// assert!(!router.has_news());
    /// router.repeat(1)?; // it had no room
    /// router.flush(|_, advert| told.push((advert.destination, advert.cost)));
    /// router.detach(&"D", now)?;
    /// router.flush(|_, advert| told.push((advert.destination, advert.cost)));
    /// assert_eq!(told, [("D", 0), ("D", 0), ("D", 64)]);
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
    /// If it was, or there is no row for it. Nothing has changed.
    pub fn attach(&mut self, destination: D, now: Timestamp) -> Result<(), RouterError> {
        if self.routes.get(&destination).is_some_and(|route| route.attached) {
            return Err(RouterError::Attached);
        }
        self.make_route(&destination, now)?.attached = true;
        self.settle(&destination);
        Ok(())
    }

    /// The destination is not here any more.
    ///
    /// # Errors
    ///
    /// If it was not.
    pub fn detach(&mut self, destination: &D, now: Timestamp) -> Result<(), RouterError> {
        let route = self.routes.get_mut(destination).filter(|route| route.attached);
        route.ok_or(RouterError::Attached)?.attached = false;
        self.settle(destination);
        self.forget_if_unknown(destination, now);
        Ok(())
    }

    /// The neighbour at `port` says this.
    ///
    /// # Errors
    ///
    /// If there is no such neighbour, the cost is greater than infinity, or there is no row for the destination.
    /// Nothing has changed.
    pub fn hear(
        &mut self,
        port: Port,
        advert: Advert<D>,
        now: Timestamp,
    ) -> Result<(), RouterError> {
        let Advert { destination, cost, label } = advert;
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
        let candidates = &mut self.make_route(&destination, now)?.candidates;
        let candidate = Candidate { port, cost, label: label.threaded_or_none() };
        match candidates.binary_search_by_key(&port, |candidate| candidate.port) {
            Ok(place) => candidates[place] = candidate,
            Err(place) => candidates.insert(place, candidate),
        }
        self.settle(&destination);
        Ok(())
    }

    /// Tells neighbours what they have not heard, or heard otherwise.
    ///
    /// Whatever happened since the last time, each hears of a destination once at most. How often this is called
    /// is the caller's choice: after each advert, or some time later, for fewer messages.
    pub fn flush(&mut self, mut send: impl FnMut(Port, Advert<D>)) {
        let infinity = self.infinity;
        let advert = |destination: &D, (cost, label)| {
            let destination = destination.clone();
            Advert { destination, cost, label }
        };
        for (destination, before) in mem::take(&mut self.changed) {
            let now = self.told(&destination);
            for (&port, link) in &self.links {
                let tell = now.to(port, infinity);
                // A greeting says what there is. Who asked for another must hear what there is no more as well.
                let by_greeting = !link.greeted && tell.0 < infinity;
                if !by_greeting && tell != before.to(port, infinity) {
                    send(port, advert(&destination, tell));
                }
            }
        }
        let strangers: Vec<Port> =
            self.links.iter().filter(|(_, link)| !link.greeted).map(|(&port, _)| port).collect();
        for port in strangers {
            for destination in self.routes.keys() {
                let tell = self.told(destination).to(port, infinity);
                if tell.0 < infinity {
                    send(port, advert(destination, tell));
                }
            }
            if let Some(link) = self.links.get_mut(&port) {
                link.greeted = true;
            }
        }
    }

    /// Checks every invariant, for tests. O(destinations × (log destinations + neighbours)).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::threaded::{DistanceVector, Labels};
    ///
    /// let mut router = DistanceVector::new(Labels::new(1000, Duration::ZERO, 0)?, 64)?;
    /// router.attach("D", flowtable::Timestamp::ZERO)?;
    /// assert_eq!(router.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        self.table.validate()?;
        let right = self.routes.iter().all(|(destination, route)| {
            let known = route.attached || !route.candidates.is_empty();
            let in_order = route.candidates.windows(2).all(|pair| pair[0].port < pair[1].port);
            let (best, hop) = self.choose(route);
            let row = self.table.label(destination).is_some();
            known
                && in_order
                && row
                && best == route.best
                && hop == self.table.forward_to(destination)
        });
        if right && self.routes.len() == self.table.len() { Ok(()) } else { Err(Broken::Route) }
    }

    fn check_link_cost(&self, cost: u32) -> Result<(), RouterError> {
        if cost == 0 || cost >= self.infinity { Err(RouterError::LinkCost) } else { Ok(()) }
    }

    /// Destinations that the neighbour at `port` advertises.
    fn heard_from(&self, port: Port) -> Vec<D> {
        let said = |route: &Route| route.candidates.iter().any(|candidate| candidate.port == port);
        let heard = self.routes.iter().filter(|(_, route)| said(route));
        heard.map(|(destination, _)| destination.clone()).collect()
    }

    /// The route to a destination, which gets a row if it has none.
    fn make_route(&mut self, destination: &D, now: Timestamp) -> Result<&mut Route, RouterError> {
        if !self.routes.contains_key(destination) {
            match self.table.insert(destination.clone(), None, now) {
                Ok(_) | Err(InsertError::InUse) => {}
                Err(InsertError::NoLabel(why)) => return Err(why.into()),
            }
        }
        Ok(self.routes.entry(destination.clone()).or_default())
    }

    /// The neighbour at `port` knows no way to the destination.
    fn withdraw(&mut self, port: Port, destination: &D, now: Timestamp) {
        let Some(route) = self.routes.get_mut(destination) else { return };
        route.candidates.retain(|candidate| candidate.port != port);
        self.settle(destination);
        self.forget_if_unknown(destination, now);
    }

    /// Takes the best way, and notes what neighbours were told before if that is another.
    fn settle(&mut self, destination: &D) {
        let before = self.told(destination);
        let Some(route) = self.routes.get(destination) else { return };
        let (best, hop) = self.choose(route);
        // The label at the next router may be another though the cost is not.
        self.table.set(destination, hop);
        if best != before.best {
            self.changed.entry(destination.clone()).or_insert(before);
            if let Some(route) = self.routes.get_mut(destination) {
                route.best = best;
            }
        }
    }

    /// The best way, and what it means for packets.
    fn choose(&self, route: &Route) -> (Option<Best>, Option<Hop>) {
        if route.attached {
            return (Some(Best { cost: 0, via: None }), Some(Hop::Deliver));
        }
        let ways = route.candidates.iter().filter_map(|candidate| {
            let cost = self.links.get(&candidate.port)?.cost.saturating_add(candidate.cost);
            (cost < self.infinity).then_some((cost, candidate.port, candidate.label))
        });
        match ways.min() {
            None => (None, None),
            Some((cost, port, label)) => {
                (Some(Best { cost, via: Some(port) }), Some(Hop::Forward { port, label }))
            }
        }
    }

    /// A destination that nobody knows has no row. Neighbours that were never told of it need not know.
    fn forget_if_unknown(&mut self, destination: &D, now: Timestamp) {
        let known = |route: &Route| route.attached || !route.candidates.is_empty();
        if self.routes.get(destination).is_none_or(known) {
            return;
        }
        self.routes.remove(destination);
        self.table.remove(destination, now);
        if self.changed.get(destination).is_some_and(|told| told.best.is_none()) {
            self.changed.remove(destination);
        }
    }

    /// What neighbours are told about a destination, now.
    fn told(&self, destination: &D) -> Told {
        let best = self.routes.get(destination).and_then(|route| route.best);
        Told { best, label: self.table.label(destination).unwrap_or_default() }
    }
}
