//! Size statistics of a route table, and the validation of its invariants, for tests.

use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

use super::RouteTable;
use super::change::PATHS_FROM;
use super::direct::TABLE_END;
use super::levels::{FIRST, has_levels};
use super::node::{Branch, Form, Node, Path};
use super::pool::block_size;
use super::store::{NO_NODE, Nodes, ROOT};
use super::stride::{PrefixIndex, SLOTS, STRIDE, slot_of};
use super::update::Shortcuts;
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::{Address, with_bits};
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
            let branch = match self.store.nodes.get(id).form() {
                Form::Branch(branch) => branch,
                Form::Path(path) => {
                    shape.paths += 1;
                    open.push((path.child, pos + path.len(), nth + 1, in_table));
                    continue;
                }
            };
            shape.nodes += 1;
            let nth = match pos {
                TABLE_END if in_table => 1,
                1..TABLE_END if in_table => 0,
                _ => nth,
            };
            shape.count_found(nth, branch.values_block().1 as usize);
            for (slot, child) in branch.children() {
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

/// Counts and blocks that the traversal of all nodes finds.
#[derive(Default)]
struct Tally {
    routes: usize,
    /// Routes of more than six bits, by the first six bits.
    by_first: Vec<u32>,
    /// Routes of more than 24 bits.
    long: usize,
    /// Blocks of nodes: first unit and size.
    nodes: Vec<(u32, u32)>,
    /// Nodes in use: the first of a block, and their number.
    in_use: Vec<(u32, u32)>,
    /// Blocks of values: first unit and size.
    values: Vec<(u32, u32)>,
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Checks every invariant, for tests. O(nodes + direct tables).
    ///
    /// # Errors
    ///
    /// If an invariant is violated: a bug in this crate, or an address type that violates the
    /// contract of [`BitString`](crate::key::bits::BitString).
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes: flowtable::RouteTable<u32, ()> = flowtable::RouteTable::new();
    /// for len in 0..=32 {
    ///     routes.insert(flowtable::Prefix::new(u32::MAX, len)?, ());
    ///     assert_eq!(routes.validate(), Ok(()));
    /// }
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let nodes = &self.store.nodes;
        let mut tally = Tally::of::<A, M>(nodes)?;
        tally.validate(self.len, self.store.used(), nodes)?;
        self.shortcuts.validate::<A>(tally.long, &tally.by_first, nodes)
    }
}

impl Tally {
    /// Visits all nodes, and checks each one. Returns the counts.
    fn of<A: Address, M: Allocator + Clone>(nodes: &Nodes<M>) -> Result<Self, InvariantError> {
        let mut tally = Self { by_first: vec![0; SLOTS as usize], ..Self::default() };
        if nodes.is_empty() {
            return Ok(tally);
        }
        ensure(*nodes.get(NO_NODE) == Node::EMPTY, || "node 0 has routes or children")?;
        tally.nodes.push((0, 2));
        tally.in_use.push((0, 2));
        let mut open = vec![(ROOT, 0, A::from_windows(|_| 0))];
        while let Some((id, pos, address)) = open.pop() {
            let node = *nodes.get(id);
            validate_chain(nodes, &node, pos)?;
            match node.form() {
                Form::Path(path) => {
                    validate_path(path, pos)?;
                    tally.nodes.push((path.child, 1));
                    tally.in_use.push((path.child, 1));
                    let end = with_bits(&address, pos, path.bits);
                    open.push((path.child, pos + path.len(), end));
                }
                Form::Branch(branch) => {
                    validate_branch::<A>(branch, pos)?;
                    tally.count(branch, pos, &address);
                    open.extend(branch.children().map(|(slot, child)| {
                        let bits = PrefixIndex::covering(slot, STRIDE).bits();
                        (child, pos + STRIDE, with_bits(&address, pos, bits))
                    }));
                }
            }
        }
        Ok(tally)
    }

    fn count<A: Address>(&mut self, branch: &Branch, pos: u32, address: &A) {
        let (values, routes) = branch.values_block();
        let (children, count) = branch.children_block();
        self.values.push((values, block_size(routes)));
        self.nodes.push((children, block_size(count)));
        self.in_use.push((children, count));
        self.routes += routes as usize;
        self.long += if pos >= FIRST { routes as usize } else { 0 };
        if pos > 0 {
            self.by_first[slot_of(address, 0) as usize] += routes;
        }
    }

    /// Checks that there are `len` routes, and as many units of nodes and of values as are `used`.
    fn validate<M: Allocator + Clone>(
        &mut self,
        len: usize,
        used: (usize, usize),
        nodes: &Nodes<M>,
    ) -> Result<(), InvariantError> {
        let routes = self.routes;
        ensure(routes == len, || {
            format!("the nodes have {routes} routes, but the length is {len}")
        })?;
        let units = (disjoint_units(&mut self.nodes)?, disjoint_units(&mut self.values)?);
        ensure(units == used, || {
            format!("nodes and values in reach: {units:?}, but allocated: {used:?}")
        })?;
        let are_cleared = are_others_cleared(nodes, &mut self.in_use);
        ensure(are_cleared, || "a node that is not in use has routes or children")
    }
}

