//! Memory has a bound, with whatever there is in the cache: what is really allocated is counted.

use flowtable::eviction::{ByClass, Eviction, Lru, Passive, PassiveGc, Random, SecondChance};
use flowtable::flow_cache::{Class, Config, Cursor, ImageError, Packet, Refused, Tenant, Timeouts};
use flowtable::{DefaultHashBuilder, FlowCache, FlowKey, TcpFlags, Timestamp};
use model::alloc;
use model::flow_cache::keys::key;

/// Kilobytes.
const LEAST: usize = Config::MIN_BYTES >> 10;

type Cache<P> = FlowCache<FlowKey, [u64; 5], P>;

fn config(flows: usize, bytes: usize) -> Config {
    let config = Config::new(flows).expect("some").with_timeouts(Timeouts::OFF);
    config.with_max_bytes(bytes).expect("it is not too little")
}

/// Told of all flows that left.
struct Flood<P> {
    cache: Cache<P>,
    left: u64,
}

impl<P: Eviction> Flood<P> {
    /// Sees a packet; whether it has a flow.
    fn observe(&mut self, number: u32, tenant: u16) -> bool {
        let packet = Packet::UDP.from_tenant(Tenant(tenant));
        match self.cache.observe(&key(number), packet, Timestamp::ZERO) {
            Ok(observed) => {
                self.left += u64::from(observed.removed.is_some());
                let handle = observed.handle;
                if number % 5 == 0 {
                    _ = self.cache.add_name(handle, &key(number | 1 << 23));
                }
                true
            }
            Err(refused) => {
                assert_eq!(refused, Refused::Memory);
                false
            }
        }
    }

    /// Who left for a flow that was refused in the end is told, too.
    fn assert_told(&mut self) {
        let progress = self.cache.advance(Timestamp::ZERO, 0, |_| ());
        self.left += progress.ended as u64;
        assert_eq!(self.cache.metrics().created, self.left + self.cache.len() as u64);
    }
}

/// Flows at most, and bytes at most, of a flood that is ten times as large as the cache.
fn flood<P: Eviction>(
    policy: fn() -> P,
    bytes: usize,
    flows: usize,
    tenants: u16,
) -> (usize, usize) {
    // The first one of a program allocates what all others use.
    drop(DefaultHashBuilder::new());
    let before = alloc::bytes();
    let (most, usage) = alloc::measure(|| {
        let cache = Cache::with_policy(config(flows, bytes), policy());
        let (mut flood, mut most) = (Flood { cache, left: 0 }, 0);
        for number in 0..10 * flows as u32 {
            let has_flow = flood.observe(number, (number % (u32::from(tenants) + 1)) as u16);
            let size = flood.cache.allocation_size();
            assert!(size <= bytes, "{size} bytes of {bytes} with {} flows", flood.cache.len());
            assert_eq!(size, (alloc::bytes() - before) as usize, "{number}");
            most = most.max(flood.cache.len());
            assert!(has_flow || bytes < 1 << 20, "who could leave makes room in {bytes}");
        }
        flood.assert_told();
        flood.cache.validate().expect("invariant");
        drop(flood);
        most
    });
    assert_eq!(usage.kept, 0, "all memory is freed");
    (most, usage.peak)
}

#[test]
fn memory_has_a_bound() {
    let kilobytes = [LEAST, LEAST + 2, 100, 300, 600, 1000, 3000, 5000, 20_000];
    for (kilobytes, tenants) in kilobytes.into_iter().flat_map(|size| [(size, 3), (size, 20_000)]) {
        let bytes = kilobytes << 10;
        let (flows, peak) = flood(ByClass::new, bytes, 20_000, tenants);
        println!("{kilobytes} KiB: {flows} flows, at most {} KiB", peak >> 10);
        assert!(peak <= bytes, "{peak} of {bytes}");
        // What there is room for is used: a flow takes some 250 bytes.
        let enough = bytes.saturating_sub(600 << 10) / 800;
        assert!(flows >= enough.min(20_000), "{flows} in {bytes}");
    }
}

#[test]
fn memory_has_a_bound_with_each_policy() {
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

/// What a policy needs for other classes is reserved.
#[test]
fn memory_has_a_bound_whatever_becomes_of_flows() {
    let bytes = 30 << 20;
    let mut cache: Cache<ByClass> = FlowCache::new(config(1_000_000, bytes));
    let mut handles = vec![];
    for number in 0.. {
        let packet = Packet::tcp(TcpFlags::SYN);
        let observed = cache.observe(&key(number), packet, Timestamp::ZERO).expect("room");
        if observed.removed.is_some() {
            break;
        }
        handles.push(observed.handle);
    }
    for class in [Class::Unreplied, Class::Established, Class::Closing] {
        handles.iter().for_each(|handle| _ = cache.set_class(*handle, class));
        let size = cache.allocation_size();
        assert!(size <= bytes, "{size} of {bytes} when all are {class}");
    }
}

#[test]
fn memory_has_a_bound_for_images_too() {
    for flows in [1, 10, 1000, 1025, 5000] {
        let mut original: Cache<ByClass> = FlowCache::new(config(flows, usize::MAX));
        for number in 0..flows as u32 {
            let now = Timestamp::ZERO;
            original.observe(&key(number), Packet::UDP, now).expect("there is room");
        }
        let mut taken = 0;
        for kilobytes in [LEAST, LEAST + 2, 20, 50, 100, 200, 400, 800, 1600, 3200, 10_000] {
            let bytes = kilobytes << 10;
            let mut copy: Cache<ByClass> = FlowCache::new(config(flows, bytes));
            let image = original.page(&mut Cursor::new(), usize::MAX).collect();
            match copy.restore(image, Timestamp::ZERO) {
                Ok(count) => taken += usize::from(count == flows),
                Err(ImageError::TooMany { flows: of, capacity: room }) => {
                    assert!(of == flows && room <= flows, "{room} of {flows}");
                    assert_eq!((copy.len(), copy.find(&key(0))), (0, None));
                    copy.validate().expect("invariant");
                }
                Err(error) => panic!("{error}"),
            }
            let size = copy.allocation_size();
            assert!(size <= bytes, "{flows} flows took {size} bytes of {bytes}");
        }
        assert!(taken > 0, "10 MB are enough for {flows}");
    }
}
