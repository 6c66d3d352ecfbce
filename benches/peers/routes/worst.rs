//! How long one update may take: every one of many is timed.
//!
//! ```text
//!     build           a table from nothing
//!     replay          a route is withdrawn, and announced again a thousand withdrawals later
//!     default         the default route is announced, changed and withdrawn, over and over
//!     /1../12         so are short prefixes; one that the table has is changed twice
//! ```
//!
//! What is no work of the table is left out as for maps: memory is there already, there are three
//! runs, and the shortest time of each update counts; see [`crate::pauses`]. What is left of
//! the machine is what a table that does nothing but count shows.

use std::collections::HashMap;
use std::ops::Range;

use flowtable::Prefix;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::address::{Draw, Traffic, below};
use super::contestant::{How, Live, Match, Route, Table, Update, live};
use super::family::Family;
use super::{Contestants, WORST};
use crate::board::Board;
use crate::entrant::{Agreed, in_turn, peer};
use crate::memory;
use crate::pauses::{keep_least, longest};
use bench_common::machine;

const RUNS: usize = 3;

/// Bytes to have at hand for each route, twice: more than any of the tables asks for while it grows.
const SPARE: usize = 128;

/// Routes that are away at a time in the replay.
const AWAY: usize = 1000;

/// Changes of the default route; and short prefixes, each of which is changed three times.
const CHANGES: usize = 1000;

/// The longest prefix that is short.
const SHORT: u32 = 12;

/// All that are live update a table, [`RUNS`] times.
pub(crate) fn worst<A: Family>(
    board: &mut Board,
    mut contestants: Contestants<A>,
    routes: &[Route<A>],
    quick: bool,
) {
    let rows: Vec<_> = (0..contestants.len()).filter(|&row| contestants[row].is_live()).collect();
    let nothing = contestants.len();
    contestants.push(peer("no table", live::<A, Nothing>()));
    board.add_row(contestants[nothing].name, None);
    let rows = [&rows[..], &[nothing]].concat();

    let replay = Replay::new(routes, if quick { 200_000 } else { 1_000_000 });
    let probes = Draw::new(routes).addresses(Traffic::Inside, 1 << 16);
    let mut agreed = Agreed::default();
    // Touched here, as zeros would not have pages yet.
    let mut times = vec![1; replay.updates.len()];
    let mut shortest = vec![vec![u32::MAX; times.len()]; rows.len()];
    memory::keep(SPARE * routes.len());
    for run in 0..RUNS {
        for turn in in_turn(run, rows.len()) {
            let contestant = &mut contestants[rows[turn]];
            let faults = machine::page_faults_of(|| contestant.pace(&replay.updates, &mut times));
            board.remark(rows[turn], format!("{faults} new pages"));
            let sum = contestant.look_up(How::Single, &probes).sum;
            if rows[turn] != nothing {
                agreed.on(sum, contestant.name);
            }
            contestant.clear();
            keep_least(&mut shortest[turn], &times);
        }
    }
    memory::give_back();
    for (row, shortest) in rows.into_iter().zip(shortest) {
        for (part, range) in replay.parts.iter().enumerate() {
            board.note(row, WORST + part, longest(&shortest[range.clone()]) / 1e3);
        }
    }
}

/// All updates, one after the other; they end with the table that they began to replay on.
struct Replay<A> {
    updates: Vec<Update<A>>,
    parts: [Range<usize>; 4],
}

impl<A: Family> Replay<A> {
    fn new(routes: &[Route<A>], count: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(7);
        let mut replay = Self { updates: Vec::new(), parts: [const { 0..0 }; 4] };
        replay.add(0, routes.iter().map(Update::announce));
        replay.add(1, withdrawn_and_announced(routes, count / 2, &mut rng));
        let present: HashMap<_, _> =
            routes.iter().map(|route| (route.prefix, route.value)).collect();
        let default = (0..CHANGES / 3).map(|_| Prefix::default_route());
        replay.add(2, default.flat_map(|prefix| changes(&present, prefix)));
        let short = (0..CHANGES).map(|_| short(&mut rng));
        replay.add(3, short.flat_map(|prefix| changes(&present, prefix)));
        replay
    }

    fn add(&mut self, part: usize, updates: impl Iterator<Item = Update<A>>) {
        let start = self.updates.len();
        self.updates.extend(updates);
        self.parts[part] = start..self.updates.len();
    }
}

/// `count` withdrawals, and as many announcements of the same routes.
fn withdrawn_and_announced<A: Family>(
    routes: &[Route<A>],
    count: usize,
    rng: &mut StdRng,
) -> impl Iterator<Item = Update<A>> {
    let mut shuffled = routes.to_vec();
    shuffled.shuffle(rng);
    // One that is away cannot be withdrawn.
    let away = AWAY.min(shuffled.len());
    (0..count + away).flat_map(move |at| {
        let route = |at: usize| &shuffled[at % shuffled.len()];
        // The route that was away longest may be the one that goes next, so it comes first.
        let back = at.checked_sub(away).map(|at| Update::announce(route(at)));
        let gone = (at < count).then(|| Update::withdraw(route(at)));
        back.into_iter().chain(gone)
    })
}

fn short<A: Family>(rng: &mut StdRng) -> Prefix<A> {
    let len = rng.random_range(1..=SHORT);
    Prefix::new(below(A::ROUTED, rng), len).expect("a length of every family")
}

/// A prefix is announced or changed, then changed, then as it was.
fn changes<A: Family>(present: &HashMap<Prefix<A>, u32>, prefix: Prefix<A>) -> [Update<A>; 3] {
    let value = prefix.len() << 16;
    [Some(value), Some(value | 1), present.get(&prefix).copied()]
        .map(|value| Update { prefix, value })
}

/// Not a table: something to do that takes as long every time.
#[derive(Default)]
struct Nothing {
    last: u32,
}

impl<A: Family> Table<A> for Nothing {
    fn build(_: &[Route<A>]) -> Self {
        Self::default()
    }

    fn lookup(&self, _: A) -> Option<Match> {
        Some(Match::silent(self.last))
    }
}

impl<A: Family> Live<A> for Nothing {
    fn announce(&mut self, _: &Prefix<A>, value: u32) {
        let mix = |last: u32, step: u32| (last ^ step).wrapping_mul(0x9e37_79b1).rotate_left(15);
        self.last = (0..64).fold(self.last ^ value, mix);
    }

    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        Live::<A>::announce(self, prefix, 0);
        None
    }
}
