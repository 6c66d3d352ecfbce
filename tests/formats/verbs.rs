//! One API: the table of verbs and traits in the documentation of the crate. Each structure has one
//! test, which uses what its row has; `ROWS` is the table.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::time::Duration;

use flowtable::demux::Demux;
use flowtable::ephemeral::Full;
use flowtable::flow_cache::{Config, Cursor, Packet};
use flowtable::hash::source_index::SourceIndex;
use flowtable::routes::{PrefixSet, StampedRoutes};
use flowtable::sockets::{Local, Reuse};
use flowtable::{
    AnyPrefix, ChainedCache, Direction, DuplicateFilter, EphemeralStore, FiveTuple, FlowCache,
    FlowKey, FourTuple, LcRouteTable, LcTrieMap, Prefix, Prehashed, RouteTable, Routes,
    SocketTable, SourceHashCache, Timestamp, TrashMap, TrashSet, TrashTable, write_to,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The columns of the table: x where the structure has it.
const COLUMNS: [&str; 14] = [
    "`Prehashed`",
    "`get_batch`",
    "`get_batch_with`",
    "`retain`",
    "`extract_if`",
    "`iter`",
    "`&`",
    "`&mut`",
    "`Extend`",
    "`Default`",
    "`PartialEq`",
    "`Clone`",
    "`Debug`",
    "serde",
];

/// The rows, in the order of the table.
const ROWS: [(&str, &str); 21] = [
    ("TrashMap", "xx-xxxxxxxxxxx"),
    ("TrashSet", "xx-xxxx-xxxxxx"),
    ("TrashTable", "xx-xxxxx-x-xx-"),
    ("ConcurrentMap", "xx-x-xx-xx--x-"),
    ("ConcurrentTable", "xx-x-xx-xx--x-"),
    ("FlowCache", "xxxxxxx---xxxx"),
    ("RouteTable", "-x-xxxxxxxxxxx"),
    ("Routes", "-x-xxxxxxxxxxx"),
    ("PrefixSet", "-x-xxxx-xxxxxx"),
    ("StampedRoutes", "-x-xxx--xxxxx-"),
    ("LcTrieMap", "---xxxxxxxxxxx"),
    ("ConcurrentRoutes", "-x-x-x--xx--x-"),
    ("ConcurrentStampedRoutes", "---x-x--xx--x-"),
    ("LcRouteTable", "---x-xx-xxxxxx"),
    ("ConcurrentLcTrie", "---x-xx-xx--x-"),
    ("SocketTable", "xx-xxxxx---xxx"),
    ("SourceHashCache", "xxxxxxxx--xxx-"),
    ("ChainedCache", "x-xxxxxxx-xxx-"),
    ("DuplicateFilter", "x----------xx-"),
    ("EphemeralStore", "xxxxxx-----xx-"),
    ("Unicache", "---x-xx----xx-"),
];

/// A value can be cloned and printed.
fn is_a_value<T: Clone + Debug>() {}

fn is_comparable<T: PartialEq>() {}

fn has_a_default<T: Default>() {}

fn is_collected_from<T: Default + Extend<I> + FromIterator<I>, I>() {}

fn is_serializable<T: Serialize + DeserializeOwned>() {}

fn iterates_by_reference<T>()
where
    for<'a> &'a T: IntoIterator,
{
}

fn iterates_by_mutable_reference<T>()
where
    for<'a> &'a mut T: IntoIterator,
{
}

fn is_a_key<T: Copy + Eq + Ord + Hash + Debug + Display + Serialize + DeserializeOwned>() {}

fn is_an_error<T: std::error::Error>() {}

#[test]
fn the_table_is_that_of_the_documentation() {
    let text = include_str!("../../src/lib.rs");
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//! | ")).collect();
    let cells = |line: &str| -> Vec<String> {
        line.trim_end_matches(" |").split(" | ").map(String::from).collect()
    };
    let head = lines.iter().position(|line| line.contains(COLUMNS[0])).expect("a table of verbs");
    assert_eq!(cells(lines[head])[1..], COLUMNS);
    for (row, (name, has)) in ROWS.iter().enumerate() {
        let cells = cells(lines[head + 1 + row]);
        assert!(cells[0].contains(name), "{} instead of {name}", cells[0]);
        let documented: String =
            cells[1..].iter().map(|cell| if cell == "–" { "-" } else { "x" }).collect();
        assert_eq!(documented, *has, "{name}");
    }
}

#[test]
fn keys_and_directions_are_displayed() {
    is_a_key::<FlowKey>();
    is_a_key::<FiveTuple<std::net::Ipv6Addr>>();
    is_a_key::<FourTuple<std::net::Ipv4Addr>>();
    is_a_key::<Prefix<std::net::Ipv4Addr>>();
    is_a_key::<AnyPrefix>();
    let src: std::net::Ipv4Addr = "10.0.0.1".parse().unwrap();
    let dst = "2001:db8::1".parse().unwrap();
    let v4 = FourTuple { src, dst: src, sport: 1, dport: 2 };
    let v6 = FiveTuple::<std::net::Ipv6Addr> { src: dst, dst, sport: 1, dport: 2, protocol: 6 };
    assert_eq!(v4.to_string(), "10.0.0.1:1 > 10.0.0.1:2");
    assert_eq!(v6.to_string(), "[2001:db8::1]:1 > [2001:db8::1]:2 proto 6");
    assert_eq!(FlowKey::from(v6).to_string(), v6.to_string());
    let directions = [Direction::Forward, Direction::Reverse];
    assert_eq!(directions.map(|direction| direction.to_string()), ["forward", "reverse"]);
}

/// Errors of the types that have a value of the caller, whether that implements `Debug` or not.
#[test]
fn errors_with_any_value_are_errors() {
    struct Opaque;
    is_an_error::<Full<Opaque>>();
    is_an_error::<flowtable::demux::RejectedPcb<Opaque>>();
    is_an_error::<flowtable::flow_cache::ObserveError<Opaque, std::fmt::Error>>();
    is_an_error::<flowtable::flow_cache::RefusedFlow<Opaque>>();
    is_an_error::<flowtable::flow_cache::RefusedImage<Opaque, Opaque>>();
    is_an_error::<flowtable::routes::NoMemory<Opaque>>();
    is_an_error::<flowtable::sockets::RejectedSocket<Opaque>>();
    is_an_error::<flowtable::trash::TryInsertError<Opaque>>();
    #[cfg(feature = "concurrent")]
    is_an_error::<flowtable::concurrent::WouldExceed<Opaque>>();
    let boxed: Box<dyn std::error::Error> = Full { refused: Opaque }.into();
    assert_eq!(format!("{boxed:?}: {boxed}"), "Full { .. }: the store is full of live bindings");
    let why = flowtable::sockets::SocketError::InUse;
    let boxed: Box<dyn std::error::Error> =
        flowtable::sockets::RejectedSocket { refused: Opaque, why }.into();
    assert_eq!(format!("{boxed:?}"), "RejectedSocket { why: InUse, .. }");
}

/// Errors return what they refused in the field `refused`.
#[test]
fn errors_return_what_they_refused() {
    let mut store: EphemeralStore = EphemeralStore::new(1, Duration::from_secs(1)).unwrap();
    store.find_or_create(1, Timestamp::ZERO, || 1).unwrap();
    assert_eq!(store.find_or_create(2, Timestamp::ZERO, || 2).unwrap_err().refused, 2);
    let mut sockets = SocketTable::new(0);
    let local = Local::new("0.0.0.0:53".parse().unwrap(), 17);
    assert_eq!(sockets.bind(local, Reuse::No, 7).unwrap_err().refused, 7);
    let mut demux = flowtable::demux::TrashDemux::<u8, u8>::default();
    demux.insert(1, 7).unwrap();
    assert_eq!(demux.insert(1, 8).unwrap_err().refused, 8);
    let _ = returned;
}

/// Those that need exhausted memory have the field, too.
fn returned(
    entry: flowtable::trash::TryInsertError<(u8, u8)>,
    route: flowtable::routes::NoMemory<u8>,
) -> ((u8, u8), u8) {
    (entry.refused, route.refused)
}

#[test]
fn trash_map() {
    type Map = TrashMap<u32, u32>;
    is_a_value::<Map>();
    is_comparable::<Map>();
    is_collected_from::<Map, (u32, u32)>();
    is_serializable::<Map>();
    iterates_by_reference::<Map>();
    iterates_by_mutable_reference::<Map>();
    let mut map: Map = (0..10).map(|key| (key, key)).collect();
    let mut found = [None; 2];
    map.get_batch(&[1, 11], write_to(&mut found));
    assert_eq!(found, [Some(&1), None]);
    map.get_batch_mut(&[1, 11], |at, value| assert_eq!(value.is_some(), at == 0));
    assert_eq!(map.get(Prehashed { hash: map.hash_of(&3), key: &3 }), Some(&3));
    map.retain(|key, _| key % 2 == 0);
    assert_eq!((map.extract_if(|key, _| *key > 4).count(), map.iter().count()), (2, 3));
}

#[test]
fn trash_set() {
    type Set = TrashSet<u32>;
    is_a_value::<Set>();
    is_comparable::<Set>();
    is_collected_from::<Set, u32>();
    is_serializable::<Set>();
    iterates_by_reference::<Set>();
    let mut set: Set = (0..10).collect();
    let three = Prehashed { hash: set.hash_of(&3), key: &3 };
    assert!(set.contains(three) && set.get(three).is_some());
    assert!(set.remove(three) && set.take(three).is_none());
    assert_eq!(set.get_or_insert_with(three, |key| *key), &3);
    set.contains_batch([three], |_, is_there| assert!(is_there));
    set.contains_batch(&[1, 11], |index, is_there| assert_eq!(is_there, index == 0));
    set.retain(|key| key % 2 == 0);
    assert_eq!((set.extract_if(|key| *key > 4).count(), set.iter().count()), (2, 3));
}

#[test]
fn trash_table() {
    type Table = TrashTable<u32>;
    is_a_value::<Table>();
    has_a_default::<Table>();
    iterates_by_reference::<Table>();
    iterates_by_mutable_reference::<Table>();
    let (mut table, hash) = (Table::new(), |entry: &u32| u64::from(*entry) << 57);
    (0..10).for_each(|entry| _ = table.insert_unique(hash(&entry), entry, hash));
    let is_it = |index: usize, entry: &u32| *entry == [1, 11][index];
    table.find_batch(&[1, 11].map(|entry| hash(&entry)), is_it, |index, found| {
        assert_eq!(found.copied(), (index == 0).then_some(1));
    });
    table.retain(|entry| *entry % 2 == 0, hash);
    assert_eq!((table.extract_if(|entry| *entry > 4, hash).count(), table.iter().count()), (2, 3));
}

#[cfg(feature = "concurrent")]
#[test]
fn concurrent_map() {
    type Map = flowtable::ConcurrentMap<u32, u32>;
    is_collected_from::<Map, (u32, u32)>();
    let map: Map = (0..10).map(|key| (key, key)).collect();
    let pinned = map.pin();
    let mut found = [None; 2];
    pinned.get_batch(&[1, 11], &mut found);
    assert_eq!(found, [Some(&1), None]);
    assert_eq!(pinned.get_hashed(pinned.hash_of(&3), &3), Some(&3));
    pinned.retain(|key, _| key % 2 == 0);
    assert_eq!(pinned.iter().count(), 5);
    assert!(format!("{map:?}").contains("4: 4"));
    assert_eq!((&pinned).into_iter().count(), 5);
}

#[cfg(feature = "concurrent")]
#[test]
fn concurrent_table() {
    type Table = flowtable::ConcurrentTable<u32, u64>;
    is_collected_from::<Table, (u32, u64)>();
    let table: Table = (0..10).map(|key| (key, key.into())).collect();
    let pinned = table.pin();
    let mut found = [None; 2];
    pinned.get_batch(&[1, 11], &mut found);
    assert_eq!(found, [Some(1), None]);
    assert_eq!(pinned.get_hashed(pinned.hash_of(&3), &3), Some(3));
    pinned.retain(|key, _| key % 2 == 0);
    assert_eq!((pinned.iter().count(), (&pinned).into_iter().count()), (5, 5));
    assert!(format!("{table:?}").contains("4: 4"));
}

#[cfg(feature = "concurrent")]
#[test]
fn concurrent_routes() {
    type Table = flowtable::ConcurrentRoutes<u32, u32>;
    has_a_default::<Table>();
    let routes: Table = (0..10).map(|host| (Prefix::host(host), host)).collect();
    routes.retain(|_, value| value % 2 == 0).unwrap();
    let pinned = routes.pin();
    let mut found = [None; 2];
    pinned.lookup_batch(&[1, 2], &mut found);
    assert_eq!(found.map(|route| route.map(|(_, value)| *value)), [None, Some(2)]);
    assert_eq!(pinned.iter().count(), 5);
    assert!(!format!("{routes:?}").is_empty());
}

#[cfg(feature = "concurrent")]
#[test]
fn concurrent_stamped_routes() {
    type Table = flowtable::concurrent::ConcurrentStampedRoutes<u32, u32>;
    has_a_default::<Table>();
    let routes: Table = (0..10).map(|host| (Prefix::host(host), host)).collect();
    routes.retain(|_, value| value % 2 == 0).unwrap();
    assert_eq!(routes.pin().iter().count(), 5);
    assert!(!format!("{routes:?}").is_empty());
}

#[cfg(feature = "concurrent")]
#[test]
fn concurrent_trie() {
    type Trie = flowtable::ConcurrentLcTrie<u32, u32>;
    is_collected_from::<Trie, (u32, u32)>();
    let trie: Trie = (0..10).map(|key| (key, key)).collect();
    let pinned = trie.pin();
    pinned.retain(|key, _| key % 2 == 0);
    assert_eq!((pinned.iter().count(), (&pinned).into_iter().count()), (5, 5));
    assert!(format!("{trie:?}").contains("4: 4"));
}

#[test]
fn flow_cache() {
    type Cache = FlowCache<FlowKey, u32>;
    is_a_value::<Cache>();
    is_comparable::<Cache>();
    iterates_by_reference::<Cache>();
    is_serializable::<flowtable::flow_cache::Image<FlowKey, u32>>();
    let mut flows = Cache::new(Config::new(10).unwrap());
    let key = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 1, 2, 17).unwrap();
    _ = flows.observe(&key, Packet::UDP, Timestamp::ZERO).unwrap();
    let mut hashed = flows.clone();
    hashed.clear();
    assert!(hashed.observe_hashed(7, &key, Packet::UDP, Timestamp::ZERO).is_ok());
    assert!(hashed.find_hashed(7, &key).is_some());
    let (burst, is_known) = ([(key, Packet::UDP)], |seen: Option<bool>| seen == Some(false));
    flows.observe_batch(&burst, Timestamp::ZERO, |_, seen| {
        assert!(is_known(seen.ok().map(|seen| seen.fresh)));
    });
    let new = |_| 0;
    flows.observe_batch_with(&burst, Timestamp::ZERO, new, |_, seen| {
        assert!(is_known(seen.ok().map(|seen| seen.fresh)));
    });
    flows.retain_step(&mut Cursor::new(), 10, |_| true, |_| unreachable!("all are kept"));
    flows.retain(|flow| flow.key() == key);
    assert_eq!(flows.iter().count(), 1);
    assert_eq!(flows.extract_if(|_| true).count(), 1);
}

