//! Hash chains: Sequent's, and their combination with moving to the front.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use super::bsd::CachedChain;
use super::chain::Pcbs;
use super::{Arrival, ChainsError, Demux, Found, NotFound, RejectedPcb};
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::raw::slab::OptIndex;

/// The default number of chains: the paper's.
const CHAINS: usize = 19;

/// Hash chains, each a [`BsdList`](super::BsdList) with a cached PCB: Sequent's, the paper's
/// proposal.
///
/// With H chains, a chain has N / H of N PCBs, and the H cached PCBs match more segments than one
/// would. The number of chains is fixed: choose it for the expected number of connections.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs / chains) |
///
/// Paper: McKenney and Dove, section 3.3; equations 8 and 11 are
/// [`Tpca::sequent`](super::analysis::Tpca::sequent).
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, ChainsError, Demux, Sequent};
///
/// let mut chains = Sequent::with_chains(100)?;
/// for key in 0..1000_u32 {
///     chains.insert(key, ()).unwrap();
/// }
/// let examined = (0..1000).map(|key| chains.lookup(&key, Arrival::Data).examined).sum::<u32>();
/// assert!(examined < 8 * 1000);
/// assert_eq!(Sequent::<()>::with_chains(0).unwrap_err(), ChainsError::NoChains);
/// # Ok::<(), ChainsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequent<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> {
    pcbs: Pcbs<K, T>,
    chains: Chains<CachedChain, S>,
}

impl<T, K> Sequent<T, K> {
    /// Creates `chains` empty chains. O(chains).
    ///
    /// # Errors
    ///
    /// If `chains` is zero, or memory allocation fails.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<T, K, S> Sequent<T, K, S> {
    /// Creates `chains` empty chains, selected by `hasher`. O(chains).
    ///
    /// # Errors
    ///
    /// If `chains` is zero, or memory allocation fails.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::demux::{Arrival, ChainsError, Demux, Sequent};
    /// use std::hash::DefaultHasher;
    ///
    /// let hasher = BuildHasherDefault::<DefaultHasher>::new();
    /// let mut chains = Sequent::with_chains_and_hasher(100, hasher)?;
    /// chains.insert("a key", 1).unwrap();
    /// assert_eq!(chains.lookup(&"a key", Arrival::Data).pcb, Some(&mut 1));
    /// # Ok::<(), ChainsError>(())
    /// ```
    pub fn with_chains_and_hasher(chains: usize, hasher: S) -> Result<Self, ChainsError> {
        Ok(Self { pcbs: Pcbs::new(), chains: Chains::new(CachedChain::EMPTY, chains, hasher)? })
    }
}

impl<T, K, S: Default> Default for Sequent<T, K, S> {
    fn default() -> Self {
        Self { pcbs: Pcbs::new(), chains: Chains::default_of(CachedChain::EMPTY) }
    }
}

impl<T, K: Eq + Hash, S: BuildHasher> Demux<T, K> for Sequent<T, K, S> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        self.pcbs.insert(&mut self.chains.of(&key).first, key, pcb)
    }

    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        self.chains.of(key).lookup(&mut self.pcbs, key)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.chains.of(key).remove(&mut self.pcbs, key)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.chains.validate(&self.pcbs, |chain| chain.first)?;
        let mut chains = self.chains.all.iter();
        chains.try_for_each(|chain| self.pcbs.validate_cached(chain.first, chain.cached))
    }
}

/// Hash chains, each a [`MoveToFront`](super::MoveToFront).
///
/// A lookup examines an H-th of the PCBs that it would in a single such list. The paper mentions
/// the combination and dismisses it, as more chains save as much for less. It is here for
/// comparison.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs / chains) |
///
/// Paper: McKenney and Dove, section 3.4.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, Demux, SequentMoveToFront};
///
/// let mut chains = SequentMoveToFront::with_chains(19).unwrap();
/// chains.insert("a key", 1).unwrap();
/// assert_eq!(chains.lookup(&"a key", Arrival::Data).pcb, Some(&mut 1));
/// ```
#[derive(Clone, Debug)]
pub struct SequentMoveToFront<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> {
    pcbs: Pcbs<K, T>,
    /// The first PCB of each chain.
    chains: Chains<OptIndex, S>,
}

