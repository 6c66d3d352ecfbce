//! A router that speaks either protocol, with the same methods for both.

use core::time::Duration;

use flowtable::Timestamp;
use flowtable::invariant::InvariantError;
use flowtable::papers::threaded::{
    Advertisement, DistanceVector, Label, Labels, LinkState, Message, Port, Table,
};

/// A destination is a number.
pub type Destination = u32;

/// The cost of an unreachable destination in distance vectors.
pub const INFINITY: u32 = 256;

/// Capacity of a router, in rows and in routers.
const CAPACITY: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    DistanceVector,
    LinkState,
}

/// A routing message of either protocol.
#[derive(Clone, Debug)]
pub enum RoutingMessage {
    Vector(Advertisement<Destination>),
    State(Message<Destination>),
}

impl RoutingMessage {
    /// Returns the message without labels, as it would be without threaded indices.
    pub fn without_labels(self) -> Option<Self> {
        match self {
            Self::Vector(advert) => {
                Some(Self::Vector(Advertisement { label: Label::NONE, ..advert }))
            }
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
        let labels = Labels { capacity: CAPACITY, hold_down, start };
        match protocol {
            Protocol::DistanceVector => {
                Self::Vector(DistanceVector::new(labels, INFINITY).unwrap())
            }
            Protocol::LinkState => {
                Self::State(LinkState::new(id as u32, labels, CAPACITY as usize).unwrap())
            }
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

    pub fn link_down(&mut self, port: Port, now: Timestamp) {
        match self {
            Self::Vector(router) => router.link_down(port, now),
            Self::State(router) => router.link_down(port),
        }
        .unwrap();
    }

    pub fn repeat(&mut self, port: Port) {
        match self {
            Self::Vector(router) => router.resynchronise(port),
            Self::State(router) => router.resynchronise(port),
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

    pub fn receive(&mut self, port: Port, message: RoutingMessage, now: Timestamp) {
        match (self, message) {
            (Self::Vector(router), RoutingMessage::Vector(advert)) => {
                router.on_advertisement(port, advert, now)
            }
            (Self::State(router), RoutingMessage::State(message)) => {
                router.on_message(port, message)
            }
            _ => unreachable!("all routers of a network are of one kind"),
        }
        .unwrap();
    }

    pub fn flush(&mut self, now: Timestamp) -> Vec<(Port, RoutingMessage)> {
        let mut messages = vec![];
        match self {
            Self::Vector(router) => {
                router.flush(|port, advert| messages.push((port, RoutingMessage::Vector(advert))));
            }
            Self::State(router) => {
                router
                    .flush(now, |port, message| {
                        messages.push((port, RoutingMessage::State(message)));
                    })
                    .unwrap();
            }
        }
        messages
    }

    pub fn validate(&self) -> Result<(), InvariantError> {
        match self {
            Self::Vector(router) => router.validate(),
            Self::State(router) => router.validate(),
        }
    }
}
