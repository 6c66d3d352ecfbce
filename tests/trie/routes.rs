//! `LcRouteTable` compared with a list of routes, with the invariants checked after each step; with
//! the routes of the whole Internet if they are available; and edge cases.

use core::fmt::{Debug, Write as _};
use core::net::{Ipv4Addr, Ipv6Addr};
use model::cases;
use std::panic::catch_unwind;
use std::rc::Rc;

use capture::data;
use flowtable::Prefix;
use flowtable::key::bits::Address;
use flowtable::probes::Probes;
use flowtable::trie::routes::LcRouteTable;
use flowtable::trie::{RebalanceFrom, Thresholds, Tuning};
use model::bit_strings::Inconsistent;
use model::routes::list::RouteList;
use proptest::collection::vec;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// One step of a test.
#[derive(Clone, Debug)]
enum Op<A> {
    Insert(Prefix<A>, u32),
    Remove(Prefix<A>),
    /// Removes the route with this index, if there is one.
    RemoveNth(usize),
    Get(Prefix<A>),
    /// Changes the value of a route, if there is one.
    Change(Prefix<A>, u32),
    /// Changes all values, and retains those that are no multiples of this number.
    Retain(u32),
    /// Inserts all routes into an empty table, shuffled with this seed.
    Rebuild(u64),
}

fn op<A: Address + Debug + 'static>(
    prefix: impl Strategy<Value = Prefix<A>> + Clone + 'static,
) -> impl Strategy<Value = Op<A>> {
    prop_oneof![
        12 => (prefix.clone(), any::<u32>()).prop_map(|(prefix, value)| Op::Insert(prefix, value)),
        3 => prefix.clone().prop_map(Op::Remove),
        6 => (0..40_usize).prop_map(Op::RemoveNth),
        2 => prefix.clone().prop_map(Op::Get),
        2 => (prefix, any::<u32>()).prop_map(|(prefix, value)| Op::Change(prefix, value)),
        1 => (2..9_u32).prop_map(Op::Retain),
        1 => any::<u64>().prop_map(Op::Rebuild),
    ]
}

/// Prefixes of all lengths, of addresses that share many bits: one of few bases with a bit flipped.
fn clustered<A: Address + Debug + 'static>(
    base: fn(usize) -> A,
) -> impl Strategy<Value = Prefix<A>> + Clone {
    (0..4_usize, 0..=A::BITS, 0..=A::BITS)
        .prop_map(move |(number, bit, len)| prefix(flipped(base(number), bit), len))
}

/// The address with one bit flipped; unchanged if the bit is beyond its end.
fn flipped<A: Address>(address: A, bit: u32) -> A {
    let one = |pos| if (pos..pos + 64).contains(&bit) { 1 << 63 >> (bit - pos) } else { 0_u64 };
    A::from_windows(|pos| address.window(pos) ^ one(pos))
}

#[track_caller]
fn prefix<A: Address>(address: A, len: u32) -> Prefix<A> {
    Prefix::new(address, len).expect("the length is at most the width")
}

fn step<A: Address + Debug>(
    ours: &mut LcRouteTable<A, u32>,
    model: &mut RouteList<A, u32>,
    op: Op<A>,
) {
    match op {
        Op::Insert(prefix, value) => {
            assert_eq!(ours.insert(prefix, value), model.insert(prefix, value));
            compare_around(ours, model, &prefix);
        }
        Op::Remove(prefix) => {
            assert_eq!(ours.remove(&prefix), model.remove(&prefix));
            compare_around(ours, model, &prefix);
        }
        Op::RemoveNth(number) => {
            let Some(prefix) = model.iter().get(number).map(|route| route.0) else { return };
            step(ours, model, Op::Remove(prefix));
        }
        Op::Get(prefix) => assert_eq!(ours.get(&prefix), model.get(&prefix)),
        Op::Change(prefix, value) => {
            let before = ours.get_mut(&prefix).map(|own| core::mem::replace(own, value));
            assert_eq!(before, model.get(&prefix).copied());
            before.into_iter().for_each(|_| _ = model.insert(prefix, value));
        }
        Op::Retain(divisor) => {
            let keep = |prefix: Prefix<A>, value: &mut u32| {
                *value = value.wrapping_add(prefix.len());
                *value % divisor != 0
            };
            ours.retain(keep);
            model.retain(keep);
        }
        Op::Rebuild(seed) => {
            let mut routes: Vec<_> = ours.iter().map(|(prefix, value)| (prefix, *value)).collect();
            routes.shuffle(&mut StdRng::seed_from_u64(seed));
            *ours = LcRouteTable::with_tuning(ours.tuning());
            ours.extend(routes);
        }
    }
}

