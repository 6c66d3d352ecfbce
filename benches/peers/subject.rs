//! The subjects of a benchmark: our structures and their peers.

use std::fmt::Debug;
use std::hint::black_box;
use std::time::Duration;

/// Keys of a batched lookup.
pub(crate) const BURST: usize = 32;

/// A structure that is measured. `B` is the trait of one kind of benchmark: its loops are compiled
/// for each structure, so the virtual call is paid once per round and not once per operation.
pub(crate) struct Subject<B: ?Sized> {
    pub(crate) name: &'static str,
    /// The structure's name in the JSON, for ours; none for a peer.
    pub(crate) structure: Option<&'static str>,
    pub(crate) benchmark: Box<B>,
}

/// A structure of this crate.
pub(crate) fn ours<B: ?Sized>(
    structure: &'static str,
    name: &'static str,
    benchmark: Box<B>,
) -> Subject<B> {
    Subject { name, structure: Some(structure), benchmark }
}

/// A structure to compare with.
pub(crate) fn peer<B: ?Sized>(name: &'static str, benchmark: Box<B>) -> Subject<B> {
    Subject { name, structure: None, benchmark }
}

/// Nanoseconds per operation, and the sum of the values found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Timed {
    pub(crate) ns: f64,
    pub(crate) sum: u64,
}

impl Timed {
    pub(crate) fn new(time: Duration, operations: usize, sum: u64) -> Self {
        Self { ns: time.as_nanos() as f64 / operations as f64, sum: black_box(sum) }
    }
}

/// The order of `count` subjects in a round: each round starts with the next subject.
pub(crate) fn rotation(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (round..round + count).map(move |turn| turn % count)
}

/// Checks that all subjects compute the result of the first one.
#[derive(Default)]
pub(crate) struct Agreement<T>(Option<T>);

impl<T: Copy + PartialEq + Debug> Agreement<T> {
    pub(crate) fn check(&mut self, result: T, name: &str) {
        assert_eq!(result, *self.0.get_or_insert(result), "{name}: a different result");
    }
}
