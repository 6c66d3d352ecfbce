//! Every number that Calvert, Griffioen and Wen and the documentation state about ephemeral state.
//!
//! Tags follow from seeds, and no test reads a clock.

use flowtable::EphemeralStore;
use flowtable::papers::esp::{
    Action, EspPacket, Instruction, Location, Locations, Relation, Site, execute_observed,
};
use flowtable::probes::Probes;
use flowtable::probes::Words;
use model::papers::ephemeral_2002::chains::{Chains, ENTRIES, Filled, HEADS, NOW, SEED};
use model::papers::ephemeral_2002::tables::{
    SMALLEST, TABLE_1, TABLE_2, TABLE_3, WORD, megabits, thousands,
};

#[track_caller]
fn assert_near(what: &str, counted: f64, expected: f64) {
    let off = (counted / expected - 1.0).abs();
    assert!(off < 0.02, "{what}: {counted:.4} instead of {expected:.4}");
}

/// Figure 11, by a model of the paper's chains.
#[test]
fn entries_examined_grow_with_the_fill_level_and_shrink_with_the_number_of_heads() {
    let longest = [8..=12, 6..=10, 5..=9];
    for (seed, (heads, longest)) in [SEED, 7]
        .into_iter()
        .flat_map(|seed| HEADS.into_iter().zip(&longest).map(move |it| (seed, it)))
    {
        let mut chains = Chains::new(heads, seed);
        chains.fill_to(1);
        assert_eq!(chains.examined().present, 1.0);
        for tenths in [2, 4, 6, 8, 10] {
            let part = f64::from(tenths) / 10.0;
            chains.fill_to_part(part);
            let what = format!("{heads} heads, {tenths} tenths full");
            assert_near(&what, chains.examined().present, 1.0 + part / (2.0 * heads));
            assert_near(&what, chains.examined().absent, part / heads);
        }
        assert!(longest.contains(&chains.examined().longest), "{heads}: {:?}", chains.examined());
        // The curves of the paper: below 3 µs with half as many heads as entries, and nearly flat
        // with twice as many.
        let latency = |entries: f64| 5.0 * entries * WORD;
        assert!(latency(chains.examined().present) < 3.0);
        let rise = latency(chains.examined().present) - latency(1.0);
        assert!((rise - latency(0.5 / heads)).abs() < 0.02, "{rise}");
    }
}

/// The store has no chains: a find examines one entry, however full it is.
#[test]
fn entries_examined_do_not_grow_with_the_fill_level() {
    let mut filled = Filled::new(ENTRIES, SEED);
    for tenths in [2, 4, 6, 8, 10] {
        filled.fill_to_part(f64::from(tenths) / 10.0);
        let (mut present, mut absent) = (Probes::default(), Probes::default());
        for tag in &filled.tags {
            assert!(filled.store.get_observed(tag, NOW, &mut present).is_some());
        }
        for tag in filled.absent(ENTRIES) {
            assert_eq!(filled.store.get_observed(&tag, NOW, &mut absent), None);
        }
        let present = f64::from(present.entries) / filled.tags.len() as f64;
        let absent = f64::from(absent.entries) / ENTRIES as f64;
        assert!((1.0..1.02).contains(&present) && absent < 0.04, "{present} and {absent}");
    }
}

/// Table 1.
#[test]
fn operations_access_the_number_of_words_in_the_paper() {
    assert_eq!(TABLE_1.map(|(_, formula, _)| formula), ["5 cl", "5 + 5 cl", "2", "2"]);
    let mut filled = Filled::new(ENTRIES, SEED);
    filled.fill_to(ENTRIES - 1000);
    let mut lengths = [0; 16];
    for tag in filled.tags.clone() {
        let (mut words, mut probes) = (Words::default(), Probes::default());
        assert!(filled.store.get_observed(&tag, NOW, &mut words).is_some());
        assert!(filled.store.get_observed(&tag, NOW, &mut probes).is_some());
        assert_eq!(words.0, 5 * probes.entries);
        lengths[probes.entries as usize] += 1;
    }
    // Other entries had the same tag in the index.
    assert!(lengths[1] > 0 && lengths[2] > 0, "{lengths:?}");
    for tag in filled.absent(1000) {
        let mut probes = Probes::default();
        assert_eq!(filled.store.get_observed(&tag, NOW, &mut probes), None);
        let mut words = [Words::default(); 2];
        for words in &mut words {
            let store = &mut filled.store;
            store.get_or_insert_with_observed(&tag, NOW, || 9, words).expect("room");
        }
        let mut again = Probes::default();
        assert!(filled.store.get_observed(&tag, NOW, &mut again).is_some());
        let (searched, found) = (5 * probes.entries, 5 * again.entries);
        assert_eq!(words.map(|Words(words)| words), [searched + 5, found]);
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
    let mut filled = Filled::new(ENTRIES, SEED);
    filled.fill_to(ENTRIES - 2000);
    for tag in filled.tags[..2000].iter().copied() {
        let mut probes = Probes::default();
        assert!(filled.store.get_observed(&tag, NOW, &mut probes).is_some());
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
        assert!(filled.store.get_observed(&tag, NOW, &mut probes).is_none());
        let (instruction, more) = match number % 2 {
            0 => (Instruction::Count { tag, threshold: 1 }, 9),
            _ => (Instruction::Compare { tag, relation: Relation::Less, value: 1 }, 7),
        };
        let taken = words(&mut filled.store, instruction);
        assert_eq!(taken, (5 * probes.entries + more, Action::Forward));
    }
}
