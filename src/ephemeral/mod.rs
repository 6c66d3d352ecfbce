//! Ephemeral state: bindings of tags to values, each of which lives for exactly one lifetime.
//!
//! A packet may leave a value under a tag that it has chosen, and later packets find it; a lifetime after it was
//! made it is gone, whatever was done with it. Nobody has to free anything, and nobody can keep anything: state is
//! freed as fast as it is made, so a router can let strangers make it.
//!
//! ```text
//!     heads                      ring, oldest first
//!     ┌──────────┬────┐          ╭──────┬──────┬──────┬──────┬──────┬──────┬──────┬───────────────╮
//!     │ ···1···· │ 44 │          │ 40   │ 41   │ 42   │ 43   │ 44   │ 45   │ 46   │ room          │
//!     ├──────────┼────┤          │ tag  │      │      │      │      │      │      │               │
//!     │ ·1·····1 │ 46 │ ───────────────────────────────────────────────────▶ tag  │               │
//!     ├──────────┼────┤          │      │      │ tag ◀───────────────────── 42   │ link          │
//!     │ ····1··· │ 17 │ gone     │      │ ◀─── 41   │      │      │      │      │               │
//!     └──────────┴────┘          ╰──────┴──────┴──────┴──────┴──────┴──────┴──────┴───────────────╯
//!      what may    newest          the expired │ the living: find looks at these only ▲ next
//!      be there
//! ```
//!
//! Each binding has a number, one more than the one before. A head has the number of the newest binding of its
//! chain, a link that of the next older one. As all live equally long, they expire in the order of their
//! numbers, and so they leave the ring: from its front, while new ones come at its end.
//!
//! The chains are never cut. A link to a binding that has expired leads to a number that the living do not have, and so
//! does the head of a chain of which all have: the chain ends there. Hence to reclaim a binding takes nothing
//! but to take it from the ring: no chain is walked, no hash is computed, no head is touched.
//!
//! A head has a bit for each tag of its chain, one of 32. A tag whose bit is not there is not in the chain, and no
//! entry is looked at.
//!
//! # What holds
//!
//! - Numbers in the ring follow each other; those of a chain fall from its head on.
//! - Expiry never falls along the ring: the expired are at its front, the living behind them.
//! - Whoever lives is on the chain of the head that the hash of its tag says, all before it in the chain live, and the
//!   head has its bit.
//! - A tag has one living binding at most.
//! - No binding is found a lifetime after it was made, or later, whether it is reclaimed or not. None is lost
//!   before but for the grain of time: 2⁻³⁰ of a lifetime, if that is longer than four seconds.
//!
//! Numbers in heads and links have 32 bits. After four billion bindings an old number may be taken for that of a
//! binding of another chain: its tag is not the one that is looked for, and a chain ends where numbers do not
//! fall. It costs a few steps, and no answer is wrong.
//!
//! # Price
//!
//! 24 bytes for a tag and a value of eight bytes each, and eight for each head. To find takes a head and the
//! newer ones of the chain: `1 + f / 2h` entries for a tag that is there, where `f` is how full the ring is and
//! `h` how many heads there are for an entry. One that is not there takes a head, and in a full store with
//! `h` = 2 looks at an entry once in fifty times. To create takes the next place in the ring, where the processor expects
//! it, besides: one line of memory that it has to wait for, where a hash table and a queue have four.
//!
//! With each creation two expired bindings are reclaimed: no thread is needed, nobody waits, and no room is
//! missing that an expired one has. Values are dropped when they are reclaimed, so a store in which nothing is created
//! keeps the values of the expired until [`clean`](EphemeralStore::clean) is called, or until it is dropped.
//!
//! # Paper
//!
//! Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services* (2002), sections 6
//! and 7. Different here:
//!
//! - Their cleaner unlinks each binding from its chain; here nothing is unlinked.
//! - Their cleaner is a thread that runs every tenth of a lifetime, and is late by that much: see
//!   [`sweep`](EphemeralStore::sweep). Here whoever looks for a binding sees that it has expired, and creation cleans.
//! - New bindings are at the head of their chain, so that nobody walks over the expired.
//! - Heads say what may be in their chains; theirs are half as long.

mod burst;
mod check;
pub mod esp;
mod find;
mod heads;
mod lifetime;
mod ring;
mod store;

use core::error::Error;
use core::fmt;

pub use check::Broken;
pub use find::Bound;
pub use heads::Heads;
pub use store::{Binding, EphemeralStore};

/// There is no room: as many bindings as there is room for are alive. Nothing was created.
///
/// There is room again when the oldest one expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all bindings that there is room for are alive")
    }
}

impl Error for Full {}

/// Why a store is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// It would have no bindings.
    NoCapacity,
    /// Its bindings would never live.
    NoLifetime,
    /// It would have more bindings than there are numbers or addresses for.
    TooLarge,
    /// The memory cannot be had.
    NoMemory,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "a store needs room for one binding at least",
            Self::NoLifetime => "a lifetime must be longer than nothing",
            Self::TooLarge => "so many bindings are more than a store can have",
            Self::NoMemory => "the memory cannot be had",
        })
    }
}

impl Error for StoreError {}
