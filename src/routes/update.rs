//! Updates of the direct tables and levels, which are computed from the nodes.
//!
//! They have indices of values. An update changes them as soon as it has changed a node, before it
//! reads more of the address, which may panic.

use super::RouteTable;
use super::change::{FROM_ROOT, Start};
use super::direct::{Direct, RoutesByFirst, TABLE_END};
use super::key::Key;
use super::levels::{FIRST, LAST, Levels, has_levels, key_of, level_of};
use super::node::Form;
use super::pool::Exhausted;
use super::search::{Changed, NodeRoutes, RouteBits};
use super::segment::LevelEntry;
use super::store::{NO_NODE, Nodes, ROOT, Store};
use super::stride::{PrefixIndex, SLOTS, STRIDE, first_slot};
use crate::key::bits::Address;
use crate::memory::{Allocator, Box, Vec};
use crate::raw::prefetch::BURST;

/// Number of routes of more than [`FIRST`] bits at which levels are made. Fewer in fuzzing, whose
/// tables are small.
const MAKE_LEVELS_AT: usize = if cfg!(fuzzing) { 8 } else { 128 };

/// Number of routes of more than [`FIRST`] bits below which levels are released.
const DROP_LEVELS_BELOW: usize = MAKE_LEVELS_AT / 4;

/// Number of routes from which on direct tables are prepared.
const MAKE_DIRECT_AT: usize = if cfg!(fuzzing) { 32 } else { 512 };

/// Number of routes below which they are released.
const DROP_DIRECT_BELOW: usize = MAKE_DIRECT_AT / 4;

/// Structures that are computed from the nodes for faster lookups. Methods take those nodes.
pub(super) struct Shortcuts<M: Allocator + Clone> {
    /// Allocated from [`MAKE_DIRECT_AT`] routes on.
    pub(super) direct: Option<Box<Direct<M>, M>>,
    /// For addresses of more than [`LAST`] bits, from [`MAKE_LEVELS_AT`] long routes on, unless
    /// there was no memory.
    pub(super) levels: Option<Levels<M>>,
    pub(super) counts: RouteCounts,
}

/// Numbers of routes, which determine the shortcuts that pay.
#[derive(Clone, Copy)]
pub(super) struct RouteCounts {
    /// Of more than [`FIRST`] bits, if there are levels.
    pub(super) long: usize,
    pub(super) by_first: RoutesByFirst,
}

impl RouteCounts {
    pub(super) const NONE: Self = Self { long: 0, by_first: [0; SLOTS as usize] };
}

impl<M: Allocator + Clone> Shortcuts<M> {
    pub(super) const EMPTY: Self = Self::without(RouteCounts::NONE);

    /// Returns the allocated bytes: of direct tables, of levels.
    pub(super) fn allocation_size(&self) -> (usize, usize) {
        let direct = |direct: &Direct<M>| direct.allocation_size() + size_of::<Direct<M>>();
        let levels = self.levels.as_ref().map_or(0, Levels::allocation_size);
        (self.direct.as_deref().map_or(0, direct), levels)
    }

    /// Returns no shortcuts, for a store with these numbers of routes.
    pub(super) const fn without(counts: RouteCounts) -> Self {
        Self { direct: None, levels: None, counts }
    }

    /// Computes the shortcuts of nodes with `len` routes, as far as there is memory: those that
    /// pay, and those that these have.
    pub(super) fn computed(&self, nodes: &Nodes<M>, len: usize) -> Self {
        let old = self.direct.as_deref();
        let makes_direct = len >= MAKE_DIRECT_AT || old.is_some();
        let makes_levels = self.counts.long >= MAKE_LEVELS_AT || self.levels.is_some();
        let direct = || Direct::computed(nodes, &self.counts.by_first, old).ok();
        Self {
            direct: if makes_direct { direct() } else { None },
            levels: if makes_levels { nodes.levels().ok() } else { None },
            ..Self::without(self.counts)
        }
    }

