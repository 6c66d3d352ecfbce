//! The ports in use: one index for `bind` and the search for ephemeral ports.
//!
//! ```text
//!     blocks    (use, local address, protocol, remote socket, port / 512) → 512 bits
//!     more      (use, local address, protocol, port)                      → times beyond one
//!     recent    further times of four ports: most connections of a server cost no search
//! ```
//!
//! | use | ports of | at |
//! |---|---|---|
//! | `Bound` | bound sockets | their address or any |
//! | `Narrower` | sockets bound to a single address | any address of its version |
//! | `Exclusive` | connections without reuse | their local address, and any of its version |
//! | `Shared` | connections with reuse | their local address, and any of its version |
//! | `Remote` | connections | their local address and their remote socket |
//!
//! - **P1** No block is empty, and no count is zero. A port with a count is in its block.
//! - **P2** All uses but `Remote` have a port as often as there are such sockets. The connections
//!   of the maps and the queued connections both count. A connection's port at an address is once
//!   more at any address of that version. A count of `recent` belongs to a port that is in a block.
//! - **P3** Each port of `Remote` is the local port of a connection in the maps. The other way
//!   round, a connection has its port there if that is 32,768 or more, or was in the range of
//!   [`Ports::track`], and there was memory; or since a search came across it.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash, Hasher};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

use super::blocks::{BLOCK, Block};
use super::listeners::{Listener, Place};
use super::local::{LocalWords, Scope};
use super::{Local, Reuse, map_error};
use crate::hash::{DefaultHashBuilder, Prehashed};
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::{Allocator, Global};
use crate::trash::{Entry, TrashMap};

/// The first of the local ports that are known by remote socket in any case: systems select
/// ephemeral ports from here on.
const EPHEMERAL: u16 = 32_768;

/// Ports that have counts of their own.
const RECENT: usize = 4;

/// The sockets that use a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Bound,
    Narrower,
    Exclusive,
    Shared,
    Remote,
}

/// The number of uses.
const USES: usize = 5;

/// The use of a connection.
const fn use_of(allows_reuse: bool) -> Use {
    if allows_reuse { Use::Shared } else { Use::Exclusive }
}

/// A port, or a block of ports, with its use and its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortKey {
    /// The kind of the local address, the protocol, the use, and the port or its block.
    header: u64,
    local: [u64; 2],
    /// The remote address and port, or zeros.
    remote: [u64; 2],
    remote_port: u16,
}

impl PortKey {
    const NONE: Self = Self { header: u64::MAX, local: [0; 2], remote: [0; 2], remote_port: 0 };

    #[inline]
    fn new(used: Use, at: LocalWords) -> Self {
        let LocalWords { header, address: local } = at;
        Self { header: header | (used as u64) << 40, local, remote: [0; 2], remote_port: 0 }
    }

    /// The key of a connection's port by its remote socket.
    #[inline]
    fn to_remote(key: &FlowKey) -> Self {
        let remote = match key {
            FlowKey::V4(key) => key.src.to_bits().into(),
            FlowKey::V6(key) => key.src.to_bits(),
        };
        let remote = [(remote >> 64) as u64, remote as u64];
        let local = Self::new(Use::Remote, LocalWords::of_local(key));
        Self { remote, remote_port: key.sport(), ..local }
    }

    #[inline]
    fn port(&self) -> u16 {
        self.header as u16
    }

    /// The use, as an index.
    #[inline]
    fn used(&self) -> usize {
        (self.header >> 40 & 7) as usize % USES
    }

    /// The key of the block with the port.
    #[inline]
    fn block(self) -> Self {
        let block = u64::from(self.port() / BLOCK);
        Self { header: self.header >> 17 << 17 | block, ..self }
    }
}

impl Hash for PortKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ([high, low], [remote_high, remote_low]) = (self.local, self.remote);
        let header = self.header | u64::from(self.remote_port) << 48;
        if high | remote_high == 0 {
            // One multiplication for all keys of IPv4.
            let addresses = low << 32 | remote_low;
            return state.write_u128(u128::from(header) << 64 | u128::from(addresses));
        }
        state.write_u64(header);
        state.write_u128(u128::from(high) << 64 | u128::from(low));
        state.write_u128(u128::from(remote_high) << 64 | u128::from(remote_low));
    }
}

/// A port, and how many of its connections `blocks` and `more` do not have.
#[derive(Clone, Copy)]
struct Recent {
    at: PortKey,
    count: u32,
}

/// The ports in use.
#[derive(Clone)]
pub(super) struct Ports<S, A: Allocator + Clone = Global> {
    blocks: TrashMap<PortKey, Block, S, A>,
    more: TrashMap<PortKey, u32, S, A>,
    /// The number of blocks of each use: a search skips uses without a port.
    blocks_of: [usize; USES],
    /// By the lowest bits of the port.
    recent: [Recent; RECENT],
    /// The first and the last port of which new connections are known by remote socket.
    tracked: (u16, u16),
}

