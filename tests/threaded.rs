//! Threaded indices: labels, rows, both kinds of routers, borders; a table against its twin; and whole networks in
//! which everything changes while packets are under way.

#[path = "threaded_network/mod.rs"]
mod threaded_network;
#[path = "threaded_network/twin.rs"]
mod twin;

use core::time::Duration;

use flowtable::threaded::{
    Advert, Border, DistanceVector, Hop, Label, LabelError, Labels, LinkState, Message, NoLabel,
    Port, Refusal, RouterError, RouterState, Stale, Table, Way,
};
use flowtable::{SourceIndex, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use threaded_network::router::Protocol;
use threaded_network::{Counts, Network, Setup};
use twin::{Step, Twins};

const ZERO: Timestamp = Timestamp::ZERO;

fn labels(capacity: u32) -> Labels {
    Labels::new(capacity, Duration::ZERO, 0).unwrap()
}

/// A label of some other router.
fn theirs(index: u32) -> Label {
    Label::new(index, 77).unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

#[test]
fn a_label_is_one_bit_and_eight_and_twenty_three() {
    for generation in 0..=u8::MAX {
        for index in [0, 1, 255, 65_536, Label::ROWS - 1] {
            let label = Label::new(index, generation).unwrap();
            assert!(label.is_threaded());
            assert_eq!((label.index(), label.generation()), (index, generation));
            assert_eq!(label.get(), 1 << 31 | u32::from(generation) << 23 | index);
            assert_eq!(Label::from(label.get()), label);
        }
        assert_eq!(Label::new(Label::ROWS, generation), None);
    }
    for field in [0, 1, 0x7fff_ffff, 0x4000_0001] {
        let label = Label::random(SourceIndex::new(field));
        assert_eq!((label.is_threaded(), label.get()), (false, field));
        assert_eq!(label, Label::random(SourceIndex::new(field | 1 << 31)));
        assert_eq!(label.source_index(), SourceIndex::new(field));
    }
    assert!(!Label::NONE.is_threaded());
    assert_eq!(Label::NONE, Label::default());
    assert_eq!(format!("{:?}", theirs(5)), "Label(5, generation 77)");
    assert_eq!(
        format!("{:?} {:?}", Label::NONE, Label::from(255)),
        "Label(none) Label(random 0xff)"
    );
}

#[test]
fn there_is_one_row_at_least_and_two_to_the_twenty_third_at_most() {
    let new = |capacity| Labels::new(capacity, Duration::ZERO, 0).map(|labels| labels.capacity());
    assert_eq!(new(0), Err(LabelError::NoRows));
    assert_eq!(new(1), Ok(1));
    assert_eq!(new(1 << 23), Ok(8_388_608));
    assert_eq!(new((1 << 23) + 1), Err(LabelError::TooManyRows));
}

#[test]
fn rows_are_given_again_in_the_order_in_which_they_were_freed_and_not_too_early() {
    let mut labels = Labels::new(3, Duration::from_secs(10), 250).unwrap();
    let given: Vec<Label> = (0..3).map(|_| labels.give(ZERO).unwrap()).collect();
    assert_eq!(given.iter().map(|label| label.index()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(given.iter().all(|label| label.generation() == 250));
    assert_eq!(labels.give(at(99)), Err(NoLabel::Full));

    for (row, time) in [(2, 100), (0, 101), (1, 102)] {
        assert_eq!(labels.take_back(given[row], at(time)), Ok(()));
        assert_eq!(labels.take_back(given[row], at(time)), Err(Stale), "once is all");
        labels.validate().unwrap();
    }
    assert!(labels.is_empty());
    assert_eq!(labels.give(at(109)), Err(NoLabel::HeldDown));
    assert_eq!(labels.give(at(110)), Ok(Label::new(2, 251).unwrap()));
    assert_eq!(labels.give(at(110)), Err(NoLabel::HeldDown));
    // A clock that goes back lets rows rest for longer.
    assert_eq!(labels.give(ZERO), Err(NoLabel::HeldDown));
    assert_eq!(labels.give(at(112)), Ok(Label::new(0, 251).unwrap()));
    assert_eq!(labels.give(at(112)), Ok(Label::new(1, 251).unwrap()));
    assert_eq!((labels.give(at(112)), labels.len()), (Err(NoLabel::Full), 3));
    for label in [Label::NONE, Label::from(2), Label::new(3, 250).unwrap(), given[0]] {
        assert!(!labels.is_live(label), "{label:?}");
        assert_eq!(labels.take_back(label, at(113)), Err(Stale));
    }
    labels.validate().unwrap();
}

#[test]
fn a_label_comes_again_after_its_row_was_freed_256_times_and_never_sooner() {
    let rest = Duration::from_secs(1);
    let mut table = Table::new(Labels::new(1, rest, 200).unwrap());
    let first = table.insert("D", Some(Hop::Deliver), ZERO).unwrap();
    let mut now = ZERO;
    for freed in 1..=256 {
        assert!(table.remove(&"D", now).is_some() || table.remove(&"E", now).is_some());
        assert_eq!(table.insert("E", None, now), Err(Refusal::NoLabel(NoLabel::HeldDown)));
        now = now + rest;
        table.insert("E", Some(Hop::Deliver), now).unwrap();
        assert_eq!(table.forward(first).is_ok(), freed == 256, "freed {freed} times");
    }
    // Here is what the module says: 256 hold-downs have passed.
    assert_eq!(now.since(ZERO), 256 * rest);
    assert_eq!(table.destination(first), Some(&"E"));
}

#[test]
fn a_router_that_restarts_with_the_same_generation_takes_old_labels_for_new_ones() {
    let table = |destinations: [&'static str; 3], start| {
        let mut table = Table::new(Labels::new(10, Duration::ZERO, start).unwrap());
        for destination in destinations {
            table.insert(destination, Some(Hop::Deliver), ZERO).unwrap();
        }
        table
    };
    let old = table(["C", "D", "E"], 0).label(&"D").unwrap();
    assert_eq!(table(["D", "E", "F"], 0).destination(old), Some(&"E"), "that is the danger");
    let elsewhere = table(["D", "E", "F"], 64);
    assert_eq!((elsewhere.forward(old), elsewhere.destination(old)), (Err(Stale), None));
}

#[test]
fn no_label_but_a_live_one_meets_a_row() {
    let mut table = Table::new(labels(10));
    let hop = Hop::Forward { port: u16::MAX, label: theirs(Label::ROWS - 1) };
    let closed = table.insert('c', None, ZERO).unwrap();
    let open = table.insert('o', Some(hop), ZERO).unwrap();
    assert_eq!((table.forward(open), table.forward_to(&'o')), (Ok(hop), Some(hop)));
    // One that cannot be reached has a label, by which nothing is forwarded.
    assert_eq!((table.forward(closed), table.forward_to(&'c')), (Err(Stale), None));
    assert_eq!(table.destination(closed), Some(&'c'));
    for index in [0, 1, 2, Label::ROWS - 1] {
        for generation in 0..=u8::MAX {
            let label = Label::new(index, generation).unwrap();
            assert_eq!(table.forward(label).is_ok(), label == open, "{label:?}");
            // The same bits as a random index.
            assert_eq!(table.forward(Label::from(label.get() & !(1 << 31))), Err(Stale));
        }
    }
    assert_eq!(table.set(&'x', None), None);
    assert_eq!(table.remove(&'x', ZERO), None);
    table.validate().unwrap();
}

#[test]
fn a_random_index_is_not_told_as_a_label_of_the_next_router() {
    let mut table = Table::new(labels(10));
    for field in [0, 1, 2, 0x7fff_ffff] {
        let hop = Hop::Forward { port: 1, label: Label::from(field) };
        let label = table.insert(field, Some(hop), ZERO).unwrap();
        let onward = Hop::Forward { port: 1, label: Label::NONE };
        assert_eq!(table.forward(label), Ok(onward), "{field}");
    }
}

fn hop() -> impl Strategy<Value = Option<Hop>> {
    let onward =
        (any::<Port>(), 0..Label::ROWS, any::<u8>()).prop_map(|(port, index, generation)| {
            Some(Hop::Forward { port, label: Label::new(index, generation).unwrap() })
        });
    prop_oneof![onward, Just(Some(Hop::Deliver)), Just(None)]
}

fn step() -> impl Strategy<Value = Step> {
    let destination = 0..12_u8;
    prop_oneof![
        6 => (destination.clone(), hop()).prop_map(|(d, hop)| Step::Insert(d, hop)),
        2 => (destination.clone(), hop()).prop_map(|(d, hop)| Step::Set(d, hop)),
        4 => destination.clone().prop_map(Step::Remove),
        2 => any::<u8>().prop_map(Step::Wait),
        1 => (destination, 0..600_u16).prop_map(|(d, times)| Step::Churn(d, times)),
        1 => any::<u32>().prop_map(Step::Forward),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_like_its_twin(
        capacity in 1..10_u32,
        hold_down in prop_oneof![Just(0), 0..100_u8],
        start: u8,
        steps in vec(step(), 1..60),
    ) {
        let mut twins = Twins::new(capacity, hold_down, start);
        for step in steps {
            twins.step(step);
            twins.check();
        }
    }
}

type Told = Vec<(Port, Advert<&'static str>)>;

fn vector() -> DistanceVector<&'static str> {
    DistanceVector::new(labels(4), 64).unwrap()
}

fn told(router: &mut DistanceVector<&'static str>) -> Told {
    let mut told = vec![];
    router.flush(|port, advert| told.push((port, advert)));
    router.validate().unwrap();
    assert!(!router.has_news());
    told
}

fn advert(destination: &'static str, cost: u32, label: Label) -> Advert<&'static str> {
    Advert { destination, cost, label }
}

/// The same as [`advert`], of something that cannot be reached.
fn poison(destination: &'static str) -> Advert<&'static str> {
    advert(destination, 64, Label::NONE)
}

#[test]
fn a_row_follows_its_neighbours_label_and_nobody_is_told() {
    let mut router = vector();
    router.link_up(1, 3).unwrap();
    router.link_up(2, 1).unwrap();
    router.hear(2, advert("D", 6, theirs(4)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    assert_eq!(told(&mut router), [(1, advert("D", 7, label))]);

    router.hear(2, advert("D", 6, theirs(5)), ZERO).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(5) }));
    assert_eq!(told(&mut router), []);
    // Nor if a neighbour that is not chosen has another.
    for index in 6..9 {
        router.hear(1, advert("D", 5, theirs(index)), ZERO).unwrap();
        assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 2, label: theirs(5) }));
        assert_eq!(told(&mut router), []);
    }
    // When that is chosen, its last one counts.
    router.link_cost(2, 9).unwrap();
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 1, label: theirs(8) }));
    assert_eq!(router.cost(&"D"), Some(8));
    assert_eq!(told(&mut router), [(1, poison("D")), (2, advert("D", 8, label))]);
    // A neighbour that does not thread is sent packets to look up.
    router.hear(1, advert("D", 5, Label::NONE), ZERO).unwrap();
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
    router.hear(2, advert("D", 7, theirs(1)), ZERO).unwrap();
    router.hear(1, advert("D", 7, theirs(2)), ZERO).unwrap();
    router.hear(3, advert("D", 9, theirs(3)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    // Of equal ways the one over the lowest port.
    let way = Hop::Forward { port: 1, label: theirs(2) };
    assert_eq!(router.table().forward_to(&"D"), Some(way));
    assert_eq!(told(&mut router), [(2, advert("D", 8, label)), (3, advert("D", 8, label))]);
    // As dear as before, by another way: only they hear who need it.
    router.hear(1, poison("D"), ZERO).unwrap();
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
    router.repeat(2).unwrap();
    let everything =
        [(2, advert("here", 0, again)), (3, advert("D", 8, label)), (3, advert("here", 0, again))];
    assert_eq!(told(&mut router), everything);
}

#[test]
fn a_destination_without_a_way_has_no_row_and_its_label_is_stale() {
    let mut router = vector();
    router.link_up(1, 1).unwrap();
    router.link_up(2, 60).unwrap();
    router.hear(1, advert("D", 5, theirs(1)), ZERO).unwrap();
    let label = router.table().label(&"D").unwrap();
    router.hear(2, advert("D", 4, theirs(2)), ZERO).unwrap();
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
    (0..3).for_each(|n| router.hear(1, advert(["a", "b", "c"][n], 1, theirs(1)), ZERO).unwrap());
    router.attach("here", ZERO).unwrap();
    told(&mut router);
    let before = format!("{router:?}");
    let hear = |router: &mut DistanceVector<_>, port, advert| router.hear(port, advert, ZERO);
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
    assert_eq!(router.repeat(2), Err(RouterError::NoLink));
    assert_eq!(router.attach("here", ZERO), Err(RouterError::Attached));
    assert_eq!(router.attach("full", ZERO), Err(NoLabel::Full.into()));
    assert_eq!(router.detach(&"a", ZERO), Err(RouterError::Attached));
    assert_eq!(format!("{router:?}"), before);
    // A neighbour that floods with destinations and takes them back leaves nothing behind.
    router.hear(1, poison("c"), ZERO).unwrap();
    told(&mut router);
    let empty = format!("{router:?}").len();
    for name in ["v", "w", "x", "y", "z"].repeat(100) {
        router.hear(1, advert(name, 1, theirs(1)), ZERO).unwrap();
        router.hear(1, poison(name), ZERO).unwrap();
    }
    assert!(format!("{router:?}").len() < empty + 50, "{router:?}");
    assert!(!router.has_news());
}

/// Routers in a row or in a circle, who hear each other at once: messages until they are silent.
fn converge(
    routers: &mut [DistanceVector<&'static str>],
    ends: impl Fn(usize, Port) -> (usize, Port),
) -> usize {
    let mut messages = 0;
    while routers.iter().any(DistanceVector::has_news) {
        for from in 0..routers.len() {
            for (port, advert) in told(&mut routers[from]) {
                let (to, at) = ends(from, port);
                routers[to].hear(at, advert, ZERO).unwrap();
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
    assert!(!router.has_news());
    told
}

#[test]
fn a_row_follows_from_the_paths_and_the_label_whichever_comes_first() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    router.hear(8, says(2, 1, &[(1, 3)], &["D"])).unwrap();
    flushed(&mut router);
    let label = router.table().label(&"D").unwrap();
    assert_eq!(router.cost(&"D"), Some(3));
    assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 8, label: Label::NONE }));
    for label_there in [theirs(1), theirs(2), Label::NONE] {
        router.hear(8, Message::Label { destination: "D", label: label_there }).unwrap();
        assert_eq!(router.table().forward(label), Ok(Hop::Forward { port: 8, label: label_there }));
        assert_eq!(flushed(&mut router), [], "nobody else's business");
    }
    // The label of what is not there yet.
    router.hear(8, Message::Label { destination: "E", label: theirs(3) }).unwrap();
    router.hear(8, says(2, 2, &[(1, 3)], &["E"])).unwrap();
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
        router.hear(9, message).unwrap();
    }
    flushed(&mut router);
    // 4 over 2 and over 3 costs 4; so does 5 over 3.
    assert_eq!(router.cost(&"D"), Some(4));
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 7, label: Label::NONE }));
    router.link_cost(7, 3).unwrap();
    flushed(&mut router);
    assert_eq!(router.table().forward_to(&"D"), Some(Hop::Forward { port: 9, label: Label::NONE }));
    // A link counts if both ends have it.
    router.hear(9, says(4, 2, &[(3, 1)], &["D"])).unwrap();
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
    router.hear(8, says(1, 41, &[(2, 3), (3, 3)], &["old"])).unwrap();
    assert_eq!(flushed(&mut router), [(8, says(1, 42, &[(2, 3)], &["new"]))]);
    // Its own words, come back, say nothing.
    router.hear(8, says(1, 42, &[(2, 3)], &["new"])).unwrap();
    assert_eq!(flushed(&mut router), []);
    // The same number, and other words: everybody takes the greater ones, so it must outbid those only.
    router.hear(8, says(1, 42, &[(2, 2)], &[])).unwrap();
    assert_eq!(flushed(&mut router), []);
    router.hear(8, says(1, 42, &[(2, 4)], &[])).unwrap();
    assert_eq!(flushed(&mut router), [(8, says(1, 43, &[(2, 3)], &["new"]))]);
}

