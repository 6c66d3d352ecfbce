//! Tenants: their flows are counted, and queued by class, so that each evicts its own.
//!
//! A tenant has an account while it has a share, and until its last flow ends after the share was
//! removed. The next account takes the place of a removed one, with its queues, so the memory
//! suffices for the largest number of accounts at a time, and no more.

use alloc::format;
use core::alloc::Layout;
use core::hash::BuildHasher;

use crate::eviction::{EntryStats, Eviction, has_few_newcomers, lowest_rank};
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::state::{Class, Tenant};
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::FlowName;
use crate::memory::{AllocError, Allocator};
use crate::raw::intrusive_list::IntrusiveLists;
use crate::raw::slab::{Contiguous, Slab, Slot};
use crate::table::error::TryReserveError;
use crate::trash::TrashMap;

const CLASSES: usize = Class::ALL.len();

/// Entries of a map that are allocated together when it grows, at most, with a margin.
const MAP_STEP: usize = 2 * 1024;

/// An upper bound of the bytes that an insertion into a map allocates: its entries move to twice as
/// many slots, or a segment splits.
pub(crate) fn map_growth<A, B>(bytes: usize) -> usize {
    let segments = MAP_STEP * (size_of::<(A, B)>() + 2) + bytes / 8;
    segments.min(3 * bytes + 4 * size_of::<(A, B)>()) + 256
}

/// Used flows that an eviction skips, at most.
const LOOKS: usize = 8;