impl<S: Clone, A: Allocator + Clone> Ports<S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            blocks: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            more: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            blocks_of: [0; USES],
            recent: [Recent { at: PortKey::NONE, count: 0 }; RECENT],
            tracked: (EPHEMERAL, u16::MAX),
        }
    }
}

impl<S, A: Allocator + Clone> Ports<S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        self.blocks.allocation_size() + self.more.allocation_size()
    }

    /// From now on, the ports of connections from this range are known by remote socket.
    pub(super) fn track(&mut self, ports: &RangeInclusive<u16>) {
        let (first, last) = self.tracked;
        self.tracked = (first.min(*ports.start()), last.max(*ports.end()));
    }

    fn is_tracked(&self, port: u16) -> bool {
        (self.tracked.0..=self.tracked.1).contains(&port)
    }
}

impl<S: BuildHasher, A: Allocator + Clone> Ports<S, A> {
    /// Returns the block with the port of a key.
    #[inline]
    fn block(&self, key: PortKey) -> Block {
        if self.blocks_of[key.used()] == 0 {
            return Block::EMPTY;
        }
        self.blocks.get(&key.block()).copied().unwrap_or(Block::EMPTY)
    }

    #[inline]
    fn block_of(&self, used: Use, local: &Local, scope: Scope) -> Block {
        self.block(PortKey::new(used, LocalWords::new(&local.in_scope(scope))))
    }

    /// Inserts a port once more. Returns whether it was absent, or `None` if memory allocation
    /// fails.
    fn insert(&mut self, key: PortKey) -> Option<bool> {
        let is_absent = self.insert_into_block(key)?;
        if !is_absent {
            match self.more.try_entry(key).ok()? {
                Entry::Occupied(mut count) => *count.get_mut() += 1,
                Entry::Vacant(vacant) => _ = vacant.try_insert(1).ok()?,
            }
        }
        Some(is_absent)
    }

    /// Inserts a port into its block, without a count. Returns whether it was absent, or `None` if
    /// memory allocation fails.
    fn insert_into_block(&mut self, key: PortKey) -> Option<bool> {
        match self.blocks.try_entry(key.block()).ok()? {
            Entry::Occupied(mut block) => Some(block.get_mut().insert(key.port())),
            Entry::Vacant(vacant) => {
                let block = vacant.try_insert(Block::EMPTY).ok()?;
                self.blocks_of[key.used()] += 1;
                Some(block.insert(key.port()))
            }
        }
    }

