//! Ephemeral state: bindings of tags to values, each of which lives for one lifetime at most.
//!
//! A packet stores a value under a tag of its choice, and later packets look it up. One lifetime
//! after its creation the binding expires, whatever was done with it, unless it is
//! [removed](EphemeralStore::remove) before. No user needs to free a binding, and no user can
//! extend its life: state is reclaimed as fast as it is created, so a router can let untrusted
//! senders create it.
//!
//! ```text
//!     heads                      ring, oldest first
//!     ┌──────────┬────┐          ╭──────┬──────┬──────┬──────┬──────┬──────┬──────┬───────────╮
//!     │ ·1··1··· │ 44 │          │ 40   │ 41   │ 42   │ 43   │ 44   │ 45   │ 46   │ vacant    │
//!     ├──────────┼────┤          │ tag  │      │      │      │      │      │      │           │
//!     │ 11·1···1 │ 46 │ ───────────────────────────────────────────────────▶ tag  │           │
//!     ├──────────┼────┤          │      │      │ tag ◀───────────────────── 42   │ link      │
//!     │ ··1·1··· │ 17 │ expired  │      │ ◀─── 41   │      │      │      │      │           │
//!     └──────────┴────┘          ╰──────┴──────┴──────┴──────┴──────┴──────┴──────┴───────────╯
//!      filter     newest          expired       │ live: `find` reads these only   ▲ next
//!      bits
//! ```
//!
//! Bindings have consecutive sequence numbers. A head holds the sequence number of the newest
//! binding of its chain, a link that of the next older one. As all bindings live equally long, they
//! expire in the order of their sequence numbers: they are removed at the front of the ring, and
//! new ones are appended at its end.
//!
//! Expiry unlinks nothing. A link to an expired binding holds a sequence number outside of the
//! live range, and so does the head of a chain whose bindings have all expired: the chain ends
//! there. Hence reclaiming a binding only removes it from the ring: no chain is walked, no hash is
//! computed, no head is written.
//!
//! A head has a filter of 32 bits, with two bits for each tag of its chain. If one of those of a
//! tag is missing, the tag is not in the chain, and no entry is read.
//!
//! By default, heads are in pairs, and a new binding joins the chain of the two whose newest
//! binding is older: chains of two live bindings are rare ([`Heads::Paired`]). A lookup tests both
//! filters, which are in one cache line, and walks one chain.
//!
//! # Removal
//!
//! A removal takes the binding out of its chain. What remains in the ring is a vacant slot with the
//! expiry time, and no link leads to it. The next creation takes the slot, and its sequence number,
//! for a binding that expires later than those around it:
//!
//! ```text
//!     slot        40     41     42     43     44           expires one after the other:
//!     created at  10.0   10.1   10.2   10.3   10.4
//!     removed            │      vacant                     42: a handshake is complete
//!     created            │      10.45                      42: another one
//!     expires at  20.0   20.1   20.45  20.3   20.4         43 and 44 wait for 42
//! ```
//!
//! So an expired binding waits for an older slot: it is not found any more, but its slot is not
//! free. To bound that, a slot is reused for three sixteenths of a lifetime after it was appended
//! to the ring at most, and for one sixteenth at least. Expired bindings are found from the front
//! of the ring, by a binary search with that tolerance: the longest wait is six sixteenths.
//! What is removed later leaves a slot that is vacant until its lifetime ends, or until it is at
//! the front. With `n` handshakes open at a time, each of which completes within a sixteenth of a
//! lifetime, and any number of them one after the other, the ring has up to about `16 n` slots for
//! them.
//!
//! # Invariants
//!
//! - Sequence numbers in the ring are consecutive. Along a chain they decrease, except for those
//!   that are reused.
//! - Along the ring, expiry times never decrease by more than three sixteenths of a lifetime, and
//!   not at all if no slot among the live ones is reused: the expired bindings are at its front,
//!   the live ones follow.
//! - A live binding is on a chain selected by the hash of its tag, all bindings before it in the
//!   chain are live and younger, and its bits are in the filter of the head.
//! - A tag has at most one live binding.
//! - No binding is found one lifetime after its creation or later, whether it is reclaimed or not.
//!   None expires earlier, except for the granularity of time: 2⁻²⁸ of a lifetime that exceeds one
//!   second.
//! - A vacant slot is on no chain; it is in one list of slots to reuse, or in none.
//!
//! Heads and links store 32 bits of a sequence number. After four billion bindings a stale one may
//! match a binding of another chain: its tag differs from the requested one, and the walk stops
//! after as many steps as there are bindings. That costs time, and no answer is wrong.
//!
//! # Cost
//!
//! A tag and a value of eight bytes each take 24 bytes, a head takes eight. Finding a tag reads its
//! heads and the newer entries of its chain: in a full store 1.12 entries for a present tag.
//! Without pairs, that is `1 + f / 2h` entries, where `f` is the load of the ring and `h` the
//! number of heads per entry. An absent tag costs the heads; in a full store it reads an entry once
//! in a hundred lookups. Creation also writes the next slot of the ring, which the hardware
//! prefetcher expects: one cache miss in all, where a hash table with a queue has four. A removal
//! costs as much as finding the tag.
//!
//! Each creation reclaims two expired bindings: there is no cleaner thread, no pause, and no
//! capacity is lost to expired bindings. Values are dropped when they are reclaimed, so a store
//! without creations keeps expired values until [`clean`](EphemeralStore::clean) is called or the
//! store is dropped.
//!
//! # Paper
//!
//! Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services*
//! (2002), sections 6 and 8. Differences:
//!
//! - The paper's cleaner unlinks each binding from its chain; here only a removal does.
//! - The paper has no removal: there every binding lives for exactly one lifetime.
//! - The paper's cleaner is a thread that runs every tenth of a lifetime, and is late by that much:
//!   see [`sweep`](EphemeralStore::sweep). Here a lookup checks the expiry, and creation reclaims.
//! - New bindings are inserted at the head of their chain, so that lookups never walk expired ones.
//! - Heads contain a filter; the paper's heads are half as large, and a tag has one chain.

// In this order rustdoc lists the methods of the store.
mod store;

mod find;
mod remove;

mod burst;
mod check;
pub mod esp;
mod heads;
mod lifetime;
mod ring;
mod vacancies;

use core::error::Error;
use core::fmt;

use crate::memory::ArrayError;
pub use find::Bound;
pub use heads::Heads;
pub use store::{Binding, EphemeralStore};

/// The error of a creation in a full store: the tag. Nothing was created.
///
/// The next creation succeeds when the oldest binding has expired; after
/// [removals](self#removal), up to three sixteenths of a lifetime later. A binding that is created
/// and removed in one tick of the store leaves its slot to creations of later ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T> {
    /// The tag, returned.
    pub refused: T,
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store is full of live bindings")
    }
}

impl<T: fmt::Debug> Error for Full<T> {}

/// The error of the constructors of [`EphemeralStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The capacity is zero.
    NoCapacity,
    /// The lifetime is zero.
    NoLifetime,
    /// The capacity exceeds the range of sequence numbers or addresses.
    TooLarge,
    /// The allocation failed.
    NoMemory,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "the capacity of a store must be at least one binding",
            Self::NoLifetime => "the lifetime must be greater than zero",
            Self::TooLarge => "the capacity exceeds the maximum of a store",
            Self::NoMemory => "the memory allocation failed",
        })
    }
}

impl Error for StoreError {}

impl From<ArrayError> for StoreError {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::TooLarge => Self::TooLarge,
            ArrayError::NoMemory => Self::NoMemory,
        }
    }
}
