//! Singly linked chains of PCBs: the storage of all lists in this folder.
//!
//! ```text
//!     PCBs      0 │ a │ → 2     1 │ b │ → end     2 │ c │ → 1     3 │ d │ → end
//!     chains    ▸ 0: a, c, b         ▸ 3: d
//! ```
//!
//! A chain is the index of its first PCB, and each PCB has the index of the next. So one slab
//! serves all chains of a table, and a chain costs four bytes.
//!
//! Cost: a search follows the chain, with a cache miss for each PCB if there are many. An insertion
//! searches for its key first, so it costs as much as an unsuccessful search.

use alloc::format;

use super::{DemuxError, Found, RejectedPcb};
use crate::invariant::{InvariantError, ensure};
use crate::raw::slab::OptIndex;
use crate::raw::slab::Slab;

/// A PCB of a chain.
#[derive(Clone, Debug)]
pub(super) struct Pcb<K, T> {
    key: K,
    /// The next PCB of the chain.
    next: OptIndex,
    pub(super) pcb: T,
}

/// The PCBs of a table. Callers store the first index of each chain.
#[derive(Clone, Debug)]
pub(super) struct Pcbs<K, T>(Slab<Pcb<K, T>>);

/// The result of a search.
pub(super) struct Search {
    /// The PCB, if the key was found.
    pub(super) at: OptIndex,
    /// The previous PCB of the chain; if the key was not found, the last one.
    previous: OptIndex,
    /// PCBs compared.
    pub(super) examined: u32,
}

impl<K, T> Pcbs<K, T> {
    pub(super) const fn new() -> Self {
        Self(Slab::new())
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a mutable reference to the PCB at `at`, if that is an index.
    #[inline]
    pub(super) fn get_mut(&mut self, at: OptIndex) -> Option<&mut T> {
        at.get().map(|index| &mut self.0[index].pcb)
    }

    /// The PCBs of a chain, from its first one on.
    pub(super) fn chain(&self, first: OptIndex) -> impl Iterator<Item = (&K, &T)> {
        self.indices(first).map(|index| (&self.0[index].key, &self.0[index].pcb))
    }

    /// The indices of the PCBs of a chain.
    fn indices(&self, first: OptIndex) -> impl Iterator<Item = u32> {
        first.list(|index| self.0[index].next)
    }
}

impl<K: Eq, T> Pcbs<K, T> {
    /// Returns whether `at` is the index of the PCB of `key`.
    #[inline]
    pub(super) fn is_at(&self, at: OptIndex, key: &K) -> bool {
        at.get().is_some_and(|index| self.0[index].key == *key)
    }

    /// Searches a chain for a key, from its first PCB on.
    #[inline]
    pub(super) fn search(&self, first: OptIndex, key: &K) -> Search {
        let mut search = Search { at: first, previous: OptIndex::NONE, examined: 0 };
        while let Some(index) = search.at.get() {
            let pcb = &self.0[index];
            search.examined += 1;
            if pcb.key == *key {
                break;
            }
            (search.previous, search.at) = (search.at, pcb.next);
        }
        search
    }

    /// Searches a chain for a key, and moves its PCB to the front.
    #[inline]
    pub(super) fn lookup_to_front(&mut self, first: &mut OptIndex, key: &K) -> Found<'_, T> {
        let Search { at, previous, examined } = self.search(*first, key);
        if let (Some(index), Some(previous)) = (at.get(), previous.get()) {
            self.0[previous].next = self.0[index].next;
            self.0[index].next = *first;
            *first = at;
        }
        Found { pcb: self.get_mut(at), examined }
    }

    /// Inserts a PCB at the front of a chain.
    pub(super) fn insert(
        &mut self,
        first: &mut OptIndex,
        key: K,
        pcb: T,
    ) -> Result<(), RejectedPcb<T>> {
        if self.search(*first, &key).at.is_some() {
            return Err(RejectedPcb { refused: pcb, reason: DemuxError::InUse });
        }
        if self.0.is_full() {
            return Err(RejectedPcb { refused: pcb, reason: DemuxError::Full });
        }
        if !self.0.try_reserve() {
            return Err(RejectedPcb { refused: pcb, reason: DemuxError::NoMemory });
        }
        *first = OptIndex::some(self.0.insert(Pcb { key, next: *first, pcb }));
        Ok(())
    }

    /// Removes the PCB of `key` from a chain. Returns its index, and the entry that was there, to
    /// be dropped last: the drop of a key may panic.
    pub(super) fn remove(
        &mut self,
        first: &mut OptIndex,
        key: &K,
    ) -> Option<(OptIndex, Pcb<K, T>)> {
        let Search { at, previous, .. } = self.search(*first, key);
        let removed = self.0.remove(at.get()?);
        match previous.get() {
            None => *first = removed.next,
            Some(previous) => self.0[previous].next = removed.next,
        }
        Some((at, removed))
    }

    /// Checks that these chains contain each PCB once, and no key twice.
    pub(super) fn validate(
        &self,
        chains: impl Iterator<Item = OptIndex>,
    ) -> Result<(), InvariantError> {
        let mut chained = 0;
        for first in chains {
            // A chain with a cycle has more PCBs than the slab.
            for (length, index) in self.indices(first).enumerate() {
                ensure(length < self.len(), || {
                    format!("a chain has more than all {} PCBs", self.len())
                })?;
                let found = self.search(first, &self.0[index].key).at;
                ensure(found == OptIndex::some(index), || "a chain has a key twice")?;
                chained += 1;
            }
        }
        ensure(chained == self.len(), || format!("chains have {chained} of {} PCBs", self.len()))
    }

    /// Checks that the cached PCB, if there is one, is in the chain that begins at `first`.
    pub(super) fn validate_cached(
        &self,
        first: OptIndex,
        cached: OptIndex,
    ) -> Result<(), InvariantError> {
        let is_chained = |index| self.indices(first).any(|other| other == index);
        ensure(cached.get().is_none_or(is_chained), || "a cached PCB is not in its chain")
    }
}
