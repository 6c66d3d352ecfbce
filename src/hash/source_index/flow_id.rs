//! Names of flows that do not come again.

use super::{RandomIndices, SourceIndex};

/// The name of a flow: whose it is, which of them, since when, and where to look for it.
///
/// ```text
///     │ source │ number │    unique among the flows of all sources that have not crashed
///     │ incarnation │        random, another one after each crash: an old flow is not taken for a new one
///     │ index │              random, too, and where receivers look
/// ```
///
/// Without the second part a receiver must forget what it knows after a time, and a source that has crashed must
/// wait for that long.
///
/// Paper: Chandranmenon and Varghese, section 3.5.
///
/// # Example
///
/// ```
/// use core::num::NonZeroUsize;
/// use flowtable::hash::source_index::{FlowIds, RandomIndices};
///
/// let address = std::net::Ipv4Addr::new(192, 0, 2, 1);
/// let boot = |incarnation: u32| {
///     let ten = NonZeroUsize::new(10).unwrap();
///     let indices = RandomIndices::new(u64::from(address.to_bits()), incarnation.into(), ten);
///     indices.map(|indices| FlowIds::new(address, incarnation, indices))
/// };
/// let first = boot(0x5eed)?.next();
/// let after_a_crash = boot(0xcafe)?.next();
/// assert_ne!(first, after_a_crash, "the same number, of another incarnation");
/// # Ok::<(), std::collections::TryReserveError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlowId<A> {
    /// The address of the source.
    pub source: A,
    /// The number that the source has given the flow.
    pub number: u32,
    /// Which life of the source it is of: random bits.
    pub incarnation: u32,
    /// Where receivers look for it.
    pub index: SourceIndex,
}

/// Gives the flows of a source their names: one for each step.
///
/// Does not end; after 2^32 flows it goes on with the next incarnation.
#[derive(Clone, Debug)]
pub struct FlowIds<A> {
    next: FlowId<A>,
    indices: RandomIndices,
}

impl<A> FlowIds<A> {
    /// Names for the flows of `source` in this life of it: `incarnation` has to be random.
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
        let name = FlowId { index: self.indices.next()?, ..self.next };
        self.next.number = name.number.wrapping_add(1);
        if self.next.number == 0 {
            self.next.incarnation = name.incarnation.wrapping_add(1);
        }
        Some(name)
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
    fn numbers_that_run_out_go_on_in_another_incarnation() {
        let indices = RandomIndices::new(1, 1, NonZeroUsize::MIN).unwrap();
        let mut names = FlowIds::new('a', u32::MAX, indices);
        names.next.number = u32::MAX;
        let [last, first] = [names.next().unwrap(), names.next().unwrap()];
        assert_eq!((last.number, last.incarnation), (u32::MAX, u32::MAX));
        assert_eq!((first.number, first.incarnation), (0, 0));
    }
}
