//! Routers that know by what all say.

use core::time::Duration;

use flowtable::threaded::{
    Hop, Label, Labels, LinkState, Message, NoLabel, Port, RouterError, RouterState, Stale,
};

use super::{ZERO, at, labels, theirs};

/// A link state router, and what it says.
fn state(own: u32) -> LinkState<&'static str> {
    LinkState::new(own, labels(4), 5)
}

fn says(
    router: u32,
    sequence: u64,
    links: &[(u32, u32)],
    destinations: &[&'static str],
) -> Message<&'static str> {
    let (links, destinations) = (links.to_vec(), destinations.to_vec());
    Message::State(RouterState { router, sequence, links, destinations })
}

fn flushed(router: &mut LinkState<&'static str>) -> Vec<(Port, Message<&'static str>)> {
    let mut told = vec![];
    router.flush(ZERO, |port, message| told.push((port, message))).unwrap();
    router.validate().unwrap();
    assert!(!router.has_pending());
    told
}

#[test]
fn a_row_follows_from_the_paths_and_the_label_whichever_comes_first() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.on_message(8, says(2, 1, &[(1, 3)], &["D"])).unwrap();
    flushed(&mut router);
    let label = router.table().label(&"D").unwrap();
    assert_eq!(router.cost(&"D"), Some(3));
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 8, label: Label::NONE }));
    for label_there in [theirs(1), theirs(2), Label::NONE] {
        router.on_message(8, Message::Label { destination: "D", label: label_there }).unwrap();
        assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 8, label: label_there }));
        assert_eq!(flushed(&mut router), [], "nobody else's business");
    }
    // The label of what is not there yet.
    router.on_message(8, Message::Label { destination: "E", label: theirs(3) }).unwrap();
    router.on_message(8, says(2, 2, &[(1, 3)], &["E"])).unwrap();
    let told = flushed(&mut router);
    assert_eq!(router.table().forward_to(&"E"), Some(Hop::Forward { port: 8, label: theirs(3) }));
    let new = router.table().label(&"E").unwrap();
    let news = [("D", Label::NONE), ("E", new)];
    assert_eq!(told, news.map(|(destination, label)| (8, Message::Label { destination, label })));
    // No packets go where nobody is.
    router.link_down(8).unwrap();
    assert_eq!((router.table().forward(new), router.table().forward_to(&"E")), (Err(Stale), None));
    flushed(&mut router);
    assert!(router.table().is_empty());
}

#[test]
fn of_equal_paths_the_lowest_port_and_of_equal_routers_the_lowest_number() {
    let mut router = state(1);
    router.link_up(9, 2, 1).unwrap();
    router.link_up(7, 3, 2).unwrap();
    for message in [
        says(2, 1, &[(1, 9), (4, 3)], &[]),
        says(3, 1, &[(4, 2), (1, 9), (5, 2)], &[]),
        says(5, 1, &[(3, 2)], &["D"]),
        says(4, 1, &[(2, 1), (3, 1)], &["D"]),
    ] {
        router.on_message(9, message).unwrap();
    }
    flushed(&mut router);
    // 4 over 2 and over 3 costs 4; so does 5 over 3.
    assert_eq!(router.cost(&"D"), Some(4));
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 7, label: Label::NONE }));
    router.link_cost(7, 3).unwrap();
    flushed(&mut router);
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 9, label: Label::NONE }));
    // A link counts if both ends have it.
    router.on_message(9, says(4, 2, &[(3, 1)], &["D"])).unwrap();
    flushed(&mut router);
    assert_eq!(router.cost(&"D"), Some(5));
    // Two links to one neighbour.
    router.link_up(2, 3, 1).unwrap();
    flushed(&mut router);
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 2, label: Label::NONE }));
    assert_eq!(router.state(1).unwrap().links, [(2, 1), (3, 1), (3, 3)]);
    // Here it costs nothing.
    router.attach("D").unwrap();
    flushed(&mut router);
    assert_eq!((router.cost(&"D"), router.table().forward_to(&"D")), (Some(0), Some(Hop::Deliver)));
    // It is not delivered where it was, from now on.
    router.detach(&"D").unwrap();
    assert_eq!(router.table().forward_to(&"D"), None);
    flushed(&mut router);
    assert_eq!(router.cost(&"D"), Some(3));
}