/// The share of a tenant without one, which still has flows.
const UNLIMITED: usize = usize::MAX;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Sets the share of a tenant: its maximum number of flows, beyond which each new flow evicts
    /// one of its own. `None` removes the share; tenant 0 has none.
    ///
    /// O(1), except for a tenant whose flows are not counted yet, or not any more: they are counted
    /// in O(slots), so set shares at the beginning. A tenant above its share loses one flow for
    /// each new one until timeouts have removed the rest. Shares may add up to more than the
    /// capacity; a full cache then evicts flows of any tenant. The flows of a tenant without a
    /// share are counted until the last of them has ended; then the next new share reuses the
    /// memory of its account.
    ///
    /// # Panics
    ///
    /// If the account of a tenant whose flows are not counted exceeds the
    /// [memory limit](crate::flow_cache::Config::with_max_bytes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet, Tenant};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// cache.set_share(Tenant(7), Some(2));
    /// let packet = Packet::UDP.from_tenant(Tenant(7));
    /// for id in 0..2 {
    ///     cache.observe(&id, packet, Timestamp::ZERO)?;
    /// }
    /// cache.observe(&2, Packet::UDP, Timestamp::ZERO)?;
    /// let third = cache.observe(&3, packet, Timestamp::ZERO)?;
    /// assert_eq!(third.removed().map(|flow| flow.key), Some(0));
    /// assert_eq!((cache.tenant_flows(Tenant(7)), cache.len()), (Some(2), 3));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_share(&mut self, tenant: Tenant, flows: Option<usize>) {
        let is_within = flows.is_none() || self.has_memory_for(self.share_growth(tenant));
        assert!(is_within, "the share of a tenant exceeds the memory limit");
        self.try_set_share(tenant, flows).unwrap_or_else(|error| error.raise());
    }

    /// Sets the share of a tenant like [`set_share`](Self::set_share), if there is memory.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated for the account of a tenant whose flows are not counted, or
    /// the [memory limit](crate::flow_cache::Config::with_max_bytes) would be exceeded. It has no
    /// share then.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::FlowCache;
    /// use flowtable::flow_cache::{Config, Tenant};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// let config = Config::new(100)?;
    /// let mut cache: FlowCache<u64, (), _, _, _> = FlowCache::new_in(config, &arena);
    /// assert!(cache.try_set_share(Tenant(7), Some(2)).is_err());
    /// assert_eq!(cache.tenant_flows(Tenant(7)), None);
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    pub fn try_set_share(
        &mut self,
        tenant: Tenant,
        flows: Option<usize>,
    ) -> Result<(), TryReserveError> {
        let Some(share) = flows else {
            self.accounting.tenants.remove_share(tenant);
            return Ok(());
        };
        let slots = self.store.flows.slot_count();
        let bytes = self.share_growth(tenant);
        if !self.has_memory_for(bytes) {
            return Err(Layout::array::<u8>(bytes)
                .map_or(TryReserveError::OVERFLOW, TryReserveError::memory));
        }
        let is_new = tenant != Tenant::default()
            && self.accounting.tenants.set_share(tenant, share, slots)?;
        let slots = if is_new { 0..slots } else { 0..0 };
        for slot in slots {
            self.accounting.tenants.cover(slot);
            let state = self.store.state(slot);
            if let Some(state) = state.filter(|state| state.tenant == tenant) {
                self.accounting.tenants.count_in(tenant);
                if !state.marks.is_pinned() {
                    self.accounting.tenants.insert(tenant, slot, state.marks.class());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of flows of a tenant with a share, or `None` if it has none. O(1).
    ///
    /// After the share was removed, flows are counted until the last of them has ended.
    #[must_use]
    pub fn tenant_flows(&self, tenant: Tenant) -> Option<usize> {
        self.accounting.tenants.usage(tenant).map(|(flows, _)| flows)
    }
}

/// The account of a tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// [`UNLIMITED`] only while there are flows.
    share: usize,
    /// Flows, with pinned ones.
    flows: usize,
    /// Evictable flows of each class.
    evictable: [usize; CLASSES],
}

/// The tenants with an account.
#[derive(Clone, Debug)]
pub(crate) struct Tenants<A: Allocator + Clone> {
    indices: TrashMap<u32, u32, DefaultHashBuilder, A>,
    accounts: Slab<Account, Contiguous<Account, A>>,
    /// For each place of an account the evictable flows of each class.
    queues: IntrusiveLists<A>,
}

impl<A: Allocator + Clone> Tenants<A> {
    /// Bytes of the queues for a slot, at most.
    pub(crate) const BYTES_PER_SLOT: usize = IntrusiveLists::<A>::BYTES_PER_SLOT;

    /// No tenants of at most `limit` flows, whose memory will be from `memory`.
    pub(crate) fn new_in(limit: usize, memory: A) -> Self {
        Self {
            indices: TrashMap::with_hasher_in(DefaultHashBuilder::new(), memory.clone()),
            accounts: Slab::new_in(memory.clone()),
            queues: IntrusiveLists::new_in(limit, memory),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.len() == 0
    }

    /// Whether there has been an account since the last [`shrink`](Self::shrink). Then all slots
    /// have queue links, whose memory is reserved.
    #[inline]
    pub(crate) fn has_queues(&self) -> bool {
        self.accounts.slot_count() > 0
    }

    #[inline]
    fn index(&self, tenant: Tenant) -> Option<u32> {
        if self.is_empty() { None } else { self.indices.get(&tenant.0).copied() }
    }

    #[inline]
    fn account(&mut self, tenant: Tenant) -> Option<(u32, &mut Account)> {
        let index = self.index(tenant)?;
        Some((index, self.accounts.get_mut(index)?))
    }

    /// Removes the share of a tenant.
    pub(crate) fn remove_share(&mut self, tenant: Tenant) {
        if let Some((index, account)) = self.account(tenant) {
            account.share = UNLIMITED;
            self.release_unused(tenant, index);
        }
    }

    /// Removes an account without a share and flows. So its queues are empty.
    #[inline]
    fn release_unused(&mut self, tenant: Tenant, index: u32) {
        let Account { share, flows, .. } = self.accounts[index];
        if share == UNLIMITED && flows == 0 {
            self.accounts.free(index);
            self.indices.remove(&tenant.0);
        }
    }

    /// Sets the share of a tenant of the flows in `slots` slots. Returns whether its account is
    /// new: then its flows have to be [counted](Self::count_in).
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. There is no such share then.
    pub(crate) fn set_share(
        &mut self,
        tenant: Tenant,
        share: usize,
        slots: u32,
    ) -> Result<bool, TryReserveError> {
        let share = share.min(UNLIMITED - 1);
        if let Some((_, account)) = self.account(tenant) {
            account.share = share;
            return Ok(false);
        }
        let lists = if self.accounts.needs_slot() { CLASSES } else { 0 };
        let is_reserved = self.accounts.try_reserve();
        let is_reserved = is_reserved && self.queues.try_reserve(lists, slots).is_ok();
        if !is_reserved {
            return Err(TryReserveError::memory(Layout::new::<Account>()));
        }
        let is_inserted = self.indices.try_insert(tenant.0, self.accounts.next_index());
        is_inserted.map_err(|refused| refused.reason)?;
        self.accounts.insert(Account { share, flows: 0, evictable: [0; CLASSES] });
        (0..lists).for_each(|_| _ = self.queues.add_list());
        Ok(true)
    }

    /// Returns the flows and the share of a tenant with an account.
    pub(crate) fn usage(&self, tenant: Tenant) -> Option<(usize, usize)> {
        let Account { flows, share, .. } = *self.accounts.get(self.index(tenant)?)?;
        Some((flows, share))
    }

    pub(crate) fn is_at_share(&self, tenant: Tenant) -> bool {
        self.usage(tenant).is_some_and(|(flows, share)| flows >= share)
    }

    /// Allocates memory for slots up to this one, so that [covering](Self::cover) it does not
    /// allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        if self.has_queues() { self.queues.try_reserve(0, slot + 1) } else { Ok(()) }
    }

    /// Allocates the queue links of a slot.
    pub(crate) fn cover(&mut self, slot: u32) {
        if self.has_queues() {
            self.queues.cover(slot);
        }
    }

    /// Counts a new flow of the tenant.
    pub(crate) fn count_in(&mut self, tenant: Tenant) {
        if let Some((_, account)) = self.account(tenant) {
            account.flows += 1;
        }
    }

    /// Counts a flow of the tenant that is removed, and not [evictable](Self::remove) any more.
    pub(crate) fn count_out(&mut self, tenant: Tenant) {
        if let Some((index, account)) = self.account(tenant) {
            account.flows -= 1;
            self.release_unused(tenant, index);
        }
    }

    /// Makes a flow of this class evictable, as the last one of its queue.
    pub(crate) fn insert(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some((index, account)) = self.account(tenant) {
            account.evictable[class as usize] += 1;
            self.queues.push_back(queue(index, class), slot);
        }
    }

    /// Makes a flow of this class unevictable.
    pub(crate) fn remove(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some((_, account)) = self.account(tenant) {
            account.evictable[class as usize] -= 1;
            self.queues.remove(slot);
        }
    }

    /// Accounts for a change of class of an evictable flow.
    pub(crate) fn change_class(&mut self, tenant: Tenant, slot: u32, before: Class, class: Class) {
        self.remove(tenant, slot, before);
        self.insert(tenant, slot, class);
    }

    /// Selects a victim of a tenant by the rules of [`ByClass`](crate::eviction::ByClass), with
    /// newcomers included.
    pub(crate) fn victim(
        &mut self,
        tenant: Tenant,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let (index, &mut Account { evictable, .. }) = self.account(tenant)?;
        if has_few_newcomers(evictable) {
            let unused = self.first_unused(queue(index, Class::Established), &mut stats);
            if unused.is_some() {
                return unused;
            }
        }
        let queue = queue(index, Class::ALL[lowest_rank(evictable)?]);
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

    /// An upper bound of the bytes that the account of another tenant allocates, without the queue
    /// links of slots.
    pub(crate) fn growth(&self) -> usize {
        let heads = CLASSES * size_of::<u64>();
        let accounts = if self.accounts.needs_slot() {
            // An array that is full doubles.
            2 * (self.accounts.slot_count() as usize).next_power_of_two().max(4)
        } else {
            0
        };
        map_growth::<u32, u32>(self.indices.allocation_size())
            + accounts * (size_of::<Slot<Account>>() + heads)
    }

    /// Releases the memory, if there are no accounts, for tenants of at most `limit` flows.
    pub(crate) fn shrink(&mut self, limit: usize) {
        if self.is_empty() {
            let memory = self.indices.allocator().clone();
            *self = Self::new_in(limit, memory);
        }
    }

    /// Checks the accounts, given the number of flows of all tenants that have one, and the tenant
    /// of the flow in a slot.
    pub(crate) fn validate(
        &self,
        flows: usize,
        tenant_of: impl Fn(u32) -> Tenant,
    ) -> Result<(), InvariantError> {
        let (accounts, tenants) = (self.accounts.len(), self.indices.len());
        ensure(accounts == tenants, || format!("{accounts} accounts of {tenants} tenants"))?;
        let mut counted = 0;
        for (tenant, index) in &self.indices {
            let Account { share, flows, evictable } = self.accounts[*index];
            counted += flows;
            ensure(share != UNLIMITED || flows > 0, || format!("tenant {tenant} is unused"))?;
            for class in Class::ALL {
                let mut queued = self.queues.iter(queue(*index, class));
                let is_own = queued.all(|slot| tenant_of(slot).0 == *tenant);
                ensure(is_own, || format!("a flow in a queue of tenant {tenant} is of another"))?;
                let queued = self.queues.iter(queue(*index, class)).count();
                let evictable = evictable[class as usize];
                ensure(queued == evictable, || format!("tenant {tenant}: {queued} are queued"))?;
            }
        }
        ensure(flows == counted, || format!("{counted} flows of tenants are counted of {flows}"))
    }

    pub(crate) fn allocation_size(&self) -> usize {
        self.indices.allocation_size()
            + self.accounts.allocation_size()
            + self.queues.allocation_size()
    }
}

/// Returns the queue of a class of the account with this index.
const fn queue(index: u32, class: Class) -> usize {
    index as usize * CLASSES + class as usize
}