impl<T, K> SequentMoveToFront<T, K> {
    /// Creates `chains` empty chains. O(chains).
    ///
    /// # Errors
    ///
    /// If `chains` is zero, or memory allocation fails.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<T, K, S> SequentMoveToFront<T, K, S> {
    /// Creates `chains` empty chains, selected by `hasher`. O(chains).
    ///
    /// # Errors
    ///
    /// If `chains` is zero, or memory allocation fails.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::demux::{ChainsError, Demux, SequentMoveToFront};
    /// use std::hash::DefaultHasher;
    ///
    /// let hasher = BuildHasherDefault::<DefaultHasher>::new();
    /// let mut chains = SequentMoveToFront::with_chains_and_hasher(100, hasher)?;
    /// chains.insert("a key", 1).unwrap();
    /// assert_eq!(chains.remove(&"a key"), Ok(1));
    /// # Ok::<(), ChainsError>(())
    /// ```
    pub fn with_chains_and_hasher(chains: usize, hasher: S) -> Result<Self, ChainsError> {
        Ok(Self { pcbs: Pcbs::new(), chains: Chains::new(OptIndex::NONE, chains, hasher)? })
    }
}

impl<T, K, S: Default> Default for SequentMoveToFront<T, K, S> {
    fn default() -> Self {
        Self { pcbs: Pcbs::new(), chains: Chains::default_of(OptIndex::NONE) }
    }
}

impl<T, K: Eq + Hash, S: BuildHasher> Demux<T, K> for SequentMoveToFront<T, K, S> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        self.pcbs.insert(self.chains.of(&key), key, pcb)
    }

    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        self.pcbs.lookup_to_front(self.chains.of(key), key)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.pcbs.remove(self.chains.of(key), key).map(|(_, removed)| removed.pcb).ok_or(NotFound)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.chains.validate(&self.pcbs, |&first| first)
    }
}

/// Chains, selected by the hash of a key.
#[derive(Clone, Debug)]
struct Chains<C, S> {
    all: Box<[C]>,
    hasher: S,
}

impl<C: Copy, S> Chains<C, S> {
    /// Creates copies of an empty chain.
    fn new(empty: C, chains: usize, hasher: S) -> Result<Self, ChainsError> {
        if chains == 0 {
            return Err(ChainsError::NoChains);
        }
        let mut all = Vec::new();
        all.try_reserve_exact(chains).map_err(|_| ChainsError::NoMemory)?;
        all.resize(chains, empty);
        Ok(Self { all: all.into_boxed_slice(), hasher })
    }

    fn default_of(empty: C) -> Self
    where
        S: Default,
    {
        Self { all: [empty; CHAINS].into(), hasher: S::default() }
    }
}

impl<C, S: BuildHasher> Chains<C, S> {
    /// The chain of a key.
    #[inline]
    fn of<K: Hash>(&mut self, key: &K) -> &mut C {
        &mut self.all[self.index(key)]
    }

    /// The index of the chain of a key. It depends on both halves of the hash, as either may be
    /// weak.
    #[inline]
    fn index<K: Hash>(&self, key: &K) -> usize {
        let hash = self.hasher.hash_one(key);
        ((hash ^ hash >> 32) as u32 as usize) % self.all.len()
    }

    /// Checks that each PCB is in the chain of its key, and only there.
    fn validate<K: Eq + Hash, T>(
        &self,
        pcbs: &Pcbs<K, T>,
        first: impl Fn(&C) -> OptIndex,
    ) -> Result<(), InvariantError> {
        pcbs.validate(self.all.iter().map(&first))?;
        for (index, chain) in self.all.iter().enumerate() {
            let belongs = pcbs.chain(first(chain)).all(|(key, _)| self.index(key) == index);
            ensure(belongs, || format!("chain {index} has a PCB of another chain"))?;
        }
        Ok(())
    }
}