#[test]
fn route_tables() {
    type Table = RouteTable<u32, u32>;
    is_a_value::<Table>();
    is_comparable::<Table>();
    is_collected_from::<Table, (Prefix<u32>, u32)>();
    is_serializable::<RouteTable<std::net::Ipv4Addr, u32>>();
    iterates_by_reference::<Table>();
    iterates_by_mutable_reference::<Table>();
    is_a_value::<Routes<u32>>();
    is_comparable::<Routes<u32>>();
    is_collected_from::<Routes<u32>, (AnyPrefix, u32)>();
    is_serializable::<Routes<u32>>();
    iterates_by_reference::<Routes<u32>>();
    iterates_by_mutable_reference::<Routes<u32>>();
    is_a_value::<PrefixSet<u32>>();
    is_comparable::<PrefixSet<u32>>();
    is_collected_from::<PrefixSet<u32>, Prefix<u32>>();
    is_serializable::<PrefixSet<std::net::Ipv4Addr>>();
    iterates_by_reference::<PrefixSet<u32>>();
    is_a_value::<StampedRoutes<u32, u32>>();
    is_collected_from::<StampedRoutes<u32, u32>, (Prefix<u32>, u32)>();
    let mut stamped: StampedRoutes<u32, u32> =
        (0..10).map(|host| (Prefix::host(host), host)).collect();
    stamped.retain(|_, value| *value % 2 == 0);
    assert_eq!(stamped.iter().count(), 5);
    let mut found = [None; 2];
    stamped.lookup_batch(&[1, 2], &mut found);
    assert_eq!(found, [None, Some((Prefix::host(2), &2))]);
    assert_eq!((&stamped.clone(), stamped.clone().extract_if(|_, _| true).count()), (&stamped, 5));
    type Trie = LcRouteTable<u32, u32>;
    is_a_value::<Trie>();
    is_comparable::<Trie>();
    is_collected_from::<Trie, (Prefix<u32>, u32)>();
    is_serializable::<LcRouteTable<std::net::Ipv4Addr, u32>>();
    iterates_by_reference::<Trie>();
    let mut both: Routes<u32> = Routes::new();
    let host = AnyPrefix::from(Prefix::host(core::net::Ipv4Addr::LOCALHOST));
    both.insert(host, 7);
    let (mut found, addresses) = ([None; 1], [core::net::Ipv4Addr::LOCALHOST.into()]);
    both.lookup_batch(&addresses, &mut found);
    assert!(found[0].is_some());
    both.retain(|_, value| *value == 7);
    assert_eq!(both.iter().count(), 1);
    assert!(both.extract_if(|_, value| *value == 7).eq([(host, 7)]) && both.is_empty());
    let mut prefixes: PrefixSet<u32> = [1, 2].map(Prefix::host).into_iter().collect();
    prefixes.retain(|prefix| prefix.address() == 1);
    assert_eq!(prefixes.len(), 1);
    let mut found = [None; 2];
    prefixes.lookup_batch(&[1, 2], &mut found);
    assert_eq!(found, [Some(Prefix::host(1)), None]);
    assert_eq!(prefixes.extract_if(|_| true).count(), 1);
    let mut routes: Table = (0..10).map(|host| (Prefix::host(host), host)).collect();
    let mut found = [None; 2];
    routes.lookup_batch(&[1, 11], &mut found);
    assert_eq!(found.map(|route| route.map(|(_, value)| *value)), [Some(1), None]);
    routes.retain(|_, value| *value % 2 == 0);
    assert_eq!(routes.iter().count(), 5);
    assert_eq!(routes.clone().extract_if(|_, value| *value > 2).count(), 3);
    let set: PrefixSet<u32> = routes.prefixes().collect();
    assert!((&set).into_iter().eq(set.iter()) && set.len() == 5);
    let mut trie: Trie = routes.iter().map(|(prefix, value)| (prefix, *value)).collect();
    assert_eq!((trie.iter().count(), &trie), (5, &trie.clone()));
    trie.retain(|_, value| *value > 4);
    assert_eq!(trie.iter().count(), 2);
}

