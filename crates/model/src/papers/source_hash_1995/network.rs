//! A simulated network of routers under churn: links fail, recover and change their costs, routers
//! restart, destinations are attached and detached, all while packets are in flight.
//!
//! **Time** is simulated; all delays are drawn from a seed. **Links** deliver routing messages in
//! order and without loss while they are up. When a link goes down, messages are lost, and each end
//! detects the failure independently, some time later. It comes up at both ends at once, as after a
//! handshake, with a new session. **Packets** may be reordered, and packets in flight arrive even
//! if the link goes down. **Hosts** request a label from their router once, and may use it long
//! after it is stale. **Routers that restart** lose all state, and do not wait before they allocate
//! labels.
//!
//! Each packet carries its destination, which is not used while it is forwarded by a label. The row
//! of that label must then belong to that destination: this is the ghost check.

pub mod router;
pub mod shortest_paths;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use flowtable::Timestamp;
use flowtable::papers::threaded::{Hop, Label, Port};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use router::{Destination, INFINITY, Protocol, Router, RoutingMessage};
use shortest_paths::{Edge, bellman_ford, floyd_warshall};

/// Hop limit of a packet.
const HOP_LIMIT: u32 = 64;

/// Maximum delay of a packet on a link.
const MAX_PACKET_DELAY: u64 = 20;

/// Maximum time until an end of a link detects that it is down.
const MAX_DETECTION: u64 = 30;

/// Number of changes per full check of a router's invariants, which is expensive.
const CHECK_INTERVAL: u64 = 64;

/// Destinations per router, attached or not.
const DESTINATIONS: u32 = 2;

/// Parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub protocol: Protocol,
    /// In units of simulated time.
    pub hold_down: u64,
    /// Whether generations are compared. If not, a label is valid whatever the generation of its
    /// row.
    pub tags: bool,
    /// Whether routers advertise labels.
    pub threaded: bool,
    /// Whether no label outlives hold-down: no router restarts, and hosts request a label for each
    /// packet.
    pub orderly: bool,
    pub seed: u64,
}

impl Setup {
    pub fn new(protocol: Protocol, seed: u64) -> Self {
        Self { protocol, hold_down: 0, tags: true, threaded: true, orderly: false, seed }
    }
}

/// An event of the network. Operands are reduced modulo the number of links, routers or
/// destinations.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Down(u8),
    Up(u8),
    Cost(u8, u8),
    Restart(u8),
    Attach(u8, u8),
    Detach(u8),
    /// One end of a link requests all routes again.
    Repeat(u8, bool),
    /// A host at a router sends to a destination, with a new label or with the one it has.
    Packet(u8, u8, bool),
    Wait(u8),
}

impl Event {
    /// Decodes an event. Half of the codes are packets and waits.
    pub fn new([kind, a, b]: [u8; 3]) -> Self {
        match kind % 32 {
            0..=2 => Self::Down(a),
            3..=6 => Self::Up(a),
            7..=8 => Self::Cost(a, b),
            9 => Self::Restart(a),
            10..=13 => Self::Attach(a, b),
            14..=15 => Self::Detach(a),
            16..=26 => Self::Packet(a, b, kind % 4 == 0),
            27 => Self::Repeat(a, b % 2 == 0),
            _ => Self::Wait(a),
        }
    }
}

/// Counts of messages and packets, since the start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// When counting began.
    since: u64,
    /// Routing messages sent.
    pub messages: u64,
    /// When the last routing message arrived.
    pub converged: u64,
    /// Packets that hosts sent.
    pub packets: u64,
    pub delivered: u64,
    /// Packets without a route, on a link that was down, or in a loop.
    pub lost: u64,
    /// Hops forwarded or delivered by label.
    pub by_label: u64,
    /// Full lookups of a destination.
    pub lookups: u64,
    /// Stale threaded labels.
    pub stale: u64,
    /// Stale labels whose row would have forwarded the packet to another destination.
    pub caught: u64,
    /// Packets forwarded by the row of another destination.
    pub wrong: u64,
}

