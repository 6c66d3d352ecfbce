//! Hash chains: Sequent's, and the combination that the paper dismisses.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use super::bsd::Remembering;
use super::chain::{NONE, Pcbs};
use super::{Arrival, Broken, ChainsError, Demux, Found, NotFound, Refused};
use crate::hash::DefaultHashBuilder;

/// Chains that there are unless somebody says otherwise: the paper's number.
const CHAINS: usize = 19;

/// Hash chains, each a [`BsdList`](super::BsdList) with a remembered PCB of its own: Sequent's, the paper's answer.
///
/// A chain of H has N / H of N PCBs, and more segments for the remembered one, as there are H of them. The
/// number of chains stays as it is: choose it for as many connections as there will be.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs / chains) |
///
/// Paper: McKenney and Dove, section 3.4; equations 8 and 11 are
/// [`Tpca::sequent_ignoring_trains`](super::analysis::Tpca::sequent_ignoring_trains) and
/// [`Tpca::sequent`](super::analysis::Tpca::sequent).
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, ChainsError, Demux, Sequent};
///
/// let mut chains = Sequent::with_chains(100)?;
/// for number in 0..1000_u32 {
///     chains.insert(number, ()).unwrap();
/// }
/// let examined: u32 = (0..1000).map(|number| chains.lookup(&number, Arrival::Data).examined).sum();
/// assert!(examined < 8 * 1000);
/// assert_eq!(Sequent::<()>::with_chains(0).unwrap_err(), ChainsError::None);
/// # Ok::<(), ChainsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequent<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> {
    pcbs: Pcbs<K, T>,
    chains: Box<[Remembering]>,
    hasher: S,
}

impl<T, K> Sequent<T, K> {
    /// 19 chains without PCBs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// So many chains without PCBs.
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<T, K, S> Sequent<T, K, S> {
    /// So many chains without PCBs, chosen by this hash.
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn with_chains_and_hasher(chains: usize, hasher: S) -> Result<Self, ChainsError> {
        Ok(Self { pcbs: Pcbs::new(), chains: all(Remembering::EMPTY, chains)?, hasher })
    }
}

impl<T, K, S: Default> Default for Sequent<T, K, S> {
    fn default() -> Self {
        Self {
            pcbs: Pcbs::new(),
            chains: [Remembering::EMPTY; CHAINS].into(),
            hasher: S::default(),
        }
    }
}

impl<T, K: Eq + Hash, S: BuildHasher> Demux<T, K> for Sequent<T, K, S> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), Refused<T>> {
        let chain = choose(&self.hasher, self.chains.len(), &key);
        self.pcbs.insert(&mut self.chains[chain].first, key, pcb)
    }

    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        let chain = choose(&self.hasher, self.chains.len(), key);
        self.chains[chain].lookup(&mut self.pcbs, key)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        let chain = choose(&self.hasher, self.chains.len(), key);
        self.chains[chain].remove(&mut self.pcbs, key)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), Broken> {
        self.pcbs.validate(self.chains.iter().map(|chain| chain.first))?;
        for (number, chain) in self.chains.iter().enumerate() {
            self.pcbs.validate_remembered(chain.first, chain.remembered)?;
            validate_hashes(&self.pcbs, &self.hasher, self.chains.len(), number, chain.first)?;
        }
        Ok(())
    }
}

/// Hash chains, each a [`MoveToFront`](super::MoveToFront).
///
/// Examines an H-th of the PCBs that a single such list examines. The paper mentions it, and dismisses it:
/// more chains do the same for less. Here it is to see that this is so.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs / chains) |
///
/// Paper: McKenney and Dove, section 3.5.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, Demux, SequentMoveToFront};
///
/// let mut chains = SequentMoveToFront::new();
/// chains.insert("a name", 1).unwrap();
/// assert_eq!(chains.lookup(&"a name", Arrival::Data).pcb, Some(&mut 1));
/// ```
#[derive(Clone, Debug)]
pub struct SequentMoveToFront<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> {
    pcbs: Pcbs<K, T>,
    /// The first PCB of each.
    chains: Box<[u32]>,
    hasher: S,
}

impl<T, K> SequentMoveToFront<T, K> {
    /// 19 chains without PCBs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// So many chains without PCBs.
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<T, K, S> SequentMoveToFront<T, K, S> {
    /// So many chains without PCBs, chosen by this hash.
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn with_chains_and_hasher(chains: usize, hasher: S) -> Result<Self, ChainsError> {
        Ok(Self { pcbs: Pcbs::new(), chains: all(NONE, chains)?, hasher })
    }
}

impl<T, K, S: Default> Default for SequentMoveToFront<T, K, S> {
    fn default() -> Self {
        Self { pcbs: Pcbs::new(), chains: [NONE; CHAINS].into(), hasher: S::default() }
    }
}

impl<T, K: Eq + Hash, S: BuildHasher> Demux<T, K> for SequentMoveToFront<T, K, S> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), Refused<T>> {
        let chain = choose(&self.hasher, self.chains.len(), &key);
        self.pcbs.insert(&mut self.chains[chain], key, pcb)
    }

    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        let chain = choose(&self.hasher, self.chains.len(), key);
        self.pcbs.lookup_to_front(&mut self.chains[chain], key)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        let chain = choose(&self.hasher, self.chains.len(), key);
        self.pcbs.remove(&mut self.chains[chain], key).map(|(_, pcb)| pcb).ok_or(NotFound)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), Broken> {
        self.pcbs.validate(self.chains.iter().copied())?;
        for (number, &first) in self.chains.iter().enumerate() {
            validate_hashes(&self.pcbs, &self.hasher, self.chains.len(), number, first)?;
        }
        Ok(())
    }
}

/// So many empty chains.
fn all<C: Copy>(empty: C, chains: usize) -> Result<Box<[C]>, ChainsError> {
    if chains == 0 {
        return Err(ChainsError::None);
    }
    let mut all = Vec::new();
    all.try_reserve_exact(chains).map_err(|_| ChainsError::NoMemory)?;
    all.resize(chains, empty);
    Ok(all.into_boxed_slice())
}

/// The chain of a name. Both halves of a hash have a say, since either may be weak.
#[inline]
fn choose<K: Hash>(hasher: &impl BuildHasher, chains: usize, key: &K) -> usize {
    let hash = hasher.hash_one(key);
    ((hash ^ hash >> 32) as u32 as usize) % chains
}

/// Whether the names of a chain belong there.
fn validate_hashes<K: Hash, T>(
    pcbs: &Pcbs<K, T>,
    hasher: &impl BuildHasher,
    chains: usize,
    number: usize,
    first: u32,
) -> Result<(), Broken> {
    let belong = pcbs.chain(first).all(|(key, _)| choose(hasher, chains, key) == number);
    if belong { Ok(()) } else { Err(Broken::Stray) }
}
