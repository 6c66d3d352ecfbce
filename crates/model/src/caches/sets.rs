//! `SourceHashCache` compared with a reference model: a list for each set.

use flowtable::cache::{CacheError, Inserted, Replacement, Statistics};
use flowtable::hash::source_index::SourceIndex;
use flowtable::memory::{Allocator, Global};
use flowtable::{SourceHashCache, write_to};

use super::{Lockstep, Make, Name, Step};

/// The bits of an index that are compared besides the key.
const TAG_MASK: u32 = (1 << 27) - 1;

#[derive(Clone, Debug)]
struct Entry<K, V> {
    index: u32,
    key: K,
    value: V,
    used: bool,
}

/// A list for each set, with the next victim in front.
#[derive(Clone, Debug)]
struct SetsModel<K, V> {
    sets: Vec<Vec<Entry<K, V>>>,
    ways: usize,
    replacement: Replacement,
    statistics: Statistics,
}

impl<K: Clone + PartialEq, V: Clone> SetsModel<K, V> {
    fn new(capacity: usize, ways: usize, replacement: Replacement) -> Self {
        let sets = vec![Vec::new(); capacity.div_ceil(ways).next_power_of_two()];
        Self { sets, ways, replacement, statistics: Statistics::default() }
    }

    fn set(&mut self, index: u32) -> &mut Vec<Entry<K, V>> {
        let which = index as usize % self.sets.len();
        &mut self.sets[which]
    }

    fn position(&mut self, index: u32, key: &K) -> Option<usize> {
        let is_it = |entry: &Entry<K, V>| entry.index == index & TAG_MASK && entry.key == *key;
        self.set(index).iter().position(is_it)
    }

    fn peek(&mut self, index: u32, key: &K) -> Option<V> {
        let position = self.position(index, key)?;
        Some(self.set(index)[position].value.clone())
    }

    /// Does what a hit does, except for the counter.
    fn touched(&mut self, index: u32, key: &K) -> Option<&mut V> {
        let position = self.position(index, key)?;
        let replacement = self.replacement;
        let set = self.set(index);
        match replacement {
            Replacement::SecondChance => {
                set[position].used = true;
                Some(&mut set[position].value)
            }
            Replacement::LeastRecentlyUsed => {
                let entry = set.remove(position);
                set.push(entry);
                set.last_mut().map(|entry| &mut entry.value)
            }
            Replacement::Oldest => Some(&mut set[position].value),
        }
    }

    fn get(&mut self, index: u32, key: &K) -> Option<&mut V> {
        match self.position(index, key) {
            Some(_) => self.statistics.hits += 1,
            None => self.statistics.misses += 1,
        }
        self.touched(index, key)
    }

    /// Inserts an absent entry.
    fn put(&mut self, index: u32, key: K, value: V) -> Option<(K, V)> {
        let (ways, has_chances) = (self.ways, self.replacement == Replacement::SecondChance);
        let set = self.set(index);
        let mut evicted = None;
        if set.len() == ways {
            while has_chances && set[0].used {
                let mut spared = set.remove(0);
                spared.used = false;
                set.push(spared);
            }
            let entry = set.remove(0);
            evicted = Some((entry.key, entry.value));
        }
        set.push(Entry { index: index & TAG_MASK, key, value, used: false });
        self.statistics.insertions += 1;
        self.statistics.evictions += u64::from(evicted.is_some());
        evicted
    }

    fn insert(&mut self, index: u32, key: K, value: V) -> Inserted<K, V> {
        if let Some(previous) = self.touched(index, &key) {
            let previous = Some(core::mem::replace(previous, value));
            return Inserted { previous, evicted: None };
        }
        Inserted { previous: None, evicted: self.put(index, key, value) }
    }

    fn remove(&mut self, index: u32, key: &K) -> Option<V> {
        let position = self.position(index, key)?;
        Some(self.set(index).remove(position).value)
    }