impl Counts {
    /// Returns the time from the start of counting to the last routing message.
    pub fn convergence_time(&self) -> u64 {
        self.converged.saturating_sub(self.since)
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    destination: Destination,
    label: Label,
    hops_left: u32,
}

/// A scheduled event.
#[derive(Debug)]
enum Pending {
    MessageArrives { link: usize, end: usize, session: u64, message: RoutingMessage },
    PacketArrives { router: usize, packet: Packet },
    EndDetectsFailure { link: usize, end: usize, session: u64 },
    LinkRecovers { link: usize },
    RouterFlushes { router: usize },
}

#[derive(Debug)]
struct Link {
    ends: [usize; 2],
    /// The cost of the link for the router at each end.
    costs: [u32; 2],
    is_up: bool,
    /// Whether each end considers the link up.
    considered_up: [bool; 2],
    /// How often the link came up.
    session: u64,
    /// When the last message to each end arrives.
    last: [u64; 2],
}

/// A simulated network.
#[derive(Debug)]
pub struct Network {
    setup: Setup,
    routers: Vec<Router>,
    /// How often each router started.
    starts: Vec<u8>,
    links: Vec<Link>,
    /// The routers of each destination.
    owners: BTreeMap<Destination, BTreeSet<usize>>,
    /// Labels that hosts hold.
    host_labels: BTreeMap<(usize, Destination), Label>,
    queue: BTreeMap<(u64, u64), Pending>,
    flushing: BTreeSet<usize>,
    now: u64,
    number: u64,
    rng: StdRng,
    pub counts: Counts,
}

impl Network {
    /// Creates a connected network with a destination per router, and `more` links beyond a
    /// spanning tree.
    pub fn new(setup: Setup, routers: usize, more: usize) -> Self {
        let mut network = Self {
            setup,
            routers: vec![],
            starts: vec![0; routers],
            links: vec![],
            owners: BTreeMap::new(),
            host_labels: BTreeMap::new(),
            queue: BTreeMap::new(),
            flushing: BTreeSet::new(),
            now: 0,
            number: 0,
            rng: StdRng::seed_from_u64(setup.seed),
            counts: Counts::default(),
        };
        network.routers = (0..routers).map(|router| network.started(router)).collect();
        for router in 1..routers {
            let other = network.rng.random_range(0..router);
            network.connect(router, other);
        }
        for _ in 0..more {
            let router = network.rng.random_range(1..routers);
            let other = network.rng.random_range(0..router);
            network.connect(router, other);
        }
        (0..routers).for_each(|router| network.attach(router, router as Destination));
        network
    }

    /// Creates a network of 5 to 40 routers, with a bias towards few.
    pub fn random(setup: Setup) -> Self {
        let mut rng = StdRng::seed_from_u64(!setup.seed);
        let most = rng.random_range(5..=40);
        let routers = rng.random_range(5..=most);
        Self::new(setup, routers, rng.random_range(0..=routers))
    }

    fn connect(&mut self, one: usize, other: usize) {
        let costs = [self.rng.random_range(1..=10), self.rng.random_range(1..=10)];
        let (ends, considered_up, last) = ([one, other], [false; 2], [0; 2]);
        self.links.push(Link { ends, costs, is_up: false, considered_up, session: 0, last });
        self.up(self.links.len() - 1);
    }

    /// Creates a router without state. Generations start at another value each time.
    fn started(&self, router: usize) -> Router {
        let start = self.starts[router].wrapping_mul(37);
        let hold_down = Duration::from_nanos(self.setup.hold_down);
        Router::new(self.setup.protocol, router, hold_down, start)
    }

