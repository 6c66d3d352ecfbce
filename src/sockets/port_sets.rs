//! A map from keys to sets of ports, which are searched 512 ports at a time.
//!
//! ```text
//!     sets     (…, port / 512) ─┬▸ a window            the ports, if they are near one another
//!                               └▸ the index of a line
//!
//!     lines    512 bits each
//! ```
//!
//! An entry has 8 bytes besides its key in either case. A set of many ports has a line in addition.
//!
//! - **S1** No set is empty.
//! - **S2** Each line belongs to one set.

use core::hash::{BuildHasher, Hash};

use super::lines::{Line, Window};
use super::map_error;
use crate::hash::Prehashed;
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;
use crate::raw::slab::ChunkedSlab;
use crate::trash::{TrashMap, TrashSet};

/// log2 of the number of lines that are allocated at once.
const LINES: u32 = 4;

type Lines<A> = ChunkedSlab<Line, A, LINES>;

/// The bit of a [`PortSet`] that has a line.
const IN_LINE: u64 = 1 << 63;

/// The ports of an entry: a window, or the index of a line and [`IN_LINE`].
#[derive(Clone, Copy)]
struct PortSet(u64);

enum Form {
    Window(Window),
    Line(u32),
}

impl PortSet {
    const fn of_line(index: u32) -> Self {
        Self(IN_LINE | index as u64)
    }

    #[inline]
    const fn form(self) -> Form {
        if self.0 & IN_LINE == 0 {
            Form::Window(Window::from_bits(self.0))
        } else {
            Form::Line(self.0 as u32)
        }
    }
}

impl From<Window> for PortSet {
    #[inline]
    fn from(window: Window) -> Self {
        Self(window.to_bits())
    }
}

/// Sets of ports by key.
#[derive(Clone)]
pub(super) struct PortSets<K, S, A: Allocator + Clone> {
    sets: TrashMap<K, PortSet, S, A>,
    lines: Lines<A>,
}

impl<K, S: Clone, A: Allocator + Clone> PortSets<K, S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        let sets = TrashMap::with_hasher_in(hasher.clone(), memory.clone());
        Self { sets, lines: new_lines(memory) }
    }
}

fn new_lines<A: Allocator + Clone>(memory: &A) -> Lines<A> {
    Lines::chunked_in(usize::MAX, memory.clone())
}

impl<K, S, A: Allocator + Clone> PortSets<K, S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        self.sets.allocation_size() + self.lines.allocation_size()
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Iterates over the sets and their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, Line)> {
        self.sets.iter().map(|(key, set)| (key, self.line_of(*set)))
    }

    #[inline]
    fn line_of(&self, set: PortSet) -> Line {
        match set.form() {
            Form::Window(window) => window.line(),
            Form::Line(index) => self.lines.get(index).copied().unwrap_or(Line::EMPTY),
        }
    }
}

impl<K: Eq + Hash, S: BuildHasher, A: Allocator + Clone> PortSets<K, S, A> {
    /// Returns the set of a key.
    #[inline]
    pub(super) fn get(&self, key: &K) -> Line {
        if self.sets.is_empty() {
            return Line::EMPTY;
        }
        self.sets.get(key).map_or(Line::EMPTY, |set| self.line_of(*set))
    }

    /// Returns whether the set of a key has a port.
    #[inline]
    pub(super) fn contains(&self, key: &K, port: u16) -> bool {
        self.get(key).contains(port)
    }

