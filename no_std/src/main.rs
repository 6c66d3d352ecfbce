//! A program with the crate, without `std`: it has an allocator in static memory and a panic
//! handler, and runs on bare metal or as the `main` of a C program, which exits with 0 on success.
#![no_std]
#![no_main]

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use flowtable::eviction::{ByClass, PassiveGc};
use flowtable::flow_cache::{Config, Packet};
use flowtable::hash::source_index::SourceIndex;
use flowtable::key::bits::Headed;
use flowtable::sockets::{Local, Reuse, SocketTable};
use flowtable::trie::unicache::Unicache;
use flowtable::{
    DefaultHashBuilder, EphemeralStore, FiveTuple, FlowCache, FlowKey, LcTrieMap, Prefix,
    RouteTable, SourceHashCache, Timestamp, TrashMap, write_to,
};
use talc::locking::AssumeUnlockable;
use talc::{ClaimOnOom, ErrOnOom, Span, Talc, Talck};

/// Enough for `work`, and small enough for a microcontroller.
const HEAP_BYTES: usize = 256 << 10;

static mut MEMORY: [u8; HEAP_BYTES] = [0; HEAP_BYTES];

const SPAN: Span = Span::from_base_size((&raw mut MEMORY).cast(), HEAP_BYTES);

// SAFETY: the heap is the only user of its memory, and the program has one thread.
#[global_allocator]
static HEAP: Talck<AssumeUnlockable, ClaimOnOom> =
    Talc::new(unsafe { ClaimOnOom::new(SPAN) }).lock();

/// Returns the bytes of the heap that have ever been allocated.
fn heap_bytes() -> u64 {
    HEAP.lock().get_counters().total_allocated_bytes
}

