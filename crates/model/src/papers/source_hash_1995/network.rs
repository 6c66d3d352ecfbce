//! A network in which everything happens: links change, go down and come up, routers restart, destinations come and go,
//! and packets are under way all the time.
//!
//! **Time** is simulated; all delays are drawn from a seed. **Links** carry what routers tell each other in order and
//! without loss while they are up. When one goes down, what is sent is lost; each end notices by itself some time
//! later. It comes up at both ends at once, as with a handshake, and starts anew. **Packets** overtake each other, and
//! those under way arrive whatever becomes of the link. **Hosts** ask their router for a label once, and may go on
//! using it long after it is stale. **Routers that restart** have forgotten everything, and do not wait before they
//! give labels.
//!
//! Each packet knows whom it is for, and nobody looks until it is forwarded by a label: then the row must be that
//! destination's. That is the ghost check.

pub mod router;
pub mod shortest_paths;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use flowtable::Timestamp;
use flowtable::threaded::{Hop, Label, Port};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use router::{Destination, INFINITY, Note, Protocol, Router};
use shortest_paths::{Edge, bellman_ford, floyd_warshall};

/// Hops of a packet.
const LIFE: u32 = 64;

/// A packet takes no longer over a link.
const PACKET_DELAY: u64 = 20;

/// The two ends of a link notice within this time that it is down.
const NOTICE: u64 = 30;

/// One of so many changes is followed by a check of all invariants of the router: they are many, and checks long.
const CHECK: u64 = 64;

/// Destinations that there ever are, for each router.
const DESTINATIONS: u32 = 2;

/// What is to be simulated.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub protocol: Protocol,
    /// In units of simulated time.
    pub hold_down: u64,
    /// Whether generations are looked at. If not, labels are taken for those of whoever has the row.
    pub tags: bool,
    /// Whether routers tell labels.
    pub threaded: bool,
    /// Whether no label lives longer than hold-down is about: no router restarts, and hosts ask each time.
    pub orderly: bool,
    pub seed: u64,
}

impl Setup {
    pub fn new(protocol: Protocol, seed: u64) -> Self {
        Self { protocol, hold_down: 0, tags: true, threaded: true, orderly: false, seed }
    }
}

/// Something that happens to the network. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Down(u8),
    Up(u8),
    Cost(u8, u8),
    Restart(u8),
    Attach(u8, u8),
    Detach(u8),
    /// One end of a link is asked by the other to say everything again.
    Repeat(u8, bool),
    /// A host at a router sends to a destination; whether it asks for a label, or has one.
    Packet(u8, u8, bool),
    Wait(u8),
}

impl Event {
    /// Packets and waiting are half of all.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// When counting began.
    since: u64,
    /// What routers told each other.
    pub messages: u64,
    /// When the last of that was heard.
    pub converged: u64,
    /// Packets that hosts sent.
    pub packets: u64,
    pub delivered: u64,
    /// Packets for which there was no way, on which the link was down, or that circled.
    pub lost: u64,
    /// Times that a packet was forwarded or delivered by its label.
    pub by_label: u64,
    /// Times that a destination was looked up in full.
    pub look_ups: u64,
    /// Threaded labels that were stale.
    pub stale: u64,
    /// Those of them whose row would have forwarded the packet for somebody else.
    pub caught: u64,
    /// Packets that were forwarded by another destination's row.
    pub wrong: u64,
}

