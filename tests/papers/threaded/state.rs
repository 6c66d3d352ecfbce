//! `LinkState`: routers that flood the states of all routers.

use core::time::Duration;

use flowtable::papers::threaded::{
    Hop, Label, Labels, LinkState, Message, NoLabel, Port, RouterError, RouterLink, RouterState,
    Stale,
};

use super::{ZERO, at, labels, theirs};

/// A link state router.
fn state(own: u32) -> LinkState<&'static str> {
    LinkState::new(own, labels(4), 5).unwrap()
}

fn state_of(
    router: u32,
    sequence: u64,
    links: &[(u32, u32)],
    destinations: &[&'static str],
) -> Message<&'static str> {
    let links = links.iter().map(|&(router, cost)| RouterLink { router, cost }).collect();
    let destinations = destinations.to_vec();
    Message::State(RouterState { router, sequence, links, destinations })
}

fn flushed(router: &mut LinkState<&'static str>) -> Vec<(Port, Message<&'static str>)> {
    let mut sent = vec![];
    router.flush(ZERO, |port, message| sent.push((port, message))).unwrap();
    router.validate().unwrap();
    sent
}

#[test]
fn a_row_is_derived_from_paths_and_label_in_any_order_of_arrival() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.on_message(8, state_of(2, 1, &[(1, 3)], &["D"])).unwrap();
    flushed(&mut router);
    let label = router.table().label(&"D").unwrap();
    assert_eq!(router.cost(&"D"), Some(3));
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 8, label: Label::NONE }));
    for label_there in [theirs(1), theirs(2), Label::NONE] {
        router.on_message(8, Message::Label { destination: "D", label: label_there }).unwrap();
        assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 8, label: label_there }));
        assert_eq!(flushed(&mut router), [], "labels of neighbours are not flooded");
    }
    // A label that arrives before its destination.
    router.on_message(8, Message::Label { destination: "E", label: theirs(3) }).unwrap();
    router.on_message(8, state_of(2, 2, &[(1, 3)], &["E"])).unwrap();
    let sent = flushed(&mut router);
    assert_eq!(router.table().forward_to(&"E"), Some(Hop::Forward { port: 8, label: theirs(3) }));
    let new = router.table().label(&"E").unwrap();
    let changes = [("D", Label::NONE), ("E", new)];
    assert_eq!(
        sent,
        changes.map(|(destination, label)| (8, Message::Label { destination, label }))
    );
    // Without the link nothing is forwarded.
    router.link_down(8).unwrap();
    assert_eq!((router.table().forward(new), router.table().forward_to(&"E")), (Err(Stale), None));
    flushed(&mut router);
    assert!(router.table().is_empty());
}

#[test]
fn ties_are_resolved_by_the_lowest_port_and_the_lowest_router_id() {
    let mut router = state(1);
    router.link_up(9, 2, 1).unwrap();
    router.link_up(7, 3, 2).unwrap();
    for message in [
        state_of(2, 1, &[(1, 9), (4, 3)], &[]),
        state_of(3, 1, &[(4, 2), (1, 9), (5, 2)], &[]),
        state_of(5, 1, &[(3, 2)], &["D"]),
        state_of(4, 1, &[(2, 1), (3, 1)], &["D"]),
    ] {
        router.on_message(9, message).unwrap();
    }
    flushed(&mut router);
    // Router 4 by 2 or by 3 costs 4, and so does router 5 by 3.
    assert_eq!(router.cost(&"D"), Some(4));
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 7, label: Label::NONE }));
    router.link_up(7, 3, 3).unwrap();
    flushed(&mut router);
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 9, label: Label::NONE }));
    // A link counts if both ends advertise it.
    router.on_message(9, state_of(4, 2, &[(3, 1)], &["D"])).unwrap();
    flushed(&mut router);
    assert_eq!(router.cost(&"D"), Some(5));
    // Two links to one neighbour.
    router.link_up(2, 3, 1).unwrap();
    flushed(&mut router);
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 2, label: Label::NONE }));
    let links = [(2, 1), (3, 1), (3, 3)].map(|(router, cost)| RouterLink { router, cost });
    assert_eq!(router.state(1).unwrap().links, links);
    // A local destination costs nothing.
    router.attach("D").unwrap();
    flushed(&mut router);
    assert_eq!((router.cost(&"D"), router.table().forward_to(&"D")), (Some(0), Some(Hop::Deliver)));
    // A detached destination is no longer delivered.
    router.detach(&"D").unwrap();
    assert_eq!(router.table().forward_to(&"D"), None);
    flushed(&mut router);
    assert_eq!(router.cost(&"D"), Some(3));
}