#[test]
fn tries() {
    type Map = LcTrieMap<u32, u32>;
    is_a_value::<Map>();
    is_comparable::<Map>();
    is_collected_from::<Map, (u32, u32)>();
    is_serializable::<Map>();
    iterates_by_reference::<Map>();
    iterates_by_mutable_reference::<Map>();
    let mut map: Map = (0..10).map(|key| (key, key)).collect();
    map.retain(|key, _| key % 2 == 0);
    assert_eq!((map.extract_if(|key, _| *key > 4).count(), map.iter().count()), (2, 3));
    type Unicache = flowtable::trie::unicache::Unicache<u32, u32>;
    is_a_value::<Unicache>();
    iterates_by_reference::<Unicache>();
    let mut cache = Unicache::new(flowtable::eviction::PassiveGc::new(10, 5).unwrap());
    cache.retain(|_, _| true);
    assert_eq!(cache.iter().count(), 0);
}

#[test]
fn sockets() {
    type Table = SocketTable<u32>;
    is_a_value::<Table>();
    iterates_by_reference::<Table>();
    iterates_by_mutable_reference::<Table>();
    is_serializable::<Local>();
    let mut sockets = Table::new(10);
    sockets.bind(Local::new("0.0.0.0:53".parse().unwrap(), 17), Reuse::No, 7).unwrap();
    let query = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 1, 53, 17).unwrap();
    let mut found = [None; 2];
    sockets.lookup_batch(&[query, query.reversed()], &mut found);
    assert_eq!(found.map(|found| found.map(|found| *found.socket)), [Some(7), None]);
    assert_eq!(sockets.lookup_hashed(sockets.hash_of(&query), &query), found[0]);
    sockets.retain(|_, _| true);
    assert_eq!((sockets.extract_if(|_, _| true).count(), sockets.iter().count()), (1, 0));
}

