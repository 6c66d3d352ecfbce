//! The state of the writers: all routes in a [`RouteTable`], from which the forwarding table is
//! computed.
//!
//! A route of up to six bits is a block of its own, to which the words that it covers refer; so is
//! one of up to 18 bits in a wide region. All others are in nodes, as in the table of the writer.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;

use super::arena::NONE;
use super::block::{Blocks, Header, RouteHeader};
use super::build::{Builder, Former};
use super::fib::{Fib, REGIONS, Slot, WIDE_END, WIDTH, Wide, Word, slot_in_wide};
use super::space::{Deferred, Space};
use crate::concurrent::sync::{IS_CHECKED, Ordering};
use crate::key::bits::{Address, with_bits};
use crate::key::prefix::Prefix;
use crate::routes::nodes::NodeRef;
use crate::routes::{Key, RouteTable, STRIDE, first_slot, node_pos};

/// Routes of more than six bits at which a region becomes wide: its slots are then 64 bytes for
/// each of them. Fewer in fuzzing and under checkers, whose tables are small.
const WIDE_AT: u32 = if IS_CHECKED {
    2
} else if cfg!(fuzzing) {
    24
} else {
    2048
};

/// Routes below which a region becomes narrow. A quarter, so that it does not change in turns.
const NARROW_BELOW: u32 = WIDE_AT.div_ceil(4);

/// Memory that readers may still access.
pub(super) enum Memory<V> {
    Wide(NonNull<Wide>),
    Fib(NonNull<Fib<V>>, usize),
}

impl<V> Memory<V> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Wide(_) => size_of::<Wide>(),
            Self::Fib(_, bytes) => *bytes,
        }
    }

    /// Frees the memory.
    ///
    /// # Safety
    ///
    /// No reader accesses it any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        match self {
            // SAFETY: from a box, and by the contract.
            Self::Wide(wide) => drop(unsafe { Box::from_raw(wide.as_ptr()) }),
            // SAFETY: as above.
            Self::Fib(fib, _) => drop(unsafe { Box::from_raw(fib.as_ptr()) }),
        }
    }
}

/// What a writer has replaced, for the collector.
pub(super) struct Retired<V> {
    pub(super) blocks: Option<Deferred>,
    pub(super) memory: Vec<Memory<V>>,
}

/// The state of the writers of a forwarding table.
pub(super) struct Writer<A, V> {
    pub(super) table: RouteTable<A, V>,
    /// The numbers of the routes that are blocks of their own.
    pub(super) routes: RouteTable<A, u32>,
    /// Numbers of routes of more than six bits, by region.
    counts: [u32; REGIONS],
    pub(super) space: Space,
    memory: Vec<Memory<V>>,
}

// SAFETY: the memory is of a forwarding table, which may be freed by any thread, as its values are
// not dropped.
unsafe impl<A: Send, V: Send> Send for Writer<A, V> {}

/// Returns the first bits of a prefix, and its length.
pub(super) fn header_of<A: Address>(key: &Key<A>, len: u32) -> RouteHeader {
    let rest = u64::MAX.checked_shr(len).unwrap_or(0);
    RouteHeader { bits: key.word() & !rest, len }
}

/// Calls a function with all words that a route covers which is a block of its own.
fn each_cell<V>(fib: &Fib<V>, route: RouteHeader, mut each: impl FnMut(&Slot)) {
    let first = first_slot(route.bits) as usize;
    if route.len > STRIDE {
        let Some(wide) = fib.wide(first) else { return };
        let count = WIDTH >> (route.len - STRIDE).min(WIDTH.ilog2());
        let from = slot_in_wide(route.bits);
        return wide[from..][..count].iter().for_each(each);
    }
    for region in first..first + (REGIONS >> route.len) {
        match fib.wide(region) {
            Some(wide) => wide.iter().for_each(&mut each),
            None => each(&fib.regions[region].narrow),
        }
    }
}