#[test]
fn a_restarted_router_outbids_its_old_sequence_numbers() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.attach("new").unwrap();
    assert_eq!(flushed(&mut router)[0], (8, state_of(1, 1, &[(2, 3)], &["new"])));
    router.on_message(8, state_of(1, 41, &[(2, 3), (3, 3)], &["old"])).unwrap();
    assert_eq!(flushed(&mut router), [(8, state_of(1, 42, &[(2, 3)], &["new"]))]);
    // Its own current state is ignored.
    router.on_message(8, state_of(1, 42, &[(2, 3)], &["new"])).unwrap();
    assert_eq!(flushed(&mut router), []);
    // With equal sequence numbers the greater state wins, so only a greater one is outbid.
    router.on_message(8, state_of(1, 42, &[(2, 2)], &[])).unwrap();
    assert_eq!(flushed(&mut router), []);
    router.on_message(8, state_of(1, 42, &[(2, 4)], &[])).unwrap();
    assert_eq!(flushed(&mut router), [(8, state_of(1, 43, &[(2, 3)], &["new"]))]);
}

#[test]
fn states_are_flooded_except_to_their_sender_and_old_ones_are_not() {
    let mut router = state(1);
    (7..10).for_each(|port| router.link_up(port, u32::from(port), 1).unwrap());
    assert_eq!(flushed(&mut router).len(), 3);
    let state = state_of(7, 5, &[], &[]);
    router.on_message(7, state.clone()).unwrap();
    assert_eq!(flushed(&mut router), [(8, state.clone()), (9, state.clone())]);
    for sequence in [0, 4] {
        router.on_message(8, state_of(7, sequence, &[(2, 2)], &["x"])).unwrap();
        assert_eq!(flushed(&mut router), []);
    }
    router.on_message(8, state_of(7, 5, &[], &["x"])).unwrap();
    assert_eq!(flushed(&mut router), [7, 9].map(|port| (port, state_of(7, 5, &[], &["x"]))));
    router.on_message(9, state).unwrap();
    assert_eq!(flushed(&mut router), [], "the greater state is kept");
    // `resynchronise` sends everything to one neighbour, and nothing to others.
    router.resynchronise(9).unwrap();
    let links: Vec<(u32, u32)> = (7..10).map(|neighbour| (neighbour, 1)).collect();
    assert_eq!(
        flushed(&mut router),
        [(9, state_of(1, 1, &links, &[])), (9, state_of(7, 5, &[], &["x"]))]
    );
    router.remove_router(7);
    router.remove_router(1);
    assert!(router.state(7).is_none() && router.state(1).is_some());
}

#[test]
fn invalid_messages_change_nothing() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    (2..6).for_each(|id| router.on_message(8, state_of(id, 1, &[(1, 1)], &["D"])).unwrap());
    (0..4).for_each(|n| {
        let destination = ["a", "b", "c", "d"][n];
        router.on_message(8, Message::Label { destination, label: theirs(1) }).unwrap();
    });
    flushed(&mut router);
    let before = format!("{router:?}");
    for (message, why) in [
        (state_of(6, 1, &[], &[]), RouterError::TooManyRouters),
        (state_of(2, u64::MAX, &[], &[]), RouterError::Sequence),
        (state_of(2, 2, &[(1, 1); 6], &[]), RouterError::TooLong),
        (state_of(2, 2, &[], &["D"; 5]), RouterError::TooLong),
        (state_of(2, 2, &[(1, 0)], &[]), RouterError::LinkCost),
        (state_of(2, 2, &[(1, u32::MAX)], &[]), RouterError::LinkCost),
        (Message::Label { destination: "D", label: theirs(9) }, NoLabel::Full.into()),
    ] {
        assert_eq!(router.on_message(8, message), Err(why));
    }
    assert_eq!(router.on_message(9, state_of(2, 2, &[], &[])), Err(RouterError::NoLink));
    assert_eq!(router.link_up(8, 3, 1), Err(RouterError::LinkIsUp));
    assert_eq!(router.link_up(9, 3, 0), Err(RouterError::LinkCost));
    assert_eq!(router.link_up(9, 3, u32::MAX), Err(RouterError::LinkCost));
    assert_eq!(router.link_down(9), Err(RouterError::NoLink));
    assert_eq!(router.resynchronise(9), Err(RouterError::NoLink));
    assert_eq!(router.detach(&"D"), Err(RouterError::Attached));
    assert_eq!(format!("{router:?}"), before);
    (9..13).for_each(|port| router.link_up(port, 3, 1).unwrap());
    assert_eq!(router.link_up(13, 3, 1), Err(RouterError::TooLong));
    // Costs that overflow are no paths, and a link to the router itself is invalid.
    router.link_up(8, 1, 1).unwrap_err();
    let expensive = u32::MAX - 1;
    router.on_message(8, state_of(3, 2, &[(1, 1), (2, expensive)], &[])).unwrap();
    router.on_message(8, state_of(2, 2, &[(3, expensive), (1, 1)], &["far"])).unwrap();
    router.link_down(8).unwrap();
    flushed(&mut router);
    assert_eq!(router.cost(&"far"), None);
}

