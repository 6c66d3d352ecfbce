//! Connected sockets: a small table, or maps if there are more than 16.
//!
//! ```text
//!     up to 16    small       │ key, socket │ key, socket │ …          see small_table.rs
//!
//!     above       v4          FiveTuple<Ipv4Addr> → socket
//!                 v6          FiveTuple<Ipv6Addr> → socket
//!                 ports       see connected_ports.rs
//! ```
//!
//! - **C1** Either all connections are in `small`, or all are in the maps.
//! - **C2, C3** `ports` has the ports of the connections in the maps.

use alloc::format;
use core::hash::{BuildHasher, Hash};
use core::mem;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

use super::connected_ports::ConnectedPorts;
use super::small_table::{MAX_SMALL, SHRINK_AT, SmallTable};
use super::{Local, RejectedSocket, SocketError, map_error};
use crate::hash::Prehashed;
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::BitString;
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::raw::results::write_to;
use crate::trash::{ExtractCursor, TrashMap};

pub(super) type V4<T, S, A> = TrashMap<FiveTuple<Ipv4Addr>, T, S, A>;
pub(super) type V6<T, S, A> = TrashMap<FiveTuple<Ipv6Addr>, T, S, A>;

/// The small table and the maps.
type PartsMut<'a, T, S, A> = (&'a mut SmallTable<T, A>, &'a mut V4<T, S, A>, &'a mut V6<T, S, A>);

/// Where an extraction continues.
#[derive(Default)]
pub(super) struct ConnectionCursor {
    /// The connections of the small table that are left.
    small: usize,
    v4: ExtractCursor,
    v6: ExtractCursor,
}

/// Sockets by connection.
#[derive(Clone)]
pub(super) struct Connections<T, S, A: Allocator + Clone> {
    small: SmallTable<T, A>,
    v4: V4<T, S, A>,
    v6: V6<T, S, A>,
    ports: ConnectedPorts<S, A>,
}

impl<T, S: Clone, A: Allocator + Clone> Connections<T, S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            small: SmallTable::new_in(memory.clone()),
            v4: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            v6: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            ports: ConnectedPorts::new_in(hasher, memory),
        }
    }
}

impl<T, S, A: Allocator + Clone> Connections<T, S, A> {
    pub(super) fn allocator(&self) -> &A {
        self.small.allocator()
    }

    pub(super) fn allocation_size(&self) -> usize {
        let maps = self.v4.allocation_size() + self.v6.allocation_size();
        self.small.allocation_size() + maps + self.ports.allocation_size()
    }

    pub(super) fn len(&self) -> usize {
        self.small.len() + self.v4.len() + self.v6.len()
    }

    pub(super) const fn small(&self) -> &SmallTable<T, A> {
        &self.small
    }

    /// The maps: empty, if the connections are in the small table.
    pub(super) const fn maps(&self) -> (&V4<T, S, A>, &V6<T, S, A>) {
        (&self.v4, &self.v6)
    }

    /// The small table and the maps. Their keys must stay the same.
    pub(super) const fn parts_mut(&mut self) -> PartsMut<'_, T, S, A> {
        (&mut self.small, &mut self.v4, &mut self.v6)
    }

    /// Iterates over all connections.
    fn iter(&self) -> impl Iterator<Item = (FlowKey, &T)> {
        let small = self.small.slots().iter().map(|(key, socket)| (*key, socket));
        let v4 = self.v4.iter().map(|(&key, socket)| (FlowKey::V4(key), socket));
        small.chain(v4).chain(self.v6.iter().map(|(&key, socket)| (FlowKey::V6(key), socket)))
    }

    /// See [`ConnectedPorts::track`].
    pub(super) fn track(&mut self, ports: &RangeInclusive<u16>) {
        self.ports.track(ports);
    }

    /// The ports of the connections in the maps.
    pub(super) const fn ports(&self) -> &ConnectedPorts<S, A> {
        &self.ports
    }
}

impl<T, S: BuildHasher, A: Allocator + Clone> Connections<T, S, A> {
    #[inline]
    pub(super) fn get(&self, key: &FlowKey) -> Option<&T> {
        if self.small.is_empty() { self.get_mapped(key) } else { self.small.get(key) }
    }

