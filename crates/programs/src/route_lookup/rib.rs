//! Routes by the peers that announce them, as a route collector has them.
//!
//! ```text
//!     prefix ─► peer 1, path, origin │ peer 2, path, origin │ …      in the order of announcement
//! ```
//!
//! A prefix has a route while at least one peer announces it. Its origin is the one that has been
//! announced for the longest time, of those that are still announced; a path without an origin
//! counts only if no other path is left. A session that ends withdraws the routes of its peer.

use core::net::IpAddr;
use std::collections::{HashMap, HashSet};

use flowtable::key::bits::Address;

/// A prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Route {
    pub(super) address: IpAddr,
    pub(super) len: u32,
}

/// A router that announces routes to the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// The number of its autonomous system.
    pub(super) system: u32,
}

/// A path of a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    pub(super) peer: Peer,
    /// The ID of the path (RFC 7911); 0 without one.
    pub(super) path: u32,
}

/// A path to a prefix.
struct Path {
    session: u32,
    path: u32,
    /// The autonomous system that announces the prefix; 0, which none has, if it is not known.
    origin: u32,
}

/// The routes of all peers.
#[derive(Default)]
pub(super) struct Rib {
    /// The peers of a table, by the numbers that its entries have.
    pub(super) index: Vec<Peer>,
    /// The current session of each peer.
    sessions: HashMap<Peer, u32>,
    session_count: u32,
    ended: HashSet<u32>,
    routes: HashMap<Route, Vec<Path>>,
}

impl Rib {
    /// Adds a path of a peer, or replaces its origin.
    pub(super) fn announce(&mut self, route: Route, by: Announcement, origin: Option<u32>) {
        let (session, ended) = (self.session(by.peer), &self.ended);
        let origin = origin.unwrap_or(0);
        let paths = self.routes.entry(route.truncated()).or_default();
        paths.retain(|path| ended.is_empty() || !ended.contains(&path.session));
        match paths.iter_mut().find(|path| path.session == session && path.path == by.path) {
            Some(path) => path.origin = origin,
            None => paths.push(Path { session, path: by.path, origin }),
        }
    }

    /// Removes a path of a peer.
    pub(super) fn withdraw(&mut self, route: Route, by: Announcement) {
        let Some(&session) = self.sessions.get(&by.peer) else { return };
        let Some(paths) = self.routes.get_mut(&route.truncated()) else { return };
        paths.retain(|path| path.session != session || path.path != by.path);
    }

    /// Removes all paths of a peer, when they are next read: the session with it has ended.
    pub(super) fn end_session(&mut self, peer: Peer) {
        self.ended.extend(self.sessions.remove(&peer));
    }

    fn session(&mut self, peer: Peer) -> u32 {
        *self.sessions.entry(peer).or_insert_with(|| {
            self.session_count += 1;
            self.session_count
        })
    }

    /// Returns the routes with their origins.
    pub(super) fn routes(&self) -> impl Iterator<Item = (Route, Option<u32>)> {
        self.routes.iter().filter_map(|(route, paths)| {
            let mut left = paths.iter().filter(|path| !self.ended.contains(&path.session));
            let first = left.next()?;
            let named = core::iter::once(first).chain(left).find(|path| path.origin != 0);
            Some((*route, named.map(|path| path.origin)))
        })
    }
}

impl Route {
    /// Returns the prefix without the bits behind its length.
    fn truncated(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => address.truncated(self.len).into(),
            IpAddr::V6(address) => address.truncated(self.len).into(),
        };
        Self { address, ..self }
    }
}