#[test]
fn states_are_told_on_to_all_but_who_said_them_and_old_ones_are_not() {
    let mut router = state(1);
    (7..10).for_each(|port| router.link_up(port, u32::from(port), 1).unwrap());
    assert_eq!(flushed(&mut router).len(), 3);
    let news = says(7, 5, &[], &[]);
    router.hear(7, news.clone()).unwrap();
    assert_eq!(flushed(&mut router), [(8, news.clone()), (9, news.clone())]);
    for sequence in [0, 4] {
        router.hear(8, says(7, sequence, &[(2, 2)], &["x"])).unwrap();
        assert_eq!(flushed(&mut router), []);
    }
    router.hear(8, says(7, 5, &[], &["x"])).unwrap();
    assert_eq!(flushed(&mut router), [7, 9].map(|port| (port, says(7, 5, &[], &["x"]))));
    router.hear(9, news).unwrap();
    assert_eq!(flushed(&mut router), [], "the greater words hold");
    // Who asks hears everything, and nobody else anything.
    router.repeat(9).unwrap();
    let links: Vec<(u32, u32)> = (7..10).map(|neighbour| (neighbour, 1)).collect();
    assert_eq!(flushed(&mut router), [(9, says(1, 1, &links, &[])), (9, says(7, 5, &[], &["x"]))]);
    router.forget(7);
    router.forget(1);
    assert!(router.state(7).is_none() && router.state(1).is_some());
}

