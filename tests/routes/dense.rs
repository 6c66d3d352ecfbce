//! `RouteTable` across the thresholds of its direct tables in both directions, compared with a
//! reference model.

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
use model::scaled;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// A large table and its reference model, with routes below a few prefixes of six bits, which have
/// a direct table from [`MANY`] routes on until there are fewer than [`FEW`].
struct Dense<A> {
    ours: RouteTable<A, u32>,
    model: RoutesByLength<A, u32>,
    /// The present prefixes, in any order.
    present: Vec<Prefix<A>>,
    /// The number of routes below each prefix of six bits, without that itself.
    below: HashMap<A, usize>,
    rng: StdRng,
    now: u32,
}

const MANY: usize = 4096;
const FEW: usize = 1024;

impl<A: Address + Debug + Hash> Dense<A> {
    fn new(seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        let (ours, model, below) = (RouteTable::new(), RoutesByLength::new(), HashMap::new());
        Self { ours, model, present: vec![], below, rng, now: 0 }
    }

    fn random_address(&mut self) -> A {
        let windows: [u64; 6] = self.rng.random();
        A::from_windows(|pos| match (windows[pos as usize / 64], pos % 64) {
            (window, 0) => window,
            (window, odd) => window << odd | windows[(pos as usize / 64 + 1) % 6] >> (64 - odd),
        })
    }

    /// An address below the first six bits of `base`, mostly close to others: bits 6 to 18 have few
    /// values.
    fn address_below(&mut self, base: &A) -> A {
        let (address, near) = (self.random_address(), self.rng.random_range(0..8));
        let near = flipped(&flipped(base, 6 + near), 17 - near / 3);
        let front = if self.rng.random_bool(0.5) { spliced(base, 6, &address) } else { near };
        spliced(&front, self.rng.random_range(6..20), &address)
    }

    fn insert(&mut self, prefix: Prefix<A>) {
        self.now += 1;
        let old = self.model.insert(prefix, self.now);
        assert_eq!(self.ours.insert(prefix, self.now), old, "{prefix:?}");
        if old.is_none() {
            self.present.push(prefix);
            *self.count_at(&prefix) += usize::from(prefix.len() > 6);
        }
        self.check_at(&prefix);
    }

    fn remove(&mut self, at: usize) {
        let prefix = self.present.swap_remove(at);
        let old = self.model.remove(&prefix);
        assert!(old.is_some());
        *self.count_at(&prefix) -= usize::from(prefix.len() > 6);
        assert_eq!(self.ours.remove(&prefix), old, "{prefix:?}");
        assert_eq!(self.ours.remove(&prefix), None, "{prefix:?}");
        self.check_at(&prefix);
    }

    fn count_at(&mut self, prefix: &Prefix<A>) -> &mut usize {
        self.below.entry(prefix.address().truncated(6)).or_insert(0)
    }

    /// Looks up addresses at both ends of the prefix, next to it and inside it.
    fn check_at(&mut self, prefix: &Prefix<A>) {
        let (first, last) = (prefix.address(), last_address(prefix));
        let inside = spliced(&first, prefix.len(), &self.random_address());
        let outside = flipped(&first, prefix.len().saturating_sub(1));
        let addresses = [first, last, inside, outside];
        let mut found = [None; 4];
        self.ours.lookup_batch(&addresses, |i, route| found[i] = route);
        for (address, found) in addresses.iter().zip(found) {
            assert_eq!(found, self.model.lookup(address), "{address:?}");
            assert_eq!(found, self.ours.lookup(address), "{address:?}");
        }
    }

    /// Changes a route of a length that is stored in a direct table or above it.
    fn change_short(&mut self, base: &A) {
        let address = self.address_below(base);
        let prefix = prefix_of(address, self.rng.random_range(0..=19));
        match self.present.iter().position(|present| *present == prefix) {
            Some(at) if self.rng.random_bool(0.7) => self.remove(at),
            _ => self.insert(prefix),
        }
    }

