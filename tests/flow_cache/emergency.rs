//! Emergencies: above a threshold, silent flows are evicted before the cache is full.

use core::time::Duration;

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{
    Class, Config, Cursor, Emergency, EndReason, Event, Image, ImageError, Packet, Timeouts,
};
use flowtable::{DefaultHashBuilder, Direction, FlowCache, FlowKey, Timestamp};
use model::flow_cache::keys::{ACK, RST, SYN, add, key};

type Cache = FlowCache<FlowKey, u64>;

/// Milliseconds after which silent flows are detected: the timeout and a tick.
const DETECTED: u64 = 2010;

fn millis(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// The classes of the evicted flows, and whether the work is done.
fn advance(cache: &mut Cache, now: u64, budget: usize) -> (Vec<Class>, bool) {
    let mut left = vec![];
    let progress = cache.advance(millis(now), budget, |event| match event {
        Event::Ended(removed) => {
            assert_eq!(removed.reason, EndReason::Resources);
            let silent = millis(now).since(removed.last_seen);
            assert!(silent >= Duration::from_secs(2), "{removed:?}");
            left.push(removed.class);
        }
        Event::Active(report) => panic!("{report:?}"),
    });
    assert_eq!((progress.ended, progress.ended <= budget), (left.len(), true));
    cache.validate().expect("invariant");
    (left, progress.is_done)
}

/// Sends a packet of the flow with this number.
fn send(cache: &mut Cache, number: u32, now: u64) {
    let observed = cache.observe(&key(number), Packet::tcp(ACK), millis(now));
    assert!(!observed.expect("it is there").fresh);
}

fn is_present(cache: &Cache, number: u32) -> bool {
    cache.find(&key(number)).is_some()
}

/// A cache with 30 established, 30 unreplied and 19 new flows, all silent for ten seconds.
fn calm() -> Cache {
    let emergency =
        Emergency::new(80, 40, Duration::from_secs(2)).expect("the thresholds are valid");
    let config = Config::new(100).expect("some").with_timeouts(Timeouts::OFF);
    let mut cache: Cache = FlowCache::new(
        config.with_emergency(emergency).expect("the threshold is below the capacity"),
    );
    (0..30).for_each(|number| _ = add(&mut cache, number, Class::Established));
    (30..60).for_each(|number| _ = add(&mut cache, number, Class::Unreplied));
    (60..79).for_each(|number| _ = add(&mut cache, number, Class::New));
    assert_eq!(advance(&mut cache, 10_000, 1000), (vec![], true));
    assert!(!cache.metrics().emergency);
    cache
}

/// [`calm`] with another flow, which has just been reset: an emergency.
fn crowded() -> Cache {
    let mut cache = calm();
    add(&mut cache, 79, Class::Closing);
    assert!(cache.metrics().emergency);
    cache
}

#[test]
fn an_emergency_evicts_silent_flows() {
    let mut cache = crowded();
    for now in [10_500, 11_500] {
        // Busy flows stay, whether they are new or closing.
        [60, 79].into_iter().for_each(|number| send(&mut cache, number, now));
    }
    let (left, is_done) = advance(&mut cache, 10_000 + DETECTED, 1000);
    assert_eq!((left.len(), is_done), (41, true));
    assert!(left.iter().all(|class| [Class::New, Class::Unreplied].contains(class)), "{left:?}");
    assert_eq!((cache.len(), cache.metrics().emergency), (39, false));
    assert!((0..30).chain([60, 79]).all(|number| is_present(&cache, number)));
    assert_eq!(advance(&mut cache, 100_000, 1000), (vec![], true), "the emergency has ended");
}

#[test]
fn an_emergency_is_handled_in_bounded_steps() {
    let mut cache = crowded();
    let now = 10_000 + DETECTED;
    let steps = (1..1000).find(|_| advance(&mut cache, now, 3).1).expect("the work ends");
    assert!(steps >= 14, "{steps} steps of three");
    assert_eq!((cache.len(), cache.metrics().emergency), (39, false));
}

#[test]
fn an_emergency_has_hysteresis() {
    let mut cache = crowded();
    let mut next = 1000;
    let mut fill = |cache: &mut Cache, flows: usize| {
        while cache.len() < flows {
            next += 1;
            add(cache, next, Class::New);
        }
    };
    let remove = |cache: &mut Cache, number| {
        let handle = cache.find(&key(number)).expect("it is there").handle;
        cache.remove(handle).expect("it is there");
    };
    let is_emergency = |cache: &Cache| cache.metrics().emergency;
    // The emergency ends below the lower threshold, not at it.
    (30..70).for_each(|number| remove(&mut cache, number));
    assert!(is_emergency(&cache) && cache.len() == 40);
    remove(&mut cache, 70);
    assert!(!is_emergency(&cache));
    // Between the thresholds no flow is evicted.
    fill(&mut cache, 79);
    assert_eq!(advance(&mut cache, 100_000, 1000), (vec![], true));
    assert!(!is_emergency(&cache));
    fill(&mut cache, 80);
    assert!(is_emergency(&cache));
    assert_eq!(cache.metrics().emergencies, 2);
    assert_eq!(advance(&mut cache, 100_000 + DETECTED, 1000).0.len(), 41);
    // Established flows stay even above the threshold.
    (2000..2060).for_each(|number| _ = add(&mut cache, number, Class::Established));
    assert!(is_emergency(&cache));
    advance(&mut cache, 300_000, 1000);
    assert!(is_emergency(&cache) && cache.len() == 90, "{} are left", cache.len());
    let metrics = cache.metrics();
    assert_eq!(metrics.removed(EndReason::Resources, Class::Established), 0);
}

#[test]
fn an_emergency_evicts_pinned_and_established_flows_only_after_a_change() {
    let mut cache = crowded();
    let handle = |cache: &Cache, number| cache.find(&key(number)).expect("it is there").handle;
    for number in 30..80 {
        let handle = handle(&cache, number);
        assert!(cache.set_pinned(handle, true));
    }
    assert_eq!(advance(&mut cache, 100_000, 1000), (vec![], true));
    assert_eq!((cache.len(), cache.metrics().emergency), (80, true));
    let (pinned, established) = (handle(&cache, 40), handle(&cache, 7));
    assert!(cache.set_pinned(pinned, false) && cache.set_class(established, Class::Closing));
    let mut left = advance(&mut cache, 100_000 + DETECTED, 1000).0;
    left.sort_unstable();
    assert_eq!(left, [Class::Closing, Class::Unreplied]);
    assert!(cache.get(pinned).is_none() && cache.get(established).is_none());
}

/// A flow that is not established is examined once per timeout, and on its way through the timer
/// wheel.
#[test]
fn without_an_emergency_flows_are_examined_once_per_timeout() {
    let mut cache = calm();
    let mut examined = 0;
    for tick in 0..10_000 {
        let progress = cache.advance(millis(10_000 + 10 * tick), 1000, |event| panic!("{event:?}"));
        assert!(progress.is_done);
        examined += progress.examined;
    }
    // 49 flows, and 50 timeouts of two seconds.
    assert!((49 * 50..=3 * 49 * 50).contains(&examined), "{examined} examined");
}

#[test]
fn new_flows_between_resets_are_evicted() {
    let mut cache = crowded();
    for number in 0..200 {
        let now = 10_000 + 10 * u64::from(number);
        let flags = if number % 2 == 0 { RST } else { SYN };
        cache.observe(&key(5000 + number), Packet::tcp(flags), millis(now)).expect("room");
        advance(&mut cache, now, 1000);
    }
    // At 100 flows each insertion evicts a flow; the other silent flows are evicted together.
    advance(&mut cache, 10_000 + DETECTED, 1000);
    assert!((30..80).all(|number| !is_present(&cache, number)));
    assert!((0..30).all(|number| is_present(&cache, number)));
}

#[test]
fn an_image_refused_for_memory_causes_no_emergency() {
    let config = || Config::new(20).expect("some").with_timeouts(Timeouts::OFF);
    let mut original: FlowCache<u64, ()> = FlowCache::new(config());
    for id in 100..106 {
        original.observe(&id, Packet::UDP, Timestamp::from_secs(id)).expect("there is room");
    }
    // The last restored flow has aliases that exceed the memory.
    let last = original.find(&105).expect("it is there").handle;
    (0..250).for_each(|name| {
        _ = original.add_alias(last, Direction::Forward, &(1000 + name)).expect("it is free");
    });
    let image: Image<_, _> = original.page(&mut Cursor::new(), usize::MAX).collect();

    let emergency = Emergency::new(6, 1, Duration::from_secs(5)).expect("the thresholds are valid");
    let config = config().with_emergency(emergency).expect("the threshold is below the capacity");
    let config = config.with_max_bytes(26 << 10).expect("it is not too little");
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut cache: FlowCache<u64, ()> =
        FlowCache::with_policy_and_hasher(config, ByClass::new(), hasher);
    cache.observe(&1, Packet::UDP, Timestamp::ZERO).expect("there is room");
    let error = cache.restore(image.clone(), Timestamp::ZERO).unwrap_err();
    assert!(matches!(error.reason, ImageError::TooMany { flows: 6, .. }));
    assert_eq!(error.refused, image, "with all aliases");
    let metrics = cache.metrics();
    assert_eq!((metrics.flows, metrics.emergencies, metrics.emergency), (1, 0, false));
}
