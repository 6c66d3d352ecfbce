//! Tokens that are told apart, of which it is known which have been dropped, by whatever thread.
#![allow(dead_code, reason = "not every test needs all")]

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ROOM: usize = if cfg!(miri) { 1 << 11 } else { 1 << 18 };

/// All the tokens of a test. It is a `static`, so that a token owns nothing, and one that is dropped
/// twice is noticed without being undefined.
pub(crate) struct Ledger {
    dropped: [AtomicBool; ROOM],
    made: AtomicUsize,
    gone: AtomicUsize,
    twice: AtomicUsize,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        Self {
            dropped: [const { AtomicBool::new(false) }; ROOM],
            made: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            twice: AtomicUsize::new(0),
        }
    }

    pub(crate) fn token(&'static self) -> Token {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        assert!(number < ROOM, "a ledger for {ROOM}");
        Token { ledger: self, number, panics: false }
    }

    /// One that panics when it is dropped.
    pub(crate) fn mine(&'static self) -> Token {
        let mut token = self.token();
        token.panics = true;
        token
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// How many are alive. Nothing may have been dropped twice so far.
    pub(crate) fn alive(&self) -> usize {
        assert_eq!(self.twice.load(Ordering::SeqCst), 0, "dropped more than once");
        let gone = self.gone.load(Ordering::SeqCst);
        self.made() - gone
    }
}

pub(crate) struct Token {
    ledger: &'static Ledger,
    number: usize,
    panics: bool,
}

impl Token {
    pub(crate) fn is_alive(&self) -> bool {
        !self.ledger.dropped[self.number].load(Ordering::SeqCst)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.ledger.dropped[self.number].swap(true, Ordering::SeqCst) {
            self.ledger.twice.fetch_add(1, Ordering::SeqCst);
        } else {
            self.ledger.gone.fetch_add(1, Ordering::SeqCst);
        }
        if self.panics {
            // Without the hook, which would print it.
            resume_unwind(Box::new("a token panics"));
        }
    }
}

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "token {}", self.number)
    }
}
