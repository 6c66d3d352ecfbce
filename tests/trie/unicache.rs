//! `Unicache` compared with a map of the entries that were inserted and not evicted.

use model::cases;
use std::collections::BTreeMap;

use flowtable::eviction::PassiveGc;
use flowtable::key::FinWatch;
use flowtable::key::bits::Headed;
use flowtable::trie::unicache::{Entry, Unicache};
use flowtable::{DefaultHashBuilder, TcpFlags};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Insert(u16),
    /// Insertion by the entry.
    Use(u16),
    Touch(u16),
    Remove(u16),
    Pin(u16),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..500_u16).prop_map(Op::Insert),
        4 => (0..500_u16).prop_map(Op::Use),
        4 => (0..500_u16).prop_map(Op::Touch),
        2 => (0..500_u16).prop_map(Op::Remove),
        1 => (0..500_u16).prop_map(Op::Pin),
    ]
}

/// Last use, and whether the entry is in use.
type Flow = (u64, bool);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200, 3)))]

    #[test]
    fn each_entry_is_present_or_evicted_once(
        ops in vec(op(), 0..if cfg!(miri) { 40 } else { 600 }),
        threshold in 1..120_usize,
        goal in 1..20_usize,
    ) {
        let mut cache = Unicache::new(PassiveGc::new(threshold, goal).unwrap());
        let mut model: BTreeMap<u16, Flow> = BTreeMap::new();
        for (now, op) in (0_u64..).zip(ops) {
            match op {
                Op::Insert(key) | Op::Use(key) => {
                    let was_new = !model.contains_key(&key);
                    let full = model.len() >= threshold;
                    let mut evicted = vec![];
                    let score = |_: &u16, flow: &Flow| (!flow.1).then_some(flow.0);
                    let on_eviction = |key, flow| evicted.push((key, flow));
                    let old = match op {
                        Op::Insert(_) => cache.insert(key, (now, false), score, on_eviction),
                        _ => match cache.entry(key) {
                            Entry::Occupied(mut entry) => Some(entry.insert((now, false))),
                            Entry::Vacant(entry) => {
                                *entry.insert((0, true), score, on_eviction) = (now, false);
                                None
                            }
                        },
                    };
                    prop_assert!(evicted.is_empty() || (was_new && full), "evicts only when full");
                    prop_assert!(evicted.len() <= goal);
                    for (key, flow) in evicted {
                        prop_assert_eq!(model.remove(&key), Some(flow), "evicted once, unchanged");
                        prop_assert!(!flow.1, "entries in use are not evicted");
                    }
                    prop_assert_eq!(old, model.insert(key, (now, false)));
                }
                Op::Touch(key) => {
                    prop_assert_eq!(cache.get(&key), model.get(&key));
                    cache.get_mut(&key).into_iter().for_each(|flow| flow.0 = now);
                    model.get_mut(&key).into_iter().for_each(|flow| flow.0 = now);
                }
                Op::Remove(key) => prop_assert_eq!(cache.remove(&key), model.remove(&key)),
                Op::Pin(key) => {
                    cache.get_mut(&key).into_iter().for_each(|flow| flow.1 = true);
                    model.get_mut(&key).into_iter().for_each(|flow| flow.1 = true);
                }
            }
            cache.validate().unwrap();
            prop_assert!(cache.iter().eq(&model));
            let pinned = model.values().filter(|flow| flow.1).count();
            prop_assert!(cache.len() <= threshold + pinned, "bounded except for entries in use");
        }
        prop_assert!(cache.into_iter().eq(model));
    }
}

/// Without entries in use the bound is strict: a ring of four always has one to evict.
#[test]
fn the_threshold_is_never_exceeded() {
    let hasher = DefaultHashBuilder::with_seed(9);
    for (threshold, goal) in [(1, 1), (2, 100), (3, 1), (1000, 1), (1000, 100), (100, 1000)] {
        let mut cache = Unicache::new(PassiveGc::new(threshold, goal).unwrap());
        let mut left = 0;
        let keys = if cfg!(miri) { 50 } else { 5000_u64 };
        for now in 0..keys {
            let key = Headed::new(now, &hasher);
            cache.insert(key, now, |_, last| Some(*last), |_, _| left += 1);
            assert!(cache.len() <= threshold);
        }
        assert_eq!(cache.len() + left, keys as usize);
    }
}

/// Of four consecutive leaves the one with the lowest score is evicted, the later one of a tie; the
/// rover continues after the fourth, and wraps around.
#[test]
fn the_rover_wraps_around() {
    let mut cache = Unicache::new(PassiveGc::new(6, 1).unwrap());
    let scores = BTreeMap::from([(0, 5), (10, 3), (20, 3), (30, 9), (40, 1), (50, 8)]);
    for key in scores.keys() {
        cache.insert(*key, (), |_, ()| Some(0), |_, ()| unreachable!("not full"));
    }
    let mut evicted = vec![];
    for new in [25_u8, 26, 27] {
        let score = |key: &u8, (): &()| Some(scores.get(key).copied().unwrap_or(7));
        cache.insert(new, (), score, |key, ()| evicted.push(key));
    }
    // Examined: 0 10 20 30, then 40 50 0 10, then 25 26 30 50.
    assert_eq!(evicted, [20, 40, 26]);
}

