//! Expiry: the wheel finds due flows, in bounded steps. Own timeouts of flows.
//!
//! A flow is armed once, for the earlier of its idle and its active deadline. A packet only writes
//! its time into the flow; when the wheel returns the flow, the deadline is recomputed, and if it
//! is later, the flow is armed for that. So an active flow is examined about once per timeout.
//!
//! The own timeout of a flow replaces the idle timeout of its protocol and class.

use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;
use core::time::Duration;

use super::timeouts::{self, NEVER, TimeoutError};
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::config::Emergency;
use crate::flow_cache::packet::record::{Flow, FlowState, Marks};
use crate::flow_cache::packet::state::EndReason;
use crate::flow_cache::report::events::{Event, Progress, Report};
use crate::flow_cache::store::Handle;
use crate::flow_cache::store::tenants::map_growth;
use crate::key::flow::FlowName;
use crate::memory::{AllocError, Allocator};
use crate::table::lines::Lines;
use crate::timestamp::Timestamp;

/// Flows that are examined together, while the next group is prefetched.
const GROUP: usize = 15;

/// The deadline of flows that have to be [examined](FlowCache::examine).
const EXAMINED: u64 = 0;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Ends and reports due flows, examining at most `budget` flows. O(budget).
    ///
    /// An idle flow is reported by the first call that is made a
    /// [tick](crate::flow_cache::Config::tick) or
    /// more after its timeout, and whose budget suffices; a smaller budget leaves the rest to the
    /// next call, the earliest first. Nothing is reported early, and nothing twice. If `now` is
    /// earlier than the time of the cache, the latter counts: time may stand still, or jump.
    ///
    /// Call it once per tick, with and without packets. A flow is examined once per timeout while
    /// it is active, and [up to four times](crate::flow_cache) before its end; many flows become
    /// due together, when a list of the wheel begins. So use a budget of tens of flows, and if the
    /// returned progress is not done, call it again before the next packets. Without a budget it is
    /// never done.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Config, EndReason, Event, Packet, Timeouts};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let config = Config::new(100)?.with_timeouts(Timeouts::METER);
    /// let mut cache: FlowCache<u64, u64> = FlowCache::new(config);
    /// *cache.observe(&7, Packet::UDP, Timestamp::from_secs(1))?.flow += 1;
    /// let mut ended = vec![];
    /// let progress = cache.advance(Timestamp::from_secs(62), 10, |event| match event {
    ///     Event::Ended(flow) => ended.push((flow.key, flow.value, flow.reason)),
    ///     Event::Active(_) => unreachable!("the active timeout is 300 s"),
    /// });
    /// assert_eq!(ended, [(7, 1, EndReason::Idle)]);
    /// assert!(progress.is_done && cache.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn advance(
        &mut self,
        now: Timestamp,
        budget: usize,
        mut each: impl FnMut(Event<'_, K, V>),
    ) -> Progress {
        self.clock.advance(now);
        let mut progress = Progress::default();
        let tick = self.clock.now() / self.config.tick;
        // Without a budget, the wheel stays where it is.
        if progress.examined < budget {
            progress.is_done = self.accounting.wheel.advance(tick);
            self.end_due(tick, budget, &mut progress, &mut each);
        }
        while progress.examined < budget && !self.has_memory_for(0) {
            progress.examined += 1;
            let (victim, before) = (self.victim(None), self.reserved());
            let Some(removed) =
                victim.and_then(|slot| self.remove_slot(slot, EndReason::Resources))
            else {
                break;
            };
            progress.ended += 1;
            each(Event::Ended(removed));
            // Only a policy of the caller's may need less memory with fewer flows.
            if self.reserved() >= before {
                break;
            }
        }
        if progress.is_done {
            let next =
                self.accounting.wheel.next_tick().map(|tick| tick.saturating_mul(self.config.tick));
            progress.next = next.map(|next| self.clock.caller(next));
        }
        progress
    }

    /// Ends and reports flows that are due at a tick.
    #[inline(never)]
    fn end_due(
        &mut self,
        tick: u64,
        budget: usize,
        progress: &mut Progress,
        each: &mut impl FnMut(Event<'_, K, V>),
    ) {
        let mut ahead = 0;
        while !progress.is_done && progress.examined < budget {
            let mut slots = [0; 2 * GROUP];
            let most = slots.len().min(budget - progress.examined);
            let count = self.accounting.wheel.due(tick, &mut slots[..most]);
            progress.is_done = count == 0;
            slots[ahead.min(count)..count].iter().for_each(|slot| self.prefetch_flow(*slot));
            let group = &slots[..count.min(GROUP)];
            ahead = count - group.len();
            let deadlines = self.idle_deadlines(group);
            for (slot, deadline) in group.iter().zip(deadlines) {
                progress.examined += 1;
                if deadline > self.clock.now() {
                    // Most flows are active: they have only to be armed again.
                    self.accounting.wheel.arm(*slot, deadline.div_ceil(self.config.tick));
                } else if deadline > EXAMINED {
                    self.end_idle(*slot, progress, each);
                } else {
                    self.examine(*slot, progress, each);
                }
            }
        }
    }

    /// Prefetches the record and the timer of a slot. Does nothing past the last slot.
    #[inline]
    pub(crate) fn prefetch_flow(&self, slot: u32) {
        self.store.prefetch_all(slot);
        self.accounting.wheel.prefetch(slot);
    }

    /// Returns the times at which flows are idle, or [`EXAMINED`]. Prefetches the index lines of
    /// idle ones.
    #[inline]
    fn idle_deadlines(&self, slots: &[u32]) -> [u64; GROUP] {
        let mut deadlines = [EXAMINED; GROUP];
        for (slot, deadline) in slots.iter().zip(&mut deadlines) {
            let Some(flow) = self.store.flows.get(*slot) else { continue };
            let idle = self.config.timeouts.idle_nanos(flow.marks.protocol(), flow.marks.class());
            let idle = flow.last_seen.saturating_add(idle);
            let is_idle = idle <= self.clock.now();
            if is_idle {
                self.index.lines.prefetch(self.store.cold(*slot).hash);
            }
            let is_alone = (self.accounting.is_idle_only && idle < NEVER) || is_idle;
            if is_alone && !flow.marks.has(Marks::TIMEOUT) {
                *deadline = idle;
            }
        }
        deadlines
    }

    /// Ends a flow that was idle for its timeout.
    #[inline]
    fn end_idle(
        &mut self,
        slot: u32,
        progress: &mut Progress,
        each: &mut impl FnMut(Event<'_, K, V>),
    ) {
        let reason = EndReason::of_idle(self.store.flow(slot).marks.class());
        self.end(slot, reason, progress, each);
    }

    /// Ends a flow that the wheel has returned.
    #[inline]
    fn end(
        &mut self,
        slot: u32,
        reason: EndReason,
        progress: &mut Progress,
        each: &mut impl FnMut(Event<'_, K, V>),
    ) {
        // If a method of a key panics during the removal, the flow is still due.
        let removed = self.remove_slot(slot, reason);
        self.accounting.wheel.disarm(slot);
        if self.has_memory_for(Lines::STEP) {
            self.index.shrink_step(&self.store);
        }
        if let Some(removed) = removed {
            progress.ended += 1;
            each(Event::Ended(removed));
        }
    }

    /// Ends a flow that the wheel has returned, reports it, or arms it again.
    #[inline(never)]
    fn examine(
        &mut self,
        slot: u32,
        progress: &mut Progress,
        each: &mut impl FnMut(Event<'_, K, V>),
    ) {
        let now = self.clock.now();
        let Some(mut state) = self.store.state(slot) else {
            return self.accounting.wheel.disarm(slot);
        };
        if let Some(reason) = self.end_reason(state) {
            return self.end(slot, reason, progress, each);
        }
        let since = state.reported;
        let is_due = state.active_deadline(&self.config.timeouts) <= now;
        let is_reported = is_due && self.store.flow_mut(slot).marks.take(Marks::UNREPORTED);
        if is_due {
            self.store.cold_mut(slot).reported = now;
            state.reported = now;
        }
        self.accounting.rearm(slot, state, &self.config, now);
        if is_reported {
            progress.reported += 1;
            self.accounting.metrics.reported += 1;
            self.touch(slot);
            each(Event::Active(self.report(slot, since)));
        }
    }

    /// Returns why a flow ends, if it does.
    fn end_reason(&self, state: FlowState) -> Option<EndReason> {
        let now = self.clock.now();
        let is_crowded_out = |emergency: Emergency| {
            self.is_emergency
                && state
                    .emergency_deadline(emergency)
                    .is_some_and(|emergency_deadline| emergency_deadline <= now)
        };
        if state.idle_deadline(&self.config.timeouts) <= now {
            Some(EndReason::of_idle(state.marks.class()))
        } else if self.config.emergency.is_some_and(is_crowded_out) {
            Some(EndReason::Resources)
        } else {
            None
        }
    }

    fn report(&mut self, slot: u32, since: u64) -> Report<'_, K, V> {
        let (cold, tenant) = (*self.store.cold(slot), self.store.tenant(slot));
        let flow = self.store.flow_mut(slot);
        let key = flow.key();
        let Flow { marks, last_seen, value, .. } = flow;
        Report {
            handle: Handle { id: cold.id, slot },
            key,
            value,
            class: marks.class(),
            protocol: marks.protocol(),
            tenant,
            first_seen: self.clock.caller(cold.first_seen),
            last_seen: self.clock.caller(*last_seen),
            since: self.clock.caller(since),
        }
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Sets the idle timeout of one flow; `None` restores the timeout of its protocol and class.
    /// O(1).
    ///
    /// For single flows with other needs than their protocol: an answered DNS query, a registration
    /// of SIP. Where many flows have the same, a [protocol](crate::flow_cache::Protocol) of their
    /// own needs no memory. A closed connection lingers as long as others. The flow counts as
    /// changed.
    ///
    /// Flows with a timeout of their own need about 30 bytes more.
    ///
    /// # Errors
    ///
    /// If the flow has ended, if the timeout is zero or longer than
    /// [`Timeouts::MAX`](crate::flow_cache::Timeouts::MAX), or if memory
    /// allocation fails or the memory limit is reached. The cache is unchanged.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// let registration = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// cache.observe(&8, Packet::UDP, Timestamp::ZERO)?;
    /// cache.set_timeout(registration, Duration::from_secs(3600))?;
    /// let mut ended = vec![];
    /// for now in [1800, 3601].map(Timestamp::from_secs) {
    ///     ended.push(cache.advance(now, 100, |_| ()).ended);
    /// }
    /// assert_eq!(ended, [1, 1]); // flow 8 after 30 seconds, flow 7 after an hour
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_timeout(
        &mut self,
        handle: Handle,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<(), SetTimeoutError> {
        let timeout = match timeout.into() {
            None => None,
            timeout => Some(timeouts::nanos(timeout).map_err(SetTimeoutError::Timeout)?),
        };
        let slot = self.slot_of(handle).ok_or(SetTimeoutError::NoFlow)?;
        self.insert_timeout(slot, timeout).map_err(|_| SetTimeoutError::Memory)?;
        self.touch(slot);
        self.arm(slot);
        Ok(())
    }

    /// Sets the own timeout of the flow in a slot, without arming its timer.
    pub(crate) fn insert_timeout(
        &mut self,
        slot: u32,
        timeout: Option<u64>,
    ) -> Result<(), AllocError> {
        let has_own = self.store.flow(slot).marks.has(Marks::TIMEOUT);
        let Some(nanos) = timeout else {
            if has_own {
                self.remove_timeout(slot);
            }
            return Ok(());
        };
        let timeouts = &self.store.rest.timeouts;
        if !has_own && !self.has_memory_for(map_growth::<u32, u64>(timeouts.allocation_size())) {
            return Err(AllocError);
        }
        self.store.rest.timeouts.try_insert(slot, nanos).map_err(|_| AllocError)?;
        self.store.flow_mut(slot).marks.set(Marks::TIMEOUT, true);
        self.clock.add_timeout(nanos);
        Ok(())
    }

    /// Removes the own timeout of the flow in a slot.
    pub(crate) fn remove_timeout(&mut self, slot: u32) {
        self.store.rest.timeouts.remove(&slot);
        self.store.flow_mut(slot).marks.set(Marks::TIMEOUT, false);
    }
}

/// An error of [`FlowCache::set_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetTimeoutError {
    /// The flow has ended.
    NoFlow,
    /// The timeout is invalid.
    Timeout(TimeoutError),
    /// Memory allocation failed, or the memory limit of the cache is reached.
    Memory,
}

impl fmt::Display for SetTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFlow => f.write_str("the flow has ended"),
            Self::Timeout(error) => error.fmt(f),
            Self::Memory => f.write_str("the memory for a timeout of the flow is not available"),
        }
    }
}

impl Error for SetTimeoutError {}
