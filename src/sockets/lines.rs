//! Sets of ports within a line: 512 consecutive ports.
//!
//! ```text
//!     line      │ a bit for each port: 8 words │
//!
//!     window    │ 0 │ start / 8: 6 bits │ a bit for each of 57 ports from the start on │
//! ```
//!
//! Most sets have one port, or consecutive ones, so that a window of 8 bytes is enough. Ports are
//! taken modulo 512.

use core::ops::{BitOr, RangeInclusive};

/// Ports of a line.
pub(super) const LINE: u16 = 512;

/// Ports of a word of a line.
const WORD: u16 = u64::BITS as u16;

const WORDS: usize = (LINE / WORD) as usize;

/// Ports of a window.
const WINDOW: u16 = 57;

/// A window starts at a multiple of this.
const STEP: u16 = 8;

/// Any set of ports of a line: a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line([u64; WORDS]);

impl Line {
    pub(super) const EMPTY: Self = Self([0; WORDS]);

    const fn word(port: u16) -> usize {
        (port % LINE / WORD) as usize
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

    /// Removes a port. Returns whether the line is empty now.
    pub(super) fn remove(&mut self, port: u16) -> bool {
        let word = &mut self.0[Self::word(port)];
        *word &= !Self::bit(port);
        *word == 0 && *self == Self::EMPTY
    }

    /// Returns the first port of these, all of this line, that is absent and for which `is_free`
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
        (0..LINE).filter(|port| self.contains(*port))
    }
}

/// All ports of both sets.
impl BitOr for Line {
    type Output = Self;

    #[inline]
    fn bitor(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }
}

/// Ports of a line that are near one another. The highest bit is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window(u64);

impl Window {
    pub(super) const EMPTY: Self = Self(0);

    const fn new(start: u16, bits: u64) -> Self {
        Self((start as u64 / STEP as u64) << WINDOW | bits)
    }

    /// The window of one port.
    pub(super) const fn of(port: u16) -> Self {
        Self::new(port % LINE / STEP * STEP, 1 << (port % STEP))
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    #[inline]
    const fn start(self) -> u16 {
        (self.0 >> WINDOW) as u16 * STEP
    }

    #[inline]
    const fn bits(self) -> u64 {
        self.0 & ((1 << WINDOW) - 1)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.bits() == 0
    }

    /// The bit of a port, or zero if it is beyond the window.
    #[inline]
    const fn bit(self, port: u16) -> u64 {
        let offset = (port % LINE).wrapping_sub(self.start());
        if offset < WINDOW { 1 << offset } else { 0 }
    }

    #[inline]
    pub(super) const fn contains(self, port: u16) -> bool {
        self.0 & self.bit(port) != 0
    }

    /// Returns the window with one more port, if it is not beyond it.
    #[inline]
    pub(super) fn with(self, port: u16) -> Option<Self> {
        let bit = self.bit(port);
        (bit != 0).then_some(Self(self.0 | bit))
    }

    /// Returns the window without a port.
    #[inline]
    pub(super) const fn without(self, port: u16) -> Self {
        Self(self.0 & !self.bit(port))
    }

    #[inline]
    pub(super) fn line(self) -> Line {
        let (word, shift) = (Line::word(self.start()), self.start() % WORD);
        let mut line = Line::EMPTY;
        line.0[word] = self.bits() << shift;
        if let Some(next) = line.0.get_mut(word + 1) {
            *next = self.bits() >> 1 >> (WORD - 1 - shift);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_ports_from_its_first_on() {
        for first in [0, 7, 8, 63, 100, 450, 504, 511, 1024, 1535] {
            let (window, start) = (Window::of(first), first % LINE / STEP * STEP);
            for port in 0..LINE {
                let with = window.with(port);
                assert_eq!(with.is_some(), (start..start + WINDOW).contains(&port));
                let Some(with) = with else { continue };
                let mut line = window.line();
                assert_eq!((line.insert(port), with.line()), (!window.contains(port), line));
                assert!(with.contains(port) && with.contains(first) && with.to_bits() >> 63 == 0);
                assert!(with.without(first).without(port).is_empty());
            }
            assert!(window.line().ports().eq([first % LINE]));
        }
    }

    #[test]
    fn a_line_is_empty_after_its_last_port_is_removed() {
        let mut line = Line::EMPTY;
        for port in [70, 120, 300] {
            assert!(line.insert(port) && !line.insert(port));
        }
        assert_eq!([300, 70, 120].map(|port| line.remove(port)), [false, false, true]);
    }

    #[test]
    fn the_first_absent_port_is_found() {
        let mut line = Line::EMPTY;
        (0..LINE).for_each(|port| _ = line.insert(port));
        let find = |line: &Line, ports| line.find_absent(ports, |port| port != 1025);
        assert_eq!(find(&line, 1024..=1535), None);
        for (free, last) in [(1024, 1535), (1200, 1200), (1535, 1535), (1025, 1535)] {
            line.remove(free);
            let expected = (free != 1025).then_some(free);
            assert_eq!(find(&line, 1024..=last), expected);
            assert_eq!(find(&line, free..=last), expected);
            assert!(free == last || find(&line, free + 1..=last).is_none());
            line.insert(free);
        }
        line.remove(1300);
        assert_eq!((find(&line, 1024..=1299), find(&line, 1301..=1535)), (None, None));
        assert_eq!(find(&line, 1299..=1301), Some(1300));
    }
}
