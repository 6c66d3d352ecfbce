//! The log of updates between two copies.
//!
//! ```text
//!     echo    ▕ 10.1/16 → b ▏ 10/8 removed ▏          applied to the active copy only
//!     queue   ▕ 10.2/16 → c c ▏ 10.1/16 removed ▏ …   applied to neither: one value for each copy
//!
//!     apply:  echo → spare;  queue → spare, and as the new echo
//! ```

use alloc::vec::Vec;
use std::collections::VecDeque;

use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::routes::RouteTable;

/// An update: an announced route with a value for each copy, or a withdrawn one.
pub(super) struct Update<A, V> {
    pub(super) prefix: Prefix<A>,
    pub(super) values: Option<[V; 2]>,
}

/// An update that one copy has not applied yet.
type Echo<A, V> = (Prefix<A>, Option<V>);

impl<A, V> Update<A, V> {
    pub(super) fn into_pair(self) -> Echo<A, V> {
        (self.prefix, self.values.map(|[_, value]| value))
    }

    /// Converts an announcement.
    pub(super) fn into_route(self) -> (Prefix<A>, V) {
        let (prefix, value) = self.into_pair();
        (prefix, value.expect("an announced route has a value"))
    }
}

/// Values whose destructors must not run under the lock.
pub(super) struct Garbage<A, V, M: Allocator + Clone> {
    values: Vec<V>,
    echo: VecDeque<Echo<A, V>>,
    queue: VecDeque<Update<A, V>>,
    pub(super) tables: Vec<RouteTable<A, V, M>>,
}

impl<A, V, M: Allocator + Clone> Garbage<A, V, M> {
    pub(super) fn new() -> Self {
        Self {
            values: Vec::new(),
            echo: VecDeque::new(),
            queue: VecDeque::new(),
            tables: Vec::new(),
        }
    }
}

/// The log between the copies. The right to change it implies that to change the spare copy.
pub(super) struct Log<A, V> {
    echo: VecDeque<Echo<A, V>>,
    queue: VecDeque<Update<A, V>>,
    /// The number of swaps.
    version: u64,
    /// Whether the spare copy is inconsistent. Echo and queue were emptied then.
    is_poisoned: bool,
}

impl<A, V> Log<A, V> {
    /// The capacity that an empty log keeps, in updates.
    const KEPT: usize = 256;

    pub(super) fn new() -> Self {
        Self { echo: VecDeque::new(), queue: VecDeque::new(), version: 0, is_poisoned: false }
    }

    pub(super) fn pending(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.echo.capacity() * size_of::<Echo<A, V>>()
            + self.queue.capacity() * size_of::<Update<A, V>>()
    }

    /// Returns the bytes of all updates.
    pub(super) fn bytes(&self) -> usize {
        self.echo.len() * size_of::<Echo<A, V>>() + self.queue.len() * size_of::<Update<A, V>>()
    }

    /// Checks whether `count` more updates are within the limit. If not, returns the bytes in use.
    ///
    /// If the spare copy is free, all updates are applied at once, and any number is admitted.
    pub(super) fn admit(&self, count: usize, is_free: bool, limit: usize) -> Result<(), usize> {
        let taken = self.bytes();
        let more = count.saturating_mul(size_of::<Update<A, V>>());
        if is_free || count == 0 || taken.saturating_add(more) <= limit {
            return Ok(());
        }
        Err(taken)
    }

    pub(super) fn extend(&mut self, updates: impl IntoIterator<Item = Update<A, V>>) {
        self.queue.extend(updates);
    }

    /// Returns the version of the active copy whose clone can replace a poisoned spare copy. There
    /// are no swaps until then.
    pub(super) fn poisoned(&self) -> Option<u64> {
        self.is_poisoned.then_some(self.version)
    }

    pub(super) fn spare_replaced(&mut self) {
        self.is_poisoned = false;
    }

    pub(super) fn swapped(&mut self) {
        self.version += 1;
    }

    /// Drops the updates that are not visible, and requires a clone of the active copy before the
    /// spare one is used again: after a panic in it, or when the active one was replaced.
    pub(super) fn roll_back<M: Allocator + Clone>(&mut self, garbage: &mut Garbage<A, V, M>) {
        self.is_poisoned = true;
        garbage.echo = core::mem::take(&mut self.echo);
        garbage.queue = core::mem::take(&mut self.queue);
    }
}

impl<A: Address, V> Log<A, V> {
    /// Applies all updates that the spare copy has missed. They are removed one at a time, so that
    /// if a method of an address panics, only the value of its update is dropped here.
    pub(super) fn apply_to<M: Allocator + Clone>(
        &mut self,
        spare: &mut RouteTable<A, V, M>,
        garbage: &mut Garbage<A, V, M>,
    ) {
        while let Some((prefix, value)) = self.echo.pop_front() {
            apply(spare, prefix, value, garbage);
        }
        while let Some(Update { prefix, values }) = self.queue.pop_front() {
            let [first, second] = values.map_or([None, None], |values| values.map(Some));
            self.echo.push_back((prefix, second));
            apply(spare, prefix, first, garbage);
        }
        if self.queue.capacity() > Self::KEPT {
            self.queue = VecDeque::new();
        }
        if self.echo.capacity() > Self::KEPT && self.echo.is_empty() {
            self.echo = VecDeque::new();
        }
    }
}

fn apply<A: Address, V, M: Allocator + Clone>(
    table: &mut RouteTable<A, V, M>,
    prefix: Prefix<A>,
    value: Option<V>,
    garbage: &mut Garbage<A, V, M>,
) {
    let old = match value {
        Some(value) => table.insert(prefix, value),
        None => table.remove(&prefix),
    };
    if core::mem::needs_drop::<V>() {
        garbage.values.extend(old);
    }
}
