//! `DistanceVector`: routers that exchange costs with their neighbours.

use flowtable::papers::threaded::{
    Advertisement, DistanceVector, Hop, Label, NoLabel, Port, RouterError, Stale,
};

use super::{ZERO, labels, theirs};

type Sent = Vec<(Port, Advertisement<&'static str>)>;

fn vector() -> DistanceVector<&'static str> {
    DistanceVector::new(labels(4), 64).unwrap()
}

fn flushed(router: &mut DistanceVector<&'static str>) -> Sent {
    let mut sent = vec![];
    router.flush(|port, advert| sent.push((port, advert)));
    router.validate().unwrap();
    sent
}

fn advert(destination: &'static str, cost: u32, label: Label) -> Advertisement<&'static str> {
    Advertisement { destination, cost, label }
}

/// An advert of an unreachable destination.
fn poison(destination: &'static str) -> Advertisement<&'static str> {
    advert(destination, 64, Label::NONE)
}

#[test]
fn a_row_follows_its_neighbours_label_without_messages() {
    let mut router = vector();
    router.link_up(1, 3).unwrap();
    router.link_up(2, 1).unwrap();
    router.on_advertisement(2, advert("D", 6, theirs(4)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    assert_eq!(flushed(&mut router), [(1, advert("D", 7, label))]);

    router.on_advertisement(2, advert("D", 6, theirs(5)), ZERO).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(5) }));
    assert_eq!(flushed(&mut router), []);
    // Nor for the label of a neighbour that is not the next hop.
    for index in 6..9 {
        router.on_advertisement(1, advert("D", 5, theirs(index)), ZERO).unwrap();
        assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(5) }));
        assert_eq!(flushed(&mut router), []);
    }
    // When that becomes the next hop, its last label is used.
    router.link_up(2, 9).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 1, label: theirs(8) }));
    assert_eq!(router.cost(&"D"), Some(8));
    assert_eq!(flushed(&mut router), [(1, poison("D")), (2, advert("D", 8, label))]);
    // A neighbour without labels gets packets without a label.
    router.on_advertisement(1, advert("D", 5, Label::NONE), ZERO).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 1, label: Label::NONE }));
}

