//! Every number that the documentation of `FlowCache` states, with its seed and size.

use std::net::Ipv4Addr;

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{Config, Packet};
use flowtable::{DefaultHashBuilder, FiveTuple, FlowCache, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// At all fills above a tenth, those just after a growth included.
#[test]
fn a_flow_takes_105_to_120_bytes() {
    const FLOWS: usize = 1_000_000;
    let config = Config::new(FLOWS).expect("the capacity is valid");
    let mut cache: FlowCache<FiveTuple<Ipv4Addr>, [u64; 4]> =
        FlowCache::with_policy_and_hasher(config, ByClass::new(), DefaultHashBuilder::with_seed(5));
    let mut rng = StdRng::seed_from_u64(5);
    let mut most = 0.0_f64;
    for filled in 1..=FLOWS {
        let key = FiveTuple {
            src: rng.random::<u32>().into(),
            dst: rng.random::<u32>().into(),
            sport: rng.random(),
            dport: 53,
            protocol: 17,
        };
        cache.observe(&key, Packet::UDP, Timestamp::ZERO).expect("there is room");
        if filled % 512 == 0 && filled >= FLOWS / 10 {
            let bytes = cache.allocation_size() as f64 / cache.len() as f64;
            assert!((105.0..120.0).contains(&bytes), "{bytes} bytes per flow with {filled}");
            most = most.max(bytes);
        }
    }
    assert!(most > 118.0, "{most} bytes after a growth of the index");
}