/// Compares lookups of the first and the last address of a prefix, with bits flipped around the end
/// of the prefix and at both ends of the address.
fn compare_around<A: Address + Debug>(
    ours: &LcRouteTable<A, u32>,
    model: &RouteList<A, u32>,
    prefix: &Prefix<A>,
) {
    let first = prefix.address();
    let last = A::from_windows(|pos| {
        let fixed = prefix.len().saturating_sub(pos);
        first.window(pos) | u64::MAX.checked_shr(fixed).unwrap_or(0)
    });
    for edge in [first, last] {
        let bits = [prefix.len().wrapping_sub(1), prefix.len(), 0, A::BITS - 1, A::BITS];
        for address in bits.map(|bit| flipped(edge, bit)) {
            compare(ours, model, &address);
        }
    }
}

#[track_caller]
fn compare<A: Address + Debug>(
    ours: &LcRouteTable<A, u32>,
    model: &RouteList<A, u32>,
    address: &A,
) {
    assert_eq!(ours.lookup(address), model.lookup(address), "{address:?} in {ours:?}");
}

/// Applies `ops` to a table and to the model, which must agree in every respect after each.
fn run<A: Address + Debug>(ops: Vec<Op<A>>, tuning: Tuning) {
    let (mut ours, mut model) = (LcRouteTable::with_tuning(tuning), RouteList::new());
    for op in ops {
        let what = format!("{op:?}");
        step(&mut ours, &mut model, op);
        ours.validate().unwrap_or_else(|broken| panic!("after {what}: {broken}"));
        assert_eq!((ours.len(), ours.is_empty()), (model.len(), model.is_empty()));
        assert!(ours.iter().eq(model.iter()), "after {what}");
    }
    for (prefix, _) in model.iter() {
        compare_around(&ours, &model, &prefix);
        assert_eq!(ours.get(&prefix), model.get(&prefix));
    }
    let prefixes: Vec<_> = ours.iter().map(|(prefix, _)| prefix).collect();
    for prefix in prefixes {
        assert_eq!(ours.remove(&prefix), model.remove(&prefix));
        ours.validate().unwrap();
    }
    assert_empty(&ours);
}

#[track_caller]
fn assert_empty<A: Address, V>(table: &LcRouteTable<A, V>) {
    let shape = table.shape();
    assert_eq!((table.len(), shape.leaves, shape.nodes(), shape.slots), (0, 0, 0, 0));
    table.validate().unwrap();
}

fn tuning() -> impl Strategy<Value = Tuning> {
    let thresholds = (2..=100_u8).prop_flat_map(|inflate| {
        (1..inflate).prop_map(move |halve| Thresholds::new(inflate, halve).unwrap())
    });
    let start = prop_oneof![Just(RebalanceFrom::NewNode), Just(RebalanceFrom::Parent)];
    let any = (thresholds.clone(), thresholds, 1..6_u32, start).prop_map(
        |(node, root, root_bits, rebalance_from)| Tuning { node, root, root_bits, rebalance_from },
    );
    prop_oneof![Just(Tuning::default()), Just(Tuning::TRASH_2006), any]
}

/// Bases of clustered addresses.
const V4: [u32; 4] = [0, !0, 0x0a0a_0a0a, 0xc0a8_ff00];
const V6: [u128; 4] = [0, !0, 0xffff_c0a8_0101, 0x2001_0db8 << 96];

