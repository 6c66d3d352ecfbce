//! Updates: the methods of writers.
//!
//! ```text
//!     pin │ limit │ lock │ change the table, publish │ unlock │ defer what was replaced
//! ```
//!
//! The pin and the collector run closures of others, which may write here: so not under the lock.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;

use crossbeam_epoch::Guard;

use super::fib::Fib;
use super::writer::{Retired, Writer};
use super::{ConcurrentRoutes, State};
use crate::concurrent::error::WouldExceed;
use crate::concurrent::garbage::help;
use crate::concurrent::lock::LockGuard;
use crate::concurrent::sync::Ordering;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;

/// Updates that are made under one lock. Other writers wait for them.
const STEP: usize = 64;

/// The cost of retiring in the collector: 64 functions of 32 bytes, one of them used.
const OVERHEAD: usize = 2304;

impl<A: Address, V: Copy> ConcurrentRoutes<A, V> {
    /// Announces a route, or replaces its value. Returns the previous value.
    ///
    /// # Errors
    ///
    /// If readers have delayed the reclamation of more bytes than the limit. Nothing has changed. A
    /// thread that receives this error and holds a pin should repin it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::<u8, char>::new();
    /// assert_eq!(routes.insert(Prefix::new(0x40, 2)?, 'a')?, None);
    /// assert_eq!(routes.insert(Prefix::new(0x40, 2)?, 'b')?, Some('a'));
    /// assert_eq!(routes.pin().lookup(&0x41).unwrap().1, &'b');
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(
        &self,
        prefix: Prefix<A>,
        value: V,
    ) -> Result<Option<V>, WouldExceed<(Prefix<A>, V)>> {
        let insert = |writer: &mut Writer<A, V>, fib: &Fib<V>| writer.insert(fib, prefix, value);
        self.write(insert).map_err(|error| error.map(|()| (prefix, value)))
    }

