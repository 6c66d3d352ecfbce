//! Connected sockets: an array, or maps if there are more than 32.
//!
//! ```text
//!     up to 32    few    │ key, socket │ key, socket │ …          see small_table.rs
//!
//!     above       v4     Ends<Ipv4Addr> → socket
//!                 v6     Ends<Ipv6Addr> → socket
//! ```
//!
//! - **C1** Either all connections are in `few`, or all are in the maps.
//! - **C2** [`Ports`] has the ports of the connections in the maps.

use alloc::format;
use core::hash::BuildHasher;
use core::mem;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::ends::{Ends, PacketQuery, hash_of};
use super::ports::Ports;
use super::small_table::{FewConnections, MAX_FEW, SHRINK_AT, Slot};
use super::{Local, RejectedSocket, SocketError, map_error};
use crate::hash::Prehashed;
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::BitString;
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::trash::{ExtractCursor, TrashMap};

pub(super) type V4<T, S, A> = TrashMap<Ends<Ipv4Addr>, T, S, A>;
pub(super) type V6<T, S, A> = TrashMap<Ends<Ipv6Addr>, T, S, A>;

/// The array and the maps.
type PartsMut<'a, T, S, A> =
    (&'a mut FewConnections<T, A>, &'a mut V4<T, S, A>, &'a mut V6<T, S, A>);

/// The socket of a packet's connection, and the hash of the packet if it was computed.
pub(super) type Looked<R> = (Option<R>, Option<u64>);

/// Where an extraction continues.
#[derive(Default)]
pub(super) struct ConnectionCursor {
    /// The connections of the array that are left.
    few: usize,
    v4: ExtractCursor,
    v6: ExtractCursor,
}

/// Sockets by connection.
#[derive(Clone)]
pub(super) struct Connections<T, S, A: Allocator + Clone> {
    few: FewConnections<T, A>,
    v4: V4<T, S, A>,
    v6: V6<T, S, A>,
}

impl<T, S: Clone, A: Allocator + Clone> Connections<T, S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            few: FewConnections::new_in(memory.clone()),
            v4: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            v6: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
        }
    }
}

impl<T, S, A: Allocator + Clone> Connections<T, S, A> {
    pub(super) fn allocator(&self) -> &A {
        self.few.allocator()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.few.allocation_size() + self.v4.allocation_size() + self.v6.allocation_size()
    }

    pub(super) fn len(&self) -> usize {
        self.few.len() + self.v4.len() + self.v6.len()
    }

    /// The hasher of the table. All maps of the table have an equal one.
    #[inline]
    pub(super) const fn hasher(&self) -> &S {
        self.v4.hasher()
    }

    pub(super) const fn few(&self) -> &FewConnections<T, A> {
        &self.few
    }

    /// The maps: empty, if the connections are in the array.
    pub(super) const fn maps(&self) -> (&V4<T, S, A>, &V6<T, S, A>) {
        (&self.v4, &self.v6)
    }

    /// The array and the maps. Their keys must stay the same.
    pub(super) const fn parts_mut(&mut self) -> PartsMut<'_, T, S, A> {
        (&mut self.few, &mut self.v4, &mut self.v6)
    }

    /// Iterates over the connections in the maps, and whether they allow reuse.
    pub(super) fn mapped(&self) -> impl Iterator<Item = (FlowKey, bool)> {
        let v4 = self.v4.keys().map(|ends| (ends.into(), ends.allows_reuse));
        v4.chain(self.v6.keys().map(|ends| (ends.into(), ends.allows_reuse)))
    }

    /// Returns whether a connection of the array has the port of `local` at its address; only those
    /// without reuse count if `allows_reuse`.
    pub(super) fn few_have(&self, local: &Local, allows_reuse: bool) -> bool {
        self.few.slots().iter().any(|slot| {
            local.protocol == slot.key.protocol()
                && local.port == Some(slot.key.dport())
                && local.takes(slot.key.dst())
                && !(allows_reuse && slot.allows_reuse)
        })
    }
}

impl<T, S: BuildHasher, A: Allocator + Clone> Connections<T, S, A> {
    #[inline]
    pub(super) fn get(&self, packet: &impl PacketQuery) -> Looked<&T> {
        if !self.few.is_empty() {
            return (self.few.get(packet.key()), None);
        }
        self.get_mapped(packet)
    }