    /// Removes the entries whose values are picked, and returns them, sorted.
    fn extract(&mut self, mut is_removed: impl FnMut(&mut V) -> bool) -> Vec<(K, V)>
    where
        K: Ord,
        V: Ord,
    {
        let mut removed = Vec::new();
        for set in &mut self.sets {
            for mut entry in core::mem::take(set) {
                match is_removed(&mut entry.value) {
                    true => removed.push((entry.key, entry.value)),
                    false => set.push(entry),
                }
            }
        }
        removed.sort();
        removed
    }

    fn sorted(&self) -> Vec<(K, V)>
    where
        K: Ord,
        V: Ord,
    {
        let entries = self.sets.iter().flatten();
        let mut entries: Vec<_> = entries.map(|it| (it.key.clone(), it.value.clone())).collect();
        entries.sort();
        entries
    }
}

/// A cache and its reference model.
#[derive(Clone, Debug)]
pub struct CheckedSets<K, V, const WAYS: usize, A: Allocator + Clone = Global> {
    ours: SourceHashCache<K, V, WAYS, A>,
    model: SetsModel<K, V>,
}

impl<K: Make, V: Make, const WAYS: usize> CheckedSets<K, V, WAYS> {
    pub fn new(capacity: usize, replacement: Replacement) -> Self {
        Self::new_in(capacity, replacement, Global).expect("the memory is available")
    }
}

impl<K: Make, V: Make, const WAYS: usize, A: Allocator + Clone> CheckedSets<K, V, WAYS, A> {
    /// A cache in this memory, if there is enough.
    pub fn new_in(
        capacity: usize,
        replacement: Replacement,
        memory: A,
    ) -> Result<Self, CacheError> {
        let ours = SourceHashCache::new_in(capacity, memory)?.with_replacement(replacement);
        Ok(Self { ours, model: SetsModel::new(capacity, WAYS, replacement) })
    }

    /// Bytes allocated by the cache.
    pub fn allocation_size(&self) -> usize {
        self.ours.allocation_size()
    }

    fn get_batch(&mut self, names: &[Name]) {
        let (indices, keys) = split::<K>(names);
        let mut found = vec![None; names.len()];
        self.ours.get_batch(indices.into_iter().zip(&keys), write_to(&mut found));
        let theirs =
            names.iter().zip(&keys).map(|(name, key)| self.model.get(name.index, key).cloned());
        let theirs: Vec<Option<V>> = theirs.collect();
        assert!(found.into_iter().eq(theirs.iter().map(Option::as_ref)), "{names:?}");
    }

    fn get_batch_mut(&mut self, names: &[Name], now: u32) {
        let (indices, keys) = split::<K>(names);
        let mut next = 0;
        self.ours.get_batch_mut(indices.into_iter().zip(&keys), |number, ours| {
            assert_eq!(number, next);
            next += 1;
            let theirs = self.model.get(names[number].index, &keys[number]);
            assert_eq!(ours, theirs);
            ours.into_iter().chain(theirs).for_each(|value| *value = V::make(now));
        });
        assert_eq!(next, names.len());
    }

    fn get_or_insert(&mut self, name: Name, now: u32) {
        let Name { index, key } = name;
        let mut is_made = false;
        let ours = self.ours.get_or_insert_with(SourceIndex::new(index), K::make(key), |made| {
            is_made = true;
            assert_eq!(*made, K::make(key));
            V::make(now)
        });
        let theirs = self.model.get(index, &K::make(key)).cloned();
        assert_eq!(theirs.is_none(), is_made);
        assert_eq!(*ours, theirs.unwrap_or(V::make(now)));
        if is_made {
            *ours = V::make(!now);
            self.model.put(index, K::make(key), V::make(!now));
        }
    }
}

fn split<K: Make>(names: &[Name]) -> (Vec<SourceIndex>, Vec<K>) {
    names.iter().map(|name| (SourceIndex::new(name.index), K::make(name.key))).unzip()
}