    /// Withdraws a route. Returns its value, if it existed.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// assert_eq!(routes.remove(&Prefix::new(0x40, 2)?)?, Some('a'));
    /// assert_eq!(routes.remove(&Prefix::new(0x40, 2)?)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&self, prefix: &Prefix<A>) -> Result<Option<V>, WouldExceed<Prefix<A>>> {
        let remove = |writer: &mut Writer<A, V>, fib: &Fib<V>| writer.remove(fib, prefix);
        self.write(remove).map_err(|error| error.map(|()| *prefix))
    }

    /// Announces and withdraws (no value) several routes, in their order, each visible at once.
    ///
    /// Other writers may make updates in between.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), with the updates that have not been made: the first ones
    /// have been. There is no limit to their number.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = ConcurrentRoutes::from_iter([(long, 'a')]);
    /// routes.apply([(long, None), (short, Some('b'))]).unwrap();
    /// assert!(routes.to_table().iter().eq([(short, &'b')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[expect(clippy::type_complexity, reason = "what is refused is a list of what came in")]
    pub fn apply(
        &self,
        updates: impl IntoIterator<Item = (Prefix<A>, Option<V>)>,
    ) -> Result<(), WouldExceed<Vec<(Prefix<A>, Option<V>)>>> {
        let mut updates: Vec<_> = updates.into_iter().collect();
        let mut made = 0;
        while made < updates.len() {
            let step = &updates[made..updates.len().min(made + STEP)];
            let change = |writer: &mut Writer<A, V>, fib: &Fib<V>| {
                for (prefix, value) in step {
                    match *value {
                        Some(value) => writer.insert(fib, *prefix, value),
                        None => writer.remove(fib, prefix),
                    };
                }
            };
            let result = self.write(change);
            if let Err(error) = result {
                updates.drain(..made);
                return Err(error.map(|()| updates));
            }
            made += step.len();
        }
        Ok(())
    }

    /// Withdraws the routes for which `keep` returns false, in order and in steps.
    ///
    /// `keep` runs without a lock, for the routes of one moment. A route that is announced
    /// meanwhile stays; one that is replaced meanwhile is withdrawn.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert): the first of these routes have been withdrawn, and another
    /// call withdraws the others.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes: ConcurrentRoutes<u8, u8> =
    ///     (0..9).map(|at| (Prefix::host(at), at % 3)).collect();
    /// // The routes of a peer.
    /// routes.retain(|_, &peer| peer != 2).unwrap();
    /// assert_eq!(routes.len(), 6);
    /// ```
    pub fn retain(
        &self,
        mut keep: impl FnMut(&Prefix<A>, &V) -> bool,
    ) -> Result<(), WouldExceed<()>> {
        let mut listed: Vec<(Prefix<A>, V)> = Vec::with_capacity(self.len());
        let table = self.writer.lock();
        listed.extend(table.writer.table.iter().map(|(prefix, &value)| (prefix, value)));
        drop(table);
        let withdrawn = listed.into_iter().filter(|(prefix, value)| !keep(prefix, value));
        self.apply(withdrawn.map(|(prefix, _)| (prefix, None))).map_err(|error| error.map(drop))
    }

    /// Withdraws all routes, at once: see [`replace`](Self::replace).
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), ())]);
    /// routes.clear().unwrap();
    /// assert!(routes.is_empty());
    /// ```
    pub fn clear(&self) -> Result<(), WouldExceed<()>> {
        self.replace(RouteTable::new()).map(drop).map_err(|error| error.map(drop))
    }

    /// Replaces all routes by those of a table, at once: a lookup answers from the former ones or
    /// from these. Returns the former ones. O(routes), most of it without the lock.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), with the table.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix, RouteTable};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), 'a')]);
    /// let former = routes.replace(RouteTable::from([(Prefix::host(8), 'b')])).unwrap();
    /// assert_eq!((former.len(), routes.get(&Prefix::host(8))), (1, Some('b')));
    /// assert!(routes.pin().lookup(&7).is_none());
    /// ```
    #[expect(clippy::result_large_err, reason = "what is refused is what came in")]
    pub fn replace(
        &self,
        table: RouteTable<A, V>,
    ) -> Result<RouteTable<A, V>, WouldExceed<RouteTable<A, V>>> {
        let pin = crossbeam_epoch::pin();
        if let Err(error) = self.admit(&pin) {
            return Err(error.map(|()| table));
        }
        let (new, fib) = Writer::new(table);
        let mut state = self.writer.lock();
        let old = self.swap_in(&mut state, new, fib);
        // All of it is new.
        state.is_dirty = false;
        let retired = state.writer.take_retired();
        drop(state);
        self.defer(retired, &pin);
        Ok(old.table)
    }

    /// Releases the memory of removed routes: recomputes what readers access. O(routes), with
    /// the lock of the writers.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes: ConcurrentRoutes<u32, u8> =
    ///     (0..9999).map(|at| (Prefix::host(at << 8), 7)).collect();
    /// let before = routes.allocation_size();
    /// routes.retain(|prefix, _| prefix.address() == 0).unwrap();
    /// routes.shrink_to_fit().unwrap();
    /// assert!(routes.allocation_size() < before / 2);
    /// ```
    pub fn shrink_to_fit(&self) -> Result<(), WouldExceed<()>> {
        let pin = crossbeam_epoch::pin();
        self.admit(&pin)?;
        let mut state = self.writer.lock();
        self.rebuild(&mut state);
        state.writer.table.shrink_to_fit();
        let retired = state.writer.take_retired();
        drop(state);
        self.defer(retired, &pin);
        Ok(())
    }

    /// Defers all replaced blocks to the collector, also if they are few, and helps it to free what
    /// no pin protects.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), 'a')]);
    /// routes.insert(Prefix::host(7), 'b').unwrap();
    /// assert_eq!(routes.garbage(), 0); // not deferred yet, as it is little
    /// routes.flush();
    /// ```
    pub fn flush(&self) {
        let pin = crossbeam_epoch::pin();
        let mut state = self.writer.lock();
        let retired = Retired { blocks: state.writer.space.take_all(), memory: Vec::new() };
        drop(state);
        self.defer(retired, &pin);
        help(&pin);
    }

    /// Makes a change under the lock, unless there is too much garbage.
    fn write<R>(
        &self,
        change: impl FnOnce(&mut Writer<A, V>, &Fib<V>) -> R,
    ) -> Result<R, WouldExceed<()>> {
        let pin = crossbeam_epoch::pin();
        self.admit(&pin)?;
        let mut state = self.writer.lock();
        if state.is_dirty {
            // The panic may have left nodes without routes.
            let routes = state.writer.table.iter().map(|(prefix, &value)| (prefix, value));
            state.writer.table = routes.collect();
            self.rebuild(&mut state);
        }
        state.is_dirty = true;
        let result = change(&mut state.writer, self.fib());
        state.is_dirty = false;
        // Release: pairs with the Acquire in `len`.
        self.len.store(state.writer.table.len(), Ordering::Release);
        let retired = state.writer.take_retired();
        drop(state);
        self.defer(retired, &pin);
        Ok(result)
    }

    /// Returns an error if there is too much garbage, of which the collector frees none.
    #[inline]
    fn admit(&self, pin: &Guard) -> Result<(), WouldExceed<()>> {
        let garbage = &self.garbage;
        if !garbage.is_above_limit() || garbage.reduce(pin, || garbage.is_above_limit()) {
            return Ok(());
        }
        Err(WouldExceed { refused: (), retired: garbage.retired(), limit: garbage.limit })
    }

    /// Recomputes the forwarding table, with the routes of the writers.
    fn rebuild(&self, state: &mut LockGuard<'_, State<A, V>>) {
        let table = core::mem::take(&mut state.writer.table);
        let (new, fib) = Writer::new(table);
        self.swap_in(state, new, fib);
        state.is_dirty = false;
    }

    /// Publishes another forwarding table, and returns the former state.
    fn swap_in(
        &self,
        state: &mut LockGuard<'_, State<A, V>>,
        new: Writer<A, V>,
        fib: Box<Fib<V>>,
    ) -> Writer<A, V> {
        let bytes = self.fib().allocation_size();
        // Release: pairs with the Acquire of readers; the table is complete.
        let old = self.fib.swap(Box::into_raw(fib), Ordering::AcqRel);
        // Release: pairs with the Acquire in `len`.
        self.len.store(new.table.len(), Ordering::Release);
        let old = NonNull::new(old).expect("there is always a forwarding table");
        state.writer.replace(new, old, bytes)
    }

    /// Defers to the collector what was replaced under this pin.
    fn defer(&self, retired: Retired<V>, pin: &Guard) {
        if let Some(blocks) = retired.blocks {
            // Release: pairs with the Acquire of the writer; all reads have happened before.
            let free = move || blocks.is_free.store(true, Ordering::Release);
            // SAFETY: it sets a shared flag.
            unsafe { self.garbage.defer(blocks.bytes + OVERHEAD, pin, free) };
        }
        for memory in retired.memory {
            let bytes = memory.bytes() + OVERHEAD;
            // SAFETY: no reader accesses it after all pins that exist now; it is retired once.
            let free = move || unsafe { memory.free() };
            // SAFETY: values are `Copy`: memory with them can be freed by any thread at any time.
            unsafe { self.garbage.defer(bytes, pin, free) };
        }
    }
}
