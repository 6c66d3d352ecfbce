//! Bound sockets: an array while they are few, then a map of groups.
//!
//! ```text
//!     up to 16    few       │ where, reuse, number, socket │ …
//!
//!     above       groups    (address, port) → ■ □ □      sockets that share it; all but one have Reuse::Port
//!                           (any IPv4, port) → ■
//!                 beneath   (any IPv4, port) → sockets at that port of single addresses: how many, and how
//!                                              many of these share with nobody
//! ```
//!
//! The array asks each socket, and so is its own specification. The map asks at most six places: the address,
//! any of its version and any at all, with the port and then with all ports.
//!
//! - **L1** Either all are in `few`, which has at most [`FEW`], or all are in the groups.
//! - **L2** No group is empty, and no count in `beneath` is zero.

use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::mem;
use core::net::IpAddr;

use super::few::FEW;
use super::local::{LocalWords, Scope};
use super::{Broken, Local, Match, Name, Reuse};
use crate::key::flow::FlowKey;
use crate::trash::TrashMap;

/// Sockets back in the array when there are so many left: a few bound and removed move nothing.
const FEW_AGAIN: usize = FEW / 2;

/// Bound sockets by where they are bound.
#[derive(Clone, Debug)]
pub(super) struct Listeners<T, S> {
    few: Vec<Listener<T>>,
    groups: TrashMap<LocalWords, Group<T>, S>,
    beneath: TrashMap<LocalWords, Beneath, S>,
    /// Sockets in the groups.
    grouped: usize,
    /// Groups that take all ports. Mostly there are none, and packets need not ask.
    all_ports: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Listener<T> {
    pub(super) local: Local,
    pub(super) reuse: Reuse,
    pub(super) number: u64,
    pub(super) socket: T,
}

impl<T> Listener<T> {
    pub(super) fn name(&self) -> Name {
        Name::Bound { local: self.local, number: self.number }
    }

    pub(super) fn found(&self) -> Match<&T> {
        Match { socket: &self.socket, by: self.local.specificity() }
    }
}

/// Sockets at the same place. There is a first one, and mostly no other.
#[derive(Clone, Debug)]
struct Group<T> {
    first: Listener<T>,
    others: Vec<Listener<T>>,
}

/// Sockets at single addresses of a version, by port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Beneath {
    sockets: usize,
    /// Those that share with nobody.
    exclusive: usize,
}

