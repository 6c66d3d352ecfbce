//! Results, events and errors of a flow cache.

use core::error::Error;
use core::fmt;

use crate::flow_cache::packet::state::{Class, EndReason, Protocol, Tenant};
use crate::flow_cache::store::Handle;
use crate::key::flow::Direction;
use crate::timestamp::Timestamp;

/// A flow that was removed from the cache.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, EndReason, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(1)?);
/// *cache.observe(&7, Packet::UDP, Timestamp::from_secs(5))?.flow = 70;
/// let mut seen = cache.observe(&8, Packet::UDP, Timestamp::from_secs(6))?;
/// let left = seen.take_removed().expect("the cache has one flow at most");
/// assert_eq!((left.key, left.value, left.reason), (7, 70, EndReason::Resources));
/// let at = Timestamp::from_secs(5);
/// assert_eq!((left.first_seen, left.last_seen), (at, at));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedFlow<K, V> {
    /// The former handle. It finds nothing, but still has the ID of the flow.
    pub handle: Handle,
    /// The key, in the direction of the initiator.
    pub key: K,
    /// The value.
    pub value: V,
    /// The reason of the end.
    pub reason: EndReason,
    /// The last class.
    pub class: Class,
    /// The protocol of the first packet.
    pub protocol: Protocol,
    /// The tenant of the first packet.
    pub tenant: Tenant,
    /// The time of the cache at the first packet.
    pub first_seen: Timestamp,
    /// The time of the cache at the last packet.
    pub last_seen: Timestamp,
}

/// An event of [`advance`](crate::flow_cache::FlowCache::advance).
///
/// Exhaustive: an exporter has to handle each kind of event.
#[derive(Debug)]
pub enum Event<'a, K, V> {
    /// A flow has ended.
    Ended(RemovedFlow<K, V>),
    /// The active timeout of a live flow has passed, and the flow has unreported packets.
    Active(Report<'a, K, V>),
}

/// A report of a live flow.
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
/// // A packet each 30 seconds: the flow never ends, and is reported every five minutes.
/// for seconds in (0..=330).step_by(30) {
///     let now = Timestamp::from_secs(seconds);
///     cache.advance(now, 100, |event| match event {
///         Event::Active(report) => reports.push((report.key, core::mem::take(report.value))),
///         Event::Ended(_) => unreachable!("the flow is never idle for a minute"),
///     });
///     *cache.observe(&7, Packet::UDP, now)?.flow += 1;
/// }
/// assert_eq!(reports, [(7, 10)]); // the packets up to 270 s, when five minutes have passed
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Report<'a, K, V> {
    /// The handle of the flow.
    pub handle: Handle,
    /// The key, in the direction of the initiator.
    pub key: K,
    /// The value: take the changes since the last report from it.
    pub value: &'a mut V,
    /// The class.
    pub class: Class,
    /// The protocol of the first packet.
    pub protocol: Protocol,
    /// The tenant of the first packet.
    pub tenant: Tenant,
    /// The time of the cache at the first packet.
    pub first_seen: Timestamp,
    /// The time of the cache at the last packet.
    pub last_seen: Timestamp,
    /// The time of the previous report, or of the first packet. An active timeout that passes
    /// without packets is not reported, and moves this time, too.
    pub since: Timestamp,
}

/// The progress of a call of [`advance`](crate::flow_cache::FlowCache::advance).
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
/// assert!(progress.is_done && progress.next > Some(now)); // idle until then
/// let mut ended = vec![];
/// loop {
///     let progress = cache.advance(Timestamp::from_secs(61), 4, |_| ());
///     ended.push(progress.ended);
///     if progress.is_done {
///         break;
///     }
///     // Other packets may be processed here.
/// }
/// assert_eq!(ended, [4, 4, 2]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Flows examined: no more than the budget.
    pub examined: usize,
    /// Flows that ended.
    pub ended: usize,
    /// Live flows that were reported.
    pub reported: usize,
    /// Whether all due flows were processed. If not, the budget is used up, perhaps by the last
    /// one.
    pub is_done: bool,
    /// The time before which no flow becomes due unless a packet arrives. It may be too early: the
    /// timers of removed and of active flows count until they have run out. `None` if no flow ever
    /// becomes due, and while `is_done` is false.
    pub next: Option<Timestamp>,
}