    #[inline]
    fn get_mapped(&self, key: &FlowKey) -> Option<&T> {
        // A host that only listens does not hash its packets. `get` of a key with its hash is
        // inlined into lookups, without one it is not.
        match key {
            FlowKey::V4(_) if self.v4.is_empty() => None,
            FlowKey::V4(key) => self.v4.get(Prehashed { hash: self.v4.hash_of(key), key }),
            FlowKey::V6(_) if self.v6.is_empty() => None,
            FlowKey::V6(key) => self.v6.get(Prehashed { hash: self.v6.hash_of(key), key }),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        if !self.small.is_empty() {
            return self.small.get_mut(key);
        }
        match key {
            FlowKey::V4(key) => self.v4.get_mut(Prehashed { hash: self.v4.hash_of(key), key }),
            FlowKey::V6(key) => self.v6.get_mut(Prehashed { hash: self.v6.hash_of(key), key }),
        }
    }

    /// Returns the hash of the key of a connection, as the maps compute it.
    #[inline]
    pub(super) fn hash_of(&self, key: &FlowKey) -> u64 {
        match key {
            FlowKey::V4(key) => self.v4.hash_of(key),
            FlowKey::V6(key) => self.v6.hash_of(key),
        }
    }

    #[inline]
    pub(super) fn get_hashed(&self, hash: u64, key: &FlowKey) -> Option<&T> {
        if !self.small.is_empty() {
            return self.small.get(key);
        }
        match key {
            FlowKey::V4(key) => self.v4.get(Prehashed { hash, key }),
            FlowKey::V6(key) => self.v6.get(Prehashed { hash, key }),
        }
    }

    #[inline]
    pub(super) fn get_mut_hashed(&mut self, hash: u64, key: &FlowKey) -> Option<&mut T> {
        if !self.small.is_empty() {
            return self.small.get_mut(key);
        }
        match key {
            FlowKey::V4(key) => self.v4.get_mut(Prehashed { hash, key }),
            FlowKey::V6(key) => self.v6.get_mut(Prehashed { hash, key }),
        }
    }

    /// Returns whether there is this connection. If so, its port, which is in the range of
    /// [`ConnectedPorts::track`], becomes known by remote socket, if there is memory.
    pub(super) fn track_if_any(&mut self, key: &FlowKey) -> bool {
        let is_connected = self.get(key).is_some();
        if is_connected && self.small.is_empty() {
            self.ports.insert_tracked(key);
        }
        is_connected
    }

    /// Returns whether a connection has this port, and a local address in this scope.
    pub(super) fn occupies(&self, local: &Local) -> bool {
        self.small_occupies(local) || self.ports.contains(local)
    }

    /// Returns whether a connection of the small table does: see [`Self::occupies`].
    pub(super) fn small_occupies(&self, local: &Local) -> bool {
        let matches = |key: &FlowKey| {
            local.protocol == key.protocol()
                && local.port == Some(key.dport())
                && local.takes(key.dst())
        };
        self.small.slots().iter().any(|(key, _)| matches(key))
    }

    /// Inserts a connection. Returns the socket if the connection exists, or memory allocation
    /// fails.
    #[inline]
    pub(super) fn insert(&mut self, key: &FlowKey, socket: T) -> Result<(), RejectedSocket<T>> {
        if self.small.is_empty() && self.len() > 0 {
            return self.insert_mapped(key, socket);
        }
        self.insert_small(key, socket)
    }

    #[inline(never)]
    fn insert_small(&mut self, key: &FlowKey, socket: T) -> Result<(), RejectedSocket<T>> {
        let why = if self.small.get(key).is_some() {
            SocketError::InUse
        } else if self.small.len() < MAX_SMALL && self.small.reserve(1) {
            self.small.push(*key, socket);
            return Ok(());
        } else if self.small.len() == MAX_SMALL && self.move_to_maps() {
            return self.insert_mapped(key, socket);
        } else {
            SocketError::NoMemory
        };
        Err(RejectedSocket { refused: socket, why })
    }

    /// Removes a connection and returns its socket.
    pub(super) fn remove(&mut self, key: &FlowKey) -> Option<T> {
        if !self.small.is_empty() {
            return self.small.remove(key);
        }
        let socket = self.remove_mapped(key)?;
        self.shrink();
        Some(socket)
    }

    /// Moves the connections to the small table if they are few.
    fn shrink(&mut self) {
        if self.len() <= SHRINK_AT && self.small.reserve(self.len()) {
            self.move_to_small();
        }
    }

    /// Removes the connections for which `keep` returns false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(FlowKey, &mut T) -> bool) {
        self.small.retain(&mut keep);
        let Self { v4, v6, ports, .. } = self;
        let mut keep = |key: FlowKey, socket: &mut T| {
            let is_kept = keep(key, socket);
            if !is_kept {
                ports.remove(&key);
            }
            is_kept
        };
        v4.retain(|&key, socket| keep(FlowKey::V4(key), socket));
        v6.retain(|&key, socket| keep(FlowKey::V6(key), socket));
        self.shrink_mapped();
    }