impl<T, S: Clone> Listeners<T, S> {
    pub(super) fn new(hasher: &S) -> Self {
        Self {
            few: Vec::new(),
            groups: TrashMap::with_hasher(hasher.clone()),
            beneath: TrashMap::with_hasher(hasher.clone()),
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

    /// Gives the socket back if there is no memory.
    fn push(&mut self, listener: Listener<T>) -> Result<(), Listener<T>> {
        if self.others.try_reserve(1).is_err() {
            return Err(listener);
        }
        self.others.push(listener);
        Ok(())
    }

    /// The one that takes a packet of this hash.
    #[inline]
    fn choose(&self, hash: impl Fn() -> u64) -> &Listener<T> {
        if self.others.is_empty() {
            return &self.first;
        }
        let hash = hash();
        let best = self.iter().max_by_key(|member| score(hash, member.number));
        best.unwrap_or(&self.first)
    }
}

impl<T, S> Listeners<T, S> {
    pub(super) fn len(&self) -> usize {
        self.few.len() + self.grouped
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Listener<T>> {
        self.few.iter().chain(self.groups.values().flat_map(Group::iter))
    }
}

impl<T, S: BuildHasher> Listeners<T, S> {
    /// The socket that a packet finds. Its hash is asked for if several share the place.
    #[inline]
    pub(super) fn find(&self, packet: &FlowKey, hash: impl Fn() -> u64) -> Option<&Listener<T>> {
        if self.grouped == 0 {
            return self.few.get(self.best(packet, hash)?);
        }
        let at = |all_ports| {
            LocalWords::of_packet(packet, all_ports).iter().find_map(|place| self.groups.get(place))
        };
        let group = at(false).or_else(|| if self.all_ports > 0 { at(true) } else { None });
        group.map(|group| group.choose(hash))
    }

    /// The same, to change.
    pub(super) fn find_mut(
        &mut self,
        packet: &FlowKey,
        hash: impl Fn() -> u64,
    ) -> Option<&mut Listener<T>> {
        if self.grouped == 0 {
            let best = self.best(packet, hash)?;
            return self.few.get_mut(best);
        }
        let (local, number) = self.find(packet, hash).map(|found| (found.local, found.number))?;
        self.get_mut(&local, number)
    }

    /// All sockets that take a packet, those at the best place first.
    pub(super) fn matches(&self, packet: &FlowKey) -> impl Iterator<Item = &Listener<T>> {
        let few =
            |place| self.few.iter().filter(move |other| LocalWords::new(&other.local) == place);
        let grouped = |place| self.groups.get(&place).into_iter().flat_map(Group::iter);
        let places = [false, true].map(|all_ports| LocalWords::of_packet(packet, all_ports));
        places.into_iter().flatten().flat_map(move |place| few(place).chain(grouped(place)))
    }

    pub(super) fn get(&self, local: &Local, number: u64) -> Option<&Listener<T>> {
        let is_it = |&other: &&Listener<T>| other.number == number && other.local == *local;
        if self.grouped == 0 {
            return self.few.iter().find(is_it);
        }
        self.groups.get(&LocalWords::new(local))?.iter().find(is_it)
    }

    pub(super) fn get_mut(&mut self, local: &Local, number: u64) -> Option<&mut Listener<T>> {
        let is_it = |other: &&mut Listener<T>| other.number == number && other.local == *local;
        if self.grouped == 0 {
            return self.few.iter_mut().find(is_it);
        }
        self.groups.get_mut(&LocalWords::new(local))?.iter_mut().find(is_it)
    }

    /// Whether some socket does not let another one be bound there.
    pub(super) fn refuse(&self, local: &Local, reuse: Reuse) -> bool {
        if self.grouped == 0 {
            let refuses =
                |other: &Listener<T>| other.local.is_in_conflict(other.reuse, local, reuse);
            return self.few.iter().any(refuses);
        }
        let refuses = |scope| {
            let place = local.in_scope(scope);
            let group = self.groups.get(&LocalWords::new(&place));
            group.is_some_and(|group| place.is_in_conflict(group.first.reuse, local, reuse))
        };
        let refuse_beneath = |family| {
            let beneath = self.beneath.get(&LocalWords::new(&local.in_scope(family)));
            beneath.is_some_and(|beneath| reuse == Reuse::No || beneath.exclusive > 0)
        };
        let any = [Scope::AnyV4, Scope::AnyV6];
        match local.scope {
            Scope::Address(address) => {
                [local.scope, Scope::family(address), Scope::Any].into_iter().any(refuses)
            }
            Scope::AnyV4 | Scope::AnyV6 => {
                [local.scope, Scope::Any].into_iter().any(refuses) || refuse_beneath(local.scope)
            }
            Scope::Any => {
                refuses(Scope::Any)
                    || any.into_iter().any(|any| refuses(any) || refuse_beneath(any))
            }
        }
    }

    /// Whether a socket has this port of this address, not counting those that take all ports.
    pub(super) fn has_port(&self, address: IpAddr, port: u16, protocol: u8) -> bool {
        let there = Local { scope: Scope::Address(address), port: Some(port), protocol };
        if self.grouped == 0 {
            let has = |other: &Listener<T>| {
                (other.local.port, other.local.protocol) == (there.port, protocol)
                    && other.local.takes(address)
            };
            return self.few.iter().any(has);
        }
        let scopes = [there.scope, Scope::family(address), Scope::Any];
        scopes
            .into_iter()
            .any(|scope| self.groups.contains_key(&LocalWords::new(&there.in_scope(scope))))
    }

    /// Puts a socket in that nobody refuses, or gives it back if there is no memory.
    pub(super) fn insert(&mut self, listener: Listener<T>) -> Result<(), T> {
        if self.grouped == 0 && self.few.len() < FEW {
            if self.few.try_reserve(1).is_err() {
                return Err(listener.socket);
            }
            self.few.push(listener);
            return Ok(());
        }
        if self.grouped == 0 && !self.group_all() {
            return Err(listener.socket);
        }
        self.insert_grouped(listener).map_err(|listener| listener.socket)
    }

    /// Takes a socket out.
    pub(super) fn remove(&mut self, local: &Local, number: u64) -> Option<T> {
        if self.grouped == 0 {
            let is_it = |other: &Listener<T>| other.number == number && other.local == *local;
            let at = self.few.iter().position(is_it)?;
            return Some(self.few.swap_remove(at).socket);
        }
        let listener = self.remove_grouped(local, number)?;
        if self.grouped <= FEW_AGAIN && self.few.try_reserve(self.grouped).is_ok() {
            self.array_all();
        }
        Some(listener.socket)
    }

    /// The place in the array of the socket that a packet finds.
    #[inline]
    fn best(&self, packet: &FlowKey, hash: impl Fn() -> u64) -> Option<usize> {
        let (address, port, protocol) = (packet.dst(), packet.dport(), packet.protocol());
        let takes = |other: &Listener<T>| {
            other.local.protocol == protocol
                && other.local.port.is_none_or(|own| own == port)
                && other.local.takes(address)
        };
        let (mut best, mut is_shared) = (None, false);
        for (at, other) in self.few.iter().enumerate().filter(|(_, other)| takes(other)) {
            let rank = other.local.rank();
            match best {
                Some((_, held)) if rank < held => {}
                Some((_, held)) if rank == held => is_shared = true,
                _ => (best, is_shared) = (Some((at, rank)), false),
            }
        }
        let (at, rank) = best?;
        if !is_shared {
            return Some(at);
        }
        let hash = hash();
        let members = self.few.iter().enumerate();
        let members = members.filter(|(_, other)| other.local.rank() == rank && takes(other));
        members.max_by_key(|(_, other)| score(hash, other.number)).map(|(at, _)| at)
    }

    /// Moves all from the array to the groups, or none if there is no memory. Says whether it did.
    fn group_all(&mut self) -> bool {
        while let Some(listener) = self.few.pop() {
            if let Err(listener) = self.insert_grouped(listener) {
                self.few.push(listener);
                self.array_all();
                return false;
            }
        }
        true
    }

    /// Moves all from the groups to the array, which has room for them.
    fn array_all(&mut self) {
        for (_, Group { first, others }) in self.groups.drain() {
            self.few.push(first);
            self.few.extend(others);
        }
        self.beneath.clear();
        (self.grouped, self.all_ports) = (0, 0);
    }

    /// Gives the socket back if there is no memory.
    fn insert_grouped(&mut self, listener: Listener<T>) -> Result<(), Listener<T>> {
        let (local, reuse) = (listener.local, listener.reuse);
        if !self.count_up(&local, reuse) {
            return Err(listener);
        }
        let refused = match self.groups.get_mut(&LocalWords::new(&local)) {
            Some(group) => group.push(listener).err(),
            None => {
                let group = Group { first: listener, others: Vec::new() };
                let refused = self.groups.try_insert(LocalWords::new(&local), group).err();
                self.all_ports += usize::from(refused.is_none() && local.port.is_none());
                refused.map(|refused| refused.value.first)
            }
        };
        if let Some(listener) = refused {
            self.count_down(&local, reuse);
            return Err(listener);
        }
        self.grouped += 1;
        Ok(())
    }

    fn remove_grouped(&mut self, local: &Local, number: u64) -> Option<Listener<T>> {
        let group = self.groups.get_mut(&LocalWords::new(local))?;
        let at = group.iter().position(|other| other.number == number)?;
        let listener = if group.others.is_empty() {
            self.all_ports -= usize::from(local.port.is_none());
            self.groups.remove(&LocalWords::new(local))?.first
        } else if at == 0 {
            mem::replace(&mut group.first, group.others.swap_remove(0))
        } else {
            group.others.swap_remove(at - 1)
        };
        self.count_down(local, listener.reuse);
        self.grouped -= 1;
        Some(listener)
    }

    /// Counts a socket at a single address. Says whether there is memory for that.
    fn count_up(&mut self, local: &Local, reuse: Reuse) -> bool {
        let Scope::Address(address) = local.scope else { return true };
        let family = LocalWords::new(&local.in_scope(Scope::family(address)));
        let exclusive = usize::from(reuse == Reuse::No);
        if let Some(beneath) = self.beneath.get_mut(&family) {
            beneath.sockets += 1;
            beneath.exclusive += exclusive;
            return true;
        }
        self.beneath.try_insert(family, Beneath { sockets: 1, exclusive }).is_ok()
    }

    fn count_down(&mut self, local: &Local, reuse: Reuse) {
        let Scope::Address(address) = local.scope else { return };
        let family = LocalWords::new(&local.in_scope(Scope::family(address)));
        if let Some(beneath) = self.beneath.get_mut(&family) {
            // Where a hasher breaks its law, counts are wrong, and nothing worse.
            beneath.sockets = beneath.sockets.saturating_sub(1);
            beneath.exclusive = beneath.exclusive.saturating_sub(usize::from(reuse == Reuse::No));
            if beneath.sockets == 0 {
                self.beneath.remove(&family);
            }
        }
    }

    pub(super) fn validate(&self) -> Result<(), Broken> {
        self.groups.validate()?;
        self.beneath.validate()?;
        if self.few.len() > FEW || !self.few.is_empty() && self.grouped > 0 {
            return Err(Broken::Crowd { few: self.few.len(), mapped: self.grouped });
        }
        let (mut grouped, mut all_ports) = (0, 0);
        let mut beneath: TrashMap<LocalWords, Beneath> = TrashMap::new();
        for (place, group) in &self.groups {
            if group.iter().any(|listener| LocalWords::new(&listener.local) != *place) {
                return Err(Broken::Stray);
            }
            let local = group.first.local;
            grouped += group.iter().count();
            all_ports += usize::from(local.port.is_none());
            for listener in group.iter() {
                let Scope::Address(address) = listener.local.scope else { continue };
                let family = LocalWords::new(&local.in_scope(Scope::family(address)));
                let beneath = beneath.entry(family).or_default();
                beneath.sockets += 1;
                beneath.exclusive += usize::from(listener.reuse == Reuse::No);
            }
        }
        let right = |(local, beneath)| self.beneath.get(local) == Some(beneath);
        let same = beneath.len() == self.beneath.len() && beneath.iter().all(right);
        if !same || (grouped, all_ports) != (self.grouped, self.all_ports) {
            return Err(Broken::Counts);
        }
        self.validate_rules()
    }

    /// Whether no two sockets are bound together that may not be, by asking each about each.
    fn validate_rules(&self) -> Result<(), Broken> {
        for (at, this) in self.iter().enumerate() {
            for that in self.iter().skip(at + 1) {
                if this.number == that.number {
                    return Err(Broken::Twice);
                }
                if this.local.is_in_conflict(this.reuse, &that.local, that.reuse) {
                    return Err(Broken::Conflict);
                }
            }
        }
        Ok(())
    }
}

/// How much a socket of a group wants a packet. The one that wants it most has it, so who joins or leaves
/// concerns nobody else's packets: rendezvous hashing (Thaler and Ravishankar 1998).
#[inline]
fn score(hash: u64, number: u64) -> u64 {
    let product = u128::from(hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        * u128::from(0xd6e8_feb8_6659_fd93_u64 ^ number);
    (product >> 64) as u64 ^ product as u64
}