#[test]
fn caches() {
    type ByIndex = SourceHashCache<u32, u32>;
    is_a_value::<ByIndex>();
    is_comparable::<ByIndex>();
    iterates_by_reference::<ByIndex>();
    iterates_by_mutable_reference::<ByIndex>();
    let mut cache = ByIndex::new(100).unwrap();
    let index = SourceIndex::new(7);
    _ = cache.insert(index, 1, 10);
    let mut found = [None; 2];
    cache.get_batch(&[index; 2], &[1, 2], &mut found);
    assert_eq!(found, [Some(&10), None]);
    cache.get_batch_mut(&[index; 2], &[1, 2], |at, value| assert_eq!(value.is_some(), at == 0));
    assert_eq!(cache.extract_if(|_, value| *value == 10).collect::<Vec<_>>(), [(1, 10)]);
    cache.retain(|_, _| false);
    assert_eq!(cache.iter().count(), 0);

    type Chained = ChainedCache<u32, u32>;
    is_a_value::<Chained>();
    is_comparable::<Chained>();
    iterates_by_reference::<Chained>();
    iterates_by_mutable_reference::<Chained>();
    let mut cache = Chained::new(100).unwrap();
    let hash = cache.hash_of(&1);
    cache.extend([(1, 10), (2, 20)]);
    assert_eq!(cache.get_hashed(hash, &1), Some(&10));
    cache.get_batch_mut(&[1, 3], |index, value| assert_eq!(value.is_some(), index == 0));
    assert_eq!(cache.extract_if(|key, _| *key == 2).collect::<Vec<_>>(), [(2, 20)]);
    assert!(cache == cache.clone() && cache != Chained::new(100).unwrap());
    cache.retain(|_, _| false);
    assert_eq!(cache.iter().count(), 0);

    is_a_value::<DuplicateFilter<u32>>();
    let mut filter = DuplicateFilter::new(10, Duration::from_secs(1)).unwrap();
    _ = filter.accept_indexed(index, 1, 1, Timestamp::ZERO);
    assert_eq!(filter.len(), 1);
}

#[test]
fn ephemeral_store() {
    type Store = EphemeralStore<u32, u32>;
    is_a_value::<Store>();
    let mut store = Store::new(10, Duration::from_secs(1)).unwrap();
    let now = Timestamp::ZERO;
    store.find_or_create(1, now, || 10).unwrap();
    let (mut found, mut sum) = ([None; 2], 0);
    store.get_batch(&[1, 2], now, &mut found);
    assert_eq!(found, [Some(&10), None]);
    store.get_batch_with(&[1, 1], now, |_, value| sum += value.unwrap());
    assert_eq!((sum, store.get_hashed(store.hash_of(&1), &1, now)), (20, Some(&10)));
    store.retain(now, |_, _| true);
    assert_eq!(store.extract_if(now, |_, _| true).collect::<Vec<_>>(), [(1, 10)]);
    assert_eq!(store.iter(now).count(), 0);
}
