//! The operations of a recorded history on a `ConcurrentMap`.

use core::hash::BuildHasher;

use flowtable::concurrent::{Compute, Computed, Pinned};
use model::histories::Op;

/// Performs `op`; closures call `pause`.
pub(crate) fn perform<S: BuildHasher>(
    pin: &Pinned<'_, u64, u64, S>,
    key: u64,
    op: Op,
    pause: &mut dyn FnMut(),
) -> Option<u64> {
    match op {
        Op::Insert(value) => pin.insert(key, value).unwrap().copied(),
        Op::Remove => pin.remove(&key).copied(),
        Op::Get => pin.get(&key).copied(),
        Op::Update => {
            let update = |value: &u64| {
                pause();
                value + 1
            };
            pin.update(key, update).unwrap().copied()
        }
        Op::GetOrInsert(value) => pin.get_or_insert(key, value).ok().copied(),
        Op::GetOrInsertWith(value) => {
            let make = || {
                pause();
                value
            };
            pin.get_or_insert_with(key, make).ok().copied()
        }
        Op::Compute(value) => {
            let compute = |now: Option<&u64>| {
                pause();
                match now {
                    None => Compute::Insert(value),
                    Some(now) if now % 2 == 1 => Compute::Insert(2 * now),
                    Some(_) => Compute::Remove,
                }
            };
            match pin.compute(key, compute).unwrap() {
                Computed::Inserted(new) => {
                    assert_eq!(*new, value);
                    None
                }
                Computed::Updated { old, new } => {
                    assert_eq!(*new, 2 * old);
                    Some(*old)
                }
                Computed::Removed(old) => Some(*old),
                Computed::Kept(now) => panic!("{now:?} is unexpectedly kept"),
            }
        }
        Op::Look => {
            let look = |_: Option<&u64>| {
                pause();
                Compute::Keep
            };
            match pin.compute(key, look).unwrap() {
                Computed::Kept(now) => now.copied(),
                other => panic!("{other:?}"),
            }
        }
    }
}