impl<M: Allocator + Clone> Shortcuts<M> {
    /// Checks that the shortcuts agree with the nodes, which have `long` routes of more than 24
    /// bits.
    fn validate<A: Address>(
        &self,
        long: usize,
        by_first: &[u32],
        nodes: &Nodes<M>,
    ) -> Result<(), InvariantError> {
        let by_first = by_first.try_into().expect("one counter for each slot");
        ensure(by_first == self.counts.by_first, || "a number of routes is wrong")?;
        let is_consistent = match &self.direct {
            Some(direct) => direct.is_consistent(nodes, &by_first),
            None => true,
        };
        ensure(is_consistent, || "a direct table disagrees with the nodes")?;
        let counted = if has_levels::<A>() { long } else { 0 };
        ensure(self.counts.long == counted, || "the number of long routes is wrong")?;
        self.validate_levels(nodes)
    }

    /// Checks that the levels agree with the nodes.
    fn validate_levels(&self, nodes: &Nodes<M>) -> Result<(), InvariantError> {
        let Some(levels) = &self.levels else { return Ok(()) };
        let mut expected = vec![];
        let pushed = nodes.each_entry(|entry| {
            expected.push(entry);
            Ok(())
        });
        let mut entries: Vec<_> = levels.entries().collect();
        let is_found = entries.iter().all(|entry| levels.candidate(entry.key) == entry);
        // Those may be stale.
        entries.iter_mut().chain(&mut expected).for_each(|entry| entry.id = 0);
        expected.sort_unstable_by_key(|entry| entry.key);
        entries.sort_unstable_by_key(|entry| entry.key);
        ensure(
            pushed.is_ok() && entries == expected && levels.len() == entries.len() && is_found,
            || "the levels disagree with the nodes",
        )
    }
}

/// Checks that a chain node and its child do not fit into one path.
fn validate_chain<M: Allocator + Clone>(
    nodes: &Nodes<M>,
    node: &Node,
    pos: u32,
) -> Result<(), InvariantError> {
    let Some(path) = node.as_chain().filter(|_| pos >= PATHS_FROM) else { return Ok(()) };
    let next = nodes.get(path.child).as_chain();
    let is_merged = next.is_none_or(|next| path.merged(next).is_none());
    ensure(is_merged, || format!("the node at bit {pos} and its child should be one path"))
}

fn validate_path(path: Path, pos: u32) -> Result<(), InvariantError> {
    let is_canonical = path.first(path.strides, path.child) == path;
    let is_valid = pos >= PATHS_FROM && (2..=Path::LONGEST).contains(&path.strides) && is_canonical;
    ensure(is_valid, || format!("the path at bit {pos} is not allowed there, or malformed"))
}

fn validate_branch<A: Address>(branch: &Branch, pos: u32) -> Result<(), InvariantError> {
    ensure(pos == 0 || branch.starts() != 0, || format!("the node at bit {pos} is empty"))?;
    let fits = |index: PrefixIndex| !branch.has(index) || (pos + index.level() <= A::BITS);
    let is_within = (1..128).map(PrefixIndex::new).all(fits);
    let ends = pos + STRIDE >= A::BITS;
    ensure(is_within && !(ends && branch.branches() != 0), || {
        format!("the node at bit {pos} has a route or a child past the end of the address")
    })?;
    ensure(pos == 0 || !branch.has(PrefixIndex::TOP), || {
        format!("the node at bit {pos} has a route of level 0, which only the root may have")
    })
}

/// Returns whether all nodes but these are empty.
fn are_others_cleared<M: Allocator + Clone>(nodes: &Nodes<M>, in_use: &mut [(u32, u32)]) -> bool {
    in_use.sort_unstable();
    let mut next = 0;
    let mut is_cleared = |upto: u32, after: u32| {
        let mut others = (next..upto).map_while(|id| nodes.find(id));
        next = after;
        others.all(|node| *node == Node::EMPTY)
    };
    let blocks = in_use.iter().filter(|(_, count)| *count > 0);
    blocks.copied().all(|(block, count)| is_cleared(block, block + count))
        && is_cleared(u32::MAX, u32::MAX)
}

/// Returns the number of units in blocks, and checks that the blocks are disjoint.
fn disjoint_units(blocks: &mut [(u32, u32)]) -> Result<usize, InvariantError> {
    blocks.sort_unstable();
    let (mut end, mut units) = (0, 0);
    for &mut (block, size) in blocks {
        ensure(size == 0 || block >= end, || format!("two nodes share the unit {block}"))?;
        end = if size > 0 { block + size } else { end };
        units += size as usize;
    }
    Ok(units)
}