/// Returns the node of a table at `pos`, up to which there are no paths.
pub(super) fn node_at<A: Address, V>(
    table: &RouteTable<A, V>,
    word: u64,
    pos: u32,
) -> Option<NodeRef<'_, V>> {
    let mut at = table.root();
    for pos in (0..pos).step_by(STRIDE as usize) {
        at = at?.child(first_slot(word << pos));
    }
    at
}

impl<A: Address, V: Copy> Writer<A, V> {
    /// Creates the state for a table, and computes the forwarding table.
    pub(super) fn new(table: RouteTable<A, V>) -> (Self, Box<Fib<V>>) {
        let fib = Box::new(Fib::new());
        let mut writer = Self {
            table,
            routes: RouteTable::new(),
            counts: [0; REGIONS],
            space: Space::new(),
            memory: Vec::new(),
        };
        let mut short = Vec::new();
        for (prefix, &value) in &writer.table {
            let key = Key::from(&prefix);
            match prefix.len() {
                ..=STRIDE => short.push((prefix, key, value)),
                _ => writer.counts[first_slot(key.word()) as usize] += 1,
            }
        }
        for (prefix, key, value) in short {
            writer.publish_route(&fib, &prefix, header_of(&key, prefix.len()), Some(value));
        }
        for region in 0..REGIONS {
            let bits = (region as u64) << (u64::BITS - STRIDE);
            if let Some(node) = node_at(&writer.table, bits, STRIDE) {
                let cell = &fib.regions[region].narrow;
                let mut blocks = Blocks { arena: &fib.arena, space: &mut writer.space };
                let node = blocks.copy_all(node);
                cell.set_node(Word { node, ..cell.load() }, fib.header(node));
            }
            if writer.counts[region] >= WIDE_AT {
                writer.widen(&fib, region);
            }
        }
        (writer, fib)
    }

    /// Inserts a route, and returns the previous value.
    pub(super) fn insert(&mut self, fib: &Fib<V>, prefix: Prefix<A>, value: V) -> Option<V> {
        let key = Key::from(&prefix);
        let old = self.table.insert(prefix, value);
        self.publish(fib, &prefix, &key, Some(value));
        let region = first_slot(key.word()) as usize;
        if old.is_none() && prefix.len() > STRIDE {
            self.counts[region] += 1;
            if self.counts[region] >= WIDE_AT && fib.wide(region).is_none() {
                self.widen(fib, region);
            }
        }
        old
    }

    /// Removes a route, and returns its value.
    pub(super) fn remove(&mut self, fib: &Fib<V>, prefix: &Prefix<A>) -> Option<V> {
        let key = Key::from(prefix);
        let old = self.table.remove(prefix)?;
        self.publish(fib, prefix, &key, None);
        let region = first_slot(key.word()) as usize;
        if prefix.len() > STRIDE {
            self.counts[region] = self.counts[region].saturating_sub(1);
            if self.counts[region] < NARROW_BELOW && fib.wide(region).is_some() {
                self.narrow(fib, region);
            }
        }
        Some(old)
    }

    /// Takes the memory that was replaced. Blocks are deferred when there are enough of them.
    pub(super) fn take_retired(&mut self) -> Retired<V> {
        Retired { blocks: self.space.take_batch(), memory: core::mem::take(&mut self.memory) }
    }

    /// Returns the bytes allocated for the routes, without the forwarding table.
    pub(super) fn allocation_size(&self) -> usize {
        self.table.allocation_size() + self.routes.allocation_size() + self.space.allocation_size()
    }

    /// Replaces the state by another one, whose forwarding table has replaced this one.
    pub(super) fn replace(&mut self, new: Self, old_fib: NonNull<Fib<V>>, bytes: usize) -> Self {
        let mut old = core::mem::replace(self, new);
        self.memory.append(&mut old.memory);
        self.memory.push(Memory::Fib(old_fib, bytes));
        old
    }

    /// Makes a change of a route visible.
    fn publish(&mut self, fib: &Fib<V>, prefix: &Prefix<A>, key: &Key<A>, value: Option<V>) {
        let route = header_of(key, prefix.len());
        let is_wide = fib.wide(first_slot(route.bits) as usize).is_some();
        if route.len <= STRIDE || is_wide && route.len <= WIDE_END {
            self.publish_route(fib, prefix, route, value);
        } else {
            self.publish_node(fib, key, route);
        }
    }

