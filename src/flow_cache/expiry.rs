//! Time passes: what is due is found by the wheel, in bounded steps.
//!
//! A flow is armed once, for the earlier of its idle and its active deadline. A packet only writes the
//! time at which it came; when the wheel gives the flow, the deadline is computed anew, and if it
//! is later, the flow is armed for that. So a busy flow is looked at about once in each timeout.

use core::hash::BuildHasher;
use core::mem;

use super::FlowCache;
use super::config::Emergency;
use super::event::{Event, Progress, Report};
use super::state::{Class, EndReason};
use super::store::{Flow, Life};
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::timestamp::Timestamp;

/// How many flows are fetched together.
const GROUP: usize = 8;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Ends and reports what is due, looking at `budget` flows at most. O(budget).
    ///
    /// A flow that is silent for its timeout is reported by the first call that comes a
    /// [tick](super::Config::tick) after that or later, and whose budget suffices; budgets that do not
    /// leave the rest to the next call, the earliest first. Nothing is reported early, and nothing twice.
    /// `now` counts as the latest time so far, if it is earlier than that: time may stand still,
    /// or jump.
    ///
    /// Call it as often as the tick, when packets come and when none do. A flow is looked at once in each
    /// timeout while it is busy, and [up to four times](crate::flow_cache) on its way to the end; many
    /// of them come at once, when a list of the wheel begins. So give it a budget of tens of flows, and
    /// when it says that it is not done, more of it before the next packets.
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
    ///     Event::Active(_) => unreachable!("it would be reported after 300 s"),
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
        self.clock.pass(now);
        let mut progress = Progress::default();
        if let Some(departed) = self.pending.take() {
            progress.ended += 1;
            each(Event::Ended(departed));
        }
        let tick = self.clock.now() / self.config.tick;
        while !progress.is_done && progress.examined < budget {
            let count = self.prefetch_due(tick, GROUP.min(budget - progress.examined));
            progress.is_done = count == 0;
            for _ in 0..count {
                let Some(slot) = self.ledger.wheel.pop(tick) else { break };
                progress.examined += 1;
                self.examine(slot, &mut progress, &mut each);
            }
        }
        while progress.examined < budget && !self.has_memory_for(0, 1) {
            progress.examined += 1;
            let victim = self.victim(None);
            let Some(departed) = victim.and_then(|slot| self.depart(slot, EndReason::Resources))
            else {
                break;
            };
            progress.ended += 1;
            each(Event::Ended(departed));
        }
        if progress.is_done {
            let next =
                self.ledger.wheel.next_tick().map(|tick| tick.saturating_mul(self.config.tick));
            progress.next = next.map(|next| self.clock.caller(next));
        }
        progress
    }

    /// Asks for the memory of the flows that the wheel gives next, and for where the index has those
    /// that are over. Returns how many they are.
    fn prefetch_due(&mut self, tick: u64, most: usize) -> usize {
        let (mut slots, mut hashes) = ([0; GROUP], [None; GROUP]);
        let count = self.ledger.wheel.upcoming(tick, &mut slots[..most]);
        let slots = &slots[..count];
        slots.iter().for_each(|slot| self.store.flows.prefetch(*slot));
        for (hash, slot) in hashes.iter_mut().zip(slots) {
            let flow = self.store.flows.get(*slot);
            let over = flow.filter(|flow| self.verdict(&flow.life).is_some());
            *hash = over.map(|flow| self.index.hash_of(&flow.key.normalized().0));
            hash.iter().for_each(|hash| self.index.prefetch_bucket(*hash));
        }
        hashes.iter().flatten().for_each(|hash| self.index.prefetch_entry(*hash));
        count
    }

    /// A flow that the wheel gives: ends it, reports it, or arms it for later.
    fn examine(
        &mut self,
        slot: u32,
        progress: &mut Progress,
        each: &mut impl FnMut(Event<'_, K, V>),
    ) {
        let now = self.clock.now();
        let Some(Flow { life, .. }) = self.store.flows.get(slot) else { return };
        if let Some(reason) = self.verdict(life) {
            // Should a key panic on its way out of the index, the flow will be here again.
            self.ledger.wheel.arm(slot, now / self.config.tick + 1);
            let departed = self.depart(slot, reason);
            self.ledger.wheel.disarm(slot);
            if let Some(departed) = departed {
                progress.ended += 1;
                each(Event::Ended(departed));
            }
            return;
        }
        let Flow { life, .. } = self.store.flow_mut(slot);
        let since = life.reported;
        let is_due = life.active_deadline(&self.config.timeouts) <= now;
        let is_reported = is_due && mem::take(&mut life.has_news);
        if is_due {
            life.reported = now;
        }
        self.ledger.arm(slot, life, &self.config, now);
        if is_reported {
            progress.reported += 1;
            self.ledger.metrics.reported += 1;
            self.touch(slot);
            each(Event::Active(self.report(slot, since)));
        }
    }

    /// Why a flow is over, if it is.
    fn verdict(&self, life: &Life) -> Option<EndReason> {
        let now = self.clock.now();
        let is_crowded_out = |emergency: Emergency| {
            self.is_emergency && life.relief(emergency).is_some_and(|relief| relief <= now)
        };
        if life.idle_deadline(&self.config.timeouts) <= now {
            let is_over = life.course.class == Class::Closing;
            Some(if is_over { EndReason::Ended } else { EndReason::Idle })
        } else if self.config.emergency.is_some_and(is_crowded_out) {
            Some(EndReason::Resources)
        } else {
            None
        }
    }

    fn report(&mut self, slot: u32, since: u64) -> Report<'_, K, V> {
        let handle = self.store.handle(slot);
        let Flow { life, value, key } = self.store.flow_mut(slot);
        Report {
            handle,
            key,
            value,
            class: life.course.class,
            protocol: life.course.protocol,
            tenant: life.tenant,
            first_seen: self.clock.caller(life.first_seen),
            last_seen: self.clock.caller(life.last_seen),
            since: self.clock.caller(since),
        }
    }
}
