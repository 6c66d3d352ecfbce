//! Every number that Calvert, Griffioen and Wen and the documentation state about ephemeral state.
//!
//! Tags follow from seeds, and no test reads a clock.

use flowtable::EphemeralStore;
use flowtable::ephemeral::Heads;
use flowtable::ephemeral::esp::{
    Action, EspPacket, Instruction, Location, Locations, Relation, Site, execute_observed,
};
use flowtable::probes::Probes;
use flowtable::probes::Words;
use model::papers::ephemeral_2002::chains::{ENTRIES, Filled, HEADS, NOW, SEED, absent};
use model::papers::ephemeral_2002::tables::{
    SMALLEST, TABLE_1, TABLE_2, TABLE_3, WORD, megabits, thousands,
};

#[track_caller]
fn assert_near(what: &str, counted: f64, expected: f64) {
    let off = (counted / expected - 1.0).abs();
    assert!(off < 0.02, "{what}: {counted:.4} instead of {expected:.4}");
}

/// Figure 11.
#[test]
fn entries_examined_grow_with_the_fill_level_and_shrink_with_the_number_of_heads() {
    for (seed, (heads, ratio)) in [SEED, 7].into_iter().flat_map(|seed| HEADS.map(|it| (seed, it)))
    {
        let mut filled = Filled::new(ENTRIES, heads, seed);
        filled.fill_to(1);
        assert_eq!(filled.examined().present, 1.0);
        for tenths in [2, 4, 6, 8, 10] {
            let part = f64::from(tenths) / 10.0;
            filled.fill_to_part(part);
            let examined = filled.examined();
            let what = format!("{heads:?}, {tenths} tenths full");
            assert_near(&what, examined.present, 1.0 + part / (2.0 * ratio));
            let absent = absent(part / ratio);
            // Few entries are examined, up to about four per search: four standard deviations.
            let bound = 4.0 * (4.0 * absent / ENTRIES as f64).sqrt();
            let off = (examined.absent - absent).abs();
            assert!(off < bound, "{what}: {} instead of {absent}", examined.absent);
        }
        // In the paper a failed search walks a whole chain, of f / h entries.
        assert!(filled.examined().absent < 0.1 / ratio);
        let longest = filled.examined().longest;
        let expected = match heads {
            Heads::Half => 8..=12,
            Heads::Equal => 6..=10,
            Heads::Double => 5..=9,
            Heads::Paired => unreachable!("it is not in the paper"),
        };
        assert!(expected.contains(&longest), "{heads:?}: {longest}");
        // The curves of the paper: below 3 µs with half as many heads as entries, and nearly flat
        // with twice as many.
        let latency = |entries: f64| 5.0 * entries * WORD;
        assert!(latency(filled.examined().present) < 3.0);
        let rise = latency(filled.examined().present) - latency(1.0);
        assert!((rise - latency(0.5 / ratio)).abs() < 0.02, "{rise}");
    }
}

/// Table 1.
#[test]
fn operations_access_the_number_of_words_in_the_paper() {
    assert_eq!(TABLE_1.map(|(_, formula, _)| formula), ["5 cl", "5 + 5 cl", "2", "2"]);
    let mut filled = Filled::new(ENTRIES, Heads::Half, SEED);
    filled.fill_to(ENTRIES - 1000);
    let mut lengths = [0; 16];
    for tag in filled.tags.clone() {
        let (mut words, mut probes) = (Words::default(), Probes::default());
        let binding = filled.store.find_observed(&tag, NOW, &mut words).expect("the tag is bound");
        assert_eq!(filled.store.find_observed(&tag, NOW, &mut probes), Some(binding));
        assert_eq!(words.0, 5 * probes.entries);
        lengths[probes.entries as usize] += 1;
    }
    // Chains of all lengths occurred.
    assert!(lengths[1..8].iter().all(|times| *times > 0), "{lengths:?}");
    for tag in filled.absent(1000) {
        let mut probes = Probes::default();
        assert_eq!(filled.store.find_observed(&tag, NOW, &mut probes), None);
        let mut words = [Words::default(); 4];
        let store = &mut filled.store;
        let bound = store.find_or_create_observed(tag, NOW, || 9, &mut words[0]).expect("room");
        let again = store.find_or_create_observed(tag, NOW, || 9, &mut words[1]).expect("there");
        assert_eq!((bound.is_new, again.is_new, bound.binding), (true, false, again.binding));
        assert_eq!(store.read_observed(bound.binding, NOW, &mut words[2]), Some(&9));
        assert_eq!(store.write_observed(bound.binding, NOW, 8, &mut words[3]), Ok(9));
        // The new entry is at the head of its chain.
        assert_eq!(words.map(|Words(words)| words), [5 * probes.entries + 5, 5, 2, 2]);
    }
}

/// Tables 2 and 3.
#[test]
fn packets_per_second_follow_from_latencies() {
    for ((_, latencies), stated) in TABLE_2.into_iter().zip(TABLE_3) {
        assert_eq!(latencies.map(thousands), stated);
    }
    // "up to 169 Mb/s"
    assert_eq!(megabits(TABLE_3[0][1]).round(), 169.0);
    assert_eq!(SMALLEST as usize, EspPacket::MIN_LEN + 20 + 14);
}

fn words(store: &mut EphemeralStore, instruction: Instruction) -> (u32, Action) {
    let mut words = Words::default();
    let mut packet = EspPacket::new(Locations::CENTRE, 1, instruction);
    let site = Site { location: Location::Centre, identity: 1 };
    let action = execute_observed(store, &mut packet, site, NOW, &mut words);
    assert!(!packet.error);
    (words.0, action)
}

/// The costs stated in the documentation of `esp`.
#[test]
fn instructions_access_the_documented_number_of_words() {
    let mut filled = Filled::new(ENTRIES, Heads::Half, SEED);
    filled.fill_to(ENTRIES - 2000);
    for tag in filled.tags[..2000].iter().copied() {
        let mut probes = Probes::default();
        assert!(filled.store.find_observed(&tag, NOW, &mut probes).is_some());
        let found = 5 * probes.entries;
        let compare = |value| Instruction::Compare { tag, relation: Relation::Greater, value };
        let mut run = |instruction| words(&mut filled.store, instruction);
        assert_eq!(run(compare(0)), (found + 2, Action::Drop));
        assert_eq!(run(compare(7)), (found + 4, Action::Forward));
        assert_eq!(run(Instruction::Count { tag, threshold: 8 }), (found + 4, Action::Forward));
        assert_eq!(run(Instruction::Count { tag, threshold: 8 }), (found + 4, Action::Drop));
    }
    for (number, tag) in filled.absent(1000).into_iter().enumerate() {
        let mut probes = Probes::default();
        assert!(filled.store.find_observed(&tag, NOW, &mut probes).is_none());
        let (instruction, more) = match number % 2 {
            0 => (Instruction::Count { tag, threshold: 1 }, 9),
            _ => (Instruction::Compare { tag, relation: Relation::Less, value: 1 }, 7),
        };
        let taken = words(&mut filled.store, instruction);
        assert_eq!(taken, (5 * probes.entries + more, Action::Forward));
    }
}
