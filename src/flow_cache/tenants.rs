//! Tenants: their flows are counted, and queued by class, so that each loses its own.

use alloc::vec::Vec;

use super::state::{Class, Tenant};
use crate::eviction::{EntryStats, has_few_newcomers, lowest_rank};
use crate::raw::intrusive_list::IntrusiveLists;
use crate::trash::TrashMap;

const CLASSES: usize = Class::ALL.len();

/// Most flows of a tenant that are passed over for one that leaves.
const LOOKS: usize = 8;

/// What is known of a tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    share: usize,
    /// Pinned ones included.
    flows: usize,
    /// Of each class, those that may be evicted.
    exposed: [usize; CLASSES],
}

/// The tenants that have had a share.
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    numbers: TrashMap<u16, u32>,
    accounts: Vec<Account>,
    /// For each account the flows of each class that may be evicted.
    queues: IntrusiveLists,
}

impl Tenants {
    pub(super) fn new() -> Self {
        Self { numbers: TrashMap::new(), accounts: Vec::new(), queues: IntrusiveLists::new(0) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    fn number(&self, tenant: Tenant) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        self.numbers.get(&tenant.0).map(|number| *number as usize)
    }

    /// Gives a tenant a share. Whether it had none: then its flows are to be [counted in](Self::count_in).
    pub(super) fn set_share(&mut self, tenant: Tenant, share: usize) -> bool {
        if let Some(number) = self.number(tenant) {
            self.accounts[number].share = share;
            return false;
        }
        self.numbers.insert(tenant.0, self.accounts.len() as u32);
        self.accounts.push(Account { share, flows: 0, exposed: [0; CLASSES] });
        (0..CLASSES).for_each(|_| _ = self.queues.add_list());
        true
    }

    /// The flows that a tenant has, and may have.
    pub(super) fn standing(&self, tenant: Tenant) -> Option<(usize, usize)> {
        let Account { flows, share, .. } = self.accounts[self.number(tenant)?];
        Some((flows, share))
    }

    pub(super) fn is_at_share(&self, tenant: Tenant) -> bool {
        self.standing(tenant).is_some_and(|(flows, share)| flows >= share)
    }

    /// Allocates what a slot will need.
    pub(super) fn cover(&mut self, slot: u32) {
        if !self.is_empty() {
            self.queues.cover(slot);
        }
    }

    /// A flow of the tenant came.
    pub(super) fn count_in(&mut self, tenant: Tenant) {
        if let Some(number) = self.number(tenant) {
            self.accounts[number].flows += 1;
        }
    }

    /// A flow of the tenant left.
    pub(super) fn count_out(&mut self, tenant: Tenant) {
        if let Some(number) = self.number(tenant) {
            self.accounts[number].flows -= 1;
        }
    }

    /// The flow may be evicted, as one of this class; the last of them.
    pub(super) fn enter(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some(number) = self.number(tenant) {
            self.accounts[number].exposed[class as usize] += 1;
            self.queues.push_back(number * CLASSES + class as usize, slot);
        }
    }

    /// The flow, which was one of this class, may not be evicted.
    pub(super) fn leave(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some(number) = self.number(tenant) {
            self.accounts[number].exposed[class as usize] -= 1;
            self.queues.remove(slot);
        }
    }

    /// Which of its flows a tenant loses: as [`ByClass`](crate::eviction::ByClass) has it, newcomers included.
    pub(super) fn victim(
        &mut self,
        tenant: Tenant,
        mut look: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let number = self.number(tenant)?;
        let exposed = self.accounts[number].exposed;
        let first = number * CLASSES;
        if has_few_newcomers(exposed) {
            let unused = self.first_unused(first + Class::Established as usize, &mut look);
            if unused.is_some() {
                return unused;
            }
        }
        let queue = first + lowest_rank(exposed)?;
        self.first_unused(queue, look).or_else(|| self.queues.front(queue))
    }

    /// The first flow of a queue that was not used, if it is among the first ones; used ones go to the
    /// back. Rings are for few large crowds; these are many small ones.
    fn first_unused(
        &mut self,
        queue: usize,
        mut look: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        for _ in 0..LOOKS {
            let slot = self.queues.front(queue)?;
            if !look(slot).used {
                return Some(slot);
            }
            self.queues.move_to_back(queue, slot);
        }
        None
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.numbers.allocation_size()
            + self.accounts.capacity() * size_of::<Account>()
            + self.queues.allocation_size()
    }
}
