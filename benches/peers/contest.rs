//! Timed rounds, in which the contestants take turns.

use crate::board::{Board, Column};
use crate::contestant::{Bench, Contestant};
use crate::entrant::{Agreed, in_turn};
use crate::keys::{Draw, Key, random_keys};
use crate::limit::Limit;
use crate::memory;

/// Maps of so many entries fit a cache. The turns of the others have thrown a map out of it, so it does
/// everything twice, and the second time counts.
const FITS_A_CACHE: usize = 200_000;

pub(crate) struct Contest<K> {
    pub(crate) benches: &'static [Bench],
    /// The first one is ours.
    pub(crate) contestants: Vec<Contestant<K>>,
    /// Whether [`Limit`] takes part in the bursts.
    pub(crate) has_limit: bool,
}

/// How much is done for a number of entries.
struct Effort {
    rounds: usize,
    /// In how many of the rounds the maps are filled anew.
    fills: usize,
    /// Look-ups of a round.
    probes: usize,
}

impl Effort {
    fn new(n: usize, quick: bool) -> Self {
        let (rounds, fills) = if n <= FITS_A_CACHE {
            (25, 15)
        } else if n <= 2_000_000 {
            (11, 7)
        } else {
            (9, 3)
        };
        let probes = n.clamp(1 << 16, 1 << 19);
        match quick {
            true => Self { rounds: 5, fills: 3, probes: probes.min(1 << 17) },
            false => Self { rounds, fills, probes },
        }
    }
}

impl<K: Key> Contest<K> {
    /// All rounds with maps of `n` entries.
    pub(crate) fn run(&mut self, n: usize, quick: bool) -> Board {
        let effort = Effort::new(n, quick);
        let keys = random_keys::<K>(n, 1);
        let mut draw = Draw::new(&keys);
        let mut board = self.board(n, &effort);
        let mut limit = None;
        for round in 0..effort.rounds {
            for (column, &bench) in self.benches.iter().enumerate() {
                if bench == Bench::Fill {
                    if round < effort.fills {
                        let bytes = self.fill(&mut board, column, round, &keys);
                        limit = limit.or_else(|| self.has_limit.then(|| Limit::new(bytes)));
                    }
                    continue;
                }
                let probes = draw.probes(bench, effort.probes);
                self.turns(&mut board, (column, bench), round, (n, &probes));
                if let Some(limit) = limit.as_mut().filter(|_| bench == Bench::Burst) {
                    limit.aim(&mut draw.rng, effort.probes);
                    if n <= FITS_A_CACHE {
                        limit.run();
                    }
                    board.note(self.contestants.len(), column, limit.run().ns);
                }
            }
        }
        self.contestants.iter_mut().for_each(|contestant| contestant.clear());
        board
    }

    fn board(&self, n: usize, effort: &Effort) -> Board {
        let title = format!(
            "{n} entries, keys of {} bytes, values of 8: ns each; medians of {} rounds ({} fills)",
            K::NAME,
            effort.rounds,
            effort.fills
        );
        let column = |bench: &Bench| Column { bench: bench.name(), unit: "ns", n };
        let mut board = Board::new(title, K::NAME, self.benches.iter().map(column).collect());
        board.add_rows(&self.contestants);
        if self.has_limit {
            board.add_row(Limit::NAME, None);
        }
        board
    }

    /// Everybody fills a map. The bytes of our first one.
    fn fill(&mut self, board: &mut Board, column: usize, round: usize, keys: &[K]) -> usize {
        let mut bytes = 0;
        for at in in_turn(round, self.contestants.len()) {
            let contestant = &mut self.contestants[at];
            contestant.clear();
            let before = memory::live();
            board.note(at, column, contestant.run(Bench::Fill, keys).ns);
            if at == 0 {
                bytes = memory::live() - before;
            }
        }
        bytes
    }

    /// Everybody looks up the same keys.
    fn turns(
        &mut self,
        board: &mut Board,
        (column, bench): (usize, Bench),
        round: usize,
        (n, probes): (usize, &[K]),
    ) {
        let mut agreed = Agreed::default();
        for at in in_turn(round, self.contestants.len()) {
            let contestant = &mut self.contestants[at];
            if !contestant.takes_part(bench) {
                continue;
            }
            if n <= FITS_A_CACHE {
                contestant.run(bench, probes);
            }
            let timed = contestant.run(bench, probes);
            agreed.on(timed.sum, contestant.name);
            board.note(at, column, timed.ns);
        }
    }
}
