//! The documented properties of `EphemeralStore`, one per test.

use core::time::Duration;

use flowtable::ephemeral::{Full, StoreError};
use flowtable::probes::Probes;
use flowtable::{DefaultHashBuilder, EphemeralStore, Timestamp};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::hashers::Weak;

const LIFETIME: Duration = Duration::from_secs(10);

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn store<T, V>(capacity: usize, lifetime: Duration) -> EphemeralStore<T, V> {
    EphemeralStore::new(capacity, lifetime).expect("there is memory")
}

/// AddressSanitizer keeps a map of the bytes of a type: gigabytes for a type larger than memory.
#[test]
#[cfg(not(sanitizer = "address"))]
fn impossible_parameters_are_errors() {
    let error = |capacity, lifetime| EphemeralStore::<u64, u64>::new(capacity, lifetime).err();
    assert_eq!(error(0, LIFETIME), Some(StoreError::NoCapacity));
    assert_eq!(error(1, Duration::ZERO), Some(StoreError::NoLifetime));
    assert_eq!(error(usize::MAX, LIFETIME), Some(StoreError::TooLarge));
    assert_eq!(error(usize::MAX / 2, LIFETIME), Some(StoreError::TooLarge));
    type Huge = EphemeralStore<u64, [u64; 1 << 40]>;
    assert_eq!(Huge::new(1 << 24, LIFETIME).err(), Some(StoreError::TooLarge));
    assert_eq!(Huge::new(1, LIFETIME).err(), Some(StoreError::NoMemory));
}

#[test]
fn the_capacity_is_the_next_power_of_two() {
    let capacities = [(1, 1), (2, 2), (3, 4), (1000, 1024)];
    for (requested, capacity) in capacities {
        let mut store: EphemeralStore = store(requested, LIFETIME);
        assert_eq!(store.capacity(), capacity);
        let created = (0..).take_while(|&tag| store.find_or_create(tag, at(0), || 0).is_ok());
        assert_eq!(created.count(), capacity);
    }
}

#[test]
fn an_entry_of_the_paper_has_24_bytes() {
    // And two slots of five bytes in the index: a tag, and a number.
    let store: EphemeralStore = store(1 << 10, LIFETIME);
    assert_eq!(store.allocation_size(), (24 + 2 * 5) << 10);
}

/// The lifetime observed by `find`, to the nanosecond, for several lengths and times of creation.
#[test]
fn bindings_live_for_the_lifetime_and_never_longer() {
    const EXACT: u64 = (1 << 30) - 1;
    let lifetimes = [1, 2, 999, EXACT, 1 << 30, 1 << 31, 10_000_000_007, 1 << 45, u64::MAX / 3];
    for lifetime in lifetimes {
        for start in [0, 1, 4_294_967_295, 4_294_967_296, 1_700_000_000_123_456_789] {
            let mut store: EphemeralStore = store(4, Duration::from_nanos(lifetime));
            let binding = store.find_or_create(1, at(start), || 1).unwrap().binding;
            // Exact up to 30 bits of nanoseconds.
            let grain = if lifetime <= EXACT { 0 } else { lifetime >> 28 };
            let last = start + lifetime - 1 - grain;
            assert_eq!(store.find(&1, at(last)), Some(binding), "{lifetime} from {start}");
            assert_eq!(store.read(binding, at(last)), Some(&1));
            let end = start + lifetime;
            for expired in [end, end + 1, end + lifetime, end + (1 << 32), u64::MAX] {
                assert_eq!(store.find(&1, at(expired)), None, "{lifetime} from {start}");
                assert_eq!(store.read(binding, at(expired)), None);
            }
            // With an earlier timestamp the binding is alive again: nothing was created or cleaned.
            assert_eq!(store.find(&1, at(start)), Some(binding));
        }
    }
}

