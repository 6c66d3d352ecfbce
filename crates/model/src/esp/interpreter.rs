//! A reference model of ephemeral state processing: a map of bindings with expiry times.
//!
//! Instructions run on a copy, which is discarded when they abort.

use std::collections::BTreeMap;

use flowtable::papers::esp::{Action, EspPacket, Instruction, Site, child_bits};

use crate::set_back::SetBack;

/// The model of a store.
#[derive(Clone, Debug)]
pub struct Interpreter {
    capacity: usize,
    lifetime: u64,
    /// The latest time at which a binding was to be created.
    latest: u64,
    set_back: SetBack,
    /// Value and expiry by tag.
    bindings: BTreeMap<u64, (u64, u64)>,
}

struct Abort;

impl Interpreter {
    pub fn new(capacity: usize, lifetime: u64) -> Self {
        let (set_back, bindings) = (SetBack::default(), BTreeMap::new());
        Self { capacity, lifetime, latest: 0, set_back, bindings }
    }

    /// Tags and values that are alive.
    pub fn living(&self, now: u64) -> BTreeMap<u64, u64> {
        let now = now.max(self.latest);
        let living = self.bindings.iter().filter(|(_, (_, expiry))| *expiry > now);
        living.map(|(tag, (value, _))| (*tag, *value)).collect()
    }

    fn get(&self, tag: u64, now: u64) -> Option<u64> {
        self.living(now).get(&tag).copied()
    }

    fn room(&self, now: u64) -> usize {
        self.capacity - self.living(now).len()
    }

    /// Follows the clock of the caller, which may have been set back.
    fn follow(&mut self, now: u64) {
        let latest = self.latest;
        if let Some(other) = self.set_back.follow(now, latest, self.lifetime) {
            self.bindings.retain(|_, (_, expiry)| *expiry > latest);
            self.bindings.values_mut().for_each(|(_, expiry)| *expiry = *expiry - latest + other);
            self.latest = other;
        }
        self.latest = self.latest.max(now);
    }

    /// Changes the value of a tag that is bound.
    fn change(&mut self, tag: u64, value: u64) {
        self.bindings.get_mut(&tag).expect("the binding is alive").0 = value;
    }

    /// Binds a tag to a value. Its lifetime begins now if it was not bound.
    fn set(&mut self, tag: u64, value: u64, now: u64) -> Result<(), Abort> {
        if self.get(tag, now).is_some() {
            self.change(tag, value);
            return Ok(());
        }
        if self.room(now) == 0 {
            return Err(Abort);
        }
        self.bindings.insert(tag, (value, self.latest + self.lifetime));
        Ok(())
    }

    pub fn execute(&mut self, packet: &mut EspPacket, site: Site, now: u64) -> Action {
        if packet.error || !packet.locations.contains(site.location) {
            return Action::Forward;
        }
        self.follow(now);
        let mut next = self.clone();
        match next.run(packet, site.identity, now) {
            Ok(instruction) => {
                *self = next;
                let Some(instruction) = instruction else { return Action::Drop };
                packet.instruction = instruction;
            }
            Err(Abort) => packet.error = true,
        }
        Action::Forward
    }

    /// The instruction to be forwarded, if any.
    fn run(
        &mut self,
        packet: &EspPacket,
        identity: u64,
        now: u64,
    ) -> Result<Option<Instruction>, Abort> {
        let mut forwarded = packet.instruction;
        let allows_more = match &mut forwarded {
            Instruction::Count { tag, threshold } => {
                let count = self.get(*tag, now).unwrap_or(0).saturating_add(1);
                self.set(*tag, count, now)?;
                count <= u64::from(*threshold)
            }
            Instruction::Compare { tag, relation, value } => {
                let better = self.get(*tag, now).is_none_or(|bound| relation.holds(*value, bound));
                if better {
                    self.set(*tag, *value, now)?;
                }
                better
            }
            Instruction::Collect { count, result, operation, value } => {
                let left = self.get(*count, now).ok_or(Abort)?.checked_sub(1).ok_or(Abort)?;
                self.change(*count, left);
                let before = self.get(*result, now);
                *value = before.map_or(*value, |before| operation.apply(before, *value));
                self.set(*result, *value, now)?;
                left == 0
            }
            Instruction::RChild { children, child } => {
                let before = self.get(*children, now).unwrap_or(0);
                let after = before | child_bits(packet.computation, *child);
                self.set(*children, after, now)?;
                *child = identity;
                after != before
            }
            Instruction::RCollect { children, reported, result, operation, child, value } => {
                let bits = child_bits(packet.computation, *child);
                let expected = self.get(*children, now).ok_or(Abort)?;
                let before = self.get(*reported, now);
                let marked = before.unwrap_or(0) | bits;
                if expected | bits != expected {
                    return Err(Abort);
                }
                if before == Some(marked) {
                    return Ok(None);
                }
                self.set(*reported, marked, now)?;
                let joined = self.get(*result, now);
                *value = joined.map_or(*value, |joined| operation.apply(joined, *value));
                self.set(*result, *value, now)?;
                *child = identity;
                expected & !marked == 0
            }
        };
        Ok(allows_more.then_some(forwarded))
    }
}