#[test]
fn what_cannot_be_in_a_database_changes_nothing() {
    let mut router = state(1);
    router.link_up(8, 2, 3).unwrap();
    (2..6).for_each(|id| router.hear(8, says(id, 1, &[(1, 1)], &["D"])).unwrap());
    (0..4).for_each(|n| {
        let destination = ["a", "b", "c", "d"][n];
        router.hear(8, Message::Label { destination, label: theirs(1) }).unwrap();
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
        assert_eq!(router.hear(8, message), Err(why));
    }
    assert_eq!(router.hear(9, says(2, 2, &[], &[])), Err(RouterError::NoLink));
    assert_eq!(router.link_up(8, 3, 1), Err(RouterError::LinkIsUp));
    assert_eq!(router.link_up(9, 3, 0), Err(RouterError::LinkCost));
    assert_eq!(router.link_cost(8, u32::MAX), Err(RouterError::LinkCost));
    assert_eq!(router.link_cost(9, 1), Err(RouterError::NoLink));
    assert_eq!(router.link_down(9), Err(RouterError::NoLink));
    assert_eq!(router.repeat(9), Err(RouterError::NoLink));
    assert_eq!(router.detach(&"D"), Err(RouterError::Attached));
    assert_eq!(format!("{router:?}"), before);
    (9..13).for_each(|port| router.link_up(port, 3, 1).unwrap());
    assert_eq!(router.link_up(13, 3, 1), Err(RouterError::TooLong));
    // Costs that add up to more than there are numbers are no paths, and a link to itself is none.
    router.link_up(8, 1, 1).unwrap_err();
    let dear = u32::MAX - 1;
    router.hear(8, says(3, 2, &[(1, 1), (2, dear)], &[])).unwrap();
    router.hear(8, says(2, 2, &[(3, dear), (1, 1)], &["far"])).unwrap();
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
    assert!(router.has_news());
    router.validate().unwrap();
    assert_eq!(router.flush(at(10), |_, _| {}), Err(NoLabel::HeldDown));
    assert_eq!(router.flush(at(11), |_, _| {}), Ok(()));
    assert_eq!(router.table().forward_to(&"c"), Some(Hop::Deliver));
    assert!(!router.has_news());
    router.validate().unwrap();
}

#[test]
fn a_border_follows_the_row_of_what_is_active() {
    let mut table = Table::new(labels(10));
    let way = |port| Hop::Forward { port, label: theirs(port.into()) };
    let own = table.insert("D", Some(way(1)), ZERO).unwrap();
    let mut border: Border<&str> = Border::new(64).unwrap();
    let random = Label::random(SourceIndex::new(0xabcd_ef01));
    let asked = core::cell::Cell::new(0);
    let inside = |table: &Table<&'static str>| {
        let label = table.label(&"D");
        let asked = &asked;
        move |_: &&str| {
            asked.set(asked.get() + 1);
            label.map(Way::Inside)
        }
    };
    for port in [1, 2, 3] {
        table.set(&"D", Some(way(port))).unwrap();
        assert_eq!(border.forward(&table, random, &"D", inside(&table)), Some(way(port)));
    }
    assert_eq!(asked.get(), 1, "the row changes, the cache does not");
    // The row is another's: its label is stale, and what the cache says as well.
    table.remove(&"D", ZERO);
    table.insert("E", Some(way(9)), ZERO).unwrap();
    assert_eq!(border.forward(&table, random, &"D", inside(&table)), None);
    assert_eq!(border.forward(&table, own, &"D", inside(&table)), None);
    table.insert("D", Some(way(4)), ZERO).unwrap();
    for _ in 0..2 {
        assert_eq!(border.forward(&table, random, &"D", inside(&table)), Some(way(4)));
        assert_eq!(border.forward(&table, own, &"D", inside(&table)), Some(way(4)));
    }
    // Stale ones are looked up each time, the active destination was so once.
    assert_eq!(asked.get(), 1 + 1 + 1 + 1 + 2);

    // What goes out keeps its random index. A label of this area means nothing there.
    let outside = |_: &&str| Some(Way::Outside(5));
    let out = |label| Some(Hop::Forward { port: 5, label });
    assert_eq!(border.forward(&table, random, &"far", outside), out(random));
    assert_eq!(border.forward(&table, random, &"far", |_| unreachable!()), out(random));
    assert_eq!(border.forward(&table, own, &"far", outside), out(Label::NONE));
    border.clear();
    assert_eq!(border.forward(&table, random, &"far", |_| None), None);
    assert!(Border::<u8>::new(0).is_err());
}

