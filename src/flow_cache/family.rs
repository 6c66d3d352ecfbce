//! Expected flows, and packets that are related to a flow.
//!
//! ```text
//!     FTP    client:40000 ⇄ server:21      the parent: "227 Entering Passive Mode (…,195,80)"
//!                 │ expect                                     client:any ──▸ server:50000
//!                 ▼
//!            client:40001 ⇄ server:50000   the child: found by its first packet
//! ```

use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;
use core::time::Duration;

use super::FlowCache;
use super::event::{Event, FlowMatch, ObserveError, Progress};
use super::extras::{MAX_EXPECTED, Pending, Source};
use super::handle::Handle;
use super::observed::{Observed, Seen};
use super::record::Marks;
use super::state::{EndReason, Packet};
use super::timeouts::NEVER;
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::memory::Allocator;
use crate::timestamp::Timestamp;

/// The relation of a new flow to the one that expects it.
#[derive(Clone, Copy)]
pub(super) struct Child {
    /// The number of the pending expected flow.
    at: u32,
    pub(super) parent: Handle,
    ends_with_parent: bool,
}

/// A flow that is expected by another one: see [`FlowCache::expect`], which has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected<K> {
    key: K,
    source: Source,
    ends_with_parent: bool,
    within: Duration,
}

impl<K> Expected<K> {
    /// Creates an expected flow: `key` is that of its first packet, which arrives within five
    /// minutes. It outlives its parent.
    #[must_use]
    pub const fn new(key: K) -> Self {
        let within = Duration::from_secs(300);
        Self { key, source: Source::Exact, ends_with_parent: false, within }
    }

    /// Sets from which sources the first packet may come. The source of the key is ignored as far
    /// as it may be another one.
    #[must_use]
    pub fn from_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Sets that the flow ends when its parent does.
    #[must_use]
    pub fn ending_with_parent(self) -> Self {
        Self { ends_with_parent: true, ..self }
    }

