//! Bound sockets, and those that wait behind a connection: lists in a slab, and maps to them.
//!
//! ```text
//!     ports      (protocol, port) ─▸ all:  ■ ⇄ ■ ⇄ □ ⇄ ■ ⇄ □ ⇄ □      single addresses first
//!                                    any:  the part of any address ┘
//!                                          the part of any IPv4 address, of any IPv6 address
//!
//!     addressed  (address, protocol, port) ─▸ the part at this address:  ■ ⇄ □
//!
//!     queues     (connection) ─▸ ■ ⇄ □
//! ```
//!
//! The sockets of a port are one list. A *part* of the list is the run of sockets of one local
//! address, in the order in which they were bound: one socket, or a group.
//!
//! A lookup probes `ports`, and `addressed` if sockets are bound to several single addresses at the
//! port. So the number of bound sockets does not matter. If the table has sockets of all ports, a
//! packet that matches no socket of its port takes a second lookup of the same kind.
//!
//! - **L1** Each socket is in the part of its place, and in no other; no part is empty. The links
//!   of a list are inverse to each other.
//! - **L2** An entry of `ports` counts the sockets at single addresses, and has sockets.

mod check;
mod list;

use core::hash::{BuildHasher, Hash};

use super::ends::PacketQuery;
use super::local::{LocalWords, Scope};
use super::{Local, Name, Reuse};
use crate::hash::Prehashed;
use crate::key::flow::FlowKey;
use crate::memory::Allocator;
use crate::raw::slab::{Contiguous, OptIndex, Slab};
use crate::trash::{Entry, TrashMap};
use list::List;

pub(super) use list::{HashedPlace, Links, Listener, Place};

/// Bound sockets by local address, and queued ones by connection.
#[derive(Clone)]
pub(super) struct Listeners<T, S, A: Allocator + Clone> {
    sockets: Sockets<T, A>,
    ports: TrashMap<u32, Port, S, A>,
    addressed: TrashMap<LocalWords, List, S, A>,
    queues: TrashMap<FlowKey, List, S, A>,
    /// The number of sockets with all ports. It is mostly zero, and lookups skip their keys.
    all_ports: usize,
}

pub(super) type Sockets<T, A> = Slab<Listener<T>, Contiguous<Listener<T>, A>>;

/// The sockets at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port {
    /// All sockets. Those at single addresses are the first ones.
    all: List,
    /// The parts at any address, at any of IPv4 and at any of IPv6.
    any: [List; 3],
    /// The number of sockets at single addresses of IPv4 and of IPv6.
    single: [u32; 2],
    /// How many of these have [`Reuse::No`].
    exclusive: [u32; 2],
}

impl Port {
    const EMPTY: Self =
        Self { all: List::EMPTY, any: [List::EMPTY; 3], single: [0; 2], exclusive: [0; 2] };
}

/// The key of a port, or of all ports.
#[inline]
fn port_key(port: Option<u16>, protocol: u8) -> u32 {
    u32::from(protocol) << 24 | port.map_or(1 << 16, u32::from)
}

fn key_of(local: &Local) -> u32 {
    port_key(local.port, local.protocol)
}

/// The index of the part of a scope in [`Port::any`]; `None` for a single address.
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
            queues: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            all_ports: 0,
        }
    }
}

