//! Who leaves a full cache: policies, apart from the cache that asks them.
//!
//! ```text
//!              enter, touch, rerank, leave
//!     cache  ─────────────────────────────▸  policy         knows numbers: slots and ranks
//!            ◂──────────── look(slot) ─────                 asks how a slot stands: used? when last?
//!            ─────────── victim? ─────────▸
//!            ◂────────────── slot ─────────
//! ```
//!
//! A policy never sees a key or a value. The cache numbers its entries with small numbers, the slots,
//! and says what happens to them; the policy answers one question, [`victim`](Eviction::victim). What
//! a policy wants to know only then, whether an entry was used and when last, it asks only then: so a
//! look-up that hits writes nothing for most policies, as the cache notes the time of last use anyway.
//!
//! | policy | gives up | a hit costs | a victim costs |
//! |---|---|---|---|
//! | [`ByClass`] | the lowest rank; in it, what was not used since it was looked at last | nothing | 16 looks at most |
//! | [`SecondChance`] | what was not used since it was looked at last | nothing | 8 looks at most |
//! | [`Lru`] | what was used longest ago, exactly | 4 links are written | nothing |
//! | [`Random`] | any | nothing | a random number |
//! | [`Passive`] | of the next four the one that was used longest ago | nothing | 4 looks |
//!
//! What holds of each: all operations are O(1), amortised over slots without gaps; memory is 8 bytes
//! for each slot up to the greatest one (up to 20 for [`ByClass`]), allocated by 1024 slots and given back with the policy; growth
//! moves nothing; slots that are not in it do no harm.
//!
//! Papers: Olsson and Nilsson, *TRASH* (2006), section 4, for [`Passive`]; Corbató, *A paging experiment with the
//! Multics system* (1968), for [`SecondChance`].

use crate::raw::intrusive_list::IntrusiveLists;
use crate::timestamp::Timestamp;

mod by_class;
mod lru;
mod passive;
mod random;
mod rings;
mod second_chance;

pub use by_class::ByClass;
pub(crate) use by_class::{has_few_newcomers, turn};
pub use lru::Lru;
pub use passive::{GcError, Passive, PassiveGc};
pub use random::Random;
pub use second_chance::SecondChance;

/// How an entry stands when a policy looks at it.
///
/// # Example
///
/// ```
/// use flowtable::eviction::Standing;
/// use flowtable::Timestamp;
///
/// let silent = Standing { used: false, last_use: Timestamp::from_secs(3) };
/// assert!(silent.last_use < Timestamp::from_secs(4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it was used since it was looked at last, or since it came.
    pub used: bool,
    /// When it was used last.
    pub last_use: Timestamp,
}

/// Who leaves a full cache. Slots are small numbers that the cache gives its entries.
///
/// The cache says when an entry comes, is used and leaves. An entry that must not leave it takes
/// out with [`leave`](Self::leave), and puts in again when it may.
///
/// # Example
///
/// A policy of one's own: the newest leaves first.
///
/// ```
/// use flowtable::eviction::{Eviction, Standing};
///
/// #[derive(Default)]
/// struct NewestFirst(Vec<u32>);
///
/// impl Eviction for NewestFirst {
///     fn enter(&mut self, slot: u32, _rank: u8) {
///         self.0.push(slot);
///     }
///     fn leave(&mut self, slot: u32) {
///         self.0.retain(|&other| other != slot);
///     }
///     fn victim(&mut self, _look: impl FnMut(u32) -> Standing) -> Option<u32> {
///         self.0.last().copied()
///     }
///     fn allocation_size(&self) -> usize {
///         self.0.capacity() * size_of::<u32>()
///     }
/// }
///
/// let mut policy = NewestFirst::default();
/// [7, 8].into_iter().for_each(|slot| policy.enter(slot, 0));
/// assert_eq!(policy.victim(|_| Standing::default()), Some(8));
/// policy.leave(8);
/// assert_eq!(policy.victim(|_| Standing::default()), Some(7));
/// ```
pub trait Eviction {
    /// An entry came, at a slot where there is none. Rank 0 is given up first.
    ///
    /// The policies of this crate panic if the slot is 2^30 - 1 or more.
    fn enter(&mut self, slot: u32, rank: u8);

    /// The entry at `slot` was used.
    #[inline]
    fn touch(&mut self, slot: u32) {
        _ = slot;
    }

    /// The entry at `slot` has this rank from now on.
    #[inline]
    fn rerank(&mut self, slot: u32, rank: u8) {
        _ = (slot, rank);
    }

    /// The entry at `slot` left, for whatever reason: also the victim's.
    fn leave(&mut self, slot: u32);

    /// Whether an entry should leave for the next one that comes, although there is room. The cache
    /// asks once for each that comes, before it enters; `len` entries are there. If so, it asks for
    /// a victim; if there is none, the entry comes all the same.
    #[inline]
    fn is_due(&mut self, len: usize) -> bool {
        _ = len;
        false
    }

    /// The entry that leaves next, or `None` if the policy has none. It stays until the cache says
    /// that it [left](Self::leave): until then the next victim may be the same.
    ///
    /// Calls `look` for a bounded number of slots, of entries that are there. `look` takes the mark
    /// of use away: the next look at a slot says whether it was used since.
    fn victim(&mut self, look: impl FnMut(u32) -> Standing) -> Option<u32>;

    /// The slots at which the policy will look for the next victims, the first one first, as far as it can
    /// tell: the cache fetches their memory ahead. Fills `slots` from the front and returns how many
    /// they are.
    #[inline]
    fn upcoming(&self, slots: &mut [u32]) -> usize {
        _ = slots;
        0
    }

    /// Bytes allocated. O(1).
    fn allocation_size(&self) -> usize;
}

/// The first slots of a list.
fn first_of(lists: &IntrusiveLists, list: usize, slots: &mut [u32]) -> usize {
    let firsts = slots.iter_mut().zip(lists.iter(list));
    firsts.map(|(place, slot)| *place = slot).count()
}
