//! Bound sockets: a map from ports to groups of sockets, and one from addresses and ports.
//!
//! ```text
//!     ports      (protocol, port) ─┬▸ any address         ■ ─▸ □ ─▸ □   a group: sockets with
//!                                  ├▸ any IPv4 address    ■             Reuse::Port
//!                                  ├▸ any IPv6 address    ■
//!                                  └▸ how many at single addresses, and the first group of these
//!
//!     addressed  (address, protocol, port) ─▸ ■ ─▸ □
//! ```
//!
//! A lookup probes `ports`, and `addressed` if sockets are bound to several single addresses at the
//! port. So the number of bound sockets does not matter. If there are sockets of all ports, what is
//! not found is looked up again in the same way.
//!
//! - **L1** Each socket is in the list of its local address, and in no other; no list is empty. The
//!   links of a list are inverse to each other.
//! - **L2** An entry of `ports` counts the sockets at single addresses, and has sockets.
//! - **L3** `bound` has the port of each socket at its address, and `narrower` those at single
//!   addresses, at the address that is any of that version.

use alloc::format;
use core::hash::BuildHasher;

use super::lines::Line;
use super::local::{LocalWords, Scope};
use super::ports::Ports;
use super::{Local, Match, Name, Reuse, map_error};
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::FlowKey;
use crate::memory::{Allocator, Global};
use crate::raw::index::OptIndex;
use crate::raw::slab::{Contiguous, Slab};
use crate::trash::{TrashMap, TrashSet};

/// Bound sockets by local address.
#[derive(Clone)]
pub(super) struct Listeners<T, S, A: Allocator + Clone> {
    sockets: Sockets<T, A>,
    ports: TrashMap<u32, Port, S, A>,
    /// The first socket of each list at a single address.
    addressed: TrashMap<LocalWords, OptIndex, S, A>,
    bound: Ports<S, A>,
    narrower: Ports<S, A>,
    /// The number of sockets with all ports. It is mostly zero, and lookups skip their keys.
    all_ports: usize,
}

pub(super) type Sockets<T, A> = Slab<Listener<T>, Contiguous<Listener<T>, A>>;

#[derive(Clone, Debug)]
pub(super) struct Listener<T> {
    pub(super) local: Local,
    pub(super) reuse: Reuse,
    pub(super) id: u64,
    pub(super) socket: T,
    pub(super) links: Links,
}

/// The neighbours in the list of sockets at one local address. With both, a socket of a large group
/// is removed without a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    before: OptIndex,
    next: OptIndex,
}

impl Links {
    pub(super) const NONE: Self = Self { before: OptIndex::NONE, next: OptIndex::NONE };
}

impl<T> Listener<T> {
    pub(super) fn name(&self) -> Name {
        Name::Bound { local: self.local, id: self.id }
    }

    pub(super) fn found(&self) -> Match<&T> {
        Match { socket: &self.socket, by: self.local.specificity() }
    }
}

/// The sockets at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port {
    /// The first sockets at any address, at any of IPv4 and at any of IPv6.
    any: [OptIndex; 3],
    /// The first socket of one of the lists at single addresses, mostly the only one.
    one: OptIndex,
    /// The number of sockets at single addresses of IPv4 and of IPv6.
    single: [u32; 2],
    /// How many of these have [`Reuse::No`].
    exclusive: [u32; 2],
}

impl Port {
    const EMPTY: Self =
        Self { any: [OptIndex::NONE; 3], one: OptIndex::NONE, single: [0; 2], exclusive: [0; 2] };

    fn is_empty(&self) -> bool {
        self.single == [0; 2] && self.any.iter().all(|first| first.is_none())
    }
}

/// The key of a port, or of all ports.
#[inline]
fn port_key(port: Option<u16>, protocol: u8) -> u32 {
    u32::from(protocol) << 24 | port.map_or(1 << 16, u32::from)
}

