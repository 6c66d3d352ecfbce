//! Border routers: random indices on one side, threaded labels on the other.

use flowtable::SourceHashCache;
use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::threaded::{Border, BorderRoute, Hop, Label, Table};

use super::{ZERO, labels, theirs};

fn border() -> Border<&'static str> {
    Border { cache: SourceHashCache::new(64).unwrap() }
}

#[test]
fn a_border_follows_changes_of_the_row_of_a_cached_destination() {
    let mut table = Table::new(labels(10)).unwrap();
    let way = |port| Hop::Forward { port, label: theirs(port.into()) };
    let own = table.insert("D", Some(way(1)), ZERO).unwrap();
    let mut border = border();
    let random = Label::random(SourceIndex::new(0xabcd_ef01));
    let lookups = core::cell::Cell::new(0);
    let inside = |table: &Table<&'static str>| {
        let label = table.label(&"D");
        let lookups = &lookups;
        move |_: &&str| {
            lookups.set(lookups.get() + 1);
            label.map(BorderRoute::Inside)
        }
    };
    for port in [1, 2, 3] {
        table.set(&"D", Some(way(port))).unwrap();
        assert_eq!(border.forward(&table, random, &"D", inside(&table)), Some(way(port)));
    }
    assert_eq!(lookups.get(), 1, "the row changes, the cache does not");
    // The row belongs to another destination: its label is stale, and so is the cached one.
    table.remove(&"D", ZERO);
    table.insert("E", Some(way(9)), ZERO).unwrap();
    assert_eq!(border.forward(&table, random, &"D", inside(&table)), None);
    assert_eq!(border.forward(&table, own, &"D", inside(&table)), None);
    table.insert("D", Some(way(4)), ZERO).unwrap();
    for _ in 0..2 {
        assert_eq!(border.forward(&table, random, &"D", inside(&table)), Some(way(4)));
        assert_eq!(border.forward(&table, own, &"D", inside(&table)), Some(way(4)));
    }
    // Stale labels are looked up each time, the cached destination once.
    assert_eq!(lookups.get(), 1 + 1 + 1 + 1 + 2);

    // A packet that leaves keeps its random index. A label of this area is removed.
    let outside = |_: &&str| Some(BorderRoute::Outside(5));
    let out = |label| Some(Hop::Forward { port: 5, label });
    assert_eq!(border.forward(&table, random, &"far", outside), out(random));
    assert_eq!(border.forward(&table, random, &"far", |_| unreachable!()), out(random));
    assert_eq!(border.forward(&table, own, &"far", outside), out(Label::NONE));
    border.cache.clear();
    assert_eq!(border.forward(&table, random, &"far", |_| None), None);
}

#[test]
fn labels_from_outside_never_select_a_row() {
    let mut table = Table::new(labels(4)).unwrap();
    let secret = table.insert("secret", Some(Hop::Deliver), ZERO).unwrap();
    let mut border = border();
    // `forward` trusts labels, also where the row belongs to another destination.
    assert_eq!(border.forward(&table, secret, &"far", |_| unreachable!()), Some(Hop::Deliver));
    for index in 0..5 {
        for generation in 0..=u8::MAX {
            let forged = Label::new(index, generation).unwrap();
            let random = Label::random(forged.source_index());
            let out = Some(Hop::Forward { port: 5, label: random });
            let lookup = |name: &&str| (*name == "far").then_some(BorderRoute::Outside(5));
            assert_eq!(border.forward_from_outside(&table, forged, &"far", lookup), out);
            assert_eq!(border.forward_from_outside(&table, forged, &"none", lookup), None);
        }
    }
    // The flag bit makes no difference to valid packets.
    let own = |_: &&str| Some(BorderRoute::Inside(secret));
    for label in [secret, Label::random(secret.source_index())] {
        let hop = border.forward_from_outside(&table, label, &"secret", own);
        assert_eq!(hop, Some(Hop::Deliver));
    }
}

#[test]
fn a_cached_label_that_is_stale_is_looked_up() {
    let mut table = Table::new(labels(4)).unwrap();
    let old = table.insert("D", Some(Hop::Deliver), ZERO).unwrap();
    let mut border = border();
    let random = Label::random(SourceIndex::new(7));
    let _ = border.forward_from_outside(&table, random, &"D", |_| Some(BorderRoute::Inside(old)));
    table.remove(&"D", ZERO);
    let new = table.insert("D", Some(Hop::Deliver), ZERO).unwrap();
    // A cache hit whose label is stale.
    let before = border.cache.statistics();
    let lookup = |_: &&str| Some(BorderRoute::Inside(new));
    assert_eq!(border.forward_from_outside(&table, random, &"D", lookup), Some(Hop::Deliver));
    assert_eq!(border.cache.statistics().hits, before.hits + 1);
    // An unreachable destination is not cached.
    let mut lookups = 0;
    for _ in 0..3 {
        let nowhere = |_: &&str| {
            lookups += 1;
            None
        };
        assert_eq!(border.forward_from_outside(&table, random, &"nowhere", nowhere), None);
    }
    assert_eq!(lookups, 3);
}
