//! Pinned structures: a structure and a guard.

use core::borrow::Borrow;
use core::ops::Deref;

use super::guard::{Guard, pin};

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
