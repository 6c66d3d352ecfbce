//! The documented properties of `EphemeralStore`, one per test.

use core::hash::BuildHasher;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flowtable::ephemeral::{Full, StoreError};
use flowtable::probes::Probes;
use flowtable::{DefaultHashBuilder, EphemeralStore, Timestamp, write_to};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};

const LIFETIME: Duration = Duration::from_secs(10);

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn store<T, V>(capacity: usize, lifetime: Duration) -> EphemeralStore<T, V> {
    EphemeralStore::new(capacity, lifetime).expect("there is memory")
}

/// Finds or creates a binding of a tag to itself. Returns whether it is new.
fn create<S: BuildHasher>(
    store: &mut EphemeralStore<u64, u64, S>,
    tag: u64,
    now: Timestamp,
) -> Result<bool, Full> {
    let mut is_new = false;
    let value = || {
        is_new = true;
        tag
    };
    assert_eq!(*store.get_or_insert_with(&tag, now, value)?, tag);
    Ok(is_new)
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
fn the_capacity_is_exact() {
    for capacity in [1, 2, 3, 1000] {
        let mut store = store(capacity, LIFETIME);
        assert_eq!(store.capacity(), capacity);
        let created = (0..).take_while(|&tag| create(&mut store, tag, at(0)).is_ok());
        assert_eq!(created.count(), capacity);
    }
}

#[test]
fn a_binding_takes_50_bytes() {
    // A sixth of a line of them in the index, and a few for entries that it has no slot for.
    let store: EphemeralStore = store(6 << 10, LIFETIME);
    assert_eq!(store.allocation_size(), ((6 * 40 + 64) << 10) + 4 * 8);
}

/// The lifetime observed by `get`, to the nanosecond, for several lengths and times of creation.
#[test]
fn bindings_live_for_the_lifetime_and_never_longer() {
    let lifetimes = [1, 2, 999, 1 << 30, 1 << 31, 10_000_000_007, 1 << 45, u64::MAX / 4];
    for lifetime in lifetimes {
        for start in [0, 1, 4_294_967_295, 4_294_967_296, 1_700_000_000_123_456_789] {
            let mut store = store(4, Duration::from_nanos(lifetime));
            assert_eq!(create(&mut store, 1, at(start)), Ok(true));
            let last = start + lifetime - 1;
            assert_eq!(store.get(&1, at(last)), Some(&1), "{lifetime} from {start}");
            let end = start + lifetime;
            for expired in [end, end + 1, end + lifetime, end + (1 << 32)] {
                assert_eq!(store.get(&1, at(expired)), None, "{lifetime} from {start}");
            }
            // With an earlier timestamp the binding is alive again: nothing was created or cleaned.
            assert_eq!(store.get(&1, at(start)), Some(&1));
        }
    }
}

#[test]
fn no_access_extends_the_lifetime() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let seconds = Timestamp::from_secs;
    for second in 0..10 {
        let value = store.get_or_insert_with(&1, seconds(second), || 0).unwrap();
        assert_eq!(*value, second);
        *store.get_mut(&1, seconds(second)).unwrap() += 1;
    }
    assert_eq!(store.get(&1, seconds(10)), None);
    assert_eq!(store.get_or_insert_with(&1, seconds(10), || 0), Ok(&mut 0));
}

#[test]
fn expired_bindings_stay_expired() {
    let mut store = store(2000, Duration::from_nanos(u64::from(u32::MAX)));
    (0..1000).for_each(|tag| assert_eq!(create(&mut store, tag, at(tag)), Ok(true)));
    // Three quarters of a lifetime pass between creations, so few expired ones are reclaimed.
    for round in 1..60_u64 {
        let now = at(round * (3 << 30));
        assert_eq!(create(&mut store, 1_000_000 + round, now), Ok(true));
        store.validate().unwrap();
        let old = (0..1000).filter(|tag| store.get(tag, now).is_some()).count();
        let expected = if round == 1 { (1000, 1001) } else { (0, 2) };
        assert_eq!((old, store.live(now)), expected, "round {round}");
    }
    assert!(store.len() > 800);
}

