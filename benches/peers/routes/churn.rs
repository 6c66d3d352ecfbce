//! Withdrawals and announcements of routes in a full table.
//!
//! They are in groups, so that the cache lines of a withdrawal are evicted before the announcement
//! of the same route.

use std::iter::zip;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::address::{Addresses, Traffic, WARM_UP};
use super::family::Family;
use super::lookups::in_pieces;
use super::subject::{LookupMode, Route, RouteSubject, Update};
use super::{CHURN, Subjects};
use crate::results::Results;
use crate::subject::{Agreement, Timed, rotation};

/// Routes that are withdrawn before they are announced again.
const GROUP: usize = 1 << 14;

/// The updates of a round, in groups of withdrawals and of announcements.
struct Groups<A> {
    withdrawals: Vec<Vec<Update<A>>>,
    announcements: Vec<Vec<Update<A>>>,
}

impl<A: Family> Groups<A> {
    /// Draws the updates of `count` distinct routes.
    fn draw(routes: &mut [Route<A>], count: usize, rng: &mut StdRng) -> Self {
        let count = count.min(routes.len());
        let drawn = &mut *routes.partial_shuffle(rng, count).0;
        let of = |groups: &[Route<A>], update: fn(&Route<A>) -> Update<A>| {
            groups.chunks(GROUP).map(|group| group.iter().map(update).collect()).collect()
        };
        let withdrawals = of(drawn, Update::withdraw);
        drawn.chunks_mut(GROUP).for_each(|group| group.shuffle(rng));
        Self { withdrawals, announcements: of(drawn, Update::announce) }
    }

    /// Returns the times of withdrawals and of announcements.
    fn apply(&self, subject: &mut RouteSubject<A>) -> [Timed; 2] {
        let mut both = [Timed::default(); 2];
        for groups in zip(&self.withdrawals, &self.announcements) {
            for (all, updates) in zip(&mut both, [groups.0, groups.1]) {
                let timed = subject.benchmark.update(updates);
                all.ns += timed.ns * updates.len() as f64;
                all.sum = all.sum.wrapping_add(timed.sum);
            }
        }
        let count: usize = self.withdrawals.iter().map(Vec::len).sum();
        both.map(|all| Timed { ns: all.ns / count as f64, ..all })
    }
}

/// Runs rounds of withdrawals and announcements, and of lookups in the tables after them.
pub(crate) fn churn<A: Family>(
    results: &mut Results,
    subjects: &mut Subjects<A>,
    routes: &[Route<A>],
    quick: bool,
) {
    let (rounds, count) = if quick { (3, 1 << 16) } else { (11, 1 << 17) };
    let mut rng = StdRng::seed_from_u64(6);
    let mut shuffled = routes.to_vec();
    let mut source = Addresses::new(routes);
    let rows: Vec<_> =
        (0..subjects.len()).filter(|&row| subjects[row].benchmark.is_updatable()).collect();
    for round in 0..rounds {
        let groups = Groups::draw(&mut shuffled, count, &mut rng);
        let warm = source.draw(Traffic::Inside, WARM_UP);
        let probes = source.draw(Traffic::Inside, count);
        let mut agreement = Agreement::default();
        for turn in rotation(round, rows.len()) {
            let row = rows[turn];
            let subject = &mut subjects[row];
            subject.benchmark.run_lookups(LookupMode::Single, &warm);
            let [withdraw, announce] = groups.apply(subject);
            subject.benchmark.run_lookups(LookupMode::Single, &warm);
            let run_lookups = in_pieces(subject, LookupMode::Single, &probes);
            let sums = (withdraw.sum, run_lookups.sum);
            agreement.check(sums, subject.name);
            let figures = [withdraw, announce, run_lookups];
            figures
                .iter()
                .enumerate()
                .for_each(|(at, timed)| results.record(row, CHURN + at, timed.ns));
        }
    }
}