#[test]
fn no_access_extends_the_lifetime() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let seconds = Timestamp::from_secs;
    let binding = store.find_or_create(1, seconds(0), || 0).unwrap().binding;
    for second in 1..10 {
        assert!(!store.find_or_create(1, seconds(second), || 0).unwrap().is_new);
        assert_eq!(store.write(binding, seconds(second), second), Ok(second - 1));
        *store.get_mut(&1, seconds(second)).unwrap() = second;
    }
    assert_eq!(store.get(&1, seconds(10)), None);
    let second = store.find_or_create(1, seconds(10), || 0).unwrap();
    assert!(second.is_new && second.binding != binding);
}

/// The 32-bit timestamps of entries wrap around several times; expired bindings stay expired.
#[test]
fn expired_bindings_stay_expired_when_timestamps_wrap_around() {
    let mut store: EphemeralStore = store(2000, Duration::from_nanos(u64::from(u32::MAX)));
    (0..1000).for_each(|tag| _ = store.find_or_create(tag, at(tag), || tag));
    // Three quarters of a lifetime pass between creations, so few expired entries are reclaimed
    // while timestamps wrap around.
    for round in 1..60_u64 {
        let now = at(round * (3 << 30));
        let tag = 1_000_000 + round;
        assert!(store.find_or_create(tag, now, || tag).unwrap().is_new);
        store.validate().unwrap();
        let old = (0..1000).filter(|tag| store.find(tag, now).is_some()).count();
        let expected = if round == 1 { (1000, 1001) } else { (0, 2) };
        assert_eq!((old, store.live(now)), expected, "round {round}");
    }
    assert!(store.len() > 800);
}

#[test]
fn a_full_store_creates_nothing_until_the_oldest_expires() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let seconds = Timestamp::from_secs;
    (0..4).for_each(|tag| _ = store.find_or_create(tag, seconds(tag), || tag).unwrap());
    let make = || unreachable!("the store is full");
    assert_eq!(store.find_or_create(4, seconds(9), make), Err(Full { refused: 4 }));
    assert!(!store.find_or_create(0, seconds(9), || 0).unwrap().is_new);
    assert!(store.find_or_create(4, seconds(10), || 4).unwrap().is_new);
    assert_eq!(store.find_or_create(5, seconds(10), || 5), Err(Full { refused: 5 }));
    assert_eq!((store.len(), store.live(seconds(10)), store.live(seconds(11))), (4, 4, 3));
}

/// At a steady rate of creation a store of sufficient capacity is never full and holds at most two
/// expired entries.
#[test]
fn reclaiming_keeps_up_with_creation() {
    const RATE: u64 = 128;
    let mut store: EphemeralStore = store(RATE as usize, Duration::from_nanos(RATE));
    for now in 0..20 * RATE {
        assert!(store.find_or_create(now, at(now), || now).unwrap().is_new);
        assert!(store.len() - store.live(at(now)) <= 2);
    }
    // After many expire at the same time, each creation reclaims two.
    let later = at(30 * RATE);
    for created in 1..=RATE as usize / 2 {
        _ = store.find_or_create(u64::MAX - created as u64, later, || 0).unwrap();
        assert_eq!(store.len(), RATE as usize - created);
    }
    assert_eq!(store.len(), store.live(later));
}

#[test]
fn a_sweep_is_due_once_in_a_tenth_of_a_lifetime() {
    let mut store: EphemeralStore = store(100, Duration::from_nanos(100));
    (0..50).for_each(|tag| _ = store.find_or_create(tag, at(0), || tag));
    assert_eq!(store.sweep(at(95)), 0);
    // It is not due before 105.
    assert_eq!([100, 104, 105, 200].map(|now| store.sweep(at(now))), [0, 0, 50, 0]);
}

#[test]
fn an_earlier_timestamp_counts_as_that_of_the_last_creation() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    _ = store.find_or_create(1, Timestamp::from_secs(100), || 1).unwrap();
    _ = store.find_or_create(2, Timestamp::from_secs(50), || 2).unwrap();
    store.validate().unwrap();
    let late = at(110_000_000_000 - 100);
    assert_eq!((store.get(&1, late), store.get(&2, late)), (Some(&1), Some(&2)));
    assert_eq!(store.live(Timestamp::from_secs(110)), 0);
}