    /// Adds and removes routes below the base, one at a time, until there are `count`.
    fn go_to(&mut self, base: &A, count: usize) {
        let base = prefix_of(*base, 6);
        loop {
            match (*self.count_at(&base)).cmp(&count) {
                Ordering::Equal => break,
                Ordering::Less => {
                    let address = self.address_below(&base.address());
                    let len = self.rng.random_range(15..=A::BITS.min(36));
                    self.insert(prefix_of(address, len));
                }
                Ordering::Greater => {
                    let at = self.rng.random_range(0..self.present.len());
                    if base.covers(&self.present[at]) {
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

    /// Compares the whole tables.
    fn compare(&mut self) {
        self.ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
        self.present.sort_unstable();
        assert_eq!((self.ours.len(), self.model.len()), (self.present.len(), self.present.len()));
        assert!(self.ours.prefixes().eq(self.present.iter().copied()));
        let addresses: Vec<A> =
            self.present.iter().flat_map(|one| [one.address(), last_address(one)]).collect();
        let mut found = vec![None; addresses.len()];
        self.ours.lookup_batch(&addresses, |i, route| found[i] = route);
        for (address, found) in addresses.iter().zip(found) {
            assert_eq!(found, self.model.lookup(address), "{address:?}");
            assert_eq!(found, self.ours.lookup(address), "{address:?}");
        }
        for prefix in self.present.iter().step_by(17) {
            assert_eq!(self.ours.get(prefix), self.model.get(prefix));
            let covers = (0..=prefix.len()).map(|len| prefix_of(prefix.address(), len));
            let covers = covers.filter_map(|cover| Some((cover, self.model.get(&cover)?)));
            assert!(self.ours.covering(prefix).eq(covers), "{prefix:?}");
            let from = self.present.partition_point(|one| one < prefix);
            let covered = self.present[from..].iter().take_while(|one| prefix.covers(one));
            assert!(self.ours.covered(prefix).map(|(one, _)| one).eq(covered.copied()));
        }
    }

    /// Updates the prefixes and counts from the model.
    fn recount(&mut self) {
        self.present = self.model.prefixes();
        self.below.clear();
        for prefix in self.present.clone() {
            *self.count_at(&prefix) += usize::from(prefix.len() > 6);
        }
    }

    /// Retains one of `one_of` routes.
    fn retain(&mut self, one_of: u32) {
        let model = &mut self.model;
        self.ours.retain(|prefix, value| {
            assert_eq!(model.get(&prefix), Some(&*value));
            let is_kept = *value % one_of == 0;
            if !is_kept {
                model.remove(&prefix);
            }
            is_kept
        });
        self.recount();
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
        // Across both thresholds, and back and forth at each.
        let base = if round == 0 { base } else { other };
        let all = [FEW, FEW - 1, FEW, MANY - 1, MANY, MANY - 1, FEW + 1, FEW - 1, MANY + 9];
        for &count in scaled(&all[..], &[FEW - 1, MANY, FEW - 1], &all) {
            dense.go_to(&base, count);
        }
        // A clone is independent.
        let (ours, model) = (dense.ours.clone(), dense.model.clone());
        dense.retain(6 + round);
        dense.ours.shrink_to_fit();
        (0..100).for_each(|_| dense.change_short(&base));
        dense.compare();
        dense = Dense { ours, model, ..dense };
        dense.recount();
        dense.compare();
    }
    dense.go_to(&base, 0);
    dense.go_to(&other, 0);
    while !dense.present.is_empty() {
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
    // 24 bits: six below a direct table.
    across_the_thresholds([0xfd_u8, 0x80, 0], 4);
}

/// Deep below a direct table: a node at every stride to one address, paths to another, and batches
/// of both.
fn deep_below_a_direct_table<A: Address + Debug + Hash>(near: A, far: A) {
    let mut dense = Dense::new(6);
    dense.go_to(&near, MANY + 100);
    let lens = || 0..=A::BITS;
    lens().for_each(|len| dense.insert(prefix_of(near, len)));
    lens().step_by(35).for_each(|len| dense.insert(prefix_of(far, len)));
    dense.compare();
    let outside = |address: A| (0..A::BITS).map(move |bit| flipped(&address, bit));
    let mut addresses: Vec<A> = outside(near).chain(outside(far)).chain([near, far]).collect();
    for seed in 0..scaled(10, 1, 0) {
        addresses.shuffle(&mut StdRng::seed_from_u64(seed));
        let mut found = vec![None; addresses.len()];
        dense.ours.lookup_batch(&addresses, |i, route| found[i] = route);
        for (address, found) in addresses.iter().zip(found) {
            assert_eq!(found, dense.model.lookup(address), "{address:?}");
            assert_eq!(found, dense.ours.lookup(address), "{address:?}");
        }
        // Fewer of them, so that there are other nodes and longer paths.
        let lens = lens().filter(|_| dense.rng.random_bool(0.3)).collect::<Vec<u32>>();
        for len in lens {
            if let Some(at) =
                dense.present.iter().position(|present| *present == prefix_of(near, len))
            {
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
    if scaled(true, false, false) {
        let near: [u8; 40] = core::array::from_fn(|at| (3 + 37 * at) as u8);
        deep_below_a_direct_table(near, flipped(&near, 17));
    }
}

/// All routes of 18 bits below one of six, then those of 17 bits and so on: a direct table in which
/// all slots are covered by other routes, and each of these is removed in turn.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_direct_table_of_covered_routes() {
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
        while at < dense.present.len() {
            if dense.present[at].len() == len { dense.remove(at) } else { at += 1 }
        }
        dense.compare();
    }
    assert_eq!(dense.ours.allocation_size(), 0);
}

/// A collected table, whose direct tables and levels are computed at the end, is that of insertions
/// one by one: the last value of equal prefixes remains. So are its clone, and what it is after
/// further updates.
#[test]
fn a_collected_table_is_that_of_insertions() {
    fn test<A: Address + Debug>(count: usize, tables: usize) {
        let mut rng = StdRng::seed_from_u64(7);
        let mut prefix = || {
            let (bits, len) = (rng.random::<u64>() >> 4, rng.random_range(10..=32));
            prefix_of(A::from_windows(|pos| bits.checked_shl(pos).unwrap_or(0)), len)
        };
        let routes: Vec<_> = (0..count as u32).map(|value| (prefix(), value)).collect();
        let twice = routes.iter().chain(&routes[..count / 2]).copied().zip(0_u32..);
        let routes: Vec<_> = twice.map(|((prefix, _), value)| (prefix, value)).collect();

        let mut collected: RouteTable<A, u32> = routes.iter().copied().collect();
        let mut inserted = RouteTable::new();
        for &(prefix, value) in &routes {
            inserted.insert(prefix, value);
        }
        assert_eq!(collected.shape().direct_tables, tables);
        for _ in 0..2 {
            collected.validate().unwrap();
            assert_eq!(collected, inserted);
            assert!(routes.iter().all(|(prefix, _)| {
                let address = prefix.address();
                collected.lookup(&address) == inserted.lookup(&address)
            }));
            for (prefix, _) in &routes[..count / 4] {
                assert_eq!(collected.remove(prefix), inserted.remove(prefix));
            }
            collected = collected.clone();
        }
        collected.shrink_to_fit();
        collected.validate().unwrap();
        assert_eq!(collected, inserted);
    }
    test::<Ipv4Addr>(24_000, 4);
    test::<Ipv6Addr>(24_000, 4);
    test::<Ipv4Addr>(400, 0);
}

/// A clone has the direct tables of its original, also where there are too few routes for new ones.
#[test]
fn a_clone_has_the_tables_of_its_original() {
    let prefix = |number: u32| prefix_of(Ipv4Addr::from_bits(number << 8), 24);
    let mut routes: RouteTable<Ipv4Addr, u32> =
        (0..MANY as u32).map(|number| (prefix(number), number)).collect();
    for number in 0..MANY as u32 / 2 {
        assert_eq!(routes.remove(&prefix(number)), Some(number));
    }
    let clone = routes.clone();
    assert_eq!((routes.shape().direct_tables, clone.shape().direct_tables), (1, 1));
    clone.validate().unwrap();
    assert_eq!(clone, routes);
    routes.shrink_to_fit();
    assert_eq!(routes.shape().direct_tables, 0);
}
