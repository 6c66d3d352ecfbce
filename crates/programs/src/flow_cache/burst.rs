//! Packets that are counted together.

use core::ops::Range;

use capture::Macs;

use super::arrival::Arrival;

/// Packets in their order and, if records have MAC addresses, those of each.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    packets: Vec<Arrival>,
    macs: Vec<Option<Macs>>,
}

/// A part of a burst.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) packets: &'a [Arrival],
    macs: &'a [Option<Macs>],
}

impl Burst {
    pub(crate) fn with_capacity(packets: usize) -> Self {
        Self { packets: Vec::with_capacity(packets), macs: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, packet: Arrival) {
        self.packets.push(packet);
    }

    /// Adds the MAC addresses of the packet that is [pushed](Self::push) next.
    pub(crate) fn announce(&mut self, macs: Option<Macs>) {
        self.macs.push(macs);
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn part(&self, range: Range<usize>) -> Part<'_> {
        let macs = self.macs.get(range.clone()).unwrap_or_default();
        Part { packets: &self.packets[range], macs }
    }

    pub(crate) fn clear(&mut self) {
        self.packets.clear();
        self.macs.clear();
    }
}

impl Part<'_> {
    /// Returns the MAC addresses of a packet.
    #[cold]
    pub(crate) fn macs(&self, index: usize) -> Option<Macs> {
        self.macs.get(index).copied().flatten()
    }
}
