//! Updates.
//!
//! ```text
//!     limit on garbage │ lock │ change, publish │ unlock │ retire, help the collector
//! ```
#![allow(unsafe_code)]

use alloc::vec::Vec;
use std::panic::resume_unwind;

use super::ConcurrentRoutes;
use super::edit::{Changed, Editor, Retired, State};
use super::list::CoveringValues;
use super::slots::Slots;
use crate::concurrent::collector::{self, Dropped, forget_panic};
use crate::concurrent::error::{Refusal, Refused};
use crate::concurrent::sync::Ordering;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::routes::RouteTable;

/// How often a writer above the limit pins again while it helps the collector: a pin stays in its
/// epoch, of which the collector needs three.
const PINS: usize = 3;

/// A table without readers.
pub(super) struct Unshared<V> {
    pub(super) slots: Slots<V>,
    pub(super) state: State<V>,
}

impl<V> Unshared<V> {
    fn take_all(&mut self) -> Retired<V> {
        // SAFETY: there is no other reference, and the state belongs to the slots.
        unsafe { Editor::new(&self.slots, &mut self.state) }.take_all()
    }
}

impl<V: Clone> Unshared<V> {
    /// Creates a table of these routes.
    pub(super) fn of<A: Address>(routes: impl IntoIterator<Item = (Prefix<A>, V)>) -> Self {
        let mut table = Self { slots: Slots::new(), state: State::new() };
        for (prefix, value) in routes {
            // SAFETY: there is no other reference, and the state belongs to the slots.
            let mut editor = unsafe { Editor::new(&table.slots, &mut table.state) };
            let Changed { retired, .. } = editor.change(&prefix, Some(value));
            // SAFETY: no thread has pinned the table.
            unsafe { retired.free() }.unwrap_or_else(|panic| resume_unwind(panic));
        }
        table
    }

    /// Returns the table for readers.
    pub(super) fn share<A: Address>(mut self) -> ConcurrentRoutes<A, V> {
        let slots = core::mem::replace(&mut self.slots, Slots::new());
        let state = core::mem::replace(&mut self.state, State::new());
        ConcurrentRoutes::of(slots, state)
    }
}

