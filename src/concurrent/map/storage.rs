//! The storage of a map: ids of entries, twelve to a cache line.
//!
//! ```text
//!     mixed hash   ┌────────────────┬────────┬───── … ──────┬────────┐
//!                  └────────────────┴────────┴───── … ──────┴────────┘
//!                   note: 16 bits     tag: 8                 shard: 6
//!                   segment
//!                   └──────── home ────────┘
//! ```
//!
//! The note and the tag of a slot are all that a copy of its segment requires of the mixed hash: so
//! no key is hashed, and no entry read. The home depends on all of these bits: those that a segment
//! shares do not matter, as they are multiplied. Above some 30 million entries, fewer than the 8
//! bits of a tag are independent of segment and home, and a few percent more keys are compared.

use super::garbage::Batch;
use super::store::IdAllocator;
use crate::concurrent::engine::storage::{Entries, Storage};
use crate::concurrent::engine::{Sizes, Slot};
use crate::concurrent::sync::AtomicU32;
use crate::table::tags::{Group as Tags, Mask, tag};

/// Ids of entries.
pub(in crate::concurrent) struct Ids;

/// The state of a shard that its lock protects.
pub(in crate::concurrent) struct State {
    pub(super) batch: Batch,
    pub(super) ids: IdAllocator,
}

/// Puts the bits of the tag in the highest byte.
#[inline]
fn tag_first(mixed: u64) -> u64 {
    mixed << 16
}

/// The hash of a map is mixed already.
impl Storage for Ids {
    type Atom = AtomicU32;
    type State = State;

    const HEADER: usize = 2;
    const SLOTS: usize = 12;
    const SIZES: Sizes = Sizes::PowersOfTwo;
    const KEY: usize = 0;
    const VALUE: usize = 1;
    const REUSES: bool = true;

    #[inline]
    fn mix(mixed: u64) -> u64 {
        mixed
    }

    // The shift of 32 bits that yields a home: so a lookup needs no number of groups.
    fn code(groups: usize) -> usize {
        32 - groups.ilog2() as usize
    }

    fn groups(code: usize) -> usize {
        1 << (32 - code)
    }

    #[inline]
    fn home(mixed: u64, code: usize) -> usize {
        // All but the lowest bit of the tag, which is set if the tag would be zero.
        let spread = ((mixed >> 41) as u32).wrapping_mul(0x9e37_79b9);
        u64::from(spread).wrapping_shr(code as u32) as usize
    }

    fn tag(mixed: u64, _slot: usize) -> u8 {
        tag(tag_first(mixed))
    }

    #[inline]
    fn matches(header: [u64; 2], mixed: u64) -> Mask {
        Tags::of_words(header).matches_hash(tag_first(mixed))
    }
}

impl Entries for Ids {
    type Value = u32;

    #[inline]
    #[allow(unsafe_code)]
    unsafe fn value(load: impl Fn(usize) -> u64) -> u32 {
        load(0) as u32
    }
}

/// Returns the bits of the mixed hash of an entry that select its home and its tag, and its segment
/// among those of its shard.
pub(super) fn hash_of(slot: Slot<'_, Ids>) -> u64 {
    u64::from(slot.note()) << 48 | u64::from(slot.tag()) << 40
}