/// Steps per case.
const STEPS: usize = 120;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150, 1)))]

    #[test]
    fn dense_routes(
        ops in vec(op((any::<u8>(), 0..=8_u32).prop_map(|(a, len)| prefix(a, len))), 0..2 * STEPS),
        tuning in tuning(),
    ) {
        run(ops, tuning);
    }

    #[test]
    fn ipv4_routes(
        ops in vec(op(clustered(|number| Ipv4Addr::from_bits(V4[number]))), 0..STEPS),
        tuning in tuning(),
    ) {
        run(ops, tuning);
    }

    #[test]
    fn ipv6_routes(
        ops in vec(op(clustered(|number| Ipv6Addr::from_bits(V6[number]))), 0..STEPS),
        tuning in tuning(),
    ) {
        run(ops, tuning);
    }

    #[test]
    fn random_routes(
        ops in vec(op((any::<u32>(), 0..=32_u32).prop_map(|(a, len)| prefix(a, len))), 0..STEPS),
        tuning in tuning(),
    ) {
        run(ops, tuning);
    }
}

/// Every address of a small width, on tables of every size.
#[test]
fn every_address() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..60 {
        let (mut ours, mut model) = (LcRouteTable::new(), RouteList::new());
        for value in 0..round * 2 {
            let route = prefix(rng.random::<u8>(), rng.random_range(0..=8));
            assert_eq!(ours.insert(route, value), model.insert(route, value));
        }
        (0..=255).for_each(|address| compare(&ours, &model, &address));
    }
}

#[test]
fn an_empty_table() {
    static EMPTY: LcRouteTable<Ipv6Addr, String> = LcRouteTable::new();
    assert_eq!((EMPTY.len(), EMPTY.is_empty(), EMPTY.allocation_size()), (0, true, 0));
    assert_eq!((EMPTY.lookup(&Ipv6Addr::LOCALHOST), EMPTY.iter().next()), (None, None));
    let mut table = EMPTY.clone();
    assert_eq!(table.remove(&Prefix::default_route()), None);
    assert_eq!(table.get(&Prefix::host(Ipv6Addr::LOCALHOST)), None);
    assert_empty(&table);
    assert_eq!(format!("{table:?}"), "{}");
}