    #[inline]
    pub(super) fn get_mapped(&self, packet: &impl PacketQuery) -> Looked<&T> {
        // A host that only listens does not hash its packets. `get` of a key with its hash is
        // inlined into lookups, without one it is not.
        let hash = || packet.hash_with(self.hasher());
        match packet.key() {
            FlowKey::V4(key) if !self.v4.is_empty() => {
                let ends = Ends::of(key).with(hash());
                (self.v4.get(ends.as_ref()), Some(ends.hash))
            }
            FlowKey::V6(key) if !self.v6.is_empty() => {
                let ends = Ends::of(key).with(hash());
                (self.v6.get(ends.as_ref()), Some(ends.hash))
            }
            _ => (None, None),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, packet: &impl PacketQuery) -> Looked<&mut T> {
        if !self.few.is_empty() {
            return (self.few.get_mut(packet.key()), None);
        }
        let Self { v4, v6, .. } = self;
        match packet.key() {
            FlowKey::V4(key) if !v4.is_empty() => {
                let ends = Ends::of(key).with(packet.hash_with(v4.hasher()));
                (v4.get_mut(ends.as_ref()), Some(ends.hash))
            }
            FlowKey::V6(key) if !v6.is_empty() => {
                let ends = Ends::of(key).with(packet.hash_with(v4.hasher()));
                (v6.get_mut(ends.as_ref()), Some(ends.hash))
            }
            _ => (None, None),
        }
    }

    /// Inserts a connection. Returns the socket if the connection exists, or memory allocation
    /// fails.
    #[inline]
    pub(super) fn insert(
        &mut self,
        ports: &mut Ports<S, A>,
        connection: &impl PacketQuery,
        allows_reuse: bool,
        socket: T,
    ) -> Result<(), RejectedSocket<T>> {
        let key = connection.key();
        let is_mapped = !(self.v4.is_empty() && self.v6.is_empty());
        if is_mapped || self.few.len() == MAX_FEW && self.make_room(ports, key) {
            let hash = connection.hash_with(self.hasher());
            return self.insert_mapped(ports, Prehashed { hash, key }, allows_reuse, socket);
        }
        self.insert_few(Slot { key: *key, allows_reuse, socket })
    }

    /// Moves the connections of a full array to the maps, for a connection that is absent. Returns
    /// whether they are there.
    #[inline(never)]
    fn make_room(&mut self, ports: &mut Ports<S, A>, key: &FlowKey) -> bool {
        self.few.get(key).is_none() && self.move_to_maps(ports)
    }

    #[inline(never)]
    fn insert_few(&mut self, slot: Slot<T>) -> Result<(), RejectedSocket<T>> {
        let reason = if self.few.get(&slot.key).is_some() {
            SocketError::InUse
        } else if self.few.reserve(1) {
            self.few.push(slot);
            return Ok(());
        } else {
            SocketError::NoMemory
        };
        Err(RejectedSocket { refused: slot.socket, reason })
    }

    /// Removes a connection and returns its socket.
    pub(super) fn remove(&mut self, ports: &mut Ports<S, A>, key: &FlowKey) -> Option<T> {
        if !self.few.is_empty() {
            return self.few.remove(key);
        }
        let (allows_reuse, socket) = match key {
            FlowKey::V4(key) => remove_from(&mut self.v4, key)?,
            FlowKey::V6(key) => remove_from(&mut self.v6, key)?,
        };
        ports.remove_connection(key, allows_reuse);
        self.shrink(ports);
        Some(socket)
    }

    /// Moves the connections to the array if they are few, and in maps.
    pub(super) fn shrink(&mut self, ports: &mut Ports<S, A>) {
        let len = self.len();
        if len <= SHRINK_AT && self.few.is_empty() && self.few.reserve(len) {
            self.move_to_few(ports);
        }
    }

    /// Removes the connections for which `keep` returns false.
    pub(super) fn retain(
        &mut self,
        ports: &mut Ports<S, A>,
        mut keep: impl FnMut(FlowKey, &mut T) -> bool,
    ) {
        self.few.retain(&mut keep);
        let Self { v4, v6, .. } = self;
        let mut keep = |key: FlowKey, allows_reuse, socket: &mut T| {
            let is_kept = keep(key, socket);
            if !is_kept {
                ports.remove_connection(&key, allows_reuse);
            }
            is_kept
        };
        v4.retain(|ends, socket| keep(ends.into(), ends.allows_reuse, socket));
        v6.retain(|ends, socket| keep(ends.into(), ends.allows_reuse, socket));
        self.shrink(ports);
    }

    /// Removes and returns the next connection for which `picks` returns true. Between the calls
    /// with a cursor, the connections are not changed otherwise.
    pub(super) fn extract_next(
        &mut self,
        ports: &mut Ports<S, A>,
        cursor: &mut ConnectionCursor,
        mut picks: impl FnMut(FlowKey, &mut T) -> bool,
    ) -> Option<(FlowKey, T)> {
        let Self { few, v4, v6 } = self;
        if let Some(removed) = few.extract_next(&mut cursor.few, &mut picks) {
            return Some(removed);
        }
        let v4 = v4.extract_next(&mut cursor.v4, |ends, socket| picks(ends.into(), socket));
        let v4 = v4.map(|(ends, socket)| (FlowKey::from(&ends), ends.allows_reuse, socket));
        let (key, allows_reuse, socket) = v4.or_else(|| {
            let v6 = v6.extract_next(&mut cursor.v6, |ends, socket| picks(ends.into(), socket));
            v6.map(|(ends, socket)| (FlowKey::from(&ends), ends.allows_reuse, socket))
        })?;
        ports.remove_connection(&key, allows_reuse);
        Some((key, socket))
    }

    /// Returns where an extraction begins.
    pub(super) fn cursor(&self) -> ConnectionCursor {
        ConnectionCursor { few: self.few.len(), ..ConnectionCursor::default() }
    }

    /// Moves all connections from the array to the maps. If memory allocation fails, returns false
    /// and moves none.
    fn move_to_maps(&mut self, ports: &mut Ports<S, A>) -> bool {
        let v4 = self.few.slots().iter().filter(|slot| as_v4(&slot.key).is_some()).count();
        let v6 = self.few.len() - v4;
        // So the maps do not grow while they are filled.
        if self.v4.try_reserve(v4).is_err() || self.v6.try_reserve(v6).is_err() {
            return false;
        }
        while let Some(Slot { key, allows_reuse, socket }) = self.few.pop() {
            // C1 does not hold in this loop, so it must not look up connections.
            let connection = Prehashed { hash: hash_of(self.hasher(), &key), key: &key };
            let inserted = self.insert_mapped(ports, connection, allows_reuse, socket);
            if let Err(RejectedSocket { refused: socket, .. }) = inserted {
                self.few.push(Slot { key, allows_reuse, socket });
                self.move_to_few(ports);
                return false;
            }
        }
        true
    }

    /// Moves all connections from the maps to the array, which has the capacity.
    fn move_to_few(&mut self, ports: &mut Ports<S, A>) {
        let Self { few, v4, v6 } = self;
        let mut push = |key: FlowKey, allows_reuse, socket| {
            ports.remove_connection(&key, allows_reuse);
            few.push(Slot { key, allows_reuse, socket });
        };
        v4.drain().for_each(|(ends, socket)| push((&ends).into(), ends.allows_reuse, socket));
        v6.drain().for_each(|(ends, socket)| push((&ends).into(), ends.allows_reuse, socket));
    }

    /// Inserts a connection, given its hash, into its map.
    fn insert_mapped(
        &mut self,
        ports: &mut Ports<S, A>,
        Prehashed { hash, key }: Prehashed<&FlowKey>,
        allows_reuse: bool,
        socket: T,
    ) -> Result<(), RejectedSocket<T>> {
        match key {
            FlowKey::V4(key) => {
                insert_into(&mut self.v4, Ends::new(*key, allows_reuse).with(hash), socket)
            }
            FlowKey::V6(key) => {
                insert_into(&mut self.v6, Ends::new(*key, allows_reuse).with(hash), socket)
            }
        }?;
        if ports.insert_connection(key, allows_reuse) {
            return Ok(());
        }
        let removed = match key {
            FlowKey::V4(key) => self.v4.remove(Ends::of(key).with(hash).as_ref()),
            FlowKey::V6(key) => self.v6.remove(Ends::of(key).with(hash).as_ref()),
        };
        rejected(removed, SocketError::NoMemory)
    }

    /// Looks up the connections of at most [`BURST`] packets in the maps. Writes each socket to the
    /// position of its packet.
    #[inline]
    pub(super) fn get_burst<'a, Q: PacketQuery>(
        &'a self,
        packets: impl Iterator<Item = Q> + Clone,
        found: &mut [Looked<&'a T>; BURST],
    ) {
        let (packets, hasher) = (packets.enumerate(), self.hasher());
        if !self.v4.is_empty() {
            let v4 = |(at, packet): (usize, Q)| {
                Some((at, as_v4(packet.key())?.with_of(&packet, hasher)))
            };
            get_scattered(&self.v4, packets.clone().filter_map(v4), found);
        }
        if !self.v6.is_empty() {
            let v6 = |(at, packet): (usize, Q)| {
                Some((at, as_v6(packet.key())?.with_of(&packet, hasher)))
            };
            get_scattered(&self.v6, packets.filter_map(v6), found);
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.v4.validate().map_err(map_error)?;
        self.v6.validate().map_err(map_error)?;
        self.few.validate()?;
        let mapped = self.len() - self.few.len();
        ensure(self.few.is_empty() || mapped == 0, || {
            format!("C1: {} connections in the array, {mapped} in maps", self.few.len())
        })
    }
}

/// Removes a connection from a map. Returns whether it allows reuse, and its socket.
fn remove_from<I, T, S, A>(
    map: &mut TrashMap<Ends<I>, T, S, A>,
    tuple: &FiveTuple<I>,
) -> Option<(bool, T)>
where
    I: BitString,
    S: BuildHasher,
    A: Allocator + Clone,
{
    let (ends, socket) = map.remove_entry(&Ends::of(tuple))?;
    Some((ends.allows_reuse, socket))
}

/// Inserts a connection into a map. Returns the socket if the connection exists, or memory
/// allocation fails.
#[inline]
fn insert_into<I, T, S, A>(
    map: &mut TrashMap<Ends<I>, T, S, A>,
    ends: Prehashed<Ends<I>>,
    socket: T,
) -> Result<(), RejectedSocket<T>>
where
    I: BitString,
    S: BuildHasher,
    A: Allocator + Clone,
{
    match map.try_insert_with_hash(ends.hash, ends.key, socket) {
        Ok(None) => Ok(()),
        Ok(Some(previous)) => {
            // It stays.
            let refused = match map.get_mut(&ends) {
                Some(socket) => mem::replace(socket, previous),
                // With an inconsistent hasher.
                None => previous,
            };
            rejected(Some(refused), SocketError::InUse)
        }
        Err(error) => rejected(Some(error.refused.1), SocketError::NoMemory),
    }
}

/// The error with a socket. Without one, the hasher is inconsistent, and the socket is in the map.
fn rejected<T>(refused: Option<T>, reason: SocketError) -> Result<(), RejectedSocket<T>> {
    refused.map_or(Ok(()), |refused| Err(RejectedSocket { refused, reason }))
}

fn as_v4(key: &FlowKey) -> Option<Ends<Ipv4Addr>> {
    if let FlowKey::V4(key) = key { Some(Ends::of(key)) } else { None }
}

fn as_v6(key: &FlowKey) -> Option<Ends<Ipv6Addr>> {
    if let FlowKey::V6(key) = key { Some(Ends::of(key)) } else { None }
}

/// Looks up at most [`BURST`] keys in a map, each with the position where its socket is written.
#[inline]
fn get_scattered<'a, I: BitString, T, S: BuildHasher, A: Allocator + Clone>(
    map: &'a TrashMap<Ends<I>, T, S, A>,
    mut keys: impl Iterator<Item = (usize, Prehashed<Ends<I>>)>,
    found: &mut [Looked<&'a T>; BURST],
) {
    let Some((first, key)) = keys.next() else { return };
    let (mut positions, mut gathered, mut len) = ([first; BURST], [key; BURST], 1);
    for (position, key) in keys.take(BURST - 1) {
        (positions[len], gathered[len]) = (position, key);
        len += 1;
    }
    let queries = gathered[..len].iter().map(Prehashed::as_ref);
    map.get_batch(queries, |at, socket| {
        let at = at % BURST;
        found[positions[at] % BURST] = (socket, Some(gathered[at].hash));
    });
}
