//! Tenants: their flows are counted, and queued by class, so that each loses its own.

use alloc::vec::Vec;

use crate::evict::Standing;
use crate::life::{Class, Tenant};
use crate::lists::Lists;
use crate::trash::TrashMap;

const CLASSES: usize = Class::ALL.len();

/// Most flows of a tenant that are passed over for one that leaves.
const LOOKS: usize = 8;

/// What is known of a tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    flows: usize,
    share: usize,
}

/// The tenants, but for nobody.
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    numbers: TrashMap<u16, u32>,
    accounts: Vec<Account>,
    /// For each account the flows of each class that may be evicted.
    queues: Lists,
}

impl Tenants {
    /// Bytes that an account may take.
    pub(super) const ACCOUNT: usize = 256;

    /// Bytes that may be allocated at once for a tenant that has no account yet.
    pub(super) fn growth(&self, tenant: Tenant) -> usize {
        if tenant == Tenant::default() || self.known(tenant).is_some() {
            return 0;
        }
        let lists = CLASSES * size_of::<u64>();
        let vectors = self.accounts.capacity().max(4) * (size_of::<Account>() + lists);
        2 * vectors + 3 * self.numbers.allocation_size() + 4096
    }

    pub(super) fn new() -> Self {
        Self { numbers: TrashMap::new(), accounts: Vec::new(), queues: Lists::new(0) }
    }

    fn known(&self, tenant: Tenant) -> Option<usize> {
        if tenant == Tenant::default() {
            return None;
        }
        self.numbers.get(&tenant.0).map(|number| *number as usize)
    }

    /// Its account, opened if there is none. There are no more than tenants.
    fn account(&mut self, tenant: Tenant) -> Option<usize> {
        if tenant == Tenant::default() {
            return None;
        }
        self.known(tenant).or_else(|| {
            let number = self.accounts.len();
            self.accounts.push(Account { flows: 0, share: usize::MAX });
            (0..CLASSES).for_each(|_| _ = self.queues.add_list());
            self.numbers.insert(tenant.0, number as u32);
            Some(number)
        })
    }

    pub(super) fn set_share(&mut self, tenant: Tenant, share: usize) {
        if let Some(number) = self.account(tenant) {
            self.accounts[number].share = share;
        }
    }

    /// The flows that a tenant has, and may have.
    pub(super) fn standing(&self, tenant: Tenant) -> Option<(usize, usize)> {
        let Account { flows, share } = self.accounts[self.known(tenant)?];
        Some((flows, share))
    }

    pub(super) fn is_at_share(&self, tenant: Tenant) -> bool {
        self.standing(tenant).is_some_and(|(flows, share)| flows >= share)
    }

    /// A flow of the tenant came.
    pub(super) fn count_in(&mut self, tenant: Tenant) {
        if let Some(number) = self.account(tenant) {
            self.accounts[number].flows += 1;
        }
    }

    /// A flow of the tenant left.
    pub(super) fn count_out(&mut self, tenant: Tenant) {
        if let Some(number) = self.known(tenant) {
            self.accounts[number].flows -= 1;
        }
    }

    /// The flow may be evicted, as one of this class; the last of them.
    pub(super) fn enter(&mut self, tenant: Tenant, slot: u32, class: Class) {
        if let Some(number) = self.known(tenant) {
            self.queues.push_back(number * CLASSES + class as usize, slot);
        }
    }

    /// The flow may not be evicted.
    pub(super) fn leave(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    /// Which of its flows a tenant loses: the lowest class first, with a second chance.
    pub(super) fn victim(
        &mut self,
        tenant: Tenant,
        mut look: impl FnMut(u32) -> Standing,
    ) -> Option<u32> {
        let first = self.known(tenant)? * CLASSES;
        let queue = (first..first + CLASSES).find(|queue| !self.queues.is_empty(*queue))?;
        // Rings are for few large crowds; these are many small ones.
        for _ in 0..LOOKS {
            let slot = self.queues.front(queue)?;
            if !look(slot).used {
                break;
            }
            self.queues.move_to_back(queue, slot);
        }
        self.queues.front(queue)
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.numbers.allocation_size()
            + self.accounts.capacity() * size_of::<Account>()
            + self.queues.allocation_size()
    }
}
