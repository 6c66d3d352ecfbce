//! Caches of several workers: the same records, whatever their number, with translated names.

use std::collections::BTreeMap;
use std::num::NonZero;

use flowtable::flow_cache::{Config, EndReason, Event, Packet, Steering};
use flowtable::hash::source_index::Toeplitz;
use flowtable::{Direction, FlowCache, FourTuple, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type Key = FourTuple<u32>;

/// Packets and bytes of both directions, and the port outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Counts {
    packets: [u32; 2],
    port: u16,
}

/// A record of a flow: key, counts, times.
type Record = (Key, Counts, Timestamp, Timestamp);

const NAT: u32 = 80;

/// An address translation on several workers. Ports are assigned in order of first packets, so that
/// they do not depend on the number of workers.
struct Nat<F> {
    steering: Steering<Key, F>,
    caches: Vec<FlowCache<Key, Counts>>,
    next_port: u16,
    records: Vec<Record>,
}

fn nat(workers: usize) -> Nat<impl Fn(&Key) -> u32> {
    let workers = NonZero::new(workers).expect("some");
    let steering = Steering::new(workers, |key: &Key| Toeplitz::SYMMETRIC.hash(key));
    let cache = || FlowCache::new(Config::new(1000).expect("some"));
    let caches = (0..workers.get()).map(|_| cache()).collect();
    Nat { steering, caches, next_port: 1024, records: vec![] }
}

fn outside(inside: Key, port: u16) -> Key {
    FourTuple { src: NAT, sport: port, ..inside }
}

impl<F: Fn(&Key) -> u32> Nat<F> {
    fn packet(&mut self, key: Key, now: Timestamp) {
        self.advance(now);
        let worker = self.steering.worker(&key);
        let cache = &mut self.caches[worker];
        let is_inside = key.dst != NAT;
        let port = self.next_port;
        let new = || is_inside.then_some(Counts { port, ..Counts::default() }).ok_or(());
        let Ok(mut seen) = cache.try_observe_with(&key, Packet::UDP, now, new) else { return };
        seen.flow.packets[seen.direction as usize] += 1;
        // The packet may be the first one after the timeout, before the next tick.
        if let Some(flow) = seen.take_removed() {
            assert_eq!(flow.reason, EndReason::Idle);
            self.steering.remove_redirect(&outside(flow.key, flow.value.port));
            self.records.push((flow.key, flow.value, flow.first_seen, flow.last_seen));
        }
        if seen.fresh {
            self.next_port += 1;
            let (handle, direction) = (seen.handle(), seen.direction);
            let alias = outside(key, port);
            cache.add_alias(handle, direction, &alias).expect("the port is free");
            self.steering.redirect(&alias, worker);
        }
    }

    fn advance(&mut self, now: Timestamp) {
        let Self { steering, caches, records, .. } = self;
        for cache in caches {
            cache.advance(now, usize::MAX, |event| match event {
                Event::Ended(flow) => {
                    steering.remove_redirect(&outside(flow.key, flow.value.port));
                    records.push((flow.key, flow.value, flow.first_seen, flow.last_seen));
                }
                Event::Active(_) => unreachable!("there is no active timeout"),
            });
        }
    }
}

/// Runs connections from inside, whose answers come to the ports outside.
fn run(workers: usize) -> (Vec<Record>, usize) {
    let mut rng = StdRng::seed_from_u64(7);
    let mut nat = nat(workers);
    let mut ports: BTreeMap<Key, u16> = BTreeMap::new();
    let mut redirected = 0;
    for step in 0..20_000_u64 {
        let now = Timestamp::from_millis(step * 100);
        let number = rng.random_range(0..400);
        let key = FourTuple { src: number, dst: 1000 + number % 7, sport: 40_000, dport: 443 };
        let port = nat.next_port;
        match (rng.random_range(0..10), ports.get(&key)) {
            (0..4, Some(port)) => {
                nat.packet(outside(key, *port).reversed(), now);
            }
            _ => nat.packet(key, now),
        }
        if nat.next_port > port {
            ports.insert(key, port);
        }
        redirected = redirected.max(nat.steering.len());
        if step % 1000 == 0 {
            nat.caches.iter().for_each(|cache| assert_eq!(cache.validate(), Ok(())));
        }
    }
    nat.advance(Timestamp::from_secs(10_000_000));
    assert!(nat.steering.is_empty(), "all names are removed");
    nat.records.sort();
    (nat.records, redirected)
}

#[test]
fn the_records_are_the_same_whatever_the_number_of_workers() {
    let (one, redirected) = run(1);
    assert_eq!(redirected, 0);
    assert!(one.len() > 500 && one.iter().all(|record| record.1.packets[0] > 0));
    assert!(one.iter().filter(|record| record.1.packets[1] > 0).count() > 300);
    for workers in [2, 3, 8] {
        let (records, redirected) = run(workers);
        assert_eq!(records, one, "{workers} workers");
        assert!(redirected > 20, "{redirected} names of {workers} workers");
    }
}

#[test]
fn both_directions_have_one_worker_and_all_workers_have_flows() {
    let workers = NonZero::new(5).expect("some");
    let mut steering = Steering::new(workers, |key: &Key| Toeplitz::SYMMETRIC.hash(key));
    let mut flows = [0; 5];
    for number in 0..1000_u32 {
        let src = number.wrapping_mul(0x9e37_79b9);
        let key = FourTuple { src, dst: !number, sport: number as u16, dport: 443 };
        let worker = steering.worker(&key);
        assert_eq!(steering.worker(&key.reversed()), worker);
        flows[worker] += 1;
        // A name may move on, and come back home.
        for other in [(worker + 1) % 5, (worker + 2) % 5, worker] {
            steering.redirect(&key.reversed(), other);
            assert_eq!((steering.worker(&key), steering.queue(&key)), (other, worker));
        }
        assert!(steering.is_empty());
    }
    assert!(flows.iter().all(|flows| *flows > 100), "{flows:?}");
    // Directions in a hash that is not symmetric count as one.
    let steering = Steering::new(workers, |key: &Key| key.src);
    let key = FourTuple { src: 3, dst: 4, sport: 1, dport: 2 };
    assert_eq!(steering.worker(&key), steering.worker(&key.reversed()));
    let direction = key.normalized().1;
    assert_eq!(direction, Direction::Forward);
}