#[test]
fn expired_bindings_are_not_found_at_any_later_time() {
    let mut store: EphemeralStore = store(10, LIFETIME);
    assert_eq!(create(&mut store, 7, at(0)), Ok(true));
    let expiry = LIFETIME.as_nanos() as u64;
    let later = (0..64).map(|log| at(expiry.saturating_add(1 << log)));
    for now in later.chain([at(expiry), at((1 << 63) + expiry), Timestamp::MAX]) {
        assert_eq!(store.get(&7, now), None, "{now:?}");
        assert_eq!(store.get_mut(&7, now), None, "{now:?}");
        store.get_batch(&[7], now, |_, value| assert_eq!(value, None, "{now:?}"));
        assert_eq!((store.live(now), store.iter(now).next()), (0, None), "{now:?}");
    }
    assert_eq!(store.get(&7, at(expiry - 1)), Some(&7));
}

/// The clock of a store is 64 bits wide, and does not wrap around.
#[test]
fn expired_bindings_stay_expired_however_often_the_clock_is_wrong() {
    for lifetime in [Duration::MAX, Duration::from_nanos(1 << 58)] {
        let mut store: EphemeralStore = store(10, lifetime);
        assert_eq!(create(&mut store, 7, at(0)), Ok(true));
        for round in 0..100 {
            assert_eq!(store.clean(Timestamp::MAX, 0), 0);
            store.set_clock(at(0));
            store.validate().unwrap();
            let found = (store.len(), store.get(&7, at(0)), store.live(at(0)));
            assert_eq!(found, (1, None, 0), "round {round}");
        }
    }
}

#[test]
fn bindings_live_for_the_lifetime_when_the_clock_restarts() {
    let lifetime = 7 << 55;
    let mut store: EphemeralStore = store(10, Duration::from_nanos(lifetime));
    // The clock of the caller restarts each time, and that of the store once.
    for round in 0..400_u64 {
        store.set_clock(at(0));
        assert_eq!(create(&mut store, round, at(0)), Ok(true));
        store.validate().unwrap();
        for age in 0..7.min(round + 1) {
            let (tag, left) = (round - age, lifetime - (age << 55));
            let found = (store.get(&tag, at(left - 1)), store.get(&tag, at(left)));
            assert_eq!(found, (Some(&tag), None), "round {round}");
        }
        assert_eq!(store.live(at(0)) as u64, 7.min(round + 1), "round {round}");
        assert_eq!(store.clean(at(1 << 55), 0), 0);
    }
}

#[test]
fn a_full_store_creates_nothing_until_the_oldest_expires() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let seconds = Timestamp::from_secs;
    (0..4).for_each(|tag| assert_eq!(create(&mut store, tag, seconds(tag)), Ok(true)));
    let make = || unreachable!("the store is full");
    assert_eq!(store.get_or_insert_with(&4, seconds(9), make), Err(Full));
    assert_eq!(create(&mut store, 0, seconds(9)), Ok(false));
    assert_eq!(create(&mut store, 4, seconds(10)), Ok(true));
    assert_eq!(create(&mut store, 5, seconds(10)), Err(Full));
    assert_eq!((store.len(), store.live(seconds(10)), store.live(seconds(11))), (4, 4, 3));
}

/// At a steady rate of creation a store of sufficient capacity is never full and holds at most two
/// expired entries.
#[test]
fn reclaiming_keeps_up_with_creation() {
    const RATE: u64 = 128;
    let mut store: EphemeralStore = store(RATE as usize, Duration::from_nanos(RATE));
    for now in 0..20 * RATE {
        assert_eq!(create(&mut store, now, at(now)), Ok(true));
        assert!(store.len() - store.live(at(now)) <= 2);
    }
    // After many expire at the same time, each creation reclaims two.
    let later = at(30 * RATE);
    for created in 1..=RATE as usize / 2 {
        assert_eq!(create(&mut store, u64::MAX - created as u64, later), Ok(true));
        assert_eq!(store.len(), RATE as usize - created);
    }
    assert_eq!(store.len(), store.live(later));
}

