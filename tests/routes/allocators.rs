//! `RouteTable` in memory of the caller, with requests that fail.

use core::alloc::Layout;
use core::fmt::Debug;
use core::mem::MaybeUninit;
use core::net::{Ipv4Addr, Ipv6Addr};
use model::cases;
use std::collections::BTreeMap;

use bumpalo::Bump;
use flowtable::key::bits::Address;
use flowtable::memory::Allocator;
use flowtable::routes::Entry;
use flowtable::{Prefix, RouteTable};
use model::alloc;
use model::area::Area;
use model::hashers::mix;
use model::limited::Limited;
use model::prefixes::{last_address, prefix_of};
use proptest::collection::vec;
use proptest::prelude::*;

/// Addresses with routes that are close to each other.
trait Family: Address + Debug {
    fn route(number: u64) -> Prefix<Self>;
}

impl Family for Ipv4Addr {
    /// Half of them are below one direct table.
    fn route(number: u64) -> Prefix<Self> {
        let (random, len) = (mix(number) as u32, [24, 24, 24, 22, 19, 16, 9, 32]);
        let first = if number % 2 == 0 { 10 << 24 } else { random & 0xC000_0000 };
        let address = Self::from_bits(first | random & 0x00FF_FFFF);
        prefix_of(address, len[(random >> 24) as usize % 8])
    }
}

impl Family for Ipv6Addr {
    fn route(number: u64) -> Prefix<Self> {
        let (random, len) = (mix(number), [48, 48, 48, 44, 36, 32, 29, 64]);
        let high = 0x2001_0000_0000_0000 | random & 0x0000_FF0F_FFFF_FFFF;
        prefix_of(Self::from_bits(u128::from(high) << 64), len[(random >> 60) as usize % 8])
    }
}

/// Values of no size, in the pool, and with a destructor.
trait Value: Clone + Debug + PartialEq {
    fn make(number: u64) -> Self;
}

impl Value for () {
    fn make(_: u64) -> Self {}
}

impl Value for [u64; 3] {
    fn make(number: u64) -> Self {
        [number; 3]
    }
}

impl Value for Box<u64> {
    fn make(number: u64) -> Self {
        Self::new(number)
    }
}

