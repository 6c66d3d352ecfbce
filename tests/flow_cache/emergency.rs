//! What happens when the cache gets crowded: what is silent leaves before the cache is full.

use core::time::Duration;

use flowtable::flow_cache::{
    Class, Config, Cursor, Emergency, EndReason, Event, Image, ImageError, Packet, Timeouts,
};
use flowtable::{FlowCache, FlowKey, Timestamp};
use model::flow_cache::keys::{ACK, RST, SYN, add, key};

type Cache = FlowCache<FlowKey, u32>;

/// After so long all that has been silent before is noticed: the timeout, and a tick.
const NOTICED: u64 = 2010;

fn millis(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Who leaves, and whether that was all.
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

/// A packet of the flow of this number.
fn send(cache: &mut Cache, number: u32, now: u64) {
    let observed = cache.observe(&key(number), Packet::tcp(ACK), millis(now));
    assert!(!observed.expect("it is there").fresh);
}

fn is_there(cache: &Cache, number: u32) -> bool {
    cache.find(&key(number)).is_some()
}

/// With 30 established, 30 unreplied, 19 new flows, all silent for ten seconds.
fn calm() -> Cache {
    let emergency = Emergency::new(80, 40, Duration::from_secs(2)).expect("it ends below");
    let config = Config::new(100).expect("some").with_timeouts(Timeouts::OFF);
    let mut cache: Cache =
        FlowCache::new(config.with_emergency(emergency).expect("it begins in time"));
    (0..30).for_each(|number| _ = add(&mut cache, number, Class::Established));
    (30..60).for_each(|number| _ = add(&mut cache, number, Class::Unreplied));
    (60..79).for_each(|number| _ = add(&mut cache, number, Class::New));
    assert_eq!(advance(&mut cache, 10_000, 1000), (vec![], true));
    assert!(!cache.metrics().emergency);
    cache
}

/// The same with one more, which has just been reset.
fn crowded() -> Cache {
    let mut cache = calm();
    add(&mut cache, 79, Class::Closing);
    assert!(cache.metrics().emergency);
    cache
}

#[test]
fn an_emergency_ends_what_is_silent() {
    let mut cache = crowded();
    for now in [10_500, 11_500] {
        // Who sends stays, also if it has been reset: that is nobody's shield either.
        [60, 79].into_iter().for_each(|number| send(&mut cache, number, now));
    }
    let (left, is_done) = advance(&mut cache, 10_000 + NOTICED, 1000);
    assert_eq!((left.len(), is_done), (41, true));
    assert!(left.iter().all(|class| [Class::New, Class::Unreplied].contains(class)), "{left:?}");
    assert_eq!((cache.len(), cache.metrics().emergency), (39, false));
    assert!((0..30).chain([60, 79]).all(|number| is_there(&cache, number)));
    assert_eq!(advance(&mut cache, 100_000, 1000), (vec![], true), "it is over");
}

#[test]
fn an_emergency_is_dealt_with_in_bounded_steps() {
    let mut cache = crowded();
    let now = 10_000 + NOTICED;
    let steps = (1..1000).find(|_| advance(&mut cache, now, 3).1).expect("it comes to an end");
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
    // By hand, until it is one too many, and then one less.
    (30..70).for_each(|number| remove(&mut cache, number));
    assert!(is_emergency(&cache) && cache.len() == 40);
    remove(&mut cache, 70);
    assert!(!is_emergency(&cache));
    // Between the thresholds nothing happens.
    fill(&mut cache, 79);
    assert_eq!(advance(&mut cache, 100_000, 1000), (vec![], true));
    assert!(!is_emergency(&cache));
    fill(&mut cache, 80);
    assert!(is_emergency(&cache));
    assert_eq!(cache.metrics().emergencies, 2);
    assert_eq!(advance(&mut cache, 100_000 + NOTICED, 1000).0.len(), 41);
    // What is established stays, whatever is asked for.
    (2000..2060).for_each(|number| _ = add(&mut cache, number, Class::Established));
    assert!(is_emergency(&cache));
    advance(&mut cache, 300_000, 1000);
    assert!(is_emergency(&cache) && cache.len() == 90, "{} are left", cache.len());
    let metrics = cache.metrics();
    assert_eq!(metrics.removed(EndReason::Resources, Class::Established), 0);
}

#[test]
fn an_emergency_leaves_pinned_and_established_flows_alone_until_they_are_not() {
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
    let mut left = advance(&mut cache, 100_000 + NOTICED, 1000).0;
    left.sort_unstable();
    assert_eq!(left, [Class::Closing, Class::Unreplied]);
    assert!(cache.get(pinned).is_none() && cache.get(established).is_none());
}

/// Who is not established is looked at once in each timeout, and on its way through the wheel.
#[test]
fn what_it_costs_to_be_ready_for_an_emergency() {
    let mut cache = calm();
    let mut examined = 0;
    for tick in 0..10_000 {
        let progress = cache.advance(millis(10_000 + 10 * tick), 1000, |event| panic!("{event:?}"));
        assert!(progress.is_done);
        examined += progress.examined;
    }
    // 49 of them, and 50 times two seconds.
    assert!((49 * 50..=3 * 49 * 50).contains(&examined), "{examined} looks");
}

#[test]
fn who_comes_between_resets_is_not_kept() {
    let mut cache = crowded();
    for number in 0..200 {
        let now = 10_000 + 10 * u64::from(number);
        let flags = if number % 2 == 0 { RST } else { SYN };
        cache.observe(&key(5000 + number), Packet::tcp(flags), millis(now)).expect("room");
        advance(&mut cache, now, 1000);
    }
    // At 100 flows one leaves for each that comes; all others that are silent by now leave at once.
    advance(&mut cache, 10_000 + NOTICED, 1000);
    assert!((30..80).all(|number| !is_there(&cache, number)));
    assert!((0..30).all(|number| is_there(&cache, number)));
}

#[test]
fn an_image_that_is_refused_for_memory_begins_no_emergency() {
    let config = || Config::new(20).expect("some").with_timeouts(Timeouts::OFF);
    let mut original: FlowCache<u64, ()> = FlowCache::new(config());
    for id in 100..106 {
        original.observe(&id, Packet::UDP, Timestamp::from_secs(id)).expect("there is room");
    }
    // The last one to be restored has names for which there is no memory.
    let last = original.find(&105).expect("it is there").handle;
    (0..250).for_each(|name| _ = original.add_name(last, &(1000 + name)).expect("it is free"));
    let image: Image<_, _> = original.page(&mut Cursor::new(), usize::MAX).collect();

    let emergency = Emergency::new(6, 1, Duration::from_secs(5)).expect("it leaves below");
    let config = config().with_emergency(emergency).expect("it enters in time");
    let config = config.with_max_bytes(150 << 10).expect("it is not too little");
    let mut cache: FlowCache<u64, ()> = FlowCache::new(config);
    cache.observe(&1, Packet::UDP, Timestamp::ZERO).expect("there is room");
    let error = cache.restore(image, Timestamp::ZERO).unwrap_err();
    assert!(matches!(error, ImageError::TooMany { flows: 6, .. }));
    let metrics = cache.metrics();
    assert_eq!((metrics.flows, metrics.emergencies, metrics.emergency), (1, 0, false));
}