#[test]
fn one_wrong_time_does_not_fill_the_store() {
    // Fifty tags an hour for a day, after a packet with a time of the year 2106.
    let mut store: EphemeralStore = store(100, LIFETIME);
    let year_2106 = Timestamp::from_secs(4_294_967_295);
    _ = store.find_or_create(999_999, year_2106, || 0).unwrap();
    let hours = (0..24).map(|hour| Timestamp::from_secs(1_700_000_000 + 3600 * hour));
    let created = hours.enumerate().flat_map(|(hour, now)| (0..50).map(move |n| (hour, n, now)));
    for (hour, number, now) in created {
        let tag = (50 * hour + number) as u64;
        assert!(store.find_or_create(tag, now, || 0).unwrap().is_new, "{tag}");
        store.validate().unwrap();
    }
    // One early time has no effect.
    let now = Timestamp::from_secs(1_700_000_000 + 3600 * 23);
    _ = store.find_or_create(1_000_000, Timestamp::from_secs(5), || 0).unwrap();
    assert_eq!(store.live(now), 51);
    assert_eq!(store.live(now + LIFETIME), 0);
}

#[test]
fn a_clock_that_is_set_back_is_followed() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let hour = Timestamp::from_secs(3600);
    (0..4).for_each(|tag| _ = store.find_or_create(tag, hour, || 0).unwrap());
    // By an hour, without a call: the second attempt tells, and bindings live on as long.
    assert!(store.find_or_create(9, at(0), || 0).is_err());
    assert!(store.find_or_create(9, at(1), || 0).is_err());
    assert_eq!((store.live(at(0)), store.live(at(1) + LIFETIME)), (4, 0));
    assert!(store.find_or_create(9, at(1) + LIFETIME, || 0).unwrap().is_new);
    // By less than a lifetime, with a call.
    let now = at(1) + LIFETIME;
    store.set_clock(at(1));
    let before = Timestamp::from_secs(9);
    assert_eq!((store.get(&9, before), store.live(now)), (Some(&0), 0));
}

#[test]
fn a_cleared_store_accepts_earlier_timestamps() {
    let mut store: EphemeralStore = store(2, LIFETIME);
    for late in [Timestamp::from_secs(1_000_000), Timestamp::MAX] {
        _ = store.find_or_create(1, late, || 1).unwrap();
        _ = store.sweep(late);
        store.clear();
        assert!(store.find_or_create(2, Timestamp::ZERO, || 2).unwrap().is_new);
        assert_eq!(store.get(&2, Timestamp::from_secs(10)), None);
        assert_eq!(store.sweep(Timestamp::from_secs(10)), 1);
    }
}

#[test]
fn expired_entries_are_not_examined() {
    let hasher = Weak::ALL[0];
    let mut store: EphemeralStore<u32, u32, _> =
        EphemeralStore::with_parts(64, LIFETIME, hasher).unwrap();
    (0..64).for_each(|tag| _ = store.find_or_create(tag, at(0), || tag).unwrap());
    let mut probes = Probes::default();
    assert_eq!(store.find_observed(&100, Timestamp::from_secs(10), &mut probes), None);
    // The newest entry of the chain has expired, so all have.
    assert!(probes.entries <= 1, "{probes:?}");
    _ = store.find_or_create(100, Timestamp::from_secs(10), || 0).unwrap();
    let mut probes = Probes::default();
    assert_eq!(store.find_observed(&200, Timestamp::from_secs(10), &mut probes), None);
    assert!(probes.entries <= 1, "{probes:?}");
}