/// One step, of routes by number.
#[derive(Clone, Debug)]
enum Op {
    /// Inserts that many routes from one on.
    Insert(u64, u64),
    Update(u64, u64),
    Entry(u64, u64),
    /// Removes that many routes from one on.
    Remove(u64, u64),
    Lookup(u64),
    Retain(u64),
    Shrink,
    Clear,
    Clone,
    IntoIter(usize),
    FailEach(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let number = 0..4000_u64;
    let count = 1..if cfg!(miri) { 20 } else { 800_u64 };
    let op = prop_oneof![
        12 => (number.clone(), count.clone()).prop_map(|(first, count)| Op::Insert(first, count)),
        2 => (number.clone(), 0..9_u64).prop_map(|(number, value)| Op::Update(number, value)),
        2 => (number.clone(), 0..9_u64).prop_map(|(number, value)| Op::Entry(number, value)),
        6 => (number.clone(), count).prop_map(|(first, count)| Op::Remove(first, count)),
        4 => number.prop_map(Op::Lookup),
        1 => (2..9_u64).prop_map(Op::Retain),
        1 => Just(Op::Shrink),
        1 => Just(Op::Clear),
        1 => Just(Op::Clone),
        1 => (0..200_usize).prop_map(Op::IntoIter),
        4 => (0..12_usize).prop_map(Op::FailEach),
    ];
    vec(op, 1..if cfg!(miri) { 4 } else { 40 })
}

type Table<'m, A, V> = RouteTable<A, V, &'m Limited>;
type Model<A, V> = BTreeMap<Prefix<A>, V>;

fn apply<A: Family, V: Value>(op: &Op, table: &mut Table<'_, A, V>, model: &mut Model<A, V>) {
    match *op {
        Op::Insert(first, count) => {
            for number in first..first + count {
                let (prefix, value) = (A::route(number), V::make(number));
                match table.try_insert(prefix, value.clone()) {
                    Ok(replaced) => assert_eq!(replaced, model.insert(prefix, value)),
                    Err(error) => {
                        assert_eq!((error.refused, model.get(&prefix)), (value, None));
                    }
                }
            }
        }
        Op::Update(number, value) => {
            let prefix = A::route(number);
            let ours = table.get_mut(&prefix).map(|own| *own = V::make(value));
            let theirs = model.get_mut(&prefix).map(|own| *own = V::make(value));
            assert_eq!(ours, theirs);
        }
        Op::Entry(number, value) => {
            let prefix = A::route(number);
            let Entry::Occupied(mut entry) = table.entry(prefix) else {
                return assert_eq!(model.get(&prefix), None);
            };
            assert_eq!(Some(entry.insert(V::make(value))), model.insert(prefix, V::make(value)));
            assert_eq!(Some(entry.remove()), model.remove(&prefix));
        }
        Op::Remove(first, count) => {
            for prefix in (first..first + count).map(A::route) {
                assert_eq!(table.remove(&prefix), model.remove(&prefix));
            }
        }
        Op::Lookup(number) => lookup(table, model, number),
        ref op => whole(op, table, model),
    }
}

/// Lookups need no memory.
fn lookup<A: Family, V: Value>(table: &Table<'_, A, V>, model: &Model<A, V>, number: u64) {
    let memory = table.allocator().bytes();
    let addresses: Vec<A> =
        (number..number + 40).map(|number| A::route(number).address()).collect();
    let mut found = vec![None; addresses.len()];
    table.lookup_batch(&addresses, |i, route| found[i] = route);
    for (address, found) in addresses.iter().zip(found) {
        let longest = model.iter().filter(|(prefix, _)| prefix.contains(address));
        let longest = longest.max_by_key(|(prefix, _)| prefix.len());
        assert_eq!(found, longest.map(|(prefix, value)| (*prefix, value)));
        assert_eq!(table.lookup(address), found);
        assert_eq!(table.matches(address).last(), found);
    }
    assert_eq!(table.allocator().bytes(), memory);
}

/// Applies an operation on the whole table. Some of these end the program without memory.
fn whole<A: Family, V: Value>(op: &Op, table: &mut Table<'_, A, V>, model: &mut Model<A, V>) {
    let memory = *table.allocator();
    match *op {
        Op::Retain(divisor) => {
            let is_kept = |prefix: &Prefix<A>| prefix.address().window(0) >> 20 & 7 != divisor;
            table.retain(|prefix, _| is_kept(&prefix));
            model.retain(|prefix, _| is_kept(prefix));
        }
        Op::Shrink => table.shrink_to_fit(),
        Op::Clear => {
            table.clear();
            model.clear();
            assert_eq!(table.allocation_size(), 0);
        }
        Op::Clone => {
            memory.fail_each(0);
            let copy = table.clone();
            assert_eq!(copy.allocation_size() + table.allocation_size(), memory.bytes());
            assert_eq!(copy, *table);
            *table = copy;
        }
        Op::IntoIter(count) => {
            memory.fail_each(1);
            let mut taken = core::mem::replace(table, Table::new_in(memory)).into_iter();
            let ours: Vec<_> = taken.by_ref().take(count).collect();
            // The rest is dropped by the iterator.
            drop(taken);
            assert!(core::mem::take(model).into_iter().take(count).eq(ours));
            assert_eq!(memory.bytes(), 0);
            memory.fail_each(0);
        }
        Op::FailEach(period) => memory.fail_each(period),
        ref op => unreachable!("{op:?} is handled by the caller"),
    }
}

/// Nothing is lost, nothing is there twice, and the table has the memory that it reports.
fn run<A: Family, V: Value>(ops: &[Op], period: usize) {
    let memory = Limited::failing_each(period);
    let (mut table, mut model) = (Table::<A, V>::new_in(&memory), Model::new());
    for op in ops {
        apply(op, &mut table, &mut model);
        let validated = memory.without_failures(|| table.validate());
        assert_eq!(validated, Ok(()), "after {op:?}");
        assert_eq!(table.len(), model.len(), "after {op:?}");
        let is_there = |(prefix, value): (&Prefix<A>, _)| table.get(prefix) == Some(value);
        assert!(model.iter().all(is_there), "after {op:?}");
        assert_eq!(table.allocation_size(), memory.bytes(), "after {op:?}");
    }
    // Neither needs a drop memory.
    memory.fail_each(1);
    drop(table);
    assert_eq!(memory.bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24, 1)))]

    #[test]
    fn a_table_whose_requests_fail_is_a_table(ops in ops(), period in 0..9_usize) {
        run::<Ipv4Addr, [u64; 3]>(&ops, period);
        run::<Ipv6Addr, Box<u64>>(&ops, period);
        run::<Ipv6Addr, ()>(&ops, period);
    }
}