#[test]
fn neighbours_get_each_change_once_and_nothing_else() {
    let mut router = vector();
    (1..4).for_each(|port| router.link_up(port, 1).unwrap());
    router.attach("here", ZERO).unwrap();
    let here = router.table().label(&"here").unwrap();
    let all = [1, 2, 3].map(|port| (port, advert("here", 0, here)));
    assert_eq!(flushed(&mut router), all);
    // Paths that change between two flushes.
    router.on_advertisement(2, advert("D", 7, theirs(1)), ZERO).unwrap();
    router.on_advertisement(1, advert("D", 7, theirs(2)), ZERO).unwrap();
    router.on_advertisement(3, advert("D", 9, theirs(3)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    // Of equal paths the one by the lowest port.
    let hop = Hop::Forward { port: 1, label: theirs(2) };
    assert_eq!(router.table().forward_to(&"D"), Some(hop));
    assert_eq!(flushed(&mut router), [(2, advert("D", 8, label)), (3, advert("D", 8, label))]);
    // Equal cost by another path: only the neighbours concerned are notified.
    router.on_advertisement(1, poison("D"), ZERO).unwrap();
    assert_eq!(flushed(&mut router), [(1, advert("D", 8, label)), (2, poison("D"))]);
    // Attached and detached between two flushes.
    router.attach("gone", ZERO).unwrap();
    router.detach(&"gone", ZERO).unwrap();
    assert_eq!(flushed(&mut router), []);
    // Detached and attached between two flushes: it has another label.
    router.detach(&"here", ZERO).unwrap();
    router.attach("here", ZERO).unwrap();
    let again = router.table().label(&"here").unwrap();
    assert_ne!(again, here);
    assert_eq!(flushed(&mut router), [1, 2, 3].map(|port| (port, advert("here", 0, again))));
    // A new neighbour, or one given to `resynchronise`, gets everything that it is not the next hop
    // of.
    router.link_down(3, ZERO).unwrap();
    router.link_up(3, 1).unwrap();
    router.resynchronise(2).unwrap();
    let everything =
        [(2, advert("here", 0, again)), (3, advert("D", 8, label)), (3, advert("here", 0, again))];
    assert_eq!(flushed(&mut router), everything);
}

#[test]
fn a_destination_without_a_path_has_no_row_and_its_label_is_stale() {
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    router.link_up(2, 60).unwrap();
    router.on_advertisement(1, advert("D", 5, theirs(1)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    router.on_advertisement(2, advert("D", 4, theirs(2)), ZERO).unwrap();
    flushed(&mut router);
    // 60 + 4 is infinity: a row, because a neighbour advertises it, and no path.
    router.link_down(1, ZERO).unwrap();
    assert_eq!((router.cost(&"D"), router.table().len()), (None, 1));
    assert_eq!(
        (router.table().forward(label), router.table().forward_to(&"D")),
        (Err(Stale), None)
    );
    assert_eq!(flushed(&mut router), [(2, poison("D"))]);
    router.link_up(2, 59).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(2) }));
    router.link_down(2, ZERO).unwrap();
    assert_eq!((router.table().len(), router.table().forward(label)), (0, Err(Stale)));
    assert_eq!(flushed(&mut router), []);
}

#[test]
fn invalid_adverts_change_nothing() {
    assert_eq!(DistanceVector::<u8>::new(labels(1), 1).unwrap_err(), RouterError::Cost);
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    (0..3).for_each(|n| {
        router.on_advertisement(1, advert(["a", "b", "c"][n], 1, theirs(1)), ZERO).unwrap();
    });
    router.attach("here", ZERO).unwrap();
    flushed(&mut router);
    let before = format!("{router:?}");
    let receive =
        |router: &mut DistanceVector<_>, port, advert| router.on_advertisement(port, advert, ZERO);
    assert_eq!(receive(&mut router, 2, advert("D", 1, theirs(1))), Err(RouterError::NoLink));
    assert_eq!(receive(&mut router, 1, advert("a", 65, theirs(1))), Err(RouterError::Cost));
    assert_eq!(receive(&mut router, 1, advert("a", u32::MAX, theirs(1))), Err(RouterError::Cost));
    assert_eq!(receive(&mut router, 1, advert("d", 1, theirs(1))), Err(NoLabel::Full.into()));
    assert_eq!(receive(&mut router, 1, poison("unknown")), Ok(()));
    for cost in [0, 64, u32::MAX] {
        assert_eq!(router.link_up(2, cost), Err(RouterError::LinkCost));
        assert_eq!(router.link_up(1, cost), Err(RouterError::LinkCost));
    }
    assert_eq!(router.link_down(2, ZERO), Err(RouterError::NoLink));
    assert_eq!(router.resynchronise(2), Err(RouterError::NoLink));
    assert_eq!(router.attach("here", ZERO), Err(RouterError::Attached));
    assert_eq!(router.attach("full", ZERO), Err(NoLabel::Full.into()));
    assert_eq!(router.detach(&"a", ZERO), Err(RouterError::Attached));
    assert_eq!(format!("{router:?}"), before);
    // A neighbour that advertises and withdraws many destinations leaves nothing behind.
    router.on_advertisement(1, poison("c"), ZERO).unwrap();
    flushed(&mut router);
    let empty = format!("{router:?}").len();
    for name in ["v", "w", "x", "y", "z"].repeat(100) {
        router.on_advertisement(1, advert(name, 1, theirs(1)), ZERO).unwrap();
        router.on_advertisement(1, poison(name), ZERO).unwrap();
    }
    assert!(format!("{router:?}").len() < empty + 50, "{router:?}");
    assert_eq!(flushed(&mut router), []);
}

/// Exchanges messages without delay until no router has any, and returns their number.
fn converge(
    routers: &mut [DistanceVector<&'static str>],
    ends: impl Fn(usize, Port) -> (usize, Port),
) -> usize {
    let (mut messages, mut before) = (0, None);
    while before != Some(messages) {
        before = Some(messages);
        for from in 0..routers.len() {
            for (port, advert) in flushed(&mut routers[from]) {
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
    // Split horizon: the other router sends nothing.
    assert_eq!(converge(&mut routers, other), 1);
    assert_eq!((routers[0].cost(&"D"), routers[1].cost(&"D")), (None, None));
}

#[test]
fn three_routers_count_to_infinity_and_stop() {
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

/// Two neighbours, with a third router on port 1 of each that advertises D.
fn two_routers_of_a_triangle() -> [DistanceVector<&'static str>; 2] {
    let mut routers = [vector(), vector()];
    for router in &mut routers {
        router.link_up(0, 1).unwrap();
        router.link_up(1, 1).unwrap();
        router.on_advertisement(1, advert("D", 0, theirs(3)), ZERO).unwrap();
    }
    converge_without_third(&mut routers);
    routers
}

/// Exchanges messages between the two; those to the third are lost.
fn converge_without_third(routers: &mut [DistanceVector<&'static str>; 2]) {
    for _ in 0..200 {
        for from in 0..2 {
            for (port, advert) in flushed(&mut routers[from]) {
                if port == 0 {
                    routers[1 - from].on_advertisement(0, advert, ZERO).unwrap();
                }
            }
        }
    }
    assert!(routers.iter_mut().all(|router| flushed(router).is_empty()));
}

#[test]
fn resynchronising_includes_withdrawn_destinations() {
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    router.link_up(2, 1).unwrap();
    router.attach("D", ZERO).unwrap();
    router.on_advertisement(2, advert("E", 1, theirs(1)), ZERO).unwrap();
    flushed(&mut router);
    router.detach(&"D", ZERO).unwrap();
    router.resynchronise(1).unwrap();
    let label = router.table().label(&"E").unwrap();
    assert_eq!(
        flushed(&mut router),
        [(1, poison("D")), (2, poison("D")), (1, advert("E", 2, label))]
    );
    // The next hop becomes the neighbour given to `resynchronise`.
    router.on_advertisement(1, advert("E", 0, theirs(2)), ZERO).unwrap();
    router.resynchronise(1).unwrap();
    assert_eq!(flushed(&mut router), [(1, poison("E")), (2, advert("E", 1, label))]);
    router.resynchronise(1).unwrap();
    assert_eq!(flushed(&mut router), [], "already sent");
}

#[test]
fn two_routers_that_point_at_each_other_leave_the_loop() {
    for resynchronise in [false, true] {
        let mut routers = two_routers_of_a_triangle();
        for router in &mut routers {
            router.link_down(1, ZERO).unwrap();
            if resynchronise {
                router.resynchronise(0).unwrap();
            }
            // Until their adverts have crossed, each forwards to the other.
            assert!(matches!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 0, .. })));
        }
        converge_without_third(&mut routers);
        assert_eq!([0, 1].map(|r: usize| routers[r].cost(&"D")), [None; 2], "{resynchronise}");
        assert!(routers.iter().all(|router| router.table().is_empty()));
    }
}