/// A collection ends when there is nothing left to collect, for any goal.
#[test]
fn a_goal_above_the_number_of_entries() {
    let mut cache = Unicache::new(PassiveGc::new(3, usize::MAX).unwrap());
    let mut left = 0;
    for key in 0..10_u32 {
        cache.insert(key, (), |_, ()| Some(0), |_, ()| left += 1);
    }
    assert_eq!((cache.len(), left), (3, 7));
    for key in 10..20 {
        cache.insert(key, (), |_, ()| None::<u8>, |_, ()| left += 1);
    }
    assert_eq!((cache.len(), left), (13, 7), "all are in use");
    // A single candidate at the end of the ring is found.
    let last_only = |key: &u32, (): &()| (*key == 8).then_some(0);
    cache.retain(|key, ()| *key != 8);
    cache.insert(8, (), |_, ()| None::<u8>, |_, ()| left += 1);
    cache.insert(30, (), last_only, |key, ()| assert_eq!(key, 8));
    assert!(!cache.contains_key(&8) && cache.contains_key(&30));
    cache.clear();
    assert!(cache.is_empty());
}

#[test]
fn overwriting_a_present_key_evicts_nothing() {
    let mut cache = Unicache::new(PassiveGc::new(2, 2).unwrap());
    let mut insert =
        |key: u8, value| cache.insert(key, value, |_, _: &char| Some(0), |_, _| panic!("evicted"));
    assert_eq!([insert(1, 'a'), insert(2, 'b'), insert(1, 'c')], [None, None, Some('a')]);
}

/// The sequence of the paper: both sides close, and the last acknowledgement ends the connection.
#[test]
fn the_end_of_a_connection() {
    let (fin_ack, ack) = (TcpFlags::FIN | TcpFlags::ACK, TcpFlags::ACK);
    let (mut a, mut b) = (FinWatch::default(), FinWatch::default());
    assert!(!a.observe(TcpFlags::SYN) && !b.observe(TcpFlags::SYN | ack) && !a.observe(ack));
    assert!(!a.observe(fin_ack), "A closes");
    assert!(!b.observe(fin_ack), "B closes, too");
    assert!(a.observe(ack), "over");
    assert!(!FinWatch::default().observe(ack));
    assert!(FinWatch::default().observe(TcpFlags::RST | ack));
    assert!(!b.observe(TcpFlags::PSH), "closed, but this acknowledges nothing");
    assert!(a.is_closed() && !FinWatch::default().is_closed());
    // The sockets are reused: the acknowledgement of the new handshake ends nothing.
    assert!(!a.observe(TcpFlags::SYN) && !b.observe(TcpFlags::SYN | ack) && !a.observe(ack));
    assert!(!a.is_closed() && !b.is_closed());
}

/// A packet of one direction of a connection.
fn segment() -> impl Strategy<Value = (u8, bool, TcpFlags)> {
    let flags = prop_oneof![
        4 => Just(TcpFlags::ACK),
        3 => Just(TcpFlags::FIN | TcpFlags::ACK),
        1 => Just(TcpFlags::SYN),
        1 => Just(TcpFlags::RST),
        1 => Just(TcpFlags::PSH),
    ];
    (0..6_u8, any::<bool>(), flags)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200, 3)))]

    /// The rule of the paper, by a map: a FIN marks the direction; an ACK of a marked direction
    /// removes both.
    #[test]
    fn the_end_of_a_connection_removes_both_directions(segments in vec(segment(), 0..200)) {
        let mut cache = Unicache::new(PassiveGc::new(100, 1).unwrap());
        let mut marked: BTreeMap<u8, bool> = BTreeMap::new();
        for (connection, is_back, flags) in segments {
            let [key, reverse] = [is_back, !is_back].map(|side| 2 * connection + u8::from(side));
            let was_marked = marked.get(&key).copied();
            let ends = flags == TcpFlags::RST
                || flags == TcpFlags::ACK && was_marked == Some(true);
            let mut removed = vec![];
            let ended =
                cache.observe(&key, &reverse, flags, |watch| watch, |key, _| removed.push(key));
            prop_assert_eq!(ended, ends);
            if ends {
                let mut expected = vec![key, reverse];
                expected.retain(|key| marked.remove(key).is_some());
                prop_assert_eq!(removed, expected);
            } else if was_marked.is_none() {
                prop_assert!(removed.is_empty());
                let mut watch = FinWatch::default();
                prop_assert!(!watch.observe(flags));
                cache.insert(key, watch, |_, _| Some(0), |_, _| unreachable!("it is not full"));
                marked.insert(key, flags.contains(TcpFlags::FIN));
            } else {
                let mark = flags != TcpFlags::SYN
                    && (flags.contains(TcpFlags::FIN) || was_marked == Some(true));
                marked.insert(key, mark);
            }
            let entries = cache.iter().map(|(key, watch)| (*key, watch.is_closed()));
            prop_assert!(entries.eq(marked.iter().map(|(key, is_marked)| (*key, *is_marked))));
        }
    }
}
