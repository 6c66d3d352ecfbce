//! A handful of connections: an array, and a tag for each.
//!
//! ```text
//!     tags      │ a │ b │ c │ d │   │   │   │   │     two words: a byte says "not this one" of 127 in 128
//!     sockets   │ key a, socket │ key b, socket │ …
//! ```
//!
//! Comparing names one after the other means guessing wrong at the one that is equal. All tags are compared at
//! once, without a guess: two words of eight are 16 connections. The tag is of a hash without a key. Whoever chooses
//! connections of one tag has 16 of them compared.
//!
//! - **F1** The byte of a slot is the tag of its connection, and zero where there is none.

use alloc::vec::Vec;
use core::mem;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::key::flow::{FiveTuple, FlowKey};
use crate::raw::tags;

/// Connections that there is room for: those of two words. With more, a map is as fast.
pub(super) const FEW: usize = 16;

/// Tags of a word.
const SLOTS: usize = 8;

/// Up to 16 connections.
#[derive(Clone, Debug)]
pub(super) struct Few<T> {
    tags: [u64; FEW / SLOTS],
    sockets: Vec<(FlowKey, T)>,
}

impl<T> Few<T> {
    pub(super) const fn new() -> Self {
        Self { tags: [0; FEW / SLOTS], sockets: Vec::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(FlowKey, T)> {
        self.sockets.iter()
    }

    #[inline]
    pub(super) fn get(&self, key: &FlowKey) -> Option<&T> {
        self.find(key).map(|at| &self.sockets[at].1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        self.find(key).map(|at| &mut self.sockets[at].1)
    }

    /// Makes room for so many more, and says whether there is: in the array, and in memory.
    pub(super) fn reserve(&mut self, additional: usize) -> bool {
        self.len() + additional <= FEW && self.sockets.try_reserve(additional).is_ok()
    }

    /// Puts a connection in that is not there, if there is room.
    pub(super) fn push(&mut self, key: FlowKey, socket: T) {
        self.remember(self.len(), &key);
        self.sockets.push((key, socket));
    }

    pub(super) fn remove(&mut self, key: &FlowKey) -> Option<T> {
        let at = self.find(key)?;
        let (last, found) = self.pop()?;
        let Some((own, socket)) = self.sockets.get_mut(at) else { return Some(found) };
        // The last one takes the place of the one that leaves.
        *own = last;
        let socket = mem::replace(socket, found);
        self.forget(at);
        self.remember(at, &last);
        Some(socket)
    }

    /// Takes out the last one.
    pub(super) fn pop(&mut self) -> Option<(FlowKey, T)> {
        let last = self.sockets.pop()?;
        self.forget(self.len());
        Some(last)
    }

    /// A slot that is free has this connection.
    fn remember(&mut self, at: usize, key: &FlowKey) {
        self.tags[at / SLOTS] = tags::with(self.tags[at / SLOTS], at % SLOTS, tags(key));
    }

    /// A slot is free.
    fn forget(&mut self, at: usize) {
        self.tags[at / SLOTS] = tags::without(self.tags[at / SLOTS], at % SLOTS);
    }

    #[inline]
    fn find(&self, key: &FlowKey) -> Option<usize> {
        // Two searches, each of which compares names of one version.
        match key {
            FlowKey::V4(key) => {
                let is_it = |other: &_| matches!(other, FlowKey::V4(other) if other == key);
                self.search(tags_v4(key), is_it)
            }
            FlowKey::V6(key) => {
                let is_it = |other: &_| matches!(other, FlowKey::V6(other) if other == key);
                self.search(tags_v6(key), is_it)
            }
        }
    }

    #[inline]
    fn search(&self, tags: u64, is_it: impl Fn(&FlowKey) -> bool) -> Option<usize> {
        // There is no guess with one alone.
        if let [(only, _)] = &self.sockets[..] {
            return is_it(only).then_some(0);
        }
        let [first, second] = self.tags.map(|word| tags::matches(word, tags).bits());
        // A slot of the first word has bit 7 of its byte, one of the second bit 6: no guess which it is.
        let mut candidates = first | second >> 1;
        while candidates != 0 {
            let bit = candidates.trailing_zeros() as usize;
            let at = bit / 8 + SLOTS * (1 - bit % 2);
            if self.sockets.get(at).is_some_and(|(other, _)| is_it(other)) {
                return Some(at);
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// Whether tags are those of the connections.
    pub(super) fn is_right(&self) -> bool {
        let mut right = [0; FEW / SLOTS];
        for (at, (key, _)) in self.sockets.iter().enumerate().take(FEW) {
            right[at / SLOTS] = tags::with(right[at / SLOTS], at % SLOTS, tags(key));
        }
        self.len() <= FEW && self.tags == right
    }
}

fn tags(key: &FlowKey) -> u64 {
    match key {
        FlowKey::V4(key) => tags_v4(key),
        FlowKey::V6(key) => tags_v6(key),
    }
}

#[inline]
fn tags_v4(key: &FiveTuple<Ipv4Addr>) -> u64 {
    let ends = u64::from(key.src.to_bits()) << 32 ^ u64::from(key.dst.to_bits());
    tags_of(ends, key.sport, key.dport, key.protocol)
}

#[inline]
fn tags_v6(key: &FiveTuple<Ipv6Addr>) -> u64 {
    let ends = key.src.to_bits() ^ key.dst.to_bits().rotate_left(32);
    tags_of((ends >> 64) as u64 ^ ends as u64, key.sport, key.dport, key.protocol)
}

/// The tags of a connection: of all that may differ.
#[inline]
fn tags_of(ends: u64, sport: u16, dport: u16, protocol: u8) -> u64 {
    let ports = u64::from(sport) << 24 | u64::from(dport) << 8 | u64::from(protocol);
    // Each byte of one half or the other depends on all of both: so do all tags.
    let ends = u128::from(ends ^ 0x243f_6a88_85a3_08d3);
    let product = ends * u128::from(ports ^ 0xa409_3822_299f_31d0);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wrong connections that have the tag of the right one, of all that are not the right one.
    fn wrong(keys: impl Iterator<Item = FlowKey> + Clone) -> f64 {
        let (mut few, mut wrong) = (Few::new(), 0);
        keys.clone().for_each(|key| few.push(key, ()));
        for key in keys.clone() {
            let own = tags(&key);
            let found = few.tags.map(|word| tags::matches(word, own).count());
            wrong += found.iter().sum::<usize>() - 1;
        }
        wrong as f64 / (FEW * (FEW - 1)) as f64
    }

    fn key(client: u32, port: u16) -> FlowKey {
        let (src, dst) = (Ipv4Addr::from_bits(client), Ipv4Addr::new(198, 51, 100, 1));
        FiveTuple { src, dst, sport: port, dport: 443, protocol: 6 }.into()
    }

    #[test]
    fn tags_tell_connections_apart_whatever_they_differ_in() {
        let sets = |first: u32| {
            let near = (0..FEW as u32).map(move |n| key(first + n, 40_000));
            let ports = (0..FEW as u16).map(move |n| key(first, 40_000 + n));
            let far = (0..FEW as u32).map(move |n| key(first ^ n << 24, 40_000));
            [wrong(near), wrong(ports), wrong(far)]
        };
        let mut sums = [0.0; 3];
        for set in 0..100 {
            let wrong = sets(0xc000_0200 + 0x1_0000 * set);
            sums.iter_mut().zip(wrong).for_each(|(sum, wrong)| *sum += wrong / 100.0);
        }
        // One in 128, and what subtraction borrows.
        assert!(sums.iter().all(|&wrong| wrong < 0.02), "{sums:?}");
    }
}
