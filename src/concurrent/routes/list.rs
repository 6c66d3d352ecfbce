//! Lists of all routes, and single ones by their prefix, with the routes that cover it: under the
//! lock of the writers.
#![allow(unsafe_code)]

use alloc::vec::{self, Vec};

use super::ConcurrentRoutes;
use super::block::Block;
use super::edit::{Editor, State, short_prefix};
use super::slots::{END, Slots, load};
use crate::concurrent::pinned::{Guard, Pinned, Protect};
use crate::key::bits::{Address, with_bits};
use crate::key::prefix::Prefix;
use crate::routes::stride::{PrefixIndex, STRIDE, node_pos, slot_of};

/// Appends the routes of a block and of those below it.
pub(super) fn append<'p, A: Address, V>(
    root: Block<'p, V>,
    word: u64,
    routes: &mut Vec<(Prefix<A>, &'p V)>,
) {
    let zero = Prefix::<A>::default_route().address();
    let mut open = Vec::from([(root, END, with_bits(&zero, 0, word))]);
    while let Some((block, pos, address)) = open.pop() {
        routes.extend(block.routes().filter_map(|(index, value)| {
            let at = with_bits(&address, pos, index.bits());
            Some((Prefix::new(at, pos + index.level()).ok()?, value))
        }));
        open.extend(block.children().map(|(slot, child)| {
            let bits = PrefixIndex::covering(slot, STRIDE).bits();
            (child, pos + STRIDE, with_bits(&address, pos, bits))
        }));
    }
}

/// Calls a function with each block of a slot that has longer routes, and the first bits.
///
/// # Safety
///
/// The lock of the writers is held; and it, or a pin, during `'p`.
pub(super) unsafe fn each_slot<'p, V: 'p>(
    slots: &Slots<V>,
    mut each: impl FnMut(u64, Block<'p, V>),
) {
    for part in Slots::<V>::parts() {
        let Some(group) = slots.group(part) else { continue };
        // SAFETY: by the contract.
        for (at, cell) in (0_u64..).zip(unsafe { group.slots() }) {
            // SAFETY: as above.
            let block = unsafe { load(cell) };
            each((part as u64) << (64 - STRIDE) | at << (64 - END), block);
        }
    }
}

impl<'t, A: Address, V, G> Pinned<'t, ConcurrentRoutes<A, V>, G> {
    /// Returns all routes of one state, in order.
    ///
    /// Takes the lock of the writers, lists the routes under it, and sorts them: O(routes) of time
    /// and memory. Without the lock, they would not be of one state; and they are stored in two
    /// places, of which neither is in order: those of up to 18 bits, which many slots inherit, and
    /// longer ones in blocks.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, char> = [(Prefix::host(7), 'a')].into_iter().collect();
    /// let pinned = routes.pin();
    /// routes.clear().unwrap();
    /// assert_eq!((pinned.lookup(&7), pinned.iter().next()), (None, None));
    /// routes.insert(Prefix::host(8), 'b').unwrap();
    /// let table: RouteTable<_, _> = pinned.iter().map(|(at, &value)| (at, value)).collect();
    /// assert_eq!(table, RouteTable::from([(Prefix::host(8), 'b')]));
    /// ```
    pub fn iter<'p, 'r>(&'p self) -> vec::IntoIter<(Prefix<A>, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let mut routes = {
            let state = self.of.state.lock();
            self.of.list(&state, self.guard.protect())
        };
        routes.sort_unstable_by_key(|(prefix, _)| *prefix);
        routes.into_iter()
    }

    /// Returns the value of a prefix. Takes the lock of the writers for up to 18 bits.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// assert_eq!(routes.pin().get(&Prefix::new(0x40, 2)?), Some(&'a'));
    /// assert_eq!(routes.pin().get(&Prefix::new(0x40, 3)?), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get<'p, 'r>(&'p self, prefix: &Prefix<A>) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let _pinned_for_r: &'r Guard = self.guard.protect();
        let (address, len) = (prefix.address(), prefix.len());
        let word = address.window(0);
        if len <= END {
            let state = self.of.state.lock();
            let shared = *state.short.get(&Prefix::of(&((word >> 32) as u32), len))?;
            // SAFETY: the pin lasts for 'r.
            return unsafe { shared.block() }.inherited_value();
        }
        // SAFETY: the pin lasts for 'r.
        let mut block: Block<'r, V> = unsafe { self.of.slots.block(word) };
        for pos in (END..node_pos(len)).step_by(STRIDE as usize) {
            block = block.child(slot_of(&address, pos))?;
        }
        block.get(PrefixIndex::of(prefix, node_pos(len)))
    }
}

impl<A: Address, V> ConcurrentRoutes<A, V> {
    /// Returns all routes, in any order. The caller holds the lock.
    fn list<'r>(&'r self, state: &State<V>, _guard: &'r Guard) -> Vec<(Prefix<A>, &'r V)> {
        let mut routes = Vec::with_capacity(state.len);
        for (prefix, shared) in &state.short {
            // SAFETY: the pin lasts for 'r.
            let block = unsafe { shared.block() };
            let word = u64::from(prefix.address()) << 32;
            let address = with_bits(&Prefix::<A>::default_route().address(), 0, word);
            let prefix = Prefix::new(address, prefix.len()).ok();
            routes.extend(prefix.zip(block.inherited_value()));
        }
        // SAFETY: the lock is held, and the pin lasts for 'r.
        unsafe {
            each_slot(&self.slots, |word, block| append(block, word, &mut routes));
        }
        routes
    }
}

/// A route, and the one that covers it.
pub(in crate::concurrent) struct CoveringValues<'p, V> {
    /// The value of the prefix itself.
    pub(in crate::concurrent) own: Option<&'p V>,
    /// The value of the longest shorter prefix that covers it.
    pub(in crate::concurrent) upper: Option<&'p V>,
}

impl<'p, V> Block<'p, V> {
    /// Returns the value of the longest prefix that covers an index, and is not longer.
    fn longest_to(self, index: u32) -> Option<&'p V> {
        let indices = core::iter::successors(Some(index), |index| Some(index / 2));
        let mut indices = indices.take_while(|&index| index > 0).map(u64::from);
        indices.find_map(|index| self.get(PrefixIndex::new(index)))
    }
}

impl<V> Editor<'_, V> {
    /// Returns the routes that cover a prefix.
    pub(super) fn covering<A: Address>(&self, prefix: &Prefix<A>) -> CoveringValues<'_, V> {
        let (address, len) = (prefix.address(), prefix.len());
        let word = address.window(0);
        if len <= END {
            return self.covering_short(word, len);
        }
        let mut block = self.block(word);
        let mut upper = block.inherited_value();
        for pos in (END..node_pos(len)).step_by(STRIDE as usize) {
            let slot = slot_of(&address, pos);
            upper = block.longest_to(PrefixIndex::covering(slot, STRIDE).get()).or(upper);
            let Some(child) = block.child(slot) else { return CoveringValues { own: None, upper } };
            block = child;
        }
        let index = PrefixIndex::of(prefix, node_pos(len));
        let upper = block.longest_to(index.get() / 2).or(upper);
        CoveringValues { own: block.get(index), upper }
    }

    fn covering_short(&self, word: u64, len: u32) -> CoveringValues<'_, V> {
        let (mut own, mut upper) = (None, None);
        for (prefix, shared) in self.state.short.covering(&short_prefix(word, len)) {
            // SAFETY: by the contract of `new`.
            let value = unsafe { shared.block() }.inherited_value();
            *(if prefix.len() == len { &mut own } else { &mut upper }) = value;
        }
        CoveringValues { own, upper }
    }
}