#[test]
fn default_routes_and_host_routes() {
    fn check<A: Address + Debug>(zero: A, ones: A) {
        let mut table = LcRouteTable::from([(Prefix::default_route(), 'd')]);
        for address in [zero, ones, flipped(zero, A::BITS / 2)] {
            assert_eq!(table.lookup(&address), Some((Prefix::default_route(), &'d')));
        }
        table.extend([(Prefix::host(zero), 'z'), (Prefix::host(ones), 'o')]);
        table.validate().unwrap();
        assert_eq!(table.lookup(&zero), Some((Prefix::host(zero), &'z')));
        assert_eq!(table.lookup(&ones), Some((Prefix::host(ones), &'o')));
        for address in [zero, ones].map(|address| flipped(address, A::BITS - 1)) {
            assert_eq!(table.lookup(&address), Some((Prefix::default_route(), &'d')));
        }
        assert_eq!(table.remove(&Prefix::default_route()), Some('d'));
        assert_eq!(table.lookup(&flipped(zero, A::BITS - 1)), None);
        assert_eq!((table.len(), table.lookup(&zero).unwrap().1), (2, &'z'));
        table.validate().unwrap();
    }
    check(0_u8, u8::MAX);
    check(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
    check(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from_bits(u128::MAX));
    check([0_u8; 40], [0xff; 40]);
    check((0_u16, 0_u8), (u16::MAX, u8::MAX));
}

/// A route of each length to one address, in random orders.
#[test]
fn chains_of_all_lengths() {
    for address in [0, u32::MAX, 0xaaaa_aaaa, 0xffff_0000] {
        let mut lens: Vec<u32> = (0..=32).collect();
        for seed in 0..8 {
            lens.shuffle(&mut StdRng::seed_from_u64(seed));
            let mut table = LcRouteTable::new();
            for &len in &lens {
                assert_eq!(table.insert(prefix(address, len), len), None);
                table.validate().unwrap();
            }
            for len in 0..=32 {
                let longest = table.lookup(&flipped(address, len)).unwrap();
                assert_eq!(longest, (prefix(address, len), &len), "bit {len} is another one");
            }
            for (gone, &len) in lens.iter().enumerate() {
                assert_eq!(table.remove(&prefix(address, len)), Some(len));
                table.validate().unwrap();
                let longest = lens[gone + 1..].iter().max();
                assert_eq!(table.lookup(&address).map(|(_, value)| value), longest);
            }
            assert_empty(&table);
        }
    }
}

#[test]
fn zero_width_addresses_have_one_route() {
    let mut table = LcRouteTable::new();
    assert_eq!(table.insert(Prefix::host([0_u8; 0]), 1), None);
    assert_eq!(table.insert(Prefix::default_route(), 2), Some(1));
    assert_eq!(table.lookup(&[]), Some((Prefix::default_route(), &2)));
    table.validate().unwrap();
}

#[test]
fn ipv4_addresses_mapped_into_ipv6_are_found() {
    let parse = |text: &str| text.parse::<Prefix<Ipv6Addr>>().unwrap();
    let table = LcRouteTable::from([
        (parse("::ffff:0:0/96"), "mapped"),
        (parse("::ffff:10.0.0.0/104"), "ten"),
        (parse("::/0"), "all"),
    ]);
    let name = |text: &str| *table.lookup(&text.parse().unwrap()).unwrap().1;
    assert_eq!((name("::ffff:10.1.2.3"), name("::ffff:11.0.0.0")), ("ten", "mapped"));
    assert_eq!((name("::fffe:10.1.2.3"), name("2001:db8::")), ("all", "all"));
}

/// The result of a lookup, and the numbers of visited nodes and leaves.
fn probe(table: &LcRouteTable<u8, char>, address: u8) -> (Option<char>, u32, u32) {
    let mut probes = Probes::default();
    let found = table.lookup_observed(&address, &mut probes).map(|(_, value)| *value);
    (found, probes.nodes, probes.entries)
}

/// The lookups of the figure in the module documentation of backtracking.
#[test]
fn lookups_backtrack_only_where_a_shorter_route_may_match() {
    let [a, b, c, d] = [(0b1010_0000_u8, 4), (0b1000_0000, 2), (0b1001_0000, 4), (0b0100_0000, 4)]
        .map(|(address, len)| prefix(address, len));
    let mut table = LcRouteTable::from([(a, 'a'), (b, 'b'), (c, 'c'), (d, 'd')]);
    assert_eq!(table.shape().nodes_by_bits, [0, 1, 1]);
    assert_eq!(probe(&table, 0b1011_0110), (Some('b'), 4, 2), "11, then 10, then 00");
    assert_eq!(probe(&table, 0b1010_0110), (Some('a'), 2, 1));
    assert_eq!(probe(&table, 0b1100_0000), (None, 2, 1), "a skipped bit, then zeros");
    assert_eq!(probe(&table, 0b0111_0000), (None, 1, 1), "no backtracking at the root");
    table.remove(&b);
    table.insert(prefix(0b1000_0000, 3), 'e');
    assert_eq!(probe(&table, 0b1011_0110), (None, 4, 2), "back to e, which is too long");
    table.remove(&prefix(0b1000_0000, 3));
    assert_eq!(probe(&table, 0b1011_0110), (None, 2, 0), "no backtracking");
}

/// A node that skips bits in which it differs from the address is visited only if they are zero,
/// and if one of its routes may be short enough.
#[test]
fn lookups_skip_nodes_that_cannot_match() {
    for (routes, address, expected) in [
        ([(0b1110_0000_u8, 3), (0b1111_0000, 4)], 0b1000_0000, (None, 1, 0)),
        ([(0b1000_0000, 8), (0b1001_0000, 8)], 0b1100_0000, (None, 1, 0)),
        ([(0b1000_0000, 3), (0b1001_0000, 4)], 0b1100_0000, (None, 2, 1)),
        ([(0b1000_0000, 1), (0b1001_0000, 4)], 0b1100_0000, (Some('r'), 2, 1)),
    ] {
        let mut table = LcRouteTable::from([(Prefix::host(0), 'h')]);
        table.extend(routes.map(|(address, len)| (prefix(address, len), 'r')));
        assert_eq!(table.shape().nodes_by_bits, [0, 2], "the lower one skips two bits");
        assert_eq!(probe(&table, address), expected, "{table:?}");
    }
}

/// After the removal of a short route, lookups cost as before its insertion.
#[test]
fn a_withdrawn_route_leaves_no_trace() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut table: LcRouteTable<u32, u32> =
        (0..5_000).map(|i| (prefix(rng.random(), rng.random_range(16..=24)), i)).collect();
    table.insert(prefix(0, 24), 0);
    let addresses: Vec<u32> = (0..1_000).map(|_| rng.random()).collect();
    let count = |table: &LcRouteTable<u32, u32>| {
        let mut probes = Probes::default();
        for address in &addresses {
            table.lookup_observed(address, &mut probes);
        }
        probes
    };
    let (before, shape) = (count(&table), table.shape());
    for len in [0, 1, 8, 23, 13] {
        table.insert(prefix(0, len), 7);
        assert!(count(&table).nodes >= before.nodes);
        table.validate().unwrap();
        table.remove(&prefix(0, len));
        table.validate().unwrap();
    }
    let leaves = table.shape().leaves_by_depth;
    assert_eq!((count(&table), leaves), (before, shape.leaves_by_depth));
}