impl<T, S, A: Allocator + Clone> Listeners<T, S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        let maps = self.ports.allocation_size() + self.addressed.allocation_size();
        self.sockets.allocation_size() + maps + self.queues.allocation_size()
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &Listener<T>> {
        self.sockets.slots().iter().filter_map(|slot| slot.entry())
    }

    fn at(&self, index: OptIndex) -> Option<&Listener<T>> {
        self.sockets.get(index.get()?)
    }

    /// The indices of a list from one on. Links that an inconsistent hasher has made wrong may form
    /// a cycle, so it ends after all sockets.
    fn list(&self, first: OptIndex) -> impl Iterator<Item = u32> {
        let next = |index| {
            self.sockets.get(index).map_or(OptIndex::NONE, |socket: &Listener<T>| socket.links.next)
        };
        first.list(next).take(self.len() + 1)
    }

    /// The indices of the part that begins with a socket.
    fn part(&self, first: OptIndex) -> impl Iterator<Item = u32> {
        let place = self.at(first).map(|first| first.place);
        let is_there = move |index: &u32| {
            self.sockets.get(*index).map(|socket| socket.place) == place && place.is_some()
        };
        self.list(first).take_while(is_there)
    }

    /// Selects the socket of a part for a packet with this hash.
    #[inline]
    fn select(&self, first: OptIndex, hash: impl Fn() -> u64) -> Option<u32> {
        let index = first.get()?;
        let head = self.sockets.get(index)?;
        if head.links.next.is_none() || head.reuse != Reuse::Port {
            return Some(index);
        }
        self.select_member(first, hash())
    }

    #[inline(never)]
    fn select_member(&self, first: OptIndex, hash: u64) -> Option<u32> {
        let score = |index: &u32| self.sockets.get(*index).map(|member| score(hash, member.id));
        let has_a_share =
            |index: &u32| self.sockets.get(*index).is_some_and(|one| one.reuse == Reuse::Port);
        self.part(first).filter(has_a_share).max_by_key(score)
    }
}

impl<T, S: BuildHasher, A: Allocator + Clone> Listeners<T, S, A> {
    /// The first sockets of the parts that match a packet, at its port or at all ports, best match
    /// first.
    #[inline]
    fn parts(&self, packet: &FlowKey, all_ports: bool) -> [OptIndex; 3] {
        let port = (!all_ports).then(|| packet.dport());
        let Some(port) = self.ports.get(&port_key(port, packet.protocol())) else {
            return [OptIndex::NONE; 3];
        };
        let version = usize::from(matches!(packet, FlowKey::V6(_)));
        let single = match port.single[version] {
            0 => OptIndex::NONE,
            _ => self.part_at(port.all.first, LocalWords::of_packet(packet, all_ports)[0]),
        };
        [single, port.any[1 + version].first, port.any[0].first]
    }

    /// The first socket at a single address, which is `one` in most cases.
    #[inline]
    fn part_at(&self, one: OptIndex, at: LocalWords) -> OptIndex {
        let is_it = |one: &Listener<T>| one.local().map(LocalWords::new) == Some(at);
        if self.at(one).is_some_and(is_it) {
            return one;
        }
        self.addressed.get(&at).map_or(OptIndex::NONE, |list| list.first)
    }

    /// Returns the index of the socket that matches a packet best. Hashes the packet if a group of
    /// several does, or if sockets wait behind connections.
    #[inline]
    fn best(&self, packet: &impl PacketQuery) -> Option<u32> {
        if let Some(queue) = self.queue(packet) {
            return queue.first.get();
        }
        let key = packet.key();
        let best = |all_ports| self.parts(key, all_ports).into_iter().find(|first| first.is_some());
        let first = best(false).or_else(|| if self.all_ports > 0 { best(true) } else { None });
        self.select(first?, || packet.hash_with(self.queues.hasher()))
    }

    /// The sockets that wait behind a connection.
    #[inline(always)]
    fn queue(&self, packet: &impl PacketQuery) -> Option<List> {
        if self.queues.is_empty() {
            return None;
        }
        // The packet is not passed on, so its hash stays in a register.
        let hash = packet.hash_with(self.queues.hasher());
        self.queue_of(Prehashed { hash, key: packet.key() })
    }

    #[inline(never)]
    fn queue_of(&self, packet: Prehashed<&FlowKey>) -> Option<List> {
        self.queues.get(packet).copied()
    }

    #[inline]
    pub(super) fn has_queue(&self, packet: &impl PacketQuery) -> bool {
        self.len() > 0 && self.queue(packet).is_some()
    }

    /// Returns the socket that matches a packet best. Not inlined, so that a lookup of a connection
    /// has the registers.
    #[inline(never)]
    pub(super) fn find(&self, packet: &impl PacketQuery) -> Option<&Listener<T>> {
        self.sockets.get(self.best(packet)?)
    }

    /// Returns a mutable reference to the socket that matches a packet best.
    #[inline(never)]
    pub(super) fn find_mut(&mut self, packet: &impl PacketQuery) -> Option<&mut Listener<T>> {
        let best = self.best(packet)?;
        self.sockets.get_mut(best)
    }