#[test]
fn a_router_that_restarts_outbids_its_former_life() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.attach("new").unwrap();
    assert_eq!(flushed(&mut router)[0], (8, says(1, 1, &[(2, 3)], &["new"])));
    router.on_message(8, says(1, 41, &[(2, 3), (3, 3)], &["old"])).unwrap();
    assert_eq!(flushed(&mut router), [(8, says(1, 42, &[(2, 3)], &["new"]))]);
    // Its own words, come back, say nothing.
    router.on_message(8, says(1, 42, &[(2, 3)], &["new"])).unwrap();
    assert_eq!(flushed(&mut router), []);
    // The same number, and other words: everybody takes the greater ones, so it must outbid those only.
    router.on_message(8, says(1, 42, &[(2, 2)], &[])).unwrap();
    assert_eq!(flushed(&mut router), []);
    router.on_message(8, says(1, 42, &[(2, 4)], &[])).unwrap();
    assert_eq!(flushed(&mut router), [(8, says(1, 43, &[(2, 3)], &["new"]))]);
}

#[test]
fn states_are_told_on_to_all_but_who_said_them_and_old_ones_are_not() {
    let mut router = state(1);
    (7..10).for_each(|port| router.link_up(port, u32::from(port), 1).unwrap());
    assert_eq!(flushed(&mut router).len(), 3);
    let news = says(7, 5, &[], &[]);
    router.on_message(7, news.clone()).unwrap();
    assert_eq!(flushed(&mut router), [(8, news.clone()), (9, news.clone())]);
    for sequence in [0, 4] {
        router.on_message(8, says(7, sequence, &[(2, 2)], &["x"])).unwrap();
        assert_eq!(flushed(&mut router), []);
    }
    router.on_message(8, says(7, 5, &[], &["x"])).unwrap();
    assert_eq!(flushed(&mut router), [7, 9].map(|port| (port, says(7, 5, &[], &["x"]))));
    router.on_message(9, news).unwrap();
    assert_eq!(flushed(&mut router), [], "the greater words hold");
    // Who asks hears everything, and nobody else anything.
    router.resynchronise(9).unwrap();
    let links: Vec<(u32, u32)> = (7..10).map(|neighbour| (neighbour, 1)).collect();
    assert_eq!(flushed(&mut router), [(9, says(1, 1, &links, &[])), (9, says(7, 5, &[], &["x"]))]);
    router.remove_router(7);
    router.remove_router(1);
    assert!(router.state(7).is_none() && router.state(1).is_some());
}

#[test]
fn what_cannot_be_in_a_database_changes_nothing() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    (2..6).for_each(|id| router.on_message(8, says(id, 1, &[(1, 1)], &["D"])).unwrap());
    (0..4).for_each(|n| {
        let destination = ["a", "b", "c", "d"][n];
        router.on_message(8, Message::Label { destination, label: theirs(1) }).unwrap();
    });
    flushed(&mut router);
    let before = format!("{router:?}");
    for (message, why) in [
        (says(6, 1, &[], &[]), RouterError::TooManyRouters),
        (says(2, u64::MAX, &[], &[]), RouterError::Sequence),
        (says(2, 2, &[(1, 1); 6], &[]), RouterError::TooLong),
        (says(2, 2, &[], &["D"; 5]), RouterError::TooLong),
        (says(2, 2, &[(1, 0)], &[]), RouterError::LinkCost),
        (says(2, 2, &[(1, u32::MAX)], &[]), RouterError::LinkCost),
        (Message::Label { destination: "D", label: theirs(9) }, NoLabel::Full.into()),
    ] {
        assert_eq!(router.on_message(8, message), Err(why));
    }
    assert_eq!(router.on_message(9, says(2, 2, &[], &[])), Err(RouterError::NoLink));
    assert_eq!(router.link_up(8, 3, 1), Err(RouterError::LinkIsUp));
    assert_eq!(router.link_up(9, 3, 0), Err(RouterError::LinkCost));
    assert_eq!(router.link_cost(8, u32::MAX), Err(RouterError::LinkCost));
    assert_eq!(router.link_cost(9, 1), Err(RouterError::NoLink));
    assert_eq!(router.link_down(9), Err(RouterError::NoLink));
    assert_eq!(router.resynchronise(9), Err(RouterError::NoLink));
    assert_eq!(router.detach(&"D"), Err(RouterError::Attached));
    assert_eq!(format!("{router:?}"), before);
    (9..13).for_each(|port| router.link_up(port, 3, 1).unwrap());
    assert_eq!(router.link_up(13, 3, 1), Err(RouterError::TooLong));
    // Costs that add up to more than there are numbers are no paths, and a link to itself is none.
    router.link_up(8, 1, 1).unwrap_err();
    let dear = u32::MAX - 1;
    router.on_message(8, says(3, 2, &[(1, 1), (2, dear)], &[])).unwrap();
    router.on_message(8, says(2, 2, &[(3, dear), (1, 1)], &["far"])).unwrap();
    router.link_down(8).unwrap();
    flushed(&mut router);
    assert_eq!(router.cost(&"far"), None);
}

