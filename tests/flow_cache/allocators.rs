//! `FlowCache` with allocators of the caller: memory that is lacking at times, and a static buffer.

use core::mem::MaybeUninit;
use core::net::Ipv4Addr;

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{
    AdmissionError, AliasError, Config, Cursor, Image, ImageError, Packet, Tenant, Timeouts,
};
use flowtable::{DefaultHashBuilder, Direction, FiveTuple, FlowCache, FlowKey, Timestamp};
use model::alloc::measure;
use model::area::Area;
use model::flow_cache::flows::{Setting, Victims};
use model::flow_cache::keys::{NumberedKey, key};
use model::flow_cache::{CheckedFlowCache, both_directions};
use model::hashers::Weak;
use model::limited::Limited;
use proptest::prelude::*;
use proptest::sample::select;

use super::model::{KEYS, Op, Sent, Step, change, ops, perform, proptest_config, setting, time};

type Name = FiveTuple<Ipv4Addr>;
type Checked<'m, S> = CheckedFlowCache<Name, ByClass<&'m Limited>, S, &'m Limited>;
type Limits<'m> = FlowCache<FlowKey, u64, ByClass<&'m Limited>, DefaultHashBuilder, &'m Limited>;

/// Runs the operations, with packets one by one, and compares the cache with its model after each.
fn run<S: core::hash::BuildHasher>(mut cache: Checked<'_, S>, steps: Vec<(Step, Op)>) {
    let keys = both_directions((0..KEYS).map(Name::make));
    for (step, op) in steps {
        let now = time(&cache.model, step);
        match op {
            Op::Batch(sent) => sent.iter().for_each(|sent: &Sent| {
                cache.observe(&sent.key(), sent.seen, now);
                cache.compare(&keys);
            }),
            Op::Flow(nth, op) => {
                let handle = super::model::handle(&cache.model, nth);
                handle.into_iter().for_each(|handle| change(&mut cache, handle, op));
            }
            op => perform(&mut cache, &op, now),
        }
        cache.compare(&keys);
        assert_eq!(cache.ours.allocation_size(), cache.ours.allocator().bytes());
    }
}

proptest! {
    #![proptest_config(proptest_config())]

    /// Each n-th request of memory fails.
    #[test]
    fn a_cache_without_memory_changes_nothing(
        setting in setting(), ops in ops(), period in 1..8_usize, hasher in select(&Weak::ALL),
    ) {
        let memory = Limited::failing_each(period);
        let setting = Setting { victims: Victims::Lowest, ..setting };
        run(Checked::lacking_memory(setting, ByClass::new_in(&memory), hasher, &memory), ops);
        prop_assert_eq!(memory.bytes(), 0);
    }
}

fn limits(flows: usize, memory: &Limited) -> Limits<'_> {
    let config = Config::new(flows).unwrap().with_timeouts(Timeouts::METER);
    let hasher = DefaultHashBuilder::with_seed(1);
    FlowCache::with_policy_and_hasher_in(config, ByClass::new_in(memory), hasher, memory)
}

/// From some flow on no request succeeds: each new flow evicts another one, flows end in time, and
/// what they need has been allocated for them before.
#[test]
fn a_cache_that_cannot_grow_goes_on() {
    for (present, room) in [(0, 0), (1, 12), (2, 12), (700, 1024), (1024, 1024), (3000, 3072)] {
        let memory = Limited::default();
        let mut cache = limits(10_000, &memory);
        for number in 0..present {
            cache.observe(&key(number), Packet::UDP, Timestamp::ZERO).unwrap();
        }
        memory.fail_each(1);
        let (bytes, mut refused, mut left) = (memory.bytes(), 0, 0);
        for number in present..present + 5000 {
            let now = Timestamp::from_millis(number.into());
            match cache.observe(&key(number), Packet::UDP, now) {
                Ok(seen) => left += u32::from(seen.removed().is_some()),
                Err(error) => refused += u32::from(error.reason == AdmissionError::Memory),
            }
        }
        assert_eq!(refused, if present == 0 { 5000 } else { 0 }, "with {present}");
        let there = present + 5000 - refused - left;
        assert_eq!((cache.len() as u32, there), (room, room), "with {present}");
        assert!(memory.bytes() <= bytes);
        cache.validate().unwrap();
        let mut ended = 0;
        let late = Timestamp::from_secs(1000);
        while !cache.advance(late, 100, |_| ended += 1).is_done {}
        assert_eq!((ended, cache.len()), (room, 0));
        cache.validate().unwrap();
    }
}

