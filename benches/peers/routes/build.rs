//! The time to build a table from its routes in a random order, and its bytes.

use super::family::Family;
use super::subject::Route;
use super::{BUILD, BYTES, Subjects};
use crate::memory;
use crate::results::Results;
use crate::subject::rotation;

/// Builds all tables several times; the last ones remain for the lookups.
pub(crate) fn builds<A: Family>(
    results: &mut Results,
    subjects: &mut Subjects<A>,
    routes: &[Route<A>],
    quick: bool,
) {
    let each = |figure: usize| figure as f64 / routes.len() as f64;
    for round in 0..if quick { 2 } else { 7 } {
        for at in rotation(round, subjects.len()) {
            subjects[at].benchmark.clear();
            let before = memory::live();
            memory::reset_peak();
            let time = subjects[at].benchmark.build(routes).as_nanos() as f64;
            results.record(at, BUILD, time / routes.len() as f64);
            results.record(at, BUILD + 1, time / 1e6);
            results.record(at, BYTES, each(memory::live() - before));
            results.record(at, BYTES + 1, each(memory::peak() - before));
        }
    }
    for (at, subject) in subjects.iter().enumerate() {
        subject.benchmark.shape().into_iter().for_each(|shape| results.remark(at, shape));
    }
}