    /// All sockets that match a packet, the best first.
    pub(super) fn matches(&self, packet: impl PacketQuery) -> impl Iterator<Item = &Listener<T>> {
        let queue = self.queue(&packet).map_or(OptIndex::NONE, |queue| queue.first);
        let parts = [false, true].map(|all_ports| self.parts(packet.key(), all_ports));
        let parts = [queue].into_iter().chain(parts.into_iter().flatten());
        let indices = parts.flat_map(|first| self.part(first));
        indices.filter_map(|index| self.sockets.get(index))
    }

    /// The sockets at the port of a packet that are bound to one address of its version, but not to
    /// its destination.
    pub(super) fn at_other_addresses(&self, packet: FlowKey) -> impl Iterator<Item = &Listener<T>> {
        let port = self.ports.get(&port_key(Some(packet.dport()), packet.protocol()));
        let to = packet.dst();
        let is_other = move |listener: &&Listener<T>| {
            listener.local().is_some_and(|local| match local.scope {
                Scope::Address(own) => own != to && own.is_ipv4() == to.is_ipv4(),
                _ => false,
            })
        };
        let all = self.list(port.map_or(OptIndex::NONE, |port| port.all.first));
        all.filter_map(|index| self.sockets.get(index)).filter(is_other)
    }

    /// Returns the reuse of the bound socket that accepts a connection, if there is one.
    #[inline]
    pub(super) fn reuse_of(&self, key: &FlowKey) -> Reuse {
        if self.len() == 0 {
            return Reuse::No;
        }
        let first = self.parts(key, false).into_iter().find(|first| first.is_some());
        first.and_then(|first| self.at(first)).map_or(Reuse::No, |listener| listener.reuse)
    }

    /// A place with the hashes of its keys.
    pub(super) fn hashed(&self, place: Place) -> HashedPlace {
        let hasher = self.ports.hasher();
        let (port, part) = match &place {
            Place::Queued(key) => (0, hasher.hash_one(key)),
            Place::Bound(local) => {
                let part = local.is_single().then(|| hasher.hash_one(LocalWords::new(local)));
                (hasher.hash_one(key_of(local)), part.unwrap_or(0))
            }
        };
        HashedPlace { place, port, part }
    }

    /// The part of a place.
    fn part_of(&self, at: &HashedPlace) -> List {
        let part = match &at.place {
            Place::Queued(key) => self.queues.get(at.part_key(key)).copied(),
            Place::Bound(local) => match any_index(local.scope) {
                Some(any) => self.port(at, local).map(|port| port.any[any]),
                None => self.addressed.get(at.part_key(&LocalWords::new(local))).copied(),
            },
        };
        part.unwrap_or(List::EMPTY)
    }

    fn part_of_mut(&mut self, at: &HashedPlace) -> Option<&mut List> {
        match &at.place {
            Place::Queued(key) => self.queues.get_mut(at.part_key(key)),
            Place::Bound(local) => match any_index(local.scope) {
                Some(any) => self.port_mut(at, local).map(|port| &mut port.any[any]),
                None => self.addressed.get_mut(at.part_key(&LocalWords::new(local))),
            },
        }
    }

    /// The entry of a place's port.
    fn port(&self, at: &HashedPlace, local: &Local) -> Option<&Port> {
        self.ports.get(at.port_key(&key_of(local)))
    }

    fn port_mut(&mut self, at: &HashedPlace, local: &Local) -> Option<&mut Port> {
        self.ports.get_mut(at.port_key(&key_of(local)))
    }

    /// The index of a socket.
    fn index(&self, place: &HashedPlace, id: u64) -> Option<u32> {
        let is_it = |socket: &Listener<T>| socket.id == id;
        let part = self.part_of(place);
        self.part(part.first).find(|index| self.sockets.get(*index).is_some_and(is_it))
    }

    pub(super) fn get(&self, place: &HashedPlace, id: u64) -> Option<&Listener<T>> {
        self.sockets.get(self.index(place, id)?)
    }

    pub(super) fn get_mut(&mut self, place: &HashedPlace, id: u64) -> Option<&mut Listener<T>> {
        let index = self.index(place, id)?;
        self.sockets.get_mut(index)
    }