/// Hashes that were replaced once do not keep new flows from the places of others.
#[test]
fn a_cache_with_replaced_hashes_that_cannot_grow_goes_on() {
    for present in [20, 30, 45, 60, 90, 100, 130, 200, 300] {
        let memory = Limited::default();
        let config = Config::new(10_000).unwrap().with_timeouts(Timeouts::METER);
        let policy = ByClass::new_in(&memory);
        let mut cache: FlowCache<FlowKey, u64, _, _, _> =
            FlowCache::with_policy_and_hasher_in(config, policy, Weak::Constant, &memory);
        for number in 0..900 {
            cache.observe(&key(number), Packet::UDP, Timestamp::ZERO).unwrap();
        }
        let now = Timestamp::from_secs(1000);
        while !cache.advance(now, 100, |_| ()).is_done {}
        for number in 0..present {
            let handle = cache.observe(&key(number), Packet::UDP, now).unwrap().handle();
            if number % 2 == 0 {
                cache.set_timeout(handle, Some(core::time::Duration::from_secs(50))).unwrap();
            }
        }
        assert!(cache.metrics().reseeds > 0);
        memory.fail_each(1);
        for number in 1000..1400 {
            let seen = cache.observe(&key(number), Packet::UDP, now);
            assert!(seen.is_ok(), "{seen:?} of {number}");
        }
        cache.validate().unwrap();
    }
}

/// Names, tenants, timeouts and images without memory.
#[test]
fn what_is_refused_without_memory_is_as_it_was() {
    let memory = Limited::default();
    let mut cache = limits(100, &memory);
    let mut handles = vec![];
    for number in 0..50 {
        let seen = cache.observe(&key(number), Packet::UDP, Timestamp::ZERO);
        handles.push(seen.unwrap().handle());
    }
    let image: Image<_, _> = cache.page(&mut Cursor::new(), usize::MAX).collect();
    memory.fail_each(1);
    let named = cache.add_alias(handles[3], Direction::Forward, &key(1000));
    assert_eq!((named, cache.find(&key(1000))), (Err(AliasError::Memory), None));
    let timeout = Some(core::time::Duration::from_secs(7));
    assert!(cache.set_timeout(handles[3], timeout).is_err());
    assert_eq!(cache.resident(handles[3]).unwrap().timeout(), None);
    assert!(cache.try_set_share(Tenant(3), Some(5)).is_err());
    assert_eq!(cache.tenant_flows(Tenant(3)), None);
    let of_tenant = Packet::UDP.from_tenant(Tenant(3));
    let refused = cache.observe(&key(1000), of_tenant, Timestamp::ZERO).err();
    assert_eq!(
        (refused.map(|error| error.reason), cache.len()),
        (Some(AdmissionError::Memory), 50)
    );
    cache.validate().unwrap();
    for period in 1..40 {
        memory.fail_each(period);
        let mut copy = limits(100, &memory);
        match copy.restore(image.clone(), Timestamp::ZERO) {
            Ok(restored) => assert!(restored == 50 && copy.len() == 50),
            Err(error) => {
                assert!(matches!(error.reason, ImageError::TooMany { flows: 50, .. }));
                assert_eq!(error.refused, image);
            }
        }
        assert!(copy.is_empty() || copy.len() == 50);
        copy.validate().unwrap();
    }
}

/// Creation, flows, floods, tenants and expiry in a static buffer allocate nothing else.
#[test]
fn a_cache_in_a_static_buffer_needs_no_other_memory() {
    let mut buffer = vec![MaybeUninit::uninit(); 512 << 10];
    let area = Area::new(&mut buffer);
    let config = Config::new(1000).unwrap().with_timeouts(Timeouts::METER);
    let ((), usage) = measure(|| {
        let policy = ByClass::new_in(&area);
        let mut cache: FlowCache<FlowKey, u64, _, _, _> =
            FlowCache::with_policy_and_hasher_in(config, policy, Weak::Constant, &area);
        cache.try_set_share(Tenant(3), Some(5)).unwrap();
        for number in 0..2000 {
            let packet = Packet::UDP.from_tenant(Tenant(number % 4));
            let seen = cache.observe(&key(number), packet, Timestamp::from_millis(number.into()));
            assert!(seen.is_ok(), "{seen:?}");
        }
        assert!(cache.metrics().reseeds > 0);
        while !cache.advance(Timestamp::from_secs(1000), 100, |_| ()).is_done {}
        assert!(cache.is_empty());
    });
    assert_eq!(usage.allocations, 0);
}

/// A static buffer is enough for as many flows as its size suggests.
#[test]
fn a_cache_in_a_static_buffer() {
    for (kilobytes, most) in [(0, 0), (16, 64), (32, 120), (64, 240)] {
        // The heap itself takes two more.
        let mut buffer = vec![MaybeUninit::uninit(); (kilobytes + 2) << 10];
        let area = Area::new(&mut buffer);
        let config = Config::new(most.max(1)).unwrap();
        let mut cache: FlowCache<FlowKey, u64, _, _, _> = FlowCache::new_in(config, &area);
        let mut present = 0;
        for number in 0..1000 {
            let seen = cache.observe(&key(number), Packet::UDP, Timestamp::ZERO);
            present += usize::from(seen.is_ok_and(|seen| seen.removed().is_none()));
        }
        assert_eq!((present, cache.len()), (most, most), "in {kilobytes} KiB");
        cache.validate().unwrap();
    }
}
