//! Expected flows, beside a cache: those that the signalling of FTP or SIP negotiates.
//!
//! ```text
//!     FTP    client:40000 ⇄ server:21      the parent: "227 Entering Passive Mode (…,195,80)"
//!                 │ expect                                     client:any ──▸ server:50000
//!                 ▼
//!            client:40001 ⇄ server:50000   the child: found by its first packet
//! ```
//!
//! A caller looks the key of a packet without a flow up in [`Expectations`] before it observes the
//! packet, and reports the ends of flows. So the packets of a cache pay nothing for it.

use core::borrow::Borrow;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use alloc::vec::Vec;

use super::store::Handle;
use crate::hash::Prehashed;
use crate::key::flow::FlowName;
use crate::timestamp::Timestamp;
use crate::trash::TrashMap;

/// Which packets begin an expected flow, by their source.
///
/// The keys of this crate have sources. A [`FlowName`] of the caller has them if it implements
/// [`with_any_port`](FlowName::with_any_port) and [`with_any_source`](FlowName::with_any_source);
/// if not, all sources are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// Packets from the address and port of the key.
    #[default]
    Exact,
    /// Packets from the address of the key, any port.
    AnyPort,
    /// Packets from any address and port.
    Any,
}

impl Source {
    const ALL: [Self; 3] = [Self::Exact, Self::AnyPort, Self::Any];

    /// The key under which a packet with this key is expected.
    fn pattern<K: FlowName>(self, key: &K) -> (Self, K) {
        let key = match self {
            Self::Exact => key.clone(),
            Self::AnyPort => key.with_any_port(),
            Self::Any => key.with_any_source(),
        };
        (self, key)
    }
}

/// A flow that its parent flow expects: see the example of [`Expectations`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected<K> {
    key: K,
    source: Source,
    ends_with_parent: bool,
    within: Duration,
}

impl<K> Expected<K> {
    /// Creates an expected flow: its first packet has the key `key`, and arrives within five
    /// minutes. The flow outlives its parent.
    #[must_use]
    pub const fn new(key: K) -> Self {
        let within = Duration::from_secs(300);
        Self { key, source: Source::Exact, ends_with_parent: false, within }
    }

    /// Sets from which sources the first packet may come. The flow ignores the parts of the key's
    /// source that `source` leaves open.
    #[must_use]
    pub fn from_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Sets that the flow ends when its parent does.
    #[must_use]
    pub fn ending_with_parent(self) -> Self {
        Self { ends_with_parent: true, ..self }
    }

    /// Sets the time within which the first packet arrives.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }
}

/// The relation of an expected flow to the flow that expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Related {
    /// The flow that expects it.
    pub parent: Handle,
    /// Whether the expected flow ends with its parent.
    pub ends_with_parent: bool,
}

/// Flows that are expected by others, and flows that end with others.
///
/// | method | cost |
/// |---|---|
/// | `find`, `begin` | three lookups; none without expected flows |
/// | `expect`, `end` | O(flows that the parent expects, and that end with it) |
///
/// Expected flows whose time has passed are not found, and are removed when their parent ends or
/// the limit is reached. A flow that was expected at a wrong time is not found at right ones.
///
/// # Example
///
/// A firewall that admits the data connections that the signalling of FTP has announced.
///
/// ```
/// use core::time::Duration;
/// use flowtable::flow_cache::{Config, Event, Expectations, Expected, Packet, Source};
/// use flowtable::{FlowCache, FourTuple, TcpFlags, Timestamp};
///
/// let (client, server, now) = (10, 20, Timestamp::ZERO);
/// let syn = Packet::tcp(TcpFlags::SYN);
/// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
/// let mut expectations = Expectations::new(1000);
/// let control = FourTuple { src: client, dst: server, sport: 40_000, dport: 21 };
/// let control = cache.observe(&control, syn, now)?.handle();
/// // The server answers that it listens at port 50,000; the port of the client is free.
/// let data = FourTuple { src: client, dst: server, sport: 0, dport: 50_000 };
/// let expected = Expected::new(data).from_source(Source::AnyPort).ending_with_parent();
/// expectations.expect(control, expected.within(Duration::from_secs(60)), now)?;
///
/// // For each packet: nothing else is admitted.
/// let mut admit = |cache: &mut FlowCache<_, _>, key, packet| {
///     let related = expectations.find(key, now);
///     let admitted = || if related.is_some() { Ok(()) } else { Err("not expected") };
///     let seen = cache.try_observe_with(key, packet, now, admitted).ok()?;
///     if let (true, Some(_)) = (seen.fresh, related) {
///         expectations.begin(key, seen.handle(), now);
///     }
///     Some(seen.handle())
/// };
/// let key = FourTuple { sport: 40_001, ..data };
/// let child = admit(&mut cache, &key, syn).expect("the flow is expected");
/// let second = FourTuple { sport: 40_002, ..key };
/// assert_eq!(admit(&mut cache, &second, syn), None);
///
/// // For each flow that ends, also by `advance` and by evictions:
/// let ended = cache.remove(control).expect("the flow exists");
/// for child in expectations.end(ended.handle) {
///     cache.remove(child);
///     expectations.end(child);
/// }
/// assert!(cache.is_empty() && expectations.is_empty());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expectations<K> {
    pending: TrashMap<(Source, K), Pending>,
    families: TrashMap<Handle, Family<K>>,
    most: usize,
}