/// The documented cost of absent tags in a store that has been full for several lifetimes: an entry
/// is examined by three lookups in a hundred.
#[test]
fn lookups_of_absent_tags_examine_few_entries() {
    const CAPACITY: u64 = 1 << 14;
    let store = full_for_several_lifetimes();
    let mut probes = Probes::default();
    for absent in 1 << 40..(1 << 40) + 100_000 {
        assert_eq!(store.find_observed(&absent, at(6 * CAPACITY - 1), &mut probes), None);
    }
    let examined = f64::from(probes.entries) / 100_000.0;
    assert!((0.03..0.04).contains(&examined), "{examined}");
}

/// The documented cost of present tags in a full store.
#[test]
fn most_lookups_of_present_tags_examine_one_entry() {
    let store = full_for_several_lifetimes();
    let mut probes = Probes::default();
    for tag in 5 * CAPACITY..6 * CAPACITY {
        assert!(store.find_observed(&tag, at(6 * CAPACITY - 1), &mut probes).is_some());
    }
    let examined = f64::from(probes.entries) / CAPACITY as f64;
    assert!((1.01..1.03).contains(&examined), "{examined}");
}

const CAPACITY: u64 = 1 << 14;

fn full_for_several_lifetimes() -> EphemeralStore {
    let (hasher, lifetime) = (DefaultHashBuilder::with_seed(1), Duration::from_nanos(CAPACITY));
    let mut store = EphemeralStore::with_parts(CAPACITY as usize, lifetime, hasher).unwrap();
    for tag in 0..6 * CAPACITY {
        assert!(store.find_or_create(tag, at(tag), || 0).unwrap().is_new);
    }
    assert_eq!(store.live(at(6 * CAPACITY - 1)), CAPACITY as usize);
    store
}

#[test]
fn a_batch_has_the_effect_of_single_operations() {
    let now = Timestamp::ZERO;
    let mut store: EphemeralStore = store(100, LIFETIME);
    let tags: Vec<u64> = (0..150).map(|number| number % 120).collect();
    let mut full = 0;
    store.get_or_insert_batch(
        &tags,
        now,
        |number| number as u64,
        |number, value| match value {
            Ok(value) => assert_eq!(*value, tags[number]),
            Err(Full { .. }) => full += 1,
        },
    );
    assert_eq!((full, store.live(now)), (0, 120));
    let mut found = vec![None; 150];
    store.get_batch(&tags, now, &mut found);
    assert!(found.into_iter().eq(tags.iter().map(Some)));
    // As many as there are free entries, and no more.
    let more: Vec<u64> = (200..300).collect();
    store.get_or_insert_batch(&more, now, |_| 0, |_, value| full += usize::from(value.is_err()));
    assert_eq!((full, store.live(now)), (92, 128));
}

#[test]
#[should_panic(expected = "the slice of results is shorter")]
fn a_batch_needs_a_result_for_each_tag() {
    store::<u64, u64>(1, LIFETIME).get_batch(&[1, 2], Timestamp::ZERO, &mut [None]);
}

/// Handshakes that complete give their places back: a store for a thousand serves any number of
/// them, fifty at a time, beside a flood that fills what remains.
#[test]
fn removed_bindings_give_their_places_back() {
    const LIFETIME: u64 = 16_000;
    let mut store: EphemeralStore = store(1000, Duration::from_nanos(LIFETIME));
    let capacity = store.capacity() as u64;
    let mut refused = 0;
    for now in 0..20 * LIFETIME {
        _ = store.find_or_create(now, at(now), || now).unwrap();
        if now >= 50 {
            assert_eq!(store.remove(&(now - 50), at(now)), Some(now - 50));
        }
        // SYNs without an answer, to three quarters of the capacity.
        if now % (LIFETIME * 4 / 3 / capacity) == 0 {
            let is_refused = store.find_or_create(1 << 40 | now, at(now), || 0).is_err();
            refused += u64::from(is_refused);
        }
        assert!(store.len() <= capacity as usize);
    }
    store.validate().unwrap();
    assert_eq!(refused, 0);
}