    /// Moves the connections from the maps to the small table, if they are few.
    pub(super) fn shrink_mapped(&mut self) {
        if self.small.is_empty() {
            self.shrink();
        }
    }

    /// Removes and returns the next connection for which `picks` returns true. Between the calls
    /// with a cursor, the connections are not changed otherwise.
    pub(super) fn extract_next(
        &mut self,
        cursor: &mut ConnectionCursor,
        mut picks: impl FnMut(FlowKey, &mut T) -> bool,
    ) -> Option<(FlowKey, T)> {
        let Self { small, v4, v6, ports } = self;
        if let Some(removed) = small.extract_next(&mut cursor.small, &mut picks) {
            return Some(removed);
        }
        let v4 = v4.extract_next(&mut cursor.v4, |key, socket| picks((*key).into(), socket));
        let v4 = v4.map(|(key, socket)| (key.into(), socket));
        let (key, socket) = v4.or_else(|| {
            let v6 = v6.extract_next(&mut cursor.v6, |key, socket| picks((*key).into(), socket));
            v6.map(|(key, socket)| (key.into(), socket))
        })?;
        ports.remove(&key);
        Some((key, socket))
    }

    /// Returns where an extraction begins.
    pub(super) fn cursor(&self) -> ConnectionCursor {
        ConnectionCursor { small: self.small.len(), ..ConnectionCursor::default() }
    }

    /// Moves all connections from the small table to the maps. If memory allocation fails, returns
    /// false and moves none.
    fn move_to_maps(&mut self) -> bool {
        let v4 = self.small.slots().iter().filter(|(key, _)| as_v4(key).is_some()).count();
        let v6 = self.small.len() - v4;
        // So the maps do not grow while they are filled.
        if self.v4.try_reserve(v4).is_err() || self.v6.try_reserve(v6).is_err() {
            return false;
        }
        while let Some((key, socket)) = self.small.pop() {
            // C1 does not hold in this loop, so it must not look up connections.
            if let Err(RejectedSocket { refused, .. }) = self.insert_mapped(&key, socket) {
                self.small.push(key, refused);
                self.move_to_small();
                return false;
            }
        }
        true
    }

    /// Moves all connections from the maps to the small table, which has the capacity.
    fn move_to_small(&mut self) {
        self.v4.drain().for_each(|(key, socket)| self.small.push(FlowKey::V4(key), socket));
        self.v6.drain().for_each(|(key, socket)| self.small.push(FlowKey::V6(key), socket));
        self.ports.clear();
    }

    fn insert_mapped(&mut self, key: &FlowKey, socket: T) -> Result<(), RejectedSocket<T>> {
        match key {
            FlowKey::V4(tuple) => {
                insert_with_port(&mut self.v4, *tuple, &mut self.ports, key, socket)
            }
            FlowKey::V6(tuple) => {
                insert_with_port(&mut self.v6, *tuple, &mut self.ports, key, socket)
            }
        }
    }

    fn remove_mapped(&mut self, key: &FlowKey) -> Option<T> {
        let socket = match key {
            FlowKey::V4(key) => self.v4.remove(key)?,
            FlowKey::V6(key) => self.v6.remove(key)?,
        };
        self.ports.remove(key);
        Some(socket)
    }

