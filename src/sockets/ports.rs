//! Multisets of ports at local addresses, which are searched 512 ports at a time.
//!
//! ```text
//!     sets     (address, port / 512) → the ports, see port_sets.rs
//!     more     (address, port)       → how many times more than once
//! ```
//!
//! - **P1** No count is zero. A port with a count is in its set.

use core::hash::BuildHasher;

use super::lines::Line;
use super::local::LocalWords;
use super::port_sets::PortSets;
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};
use crate::trash::TrashMap;

/// Ports at local addresses.
#[derive(Clone)]
pub(super) struct Ports<S, A: Allocator + Clone = Global> {
    sets: PortSets<LocalWords, S, A>,
    more: TrashMap<LocalWords, usize, S, A>,
}

impl<S: Clone, A: Allocator + Clone> Ports<S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            sets: PortSets::new_in(hasher, memory),
            more: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
        }
    }
}

impl<S, A: Allocator + Clone> Ports<S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        self.sets.allocation_size() + self.more.allocation_size()
    }
}

impl<S: BuildHasher, A: Allocator + Clone> Ports<S, A> {
    /// Returns the ports of the line with a port that are in the set at this address.
    #[inline]
    pub(super) fn line(&self, at: LocalWords) -> Line {
        self.sets.get(&at.line())
    }

    #[inline]
    pub(super) fn contains(&self, at: LocalWords) -> bool {
        self.sets.contains(&at.line(), at.port())
    }

    /// Inserts a port once more. Returns whether it was absent, or `None` if memory allocation
    /// fails.
    pub(super) fn insert(&mut self, at: LocalWords) -> Option<bool> {
        // First here: most connections of a server have one port.
        if let Some(count) = self.more.get_mut(&at) {
            *count += 1;
            return Some(false);
        }
        match self.sets.insert(at.line(), at.port())? {
            true => Some(true),
            false => self.more.try_insert(at, 1).is_ok().then_some(false),
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
        self.sets.remove(&at.line(), at.port());
        true
    }

    pub(super) fn clear(&mut self) {
        self.sets.clear();
        self.more.clear();
    }

    /// Returns whether the maps are valid, and both have the same ports as often, if this has those
    /// with counts as often in addition as `more_of` returns.
    pub(super) fn is_equal(
        &self,
        other: &Ports<DefaultHashBuilder>,
        more_of: impl Fn(&LocalWords) -> usize,
    ) -> bool {
        let Self { sets, more } = self;
        (sets.len(), more.len()) == (other.sets.len(), other.more.len())
            && sets.validate().is_ok()
            && more.validate().is_ok()
            && sets.iter().all(|(at, line)| other.sets.get(at) == line)
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

    #[test]
    fn a_port_is_in_the_set_as_often_as_it_was_inserted() {
        let mut ports = Ports::new_in(&DefaultHashBuilder::with_seed(1), &Global);
        for port in [0, 1, 63, 64, 511, 512, u16::MAX] {
            for times in 0..3 {
                assert_eq!(ports.insert(at(port)), Some(times == 0));
                assert!(ports.contains(at(port)));
            }
        }
        assert!(ports.line(at(5)).ports().eq([0, 1, 63, 64, 511]));
        assert!(ports.line(at(700)).ports().eq([0]));
        assert!(!ports.contains(at(2)) && !ports.contains(at(1024)));
        let empty = Ports::new_in(&DefaultHashBuilder::with_seed(2), &Global);
        for port in [0, 1, 63, 64, 511, 512, u16::MAX] {
            assert!(!ports.is_equal(&empty, |_| 0));
            for times in 0..3 {
                assert!(ports.contains(at(port)));
                assert_eq!(ports.remove(at(port)), times == 2);
            }
            assert!(!ports.contains(at(port)));
        }
        assert!(ports.is_equal(&empty, |_| 0));
    }
}