#[test]
fn an_earlier_timestamp_counts_as_that_of_the_last_creation() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    assert_eq!(create(&mut store, 1, Timestamp::from_secs(100)), Ok(true));
    assert_eq!(create(&mut store, 2, Timestamp::from_secs(50)), Ok(true));
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
    assert_eq!(create(&mut store, 999_999, year_2106), Ok(true));
    let hours = (0..24).map(|hour| Timestamp::from_secs(1_700_000_000 + 3600 * hour));
    let created = hours.enumerate().flat_map(|(hour, now)| (0..50).map(move |n| (hour, n, now)));
    for (hour, number, now) in created {
        let tag = (50 * hour + number) as u64;
        assert_eq!(create(&mut store, tag, now), Ok(true), "{tag}");
        store.validate().unwrap();
    }
    // One early time has no effect.
    let now = Timestamp::from_secs(1_700_000_000 + 3600 * 23);
    assert_eq!(create(&mut store, 1_000_000, Timestamp::from_secs(5)), Ok(true));
    assert_eq!(store.live(now), 51);
    assert_eq!(store.live(now + LIFETIME), 0);
}

/// The times of a day are too far apart to be near each other by the store's lifetime.
#[test]
fn one_wrong_time_does_not_fill_a_store_that_is_rarely_used() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    assert_eq!(create(&mut store, 999_999, Timestamp::from_secs(4_294_967_295)), Ok(true));
    for tag in 0..1200 {
        let now = Timestamp::from_secs(1_700_000_000 + 72 * tag);
        assert_eq!(create(&mut store, tag, now), Ok(true), "{tag}");
        store.validate().unwrap();
    }
    assert_eq!(store.live(Timestamp::from_secs(1_700_000_000 + 72 * 1199)), 1);
}

/// A packet with an early time, for which the store is called twice.
#[test]
fn two_calls_with_one_wrong_time_do_not_set_the_clock_back() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let [right, wrong] = [1_700_000_000, 5].map(Timestamp::from_secs);
    assert_eq!(create(&mut store, 1, right), Ok(true));
    store.clean(wrong, 2);
    assert_eq!(create(&mut store, 2, wrong), Ok(true));
    assert_eq!(create(&mut store, 3, right + LIFETIME / 2), Ok(true));
    assert_eq!(store.live(right + LIFETIME / 2), 3);
}

/// Captures of two hosts whose clocks differ by an hour: each second, packets of one and the other.
#[test]
fn two_clocks_in_turns_are_followed() {
    let mut store: EphemeralStore = store(64, LIFETIME);
    let mut tag = 0;
    for second in 0..50 {
        for clock in [1_700_003_600, 1_700_000_000] {
            let now = Timestamp::from_secs(clock + second);
            for now in [now, now + Duration::from_nanos(1)] {
                assert_eq!(create(&mut store, tag, now), Ok(true), "{tag}");
                tag += 1;
            }
            store.validate().unwrap();
            // The tags of the last ten seconds.
            let live = store.live(now + Duration::from_nanos(1));
            assert!(second < 10 || (38..=42).contains(&live), "{live} after {second} s");
        }
    }
}

#[test]
fn a_clock_that_is_set_back_is_followed() {
    let mut store: EphemeralStore = store(4, LIFETIME);
    let hour = Timestamp::from_secs(3600);
    (0..4).for_each(|tag| assert_eq!(create(&mut store, tag, hour), Ok(true)));
    // By an hour, without a call: the second attempt tells, and bindings live on as long.
    assert_eq!([0, 1].map(|now| create(&mut store, 9, at(now))), [Err(Full); 2]);
    assert_eq!((store.live(at(0)), store.live(at(1) + LIFETIME)), (4, 0));
    assert_eq!(create(&mut store, 9, at(1) + LIFETIME), Ok(true));
    // By less than a lifetime, with a call.
    let now = at(1) + LIFETIME;
    store.set_clock(at(1));
    let before = Timestamp::from_secs(9);
    assert_eq!((store.get(&9, before), store.live(now)), (Some(&9), 0));
}

