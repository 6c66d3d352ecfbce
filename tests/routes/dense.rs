//! `RouteTable` back and forth across the thresholds of its direct tables, against a twin that is asked
//! for each length.

use core::cmp::Ordering;
use core::fmt::Debug;
use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use model::prefixes::{flipped, prefix_of};
use model::prefixes::{last_address, spliced};
use model::routes::by_length::RoutesByLength;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// A large table and its twin, with routes below a few prefixes of six bits, which have a direct table
/// from [`MANY`] routes on until there are fewer than [`FEW`].
struct Dense<A> {
    ours: RouteTable<A, u32>,
    twin: RoutesByLength<A, u32>,
    /// In any order.
    there: Vec<Prefix<A>>,
    /// How many are below each prefix of six bits, without that itself.
    below: HashMap<A, usize>,
    random: StdRng,
    now: u32,
}

const MANY: usize = 4096;
const FEW: usize = 1024;

impl<A: Address + Debug + Hash> Dense<A> {
    fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let (ours, twin, below) = (RouteTable::new(), RoutesByLength::new(), HashMap::new());
        Self { ours, twin, there: vec![], below, random, now: 0 }
    }

    fn random_address(&mut self) -> A {
        let windows: [u64; 6] = self.random.random();
        A::from_windows(|pos| match (windows[pos as usize / 64], pos % 64) {
            (window, 0) => window,
            (window, odd) => window << odd | windows[(pos as usize / 64 + 1) % 6] >> (64 - odd),
        })
    }

    /// An address below the first six bits of `base`, mostly near to others: bits 6 to 18 have few
    /// values.
    fn address_below(&mut self, base: &A) -> A {
        let (address, near) = (self.random_address(), self.random.random_range(0..8));
        let near = flipped(&flipped(base, 6 + near), 17 - near / 3);
        let front = if self.random.random_bool(0.5) { spliced(base, 6, &address) } else { near };
        spliced(&front, self.random.random_range(6..20), &address)
    }

    fn insert(&mut self, prefix: Prefix<A>) {
        self.now += 1;
        let old = self.twin.insert(prefix, self.now);
        assert_eq!(self.ours.insert(prefix, self.now), old, "{prefix:?}");
        if old.is_none() {
            self.there.push(prefix);
            *self.count_at(&prefix) += usize::from(prefix.len() > 6);
        }
        self.check_at(&prefix);
    }

    fn remove(&mut self, at: usize) {
        let prefix = self.there.swap_remove(at);
        let old = self.twin.remove(&prefix);
        assert!(old.is_some());
        *self.count_at(&prefix) -= usize::from(prefix.len() > 6);
        assert_eq!(self.ours.remove(&prefix), old, "{prefix:?}");
        assert_eq!(self.ours.remove(&prefix), None, "{prefix:?}");
        self.check_at(&prefix);
    }

    fn count_at(&mut self, prefix: &Prefix<A>) -> &mut usize {
        self.below.entry(prefix.address().truncated(6)).or_insert(0)
    }

    /// Looks up what is at both ends of the prefix, beside it and somewhere in it.
    fn check_at(&mut self, prefix: &Prefix<A>) {
        let (first, last) = (prefix.address(), last_address(prefix));
        let inside = spliced(&first, prefix.len(), &self.random_address());
        let beside = flipped(&first, prefix.len().saturating_sub(1));
        let asked = [first, last, inside, beside];
        let mut found = [None; 4];
        self.ours.lookup_batch(&asked, &mut found);
        for (address, found) in asked.iter().zip(found) {
            assert_eq!(found, self.twin.lookup(address), "{address:?}");
            assert_eq!(found, self.ours.lookup(address), "{address:?}");
        }
    }

    /// A change of one of the lengths that a direct table has in itself, or that are above it.
    fn change_short(&mut self, base: &A) {
        let address = self.address_below(base);
        let prefix = prefix_of(address, self.random.random_range(0..=19));
        match self.there.iter().position(|there| *there == prefix) {
            Some(at) if self.random.random_bool(0.7) => self.remove(at),
            _ => self.insert(prefix),
        }
    }

    /// Adds and removes routes below the base, one at a time, until there are so many.
    fn go_to(&mut self, base: &A, count: usize) {
        let base = prefix_of(*base, 6);
        loop {
            match (*self.count_at(&base)).cmp(&count) {
                Ordering::Equal => break,
                Ordering::Less => {
                    let address = self.address_below(&base.address());
                    let len = self.random.random_range(15..=A::BITS.min(36));
                    self.insert(prefix_of(address, len));
                }
                Ordering::Greater => {
                    let at = self.random.random_range(0..self.there.len());
                    if base.covers(&self.there[at]) {
                        self.remove(at);
                    }
                }
            }
            if self.now % 8 == 0 {
                self.change_short(&base.address());
            }
            if self.now % 512 == 0 {
                self.ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
            }
        }
        let tables = self.ours.shape().direct_tables;
        assert!(tables > 0 || self.below.values().all(|&count| count < MANY));
        assert!(tables == 0 || self.below.values().any(|&count| count >= FEW));
        self.compare();
    }

    /// All of it.
    fn compare(&mut self) {
        self.ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
        self.there.sort_unstable();
        assert_eq!((self.ours.len(), self.twin.len()), (self.there.len(), self.there.len()));
        assert!(self.ours.prefixes().eq(self.there.iter().copied()));
        let asked: Vec<A> =
            self.there.iter().flat_map(|one| [one.address(), last_address(one)]).collect();
        let mut found = vec![None; asked.len()];
        self.ours.lookup_batch(&asked, &mut found);
        for (address, found) in asked.iter().zip(found) {
            assert_eq!(found, self.twin.lookup(address), "{address:?}");
            assert_eq!(found, self.ours.lookup(address), "{address:?}");
        }
        for prefix in self.there.iter().step_by(17) {
            assert_eq!(self.ours.get(prefix), self.twin.get(prefix));
            let covers = (0..=prefix.len()).map(|len| prefix_of(prefix.address(), len));
            let covers = covers.filter_map(|cover| Some((cover, self.twin.get(&cover)?)));
            assert!(self.ours.covering(prefix).eq(covers), "{prefix:?}");
            let from = self.there.partition_point(|one| one < prefix);
            let covered = self.there[from..].iter().take_while(|one| prefix.covers(one));
            assert!(self.ours.covered(prefix).map(|(one, _)| one).eq(covered.copied()));
        }
    }

    /// Knows what is in the twin.
    fn take_over(&mut self) {
        self.there = self.twin.prefixes();
        self.below.clear();
        for prefix in self.there.clone() {
            *self.count_at(&prefix) += usize::from(prefix.len() > 6);
        }
    }

    /// Keeps one of so many routes, all at once.
    fn retain(&mut self, one_of: u32) {
        let twin = &mut self.twin;
        self.ours.retain(|prefix, value| {
            assert_eq!(twin.get(&prefix), Some(&*value));
            let is_kept = *value % one_of == 0;
            if !is_kept {
                twin.remove(&prefix);
            }
            is_kept
        });
        self.take_over();
        self.compare();
    }
}

