//! Routes by the peers that announce them, as a route collector has them.
//!
//! ```text
//!     prefix ─► peer 1, path, origin │ peer 2, path, origin │ peer 1, path, withdrawn │ …      log
//! ```
//!
//! A prefix has a route while at least one peer announces it. Its origin is the one that has been
//! announced for the longest time, of those that are still announced; a path without an origin
//! counts only if no other path is left. A session that ends withdraws the routes of its peer.
//!
//! A prefix has the log of its changes, which is folded to the paths that are left before it grows:
//! O(1) amortized for each change, however many paths a prefix has.

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

/// A path to a prefix, of a session with a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Path {
    session: u32,
    path: u32,
}

/// A change of a path.
#[derive(Clone, Copy)]
struct Change {
    path: Path,
    to: State,
}

/// The state of a path after a change.
#[derive(Clone, Copy)]
enum State {
    /// By the autonomous system that announces the prefix; 0, which none has, if it is not known.
    Announced {
        origin: u32,
    },
    Withdrawn,
}

/// The changes of the paths to a prefix, in their order.
#[derive(Default)]
struct Log(Vec<Change>);

impl Log {
    /// The length up to which a log grows without being folded: few prefixes have as many paths.
    const SHORT: usize = 64;

    fn push(&mut self, change: Change, ended: &HashSet<u32>) {
        let Self(changes) = self;
        if changes.len() == changes.capacity() && changes.len() >= Self::SHORT {
            *changes = folded(changes, ended);
            // Half of the space at least is free after a fold.
            changes.reserve(changes.len().max(Self::SHORT / 2));
        }
        changes.push(change);
    }
}

/// Returns the announcements of the paths that are left after these changes, in the order in which
/// the paths were first announced.
fn folded(changes: &[Change], ended: &HashSet<u32>) -> Vec<Change> {
    let mut left: Vec<Change> = Vec::new();
    let mut places: HashMap<Path, usize> = HashMap::new();
    for &Change { path, to } in changes {
        match (places.get(&path), to) {
            (Some(&at), _) => {
                left[at].to = to;
                if matches!(to, State::Withdrawn) {
                    places.remove(&path);
                }
            }
            (None, State::Announced { .. }) => {
                places.insert(path, left.len());
                left.push(Change { path, to });
            }
            (None, State::Withdrawn) => {}
        }
    }
    left.retain(|change| {
        matches!(change.to, State::Announced { .. }) && !ended.contains(&change.path.session)
    });
    left
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
    routes: HashMap<Route, Log>,
}

impl Rib {
    /// Adds a path of a peer, or replaces its origin.
    pub(super) fn announce(&mut self, route: Route, by: Announcement, origin: Option<u32>) {
        let path = Path { session: self.session(by.peer), path: by.path };
        let to = State::Announced { origin: origin.unwrap_or(0) };
        let log = self.routes.entry(route.truncated()).or_default();
        log.push(Change { path, to }, &self.ended);
    }

    /// Removes a path of a peer.
    pub(super) fn withdraw(&mut self, route: Route, by: Announcement) {
        let Some(&session) = self.sessions.get(&by.peer) else { return };
        let Some(log) = self.routes.get_mut(&route.truncated()) else { return };
        let path = Path { session, path: by.path };
        log.push(Change { path, to: State::Withdrawn }, &self.ended);
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
        self.routes.iter().filter_map(|(route, Log(changes))| {
            let origins = folded(changes, &self.ended).into_iter().filter_map(|left| {
                let State::Announced { origin } = left.to else { return None };
                Some(origin)
            });
            let mut origins = origins.peekable();
            origins.peek()?;
            Some((*route, origins.find(|origin| *origin != 0)))
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
