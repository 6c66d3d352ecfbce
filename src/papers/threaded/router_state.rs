//! Link states: a router, its links and its destinations.

use alloc::vec::Vec;

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
    /// The neighbours, and the costs of the links to them.
    pub links: Vec<(RouterId, u32)>,
    /// The attached destinations.
    pub destinations: Vec<D>,
}

impl<D> RouterState<D> {
    /// Returns whether the state has a link to `router`. The links must be sorted, as in the
    /// database.
    pub(super) fn has_link_to(&self, router: RouterId) -> bool {
        let index = self.links.partition_point(|&(neighbour, _)| neighbour < router);
        self.links.get(index).is_some_and(|&(neighbour, _)| neighbour == router)
    }
}