    /// Applies an event immediately.
    pub fn apply(&mut self, event: Event) {
        let (links, routers) = (self.links.len(), self.routers.len());
        let destination = |number: u8| u32::from(number) % (routers as u32 * DESTINATIONS);
        match event {
            Event::Down(link) => self.down(usize::from(link) % links),
            Event::Up(link) => self.up(usize::from(link) % links),
            Event::Cost(link, cost) => self.cost(usize::from(link) % links, cost),
            Event::Restart(_) if self.setup.orderly => {}
            Event::Restart(router) => self.restart(usize::from(router) % routers),
            Event::Attach(router, number) => {
                self.attach(usize::from(router) % routers, destination(number));
            }
            Event::Detach(number) => self.detach(destination(number)),
            Event::Repeat(link, first) => {
                self.repeat(usize::from(link) % links, usize::from(first));
            }
            Event::Packet(router, number, is_new_label) => {
                self.send(usize::from(router) % routers, destination(number), is_new_label);
            }
            Event::Wait(time) => self.run(self.now + u64::from(time)),
        }
    }

    /// Restarts counting.
    pub fn reset_counts(&mut self) {
        self.counts = Counts { since: self.now, ..Counts::default() };
    }

    /// Applies random events, then runs until the network is quiet.
    pub fn live(&mut self, events: usize) {
        for _ in 0..events {
            let event = Event::new(self.rng.random());
            self.apply(event);
        }
        self.settle();
    }

    /// Runs until no event is pending.
    pub fn settle(&mut self) {
        self.run(u64::MAX);
    }

    fn run(&mut self, until: u64) {
        while let Some(next) = self.queue.first_entry().filter(|next| next.key().0 <= until) {
            let ((time, _), pending) = next.remove_entry();
            self.now = time;
            self.process(pending);
        }
        if until < u64::MAX {
            self.now = until;
        }
    }

    fn process(&mut self, pending: Pending) {
        match pending {
            Pending::MessageArrives { link, end, session, message } => {
                let Link { ends, considered_up, session: now, .. } = self.links[link];
                if considered_up[end] && session == now {
                    self.counts.converged = self.now;
                    self.change(ends[end], |router, now| {
                        router.receive(link as Port, message, now);
                    });
                }
            }
            Pending::PacketArrives { router, packet } => self.forward(router, packet),
            Pending::EndDetectsFailure { link, end, session } => {
                let at = &mut self.links[link];
                if at.considered_up[end] && session == at.session {
                    at.considered_up[end] = false;
                    let router = at.ends[end];
                    self.change(router, |router, now| router.link_down(link as Port, now));
                }
            }
            Pending::LinkRecovers { link } => self.up(link),
            Pending::RouterFlushes { router } => {
                self.flushing.remove(&router);
                let now = Timestamp::from_nanos(self.now);
                for (port, message) in self.routers[router].flush(now) {
                    self.send_message(router, port, message);
                }
            }
        }
    }

    fn after(&mut self, delay: u64, pending: Pending) {
        self.number += 1;
        self.queue.insert((self.now + delay, self.number), pending);
    }

    /// Changes a router and schedules its advertisements to neighbours.
    fn change(&mut self, router: usize, change: impl FnOnce(&mut Router, Timestamp)) {
        change(&mut self.routers[router], Timestamp::from_nanos(self.now));
        if self.number % CHECK_INTERVAL == 0 {
            self.routers[router].validate().unwrap();
        }
        if self.flushing.insert(router) {
            let delay = self.rng.random_range(0..10);
            self.after(delay, Pending::RouterFlushes { router });
        }
    }

    fn send_message(&mut self, from: usize, port: Port, message: RoutingMessage) {
        let message = if self.setup.threaded { Some(message) } else { message.without_labels() };
        let delay = self.rng.random_range(1..10);
        let (link, now) = (usize::from(port), self.now);
        let Link { ends, is_up, session, ref mut last, .. } = self.links[link];
        let end = usize::from(ends[0] == from);
        if let Some(message) = message.filter(|_| is_up) {
            self.counts.messages += 1;
            last[end] = last[end].max(now + delay);
            let delay = last[end] - now;
            self.after(delay, Pending::MessageArrives { link, end, session, message });
        }
    }

