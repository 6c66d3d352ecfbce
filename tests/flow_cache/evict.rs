//! Each eviction policy against a simple reference model on a vector.

use std::collections::BTreeSet;
use std::mem;

use flowtable::Timestamp;
use flowtable::eviction::{
    ByClass, EntryStats, Eviction, Lru, Passive, PassiveGc, Random, SecondChance,
};
use model::{cases, scaled};
use proptest::prelude::*;

/// A reference model of CLOCK: slots in their order, and a hand.
#[derive(Clone, Default)]
struct Clock {
    slots: BTreeSet<u32>,
    hand: u32,
}

impl Clock {
    /// Examines the next eight slots, or up to the first unused one.
    fn examine(&mut self, look: &mut impl FnMut(u32) -> EntryStats) -> Vec<(EntryStats, u32)> {
        let mut examined: Vec<(EntryStats, u32)> = vec![];
        while examined.len() < 8 && examined.last().is_none_or(|(stats, _)| stats.used) {
            let next = self.slots.range(self.hand..).next().or(self.slots.first());
            let Some(&slot) = next else { break };
            self.hand = slot + 1;
            examined.push((look(slot), slot));
        }
        examined
    }
}

/// A reference model of CLOCK with one set of slots per rank.
struct Clocks(Vec<Clock>);

impl Clocks {
    fn new(ranks: usize) -> Self {
        Self(vec![Clock::default(); ranks])
    }

    fn rank(&self, rank: u8) -> usize {
        (self.0.len() - 1).min(rank.into())
    }

    /// Whether the highest rank is evicted from because lower ranks have less than an eighth.
    fn lacks_low_ranks(&self) -> bool {
        let lens: Vec<usize> = self.0.iter().map(|clock| clock.slots.len()).collect();
        lens.len() == 4 && lens[0] == 0 && 8 * (lens[1] + lens[2]) < lens.iter().sum()
    }
}

impl Eviction for Clocks {
    fn insert(&mut self, slot: u32, rank: u8) {
        let rank = self.rank(rank);
        self.0[rank].slots.insert(slot);
    }

    fn rerank(&mut self, slot: u32, rank: u8) {
        let before = self.0.iter().position(|clock| clock.slots.contains(&slot));
        if before.is_some_and(|before| before != self.rank(rank)) {
            self.remove(slot);
            self.insert(slot, rank);
        }
    }

    fn remove(&mut self, slot: u32) {
        self.0.iter_mut().for_each(|clock| _ = clock.slots.remove(&slot));
    }