const PROTOCOLS: [Protocol; 2] = [Protocol::DistanceVector, Protocol::LinkState];

/// Longer than a packet is under way, and its label in a neighbour's row.
const LIFE_OF_A_LABEL: u64 = 20_000;

/// Simulates so many networks with so many events each, and looks at what has become of them.
fn simulate(seeds: core::ops::Range<u64>, events: usize, setup: impl Fn(Setup) -> Setup) -> Counts {
    let mut sum = Counts::default();
    for seed in seeds {
        for protocol in PROTOCOLS {
            let setup = setup(Setup::new(protocol, seed));
            let mut network = Network::random(setup);
            network.live(events);
            if setup.threaded {
                network.audit();
            }
            sum.packets += network.counts.packets;
            sum.delivered += network.counts.delivered;
            sum.by_label += network.counts.by_label;
            sum.stale += network.counts.stale;
            sum.caught += network.counts.caught;
            sum.wrong += network.counts.wrong;
        }
    }
    sum
}

#[test]
fn no_packet_is_forwarded_by_a_row_of_another_destination() {
    let counts = simulate(0..150, 200, |setup| setup);
    assert_eq!(counts.wrong, 0);
    // Tags had something to do, and packets arrived.
    assert!(counts.stale > 1000 && counts.caught > 100, "{counts:?}");
    assert!(
        counts.delivered * 4 > counts.packets && counts.by_label > counts.packets,
        "{counts:?}"
    );
}

