//! Routes, addresses and updates.

use std::error::Error;
use std::net::Ipv4Addr;

use flowtable::{Prefix, RouteTable};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::routes::real;

pub(crate) type Table = RouteTable<Ipv4Addr, u32>;

/// An announcement with a value, or a withdrawal.
pub(crate) type Update = (Prefix<Ipv4Addr>, Option<u32>);

/// Routes that are withdrawn at a time.
const WITHDRAWN: usize = 1000;

/// Routes of the synthetic table, before duplicates are removed.
const SYNTHETIC: usize = 500_000;

pub(crate) struct Feed {
    pub(crate) origin: &'static str,
    prefixes: Vec<Prefix<Ipv4Addr>>,
    rng: StdRng,
}

impl Feed {
    /// Reads the real IPv4 routes of the data folder, or makes a synthetic table; `n` routes at
    /// most.
    pub(crate) fn new(n: usize) -> Result<Self, Box<dyn Error>> {
        let mut rng = StdRng::seed_from_u64(1);
        let (origin, mut prefixes) = match real::read()? {
            Some(text) => ("the real table", real::prefixes(&text)?),
            None => ("a synthetic table", synthetic(&mut rng)),
        };
        prefixes.shuffle(&mut rng);
        prefixes.truncate(n);
        Ok(Self { origin, prefixes, rng })
    }

    pub(crate) fn len(&self) -> usize {
        self.prefixes.len()
    }

    pub(crate) fn table(&self) -> Table {
        self.prefixes.iter().map(|&prefix| (prefix, prefix.len())).collect()
    }

    /// Draws addresses within random routes.
    pub(crate) fn addresses(&mut self, count: usize) -> Vec<Ipv4Addr> {
        let Self { prefixes, rng, .. } = self;
        let mut inside = || {
            let prefix = prefixes[rng.random_range(0..prefixes.len())];
            let host = rng.random::<u32>().checked_shr(prefix.len()).unwrap_or(0);
            Ipv4Addr::from_bits(prefix.address().to_bits() | host)
        };
        (0..count).map(|_| inside()).collect()
    }

    /// Returns update `at` of an endless replay: routes are withdrawn, and announced again after
    /// many other withdrawals.
    pub(crate) fn update(&self, at: usize) -> Update {
        let prefix = |at: usize| self.prefixes[at % self.prefixes.len()];
        match at % 2 {
            0 => (prefix(at / 2 + WITHDRAWN), None),
            _ => (prefix(at / 2), Some(at as u32)),
        }
    }
}

/// Draws prefixes, most of them of 24 bits, clustered.
fn synthetic(rng: &mut StdRng) -> Vec<Prefix<Ipv4Addr>> {
    let mut prefix = || {
        let len = if rng.random_ratio(3, 5) { 24 } else { rng.random_range(12..24) };
        let address = rng.random::<u32>() & !(rng.random::<u32>() & 0x3F << 24);
        Prefix::new(Ipv4Addr::from_bits(address), len).expect("a length of IPv4")
    };
    let mut prefixes: Vec<_> = (0..SYNTHETIC).map(|_| prefix()).collect();
    prefixes.sort();
    prefixes.dedup();
    prefixes
}