    fn victim(&mut self, mut look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        if self.lacks_low_ranks() {
            let examined = self.0[3].examine(&mut look);
            if let Some((_, slot)) = examined.last().filter(|(stats, _)| !stats.used) {
                return Some(*slot);
            }
        }
        let is_only = self.0.len() == 1;
        let lowest = self.0.iter_mut().find(|clock| is_only || !clock.slots.is_empty())?;
        let examined = lowest.examine(&mut look).into_iter();
        let victim = examined.min_by_key(|(stats, _)| (stats.used, stats.last_use));
        victim.map(|(_, slot)| slot)
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

/// A reference model of LRU: slots with the step of their last use.
#[derive(Default)]
struct LruModel {
    steps: u64,
    slots: Vec<(u64, u32)>,
}

impl Eviction for LruModel {
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.steps += 1;
        self.slots.push((self.steps, slot));
    }

    fn touch(&mut self, slot: u32) {
        self.steps += 1;
        self.slots.iter_mut().filter(|entry| entry.1 == slot).for_each(|it| it.0 = self.steps);
    }

    fn remove(&mut self, slot: u32) {
        self.slots.retain(|entry| entry.1 != slot);
    }

    fn victim(&mut self, _look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        self.slots.iter().min().map(|entry| entry.1)
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

/// A reference model of random eviction: a vector and a generator.
struct RandomModel {
    slots: Vec<u32>,
    state: u64,
}

impl Eviction for RandomModel {
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.slots.push(slot);
    }

    fn remove(&mut self, slot: u32) {
        if let Some(position) = self.slots.iter().position(|&other| other == slot) {
            self.slots.swap_remove(position);
        }
    }

    fn victim(&mut self, _look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let random = mixed ^ (mixed >> 31);
        Some(self.slots[((u128::from(random) * self.slots.len() as u128) >> 64) as usize])
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

/// A reference model of passive eviction: a ring in a vector, and a rover.
struct Ring {
    gc: PassiveGc,
    slots: Vec<u32>,
    /// The position in `slots` that is examined next.
    rover: usize,
    /// After the threshold is reached: the number of evictions that are due, and of removals since.
    owed: Option<(usize, usize)>,
}

impl Ring {
    const fn new(gc: PassiveGc) -> Self {
        Self { gc, slots: vec![], rover: 0, owed: None }
    }
}

impl Eviction for Ring {
    /// Inserts before the rover, which reaches the slot last.
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.slots.insert(self.rover, slot);
        self.rover += 1;
    }

    fn remove(&mut self, slot: u32) {
        let Some(position) = self.slots.iter().position(|&other| other == slot) else { return };
        self.slots.remove(position);
        self.rover -= usize::from(position < self.rover);
        if let Some((owed, paid)) = &mut self.owed {
            *paid += 1;
            if paid == owed {
                self.owed = None;
            }
        }
    }

    fn is_due(&mut self, len: usize) -> bool {
        if self.owed.is_none() && len >= self.gc.threshold() {
            self.owed = Some((self.gc.goal().min(len.div_ceil(4)), 0));
        }
        self.owed.is_some()
    }

    fn victim(&mut self, mut look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        let revolution = self.slots.iter().cycle().skip(self.rover).take(self.slots.len());
        let four: Vec<(Timestamp, u32)> =
            revolution.take(4).map(|&slot| (look(slot).last_use, slot)).collect();
        let lowest = four.iter().map(|entry| entry.0).min()?;
        self.rover = (self.rover + four.len()) % self.slots.len();
        four.into_iter().rfind(|entry| entry.0 == lowest).map(|(_, slot)| slot)
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32, u8),
    Touch(u32),
    TouchAll,
    Rerank(u32, u8),
    Remove(u32),
    /// Whether the victim is removed.
    Victim(bool),
    /// Inserts an entry in the place of the victim.
    Replace(u8),
    /// Inserts an entry, and evicts one before if that is due.
    Admit(u32, u8),
}

/// Steps on slots in several chunks, few enough to be drawn repeatedly. In every other case most
/// have the highest rank.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = |ranks: u8| {
        let slot = || (0..24_u32).prop_map(|slot| slot * 97);
        let rank = move || 0..ranks;
        prop_oneof![
            6 => (slot(), rank()).prop_map(|(slot, rank)| Step::Insert(slot, rank)),
            6 => (slot(), rank()).prop_map(|(slot, rank)| Step::Admit(slot, rank)),
            8 => slot().prop_map(Step::Touch),
            1 => Just(Step::TouchAll),
            2 => (slot(), rank()).prop_map(|(slot, rank)| Step::Rerank(slot, rank)),
            2 => slot().prop_map(Step::Remove),
            6 => any::<bool>().prop_map(Step::Victim),
            2 => rank().prop_map(Step::Replace),
        ]
    };
    let vec = |ranks| prop::collection::vec(step(ranks), 0..200);
    prop_oneof![vec(6), vec(60)]
}

/// A cache: its entries by slot, and the slots that the policy examined.
struct Cache<P> {
    policy: P,
    now: Timestamp,
    entries: Vec<Option<EntryStats>>,
    /// Every examined slot.
    examined: Vec<u32>,
    /// The most slots examined for a victim.
    limit: usize,
}

impl<P: Eviction> Cache<P> {
    fn new(policy: P) -> Self {
        let entries = vec![None; 24 * 97];
        Self { policy, now: Timestamp::ZERO, entries, examined: vec![], limit: 8 }
    }

