//! Where an area ends.

use flowtable::cache::{Replacement, SourceHashCache};
use flowtable::hash::source_index::SourceIndex;
use flowtable::threaded::{Border, BorderRoute, Hop, Label, Table};

use super::{ZERO, labels, theirs};

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
            label.map(BorderRoute::Inside)
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
    let outside = |_: &&str| Some(BorderRoute::Outside(5));
    let out = |label| Some(Hop::Forward { port: 5, label });
    assert_eq!(border.forward(&table, random, &"far", outside), out(random));
    assert_eq!(border.forward(&table, random, &"far", |_| unreachable!()), out(random));
    assert_eq!(border.forward(&table, own, &"far", outside), out(Label::NONE));
    border.clear();
    assert_eq!(border.forward(&table, random, &"far", |_| None), None);
    assert!(Border::<u8>::new(0).is_err());
}

#[test]
fn no_stranger_chooses_a_row() {
    let mut table = Table::new(labels(4));
    let secret = table.insert("secret", Some(Hop::Deliver), ZERO).unwrap();
    let mut border: Border<&str> = Border::new(64).unwrap();
    // Believed, it leads to a row that is not the destination's: that is for those who were told a label.
    assert_eq!(border.forward(&table, secret, &"far", |_| unreachable!()), Some(Hop::Deliver));
    for index in 0..5 {
        for generation in 0..=u8::MAX {
            let forged = Label::new(index, generation).unwrap();
            let random = Label::random(SourceIndex::new(forged.get()));
            let out = Some(Hop::Forward { port: 5, label: random });
            let look_up = |name: &&str| (*name == "far").then_some(BorderRoute::Outside(5));
            assert_eq!(border.forward_from_outside(&table, forged, &"far", look_up), out);
            assert_eq!(border.forward_from_outside(&table, forged, &"none", look_up), None);
        }
    }
    // Nor does it matter to its own packets what the first bit says.
    let own = |_: &&str| Some(BorderRoute::Inside(secret));
    for label in [secret, Label::random(secret.source_index())] {
        let hop = border.forward_from_outside(&table, label, &"secret", own);
        assert_eq!(hop, Some(Hop::Deliver));
    }
}

#[test]
fn what_the_cache_is_not_good_for() {
    let mut table = Table::new(labels(4));
    let old = table.insert("D", Some(Hop::Deliver), ZERO).unwrap();
    let mut border: Border<&str> = Border::new(64).unwrap();
    let random = Label::random(SourceIndex::new(7));
    let _ = border.forward_from_outside(&table, random, &"D", |_| Some(BorderRoute::Inside(old)));
    table.remove(&"D", ZERO);
    let new = table.insert("D", Some(Hop::Deliver), ZERO).unwrap();
    // A hit that takes the long way.
    let before = border.statistics();
    let look_up = |_: &&str| Some(BorderRoute::Inside(new));
    assert_eq!(border.forward_from_outside(&table, random, &"D", look_up), Some(Hop::Deliver));
    assert_eq!(border.statistics().hits, before.hits + 1);
    // What cannot be reached is looked up each time.
    let mut asked = 0;
    for _ in 0..3 {
        let nowhere = |_: &&str| {
            asked += 1;
            None
        };
        assert_eq!(border.forward_from_outside(&table, random, &"nowhere", nowhere), None);
    }
    assert_eq!(asked, 3);
}

#[test]
fn a_border_takes_the_cache_that_it_is_given() {
    let cache = SourceHashCache::new(2).unwrap().with_replacement(Replacement::Oldest);
    let mut border: Border<u8, 2> = Border::with_cache(cache);
    let table = Table::<u8>::new(labels(1));
    let random = Label::random(SourceIndex::new(1));
    let pass = |border: &mut Border<u8, 2>, destination| {
        let mut asked = false;
        let look_up = |_: &u8| {
            asked = true;
            Some(BorderRoute::Outside(1))
        };
        let _ = border.forward_from_outside(&table, random, &destination, look_up);
        asked
    };
    assert!(pass(&mut border, 1) && pass(&mut border, 2) && !pass(&mut border, 1));
    let mut twin = border.clone();
    // The oldest goes, though it was used last; the least recently used would be the other.
    assert!(pass(&mut border, 3) && !pass(&mut border, 2) && pass(&mut border, 1));
    assert!(!pass(&mut twin, 1) && !pass(&mut twin, 2), "a clone is on its own");
}