/// The index of the list of a scope in [`Port::any`]; `None` for a single address.
fn any_index(scope: Scope) -> Option<usize> {
    match scope {
        Scope::Any => Some(0),
        Scope::AnyV4 => Some(1),
        Scope::AnyV6 => Some(2),
        Scope::Address(_) => None,
    }
}

/// The versions of the addresses in a scope, as indices of [`Port::single`].
fn versions(scope: Scope) -> core::ops::Range<usize> {
    match scope {
        Scope::Any => 0..2,
        scope if scope.is_v4() => 0..1,
        _ => 1..2,
    }
}

impl<T, S: Clone, A: Allocator + Clone> Listeners<T, S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            sockets: Slab::new_in(memory.clone()),
            ports: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            addressed: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            bound: Ports::new_in(hasher, memory),
            narrower: Ports::new_in(hasher, memory),
            all_ports: 0,
        }
    }
}

impl<T, S, A: Allocator + Clone> Listeners<T, S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        let maps = self.ports.allocation_size() + self.addressed.allocation_size();
        let ports = self.bound.allocation_size() + self.narrower.allocation_size();
        self.sockets.allocation_size() + maps + ports
    }

    pub(super) const fn len(&self) -> usize {
        self.sockets.len()
    }

    pub(super) const fn sockets(&self) -> &Sockets<T, A> {
        &self.sockets
    }

    pub(super) const fn sockets_mut(&mut self) -> &mut Sockets<T, A> {
        &mut self.sockets
    }

    /// The indices of a list. Links that an inconsistent hasher has made wrong may form a cycle, so
    /// it ends after all sockets.
    fn list(&self, first: OptIndex) -> impl Iterator<Item = u32> {
        let next = |index| {
            self.sockets.get(index).map_or(OptIndex::NONE, |socket: &Listener<T>| socket.links.next)
        };
        first.list(next).take(self.len() + 1)
    }

    /// Selects the socket of a list for a packet with this hash.
    #[inline]
    fn select(&self, first: OptIndex, hash: impl Fn() -> u64) -> Option<u32> {
        let index = first.get()?;
        if self.sockets.get(index)?.links.next.is_none() {
            return Some(index);
        }
        let hash = hash();
        let score = |index: &u32| self.sockets.get(*index).map(|member| score(hash, member.id));
        self.list(first).max_by_key(score)
    }
}

impl<T, S: BuildHasher, A: Allocator + Clone> Listeners<T, S, A> {
    /// The first sockets of the lists that match a packet, at its port or at all ports, best match
    /// first.
    #[inline]
    fn lists(&self, packet: &FlowKey, all_ports: bool) -> [OptIndex; 3] {
        let port = (!all_ports).then(|| packet.dport());
        let Some(port) = self.ports.get(&port_key(port, packet.protocol())) else {
            return [OptIndex::NONE; 3];
        };
        let version = usize::from(matches!(packet, FlowKey::V6(_)));
        let single = match port.single[version] {
            0 => OptIndex::NONE,
            _ => self.list_at(port.one, LocalWords::of_packet(packet, all_ports)[0]),
        };
        [single, port.any[1 + version], port.any[0]]
    }

    /// The first socket at a single address, which is `one` in most cases.
    #[inline]
    fn list_at(&self, one: OptIndex, at: LocalWords) -> OptIndex {
        let is_it = |one: &Listener<T>| LocalWords::new(&one.local) == at;
        if one.get().and_then(|one| self.sockets.get(one)).is_some_and(is_it) {
            return one;
        }
        self.addressed.get(&at).copied().unwrap_or(OptIndex::NONE)
    }

    /// Returns the index of the socket that matches a packet best. Calls `hash` if a group of
    /// several does.
    #[inline]
    fn best(&self, packet: &FlowKey, hash: impl Fn() -> u64) -> Option<u32> {
        let best =
            |all_ports| self.lists(packet, all_ports).into_iter().find(|first| first.is_some());
        let first = best(false).or_else(|| if self.all_ports > 0 { best(true) } else { None });
        self.select(first?, hash)
    }