    /// Releases the levels if an update of them has failed.
    #[inline]
    pub(super) fn keep_levels_if(&mut self, updated: Result<(), Exhausted>) {
        if updated.is_err() {
            self.levels = None;
        }
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the node for the routes of `key` and its routes, if a slot of a direct
    /// table or an entry of the levels has them: then an update does not descend the trie.
    /// Prefetches the values.
    #[inline]
    pub(super) fn node_by_copy(&self, key: &Key<A>) -> Option<NodeRoutes> {
        let (Store { values, nodes, .. }, len) = (&self.store, key.len());
        // Its blocks are found by these routes, so a copy is not relied on.
        let is_there =
            |node: &NodeRoutes| nodes.find(node.id).is_some_and(|it| it.bits() == node.bits);
        if let Some(levels) = self.shortcuts.levels.as_ref().filter(|_| len > FIRST) {
            let entry = levels.get(key.level()).filter(|_| len <= LAST + STRIDE)?;
            values.prefetch(entry.values);
            let NodeRoutes { id, bits } = entry.node()?;
            if is_there(&NodeRoutes { id, bits }) {
                return Some(NodeRoutes { id, bits });
            }
            // The node may have moved with its siblings: by one, if one was added or removed.
            let moved = [1, u32::MAX].map(|by| NodeRoutes { id: id.wrapping_add(by), bits });
            return moved.into_iter().find(is_there);
        }
        let slot = self.shortcuts.direct.as_ref()?.slot(key.word());
        let node = slot.node()?;
        values.prefetch(node.bits.values);
        let is_of_slot = (TABLE_END + 1..=TABLE_END + STRIDE).contains(&len);
        Some(node).filter(|node| is_of_slot && is_there(node))
    }

    /// Returns the node for the routes of `key`, if it exists, and its routes.
    #[inline]
    pub(super) fn find_node(&self, key: &Key<A>) -> Option<NodeRoutes> {
        self.node_by_copy(key).or_else(|| {
            let id = self.store.nodes.find_node(self.shortcuts.start(key), key)?;
            Some(NodeRoutes { id, bits: self.store.nodes.get(id).bits() })
        })
    }
}

impl<M: Allocator + Clone> Shortcuts<M> {
    /// Returns where the path to the node for the routes of `key` is entered: at the node
    /// of a slot, which is not stale, or at the root.
    #[inline]
    pub(super) fn start<A: Address>(&self, key: &Key<A>) -> Start {
        let direct = self.direct.as_ref().filter(|_| key.len() > TABLE_END);
        match direct.map_or(NO_NODE, |direct| direct.slot(key.word()).node) {
            NO_NODE => FROM_ROOT,
            node => (node, TABLE_END),
        }
    }

    /// Updates the shortcuts after the insertion of the route of `key` into a node, given
    /// whether that has been found by its copy. There are `routes` now.
    #[inline]
    pub(super) fn after_insert<A: Address>(
        &mut self,
        nodes: &Nodes<M>,
        routes: usize,
        key: &Key<A>,
        node: u32,
        changed: Changed,
        is_found: bool,
    ) {
        let (first, len, counts) = (first_slot(key.word()), key.len(), &mut self.counts);
        if len > STRIDE {
            counts.by_first[first as usize] += 1;
        }
        if let Some(direct) = &mut self.direct {
            direct.update(nodes, key, node, changed, is_found);
            if len > STRIDE {
                direct.add_route(nodes, first, counts.by_first[first as usize]);
            }
        } else if routes >= MAKE_DIRECT_AT {
            // The first time, or again, if there was no memory.
            self.direct = Direct::of(nodes, &counts.by_first, |_, _| false).ok();
        }
        if has_levels::<A>() && len > FIRST {
            counts.long += 1;
            match is_found {
                true => self.update_level_routes(
                    nodes,
                    key,
                    NodeRoutes { id: node, bits: changed.bits },
                ),
                false => self.update_level(nodes, key, Some(node)),
            }
            if self.counts.long == MAKE_LEVELS_AT && self.levels.is_none() {
                self.levels = nodes.levels().ok();
            }
        }
    }

