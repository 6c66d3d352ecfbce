//! Each policy against a twin that is obviously right: a vector, and the rule as one says it.

use std::mem;

use flowtable::Timestamp;
use flowtable::eviction::{
    ByClass, EntryStats, Eviction, Lru, Passive, PassiveGc, Random, SecondChance,
};
use proptest::prelude::*;

/// Places in a row, one of them free at most, and a hand that goes round.
#[derive(Clone, Default)]
struct Dial {
    places: Vec<Option<u32>>,
    hand: usize,
}

impl Dial {
    fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    fn place(&self, of: Option<u32>) -> Option<usize> {
        self.places.iter().position(|slot| *slot == of)
    }

    /// Who comes takes the free place.
    fn insert(&mut self, slot: u32) {
        match self.place(None) {
            Some(free) => self.places[free] = Some(slot),
            None => self.places.push(Some(slot)),
        }
    }

    /// Who leaves has its place free; the last one goes to the one that was free before.
    fn remove(&mut self, slot: u32) {
        let Some(left) = self.place(Some(slot)) else { return };
        let free = self.place(None);
        self.places[left] = None;
        if let Some(free) = free {
            if let Some(last) = self.places.pop().flatten() {
                self.places[free] = Some(last);
            }
        }
    }

    /// Looks at the next eight, or up to one that was not used.
    fn look(&mut self, look: &mut impl FnMut(u32) -> EntryStats) -> Vec<(EntryStats, u32)> {
        let mut looked: Vec<(EntryStats, u32)> = vec![];
        // A free place is passed over. In a short row it may come more than once in nine.
        for _ in 0..9 {
            if looked.len() == 8 || looked.last().is_some_and(|(standing, _)| !standing.used) {
                break;
            }
            self.hand = if self.hand < self.places.len() { self.hand } else { 0 };
            let here = self.places.get(self.hand).copied().flatten();
            self.hand += 1;
            looked.extend(here.map(|slot| (look(slot), slot)));
        }
        looked
    }
}

/// A second chance, in each of so many ranks.
struct Dials(Vec<Dial>);

impl Dials {
    fn new(ranks: usize) -> Self {
        Self(vec![Dial::default(); ranks])
    }

    fn rank(&self, rank: u8) -> usize {
        (self.0.len() - 1).min(rank.into())
    }

    /// Whether one of the highest rank leaves for want of newcomers.
    fn wants_newcomers(&self) -> bool {
        let lens: Vec<usize> = self.0.iter().map(Dial::len).collect();
        lens.len() == 4 && lens[0] == 0 && 8 * (lens[1] + lens[2]) < lens.iter().sum()
    }
}

impl Eviction for Dials {
    fn insert(&mut self, slot: u32, rank: u8) {
        let rank = self.rank(rank);
        self.0[rank].insert(slot);
    }

    fn rerank(&mut self, slot: u32, rank: u8) {
        let before = self.0.iter().position(|dial| dial.place(Some(slot)).is_some());
        if before.is_some_and(|before| before != self.rank(rank)) {
            self.remove(slot);
            self.insert(slot, rank);
        }
    }

    fn remove(&mut self, slot: u32) {
        self.0.iter_mut().for_each(|dial| dial.remove(slot));
    }

