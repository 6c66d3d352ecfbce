//! Bound sockets: an array, or a map of groups if there are more than 16.
//!
//! ```text
//!     up to 16    small      │ local, reuse, id, socket │ …
//!
//!     above       groups     (address, port) → ■ □ □     a group: sockets with Reuse::Port
//!                            (any IPv4, port) → ■
//!                 narrower   (any IPv4, port) → number of sockets at that port of single
//!                                               addresses, and how many have Reuse::No
//! ```
//!
//! A lookup in the array tests each socket, which is the specification of a lookup in the map. That
//! probes at most six keys: the address, any of its version and any, with the port and then with
//! all ports.
//!
//! - **L1** Either all sockets are in `small`, which has at most [`MAX_SMALL`], or all are in
//!   groups.
//! - **L2** Each socket is in the group of its local address, and no group is empty.
//! - **L3** `narrower` counts the sockets of groups at single addresses, and has no count of zero.

use alloc::format;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::mem;
use core::net::IpAddr;

use super::local::{LocalWords, Scope};
use super::small_table::{MAX_SMALL, SHRINK_AT};
use super::{Local, Match, Name, Reuse, map_error};
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::FlowKey;
use crate::trash::TrashMap;

/// Bound sockets by local address.
#[derive(Clone, Debug)]
pub(super) struct Listeners<T, S> {
    small: Vec<Listener<T>>,
    groups: TrashMap<LocalWords, Group<T>, S>,
    narrower: TrashMap<LocalWords, Narrower, S>,
    /// The number of sockets in groups.
    grouped: usize,
    /// The number of groups with all ports. It is mostly zero, and lookups skip their keys.
    all_ports: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Listener<T> {
    pub(super) local: Local,
    pub(super) reuse: Reuse,
    pub(super) id: u64,
    pub(super) socket: T,
}

impl<T> Listener<T> {
    pub(super) fn name(&self) -> Name {
        Name::Bound { local: self.local, id: self.id }
    }

    pub(super) fn found(&self) -> Match<&T> {
        Match { socket: &self.socket, by: self.local.specificity() }
    }
}

/// Sockets with equal local addresses: one, and mostly no others.
#[derive(Clone, Debug)]
struct Group<T> {
    first: Listener<T>,
    others: Vec<Listener<T>>,
}

/// Narrower bindings: the sockets at a port of single addresses of an IP version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Narrower {
    sockets: usize,
    /// Sockets with [`Reuse::No`].
    exclusive: usize,
}

impl<T, S: Clone> Listeners<T, S> {
    pub(super) fn new(hasher: &S) -> Self {
        Self {
            small: Vec::new(),
            groups: TrashMap::with_hasher(hasher.clone()),
            narrower: TrashMap::with_hasher(hasher.clone()),
            grouped: 0,
            all_ports: 0,
        }
    }
}