    /// Makes a change of a node visible, by one store.
    fn publish_node(&mut self, fib: &Fib<V>, key: &Key<A>, route: RouteHeader) {
        let (cell, pos) = fib.cell(key.word());
        let word = cell.load();
        let mut blocks = Blocks { arena: &fib.arena, space: &mut self.space };
        let mut builder = Builder {
            blocks: &mut blocks,
            key,
            end: node_pos(route.len),
            opened: Vec::new(),
            kept: Vec::new(),
        };
        let node = node_at(&self.table, key.word(), pos);
        let node = node.map_or(NONE, |node| builder.changed(node, pos, Former::of(word.node)));
        cell.set_node(Word { node, ..word }, fib.header(node));
        builder.retire_former::<V>(word.node, pos);
    }

    /// Makes a change of a route visible that is a block of its own, by one store for each word.
    fn publish_route(
        &mut self,
        fib: &Fib<V>,
        prefix: &Prefix<A>,
        route: RouteHeader,
        value: Option<V>,
    ) {
        let mut blocks = Blocks { arena: &fib.arena, space: &mut self.space };
        let Some(value) = value else {
            let Some(old) = self.routes.remove(prefix) else { return };
            let above = self.routes.covering(prefix).last().map_or(NONE, |(_, &id)| id);
            // Always, unless the address type is inconsistent.
            let covers = above != NONE && fib.route(above).0.covers(fib.route(old).0);
            return self.replace_route(fib, old, if covers { above } else { NONE });
        };
        let new = blocks.route(route, value);
        if let Some(old) = self.routes.insert(*prefix, new) {
            // Always, unless the address type is inconsistent.
            if fib.route(old).0 == route {
                return self.replace_route(fib, old, new);
            }
            self.replace_route(fib, old, NONE);
        }
        each_cell(fib, route, |cell| {
            let word = cell.load();
            if word.route == NONE || word.len < route.len {
                cell.set_route(Word { route: new, len: route.len, ..word });
            }
        });
    }

    /// Replaces a route in the words that have it.
    fn replace_route(&mut self, fib: &Fib<V>, old: u32, new: u32) {
        let len = if new == NONE { 0 } else { fib.route(new).0.len };
        each_cell(fib, fib.route(old).0, |cell| {
            let word = cell.load();
            if word.route == old {
                cell.set_route(Word { route: new, len, ..word });
            }
        });
        Blocks { arena: &fib.arena, space: &mut self.space }.retire_route::<V>(old);
    }

    /// Makes a region wide, whose routes do not change.
    fn widen(&mut self, fib: &Fib<V>, region: usize) {
        let narrow = fib.regions[region].narrow.load();
        let mut words = alloc::vec![Word { node: NONE, ..narrow }; WIDTH];
        let mut opened = Vec::new();
        self.blocks_below(fib, narrow.node, &mut opened, &mut words);
        let covered: Vec<_> = self.table.covered(&prefix_of(region)).collect();
        let mut blocks = Blocks { arena: &fib.arena, space: &mut self.space };
        for (prefix, &value) in covered {
            let route = header_of(&Key::from(&prefix), prefix.len());
            let is_here = first_slot(route.bits) as usize == region;
            if is_here && (STRIDE + 1..=WIDE_END).contains(&route.len) {
                let id = blocks.route(route, value);
                self.routes.insert(prefix, id);
                let count = WIDTH >> (route.len - STRIDE);
                // Longer ones follow shorter ones.
                words[slot_in_wide(route.bits)..][..count].iter_mut().for_each(|word| {
                    (word.route, word.len) = (id, route.len);
                });
            }
        }
        let slot = |word: Word| Slot::new(word, fib.header(word.node));
        let wide: Box<[Slot]> = words.into_iter().map(slot).collect();
        let wide = Box::into_raw(wide).cast::<Wide>();
        // Release: pairs with the Acquire of readers; the words are complete.
        fib.regions[region].wide.store(wide, Ordering::Release);
        let mut blocks = Blocks { arena: &fib.arena, space: &mut self.space };
        opened.into_iter().for_each(|id| blocks.retire_node::<V>(id));
    }

