//! Hash chains: Sequent's, and the combination that the paper dismisses.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use super::bsd::Remembering;
use super::chain::{NONE, Pcbs};
use super::{Arrival, Broken, ChainsError, Demux, Found, NotFound, RejectedPcb};
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
    chains: Chains<Remembering, S>,
}

impl<T, K> Sequent<T, K> {
    /// 19 chains without PCBs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// So many chains without PCBs. O(chains).
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<T, K, S> Sequent<T, K, S> {
    /// So many chains without PCBs, chosen by this hash. O(chains).
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::demux::{Arrival, ChainsError, Demux, Sequent};
    /// use flowtable::hash::Crc16;
    ///
    /// let hasher = BuildHasherDefault::<Crc16>::new();
    /// let mut chains = Sequent::with_chains_and_hasher(100, hasher)?;
    /// chains.insert("a name", 1).unwrap();
    /// assert_eq!(chains.lookup(&"a name", Arrival::Data).pcb, Some(&mut 1));
    /// # Ok::<(), ChainsError>(())
    /// ```
    pub fn with_chains_and_hasher(chains: usize, hasher: S) -> Result<Self, ChainsError> {
        Ok(Self { pcbs: Pcbs::new(), chains: Chains::new(Remembering::EMPTY, chains, hasher)? })
    }
}

impl<T, K, S: Default> Default for Sequent<T, K, S> {
    fn default() -> Self {
        Self { pcbs: Pcbs::new(), chains: Chains::default_of(Remembering::EMPTY) }
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

    fn validate(&self) -> Result<(), Broken> {
        self.chains.validate(&self.pcbs, |chain| chain.first)?;
        let mut chains = self.chains.all.iter();
        chains.try_for_each(|chain| self.pcbs.validate_remembered(chain.first, chain.remembered))
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
    chains: Chains<u32, S>,
}

impl<T, K> SequentMoveToFront<T, K> {
    /// 19 chains without PCBs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// So many chains without PCBs. O(chains).
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn with_chains(chains: usize) -> Result<Self, ChainsError> {
        Self::with_chains_and_hasher(chains, DefaultHashBuilder::new())
    }
}

impl<T, K, S> SequentMoveToFront<T, K, S> {
    /// So many chains without PCBs, chosen by this hash. O(chains).
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::demux::{ChainsError, Demux, SequentMoveToFront};
    /// use flowtable::hash::Crc16;
    ///
    /// let hasher = BuildHasherDefault::<Crc16>::new();
    /// let mut chains = SequentMoveToFront::with_chains_and_hasher(100, hasher)?;
    /// chains.insert("a name", 1).unwrap();
    /// assert_eq!(chains.remove(&"a name"), Ok(1));
    /// # Ok::<(), ChainsError>(())
    /// ```
    pub fn with_chains_and_hasher(chains: usize, hasher: S) -> Result<Self, ChainsError> {
        Ok(Self { pcbs: Pcbs::new(), chains: Chains::new(NONE, chains, hasher)? })
    }
}

impl<T, K, S: Default> Default for SequentMoveToFront<T, K, S> {
    fn default() -> Self {
        Self { pcbs: Pcbs::new(), chains: Chains::default_of(NONE) }
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
        self.pcbs.remove(self.chains.of(key), key).map(|(_, pcb)| pcb).ok_or(NotFound)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), Broken> {
        self.chains.validate(&self.pcbs, |&first| first)
    }
}

/// Chains, of which the hash of a name chooses one.
#[derive(Clone, Debug)]
struct Chains<C, S> {
    all: Box<[C]>,
    hasher: S,
}

impl<C: Copy, S> Chains<C, S> {
    /// So many empty ones.
    fn new(empty: C, chains: usize, hasher: S) -> Result<Self, ChainsError> {
        if chains == 0 {
            return Err(ChainsError::None);
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
    /// The chain of a name.
    #[inline]
    fn of<K: Hash>(&mut self, key: &K) -> &mut C {
        &mut self.all[self.number(key)]
    }

    /// Both halves of a hash have a say, since either may be weak.
    #[inline]
    fn number<K: Hash>(&self, key: &K) -> usize {
        let hash = self.hasher.hash_one(key);
        ((hash ^ hash >> 32) as u32 as usize) % self.all.len()
    }

    /// Whether each PCB is in the chain that its name belongs into, and nowhere else.
    fn validate<K: Eq + Hash, T>(
        &self,
        pcbs: &Pcbs<K, T>,
        first: impl Fn(&C) -> u32,
    ) -> Result<(), Broken> {
        pcbs.validate(self.all.iter().map(&first))?;
        let belong =
            |(number, chain)| pcbs.chain(first(chain)).all(|(key, _)| self.number(key) == number);
        if self.all.iter().enumerate().all(belong) { Ok(()) } else { Err(Broken::Stray) }
    }
}