    fn down(&mut self, link: usize) {
        let session = self.links[link].session;
        if core::mem::take(&mut self.links[link].is_up) {
            for end in 0..2 {
                let delay = self.rng.random_range(0..MAX_DETECTION);
                self.after(delay, Pending::EndDetectsFailure { link, end, session });
            }
        }
    }

    fn up(&mut self, link: usize) {
        let at = &mut self.links[link];
        if at.is_up || at.considered_up != [false; 2] {
            return;
        }
        at.is_up = true;
        at.considered_up = [true; 2];
        at.session += 1;
        at.last = [self.now; 2];
        let Link { ends, costs, .. } = *at;
        for end in 0..2 {
            let (neighbour, cost) = (ends[1 - end], costs[end]);
            self.change(ends[end], |router, _| router.link_up(link as Port, neighbour, cost));
        }
    }

    fn cost(&mut self, link: usize, cost: u8) {
        let (end, cost) = (usize::from(cost / 128), 1 + u32::from(cost % 10));
        self.links[link].costs[end] = cost;
        if self.links[link].considered_up[end] {
            let ends = self.links[link].ends;
            let neighbour = ends[1 - end];
            self.change(ends[end], |router, _| router.link_up(link as Port, neighbour, cost));
        }
    }

    fn repeat(&mut self, link: usize, end: usize) {
        if self.links[link].considered_up[end] {
            let router = self.links[link].ends[end];
            self.change(router, |router, _| router.repeat(link as Port));
        }
    }

    /// Restarts a router with only its attached destinations. Its links come up again when the
    /// neighbours have detected the failure.
    fn restart(&mut self, router: usize) {
        for link in 0..self.links.len() {
            if let Some(end) = self.links[link].ends.iter().position(|&end| end == router) {
                if self.links[link].considered_up[end] {
                    self.down(link);
                    self.links[link].considered_up[end] = false;
                    self.after(MAX_DETECTION, Pending::LinkRecovers { link });
                }
            }
        }
        self.starts[router] = self.starts[router].wrapping_add(1);
        self.routers[router] = self.started(router);
        let owned = self.owners.iter().filter(|(_, owners)| owners.contains(&router));
        for destination in owned.map(|(&destination, _)| destination).collect::<Vec<_>>() {
            self.change(router, |router, now| router.attach(destination, now));
        }
    }

    fn attach(&mut self, router: usize, destination: Destination) {
        if self.owners.entry(destination).or_default().insert(router) {
            self.change(router, |router, now| router.attach(destination, now));
        }
    }

    /// Detaches the destination from all routers.
    fn detach(&mut self, destination: Destination) {
        for router in self.owners.remove(&destination).unwrap_or_default() {
            self.change(router, |router, now| router.detach(destination, now));
        }
    }

    fn send(&mut self, router: usize, destination: Destination, is_new_label: bool) {
        let host = (router, destination);
        if is_new_label || self.setup.orderly || !self.host_labels.contains_key(&host) {
            let label = self.routers[router].table().label(&destination);
            self.host_labels.insert(host, label.unwrap_or_default());
        }
        self.counts.packets += 1;
        let packet = Packet { destination, label: self.host_labels[&host], hops_left: HOP_LIMIT };
        self.forward(router, packet);
    }

    /// Returns the current label and the destination of the row that a label refers to.
    fn row_of(&self, router: usize, label: Label) -> Option<(Label, Destination)> {
        let mut rows = self.routers[router].table().iter();
        let (owner, own) = rows.find(|(_, own)| own.index() == label.index())?;
        label.is_threaded().then_some((own, *owner))
    }