#[test]
fn iterators_report_their_exact_length() {
    let lens = [8, 0, 3, 5];
    let table: LcRouteTable<u8, u32> =
        lens.iter().flat_map(|&len| [0, 0xe0].map(|address| (prefix(address, len), len))).collect();
    let mut iterator = table.iter();
    for left in (0..table.len()).rev() {
        assert!(iterator.clone().eq(table.iter().skip(table.len() - 1 - left)));
        assert!(iterator.next().is_some());
        assert_eq!((iterator.len(), iterator.size_hint()), (left, (left, Some(left))));
    }
    assert!(iterator.next().is_none() && iterator.next().is_none());
    assert!((&table).into_iter().is_sorted_by_key(|(prefix, _)| prefix));
    let mut entries = String::new();
    write!(entries, "{:?}", table.iter().next()).unwrap();
    assert_eq!(entries, "Some((Prefix { address: 0, len: 0 }, 0))");
    assert!(format!("{table:?}").starts_with("{Prefix { address: 0, len: 0 }: 0, "));
}

#[test]
fn every_value_is_dropped_once() {
    let value = Rc::new(());
    let mut table = LcRouteTable::new();
    for len in 0..=16_u32 {
        table.insert(prefix(0x5a5a_u16, len), value.clone());
        table.insert(prefix(0, len), value.clone());
    }
    assert_eq!(Rc::strong_count(&value), 1 + table.len());
    assert!(table.insert(prefix(0, 3), value.clone()).is_some());
    assert!(table.remove(&prefix(0x5a5a, 9)).is_some());
    let other = table.clone();
    assert_eq!(Rc::strong_count(&value), 1 + 2 * table.len());
    drop((table, other));
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn lists_are_part_of_the_memory() {
    let mut table: LcRouteTable<u32, u32> = LcRouteTable::new();
    table.insert(prefix(0, 8), 1);
    let one = table.allocation_size();
    table.insert(prefix(0, 9), 2);
    assert_eq!(table.allocation_size(), one + size_of::<(u32, u32)>(), "no spare capacity");
    assert_eq!(table.shape().bytes, table.allocation_size());
}

/// Tables can be statics and can move between threads.
#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    check::<LcRouteTable<Ipv4Addr, String>>();
    check::<flowtable::trie::routes::Iter<'static, Ipv4Addr, String>>();
}

/// Operations may lose routes and panic, but they terminate.
#[test]
fn operations_on_addresses_with_inconsistent_bits_terminate() {
    let mut rng = StdRng::seed_from_u64(1);
    let routes: Vec<Prefix<Inconsistent>> =
        (0..500).map(|_| prefix(Inconsistent(rng.random()), rng.random_range(0..=64))).collect();
    let _ = catch_unwind(|| {
        let mut table: LcRouteTable<Inconsistent, ()> = routes.iter().map(|&p| (p, ())).collect();
        assert!(table.iter().count() <= table.len());
        for route in &routes {
            let _ = table.lookup(&route.address());
            table.remove(route);
            let _ = table.lookup(&flipped(route.address(), 63));
        }
    });
}

