//! All variants play the same script: first they are counted, then they are timed in turns.

use core::time::Duration;
use std::time::Instant;

use super::{Subject, Script, Tally};

/// How a subject did.
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

/// The subjects on one script.
pub struct Comparison<'a> {
    script: &'a Script,
    subjects: Vec<Subject>,
    pub scores: Vec<Score>,
}

impl<'a> Comparison<'a> {
    const MAX_ROUNDS: usize = 9;
    /// So many rounds there are, however long they take.
    const MIN_ROUNDS: usize = 3;
    /// No round begins after so long.
    const TIME_LIMIT: Duration = Duration::from_secs(3);
    /// A turn lasts so long at least: a short script is played again and again.
    const MIN_TURN: Duration = Duration::from_millis(20);
    /// But not more often than this.
    const MAX_REPEATS: usize = 1 << 16;

    /// As many turns these have at most, those in which they are counted included.
    pub fn turns(subjects: &[Subject]) -> u64 {
        (subjects.len() * (1 + Self::MAX_ROUNDS)) as u64
    }

    /// Has all subjects counted, and tells of the end of each turn.
    pub fn new(
        script: &'a Script,
        mut subjects: Vec<Subject>,
        on_turn_end: impl Fn(),
    ) -> Self {
        let score = |subject: &mut Subject| {
            let tally = subject.count(script);
            on_turn_end();
            Score { name: subject.name, tally, times_ns: Vec::new() }
        };
        let scores = subjects.iter_mut().map(score).collect();
        Self { script, subjects, scores }
    }

    /// Times them, and tells of the end of each turn.
    pub fn time(&mut self, on_turn_end: impl Fn()) {
        let (start, right) = (Instant::now(), self.script.sum());
        let mut rounds = 0;
        while rounds < Self::MIN_ROUNDS
            || (rounds < Self::MAX_ROUNDS && start.elapsed() < Self::TIME_LIMIT)
        {
            for (subject, score) in self.subjects.iter_mut().zip(&mut self.scores) {
                score.times_ns.push(turn(subject, self.script, right, &mut score.tally));
                on_turn_end();
            }
            rounds += 1;
        }
    }

    /// Whether all have found what they should, each time.
    pub fn agrees(&self) -> bool {
        self.scores.iter().all(|score| score.tally.wrong == 0)
    }
}

/// A subject plays the script until its turn is over. Nanoseconds for a segment that arrives.
fn turn(subject: &mut Subject, script: &Script, right: u64, tally: &mut Tally) -> f64 {
    let (mut elapsed, mut times) = (Duration::ZERO, 0);
    while elapsed < Comparison::MIN_TURN && times < Comparison::MAX_REPEATS {
        subject.rewind(script);
        let start = Instant::now();
        let sum = subject.run(script);
        elapsed += start.elapsed();
        times += 1;
        if sum != right {
            tally.is_wrong(|| "other PCBs when it was timed".to_owned());
        }
    }
    elapsed.as_nanos() as f64 / (times * script.lookups().max(1)) as f64
}