    /// Removes a port once. Returns whether it is absent now.
    fn remove(&mut self, key: PortKey) -> bool {
        // Not `try_entry`: a removal must not fail for want of memory.
        let counted = Prehashed { hash: self.more.hash_of(&key), key: &key };
        if let Some(count) = self.more.get_mut(counted) {
            // An inconsistent hasher makes counts wrong; they must not underflow.
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.more.remove(counted);
            }
            return false;
        }
        let block = key.block();
        let block = Prehashed { hash: self.blocks.hash_of(&block), key: &block };
        if self.blocks.get_mut(block).is_some_and(|ports| ports.remove(key.port())) {
            self.blocks.remove(block);
            // See above.
            let blocks = &mut self.blocks_of[key.used()];
            *blocks = blocks.saturating_sub(1);
        }
        true
    }

    /// Inserts a port at an address, and at the wider one if it was absent. Returns false if memory
    /// allocation fails.
    fn insert_both(&mut self, key: PortKey, wider: PortKey) -> bool {
        match self.insert(key) {
            None => false,
            Some(true) if self.insert(wider).is_none() => {
                self.remove(key);
                false
            }
            Some(_) => true,
        }
    }

    /// Removes a port at an address, and at the wider one if it is absent now.
    fn remove_both(&mut self, key: PortKey, wider: PortKey) {
        if self.remove(key) {
            self.remove(wider);
        }
    }

    /// Inserts the port of a bound socket, if it has one. Returns false if memory allocation fails.
    pub(super) fn insert_bound(&mut self, local: &Local) -> bool {
        let Some((bound, narrower)) = keys_of_bound(local) else { return true };
        if self.insert(bound).is_none() {
            return false;
        }
        let is_counted = narrower.is_none_or(|narrower| self.insert(narrower).is_some());
        if !is_counted {
            self.remove(bound);
        }
        is_counted
    }

    pub(super) fn remove_bound(&mut self, local: &Local) {
        let Some((bound, narrower)) = keys_of_bound(local) else { return };
        self.remove(bound);
        if let Some(narrower) = narrower {
            self.remove(narrower);
        }
    }

    /// Removes the port of a socket that was bound or queued.
    pub(super) fn remove_listener<T>(&mut self, removed: &Listener<T>) {
        match &removed.place {
            Place::Bound(local) => self.remove_bound(local),
            Place::Queued(key) => self.remove_local(key, removed.reuse != Reuse::No),
        }
    }

    /// Inserts the port of a connection of the maps. Returns false if memory allocation fails.
    #[inline]
    pub(super) fn insert_connection(&mut self, key: &FlowKey, allows_reuse: bool) -> bool {
        if !self.insert_local(key, allows_reuse) {
            return false;
        }
        if self.is_tracked(key.dport()) {
            self.insert_remote(key);
        }
        true
    }

    /// Inserts the port of a connection at its local address. Returns false if memory allocation
    /// fails.
    #[inline]
    pub(super) fn insert_local(&mut self, key: &FlowKey, allows_reuse: bool) -> bool {
        let at = PortKey::new(use_of(allows_reuse), LocalWords::of_local(key));
        let recent = recent(&mut self.recent, at);
        if recent.at == at {
            recent.count += 1;
            return true;
        }
        self.insert_first(key, at)
    }

    #[inline(never)]
    fn insert_first(&mut self, key: &FlowKey, at: PortKey) -> bool {
        if !self.insert_both(at, wider(key, at)) {
            return false;
        }
        let recent = recent(&mut self.recent, at);
        if recent.count == 0 {
            recent.at = at;
        }
        true
    }

    /// Inserts the port of a connection to its remote socket. Without memory it is not known, and
    /// costs a search a lookup.
    #[inline(never)]
    pub(super) fn insert_remote(&mut self, key: &FlowKey) {
        _ = self.insert_into_block(PortKey::to_remote(key));
    }

    /// Removes the port of a connection of the maps.
    #[inline]
    pub(super) fn remove_connection(&mut self, key: &FlowKey, allows_reuse: bool) {
        self.remove_local(key, allows_reuse);
        if self.is_tracked(key.dport()) {
            self.remove_remote(key);
        }
    }

    /// Removes the port of a connection at its local address.
    #[inline]
    pub(super) fn remove_local(&mut self, key: &FlowKey, allows_reuse: bool) {
        let at = PortKey::new(use_of(allows_reuse), LocalWords::of_local(key));
        let recent = recent(&mut self.recent, at);
        if recent.at == at && recent.count > 0 {
            recent.count -= 1;
        } else {
            self.remove_last(key, at);
        }
    }

    #[inline(never)]
    fn remove_last(&mut self, key: &FlowKey, at: PortKey) {
        let recent = recent(&mut self.recent, at);
        if recent.at == at {
            // Perhaps the port is in no block after this.
            recent.at = PortKey::NONE;
        }
        self.remove_both(at, wider(key, at));
    }

    /// Removes the port of a connection to its remote socket, if it is known.
    #[inline(never)]
    fn remove_remote(&mut self, key: &FlowKey) {
        self.remove(PortKey::to_remote(key));
    }

    /// Returns whether a connection has the port of `local` at its address; only those without
    /// reuse count if `allows_reuse`.
    pub(super) fn is_connected(&self, local: &Local, allows_reuse: bool) -> bool {
        let Some(port) = local.port() else { return false };
        let uses =
            if allows_reuse { &[Use::Exclusive][..] } else { &[Use::Exclusive, Use::Shared] };
        let contains =
            |scope| uses.iter().any(|&used| self.block_of(used, local, scope).contains(port));
        local.scopes_of_connections().any(contains)
    }

    /// The ports that connections have at the address of `local`, in the block of its port.
    #[inline]
    fn connected(&self, local: &Local) -> Block {
        let at = |scope| {
            self.block_of(Use::Exclusive, local, scope) | self.block_of(Use::Shared, local, scope)
        };
        local.scopes_of_connections().fold(Block::EMPTY, |block, scope| block | at(scope))
    }

    /// The ports that no new socket can be bound to, in the block of the port of `local`.
    #[inline]
    pub(super) fn taken(&self, local: &Local) -> Block {
        self.taken_by_bound(local) | self.connected(local)
    }

    /// The ports that bound sockets have at the address of `local`, in the block of its port.
    #[inline]
    pub(super) fn taken_by_bound(&self, local: &Local) -> Block {
        let bound = |scope| self.block_of(Use::Bound, local, scope);
        let family = |scope| bound(scope) | self.block_of(Use::Narrower, local, scope);
        bound(Scope::Any)
            | match local.scope() {
                Scope::Any => family(Scope::AnyV4) | family(Scope::AnyV6),
                Scope::Address(address) => bound(local.scope()) | bound(Scope::family(address)),
                any => family(any),
            }
    }

    /// The local ports that connections to the remote socket of `key` are known to have, in the
    /// block of its local port.
    #[inline]
    pub(super) fn taken_to(&self, key: &FlowKey) -> Block {
        self.block(PortKey::to_remote(key))
    }

    /// Checks P1, P2 and P3 for these bound sockets, connections and queued sockets;
    /// `is_connected` returns whether there is a connection.
    pub(super) fn validate(
        &self,
        bound: impl Iterator<Item = Local>,
        connections: impl Iterator<Item = (FlowKey, bool)>,
        is_connected: impl Fn(&FlowKey) -> bool,
    ) -> Result<(), InvariantError> {
        let mut expected = Ports::new_in(&DefaultHashBuilder::with_seed(0), &Global);
        bound.for_each(|local| _ = expected.insert_bound(&local));
        for (key, allows_reuse) in connections {
            let at = PortKey::new(use_of(allows_reuse), LocalWords::of_local(&key));
            expected.insert_both(at, wider(&key, at));
        }
        let Self { blocks, more, .. } = self;
        blocks.validate().map_err(map_error)?;
        more.validate().map_err(map_error)?;
        let are_used = blocks.values().all(|block| *block != Block::EMPTY);
        ensure(are_used && more.values().all(|count| *count > 0), || "P1: a port is not used")?;
        let (remote, others): (Vec<_>, Vec<_>) =
            blocks.iter().partition(|(key, _)| key.used() == Use::Remote as usize);
        let mut blocks_of = [0; USES];
        blocks.keys().for_each(|key| blocks_of[key.used()] += 1);
        ensure(blocks_of == self.blocks_of, || "P1: a number of blocks is wrong")?;
        let are_equal = others.len() == expected.blocks.len()
            && others.iter().all(|(key, block)| expected.blocks.get(*key) == Some(*block));
        ensure(are_equal, || "P2: a port in use is missing, or one is not in use")?;
        let times = |ports: &TrashMap<PortKey, u32, _>, key| ports.get(key).map_or(0, |n| *n);
        for (key, count) in &expected.more {
            let recent = self.recent.iter().find(|recent| recent.at == *key);
            let recent = recent.map_or(0, |recent| recent.count);
            let own = more.get(key).map_or(0, |count| *count) + recent;
            ensure(own == *count, || "P2: a count of sockets is too small")?;
        }
        ensure(
            more.keys().all(|key| times(&expected.more, key) > 0),
            || "P2: a count of sockets is too large",
        )?;
        let mut recent = self.recent.iter().filter(|recent| recent.count > 0);
        ensure(
            recent.all(|recent| times(&expected.more, &recent.at) > 0),
            || "P2: a recent count is too large",
        )?;
        let has_connections = |(key, block): &(&PortKey, &Block)| {
            let port = |port| (key.header as u16).wrapping_mul(BLOCK) + port;
            block.ports().all(|at| is_connected(&key.connection(port(at))))
        };
        ensure(remote.iter().all(has_connections), || "P3: a port has no connection")
    }
}