/// An expected flow that has not begun.
#[derive(Clone, Copy, Debug)]
struct Pending {
    related: Related,
    /// When it was expected, and for how long.
    at: Timestamp,
    within: Duration,
}

impl Pending {
    /// Whether the flow is expected. It is not if it was expected at a time that is as far ahead:
    /// that was a wrong time, or the clock was set back since.
    fn is_live(&self, now: Timestamp) -> bool {
        now.since(self.at) < self.within && self.at.since(now) <= self.within
    }
}

/// Expectations and flows that end with a flow.
#[derive(Clone, Debug)]
struct Family<K> {
    /// The patterns of expected flows, some of which may have begun.
    expected: Vec<(Source, K)>,
    /// Flows that end with it.
    children: Vec<Handle>,
    /// The flow that it ends with.
    parent: Option<Handle>,
}

impl<K> Default for Family<K> {
    fn default() -> Self {
        Self { expected: Vec::new(), children: Vec::new(), parent: None }
    }
}

impl<K: FlowName> Expectations<K> {
    /// Creates a table of at most `most` flows that are expected at the same time.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { pending: TrashMap::new(), families: TrashMap::new(), most }
    }

    /// Returns the number of expected flows that have not begun.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether no flow is expected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Expects a flow, which is a child of the flow `parent` then. If the parent expects it
    /// already, replaces the time and the end.
    ///
    /// # Errors
    ///
    /// If another flow expects the same, or as many flows are expected as may be.
    pub fn expect(
        &mut self,
        parent: Handle,
        expected: Expected<K>,
        now: Timestamp,
    ) -> Result<(), ExpectError> {
        let Expected { key, source, ends_with_parent, within } = expected;
        let pattern = self.hashed(source.pattern(&key));
        let related = Related { parent, ends_with_parent };
        let before = self.pending.get(&pattern).copied();
        let live = before.filter(|before| before.is_live(now)).map(|before| before.related.parent);
        if let Some(other) = live.filter(|other| *other != parent) {
            return Err(ExpectError::Taken(other));
        }
        if before.is_none() && self.len() >= self.most {
            self.pending.retain(|_, pending| pending.is_live(now));
            if self.len() >= self.most {
                return Err(ExpectError::Full);
            }
        }
        self.pending.entry_ref(&pattern).insert(Pending { related, at: now, within });
        if live.is_some() {
            return Ok(());
        }
        let family = self.families.entry(parent).or_default();
        family.expected.push(pattern.key);
        // Patterns of flows that have begun, or are not expected any more.
        let is_pending = |pattern: &(Source, K)| {
            self.pending.get(pattern).is_some_and(|pending| pending.related.parent == parent)
        };
        if family.expected.len().is_power_of_two() {
            family.expected.retain(is_pending);
        }
        Ok(())
    }

    /// Returns the relation of the flow whose first packet has this key, if it is expected.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &K, now: Timestamp) -> Option<Related> {
        if self.is_empty() { None } else { Some(self.pattern_of(key, now)?.1.related) }
    }

    /// Begins the expected flow whose first packet has this key, with its handle: it is not
    /// expected any more. Returns its relation, if it was expected.
    pub fn begin(&mut self, key: &K, flow: Handle, now: Timestamp) -> Option<Related> {
        let (pattern, Pending { related, .. }) = self.pattern_of(key, now)?;
        self.pending.remove(&pattern);
        if related.ends_with_parent {
            self.families.entry(related.parent).or_default().children.push(flow);
            self.families.entry(flow).or_default().parent = Some(related.parent);
        }
        Some(related)
    }

    /// Ends a flow, and removes the flows that it still expects. Returns the flows that end with
    /// it.
    pub fn end(&mut self, flow: Handle) -> Vec<Handle> {
        let Some(family) = self.families.remove(&flow) else { return Vec::new() };
        for pattern in &family.expected {
            let pattern = self.hashed(pattern);
            if self.pending.get(pattern).is_some_and(|pending| pending.related.parent == flow) {
                self.pending.remove(pattern);
            }
        }
        if let Some(parent) = family.parent.and_then(|parent| self.families.get_mut(&parent)) {
            parent.children.retain(|child| *child != flow);
        }
        family.children
    }

    /// Hashes a pattern, or a reference to one, for several operations.
    fn hashed<Q: Borrow<(Source, K)>>(&self, key: Q) -> Prehashed<Q> {
        Prehashed { hash: self.pending.hash_of(key.borrow()), key }
    }

    /// Returns the pattern of a packet with this key that is expected, the most exact one.
    fn pattern_of(&self, key: &K, now: Timestamp) -> Option<(Prehashed<(Source, K)>, Pending)> {
        Source::ALL.into_iter().find_map(|source| {
            let pattern = self.hashed(source.pattern(key));
            let pending = *self.pending.get(&pattern).filter(|pending| pending.is_live(now))?;
            Some((pattern, pending))
        })
    }
}

/// An error of [`Expectations::expect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectError {
    /// Another flow expects the same.
    Taken(Handle),
    /// As many flows are expected as may be.
    Full,
}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(handle) => write!(f, "flow {} expects the same", handle.id()),
            Self::Full => f.write_str("as many flows are expected as may be"),
        }
    }
}

impl Error for ExpectError {}
