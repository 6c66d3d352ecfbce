//! Link states: a router, its links and its destinations.

use alloc::vec::Vec;

/// Names a router. No two have the same.
pub type RouterId = u32;

/// What a router says about itself, and all routers hear.
///
/// Of two states of a router the greater one holds. The sequence number decides; a router that restarts may say two
/// things under one number, before it hears what it said earlier, and then all must take the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterState<D> {
    /// Who says it.
    pub router: RouterId,
    /// Greater than that of what it said before.
    pub sequence: u64,
    /// Neighbours, and what it costs to send to them.
    pub links: Vec<(RouterId, u32)>,
    /// What is attached.
    pub destinations: Vec<D>,
}

impl<D> RouterState<D> {
    /// Whether it says so. Links of the database are in order.
    pub(super) fn has_link_to(&self, router: RouterId) -> bool {
        let place = self.links.partition_point(|&(neighbour, _)| neighbour < router);
        self.links.get(place).is_some_and(|&(neighbour, _)| neighbour == router)
    }
}