    /// Updates the shortcuts after the removal of the route of `key` from a node. There are
    /// `routes` now.
    #[inline]
    pub(super) fn after_remove<A: Address>(
        &mut self,
        nodes: &Nodes<M>,
        routes: usize,
        key: &Key<A>,
        node: u32,
        changed: Changed,
    ) {
        let (first, len, counts) = (first_slot(key.word()), key.len(), &mut self.counts);
        if len > STRIDE {
            // In case an inconsistent address type returns other first bits than before.
            let count = &mut counts.by_first[first as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(direct) = &mut self.direct {
            direct.update(nodes, key, node, changed, true);
            if len > STRIDE {
                direct.remove_route(first, counts.by_first[first as usize]);
            }
            if routes < DROP_DIRECT_BELOW {
                self.direct = None;
            }
        }
        if has_levels::<A>() && len > FIRST {
            counts.long -= 1;
            if counts.long < DROP_LEVELS_BELOW {
                self.levels = None;
            }
            self.update_level_routes(nodes, key, NodeRoutes { id: node, bits: changed.bits });
        }
    }

    /// Updates the shortcuts after the removal of the nodes that led to the route of `key` from
    /// one at position `changed`.
    pub(super) fn after_remove_path<A: Address>(
        &mut self,
        nodes: &Nodes<M>,
        key: &Key<A>,
        changed: Option<u32>,
    ) {
        let is_in_slots = changed.is_some_and(|pos| pos <= TABLE_END) && key.len() > TABLE_END;
        if let Some(direct) = self.direct.as_mut().filter(|_| is_in_slots) {
            direct.update_deeper(nodes, key.word());
        }
        // The node at the last level has lost its routes before.
        if has_levels::<A>() && key.len() > LAST + STRIDE {
            self.update_level(nodes, key, None);
        }
    }

    /// Updates the shortcuts after the removal of nodes that a failed insertion has added.
    pub(super) fn after_undo<A: Address>(&mut self, nodes: &Nodes<M>, key: &Key<A>) {
        self.after_remove_path(nodes, key, Some(0));
        if let Some(direct) = &mut self.direct {
            // Their siblings have moved.
            direct.update_nodes(nodes, key.word());
        }
    }

    /// Sets an entry of the levels, if there are any.
    fn set_entry(&mut self, entry: LevelEntry) {
        if let Some(levels) = self.levels.as_mut() {
            let set = levels.set(entry);
            self.keep_levels_if(set);
        }
    }

    /// Sets the routes of a node in its entry, if that exists.
    #[inline]
    fn update_level_routes<A: Address>(
        &mut self,
        nodes: &Nodes<M>,
        key: &Key<A>,
        node: NodeRoutes,
    ) {
        match self.levels.as_mut() {
            Some(levels) if key.len() <= LAST + STRIDE => levels.set_routes(key.level(), node),
            _ => self.update_level(nodes, key, Some(node.id)),
        }
    }

    /// Sets the entry that depends on the routes of `key`, given their node.
    fn update_level<A: Address>(&mut self, nodes: &Nodes<M>, key: &Key<A>, node: Option<u32>) {
        if self.levels.as_mut().is_none() {
            return;
        }
        let entry = match node.filter(|_| key.len() <= LAST + STRIDE) {
            Some(node) => nodes.entry_of(node, key.word(), level_of(key.len())),
            None => nodes.last_entry(key.word()),
        };
        self.set_entry(entry);
    }
}

impl<M: Allocator + Clone> Nodes<M> {
    /// Returns the entry of the node at `pos`.
    pub(super) fn entry_of(&self, id: u32, word: u64, pos: u32) -> LevelEntry {
        let node = self.get(id);
        let deeper = pos == LAST && node.only_child().is_some();
        LevelEntry::new(key_of(word, pos), id, node.routes(), deeper)
    }

    /// Returns the entry for the routes at [`LAST`] and below, given the first bits.
    pub(super) fn last_entry(&self, word: u64) -> LevelEntry {
        let entry = |deeper| LevelEntry::new(key_of(word, LAST), NO_NODE, RouteBits::NONE, deeper);
        let (mut id, mut pos) = (ROOT, 0);
        while pos < LAST {
            match self.get(id).form() {
                Form::Path(path) => {
                    let strides = (LAST - pos) / STRIDE;
                    if path.common_strides(word << pos) < strides.min(path.strides) {
                        return entry(false);
                    }
                    if path.strides > strides {
                        return entry(true);
                    }
                    (id, pos) = (path.child, pos + path.len());
                }
                Form::Branch(branch) => {
                    let child = branch.child(first_slot(word << pos));
                    let Some(child) = child else { return entry(false) };
                    (id, pos) = (child, pos + STRIDE);
                }
            }
        }
        self.entry_of(id, word, LAST)
    }

    /// Calls a function with all entries of the levels.
    pub(super) fn each_entry(
        &self,
        mut each: impl FnMut(LevelEntry) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        let mut open = Vec::new_in(self.memory().clone());
        open.try_reserve(SLOTS as usize).map_err(|_| Exhausted)?;
        open.extend((!self.is_empty()).then_some((ROOT, 0, 0)));
        while let Some((id, pos, word)) = open.pop() {
            let branch = match self.get(id).form() {
                Form::Branch(branch) => branch,
                Form::Path(path) => {
                    let (word, end) = (word | path.bits >> pos, pos + path.len());
                    if end > LAST {
                        each(LevelEntry::new(key_of(word, LAST), NO_NODE, RouteBits::NONE, true))?;
                    } else {
                        open.push((path.child, end, word));
                    }
                    continue;
                }
            };
            let entry = self.entry_of(id, word, pos);
            if pos >= FIRST && entry.is_needed() {
                each(entry)?;
            }
            if pos < LAST {
                open.try_reserve(SLOTS as usize).map_err(|_| Exhausted)?;
                let bits = |slot| PrefixIndex::covering(slot, STRIDE).bits();
                let open_child = |(slot, child)| (child, pos + STRIDE, word | bits(slot) >> pos);
                open.extend(branch.children().map(open_child));
            }
        }
        Ok(())
    }

    /// Returns the levels of all nodes.
    fn levels(&self) -> Result<Levels<M>, Exhausted> {
        let mut count = 0;
        self.each_entry(|_| {
            count += 1;
            Ok(())
        })?;
        let mut levels = Levels::with_capacity_in(count, self.memory().clone())?;
        let (mut burst, mut len) = ([LevelEntry::VACANT; BURST], 0);
        self.each_entry(|entry| {
            burst[len] = entry;
            len = (len + 1) % BURST;
            if len == 0 { levels.insert_batch(&burst) } else { Ok(()) }
        })?;
        levels.insert_batch(&burst[..len])?;
        Ok(levels)
    }
}
