//! Guards, the pins of a thread, and pinned structures: a structure and a guard.
//!
//! The thread's participant in the collector stays in the epoch of its first pin until the last one
//! ends: two of its pins that are repinned in turn would never advance, and would stop reclamation
//! in the whole process. So a [`Guard`] that is created while its thread is pinned, or ends and has
//! no participant any more, has one of its own, from a pool of the thread.
//!
//! ```text
//!     thread   pin() ──→ the thread's participant     epoch 7      repin ──→ epoch 8
//!              pin() ──→ one of the pool              epoch 7      repin ──→ epoch 8
//! ```
//!
//! The collector frees the garbage of an epoch when all participants have left that epoch. The
//! thread of a participant makes no difference to the collector, so the arguments for one pin per
//! thread hold for each guard.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cell::RefCell;
use core::fmt;
use core::ops::Deref;

use crossbeam_epoch::LocalHandle;

use super::collector::{self, help, is_freeing};
use super::sync::IS_CHECKED;

/// A pinned structure: a view with the methods that read and write.
///
/// It owns its guard, or borrows one of type `G = &Guard` that it shares with other structures: see
/// the `pin` and `pinned` methods of each. It dereferences to the structure.
///
/// References live as long as the guard: as a borrow of the pin that owns it, or as the borrowed
/// guard, so that a function may return them. Nothing that the pin has observed is dropped before
/// it ends or is [repinned](Self::repin): one that is held for long keeps garbage.
///
/// A pin is bound to its thread. It does not block writers, its own thread included.
///
/// # Example
///
/// ```
/// use flowtable::ConcurrentMap;
/// use flowtable::concurrent::{Guard, pin};
///
/// struct Names(ConcurrentMap<u32, String>);
///
/// impl Names {
///     fn get<'g>(&'g self, id: u32, guard: &'g Guard) -> Option<&'g str> {
///         self.0.pinned(guard).get(&id).map(String::as_str)
///     }
/// }
///
/// let names = Names(ConcurrentMap::from([(1, "one".to_owned())]));
/// let guard = pin();
/// let one = names.get(1, &guard);
/// names.0.pinned(&guard).remove(&1);
/// assert_eq!((one, names.get(1, &guard), names.0.len()), (Some("one"), None, 0));
/// ```
pub struct Pinned<'t, T, G = Guard> {
    pub(super) of: &'t T,
    pub(super) guard: G,
}

impl<'t, T> Pinned<'t, T> {
    #[inline]
    pub(super) fn new(of: &'t T) -> Self {
        Self { of, guard: pin() }
    }

    /// Ends the pin and begins a new pin, at a lower cost, which allows the collector to proceed.
    /// References of the former pin are invalid. Other pins of the thread stay as they are.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([(1, 'a'), (2, 'b')]);
    /// let mut pin = map.pin();
    /// for burst in [[1, 2], [2, 3]] {
    ///     pin.get_batch(&burst, |at, found| assert_eq!(found.is_some(), burst[at] < 3));
    ///     pin.repin();
    /// }
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.guard.repin();
    }

    /// Inserts all entries by `insert`, and pins again from time to time.
    ///
    /// # Panics
    ///
    /// If an insertion is refused.
    pub(super) fn insert_all<E, F: fmt::Display>(
        &mut self,
        entries: impl IntoIterator<Item = E>,
        insert: impl Fn(&Self, E) -> Result<(), F>,
    ) {
        for (nth, entry) in entries.into_iter().enumerate() {
            if let Err(error) = insert(self, entry) {
                panic!("{error}");
            }
            if nth % 32 == 31 {
                self.repin();
            }
        }
    }
}

impl<'t, 'g, T> Pinned<'t, T, &'g Guard> {
    #[inline]
    pub(super) const fn of(of: &'t T, guard: &'g Guard) -> Self {
        Self { of, guard }
    }
}

impl<T, G: Borrow<Guard>> Pinned<'_, T, G> {
    /// Returns the guard of the collector.
    #[inline]
    pub(super) fn epoch(&self) -> &crossbeam_epoch::Guard {
        self.guard.borrow().epoch()
    }
}

impl<T, G> Deref for Pinned<'_, T, G> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.of
    }
}

mod sealed {
    #[expect(unnameable_types, reason = "so that no other type implements it")]
    pub trait Sealed {}

    impl Sealed for super::Guard {}
    impl Sealed for &super::Guard {}
}

