//! Keys with equal hashes: the cache draws a seed of its own, step by step.

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{Config, Packet, Timeouts};
use flowtable::{Direction, FlowCache, Timestamp};
use model::hashers::Weak;

type Cache = FlowCache<u64, u64, ByClass, Weak>;

const FLOWS: u64 = 3000;

fn cache(hasher: Weak, flows: u64) -> Cache {
    let config = Config::new(flows as usize).expect("some").with_timeouts(Timeouts::OFF);
    FlowCache::with_policy_and_hasher(config, ByClass::new(), hasher)
}

fn observe(cache: &mut Cache, id: u64) -> bool {
    let observed = cache.observe(&id, Packet::UDP, Timestamp::ZERO).expect("there is room");
    *observed.flow += 1;
    observed.fresh
}

#[test]
fn a_flood_of_equal_hashes_reseeds_the_index_and_loses_no_flow() {
    for hasher in Weak::ALL {
        let mut cache = cache(hasher, 2 * FLOWS);
        for id in 0..FLOWS {
            assert!(observe(&mut cache, id), "{hasher:?}");
            if id % 7 == 0 {
                let handle = cache.find(&id).expect("it was observed").handle;
                assert_eq!(
                    cache.add_alias(handle, Direction::Forward, &(id + (1 << 40))),
                    Ok(1),
                    "{hasher:?}"
                );
            }
            // While flows move, all of them are found.
            let other = id * 31 % (id + 1);
            assert!(!observe(&mut cache, other), "{hasher:?}: {other} after {id}");
            let alias = other - other % 7 + (1 << 40);
            assert!(cache.find(&alias).is_some(), "{hasher:?}: {alias} after {id}");
            if id % 251 == 0 {
                cache.validate().unwrap_or_else(|error| panic!("{hasher:?}, {id}: {error}"));
            }
        }
        let is_flooded = matches!(hasher, Weak::Constant | Weak::Three);
        assert_eq!(cache.metrics().reseeds > 0, is_flooded, "{hasher:?}");
        assert_eq!(cache.len() as u64, FLOWS);
        assert!((0..FLOWS).all(|id| cache.find(&id).is_some()), "{hasher:?}");
        cache.clear();
        assert!((0..FLOWS).all(|id| cache.find(&id).is_none()), "{hasher:?}");
        assert!(observe(&mut cache, 1));
        cache.validate().expect("invariant");
    }
}

#[test]
fn a_full_cache_is_reseeded_while_flows_are_evicted_and_removed() {
    let mut cache = cache(Weak::Constant, FLOWS);
    for id in 0..4 * FLOWS {
        observe(&mut cache, id);
        if id % 5 == 0 {
            let handle = cache.find(&(id / 5 * 4)).map(|found| found.handle);
            handle.into_iter().for_each(|handle| _ = cache.remove(handle));
        }
        if id % 501 == 0 {
            cache.validate().unwrap_or_else(|error| panic!("{id}: {error}"));
        }
    }
    assert!(cache.metrics().reseeds > 0);
    let clone = cache.clone();
    clone.validate().expect("invariant");
    assert_eq!(clone.len(), cache.len());
}
