//! Who is below whom.

use rand::Rng;
use rand::rngs::StdRng;

/// A multicast tree: routers, of which the first is that of the source, and receivers.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Who is next on the way to the source: for routers, then for receivers.
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    pub routers: usize,
}

impl Tree {
    /// Sets of children are Bloom filters: with so many, one in a thousand misses one.
    const MAX_CHILDREN: usize = 4;

    /// A random one.
    pub fn random(receivers: usize, rng: &mut StdRng) -> Self {
        let routers = receivers / 2 + 1;
        let mut tree = Self { parents: vec![None], children: vec![vec![]], routers };
        // Each router leaves room for a receiver.
        (1..routers).for_each(|_| tree.add_below_one_with(Self::MAX_CHILDREN - 1, rng));
        (0..receivers).for_each(|_| tree.add_below_one_with(Self::MAX_CHILDREN, rng));
        tree
    }

    /// A node below any router that has fewer children than these.
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

    /// Routers between the source and this node, which is none of them.
    pub fn hops(&self, node: usize) -> u64 {
        self.above(node).count() as u64
    }

    /// All routers on the way from the node to the source.
    pub fn above(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parents[node], |above| self.parents[*above])
    }

    /// The most hops to a receiver.
    pub fn depth(&self) -> u64 {
        self.receivers().map(|receiver| self.hops(receiver)).max().unwrap_or(0)
    }
}
