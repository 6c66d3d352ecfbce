//! Parameters of flow caches: serialized as they are, deserialized with the checks of their
//! constructors.

use core::time::Duration;

use flowtable::flow_cache::{
    Assurance, Class, CloseRule, Config, Emergency, Protocol, Renewal, Timeouts,
};
use serde_json::{Value, from_str, from_value, json, to_string, to_value};

/// A configuration in which nothing is as by default.
fn unusual() -> Config {
    let timeouts = Timeouts::METER
        .with_idle(Protocol::Custom2, Class::Unreplied, None)
        .and_then(|timeouts| {
            timeouts.with_idle(Protocol::Sctp, Class::New, Duration::from_millis(1500))
        })
        .expect("they are short");
    let idle = Duration::from_secs(7);
    Config::new(1000)
        .and_then(|config| config.with_max_bytes(1 << 20))
        .and_then(|config| config.with_tick(Duration::from_millis(33)))
        .and_then(|config| config.with_emergency(Emergency::new(900, 800, idle)?))
        .expect("it is valid")
        .with_timeouts(timeouts)
        .with_close_rule(CloseRule::FirstAck)
        .with_assurance(Assurance::new(3, Duration::from_secs(5)))
        .with_socket_reuse(false)
        .with_renewal(Renewal::Initiator)
}

#[test]
fn a_configuration_survives() {
    for config in [unusual(), Config::new(7).expect("some")] {
        let text = to_string(&config).expect("it can be serialized");
        assert_eq!(from_str::<Config>(&text).expect("it is valid"), config, "{text}");
        let bytes = postcard::to_allocvec(&config).expect("it can be serialized");
        assert_eq!(postcard::from_bytes(&bytes), Ok(config));
    }
}

#[test]
fn what_is_absent_is_the_default() {
    let config: Config = from_value(json!({"flows": 7})).expect("it is valid");
    assert_eq!(config, Config::new(7).expect("some"));
    let minute = json!({"secs": 60, "nanos": 0});
    let row = json!({"closing": null, "new": minute, "unreplied": minute, "established": minute});
    let timeouts: Timeouts = from_value(json!({"idle": {"Gre": row}})).expect("they are valid");
    let expected = Class::ALL.into_iter().try_fold(Timeouts::CONNTRACK, |timeouts, class| {
        let idle = (class != Class::Closing).then_some(Duration::from_secs(60));
        timeouts.with_idle(Protocol::Gre, class, idle)
    });
    assert_eq!(Ok(timeouts), expected);
    assert_eq!(from_str::<Timeouts>("{}").expect("they are valid"), Timeouts::CONNTRACK);
    let some = json!({"idle": {"Tcp": {}, "Udp": {"unreplied": minute, "new": null}}});
    let timeouts: Timeouts = from_value(some).expect("they are valid");
    let expected = Timeouts::CONNTRACK
        .with_idle(Protocol::Udp, Class::Unreplied, Duration::from_secs(60))
        .and_then(|timeouts| timeouts.with_idle(Protocol::Udp, Class::New, None));
    assert_eq!(Ok(timeouts), expected);
}

/// A configuration with another value somewhere.
fn with(path: &str, value: Value) -> Result<Config, serde_json::Error> {
    let mut config = to_value(unusual()).expect("it can be serialized");
    *config.pointer_mut(path).unwrap_or_else(|| panic!("{path} exists")) = value;
    from_value(config)
}

#[test]
fn what_constructors_refuse_is_an_error() {
    let zero = json!({"secs": 0, "nanos": 0});
    let long = json!({"secs": 1_u64 << 60, "nanos": 0});
    for (path, value) in [
        ("/flows", json!(0)),
        ("/flows", json!(1_u64 << 30)),
        ("/max_bytes", json!(100)),
        ("/tick", zero.clone()),
        ("/tick", long.clone()),
        ("/timeouts/active", zero.clone()),
        ("/timeouts/idle/Tcp/new", zero.clone()),
        ("/timeouts/idle/Tcp/new", long),
        ("/emergency/enter", json!(1001)),
        ("/emergency/leave", json!(901)),
        ("/emergency/idle", zero),
        ("/close_rule", json!("Never")),
        ("/timeouts/idle", json!({"Tpc": null})),
    ] {
        assert!(with(path, value.clone()).is_err(), "{path}: {value}");
    }
    assert!(with("/flows", json!(2000)).is_ok());
    assert!(from_value::<Config>(json!({"flows": 7, "bytes": 1})).is_err());
}
