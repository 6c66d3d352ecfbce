//! The longest update: each of many updates is timed.
//!
//! ```text
//!     build           a table from nothing
//!     replay          a route is withdrawn, and announced again a thousand withdrawals later
//!     default         the default route is announced, changed and withdrawn, over and over
//!     /1../12         short prefixes likewise; a present one is changed twice and restored
//!     withdrawal      all routes are withdrawn, in random order; they are announced again untimed
//! ```
//!
//! Page faults and interruptions are excluded as for maps, see [`crate::maps::pauses`]: memory is
//! preallocated, there are three runs, and the shortest time of each update counts. "no table" does
//! constant work, which shows the interruptions.

use std::collections::HashMap;
use std::ops::Range;

use bench_common::machine;
use flowtable::Prefix;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::address::{Addresses, Traffic, address_within};
use super::family::Family;
use super::subject::{LookupMode, LpmTable, Match, Route, Updatable, Update, updatable};
use super::{Subjects, WORST};
use crate::maps::pauses::{keep_least, longest};
use crate::memory;
use crate::results::Results;
use crate::subject::{Agreement, peer, rotation};

const RUNS: usize = 3;

/// Bytes to preallocate per route: more than any of the tables allocates while it grows.
const SPARE: usize = 128;

/// Routes that are withdrawn at a time in the replay.
const WITHDRAWN: usize = 1000;

/// Changes of the default route, and short prefixes, each of which is changed three times.
const CHANGES: usize = 1000;

/// The greatest length of a short prefix.
const SHORT: u32 = 12;

/// The timed parts of the updates, as in the module's documentation.
const PARTS: usize = 5;

/// Times the updates of all updatable subjects, [`RUNS`] times.
pub(crate) fn worst<A: Family>(
    results: &mut Results,
    mut subjects: Subjects<A>,
    routes: &[Route<A>],
    quick: bool,
) {
    let rows: Vec<_> =
        (0..subjects.len()).filter(|&row| subjects[row].benchmark.is_updatable()).collect();
    let nothing = subjects.len();
    subjects.push(peer("no table", updatable::<A, NoTable>()));
    results.add_row(subjects[nothing].name, None);
    let rows = [&rows[..], &[nothing]].concat();

    let replay = Replay::new(routes, if quick { 200_000 } else { 1_000_000 });
    let probes = Addresses::new(routes).draw(Traffic::Inside, 1 << 16);
    let mut agreement = Agreement::default();
    // Not zeros, whose pages would be touched for the first time during the measurement.
    let mut times = vec![1; replay.updates.len()];
    let mut shortest = vec![vec![u32::MAX; times.len()]; rows.len()];
    memory::preallocate(SPARE * routes.len());
    for run in 0..RUNS {
        for turn in rotation(run, rows.len()) {
            let subject = &mut subjects[rows[turn]];
            let faults = machine::page_faults_of(|| {
                subject.benchmark.time_updates(&replay.updates, &mut times);
            });
            results.remark(rows[turn], format!("{faults} new pages"));
            let sum = subject.benchmark.run_lookups(LookupMode::Single, &probes).sum;
            if rows[turn] != nothing {
                agreement.check(sum, subject.name);
            }
            subject.benchmark.clear();
            keep_least(&mut shortest[turn], &times);
        }
    }
    memory::release();
    for (row, shortest) in rows.into_iter().zip(shortest) {
        for (part, range) in replay.parts.iter().enumerate() {
            results.record(row, WORST + part, longest(&shortest[range.clone()]) / 1e3);
        }
    }
}

/// All updates; the table after them is equal to the table after the build.
struct Replay<A> {
    updates: Vec<Update<A>>,
    parts: [Range<usize>; PARTS],
}

impl<A: Family> Replay<A> {
    fn new(routes: &[Route<A>], count: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(7);
        let mut replay = Self { updates: Vec::new(), parts: [const { 0..0 }; PARTS] };
        replay.add(0, routes.iter().map(Update::announce));
        replay.add(1, withdrawn_and_announced(routes, count / 2, &mut rng));
        let present: HashMap<_, _> =
            routes.iter().map(|route| (route.prefix, route.value)).collect();
        let default = (0..CHANGES / 3).map(|_| Prefix::default_route());
        replay.add(2, default.flat_map(|prefix| changes(&present, prefix)));
        let short = (0..CHANGES).map(|_| short(&mut rng));
        replay.add(3, short.flat_map(|prefix| changes(&present, prefix)));
        let mut shuffled = routes.to_vec();
        shuffled.shuffle(&mut rng);
        replay.add(4, shuffled.iter().map(Update::withdraw));
        replay.updates.extend(routes.iter().map(Update::announce));
        replay
    }

    fn add(&mut self, part: usize, updates: impl Iterator<Item = Update<A>>) {
        let start = self.updates.len();
        self.updates.extend(updates);
        self.parts[part] = start..self.updates.len();
    }
}

/// Returns `count` withdrawals and the announcements of the same routes.
fn withdrawn_and_announced<A: Family>(
    routes: &[Route<A>],
    count: usize,
    rng: &mut StdRng,
) -> impl Iterator<Item = Update<A>> {
    let mut shuffled = routes.to_vec();
    shuffled.shuffle(rng);
    // A withdrawn route cannot be withdrawn again.
    let withdrawn = WITHDRAWN.min(shuffled.len());
    (0..count + withdrawn).flat_map(move |at| {
        let route = |at: usize| &shuffled[at % shuffled.len()];
        // First, as this route may be the next one to withdraw.
        let announcement = at.checked_sub(withdrawn).map(|at| Update::announce(route(at)));
        let withdrawal = (at < count).then(|| Update::withdraw(route(at)));
        announcement.into_iter().chain(withdrawal)
    })
}

fn short<A: Family>(rng: &mut StdRng) -> Prefix<A> {
    let len = rng.random_range(1..=SHORT);
    Prefix::new(address_within(A::ROUTED, rng), len).expect("a length of every family")
}

/// Returns an announcement or change of a prefix, a change, and the restoration of its first state.
fn changes<A: Family>(present: &HashMap<Prefix<A>, u32>, prefix: Prefix<A>) -> [Update<A>; 3] {
    let value = prefix.len() << 16;
    [Some(value), Some(value | 1), present.get(&prefix).copied()]
        .map(|value| Update { prefix, value })
}

/// Constant work.
#[derive(Default)]
struct NoTable {
    last: u32,
}

impl<A: Family> LpmTable<A> for NoTable {
    fn build(_: &[Route<A>]) -> Self {
        Self::default()
    }

    fn lookup(&self, _: A) -> Option<Match> {
        Some(Match::without_length(self.last))
    }
}

impl<A: Family> Updatable<A> for NoTable {
    fn announce(&mut self, _: &Prefix<A>, value: u32) {
        let mix = |last: u32, step: u32| (last ^ step).wrapping_mul(0x9e37_79b1).rotate_left(15);
        self.last = (0..64).fold(self.last ^ value, mix);
    }

    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        Updatable::<A>::announce(self, prefix, 0);
        None
    }
}