    fn victim(&mut self, mut look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        if self.wants_newcomers() {
            let looked = self.0[3].look(&mut look);
            if let Some((_, slot)) = looked.last().filter(|(standing, _)| !standing.used) {
                return Some(*slot);
            }
        }
        let is_only = self.0.len() == 1;
        let lowest = self.0.iter_mut().find(|dial| is_only || dial.len() > 0)?;
        let looked = lowest.look(&mut look).into_iter();
        let victim = looked.min_by_key(|(standing, _)| (standing.used, standing.last_use));
        victim.map(|(_, slot)| slot)
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

/// Slots with a time of their own: how many steps were made before their last use.
#[derive(Default)]
struct LongestAgo {
    steps: u64,
    slots: Vec<(u64, u32)>,
}

impl Eviction for LongestAgo {
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

/// A vector and a generator.
struct Any {
    slots: Vec<u32>,
    state: u64,
}

impl Eviction for Any {
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

/// A ring that stays where it is, and a rover in it.
struct Ring {
    gc: PassiveGc,
    slots: Vec<u32>,
    /// The place in `slots` of the next one to be looked at.
    rover: usize,
    /// When the threshold was reached, and was not paid since: what was owed then, and the number of
    /// leaves since.
    owed: Option<(usize, usize)>,
}

impl Ring {
    const fn new(gc: PassiveGc) -> Self {
        Self { gc, slots: vec![], rover: 0, owed: None }
    }
}

impl Eviction for Ring {
    /// In front of the rover, which comes to it last.
    fn insert(&mut self, slot: u32, _rank: u8) {
        self.slots.insert(self.rover, slot);
        self.rover += 1;
    }

    fn remove(&mut self, slot: u32) {
        let Some(place) = self.slots.iter().position(|&other| other == slot) else { return };
        self.slots.remove(place);
        self.rover -= usize::from(place < self.rover);
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
        let once_around = self.slots.iter().cycle().skip(self.rover).take(self.slots.len());
        let four: Vec<(Timestamp, u32)> =
            once_around.take(4).map(|&slot| (look(slot).last_use, slot)).collect();
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
    Enter(u32, u8),
    Touch(u32),
    TouchAll,
    Rerank(u32, u8),
    Leave(u32),
    /// Whether the victim leaves.
    Victim(bool),
    /// An entry comes to a cache that asks whether one is due.
    Come(u32, u8),
}

/// Slots in several chunks, and few enough that they meet. In every other case most have the highest
/// rank.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = |ranks: u8| {
        let slot = || (0..24_u32).prop_map(|slot| slot * 97);
        let rank = move || 0..ranks;
        prop_oneof![
            6 => (slot(), rank()).prop_map(|(slot, rank)| Step::Enter(slot, rank)),
            6 => (slot(), rank()).prop_map(|(slot, rank)| Step::Come(slot, rank)),
            8 => slot().prop_map(Step::Touch),
            1 => Just(Step::TouchAll),
            2 => (slot(), rank()).prop_map(|(slot, rank)| Step::Rerank(slot, rank)),
            2 => slot().prop_map(Step::Leave),
            6 => any::<bool>().prop_map(Step::Victim),
        ]
    };
    let vec = |ranks| prop::collection::vec(step(ranks), 0..200);
    prop_oneof![vec(6), vec(60)]
}

/// A cache: what it knows of its entries by slot, and what a policy was told and asked.
struct Cache<P> {
    policy: P,
    now: Timestamp,
    entries: Vec<Option<EntryStats>>,
    /// Every slot looked at.
    looks: Vec<u32>,
    /// The most looks for a victim.
    most_looks: usize,
}

impl<P: Eviction> Cache<P> {
    fn new(policy: P) -> Self {
        let entries = vec![None; 24 * 97];
        Self { policy, now: Timestamp::ZERO, entries, looks: vec![], most_looks: 8 }
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
        let (looked, mut upcoming) = (self.looks.len(), [0]);
        let foretold = self.policy.upcoming(&mut upcoming);
        let victim = self.policy.victim(|slot| {
            self.looks.push(slot);
            let entry = self.entries[slot as usize].as_mut().expect("an entry is there");
            EntryStats { used: mem::take(&mut entry.used), ..*entry }
        });
        let looks = &self.looks[looked..];
        assert!(looks.len() <= self.most_looks);
        assert_eq!(victim.is_some(), self.len() > 0);
        let first = looks.first().copied().or(victim);
        assert!(foretold == 0 || first == Some(upcoming[0]), "{upcoming:?}, then {first:?}");
        victim
    }

    /// Takes the step; what the policy answered.
    fn step(&mut self, step: Step, number: u64) -> (bool, Option<u32>) {
        // Every third time is that of the step before.
        self.now = Timestamp::from_secs(number - number % 3 / 2);
        match step {
            Step::Enter(slot, rank) => self.insert(slot, rank),
            Step::Touch(slot) => self.touch(slot),
            Step::TouchAll => {
                let there = (0..).zip(&self.entries).filter(|(_, entry)| entry.is_some());
                let slots: Vec<u32> = there.map(|(slot, _)| slot).collect();
                slots.into_iter().for_each(|slot| self.touch(slot));
            }
            Step::Rerank(slot, rank) => self.policy.rerank(slot, rank),
            Step::Leave(slot) => self.remove(slot),
            Step::Victim(leaves) => {
                let victim = self.victim();
                victim.filter(|_| leaves).into_iter().for_each(|slot| self.remove(slot));
                return (false, victim);
            }
            Step::Come(slot, rank) => {
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

/// Those in three chunks.
const SLOTS: usize = 3 * 1024;

/// The policy answers as its twin, and looks at the same slots in the same order.
fn agree(policy: impl Eviction, twin: impl Eviction, steps: &[Step]) -> Result<(), TestCaseError> {
    agree_within(policy, twin, steps, (8, SLOTS * 8))
}

/// The same with so many looks for a victim, and bytes.
fn agree_within(
    policy: impl Eviction,
    twin: impl Eviction,
    steps: &[Step],
    (looks, bytes): (usize, usize),
) -> Result<(), TestCaseError> {
    let (mut cache, mut twin) = (Cache::new(policy), Cache::new(twin));
    (cache.most_looks, twin.most_looks) = (looks, looks);
    for (number, &step) in (1..).zip(steps) {
        prop_assert_eq!(cache.step(step, number), twin.step(step, number), "step {}", number);
        prop_assert_eq!(&cache.looks, &twin.looks, "step {}", number);
    }
    // What is left leaves in the same order.
    while twin.len() > 0 {
        let step = Step::Victim(true);
        prop_assert_eq!(cache.step(step, 1000), twin.step(step, 1000));
    }
    prop_assert_eq!(cache.len(), 0);
    // There are outer vectors, for four chunks each, and heads, too.
    prop_assert!(cache.policy.allocation_size() <= bytes + 5 * 4 * 24 + 4 * 8);
    Ok(())
}

proptest! {
    #[test]
    fn by_class_is_four_dials(steps in steps()) {
        agree_within(ByClass::new(), Dials::new(4), &steps, (16, SLOTS * 4 + 4 * 4096))?;
    }

    #[test]
    fn clock_is_a_dial(steps in steps()) {
        agree(SecondChance::new(), Dials::new(1), &steps)?;
    }

    #[test]
    fn lru_gives_up_what_was_used_longest_ago(steps in steps()) {
        agree(Lru::new(), LongestAgo::default(), &steps)?;
    }

    #[test]
    fn random_is_a_vector_and_a_generator(steps in steps(), seed: u64) {
        agree(Random::with_seed(seed), Any { slots: vec![], state: seed }, &steps)?;
    }

    #[test]
    fn passive_is_a_rover_on_a_ring(steps in steps(), threshold in 1..20_usize, goal in 1..8_usize) {
        let gc = PassiveGc::new(threshold, goal).unwrap();
        agree(Passive::new(gc), Ring::new(gc), &steps)?;
    }

    #[test]
    fn passive_keeps_a_cache_at_its_threshold(len in 1..500_u32, goal in 1..100_usize) {
        let gc = PassiveGc::new(len as usize, goal).unwrap();
        let mut cache = Cache::new(Passive::new(gc));
        for number in 0..1000 {
            let slot = (0..).find(|&slot: &u32| cache.entries[slot as usize].is_none());
            cache.step(Step::Come(slot.unwrap(), 0), number);
        }
        prop_assert_eq!(cache.len(), len as usize);
    }

    #[test]
    fn passive_owes_nothing_from_better_times(steps in steps(), goal in 1..8_usize) {
        let gc = PassiveGc::new(16, goal).unwrap();
        let mut cache = Cache::new(Passive::new(gc));
        for (number, step) in (1..).zip(steps) {
            let len = cache.len();
            let (is_due, _) = cache.step(step, number);
            prop_assert!(!is_due || len > 16 - goal, "{} of 16 - {}", len, goal);
        }
    }
}
