//! Pinned tries: the methods of readers and writers, and iteration in the order of the keys.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use super::ConcurrentLcTrie;
use super::node::{Child, Kind, Leaf, Walk};
use super::write::Writer;
use crate::concurrent::collector::{OVERHEAD, forget_panic, help};
use crate::concurrent::error::{Refusal, Refused};
use crate::concurrent::pinned::{Guard, Pinned, Protect};
use crate::key::bits::BitString;

/// The maximum number of entries that `retain` removes with one locking, so that the
/// cost of retiring is shared, and other writers do not wait long.
const REMOVED_AT_ONCE: usize = 64;

impl<'t, K: BitString, V, G: Borrow<Guard>> Pinned<'t, ConcurrentLcTrie<K, V>, G> {
    /// Returns the value of a key.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// let pinned = trie.pin();
    /// pinned.insert(7, 'a')?;
    /// assert_eq!((pinned.get(&7), pinned.get(&8)), (Some(&'a'), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn get<'p, 'r>(&'p self, key: &K) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.find(key).0
    }

    /// Returns the value of a key, and the number of nodes that were visited.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// let pinned = trie.pin();
    /// pinned.insert(7, 'a')?;
    /// assert_eq!(pinned.find(&7), (Some(&'a'), 0));
    /// pinned.insert(8, 'b')?;
    /// assert_eq!(pinned.find(&7), (Some(&'a'), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn find<'p, 'r>(&'p self, key: &K) -> (Option<&'r V>, u32)
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (mut child, mut nodes) = (self.of.root.load(), 0);
        loop {
            // SAFETY: it was linked under this pin, and is freed after that.
            match unsafe { child.kind() } {
                Kind::Node(node) => child = node.slots[node.slot_of(key)].load(),
                Kind::Leaf(leaf) => return ((leaf.key == *key).then_some(&leaf.value), nodes),
                Kind::Empty => return (None, nodes),
            }
            nodes += 1;
        }
    }

    /// Returns whether there is an entry of a key.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::new();
    /// trie.pin().insert(7, ())?;
    /// assert!(trie.pin().contains_key(&7) && !trie.pin().contains_key(&8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_key<'p>(&'p self, key: &K) -> bool
    where
        G: Protect<'p, 'p>,
        't: 'p,
    {
        self.get(key).is_some()
    }

    /// Returns the first entry whose key is greater than `key`, by a descent.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// let pinned = trie.pin();
    /// pinned.insert(7, 'a')?;
    /// assert_eq!((pinned.after(&6), pinned.after(&7)), (Some((7, &'a')), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn after<'p, 'r>(&'p self, key: &K) -> Option<(K, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.iter_from(Bound::Excluded(*key)).next()
    }

    /// Begins a walk over the entries from a bound on.
    pub(super) fn walk<'p, 'r>(&'p self, from: Bound<K>) -> Walk<'r, K, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        // SAFETY: children are read under this pin.
        unsafe { Walk::new(self.of.root.load(), from) }
    }

    /// Inserts an entry, or replaces its value. Returns the former value.
    ///
    /// # Errors
    ///
    /// If readers have delayed the reclamation of more bytes than the limit. Nothing has changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// let pinned = trie.pin();
    /// assert_eq!(pinned.insert(7, 'a')?, None);
    /// assert_eq!(pinned.insert(7, 'b')?, Some(&'a'));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert<'p, 'r>(&'p self, key: K, value: V) -> Result<Option<&'r V>, Refusal<(K, V)>>
    where
        G: Protect<'p, 'r>,
        't: 'r,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let (garbage, epoch) = (&self.of.garbage, self.epoch());
        if garbage.is_above_limit() && !garbage.reduce(epoch, || garbage.is_above_limit()) {
            let (retired, limit) = (garbage.retired(), garbage.limit);
            return Err(Refusal {
                refused: (key, value),
                reason: Refused::Garbage { retired, limit },
            });
        }
        // If a method of the key panics, the value is dropped without the lock.
        let mut value = Some(value);
        let old = self.write(|writer| writer.insert(key, &mut value));
        Ok(old.map(|leaf| &leaf.value))
    }

    /// Removes an entry, and returns its value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// let pinned = trie.pin();
    /// pinned.insert(7, 'a')?;
    /// assert_eq!((pinned.remove(&7), pinned.remove(&7)), (Some(&'a'), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove<'p, 'r>(&'p self, key: &K) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.write(|writer| writer.remove(key)).map(|leaf| &leaf.value)
    }

    /// Removes the entries for which `keep` returns false. It is called once for each entry, in
    /// the order of their keys (T3), without a lock; an entry whose value is replaced in the
    /// meantime is kept. If it panics, the entries that it has rejected before are removed.
    ///
    /// Up to 64 entries are removed under the lock at once. Like a removal it is never refused.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie: ConcurrentLcTrie<u32, u32> = (0..100).map(|key| (key, key)).collect();
    /// let pinned = trie.pin();
    /// pinned.retain(|key, _| key % 10 == 0);
    /// assert_eq!(pinned.len(), 10);
    /// ```
    pub fn retain<'p>(&'p self, mut keep: impl FnMut(&K, &V) -> bool)
    where
        G: Protect<'p, 'p>,
        't: 'p,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let (mut walk, mut rejected) = (self.walk(Bound::Unbounded), Vec::new());
        let judged = catch_unwind(AssertUnwindSafe(|| {
            while let Some(leaf) = walk.next() {
                if !keep(&leaf.key, &leaf.value) {
                    rejected.push(leaf);
                }
                if rejected.len() == REMOVED_AT_ONCE {
                    self.remove_leaves(&mut rejected);
                }
            }
        }));
        self.remove_leaves(&mut rejected);
        judged.unwrap_or_else(|panic| resume_unwind(panic));
    }

    /// Removes leaves that were found under this pin, except the leaves of replaced entries.
    fn remove_leaves(&self, leaves: &mut Vec<&Leaf<K, V>>) {
        let leaves = leaves.drain(..);
        if leaves.len() > 0 {
            self.write(|writer| leaves.for_each(|leaf| writer.remove_leaf(leaf)));
        }
    }

    /// Removes all entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// trie.pin().insert(7, 'a')?;
    /// trie.pin().clear();
    /// assert!(trie.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&self)
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.write(Writer::clear);
    }

    /// Helps the collector to free garbage that no pin protects.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// trie.pin().flush();
    /// ```
    pub fn flush(&self) {
        help(self.epoch());
    }

    /// Makes a change under the lock. If a method of a key panics, defers the nodes and leaves
    /// replaced before the panic, and resumes it.
    fn write<R>(&self, change: impl FnOnce(&mut Writer<'t, K, V>) -> R) -> R {
        let lock = self.of.lock.lock();
        // SAFETY: the lock is held, and retired nodes and leaves are deferred below.
        let mut writer = unsafe { Writer::new(self.of) };
        // Nodes and leaves that a writer has retired are not linked, also when it panics.
        let result = catch_unwind(AssertUnwindSafe(|| change(&mut writer)));
        let (retired, bytes) = (writer.retired, writer.bytes);
        // SAFETY: no thread has read a node that was not linked; it is freed without its children.
        writer.unlinked.into_iter().for_each(|node| drop(unsafe { node.free() }));
        drop(lock);
        if !retired.is_empty() {
            let free = move || free(retired);
            // SAFETY: no later pin finds retired nodes and leaves, and any thread may drop keys and
            // values.
            unsafe { self.of.garbage.defer(bytes + OVERHEAD, self.epoch(), free) };
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Frees nodes and leaves that no reader accesses any more, and drops their keys and values.
fn free<K, V>(retired: Vec<Child<K, V>>) {
    for child in retired {
        // SAFETY: the collector calls this when all pins have ended that may have observed it; it
        // has been retired once.
        let leaf = unsafe { child.free() };
        forget_panic(catch_unwind(AssertUnwindSafe(|| drop(leaf))));
    }
}

/// An iterator over the entries of a [`ConcurrentLcTrie`] in the order of their keys. Created by
/// `iter` and `iter_from` of a [pin](ConcurrentLcTrie::pin).
pub struct TrieIter<'p, K, V>(Walk<'p, K, V>);

impl<'t, K: BitString, V, G: Borrow<Guard>> Pinned<'t, ConcurrentLcTrie<K, V>, G> {
    /// Returns an iterator over all entries, in the order of their keys.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::new();
    /// let pinned = trie.pin();
    /// [3, 1, 2].into_iter().for_each(|key| assert!(pinned.insert(key, ()).is_ok()));
    /// assert!(pinned.iter().map(|(key, ())| key).eq([1, 2, 3]));
    /// ```
    pub fn iter<'p, 'r>(&'p self) -> TrieIter<'r, K, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.iter_from(Bound::Unbounded)
    }

    /// Returns an iterator over the entries from a bound on, in the order of their keys.
    ///
    /// # Example
    ///
    /// ```
    /// use std::ops::Bound;
    ///
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::new();
    /// let pinned = trie.pin();
    /// (0..9).for_each(|key| assert!(pinned.insert(key, ()).is_ok()));
    /// assert_eq!(pinned.iter_from(Bound::Included(7)).count(), 2);
    /// assert_eq!(pinned.iter_from(Bound::Excluded(7)).count(), 1);
    /// ```
    pub fn iter_from<'p, 'r>(&'p self, from: Bound<K>) -> TrieIter<'r, K, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        TrieIter(self.walk(from))
    }
}

impl<'p, K: BitString, V> Iterator for TrieIter<'p, K, V> {
    type Item = (K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|leaf| (leaf.key, &leaf.value))
    }
}

impl<K: BitString, V> FusedIterator for TrieIter<'_, K, V> {}

impl<'p, K: BitString, V, G> IntoIterator for &'p Pinned<'_, ConcurrentLcTrie<K, V>, G>
where
    G: Protect<'p, 'p>,
{
    type Item = (K, &'p V);
    type IntoIter = TrieIter<'p, K, V>;

    fn into_iter(self) -> TrieIter<'p, K, V> {
        self.iter()
    }
}

impl<K, V> fmt::Debug for TrieIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrieIter").finish_non_exhaustive()
    }
}
