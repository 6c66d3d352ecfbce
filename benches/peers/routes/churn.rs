//! Routes that are withdrawn and announced again, in a full table.
//!
//! They go and come in groups, so that an announcement does not find in the cache what the withdrawal
//! of the same route has left there.

use std::iter::zip;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::address::{Draw, Traffic, WARM_UP};
use super::contestant::{Contestant, How, Route, Update};
use super::family::Family;
use super::lookups::in_pieces;
use super::{CHURN, Contestants};
use crate::board::Board;
use crate::entrant::{Agreed, Timed, in_turn};

/// Routes that are away at a time.
const GROUP: usize = 1 << 14;

/// The updates of a round, in groups of withdrawals and of announcements.
struct Groups<A> {
    withdrawals: Vec<Vec<Update<A>>>,
    announcements: Vec<Vec<Update<A>>>,
}

impl<A: Family> Groups<A> {
    /// Of `count` of the routes, each once.
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

    /// What it takes to withdraw one, and to announce one.
    fn apply(&self, contestant: &mut Contestant<A>) -> [Timed; 2] {
        let mut both = [Timed::default(); 2];
        for groups in zip(&self.withdrawals, &self.announcements) {
            for (all, updates) in zip(&mut both, [groups.0, groups.1]) {
                let timed = contestant.update(updates);
                all.ns += timed.ns * updates.len() as f64;
                all.sum = all.sum.wrapping_add(timed.sum);
            }
        }
        let count: usize = self.withdrawals.iter().map(Vec::len).sum();
        both.map(|all| Timed { ns: all.ns / count as f64, ..all })
    }
}

/// Rounds of withdrawing and announcing, and look-ups in the tables that have had them.
pub(crate) fn churn<A: Family>(
    board: &mut Board,
    contestants: &mut Contestants<A>,
    routes: &[Route<A>],
    quick: bool,
) {
    let (rounds, count) = if quick { (3, 1 << 16) } else { (11, 1 << 17) };
    let mut rng = StdRng::seed_from_u64(6);
    let mut shuffled = routes.to_vec();
    let mut draw = Draw::new(routes);
    let live: Vec<_> = (0..contestants.len()).filter(|&row| contestants[row].is_live()).collect();
    for round in 0..rounds {
        let groups = Groups::draw(&mut shuffled, count, &mut rng);
        let warm = draw.addresses(Traffic::Inside, WARM_UP);
        let probes = draw.addresses(Traffic::Inside, count);
        let mut agreed = Agreed::default();
        for turn in in_turn(round, live.len()) {
            let row = live[turn];
            let contestant = &mut contestants[row];
            contestant.look_up(How::Single, &warm);
            let [withdraw, announce] = groups.apply(contestant);
            contestant.look_up(How::Single, &warm);
            let look_up = in_pieces(contestant, How::Single, &probes);
            let sums = (withdraw.sum, look_up.sum);
            agreed.on(sums, contestant.name);
            let figures = [withdraw, announce, look_up];
            figures
                .iter()
                .enumerate()
                .for_each(|(at, timed)| board.note(row, CHURN + at, timed.ns));
        }
    }
}
