//! PCBs, and chains through them: what all lists of this folder are made of.
//!
//! ```text
//!     PCBs      0 │ a │ → 2     1 │ b │ → end     2 │ c │ → 1     3 │ d │ → end
//!     chains    ▸ 0: a, c, b         ▸ 3: d
//! ```
//!
//! A chain is the number of its first PCB, and PCBs have the number of the next one. So one slab serves
//! for all chains of a table, and a chain costs four bytes.
//!
//! Price: a search follows the chain, with a cache miss for each PCB if there are many. A name is
//! looked for before it is put in, so that takes as long as a search that fails.

use super::{Broken, DemuxError, Found, RejectedPcb};
use crate::raw::slab::Slab;

/// No PCB: the end of a chain, or nothing remembered.
pub(super) const NONE: u32 = u32::MAX;

/// A PCB of a chain.
#[derive(Clone, Debug)]
struct Pcb<K, T> {
    key: K,
    /// The next one of the chain, or [`NONE`].
    next: u32,
    pcb: T,
}

/// The PCBs of a table. A chain is the number of its first one, which callers keep.
#[derive(Clone, Debug)]
pub(super) struct Pcbs<K, T>(Slab<Pcb<K, T>>);

/// Where a search ended.
pub(super) struct Search {
    /// The PCB, or [`NONE`].
    pub(super) at: u32,
    /// The one before it in its chain, or [`NONE`].
    before: u32,
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

    /// The PCB at `at`, unless that is [`NONE`].
    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        if at == NONE { None } else { Some(&mut self.0[at].pcb) }
    }

    /// The PCBs of a chain, from its first one on.
    pub(super) fn chain(&self, first: u32) -> impl Iterator<Item = (&K, &T)> {
        self.places(first).map(|at| (&self.0[at].key, &self.0[at].pcb))
    }

    /// The numbers of the PCBs of a chain.
    pub(super) fn places(&self, first: u32) -> impl Iterator<Item = u32> {
        let some = |at| if at == NONE { None } else { Some(at) };
        core::iter::successors(some(first), move |&at| some(self.0[at].next))
    }
}

impl<K: Eq, T> Pcbs<K, T> {
    /// Whether the PCB at `at` is that of `key`. Nothing is remembered where it is [`NONE`].
    #[inline]
    pub(super) fn is_at(&self, at: u32, key: &K) -> bool {
        at != NONE && self.0[at].key == *key
    }

    /// Looks for a name from the front of a chain on.
    #[inline]
    pub(super) fn search(&self, first: u32, key: &K) -> Search {
        let mut search = Search { at: first, before: NONE, examined: 0 };
        while search.at != NONE {
            let pcb = &self.0[search.at];
            search.examined += 1;
            if pcb.key == *key {
                break;
            }
            (search.before, search.at) = (search.at, pcb.next);
        }
        search
    }

    /// Looks for a name and moves its PCB to the front of the chain.
    #[inline]
    pub(super) fn lookup_to_front(&mut self, first: &mut u32, key: &K) -> Found<'_, T> {
        let Search { at, before, examined } = self.search(*first, key);
        if at != NONE && before != NONE {
            self.0[before].next = self.0[at].next;
            self.0[at].next = *first;
            *first = at;
        }
        Found { pcb: self.get_mut(at), examined }
    }

    /// Puts a PCB in front of a chain.
    pub(super) fn insert(&mut self, first: &mut u32, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        if self.search(*first, &key).at != NONE {
            return Err(RejectedPcb { given: pcb, why: DemuxError::InUse });
        }
        if self.0.is_full() {
            return Err(RejectedPcb { given: pcb, why: DemuxError::Full });
        }
        if !self.0.try_reserve() {
            return Err(RejectedPcb { given: pcb, why: DemuxError::NoMemory });
        }
        *first = self.0.insert(Pcb { key, next: *first, pcb });
        Ok(())
    }

    /// Takes a PCB out of its chain. Returns the number that it had, too.
    pub(super) fn remove(&mut self, first: &mut u32, key: &K) -> Option<(u32, T)> {
        let Search { at, before, .. } = self.search(*first, key);
        if at == NONE {
            return None;
        }
        let taken = self.0.remove(at);
        match before {
            NONE => *first = taken.next,
            before => self.0[before].next = taken.next,
        }
        Some((at, taken.pcb))
    }

    /// Whether the chains that begin at these PCBs have each PCB once and no name twice.
    pub(super) fn validate(&self, chains: impl Iterator<Item = u32>) -> Result<(), Broken> {
        let mut chained = 0;
        for first in chains {
            // A chain that runs into itself has more PCBs than there are.
            for (length, at) in self.places(first).enumerate() {
                if length >= self.len() {
                    return Err(Broken::Chains { pcbs: self.len(), chained: length + 1 });
                }
                if self.search(first, &self.0[at].key).at != at {
                    return Err(Broken::Twice);
                }
                chained += 1;
            }
        }
        if chained == self.len() {
            Ok(())
        } else {
            Err(Broken::Chains { pcbs: self.len(), chained })
        }
    }

    /// Whether what is remembered is in the chain that begins at `first`.
    pub(super) fn validate_remembered(&self, first: u32, at: u32) -> Result<(), Broken> {
        if at == NONE || self.places(first).any(|other| other == at) {
            return Ok(());
        }
        Err(Broken::Remembered)
    }
}