impl Counts {
    /// The time from then on until all routers had heard everything.
    pub fn took(&self) -> u64 {
        self.converged.saturating_sub(self.since)
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    destination: Destination,
    label: Label,
    life: u32,
}

#[derive(Debug)]
enum Happening {
    Heard { link: usize, end: usize, session: u64, note: Note },
    Arrives { router: usize, packet: Packet },
    Notices { link: usize, end: usize, session: u64 },
    ComesUp { link: usize },
    Flushes { router: usize },
}

#[derive(Debug)]
struct Link {
    ends: [usize; 2],
    /// What the router at each end pays to send to the other.
    costs: [u32; 2],
    carries: bool,
    /// Whether each end believes that it carries.
    believed: [bool; 2],
    /// How often it came up.
    session: u64,
    /// When the last message to each end arrives.
    last: [u64; 2],
}

#[derive(Debug)]
pub struct Network {
    setup: Setup,
    routers: Vec<Router>,
    /// How often each was started.
    starts: Vec<u8>,
    links: Vec<Link>,
    /// Where each destination is.
    owners: BTreeMap<Destination, BTreeSet<usize>>,
    /// What hosts were told.
    remembered: BTreeMap<(usize, Destination), Label>,
    queue: BTreeMap<(u64, u64), Happening>,
    flushing: BTreeSet<usize>,
    now: u64,
    number: u64,
    rng: StdRng,
    pub counts: Counts,
}

impl Network {
    /// So many routers that are connected, with one destination each, and so many links more than that takes.
    pub fn new(setup: Setup, routers: usize, more: usize) -> Self {
        let mut network = Self {
            setup,
            routers: vec![],
            starts: vec![0; routers],
            links: vec![],
            owners: BTreeMap::new(),
            remembered: BTreeMap::new(),
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

    /// 5 to 40 routers; more often few.
    pub fn random(setup: Setup) -> Self {
        let mut rng = StdRng::seed_from_u64(!setup.seed);
        let most = rng.random_range(5..=40);
        let routers = rng.random_range(5..=most);
        Self::new(setup, routers, rng.random_range(0..=routers))
    }

    fn connect(&mut self, one: usize, other: usize) {
        let costs = [self.rng.random_range(1..=10), self.rng.random_range(1..=10)];
        let (ends, believed, last) = ([one, other], [false; 2], [0; 2]);
        self.links.push(Link { ends, costs, carries: false, believed, session: 0, last });
        self.up(self.links.len() - 1);
    }

    /// A router that knows nothing. Generations begin elsewhere each time.
    fn started(&self, router: usize) -> Router {
        let start = self.starts[router].wrapping_mul(37);
        let hold_down = Duration::from_nanos(self.setup.hold_down);
        Router::new(self.setup.protocol, router, hold_down, start)
    }

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
            Event::Packet(router, number, asks) => {
                self.send(usize::from(router) % routers, destination(number), asks);
            }
            Event::Wait(time) => self.run(self.now + u64::from(time)),
        }
    }

    /// Counts from now on.
    pub fn count_anew(&mut self) {
        self.counts = Counts { since: self.now, ..Counts::default() };
    }

    /// Random events, and then silence.
    pub fn live(&mut self, events: usize) {
        for _ in 0..events {
            let event = Event::new(self.rng.random());
            self.apply(event);
        }
        self.settle();
    }

    /// Until nothing happens any more.
    pub fn settle(&mut self) {
        self.run(u64::MAX);
    }

    fn run(&mut self, until: u64) {
        while let Some(next) = self.queue.first_entry().filter(|next| next.key().0 <= until) {
            let ((time, _), happening) = next.remove_entry();
            self.now = time;
            self.happen(happening);
        }
        if until < u64::MAX {
            self.now = until;
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Heard { link, end, session, note } => {
                let Link { ends, believed, session: now, .. } = self.links[link];
                if believed[end] && session == now {
                    self.counts.converged = self.now;
                    self.change(ends[end], |router, now| router.hear(link as Port, note, now));
                }
            }
            Happening::Arrives { router, packet } => self.forward(router, packet),
            Happening::Notices { link, end, session } => {
                let at = &mut self.links[link];
                if at.believed[end] && session == at.session {
                    at.believed[end] = false;
                    let router = at.ends[end];
                    self.change(router, |router, now| router.link_down(link as Port, now));
                }
            }
            Happening::ComesUp { link } => self.up(link),
            Happening::Flushes { router } => {
                self.flushing.remove(&router);
                let now = Timestamp::from_nanos(self.now);
                for (port, note) in self.routers[router].flush(now) {
                    self.tell(router, port, note);
                }
            }
        }
    }

    fn after(&mut self, delay: u64, happening: Happening) {
        self.number += 1;
        self.queue.insert((self.now + delay, self.number), happening);
    }

    /// Something is said to a router. What follows from it, it tells its neighbours a little later.
    fn change(&mut self, router: usize, change: impl FnOnce(&mut Router, Timestamp)) {
        change(&mut self.routers[router], Timestamp::from_nanos(self.now));
        if self.number % CHECK == 0 {
            self.routers[router].validate().unwrap();
        }
        if self.flushing.insert(router) {
            let delay = self.rng.random_range(0..10);
            self.after(delay, Happening::Flushes { router });
        }
    }

    fn tell(&mut self, from: usize, port: Port, note: Note) {
        let note = if self.setup.threaded { Some(note) } else { note.without_labels() };
        let delay = self.rng.random_range(1..10);
        let (link, now) = (usize::from(port), self.now);
        let Link { ends, carries, session, ref mut last, .. } = self.links[link];
        let end = usize::from(ends[0] == from);
        if let Some(note) = note.filter(|_| carries) {
            self.counts.messages += 1;
            last[end] = last[end].max(now + delay);
            let delay = last[end] - now;
            self.after(delay, Happening::Heard { link, end, session, note });
        }
    }

    fn down(&mut self, link: usize) {
        let session = self.links[link].session;
        if core::mem::take(&mut self.links[link].carries) {
            for end in 0..2 {
                let delay = self.rng.random_range(0..NOTICE);
                self.after(delay, Happening::Notices { link, end, session });
            }
        }
    }

