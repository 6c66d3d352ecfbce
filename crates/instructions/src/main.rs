//! Operations of a `TrashMap`, a `FlowCache`, an `EphemeralStore`, a `BoundedCache`, a
//! `DuplicateFilter`, a `RouteTable`, a `SocketTable` and the tables for many threads, each in a
//! function of its own: `ci/instructions.sh` counts their instructions.

mod flows;
mod new_flows;
mod routes;
mod sockets;
mod stores;
mod tables;

use std::hint::black_box;

use flowtable::{DefaultHashBuilder, TrashMap, write_to};

/// Operations of each kind.
const COUNT: u64 = 65_536;

type Map = TrashMap<u128, u64>;

/// Keys from a number on.
fn keys(first: u64) -> Vec<u128> {
    (first..first + COUNT).map(|key| u128::from(key) << 64 | u128::from(!key)).collect()
}

#[inline(never)]
fn count_hit(map: &Map, keys: &[u128]) -> u64 {
    keys.iter().map(|key| map.get(key).copied().unwrap_or(1)).sum()
}

#[inline(never)]
fn count_miss(map: &Map, keys: &[u128]) -> u64 {
    keys.iter().map(|key| map.get(key).copied().unwrap_or(2)).sum()
}

#[inline(never)]
fn count_burst(map: &Map, keys: &[u128]) -> u64 {
    let (mut found, mut sum) = ([None; 32], 0);
    for keys in keys.chunks_exact(32) {
        map.get_batch(keys, write_to(&mut found));
        sum += found.iter().flatten().copied().sum::<u64>();
    }
    sum
}

#[inline(never)]
fn count_churn(map: &mut Map, keys: &[u128]) {
    for key in keys {
        map.remove(key);
        map.insert(!key, 1);
    }
}

fn main() {
    let (present, absent) = (keys(0), keys(COUNT));
    let mut map = TrashMap::with_hasher(DefaultHashBuilder::with_seed(1));
    map.extend(present.iter().map(|key| (*key, 1)));
    assert_eq!(black_box(count_hit(&map, &present)), COUNT);
    assert_eq!(black_box(count_miss(&map, &absent)), 2 * COUNT);
    assert_eq!(black_box(count_burst(&map, &present)), COUNT);
    count_churn(&mut map, &present);
    assert_eq!(map.len() as u64, COUNT);
    flows::count();
    new_flows::count();
    routes::count();
    sockets::count();
    stores::count();
    tables::count();
}
