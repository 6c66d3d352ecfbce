//! Damaged places of a capture.

use core::fmt;

/// A damaged place of a capture, from which reading continued behind it, if that was possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the damaged record or block in the decompressed bytes.
    pub offset: u64,
    pub kind: DamageKind,
    /// The offset of the record or block from which reading continued; `None` if none was found.
    pub resumed: Option<u64>,
}

impl Damage {
    /// A record that was cut after `length` bytes, before another file.
    pub(crate) fn before_file(file: u64, length: usize) -> Self {
        Self { offset: file - length as u64, kind: DamageKind::Cut, resumed: Some(file) }
    }
}

/// The kind of a damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The record or block claims this impossible length.
    Length(u64),
    /// The time of the record is far from those before it, and no record follows that confirms it.
    Time,
    /// The two lengths of a block differ, or its fields contradict its length.
    Malformed,
    /// The block is a packet of an interface that has no description.
    UnknownInterface,
    /// The record is empty in all fields.
    Zeros,
    /// The record was cut, and another file follows.
    Cut,
}

/// The damaged places of a capture: all are counted, the first ones are kept.
#[derive(Clone, Debug, Default)]
pub struct Damages {
    first: Vec<Damage>,
    count: u64,
}

impl Damages {
    /// Number of damaged places that are kept.
    const KEPT: usize = 8;

    pub(crate) fn add(&mut self, damage: Damage) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(damage);
        }
    }

    /// Returns the number of damaged places.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first damaged places.
    pub fn first(&self) -> &[Damage] {
        &self.first
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged at byte {}: ", self.offset)?;
        match self.kind {
            DamageKind::Length(length) => write!(f, "a record of {length} bytes")?,
            DamageKind::Time => write!(f, "a record of a time that no others have")?,
            DamageKind::Malformed => write!(f, "a malformed block")?,
            DamageKind::UnknownInterface => write!(f, "a packet of an undescribed interface")?,
            DamageKind::Zeros => write!(f, "a record of zeros")?,
            DamageKind::Cut => write!(f, "a record that was cut, before another file")?,
        }
        match self.resumed {
            Some(offset) => write!(f, "; reading continued at byte {offset}"),
            None => write!(f, "; no record was found behind it"),
        }
    }
}

/// A search for the next record or block, after a damaged one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The offset of the damaged one.
    pub(crate) offset: u64,
    pub(crate) kind: DamageKind,
    /// Its end, if its length was right after all: then it is not damaged.
    pub(crate) claimed_end: Option<u64>,
}

impl Search {
    /// Ends the search, at a record or at the end of the capture.
    pub(crate) fn end(self, at: u64, is_found: bool, damages: &mut Damages) {
        if self.claimed_end != Some(at) {
            let resumed = is_found.then_some(at);
            damages.add(Damage { offset: self.offset, kind: self.kind, resumed });
        }
    }
}
