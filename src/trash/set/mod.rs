//! `TrashSet`: the keys of a [`TrashMap`], as in `std::collections::HashSet`.
//!
//! ```text
//!     TrashSet<T>  =  TrashMap<T, ()>      the same table, growth, bursts and answer to floods
//! ```
//!
//! Operators return new sets: `&a | &b` is the union, `&a & &b` the intersection, `&a - &b` the
//! difference, `&a ^ &b` the symmetric difference. `a |= &b` and the others change a set. The
//! methods of these names return iterators.

// First, so that the documentation of the type begins with its methods.
mod methods;

mod entry;
mod operations;
mod traits;

use super::TrashMap;
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use operations::{Difference, Intersection, SymmetricDifference, Union};

/// A set of values without pauses: a [`TrashMap`] without values.
///
/// It has the methods of
/// [`std::collections::HashSet`](https://doc.rust-lang.org/std/collections/struct.HashSet.html) and
/// of [`TrashMap`]. They cost as much as the methods of the map:
///
/// | method | cost |
/// |---|---|
/// | `contains`, `get` | O(1): the cache lines of the tags and of the value |
/// | `insert`, `replace` | a lookup, and one step of at most two segments, about 1000 values |
/// | `remove`, `take` | a lookup; from a full group, the hashes of the displaced values of the next one |
/// | `contains_batch` | a lookup each, the cache misses of 32 overlapped |
/// | `union`, `intersection`, `difference` and the others of two sets | a lookup for each value of one of them |
/// | `iter`, `retain`, `extract_if`, `drain`, `clear`, `clone` | O(slots) |
/// | `len`, `capacity`, `allocation_size` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::TrashSet;
/// use std::net::Ipv4Addr;
///
/// let mut blocked = TrashSet::new();
/// assert!(blocked.insert(Ipv4Addr::new(192, 0, 2, 7)));
/// assert!(!blocked.insert(Ipv4Addr::new(192, 0, 2, 7))); // it is there
/// assert!(blocked.contains(&Ipv4Addr::new(192, 0, 2, 7)));
/// assert!(blocked.remove(&Ipv4Addr::new(192, 0, 2, 7)));
/// assert!(blocked.is_empty() && blocked.len() == 0);
/// ```
#[doc(alias("HashSet", "hash set"))]
pub struct TrashSet<T, S = DefaultHashBuilder, A: Allocator + Clone = Global> {
    map: TrashMap<T, (), S, A>,
}