/// The guard of a [`Pinned`] structure: one that is borrowed for `'p` protects references for `'r`,
/// which is `'p` if the pin owns it, and its own lifetime if it is a `&Guard`.
pub trait Protect<'p, 'r>: Borrow<Guard> + sealed::Sealed {
    #[doc(hidden)]
    fn protect(&'p self) -> &'r Guard;
}

impl<'p: 'r, 'r> Protect<'p, 'r> for Guard {
    #[inline]
    fn protect(&'p self) -> &'r Guard {
        self
    }
}

impl<'p, 'g: 'r, 'r> Protect<'p, 'r> for &'g Guard {
    #[inline]
    fn protect(&'p self) -> &'r Guard {
        self
    }
}

/// The most participants that a thread keeps for later guards.
const MOST_SPARE: usize = 8;

std::thread_local! {
    /// The participants of guards that have ended.
    static SPARE: RefCell<Vec<LocalHandle>> = const { RefCell::new(Vec::new()) };
}

/// A pin of the current thread, for reads of any number of structures: see [`pin`].
///
/// It is bound to its thread:
///
/// ```compile_fail,E0277
/// fn is_send<T: Send>(_: T) {}
/// is_send(flowtable::concurrent::pin());
/// ```
///
/// A reference that was read through it must not be used after [`repin`](Self::repin):
///
/// ```compile_fail,E0502
/// let map = flowtable::ConcurrentMap::from([(1, 'a')]);
/// let mut guard = flowtable::concurrent::pin();
/// let view = map.pinned(&guard);
/// let value = view.get(&1).unwrap();
/// guard.repin();
/// assert_eq!(value, &'a');
/// ```
#[must_use = "what is read is protected while the guard exists"]
pub struct Guard {
    /// Dropped before the participant is returned to the pool.
    epoch: crossbeam_epoch::Guard,
    /// Returned to the pool when it is dropped.
    _participant: Participant,
}

/// The participant of a guard. `None` stands for the participant of the thread.
struct Participant(Option<LocalHandle>);

impl Drop for Participant {
    fn drop(&mut self) {
        // An execution of a checker has participants of its own, and all end with it.
        if let Some(handle) = self.0.take().filter(|_| !IS_CHECKED) {
            // A thread that ends has no pool any more; then the participant is unregistered.
            let _ = SPARE.try_with(|pool| {
                let mut pool = pool.borrow_mut();
                // All participants are read before an epoch ends.
                if pool.len() < MOST_SPARE {
                    pool.push(handle);
                }
            });
        }
    }
}

/// Pins the current thread: one guard for all concurrent structures that it reads.
///
/// It costs as much as the pin of one structure: about a lookup that hits the cache. Hold it for a
/// burst of packets, and [`repin`](Guard::repin) it before the next: see the example of the
/// [module](super). A thread that is pinned already gets a guard that protects and advances on its
/// own, at a higher cost.
///
/// # Example
///
/// ```
/// use flowtable::ConcurrentMap;
/// use flowtable::concurrent::pin;
///
/// let (names, ports) = (ConcurrentMap::from([(1, "one")]), ConcurrentMap::from([("one", 80)]));
/// let guard = pin();
/// let (names, ports) = (names.pinned(&guard), ports.pinned(&guard));
/// assert_eq!(names.get(&1).and_then(|name| ports.get(name)), Some(&80));
/// ```
#[inline]
pub fn pin() -> Guard {
    // The pins of destructors are short, and the thread's own participant appends the garbage of
    // destructors to the queue of the collector. A participant of the pool would keep that garbage.
    if collector::is_pinned() == Some(false) || is_freeing() {
        return Guard { epoch: collector::pin(), _participant: Participant(None) };
    }
    pin_again()
}

/// Pins a participant of the pool, or a new one.
#[cold]
fn pin_again() -> Guard {
    let spare = SPARE.try_with(|pool| pool.borrow_mut().pop()).ok().flatten();
    let handle = spare.unwrap_or_else(collector::register);
    Guard { epoch: collector::pin_of(&handle), _participant: Participant(Some(handle)) }
}

impl Guard {
    /// Ends the pin and begins a new pin, which allows the collector to proceed. Data that was read
    /// before must be read again. Other guards of the thread stay as they are.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, concurrent::pin};
    ///
    /// let map = ConcurrentMap::new();
    /// let mut guard = pin();
    /// for round in 0..3 {
    ///     map.pinned(&guard).insert("key", round).unwrap();
    ///     guard.repin();
    ///     assert_eq!(map.pinned(&guard).get("key"), Some(&round));
    /// }
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        // Not crossbeam's `repin`, which has no fence between the store of the epoch and the reads
        // after it: the pin that begins here has one, like every other pin.
        self.epoch.repin_after(collector::begin_pin);
    }

    /// Helps the collector to free garbage that no guard protects any more, as writers do. This
    /// guard protects garbage that it may have observed.
    ///
    /// The last few entries that were removed from a `ConcurrentMap` wait for more in the map: the
    /// [`flush`](super::Pinned::flush) of its pins includes them.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::{ConcurrentRoutes, pin};
    /// use std::{net::Ipv4Addr, sync::Arc};
    ///
    /// let (routes, via) = (ConcurrentRoutes::<Ipv4Addr, _>::new(), Arc::new("core"));
    /// routes.insert("10.0.0.0/8".parse()?, Arc::clone(&via))?;
    /// routes.remove(&"10.0.0.0/8".parse()?)?;
    /// while Arc::strong_count(&via) > 1 {
    ///     pin().flush();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) {
        help(&self.epoch);
    }

    /// Returns the guard of the collector.
    #[inline]
    pub(super) const fn epoch(&self) -> &crossbeam_epoch::Guard {
        &self.epoch
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}
