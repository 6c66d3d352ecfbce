//! `EphemeralStore` compared with a reference model: a list in the order of expiry.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use flowtable::ephemeral::Full;
use flowtable::memory::{Allocator, Global};
use flowtable::probes::Probes;
use flowtable::probes::Words;
use flowtable::{EphemeralStore, Prehashed, Timestamp, write_to};

use crate::set_back::SetBack;

/// An expected binding.
#[derive(Clone, Debug)]
struct Entry<T, V> {
    expiry: u64,
    tag: T,
    value: V,
}

/// A store and its reference model, to which each operation is applied.
#[derive(Clone, Debug)]
pub struct CheckedStore<T, V, S, A: Allocator + Clone = Global> {
    store: EphemeralStore<T, V, S, A>,
    /// The bindings alive at the last creation or cleaning, sorted by expiry.
    entries: Vec<Entry<T, V>>,
    lifetime: u64,
    /// Nanoseconds of the last creation or cleaning.
    latest: u64,
    set_back: SetBack,
}

/// One operation. Times are nanoseconds since the previous one, and may be negative.
#[derive(Clone, Debug)]
pub enum Step {
    Get(u32, i64),
    GetMut(u32, i64),
    GetOrInsert(u32, i64),
    Remove(u32, i64),
    /// Keeps the tags that are not greater, modulo 16.
    Retain(u32, i64),
    GetBatch(Vec<u32>, i64),
    GetOrInsertBatch(Vec<u32>, i64),
    Clean(usize, i64),
    Iterate(i64),
    SetClock(i64),
    Clear,
    /// Continues with a clone.
    Clone,
}

