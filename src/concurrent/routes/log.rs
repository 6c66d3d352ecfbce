//! Updates between two copies.
//!
//! ```text
//!     echo    ▕ 10.1/16 → b ▏ 10/8 gone ▏               the active copy has had them, the spare one not
//!     queue   ▕ 10.2/16 → c c ▏ 10.1/16 gone ▏ …        neither has: one value for each copy
//!
//!     play:   echo → spare;  queue → spare, and as the new echo
//! ```

use alloc::vec::Vec;
use std::collections::VecDeque;

use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;

/// A route that comes, with a value for each copy; or one that goes.
pub(super) struct Update<A, V> {
    pub(super) prefix: Prefix<A>,
    pub(super) values: Option<[V; 2]>,
}

/// What a copy is still to get.
type Echo<A, V> = (Prefix<A>, Option<V>);

impl<A, V> Update<A, V> {
    pub(super) fn into_pair(self) -> Echo<A, V> {
        (self.prefix, self.values.map(|[_, value]| value))
    }

    /// Of one that comes.
    pub(super) fn into_route(self) -> (Prefix<A>, V) {
        let (prefix, value) = self.into_pair();
        (prefix, value.expect("a route that comes has a value"))
    }
}

/// What may run code of its values when it is dropped, and so is not dropped under the lock.
pub(super) struct Garbage<A, V> {
    values: Vec<V>,
    echo: VecDeque<Echo<A, V>>,
    queue: VecDeque<Update<A, V>>,
    pub(super) tables: Vec<RouteTable<A, V>>,
}

impl<A, V> Garbage<A, V> {
    pub(super) fn new() -> Self {
        Self {
            values: Vec::new(),
            echo: VecDeque::new(),
            queue: VecDeque::new(),
            tables: Vec::new(),
        }
    }
}

/// What is between the copies. Who may change it may change the spare copy.
pub(super) struct Log<A, V> {
    echo: VecDeque<Echo<A, V>>,
    queue: VecDeque<Update<A, V>>,
    /// How often the copies have been swapped.
    version: u64,
    /// Whether the spare copy is good for nothing. Echo and queue have been empty then.
    is_torn: bool,
}

impl<A, V> Log<A, V> {
    /// Updates for which memory is kept when there are none.
    const KEPT: usize = 256;

    pub(super) fn new() -> Self {
        Self { echo: VecDeque::new(), queue: VecDeque::new(), version: 0, is_torn: false }
    }

    pub(super) fn pending(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.echo.capacity() * size_of::<Echo<A, V>>()
            + self.queue.capacity() * size_of::<Update<A, V>>()
    }

    /// Whether so many more may come. If not, the bytes that are taken.
    ///
    /// Those of the echo are not if the spare copy is free, since it gets them first of all; and a queued
    /// update takes less as an echo.
    pub(super) fn admit(&self, count: usize, is_free: bool, limit: usize) -> Result<(), usize> {
        let echo = if is_free { 0 } else { self.echo.len() * size_of::<Echo<A, V>>() };
        let taken = echo + self.queue.len() * size_of::<Update<A, V>>();
        let more = count.saturating_mul(size_of::<Update<A, V>>());
        if count == 0 || taken.saturating_add(more) <= limit { Ok(()) } else { Err(taken) }
    }

    pub(super) fn extend(&mut self, updates: impl IntoIterator<Item = Update<A, V>>) {
        self.queue.extend(updates);
    }

    /// The version of which a clone can replace the spare copy, if that is good for nothing. There are no
    /// swaps until then.
    pub(super) fn torn(&self) -> Option<u64> {
        self.is_torn.then_some(self.version)
    }

    pub(super) fn mended(&mut self) {
        self.is_torn = false;
    }

    pub(super) fn swapped(&mut self) {
        self.version += 1;
    }

    /// Something has panicked in the spare copy: forgets what readers have not seen.
    pub(super) fn roll_back(&mut self, garbage: &mut Garbage<A, V>) {
        self.is_torn = true;
        garbage.echo = core::mem::take(&mut self.echo);
        garbage.queue = core::mem::take(&mut self.queue);
    }
}

impl<A: Address, V> Log<A, V> {
    /// All updates that the spare copy has not had. One at a time is taken out, so that if a method of an
    /// address panics no value is dropped here but the one it was about.
    pub(super) fn play(&mut self, spare: &mut RouteTable<A, V>, garbage: &mut Garbage<A, V>) {
        while let Some((prefix, value)) = self.echo.pop_front() {
            put(spare, prefix, value, garbage);
        }
        while let Some(Update { prefix, values }) = self.queue.pop_front() {
            let [first, second] = values.map_or([None, None], |values| values.map(Some));
            self.echo.push_back((prefix, second));
            put(spare, prefix, first, garbage);
        }
        if self.queue.capacity() > Self::KEPT {
            self.queue = VecDeque::new();
        }
        if self.echo.capacity() > Self::KEPT && self.echo.is_empty() {
            self.echo = VecDeque::new();
        }
    }
}

fn put<A: Address, V>(
    table: &mut RouteTable<A, V>,
    prefix: Prefix<A>,
    value: Option<V>,
    garbage: &mut Garbage<A, V>,
) {
    let old = match value {
        Some(value) => table.insert(prefix, value),
        None => table.remove(&prefix),
    };
    if core::mem::needs_drop::<V>() {
        garbage.values.extend(old);
    }
}