    /// Looks up at most [`BURST`] connections, by their hashes if there are any. Writes each socket
    /// to the position of its key.
    pub(super) fn get_burst<'a>(
        &'a self,
        hashes: Option<&[u64]>,
        keys: &[FlowKey],
        found: &mut [Option<&'a T>],
    ) {
        if !self.small.is_empty() {
            found.iter_mut().zip(keys).for_each(|(found, key)| *found = self.get(key));
            return;
        }
        if let Some(v4) = all_v4(keys) {
            return get_all(&self.v4, hashes, &v4[..keys.len()], found);
        }
        let keys = || keys.iter().enumerate();
        let v4 = |(position, key): (usize, &FlowKey)| Some((position, as_v4(key)?));
        let v6 = |(position, key): (usize, &FlowKey)| Some((position, as_v6(key)?));
        get_scattered(&self.v4, hashes, keys().filter_map(v4), found);
        get_scattered(&self.v6, hashes, keys().filter_map(v6), found);
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.v4.validate().map_err(map_error)?;
        self.v6.validate().map_err(map_error)?;
        self.small.validate()?;
        let mapped = self.len() - self.small.len();
        ensure(self.small.is_empty() || mapped == 0, || {
            format!("C1: {} connections in the small table, {mapped} in maps", self.small.len())
        })?;
        let keys = self.iter().skip(self.small.len()).map(|(key, _)| key);
        self.ports.validate(keys, |key| self.get_mapped(key).is_some())
    }
}

/// Inserts a connection into a map, and its port into `ports`.
fn insert_with_port<I, T, S, A>(
    map: &mut TrashMap<FiveTuple<I>, T, S, A>,
    tuple: FiveTuple<I>,
    ports: &mut ConnectedPorts<S, A>,
    key: &FlowKey,
    socket: T,
) -> Result<(), RejectedSocket<T>>
where
    FiveTuple<I>: Copy + Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
{
    let (refused, why) = match map.try_insert(tuple, socket) {
        Ok(None) if ports.insert(key) => return Ok(()),
        Ok(None) => (map.remove(&tuple), SocketError::NoMemory),
        Ok(Some(previous)) => {
            // It stays.
            let refused = match map.get_mut(&tuple) {
                Some(socket) => mem::replace(socket, previous),
                // With an inconsistent hasher.
                None => previous,
            };
            (Some(refused), SocketError::InUse)
        }
        Err(error) => (Some(error.refused.1), SocketError::NoMemory),
    };
    // Without one, the hasher is inconsistent, and the socket is in the map.
    refused.map_or(Ok(()), |refused| Err(RejectedSocket { refused, why }))
}

fn as_v4(key: &FlowKey) -> Option<FiveTuple<Ipv4Addr>> {
    if let FlowKey::V4(key) = key { Some(*key) } else { None }
}

fn as_v6(key: &FlowKey) -> Option<FiveTuple<Ipv6Addr>> {
    if let FlowKey::V6(key) = key { Some(*key) } else { None }
}

/// At most [`BURST`] keys, if all of them are of IPv4, as in most bursts.
fn all_v4(keys: &[FlowKey]) -> Option<[FiveTuple<Ipv4Addr>; BURST]> {
    let mut all = [as_v4(keys.first()?)?; BURST];
    for (v4, key) in all.iter_mut().zip(keys) {
        *v4 = as_v4(key)?;
    }
    Some(all)
}

/// Looks up keys in a map, by their hashes if there are any.
fn get_all<'a, I: BitString, T, S: BuildHasher, A: Allocator + Clone>(
    map: &'a TrashMap<FiveTuple<I>, T, S, A>,
    hashes: Option<&[u64]>,
    keys: &[FiveTuple<I>],
    found: &mut [Option<&'a T>],
) {
    match hashes {
        Some(hashes) => {
            let keys = hashes.iter().zip(keys).map(|(&hash, key)| Prehashed { hash, key });
            map.get_batch(keys, write_to(found));
        }
        None => map.get_batch(keys, write_to(found)),
    }
}

/// Looks up at most [`BURST`] keys in a map. The hash of each, if there are any, is at the position
/// given with the key, and its value is written there.
fn get_scattered<'a, I: BitString, T, S: BuildHasher, A: Allocator + Clone>(
    map: &'a TrashMap<FiveTuple<I>, T, S, A>,
    hashes: Option<&[u64]>,
    mut keys: impl Iterator<Item = (usize, FiveTuple<I>)>,
    found: &mut [Option<&'a T>],
) {
    let Some(first) = keys.next() else { return };
    let (mut positions, mut gathered, mut len) = ([first.0; BURST], [first.1; BURST], 1);
    for (position, key) in keys {
        (positions[len], gathered[len]) = (position, key);
        len += 1;
    }
    let mut sockets = [None; BURST];
    let own = hashes.map(|hashes| positions.map(|position| hashes[position]));
    let own = own.as_ref().map(|own| &own[..len]);
    get_all(map, own, &gathered[..len], &mut sockets[..len]);
    for (&position, socket) in positions.iter().zip(&sockets[..len]) {
        found[position] = *socket;
    }
}