    /// Returns the socket that matches a packet best.
    #[inline]
    pub(super) fn find(&self, packet: &FlowKey, hash: impl Fn() -> u64) -> Option<&Listener<T>> {
        self.sockets.get(self.best(packet, hash)?)
    }

    /// Returns a mutable reference to the socket that matches a packet best.
    #[inline]
    pub(super) fn find_mut(
        &mut self,
        packet: &FlowKey,
        hash: impl Fn() -> u64,
    ) -> Option<&mut Listener<T>> {
        let best = self.best(packet, hash)?;
        self.sockets.get_mut(best)
    }

    /// All sockets that match a packet, the best first.
    pub(super) fn matches(&self, packet: &FlowKey) -> impl Iterator<Item = &Listener<T>> {
        let lists = [false, true].map(|all_ports| self.lists(packet, all_ports));
        let indices = lists.into_iter().flatten().flat_map(|first| self.list(first));
        indices.filter_map(|index| self.sockets.get(index))
    }

    /// The first socket of a local address.
    fn first(&self, local: &Local) -> OptIndex {
        let first = match any_index(local.scope) {
            Some(any) => {
                let port = self.ports.get(&port_key(local.port, local.protocol));
                port.map(|port| port.any[any])
            }
            None => self.addressed.get(&LocalWords::new(local)).copied(),
        };
        first.unwrap_or(OptIndex::NONE)
    }

    fn first_mut(&mut self, local: &Local) -> Option<&mut OptIndex> {
        match any_index(local.scope) {
            Some(any) => {
                let port = self.ports.get_mut(&port_key(local.port, local.protocol));
                port.map(|port| &mut port.any[any])
            }
            None => self.addressed.get_mut(&LocalWords::new(local)),
        }
    }

    /// The index of a socket.
    fn index(&self, local: &Local, id: u64) -> Option<u32> {
        let is_it = |socket: &Listener<T>| socket.id == id && socket.local == *local;
        self.list(self.first(local)).find(|index| self.sockets.get(*index).is_some_and(is_it))
    }

    pub(super) fn get(&self, local: &Local, id: u64) -> Option<&Listener<T>> {
        self.sockets.get(self.index(local, id)?)
    }

    pub(super) fn get_mut(&mut self, local: &Local, id: u64) -> Option<&mut Listener<T>> {
        let index = self.index(local, id)?;
        self.sockets.get_mut(index)
    }

    /// Returns whether a new socket with this local address would conflict with one that is bound.
    pub(super) fn conflicts(&self, local: &Local, reuse: Reuse) -> bool {
        let Some(port) = self.ports.get(&port_key(local.port, local.protocol)) else {
            return false;
        };
        let list_conflicts = |first: OptIndex| {
            let first = first.get().and_then(|first| self.sockets.get(first));
            first.is_some_and(|first| first.local.is_in_conflict(first.reuse, local, reuse))
        };
        let narrower_conflict = |version: usize| {
            port.single[version] > 0 && (reuse == Reuse::No || port.exclusive[version] > 0)
        };
        let single_conflicts = match local.scope {
            Scope::Address(_) => list_conflicts(self.first(local)),
            any => versions(any).any(narrower_conflict),
        };
        single_conflicts || port.any.into_iter().any(list_conflicts)
    }

    /// The ports of a line, that of the port of `local`, that no new socket at its address can
    /// have.
    #[inline]
    pub(super) fn taken(&self, local: &Local) -> Line {
        if self.len() == 0 {
            return Line::EMPTY;
        }
        let bound = |scope| self.bound.line(LocalWords::new(&local.in_scope(scope)));
        let narrower = |scope| self.narrower.line(LocalWords::new(&local.in_scope(scope)));
        let scope = local.scope;
        bound(Scope::Any)
            | match scope {
                Scope::Address(address) => bound(scope) | bound(Scope::family(address)),
                Scope::AnyV4 | Scope::AnyV6 => bound(scope) | narrower(scope),
                Scope::Any => {
                    let families = [Scope::AnyV4, Scope::AnyV6].into_iter();
                    families
                        .fold(Line::EMPTY, |taken, family| taken | bound(family) | narrower(family))
                }
            }
    }