#[test]
fn a_binding_of_one_tick_gives_its_place_back_in_the_next() {
    let mut store: EphemeralStore = store(4, Duration::from_nanos(160));
    for now in 0..1000 {
        for tag in 0..4 {
            let bound = store.find_or_create(tag, at(now), || tag);
            assert!(bound.is_ok_and(|bound| bound.is_new), "{tag} at {now}");
        }
        assert!((0..4).all(|tag| store.remove(&tag, at(now)) == Some(tag)) && store.is_empty());
        // In the same tick, it would have the handle of the removed one.
        assert_eq!(store.find_or_create(4, at(now), || 4), Err(Full { refused: 4 }));
        store.validate().unwrap();
    }
}

/// Of many short handshakes, some begin and end within one tick of a coarse clock.
#[test]
fn handshakes_within_a_tick_do_not_use_up_the_places() {
    const TICK: u64 = 100;
    let mut store: EphemeralStore = store(500, Duration::from_nanos(160_000));
    for count in 0..100_000 {
        let (now, completed) = (count / TICK * TICK, count.checked_sub(20 + count % 7));
        assert!(store.find_or_create(count, at(now), || count).is_ok(), "{count}");
        completed.into_iter().for_each(|tag| _ = store.remove(&tag, at(now)));
        if count % TICK == 0 {
            store.retain(at(now), |tag, _| tag + 20 > count);
            store.validate().unwrap();
        }
    }
}

#[test]
fn bindings_under_other_hashes_are_retained() {
    let mut store: EphemeralStore = store(64, Duration::from_nanos(1600));
    for now in 0..1000_u64 {
        // Few chains, and others than those of the hasher.
        _ = store.find_or_create_hashed(now % 3, now, at(now), || now);
        if now % 7 == 0 {
            store.retain(at(now), |tag, _| tag % 2 == 0);
            let found = |tag: &u64| store.get_hashed(tag % 3, tag, at(now)) == Some(tag);
            assert!(store.iter(at(now)).all(|(tag, _)| found(tag)));
            store.retain_hashed(at(now), |tag| tag % 3, |tag, _| tag % 2 == 0);
            assert!(store.iter(at(now)).all(|(tag, _)| tag % 2 == 0));
        }
    }
}

/// Bindings that took the places of removed ones live for one lifetime, neither more nor less, and
/// those around them do not live longer.
#[test]
fn an_extraction_that_is_dropped_leaves_what_it_has_not_visited() {
    let mut store = store::<u64, u64>(64, Duration::from_nanos(1000));
    for tag in 0..40 {
        store.find_or_create_hashed(tag % 3, tag, at(tag), || 2 * tag).unwrap();
    }
    let now = at(100);
    let is_even = |tag: &u64, _: &mut u64| tag % 2 == 0;
    let first = store.extract_if_hashed(now, |tag| tag % 3, is_even).take(5);
    assert!(first.eq([0, 2, 4, 6, 8].map(|tag| (tag, 2 * tag))));
    assert_eq!(store.live(now), 35);
    // Those that are not found under their hash stay.
    assert_eq!(store.extract_if_hashed(now, |_| 0, |tag, _| tag % 3 == 1).next(), None);
    // Live ones only: the first ten of the rest have expired then.
    let rest = store.extract_if_hashed(at(1020), |tag| tag % 3, is_even);
    assert!(rest.map(|(tag, _)| tag).eq((22..40).step_by(2)));
    assert!(store.iter(at(1020)).map(|(tag, _)| *tag).eq((21..40).step_by(2)));
}

