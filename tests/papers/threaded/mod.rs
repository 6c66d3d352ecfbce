//! Threaded indices: labels, rows, both kinds of routers, borders; a table compared with its
//! reference model; and simulated networks that change while packets are in flight.

mod border;
mod medium;
mod state;
mod vector;

use core::time::Duration;
use model::cases;

use flowtable::Timestamp;
use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::threaded::{
    Hop, InsertError, Label, LabelError, Labels, NoLabel, Port, Stale, Table,
};
use model::papers::source_hash_1995::network::router::Protocol;
use model::papers::source_hash_1995::network::{Counts, Network, Setup};
use model::papers::source_hash_1995::table_model::{CheckedTable, Step};
use proptest::collection::vec;
use proptest::prelude::*;

const ZERO: Timestamp = Timestamp::ZERO;

fn labels(capacity: u32) -> Labels {
    Labels { capacity, hold_down: Duration::ZERO, start: 0 }
}

/// A label of another router.
fn theirs(index: u32) -> Label {
    Label::new(index, 77).unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

#[test]
fn a_label_has_a_flag_an_8_bit_generation_and_a_23_bit_index() {
    for generation in 0..=u8::MAX {
        for index in [0, 1, 255, 65_536, Label::ROWS - 1] {
            let label = Label::new(index, generation).unwrap();
            assert!(label.is_threaded());
            assert_eq!(label.index(), index);
            assert_eq!(u32::from(label), 1 << 31 | u32::from(generation) << 23 | index);
            assert_eq!(Label::from(u32::from(label)), label);
        }
        assert_eq!(Label::new(Label::ROWS, generation), None);
    }
    for field in [0, 1, 0x7fff_ffff, 0x4000_0001] {
        let label = Label::random(SourceIndex::new(field));
        assert_eq!((label.is_threaded(), u32::from(label)), (false, field));
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
fn a_table_has_1_to_2_to_the_23_rows() {
    let error = |capacity| Table::<u8>::new(labels(capacity)).err();
    assert_eq!(error(0), Some(LabelError::NoRows));
    assert_eq!([error(1), error(1 << 23)], [None; 2]);
    assert_eq!(error((1 << 23) + 1), Some(LabelError::TooManyRows));
}

#[test]
fn a_label_repeats_after_its_row_was_freed_256_times_and_not_earlier() {
    let hold_down = Duration::from_secs(1);
    let mut table = Table::new(Labels { hold_down, start: 200, ..labels(1) }).unwrap();
    let first = table.insert("D", Some(Hop::Deliver), ZERO).unwrap();
    let mut now = ZERO;
    for freed in 1..=256 {
        assert!(table.remove(&"D", now).is_some() || table.remove(&"E", now).is_some());
        let error = table.insert("E", None, now).unwrap_err();
        assert_eq!(error, InsertError::NoLabel(NoLabel::HeldDown));
        now = now + hold_down;
        table.insert("E", Some(Hop::Deliver), now).unwrap();
        assert_eq!(table.forward(first).is_ok(), freed == 256, "freed {freed} times");
    }
    // The bound of the module documentation: 256 hold-downs have passed.
    assert_eq!(now.since(ZERO), 256 * hold_down);
    assert_eq!(table.destination(first), Some(&"E"));
}

/// A row that was freed at a wrong time is held down once from the next right one.
#[test]
fn a_wrong_time_does_not_hold_rows_down_for_ever() {
    let at = Timestamp::from_secs;
    let hold_down = Duration::from_secs(10);
    let mut table = Table::new(Labels { hold_down, ..labels(3) }).unwrap();
    let all = ['a', 'b', 'c'];
    all.iter().for_each(|of| _ = table.insert(*of, None, at(5)).unwrap());
    all.iter().for_each(|of| _ = table.remove(of, at(4_294_967_295)).unwrap());
    let inserted = [('d', 6), ('d', 15), ('d', 16), ('e', 16), ('f', 16)]
        .map(|(destination, now)| table.insert(destination, None, at(now)).is_ok());
    assert_eq!(inserted, [false, false, true, true, true]);
    table.validate().unwrap();
}

#[test]
fn a_restart_with_the_same_generation_accepts_stale_labels() {
    let table = |destinations: [&'static str; 3], start| {
        let mut table = Table::new(Labels { start, ..labels(10) }).unwrap();
        for destination in destinations {
            table.insert(destination, Some(Hop::Deliver), ZERO).unwrap();
        }
        table
    };
    let old = table(["C", "D", "E"], 0).label(&"D").unwrap();
    assert_eq!(table(["D", "E", "F"], 0).destination(old), Some(&"E"), "another row");
    let elsewhere = table(["D", "E", "F"], 64);
    assert_eq!((elsewhere.forward(old), elsewhere.destination(old)), (Err(Stale), None));
}

#[test]
fn only_a_live_label_selects_a_row() {
    let mut table = Table::new(labels(10)).unwrap();
    let hop = Hop::Forward { port: u16::MAX, label: theirs(Label::ROWS - 1) };
    let closed = table.insert('c', None, ZERO).unwrap();
    let open = table.insert('o', Some(hop), ZERO).unwrap();
    assert_eq!((table.forward(open), table.forward_to(&'o')), (Ok(hop), Some(hop)));
    // An unreachable destination has a label, by which nothing is forwarded.
    assert_eq!((table.forward(closed), table.forward_to(&'c')), (Err(Stale), None));
    assert_eq!(table.destination(closed), Some(&'c'));
    for index in [0, 1, 2, Label::ROWS - 1] {
        for generation in 0..=u8::MAX {
            let label = Label::new(index, generation).unwrap();
            assert_eq!(table.forward(label).is_ok(), label == open, "{label:?}");
            // The same bits as a random index.
            assert_eq!(table.forward(Label::from(u32::from(label) & !(1 << 31))), Err(Stale));
        }
    }
    assert_eq!(table.set(&'x', None), None);
    assert_eq!(table.remove(&'x', ZERO), None);
    table.validate().unwrap();
}

#[test]
fn a_random_index_is_not_stored_as_the_label_of_the_next_router() {
    let mut table = Table::new(labels(10)).unwrap();
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
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1)))]

    #[test]
    fn a_table_equals_its_reference_model(
        capacity in 1..10_u32,
        hold_down in prop_oneof![Just(0), 0..100_u8],
        start: u8,
        steps in vec(step(), 1..60),
    ) {
        let mut table = CheckedTable::new(capacity, hold_down, start);
        for step in steps {
            table.step(step);
            table.check();
        }
    }
}