    /// Inserts a socket without [conflicts](Self::conflicts). Returns it if memory allocation
    /// fails.
    pub(super) fn insert(&mut self, listener: Listener<T>) -> Result<(), T> {
        let (local, reuse) = (listener.local, listener.reuse);
        if self.sockets.is_full() || !self.sockets.try_reserve() || !self.count(&local) {
            return Err(listener.socket);
        }
        if !self.make_list(&local) {
            self.remove_empty_list(&local);
            self.uncount(&local);
            return Err(listener.socket);
        }
        let index = self.sockets.insert(listener);
        self.link(&local, reuse, index);
        Ok(())
    }

    /// Counts the port of a socket. Returns false if memory allocation fails.
    fn count(&mut self, local: &Local) -> bool {
        if local.port.is_none() {
            return true;
        }
        if self.bound.insert(LocalWords::new(local)).is_none() {
            return false;
        }
        let Scope::Address(address) = local.scope else { return true };
        let family = LocalWords::new(&local.in_scope(Scope::family(address)));
        let is_counted = self.narrower.insert(family).is_some();
        if !is_counted {
            self.bound.remove(LocalWords::new(local));
        }
        is_counted
    }

    fn uncount(&mut self, local: &Local) {
        if local.port.is_none() {
            return;
        }
        self.bound.remove(LocalWords::new(local));
        if let Scope::Address(address) = local.scope {
            self.narrower.remove(LocalWords::new(&local.in_scope(Scope::family(address))));
        }
    }

    /// Makes an empty list, unless there is one. Returns false if memory allocation fails.
    fn make_list(&mut self, local: &Local) -> bool {
        let port = port_key(local.port, local.protocol);
        let at = LocalWords::new(local);
        (self.ports.contains_key(&port) || self.ports.try_insert(port, Port::EMPTY).is_ok())
            && (any_index(local.scope).is_some()
                || self.addressed.contains_key(&at)
                || self.addressed.try_insert(at, OptIndex::NONE).is_ok())
    }

    /// Removes the list of a local address and the entry of its port, if they are empty.
    fn remove_empty_list(&mut self, local: &Local) {
        let at = LocalWords::new(local);
        if any_index(local.scope).is_none() && self.first(local).is_none() {
            self.addressed.remove(&at);
        }
        let port = port_key(local.port, local.protocol);
        if self.ports.get(&port).is_some_and(Port::is_empty) {
            self.ports.remove(&port);
        }
    }

    /// Adds a socket to its list: after the first one, which remains the first one.
    fn link(&mut self, local: &Local, reuse: Reuse, index: u32) {
        self.all_ports += usize::from(local.port.is_none());
        let Some(list) = self.first_mut(local) else { return };
        let first = *list;
        match first.get().and_then(|first| self.sockets.get_mut(first)) {
            None => self.first_mut(local).into_iter().for_each(|at| *at = OptIndex::some(index)),
            Some(head) => {
                let next = core::mem::replace(&mut head.links.next, OptIndex::some(index));
                self.link_before(next, OptIndex::some(index));
                let links = Links { before: first, next };
                self.sockets.get_mut(index).into_iter().for_each(|socket| socket.links = links);
            }
        }
        if any_index(local.scope).is_some() {
            return;
        }
        let Some(port) = self.ports.get_mut(&port_key(local.port, local.protocol)) else { return };
        if port.one.is_none() {
            port.one = OptIndex::from(Some(first.get().unwrap_or(index)));
        }
        let version = versions(local.scope).start;
        port.single[version] += 1;
        port.exclusive[version] += u32::from(reuse == Reuse::No);
    }

