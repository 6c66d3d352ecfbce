//! The ports of connections, as `bind` and the search for ephemeral ports need them.
//!
//! ```text
//!     occupied    the local ports of connections, by local address
//!                 the ports that these addresses have, by version
//!     v4_words    (remote address and port, local address, local port / 64)
//!     v6_words      → a bit for each local port
//!     busy        the last counts of `occupied` that were incremented: most connections of a
//!                 server cost no search
//! ```
//!
//! - **C2** `occupied` has the local port of each connection of the maps at its address, and each
//!   port at an address once more at the address that is any of that version; but for the
//!   connections that a count of `busy` has. That is 0, unless `occupied` has the port there more
//!   than once.
//! - **C3** Each bit of a word is that of a connection of the maps, and no word is zero. The other
//!   way round, a connection has a bit if its port is 32,768 or more, or was in the range of
//!   [`ConnectedPorts::track`], and there was memory.

use core::hash::{BuildHasher, Hash};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

use super::local::WORD;
use super::local::{LocalWords, Scope};
use super::ports::{Ports, bit};
use super::{Local, map_error};
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::{Allocator, Global};
use crate::trash::TrashMap;

/// The first of the local ports of which connections have bits in any case: systems select
/// ephemeral ports from here on.
const EPHEMERAL: u16 = 32_768;

/// Ports at local addresses that have counts of their own.
const BUSY: usize = 4;

/// A port at a local address, and how many of its connections `occupied` does not have.
#[derive(Clone, Copy)]
struct Busy {
    at: LocalWords,
    count: usize,
}

impl Busy {
    const NONE: Self = Self { at: LocalWords::NONE, count: 0 };
}

/// The ports of connections.
#[derive(Clone)]
pub(super) struct ConnectedPorts<S, A: Allocator + Clone> {
    occupied: Ports<S, A>,
    /// By the lowest bits of the port.
    busy: [Busy; BUSY],
    v4_words: TrashMap<FiveTuple<Ipv4Addr>, u64, S, A>,
    v6_words: TrashMap<FiveTuple<Ipv6Addr>, u64, S, A>,
    /// The first and the last port of which new connections have bits.
    tracked: (u16, u16),
}

impl<S: Clone, A: Allocator + Clone> ConnectedPorts<S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            occupied: Ports::new_in(hasher, memory),
            busy: [Busy::NONE; BUSY],
            v4_words: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            v6_words: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            tracked: (EPHEMERAL, u16::MAX),
        }
    }
}

impl<S, A: Allocator + Clone> ConnectedPorts<S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        let words = self.v4_words.allocation_size() + self.v6_words.allocation_size();
        self.occupied.allocation_size() + words
    }

    /// From now on, connections from this range have bits.
    pub(super) fn track(&mut self, ports: &RangeInclusive<u16>) {
        let (first, last) = self.tracked;
        self.tracked = (first.min(*ports.start()), last.max(*ports.end()));
    }

    fn is_tracked(&self, key: &FlowKey) -> bool {
        (self.tracked.0..=self.tracked.1).contains(&key.dport())
    }
}

impl<S: BuildHasher, A: Allocator + Clone> ConnectedPorts<S, A> {
    /// The bits of the ports of a word, that of the port of `local`, that connections have at its
    /// address.
    #[inline]
    pub(super) fn taken(&self, local: &Local) -> u64 {
        let word = |scope| self.occupied.word(LocalWords::new(&local.in_scope(scope)));
        match local.scope {
            Scope::Any => word(Scope::AnyV4) | word(Scope::AnyV6),
            scope => word(scope),
        }
    }

    /// The bits of the local ports of a word, that of the port of `key`, that connections to its
    /// remote socket are known to have.
    #[inline]
    pub(super) fn taken_to(&self, key: &FlowKey) -> u64 {
        let word = match word_of(key) {
            FlowKey::V4(key) => self.v4_words.get(&key),
            FlowKey::V6(key) => self.v6_words.get(&key),
        };
        word.copied().unwrap_or(0)
    }

    /// Inserts the port of a connection. Returns false if memory allocation fails.
    #[inline]
    pub(super) fn insert(&mut self, key: &FlowKey) -> bool {
        let address = LocalWords::of_local(key);
        let busy = busy(&mut self.busy, address);
        if busy.at == address {
            busy.count += 1;
        } else if !self.insert_occupied(key, address) {
            return false;
        }
        if self.is_tracked(key) {
            self.set_tracked(key);
        }
        true
    }

    #[inline(never)]
    fn insert_occupied(&mut self, key: &FlowKey, address: LocalWords) -> bool {
        match self.occupied.insert(address) {
            None => return false,
            Some(true) if self.occupied.insert(family(key)).is_none() => {
                self.occupied.remove(address);
                return false;
            }
            Some(true) => {}
            Some(false) => {
                let busy = busy(&mut self.busy, address);
                if busy.count == 0 {
                    busy.at = address;
                }
            }
        }
        true
    }