    /// Inserts a port into the set of a key. Returns whether it was absent, or `None` if memory
    /// allocation fails.
    pub(super) fn insert(&mut self, key: K, port: u16) -> Option<bool> {
        let hash = self.sets.hash_of(&key);
        let Some(set) = self.sets.get_mut(Prehashed { hash, key: &key }) else {
            let window = Window::of(port).into();
            return self.sets.try_insert_with_hash(hash, key, window).is_ok().then_some(true);
        };
        let window = match set.form() {
            Form::Window(window) if window.contains(port) => return Some(false),
            Form::Window(window) => window,
            Form::Line(index) => {
                return self.lines.get_mut(index).map(|line| line.insert(port));
            }
        };
        *set = match window.with(port) {
            Some(window) => window.into(),
            None if self.lines.is_full() || self.lines.try_reserve_one().is_err() => return None,
            None => {
                let mut line = window.line();
                line.insert(port);
                PortSet::of_line(self.lines.insert(line))
            }
        };
        Some(true)
    }

    /// Removes a port from the set of a key, if it has it.
    pub(super) fn remove(&mut self, key: &K, port: u16) {
        let hash = self.sets.hash_of(key);
        let Some(set) = self.sets.get_mut(Prehashed { hash, key }) else { return };
        let window = match set.form() {
            Form::Window(window) => window.without(port),
            Form::Line(index) => {
                if !self.lines.get_mut(index).is_none_or(|line| line.remove(port)) {
                    return;
                }
                self.lines.try_remove(index);
                Window::EMPTY
            }
        };
        // Before the removal, which hashes keys: a hasher may panic.
        *set = window.into();
        if window.is_empty() {
            self.sets.remove(Prehashed { hash, key });
        }
    }

    pub(super) fn clear(&mut self) {
        self.sets.clear();
        self.lines = new_lines(self.sets.allocator());
    }

    /// Checks S1 and S2.
    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.sets.validate().map_err(map_error)?;
        let has_ports = self.iter().all(|(_, line)| line != Line::EMPTY);
        ensure(has_ports, || "S1: a set of ports is empty")?;
        let index = |set: &PortSet| match set.form() {
            Form::Window(_) => None,
            Form::Line(index) => Some(index),
        };
        let mut lines: TrashSet<u32> = TrashSet::new();
        let are_distinct = self.sets.values().filter_map(index).all(|index| lines.insert(index));
        let is_used = are_distinct && lines.len() == self.lines.len();
        ensure(is_used, || "S2: a line belongs to several sets or to none")
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::hash::DefaultHashBuilder;
    use crate::memory::Global;

    #[test]
    fn sets_have_the_ports_that_were_inserted_and_not_removed() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut sets = PortSets::new_in(&DefaultHashBuilder::with_seed(4), &Global);
        let mut expected = BTreeSet::new();
        let steps = if cfg!(miri) { 300 } else { 60_000 };
        for step in 0..steps {
            // Growing and shrinking; ports of a key are near one another, or anywhere.
            let is_insertion = rng.random_bool(if step / 100 % 2 == 0 { 0.8 } else { 0.2 });
            let key = rng.random_range(0..16);
            let spread = if key % 2 == 0 { 60 } else { 512 };
            let port = 1024 + rng.random_range(0..spread);
            if is_insertion {
                assert_eq!(sets.insert(key, port), Some(expected.insert((key, port))));
            } else {
                expected.remove(&(key, port));
                sets.remove(&key, port);
            }
            assert_eq!(sets.contains(&key, port), is_insertion);
            if step % 100 == 99 {
                sets.validate().unwrap();
                let of_key = |key| expected.range((key, 0)..(key + 1, 0)).map(|(_, port)| *port);
                let is_equal = |key: u16| {
                    of_key(key).eq(sets.get(&key).ports().map(|port| 1024 + port))
                        && of_key(key).all(|port| sets.contains(&key, port))
                };
                assert!((0..16).all(is_equal));
                assert_eq!(sets.len(), (0..16).filter(|key| of_key(*key).count() > 0).count());
            }
        }
        expected.iter().for_each(|(key, port)| sets.remove(key, *port));
        assert_eq!((sets.len(), sets.lines.len()), (0, 0));
        sets.insert(0, 1);
        sets.clear();
        assert_eq!((sets.len(), sets.lines.allocation_size()), (0, 0));
    }
}