    fn forward(&mut self, router: usize, packet: Packet) {
        let Packet { destination, label, hops_left } = packet;
        let row = self.row_of(router, label);
        let label = if self.setup.tags { label } else { row.map_or(label, |(own, _)| own) };
        let table = self.routers[router].table();
        let hop = match table.forward(label) {
            // The ghost check.
            Ok(_) if table.destination(label) != Some(&destination) => {
                self.counts.wrong += 1;
                return;
            }
            Ok(hop) => {
                self.counts.by_label += 1;
                Some(hop)
            }
            Err(_) => {
                let is_misdelivered =
                    |(own, owner)| owner != destination && table.forward(own).is_ok();
                self.counts.caught += u64::from(row.is_some_and(is_misdelivered));
                self.counts.stale += u64::from(label.is_threaded());
                self.counts.lookups += 1;
                table.forward_to(&destination)
            }
        };
        match hop {
            Some(Hop::Deliver) => {
                assert!(self.owners[&destination].contains(&router), "it is somewhere else");
                self.counts.delivered += 1;
            }
            Some(Hop::Forward { port, label })
                if hops_left > 0 && self.links[usize::from(port)].is_up =>
            {
                let router = self.across(router, port);
                let delay = self.rng.random_range(1..=MAX_PACKET_DELAY);
                let packet = Packet { label, hops_left: hops_left - 1, ..packet };
                self.after(delay, Pending::PacketArrives { router, packet });
            }
            _ => self.counts.lost += 1,
        }
    }

    /// Returns the router at the other end of a port.
    fn across(&self, router: usize, port: Port) -> usize {
        let ends = self.links[usize::from(port)].ends;
        ends[usize::from(ends[0] == router)]
    }

    /// Returns the cost of the link at a port of this router.
    fn cost_from(&self, router: usize, port: Port) -> u32 {
        let link = &self.links[usize::from(port)];
        link.costs[usize::from(link.ends[0] != router)]
    }

    /// Checks the quiet network: routers have the costs of shortest paths, and labels alone forward
    /// packets at these costs.
    pub fn audit(&self) {
        assert!(self.queue.is_empty(), "it is not silent");
        self.routers.iter().for_each(|router| router.validate().unwrap());
        let edges: Vec<Edge> = self
            .links
            .iter()
            .filter(|link| link.is_up)
            .flat_map(|&Link { ends: [one, other], costs: [forth, back], .. }| {
                [(one, other, forth), (other, one, back)]
            })
            .collect();
        let each_to_each = floyd_warshall(self.routers.len(), &edges);
        for destination in 0..self.routers.len() as u32 * DESTINATIONS {
            let owners: Vec<usize> =
                self.owners.get(&destination).into_iter().flatten().copied().collect();
            let costs = bellman_ford(self.routers.len(), &edges, &owners);
            for (router, &cost) in costs.iter().enumerate() {
                let floyd = owners.iter().filter_map(|&owner| each_to_each[router][owner]).min();
                assert_eq!(cost, floyd, "the references do not agree");
                let finite =
                    |&cost: &u32| cost < INFINITY || self.setup.protocol == Protocol::LinkState;
                let cost = cost.filter(finite);
                assert_eq!(
                    self.routers[router].cost(destination),
                    cost,
                    "{router} to {destination}: {:?}",
                    self.setup
                );
                self.audit_path(router, destination, cost);
            }
        }
    }

    /// Follows labels from a router to a destination.
    fn audit_path(&self, mut router: usize, destination: Destination, cost: Option<u32>) {
        let Some(cost) = cost else {
            let row = self.routers[router].table().forward_to(&destination);
            assert_eq!(row, None, "{destination} cannot be reached");
            return;
        };
        let (mut total, mut label) = (0, self.routers[router].table().label(&destination).unwrap());
        for _ in 0..self.routers.len() {
            let table = self.routers[router].table();
            assert_eq!(table.destination(label), Some(&destination));
            match table.forward(label).unwrap() {
                Hop::Deliver => {
                    assert!(self.owners[&destination].contains(&router));
                    assert_eq!(total, cost, "the path to {destination} costs something else");
                    return;
                }
                Hop::Forward { port, label: next } => {
                    total += self.cost_from(router, port);
                    label = next;
                    router = self.across(router, port);
                }
            }
        }
        panic!("packets to {destination} circle");
    }
}