#[test]
fn a_cleared_store_accepts_earlier_timestamps() {
    let mut store: EphemeralStore = store(2, LIFETIME);
    for late in [Timestamp::from_secs(1_000_000), Timestamp::MAX] {
        assert_eq!(create(&mut store, 1, late), Ok(true));
        store.clear();
        assert_eq!(create(&mut store, 2, Timestamp::ZERO), Ok(true));
        assert_eq!(store.get(&2, Timestamp::from_secs(10)), None);
        assert_eq!(store.clean(Timestamp::from_secs(10), 9), 1);
    }
}

/// The documented cost of absent tags in a store that has been full for several lifetimes: an entry
/// is examined by two or three lookups in a hundred.
#[test]
fn lookups_of_absent_tags_examine_few_entries() {
    const CAPACITY: u64 = 1 << 14;
    let store = full_for_several_lifetimes();
    let mut probes = Probes::default();
    for absent in 1 << 40..(1 << 40) + 100_000 {
        assert_eq!(store.get_observed(&absent, at(6 * CAPACITY - 1), &mut probes), None);
    }
    let examined = f64::from(probes.entries) / 100_000.0;
    assert!((0.02..0.03).contains(&examined), "{examined}");
}

/// The documented cost of present tags in a full store.
#[test]
fn most_lookups_of_present_tags_examine_one_entry() {
    let store = full_for_several_lifetimes();
    let mut probes = Probes::default();
    for tag in 5 * CAPACITY..6 * CAPACITY {
        assert!(store.get_observed(&tag, at(6 * CAPACITY - 1), &mut probes).is_some());
    }
    let examined = f64::from(probes.entries) / CAPACITY as f64;
    assert!((1.01..1.03).contains(&examined), "{examined}");
}

const CAPACITY: u64 = 1 << 14;

fn full_for_several_lifetimes() -> EphemeralStore {
    let (hasher, lifetime) = (DefaultHashBuilder::with_seed(1), Duration::from_nanos(CAPACITY));
    let store = EphemeralStore::with_parts(CAPACITY as usize, lifetime, hasher);
    let mut store: EphemeralStore = store.unwrap();
    for tag in 0..6 * CAPACITY {
        assert_eq!(create(&mut store, tag, at(tag)), Ok(true));
    }
    assert_eq!(store.live(at(6 * CAPACITY - 1)), CAPACITY as usize);
    store
}

/// With values that have this number of bytes more.
fn check_batches<const PADDING: usize>() {
    let now = Timestamp::ZERO;
    let mut store: EphemeralStore<u64, (u64, [u8; PADDING])> = store(128, LIFETIME);
    let tags: Vec<u64> = (0..150).map(|number| number % 120).collect();
    let mut full = 0;
    store.get_or_insert_batch(
        &tags,
        now,
        |number| (number as u64, [0; PADDING]),
        |number, value| match value {
            Ok((value, _)) => assert_eq!(*value, tags[number]),
            Err(Full) => full += 1,
        },
    );
    assert_eq!((full, store.live(now)), (0, 120));
    let mut found = vec![None; 150];
    store.get_batch(&tags, now, write_to(&mut found));
    assert!(found.into_iter().flatten().map(|(value, _)| value).eq(&tags));
    // As many as there are free entries, and no more.
    let more: Vec<u64> = (200..300).collect();
    let (new, mut refused) = (|_| (0, [0; PADDING]), vec![]);
    store.get_or_insert_batch(&more, now, new, |at, value| {
        refused.extend(value.is_err().then_some(at));
    });
    assert!(refused.into_iter().eq(8..100) && store.live(now) == 128);
    assert_eq!(store.validate(), Ok(()));
    // Whole bursts, and none.
    for count in [64, 0] {
        let mut live = 0;
        store.get_batch(&tags[..count], now, |_, value| live += usize::from(value.is_some()));
        assert_eq!(live, count);
    }
}

#[test]
fn a_batch_has_the_effect_of_single_operations() {
    check_batches::<0>();
    // More than two MiB, where a batch is looked up in bursts.
    check_batches::<20_000>();
}

