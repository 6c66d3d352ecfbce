//! Dijkstra over what routers say about their links.

use alloc::collections::{BTreeMap, BinaryHeap};
use core::cmp::Reverse;

use super::router_state::{RouterId, RouterState};
use super::table::Port;

/// How a router is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// At least 1: one does not reach oneself.
    pub(super) cost: u32,
    /// Through which link of one's own: the lowest of all that are on a cheapest path.
    pub(super) port: Port,
}

/// All routers that can be reached over one's own links, which go to a neighbour and cost something.
///
/// A link counts if both ends have it, so that what a router said before it vanished leads nowhere.
/// O(links log links), whatever they are.
pub(super) fn shortest_paths<D>(
    own: RouterId,
    links: impl Iterator<Item = (Port, RouterId, u32)>,
    database: &BTreeMap<RouterId, RouterState<D>>,
) -> BTreeMap<RouterId, Reached> {
    let mut frontier = Frontier::default();
    let leads_to = |from: RouterId, to: RouterId| {
        database.get(&from).is_some_and(|state| state.has_link_to(to))
    };
    for (port, neighbour, cost) in links {
        if neighbour != own && leads_to(neighbour, own) {
            frontier.offer(neighbour, Reached { cost, port });
        }
    }
    // Links cost something: whatever offers a router a path is closer, and has been here before it.
    while let Some((router, reached)) = frontier.closest() {
        for &(next, cost) in database.get(&router).map_or(&[][..], |state| &state.links) {
            if next != own && leads_to(next, router) {
                let cost = reached.cost.saturating_add(cost);
                frontier.offer(next, Reached { cost, port: reached.port });
            }
        }
    }
    frontier.reached
}

#[derive(Default)]
struct Frontier {
    reached: BTreeMap<RouterId, Reached>,
    /// Routers by the costs that were offered. Those that were offered less since are passed over.
    queue: BinaryHeap<Reverse<(u32, RouterId)>>,
}

impl Frontier {
    /// The next router in order of costs.
    fn closest(&mut self) -> Option<(RouterId, Reached)> {
        while let Some(Reverse((cost, router))) = self.queue.pop() {
            let reached = self.reached[&router];
            if reached.cost == cost {
                return Some((router, reached));
            }
        }
        None
    }

    /// There is such a path. Among paths of equal costs the lowest port is taken; what costs 2^32 - 1 is none.
    fn offer(&mut self, router: RouterId, path: Reached) {
        let known = self.reached.get(&router).map_or((u32::MAX, 0), |old| (old.cost, old.port));
        if (path.cost, path.port) < known {
            self.reached.insert(router, path);
            if path.cost < known.0 {
                self.queue.push(Reverse((path.cost, router)));
            }
        }
    }
}
