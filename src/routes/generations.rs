//! Stamps, and the cells that they are compared with.
//!
//! Each route has a cell: a generation, which a change of the route replaces. Generations increase,
//! and no two changes have the same one. So a cell that is freed and used again does not make a
//! stamp of its former route current.

use alloc::vec::Vec;

use crate::invariant::{InvariantError, ensure};
use crate::key::prefix::Prefix;

/// A stamp of a route, stored with a decision: 12 bytes.
///
/// The default is of no decision: it is never current.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteStamp {
    cell: u32,
    /// The low and the high half, so that the alignment is 4 bytes.
    generation: [u32; 2],
}

impl RouteStamp {
    /// The stamp with which an address without a route begins.
    pub(crate) const NO_ROUTE: Self = Self::new(NO_ROUTE, 0);

    pub(crate) const fn new(cell: u32, generation: u64) -> Self {
        Self { cell, generation: [generation as u32, (generation >> 32) as u32] }
    }

    pub(crate) const fn cell(self) -> u32 {
        self.cell
    }

    pub(crate) const fn generation(self) -> u64 {
        self.generation[0] as u64 | (self.generation[1] as u64) << 32
    }

    /// Returns whether the stamp is still of the route of its address, which was created with this
    /// stamp: then the route is the one that was used when the stamp was made.
    pub(crate) const fn is_valid_for(self, created: Self) -> bool {
        let was_used = self.generation() > 0;
        was_used && self.cell == created.cell && created.generation() <= self.generation()
    }
}

/// A value and the stamp of its insertion.
#[derive(Clone, Debug)]
pub(crate) struct Stamped<V> {
    pub(crate) created: RouteStamp,
    pub(crate) value: V,
}

impl<V> Stamped<V> {
    /// Returns the stamp with which the route of an address was created.
    #[inline]
    pub(crate) fn created(route: Option<&Self>) -> RouteStamp {
        route.map_or(RouteStamp::NO_ROUTE, |route| route.created)
    }
}

/// The result of [`StampedRoutes::refresh`](super::StampedRoutes::refresh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed<'t, A, V> {
    /// The route is the same as before, and so is its value.
    Same,
    /// This is the route now; none if the address has none.
    Changed(Option<(Prefix<A>, &'t V)>),
}

impl<'t, A, V> Refreshed<'t, A, V> {
    /// Compares a stamp with the present route of its address.
    #[inline]
    pub(crate) fn of(before: RouteStamp, found: Option<(Prefix<A>, &'t Stamped<V>)>) -> Self {
        if before.is_valid_for(Stamped::created(found.as_ref().map(|(_, route)| *route))) {
            return Self::Same;
        }
        Self::Changed(found.map(|(prefix, route)| (prefix, &route.value)))
    }
}

/// The cell of addresses without a route.
const NO_ROUTE: u32 = 0;

/// The generation of a cell that was not changed yet.
pub(crate) const UNCHANGED: u64 = 1;

/// The bit of a free cell, which has the number of the next one instead of a generation.
const FREE: u64 = 1 << 63;

/// log2 of the cells of the first block. Fewer for checkers.
const FIRST: u32 = if cfg!(any(crossbeam_loom, shuttle)) { 1 } else { 8 };

/// Blocks for 2^32 cells: the first one, and then as many as there are.
pub(crate) const BLOCKS: usize = (33 - FIRST) as usize;

/// Returns the block of a cell, and its index in that.
#[inline]
pub(crate) const fn place(cell: u32) -> (usize, usize) {
    match (cell >> FIRST).checked_ilog2() {
        None => (0, cell as usize),
        Some(bits) => (bits as usize + 1, (cell - (1 << (bits + FIRST))) as usize),
    }
}

/// Returns the number of cells of a block.
pub(crate) const fn cells_of(block: usize) -> usize {
    1 << (FIRST as usize + block.saturating_sub(1))
}

/// The generations of all cells.
pub(crate) trait Generations {
    /// Returns the generation of a cell, or [`UNCHANGED`] for an unknown cell.
    fn generation(&self, cell: u32) -> u64;

    /// Sets the generation of a cell.
    fn set(&mut self, cell: u32, generation: u64);

    /// Adds a block, unless it exists. Returns `None` without memory.
    fn add(&mut self, block: usize) -> Option<()>;
}

/// Which cells and generations are in use.
#[derive(Clone, Debug)]
pub(crate) struct CellNumbers {
    len: u32,
    /// The first free cell, or [`NO_ROUTE`].
    free: u32,
    /// The generation of the last change.
    generation: u64,
}

impl CellNumbers {
    pub(crate) const fn new() -> Self {
        Self { len: 0, free: NO_ROUTE, generation: UNCHANGED }
    }

    /// Returns the generation of the last change.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Gives a cell a new generation.
    pub(crate) fn change(&mut self, cells: &mut impl Generations, cell: u32) -> RouteStamp {
        self.generation += 1;
        if cell < self.len {
            cells.set(cell, self.generation);
        }
        RouteStamp::new(cell, self.generation)
    }

    /// Returns a cell for a route that begins, or `None` without memory.
    pub(crate) fn allocate(&mut self, cells: &mut impl Generations) -> Option<RouteStamp> {
        if self.len == 0 {
            self.push(cells)?;
        }
        let cell = match self.free {
            NO_ROUTE => self.push(cells)?,
            cell => {
                self.free = cells.generation(cell) as u32;
                cell
            }
        };
        Some(self.change(cells, cell))
    }

    /// Returns the stamp of a new value, or `None` without memory. `own` is the stamp of the value
    /// that it replaces. Without one, the route is new, and decisions by the route above it, whose
    /// stamp is `upper`, may have another route now.
    pub(crate) fn insert(
        &mut self,
        cells: &mut impl Generations,
        own: Option<RouteStamp>,
        upper: RouteStamp,
    ) -> Option<RouteStamp> {
        if let Some(own) = own {
            return Some(self.change(cells, own.cell));
        }
        let created = self.allocate(cells)?;
        self.change(cells, upper.cell);
        Some(created)
    }

    fn push(&mut self, cells: &mut impl Generations) -> Option<u32> {
        let cell = self.len;
        let len = cell.checked_add(1)?;
        cells.add(place(cell).0)?;
        self.len = len;
        cells.set(cell, UNCHANGED);
        Some(cell)
    }

    /// Frees the cell of a route that has ended.
    pub(crate) fn release(&mut self, cells: &mut impl Generations, cell: u32) {
        cells.set(cell, FREE | u64::from(self.free));
        self.free = cell;
    }

    /// Checks that these cells of routes and the free ones are all cells.
    pub(crate) fn check(
        &self,
        cells: &impl Generations,
        routes: impl Iterator<Item = RouteStamp>,
    ) -> Result<(), InvariantError> {
        let next = |cell: &u32| Some(cells.generation(*cell) as u32);
        let free = core::iter::successors(Some(self.free), next);
        let free = free.take_while(|cell| *cell != NO_ROUTE).take(self.len as usize);
        let mut used = Vec::from_iter((self.len > 0).then_some(NO_ROUTE));
        for created in routes {
            let changed = cells.generation(created.cell);
            ensure(created.cell != NO_ROUTE, || "a route has the cell of none")?;
            ensure(
                created.generation() <= changed,
                || "a cell was changed before its route was created",
            )?;
            ensure(changed <= self.generation(), || "the generation of a cell is not of a change")?;
            used.push(created.cell);
        }
        used.extend(free);
        used.sort_unstable();
        ensure(used.iter().copied().eq(0..self.len), || "a cell is lost, or of two routes")
    }
}