#[test]
fn bindings_in_places_of_others_live_for_the_lifetime() {
    let mut store: EphemeralStore = store(64, Duration::from_nanos(160));
    let first = store.find_or_create(0, at(0), || 0).unwrap().binding;
    (1..64).for_each(|tag| _ = store.find_or_create(tag, at(tag / 16), || tag).unwrap());
    assert!(store.find_or_create(64, at(9), || 64).is_err());
    assert_eq!(store.remove(&0, at(9)), Some(0));
    let bound = store.find_or_create(64, at(9), || 64).unwrap();
    assert!(bound.is_new && bound.binding != first);
    assert_eq!((store.read(first, at(9)), store.read(bound.binding, at(9))), (None, Some(&64)));
    assert_eq!((store.live(at(159)), store.live(at(160)), store.live(at(163))), (64, 49, 1));
    assert_eq!((store.get(&64, at(168)), store.get(&64, at(169))), (Some(&64), None));
    // The others wait for it.
    assert_eq!((store.clean(at(168), 100), store.len()), (0, 64));
    assert!(store.find_or_create(65, at(168), || 65).is_err());
    assert!(store.find_or_create(65, at(169), || 65).unwrap().is_new);
    assert_eq!((store.clean(at(169), 100), store.len()), (62, 1));
}

/// A place that is old is not given back before the lifetime ends.
#[test]
fn old_places_wait_for_their_expiry() {
    let mut store: EphemeralStore = store(4, Duration::from_nanos(160));
    (0..4).for_each(|tag| _ = store.find_or_create(tag, at(0), || tag).unwrap());
    assert_eq!(store.remove(&2, at(100)), Some(2));
    assert_eq!(store.find_or_create(4, at(100), || 4), Err(Full { refused: 4 }));
    // At the front it is free.
    assert_eq!(store.remove(&0, at(100)), Some(0));
    assert!(store.find_or_create(4, at(100), || 4).unwrap().is_new);
    assert_eq!(store.find_or_create(5, at(159), || 5), Err(Full { refused: 5 }));
    assert!(store.find_or_create(5, at(160), || 5).unwrap().is_new);
    store.validate().unwrap();
    assert_eq!((store.live(at(160)), store.live(at(260))), (2, 1));
}

#[test]
fn values_are_dropped_when_their_entries_are_reclaimed() {
    let mut store: EphemeralStore<Counted, Counted> = store(8, Duration::from_nanos(10));
    for tag in 0..8 {
        let value = || Counted::new(tag);
        assert!(store.find_or_create(Counted::new(tag), at(tag), value).unwrap().is_new);
    }
    // The tag is found: the argument is dropped, and nothing else.
    assert!(!store.find_or_create(Counted::new(3), at(9), || Counted::new(3)).unwrap().is_new);
    assert_eq!(alive(), 16);
    drop(store.remove(&Counted::new(7), at(9)).expect("it is live"));
    assert_eq!(alive(), 14);
    assert_eq!((store.clean(at(13), 3), alive()), (3, 8));
    // One expired entry is not reclaimed, and is not cloned.
    let clone = store.clone();
    assert_eq!(alive(), 14);
    store.clear();
    assert_eq!((store.len(), alive()), (0, 6));
    drop(clone);
    assert_eq!(alive(), 0);
}

#[test]
fn a_panic_of_a_callback_leaves_a_valid_store() {
    for callback in [Callback::Drop, Callback::Eq, Callback::Hash, Callback::Clone] {
        for good in 0.. {
            let mut store: EphemeralStore<Counted, Counted, DefaultHashBuilder> =
                store(6, Duration::from_nanos(10));
            let work = || {
                for now in 0..30 {
                    let tag = Counted::new(now / 2);
                    _ = store.find_or_create(tag, at(now), || Counted::new(now / 2));
                    if now % 5 == 0 {
                        store.remove(&Counted::new(now / 2), at(now));
                    }
                }
                store.clean(at(35), 2);
                drop(store.clone());
                store.clear();
            };
            let is_done = with_panic(callback, good, work).is_some();
            store.validate().unwrap();
            assert!(
                store.iter(at(0)).all(|(tag, value)| tag.is_alive() && tag.number == value.number)
            );
            drop(store);
            alive();
            forget_leaked();
            if is_done {
                assert!(good > 0, "{callback:?} is never called");
                break;
            }
        }
    }
}

#[test]
fn a_store_is_send_and_sync() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<EphemeralStore>();
}