fn across_the_thresholds<A: Address + Debug + Hash>(base: A, seed: u64) {
    let mut dense = Dense::new(seed);
    let other = flipped(&base, 5);
    dense.go_to(&base, MANY + 500);
    for round in 0..2 {
        for _ in 0..200 {
            dense.change_short(&base);
            dense.change_short(&other);
        }
        // There and back, and to and fro at each of them.
        let base = if round == 0 { base } else { other };
        for count in [FEW, FEW - 1, FEW, MANY - 1, MANY, MANY - 1, FEW + 1, FEW - 1, MANY + 9] {
            dense.go_to(&base, count);
        }
        // A copy goes its own way.
        let (ours, twin) = (dense.ours.clone(), dense.twin.clone());
        dense.retain(6 + round);
        dense.ours.shrink_to_fit();
        (0..100).for_each(|_| dense.change_short(&base));
        dense.compare();
        dense = Dense { ours, twin, ..dense };
        dense.take_over();
        dense.compare();
    }
    dense.go_to(&base, 0);
    dense.go_to(&other, 0);
    while !dense.there.is_empty() {
        dense.remove(0);
    }
    assert_eq!(dense.ours.allocation_size(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn across_the_thresholds_of_a_direct_table_for_v4() {
    across_the_thresholds(Ipv4Addr::new(192, 0, 2, 0), 1);
    across_the_thresholds(Ipv4Addr::new(0, 0, 0, 0), 2);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn across_the_thresholds_of_a_direct_table_for_v6() {
    across_the_thresholds(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 3);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn across_the_thresholds_of_a_direct_table_for_narrow_addresses() {
    // 24 bits: six behind a direct table.
    across_the_thresholds([0xfd_u8, 0x80, 0], 4);
}

/// Far behind a direct table: a node at every stride on the way to one address, and paths on that to
/// another, looked up together.
fn deep_below_a_direct_table<A: Address + Debug + Hash>(near: A, far: A) {
    let mut dense = Dense::new(6);
    dense.go_to(&near, MANY + 100);
    let lens = || 0..=A::BITS;
    lens().for_each(|len| dense.insert(prefix_of(near, len)));
    lens().step_by(35).for_each(|len| dense.insert(prefix_of(far, len)));
    dense.compare();
    let beside = |address: A| (0..A::BITS).map(move |bit| flipped(&address, bit));
    let mut asked: Vec<A> = beside(near).chain(beside(far)).chain([near, far]).collect();
    for seed in 0..10 {
        asked.shuffle(&mut StdRng::seed_from_u64(seed));
        let mut found = vec![None; asked.len()];
        dense.ours.lookup_batch(&asked, &mut found);
        for (address, found) in asked.iter().zip(found) {
            assert_eq!(found, dense.twin.lookup(address), "{address:?}");
            assert_eq!(found, dense.ours.lookup(address), "{address:?}");
        }
        // Fewer of them, so that there are other nodes and longer paths.
        let lens = lens().filter(|_| dense.random.random_bool(0.3)).collect::<Vec<u32>>();
        for len in lens {
            if let Some(at) = dense.there.iter().position(|there| *there == prefix_of(near, len)) {
                dense.remove(at);
            }
        }
    }
    dense.compare();
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn deep_below_a_direct_table_for_wide_addresses() {
    let near = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6);
    deep_below_a_direct_table(near, flipped(&near, 20));
    let near: [u8; 40] = core::array::from_fn(|at| (3 + 37 * at) as u8);
    deep_below_a_direct_table(near, flipped(&near, 17));
}

/// All routes of 18 bits below one of six, and then those of 17, and so on: a direct table full of
/// covers, each of which is uncovered in turn.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_direct_table_full_of_covers() {
    let mut dense = Dense::<Ipv4Addr>::new(5);
    for len in (6..=18).rev() {
        for slot in 0..1_u32 << (len - 6) {
            dense.insert(prefix_of(Ipv4Addr::from_bits(0x80 << 24 | slot << (32 - len)), len));
        }
        dense.ours.validate().unwrap();
    }
    dense.compare();
    for len in [18, 6, 12, 17, 7, 16, 8, 15, 9, 14, 10, 13, 11] {
        let mut at = 0;
        while at < dense.there.len() {
            if dense.there[at].len() == len { dense.remove(at) } else { at += 1 }
        }
        dense.compare();
    }
    assert_eq!(dense.ours.allocation_size(), 0);
}
