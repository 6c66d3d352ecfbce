//! Access by binding, and cleaning.

use super::store::{Binding, Entry, EphemeralStore};
use super::vacancies::Vacancies;
use crate::clock::Clock;
use crate::memory::Allocator;
use crate::probes::Observer;
use crate::timestamp::Timestamp;

impl<T, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Returns the value of a binding, or `None` if it has expired. O(1): no search.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let at = Timestamp::from_secs;
    /// let binding = store.find_or_create(7, at(0), || 1)?.binding;
    /// assert_eq!(store.write(binding, at(1), 2), Ok(1));
    /// assert_eq!(store.read(binding, at(9)), Some(&2));
    /// assert_eq!(store.read(binding, at(10)), None);
    /// assert_eq!(store.write(binding, at(10), 3), Err(3));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read(&self, binding: Binding, now: Timestamp) -> Option<&V> {
        self.read_observed(binding, now, &mut ())
    }

    /// Returns the value of a binding, and reports the words of the value to the observer.
    #[must_use]
    pub fn read_observed(
        &self,
        binding: Binding,
        now: Timestamp,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        let entry = self.ring.get(self.position_of(binding, now)?)?;
        observer.words(Entry::<T, V>::VALUE_WORDS);
        Some(&entry.value)
    }

    /// Replaces the value of a binding and returns the old one. Does not extend its life.
    ///
    /// # Errors
    ///
    /// Returns `value` if the binding has expired.
    pub fn write(&mut self, binding: Binding, now: Timestamp, value: V) -> Result<V, V> {
        self.write_observed(binding, now, value, &mut ())
    }

    /// Replaces the value of a binding, and reports the words of the value to the observer.
    ///
    /// # Errors
    ///
    /// Returns `value` if the binding has expired.
    pub fn write_observed(
        &mut self,
        binding: Binding,
        now: Timestamp,
        value: V,
        observer: &mut impl Observer,
    ) -> Result<V, V> {
        let position = self.position_of(binding, now);
        let Some(entry) = position.and_then(|position| self.ring.get_mut(position)) else {
            return Err(value);
        };
        observer.words(Entry::<T, V>::VALUE_WORDS);
        Ok(core::mem::replace(&mut entry.value, value))
    }

    /// Returns the position of a binding among the live entries, if it has not expired.
    fn position_of(&self, binding: Binding, now: Timestamp) -> Option<usize> {
        let position = binding.sequence.checked_sub(self.ring.oldest())?;
        let position = usize::try_from(position).ok()?;
        let times = self.ring.times(position)?;
        let is_live = self.elapsed(now) < self.remaining(times);
        (is_live && !times.is_vacant() && times.expiry() == binding.expiry).then_some(position)
    }

    /// Reclaims at most `budget` expired bindings. Returns their number.
    ///
    /// Creation reclaims as well. This is for a store without creations whose values own resources.
    /// O(`budget`), and O(log n) to find the expired bindings.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..5 {
    ///     store.find_or_create(tag, Timestamp::from_secs(tag), || 0)?;
    /// }
    /// let now = Timestamp::from_secs(12);
    /// assert_eq!((store.len(), store.live(now)), (5, 2));
    /// assert_eq!((store.clean(now, 2), store.clean(now, 2), store.len()), (2, 1, 2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn clean(&mut self, now: Timestamp, budget: usize) -> usize {
        self.advance_to(now);
        self.reclaim(budget)
    }

    /// Reclaims all expired bindings, at most once per tenth of a lifetime: the paper's cleaner.
    /// Returns their number.
    ///
    /// Further calls within the tenth do nothing. O(expired bindings); [`clean`](Self::clean) takes
    /// a bound.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..5 {
    ///     store.find_or_create(tag, Timestamp::from_secs(tag), || 10 * tag)?;
    /// }
    /// let now = Timestamp::from_secs(12);
    /// assert!(store.iter(now).eq([(&3, &30), (&4, &40)]));
    /// assert_eq!((store.sweep(now), store.sweep(now)), (3, 0));
    /// store.clear();
    /// assert_eq!((store.len(), store.iter(now).count()), (0, 0));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn sweep(&mut self, now: Timestamp) -> usize {
        if self.clock.now() + self.elapsed(now) < self.next_sweep {
            return 0;
        }
        self.advance_to(now);
        self.next_sweep = self.clock.now() + u64::from(self.lifetime.ticks) / 10;
        self.reclaim(usize::MAX)
    }

    /// Reclaims all bindings, including the live ones, and resets the time: timestamps may restart
    /// at zero. O(n).
    pub fn clear(&mut self) {
        self.ring.expire(self.ring.live());
        self.clock = Clock::new(self.lifetime.ticks.into());
        (self.next_sweep, self.vacancies) = (0, Vacancies::NONE);
        self.reclaim(usize::MAX);
        self.index.reset();
    }
}
