//! Maps that threads share as subjects: what is measured, and the loops, compiled for each map.

use std::hint::black_box;
use std::time::Instant;

use super::Key;
use super::insertions::{self, ReaderTimes};
use super::shared_map::{SharedMap, View};
use super::threads::{self, Job, Run};
use crate::subject::{BURST, Subject};

/// The role of a subject in the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A structure of this crate.
    Ours,
    /// A peer, among which the best one is chosen.
    Peer,
    /// A map that is not among these.
    Other,
    /// Constant work without a map. It finds nothing.
    Baseline,
}

/// The benchmarks of one map.
pub(crate) trait SharedMapBenchmark {
    fn role(&self) -> Role;

    /// Inserts `keys` into an empty map and calls `after` with the number of entries after each.
    /// The value of a key is its index.
    fn fill(&mut self, keys: &[Key], after: &mut dyn FnMut(usize));

    /// Runs a job with a thread per task.
    fn run(&self, job: &Job<'_>) -> Run;

    /// Inserts `keys` into an empty map while another thread reads. Stores the nanoseconds of each
    /// insertion in `inserts`, and returns those of the lookups.
    fn grow(&mut self, keys: &[Key], inserts: &mut [u32]) -> ReaderTimes;

    /// Returns the nanoseconds of a walk, the mean of some `times`; or nothing if the map has no
    /// method for it.
    fn walk(&self, walk: Walk, times: u32) -> Option<f64>;

    /// Replaces the map by an empty one, and frees retired memory.
    fn clear(&mut self);
}

/// A method that visits all parts of a map.
#[derive(Clone, Copy)]
pub(crate) enum Walk {
    Len,
    Retain,
}

pub(crate) type SharedMapSubject = Subject<dyn SharedMapBenchmark>;

struct Loops<M, F> {
    role: Role,
    new: F,
    map: M,
}

/// Returns the benchmarks of the map that `new` makes.
pub(crate) fn shared<M, F>(role: Role, new: F) -> Box<dyn SharedMapBenchmark>
where
    M: SharedMap,
    F: Fn() -> M + 'static,
{
    Box::new(Loops { role, map: new(), new })
}

/// Keeps all entries, and returns their number, if the map has a method for it.
#[inline]
fn retain_all(view: &impl View) -> Option<usize> {
    let mut visited = 0;
    let has_retain = view.retain_if(|value| {
        // Otherwise the compiler omits the walk of a map whose number of entries it can compute.
        black_box(value);
        visited += 1;
        true
    });
    has_retain.then_some(visited)
}

impl<M: SharedMap, F: Fn() -> M> SharedMapBenchmark for Loops<M, F> {
    fn role(&self) -> Role {
        self.role
    }

    fn fill(&mut self, keys: &[Key], after: &mut dyn FnMut(usize)) {
        self.clear();
        let mut view = self.map.view();
        for (at, &key) in keys.iter().enumerate() {
            if at % BURST == 0 {
                view.repin();
            }
            view.insert(key, at as u64);
            after(at + 1);
        }
    }

    fn run(&self, job: &Job<'_>) -> Run {
        threads::run(&self.map, job)
    }

    fn grow(&mut self, keys: &[Key], inserts: &mut [u32]) -> ReaderTimes {
        self.clear();
        insertions::beside_a_reader(&self.map, keys, inserts)
    }

    fn walk(&self, walk: Walk, times: u32) -> Option<f64> {
        let view = self.map.view();
        let start = Instant::now();
        for _ in 0..times {
            black_box(match walk {
                Walk::Len => self.map.count()?,
                Walk::Retain => retain_all(&view)?,
            });
        }
        Some(start.elapsed().as_nanos() as f64 / f64::from(times))
    }

    fn clear(&mut self) {
        self.map = (self.new)();
        M::reclaim();
    }
}
