//! Lists of all routes, and single ones by their prefix: under the lock of the writers.
#![allow(unsafe_code)]

use alloc::vec::{self, Vec};
use core::borrow::Borrow;

use super::block::Block;
use super::edit::State;
use super::pinned::PinnedRoutes;
use super::slots::{END, Slots, load};
use crate::concurrent::guard::Guard;
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

impl<A: Address, V, G: Borrow<Guard>> PinnedRoutes<'_, A, V, G> {
    /// Returns all routes of one state, in order.
    ///
    /// Takes the lock of the writers, and lists the routes under it: O(routes).
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
    pub fn iter(&self) -> vec::IntoIter<(Prefix<A>, &V)> {
        let mut routes = {
            let state = self.routes.state.lock();
            self.list(&state)
        };
        routes.sort_unstable_by_key(|(prefix, _)| *prefix);
        routes.into_iter()
    }

    /// Returns all routes, in any order. The caller holds the lock.
    fn list(&self, state: &State<V>) -> Vec<(Prefix<A>, &V)> {
        let mut routes = Vec::with_capacity(state.len);
        for (prefix, shared) in &state.short {
            // SAFETY: the pin is held as long as `self` is borrowed.
            let block = unsafe { shared.block() };
            let word = u64::from(prefix.address()) << 32;
            let address = with_bits(&Prefix::<A>::default_route().address(), 0, word);
            let prefix = Prefix::new(address, prefix.len()).ok();
            routes.extend(prefix.zip(block.inherited_value()));
        }
        // SAFETY: the lock is held, and a pin as long as `self` is borrowed.
        unsafe {
            each_slot(&self.routes.slots, |word, block| append(block, word, &mut routes));
        }
        routes
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
    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        let (address, len) = (prefix.address(), prefix.len());
        let word = address.window(0);
        if len <= END {
            let state = self.routes.state.lock();
            let shared = *state.short.get(&Prefix::of(&((word >> 32) as u32), len))?;
            // SAFETY: the pin is held as long as `self` is borrowed.
            return unsafe { shared.block() }.inherited_value();
        }
        // SAFETY: the pin is held as long as `self` is borrowed.
        let mut block: Block<'_, V> = unsafe { self.routes.slots.block(word) };
        for pos in (END..node_pos(len)).step_by(STRIDE as usize) {
            block = block.child(slot_of(&address, pos))?;
        }
        block.get(PrefixIndex::of(prefix, node_pos(len)))
    }
}
