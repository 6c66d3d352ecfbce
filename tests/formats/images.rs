//! Serialized restart images: truncated, modified, hostile. An image is refused and the cache
//! unchanged, or it is restored and the cache is valid.

use core::time::Duration;

use flowtable::flow_cache::{Config, Cursor, Image, ImageError, Packet, Tenant, Timeouts, Version};
use flowtable::{Direction, FlowCache, FlowKey, Timestamp};
use model::flow_cache::keys::{ACK, FIN_ACK, NumberedKey, RST, SYN, SYN_ACK};
use serde_json::{Value, from_slice, from_str, from_value, json, to_string, to_value};

type Cache = FlowCache<FlowKey, u32>;

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn cache(flows: usize) -> Cache {
    FlowCache::new(Config::new(flows).expect("some").with_timeouts(Timeouts::METER))
}

/// Flows of all kinds, one of them with aliases.
fn original() -> Cache {
    let mut cache = cache(10);
    for (number, flags) in (1..6).zip([SYN, SYN_ACK, ACK, FIN_ACK, RST]) {
        let packet = Packet::tcp(flags).from_tenant(Tenant(number % 2));
        let now = seconds(10 * u64::from(number));
        let observed = cache.observe(&FlowKey::make(number), packet, now).expect("there is room");
        *observed.flow = 100 + number;
    }
    let handle = cache.find(&FlowKey::make(3)).expect("it is there").handle;
    for name in [20, 21, 22] {
        cache
            .add_alias(handle, Direction::Forward, &FlowKey::make(name).reversed())
            .expect("it is free");
    }
    cache.remove_key(handle, &FlowKey::make(21)).expect("it is there");
    assert!(cache.set_pinned(handle, true));
    cache
}

fn image(cache: &Cache) -> Image<FlowKey, u32> {
    cache.page(&mut Cursor::new(), usize::MAX).collect()
}

/// The observable state of a cache.
fn state(cache: &Cache) -> (Vec<String>, Version, flowtable::flow_cache::Metrics) {
    let mut cursor = Cursor::new();
    let flows = cache.page(&mut cursor, usize::MAX).map(|flow| {
        let ages = [flow.first_seen(), flow.last_seen()].map(|time| cache.now().since(time));
        let what = (flow.class(), flow.protocol(), flow.tenant(), flow.is_pinned());
        let names: Vec<String> = flow
            .keys()
            .map(|name| format!("{name:?} {:?}", cache.find(&name).expect("its key").alias))
            .collect();
        format!("{:?} {} {names:?} {what:?} {ages:?}", flow.key(), flow.value())
    });
    let mut flows: Vec<String> = flows.collect();
    flows.sort();
    (flows, cache.version(), cache.metrics())
}

/// Restores an image and checks that it is refused without a change, or that the cache works.
fn check_restore(image: Image<FlowKey, u32>, what: &str) -> Result<(), ImageError> {
    let mut other = cache(10);
    other.observe(&FlowKey::make(9), Packet::UDP, seconds(3)).expect("there is room");
    let (before, flows) = (state(&other), image.len());
    let result = other.restore(image.clone(), seconds(500));
    other.validate().unwrap_or_else(|broken| panic!("{what}: {broken}"));
    if let Err(error) = result {
        assert_eq!((state(&other), &error.refused), (before, &image), "{what}: {error}");
        return Err(error.reason);
    }
    assert_eq!((result, other.len()), (Ok(flows), flows + 1), "{what}");
    // Restored flows can be used.
    for number in 0..30 {
        for key in [FlowKey::make(number), FlowKey::make(number).reversed()] {
            other.observe(&key, Packet::tcp(ACK), seconds(501)).expect("one can leave");
        }
        other.validate().unwrap_or_else(|broken| panic!("{what}: {broken}"));
    }
    let handles: Vec<_> = other.iter().map(|flow| flow.handle()).collect();
    handles.into_iter().for_each(|handle| other.set_timeout(handle, None).expect("it is there"));
    let end = seconds(501) + Duration::from_secs(1000);
    assert!(other.advance(end, 1000, |_| ()).is_done && other.is_empty(), "{what}");
    other.validate().unwrap_or_else(|broken| panic!("{what}: {broken}"));
    Ok(())
}

#[test]
fn an_image_is_serialized_and_deserialized() {
    let original = original();
    let written = to_string(&image(&original)).expect("it can be written");
    let read: Image<FlowKey, u32> = from_str(&written).expect("it can be read");
    assert_eq!(read, image(&original));
    assert_eq!(check_restore(read.clone(), "the serialized image"), Ok(()));
    let mut copy = cache(10);
    assert_eq!(copy.restore(read, original.now()), Ok(5));
    assert_eq!(state(&copy).0, state(&original).0);
    for number in 1..6 {
        let (key, direction) = (FlowKey::make(number), |cache: &Cache, key| {
            cache.find(key).map(|found| (found.direction, found.alias))
        });
        assert_eq!(direction(&copy, &key), direction(&original, &key));
    }
    let found = copy.find(&FlowKey::make(22)).expect("an alias");
    assert_eq!((found.direction, found.alias), (Direction::Reverse, 3));
}

