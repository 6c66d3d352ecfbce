//! The topology of an area: the states of its routers, and the shortest paths between them.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::table::Port;

/// The shortest path to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The cost, at least 1.
    pub(super) cost: u32,
    /// The port of the first hop: the lowest of all shortest paths.
    pub(super) port: Port,
}

/// Returns the shortest paths to all routers that can be reached from `own` over its links, which
/// are given by port, neighbour and cost.
///
/// A link counts only if both ends have it, so the last state of a router that vanished does not
/// attract packets. O(links log links), for any links.
pub(super) fn shortest_paths<D>(
    own: RouterId,
    links: impl Iterator<Item = (Port, RouterId, u32)>,
    database: &BTreeMap<RouterId, RouterState<D>>,
) -> BTreeMap<RouterId, Reached> {
    let mut frontier = Frontier::default();
    let has_link = |from: RouterId, to: RouterId| {
        database.get(&from).is_some_and(|state| state.has_link_to(to))
    };
    for (port, neighbour, cost) in links {
        if neighbour != own && has_link(neighbour, own) {
            frontier.relax(neighbour, Reached { cost, port });
        }
    }
    // Costs are positive: any router on a shortest path to another is closer, and was visited
    // before.
    while let Some((router, reached)) = frontier.closest() {
        for &RouterLink { router: next, cost } in
            database.get(&router).map_or(&[][..], |state| &state.links)
        {
            if next != own && has_link(next, router) {
                let cost = reached.cost.saturating_add(cost);
                frontier.relax(next, Reached { cost, port: reached.port });
            }
        }
    }
    frontier.reached
}

#[derive(Default)]
struct Frontier {
    reached: BTreeMap<RouterId, Reached>,
    /// Routers by tentative cost. Entries with a cost that was lowered since are skipped.
    queue: BinaryHeap<Reverse<(u32, RouterId)>>,
}

impl Frontier {
    /// Removes the next router in the order of costs.
    fn closest(&mut self) -> Option<(RouterId, Reached)> {
        while let Some(Reverse((cost, router))) = self.queue.pop() {
            let reached = self.reached[&router];
            if reached.cost == cost {
                return Some((router, reached));
            }
        }
        None
    }

    /// Adds a path to a router, if it is better. Ties are broken by the lowest port. The greatest
    /// cost, 2^32 - 1, is infinite.
    fn relax(&mut self, router: RouterId, path: Reached) {
        let known = self.reached.get(&router).map_or((u32::MAX, 0), |old| (old.cost, old.port));
        if (path.cost, path.port) < known {
            self.reached.insert(router, path);
            if path.cost < known.0 {
                self.queue.push(Reverse((path.cost, router)));
            }
        }
    }
}

/// The unique identifier of a router.
pub type RouterId = u32;

/// The state that a router floods to all others: its links and its destinations.
///
/// Of two states of a router the greater one is valid. The sequence number decides; a router that
/// restarts may send two states with one number before it receives its earlier one, and then all
/// routers must choose the same.
///
/// Paper: Chandranmenon and Varghese, section 4.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterState<D> {
    /// The router that originated the state.
    pub router: RouterId,
    /// The sequence number. Later states have greater ones.
    pub sequence: u64,
    /// The links to neighbours.
    pub links: Vec<RouterLink>,
    /// The attached destinations.
    pub destinations: Vec<D>,
}

/// A link in the state of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterLink {
    /// The neighbour.
    pub router: RouterId,
    /// The cost of the link to it.
    pub cost: u32,
}

impl<D> RouterState<D> {
    /// Returns whether the state has a link to `router`. The links must be sorted, as in the
    /// database.
    pub(super) fn has_link_to(&self, router: RouterId) -> bool {
        let index = self.links.partition_point(|link| link.router < router);
        self.links.get(index).is_some_and(|link| link.router == router)
    }
}