/// All tables that lookups use are made, from this memory alone, with failures between.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn direct_tables_and_levels_are_in_the_memory() {
    fn test<A: Family, V: Value>(is_made: impl Fn(&Table<'_, A, V>) -> bool) {
        let memory = Limited::default();
        let mut table = Table::<A, V>::new_in(&memory);
        let (mut made, mut refused) = (false, 0);
        for number in 0..20_000 {
            memory.fail_each(usize::from(number % 4 == 3));
            refused += usize::from(table.try_insert(A::route(number), V::make(number)).is_err());
            made = made || number % 16 == 0 && is_made(&table);
        }
        assert!(made && refused > 5, "{refused} refused");
        memory.fail_each(0);
        assert_eq!((table.validate(), table.allocation_size()), (Ok(()), memory.bytes()));
        memory.fail_each(1);
        let numbers = (0..20_000).filter(|number| table.remove(&A::route(*number)).is_some());
        assert!(numbers.count() > 10_000 && table.is_empty());
        assert_eq!(memory.bytes(), 0);
    }
    test::<Ipv4Addr, [u64; 3]>(|table| table.shape().direct_tables > 0);
    test::<Ipv6Addr, Box<u64>>(|table| table.shape().level_bytes > 0);
}

/// As aligned as nodes are, for Miri, which goes by the alignment of the whole buffer.
#[repr(align(64))]
struct Buffer<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

impl<const BYTES: usize> Buffer<BYTES> {
    fn new() -> Box<Self> {
        Box::new(Self([MaybeUninit::uninit(); BYTES]))
    }
}

/// Without memory elsewhere, an area is filled until an insertion fails.
#[test]
fn a_table_in_an_area_never_needs_other_memory() {
    fn test<A: Family>(bytes: usize, least: usize) {
        let mut memory = Buffer::<{ 64 << 10 }>::new();
        let area = Area::new(&mut memory.0[..bytes]);
        alloc::with_allocations(0, || {
            for seed in 0..if cfg!(miri) { 1 } else { 20 } {
                let mut table: RouteTable<A, u64, _> = RouteTable::new_in(&area);
                let numbers = || (seed << 32..).filter(|number| number % 3 > 0);
                let mut insert = |number: &u64| table.try_insert(A::route(*number), *number);
                let full = numbers().find(|number| insert(number).is_err()).unwrap_or(0);
                assert!(table.len() >= least, "{} routes", table.len());
                assert!(table.allocation_size() <= area.allocated_bytes());
                for number in numbers().take_while(|number| *number < full).step_by(2) {
                    table.remove(&A::route(number));
                    assert!(table.lookup(&last_address(&A::route(number))).is_none_or(|found| {
                        found.0.contains(&last_address(&A::route(number)))
                    }));
                }
                assert_eq!(table.try_insert(A::route(full), full).ok(), Some(None));
                drop(table);
                assert_eq!(area.allocated_bytes(), 0);
            }
        });
    }
    test::<Ipv4Addr>(16 << 10, 30);
    if cfg!(miri) {
        return;
    }
    test::<Ipv6Addr>(16 << 10, 30);
    test::<Ipv4Addr>(64 << 10, 200);
    test::<Ipv6Addr>(64 << 10, 100);
}

