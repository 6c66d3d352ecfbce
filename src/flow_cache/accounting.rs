//! What is booked about each flow besides itself: when to look at it, who leaves before it, whose it is,
//! and the counts.
//!
//! All of it goes by slot numbers, so there are no keys and values here.

use super::config::Config;
use super::metrics::Metrics;
use super::state::{Class, EndReason, NEVER};
use super::store::Life;
use super::tenants::Tenants;
use super::wheel::Wheel;
use crate::eviction::Eviction;

/// The books of a cache.
#[derive(Clone, Debug)]
pub(super) struct Ledger<P> {
    pub(super) wheel: Wheel,
    pub(super) policy: P,
    pub(super) tenants: Tenants,
    pub(super) metrics: Metrics,
    /// Hits that are not in the metrics: one key compared, in the first bucket.
    pub(super) quick_hits: u64,
}

impl<P: Eviction> Ledger<P> {
    pub(super) fn new(policy: P, tick: u64) -> Self {
        Self {
            wheel: Wheel::new(tick),
            policy,
            tenants: Tenants::new(),
            metrics: Metrics::default(),
            quick_hits: 0,
        }
    }

    /// A flow came.
    pub(super) fn enter(&mut self, slot: u32, life: &Life, config: &Config, now: u64) {
        self.wheel.cover(slot);
        self.tenants.cover(slot);
        self.arm(slot, life, config, now);
        self.tenants.count_in(life.tenant);
        self.metrics.enter(life.course.class);
        if life.is_pinned {
            self.metrics.pinned += 1;
        } else {
            self.expose(slot, life);
        }
    }

    /// A flow left.
    pub(super) fn leave(&mut self, slot: u32, life: &Life, reason: EndReason) {
        // The wheel keeps the slot armed: the next flow in it will be due later, and then need not be armed.
        self.tenants.count_out(life.tenant);
        self.metrics.depart(reason, life.course.class);
        if life.is_pinned {
            self.metrics.pinned -= 1;
        } else {
            self.shelter(slot, life);
        }
    }

    /// A flow may be evicted from now on.
    pub(super) fn expose(&mut self, slot: u32, life: &Life) {
        self.policy.insert(slot, life.course.class as u8);
        self.tenants.enter(life.tenant, slot, life.course.class);
    }

    /// A flow may not be evicted any more.
    pub(super) fn shelter(&mut self, slot: u32, life: &Life) {
        self.policy.remove(slot);
        self.tenants.leave(life.tenant, slot, life.course.class);
    }

    /// A flow has got another class than the one before.
    #[cold]
    #[inline(never)]
    pub(super) fn reclass(
        &mut self,
        slot: u32,
        life: &Life,
        before: Class,
        (config, now): (&Config, u64),
    ) {
        let class = life.course.class;
        self.metrics.reclass(before, class);
        if !life.is_pinned {
            self.policy.rerank(slot, class as u8);
            self.tenants.leave(life.tenant, slot, before);
            self.tenants.enter(life.tenant, slot, class);
        }
        // Later deadlines need nothing: the wheel asks again when the earlier one comes.
        let idle = |class| config.timeouts.idle_nanos(life.course.protocol, class);
        if idle(class) < idle(before) || config.emergency.is_some() {
            self.arm(slot, life, config, now);
        }
    }

    /// Has the wheel give the flow when something is to be done about it.
    pub(super) fn arm(&mut self, slot: u32, life: &Life, config: &Config, now: u64) {
        let mut deadline = life.deadline(&config.timeouts);
        if let Some((relief, idle)) =
            config.emergency.and_then(|emergency| Some((life.relief(emergency)?, emergency.idle)))
        {
            // There may be an emergency by then; if not, it is asked again.
            deadline = deadline.min(if relief > now { relief } else { now.saturating_add(idle) });
        }
        if deadline != NEVER {
            // At the first tick at which it is over.
            self.wheel.arm(slot, deadline.div_ceil(config.tick));
        }
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.wheel.allocation_size()
            + self.policy.allocation_size()
            + self.tenants.allocation_size()
    }
}
