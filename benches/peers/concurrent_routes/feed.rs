//! Routes, addresses and updates.

use std::error::Error;

use flowtable::{Prefix, RouteTable};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::routes::address::address_within;
use crate::routes::family::Family;
use crate::routes::{real, synthetic};

pub(crate) type Table<A> = RouteTable<A, u32>;

/// An announcement with a value, or a withdrawal.
pub(crate) type Update<A> = (Prefix<A>, Option<u32>);

/// Routes that are withdrawn at a time.
const WITHDRAWN: usize = 1000;

pub(crate) struct Feed<A> {
    pub(crate) origin: &'static str,
    prefixes: Vec<Prefix<A>>,
    rng: StdRng,
}

impl<A: Family> Feed<A> {
    /// Reads the real routes of the data folder, or makes a synthetic table; `n` routes at
    /// most.
    pub(crate) fn new(n: usize) -> Result<Self, Box<dyn Error>> {
        let mut rng = StdRng::seed_from_u64(1);
        let (origin, mut prefixes) = match real::read()? {
            Some(text) => ("the real table", real::prefixes(&text)?),
            None => ("a synthetic table", synthetic::prefixes()),
        };
        prefixes.shuffle(&mut rng);
        prefixes.truncate(n);
        Ok(Self { origin, prefixes, rng })
    }

    pub(crate) fn len(&self) -> usize {
        self.prefixes.len()
    }

    pub(crate) fn table(&self) -> Table<A> {
        self.prefixes.iter().map(|&prefix| (prefix, prefix.len())).collect()
    }

    /// Draws addresses within random routes.
    pub(crate) fn addresses(&mut self, count: usize) -> Vec<A> {
        let Self { prefixes, rng, .. } = self;
        let mut inside = || {
            let prefix = prefixes[rng.random_range(0..prefixes.len())];
            address_within((prefix.address().left(), prefix.len()), rng)
        };
        (0..count).map(|_| inside()).collect()
    }

    /// Returns update `at` of an endless replay: routes are withdrawn, and announced again after
    /// many other withdrawals.
    pub(crate) fn update(&self, at: usize) -> Update<A> {
        let prefix = |at: usize| self.prefixes[at % self.prefixes.len()];
        match at % 2 {
            0 => (prefix(at / 2 + WITHDRAWN), None),
            _ => (prefix(at / 2), Some(at as u32)),
        }
    }
}
