//! `DuplicateFilter` against lists in the order of use with the same rule, written by hand.
//!
//! ```text
//!     accept        the next call of a known sender, in a random order
//!     duplicate     a call again
//!     new sender    a call of an unknown sender, for which the oldest one has expired
//! ```
//!
//! Half of the capacity is used. The filter has the hash of the sender, or the index that its
//! packets carry; the lists have foldhash.

use std::hash::BuildHasher;
use std::hint::black_box;
use std::time::{Duration, Instant};

use flowtable::cache::{CallVerdict, DuplicateFilter};
use flowtable::{Prehashed, Timestamp};
use hashbrown::DefaultHashBuilder as Foldhash;

use super::packets::{Name, Packet, Packets};
use super::{Access, FITS_L2, KEY, NonZeroUsize};
use crate::results::{Column, Results};
use crate::subject::{Agreement, Subject, Timed, ours, peer, rotation};

/// Expired senders that each call removes at most, as in `DuplicateFilter`.
const EXPIRED_PER_CALL: usize = 2;

const BENCHES: [&str; 3] = ["accept", "duplicate", "new sender"];

#[derive(Clone, Copy)]
struct Call {
    packet: Packet,
    sequence: u64,
    at: Timestamp,
}

/// The sequence number of a sender's last call, and its time.
type Last = (u64, Timestamp);

/// The benchmark of a filter.
trait Filter {
    fn run(&mut self, calls: &[Call]) -> Timed;
}

/// Counts the calls that are accepted.
#[inline(never)]
fn timed(calls: &[Call], mut accepts: impl FnMut(&Call) -> bool) -> Timed {
    let start = Instant::now();
    let sum = black_box(calls.iter().filter(|call| accepts(call)).count());
    Timed::new(start.elapsed(), calls.len(), sum as u64)
}

/// By the hash of the sender.
struct Hashed(DuplicateFilter<Name>);

impl Filter for Hashed {
    fn run(&mut self, calls: &[Call]) -> Timed {
        timed(calls, |Call { packet, sequence, at }| {
            self.0.accept(&packet.name, *sequence, *at) == CallVerdict::Accept
        })
    }
}

/// By the index of the packet.
struct Indexed(DuplicateFilter<Name>);

impl Filter for Indexed {
    fn run(&mut self, calls: &[Call]) -> Timed {
        timed(calls, |Call { packet, sequence, at }| {
            let sender = Prehashed { hash: packet.index.get().into(), key: &packet.name };
            self.0.accept(sender, *sequence, *at) == CallVerdict::Accept
        })
    }
}

struct Linked<S> {
    senders: hashlink::LruCache<Name, Last, S>,
    lifetime: Duration,
}

impl<S: BuildHasher> Filter for Linked<S> {
    fn run(&mut self, calls: &[Call]) -> Timed {
        let Self { senders, lifetime } = self;
        timed(calls, |Call { packet, sequence, at }| {
            for _ in 0..EXPIRED_PER_CALL {
                let oldest = senders.iter().next();
                if oldest.is_none_or(|(_, (_, accepted))| at.since(*accepted) < *lifetime) {
                    break;
                }
                senders.remove_lru();
            }
            // A duplicate does not prolong the life of its sender.
            match senders.peek(&packet.name) {
                Some((last, accepted)) if sequence <= last && at.since(*accepted) < *lifetime => {
                    return false;
                }
                None if senders.len() >= senders.capacity() => return false,
                _ => {}
            }
            senders.insert(packet.name, (*sequence, *at));
            true
        })
    }
}

struct Lru<S> {
    senders: lru::LruCache<Name, Last, S>,
    lifetime: Duration,
}

impl<S: BuildHasher> Filter for Lru<S> {
    fn run(&mut self, calls: &[Call]) -> Timed {
        let Self { senders, lifetime } = self;
        timed(calls, |Call { packet, sequence, at }| {
            for _ in 0..EXPIRED_PER_CALL {
                let oldest = senders.peek_lru();
                if oldest.is_none_or(|(_, (_, accepted))| at.since(*accepted) < *lifetime) {
                    break;
                }
                senders.pop_lru();
            }
            match senders.peek(&packet.name) {
                Some((last, accepted)) if sequence <= last && at.since(*accepted) < *lifetime => {
                    return false;
                }
                None if senders.len() >= senders.cap().get() => return false,
                _ => {}
            }
            senders.put(packet.name, (*sequence, *at));
            true
        })
    }
}

/// Filters for twice as many senders as live at a time, ours first.
fn filters(n: usize, lifetime: Duration) -> Vec<Subject<dyn Filter>> {
    let ours_of = || DuplicateFilter::new(2 * n, lifetime).expect("memory for the filter");
    let foldhash = Foldhash::default();
    let bound = NonZeroUsize::new(2 * n).expect("there are senders");
    let linked = hashlink::LruCache::with_hasher(2 * n, foldhash.clone());
    let lru = lru::LruCache::with_hasher(bound, foldhash);
    vec![
        ours("duplicate_filter", "DuplicateFilter", Box::new(Hashed(ours_of()))),
        ours("duplicate_filter/index", "with the index", Box::new(Indexed(ours_of()))),
        peer("hashlink LruCache", Box::new(Linked { senders: linked, lifetime })),
        peer("lru LruCache", Box::new(Lru { senders: lru, lifetime })),
    ]
}

/// The calls of a bench, of senders in the order of `packets`. Time and sequence numbers pass.
struct Clock {
    sequence: u64,
    micros: u64,
}

impl Clock {
    fn calls(&mut self, packets: &[Packet], interval: u64) -> Vec<Call> {
        let mut call = |packet: &Packet| {
            self.sequence += 1;
            self.micros += interval;
            let at = Timestamp::from_nanos(1000 * self.micros);
            Call { packet: *packet, sequence: self.sequence, at }
        };
        packets.iter().map(&mut call).collect()
    }
}

pub(super) fn measured(n: usize, quick: bool) -> Results {
    let (rounds, count) = match (quick, n <= FITS_L2) {
        (true, _) => (5, 1 << 16),
        (false, true) => (25, n.clamp(1 << 16, 1 << 18)),
        (false, false) => (11, 1 << 19),
    };
    let title =
        format!("{n} senders with names of 12 bytes: ns for a call; medians of {rounds} rounds");
    let columns = BENCHES.map(|bench| Column { bench, unit: "ns", n });
    let mut results = Results::new(title, KEY, columns.to_vec());
    // A new sender each microsecond replaces all of them in a lifetime.
    let mut filters = filters(n, Duration::from_micros(n as u64));
    results.add_rows(&filters);
    let (mut packets, mut clock) = (Packets::new(n), Clock { sequence: 0, micros: 0 });
    let first = clock.calls(&packets.flows, 0);
    for filter in &mut filters {
        filter.benchmark.run(&first);
    }
    for (column, bench) in BENCHES.into_iter().enumerate() {
        for round in 0..rounds {
            let mut calls = match bench {
                "new sender" => clock.calls(&packets.draw(Access::Miss, count), 1),
                _ => clock.calls(&packets.draw(Access::Hit, count), 0),
            };
            if bench == "duplicate" {
                // The first call of each sender, again.
                calls.iter_mut().for_each(|call| call.sequence = 0);
            }
            let mut agreement = Agreement::default();
            for at in rotation(round, filters.len()) {
                let filter = &mut filters[at];
                let timed = filter.benchmark.run(&calls);
                results.record(at, column, timed.ns);
                agreement.check(timed.sum, filter.name);
            }
        }
    }
    results
}
