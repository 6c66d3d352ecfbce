//! The multicast tree.

use rand::Rng;
use rand::rngs::StdRng;

/// A multicast tree: routers, of which the first is that of the source, and receivers.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The parent of each node: of routers, then of receivers.
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    pub routers: usize,
}

impl Tree {
    /// Maximum number of children of a router. Sets of children are Bloom filters: one in a
    /// thousand sets of four misses a child.
    const MAX_CHILDREN: usize = 4;

    /// Generates a random tree.
    pub fn random(receivers: usize, rng: &mut StdRng) -> Self {
        let routers = receivers / 2 + 1;
        let mut tree = Self { parents: vec![None], children: vec![vec![]], routers };
        // Each router has capacity left for a receiver.
        (1..routers).for_each(|_| tree.add_below_one_with(Self::MAX_CHILDREN - 1, rng));
        (0..receivers).for_each(|_| tree.add_below_one_with(Self::MAX_CHILDREN, rng));
        tree
    }

    /// Adds a node below a random router with fewer than `children` children.
    fn add_below_one_with(&mut self, children: usize, rng: &mut StdRng) {
        let routers = self.routers.min(self.parents.len());
        let parent = loop {
            let router = rng.random_range(0..routers);
            if self.children[router].len() < children {
                break router;
            }
        };
        self.children[parent].push(self.parents.len());
        self.parents.push(Some(parent));
        self.children.push(vec![]);
    }

    pub fn parent(&self, node: usize) -> Option<usize> {
        self.parents[node]
    }

    pub fn children(&self, node: usize) -> &[usize] {
        &self.children[node]
    }

    pub fn is_receiver(&self, node: usize) -> bool {
        node >= self.routers
    }

    pub fn receivers(&self) -> std::ops::Range<usize> {
        self.routers..self.parents.len()
    }

    /// Returns the number of routers between the source and this node, exclusive.
    pub fn hops(&self, node: usize) -> u64 {
        self.above(node).count() as u64
    }

    /// Iterates over the routers on the path from the node to the source.
    pub fn above(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parents[node], |above| self.parents[*above])
    }

    /// Returns the maximum number of hops to a receiver.
    pub fn depth(&self) -> u64 {
        self.receivers().map(|receiver| self.hops(receiver)).max().unwrap_or(0)
    }
}