impl<T> Group<T> {
    fn iter(&self) -> impl Iterator<Item = &Listener<T>> {
        core::iter::once(&self.first).chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Listener<T>> {
        core::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// Adds a socket. Returns it if memory allocation fails.
    fn push(&mut self, listener: Listener<T>) -> Result<(), Listener<T>> {
        if self.others.try_reserve(1).is_err() {
            return Err(listener);
        }
        self.others.push(listener);
        Ok(())
    }

    /// Selects the socket for a packet with this hash.
    #[inline]
    fn select(&self, hash: impl Fn() -> u64) -> &Listener<T> {
        if self.others.is_empty() {
            return &self.first;
        }
        let hash = hash();
        let best = self.iter().max_by_key(|member| score(hash, member.id));
        best.unwrap_or(&self.first)
    }
}

impl<T, S> Listeners<T, S> {
    pub(super) fn len(&self) -> usize {
        self.small.len() + self.grouped
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Listener<T>> {
        self.small.iter().chain(self.groups.values().flat_map(Group::iter))
    }
}

impl<T, S: BuildHasher> Listeners<T, S> {
    /// Returns the socket that matches a packet best. Calls `hash` if a group of several does.
    #[inline]
    pub(super) fn find(&self, packet: &FlowKey, hash: impl Fn() -> u64) -> Option<&Listener<T>> {
        if self.grouped == 0 {
            return self.small.get(self.best(packet, hash)?);
        }
        let best = |all_ports| {
            LocalWords::of_packet(packet, all_ports).iter().find_map(|local| self.groups.get(local))
        };
        let group = best(false).or_else(|| if self.all_ports > 0 { best(true) } else { None });
        group.map(|group| group.select(hash))
    }

    /// Returns a mutable reference to the socket that matches a packet best.
    pub(super) fn find_mut(
        &mut self,
        packet: &FlowKey,
        hash: impl Fn() -> u64,
    ) -> Option<&mut Listener<T>> {
        if self.grouped == 0 {
            let best = self.best(packet, hash)?;
            return self.small.get_mut(best);
        }
        let (local, id) = self.find(packet, hash).map(|found| (found.local, found.id))?;
        self.get_mut(&local, id)
    }

    /// All sockets that match a packet, the best first.
    pub(super) fn matches(&self, packet: &FlowKey) -> impl Iterator<Item = &Listener<T>> {
        let small =
            |local| self.small.iter().filter(move |other| LocalWords::new(&other.local) == local);
        let grouped = |local| self.groups.get(&local).into_iter().flat_map(Group::iter);
        let locals = [false, true].map(|all_ports| LocalWords::of_packet(packet, all_ports));
        locals.into_iter().flatten().flat_map(move |local| small(local).chain(grouped(local)))
    }

    pub(super) fn get(&self, local: &Local, id: u64) -> Option<&Listener<T>> {
        let eq = |&other: &&Listener<T>| other.id == id && other.local == *local;
        if self.grouped == 0 {
            return self.small.iter().find(eq);
        }
        self.groups.get(&LocalWords::new(local))?.iter().find(eq)
    }

    pub(super) fn get_mut(&mut self, local: &Local, id: u64) -> Option<&mut Listener<T>> {
        let eq = |other: &&mut Listener<T>| other.id == id && other.local == *local;
        if self.grouped == 0 {
            return self.small.iter_mut().find(eq);
        }
        self.groups.get_mut(&LocalWords::new(local))?.iter_mut().find(eq)
    }

    /// Returns whether a new socket with this local address would conflict with one that is bound.
    pub(super) fn conflicts(&self, local: &Local, reuse: Reuse) -> bool {
        if self.grouped == 0 {
            let conflicts =
                |other: &Listener<T>| other.local.is_in_conflict(other.reuse, local, reuse);
            return self.small.iter().any(conflicts);
        }
        let group_conflicts = |scope| {
            let bound = local.in_scope(scope);
            let group = self.groups.get(&LocalWords::new(&bound));
            group.is_some_and(|group| bound.is_in_conflict(group.first.reuse, local, reuse))
        };
        let narrower_conflict = |family| {
            let narrower = self.narrower.get(&LocalWords::new(&local.in_scope(family)));
            narrower.is_some_and(|narrower| reuse == Reuse::No || narrower.exclusive > 0)
        };
        let scope = local.scope;
        match scope {
            Scope::Address(address) => {
                [scope, Scope::family(address), Scope::Any].into_iter().any(group_conflicts)
            }
            Scope::AnyV4 | Scope::AnyV6 => {
                [scope, Scope::Any].into_iter().any(group_conflicts) || narrower_conflict(scope)
            }
            Scope::Any => {
                let families = [Scope::AnyV4, Scope::AnyV6];
                group_conflicts(Scope::Any)
                    || families
                        .into_iter()
                        .any(|family| group_conflicts(family) || narrower_conflict(family))
            }
        }
    }

    /// Returns whether a socket is bound to this port of this address, without sockets of all
    /// ports.
    pub(super) fn has_port(&self, address: IpAddr, port: u16, protocol: u8) -> bool {
        let local = Local { scope: Scope::Address(address), port: Some(port), protocol };
        if self.grouped == 0 {
            let has = |other: &Listener<T>| {
                (other.local.port, other.local.protocol) == (local.port, protocol)
                    && other.local.takes(address)
            };
            return self.small.iter().any(has);
        }
        let scopes = [local.scope, Scope::family(address), Scope::Any];
        scopes
            .into_iter()
            .any(|scope| self.groups.contains_key(&LocalWords::new(&local.in_scope(scope))))
    }

    /// Inserts a socket without [conflicts](Self::conflicts). Returns it if memory allocation
    /// fails.
    pub(super) fn insert(&mut self, listener: Listener<T>) -> Result<(), T> {
        if self.grouped == 0 && self.small.len() < MAX_SMALL {
            if self.small.try_reserve(1).is_err() {
                return Err(listener.socket);
            }
            self.small.push(listener);
            return Ok(());
        }
        if self.grouped == 0 && !self.move_to_groups() {
            return Err(listener.socket);
        }
        self.insert_grouped(listener).map_err(|listener| listener.socket)
    }

    /// Removes a socket and returns it.
    pub(super) fn remove(&mut self, local: &Local, id: u64) -> Option<T> {
        if self.grouped == 0 {
            let eq = |other: &Listener<T>| other.id == id && other.local == *local;
            let index = self.small.iter().position(eq)?;
            return Some(self.small.swap_remove(index).socket);
        }
        let listener = self.remove_grouped(local, id)?;
        if self.grouped <= SHRINK_AT && self.small.try_reserve(self.grouped).is_ok() {
            self.move_to_small();
        }
        Some(listener.socket)
    }

    /// The index in the array of the socket that matches a packet best.
    #[inline]
    fn best(&self, packet: &FlowKey, hash: impl Fn() -> u64) -> Option<usize> {
        let (address, port, protocol) = (packet.dst(), packet.dport(), packet.protocol());
        let matches = |other: &Listener<T>| {
            other.local.protocol == protocol
                && other.local.port.is_none_or(|bound| bound == port)
                && other.local.takes(address)
        };
        let (mut best, mut is_shared) = (None, false);
        for (index, other) in self.small.iter().enumerate().filter(|(_, other)| matches(other)) {
            let rank = other.local.rank();
            match best {
                Some((_, greatest)) if rank < greatest => {}
                Some((_, greatest)) if rank == greatest => is_shared = true,
                _ => (best, is_shared) = (Some((index, rank)), false),
            }
        }
        let (index, rank) = best?;
        if !is_shared {
            return Some(index);
        }
        let hash = hash();
        let members = self.small.iter().enumerate();
        let members = members.filter(|(_, other)| other.local.rank() == rank && matches(other));
        members.max_by_key(|(_, other)| score(hash, other.id)).map(|(index, _)| index)
    }

    /// Moves all sockets from the array to groups. If memory allocation fails, returns false and
    /// moves none.
    fn move_to_groups(&mut self) -> bool {
        while let Some(listener) = self.small.pop() {
            if let Err(listener) = self.insert_grouped(listener) {
                self.small.push(listener);
                self.move_to_small();
                return false;
            }
        }
        true
    }

    /// Moves all sockets from the groups to the array, which has the capacity.
    fn move_to_small(&mut self) {
        for (_, Group { first, others }) in self.groups.drain() {
            self.small.push(first);
            self.small.extend(others);
        }
        self.narrower.clear();
        (self.grouped, self.all_ports) = (0, 0);
    }

    /// Inserts a socket into its group. Returns it if memory allocation fails.
    fn insert_grouped(&mut self, listener: Listener<T>) -> Result<(), Listener<T>> {
        let (local, reuse) = (listener.local, listener.reuse);
        if !self.increment(&local, reuse) {
            return Err(listener);
        }
        let rejected = match self.groups.get_mut(&LocalWords::new(&local)) {
            Some(group) => group.push(listener).err(),
            None => {
                let group = Group { first: listener, others: Vec::new() };
                let rejected = self.groups.try_insert(LocalWords::new(&local), group).err();
                self.all_ports += usize::from(rejected.is_none() && local.port.is_none());
                rejected.map(|rejected| rejected.value.first)
            }
        };
        if let Some(listener) = rejected {
            self.decrement(&local, reuse);
            return Err(listener);
        }
        self.grouped += 1;
        Ok(())
    }

    fn remove_grouped(&mut self, local: &Local, id: u64) -> Option<Listener<T>> {
        let group = self.groups.get_mut(&LocalWords::new(local))?;
        let index = group.iter().position(|other| other.id == id)?;
        let listener = if group.others.is_empty() {
            self.all_ports -= usize::from(local.port.is_none());
            self.groups.remove(&LocalWords::new(local))?.first
        } else if index == 0 {
            mem::replace(&mut group.first, group.others.swap_remove(0))
        } else {
            group.others.swap_remove(index - 1)
        };
        self.decrement(local, listener.reuse);
        self.grouped -= 1;
        Some(listener)
    }

    /// Counts a socket in `narrower`, if it is at a single address. Returns false if memory
    /// allocation fails.
    fn increment(&mut self, local: &Local, reuse: Reuse) -> bool {
        let Scope::Address(address) = local.scope else { return true };
        let family = LocalWords::new(&local.in_scope(Scope::family(address)));
        let exclusive = usize::from(reuse == Reuse::No);
        if let Some(narrower) = self.narrower.get_mut(&family) {
            narrower.sockets += 1;
            narrower.exclusive += exclusive;
            return true;
        }
        self.narrower.try_insert(family, Narrower { sockets: 1, exclusive }).is_ok()
    }

    fn decrement(&mut self, local: &Local, reuse: Reuse) {
        let Scope::Address(address) = local.scope else { return };
        let family = LocalWords::new(&local.in_scope(Scope::family(address)));
        if let Some(narrower) = self.narrower.get_mut(&family) {
            let exclusive = usize::from(reuse == Reuse::No);
            // An inconsistent hasher makes counts wrong; they must not underflow.
            narrower.sockets = narrower.sockets.saturating_sub(1);
            narrower.exclusive = narrower.exclusive.saturating_sub(exclusive);
            if narrower.sockets == 0 {
                self.narrower.remove(&family);
            }
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.groups.validate().map_err(map_error)?;
        self.narrower.validate().map_err(map_error)?;
        let small = self.small.len();
        ensure(small <= MAX_SMALL && (small == 0 || self.grouped == 0), || {
            format!("L1: {small} sockets in the array, {} in groups", self.grouped)
        })?;
        self.validate_groups()?;
        self.validate_rules()
    }

    /// Checks L2, L3 and the counts of sockets and groups.
    fn validate_groups(&self) -> Result<(), InvariantError> {
        let (mut grouped, mut all_ports) = (0, 0);
        let mut narrower: TrashMap<LocalWords, Narrower> = TrashMap::new();
        for (key, group) in &self.groups {
            let belongs = group.iter().all(|listener| LocalWords::new(&listener.local) == *key);
            ensure(belongs, || "L2: a socket is in the group of another address")?;
            let local = group.first.local;
            grouped += group.iter().count();
            all_ports += usize::from(local.port.is_none());
            for listener in group.iter() {
                let Scope::Address(address) = local.scope else { continue };
                let family = LocalWords::new(&local.in_scope(Scope::family(address)));
                let narrower = narrower.entry(family).or_default();
                narrower.sockets += 1;
                narrower.exclusive += usize::from(listener.reuse == Reuse::No);
            }
        }
        let is_counted = |(family, count)| self.narrower.get(family) == Some(count);
        let counts_hold = narrower.len() == self.narrower.len() && narrower.iter().all(is_counted);
        ensure(counts_hold, || "L3: a count of narrower bindings is wrong")?;
        ensure(
            (grouped, all_ports) == (self.grouped, self.all_ports),
            || "the count of sockets in groups or of groups with all ports is wrong",
        )
    }

    /// Checks that ids are unique and no two sockets conflict, by comparing all pairs.
    fn validate_rules(&self) -> Result<(), InvariantError> {
        for (index, this) in self.iter().enumerate() {
            for that in self.iter().skip(index + 1) {
                ensure(this.id != that.id, || format!("two sockets have the id {}", this.id))?;
                ensure(!this.local.is_in_conflict(this.reuse, &that.local, that.reuse), || {
                    format!("bound sockets conflict: {} and {}", this.local, that.local)
                })?;
            }
        }
        Ok(())
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