    /// Sets the socket before another one in its list.
    fn link_before(&mut self, index: OptIndex, before: OptIndex) {
        let socket = index.get().and_then(|index| self.sockets.get_mut(index));
        socket.into_iter().for_each(|socket| socket.links.before = before);
    }

    /// Removes a socket and returns it.
    pub(super) fn remove(&mut self, local: &Local, id: u64) -> Option<T> {
        let index = self.index(local, id)?;
        let listener = self.sockets.try_remove(index)?;
        self.unlink(&listener.local, listener.reuse, index, listener.links);
        Some(listener.socket)
    }

    /// Removes the sockets for which `keep` returns false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(Name, &mut T) -> bool) {
        let mut slot = 0;
        while self.extract_next(&mut slot, |name, socket| !keep(name, socket)).is_some() {}
    }

    /// Removes and returns the next socket for which `picks` returns true, from a slot on.
    pub(super) fn extract_next(
        &mut self,
        slot: &mut u32,
        mut picks: impl FnMut(Name, &mut T) -> bool,
    ) -> Option<Listener<T>> {
        while *slot < self.sockets.slot_count() {
            let index = *slot;
            *slot += 1;
            let Some(socket) = self.sockets.get_mut(index) else { continue };
            let (local, reuse, links) = (socket.local, socket.reuse, socket.links);
            if picks(socket.name(), &mut socket.socket) {
                let removed = self.sockets.try_remove(index);
                self.unlink(&local, reuse, index, links);
                return removed;
            }
        }
        None
    }

    /// Removes a socket from the table and returns it, with the index that [`Self::put_back`] or
    /// [`Self::unlink`] needs. No socket may be inserted before.
    pub(super) fn take(&mut self, local: &Local, id: u64) -> Option<(u32, Listener<T>)> {
        let index = self.index(local, id)?;
        Some((index, self.sockets.try_remove(index)?))
    }

    /// Returns a socket to its slot, after [`Self::take`].
    pub(super) fn put_back(&mut self, listener: Listener<T>) {
        self.sockets.insert(listener);
    }

    /// Removes a slot that is free now from its list.
    pub(super) fn unlink(&mut self, local: &Local, reuse: Reuse, index: u32, links: Links) {
        self.uncount(local);
        self.all_ports -= usize::from(local.port.is_none());
        let Links { before, next } = links;
        match before.get().and_then(|before| self.sockets.get_mut(before)) {
            Some(before) => before.links.next = next,
            None => self.first_mut(local).into_iter().for_each(|first| *first = next),
        }
        self.link_before(next, before);
        let port = self.ports.get_mut(&port_key(local.port, local.protocol));
        if let (None, Some(port)) = (any_index(local.scope), port) {
            let version = versions(local.scope).start;
            // An inconsistent hasher makes counts wrong; they must not underflow.
            port.single[version] = port.single[version].saturating_sub(1);
            let exclusive = u32::from(reuse == Reuse::No);
            port.exclusive[version] = port.exclusive[version].saturating_sub(exclusive);
            if port.one == OptIndex::some(index) {
                port.one = next;
            }
        }
        self.remove_empty_list(local);
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.ports.validate().map_err(map_error)?;
        self.addressed.validate().map_err(map_error)?;
        let hasher = crate::hash::DefaultHashBuilder::default();
        let [mut bound, mut narrower] = [(); 2].map(|()| Ports::new_in(&hasher, &Global));
        let mut ids: TrashSet<u64> = TrashSet::new();
        let mut counts: TrashMap<u32, Port> = TrashMap::new();
        let mut all_ports = 0;
        for listener in self.sockets.slots().iter().filter_map(|slot| slot.entry()) {
            let Listener { local, reuse, id, .. } = *listener;
            ensure(ids.insert(id), || format!("two sockets have the id {id}"))?;
            all_ports += usize::from(local.port.is_none());
            if local.port.is_some() {
                bound.insert(LocalWords::new(&local));
            }
            let port = counts.entry(port_key(local.port, local.protocol)).or_insert(Port::EMPTY);
            let Scope::Address(address) = local.scope else { continue };
            let version = versions(local.scope).start;
            port.single[version] += 1;
            port.exclusive[version] += u32::from(reuse == Reuse::No);
            if local.port.is_some() {
                narrower.insert(LocalWords::new(&local.in_scope(Scope::family(address))));
            }
        }
        let counted = |port: &Port| (port.single, port.exclusive);
        let are_counted = counts.len() == self.ports.len()
            && counts
                .iter()
                .all(|(key, port)| self.ports.get(key).map(counted) == Some(counted(port)));
        ensure(are_counted && all_ports == self.all_ports, || "L2: a count of sockets is wrong")?;
        let are_equal =
            self.bound.is_equal(&bound, |_| 0) && self.narrower.is_equal(&narrower, |_| 0);
        ensure(are_equal, || "L3: a port in use is missing, or one is not in use")?;
        self.validate_lists()
    }

    /// Checks L1, and that no two sockets conflict.
    fn validate_lists(&self) -> Result<(), InvariantError> {
        let mut listed = 0;
        let any = self.ports.values().flat_map(|port| port.any);
        for first in any.filter(|first| first.is_some()).chain(self.addressed.values().copied()) {
            let Some(head) = first.get().and_then(|first| self.sockets.get(first)) else {
                return Err(InvariantError::new("L1: a list is empty"));
            };
            let (local, mut before) = (head.local, OptIndex::NONE);
            ensure(self.first(&local) == first, || format!("L1: {local} has another list"))?;
            for index in self.list(first) {
                let socket = self.sockets.get(index);
                ensure(socket.is_some_and(|socket| socket.local == local), || {
                    format!("L1: a socket is not in the list of {local}")
                })?;
                ensure(socket.is_some_and(|socket| socket.links.before == before), || {
                    format!("L1: the links of a socket at {local} are not inverse")
                })?;
                before = OptIndex::some(index);
                let is_shared = head.links.next.is_some();
                ensure(
                    !is_shared || socket.is_some_and(|socket| socket.reuse == Reuse::Port),
                    || format!("two sockets are bound to {local}"),
                )?;
                listed += 1;
            }
            ensure(!self.overlaps_exclusively(head), || format!("{local} is in conflict"))?;
        }
        for (port, one) in self.ports.iter().map(|(port, at)| (port, at.one)) {
            let one = one.get().map(|one| (one, self.sockets.get(one).map(|one| one.local)));
            let is_first = one.is_none_or(|(index, local)| {
                local.is_some_and(|local| self.first(&local) == OptIndex::some(index))
            });
            ensure(is_first, || format!("L1: port {port} has a group that is none"))?;
        }
        ensure(listed == self.len(), || format!("L1: {listed} of {} are in lists", self.len()))
    }

    /// Whether a socket overlaps with one at another address, and one of them does not allow it.
    fn overlaps_exclusively(&self, socket: &Listener<T>) -> bool {
        let Listener { local, reuse, .. } = *socket;
        let Some(port) = self.ports.get(&port_key(local.port, local.protocol)) else {
            return false;
        };
        let wider = port.any.into_iter().filter_map(|first| self.sockets.get(first.get()?));
        let mut wider = wider.filter(|other| other.local.scope != local.scope);
        wider.any(|other| local.is_in_conflict(reuse, &other.local, other.reuse))
            || any_index(local.scope).is_some()
                && versions(local.scope).any(|version| {
                    port.exclusive[version] > 0 || port.single[version] > 0 && reuse == Reuse::No
                })
    }
}

/// The score of a socket of a group for a packet: rendezvous hashing (Thaler and Ravishankar 1998).
///
/// The packet goes to the socket with the greatest score, so an insertion or removal does not move
/// packets between the other sockets.
#[inline]
fn score(hash: u64, id: u64) -> u64 {
    let product = u128::from(hash ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        * u128::from(0xd6e8_feb8_6659_fd93_u64 ^ id);
    (product >> 64) as u64 ^ product as u64
}
