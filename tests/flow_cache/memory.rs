//! The memory of a cache is bounded with any content; actual allocations are counted.

use flowtable::eviction::{ByClass, Eviction, Lru, Passive, PassiveGc, Random, SecondChance};
use flowtable::flow_cache::{
    AdmissionError, Class, Config, Cursor, Image, ImageError, Packet, RefusedImage, Tenant,
    Timeouts,
};
use flowtable::{DefaultHashBuilder, Direction, FlowCache, FlowKey, TcpFlags, Timestamp};
use model::alloc;
use model::flow_cache::keys::key;
use model::scaled;

/// Kilobytes.
const LEAST: usize = Config::MIN_BYTES >> 10;

type Cache<P> = FlowCache<FlowKey, [u64; 5], P>;

fn config(flows: usize, bytes: usize) -> Config {
    let config = Config::new(flows).expect("some").with_timeouts(Timeouts::OFF);
    config.with_max_bytes(bytes).expect("the limit is above the minimum")
}

/// A cache with a fixed seed, as memory depends on the distribution of hashes.
fn cache<P: Eviction>(config: Config, policy: P) -> Cache<P> {
    FlowCache::with_policy_and_hasher(config, policy, DefaultHashBuilder::with_seed(1))
}

/// A cache under a flood, and the number of removed flows.
struct Flood<P> {
    cache: Cache<P>,
    left: u64,
}

impl<P: Eviction> Flood<P> {
    /// Observes a packet; returns whether it has a flow.
    fn observe(&mut self, number: u32, tenant: u32) -> bool {
        let packet = Packet::UDP.from_tenant(Tenant(tenant));
        match self.cache.observe(&key(number), packet, Timestamp::ZERO) {
            Ok(observed) => {
                self.left += u64::from(observed.removed().is_some());
                let handle = observed.handle();
                if number % 5 == 0 {
                    _ = self.cache.add_alias(handle, Direction::Forward, &key(number | 1 << 23));
                }
                true
            }
            Err(error) => {
                assert_eq!(error.reason, AdmissionError::Memory);
                false
            }
        }
    }

    /// Checks that every removed flow is reported, including those evicted for a refused flow.
    fn assert_reported(&mut self) {
        let progress = self.cache.advance(Timestamp::ZERO, 0, |_| ());
        self.left += progress.ended as u64;
        assert_eq!(self.cache.metrics().created, self.left + self.cache.len() as u64);
    }
}

/// The most flows and bytes under a flood of ten times the capacity.
fn flood<P: Eviction>(
    policy: fn() -> P,
    bytes: usize,
    flows: usize,
    tenants: u32,
) -> (usize, usize) {
    let before = alloc::bytes();
    let (most, usage) = alloc::measure(|| {
        let cache = cache(config(flows, bytes), policy());
        let (mut flood, mut most) = (Flood { cache, left: 0 }, 0);
        for number in 0..10 * flows as u32 {
            let has_flow = flood.observe(number, number % (tenants + 1));
            let size = flood.cache.allocation_size();
            assert!(size <= bytes, "{size} bytes of {bytes} with {} flows", flood.cache.len());
            assert_eq!(size, (alloc::bytes() - before) as usize, "{number}");
            most = most.max(flood.cache.len());
            assert!(has_flow || bytes < 1 << 20, "a flow is evicted in {bytes}");
        }
        flood.assert_reported();
        flood.cache.validate().expect("invariant");
        drop(flood);
        most
    });
    assert_eq!(usage.kept, 0, "all memory is freed");
    (most, usage.peak)
}

#[test]
fn memory_is_bounded() {
    let all = [LEAST, LEAST + 2, 100, 300, 600, 1000, 3000, 5000, 20_000];
    let sizes = scaled(&all[..], &[LEAST, 300, 1000], &all);
    for (kilobytes, tenants) in sizes.iter().flat_map(|size| [(size, 3), (size, 20_000)]) {
        let bytes = kilobytes << 10;
        let (flows, peak) = flood(ByClass::new, bytes, 20_000, tenants);
        println!("{kilobytes} KiB: {flows} flows, at most {} KiB", peak >> 10);
        assert!(peak <= bytes, "{peak} of {bytes}");
        // The memory is used: a flow takes about 250 bytes, and 800 are allowed.
        let enough = bytes.saturating_sub(600 << 10) / 800;
        assert!(flows >= enough.min(20_000), "{flows} in {bytes}");
    }
}