    fn up(&mut self, link: usize) {
        let at = &mut self.links[link];
        if at.carries || at.believed != [false; 2] {
            return;
        }
        at.carries = true;
        at.believed = [true; 2];
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
        if self.links[link].believed[end] {
            let router = self.links[link].ends[end];
            self.change(router, |router, _| router.link_cost(link as Port, cost));
        }
    }

    fn repeat(&mut self, link: usize, end: usize) {
        if self.links[link].believed[end] {
            let router = self.links[link].ends[end];
            self.change(router, |router, _| router.repeat(link as Port));
        }
    }

    /// The router forgets everything but what is attached to it. Its links come up again when neighbours have noticed.
    fn restart(&mut self, router: usize) {
        for link in 0..self.links.len() {
            if let Some(end) = self.links[link].ends.iter().position(|&end| end == router) {
                if self.links[link].believed[end] {
                    self.down(link);
                    self.links[link].believed[end] = false;
                    self.after(NOTICE, Happening::ComesUp { link });
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

    /// The destination leaves all routers.
    fn detach(&mut self, destination: Destination) {
        for router in self.owners.remove(&destination).unwrap_or_default() {
            self.change(router, |router, now| router.detach(destination, now));
        }
    }

    fn send(&mut self, router: usize, destination: Destination, asks: bool) {
        let host = (router, destination);
        if asks || self.setup.orderly || !self.remembered.contains_key(&host) {
            let label = self.routers[router].table().label(&destination);
            self.remembered.insert(host, label.unwrap_or_default());
        }
        self.counts.packets += 1;
        let packet = Packet { destination, label: self.remembered[&host], life: LIFE };
        self.forward(router, packet);
    }

    /// The label of whoever has the row that this label says.
    fn of_the_row(&self, router: usize, label: Label) -> Option<(Label, Destination)> {
        let mut rows = self.routers[router].table().iter();
        let (owner, own) = rows.find(|(_, own)| own.index() == label.index())?;
        label.is_threaded().then_some((own, *owner))
    }

    fn forward(&mut self, router: usize, packet: Packet) {
        let Packet { destination, label, life } = packet;
        let row = self.of_the_row(router, label);
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
                let led_astray = |(own, owner)| owner != destination && table.forward(own).is_ok();
                self.counts.caught += u64::from(row.is_some_and(led_astray));
                self.counts.stale += u64::from(label.is_threaded());
                self.counts.look_ups += 1;
                table.forward_to(&destination)
            }
        };
        match hop {
            Some(Hop::Deliver) => {
                assert!(self.owners[&destination].contains(&router), "it is somewhere else");
                self.counts.delivered += 1;
            }
            Some(Hop::Forward { port, label })
                if life > 0 && self.links[usize::from(port)].carries =>
            {
                let router = self.across(router, port);
                let delay = self.rng.random_range(1..=PACKET_DELAY);
                let packet = Packet { label, life: life - 1, ..packet };
                self.after(delay, Happening::Arrives { router, packet });
            }
            _ => self.counts.lost += 1,
        }
    }

    /// The router at the other end.
    fn across(&self, router: usize, port: Port) -> usize {
        let ends = self.links[usize::from(port)].ends;
        ends[usize::from(ends[0] == router)]
    }

    /// What a link costs from this end on.
    fn cost_from(&self, router: usize, port: Port) -> u32 {
        let link = &self.links[usize::from(port)];
        link.costs[usize::from(link.ends[0] != router)]
    }

    /// Once all is silent: whether routers know what everything costs, and packets arrive at that cost by labels only.
    pub fn audit(&self) {
        assert!(self.queue.is_empty(), "it is not silent");
        self.routers.iter().for_each(|router| router.validate().unwrap());
        let edges: Vec<Edge> = self
            .links
            .iter()
            .filter(|link| link.carries)
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

    /// Follows labels from the router on.
    fn audit_path(&self, mut router: usize, destination: Destination, cost: Option<u32>) {
        let Some(cost) = cost else {
            let row = self.routers[router].table().forward_to(&destination);
            assert_eq!(row, None, "{destination} cannot be reached");
            return;
        };
        let (mut paid, mut label) = (0, self.routers[router].table().label(&destination).unwrap());
        for _ in 0..self.routers.len() {
            let table = self.routers[router].table();
            assert_eq!(table.destination(label), Some(&destination));
            match table.forward(label).unwrap() {
                Hop::Deliver => {
                    assert!(self.owners[&destination].contains(&router));
                    assert_eq!(paid, cost, "the path to {destination} costs something else");
                    return;
                }
                Hop::Forward { port, label: next } => {
                    paid += self.cost_from(router, port);
                    label = next;
                    router = self.across(router, port);
                }
            }
        }
        panic!("packets to {destination} circle");
    }
}
