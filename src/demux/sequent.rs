//! Hash chains: Sequent's, and their combination with moving to the front.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use super::chain::{Chain, Pcbs};
use super::{Arrival, ChainsError, Demux, Found, NotFound, RejectedPcb};
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};

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
pub type Sequent<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> =
    Chains<1, T, K, S>;

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
pub type SequentMoveToFront<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> =
    Chains<0, T, K, S>;

/// Hash chains, each a [`List`](super::List): a [`Sequent`] or a [`SequentMoveToFront`].
#[derive(Clone, Debug)]
pub struct Chains<
    const CACHED: usize,
    T,
    K = super::FourTuple<super::Ipv4Addr>,
    S = DefaultHashBuilder,
> {
    pcbs: Pcbs<K, T>,
    chains: Box<[Chain<CACHED>]>,
    hasher: S,
}

impl<const CACHED: usize, T, K> Chains<CACHED, T, K> {
    /// Creates `chains` empty chains. O(chains).
    ///
    /// # Errors
    ///
    /// If `chains` is zero, or memory allocation fails.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<const CACHED: usize, T, K, S> Chains<CACHED, T, K, S> {
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
        if chains == 0 {
            return Err(ChainsError::NoChains);
        }
        let mut all = Vec::new();
        all.try_reserve_exact(chains).map_err(|_| ChainsError::NoMemory)?;
        all.resize(chains, Chain::EMPTY);
        Ok(Self { pcbs: Pcbs::new(), chains: all.into_boxed_slice(), hasher })
    }
}

impl<const CACHED: usize, T, K: Hash, S: BuildHasher> Chains<CACHED, T, K, S> {
    /// Returns the index of the chain of a key. It depends on both halves of the hash, as either
    /// may be weak.
    #[inline]
    fn index(&self, key: &K) -> usize {
        let hash = self.hasher.hash_one(key);
        ((hash ^ hash >> 32) as u32 as usize) % self.chains.len()
    }
}

impl<const CACHED: usize, T, K, S: Default> Default for Chains<CACHED, T, K, S> {
    fn default() -> Self {
        let chains = [Chain::EMPTY; CHAINS].into();
        Self { pcbs: Pcbs::new(), chains, hasher: S::default() }
    }
}

impl<const CACHED: usize, T, K: Eq + Hash, S: BuildHasher> Demux<T, K> for Chains<CACHED, T, K, S> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        let index = self.index(&key);
        self.pcbs.insert(&mut self.chains[index].first, key, pcb)
    }

    fn lookup(&mut self, key: &K, arrival: Arrival) -> Found<'_, T> {
        let index = self.index(key);
        self.chains[index].lookup(&mut self.pcbs, key, arrival)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        let index = self.index(key);
        self.chains[index].remove(&mut self.pcbs, key)
    }

    fn sent(&mut self, key: &K) {
        let index = self.index(key);
        self.chains[index].sent(&self.pcbs, key);
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.pcbs.validate(self.chains.iter().copied())?;
        for (index, chain) in self.chains.iter().enumerate() {
            let belongs = self.pcbs.chain(chain.first).all(|(key, _)| self.index(key) == index);
            ensure(belongs, || format!("chain {index} has a PCB of another chain"))?;
        }
        Ok(())
    }
}
