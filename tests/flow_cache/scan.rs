//! Scans of a cache during changes, and restart images.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use flowtable::eviction::Lru;
use flowtable::flow_cache::{
    Class, Config, Cursor, EndReason, Event, Handle, Image, ImageError, Packet, Resident, Tenant,
    Timeouts, Version,
};
use flowtable::{Direction, FlowCache, FlowKey, Timestamp};
use model::flow_cache::keys::{ACK, FIN_ACK, RST, SYN, SYN_ACK, key};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type Cache = FlowCache<FlowKey, u64>;

fn cache(flows: usize, timeouts: Timeouts) -> Cache {
    FlowCache::new(Config::new(flows).expect("there is room for one").with_timeouts(timeouts))
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn add(cache: &mut Cache, number: u32) -> Handle {
    let observed =
        cache.observe(&key(number), Packet::tcp(ACK), cache.now()).expect("there is room");
    *observed.flow = number.into();
    observed.handle()
}

/// All flows of a scan, in pages of this size.
fn scan(cache: &Cache, mut cursor: Cursor, budget: usize) -> Vec<Handle> {
    let mut visited = vec![];
    for _ in 0..1_000_000 {
        if cursor.is_done() {
            return visited;
        }
        visited.extend(cache.page(&mut cursor, budget).map(|flow| flow.handle()));
    }
    panic!("the scan does not end");
}

#[test]
fn each_flow_is_visited_once_with_every_page_size() {
    for flows in [0, 1, 2, 100, 3000] {
        let mut cache = cache(5000, Timeouts::OFF);
        let mut handles: Vec<Handle> = (0..flows).map(|number| add(&mut cache, number)).collect();
        for gone in (0..flows as usize / 3).rev() {
            cache.remove(handles.swap_remove(3 * gone)).expect("it is there");
        }
        handles.sort();
        for budget in [1, 2, 7, 1024, usize::MAX] {
            let mut visited = scan(&cache, Cursor::new(), budget);
            visited.sort();
            assert_eq!(visited, handles, "{budget} of {flows}");
        }
    }
}

#[test]
fn a_page_is_bounded_and_may_be_dropped_early() {
    let mut cache = cache(1000, Timeouts::OFF);
    let handles: Vec<Handle> = (0..500).map(|number| add(&mut cache, number)).collect();
    handles[..450].iter().for_each(|handle| _ = cache.remove(*handle));
    let (mut cursor, mut visited, mut pages) = (Cursor::new(), vec![], 0);
    while !cursor.is_done() {
        assert!(cache.page(&mut cursor, 0).next().is_none());
        let page: Vec<Handle> = cache.page(&mut cursor, 10).map(|flow| flow.handle()).collect();
        assert!(page.len() <= 10);
        visited.extend(page);
        pages += 1;
    }
    assert_eq!((visited, pages), (handles[450..].to_vec(), 50));
    // Flows of a page count as visited, even if the iterator is dropped before.
    let (mut cursor, mut visited) = (Cursor::new(), vec![]);
    while !cursor.is_done() {
        visited.extend(cache.page(&mut cursor, 20).take(1).map(|flow| flow.handle()));
    }
    assert_eq!(visited, [450, 460, 480].map(|at| handles[at]));
}

#[test]
fn each_present_flow_is_visited_once_during_insertions_and_removals() {
    for round in 0..20 {
        let mut rng = StdRng::seed_from_u64(round);
        let mut cache = cache(20_000, Timeouts::OFF);
        let first = rng.random_range(1..2000);
        let mut stay: BTreeSet<Handle> = (0..first).map(|number| add(&mut cache, number)).collect();
        let (mut cursor, mut visited, mut next) = (Cursor::new(), BTreeSet::new(), first);
        while !cursor.is_done() {
            let budget = rng.random_range(0..50);
            for flow in cache.page(&mut cursor, budget) {
                assert!(visited.insert(flow.handle()), "{:?} was visited before", flow.handle());
            }
            // The cache grows faster than the scan, up to a limit.
            for _ in 0..rng.random_range(0..60) {
                if next < 15_000 {
                    add(&mut cache, next);
                    next += 1;
                }
                let gone = cache.find(&key(rng.random_range(0..next)));
                if let Some(gone) = gone.filter(|_| rng.random_range(0..3) == 0) {
                    stay.remove(&gone.handle);
                    cache.remove(gone.handle).expect("it is there");
                }
            }
        }
        assert!(stay.is_subset(&visited), "round {round}: {} flows were skipped", stay.len());
    }
}

#[test]
fn a_scan_of_changes_visits_changed_flows_only() {
    let mut cache = cache(100, Timeouts::OFF);
    let handles: Vec<Handle> = (0..20).map(|number| add(&mut cache, number)).collect();
    assert_eq!(scan(&cache, Cursor::changed_since(Version::default()), 3).len(), 20);
    type Change = dyn Fn(&mut Cache, Handle);
    let changes: [&Change; 7] = [
        &|cache, _| _ = cache.observe(&key(7), Packet::tcp(ACK), seconds(0)),
        &|cache, handle| *cache.get_mut(handle).expect("it is there") += 1,
        &|cache, handle| _ = cache.add_alias(handle, Direction::Forward, &key(77)),
        &|cache, handle| _ = cache.remove_key(handle, &key(77)),
        &|cache, handle| _ = cache.set_pinned(handle, true),
        &|cache, handle| _ = cache.set_class(handle, Class::Established),
        &|cache, _| _ = cache.observe(&key(7).reversed(), Packet::tcp(RST), seconds(0)),
    ];
    for (number, change) in changes.iter().enumerate() {
        let before = cache.version();
        assert!(scan(&cache, Cursor::changed_since(before), 3).is_empty(), "nothing has changed");
        change(&mut cache, handles[7]);
        assert!(cache.version() > before);
        assert_eq!(scan(&cache, Cursor::changed_since(before), 3), [handles[7]], "change {number}");
        let flow = cache.resident(handles[7]).expect("it is there");
        assert!(flow.version() > before && flow.version() <= cache.version());
    }
    let before = cache.version();
    // Lookups change nothing.
    assert!(cache.find(&key(3)).is_some() && cache.get(handles[3]).is_some());
    cache.advance(seconds(5), 10, |event| panic!("{event:?}"));
    assert!(cache.add_alias(handles[3], Direction::Forward, &key(4)).is_err());
    assert!(scan(&cache, Cursor::changed_since(before), 3).is_empty());
    let new = add(&mut cache, 50);
    cache.remove(handles[0]).expect("it is there");
    assert_eq!(
        scan(&cache, Cursor::changed_since(before), 3),
        [new],
        "removed flows are not visited"
    );
}

/// The fields of a flow that a copy has.
type Copied = (u64, Class, bool, Vec<FlowKey>, Timestamp);

fn copied(flow: &Resident<'_, FlowKey, u64>) -> (Handle, Copied) {
    let names = flow.keys().collect();
    let copied = (*flow.value(), flow.class(), flow.is_pinned(), names, flow.last_seen());
    (flow.handle(), copied)
}

/// Copies of all flows that a cursor visits, also of those that have expired.
fn copies(cache: &Cache, mut cursor: Cursor) -> Vec<(Handle, Copied)> {
    cache.page(&mut cursor, usize::MAX).map(|flow| copied(&flow)).collect()
}

/// A copy that is updated by scans of changes and by departures.
#[test]
fn a_copy_follows_the_changes() {
    let mut rng = StdRng::seed_from_u64(8);
    let mut cache = cache(300, Timeouts::METER);
    let (mut copy, mut since, mut version) = (BTreeMap::new(), Version::default(), cache.version());
    let mut cursor = Cursor::changed_since(since);
    for step in 0..40_000 {
        change(&mut rng, &mut cache, &mut copy, step);
        copy.extend(cache.page(&mut cursor, 5).map(|flow| copied(&flow)));
        if cursor.is_done() {
            // From the beginning of this scan: later changes are visited by the next one.
            since = version;
            version = cache.version();
            cursor = Cursor::changed_since(since);
        }
    }
    for since in [since, version] {
        copy.extend(copies(&cache, Cursor::changed_since(since)));
    }
    assert_eq!(copy, BTreeMap::from_iter(copies(&cache, Cursor::new())));
}

fn change<C>(rng: &mut StdRng, cache: &mut Cache, copy: &mut BTreeMap<Handle, C>, step: u64) {
    let now = Timestamp::from_millis(20 * step);
    let key = key(rng.random_range(0..400));
    let found = cache.find(&key).map(|found| found.handle);
    match (rng.random_range(0..20), found) {
        (0, Some(handle)) => {
            cache.remove(handle).iter().for_each(|left| _ = copy.remove(&left.handle));
        }
        (1, Some(handle)) => _ = cache.set_pinned(handle, step % 8 == 0),
        (2, Some(handle)) => _ = cache.set_class(handle, Class::ALL[step as usize % 4]),
        (3, Some(handle)) => *cache.get_mut(handle).expect("it is there") += 7,
        (4, Some(handle)) => {
            _ = cache.add_alias(handle, Direction::Forward, &self::key(1000 + step as u32));
        }
        (5, _) => {
            cache.advance(now, 30, |event| match event {
                Event::Ended(left) => _ = copy.remove(&left.handle),
                Event::Active(report) => *report.value = 0,
            });
        }
        _ => {
            let flags = [SYN, SYN_ACK, ACK, ACK, FIN_ACK, RST][rng.random_range(0..6)];
            if let Ok(observed) = cache.observe(&key, Packet::tcp(flags), now) {
                *observed.flow += 1;
                observed.removed().iter().for_each(|left| _ = copy.remove(&left.handle));
            }
        }
    }
}

/// Flows end as by `retain_step`, each judged once, with the same metrics and versions.
#[test]
fn to_retain_flows_is_one_step_over_all_slots() {
    let mut rng = StdRng::seed_from_u64(11);
    let mut cache = cache(300, Timeouts::METER);
    let mut copy = BTreeMap::<Handle, ()>::new();
    for step in 0..4000 {
        change(&mut rng, &mut cache, &mut copy, step);
        if step % 200 > 0 {
            continue;
        }
        let keeps = |class: Class, value: u64| class != Class::Established && value % 3 > 0;
        let (mut stepwise, mut cursor, mut ended) = (cache.clone(), Cursor::new(), vec![]);
        let keep = |flow: &Resident<'_, _, _>| keeps(flow.class(), *flow.value());
        while !cursor.is_done() {
            stepwise
                .retain_step(&mut cursor, 7, keep, |flow| ended.push((flow.handle, flow.reason)));
        }
        let (all, before) = (scan(&cache, Cursor::new(), 10), cache.len());
        let mut judged = BTreeSet::new();
        cache.retain(|flow| {
            assert!(judged.insert(flow.handle()), "judged once");
            keep(flow)
        });
        assert!(judged.into_iter().eq(BTreeSet::from_iter(all)));
        assert!(ended.iter().all(|(_, reason)| *reason == EndReason::Forced));
        assert_eq!((cache.len(), &cache), (before - ended.len(), &stepwise));
        assert_eq!((cache.metrics(), cache.version()), (stepwise.metrics(), stepwise.version()));
        assert!(cache.iter().all(|flow| keep(&flow)));
        assert!(ended.iter().all(|(handle, _)| cache.get(*handle).is_none()));
        cache.validate().expect("an invariant");
    }
    let (handle, count) = (add(&mut cache, 9000), cache.len());
    cache.retain(|_| true);
    assert!(cache.len() == count && cache.get(handle).is_some());
    cache.retain(|_| false);
    assert!(cache.is_empty());
}

/// An image of all flows, the most recently seen first.
pub(crate) fn image(cache: &Cache) -> Image<FlowKey, u64> {
    let mut cursor = Cursor::new();
    cache.page(&mut cursor, usize::MAX).collect()
}

/// The observable state of the flows except their handles and versions, by key.
fn content(cache: &Cache) -> BTreeMap<FlowKey, String> {
    let mut cursor = Cursor::new();
    let flows = cache.page(&mut cursor, usize::MAX).map(|flow| {
        let names: BTreeSet<(u8, FlowKey)> = flow
            .keys()
            .map(|name| (cache.find(&name).expect("it has this key").alias, name))
            .collect();
        let ages = [flow.first_seen(), flow.last_seen()].map(|time| cache.now().since(time));
        let what = (flow.class(), flow.protocol(), flow.tenant(), flow.is_pinned());
        (flow.key(), format!("{} {names:?} {what:?} {ages:?}", flow.value()))
    });
    flows.collect()
}

/// A cache with flows of all kinds and ages.
fn aged() -> Cache {
    let mut rng = StdRng::seed_from_u64(9);
    let mut cache = cache(500, Timeouts::METER);
    for step in 0..1000 {
        let now = Timestamp::from_millis(100_000 + 20 * step);
        let key = key(rng.random_range(0..300));
        let key = if rng.random() { key } else { key.reversed() };
        let flags = [SYN, SYN_ACK, ACK, FIN_ACK, RST][rng.random_range(0..5)];
        let packet = match step % 10 {
            0 => Packet::UDP,
            _ => Packet::tcp(flags).from_tenant(Tenant((step % 3) as u32)),
        };
        let observed = cache.observe(&key, packet, now).expect("there is room");
        *observed.flow += 1;
        let handle = observed.handle();
        match step % 50 {
            7 | 8 => {
                _ = cache.add_alias(handle, Direction::Forward, &self::key(1000 + step as u32));
            }
            9 => _ = cache.set_pinned(handle, true),
            _ => {}
        }
    }
    cache.validate().expect("invariant");
    cache
}

#[test]
fn an_image_is_ordered_by_last_use_and_may_be_truncated() {
    let cache = aged();
    let mut recent: Vec<(Timestamp, FlowKey)> = vec![];
    let mut cursor = Cursor::new();
    recent.extend(cache.page(&mut cursor, usize::MAX).map(|flow| (flow.last_seen(), flow.key())));
    recent.sort();
    recent.reverse();
    for count in [0, 1, 10, 1000] {
        let mut image = image(&cache);
        image.truncate(count);
        let count = count.min(cache.len());
        assert_eq!(image.len(), count);
        let mut copy = self::cache(500, Timeouts::METER);
        assert_eq!(copy.restore(image, seconds(1000)), Ok(count));
        let keys: BTreeSet<FlowKey> = content(&copy).into_keys().collect();
        assert_eq!(keys, recent[..count].iter().map(|(_, key)| *key).collect());
    }
}

#[test]
fn an_image_restores_flows_with_their_ages() {
    let original = aged();
    for now in [200, 1_000_000, 120] {
        let mut copy = cache(500, Timeouts::METER);
        assert_eq!(copy.restore(image(&original), seconds(now)), Ok(original.len()));
        copy.validate().expect("invariant");
        assert_eq!((copy.now(), content(&copy)), (seconds(now), content(&original)));
        let counts = |cache: &Cache| {
            let metrics = cache.metrics();
            (metrics.by_class, metrics.pinned, metrics.aliases, metrics.flows)
        };
        assert_eq!(counts(&copy), counts(&original));
    }
}

/// Restored flows end when they would have ended, and keep the state of their connections.
#[test]
fn a_restored_cache_continues_like_the_original() {
    let mut original = aged();
    // Including times that are less than the ages of some flows.
    for now in [seconds(1000), seconds(0), seconds(1)] {
        let mut copy = cache(500, Timeouts::METER);
        copy.restore(image(&original), now).expect("there is room");
        let before = original.now();
        let mut original = cache(500, Timeouts::METER);
        original.restore(image(&self::aged()), before).expect("there is room");
        for step in 1..=80 {
            let later = Duration::from_secs(step);
            let number = step as u32;
            for cache in [(&mut original, before), (&mut copy, now)] {
                let (cache, now) = cache;
                for flags in [FIN_ACK, ACK] {
                    _ = cache.observe(&key(number), Packet::tcp(flags), now + later);
                }
            }
            let ended = [ended(&mut original, before + later), ended(&mut copy, now + later)];
            assert_eq!(ended[0], ended[1], "{step} s later");
            assert_eq!(
                content(&original).into_keys().collect::<Vec<_>>(),
                content(&copy).into_keys().collect::<Vec<_>>()
            );
        }
    }
    assert!(!ended(&mut original, seconds(500)).is_empty());
}

fn ended(cache: &mut Cache, now: Timestamp) -> BTreeSet<(FlowKey, EndReason, Class, u64)> {
    let mut ended = BTreeSet::new();
    let progress = cache.advance(now, 10_000, |event| {
        if let Event::Ended(left) = event {
            assert!(ended.insert((left.key, left.reason, left.class, left.value)));
        }
    });
    assert!(progress.is_done);
    ended
}

/// Checks that an image is refused, returned and changes nothing; returns the reason.
#[track_caller]
fn refused(cache: &mut Cache, image: Image<FlowKey, u64>, now: Timestamp) -> ImageError {
    let before = (content(cache), cache.version(), cache.metrics(), cache.now());
    let mut handles = scan(cache, Cursor::new(), 100);
    let error = cache.restore(image.clone(), now).expect_err("the image is refused");
    assert_eq!(error.refused, image);
    let error = error.reason;
    let after = (content(cache), cache.version(), cache.metrics(), cache.now());
    assert_eq!(after, before, "{error}");
    handles.retain(|handle| cache.get(*handle).is_none());
    assert!(handles.is_empty(), "{error}");
    cache.validate().expect("invariant");
    error
}

#[test]
fn an_image_with_more_flows_than_room_is_refused() {
    let original = aged();
    let mut small = cache(original.len() - 1, Timeouts::METER);
    let error = refused(&mut small, image(&original), seconds(200));
    let (flows, room) = (original.len(), original.len() - 1);
    assert_eq!(error, ImageError::TooMany { flows, capacity: room });
    add(&mut small, 5000);
    let error = refused(&mut small, image(&original), seconds(200));
    assert_eq!(error, ImageError::TooMany { flows, capacity: room - 1 });
    let mut image = image(&original);
    image.truncate(room - 1);
    assert_eq!(small.restore(image, seconds(200)), Ok(room - 1));
    assert_eq!(
        (small.len(), small.metrics().removed_for(EndReason::Resources)),
        (small.capacity(), 0)
    );
}

#[test]
fn an_image_with_keys_in_use_is_refused() {
    let mut original = cache(10, Timeouts::METER);
    let [_, second, _] = [0, 1, 2].map(|number| add(&mut original, number));
    original.add_alias(second, Direction::Forward, &key(77)).expect("it is free");
    // A primary key or an alias of the image is a primary key or an alias of the cache, in either
    // direction.
    for (number, is_alias) in [(1, false), (77, false), (1, true), (77, true)] {
        for reversed in [false, true] {
            let mut other = cache(10, Timeouts::METER);
            let handle = add(&mut other, 200);
            let name = if reversed { key(number).reversed() } else { key(number) };
            match is_alias {
                true => _ = other.add_alias(handle, Direction::Forward, &name).expect("it is free"),
                false => _ = other.observe(&name, Packet::UDP, seconds(1)).expect("there is room"),
            }
            let error = refused(&mut other, image(&original), seconds(5));
            assert!(matches!(error, ImageError::Keys { flow: 0..3 }), "{error:?}");
        }
    }
    // A key that occurs twice in the image itself.
    let mut cursors = [Cursor::new(), Cursor::new()];
    let [one, two] = &mut cursors;
    let twice: Image<FlowKey, u64> =
        original.page(one, 100).chain(original.page(two, 100)).collect();
    let mut other = cache(10, Timeouts::METER);
    let error = refused(&mut other, twice, seconds(5));
    assert!(matches!(error, ImageError::Keys { .. }), "{error:?}");
}

#[test]
fn an_image_may_be_restored_into_a_used_cache() {
    let original = aged();
    let config = Config::new(1000).expect("some").with_timeouts(Timeouts::METER);
    let mut joined: FlowCache<FlowKey, u64, Lru> = FlowCache::with_policy(config, Lru::new());
    let now = seconds(200);
    joined.observe(&key(9999), Packet::UDP.from_tenant(Tenant(1)), now).expect("there is room");
    assert_eq!(joined.restore(image(&original), now), Ok(original.len()));
    joined.validate().expect("invariant");
    assert_eq!(joined.len(), original.len() + 1);
    // Restored flows count for the share of their tenant.
    joined.set_share(Tenant(1), Some(3));
    let packet = Packet::tcp(SYN).from_tenant(Tenant(1));
    let observed = joined.observe(&key(8888), packet, now).expect("one can leave");
    assert_eq!(observed.removed().map(|left| left.tenant), Some(Tenant(1)));
}

#[test]
fn an_image_that_exceeds_a_share_is_refused() {
    let original = aged();
    let mut cursor = Cursor::new();
    let of =
        original.page(&mut cursor, usize::MAX).filter(|flow| flow.tenant() == Tenant(1)).count();
    for (share, has, fits) in [(of, 0, true), (of - 1, 0, false), (of, 1, false), (0, 0, false)] {
        let mut other = cache(1000, Timeouts::METER);
        for number in 0..has {
            let packet = Packet::UDP.from_tenant(Tenant(1));
            other.observe(&key(9000 + number), packet, seconds(0)).expect("there is room");
        }
        other.set_share(Tenant(1), Some(share));
        match fits {
            true => assert_eq!(other.restore(image(&original), seconds(200)), Ok(original.len())),
            false => {
                let error = refused(&mut other, image(&original), seconds(200));
                assert_eq!(error, ImageError::Share(Tenant(1)));
            }
        }
    }
}

#[test]
fn an_empty_image_restores_nothing() {
    let empty = cache(10, Timeouts::METER);
    assert_eq!(image(&empty).len(), 0);
    let mut other = cache(10, Timeouts::METER);
    assert_eq!(other.restore(image(&empty), seconds(5)), Ok(0));
    assert!(other.is_empty());
}
