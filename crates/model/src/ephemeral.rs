//! `EphemeralStore` compared with a reference model: a list in the order of expiry.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use flowtable::ephemeral::{Binding, Full};
use flowtable::memory::{Allocator, Global};
use flowtable::probes::Probes;
use flowtable::probes::Words;
use flowtable::{EphemeralStore, Timestamp};

use crate::set_back::SetBack;

/// An expected binding.
#[derive(Clone, Debug)]
struct Entry<T, V> {
    expiry: u64,
    tag: T,
    value: V,
    binding: Binding,
}

/// A store and its reference model, to which each operation is applied.
#[derive(Clone, Debug)]
pub struct CheckedStore<T, V, S, A: Allocator + Clone = Global> {
    store: EphemeralStore<T, V, S, A>,
    /// The bindings alive at the last creation or cleaning, sorted by expiry.
    entries: Vec<Entry<T, V>>,
    /// All bindings ever returned.
    bindings: Vec<Binding>,
    lifetime: u64,
    /// Nanoseconds of the last creation or cleaning.
    latest: u64,
    set_back: SetBack,
    next_sweep: u64,
    /// The times of all creations, if a binding has been removed since the last clearing.
    removed: bool,
    created: Vec<u64>,
}

/// One operation. Times are nanoseconds since the previous one, and may be negative.
#[derive(Clone, Debug)]
pub enum Step {
    Find(u32, i64),
    FindOrCreate(u32, i64),
    GetMut(u32, i64),
    GetOrInsert(u32, i64),
    Remove(u32, i64),
    /// Keeps the tags that are not greater, modulo 16.
    Retain(u32, i64),
    GetBatch(Vec<u32>, i64),
    GetOrInsertBatch(Vec<u32>, i64),
    /// The binding with this index among all that were returned, newest first.
    Read(usize, i64),
    Write(usize, i64),
    Clean(usize, i64),
    Sweep(i64),
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
        Self {
            store,
            entries: Vec::new(),
            bindings: Vec::new(),
            lifetime,
            latest: 0,
            set_back: SetBack::default(),
            next_sweep: 0,
            removed: false,
            created: Vec::new(),
        }
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
        let (Step::Find(_, by)
        | Step::FindOrCreate(_, by)
        | Step::GetMut(_, by)
        | Step::GetOrInsert(_, by)
        | Step::Remove(_, by)
        | Step::Retain(_, by)
        | Step::GetBatch(_, by)
        | Step::GetOrInsertBatch(_, by)
        | Step::Read(_, by)
        | Step::Write(_, by)
        | Step::Clean(_, by)
        | Step::Sweep(by)
        | Step::Iterate(by)
        | Step::SetClock(by)) = step
        else {
            self.step_out_of_time(step);
            return base;
        };
        let now = base.saturating_add_signed(*by);
        let at = Timestamp::from_nanos(now);
        let is_due = at.as_nanos().max(self.latest) >= self.next_sweep;
        let is_lookup = matches!(
            step,
            Step::Find(..)
                | Step::GetMut(..)
                | Step::GetBatch(..)
                | Step::Read(..)
                | Step::Write(..)
                | Step::Iterate(_)
                | Step::SetClock(_)
        );
        if !is_lookup && (is_due || !matches!(step, Step::Sweep(_))) {
            self.follow(at);
        }
        match step {
            Step::Find(tag, _) => self.find(&T::from(*tag), at),
            Step::FindOrCreate(tag, _) => self.find_or_create(&T::from(*tag), at, number),
            Step::GetMut(tag, _) => self.get_mut(&T::from(*tag), at, number),
            Step::GetOrInsert(tag, _) => self.get_or_insert(&T::from(*tag), at, number),
            Step::Remove(tag, _) => self.remove(&T::from(*tag), at),
            Step::Retain(most, _) => self.retain(&T::from(most % 16), at),
            Step::GetBatch(tags, _) => self.get_batch(tags, at),
            Step::GetOrInsertBatch(tags, _) => self.get_or_insert_batch(tags, at, number),
            Step::Read(place, _) => self.read(*place, at),
            Step::Write(place, _) => self.write(*place, at, number),
            Step::Clean(budget, _) => self.clean(at, *budget),
            Step::Sweep(_) => self.sweep(at),
            Step::Iterate(_) => self.iterate(at),
            Step::SetClock(_) => {
                self.store.set_clock(at);
                self.set_clock(at);
            }
            Step::Clear | Step::Clone => unreachable!("they have no time"),
        }
        now
    }

    fn step_out_of_time(&mut self, step: &Step) {
        if matches!(step, Step::Clone) {
            let len = self.store.len();
            self.store = self.store.clone();
            assert!(self.store.len() <= len);
        } else {
            self.store.clear();
            self.entries.clear();
            (self.latest, self.next_sweep, self.removed) = (0, 0, false);
            self.set_back = SetBack::default();
            self.created.clear();
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

    /// Follows a clock that was set back.
    fn follow(&mut self, at: Timestamp) {
        let time = at.as_nanos();
        if self.set_back.is_confirmed(time, self.latest, self.lifetime) {
            self.set_clock(at);
        }
    }

    /// The latest time is another one from now on, and what remains of all lives is the same.
    fn set_clock(&mut self, at: Timestamp) {
        self.pass(Timestamp::from_nanos(self.latest));
        let (time, latest) = (at.as_nanos(), self.latest);
        self.entries.iter_mut().for_each(|entry| entry.expiry = entry.expiry - latest + time);
        let moved = |at: u64| (at + time).saturating_sub(latest);
        self.created.iter_mut().for_each(|created| *created = moved(*created));
        self.next_sweep = moved(self.next_sweep);
        (self.latest, self.set_back) = (time, SetBack::default());
    }

    /// Expires bindings, as a creation or a cleaning does.
    fn pass(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at.as_nanos());
        let latest = self.latest;
        self.entries.retain(|entry| entry.expiry > latest);
    }

    fn find(&mut self, tag: &T, at: Timestamp) {
        let expected = self.alive(tag, at).map(|place| &self.entries[place]);
        let mut probes = Probes::default();
        let found = self.store.find_observed(tag, at, &mut probes);
        assert_eq!(found, expected.map(|entry| entry.binding));
        assert_eq!(self.store.find_hashed(self.store.hash_of(tag), tag, at), found);
        assert_eq!(self.store.get(tag, at), expected.map(|entry| &entry.value));
        assert!(probes.entries as usize <= self.store.len());
        assert!(found.is_none() || probes.entries > 0);
    }

    /// Whether a binding of the tag can be created.
    fn has_room(&mut self, at: Timestamp) -> bool {
        self.pass(at);
        self.entries.len() < self.store.capacity()
    }

    fn add(&mut self, tag: &T, value: V, binding: Binding) {
        assert!(!self.bindings.contains(&binding), "each is a new one");
        let is_newest = self.bindings.iter().all(|given| *given < binding);
        assert!(self.removed || is_newest, "only removed ones give their places back");
        self.bindings.push(binding);
        self.created.push(self.latest);
        let expiry = self.latest + self.lifetime;
        self.entries.push(Entry { expiry, tag: tag.clone(), value, binding });
    }

    fn find_or_create(&mut self, tag: &T, at: Timestamp, number: u32) {
        let expected = self.alive(tag, at).map(|place| self.entries[place].binding);
        let (mut words, mut of_find) = (Words::default(), Words::default());
        self.store.find_observed(tag, at, &mut of_find);
        let mut is_made = false;
        let value = || {
            is_made = true;
            V::from(number)
        };
        let bound = self.store.find_or_create_observed(tag.clone(), at, value, &mut words);
        match (expected, bound) {
            (Some(binding), bound) => {
                let bound = bound.expect("the binding exists");
                assert_eq!((bound.binding, bound.is_new, is_made), (binding, false, false));
                assert_eq!(words, of_find);
            }
            (None, Ok(bound)) => {
                assert!(self.has_room(at) && bound.is_new && is_made);
                assert_eq!(words.0, of_find.0 + 3 + size_of::<T>().div_ceil(4) as u32);
                self.add(tag, V::from(number), bound.binding);
            }
            (None, Err(Full { refused })) => {
                assert!(refused == *tag && !is_made);
                self.refuse(at);
            }
        }
    }

    /// A creation was refused: the store is full, or the ring is, as removed bindings and expired
    /// ones may keep their slots for up to six sixteenths of a lifetime longer.
    fn refuse(&mut self, at: Timestamp) {
        if !self.has_room(at) {
            return;
        }
        let since = self.latest.saturating_sub(self.lifetime + self.lifetime * 6 / 16);
        let appended = self.created.iter().filter(|created| **created >= since).count();
        assert!(self.removed && appended >= self.store.capacity(), "{appended} creations");
    }

    fn remove(&mut self, tag: &T, at: Timestamp) {
        let expected = self.alive(tag, at).map(|place| self.entries.remove(place).value);
        self.pass(at);
        assert_eq!(self.store.remove(tag, at), expected);
        assert_eq!(self.store.get(tag, at), None);
        self.removed |= expected.is_some();
    }

    fn retain(&mut self, most: &T, at: Timestamp) {
        self.pass(at);
        let before = self.entries.len();
        let mut visited = 0;
        let mut keep = |tag: &T, _: &mut V| {
            visited += 1;
            tag <= most
        };
        let entries = core::mem::take(&mut self.entries).into_iter();
        let (kept, removed): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.tag <= *most);
        self.entries = kept;
        let mut removed: Vec<_> =
            removed.into_iter().map(|entry| (entry.tag, entry.value)).collect();
        if before % 2 == 0 {
            self.store.retain(at, keep);
        } else {
            let ours = self.store.extract_if(at, |tag, value| !keep(tag, value));
            let mut ours: Vec<_> = ours.collect();
            ours.sort();
            removed.sort();
            assert_eq!(ours, removed);
        }
        assert_eq!(visited, before);
        self.removed |= self.entries.len() < before;
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
        let found = self.store.get_or_insert_with(tag.clone(), at, || V::from(number)).cloned();
        let is_created = expected.is_none() && found.is_ok();
        match (expected, found) {
            (Some(value), found) => assert_eq!(found, Ok(value)),
            (None, Ok(value)) => assert!(value == V::from(number) && self.has_room(at)),
            (None, Err(Full { refused })) => {
                assert_eq!(refused, *tag);
                self.refuse(at);
            }
        }
        self.record_created(tag, at, is_created, number);
    }

    /// Records what was created by a method that returns no binding.
    fn record_created(&mut self, tag: &T, at: Timestamp, is_created: bool, number: u32) {
        if is_created {
            let binding = self.store.find(tag, at).expect("it was created");
            self.add(tag, V::from(number), binding);
        }
    }

    fn get_batch(&mut self, tags: &[u32], at: Timestamp) {
        let tags: Vec<T> = tags.iter().map(|tag| T::from(*tag)).collect();
        let mut found = vec![None; tags.len()];
        self.store.get_batch(&tags, at, &mut found);
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
        // Time passes, whether anything is created or not.
        self.pass(at);
        for ((place, tag), result) in tags.iter().enumerate().zip(results) {
            let number = number + place as u32;
            match self.alive(tag, at).map(|place| self.entries[place].value.clone()) {
                Some(value) => assert_eq!((result, made[place]), (Ok(value), false)),
                None if result.is_ok() => {
                    assert_eq!((result, made[place]), (Ok(V::from(number)), true));
                    assert!(self.has_room(at));
                    self.record_created(tag, at, true, number);
                }
                None => {
                    let refused = tag.clone();
                    assert_eq!((result, made[place]), (Err(Full { refused }), false));
                    self.refuse(at);
                }
            }
        }
    }

    /// The binding, and the index of its entry if it is alive.
    fn pick(&self, place: usize, at: Timestamp) -> Option<(Binding, Option<usize>)> {
        let binding = *self.bindings.iter().rev().nth(place)?;
        let is_it = |entry: &Entry<T, V>| entry.binding == binding && self.is_alive(entry, at);
        Some((binding, self.entries.iter().position(is_it)))
    }

    fn read(&mut self, place: usize, at: Timestamp) {
        let Some((binding, entry)) = self.pick(place, at) else { return };
        let expected = entry.map(|entry| &self.entries[entry].value);
        let mut words = Words::default();
        assert_eq!(self.store.read_observed(binding, at, &mut words), expected);
        let size = if entry.is_some() { size_of::<V>().div_ceil(4) as u32 } else { 0 };
        assert_eq!(words, Words(size));
    }

    fn write(&mut self, place: usize, at: Timestamp, number: u32) {
        let Some((binding, entry)) = self.pick(place, at) else { return };
        let value = V::from(number);
        let expected = match entry {
            Some(entry) => Ok(core::mem::replace(&mut self.entries[entry].value, value.clone())),
            None => Err(value.clone()),
        };
        assert_eq!(self.store.write(binding, at, value), expected);
    }

    fn clean(&mut self, at: Timestamp, budget: usize) {
        let before = self.store.len();
        self.pass(at);
        let cleaned = self.store.clean(at, budget);
        self.check_cleaned(before, cleaned, budget);
    }

    fn sweep(&mut self, at: Timestamp) {
        if at.as_nanos().max(self.latest) < self.next_sweep {
            return assert_eq!(self.store.sweep(at), 0);
        }
        let before = self.store.len();
        self.pass(at);
        self.next_sweep = self.latest + self.lifetime / 10;
        let cleaned = self.store.sweep(at);
        self.check_cleaned(before, cleaned, usize::MAX);
    }

    /// After removals, expired bindings may wait for others.
    fn check_cleaned(&self, before: usize, cleaned: usize, budget: usize) {
        let dead = before - self.entries.len();
        assert!(cleaned == dead.min(budget) || self.removed && cleaned < dead.min(budget));
        assert_eq!(self.store.len(), before - cleaned);
    }

    fn iterate(&mut self, at: Timestamp) {
        let expected = self.entries.iter().filter(|entry| self.is_alive(entry, at));
        let mut expected: Vec<_> = expected.map(|entry| (&entry.tag, &entry.value)).collect();
        assert_eq!(self.store.live(at), expected.len());
        let mut found: Vec<_> = self.store.iter(at).collect();
        assert!(self.store.iter(at).rev().eq(found.iter().rev().copied()));
        if self.removed {
            found.sort();
            expected.sort();
        }
        assert_eq!(found, expected);
    }

    /// Checks the invariants and that both have the same live bindings.
    pub fn check(&mut self) {
        self.store.validate().expect("invariant");
        assert!(self.store.len() <= self.store.capacity());
        self.iterate(Timestamp::from_nanos(self.latest));
    }
}

/// A lifetime that the store does not round.
pub const LIFETIME: Duration = Duration::from_nanos(1000);
