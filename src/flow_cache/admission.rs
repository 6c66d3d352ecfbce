//! Admission and removal of flows: creation, eviction, limits.

use core::hash::BuildHasher;
use core::mem;

use super::FlowCache;
use super::config::Emergency;
use super::event::{Refused, RemovedFlow};
use super::state::{ConnectionState, EndReason, Packet, Tenant};
use super::store::{Flow, FlowState, Handle, Target};
use crate::eviction::{EntryStats, Eviction};
use crate::key::flow::{Direction, FlowName};
use crate::raw::index::OptIndex;
use crate::timestamp::Timestamp;

/// Victims whose flows are prefetched.
const AHEAD: usize = 8;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Creates a flow for a key that refers to no flow, or to one that has ended and is removed.
    /// Evicts a flow if necessary. Returns the slot and the removed flow.
    pub(super) fn create(
        &mut self,
        (hash, name): (u64, K),
        (key, initiator): (K, Direction),
        (mut packet, direction): (Packet, Direction),
        over: Option<u32>,
        value: V,
    ) -> Result<(u32, Option<RemovedFlow<K, V>>), Refused> {
        if self.pending.is_some() {
            // An allocation failed before, and the flow evicted for it was not reported yet.
            self.accounting.metrics.refused += 1;
            return Err(Refused::Memory);
        }
        let over = over.and_then(|slot| self.remove_slot(slot, EndReason::Ended));
        let removed = match over {
            Some(over) => {
                // Its capacity counts for its tenant.
                packet = packet.from_tenant(over.tenant);
                Some(over)
            }
            None => self
                .make_room(packet.tenant())
                .inspect_err(|_| self.accounting.metrics.refused += 1)?,
        };
        let slot = self.store.flows.next_index();
        if self.index.try_insert_hashed(hash, name, Target::slot(slot, initiator)).is_err() {
            self.pending = removed;
            self.accounting.metrics.refused += 1;
            return Err(Refused::Memory);
        }
        let now = self.clock.now();
        self.version += 1;
        let state = FlowState {
            id: 0,
            last_seen: now,
            first_seen: now,
            reported: now,
            version: self.version,
            aliases: OptIndex::NONE,
            tenant: packet.tenant(),
            connection: ConnectionState::begin(packet, direction, self.config.close_rule),
            is_used: false,
            has_unreported: true,
            is_pinned: false,
        };
        self.insert_flow(Flow { state, value, key });
        self.accounting.metrics.created += 1;
        Ok((slot, removed))
    }

    /// Inserts a flow whose key is already in the index, with the next free slot.
    pub(super) fn insert_flow(&mut self, flow: Flow<K, V>) {
        if self.store.len() == 0 {
            // An empty wheel skips the time without flows.
            self.accounting.wheel.skip_to(self.clock.now() / self.config.tick);
        }
        let slot = self.store.insert(flow);
        let (config, now) = (&self.config, self.clock.now());
        self.accounting.insert(slot, &self.store.flow(slot).state, config, now);
        let begins = |emergency: Emergency| self.store.len() >= emergency.enter;
        if !self.is_emergency && self.config.emergency.is_some_and(begins) {
            self.is_emergency = true;
            self.accounting.metrics.emergencies += 1;
        }
    }

    /// Evicts a flow, if a new flow of the tenant requires it.
    fn make_room(&mut self, tenant: Tenant) -> Result<Option<RemovedFlow<K, V>>, Refused> {
        let is_due = self.accounting.policy.is_due(self.store.len());
        let (of, refusal) = if !self.has_memory_for(0, 1) {
            return Err(Refused::Memory);
        } else if self.accounting.tenants.is_at_share(tenant) {
            (Some(tenant), Some(Refused::Tenant))
        } else if self.store.len() >= self.config.flows {
            (None, Some(Refused::Full))
        } else if !self.has_memory_for(self.growth(), 2) {
            (None, Some(Refused::Memory))
        } else if is_due {
            (None, None)
        } else {
            return Ok(None);
        };
        let removed = self.victim(of).and_then(|slot| self.remove_slot(slot, EndReason::Resources));
        self.prefetch_next();
        match refusal {
            Some(refusal) if removed.is_none() => Err(refusal),
            _ => Ok(removed),
        }
    }

    /// Prefetches for the next evictions: the index bucket of the first victim, and the flows of
    /// those after it.
    fn prefetch_next(&self) {
        let mut slots = [0; AHEAD];
        let count = self.accounting.policy.upcoming(&mut slots).min(AHEAD);
        let Some((first, others)) = slots[..count].split_first() else { return };
        others.iter().for_each(|slot| self.store.flows.prefetch(*slot));
        if let Some(flow) = self.store.flows.get(*first).filter(|flow| !flow.state.is_used) {
            self.index.prefetch_bucket(self.index.hash_of(&flow.key.normalized().0));
        }
    }

    /// Selects the next victim: of a tenant, or of all flows.
    pub(super) fn victim(&mut self, of: Option<Tenant>) -> Option<u32> {
        let flows = &mut self.store.flows;
        let stats = |slot| match flows.get_mut(slot) {
            Some(Flow { state, .. }) => EntryStats {
                used: mem::take(&mut state.is_used),
                // Only the order matters, and the caller's clock may have been set.
                last_use: Timestamp::from_nanos(state.last_seen),
            },
            None => EntryStats::default(),
        };
        let victim = match of {
            Some(tenant) => self.accounting.tenants.victim(tenant, stats),
            None => self.accounting.policy.victim(stats),
        };
        // A policy of the caller's may return any slot.
        victim.filter(|slot| self.store.flows.get(*slot).is_some_and(|flow| !flow.state.is_pinned))
    }

    /// Removes a flow with all of its aliases.
    pub(super) fn remove_slot(
        &mut self,
        slot: u32,
        reason: EndReason,
    ) -> Option<RemovedFlow<K, V>> {
        // The index first: it hashes keys, which may panic.
        let (key, initiator) = self.store.flows.get(slot)?.key.normalized();
        while let Some((at, name)) = self.store.aliases(slot).next() {
            let (key, initiator) = name.key.normalized();
            self.unlink(key, Target::alias(at, initiator));
            self.store.remove_alias(slot, at);
        }
        self.unlink(key, Target::slot(slot, initiator));

        let Flow { state, value, key } = self.store.flows.try_remove(slot)?;
        let handle = Handle { id: state.id, slot };
        self.accounting.remove(slot, &state, reason);
        self.version += 1;
        let ends = |emergency: Emergency| self.store.len() < emergency.leave;
        self.is_emergency &= !self.config.emergency.is_some_and(ends);
        Some(RemovedFlow {
            handle,
            key,
            value,
            reason,
            class: state.connection.class,
            protocol: state.connection.protocol,
            tenant: state.tenant,
            first_seen: self.clock.caller(state.first_seen),
            last_seen: self.clock.caller(state.last_seen),
        })
    }

    /// Removes a key from the index if it has this target, which is so unless keys violate the
    /// contract of `Hash` and `Eq`.
    pub(super) fn unlink(&mut self, name: K, target: Target) {
        let hash = self.index.hash_of(&name);
        if self.index.get_hashed(hash, &name) == Some(&target) {
            self.index.remove_hashed(hash, &name);
        }
    }
}