impl PortKey {
    /// The connection of a key by remote socket, from a local port.
    fn connection(&self, port: u16) -> FlowKey {
        let (sport, dport, protocol) = (self.remote_port, port, (self.header >> 24) as u8);
        let [src, dst] =
            [self.remote, self.local].map(|[high, low]| u128::from(high) << 64 | u128::from(low));
        if LocalWords::is_v4(self.header) {
            let [src, dst] = [src, dst].map(|address| Ipv4Addr::from_bits(address as u32));
            return FlowKey::V4(FiveTuple { src, dst, sport, dport, protocol });
        }
        let [src, dst] = [src, dst].map(Ipv6Addr::from_bits);
        FlowKey::V6(FiveTuple { src, dst, sport, dport, protocol })
    }
}

/// The count that a port may have.
#[inline]
fn recent(all: &mut [Recent; RECENT], at: PortKey) -> &mut Recent {
    &mut all[usize::from(at.port()) % RECENT]
}

/// The key under which the port of a connection is counted at any address of its version.
fn wider(key: &FlowKey, at: PortKey) -> PortKey {
    let LocalWords { header, address: local } = LocalWords::of_packet(key, false)[1];
    PortKey { header: header | at.header & 7 << 40, local, ..at }
}

/// The key of a bound socket's port at its address, and the one at any of that version, if its
/// address is a single one.
fn keys_of_bound(local: &Local) -> Option<(PortKey, Option<PortKey>)> {
    local.port()?;
    let bound = PortKey::new(Use::Bound, LocalWords::new(local));
    let Scope::Address(address) = local.scope() else { return Some((bound, None)) };
    let family = LocalWords::new(&local.in_scope(Scope::family(address)));
    Some((bound, Some(PortKey::new(Use::Narrower, family))))
}