#[test]
fn hold_down_and_tags_together() {
    let counts = simulate(500..550, 200, |setup| Setup { hold_down: LIFE_OF_A_LABEL, ..setup });
    assert_eq!(counts.wrong, 0);
    assert!(counts.stale > 100, "{counts:?}");
}

#[test]
fn without_tags_the_ghost_check_fails() {
    let counts = simulate(0..40, 200, |setup| Setup { tags: false, ..setup });
    assert!(counts.wrong > 50, "{counts:?}");
}

#[test]
fn hold_down_does_without_tags_if_no_label_lives_longer() {
    let counts = |hold_down| {
        simulate(0..20, 300, |setup| Setup { tags: false, orderly: true, hold_down, ..setup })
    };
    let (none, enough) = (counts(0), counts(LIFE_OF_A_LABEL));
    assert!(none.wrong > 0, "{none:?}");
    assert_eq!(enough.wrong, 0);
}

#[test]
fn indices_add_no_messages_to_distance_vectors() {
    for seed in 0..10 {
        let counts = [true, false].map(|threaded| {
            let setup = Setup { threaded, ..Setup::new(Protocol::DistanceVector, seed) };
            let mut network = Network::random(setup);
            network.live(200);
            network.counts
        });
        let [with, without] = counts;
        assert_eq!((with.messages, with.converged), (without.messages, without.converged));
        assert_eq!((with.packets, with.delivered), (without.packets, without.delivered));
        assert!(with.by_label > 0 && with.look_ups < without.look_ups);
    }
}
