//! Demultiplexers: structures that find the PCB of a TCP segment, and count the PCBs examined.
//!
//! A host keeps a *protocol control block* (PCB) for each TCP connection, and looks it up for each
//! segment that arrives. McKenney and Dove compared structures by the number of PCBs examined per
//! lookup. Each structure here implements [`Demux`], which reports that number.
//!
//! ```text
//!     BsdList               ■ → □ → □ → □ → □ → □ …     one list, newest first; ■ cached
//!     SendReceive           ■ → □ → ■ → □ → □ → □ …     cached: last received for, last sent on
//!     MoveToFront           □ → □ → □ → □ → □ → □ …     a lookup moves the PCB to the front
//!                           └───◂───┘
//!                         ┌ ■ → □ → □
//!     Sequent        hash ┼ □ → ■                       H lists, one cached PCB for each
//!                         └ □ → □ → ■
//!     SequentMoveToFront                                H lists that move to the front
//!     ConnectionId          □ □ □ □ □ □ □ □             the packet carries the index of its PCB
//!     TrashDemux     hash ─ tags of 16 ─ □              a TrashMap
//! ```
//!
//! Six connections in three of these, and the PCBs that lookups examine:
//!
//! ```
//! use flowtable::demux::{Arrival::Data, BsdList, Demux, MoveToFront, Sequent};
//! use flowtable::hash::IdHasher;
//!
//! let mut list = BsdList::new();
//! let mut front = MoveToFront::new();
//! let mut chains = Sequent::with_chains_and_hasher(3, IdHasher)?;
//! for key in 1..=6_u64 {
//!     list.insert(key, ()).unwrap();
//!     front.insert(key, ()).unwrap();
//!     chains.insert(key, ()).unwrap();
//! }
//! // 6 → 5 → 4 → 3 → 2 → 1: the fourth is found, and cached.
//! assert_eq!([3, 3].map(|key| list.lookup(&key, Data).examined), [4, 1]);
//! // The cached PCB has another key: it is examined in addition.
//! assert_eq!(list.lookup(&4, Data).examined, 1 + 3);
//! assert!(list.iter().map(|(key, _)| *key).eq([6, 5, 4, 3, 2, 1]));
//!
//! // The same list, of which the fourth moves to the front.
//! assert_eq!([3, 3].map(|key| front.lookup(&key, Data).examined), [4, 1]);
//! assert!(front.iter().map(|(key, _)| *key).eq([3, 6, 5, 4, 2, 1]));
//!
//! // 6 → 3, 4 → 1 and 5 → 2: connections of several chains do not replace each other's cached PCB.
//! assert_eq!([3, 1, 2].map(|key| chains.lookup(&key, Data).examined), [2, 2, 2]);
//! assert_eq!([3, 1, 2].map(|key| chains.lookup(&key, Data).examined), [1, 1, 1]);
//! # Ok::<(), flowtable::demux::ChainsError>(())
//! ```
//!
//! # Which one
//!
//! PCBs examined per packet for 2000 connections of bank tellers (TPC/A) with a response time of
//! 0.2 seconds:
//!
//! | structure | PCBs | when to use it |
//! |---|--:|---|
//! | [`BsdList`] | 1001 | trains of segments (bulk transfers): 1 PCB after the first of a train |
//! | [`MoveToFront`] | 550 | a few connections of many are active |
//! | [`SendReceive`] | 932 | a response is acknowledged before the next is sent; here, in 10 ms |
//! | [`Sequent`] with 19 chains | 54 | as in the paper; more chains cost less: 8.8 with 100 |
//! | [`SequentMoveToFront`] | 30 | never: 34 chains without moving cost no more |
//! | [`ConnectionId`] | 1 | the protocol's packets carry an index |
//! | [`TrashDemux`] | 1.02 | any number of connections |
//!
//! All of these find exact keys only. Listening sockets, ephemeral ports and the rules of `bind`
//! are the subject of [`SocketTable`](crate::SocketTable). The paper's equations are in `analysis`
//! (with the feature `std`).
//!
//! # Papers
//!
//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets* (1992). The two cached
//! PCBs are from Partridge and Pink, *A faster UDP* (1993); moving to the front is due to
//! Crowcroft.

#[cfg(feature = "std")]
pub mod analysis;
mod chain;
mod connection_id;
mod list;
mod sequent;
mod trash;

use core::error::Error;
use core::fmt;
use core::net::Ipv4Addr;

pub use connection_id::ConnectionId;
pub use list::{BsdList, List, MoveToFront, SendReceive};
pub use sequent::{Chains, Sequent, SequentMoveToFront};
pub use trash::TrashDemux;

use crate::invariant::InvariantError;
use crate::key::flow::FourTuple;

/// The kind of a segment that arrives. [`SendReceive`] chooses the first PCB to examine by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// A segment with data: likely for the connection that data was last received for.
    Data,
    /// An acknowledgement without data: likely for the connection that was last sent on.
    Ack,
}

/// The result of a lookup by [`Demux::lookup`].
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a, T> {
    /// The PCB, or `None` if there is none with this key.
    pub pcb: Option<&'a mut T>,
    /// PCBs examined, found or not: the paper's measure. A probe of a cached PCB counts as one.
    pub examined: u32,
}

