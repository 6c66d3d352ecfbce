//! Coming and going: a flow gets room, and another leaves for it if it must.

use core::hash::BuildHasher;
use core::mem;

use super::FlowCache;
use super::config::Emergency;
use super::event::{Departed, Refused};
use super::state::{Course, EndReason, Packet, Tenant};
use super::store::{Flow, Handle, Life, NO_NAME, Place};
use crate::eviction::{EntryStats, Eviction};
use crate::key::flow::{Direction, FlowName};
use crate::timestamp::Timestamp;

/// How many of the next victims are fetched ahead.
const AHEAD: usize = 8;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Makes a flow under a name that leads nowhere, or to a flow that is over and leaves. Makes room for
    /// it if it must. Returns its slot and who left.
    pub(super) fn create(
        &mut self,
        (hash, name): (u64, K),
        (key, initiator): (K, Direction),
        (mut packet, direction): (Packet, Direction),
        over: Option<u32>,
        value: V,
    ) -> Result<(u32, Option<Departed<K, V>>), Refused> {
        if self.pending.is_some() {
            // Memory was short a moment ago, and it has not been told yet who left in vain.
            self.ledger.metrics.refused += 1;
            return Err(Refused::Memory);
        }
        let over = over.and_then(|slot| self.depart(slot, EndReason::Ended));
        let departed = match over {
            Some(over) => {
                // Its room is that of the tenant who had it.
                packet = packet.from_tenant(over.tenant);
                Some(over)
            }
            None => {
                self.make_room(packet.tenant()).inspect_err(|_| self.ledger.metrics.refused += 1)?
            }
        };
        let slot = self.store.flows.next_index();
        if self.index.try_insert_hashed(hash, name, Place::slot(slot, initiator)).is_err() {
            self.pending = departed;
            self.ledger.metrics.refused += 1;
            return Err(Refused::Memory);
        }
        let now = self.clock.now();
        self.version += 1;
        let life = Life {
            id: 0,
            last_seen: now,
            first_seen: now,
            reported: now,
            version: self.version,
            names: NO_NAME,
            tenant: packet.tenant(),
            course: Course::begin(packet, direction, self.config.close_rule),
            is_used: false,
            has_news: true,
            is_pinned: false,
        };
        self.settle(Flow { life, value, key });
        self.ledger.metrics.created += 1;
        Ok((slot, departed))
    }

    /// Puts in a flow whose name the index has for the next free slot.
    pub(super) fn settle(&mut self, flow: Flow<K, V>) {
        if self.store.len() == 0 {
            // The wheel need not turn for what has been without flows.
            self.ledger.wheel.skip_to(self.clock.now() / self.config.tick);
        }
        let slot = self.store.insert(flow);
        let (config, now) = (&self.config, self.clock.now());
        self.ledger.enter(slot, &self.store.flow(slot).life, config, now);
        let begins = |emergency: Emergency| self.store.len() >= emergency.enter;
        if !self.is_emergency && self.config.emergency.is_some_and(begins) {
            self.is_emergency = true;
            self.ledger.metrics.emergencies += 1;
        }
    }

    /// Has someone leave, if a new flow of the tenant needs it.
    fn make_room(&mut self, tenant: Tenant) -> Result<Option<Departed<K, V>>, Refused> {
        let is_due = self.ledger.policy.is_due(self.store.len());
        let (of, refusal) = if !self.has_memory_for(0, 1) {
            return Err(Refused::Memory);
        } else if self.ledger.tenants.is_at_share(tenant) {
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
        let departed = self.victim(of).and_then(|slot| self.depart(slot, EndReason::Resources));
        self.prefetch_next();
        match refusal {
            Some(refusal) if departed.is_none() => Err(refusal),
            _ => Ok(departed),
        }
    }

    /// Asks for what the next victims need: the first one's place in the index, and the flows of those behind
    /// it, the first of which will be there when it is the first one.
    fn prefetch_next(&self) {
        let mut slots = [0; AHEAD];
        let count = self.ledger.policy.upcoming(&mut slots).min(AHEAD);
        let Some((first, others)) = slots[..count].split_first() else { return };
        others.iter().for_each(|slot| self.store.flows.prefetch(*slot));
        if let Some(flow) = self.store.flows.get(*first).filter(|flow| !flow.life.is_used) {
            self.index.prefetch_bucket(self.index.hash_of(&flow.key.normalized().0));
        }
    }

    /// Who leaves next: of a tenant, or of all.
    pub(super) fn victim(&mut self, of: Option<Tenant>) -> Option<u32> {
        let flows = &mut self.store.flows;
        let look = |slot| match flows.get_mut(slot) {
            Some(Flow { life, .. }) => EntryStats {
                used: mem::take(&mut life.is_used),
                // Its order counts, and the caller's clock may have been set.
                last_use: Timestamp::from_nanos(life.last_seen),
            },
            None => EntryStats::default(),
        };
        let victim = match of {
            Some(tenant) => self.ledger.tenants.victim(tenant, look),
            None => self.ledger.policy.victim(look),
        };
        // The policy may be anyone's, and say anything.
        victim.filter(|slot| self.store.flows.get(*slot).is_some_and(|flow| !flow.life.is_pinned))
    }

    /// Takes out a flow with all of its names.
    pub(super) fn depart(&mut self, slot: u32, reason: EndReason) -> Option<Departed<K, V>> {
        // The index first: it asks keys for their hashes, which may panic.
        let (key, initiator) = self.store.flows.get(slot)?.key.normalized();
        while let Some((at, name)) = self.store.further_names(slot).next() {
            let (key, initiator) = name.key.normalized();
            self.unname(key, Place::name(at, initiator));
            self.store.drop_name(slot, at);
        }
        self.unname(key, Place::slot(slot, initiator));

        let Flow { life, value, key } = self.store.flows.try_remove(slot)?;
        let handle = Handle { id: life.id, slot };
        self.ledger.leave(slot, &life, reason);
        self.version += 1;
        let ends = |emergency: Emergency| self.store.len() < emergency.leave;
        self.is_emergency &= !self.config.emergency.is_some_and(ends);
        Some(Departed {
            handle,
            key,
            value,
            reason,
            class: life.course.class,
            protocol: life.course.protocol,
            tenant: life.tenant,
            first_seen: self.clock.caller(life.first_seen),
            last_seen: self.clock.caller(life.last_seen),
        })
    }

    /// Takes a name out of the index if it leads where it should. It does, unless keys break their law.
    pub(super) fn unname(&mut self, name: K, place: Place) {
        let hash = self.index.hash_of(&name);
        if self.index.get_hashed(hash, &name) == Some(&place) {
            self.index.remove_hashed(hash, &name);
        }
    }
}