impl<V> Drop for Unshared<V> {
    fn drop(&mut self) {
        // SAFETY: there is no reader.
        let dropped = unsafe { self.take_all().free() };
        if !std::thread::panicking() {
            dropped.unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

impl<A: Address, V: Clone + Send + 'static> ConcurrentRoutes<A, V> {
    /// Announces a route, or replaces its value. Returns whether it is new.
    ///
    /// A route of up to 18 bits is announced to all blocks below it: with the routes of the
    /// Internet, a default route takes milliseconds, for which other writers wait, but no reader.
    ///
    /// # Errors
    ///
    /// If readers delay the reclamation of more garbage than the limit. Nothing has changed. A
    /// thread that receives this error and holds a pin should repin it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u8, char>::new();
    /// let pinned = routes.pin();
    /// assert_eq!(routes.insert(Prefix::new(0x40, 2)?, 'a'), Ok(true));
    /// assert_eq!(routes.insert(Prefix::new(0x40, 2)?, 'b'), Ok(false));
    /// assert_eq!(pinned.lookup(&0x41).unwrap().1, &'b');
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn insert(&self, prefix: Prefix<A>, value: V) -> Result<bool, Refusal<(Prefix<A>, V)>> {
        match self.admit() {
            Some(refusal) => Err(refusal.map(|()| (prefix, value))),
            None => Ok(!self.change(&prefix, Some(value))),
        }
    }

    /// Withdraws a route. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let prefix = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(prefix, 'a')].into_iter().collect();
    /// let pinned = routes.pin();
    /// let found = pinned.lookup(&0x41);
    /// assert_eq!((routes.remove(&prefix), routes.remove(&prefix)), (Ok(true), Ok(false)));
    /// assert_eq!((found, pinned.lookup(&0x41)), (Some((prefix, &'a')), None));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&self, prefix: &Prefix<A>) -> Result<bool, Refusal<Prefix<A>>> {
        match self.admit() {
            Some(refusal) => Err(refusal.map(|()| *prefix)),
            None => Ok(self.change(prefix, None)),
        }
    }

    /// Announces and withdraws (no value) several routes, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), with the updates that are not made, in their order.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes: ConcurrentRoutes<u8, char> = [(long, 'a')].into_iter().collect();
    /// // In this order there is always a route.
    /// routes.apply([(short, Some('b')), (long, None)]).unwrap();
    /// assert!(routes.pin().iter().eq([(short, &'b')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[expect(clippy::type_complexity, reason = "what is refused is a list of what came in")]
    pub fn apply(
        &self,
        updates: impl IntoIterator<Item = (Prefix<A>, Option<V>)>,
    ) -> Result<(), Refusal<Vec<(Prefix<A>, Option<V>)>>> {
        let mut updates = updates.into_iter();
        while let Some((prefix, value)) = updates.next() {
            if let Some(refusal) = self.admit() {
                let rest = core::iter::once((prefix, value)).chain(updates).collect();
                return Err(refusal.map(|()| rest));
            }
            self.change(&prefix, value);
        }
        Ok(())
    }

    /// Withdraws the routes for which `keep` returns false, one after the other. Returns their
    /// number.
    ///
    /// `keep` runs without a lock, for the routes of one state, in order. A route that is announced
    /// during the call stays. If another thread replaces a rejected route before its withdrawal,
    /// the new route is withdrawn.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert). Some routes are withdrawn then; repeat the call for the
    /// others.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, u8> =
    ///     (0..9).map(|at| (Prefix::host(at), at % 3)).collect();
    /// // The routes of a peer.
    /// assert_eq!(routes.retain(|_, &peer| peer != 2), Ok(3));
    /// assert_eq!(routes.len(), 6);
    /// ```
    pub fn retain(
        &self,
        mut keep: impl FnMut(Prefix<A>, &V) -> bool,
    ) -> Result<usize, Refusal<()>> {
        let withdrawn = |(prefix, value): (Prefix<A>, &V)| (!keep(prefix, value)).then_some(prefix);
        // The pin ends here: it would delay the collector.
        let withdrawn: Vec<_> = self.pin().iter().filter_map(withdrawn).collect();
        remove_each(withdrawn, |prefix| self.remove(prefix))
    }

    /// Withdraws all routes: see [`replace`](Self::replace).
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// routes.clear().unwrap();
    /// assert!(routes.is_empty());
    /// ```
    pub fn clear(&self) -> Result<(), Refusal<()>> {
        self.replace(RouteTable::new()).map_err(|refusal| refusal.map(drop))
    }

    /// Replaces all routes by the routes of a table. A lookup answers from the former routes or
    /// from the new routes, and addresses with the same first six bits change over together.
    ///
    /// The new table is made without the lock, which takes some tenths of a second for the routes
    /// of the Internet. An update that is made during this time is replaced, too.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert). The error has the table.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, char> = [(Prefix::host(7), 'a')].into_iter().collect();
    /// routes.replace(RouteTable::from([(Prefix::host(8), 'b')])).unwrap();
    /// assert!(routes.pin().iter().eq([(Prefix::host(8), &'b')]));
    /// ```
    #[expect(clippy::result_large_err, reason = "what is refused is what came in")]
    pub fn replace<M: Allocator + Clone>(
        &self,
        table: RouteTable<A, V, M>,
    ) -> Result<(), Refusal<RouteTable<A, V, M>>> {
        if let Some(refusal) = self.admit() {
            return Err(refusal.map(|()| table));
        }
        let mut other = Unshared::of(table);
        let mut state = self.state.lock();
        self.slots.exchange(&mut other.slots);
        core::mem::swap(&mut *state, &mut other.state);
        self.len.store(state.len, Ordering::Release);
        drop(state);
        self.retire(other.take_all());
        Ok(())
    }

    /// Returns a refusal if there is more garbage than the limit.
    pub(in crate::concurrent) fn admit(&self) -> Option<Refusal<()>> {
        let has_too_much = || self.garbage.is_above_limit();
        let is_reduced = || self.garbage.reduce(&collector::pin(), has_too_much);
        if !has_too_much() || (0..PINS).any(|_| is_reduced()) {
            return None;
        }
        let (retired, limit) = (self.garbage.retired(), self.garbage.limit);
        Some(Refusal { refused: (), reason: Refused::Garbage { retired, limit } })
    }

    /// Makes an update. Returns whether the route existed before.
    fn change(&self, prefix: &Prefix<A>, value: Option<V>) -> bool {
        self.edit(|editor| editor.change(prefix, value)).finish(self)
    }

    /// Makes an update, with a value that depends on the routes that cover the prefix, under the
    /// lock. The caller finishes it.
    pub(in crate::concurrent) fn change_with(
        &self,
        prefix: &Prefix<A>,
        value: impl FnOnce(&CoveringValues<'_, V>) -> Option<V>,
    ) -> Changed<V> {
        self.edit(|editor| {
            let value = value(&editor.covering(prefix));
            editor.change(prefix, value)
        })
    }

    fn edit(&self, edit: impl FnOnce(&mut Editor<'_, V>) -> Changed<V>) -> Changed<V> {
        let mut state = self.state.lock();
        // SAFETY: the lock is held, and the state belongs to the slots.
        let mut editor = unsafe { Editor::new(&self.slots, &mut state) };
        let changed = edit(&mut editor);
        self.len.store(state.len, Ordering::Release);
        changed
    }

    /// Frees blocks and groups that no slot names any more, as soon as no reader accesses them.
    fn retire(&self, retired: Retired<V>) {
        if retired.is_empty() {
            return;
        }
        // SAFETY: called by the collector when all pins have ended that exist now.
        let free = |retired: Retired<V>| forget_panic(unsafe { retired.free() });
        let (cost, pin) = (retired.cost(), collector::pin());
        // SAFETY: values may be dropped by any thread, at any time.
        unsafe { self.garbage.defer(cost, &pin, move || free(retired)) };
    }
}

impl<V: Clone + Send + 'static> Changed<V> {
    /// Frees the replaced blocks, after the lock is released. Returns whether the route existed
    /// before the change.
    pub(in crate::concurrent) fn finish<A: Address>(self, routes: &ConcurrentRoutes<A, V>) -> bool {
        routes.retire(self.retired);
        self.existed
    }
}

impl<A, V> Drop for ConcurrentRoutes<A, V> {
    fn drop(&mut self) {
        // SAFETY: there is no other reference, and the state belongs to the slots.
        let mut editor = unsafe { Editor::new(&self.slots, self.state.get_mut()) };
        // SAFETY: no pin of the table exists any more.
        let dropped: Dropped = unsafe { editor.take_all().free() };
        self.garbage.reduce_at_drop();
        if !std::thread::panicking() {
            dropped.unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

/// Withdraws routes, one after the other. Returns how many existed.
pub(in crate::concurrent) fn remove_each<A: Address>(
    prefixes: Vec<Prefix<A>>,
    remove: impl Fn(&Prefix<A>) -> Result<bool, Refusal<Prefix<A>>>,
) -> Result<usize, Refusal<()>> {
    let mut count = 0;
    for prefix in prefixes {
        count += usize::from(remove(&prefix).map_err(|refusal| refusal.map(drop))?);
    }
    Ok(count)
}