/// A flow found by key, without a packet.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::{Direction, FlowCache, FlowKey, Timestamp};
///
/// let mut cache: FlowCache<FlowKey, u32> = FlowCache::new(Config::new(100)?);
/// let query = FlowKey::new("192.0.2.7".parse()?, "192.0.2.1".parse()?, 5353, 53, 17).unwrap();
/// let handle = cache.observe(&query, Packet::UDP, Timestamp::ZERO)?.handle();
/// let found = cache.find(&query.reversed()).expect("the flow exists");
/// assert_eq!((found.handle, found.direction, found.alias), (handle, Direction::Reverse, 0));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowMatch {
    /// The handle of the flow.
    pub handle: Handle,
    /// The direction of the flow that the key denotes.
    pub direction: Direction,
    /// The number of the key that matched: 0 is the primary key, others are aliases.
    pub alias: u8,
}

/// The error of a packet that would create a flow: the value of the flow that was not created, and
/// why. The packet is counted; no flow is changed.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{AdmissionError, Config, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u16> = FlowCache::new(Config::new(1)?);
/// let (port, now) = (|port| move || port, Timestamp::ZERO);
/// let handle = cache.observe_with(&7, Packet::UDP, now, port(1024))?.handle();
/// cache.set_pinned(handle, true);
/// let error = cache.observe_with(&8, Packet::UDP, now, port(1025)).unwrap_err();
/// // The port is free again.
/// assert_eq!((error.refused, error.reason), (1025, AdmissionError::Full));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RefusedFlow<V> {
    /// The value, returned.
    pub refused: V,
    /// The reason.
    pub reason: AdmissionError,
}

/// Without the value, so that `unwrap` and `?` need no `Debug` of it.
impl<V> fmt::Debug for RefusedFlow<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedFlow").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<V> fmt::Display for RefusedFlow<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<V> Error for RefusedFlow<V> {}

/// The reason why a flow is not created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The cache is full, and all of its flows are pinned.
    Full,
    /// The tenant has reached its share, and none of its flows can be evicted.
    Tenant,
    /// Memory allocation failed, or the memory limit of the cache is reached.
    Memory,
}

impl fmt::Display for AdmissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the cache is full, and all of its flows are pinned",
            Self::Tenant => "the tenant has reached its share, and its flows are pinned",
            Self::Memory => "the memory for another flow is not available",
        })
    }
}

impl Error for AdmissionError {}

/// Why a packet has no flow: an error of
/// [`FlowCache::try_observe_with`](crate::FlowCache::try_observe_with), which has an example.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ObserveError<V, E> {
    /// The cache refused a new flow.
    Refused(RefusedFlow<V>),
    /// The caller refused a new flow, with this error.
    New(E),
}

impl<V, E: fmt::Debug> fmt::Debug for ObserveError<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => f.debug_tuple("Refused").field(refused).finish(),
            Self::New(error) => f.debug_tuple("New").field(error).finish(),
        }
    }
}

impl<V, E: fmt::Display> fmt::Display for ObserveError<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::New(error) => write!(f, "no value for a new flow: {error}"),
        }
    }
}

impl<V: 'static, E: Error + 'static> Error for ObserveError<V, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::New(error) => error.source(),
        }
    }
}

/// An error of adding or removing an alias. The cache is unchanged.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, AliasError, Packet};
/// use flowtable::{Direction, FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
/// let first = cache.observe(&1, Packet::UDP, Timestamp::ZERO)?.handle();
/// let second = cache.observe(&2, Packet::UDP, Timestamp::ZERO)?.handle();
/// assert_eq!(cache.add_alias(second, Direction::Forward, &1), Err(AliasError::Taken(first)));
/// assert_eq!(cache.remove_key(first, &1), Err(AliasError::PrimaryKey));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AliasError {
    /// The flow has ended.
    NoFlow,
    /// The key refers to this flow already.
    Taken(Handle),
    /// The flow has 255 aliases.
    TooMany,
    /// The key of a flow cannot be removed: it ends with the flow.
    PrimaryKey,
    /// The flow has no such alias.
    NoSuchKey,
    /// Memory allocation failed, or the memory limit of the cache is reached.
    Memory,
}

impl fmt::Display for AliasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFlow => f.write_str("the flow has ended"),
            Self::Taken(handle) => write!(f, "the key refers to flow {}", handle.id()),
            Self::TooMany => f.write_str("the flow has 255 aliases"),
            Self::PrimaryKey => f.write_str("the only key of a flow cannot be removed"),
            Self::NoSuchKey => f.write_str("the flow has no such alias"),
            Self::Memory => f.write_str("the memory for another alias is not available"),
        }
    }
}

impl Error for AliasError {}
