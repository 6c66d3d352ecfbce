//! Validation of the invariants of bound and queued sockets.

use alloc::format;
use core::hash::BuildHasher;

use super::list::{List, Place};
use super::{Listeners, Port, key_of, versions};
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;
use crate::raw::slab::OptIndex;
use crate::sockets::{Local, Reuse, map_error};
use crate::trash::{TrashMap, TrashSet};

impl<T, S: BuildHasher, A: Allocator + Clone> Listeners<T, S, A> {
    pub(in crate::sockets) fn validate(&self) -> Result<(), InvariantError> {
        self.ports.validate().map_err(map_error)?;
        self.addressed.validate().map_err(map_error)?;
        self.queues.validate().map_err(map_error)?;
        let mut ids: TrashSet<u64> = TrashSet::new();
        let mut counts: TrashMap<u32, Port> = TrashMap::new();
        let mut all_ports = 0;
        for listener in self.iter() {
            let id = listener.id;
            ensure(ids.insert(id), || format!("two sockets have the id {id}"))?;
            let Place::Bound(local) = listener.place else { continue };
            all_ports += usize::from(local.port.is_none());
            let port = counts.entry(key_of(&local)).or_insert(Port::EMPTY);
            if local.is_single() {
                let version = versions(local.scope).start;
                port.single[version] += 1;
                port.exclusive[version] += u32::from(listener.reuse == Reuse::No);
            }
        }
        let counted = |port: &Port| (port.single, port.exclusive);
        let is_counted =
            |(key, port): (&u32, &Port)| self.ports.get(key).map(counted) == Some(counted(port));
        let are_counted = counts.len() == self.ports.len() && counts.iter().all(is_counted);
        ensure(are_counted && all_ports == self.all_ports, || "L2: a count of sockets is wrong")?;
        self.validate_parts()?;
        self.ports.values().try_for_each(|port| self.validate_list(port.all))
    }

    /// Checks L1 for the parts, and that no two sockets conflict.
    fn validate_parts(&self) -> Result<(), InvariantError> {
        let any = self.ports.values().flat_map(|port| port.any);
        let any = any.filter(|part| *part != List::EMPTY);
        let parts =
            any.chain(self.addressed.values().copied()).chain(self.queues.values().copied());
        let mut in_parts = 0;
        for part in parts {
            let Some(head) = self.at(part.first) else {
                return Err(InvariantError::new("L1: a part is empty"));
            };
            ensure(self.part_of(&self.hashed(head.place)) == part, || "L1: a place has two parts")?;
            let indices = self.part(part.first).map(OptIndex::some);
            let last = indices.last();
            ensure(last == Some(part.last), || "L1: a part ends early")?;
            let members = self.part(part.first).filter_map(|index| self.sockets.get(index));
            let Place::Bound(local) = head.place else {
                in_parts += members.count();
                self.validate_list(part)?;
                continue;
            };
            let members = members.enumerate().map(|(at, member)| (at, member.reuse));
            for (at, reuse) in members {
                in_parts += 1;
                let agrees = at == 0 || !local.is_in_conflict(head.reuse, &local, reuse);
                ensure(agrees, || format!("two sockets are bound to {local}"))?;
            }
            let is_exclusive = self.overlaps_exclusively(&local, head.reuse);
            ensure(!is_exclusive, || format!("{local} is in conflict"))?;
        }
        let len = self.len();
        ensure(in_parts == len, || format!("L1: {in_parts} of {len} are in parts"))
    }

    /// Checks that the links of a list are inverse.
    fn validate_list(&self, list: List) -> Result<(), InvariantError> {
        let mut before = OptIndex::NONE;
        for index in self.list(list.first) {
            let is_linked = self.sockets.get(index).is_some_and(|one| one.links.before == before);
            ensure(is_linked, || "L1: the links of a socket are not inverse")?;
            before = OptIndex::some(index);
        }
        ensure(before == list.last, || "L1: a list has another end")
    }

    /// Whether a socket overlaps with one at another address, and one of them does not allow it.
    fn overlaps_exclusively(&self, local: &Local, reuse: Reuse) -> bool {
        let Some(port) = self.ports.get(&key_of(local)) else { return false };
        let wider = port.any.into_iter().filter_map(|part| self.at(part.first));
        let mut wider = wider.filter_map(|other| Some((other.local()?, other.reuse)));
        wider.any(|(other, others)| {
            other.scope != local.scope && local.is_in_conflict(reuse, other, others)
        }) || !local.is_single()
            && versions(local.scope).any(|version| {
                port.exclusive[version] > 0 || port.single[version] > 0 && reuse == Reuse::No
            })
    }
}
