//! Construction, limits and pins of `ConcurrentRoutes`.

use core::marker::PhantomData;

use super::ConcurrentRoutes;
use super::edit::State;
use super::slots::Slots;
use crate::concurrent::garbage::Garbage;
use crate::concurrent::guard::Guard;
use crate::concurrent::lock::Lock;
use crate::concurrent::pinned::Pinned;
use crate::concurrent::sync::{AtomicUsize, Ordering};
use crate::key::bits::Address;
use crate::raw::bit_ops::detect;

impl<A: Address, V> ConcurrentRoutes<A, V> {
    /// Creates a table without routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentRoutes;
    ///
    /// let routes = ConcurrentRoutes::<u32, char>::new();
    /// assert!(routes.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::of(Slots::new(), State::new())
    }

    pub(super) fn of(slots: Slots<V>, state: State<V>) -> Self {
        Self {
            len: AtomicUsize::new(state.len),
            slots,
            state: Lock::new(state),
            garbage: Garbage::new(),
            is_fast: detect(),
            addresses: PhantomData,
        }
    }

    /// Sets the limit on garbage, which is retired and not freed yet, in bytes, and the patience.
    ///
    /// A writer that finds more than `bytes` helps the collector. If readers delay it, the writer
    /// yields and helps again, `patience` times; then it returns
    /// [`Refusal`](crate::concurrent::Refusal). It never waits without bound: the reader
    /// that delays the collector may be the thread itself. By default there are 64 MiB, and no
    /// patience.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u8, u32>::new().with_garbage_limit(4096, 0);
    /// let reader = routes.pin();
    /// let insert = |value| routes.insert(Prefix::host(7), value);
    /// // While this reader holds its pin, nothing that it may access is freed.
    /// let refused = (0..).find_map(|value| insert(value).err()).unwrap();
    /// assert_eq!(reader.lookup(&7).unwrap().1, &(refused.refused.1 - 1));
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.garbage.limit, self.garbage.patience) = (bytes, patience);
        self
    }

    /// Returns the limit on garbage, in bytes.
    pub const fn garbage_limit(&self) -> usize {
        self.garbage.limit
    }

    /// Returns the bytes of garbage: blocks that are retired and not freed yet, with the memory
    /// that the collector needs for them, and without memory that values own.
    pub fn garbage(&self) -> usize {
        self.garbage.retired()
    }

    /// Pins the table for lookups.
    ///
    /// Blocks that are retired during a pin are freed after it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x41, 0x80], |i, route| found[i] = route);
    /// assert_eq!(found.map(|route| route.map(|(_, &value)| value)), [Some('a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn pin(&self) -> Pinned<'_, Self> {
        Pinned::new(self)
    }

    /// Returns the view of a pin under a guard of the thread that other structures share: see
    /// [`concurrent::pin`](crate::concurrent::pin()). Costs nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{ConcurrentRoutes, pin}};
    ///
    /// let here: ConcurrentRoutes<u8, char> = [(Prefix::host(7), 'a')].into_iter().collect();
    /// let there: ConcurrentRoutes<u16, char> = [(Prefix::host(9), 'b')].into_iter().collect();
    /// let guard = pin();
    /// assert_eq!(here.pinned(&guard).lookup(&7).unwrap().1, &'a');
    /// assert_eq!(there.pinned(&guard).lookup(&9).unwrap().1, &'b');
    /// ```
    #[inline]
    #[must_use]
    pub const fn pinned<'g>(&'g self, guard: &'g Guard) -> Pinned<'g, Self, &'g Guard> {
        Pinned::of(self, guard)
    }

    /// Returns the number of routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// assert_eq!(routes.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: pairs with the Release of writers: the updates it counts are visible.
        self.len.load(Ordering::Acquire)
    }

    /// Returns whether there is no route.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// assert!(!routes.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes allocated, without garbage and memory that values own. Waits for a writer.
    /// O(1), and one step for each chunk of memory of the short routes, and for each block that was
    /// freed since the last update.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u32, u32>::new();
    /// assert_eq!(routes.allocation_size(), 0);
    /// routes.insert(Prefix::host(7), 1).unwrap();
    /// assert!(routes.allocation_size() >= 4096 * 8); // the slots of the first six bits
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let mut state = self.state.lock();
        state.pool.return_freed(usize::MAX);
        state.bytes + state.pool.unused_bytes() + state.short.allocation_size()
    }
}