#[test]
fn memory_is_bounded_with_each_policy() {
    for kilobytes in [LEAST, 500, 1500] {
        let bytes = kilobytes << 10;
        let passive = || Passive::new(PassiveGc::new(1000, 10).expect("both are above 0"));
        let peaks = [
            flood(SecondChance::new, bytes, 5000, 0).1,
            flood(Lru::new, bytes, 5000, 0).1,
            flood(|| Random::with_seed(1), bytes, 5000, 0).1,
            flood(passive, bytes, 5000, 0).1,
        ];
        assert!(peaks.iter().all(|peak| *peak <= bytes), "{peaks:?} of {bytes}");
    }
}

/// Tenants of present flows take memory only from the first tenant on.
#[test]
fn memory_is_bounded_with_a_late_tenant() {
    for bytes in (1000 << 10..2000 << 10).step_by(scaled(9 << 10, 333 << 10, 9 << 10)) {
        let mut cache = cache(config(20_000, bytes), ByClass::new());
        let mut number = 0;
        while number < 20_000 {
            number += 1;
            let seen = cache.observe(&key(number), Packet::UDP, Timestamp::ZERO);
            if seen.is_ok_and(|seen| seen.removed().is_some()) {
                break;
            }
        }
        for tenant in 1..100 {
            let packet = Packet::UDP.from_tenant(Tenant(tenant));
            _ = cache.observe(&key(number + tenant), packet, Timestamp::ZERO);
            let size = cache.allocation_size();
            assert!(size <= bytes, "{size} of {bytes}");
        }
        cache.validate().unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// A share for which there is no memory is refused, and flows stay and are created as before.
#[test]
fn memory_is_bounded_with_many_shares() {
    let bytes = 600 << 10;
    let mut cache = cache(config(20_000, bytes), ByClass::new());
    for number in 0..1000 {
        assert!(cache.observe(&key(number), Packet::UDP, Timestamp::ZERO).is_ok());
    }
    let shares = (1..20_000).map(Tenant);
    let refused = shares.map(|tenant| cache.try_set_share(tenant, Some(2)).is_err());
    assert!(refused.filter(|is| *is).count() > 10_000);
    assert_eq!(cache.tenant_flows(Tenant(19_999)), None);
    assert!(cache.allocation_size() <= bytes);
    assert_eq!(cache.advance(Timestamp::ZERO, 1000, |_| ()).ended, 0);
    for number in 1000..5000 {
        assert!(cache.observe(&key(number), Packet::UDP, Timestamp::ZERO).is_ok());
    }
    assert!(cache.len() >= 1000);
    cache.validate().expect("invariant");
}

/// The memory of tenants is that of those at a time: subscribers come and go.
#[test]
fn the_memory_of_tenants_without_a_share_and_flows_is_used_for_others() {
    const TENANTS: u32 = scaled(100_000, 4000, 20_000);
    let mut cache = cache(config(1000, 1 << 20), ByClass::new());
    let mut bytes = 0;
    for tenant in (1..TENANTS).map(Tenant) {
        cache.try_set_share(tenant, Some(2)).expect("there is memory");
        let packet = Packet::UDP.from_tenant(tenant);
        for number in 0..3 {
            assert!(cache.observe(&key(3 * tenant.0 + number), packet, Timestamp::ZERO).is_ok());
        }
        assert_eq!(cache.tenant_flows(tenant), Some(2));
        cache.set_share(tenant, None);
        assert_eq!(cache.tenant_flows(tenant), Some(2), "it still has flows");
        if tenant.0 % 2 == 0 {
            cache.retain(|flow| flow.tenant() != tenant);
            assert_eq!(cache.tenant_flows(tenant), None);
        }
        if tenant.0 == TENANTS / 10 {
            bytes = cache.allocation_size();
        }
        if tenant.0 % (TENANTS / 10) == 0 {
            cache.validate().expect("invariant");
        }
    }
    let size = cache.allocation_size();
    assert!(bytes > 0 && size <= bytes + (64 << 10), "{size}, {bytes} after a tenth");
    cache.clear();
    let size = cache.allocation_size();
    assert!(size < 32 << 10, "{size} without flows and shares");
    cache.try_set_share(Tenant(7), Some(1)).expect("there is memory");
}

/// A tenant whose share was the last one has one again, when the flows of others fill the memory.
#[test]
fn a_share_is_possible_again_in_a_cache_at_its_memory_limit() {
    let mut cache = cache(config(1_000_000, 2 << 20), ByClass::new());
    let (tenant, mut number) = (Tenant(1), 0);
    cache.set_share(tenant, Some(2));
    let mut fill = |cache: &mut Cache<ByClass>| {
        let evicted = (0..30_000).filter(|_| {
            number += 1;
            let seen = cache.observe(&key(number), Packet::UDP, Timestamp::ZERO);
            seen.expect("one is evicted").removed().is_some()
        });
        assert!(evicted.count() > 10_000, "memory is the limit");
    };
    fill(&mut cache);
    for _ in 0..3 {
        cache.set_share(tenant, None);
        assert_eq!(cache.tenant_flows(tenant), None);
        fill(&mut cache);
        cache.try_set_share(tenant, Some(2)).expect("its memory was reserved");
        fill(&mut cache);
        cache.validate().expect("invariant");
        assert!(cache.allocation_size() <= 2 << 20);
    }
}

#[test]
#[should_panic(expected = "exceeds the memory limit")]
fn a_share_beyond_the_memory_limit_panics() {
    let mut cache = cache(config(20_000, Config::MIN_BYTES), ByClass::new());
    (1..20_000).for_each(|tenant| cache.set_share(Tenant(tenant), Some(2)));
}

/// The memory of a policy for other classes is reserved.
#[test]
fn memory_is_bounded_when_classes_change() {
    let bytes = 30 << 20;
    let mut cache = cache(config(1_000_000, bytes), ByClass::new());
    let mut handles = vec![];
    for number in 0.. {
        let packet = Packet::tcp(TcpFlags::SYN);
        let observed = cache.observe(&key(number), packet, Timestamp::ZERO).expect("room");
        if observed.removed().is_some() {
            break;
        }
        handles.push(observed.handle());
    }
    for class in [Class::Unreplied, Class::Established, Class::Closing] {
        handles.iter().for_each(|handle| _ = cache.set_class(*handle, class));
        let size = cache.allocation_size();
        assert!(size <= bytes, "{size} of {bytes} when all are {class}");
    }
}

#[test]
fn memory_is_bounded_for_restored_images() {
    for flows in [1, 10, 1000, 1025, 5000] {
        let mut original = cache(config(flows, usize::MAX), ByClass::new());
        for number in 0..flows as u32 {
            let now = Timestamp::ZERO;
            original.observe(&key(number), Packet::UDP, now).expect("there is room");
        }
        let mut restored = 0;
        for kilobytes in [LEAST, LEAST + 2, 20, 50, 100, 200, 400, 800, 1600, 3200, 10_000] {
            let bytes = kilobytes << 10;
            let mut copy = cache(config(flows, bytes), ByClass::new());
            let image: Image<_, _> = original.page(&mut Cursor::new(), usize::MAX).collect();
            match copy.restore(image.clone(), Timestamp::ZERO) {
                Ok(count) => restored += usize::from(count == flows),
                Err(RefusedImage {
                    refused,
                    reason: ImageError::TooMany { flows: of, capacity },
                }) => {
                    assert!(of == flows && capacity <= flows, "{capacity} of {flows}");
                    assert!(refused == image);
                    assert_eq!((copy.len(), copy.find(&key(0))), (0, None));
                    copy.validate().expect("invariant");
                }
                Err(error) => panic!("{error}"),
            }
            let size = copy.allocation_size();
            assert!(size <= bytes, "{flows} flows took {size} bytes of {bytes}");
        }
        assert!(restored > 0, "10 MB are enough for {flows}");
    }
}
