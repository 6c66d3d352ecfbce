//! Tokens whose drops are recorded, on any thread.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const CAPACITY: usize = if cfg!(miri) { 1 << 11 } else { 1 << 18 };

/// The record of all tokens of a test.
///
/// It is a `static`, so a token owns no memory, and a double drop is detected without undefined
/// behaviour.
pub struct DropRecord {
    dropped: [AtomicBool; CAPACITY],
    made: AtomicUsize,
    gone: AtomicUsize,
    twice: AtomicUsize,
}

impl Default for DropRecord {
    fn default() -> Self {
        Self::new()
    }
}

impl DropRecord {
    pub const fn new() -> Self {
        Self {
            dropped: [const { AtomicBool::new(false) }; CAPACITY],
            made: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            twice: AtomicUsize::new(0),
        }
    }

    pub fn token(&'static self) -> Token {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        assert!(number < CAPACITY, "a record for {CAPACITY}");
        Token { record: self, number, panics: false }
    }

    /// Returns a token that panics when it is dropped.
    pub fn panicking_token(&'static self) -> Token {
        let mut token = self.token();
        token.panics = true;
        token
    }

    pub fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// Returns the number of live tokens, and checks that none was dropped twice.
    pub fn alive(&self) -> usize {
        assert_eq!(self.twice.load(Ordering::SeqCst), 0, "dropped more than once");
        let gone = self.gone.load(Ordering::SeqCst);
        self.made() - gone
    }
}

pub struct Token {
    record: &'static DropRecord,
    number: usize,
    panics: bool,
}

impl Token {
    pub fn is_alive(&self) -> bool {
        !self.record.dropped[self.number].load(Ordering::SeqCst)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.record.dropped[self.number].swap(true, Ordering::SeqCst) {
            self.record.twice.fetch_add(1, Ordering::SeqCst);
        } else {
            self.record.gone.fetch_add(1, Ordering::SeqCst);
        }
        if self.panics {
            // Without the panic hook, which would print it.
            resume_unwind(Box::new("a token panics"));
        }
    }
}

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "token {}", self.number)
    }
}
