//! Checking the invariants: which one is broken, and where.

use alloc::vec;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use super::RouteTable;
use super::change::PATHS_FROM;
use super::node::{Node, Path};
use super::pool::{Blank, room};
use super::store::{NOWHERE, ROOT};
use super::stride::{SLOTS, STRIDE, Spot};
use crate::key::bits::{Address, with_bits};

/// An invariant of a route table that does not hold. It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// A node that is empty, or should be part of a path.
    Useless {
        /// First bit of the node.
        pos: u32,
    },
    /// A path where there must be none, or without bits, or with more than it has strides.
    Path {
        /// First bit of the path.
        pos: u32,
    },
    /// A route or a child behind the end of the address, or a route of no bits that is not in the root.
    Position {
        /// First bit of the node.
        pos: u32,
    },
    /// The node that is for slots that lead nowhere is not blank.
    Nowhere,
    /// Two nodes have a unit of a pool in common.
    Shared,
    /// The routes or the units in use are not all that there are.
    Reach {
        /// Routes that the nodes have.
        routes: usize,
    },
    /// A direct table, or the number of routes it is made by, is not what the nodes say.
    Direct,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant of a route table: {self:?}")
    }
}

impl Error for Broken {}

/// What is found on the way through all nodes.
#[derive(Default)]
struct Tally {
    routes: usize,
    /// Routes of more than six bits, by these.
    by_first: Vec<u32>,
    /// The runs: first unit and room.
    nodes: Vec<(u32, u32)>,
    values: Vec<(u32, u32)>,
}

impl<A: Address, V> RouteTable<A, V> {
    /// Checks every invariant, for tests. O(nodes + direct tables).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate or an address type that
    /// breaks the law of [`BitString`](crate::key::bits::BitString).
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
    pub fn validate(&self) -> Result<(), Broken> {
        let mut tally = Tally { by_first: vec![0; SLOTS as usize], ..Tally::default() };
        if !self.store.nodes.is_empty() {
            if *self.store.nodes.get(NOWHERE) != Node::BLANK {
                return Err(Broken::Nowhere);
            }
            tally.nodes.push((0, 2));
            let mut open = vec![(ROOT, 0, A::from_windows(|_| 0))];
            while let Some((id, pos, address)) = open.pop() {
                let node = *self.store.nodes.get(id);
                self.validate_passage(&node, pos)?;
                match node.as_path() {
                    Some(path) => {
                        self.validate_path(path, pos)?;
                        tally.nodes.push((path.child, 1));
                        let end = with_bits(&address, pos, path.bits);
                        open.push((path.child, pos + path.len(), end));
                    }
                    None => {
                        validate_node::<A>(&node, pos)?;
                        tally.count(&node, pos, &address);
                        open.extend((0..SLOTS).filter_map(|slot| {
                            let bits = Spot::above(slot, STRIDE).bits();
                            Some((node.child(slot)?, pos + STRIDE, with_bits(&address, pos, bits)))
                        }));
                    }
                }
            }
        }
        self.validate_tally(tally)
    }

    fn validate_path(&self, path: Path, pos: u32) -> Result<(), Broken> {
        let is_canonical = path.first(path.strides, path.child) == path;
        if pos < PATHS_FROM || !(2..=Path::LONGEST).contains(&path.strides) || !is_canonical {
            return Err(Broken::Path { pos });
        }
        Ok(())
    }

    /// A node that leads to one child and to nothing else, and the child does, too: is that one path?
    fn validate_passage(&self, node: &Node, pos: u32) -> Result<(), Broken> {
        let Some(path) = node.as_passage().filter(|_| pos >= PATHS_FROM) else { return Ok(()) };
        match self.store.nodes.get(path.child).as_passage() {
            Some(next) if path.joined(next).is_some() => Err(Broken::Useless { pos }),
            _ => Ok(()),
        }
    }

    fn validate_tally(&self, mut tally: Tally) -> Result<(), Broken> {
        if tally.routes != self.len {
            return Err(Broken::Reach { routes: tally.routes });
        }
        let (nodes, values) = (units(&mut tally.nodes)?, units(&mut tally.values)?);
        if (nodes, values) != self.store.used() {
            return Err(Broken::Reach { routes: tally.routes });
        }
        let by_first = tally.by_first.try_into().expect("as many as there are slots");
        match &self.direct {
            Some(direct) if !direct.is_right(&self.store, &by_first) => Err(Broken::Direct),
            None if by_first != [0; SLOTS as usize] => Err(Broken::Direct),
            _ => Ok(()),
        }
    }
}

fn validate_node<A: Address>(node: &Node, pos: u32) -> Result<(), Broken> {
    if pos > 0 && node.is_empty() {
        return Err(Broken::Useless { pos });
    }
    let fits = |spot: Spot| !node.has(spot) || (pos + spot.level() <= A::BITS);
    let is_root = pos == 0;
    let ends = pos + STRIDE >= A::BITS;
    let mut spots = (1..128).map(Spot::numbered);
    if !spots.all(fits) || (!is_root && node.has(Spot::TOP)) || (ends && node.branches() != 0) {
        return Err(Broken::Position { pos });
    }
    Ok(())
}

impl Tally {
    fn count<A: Address>(&mut self, node: &Node, pos: u32, address: &A) {
        let (values, routes) = node.values_run();
        let (children, count) = node.children_run();
        self.values.push((values, room(routes)));
        self.nodes.push((children, room(count)));
        self.routes += routes as usize;
        if pos > 0 {
            self.by_first[super::stride::slot_of(address, 0) as usize] += routes;
        }
    }
}

/// The units of runs that have none in common.
fn units(runs: &mut [(u32, u32)]) -> Result<usize, Broken> {
    runs.sort_unstable();
    let (mut end, mut units) = (0, 0);
    for &mut (run, room) in runs {
        if room > 0 && run < end {
            return Err(Broken::Shared);
        }
        end = if room > 0 { run + room } else { end };
        units += room as usize;
    }
    Ok(units)
}
