//! Routers that know by what their neighbours say.

use flowtable::threaded::{
    Advertisement, DistanceVector, Hop, Label, NoLabel, Port, RouterError, Stale,
};

use super::{ZERO, labels, theirs};

type Told = Vec<(Port, Advertisement<&'static str>)>;

fn vector() -> DistanceVector<&'static str> {
    DistanceVector::new(labels(4), 64).unwrap()
}

fn told(router: &mut DistanceVector<&'static str>) -> Told {
    let mut told = vec![];
    router.flush(|port, advert| told.push((port, advert)));
    router.validate().unwrap();
    assert!(!router.has_pending());
    told
}

fn advert(destination: &'static str, cost: u32, label: Label) -> Advertisement<&'static str> {
    Advertisement { destination, cost, label }
}

/// The same as [`advert`], of something that cannot be reached.
fn poison(destination: &'static str) -> Advertisement<&'static str> {
    advert(destination, 64, Label::NONE)
}

#[test]
fn a_row_follows_its_neighbours_label_and_nobody_is_told() {
    let mut router = vector();
    router.link_up(1, 3).unwrap();
    router.link_up(2, 1).unwrap();
    router.on_advertisement(2, advert("D", 6, theirs(4)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    assert_eq!(told(&mut router), [(1, advert("D", 7, label))]);

    router.on_advertisement(2, advert("D", 6, theirs(5)), ZERO).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(5) }));
    assert_eq!(told(&mut router), []);
    // Nor if a neighbour that is not chosen has another.
    for index in 6..9 {
        router.on_advertisement(1, advert("D", 5, theirs(index)), ZERO).unwrap();
        assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(5) }));
        assert_eq!(told(&mut router), []);
    }
    // When that is chosen, its last one counts.
    router.link_cost(2, 9).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 1, label: theirs(8) }));
    assert_eq!(router.cost(&"D"), Some(8));
    assert_eq!(told(&mut router), [(1, poison("D")), (2, advert("D", 8, label))]);
    // A neighbour that does not thread is sent packets to look up.
    router.on_advertisement(1, advert("D", 5, Label::NONE), ZERO).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 1, label: Label::NONE }));
}

