//! Connected sockets: an array while they are few, then maps.
//!
//! ```text
//!     up to 16    few     │ key, socket │ key, socket │ …      see few.rs
//!
//!     above       v4      FiveTuple<Ipv4Addr> → socket         occupied     (address, port) → connections there
//!                 v6      FiveTuple<Ipv6Addr> → socket                      (any, port)     → connections there
//! ```
//!
//! - **C1** Either all are in `few`, which has at most [`FEW`], or all are in the maps.
//! - **C2** `occupied` has two counts for each connection of the maps, and no count of zero.

use core::hash::BuildHasher;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::few::{FEW, Few};
use super::local::{LocalWords, Scope};
use super::{BURST, Broken, Local};
use crate::key::bits::BitString;
use crate::key::flow::{FiveTuple, FlowKey};
use crate::trash::TrashMap;

/// Connections back in the array when there are so many left: a few opened and closed move nothing.
const FEW_AGAIN: usize = FEW / 2;

/// Sockets by connection.
#[derive(Clone, Debug)]
pub(super) struct Connections<T, S> {
    few: Few<T>,
    v4: TrashMap<FiveTuple<Ipv4Addr>, T, S>,
    v6: TrashMap<FiveTuple<Ipv6Addr>, T, S>,
    occupied: TrashMap<LocalWords, usize, S>,
}

impl<T, S: Clone> Connections<T, S> {
    pub(super) fn new(hasher: &S) -> Self {
        Self {
            few: Few::new(),
            v4: TrashMap::with_hasher(hasher.clone()),
            v6: TrashMap::with_hasher(hasher.clone()),
            occupied: TrashMap::with_hasher(hasher.clone()),
        }
    }
}

impl<T, S> Connections<T, S> {
    pub(super) fn len(&self) -> usize {
        self.few.len() + self.v4.len() + self.v6.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (FlowKey, &T)> {
        let few = self.few.iter().map(|(key, socket)| (*key, socket));
        let v4 = self.v4.iter().map(|(&key, socket)| (FlowKey::V4(key), socket));
        few.chain(v4).chain(self.v6.iter().map(|(&key, socket)| (FlowKey::V6(key), socket)))
    }
}

impl<T, S: BuildHasher> Connections<T, S> {
    #[inline]
    pub(super) fn get(&self, key: &FlowKey) -> Option<&T> {
        if self.few.is_empty() { self.get_mapped(key) } else { self.few.get(key) }
    }

    #[inline]
    fn get_mapped(&self, key: &FlowKey) -> Option<&T> {
        match key {
            // A host that only listens does not hash its packets.
            FlowKey::V4(key) => (!self.v4.is_empty()).then(|| self.v4.get(key))?,
            FlowKey::V6(key) => (!self.v6.is_empty()).then(|| self.v6.get(key))?,
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        if !self.few.is_empty() {
            return self.few.get_mut(key);
        }
        match key {
            FlowKey::V4(key) => self.v4.get_mut(key),
            FlowKey::V6(key) => self.v6.get_mut(key),
        }
    }

    /// Whether a connection has this port, and a local address in this scope.
    pub(super) fn occupy(&self, local: &Local) -> bool {
        if !self.few.is_empty() {
            let is_there = |key: &FlowKey| {
                local.protocol == key.protocol()
                    && local.port == Some(key.dport())
                    && local.takes(key.dst())
            };
            return self.few.iter().any(|(key, _)| is_there(key));
        }
        let is_occupied =
            |scope| self.occupied.contains_key(&LocalWords::new(&local.in_scope(scope)));
        match local.scope {
            Scope::Any => is_occupied(Scope::AnyV4) || is_occupied(Scope::AnyV6),
            scope => is_occupied(scope),
        }
    }

    /// Puts a connection in that is not there, or gives the socket back if there is no memory.
    pub(super) fn insert(&mut self, key: FlowKey, socket: T) -> Result<(), T> {
        let has_maps = self.few.is_empty() && self.len() > 0;
        if !has_maps && self.few.len() < FEW {
            if !self.few.reserve(1) {
                return Err(socket);
            }
            self.few.push(key, socket);
            return Ok(());
        }
        if !has_maps && !self.map_all() {
            return Err(socket);
        }
        self.insert_mapped(key, socket)
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, key: &FlowKey) -> Option<T> {
        if !self.few.is_empty() {
            return self.few.remove(key);
        }
        let socket = self.remove_mapped(key)?;
        if self.len() <= FEW_AGAIN && self.few.reserve(self.len()) {
            self.array_all();
        }
        Some(socket)
    }

    /// Moves all from the array to the maps, or none if there is no memory. Says whether it did.
    fn map_all(&mut self) -> bool {
        while let Some((key, socket)) = self.few.pop() {
            // C1 does not hold in between, so nothing is asked here but for a place.
            if let Err(socket) = self.insert_mapped(key, socket) {
                self.few.push(key, socket);
                self.array_all();
                return false;
            }
        }
        true
    }

    /// Moves all from the maps to the array, which has room for them.
    fn array_all(&mut self) {
        self.v4.drain().for_each(|(key, socket)| self.few.push(FlowKey::V4(key), socket));
        self.v6.drain().for_each(|(key, socket)| self.few.push(FlowKey::V6(key), socket));
        self.occupied.clear();
    }

    fn insert_mapped(&mut self, key: FlowKey, socket: T) -> Result<(), T> {
        let places = places(&key);
        for (counted, &place) in places.iter().enumerate() {
            if !self.count_up(place) {
                places[..counted].iter().for_each(|place| self.count_down(place));
                return Err(socket);
            }
        }
        let refused = match key {
            FlowKey::V4(key) => self.v4.try_insert(key, socket).map_err(|error| error.value).err(),
            FlowKey::V6(key) => self.v6.try_insert(key, socket).map_err(|error| error.value).err(),
        };
        let Some(socket) = refused else { return Ok(()) };
        places.iter().for_each(|place| self.count_down(place));
        Err(socket)
    }

    fn remove_mapped(&mut self, key: &FlowKey) -> Option<T> {
        let socket = match key {
            FlowKey::V4(key) => self.v4.remove(key)?,
            FlowKey::V6(key) => self.v6.remove(key)?,
        };
        places(key).iter().for_each(|place| self.count_down(place));
        Some(socket)
    }

    /// Says whether there is memory for that.
    fn count_up(&mut self, place: LocalWords) -> bool {
        if let Some(count) = self.occupied.get_mut(&place) {
            *count += 1;
            return true;
        }
        self.occupied.try_insert(place, 1).is_ok()
    }

    fn count_down(&mut self, place: &LocalWords) {
        if let Some(count) = self.occupied.get_mut(place) {
            // Where a hasher breaks its law, counts are wrong, and nothing worse.
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.occupied.remove(place);
            }
        }
    }