    /// Sets the time within which the first packet arrives. Zero is never.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Expects a flow, which is a child of the flow `parent` then: the next packet that has its key
    /// and no flow. The methods that observe packets find it. O(1), with others that the parent
    /// expects O(those).
    ///
    /// For signalling that negotiates the addresses of other flows, such as that of FTP and SIP: a
    /// firewall accepts the child by [`try_observe_expected`](Self::try_observe_expected), and an
    /// address translation treats it like its [`parent`](Self::parent). If asked, the child
    /// [ends with its parent](Expected::ending_with_parent): the first call of
    /// [`advance`](Self::advance) after the end of the parent ends it with the reason
    /// [`Ended`](EndReason::Ended), one child for each unit of its budget. Nothing is expected any
    /// more by a parent that has ended.
    ///
    /// A parent that expects a flow twice has changed its mind about the time and the end. Expected
    /// flows, and parents of flows, are not part of [images](super::Image).
    ///
    /// # Errors
    ///
    /// If the parent has ended, if another flow expects the same, if the parent has 32 expected
    /// flows that have not begun, if memory allocation fails, or if the memory limit is reached.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Config, Expected, Packet, Source};
    /// use flowtable::{FlowCache, FourTuple, TcpFlags, Timestamp};
    ///
    /// let (client, server, now) = (10, 20, Timestamp::ZERO);
    /// let syn = Packet::tcp(TcpFlags::SYN);
    /// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
    /// let control = FourTuple { src: client, dst: server, sport: 40_000, dport: 21 };
    /// let control = cache.observe(&control, syn, now)?.handle();
    /// // The server answers that it listens at port 50,000; the port of the client is free.
    /// let data = FourTuple { src: client, dst: server, sport: 0, dport: 50_000 };
    /// let expected = Expected::new(data).from_source(Source::AnyPort).ending_with_parent();
    /// cache.expect(control, expected.within(Duration::from_secs(60)))?;
    ///
    /// // A firewall that admits nothing else.
    /// let admit = |parent: Option<_>| parent.map(|_| ()).ok_or("not expected");
    /// let key = FourTuple { sport: 40_001, ..data };
    /// let data = cache.try_observe_expected(&key, syn, now, admit);
    /// let data = data.expect("the flow is expected").handle();
    /// assert_eq!(cache.parent(data), Some(control));
    /// let second = FourTuple { sport: 40_002, ..key };
    /// assert!(cache.try_observe_expected(&second, syn, now, admit).is_err());
    ///
    /// cache.remove(control);
    /// assert_eq!((cache.advance(now, 10, |_| ()).ended, cache.len()), (1, 0));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn expect(&mut self, parent: Handle, expected: Expected<K>) -> Result<(), ExpectError> {
        let slot = self.store.slot_of(parent).ok_or(ExpectError::NoFlow)?;
        let Expected { key, source, ends_with_parent, within } = expected;
        let now = self.clock.now();
        self.forget_overdue(slot);
        let pattern = source.pattern(&key);
        let present = self.store.rest.extras.find(&pattern);
        match present.map(|(at, pending)| (at, pending.parent, now < pending.deadline)) {
            Some((_, other, true)) if other != parent => return Err(ExpectError::Taken(other)),
            Some((at, other, _)) if other == parent && !within.is_zero() => {
                let deadline = deadline_after(now, within);
                self.store.rest.extras.renew(at, deadline, ends_with_parent);
                return Ok(());
            }
            Some((at, other, _)) => {
                let of = self.store.slot_of(other).unwrap_or(slot);
                self.store.rest.extras.forget(of, at);
            }
            None => {}
        }
        if within.is_zero() {
            return Ok(());
        }
        if self.store.rest.extras.pending_of(slot).count() >= MAX_EXPECTED {
            return Err(ExpectError::TooMany);
        }
        if !self.has_memory_for(self.store.rest.extras.pending_growth()) {
            return Err(ExpectError::Memory);
        }
        self.store.rest.extras.reserve_pending().map_err(|_| ExpectError::Memory)?;
        self.add_extra(slot).map_err(|_| ExpectError::Memory)?;
        let deadline = deadline_after(now, within);
        let pending = Pending::new(pattern, parent, deadline, ends_with_parent);
        self.store.rest.extras.expect(slot, pending).map_err(|_| ExpectError::Memory)
    }

    /// Forgets what the flow in a slot has expected for too long.
    fn forget_overdue(&mut self, slot: u32) {
        let now = self.clock.now();
        let extras = &mut self.store.rest.extras;
        loop {
            let overdue = extras.pending_of(slot).find(|(_, pending)| pending.deadline <= now);
            let Some((at, _)) = overdue else { break };
            extras.forget(slot, at);
        }
    }

    /// Returns the flow that expects the flow of a packet with this key, in the direction of the
    /// packet. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Expected, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let parent = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// cache.expect(parent, Expected::new(8))?;
    /// assert_eq!((cache.expected_by(&8), cache.expected_by(&9)), (Some(parent), None));
    /// // Nothing is expected twice.
    /// cache.observe(&8, Packet::UDP, Timestamp::ZERO)?;
    /// assert_eq!(cache.expected_by(&8), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expected_by(&self, key: &K) -> Option<Handle> {
        let extras = &self.store.rest.extras;
        if !extras.expects() {
            return None;
        }
        Some(extras.expected(key, self.clock.now())?.1.parent)
    }

    /// Returns the flow that expected this one; it may have ended. O(1).
    #[must_use]
    pub fn parent(&self, handle: Handle) -> Option<Handle> {
        let slot = self.store.slot_of(handle)?;
        self.store.rest.extras.get(slot)?.parent
    }

    /// Processes a packet like [`try_observe_with`](Self::try_observe_with). For a new flow, `new`
    /// receives the flow that [expects](Self::expect) it.
    ///
    /// # Errors
    ///
    /// The error of `new`, or as for [`observe`](Self::observe).
    #[inline(always)]
    pub fn try_observe_expected<E>(
        &mut self,
        key: &K,
        packet: Packet,
        now: Timestamp,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Observed<'_, K, V, A>, ObserveError<V, E>> {
        let now = self.begin_packet(now);
        let carried = self.carry(key);
        self.observe_carried(carried, packet, now, new)
    }

    /// Processes a packet like [`try_observe_expected`](Self::try_observe_expected), given the hash
    /// of its normalised key: see [`observe_hashed`](Self::observe_hashed).
    ///
    /// # Errors
    ///
    /// The error of `new`, or as for [`observe`](Self::observe).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let new = |parent: Option<_>| parent.map(|_| ()).ok_or("not expected");
    /// let seen = cache.try_observe_expected_hashed(1007, &7, Packet::UDP, Timestamp::ZERO, new);
    /// assert!(seen.is_err() && cache.is_empty());
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[inline(always)]
    pub fn try_observe_expected_hashed<E>(
        &mut self,
        hash: u64,
        key: &K,
        packet: Packet,
        now: Timestamp,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Observed<'_, K, V, A>, ObserveError<V, E>> {
        let now = self.begin_packet(now);
        let carried = Self::carry_hashed(hash, key);
        self.observe_carried(carried, packet, now, new)
    }

    /// Returns the expectation that a new flow of this key fulfils, if there is one.
    #[cold]
    #[inline(never)]
    pub(super) fn expected(&self, key: &K) -> Option<Child> {
        let (at, pending) = self.store.rest.extras.expected(key, self.clock.now())?;
        let Pending { parent, ends_with_parent, .. } = *pending;
        Some(Child { at, parent, ends_with_parent })
    }

    /// Allocates memory for what a new flow has besides if it is a child. Returns whether there is.
    #[cold]
    #[inline(never)]
    pub(super) fn has_room_for_child(&mut self) -> bool {
        let growth = self.store.rest.extras.growth();
        self.has_memory_for(growth) && self.store.rest.extras.try_reserve().is_ok()
    }

    /// Makes a new flow the child of the one that expected it, which may have been evicted for it.
    #[cold]
    #[inline(never)]
    pub(super) fn adopt(&mut self, seen: Seen<V>, child: Child) -> Seen<V> {
        let (slot, Child { at, parent, ends_with_parent }) = (seen.slot(), child);
        let of = self.store.slot_of(parent);
        let extras = &mut self.store.rest.extras;
        if let Some(of) = of {
            extras.forget(of, at);
        }
        // There is room for one.
        if extras.insert(slot).is_ok() {
            extras.change(slot, |extra| extra.parent = Some(parent));
            if ends_with_parent {
                extras.join(of, slot);
            }
            self.store.flow_mut(slot).marks.set(Marks::EXTRA, true);
        }
        seen.renewed(&mut self.store.flows[slot])
    }

    /// Removes the extra of a flow that is being removed.
    #[cold]
    pub(super) fn remove_extra(&mut self, slot: u32) {
        let parent = self.store.rest.extras.get(slot).and_then(|extra| extra.parent);
        let parent = parent.and_then(|parent| self.store.slot_of(parent));
        self.store.rest.extras.remove(slot, parent);
    }

    /// Ends flows whose parent has ended.
    pub(super) fn end_orphans(
        &mut self,
        budget: usize,
        progress: &mut Progress,
        each: &mut impl FnMut(Event<'_, K, V>),
    ) {
        while progress.examined < budget {
            let Some(orphan) = self.store.rest.extras.orphan() else { return };
            progress.examined += 1;
            if let Some(removed) = self.remove_slot(orphan, EndReason::Ended) {
                progress.ended += 1;
                each(Event::Ended(removed));
            }
        }
    }

    /// Returns the flow of a packet that is quoted by an error of ICMP: `quoted` is the key of the
    /// quoted packet, as that was sent. The direction is that of the error, the opposite one. O(1).
    ///
    /// An error is no packet of the flow: it neither extends the timeout nor changes the class.
    /// Where the flow has been translated, [`name`](FlowMatch::name) is the key by which the error
    /// came, and so what it has to quote further on.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, FourTuple, Timestamp};
    ///
    /// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
    /// let inside = FourTuple { src: 10, dst: 90, sport: 40_000, dport: 53 };
    /// let seen = cache.observe(&inside, Packet::UDP, Timestamp::ZERO)?;
    /// let (handle, direction) = (seen.handle(), seen.direction);
    /// let outside = FourTuple { src: 80, sport: 1024, ..inside };
    /// cache.add_name(handle, direction, &outside)?;
    /// // A router cannot reach 90, and quotes the packet that it has received.
    /// let error = cache.find_quoted(&outside).expect("the flow exists");
    /// assert_eq!((error.handle, error.direction, error.name), (handle, Direction::Reverse, 1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find_quoted(&self, quoted: &K) -> Option<FlowMatch> {
        let found = self.find(quoted)?;
        Some(FlowMatch { direction: found.direction.opposite(), ..found })
    }

    /// Returns the flow of a packet that is quoted by an error of ICMP, like
    /// [`find_quoted`](Self::find_quoted), given the hash of the normalised key of the quoted
    /// packet: see [`observe_hashed`](Self::observe_hashed). A card has hashed the error instead,
    /// so this one is computed in software. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{Direction, FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe_hashed(1007, &7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// let error = cache.find_quoted_hashed(1007, &7).expect("the flow exists");
    /// assert_eq!((error.handle, error.direction), (handle, Direction::Reverse));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find_quoted_hashed(&self, hash: u64, quoted: &K) -> Option<FlowMatch> {
        let found = self.find_hashed(hash, quoted)?;
        Some(FlowMatch { direction: found.direction.opposite(), ..found })
    }
}

fn deadline_after(now: u64, within: Duration) -> u64 {
    now.saturating_add(u64::try_from(within.as_nanos()).unwrap_or(NEVER))
}

/// An error of [`FlowCache::expect`]. The cache is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectError {
    /// The parent has ended.
    NoFlow,
    /// This flow expects the same.
    Taken(Handle),
    /// The parent has 32 expected flows that have not begun.
    TooMany,
    /// The memory limit of the cache is reached.
    Memory,
}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFlow => f.write_str("the flow has ended"),
            Self::Taken(handle) => write!(f, "flow {} expects the same", handle.id()),
            Self::TooMany => write!(f, "the flow has {MAX_EXPECTED} expected flows"),
            Self::Memory => f.write_str("the memory for an expected flow is not available"),
        }
    }
}

impl Error for ExpectError {}