/// Returns a heap in a buffer, for one thread.
///
/// # Safety
///
/// The buffer outlives the heap and has no other user.
unsafe fn heap_in(buffer: *mut [u8]) -> Talck<AssumeUnlockable, ErrOnOom> {
    let mut heap = Talc::new(ErrOnOom);
    let span = Span::from_base_size(buffer.cast(), buffer.len());
    // SAFETY: the caller upholds the same contract. A heap without memory refuses all requests.
    _ = unsafe { heap.claim(span) };
    heap.lock()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Fills a map whose memory is a buffer until the buffer is full. Returns the number of wrong
/// results.
fn lost_in_area(hasher: DefaultHashBuilder) -> usize {
    let mut memory = [0_u8; 4 << 10];
    // SAFETY: the memory is a local variable that is declared before the heap.
    let area = unsafe { heap_in(&raw mut memory) };
    let mut flows = TrashMap::with_hasher_in(hasher, &area);
    let full = (0..).find(|&flow| flows.try_insert(flow, u32::from(flow)).is_err());
    let full: u16 = full.unwrap_or(0);
    flows.retain(|flow, _| flow % 2 == 0);
    let mut found = [None; 3];
    flows.get_batch(&[1, 2, 98], write_to(&mut found));
    let left = usize::from(full.div_ceil(2));
    let is_right = full > 99 && found == [None, Some(&2), Some(&98)];
    let lost = flows.len().abs_diff(left) + usize::from(!is_right);
    drop(flows);
    lost + area.lock().get_counters().allocated_bytes
}

/// Fills a route table whose memory is a buffer until the buffer is full. Returns the number of
/// wrong results.
fn wrong_routes_in_area() -> usize {
    let mut memory = [0_u8; 16 << 10];
    // SAFETY: the memory is a local variable that is declared before the heap.
    let area = unsafe { heap_in(&raw mut memory) };
    let mut routes = RouteTable::<u32, u32, _>::new_in(&area);
    let prefix = |net: u32| Prefix::new(net << 8, 24).unwrap_or(Prefix::host(net));
    let full = (0_u32..).find(|&net| routes.try_insert(prefix(net), net).is_err());
    let full = full.unwrap_or(0);
    (0..full).step_by(2).for_each(|net| _ = routes.remove(&prefix(net)));
    let via = |net: u32| routes.lookup(&(net << 8 | 1)).map(|(_, via)| *via);
    let wrong = (0..full).filter(|&net| via(net) != Some(net).filter(|net| net % 2 == 1)).count();
    let left = routes.len().abs_diff(full as usize / 2);
    drop(routes);
    usize::from(full < 100) + wrong + left + area.lock().get_counters().allocated_bytes
}

/// Fills a flow cache whose memory is a buffer, and lets all flows end. Returns the number of wrong
/// results.
fn wrong_flows_in_area(hasher: DefaultHashBuilder) -> usize {
    const FLOWS: u16 = 100;
    let mut memory = [0_u8; 32 << 10];
    // SAFETY: the memory is a local variable that is declared before the heap.
    let area = unsafe { heap_in(&raw mut memory) };
    let Ok(config) = Config::new(usize::from(FLOWS)) else { return 1 };
    let policy = ByClass::new_in(&area);
    let mut flows =
        FlowCache::<u64, u16, _, _, _>::with_policy_and_hasher_in(config, policy, hasher, &area);
    let mut new = 0;
    for packet in 0..2 * FLOWS {
        let seen = flows.observe(&u64::from(packet % FLOWS), Packet::UDP, Timestamp::ZERO);
        new += usize::from(seen.is_ok_and(|seen| seen.fresh));
    }
    let wrong = new.abs_diff(FLOWS.into()) + flows.len().abs_diff(FLOWS.into());
    let mut ended = 0;
    while !flows.advance(Timestamp::from_secs(100_000), 10, |_| ended += 1).is_done {}
    let left = flows.len() + usize::from(FLOWS).abs_diff(ended);
    drop(flows);
    wrong + left + area.lock().get_counters().allocated_bytes
}

/// Returns the number of wrong results.
fn work() -> usize {
    let mut ports: LcTrieMap<u16, u32> = (1..=1000).map(|port| (port, u32::from(port))).collect();
    ports.retain(|port, _| port % 2 == 0);

    let hasher = DefaultHashBuilder::with_seed(ports.len() as u64);
    let mut cache = Unicache::new(PassiveGc::new(100, 10).unwrap_or(PassiveGc::NEVER));
    let mut evicted = 0;
    for (&port, &time) in &ports {
        let key = Headed::new(port, &hasher);
        cache.insert(key, time, |_, time| Some(*time), |_, _| evicted += 1);
    }
    let used = heap_bytes();
    let lost = lost_in_area(hasher.clone()) + wrong_routes_in_area() + wrong_flows_in_area(hasher);
    // Structures in an area need no heap.
    let lost = lost + usize::from(heap_bytes() > used);

    let mut routes = RouteTable::<u32, u32>::new();
    for len in 0..=32 {
        routes.extend(Prefix::new(0x0A01_0203, len).map(|prefix| (prefix, len)));
    }
    routes.retain(|_, len| *len % 2 == 0);
    let longest = routes.lookup(&0x0A01_0202).map(|(_, &len)| len);
    let lost = lost + usize::from(longest != Some(30)) + routes.len().abs_diff(17);

    let mut sockets = SocketTable::with_hasher(100, DefaultHashBuilder::with_seed(1));
    let [here, there] = [1, 2].map(|host| Ipv4Addr::new(10, 0, 0, host));
    let at = |address, port| SocketAddr::new(IpAddr::V4(address), port);
    let bound = sockets.bind(Local::new(at(here, 80), 6), Reuse::No, 0).is_ok();
    let connect = |port| sockets.connect(at(here, 80), at(there, port), 6, port).is_ok();
    let connected = (1..=50).map(connect).filter(|&is| is).count();
    let found = |&port: &u16| {
        let packet = FiveTuple { src: there, dst: here, sport: port, dport: 80, protocol: 6 };
        sockets.lookup(&FlowKey::from(packet)).map(|found| *found.socket) == Some(port % 51)
    };
    let lost = lost + usize::from(!bound) + connected.abs_diff(50);
    let lost = lost + (1..=51).filter(found).count().abs_diff(51);

    let mut memory = [0_u8; 8 << 10];
    // SAFETY: the memory is a local variable that is declared before the heap.
    let area = unsafe { heap_in(&raw mut memory) };
    let mut paths = SourceHashCache::<u16, u16, 2, _>::new_in(64, &area).ok();
    let index = |path: u16| SourceIndex::new(path.into());
    for path in 0..10 {
        _ = paths.as_mut().map(|paths| paths.insert(index(path), path, path + 1));
    }
    let found = |path: &u16| paths.as_ref()?.peek(index(*path), path).copied();
    let lost = lost + (0..10).filter(|path| found(path) == Some(path + 1)).count().abs_diff(10);

    let seed = DefaultHashBuilder::with_seed(1);
    let lifetime = Duration::from_secs(10);
    let mut seen = EphemeralStore::with_parts_in(64, lifetime, seed, &area).ok();
    let mut is_new = |tag: u64, second| {
        let mut is_new = false;
        let now = Timestamp::from_secs(second);
        seen.as_mut()?.get_or_insert_with(&tag, now, || is_new = true).ok()?;
        Some(is_new)
    };
    let seen = [is_new(1, 0), is_new(1, 9), is_new(1, 10)];
    let lost = lost + usize::from(seen != [Some(true), Some(false), Some(true)]);

    let missing = (2..=1000).step_by(2).filter(|port| ports.get(port).is_none()).count();
    lost + missing + 500_usize.abs_diff(cache.len() + evicted)
}

/// The entry point on bare metal.
#[cfg(target_os = "none")]
// SAFETY: no other symbol of the program has the name, and nothing calls it with arguments.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    core::hint::black_box(work());
    loop {
        core::hint::spin_loop();
    }
}

/// The entry point of a C program.
#[cfg(not(target_os = "none"))]
// SAFETY: no other symbol of the program has the name; C allows a `main` without parameters.
#[unsafe(no_mangle)]
extern "C" fn main() -> core::ffi::c_int {
    core::ffi::c_int::from(work() != 0)
}

/// The personality function that `alloc`, which is compiled for unwinding, refers to.
#[cfg(not(target_os = "none"))]
// SAFETY: no other symbol of the program has the name; with `panic = "abort"` nothing calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
