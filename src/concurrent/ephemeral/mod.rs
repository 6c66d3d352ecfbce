//! Ephemeral state for several threads: an [`EphemeralStore`] in shards.
//!
//! ```text
//!     hash of a tag ──▸ shard    0 │ lock │ index, ring │
//!                                1 │ lock │ index, ring │     in cache lines of its own
//!                                2 │ lock │ index, ring │
//!                                … up to 64
//! ```
//!
//! An operation holds the lock of one shard for as long as the operation of an [`EphemeralStore`]
//! takes: one or two cache misses. Threads wait for each other only if their tags are in one shard.
//! There are no pins, no garbage and no reclamation: values are copied, or used under the lock.
//!
//! # Guarantees
//!
//! - **E1** Operations on a tag are linearizable: each takes effect at a moment between its call
//!   and its return.
//! - **E2** A tag has at most one live binding. Of threads that create one at the same time,
//!   exactly one creates it, and the others find it.
//! - **E3** No binding is found one lifetime after its creation or later, in the time that callers
//!   pass. A shard replaces an earlier timestamp by that of its last creation, removal or cleaning,
//!   also a refused creation or a removal that found nothing: if the clocks of threads differ by
//!   `d`, a binding lives for at least a lifetime less `d`, and at most a lifetime plus `d`. Shards
//!   have times of their own; a timestamp far in the future stops that of its shard until then.
//! - **E4** A creation is refused only if the shard of its tag is full of live bindings, or waits
//!   for the slots of [removed](crate::ephemeral#removal) ones: they are not reused in the same
//!   tick, and one that was removed later than 3/16 of a lifetime after its creation only when its
//!   lifetime has ended. Shards have slots to spare: with hashes that are random, `capacity` live
//!   bindings have room, but for a chance of two in a million.
//! - **E5** A panic of a closure or of a method of a tag leaves a store that works.
//!
//! Closures, and `Clone` and `Drop` of tags and values, run under the lock of a shard. They must
//! not write to a concurrent structure of this crate, nor use any `ConcurrentStore`, whose reads
//! take locks, too: that panics, as it could deadlock. Nor should they pin, as that runs
//! destructors of garbage now and then: pin before the call, and read with that guard.

// First, so that the documentation of the type begins with its methods.
mod methods;

mod hashed;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crate::concurrent::lock::Lock;
use crate::ephemeral::EphemeralStore;
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};

/// The minimum number of bindings of a shard, unless there is one shard only.
const MIN_PER_SHARD: usize = 64;

/// The store of a shard. It receives hashes.
type ShardStore<T, V, A> = EphemeralStore<T, V, (), A>;

/// A shard. Aligned to two cache lines, as CPUs prefetch them in pairs.
#[repr(align(128))]
struct Shard<T, V, A: Allocator + Clone>(Lock<ShardStore<T, V, A>>);

/// A bounded concurrent table of bindings that live for one lifetime: an [`EphemeralStore`] in
/// shards.
///
/// The [module](self) has the guarantees.
///
/// | method | cost |
/// |---|---|
/// | `get`, `update`, `insert_new`, `get_or_insert_with`, `remove` | as in an [`EphemeralStore`], under the lock of one shard of up to 64 |
/// | `clean` | as there, in each shard in turn |
/// | `len`, `live` | each shard in turn; after removals `live` is O(capacity) |
/// | `iter`, `retain`, `clear`, `new` | O(capacity), one lock at a time |
/// | `capacity`, `lifetime` | O(1) |
///
/// # Panics
///
/// All methods that take a lock panic if they are called under a lock of a concurrent structure: by
/// closures, and by `Clone` and `Drop` of tags and values.
///
/// # Example
///
/// Open handshakes, on any number of threads.
///
/// ```
/// use flowtable::Timestamp;
/// use flowtable::concurrent::ConcurrentStore;
/// use std::time::Duration;
///
/// let open: ConcurrentStore<(u32, u16), u32> =
///     ConcurrentStore::new(10_000, Duration::from_secs(60))?;
/// let at = Timestamp::from_secs;
/// std::thread::scope(|threads| {
///     for thread in 0..4 {
///         let open = &open;
///         threads.spawn(move || {
///             for port in 0..100 {
///                 // The first SYN creates the state, and repeated ones find it.
///                 let syns = |syns: &mut u32, _| *syns += 1;
///                 open.get_or_insert_with((thread % 2, port), at(1), || 0, syns).unwrap();
///             }
///         });
///     }
/// });
/// assert_eq!(open.get(&(0, 80), at(2)), Some(2));
/// assert_eq!(open.remove(&(0, 80), at(2)), Some(2)); // the handshake is complete
/// assert_eq!((open.get(&(0, 80), at(2)), open.live(at(2))), (None, 199));
/// assert_eq!(open.live(at(61)), 0);
/// # Ok::<(), flowtable::ephemeral::StoreError>(())
/// ```
#[doc(alias("nonce", "syn cache", "syn flood", "time to live"))]
pub struct ConcurrentStore<T = u64, V = u64, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    hasher: S,
    lifetime: Duration,
    /// A power of two.
    shards: Box<[Shard<T, V, A>]>,
}

impl<T, V, S, A: Allocator + Clone> fmt::Debug for ConcurrentStore<T, V, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentStore").field("len", &self.len()).finish_non_exhaustive()
    }
}
