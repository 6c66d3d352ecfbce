//! A reference model of ephemeral state processing: a map of bindings with expiry times.
//!
//! Instructions run on a copy, which is discarded when they abort.

use std::collections::BTreeMap;

use flowtable::papers::esp::{Action, EspPacket, Instruction, Site, child_bits};

/// The model of a store, for lifetimes that are not rounded: of less than 2^32 ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    capacity: usize,
    lifetime: u64,
    /// The latest time at which a binding was to be created.
    latest: u64,
    /// Value and expiry by tag.
    bindings: BTreeMap<u64, (u64, u64)>,
}

struct Abort;

impl Interpreter {
    pub fn new(capacity: usize, lifetime: u64) -> Self {
        Self { capacity, lifetime, latest: 0, bindings: BTreeMap::new() }
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

    /// Binds a tag to a value. Its lifetime begins now if it was not bound.
    fn set(&mut self, tag: u64, value: u64, now: u64) -> Result<(), Abort> {
        if self.get(tag, now).is_some() {
            self.bindings.get_mut(&tag).expect("the binding is alive").0 = value;
            return Ok(());
        }
        self.latest = self.latest.max(now);
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
        let mut next = self.clone();
        match next.run(packet, site.identity, now) {
            Ok(instruction) => {
                *self = next;
                let Some(instruction) = instruction else { return Action::Drop };
                packet.instruction = instruction;
            }
            Err(Abort) => {
                // It checks for room for both bindings before it creates one: no time passes.
                if !matches!(packet.instruction, Instruction::RCollect { .. }) {
                    self.latest = next.latest;
                }
                packet.error = true;
            }
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
                self.set(*count, left, now)?;
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
