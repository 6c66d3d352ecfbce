//! The loop of a router: one guard for the tables of both address families and for its flows, and
//! one repin for each burst of packets.

use flowtable::concurrent::{ConcurrentMap, ConcurrentRoutes, pin};
use flowtable::{DefaultHashBuilder, Prefix};

use super::turn;

const UPDATES: u32 = if cfg!(miri) { 4 } else { 40 };

/// A limit on garbage that is enough for a few updates only: without reclamation, others would be
/// refused.
const LIMIT: usize = if cfg!(miri) { 1 << 20 } else { 64 << 10 };

#[test]
fn each_update_of_three_structures_is_visible_after_one_repin() {
    let _turn = turn();
    let v4 = ConcurrentRoutes::<u32, u32>::new().with_garbage_limit(LIMIT, 0);
    let v6 = ConcurrentRoutes::<u128, u32>::new().with_garbage_limit(LIMIT, 0);
    let flows = ConcurrentMap::with_hasher(DefaultHashBuilder::with_seed(1));
    let flows: ConcurrentMap<u32, u32> = flows.with_garbage_limit(8 * LIMIT, 0);
    let mut guard = pin();
    let mut visible = [0; 3];
    for update in 0..UPDATES {
        v4.insert(Prefix::new(0x0a00_0000, 24).unwrap(), update).expect("no pin is left behind");
        v6.insert(Prefix::new(0xa << 120, 48).unwrap(), update).expect("no pin is left behind");
        flows.pinned(&guard).insert(7, update).expect("no pin is left behind");
        flows.pinned(&guard).flush();
        guard.repin();
        let found = [
            v4.pinned(&guard).lookup(&0x0a00_0001).map(|(_, &value)| value),
            v6.pinned(&guard).lookup(&(0xa << 120 | 1)).map(|(_, &value)| value),
            flows.pinned(&guard).get(&7).copied(),
        ];
        for (visible, found) in visible.iter_mut().zip(found) {
            *visible += u32::from(found == Some(update));
        }
    }
    assert_eq!(visible, [UPDATES; 3]);
}