    /// Finds the blocks of the words of a region, given that of its narrow word, and those above
    /// them.
    fn blocks_below(&self, fib: &Fib<V>, top: u32, opened: &mut Vec<u32>, words: &mut [Word]) {
        if top == NONE {
            return;
        }
        if let [word] = words {
            word.node = top;
            return;
        }
        opened.push(top);
        let block = fib.block(top);
        let parts = words.chunks_mut(words.len() >> STRIDE);
        for (slot, part) in (0..).zip(parts) {
            // SAFETY: there are no paths above the words of a wide region.
            if unsafe { block.header() }.has_child(slot) {
                // SAFETY: it has the child.
                self.blocks_below(fib, unsafe { block.child(slot) }, opened, part);
            }
        }
    }

    /// Makes a region narrow, whose routes do not change.
    fn narrow(&mut self, fib: &Fib<V>, region: usize) {
        let Some(wide) = fib.wide(region) else { return };
        let bits = (region as u64) << (u64::BITS - STRIDE);
        let covered: Vec<_> =
            self.routes.covered(&prefix_of(region)).map(|(prefix, &id)| (prefix, id)).collect();
        let is_own = |id: u32| {
            let route = fib.route(id).0;
            route.len > STRIDE && first_slot(route.bits) as usize == region
        };
        let (own, _): (Vec<_>, Vec<_>) = covered.into_iter().partition(|&(_, id)| is_own(id));
        for (prefix, _) in &own {
            self.routes.remove(prefix);
        }
        let mut blocks = Blocks { arena: &fib.arena, space: &mut self.space };
        let node = node_at(&self.table, bits, STRIDE).map_or(NONE, |node| blocks.join(node, wide));
        let cell = &fib.regions[region].narrow;
        let above = self.routes.covering(&prefix_of(region)).last();
        let here = RouteHeader { bits, len: STRIDE };
        let route = above.map_or(NONE, |(_, &id)| id);
        // Always, unless the address type is inconsistent.
        let covers = route != NONE && fib.route(route).0.covers(here);
        let route = if covers { route } else { NONE };
        let len = if covers { fib.route(route).0.len } else { 0 };
        cell.set_node(Word { node, route, len }, fib.header(node));
        let wide = fib.regions[region].wide.load(Ordering::Relaxed);
        // Release: pairs with the Acquire of readers; the narrow word is current.
        fib.regions[region].wide.store(core::ptr::null_mut(), Ordering::Release);
        let mut blocks = Blocks { arena: &fib.arena, space: &mut self.space };
        own.into_iter().for_each(|(_, id)| blocks.retire_route::<V>(id));
        self.memory.extend(NonNull::new(wide).map(Memory::Wide));
    }
}

impl Blocks<'_> {
    /// Returns a block for the node of a region, with the blocks of the words of a wide table.
    fn join<V: Copy>(&mut self, node: NodeRef<'_, V>, words: &[Slot]) -> u32 {
        if let [word] = words {
            return match word.load().node {
                NONE => self.copy_all(node),
                block => block,
            };
        }
        let (inner, outer) = node.bits();
        let header = Header { inner, outer, branches: node.branches() };
        let parts = (0..).zip(words.chunks(words.len() >> STRIDE));
        let children: Vec<u32> =
            parts.filter_map(|(slot, words)| Some(self.join(node.child(slot)?, words))).collect();
        self.node(header, node.values(), &children)
    }
}

/// Returns the prefix of a region.
fn prefix_of<A: Address>(region: usize) -> Prefix<A> {
    let zero = A::from_windows(|_| 0);
    let address = with_bits(&zero, 0, (region as u64) << (u64::BITS - STRIDE));
    Prefix::new(address, STRIDE).unwrap_or_else(|_| Prefix::default_route())
}
