//! Which PCB does this segment belong to? Seven answers, from a list to a trie, and a table of sockets.
//!
//! A host keeps a *protocol control block* (PCB) for each TCP connection, and must find it for each
//! segment that arrives. McKenney and Dove counted how many PCBs are examined on the way; so does
//! everything here that is a [`Demux`].
//!
//! ```text
//!     BsdList               ■ → □ → □ → □ → □ → □ …              one list, newest first; ■ remembered
//!     SendReceive           ■ → □ → ■ → □ → □ → □ …              the last one received for, the last one sent on
//!     MoveToFront           □ → □ → □ → □ → □ → □ …              what is found goes to the front
//!                           └───◂───┘
//!                         ┌ ■ → □ → □
//!     Sequent        hash ┼ □ → ■                                H lists, a remembered PCB for each
//!                         └ □ → □ → ■
//!     SequentMoveToFront  the same, where what is found goes to the front of its list
//!     ConnectionId          □ □ □ □ □ □ □ □                      the packet carries the place of its PCB
//!     TrashDemux     hash ─ tags of eight ─ □                    a TrashMap
//! ```
//!
//! # Which one
//!
//! For 2000 connections of bank tellers (TPC/A), whose answers take 0.2 seconds, PCBs examined for a packet:
//!
//! | structure | PCBs | when to take it |
//! |---|--:|---|
//! | [`BsdList`] | 1001 | segments come in trains, bulk transfers: one PCB for all but the first of a train |
//! | [`MoveToFront`] | 550 | a few connections of many are active |
//! | [`SendReceive`] | 932 | answers are acknowledged before anything else is sent; here, after 10 ms |
//! | [`Sequent`] with 19 chains | 54 | as the paper; more chains cost less: 8.8 with 100 |
//! | [`SequentMoveToFront`] | 30 | never: 34 chains without moving do as well |
//! | [`ConnectionId`] | 1 | the protocol's packets carry an index |
//! | [`TrashDemux`] | 1.02 | any number of connections |
//!
//! These look for exact names. A host also has sockets that listen, ports to hand out and rules who may
//! bind what: that is the [`SocketTable`]. What the paper calculates is in [`analysis`].
//!
//! # Paper
//!
//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets* (1992). The two remembered PCBs are
//! Partridge and Pink's, *A faster UDP* (1993); moving to the front is Crowcroft's.

#[cfg(feature = "std")]
pub mod analysis;
mod bsd;
mod chain;
mod check;
mod connection_id;
mod error;
mod move_to_front;
mod send_receive;
mod sequent;
mod trash;

use core::net::Ipv4Addr;

pub use bsd::BsdList;
pub use check::Broken;
pub use connection_id::ConnectionId;
pub use error::{ChainsError, DemuxError, NotFound, RejectedPcb};
pub use move_to_front::MoveToFront;
pub use send_receive::SendReceive;
pub use sequent::{Sequent, SequentMoveToFront};
pub use trash::TrashDemux;

use crate::key::flow::FourTuple;

/// What a segment that arrives is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// It carries data: likely for the connection that data came for before.
    Data,
    /// It acknowledges, and carries none: likely for the connection that was sent on.
    Ack,
}

/// A PCB that was looked for: see [`Demux::lookup`].
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a, T> {
    /// The PCB, unless there is none by that name.
    pub pcb: Option<&'a mut T>,
    /// PCBs examined, found or not: the paper's measure. To ask a remembered one counts as one.
    pub examined: u32,
}

/// A structure that finds the PCB of a segment, and says how many it examined.
///
/// `K` is the name by which segments say whose they are: as they have it, from the remote socket to the
/// local one. `T` is the PCB.
///
/// The trait is object-safe, so that one loop can measure them all.
///
/// # Example
///
/// ```
/// use flowtable::FourTuple;
/// use flowtable::demux::{Arrival, BsdList, Demux, Sequent};
///
/// let client = |n| FourTuple { src: [10, 0, 0, n].into(), dst: [10, 0, 1, 1].into(), sport: 4000, dport: 23 };
/// let variants: [Box<dyn Demux<u8>>; 2] = [Box::new(BsdList::new()), Box::new(Sequent::new())];
/// for mut demux in variants {
///     for n in 0..100 {
///         demux.insert(client(n), n)?;
///     }
///     let found = demux.lookup(&client(0), Arrival::Data);
///     assert_eq!(found.pcb, Some(&mut 0));
///     // The list has it last; a chain has some five.
///     assert!(found.examined == 100 || found.examined < 20);
///     // The second segment of a train finds it remembered.
///     assert_eq!(demux.lookup(&client(0), Arrival::Data).examined, 1);
///     assert_eq!(demux.remove(&client(0)), Ok(0));
/// }
/// # Ok::<(), flowtable::demux::RejectedPcb<u8>>(())
/// ```
pub trait Demux<T, K = FourTuple<Ipv4Addr>> {
    /// Puts a PCB in.
    ///
    /// # Errors
    ///
    /// If there is a PCB of that name, or no more room; the PCB is given back.
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>>;

    /// The PCB of a segment that arrives, and what it cost to find it.
    fn lookup(&mut self, key: &K, arrival: Arrival) -> Found<'_, T>;

    /// Takes a PCB out.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    fn remove(&mut self, key: &K) -> Result<T, NotFound>;

    /// Is told that a segment is sent on a connection. Only [`SendReceive`] wants to know.
    ///
    /// A stack that sends has the PCB in its hand, so what it takes to find it here counts for nothing.
    fn sent(&mut self, key: &K) {
        let _ = key;
    }

    /// Number of PCBs.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks every invariant, for tests. O(PCBs).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate.
    #[doc(hidden)]
    fn validate(&self) -> Result<(), Broken> {
        Ok(())
    }
}
