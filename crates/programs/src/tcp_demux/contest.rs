//! All variants play the same script: first they are counted, then they are timed in turns.

use core::time::Duration;
use std::time::Instant;

use super::{Contestant, Script, Tally};

/// How a contestant did.
#[derive(Clone, Debug)]
pub struct Score {
    pub name: &'static str,
    pub tally: Tally,
    /// Nanoseconds for a segment that arrives, with all that comes with it, round by round.
    pub times_ns: Vec<f64>,
}

impl Score {
    /// The median of the rounds; `None` without any.
    pub fn time_ns(&self) -> Option<f64> {
        let mut times = self.times_ns.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }
}

/// The contestants on one script.
pub struct Contest<'a> {
    script: &'a Script,
    contestants: Vec<Contestant>,
    pub scores: Vec<Score>,
}

impl<'a> Contest<'a> {
    const MOST_ROUNDS: usize = 9;
    /// So many rounds there are, however long they take.
    const LEAST_ROUNDS: usize = 3;
    /// No round begins after so long.
    const LONG: Duration = Duration::from_secs(3);
    /// A turn lasts so long at least: a short script is played again and again.
    const TURN: Duration = Duration::from_millis(20);
    /// But not more often than this.
    const MOST_TIMES: usize = 1 << 16;

    /// As many turns these have at most, those in which they are counted included.
    pub fn turns(contestants: &[Contestant]) -> u64 {
        (contestants.len() * (1 + Self::MOST_ROUNDS)) as u64
    }

    /// Has all contestants counted, and tells of the end of each turn.
    pub fn new(
        script: &'a Script,
        mut contestants: Vec<Contestant>,
        has_played: impl Fn(),
    ) -> Self {
        let score = |contestant: &mut Contestant| {
            let tally = contestant.count(script);
            has_played();
            Score { name: contestant.name, tally, times_ns: Vec::new() }
        };
        let scores = contestants.iter_mut().map(score).collect();
        Self { script, contestants, scores }
    }

    /// Times them, and tells of the end of each turn.
    pub fn time(&mut self, has_played: impl Fn()) {
        let (start, right) = (Instant::now(), self.script.sum());
        let mut rounds = 0;
        while rounds < Self::LEAST_ROUNDS
            || (rounds < Self::MOST_ROUNDS && start.elapsed() < Self::LONG)
        {
            for (contestant, score) in self.contestants.iter_mut().zip(&mut self.scores) {
                score.times_ns.push(turn(contestant, self.script, right, &mut score.tally));
                has_played();
            }
            rounds += 1;
        }
    }

    /// Whether all have found what they should, each time.
    pub fn agrees(&self) -> bool {
        self.scores.iter().all(|score| score.tally.wrong == 0)
    }
}

/// A contestant plays the script until its turn is over. Nanoseconds for a segment that arrives.
fn turn(contestant: &mut Contestant, script: &Script, right: u64, tally: &mut Tally) -> f64 {
    let (mut elapsed, mut times) = (Duration::ZERO, 0);
    while elapsed < Contest::TURN && times < Contest::MOST_TIMES {
        contestant.rewind(script);
        let start = Instant::now();
        let sum = contestant.run(script);
        elapsed += start.elapsed();
        times += 1;
        if sum != right {
            tally.is_wrong(|| "other PCBs when it was timed".to_owned());
        }
    }
    elapsed.as_nanos() as f64 / (times * script.lookups().max(1)) as f64
}