/// A structure that finds the PCB of a segment and counts the PCBs examined.
///
/// `K` is the key of a connection as its segments carry it: from the remote socket to the local
/// one. `T` is the PCB.
///
/// The trait is object-safe, so that one loop can measure all structures.
///
/// # Implementing it
///
/// The trait is open: implement it to measure a structure of another crate, or to wrap one of
/// these. Generic code relies on the following:
///
/// - Each key has at most one PCB: [`insert`](Self::insert) with a key that is present fails with
///   [`DemuxError::InUse`].
/// - A failed [`insert`](Self::insert) or [`remove`](Self::remove) changes nothing, and a failed
///   `insert` returns the PCB.
/// - [`lookup`](Self::lookup) returns the PCB inserted with an equal key, for every [`Arrival`],
///   until that key is removed. `arrival` and [`sent`](Self::sent) may change
///   [`examined`](Found::examined), never [`pcb`](Found::pcb).
/// - [`examined`](Found::examined) counts each PCB looked at, cached ones included. It is at least
///   1 if a PCB is found.
/// - [`len`](Self::len) is the number of successful insertions less the number of successful
///   removals.
///
/// Methods added to the trait later will have default implementations.
///
/// # Example
///
/// ```
/// use flowtable::FourTuple;
/// use flowtable::demux::{Arrival, BsdList, Demux, Sequent};
///
/// let server = [10, 0, 1, 1].into();
/// let client = |n| FourTuple { src: [10, 0, 0, n].into(), dst: server, sport: 4000, dport: 23 };
/// let chains = Sequent::with_chains(19)?;
/// let variants: [Box<dyn Demux<u8>>; 2] = [Box::new(BsdList::new()), Box::new(chains)];
/// for mut demux in variants {
///     for n in 0..100 {
///         demux.insert(client(n), n)?;
///     }
///     let found = demux.lookup(&client(0), Arrival::Data);
///     assert_eq!(found.pcb, Some(&mut 0));
///     // It is the last one of the list, but one of about five in its chain.
///     assert!(found.examined == 100 || found.examined < 20);
///     // The second segment of a train finds it cached.
///     assert_eq!(demux.lookup(&client(0), Arrival::Data).examined, 1);
///     assert_eq!(demux.remove(&client(0)), Ok(0));
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait Demux<T, K = FourTuple<Ipv4Addr>> {
    /// Inserts a PCB under `key`.
    ///
    /// # Errors
    ///
    /// If `key` has a PCB, or the structure is full or out of memory. The error returns the PCB.
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>>;

    /// Finds the PCB of a segment that arrives, and counts the PCBs examined.
    fn lookup(&mut self, key: &K, arrival: Arrival) -> Found<'_, T>;

    /// Removes the PCB of `key` and returns it.
    ///
    /// # Errors
    ///
    /// If there is none.
    fn remove(&mut self, key: &K) -> Result<T, NotFound>;

    /// Records that a segment is sent on a connection. Only [`SendReceive`] uses it.
    ///
    /// A stack that sends has a reference to the PCB already, so the cost of finding it here is not
    /// counted.
    fn sent(&mut self, key: &K) {
        let _ = key;
    }

    /// Returns the number of PCBs.
    fn len(&self) -> usize;

    /// Returns whether there are no PCBs.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks all invariants, for tests. O(PCBs).
    ///
    /// # Errors
    ///
    /// The broken invariant: a bug in this crate, or keys that break the contract of `Hash` and
    /// `Eq`.
    #[doc(hidden)]
    fn validate(&self) -> Result<(), InvariantError> {
        Ok(())
    }
}

/// The error of [`Demux::insert`]: the PCB that was not inserted, and why.
#[derive(Clone, PartialEq, Eq)]
pub struct RejectedPcb<T> {
    /// The PCB, returned.
    pub refused: T,
    /// The reason.
    pub reason: DemuxError,
}

/// Without the PCB, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for RejectedPcb<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedPcb").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for RejectedPcb<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> Error for RejectedPcb<T> {}

/// The reason why a [`Demux`] rejects a PCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DemuxError {
    /// The key has a PCB already.
    InUse,
    /// The structure has 2^31 - 1 PCBs, the most it can have.
    Full,
    /// The connection ID is not below the capacity.
    NoSuchId,
    /// Memory allocation failed.
    NoMemory,
}

impl fmt::Display for DemuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "the key has a PCB already",
            Self::Full => "the structure has 2^31 - 1 PCBs, the most it can have",
            Self::NoSuchId => "the connection ID is not below the capacity",
            Self::NoMemory => "memory allocation failed",
        })
    }
}

impl Error for DemuxError {}

/// The error of a constructor with an invalid number of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainsError {
    /// The number of chains is zero.
    NoChains,
    /// Memory allocation failed.
    NoMemory,
}

impl fmt::Display for ChainsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoChains => "the number of chains is zero",
            Self::NoMemory => "memory allocation for the chains failed",
        })
    }
}

impl Error for ChainsError {}

/// The error of a removal: there is no entry with this key.
///
/// # Example
///
/// ```
/// use flowtable::SocketTable;
/// use flowtable::demux::NotFound;
/// use flowtable::sockets::{Local, Reuse};
///
/// let mut sockets = SocketTable::new(10);
/// let name = sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, "resolver")?;
/// assert_eq!(sockets.remove(&name), Ok("resolver"));
/// assert_eq!(sockets.remove(&name), Err(NotFound));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound;

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no entry with this key")
    }
}

impl Error for NotFound {}
