//! `DuplicateFilter` compared with a reference model: a list of all accepted packets.

use core::hash::BuildHasher;
use core::time::Duration;

use flowtable::Timestamp;
use flowtable::cache::{CallVerdict, DuplicateFilter};

use crate::set_back::SetBack;

/// A packet that was accepted.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    sender: u32,
    sequence: u64,
    /// Nanoseconds, negative if the clock was set back to a time near zero.
    at: i128,
}

/// A filter and its reference model.
#[derive(Clone, Debug)]
pub struct CheckedFilter<S> {
    ours: DuplicateFilter<u32, S>,
    capacity: usize,
    lifetime: Duration,
    /// All packets that were ever accepted.
    accepted: Vec<Accepted>,
    /// Senders that are not forgotten, in the order of their last accepted packets.
    known: Vec<u32>,
    now: Timestamp,
    set_back: SetBack,
}

impl<S: BuildHasher> CheckedFilter<S> {
    pub fn new(capacity: usize, lifetime: Duration, hasher: S) -> Self {
        let ours = DuplicateFilter::with_hasher(capacity, lifetime, hasher)
            .expect("the memory is available");
        let (accepted, known, now) = (Vec::new(), Vec::new(), Timestamp::ZERO);
        let set_back = SetBack::default();
        Self { ours, capacity, lifetime, accepted, known, now, set_back }
    }

    /// Accepted packets whose duplicates may still arrive.
    fn young(&self) -> impl Iterator<Item = &Accepted> {
        let (now, lifetime) = (i128::from(self.now.as_nanos()), self.lifetime.as_nanos() as i128);
        self.accepted.iter().filter(move |accepted| now - accepted.at < lifetime)
    }

    fn verdict(&self, sender: u32, sequence: u64) -> CallVerdict {
        let mut of_sender = self.young().filter(|accepted| accepted.sender == sender).peekable();
        if of_sender.peek().is_some() {
            let is_above = of_sender.all(|accepted| accepted.sequence < sequence);
            return if is_above { CallVerdict::Accept } else { CallVerdict::Duplicate };
        }
        let mut senders: Vec<u32> = self.young().map(|accepted| accepted.sender).collect();
        senders.sort_unstable();
        senders.dedup();
        if senders.len() < self.capacity { CallVerdict::Accept } else { CallVerdict::Full }
    }

    pub fn accept(&mut self, sender: u32, sequence: u64, now: Timestamp) -> CallVerdict {
        self.clean_some(now, 2);
        let theirs = self.verdict(sender, sequence);
        let ours = self.ours.accept(&sender, sequence, now);
        assert_eq!(ours, theirs, "{sender} {sequence} {now:?}");
        if ours == CallVerdict::Accept {
            self.accepted.push(Accepted { sender, sequence, at: self.now.as_nanos().into() });
            self.known.retain(|&known| known != sender);
            self.known.push(sender);
        }
        ours
    }

    pub fn clean(&mut self, now: Timestamp, budget: usize) {
        let theirs = self.clean_some(now, budget);
        assert_eq!(self.ours.clean(now, budget), theirs);
    }

    /// Forgets senders in the model.
    fn clean_some(&mut self, now: Timestamp, budget: usize) -> usize {
        let [time, latest] = [now, self.now].map(Timestamp::as_nanos);
        let lifetime = self.lifetime.as_nanos() as u64;
        if let Some(other) = self.set_back.follow(time, latest, lifetime) {
            let by = i128::from(other) - i128::from(latest);
            self.accepted.iter_mut().for_each(|accepted| accepted.at += by);
            self.now = Timestamp::from_nanos(other);
        }
        self.now = self.now.max(now);
        let is_old = |&sender: &u32| !self.young().any(|accepted| accepted.sender == sender);
        let old = self.known.iter().take_while(|sender| is_old(sender)).count().min(budget);
        self.known.drain(..old);
        old
    }

    pub fn check(&self) {
        self.ours.validate().expect("an invariant");
        assert_eq!(
            (self.ours.len(), self.ours.is_empty()),
            (self.known.len(), self.known.is_empty())
        );
        assert!(self.ours.len() <= self.capacity);
    }
}
