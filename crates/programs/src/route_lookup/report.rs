//! The report: shape, memory and speed of the tables.

use core::fmt;
use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{NameId, Routes};

/// The report on routes from an input.
pub struct Report<'a> {
    pub name: &'a str,
    pub routes: &'a Routes,
    /// Time of reading them.
    pub elapsed: Duration,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Routes { v4, v6, repeated, with_host_bits, .. } = self.routes;
        let count = v4.len() + v6.len();
        writeln!(f, "{}: {count} routes in {:.3} s", self.name, self.elapsed.as_secs_f64())?;
        if *repeated > 0 {
            writeln!(f, "{repeated} of its lines have a prefix that a later line repeats")?;
        }
        if *with_host_bits > 0 {
            writeln!(f, "{with_host_bits} of its lines have address bits after their prefixes")?;
        }
        table(f, "IPv4", v4)?;
        table(f, "IPv6", v6)
    }
}

fn table<A: Address>(
    f: &mut fmt::Formatter<'_>,
    family: &str,
    table: &RouteTable<A, NameId>,
) -> fmt::Result {
    if table.is_empty() {
        return writeln!(f, "\n{family}: no routes");
    }
    let bytes = table.allocation_size();
    let each = bytes as f64 / table.len() as f64;
    let speed = Speed::of(table);
    writeln!(f, "\n{family}: {} routes, {bytes} bytes, {each:.1} for each", table.len())?;
    writeln!(f, "{}", table.shape())?;
    writeln!(
        f,
        "million lookups per second, of random addresses in random routes: \
         {:.1} one by one, {:.1} in bursts of {BURST}",
        speed.single / 1e6,
        speed.burst / 1e6
    )
}

/// Lookups per batch.
const BURST: usize = 32;

/// Lookups per second.
struct Speed {
    single: f64,
    burst: f64,
}

impl Speed {
    /// Number of different addresses: more than fit into a cache with their results.
    const ADDRESSES: usize = 1 << 16;
    /// Minimum duration of each measurement.
    const TIME: Duration = Duration::from_millis(100);

    fn of<A: Address>(table: &RouteTable<A, NameId>) -> Self {
        let addresses = random_addresses(table, Self::ADDRESSES);
        let single = Self::rate(&addresses, |addresses| {
            addresses.iter().for_each(|address| _ = black_box(table.lookup(address)));
        });
        let burst = Self::rate(&addresses, |addresses| {
            let mut found = [None; BURST];
            for burst in addresses.chunks_exact(BURST) {
                table.lookup_batch(burst, |i, route| found[i] = route);
                black_box(&found);
            }
        });
        Self { single, burst }
    }

    /// Returns the lookups per second of `run`.
    fn rate<A>(addresses: &[A], run: impl Fn(&[A])) -> f64 {
        run(addresses);
        let (start, mut rounds) = (Instant::now(), 0);
        while start.elapsed() < Self::TIME {
            run(addresses);
            rounds += 1;
        }
        (rounds * addresses.len()) as f64 / start.elapsed().as_secs_f64()
    }
}

/// Returns random addresses in random routes, equal in each run.
fn random_addresses<A: Address>(table: &RouteTable<A, NameId>, count: usize) -> Vec<A> {
    let mut random = StdRng::seed_from_u64(4);
    let routes: Vec<Prefix<A>> = table.prefixes().collect();
    let inside = |_| {
        let route = routes[random.random_range(0..routes.len())];
        let bits: [u64; 2] = random.random();
        let any = A::from_windows(|pos| bits[usize::from(pos > 0)]);
        let (first, hidden) = (route.address(), any.truncated(route.len()));
        A::from_windows(|pos| first.window(pos) | (any.window(pos) ^ hidden.window(pos)))
    };
    (0..count).map(inside).collect()
}
