//! What the cache says: what it found, who left and why, what is due.

use core::error::Error;
use core::fmt;

use super::state::{Class, EndReason, Protocol, Tenant};
use super::store::Handle;
use crate::key::flow::Direction;
use crate::timestamp::Timestamp;

/// The flow of a packet.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::{Direction, FlowCache, FlowKey, Timestamp};
///
/// let mut cache: FlowCache<FlowKey, u32> = FlowCache::new(Config::new(100)?);
/// let query = FlowKey::new("192.0.2.7".parse()?, "192.0.2.1".parse()?, 5353, 53, 17).unwrap();
/// let seen = cache.observe(&query, Packet::UDP, Timestamp::ZERO)?;
/// assert!(seen.fresh && seen.departed.is_none());
/// let seen = cache.observe(&query.reversed(), Packet::UDP, Timestamp::from_millis(20))?;
/// assert_eq!((seen.fresh, seen.direction, seen.name), (false, Direction::Reverse, 0));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
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
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, EndReason, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(1)?);
/// *cache.observe(&7, Packet::UDP, Timestamp::from_secs(5))?.flow = 70;
/// let seen = cache.observe(&8, Packet::UDP, Timestamp::from_secs(6))?;
/// let left = seen.departed.expect("there is room for one");
/// assert_eq!((left.key, left.value, left.reason), (7, 70, EndReason::Resources));
/// assert_eq!((left.first_seen, left.last_seen), (Timestamp::from_secs(5), Timestamp::from_secs(5)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
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
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Event, Packet, Timeouts};
/// use flowtable::{FlowCache, Timestamp};
///
/// let config = Config::new(100)?.with_timeouts(Timeouts::METER);
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(config);
/// let mut reports = vec![];
/// // A packet in half a minute: it never ends, and is reported each five minutes.
/// for seconds in (0..=330).step_by(30) {
///     let now = Timestamp::from_secs(seconds);
///     cache.advance(now, 100, |event| match event {
///         Event::Active(report) => reports.push((*report.key, core::mem::take(report.value))),
///         Event::Ended(_) => unreachable!("it is never silent for a minute"),
///     });
///     *cache.observe(&7, Packet::UDP, now)?.flow += 1;
/// }
/// assert_eq!(reports, [(7, 10)]); // those up to 270 s, when five minutes are over
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
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
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet, Timeouts};
/// use flowtable::{FlowCache, Timestamp};
///
/// let config = Config::new(100)?.with_timeouts(Timeouts::METER);
/// let mut cache: FlowCache<u64, ()> = FlowCache::new(config);
/// for id in 0..10 {
///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
/// }
/// let now = Timestamp::from_secs(1);
/// let progress = cache.advance(now, 4, |_| ());
/// assert!(progress.is_done && progress.next > Some(now)); // time to sleep
/// let mut ended = vec![];
/// loop {
///     let progress = cache.advance(Timestamp::from_secs(61), 4, |_| ());
///     ended.push(progress.ended);
///     if progress.is_done {
///         break;
///     }
///     // Packets may come here.
/// }
/// assert_eq!(ended, [4, 4, 2]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
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
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::{Direction, FlowCache, FlowKey, Timestamp};
///
/// let mut cache: FlowCache<FlowKey, u32> = FlowCache::new(Config::new(100)?);
/// let query = FlowKey::new("192.0.2.7".parse()?, "192.0.2.1".parse()?, 5353, 53, 17).unwrap();
/// let handle = cache.observe(&query, Packet::UDP, Timestamp::ZERO)?.handle;
/// let found = cache.find(&query.reversed()).expect("it is there");
/// assert_eq!((found.handle, found.direction, found.name), (handle, Direction::Reverse, 0));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMatch {
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
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, NameError, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
/// let first = cache.observe(&1, Packet::UDP, Timestamp::ZERO)?.handle;
/// let second = cache.observe(&2, Packet::UDP, Timestamp::ZERO)?.handle;
/// assert_eq!(cache.add_name(second, &1), Err(NameError::Taken(first)));
/// assert_eq!(cache.remove_name(first, &1), Err(NameError::First));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
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
