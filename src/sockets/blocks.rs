//! Sets of ports within a block: 512 consecutive ports, a bit for each.

use core::ops::{BitOr, RangeInclusive};

/// Ports of a block.
pub(super) const BLOCK: u16 = 512;

/// Ports of a word of a block.
const WORD: u16 = u64::BITS as u16;

const WORDS: usize = (BLOCK / WORD) as usize;

/// A set of ports of a block. Ports are taken modulo 512.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block([u64; WORDS]);

impl Block {
    pub(super) const EMPTY: Self = Self([0; WORDS]);

    const fn word(port: u16) -> usize {
        (port % BLOCK / WORD) as usize
    }

    const fn bit(port: u16) -> u64 {
        1 << (port % WORD)
    }

    #[inline]
    pub(super) fn contains(&self, port: u16) -> bool {
        self.0[Self::word(port)] & Self::bit(port) != 0
    }

    /// Inserts a port. Returns whether it was absent.
    pub(super) fn insert(&mut self, port: u16) -> bool {
        let is_absent = !self.contains(port);
        self.0[Self::word(port)] |= Self::bit(port);
        is_absent
    }

    /// Removes a port. Returns whether the set is empty now.
    pub(super) fn remove(&mut self, port: u16) -> bool {
        let word = &mut self.0[Self::word(port)];
        *word &= !Self::bit(port);
        *word == 0 && *self == Self::EMPTY
    }

    /// Returns the first port of a range within the block that is absent and for which `is_free`
    /// returns true.
    pub(super) fn find_absent(
        &self,
        ports: RangeInclusive<u16>,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let (mut first, last) = ports.into_inner();
        loop {
            let mut absent = !self.0[Self::word(first)] & u64::MAX << (first % WORD);
            while absent != 0 {
                let port = first / WORD * WORD + absent.trailing_zeros() as u16;
                if port > last {
                    return None;
                }
                if is_free(port) {
                    return Some(port);
                }
                absent &= absent - 1;
            }
            if first / WORD == last / WORD {
                return None;
            }
            first = (first / WORD + 1) * WORD;
        }
    }

    /// Iterates over the ports, modulo 512.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> {
        (0..BLOCK).filter(|port| self.contains(*port))
    }
}

/// The union of both sets.
impl BitOr for Block {
    type Output = Self;

    #[inline]
    fn bitor(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_ports_are_found_in_any_range_of_a_block() {
        let mut block = Block::EMPTY;
        let find = |block: &Block, ports| block.find_absent(ports, |port| port != 1025);
        for port in 1024..1536 {
            let last = 1535;
            let expected = [port, port + 1][usize::from(port == 1025)];
            assert_eq!(find(&block, port..=last), Some(expected));
            assert_eq!(find(&block, 1024..=last), Some(expected));
            assert!(block.insert(port) && !block.insert(port) && block.contains(port));
        }
        assert_eq!(find(&block, 1024..=1535), None);
        assert!(!block.remove(1300));
        assert_eq!((find(&block, 1024..=1299), find(&block, 1301..=1535)), (None, None));
        assert_eq!(find(&block, 1299..=1301), Some(1300));
        assert_eq!(block.find_absent(1024..=1535, |_| false), None);
        assert_eq!(block.ports().count(), 511);
        let both = block | Block::EMPTY;
        assert_eq!(both, block);
        assert!((1024..1535).all(|port| !block.remove(port)) && block.remove(1535));
    }
}