#[test]
fn destinations_without_rows_get_them_when_there_are_some() {
    let labels = Labels::new(2, Duration::from_secs(10), 0).unwrap();
    let mut router = LinkState::new(1, labels, 2);
    router.attach("a").unwrap();
    router.attach("b").unwrap();
    assert_eq!(router.attach("c"), Err(NoLabel::Full.into()));
    router.flush(ZERO, |_, _: Message<&str>| {}).unwrap();
    router.detach(&"a").unwrap();
    router.attach("c").unwrap();
    assert_eq!(router.flush(at(1), |_, _| {}), Err(NoLabel::HeldDown));
    assert_eq!((router.table().len(), router.cost(&"b")), (1, Some(0)));
    assert!(router.has_pending());
    router.validate().unwrap();
    assert_eq!(router.flush(at(10), |_, _| {}), Err(NoLabel::HeldDown));
    assert_eq!(router.flush(at(11), |_, _| {}), Ok(()));
    assert_eq!(router.table().forward_to(&"c"), Some(Hop::Deliver));
    assert!(!router.has_pending());
    router.validate().unwrap();
}

#[test]
fn who_asks_for_everything_hears_which_labels_are_gone() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.attach("gone").unwrap();
    router.attach("here").unwrap();
    flushed(&mut router);
    router.detach(&"gone").unwrap();
    router.resynchronise(8).unwrap();
    let label = router.table().label(&"here").unwrap();
    let expected = [
        says(1, 2, &[(2, 3)], &["here"]),
        Message::Label { destination: "gone", label: Label::NONE },
        Message::Label { destination: "here", label },
    ];
    assert_eq!(flushed(&mut router), expected.map(|message| (8, message)));
}

#[test]
fn a_label_does_not_open_a_row_whose_link_was_down() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.on_message(8, says(2, 1, &[(1, 3)], &["D"])).unwrap();
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
    // Nor one that is not attached any more.
    router.attach("D").unwrap();
    flushed(&mut router);
    router.detach(&"D").unwrap();
    router.on_message(8, Message::Label { destination: "D", label: theirs(2) }).unwrap();
    assert_eq!((router.table().forward_to(&"D"), router.cost(&"D")), (None, None));
}

#[test]
fn nobody_makes_a_router_say_what_all_others_refuse() {
    let half = 1 << 63;
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    flushed(&mut router);
    for sequence in [half, u64::MAX - 1, u64::MAX] {
        assert_eq!(router.on_message(8, says(1, sequence, &[], &[])), Err(RouterError::Sequence));
        assert_eq!(flushed(&mut router), []);
    }
    // The worst that it outbids leaves it as many numbers again.
    router.on_message(8, says(1, half - 1, &[], &[])).unwrap();
    assert_eq!(flushed(&mut router), [(8, says(1, half, &[(2, 3)], &[]))]);
    router.on_message(8, says(1, half, &[(2, 3)], &[])).unwrap();
    router.attach("D").unwrap();
    let said = flushed(&mut router);
    assert_eq!(said[0], (8, says(1, half + 1, &[(2, 3)], &["D"])));
    let mut neighbour = state(2);
    neighbour.link_up(7, 1, 3).unwrap();
    // Others believe greater lies about it, until they are made to forget.
    neighbour.on_message(7, says(1, u64::MAX - 1, &[], &[])).unwrap();
    neighbour.on_message(7, said[0].1.clone()).unwrap();
    assert_eq!(neighbour.state(1).unwrap().sequence, u64::MAX - 1);
    neighbour.remove_router(1);
    neighbour.on_message(7, said[0].1.clone()).unwrap();
    flushed(&mut neighbour);
    assert_eq!(neighbour.cost(&"D"), Some(3));
}
