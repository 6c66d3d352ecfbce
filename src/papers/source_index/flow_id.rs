//! Flow identifiers that are not reused after a crash.

use super::assign::RandomIndices;
use crate::hash::source_index::SourceIndex;

/// A flow identifier: its source, a sequence number, an incarnation and an index.
///
/// ```text
///     │ source │ number │    unique among the flows of all sources that have not crashed
///     │ incarnation │        random, a new one after each crash, so old flows differ from new ones
///     │ index │              random, selects the slot at receivers
/// ```
///
/// Without an incarnation, receivers would have to expire their state after some time, and a source
/// would have to wait for that time after a crash.
///
/// Paper: Chandranmenon and Varghese, section 3.5.
///
/// # Example
///
/// ```
/// use core::num::NonZeroUsize;
/// use flowtable::papers::source_index::{FlowIds, RandomIndices};
///
/// let address = std::net::Ipv4Addr::new(192, 0, 2, 1);
/// let boot = |incarnation: u32| {
///     let ten = NonZeroUsize::new(10).unwrap();
///     let indices = RandomIndices::new(u64::from(address.to_bits()), incarnation.into(), ten);
///     indices.map(|indices| FlowIds::new(address, incarnation, indices))
/// };
/// let first = boot(0x5eed)?.next();
/// let after_a_crash = boot(0xcafe)?.next();
/// assert_ne!(first, after_a_crash, "equal numbers, but another incarnation");
/// # Ok::<(), std::collections::TryReserveError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlowId<A> {
    /// The address of the source.
    pub source: A,
    /// The sequence number of the flow at its source.
    pub number: u32,
    /// The incarnation of the source: random bits, drawn at each start.
    pub incarnation: u32,
    /// The index by which receivers select a slot.
    pub index: SourceIndex,
}

/// An endless iterator over the identifiers of the flows of a source.
///
/// After 2^32 flows it continues with the next incarnation.
#[derive(Clone, Debug)]
pub struct FlowIds<A> {
    next: FlowId<A>,
    indices: RandomIndices,
}

impl<A> FlowIds<A> {
    /// Creates the identifiers of one incarnation of `source`. `incarnation` must be random.
    #[must_use]
    pub fn new(source: A, incarnation: u32, indices: RandomIndices) -> Self {
        Self {
            next: FlowId { source, number: 0, incarnation, index: SourceIndex::ABSENT },
            indices,
        }
    }
}

impl<A: Copy> Iterator for FlowIds<A> {
    type Item = FlowId<A>;

    fn next(&mut self) -> Option<FlowId<A>> {
        let id = FlowId { index: self.indices.next()?, ..self.next };
        self.next.number = id.number.wrapping_add(1);
        if self.next.number == 0 {
            self.next.incarnation = id.incarnation.wrapping_add(1);
        }
        Some(id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;

    use super::*;

    #[test]
    fn numbers_wrap_around_into_the_next_incarnation() {
        let indices = RandomIndices::new(1, 1, NonZeroUsize::MIN).unwrap();
        let mut ids = FlowIds::new('a', u32::MAX, indices);
        ids.next.number = u32::MAX;
        let [last, first] = [ids.next().unwrap(), ids.next().unwrap()];
        assert_eq!((last.number, last.incarnation), (u32::MAX, u32::MAX));
        assert_eq!((first.number, first.incarnation), (0, 0));
    }
}
