//! Every number that the documentation of `FlowCache` states, with its seed and size.

use std::net::Ipv4Addr;

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{Config, Packet};
use flowtable::{DefaultHashBuilder, FiveTuple, FlowCache, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[test]
fn a_flow_takes_130_bytes() {
    let config = Config::new(200_000).expect("the capacity is valid");
    let mut cache: FlowCache<FiveTuple<Ipv4Addr>, [u64; 4]> =
        FlowCache::with_policy_and_hasher(config, ByClass::new(), DefaultHashBuilder::with_seed(5));
    let mut rng = StdRng::seed_from_u64(5);
    for filled in 1..=200_000_usize {
        let key = FiveTuple {
            src: rng.random::<u32>().into(),
            dst: rng.random::<u32>().into(),
            sport: rng.random(),
            dport: 53,
            protocol: 17,
        };
        cache.observe(&key, Packet::UDP, Timestamp::ZERO).expect("there is room");
        if filled % 50_000 == 0 {
            let bytes = cache.allocation_size() as f64 / cache.len() as f64;
            assert!((120.0..135.0).contains(&bytes), "{bytes} bytes per flow with {filled}");
        }
    }
}