    /// The sockets of at most [`BURST`] connections, each put where its key is in the slice.
    pub(super) fn get_burst<'a>(&'a self, keys: &[FlowKey], found: &mut [Option<&'a T>]) {
        if !self.few.is_empty() {
            found.iter_mut().zip(keys).for_each(|(found, key)| *found = self.get(key));
            return;
        }
        if let Some(own) = all_v4(keys) {
            return self.v4.get_batch(&own[..keys.len()], found);
        }
        let keys = || keys.iter().enumerate();
        let v4 = |(at, key): (usize, &FlowKey)| Some((at, v4(key)?));
        let v6 = |(at, key): (usize, &FlowKey)| Some((at, v6(key)?));
        burst(&self.v4, keys().filter_map(v4), found);
        burst(&self.v6, keys().filter_map(v6), found);
    }

    pub(super) fn validate(&self) -> Result<(), Broken> {
        self.v4.validate()?;
        self.v6.validate()?;
        self.occupied.validate()?;
        let mapped = self.len() - self.few.len();
        if !self.few.is_right() || !self.few.is_empty() && mapped > 0 {
            return Err(Broken::Crowd { few: self.few.len(), mapped });
        }
        for (at, (key, _)) in self.few.iter().enumerate() {
            if self.few.iter().skip(at + 1).any(|(other, _)| other == key) {
                return Err(Broken::Twice);
            }
        }
        let mut counts: TrashMap<LocalWords, usize> = TrashMap::new();
        for (key, _) in self.iter().skip(self.few.len()) {
            for place in places(&key) {
                *counts.entry(place).or_insert(0) += 1;
            }
        }
        let right = |(place, count)| self.occupied.get(place) == Some(count);
        if counts.len() == self.occupied.len() && counts.iter().all(right) {
            return Ok(());
        }
        Err(Broken::Counts)
    }
}

/// Where a connection is counted: at its local address, and at any of the same version.
fn places(key: &FlowKey) -> [LocalWords; 2] {
    let [address, family, _] = LocalWords::of_packet(key, false);
    [address, family]
}

fn v4(key: &FlowKey) -> Option<FiveTuple<Ipv4Addr>> {
    if let FlowKey::V4(key) = key { Some(*key) } else { None }
}

fn v6(key: &FlowKey) -> Option<FiveTuple<Ipv6Addr>> {
    if let FlowKey::V6(key) = key { Some(*key) } else { None }
}

/// At most [`BURST`] keys, if they are all of IPv4, as they mostly are.
fn all_v4(keys: &[FlowKey]) -> Option<[FiveTuple<Ipv4Addr>; BURST]> {
    let mut all = [v4(keys.first()?)?; BURST];
    for (own, key) in all.iter_mut().zip(keys) {
        *own = v4(key)?;
    }
    Some(all)
}

/// Looks at most [`BURST`] keys up, and puts what is found where it belongs.
fn burst<'a, A: BitString, T, S: BuildHasher>(
    map: &'a TrashMap<FiveTuple<A>, T, S>,
    mut keys: impl Iterator<Item = (usize, FiveTuple<A>)>,
    found: &mut [Option<&'a T>],
) {
    let Some(first) = keys.next() else { return };
    let (mut places, mut own, mut len) = ([first.0; BURST], [first.1; BURST], 1);
    for (place, key) in keys {
        (places[len], own[len]) = (place, key);
        len += 1;
    }
    let mut sockets = [None; BURST];
    map.get_batch(&own[..len], &mut sockets[..len]);
    for (&place, socket) in places.iter().zip(&sockets[..len]) {
        found[place] = *socket;
    }
}
