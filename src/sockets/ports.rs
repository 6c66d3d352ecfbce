//! Multisets of ports at local addresses, which are searched 64 ports at a time.
//!
//! ```text
//!     words    (address, port / 64) → a bit for each port that is in the set
//!     more     (address, port)      → how many times more than once
//! ```
//!
//! - **P1** No word is zero, and no count. A port with a count has its bit.

use core::hash::BuildHasher;

use super::local::{LocalWords, WORD};
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};
use crate::trash::TrashMap;

/// Ports at local addresses.
#[derive(Clone)]
pub(super) struct Ports<S, A: Allocator + Clone = Global> {
    words: TrashMap<LocalWords, u64, S, A>,
    more: TrashMap<LocalWords, usize, S, A>,
}

/// The bit of a port in its word.
pub(super) const fn bit(port: u16) -> u64 {
    1 << (port as u32 % WORD)
}

impl<S: Clone, A: Allocator + Clone> Ports<S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            words: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            more: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
        }
    }
}

impl<S, A: Allocator + Clone> Ports<S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        self.words.allocation_size() + self.more.allocation_size()
    }
}

impl<S: BuildHasher, A: Allocator + Clone> Ports<S, A> {
    /// Returns the word with a port: the bits of the ports that are in the set at this address.
    #[inline]
    pub(super) fn word(&self, at: LocalWords) -> u64 {
        if self.words.is_empty() { 0 } else { self.words.get(&at.block()).copied().unwrap_or(0) }
    }

    /// Inserts a port once more. Returns whether it was absent, or `None` if memory allocation
    /// fails.
    pub(super) fn insert(&mut self, at: LocalWords) -> Option<bool> {
        // First here: most connections of a server have one port.
        if let Some(count) = self.more.get_mut(&at) {
            *count += 1;
            return Some(false);
        }
        let bit = bit(at.port());
        match self.words.get_mut(&at.block()) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                Some(true)
            }
            Some(_) => self.more.try_insert(at, 1).is_ok().then_some(false),
            None => self.words.try_insert(at.block(), bit).is_ok().then_some(true),
        }
    }

    /// Removes a port once. Returns whether it is absent now.
    pub(super) fn remove(&mut self, at: LocalWords) -> bool {
        if let Some(count) = self.more.get_mut(&at) {
            // An inconsistent hasher makes counts wrong; they must not underflow.
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.more.remove(&at);
            }
            return false;
        }
        if let Some(word) = self.words.get_mut(&at.block()) {
            *word &= !bit(at.port());
            if *word == 0 {
                self.words.remove(&at.block());
            }
        }
        true
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.more.clear();
    }

    /// Returns whether the maps are valid, and both have the same ports as often, if this has those
    /// with counts as often in addition as `more_of` returns.
    pub(super) fn is_equal(
        &self,
        other: &Ports<DefaultHashBuilder>,
        more_of: impl Fn(&LocalWords) -> usize,
    ) -> bool {
        let Self { words, more } = self;
        (words.len(), more.len()) == (other.words.len(), other.more.len())
            && words.validate().is_ok()
            && more.validate().is_ok()
            && words.iter().all(|(at, word)| other.words.get(at) == Some(word))
            && more.iter().all(|(at, count)| other.more.get(at) == Some(&(count + more_of(at))))
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use super::*;
    use crate::sockets::Local;

    fn at(port: u16) -> LocalWords {
        LocalWords::new(&Local::new(SocketAddr::from(([192, 0, 2, 1], port)), 6))
    }

    fn contains(ports: &Ports<DefaultHashBuilder>, port: u16) -> bool {
        ports.word(at(port)) & bit(port) != 0
    }

    #[test]
    fn a_port_is_in_the_set_as_often_as_it_was_inserted() {
        let mut ports = Ports::new_in(&DefaultHashBuilder::with_seed(1), &Global);
        for port in [0, 1, 63, 64, u16::MAX] {
            for times in 0..3 {
                assert_eq!(ports.insert(at(port)), Some(times == 0));
                assert!(contains(&ports, port));
            }
        }
        assert_eq!((ports.word(at(5)), ports.word(at(70))), (1 << 63 | 0b11, 1));
        assert!(!contains(&ports, 2) && !contains(&ports, 128));
        let empty = Ports::new_in(&DefaultHashBuilder::with_seed(2), &Global);
        for port in [0, 1, 63, 64, u16::MAX] {
            assert!(!ports.is_equal(&empty, |_| 0));
            for times in 0..3 {
                assert!(contains(&ports, port));
                assert_eq!(ports.remove(at(port)), times == 2);
            }
            assert!(!contains(&ports, port));
        }
        assert!(ports.is_equal(&empty, |_| 0));
    }
}