    fn len(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    fn insert(&mut self, slot: u32, rank: u8) {
        let entry = &mut self.entries[slot as usize];
        if entry.is_none() {
            *entry = Some(EntryStats { used: false, last_use: self.now });
            self.policy.insert(slot, rank);
        }
    }

    fn touch(&mut self, slot: u32) {
        if let Some(entry) = &mut self.entries[slot as usize] {
            *entry = EntryStats { used: true, last_use: self.now };
        }
        self.policy.touch(slot);
    }

    fn remove(&mut self, slot: u32) {
        self.entries[slot as usize] = None;
        self.policy.remove(slot);
    }

    fn victim(&mut self) -> Option<u32> {
        let (before, mut upcoming) = (self.examined.len(), None);
        self.policy.upcoming(1, |_, slot| upcoming = Some(slot));
        let victim = self.policy.victim(|slot| {
            self.examined.push(slot);
            let entry = self.entries[slot as usize].as_mut().expect("the slot has an entry");
            EntryStats { used: mem::take(&mut entry.used), ..*entry }
        });
        let examined = &self.examined[before..];
        assert!(examined.len() <= self.limit);
        assert_eq!(victim.is_some(), self.len() > 0);
        let first = examined.first().copied().or(victim);
        assert!(upcoming.is_none() || first == upcoming, "{upcoming:?}, then {first:?}");
        victim
    }

    /// Performs a step; returns the results of the policy.
    fn step(&mut self, step: Step, number: u64) -> (bool, Option<u32>) {
        // Every third timestamp equals the one before.
        self.now = Timestamp::from_secs(number - number % 3 / 2);
        match step {
            Step::Insert(slot, rank) => self.insert(slot, rank),
            Step::Touch(slot) => self.touch(slot),
            Step::TouchAll => {
                let present = (0..).zip(&self.entries).filter(|(_, entry)| entry.is_some());
                let slots: Vec<u32> = present.map(|(slot, _)| slot).collect();
                slots.into_iter().for_each(|slot| self.touch(slot));
            }
            Step::Rerank(slot, rank) => self.policy.rerank(slot, rank),
            Step::Remove(slot) => self.remove(slot),
            Step::Victim(is_removed) => {
                let victim = self.victim();
                victim.filter(|_| is_removed).into_iter().for_each(|slot| self.remove(slot));
                return (false, victim);
            }
            Step::Replace(rank) => {
                let victim = self.victim();
                if let Some(slot) = victim {
                    self.entries[slot as usize] =
                        Some(EntryStats { used: false, last_use: self.now });
                    self.policy.replace(slot, rank);
                }
                return (false, victim);
            }
            Step::Admit(slot, rank) => {
                let is_due = self.policy.is_due(self.len());
                let victim = if is_due { self.victim() } else { None };
                victim.into_iter().for_each(|slot| self.remove(slot));
                self.insert(slot, rank);
                return (is_due, victim);
            }
        }
        (false, None)
    }
}

/// The slots of three chunks.
const SLOTS: usize = 3 * 1024;

/// Checks that a policy has the results of the model, and examines the same slots in the same
/// order.
fn agree(policy: impl Eviction, model: impl Eviction, steps: &[Step]) -> Result<(), TestCaseError> {
    agree_within(policy, model, steps, (8, SLOTS * 8))
}

/// [`agree`] with limits on the slots examined for a victim, and on bytes.
fn agree_within(
    policy: impl Eviction,
    model: impl Eviction,
    steps: &[Step],
    (limit, bytes): (usize, usize),
) -> Result<(), TestCaseError> {
    let (mut cache, mut model) = (Cache::new(policy), Cache::new(model));
    (cache.limit, model.limit) = (limit, limit);
    for (number, &step) in (1..).zip(steps) {
        prop_assert_eq!(cache.step(step, number), model.step(step, number), "step {}", number);
        prop_assert_eq!(&cache.examined, &model.examined, "step {}", number);
    }
    // The remaining slots are evicted in the same order.
    while model.len() > 0 {
        let step = Step::Victim(true);
        prop_assert_eq!(cache.step(step, 1000), model.step(step, 1000));
    }
    prop_assert_eq!(cache.len(), 0);
    // Plus outer vectors, of four chunks each, and heads.
    prop_assert!(cache.policy.allocation_size() <= bytes + 5 * 4 * 24 + 4 * 8);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(256, 256)))]

    #[test]
    fn by_class_matches_four_clocks(steps in steps()) {
        agree_within(ByClass::new(), Clocks::new(4), &steps, (16, 2 * 4096))?;
    }

    #[test]
    fn second_chance_matches_a_clock(steps in steps()) {
        agree(SecondChance::new(), Clocks::new(1), &steps)?;
    }

    #[test]
    fn lru_evicts_the_least_recently_used_slot(steps in steps()) {
        agree(Lru::new(), LruModel::default(), &steps)?;
    }

    #[test]
    fn random_matches_a_vector_and_a_generator(steps in steps(), seed: u64) {
        agree(Random::with_seed(seed), RandomModel { slots: vec![], state: seed }, &steps)?;
    }

    #[test]
    fn passive_matches_a_rover_on_a_ring(
        steps in steps(), threshold in 1..20_usize, goal in 1..8_usize,
    ) {
        let gc = PassiveGc::new(threshold, goal).unwrap();
        agree(Passive::new(gc), Ring::new(gc), &steps)?;
    }

    #[test]
    fn passive_keeps_a_cache_at_its_threshold(len in 1..500_u32, goal in 1..100_usize) {
        let gc = PassiveGc::new(len as usize, goal).unwrap();
        let mut cache = Cache::new(Passive::new(gc));
        for number in 0..scaled(1000, 520, 520) {
            let slot = (0..).find(|&slot: &u32| cache.entries[slot as usize].is_none());
            cache.step(Step::Admit(slot.unwrap(), 0), number);
        }
        prop_assert_eq!(cache.len(), len as usize);
    }

    #[test]
    fn passive_evicts_only_near_its_threshold(steps in steps(), goal in 1..8_usize) {
        let gc = PassiveGc::new(16, goal).unwrap();
        let mut cache = Cache::new(Passive::new(gc));
        for (number, step) in (1..).zip(steps) {
            let len = cache.len();
            let (is_due, _) = cache.step(step, number);
            prop_assert!(!is_due || len > 16 - goal, "{} of 16 - {}", len, goal);
        }
    }
}
