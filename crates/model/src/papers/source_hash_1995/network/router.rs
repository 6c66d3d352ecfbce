//! A router of either kind, behind the same methods.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::threaded::{
    Advert, Broken, DistanceVector, Label, Labels, LinkState, Message, Port, Table,
};

/// Destinations are numbers.
pub type Destination = u32;

/// What cannot be reached by distance vectors.
pub const INFINITY: u32 = 256;

/// Rows and routers that there can be.
const MANY: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    DistanceVector,
    LinkState,
}

/// What one router tells another.
#[derive(Clone, Debug)]
pub enum Note {
    Vector(Advert<Destination>),
    State(Message<Destination>),
}

impl Note {
    /// The same without labels: what there would be to tell if indices were not threaded.
    pub fn without_labels(self) -> Option<Self> {
        match self {
            Self::Vector(advert) => Some(Self::Vector(Advert { label: Label::NONE, ..advert })),
            Self::State(Message::Label { .. }) => None,
            state => Some(state),
        }
    }
}

#[derive(Debug)]
pub enum Router {
    Vector(DistanceVector<Destination>),
    State(LinkState<Destination>),
}

impl Router {
    pub fn new(protocol: Protocol, id: usize, hold_down: Duration, start: u8) -> Self {
        let labels = Labels::new(MANY, hold_down, start).unwrap();
        match protocol {
            Protocol::DistanceVector => {
                Self::Vector(DistanceVector::new(labels, INFINITY).unwrap())
            }
            Protocol::LinkState => Self::State(LinkState::new(id as u32, labels, MANY as usize)),
        }
    }

    pub fn table(&self) -> &Table<Destination> {
        match self {
            Self::Vector(router) => router.table(),
            Self::State(router) => router.table(),
        }
    }

    pub fn cost(&self, destination: Destination) -> Option<u32> {
        match self {
            Self::Vector(router) => router.cost(&destination),
            Self::State(router) => router.cost(&destination),
        }
    }

    pub fn link_up(&mut self, port: Port, neighbour: usize, cost: u32) {
        match self {
            Self::Vector(router) => router.link_up(port, cost),
            Self::State(router) => router.link_up(port, neighbour as u32, cost),
        }
        .unwrap();
    }

    pub fn link_cost(&mut self, port: Port, cost: u32) {
        match self {
            Self::Vector(router) => router.link_cost(port, cost),
            Self::State(router) => router.link_cost(port, cost),
        }
        .unwrap();
    }

    pub fn link_down(&mut self, port: Port, now: Timestamp) {
        match self {
            Self::Vector(router) => router.link_down(port, now),
            Self::State(router) => router.link_down(port),
        }
        .unwrap();
    }

    pub fn repeat(&mut self, port: Port) {
        match self {
            Self::Vector(router) => router.repeat(port),
            Self::State(router) => router.repeat(port),
        }
        .unwrap();
    }

    pub fn attach(&mut self, destination: Destination, now: Timestamp) {
        match self {
            Self::Vector(router) => router.attach(destination, now),
            Self::State(router) => router.attach(destination),
        }
        .unwrap();
    }

    pub fn detach(&mut self, destination: Destination, now: Timestamp) {
        match self {
            Self::Vector(router) => router.detach(&destination, now),
            Self::State(router) => router.detach(&destination),
        }
        .unwrap();
    }

    pub fn hear(&mut self, port: Port, note: Note, now: Timestamp) {
        match (self, note) {
            (Self::Vector(router), Note::Vector(advert)) => router.hear(port, advert, now),
            (Self::State(router), Note::State(message)) => router.hear(port, message),
            _ => unreachable!("all routers of a network are of one kind"),
        }
        .unwrap();
    }

    pub fn flush(&mut self, now: Timestamp) -> Vec<(Port, Note)> {
        let mut told = vec![];
        match self {
            Self::Vector(router) => {
                router.flush(|port, advert| told.push((port, Note::Vector(advert))));
            }
            Self::State(router) => {
                router.flush(now, |port, message| told.push((port, Note::State(message)))).unwrap();
            }
        }
        told
    }

    pub fn validate(&self) -> Result<(), Broken> {
        match self {
            Self::Vector(router) => router.validate(),
            Self::State(router) => router.validate(),
        }
    }
}
