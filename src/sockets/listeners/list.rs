//! Sockets that are no connections, and the lists that they are in.

use super::versions;
use crate::hash::Prehashed;
use crate::key::flow::FlowKey;
use crate::raw::slab::OptIndex;
use crate::sockets::{Local, Match, Name, Reuse, Specificity};

/// The packets that a socket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sockets) enum Place {
    Bound(Local),
    /// The end of the sockets before it, which have this connection.
    Queued(FlowKey),
}

/// A place and the hashes of its keys, which an operation computes once.
#[derive(Clone, Copy, Debug)]
pub(in crate::sockets) struct HashedPlace {
    pub(in crate::sockets) place: Place,
    /// The hash of the port, if a socket is bound there.
    pub(super) port: u64,
    /// The hash of the connection, or of the local address if that is a single one.
    pub(super) part: u64,
}

impl HashedPlace {
    /// The key of the port, with its hash.
    pub(super) const fn port_key<'k>(&self, key: &'k u32) -> Prehashed<&'k u32> {
        Prehashed { hash: self.port, key }
    }

    /// The key of the part, with its hash.
    pub(super) const fn part_key<'k, K>(&self, key: &'k K) -> Prehashed<&'k K> {
        Prehashed { hash: self.part, key }
    }
}

#[derive(Clone, Debug)]
pub(in crate::sockets) struct Listener<T> {
    pub(in crate::sockets) place: Place,
    pub(in crate::sockets) reuse: Reuse,
    pub(in crate::sockets) id: u64,
    pub(in crate::sockets) socket: T,
    pub(in crate::sockets) links: Links,
}

/// The neighbours in a list. With both, a socket of a large group is removed without a search.
#[derive(Clone, Copy, Debug)]
pub(in crate::sockets) struct Links {
    pub(super) before: OptIndex,
    pub(super) next: OptIndex,
}

impl Links {
    pub(in crate::sockets) const NONE: Self = Self { before: OptIndex::NONE, next: OptIndex::NONE };
}

impl<T> Listener<T> {
    pub(in crate::sockets) fn name(&self) -> Name {
        match self.place {
            Place::Bound(local) => Name::Bound { local, id: self.id },
            Place::Queued(key) => Name::Queued { key, id: self.id },
        }
    }

    pub(in crate::sockets) fn by(&self) -> Specificity {
        match self.place {
            Place::Bound(local) => local.specificity(),
            Place::Queued(_) => Specificity::Connection,
        }
    }

    pub(in crate::sockets) fn found(&self) -> Match<&T> {
        Match { socket: &self.socket, by: self.by() }
    }

    pub(in crate::sockets) fn local(&self) -> Option<&Local> {
        if let Place::Bound(local) = &self.place { Some(local) } else { None }
    }

    /// The version of the address, if it is a single one, as the index of a list of its family.
    pub(super) fn version(&self) -> usize {
        self.local().map_or(0, |local| versions(local.scope).start)
    }
}

/// The first and the last socket of a list, or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) first: OptIndex,
    pub(super) last: OptIndex,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: OptIndex::NONE, last: OptIndex::NONE };

    pub(super) fn push_first(&mut self, index: OptIndex) {
        self.first = index;
        if self.last.is_none() {
            self.last = index;
        }
    }

    pub(super) fn push_last(&mut self, index: OptIndex) {
        self.last = index;
        if self.first.is_none() {
            self.first = index;
        }
    }

    /// Removes a socket that had these links.
    pub(super) fn remove(&mut self, index: OptIndex, links: Links) {
        match (self.first == index, self.last == index) {
            (true, true) => *self = Self::EMPTY,
            (true, false) => self.first = links.next,
            (false, true) => self.last = links.before,
            (false, false) => {}
        }
    }
}
