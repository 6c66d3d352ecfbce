//! Tenants: their flows are counted, and queued by class, so that each evicts its own.

use core::alloc::Layout;

use super::extras::map_growth;
use super::state::{Class, Tenant};
use crate::eviction::{EntryStats, has_few_newcomers, lowest_rank};
use crate::hash::DefaultHashBuilder;
use crate::memory::{AllocError, Allocator, Vec};
use crate::raw::intrusive_list::IntrusiveLists;
use crate::table::error::{TryReserveError, reserve_one};
use crate::trash::TrashMap;

const CLASSES: usize = Class::ALL.len();

/// Used flows that an eviction skips, at most.
const LOOKS: usize = 8;

/// The account of a tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    share: usize,
    /// Flows, with pinned ones.
    flows: usize,
    /// Evictable flows of each class.
    evictable: [usize; CLASSES],
}

/// The tenants that have had a share.
#[derive(Clone, Debug)]
pub(super) struct Tenants<A: Allocator + Clone> {
    indices: TrashMap<u32, u32, DefaultHashBuilder, A>,
    accounts: Vec<Account, A>,
    /// For each account the evictable flows of each class.
    queues: IntrusiveLists<A>,
}

impl<A: Allocator + Clone> Tenants<A> {
    /// No tenants of at most `limit` flows, whose memory will be from `memory`.
    pub(super) fn new_in(limit: usize, memory: A) -> Self {
        Self {
            indices: TrashMap::with_hasher_in(DefaultHashBuilder::new(), memory.clone()),
            accounts: Vec::new_in(memory.clone()),
            queues: IntrusiveLists::new_in(limit, memory),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    #[inline]
    fn index(&self, tenant: Tenant) -> Option<usize> {
        if self.is_empty() { None } else { self.index_of(tenant) }
    }

    fn index_of(&self, tenant: Tenant) -> Option<usize> {
        self.indices.get(&tenant.0).map(|index| *index as usize)
    }

    /// Sets the share of a tenant of the flows in `slots` slots. Returns whether it is the first:
    /// then its flows have to be [counted](Self::count_in).
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. There is no such share then.
    pub(super) fn set_share(
        &mut self,
        tenant: Tenant,
        share: usize,
        slots: u32,
    ) -> Result<bool, TryReserveError> {
        if let Some(index) = self.index(tenant) {
            self.accounts[index].share = share;
            return Ok(false);
        }
        reserve_one(&mut self.accounts)?;
        let links = Layout::new::<u64>();
        let is_reserved = self.queues.try_reserve(CLASSES, slots);
        is_reserved.map_err(|AllocError| TryReserveError::memory(links))?;
        let is_inserted = self.indices.try_insert(tenant.0, self.accounts.len() as u32);
        is_inserted.map_err(|refused| refused.error)?;
        self.accounts.push(Account { share, flows: 0, evictable: [0; CLASSES] });
        (0..CLASSES).for_each(|_| _ = self.queues.add_list());
        Ok(true)
    }

    /// Returns the flows and the share of a tenant.
    pub(super) fn usage(&self, tenant: Tenant) -> Option<(usize, usize)> {
        let Account { flows, share, .. } = self.accounts[self.index(tenant)?];
        Some((flows, share))
    }

    pub(super) fn is_at_share(&self, tenant: Tenant) -> bool {
        self.usage(tenant).is_some_and(|(flows, share)| flows >= share)
    }

    /// Allocates memory for slots up to this one, so that [covering](Self::cover) it does not
    /// allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(super) fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        if self.is_empty() { Ok(()) } else { self.queues.try_reserve(0, slot + 1) }
    }

    /// Allocates the queue links of a slot.
    pub(super) fn cover(&mut self, slot: u32) {
        if !self.is_empty() {
            self.queues.cover(slot);
        }
    }

    /// Counts a new flow of the tenant.
    pub(super) fn count_in(&mut self, tenant: Tenant) {
        if let Some(index) = self.index(tenant) {
            self.accounts[index].flows += 1;
        }
    }

    /// Counts a removed flow of the tenant.
    pub(super) fn count_out(&mut self, tenant: Tenant) {
        if let Some(index) = self.index(tenant) {
            self.accounts[index].flows -= 1;
        }
    }

    /// Makes a flow of this class evictable, as the last one of its queue.
    pub(super) fn insert(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some(index) = self.index(tenant) {
            self.accounts[index].evictable[class as usize] += 1;
            self.queues.push_back(index * CLASSES + class as usize, slot);
        }
    }

    /// Makes a flow of this class unevictable.
    pub(super) fn remove(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some(index) = self.index(tenant) {
            self.accounts[index].evictable[class as usize] -= 1;
            self.queues.remove(slot);
        }
    }

    /// Accounts for a change of class of an evictable flow.
    pub(super) fn change_class(&mut self, tenant: Tenant, slot: u32, before: Class, class: Class) {
        self.remove(tenant, slot, before);
        self.insert(tenant, slot, class);
    }

    /// Selects a victim of a tenant by the rules of [`ByClass`](crate::eviction::ByClass), with
    /// newcomers included.
    pub(super) fn victim(
        &mut self,
        tenant: Tenant,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let index = self.index(tenant)?;
        let evictable = self.accounts[index].evictable;
        let first = index * CLASSES;
        if has_few_newcomers(evictable) {
            let unused = self.first_unused(first + Class::Established as usize, &mut stats);
            if unused.is_some() {
                return unused;
            }
        }
        let queue = first + lowest_rank(evictable)?;
        self.first_unused(queue, stats).or_else(|| self.queues.front(queue))
    }

    /// Returns the first unused flow of a queue, if it is among the first [`LOOKS`]; used ones are
    /// moved to the back. Rings are for few large queues; these are many small ones.
    fn first_unused(
        &mut self,
        queue: usize,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        for _ in 0..LOOKS {
            let slot = self.queues.front(queue)?;
            if !stats(slot).used {
                return Some(slot);
            }
            self.queues.move_to_back(queue, slot);
        }
        None
    }

    /// An upper bound of the bytes that the share of another tenant allocates, without the queue
    /// links of slots.
    pub(super) fn growth(&self) -> usize {
        let accounts = 2 * self.accounts.capacity().max(4);
        let heads = CLASSES * size_of::<u64>();
        map_growth::<u32, u32>(self.indices.allocation_size())
            + accounts * (size_of::<Account>() + heads)
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.indices.allocation_size()
            + self.accounts.capacity() * size_of::<Account>()
            + self.queues.allocation_size()
    }
}