const PROTOCOLS: [Protocol; 2] = [Protocol::DistanceVector, Protocol::LinkState];

/// Longer than a packet is in flight and its label is in a neighbour's row.
const LABEL_LIFETIME: u64 = 20_000;

/// Simulates a network for each seed and protocol, with `events` events each, and sums the
/// counters. A simulation depends on its seed alone.
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
    // Tags were needed, and packets arrived.
    assert!(counts.stale > 1000 && counts.caught > 100, "{counts:?}");
    assert!(
        counts.delivered * 4 > counts.packets && counts.by_label > counts.packets,
        "{counts:?}"
    );
}

#[test]
fn hold_down_and_tags_work_together() {
    let counts = simulate(500..550, 200, |setup| Setup { hold_down: LABEL_LIFETIME, ..setup });
    assert_eq!(counts.wrong, 0);
    assert!(counts.stale > 100, "{counts:?}");
}

#[test]
fn without_tags_packets_are_misrouted() {
    let counts = simulate(0..40, 200, |setup| Setup { tags: false, ..setup });
    assert!(counts.wrong > 50, "{counts:?}");
}

#[test]
fn hold_down_suffices_without_tags_if_no_label_lives_longer() {
    let counts = |hold_down| {
        simulate(0..20, 300, |setup| Setup { tags: false, orderly: true, hold_down, ..setup })
    };
    let (none, enough) = (counts(0), counts(LABEL_LIFETIME));
    assert!(none.wrong > 0, "{none:?}");
    assert_eq!(enough.wrong, 0);
}

/// Compares routers with and without labels: a change of a neighbour's label is not advertised. The
/// messages for a row that was reused in between are in both, and tested in
/// `neighbours_get_each_change_once_and_nothing_else`.
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
        assert!(with.by_label > 0 && with.lookups < without.lookups);
    }
}
