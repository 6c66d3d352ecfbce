//! What the cache says: what it found, who left and why, what is due.

use core::error::Error;
use core::fmt;

use super::store::Handle;
use crate::flow::Direction;
use crate::life::{Class, EndReason, Protocol, Tenant};
use crate::timestamp::Timestamp;

/// The flow of a packet.
#[derive(Debug)]
pub struct Observed<'a, K, V> {
    /// What the user keeps of it.
    pub flow: &'a mut V,
    /// To find it again without its key.
    pub handle: Handle,
    /// Forward is the direction of who began.
    pub direction: Direction,
    /// Which of its names the packet's key is; 0 is the first one.
    pub name: u8,
    /// Its class, this packet included.
    pub class: Class,
    /// Whether this is its first packet.
    pub fresh: bool,
    /// Who had to leave for it, or had its sockets before. Only a fresh flow has one.
    pub departed: Option<Departed<K, V>>,
}

/// A flow that is not in the cache any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed<K, V> {
    /// It finds nothing any more; its number is still that of the flow.
    pub handle: Handle,
    /// Its first name, in the direction of who began.
    pub key: K,
    /// What the user kept of it.
    pub value: V,
    /// Why it left.
    pub reason: EndReason,
    /// Its class at the end.
    pub class: Class,
    /// The protocol of its first packet.
    pub protocol: Protocol,
    /// The tenant of its first packet.
    pub tenant: Tenant,
    /// The time of the cache at its first packet.
    pub first_seen: Timestamp,
    /// The time of the cache at its last packet.
    pub last_seen: Timestamp,
}

/// What [`advance`](super::FlowCache::advance) reports.
#[derive(Debug)]
pub enum Event<'a, K, V> {
    /// A flow is over.
    Ended(Departed<K, V>),
    /// A flow lives, and has packets that were not reported for the active timeout.
    Active(Report<'a, K, V>),
}

/// A flow that lives and is reported.
#[derive(Debug)]
pub struct Report<'a, K, V> {
    /// To find it again.
    pub handle: Handle,
    /// Its first name, in the direction of who began.
    pub key: &'a K,
    /// What the user keeps of it: take what is new since the last report.
    pub value: &'a mut V,
    /// Its class.
    pub class: Class,
    /// The protocol of its first packet.
    pub protocol: Protocol,
    /// The tenant of its first packet.
    pub tenant: Tenant,
    /// The time of the cache at its first packet.
    pub first_seen: Timestamp,
    /// The time of the cache at its last packet.
    pub last_seen: Timestamp,
    /// What came before this has been reported; or its first packet.
    pub since: Timestamp,
}

/// How far [`advance`](super::FlowCache::advance) has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Flows that were looked at: no more than the budget.
    pub examined: usize,
    /// Flows that ended.
    pub ended: usize,
    /// Flows that were reported and live.
    pub reported: usize,
    /// Whether nothing that was due is left. If not, the budget was used up, perhaps by the last one due.
    pub is_done: bool,
    /// Before this nothing will be due, if no packet comes: a time to sleep until. `None` if nothing ever
    /// will, and while it is not done.
    pub next: Option<Timestamp>,
}

/// A key's flow, found without a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The flow.
    pub handle: Handle,
    /// Which direction of it the key names.
    pub direction: Direction,
    /// Which of its names the key is; 0 is the first one.
    pub name: u8,
}

/// Why a packet has no flow. The cache counts it, and has the flows that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The cache is full, and no flow may be evicted: all are pinned.
    Full,
    /// The tenant has its share, and none of its flows may be evicted, or it has no share at all.
    Tenant,
    /// There is no memory for it, or not by the cache's limit.
    Memory,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the cache is full, and all of its flows are pinned",
            Self::Tenant => "the tenant has its share, and none of its flows may leave",
            Self::Memory => "there is no memory for another flow",
        })
    }
}

impl Error for Refused {}

/// Why a name was not given, or not taken away. The cache is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The flow is gone.
    NoFlow,
    /// The name leads to this flow already.
    Taken(Handle),
    /// The flow has 255 further names.
    TooMany,
    /// A flow's first name goes with the flow.
    First,
    /// The flow has no such name.
    NotItsName,
    /// There is no memory for it, or not by the cache's limit.
    Memory,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFlow => f.write_str("the flow is gone"),
            Self::Taken(handle) => write!(f, "the name leads to flow {}", handle.id()),
            Self::TooMany => f.write_str("the flow has 255 further names"),
            Self::First => f.write_str("the first name of a flow goes with the flow"),
            Self::NotItsName => f.write_str("the flow has no such name"),
            Self::Memory => f.write_str("there is no memory for another name"),
        }
    }
}

impl Error for NameError {}
