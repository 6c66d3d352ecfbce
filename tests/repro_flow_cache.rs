//! Minimal reproducers; drop into tests/ (or run: cargo test --test repro_flow_cache).
use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use flowtable::*;

fn s(secs: u64) -> Timestamp { Timestamp::from_secs(secs) }

/// 1. A fresh cache has version 0, restored flows get it, and the filter is `version > since` (0).
#[test]
fn restored_flows_are_seen_by_a_walk() {
    let mut a: FlowCache<u64, ()> = FlowCache::new(Config::new(10).unwrap());
    a.observe(&7, Packet::UDP, s(0)).unwrap();
    let image: Image<u64, ()> = a.page(&mut Cursor::new(), 99).collect();
    let mut b: FlowCache<u64, ()> = FlowCache::new(Config::new(10).unwrap());
    assert_eq!(b.restore(image, s(0)), Ok(1));
    assert_eq!(b.page(&mut Cursor::new(), 99).count(), 1);
}

/// 2a. `restore` goes beyond max_bytes: the estimate knows no chunks of 1024.
#[test]
fn restore_keeps_to_max_bytes() {
    let mut a: FlowCache<u64, ()> = FlowCache::new(Config::new(10).unwrap());
    a.observe(&7, Packet::UDP, s(0)).unwrap();
    let image: Image<u64, ()> = a.page(&mut Cursor::new(), 99).collect();
    let mut b: FlowCache<u64, ()> = FlowCache::new(Config::new(10).unwrap().with_max_bytes(20_000).unwrap());
    _ = b.restore(image, s(0));
    assert!(b.allocation_size() <= 20_000, "{}", b.allocation_size());
}

/// 2b. Accounts of tenants are allocated (doubling, and 32 bytes of list heads each) and not foreseen.
#[test]
fn many_tenants_keep_to_max_bytes() {
    let bytes = 3000 << 10;
    let mut a: FlowCache<u64, [u64; 5]> = FlowCache::new(Config::new(20_000).unwrap().with_max_bytes(bytes).unwrap());
    for id in 0..200_000_u64 {
        _ = a.observe(&id, Packet::UDP.from_tenant(Tenant((id % 20_000) as u16)), s(0));
        assert!(a.allocation_size() <= bytes, "{} with {}", a.allocation_size(), a.len());
    }
}

fn crowded() -> FlowCache<u64, ()> {
    let emergency = Emergency::new(8, 4, Duration::from_secs(2)).unwrap();
    let config = Config::new(10).unwrap().with_timeouts(Timeouts::OFF).with_emergency(emergency).unwrap();
    let mut a: FlowCache<u64, ()> = FlowCache::new(config);
    for id in 0..7 {
        a.observe(&id, Packet::tcp(TcpFlags::SYN), s(0)).unwrap();
    }
    a
}

/// 3. One closing flow that is not silent is the policy's victim, and stops all relief. (There is always
///    one: each connection closes. Who sends RSTs keeps the emergency from ending anything.)
#[test]
fn a_fresh_closing_flow_does_not_stop_the_emergency() {
    let mut a = crowded();
    a.observe(&99, Packet::tcp(TcpFlags::RST), s(100)).unwrap();
    assert!(a.metrics().emergency);
    let progress = a.advance(s(100), 1000, |_| ());
    assert_eq!((progress.ended, a.len()), (5, 3));
}

/// 4a. is_done although the budget ended the relief, not the lack of work.
#[test]
fn is_done_when_the_emergency_is_dealt_with() {
    let mut a = crowded();
    a.observe(&99, Packet::tcp(TcpFlags::SYN), s(0)).unwrap();
    while !a.advance(s(100), 2, |_| ()).is_done {}
    assert!(!a.metrics().emergency, "{} flows", a.len());
}

/// 4b. Fewer than `leave` by removal: it is still an emergency, until some advance.
#[test]
fn an_emergency_ends_with_removals() {
    let mut a = crowded();
    let handle = a.observe(&99, Packet::tcp(TcpFlags::SYN), s(0)).unwrap().handle;
    a.remove(handle);
    (0..5).for_each(|id| { let handle = a.find(&id).unwrap().handle; a.remove(handle); });
    assert!(a.len() < 4 && !a.metrics().emergency);
}

thread_local! { static FUSE: Cell<i32> = const { Cell::new(-1) }; }

#[derive(Clone, Debug)]
struct Key(u64);
impl PartialEq for Key { fn eq(&self, other: &Self) -> bool { burn(); self.0 == other.0 } }
impl Eq for Key {}
impl Hash for Key { fn hash<H: Hasher>(&self, state: &mut H) { self.0.hash(state); } }
impl FlowName for Key {
    fn normalized(&self) -> (Self, Direction) { burn(); (self.clone(), Direction::Forward) }
}
fn burn() {
    if FUSE.get() == 0 { FUSE.set(-1); panic!("asked for") }
    FUSE.set(FUSE.get().max(0) - 1);
}

/// 5. advance pops a slot, the key panics in `depart`: the flow is armed nowhere, and never ends.
#[test]
fn a_panic_in_advance_makes_no_flow_immortal() {
    let mut a: FlowCache<Key, ()> = FlowCache::new(Config::new(10).unwrap().with_timeouts(Timeouts::METER));
    a.observe(&Key(7), Packet::UDP, s(0)).unwrap();
    FUSE.set(0);
    assert!(catch_unwind(AssertUnwindSafe(|| a.advance(s(100), 10, |_| ()))).is_err());
    FUSE.set(-1);
    assert!(a.advance(s(100_000), 10, |_| ()).is_done);
    assert_eq!(a.len(), 0, "{:?}", a.validate());
}