impl<T, V, S, A: Allocator + Clone> CheckedStore<T, V, S, A>
where
    T: Hash + Ord + Clone + Debug + From<u32>,
    V: Clone + Ord + Debug + From<u32>,
    S: BuildHasher + Clone,
{
    pub fn new(store: EphemeralStore<T, V, S, A>) -> Self {
        let lifetime = store.lifetime().as_nanos() as u64;
        Self { store, entries: Vec::new(), lifetime, latest: 0, set_back: SetBack::default() }
    }

    /// Bytes allocated by the store.
    pub fn allocation_size(&self) -> usize {
        self.store.allocation_size()
    }

    pub fn len(&self) -> usize {
        self.store.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies an operation at its time relative to `base`, with values made of `number`.
    pub fn step(&mut self, step: &Step, base: u64, number: u32) -> u64 {
        let (Step::Get(_, by)
        | Step::GetMut(_, by)
        | Step::GetOrInsert(_, by)
        | Step::Remove(_, by)
        | Step::Retain(_, by)
        | Step::GetBatch(_, by)
        | Step::GetOrInsertBatch(_, by)
        | Step::Clean(_, by)
        | Step::Iterate(by)
        | Step::SetClock(by)) = step
        else {
            self.step_out_of_time(step);
            return base;
        };
        let now = base.saturating_add_signed(*by);
        let at = Timestamp::from_nanos(now);
        let is_lookup = matches!(
            step,
            Step::Get(..)
                | Step::GetMut(..)
                | Step::GetBatch(..)
                | Step::Iterate(_)
                | Step::SetClock(_)
        );
        if !is_lookup {
            self.follow(at);
        }
        match step {
            Step::Get(tag, _) => self.get(&T::from(*tag), at),
            Step::GetMut(tag, _) => self.get_mut(&T::from(*tag), at, number),
            Step::GetOrInsert(tag, _) => self.get_or_insert(&T::from(*tag), at, number),
            Step::Remove(tag, _) => self.remove(&T::from(*tag), at),
            Step::Retain(most, _) => self.retain(&T::from(most % 16), at),
            Step::GetBatch(tags, _) => self.get_batch(tags, at),
            Step::GetOrInsertBatch(tags, _) => self.get_or_insert_batch(tags, at, number),
            Step::Clean(budget, _) => self.clean(at, *budget),
            Step::Iterate(_) => self.iterate(at),
            Step::SetClock(_) => {
                self.store.set_clock(at);
                self.shift(now);
                self.set_back = SetBack::default();
            }
            Step::Clear | Step::Clone => unreachable!("they have no time"),
        }
        now
    }

    fn step_out_of_time(&mut self, step: &Step) {
        if matches!(step, Step::Clone) {
            let len = self.store.len();
            self.store = self.store.clone();
            assert_eq!(self.store.len(), len);
        } else {
            self.store.clear();
            self.entries.clear();
            (self.latest, self.set_back) = (0, SetBack::default());
            assert!(self.store.is_empty());
        }
    }

    /// Whether a binding is alive, at the latest of this time and the last creation or cleaning.
    fn is_alive(&self, entry: &Entry<T, V>, at: Timestamp) -> bool {
        entry.expiry > at.as_nanos().max(self.latest)
    }

    fn alive(&self, tag: &T, at: Timestamp) -> Option<usize> {
        let is_it = |entry: &Entry<T, V>| entry.tag == *tag && self.is_alive(entry, at);
        self.entries.iter().position(is_it)
    }

    /// Follows a clock that was set back, and expires bindings.
    fn follow(&mut self, at: Timestamp) {
        let time = at.as_nanos();
        if let Some(latest) = self.set_back.follow(time, self.latest, self.lifetime) {
            self.shift(latest);
        }
        self.pass(at);
    }

    /// The latest time is another one from now on, and what remains of all lives is the same.
    fn shift(&mut self, time: u64) {
        self.pass(Timestamp::from_nanos(self.latest));
        let latest = self.latest;
        self.entries.iter_mut().for_each(|entry| entry.expiry = entry.expiry - latest + time);
        self.latest = time;
    }

    /// Expires bindings.
    fn pass(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at.as_nanos());
        let latest = self.latest;
        self.entries.retain(|entry| entry.expiry > latest);
    }

    fn get(&mut self, tag: &T, at: Timestamp) {
        let expected = self.alive(tag, at).map(|place| &self.entries[place].value);
        let mut probes = Probes::default();
        assert_eq!(self.store.get_observed(tag, at, &mut probes), expected);
        let hashed = Prehashed { hash: self.store.hash_of(tag), key: tag };
        assert_eq!(self.store.get(hashed, at), expected);
        assert!(probes.entries as usize <= self.store.len());
        assert!(expected.is_none() || probes.entries > 0);
    }

    fn has_room(&self) -> bool {
        self.entries.len() < self.store.capacity()
    }

    fn add(&mut self, tag: &T, value: V) {
        let expiry = self.latest + self.lifetime;
        self.entries.push(Entry { expiry, tag: tag.clone(), value });
    }

    fn remove(&mut self, tag: &T, at: Timestamp) {
        let expected = self.alive(tag, at).map(|place| self.entries.remove(place).value);
        assert_eq!(self.store.remove(tag, at), expected);
        assert_eq!(self.store.get(tag, at), None);
    }

    fn retain(&mut self, most: &T, at: Timestamp) {
        let before = self.entries.len();
        let mut visited = 0;
        let mut keep = |tag: &T, _: &mut V| {
            visited += 1;
            tag <= most
        };
        let entries = core::mem::take(&mut self.entries).into_iter();
        let (kept, removed): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.tag <= *most);
        self.entries = kept;
        let removed = removed.into_iter().map(|entry| (entry.tag, entry.value));
        if before % 2 == 0 {
            self.store.retain(at, keep);
        } else {
            let ours = self.store.extract_if(at, |tag, value| !keep(tag, value));
            assert!(ours.eq(removed));
        }
        assert_eq!(visited, before);
    }

    fn get_mut(&mut self, tag: &T, at: Timestamp, number: u32) {
        let expected = self.alive(tag, at);
        let found = self.store.get_mut(tag, at);
        assert_eq!(found.as_deref(), expected.map(|place| &self.entries[place].value));
        if let (Some(found), Some(place)) = (found, expected) {
            *found = V::from(number);
            self.entries[place].value = V::from(number);
        }
    }

    fn get_or_insert(&mut self, tag: &T, at: Timestamp, number: u32) {
        let expected = self.alive(tag, at).map(|place| self.entries[place].value.clone());
        let (mut words, mut of_get) = (Words::default(), Words::default());
        // A lookup does not follow a clock that was set back, so it may read other entries then. In
        // every second step, the insertion is the first to follow.
        let has_followed = number % 200 == 0;
        if has_followed {
            assert_eq!(self.store.clean(at, 0), 0);
        }
        self.store.get_observed(tag, at, &mut of_get);
        let mut is_made = false;
        let value = || {
            is_made = true;
            V::from(number)
        };
        let found = self.store.get_or_insert_with_observed(tag, at, value, &mut words).cloned();
        match (expected, found) {
            (Some(value), found) => {
                assert_eq!((found, is_made), (Ok(value), false));
                assert!(words == of_get || !has_followed);
            }
            (None, Ok(value)) => {
                assert!(value == V::from(number) && self.has_room() && is_made);
                let created = of_get.0 + 3 + size_of::<T>().div_ceil(4) as u32;
                assert!(words.0 == created || !has_followed, "{words:?}, {created}");
                self.add(tag, value);
            }
            (None, Err(Full)) => assert!(!self.has_room() && !is_made),
        }
    }

    fn get_batch(&mut self, tags: &[u32], at: Timestamp) {
        let tags: Vec<T> = tags.iter().map(|tag| T::from(*tag)).collect();
        let mut found = vec![None; tags.len()];
        self.store.get_batch(&tags, at, write_to(&mut found));
        let expected = |tag| self.alive(tag, at).map(|place| &self.entries[place].value);
        assert_eq!(found, tags.iter().map(expected).collect::<Vec<_>>());
    }

    fn get_or_insert_batch(&mut self, tags: &[u32], at: Timestamp, number: u32) {
        let tags: Vec<T> = tags.iter().map(|tag| T::from(*tag)).collect();
        let (mut made, mut results) = (vec![false; tags.len()], Vec::new());
        let make = |place: usize| {
            made[place] = true;
            V::from(number + place as u32)
        };
        self.store.get_or_insert_batch(&tags, at, make, |place, value| {
            assert_eq!(place, results.len());
            results.push(value.cloned());
        });
        for ((place, tag), result) in tags.iter().enumerate().zip(results) {
            let number = number + place as u32;
            match self.alive(tag, at).map(|place| self.entries[place].value.clone()) {
                Some(value) => assert_eq!((result, made[place]), (Ok(value), false)),
                None if result.is_ok() => {
                    assert_eq!((result, made[place]), (Ok(V::from(number)), true));
                    assert!(self.has_room());
                    self.add(tag, V::from(number));
                }
                None => {
                    assert_eq!((result, made[place]), (Err(Full), false));
                    assert!(!self.has_room());
                }
            }
        }
    }

    fn clean(&mut self, at: Timestamp, budget: usize) {
        let before = self.store.len();
        let cleaned = self.store.clean(at, budget);
        assert_eq!(cleaned, (before - self.entries.len()).min(budget));
        assert_eq!(self.store.len(), before - cleaned);
    }

    fn iterate(&mut self, at: Timestamp) {
        let expected = self.entries.iter().filter(|entry| self.is_alive(entry, at));
        let expected: Vec<_> = expected.map(|entry| (&entry.tag, &entry.value)).collect();
        assert_eq!(self.store.live(at), expected.len());
        assert!(self.store.iter(at).eq(expected));
    }

    /// Checks the invariants and that both have the same live bindings.
    pub fn check(&mut self) {
        self.store.validate().expect("invariant");
        assert!(self.store.len() <= self.store.capacity());
        self.iterate(Timestamp::from_nanos(self.latest));
    }
}

/// The lifetime of bindings.
pub const LIFETIME: Duration = Duration::from_nanos(1000);