/// A removed binding gives its place back at once, whatever its age: a store for fifty handshakes
/// serves any number of them, fifty at a time.
#[test]
fn removed_bindings_give_their_places_back() {
    let mut store = store(50, Duration::from_nanos(16_000));
    for now in 0..10_000 {
        assert_eq!(create(&mut store, now, at(now / 7)), Ok(true));
        if now >= 49 {
            // The oldest one, or the newest one.
            let tag = if now % 3 > 0 { now } else { *store.iter(at(now / 7)).next().unwrap().0 };
            assert_eq!(store.remove(&tag, at(now / 7)), Some(tag));
            assert_eq!(store.len(), 49);
        }
    }
    store.validate().unwrap();
}

#[test]
fn an_extraction_that_is_dropped_leaves_what_it_has_not_visited() {
    let mut store = store(64, Duration::from_nanos(1000));
    (0..40).for_each(|tag| assert_eq!(create(&mut store, tag, at(tag)), Ok(true)));
    let is_even = |tag: &u64, _: &mut u64| tag % 2 == 0;
    let first = store.extract_if(at(100), is_even).take(5);
    assert!(first.eq([0, 2, 4, 6, 8].map(|tag| (tag, tag))));
    assert_eq!(store.live(at(100)), 35);
    // Live ones only: those until 20 have expired then.
    let rest = store.extract_if(at(1020), is_even);
    assert!(rest.map(|(tag, _)| tag).eq((22..40).step_by(2)));
    assert!(store.iter(at(1020)).map(|(tag, _)| *tag).eq((21..40).step_by(2)));
}

/// Bindings in the places of removed ones live for one lifetime, neither more nor less.
#[test]
fn bindings_in_places_of_others_live_for_the_lifetime() {
    let mut store = store(64, Duration::from_nanos(160));
    (0..64).for_each(|tag| assert_eq!(create(&mut store, tag, at(tag / 16)), Ok(true)));
    assert_eq!(create(&mut store, 64, at(9)), Err(Full));
    assert_eq!(store.remove(&0, at(9)), Some(0));
    assert_eq!(create(&mut store, 64, at(9)), Ok(true));
    assert_eq!((store.live(at(159)), store.live(at(160)), store.live(at(163))), (64, 49, 1));
    assert_eq!((store.get(&64, at(168)), store.get(&64, at(169))), (Some(&64), None));
    assert_eq!((store.clean(at(168), 100), store.len()), (63, 1));
}

#[test]
fn values_are_dropped_when_their_entries_are_reclaimed() {
    let mut store: EphemeralStore<Counted, Counted> = store(8, Duration::from_nanos(10));
    for tag in 0..8 {
        let value = || Counted::new(tag);
        assert!(store.get_or_insert_with(&Counted::new(tag), at(tag), value).is_ok());
    }
    let found = store.get_or_insert_with(&Counted::new(3), at(9), || unreachable!("it exists"));
    assert_eq!(found.unwrap().number, 3);
    assert_eq!(alive(), 16);
    drop(store.remove(&Counted::new(7), at(9)).expect("it is live"));
    assert_eq!(alive(), 14);
    assert_eq!((store.clean(at(13), 3), alive()), (3, 8));
    let clone = store.clone();
    assert_eq!(alive(), 16);
    store.clear();
    assert_eq!((store.len(), alive()), (0, 8));
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
                    _ = store.get_or_insert_with(&tag, at(now), || Counted::new(now / 2));
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

/// The binding that it would have replaced has expired, and is not found by either tag.
#[test]
fn a_creation_whose_value_panics_creates_nothing() {
    let mut store = store(2, LIFETIME);
    assert_eq!([1, 2].map(|tag| create(&mut store, tag, at(0))), [Ok(true); 2]);
    let now = Timestamp::from_secs(10);
    let creation = || store.get_or_insert_with(&3, now, || panic!("there is no value")).is_ok();
    assert!(catch_unwind(AssertUnwindSafe(creation)).is_err());
    store.validate().unwrap();
    assert_eq!((store.live(now), [1, 2, 3].map(|tag| store.get(&tag, now))), (0, [None; 3]));
    assert_eq!([3, 1, 2].map(|tag| create(&mut store, tag, now)), [Ok(true), Ok(true), Err(Full)]);
    store.validate().unwrap();
}

#[test]
fn a_store_is_send_and_sync() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<EphemeralStore>();
}