#[test]
fn destinations_without_rows_get_them_when_rows_are_free() {
    let labels = Labels { capacity: 2, hold_down: Duration::from_secs(10), start: 0 };
    let mut router = LinkState::new(1, labels, 2).unwrap();
    router.attach("a").unwrap();
    router.attach("b").unwrap();
    assert_eq!(router.attach("c"), Err(NoLabel::Full.into()));
    router.flush(ZERO, |_, _: Message<&str>| {}).unwrap();
    router.detach(&"a").unwrap();
    router.attach("c").unwrap();
    assert_eq!(router.flush(at(1), |_, _| {}), Err(NoLabel::HeldDown));
    assert_eq!((router.table().len(), router.cost(&"b")), (1, Some(0)));
    router.validate().unwrap();
    assert_eq!(router.flush(at(10), |_, _| {}), Err(NoLabel::HeldDown));
    assert_eq!(router.flush(at(11), |_, _| {}), Ok(()));
    assert_eq!(router.table().forward_to(&"c"), Some(Hop::Deliver));
    router.validate().unwrap();
}

#[test]
fn resynchronising_includes_withdrawn_labels() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.attach("gone").unwrap();
    router.attach("here").unwrap();
    flushed(&mut router);
    router.detach(&"gone").unwrap();
    router.resynchronise(8).unwrap();
    let label = router.table().label(&"here").unwrap();
    let expected = [
        state_of(1, 2, &[(2, 3)], &["here"]),
        Message::Label { destination: "gone", label: Label::NONE },
        Message::Label { destination: "here", label },
    ];
    assert_eq!(flushed(&mut router), expected.map(|message| (8, message)));
}

#[test]
fn a_label_does_not_reopen_a_row_whose_link_went_down() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.on_message(8, state_of(2, 1, &[(1, 3)], &["D"])).unwrap();
    router.on_message(8, Message::Label { destination: "D", label: theirs(1) }).unwrap();
    flushed(&mut router);
    let own = router.table().label(&"D").unwrap();
    router.link_down(8).unwrap();
    // Another neighbour, on the same port.
    router.link_up(8, 3, 1).unwrap();
    router.on_message(8, Message::Label { destination: "D", label: theirs(2) }).unwrap();
    assert_eq!((router.table().forward(own), router.cost(&"D")), (Err(Stale), None));
    flushed(&mut router);
    assert!(router.table().is_empty());
    // Nor the row of a destination that was detached.
    router.attach("D").unwrap();
    flushed(&mut router);
    router.detach(&"D").unwrap();
    router.on_message(8, Message::Label { destination: "D", label: theirs(2) }).unwrap();
    assert_eq!((router.table().forward_to(&"D"), router.cost(&"D")), (None, None));
}

#[test]
fn a_forged_sequence_number_cannot_make_a_router_send_a_refused_one() {
    let half = 1 << 63;
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    flushed(&mut router);
    for sequence in [half, u64::MAX - 1, u64::MAX] {
        assert_eq!(
            router.on_message(8, state_of(1, sequence, &[], &[])),
            Err(RouterError::Sequence)
        );
        assert_eq!(flushed(&mut router), []);
    }
    // The greatest number that it outbids leaves half of the range.
    router.on_message(8, state_of(1, half - 1, &[], &[])).unwrap();
    assert_eq!(flushed(&mut router), [(8, state_of(1, half, &[(2, 3)], &[]))]);
    router.on_message(8, state_of(1, half, &[(2, 3)], &[])).unwrap();
    router.attach("D").unwrap();
    let sent = flushed(&mut router);
    assert_eq!(sent[0], (8, state_of(1, half + 1, &[(2, 3)], &["D"])));
    let mut neighbour = state(2);
    neighbour.link_up(7, 1, 3).unwrap();
    // Others keep a forged state with a greater number until `remove_router`.
    neighbour.on_message(7, state_of(1, u64::MAX - 1, &[], &[])).unwrap();
    neighbour.on_message(7, sent[0].1.clone()).unwrap();
    assert_eq!(neighbour.state(1).unwrap().sequence, u64::MAX - 1);
    neighbour.remove_router(1);
    neighbour.on_message(7, sent[0].1.clone()).unwrap();
    flushed(&mut neighbour);
    assert_eq!(neighbour.cost(&"D"), Some(3));
}
