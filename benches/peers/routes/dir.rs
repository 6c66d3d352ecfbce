//! DIR-24-8: an array with a slot for each value of the first 24 bits of an IPv4 address.
//!
//! ```text
//!     slots    0 … 10.0.0 10.0.1 10.0.2 … 2^24        a value and 1, or 0, or a tail
//!                         │
//!     tails               └ 10.0.1.0 … 10.0.1.255     a value and 1, or 0
//! ```
//!
//! A lookup reads one cache line, or two where there are routes longer than 24 bits. The price is
//! 64 MiB, and updates of short routes that write to all slots below them: there are no updates
//! here.

use std::net::Ipv4Addr;

use super::subject::{LpmTable, Match, Route};
use crate::maps::prefetched::prefetch;
use crate::subject::BURST;

/// The bits of an address that index the slots.
const BITS: u32 = 24;

/// Set in a slot whose other bits are the index of a tail.
const TAIL: u32 = 1 << 31;

const TAIL_SLOTS: usize = 1 << (32 - BITS);

pub(crate) struct Dir {
    slots: Vec<u32>,
    tails: Vec<[u32; TAIL_SLOTS]>,
}

impl Dir {
    fn fill(&mut self, route: &Route<Ipv4Addr>) {
        let (first, len) = (route.prefix.address().to_bits(), route.prefix.len());
        let slot = (first >> (32 - BITS)) as usize;
        if len <= BITS {
            self.slots[slot..][..1 << (BITS - len)].fill(route.value + 1);
        } else {
            let at = first as usize % TAIL_SLOTS;
            self.tail(slot)[at..][..1 << (32 - len)].fill(route.value + 1);
        }
    }

    /// Returns the tail of a slot, and creates it if it is absent.
    fn tail(&mut self, slot: usize) -> &mut [u32; TAIL_SLOTS] {
        if self.slots[slot] & TAIL == 0 {
            self.tails.push([self.slots[slot]; TAIL_SLOTS]);
            self.slots[slot] = TAIL | (self.tails.len() - 1) as u32;
        }
        &mut self.tails[(self.slots[slot] & !TAIL) as usize]
    }

    #[inline]
    fn slot(&self, address: Ipv4Addr) -> &u32 {
        &self.slots[(address.to_bits() >> (32 - BITS)) as usize]
    }
}

impl LpmTable<Ipv4Addr> for Dir {
    fn build(routes: &[Route<Ipv4Addr>]) -> Self {
        let mut table = Self { slots: vec![0; 1 << BITS], tails: Vec::new() };
        // A longer route overwrites the shorter ones that cover it.
        let mut routes: Vec<_> = routes.iter().collect();
        routes.sort_by_key(|route| route.prefix.len());
        routes.into_iter().for_each(|route| table.fill(route));
        table
    }

    #[inline]
    fn lookup(&self, address: Ipv4Addr) -> Option<Match> {
        let mut slot = *self.slot(address);
        if slot & TAIL != 0 {
            slot = self.tails[(slot & !TAIL) as usize][address.to_bits() as usize % TAIL_SLOTS];
        }
        slot.checked_sub(1).map(Match::without_length)
    }

    #[inline]
    fn burst(&self, addresses: &[Ipv4Addr; BURST]) -> u64 {
        addresses.iter().for_each(|&address| prefetch(self.slot(address)));
        let digests =
            addresses.iter().map(|&address| self.lookup(address).map_or(0, Match::digest));
        digests.fold(0, u64::wrapping_add)
    }
}
