//! The flow of an observed packet.

use core::fmt;

use super::event::RemovedFlow;
use super::handle::Handle;
use super::record::{Flow, Marks};
use super::state::Class;
use super::store::{Hit, Rest};
use crate::key::flow::Direction;

/// The flow of an observed packet.
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
/// assert!(seen.fresh && seen.removed().is_none());
/// let handle = seen.handle();
/// let seen = cache.observe(&query.reversed(), Packet::UDP, Timestamp::from_millis(20))?;
/// assert_eq!((seen.fresh, seen.direction, seen.name), (false, Direction::Reverse, 0));
/// assert_eq!(seen.handle(), handle);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[non_exhaustive]
pub struct Observed<'a, K, V> {
    /// The value of the flow.
    pub flow: &'a mut V,
    /// The direction of the packet; forward is that of the initiator.
    pub direction: Direction,
    /// The name that the packet carries: 0 is the key of the flow, other numbers are aliases.
    pub name: u8,
    /// The class of the flow after this packet.
    pub class: Class,
    /// Whether this packet created the flow. Its sender is the initiator then, unless the packet is
    /// a SYN with an ACK, or the caller has set another [`Initiator`](super::Initiator): so the
    /// direction of a first packet may be reverse.
    pub fresh: bool,
    slot: u32,
    rest: &'a mut Rest<K, V>,
}

impl<'a, K, V> Observed<'a, K, V> {
    /// The result for a packet that has been recorded in its flow.
    #[inline]
    pub(super) fn new(
        flow: &'a mut Flow<K, V>,
        rest: &'a mut Rest<K, V>,
        hit: Hit,
        direction: Direction,
        fresh: bool,
    ) -> Self {
        let Flow { marks, value, .. } = flow;
        Self {
            class: Marks::class(*marks),
            flow: value,
            direction,
            name: hit.name,
            fresh,
            slot: hit.slot,
            rest,
        }
    }

    /// The result for a packet of an established flow that has been recorded in it.
    #[inline(always)]
    pub(super) fn steady(
        flow: &'a mut V,
        rest: &'a mut Rest<K, V>,
        slot: u32,
        direction: Direction,
    ) -> Self {
        Self { flow, direction, name: 0, class: Class::Established, fresh: false, slot, rest }
    }

    /// Returns the handle of the flow, which finds it without a key. O(1).
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { id: self.rest.cold[self.slot].id, slot: self.slot }
    }

    /// Returns the flow that was evicted for a new one, or that had the sockets before. O(1).
    ///
    /// It stays in the cache until it is [taken](Self::take_removed), or until the next packet.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(1)?);
    /// *cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.flow = 70;
    /// let seen = cache.observe(&8, Packet::UDP, Timestamp::ZERO)?;
    /// assert_eq!(seen.removed().map(|flow| (flow.key, flow.value)), Some((7, 70)));
    /// assert_eq!(cache.last_removed().map(|flow| flow.key), Some(7));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn removed(&self) -> Option<&RemovedFlow<K, V>> {
        self.rest.removed.as_ref()
    }

    /// Returns the flow that was evicted for a new one, or that had the sockets before, unless it
    /// was taken before. O(1).
    #[inline]
    #[must_use]
    pub fn take_removed(&mut self) -> Option<RemovedFlow<K, V>> {
        // Nothing to write for most packets.
        if self.rest.removed.is_none() { None } else { self.rest.removed.take() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Observed<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed")
            .field("flow", &self.flow)
            .field("handle", &self.handle())
            .field("direction", &self.direction)
            .field("name", &self.name)
            .field("class", &self.class)
            .field("fresh", &self.fresh)
            .field("removed", &self.removed())
            .finish()
    }
}
