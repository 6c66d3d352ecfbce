//! Size statistics of a route table.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::RouteTable;
use super::slot::TABLE_END;
use super::store::ROOT;
use super::stride::STRIDE;
use crate::key::bits::Address;
use crate::memory::Allocator;

/// Nodes, levels and memory of a [`RouteTable`].
///
/// # Example
///
/// ```
/// use flowtable::{Prefix, RouteTable};
///
/// let mut routes = RouteTable::<u32, ()>::new();
/// routes.insert("167772160/8".parse().unwrap(), ());
/// let shape = routes.shape();
/// assert_eq!((shape.routes, shape.nodes, shape.paths), (1, 2, 0));
/// assert_eq!(shape.average_nodes(), 2.0); // the root, and the node at bit 6
/// assert_eq!(shape.bytes(), shape.node_bytes + shape.value_bytes); // no direct tables yet
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RouteShape {
    /// Routes.
    pub routes: usize,
    /// Branch nodes, which can have routes, of 32 bytes.
    pub nodes: usize,
    /// Compressed paths, of 32 bytes, too.
    pub paths: usize,
    /// Direct tables, of 128 KiB.
    pub direct_tables: usize,
    /// At index `n`: the number of routes that a lookup finds in the `n`-th node that it reads.
    /// Index 0 has those that are in a direct table.
    pub routes_by_nodes: Vec<usize>,
    /// Bytes allocated for nodes, free ones included.
    pub node_bytes: usize,
    /// Bytes allocated for values, free ones included.
    pub value_bytes: usize,
    /// Bytes allocated for direct tables.
    pub direct_bytes: usize,
    /// Bytes allocated for levels.
    pub level_bytes: usize,
}

impl RouteShape {
    /// Returns the number of nodes that a lookup reads up to the one with its route, on average
    /// over the routes.
    #[must_use]
    pub fn average_nodes(&self) -> f64 {
        let nodes = self.routes_by_nodes.iter().enumerate().map(|(nodes, routes)| nodes * routes);
        nodes.sum::<usize>() as f64 / self.routes.max(1) as f64
    }

    /// Returns the bytes of nodes, values, direct tables and levels.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.node_bytes + self.value_bytes + self.direct_bytes + self.level_bytes
    }
}

impl fmt::Display for RouteShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} routes in {} nodes, {} paths, {} direct tables; found in node {:.2} on average; \
             {:.1} bytes a route",
            self.routes,
            self.nodes,
            self.paths,
            self.direct_tables,
            self.average_nodes(),
            self.bytes() as f64 / self.routes.max(1) as f64
        )
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the number of nodes, levels and bytes of the table. O(nodes).
    #[must_use]
    pub fn shape(&self) -> RouteShape {
        let (node_bytes, value_bytes) = self.store.allocation_size();
        let (direct_bytes, level_bytes) = self.shortcuts.allocation_size();
        let mut shape = RouteShape {
            routes: self.len,
            direct_tables: self.shortcuts.direct.as_ref().map_or(0, |direct| direct.tables()),
            node_bytes,
            value_bytes,
            direct_bytes,
            level_bytes,
            ..RouteShape::default()
        };
        let start = if self.store.nodes.is_empty() { vec![] } else { vec![(ROOT, 0, 1, false)] };
        let mut open = start;
        // A node, its position, its depth, and whether its path begins in a direct table.
        while let Some((id, pos, nth, in_table)) = open.pop() {
            let node = self.store.nodes.get(id);
            if let Some(path) = node.as_path() {
                shape.paths += 1;
                open.push((path.child, pos + path.len(), nth + 1, in_table));
                continue;
            }
            shape.nodes += 1;
            let nth = match pos {
                TABLE_END if in_table => 1,
                1..TABLE_END if in_table => 0,
                _ => nth,
            };
            shape.count_found(nth, node.values_block().1 as usize);
            for slot in 0..1 << STRIDE {
                let Some(child) = node.child(slot) else { continue };
                let has_table =
                    || self.shortcuts.direct.as_ref().is_some_and(|direct| direct.has_table(slot));
                open.push((child, pos + STRIDE, nth + 1, in_table || (pos == 0 && has_table())));
            }
        }
        shape
    }
}

impl RouteShape {
    fn count_found(&mut self, nth: usize, routes: usize) {
        if self.routes_by_nodes.len() <= nth {
            self.routes_by_nodes.resize(nth + 1, 0);
        }
        self.routes_by_nodes[nth] += routes;
    }
}