#[test]
fn a_truncated_image_is_an_error() {
    let written = to_string(&image(&original())).expect("it can be written").into_bytes();
    for end in 0..written.len() {
        let read: Result<Image<FlowKey, u32>, _> = from_slice(&written[..end]);
        assert!(read.is_err(), "{end} of {} bytes", written.len());
    }
}

/// The parts of a value, as JSON pointers.
fn parts(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_string());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, part)| parts(part, &format!("{at}/{name}"), found));
        }
        Value::Array(entries) => {
            let parts_of = |(number, part)| parts(part, &format!("{at}/{number}"), found);
            entries.iter().enumerate().for_each(parts_of);
        }
        _ => {}
    }
}

/// Each part is replaced by constants, and by other parts of the image.
#[test]
fn a_modified_image_is_refused_or_restored() {
    let written = to_value(image(&original())).expect("it can be written");
    let mut places = vec![];
    parts(&written, "", &mut places);
    let others = [
        json!(null),
        json!(0),
        json!(1),
        json!(3),
        json!(255),
        json!(u64::MAX),
        json!(u64::MAX / 2),
        json!(1_u64 << 61),
        json!(-1),
        json!(true),
        json!(false),
        json!(""),
        json!("Forward"),
        json!("Reverse"),
        json!("Closing"),
        json!("Established"),
        json!("Udp"),
        json!([]),
        json!({}),
    ];
    let (mut unreadable, mut refused, mut restored) = (0, 0, 0);
    for place in &places {
        let elsewhere =
            places.iter().step_by(7).map(|place| written.pointer(place).expect("there"));
        for other in others.iter().chain(elsewhere) {
            let mut changed = written.clone();
            *changed.pointer_mut(place).expect("it is there") = other.clone();
            match from_value::<Image<FlowKey, u32>>(changed) {
                Err(_) => unreadable += 1,
                Ok(image) => match check_restore(image, &format!("{other} at {place}")) {
                    Err(_) => refused += 1,
                    Ok(()) => restored += 1,
                },
            }
        }
    }
    println!("{unreadable} are unreadable, {refused} refused, {restored} restored");
    assert!(unreadable > 1000 && refused > 50 && restored > 100);
}

#[test]
fn each_defect_of_an_image_has_an_error() {
    let written = to_value(image(&original())).expect("it can be written");
    let changed = |changes: &[(&str, Value)]| {
        let mut changed = written.clone();
        for (place, other) in changes {
            *changed.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = other.clone();
        }
        from_value::<Image<FlowKey, u32>>(changed).expect("it can be read")
    };
    let flow = |number: usize| written["flows"][number].clone();
    let is = |changes: &[(&str, Value)]| check_restore(changed(changes), &format!("{changes:?}"));
    assert_eq!(is(&[]), Ok(()));
    for format in [0, 1, u32::MAX] {
        assert_eq!(is(&[("/format", json!(format))]), Err(ImageError::Format(format)));
    }
    for timeout in [0, u64::MAX] {
        let refused = is(&[("/flows/3/0/timeout", json!(timeout))]);
        assert_eq!(refused, Err(ImageError::Timeout { flow: 3 }));
    }
    let many = json!(vec![flow(0); 10]);
    assert_eq!(is(&[("/flows", many)]), Err(ImageError::TooMany { flows: 10, capacity: 9 }));
    assert_eq!(is(&[("/flows/1", flow(0))]), Err(ImageError::Keys { flow: 1 }));
    for age in ["age", "silent", "unreported"] {
        let place = format!("/flows/2/0/{age}");
        assert_eq!(is(&[(&place, json!(u64::MAX))]), Err(ImageError::Ages { flow: 2 }), "{age}");
    }
    // The same age for all flows, up to the age of the clock.
    let all = |age: u64| {
        let fields = ["age", "silent", "unreported"];
        let places = (0..5).flat_map(|flow| fields.map(|field| format!("/flows/{flow}/0/{field}")));
        let places: Vec<String> = places.collect();
        let changes: Vec<(&str, Value)> =
            places.iter().map(|place| (place.as_str(), json!(age))).collect();
        is(&changes)
    };
    for age in [0, 1, 1 << 40, 1 << 60] {
        assert_eq!(all(age), Ok(()), "{age}");
    }
    for age in [u64::MAX, u64::MAX / 2, 1 << 62] {
        assert!(matches!(all(age), Err(ImageError::Ages { .. })), "{age}");
    }
}