/// The longest match of each address; routes and addresses are sorted. The sweep keeps a stack of
/// the routes that contain its current address, the longest on top.
fn swept<A: Address>(routes: &[Prefix<A>], addresses: &[A]) -> Vec<Option<Prefix<A>>> {
    let (mut open, mut pending) = (Vec::<Prefix<A>>::new(), routes.iter().peekable());
    let longest = addresses.iter().map(|address| {
        while let Some(route) = pending.next_if(|route| route.address() <= *address) {
            while open.last().is_some_and(|outer| !outer.covers(route)) {
                open.pop();
            }
            open.push(*route);
        }
        while open.last().is_some_and(|outer| !outer.contains(address)) {
            open.pop();
        }
        open.last().copied()
    });
    longest.collect()
}

/// The address with the bits of the prefix, followed by those of `other`.
fn inside<A: Address>(prefix: &Prefix<A>, other: A) -> A {
    A::from_windows(|pos| {
        let free = u64::MAX.checked_shr(prefix.len().saturating_sub(pos)).unwrap_or(0);
        prefix.address().window(pos) | other.window(pos) & free
    })
}

/// The means of the nodes and leaves that lookups of these addresses visit.
fn mean_probes<A: Address, V>(table: &LcRouteTable<A, V>, addresses: &[A]) -> [f64; 2] {
    let mut probes = Probes::default();
    for address in addresses {
        table.lookup_observed(address, &mut probes);
    }
    [probes.nodes, probes.entries].map(|count| f64::from(count) / addresses.len() as f64)
}

/// Inserts routes in random order, looks up addresses inside of them and anywhere, and removes all.
///
/// `probes` are the means of the visited nodes and leaves for both kinds of addresses. The seed is
/// fixed, and so are the means for one file of routes.
fn load_and_lookup<A: Address + Debug>(
    mut routes: Vec<Prefix<A>>,
    tuning: Tuning,
    random: impl Fn(&mut StdRng) -> A,
    probes: [[f64; 2]; 2],
) {
    let mut rng = StdRng::seed_from_u64(6);
    let mut table = LcRouteTable::with_tuning(tuning);
    routes.shuffle(&mut rng);
    table.extend(routes.iter().map(|&route| (route, route.len())));
    table.validate().unwrap();
    assert_eq!(table.len(), routes.len());

    let covered = routes.iter().take(20_000).map(|route| inside(route, random(&mut rng)));
    let covered: Vec<A> = covered.collect();
    let anywhere: Vec<A> = (0..20_000).map(|_| random(&mut rng)).collect();
    for (addresses, expected) in [&covered, &anywhere].into_iter().zip(probes) {
        let mean = mean_probes(&table, addresses);
        let is_near =
            mean.iter().zip(expected).all(|(mean, expected)| (mean - expected).abs() < 0.1);
        assert!(is_near, "{mean:.2?} nodes and leaves, not {expected:?}");
    }

    let mut addresses = [covered, anywhere].concat();
    addresses.sort_unstable();
    routes.sort_unstable();
    for (address, longest) in addresses.iter().zip(swept(&routes, &addresses)) {
        let found = table.lookup(address).map(|(prefix, len)| (prefix, *len));
        assert_eq!(found, longest.map(|prefix| (prefix, prefix.len())), "{address:?}");
    }

    routes.shuffle(&mut rng);
    for route in &routes {
        assert_eq!(table.remove(route), Some(route.len()));
    }
    assert_empty(&table);
}

#[test]
fn the_routes_of_the_internet() {
    let Some(text) = data::routes("the_routes_of_the_internet") else { return };
    let (v6, v4): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(':'));
    let v4 = v4.iter().map(|line| line.parse::<Prefix<Ipv4Addr>>().unwrap()).collect();
    let v6 = v6.iter().map(|line| line.parse::<Prefix<Ipv6Addr>>().unwrap()).collect();
    let random_v4 = |rng: &mut StdRng| Ipv4Addr::from_bits(rng.random());
    // Within 2000::/4, where the routes are.
    let random_v6 = |rng: &mut StdRng| Ipv6Addr::from_bits(2 << 124 | rng.random::<u128>() >> 4);
    load_and_lookup(v4, Tuning::default(), random_v4, [[2.4, 1.0], [5.9, 1.6]]);
    load_and_lookup(v6, Tuning::TRASH_2006, random_v6, [[5.7, 1.0], [1.4, 0.1]]);
}
