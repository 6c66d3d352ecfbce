//! A comparison of demultiplexers: all replay the same script, first counted, then timed in turns.

use core::time::Duration;
use std::time::Instant;

use super::{Script, Subject, Tally};

/// Results of a subject.
#[derive(Clone, Debug)]
pub struct Score {
    pub name: &'static str,
    pub tally: Tally,
    /// Nanoseconds per arriving segment, including all other events, by round.
    pub times_ns: Vec<f64>,
}

impl Score {
    /// Returns the median of the rounds; `None` without any.
    pub fn time_ns(&self) -> Option<f64> {
        let mut times = self.times_ns.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }
}

/// A comparison of subjects on one script.
pub struct Comparison<'a> {
    script: &'a Script,
    subjects: Vec<Subject>,
    pub scores: Vec<Score>,
}

impl<'a> Comparison<'a> {
    const MAX_ROUNDS: usize = 9;
    /// Minimum number of rounds, whatever their duration.
    const MIN_ROUNDS: usize = 3;
    /// No further round begins after this time.
    const TIME_LIMIT: Duration = Duration::from_secs(3);
    /// Minimum duration of a turn: a short script is repeated.
    const MIN_TURN: Duration = Duration::from_millis(20);
    /// Maximum number of repetitions in a turn.
    const MAX_REPEATS: usize = 1 << 16;

    /// Returns the maximum number of turns, including those in which subjects are counted.
    pub fn turns(subjects: &[Subject]) -> u64 {
        (subjects.len() * (1 + Self::MAX_ROUNDS)) as u64
    }

    /// Counts the lookups of all subjects. Calls `on_turn_end` after each turn.
    pub fn new(script: &'a Script, mut subjects: Vec<Subject>, on_turn_end: impl Fn()) -> Self {
        let score = |subject: &mut Subject| {
            let tally = subject.count(script);
            on_turn_end();
            Score { name: subject.name, tally, times_ns: Vec::new() }
        };
        let scores = subjects.iter_mut().map(score).collect();
        Self { script, subjects, scores }
    }

    /// Times all subjects. Calls `on_turn_end` after each turn.
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

    /// Returns whether all subjects have found the right PCBs each time.
    pub fn agrees(&self) -> bool {
        self.scores.iter().all(|score| score.tally.wrong == 0)
    }
}

/// Times a subject for one turn. Returns nanoseconds per arriving segment.
fn turn(subject: &mut Subject, script: &Script, right: u64, tally: &mut Tally) -> f64 {
    let (mut elapsed, mut times) = (Duration::ZERO, 0);
    while elapsed < Comparison::MIN_TURN && times < Comparison::MAX_REPEATS {
        subject.rewind(script);
        let start = Instant::now();
        let sum = subject.run(script);
        elapsed += start.elapsed();
        times += 1;
        if sum != right {
            tally.is_wrong(|| "other PCBs in a timed round".to_owned());
        }
    }
    elapsed.as_nanos() as f64 / (times * script.lookups().max(1)) as f64
}
