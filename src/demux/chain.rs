//! Singly linked chains of PCBs: the storage of all lists in this folder.
//!
//! ```text
//!     PCBs      0 │ a │ → 2     1 │ b │ → end     2 │ c │ → 1     3 │ d │ → end
//!     chains    ▸ 0: a, c, b         ▸ 3: d
//! ```
//!
//! A chain is the index of its first PCB, and each PCB has the index of the next. So one slab
//! serves all chains of a table, and a chain costs four bytes, and four for each cached PCB.
//!
//! Cost: a search follows the chain, with a cache miss for each PCB if there are many. An insertion
//! searches for its key first, so it costs as much as an unsuccessful search.

use alloc::format;

use super::{Arrival, DemuxError, Found, NotFound, RejectedPcb};
use crate::invariant::{InvariantError, ensure};
use crate::raw::slab::{OptIndex, Slab};

/// A PCB of a chain.
#[derive(Clone, Debug)]
struct Pcb<K, T> {
    key: K,
    /// The next PCB of the chain.
    next: OptIndex,
    pcb: T,
}

/// The PCBs of a table. Callers store its chains.
#[derive(Clone, Debug)]
pub(super) struct Pcbs<K, T>(Slab<Pcb<K, T>>);

/// The result of a search.
struct Search {
    /// The PCB, if the key was found.
    at: OptIndex,
    /// The previous PCB of the chain; if the key was not found, the last one.
    previous: OptIndex,
    /// PCBs compared.
    examined: u32,
}

impl<K, T> Pcbs<K, T> {
    pub(super) const fn new() -> Self {
        Self(Slab::new())
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
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
    fn is_at(&self, at: OptIndex, key: &K) -> bool {
        at.get().is_some_and(|index| self.0[index].key == *key)
    }

    /// Searches a chain for a key, from its first PCB on.
    #[inline]
    fn search(&self, first: OptIndex, key: &K) -> Search {
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

    /// Checks that these chains contain each PCB once, no key twice, and their cached PCBs.
    pub(super) fn validate<const CACHED: usize>(
        &self,
        chains: impl Iterator<Item = Chain<CACHED>>,
    ) -> Result<(), InvariantError> {
        let mut chained = 0;
        for Chain { first, cached } in chains {
            // A chain with a cycle has more PCBs than the slab.
            for (length, index) in self.indices(first).enumerate() {
                ensure(length < self.len(), || {
                    format!("a chain has more than all {} PCBs", self.len())
                })?;
                let found = self.search(first, &self.0[index].key).at;
                ensure(found == OptIndex::some(index), || "a chain has a key twice")?;
                chained += 1;
            }
            let is_chained = |index| self.indices(first).any(|other| other == index);
            let are_chained = cached.iter().all(|at| at.get().is_none_or(is_chained));
            ensure(are_chained, || "a cached PCB is not in its chain")?;
        }
        ensure(chained == self.len(), || format!("chains have {chained} of {} PCBs", self.len()))
    }
}

/// A chain of PCBs, of which `CACHED` are cached, and examined before the chain: the PCB last
/// received for, and the one last sent on. If none is cached, a lookup moves the PCB to the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<const CACHED: usize> {
    pub(super) first: OptIndex,
    cached: [OptIndex; CACHED],
}

impl<const CACHED: usize> Chain<CACHED> {
    pub(super) const EMPTY: Self = Self { first: OptIndex::NONE, cached: [OptIndex::NONE; CACHED] };

    #[inline]
    pub(super) fn lookup<'a, K: Eq, T>(
        &mut self,
        pcbs: &'a mut Pcbs<K, T>,
        key: &K,
        arrival: Arrival,
    ) -> Found<'a, T> {
        let mut probed = 0;
        let cached = self.in_order(arrival).into_iter().find(|&at| {
            probed += u32::from(at.is_some());
            pcbs.is_at(at, key)
        });
        let mut examined = probed;
        let at = cached.unwrap_or_else(|| {
            let search = pcbs.search(self.first, key);
            examined += search.examined;
            if CACHED == 0 {
                self.move_to_front(pcbs, &search);
            }
            search.at
        });
        if let Some(received) = self.cached.first_mut().filter(|_| at.is_some()) {
            *received = at;
        }
        Found { pcb: at.get().map(|index| &mut pcbs.0[index].pcb), examined }
    }

    /// The cached PCBs in the order in which they are examined, each once.
    #[inline]
    fn in_order(&self, arrival: Arrival) -> [OptIndex; CACHED] {
        let mut cached = self.cached;
        if arrival == Arrival::Ack {
            cached.reverse();
        }
        if let [first, second] = &mut cached[..] {
            if first == second {
                *second = OptIndex::NONE;
            }
        }
        cached
    }

    #[inline]
    fn move_to_front<K, T>(&mut self, Pcbs(pcbs): &mut Pcbs<K, T>, search: &Search) {
        if let (Some(index), Some(previous)) = (search.at.get(), search.previous.get()) {
            pcbs[previous].next = pcbs[index].next;
            pcbs[index].next = self.first;
            self.first = search.at;
        }
    }

    /// Caches the PCB of a segment that is sent, if two are cached.
    pub(super) fn sent<K: Eq, T>(&mut self, pcbs: &Pcbs<K, T>, key: &K) {
        if CACHED < 2 {
            return;
        }
        let cached = self.cached.into_iter().find(|&at| pcbs.is_at(at, key));
        let at = cached.unwrap_or_else(|| pcbs.search(self.first, key).at);
        if at.is_some() {
            self.cached[1] = at;
        }
    }

    pub(super) fn remove<K: Eq, T>(
        &mut self,
        pcbs: &mut Pcbs<K, T>,
        key: &K,
    ) -> Result<T, NotFound> {
        let Search { at, previous, .. } = pcbs.search(self.first, key);
        // Dropped last: the drop of a key may panic.
        let removed = pcbs.0.remove(at.get().ok_or(NotFound)?);
        match previous.get() {
            None => self.first = removed.next,
            Some(previous) => pcbs.0[previous].next = removed.next,
        }
        self.cached.iter_mut().filter(|cached| **cached == at).for_each(|cached| {
            *cached = OptIndex::NONE;
        });
        Ok(removed.pcb)
    }
}