#[test]
fn neighbours_hear_what_changed_once_and_nothing_else() {
    let mut router = vector();
    (1..4).for_each(|port| router.link_up(port, 1).unwrap());
    router.attach("here", ZERO).unwrap();
    let here = router.table().label(&"here").unwrap();
    let all = [1, 2, 3].map(|port| (port, advert("here", 0, here)));
    assert_eq!(told(&mut router), all);
    // Ways that come and go in between.
    router.on_advertisement(2, advert("D", 7, theirs(1)), ZERO).unwrap();
    router.on_advertisement(1, advert("D", 7, theirs(2)), ZERO).unwrap();
    router.on_advertisement(3, advert("D", 9, theirs(3)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    // Of equal ways the one over the lowest port.
    let way = Hop::Forward { port: 1, label: theirs(2) };
    assert_eq!(router.table().forward_to(&"D"), Some(way));
    assert_eq!(told(&mut router), [(2, advert("D", 8, label)), (3, advert("D", 8, label))]);
    // As dear as before, by another way: only they hear who need it.
    router.on_advertisement(1, poison("D"), ZERO).unwrap();
    assert_eq!(told(&mut router), [(1, advert("D", 8, label)), (2, poison("D"))]);
    // It was here for a moment.
    router.attach("gone", ZERO).unwrap();
    router.detach(&"gone", ZERO).unwrap();
    assert_eq!(told(&mut router), []);
    // It was gone for a moment, and has another label since.
    router.detach(&"here", ZERO).unwrap();
    router.attach("here", ZERO).unwrap();
    let again = router.table().label(&"here").unwrap();
    assert_ne!(again, here);
    assert_eq!(told(&mut router), [1, 2, 3].map(|port| (port, advert("here", 0, again))));
    // Who comes late, or asks, hears everything that it is not the way to.
    router.link_down(3, ZERO).unwrap();
    router.link_up(3, 1).unwrap();
    router.resynchronise(2).unwrap();
    let everything =
        [(2, advert("here", 0, again)), (3, advert("D", 8, label)), (3, advert("here", 0, again))];
    assert_eq!(told(&mut router), everything);
}

#[test]
fn a_destination_without_a_way_has_no_row_and_its_label_is_stale() {
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    router.link_up(2, 60).unwrap();
    router.on_advertisement(1, advert("D", 5, theirs(1)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    router.on_advertisement(2, advert("D", 4, theirs(2)), ZERO).unwrap();
    told(&mut router);
    // 60 + 4 is infinity: there is a row, as a neighbour knows it, and no way.
    router.link_down(1, ZERO).unwrap();
    assert_eq!((router.cost(&"D"), router.table().len()), (None, 1));
    assert_eq!(
        (router.table().forward(label), router.table().forward_to(&"D")),
        (Err(Stale), None)
    );
    assert_eq!(told(&mut router), [(2, poison("D"))]);
    router.link_cost(2, 59).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(2) }));
    router.link_down(2, ZERO).unwrap();
    assert_eq!((router.table().len(), router.table().forward(label)), (0, Err(Stale)));
    assert_eq!(told(&mut router), []);
}

#[test]
fn what_neighbours_must_not_say_changes_nothing() {
    assert_eq!(DistanceVector::<u8>::new(labels(1), 1).unwrap_err(), RouterError::Cost);
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    (0..3).for_each(|n| {
        router.on_advertisement(1, advert(["a", "b", "c"][n], 1, theirs(1)), ZERO).unwrap()
    });
    router.attach("here", ZERO).unwrap();
    told(&mut router);
    let before = format!("{router:?}");
    let hear =
        |router: &mut DistanceVector<_>, port, advert| router.on_advertisement(port, advert, ZERO);
    assert_eq!(hear(&mut router, 2, advert("D", 1, theirs(1))), Err(RouterError::NoLink));
    assert_eq!(hear(&mut router, 1, advert("a", 65, theirs(1))), Err(RouterError::Cost));
    assert_eq!(hear(&mut router, 1, advert("a", u32::MAX, theirs(1))), Err(RouterError::Cost));
    assert_eq!(hear(&mut router, 1, advert("d", 1, theirs(1))), Err(NoLabel::Full.into()));
    assert_eq!(hear(&mut router, 1, poison("unknown")), Ok(()));
    for cost in [0, 64, u32::MAX] {
        assert_eq!(router.link_up(2, cost), Err(RouterError::LinkCost));
        assert_eq!(router.link_cost(1, cost), Err(RouterError::LinkCost));
    }
    assert_eq!(router.link_up(1, 1), Err(RouterError::LinkIsUp));
    assert_eq!(router.link_cost(2, 1), Err(RouterError::NoLink));
    assert_eq!(router.link_down(2, ZERO), Err(RouterError::NoLink));
    assert_eq!(router.resynchronise(2), Err(RouterError::NoLink));
    assert_eq!(router.attach("here", ZERO), Err(RouterError::Attached));
    assert_eq!(router.attach("full", ZERO), Err(NoLabel::Full.into()));
    assert_eq!(router.detach(&"a", ZERO), Err(RouterError::Attached));
    assert_eq!(format!("{router:?}"), before);
    // A neighbour that floods with destinations and takes them back leaves nothing behind.
    router.on_advertisement(1, poison("c"), ZERO).unwrap();
    told(&mut router);
    let empty = format!("{router:?}").len();
    for name in ["v", "w", "x", "y", "z"].repeat(100) {
        router.on_advertisement(1, advert(name, 1, theirs(1)), ZERO).unwrap();
        router.on_advertisement(1, poison(name), ZERO).unwrap();
    }
    assert!(format!("{router:?}").len() < empty + 50, "{router:?}");
    assert!(!router.has_pending());
}

/// Routers in a row or in a circle, who hear each other at once: messages until they are silent.
fn converge(
    routers: &mut [DistanceVector<&'static str>],
    ends: impl Fn(usize, Port) -> (usize, Port),
) -> usize {
    let mut messages = 0;
    while routers.iter().any(DistanceVector::has_pending) {
        for from in 0..routers.len() {
            for (port, advert) in told(&mut routers[from]) {
                let (to, at) = ends(from, port);
                routers[to].on_advertisement(at, advert, ZERO).unwrap();
                messages += 1;
            }
        }
    }
    messages
}

#[test]
fn two_routers_do_not_count_to_infinity() {
    let mut routers = [vector(), vector()];
    routers.iter_mut().for_each(|router| router.link_up(0, 1).unwrap());
    routers[0].attach("D", ZERO).unwrap();
    let other = |from, port| (1 - from, port);
    converge(&mut routers, other);
    assert_eq!(routers[1].cost(&"D"), Some(1));
    routers[0].detach(&"D", ZERO).unwrap();
    // Split horizon: the other one has nothing to say.
    assert_eq!(converge(&mut routers, other), 1);
    assert_eq!((routers[0].cost(&"D"), routers[1].cost(&"D")), (None, None));
}

#[test]
fn three_routers_count_until_infinity_and_no_further() {
    let mut routers = [vector(), vector(), vector()];
    // Port 0 leads to the next, port 1 to the one before.
    for router in &mut routers {
        router.link_up(0, 1).unwrap();
        router.link_up(1, 1).unwrap();
    }
    let next = |from, port| if port == 0 { ((from + 1) % 3, 1) } else { ((from + 2) % 3, 0) };
    routers[0].attach("D", ZERO).unwrap();
    converge(&mut routers, next);
    assert_eq!([0, 1, 2].map(|r: usize| routers[r].cost(&"D")), [Some(0), Some(1), Some(1)]);
    routers[0].detach(&"D", ZERO).unwrap();
    let messages = converge(&mut routers, next);
    assert!(messages <= 3 * 64, "{messages}");
    assert!(routers.iter().all(|router| router.cost(&"D").is_none() && router.table().is_empty()));
}

/// Two neighbours with a third behind port 1 of each, which has D.
fn two_of_a_triangle() -> [DistanceVector<&'static str>; 2] {
    let mut routers = [vector(), vector()];
    for router in &mut routers {
        router.link_up(0, 1).unwrap();
        router.link_up(1, 1).unwrap();
        router.on_advertisement(1, advert("D", 0, theirs(3)), ZERO).unwrap();
    }
    converge_without(&mut routers);
    routers
}

/// Until the two have nothing to say to each other; what they say to the third is lost.
fn converge_without(routers: &mut [DistanceVector<&'static str>; 2]) {
    for _ in 0..200 {
        for from in 0..2 {
            for (port, advert) in told(&mut routers[from]) {
                if port == 0 {
                    routers[1 - from].on_advertisement(0, advert, ZERO).unwrap();
                }
            }
        }
    }
    assert!(!routers.iter().any(DistanceVector::has_pending));
}

#[test]
fn who_asks_for_everything_hears_what_is_gone_as_well() {
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    router.link_up(2, 1).unwrap();
    router.attach("D", ZERO).unwrap();
    router.on_advertisement(2, advert("E", 1, theirs(1)), ZERO).unwrap();
    told(&mut router);
    router.detach(&"D", ZERO).unwrap();
    router.resynchronise(1).unwrap();
    let label = router.table().label(&"E").unwrap();
    assert_eq!(told(&mut router), [(1, poison("D")), (2, poison("D")), (1, advert("E", 2, label))]);
    // A way that turns to the neighbour who asks.
    router.on_advertisement(1, advert("E", 0, theirs(2)), ZERO).unwrap();
    router.resynchronise(1).unwrap();
    assert_eq!(told(&mut router), [(1, poison("E")), (2, advert("E", 1, label))]);
    router.resynchronise(1).unwrap();
    assert_eq!(told(&mut router), [], "it has heard of that");
}

#[test]
fn two_routers_that_ask_each_other_do_not_stay_in_a_loop() {
    for repeat in [false, true] {
        let mut routers = two_of_a_triangle();
        for router in &mut routers {
            router.link_down(1, ZERO).unwrap();
            if repeat {
                router.resynchronise(0).unwrap();
            }
            // Until the adverts have crossed each sends to the other: split horizon says so, and has to be heard.
            assert!(matches!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 0, .. })));
        }
        converge_without(&mut routers);
        assert_eq!([0, 1].map(|r: usize| routers[r].cost(&"D")), [None; 2], "{repeat}");
        assert!(routers.iter().all(|router| router.table().is_empty()));
    }
}