    /// Sets the bit of a connection. Without memory it has none; then it costs a lookup.
    #[inline(never)]
    fn set_tracked(&mut self, key: &FlowKey) {
        let bit = bit(key.dport());
        match word_of(key) {
            FlowKey::V4(word) => set_bit(&mut self.v4_words, word, bit),
            FlowKey::V6(word) => set_bit(&mut self.v6_words, word, bit),
        }
    }

    /// Removes the port of a connection.
    #[inline]
    pub(super) fn remove(&mut self, key: &FlowKey) {
        let address = LocalWords::of_local(key);
        let busy = busy(&mut self.busy, address);
        if busy.at == address && busy.count > 0 {
            busy.count -= 1;
        } else {
            self.remove_occupied(key, address);
        }
        if self.is_tracked(key) {
            self.clear_tracked(key);
        }
    }

    #[inline(never)]
    fn remove_occupied(&mut self, key: &FlowKey, address: LocalWords) {
        let busy = busy(&mut self.busy, address);
        if busy.at == address {
            // Perhaps `occupied` has the port only once after this.
            *busy = Busy::NONE;
        }
        if self.occupied.remove(address) {
            self.occupied.remove(family(key));
        }
    }

    /// Clears the bit of a connection, if it has one.
    #[inline(never)]
    fn clear_tracked(&mut self, key: &FlowKey) {
        let bit = bit(key.dport());
        match word_of(key) {
            FlowKey::V4(word) => clear_bit(&mut self.v4_words, &word, bit),
            FlowKey::V6(word) => clear_bit(&mut self.v6_words, &word, bit),
        }
    }

    /// Removes all ports.
    pub(super) fn clear(&mut self) {
        self.occupied.clear();
        self.busy = [Busy::NONE; BUSY];
        self.v4_words.clear();
        self.v6_words.clear();
    }

    /// Checks C2 and C3 for these connections; `is_connected` returns whether there is one.
    pub(super) fn validate(
        &self,
        keys: impl Iterator<Item = FlowKey>,
        is_connected: impl Fn(&FlowKey) -> bool,
    ) -> Result<(), InvariantError> {
        let hasher = DefaultHashBuilder::with_seed(0);
        let mut occupied = Ports::new_in(&hasher, &Global);
        for key in keys {
            if occupied.insert(LocalWords::of_local(&key)) == Some(true) {
                occupied.insert(family(&key));
            }
        }
        let busy = |at: &LocalWords| self.busy.iter().find(|busy| busy.at == *at);
        let more = |at: &LocalWords| busy(at).map_or(0, |busy| busy.count);
        let is_equal = self.occupied.is_equal(&occupied, more);
        ensure(is_equal, || "C2: a count of connections at a local address is wrong")?;
        validate_words(&self.v4_words, |key| is_connected(&FlowKey::V4(key)))?;
        validate_words(&self.v6_words, |key| is_connected(&FlowKey::V6(key)))
    }
}

/// The count that a port at a local address may have.
#[inline]
fn busy(all: &mut [Busy; BUSY], at: LocalWords) -> &mut Busy {
    &mut all[usize::from(at.port()) % BUSY]
}

/// The key under which the port of a connection is counted: any address of its version.
fn family(key: &FlowKey) -> LocalWords {
    LocalWords::of_packet(key, false)[1]
}

/// The key of the word with the local port of a connection.
fn word_of(key: &FlowKey) -> FlowKey {
    let word = key.dport() / WORD as u16;
    match *key {
        FlowKey::V4(key) => FlowKey::V4(FiveTuple { dport: word, ..key }),
        FlowKey::V6(key) => FlowKey::V6(FiveTuple { dport: word, ..key }),
    }
}

/// Sets a bit of a word, if there is memory.
fn set_bit<K, S, A>(words: &mut TrashMap<K, u64, S, A>, key: K, bit: u64)
where
    K: Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
{
    match words.get_mut(&key) {
        Some(word) => *word |= bit,
        None => drop(words.try_insert(key, bit)),
    }
}

fn clear_bit<K, S, A>(words: &mut TrashMap<K, u64, S, A>, key: &K, bit: u64)
where
    K: Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
{
    if let Some(word) = words.get_mut(key) {
        *word &= !bit;
        if *word == 0 {
            words.remove(key);
        }
    }
}

/// Checks C3.
fn validate_words<I: Copy, S, A>(
    words: &TrashMap<FiveTuple<I>, u64, S, A>,
    is_connected: impl Fn(FiveTuple<I>) -> bool,
) -> Result<(), InvariantError>
where
    S: BuildHasher,
    A: Allocator + Clone,
    FiveTuple<I>: Eq + Hash,
{
    words.validate().map_err(map_error)?;
    for (key, word) in words {
        let ports = (0..WORD as u16).filter(|port| word & bit(*port) != 0);
        let mut keys = ports
            .map(|port| FiveTuple { dport: key.dport.wrapping_mul(WORD as u16) + port, ..*key });
        let are_connected = *word != 0 && keys.all(&is_connected);
        ensure(are_connected, || "C3: a port has a bit and no connection")?;
    }
    Ok(())
}