    /// Returns whether a socket at this local address would conflict with one that is bound, except
    /// with the socket that is to be moved there.
    pub(super) fn conflicts(
        &self,
        place: &HashedPlace,
        local: &Local,
        reuse: Reuse,
        moved: OptIndex,
    ) -> bool {
        let Some(port) = self.port(place, local) else { return false };
        let moved_from = self.at(moved).filter(|one| {
            one.local().is_some_and(|own| key_of(own) == key_of(local) && own.is_single())
        });
        // The others of a group have agreed with the first one, and allow the same.
        let conflicts_with = |part: List| {
            let first = self.part(part.first).map(OptIndex::some).find(|one| *one != moved);
            first.and_then(|first| self.at(first)).is_some_and(|first| {
                first.local().is_some_and(|own| own.is_in_conflict(first.reuse, local, reuse))
            })
        };
        let narrower_conflict = |version: usize| {
            let own = moved_from.filter(|one| one.version() == version);
            let exclusive = own.is_some_and(|one| one.reuse == Reuse::No);
            port.single[version] > u32::from(own.is_some())
                && (reuse == Reuse::No || port.exclusive[version] > u32::from(exclusive))
        };
        let single_conflicts = match local.scope {
            Scope::Address(_) => conflicts_with(self.part_of(place)),
            any => versions(any).any(narrower_conflict),
        };
        single_conflicts || port.any.into_iter().any(conflicts_with)
    }

    /// Inserts a socket without [conflicts](Self::conflicts). Returns it if memory allocation
    /// fails.
    pub(super) fn insert(&mut self, listener: Listener<T>, place: &HashedPlace) -> Result<(), T> {
        if self.sockets.is_full() || !self.sockets.try_reserve() || !self.make_part(place) {
            self.remove_empty(place);
            return Err(listener.socket);
        }
        let index = self.sockets.insert(listener);
        self.link(place, index);
        Ok(())
    }

    /// Makes an empty part, unless there is one. Returns false if memory allocation fails.
    fn make_part(&mut self, at: &HashedPlace) -> bool {
        let Self { ports, addressed, queues, .. } = self;
        match &at.place {
            Place::Queued(key) => insert_absent(queues, at.part_key(key), List::EMPTY),
            Place::Bound(local) => {
                let address = LocalWords::new(local);
                insert_absent(ports, at.port_key(&key_of(local)), Port::EMPTY)
                    && (!local.is_single()
                        || insert_absent(addressed, at.part_key(&address), List::EMPTY))
            }
        }
    }

    /// Removes the part of a place and the entry of its port, if they are empty.
    fn remove_empty(&mut self, at: &HashedPlace) {
        let is_empty = self.part_of(at) == List::EMPTY;
        match &at.place {
            Place::Queued(key) if is_empty => _ = self.queues.remove(at.part_key(key)),
            Place::Queued(_) => {}
            Place::Bound(local) => {
                if is_empty && local.is_single() {
                    self.addressed.remove(at.part_key(&LocalWords::new(local)));
                }
                if self.port(at, local).is_some_and(|port| port.all == List::EMPTY) {
                    self.ports.remove(at.port_key(&key_of(local)));
                }
            }
        }
    }

    /// Adds a socket to the end of the part of its place.
    fn link(&mut self, place: &HashedPlace, index: u32) {
        let Some(&Listener { reuse, .. }) = self.sockets.get(index) else { return };
        let at = OptIndex::some(index);
        let part = self.part_of(place);
        let mut links = Links {
            before: part.last,
            next: self.at(part.last).map_or(OptIndex::NONE, |last| last.links.next),
        };
        if let Some(part) = self.part_of_mut(place) {
            part.push_last(at);
        }
        if let Place::Bound(local) = &place.place {
            self.all_ports += usize::from(local.port.is_none());
            let Some(port) = self.port_mut(place, local) else { return };
            let is_single = local.is_single();
            if is_single {
                let version = versions(local.scope).start;
                port.single[version] += 1;
                port.exclusive[version] += u32::from(reuse == Reuse::No);
            }
            // A new part is the first of the port or the last.
            match (part == List::EMPTY, is_single) {
                (true, true) => {
                    links.next = port.all.first;
                    port.all.push_first(at);
                }
                (true, false) => {
                    links.before = port.all.last;
                    port.all.push_last(at);
                }
                (false, _) if port.all.last == links.before => port.all.last = at,
                (false, _) => {}
            }
        }
        self.set_links(links, [at; 2]);
        if let Some(socket) = self.sockets.get_mut(index) {
            socket.links = links;
        }
    }