impl<K, V, const WAYS: usize, A> Lockstep for CheckedSets<K, V, WAYS, A>
where
    K: Make,
    V: Make,
    A: Allocator + Clone,
{
    fn step(&mut self, step: &Step, now: u32) {
        let Self { ours, model } = self;
        let parts = |name: &Name| (SourceIndex::new(name.index), K::make(name.key));
        match step {
            Step::Get(name) => {
                let (index, key) = parts(name);
                assert_eq!(ours.get(index, &key), model.get(name.index, &key).as_deref());
            }
            Step::GetMut(name) => {
                let (index, key) = parts(name);
                let (our, their) = (ours.get_mut(index, &key), model.get(name.index, &key));
                assert_eq!(our, their);
                our.into_iter().chain(their).for_each(|value| *value = V::make(now));
            }
            Step::Peek(name) => {
                let (index, key) = parts(name);
                ours.prefetch(index);
                assert_eq!(ours.peek(index, &key), model.peek(name.index, &key).as_ref());
                assert_eq!(ours.contains_key(index, &key), ours.peek(index, &key).is_some());
            }
            Step::GetOrInsert(name) => self.get_or_insert(*name, now),
            Step::Insert(name) => {
                let (index, key) = parts(name);
                let theirs = model.insert(name.index, key.clone(), V::make(now));
                assert_eq!(ours.insert(index, key, V::make(now)), theirs);
            }
            Step::Remove(name) => {
                let (index, key) = parts(name);
                assert_eq!(ours.remove(index, &key), model.remove(name.index, &key));
            }
            Step::GetBatch(names) => self.get_batch(names),
            Step::GetBatchMut(names) => self.get_batch_mut(names, now),
            Step::Retain(divisor) => {
                let divided: Vec<V> = (0..=now).step_by(*divisor as usize).map(V::make).collect();
                let keep = |value: &mut V| {
                    let keep = !divided.contains(value);
                    *value = V::make(now);
                    keep
                };
                let theirs = model.extract(|value| !keep(value));
                if now % 2 == 0 {
                    ours.retain(|_, value| keep(value));
                } else {
                    let mut removed: Vec<_> = ours.extract_if(|_, value| !keep(value)).collect();
                    removed.sort();
                    assert_eq!(removed, theirs);
                }
            }
            Step::Change(divisor) => {
                let divided: Vec<V> = (0..=now).step_by(*divisor as usize).map(V::make).collect();
                let mut ours = ours.into_iter();
                let all = ours.len();
                let theirs = model.sets.iter_mut().flatten().map(|entry| &mut entry.value);
                let mut count = 0;
                let ours = ours.by_ref().map(|(_, value)| value).inspect(|_| count += 1);
                let changed = ours.chain(theirs).filter(|value| divided.contains(value));
                changed.for_each(|value| *value = V::make(now));
                assert_eq!(count, all);
            }
            Step::Clear => {
                ours.clear();
                model.sets.iter_mut().for_each(Vec::clear);
            }
            Step::PeekMut(_) | Step::Promote(_) | Step::SetCapacity(_) | Step::PopLru => {}
            Step::Replace(replacement) => {
                *ours = ours.clone().with_replacement(*replacement);
                model.replacement = *replacement;
            }
            Step::Fork { .. } | Step::Back => unreachable!("handled by `run`"),
        }
    }

    fn check(&self) {
        let Self { ours, model } = self;
        ours.validate().expect("an invariant");
        let theirs = model.sorted();
        let mut entries: Vec<_> =
            ours.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        entries.sort();
        assert_eq!(entries, theirs);
        assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
        assert!(ours.eq(ours) && ours.into_iter().len() == ours.len());
        assert_eq!(ours.statistics(), model.statistics);
        assert_eq!(ours.capacity(), model.sets.len() * WAYS);
        assert!(ours.len() <= ours.capacity());
    }
}