/// Methods that read or remove routes work when an area has no memory left: else it could not be
/// emptied.
#[test]
fn iterators_and_removals_need_no_memory() {
    fn test<A: Family>() {
        const BYTES: usize = if cfg!(miri) { 8 << 10 } else { 16 << 10 };
        let mut memory = Buffer::<BYTES>::new();
        let area = Area::new(&mut memory.0);
        let mut table: RouteTable<A, u64, _> = RouteTable::new_in(&area);
        let refused = (0..).find(|number| table.try_insert(A::route(*number), *number).is_err());
        let blocks = core::iter::from_fn(|| area.allocate(Layout::new::<u64>()).ok()).count();
        // A route takes less than 500 bytes.
        let least = BYTES as u64 / 500;
        assert!(refused > Some(least) && blocks < 1000, "{refused:?}, {blocks} blocks");
        let routes: Vec<(Prefix<A>, u64)> = table.iter().map(|(at, value)| (at, *value)).collect();
        assert_eq!((routes.len(), &table), (table.len(), &table));
        assert!(routes.is_sorted());
        assert!(format!("{table:?}").matches(": ").count() >= routes.len());
        table.iter_mut().for_each(|(_, value)| *value += 1);
        assert!(table.values().copied().eq(routes.iter().map(|(_, value)| value + 1)));
        assert_eq!(table.union(&table).count(), table.len());
        assert_eq!(table.difference(&table).count(), 0);
        let half = table.covered(&Prefix::default_route()).nth(routes.len() / 2).unwrap().0;
        assert!(table.covered(&half).next().is_some());

        let (before, mut seen) = (area.allocated_bytes(), vec![]);
        table.retain(|prefix, value| {
            seen.push(prefix);
            *value % 8 == 0
        });
        assert!(seen.into_iter().eq(routes.iter().map(|(prefix, _)| *prefix)));
        assert!(table.iter().all(|(prefix, value)| routes.contains(&(prefix, *value - 1))));
        assert_eq!(table.len(), routes.iter().filter(|(_, value)| value % 8 == 7).count());
        assert_eq!(table.validate(), Ok(()));
        table.retain(|_, _| false);
        assert!(table.is_empty() && area.allocated_bytes() < before);
        assert_eq!(table.into_iter().count(), 0);
    }
    if !cfg!(miri) {
        test::<Ipv4Addr>();
    }
    test::<Ipv6Addr>();
}

/// The types that name no allocator are those of before.
#[test]
#[cfg_attr(miri, ignore = "it goes by the alignment of a whole chunk of the arena")]
fn types_without_an_allocator_are_in_memory_of_the_program() {
    fn global<A, V>(table: RouteTable<A, V>) -> RouteTable<A, V, flowtable::memory::Global> {
        table
    }
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    const EMPTY: RouteTable<Ipv4Addr, Box<u32>> = RouteTable::new();
    let mut table = global(EMPTY);
    is_send_and_sync(&table);
    table.insert(Ipv4Addr::route(1), Box::new(1));
    let arena = Bump::new();
    let mut other = RouteTable::new_in(&arena);
    other.extend(table.iter().map(|(prefix, value)| (prefix, value.clone())));
    assert_eq!(table.intersection(&other).count(), 1);
    assert_eq!((table.difference(&other).count(), other.difference(&table).count()), (0, 0));
    assert!(arena.allocated_bytes() >= other.allocation_size());
    assert_eq!(other.aggregated().allocator().allocated_bytes(), arena.allocated_bytes());
}