    /// Sets the links of two neighbours, each to the other one's side.
    fn set_links(&mut self, between: Links, [before, next]: [OptIndex; 2]) {
        if let Some(socket) = between.before.get().and_then(|at| self.sockets.get_mut(at)) {
            socket.links.next = before;
        }
        if let Some(socket) = between.next.get().and_then(|at| self.sockets.get_mut(at)) {
            socket.links.before = next;
        }
    }

    /// Removes a socket and returns it.
    pub(super) fn remove(&mut self, place: Place, id: u64) -> Option<Listener<T>> {
        let place = self.hashed(place);
        let (index, listener) = self.take(&place, id)?;
        self.unlink(&place, listener.reuse, listener.links, index);
        Some(listener)
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
            if picks(socket.name(), &mut socket.socket) {
                let removed = self.sockets.try_remove(index)?;
                self.unlink(&self.hashed(removed.place), removed.reuse, removed.links, index);
                return Some(removed);
            }
        }
        None
    }

    /// Removes a socket from the slab and returns it, with the index that [`Self::put_back`] or
    /// [`Self::unlink`] needs. No socket may be inserted before.
    pub(super) fn take(&mut self, place: &HashedPlace, id: u64) -> Option<(u32, Listener<T>)> {
        let index = self.index(place, id)?;
        Some((index, self.sockets.try_remove(index)?))
    }

    /// Returns a socket to its slot, after [`Self::take`].
    pub(super) fn put_back(&mut self, listener: Listener<T>) {
        self.sockets.insert(listener);
    }

    /// Removes a socket, whose slot is free now, from its list.
    pub(super) fn unlink(&mut self, place: &HashedPlace, reuse: Reuse, links: Links, index: u32) {
        self.detach(place, reuse, links, OptIndex::some(index));
        self.remove_empty(place);
    }

    /// Removes a socket from its list, and keeps the entries of its port and its part.
    fn detach(&mut self, place: &HashedPlace, reuse: Reuse, links: Links, at: OptIndex) {
        self.set_links(links, [links.next, links.before]);
        if let Some(part) = self.part_of_mut(place) {
            part.remove(at, links);
        }
        let Place::Bound(local) = &place.place else { return };
        self.all_ports -= usize::from(local.port.is_none());
        let Some(port) = self.port_mut(place, local) else { return };
        port.all.remove(at, links);
        if local.is_single() {
            let version = versions(local.scope).start;
            // An inconsistent hasher makes counts wrong; they must not underflow.
            port.single[version] = port.single[version].saturating_sub(1);
            let exclusive = u32::from(reuse == Reuse::No);
            port.exclusive[version] = port.exclusive[version].saturating_sub(exclusive);
        }
    }

    /// The index of a bound socket.
    pub(super) fn index_of_bound(&self, place: &HashedPlace, id: u64) -> OptIndex {
        OptIndex::from(self.index(place, id))
    }

    /// Moves a bound socket from an old place to a new one, without [conflicts](Self::conflicts).
    /// Returns false if memory allocation fails: then nothing has changed.
    pub(super) fn rebind(
        &mut self,
        at: OptIndex,
        [old, new]: [&HashedPlace; 2],
        reuse: Reuse,
    ) -> bool {
        if !self.make_part(new) {
            self.remove_empty(new);
            return false;
        }
        let Some(index) = at.get() else { return false };
        let Some(&Listener { reuse: former, links, .. }) = self.sockets.get(index) else {
            return false;
        };
        self.detach(old, former, links, at);
        if let Some(socket) = self.sockets.get_mut(index) {
            (socket.place, socket.reuse) = (new.place, reuse);
        }
        self.link(new, index);
        self.remove_empty(old);
        true
    }
}

/// Inserts a value, unless the key has one. Returns false if memory allocation fails.
fn insert_absent<K, V, S, A>(map: &mut TrashMap<K, V, S, A>, key: Prehashed<&K>, value: V) -> bool
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
{
    match map.try_entry_ref(key) {
        Ok(Entry::Occupied(_)) => true,
        Ok(Entry::Vacant(vacant)) => vacant.try_insert(value).is_ok(),
        Err(_) => false,
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
