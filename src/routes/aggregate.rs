//! Aggregation: the smallest table that forwards the same.
//!
//! ```text
//!     10.0.0.0/9   a                10.0.0.0/8   a
//!     10.128.0.0/9 a       ─→       10.5.0.0/16  b
//!     10.5.0.0/16  b
//!     10.5.1.0/24  b
//! ```
//!
//! Three passes over a binary trie of the routes:
//!
//! 1. Each leaf has the value of its longest route.
//! 2. From the leaves up, each node gets a set of values: the values that its children have in
//!    common, or, if there are none, the values of both children.
//! 3. From the root down, a node needs a route only if the value above it is not in its set. Any
//!    value of the set is the one.
//!
//! Addresses without a route must have none afterwards. A set of a node with such addresses below
//! it has no value, and this node and those above it have no route.
//!
//! Paper: Draves, King, Venkatachary and Zill, *Constructing optimal IP routing tables* (1999).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::RouteTable;
use crate::key::bits::{Address, with_bits};
use crate::key::prefix::Prefix;
use crate::memory::Allocator;

/// The number of "no route" among values.
const NO_ROUTE: u32 = 0;

/// The child of a node that has none.
const NO_CHILD: u32 = 0;

/// A node of the binary trie. Children follow their parents.
struct Node<A> {
    prefix: Prefix<A>,
    children: [u32; 2],
    /// The number of the value of the longest route.
    value: u32,
    /// The candidates: sorted numbers of values.
    set: Vec<u32>,
}

impl<A: Address> Node<A> {
    fn new(prefix: Prefix<A>, value: u32) -> Self {
        Self { prefix, children: [NO_CHILD; 2], value, set: Vec::new() }
    }
}

/// Returns the values that two sets have in common, or if there are none, the union of the sets.
fn combined(one: &[u32], other: &[u32]) -> Vec<u32> {
    if one.contains(&NO_ROUTE) || other.contains(&NO_ROUTE) {
        return [NO_ROUTE].into();
    }
    let mut common: Vec<u32> =
        one.iter().copied().filter(|value| other.binary_search(value).is_ok()).collect();
    if common.is_empty() {
        common.extend_from_slice(one);
        common.extend_from_slice(other);
        common.sort_unstable();
    }
    common
}

impl<A: Address, V: Clone + Ord, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the smallest table in which each address finds the same value as in this one:
    /// optimal route table construction (ORTC). Prefixes differ. O(bits of all routes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    /// use std::net::Ipv4Addr;
    ///
    /// let text = [("10.0.0.0/9", 'a'), ("10.128.0.0/9", 'a'), ("10.5.0.0/16", 'b'),
    ///     ("10.5.1.0/24", 'b')];
    /// let routes = text.map(|(prefix, via)| (prefix.parse().unwrap(), via));
    /// let routes = RouteTable::<Ipv4Addr, char>::from(routes);
    /// let smallest = routes.aggregated();
    /// let text: Vec<String> = smallest.prefixes().map(|prefix| prefix.to_string()).collect();
    /// assert_eq!(text, ["10.0.0.0/8", "10.5.0.0/16"]);
    /// ```
    #[doc(alias("ortc", "compress"))]
    #[must_use]
    pub fn aggregated(&self) -> Self {
        let mut numbers = BTreeMap::new();
        let mut values = Vec::new();
        let mut nodes = [Node::new(Prefix::default_route(), NO_ROUTE)].into();
        for (prefix, value) in self {
            let number = *numbers.entry(value).or_insert_with(|| {
                values.push(value);
                values.len() as u32
            });
            insert(&mut nodes, &prefix, number);
        }
        find_candidates(&mut nodes);
        let mut smallest = Self::new_in(self.allocator().clone());
        select(nodes, |prefix, number| {
            smallest.insert(prefix, values[number as usize - 1].clone());
        });
        smallest
    }
}

/// Pass 1: adds a route. Routes come in order, so all that are shorter have been added.
fn insert<A: Address>(nodes: &mut Vec<Node<A>>, prefix: &Prefix<A>, number: u32) {
    let mut at = 0;
    for pos in 0..prefix.len() {
        let side = (prefix.address().window(pos) >> 63) as usize;
        let mut child = nodes[at].children[side];
        if child == NO_CHILD {
            child = nodes.len() as u32;
            let (prefix, value) = (Prefix::of(&prefix.address(), pos + 1), nodes[at].value);
            nodes[at].children[side] = child;
            nodes.push(Node::new(prefix, value));
        }
        at = child as usize;
    }
    nodes[at].value = number;
}

/// Pass 2. Children follow their parents.
fn find_candidates<A>(nodes: &mut [Node<A>]) {
    for at in (0..nodes.len()).rev() {
        let own = [nodes[at].value];
        let [one, other] = nodes[at].children.map(|child| match child {
            NO_CHILD => &own[..],
            child => &nodes[child as usize].set,
        });
        nodes[at].set = combined(one, other);
    }
}

/// Pass 3: calls `route` for each route that is needed.
fn select<A: Address>(mut nodes: Vec<Node<A>>, mut route: impl FnMut(Prefix<A>, u32)) {
    // Of each node the number of the value above it, from its parent.
    let mut above = Vec::new();
    above.resize(nodes.len(), NO_ROUTE);
    for at in 0..nodes.len() {
        let Node { prefix, children, value, set } = &mut nodes[at];
        let mut current = above[at];
        if set.binary_search(&current).is_err() {
            current = set[0];
            route(*prefix, current);
        }
        if *children == [NO_CHILD; 2] {
            continue;
        }
        for (side, &child) in (0..).zip(children.iter()) {
            if child != NO_CHILD {
                above[child as usize] = current;
            } else if *value != current {
                let address = with_bits(&prefix.address(), prefix.len(), side << 63);
                route(Prefix::of(&address, prefix.len() + 1), *value);
            }
        }
    }
}
